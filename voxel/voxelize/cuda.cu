// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the surface's voxels on a CUDA device: the same voxels and colours as on the host, bit for bit.
//
//   vertices --snap--> triangles --cells of 512, 64, 8 bricks--> (brick, triangle) pairs --radix sort--> bricks
//      pairs -> a mask each -> masks of bricks -> a packed material a voxel -> sorted, distinct -> palette (host) -> a
//      material a voxel
//
// Memory on the device: 88 bytes a pair, 140 a brick, and with colours 17 a voxel; and the mesh. It grows with the
// surface and the number of triangles. Whole meshes take the process's one stream and one device, one job at a time;
// regions of one mesh take streams of the job's own, on as many devices as it was told. The code waits only for its own
// streams.
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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
constexpr uint64_t kMostPairs = uint64_t{1} << 31;  // of brick and triangle; they are numbered by 32 bits

// Two places of pinned memory, for pieces of what is copied to the host.
class HostPieces {
 public:
  static constexpr uint32_t kBricks = 1u << 15;
  struct Piece {
    BrickMask* masks;
    uint8_t* materials;
    uint32_t* keys;
  };
  HostPieces() {
    constexpr size_t kMasks = size_t(kBricks) * sizeof(BrickMask), kMaterials = size_t(kBricks) * kVoxelsPerBrick;
    for (size_t i = 0; i < 2; ++i) {
      void* memory = nullptr;
      need(cudaHostAlloc(&memory, kMasks + kMaterials + kBricks * sizeof(uint32_t), cudaHostAllocPortable),
           "memory of the host to copy voxels to");
      memory_[i].reset(static_cast<uint8_t*>(memory));
      pieces_[i] = {reinterpret_cast<BrickMask*>(memory_[i].get()), memory_[i].get() + kMasks,
                    reinterpret_cast<uint32_t*>(memory_[i].get() + kMasks + kMaterials)};
    }
  }
  Piece& operator[](uint32_t piece) { return pieces_[piece % 2]; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { cudaFreeHost(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_[2];
  Piece pieces_[2]{};
};

// The process's device, once it was found to work. It is the first one, because no option chooses another.
struct Device {
  Result<void> usable;
  std::unique_ptr<gpu::DeviceStream> stream;
  std::mutex one_job;
  std::optional<HostPieces> pieces;  // the job's that has the lock

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

// The mesh in a device's memory, in fixed point, with what its colours need. It is there after what the stream has got.
class DeviceMesh {
 public:
  DeviceMesh(const VoxelizeJob& job, const gpu::DeviceStream& s)
      : triangles_(uint32_t(job.mesh.triangle_count())),
        positions_(s, job.mesh.positions.data(), job.mesh.positions.size()),
        indices_(s, job.mesh.indices.data(), job.mesh.indices.size()),
        vertices_(s, job.mesh.positions.size()) {
    const VoxelFrame& f = job.frame;
    const kernels::VertexFrame frame{{f.origin[0], f.origin[1], f.origin[2]},
                                     f.scale,
                                     {f.dims.x, f.dims.y, f.dims.z},
                                     {f.shift.x, f.shift.y, f.shift.z}};
    const auto vertices = uint32_t(job.mesh.vertex_count());
    need(gpu::launch("snapping vertices", {blocks_for(vertices), kernels::kThreads}, s.get(), kernels::snap_vertices,
                     positions_.get(), vertices, frame, vertices_.get()));
    if (job.surface.uniform()) return;
    surface_.emplace(s, job.surface, indices_.get(), positions_.get());
    levels_ = Array<uint8_t>(s, triangles_);
    need(gpu::launch("choosing texture levels", {blocks_for(triangles_), kernels::kThreads}, s.get(),
                     kernels::texture_levels, surface_->view(), triangles_, f.scale, levels_.get()));
  }

  uint32_t triangle_count() const { return triangles_; }
  kernels::MeshView triangles() const { return {vertices_.get(), indices_.get()}; }
  // If the surface is not uniform: its colours, and the level of its textures that each triangle takes.
  const SurfaceView& colours() const { return surface_->view(); }
  const uint8_t* levels() const { return levels_.get(); }

 private:
  uint32_t triangles_;
  Array<float> positions_;
  Array<uint32_t> indices_;
  Array<int32_t> vertices_;
  std::optional<DeviceSurface> surface_;
  Array<uint8_t> levels_;
};

// What a palette made of materials is, where kernels can look it up.
struct DevicePalette {
  Array<PackedMaterial> distinct;  // rising
  Array<uint8_t> materials;
  PackedMaterial mask = ~PackedMaterial(0);
};

// The room that lists of cells took last: of the next region they take about as much.
using CellRoom = std::array<uint64_t, kernels::kLevels>;
CellRoom first_room(uint64_t triangles) {
  return {std::clamp<uint64_t>(triangles * 8, uint64_t(1) << 20, kMostPairs - 1), 1 << 16, 1 << 14, 1 << 14};
}

// The surface of a box of bricks.
class CudaSurface {
 public:
  CudaSurface(VoxelizeJob& job, const DeviceMesh& mesh, const gpu::DeviceStream& stream, const Box3& bricks)
      : job_(job),
        mesh_(mesh),
        box_{{bricks.min.x, bricks.min.y, bricks.min.z}, {bricks.max.x, bricks.max.y, bricks.max.z}},
        stream_(stream),
        s_(stream.get()) {}

  // All of the mesh. `sink`: null, or what gets the bricks in the result's place.
  SurfaceResult run(const DeviceSink* sink, bool* begun) {
    CellRoom room = first_room(mesh_.triangle_count());
    find_pairs(room);
    step(0.2);
    find_bricks();
    step(0.4);
    SurfaceResult out;
    if (job_.surface.uniform()) {
      out.palette = uniform_palette(job_);
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

  // Of each chunk of the whole box, the bricks that its triangles touch, one by one.
  std::vector<uint32_t> pairs_by_chunk(CellRoom& room) {
    const Box3 chunks = chunks_of(all_bricks(job_));
    const Int3 size = chunks.max - chunks.min + Int3{1, 1, 1};
    const size_t count = size_t(size.x) * size_t(size.y) * size_t(size.z);
    const Array<uint32_t> counts = array<uint32_t>(count);
    find_cells(room, [&](unsigned long long*) {
      need(cudaMemsetAsync(counts.get(), 0, count * sizeof(uint32_t), s_), "clearing counters");
      return kernels::ChunkCounts{counts.get(), {chunks.min.x, chunks.min.y, chunks.min.z}, {size.x, size.y, size.z}};
    });
    std::vector<uint32_t> out(count);
    counts.download(out.data(), count);
    wait("counting bricks of triangles");
    return out;
  }

  // The materials of a region with the number of their voxels, rising.
  std::vector<MaterialCount> counted(CellRoom& room) {
    if (!find_coloured(room)) return {};
    Array<PackedMaterial> distinct;
    return counted_packed(distinct);
  }

  // A region's surface, copied by way of `pieces`. `palette`: null if the surface is uniform.
  std::vector<SurfaceBlock> blocks(CellRoom& room, const DevicePalette* palette, HostPieces& pieces) {
    if (palette) {
      if (!find_coloured(room)) return {};
      give_materials(palette->distinct, palette->materials, palette->mask);
    } else {
      find_pairs(room);
      if (pair_count_ == 0) return {};
      find_bricks();
      count_voxels();
    }
    return in_pieces(pieces);
  }

 private:
  void going() const {
    if (const auto good = job_.going(); !good) throw Failure{good.error()};
  }
  void step(double fraction) const {
    going();
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

  // The packed materials of a region's voxels. Returns whether there is a voxel.
  bool find_coloured(CellRoom& room) {
    find_pairs(room);
    if (pair_count_ == 0) return false;
    going();
    find_bricks();
    find_packed_materials();
    going();
    return voxels_ > 0;
  }

  // Gives the bricks of triangles to `bricks(counter)`, which makes what takes them, as often as lists have no room; it
  // has room for all of them at the latest when the lists above have. Returns how many `counter` then is.
  template <class Bricks>
  uint64_t find_cells(CellRoom& capacity, const Bricks& bricks) {
    const uint32_t triangles = mesh_.triangle_count();
    for (;;) {
      const Array<unsigned long long> counts = array<unsigned long long>(kernels::kLevels);
      need(cudaMemsetAsync(counts.get(), 0, sizeof(unsigned long long) * kernels::kLevels, s_), "clearing counters");
      Array<Pair> cells[kernels::kLevels];
      kernels::CellList lists[kernels::kLevels];
      for (int level = 1; level < kernels::kLevels; ++level) {
        cells[level] = array<Pair>(capacity[level]);
        lists[level] = {cells[level].get(), counts.get() + level, capacity[level]};
      }
      const auto into = [&](int level, const auto& out) {
        using Out = std::remove_cvref_t<decltype(out)>;
        launch("finding cells of triangles", triangles, kernels::cells_of_triangles<Out>, mesh_.triangles(), triangles,
               level, box_, out);
        if (level + 1 < kernels::kLevels)
          launch_blocks("finding cells of cells", kernels::kCellBlocks, kernels::cells_of_cells<Out>, mesh_.triangles(),
                        level, box_, lists[level + 1], out);
      };
      for (int level = kernels::kLevels - 1; level > 0; --level) into(level, lists[level]);
      into(0, bricks(counts.get()));
      unsigned long long found[kernels::kLevels];
      counts.download(found, kernels::kLevels);
      wait("finding bricks of triangles");
      bool fits = true;
      for (int level = 0; level < kernels::kLevels; ++level) {
        fits = fits && found[level] <= capacity[level];
        capacity[level] = std::max<uint64_t>(capacity[level], found[level]);
      }
      if (fits) return found[0];
    }
  }

  void find_pairs(CellRoom& room) {
    Array<Pair> found;
    const uint64_t count = find_cells(room, [&](unsigned long long* counter) {
      if (std::exchange(room[0], std::min(room[0], kMostPairs - 1)) >= kMostPairs)
        throw Failure{{ErrorCode::full, "more than 2^31 pairs of brick and triangle; voxelise on the host"}};
      found = array<Pair>(room[0]);
      return kernels::CellList{found.get(), counter, room[0]};
    });
    pair_count_ = uint32_t(count);
    pairs_ = sorted(found.get(), pair_count_, kTriangleBits, kPairBits);
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
    launch("voxelising pairs", pair_count_, kernels::masks_of_pairs, mesh_.triangles(), pairs_.get(), pair_count_,
           job_.thin(), pair_masks_.get());
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
    packed_ = array<PackedMaterial>(voxels_);
    if (voxels_ == 0) return;
    const kernels::ColorJob job{mesh_.colours(),   mesh_.triangles(), mesh_.levels(), pairs_.get(),
                                pair_masks_.get(), starts_.get(),     offsets_.get(), masks_.get(),
                                shared_.get(),     bricks_,           pair_count_};
    launch("colouring voxels", voxels_, kernels::packed_materials_of_voxels, job, voxels_, packed_.get());
    pair_masks_ = {};
    pairs_ = {};
    starts_ = {};
    shared_ = {};
  }

  // The distinct ones of packed_, rising, with the number of their voxels; on the device, too.
  std::vector<MaterialCount> counted_packed(Array<PackedMaterial>& distinct) const {
    Array<PackedMaterial> copy = array<PackedMaterial>(voxels_);
    need(cudaMemcpyAsync(copy.get(), packed_.get(), size_t(voxels_) * sizeof(PackedMaterial), cudaMemcpyDeviceToDevice,
                         s_),
         "copying looks");
    constexpr int kMaterialBits = 56;
    const Array<PackedMaterial> rising = sorted(copy.get(), voxels_, 0, kMaterialBits);
    uint32_t count = 0;
    const Array<uint32_t> positions = runs(rising.get(), voxels_, 0, count);
    distinct = array<PackedMaterial>(count);
    launch("gathering looks", count, kernels::gather_words, rising.get(), positions.get(), count, distinct.get());
    std::vector<PackedMaterial> packed(count);
    std::vector<uint32_t> first(count);
    distinct.download(packed.data(), count);
    positions.download(first.data(), count);
    wait("gathering looks");
    std::vector<MaterialCount> counted(count);
    for (uint32_t i = 0; i < count; ++i) counted[i] = {packed[i], (i + 1 < count ? first[i + 1] : voxels_) - first[i]};
    return counted;
  }

  void give_materials(const Array<PackedMaterial>& distinct, const Array<uint8_t>& materials, PackedMaterial mask) {
    materials_ = array<uint8_t>(voxels_);
    launch("choosing materials", voxels_, kernels::materials_of_voxels, packed_.get(), voxels_, mask, distinct.get(),
           materials.get(), uint32_t(distinct.count()), materials_.get());
    packed_ = {};
  }

  void find_materials(SurfaceResult& out) {
    if (voxels_ == 0) return;
    Array<PackedMaterial> distinct;
    const std::vector<MaterialCount> counted = counted_packed(distinct);
    const Quantised quantised = quantise(counted, job_.threads);
    out.palette = quantised.palette;
    out.rms_error = quantised.rms_error;
    out.distinct = counted.size();
    std::vector<uint8_t> index_of(counted.size());
    parallel_for(
        counted.size(), 4096,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) index_of[i] = quantised.of(counted[i].material);
        },
        job_.threads);
    const Array<uint8_t> materials(stream_, index_of.data(), index_of.size());
    give_materials(distinct, materials, ~PackedMaterial(0));
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
    if (job_.surface.uniform()) count_voxels();
    if (!device().pieces) device().pieces.emplace();
    out.blocks = in_pieces(*device().pieces);
  }

  static constexpr uint32_t kBricksPerBlock = 1024;

  // Copies piece by piece to memory that is pinned, and makes blocks of one while the next is on its way.
  std::vector<SurfaceBlock> in_pieces(HostPieces& pieces) const {
    constexpr uint32_t kAtOnce = HostPieces::kBricks;
    static_assert(kAtOnce % kBricksPerBlock == 0);
    const uint32_t blocks = (bricks_ + kBricksPerBlock - 1) / kBricksPerBlock;
    std::vector<uint32_t> first(size_t(blocks) + 1, voxels_);  // voxel of each block
    need(cudaMemcpy2DAsync(first.data(), sizeof(uint32_t), offsets_.get(), kBricksPerBlock * sizeof(uint32_t),
                           sizeof(uint32_t), blocks, cudaMemcpyDeviceToHost, s_),
         "copying the voxels back");
    wait("copying the voxels back");
    const bool coloured = materials_.get() != nullptr;
    const auto begin = [&](uint32_t from) {  // a brick
      const size_t some = std::min(kAtOnce, bricks_ - from);
      const uint32_t voxel = first[from / kBricksPerBlock],
                     end = first[std::min(blocks, (from + kAtOnce) / kBricksPerBlock)];
      HostPieces::Piece& to = pieces[from / kAtOnce];
      const auto copy = [&](void* host, const void* device, size_t bytes) {
        need(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, s_), "copying the voxels back");
      };
      copy(to.keys, keys_.get() + from, some * sizeof(uint32_t));
      copy(to.masks, masks_.get() + size_t(from) * 8, some * sizeof(BrickMask));
      if (coloured) copy(to.materials, materials_.get() + voxel, end - voxel);
    };
    std::vector<SurfaceBlock> out(blocks);
    begin(0);
    for (uint32_t from = 0; from < bricks_; from += std::min(kAtOnce, bricks_ - from)) {
      wait("copying the voxels back");
      if (bricks_ - from > kAtOnce) begin(from + kAtOnce);
      const HostPieces::Piece& piece = pieces[from / kAtOnce];
      const uint32_t block = from / kBricksPerBlock, some = std::min(kAtOnce, bricks_ - from);
      job_.in_parallel(1, 1, (some + kBricksPerBlock - 1) / kBricksPerBlock, 1, [&](size_t i, size_t) {
        const uint32_t own = uint32_t(i) * kBricksPerBlock;
        fill_block(out[block + i], piece.keys + own, piece.masks + own, std::min(kBricksPerBlock, some - own),
                   coloured ? piece.materials + (first[block + i] - first[block]) : nullptr,
                   first[block + i + 1] - first[block + i]);
      });
      going();
    }
    return out;
  }

  // Puts the bricks that have voxels into an empty block. `materials`: of all of these, brick after brick; null: none.
  static void fill_block(SurfaceBlock& block, const uint32_t* keys, const BrickMask* masks, uint32_t bricks,
                         const uint8_t* materials, uint32_t voxels) {
    block.bricks.reserve(bricks);
    for (uint32_t b = 0; b < bricks; ++b) {
      uint64_t any = 0;
      for (const uint64_t word : masks[b]) any |= word;
      if (any) block.bricks.emplace_back(brick_of_pair(Pair(keys[b]) << kTriangleBits), masks[b]);
    }
    if (materials) block.materials.assign(materials, materials + voxels);
  }

  VoxelizeJob& job_;
  const DeviceMesh& mesh_;
  const kernels::BrickBox box_;
  const gpu::DeviceStream& stream_;
  cudaStream_t s_;     // the same
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
    const DeviceMesh mesh(job, *device().stream);
    out = CudaSurface(job, mesh, *device().stream, all_bricks(job)).run(sink, begun);
  } catch (const Failure& failure) {
    out = tl::unexpected(failure.error);
  }
  return out;
}

// A job's mesh on one device.
struct MeshThere {
  std::unique_ptr<gpu::DeviceStream> stream;
  std::unique_ptr<DeviceMesh> mesh;
};

class CudaMaker final : public SurfaceMaker {
 public:
  // Throws Failure. Memory of the host is taken at once, so that who plans with what is left knows of it.
  CudaMaker(VoxelizeJob& job, std::shared_ptr<const MeshThere> mesh, std::unique_ptr<gpu::DeviceStream> stream,
            uint64_t device_bytes)
      : job_(job),
        mesh_(std::move(mesh)),
        stream_(std::move(stream)),
        room_(first_room(mesh_->mesh->triangle_count() / 16)),
        device_bytes_(device_bytes) {}

  Result<std::vector<std::vector<MaterialCount>>> count_materials(const Box3& bricks) override {
    return there([&] { return std::vector<std::vector<MaterialCount>>{surface(bricks).counted(room_)}; });
  }

  Result<std::vector<SurfaceBlock>> make(size_t, const Box3& bricks, const Quantised* quantised) override {
    return there([&] {
      if (quantised && !palette_.distinct.get()) copy_palette(*quantised);
      return surface(bricks).blocks(room_, quantised ? &palette_ : nullptr, pieces_);
    });
  }

  uint64_t device_bytes() const override { return device_bytes_; }

  Result<std::vector<uint32_t>> count_pairs() override {
    return there([&] {
      CellRoom room = first_room(mesh_->mesh->triangle_count());
      return surface(all_bricks(job_)).pairs_by_chunk(room);
    });
  }

 private:
  // Runs body() with the device current, and turns what it throws into an error.
  template <class Body>
  auto there(const Body& body) const -> Result<decltype(body())> {
    const gpu::DeviceScope scope(stream_->device());
    QRY_TRY(gpu::check(scope.error(), "choosing the device"));
    try {
      return body();
    } catch (const Failure& failure) {
      return tl::unexpected(failure.error);
    }
  }
  CudaSurface surface(const Box3& bricks) const { return {job_, *mesh_->mesh, *stream_, bricks}; }

  void copy_palette(const Quantised& quantised) {
    std::vector<std::pair<PackedMaterial, uint8_t>> sorted(quantised.index.begin(), quantised.index.end());
    std::ranges::sort(sorted);
    std::vector<PackedMaterial> distinct;
    std::vector<uint8_t> materials;
    for (const auto& [packed, material] : sorted) {
      distinct.push_back(packed);
      materials.push_back(material);
    }
    palette_ = {Array<PackedMaterial>(*stream_, distinct.data(), distinct.size()),
                Array<uint8_t>(*stream_, materials.data(), materials.size()), quantised.mask};
    need(cudaStreamSynchronize(stream_->get()), "copying the palette");  // the arrays here live only in this call
  }

  VoxelizeJob& job_;
  const std::shared_ptr<const MeshThere> mesh_;
  const std::unique_ptr<gpu::DeviceStream> stream_;  // before what is in its memory
  CellRoom room_;
  DevicePalette palette_;
  HostPieces pieces_;
  const uint64_t device_bytes_;
};

Result<SurfaceMakers> makers_on(VoxelizeJob& job, int ordinal) {
  constexpr uint32_t kADevice = 2;
  QRY_TRY_ASSIGN(const auto device, gpu::device_at(ordinal));
  const gpu::DeviceScope scope(device);
  QRY_TRY(gpu::check(scope.error(), "choosing the device"));
  SurfaceMakers makers;
  try {
    auto mesh = std::make_shared<MeshThere>();
    QRY_TRY_ASSIGN(mesh->stream, gpu::DeviceStream::create(device, 0));
    mesh->mesh = std::make_unique<DeviceMesh>(job, *mesh->stream);
    need(cudaStreamSynchronize(mesh->stream->get()), "copying the mesh");  // other streams read it
    size_t free_bytes = 0, all_bytes = 0;
    need(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for the device's memory");
    for (uint32_t i = 0; i < kADevice; ++i) {
      QRY_TRY_ASSIGN(auto stream, gpu::DeviceStream::create(device, ~uint64_t(0)));
      makers.push_back(std::make_unique<CudaMaker>(job, mesh, std::move(stream), free_bytes / kADevice));
    }
  } catch (const Failure& failure) {
    return tl::unexpected(failure.error);
  }
  return makers;
}

}  // namespace

Result<SurfaceMakers> makers_on_cuda(VoxelizeJob& job, uint32_t devices) {
  QRY_TRY(cuda_for_voxelize());
  QRY_TRY_ASSIGN(const int there, gpu::device_count());
  const uint32_t wanted = devices == 0 ? uint32_t(there) : devices;
  if (wanted > uint32_t(there))
    return fail(ErrorCode::not_found, std::to_string(wanted) + " CUDA devices were asked for, and " +
                                          std::to_string(there) + (there == 1 ? " is there" : " are there"));
  // Devices start, and get the mesh, beside each other.
  std::vector<std::future<Result<SurfaceMakers>>> starting;
  for (uint32_t ordinal = 0; ordinal < wanted; ++ordinal)
    starting.push_back(std::async([&job, ordinal] { return makers_on(job, int(ordinal)); }));
  SurfaceMakers makers;
  for (auto& one : starting) {
    QRY_TRY_ASSIGN(SurfaceMakers more, one.get());
    std::ranges::move(more, std::back_inserter(makers));
  }
  return makers;
}

Result<SurfaceResult> surface_on_cuda(VoxelizeJob& job) { return surface(job, nullptr, nullptr); }
Result<SurfaceResult> surface_to_device(VoxelizeJob& job, const DeviceSink& sink, bool& begun) {
  return surface(job, &sink, &begun);
}

}  // namespace quarry::voxelize_detail
