// device_scope.cuh - the current device, changed for the length of a call.
#pragma once

#include <cuda_runtime_api.h>

namespace quarry::hashgrid {

// Makes a device current for the length of a call: callers may use others.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    cudaGetDevice(&before_);
    if (before_ != device) cudaSetDevice(device);
    now_ = device;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (before_ != now_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0, now_ = 0;
};

}  // namespace quarry::hashgrid
