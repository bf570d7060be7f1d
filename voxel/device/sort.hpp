// SPDX-License-Identifier: Apache-2.0
// sort.hpp - the sort of a CUDA executor (Executor::sort), in a source of its own, because its templates take long to
// compile.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

// How much temporary memory sort_on_cuda() needs for so many pairs. Errors: device.
Result<size_t> sort_bytes_on_cuda(uint32_t count, uint32_t bits);
// In the stream, a cudaStream_t, without waiting. `temporary`: that much of the device's memory. Errors: device.
Result<uint32_t> sort_on_cuda(void* stream, const Executor::Pairs& pairs, uint32_t count, uint32_t bits,
                              void* temporary, size_t temporary_bytes);

}  // namespace quarry::device
