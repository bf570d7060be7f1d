// mesh.cpp - the client of quarry-mesh-reader.
#include "voxel/mesh.hpp"

#include "voxel/mesh_stream.hpp"
#include "voxel/reader_process.hpp"

namespace quarry {
namespace {
namespace fs = std::filesystem;

constexpr ReaderProgram kReader{"quarry-mesh-reader", "QUARRY_MESH_READER", "the mesh reader", "reads meshes", "the mesh library", "mesh"};

}  // namespace

Result<Mesh> read_mesh(const fs::path& file, const io::ReadOptions& options) {
  const auto about = [&](const Error& error) { return fail(error.code, file.string() + ": " + error.message); };
  if (const auto readable = check_readable(file); !readable) return about(readable.error());
  if (options.up != "" && options.up != "y" && options.up != "z")
    return about({ErrorCode::invalid_argument, "the up axis must be y or z, not '" + options.up + "'."});

  auto answer = run_reader(kReader, {"--up", options.up.empty() ? "auto" : options.up, "--", fs::absolute(file).string()}, options);
  if (!answer) return about(answer.error());
  std::vector<std::string> warnings;
  auto mesh = parse_mesh_stream(answer->stream, &warnings, options.asked_for);
  if (options.warnings)
    for (const std::string& warning : warnings) options.warnings->push_back(file.filename().string() + ": " + warning);
  if (!mesh) return about(answer->end ? *answer->end : mesh.error());
  return mesh;
}

}  // namespace quarry
