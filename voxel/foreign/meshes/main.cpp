// SPDX-License-Identifier: Apache-2.0
// main.cpp - quarry-mesh-reader: reads one mesh file, through Assimp or as glTF, and writes it to standard output as a
// mesh stream (mesh_stream.hpp). It is a separate process because Assimp 5.2 dies by a signal on some files. It sets
// its limits before it opens a file.
//
//   quarry-mesh-reader [--memory BYTES] [--cpu-seconds N] [--up y|z|auto] [--] FILE
// Exit code 0: a mesh was written; 1: an error was written; 2: wrong usage, or nothing reads the output.
#include <unistd.h>

#include <iostream>
#include <new>

#include "voxel/foreign/meshes/readers.hpp"
#include "voxel/foreign/pipe/mesh_stream.hpp"
#include "voxel/foreign/pipe/program.hpp"

namespace {
using namespace quarry;

int usage() {
  std::cerr << "usage: quarry-mesh-reader [--memory BYTES] [--cpu-seconds N] [--up y|z|auto] [--] FILE\n"
               "Reads a mesh file and writes it as a binary stream to standard output, for other programs of "
               "Quarry.\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t memory_bytes = 0, cpu_seconds = 0;
  std::string up = "auto", file;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--memory" && has_value && parse_number(argv[i + 1], memory_bytes)) ++i;
    else if (argument == "--cpu-seconds" && has_value && parse_number(argv[i + 1], cpu_seconds)) ++i;
    else if (argument == "--up" && has_value) up = argv[++i];
    else if (argument == "--" && i + 2 == argc) file = argv[++i];
    else if (!argument.empty() && argument[0] != '-' && file.empty()) file = argument;
    else return usage();
  }
  if (file.empty() || (up != "auto" && up != "y" && up != "z")) return usage();
  limit_self({memory_bytes, cpu_seconds});
  const ByteSink sink = take_standard_output("quarry-mesh-reader");
  if (!sink) return 2;

  std::vector<std::string> warnings;
  mesh_reader::ReferencedFiles files(file);
  Result<Mesh> mesh = fail(ErrorCode::malformed_input, "nothing was read");
  try {
    mesh = mesh_reader::read_file(file, up, warnings, files);
  } catch (const std::bad_alloc&) {
    mesh = fail(ErrorCode::out_of_memory, "");
  } catch (const std::exception& e) {
    mesh = fail(ErrorCode::malformed_input, std::string("the mesh library gave up: ") + e.what());
  }
  if (!mesh && mesh.error().code == ErrorCode::out_of_memory)
    mesh = fail(ErrorCode::out_of_memory, "reading it needs more memory than the limit of " +
                                              std::to_string(memory_bytes >> 20) +
                                              " MiB; raise the memory limit or use a smaller mesh.");
  const bool sent = mesh ? write_mesh_stream(std::move(*mesh), warnings, files.accessed_files(), sink)
                         : write_error_stream(mesh.error(), warnings, files.accessed_files(), sink);
  // No destructors run: nothing is left to save, and a damaged heap must not spoil a mesh that is already written.
  _exit(!sent ? 2 : mesh ? 0 : 1);
}
