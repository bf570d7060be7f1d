// SPDX-License-Identifier: Apache-2.0
// own_kernel.cu - a consumer's own kernel that reads and writes a grid during its other work.
#include <hashgrid/cuda_stream.cuh>
#include <hashgrid/grid.hpp>
#include <hashgrid/pairs/cuda/find_warp.cuh>

#include <cstdint>
#include <cstdio>

namespace grid = quarry::hashgrid;

__global__ void put_squares(grid::GridView view, uint32_t count, unsigned long long* wrong) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && grid::insert(view, i, i * i) != grid::Outcome::inserted) atomicAdd(wrong, 1ull);
}
__global__ void check_squares(grid::GridView view, uint32_t count, unsigned long long* wrong) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const grid::Found found = grid::kernels::find_by_warp(view, i < count ? i : kQryReservedKey);
  if (i < count && found.value != i * i) atomicAdd(wrong, 1ull);
}

int main() {
  constexpr uint32_t kCount = 10000;
  auto executor = grid::make_cuda_executor();
  if (!executor) return std::printf("no kernel was run: %s\n", executor.error().message.c_str()), 0;
  grid::GridOptions options;
  options.capacity = kCount;
  auto squares = grid::Grid::create(**executor, options);
  auto counter = (*executor)->memory().allocate(sizeof(unsigned long long), "wrong answers");
  if (!squares || !counter) return std::fprintf(stderr, "no memory\n"), 1;
  auto* const wrong = static_cast<unsigned long long*>(counter->data);
  const cudaStream_t stream = grid::cuda_stream_of(**executor);
  put_squares<<<(kCount + 255) / 256, 256, 0, stream>>>(squares->view(), kCount, wrong);
  check_squares<<<(kCount + 255) / 256, 256, 0, stream>>>(squares->view(), kCount, wrong);
  unsigned long long count = 1;
  const auto got = (*executor)->download(&count, wrong, sizeof(count));
  (*executor)->memory().release(*counter);
  if (!got || count != 0) return std::fprintf(stderr, "%llu wrong answers\n", count), 1;
  std::printf("the kernels' answers are right\n");
  return 0;
}
