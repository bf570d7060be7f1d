// The placement of keys is a file format: worlds' tables and shaders compiled elsewhere rely on it. These values were computed by a
// separate program from the text of layout.h.
#include <catch2/catch.hpp>
#include <set>

#include "hashgrid/layout.h"

namespace {

struct Golden {
  uint32_t key, page_count;
  QryPlace place;
};
const Golden kGolden[] = {
    {0x00000000u, 1u, {0, 8, 9, 0, 0}},
    {0x00000001u, 1u, {0, 413, 167, 1, 72}},
    {0xFFFFFFFEu, 1u, {0, 595, 583, 3, 94}},
    {0x80000000u, 1u, {0, 799, 120, 1, 30}},
    {0x00BC614Eu, 1u, {0, 288, 165, 1, 84}},
    {0xDEADBEEFu, 1u, {0, 899, 592, 0, 66}},
    {0x00000000u, 3u, {0, 8, 9, 0, 0}},
    {0x00000001u, 3u, {1, 231, 977, 1, 72}},
    {0xFFFFFFFEu, 3u, {1, 778, 766, 3, 94}},
    {0x80000000u, 3u, {2, 398, 711, 1, 30}},
    {0x00BC614Eu, 3u, {0, 850, 727, 1, 84}},
    {0xDEADBEEFu, 3u, {2, 699, 392, 0, 66}},
    {0x00000000u, 1024u, {0, 8, 9, 0, 0}},
    {0x00000001u, 1024u, {418, 156, 902, 1, 72}},
    {0xFFFFFFFEu, 1024u, {606, 519, 507, 3, 94}},
    {0x80000000u, 1024u, {817, 182, 495, 1, 30}},
    {0x00BC614Eu, 1024u, {289, 761, 638, 1, 84}},
    {0xDEADBEEFu, 1024u, {920, 640, 333, 0, 66}},
    {0x00000000u, 65537u, {0, 8, 9, 0, 0}},
    {0x00000001u, 65537u, {26761, 973, 727, 1, 72}},
    {0xFFFFFFFEu, 65537u, {38817, 620, 608, 3, 94}},
    {0x80000000u, 65537u, {52300, 60, 373, 1, 30}},
    {0x00BC614Eu, 65537u, {18544, 915, 792, 1, 84}},
    {0xDEADBEEFu, 65537u, {58921, 677, 370, 0, 66}},
};

TEST_CASE("The mixer is a bijection: unmix gives every key back") {
  REQUIRE(qry_mix(1) == 0x688990C0u);
  REQUIRE(qry_mix(0xDEADBEEFu) == 0xE628C683u);
  bool both_ways = true;
  for (uint64_t key = 0; key <= 0xFFFFFFFFu; key += 251)  // every residue of every byte comes up
    both_ways &= qry_unmix(qry_mix(uint32_t(key))) == key && qry_mix(qry_unmix(uint32_t(key))) == key;
  REQUIRE(both_ways);
}

TEST_CASE("Near keys are a bijection that leaves the reserved key alone and keeps rows of four in one bucket") {
  bool both_ways = true, reserved = false;
  for (uint64_t key = 0; key < 0xFFFFFFFFu; key += 251) {
    both_ways &= qry_far_key(qry_near_key(uint32_t(key))) == key && qry_near_key(qry_far_key(uint32_t(key))) == key;
    reserved |= qry_near_key(uint32_t(key)) == kQryReservedKey;
  }
  REQUIRE(both_ways);
  REQUIRE_FALSE(reserved);
  REQUIRE(qry_near_key(kQryReservedKey) == kQryReservedKey);
  REQUIRE(qry_far_key(kQryReservedKey) == kQryReservedKey);
  REQUIRE(qry_near_key(qry_far_key(kQryNearOfReserved)) == kQryNearOfReserved);  // the pair that changes places
  uint32_t rows = 0, together = 0;
  for (uint32_t first = 0; first < 4000000; first += 4, ++rows) {
    const QryPlace a = qry_place(qry_near_key(first), 8192), b = qry_place(qry_near_key(first + 3), 8192);
    together += a.page == b.page && a.home_sector == b.home_sector;
  }
  REQUIRE(together > rows / 100 * 99);
}

TEST_CASE("Keys are placed where the golden values say, so that the layout cannot drift") {
  for (const Golden& golden : kGolden) {
    INFO("key " << golden.key << " of " << golden.page_count << " pages");
    const QryPlace place = qry_place(golden.key, golden.page_count);
    CHECK(place.page == golden.place.page);
    CHECK(place.home_sector == golden.place.home_sector);
    CHECK(place.next_sector == golden.place.next_sector);
    CHECK(place.home_slot == golden.place.home_slot);
    CHECK(place.area_slot == golden.place.area_slot);
  }
}

TEST_CASE("Every place lies inside its page, two buckets are never the same, pages follow the order of mixed keys") {
  for (const uint32_t page_count : {1u, 2u, 3u, 1000u, 65536u, 1048575u}) {
    uint32_t last_page = 0;
    bool fits = true, ordered = true;
    for (uint64_t mixed = 0; mixed <= 0xFFFFFFFFu; mixed += 65521) {
      const QryPlace place = qry_place(qry_unmix(uint32_t(mixed)), page_count);
      fits &= place.page < page_count && place.home_sector >= 8 && place.home_sector < 1000 && place.next_sector >= 8 &&
              place.next_sector < 1000 && place.home_sector != place.next_sector && place.home_slot < 4 && place.area_slot < 96;
      ordered &= place.page >= last_page;
      last_page = place.page;
    }
    INFO(page_count << " pages");
    REQUIRE(fits);
    REQUIRE(ordered);
    REQUIRE(last_page + 17 > page_count);  // the last step of the loop ends 65521 short of the last mixed key at most
  }
}

TEST_CASE("State words and shifts give each of the 1024 sectors its own two bits in the first 32 words") {
  std::set<uint32_t> bits;
  for (uint32_t sector = 0; sector < kQrySectorsPerPage; ++sector) {
    REQUIRE(qry_state_word(sector) < 32);
    bits.insert(qry_state_word(sector) * 64 + qry_state_shift(sector));
  }
  REQUIRE(bits.size() == 1024);
  REQUIRE(*bits.rbegin() == 2046);
}

TEST_CASE("Brick coordinates survive packing, and only the corner brick has the reserved key") {
  for (const int x : {-1024, -1, 0, 5, 1023})
    for (const int y : {-512, -1, 0, 7, 511})
      for (const int z : {-1024, -1, 0, 9, 1023}) {
        const uint32_t key = qry_pack_brick(x, y, z);
        CHECK(qry_brick_x(key) == x);
        CHECK(qry_brick_y(key) == y);
        CHECK(qry_brick_z(key) == z);
        CHECK((key == kQryReservedKey) == (x == 1023 && y == 511 && z == 1023));
      }
}

}  // namespace
