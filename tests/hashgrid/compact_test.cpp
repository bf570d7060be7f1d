// The compact layout: one key at a time on host threads, and - where there is a device - bulk calls compared with the same table read on
// the host, word for word the same text. A table of this layout has 406 MB at least: the cases
// without a device touch a few pages of one.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>

#include "hashgrid/compact_view.hpp"
#include "hashgrid/parallel.hpp"
#include "tests/hashgrid/backends.hpp"
#include "tests/hashgrid/compact_device.hpp"
#include "tests/test_data.hpp"

namespace quarry::hashgrid::test {
namespace {

constexpr uint32_t kPages = kCompactLeastPages;

constexpr uint32_t kClearedPages = 10;

// In host memory that is not touched, but for the stash and the first pages: keys of other pages must not be used.
class HostTable {
 public:
  HostTable()
      : block_(*host_memory_source().allocate(size_t{kPages} * kQryPageBytes, "compact table")),
        view_(compact_view(block_.data, kPages, 1)) {
    uint64_t* const words = static_cast<uint64_t*>(block_.data);
    constexpr uint64_t kTags = uint64_t{kCompactEmptyTags} << 32 | kCompactEmptyTags;
    for (size_t i = 0; i < size_t{kClearedPages} * kQryPageWords; ++i) words[i] = i % 4 == 0 ? kTags : ~uint64_t{0};
    for (size_t i = size_t{view_.page_count} * kQryPageWords; i < size_t{kPages} * kQryPageWords; ++i)
      words[i] = i % kQryPageWords < 32 ? 0 : ~uint64_t{0};
  }
  HostTable(const HostTable&) = delete;
  HostTable& operator=(const HostTable&) = delete;
  ~HostTable() { host_memory_source().release(block_); }
  const CompactView& view() const { return view_; }
  uint64_t* words() const { return static_cast<uint64_t*>(block_.data); }

 private:
  MemoryBlock block_;
  CompactView view_;
};

// All keys whose home is one sector, in the order of their mixes.
std::vector<uint32_t> keys_of_sector(const CompactView& view, uint32_t sector) {
  const uint64_t sectors = uint64_t{view.page_count} * kQrySectorsPerPage;
  std::vector<uint32_t> keys;
  for (uint64_t mixed = ((uint64_t{sector} << 32) + sectors - 1) / sectors; (mixed * sectors) >> 32 == sector; ++mixed)
    if (qry_unmix(uint32_t(mixed)) != kQryReservedKey) keys.push_back(qry_unmix(uint32_t(mixed)));
  return keys;
}

TEST_CASE("compact: word-parallel comparison finds exactly the equal tags") {
  for (uint32_t tag = 0; tag < 1024; ++tag) {
    for (uint32_t other = 0; other < 1024; other += 1) {
      const uint32_t half = tag | other << 10 | (other ^ 1u) << 20 | kCompactWentOn;
      const uint32_t expected = 0x200u | (other == tag ? 0x200u << 10 : 0u) | ((other ^ 1u) == tag ? 0x200u << 20 : 0u);
      if (detail::compact_matches(half, tag) != expected) FAIL("tag " << tag << ", other " << other);
    }
  }
  SUCCEED();
}

TEST_CASE("compact: sector, remainder and distance tell every key from every other") {
  const auto block = host_memory_source().allocate(size_t{kPages} * kQryPageBytes, "untouched table");
  REQUIRE(block.has_value());
  const CompactView view = compact_view(block->data, kPages, 1);
  REQUIRE(view.reach >= 3);
  REQUIRE(view.remainders * view.reach <= kCompactNoTag);
  for (const uint32_t sector : {0u, 1u, 1023u, 5000000u, view.page_count * kQrySectorsPerPage - 1}) {
    std::vector<bool> seen(view.remainders);
    for (const uint32_t key : keys_of_sector(view, sector)) {
      const detail::CompactPlace place = detail::compact_place(qry_mix(key), view);
      REQUIRE(place.home == sector);
      REQUIRE(place.tag < view.remainders);
      REQUIRE_FALSE(seen[place.tag]);
      seen[place.tag] = true;
    }
  }
  host_memory_source().release(*block);
}

TEST_CASE("compact: insert, find and erase on host threads keep the contract, through full sectors and the stash", "[quick]") {
  HostTable table;
  const CompactView& view = table.view();

  SECTION("one sector's keys: six to a sector, then the sectors after it, then the stash; the erased come back") {
    const std::vector<uint32_t> keys = keys_of_sector(view, 1022);  // wraps round the page's end
    REQUIRE(keys.size() > 300);
    uint32_t deepest = 0;
    for (const uint32_t key : keys) {
      REQUIRE_FALSE(find(view, key).hit);
      REQUIRE(erase(view, key) == Outcome::absent);
      REQUIRE(insert(view, key, value_of(key)) == Outcome::inserted);
      REQUIRE(insert(view, key, 5) == Outcome::present);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const Found found = find(view, keys[i]);
      REQUIRE(found.value == value_of(keys[i]));
      deepest = std::max(deepest, found.sectors);
      if (i < 6) REQUIRE(found.sectors == 1);
    }
    REQUIRE(deepest > view.reach);
    REQUIRE(deepest <= 8);
    uint32_t old = 0;
    for (const uint32_t key : keys) {
      REQUIRE(erase(view, key, &old) == Outcome::erased);
      REQUIRE(old == value_of(key));
      REQUIRE_FALSE(find(view, key).hit);
    }
    for (const uint32_t key : keys) REQUIRE(insert(view, key, 7) == Outcome::inserted);
    for (const uint32_t key : keys) REQUIRE(find(view, key).value == 7);
    REQUIRE(insert(view, kQryReservedKey, 1) == Outcome::reserved);
    REQUIRE(insert(view, 1, kQryReservedValue) == Outcome::reserved);
  }

  SECTION("threads race for the same keys: each is inserted once, erased once, and finds see its values alone") {
    std::vector<uint32_t> keys;
    for (uint32_t sector = 0; sector < kClearedPages * kQrySectorsPerPage; ++sector) {
      const std::vector<uint32_t> all = keys_of_sector(view, sector);
      keys.insert(keys.end(), all.begin(), sector % 1000 == 77 ? all.end() : all.begin() + sector % 4);
    }
    std::shuffle(keys.begin(), keys.end(), std::mt19937(11));
    std::atomic<size_t> inserted{0}, erased{0}, wrong{0};
    const auto race = [&](const auto& work) {
      std::vector<std::jthread> threads;
      for (uint32_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (size_t i = 0; i < keys.size(); ++i) work(keys[(i + t * 17) % keys.size()], t);
        });
    };
    race([&](uint32_t key, uint32_t t) {
      inserted += insert(view, key, value_of(key, t)) == Outcome::inserted;
      const Found found = find(view, key);
      wrong += !found.hit || (found.value & ~0xFFu) != value_of(key);
    });
    REQUIRE(inserted == keys.size());
    REQUIRE(wrong == 0);
    race([&](uint32_t key, uint32_t) { erased += erase(view, key) == Outcome::erased; });
    REQUIRE(erased == keys.size());
    for (const uint32_t key : keys) REQUIRE_FALSE(find(view, key).hit);
  }
}

TEST_CASE("compact: bulk calls on the device leave a table that the host reads, and agree with a model", "[quick]") {
  const bool ran = with_compact_device_table(kPages, [](CompactDeviceTable& device) {
    HostTable host;
    std::vector<uint32_t> keys = some_keys(5, 3000000);
    for (uint32_t sector = 100; sector < 5000000; sector += 400003)
      for (const uint32_t key : keys_of_sector(host.view(), sector)) keys.push_back(key);
    std::unordered_map<uint32_t, uint32_t> known;
    for (size_t i = 0; i < 500000; ++i) keys.push_back(keys[i * 3]);  // copies
    std::vector<uint32_t> values = values_of(keys);
    values[5] = kQryReservedValue;
    for (size_t i = 0; i < keys.size(); ++i)
      if (values[i] != kQryReservedValue) known[keys[i]] = values[i];

    const BulkReport built = device.build(keys, values);
    REQUIRE(built.full == 0);
    REQUIRE(built.reserved == 1);
    REQUIRE(built.inserted == known.size());
    REQUIRE(built.present == keys.size() - 1 - known.size());
    device.download(host.words(), size_t{kPages} * kQryPageWords);
    size_t wrong = 0;
    for (const auto& [key, value] : known) wrong += find(host.view(), key).value != value;
    REQUIRE(wrong == 0);

    // Absent and present keys, looked up on the device, the same as on the host to the last depth.
    std::vector<uint32_t> asked = some_keys(6, 200000);
    asked.insert(asked.end(), keys.end() - 300000, keys.end());
    asked.push_back(kQryReservedKey);
    std::vector<uint8_t> depths;
    const std::vector<uint32_t> found = device.find(asked, depths);
    for (size_t i = 0; i < asked.size(); ++i) {
      const Found there = find(host.view(), asked[i]);
      wrong += found[i] != there.value || depths[i] != there.sectors;
    }
    REQUIRE(wrong == 0);

    // Erase a part, insert it again beside new keys.
    const std::vector<uint32_t> part(keys.begin() + 1000, keys.begin() + 400000);
    std::unordered_map<uint32_t, uint32_t> gone;
    for (const uint32_t key : part) gone[key] = 1;
    REQUIRE(device.erase(part).erased == gone.size());
    REQUIRE(device.erase(part).absent == part.size());
    std::vector<uint32_t> fresh = some_keys(9, 300000);
    fresh.insert(fresh.end(), part.begin(), part.end());
    for (const uint32_t key : part) known.erase(key);
    size_t expected = 0;
    for (const uint32_t key : fresh) expected += known.try_emplace(key, value_of(key, 3)).second;
    const BulkReport more = device.insert(fresh, values_of(fresh, 3));
    REQUIRE(more.inserted == expected);
    REQUIRE(more.full == 0);
    device.download(host.words(), size_t{kPages} * kQryPageWords);
    for (const auto& [key, value] : known) wrong += find(host.view(), key).value != value;
    REQUIRE(wrong == 0);
  });
  if (!ran) quarry::test::skip("compact: bulk calls on the device: no CUDA device");
}

}  // namespace
}  // namespace quarry::hashgrid::test
