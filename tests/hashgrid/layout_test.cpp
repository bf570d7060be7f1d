// The placement of keys is a file format: worlds' tables and shaders compiled elsewhere rely on it. These values were computed by a
// separate program from the text of layout.h.
#include <catch2/catch.hpp>
#include <set>

#include "hashgrid/layout.h"

namespace {

struct Golden {
  uint32_t key, page_count, locality;
  QryPlace place;
  uint32_t stash[6];  // sectors from the table's start
};
const Golden kGolden[] = {
    {0x00000000u, 1u, 0u, {0, 599, 466, 3, 0x9E203612u}, {1006, 1021, 1015, 1017, 1001, 1008}},
    {0x00000001u, 1u, 0u, {0, 939, 390, 3, 0x3273DF6Au}, {1017, 1006, 1023, 1011, 1013, 1002}},
    {0xFFFFFFFEu, 1u, 0u, {0, 66, 468, 3, 0xA7B5FABCu}, {1013, 1012, 1021, 1009, 1007, 1021}},
    {0x80000000u, 1u, 0u, {0, 336, 290, 1, 0xB438F40Cu}, {1013, 1011, 1014, 1002, 1002, 1002}},
    {0x00BC614Eu, 1u, 0u, {0, 816, 874, 1, 0xCEA204DEu}, {1014, 1003, 1006, 1012, 1008, 1019}},
    {0xDEADBEEFu, 1u, 0u, {0, 498, 453, 3, 0x74723621u}, {1002, 1010, 1008, 1009, 1014, 1010}},
    {0x00000000u, 3u, 0u, {1, 789, 656, 3, 0x9E203612u}, {1020, 3064, 2047, 3052, 1005, 2025}},
    {0x00000001u, 3u, 0u, {2, 815, 266, 3, 0x3273DF6Au}, {3053, 1018, 3069, 2033, 2040, 1008}},
    {0xFFFFFFFEu, 3u, 0u, {0, 184, 586, 3, 0xA7B5FABCu}, {2041, 2037, 3065, 2028, 1023, 3065}},
    {0x80000000u, 3u, 0u, {0, 994, 948, 1, 0xB438F40Cu}, {2040, 2033, 2042, 1008, 1006, 1006}},
    {0x00BC614Eu, 3u, 0u, {2, 452, 510, 1, 0xCEA204DEu}, {2043, 1011, 1018, 2036, 2024, 3057}},
    {0xDEADBEEFu, 3u, 0u, {1, 488, 443, 3, 0x74723621u}, {1007, 2031, 2024, 2029, 2042, 2031}},
    {0x00000000u, 1024u, 0u, {610, 373, 240, 3, 0x9E203612u}, {608251, 649195, 633841, 637949, 594933, 613363}},
    {0x00000001u, 1024u, 0u, {960, 487, 930, 3, 0x3273DF6Au}, {1032178, 1000438, 1046515, 1013744, 1020904, 991221}},
    {0xFFFFFFFEu, 1024u, 0u, {60, 852, 262, 3, 0xA7B5FABCu}, {37878, 33791, 60400, 26602, 22508, 60396}},
    {0x80000000u, 1024u, 0u, {339, 444, 398, 1, 0xB438F40Cu}, {365544, 358396, 366576, 335868, 333818, 333817}},
    {0x00BC614Eu, 1024u, 0u, {835, 624, 682, 1, 0xCEA204DEu}, {892904, 862207, 869367, 885756, 874483, 905199}},
    {0xDEADBEEFu, 1024u, 0u, {506, 994, 949, 3, 0x74723621u}, {465904, 488427, 481266, 485372, 497652, 487418}},
    {0x00000000u, 65537u, 0u, {39064, 95, 954, 3, 0x9E203612u}, {39995387, 40036331, 40020977, 40025085, 39982069, 40000499}},
    {0x00000001u, 65537u, 0u, {61471, 867, 318, 3, 0x3273DF6Au}, {62963698, 62931958, 62978035, 62945264, 62952424, 62922741}},
    {0xFFFFFFFEu, 65537u, 0u, {3894, 546, 948, 3, 0xA7B5FABCu}, {3970038, 3965951, 3992560, 3958762, 3954668, 3992556}},
    {0x80000000u, 65537u, 0u, {21724, 570, 524, 1, 0xB438F40Cu}, {22254568, 22247420, 22255600, 22224892, 22222842, 22222841}},
    {0x00BC614Eu, 65537u, 0u, {53480, 678, 736, 1, 0xCEA204DEu}, {54763496, 54732799, 54739959, 54756348, 54745075, 54775791}},
    {0xDEADBEEFu, 65537u, 0u, {32448, 232, 187, 3, 0x74723621u}, {33233904, 33256427, 33249266, 33253372, 33265652, 33255418}},
    {0x00000000u, 1u, 1u, {0, 285, 810, 2, 0x87F2AF56u}, {1019, 1010, 1009, 1022, 1023, 1008}},
    {0x00000001u, 1u, 1u, {0, 285, 810, 3, 0xC7F2AF56u}, {1010, 1022, 1004, 1015, 1009, 1021}},
    {0xFFFFFFFEu, 1u, 1u, {0, 998, 206, 2, 0xB3B2DA1Cu}, {1023, 1002, 1015, 1003, 1014, 1020}},
    {0x80000000u, 1u, 1u, {0, 718, 826, 0, 0x1BBD9C50u}, {1000, 1003, 1017, 1022, 1021, 1001}},
    {0x00BC614Eu, 1u, 1u, {0, 261, 256, 3, 0x7F71F65Du}, {1021, 1001, 1019, 1008, 1021, 1000}},
    {0xDEADBEEFu, 1u, 1u, {0, 948, 829, 0, 0x2117A6BBu}, {1009, 1001, 1016, 1013, 1004, 1010}},
    {0x00000000u, 3u, 1u, {0, 839, 372, 2, 0x87F2AF56u}, {3058, 2030, 2029, 3068, 3069, 2024}},
    {0x00000001u, 3u, 1u, {0, 839, 372, 3, 0xC7F2AF56u}, {2031, 3067, 1013, 2047, 2028, 3064}},
    {0xFFFFFFFEu, 3u, 1u, {2, 998, 206, 2, 0xB3B2DA1Cu}, {3069, 1006, 2045, 1011, 2042, 3060}},
    {0x80000000u, 3u, 1u, {2, 158, 266, 0, 0x1BBD9C50u}, {1002, 1011, 3053, 3066, 3063, 1004}},
    {0x00BC614Eu, 3u, 1u, {0, 769, 764, 3, 0x7F71F65Du}, {3065, 1004, 3057, 2025, 3065, 1002}},
    {0xDEADBEEFu, 3u, 1u, {2, 848, 729, 0, 0x2117A6BBu}, {2029, 1003, 3049, 2041, 1012, 2030}},
    {0x00000000u, 1024u, 1u, {285, 987, 520, 2, 0x87F2AF56u}, {315383, 290796, 289780, 324605, 325621, 284671}},
    {0x00000001u, 1024u, 1u, {285, 987, 520, 3, 0xC7F2AF56u}, {291820, 323579, 274421, 305149, 288747, 321528}},
    {0xFFFFFFFEu, 1024u, 1u, {1023, 998, 206, 2, 0xB3B2DA1Cu}, {1047528, 989171, 1025012, 993275, 1021936, 1038321}},
    {0x80000000u, 1024u, 1u, {734, 686, 794, 0, 0x1BBD9C50u}, {723955, 731131, 770043, 781311, 779245, 725996}},
    {0x00BC614Eu, 1024u, 1u, {261, 955, 950, 3, 0x7F71F65Du}, {322539, 266238, 315371, 285688, 321535, 264191}},
    {0xDEADBEEFu, 1024u, 1u, {972, 10, 883, 0, 0x2117A6BBu}, {1009659, 986109, 1028091, 1020925, 995304, 1011691}},
    {0x00000000u, 65537u, 1u, {18303, 387, 912, 2, 0x87F2AF56u}, {18730999, 18706412, 18705396, 18740221, 18741237, 18700287}},
    {0x00000001u, 65537u, 1u, {18303, 387, 912, 3, 0xC7F2AF56u}, {18707436, 18739195, 18690037, 18720765, 18704363, 18737144}},
    {0xFFFFFFFEu, 65537u, 1u, {65536, 998, 206, 2, 0xB3B2DA1Cu}, {67107839, 67049461, 67086315, 67053566, 67082238, 67099629}},
    {0x80000000u, 65537u, 1u, {47020, 526, 634, 0, 0x1BBD9C50u}, {48106483, 48113659, 48152571, 48163839, 48161773, 48108524}},
    {0x00BC614Eu, 65537u, 1u, {16765, 361, 356, 3, 0x7F71F65Du}, {17165291, 17108990, 17158123, 17128440, 17164287, 17106943}},
    {0xDEADBEEFu, 65537u, 1u, {62209, 162, 43, 0, 0x2117A6BBu}, {63727611, 63704061, 63746043, 63738877, 63713256, 63729643}},
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
    CHECK(place.draw == golden.place.draw);
    for (uint32_t n = 0; n < kQryStashTries; ++n)
      CHECK(qry_stash_sector(place, qry_group(place.page, golden.page_count), n) == golden.stash[n]);
  }
}

TEST_CASE("Every place lies inside its page, two buckets are never in one line, pages follow the order of stored keys") {
  for (const uint32_t page_count : {1u, 2u, 3u, 1000u, 65536u, 1048575u}) {
    uint32_t last_page = 0;
    bool fits = true, ordered = true;
    for (uint64_t mixed = 0; mixed <= 0xFFFFFFFFu; mixed += 65521) {
      const QryPlace place = qry_place_stored(uint32_t(mixed), page_count);
      fits &= place.page < page_count && place.home_sector >= 8 && place.home_sector < 1000 && place.next_sector >= 8 &&
              place.next_sector < 1000 && place.home_sector / 2 != place.next_sector / 2 && place.home_slot < 4;
      ordered &= place.page >= last_page;
      last_page = place.page;
    }
    INFO(page_count << " pages");
    REQUIRE(fits);
    REQUIRE(ordered);
    REQUIRE(last_page + 17 > page_count);  // the last step of the loop ends 65521 short of the last mixed key at most
  }
}

TEST_CASE("Groups of 64 to 127 pages share a stash, all of a table that has fewer; every key's six sectors lie in the stash of its group") {
  for (const uint32_t page_count : {1u, 5u, 63u, 64u, 65u, 127u, 128u, 200u, 65537u}) {
    INFO(page_count << " pages");
    uint32_t groups = 0, next_first = 0;
    bool fits = true;
    for (uint32_t page = 0; page < page_count; ++page) {
      const QryGroup group = qry_group(page, page_count);
      if (page == next_first) {
        ++groups;
        fits &= group.first == page && (group.count >= 64 || page_count < 64) && group.count < 128;
        next_first = group.first + group.count;
      }
      fits &= page >= group.first && page < group.first + group.count;
    }
    REQUIRE(fits);
    REQUIRE(next_first == page_count);
    REQUIRE(groups == qry_group_count(page_count));
    std::set<uint32_t> reached;
    for (uint32_t i = 0; i < 40000; ++i) {
      const QryPlace place = qry_place_stored(i * 107374u, page_count);
      const QryGroup group = qry_group(place.page, page_count);
      for (uint32_t n = 0; n < kQryStashTries; ++n) {
        const uint32_t sector = qry_stash_sector(place, group, n);
        fits &= sector / 1024 >= group.first && sector / 1024 < group.first + group.count && sector % 1024 >= 1000;
        reached.insert(sector);
      }
    }
    REQUIRE(fits);
    if (page_count <= 200) REQUIRE(reached.size() == page_count * 24);
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
