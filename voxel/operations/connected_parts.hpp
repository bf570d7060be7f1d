// SPDX-License-Identifier: Apache-2.0
// connected_parts.hpp - the connected components of a volume's voxels: what holds together, and what falls down.
//
// Each brick's voxels are labelled by themselves, by filling slices of 64 voxels at a time; a brick whose voxels are
// one component, full bricks among them, needs no labels. Then components of bricks that touch are joined by all
// threads in one lock-free forest: Anderson and Woll, "Wait-free parallel algorithms for the union-find problem", 1991,
// with links to the lower number. The lowest number is therefore a part's root, whichever thread comes first.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/operations/columns.hpp"
#include "voxel/operations/morphology.hpp"

namespace quarry {

struct ConnectedPart {
  uint64_t voxels = 0;
  Box3 box;              // tight, in voxels
  uint8_t material = 0;  // the commonest; of several the lowest
  friend bool operator==(const ConnectedPart&, const ConnectedPart&) = default;
};

// Where a part begins: its first brick in the order of x, then y, then z, and there its first component: the order of
// these is the order of parts of equal size.
struct PartBegin {
  Int3 brick;
  uint32_t component = 0;
  friend auto operator<=>(const PartBegin&, const PartBegin&) = default;
};

// Bricks of some parts that others may lie beside, without materials: by these, parts that were found apart are joined.
class PartBorder {
 public:
  using Touch = std::function<void(uint32_t own, uint32_t others)>;
  // Shows the parts that touch, of this border and of one whose bricks are at other places; the same two more than
  // once.
  void meet(const PartBorder& other, Connectivity neighbours, const Touch& touch) const;
  // Of a box of full bricks, which are one part, number 0: all of them but those in the other box.
  static PartBorder of_full(const Box3& bricks, const Box3& without);

 private:
  friend class ConnectedParts;
  struct Brick {
    Int3 at;
    uint32_t first = 0;   // in parts_, of its components
    uint32_t slices = 0;  // in slices_, + 1; 0: it is full
    uint32_t labels = 0;  // in labels_, + 1; 0: there is one component
  };
  std::vector<Brick> bricks_;    // rising
  std::vector<uint32_t> parts_;  // of each component
  std::vector<std::array<uint64_t, 8>> slices_;
  std::vector<std::array<uint8_t, kVoxelsPerBrick>> labels_;
  Box3 box_;  // of the bricks
};

// The parts of a map, which it keeps handles of. Free-threaded once it is made.
class ConnectedParts {
 public:
  // The same parts in the same order, whatever the number of threads. Errors: unsupported (2^32 components of bricks),
  // cancelled.
  // Cost: 1 to 2 us of a core for a brick whose voxels are connected, more the more components it has. Memory: 36
  // bytes a brick while it lives, 64 more while it works, and 512 for each brick with several components.
  static Result<ConnectedParts> find(const BrickMap& bricks, Connectivity neighbours, const Progress& progress = {});

  // The largest first; those of equal size by their first brick in the order of x, then y, then z, and in one brick by
  // their first voxel in the order of z, then y, then x.
  std::span<const ConnectedPart> parts() const { return parts_; }
  // How many parts have at least that many voxels. They are the first.
  size_t at_least(uint64_t voxels) const;
  // The bricks of the first `count` parts together. Bricks that lose no voxel are shared. On all threads.
  BrickMap first(size_t count) const;
  // The same of the parts that are chosen, one of all for each.
  BrickMap some(std::span<const uint8_t> chosen) const;
  // The bricks of each of the first `count` parts; a brick that is of one part is shared. On all threads.
  std::vector<BrickMap> each(size_t count) const;
  // Where each part begins.
  std::vector<PartBegin> begins() const;
  // All bricks but those in the box.
  PartBorder border(const Box3& without) const;

 private:
  friend class PartFinder;
  using Labels = std::array<uint8_t, kVoxelsPerBrick>;  // the component of each voxel that is there

  ConnectedParts() = default;
  size_t components(size_t brick) const { return firsts_[brick + 1] - firsts_[brick]; }
  // The part of a brick's component.
  uint32_t part_of(size_t brick, uint32_t component) const { return part_of_[firsts_[brick] + component]; }
  // The brick's voxels of parts that are chosen.
  template <class Chosen>
  SharedBrick chosen(size_t brick, const Chosen& chosen) const;
  template <class Chosen>
  BrickMap map_of(const Chosen& chosen) const;

  operations_detail::Columns bricks_;
  std::vector<uint32_t> firsts_;       // the number of each brick's first component, and that of all
  std::vector<const Labels*> labels_;  // of bricks with several components
  std::vector<std::vector<std::unique_ptr<Labels>>> kept_labels_;
  std::vector<uint32_t> part_of_;  // of each component
  std::vector<ConnectedPart> parts_;
};

}  // namespace quarry
