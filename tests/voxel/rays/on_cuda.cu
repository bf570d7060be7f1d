// SPDX-License-Identifier: Apache-2.0
// on_cuda.cu - copies a world and rays to the first CUDA device, traces them there, and copies the hits back.
#include "tests/voxel/rays/on_cuda.hpp"

#include <algorithm>

#include "base/cuda/device.cuh"

namespace quarry::test {
namespace {

class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { (void)cudaFree(data_); }
  Result<void> make(size_t size_bytes) {
    return gpu::check(cudaMalloc(&data_, std::max<size_t>(size_bytes, 16)), "allocate a test's memory");
  }
  template <class T>
  Result<void> copy(std::span<const T> from) {
    QRY_TRY(make(from.size_bytes()));
    return gpu::check(cudaMemcpy(data_, from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "copy a test's data");
  }
  template <class T>
  T* get() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace

Result<TracedOnCuda> trace_on_first_device(const RayWorld& world, std::span<const std::byte> nodes,
                                           std::span<const uint64_t> masks, std::span<const uint8_t> materials,
                                           std::span<const Ray> rays) {
  QRY_TRY_ASSIGN(const gpu::CudaDevice device, gpu::first_device());
  const gpu::DeviceScope scope(device);
  Array nodes_there, masks_there, materials_there, rays_there, hits_there;
  QRY_TRY(nodes_there.copy(nodes));
  QRY_TRY(masks_there.copy(masks));
  QRY_TRY(materials_there.copy(materials));
  QRY_TRY(rays_there.copy(rays));
  QRY_TRY(hits_there.make(rays.size() * sizeof(RayHit)));
  RayWorld there = world;
  there.nodes = nodes_there.get<const OccupancyNode>();
  there.masks = masks_there.get<const uint64_t>();
  there.materials = materials_there.get<const uint8_t>();
  cudaEvent_t begin{}, end{};
  QRY_TRY(gpu::check(cudaEventCreate(&begin), "make an event"));
  QRY_TRY(gpu::check(cudaEventCreate(&end), "make an event"));
  TracedOnCuda traced{std::vector<RayHit>(rays.size()), 1e9};
  for (int i = 0; i < 5; ++i) {
    QRY_TRY(gpu::check(cudaEventRecord(begin), "record an event"));
    QRY_TRY(trace_on_cuda(nullptr, there, rays_there.get<const Ray>(), rays.size(), hits_there.get<RayHit>()));
    QRY_TRY(gpu::check(cudaEventRecord(end), "record an event"));
    QRY_TRY(gpu::check(cudaEventSynchronize(end), "trace rays"));
    float milliseconds = 0;
    QRY_TRY(gpu::check(cudaEventElapsedTime(&milliseconds, begin, end), "measure"));
    traced.milliseconds = std::min(traced.milliseconds, double(milliseconds));
  }
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  QRY_TRY(gpu::check(
      cudaMemcpy(traced.hits.data(), hits_there.get<RayHit>(), rays.size() * sizeof(RayHit), cudaMemcpyDeviceToHost),
      "copy hits"));
  return traced;
}

}  // namespace quarry::test
