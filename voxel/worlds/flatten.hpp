// SPDX-License-Identifier: Apache-2.0
// flatten.hpp - a scene's instances merged into world bricks. Used by flatten and flatten_brick of scene.hpp, and by
// Document, which flattens again only the world bricks that an edit affects.
//
// A rotation by 90 degrees maps a brick to a brick of some offset grid. If the offset is no multiple of 8, its voxels
// fall into up to eight world bricks ("parts", one bit per axis). The part and the place in it depend only on the
// rotation and on the offset's low three bits: one table of 512 entries, shared by all instances that are equal in
// these (BrickRemap). An instance without rotation whose offset is a multiple of 8 is merged brick by brick, without
// reading voxels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "voxel/worlds/scene.hpp"

namespace quarry {

struct BrickRemap {
  bool aligned = false;               // identity, and everything in part 0
  std::array<uint16_t, 512> place{};  // source voxel index -> part << 9 | voxel index in that part
  std::array<BrickMask, 8> window{};  // the source voxels that fall into each part
};
BrickRemap make_brick_remap(const Rotation& rotation, Int3 offset);

// The volume whose bricks are the world's, coordinates too: it alone is shown, once, at the origin and not turned.
// None: there is no such volume.
std::optional<uint32_t> volume_at_origin(const Scene& scene, bool visible_only);

// What flattening begins with, here and on a device. Errors: invalid_argument: an instance shows a volume that is not
// there.
Result<void> check_instances(const Scene& scene);
// The instances that are shown, by their numbers, in order of precedence: where several have a voxel it is the first
// one's. Those of a missing volume are left out.
std::vector<uint32_t> shown_instances(const Scene& scene, bool visible_only);
// Whether all voxels of a box may be in a scene, and in a world.
bool in_scene(const Box3& voxels);
bool in_world(const Box3& voxels);
// The error of one that has voxels outside the world, or farther out than a scene may reach.
Error instance_outside(const Scene& scene, uint32_t instance);
Error instance_too_far(const Scene& scene, uint32_t instance);

class Flattener {
 public:
  // Refers to `scene`, whose instances, layers and overlap rule must not change during its life; its volumes' bricks
  // may. Instances of a missing volume are left out (flatten() reports them).
  Flattener(const Scene& scene, bool visible_only);

  // The whole scene, by slabs on all threads; what is not a volume's brick as it is, is made in `pool`. Errors:
  // out_of_bounds: a voxel beyond kSceneMin and kSceneMax, or if it is for a world, outside of that. Memory besides the
  // result: 16 bytes per source brick and part, 24 if the scene is larger than a world.
  Result<BrickMap> all(bool for_world, const BrickPool& pool = BrickPool::loose(), uint32_t threads = 0) const;
  // One world brick, from all instances that reach it.
  Brick brick(Int3 world_brick) const;
  // The same for many: the brick at puts[i].brick to puts[i].value. A world brick that one brick of a volume fills
  // alone and as it is shares that brick; others are made in `pool`.
  void bricks(std::span<BrickPut> puts, const BrickPool& pool = BrickPool::loose(), uint32_t threads = 0) const;
  // The volume whose bricks are the world's, as they are but for their coordinates, if there is one and nothing else is
  // shown; alone: true for that volume.
  std::optional<uint32_t> only_volume() const;
  bool alone(uint32_t volume) const { return only_volume() == volume; }
  // Bricks of such a volume at their world coordinates: `puts` themselves if these are the same, else in `moved`.
  // Errors: out_of_bounds.
  Result<std::span<const BrickPut>> in_world(uint32_t volume, std::span<const BrickPut> puts,
                                             std::vector<BrickPut>& moved) const;

  // Finds the world bricks that hold the voxels `mask` of brick `source` of volume `volume`, through all its instances.
  // Appends them to `touched`, possibly more than once. Errors: out_of_bounds, if such a voxel would be outside the
  // world.
  Result<void> touched(uint32_t volume, Int3 source, const BrickMask& mask, std::vector<Int3>& touched) const;
  // Errors: out_of_bounds if an instance places some voxel of the box outside the world's outer box.
  Result<void> check_box(uint32_t volume, const Box3& box) const;
  // The error of an instance of the volume, which is shown, that has voxels outside the world.
  Error outside(uint32_t volume) const;
  // Registers bricks that were added to the volume, by a box of their coordinates. brick() may miss bricks that were
  // added without this call.
  void volume_has(uint32_t volume, const Box3& bricks);

 private:
  struct Placed {
    uint32_t instance, volume;
    Rotation rotation;
    Int3 offset;
    const BrickRemap* remap;
    uint32_t parts;  // bit p: part p can hold voxels
  };
  struct Candidate {
    const Placed* placed;
    std::array<int64_t, 3> min, max;  // world bricks that it can reach
  };
  template <class Order>
  struct Contribution;
  template <class Order>
  struct Slab;
  template <class Order>
  Result<BrickMap> all_by(const BrickPool& pool, uint32_t threads) const;
  template <class Order>
  bool contribute(size_t rank, std::span<const Int3> at, std::span<const SharedBrick> bricks, int64_t first_layer,
                  int64_t slab_layers, std::vector<Slab<Order>>& slabs) const;
  template <class Order>
  BrickMap merge(std::vector<Contribution<Order>>& contributions, const BrickPool& pool) const;
  std::array<int64_t, 2> layers() const;
  static std::array<int64_t, 3> target_of(const Placed& placed, Int3 source);
  static bool source_of(const Placed& placed, Int3 world_brick, uint32_t part, Int3* source);
  std::vector<Candidate> candidates(const Box3& world_bricks) const;
  SharedBrick place_all(const std::vector<Candidate>& from, Int3 world_brick, BrickWriter& writer) const;

  const Scene* scene_;
  bool visible_only_;
  std::vector<Placed> placed_;  // in order of precedence: the first to fill a cell keeps it
  std::map<uint32_t, std::unique_ptr<BrickRemap>> remaps_;
  std::vector<Box3> volume_bricks_;  // per volume, never too small
};

}  // namespace quarry
