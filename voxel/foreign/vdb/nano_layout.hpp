// SPDX-License-Identifier: Apache-2.0
// nano_layout.hpp - how NanoVDB (ABI 32) lays out files and grids, without its headers, which trust what they read and
// take long to compile. nano.cpp compares every size and place with the library's.
//
//   file: FileHead | GridHead, name: one for each grid | the grids | the next FileHead ...
//   grid: GridData | TreeData | RootData, RootTile ... | nodes of 4096^3 | nodes of 128^3 | leaves | blind data
//         as it is; or u64 length, one zlib stream; or for each GiB of it: u64 length, one blosc buffer
#pragma once

#include <cstdint>

namespace quarry::vdb::nano {

constexpr uint64_t kMagic = 0x304244566f6e614e;  // "NanoVDB0"
constexpr uint32_t kMajorVersion = 32;
constexpr uint32_t major_of(uint32_t version) { return version >> 21; }

enum class Codec : uint16_t { none, zip, blosc };
constexpr uint64_t kBloscChunkBytes = uint64_t(1) << 30;

enum class Type : uint32_t { Float = 1, Int32 = 4, Vec3f = 6, Fp8 = 14, Fp16 = 15, FpN = 16 };
enum class Class : uint32_t { level_set = 1, fog, staggered, point_index, point_data };
constexpr uint32_t kLongName = 1;  // GridData::flags: the name is cut off there

struct Float3 {
  float x, y, z;
};

struct FileHead {
  uint64_t magic;
  uint32_t version;
  uint16_t grids;
  uint16_t codec;
};
static_assert(sizeof(FileHead) == 16);

struct GridHead {
  uint64_t grid_bytes, file_bytes, name_key, voxels;
  uint32_t type, grid_class;
  double world_box[6];
  int32_t index_box[6];
  double voxel_size[3];
  uint32_t name_bytes;  // with a zero at its end
  uint32_t nodes[4], tiles[3];
  uint16_t codec, zero;
  uint32_t version;
};
static_assert(sizeof(GridHead) == 176);

struct GridData {
  uint64_t magic, checksum;
  uint32_t version, flags, index, count;
  uint64_t bytes;
  char name[256];
  float matrix_f[9], inverse_f[9], translation_f[3], taper_f;
  double matrix[9], inverse[9], translation[3], taper;
  double world_box[6], voxel_size[3];
  uint32_t grid_class, type;
  int64_t blind_at;
  uint32_t blind_count, data0;
  uint64_t data1, data2;
};
static_assert(sizeof(GridData) == 672);

struct TreeData {
  uint64_t node_at[4];  // from here to the first leaf, node of 128^3, node of 4096^3, and the root
  uint32_t nodes[3], tiles[3];
  uint64_t voxels;
};
static_assert(sizeof(TreeData) == 64);

// V: float, int32_t or Float3. Quantised leaves belong to trees of float.
template <class V>
struct alignas(32) RootData {
  int32_t box[6];
  uint32_t tiles;
  V background, minimum, maximum;
  float average, deviation;
};
template <class V>
struct alignas(32) RootTile {
  uint64_t key;   // x, y, z, divided by 4096, 21 bits each, z lowest
  int64_t child;  // from the root; 0: it is a tile
  uint32_t active;
  V value;
};

// A node of 2^(3 * kLog2) places: x slowest, z fastest.
template <class V, int kLog2>
struct alignas(32) NodeData {
  static constexpr uint32_t kPlaces = 1u << (3 * kLog2);
  union Place {
    V value;
    int64_t child;  // from this node
  };
  int32_t box[6];
  uint64_t flags;
  uint64_t active[kPlaces / 64], children[kPlaces / 64];
  V minimum, maximum;
  float average, deviation;
  alignas(32) Place places[kPlaces];

  bool has_child(uint32_t i) const { return children[i >> 6] >> (i & 63) & 1; }
  bool is_active(uint32_t i) const { return active[i >> 6] >> (i & 63) & 1; }
};

struct LeafHead {
  int32_t box_min[3];
  uint8_t box_size[3], flags;
  uint64_t active[8];
};
static_assert(sizeof(LeafHead) == 80);
template <class V>
struct alignas(32) LeafData {
  LeafHead head;
  V minimum, maximum;
  float average, deviation;
  alignas(32) V values[512];
};
// Codes follow: of Fp8 a byte each, of Fp16 two, of FpN 2^(flags >> 5) bits each, lowest first.
struct alignas(32) CodedLeaf {
  LeafHead head;
  float minimum, quantum;  // of a code, the value is code * quantum + minimum
  uint16_t statistics[4];
};
static_assert(sizeof(CodedLeaf) == 96);

}  // namespace quarry::vdb::nano
