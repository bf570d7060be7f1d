// SPDX-License-Identifier: Apache-2.0
// process.hpp - runs a program of Quarry's that wraps a foreign library (Assimp, OpenVDB), with a deadline and limits,
// and turns whatever becomes of it into its stream or one sentence. The limits on memory and processor time the program
// sets itself before it opens the file (pipe/program.hpp); the wall clock is kept here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_buffer.hpp"
#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"

namespace quarry {

struct ReaderProgram {
  // "quarry-mesh-reader": beside this executable or library, in ../libexec/quarry of it, or where it was installed.
  const char* name;
  const char* variable;  // environment: its path, which wins
  const char* role;      // "the mesh reader"
  const char* task;      // "reads meshes"
  const char* library;   // "the mesh library"
  const char* subject;   // "mesh"
  // What it holds of its own, code and libraries, before it reads much: less room is refused.
  uint64_t own_bytes = uint64_t(16) << 20;
};

struct ReaderAnswer {
  ByteBuffer stream;
  std::optional<Error> end;  // what to say if the stream turns out not to be whole
  // That the program was given: ReadOptions::memory_limit_bytes, or the budget's room if that was less.
  uint64_t memory_limit_bytes = 0;
};

// Bytes for the program's standard input, piece by piece; an empty piece ends them. Each piece stays valid until the
// next call.
using ByteSource = std::function<std::span<const uint8_t>()>;

// Runs `program` with --memory and --cpu-seconds after `options`, then `arguments`. Blocks; any number of threads may
// call at once; heeds options.progress.cancel. Under options.budget the program may take what room there is, and the
// stream what the program leaves of it: while the stream comes, both are looked at together. Errors: not_found (no such
// program), malformed_input (the library crashed), out_of_memory (no room for the program, a stream longer than the
// memory limit or than there is room for), io (time limit, pipes, killed from outside), cancelled.
Result<ReaderAnswer> run_reader(const ReaderProgram& program, const std::vector<std::string>& arguments,
                                const io::ReadOptions& options, const ByteSource& input = {});

// That `file` is there, a regular file, readable and not empty. The message lacks the file's name.
Result<void> check_readable(const std::filesystem::path& file);

}  // namespace quarry
