// SPDX-License-Identifier: Apache-2.0
// paths.cpp - path-traced pictures of the C interface. Calls gather paths, and layers are read one by one.
#include <cmath>

#include "engine/api/handles.hpp"
#include "engine/home/drawing.hpp"
#include "engine/sharing/light_tree.hpp"

using namespace quarry;
using namespace quarry::c_api;

qry_paths::~qry_paths() {
  if (!tracer) return;
  const std::lock_guard lock(context->mutex);
  tracer.reset();
}

namespace quarry::c_api {
namespace {

constexpr uint32_t kMaxSamples = 65536, kMaxBounces = 256;

bool same3(const float (&u)[3], const float (&v)[3]) { return std::equal(std::begin(u), std::end(u), std::begin(v)); }

// True if the paths are the same: all settings but those that show their sum.
bool same_paths(const engine::RenderSettings& a, const engine::RenderSettings& b) {
  return a.width == b.width && a.height == b.height && same3(a.sun_direction, b.sun_direction) &&
         a.sun_strength == b.sun_strength && a.sky_strength == b.sky_strength && a.sun_radius == b.sun_radius &&
         a.uniform_sky == b.uniform_sky && same3(a.sky_color, b.sky_color) && a.background == b.background &&
         same3(a.background_color, b.background_color) && a.ground == b.ground && a.fog_distance == b.fog_distance &&
         a.fog_height == b.fog_height && a.frame_seed == b.frame_seed && a.bounces == b.bounces &&
         a.lens_radius == b.lens_radius && a.focus == b.focus && a.firefly_limit == b.firefly_limit;
}

qry_result settings_of(const char* function, const qry_paths_info& info, const qry_look_info* look,
                       engine::RenderSettings& settings) {
  QRY_PASS_REFUSAL(check_camera(function, info.camera));
  QRY_PASS_REFUSAL(check_picture_size(function, info.width, info.height));
  if (info.samples < 1 || info.samples > kMaxSamples) return bad(function, "samples", info.samples, "1..65536");
  if (const uint32_t unknown = info.flags & ~uint32_t(QRY_PATHS_RESTART | QRY_PATHS_LAYERS))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->flags has unknown bits 0x%x", function, unknown);
  if (info.bounces > kMaxBounces) return bad(function, "bounces", info.bounces, "0..256");
  if (info.reserved2 != 0) return bad(function, "reserved2", info.reserved2, "0");
  QRY_PASS_REFUSAL(check_sun(function, info.sun_direction, info.sun_strength, info.sky_strength, info.exposure));
  const struct {
    const char* member;
    float value;
  } lengths[] = {{"lens_radius", info.lens_radius}, {"focus", info.focus}, {"firefly_limit", info.firefly_limit}};
  for (const auto& length : lengths)
    if (!(length.value >= 0) || !std::isfinite(length.value))
      return bad(function, length.member, length.value, "0 or more");
  QRY_PASS_REFUSAL(apply_environment(function, look, settings));
  put_size_and_sun(info, settings);
  settings.bounces = info.bounces;
  settings.frame_seed = info.seed;
  settings.lens_radius = info.lens_radius;
  settings.focus = info.focus;
  settings.firefly_limit = info.firefly_limit;
  return QRY_OK;
}

}  // namespace
}  // namespace quarry::c_api

qry_result qry_paths_create(qry_context* context, qry_paths** out) {
  const char* const function = "qry_paths_create";
  return guarded(function, [&]() -> qry_result {
    if (!out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: out is NULL", function);
    *out = nullptr;
    if (!context) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: context is NULL", function);
    auto paths = std::make_unique<qry_paths>();
    paths->context = context->state;
    *out = paths.release();
    return QRY_OK;
  });
}

void qry_paths_destroy(qry_paths** paths) {
  if (!paths) return;
  delete *paths;
  *paths = nullptr;
}

qry_result qry_world_trace_paths(qry_world* world, qry_paths* paths, const qry_paths_info* info) {
  const char* const function = "qry_world_trace_paths";
  return guarded(function, [&]() -> qry_result {
    if (!world || !paths)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "paths" : "world");
    const void* look = nullptr;
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_PATHS_INFO, {{QRY_STYPE_LOOK_INFO, &look}}));
    engine::RenderSettings settings;
    QRY_PASS_REFUSAL(settings_of(function, *info, static_cast<const qry_look_info*>(look), settings));
    if (world->context != paths->context)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world and paths are of different contexts", function);
    engine::View view = view_of(info->camera, info->width, info->height);
    const bool layers = (info->flags & QRY_PATHS_LAYERS) != 0;

    const std::lock_guard lock(world->context->mutex);
    QRY_PASS_REFUSAL(need_device(*world->context, function));
    QRY_PASS_REFUSAL(share_world(*world, function));
    if (!paths->tracer) {
      auto tracer = engine::PathTracer::create(*world->context->device);
      if (!tracer) return refuse(tracer.error());
      paths->tracer = std::move(*tracer);
    }
    const auto now = version_of(*world);
    if (!now) return refuse(now.error());
    const uint64_t version = *now;
    const auto origin = look_from(*world, info->camera);
    if (!origin) return refuse(origin.error());
    see_from_window(info->camera, *origin, view, settings);
    const bool same = paths->origin == *origin && !(info->flags & QRY_PATHS_RESTART) && paths->world == world->number &&
                      paths->world_version == version && paths->layers == layers && paths->view == view &&
                      same_paths(paths->settings, settings);
    const uint32_t first = same ? paths->tracer->paths_done() : 0;
    paths->world = 0;  // after an exception or error below, the next call begins anew
    const ProgressCall call(info->progress, info->progress_user);
    auto made = drawn_whole(*world);
    if (!made) return refuse(made.error());
    engine::RenderedWorld& drawn = *made;
    // The host looks for lights: where something glows and has changed, it reads the voxels for as long as that takes.
    std::optional<Document> glowing;
    if (drawn.publish_device &&
        (world->lights_version != version || paths->origin != *origin || !world->shared->lights().up_to_date())) {
      auto copied = engine::glowing_part(*world->home, *world->document);
      if (!copied) return refuse(copied.error());
      glowing = std::move(*copied);
      if (glowing) drawn.lit = &glowing->world();
    }
    auto traced = paths->tracer->render(drawn, view, settings, info->samples, layers, call.progress(), first);
    // Frames may be recorded that show what was published last; of that pages may have left since.
    if (!traced && world->published_for_frames) (void)published_for_frames(*world);
    if (!traced && traced.error().code != ErrorCode::cancelled) return refuse(traced.error());
    world->lights_version = version;
    paths->world = world->number;
    paths->world_version = version;
    paths->view = view;
    paths->origin = *origin;
    paths->settings = settings;
    paths->layers = layers;
    if (!traced) return refuse(traced.error());
    paths->picture = std::move(*traced);
    paths->samples = paths->tracer->paths_done();
    paths->picture_version = version;
    return QRY_OK;
  });
}

qry_result qry_paths_get_state(const qry_paths* paths, qry_paths_state* state) {
  const char* const function = "qry_paths_get_state";
  return guarded(function, [&]() -> qry_result {
    if (!paths) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: paths is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_PATHS_STATE));
    state->world_version = paths->picture_version;
    state->width = paths->picture.picture.width;
    state->height = paths->picture.picture.height;
    state->samples = paths->samples;
    state->traced = paths->tracer && paths->world ? paths->tracer->paths_done() : 0;
    state->has_layers = paths->picture.depth.empty() ? 0 : 1;
    state->reserved2 = 0;
    return QRY_OK;
  });
}

qry_result qry_paths_read(const qry_paths* paths, uint32_t layer, void* out, uint64_t size_bytes,
                          uint64_t row_pitch_bytes) {
  const char* const function = "qry_paths_read";
  return guarded(function, [&]() -> qry_result {
    if (!paths || !out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, paths ? "out" : "paths");
    if (layer > QRY_LAYER_DEPTH)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: layer is %u, expected a QRY_LAYER_ number", function, layer);
    const engine::PathPicture& picture = paths->picture;
    if (paths->samples == 0)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: there is no picture yet: call qry_world_trace_paths first",
                    function);
    if (layer >= QRY_LAYER_ALBEDO && picture.depth.empty())
      return refuse(QRY_ERROR_INVALID_ARGUMENT,
                    "%s: layer %u was not traced: call qry_world_trace_paths with QRY_PATHS_LAYERS", function, layer);
    const struct {
      const void* data;
      uint32_t pixel_bytes;
    } layers[] = {{picture.picture.rgba.data(), 4},
                  {picture.radiance.data(), 16},
                  {picture.albedo.data(), 12},
                  {picture.normal.data(), 12},
                  {picture.depth.data(), 4}};
    const uint32_t width = picture.picture.width, height = picture.picture.height,
                   pixel_bytes = layers[layer].pixel_bytes;
    uint64_t pitch = row_pitch_bytes;
    QRY_PASS_REFUSAL(check_rows(function, width, height, pixel_bytes, size_bytes, &pitch));
    copy_rows(layers[layer].data, out, width, height, pixel_bytes, pitch);
    return QRY_OK;
  });
}
