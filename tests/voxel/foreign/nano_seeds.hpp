// SPDX-License-Identifier: Apache-2.0
// nano_seeds.hpp - small NanoVDB files of every type of grid and every codec, made by hand: for the tests of what reads
// them, and the fuzzer's first inputs.
#pragma once

#include <blosc.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "voxel/foreign/vdb/nano_cursor.hpp"

namespace quarry::test {

using namespace vdb;  // NOLINT(google-build-using-namespace): the names of what is tested

using NanoFileBytes = std::vector<uint8_t>;

template <class T>
void put_value(NanoFileBytes& out, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// Bytes of one node, all zero at first.
template <class T>
class NanoPart {
 public:
  T* operator->() { return &value_; }
  void put(NanoFileBytes& out) const { put_value(out, value_); }

 private:
  alignas(32) std::array<uint8_t, sizeof(T)> zero_{};
  T& value_ = *reinterpret_cast<T*>(zero_.data());
};

inline float nano_value(float, int n) { return float(n); }
inline int32_t nano_value(int32_t, int n) { return n; }
inline nano::Float3 nano_value(nano::Float3, int n) { return {float(n), float(n) / 2, 1}; }

inline void set_bit(uint64_t* mask, uint32_t i) { mask[i >> 6] |= uint64_t(1) << (i & 63); }

// What nano_grid() makes: the places of nodes, for those that change them.
struct NanoPlaces {
  uint64_t root, root_tiles, uppers, lowers, leaves;
};
constexpr uint32_t kNanoLeaves = 3;

// A grid's buffer. An active tile of 4096^3 of value 9 at (-4096, 0, 0), and a node at (0, 0, 0). That has an active
// tile of value 8, number 5 (at (0, 0, 640)), and two nodes of 128^3, numbers 0 and 32767 (at (3968, 3968, 3968)). The
// first has an active tile of value 7, number 3, and leaves 0 and 4095; the second leaf 1. Of a leaf, the voxels n with
// n % 3 == 0 are active. Their value is n % 2 (that of a quantised leaf, too), the others' 0.
template <class V>
NanoFileBytes nano_grid(nano::Type type, const std::string& name, NanoPlaces* places = nullptr) {
  using Upper = nano::NodeData<V, 5>;
  using Lower = nano::NodeData<V, 4>;
  const bool coded = type == nano::Type::Fp8 || type == nano::Type::Fp16 || type == nano::Type::FpN;
  // Of FpN, the leaves have 1, 4 and 16 bits a value.
  const auto code_log2 = [&](uint32_t leaf) {
    return type == nano::Type::Fp8 ? 3 : type == nano::Type::Fp16 ? 4 : int(leaf) * 2;
  };
  const auto leaf_bytes = [&](uint32_t leaf) -> uint64_t {
    return coded ? sizeof(nano::CodedLeaf) + (64u << code_log2(leaf)) : sizeof(nano::LeafData<V>);
  };
  NanoPlaces at;
  at.root = sizeof(nano::GridData) + sizeof(nano::TreeData);
  at.root_tiles = at.root + sizeof(nano::RootData<V>);
  at.uppers = at.root_tiles + 2 * sizeof(nano::RootTile<V>);
  at.lowers = at.uppers + sizeof(Upper);
  at.leaves = at.lowers + 2 * sizeof(Lower);
  uint64_t leaf_at[kNanoLeaves + 1] = {at.leaves};
  for (uint32_t n = 0; n < kNanoLeaves; ++n) leaf_at[n + 1] = leaf_at[n] + leaf_bytes(n);
  if (places) *places = at;

  NanoFileBytes out;
  NanoPart<nano::GridData> grid;
  grid->magic = nano::kMagic;
  grid->version = nano::kMajorVersion << 21;
  grid->count = 1;
  grid->bytes = leaf_at[kNanoLeaves];
  std::memcpy(grid->name, name.data(), std::min(name.size(), sizeof grid->name - 1));
  if (name.size() >= sizeof grid->name) grid->flags = nano::kLongName;
  for (const int i : {0, 4, 8}) grid->matrix[i] = 0.5;
  grid->translation[1] = 3;
  grid->type = uint32_t(type);
  grid->grid_class = uint32_t(nano::Class::fog);
  grid.put(out);
  NanoPart<nano::TreeData> tree;
  tree->node_at[3] = sizeof(nano::TreeData);
  tree.put(out);
  NanoPart<nano::RootData<V>> root;
  root->tiles = 2;
  root.put(out);
  NanoPart<nano::RootTile<V>> tile, child;
  tile->key = uint64_t(0x1fffff) << 42;
  tile->active = 1;
  tile->value = nano_value(V(), 9);
  tile.put(out);
  child->child = int64_t(at.uppers - at.root);
  child.put(out);

  const auto upper = std::make_unique<NanoPart<Upper>>();
  set_bit((*upper)->active, 5);
  (*upper)->places[5].value = nano_value(V(), 8);
  uint64_t lower = 0;
  for (const uint32_t i : {0u, 32767u}) {
    set_bit((*upper)->children, i);
    (*upper)->places[i].child = int64_t(at.lowers + lower++ * sizeof(Lower) - at.uppers);
  }
  upper->put(out);
  const auto put_lower = [&](uint64_t number, bool with_tile, std::initializer_list<uint32_t> children, uint32_t leaf) {
    const auto node = std::make_unique<NanoPart<Lower>>();
    if (with_tile) {
      set_bit((*node)->active, 3);
      (*node)->places[3].value = nano_value(V(), 7);
    }
    for (const uint32_t j : children) {
      set_bit((*node)->children, j);
      (*node)->places[j].child = int64_t(leaf_at[leaf++] - (at.lowers + number * sizeof(Lower)));
    }
    node->put(out);
  };
  put_lower(0, true, {0, 4095}, 0);
  put_lower(1, false, {1}, 2);

  for (uint32_t n = 0; n < kNanoLeaves; ++n) {
    NanoPart<nano::LeafData<V>> leaf;
    NanoPart<nano::CodedLeaf> head;
    std::vector<uint8_t> codes(size_t(64) << code_log2(n));
    for (uint32_t i = 0; i < 512; i += 3) {
      set_bit(leaf->head.active, i);
      set_bit(head->head.active, i);
      leaf->values[i] = nano_value(V(), int(i % 2));
      if (coded) codes[(i << code_log2(n)) / 8] |= uint8_t(i % 2 << ((i << code_log2(n)) % 8));
    }
    if (!coded) {
      leaf.put(out);
      continue;
    }
    head->quantum = 1;
    if (type == nano::Type::FpN) head->head.flags = uint8_t(code_log2(n) << 5);
    head.put(out);
    out.insert(out.end(), codes.begin(), codes.end());
  }
  return out;
}

inline NanoFileBytes nano_grid(nano::Type type, const std::string& name = "g") {
  switch (type) {
    case nano::Type::Int32: return nano_grid<int32_t>(type, name);
    case nano::Type::Vec3f: return nano_grid<nano::Float3>(type, name);
    default: return nano_grid<float>(type, name);
  }
}

// A file of one segment with these grids. `whole_name`: of the first grid, where its buffer cuts it off.
inline NanoFileBytes nano_file(const std::vector<NanoFileBytes>& grids, nano::Codec codec,
                               const std::string& whole_name = "g") {
  NanoFileBytes out;
  put_value(out, nano::FileHead{nano::kMagic, nano::kMajorVersion << 21, uint16_t(grids.size()), uint16_t(codec)});
  for (const NanoFileBytes& grid : grids) {
    nano::GridHead head{};
    head.grid_bytes = grid.size();
    head.name_bytes = uint32_t(whole_name.size() + 1);
    head.codec = uint16_t(codec);
    put_value(out, head);
    out.insert(out.end(), whole_name.begin(), whole_name.end());
    out.push_back(0);
  }
  for (const NanoFileBytes& grid : grids) {
    NanoFileBytes packed = grid;
    if (codec == nano::Codec::zip) {
      uLongf size = compressBound(grid.size());
      packed.resize(size);
      compress(packed.data(), &size, grid.data(), grid.size());
      packed.resize(size);
    } else if (codec == nano::Codec::blosc) {
      packed.resize(grid.size() + BLOSC_MAX_OVERHEAD);
      packed.resize(size_t(blosc_compress_ctx(9, 1, sizeof(float), grid.size(), grid.data(), packed.data(),
                                              packed.size(), BLOSC_LZ4_COMPNAME, 1 << 18, 1)));
    }
    if (codec != nano::Codec::none) put_value(out, uint64_t(packed.size()));
    out.insert(out.end(), packed.begin(), packed.end());
  }
  return out;
}

inline std::vector<std::pair<std::string, NanoFileBytes>> nano_seeds() {
  using nano::Codec, nano::Type;
  return {{"float.nvdb", nano_file({nano_grid(Type::Float)}, Codec::zip)},
          {"int32.nvdb", nano_file({nano_grid(Type::Int32)}, Codec::blosc)},
          {"colours.nvdb", nano_file({nano_grid(Type::Fp8), nano_grid(Type::Vec3f, "Cd")}, Codec::zip)},
          {"fp16.nvdb", nano_file({nano_grid(Type::Fp16)}, Codec::none)},
          {"fpn.nvdb", nano_file({nano_grid(Type::FpN)}, Codec::none)}};
}

// A file's bytes as one that is read.
inline NanoInput nano_input(std::span<const uint8_t> file) {
  return {file.size(), [file](uint64_t at, std::span<uint8_t> out) {
            if (at > file.size() || out.size() > file.size() - at) throw std::logic_error("read past the file's end");
            std::copy_n(file.begin() + std::ptrdiff_t(at), out.size(), out.begin());
          }};
}

}  // namespace quarry::test
