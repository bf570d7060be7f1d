// SPDX-License-Identifier: Apache-2.0
// pieces.hpp - a batch on its way through the two buffers of a lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/result.hpp"
#include "hashgrid/paged/lane.hpp"

namespace quarry::hashgrid::paged {

// The pairs of a job, piece by piece, where the operations can read them: as they are for host threads, else through
// the two buffers of a lane. While a piece is worked on, the next is on its way.
class Pieces {
 public:
  Pieces(Lane* lane, uint32_t* staging, uint64_t room, const uint32_t* keys, const uint32_t* values, uint64_t count)
      : lane_(lane),
        staging_(staging),
        room_(lane == nullptr ? count : room),
        keys_(keys),
        values_(values),
        count_(count) {}
  uint64_t size() const { return (count_ + room_ - 1) / room_; }
  struct Piece {
    const uint32_t* keys;
    const uint32_t* values;
    uint64_t count;
  };
  // Valid until the next one is taken. Operations called from here on see it.
  Result<Piece> take(uint64_t index) {
    const uint64_t begin = index * room_, count = std::min(room_, count_ - begin);
    if (lane_ == nullptr) return Piece{keys_ + begin, values_ == nullptr ? nullptr : values_ + begin, count};
    QRY_TRY(send(index));
    QRY_TRY(lane_->order_after_uploads());
    if (index + 1 < size()) QRY_TRY(send(index + 1));
    uint32_t* const buffer = staging_ + index % 2 * room_ * 2;
    return Piece{buffer, buffer + room_, count};
  }
  Result<void> send(uint64_t index) {
    if (sent_[index % 2] == index) return {};
    const uint64_t begin = index * room_, count = std::min(room_, count_ - begin);
    uint32_t* const buffer = staging_ + index % 2 * room_ * 2;
    sent_[index % 2] = UINT64_MAX;
    QRY_TRY(lane_->upload(buffer, keys_ + begin, count * sizeof(uint32_t)));
    bytes_ += count * sizeof(uint32_t);
    if (values_ != nullptr) {
      QRY_TRY(lane_->upload(buffer + room_, values_ + begin, count * sizeof(uint32_t)));
      bytes_ += count * sizeof(uint32_t);
    }
    sent_[index % 2] = index;
    return {};
  }
  uint64_t bytes() const { return bytes_; }  // sent

 private:
  Lane* lane_;
  uint32_t* staging_;
  uint64_t room_;
  const uint32_t* keys_;
  const uint32_t* values_;
  uint64_t count_;
  uint64_t sent_[2] = {UINT64_MAX, UINT64_MAX};  // the piece in each buffer
  uint64_t bytes_ = 0;
};

}  // namespace quarry::hashgrid::paged
