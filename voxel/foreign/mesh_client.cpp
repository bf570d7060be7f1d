// SPDX-License-Identifier: Apache-2.0
// mesh_client.cpp - the client of quarry-mesh-reader.
#include "voxel/foreign/mesh_client.hpp"

#include "voxel/foreign/pipe/mesh_stream.hpp"
#include "voxel/foreign/process.hpp"

namespace quarry {
namespace {
namespace fs = std::filesystem;

constexpr ReaderProgram kReader{"quarry-mesh-reader", "QUARRY_MESH_READER", "the mesh reader",
                                "reads meshes",       "the mesh library",   "mesh"};

}  // namespace

Result<Mesh> read_mesh(const fs::path& file, const io::ReadOptions& options) {
  const auto about = [&](const Error& error) { return fail(error.code, file.string() + ": " + error.message); };
  if (const auto readable = check_readable(file); !readable) return about(readable.error());
  if (options.up != "" && options.up != "y" && options.up != "z")
    return about({ErrorCode::invalid_argument, "the up axis must be y or z, not '" + options.up + "'."});

  // A mesh takes at least a quarter of its file's size in any format: in text, three numbers and a line end become 12
  // bytes, and three indices 16.
  constexpr uint64_t kLeastProgramBytes = uint64_t(16) << 20;
  std::error_code no_size;
  const uint64_t least = kLeastProgramBytes + fs::file_size(file, no_size) / 4;
  if (options.budget && options.budget->available_bytes() < least)
    return about(options.budget->too_little(least, "reading it, in a process of its own,"));

  auto answer = run_reader(
      kReader, {"--up", options.up.empty() ? "auto" : options.up, "--", fs::absolute(file).string()}, options);
  if (!answer) return about(answer.error());
  std::vector<std::string> warnings;
  auto mesh = parse_mesh_stream(std::move(answer->stream), &warnings, options.accessed_files);
  if (options.warnings)
    for (const std::string& warning : warnings) options.warnings->push_back(file.filename().string() + ": " + warning);
  if (!mesh && mesh.error().code == ErrorCode::out_of_memory && options.budget &&
      answer->memory_limit_bytes < options.memory_limit_bytes)
    return about(options.budget->used_up("reading it, in a process of its own for which " +
                                         memory_text(answer->memory_limit_bytes) + " are left,"));
  if (!mesh) return about(answer->end ? *answer->end : mesh.error());
  return mesh;
}

}  // namespace quarry
