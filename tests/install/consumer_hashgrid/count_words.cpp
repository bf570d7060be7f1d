// SPDX-License-Identifier: Apache-2.0
// count_words.cpp - a consumer's program with the hash grid: it maps hashes of words to their counts, by threads that
// share one table.
#include <hashgrid/grid.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace grid = quarry::hashgrid;

int main() {
  const auto executor = grid::make_host_executor();
  grid::GridOptions options;
  options.capacity = 1000;
  auto words = grid::Grid::create(*executor, options);
  if (!words) return std::fprintf(stderr, "%s\n", words.error().message.c_str()), 1;

  // In bulk: vectors, arrays, or a pointer and a size.
  std::vector<uint32_t> keys(5000), values(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) keys[i] = i * 2654435761u, values[i] = i;
  const auto inserted = words->insert(keys, values);
  if (!inserted || inserted->inserted != keys.size()) return std::fprintf(stderr, "not all keys are in\n"), 1;
  std::array<uint32_t, 2> asked{keys[7], 12345}, found{};
  const auto report = words->find(asked, found);
  if (!report || report->present != 1 || found[0] != 7 || found[1] != kQryReservedValue)
    return std::fprintf(stderr, "wrong answer\n"), 1;

  // One at a time, from any number of threads at once.
  const grid::GridView view = words->view();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (const uint32_t key : keys) grid::erase(view, key);
    });
  for (std::thread& thread : threads) thread.join();
  const auto stats = words->stats();
  if (!stats || stats->live != 0) return std::fprintf(stderr, "keys are left\n"), 1;

  // An error is a value whose message says what to do.
  const auto refused = words->insert({&kQryReservedKey, 1}, {values.data(), 1});
  if (refused) return std::fprintf(stderr, "the reserved key was taken\n"), 1;
  std::printf("%zu keys came and went; refused: %s\n", keys.size(), refused.error().message.c_str());
  return 0;
}
