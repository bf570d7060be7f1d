// SPDX-License-Identifier: Apache-2.0
// picture_options.cpp - parses and checks the options of a picture, and turns them into render settings and a view.
#include "app/pictures/picture_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <glm/gtc/type_ptr.hpp>
#include <numbers>

#include "engine/render/orbit_camera.hpp"

namespace quarry::app {
namespace {

constexpr double kRadians = std::numbers::pi / 180;

// "120,35"; both numbers must be finite.
bool parse_pair(const std::string& text, double& a, double& b) {
  const char* end = text.data() + text.size();
  const auto [comma, first] = std::from_chars(text.data(), end, a);
  if (first != std::errc() || comma == end || *comma != ',') return false;
  const auto [last, second] = std::from_chars(comma + 1, end, b);
  return second == std::errc() && last == end && std::isfinite(a) && std::isfinite(b);
}

// "#RRGGBB" -> 0..1
bool parse_color(const std::string& text, float out[3]) {
  if (text.size() != 7 || text[0] != '#') return false;
  for (size_t i = 0; i < 3; ++i) {
    unsigned byte = 0;
    const char *first = text.data() + 1 + 2 * i, *last = first + 2;
    if (const auto [end, error] = std::from_chars(first, last, byte, 16); error != std::errc() || end != last)
      return false;
    out[i] = float(byte) / 255.0f;
  }
  return true;
}

// Turns a point about the vertical axis through `about`.
glm::dvec3 turned(const glm::dvec3& point, const glm::dvec3& about, double angle) {
  const double x = point.x - about.x, z = point.z - about.z, c = std::cos(angle), s = std::sin(angle);
  return {about.x + c * x + s * z, point.y, about.z - s * x + c * z};
}

}  // namespace

void PictureOptions::add_to(Arguments& arguments) {
  arguments.text("--size", size_, "WxH", "Pixels (1280x720)");
  arguments.text("--view", view_name, "NAME",
                 fmt::format("{} (shaded)", fmt::join(engine::debug_view_names(), ", ")).c_str());
  arguments.integer(
      "--spp", spp_, "N",
      "Trace N light paths a pixel instead of quick shading: slower, right, and smooth from some hundred on", 1,
      1 << 20);
  arguments.integer("--bounces", bounces_, "N", "Paths: times that light may scatter (4)", 0, 256);
  arguments.real("--clamp", limit_, "RADIANCE",
                 "Paths: cut off what scattered light brings above this; fewer bright specks, a little too dark", 0,
                 1e9);
  arguments.integer("--seed", seed_, "N", "Other noise (0)", 0, 1 << 30);
  arguments.text("--camera", camera_, "X,Y,Z", "Eye, in voxels, y up (a view of everything)");
  arguments.text("--target", target_, "X,Y,Z", "Point looked at (the middle)");
  arguments.integer("--scene-camera", scene_camera, "N", "The scene's own camera with this number, from 0", 0, 1 << 20);
  arguments.real("--fov", fov_, "DEGREES", "Vertical field of view (45)", 1, 170);
  arguments.real("--azimuth", azimuth_, "DEGREES", "Direction of the view of everything (35)", -3600, 3600);
  arguments.real("--elevation", elevation_, "DEGREES", "Height of the view of everything (22)", -89, 89);
  arguments.real("--aperture", aperture_, "VOXELS", "Paths: radius of the lens; what is out of focus blurs (0)", 0,
                 1e4);
  arguments.real("--focus", focus_, "VOXELS", "Paths: distance that is sharp (the target's)", 0.01, 1e6);
  arguments.text("--sun", sun_, "AZIMUTH,ELEVATION", "Where the sun stands, in degrees; below -7 it is night");
  arguments.real("--sun-strength", sun_strength_, "FACTOR", "Brightness of the sun (3)", 0, 1e6);
  arguments.real("--sun-size", sun_size_, "DEGREES", "Width of the sun's disc: softness of shadows (1.4)", 0, 50);
  arguments.real("--sky-strength", sky_strength_, "FACTOR", "Brightness of the sky (1)", 0, 1e6);
  arguments.text("--sky", sky_, "#RRGGBB", "Even light of this colour from everywhere instead of a sky");
  arguments.real("--fog", fog_, "VOXELS", "Distance at the world's foot over which fog takes most of the light (none)",
                 1, 1e6);
  arguments.real("--fog-height", fog_height_, "VOXELS", "Height over which fog thins out (a third of the world's)", 1,
                 1e6);
  arguments.text("--background", background_, "WHAT", "sky, none (transparent) or #RRGGBB (sky)");
  arguments.flag("--ground", ground_, "An unseen floor under the world catches its shadow");
  arguments.real("--exposure", exposure_, "FACTOR", "Brightness (1)", 0.001, 1000);
  arguments.text("--tone", tone_, "CURVE", "filmic, or linear: cut off at white (filmic)");
  arguments.text("--outline", outline_, "X,Y,Z,X,Y,Z", "Quick shading, views: the edges of a box from voxel to voxel");
  arguments.integer("--samples", samples_, "N", "Quick shading: samples a side of each pixel: 2 is 4 rays (2)", 1, 16);
  arguments.integer("--ambient-rays", ambient_rays_, "N",
                    "Quick shading: ambient occlusion rays a sample, 0 for none (4)", 0, 256);
  arguments.integer("--ambient-reach", ambient_reach_, "VOXELS", "Quick shading: their length (64)", 1, 4096);
  arguments.integer("--shadow-rays", shadow_rays_, "N", "Quick shading: shadow rays a sample, 0 for none (1)", 0, 64);
}

std::optional<int> PictureOptions::check(const Arguments& arguments) {
  const auto names = engine::debug_view_names();
  if (const auto code = arguments.check_name("--view", view_name, {names.begin(), names.end()})) return code;
  if (const auto code = arguments.check_name("--tone", tone_, {"filmic", "linear"})) return code;
  engine::RenderSettings& s = settings;
  if (!parse_size(size_, s.width, s.height))
    return arguments.wrong(fmt::format("--size '{}' is not WIDTHxHEIGHT, each from 1 to 16384.", size_));
  glm::dvec3 point;
  if (!camera_.empty()) {
    if (!parse_vector(camera_, glm::value_ptr(point)))
      return arguments.wrong(fmt::format("--camera '{}' is not X,Y,Z.", camera_));
    eye_ = point;
  }
  if (!target_.empty()) {
    if (!parse_vector(target_, glm::value_ptr(point)))
      return arguments.wrong(fmt::format("--target '{}' is not X,Y,Z.", target_));
    at_ = point;
  }
  if (!outline_.empty()) {
    // The text is two triples with a comma between them.
    size_t third = 0;
    for (int comma = 0; comma < 3 && third != std::string::npos; ++comma)
      third = outline_.find(',', third + (comma > 0));
    std::array<double, 3> a{}, b{};
    const bool fine = third != std::string::npos && parse_vector(outline_.substr(0, third), a.data()) &&
                      parse_vector(outline_.substr(third + 1), b.data());
    const auto is_voxel = [](double v) { return std::abs(v) <= 1e6 && v == std::floor(v); };
    if (!fine || !std::all_of(a.begin(), a.end(), is_voxel) || !std::all_of(b.begin(), b.end(), is_voxel))
      return arguments.wrong(
          fmt::format("--outline '{}' is not X,Y,Z,X,Y,Z: whole numbers, two corners of a box.", outline_));
    const auto least = [](double v, double w) { return int32_t(std::min(v, w)); };
    const auto most = [](double v, double w) { return int32_t(std::max(v, w)); };
    s.highlight = true;
    s.highlight_box = {{least(a[0], b[0]), least(a[1], b[1]), least(a[2], b[2])},
                       {most(a[0], b[0]), most(a[1], b[1]), most(a[2], b[2])}};
  }
  if (!sun_.empty()) {
    double azimuth = 0, elevation = 0;
    if (!parse_pair(sun_, azimuth, elevation) || std::abs(elevation) > 90)
      return arguments.wrong(
          fmt::format("--sun '{}' is not AZIMUTH,ELEVATION in degrees, the elevation from -90 to 90.", sun_));
    const double a = azimuth * kRadians, e = elevation * kRadians;
    const glm::vec3 sun(std::cos(e) * std::sin(a), std::sin(e), std::cos(e) * std::cos(a));
    std::copy_n(glm::value_ptr(sun), 3, s.sun_direction);
  }
  if (!sky_.empty()) {
    if (!parse_color(sky_, s.sky_color)) return arguments.wrong(fmt::format("--sky '{}' is not #RRGGBB.", sky_));
    for (float& c : s.sky_color) c = std::pow(c, 2.2f);
    s.uniform_sky = true;
  }
  if (background_ == "none") s.background = engine::Background::none;
  else if (background_ != "sky") {
    if (!parse_color(background_, s.background_color))
      return arguments.wrong(fmt::format("--background '{}' is none of: sky, none, #RRGGBB.", background_));
    s.background = engine::Background::color;
  }
  s.view = *engine::debug_view_from_name(view_name);
  paths = uint32_t(spp_);
  if (paths && s.view != engine::DebugView::shaded)
    return arguments.wrong(fmt::format("--view {} has no light to trace: leave --spp out.", view_name));
  if (paths && s.highlight)
    return arguments.wrong("--outline is drawn by quick shading and the views: leave --spp out.");
  if (!paths)
    for (const char* option : {"--bounces", "--aperture", "--focus", "--clamp"})
      if (arguments.given(option))
        return arguments.wrong(fmt::format("{} needs --spp: quick shading has no paths.", option));
  s.samples = uint32_t(samples_);
  s.shadow_rays = uint32_t(shadow_rays_);
  s.ambient_rays = uint32_t(ambient_rays_);
  s.ambient_reach = float(ambient_reach_);
  s.exposure = float(exposure_);
  s.sun_strength = float(sun_strength_);
  s.sun_radius = float(sun_size_ / 2 * kRadians);
  s.sky_strength = float(sky_strength_);
  s.fog_distance = float(fog_);
  s.fog_height = float(fog_height_);
  s.ground = ground_;
  s.filmic = tone_ == "filmic";
  s.frame_seed = uint32_t(seed_);
  s.bounces = uint32_t(bounces_);
  s.firefly_limit = float(limit_);
  s.lens_radius = float(aperture_);
  return {};
}

PictureOptions::Eye PictureOptions::eye(const Scene& scene, const Box3& bounds, uint32_t frame, uint32_t frames) const {
  const double aspect = double(settings.width) / settings.height;
  OrbitCamera orbit;
  orbit.azimuth = azimuth_;
  orbit.elevation = elevation_;
  orbit.vertical_fov = fov_;
  orbit.frame(bounds, aspect);
  double fov = fov_;
  if (frames > 1 && !bounds.empty()) {
    // The whole turn uses one distance and the world's own middle, so the picture keeps its scale and does not wobble.
    double farthest = 0;
    for (uint32_t i = 0; i < frames; ++i) {
      orbit.azimuth = azimuth_ + 360.0 * i / frames;
      orbit.frame(bounds, aspect);
      farthest = std::max(farthest, orbit.distance);
    }
    orbit.azimuth = azimuth_;
    orbit.distance = farthest;
    orbit.target =
        glm::dvec3(bounds.min.x + bounds.max.x + 1, bounds.min.y + bounds.max.y + 1, bounds.min.z + bounds.max.z + 1) /
        2.0;
  }
  glm::dvec3 eye = orbit.position(), at = orbit.target;
  if (scene_camera >= 0) {
    const Camera& own = scene.cameras[size_t(scene_camera)];
    eye = glm::make_vec3(own.position);
    at = glm::make_vec3(own.target);
    fov = own.vertical_fov_degrees;
  }
  if (eye_) eye = *eye_;
  if (at_) at = *at_;
  if (frames > 1) eye = turned(eye, at, 2 * std::numbers::pi * frame / frames);
  return {eye, at, fov};
}

engine::View PictureOptions::view(const Eye& eye, const DrawnPlace& place, engine::RenderSettings& with) const {
  const auto scaled = [&](double length) { return float(place.length_of_scene(length)); };
  with.focus = scaled(focus_ > 0 ? focus_ : glm::distance(eye.position, eye.target));
  with.ambient_reach = scaled(double(ambient_reach_));
  with.fog_distance = scaled(fog_);
  with.fog_height = scaled(fog_height_);
  with.lens_radius = scaled(aperture_);
  if (with.highlight) {
    const auto there = [&](Int3 v) {
      return Int3{v.x >> place.halved, v.y >> place.halved, v.z >> place.halved} - place.origin;
    };
    with.highlight_box = {there(with.highlight_box.min), there(with.highlight_box.max)};
  }
  return engine::look_at(place.of_scene(eye.position), place.of_scene(eye.target), eye.vertical_fov, settings.width,
                         settings.height);
}

}  // namespace quarry::app
