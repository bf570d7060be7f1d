// SPDX-License-Identifier: Apache-2.0
// ply.cpp - binary PLY with a colour at each vertex. A vertex where colours meet is written once for each of them.
#include <array>
#include <cstring>

#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/meshes/surface_source.hpp"
#include "voxel/io/meshes/write.hpp"

namespace quarry::io {
namespace {

Result<void> write_ply_surface(const Scene& scene, const SurfaceSource& surface, const Destination& to,
                               const Progress& progress) {
  const auto parts = surface.parts();
  const auto stopped = [] { return fail(ErrorCode::cancelled, "stopped; nothing was written"); };
  VertexNumbers numbers(surface.vertices());
  std::vector<uint64_t> first(parts.size() + 1);  // vertex of each part
  uint64_t triangles = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (progress.cancelled()) return stopped();
    QRY_TRY(numbers.use(surface, p));
    first[p + 1] = first[p] + numbers.count();
    triangles += parts[p].indices / 3;
  }
  if (first.back() > UINT32_MAX)
    return fail(ErrorCode::unsupported, "it would have " + std::to_string(first.back()) +
                                            " vertices; PLY counts to 2^32. Make it coarser or cut it into pieces");
  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  const std::string units = units_comment(scene);
  out.put("ply\nformat binary_little_endian 1.0\ncomment Quarry, one unit is one voxel, y up\n" +
          (units.empty() ? units : "comment " + units + "\n") + "element vertex " + std::to_string(first.back()) +
          "\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\n"
          "property uchar blue\nproperty uchar alpha\nelement face " +
          std::to_string(triangles) + "\nproperty list uchar uint vertex_indices\nend_header\n");
  for (size_t p = 0; p < parts.size(); ++p) {
    if (progress.cancelled()) return stopped();
    if (parts.size() > 1) QRY_TRY(numbers.use(surface, p));
    const Material& m = scene.palette.materials[parts[p].material];
    QRY_TRY(numbers.positions(surface, [&](Int3 at) {
      const float xyz[3] = {float(at.x), float(at.y), float(at.z)};
      std::array<uint8_t, 16> record;
      std::memcpy(record.data(), xyz, 12);
      record[12] = m.r, record[13] = m.g, record[14] = m.b, record[15] = m.a;
      out.put(record);
    }));
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    if (progress.cancelled()) return stopped();
    if (parts.size() > 1) QRY_TRY(numbers.use(surface, p));
    QRY_TRY(surface.indices(p, [&](std::span<const uint32_t> indices) {
      for (size_t t = 0; t < indices.size(); t += 3) {
        uint32_t corners[3];
        for (size_t c = 0; c < 3; ++c) corners[c] = uint32_t(first[p]) + numbers.of(indices[t + c]);
        std::array<uint8_t, 13> record;
        record[0] = 3;
        std::memcpy(record.data() + 1, corners, 12);
        out.put(record);
      }
    }));
    progress.say("write", double(p + 1) / double(parts.size()));
  }
  return out.commit();
}

}  // namespace

Result<void> write_ply(const Scene& scene, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(scene, progress);
  return surface ? write_ply_surface(scene, **surface, to, progress) : tl::unexpected(surface.error());
}

Result<void> write_ply_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(voxels, to.file, progress);
  return surface ? write_ply_surface(voxels.scene(), **surface, to, progress) : tl::unexpected(surface.error());
}

}  // namespace quarry::io
