// SPDX-License-Identifier: Apache-2.0
// write.cpp - formats after Patrick Min, "BINVOX voxel file format specification", and Gordon Kindlmann, "Definition of
// NRRD File Format".
#include "voxel/io/grids/write.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/control_characters.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kMaxGridBytes = uint64_t(1) << 36;
constexpr std::string_view kHeaderMark = "NRRD0004\n# Quarry\n";

Error no_grid() {
  return {ErrorCode::invalid_argument, "the scene has no visible voxel, so there is no grid to write"};
}

Error too_large(const std::string& edges) {
  return {
      ErrorCode::unsupported,
      "a grid of " + edges +
          " voxels would take more than 64 GiB; crop the scene, make it coarser, or write a sparse format (.quarry)"};
}

std::string edges_text(Int3 e, const char* between) {
  return std::to_string(e.x) + between + std::to_string(e.y) + between + std::to_string(e.z);
}

// Pairs of value and count.
class Runs {
 public:
  explicit Runs(AtomicFile& out) : out_(out) {}
  void add(uint8_t value, uint64_t count) {
    if (value != value_) flush();
    value_ = value;
    count_ += count;
  }
  void flush() {
    for (; count_ > 0; count_ -= std::min<uint64_t>(count_, 255)) {
      const uint8_t pair[2] = {value_, uint8_t(std::min<uint64_t>(count_, 255))};
      out_.put(pair);
    }
  }

 private:
  AtomicFile& out_;
  uint8_t value_ = 0;
  uint64_t count_ = 0;
};

// "rrggbbaa" of all 256 materials.
std::string palette_text(const Palette& palette) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const Material& m : palette.materials)
    for (const uint8_t v : {m.r, m.g, m.b, m.a}) out += {kHex[v >> 4], kHex[v & 15]};
  return out;
}

}  // namespace

Result<void> write_binvox(const Scene& scene, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto voxels, VisibleRegions::of(scene, progress));
  return write_binvox_regions(voxels, to, progress);
}

Result<void> write_raw(const Scene& scene, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto voxels, VisibleRegions::of(scene, progress));
  return write_raw_regions(voxels, to, progress);
}

Result<void> write_binvox_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  const Scene& scene = voxels.scene();
  const Box3 box = voxels.bounds();
  if (box.empty()) return tl::unexpected(no_grid());
  const Int3 size = box.max - box.min + Int3{1, 1, 1};
  const auto edge = uint64_t(std::max({size.x, size.y, size.z}));
  if (edge * edge * edge / 255 * 2 > kMaxGridBytes)
    return tl::unexpected(too_large(edges_text({int32_t(edge), int32_t(edge), int32_t(edge)}, " x ")));
  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  const std::string e = std::to_string(edge);
  // The format's units are those of the scene's source if they are known, else voxels.
  const SourceUnits units = source_units(scene).value_or(SourceUnits{});
  SourceUnits corner = units;
  const int32_t low[3] = {box.min.x, box.min.y, box.min.z};
  for (size_t k = 0; k < 3; ++k) corner.origin[k] += low[k] * units.voxel_size;
  out.put("#binvox 1\ndim " + e + " " + e + " " + e + "\ntranslate " + origin_text(corner) + "\nscale " +
          shortest_text(double(edge) * units.voxel_size) + "\ndata\n");

  Runs runs(out);
  uint64_t done = 0;  // voxels; y runs fastest, then z, then x
  std::vector<uint64_t> slice;
  const int32_t last_brick = box.max.x >> 3;
  for (int32_t from = box.min.x >> 3; from <= last_brick;) {
    QRY_TRY_ASSIGN(const auto last, voxels.last_layer(0, from));
    QRY_TRY_ASSIGN(const auto bricks, voxels.layers(0, from, last));
    const auto list = bricks.bricks();
    const auto list_end = list.lower_bound({last + 1, INT32_MIN, INT32_MIN});
    for (auto begin = list.lower_bound({from, INT32_MIN, INT32_MIN}); begin != list_end;) {
      auto end = begin;
      while (end != list_end && end->first.x == begin->first.x) ++end;
      for (int32_t dx = 0; dx < 8; ++dx) {
        if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
        slice.clear();
        const int64_t x = int64_t(begin->first.x) * 8 + dx - box.min.x;
        for (auto it = begin; it != end; ++it) {
          const auto& [at, brick] = *it;
          for (uint32_t octant = uint32_t(dx) >> 2; octant < 8; octant += 2)
            for (uint64_t left = brick.mask[octant] & 0x1111111111111111u << (dx & 3); left; left &= left - 1) {
              const Int3 v = voxel_from_index(octant * 64 + uint32_t(std::countr_zero(left)));
              slice.push_back((uint64_t(x) * edge + uint64_t(int64_t(at.z) * 8 + v.z - box.min.z)) * edge +
                              uint64_t(int64_t(at.y) * 8 + v.y - box.min.y));
            }
        }
        std::sort(slice.begin(), slice.end());
        for (const uint64_t i : slice) {
          runs.add(0, i - done);
          runs.add(1, 1);
          done = i + 1;
        }
      }
      begin = end;
      progress.say("write", double(done) / double(edge * edge * edge));
    }
    from = last + 1;
  }
  runs.add(0, edge * edge * edge - done);
  runs.flush();
  return out.commit();
}

Result<void> write_raw_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  const Scene& scene = voxels.scene();
  const Box3 box = voxels.bounds();
  if (box.empty()) return tl::unexpected(no_grid());
  const Int3 size = box.max - box.min + Int3{1, 1, 1};
  const uint64_t row = uint64_t(size.x), slice_bytes = row * uint64_t(size.y);
  if (slice_bytes * uint64_t(size.z) > kMaxGridBytes) return tl::unexpected(too_large(edges_text(size, " x ")));

  const fs::path& file = to.file;
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const bool attached = extension == ".nrrd";
  const fs::path header_file = sidecar_of(file);
  std::error_code ignored;
  // NRRD cannot express such a name in its line.
  if (!attached && std::ranges::any_of(file.filename().string(), is_control))
    return fail(ErrorCode::invalid_argument,
                "its header cannot name a file with a line end or another control "
                "character in its name; choose another name, or write .nrrd");
  if (!attached && to.replace && fs::is_regular_file(header_file, ignored)) {
    const auto head = read_file_head(header_file, kHeaderMark.size());
    if (!head || !std::equal(head->begin(), head->end(), kHeaderMark.begin(), kHeaderMark.end()))
      return fail(ErrorCode::conflict, "its header belongs into " + header_file.string() +
                                           ", which is there and is not of Quarry's making; choose another name");
  }
  // The origin is the centre of the first voxel, as NRRD defines it.
  const auto middle = [](int32_t v) { return std::to_string(v) + ".5"; };
  const auto centre = [&](int32_t v) {
    return v >= 0 ? middle(v) : v == -1 ? std::string("-0.5") : "-" + middle(-1 - v);
  };
  std::string header =
      std::string(kHeaderMark) +
      "content: palette indices, 0 is empty; y is up\ntype: uint8\ndimension: 3\nsizes: " + edges_text(size, " ") +
      "\nspace dimension: 3\nspace directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (" + centre(box.min.x) + "," +
      centre(box.min.y) + "," + centre(box.min.z) + ")\nkinds: domain domain domain\nencoding: raw\n";
  if (!attached) header += "data file: " + file.filename().string() + "\n";
  if (const auto units = source_units(scene))
    header +=
        "quarry_voxel_size:=" + shortest_text(units->voxel_size) + "\nquarry_origin:=" + origin_text(*units) + "\n";
  header += "quarry_palette:=" + palette_text(scene.palette) + "\n";

  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  std::optional<AtomicFile> sidecar;
  if (attached) {
    out.put(header + "\n");
  } else {
    auto made = AtomicFile::create(to.with(header_file));
    if (!made)
      return fail(made.error().code,
                  header_file.filename().string() + ", which belongs to it: " + made.error().message);
    sidecar.emplace(std::move(*made));
    sidecar->put(header);
  }
  std::vector<uint8_t> slice(slice_bytes);
  for (int32_t from = box.min.z >> 3; from <= box.max.z >> 3;) {
    QRY_TRY_ASSIGN(const auto last, voxels.last_layer(2, from));
    QRY_TRY_ASSIGN(const auto bricks, voxels.layers(2, from, last));
    std::vector<BrickMap::Entry> by_z;
    for (const auto& brick : bricks.bricks())
      if (brick.first.z >= from && brick.first.z <= last) by_z.push_back(brick);
    std::stable_sort(by_z.begin(), by_z.end(), [](const auto& a, const auto& b) { return a.first.z < b.first.z; });
    auto first = by_z.begin();  // the first brick of the layer at hand or of a later one
    for (int32_t z = std::max(box.min.z, from * 8); z <= std::min(box.max.z, last * 8 + 7); ++z) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
      std::fill(slice.begin(), slice.end(), uint8_t(0));
      while (first != by_z.end() && first->first.z < z >> 3) ++first;
      for (auto it = first; it != by_z.end() && it->first.z == z >> 3; ++it) {
        const auto& [at, brick] = *it;
        const uint32_t above = uint32_t(z) >> 2 & 1;
        for (uint32_t octant = above * 4; octant < above * 4 + 4; ++octant)
          for (uint64_t left = brick.mask[octant] & uint64_t(0xffff) << (z & 3) * 16; left; left &= left - 1) {
            const uint32_t i = octant * 64 + uint32_t(std::countr_zero(left));
            const Int3 v = voxel_from_index(i);
            slice[uint64_t(at.y * 8 + v.y - box.min.y) * row + uint64_t(at.x * 8 + v.x - box.min.x)] =
                brick.materials[i];
          }
      }
      out.put(slice);
      progress.say("write", double(z - box.min.z + 1) / double(size.z));
    }
    from = last + 1;
  }
  return sidecar ? out.commit_after(*sidecar) : out.commit();
}

}  // namespace quarry::io
