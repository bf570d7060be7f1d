// SPDX-License-Identifier: Apache-2.0
// render.cpp - the C interface's pictures in the caller's memory, its rays and its cameras.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <glm/gtc/type_ptr.hpp>

#include "base/parallel.hpp"
#include "engine/api/handles.hpp"
#include "engine/home/resident_pages.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

constexpr uint32_t kMaxEdge = 16384;
constexpr uint64_t kMostHits = (uint64_t(1) << 47) / sizeof(qry_hit);  // of a process's addresses

static_assert(sizeof(qry_hit) == sizeof(engine::Hit) && offsetof(qry_hit, voxel) == offsetof(engine::Hit, voxel) &&
                  offsetof(qry_hit, face) == offsetof(engine::Hit, face) &&
                  offsetof(qry_hit, material) == offsetof(engine::Hit, material) &&
                  offsetof(qry_hit, steps) == offsetof(engine::Hit, steps) &&
                  offsetof(qry_hit, probe_depth) == offsetof(engine::Hit, probe_depth),
              "hits are copied as they are");

bool all_finite(const double (&v)[3]) { return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]); }

double length(const float (&v)[3]) { return glm::length(glm::dvec3(glm::make_vec3(v))); }

// Both are the same numbers.
Ray ray_of(const qry_ray& ray) { return std::bit_cast<Ray>(ray); }
static_assert(sizeof(qry_ray) == sizeof(Ray) && sizeof(qry_hit) == sizeof(RayHit));

}  // namespace

qry_result bad(const char* function, const char* member, double value, const char* expected) {
  return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->%s is %g, expected %s", function, member, value, expected);
}

qry_result check_picture_size(const char* function, uint32_t width, uint32_t height) {
  if (width >= 1 && width <= kMaxEdge && height >= 1 && height <= kMaxEdge) return QRY_OK;
  return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: a picture of %u x %u pixels; expected 1..%u each", function, width,
                height, kMaxEdge);
}

qry_result check_camera(const char* function, const qry_camera& camera) {
  if (!all_finite(camera.position) || !all_finite(camera.target))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: camera.position and camera.target must be finite", function);
  if (!(camera.vertical_fov_degrees > 0 && camera.vertical_fov_degrees < 180))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: camera.vertical_fov_degrees is %g, expected above 0 and below 180",
                  function, camera.vertical_fov_degrees);
  if (std::equal(std::begin(camera.position), std::end(camera.position), std::begin(camera.target)))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: camera.target is the same as camera.position", function);
  return QRY_OK;
}

engine::View view_of(const qry_camera& camera, uint32_t width, uint32_t height) {
  return engine::look_at(glm::make_vec3(camera.position), glm::make_vec3(camera.target), camera.vertical_fov_degrees,
                         width, height);
}

void see_from_window(const qry_camera& camera, Int3 origin, engine::View& view, engine::RenderSettings& settings) {
  if (origin == Int3{}) return;
  const glm::dvec3 from(origin.x, origin.y, origin.z);
  view = engine::look_at(glm::make_vec3(camera.position) - from, glm::make_vec3(camera.target) - from,
                         camera.vertical_fov_degrees, settings.width, settings.height);
  if (settings.highlight) settings.highlight_box = moved(settings.highlight_box, Int3{} - origin);
}

Result<Int3> look_from(qry_world& world, const qry_camera& camera) {
  if (!world.home || !world.home->pages()) return Int3{};
  QRY_TRY(world.home->pages()->look_from({camera.position[0], camera.position[1], camera.position[2]}));
  return world.home->origin();
}

qry_result check_sun(const char* function, const float (&direction)[3], float strength, float sky_strength,
                     float exposure) {
  if (!(exposure > 0) || !std::isfinite(exposure)) return bad(function, "exposure", exposure, "more than 0");
  if (!(strength >= 0) || !std::isfinite(strength)) return bad(function, "sun_strength", strength, "0 or more");
  if (!(sky_strength >= 0) || !std::isfinite(sky_strength))
    return bad(function, "sky_strength", sky_strength, "0 or more");
  const double sun = length(direction);
  if (!(sun > 0) || !std::isfinite(sun)) return bad(function, "sun_direction's length", sun, "more than 0");
  return QRY_OK;
}

qry_result check_rows(const char* function, uint32_t width, uint32_t height, uint32_t pixel_bytes, uint64_t size_bytes,
                      uint64_t* pitch) {
  const uint64_t row_bytes = uint64_t(width) * pixel_bytes;
  if (*pitch == 0) *pitch = row_bytes;
  if (*pitch < row_bytes || *pitch > uint64_t(1) << 40)
    return refuse(QRY_ERROR_INVALID_ARGUMENT,
                  "%s: row_pitch_bytes is %llu, but a row of %u pixels takes %llu (and at most 2^40)", function,
                  static_cast<unsigned long long>(*pitch), width, static_cast<unsigned long long>(row_bytes));
  const uint64_t needed = *pitch * (height - 1) + row_bytes;
  if (size_bytes < needed)
    return refuse(QRY_ERROR_BUFFER_TOO_SMALL, "%s: size_bytes is %llu, but the picture of %u x %u pixels takes %llu",
                  function, static_cast<unsigned long long>(size_bytes), width, height,
                  static_cast<unsigned long long>(needed));
  return QRY_OK;
}

void copy_rows(const void* from, void* to, uint32_t width, uint32_t height, uint32_t pixel_bytes, uint64_t pitch) {
  const size_t row_bytes = size_t(width) * pixel_bytes;
  for (size_t y = 0; y < height; ++y)
    std::memcpy(static_cast<char*>(to) + size_t(pitch) * y, static_cast<const char*>(from) + row_bytes * y, row_bytes);
}

qry_result apply_environment(const char* function, const qry_look_info* look, engine::RenderSettings& settings) {
  if (!look) return QRY_OK;
  const auto wrong = [function](const char* member, double value, const char* expected) {
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_look_info.%s is %g, expected %s", function, member, value,
                  expected);
  };
  if (look->sky > QRY_SKY_UNIFORM) return wrong("sky", look->sky, "a QRY_SKY_ number");
  if (look->background > QRY_BACKGROUND_NONE) return wrong("background", look->background, "a QRY_BACKGROUND_ number");
  if (look->tone > QRY_TONE_LINEAR) return wrong("tone", look->tone, "a QRY_TONE_ number");
  if (look->ground > 1) return wrong("ground", look->ground, "0 or 1");
  if (look->reserved2 != 0) return wrong("reserved2", look->reserved2, "0");
  for (const float c : look->sky_color)
    if (!(c >= 0) || !std::isfinite(c)) return wrong("sky_color", c, "0 or more");
  for (const float c : look->background_color)
    if (!(c >= 0 && c <= 1)) return wrong("background_color", c, "0..1");
  if (!(look->sun_radius >= 0 && look->sun_radius <= 0.5f)) return wrong("sun_radius", look->sun_radius, "0..0.5");
  if (!(look->fog_distance >= 0) || !std::isfinite(look->fog_distance))
    return wrong("fog_distance", look->fog_distance, "0 or more");
  if (!(look->fog_height >= 0) || !std::isfinite(look->fog_height))
    return wrong("fog_height", look->fog_height, "0 or more");
  settings.uniform_sky = look->sky == QRY_SKY_UNIFORM;
  settings.background = engine::Background(look->background);
  settings.filmic = look->tone == QRY_TONE_FILMIC;
  settings.ground = look->ground != 0;
  std::memcpy(settings.sky_color, look->sky_color, sizeof settings.sky_color);
  std::memcpy(settings.background_color, look->background_color, sizeof settings.background_color);
  settings.sun_radius = look->sun_radius;
  settings.fog_distance = look->fog_distance;
  settings.fog_height = look->fog_height;
  return QRY_OK;
}

namespace {

qry_result check_render_info(const char* function, const qry_render_info& info) {
  QRY_PASS_REFUSAL(check_camera(function, info.camera));
  QRY_PASS_REFUSAL(check_picture_size(function, info.width, info.height));
  if (info.view > QRY_VIEW_LOAD) return bad(function, "view", info.view, "a QRY_VIEW_ number");
  if (info.samples < 1 || info.samples > 8) return bad(function, "samples", info.samples, "1..8");
  if (info.shadow_rays > 64) return bad(function, "shadow_rays", info.shadow_rays, "0..64");
  if (info.ambient_rays > 64) return bad(function, "ambient_rays", info.ambient_rays, "0..64");
  if (!(info.ambient_reach > 0) || !std::isfinite(info.ambient_reach))
    return bad(function, "ambient_reach", info.ambient_reach, "more than 0");
  return check_sun(function, info.sun_direction, info.sun_strength, info.sky_strength, info.exposure);
}

// Makes sure of a device, a renderer on it, and a world in memory that the device reads. Call it with the context's
// mutex held.
qry_result need_renderer(qry_world& world, const char* function) {
  ContextState& context = *world.context;
  QRY_PASS_REFUSAL(need_device(context, function));
  if (!context.renderer) {
    auto renderer = engine::Renderer::create(*context.device);
    if (!renderer) return refuse(renderer.error());
    context.renderer = std::move(*renderer);
  }
  return share_world(world, function);
}

}  // namespace

qry_result read_render_info(const char* function, const qry_render_info* info, engine::View& view,
                            engine::RenderSettings& settings) {
  const void *look = nullptr, *outline = nullptr;
  QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_RENDER_INFO,
                                {{QRY_STYPE_LOOK_INFO, &look}, {QRY_STYPE_OUTLINE_INFO, &outline}}));
  QRY_PASS_REFUSAL(check_render_info(function, *info));
  QRY_PASS_REFUSAL(apply_environment(function, static_cast<const qry_look_info*>(look), settings));
  put_size_and_sun(*info, settings);
  settings.view = engine::DebugView(info->view);
  settings.samples = info->samples;
  settings.shadow_rays = info->shadow_rays;
  settings.ambient_rays = info->ambient_rays;
  settings.ambient_reach = info->ambient_reach;
  settings.frame_seed = info->frame_seed;
  if (const auto* box = static_cast<const qry_outline_info*>(outline)) {
    settings.highlight = true;
    settings.highlight_box = {{box->min_xyz[0], box->min_xyz[1], box->min_xyz[2]},
                              {box->max_xyz[0], box->max_xyz[1], box->max_xyz[2]}};
  }
  view = view_of(info->camera, info->width, info->height);
  return QRY_OK;
}

}  // namespace quarry::c_api

qry_result qry_world_fit_camera(qry_world* world, double vertical_fov_degrees, double aspect, double azimuth_degrees,
                                double elevation_degrees, qry_camera* camera) {
  const char* const function = "qry_world_fit_camera";
  return guarded(function, [&]() -> qry_result {
    if (!world || !camera)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "camera" : "world");
    if (!(vertical_fov_degrees > 0 && vertical_fov_degrees < 180))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: vertical_fov_degrees is %g, expected above 0 and below 180",
                    function, vertical_fov_degrees);
    if (!(aspect > 0) || !std::isfinite(aspect))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: aspect is %g, expected above 0", function, aspect);
    if (!std::isfinite(azimuth_degrees) || !(elevation_degrees >= -89 && elevation_degrees <= 89))
      return refuse(QRY_ERROR_INVALID_ARGUMENT,
                    "%s: azimuth_degrees %g, elevation_degrees %g: expected -89..89 for the second", function,
                    azimuth_degrees, elevation_degrees);
    Box3 bounds;
    if (world->home) {
      const auto state = world->home->state();
      if (!state) return refuse(state.error());
      bounds = state->store.bounds;
    } else if (world->lent) {
      bounds = world->lent->bricks.bounds();
    } else {
      bounds = world->document->world().bounds();
    }
    glm::dvec3 position, target;
    engine::fit_camera(bounds, vertical_fov_degrees, aspect, azimuth_degrees, elevation_degrees, position, target);
    std::copy_n(glm::value_ptr(position), 3, camera->position);
    std::copy_n(glm::value_ptr(target), 3, camera->target);
    camera->vertical_fov_degrees = vertical_fov_degrees;
    return QRY_OK;
  });
}

qry_result qry_world_render(qry_world* world, const qry_render_info* info, void* rgba, uint64_t size_bytes,
                            uint64_t row_pitch_bytes) {
  const char* const function = "qry_world_render";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    engine::View view;
    engine::RenderSettings settings;
    QRY_PASS_REFUSAL(read_render_info(function, info, view, settings));
    if (!rgba) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: rgba is NULL", function);
    uint64_t pitch = row_pitch_bytes;
    QRY_PASS_REFUSAL(check_rows(function, info->width, info->height, 4, size_bytes, &pitch));

    const std::lock_guard lock(world->context->mutex);
    QRY_PASS_REFUSAL(need_renderer(*world, function));
    const auto draw = [&]() -> Result<engine::Picture> {
      engine::Renderer& renderer = *world->context->renderer;
      QRY_TRY_ASSIGN(const Int3 origin, look_from(*world, info->camera));
      see_from_window(info->camera, origin, view, settings);
      QRY_TRY_ASSIGN(const auto drawn, drawn_whole(*world));
      return renderer.render(drawn, view, settings);
    };
    auto picture = draw();
    if (!picture) {
      // Frames may be recorded that show what was published last; of that pages may have left since.
      if (world->published_for_frames) (void)published_for_frames(*world);
      return refuse(picture.error());
    }
    copy_rows(picture->rgba.data(), rgba, info->width, info->height, 4, pitch);
    return QRY_OK;
  });
}

qry_result qry_world_trace(qry_world* world, const qry_ray* rays, uint64_t count, qry_hit* hits) {
  const char* const function = "qry_world_trace";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (count == 0) return QRY_OK;
    if (!rays || !hits)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, but count is not 0", function, rays ? "hits" : "rays");
    if (count > kMostHits)
      return refuse(QRY_ERROR_OUT_OF_MEMORY, "%s: no memory holds the hits of %llu rays", function,
                    static_cast<unsigned long long>(count));
    constexpr size_t kRaysPerTask = 4096;
    const uint32_t threads = world->context->threads;
    // All are checked before the first is traced: a refused call changes no hit.
    std::atomic<uint64_t> first_bad{count};  // the first that cannot be traced
    parallel_for(
        size_t(count), kRaysPerTask,
        [&](size_t begin, size_t end) {
          for (uint64_t i = begin; i < end; ++i) {
            if (can_be_traced(ray_of(rays[i]))) continue;
            for (uint64_t first = first_bad.load(); i < first && !first_bad.compare_exchange_weak(first, i);) {
            }
            return;
          }
        },
        threads);
    if (first_bad < count)
      return refuse(QRY_ERROR_INVALID_ARGUMENT,
                    "%s: rays[%llu]: the origin must be finite, the direction finite and not 0", function,
                    static_cast<unsigned long long>(first_bad.load()));
    const auto in_pieces = [&](size_t size, const std::function<void(size_t, size_t)>& body) {
      parallel_for(size, kRaysPerTask, body, threads);
    };
    if (world->home) {
      // A world at home on a device needs no Vulkan for its rays.
      auto traced = world->home->trace(
          size_t(count),
          [&](size_t first, std::span<Ray> to) { std::memcpy(to.data(), rays + first, to.size_bytes()); },
          [&](size_t first, std::span<const RayHit> found) {
            std::memcpy(hits + first, found.data(), found.size_bytes());
          });
      if (!traced) return refuse(traced.error());
      return QRY_OK;
    }
    const auto fill = [&](size_t first, auto to) {
      in_pieces(to.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const Ray ray = of_unit_length(ray_of(rays[first + i]));
          std::copy_n(ray.origin, 3, to[i].origin);
          std::copy_n(ray.direction, 3, to[i].direction);
        }
      });
    };
    const auto take = [&](size_t first, auto found) {
      in_pieces(found.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i)
          hits[first + i] = std::bit_cast<qry_hit>(told(std::bit_cast<RayHit>(found[i])));
      });
    };
    const std::lock_guard lock(world->context->mutex);
    QRY_PASS_REFUSAL(need_renderer(*world, function));
    if (auto traced = world->context->renderer->trace(rendered(*world), size_t(count), fill, take); !traced)
      return refuse(traced.error());
    return QRY_OK;
  });
}

qry_result qry_camera_ray(const qry_camera* camera, uint32_t width, uint32_t height, double x, double y, qry_ray* ray) {
  const char* const function = "qry_camera_ray";
  return guarded(function, [&]() -> qry_result {
    if (!camera || !ray)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, camera ? "ray" : "camera");
    QRY_PASS_REFUSAL(check_camera(function, *camera));
    QRY_PASS_REFUSAL(check_picture_size(function, width, height));
    if (!std::isfinite(x) || !std::isfinite(y))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: x and y must be finite", function);
    const engine::View view = view_of(*camera, width, height);
    const glm::vec3 direction(engine::direction_through(view, 2 * x / width - 1, 1 - 2 * y / height));
    for (size_t a = 0; a < 3; ++a) ray->origin[a] = float(camera->position[a]);
    std::copy_n(glm::value_ptr(direction), 3, ray->direction);
    return QRY_OK;
  });
}
