// SPDX-License-Identifier: Apache-2.0
// frame_settings.cpp - checks settings and frames, and fills QryEnvironment. The part of the sky that depends only on
// the sun's height is computed here once a frame.
#include "engine/render/frame_settings.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <glm/common.hpp>
#include <glm/geometric.hpp>

#include "engine/sharing/residency.hpp"

namespace quarry::engine {

static_assert(offsetof(QryEnvironment, sky) == 24 && offsetof(QryEnvironment, background) == 40 &&
                  offsetof(QryEnvironment, fog_density) == 64 && offsetof(QryEnvironment, sun_color) == 92 &&
                  sizeof(QryEnvironment) == 148,
              "the look's layout in C++ is not GLSL's scalar layout");

namespace {

constexpr uint32_t kMaxEdge = 16384, kMaxSamples = 16, kMaxRays = 256, kMaxBounces = 256;

float to_linear(float srgb) { return srgb <= 0.04045f ? srgb / 12.92f : std::pow((srgb + 0.055f) / 1.055f, 2.4f); }

// Computes the part of shaders/library/sky.glsl that depends only on the sun's height.
void put_sky(float sun_height, QryEnvironment& environment) {
  // The light of a low sun travels farther through air and loses blue.
  constexpr float kThickness[3] = {0.06f, 0.18f, 0.42f}, kRed[3] = {1.0f, 0.46f, 0.18f};
  constexpr float kNight[3] = {0.012f, 0.018f, 0.045f}, kDay[3] = {0.08f, 0.30f, 1.05f},
                  kDusk[3] = {0.03f, 0.06f, 0.20f};
  constexpr float kNightHorizon[3] = {0.035f, 0.045f, 0.09f}, kDayHorizon[3] = {0.60f, 0.92f, 1.40f};
  const float day = glm::smoothstep(-0.15f, 0.25f, sun_height),
              evening = std::exp(-18 * sun_height * sun_height) * glm::smoothstep(-0.3f, -0.02f, sun_height);
  const float shown = 1.15f * glm::smoothstep(-0.12f, 0.08f, sun_height), height = std::clamp(sun_height, 0.0f, 1.0f);
  const float red = 0.12f + 0.88f * glm::smoothstep(-0.25f, 0.03f, sun_height);
  environment.day = day;
  environment.evening = evening;
  for (int i = 0; i < 3; ++i) {
    environment.sun_color[i] = std::exp(-kThickness[i] / (height + 0.12f)) * shown;
    environment.zenith[i] = kNight[i] + (kDay[i] - kNight[i]) * day + evening * (1 - day) * kDusk[i];
    environment.horizon[i] = kNightHorizon[i] + (kDayHorizon[i] - kNightHorizon[i]) * day;
    environment.red[i] = kRed[i] * red;
  }
}

}  // namespace

Result<void> check_settings(const RenderSettings& s) {
  if (!s.width || !s.height || s.width > kMaxEdge || s.height > kMaxEdge)
    return fail(ErrorCode::invalid_argument, "a picture of " + std::to_string(s.width) + "x" +
                                                 std::to_string(s.height) + ": each side must be 1 to 16384 pixels");
  if (!s.samples || s.samples > kMaxSamples)
    return fail(ErrorCode::invalid_argument,
                std::to_string(s.samples) + " samples a side of a pixel: must be 1 to " + std::to_string(kMaxSamples));
  if (s.shadow_rays > kMaxRays || s.ambient_rays > kMaxRays)
    return fail(ErrorCode::invalid_argument,
                "more than " + std::to_string(kMaxRays) + " shadow or ambient rays a pixel");
  if (s.bounces > kMaxBounces)
    return fail(ErrorCode::invalid_argument,
                std::to_string(s.bounces) + " bounces: at most " + std::to_string(kMaxBounces));
  if (size_t(s.view) >= debug_view_names().size())
    return fail(ErrorCode::invalid_argument, "unknown debug view " + std::to_string(uint32_t(s.view)));
  for (const float value : {s.exposure, s.sun_strength, s.sky_strength, s.sun_radius, s.fog_distance, s.fog_height,
                            s.lens_radius, s.focus, s.firefly_limit})
    if (!(value >= 0) || std::isinf(value))
      return fail(ErrorCode::invalid_argument,
                  "a strength, distance or radius of the picture is negative or no number");
  return {};
}

Result<void> check_frame(const RenderSettings& settings, const SharedWorld& world, uint32_t frame_index,
                         uint32_t frames) {
  QRY_TRY(check_settings(settings));
  if (frame_index > frames)
    return fail(ErrorCode::invalid_argument, "frame " + std::to_string(frame_index) +
                                                 ": frames in flight are counted 0 to " + std::to_string(frames - 1));
  if (!world.root_address())
    return fail(ErrorCode::invalid_argument,
                "nothing was published yet: call SharedWorld::publish before recording a frame");
  return {};
}

Result<void> record_reached(VkCommandBuffer commands, SharedWorld& world, const View& view,
                            const RenderSettings& settings, uint64_t frame,
                            const std::function<Result<void>()>& record) {
  Residency* const residency = world.residency();
  if (!residency) return record();
  residency->begin(commands);
  QRY_TRY(record());
  const double pixel = 2 * double(glm::length(view.up)) / (double(settings.height) * settings.samples);
  return residency->end(commands, frame, {{view.origin.x, view.origin.y, view.origin.z}, pixel});
}

Result<void> check_tile(const RenderSettings& settings, const Tile& tile) {
  if (tile.width && tile.height && tile.x < settings.width && tile.y < settings.height &&
      tile.width <= settings.width - tile.x && tile.height <= settings.height - tile.y)
    return {};
  return fail(ErrorCode::invalid_argument, "a tile of " + std::to_string(tile.width) + "x" +
                                               std::to_string(tile.height) + " pixels at " + std::to_string(tile.x) +
                                               ", " + std::to_string(tile.y) + ": no part of a picture of " +
                                               std::to_string(settings.width) + "x" + std::to_string(settings.height));
}

QryEnvironment environment_of(const RenderSettings& s, const QryWorldRoot& root) {
  QryEnvironment environment{};
  const float* sun = s.sun_direction;
  const float length = std::sqrt(sun[0] * sun[0] + sun[1] * sun[1] + sun[2] * sun[2]);
  for (int i = 0; i < 3; ++i) environment.sun_direction[i] = length > 1e-12f ? sun[i] / length : (i == 1 ? 1.0f : 0.0f);
  environment.sun_strength = s.sun_strength;
  environment.sun_radius = std::min(s.sun_radius, 0.5f);
  environment.sky_strength = s.sky_strength;
  environment.sky = s.uniform_sky ? kQrySkyUniform : kQrySkyDay;
  std::copy_n(s.sky_color, 3, environment.sky_color);
  environment.background = s.background == Background::sky     ? kQryBackgroundSky
                           : s.background == Background::color ? kQryBackgroundColor
                                                               : kQryBackgroundNone;
  for (int i = 0; i < 3; ++i)
    environment.background_color[i] = to_linear(std::clamp(s.background_color[i], 0.0f, 1.0f));
  const float low = root.box_low[1] + float(kQryBoxMargin), high = root.box_high[1] - float(kQryBoxMargin);
  const bool empty = !(low < high);
  const float floor = empty ? 0.0f : low, height = empty ? 1.0f : high - low;
  environment.ground = s.ground ? 1 : 0;
  environment.ground_y = floor;
  environment.fog_density = s.fog_distance > 0 ? 1 / s.fog_distance : 0;
  environment.fog_height = s.fog_height > 0 ? s.fog_height : std::max(8.0f, height / 3);
  environment.fog_base = floor;
  environment.exposure = s.exposure;
  environment.tone = s.filmic ? kQryToneFilmic : kQryToneLinear;
  environment.lens_radius = s.focus > 0 ? s.lens_radius : 0;
  environment.focus = s.focus;
  put_sky(environment.sun_direction[1], environment);
  return environment;
}

// In rows, there and back, so that each needs much of what the one before needed.
PagedTiles::PagedTiles(uint32_t width, uint32_t height, uint32_t unit, uint32_t edge) : unit_(unit) {
  bool there = true;
  for (uint32_t y = 0; y < height; y += edge, there = !there) {
    const size_t row = left_.size();
    for (uint32_t x = 0; x < width; x += edge)
      left_.push_back({x, y, std::min(edge, width - x), std::min(edge, height - y)});
    if (!there) std::reverse(left_.begin() + std::ptrdiff_t(row), left_.end());
  }
  std::ranges::reverse(left_);
}

uint32_t PagedTiles::edge_for(VkPhysicalDeviceType type) { return type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 32 : 128; }

Result<void> PagedTiles::settle(PagesBrought brought) {
  if (brought == PagesBrought::some) return {};
  const Tile tile = left_.back();
  left_.pop_back();
  if (brought == PagesBrought::none_missing) return {};
  if (tile.width <= unit_ && tile.height <= unit_)
    return fail(ErrorCode::out_of_memory, "what the rays of " + std::to_string(unit_ * unit_) +
                                              (unit_ == 1 ? " pixel" : " pixels") +
                                              " come to does not fit the memory that the world may take; allow more");
  Tile first = tile, second = tile;
  const auto half = [&](uint32_t size) { return (size / 2 + unit_ - 1) / unit_ * unit_; };
  if (tile.width >= tile.height) {
    first.width = half(tile.width);
    second.x += first.width;
    second.width -= first.width;
  } else {
    first.height = half(tile.height);
    second.y += first.height;
    second.height -= first.height;
  }
  left_.push_back(second);
  left_.push_back(first);
  return {};
}

}  // namespace quarry::engine
