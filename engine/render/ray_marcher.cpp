// SPDX-License-Identifier: Apache-2.0
// ray_marcher.cpp - records the passes, and has the blocking calls around them. pipelines.cpp makes the pipelines. The
// passes are in shaders/.
#include "engine/render/ray_marcher.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "engine/render/beams.hpp"
#include "engine/render/frame_settings.hpp"
#include "engine/render/offscreen.hpp"
#include "engine/render/pipeline_warmup.hpp"
#include "engine/render/pipelines.hpp"
#include "engine/render/ray_setup.hpp"
#include "engine/render/shadow_order.hpp"
#include "engine/sharing/residency.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/loader.hpp"
#include "engine/vulkan/timeline.hpp"
#include "shaders/shared/frame.h"

namespace quarry::engine {

static_assert(offsetof(QryFrame, origin) == 56 && offsetof(QryFrame, width) == 104 &&
                  offsetof(QryFrame, environment) == 136 && offsetof(QryFrame, highlight_max) == 300 &&
                  sizeof(QryFrame) == 312,
              "the frame's layout in C++ is not GLSL's scalar layout");
static_assert(sizeof(Ray) == sizeof(QryRay) && sizeof(Hit) == sizeof(QryRayHit) &&
                  offsetof(Hit, voxel) == offsetof(QryRayHit, voxel) &&
                  offsetof(Hit, face) == offsetof(QryRayHit, face) &&
                  offsetof(Hit, material) == offsetof(QryRayHit, material) &&
                  offsetof(Hit, steps) == offsetof(QryRayHit, steps) &&
                  offsetof(Hit, probe_depth) == offsetof(QryRayHit, probe_depth),
              "the shader reads and writes these");
static_assert(sizeof(QryVisibility) == 16 && sizeof(QryRay) == 24 && sizeof(QryRayHit) == 32 &&
              offsetof(QryFramePush, sample_index) == 88 &&
              // Every device has at least 128 bytes of push constants.
              offsetof(QryFramePush, tile_from) == 120 && sizeof(QryFramePush) <= 128);

namespace {

// The passes that a picture needs, in the order of their first dispatch.
struct FramePlan {
  bool shaded, lit, refraction, reflection, loads, beams, shadow_columns;
  Pass march, shadow;
  uint32_t shadow_rows;  // of a workgroup
  std::vector<Pass> passes;
};

FramePlan plan_of(const DeviceInfo& device, const SharedWorld& world, const View& view,
                  const RenderSettings& settings) {
  FramePlan plan{};
  plan.shaded = settings.view == DebugView::shaded;
  // Views with labels show the world's shape by ambient occlusion. Numbers of steps stay unchanged.
  const bool labels = settings.view == DebugView::bricks || settings.view == DebugView::probe_depth ||
                      settings.view == DebugView::material || settings.view == DebugView::load;
  plan.lit = plan.shaded || (labels && settings.ambient_rays > 0 && settings.ambient_reach > 0);
  plan.refraction = plan.shaded && world.has_transmissive();
  plan.reflection = plan.shaded && world.has_reflective();
  plan.loads = settings.view == DebugView::load;
  const bool counted = settings.view == DebugView::steps || settings.view == DebugView::probe_depth;
  plan.march = counted ? Pass::march_counted : Pass::march;
  // Software drivers have their own order (shaders/library/dispatch_pixel.glsl) and the smaller workgroups.
  plan.shadow_columns = device.type != VK_PHYSICAL_DEVICE_TYPE_CPU && shadows_by_columns(world.root(), view.origin);
  const bool small = plan.shadow_columns || device.type == VK_PHYSICAL_DEVICE_TYPE_CPU,
             one_direction = settings.shadow_rays == 1;
  plan.shadow = small ? (one_direction ? Pass::shadow_columns_one_direction : Pass::shadow_columns)
                      : (one_direction ? Pass::shadow_rows_one_direction : Pass::shadow_rows);
  plan.shadow_rows = small ? kShadowColumnRows : kShadowRows;
  // A view that shows steps counts them from the eye, so it has no beams. On a software driver, compiling beams takes
  // longer than they save in its few pictures.
  // Beams do not know of pages that are not there.
  const bool may_beam = !counted && settings.beams != Beams::never && device.beam_lanes &&
                        world.root().brick_count > 0 && !world.residency();
  plan.beams = may_beam && (settings.beams == Beams::always ||
                            (device.type != VK_PHYSICAL_DEVICE_TYPE_CPU && beams_pay(world.root(), view.origin)));
  for (const auto& [wanted, pass] : {std::pair{plan.loads, Pass::page_load_factor},
                                     {plan.beams, Pass::beams},
                                     {true, plan.march},
                                     {plan.shaded, plan.shadow},
                                     {plan.lit, Pass::ambient},
                                     {plan.refraction, Pass::refraction},
                                     {plan.reflection, Pass::reflection},
                                     {plan.shaded, Pass::shade},
                                     {!plan.shaded, Pass::debug_views}})
    if (wanted) plan.passes.push_back(pass);
  return plan;
}

// The tile, enlarged by the pixels around it that ambient_about() in resolve.glsl reads.
Tile with_neighbours(const Tile& tile, const Tile& picture) {
  constexpr uint32_t kBefore = 2, kAfter = 1;
  const uint32_t left = std::min(tile.x, kBefore), above = std::min(tile.y, kBefore);
  return {tile.x - left, tile.y - above, std::min(tile.x + tile.width + kAfter, picture.width) - (tile.x - left),
          std::min(tile.y + tile.height + kAfter, picture.height) - (tile.y - above)};
}

constexpr float kLabelReach = 32;          // voxels; reach of the rays that darken corners in debug views
constexpr uint32_t kPieceRays = 1u << 19;  // 12 MiB of rays, 16 MiB of hits; well below 65535 groups of 64

}  // namespace

// Traces lists in three pieces in turn, each with its own memory and commands. The shader reads rays and writes hits in
// host memory: on an H100 no slower than by copies in device memory (docs/results/h100/rays.md).
class RayLists {
 public:
  static Result<std::unique_ptr<RayLists>> create(Device& device);
  ~RayLists();  // waits for its own work
  RayLists(const RayLists&) = delete;
  RayLists& operator=(const RayLists&) = delete;

  // As Renderer::trace, in the world at `root`, which is there when `ready` is.
  Result<void> trace(VkPipeline pipeline, VkPipelineLayout layout, uint64_t root, Device::TimelinePoint ready,
                     size_t count, const Renderer::FillRays& fill, const Renderer::TakeHits& take);

 private:
  explicit RayLists(Device& device) : device_(&device) {}
  struct Piece {
    std::unique_ptr<Commands> commands;
    std::unique_ptr<DeviceMemory> rays, hits;  // of the host, which has them mapped
    size_t first = 0;
    uint32_t count = 0;  // 0: nothing is under way
    uint64_t value = 0;  // of the timeline, when it is done
  };
  Result<void> submit(Piece& piece, VkPipeline pipeline, VkPipelineLayout layout, uint64_t root,
                      Device::TimelinePoint ready);
  Result<void> finish(Piece& piece, const Renderer::TakeHits& take);

  Device* device_;
  std::unique_ptr<Timeline> timeline_;
  std::array<Piece, 3> pieces_;
};

Result<std::unique_ptr<RayLists>> RayLists::create(Device& device) {
  std::unique_ptr<RayLists> self(new RayLists(device));
  QRY_TRY_ASSIGN(auto timeline, Timeline::create(device, "ray lists"));
  self->timeline_ = std::move(timeline);
  return self;
}

RayLists::~RayLists() {
  if (timeline_ && timeline_->last()) (void)timeline_->wait(timeline_->last());
}

Result<void> RayLists::submit(Piece& piece, VkPipeline pipeline, VkPipelineLayout layout, uint64_t root,
                              Device::TimelinePoint ready) {
  const VulkanFunctions& vk = device_->vk();
  QRY_TRY_ASSIGN(const VkCommandBuffer commands, piece.commands->begin());
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  const QryTracePush push{root, piece.rays->address(), piece.hits->address(), piece.count};
  vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk.vkCmdDispatch(commands, (piece.count + 63) / 64, 1, 1);
  host_read_barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
  QRY_TRY(piece.commands->end());
  const uint64_t value = timeline_->last() + 1;
  QRY_TRY(device_->submit(commands, {ready}, {{timeline_->handle(), value}}));
  piece.value = timeline_->next();
  return {};
}

Result<void> RayLists::finish(Piece& piece, const Renderer::TakeHits& take) {
  const uint32_t count = std::exchange(piece.count, 0);
  if (!count) return {};
  QRY_TRY(timeline_->wait(piece.value));
  take(piece.first, {static_cast<const Hit*>(piece.hits->mapped()), count});
  return {};
}

Result<void> RayLists::trace(VkPipeline pipeline, VkPipelineLayout layout, uint64_t root, Device::TimelinePoint ready,
                             size_t count, const Renderer::FillRays& fill, const Renderer::TakeHits& take) {
  // After an error of an earlier call its pieces may be under way.
  if (timeline_->last()) QRY_TRY(timeline_->wait(timeline_->last()));
  for (Piece& piece : pieces_) piece.count = 0;
  size_t next = 0;
  for (size_t first = 0; first < count; first += kPieceRays) {
    Piece& piece = pieces_[next++ % pieces_.size()];
    QRY_TRY(finish(piece, take));
    const auto rays = uint32_t(std::min<size_t>(kPieceRays, count - first));
    if (!piece.commands) {
      QRY_TRY_ASSIGN(auto commands, Commands::create(*device_, "lists of rays"));
      piece.commands = std::move(commands);
    }
    QRY_TRY(ensure_memory(*device_, piece.rays, BufferMemory::host_upload, rays * sizeof(Ray), "quarry rays"));
    QRY_TRY(ensure_memory(*device_, piece.hits, BufferMemory::host_readback, rays * sizeof(Hit), "quarry hits"));
    fill(first, {static_cast<Ray*>(piece.rays->mapped()), rays});
    piece.first = first;
    piece.count = rays;
    if (auto ok = submit(piece, pipeline, layout, root, ready); !ok) {
      piece.count = 0;
      return ok;
    }
  }
  for (size_t i = 0; i < pieces_.size(); ++i) QRY_TRY(finish(pieces_[next++ % pieces_.size()], take));
  return {};
}

struct Renderer::State {
  Device* device = nullptr;
  std::unique_ptr<TargetSets> targets;
  // tiled_pipelines exist after the first tile. A software driver's pipelines are all for tiles. paged_pipelines, for
  // tiles too, exist after the first picture of a world of which some pages are not there.
  std::unique_ptr<Pipelines> pipelines, tiled_pipelines, paged_pipelines;
  struct Frame {
    std::unique_ptr<DeviceMemory> parameters, visibility, beams, refraction, reflection, light, accumulation,
        page_loads;
  };
  std::vector<Frame> frames;  // the frames in flight, and the one of render()
  uint32_t own_frame() const { return uint32_t(frames.size()) - 1; }
  std::unique_ptr<Offscreen> offscreen;
  std::unique_ptr<RayLists> lists;  // once a list was traced

  Result<void> ensure(std::unique_ptr<DeviceMemory>& memory, BufferMemory kind, uint64_t size_bytes,
                      const char* label) {
    return ensure_memory(*device, memory, kind, size_bytes, label);
  }

  Result<Pipelines*> pipelines_for(bool tile, bool paged) {
    if (paged) {
      if (!paged_pipelines) {
        QRY_TRY_ASSIGN(paged_pipelines, Pipelines::create(*device, targets->layout(), true, true));
      }
      return paged_pipelines.get();
    }
    if (!tile || pipelines->tiled()) return pipelines.get();
    if (!tiled_pipelines) {
      QRY_TRY_ASSIGN(auto made, Pipelines::create(*device, targets->layout(), true));
      tiled_pipelines = std::move(made);
    }
    return tiled_pipelines.get();
  }
};

Renderer::Renderer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Renderer::~Renderer() = default;

Result<std::unique_ptr<Renderer>> Renderer::create(Device& device, uint32_t frames) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.device = &device;
  QRY_TRY_ASSIGN(auto targets, TargetSets::create(device, frames + 1, true));
  s.targets = std::move(targets);
  QRY_TRY_ASSIGN(auto pipelines, Pipelines::create(device, s.targets->layout()));
  s.pipelines = std::move(pipelines);
  s.frames.resize(frames + 1);
  for (auto& frame : s.frames)
    QRY_TRY(s.ensure(frame.parameters, BufferMemory::device_mapped, sizeof(QryFrame), "quarry frame"));
  QRY_TRY_ASSIGN(auto offscreen, Offscreen::create(device, "quarry renderer"));
  s.offscreen = std::move(offscreen);
  return std::unique_ptr<Renderer>(new Renderer(std::move(state)));
}

Result<void> Renderer::record(VkCommandBuffer commands, SharedWorld& world, const View& view,
                              const RenderSettings& settings, VkImageView target, uint32_t frame_index,
                              const std::optional<Tile>& tile) {
  State& s = *state_;
  QRY_TRY(check_frame(settings, world, frame_index, s.own_frame()));
  const Tile whole{0, 0, settings.width, settings.height}, own = tile.value_or(whole);
  QRY_TRY(check_tile(settings, own));
  QRY_TRY_ASSIGN(auto chosen, s.pipelines_for(own != whole, world.residency() != nullptr));
  Pipelines& with = *chosen;
  State::Frame& frame = s.frames[frame_index];
  const uint64_t pixels = uint64_t(settings.width) * settings.height;
  const uint32_t samples = settings.samples * settings.samples;
  QRY_TRY(s.ensure(frame.visibility, BufferMemory::device, pixels * sizeof(QryVisibility), "quarry visibility"));
  const FramePlan plan = plan_of(s.device->info(), world, view, settings);
  QRY_TRY(with.need(plan.passes));
  if (plan.lit) QRY_TRY(s.ensure(frame.light, BufferMemory::device, pixels * 16, "quarry light"));
  if (plan.refraction)
    QRY_TRY(s.ensure(frame.refraction, BufferMemory::device, pixels * sizeof(QryVisibility), "quarry behind"));
  if (plan.reflection)
    QRY_TRY(s.ensure(frame.reflection, BufferMemory::device, pixels * sizeof(QryVisibility), "quarry mirror"));
  QRY_TRY(s.ensure(frame.accumulation, BufferMemory::device, samples > 1 ? pixels * 16 : 16, "quarry accumulation"));
  if (plan.beams)
    QRY_TRY(
        s.ensure(frame.beams, BufferMemory::device, beam_tiles(settings.width, settings.height) * 4, "quarry beams"));
  const uint32_t pages = std::max(world.root().grid_pages, 1u);
  if (plan.loads) QRY_TRY(s.ensure(frame.page_loads, BufferMemory::device, uint64_t(pages) * 4, "quarry page loads"));

  QryFrame f{};
  f.visibility = frame.visibility->address();
  f.refraction = plan.refraction ? frame.refraction->address() : 0;
  f.reflection = plan.reflection ? frame.reflection->address() : 0;
  f.light = plan.lit ? frame.light->address() : 0;
  f.accumulation = frame.accumulation->address();
  f.page_loads = plan.loads ? frame.page_loads->address() : 0;
  f.beams = plan.beams ? frame.beams->address() : 0;
  put_view(view, f);
  f.width = settings.width;
  f.height = settings.height;
  f.view = uint32_t(settings.view);
  f.samples_a_side = settings.samples;
  f.shadow_rays = settings.shadow_rays;
  f.ambient_rays = settings.ambient_reach > 0 ? settings.ambient_rays : 0;
  f.seed = settings.frame_seed;
  f.ambient_reach = plan.shaded ? settings.ambient_reach : std::min(settings.ambient_reach, kLabelReach);
  f.environment = environment_of(settings, world.root());
  if (settings.highlight && !settings.highlight_box.empty()) {
    const Box3& box = settings.highlight_box;
    f.highlight = 1;
    const float low[3] = {float(box.min.x), float(box.min.y), float(box.min.z)},
                high[3] = {float(box.max.x) + 1, float(box.max.y) + 1, float(box.max.z) + 1};
    std::copy_n(low, 3, f.highlight_min);
    std::copy_n(high, 3, f.highlight_max);
  }
  std::memcpy(frame.parameters->mapped(), &f, sizeof f);

  const VulkanFunctions& vk = s.device->vk();

  // Records a dispatch with a label for readers of captures.
  const auto groups = [&](const char* name, Pass what, uint32_t across, uint32_t down) {
    if (vk.vkCmdBeginDebugUtilsLabelEXT) {
      VkDebugUtilsLabelEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, nullptr, name, {0.9f, 0.6f, 0.2f, 1}};
      vk.vkCmdBeginDebugUtilsLabelEXT(commands, &info);
    }
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, with[what]);
    vk.vkCmdDispatch(commands, across, down, 1);
    if (vk.vkCmdEndDebugUtilsLabelEXT) vk.vkCmdEndDebugUtilsLabelEXT(commands);
  };
  // Dispatches over the pixels of `over`, in workgroups of 8 x `rows`.
  const auto pass = [&](const char* name, Pass what, const Tile& over, uint32_t rows, bool by_columns = false) {
    const uint32_t across = (over.width + 7) / 8, down = (over.height + rows - 1) / rows;
    const uint32_t ends[] = {over.x | over.y << 16, (over.x + over.width) | (over.y + over.height) << 16};
    if (with.tiled())
      vk.vkCmdPushConstants(commands, with.frame_layout, VK_SHADER_STAGE_COMPUTE_BIT, offsetof(QryFramePush, tile_from),
                            sizeof ends, ends);
    groups(name, what, by_columns ? down : across, by_columns ? across : down);
  };
  // The mean of light around a pixel reads its neighbours, so a tile computes those too.
  const Tile about = plan.lit ? with_neighbours(own, whole) : own;
  const QryDirectionSetup to_sun = direction_setup(f.environment.sun_direction);
  s.targets->bind(commands, with.frame_layout, frame_index, target, frame.parameters.get());
  for (uint32_t sample = 0; sample < samples; ++sample) {
    const QryFramePush push{world.root(), sample, to_sun, 0, 0};
    vk.vkCmdPushConstants(commands, with.frame_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    if (plan.loads && !sample) {
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, with[Pass::page_load_factor]);
      vk.vkCmdDispatch(commands, std::min(pages, 4096u), 1, 1);
    }
    if (plan.beams && !sample) {
      groups("beams", Pass::beams, beam_groups(s.device->info(), settings.width, settings.height), 1);
      compute_barrier(vk, commands);
    }
    if (sample) compute_barrier(vk, commands);  // the sample before may still read the buffers
    pass("march", plan.march, about, 16);
    compute_barrier(vk, commands);
    if (plan.lit) {  // none of these reads what another writes
      if (plan.shaded) pass("shadow", plan.shadow, own, plan.shadow_rows, plan.shadow_columns);
      pass("ambient", Pass::ambient, about, 4);
      if (plan.refraction) pass("behind", Pass::refraction, own, 16);
      if (plan.reflection) pass("mirror", Pass::reflection, own, 16);
      compute_barrier(vk, commands);
    }
    if (plan.shaded) pass("shade", Pass::shade, own, 8);
    else pass("views", Pass::debug_views, own, 8);
  }
  return {};
}

Result<Picture> Renderer::render_paged(const RenderedWorld& world, const View& view, const RenderSettings& settings) {
  if (reads_grid(settings.view))
    return fail(ErrorCode::unsupported,
                "this view shows the hash grid of a whole world, and of this one a part is in "
                "memory at a time; allow more memory, or choose another view");
  Offscreen& offscreen = *state_->offscreen;
  bool begun = false;
  PagedTiles tiles(settings.width, settings.height, 1, PagedTiles::edge_for(state_->device->info().type));
  while (const Tile* const tile = tiles.next()) {
    QRY_TRY_ASSIGN(auto ready, world.publish());
    Residency* const residency = world.shared.residency();
    QRY_TRY_ASSIGN(auto commands, offscreen.begin());
    QRY_TRY_ASSIGN(auto target, offscreen.begin_image(settings.width, settings.height, begun));
    residency->begin(commands);
    QRY_TRY(record(commands, world.shared, view, settings, target, state_->own_frame(), *tile));
    QRY_TRY(residency->end(commands));
    QRY_TRY(offscreen.submit_and_wait(ready));
    begun = true;
    QRY_TRY_ASSIGN(const PagesBrought brought, world.bring_pages());
    QRY_TRY(tiles.settle(brought));
  }
  QRY_TRY(offscreen.begin());
  QRY_TRY(offscreen.begin_image(settings.width, settings.height, true));
  QRY_TRY(offscreen.read_image());
  QRY_TRY(offscreen.submit_and_wait({VK_NULL_HANDLE, 0}));
  return offscreen.picture();
}

Result<Picture> Renderer::render(const RenderedWorld& world, const View& view, const RenderSettings& settings) {
  QRY_TRY(check_settings(settings));
  if (world.bring_pages) return render_paged(world, view, settings);
  Offscreen& offscreen = *state_->offscreen;
  QRY_TRY_ASSIGN(auto ready, world.publish());
  std::optional<PipelineWarmup> warmup;
  const DeviceInfo& device = state_->device->info();
  if (device.type == VK_PHYSICAL_DEVICE_TYPE_CPU && state_->device->owned() && state_->pipelines->first_start() &&
      thread_count() > 1)
    if (FramePlan plan = plan_of(device, world.shared, view, settings); !(*state_->pipelines)[plan.march])
      warmup.emplace(device.name, std::move(plan.passes), settings.width, settings.height);
  QRY_TRY_ASSIGN(auto commands, offscreen.begin());
  QRY_TRY_ASSIGN(auto target, offscreen.begin_image(settings.width, settings.height));
  QRY_TRY(record(commands, world.shared, view, settings, target, state_->own_frame()));
  QRY_TRY(offscreen.read_image());
  QRY_TRY(offscreen.submit_and_wait(ready));
  return offscreen.picture();
}

Result<void> Renderer::trace(const RenderedWorld& world, size_t count, const FillRays& fill, const TakeHits& take) {
  State& s = *state_;
  if (world.bring_pages) return fail(ErrorCode::unsupported, "lists of rays need a world that is there as a whole");
  QRY_TRY_ASSIGN(auto ready, world.publish());
  QRY_TRY(s.pipelines->need({Pass::trace}));
  if (!s.lists) {
    QRY_TRY_ASSIGN(auto lists, RayLists::create(*s.device));
    s.lists = std::move(lists);
  }
  return s.lists->trace((*s.pipelines)[Pass::trace], s.pipelines->list_layout, world.shared.root_address(), ready,
                        count, fill, take);
}

Result<std::vector<Hit>> Renderer::trace(const RenderedWorld& world, std::span<const float> origins,
                                         std::span<const float> directions) {
  if (origins.size() != directions.size() || origins.size() % 3)
    return fail(ErrorCode::invalid_argument, "rays need 3 floats of origin and 3 of direction each; got " +
                                                 std::to_string(origins.size()) + " and " +
                                                 std::to_string(directions.size()));
  std::vector<Hit> hits(origins.size() / 3);
  QRY_TRY(trace(
      world, hits.size(),
      [&](size_t first, std::span<Ray> to) {
        for (size_t i = 0; i < to.size(); ++i) {
          std::copy_n(&origins[(first + i) * 3], 3, to[i].origin);
          std::copy_n(&directions[(first + i) * 3], 3, to[i].direction);
        }
      },
      [&](size_t first, std::span<const Hit> found) {
        std::ranges::copy(found, hits.begin() + std::ptrdiff_t(first));
      }));
  return hits;
}

}  // namespace quarry::engine
