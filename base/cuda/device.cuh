// SPDX-License-Identifier: Apache-2.0
// device.cuh - CUDA devices: found by UUID, and made current only for the duration of a call.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <string>

#include "base/cuda/device_uuid.hpp"
#include "base/cuda/error.cuh"

namespace quarry::gpu {

// A device of this process. The UUID identifies it. CUDA calls take the ordinal, which is valid while the process runs.
struct CudaDevice {
  DeviceUuid uuid{};
  int ordinal = -1;
};

// The number of devices that this process sees. Errors: not_found without a driver or a device, when the message is the
// reason only; device_lost.
inline Result<int> device_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  if (loses_device(error)) QRY_TRY(check(error, "count the devices"));
  (void)cudaGetLastError();
  return fail(ErrorCode::not_found, error == cudaSuccess ? "the driver knows none" : cudaGetErrorString(error));
}

// The device with CUDA's ordinal `ordinal`.
inline Result<CudaDevice> device_at(int ordinal) {
  cudaDeviceProp properties{};
  QRY_TRY(check(cudaGetDeviceProperties(&properties, ordinal), "ask the device"));
  CudaDevice device;
  device.ordinal = ordinal;
  static_assert(sizeof(properties.uuid.bytes) == sizeof(device.uuid));
  std::memcpy(device.uuid.data(), properties.uuid.bytes, sizeof(device.uuid));
  return device;
}

// not_found if no device has the UUID; otherwise the errors of device_count().
inline Result<CudaDevice> device_with(const DeviceUuid& uuid) {
  QRY_TRY_ASSIGN(const int count, device_count());
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (auto device = device_at(ordinal); device && device->uuid == uuid) return device;
  return fail(ErrorCode::not_found, "none of " + std::to_string(count) + " has the UUID that was asked for");
}

// The default choice: the first in CUDA's own order, which CUDA_VISIBLE_DEVICES sets. Errors: those of device_count().
inline Result<CudaDevice> first_device() {
  constexpr int kFirst = 0;
  QRY_TRY(device_count());
  return device_at(kFirst);
}

// Driver calls without an equivalent in the runtime. They are looked up through the runtime: nothing links libcuda.
struct ContextCalls {
  CUresult(CUDAAPI* get)(CUcontext*) = nullptr;
  CUresult(CUDAAPI* set)(CUcontext) = nullptr;
  CUresult(CUDAAPI* device_of_ordinal)(CUdevice*, int) = nullptr;
  CUresult(CUDAAPI* retain_primary)(CUcontext*, CUdevice) = nullptr;
  CUresult(CUDAAPI* release_primary)(CUdevice) = nullptr;

  ContextCalls() {
    find("cuCtxGetCurrent", reinterpret_cast<void**>(&get));
    find("cuCtxSetCurrent", reinterpret_cast<void**>(&set));
    find("cuDeviceGet", reinterpret_cast<void**>(&device_of_ordinal));
    find("cuDevicePrimaryCtxRetain", reinterpret_cast<void**>(&retain_primary));
    find("cuDevicePrimaryCtxRelease", reinterpret_cast<void**>(&release_primary));
  }
  // `version`: the CUDA version whose declaration the call has.
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

// The primary context of each device, which is the one that the runtime uses; null until it is known. It stays the
// same while the runtime uses the device. Any number of threads.
class PrimaryContexts {
 public:
  static CUcontext of(int device) {
    return is_listed(device) ? known()[device].load(std::memory_order_relaxed) : nullptr;
  }
  // Queries the context of a device that the runtime uses. The driver returns it with a reference, which is released at
  // once: the runtime holds its own.
  static void learn(int device) {
    const ContextCalls& calls = context_calls();
    if (!is_listed(device) || of(device) != nullptr) return;
    if (calls.device_of_ordinal == nullptr || calls.retain_primary == nullptr) return;
    if (calls.release_primary == nullptr) return;
    CUdevice found{};
    CUcontext context = nullptr;
    if (calls.device_of_ordinal(&found, device) != CUDA_SUCCESS) return;
    if (calls.retain_primary(&context, found) != CUDA_SUCCESS) return;
    calls.release_primary(found);
    known()[device].store(context, std::memory_order_relaxed);
  }

 private:
  static constexpr int kListed = 64;  // the contexts of further devices are never known
  static bool is_listed(int device) { return device >= 0 && device < kListed; }
  static std::atomic<CUcontext>* known() {
    static std::atomic<CUcontext> contexts[kListed];
    return contexts;
  }
};

// Makes a device current for the duration of a call, then restores the thread's own. A host application may use another
// device, or through the driver API a context of its own on this one (GStreamer does). Our streams and kernels would be
// invalid there. In the common case the device's own context is current already: one driver call finds that out, and
// nothing is changed.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : now_(device) {
    const ContextCalls& calls = context_calls();
    if (calls.get == nullptr || calls.set == nullptr || calls.get(&context_) != CUDA_SUCCESS) context_ = nullptr;
    if (context_ != nullptr && context_ == PrimaryContexts::of(device)) return;
    changes_ = true;
    // A context implies its device: the device is queried only for a thread without a context.
    if (context_ == nullptr && cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    error_ = cudaSetDevice(device);  // sets the runtime's shared context, even if the device is current already
    if (error_ == cudaSuccess) PrimaryContexts::learn(device);
    else (void)cudaGetLastError();
  }
  explicit DeviceScope(const CudaDevice& device) : DeviceScope(device.ordinal) {}
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (!changes_) return;
    if (context_ != nullptr) context_calls().set(context_);
    else if (before_ != now_) cudaSetDevice(before_);
  }
  cudaError_t error() const { return error_; }
  // Whether something had to be changed: another context than the device's own was current, or none.
  bool changes() const { return changes_; }

 private:
  CUcontext context_ = nullptr;
  int before_ = 0, now_ = 0;
  bool changes_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace quarry::gpu
