// SPDX-License-Identifier: Apache-2.0
// write.cpp - finds the visible box once, then writes one pixel a column. Slices are written into a folder that appears
// whole.
#include "voxel/io/pictures/write.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>

#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/temporary_name.hpp"
#include "voxel/io/pictures/png.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

struct Visible {
  BrickMap bricks;
  Box3 box;
  uint32_t width = 0, height = 0, layers = 0;  // voxels along x, z, y
};

Result<Visible> visible_box(const Scene& scene, const Progress& progress) {
  progress.say("flatten", -1);
  QRY_TRY_ASSIGN(auto bricks, flatten(scene, true));
  if (bricks.empty())
    return fail(ErrorCode::invalid_argument, "the scene has no visible voxel, so there is nothing to picture");
  const Box3 box = bricks.bounds();
  const Int3 size = box.max - box.min;
  return Visible{std::move(bricks), box, uint32_t(size.x) + 1, uint32_t(size.z) + 1, uint32_t(size.y) + 1};
}

// The bytes of an empty picture, four a pixel: RGBA, or grey and alpha of 16 bits.
std::vector<uint8_t> empty_picture(const Visible& visible) {
  return std::vector<uint8_t>(size_t(visible.width) * visible.height * 4);
}

Result<void> write_picture(const PngPixels& pixels, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  if (const auto made = write_png(pixels, out); !made)
    return fail(ErrorCode::out_of_memory, "libpng cannot make the file: " + made.error().message);
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  return out.commit();
}

void put_colour(std::vector<uint8_t>& rgba, size_t pixel, const Material& m) {
  const uint8_t color[4] = {m.r, m.g, m.b, m.a};
  std::copy(color, color + 4, rgba.begin() + int64_t(pixel * 4));
}

// Calls take(pixel, layer above the box's lowest, material) for the highest voxel of each column.
template <class Take>
void for_each_top(const Visible& visible, Take take) {
  struct Top {
    int32_t layer = -1;
    uint8_t material = 0;
  };
  std::vector<Top> tops(size_t(visible.width) * visible.height);
  for (const auto& [at, brick] : visible.bricks.bricks())
    for (int32_t z = 0; z < 8; ++z)
      for (int32_t x = 0; x < 8; ++x)
        for (int32_t y = 7; y >= 0; --y) {
          const uint8_t m = brick.get(voxel_index({x, y, z}));
          if (!m) continue;
          Top& top =
              tops[size_t(at.z * 8 + z - visible.box.min.z) * visible.width + size_t(at.x * 8 + x - visible.box.min.x)];
          if (const int32_t layer = at.y * 8 + y - visible.box.min.y; layer > top.layer) top = {layer, m};
          break;
        }
  for (size_t i = 0; i < tops.size(); ++i)
    if (tops[i].layer >= 0) take(i, uint32_t(tops[i].layer), tops[i].material);
}

}  // namespace

Result<void> write_top_view(const Scene& scene, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto visible, visible_box(scene, progress));
  auto rgba = empty_picture(visible);
  for_each_top(visible, [&](size_t pixel, uint32_t, uint8_t material) {
    put_colour(rgba, pixel, scene.palette.materials[material]);
  });
  return write_picture({visible.width, visible.height, 4, 8, rgba}, to, progress);
}

uint32_t height_map_range(uint32_t layers) { return std::max(256u, std::bit_ceil(layers)); }

Result<void> write_height_map(const Scene& scene, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto visible, visible_box(scene, progress));
  auto bytes = empty_picture(visible);
  const uint32_t step = 65536 / height_map_range(visible.layers);
  for_each_top(visible, [&](size_t pixel, uint32_t layer, uint8_t) {
    const uint32_t height = layer * step;
    const uint8_t grey_and_alpha[4] = {uint8_t(height >> 8), uint8_t(height), 255, 255};
    std::copy(grey_and_alpha, grey_and_alpha + 4, bytes.begin() + int64_t(pixel * 4));
  });
  return write_picture({visible.width, visible.height, 2, 16, bytes}, to, progress);
}

Result<void> write_slices(const Scene& scene, const Destination& to, const Progress& progress) {
  std::error_code error;
  const fs::path& folder = to.file;
  if (fs::exists(fs::symlink_status(folder, error)))
    return fail(ErrorCode::conflict, "it is there already; take it away or name another folder");
  QRY_TRY_ASSIGN(const auto visible, visible_box(scene, progress));
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  QRY_TRY_ASSIGN(const auto made, make_temporary_folder(parent / folder.filename()));
  const fs::path& temporary = made.path;
  // The pictures are brought to disk together: before the folder gets its name, or with the batch if the caller has
  // one.
  DeferredSync together;
  std::vector<fs::path> pictures;
  together.watch(temporary);
  if (to.later) to.later->watch(temporary);
  const auto give_up = [&](Error e) {
    fs::remove_all(temporary, error);
    ::close(made.fd);
    return tl::unexpected(std::move(e));
  };
  std::vector<BrickMap::Entry> by_layer;
  for (const auto& brick : visible.bricks.bricks()) by_layer.push_back(brick);
  std::stable_sort(by_layer.begin(), by_layer.end(),
                   [](const auto& a, const auto& b) { return a.first.y < b.first.y; });
  auto first = by_layer.begin();
  for (int32_t y = visible.box.min.y; y <= visible.box.max.y; ++y) {
    auto rgba = empty_picture(visible);
    while (first != by_layer.end() && first->first.y < y >> 3) ++first;
    for (auto it = first; it != by_layer.end() && it->first.y == y >> 3; ++it) {
      const auto& [at, brick] = *it;
      for (int32_t z = 0; z < 8; ++z)
        for (int32_t x = 0; x < 8; ++x)
          if (const uint8_t m = brick.get(voxel_index({x, y & 7, z})))
            put_colour(
                rgba,
                size_t(at.z * 8 + z - visible.box.min.z) * visible.width + size_t(at.x * 8 + x - visible.box.min.x),
                scene.palette.materials[m]);
    }
    char name[16];
    const int32_t layer = y - visible.box.min.y;
    std::snprintf(name, sizeof name, "%04d.png", layer);
    if (auto written =
            write_picture({visible.width, visible.height, 4, 8, rgba}, {temporary / name, false, &together}, progress);
        !written)
      return give_up(written.error());
    pictures.push_back(folder / name);
    progress.say("write", double(layer + 1) / double(visible.layers));
  }
  if (!to.later)
    if (auto settled = together.settle(); !settled) return give_up(settled.error());
  // If the system cannot rename without replacing, the rename can replace only an empty folder.
  int number = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (number == EINVAL || number == ENOSYS || number == ENOTSUP)
    number = ::rename(temporary.c_str(), folder.c_str()) == 0 ? 0 : errno;
  if (number == EEXIST || number == ENOTEMPTY || number == ENOTDIR)
    return give_up({ErrorCode::conflict, "it is there already; take it away or name another folder"});
  if (number) return give_up(error_from_errno("cannot put the new folder in its place", number));
  if (to.later)
    for (const fs::path& picture : pictures) to.later->add(picture);
  number = to.later ? 0 : sync_folder(parent, made.fd);
  ::close(made.fd);
  if (number)
    return tl::unexpected(
        error_from_errno("the new folder is in its place, but it could not be brought to disk that it is", number));
  return {};
}

}  // namespace quarry::io
