// SPDX-License-Identifier: Apache-2.0
// without_cuda.cpp - device.hpp in a build without a CUDA toolkit.
#include "engine/cuda/device.hpp"

namespace quarry::engine {

int cuda_device_with_uuid(const std::array<uint8_t, 16>&, std::string* why) {
  if (why) *why = "this build has no CUDA (configure with QRY_CUDA=on and a CUDA toolkit)";
  return -1;
}

}  // namespace quarry::engine
