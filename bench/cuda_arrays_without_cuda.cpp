// SPDX-License-Identifier: Apache-2.0
// cuda_arrays_without_cuda.cpp - the arrays of a build without CUDA: none.
#include "bench/cuda_arrays.hpp"

namespace quarry::bench {

void* cuda_allocate(size_t) { return nullptr; }
void cuda_free(void*) {}
bool cuda_copy(void*, const void*, size_t) { return false; }
bool cuda_wait() { return false; }
double cuda_bus_rate() { return 0; }
double cuda_copy_rate() { return 0; }

}  // namespace quarry::bench
