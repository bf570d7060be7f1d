// SPDX-License-Identifier: Apache-2.0
// compact_test.cpp - the specifics of the compact layout: its arithmetic, the boundaries between its formats, the
// stash, slots that stay reserved. The cases of the other files, which run for both layouts, show that it keeps the
// contract.
#include <algorithm>
#include <random>

#include "hashgrid/compact/passes.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::compact_test {
namespace {

template <class Format>
void check_comparison() {
  std::mt19937 random(3);
  for (int round = 0; round < 300000; ++round) {
    uint32_t tag[3] = {uint32_t(random()) & Format::kNoTag, 0, 0};
    // Equal, almost equal, and unrelated tags, in any order.
    tag[1] = tag[0] ^ (round % 3 == 0 ? 0 : 1u << random() % Format::kBits);
    tag[2] = round % 2 == 0 ? tag[1] ^ 1u : uint32_t(random()) & Format::kNoTag;
    uint32_t word = round % 5 == 0 ? kQryCompactOverflow : 0;
    for (uint32_t i = 0; i < Format::kFields; ++i) word |= tag[i] << i * Format::kBits;
    for (const uint32_t wanted : {tag[0], tag[1], tag[2], uint32_t(Format::kNoTag)}) {
      uint32_t expected = 0;
      for (uint32_t i = 0; i < Format::kFields; ++i)
        expected |= uint32_t{tag[i] == wanted} << (i * Format::kBits + Format::kBits - 1);
      if (Format::matches(word, wanted) != expected) FAIL("word " << word << ", wanted " << wanted);
    }
  }
}

TEST_CASE("compact: word-parallel comparison finds exactly the equal tags, in every format", "[one-caller]") {
  check_comparison<detail::CompactFormat<1>>();
  check_comparison<detail::CompactFormat<2>>();
  check_comparison<detail::CompactFormat<3>>();
}

TEST_CASE("compact: sector, tag and distance tell every key from every other, and give it back", "[one-caller]") {
  for (const uint32_t pages :
       {1u, 2u, 3u, 1000u, 1023u, 1024u, 1025u, 12287u, 12288u, 16384u, 32768u, 100003u, 1u << 21}) {
    INFO(pages << " pages");
    const QryCompact layout = qry_compact(pages);
    REQUIRE(layout.table.pages + layout.stash.pages == pages);
    REQUIRE(layout.stash.first_page == layout.table.pages);
    for (const QryCompactPart& part : {layout.table, layout.stash}) {
      if (part.pages == 0) continue;
      // Every tag fits: at two sectors for every key, at three for nearly all.
      REQUIRE(uint64_t{part.remainders} * 2 < qry_compact_no_tag(part.fields));
      REQUIRE(detail::compact_distances(part.remainders / 2, part) >= 3);
      const detail::CompactInverse inverse(part);
      const uint64_t sectors = part.pages * 1024ull;
      size_t wrong = 0;
      for (const uint64_t sector : {uint64_t{0}, uint64_t{1}, sectors / 3, sectors / 2 + 7, sectors - 2, sectors - 1}) {
        const uint64_t first = ((sector << 32) + sectors - 1) / sectors,
                       end = std::min(uint64_t{1} << 32, (((sector + 1) << 32) + sectors - 1) / sectors);
        uint64_t last_tag = ~uint64_t{0};
        for (uint64_t mixed = first; mixed<end; mixed += end - mixed> 5000 ? 97 : 1) {
          const QryCompactPlace place = qry_compact_place(uint32_t(mixed), part);
          wrong += place.home != sector || place.tag >= part.remainders || place.tag == last_tag;
          last_tag = place.tag;
          wrong += inverse.mixed(place, part) != mixed;
          for (uint32_t d = 0; d < detail::compact_distances(place.tag, part); d += d < 3 ? 1 : 100) {
            const uint32_t tag = place.tag + d * part.remainders;
            const detail::CompactHome back = inverse.home_of_entry(qry_compact_sector(place.home, d), tag, part);
            wrong += tag >= qry_compact_no_tag(part.fields) || back.place.home != place.home ||
                     back.place.tag != place.tag || back.distance != d;
          }
        }
      }
      REQUIRE(wrong == 0);
    }
  }
}

std::vector<uint32_t> keys_of_sector(uint32_t page_count, uint32_t sector, size_t most) {
  const uint64_t sectors = qry_compact(page_count).table.pages * 1024ull;
  std::vector<uint32_t> keys;
  for (uint64_t mixed = ((uint64_t{sector} << 32) + sectors - 1) / sectors;
       mixed * sectors >> 32 == sector && keys.size() < most; ++mixed)
    if (qry_unmix(uint32_t(mixed)) != kQryReservedKey) keys.push_back(qry_unmix(uint32_t(mixed)));
  return keys;
}

// Checks a grid of any format: it holds the model's pairs, by find, by enumeration and by the count.
void require_holds(Executor& executor, Grid& grid, const std::vector<uint32_t>& keys,
                   const std::vector<uint32_t>& values) {
  const Array<uint32_t> k(executor, keys), out(executor, keys.size());
  REQUIRE(grid.find(k.span(), out.span())->present == keys.size());
  REQUIRE(out.get() == values);
  REQUIRE(grid.size() == keys.size());
  const auto pairs = grid.enumerate(true);
  REQUIRE(pairs.has_value());
  std::vector<uint32_t> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  REQUIRE(pairs->keys == sorted);
  REQUIRE(grid.stats()->live == keys.size());
}

TEST_CASE("compact: growth across both seams between formats keeps every pair, stash and erased keys included",
          "[quick][one-caller]") {
  const auto run = [](Executor& executor) {
    auto grid = Grid::create(executor, {.layout = Layout::compact});
    REQUIRE(grid.has_value());
    REQUIRE(grid->layout() == Layout::compact);
    REQUIRE(grid->view().words == nullptr);
    std::vector<uint32_t> keys = some_keys(12, 60000);
    // Keys that crowd into sectors of the largest table: there they fill reach and stash, one of them past a page's
    // end.
    for (const uint32_t sector : {1022u, 5000000u, 12000000u})
      for (const uint32_t key : keys_of_sector(12288, sector, 340)) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::shuffle(keys.begin(), keys.end(), std::mt19937(8));
    const std::vector<uint32_t> values = values_of(keys);
    const Array<uint32_t> k(executor, keys);
    Array<uint32_t> v(executor, values);
    const uint64_t slots_per_page = 4096;
    uint64_t stashed = 0;
    for (const uint32_t pages : {0u, 1023u, 1024u, 12287u, 12288u}) {
      INFO(pages << " pages");
      const std::span<const uint32_t> last = k.span().last(20000);
      REQUIRE(grid->reserve(uint64_t(double(pages) * slots_per_page * 0.8)).has_value());
      if (pages != 0) REQUIRE(grid->page_count() == pages);
      REQUIRE(grid->insert(k.span(), v.span()).has_value());
      require_holds(executor, *grid, keys, values);
      if (pages == 1024) REQUIRE(fault_in(executor, *grid) == "");
      stashed = grid->stats()->overflow_live;
      // Erased keys stay absent through the next growth, and can be inserted again after it.
      REQUIRE(grid->erase(last)->erased == last.size());
      REQUIRE(grid->stats()->freed >= last.size());
      if (pages % 2 == 0) {
        REQUIRE(grid->sweep().has_value());
        REQUIRE(grid->stats()->freed == 0);
      }
      REQUIRE(grid->find(last, v.span().last(20000))->present == 0);
      v.set(values);
    }
    REQUIRE(stashed > 500);
    REQUIRE(grid->stats()->depth_max <= 8);
  };
  const std::unique_ptr<Executor> host = make_host_executor(4);
  run(*host);
  if (auto cuda = make_cuda_executor()) run(**cuda);
}

TEST_CASE("compact: an executor's table is read alike by it and by the host's functions for one key", "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const uint32_t pages : {3u, 1030u}) {
      Table table(executor, pages);
      std::vector<uint32_t> keys = some_keys(pages, 10000);
      for (uint32_t at = 1u << 30; at < (1u << 30) + 150; ++at) keys.push_back(executor.key_at(at));
      table.insert(keys, values_of(keys));
      table.next_phase();
      table.erase({keys.begin(), keys.begin() + 2000});
      for (const uint32_t key : some_keys(77, 5000)) keys.push_back(key);
      keys.push_back(kQryReservedKey);
      const std::vector<uint64_t> words = table.words();
      auto view = table.view();
      view.words = reinterpret_cast<decltype(view.words)>(const_cast<uint64_t*>(words.data()));
      std::vector<uint8_t> depths;
      const std::vector<uint32_t> found = table.find(keys, &depths);
      size_t unlike = 0;
      for (size_t i = 0; i < keys.size(); ++i) {
        const Found here = find(view, keys[i]);
        unlike += here.value != found[i] || here.sectors != depths[i] || here.hit != (found[i] != kQryReservedValue);
      }
      REQUIRE(unlike == 0);
    }
  });
}

TEST_CASE("compact: keys beyond their reach stand in the stash, and a sweep brings them back when there is room",
          "[quick][one-caller]") {
  on_each_executor([](Executor& executor) {
    constexpr uint32_t kPages = 1100;  // five entries a sector, eight pages of stash
    Table<CompactView> table(On<CompactView>(executor), kPages);
    REQUIRE(table.view().layout.stash.pages == 8);
    const std::vector<uint32_t> keys = keys_of_sector(kPages, 1023 + 5 * 1024, 300);
    REQUIRE(table.insert(keys, values_of(keys)).inserted == keys.size());
    std::vector<uint8_t> depths;
    REQUIRE(table.find(keys, &depths) == values_of(keys));
    const uint64_t stashed = executor.compact().stats(table.view())->overflow_live;
    REQUIRE(stashed >= 300 - 16 * 5);
    REQUIRE(*std::max_element(depths.begin(), depths.end()) > 7);
    REQUIRE(table.fault() == "");
    const auto stats = executor.compact().stats(table.view());
    std::array<uint64_t, kDepthBins> histogram{};
    for (const uint8_t depth : depths) ++histogram[depth - 1u];
    REQUIRE(stats->depth_histogram == histogram);

    std::vector<uint32_t> gone, left;
    for (size_t i = 0; i < keys.size(); ++i) (i % 3 == 0 ? left : gone).push_back(keys[i]);
    REQUIRE(table.erase(gone).erased == gone.size());
    REQUIRE(executor.compact().stats(table.view())->overflow_live > 30);
    REQUIRE(executor.compact().sweep(table.view()).has_value());
    REQUIRE(table.find(left) == values_of(left));
    REQUIRE(table.fault() == "");
    const Recount after = table.count();
    REQUIRE(after.keys.size() == left.size());
    REQUIRE(after.spilled_buckets == after.passed);
    REQUIRE(after.freed == 0);
    REQUIRE(after.overflow_live < stashed / 3);
    REQUIRE(table.insert(gone, values_of(gone, 1)).inserted == gone.size());
    REQUIRE(table.find(gone) == values_of(gone, 1));
    REQUIRE(table.find(left) == values_of(left));
  });
}

TEST_CASE("compact: an erased key's slot stays its own until a sweep, which insert_refused does by itself",
          "[quick][one-caller]") {
  on_each_executor([](Executor& executor) {
    Table<CompactView> table(On<CompactView>(executor), 1);
    const std::vector<uint32_t> all = some_keys(9, 30000);
    std::vector<Outcome> outcomes;
    REQUIRE(table.insert(all, values_of(all), &outcomes).inserted == table.slots());
    std::vector<uint32_t> in, out;
    for (size_t i = 0; i < all.size(); ++i) (outcomes[i] == Outcome::inserted ? in : out).push_back(all[i]);
    const std::vector<uint32_t> gone(in.begin(), in.begin() + 1000), kept(in.begin() + 1000, in.end());
    REQUIRE(table.erase(gone).erased == gone.size());
    REQUIRE(table.insert(out, values_of(out)).full == out.size());
    REQUIRE(table.insert(gone, values_of(gone, 4)).inserted == gone.size());
    REQUIRE(table.erase(gone).erased == gone.size());
    REQUIRE(executor.compact().stats(table.view())->freed == gone.size());

    const Array<uint32_t> k(executor, out), v(executor, values_of(out));
    const Array<Outcome> o(executor, std::vector<Outcome>(out.size(), Outcome::full));
    const auto late = executor.compact().insert_refused(table.view(), k.data(), v.data(), out.size(), o.data());
    REQUIRE(late.has_value());
    REQUIRE(late->inserted == gone.size());
    REQUIRE(late->full == out.size() - gone.size());
    const std::vector<Outcome> each = o.get();
    REQUIRE(std::count(each.begin(), each.end(), Outcome::inserted) == std::ptrdiff_t(gone.size()));
    REQUIRE(table.find(kept) == values_of(kept));
    REQUIRE(table.fault() == "");
  });
}

TEST_CASE("compact: a grid whose keys change all the time sweeps instead of growing", "[quick]") {
  on_each_executor([](Executor& executor) {
    auto grid = Grid::create(executor, {.capacity = 20000, .layout = Layout::compact});
    REQUIRE(grid.has_value());
    const uint32_t pages = grid->page_count();
    const std::vector<uint32_t> keys = some_keys(14, 120000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys));
    for (size_t at = 0; at < keys.size(); at += 1000) {
      REQUIRE(grid->insert(k.span().subspan(at, 1000), v.span().subspan(at, 1000))->inserted == 1000);
      if (at >= 15000) REQUIRE(grid->erase(k.span().subspan(at - 15000, 1000))->erased == 1000);
    }
    REQUIRE(grid->page_count() == pages);
    REQUIRE(grid->size() == 15000);
    REQUIRE(grid->stats()->live == 15000);
    REQUIRE(fault_in(executor, *grid) == "");
  });
}

}  // namespace
}  // namespace quarry::hashgrid::test::compact_test
