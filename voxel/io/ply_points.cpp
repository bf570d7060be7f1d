// ply_points.cpp - PLY files without faces: vertices with positions and maybe colours. Those with faces are meshes and go to the mesh reader.
#include <algorithm>

#include "voxel/io/byte_reader.hpp"
#include "voxel/io/ply_body.hpp"
#include "voxel/io/points.hpp"
#include "voxel/io/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxPlyBytes = uint64_t(1) << 37;

Result<Scene> read_points(FilePieces& bytes, const ReadOptions& options) {
  const auto header = read_ply_header(bytes.peek(kPlyHeaderBytes).first(size_t(std::min<uint64_t>(bytes.size(), kPlyHeaderBytes))));
  if (bytes.error()) return tl::unexpected(*bytes.error());
  if (!header) return tl::unexpected(header.error());
  const PlyHeader& h = *header;
  const auto bad = [](size_t at, const std::string& what) { return fail(ErrorCode::malformed_input, at_byte(at) + what); };
  const PlyElement* vertices = h.find("vertex");
  if (!vertices || vertices->count == 0) return bad(h.body_at, "expected at least one vertex, found none");
  const int position[3] = {vertices->find({"x"}), vertices->find({"y"}), vertices->find({"z"})};
  const int color[3] = {vertices->find({"red", "diffuse_red"}), vertices->find({"green", "diffuse_green"}), vertices->find({"blue", "diffuse_blue"})};
  if (std::any_of(position, position + 3, [](int p) { return p < 0; })) return bad(vertices->at, "expected the properties x, y and z of the vertices");
  const bool coloured = std::all_of(color, color + 3, [](int c) { return c >= 0; });
  if (const auto fits = check_ply_counts(h, bytes.size()); !fits) return tl::unexpected(fits.error());

  PlyBody body(h, bytes);
  bytes.seek(h.body_at);
  for (const PlyElement* e = h.elements.data(); e != vertices; ++e)
    if (!body.skip(*e)) return tl::unexpected(body.error());
  const uint64_t begin = bytes.at();
  // Seen to be whole before anything is made of it.
  if (!body.skip(*vertices)) return tl::unexpected(body.error());
  std::vector<double> row(vertices->properties.size());
  bool whole = true;
  auto scene = voxelize_points(
      [&](const PointVisitor& visit) {
        bytes.seek(begin);
        for (uint64_t i = 0; i < vertices->count; ++i) {
          if (!body.read(*vertices, i, row.data())) whole = false;  // it was changed meanwhile: the same points again, then the error below
          const double at[3] = {row[size_t(position[0])], row[size_t(position[1])], row[size_t(position[2])]};
          uint32_t c[3] = {200, 200, 200};
          for (size_t a = 0; a < 3 && coloured; ++a) c[a] = ply_channel(row[size_t(color[a])], vertices->properties[size_t(color[a])].type);
          visit(at, rgba_of(c[0], c[1], c[2]));
        }
      },
      vertices->count, false, bytes.size(), options);
  if (!whole) return tl::unexpected(body.error());
  if (scene) scene->metadata["points.color"] = coloured ? "rgb" : "none";
  return scene;
}

}  // namespace

bool ply_is_points(std::span<const uint8_t> head) {
  const auto header = read_ply_header(head);
  if (!header || header->faces() > 0) return false;
  const PlyElement* vertices = header->find("vertex");
  return vertices && vertices->count > 0;
}

Result<Scene> parse_ply_points(std::span<const uint8_t> bytes, const ReadOptions& options) {
  FilePieces pieces(bytes);
  return read_points(pieces, options);
}

Result<Scene> read_ply_points(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read", -1);
  auto bytes = FilePieces::open(file, kMaxPlyBytes);
  if (!bytes) return tl::unexpected(bytes.error());
  return named_after(file, read_points(*bytes, options));
}

}  // namespace quarry::io
