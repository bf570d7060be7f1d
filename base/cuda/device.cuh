// SPDX-License-Identifier: Apache-2.0
// device.cuh - CUDA devices: found by UUID, and made current only for the length of a call.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "base/cuda/error.cuh"
#include "base/cuda/device_uuid.hpp"

namespace quarry::gpu {

// A device of this process. The UUID names it; the ordinal, which holds for as long as the process runs, is what CUDA's
// calls take.
struct CudaDevice {
  DeviceUuid uuid{};
  int ordinal = -1;
};

// How many devices this process sees. not_found, with the reason alone, where there is no driver or it knows none.
inline Result<int> device_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();
  return fail(ErrorCode::not_found, error == cudaSuccess ? "the driver knows none" : cudaGetErrorString(error));
}

// The device that CUDA lists at `ordinal`.
inline Result<CudaDevice> device_at(int ordinal) {
  cudaDeviceProp properties{};
  QRY_TRY(check(cudaGetDeviceProperties(&properties, ordinal), "ask the device"));
  CudaDevice device;
  device.ordinal = ordinal;
  static_assert(sizeof(properties.uuid.bytes) == sizeof(device.uuid));
  std::memcpy(device.uuid.data(), properties.uuid.bytes, sizeof(device.uuid));
  return device;
}

// not_found where no device has the UUID; otherwise as device_count().
inline Result<CudaDevice> device_with(const DeviceUuid& uuid) {
  QRY_TRY_ASSIGN(const int count, device_count());
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (auto device = device_at(ordinal); device && device->uuid == uuid) return device;
  return fail(ErrorCode::not_found, "none of " + std::to_string(count) + " has the UUID that was asked for");
}

// The choice where nothing is said: the first in CUDA's own order, which CUDA_VISIBLE_DEVICES sets. Errors as of
// device_count().
inline Result<CudaDevice> first_device() {
  constexpr int kFirst = 0;
  QRY_TRY(device_count());
  return device_at(kFirst);
}

// The two calls of the driver that no call of the runtime stands in for, found through the runtime: nothing links
// libcuda.
struct ContextCalls {
  CUresult(CUDAAPI* get)(CUcontext*) = nullptr;
  CUresult(CUDAAPI* set)(CUcontext) = nullptr;

  ContextCalls() {
    find("cuCtxGetCurrent", reinterpret_cast<void**>(&get));
    find("cuCtxSetCurrent", reinterpret_cast<void**>(&set));
  }
  // `version`: of CUDA, whose declaration the call has.
  static void find(const char* name, void** call, unsigned int version = 12000) {
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, call, version, cudaEnableDefault, &found);
#else
    (void)version;
    const cudaError_t error = cudaGetDriverEntryPoint(name, call, cudaEnableDefault, &found);
#endif
    if (error == cudaSuccess && found == cudaDriverEntryPointSuccess) return;
    (void)cudaGetLastError();
    *call = nullptr;
  }
};
inline const ContextCalls& context_calls() {
  static const ContextCalls calls;
  return calls;
}

// Makes a device current for the length of a call, and then the thread's own again: a host engine may use another
// device, or, by the driver's interface, a context of its own on this one (GStreamer does), in which our streams and
// kernels would not be valid.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : now_(device) {
    const ContextCalls& calls = context_calls();
    if (calls.get == nullptr || calls.set == nullptr || calls.get(&context_) != CUDA_SUCCESS) context_ = nullptr;
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    error_ = cudaSetDevice(device);  // also where it is the current one: this sets the context that the runtime shares
    if (error_ != cudaSuccess) (void)cudaGetLastError();
  }
  explicit DeviceScope(const CudaDevice& device) : DeviceScope(device.ordinal) {}
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (context_ != nullptr)
      context_calls().set(context_);  // which says the device too
    else if (before_ != now_)
      cudaSetDevice(before_);
  }
  cudaError_t error() const { return error_; }

 private:
  CUcontext context_ = nullptr;
  int before_ = 0, now_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace quarry::gpu
