// SPDX-License-Identifier: Apache-2.0
// nano_tree_writer.hpp - makes the tree of a NanoVDB grid, as a file has it, of bricks that come in the order of
// OpenVDB's trees. NanoVDB itself writes trees that are whole in memory.
//
//   GridData | TreeData | RootData, tiles | nodes of 4096^3 | nodes of 128^3 | leaves
//
// What a node says of its children is their offsets, which follow from how many nodes there are of each kind, and the
// extremes, mean and deviation of their values. So nodes wait in files without a name, without what can be made again:
// tables of children, and the values of leaves, which are made of the bricks once more. Statistics are added up in the
// order in which the library does it, for sums of floating point numbers depend on it: the bytes are the library's.
// Memory: a node of either kind with its table (1.1 MB for colours), the statistics of their children (2.9 MB), and
// some 100 bytes for each node of 4096^3.
#pragma once

#include <nanovdb/util/GridChecksum.h>
#include <nanovdb/util/GridHandle.h>
#include <nanovdb/util/GridStats.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/foreign/vdb/tree_writer.hpp"

namespace quarry::vdb {

// Plain values that wait in a file without a name, and are read again in their order.
class Waiting {
 public:
  explicit Waiting(const std::filesystem::path& beside) {
    auto made = io::Spill::create(beside);
    if (!made) throw SpillFailure(made.error());
    spill_ = std::move(*made);
  }
  void put(const void* bytes, size_t count) { spill_->append({static_cast<const uint8_t*>(bytes), count}); }
  // A spill that has failed takes everything and says so here.
  void check() const {
    if (const auto good = spill_->good(); !good) throw SpillFailure(good.error());
  }
  void rewind() {
    next_ = 0;
    piece_.clear();
    at_ = 0;
  }
  bool ended() const { return at_ == piece_.size() && next_ == spill_->size(); }
  void take(void* out, size_t count) {
    for (auto* to = static_cast<uint8_t*>(out); count > 0;) {
      if (at_ == piece_.size()) refill();
      const size_t part = std::min(count, piece_.size() - at_);
      std::memcpy(to, piece_.data() + at_, part);
      to += part;
      at_ += part;
      count -= part;
    }
  }

 private:
  static constexpr uint64_t kPieceBytes = uint64_t(1) << 18;
  void refill() {
    piece_.resize(size_t(std::min(kPieceBytes, spill_->size() - next_)));
    at_ = 0;
    if (piece_.empty()) throw std::runtime_error("a file that waited is shorter than what was written");
    if (!spill_->read(next_, piece_)) check();
    next_ += piece_.size();
  }
  std::unique_ptr<io::Spill> spill_;
  uint64_t next_ = 0;
  std::vector<uint8_t> piece_;
  size_t at_ = 0;
};

// A brick as it came: its materials are the input of all grids.
struct NanoBrick {
  nanovdb::Coord origin;
  BrickMask mask;
  std::vector<uint8_t> materials;  // one for each voxel, in mask order

  void save(Waiting& to) const {
    to.put(&origin, sizeof origin);
    to.put(mask.data(), sizeof mask);
    to.put(materials.data(), materials.size());
  }
  void load(Waiting& from) {
    from.take(&origin, sizeof origin);
    from.take(mask.data(), sizeof mask);
    size_t voxels = 0;
    for (const uint64_t word : mask) voxels += size_t(std::popcount(word));
    materials.resize(voxels);
    from.take(materials.data(), voxels);
  }
};

// A node of the library, whose classes only live in buffers.
template <class Node>
class NodeBuffer {
 public:
  NodeBuffer() : bytes_(static_cast<uint8_t*>(std::aligned_alloc(NANOVDB_DATA_ALIGNMENT, sizeof(Node)))) {
    if (!bytes_) throw std::bad_alloc();
    zero(0);
  }
  ~NodeBuffer() { std::free(bytes_); }
  NodeBuffer(const NodeBuffer&) = delete;
  NodeBuffer& operator=(const NodeBuffer&) = delete;
  Node* operator->() { return reinterpret_cast<Node*>(bytes_); }
  uint8_t* bytes() { return bytes_; }
  void zero(size_t from) { std::memset(bytes_ + from, 0, sizeof(Node) - from); }

 private:
  uint8_t* bytes_;
};

template <class T>
class NanoTreeWriter {
 public:
  using Root = nanovdb::NanoRoot<T>;
  using Upper = nanovdb::NanoUpper<T>;  // 4096^3
  using Lower = nanovdb::NanoLower<T>;  // 128^3
  using Leaf = nanovdb::NanoLeaf<T>;
  using Coord = nanovdb::Coord;
  using Handle = nanovdb::GridHandle<nanovdb::HostBuffer>;
  static_assert(Leaf::DIM == 8 && Lower::DIM == 128 && Upper::DIM == 4096);

  // Exceptions of spills and of the library pass through here and below.
  explicit NanoTreeWriter(const std::filesystem::path& beside)
      : uppers_(beside), lowers_(beside), leaf_heads_(beside) {}

  // A brick with a voxel, behind those before it in the order of the tree. A full one of one value becomes a tile, as
  // openvdb's Tree::prune() would make it, and so do nodes of such tiles.
  template <class ValueOf>
  void add(const NanoBrick& brick, const ValueOf& value_of) {
    const Coord at = origin_of<Lower>(brick.origin);
    const uint32_t j = Lower::CoordToOffset(brick.origin);
    if (!lower_.used || lower_.origin != at) open_lower(brick.origin);
    else if (j <= lower_.last) throw std::runtime_error("the bricks are not in order");
    lower_.last = j;
    const T first = value_of(brick.materials[0]);
    if (brick.materials.size() == kVoxelsPerBrick &&
        std::all_of(brick.materials.begin(), brick.materials.end(), [&](uint8_t m) { return value_of(m) == first; })) {
      lower_.active.setOn(j);
      lower_.values[j] = first;
      return;
    }
    lower_.children.setOn(j);
    leaf_.zero(0);
    leaf_->data()->setOrigin(brick.origin);
    for_each_voxel(brick.mask,
                   [&](uint32_t offset, size_t n) { leaf_->data()->setValue(offset, value_of(brick.materials[n])); });
    leaf_->updateBBox();
    auto* data = leaf_->data();
    NodeStats stats;
    stats.box[0] = stats.box[1] = data->mBBoxMin;
    stats.box[1] += Coord(data->mBBoxDif[0], data->mBBoxDif[1], data->mBBoxDif[2]);
    for (auto it = data->mValueMask.beginOn(); it; ++it) stats.values.add(data->getValue(*it));
    set_stats(data, stats);
    leaf_heads_.put(leaf_.bytes(), kLeafHead);
    lower_.stats.push_back(stats);
    ++leaf_count_;
    voxel_count_ += brick.materials.size();
  }
  // There are no more bricks.
  void end() {
    close_upper();
    if (leaf_count_ > UINT32_MAX) throw std::runtime_error("NanoVDB counts no more than 2^32 leaves");
    for (const Waiting* w : {&uppers_, &lowers_, &leaf_heads_}) w->check();
  }

  // What follows is for the file, after the end. The length of all of it:
  uint64_t bytes() const { return leaves_at() + leaf_count_ * sizeof(Leaf); }
  // Grid, tree and root. `empty` is the same grid without a voxel, as the library makes it.
  Handle head(const Handle& empty) {
    using GridData = nanovdb::GridData;
    using TreeData = nanovdb::TreeData<3>;
    Handle out(nanovdb::HostBuffer::create(uppers_at()));
    std::memset(out.data(), 0, uppers_at());
    std::memcpy(out.data(), empty.data(), sizeof(GridData) + sizeof(TreeData) + sizeof(Root));
    auto* grid = reinterpret_cast<GridData*>(out.data());
    auto* tree = reinterpret_cast<TreeData*>(out.data() + sizeof(GridData));
    auto* root = reinterpret_cast<Root*>(out.data() + kRootAt)->data();
    grid->mGridSize = bytes();
    tree->mNodeOffset[0] = leaf_count_ ? leaves_at() - sizeof(GridData) : 0;
    tree->mNodeOffset[1] = lower_count_ ? lowers_at() - sizeof(GridData) : 0;
    tree->mNodeOffset[2] = upper_count_ ? uppers_at() - sizeof(GridData) : 0;
    tree->mNodeCount[0] = uint32_t(leaf_count_);
    tree->mNodeCount[1] = lower_count_;
    tree->mNodeCount[2] = upper_count_;
    tree->mTileCount[0] = lower_tiles_;
    tree->mTileCount[1] = upper_tiles_;
    tree->mVoxelCount = voxel_count_ + lower_tiles_ * Leaf::NUM_VALUES + upper_tiles_ * Lower::NUM_VALUES;
    NodeStats total;
    uint64_t upper = 0;
    for (const RootTile& from : tiles_) {
      auto* tile = root->tile(root->mTableSize++);
      if (from.is_child) {
        tile->key = Root::DataType::CoordToKey(from.origin);
        tile->child = int64_t(uppers_at() + upper++ * sizeof(Upper) - kRootAt);
      } else {
        tile->setValue(from.origin, true, from.value);
        ++tree->mTileCount[2];
        tree->mVoxelCount += Upper::NUM_VALUES;
      }
      total.add(from.stats);
    }
    root->setMin(total.values.min());
    root->setMax(total.values.max());
    root->setAvg(total.values.avg());
    root->setDev(total.values.std());
    root->mBBox = total.box;
    set_world_box(*grid, total.box);
    grid->setBBoxOn(true);
    nanovdb::updateChecksum(*reinterpret_cast<nanovdb::NanoGrid<T>*>(out.data()), nanovdb::ChecksumMode::Default);
    return out;
  }
  // All behind the head, to put(const void*, size_t). `bricks` are those that were added, in their order.
  template <class Put, class ValueOf>
  void write_nodes(Waiting& bricks, const ValueOf& value_of, const Put& put) {
    uint64_t child = 0;
    for (uint64_t i = 0; i < upper_count_; ++i)
      put(load_node(uppers_, upper_node_, uppers_at() + i * sizeof(Upper), lowers_at(), child), sizeof(Upper));
    child = 0;
    for (uint64_t i = 0; i < lower_count_; ++i)
      put(load_node(lowers_, lower_node_, lowers_at() + i * sizeof(Lower), leaves_at(), child), sizeof(Lower));
    NanoBrick brick;
    bricks.rewind();
    for (uint64_t i = 0; i < leaf_count_; ++i) {
      leaf_.zero(kLeafHead);
      leaf_heads_.take(leaf_.bytes(), kLeafHead);
      do {
        brick.load(bricks);  // tiles are in between
      } while (brick.origin != origin_of<Leaf>(leaf_->data()->mBBoxMin));
      for_each_voxel(brick.mask, [&](uint32_t offset, size_t n) {
        leaf_->data()->setValueOnly(offset, value_of(brick.materials[n]));
      });
      put(leaf_.bytes(), sizeof(Leaf));
    }
  }

 private:
  static constexpr size_t kRootAt = sizeof(nanovdb::GridData) + sizeof(nanovdb::TreeData<3>);
  static constexpr size_t kLeafHead = offsetof(typename Leaf::DataType, mValues);

  struct NodeStats {
    nanovdb::Stats<T> values;
    nanovdb::CoordBBox box;
    void add_tile(const T& value, uint64_t voxels, const Coord& origin, int32_t edge) {
      values.add(value, voxels);
      box[0].minComponent(origin);
      box[1].maxComponent(origin + Coord(edge - 1));
    }
    void add(const NodeStats& other) {
      values.add(other.values);
      box[0].minComponent(other.box[0]);
      box[1].maxComponent(other.box[1]);
    }
  };
  struct RootTile {
    Coord origin;
    bool is_child;
    T value;
    NodeStats stats;
  };
  // A node whose children come one by one.
  template <class Node>
  struct Open {
    using Mask = std::decay_t<decltype(std::declval<typename Node::DataType&>().mValueMask)>;
    static constexpr uint32_t kPlaces = 1u << (3 * Node::LOG2DIM);
    bool used = false;
    Coord origin;
    uint32_t last = 0;  // the number of the last child
    Mask children, active;
    std::vector<T> values = std::vector<T>(kPlaces);
    std::vector<NodeStats> stats;  // of the children

    void open(const Coord& at) {
      used = true;
      origin = origin_of<Node>(at);
      children.setOff();
      active.setOff();
      std::fill(values.begin(), values.end(), T(0));
      stats.clear();
    }
    // Whether the node is a tile.
    bool constant() const {
      return children.isOff() && active.isOn() &&
             std::all_of(values.begin(), values.end(), [&](const T& v) { return v == values[0]; });
    }
  };
  template <class Node>
  static Coord origin_of(const Coord& at) {
    return at & ~int32_t(Node::DIM - 1);
  }
  template <class Data>
  static void set_stats(Data* data, const NodeStats& stats) {
    data->setMin(stats.values.min());
    data->setMax(stats.values.max());
    data->setAvg(stats.values.avg());
    data->setDev(stats.values.std());
  }
  uint64_t uppers_at() const { return kRootAt + Root::memUsage(uint32_t(tiles_.size())); }
  uint64_t lowers_at() const { return uppers_at() + upper_count_ * sizeof(Upper); }
  uint64_t leaves_at() const { return lowers_at() + lower_count_ * sizeof(Lower); }

  void open_lower(const Coord& at) {
    close_lower();
    const Coord upper = origin_of<Upper>(at);
    const uint32_t i = Upper::CoordToOffset(at);
    if (!upper_.used || upper_.origin != upper) {
      const bool first = !upper_.used && tiles_.empty();
      close_upper();
      if (!first && !(tiles_.back().origin < upper)) throw std::runtime_error("the bricks are not in order");
      upper_.open(at);
    } else if (i <= upper_.last) {
      throw std::runtime_error("the bricks are not in order");
    }
    upper_.last = i;
    lower_.open(at);
  }
  void close_lower() {
    if (!lower_.used) return;
    lower_.used = false;
    if (lower_.constant()) {
      upper_.active.setOn(upper_.last);
      upper_.values[upper_.last] = lower_.values[0];
    } else {
      upper_.children.setOn(upper_.last);
      upper_.stats.push_back(save_node(lower_, lower_node_, lowers_));
      lower_tiles_ += lower_.active.countOn();
      ++lower_count_;
    }
    for (const Waiting* w : {&lowers_, &leaf_heads_}) w->check();
  }
  void close_upper() {
    close_lower();
    if (!upper_.used) return;
    upper_.used = false;
    RootTile tile{upper_.origin, !upper_.constant(), upper_.values[0], {}};
    if (tile.is_child) {
      tile.stats = save_node(upper_, upper_node_, uppers_);
      upper_tiles_ += upper_.active.countOn();
      ++upper_count_;
    } else {
      tile.stats.add_tile(tile.value, Upper::NUM_VALUES, tile.origin, Upper::DIM);
    }
    tiles_.push_back(tile);
  }
  // Without its table, of which only tiles are kept. Statistics are those of tiles first, then of children.
  template <class Node>
  static NodeStats save_node(const Open<Node>& from, NodeBuffer<Node>& node, Waiting& to) {
    using Child = typename Node::ChildNodeType;
    node.zero(0);
    auto* data = node->data();
    data->setOrigin(from.origin);
    data->mValueMask = from.active;
    data->mChildMask = from.children;
    NodeStats total;
    for (auto it = from.active.beginOn(); it; ++it)
      total.add_tile(from.values[*it], Child::NUM_VALUES, node->offsetToGlobalCoord(*it), Child::DIM);
    for (const NodeStats& child : from.stats) total.add(child);
    data->mBBox = total.box;
    data->mFlags = 2;  // it has active values
    set_stats(data, total);
    to.put(node.bytes(), table_at<Node>());
    for (auto it = from.active.beginOn(); it; ++it) to.put(&from.values[*it], sizeof(T));
    return total;
  }
  // The node at `at` in the buffer, whose children are those from number `child` on of a section of nodes.
  template <class Node>
  static const uint8_t* load_node(Waiting& from, NodeBuffer<Node>& node, uint64_t at, uint64_t children_at,
                                  uint64_t& child) {
    node.zero(table_at<Node>());
    from.take(node.bytes(), table_at<Node>());
    auto* data = node->data();
    for (auto it = data->mValueMask.beginOn(); it; ++it) from.take(&data->mTable[*it].value, sizeof(T));
    for (auto it = data->mChildMask.beginOn(); it; ++it)
      data->mTable[*it].child = int64_t(children_at + child++ * sizeof(typename Node::ChildNodeType) - at);
    return node.bytes();
  }
  template <class Node>
  static constexpr size_t table_at() {
    return offsetof(typename Node::DataType, mTable);
  }
  // The box about the corners of the index box, whose upper end is that of its last voxels.
  static void set_world_box(nanovdb::GridData& grid, const nanovdb::CoordBBox& box) {
    const Coord ends[2] = {box[0], box[1] + Coord(1)};
    auto& world = grid.mWorldBBox;
    for (int corner = 0; corner < 8; ++corner) {
      const auto at =
          grid.applyMap(nanovdb::Vec3d(ends[corner & 1][0], ends[corner >> 1 & 1][1], ends[corner >> 2][2]));
      if (corner == 0) world[0] = world[1] = at;
      else world.expand(at);
    }
  }

  Waiting uppers_, lowers_, leaf_heads_;
  Open<Upper> upper_;
  Open<Lower> lower_;
  NodeBuffer<Upper> upper_node_;
  NodeBuffer<Lower> lower_node_;
  NodeBuffer<Leaf> leaf_;
  std::vector<RootTile> tiles_;
  uint64_t leaf_count_ = 0, voxel_count_ = 0;
  uint32_t upper_count_ = 0, lower_count_ = 0, upper_tiles_ = 0, lower_tiles_ = 0;
};

}  // namespace quarry::vdb
