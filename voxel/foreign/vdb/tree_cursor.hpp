// SPDX-License-Identifier: Apache-2.0
// tree_cursor.hpp - reads the tree of a grid from its file from front to back, one node of 128^3 voxels and one leaf of
// 8^3 at a time. OpenVDB itself reads trees whole.
//
// The file has the nodes' masks and tile values first and the leaves' values behind them, both in the order of the
// tree: nodes of 4096^3 rising by x, y, z, in each its nodes of 128^3, in each its leaves. So two streams on the file,
// one on either part, that go forward together pass all of it in the memory of one node (0.5 MB if all its leaves are
// there) and the masks and tiles of the one above (0.5 MB). Trees that are read side by side, a shape's and its
// colours', meet in that order, too.
#pragma once

#include <openvdb/io/GridDescriptor.h>
#include <openvdb/openvdb.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace quarry::vdb {

// A stream with the settings that the library reads nodes by. It throws at the file's end.
struct NodeStream {
  openvdb::io::StreamMetadata::Ptr state{new openvdb::io::StreamMetadata};  // the stream knows its address
  std::ifstream in;
  NodeStream() = default;
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;
};

// Where a file has its grids.
class GridPlaces : public openvdb::io::Archive {
 public:
  // Exceptions of the library and of streams pass through.
  explicit GridPlaces(const std::filesystem::path& file) : file_(file) {
    const auto stream = open();
    std::ifstream& in = stream->in;
    // Of older files, nodes are laid out otherwise.
    if (!inputHasGridOffsets() || fileVersion() < openvdb::OPENVDB_FILE_VERSION_MULTIPASS_IO) return;
    openvdb::MetaMap().readMeta(in);
    for (int32_t n = readGridCount(in); n > 0; --n) {
      openvdb::io::GridDescriptor grid;
      grid.read(in);
      grid.seekToEnd(in);
      grids_.emplace(openvdb::io::GridDescriptor::nameAsString(grid.uniqueName()), std::move(grid));
    }
  }
  // The grid of this unique name; null if its tree cannot be read from front to back.
  const openvdb::io::GridDescriptor* find(const std::string& name) const {
    const auto found = grids_.find(name);
    return found == grids_.end() || found->second.isInstance() ? nullptr : &found->second;
  }
  // A stream on the file behind its header.
  std::unique_ptr<NodeStream> open() {
    auto stream = std::make_unique<NodeStream>();
    std::ifstream& in = stream->in;
    in.exceptions(std::ios::failbit | std::ios::badbit);
    in.open(file_, std::ios::binary);
    openvdb::io::setStreamMetadataPtr(in, stream->state, false);
    readHeader(in);
    setFormatVersion(in);
    setLibraryVersion(in);
    setDataCompression(in);
    return stream;
  }
  // The same behind the grid's own settings, metadata and transform, which `grid` gets.
  std::unique_ptr<NodeStream> open(const openvdb::io::GridDescriptor& place, openvdb::GridBase& grid) {
    if (place.getEndPos() < 0 || uint64_t(place.getEndPos()) > std::filesystem::file_size(file_))
      throw std::runtime_error("the file ends within grid '" + place.gridName() + "'");
    auto stream = open();
    place.seekToGrid(stream->in);
    readGridCompression(stream->in);
    grid.readMeta(stream->in);
    grid.readTransform(stream->in);
    return stream;
  }

 private:
  std::filesystem::path file_;
  std::map<std::string, openvdb::io::GridDescriptor> grids_;
};

template <class GridType>
class TreeCursor {
 public:
  using Tree = typename GridType::TreeType;
  using Upper = typename Tree::RootNodeType::ChildNodeType;  // 4096^3
  using Lower = typename Upper::ChildNodeType;               // 128^3
  using Leaf = typename Lower::ChildNodeType;
  using Value = typename Tree::ValueType;
  using Coord = openvdb::Coord;
  static_assert(Leaf::DIM == 8 && Lower::DIM == 128 && Upper::DIM == 4096);

  // Exceptions of the library and of streams pass through here and below; a stream's is one of the file's end, or of
  // its damage.
  TreeCursor(GridPlaces& places, const openvdb::io::GridDescriptor& place) : place_(place) {
    const auto grid = GridType::create();
    nodes_ = places.open(place, *grid);
    leaves_ = places.open(place, *grid);
    half_ = grid->saveFloatAsHalf();
    place.seekToBlocks(leaves_->in);
    number<int32_t>();  // of buffers, which has long been 1
    nodes_->in.read(reinterpret_cast<char*>(&background_), sizeof background_);
    for (NodeStream* s : {nodes_.get(), leaves_.get()}) openvdb::io::setGridBackgroundValuePtr(s->in, &background_);
    const auto tiles = number<uint32_t>();
    uppers_left_ = number<uint32_t>();
    for (uint32_t n = 0; n < tiles; ++n) {
      const Coord at = upper_place();
      Tile tile;
      nodes_->in.read(reinterpret_cast<char*>(&tile.value), sizeof tile.value);
      tile.active = number<uint8_t>() != 0;
      tiles_[at] = tile;
    }
  }
  TreeCursor(const TreeCursor&) = delete;
  TreeCursor& operator=(const TreeCursor&) = delete;

  // Shows the whole tree in its order: on_leaf(origin, leaf) and on_tile(origin, edge in voxels, value, active), also
  // tiles of the background. Both return false to end it.
  template <class OnLeaf, class OnTile>
  void visit(const OnLeaf& on_leaf, const OnTile& on_tile) {
    auto tile = tiles_.begin();
    const auto tiles_before = [&](const Coord* upper) {
      for (; tile != tiles_.end() && (!upper || tile->first < *upper); ++tile)
        if (!on_tile(tile->first, int(Upper::DIM), tile->second.value, tile->second.active)) return false;
      return true;
    };
    while (uppers_left_ > 0) {
      read_upper();
      if (!tiles_before(&upper_->origin)) return;
      for (openvdb::Index i = 0; i < Upper::NUM_VALUES; ++i) {
        const Coord place = place_in<Upper>(upper_->origin, i);
        if (!upper_->children.isOn(i)) {
          if (!on_tile(place, int(Lower::DIM), upper_->values[i], upper_->active.isOn(i))) return;
          continue;
        }
        read_lower(i);
        for (openvdb::Index j = 0; j < Lower::NUM_VALUES; ++j) {
          const Coord origin = place_in<Lower>(place, j);
          const bool leaf = lower_->getChildMask().isOn(j);
          if (leaf) read_leaf(j);
          if (leaf ? !on_leaf(origin, *leaf_)
                   : !on_tile(origin, int(Leaf::DIM), lower_->getValue(origin), lower_->getValueMask().isOn(j)))
            return;
        }
      }
    }
    if (!tiles_before(nullptr)) return;
    // A file whose parts overlap is damaged, whatever they say.
    if (nodes_->in.tellg() != std::streamoff(place_.getBlockPos()))
      throw std::runtime_error("the nodes of a grid do not end where its values begin");
  }

  // Goes forward to the 8^3 voxels at `origin`, which come rising in the order of the tree. value() is of them then.
  void seek(const Coord& origin) {
    const Coord upper = origin & ~int(Upper::DIM - 1);
    while (uppers_left_ > 0 && (!upper_ || upper_->origin < upper)) {
      leave_upper();
      read_upper();
    }
    leaf_.reset();
    if (!upper_ || upper_->origin != upper) {
      const auto tile = tiles_.find(upper);
      constant_ = tile == tiles_.end() ? background_ : tile->second.value;
      return;
    }
    const openvdb::Index i = Upper::coordToOffset(origin);
    leave_lowers(i);
    if (!upper_->children.isOn(i)) {
      constant_ = upper_->values[i];
      return;
    }
    if (!lower_) read_lower(i);
    const openvdb::Index j = Lower::coordToOffset(origin);
    skip_leaves(j);
    if (lower_->getChildMask().isOn(j)) read_leaf(j);
    else constant_ = lower_->getValue(origin);
  }
  Value value(const Coord& voxel) const { return leaf_ ? leaf_->getValue(voxel) : constant_; }

 private:
  struct Tile {
    Value value;
    bool active;
  };
  // A node of 4096^3 whose children come one by one.
  struct UpperNode {
    Coord origin;
    typename Upper::NodeMaskType children, active;
    std::unique_ptr<Value[]> values;
  };

  template <class T>
  T number() {
    T out{};
    nodes_->in.read(reinterpret_cast<char*>(&out), sizeof out);
    return out;
  }
  Coord upper_place() {
    constexpr int kFar = 1 << 30;
    const auto x = number<int32_t>(), y = number<int32_t>(), z = number<int32_t>();
    for (const int32_t v : {x, y, z})
      if (v % int(Upper::DIM) != 0 || v < -kFar || v >= kFar)
        throw std::runtime_error("a node is at a place where none can be");
    return {x, y, z};
  }
  template <class Node>
  static Coord place_in(const Coord& origin, openvdb::Index i) {
    Coord local;
    Node::offsetToLocalCoord(i, local);
    return origin + Coord(local.x() << Node::ChildNodeType::TOTAL, local.y() << Node::ChildNodeType::TOTAL,
                          local.z() << Node::ChildNodeType::TOTAL);
  }

  void read_upper() {
    --uppers_left_;
    const Coord origin = upper_place();
    if (upper_ && !(upper_->origin < origin)) throw std::runtime_error("the nodes of a grid are not in order");
    if (!upper_) {
      upper_.emplace();
      upper_->values.reset(new Value[Upper::NUM_VALUES]);
    }
    upper_->origin = origin;
    upper_->children.load(nodes_->in);
    upper_->active.load(nodes_->in);
    openvdb::io::readCompressedValues(nodes_->in, upper_->values.get(), openvdb::Index(Upper::NUM_VALUES),
                                      upper_->active, half_);
    lower_.reset();
    next_lower_ = 0;
  }
  void read_lower(openvdb::Index i) {
    lower_.reset(new Lower(openvdb::PartialCreate(), place_in<Upper>(upper_->origin, i), background_));
    lower_->readTopology(nodes_->in, half_);
    lower_at_ = i;
    next_lower_ = i + 1;
    next_leaf_ = 0;
  }
  // The leaf is no longer its node's, so that its values go when the next one comes.
  Leaf* take_leaf(openvdb::Index j) {
    next_leaf_ = j + 1;
    return lower_->template stealNode<Leaf>(place_in<Lower>(lower_->origin(), j), background_, false);
  }
  void read_leaf(openvdb::Index j) {
    leaf_.reset(take_leaf(j));
    leaf_->readBuffers(leaves_->in, half_);
  }
  void skip_leaves(openvdb::Index end) {
    // Where a stream can seek, it does so past values; but for values that are read that would only cost time.
    const openvdb::CoordBBox nowhere(Coord::min(), Coord::min());
    leaves_->state->setSeekable(true);
    for (openvdb::Index j = lower_->getChildMask().findNextOn(next_leaf_); j < end;
         j = lower_->getChildMask().findNextOn(next_leaf_))
      std::unique_ptr<Leaf>(take_leaf(j))->readBuffers(leaves_->in, nowhere, half_);
    leaves_->state->setSeekable(false);
  }
  // Passes the nodes of 128^3 before number `end`. Then either that one is read already, or none is.
  void leave_lowers(openvdb::Index end) {
    if (lower_ && lower_at_ == end) return;
    if (lower_) skip_leaves(Lower::NUM_VALUES);
    for (openvdb::Index i = upper_->children.findNextOn(next_lower_); i < end;
         i = upper_->children.findNextOn(next_lower_)) {
      read_lower(i);
      skip_leaves(Lower::NUM_VALUES);
    }
    lower_.reset();
  }
  void leave_upper() {
    if (upper_) leave_lowers(Upper::NUM_VALUES);
  }

  const openvdb::io::GridDescriptor place_;
  std::unique_ptr<NodeStream> nodes_, leaves_;
  bool half_ = false;
  Value background_{};
  std::map<Coord, Tile> tiles_;
  uint32_t uppers_left_ = 0;
  std::optional<UpperNode> upper_;
  std::unique_ptr<Lower> lower_;
  openvdb::Index lower_at_ = 0, next_lower_ = 0, next_leaf_ = 0;
  std::unique_ptr<Leaf> leaf_;  // what value() is of; null: constant_
  Value constant_{};
};

}  // namespace quarry::vdb
