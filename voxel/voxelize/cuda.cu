// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the surface's voxels on a CUDA device: the same voxels and colours as on the host, bit for bit.
//
//   vertices --snap--> triangles --cells of 512, 64, 8 bricks--> (brick, triangle) pairs --radix sort--> bricks
//      pairs -> a mask each -> masks of bricks -> a packed material a voxel -> sorted, distinct -> palette (host) -> a
//      material a voxel
//
// Memory on the device: 88 bytes a pair, 140 a brick, and with colours 17 a voxel. It grows with the surface and the
// number of triangles. There is one stream and one context a process, and only one job uses them at a time. The code
// waits only for its own stream.
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <atomic>
#include <bit>
#include <string>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "voxel/voxelize/bricks.hpp"
#include "voxel/voxelize/kernels.cuh"
#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {
namespace {

// Thrown inside this file only.
struct Failure {
  Error error;
};
void need(const Result<void>& done) {
  if (!done) throw Failure{done.error()};
}
void need(cudaError_t error, const char* doing) { need(gpu::check(error, doing)); }

// The next job of a batch reuses this much memory of the last one without asking the driver.
constexpr uint64_t kKeptBytes = uint64_t{1} << 30;

// The process's device, once it was found to work. It is the first one, because no option chooses another.
struct Device {
  Result<void> usable;
  std::unique_ptr<gpu::DeviceStream> stream;
  std::mutex one_job;

  Device() {
    const auto first = gpu::first_device();
    if (!first && first.error().code == ErrorCode::not_found) {
      usable = fail(ErrorCode::not_found, "no CUDA device to voxelise on: " + first.error().message + "; use the host");
      return;
    }
    auto made =
        first.and_then([](const gpu::CudaDevice& device) { return gpu::DeviceStream::create(device, kKeptBytes); });
    if (made) stream = std::move(*made);
    else usable = tl::unexpected(made.error());
  }
};
// It is never destroyed, because the driver may be gone when static objects are destroyed.
Device& device() {
  static Device* const one = new Device;
  return *one;
}

std::atomic<bool> started{false};

template <class T>
class Array {
 public:
  Array() = default;
  Array(const gpu::DeviceStream& stream, size_t count) : stream_(stream.get()), count_(count) {
    auto memory = gpu::Scratch::allocate(stream, count * sizeof(T), "memory to voxelise in");
    if (!memory) throw Failure{memory.error()};
    memory_ = std::move(*memory);
  }
  Array(const gpu::DeviceStream& stream, const T* from_host, size_t count) : Array(stream, count) {
    need(cudaMemcpyAsync(get(), from_host, count * sizeof(T), cudaMemcpyHostToDevice, stream_), "copying the mesh");
  }
  T* get() const { return memory_.as<T>(); }
  size_t count() const { return count_; }
  void download(T* to, size_t count) const {
    need(cudaMemcpyAsync(to, get(), count * sizeof(T), cudaMemcpyDeviceToHost, stream_), "copying the voxels back");
  }

 private:
  cudaStream_t stream_ = nullptr;
  size_t count_ = 0;
  gpu::Scratch memory_;
};

uint32_t blocks_for(uint64_t threads) { return uint32_t((threads + kernels::kThreads - 1) / kernels::kThreads); }

// The arrays that a SurfaceView points to, on the device.
class DeviceSurface {
 public:
  DeviceSurface(const gpu::DeviceStream& s, const Surface& surface, const uint32_t* indices, const float* positions) {
    const Mesh& mesh = surface.mesh();
    std::vector<TextureView> textures = surface.textures();
    for (size_t i = 0; i < textures.size(); ++i) {
      if (!textures[i].full) continue;
      textures[i].full = images_.emplace_back(s, textures[i].full, mesh.images[i].rgba.size()).get();
      textures[i].smaller = smaller_.emplace_back(s, textures[i].smaller, surface.smaller_size(i)).get();
    }
    textures_ = Array<TextureView>(s, textures.data(), textures.size());
    need(cudaStreamSynchronize(s.get()), "copying textures");  // `textures` lives only in this call
    materials_ = Array<MaterialView>(s, surface.materials().data(), surface.materials().size());
    triangle_material_ = Array<uint32_t>(s, mesh.triangle_material.data(), mesh.triangle_material.size());
    srgb_ = Array<SrgbTables>(s, &srgb_tables(), 1);
    if (!mesh.uvs.empty()) uvs_ = Array<float>(s, mesh.uvs.data(), mesh.uvs.size());
    if (!mesh.colors.empty()) colors_ = Array<uint8_t>(s, mesh.colors.data(), mesh.colors.size());
    view_ = {positions,        uvs_.get(),      colors_.get(), indices, triangle_material_.get(),
             materials_.get(), textures_.get(), srgb_.get()};
  }
  const SurfaceView& view() const { return view_; }

 private:
  std::vector<Array<uint8_t>> images_;
  std::vector<Array<uint16_t>> smaller_;
  Array<TextureView> textures_;
  Array<MaterialView> materials_;
  Array<uint32_t> triangle_material_;
  Array<SrgbTables> srgb_;
  Array<float> uvs_;
  Array<uint8_t> colors_;
  SurfaceView view_{};
};

class CudaSurface {
 public:
  CudaSurface(VoxelizeJob& job, const gpu::DeviceStream& stream) : job_(job), stream_(stream), s_(stream.get()) {}

  // `sink`: null, or what gets the bricks in the result's place.
  SurfaceResult run(const DeviceSink* sink, bool* begun) {
    upload();
    find_pairs();
    step(0.2);
    find_bricks();
    step(0.4);
    SurfaceResult out;
    if (job_.surface.uniform()) {
      const SurfaceView& view = job_.surface.view();
      const double middle[3] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
      out.palette = quantise({{pack(*view.srgb, surface_color_at(view, 0, middle, 0)), 1}}, job_.threads).palette;
    } else {
      find_packed_materials();
      step(0.7);
      find_materials(out);
    }
    step(0.9);
    if (sink) hand_over(*sink, *begun);
    else download(out);
    return out;
  }

 private:
  void step(double fraction) const {
    if (const auto good = job_.going(); !good) throw Failure{good.error()};
    job_.options.progress.say("voxelise", fraction);
  }
  template <class T>
  Array<T> array(size_t count) const {
    return Array<T>(stream_, count);
  }
  // Starts one CUDA thread for each of `threads`.
  template <class... Parameters>
  void launch(const char* doing, uint64_t threads, void (*kernel)(Parameters...),
              std::type_identity_t<Parameters>... arguments) const {
    launch_blocks(doing, blocks_for(threads), kernel, arguments...);
  }
  template <class... Parameters>
  void launch_blocks(const char* doing, uint32_t blocks, void (*kernel)(Parameters...),
                     std::type_identity_t<Parameters>... arguments) const {
    need(gpu::launch(doing, {blocks, kernels::kThreads}, s_, kernel, arguments...));
  }
  void wait(const char* doing) const { need(cudaStreamSynchronize(s_), doing); }

  void upload() {
    const Mesh& mesh = job_.mesh;
    positions_ = Array<float>(stream_, mesh.positions.data(), mesh.positions.size());
    indices_ = Array<uint32_t>(stream_, mesh.indices.data(), mesh.indices.size());
    vertices_ = array<int32_t>(mesh.positions.size());
    const VoxelFrame& f = job_.frame;
    const kernels::VertexFrame frame{{f.origin[0], f.origin[1], f.origin[2]},
                                     f.scale,
                                     {f.dims.x, f.dims.y, f.dims.z},
                                     {f.shift.x, f.shift.y, f.shift.z}};
    launch("snapping vertices", mesh.vertex_count(), kernels::snap_vertices, positions_.get(),
           uint32_t(mesh.vertex_count()), frame, vertices_.get());
    mesh_ = {vertices_.get(), indices_.get()};
  }

  void find_pairs() {
    const auto triangles = uint32_t(job_.mesh.triangle_count());
    uint64_t capacity[kernels::kLevels] = {std::max<uint64_t>(uint64_t(1) << 20, uint64_t(triangles) * 8), 1 << 16,
                                           1 << 14, 1 << 14};
    for (;;) {
      Array<unsigned long long> counts = array<unsigned long long>(kernels::kLevels);
      need(cudaMemsetAsync(counts.get(), 0, sizeof(unsigned long long) * kernels::kLevels, s_), "clearing counters");
      Array<Pair> cells[kernels::kLevels];
      kernels::CellList lists[kernels::kLevels];
      for (int level = 0; level < kernels::kLevels; ++level) {
        cells[level] = array<Pair>(capacity[level]);
        lists[level] = {cells[level].get(), counts.get() + level, capacity[level]};
      }
      for (int level = kernels::kLevels - 1; level >= 0; --level) {
        launch("finding cells of triangles", triangles, kernels::cells_of_triangles, mesh_, triangles, level,
               lists[level]);
        if (level + 1 < kernels::kLevels)
          launch_blocks("finding cells of cells", kernels::kCellBlocks, kernels::cells_of_cells, mesh_, level,
                        lists[level + 1], lists[level]);
      }
      unsigned long long found[kernels::kLevels];
      counts.download(found, kernels::kLevels);
      wait("finding bricks of triangles");
      bool fits = true;
      for (int level = 0; level < kernels::kLevels; ++level) {
        fits = fits && found[level] <= capacity[level];
        capacity[level] = std::max<uint64_t>(capacity[level], found[level]);
      }
      if (found[0] >= uint64_t(1) << 31)
        throw Failure{{ErrorCode::full, "more than 2^31 pairs of brick and triangle; voxelise on the host"}};
      if (!fits) continue;
      pair_count_ = uint32_t(found[0]);
      pairs_ = sorted(cells[0].get(), pair_count_, kTriangleBits, kPairBits);
      return;
    }
  }

  // Sorts by bits [from, to). The content of `words` is undefined afterwards.
  Array<uint64_t> sorted(uint64_t* words, uint32_t count, int from, int to) const {
    Array<uint64_t> other = array<uint64_t>(count);
    need(with_temporary(stream_, "sorting", [&](void* temporary, size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, words, other.get(), count, from, to, s_);
    }));
    return other;
  }

  // Returns the positions in a sorted array at which words >> shift changes. It waits for the stream.
  Array<uint32_t> runs(const uint64_t* words, uint32_t count, int shift, uint32_t& found) const {
    Array<uint32_t> positions = array<uint32_t>(count), number = array<uint32_t>(1);
    const thrust::counting_iterator<uint32_t> all(0);
    const kernels::RunBegins begins{words, shift};
    need(with_temporary(stream_, "finding runs", [&](void* temporary, size_t& bytes) {
      return cub::DeviceSelect::If(temporary, bytes, all, positions.get(), number.get(), count, begins, s_);
    }));
    number.download(&found, 1);
    wait("finding runs");
    return positions;
  }

  void find_bricks() {
    starts_ = runs(pairs_.get(), pair_count_, kTriangleBits, bricks_);
    pair_masks_ = array<uint64_t>(size_t(pair_count_) * 8);
    launch("voxelising pairs", pair_count_, kernels::masks_of_pairs, mesh_, pairs_.get(), pair_count_, job_.thin(),
           pair_masks_.get());
    masks_ = array<uint64_t>(size_t(bricks_) * 8);
    shared_ = array<uint64_t>(size_t(bricks_) * 8);
    keys_ = array<uint32_t>(bricks_);
    voxel_counts_ = array<uint32_t>(bricks_);
    launch("joining masks", uint64_t(bricks_) * 8, kernels::masks_of_bricks, pairs_.get(), starts_.get(), bricks_,
           pair_count_, pair_masks_.get(), masks_.get(), shared_.get(), keys_.get(), voxel_counts_.get());
  }

  // Where each brick's voxels begin among all, and how many there are. It waits for the stream.
  void count_voxels() {
    offsets_ = array<uint32_t>(bricks_);
    need(with_temporary(stream_, "counting voxels", [&](void* temporary, size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, bytes, voxel_counts_.get(), offsets_.get(), bricks_, s_);
    }));
    uint32_t before_last = 0, last = 0;
    need(cudaMemcpyAsync(&before_last, offsets_.get() + bricks_ - 1, sizeof before_last, cudaMemcpyDeviceToHost, s_),
         "counting voxels");
    need(cudaMemcpyAsync(&last, voxel_counts_.get() + bricks_ - 1, sizeof last, cudaMemcpyDeviceToHost, s_),
         "counting voxels");
    wait("counting voxels");
    voxels_ = before_last + last;
  }

  void find_packed_materials() {
    count_voxels();
    const DeviceSurface surface(stream_, job_.surface, indices_.get(), positions_.get());
    const auto triangles = uint32_t(job_.mesh.triangle_count());
    const Array<uint8_t> levels = array<uint8_t>(triangles);
    launch("choosing texture levels", triangles, kernels::texture_levels, surface.view(), triangles, job_.frame.scale,
           levels.get());
    packed_ = array<PackedMaterial>(voxels_);
    if (voxels_ == 0) return;
    const kernels::ColorJob job{surface.view(),    mesh_,         levels.get(),   pairs_.get(),
                                pair_masks_.get(), starts_.get(), offsets_.get(), masks_.get(),
                                shared_.get(),     bricks_,       pair_count_};
    launch("colouring voxels", voxels_, kernels::packed_materials_of_voxels, job, voxels_, packed_.get());
    wait("colouring voxels");  // `surface`, `levels` and the mesh's copies live only in this call
    pair_masks_ = {};
    pairs_ = {};
  }

  void find_materials(SurfaceResult& out) {
    if (voxels_ == 0) return;
    Array<PackedMaterial> copy = array<PackedMaterial>(voxels_);
    need(cudaMemcpyAsync(copy.get(), packed_.get(), size_t(voxels_) * sizeof(PackedMaterial), cudaMemcpyDeviceToDevice,
                         s_),
         "copying looks");
    constexpr int kMaterialBits = 56;
    const Array<PackedMaterial> rising = sorted(copy.get(), voxels_, 0, kMaterialBits);
    uint32_t count = 0;
    const Array<uint32_t> positions = runs(rising.get(), voxels_, 0, count);
    const Array<PackedMaterial> distinct = array<PackedMaterial>(count);
    launch("gathering looks", count, kernels::gather_words, rising.get(), positions.get(), count, distinct.get());
    std::vector<PackedMaterial> packed(count);
    std::vector<uint32_t> first(count);
    distinct.download(packed.data(), count);
    positions.download(first.data(), count);
    wait("gathering looks");
    std::vector<MaterialCount> counted(count);
    for (uint32_t i = 0; i < count; ++i) counted[i] = {packed[i], (i + 1 < count ? first[i + 1] : voxels_) - first[i]};
    const Quantised quantised = quantise(std::move(counted), job_.threads);
    out.palette = quantised.palette;
    out.rms_error = quantised.rms_error;
    out.distinct = count;
    std::vector<uint8_t> index_of(count);
    parallel_for(
        count, 4096,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) index_of[i] = quantised.of(packed[i]);
        },
        job_.threads);
    const Array<uint8_t> materials(stream_, index_of.data(), count);
    materials_ = array<uint8_t>(voxels_);
    launch("choosing materials", voxels_, kernels::materials_of_voxels, packed_.get(), voxels_, distinct.get(),
           materials.get(), count, materials_.get());
    wait("choosing materials");
  }

  void hand_over(const DeviceSink& sink, bool& begun) {
    const bool uniform = job_.surface.uniform();
    if (uniform) count_voxels();
    if (voxels_ == 0) throw Failure{too_thin()};
    constexpr uint32_t kAtOnce = 1u << 19;  // 256 MiB of materials
    const uint32_t most = std::min(bricks_, kAtOnce);
    const Array<uint64_t> materials = array<uint64_t>(size_t(most) * (kVoxelsPerBrick / 8));
    const Array<uint32_t> keys = array<uint32_t>(most);
    for (uint32_t first = 0; first < bricks_; first += most) {
      const uint32_t some = std::min(most, bricks_ - first);
      launch("spreading materials", uint64_t(some) * 8, kernels::whole_bricks, keys_.get() + first,
             masks_.get() + size_t(first) * 8, uniform ? nullptr : offsets_.get() + first,
             uniform ? nullptr : materials_.get(), some, keys.get(), materials.get());
      begun = true;
      need(sink.take({some, keys.get(), materials.get(), all_bricks(job_), s_}));
    }
    wait("spreading materials");
  }

  void download(SurfaceResult& out) {
    std::vector<uint32_t> keys(bricks_);
    std::vector<BrickMask> masks(bricks_);
    std::vector<uint8_t> materials(job_.surface.uniform() ? 0 : voxels_);
    keys_.download(keys.data(), bricks_);
    need(cudaMemcpyAsync(masks.data(), masks_.get(), masks.size() * sizeof(BrickMask), cudaMemcpyDeviceToHost, s_),
         "copying the voxels back");
    if (!materials.empty()) materials_.download(materials.data(), materials.size());
    wait("copying the voxels back");
    constexpr size_t kBricksPerBlock = 1024;
    size_t voxel = 0;
    for (size_t b = 0; b < keys.size(); ++b) {
      uint32_t set = 0;
      for (const uint64_t word : masks[b]) set += uint32_t(std::popcount(word));
      if (set == 0) continue;
      if (out.blocks.empty() || out.blocks.back().bricks.size() == kBricksPerBlock)
        out.blocks.emplace_back().bricks.reserve(kBricksPerBlock);
      SurfaceBlock& block = out.blocks.back();
      block.bricks.emplace_back(brick_of_pair(Pair(keys[b]) << kTriangleBits), masks[b]);
      if (!materials.empty())
        block.materials.insert(block.materials.end(), materials.begin() + ptrdiff_t(voxel),
                               materials.begin() + ptrdiff_t(voxel + set));
      voxel += set;
    }
  }

  VoxelizeJob& job_;
  const gpu::DeviceStream& stream_;
  cudaStream_t s_;  // the same
  Array<float> positions_;
  Array<uint32_t> indices_;
  Array<int32_t> vertices_;
  kernels::MeshView mesh_{};
  Array<Pair> pairs_;  // sorted by brick
  Array<uint64_t> pair_masks_, masks_, shared_;
  Array<uint32_t> starts_, keys_, voxel_counts_, offsets_;
  Array<PackedMaterial> packed_;
  Array<uint8_t> materials_;
  uint32_t pair_count_ = 0, bricks_ = 0, voxels_ = 0;
};

}  // namespace

Result<void> cuda_for_voxelize() {
  if (device().usable) started.store(true, std::memory_order_relaxed);
  return device().usable;
}
bool cuda_has_started() { return started.load(std::memory_order_relaxed); }

namespace {

Result<SurfaceResult> surface(VoxelizeJob& job, const DeviceSink* sink, bool* begun) {
  QRY_TRY(device().usable);
  if (sink && sink->device != device().stream->device().ordinal)
    return fail(ErrorCode::unsupported, "the world is on another CUDA device than the first one, which voxelises");
  const std::lock_guard lock(device().one_job);
  const gpu::DeviceScope scope(device().stream->device());
  Result<SurfaceResult> out = SurfaceResult{};
  try {
    out = CudaSurface(job, *device().stream).run(sink, begun);
  } catch (const Failure& failure) {
    out = tl::unexpected(failure.error);
  }
  return out;
}

}  // namespace

Result<SurfaceResult> surface_on_cuda(VoxelizeJob& job) { return surface(job, nullptr, nullptr); }
Result<SurfaceResult> surface_to_device(VoxelizeJob& job, const DeviceSink& sink, bool& begun) {
  return surface(job, &sink, &begun);
}

}  // namespace quarry::voxelize_detail
