// SPDX-License-Identifier: Apache-2.0
// voxel_writes.cpp - lists are sorted by brick in two steps, into buckets and within each, on all threads; then each
// brick is made once.
#include "voxel/worlds/voxel_writes.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr size_t kPieceVoxels = size_t(1) << 16;
constexpr size_t kWriteBricksPerTask = 64;
constexpr size_t kMostBuckets = 1024, kBucketVoxels = 4096, kSamples = 8192;

Int3 voxel_at(const VoxelWrites& writes, size_t i) {
  return {writes.xyz[3 * i], writes.xyz[3 * i + 1], writes.xyz[3 * i + 2]};
}

// Packs a brick of the list's box with a voxel of it and a material: cell | voxel 9 | material 8, from high to low. A
// cell is x | y | z relative to the box, in as few bits as the box needs, so that cells rise as bricks do.
template <class Word>
struct Packing {
  Int3 low;
  uint32_t y_bits, z_bits;

  Word cell(Int3 brick) const {
    const auto part = [](int32_t at, int32_t from) { return Word(uint32_t(at) - uint32_t(from)); };
    return (part(brick.x, low.x) << y_bits | part(brick.y, low.y)) << z_bits | part(brick.z, low.z);
  }
  Int3 brick(Word cell) const {
    const auto part = [](Word value, int32_t from) { return int32_t(uint32_t(value) + uint32_t(from)); };
    return {part(cell >> z_bits >> y_bits, low.x), part(cell >> z_bits & ((Word(1) << y_bits) - 1), low.y),
            part(cell & ((Word(1) << z_bits) - 1), low.z)};
  }
  static Word entry(Word cell, uint32_t voxel, uint8_t material) { return cell << 17 | voxel << 8 | material; }
  static Word cell_of(Word entry) { return entry >> 17; }
};

uint32_t bits_for(int64_t count) { return uint32_t(std::bit_width(uint64_t(count - 1))); }

uint32_t differing_voxels(const BrickView& a, const BrickView& b) {
  uint32_t count = 0;
  for (size_t i = 0; i < kVoxelsPerBrick; ++i) count += a.materials[i] != b.materials[i];
  return count;
}

void add(Int3 place, SharedBrick before, const Brick& after, BrickWriter& writer, PlannedChanges& out) {
  const uint32_t differing = differing_voxels(*before, after);
  if (differing == 0) return;
  out.voxels += differing;
  append_change(out.changes, {place, 1, std::move(before), writer.make(after)});
}

// Makes the bricks of one bucket, whose entries are in the order of the list.
template <class Word>
class BucketWriter {
 public:
  void write(const BrickMap& bricks, const Packing<Word>& packing, std::span<const Word> entries, PlannedChanges& out) {
    number(entries);
    // The cells in rising order, and where the voxels of each begin.
    order_.resize(cells_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return cells_[a] < cells_[b]; });
    uint32_t begin = 0;
    for (const uint32_t cell : order_) begin += std::exchange(counts_[cell], begin);
    voxels_.resize(entries.size());
    for (size_t i = 0; i < entries.size(); ++i)
      voxels_[counts_[numbers_[i]]++] = uint32_t(entries[i]) & ((1u << 17) - 1);
    uint32_t at = 0;
    BrickWriter writer(bricks.pool());
    for (const uint32_t cell : order_) {  // counts_ has the end of each now
      const Int3 place = packing.brick(cells_[cell]);
      SharedBrick before = bricks.share(place);
      Brick brick = before->copy();
      for (; at < counts_[cell]; ++at) brick.set(voxels_[at] >> 8, uint8_t(voxels_[at]));
      add(place, std::move(before), brick, writer, out);
    }
  }

 private:
  // Numbers the cells in the order in which they come, and counts the entries of each. Open addressing with linear
  // probing, at most half full.
  void number(std::span<const Word> entries) {
    slots_.assign(std::bit_ceil(2 * entries.size()), kEmpty);
    cells_.clear();
    counts_.clear();
    numbers_.resize(entries.size());
    const size_t mask = slots_.size() - 1;
    Word last = 0;
    uint32_t number = kEmpty;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Word cell = Packing<Word>::cell_of(entries[i]);
      if (number == kEmpty || cell != last) {
        size_t at = size_t((uint64_t(cell) ^ uint64_t(cell >> (sizeof(Word) * 4))) * 0x9E3779B97F4A7C15u >> 20) & mask;
        while (slots_[at] != kEmpty && cells_[slots_[at]] != cell) at = (at + 1) & mask;
        if (slots_[at] == kEmpty) {
          slots_[at] = uint32_t(cells_.size());
          cells_.push_back(cell);
          counts_.push_back(0);
        }
        number = slots_[at];
        last = cell;
      }
      ++counts_[number];
      numbers_[i] = number;
    }
  }

  static constexpr uint32_t kEmpty = std::numeric_limits<uint32_t>::max();
  std::vector<Word> cells_;
  std::vector<uint32_t> slots_, counts_, numbers_, order_, voxels_;
};

// Sorts by samples (Frazer and McKellar, "Samplesort", 1970): splitters out of the list part it into buckets of rising
// cells; the entries of each bucket are brought together in the order of the list; then each bucket is on its own.
template <class Word>
UndoRecord plan_packed(const BrickMap& bricks, const VoxelWrites& writes, const Packing<Word>& packing,
                       uint32_t threads) {
  const size_t count = writes.count;
  std::vector<Word> splitters;
  const size_t samples = std::min(kSamples, count), wanted = std::min(kMostBuckets, count / kBucketVoxels + 1);
  for (size_t i = 0; i < samples; ++i)
    splitters.push_back(packing.cell(brick_of(voxel_at(writes, i * (count / samples)))));
  std::sort(splitters.begin(), splitters.end());
  for (size_t i = 1; i < wanted; ++i) splitters[i - 1] = splitters[i * samples / wanted];
  splitters.resize(wanted - 1);
  splitters.erase(std::unique(splitters.begin(), splitters.end()), splitters.end());
  const size_t buckets = splitters.size() + 1;

  const size_t pieces = (count + kPieceVoxels - 1) / kPieceVoxels;
  std::vector<uint32_t> starts(pieces * buckets);  // counts of each piece's voxels; then where the next one goes
  const auto bucket_numbers = std::make_unique_for_overwrite<uint16_t[]>(count);
  parallel_for(
      count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        uint32_t* const counts = &starts[begin / kPieceVoxels * buckets];
        Int3 last = brick_of(voxel_at(writes, begin));
        uint16_t bucket = 0;
        for (size_t i = begin; i < end; ++i) {
          if (const Int3 brick = brick_of(voxel_at(writes, i)); i == begin || brick != last) {
            const Word cell = packing.cell(brick);
            size_t from = 0;  // the number of splitters that are not above the cell
            for (size_t length = splitters.size(); length > 0;) {
              const size_t half = (length + 1) / 2;
              from += splitters[from + half - 1] <= cell ? half : 0;
              length -= half;
            }
            bucket = uint16_t(from);
            last = brick;
          }
          ++counts[bucket];
          bucket_numbers[i] = bucket;
        }
      },
      threads);
  std::vector<uint32_t> begins(buckets + 1);
  uint32_t at = 0;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    begins[bucket] = at;
    for (size_t piece = 0; piece < pieces; ++piece) at += std::exchange(starts[piece * buckets + bucket], at);
  }
  begins[buckets] = at;

  const auto sorted = std::make_unique_for_overwrite<Word[]>(count);
  parallel_for(
      count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        uint32_t* const next = &starts[begin / kPieceVoxels * buckets];
        for (size_t i = begin; i < end; ++i) {
          const Int3 voxel = voxel_at(writes, i);
          sorted[next[bucket_numbers[i]]++] =
              Packing<Word>::entry(packing.cell(brick_of(voxel)), voxel_index(voxel), writes.materials[i]);
        }
      },
      threads);

  std::vector<PlannedChanges> parts(buckets);
  parallel_for(
      buckets, 1,
      [&](size_t bucket, size_t) {
        BucketWriter<Word>().write(bricks, packing,
                                   {sorted.get() + begins[bucket], begins[bucket + 1] - begins[bucket]}, parts[bucket]);
      },
      threads);
  return joined(parts);
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
  std::vector<PlannedChanges> parts((places.size() + kWriteBricksPerTask - 1) / kWriteBricksPerTask);
  parallel_for(
      places.size(), kWriteBricksPerTask,
      [&](size_t begin, size_t end) {
        BrickWriter writer(bricks.pool());
        for (size_t i = begin; i < end; ++i) {
          SharedBrick before = bricks.share(places[i]);
          Brick brick = before->copy();
          change(i, brick);
          add(places[i], std::move(before), brick, writer, parts[begin / kWriteBricksPerTask]);
        }
      },
      threads);
  return joined(parts);
}

Result<UndoRecord> plan_voxels(const BrickMap& bricks, const VoxelWrites& writes, uint32_t threads) {
  if (writes.count >= std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::invalid_argument,
                "a list of " + std::to_string(writes.count) + " voxels is longer than 2^32 - 2; write it in parts");
  if (writes.count == 0) return UndoRecord{};
  const Box3 box = bounds_of(writes, threads);
  const Int3 low = brick_of(box.min), high = brick_of(box.max);
  const uint32_t x_bits = bits_for(int64_t(high.x) - low.x + 1), y_bits = bits_for(int64_t(high.y) - low.y + 1),
                 z_bits = bits_for(int64_t(high.z) - low.z + 1);
  // A list inside a world needs 49 bits; one from corner to corner of all coordinates 104.
  __extension__ using LongWord = unsigned __int128;
  if (x_bits + y_bits + z_bits + 17 <= 64)
    return plan_packed(bricks, writes, Packing<uint64_t>{low, y_bits, z_bits}, threads);
  return plan_packed(bricks, writes, Packing<LongWord>{low, y_bits, z_bits}, threads);
}

}  // namespace quarry
