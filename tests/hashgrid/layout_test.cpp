// SPDX-License-Identifier: Apache-2.0
// layout_test.cpp - the placement of keys is a file format: worlds' tables and shaders compiled elsewhere rely on it. A
// separate program computed these values from the text of layout.h.
#include <catch2/catch.hpp>
#include <set>

#include "hashgrid/pairs/layout.h"

namespace layout_test {

namespace {

struct Golden {
  uint32_t key, page_count, locality;
  QryProbeSequence probes;
  uint32_t stash[6];  // sectors from the table's start
};
const Golden kGolden[] = {
    {0x00000000u, 1u, 0u, {0, 596, 831, 1, 0x9C090208u}, {1022, 1014, 1020, 1008, 1019, 1019}},
    {0x00000001u, 1u, 0u, {0, 936, 97, 2, 0x86A5E2A7u}, {1007, 1018, 1003, 1015, 1014, 1005}},
    {0xFFFFFFFEu, 1u, 0u, {0, 66, 168, 2, 0xFA467D7Du}, {1014, 1008, 1012, 1017, 1012, 1010}},
    {0x80000000u, 1u, 0u, {0, 338, 808, 3, 0x5A1C7A06u}, {1000, 1014, 1021, 1010, 1008, 1002}},
    {0x00BC614Eu, 1u, 0u, {0, 818, 651, 3, 0x354CB3E0u}, {1013, 1016, 1016, 1002, 1013, 1010}},
    {0xDEADBEEFu, 1u, 0u, {0, 497, 914, 3, 0xAB9D6561u}, {1023, 1000, 1000, 1000, 1009, 1008}},
    {0x00000000u, 3u, 0u, {1, 788, 31, 1, 0x9C090208u}, {3067, 2042, 3060, 2025, 3059, 3059}},
    {0x00000001u, 3u, 0u, {2, 812, 965, 2, 0x86A5E2A7u}, {1022, 3054, 1011, 2045, 2042, 1015}},
    {0xFFFFFFFEu, 3u, 0u, {0, 186, 288, 2, 0xFA467D7Du}, {2043, 2025, 2038, 3051, 2038, 2031}},
    {0x80000000u, 3u, 0u, {0, 994, 472, 3, 0x5A1C7A06u}, {1001, 2043, 3065, 2031, 2024, 1006}},
    {0x00BC614Eu, 3u, 0u, {2, 454, 287, 3, 0x354CB3E0u}, {2041, 3048, 3048, 1007, 2041, 2030}},
    {0xDEADBEEFu, 3u, 0u, {1, 489, 906, 3, 0xAB9D6561u}, {3071, 1002, 1001, 1001, 2027, 2025}},
    {0x00000000u, 1024u, 0u, {610, 372, 607, 1, 0x9C090208u}, {652265, 628730, 645119, 613364, 644091, 645098}},
    {0x00000001u, 1024u, 0u, {960, 484, 637, 2, 0x86A5E2A7u}, {1003515, 1033193, 994295, 1025018, 1021941, 997367}},
    {0xFFFFFFFEu, 1024u, 0u, {60, 854, 956, 2, 0xFA467D7Du}, {39932, 23539, 35818, 47089, 35826, 28671}},
    {0x80000000u, 1024u, 0u, {339, 446, 916, 3, 0x5A1C7A06u}, {329707, 367599, 388086, 357354, 350202, 333815}},
    {0x00BC614Eu, 1024u, 0u, {835, 626, 459, 3, 0x354CB3E0u}, {889845, 897002, 897013, 859132, 889853, 880619}},
    {0xDEADBEEFu, 1024u, 0u, {506, 993, 418, 3, 0xAB9D6561u}, {524280, 461815, 460779, 459774, 484333, 482289}},
    {0x00000000u,
     65537u,
     0u,
     {39064, 92, 327, 1, 0x9C090208u},
     {40039401, 40015866, 40032255, 40000500, 40031227, 40032234}},
    {0x00000001u,
     65537u,
     0u,
     {61471, 864, 25, 2, 0x86A5E2A7u},
     {62935035, 62964713, 62925815, 62956538, 62953461, 62928887}},
    {0xFFFFFFFEu, 65537u, 0u, {3894, 546, 648, 2, 0xFA467D7Du}, {3972092, 3955699, 3967978, 3979249, 3967986, 3960831}},
    {0x80000000u,
     65537u,
     0u,
     {21724, 570, 48, 3, 0x5A1C7A06u},
     {22218731, 22256623, 22277110, 22246378, 22239226, 22222839}},
    {0x00BC614Eu,
     65537u,
     0u,
     {53480, 678, 511, 3, 0x354CB3E0u},
     {54760437, 54767594, 54767605, 54729724, 54760445, 54751211}},
    {0xDEADBEEFu,
     65537u,
     0u,
     {32448, 233, 650, 3, 0xAB9D6561u},
     {33292280, 33229815, 33228779, 33227774, 33252333, 33250289}},
    {0x00000000u, 1u, 1u, {0, 286, 195, 0, 0xE8668A04u}, {1009, 1012, 1005, 1013, 1004, 1018}},
    {0x00000001u, 1u, 1u, {0, 286, 195, 1, 0xC8668A04u}, {1017, 1003, 1010, 1000, 1016, 1011}},
    {0xFFFFFFFEu, 1u, 1u, {0, 996, 764, 0, 0x049E2346u}, {1012, 1020, 1023, 1011, 1018, 1009}},
    {0x80000000u, 1u, 1u, {0, 596, 693, 3, 0x17DC8893u}, {1012, 1023, 1002, 1015, 1022, 1019}},
    {0x00BC614Eu, 1u, 1u, {0, 548, 573, 0, 0xC530A232u}, {1016, 1021, 1004, 1020, 1002, 1004}},
    {0xDEADBEEFu, 1u, 1u, {0, 526, 82, 1, 0x6DB1E56Au}, {1007, 1010, 1012, 1015, 1010, 1023}},
    {0x00000000u, 3u, 1u, {0, 838, 747, 0, 0xE8668A04u}, {2028, 2038, 1016, 2040, 1012, 3056}},
    {0x00000001u, 3u, 1u, {0, 838, 747, 1, 0xC8668A04u}, {3051, 1011, 2031, 1000, 3050, 2034}},
    {0xFFFFFFFEu, 3u, 1u, {2, 996, 764, 0, 0x049E2346u}, {2037, 3062, 3070, 2035, 3054, 2029}},
    {0x80000000u, 3u, 1u, {1, 784, 881, 3, 0x17DC8893u}, {2037, 3069, 1006, 2045, 3067, 3059}},
    {0x00BC614Eu, 3u, 1u, {1, 640, 665, 0, 0xC530A232u}, {3048, 3064, 1013, 3062, 1006, 1013}},
    {0xDEADBEEFu, 3u, 1u, {1, 570, 126, 1, 0x6DB1E56Au}, {1023, 2031, 2037, 2046, 2032, 3069}},
    {0x00000000u, 1024u, 1u, {285, 986, 895, 0, 0xE8668A04u}, {288750, 297962, 277493, 299006, 274417, 314349}},
    {0x00000001u, 1024u, 1u, {285, 986, 895, 1, 0xC8668A04u}, {310252, 272380, 291824, 263160, 308214, 293872}},
    {0xFFFFFFFEu, 1024u, 1u, {1023, 996, 764, 0, 0x049E2346u}, {1017834, 1040370, 1047537, 1015792, 1033209, 1010674}},
    {0x80000000u, 1024u, 1u, {609, 444, 541, 3, 0x17DC8893u}, {623614, 654314, 596969, 631790, 652266, 644091}},
    {0x00BC614Eu, 1024u, 1u, {559, 832, 857, 0, 0xC530A232u}, {569327, 583671, 537582, 581621, 530420, 537582}},
    {0xDEADBEEFu, 1024u, 1u, {534, 394, 942, 1, 0x6DB1E56Au}, {545786, 552958, 559097, 567281, 553974, 587766}},
    {0x00000000u,
     65537u,
     1u,
     {18303, 386, 295, 0, 0xE8668A04u},
     {18704366, 18713578, 18693109, 18714622, 18690033, 18729965}},
    {0x00000001u,
     65537u,
     1u,
     {18303, 386, 295, 1, 0xC8668A04u},
     {18725868, 18687996, 18707440, 18678776, 18723830, 18709488}},
    {0xFFFFFFFEu,
     65537u,
     1u,
     {65536, 996, 764, 0, 0x049E2346u},
     {67078135, 67101679, 67108848, 67076092, 67094516, 67070972}},
    {0x80000000u,
     65537u,
     1u,
     {39004, 844, 941, 3, 0x17DC8893u},
     {39945214, 39975914, 39918569, 39953390, 39973866, 39965691}},
    {0x00BC614Eu,
     65537u,
     1u,
     {35829, 964, 989, 0, 0xC530A232u},
     {36679663, 36694007, 36647918, 36691957, 36640756, 36647918}},
    {0xDEADBEEFu,
     65537u,
     1u,
     {34201, 490, 46, 1, 0x6DB1E56Au},
     {35017722, 35024894, 35031033, 35039217, 35025910, 35059702}},
};

TEST_CASE("layout: the mixer is a bijection, and unmix gives every key back", "[one-caller]") {
  REQUIRE(qry_mix(1) == 0x688990C0u);
  REQUIRE(qry_mix(0xDEADBEEFu) == 0xE628C683u);
  bool both_ways = true;
  for (uint64_t key = 0; key <= 0xFFFFFFFFu; key += 251)  // covers every value of every byte
    both_ways &= qry_unmix(qry_mix(uint32_t(key))) == key && qry_mix(qry_unmix(uint32_t(key))) == key;
  REQUIRE(both_ways);
}

TEST_CASE("layout: stored keys are a bijection of keys, plain or in rows, that leaves the reserved key alone",
          "[one-caller]") {
  for (const uint32_t locality : {kQryPlain, kQryRows}) {
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

TEST_CASE("layout: in a grid of rows eight keys share their lines, two by two their sectors", "[one-caller]") {
  bool line = true, pairs = true, apart = true;
  for (uint32_t first = 0; first < 4000000; first += 8) {
    QryProbeSequence p[8];
    std::set<uint32_t> home_buckets, second_buckets;
    for (uint32_t i = 0; i < 8; ++i) {
      p[i] = qry_probe_sequence(qry_stored_key(first + i, kQryRows), 8191);
      line &= p[i].page == p[0].page && p[i].home_sector / 4 == p[0].home_sector / 4 &&
              p[i].second_sector / 4 == p[0].second_sector / 4;
      pairs &= i % 2 == 0 || (p[i].home_sector == p[i - 1].home_sector && p[i].second_sector == p[i - 1].second_sector);
      home_buckets.insert(p[i].home_sector), second_buckets.insert(p[i].second_sector);
    }
    apart &= home_buckets.size() == 4 && second_buckets.size() == 4;
  }
  REQUIRE(line);
  REQUIRE(pairs);
  REQUIRE(apart);
}

TEST_CASE("layout: keys are placed where the golden values say, so that the layout cannot drift") {
  for (const Golden& golden : kGolden) {
    INFO("key " << golden.key << ", locality " << golden.locality << ", of " << golden.page_count << " pages");
    const QryProbeSequence probes = qry_probe_sequence(qry_stored_key(golden.key, golden.locality), golden.page_count);
    CHECK(probes.page == golden.probes.page);
    CHECK(probes.home_sector == golden.probes.home_sector);
    CHECK(probes.second_sector == golden.probes.second_sector);
    CHECK(probes.home_slot == golden.probes.home_slot);
    CHECK(probes.draw == golden.probes.draw);
    for (uint32_t n = 0; n < kQryStashTries; ++n)
      CHECK(qry_stash_sector(probes, qry_stash_group(probes.page, golden.page_count), n) == golden.stash[n]);
  }
}

TEST_CASE("layout: probes stay inside their page, never with two buckets in a line; pages follow stored keys") {
  for (const uint32_t page_count : {1u, 2u, 3u, 1000u, 65536u, 1048575u}) {
    uint32_t last_page = 0;
    bool fits = true, ordered = true;
    for (uint64_t mixed = 0; mixed <= 0xFFFFFFFFu; mixed += 65521) {
      const QryProbeSequence probes = qry_probe_sequence(uint32_t(mixed), page_count);
      fits &= probes.page < page_count && probes.home_sector >= 8 && probes.home_sector < 1000 &&
              probes.second_sector >= 8 && probes.second_sector < 1000 &&
              probes.home_sector / 4 != probes.second_sector / 4 && probes.home_slot < 4;
      ordered &= probes.page >= last_page;
      last_page = probes.page;
    }
    INFO(page_count << " pages");
    REQUIRE(fits);
    REQUIRE(ordered);
    REQUIRE(last_page + 17 > page_count);  // the last step of the loop ends 65521 short of the last mixed key at most
  }
}

TEST_CASE("layout: 64 to 127 pages share a stash, or all of a smaller table, where every key's six sectors lie",
          "[one-caller]") {
  for (const uint32_t page_count : {1u, 5u, 63u, 64u, 65u, 127u, 128u, 200u, 65537u}) {
    INFO(page_count << " pages");
    uint32_t groups = 0, next_first = 0;
    bool fits = true;
    for (uint32_t page = 0; page < page_count; ++page) {
      const QryStashGroup group = qry_stash_group(page, page_count);
      if (page == next_first) {
        ++groups;
        fits &= group.first == page && (group.count >= 64 || page_count < 64) && group.count < 128;
        next_first = group.first + group.count;
      }
      fits &= page >= group.first && page < group.first + group.count;
    }
    REQUIRE(fits);
    REQUIRE(next_first == page_count);
    REQUIRE(groups == qry_stash_group_count(page_count));
    std::set<uint32_t> reached;
    for (uint32_t i = 0; i < 40000; ++i) {
      const QryProbeSequence probes = qry_probe_sequence(i * 107374u, page_count);
      const QryStashGroup group = qry_stash_group(probes.page, page_count);
      for (uint32_t n = 0; n < kQryStashTries; ++n) {
        const uint32_t sector = qry_stash_sector(probes, group, n);
        fits &= sector / 1024 >= group.first && sector / 1024 < group.first + group.count && sector % 1024 >= 1000;
        reached.insert(sector);
      }
    }
    REQUIRE(fits);
    if (page_count <= 200) REQUIRE(reached.size() == page_count * 24);
  }
}

TEST_CASE("layout: state words and shifts give each of the 1024 sectors its own two bits in the first 32 words") {
  std::set<uint32_t> bits;
  for (uint32_t sector = 0; sector < kQrySectorsPerPage; ++sector) {
    REQUIRE(qry_state_word(sector) < 32);
    bits.insert(qry_state_word(sector) * 64 + qry_state_shift(sector));
  }
  REQUIRE(bits.size() == 1024);
  REQUIRE(*bits.rbegin() == 2046);
}

}  // namespace

}  // namespace layout_test
