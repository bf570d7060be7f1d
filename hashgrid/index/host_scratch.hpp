// SPDX-License-Identifier: Apache-2.0
// host_scratch.hpp - host memory for the duration of a call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/memory_source.hpp"

namespace quarry::hashgrid {

class HostScratch {
 public:
  HostScratch() = default;
  // Zeroed. Errors: out_of_memory.
  static Result<HostScratch> allocate(size_t size_bytes) {
    HostScratch scratch;
    QRY_TRY_ASSIGN(scratch.block_, host_memory_source().allocate(std::max<size_t>(size_bytes, 1), "index scratch"));
    return scratch;
  }
  HostScratch(HostScratch&& other) noexcept : block_(std::exchange(other.block_, {})) {}
  HostScratch& operator=(HostScratch&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~HostScratch() {
    if (block_.data != nullptr) host_memory_source().release(block_);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(block_.data);
  }

 private:
  MemoryBlock block_;
};

}  // namespace quarry::hashgrid
