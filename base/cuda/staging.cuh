// SPDX-License-Identifier: Apache-2.0
// staging.cuh - copies to a device from memory that is not pinned, at the bus's speed: threads copy pieces to pinned
// memory while others are on their way.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/cuda/device.cuh"
#include "base/cuda/error.cuh"
#include "base/parallel.hpp"

namespace quarry::gpu {

// Of what several threads do: the first that fails.
class FirstFailure {
 public:
  void note(Result<void> done) {
    if (done) return;
    const std::lock_guard lock(lock_);
    if (!there_.exchange(true)) outcome_ = std::move(done);
  }
  bool there() const { return there_; }
  Result<void> take() { return std::move(outcome_); }

 private:
  std::mutex lock_;
  std::atomic<bool> there_{false};
  Result<void> outcome_;
};

// Places that pieces of one job have in turn, whose pieces several threads do: piece n has place n % kSlots.
template <size_t kSlots>
class SlotTurns {
 public:
  // A job begins; none is under way.
  void begin() {
    for (std::atomic<size_t>& turns : turns_) turns = 0;
  }
  // Calls body() when the piece that had its place last is done with it. Pieces are begun in rising order.
  template <class Body>
  void take(size_t piece, const Body& body) {
    std::atomic<size_t>& turns = turns_[piece % kSlots];
    for (size_t now = turns.load(); now != piece / kSlots; now = turns.load()) turns.wait(now);
    body();
    turns.fetch_add(1);
    turns.notify_all();
  }

 private:
  std::array<std::atomic<size_t>, kSlots> turns_{};  // pieces of this job that each place has had
};

class Staging {
 public:
  static constexpr size_t kSlots = 24, kPieceBytes = size_t(1) << 20;
  // More of them get in each other's way (docs/results/h100/home.md).
  static constexpr uint32_t kMostThreads = 8;
  // The driver copies less at once without them.
  static constexpr size_t kWorthwhileBytes = size_t(1) << 20;

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // The copies must be done.
  ~Staging() {
    for (Slot& slot : slots_)
      if (slot.copied) cudaEventDestroy(slot.copied);
    cudaFreeHost(pinned_);
  }
  Result<void> open() {
    void* at = nullptr;
    QRY_TRY(check(cudaHostAlloc(&at, kSlots * kPieceBytes, cudaHostAllocPortable), "memory for copies"));
    pinned_ = static_cast<char*>(at);
    for (Slot& slot : slots_)
      QRY_TRY(check(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming), "prepare copies"));
    return {};
  }
  // Returns when `from` has been read; the copy is done before what the stream gets next.
  Result<void> copy(int device, cudaStream_t stream, void* to, const void* from, size_t size_bytes) {
    return copy_made(device, stream, to, size_bytes, kMostThreads, [from](size_t first, char* at, size_t size) {
      std::memcpy(at, static_cast<const char*>(from) + first, size);
    });
  }
  // The same of what make(first, at, size) writes: the bytes from `first` on, a piece at a time, by so many threads.
  template <class Make>
  Result<void> copy_made(int device, cudaStream_t stream, void* to, size_t size_bytes, uint32_t most_threads,
                         const Make& make) {
    FirstFailure failure;
    turns_.begin();
    const auto copy_piece = [&](size_t piece) -> Result<void> {
      Slot& slot = slots_[piece % kSlots];
      char* const pinned = pinned_ + piece % kSlots * kPieceBytes;
      const size_t first = piece * kPieceBytes, size = std::min(kPieceBytes, size_bytes - first);
      QRY_TRY(check(cudaEventSynchronize(slot.copied), "copy to the device"));
      make(first, pinned, size);
      QRY_TRY(check(cudaMemcpyAsync(static_cast<char*>(to) + first, pinned, size, cudaMemcpyHostToDevice, stream),
                    "copy to the device"));
      return check(cudaEventRecord(slot.copied, stream), "copy to the device");
    };
    // One loop for all of it: threads that sleep take long to wake.
    parallel_for((size_bytes + kPieceBytes - 1) / kPieceBytes, 1,
                 [&](size_t piece, size_t) {
                   const DeviceScope scope(device);
                   turns_.take(piece, [&] {
                     if (!failure.there()) failure.note(copy_piece(piece));
                   });
                 },
                 std::min(thread_count(), most_threads));
    return failure.take();
  }

 private:
  struct Slot {
    cudaEvent_t copied = nullptr;
  };
  Slot slots_[kSlots];
  SlotTurns<kSlots> turns_;
  char* pinned_ = nullptr;
};

}  // namespace quarry::gpu
