// SPDX-License-Identifier: Apache-2.0
// rays.cpp - the rays, the two that trace them, and the comparison of their hits.
#include "bench/readers/rays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "bench/readers/dispatches.hpp"
#include "bench/render/scenes.hpp"
#include "bench/render/shaders/bench_rays.h"
#include "bench_rays_spirv.h"
#include "engine/render/frame_settings.hpp"
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/frame.h"
#include "trace_spirv.h"
#include "voxel/rays/trace.hpp"

namespace quarry::bench {
namespace {

using engine::BufferMemory;
using engine::DeviceMemory;

static_assert(sizeof(QryRay) == sizeof(Ray) && sizeof(QryRayHit) == sizeof(RayHit));
static_assert(sizeof(QryBenchPush) <= Dispatches::kPushBytes);

constexpr uint32_t kPrimaryRows = 16;  // of pixels of a workgroup, as in bench/render/passes.cpp

// The rays of a camera, as bench_rays.comp.glsl makes them.
std::vector<Ray> rays_of(const engine::View& view, uint32_t across) {
  std::vector<Ray> rays;
  rays.reserve(size_t(across) * across);
  const float step = 2.0f / float(across);
  const uint32_t tiles = across / 8;
  for (uint32_t tile = 0; tile < tiles * tiles; ++tile)
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t column = tile % tiles * 8 + i % 8, row = tile / tiles * 8 + i / 8;
      const float x = float(column) + 0.5f, y = float(row) + 0.5f;
      const float a = std::fma(step, x, -1.0f), b = std::fma(-step, y, 1.0f);
      const auto along = [&](float right, float up, float forward) {
        return std::fma(a, right, std::fma(b, up, forward));
      };
      const float d[3] = {along(view.right.x, view.up.x, view.forward.x),
                          along(view.right.y, view.up.y, view.forward.y),
                          along(view.right.z, view.up.z, view.forward.z)};
      const float length = std::sqrt(std::fma(d[0], d[0], std::fma(d[1], d[1], d[2] * d[2])));
      rays.push_back({{view.origin.x, view.origin.y, view.origin.z}, {d[0] / length, d[1] / length, d[2] / length}});
    }
  return rays;
}

bool same_hit(const RayHit& a, const RayHit& b) {
  if ((a.t < 0) != (b.t < 0)) return false;
  return a.t < 0 || (std::equal(a.voxel, a.voxel + 3, b.voxel) && a.face == b.face && a.material == b.material);
}

class Tracers {
 public:
  static Result<std::unique_ptr<Tracers>> create(engine::Device& device, uint32_t across);
  // Of one camera's rays, which are in `rays` and go on to `hits`.
  Result<nlohmann::json> measure(SharedStore& world, const SharedStore::Array& rays, const SharedStore::Array& hits,
                                 const engine::View& view, uint32_t repeats);
  uint32_t count() const { return across_ * across_; }

 private:
  Result<double> kernel_us(SharedStore& world, const SharedStore::Array& rays, const SharedStore::Array& hits);
  uint32_t across_ = 0;
  std::unique_ptr<Dispatches> dispatches_;
  VkPipeline list_ = VK_NULL_HANDLE, counted_ = VK_NULL_HANDLE, primary_ = VK_NULL_HANDLE;
  std::unique_ptr<DeviceMemory> frame_, visibility_, shader_hits_;
};

Result<std::unique_ptr<Tracers>> Tracers::create(engine::Device& device, uint32_t across) {
  auto self = std::make_unique<Tracers>();
  self->across_ = across;
  QRY_TRY_ASSIGN(self->dispatches_, Dispatches::create(device));
  const uint32_t fused = device.info().type != VK_PHYSICAL_DEVICE_TYPE_CPU;
  for (const bool counts : {false, true}) {
    QRY_TRY_ASSIGN(
        (counts ? self->counted_ : self->list_),
        self->dispatches_->make("a list of rays", k_trace_spirv, {{QRY_ID_COUNT, counts}, {QRY_ID_FUSED, fused}}));
  }
  QRY_TRY_ASSIGN(self->primary_, self->dispatches_->make("primary rays", k_bench_rays_spirv,
                                                         {{QRY_ID_COUNT, 0},
                                                          {QRY_ID_FUSED, fused},
                                                          {QRY_ID_BENCH_PASS, kQryBenchPrimary},
                                                          {QRY_ID_BENCH_GROUP_WIDTH, 8},
                                                          {QRY_ID_BENCH_GROUP_ROWS, kPrimaryRows},
                                                          {QRY_ID_BEAM_LANES, device.info().beam_lanes}}));
  const struct {
    std::unique_ptr<DeviceMemory>* memory;
    BufferMemory kind;
    uint64_t bytes;
  } wanted[] = {{&self->frame_, BufferMemory::device_mapped, sizeof(QryBenchFrame)},
                {&self->visibility_, BufferMemory::device, uint64_t(self->count()) * sizeof(QryVisibility)},
                {&self->shader_hits_, BufferMemory::device, uint64_t(self->count()) * sizeof(RayHit)}};
  for (const auto& w : wanted) {
    QRY_TRY_ASSIGN(*w.memory, DeviceMemory::create(device, w.kind, w.bytes, "quarry bench"));
  }
  return self;
}

// Of some launches that do not wait for each other, so that what a wait costs is not the rays'. One before them pays
// for the device's change of hands.
Result<double> Tracers::kernel_us(SharedStore& world, const SharedStore::Array& rays, const SharedStore::Array& hits) {
  const int calls = world.on_cuda() ? 8 : 1;
  const auto launch = [&] {
    return world.store().trace_there(static_cast<const Ray*>(rays.data), count(), static_cast<RayHit*>(hits.data));
  };
  if (world.on_cuda()) QRY_TRY(launch());
  QRY_TRY(world.store().executor().wait());
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) QRY_TRY(launch());
  QRY_TRY(world.store().executor().wait());
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / calls;
}

Result<nlohmann::json> Tracers::measure(SharedStore& world, const SharedStore::Array& rays,
                                        const SharedStore::Array& hits, const engine::View& view, uint32_t repeats) {
  QRY_TRY(world.store().executor().copy_in(rays.data, rays_of(view, across_).data(), count() * sizeof(Ray)));
  QRY_TRY_ASSIGN(const engine::Device::TimelinePoint ready, world.publish());
  QryBenchFrame frame{};
  frame.visibility = visibility_->address();
  engine::put_view(view, frame);
  frame.reach = 1e29f;
  frame.pixel_step[0] = 2.0f / float(across_);
  frame.pixel_step[1] = -2.0f / float(across_);
  frame.width = frame.height = across_;
  std::memcpy(frame_->mapped(), &frame, sizeof frame);
  const QryTracePush list{world.shared().root_address(), rays.address, shader_hits_->address(), count()};
  const QryBenchPush primary{world.shared().root(), frame_->address(), {}, count()};
  enum Row : uint8_t { kernel, of_list, of_counted, of_primary, kRows };
  static constexpr const char* kNames[kRows] = {"kernel", "shader", "shader, counted", "shader, primary rays"};
  std::vector<double> times[kRows];
  for (uint32_t round = 0; round < repeats + 2; ++round) {
    double us[kRows];
    QRY_TRY_ASSIGN(us[kernel], kernel_us(world, rays, hits));
    const auto pushed = std::as_bytes(std::span(&list, 1));
    const Dispatches::Groups groups{count() / 64, 1};
    QRY_TRY_ASSIGN(us[of_counted], dispatches_->microseconds(counted_, pushed, groups, ready));
    QRY_TRY_ASSIGN(us[of_list], dispatches_->microseconds(list_, pushed, groups, ready));
    QRY_TRY_ASSIGN(us[of_primary],
                   dispatches_->microseconds(primary_, std::as_bytes(std::span(&primary, 1)),
                                             {across_ / 8, (across_ + kPrimaryRows - 1) / kPrimaryRows}, ready));
    for (size_t row = 0; row < kRows && round >= 2; ++row) times[row].push_back(us[row]);
  }

  std::vector<RayHit> by_kernel(count());
  QRY_TRY(world.store().executor().copy_out(by_kernel.data(), hits.data, by_kernel.size() * sizeof(RayHit)));
  uint64_t found[3] = {}, different = 0;
  QRY_TRY_ASSIGN(const void* const read, dispatches_->read(*shader_hits_, by_kernel.size() * sizeof(RayHit)));
  const auto* const by_shader = static_cast<const RayHit*>(read);
  for (size_t i = 0; i < by_kernel.size(); ++i) {
    found[0] += by_kernel[i].t >= 0;
    found[1] += by_shader[i].t >= 0;
    different += !same_hit(by_kernel[i], by_shader[i]);
  }
  QRY_TRY_ASSIGN(const void* const seen, dispatches_->read(*visibility_, by_kernel.size() * sizeof(QryVisibility)));
  for (size_t i = 0; i < by_kernel.size(); ++i) found[2] += static_cast<const QryVisibility*>(seen)[i].t >= 0;
  // Quotients, and directions that a shader makes itself, may differ in their last bits.
  const uint64_t edges = 4 + count() / 5000, off = std::max(found[0], found[2]) - std::min(found[0], found[2]);
  if (different > edges || off > edges)
    return fail(
        ErrorCode::device,
        fmt::format("the kernel hits with {} rays, the shader with {}, {} of them otherwise, and with {} primary "
                    "rays: the measurement is void",
                    found[0], found[1], different, found[2]));
  nlohmann::json rows = nlohmann::json::object(), ratios = nlohmann::json::object();
  for (size_t row = 0; row < kRows; ++row) {
    const double us = median(times[row]);
    rows[kNames[row]] = {{"microseconds", us}, {"million_per_s", double(count()) / us}};
    if (row != kernel) ratios[kNames[row]] = us / median(times[kernel]);
  }
  return nlohmann::json{{"rays", count()},
                        {"hits", {{"kernel", found[0]}, {"shader", found[1]}, {"primary", found[2]}}},
                        {"different", different},
                        {"rows", rows},
                        {"ratios", ratios}};
}

}  // namespace

Result<nlohmann::json> bench_reader_rays(engine::Device& device, const ReadersOptions& options) {
  if (options.rays_across == 0 || options.rays_across % 8)
    return fail(ErrorCode::invalid_argument,
                fmt::format("pictures of {} rays across: must be a multiple of 8", options.rays_across));
  QRY_TRY_ASSIGN(const auto tracers, Tracers::create(device, options.rays_across));
  nlohmann::json all = nlohmann::json::array();
  for (int scene = 0; scene < kSceneCount; ++scene) {
    const RenderScene& about = render_scene(scene);
    const int size = options.full_size ? about.full_size : about.small_size;
    QRY_TRY_ASSIGN(auto filled, World::create());
    QRY_TRY(fill_scene(filled, scene, size, [&] { return options.progress.cancelled(); }));
    QRY_TRY_ASSIGN(const auto world, SharedStore::create(device, options.kernels));
    QRY_TRY(world->put(filled));
    QRY_TRY_ASSIGN(const auto rays, world->array(size_t(tracers->count()) * sizeof(Ray), "rays"));
    QRY_TRY_ASSIGN(const auto hits, world->array(size_t(tracers->count()) * sizeof(RayHit), "hits"));
    for (int camera = 0; camera < kCameraCount; ++camera) {
      if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
      options.progress.say(fmt::format("rays, {}", about.title), double(camera) / kCameraCount);
      const engine::View view = scene_view(scene, camera, size, options.rays_across, options.rays_across);
      auto measured = tracers->measure(*world, rays, hits, view, options.repeats);
      if (!measured) {
        measured.error().message = fmt::format("{}, {}: {}", about.name, camera_name(camera), measured.error().message);
        return tl::unexpected(measured.error());
      }
      (*measured)["scene"] = about.name;
      (*measured)["camera"] = camera_name(camera);
      all.push_back(std::move(*measured));
    }
  }
  return all;
}

}  // namespace quarry::bench
