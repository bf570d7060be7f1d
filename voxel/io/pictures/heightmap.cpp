// SPDX-License-Identifier: Apache-2.0
// heightmap.cpp - computes each column's top from its pixel, then makes bricks of 8 x 8 columns. Colours are counted
// first, for the palette.
#include "voxel/io/pictures/heightmap.hpp"

#include <algorithm>
#include <array>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/pictures/png.hpp"
#include "voxel/io/pictures/write.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxPictureBytes = uint64_t(1) << 31;

enum class HeightFrom { grey, alpha, luminance };

HeightFrom height_source(const PngImage& image) {
  if (image.channels <= 2) return HeightFrom::grey;
  bool grey = true, shades = false;  // shades: alpha between clear and opaque occurs
  const size_t pixels = size_t(image.width) * image.height;
  for (size_t i = 0; i < pixels; ++i) {
    const uint16_t* p = image.samples.data() + i * image.channels;
    grey = grey && p[0] == p[1] && p[1] == p[2];
    shades = shades || (image.channels == 4 && p[3] != 0 && p[3] != (1u << image.bits) - 1);
  }
  return grey ? HeightFrom::grey : shades ? HeightFrom::alpha : HeightFrom::luminance;
}

// The highest cell of a pixel's column; -1 if it has none.
int32_t top_of(const PngImage& image, HeightFrom from, const uint16_t* p, int64_t height) {
  const bool clear = (image.channels == 2 && p[1] == 0) || (image.channels == 4 && p[3] == 0);
  if (clear) return -1;
  int64_t value = p[0];
  if (from == HeightFrom::alpha) value = p[3];
  if (from == HeightFrom::luminance)
    value = (299 * int64_t(p[0]) + 587 * int64_t(p[1]) + 114 * int64_t(p[2]) + 500) / 1000;
  return int32_t(value * height >> image.bits);
}

uint32_t colour_of(const PngImage& image, const uint16_t* p) {
  if (image.channels <= 2) return rgba_of(image.byte(p[0]), image.byte(p[0]), image.byte(p[0]));
  return rgba_of(image.byte(p[0]), image.byte(p[1]), image.byte(p[2]));
}

Result<Scene> read_heightmap_with(const std::filesystem::path& file, const ReadOptions& options, SpilledBricks* spill) {
  QRY_TRY_ASSIGN(const auto bytes, read_input(file, kMaxPictureBytes, options.progress, options.budget));
  std::vector<uint8_t> colours;
  if (!options.color_map.empty()) {
    options.note_access(options.color_map);
    auto read = read_input(options.color_map, kMaxPictureBytes, options.progress, options.budget);
    if (!read)
      return fail(read.error().code, "the colour map " + options.color_map.string() + ": " + read.error().message);
    if (read->empty())
      return fail(ErrorCode::malformed_input, "the colour map " + options.color_map.string() + " is empty");
    colours = std::move(*read);
  }
  return named_after(
      file, parse_heightmap(bytes, colours, {options.height, options.memory_limit_bytes, options.budget, spill},
                            options.warnings));
}

}  // namespace

Result<Scene> parse_heightmap(std::span<const uint8_t> png, std::span<const uint8_t> color_map,
                              const HeightmapOptions& options, std::vector<std::string>* warnings) {
  if (options.height < 1 || options.height > kWorldMax.y - kWorldMin.y + 1)
    return fail(ErrorCode::invalid_argument,
                "the height of a height map must be 1 to 8192 voxels, not " + std::to_string(options.height));
  QRY_TRY_ASSIGN(const auto map, decode_png(png, options.memory_limit_bytes, warnings, options.budget));
  PngImage colours;
  if (!color_map.empty()) {
    auto decoded = decode_png(color_map, options.memory_limit_bytes, warnings, options.budget);
    if (!decoded) return fail(decoded.error().code, "the colour map: " + decoded.error().message);
    colours = std::move(*decoded);
  }
  const HeightFrom from = height_source(map);
  const auto colour_at = [&](uint32_t x, uint32_t z) {
    if (colours.width == 0) return colour_of(map, map.at(x, z));
    return colour_of(colours, colours.at(uint32_t(uint64_t(x) * colours.width / map.width),
                                         uint32_t(uint64_t(z) * colours.height / map.height)));
  };

  const uint64_t pixels = uint64_t(map.width) * map.height;
  BrickBudget budget(pixels * 4, {options.budget, options.spill});
  ColorTable table(options.budget);
  uint64_t voxels = 0;
  for (uint32_t z = 0; z < map.height; ++z)
    for (uint32_t x = 0; x < map.width; ++x) {
      const int32_t top = top_of(map, from, map.at(x, z), options.height);
      table.count(colour_at(x, z), uint64_t(top) + 1);
      voxels += uint64_t(top) + 1;
    }
  const auto too_many = [&] {
    Error e = budget.error("");
    if (e.code == ErrorCode::unsupported)
      e.message += ", or ask for a smaller height than " + std::to_string(options.height);
    return tl::unexpected(std::move(e));
  };
  if (!budget.holds(voxels)) return too_many();
  QRY_TRY(table.good());
  Scene scene;
  table.finish(scene, warnings);

  VolumeBuilder bricks(budget);
  int32_t highest = 0;
  for (uint32_t bx = 0; bx < map.width; bx += 8)
    for (uint32_t bz = 0; bz < map.height; bz += 8) {
      std::array<int32_t, 64> tops;
      std::array<uint8_t, 64> materials{};
      tops.fill(-1);
      for (uint32_t z = bz; z < std::min(bz + 8, map.height); ++z)
        for (uint32_t x = bx; x < std::min(bx + 8, map.width); ++x) {
          const size_t i = (z - bz) * 8 + (x - bx);
          tops[i] = top_of(map, from, map.at(x, z), options.height);
          if (tops[i] >= 0) materials[i] = table.material(colour_at(x, z));
        }
      const int32_t top = *std::max_element(tops.begin(), tops.end());
      highest = std::max(highest, top);
      for (int32_t by = 0; by <= top; by += 8) {
        Brick brick;
        for (int32_t i = 0; i < 64; ++i)
          for (int32_t y = by; y <= std::min(by + 7, tops[size_t(i)]); ++y)
            brick.set(voxel_index({i & 7, y & 7, i >> 3}), materials[size_t(i)]);
        if (!bricks.put({int32_t(bx >> 3), by >> 3, int32_t(bz >> 3)}, brick)) return too_many();
      }
    }
  scene.metadata["heightmap.from"] = from == HeightFrom::grey    ? "grey"
                                     : from == HeightFrom::alpha ? "alpha"
                                                                 : "luminance";
  scene.metadata["heightmap.height"] = std::to_string(options.height);
  add_single_volume(scene, "terrain", bricks.take(), {int32_t(map.width), highest + 1, int32_t(map.height)});
  return scene;
}

Result<Scene> read_heightmap(const std::filesystem::path& file, const ReadOptions& options) {
  return read_heightmap_with(file, options, nullptr);
}

Result<RegionsDone> read_heightmap_regions(const std::filesystem::path& file, const ReadOptions& options,
                                           const RegionSink& sink) {
  return read_with_spilling(
      options, sink, [&](const BrickLimits& limits) { return read_heightmap_with(file, options, limits.spill); });
}

constinit const Format kHeightmapFormat{
    .name = "heightmap",
    .title = "Height map read, view from above written",
    .kind = FormatKind::picture,
    .extensions = {"png"},
    .magic = "\x89PNG\r\n\x1a\n",
    .read = read_heightmap,
    .read_regions = read_heightmap_regions,
    .write = write_top_view,
    .write_regions = write_top_view_regions,
    .keeps = kKeepsColours,
    .cost = {.memory_per_byte = 300, .bricks_per_byte = 0.4, .work_per_byte = 0.3},
};

}  // namespace quarry::io
