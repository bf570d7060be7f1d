// SPDX-License-Identifier: Apache-2.0
// scratch.cuh - a stream of our own, and device memory for calls that run in it, from a pool of our own. The process's
// default pool stays as the host application has set it up.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/cuda/device.cuh"

namespace quarry::gpu {

// A stream on one device, with a memory pool. It does not wait for the default stream. Several threads may share one:
// their calls run in turn.
class DeviceStream {
 public:
  // `kept_bytes`: what the pool keeps between calls, because memory from the system takes longer to get than most calls
  // run. Errors: device, unsupported (a device without stream-ordered memory).
  static Result<std::unique_ptr<DeviceStream>> create(const CudaDevice& device, uint64_t kept_bytes) {
    const DeviceScope scope(device);
    QRY_TRY(check(scope.error(), "choosing the device"));
    int pools = 0;
    QRY_TRY(check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device.ordinal), "ask the device"));
    if (pools == 0)
      return fail(ErrorCode::unsupported,
                  "CUDA device " + std::to_string(device.ordinal) + " has no stream-ordered memory");
    std::unique_ptr<DeviceStream> made(new DeviceStream(device));
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device.ordinal;
    QRY_TRY(check(cudaMemPoolCreate(&made->pool_, &properties), "make a memory pool"));
    QRY_TRY(check(cudaMemPoolSetAttribute(made->pool_, cudaMemPoolAttrReleaseThreshold, &kept_bytes),
                  "set up the memory pool"));
    QRY_TRY(check(cudaStreamCreateWithFlags(&made->stream_, cudaStreamNonBlocking), "make a stream"));
    return made;
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() {
    const DeviceScope scope(device_);
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  }

  const CudaDevice& device() const { return device_; }
  cudaStream_t get() const { return stream_; }
  cudaMemPool_t pool() const { return pool_; }

 private:
  explicit DeviceStream(const CudaDevice& device) : device_(device) {}
  CudaDevice device_;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

// Device memory of one call, allocated and freed in stream order. The stream must outlive it. Uninitialised.
class Scratch {
 public:
  Scratch() = default;
  // `what`: names the memory in the message. Errors: out_of_memory, device.
  static Result<Scratch> allocate(const DeviceStream& stream, size_t size_bytes, const char* what = "scratch memory") {
    Scratch scratch;
    scratch.stream_ = stream.get();
    QRY_TRY(check(cudaMallocFromPoolAsync(&scratch.data_, std::max<size_t>(size_bytes, 1), stream.pool(), stream.get()),
                  what));
    return scratch;
  }
  // The same, zeroed.
  static Result<Scratch> zeroed(const DeviceStream& stream, size_t size_bytes, const char* what = "scratch memory") {
    QRY_TRY_ASSIGN(Scratch scratch, allocate(stream, size_bytes, what));
    QRY_TRY(check(cudaMemsetAsync(scratch.data_, 0, size_bytes, stream.get()), what));
    return scratch;
  }
  Scratch(Scratch&& other) noexcept : stream_(other.stream_), data_(std::exchange(other.data_, nullptr)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Scratch() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
};

// Runs a CUB algorithm in its two steps: call(nullptr, size) returns the size of its temporary memory,
// call(memory, size) runs it.
template <class Call>
Result<void> with_temporary(const DeviceStream& stream, const char* doing, const Call& call) {
  size_t size_bytes = 0;
  QRY_TRY(check(call(nullptr, size_bytes), doing));
  QRY_TRY_ASSIGN(const Scratch temporary, Scratch::allocate(stream, size_bytes));
  return check(call(temporary.as<void>(), size_bytes), doing);
}

}  // namespace quarry::gpu
