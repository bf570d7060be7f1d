// ply_write.cpp - binary PLY with a colour at each vertex. A vertex where colours meet is there once for each of them.
#include <array>
#include <cstring>

#include "voxel/io/mesh_write.hpp"
#include "voxel/io/whole_file.hpp"

namespace quarry::io {

Result<void> write_ply(const Scene& scene, const std::filesystem::path& file, const Progress& progress) {
  const auto mesh = visible_surface(scene, progress);
  if (!mesh) return tl::unexpected(mesh.error());
  auto out = WholeFile::create(file);
  if (!out) return tl::unexpected(out.error());

  // Vertices in the order in which the parts first use them.
  std::vector<uint32_t> seen_in(mesh->positions.size(), 0);  // the last part that has it, from 1
  uint64_t vertices = 0;
  for (size_t p = 0; p < mesh->parts.size(); ++p)
    for (const uint32_t i : mesh->parts[p].indices)
      if (seen_in[i] != p + 1) seen_in[i] = uint32_t(p + 1), ++vertices;
  if (vertices > UINT32_MAX) return fail(ErrorCode::unsupported, "it would have " + std::to_string(vertices) + " vertices; PLY counts to 2^32. Make it coarser or cut it into pieces");
  const std::string units = units_comment(scene);
  out->put("ply\nformat binary_little_endian 1.0\ncomment Quarry, one unit is one voxel, y up\n" + (units.empty() ? units : "comment " + units + "\n") + "element vertex " + std::to_string(vertices) +
           "\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar alpha\nelement face " +
           std::to_string(mesh->triangle_count()) + "\nproperty list uchar uint vertex_indices\nend_header\n");
  std::vector<uint32_t> number(mesh->positions.size());  // of each position in the part at hand
  seen_in.assign(seen_in.size(), 0);
  for (size_t p = 0; p < mesh->parts.size(); ++p) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    const Material& m = scene.palette.materials[mesh->parts[p].material];
    for (const uint32_t i : mesh->parts[p].indices) {
      if (seen_in[i] == p + 1) continue;
      seen_in[i] = uint32_t(p + 1);
      const Int3 at = mesh->positions[i];
      const float xyz[3] = {float(at.x), float(at.y), float(at.z)};
      std::array<uint8_t, 16> record;
      std::memcpy(record.data(), xyz, 12);
      record[12] = m.r, record[13] = m.g, record[14] = m.b, record[15] = m.a;
      out->put(record);
    }
  }
  seen_in.assign(seen_in.size(), 0);
  uint32_t next = 0;
  for (size_t p = 0; p < mesh->parts.size(); ++p) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    const auto& indices = mesh->parts[p].indices;
    for (const uint32_t i : indices)
      if (seen_in[i] != p + 1) seen_in[i] = uint32_t(p + 1), number[i] = next++;
    for (size_t t = 0; t < indices.size(); t += 3) {
      const uint32_t corners[3] = {number[indices[t]], number[indices[t + 1]], number[indices[t + 2]]};
      std::array<uint8_t, 13> record;
      record[0] = 3;
      std::memcpy(record.data() + 1, corners, 12);
      out->put(record);
    }
    progress.say("write", double(p + 1) / double(mesh->parts.size()));
  }
  return out->commit();
}

}  // namespace quarry::io
