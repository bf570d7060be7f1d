#include "engine/look.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace quarry::engine {

static_assert(offsetof(QryLook, sky) == 24 && offsetof(QryLook, background) == 40 && offsetof(QryLook, fog_density) == 64 && sizeof(QryLook) == 92,
              "the look's layout in C++ is not GLSL's scalar layout");

namespace {

constexpr uint32_t kMaxEdge = 16384, kMaxSamples = 16, kMaxRays = 256, kMaxBounces = 256;

float to_linear(float srgb) { return srgb <= 0.04045f ? srgb / 12.92f : std::pow((srgb + 0.055f) / 1.055f, 2.4f); }

}  // namespace

Result<void> check_settings(const RenderSettings& s) {
  if (!s.width || !s.height || s.width > kMaxEdge || s.height > kMaxEdge)
    return fail(ErrorCode::invalid_argument, "a picture of " + std::to_string(s.width) + "x" + std::to_string(s.height) + ": each side must be 1 to 16384 pixels");
  if (!s.samples || s.samples > kMaxSamples)
    return fail(ErrorCode::invalid_argument, std::to_string(s.samples) + " samples a side of a pixel: must be 1 to " + std::to_string(kMaxSamples));
  if (s.shadow_rays > kMaxRays || s.ambient_rays > kMaxRays)
    return fail(ErrorCode::invalid_argument, "more than " + std::to_string(kMaxRays) + " shadow or ambient rays a pixel");
  if (s.bounces > kMaxBounces) return fail(ErrorCode::invalid_argument, std::to_string(s.bounces) + " bounces: at most " + std::to_string(kMaxBounces));
  if (size_t(s.view) >= debug_view_names().size()) return fail(ErrorCode::invalid_argument, "unknown debug view " + std::to_string(uint32_t(s.view)));
  for (const float value : {s.exposure, s.sun_strength, s.sky_strength, s.sun_radius, s.fog_distance, s.fog_height, s.lens_radius, s.focus, s.firefly_limit})
    if (!(value >= 0) || std::isinf(value)) return fail(ErrorCode::invalid_argument, "a strength, distance or radius of the picture is negative or no number");
  return {};
}

Result<void> check_frame(const RenderSettings& settings, const SharedWorld& world, uint32_t frame_index) {
  if (auto ok = check_settings(settings); !ok) return ok;
  if (frame_index > kOwnFrame) return fail(ErrorCode::invalid_argument, "frame " + std::to_string(frame_index) + ": frames in flight are counted 0 to 2");
  if (!world.root_address()) return fail(ErrorCode::invalid_argument, "nothing was published yet: call SharedWorld::publish before recording a frame");
  return {};
}

QryLook look_of(const RenderSettings& s, const QryWorldRoot& root) {
  QryLook look{};
  const float* sun = s.sun_direction;
  const float length = std::sqrt(sun[0] * sun[0] + sun[1] * sun[1] + sun[2] * sun[2]);
  for (int i = 0; i < 3; ++i) look.sun_direction[i] = length > 1e-12f ? sun[i] / length : (i == 1 ? 1.0f : 0.0f);
  look.sun_strength = s.sun_strength;
  look.sun_radius = std::min(s.sun_radius, 0.5f);
  look.sky_strength = s.sky_strength;
  look.sky = s.uniform_sky ? kQrySkyUniform : kQrySkyDay;
  std::copy_n(s.sky_color, 3, look.sky_color);
  look.background = s.background == Background::sky ? kQryBackgroundSky : s.background == Background::color ? kQryBackgroundColor : kQryBackgroundNone;
  for (int i = 0; i < 3; ++i) look.background_color[i] = to_linear(std::clamp(s.background_color[i], 0.0f, 1.0f));
  const float low = root.box_low[1] + float(kQryBoxMargin), high = root.box_high[1] - float(kQryBoxMargin);
  const bool empty = !(low < high);
  const float floor = empty ? 0.0f : low, height = empty ? 1.0f : high - low;
  look.ground = s.ground ? 1 : 0;
  look.ground_y = floor;
  look.fog_density = s.fog_distance > 0 ? 1 / s.fog_distance : 0;
  look.fog_height = s.fog_height > 0 ? s.fog_height : std::max(8.0f, height / 3);
  look.fog_base = floor;
  look.exposure = s.exposure;
  look.tone = s.filmic ? kQryToneFilmic : kQryToneLinear;
  look.lens_radius = s.focus > 0 ? s.lens_radius : 0;
  look.focus = s.focus;
  return look;
}

}  // namespace quarry::engine
