// SPDX-License-Identifier: Apache-2.0
// vdb.cpp - reads the stream of quarry-vdb. Region by region, the stream is not held: its bricks wait on disk, and a
// stream of colours is asked for twice.
#include "voxel/io/grids/vdb.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>

#include "voxel/foreign/pipe/voxel_stream.hpp"
#include "voxel/foreign/process.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/grids/vdb_process.hpp"
#include "voxel/io/streams/volume_builder.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::io {

#if defined(QRY_OPENVDB)
constexpr const char* kVdbAbsent = nullptr;
#else
constexpr const char* kVdbAbsent =
    "this build has no OpenVDB; install libopenvdb-dev, libnanovdb-dev and libboost-dev and configure again";
#endif

std::string number_text(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}

std::string materials_text(const Palette& palette) {
  std::string out;
  for (size_t i = 1; i < 256; ++i) {
    const Material& m = palette.materials[i];
    if (m == Material{} && palette.names[i].empty()) continue;
    out += std::to_string(i);
    for (const uint8_t v : {m.r, m.g, m.b, m.a}) out += " " + std::to_string(v);
    for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior})
      out += " " + number_text(double(v));
    out += " ";
    for (const char c : palette.names[i]) c == ';' ? out += "%3b" : c == '%' ? out += "%25" : out += c;
    out += ";";
  }
  return out;
}

namespace {
namespace fs = std::filesystem;

constexpr uint8_t kPlain = 1;  // the material of grids without colours
constexpr char kChanged[] = "the file was changed while it was read";

// The reverse of materials_text().
bool read_materials(const std::string& text, Palette* palette) {
  *palette = {};
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find(';', at);
    if (end == std::string::npos) return false;
    unsigned i = 0, r = 0, g = 0, b = 0, a = 0;
    double v[5] = {};
    int used = 0;
    const std::string line = text.substr(at, end - at);
    if (std::sscanf(line.c_str(), "%u %u %u %u %u %lf %lf %lf %lf %lf%n", &i, &r, &g, &b, &a, &v[0], &v[1], &v[2],
                    &v[3], &v[4], &used) != 10 ||
        i == 0 || i > 255 || std::max({r, g, b, a}) > 255 ||
        !std::all_of(v, v + 5, [](double x) { return std::isfinite(x) && x >= 0 && x <= 1e6; }))
      return false;
    palette->materials[i] = {uint8_t(r),  uint8_t(g),  uint8_t(b),  uint8_t(a), float(v[0]),
                             float(v[1]), float(v[2]), float(v[3]), float(v[4])};
    std::string& name = palette->names[i] = size_t(used) + 1 < line.size() ? line.substr(size_t(used) + 1) : "";
    for (size_t c = 0; (c = name.find('%', c)) != std::string::npos; ++c)
      if (const std::string code = name.substr(c, 3); code == "%3b" || code == "%25")
        name.replace(c, 3, 1, code == "%3b" ? ';' : '%');
    at = end + 1;
  }
  return true;
}

const char* kind_name(uint32_t kind) {
  return kind == GridRecord::level_set ? "level set" : kind == GridRecord::fog ? "fog volume" : "mask";
}

// The place of a grid's cell (0,0,0) in cells of the first grid.
Int3 place_of(const GridRecord& grid, const GridRecord& first) {
  const auto along = [&](int i) {
    return int32_t(std::clamp(std::round((grid.origin[i] - first.origin[i]) / first.voxel_size[i]), -double(1 << 24),
                              double(1 << 24)));
  };
  return {along(0), along(1), along(2)};
}

Int3 turned(Int3 cell, bool z_up) { return z_up ? Int3{cell.x, cell.z, -1 - cell.y} : cell; }

// The offset by which all instances must move to fit into the world; none if no offset makes them fit.
Result<Int3> shift_into_world(const Box3& box) {
  Int3 shift{};
  const int64_t min[3] = {box.min.x, box.min.y, box.min.z}, max[3] = {box.max.x, box.max.y, box.max.z};
  const int64_t low[3] = {kWorldMin.x, kWorldMin.y, kWorldMin.z}, high[3] = {kWorldMax.x, kWorldMax.y, kWorldMax.z};
  int32_t* const out[3] = {&shift.x, &shift.y, &shift.z};
  for (int i = 0; i < 3; ++i) {
    if (min[i] >= low[i] && max[i] <= high[i]) continue;
    if (max[i] - min[i] > high[i] - low[i]) {
      if (in_scene(box)) return Int3{};
      return fail(ErrorCode::out_of_bounds, "its voxels span " + std::to_string(max[i] - min[i] + 1) + " along " +
                                                "xyz"[i] + ", farther than 2^30 out; resample it coarser");
    }
    *out[i] = int32_t(-(min[i] + (max[i] - min[i] + 1) / 2));
  }
  return shift;
}

// What becomes of a stream. Its colours are counted before they become materials, so it passes twice if it has any.
class VdbReading {
 public:
  // `stream_bytes` limits the bricks, as io/streams/volume_builder.hpp says.
  VdbReading(const ReadOptions& options, uint64_t stream_bytes, const BrickLimits& limits)
      : options_(options), budget_(stream_bytes, limits), colors_(options.budget) {}
  VdbReading(const VdbReading&) = delete;
  VdbReading& operator=(const VdbReading&) = delete;

  // Of the first pass: what makes bricks of the grids without colours, and counts the others' colours.
  VoxelStreamEvents first();
  // Call it between the two passes. Errors: malformed_input; out_of_memory (too many colours).
  Result<void> colors_counted(std::vector<std::string>&& warnings);
  bool needs_second() const { return any_color_; }
  // Of the second pass: what makes bricks of the grids with colours.
  VoxelStreamEvents second();
  // Whether the last error is of what is made here, and not the stream's.
  bool refused() const { return refused_; }
  Result<Scene> scene();

 private:
  struct Grid {
    StreamGrid head;
    VolumeBuilder builder;
    Box3 bounds{};  // of its voxels
    uint64_t active_voxels = 0;
  };
  Result<void> make(Grid& grid, Int3 at, const BrickMask& mask, std::span<const uint8_t> values);
  // A grid's bricks do not stay in memory while the next ones come, if they have somewhere to wait.
  Result<void> rest(Grid& grid) {
    if (!budget_.spill()) return {};
    grid.builder.take();
    return refuse_unless(budget_.spill()->good());
  }
  Result<void> refuse_unless(Result<void> good) {
    refused_ = !good;
    return good;
  }

  const ReadOptions& options_;
  BrickBudget budget_;
  ColorTable colors_;
  Scene scene_;
  std::deque<Grid> grids_;
  std::string sent_materials_;
  bool own_materials_ = false, any_color_ = false, refused_ = false;
  size_t at_ = 0;  // second pass: the grid, and one more
};

VoxelStreamEvents VdbReading::first() {
  VoxelStreamEvents events;
  events.metadata = [this](std::string key, std::string text) {
    if (key == "quarry_materials") sent_materials_ = std::move(text);
    else scene_.metadata[std::move(key)] = std::move(text);
  };
  events.grid = [this](const StreamGrid& head) -> Result<void> {
    grids_.push_back({head, VolumeBuilder(budget_, grids_.size())});
    if (head.record.value_bytes == 4) any_color_ = true;
    if (head.record.value_bytes == 1) own_materials_ = true;
    return {};
  };
  events.brick = [this](Int3 at, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    Grid& grid = grids_.back();
    if (grid.head.record.value_bytes != 4) return make(grid, at, mask, values);
    for (size_t i = 0; i < values.size(); i += 4)
      colors_.count(rgba_of(values[i], values[i + 1], values[i + 2], values[i + 3]));
    return refuse_unless(colors_.good());
  };
  events.grid_end = [this](uint64_t active_voxels) -> Result<void> {
    grids_.back().active_voxels = active_voxels;
    return rest(grids_.back());
  };
  return events;
}

Result<void> VdbReading::colors_counted(std::vector<std::string>&& warnings) {
  for (std::string& w : warnings) add_warning(options_.warnings, std::move(w));
  if (own_materials_ && !read_materials(sent_materials_, &scene_.palette))
    return fail(ErrorCode::malformed_input, "its metadata 'quarry_materials' is not what Quarry writes");
  if (any_color_) colors_.finish(scene_, options_.warnings);
  else if (!own_materials_) scene_.palette = Palette::standard();
  return {};
}

VoxelStreamEvents VdbReading::second() {
  VoxelStreamEvents events;
  events.grid = [this](const StreamGrid& head) -> Result<void> {
    if (at_ == grids_.size() || head.record.value_bytes != grids_[at_].head.record.value_bytes)
      return fail(ErrorCode::conflict, kChanged);
    ++at_;
    return {};
  };
  events.brick = [this](Int3 at, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    Grid& grid = grids_[at_ - 1];
    return grid.head.record.value_bytes == 4 ? make(grid, at, mask, values) : Result<void>();
  };
  events.grid_end = [this](uint64_t) { return rest(grids_[at_ - 1]); };
  return events;
}

Result<void> VdbReading::make(Grid& grid, Int3 at, const BrickMask& mask, std::span<const uint8_t> values) {
  Brick brick;
  brick.mask = mask;
  const uint32_t bytes = grid.head.record.value_bytes;
  bool unknown = false;
  size_t n = 0;
  for (uint32_t octant = 0; octant < 8; ++octant)
    for (uint64_t word = mask[octant]; word; word &= word - 1, ++n) {
      const uint8_t* value = values.data() + n * bytes;
      const uint32_t index = octant * 64 + uint32_t(std::countr_zero(word));
      brick.materials[index] = bytes == 0 ? kPlain
                               : bytes == 1
                                   ? std::max<uint8_t>(value[0], 1)
                                   : colors_.material(rgba_of(value[0], value[1], value[2], value[3]), &unknown);
    }
  if (unknown) return fail(ErrorCode::conflict, kChanged);
  grid.bounds = united(grid.bounds, voxel_bounds(at, mask));
  if (grid.builder.put(at, brick)) return {};
  if (budget_.spill()) QRY_TRY(refuse_unless(budget_.spill()->good()));
  return refuse_unless(tl::unexpected(budget_.error("")));
}

Result<Scene> VdbReading::scene() {
  const bool z_up = options_.up == "z";
  Box3 box;
  for (Grid& grid : grids_) {
    const GridRecord& r = grid.head.record;
    scene_.metadata["vdb.grids"] += grid.head.name + ": " + kind_name(r.kind) + ", " + grid.head.type + ", " +
                                    std::to_string(grid.active_voxels) + " active voxels, voxel size " +
                                    number_text(r.voxel_size[0]) + "\n";
    if (std::abs(r.voxel_size[0] - grids_[0].head.record.voxel_size[0]) > 1e-6 * r.voxel_size[0])
      add_warning(options_.warnings, "grid '" + grid.head.name + "' has voxels of another size than '" +
                                         grids_[0].head.name + "'; its cells are taken one to one");
    Instance instance;
    instance.volume = uint32_t(scene_.volumes.size());
    instance.name = grid.head.name;
    const Int3 place = place_of(r, grids_[0].head.record);
    if (z_up) instance.rotation = {{0, 2, 1}, {1, 1, -1}};
    instance.offset = z_up ? Int3{place.x, place.z, -place.y} : place;
    if (!grid.bounds.empty()) {
      const Int3 a = turned(grid.bounds.min, z_up) + instance.offset,
                 b = turned(grid.bounds.max, z_up) + instance.offset;
      box = united(box, {{std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)},
                         {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}});
    }
    scene_.instances.push_back(std::move(instance));
    scene_.volumes.push_back({grid.head.name, grid.builder.take(), {}});
  }
  if (box.empty()) return fail(ErrorCode::malformed_input, "its grids have no voxel inside");
  QRY_TRY_ASSIGN(const auto shift, shift_into_world(box));
  for (Instance& instance : scene_.instances) instance.offset = instance.offset + shift;
  if (shift != Int3{})
    scene_.metadata["vdb.shift"] =
        std::to_string(shift.x) + " " + std::to_string(shift.y) + " " + std::to_string(shift.z);
  const GridRecord& first = grids_[0].head.record;
  scene_.metadata["voxel_size"] = number_text(first.voxel_size[0]);
  scene_.metadata["vdb.origin"] =
      number_text(first.origin[0]) + " " + number_text(first.origin[1]) + " " + number_text(first.origin[2]);
  return std::move(scene_);
}

// If the program has reached the memory limit that the budget left it, the budget's error is returned.
Error error_of(const VdbReading& reading, const ReadOptions& options, uint64_t memory_limit_bytes, const Error& e) {
  const bool by_budget = !reading.refused() && options.budget && memory_limit_bytes < options.memory_limit_bytes &&
                         e.code == ErrorCode::out_of_memory;
  return by_budget ? options.budget->used_up("reading it, in a process of its own for which " +
                                             memory_text(memory_limit_bytes) + " are left,")
                   : e;
}

// Runs the program, and gives its stream to `events`, which are the reading's, as it comes.
Result<void> pass_stream(const fs::path& file, const ReadOptions& options, const VdbReading& reading,
                         const VoxelStreamEvents& events, std::vector<std::string>* warnings) {
  VoxelStreamParser parser(kVdbProgram.role, events, warnings);
  const auto take = [&](std::span<const uint8_t> piece, uint64_t memory_limit_bytes) {
    return parser.push(piece).map_error(
        [&](const Error& e) { return error_of(reading, options, memory_limit_bytes, e); });
  };
  QRY_TRY_ASSIGN(const auto answer,
                 run_reader_in_pieces(kVdbProgram, {"--", "read-regions", fs::absolute(file).string()}, options, take));
  if (answer.end) return tl::unexpected(*answer.end);
  return parser.end();
}

}  // namespace

Result<Scene> read_vdb(const fs::path& file, const ReadOptions& options) {
  // NOLINTNEXTLINE(bugprone-string-constructor): this is reached only if it is not null
  if (kVdbAbsent) return fail(ErrorCode::unsupported, kVdbAbsent);
  QRY_TRY(check_readable(file));
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto answer, run_reader(kVdbProgram, {"--", "read", fs::absolute(file).string()}, options));
  VdbReading reading(options, answer.stream.size(), {options.budget, nullptr});
  std::vector<std::string> warnings;
  if (auto parsed = parse_voxel_stream(answer.stream, kVdbProgram.role, reading.first(), &warnings); !parsed)
    return tl::unexpected(answer.end ? *answer.end
                                     : error_of(reading, options, answer.memory_limit_bytes, parsed.error()));
  if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
  QRY_TRY(reading.colors_counted(std::move(warnings)));
  if (reading.needs_second()) QRY_TRY(parse_voxel_stream(answer.stream, kVdbProgram.role, reading.second(), nullptr));
  answer.stream = {};
  return reading.scene();
}

Result<RegionsDone> read_vdb_regions(const fs::path& file, const ReadOptions& options, const RegionSink& sink) {
  // NOLINTNEXTLINE(bugprone-string-constructor): this is reached only if it is not null
  if (kVdbAbsent) return fail(ErrorCode::unsupported, kVdbAbsent);
  QRY_TRY(check_readable(file));
  options.progress.say("read", -1);
  return read_with_spilling(options, sink, [&](const BrickLimits& limits) -> Result<Scene> {
    VdbReading reading(options, UINT64_MAX, limits);  // the program limits the bricks
    std::vector<std::string> warnings;
    QRY_TRY(pass_stream(file, options, reading, reading.first(), &warnings));
    QRY_TRY(reading.colors_counted(std::move(warnings)));
    if (reading.needs_second()) QRY_TRY(pass_stream(file, options, reading, reading.second(), nullptr));
    return reading.scene();
  });
}

namespace {
// Measured on surfaces of 56,000 bricks and more.
constexpr FormatCost kVdbCost{.memory_per_byte = 3,
                              .bricks_per_byte = 1 / 500.0,
                              .work_per_byte = 0.05,
                              .memory_to_write = kVdbProgram.own_bytes};
constexpr FormatCost kNvdbCost{
    .memory_per_byte = 6, .bricks_per_byte = 1 / 200.0, .work_per_byte = 0.1, .memory_to_write = kVdbProgram.own_bytes};
}  // namespace

constinit const Format kVdbFormat{
    .name = "vdb",
    .title = "OpenVDB volume",
    .kind = FormatKind::volume,
    .extensions = {"vdb"},
    .magic = std::string_view(" BDV\0\0\0\0", 8),
    .read = read_vdb,
    .read_regions = read_vdb_regions,
    .write = write_vdb,
    .write_regions = write_vdb_regions,
    .keeps = kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames,
    .cost = kVdbCost,
    .absent = kVdbAbsent,
};

constinit const Format kNvdbFormat{
    .name = "nvdb",
    .title = "NanoVDB volume",
    .kind = FormatKind::volume,
    .extensions = {"nvdb"},
    .magic = "NanoVDB",
    .read = read_vdb,
    .read_regions = read_vdb_regions,
    .write = write_vdb,
    .write_regions = write_vdb_regions,
    .keeps = kKeepsColours,
    .cost = kNvdbCost,
    .absent = kVdbAbsent,
};

}  // namespace quarry::io
