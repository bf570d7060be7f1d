// SPDX-License-Identifier: Apache-2.0
// load.cpp - parses the options of reading, and reads a scene with progress, warnings and a hint where --salvage may
// help.
#include "app/console/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "app/console/terminal.hpp"

namespace quarry::app {
namespace {

// The command line's name for a value of an enumeration.
template <class E>
struct ValueName {
  const char* name;
  E value;
};
constexpr ValueName<SurfaceVoxels> kSurfaces[] = {
    {"26", SurfaceVoxels::cover}, {"6", SurfaceVoxels::thin}, {"none", SurfaceVoxels::none}};
constexpr ValueName<FillRule> kFillRules[] = {
    {"none", FillRule::none}, {"parity", FillRule::parity}, {"winding", FillRule::winding}};
constexpr ValueName<VoxelizeExecutor> kExecutors[] = {
    {"auto", VoxelizeExecutor::automatic}, {"host", VoxelizeExecutor::host}, {"cuda", VoxelizeExecutor::cuda}};

template <class E, size_t N>
std::vector<std::string> names_in(const ValueName<E> (&table)[N]) {
  std::vector<std::string> names;
  for (const ValueName<E>& row : table) names.emplace_back(row.name);
  return names;
}
// `name` is in the table, because parse() checked it.
template <class E, size_t N>
E value_in(const ValueName<E> (&table)[N], const std::string& name) {
  const auto* const row = std::ranges::find_if(table, [&](const ValueName<E>& r) { return name == r.name; });
  return row == std::end(table) ? E{} : row->value;
}
template <class E, size_t N>
const char* name_in(const ValueName<E> (&table)[N], E value) {
  const auto* const row = std::ranges::find(table, value, &ValueName<E>::value);
  return row == std::end(table) ? "" : row->name;
}

// "256x128x256"; none if the text has another form.
std::optional<Int3> parse_grid_size(std::string_view text) {
  int32_t edges[3];
  for (int i = 0; i < 3; ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), edges[i]);
    if (error != std::errc{} || edges[i] < 1 || edges[i] > 16384) return {};
    text.remove_prefix(size_t(end - text.data()));
    if (i == 2) break;
    if (text.empty() || text.front() != 'x') return {};
    text.remove_prefix(1);
  }
  if (!text.empty()) return {};
  return Int3{edges[0], edges[1], edges[2]};
}

}  // namespace

void LoadOptions::add_to(Arguments& arguments, bool with_gpus) {
  arguments.integer("--resolution", resolution, "N", "Meshes, points: voxels along the longest edge (256)", 1, 1 << 20);
  arguments.real("--voxel-size", voxel_size, "S",
                 "Meshes, points: edge of a voxel in the file's units, instead of --resolution", 1e-9, 1e9);
  arguments.choice(
      "--surface", surface_, "26|6|none",
      "Meshes: voxels of a surface: all that it touches (26-separating), a thin layer (6), or none but those inside",
      names_in(kSurfaces));
  arguments.choice("--solid", solid_, "RULE",
                   "Meshes: fill the inside, by parity or winding of the surfaces around it (none)",
                   names_in(kFillRules));
  arguments.choice("--executor", executor_, "WHO",
                   "Meshes: voxelise on cuda, on the host, or auto: by the size of the job", names_in(kExecutors));
  if (with_gpus)
    arguments.integer("--gpus", gpus, "N",
                      "Meshes: CUDA devices that share the regions of each (1; 0: all that are there)", 0, 64);
  arguments.choice("--up", up, "AXIS", "Meshes, points: which axis is up, y or z (what the format says)", {"y", "z"});
  arguments.integer("--memory-limit", memory_limit_mib, "MIB", "Meshes: memory for the reading process (1024)", 64,
                    1 << 20);
  arguments.real("--time-limit", time_limit_s, "SECONDS", "Meshes: time for the reading process (120)", 0.1, 86400);
  arguments.integer("--map-height", map_height, "N",
                    "Height maps: voxels from the lowest to the highest possible value (256)", 1, 8192);
  arguments.text("--color-map", color_map, "PNG", "Height maps: a picture with their colours");
  arguments.text("--raw-size", raw_size, "WxHxD", "Raw grids: voxels along x, y and z");
}

std::optional<int> LoadOptions::check(const Arguments& arguments) {
  surface = value_in(kSurfaces, surface_);
  fill = value_in(kFillRules, solid_);
  executor = value_in(kExecutors, executor_);
  if (surface == SurfaceVoxels::none && fill == FillRule::none)
    return arguments.wrong("--surface none needs --solid parity or --solid winding.");
  if (gpus != 1 && executor == VoxelizeExecutor::host)
    return arguments.wrong("--gpus is for --executor cuda or auto, not for the host.");
  if (!raw_size.empty() && !parse_grid_size(raw_size))
    return arguments.wrong("--raw-size '" + raw_size + "' is no size: write 256x128x256, each from 1 to 16384.");
  return {};
}

io::ReadOptions LoadOptions::read_options() const {
  io::ReadOptions read;
  read.resolution = int32_t(resolution);
  read.voxel_size = voxel_size;
  read.surface = surface;
  read.fill = fill;
  read.executor = executor;
  read.devices = uint32_t(gpus);
  read.up = up;
  read.memory_limit_bytes = uint64_t(memory_limit_mib) << 20;
  read.time_limit_s = time_limit_s;
  read.height = int32_t(map_height);
  read.color_map = color_map;
  read.raw_size = parse_grid_size(raw_size).value_or(Int3{});
  return read;
}

std::string LoadOptions::text() const {
  return fmt::format("resolution={} voxel_size={} surface={} solid={} up={} map_height={} color_map={} raw_size={}",
                     resolution, voxel_size, name_in(kSurfaces, surface), name_in(kFillRules, fill), up, map_height,
                     color_map, raw_size);
}

Result<Scene> load_scene(const std::filesystem::path& file, const LoadOptions& options, const BrickPool* pool,
                         const DeviceSink* sink) {
  std::vector<std::string> warnings;
  io::ReadOptions read = options.read_options();
  read.pool = pool;
  read.sink = sink;
  read.warnings = &warnings;
  ProgressLine line(shown(file));
  read.progress = line.progress();
  Result<Scene> scene = io::read_scene(file, read);
  line.clear();
  for (const std::string& warning : warnings) say_warning(shown(file), warning);
  return scene;
}

Error with_salvage_hint(const std::filesystem::path& file, Error error) {
  if (error.code != ErrorCode::malformed_input) return error;
  const auto format = io::format_for_reading(file);
  if (!format || !(*format)->salvages) return error;
  // For a small file, salvage is tried to find out whether anything can be read. In a large file there usually is
  // something, and trying may take long.
  constexpr uintmax_t kTried = uintmax_t{4} << 20;
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) <= kTried) {
    io::Salvage salvage;
    io::ReadOptions options;
    options.salvage = &salvage;
    const auto left = io::read_scene(file, options);
    if (!left || std::ranges::all_of(left->volumes, [](const Volume& v) { return v.bricks.empty(); })) return error;
  }
  error.message += "; 'quarry convert --salvage' reads what is whole of it";
  return error;
}

int failed(const std::filesystem::path& file, const Error& error) {
  say_error(shown(file), with_salvage_hint(file, error));
  return exit_code_of(error);
}

}  // namespace quarry::app
