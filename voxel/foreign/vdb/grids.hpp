// SPDX-License-Identifier: Apache-2.0
// grids.hpp - the parts of quarry-vdb, the process that runs OpenVDB and NanoVDB: files to voxel streams
// (pipe/voxel_stream.hpp) and back. Damaged files make these libraries throw, abort or use all memory, so they never
// run in the program itself.
//
// In a level set, a voxel is a cell that is inside or whose centre is at most half a voxel from the surface. So solids
// stay solid, and open meshes stay surfaces. In any other grid of numbers, a voxel is an active cell above zero. In a
// mask, it is an active cell. A grid of vectors named as a colour colours the others.
// Literature: K. Museth, "VDB: High-Resolution Sparse Volumes with Dynamic Topology", 2013; "NanoVDB", 2021. Their leaf
// of 8^3 voxels on multiples of 8 is one brick.
#pragma once

#include <openvdb/openvdb.h>

#include <array>
#include <bit>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/voxel_stream.hpp"

namespace quarry::vdb {

// The limit on bricks, which tiles make many of.
struct BrickLimit {
  uint64_t bricks;
  const char* why;  // "all that the memory limit allows; raise the limit or resample it coarser"
};

// Reads a file. Exceptions of the libraries and of streams pass through. Memory: some MiB, but all trees for .vdb of a
// file version below 224 or with grids that share a tree, and a whole grid of .nvdb whose nodes are not in the
// order of the tree.
// Errors: malformed_input, unsupported; out_of_memory (too many bricks).
Result<void> read_file(const std::filesystem::path& file, BrickLimit limit, io::VoxelStreamWriter& out,
                       std::vector<std::string>& warnings);
// Gives the next bytes of a stream; how many, 0 at its end.
using ByteInput = std::function<size_t(std::span<uint8_t> out)>;
// nano_whole: by the library's own writer, which holds all trees. Tests compare with it.
enum class VolumeKind { vdb, nano, nano_whole };
// Writes a stream, one grid with materials, into the existing `file`. The client renames the file. Its bricks must be
// in the order of OpenVDB's trees: nodes of 4096^3 voxels rising by x, y, z, in each its nodes of 128^3, in each its
// bricks. Returns the file's length. Memory: some MiB; on disk beside the file as much again, for NanoVDB up to 900
// bytes a brick. Exceptions of the library pass through while trees are made. Errors: io, with the system's reason;
// malformed_input (the stream).
Result<uint64_t> write_file(const ByteInput& stream, const std::filesystem::path& file, VolumeKind kind);

// The grids that Quarry writes: density, linear colour, and the material's number in META quarry_materials.
constexpr const char* kDensity = "density";
constexpr const char* kColor = "Cd";
constexpr const char* kMaterial = "material";
constexpr const char* kMaterials = "quarry_materials";

// Calls f(offset in a leaf, the voxel's number in the brick) for each voxel.
template <class F>
void for_each_voxel(const BrickMask& mask, const F& f) {
  size_t at = 0;
  for (uint32_t octant = 0; octant < 8; ++octant)
    for (uint64_t word = mask[octant]; word; word &= word - 1, ++at) {
      const Int3 v = voxel_from_index(octant * 64 + uint32_t(std::countr_zero(word)));
      f(uint32_t(v.x << 6 | v.y << 3 | v.z), at);
    }
}

// The NanoVDB part. It has its own source file because its headers and OpenVDB's are slow to compile.
// By the library, of trees in memory.
void write_nano(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out);

// Writes the same bytes of bricks that come in the order of the tree. Exceptions of the libraries and of spills pass
// through.
class NanoWriter {
 public:
  // What does not fit memory waits beside `file`. `colors` are those of the materials, when bricks come.
  NanoWriter(const std::filesystem::path& file, const std::array<openvdb::Vec3s, 256>& colors);
  ~NanoWriter();
  void add(Int3 brick, const BrickMask& mask, std::span<const uint8_t> materials);
  // The grids have their name, class and transform, and no voxel.
  void write(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quarry::vdb
