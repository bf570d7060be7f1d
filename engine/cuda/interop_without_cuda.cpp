// SPDX-License-Identifier: Apache-2.0
// interop_without_cuda.cpp - implements interop.hpp in a build without a CUDA toolkit: there is no CUDA device.
#include <unistd.h>

#include "engine/cuda/interop.hpp"

namespace quarry::engine {
namespace {
constexpr const char* kWhy = "this build has no CUDA (configure with QRY_CUDA=on and a CUDA toolkit)";
}

int cuda_device_with_uuid(const std::array<uint8_t, 16>&, std::string* why) {
  if (why) *why = kWhy;
  return -1;
}

Result<std::unique_ptr<CudaImportedMemory>> cuda_import_memory(int, int fd, size_t, size_t, bool) {
  close(fd);
  return fail(ErrorCode::unsupported, kWhy);
}

Result<void> cuda_clear(int, void*, size_t) { return fail(ErrorCode::unsupported, kWhy); }

Result<std::unique_ptr<CudaScatter>> make_cuda_scatter(int, int queue_semaphore_fd, int ready_semaphore_fd) {
  close(queue_semaphore_fd);
  close(ready_semaphore_fd);
  return fail(ErrorCode::unsupported, kWhy);
}

}  // namespace quarry::engine
