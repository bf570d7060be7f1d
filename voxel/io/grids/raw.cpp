// SPDX-License-Identifier: Apache-2.0
// raw.cpp - header after Gordon Kindlmann, "Definition of NRRD File Format".
#include "voxel/io/grids/raw.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/grids/write.hpp"
#include "voxel/io/streams/volume_builder.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxRawBytes = uint64_t(1) << 36;
constexpr size_t kMaxHeaderBytes = size_t(1) << 20;
constexpr double kMaxOrigin = 1 << 24;

Result<void> check_size(Int3 size) {
  for (const int32_t edge : {size.x, size.y, size.z}) {
    if (edge < 1) return fail(ErrorCode::invalid_argument, "a grid's size must be at least 1 voxel on each axis");
    if (edge > kRawMaxEdge)
      return fail(ErrorCode::unsupported, "an edge of " + std::to_string(edge) + " voxels is longer than the world's " +
                                              std::to_string(kRawMaxEdge));
  }
  return {};
}

// Calls visit(y, z, a row's first byte) for the grid's rows in file order, which begin at `at` in `bytes` and have
// `step` bytes a voxel. `visit` returns false to end the walk.
template <class Visit>
Result<void> walk_rows(ByteView& bytes, size_t at, size_t step, Int3 size, const Visit& visit) {
  const size_t length = size_t(size.x) * step;
  for (int32_t z = 0; z < size.z; ++z)
    for (int32_t y = 0; y < size.y; ++y, at += length) {
      QRY_TRY_ASSIGN(const auto row, bytes.look(at, at + length));
      if (!visit(y, z, row.data())) return {};
    }
  return {};
}

// Fills bricks with material(a voxel's first byte) for each cell. 0 is empty.
template <class Material>
Result<BrickMap> fill(ByteView& bytes, size_t at, size_t step, Int3 size, const BrickLimits& limits,
                      const Material& material) {
  BrickBudget budget(bytes.size() - at, limits);
  VolumeBuilder volume(budget);
  bool enough = true;
  const auto walked = walk_rows(bytes, at, step, size, [&](int32_t y, int32_t z, const uint8_t* p) {
    for (int32_t x = 0; enough && x < size.x; ++x, p += step)
      if (const uint8_t m = material(p)) enough = volume.set({x, y, z}, m);
    return enough;
  });
  QRY_TRY(walked);
  if (!enough) return tl::unexpected(budget.error(""));
  return volume.take();
}

std::string edges_text(Int3 s) {
  return std::to_string(s.x) + " x " + std::to_string(s.y) + " x " + std::to_string(s.z);
}

// Reads three numbers, with any text around and between them: "4 5 6", "(0.5,1.5,-2.5)".
bool three_numbers(std::string_view text, double out[3]) {
  for (int i = 0; i < 3; ++i) {
    const size_t begin = text.find_first_not_of(" \t\r(,");
    if (begin == std::string_view::npos) return false;
    text.remove_prefix(begin);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out[i]);
    if (error != std::errc{}) return false;
    text.remove_prefix(size_t(end - text.data()));
  }
  return text.find_first_not_of(" \t\r)") == std::string_view::npos;
}

bool read_palette(std::string_view hex, Palette* palette) {
  if (hex.size() != 256 * 8) return false;
  *palette = {};  // colours only, without the other properties that the standard palette's materials have
  for (size_t m = 0; m < 256; ++m) {
    uint32_t rgba = 0;
    const char* begin = hex.data() + m * 8;
    const auto [end, error] = std::from_chars(begin, begin + 8, rgba, 16);
    if (error != std::errc{} || end != begin + 8) return false;
    Material& material = palette->materials[m];
    material.r = uint8_t(rgba >> 24);
    material.g = uint8_t(rgba >> 16);
    material.b = uint8_t(rgba >> 8);
    material.a = uint8_t(rgba);
  }
  return true;
}

// The value of a header's "data file". "" if it has none; then the grid follows the header.
std::string_view data_file_of(std::string_view header) {
  for (size_t at = 0; at < header.size();) {
    const size_t end = std::min(header.find('\n', at), header.size());
    std::string_view line = header.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) break;
    for (const std::string_view key : {"data file:", "datafile:"}) {
      if (!line.starts_with(key)) continue;
      line.remove_prefix(key.size());
      while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
      return line;
    }
    at = end + 1;
  }
  return {};
}

// Reads a header in a separate file. The data file must be in the same folder, so that a foreign header cannot make
// other files be read.
Result<Scene> read_detached(const std::filesystem::path& header_file, const ByteView& whole,
                            std::span<const uint8_t> header, std::string_view name, const ReadOptions& options,
                            const BrickLimits& limits) {
  if (whole.size() > kMaxHeaderBytes)
    return fail(ErrorCode::unsupported,
                "expected a header of at most 1 MiB, for its voxels are in a file of their own");
  if (name == "LIST" || name.starts_with("LIST ") || name.find('%') != std::string_view::npos)
    return fail(ErrorCode::unsupported, "voxels in several files are not read; expected one 'data file'");
  if (name.size() > 255 || name.find('/') != std::string_view::npos || name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos || name == "." || name == "..")
    return fail(ErrorCode::unsupported, "its voxels are in '" + std::string(name.substr(0, 255)) +
                                            "'; expected the name of a file in the header's own folder");
  const auto file = header_file.parent_path() / std::string(name);
  std::error_code ignored;
  if (std::filesystem::is_symlink(file, ignored))
    return fail(ErrorCode::unsupported,
                "its voxels are in " + file.string() + ", which is a link; expected a file in the header's own folder");
  options.note_access(file);
  auto data = LazyFile::open(file, kMaxRawBytes);
  if (!data) return fail(data.error().code, "its voxels in " + file.string() + ": " + data.error().message);
  if (data->span().empty())
    return fail(ErrorCode::malformed_input, "its voxels in " + file.string() + ": the file is empty");
  ByteView window(*data, options.progress);
  return parse_nrrd(header, window, true, limits);
}

Result<Scene> read_raw_with(const std::filesystem::path& file, const ReadOptions& options, const BrickLimits& limits) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxRawBytes));
  ByteView window(bytes, options.progress);
  if (options.raw_size != Int3{})
    return named_after(file, parse_raw(window, options.raw_size, options.warnings, limits));
  QRY_TRY_ASSIGN(const auto first, window.look(0, std::min(window.size(), kMaxHeaderBytes)));
  const std::vector<uint8_t> head(first.begin(), first.end());
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("NRRD000")) {
    const std::string_view data_file = data_file_of(text);
    return named_after(file, data_file.empty() ? parse_nrrd(head, window, false, limits)
                                               : read_detached(file, window, head, data_file, options, limits));
  }
  auto header_file = file;
  header_file.replace_extension(".nhdr");
  options.note_access(header_file);
  std::error_code ignored;
  if (!std::filesystem::exists(header_file, ignored) || head.empty())
    return fail(ErrorCode::invalid_argument,
                "a raw grid does not say how large it is: give its size as "
                "WIDTHxHEIGHTxDEPTH (--raw-size), or put an .nhdr of the same name beside it");
  const auto header = read_file(header_file, kMaxHeaderBytes);
  if (!header) return fail(header.error().code, "its header " + header_file.string() + ": " + header.error().message);
  return named_after(file, parse_nrrd(*header, window, true, limits));
}

}  // namespace

Result<Scene> parse_raw(std::span<const uint8_t> bytes, Int3 size, std::vector<std::string>* warnings) {
  ByteView all(bytes);
  return parse_raw(all, size, warnings, {});
}

Result<Scene> parse_raw(ByteView& bytes, Int3 size, std::vector<std::string>* warnings, const BrickLimits& limits) {
  QRY_TRY(check_size(size));
  const uint64_t total = uint64_t(size.x) * uint64_t(size.y) * uint64_t(size.z);
  if (bytes.size() != total && bytes.size() != total * 4)
    return fail(ErrorCode::malformed_input, at_byte(std::min<uint64_t>(bytes.size(), total * 4)) + "a grid of " +
                                                edges_text(size) + " voxels has " + std::to_string(total) +
                                                " bytes (materials) or " + std::to_string(total * 4) +
                                                " (r, g, b, a), but the file has " + std::to_string(bytes.size()));
  Scene scene;
  Result<BrickMap> bricks;
  if (bytes.size() == total) {
    bricks = fill(bytes, 0, 1, size, limits, [](const uint8_t* p) { return *p; });
  } else {
    ColorTable colours(limits.memory);
    const auto walked = walk_rows(bytes, 0, 4, size, [&](int32_t, int32_t, const uint8_t* p) {
      for (int32_t x = 0; x < size.x; ++x, p += 4)
        if (p[3]) colours.count(rgba_of(p[0], p[1], p[2], p[3]));
      return colours.good().has_value();
    });
    QRY_TRY(walked);
    QRY_TRY(colours.good());
    colours.finish(scene, warnings);
    bool changed = false;  // the file was changed meanwhile: a new colour has appeared
    bricks = fill(bytes, 0, 4, size, limits, [&](const uint8_t* p) {
      return p[3] ? colours.material(rgba_of(p[0], p[1], p[2], p[3]), &changed) : uint8_t(0);
    });
    if (changed) return fail(ErrorCode::conflict, "it was changed while it was read");
  }
  QRY_TRY(bricks);
  add_single_volume(scene, "raw", std::move(*bricks), size);
  return scene;
}

Result<Scene> parse_nrrd(std::span<const uint8_t> header, std::span<const uint8_t> data) {
  ByteView grid(data.empty() ? header : data);
  return parse_nrrd(header, grid, !data.empty(), {});
}

Result<Scene> parse_nrrd(std::span<const uint8_t> header, ByteView& grid, bool detached, const BrickLimits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  const auto bad = [](size_t at, const std::string& what) {
    return fail(ErrorCode::malformed_input, at_byte(at) + what);
  };
  if (text.substr(0, 7) != "NRRD000") return bad(0, "expected 'NRRD000', the beginning of an NRRD header");
  double sizes[3] = {0, 0, 0}, origin[3] = {0, 0, 0};
  bool has_origin = false, has_type = false, has_encoding = false;
  Palette palette = Palette::standard();
  Scene units;  // only its metadata is used
  size_t at = 0;
  for (;;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end == text.size() && !detached)
      return bad(at, "expected an empty line, the end of the NRRD header, but the data ends");
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const size_t line_at = at;
    at = std::min(end + 1, text.size());
    const bool over = line.empty();
    const size_t colon = line.find(':');
    if (!over && line.front() != '#' && line_at > 0 && colon != std::string_view::npos) {
      const std::string_view key = line.substr(0, colon);
      std::string_view value = line.substr(colon + 1);
      if (!value.empty() && value.front() == '=') value.remove_prefix(1);  // "key:=value" is the writer's own pair
      while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
      if (key == "type") {
        has_type = value == "uint8" || value == "uchar" || value == "unsigned char" || value == "uint8_t";
        if (!has_type)
          return fail(ErrorCode::unsupported,
                      at_byte(line_at) + "expected type uint8; other types of NRRD are not read");
      } else if (key == "encoding") {
        has_encoding = value == "raw";
        if (!has_encoding)
          return fail(ErrorCode::unsupported,
                      at_byte(line_at) + "expected encoding raw; other encodings of NRRD are not read");
      } else if (key == "dimension" && value != "3") {
        return fail(ErrorCode::unsupported, at_byte(line_at) + "expected dimension 3");
      } else if ((key == "byte skip" || key == "line skip") && value != "0") {
        return fail(ErrorCode::unsupported, at_byte(line_at) + "skips are not read");
      } else if (key == "sizes") {
        if (!three_numbers(value, sizes) ||
            std::any_of(sizes, sizes + 3, [](double s) { return !(s >= 1 && s <= kRawMaxEdge) || s != std::floor(s); }))
          return bad(line_at, "expected three whole numbers from 1 to " + std::to_string(kRawMaxEdge) + " as sizes");
      } else if (key == "space origin") {
        has_origin = three_numbers(value, origin) &&
                     std::all_of(origin, origin + 3, [](double o) { return std::abs(o) <= kMaxOrigin; });
        if (!has_origin) return bad(line_at, "expected three numbers within 2^24 as the origin");
      } else if (key == "quarry_voxel_size" || key == "quarry_origin") {
        units.metadata[std::string(key.substr(std::string_view("quarry_").size()))] = value;
      } else if (key == "quarry_palette" && !read_palette(value, &palette)) {
        return bad(line_at, "expected 256 colours of eight hexadecimal digits");
      }
    }
    if (over || end == text.size()) break;
  }
  if (!has_type || !has_encoding || sizes[0] == 0)
    return bad(at, "expected the fields type, encoding and sizes in the NRRD header");
  const size_t begin = detached ? 0 : at;
  const Int3 size{int32_t(sizes[0]), int32_t(sizes[1]), int32_t(sizes[2])};
  const uint64_t total = uint64_t(size.x) * uint64_t(size.y) * uint64_t(size.z);
  if (grid.size() - begin != total)
    return bad(begin, "expected " + std::to_string(total) + " bytes for " + edges_text(size) + " voxels, found " +
                          std::to_string(grid.size() - begin));
  QRY_TRY_ASSIGN(auto bricks, fill(grid, begin, 1, size, limits, [](const uint8_t* p) { return *p; }));
  Scene scene;
  scene.palette = palette;
  if (const auto known = source_units(units)) set_source_units(scene, *known);
  add_single_volume(scene, "raw", std::move(bricks), size);
  // The origin is the centre of the first voxel.
  const auto cell = [](double middle) { return int32_t(std::floor(middle)); };
  if (has_origin) scene.instances[0].offset = {cell(origin[0]), cell(origin[1]), cell(origin[2])};
  return scene;
}

Result<Scene> read_raw(const std::filesystem::path& file, const ReadOptions& options) {
  return read_raw_with(file, options, {options.budget, nullptr});
}

Result<RegionsDone> read_raw_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink) {
  return read_with_spilling(options, sink,
                            [&](const BrickLimits& limits) { return read_raw_with(file, options, limits); });
}

constinit const Format kRawFormat{
    .name = "raw",
    .title = "raw volume with NRRD header",
    .kind = FormatKind::grid,
    .extensions = {"raw", "nrrd"},
    .magic = "NRRD000",
    .read = read_raw,
    .read_regions = read_raw_regions,
    .write = write_raw,
    .write_regions = write_raw_regions,
    .keeps = kKeepsColours,
    .cost = {.memory_per_byte = 2, .bricks_per_byte = 1 / 512.0, .work_per_byte = 0.02},
};

}  // namespace quarry::io
