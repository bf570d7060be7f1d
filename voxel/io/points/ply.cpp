// SPDX-License-Identifier: Apache-2.0
// ply.cpp - PLY files without faces: vertices with positions and perhaps colours. Files with faces are meshes, which
// the mesh reader reads.
#include <algorithm>
#include <memory>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/ply/body.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxPlyBytes = uint64_t(1) << 37;

Result<PointCloud> ply_cloud(BufferedReader& bytes, const ReadOptions& options) {
  const auto header =
      read_ply_header(bytes.peek(kPlyHeaderBytes).first(size_t(std::min<uint64_t>(bytes.size(), kPlyHeaderBytes))));
  QRY_TRY(bytes.good());
  QRY_TRY(header);
  // The header is kept with the walk, which begins at the vertices each time.
  const auto shared = std::make_shared<const PlyHeader>(*header);
  const PlyHeader& h = *shared;
  const auto bad = [](size_t at, const std::string& what) {
    return fail(ErrorCode::malformed_input, at_byte(at) + what);
  };
  const PlyElement* vertices = h.find("vertex");
  if (!vertices || vertices->count == 0) return bad(h.body_at, "expected at least one vertex, found none");
  const int position[3] = {vertices->find({"x"}), vertices->find({"y"}), vertices->find({"z"})};
  const int color[3] = {vertices->find({"red", "diffuse_red"}), vertices->find({"green", "diffuse_green"}),
                        vertices->find({"blue", "diffuse_blue"})};
  if (std::any_of(position, position + 3, [](int p) { return p < 0; }))
    return bad(vertices->at, "expected the properties x, y and z of the vertices");
  const bool coloured = std::all_of(color, color + 3, [](int c) { return c >= 0; });
  QRY_TRY(check_ply_counts(h, bytes.size()));

  PlyBody body(h, bytes);
  bytes.seek(h.body_at);
  for (const PlyElement* e = h.elements.data(); e != vertices; ++e)
    if (!body.skip(*e)) return tl::unexpected(body.error());
  const uint64_t begin = bytes.at();
  // The body is checked to be whole before it is used.
  if (!body.skip(*vertices)) return tl::unexpected(body.error());
  PointCloud cloud;
  cloud.walk = [=, &bytes, progress = &options.progress, x = position[0], y = position[1], z = position[2],
                r = color[0], g = color[1], b = color[2]](const PointVisitor& visit) -> Result<void> {
    const PlyElement& element = *shared->find("vertex");
    PlyBody again(*shared, bytes);
    std::vector<double> row(element.properties.size());
    bytes.seek(begin);
    for (uint64_t i = 0; i < element.count; ++i) {
      if (!again.read(element, i, row.data())) return tl::unexpected(again.error());  // the file was changed meanwhile
      const double at[3] = {row[size_t(x)], row[size_t(y)], row[size_t(z)]};
      const auto channel = [&](int c) -> uint32_t {
        return coloured ? ply_channel(row[size_t(c)], element.properties[size_t(c)].type) : 200;
      };
      if (!visit(at, rgba_of(channel(r), channel(g), channel(b)))) return {};
      if (i % 65536 == 0 && progress->cancelled()) return fail(ErrorCode::cancelled, "stopped");
    }
    return {};
  };
  cloud.points = vertices->count;
  cloud.file_bytes = bytes.size();
  cloud.color = coloured ? "rgb" : "none";
  return cloud;
}

}  // namespace

bool ply_is_points(std::span<const uint8_t> head) {
  const auto header = read_ply_header(head);
  if (!header || header->faces() > 0) return false;
  const PlyElement* vertices = header->find("vertex");
  return vertices && vertices->count > 0;
}

Result<Scene> parse_ply_points(std::span<const uint8_t> bytes, const ReadOptions& options) {
  BufferedReader pieces(bytes);
  QRY_TRY_ASSIGN(const auto cloud, ply_cloud(pieces, options));
  return voxelize_points(cloud, options);
}

Result<Scene> read_ply_points(const std::filesystem::path& file, const ReadOptions& options) {
  return read_cloud(file, kMaxPlyBytes, options, ply_cloud);
}
Result<RegionsDone> read_ply_points_regions(const std::filesystem::path& file, const ReadOptions& options,
                                            const RegionSink& sink) {
  return read_cloud_regions(file, kMaxPlyBytes, options, sink, ply_cloud);
}

}  // namespace quarry::io
