// SPDX-License-Identifier: Apache-2.0
// regions.cpp - plans regions by estimated peak memory, voxelises each, and keeps surfaces on disk until the palette is
// known.
#include "voxel/voxelize/regions.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <span>

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
constexpr size_t kRegionTrianglesPerTask = 4096;

struct ChunkSpan {
  uint8_t lo, hi;  // chunk x of a triangle, from the first chunk of the bounds on
};

std::string mib(uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

class Regions {
 public:
  Regions(VoxelizeJob& job, const RegionSink& sink) : job_(job), sink_(sink), all_(all_bricks(job)) {
    const Int3 low = chunk(all_.min), high = chunk(all_.max);
    first_ = low;
    size_ = high - low + Int3{1, 1, 1};
  }

  Result<RegionsDone> run() {
    job_.set_window(0, 0.05);
    mesh_ = fixed_mesh(job_);
    count_pairs();
    QRY_TRY(job_.going());
    if (solid()) inside_.emplace(job_, mesh_, job_.options.fill);
    QRY_TRY(job_.going());
    QRY_TRY(plan());
    QRY_TRY(find_palette());
    QRY_TRY(sink_.begin(scene_without_bricks(job_, palette_, distinct_, rms_error_)));
    for (size_t i = 0; i < regions_.size(); ++i) {
      window(pass_from_, 1, i);
      QRY_TRY(make(i));
    }
    if (!any_) return tl::unexpected(too_thin());
    job_.set_window(0, 1);
    job_.say(1);
    return RegionsDone{regions_.size()};
  }

 private:
  static Int3 chunk(Int3 brick) { return {brick.x >> 3, brick.y >> 3, brick.z >> 3}; }
  bool solid() const { return job_.options.fill != FillRule::none; }
  bool coloured() const { return !job_.surface.uniform(); }
  size_t chunk_number(Int3 c) const {
    return (size_t(c.x - first_.x) * size_t(size_.y) + size_t(c.y - first_.y)) * size_t(size_.z) +
           size_t(c.z - first_.z);
  }
  void window(double from, double to, size_t region) {
    const double step = (to - from) / double(regions_.size());
    job_.set_window(from + step * double(region), from + step * double(region + 1));
  }

  void count_pairs() {
    const size_t count = job_.mesh.triangle_count();
    spans_.resize(count);
    std::vector<std::atomic<uint32_t>> pairs(size_t(size_.x) * size_t(size_.y) * size_t(size_.z));
    job_.in_parallel(0.1, 1, count, kRegionTrianglesPerTask, [&](size_t begin, size_t end) {
      size_t last = 0;
      uint32_t run = 0;  // consecutive pairs are often of one chunk
      const auto flush = [&] {
        if (run) pairs[last].fetch_add(std::exchange(run, 0), std::memory_order_relaxed);
      };
      for (size_t t = begin; t < end; ++t) {
        const FixedTriangle f = mesh_.triangle(t);
        const CellRange range = cells_of(f, kBrickShift);
        spans_[t] = {uint8_t((range.lo[0] >> 3) - first_.x), uint8_t((range.hi[0] >> 3) - first_.x)};
        visit_cells(f, kBrickShift, range, [&](int32_t x, int32_t y, int32_t z) {
          if (const size_t at = chunk_number(chunk({x, y, z})); at != last) {
            flush();
            last = at;
          }
          ++run;
        });
      }
      flush();
    });
    pairs_.assign(pairs.begin(), pairs.end());
  }

  uint64_t bytes_of_chunk(size_t number) const {
    const uint64_t pairs = pairs_[number], bricks = solid() ? 512 : std::min<uint64_t>(pairs, 512);
    return pairs * kPairBytes + bricks * (coloured() ? kColouredBrickBytes : kBrickBytes);
  }
  // The bytes of a slab's crossings and of its layers' inside.
  uint64_t bytes_of_slab(int32_t x) const {
    if (!solid()) return 0;
    uint64_t pairs = 0;
    const size_t side = size_t(size_.y) * size_t(size_.z), from = size_t(x) * side;
    for (size_t i = 0; i < side; ++i) pairs += std::min<uint64_t>(pairs_[from + i], 512);
    return pairs * kCrossingsPerBrick * kCrossingBytes + side * 512 * sizeof(std::pair<Int3, uint32_t>);
  }

  // Joins chunks along z, such rows along y, and such slabs along x, as long as they fit.
  Result<void> plan() {
    const uint64_t available_bytes = sink_.available_bytes();
    const auto planned = uint64_t(double(available_bytes) * kPlanned);
    const auto box = [&](Int3 from, Int3 to) {  // in chunks from the first on, both included
      const Int3 low = first_ + from, high = first_ + to;
      regions_.push_back({{low.x * 8, low.y * 8, low.z * 8}, {high.x * 8 + 7, high.y * 8 + 7, high.z * 8 + 7}});
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

  // Finds the triangles of the region's slabs, if the slabs have changed.
  void go_to_slabs(const Box3& region) {
    const int32_t from = chunk(region.min).x - first_.x, to = chunk(region.max).x - first_.x;
    if (from == slab_from_ && to == slab_to_) return;
    slab_from_ = from;
    slab_to_ = to;
    triangles_.clear();
    for (size_t t = 0; t < spans_.size(); ++t)
      if (spans_[t].lo <= to && spans_[t].hi >= from) triangles_.push_back(uint32_t(t));
    slab_is_new_ = true;
  }

  RegionSurface surface_of(const Box3& region) {
    go_to_slabs(region);
    return surface_in_region(job_, mesh_, {intersected(region, all_), triangles_.data(), triangles_.size()});
  }

  // Adds the materials of one region to those of the previous regions.
  static void add_counts(std::vector<std::vector<MaterialCount>>& blocks, std::vector<MaterialCount>& all) {
    std::vector<MaterialCount> more;
    for (auto& block : blocks) {
      more.insert(more.end(), block.begin(), block.end());
      std::vector<MaterialCount>().swap(block);
    }
    std::ranges::sort(more, {}, &MaterialCount::material);
    std::vector<MaterialCount> sum;
    sum.reserve(all.size());
    const auto add = [&](const MaterialCount& l) {
      if (!sum.empty() && sum.back().material == l.material) sum.back().count += l.count;
      else sum.push_back(l);
    };
    auto a = all.begin();
    for (const MaterialCount& l : more) {
      for (; a != all.end() && a->material <= l.material; ++a) add(*a);
      add(l);
    }
    for (; a != all.end(); ++a) add(*a);
    all = std::move(sum);
  }

  Result<void> find_palette() {
    pass_from_ = 0.05;
    if (!coloured()) {
      palette_ = uniform_palette(job_);
      return {};
    }
    std::vector<MaterialCount> materials;
    if (regions_.size() > 1) {
      QRY_TRY(begin_waiting());
      pass_from_ = waiting_ ? 0.85 : 0.5;
    }
    for (size_t i = 0; i < regions_.size(); ++i) {
      window(0.05, pass_from_, i);
      RegionSurface surface = surface_of(regions_[i]);
      QRY_TRY(job_.going());
      add_counts(surface.counts, materials);
      if (regions_.size() == 1) kept_ = std::move(surface.blocks);
      else QRY_TRY(spill(surface.blocks));
    }
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

  // Opens the file for the surfaces that wait on disk until the palette is known.
  Result<void> begin_waiting() {
    if (sink_.beside.empty()) return {};
    QRY_TRY_ASSIGN(auto made, io::Spill::create(sink_.beside));
    waiting_ = std::move(made);
    return {};
  }
  Result<void> spill(const std::vector<SurfaceBlock>& blocks) {
    if (!waiting_) return {};
    spilled_.push_back({waiting_->size(), {}});
    for (const SurfaceBlock& block : blocks) {
      spilled_.back().lengths.emplace_back(block.bricks.size(), block.packed.size());
      waiting_->append_all(std::span(block.bricks));
      waiting_->append_all(std::span(block.packed));
    }
    return waiting_->good();
  }
  Result<std::vector<SurfaceBlock>> surface_again(size_t region) {
    if (kept_) return std::move(*kept_);
    if (!waiting_) return surface_of(regions_[region]).blocks;
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

  Result<void> make(size_t number) {
    const Box3& region = regions_[number];
    QRY_TRY_ASSIGN(auto again, surface_again(number));
    std::vector<SurfaceBlock>& blocks = again;
    go_to_slabs(region);
    if (quantised_) give_materials(job_, *quantised_, blocks);
    QRY_TRY(job_.going());
    BrickMap bricks;
    if (solid()) {
      QRY_TRY(load_layers(region));
      SolidBuilder builder(blocks, job_.options.surface != SurfaceVoxels::none, filling_, bricks);
      for (const InsideLayer& layer : layers_) builder.add(layer, region);
      builder.finish();
    } else QRY_TRY(build_shell(job_, blocks, bricks));
    QRY_TRY(job_.going());
    if (bricks.empty()) return {};
    any_ = true;
    return sink_.take(0, std::move(bricks));
  }

  // Loads the inside of all layers of the region's slabs. It is kept for the slabs' other regions.
  Result<void> load_layers(const Box3& region) {
    if (!slab_is_new_) return {};
    slab_is_new_ = false;
    layers_.clear();
    const int32_t from = std::max(region.min.x, all_.min.x), to = std::min(region.max.x, all_.max.x);
    inside_->load(triangles_.data(), triangles_.size(), to - from + 1);
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
  std::vector<ChunkSpan> spans_;  // by triangle
  std::vector<uint32_t> pairs_;   // by chunk; kept until the plan is made
  std::vector<Box3> regions_;     // of bricks
  std::optional<InsideLayers> inside_;
  std::vector<InsideLayer> layers_;
  int32_t slab_from_ = -1, slab_to_ = -1;
  bool slab_is_new_ = false;
  std::vector<uint32_t> triangles_;  // of the slabs
  std::optional<Quantised> quantised_;
  std::unique_ptr<io::Spill> waiting_;
  struct SpilledRegion {
    uint64_t at;
    std::vector<std::pair<size_t, size_t>> lengths;  // bricks and packed materials of each block
  };
  std::vector<SpilledRegion> spilled_;             // by region
  std::optional<std::vector<SurfaceBlock>> kept_;  // the only region's surface, from the pass for the palette
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
