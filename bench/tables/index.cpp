// SPDX-License-Identifier: Apache-2.0
// index.cpp - the rows of `quarry bench index`.
#include "bench/tables/index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "base/parallel.hpp"
#include "bench/hashgrid/rows.hpp"
#include "bench/hashgrid/terrain.hpp"
#include "hashgrid/grid.hpp"
#include "hashgrid/index/radix_sort.hpp"
#include "hashgrid/ordered_index.hpp"

namespace quarry::bench {
// Its own names: sources are compiled together.
namespace index_rows {
namespace {

using nlohmann::json;
using namespace hashgrid;
using Keys = std::vector<uint64_t>;
using Words = std::vector<uint32_t>;

constexpr size_t kGrain = 4096;
// Of a call: a device needs more of them to be busy.
constexpr uint64_t kHostQuestions = uint64_t{1} << 20, kDeviceQuestions = uint64_t{1} << 24;

// The terrain's packed keys, x | y << 11 | z << 21.
uint64_t morton_of(uint32_t packed) { return morton_encode(packed & 2047u, packed >> 11 & 1023u, packed >> 21); }

// What both executors are asked, with the answers.
struct Workload {
  Workload(uint64_t count, uint64_t questions) : packed(terrain_bricks(count)), random(uint32_t(count)) {
    rising.reserve(packed.size());
    for (const uint32_t key : packed) rising.push_back(morton_of(key));
    std::sort(rising.begin(), rising.end());
    values.resize(rising.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = uint32_t(i);
    // Every question is of a brick that is there.
    asked_packed.resize(questions);
    asked.resize(questions);
    for (size_t i = 0; i < questions; ++i) {
      asked_packed[i] = packed[random() % packed.size()];
      asked[i] = morton_of(asked_packed[i]);
    }
    mixed = rising;
    for (size_t i = mixed.size(); i > 1; --i) std::swap(mixed[i - 1], mixed[random() % i]);
  }
  // Boxes of so many bricks an edge, each around a brick of the terrain.
  std::vector<MortonBox> boxes(uint32_t edge, size_t count) {
    std::vector<MortonBox> all(count);
    for (MortonBox& box : all) {
      const uint32_t at = packed[random() % packed.size()];
      const uint32_t middle[3] = {at & 2047u, at >> 11 & 1023u, at >> 21}, most[3] = {2047, 1023, 2047};
      for (uint32_t axis = 0; axis < 3; ++axis) {
        box.min[axis] = std::min(middle[axis] - std::min(middle[axis], edge / 2), most[axis] + 1 - edge);
        box.max[axis] = box.min[axis] + edge - 1;
      }
    }
    return all;
  }

  Words packed;                // in the order of the grid's keys
  Keys rising, mixed, asked;   // Morton codes
  Words values, asked_packed;  // values: ranks in `rising`
  std::mt19937 random;
};

template <class Key>
json facts_of(const Executor& executor, const OrderedIndex<Key>& index) {
  return {{"executor", to_string(executor.kind())},
          {"keys", index.size()},
          {"bytes", index.size_bytes()},
          {"bytes_per_key", double(index.size_bytes()) / double(index.size())},
          {"levels", index.view().shape.levels + 1}};
}

// Adds up what part(begin, end) returns, by all threads.
template <class Part>
uint64_t sum_of(size_t count, size_t grain, const Part& part) {
  std::atomic<uint64_t> sum{0};
  parallel_for(count, grain, [&](size_t begin, size_t end) { sum += part(begin, end); });
  return sum;
}

Result<void> measure(Executor& executor, const IndexRivals& device, uint64_t size, Rows& rows, json& indexes) {
  const bool host = executor.kind() == ExecutorKind::host;
  Workload work(size, host ? kHostQuestions : kDeviceQuestions);
  const uint64_t count = work.rising.size();
  QRY_TRY_ASSIGN(auto index, OrderedIndex<uint64_t>::create(executor));
  QRY_TRY_ASSIGN(const auto rising, Array<uint64_t>::of(executor, work.rising));
  QRY_TRY_ASSIGN(const auto mixed, Array<uint64_t>::of(executor, work.mixed));
  QRY_TRY_ASSIGN(const auto values, Array<uint32_t>::of(executor, work.values));
  QRY_TRY_ASSIGN(const auto sorted_keys, Array<uint64_t>::empty(executor, count));
  QRY_TRY_ASSIGN(const auto sorted_values, Array<uint32_t>::empty(executor, count));

  // Builds, one after the other, into memory that is ready; so are the sorts' arrays.
  QRY_TRY(index.reserve(count));
  QRY_TRY(rows.row("build, rising keys", "keys", count, count,
                   {{"index", [&]() -> Result<bool> {
                       QRY_TRY(index.build(rising.span(count), values.span(count), KeyOrder::rising));
                       return index.size() == count;
                     }}}));
  std::vector<Rival> sorts{{"index", [&]() -> Result<bool> {
                              QRY_TRY(index.build(mixed.span(count), values.span(count)));
                              return index.size() == count;
                            }}};
  if (host)
    sorts.push_back({"radix sort alone", [&]() -> Result<bool> {
                       QRY_TRY(radix_sort(mixed.data(), values.data(), count, sorted_keys.data(), sorted_values.data(),
                                          executor.parallelism()));
                       return sorted_keys.data()[count / 2] == work.rising[count / 2];
                     }});
  else if (device.sort64)
    sorts.push_back({"radix sort alone", [&]() -> Result<bool> {
                       QRY_TRY(
                           device.sort64(mixed.data(), values.data(), count, sorted_keys.data(), sorted_values.data()));
                       return true;
                     }});
  QRY_TRY(rows.row("build, keys in any order", "keys", count, count, sorts));

  QRY_TRY(index.build(rising.span(count), values.span(count), KeyOrder::rising));
  QRY_TRY(index.reserve(0));
  indexes.push_back(facts_of(executor, index));
  QRY_TRY_ASSIGN(auto grid, Grid::create(executor, {.capacity = count, .locality = Locality::rows}));
  QRY_TRY_ASSIGN(const auto packed, Array<uint32_t>::of(executor, work.packed));
  QRY_TRY(grid.insert(packed.span(count), values.span(count)));

  // Single look-ups.
  const size_t questions = work.asked.size();
  QRY_TRY_ASSIGN(const auto asked, Array<uint64_t>::of(executor, work.asked));
  QRY_TRY_ASSIGN(const auto asked_packed, Array<uint32_t>::of(executor, work.asked_packed));
  QRY_TRY_ASSIGN(const auto answers, Array<uint32_t>::empty(executor, questions));
  std::vector<Rival> finds{
      {"index",
       [&]() -> Result<bool> {
         QRY_TRY_ASSIGN(const auto report, index.find(asked.span(questions), answers.span(questions)));
         return report.present == questions;
       }},
      {"hash grid", [&]() -> Result<bool> {
         QRY_TRY_ASSIGN(const auto report, grid.find(asked_packed.span(questions), answers.span(questions)));
         return report.present == questions;
       }}};
  if (host)
    finds.push_back({"binary search", [&]() -> Result<bool> {
                       return sum_of(questions, kGrain, [&](size_t begin, size_t end) {
                                uint64_t hits = 0;
                                for (size_t i = begin; i < end; ++i) {
                                  const auto at =
                                      std::lower_bound(work.rising.begin(), work.rising.end(), work.asked[i]);
                                  answers.data()[i] = work.values[size_t(at - work.rising.begin())];
                                  hits += *at == work.asked[i];
                                }
                                return hits;
                              }) == questions;
                     }});
  else if (device.search64)
    finds.push_back(
        {"binary search", [&]() -> Result<bool> {
           QRY_TRY(device.search64(rising.data(), values.data(), count, asked.data(), questions, answers.data()));
           return true;
         }});
  QRY_TRY(rows.row("find, random keys", "keys", count, questions, finds));

  // Ranges of 32 keys.
  constexpr uint32_t kRange = 32;
  const size_t range_count = questions / kRange;
  std::vector<KeyRange<uint64_t>> ranges(range_count);
  for (auto& range : ranges) {
    const size_t first = work.random() % (count - kRange);
    range = {work.rising[first], work.rising[first + kRange - 1]};
  }
  QRY_TRY_ASSIGN(const auto of_ranges, Array<KeyRange<uint64_t>>::of(executor, ranges));
  QRY_TRY_ASSIGN(const auto starts, Array<uint64_t>::empty(executor, range_count + 1));
  QRY_TRY_ASSIGN(const auto listed, Array<uint64_t>::empty(executor, questions));
  std::vector<Rival> lists{{"index", [&]() -> Result<bool> {
                              QRY_TRY_ASSIGN(
                                  const uint64_t total,
                                  index.list_ranges(of_ranges.span(range_count), starts.span(range_count + 1),
                                                    listed.span(questions), answers.span(questions)));
                              return total == range_count * kRange;
                            }}};
  if (host)
    lists.push_back({"binary search", [&]() -> Result<bool> {
                       parallel_for(range_count, kGrain / kRange, [&](size_t begin, size_t end) {
                         for (size_t i = begin; i < end; ++i) {
                           const auto first = std::lower_bound(work.rising.begin(), work.rising.end(), ranges[i].first);
                           const auto last = std::upper_bound(first, work.rising.end(), ranges[i].last);
                           std::copy(first, last, listed.data() + i * kRange);
                           std::copy_n(work.values.begin() + (first - work.rising.begin()), last - first,
                                       answers.data() + i * kRange);
                         }
                       });
                       return listed.data()[questions - 1] == ranges.back().last;
                     }});
  QRY_TRY(rows.row("list, ranges of 32 keys", "ranges", count, range_count, lists));

  // Boxes: every brick in them, with its value.
  for (const uint32_t edge : {4u, 16u, 64u, 256u}) {
    const std::string what = fmt::format("boxes of {}^3 bricks", edge);
    if (!rows.wanted(what)) {
      rows.names_.push_back(what);
      continue;
    }
    const size_t box_count = (edge == 4 ? 4000 : edge == 16 ? 1000 : edge == 64 ? 100 : 4) * (host ? 1 : 10);
    const std::vector<MortonBox> boxes = work.boxes(edge, box_count);
    QRY_TRY_ASSIGN(const auto of_boxes, Array<MortonBox>::of(executor, boxes));
    QRY_TRY_ASSIGN(const uint64_t total, index.list_boxes(of_boxes.span(box_count), {}, {}, {}));
    QRY_TRY_ASSIGN(const auto in_boxes, Array<uint64_t>::empty(executor, total));
    QRY_TRY_ASSIGN(const auto of_values, Array<uint32_t>::empty(executor, total));
    std::vector<Rival> rivals{
        {"index", [&]() -> Result<bool> {
           QRY_TRY_ASSIGN(const uint64_t found,
                          index.list_boxes(of_boxes.span(box_count), {}, in_boxes.span(total), of_values.span(total)));
           return found == total;
         }}};
    // A list for each box, which a thread fills; a brick is a key and a value.
    std::vector<std::vector<uint64_t>> found(box_count);
    const auto total_of = [&found] {
      uint64_t sum = 0;
      for (const auto& each : found) sum += each.size();
      return sum;
    };
    const auto packed_of = [](uint32_t x, uint32_t y, uint32_t z) { return x | y << 11 | z << 21; };
    if (host) {
      rivals.push_back({"probing the grid", [&]() -> Result<bool> {
                          const GridView view = grid.view();
                          parallel_for(box_count, 1, [&](size_t begin, size_t end) {
                            for (size_t i = begin; i < end; ++i) {
                              found[i].clear();
                              for (uint32_t z = boxes[i].min[2]; z <= boxes[i].max[2]; ++z)
                                for (uint32_t y = boxes[i].min[1]; y <= boxes[i].max[1]; ++y)
                                  for (uint32_t x = boxes[i].min[0]; x <= boxes[i].max[0]; ++x) {
                                    const Found there = hashgrid::find(view, packed_of(x, y, z));
                                    if (there.hit) found[i].push_back(uint64_t{there.value} << 32 | packed_of(x, y, z));
                                  }
                            }
                          });
                          return total_of() == total;
                        }});
      rivals.push_back(
          {"a binary search a row", [&]() -> Result<bool> {
             parallel_for(box_count, 1, [&](size_t begin, size_t end) {
               for (size_t i = begin; i < end; ++i) {
                 found[i].clear();
                 for (uint32_t z = boxes[i].min[2]; z <= boxes[i].max[2]; ++z)
                   for (uint32_t y = boxes[i].min[1]; y <= boxes[i].max[1]; ++y) {
                     const uint32_t last = packed_of(boxes[i].max[0], y, z);
                     auto at =
                         std::lower_bound(work.packed.begin(), work.packed.end(), packed_of(boxes[i].min[0], y, z));
                     for (; at != work.packed.end() && *at <= last; ++at)
                       found[i].push_back(uint64_t{work.values[size_t(at - work.packed.begin())]} << 32 | *at);
                   }
               }
             });
             return total_of() == total;
           }});
    }
    QRY_TRY(rows.row(what, "bricks found", count, std::max<uint64_t>(total, 1), rivals));
  }

  // Batches: of 1,000 keys that are spread, next to bricks, and of 1,000 side by side behind all, which overflow a
  // leaf.
  for (const bool crowded : {false, true}) {
    constexpr size_t kBatch = 1000;
    std::vector<uint64_t> batch;
    for (uint64_t tried = 0; batch.size() < kBatch; ++tried) {
      // A small terrain has few free keys right behind its bricks: further ones, the longer it takes.
      const uint64_t key =
          crowded ? (uint64_t{1} << 40) + tried : work.rising[work.random() % count] + 1 + tried / (16 * kBatch);
      const auto place = std::lower_bound(batch.begin(), batch.end(), key);
      if ((place == batch.end() || *place != key) && !std::binary_search(work.rising.begin(), work.rising.end(), key))
        batch.insert(place, key);
    }
    QRY_TRY_ASSIGN(const auto keys, Array<uint64_t>::of(executor, batch));
    const auto rebuild = [&]() -> Result<void> {
      return index.build(rising.span(count), values.span(count), KeyOrder::rising);
    };
    QRY_TRY(rows.row(crowded ? "insert 1,000 keys side by side" : "insert 1,000 spread keys", "keys", count, kBatch,
                     {{"index",
                       [&]() -> Result<bool> {
                         QRY_TRY_ASSIGN(const auto report, index.insert(keys.span(kBatch), values.span(kBatch)));
                         return report.inserted == kBatch;
                       },
                       rebuild},
                      {"a build", [&]() -> Result<bool> {
                         QRY_TRY(rebuild());
                         return index.size() == count;
                       }}}));
  }
  return {};
}

// Keys of 32 bits, all over their range: builds and look-ups.
Result<void> measure_short(Executor& executor, const IndexRivals& device, uint64_t count, Rows& rows, json& indexes) {
  const bool host = executor.kind() == ExecutorKind::host;
  std::vector<uint32_t> mixed(count), values(count), asked(host ? kHostQuestions : kDeviceQuestions);
  for (size_t i = 0; i < count; ++i) {
    mixed[i] = uint32_t(i) * 0x9E3779B1u;  // odd: no two are the same
    if (mixed[i] == ~0u) mixed[i] = uint32_t(count) * 0x9E3779B1u;
    values[i] = uint32_t(i);
  }
  std::mt19937 random(uint32_t(count) + 1);
  for (uint32_t& key : asked) key = mixed[random() % count];
  QRY_TRY_ASSIGN(auto index, OrderedIndex<uint32_t>::create(executor));
  QRY_TRY_ASSIGN(const auto keys_in, Array<uint32_t>::of(executor, mixed));
  QRY_TRY_ASSIGN(const auto values_in, Array<uint32_t>::of(executor, values));
  QRY_TRY_ASSIGN(const auto sorted_keys, Array<uint32_t>::empty(executor, count));
  QRY_TRY_ASSIGN(const auto sorted_values, Array<uint32_t>::empty(executor, count));
  QRY_TRY_ASSIGN(const auto questions, Array<uint32_t>::of(executor, asked));
  QRY_TRY_ASSIGN(const auto answers, Array<uint32_t>::empty(executor, asked.size()));
  QRY_TRY(index.reserve(count));
  std::vector<Rival> builds{{"index", [&]() -> Result<bool> {
                               QRY_TRY(index.build(keys_in.span(count), values_in.span(count)));
                               return index.size() == count;
                             }}};
  if (device.sort32 && !host)
    builds.push_back(
        {"radix sort alone", [&]() -> Result<bool> {
           QRY_TRY(device.sort32(keys_in.data(), values_in.data(), count, sorted_keys.data(), sorted_values.data()));
           return true;
         }});
  QRY_TRY(rows.row("build, 32-bit keys in any order", "keys", count, count, builds));
  QRY_TRY(index.build(keys_in.span(count), values_in.span(count)));
  QRY_TRY(index.reserve(0));
  indexes.push_back(facts_of(executor, index));
  std::vector<Rival> finds{{"index", [&]() -> Result<bool> {
                              QRY_TRY_ASSIGN(const auto report,
                                             index.find(questions.span(asked.size()), answers.span(asked.size())));
                              return report.present == asked.size();
                            }}};
  if (device.search32 && !host)
    finds.push_back({"binary search",
                     [&]() -> Result<bool> {
                       QRY_TRY(device.search32(sorted_keys.data(), sorted_values.data(), count, questions.data(),
                                               asked.size(), answers.data()));
                       return true;
                     },
                     [&]() -> Result<void> {
                       return device.sort32(keys_in.data(), values_in.data(), count, sorted_keys.data(),
                                            sorted_values.data());
                     }});
  return rows.row("find, random 32-bit keys", "keys", count, asked.size(), finds);
}

}  // namespace
}  // namespace index_rows

Result<nlohmann::json> bench_index(const IndexBenchOptions& options) {
  using nlohmann::json;
  json rows = json::array(), indexes = json::array();
  std::string without;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<hashgrid::Executor>> executors;
  if (auto cuda = hashgrid::make_cuda_executor()) executors.push_back(std::move(*cuda));
  else without = cuda.error().message;
  executors.push_back(hashgrid::make_host_executor());
  for (const auto& executor : executors) {
    Rows measured(options, hashgrid::to_string(executor->kind()));
    for (const uint64_t size : options.sizes) {
      QRY_TRY(index_rows::measure(*executor, options.rivals, size, measured, indexes));
      QRY_TRY(index_rows::measure_short(*executor, options.rivals, size, measured, indexes));
    }
    names = measured.names_;
    rows.insert(rows.end(), measured.rows_.begin(), measured.rows_.end());
  }
  if (rows.empty()) return no_such_row(options.only, names);
  return json{{"rows", rows}, {"indexes", indexes}, {"without", without}};
}

std::string index_table(const nlohmann::json& result) {
  using nlohmann::json;
  std::string text;
  if (const std::string why = result["without"]; !why.empty()) text += "Not measured on CUDA: " + why + "\n";
  for (const json& index : result["indexes"])
    text += fmt::format("{}: {} keys, {} levels, {:.1f} bytes a key\n", index["executor"].get<std::string>(),
                        index["keys"].get<uint64_t>(), index["levels"].get<uint32_t>(),
                        index["bytes_per_key"].get<double>());
  text += "\n10^6 a second; beside it how many times the rate of each rival that is\n\n";
  for (const json& row : result["rows"]) {
    text += fmt::format("{:<5} {:>9} keys  {:<32} {:>9.3f} {:<13}", row["executor"].get<std::string>(),
                        row["keys"].get<uint64_t>(), row["what"].get<std::string>(), row["million_per_s"].get<double>(),
                        row["unit"].get<std::string>());
    text += ratios_of(row);
  }
  return text;
}

}  // namespace quarry::bench
