// SPDX-License-Identifier: Apache-2.0
// staging.cuh - copies to a device from memory that is not pinned, at the bus's speed: some threads copy a piece to
// pinned memory while others are on their way.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "base/cuda/error.cuh"
#include "base/parallel.hpp"

namespace quarry::device {

class Staging {
 public:
  static constexpr size_t kPieces = 4, kPieceBytes = size_t(4) << 20;
  // The driver copies less at once without them.
  static constexpr size_t kWorthwhileBytes = size_t(1) << 20;

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // The copies must be done.
  ~Staging() {
    for (Piece& piece : pieces_) {
      if (piece.copied) cudaEventDestroy(piece.copied);
      if (piece.data) cudaFreeHost(piece.data);
    }
  }
  Result<void> open() {
    for (Piece& piece : pieces_) {
      void* data = nullptr;
      QRY_TRY(gpu::check(cudaHostAlloc(&data, kPieceBytes, cudaHostAllocPortable), "memory for copies"));
      piece.data = static_cast<char*>(data);
      QRY_TRY(gpu::check(cudaEventCreateWithFlags(&piece.copied, cudaEventDisableTiming), "prepare copies"));
    }
    return {};
  }
  // Returns when `from` has been read; the copy is done before what the stream gets next.
  Result<void> copy(cudaStream_t stream, void* to, const void* from, size_t size_bytes) {
    for (size_t first = 0; first < size_bytes; first += kPieceBytes) {
      const size_t size = std::min(kPieceBytes, size_bytes - first);
      Piece& piece = pieces_[next_++ % kPieces];
      QRY_TRY(gpu::check(cudaEventSynchronize(piece.copied), "copy to the device"));
      const char* const source = static_cast<const char*>(from) + first;
      parallel_for(size, kGrainBytes,
                   [&](size_t begin, size_t end) { std::memcpy(piece.data + begin, source + begin, end - begin); });
      QRY_TRY(
          gpu::check(cudaMemcpyAsync(static_cast<char*>(to) + first, piece.data, size, cudaMemcpyHostToDevice, stream),
                     "copy to the device"));
      QRY_TRY(gpu::check(cudaEventRecord(piece.copied, stream), "copy to the device"));
    }
    return {};
  }

 private:
  static constexpr size_t kGrainBytes = size_t(256) << 10;
  struct Piece {
    char* data = nullptr;
    cudaEvent_t copied = nullptr;
  };
  Piece pieces_[kPieces];
  size_t next_ = 0;
};

}  // namespace quarry::device
