// SPDX-License-Identifier: Apache-2.0
// voxel_list_test.cpp - bricks from lists of voxels: against a std::map, on host threads, and on CUDA if there is a
// device.
#include "voxel/bricks/voxel_list.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "tests/test_data.hpp"

namespace voxel_list_test {

using namespace quarry;

namespace {

std::vector<std::unique_ptr<hashgrid::Executor>> executors() {
  std::vector<std::unique_ptr<hashgrid::Executor>> all;
  all.push_back(hashgrid::make_host_executor());
  if (auto cuda = hashgrid::make_cuda_executor()) all.push_back(std::move(*cuda));
  else test::skip(cuda.error().message);
  return all;
}

struct List {
  std::vector<Int3> positions;
  std::vector<uint8_t> materials;
};

// The list in the executor's memory, during this object's life.
class Uploaded {
 public:
  Uploaded(hashgrid::Executor& executor, const List& list) : executor_(executor) {
    positions_ = put(list.positions.data(), list.positions.size() * sizeof(Int3));
    if (!list.materials.empty()) materials_ = put(list.materials.data(), list.materials.size());
    view_ = {static_cast<const Int3*>(positions_.data), static_cast<const uint8_t*>(materials_.data),
             list.positions.size()};
  }
  ~Uploaded() {
    for (const MemoryBlock& block : {positions_, materials_})
      if (block.data) executor_.memory().release(block);
  }
  const VoxelList& view() const { return view_; }

 private:
  MemoryBlock put(const void* data, size_t size) {
    const auto block = executor_.memory().allocate(size + 1, "list");
    REQUIRE(block);
    if (size) REQUIRE(executor_.upload(block->data, data, size));
    return *block;
  }
  hashgrid::Executor& executor_;
  MemoryBlock positions_, materials_;
  VoxelList view_;
};

template <class T>
std::vector<T> fetched(hashgrid::Executor& executor, const T* from, size_t count) {
  std::vector<T> out(count);
  if (count) REQUIRE(executor.download(out.data(), from, count * sizeof(T)));
  return out;
}

void check_build(hashgrid::Executor& executor, VoxelListBuilder& builder, const List& list) {
  std::map<uint32_t, Brick> expected;
  for (size_t i = 0; i < list.positions.size(); ++i) {
    Brick& brick = expected[brick_key(brick_of(list.positions[i]))];
    const uint32_t at = voxel_index(list.positions[i]);
    brick.set(at, std::max(brick.get(at), list.materials.empty() ? uint8_t(1) : list.materials[i]));
  }
  const Uploaded uploaded(executor, list);
  const auto built = builder.build(uploaded.view());
  if (!built) FAIL(built.error().message);
  const BrickArrays arrays = builder.bricks();
  REQUIRE(arrays.brick_count == expected.size());
  const auto keys = fetched(executor, arrays.keys, arrays.brick_count);
  const auto masks = fetched(executor, arrays.masks, arrays.brick_count);
  const auto materials = fetched(executor, arrays.materials, arrays.brick_count);
  size_t i = 0, wrong = 0;
  for (const auto& [key, brick] : expected) {
    wrong += keys[i] != key || masks[i] != brick.mask || materials[i] != brick.materials;
    ++i;
  }
  CHECK(wrong == 0);
  auto pairs = builder.grid().enumerate(true);
  REQUIRE(pairs);
  CHECK(pairs->keys == keys);
  for (uint32_t k = 0; k < pairs->values.size(); ++k) REQUIRE(pairs->values[k] == k);
}

List random_list(uint32_t seed, size_t count, int32_t reach, bool with_materials) {
  List list;
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> at(-reach, reach - 1);
  for (size_t i = 0; i < count; ++i) {
    list.positions.push_back({at(random), at(random) / 4, at(random)});
    if (with_materials) list.materials.push_back(uint8_t(1 + random() % 255));
  }
  return list;
}

}  // namespace

TEST_CASE("voxel_list: scan order, random order, one brick and single voxels give the bricks that a map gives") {
  for (const auto& executor : executors()) {
    VoxelListBuilder builder(*executor);
    List scan;
    for (int32_t z = -20; z < 45; ++z)
      for (int32_t y = 3; y < 40; ++y)
        for (int32_t x = -37; x < 50; ++x)
          if ((x * 7 + y * 13 + z * 29) % 5) {
            scan.positions.push_back({x, y, z});
            scan.materials.push_back(uint8_t(1 + ((x * 3 + y * 5 + z * 11) & 127)));
          }
    check_build(*executor, builder, scan);
    List shuffled = scan;
    for (size_t i = shuffled.positions.size(); i-- > 1;) {
      const size_t j = (i * 2654435761u) % (i + 1);
      std::swap(shuffled.positions[i], shuffled.positions[j]);
      std::swap(shuffled.materials[i], shuffled.materials[j]);
    }
    check_build(*executor, builder, shuffled);
    check_build(*executor, builder, random_list(1, 60000, 8000, true));  // nearly one brick a voxel
    check_build(*executor, builder, {{{0, 0, 0}}, {7}});
    check_build(*executor, builder, {{{-8192, -4096, -8192}, {8191, 4095, 8183}}, {}});  // the world's corners
    check_build(*executor, builder, {});
  }
}

TEST_CASE("voxel_list: of a position that comes again and again the greatest material stays, whatever the order") {
  for (const auto& executor : executors()) {
    VoxelListBuilder builder(*executor);
    check_build(*executor, builder, random_list(2, 200000, 12, true));  // each some 30 times
    check_build(*executor, builder, random_list(3, 100000, 100, false));
    List same;
    for (uint32_t i = 0; i < 5000; ++i) {
      same.positions.push_back({5, 6, 7});
      same.materials.push_back(uint8_t(1 + i * 31 % 255));
    }
    check_build(*executor, builder, same);
  }
}

TEST_CASE("voxel_list: what does not fit the world, or means no voxel, is refused, and the builder goes on") {
  for (const auto& executor : executors()) {
    VoxelListBuilder builder(*executor);
    const auto refused = [&](const List& list, ErrorCode code) {
      const Uploaded uploaded(*executor, list);
      const auto built = builder.build(uploaded.view());
      REQUIRE_FALSE(built);
      CHECK(built.error().code == code);
      CHECK(built.error().message.find("1 of 2") != std::string::npos);
      CHECK(builder.bricks().brick_count == 0);
    };
    refused({{{0, 0, 0}, {8192, 0, 0}}, {1, 1}}, ErrorCode::out_of_bounds);
    refused({{{0, 0, 0}, {0, -4097, 0}}, {}}, ErrorCode::out_of_bounds);
    refused({{{0, 0, 0}, {8190, 4095, 8190}}, {}}, ErrorCode::out_of_bounds);  // the brick with the reserved key
    refused({{{0, 0, 0}, {1, 1, 1}}, {1, 0}}, ErrorCode::invalid_argument);
    const auto nothing = builder.build({nullptr, nullptr, 3});
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().code == ErrorCode::invalid_argument);
    check_build(*executor, builder, {{{1, 2, 3}, {1, 2, 4}}, {9, 8}});
  }
}

}  // namespace voxel_list_test
