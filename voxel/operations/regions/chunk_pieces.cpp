// SPDX-License-Identifier: Apache-2.0
// chunk_pieces.cpp - chunks are looked at by all threads, and joined in their order with those before them.
#include "voxel/operations/regions/chunk_pieces.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "voxel/operations/internal.hpp"

namespace quarry::operations_detail {
namespace {

// What is not at a chunk's sides, and what is not at those that later chunks lie beside.
Box3 inside(Int3 chunk) {
  const Box3 all = box_of_bricks({chunk, chunk});
  return {all.min + Int3{1, 1, 1}, all.max - Int3{1, 1, 1}};
}
Box3 below_sides(Int3 chunk) {
  const Box3 all = box_of_bricks({chunk, chunk});
  return {all.min, all.max - Int3{1, 1, 1}};
}

PartBorder full_border(Int3 chunk) { return PartBorder::of_full(box_of_bricks({chunk, chunk}), inside(chunk)); }

struct Labelled {
  std::optional<ConnectedParts> pieces;  // none: it is full
  std::optional<PartBorder> all, later;
};

}  // namespace

Result<void> ChunkPieces::add(std::span<const Int3> chunks, const Voxels& voxels, const Found& found,
                              const Progress& progress) {
  // As many at once as keep threads busy: labels of voxels take as much memory as voxels.
  const size_t at_once = size_t(4) * thread_count();
  const Progress quiet = only_cancel(progress);
  for (; !chunks.empty(); chunks = chunks.subspan(std::min(at_once, chunks.size()))) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    std::vector<Result<Labelled>> labelled(std::min(at_once, chunks.size()));
    parallel_for(labelled.size(), 1, [&](size_t i, size_t) {
      labelled[i] = [&, chunk = chunks[i]]() -> Result<Labelled> {
        const std::optional<BrickMap> its = voxels(chunk);
        if (!its) return Labelled{};
        QRY_TRY_ASSIGN(ConnectedParts pieces, find(*its, quiet));
        PartBorder all = pieces.border(inside(chunk)), later = pieces.border(below_sides(chunk));
        return Labelled{std::move(pieces), std::move(all), std::move(later)};
      }();
    });
    for (size_t i = 0; i < labelled.size(); ++i) {
      QRY_TRY(labelled[i]);
      Labelled& its = *labelled[i];
      const uint32_t first = count_;
      const size_t count = its.pieces ? its.pieces->parts().size() : 1;
      if (first + count > UINT32_MAX)
        return fail(ErrorCode::unsupported,
                    "more than 2^32 pieces of chunks, too many to look for what is connected; crop it first");
      for (; count_ < first + count; ++count_) parents_.push_back(count_);
      sets_ += uint32_t(count);
      chunks_.push_back({chunks[i], first});
      full_.push_back(!its.pieces);
      join_with_earlier(chunks[i], first, its.all);
      if (its.pieces) found(*its.pieces);
      beside_.emplace_hint(beside_.end(), chunks[i], Beside{first, std::move(its.later)});
      its = {};
    }
  }
  return {};
}

void ChunkPieces::join_with_earlier(Int3 chunk, uint32_t first, const std::optional<PartBorder>& border) {
  // No chunk that comes now, or later, lies beside those before this one.
  beside_.erase(beside_.begin(), beside_.lower_bound(chunk - Int3{1, 1, 1}));
  for (int32_t x = -1; x <= 0; ++x)
    for (int32_t y = -1; y <= (x < 0 ? 1 : 0); ++y)
      for (int32_t z = -1; z <= (x < 0 || y < 0 ? 1 : -1); ++z) {
        const Int3 step{x, y, z};
        const auto earlier = beside_.find(chunk + step);
        if (axes_of(step) > most_axes(neighbours_) || earlier == beside_.end()) continue;
        const Beside& its = earlier->second;
        if (!border && !its.border) {
          join(its.first, first);
          continue;
        }
        const auto touch = [&](uint32_t own, uint32_t others) { join(its.first + own, first + others); };
        if (!its.border) full_border(earlier->first).meet(*border, neighbours_, touch);
        else its.border->meet(border ? *border : full_border(chunk), neighbours_, touch);
      }
}

uint32_t ChunkPieces::root(uint32_t piece) {
  while (parents_[piece] != piece) {
    parents_[piece] = parents_[parents_[piece]];
    piece = parents_[piece];
  }
  return piece;
}

void ChunkPieces::join(uint32_t a, uint32_t b) {
  a = root(a), b = root(b);
  sets_ -= a != b;
  parents_[std::max(a, b)] = std::min(a, b);
}

std::deque<uint32_t> ChunkPieces::end() {
  beside_.clear();
  uint32_t sets = 0;
  // A parent is lower, so it has its set's number already.
  for (uint32_t i = 0; i < count_; ++i) parents_[i] = parents_[i] == i ? sets++ : parents_[parents_[i]];
  return std::move(parents_);
}

size_t ChunkPieces::lower_bound(Int3 chunk) const {
  return size_t(std::ranges::lower_bound(chunks_, chunk, {}, &Chunk::at) - chunks_.begin());
}

std::optional<size_t> ChunkPieces::number_of(Int3 chunk) const {
  const size_t number = lower_bound(chunk);
  return number < chunks_.size() && chunks_[number].at == chunk ? std::optional(number) : std::nullopt;
}

}  // namespace quarry::operations_detail
