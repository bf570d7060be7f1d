// SPDX-License-Identifier: Apache-2.0
// relational_join.cpp - two tables joined by several columns of different types, on a CUDA device if there is one, else
// by host threads. A program over the installed package:
//
//   find_package(quarry COMPONENTS hashgrid REQUIRED)
//   target_link_libraries(relational_join PRIVATE quarry::hashgrid)
//
//   select orders.row, offers.row from orders join offers
//     on orders.article = offers.article and orders.size = offers.size and orders.city = offers.city
//
// The way of the multi-column join in the announcement of cuCollections ("Maximizing Performance with Massively
// Parallel Hash Maps on GPUs", 2023): tables stay where they are. What is joined is one hash of each row's columns,
// whose results are numbers of rows; and as two rows may have one hash and differ, each pair's columns are compared at
// last. Here the join does the rest: dividing both sides, tables, keys with many rows.
#include <hashgrid/join.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace grid = quarry::hashgrid;

namespace {

// A table is columns of one length.
struct Table {
  std::vector<std::string> city;
  std::vector<uint64_t> article;
  std::vector<uint8_t> size;
};

Table some_table(uint32_t rows, uint32_t seed) {
  static const char* const cities[] = {"Aachen", "Bergen", "Cork", "Dijon", "Essen", "Faro", "Graz"};
  Table table;
  for (uint32_t row = 0; row < rows; ++row) {
    seed = seed * 1664525u + 1013904223u;
    table.city.push_back(cities[seed / 7919u % 7u]);
    table.article.push_back(uint64_t{1000000007u} * (seed / 65536u % 50u));
    table.size.push_back(uint8_t(36u + seed / 1048576u % 12u));
  }
  return table;
}

// One hash of a row's columns, never the reserved key.
uint32_t hash_of(const Table& table, size_t row) {
  uint64_t hash = table.article[row] * 0x9E3779B97F4A7C15u;
  hash = (hash ^ table.size[row]) * 0xBF58476D1CE4E5B9u;
  for (const char letter : std::string_view(table.city[row]))
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  const uint32_t folded = uint32_t(hash ^ hash >> 32);
  return folded == kQryReservedKey ? 0 : folded;
}
std::vector<uint32_t> hashes_of(const Table& table) {
  std::vector<uint32_t> hashes(table.article.size());
  for (size_t row = 0; row < hashes.size(); ++row) hashes[row] = hash_of(table, row);
  return hashes;
}
bool are_equal(const Table& a, size_t row_a, const Table& b, size_t row_b) {
  return a.article[row_a] == b.article[row_b] && a.size[row_a] == b.size[row_b] && a.city[row_a] == b.city[row_b];
}

// Words in the executor's memory, which for CUDA is the device's.
class Words {
 public:
  Words(grid::Executor& executor, size_t count) : executor_(executor), count_(count) {
    if (auto block = executor.memory().allocate((count + 1) * sizeof(uint32_t), "a column")) block_ = *block;
    else std::fprintf(stderr, "%s\n", block.error().message.c_str()), std::exit(1);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words() { executor_.memory().release(block_); }
  grid::Span<uint32_t> span() const { return {static_cast<uint32_t*>(block_.data), count_}; }
  bool set(const std::vector<uint32_t>& from) const {
    return executor_.upload(block_.data, from.data(), count_ * sizeof(uint32_t)).has_value();
  }
  std::vector<uint32_t> get() const {
    std::vector<uint32_t> copy(count_);
    if (!executor_.download(copy.data(), block_.data, count_ * sizeof(uint32_t))) copy.clear();
    return copy;
  }

 private:
  grid::Executor& executor_;
  size_t count_;
  quarry::MemoryBlock block_{};
};

}  // namespace

int main() {
  std::unique_ptr<grid::Executor> executor;
  if (auto cuda = grid::make_cuda_executor()) executor = std::move(*cuda);
  else executor = grid::make_host_executor();

  const Table orders = some_table(3000, 1), offers = some_table(2000, 2);
  const std::vector<uint32_t> order_hashes = hashes_of(orders), offer_hashes = hashes_of(offers);
  const Words left(*executor, order_hashes.size()), right(*executor, offer_hashes.size());
  if (!left.set(order_hashes) || !right.set(offer_hashes)) return std::fprintf(stderr, "no copy\n"), 1;

  // Counted first, so that the room is right; a room that was too small would be an error that says how many there are.
  const auto count = grid::inner_join(*executor, left.span(), right.span(), {}, {});
  if (!count) return std::fprintf(stderr, "%s\n", count.error().message.c_str()), 1;
  const Words order_rows(*executor, size_t(*count)), offer_rows(*executor, size_t(*count));
  const auto joined = grid::inner_join(*executor, left.span(), right.span(), order_rows.span(), offer_rows.span());
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 1;

  // Rows whose hashes alone are equal go.
  const std::vector<uint32_t> of_orders = order_rows.get(), of_offers = offer_rows.get();
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0; i < of_orders.size(); ++i)
    if (are_equal(orders, of_orders[i], offers, of_offers[i])) pairs.emplace_back(of_orders[i], of_offers[i]);

  // The same by a loop in a loop.
  std::vector<std::pair<uint32_t, uint32_t>> expected;
  for (uint32_t order = 0; order < orders.article.size(); ++order)
    for (uint32_t offer = 0; offer < offers.article.size(); ++offer)
      if (are_equal(orders, order, offers, offer)) expected.emplace_back(order, offer);
  std::sort(pairs.begin(), pairs.end());
  if (pairs != expected) return std::fprintf(stderr, "the join is wrong\n"), 1;
  std::printf("%zu orders and %zu offers: %zu pairs, as the loops have them (%s)\n", order_hashes.size(),
              offer_hashes.size(), pairs.size(), grid::to_string(executor->kind()));
  return 0;
}
