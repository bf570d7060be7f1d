// SPDX-License-Identifier: Apache-2.0
// process.hpp - runs one of Quarry's programs that wrap a foreign library (Assimp, OpenVDB), with a deadline and
// limits. The result is its stream or one sentence. The program itself sets the limits on memory and processor time
// before it opens the file (pipe/program.hpp). The limit on wall-clock time is enforced here.
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
  // "quarry-mesh-reader". It is looked for next to this executable or library, in ../libexec/quarry relative to it, and
  // where it was installed.
  const char* name;
  const char* variable;  // the environment variable with its path, which takes precedence
  const char* role;      // "the mesh reader"
  const char* task;      // "reads meshes"
  const char* library;   // "the mesh library"
  const char* subject;   // "mesh"
  // The memory of the program itself, code and libraries, before it reads much. It is not run with less room.
  uint64_t own_bytes = uint64_t(16) << 20;
};

struct ReaderAnswer {
  ByteBuffer stream;
  std::optional<Error> end;  // the error to report if the stream is not whole
  // The limit that the program was given: ReadOptions::memory_limit_bytes, or the budget's room if that was less.
  uint64_t memory_limit_bytes = 0;
};

// Returns the bytes for the program's standard input, piece by piece. An empty piece ends them. Each piece stays valid
// until the next call.
using ByteSource = std::function<std::span<const uint8_t>()>;

// Runs `program` with --memory and --cpu-seconds from `options`, then `arguments`. It blocks. Any number of threads may
// call it at once. options.progress.cancel cancels it. With options.budget, the program may use all the budget's room,
// and the stream may use the rest. While the stream arrives, both are checked together. Errors: not_found (no such
// program), malformed_input (the library crashed), out_of_memory (no room for the program, or a stream longer than the
// memory limit or the room), io (time limit, pipes, killed from outside), cancelled.
Result<ReaderAnswer> run_reader(const ReaderProgram& program, const std::vector<std::string>& arguments,
                                const io::ReadOptions& options, const ByteSource& input = {});

// Receives a piece of the program's stream, and the memory limit that the program was given. An error stops the program
// and is the result.
using ByteTaker = std::function<Result<void>(std::span<const uint8_t> piece, uint64_t memory_limit_bytes)>;

// Does the same, but gives the stream to `take` piece by piece, at most 64 KiB at a time, as it comes. The answer's
// `stream` is empty then, and its length is not limited. The time that `take` needs does not count against the time
// limit. What was taken counts only if the result has no error and no `end`.
Result<ReaderAnswer> run_reader_in_pieces(const ReaderProgram& program, const std::vector<std::string>& arguments,
                                          const io::ReadOptions& options, const ByteTaker& take);

// Checks that `file` exists, is a regular file, is readable and is not empty. The message lacks the file's name.
Result<void> check_readable(const std::filesystem::path& file);

}  // namespace quarry
