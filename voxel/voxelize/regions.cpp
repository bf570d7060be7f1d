// SPDX-License-Identifier: Apache-2.0
// regions.cpp - plans regions by estimated peak memory, has each voxelised, by host threads or on CUDA devices ahead of
// the region that is being passed on, and keeps what host threads made on disk until the palette is known.
#include "voxel/voxelize/regions.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "base/in_order.hpp"
#include "voxel/io/files/spill.hpp"
#include "voxel/voxelize/bricks.hpp"

namespace quarry {
namespace {
using namespace voxelize_detail;

// The bytes that a region needs at its peak. A brick takes 650 in a map, 80 in a block, 8 for its place among the
// pairs, and some 60 compressed and half written. Colours add 9 bytes of packed materials and indices for each of some
// 110 voxels, and counts of materials.
constexpr uint64_t kPairBytes = 16, kBrickBytes = 800, kColouredBrickBytes = 2200;
constexpr uint64_t kCrossingBytes = 16, kCrossingsPerBrick = 110;
// The part of the room that is planned. The rest is a reserve: allocators keep some freed memory, and each thread
// compresses chunks.
constexpr double kPlanned = 0.6;
// The same on a device: what its kernels take for a pair, for a brick, and for a brick with some 200 coloured voxels.
constexpr uint64_t kDevicePairBytes = 104, kDeviceBrickBytes = 200, kDeviceColouredBrickBytes = 8000;
// What CUDA itself takes of the host's memory is some hundreds of MiB: where not much more is left, host threads do it.
constexpr uint64_t kRoomForCuda = uint64_t(1) << 30;
// So many regions for each of several makers that all of them have something to do until the end.
constexpr uint64_t kRegionsOfAMaker = 12;
constexpr size_t kRegionTrianglesPerTask = 4096;

std::string mib(uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

// The triangles of slabs of chunks, which a region's triangles are looked for in.
class SlabTriangles {
 public:
  SlabTriangles(VoxelizeJob& job, const FixedMesh& mesh)
      : job_(job), mesh_(mesh), first_(chunks_of(all_bricks(job)).min.x) {}

  // Finds those of chunks [from, to] along x, counted from the first of the bounds on, if they are not the last ones.
  const std::vector<uint32_t>& of(int32_t from, int32_t to) {
    if (from == from_ && to == to_) return triangles_;
    if (spans_.empty()) find_spans();
    from_ = from;
    to_ = to;
    triangles_.clear();
    for (size_t t = 0; t < spans_.size(); ++t)
      if (spans_[t].lo <= to && spans_[t].hi >= from) triangles_.push_back(uint32_t(t));
    return triangles_;
  }

 private:
  // Of each triangle the chunks along x that it touches.
  struct Span {
    uint8_t lo, hi;
  };
  void find_spans() {
    spans_.resize(job_.mesh.triangle_count());
    job_.in_parallel(0, 0, spans_.size(), kRegionTrianglesPerTask, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        const CellRange range = cells_of(mesh_.triangle(t), kBrickShift);
        spans_[t] = {uint8_t((range.lo[0] >> 3) - first_), uint8_t((range.hi[0] >> 3) - first_)};
      }
    });
  }

  VoxelizeJob& job_;
  const FixedMesh& mesh_;
  const int32_t first_;
  std::vector<Span> spans_;
  int32_t from_ = -1, to_ = -1;
  std::vector<uint32_t> triangles_;
};

// Host threads. What was made to count the materials is kept, on disk if there are several regions, until it is asked
// for.
class HostMaker final : public SurfaceMaker {
 public:
  HostMaker(VoxelizeJob& job, const FixedMesh& mesh, SlabTriangles& slabs)
      : job_(job), mesh_(mesh), slabs_(slabs), all_(all_bricks(job)) {}

  // Opens the file where surfaces wait.
  Result<void> begin_waiting(const std::filesystem::path& beside) {
    QRY_TRY_ASSIGN(auto made, io::Spill::create(beside));
    waiting_ = std::move(made);
    return {};
  }
  void keep_next() { keeps_ = true; }
  bool waits() const { return waiting_ != nullptr; }

  Result<std::vector<uint32_t>> count_pairs() override {
    const Box3 chunks = chunks_of(all_);
    const Int3 first = chunks.min, size = chunks.max - chunks.min + Int3{1, 1, 1};
    std::vector<std::atomic<uint32_t>> pairs(size_t(size.x) * size_t(size.y) * size_t(size.z));
    job_.in_parallel(0.1, 1, job_.mesh.triangle_count(), kRegionTrianglesPerTask, [&](size_t begin, size_t end) {
      // Neighbours' pairs are often of the same few chunks, and several threads' too: they are added up here first.
      struct Sum {
        size_t chunk = 0;
        uint32_t pairs = 0;
      };
      std::array<Sum, 64> sums{};
      const auto flush = [&](Sum& sum) {
        if (sum.pairs) pairs[sum.chunk].fetch_add(std::exchange(sum.pairs, 0), std::memory_order_relaxed);
      };
      for (size_t t = begin; t < end; ++t) {
        const FixedTriangle f = mesh_.triangle(t);
        visit_cells(f, kBrickShift, cells_of(f, kBrickShift), [&](int32_t x, int32_t y, int32_t z) {
          const Int3 c = chunk_of({x, y, z}) - first;
          const size_t at = (size_t(c.x) * size_t(size.y) + size_t(c.y)) * size_t(size.z) + size_t(c.z);
          Sum& sum = sums[at % sums.size()];
          if (sum.chunk != at) {
            flush(sum);
            sum.chunk = at;
          }
          ++sum.pairs;
        });
      }
      for (Sum& sum : sums) flush(sum);
    });
    QRY_TRY(job_.going());
    return std::vector<uint32_t>(pairs.begin(), pairs.end());
  }

  Result<std::vector<std::vector<MaterialCount>>> count_materials(const Box3& bricks) override {
    RegionSurface surface = surface_of(bricks);
    QRY_TRY(job_.going());
    if (keeps_) kept_ = std::move(surface.blocks);
    else if (waiting_) QRY_TRY(spill(surface.blocks));
    return std::move(surface.counts);
  }

  Result<std::vector<SurfaceBlock>> make(size_t number, const Box3& bricks, const Quantised* quantised) override {
    QRY_TRY_ASSIGN(auto blocks, again(number, bricks));
    if (quantised) give_materials(job_, *quantised, blocks);
    QRY_TRY(job_.going());
    return blocks;
  }

 private:
  RegionSurface surface_of(const Box3& bricks) {
    const int32_t first = all_.min.x >> 3;
    const std::vector<uint32_t>& triangles = slabs_.of((bricks.min.x >> 3) - first, (bricks.max.x >> 3) - first);
    return surface_in_region(job_, mesh_, {intersected(bricks, all_), triangles.data(), triangles.size()});
  }
  Result<void> spill(const std::vector<SurfaceBlock>& blocks) {
    spilled_.push_back({waiting_->size(), {}});
    for (const SurfaceBlock& block : blocks) {
      spilled_.back().lengths.emplace_back(block.bricks.size(), block.packed.size());
      waiting_->append_all(std::span(block.bricks));
      waiting_->append_all(std::span(block.packed));
    }
    return waiting_->good();
  }
  Result<std::vector<SurfaceBlock>> again(size_t region, const Box3& box) {
    if (kept_) return std::move(*kept_);
    if (region >= spilled_.size()) return surface_of(box).blocks;
    uint64_t at = spilled_[region].at;
    std::vector<SurfaceBlock> blocks(spilled_[region].lengths.size());
    for (size_t p = 0; p < blocks.size(); ++p) {
      blocks[p].bricks.resize(spilled_[region].lengths[p].first);
      blocks[p].packed.resize(spilled_[region].lengths[p].second);
      const std::span bricks(blocks[p].bricks);
      const std::span packed(blocks[p].packed);
      if (!waiting_->read_all(at, bricks) || !waiting_->read_all(at + bricks.size_bytes(), packed))
        return tl::unexpected(waiting_->good().error());
      at += bricks.size_bytes() + packed.size_bytes();
    }
    return blocks;
  }

  VoxelizeJob& job_;
  const FixedMesh& mesh_;
  SlabTriangles& slabs_;
  const Box3 all_;
  std::unique_ptr<io::Spill> waiting_;
  struct SpilledRegion {
    uint64_t at;
    std::vector<std::pair<size_t, size_t>> lengths;  // bricks and packed materials of each block
  };
  std::vector<SpilledRegion> spilled_;  // by region
  bool keeps_ = false;
  std::optional<std::vector<SurfaceBlock>> kept_;  // the only region's surface
};

// Adds up the materials of regions.
class MaterialSum {
 public:
  // `blocks`: each rising.
  void add(std::vector<std::vector<MaterialCount>>&& blocks) {
    for (auto& block : blocks) {
      more_.insert(more_.end(), block.begin(), block.end());
      std::vector<MaterialCount>().swap(block);
    }
    // Only when it has doubled, so that many regions do not go through all of it each time.
    if (more_.size() > all_.size()) join();
  }
  std::vector<MaterialCount> take() {
    join();
    return std::move(all_);
  }

 private:
  void join() {
    if (!std::ranges::is_sorted(more_, {}, &MaterialCount::material))
      std::ranges::sort(more_, {}, &MaterialCount::material);
    std::vector<MaterialCount> sum;
    sum.reserve(all_.size());
    const auto put = [&](const MaterialCount& l) {
      if (!sum.empty() && sum.back().material == l.material) sum.back().count += l.count;
      else sum.push_back(l);
    };
    auto a = all_.begin();
    for (const MaterialCount& l : more_) {
      for (; a != all_.end() && a->material <= l.material; ++a) put(*a);
      put(l);
    }
    for (; a != all_.end(); ++a) put(*a);
    all_ = std::move(sum);
    std::vector<MaterialCount>().swap(more_);
  }

  std::vector<MaterialCount> all_, more_;  // rising, distinct; not yet among them
};

class Regions {
 public:
  Regions(VoxelizeJob& job, const RegionSink& sink) : job_(job), sink_(sink), all_(all_bricks(job)) {
    const Box3 chunks = chunks_of(all_);
    first_ = chunks.min;
    size_ = chunks.max - chunks.min + Int3{1, 1, 1};
  }

  Result<RegionsDone> run() {
    job_.set_window(0, 0.05);
    // Devices start and get the mesh while the host does for itself.
    auto makers = std::async([this] { return makers_wanted(); });
    mesh_ = fixed_mesh(job_);
    QRY_TRY_ASSIGN(makers_, makers.get());
    QRY_TRY(count_pairs());
    QRY_TRY(job_.going());
    if (solid()) inside_.emplace(job_, mesh_, job_.options.fill);
    QRY_TRY(job_.going());
    QRY_TRY(plan());
    QRY_TRY(find_palette());
    QRY_TRY(sink_.begin(scene_without_bricks(job_, palette_, distinct_, rms_error_)));
    const Quantised* const quantised = quantised_ ? &*quantised_ : nullptr;
    QRY_TRY(each_region<MadeRegion>(
        pass_from_, 1, most_ahead(), [&](SurfaceMaker& maker, size_t i) { return make(maker, i, quantised); },
        [&](size_t i, MadeRegion&& made) { return pass_on(i, std::move(made)); }));
    // It takes a device a while to give back so much memory.
    parallel_for(makers_.size(), 1, [&](size_t maker, size_t) { makers_[maker].reset(); });
    makers_.clear();
    if (!any_) return tl::unexpected(too_thin());
    job_.set_window(0, 1);
    job_.say(1);
    return RegionsDone{regions_.size()};
  }

 private:
  bool solid() const { return job_.options.fill != FillRule::none; }
  bool coloured() const { return !job_.surface.uniform(); }
  // Devices, if the job is for them; else none, and host threads make all.
  Result<SurfaceMakers> makers_wanted() const {
    const bool asked_for = job_.options.executor == VoxelizeExecutor::cuda;
    if (!asked_for && (sink_.available_bytes() < kRoomForCuda || !cuda_is_wanted(job_))) return {};
    auto made = makers_on_cuda(job_, job_.options.devices);
    if (!made && !asked_for) return {};
    return made;
  }

  // Of regions whose bricks are being made on devices, or wait for those before them.
  size_t most_ahead() const { return makers_.size() + 1; }

  // Calls use(i, T) for each region in order, on this thread, with what make(maker, i), a Result<T>, made of it. On
  // devices at most `ahead` are being made or wait.
  template <class T, class Make, class Use>
  Result<void> each_region(double from, double to, size_t ahead, const Make& make, const Use& use) {
    if (makers_.empty()) {
      for (size_t i = 0; i < regions_.size(); ++i) {
        window(from, to, i);
        QRY_TRY_ASSIGN(auto made, make(host_, i));
        QRY_TRY(use(i, std::move(made)));
      }
      return {};
    }
    return make_in_order<T>(
        regions_.size(), makers_.size(), ahead, [&](size_t maker, size_t i) { return make(*makers_[maker], i); },
        [&](size_t i, Result<T>&& made) -> Result<void> {
          window(from, to, i);
          if (!made && may_be_the_hosts(made.error())) made = make(host_, i);
          QRY_TRY(made);
          QRY_TRY(use(i, std::move(*made)));
          job_.say(1);
          return {};
        });
  }

  // A device that has no room for a region costs time, not the result; nor does one that fails, unless it was asked
  // for.
  bool may_be_the_hosts(const Error& error) const {
    return error.code == ErrorCode::out_of_memory || error.code == ErrorCode::full ||
           (job_.options.executor != VoxelizeExecutor::cuda && error.code != ErrorCode::cancelled);
  }

  void window(double from, double to, size_t region) {
    const double step = (to - from) / double(regions_.size());
    job_.set_window(from + step * double(region), from + step * double(region + 1));
  }

  Result<void> count_pairs() {
    auto counted = (makers_.empty() ? host_ : *makers_.front()).count_pairs();
    if (!counted && !makers_.empty() && may_be_the_hosts(counted.error())) counted = host_.count_pairs();
    QRY_TRY_ASSIGN(pairs_, std::move(counted));
    return {};
  }

  uint64_t bytes_of_chunk(size_t number) const {
    const uint64_t pairs = pairs_[number], touched = std::min<uint64_t>(pairs, 512), bricks = solid() ? 512 : touched;
    if (makers_.empty()) return pairs * kPairBytes + bricks * (coloured() ? kColouredBrickBytes : kBrickBytes);
    // The pairs are the device's, and the colours; what it takes counts as the same part of the host's room.
    const uint64_t on_device =
        pairs * kDevicePairBytes + touched * (coloured() ? kDeviceColouredBrickBytes : kDeviceBrickBytes);
    return std::max(bricks * (kBrickBytes + 200), uint64_t(double(on_device) * device_scale_));
  }
  // The bytes of a slab's crossings and of its layers' inside.
  uint64_t bytes_of_slab(int32_t x) const {
    if (!solid()) return 0;
    uint64_t pairs = 0;
    const size_t side = size_t(size_.y) * size_t(size_.z), from = size_t(x) * side;
    for (size_t i = 0; i < side; ++i) pairs += std::min<uint64_t>(pairs_[from + i], 512);
    return pairs * kCrossingsPerBrick * kCrossingBytes + side * 512 * sizeof(std::pair<Int3, uint32_t>);
  }

  // How much of what is available for a region is planned for one.
  uint64_t room_of_a_region(uint64_t available_bytes) {
    const auto room = uint64_t(double(available_bytes) * kPlanned);
    if (makers_.empty()) return room;
    uint64_t on_device = ~uint64_t(0);
    for (const auto& maker : makers_) on_device = std::min(on_device, std::max<uint64_t>(maker->device_bytes(), 1));
    device_scale_ = double(room) / (double(on_device) * kPlanned);
    uint64_t all = 0, largest = 0;
    for (int32_t x = 0; x < size_.x; ++x) {
      const size_t side = size_t(size_.y) * size_t(size_.z), slab = size_t(x) * side;
      const uint64_t once = bytes_of_slab(x);
      all += once;
      for (size_t i = 0; i < side; ++i) {
        const uint64_t one = bytes_of_chunk(slab + i);
        all += one;
        largest = std::max(largest, once + one);
      }
    }
    return std::min(room, std::max(all / (makers_.size() * kRegionsOfAMaker), largest));
  }

  // Joins chunks along z, such rows along y, and such slabs along x, as long as they fit.
  Result<void> plan() {
    const uint64_t available_bytes = sink_.available_bytes();
    const size_t at_once = makers_.empty() ? 1 : most_ahead() + 1;
    const uint64_t planned = room_of_a_region(available_bytes / at_once);
    const auto box = [&](Int3 from, Int3 to) {  // in chunks from the first on, both included
      regions_.push_back(box_of_bricks({first_ + from, first_ + to}));
    };
    const auto too_large = [&](uint64_t least, const std::string& what) {
      return fail(ErrorCode::out_of_memory, "even region by region this needs " +
                                                mib(uint64_t(double(least) / kPlanned)) + " for " + what + ", and " +
                                                mib(available_bytes) +
                                                " are left of the memory it may take; allow more, or use a lower "
                                                "resolution");
    };
    int32_t open_x = -1;  // the first slab of the open region; -1: none is open
    uint64_t open_bytes = 0;
    const auto close_x = [&](int32_t end) {
      if (open_x >= 0) box({open_x, 0, 0}, {end - 1, size_.y - 1, size_.z - 1});
      open_x = -1;
      open_bytes = 0;
    };
    for (int32_t x = 0; x < size_.x; ++x) {
      const size_t slab = size_t(x) * size_t(size_.y) * size_t(size_.z);
      const uint64_t once = bytes_of_slab(x);
      uint64_t bytes = once;
      for (size_t i = 0; i < size_t(size_.y) * size_t(size_.z); ++i) bytes += bytes_of_chunk(slab + i);
      if (open_x >= 0 && open_bytes + bytes > planned) close_x(x);
      if (bytes <= planned) {
        if (open_x < 0) open_x = x;
        open_bytes += bytes;
        continue;
      }
      if (once > planned) return too_large(once, "what is inside one slab of 64 layers of voxels");
      const uint64_t left = planned - once;
      int32_t open_y = -1;
      uint64_t rows = 0;
      const auto close_y = [&](int32_t end) {
        if (open_y >= 0) box({x, open_y, 0}, {x, end - 1, size_.z - 1});
        open_y = -1;
        rows = 0;
      };
      for (int32_t y = 0; y < size_.y; ++y) {
        const size_t row = slab + size_t(y) * size_t(size_.z);
        uint64_t in_row = 0;
        for (size_t z = 0; z < size_t(size_.z); ++z) in_row += bytes_of_chunk(row + z);
        if (open_y >= 0 && rows + in_row > left) close_y(y);
        if (in_row <= left) {
          if (open_y < 0) open_y = y;
          rows += in_row;
          continue;
        }
        int32_t from = 0;
        uint64_t run = 0;
        for (int32_t z = 0; z < size_.z; ++z) {
          const uint64_t one = bytes_of_chunk(row + size_t(z));
          if (one > left) return too_large(one + once, "one chunk of 64 x 64 x 64 voxels");
          if (run + one > left) {
            box({x, y, from}, {x, y, z - 1});
            from = z;
            run = 0;
          }
          run += one;
        }
        box({x, y, from}, {x, y, size_.z - 1});
      }
      close_y(size_.y);
    }
    close_x(size_.x);
    std::vector<uint32_t>().swap(pairs_);
    return {};
  }

  Result<void> find_palette() {
    pass_from_ = 0.05;
    if (!coloured()) {
      palette_ = uniform_palette(job_);
      return {};
    }
    MaterialSum sum;
    if (regions_.size() == 1) {
      host_.keep_next();
    } else {
      if (makers_.empty() && !sink_.beside.empty()) QRY_TRY(host_.begin_waiting(sink_.beside));
      pass_from_ = host_.waits() ? 0.85 : 0.5;
    }
    const size_t ahead = 4 * makers_.size();  // such lists are short
    QRY_TRY(each_region<std::vector<std::vector<MaterialCount>>>(
        0.05, pass_from_, ahead, [&](SurfaceMaker& maker, size_t i) { return maker.count_materials(regions_[i]); },
        [&](size_t, std::vector<std::vector<MaterialCount>>&& counts) -> Result<void> {
          sum.add(std::move(counts));
          return {};
        }));
    std::vector<MaterialCount> materials = sum.take();
    distinct_ = materials.size();
    const std::vector<MaterialCount> counts = solid() ? materials : std::vector<MaterialCount>();
    quantised_ = quantise(std::move(materials), job_.threads);
    palette_ = quantised_->palette;
    rms_error_ = quantised_->rms_error;
    std::array<uint64_t, 256> by_material{};
    for (const MaterialCount& l : counts) by_material[quantised_->of(l.material)] += l.count;
    filling_ = most_frequent(by_material);
    return {};
  }

  // A region's bricks, or if there is an inside its surface: for that the regions before must have been passed on.
  struct MadeRegion {
    std::vector<SurfaceBlock> surface;
    BrickMap bricks;
  };
  Result<MadeRegion> make(SurfaceMaker& maker, size_t number, const Quantised* quantised) {
    QRY_TRY_ASSIGN(auto surface, maker.make(number, regions_[number], quantised));
    MadeRegion made{std::move(surface), BrickMap(pool_)};
    if (solid()) return made;
    const bool ahead = !makers_.empty();  // while another region reports how far it is
    QRY_TRY(build_shell(job_, made.surface, made.bricks, ahead ? 1 : 0.94));
    std::vector<SurfaceBlock>().swap(made.surface);
    return made;
  }

  Result<void> pass_on(size_t number, MadeRegion&& made) {
    const Box3& region = regions_[number];
    if (solid()) {
      QRY_TRY(load_layers(region));
      SolidBuilder builder(made.surface, job_.options.surface != SurfaceVoxels::none, filling_, made.bricks);
      for (const InsideLayer& layer : layers_) builder.add(layer, region);
      builder.finish();
    }
    QRY_TRY(job_.going());
    if (made.bricks.empty()) return {};
    any_ = true;
    return sink_.take(0, std::move(made.bricks));
  }

  // Loads the inside of all layers of the region's slabs. It is kept for the slabs' other regions.
  Result<void> load_layers(const Box3& region) {
    const int32_t from = std::max(region.min.x, all_.min.x), to = std::min(region.max.x, all_.max.x);
    if (layers_from_ == from) return {};
    layers_from_ = from;
    layers_.clear();
    const std::vector<uint32_t>& triangles = slabs_.of((from >> 3) - first_.x, (to >> 3) - first_.x);
    inside_->load(triangles.data(), triangles.size(), to - from + 1);
    for (int32_t x = from; x <= to; ++x) {
      QRY_TRY(job_.going());
      layers_.push_back(inside_->next());
    }
    return job_.going();
  }

  VoxelizeJob& job_;
  const RegionSink& sink_;
  const Box3 all_;     // bricks
  Int3 first_, size_;  // chunks
  FixedMesh mesh_{};
  SlabTriangles slabs_{job_, mesh_};
  HostMaker host_{job_, mesh_, slabs_};
  SurfaceMakers makers_;         // on devices; none: host_ makes all
  double device_scale_ = 0;      // bytes of planned room a byte of a device's memory
  std::vector<uint32_t> pairs_;  // by chunk; kept until the plan is made
  std::vector<Box3> regions_;    // of bricks
  // Of all regions' bricks: the next ones take the places of those that are gone.
  BrickPool pool_{host_memory_source()};
  std::optional<InsideLayers> inside_;
  std::vector<InsideLayer> layers_;
  int32_t layers_from_ = INT32_MIN;  // the first slab of bricks that layers_ has
  std::optional<Quantised> quantised_;
  Palette palette_;
  size_t distinct_ = 1;
  double rms_error_ = 0, pass_from_ = 0;
  uint8_t filling_ = 1;
  bool any_ = false;  // brick
};

}  // namespace

Result<RegionsDone> voxelize_in_regions(const Mesh& mesh, const VoxelizeOptions& options, const RegionSink& sink) {
  QRY_TRY_ASSIGN(const auto frame, checked_frame(mesh, options));
  try {
    VoxelizeJob job(mesh, options, frame);
    return Regions(job, sink).run();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory,
                "not enough memory to voxelise at this resolution, even region by region; use a lower one");
  }
}

}  // namespace quarry
