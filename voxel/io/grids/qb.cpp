// SPDX-License-Identifier: Apache-2.0
// qb.cpp - format after Minddesk's "Qubicle Binary File Format" (QB). The file is walked twice: first to check
// everything and to count colours, then to place voxels.
#include "voxel/io/grids/qb.hpp"

#include <algorithm>
#include <array>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxQbBytes = uint64_t(1) << 36;
constexpr uint32_t kRunFollows = 2, kSliceEnds = 6;  // words among a compressed slice's colours
constexpr size_t kLeastMatrixBytes = 1 + 12 + 12;

struct QbHeader {
  std::array<uint8_t, 4> version{};
  bool bgra = false, right_handed = false, compressed = false, masks = false;
  uint32_t matrices = 0;
};

struct Matrix : QbExtent {
  std::string name;
};

bool flag(ByteReader& in, const char* what) {
  const size_t at = in.at();
  const uint32_t value = in.u32(what);
  if (value > 1) in.fail_at(at, std::string("expected ") + what + " (0 or 1), found " + std::to_string(value));
  return value == 1;
}

QbHeader read_header(ByteReader& in) {
  QbHeader h;
  if (const uint8_t* version = in.bytes(4, "a version number, the beginning of a Qubicle file"))
    std::copy_n(version, 4, h.version.begin());
  h.bgra = flag(in, "the colour format");
  h.right_handed = flag(in, "the orientation of the z axis");
  h.compressed = flag(in, "the compression");
  h.masks = flag(in, "the visibility encoding");
  const size_t at = in.at();
  h.matrices = in.u32("the number of matrices");
  if (h.matrices > in.left() / kLeastMatrixBytes)
    in.fail_at(at, "the file says " + std::to_string(h.matrices) + " matrices, but has bytes for " +
                       std::to_string(in.left() / kLeastMatrixBytes) + " at most");
  return h;
}

Matrix read_matrix(ByteReader& in, const QbHeader& h) {
  Matrix m;
  const uint8_t length = in.u8("the length of a matrix's name");
  m.name = in.text(length, "a matrix's name");
  const size_t at = in.at();
  static_cast<QbExtent&>(m) = read_qb_extent(in);
  const uint64_t words = h.compressed ? m.size[2] : uint64_t(m.size[0]) * m.size[1] * m.size[2];  // at least
  if (in.ok() && words > in.left() / 4)
    in.fail_at(at, "a matrix of " + std::to_string(m.size[0]) + " x " + std::to_string(m.size[1]) + " x " +
                       std::to_string(m.size[2]) + " voxels needs " + std::to_string(words * 4) +
                       " bytes at least, but only " + std::to_string(in.left()) +
                       " are left; the file is cut short or damaged");
  return m;
}

// The specification defines only 1.1.0.0. Files of other programs state other versions (3.1.2.0 is common) with the
// same layout, as the flags after the version confirm. So the flags are trusted, and an unusual version only causes a
// warning.
bool known_version(const std::array<uint8_t, 4>& v) {
  return (v[0] == 1 && v[1] == 1) || v == std::array<uint8_t, 4>{3, 1, 2, 0};
}

// Calls run(first place in slice z, count, colour, z) for each run of set voxels. `run` returns false to stop.
template <class Run>
void walk_voxels(ByteReader& in, const QbHeader& h, const Matrix& m, const Run& run) {
  const uint64_t slice = uint64_t(m.size[0]) * m.size[1];
  const auto colour_of = [&](uint32_t word) {
    const uint32_t a = h.masks ? 255 : word >> 24;  // a mask tells the visible sides, not the transparency
    return h.bgra ? rgba_of(word >> 16 & 255, word >> 8 & 255, word & 255, a)
                  : rgba_of(word & 255, word >> 8 & 255, word >> 16 & 255, a);
  };
  for (uint32_t z = 0; z < m.size[2] && in.ok(); ++z) {
    uint64_t place = 0;
    while (in.ok() && (h.compressed || place < slice)) {
      const size_t at = in.at();
      uint32_t word = in.u32("a voxel's colour"), count = 1;
      if (h.compressed && word == kSliceEnds) {
        if (place != slice && in.ok())
          in.fail_at(at, "slice " + std::to_string(z) + " of matrix '" + m.name + "' ends after " +
                             std::to_string(place) + " voxels; expected " + std::to_string(slice));
        break;
      }
      if (h.compressed && word == kRunFollows) {
        count = in.u32("the length of a run");
        word = in.u32("the colour of a run");
      }
      if (!in.ok()) return;
      if (count > slice - place)
        return in.fail_at(at, "a run of " + std::to_string(count) + " voxels is longer than the " +
                                  std::to_string(slice - place) + " that are left in slice " + std::to_string(z));
      if (word >> 24 && count && !run(place, count, colour_of(word), z)) return;
      place += count;
    }
  }
}

}  // namespace

QbExtent read_qb_extent(ByteReader& in) {
  QbExtent m;
  const size_t at = in.at();
  for (uint32_t& edge : m.size) edge = in.u32("a matrix's size");
  if (std::any_of(m.size.begin(), m.size.end(), [](uint32_t edge) { return edge > kQbMaxEdge; }))
    in.fail_at(at, "expected a size of at most " + std::to_string(kQbMaxEdge) + " on each axis, found " +
                       std::to_string(m.size[0]) + " x " + std::to_string(m.size[1]) + " x " +
                       std::to_string(m.size[2]));
  const size_t position_at = in.at();
  for (int32_t& p : m.position) p = in.i32("a matrix's position");
  if (std::any_of(m.position.begin(), m.position.end(),
                  [](int32_t p) { return p < -kQbMaxPosition || p > kQbMaxPosition; }))
    in.fail_at(position_at,
               "a matrix's position is farther than " + std::to_string(kQbMaxPosition) + " voxels from the origin");
  return m;
}

Result<Scene> parse_qb(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) {
  ByteView all(bytes);
  return parse_qb(all, warnings, {});
}

Result<Scene> parse_qb(ByteView& bytes, std::vector<std::string>* warnings, const BrickLimits& limits) {
  ByteReader check(bytes);
  const QbHeader h = read_header(check);
  const size_t begin = check.at();
  BrickBudget budget(bytes.size(), limits);
  ColorTable colours(limits.memory);
  uint64_t voxels = 0;
  for (uint32_t i = 0; i < h.matrices && check.ok(); ++i) {
    const Matrix m = read_matrix(check, h);
    const size_t at = check.at();
    const auto count_run = [&](uint64_t, uint32_t count, uint32_t colour, uint32_t) {
      colours.count(colour, count);
      return budget.holds(voxels += count) && colours.good();
    };
    if (check.ok()) walk_voxels(check, h, m, count_run);
    QRY_TRY(colours.good());
    if (!budget.holds(voxels)) return tl::unexpected(budget.error(at_byte(at)));
  }
  QRY_TRY(check.good());
  if (h.matrices == 0)
    return fail(ErrorCode::malformed_input, at_byte(20) + "expected at least one matrix, found none");
  if (const auto& v = h.version; !known_version(v))
    add_warning(warnings, at_byte(0) + "version " + std::to_string(v[0]) + "." + std::to_string(v[1]) + "." +
                              std::to_string(v[2]) + "." + std::to_string(v[3]) +
                              " of the Qubicle format is not known; it was read as 1.1.0.0");
  if (check.left())
    add_warning(warnings,
                at_byte(check.at()) + std::to_string(check.left()) + " bytes after the last matrix were not read");

  Scene scene;
  scene.overlap = OverlapRule::last_instance_wins;
  colours.finish(scene, warnings);
  ByteReader in(bytes, begin);
  for (uint32_t i = 0; i < h.matrices; ++i) {
    const size_t at = in.at();
    Matrix m = read_matrix(in, h);
    if (m.name.empty()) m.name = "matrix " + std::to_string(i);
    VolumeBuilder volume(budget, i);
    bool enough = true, changed = false;
    walk_voxels(in, h, m, [&](uint64_t place, uint32_t count, uint32_t colour, uint32_t z) {
      const uint8_t material = colours.material(colour, &changed);
      const int32_t flipped = int32_t(h.right_handed ? z : m.size[2] - 1 - z);
      for (uint64_t p = place; enough && p < place + count; ++p)
        enough = volume.set({int32_t(p % m.size[0]), int32_t(p / m.size[0]), flipped}, material);
      return enough;
    });
    if (!enough) return tl::unexpected(budget.error(at_byte(at)));
    QRY_TRY(in.good());
    if (changed) return fail(ErrorCode::conflict, "it was changed while it was read");
    Instance instance;
    instance.volume = i;
    instance.name = m.name;
    instance.offset = {m.position[0], m.position[1],
                       h.right_handed ? m.position[2] : -(m.position[2] + int32_t(m.size[2]))};
    scene.instances.push_back(std::move(instance));
    scene.volumes.push_back(
        {std::move(m.name), volume.take(), {int32_t(m.size[0]), int32_t(m.size[1]), int32_t(m.size[2])}});
  }
  scene.metadata["qb.z_axis"] = h.right_handed ? "right-handed" : "left-handed";
  return scene;
}

bool looks_like_qb(std::span<const uint8_t> head) {
  if (head.size() < 24 || !known_version({head[0], head[1], head[2], head[3]})) return false;
  for (size_t at = 4; at < 20; ++at)
    if (head[at] > (at % 4 == 0 ? 1 : 0)) return false;
  return true;
}

Result<Scene> read_qb(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxQbBytes));
  ByteView window(bytes, options.progress);
  return parse_qb(window, options.warnings, {options.budget, nullptr});
}

Result<RegionsDone> read_qb_regions(const std::filesystem::path& file, const ReadOptions& options,
                                    const RegionSink& sink) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxQbBytes));
  ByteView window(bytes, options.progress);
  return read_with_spilling(options, sink,
                            [&](const BrickLimits& limits) { return parse_qb(window, options.warnings, limits); });
}

constinit const Format kQbFormat{
    .name = "qb",
    .title = "Qubicle matrices",
    .kind = FormatKind::scene,
    .extensions = {"qb"},
    .sniff = looks_like_qb,
    .weak_magic = true,  // only small numbers, with which a raw grid may begin too
    .read = read_qb,
    .read_regions = read_qb_regions,
    .cost = {.memory_per_byte = 8, .bricks_per_byte = 1 / 256.0, .work_per_byte = 0.05},
};

}  // namespace quarry::io
