// SPDX-License-Identifier: Apache-2.0
// voxel_writes.cpp - lists are sorted by brick in two steps, into buckets and within each, on all threads; then each
// brick is made once.
#include "voxel/worlds/voxel_writes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
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

constexpr size_t kPieceVoxels = size_t(1) << 15;
constexpr size_t kWriteBricksPerTask = 64;
constexpr size_t kMostBuckets = 512, kBucketVoxels = 4096, kSamples = 8192;
constexpr size_t kFirstBricks = 8192;  // 4 MiB of materials: the least that host memory puts on large pages
constexpr uint32_t kNarrowBits = 15;   // of a cell in an entry of 32 bits

Int3 voxel_at(const VoxelWrites& writes, size_t i) {
  return {writes.xyz[3 * i], writes.xyz[3 * i + 1], writes.xyz[3 * i + 2]};
}

// The bricks of the list's box, numbered from 0 in their order.
template <class Cell>
struct Cells {
  Int3 low;
  Cell x_size, y_size, z_size;

  explicit Cells(const Box3& bricks)
      : low(bricks.min),
        x_size(size_of(bricks.min.x, bricks.max.x)),
        y_size(size_of(bricks.min.y, bricks.max.y)),
        z_size(size_of(bricks.min.z, bricks.max.z)) {}
  Cell count() const { return x_size * y_size * z_size; }
  Cell of(Int3 brick) const {
    const auto part = [](int32_t at, int32_t from) { return Cell(uint32_t(at) - uint32_t(from)); };
    return (part(brick.x, low.x) * y_size + part(brick.y, low.y)) * z_size + part(brick.z, low.z);
  }
  Int3 brick(Cell cell) const {
    const auto part = [](Cell value, int32_t from) { return int32_t(uint32_t(value) + uint32_t(from)); };
    const Cell row = cell / z_size;
    return {part(row / y_size, low.x), part(row % y_size, low.y), part(cell % z_size, low.z)};
  }

 private:
  static Cell size_of(int32_t from, int32_t to) { return Cell(to) - Cell(from) + 1; }
};

// Runs of cells, about as many voxels of the list in each.
template <class Cell>
class Buckets {
 public:
  // `samples`: cells of voxels of the list.
  Buckets(std::vector<Cell> samples, size_t wanted, Cell cells) : firsts_(wanted), cells_(cells) {
    std::sort(samples.begin(), samples.end());
    for (size_t i = 1; i < wanted; ++i) firsts_[i] = samples[i * samples.size() / wanted];
    firsts_.erase(std::unique(firsts_.begin(), firsts_.end()), firsts_.end());
    while ((cells - 1) >> shift_ >= kGroupsPerBucket * wanted) ++shift_;
    guide_.resize(size_t((cells - 1) >> shift_) + 2);
    size_t bucket = 0;
    for (size_t group = 0; group + 1 < guide_.size(); ++group) {
      while (bucket + 1 < size() && firsts_[bucket + 1] <= Cell(group) << shift_) ++bucket;
      guide_[group] = uint16_t(bucket);
    }
    guide_.back() = uint16_t(size() - 1);
  }
  size_t size() const { return firsts_.size(); }
  Cell first(size_t bucket) const { return firsts_[bucket]; }
  // How many cells are in the bucket, and in the one that has the most.
  Cell width(size_t bucket) const { return (bucket + 1 < size() ? firsts_[bucket + 1] : cells_) - firsts_[bucket]; }
  Cell widest() const {
    Cell most = 0;
    for (size_t bucket = 0; bucket < size(); ++bucket) most = std::max(most, width(bucket));
    return most;
  }
  uint16_t of(Cell cell) const {
    const auto group = size_t(cell >> shift_);
    uint32_t from = guide_[group];
    for (uint32_t length = guide_[group + 1] - from; length > 0;) {
      const uint32_t half = (length + 1) / 2;
      from += firsts_[from + half] <= cell ? half : 0;
      length -= half;
    }
    return uint16_t(from);
  }

 private:
  std::vector<Cell> firsts_;
  Cell cells_;
  // Cells in groups of 2^shift_: the bucket of each group's first cell. Few groups are in more than one, unless the
  // voxels are in few of the box's bricks.
  static constexpr size_t kGroupsPerBucket = 64;
  uint32_t shift_ = 0;
  std::vector<uint16_t> guide_;
};

// A voxel of the list: cell | z 3 | y 3 | x 3 | material 8, from high to low. Of the cell it has the low bits; the
// bucket that it is in has the others.
template <class Word>
struct Entry {
  static Word of(Word cell, Int3 voxel, uint8_t material) {
    const auto part = [](int32_t at, uint32_t shift) { return (uint32_t(at) & 7u) << shift; };
    return cell << 17 | part(voxel.z, 14) | part(voxel.y, 11) | part(voxel.x, 8) | material;
  }
  // How far its cell is from the bucket's first.
  static Word cell_after(Word first, Word entry) { return ((entry >> 17) - first) & (Word(~Word(0)) >> 17); }
  static uint32_t voxel(Word entry) { return kIndices[uint32_t(entry) >> 8 & (kVoxelsPerBrick - 1)]; }
  static uint8_t material(Word entry) { return uint8_t(entry); }

 private:
  static constexpr auto kIndices = [] {
    std::array<uint16_t, kVoxelsPerBrick> indices{};
    for (int32_t i = 0; i < int32_t(kVoxelsPerBrick); ++i)
      indices[size_t(i)] = uint16_t(voxel_index({i & 7, i >> 3 & 7, i >> 6}));
    return indices;
  }();
};

uint32_t differing_voxels(const BrickView& a, const BrickView& b) {
  // Bytes are counted in lanes of bytes, as many side by side as vectors have; each reaches 8 at most.
  constexpr size_t kLanes = kVoxelsPerBrick / 8;
  std::array<uint8_t, kLanes> differing{};
  for (size_t from = 0; from < kVoxelsPerBrick; from += kLanes)
    for (size_t i = 0; i < kLanes; ++i) differing[i] += a.materials[from + i] != b.materials[from + i];
  return std::accumulate(differing.begin(), differing.end(), 0u);
}

void add(Int3 place, SharedBrick before, const Brick& after, BrickWriter& writer, PlannedChanges& out) {
  const uint32_t differing = differing_voxels(*before, after);
  if (differing == 0) return;
  out.voxels += differing;
  append_change(out.changes, {place, 1, std::move(before), writer.make(after)});
}

// The entries of a bucket by cell: the cells, rising, from the bucket's first, and where the entries of each end.
template <class Word>
struct SortedBucket {
  std::vector<Word> cells;
  std::vector<uint32_t> ends;
};

template <class Word>
class BucketSorter {
 public:
  using Slices = std::span<const std::span<const Word>>;

  // Puts the entries of `slices`, which are in the order of the list, into `out` by cell, in the order of the list too.
  // The bucket has `width` cells, beginning with `first`.
  SortedBucket<Word> sort(Slices slices, Word first, Word width, std::span<Word> out) {
    if (width <= 4 * out.size()) by_table(slices, first, size_t(width), out);
    else by_hash(slices, first, out);
    return std::move(sorted_);
  }

 private:
  void by_table(Slices slices, Word first, size_t width, std::span<Word> out) {
    counts_.assign(width, 0);
    for (const std::span<const Word> slice : slices)
      for (const Word entry : slice) ++counts_[size_t(Entry<Word>::cell_after(first, entry))];
    uint32_t at = 0;
    for (size_t cell = 0; cell < width; ++cell)
      if (counts_[cell]) {
        at += std::exchange(counts_[cell], at);
        sorted_.cells.push_back(Word(cell));
        sorted_.ends.push_back(at);
      }
    for (const std::span<const Word> slice : slices)
      for (const Word entry : slice) out[counts_[size_t(Entry<Word>::cell_after(first, entry))]++] = entry;
  }

  // For few entries in many cells.
  void by_hash(Slices slices, Word first, std::span<Word> out) {
    number(slices, first, out.size());
    order_.resize(cells_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return cells_[a] < cells_[b]; });
    uint32_t at = 0;
    for (const uint32_t number : order_) {
      at += std::exchange(counts_[number], at);
      sorted_.cells.push_back(cells_[number]);
      sorted_.ends.push_back(at);
    }
    const uint32_t* number = numbers_.data();
    for (const std::span<const Word> slice : slices)
      for (const Word entry : slice) out[counts_[*number++]++] = entry;
  }

  // Numbers the cells in the order in which they come, and counts the entries of each. Open addressing with linear
  // probing, at most half full.
  void number(Slices slices, Word first, size_t count) {
    slots_.assign(std::bit_ceil(2 * count), kEmpty);
    numbers_.reserve(count);
    const size_t mask = slots_.size() - 1;
    Word last = 0;
    uint32_t number = kEmpty;
    for (const std::span<const Word> slice : slices)
      for (const Word entry : slice) {
        const Word cell = Entry<Word>::cell_after(first, entry);
        if (number == kEmpty || cell != last) {
          size_t at =
              size_t((uint64_t(cell) ^ uint64_t(cell >> (sizeof(Word) * 4))) * 0x9E3779B97F4A7C15u >> 20) & mask;
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
        numbers_.push_back(number);
      }
  }

  static constexpr uint32_t kEmpty = std::numeric_limits<uint32_t>::max();
  SortedBucket<Word> sorted_;
  std::vector<Word> cells_;
  std::vector<uint32_t> slots_, counts_, numbers_, order_;
};

// Sorts by samples (Frazer and McKellar, "Samplesort", 1970): each piece of the list is parted into buckets of rising
// cells; each bucket is gathered from the pieces, in the order of the list, and sorted by cell; then its bricks are
// made.
template <class Word, class Cell>
UndoRecord plan_sorted(const BrickMap& bricks, const VoxelWrites& writes, const Cells<Cell>& cells,
                       const Buckets<Cell>& buckets, uint32_t threads) {
  const size_t count = writes.count, pieces = (count + kPieceVoxels - 1) / kPieceVoxels, row = buckets.size() + 1;
  std::vector<uint32_t> starts(pieces * row);  // where each piece's part of each bucket begins
  const auto by_piece = std::make_unique_for_overwrite<Word[]>(count);
  parallel_for(
      count, kPieceVoxels,
      [&](size_t begin, size_t end) {
        uint32_t* const next = &starts[begin / kPieceVoxels * row] + 1;
        // Of the piece alone, so that they stay in the cache.
        const auto bucket_of = std::make_unique_for_overwrite<uint16_t[]>(end - begin);
        const auto unsorted = std::make_unique_for_overwrite<Word[]>(end - begin);
        for (size_t i = begin; i < end; ++i) {
          const Int3 voxel = voxel_at(writes, i);
          const Cell cell = cells.of(brick_of(voxel));
          const uint16_t bucket = buckets.of(cell);
          ++next[bucket];
          bucket_of[i - begin] = bucket;
          unsorted[i - begin] = Entry<Word>::of(Word(cell), voxel, writes.materials[i]);
        }
        auto at = uint32_t(begin);
        next[-1] = at;
        for (size_t bucket = 0; bucket + 1 < row; ++bucket) at += std::exchange(next[bucket], at);
        for (size_t i = 0; i < end - begin; ++i) by_piece[next[bucket_of[i]]++] = unsorted[i];
      },
      threads);

  std::vector<size_t> begins(row);
  for (size_t bucket = 0; bucket + 1 < row; ++bucket) {
    begins[bucket + 1] = begins[bucket];
    for (size_t piece = 0; piece < pieces; ++piece)
      begins[bucket + 1] += starts[piece * row + bucket + 1] - starts[piece * row + bucket];
  }
  const auto entries = std::make_unique_for_overwrite<Word[]>(count);
  std::vector<SortedBucket<Word>> sorted(buckets.size());
  parallel_for(
      buckets.size(), 1,
      [&](size_t bucket, size_t) {
        std::vector<std::span<const Word>> slices(pieces);
        for (size_t piece = 0; piece < pieces; ++piece)
          slices[piece] = {by_piece.get() + starts[piece * row + bucket],
                           by_piece.get() + starts[piece * row + bucket + 1]};
        const std::span<Word> out(entries.get() + begins[bucket], begins[bucket + 1] - begins[bucket]);
        sorted[bucket] =
            BucketSorter<Word>().sort(slices, Word(buckets.first(bucket)), Word(buckets.width(bucket)), out);
      },
      threads);

  std::vector<size_t> left(row);  // the bricks of this bucket and those after it, which may be made
  for (size_t bucket = buckets.size(); bucket-- > 0;) left[bucket] = left[bucket + 1] + sorted[bucket].cells.size();
  std::atomic<size_t> made = 0;
  std::vector<PlannedChanges> parts(buckets.size());
  parallel_for(
      buckets.size(), 1,
      [&](size_t bucket, size_t) {
        const auto& [offsets, ends] = sorted[bucket];
        // Where the pool grows it has room for all that may come; but in steps, as the list may change few of its
        // bricks.
        const size_t ahead = kFirstBricks + 2 * made.load(std::memory_order_relaxed);
        BrickWriter writer(bricks.pool(), offsets.size(), std::min(left[bucket], ahead));
        const Word* at = entries.get() + begins[bucket];
        for (size_t i = 0; i < offsets.size(); ++i) {
          const Int3 place = cells.brick(buckets.first(bucket) + offsets[i]);
          SharedBrick before = bricks.share(place);
          Brick brick = before->copy();
          for (const Word* const end = entries.get() + begins[bucket] + ends[i]; at < end; ++at)
            brick.set(Entry<Word>::voxel(*at), Entry<Word>::material(*at));
          add(place, std::move(before), brick, writer, parts[bucket]);
        }
        made.fetch_add(parts[bucket].changes.size(), std::memory_order_relaxed);
      },
      threads);
  return joined(parts);
}

template <class Cell>
UndoRecord plan_in(const BrickMap& bricks, const VoxelWrites& writes, const Cells<Cell>& cells, uint32_t threads) {
  const size_t count = writes.count;
  std::vector<Cell> samples(std::min(kSamples, count));
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = cells.of(brick_of(voxel_at(writes, i * (count / samples.size()))));
  const Buckets<Cell> buckets(std::move(samples), std::min(kMostBuckets, count / kBucketVoxels + 1), cells.count());
  if (buckets.widest() <= Cell(1) << kNarrowBits) return plan_sorted<uint32_t>(bricks, writes, cells, buckets, threads);
  return plan_sorted<Cell>(bricks, writes, cells, buckets, threads);
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
  const Box3 box = writes.box.empty() ? bounds_of(writes, threads) : writes.box;
  const Box3 reached{brick_of(box.min), brick_of(box.max)};
  // A list inside a world has up to 2^32 cells; one from corner to corner of all coordinates 2^87.
  __extension__ using LongCell = unsigned __int128;
  const Cells<LongCell> cells(reached);
  if (cells.count() <= uint64_t(1) << 47) return plan_in(bricks, writes, Cells<uint64_t>(reached), threads);
  return plan_in(bricks, writes, cells, threads);
}

}  // namespace quarry
