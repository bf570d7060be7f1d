// SPDX-License-Identifier: Apache-2.0
// chunk_pieces.hpp - the pieces of a volume that does not fit memory: what is connected within one chunk (8^3 bricks).
// They are numbered chunk by chunk, and those that touch across chunks are joined. A chunk has the same pieces whenever
// it is looked at, whatever is made at once: so what a pass over all chunks tells of pieces holds in the next one.
//
//   chunk ─► ConnectedParts, whose parts are its pieces ─► PartBorder ─► joined with the chunks before ─► sets of
//   pieces
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/operations/connected_parts.hpp"

namespace quarry::operations_detail {

// Memory: 4 bytes a piece and 16 a chunk; and, while chunks are added, some 100 bytes for each brick at the sides of
// those that later chunks lie beside, 600 for one with several components. Not free-threaded, but for reading.
class ChunkPieces {
 public:
  explicit ChunkPieces(Connectivity neighbours) : neighbours_(neighbours) {}

  // A chunk's voxels; none: all that it has room for.
  using Voxels = std::function<std::optional<BrickMap>(Int3 chunk)>;
  // Its pieces, which have the next numbers.
  using Found = std::function<void(const ConnectedParts& pieces)>;
  // Adds chunks, which come in rising order, also from call to call. All threads call `voxels`, only the caller's
  // `found`, in the order of the chunks; not for those that are full.
  // Errors: unsupported (2^32 pieces), cancelled.
  Result<void> add(std::span<const Int3> chunks, const Voxels& voxels, const Found& found, const Progress& progress);
  // How many sets of pieces there are that are connected.
  uint32_t sets() const { return sets_; }
  // No more chunks come. Returns of each piece which set it is in: they have numbers from 0, in the order of their
  // first pieces.
  std::deque<uint32_t> end();

  // The chunks, rising, by number.
  size_t chunks() const { return chunks_.size(); }
  Int3 chunk(size_t number) const { return chunks_[number].at; }
  bool full(size_t number) const { return full_[number]; }
  std::optional<size_t> number_of(Int3 chunk) const;
  size_t lower_bound(Int3 chunk) const;  // the number of the first that is not below
  // Where a chunk's pieces begin and end.
  uint32_t first(size_t number) const { return chunks_[number].first; }
  uint32_t end(size_t number) const { return number + 1 < chunks_.size() ? chunks_[number + 1].first : count_; }
  // The pieces of a chunk again. Free-threaded. Errors: cancelled.
  Result<ConnectedParts> find(const BrickMap& voxels, const Progress& progress) const {
    return ConnectedParts::find(voxels, neighbours_, progress);
  }

 private:
  struct Chunk {
    Int3 at;
    uint32_t first;
  };
  // A chunk that later ones may lie beside.
  struct Beside {
    uint32_t first;
    std::optional<PartBorder> border;  // none: it is full
  };
  uint32_t root(uint32_t piece);  // the lowest of the set
  void join(uint32_t a, uint32_t b);
  void join_with_earlier(Int3 chunk, uint32_t first, const std::optional<PartBorder>& border);

  Connectivity neighbours_;
  std::vector<Chunk> chunks_;
  std::vector<bool> full_;         // of each chunk
  uint32_t count_ = 0, sets_ = 0;  // pieces, sets of them
  std::deque<uint32_t> parents_;   // of each piece, none above it; moved out by end()
  std::map<Int3, Beside> beside_;
};

}  // namespace quarry::operations_detail
