// SPDX-License-Identifier: Apache-2.0
// passes.cpp - the dispatches, their timestamps, and the checks that make a figure valid.
#include "bench/render/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/parallel.hpp"
#include "bench/render/scenes.hpp"
#include "bench/render/shaders/bench_rays.h"
#include "bench_rays_spirv.h"
#include "engine/render/beams.hpp"
#include "engine/render/frame_settings.hpp"
#include "engine/render/offscreen.hpp"
#include "engine/render/ray_marcher.hpp"
#include "engine/render/ray_setup.hpp"
#include "engine/render/shadow_order.hpp"
#include "engine/vulkan/loader.hpp"
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/frame.h"

namespace quarry::bench {
namespace {

using engine::BufferMemory;
using engine::DeviceMemory;
using engine::vk_check;

static_assert(sizeof(QryBenchFrame) == 120 && offsetof(QryBenchFrame, origin) == 40 &&
              offsetof(QryBenchFrame, width) == 112);
static_assert(sizeof(QryBenchPush) == 128);

struct Pass {
  const char* name;
  uint32_t pass;
  uint32_t rows;  // a workgroup is 8 x this many pixels; a warp of 32 is 8 x 4 of them
  bool only_pyramid = false, from_beams = false, inside = false;
  bool beams_first = false;  // measures beams and a barrier before the pass too
  uint32_t rays_a_thread = 1;
  float reach = 1e29f;
  bool per_hit = false;     // counts a ray for each hit, else for each pixel
  bool by_columns = false;  // the order of shadows' workgroups
};
constexpr Pass kPasses[] = {
    {.name = "make rays", .pass = kQryBenchMakeRays, .rows = 16},
    {.name = "pyramid only", .pass = kQryBenchPrimary, .rows = 16, .only_pyramid = true},
    {.name = "beams", .pass = kQryBenchBeams, .rows = 1},
    {.name = "primary", .pass = kQryBenchPrimary, .rows = 16},
    {.name = "primary after beams", .pass = kQryBenchPrimary, .rows = 16, .from_beams = true},
    {.name = "primary with beams", .pass = kQryBenchPrimary, .rows = 16, .from_beams = true, .beams_first = true},
    {.name = "shadow by rows", .pass = kQryBenchShadow, .rows = engine::kShadowRows, .inside = true, .per_hit = true},
    {.name = "shadow by columns",
     .pass = kQryBenchShadow,
     .rows = engine::kShadowColumnRows,
     .inside = true,
     .per_hit = true,
     .by_columns = true},
    {.name = "ambient, 1 a thread", .pass = kQryBenchAmbient, .rows = 8, .inside = true, .per_hit = true},
    {.name = "ambient", .pass = kQryBenchAmbient, .rows = 4, .inside = true, .rays_a_thread = 4, .per_hit = true},
    {.name = "ambient, 64 voxels",
     .pass = kQryBenchAmbient,
     .rows = 4,
     .inside = true,
     .rays_a_thread = 4,
     .reach = 64.0f,
     .per_hit = true},
    {.name = "ambient, 64 voxels, 1 a thread",
     .pass = kQryBenchAmbient,
     .rows = 8,
     .inside = true,
     .reach = 64.0f,
     .per_hit = true},
    {.name = "shade", .pass = kQryBenchShade, .rows = 16},
};
constexpr size_t kPassCount = std::size(kPasses);
constexpr uint32_t kWarmRounds = 2;
constexpr std::chrono::milliseconds kWarmUp{500};
constexpr uint32_t kBeams = 2;
static_assert(kPasses[kBeams].pass == kQryBenchBeams);

class Passes {
 public:
  static Result<std::unique_ptr<Passes>> create(engine::Device& device, uint32_t width, uint32_t height);
  ~Passes();
  // Gives the median of each pass in microseconds. The buffers keep the results of the last pass.
  Result<void> measure(const engine::SharedWorld& world, engine::Device::TimelinePoint ready, const engine::View& view,
                       uint32_t repeats, double (&median_us)[kPassCount]);
  uint64_t hits() const;  // of the last measure()
  std::vector<QryVisibility> visible() const;
  nlohmann::json statistics() const;  // the driver's statistics of each pipeline: registers, size
  Result<uint64_t> differing();       // pixels in which rays that start at beams hit something else

 private:
  explicit Passes(engine::Device& d) : device_(&d) {}
  Result<VkPipeline> make(const Pass& pass);
  void record(uint32_t pass);
  engine::Device* device_;
  uint32_t width_ = 0, height_ = 0;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipelines_[kPassCount] = {};
  VkQueryPool queries_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // offscreen_ has begun it
  std::unique_ptr<engine::Offscreen> offscreen_;
  std::unique_ptr<DeviceMemory> frame_, near_frame_, visibility_, lit_, open_, picture_, beams_, visible_,
      visible_beams_;
};

Result<VkPipeline> Passes::make(const Pass& pass) {
  const auto& vk = device_->vk();
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                       sizeof k_bench_rays_spirv, k_bench_rays_spirv};
  VkShaderModule module = VK_NULL_HANDLE;
  QRY_TRY(vk_check(vk.vkCreateShaderModule(device_->handle(), &module_info, nullptr, &module), "vkCreateShaderModule",
                   pass.name));
  const bool beams = pass.pass == kQryBenchBeams;
  const uint32_t fused = device_->info().type != VK_PHYSICAL_DEVICE_TYPE_CPU;
  const uint32_t values[11] = {0,
                               pass.only_pyramid,
                               pass.pass,
                               pass.from_beams,
                               pass.rays_a_thread,
                               pass.inside,
                               beams ? kQryBeamGroup : 8u,
                               beams ? 1u : pass.rows,
                               fused,
                               device_->info().beam_lanes,
                               pass.by_columns};
  constexpr uint32_t kIds[11] = {QRY_ID_COUNT,
                                 QRY_ID_STOP_AT_BRICKS,
                                 QRY_ID_BENCH_PASS,
                                 QRY_ID_BENCH_FROM_BEAMS,
                                 QRY_ID_BENCH_RAYS_A_THREAD,
                                 QRY_ID_INSIDE,
                                 QRY_ID_BENCH_GROUP_WIDTH,
                                 QRY_ID_BENCH_GROUP_ROWS,
                                 QRY_ID_FUSED,
                                 QRY_ID_BEAM_LANES,
                                 QRY_ID_BY_COLUMNS};
  VkSpecializationMapEntry entries[11];
  for (uint32_t i = 0; i < 11; ++i) entries[i] = {kIds[i], i * 4, 4};
  const VkSpecializationInfo constants{11, entries, sizeof values, values};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                nullptr,
                0,
                VK_SHADER_STAGE_COMPUTE_BIT,
                module,
                "main",
                &constants};
  info.layout = layout_;
  if (device_->has_pipeline_statistics()) info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.vkCreateComputePipelines(device_->handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device_->handle(), module, nullptr);
  QRY_TRY(vk_check(result, "vkCreateComputePipelines", pass.name));
  return pipeline;
}

Result<std::unique_ptr<Passes>> Passes::create(engine::Device& device, uint32_t width, uint32_t height) {
  std::unique_ptr<Passes> self(new Passes(device));
  self->width_ = width;
  self->height_ = height;
  const auto& vk = device.vk();
  const auto pixels = uint64_t(width) * height;
  const struct {
    std::unique_ptr<DeviceMemory>* memory;
    BufferMemory kind;
    uint64_t bytes;
  } wanted[] = {{&self->frame_, BufferMemory::device_mapped, sizeof(QryBenchFrame)},
                {&self->near_frame_, BufferMemory::device_mapped, sizeof(QryBenchFrame)},
                {&self->visibility_, BufferMemory::device, pixels * sizeof(QryVisibility)},
                {&self->lit_, BufferMemory::device, pixels * 4},
                {&self->open_, BufferMemory::device, pixels * 16},
                {&self->picture_, BufferMemory::device, pixels * 4},
                {&self->beams_, BufferMemory::device, engine::beam_tiles(width, height) * 4},
                {&self->visible_, BufferMemory::host_readback, pixels * sizeof(QryVisibility)},
                {&self->visible_beams_, BufferMemory::host_readback, pixels * sizeof(QryVisibility)}};
  for (const auto& w : wanted) {
    QRY_TRY_ASSIGN(auto made, DeviceMemory::create(device, w.kind, w.bytes, "quarry bench"));
    *w.memory = std::move(made);
  }
  QRY_TRY_ASSIGN(auto offscreen, engine::Offscreen::create(device, "quarry bench"));
  self->offscreen_ = std::move(offscreen);
  const VkQueryPoolCreateInfo queries{
      VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, 2 * kPassCount, 0};
  QRY_TRY(vk_check(vk.vkCreateQueryPool(device.handle(), &queries, nullptr, &self->queries_), "vkCreateQueryPool",
                   "timestamps"));
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryBenchPush)};
  const VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &range};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device.handle(), &layout, nullptr, &self->layout_),
                   "vkCreatePipelineLayout", "benchmark"));

  Result<VkPipeline> made[kPassCount];
  parallel_for(kPassCount, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) made[i] = self->make(kPasses[i]);
  });
  Result<void> outcome;
  for (size_t i = 0; i < kPassCount; ++i) {
    if (made[i]) self->pipelines_[i] = *made[i];
    else outcome = tl::unexpected(made[i].error());
  }
  QRY_TRY(outcome);
  return self;
}

Passes::~Passes() {
  const auto& vk = device_->vk();
  for (VkPipeline pipeline : pipelines_)
    if (pipeline) vk.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  if (layout_) vk.vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
  if (queries_) vk.vkDestroyQueryPool(device_->handle(), queries_, nullptr);
}

void Passes::record(uint32_t index) {
  const auto& vk = device_->vk();
  const Pass& pass = kPasses[index];
  const uint64_t frame = pass.reach != 64.0f ? frame_->address() : near_frame_->address();
  vk.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, offsetof(QryBenchPush, frame), 8, &frame);
  if (pass.beams_first) {
    record(kBeams);
    const VkMemoryBarrier found{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                VK_ACCESS_SHADER_READ_BIT};
    vk.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                            &found, 0, nullptr, 0, nullptr);
  }
  vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[index]);
  if (pass.pass == kQryBenchBeams)
    vk.vkCmdDispatch(commands_, engine::beam_groups(device_->info(), width_, height_), 1, 1);
  else {
    const uint32_t across = (width_ + 7) / 8, down = (height_ + pass.rows - 1) / pass.rows;
    vk.vkCmdDispatch(commands_, pass.by_columns ? down : across, pass.by_columns ? across : down,
                     pass.pass == kQryBenchAmbient ? 4 / pass.rays_a_thread : 1);
  }
}

Result<void> Passes::measure(const engine::SharedWorld& world, engine::Device::TimelinePoint ready,
                             const engine::View& view, uint32_t repeats, double (&median_us)[kPassCount]) {
  const auto& vk = device_->vk();
  QryBenchFrame f{};
  f.visibility = visibility_->address();
  f.lit = lit_->address();
  f.open = open_->address();
  f.picture = picture_->address();
  f.beams = beams_->address();
  engine::put_view(view, f);
  const float sun[3] = {-0.43f, 0.77f, -0.37f}, length = std::sqrt(sun[0] * sun[0] + sun[1] * sun[1] + sun[2] * sun[2]);
  for (int i = 0; i < 3; ++i) f.sun[i] = sun[i] / length;
  f.reach = 1e29f;
  f.pixel_step[0] = 2.0f / float(width_);
  f.pixel_step[1] = -2.0f / float(height_);
  f.width = width_;
  f.height = height_;
  std::memcpy(frame_->mapped(), &f, sizeof f);
  f.reach = 64;
  std::memcpy(near_frame_->mapped(), &f, sizeof f);

  VkPhysicalDeviceProperties properties{};
  vk.vkGetPhysicalDeviceProperties(device_->physical_device(), &properties);
  std::vector<double> times[kPassCount];
  const QryBenchPush push{world.root(), 0, engine::direction_setup(f.sun), width_ * height_};
  constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  const VkMemoryBarrier between{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kShader | VK_ACCESS_TRANSFER_READ_BIT,
                                kShader | VK_ACCESS_TRANSFER_READ_BIT};
  constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  // While a scene is made the device has nothing to do, and its clock falls; it takes a tenth of a second to rise
  // again.
  using Clock = std::chrono::steady_clock;
  const auto warm = Clock::now() + kWarmUp;
  uint32_t first = kWarmRounds;  // that is measured
  for (uint32_t round = 0; round < first + repeats; ++round) {
    if (round == first && Clock::now() < warm) ++first;
    QRY_TRY_ASSIGN(auto begun, offscreen_->begin());
    commands_ = begun;
    vk.vkCmdResetQueryPool(commands_, queries_, 0, 2 * kPassCount);
    vk.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    for (uint32_t i = 0; i < kPassCount; ++i) {
      vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i);
      record(i);
      vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i + 1);
      vk.vkCmdPipelineBarrier(commands_, kWork, kWork, 0, 1, &between, 0, nullptr, 0, nullptr);
      const bool plain = std::strcmp(kPasses[i].name, "primary") == 0, beams = kPasses[i].from_beams;
      if (round == 0 && (plain || beams)) {  // kept for hits() and differing()
        const VkBufferCopy copy{0, 0, visibility_->size_bytes()};
        vk.vkCmdCopyBuffer(commands_, visibility_->buffer(), (plain ? visible_ : visible_beams_)->buffer(), 1, &copy);
        engine::host_read_barrier(vk, commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
        vk.vkCmdPipelineBarrier(commands_, kWork, kWork, 0, 1, &between, 0, nullptr, 0, nullptr);
      }
    }
    QRY_TRY(offscreen_->submit_and_wait(ready));
    uint64_t ticks[2 * kPassCount];
    QRY_TRY(vk_check(vk.vkGetQueryPoolResults(device_->handle(), queries_, 0, 2 * kPassCount, sizeof ticks, ticks, 8,
                                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                     "vkGetQueryPoolResults", "timestamps"));
    if (round >= first)
      for (size_t i = 0; i < kPassCount; ++i)
        times[i].push_back(double(ticks[2 * i + 1] - ticks[2 * i]) * double(properties.limits.timestampPeriod) * 1e-3);
  }
  for (size_t i = 0; i < kPassCount; ++i) {
    std::ranges::sort(times[i]);
    median_us[i] = times[i][times[i].size() / 2];
  }
  return {};
}

nlohmann::json Passes::statistics() const {
  nlohmann::json all = nlohmann::json::object();
  for (size_t i = 0; i < kPassCount; ++i)
    for (const auto& [name, number] : device_->pipeline_statistics(pipelines_[i])) all[kPasses[i].name][name] = number;
  return all;
}

std::vector<QryVisibility> Passes::visible() const {
  const auto* first = static_cast<const QryVisibility*>(visible_->mapped());
  return {first, first + uint64_t(width_) * height_};
}

uint64_t Passes::hits() const {
  const auto* first = static_cast<const QryVisibility*>(visible_->mapped());
  return uint64_t(
      std::count_if(first, first + uint64_t(width_) * height_, [](const QryVisibility& v) { return v.t >= 0; }));
}

Result<uint64_t> Passes::differing() {
  const auto* plain = static_cast<const QryVisibility*>(visible_->mapped());
  const auto* beams = static_cast<const QryVisibility*>(visible_beams_->mapped());
  uint64_t count = 0;
  for (uint64_t i = 0; i < uint64_t(width_) * height_; ++i)
    count += plain[i].xy != beams[i].xy || plain[i].zm != beams[i].zm || (plain[i].t < 0) != (beams[i].t < 0);
  return count;
}

double time_of(const double (&us)[kPassCount], const char* name) {
  for (size_t i = 0; i < kPassCount; ++i)
    if (std::strcmp(kPasses[i].name, name) == 0) return us[i];
  return 0;
}

double with_beams(const double (&us)[kPassCount]) { return time_of(us, "primary with beams"); }

// Chooses as the renderer does.
double primary_as_drawn(const double (&us)[kPassCount], const QryWorldRoot& root, const engine::View& view) {
  return engine::beams_pay(root, view.origin) ? with_beams(us) : time_of(us, "primary");
}

double shadow_as_drawn(const double (&us)[kPassCount], const QryWorldRoot& root, const engine::View& view) {
  return engine::shadows_by_columns(root, view.origin) ? time_of(us, "shadow by columns")
                                                       : time_of(us, "shadow by rows");
}

double whole_frame(const double (&us)[kPassCount], const QryWorldRoot& root, const engine::View& view) {
  const double ambient = std::min(time_of(us, "ambient, 64 voxels"), time_of(us, "ambient, 64 voxels, 1 a thread"));
  return primary_as_drawn(us, root, view) + shadow_as_drawn(us, root, view) + ambient + time_of(us, "shade");
}

nlohmann::json row_of(uint64_t rays, double us) {
  return {{"rays", rays}, {"microseconds", us}, {"million_per_s", double(rays) / us}};
}

}  // namespace

Result<nlohmann::json> bench_render(const RenderBenchOptions& options) {
  engine::DeviceOptions device_options;
  device_options.prefer = options.device;
  device_options.validation = options.validation;
  device_options.pipeline_statistics = true;
  device_options.log = [](int severity, const char* message) {
    if (severity > 0) fmt::print(stderr, "{}\n", message);
  };
  QRY_TRY_ASSIGN(auto device, engine::Device::create(device_options));
  if (!device->info().beam_lanes)
    return fail(ErrorCode::unsupported,
                device->info().name + " has no arithmetic over subgroups in compute shaders, which beams need");
  QRY_TRY_ASSIGN(auto passes, Passes::create(*device, options.width, options.height));
  nlohmann::json result{
      {"device", device->info().name},     {"driver", device->info().driver},  {"width", options.width},
      {"height", options.height},          {"repeats", options.repeats},       {"full_size", options.full_size},
      {"pipelines", passes->statistics()}, {"scenes", nlohmann::json::array()}};
  for (const int scene : options.scenes) {
    const RenderScene& about = render_scene(scene);
    const int size = options.full_size ? about.full_size : about.small_size;
    QRY_TRY_ASSIGN(auto shared, engine::SharedWorld::create(*device));
    QRY_TRY_ASSIGN(auto world, World::create(shared->memory()));
    QRY_TRY(fill_scene(world, scene, size, [&] { return options.progress.cancelled(); }));
    QRY_TRY(world.shrink_to_fit());  // as worlds read from files are
    if (options.full_size && (world.voxel_count() != about.voxels || world.brick_count() != about.bricks))
      return fail(ErrorCode::device,
                  fmt::format("{}: {} voxels in {} bricks instead of {} in {}: the measurement is void", about.name,
                              world.voxel_count(), world.brick_count(), about.voxels, about.bricks));
    auto ready = shared->publish(world, Palette::standard());
    QRY_TRY(ready);
    const auto voxels = double(world.voxel_count());
    const auto per_voxel = [&](uint64_t bytes) { return double(bytes) / voxels; };
    const double editable = per_voxel(world.size_bytes()), editable_device = per_voxel(shared->device_bytes());
    std::vector<QryVisibility> visible[kCameraCount];
    nlohmann::json cameras = nlohmann::json::array();
    for (int camera = 0; camera < kCameraCount; ++camera) {
      if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
      options.progress.say(about.title, double(camera) / kCameraCount);
      double us[kPassCount];
      const engine::View view = scene_view(scene, camera, size, options.width, options.height);
      QRY_TRY(passes->measure(*shared, *ready, view, options.repeats, us));
      const uint64_t hits = passes->hits(), pixels = uint64_t(options.width) * options.height;
      QRY_TRY_ASSIGN(auto differing, passes->differing());
      // Each driver rounds directions differently, so a ray in 100,000 may pass on the other side of an edge.
      if (options.full_size && options.width == 1920 && options.height == 1080) {
        const uint64_t expected = about.hits[camera], off = hits > expected ? hits - expected : expected - hits;
        if (off > 20)
          return fail(ErrorCode::device, fmt::format("{}, {}: {} hits instead of {}: the measurement is void",
                                                     about.name, camera_name(camera), hits, expected));
      }
      if (differing > pixels / 2000)
        return fail(ErrorCode::device,
                    fmt::format("{}, {}: {} pixels differ when rays start at beams: the measurement is void",
                                about.name, camera_name(camera), differing));
      nlohmann::json rows = nlohmann::json::object();
      for (size_t i = 0; i < kPassCount; ++i) {
        const uint64_t rays = (kPasses[i].per_hit ? hits : pixels) * (kPasses[i].pass == kQryBenchAmbient ? 4 : 1);
        rows[kPasses[i].name] = row_of(rays, us[i]);
      }
      rows["primary as drawn"] = row_of(pixels, primary_as_drawn(us, shared->root(), view));
      rows["shadow"] = row_of(hits, shadow_as_drawn(us, shared->root(), view));
      rows["whole frame"] = row_of(pixels + 5 * hits, whole_frame(us, shared->root(), view));
      visible[camera] = passes->visible();
      cameras.push_back(
          {{"camera", camera_name(camera)}, {"hits", hits}, {"differ_with_beams", differing}, {"passes", rows}});
    }
    // The same world packed takes less memory, and no pixel may differ.
    const auto start = std::chrono::steady_clock::now();
    QRY_TRY(world.pack());
    const double pack_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    ready = shared->publish(world, Palette::standard());
    QRY_TRY(ready);
    for (int camera = 0; camera < kCameraCount; ++camera) {
      if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
      options.progress.say(fmt::format("{}, packed", about.title), double(camera) / kCameraCount);
      double us[kPassCount];
      const engine::View view = scene_view(scene, camera, size, options.width, options.height);
      QRY_TRY(passes->measure(*shared, *ready, view, options.repeats, us));
      const std::vector<QryVisibility> packed = passes->visible();
      if (std::memcmp(packed.data(), visible[camera].data(), packed.size() * sizeof(QryVisibility)) != 0)
        return fail(ErrorCode::device,
                    fmt::format("{}, {}: the packed world is not seen as the editable one is: the measurement is void",
                                about.name, camera_name(camera)));
      const uint64_t pixels = uint64_t(options.width) * options.height;
      auto& rows = cameras[size_t(camera)]["passes"];
      rows["primary, packed"] = row_of(pixels, time_of(us, "primary"));
      rows["primary with beams, packed"] = row_of(pixels, with_beams(us));
      rows["whole frame, packed"] = row_of(pixels + 5 * passes->hits(), whole_frame(us, shared->root(), view));
    }
    result["sharing"] = engine::to_string(shared->mode());
    result["scenes"].push_back(
        {{"scene", about.name},
         {"title", about.title},
         {"size", size},
         {"voxels", world.voxel_count()},
         {"bricks", world.brick_count()},
         {"bytes_per_voxel", editable},
         {"device_bytes_per_voxel", editable_device},
         {"packed_bytes_per_voxel", per_voxel(world.size_bytes())},
         {"packed_device_bytes_per_voxel", per_voxel(shared->device_bytes())},
         {"pack_milliseconds", pack_ms},
         {"brick_bytes_per_voxel", double(world.brick_count()) * (sizeof(BrickMask) + sizeof(BrickMaterials)) / voxels},
         {"cameras", cameras}});
  }
  result["validation_errors"] = device->validation_errors();
  return result;
}

std::string render_table(const nlohmann::json& result) {
  std::string text =
      fmt::format("{} ({}), {}, {}x{}, median of {}; 10^6 rays a second\n", result["device"].get<std::string>(),
                  result["driver"].get<std::string>(), result["sharing"].get<std::string>(), result["width"].get<int>(),
                  result["height"].get<int>(), result["repeats"].get<int>());
  for (const auto& scene : result["scenes"]) {
    text += fmt::format(
        "\n{}: {} voxels in {} bricks, {:.3f} bytes a voxel ({:.3f} in bricks), {:.3f} packed in {:.0f} ms\n{:<28}",
        scene["title"].get<std::string>(), scene["voxels"].get<uint64_t>(), scene["bricks"].get<uint64_t>(),
        scene["bytes_per_voxel"].get<double>(), scene["brick_bytes_per_voxel"].get<double>(),
        scene["packed_bytes_per_voxel"].get<double>(), scene["pack_milliseconds"].get<double>(), "");
    const auto& cameras = scene["cameras"];
    for (const auto& camera : cameras) text += fmt::format("{:>12}", camera["camera"].get<std::string>());
    text += fmt::format("\n{:<28}", "hits");
    for (const auto& camera : cameras) text += fmt::format("{:>12}", camera["hits"].get<uint64_t>());
    for (const auto& [name, row] : cameras[0]["passes"].items()) {
      text += fmt::format("\n{:<28}", name);
      for (const auto& camera : cameras)
        text += fmt::format("{:>12.0f}", camera["passes"][name]["million_per_s"].get<double>());
    }
    text += "\n";
  }
  return text;
}

}  // namespace quarry::bench
