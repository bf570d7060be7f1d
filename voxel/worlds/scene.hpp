// SPDX-License-Identifier: Apache-2.0
// scene.hpp - the content of a world file: named volumes, instances of them, layers, one palette, cameras. Flattened
// into one World, it is what the hash grid addresses and the renderer shows (world.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry {

struct Volume {
  std::string name;
  BrickMap bricks;
  Int3 size{};  // extent declared by the source, from (0,0,0) in the volume's own axes; {0,0,0}: none declared
};

// What a pass over a volume's bricks tells, gathered while they are streamed.
struct VolumeSummary {
  uint64_t voxels = 0;
  Box3 bounds;                            // of the voxels
  std::array<uint64_t, 256> materials{};  // voxels of each; none of 0
  void add(const BrickMap& bricks);
};

struct Layer {
  std::string name;
  bool hidden = false;
};

// One placing of a volume: cell -> rotation.apply_to_cell(cell) + offset, in world axes.
struct Instance {
  uint32_t volume = 0;
  Rotation rotation;
  Int3 offset;
  int32_t layer = -1;   // index into layers, -1: none
  bool hidden = false;  // by itself or by a group above it
  std::string name;
  std::string group_path;  // names of the groups above it, '/'-separated, outermost first
};

// The box of world cells to which an instance maps `cells`. What is beyond 32 bits is at their end, outside every
// world.
Box3 placed(const Instance& instance, const Box3& cells);

struct Camera {
  std::string name;
  double position[3] = {0, 0, 0};
  double target[3] = {0, 0, -1};
  double vertical_fov_degrees = 45;
};

enum class OverlapRule : uint8_t { first_instance_wins, last_instance_wins };

struct Scene {
  std::vector<Volume> volumes;
  std::vector<Instance> instances;
  std::vector<Layer> layers;
  std::vector<Camera> cameras;
  Palette palette = Palette::standard();
  OverlapRule overlap = OverlapRule::first_instance_wins;
  std::map<std::string, std::string> metadata;  // "source_format", "source_file", "voxel_size_m", ...

  bool instance_visible(const Instance& instance) const;  // neither the instance nor its layer is hidden
};

// All distinct cells of the scene in world axes, by the scene's overlap rule. `visible_only` leaves hidden instances
// out. Deterministic for any number of threads. Errors: out_of_bounds if a voxel is beyond kSceneMin and kSceneMax (the
// message names the instance). What is not a volume's brick as it is, is made in `pool`.
Result<BrickMap> flatten(const Scene& scene, bool visible_only, const BrickPool& pool = BrickPool::loose());
// The same for who makes a World of it: out_of_bounds if a voxel is outside of kWorldMin and kWorldMax.
Result<BrickMap> flatten_for_world(const Scene& scene, bool visible_only, const BrickPool& pool = BrickPool::loose());
// The same, for one world brick: an edit recomputes each affected brick with it.
Brick flatten_brick(const Scene& scene, Int3 brick, bool visible_only);

// Counts and checksums that do not depend on order, nor on the reader or device that made the voxels.
// ph = m(m(m(u64(u32 x) + 0x9e3779b97f4a7c15) + u32 y) + u32 z), m = the splitmix64 finaliser; pos_sum = sum of ph over
// distinct cells; col_sum = sum of m(ph + rgba). Coordinates are in the requested axes.
struct SceneFacts {
  uint64_t volumes = 0, instances = 0;
  uint64_t placed = 0;                      // voxels over all instances
  uint64_t flat_all = 0, flat_visible = 0;  // distinct cells, with and without hidden ones
  uint32_t colors_used = 0;                 // distinct palette indices among placed voxels
  Box3 bounds;                              // of flat_all
  uint64_t pos_sum = 0, col_sum = 0;        // of flat_all
};
enum class Axes : uint8_t { y_up, z_up };  // z_up: world (x,y,z) = file (x, z, -1-y): MagicaVoxel's own axes
Result<SceneFacts> scene_facts(const Scene& scene, Axes axes);
// The part of the facts that are sums over world bricks, so that a world is added up in any order, by any threads.
struct VoxelSums {
  uint64_t voxels = 0, pos_sum = 0, col_sum = 0;
  std::array<bool, 256> used{};  // materials
  void add(const VoxelSums& other);
};
// Free-threaded; it keeps nothing of the palette.
class VoxelHash {
 public:
  VoxelHash(const Palette& palette, Axes axes);
  void add(Int3 brick_at, const BrickView& brick, VoxelSums& to) const;

 private:
  struct Place {
    uint8_t column, third;
  };
  bool z_up_;
  std::array<uint32_t, 256> colors_{};
  std::array<Place, kVoxelsPerBrick> places_{};
};
// Of all bricks, by all threads.
VoxelSums sums_of(const BrickMap& bricks, const VoxelHash& hash);
Box3 in_axes(const Box3& world, Axes axes);

}  // namespace quarry
