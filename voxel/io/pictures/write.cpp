// SPDX-License-Identifier: Apache-2.0
// write.cpp - goes once through the visible voxels, as many at a time as fit memory, and writes one pixel a column.
// Slices are written into a folder that appears whole.
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
#include "voxel/io/quarry/visible_regions.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

struct Shown {
  const VisibleRegions& voxels;
  Box3 box;
  uint32_t width, height, layers;  // voxels along x, z, y
  size_t pixel(Int3 at) const { return size_t(at.z - box.min.z) * width + size_t(at.x - box.min.x); }
};

// `bytes_a_pixel`: that the picture takes, with what it is made from.
Result<Shown> shown_by(const VisibleRegions& voxels, uint64_t bytes_a_pixel) {
  const Box3 box = voxels.bounds();
  if (box.empty())
    return fail(ErrorCode::invalid_argument, "the scene has no visible voxel, so there is nothing to picture");
  const Int3 size = box.max - box.min;
  const Shown shown{voxels, box, uint32_t(size.x) + 1, uint32_t(size.z) + 1, uint32_t(size.y) + 1};
  const uint64_t bytes = bytes_a_pixel * shown.width * shown.height, available = voxels.available_bytes();
  if (bytes > available)
    return fail(ErrorCode::out_of_memory,
                "a picture of " + std::to_string(shown.width) + " x " + std::to_string(shown.height) +
                    " pixels takes " + std::to_string(bytes >> 20) + " MiB, and " + std::to_string(available >> 20) +
                    " MiB are left of the memory it may take; allow more, or crop it");
  return shown;
}

// The bytes of an empty picture, four a pixel: RGBA, or grey and alpha of 16 bits.
std::vector<uint8_t> empty_picture(const Shown& shown) {
  return std::vector<uint8_t>(size_t(shown.width) * shown.height * 4);
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
constexpr uint64_t kTopBytes = 8;
template <class Take>
Result<void> for_each_top(const Shown& shown, Take take) {
  struct Top {
    int32_t layer = -1;
    uint8_t material = 0;
  };
  static_assert(sizeof(Top) == kTopBytes);
  std::vector<Top> tops(size_t(shown.width) * shown.height);
  const Box3 all{brick_of(shown.box.min), brick_of(shown.box.max)};
  QRY_TRY(shown.voxels.visit(all, [&](const std::vector<BrickPut>& bricks) -> Result<void> {
    for (const BrickPut& put : bricks) {
      const Int3 at = put.brick;
      const BrickView brick = *put.value;
      for (int32_t z = 0; z < 8; ++z)
        for (int32_t x = 0; x < 8; ++x)
          for (int32_t y = 7; y >= 0; --y) {
            const uint8_t m = brick.get(voxel_index({x, y, z}));
            if (!m) continue;
            Top& top = tops[shown.pixel({at.x * 8 + x, 0, at.z * 8 + z})];
            if (const int32_t layer = at.y * 8 + y - shown.box.min.y; layer > top.layer) top = {layer, m};
            break;
          }
    }
    return {};
  }));
  for (size_t i = 0; i < tops.size(); ++i)
    if (tops[i].layer >= 0) take(i, uint32_t(tops[i].layer), tops[i].material);
  return {};
}

}  // namespace

Result<void> write_top_view(const Scene& scene, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto voxels, VisibleRegions::of(scene, progress));
  return write_top_view_regions(voxels, to, progress);
}

Result<void> write_top_view_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto shown, shown_by(voxels, 4 + kTopBytes));
  auto rgba = empty_picture(shown);
  QRY_TRY(for_each_top(shown, [&](size_t pixel, uint32_t, uint8_t material) {
    put_colour(rgba, pixel, voxels.scene().palette.materials[material]);
  }));
  return write_picture({shown.width, shown.height, 4, 8, rgba}, to, progress);
}

uint32_t height_map_range(uint32_t layers) { return std::max(256u, std::bit_ceil(layers)); }

Result<void> write_height_map(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto shown, shown_by(voxels, 4 + kTopBytes));
  auto bytes = empty_picture(shown);
  const uint32_t step = 65536 / height_map_range(shown.layers);
  QRY_TRY(for_each_top(shown, [&](size_t pixel, uint32_t layer, uint8_t) {
    const uint32_t height = layer * step;
    const uint8_t grey_and_alpha[4] = {uint8_t(height >> 8), uint8_t(height), 255, 255};
    std::copy(grey_and_alpha, grey_and_alpha + 4, bytes.begin() + int64_t(pixel * 4));
  }));
  return write_picture({shown.width, shown.height, 2, 16, bytes}, to, progress);
}

Result<void> write_slices(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  std::error_code error;
  const fs::path& folder = to.file;
  if (fs::exists(fs::symlink_status(folder, error)))
    return fail(ErrorCode::conflict, "it is there already; take it away or name another folder");
  QRY_TRY_ASSIGN(const auto shown, shown_by(voxels, 4 + 8));
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
  // The materials of a layer of bricks, and then its eight pictures.
  const size_t pixels = size_t(shown.width) * shown.height;
  std::vector<uint8_t> materials(8 * pixels);
  const auto write_layers = [&](int32_t layer) -> Result<void> {
    std::ranges::fill(materials, uint8_t(0));
    Box3 there{brick_of(shown.box.min), brick_of(shown.box.max)};
    there.min.y = there.max.y = layer;
    QRY_TRY(voxels.visit(there, [&](const std::vector<BrickPut>& bricks) -> Result<void> {
      for (const BrickPut& put : bricks) {
        const BrickView brick = *put.value;
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
          const Int3 local = voxel_from_index(i);
          if (const uint8_t m = brick.get(i))
            materials[size_t(local.y) * pixels +
                      shown.pixel({put.brick.x * 8 + local.x, 0, put.brick.z * 8 + local.z})] = m;
        }
      }
      return {};
    }));
    for (int32_t y = std::max(layer * 8, shown.box.min.y); y <= std::min(layer * 8 + 7, shown.box.max.y); ++y) {
      auto rgba = empty_picture(shown);
      for (size_t i = 0; i < pixels; ++i)
        if (const uint8_t m = materials[size_t(y & 7) * pixels + i])
          put_colour(rgba, i, voxels.scene().palette.materials[m]);
      char name[16];
      const int32_t number = y - shown.box.min.y;
      std::snprintf(name, sizeof name, "%04d.png", number);
      QRY_TRY(write_picture({shown.width, shown.height, 4, 8, rgba}, {temporary / name, false, &together}, progress));
      pictures.push_back(folder / name);
      progress.say("write", double(number + 1) / double(shown.layers));
    }
    return {};
  };
  Result<void> written;
  for (int32_t layer = brick_of(shown.box.min).y; layer <= brick_of(shown.box.max).y && written; ++layer)
    written = write_layers(layer);
  if (!written) return give_up(written.error());
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
