// cuda.cu - the surface's voxels on a CUDA device: the same voxels and colours as on the host, bit for bit.
//
//   vertices --snap--> triangles --cells of 512, 64, 8 bricks--> (brick, triangle) pairs --radix sort--> bricks
//      pairs -> a mask each -> masks of bricks -> a look a voxel -> sorted: distinct looks -> palette (host) -> a material a voxel
//
// Memory on the device: 88 bytes a pair, 140 a brick, and where there are colours 17 a voxel: it grows with the surface and the triangles.
// One stream and one context a process; a job has them to itself. Nothing here waits but for its own stream.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <atomic>
#include <bit>
#include <string>

#include "hashgrid/cuda_stream.cuh"
#include "voxel/voxelize/kernels.cuh"
#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {
namespace {

// Thrown inside this file only.
struct Failure {
  Error error;
};
void need(cudaError_t error, const char* doing) {
  if (const auto ok = hashgrid::cuda_result(error, doing); !ok) {
    cudaGetLastError();  // not sticky: the next call must not report it again
    throw Failure{ok.error()};
  }
}

// The process's device, once it was found to work.
struct Device {
  Result<void> usable;
  cudaStream_t stream = nullptr;
  std::mutex one_job;

  Device() {
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
      cudaGetLastError();
      usable = fail(ErrorCode::not_found, std::string("no CUDA device to voxelise on: ") +
                                              (error == cudaSuccess ? "the driver knows none" : cudaGetErrorString(error)) + "; use the host");
      return;
    }
    usable = hashgrid::cuda_result(cudaSetDevice(0), "choosing the device");
    if (usable) usable = hashgrid::cuda_result(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    if (!usable) return;
    // A batch's next job takes the memory of the last one without asking the driver.
    cudaMemPool_t pool;
    uint64_t keep = uint64_t(1) << 30;
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess) cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaGetLastError();
  }
};
// Never destroyed: the driver may be gone by the time that static objects are.
Device& device() {
  static Device* const one = new Device;
  return *one;
}

std::atomic<bool> started{false};

template <class T>
class Array {
 public:
  Array() = default;
  Array(cudaStream_t stream, size_t count) : stream_(stream), count_(count) {
    need(cudaMallocAsync(&data_, std::max<size_t>(count * sizeof(T), 1), stream), "memory to voxelise in");
  }
  Array(cudaStream_t stream, const T* from_host, size_t count) : Array(stream, count) {
    need(cudaMemcpyAsync(data_, from_host, count * sizeof(T), cudaMemcpyHostToDevice, stream), "copying the mesh");
  }
  Array(Array&& other) noexcept
      : stream_(other.stream_), data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Array() {
    if (data_) cudaFreeAsync(data_, stream_);
  }
  T* get() const { return static_cast<T*>(data_); }
  size_t count() const { return count_; }
  void download(T* to, size_t count) const {
    need(cudaMemcpyAsync(to, data_, count * sizeof(T), cudaMemcpyDeviceToHost, stream_), "copying the voxels back");
  }

 private:
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
  size_t count_ = 0;
};

uint32_t blocks_for(uint64_t threads) { return uint32_t((threads + kernels::kThreads - 1) / kernels::kThreads); }

// The arrays that a SurfaceView points to, on the device.
class DeviceSurface {
 public:
  DeviceSurface(cudaStream_t s, const Surface& surface, const uint32_t* indices, const float* positions) {
    const Mesh& mesh = surface.mesh();
    std::vector<TextureView> textures = surface.textures();
    for (size_t i = 0; i < textures.size(); ++i) {
      if (!textures[i].full) continue;
      textures[i].full = images_.emplace_back(s, textures[i].full, mesh.images[i].rgba.size()).get();
      textures[i].smaller = smaller_.emplace_back(s, textures[i].smaller, surface.smaller_size(i)).get();
    }
    textures_ = Array<TextureView>(s, textures.data(), textures.size());
    need(cudaStreamSynchronize(s), "copying textures");  // `textures` is this call's
    materials_ = Array<MaterialView>(s, surface.materials().data(), surface.materials().size());
    triangle_material_ = Array<uint32_t>(s, mesh.triangle_material.data(), mesh.triangle_material.size());
    srgb_ = Array<SrgbTables>(s, &srgb_tables(), 1);
    if (!mesh.uvs.empty()) uvs_ = Array<float>(s, mesh.uvs.data(), mesh.uvs.size());
    if (!mesh.colors.empty()) colors_ = Array<uint8_t>(s, mesh.colors.data(), mesh.colors.size());
    view_ = {positions, uvs_.get(), colors_.get(), indices, triangle_material_.get(), materials_.get(), textures_.get(), srgb_.get()};
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
  CudaSurface(VoxelizeJob& job, cudaStream_t stream) : job_(job), s_(stream) {}

  SurfaceResult run() {
    upload();
    find_pairs();
    step(0.2);
    find_bricks();
    step(0.4);
    SurfaceResult out;
    if (job_.surface.uniform()) {
      const SurfaceView& view = job_.surface.view();
      const double middle[3] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
      out.palette = quantise({{pack(*view.srgb, look_at(view, 0, middle, 0)), 1}}, job_.threads).palette;
    } else {
      find_looks();
      step(0.7);
      find_materials(out);
    }
    step(0.9);
    download(out);
    return out;
  }

 private:
  void step(double fraction) const {
    if (const auto good = job_.going(); !good) throw Failure{good.error()};
    job_.options.progress.say("voxelise", fraction);
  }
  template <class T>
  Array<T> array(size_t count) const {
    return Array<T>(s_, count);
  }
  void launched(const char* what) const { need(cudaGetLastError(), what); }
  void wait(const char* doing) const { need(cudaStreamSynchronize(s_), doing); }

  void upload() {
    const Mesh& mesh = job_.mesh;
    positions_ = Array<float>(s_, mesh.positions.data(), mesh.positions.size());
    indices_ = Array<uint32_t>(s_, mesh.indices.data(), mesh.indices.size());
    vertices_ = array<int32_t>(mesh.positions.size());
    const VoxelFrame& f = job_.frame;
    const kernels::VertexFrame frame{{f.origin[0], f.origin[1], f.origin[2]}, f.scale, {f.dims.x, f.dims.y, f.dims.z}, {f.shift.x, f.shift.y, f.shift.z}};
    kernels::snap_vertices<<<blocks_for(mesh.vertex_count()), kernels::kThreads, 0, s_>>>(positions_.get(), uint32_t(mesh.vertex_count()), frame,
                                                                                        vertices_.get());
    launched("snapping vertices");
    mesh_ = {vertices_.get(), indices_.get()};
  }

  void find_pairs() {
    const auto triangles = uint32_t(job_.mesh.triangle_count());
    uint64_t capacity[kernels::kLevels] = {std::max<uint64_t>(uint64_t(1) << 20, uint64_t(triangles) * 8), 1 << 16, 1 << 14, 1 << 14};
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
        kernels::cells_of_triangles<<<blocks_for(triangles), kernels::kThreads, 0, s_>>>(mesh_, triangles, level, lists[level]);
        launched("finding cells of triangles");
        if (level + 1 < kernels::kLevels)
          kernels::cells_of_cells<<<1024, kernels::kThreads, 0, s_>>>(mesh_, level, lists[level + 1], lists[level]);
        launched("finding cells of cells");
      }
      unsigned long long found[kernels::kLevels];
      counts.download(found, kernels::kLevels);
      wait("finding bricks of triangles");
      bool fits = true;
      for (int level = 0; level < kernels::kLevels; ++level) {
        fits = fits && found[level] <= capacity[level];
        capacity[level] = std::max<uint64_t>(capacity[level], found[level]);
      }
      if (found[0] >= uint64_t(1) << 31) throw Failure{{ErrorCode::out_of_memory, "more than 2^31 pairs of brick and triangle; voxelise on the host"}};
      if (!fits) continue;
      pair_count_ = uint32_t(found[0]);
      pairs_ = sorted(cells[0].get(), pair_count_, kTriangleBits, kPairBits);
      return;
    }
  }

  // Sorts by bits [from, to); leaves rubbish in `words`.
  Array<uint64_t> sorted(uint64_t* words, uint32_t count, int from, int to) const {
    Array<uint64_t> other = array<uint64_t>(count);
    size_t bytes = 0;
    need(cub::DeviceRadixSort::SortKeys(nullptr, bytes, words, other.get(), count, from, to, s_), "sorting");
    const Array<char> scratch = array<char>(bytes);
    need(cub::DeviceRadixSort::SortKeys(scratch.get(), bytes, words, other.get(), count, from, to, s_), "sorting");
    return other;
  }

  // Positions in a sorted array at which words >> shift changes. Waits.
  Array<uint32_t> runs(const uint64_t* words, uint32_t count, int shift, uint32_t& found) const {
    Array<uint32_t> positions = array<uint32_t>(count), number = array<uint32_t>(1);
    const thrust::counting_iterator<uint32_t> all(0);
    const kernels::RunBegins begins{words, shift};
    size_t bytes = 0;
    need(cub::DeviceSelect::If(nullptr, bytes, all, positions.get(), number.get(), count, begins, s_), "finding runs");
    const Array<char> scratch = array<char>(bytes);
    need(cub::DeviceSelect::If(scratch.get(), bytes, all, positions.get(), number.get(), count, begins, s_), "finding runs");
    number.download(&found, 1);
    wait("finding runs");
    return positions;
  }

  void find_bricks() {
    starts_ = runs(pairs_.get(), pair_count_, kTriangleBits, bricks_);
    pair_masks_ = array<uint64_t>(size_t(pair_count_) * 8);
    kernels::masks_of_pairs<<<blocks_for(pair_count_), kernels::kThreads, 0, s_>>>(mesh_, pairs_.get(), pair_count_, job_.thin(), pair_masks_.get());
    launched("voxelising pairs");
    masks_ = array<uint64_t>(size_t(bricks_) * 8);
    shared_ = array<uint64_t>(size_t(bricks_) * 8);
    keys_ = array<uint32_t>(bricks_);
    voxel_counts_ = array<uint32_t>(bricks_);
    kernels::masks_of_bricks<<<blocks_for(uint64_t(bricks_) * 8), kernels::kThreads, 0, s_>>>(
        pairs_.get(), starts_.get(), bricks_, pair_count_, pair_masks_.get(), masks_.get(), shared_.get(), keys_.get(), voxel_counts_.get());
    launched("joining masks");
  }

  void find_looks() {
    Array<uint32_t> offsets = array<uint32_t>(bricks_);
    size_t bytes = 0;
    need(cub::DeviceScan::ExclusiveSum(nullptr, bytes, voxel_counts_.get(), offsets.get(), bricks_, s_), "counting voxels");
    const Array<char> scratch = array<char>(bytes);
    need(cub::DeviceScan::ExclusiveSum(scratch.get(), bytes, voxel_counts_.get(), offsets.get(), bricks_, s_), "counting voxels");
    uint32_t before_last = 0, last = 0;
    need(cudaMemcpyAsync(&before_last, offsets.get() + bricks_ - 1, sizeof before_last, cudaMemcpyDeviceToHost, s_), "counting voxels");
    need(cudaMemcpyAsync(&last, voxel_counts_.get() + bricks_ - 1, sizeof last, cudaMemcpyDeviceToHost, s_), "counting voxels");
    const DeviceSurface surface(s_, job_.surface, indices_.get(), positions_.get());
    wait("counting voxels");
    voxels_ = before_last + last;
    const auto triangles = uint32_t(job_.mesh.triangle_count());
    const Array<uint8_t> levels = array<uint8_t>(triangles);
    kernels::texture_levels<<<blocks_for(triangles), kernels::kThreads, 0, s_>>>(surface.view(), triangles, job_.frame.scale, levels.get());
    launched("choosing texture levels");
    looks_ = array<PackedLook>(voxels_);
    if (voxels_ == 0) return;
    const kernels::ColorJob job{surface.view(), mesh_,         levels.get(),  pairs_.get(), pair_masks_.get(), starts_.get(),
                                offsets.get(),  masks_.get(), shared_.get(), bricks_,      pair_count_};
    kernels::looks_of_voxels<<<blocks_for(voxels_), kernels::kThreads, 0, s_>>>(job, voxels_, looks_.get());
    launched("colouring voxels");
    wait("colouring voxels");  // `surface` and `levels` are this call's, and so are the mesh's copies
    pair_masks_ = {};
    pairs_ = {};
  }

  void find_materials(SurfaceResult& out) {
    if (voxels_ == 0) return;
    Array<PackedLook> copy = array<PackedLook>(voxels_);
    need(cudaMemcpyAsync(copy.get(), looks_.get(), size_t(voxels_) * sizeof(PackedLook), cudaMemcpyDeviceToDevice, s_), "copying looks");
    constexpr int kLookBits = 56;
    const Array<PackedLook> rising = sorted(copy.get(), voxels_, 0, kLookBits);
    uint32_t count = 0;
    const Array<uint32_t> positions = runs(rising.get(), voxels_, 0, count);
    const Array<PackedLook> distinct = array<PackedLook>(count);
    kernels::gather_words<<<blocks_for(count), kernels::kThreads, 0, s_>>>(rising.get(), positions.get(), count, distinct.get());
    launched("gathering looks");
    std::vector<PackedLook> looks(count);
    std::vector<uint32_t> first(count);
    distinct.download(looks.data(), count);
    positions.download(first.data(), count);
    wait("gathering looks");
    std::vector<LookCount> counted(count);
    for (uint32_t i = 0; i < count; ++i) counted[i] = {looks[i], (i + 1 < count ? first[i + 1] : voxels_) - first[i]};
    const Quantised quantised = quantise(std::move(counted), job_.threads);
    out.palette = quantised.palette;
    out.rms_error = quantised.rms_error;
    out.distinct = count;
    std::vector<uint8_t> of_look(count);
    parallel_for(count, 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) of_look[i] = quantised.of(looks[i]);
    }, job_.threads);
    const Array<uint8_t> materials(s_, of_look.data(), count);
    materials_ = array<uint8_t>(voxels_);
    kernels::materials_of_voxels<<<blocks_for(voxels_), kernels::kThreads, 0, s_>>>(looks_.get(), voxels_, distinct.get(), materials.get(), count,
                                                                                   materials_.get());
    launched("choosing materials");
    wait("choosing materials");
  }

  void download(SurfaceResult& out) {
    std::vector<uint32_t> keys(bricks_);
    std::vector<BrickMask> masks(bricks_);
    std::vector<uint8_t> materials(job_.surface.uniform() ? 0 : voxels_);
    keys_.download(keys.data(), bricks_);
    need(cudaMemcpyAsync(masks.data(), masks_.get(), masks.size() * sizeof(BrickMask), cudaMemcpyDeviceToHost, s_), "copying the voxels back");
    if (!materials.empty()) materials_.download(materials.data(), materials.size());
    wait("copying the voxels back");
    constexpr size_t kBricksPerPiece = 1024;
    size_t voxel = 0;
    for (size_t b = 0; b < keys.size(); ++b) {
      uint32_t set = 0;
      for (const uint64_t word : masks[b]) set += uint32_t(std::popcount(word));
      if (set == 0) continue;
      if (out.pieces.empty() || out.pieces.back().bricks.size() == kBricksPerPiece) out.pieces.emplace_back().bricks.reserve(kBricksPerPiece);
      SurfacePiece& piece = out.pieces.back();
      piece.bricks.emplace_back(brick_of_pair(Pair(keys[b]) << kTriangleBits), masks[b]);
      if (!materials.empty()) piece.materials.insert(piece.materials.end(), materials.begin() + ptrdiff_t(voxel), materials.begin() + ptrdiff_t(voxel + set));
      voxel += set;
    }
  }

  VoxelizeJob& job_;
  cudaStream_t s_;
  Array<float> positions_;
  Array<uint32_t> indices_;
  Array<int32_t> vertices_;
  kernels::MeshView mesh_{};
  Array<Pair> pairs_;  // sorted by brick
  Array<uint64_t> pair_masks_, masks_, shared_;
  Array<uint32_t> starts_, keys_, voxel_counts_;
  Array<PackedLook> looks_;
  Array<uint8_t> materials_;
  uint32_t pair_count_ = 0, bricks_ = 0, voxels_ = 0;
};

}  // namespace

Result<void> cuda_for_voxelize() {
  if (device().usable) started.store(true, std::memory_order_relaxed);
  return device().usable;
}
bool cuda_has_started() { return started.load(std::memory_order_relaxed); }

Result<SurfaceResult> surface_on_cuda(VoxelizeJob& job) {
  if (!device().usable) return tl::unexpected(device().usable.error());
  const std::lock_guard lock(device().one_job);
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(0);
  Result<SurfaceResult> out = SurfaceResult{};
  try {
    out = CudaSurface(job, device().stream).run();
  } catch (const Failure& failure) {
    out = tl::unexpected(failure.error);
  }
  if (before != 0) cudaSetDevice(before);
  return out;
}

}  // namespace quarry::voxelize_detail
