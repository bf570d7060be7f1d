// SPDX-License-Identifier: Apache-2.0
// boxes_test.cpp - Morton codes, the way through Z-order, and boxes of ordered indexes against a scan of all keys.
#include <algorithm>
#include <random>

#include "hashgrid/index/boxes.hpp"
#include "hashgrid/ordered_index.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::boxes_test {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  uint32_t operator()() { return uint32_t(random_()); }

 private:
  std::mt19937 random_;
};

// Bit by bit.
uint64_t slow_encode(uint32_t x, uint32_t y, uint32_t z) {
  uint64_t code = 0;
  for (uint32_t bit = 0; bit < 21; ++bit)
    code |= uint64_t{x >> bit & 1} << bit * 3 | uint64_t{y >> bit & 1} << (bit * 3 + 1) |
            uint64_t{z >> bit & 1} << (bit * 3 + 2);
  return code;
}
bool in_box(uint64_t code, const MortonBox& box) {
  const uint32_t at[3] = {morton_x(code), morton_y(code), morton_z(code)};
  for (uint32_t axis = 0; axis < 3; ++axis)
    if (at[axis] < box.min[axis] || at[axis] > box.max[axis]) return false;
  return true;
}
MortonBox random_box(Random& random, uint32_t most, uint32_t longest) {
  MortonBox box{};
  for (uint32_t axis = 0; axis < 3; ++axis) {
    box.min[axis] = random() % (most + 1);
    box.max[axis] = std::min(most, box.min[axis] + random() % longest);
  }
  return box;
}

}  // namespace

TEST_CASE("morton: codes are the bits of three coordinates in turn, and give them back") {
  Random random(3);
  for (uint32_t i = 0; i < 20000; ++i) {
    uint32_t at[3];
    for (uint32_t& each : at) each = i == 0 ? 0u : i == 1 ? kMortonMost : random() & kMortonMost;
    const uint64_t code = morton_encode(at[0], at[1], at[2]);
    REQUIRE(code == slow_encode(at[0], at[1], at[2]));
    REQUIRE((morton_x(code) == at[0] && morton_y(code) == at[1] && morton_z(code) == at[2]));
  }
}

TEST_CASE("morton: from a code outside a box the way leads to the next one inside", "[one-caller]") {
  Random random(5);
  for (uint32_t i = 0; i < 300; ++i) {
    const MortonBox box = random_box(random, 15, 1 + random() % 15);
    const MortonRange range = morton_range(box);
    for (uint64_t code = range.min; code <= range.max; ++code) {
      REQUIRE(is_inside(code, range) == in_box(code, box));
      if (in_box(code, box)) continue;
      uint64_t next = code + 1;
      while (!in_box(next, box)) ++next;
      REQUIRE(big_min(code, range) == next);
    }
  }
}

TEST_CASE("boxes: the parts of a box are all its codes, once, in order", "[one-caller]") {
  Random random(9);
  for (uint32_t i = 0; i < 400; ++i) {
    const MortonBox box = random_box(random, i % 2 == 0 ? 31 : 255, 1 + random() % 12);
    std::vector<uint64_t> expected, codes;
    for (uint32_t z = box.min[2]; z <= box.max[2]; ++z)
      for (uint32_t y = box.min[1]; y <= box.max[1]; ++y)
        for (uint32_t x = box.min[0]; x <= box.max[0]; ++x) expected.push_back(morton_encode(x, y, z));
    std::sort(expected.begin(), expected.end());
    for (const uint32_t depth : {0u, 1u, 2u, 3u}) {
      codes.clear();
      for (uint32_t number = 0; number < detail::box_parts(depth); ++number) {
        BoxPart part;
        if (!detail::box_part(box, depth, number, &part)) continue;
        const size_t before = codes.size();
        for (uint64_t code = part.range.min; code <= part.range.max; ++code)
          if (is_inside(code, part.range)) codes.push_back(code);
        if (part.whole) REQUIRE(codes.size() - before == part.range.max - part.range.min + 1);
      }
      REQUIRE(codes == expected);
    }
  }
}

TEST_CASE("boxes: an index lists the keys in each box in order, and as many as it says") {
  on_each_executor([](Executor& executor) {
    if (test_locality() != Locality::plain) return;
    Random random(17);
    for (const uint32_t most : {3u, 60u, kMortonMost}) {
      INFO("coordinates up to " << most);
      std::vector<uint64_t> keys;
      for (uint32_t i = 0; i < (most == 3 ? 30u : 20000u); ++i)
        keys.push_back(morton_encode(random() % (most + 1), random() % (most + 1), random() % (most + 1)));
      keys.push_back(UINT64_MAX - 1);  // no code: in no box
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      std::vector<uint32_t> values;
      for (const uint64_t key : keys) values.push_back(uint32_t(key * 3 % 1000));
      auto index = OrderedIndex<uint64_t>::create(executor);
      REQUIRE(index.has_value());
      REQUIRE(index
                  ->build(Array<uint64_t>(executor, keys).span(), Array<uint32_t>(executor, values).span(),
                          KeyOrder::rising)
                  .has_value());
      // Leaves that are empty must not end a walk.
      const std::vector<uint64_t> gone(keys.begin() + ptrdiff_t(keys.size() / 3),
                                       keys.begin() + ptrdiff_t(keys.size() / 2));
      REQUIRE(index->erase(Array<uint64_t>(executor, gone).span())->erased == gone.size());
      keys.erase(keys.begin() + ptrdiff_t(keys.size() / 3), keys.begin() + ptrdiff_t(keys.size() / 2));

      std::vector<MortonBox> boxes{{{0, 0, 0}, {most, most, most}}, {{0, 0, 0}, {0, 0, 0}}, {{1, 0, 1}, {1, most, 2}}};
      for (uint32_t i = 0; i < 40; ++i) boxes.push_back(random_box(random, most, i % 2 == 0 ? most / 2 + 1 : 3));
      std::vector<uint64_t> starts{0}, expected;
      std::vector<uint32_t> expected_values;
      for (const MortonBox& box : boxes) {
        for (const uint64_t key : keys) {
          if (key >> 63 != 0 || !in_box(key, box)) continue;
          expected.push_back(key);
          expected_values.push_back(uint32_t(key * 3 % 1000));
        }
        starts.push_back(expected.size());
      }
      const Array<MortonBox> of(executor, boxes);
      REQUIRE(index->list_boxes(of.span(), {}, {}, {}) == expected.size());
      const Array<uint64_t> starts_out(executor, starts.size()), keys_out(executor, expected.size());
      const Array<uint32_t> values_out(executor, expected.size());
      REQUIRE(index->list_boxes(of.span(), starts_out.span(), keys_out.span(), values_out.span()) == expected.size());
      REQUIRE(starts_out.get() == starts);
      REQUIRE(keys_out.get() == expected);
      REQUIRE(values_out.get() == expected_values);
      if (executor.kind() == ExecutorKind::host)
        for (size_t i = 0; i < boxes.size(); i += 5) {
          std::vector<uint64_t> walked;
          for_each_in_box(index->view(), boxes[i], [&](const auto& cursor) { walked.push_back(cursor.key()); });
          REQUIRE(walked == std::vector<uint64_t>(expected.begin() + ptrdiff_t(starts[i]),
                                                  expected.begin() + ptrdiff_t(starts[i + 1])));
        }
    }
  });
}

TEST_CASE("boxes: wrong boxes, too little room and 32-bit keys are errors, and nothing is written") {
  on_each_executor([](Executor& executor) {
    if (test_locality() != Locality::plain) return;
    auto index = OrderedIndex<uint64_t>::create(executor);
    auto narrow = OrderedIndex<uint32_t>::create(executor);
    REQUIRE((index.has_value() && narrow.has_value()));
    const std::vector<uint64_t> keys{1, 2, 3};
    REQUIRE(index
                ->insert(Array<uint64_t>(executor, keys).span(),
                         Array<uint32_t>(executor, std::vector<uint32_t>{4, 5, 6}).span())
                ->inserted == 3);
    const Array<uint64_t> out(executor, std::vector<uint64_t>{7, 7});
    const auto list = [&](const std::vector<MortonBox>& boxes) {
      return index->list_boxes(Array<MortonBox>(executor, boxes).span(), {}, out.span(), {});
    };
    const MortonBox all{{0, 0, 0}, {9, 9, 9}};
    for (const MortonBox& wrong : {MortonBox{{0, 5, 0}, {9, 4, 9}}, MortonBox{{0, 0, 0}, {9, 9, kMortonMost + 1}}}) {
      const auto listed = list({all, wrong});
      REQUIRE(!listed.has_value());
      CHECK(listed.error().code == ErrorCode::invalid_argument);
      CHECK_THAT(listed.error().message, Catch::Contains("box 1 of 2"));
    }
    const auto listed = list({all});
    REQUIRE(!listed.has_value());
    CHECK(listed.error().code == ErrorCode::full);
    CHECK_THAT(listed.error().message, Catch::Contains("3 keys, and there is room for 2"));
    CHECK(out.get() == std::vector<uint64_t>{7, 7});
    CHECK(list({}) == 0);
    const Array<MortonBox> one(executor, std::vector<MortonBox>{all});
    CHECK(narrow->list_boxes(one.span(), {}, {}, {}).error().code == ErrorCode::unsupported);
  });
}

}  // namespace quarry::hashgrid::test::boxes_test
