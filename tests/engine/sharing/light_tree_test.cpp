// SPDX-License-Identifier: Apache-2.0
// light_tree_test.cpp - checks that every emissive face is in the tree exactly once, and stays so through edits. The
// reference is the world's answer for each voxel. It needs no device.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "engine/sharing/light_tree.hpp"
#include "voxel/worlds/world.hpp"

namespace light_tree_test {

using namespace quarry;
using namespace quarry::engine;

namespace {

constexpr std::array<Int3, 6> kSteps{Int3{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
using Face = std::tuple<Int3, uint32_t, uint32_t>;  // voxel, direction, material

struct Image {
  std::vector<uint8_t> bytes;
  QryLights lights{};
  explicit Image(const LightTree& tree) : bytes(tree.image(0)) {
    if (!bytes.empty()) std::memcpy(&lights, bytes.data(), sizeof lights);
  }
  template <class T>
  T at(uint64_t offset, size_t index) const {
    T out;
    REQUIRE(offset + (index + 1) * sizeof out <= bytes.size());
    std::memcpy(&out, bytes.data() + offset + index * sizeof out, sizeof out);
    return out;
  }
};

// Collects the cell's faces and checks its numbers and sums.
void take_cell(const Image& image, uint32_t index, std::vector<Face>& out) {
  const auto cell = image.at<QryLightCell>(image.lights.cells, index);
  uint32_t from = 0;
  for (uint32_t direction = 0; direction < 6; ++direction) {
    const uint32_t end = cell.ends[direction / 2] >> (16 * (direction % 2)) & 0xFFFFu;
    float sum = 0;
    for (uint32_t i = from; i < end; ++i) {
      const auto face = image.at<QryLightFace>(image.lights.faces, cell.first + i);
      sum += image.lights.powers[face.place >> 8];
      REQUIRE(face.cumulative == sum);
      const Int3 voxel{int32_t(cell.x * 4 + (face.place & 3)), int32_t(cell.y * 4 + (face.place >> 2 & 3)),
                       int32_t(cell.z * 4 + (face.place >> 4 & 3))};
      out.emplace_back(voxel + kWorldMin, direction, face.place >> 8);
    }
    REQUIRE(cell.powers[direction] == sum);
    from = end;
  }
}

// Collects the faces below node `index`. Checks that each is inside the node's box and no stronger than the node says.
std::vector<Face> take_node(const Image& image, uint32_t index) {
  const auto node = image.at<QryLightNode>(image.lights.nodes, index);
  const uint32_t bit = node.link >> 26, child = node.link & kQryLightIndex;
  std::vector<Face> faces;
  if (bit == kQryLightLeaf) {
    take_cell(image, child, faces);
  } else {
    for (uint32_t side = 0; side < 2; ++side)
      for (const Face& face : take_node(image, child + side)) {
        const Int3 v = std::get<0>(face) - kWorldMin;
        const int32_t of_axis = bit % 3 == 0 ? v.x : bit % 3 == 1 ? v.y : v.z;
        REQUIRE((of_axis >> (bit / 3 + kQryLightCellShift) & 1) == int32_t(side));
        faces.push_back(face);
      }
  }
  std::array<float, 6> powers{};
  for (const auto& [voxel, direction, material] : faces) {
    powers[direction] += image.lights.powers[material];
    const Int3 low = voxel - kWorldMin;
    REQUIRE(low.x >= int32_t(node.bounds[0] & 0xFFFFu) - 1);
    REQUIRE(low.y >= int32_t(node.bounds[0] >> 16) - 1);
    REQUIRE(low.z >= int32_t(node.bounds[1] & 0xFFFFu) - 1);
    REQUIRE(low.x <= int32_t(node.bounds[1] >> 16));
    REQUIRE(low.y <= int32_t(node.bounds[2] & 0xFFFFu));
    REQUIRE(low.z <= int32_t(node.bounds[2] >> 16));
  }
  for (uint32_t d = 0; d < 6; ++d) {
    const float said = node.power * float(node.shares[d / 2] >> (16 * (d % 2)) & 0xFFFFu) / 65535.0f;
    REQUIRE(said >= powers[d] * 0.9999f);
    REQUIRE(said <= powers[d] * 1.0001f + node.power / 65535.0f);
  }
  return faces;
}

std::vector<Face> faces_of(const LightTree& tree) {
  const Image image(tree);
  std::vector<Face> faces;
  if (!image.bytes.empty()) faces = take_node(image, 0);
  CHECK(faces.size() == tree.face_count());
  std::sort(faces.begin(), faces.end());
  return faces;
}

std::vector<Face> expected_faces(const World& world, const Palette& palette) {
  std::vector<Face> faces;
  world.for_each_brick([&](Int3 at, const Brick& brick) {
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const uint8_t material = brick.get(i);
      const Material& m = palette.materials[material];
      if (!material || m.emission <= 0 || m.r + m.g + m.b == 0) continue;
      const Int3 voxel = Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i);
      for (uint32_t direction = 0; direction < 6; ++direction)
        if (world.get(voxel + kSteps[direction]) == 0) faces.emplace_back(voxel, direction, material);
    }
  });
  std::sort(faces.begin(), faces.end());
  return faces;
}

// A world and its tree. The tree is told of every change, as SharedWorld does it.
struct Lit {
  World world;
  Palette palette = Palette::standard();
  size_t limit;
  LightTree tree;
  explicit Lit(size_t most_faces = LightTree::kMostFaces) : world(make()), limit(most_faces), tree(most_faces) {
    for (Material& m : palette.materials) m.emission = 0;
    palette.materials[3].emission = 2;
    palette.materials[4].emission = 0.25f;
    palette.materials[5].emission = 7;
    palette.materials[5].r = palette.materials[5].g = palette.materials[5].b = 0;  // black does not shine
  }
  static World make() {
    auto made = World::create();
    REQUIRE(made);
    return std::move(*made);
  }
  void put(const std::map<Int3, uint8_t>& voxels) {
    std::map<Int3, Brick> bricks;
    for (const auto& [voxel, material] : voxels) {
      const Int3 at = brick_of(voxel);
      if (!bricks.contains(at)) world.find_brick(at, &bricks[at]);
      bricks[at].set(voxel_index(voxel), material);
    }
    std::vector<World::BrickWrite> writes;
    writes.reserve(bricks.size());
    for (const auto& [at, brick] : bricks) writes.push_back({at, brick});
    REQUIRE(world.write(writes));
    WorldChanges changes;
    changes.keys = world.take_dirty_keys();
    tree.note(changes);
  }
  std::vector<uint8_t> afresh() const {
    LightTree fresh(limit);
    fresh.update(world, palette);
    return fresh.image(64);
  }
};

std::map<Int3, uint8_t> random_block(std::mt19937& random, Int3 low, int32_t edge,
                                     std::initializer_list<uint8_t> materials) {
  std::map<Int3, uint8_t> voxels;
  for (int32_t z = 0; z < edge; ++z)
    for (int32_t y = 0; y < edge; ++y)
      for (int32_t x = 0; x < edge; ++x) voxels[low + Int3{x, y, z}] = materials.begin()[random() % materials.size()];
  return voxels;
}

}  // namespace

TEST_CASE("light tree: every emissive face that touches air is in it, once") {
  std::mt19937 random(7);
  Lit lit;
  // Air, stone and emissive materials, across bricks and the origin.
  lit.put(random_block(random, {-13, -9, -11}, 21, {0, 0, 1, 3, 4, 5}));
  lit.put(random_block(random, {500, 100, -700}, 12, {3}));  // solid: only its surface counts
  // The world's borders.
  lit.put({{kWorldMin, 3}, {{kWorldMax.x, kWorldMax.y, 0}, 4}, {{0, kWorldMax.y, kWorldMin.z}, 3}});
  CHECK(lit.tree.face_count() == 0);
  lit.tree.update(lit.world, lit.palette);
  CHECK((faces_of(lit.tree) == expected_faces(lit.world, lit.palette)));
  CHECK(lit.tree.image(64).size() == lit.tree.image_bytes());
  REQUIRE(lit.world.pack());
  CHECK((lit.afresh() == lit.tree.image(64)));  // packed worlds give the same tree
}

TEST_CASE("light tree: after edits it is byte for byte what a new one would be") {
  std::mt19937 random(11);
  Lit lit;
  lit.put(random_block(random, {-8, 0, -8}, 24, {0, 1, 3, 4}));
  lit.tree.update(lit.world, lit.palette);
  uint64_t version = lit.tree.version();
  for (int round = 0; round < 40; ++round) {
    const auto somewhere = [&] {
      return Int3{int32_t(random() % 40) - 16, int32_t(random() % 32) - 4, int32_t(random() % 40) - 16};
    };
    switch (round % 4) {
      case 0:
        lit.put({{somewhere(), 3}});
        break;  // one more lamp
      // Hidden faces may become visible, in the next brick too.
      case 1: lit.put({{somewhere(), 0}, {somewhere(), 0}}); break;
      case 2: lit.put(random_block(random, somewhere(), 8, {1})); break;  // buried
      default: lit.put(random_block(random, somewhere(), 9, {0, 0, 4, 3})); break;
    }
    if (round % 3 == 1) continue;  // two edits at once
    CHECK_FALSE(lit.tree.up_to_date());
    lit.tree.update(lit.world, lit.palette);
    CHECK(lit.tree.up_to_date());
    REQUIRE((lit.tree.image(64) == lit.afresh()));
  }
  CHECK(lit.tree.version() != version);
  CHECK((faces_of(lit.tree) == expected_faces(lit.world, lit.palette)));

  version = lit.tree.version();
  lit.put({{{900, 0, 900}, 1}});  // stone far from all lamps
  lit.tree.update(lit.world, lit.palette);
  CHECK(lit.tree.version() == version);

  lit.palette.materials[1].emission = 1;  // stone becomes emissive
  lit.tree.update(lit.world, lit.palette);
  CHECK((lit.tree.image(64) == lit.afresh()));
  CHECK((faces_of(lit.tree) == expected_faces(lit.world, lit.palette)));
  for (Material& m : lit.palette.materials) m.emission = 0;
  lit.tree.update(lit.world, lit.palette);
  CHECK(lit.tree.image(64).empty());
}

TEST_CASE("light tree: beyond its limit the strongest cells are kept, and edits find the others again") {
  std::mt19937 random(3);
  constexpr size_t kLimit = 600;
  Lit lit(kLimit);
  std::map<Int3, uint8_t> voxels;
  // 2400 faces, some strong.
  for (int32_t i = 0; i < 400; ++i) voxels[{(i % 20) * 6, 0, (i / 20) * 6}] = random() % 8 == 0 ? 3 : 4;
  const auto strong = size_t(std::count_if(voxels.begin(), voxels.end(), [](const auto& v) { return v.second == 3; }));
  REQUIRE(strong * 6 < kLimit);
  lit.put(voxels);
  lit.tree.update(lit.world, lit.palette);
  CHECK(lit.tree.face_count() <= kLimit);
  CHECK(lit.tree.face_count() > kLimit - 64 * 6);
  const std::vector<Face> kept = faces_of(lit.tree);
  CHECK(size_t(std::count_if(kept.begin(), kept.end(), [](const Face& f) { return std::get<2>(f) == 3; })) ==
        strong * 6);
  lit.tree.update(lit.world, lit.palette);  // no changes
  // Most lamps are removed, and the faint ones that were left out come in.
  std::map<Int3, uint8_t> away;
  for (const auto& [voxel, material] : voxels)
    if (voxel.x < 90) away[voxel] = 0;
  lit.put(away);
  lit.tree.update(lit.world, lit.palette);
  CHECK((lit.tree.image(64) == lit.afresh()));
  CHECK((faces_of(lit.tree) == expected_faces(lit.world, lit.palette)));
}

}  // namespace light_tree_test
