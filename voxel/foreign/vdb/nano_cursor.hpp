// SPDX-License-Identifier: Apache-2.0
// nano_cursor.hpp - reads the tree of a NanoVDB grid from its file from front to back, one node of either kind and one
// leaf at a time, as tree_cursor.hpp reads OpenVDB's. NanoVDB itself reads grids whole.
//
// A grid has its nodes of 4096^3, its nodes of 128^3 and its leaves behind each other, each kind in the order of the
// tree. So three streams on the grid, one for each kind, pass all of it going forward only; that a section comes late
// costs a stream the unpacking of those before it, which are small beside the leaves. Where a child is, its node says;
// the place is checked against the grid's length. Children that lie in another order are possible: then in_order() is
// false, and the grid must be held whole (nano_file.hpp). Memory: a node of either kind (0.6 MB for colours), three
// streams, and 40 bytes for each node of 4096^3.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "voxel/foreign/pipe/voxel_stream.hpp"
#include "voxel/foreign/vdb/nano_file.hpp"

namespace quarry::vdb {

// V: float (also of quantised grids), int32_t or nano::Float3. Throws NanoDamage here and below.
template <class V>
class NanoCursor {
 public:
  struct Leaf {
    static constexpr uint32_t SIZE = 512;
    std::array<uint64_t, 8> active;
    std::array<V, SIZE> values;
    const V& getValue(uint32_t offset) const { return values[offset]; }
    bool isValueOn(uint32_t offset) const { return active[offset >> 6] >> (offset & 63) & 1; }
    uint64_t onVoxelCount() const {
      uint64_t count = 0;
      for (const uint64_t word : active) count += uint64_t(std::popcount(word));
      return count;
    }
  };

  NanoCursor(const NanoInput& file, const NanoGrid& grid)
      : bytes_(grid.bytes),
        type_(nano::Type(grid.type)),
        uppers_(NanoBytes::open(file, grid)),
        lowers_(NanoBytes::open(file, grid)),
        leaves_(NanoBytes::open(file, grid)),
        upper_(new Upper),
        lower_(new Lower),
        leaf_(new Leaf) {
    read_root(grid.whole != nullptr);
  }
  NanoCursor(const NanoCursor&) = delete;
  NanoCursor& operator=(const NanoCursor&) = delete;

  // Whether visit() can pass the grid. Passes all of its nodes but the leaves.
  static bool in_order(const NanoInput& file, const NanoGrid& grid) {
    try {
      NanoCursor cursor(file, grid);
      uint64_t leaves_end = 0;
      for (size_t n = 0; n < cursor.roots_.size(); ++n) {
        if (n > 0 && !(cursor.roots_[n - 1].origin < cursor.roots_[n].origin)) return false;
        if (!cursor.roots_[n].child) continue;
        cursor.read_upper(n);
        for (uint32_t i = 0; i < Upper::kPlaces; ++i) {
          if (!cursor.upper_->has_child(i)) continue;
          cursor.read_lower(i);
          for (uint32_t j = 0; j < Lower::kPlaces; ++j) {
            if (!cursor.lower_->has_child(j)) continue;
            const uint64_t at = cursor.leaf_at(j);
            if (at < leaves_end) return false;
            leaves_end = at + cursor.least_leaf_bytes();
          }
        }
      }
    } catch (const NanoDisorder&) {
      return false;
    }
    return true;
  }

  // Shows the whole tree in its order: on_leaf(origin, leaf) and on_tile(origin, edge in voxels, value, active), also
  // tiles of the background. Both return false to end it.
  template <class OnLeaf, class OnTile>
  void visit(const OnLeaf& on_leaf, const OnTile& on_tile) {
    for (size_t n = 0; n < roots_.size(); ++n) {
      const Root& root = roots_[n];
      if (!root.child) {
        if (!on_tile(root.origin, 4096, root.value, root.active)) return;
        continue;
      }
      read_upper(n);
      for (uint32_t i = 0; i < Upper::kPlaces; ++i) {
        if (!upper_->has_child(i)) {
          if (!on_tile(place_in<5>(root.origin, i, 7), 128, upper_->places[i].value, upper_->is_active(i))) return;
          continue;
        }
        read_lower(i);
        for (uint32_t j = 0; j < Lower::kPlaces; ++j) {
          const Int3 origin = place_in<4>(lower_origin_, j, 3);
          const bool leaf = lower_->has_child(j);
          if (leaf) read_leaf(j);
          if (leaf ? !on_leaf(origin, *leaf_) : !on_tile(origin, 8, lower_->places[j].value, lower_->is_active(j)))
            return;
        }
      }
    }
    leaves_->finish();
  }

  // Goes forward to the 8^3 voxels at `origin`, which come rising in the order of the tree. value() is of them then.
  void seek(const Int3& origin) {
    const Int3 upper{origin.x & ~4095, origin.y & ~4095, origin.z & ~4095};
    while (root_ < roots_.size() && roots_[root_].origin < upper) ++root_;
    in_leaf_ = false;
    if (root_ == roots_.size() || roots_[root_].origin != upper) {
      constant_ = background_;
      return;
    }
    if (!roots_[root_].child) {
      constant_ = roots_[root_].value;
      return;
    }
    if (upper_at_ != root_) read_upper(root_);
    const uint32_t i = number_in<5>(origin, 7);
    if (!upper_->has_child(i)) {
      constant_ = upper_->places[i].value;
      return;
    }
    if (lower_at_ != i) read_lower(i);
    const uint32_t j = number_in<4>(origin, 3);
    if (!lower_->has_child(j)) {
      constant_ = lower_->places[j].value;
      return;
    }
    read_leaf(j);
    in_leaf_ = true;
  }
  V value(const Int3& voxel) const {
    return in_leaf_ ? leaf_->values[size_t((voxel.x & 7) << 6 | (voxel.y & 7) << 3 | (voxel.z & 7))] : constant_;
  }

 private:
  using Upper = nano::NodeData<V, 5>;
  using Lower = nano::NodeData<V, 4>;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Root {
    Int3 origin;
    bool active;
    V value;
    uint64_t child;  // its place in the grid; 0: it is a tile
  };

  template <int kLog2>
  static Int3 place_in(Int3 origin, uint32_t i, int edge_log2) {
    constexpr uint32_t kMask = (1u << kLog2) - 1;
    return origin + Int3{int32_t(i >> 2 * kLog2) << edge_log2, int32_t(i >> kLog2 & kMask) << edge_log2,
                         int32_t(i & kMask) << edge_log2};
  }
  template <int kLog2>
  static uint32_t number_in(Int3 voxel, int edge_log2) {
    const auto along = [&](int32_t v) { return uint32_t(v) >> edge_log2 & ((1u << kLog2) - 1); };
    return along(voxel.x) << 2 * kLog2 | along(voxel.y) << kLog2 | along(voxel.z);
  }
  // The place of what is `offset` from `from`, if `size` bytes are there. All that NanoVDB points to is aligned.
  uint64_t place_of(uint64_t from, int64_t offset, uint64_t size) const {
    const uint64_t at = from + uint64_t(offset);
    if (at < sizeof(nano::GridData) + sizeof(nano::TreeData) || at > bytes_ || bytes_ - at < size || at % 32 != 0)
      throw NanoDamage("a node is at a place where none can be");
    return at;
  }
  void read_root(bool whole) {
    nano::GridData grid;
    nano::TreeData tree;
    nano::RootData<V> root;
    uppers_->read_value(grid);
    uppers_->read_value(tree);
    const uint64_t at = place_of(sizeof grid, int64_t(tree.node_at[3]), sizeof root);
    uppers_->skip_to(at);
    uppers_->read_value(root);
    background_ = root.background;
    for (uint32_t n = 0; n < root.tiles; ++n) {
      nano::RootTile<V> tile;
      uppers_->read_value(tile);
      const auto along = [&](int shift) { return int32_t(uint32_t(tile.key >> shift & 0x1fffff) << 12); };
      const Int3 origin{along(42), along(21), along(0)};
      constexpr int32_t kFar = 1 << 30;
      for (const int32_t v : {origin.x, origin.y, origin.z})
        if (v < -kFar || v >= kFar) throw NanoDamage("a node is at a place where none can be");
      roots_.push_back(
          {origin, tile.active != 0, tile.value, tile.child ? place_of(at, tile.child, sizeof(Upper)) : uint64_t(0)});
    }
    if (!whole) return;
    std::sort(roots_.begin(), roots_.end(), [](const Root& a, const Root& b) { return a.origin < b.origin; });
    for (size_t n = 1; n < roots_.size(); ++n)
      if (roots_[n - 1].origin == roots_[n].origin) throw NanoDamage("a grid has two nodes at one place");
  }
  void read_upper(size_t n) {
    uppers_->skip_to(roots_[n].child);
    uppers_->read_value(*upper_);
    upper_at_ = n;
    lower_at_ = kNone;
  }
  void read_lower(uint32_t i) {
    lower_place_ = place_of(roots_[upper_at_].child, upper_->places[i].child, sizeof(Lower));
    lower_origin_ = place_in<5>(roots_[upper_at_].origin, i, 7);
    lowers_->skip_to(lower_place_);
    lowers_->read_value(*lower_);
    lower_at_ = i;
  }
  uint64_t least_leaf_bytes() const {
    if constexpr (std::is_same_v<V, float>) {
      if (type_ == nano::Type::Fp8) return sizeof(nano::CodedLeaf) + 512;
      if (type_ == nano::Type::Fp16) return sizeof(nano::CodedLeaf) + 1024;
      if (type_ == nano::Type::FpN) return sizeof(nano::CodedLeaf) + 64;
    }
    return sizeof(nano::LeafData<V>);
  }
  uint64_t leaf_at(uint32_t j) const { return place_of(lower_place_, lower_->places[j].child, least_leaf_bytes()); }
  void read_leaf(uint32_t j) {
    leaves_->skip_to(leaf_at(j));
    if constexpr (std::is_same_v<V, float>)
      if (type_ != nano::Type::Float) return read_coded_leaf();
    nano::LeafData<V> data;
    leaves_->read_value(data);
    std::copy(std::begin(data.head.active), std::end(data.head.active), leaf_->active.begin());
    std::copy(std::begin(data.values), std::end(data.values), leaf_->values.begin());
  }
  void read_coded_leaf() {
    nano::CodedLeaf data;
    leaves_->read_value(data);
    std::copy(std::begin(data.head.active), std::end(data.head.active), leaf_->active.begin());
    const uint32_t log2 = type_ == nano::Type::Fp8 ? 3 : type_ == nano::Type::Fp16 ? 4 : data.head.flags >> 5;
    if (log2 > 4) throw NanoDamage("a leaf's values have more bits than there are");
    const uint32_t bits = 1u << log2;
    std::array<uint8_t, 1024> codes;
    leaves_->read(codes.data(), bits * 64);
    for (uint32_t i = 0; i < Leaf::SIZE; ++i) {
      uint32_t code = codes[i * bits / 8];
      if (bits == 16) code |= uint32_t(codes[i * 2 + 1]) << 8;
      else code = code >> (i * bits % 8) & ((1u << bits) - 1);
      if constexpr (std::is_same_v<V, float>) leaf_->values[i] = float(code) * data.quantum + data.minimum;
    }
  }

  const uint64_t bytes_;
  const nano::Type type_;
  std::unique_ptr<NanoBytes> uppers_, lowers_, leaves_;
  V background_{};
  std::vector<Root> roots_;
  size_t root_ = 0, upper_at_ = SIZE_MAX;  // of seek(); whose node is in upper_
  std::unique_ptr<Upper> upper_;
  std::unique_ptr<Lower> lower_;
  uint64_t lower_place_ = 0;
  Int3 lower_origin_;
  uint32_t lower_at_ = kNone;
  std::unique_ptr<Leaf> leaf_;
  bool in_leaf_ = false;  // what value() is of; else constant_
  V constant_{};
};

}  // namespace quarry::vdb
