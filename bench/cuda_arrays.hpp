// SPDX-License-Identifier: Apache-2.0
// cuda_arrays.hpp - memory of CUDA's first device for a program that calls quarry.h with arrays of its own, as an
// engine's kernels have them. Without CUDA there is none. Every call waits for the device.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace quarry::bench {

// Null: there is no memory, or no CUDA.
void* cuda_allocate(size_t size_bytes);
void cuda_free(void* at);
// To the device, from it, or within it. False: it has failed.
bool cuda_copy(void* to, const void* from, size_t size_bytes);
bool cuda_wait();
// Bytes a second of copies to the device from pinned memory, the best of five; 0: not measured.
double cuda_bus_rate();
// The same within the device: bytes copied, which are read and written.
double cuda_copy_rate();

// An array there. Empty: nothing was allocated, or could be.
template <class T>
class CudaArray {
 public:
  explicit CudaArray(size_t count) : count_(count), at_(count ? cuda_allocate(count * sizeof(T)) : nullptr) {}
  explicit CudaArray(const std::vector<T>& values) : CudaArray(values.size()) {
    if (at_) cuda_copy(at_, values.data(), count_ * sizeof(T));
  }
  ~CudaArray() { cuda_free(at_); }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;

  T* get() const { return static_cast<T*>(at_); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    if (at_) cuda_copy(values.data(), at_, count_ * sizeof(T));
    return values;
  }

 private:
  size_t count_;
  void* at_;
};

}  // namespace quarry::bench
