// SPDX-License-Identifier: Apache-2.0
// backends.cpp - the executors of this machine and build, a recount of tables from their raw words, and colliding keys.
#include "tests/hashgrid/backends.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>

#include "tests/test_data.hpp"

namespace quarry::hashgrid::test {

namespace {
Locality current_locality = Locality::plain;

void run_with(Locality locality, Executor& executor, const std::function<void(Executor&)>& body) {
  INFO((locality == Locality::rows ? "rows" : "plain keys"));
  current_locality = locality;
  struct Restore {
    ~Restore() { current_locality = Locality::plain; }
  } restore;
  body(executor);
}
}  // namespace

Locality test_locality() { return current_locality; }

void on_each_executor(const std::function<void(Executor&)>& body) {
  // $QUARRY_TEST_EXECUTOR=cuda leaves the host ones out, for runs under compute-sanitizer.
  const char* only = std::getenv("QUARRY_TEST_EXECUTOR");
  const bool host_too = only == nullptr || std::string_view(only) != "cuda";
  for (const uint32_t threads : {1u, 2u, 8u}) {
    if (!host_too) break;
#if defined(__SANITIZE_THREAD__)
    if (threads == 1) continue;  // a single thread has no races, and the other sanitizers check it
#elif defined(__SANITIZE_ADDRESS__)
    if (threads == 8) continue;  // many threads are ThreadSanitizer's, and the release build's
#endif
    INFO("host executor, " << threads << " threads");
    const auto executor = make_host_executor(threads);
    run_with(Locality::plain, *executor, body);
    if (threads == 2) run_with(Locality::rows, *executor, body);
  }
  static const Result<std::unique_ptr<Executor>> cuda = make_cuda_executor();
  if (!cuda) {
    REQUIRE(host_too);  // CUDA alone was requested: then its absence is a failure
    quarry::test::skip("CUDA executor: " + cuda.error().message);
    return;
  }
  INFO("CUDA executor");
  for (const Locality locality : {Locality::plain, Locality::rows}) run_with(locality, **cuda, body);
}

Recount recount(const std::vector<uint64_t>& words, const GridView& view) {
  Recount count;
  const uint32_t page_count = view.page_count;
  KeySet seen;
  std::vector<bool> passed(words.size() / 4);
  const auto blame = [&](const std::string& what) {
    if (count.fault.empty()) count.fault = what;
  };
  for (uint32_t page = 0; page < page_count; ++page) {
    const uint64_t* w = words.data() + size_t{page} * 4096;
    const auto state = [&](uint32_t sector) { return uint32_t(w[sector / 32] >> (sector % 32 * 2)) & 3u; };
    uint64_t in_page = 0;
    for (uint32_t index = 32; index < 4096; ++index) {
      const uint32_t key = uint32_t(w[index]);
      if (key == 0xFFFFFFFFu) {
        count.freed += w[index] >> 32 != 0xFFFFFFFFu;
        continue;
      }
      ++in_page;
      count.keys.push_back(qry_key_of_stored(key, view.locality));
      count.values.push_back(uint32_t(w[index] >> 32));
      const auto blame_key = [&](const char* what) {
        blame(what + (" (key " + std::to_string(key) + ", page " + std::to_string(page) + ", word " +
                      std::to_string(index) + ")"));
      };
      if (w[index] >> 32 == 0xFFFFFFFFu) blame_key("a key with the reserved value");
      if (!seen.insert(key)) blame_key("a key stands in two slots");
      const QryProbeSequence probes = qry_probe_sequence(key, page_count);
      // The page of the key's buckets may differ from the page whose part of the stash holds it.
      const uint64_t* own = words.data() + size_t{probes.page} * 4096;
      const uint32_t bits = uint32_t(own[probes.home_sector / 32] >> (probes.home_sector % 32 * 2)) & 3u;
      const uint32_t sector = index / 4;
      if (sector < 1000 && probes.page != page) blame_key("a key in a page that is not its own");
      if (sector == probes.home_sector) continue;
      passed[uint64_t{probes.page} * 1024 + probes.home_sector] = true;
      if ((bits & 1u) == 0) blame_key("a key behind its home bucket, whose spilled bit is not set");
      if (sector == probes.second_sector) continue;
      if (sector < 1000) blame_key("a key in a bucket that is neither of its two");
      if ((bits & 2u) == 0) blame_key("a key in the stash, unknown to its home bucket");
      const uint32_t groups = std::max(1u, page_count / 64), group = std::min(groups - 1, probes.page / 64);
      const QryStashGroup pages{group * 64, group == groups - 1 ? page_count - group * 64 : 64};
      for (uint32_t n = 0;; ++n) {
        if (n == 6) {
          blame_key("a key in a sector of the stash that is none of its six");
          break;
        }
        const uint32_t may_be_in = qry_stash_sector(probes, pages, n);
        if (may_be_in == page * 1024 + sector) break;
        for (uint32_t i = 0; i < 4; ++i)
          if (words[size_t{may_be_in} * 4 + i] == ~uint64_t{0})
            blame_key("a never-used slot before a key in the stash");
      }
    }
    for (uint32_t sector = 8; sector < 1024; ++sector) {
      uint64_t here = 0;
      for (uint32_t i = 0; i < 4; ++i) here += uint32_t(w[sector * 4 + i]) != 0xFFFFFFFFu;
      if (sector >= 1000) {
        count.overflow_live += here;
        continue;
      }
      ++count.bucket_fill[here];
      count.spilled_buckets += state(sector) & 1u;
      for (uint32_t i = 0; i < 4; ++i)
        if (state(sector) != 0 && w[sector * 4 + i] == ~uint64_t{0})
          blame("a never-used slot in bucket " + std::to_string(sector) + " of page " + std::to_string(page) +
                ", which keys went past");
    }
    count.fullest_page_live = std::max(count.fullest_page_live, in_page);
  }
  count.passed = uint64_t(std::count(passed.begin(), passed.end(), true));
  return count;
}

Recount recount(const std::vector<uint64_t>& words, const CompactView& view) {
  Recount count;
  KeySet seen;
  std::vector<bool> passed(view.page_count * size_t{1024}), full(passed.size());
  const auto blame = [&](const std::string& what, uint64_t sector) {
    if (count.fault.empty()) count.fault = what + " (sector " + std::to_string(sector) + ")";
  };
  const auto word = [&](uint64_t sector, uint32_t w) { return uint32_t(words[sector * 4 + w / 2] >> (w % 2 * 32)); };
  const auto tag_at = [&](uint64_t sector, uint32_t fields, uint32_t slot) {
    const uint32_t bits = fields == 1 ? 31 : fields == 2 ? 15 : 10;
    return word(sector, slot / fields) >> (slot % fields * bits) & ((1u << bits) - 1);
  };
  const auto is_full = [&](uint64_t sector, uint32_t fields) {
    const uint32_t bits = fields == 1 ? 31 : fields == 2 ? 15 : 10;
    for (uint32_t slot = 0; slot < fields + 3; ++slot)
      if (tag_at(sector, fields, slot) == (1u << bits) - 1) return false;
    return true;
  };
  // The sectors from a key's home up to the one at `distance` are full and have their overflow bit set.
  const auto pass = [&](uint64_t first_sector, uint64_t home, uint32_t distance) {
    for (uint32_t d = 0; d < distance; ++d) {
      const uint64_t sector = first_sector + home / 1024 * 1024 + (home + d) % 1024;
      passed[sector] = true;
      if (!full[sector]) blame("a sector with room, which a key went past", sector);
      if (word(sector, 0) >> 31 == 0) blame("a sector that a key went past without a mark", sector);
    }
  };
  const auto fields_of = [&](uint32_t page) {
    return page >= view.layout.table.pages || view.page_count < 1024 ? 1u : view.page_count < 12288 ? 2u : 3u;
  };
  for (uint64_t sector = 0; sector < full.size(); ++sector)
    full[sector] = is_full(sector, fields_of(uint32_t(sector / 1024)));
  for (uint32_t page = 0; page < view.page_count; ++page) {
    const bool stashed = page >= view.layout.table.pages;
    const uint32_t fields = fields_of(page), tag_words = 5 - fields;
    const uint64_t first_page = stashed ? view.layout.table.pages : 0,
                   sectors = (stashed ? view.layout.stash.pages : view.layout.table.pages) * 1024ull;
    const uint64_t remainders = ((uint64_t{1} << 32) + sectors - 1) / sectors;
    const uint32_t bits = fields == 1 ? 31 : fields == 2 ? 15 : 10;
    uint64_t in_page = 0;
    for (uint64_t sector = page * 1024ull; sector < (page + 1) * 1024ull; ++sector) {
      uint32_t here = 0;
      bool room = false;
      count.spilled_buckets += word(sector, 0) >> 31;
      for (uint32_t slot = 0; slot < fields + 3; ++slot) {
        const uint32_t tag = tag_at(sector, fields, slot), value = word(sector, tag_words + slot);
        if (tag == (1u << bits) - 1) {
          room = true;
          if (value != 0xFFFFFFFFu) blame("a value without a tag", sector);
          continue;
        }
        if (room) blame("a tag behind an empty one", sector);
        count.freed += value == 0xFFFFFFFFu;
        // The key, by plain division: the mixed keys of the home sector, counted from its first one.
        const uint64_t local = sector - first_page * 1024, distance = tag / remainders, remainder = tag % remainders;
        const uint64_t home = local / 1024 * 1024 + (local + 1024 - distance % 1024) % 1024;
        const uint64_t first = ((home << 32) + sectors - 1) / sectors;
        uint64_t mixed = first + remainder;
        const auto remainder_of = [&](uint64_t m) { return ((m * sectors & 0xFFFFFFFFu) * remainders) >> 32; };
        if (mixed > 0xFFFFFFFFu || mixed * sectors >> 32 != home || remainder_of(mixed) != remainder) --mixed;
        if (mixed * sectors >> 32 != home || remainder_of(mixed) != remainder)
          blame("a tag that no key of its home has", sector);
        pass(first_page * 1024, home, uint32_t(distance));
        uint32_t table_mixed = uint32_t(mixed);
        if (stashed) {  // then every sector of the table that it may be in was full
          table_mixed = qry_unmix(table_mixed);
          const uint64_t of_table = view.layout.table.pages * 1024ull,
                         of_remainders = ((uint64_t{1} << 32) + of_table - 1) / of_table;
          const uint64_t product = table_mixed * of_table, rest = ((product & 0xFFFFFFFFu) * of_remainders) >> 32;
          const uint32_t table_fields = view.page_count < 12288 ? 2 : 3, reach = table_fields == 2 ? 16 : 6,
                         no_tag = table_fields == 2 ? 32767 : 1023;
          uint32_t may = 0;
          while (may < reach && rest + may * of_remainders < no_tag) ++may;
          pass(0, product >> 32, may);
        }
        if (value == 0xFFFFFFFFu) continue;
        ++here;
        const uint32_t key = qry_unmix(table_mixed);
        count.keys.push_back(key);
        count.values.push_back(value);
        if (!seen.insert(key)) blame("key " + std::to_string(key) + " stands in two slots", sector);
      }
      in_page += here;
      ++count.bucket_fill[std::min(here, 4u)];
    }
    if (stashed) count.overflow_live += in_page;
    count.fullest_page_live = std::max(count.fullest_page_live, in_page);
  }
  count.passed = uint64_t(std::count(passed.begin(), passed.end(), true));
  return count;
}

// Keys by their position in the table's order: `first` and the following, as long as they are wanted.
template <class On, class IsWanted>
std::vector<uint32_t> keys_from(const On& on, uint64_t first, uint64_t last, size_t count, const IsWanted& is_wanted) {
  std::vector<uint32_t> keys;
  for (uint64_t position = first; keys.size() < count && position < last; ++position)
    if (on.key_at(uint32_t(position)) != kQryReservedKey && is_wanted(uint32_t(position)))
      keys.push_back(on.key_at(uint32_t(position)));
  REQUIRE(keys.size() == count);
  return keys;
}
std::vector<uint32_t> keys_of_bucket(const On<GridView>& on, uint32_t page, uint32_t bucket, uint32_t page_count,
                                     size_t count) {
  // The stored keys of a page are a range, and so are those of a line of four buckets in it: step finely through the
  // range and keep what fits.
  const uint64_t first = ((uint64_t{page} << 32) + page_count - 1) / page_count,
                 size = (uint64_t{1} << 32) / page_count;
  return keys_from(on, (first + size * (bucket / 4) / 248) & ~uint64_t{7}, first + size, count, [&](uint32_t stored) {
    const QryProbeSequence probes = qry_probe_sequence(stored, page_count);
    return probes.page == page && probes.home_sector == kQryStateSectors + bucket;
  });
}
std::vector<uint32_t> keys_of_bucket(const On<CompactView>& on, uint32_t page, uint32_t bucket, uint32_t page_count,
                                     size_t count) {
  const uint64_t sectors = qry_compact(page_count).table.pages * 1024ull, home = page * 1024ull + bucket;
  return keys_from(on, ((home << 32) + sectors - 1) / sectors, uint64_t{1} << 32, count,
                   [&](uint32_t mixed) { return mixed * sectors >> 32 == home; });
}

std::vector<uint32_t> some_keys(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  KeySet seen;
  std::vector<uint32_t> keys;
  while (keys.size() < count) {
    const uint32_t key = uint32_t(random());
    if (key != kQryReservedKey && seen.insert(key)) keys.push_back(key);
  }
  return keys;
}

std::vector<uint32_t> values_of(const std::vector<uint32_t>& keys, uint32_t tag) {
  std::vector<uint32_t> values;
  for (const uint32_t key : keys) values.push_back(value_of(key, tag));
  return values;
}

}  // namespace quarry::hashgrid::test
