// The placement of keys is a file format: worlds' tables and shaders compiled elsewhere rely on it. These values were computed by a
// separate program from the text of layout.h.
#include <catch2/catch.hpp>
#include <set>

#include "hashgrid/layout.h"

namespace {

struct Golden {
  uint32_t key, page_count, locality;
  QryPlace place;
};
const Golden kGolden[] = {
    {0x00000000u, 1u, 0u, {0, 599, 466, 3, 83}},
    {0x00000001u, 1u, 0u, {0, 939, 390, 3, 42}},
    {0xFFFFFFFEu, 1u, 0u, {0, 66, 468, 3, 38}},
    {0x80000000u, 1u, 0u, {0, 336, 290, 1, 91}},
    {0x00BC614Eu, 1u, 0u, {0, 816, 874, 1, 5}},
    {0xDEADBEEFu, 1u, 0u, {0, 498, 453, 3, 91}},
    {0x00000000u, 3u, 0u, {1, 789, 656, 3, 83}},
    {0x00000001u, 3u, 0u, {2, 815, 266, 3, 42}},
    {0xFFFFFFFEu, 3u, 0u, {0, 184, 586, 3, 38}},
    {0x80000000u, 3u, 0u, {0, 994, 948, 1, 91}},
    {0x00BC614Eu, 3u, 0u, {2, 452, 510, 1, 5}},
    {0xDEADBEEFu, 3u, 0u, {1, 488, 443, 3, 91}},
    {0x00000000u, 1024u, 0u, {610, 373, 240, 3, 83}},
    {0x00000001u, 1024u, 0u, {960, 487, 930, 3, 42}},
    {0xFFFFFFFEu, 1024u, 0u, {60, 852, 262, 3, 38}},
    {0x80000000u, 1024u, 0u, {339, 444, 398, 1, 91}},
    {0x00BC614Eu, 1024u, 0u, {835, 624, 682, 1, 5}},
    {0xDEADBEEFu, 1024u, 0u, {506, 994, 949, 3, 91}},
    {0x00000000u, 65537u, 0u, {39064, 95, 954, 3, 83}},
    {0x00000001u, 65537u, 0u, {61471, 867, 318, 3, 42}},
    {0xFFFFFFFEu, 65537u, 0u, {3894, 546, 948, 3, 38}},
    {0x80000000u, 65537u, 0u, {21724, 570, 524, 1, 91}},
    {0x00BC614Eu, 65537u, 0u, {53480, 678, 736, 1, 5}},
    {0xDEADBEEFu, 65537u, 0u, {32448, 232, 187, 3, 91}},
    {0x00000000u, 1u, 1u, {0, 285, 810, 2, 50}},
    {0x00000001u, 1u, 1u, {0, 285, 810, 3, 50}},
    {0xFFFFFFFEu, 1u, 1u, {0, 998, 206, 2, 19}},
    {0x80000000u, 1u, 1u, {0, 718, 826, 0, 10}},
    {0x00BC614Eu, 1u, 1u, {0, 261, 256, 3, 95}},
    {0xDEADBEEFu, 1u, 1u, {0, 948, 829, 0, 84}},
    {0x00000000u, 3u, 1u, {0, 839, 372, 2, 50}},
    {0x00000001u, 3u, 1u, {0, 839, 372, 3, 50}},
    {0xFFFFFFFEu, 3u, 1u, {2, 998, 206, 2, 19}},
    {0x80000000u, 3u, 1u, {2, 158, 266, 0, 10}},
    {0x00BC614Eu, 3u, 1u, {0, 769, 764, 3, 95}},
    {0xDEADBEEFu, 3u, 1u, {2, 848, 729, 0, 84}},
    {0x00000000u, 1024u, 1u, {285, 987, 520, 2, 50}},
    {0x00000001u, 1024u, 1u, {285, 987, 520, 3, 50}},
    {0xFFFFFFFEu, 1024u, 1u, {1023, 998, 206, 2, 19}},
    {0x80000000u, 1024u, 1u, {734, 686, 794, 0, 10}},
    {0x00BC614Eu, 1024u, 1u, {261, 955, 950, 3, 95}},
    {0xDEADBEEFu, 1024u, 1u, {972, 10, 883, 0, 84}},
    {0x00000000u, 65537u, 1u, {18303, 387, 912, 2, 50}},
    {0x00000001u, 65537u, 1u, {18303, 387, 912, 3, 50}},
    {0xFFFFFFFEu, 65537u, 1u, {65536, 998, 206, 2, 19}},
    {0x80000000u, 65537u, 1u, {47020, 526, 634, 0, 10}},
    {0x00BC614Eu, 65537u, 1u, {16765, 361, 356, 3, 95}},
    {0xDEADBEEFu, 65537u, 1u, {62209, 162, 43, 0, 84}},
};

TEST_CASE("The mixer is a bijection: unmix gives every key back") {
  REQUIRE(qry_mix(1) == 0x688990C0u);
  REQUIRE(qry_mix(0xDEADBEEFu) == 0xE628C683u);
  bool both_ways = true;
  for (uint64_t key = 0; key <= 0xFFFFFFFFu; key += 251)  // every residue of every byte comes up
    both_ways &= qry_unmix(qry_mix(uint32_t(key))) == key && qry_mix(qry_unmix(uint32_t(key))) == key;
  REQUIRE(both_ways);
}

TEST_CASE("Stored keys are a bijection of keys, plain or in rows, that leaves the reserved key alone") {
  for (const uint32_t locality : {kQryPlain, kQryRowsOfFour}) {
    INFO("locality " << locality);
    bool both_ways = true, reserved = false;
    for (uint64_t key = 0; key < 0xFFFFFFFFu; key += 251) {
      both_ways &= qry_key_of_stored(qry_stored_key(uint32_t(key), locality), locality) == key &&
                   qry_stored_key(qry_key_of_stored(uint32_t(key), locality), locality) == key;
      reserved |= qry_stored_key(uint32_t(key), locality) == kQryReservedKey;
    }
    REQUIRE(both_ways);
    REQUIRE_FALSE(reserved);
    REQUIRE(qry_stored_key(kQryReservedKey, locality) == kQryReservedKey);
    REQUIRE(qry_key_of_stored(kQryReservedKey, locality) == kQryReservedKey);
  }
}

TEST_CASE("In a grid of rows four keys share their lines, two by two their sectors") {
  bool line = true, sector = true, halves = true;
  for (uint32_t first = 0; first < 4000000; first += 4) {
    QryPlace p[4];
    for (uint32_t i = 0; i < 4; ++i) {
      p[i] = qry_place_stored(qry_stored_key(first + i, kQryRowsOfFour), 8191);
      line &= p[i].page == p[0].page && p[i].home_sector / 2 == p[0].home_sector / 2 && p[i].next_sector / 2 == p[0].next_sector / 2;
    }
    sector &= p[0].home_sector == p[1].home_sector && p[2].home_sector == p[3].home_sector && p[0].next_sector == p[1].next_sector;
    halves &= p[0].home_sector != p[2].home_sector && p[0].next_sector != p[2].next_sector;
  }
  REQUIRE(line);
  REQUIRE(sector);
  REQUIRE(halves);
}

TEST_CASE("Keys are placed where the golden values say, so that the layout cannot drift") {
  for (const Golden& golden : kGolden) {
    INFO("key " << golden.key << ", locality " << golden.locality << ", of " << golden.page_count << " pages");
    const QryPlace place = qry_place_stored(qry_stored_key(golden.key, golden.locality), golden.page_count);
    CHECK(place.page == golden.place.page);
    CHECK(place.home_sector == golden.place.home_sector);
    CHECK(place.next_sector == golden.place.next_sector);
    CHECK(place.home_slot == golden.place.home_slot);
    CHECK(place.area_slot == golden.place.area_slot);
  }
}

TEST_CASE("Every place lies inside its page, two buckets are never in one line, pages follow the order of stored keys") {
  for (const uint32_t page_count : {1u, 2u, 3u, 1000u, 65536u, 1048575u}) {
    uint32_t last_page = 0;
    bool fits = true, ordered = true;
    for (uint64_t mixed = 0; mixed <= 0xFFFFFFFFu; mixed += 65521) {
      const QryPlace place = qry_place_stored(uint32_t(mixed), page_count);
      fits &= place.page < page_count && place.home_sector >= 8 && place.home_sector < 1000 && place.next_sector >= 8 &&
              place.next_sector < 1000 && place.home_sector / 2 != place.next_sector / 2 && place.home_slot < 4 && place.area_slot < 96;
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
