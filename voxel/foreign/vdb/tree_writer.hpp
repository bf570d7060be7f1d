// SPDX-License-Identifier: Apache-2.0
// tree_writer.hpp - makes the tree of a grid, as a file has it, of leaves that come in the order of the tree. OpenVDB
// itself writes trees that are whole in memory.
//
//   topology: root: tiles, number of nodes | node of 4096^3: place, masks, tiles | its nodes of 128^3: masks, tiles,
//             masks of leaves | the next node of 4096^3 ...
//   buffers:  values of all leaves
//   before:   the grid's metadata, with how long each leaf's values are
//
// What is in front is known last. So these parts grow side by side in files without a name, from which they are copied.
// Memory: the masks and tiles of one node of either kind (0.5 MB for colours), and 17 bytes a leaf for the lengths, but
// at most 9 MB.
#pragma once

#include <openvdb/io/Compression.h>
#include <openvdb/io/DelayedLoadMetadata.h>
#include <openvdb/openvdb.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <vector>

#include "voxel/io/files/spill.hpp"

namespace quarry::vdb {

// Why a spill failed. The caller has its sentence, with the system's reason.
struct SpillFailure : std::runtime_error {
  explicit SpillFailure(Error e) : std::runtime_error(e.message), error(std::move(e)) {}
  Error error;
};

// An unnamed file for a library that writes into a stream.
class SpillStream : private std::streambuf {
 public:
  explicit SpillStream(const std::filesystem::path& beside) : out(this) {
    auto made = io::Spill::create(beside);
    if (!made) throw SpillFailure(made.error());
    spill_ = std::move(*made);
  }
  std::ostream out;
  uint64_t size() const { return spill_->size(); }
  // The library does not look whether its stream has failed.
  void check() const {
    if (const auto good = spill_->good(); !good) throw SpillFailure(good.error());
  }
  template <class T>
  void read(uint64_t at, std::span<T> out) {
    if (!spill_->read_all(at, out)) check();
  }
  // Appends [begin, end) to a file.
  void copy(uint64_t begin, uint64_t end, std::ostream& to) {
    std::vector<uint8_t> piece(size_t(std::min<uint64_t>(end - begin, kPieceBytes)));
    while (begin < end) {
      const auto part = std::span(piece).first(size_t(std::min<uint64_t>(end - begin, piece.size())));
      if (!spill_->read(begin, part)) check();
      to.write(reinterpret_cast<const char*>(part.data()), std::streamsize(part.size()));
      begin += part.size();
    }
  }

 private:
  static constexpr size_t kPieceBytes = size_t(1) << 20;
  int_type overflow(int_type c) override {
    const char letter = traits_type::to_char_type(c);
    xsputn(&letter, 1);
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    spill_->append({reinterpret_cast<const uint8_t*>(text), size_t(count)});
    return count;
  }
  std::unique_ptr<io::Spill> spill_;
};

// How long each leaf's values are, for readers that leave them in the file until they are needed. The library's own
// class has them in memory, and packs them; this one says them unpacked.
class LeafLengths : public openvdb::Metadata {
 public:
  using Length = int64_t;
  LeafLengths(SpillStream& lengths, uint64_t leaves) : lengths_(&lengths), leaves_(leaves) {}
  openvdb::Name typeName() const override { return openvdb::io::DelayedLoadMetadata::staticTypeName(); }
  Ptr copy() const override { return Ptr(new LeafLengths(*lengths_, leaves_)); }
  void copy(const Metadata&) override {}
  std::string str() const override { return ""; }
  bool asBool() const override { return false; }
  openvdb::Index32 size() const override {
    return openvdb::Index32(3 * sizeof(openvdb::Index32) + leaves_ * (sizeof kMask + sizeof(Length)));
  }

 protected:
  void readValue(std::istream&, openvdb::Index32) override {}
  void writeValue(std::ostream& out) const override {
    const auto count = openvdb::Index32(leaves_), unpacked = openvdb::Index32(0);
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    out.write(reinterpret_cast<const char*>(&unpacked), sizeof unpacked);
    for (uint64_t i = 0; i < leaves_; ++i) out.put(char(kMask));
    out.write(reinterpret_cast<const char*>(&unpacked), sizeof unpacked);
    lengths_->copy(0, lengths_->size(), out);
  }

 private:
  static constexpr int8_t kMask = openvdb::io::NO_MASK_OR_INACTIVE_VALS;
  SpillStream* lengths_;
  uint64_t leaves_;
};

template <class GridType>
class TreeWriter {
 public:
  using Tree = typename GridType::TreeType;
  using Root = typename Tree::RootNodeType;
  using Upper = typename Root::ChildNodeType;   // 4096^3
  using Lower = typename Upper::ChildNodeType;  // 128^3
  using Leaf = typename Lower::ChildNodeType;
  using Value = typename Tree::ValueType;
  using Coord = openvdb::Coord;
  static_assert(Leaf::DIM == 8 && Lower::DIM == 128 && Upper::DIM == 4096);

  // `compression`: that of the grid in the file. Exceptions of spills and of the library pass through here and below.
  TreeWriter(const std::filesystem::path& beside, uint32_t compression)
      : uppers_(beside), lowers_(beside), values_(beside), lengths_(beside) {
    for (SpillStream* s : {&uppers_, &lowers_, &values_}) {
      s->out.exceptions(std::ios::failbit | std::ios::badbit);
      openvdb::io::setDataCompression(s->out, compression);
      openvdb::io::setGridBackgroundValuePtr(s->out, &background_);
    }
  }
  TreeWriter(const TreeWriter&) = delete;
  TreeWriter& operator=(const TreeWriter&) = delete;

  // A leaf with an active voxel, behind those before it in the order of the tree. One whose voxels are all active and
  // alike becomes a tile, as Tree::prune() would make it, and so do nodes of such tiles.
  void add(const Leaf& leaf) {
    const Coord origin = leaf.origin();
    const openvdb::Index j = Lower::coordToOffset(origin);
    if (!lower_.used || lower_.origin != (origin & ~int(Lower::DIM - 1))) open_lower(origin);
    else if (j <= lower_.last) throw std::runtime_error("the bricks are not in order");
    lower_.last = j;
    Value value = background_;
    bool active = false;
    if (leaf.isConstant(value, active)) {
      lower_.values[j] = value;
      lower_.active.set(j, active);
      return;
    }
    lower_.children.setOn(j);
    leaf_masks_.push_back(leaf.valueMask());
    const uint64_t before = values_.size();
    leaf.writeBuffers(values_.out);
    // Inactive values are the background, of which nothing is written.
    const auto length = LeafLengths::Length(values_.size() - before - leaf.valueMask().memUsage() - sizeof(int8_t));
    lengths_.out.write(reinterpret_cast<const char*>(&length), sizeof length);
    ++leaves_;
  }
  // There are no more leaves.
  void end() {
    close_upper();
    for (const SpillStream* s : {&uppers_, &lowers_, &values_, &lengths_}) s->check();
  }

  // What follows is for the file, after the end. How long the leaves' values are:
  void put_lengths(openvdb::GridBase& grid) {
    constexpr uint64_t kMostInMemory = uint64_t(1) << 19;
    const char* const key = openvdb::GridBase::META_FILE_DELAYED_LOAD;
    if (leaves_ > kMostInMemory) {
      if (leaves_ < UINT32_MAX / 9) grid.insertMeta(key, LeafLengths(lengths_, leaves_));
      return;
    }
    grid.insertMeta(key, openvdb::io::DelayedLoadMetadata());
    const auto all = grid.getMetadata<openvdb::io::DelayedLoadMetadata>(key);
    all->resizeMask(leaves_);
    all->resizeCompressedSize(leaves_);
    std::vector<LeafLengths::Length> piece(4096);
    for (uint64_t i = 0; i < leaves_; ++i) {
      if (i % piece.size() == 0)
        lengths_.read(i * sizeof piece[0], std::span(piece).first(std::min(piece.size(), size_t(leaves_ - i))));
      all->setMask(i, openvdb::io::NO_MASK_OR_INACTIVE_VALS);
      all->setCompressedSize(i, piece[i % piece.size()]);
    }
  }
  // The same as that of a tree in memory.
  openvdb::Index64 memory_bytes() const {
    return sizeof(Tree) + sizeof(Root) + nodes_.size() * node_bytes(upper_) + lower_count_ * node_bytes(lower_) +
           leaves_ * Leaf(Coord(), background_).memUsage();
  }
  void write_topology(std::ostream& out) {
    const auto put = [&out](const auto& v) { out.write(reinterpret_cast<const char*>(&v), sizeof v); };
    put(int32_t(1));  // of buffers
    put(background_);
    put(openvdb::Index(tiles_.size()));
    put(openvdb::Index(nodes_.size()));
    for (const Tile& tile : tiles_) {
      for (const int32_t v : {tile.origin.x(), tile.origin.y(), tile.origin.z()}) put(v);
      put(tile.value);
      put(uint8_t(tile.active));
    }
    Node before{};
    for (const Node& node : nodes_) {
      uppers_.copy(before.upper_end, node.upper_end, out);
      lowers_.copy(before.lowers_end, node.lowers_end, out);
      before = node;
    }
  }
  void write_buffers(std::ostream& out) { values_.copy(0, values_.size(), out); }

 private:
  struct Tile {
    Coord origin;
    Value value;
    bool active;
  };
  struct Node {
    uint64_t upper_end, lowers_end;  // in their files
  };
  // A node whose children come one by one.
  template <class Kind>
  struct Open {
    bool used = false;
    Coord origin;
    openvdb::Index last = 0;  // the number of the last child
    typename Kind::NodeMaskType children, active;
    std::vector<Value> values = std::vector<Value>(Kind::NUM_VALUES);

    void open(const Coord& at) {
      used = true;
      origin = at & ~int(Kind::DIM - 1);
      children.setOff();
      active.setOff();
      std::fill(values.begin(), values.end(), openvdb::zeroVal<Value>());
    }
    // Whether the node is a tile.
    bool constant(bool* state) const {
      return children.isOff() && active.isConstant(*state) &&
             std::all_of(values.begin(), values.end(), [&](const Value& v) { return v == values[0]; });
    }
    void save(std::ostream& out) {
      children.save(out);
      active.save(out);
      openvdb::io::writeCompressedValues(out, values.data(), openvdb::Index(Kind::NUM_VALUES), active, children, false);
    }
  };
  template <class Kind>
  static openvdb::Index64 node_bytes(const Open<Kind>& node) {
    return Kind::NUM_VALUES * sizeof(typename Kind::UnionType) + node.children.memUsage() + node.active.memUsage() +
           sizeof(Coord);
  }

  void open_lower(const Coord& origin) {
    close_lower();
    const openvdb::Index i = Upper::coordToOffset(origin);
    if (!upper_.used || upper_.origin != (origin & ~int(Upper::DIM - 1))) {
      close_upper();
      if (any_ && !(upper_.origin < (origin & ~int(Upper::DIM - 1))))
        throw std::runtime_error("the bricks are not in order");
      any_ = true;
      upper_.open(origin);
    } else if (i <= upper_.last) {
      throw std::runtime_error("the bricks are not in order");
    }
    upper_.last = i;
    lower_.open(origin);
  }
  void close_lower() {
    if (!lower_.used) return;
    lower_.used = false;
    bool active = false;
    if (lower_.constant(&active)) {
      upper_.values[upper_.last] = lower_.values[0];
      upper_.active.set(upper_.last, active);
    } else {
      upper_.children.setOn(upper_.last);
      lower_.save(lowers_.out);
      for (const auto& mask : leaf_masks_) mask.save(lowers_.out);
      ++lower_count_;
    }
    leaf_masks_.clear();
    for (const SpillStream* s : {&lowers_, &values_}) s->check();
  }
  void close_upper() {
    close_lower();
    if (!upper_.used) return;
    upper_.used = false;
    bool active = false;
    if (upper_.constant(&active)) {
      tiles_.push_back({upper_.origin, upper_.values[0], active});
      return;
    }
    const Coord at = upper_.origin;
    for (const int32_t v : {at.x(), at.y(), at.z()}) uppers_.out.write(reinterpret_cast<const char*>(&v), sizeof v);
    upper_.save(uppers_.out);
    nodes_.push_back({uppers_.size(), lowers_.size()});
  }

  const Value background_ = openvdb::zeroVal<Value>();
  SpillStream uppers_, lowers_, values_, lengths_;
  Open<Upper> upper_;
  Open<Lower> lower_;
  bool any_ = false;
  std::vector<typename Leaf::NodeMaskType> leaf_masks_;  // of the node of 128^3
  std::vector<Tile> tiles_;
  std::vector<Node> nodes_;
  uint64_t lower_count_ = 0, leaves_ = 0;
};

}  // namespace quarry::vdb
