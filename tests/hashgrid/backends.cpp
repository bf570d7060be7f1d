#include "tests/hashgrid/backends.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>
#include <unordered_set>

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
    INFO("host executor, " << threads << " threads");
    const auto executor = make_host_executor(threads);
    run_with(Locality::plain, *executor, body);
    if (threads == 2) run_with(Locality::rows, *executor, body);
  }
  static const Result<std::unique_ptr<Executor>> cuda = make_cuda_executor();
  if (!cuda) {
    REQUIRE(host_too);  // asked for CUDA alone: then its absence is a failure
    quarry::test::skip("CUDA executor: " + cuda.error().message);
    return;
  }
  INFO("CUDA executor");
  for (const Locality locality : {Locality::plain, Locality::rows}) run_with(locality, **cuda, body);
}

BulkReport Table::insert(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values, std::vector<Outcome>* outcomes) {
  const Array<uint32_t> k(executor_, keys), v(executor_, values);
  const Array<Outcome> o(executor_, keys.size());
  const auto report = executor_.insert(view_, k.data(), v.data(), keys.size(), o.data());
  REQUIRE(report.has_value());
  if (outcomes != nullptr) *outcomes = o.get();
  return *report;
}
BulkReport Table::assign(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values, std::vector<Outcome>* outcomes) {
  const Array<uint32_t> k(executor_, keys), v(executor_, values);
  const Array<Outcome> o(executor_, keys.size());
  const auto report = executor_.assign(view_, k.data(), v.data(), keys.size(), o.data());
  REQUIRE(report.has_value());
  if (outcomes != nullptr) *outcomes = o.get();
  return *report;
}
BulkReport Table::find_or_insert(const std::vector<uint32_t>& keys, std::vector<uint32_t>& values, std::vector<Outcome>* outcomes) {
  const Array<uint32_t> k(executor_, keys), v(executor_, values);
  const Array<Outcome> o(executor_, keys.size());
  const auto report = executor_.find_or_insert(view_, k.data(), v.data(), keys.size(), o.data());
  REQUIRE(report.has_value());
  values = v.get();
  if (outcomes != nullptr) *outcomes = o.get();
  return *report;
}
BulkReport Table::erase(const std::vector<uint32_t>& keys, std::vector<Outcome>* outcomes, std::vector<uint32_t>* old) {
  const Array<uint32_t> k(executor_, keys), v(executor_, keys.size());
  const Array<Outcome> o(executor_, keys.size());
  const auto report = executor_.erase(view_, k.data(), keys.size(), v.data(), o.data());
  REQUIRE(report.has_value());
  if (outcomes != nullptr) *outcomes = o.get();
  if (old != nullptr) *old = v.get();
  return *report;
}
std::vector<uint32_t> Table::find(const std::vector<uint32_t>& keys, std::vector<uint8_t>* depths) {
  const Array<uint32_t> k(executor_, keys), v(executor_, keys.size());
  const Array<uint8_t> d(executor_, keys.size());
  REQUIRE(executor_.find(view_, k.data(), keys.size(), v.data(), d.data()).has_value());
  if (depths != nullptr) *depths = d.get();
  return v.get();
}

std::string fault_in(const std::vector<uint64_t>& words, uint32_t page_count) {
  std::unordered_set<uint32_t> seen;
  for (uint32_t page = 0; page < page_count; ++page) {
    const uint64_t* w = words.data() + size_t{page} * 4096;
    const auto state = [&](uint32_t sector) { return uint32_t(w[sector / 32] >> (sector % 32 * 2)) & 3u; };
    for (uint32_t index = 32; index < 4096; ++index) {
      const uint32_t key = uint32_t(w[index]);
      if (key == 0xFFFFFFFFu) continue;
      const std::string where = " (key " + std::to_string(key) + ", page " + std::to_string(page) + ", word " + std::to_string(index) + ")";
      if (w[index] >> 32 == 0xFFFFFFFFu) return "a key with the reserved value" + where;
      if (!seen.insert(key).second) return "a key stands in two slots" + where;
      const QryPlace place = qry_place_stored(key, page_count);
      // The page of the key's buckets is another one, perhaps, than the page whose part of the stash it stands in.
      const uint64_t* own = words.data() + size_t{place.page} * 4096;
      const uint32_t bits = uint32_t(own[place.home_sector / 32] >> (place.home_sector % 32 * 2)) & 3u;
      const uint32_t sector = index / 4;
      if (sector < 1000 && place.page != page) return "a key in a page that is not its own" + where;
      if (sector == place.home_sector) continue;
      if ((bits & 1u) == 0) return "a key behind its home bucket, whose spilled bit is not set" + where;
      if (sector == place.next_sector) continue;
      if (sector < 1000) return "a key in a bucket that is neither of its two" + where;
      if ((bits & 2u) == 0) return "a key in the stash, unknown to its home bucket" + where;
      const uint32_t groups = std::max(1u, page_count / 64), group = std::min(groups - 1, place.page / 64);
      const QryGroup pages{group * 64, group == groups - 1 ? page_count - group * 64 : 64};
      for (uint32_t n = 0;; ++n) {
        if (n == 6) return "a key in a sector of the stash that is none of its six" + where;
        const uint32_t may_be_in = qry_stash_sector(place, pages, n);
        if (may_be_in == page * 1024 + sector) break;
        for (uint32_t i = 0; i < 4; ++i)
          if (words[size_t{may_be_in} * 4 + i] == ~uint64_t{0}) return "a never-used slot before a key in the stash" + where;
      }
    }
    for (uint32_t sector = 8; sector < 1000; ++sector)
      for (uint32_t i = 0; i < 4; ++i)
        if (state(sector) != 0 && w[sector * 4 + i] == ~uint64_t{0})
          return "a never-used slot in bucket " + std::to_string(sector) + " of page " + std::to_string(page) + ", which keys went past";
  }
  return "";
}

std::vector<uint32_t> keys_of_bucket(uint32_t page, uint32_t bucket, uint32_t page_count, size_t count) {
  std::vector<uint32_t> keys;
  // The stored keys of a page are a range, and in it those of a line of two buckets: step through the range finely, keep what fits.
  const uint64_t first = ((uint64_t{page} << 32) + page_count - 1) / page_count, size = (uint64_t{1} << 32) / page_count;
  for (uint64_t stored = (first + size * (bucket / 4) / 248) & ~uint64_t{7}; keys.size() < count && stored < first + size; ++stored) {
    const QryPlace place = qry_place_stored(uint32_t(stored), page_count);
    if (stored < kQryReservedKey && place.page == page && place.home_sector == kQryStateSectors + bucket)
      keys.push_back(qry_key_of_stored(uint32_t(stored), uint32_t(test_locality())));
  }
  REQUIRE(keys.size() == count);
  return keys;
}

std::vector<uint32_t> keys_of_page(uint32_t page, uint32_t page_count, size_t count) {
  std::vector<uint32_t> keys;
  const uint64_t first = ((uint64_t{page} << 32) + page_count - 1) / page_count, size = (uint64_t{1} << 32) / page_count;
  std::mt19937 random(page + 17);
  std::unordered_set<uint32_t> seen;
  while (keys.size() < count) {
    const uint32_t stored = uint32_t(first + random() % size);
    if (stored != kQryReservedKey && qry_page(stored, page_count) == page && seen.insert(stored).second)
      keys.push_back(qry_key_of_stored(stored, uint32_t(test_locality())));
  }
  return keys;
}

std::vector<uint32_t> some_keys(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::unordered_set<uint32_t> seen;
  std::vector<uint32_t> keys;
  while (keys.size() < count) {
    const uint32_t key = uint32_t(random());
    if (key != kQryReservedKey && seen.insert(key).second) keys.push_back(key);
  }
  return keys;
}

std::vector<uint32_t> values_of(const std::vector<uint32_t>& keys, uint32_t tag) {
  std::vector<uint32_t> values;
  for (const uint32_t key : keys) values.push_back(value_of(key, tag));
  return values;
}

}  // namespace quarry::hashgrid::test
