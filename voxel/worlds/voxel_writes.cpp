// SPDX-License-Identifier: Apache-2.0
// voxel_writes.cpp - lists are cut into pieces; each piece numbers its bricks, all pieces together sort theirs, and a
// counting sort brings the voxels of each brick together in the order of the list.
#include "voxel/worlds/voxel_writes.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <vector>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr size_t kPieceVoxels = size_t(1) << 16;  // a piece's bricks have numbers of 16 bits
constexpr size_t kWriteBricksPerTask = 64;

Int3 voxel_at(const VoxelWrites& writes, size_t i) {
  return {writes.xyz[3 * i], writes.xyz[3 * i + 1], writes.xyz[3 * i + 2]};
}

// Numbers bricks in the order in which they come. Open addressing with linear probing, at most half full.
class BrickNumbers {
 public:
  // At most 2^16 different ones between two clear().
  uint32_t number_of(Int3 brick) {
    for (size_t at = place_of(brick);; at = (at + 1) & (slots_.size() - 1)) {
      const uint32_t number = slots_[at];
      if (number == kEmpty) return add(at, brick);
      if (bricks_[number] == brick) return number;
    }
  }
  const std::vector<Int3>& bricks() const { return bricks_; }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), kEmpty);
    bricks_.clear();
  }

 private:
  static constexpr uint32_t kEmpty = std::numeric_limits<uint32_t>::max();

  size_t place_of(Int3 b) const {
    uint64_t h = uint64_t(uint32_t(b.x)) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ uint64_t(uint32_t(b.y))) * 0xD6E8FEB86659FD93u;
    h = (h ^ h >> 32 ^ uint64_t(uint32_t(b.z))) * 0x9E3779B97F4A7C15u;
    return size_t(h >> 32) & (slots_.size() - 1);
  }
  uint32_t add(size_t at, Int3 brick) {
    const auto number = uint32_t(bricks_.size());
    bricks_.push_back(brick);
    slots_[at] = number;
    if (bricks_.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 2, kEmpty);
      for (uint32_t i = 0; i < bricks_.size(); ++i) {
        size_t free = place_of(bricks_[i]);
        while (slots_[free] != kEmpty) free = (free + 1) & (slots_.size() - 1);
        slots_[free] = i;
      }
    }
    return number;
  }

  std::vector<uint32_t> slots_ = std::vector<uint32_t>(1024, kEmpty);
  std::vector<Int3> bricks_;
};

uint32_t differing_voxels(const Brick& a, const Brick& b) {
  uint32_t count = 0;
  for (size_t i = 0; i < kVoxelsPerBrick; ++i) count += a.materials[i] != b.materials[i];
  return count;
}

}  // namespace

Box3 bounds_of(const VoxelWrites& writes, uint32_t threads) {
  std::mutex lock;
  Box3 box;
  parallel_for(
      writes.count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        Int3 low = voxel_at(writes, begin), high = low;
        for (size_t i = begin + 1; i < end; ++i) {
          const Int3 v = voxel_at(writes, i);
          low = {std::min(low.x, v.x), std::min(low.y, v.y), std::min(low.z, v.z)};
          high = {std::max(high.x, v.x), std::max(high.y, v.y), std::max(high.z, v.z)};
        }
        const std::lock_guard hold(lock);
        box = united(box, {low, high});
      },
      threads);
  return box;
}

UndoRecord plan_bricks(const BrickMap& bricks, std::span<const Int3> places,
                       const std::function<void(size_t, Brick&)>& change, uint32_t threads) {
  struct Piece {
    std::vector<BrickChange> changes;
    uint64_t voxels = 0;
  };
  std::vector<Piece> pieces((places.size() + kWriteBricksPerTask - 1) / kWriteBricksPerTask);
  parallel_for(
      places.size(), kWriteBricksPerTask,
      [&](size_t begin, size_t end) {
        Piece& piece = pieces[begin / kWriteBricksPerTask];
        for (size_t i = begin; i < end; ++i) {
          SharedBrick before = bricks.share(places[i]);
          Brick brick = *before;
          change(i, brick);
          const uint32_t differing = differing_voxels(*before, brick);
          if (differing == 0) continue;
          piece.voxels += differing;
          piece.changes.push_back({places[i], std::move(before), SharedBrick(brick)});
        }
      },
      threads);
  UndoRecord record;
  record.changes.reserve(places.size());
  for (Piece& piece : pieces) {
    std::move(piece.changes.begin(), piece.changes.end(), std::back_inserter(record.changes));
    record.voxels_changed += piece.voxels;
  }
  return record;
}

Result<UndoRecord> plan_voxels(const BrickMap& bricks, const VoxelWrites& writes, uint32_t threads) {
  if (writes.count >= std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::invalid_argument,
                "a list of " + std::to_string(writes.count) + " voxels is longer than 2^32 - 2; write it in parts");
  // Each piece numbers its bricks, and counts the voxels of each.
  struct Piece {
    std::vector<Int3> bricks;
    std::vector<uint32_t> starts;  // counts of its bricks' voxels; then where the next voxel of each goes
  };
  std::vector<Piece> pieces((writes.count + kPieceVoxels - 1) / kPieceVoxels);
  std::vector<uint16_t> numbers(writes.count);  // of each voxel's brick in its piece
  parallel_for(
      writes.count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        thread_local BrickNumbers known;
        known.clear();
        Piece& piece = pieces[begin / kPieceVoxels];
        Int3 last = brick_of(voxel_at(writes, begin));
        uint32_t number = known.number_of(last);
        for (size_t i = begin; i < end; ++i) {
          if (const Int3 brick = brick_of(voxel_at(writes, i)); brick != last) {
            number = known.number_of(brick);
            last = brick;
          }
          if (number >= piece.starts.size()) piece.starts.resize(number + 1);
          ++piece.starts[number];
          numbers[i] = uint16_t(number);
        }
        piece.bricks = known.bricks();
      },
      threads);

  // All bricks in order; of each, its voxels by piece.
  struct Part {
    Int3 brick;
    uint32_t piece, number;
    bool operator<(const Part& other) const { return brick != other.brick ? brick < other.brick : piece < other.piece; }
  };
  std::vector<Part> parts;
  for (uint32_t p = 0; p < pieces.size(); ++p)
    for (uint32_t n = 0; n < pieces[p].bricks.size(); ++n) parts.push_back({pieces[p].bricks[n], p, n});
  std::sort(parts.begin(), parts.end());
  std::vector<Int3> places;
  std::vector<uint32_t> begins;  // of each place's voxels, and the end
  uint32_t voxels = 0;
  for (const Part& part : parts) {
    if (places.empty() || places.back() != part.brick) {
      places.push_back(part.brick);
      begins.push_back(voxels);
    }
    uint32_t& start = pieces[part.piece].starts[part.number];
    voxels += std::exchange(start, voxels);
  }
  begins.push_back(voxels);

  struct Voxel {
    uint16_t index;
    uint8_t material;
  };
  std::vector<Voxel> sorted(writes.count);
  parallel_for(
      writes.count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        Piece& piece = pieces[begin / kPieceVoxels];
        for (size_t i = begin; i < end; ++i)
          sorted[piece.starts[numbers[i]]++] = {uint16_t(voxel_index(voxel_at(writes, i))), writes.materials[i]};
      },
      threads);
  return plan_bricks(
      bricks, places,
      [&](size_t i, Brick& brick) {
        for (uint32_t v = begins[i]; v < begins[i + 1]; ++v) brick.set(sorted[v].index, sorted[v].material);
      },
      threads);
}

}  // namespace quarry
