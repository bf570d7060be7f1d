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
        buffer_(room),
        room_(lane == nullptr ? count : equal_piece(count, room)),
        keys_(keys),
        values_(values),
        count_(count) {}
  uint64_t size() const { return count_ == 0 ? 0 : (count_ + room_ - 1) / room_; }
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
    uint32_t* const buffer = buffer_of(index);
    return Piece{buffer, buffer + buffer_, count};
  }
  Result<void> send(uint64_t index) {
    if (sent_[index % 2] == index) return {};
    const uint64_t begin = index * room_, count = std::min(room_, count_ - begin);
    uint32_t* const buffer = buffer_of(index);
    sent_[index % 2] = UINT64_MAX;
    QRY_TRY(lane_->upload(buffer, keys_ + begin, count * sizeof(uint32_t)));
    bytes_ += count * sizeof(uint32_t);
    if (values_ != nullptr) {
      QRY_TRY(lane_->upload(buffer + buffer_, values_ + begin, count * sizeof(uint32_t)));
      bytes_ += count * sizeof(uint32_t);
    }
    sent_[index % 2] = index;
    return {};
  }
  uint64_t bytes() const { return bytes_; }  // sent

 private:
  // Pieces of about one length, so that the last is not so small that it is put key by key; a multiple of vector loads.
  static uint64_t equal_piece(uint64_t count, uint64_t room) {
    const uint64_t pieces = std::max<uint64_t>(1, (count + room - 1) / room), each = (count + pieces - 1) / pieces;
    return std::min(room, (each + 3) / 4 * 4);
  }
  uint32_t* buffer_of(uint64_t index) const { return staging_ + index % 2 * buffer_ * 2; }

  Lane* lane_;
  uint32_t* staging_;
  uint64_t buffer_;  // pairs that a buffer has room for
  uint64_t room_;    // pairs of a piece
  const uint32_t* keys_;
  const uint32_t* values_;
  uint64_t count_;
  uint64_t sent_[2] = {UINT64_MAX, UINT64_MAX};  // the piece in each buffer
  uint64_t bytes_ = 0;
};

}  // namespace quarry::hashgrid::paged
