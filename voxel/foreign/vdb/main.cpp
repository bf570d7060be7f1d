// SPDX-License-Identifier: Apache-2.0
// main.cpp - quarry-vdb: reads .vdb and .nvdb files and writes them as voxel streams to standard output, or the
// reverse.
//
//   quarry-vdb [--memory BYTES] [--cpu-seconds N] [--] read|read-regions FILE     (read-regions: for a reader who need
//   not hold it, so that the memory does not limit how many bricks there may be)
//   quarry-vdb [--memory BYTES] [--cpu-seconds N] [--] write|write-nano|write-nano-whole FILE    (a stream on standard
//   input; the answer has no grids, but the file's length. -whole: by the library's own writer, for comparison)
// Exit code 0: done; 1: an error was written; 2: wrong usage, or nothing reads the output.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <new>

#include "voxel/foreign/pipe/program.hpp"
#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/foreign/vdb/nano_file.hpp"

namespace {
using namespace quarry;

// What reads the stream holds a brick, and so much of it while it is made.
constexpr uint64_t kBytesPerBrick = 1200;

// For a small file that describes something huge: 10 GB where they wait on disk, and more for a larger file.
constexpr uint64_t kBricksInRegions = uint64_t(1) << 24, kFileBytesPerBrick = 16;

vdb::BrickLimit brick_limit(const std::string& file, bool regions, const ReaderLimits& limits) {
  if (!regions)
    return {(limits.memory_bytes ? limits.memory_bytes : uint64_t(1) << 40) / kBytesPerBrick,
            "all that the memory limit allows; raise the limit or resample it coarser"};
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(file, error);
  return {kBricksInRegions + (error ? 0 : bytes / kFileBytesPerBrick),
          "the most that a file of its length may; resample it coarser"};
}

int usage() {
  std::cerr << "usage: quarry-vdb [--memory BYTES] [--cpu-seconds N] [--] read|read-regions|write|write-nano|"
               "write-nano-whole FILE\n"
               "Reads and writes OpenVDB and NanoVDB files for other programs of Quarry.\n";
  return 2;
}

size_t standard_input(std::span<uint8_t> out) {
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, out.data(), out.size());
    if (got >= 0 || errno != EINTR) return size_t(got > 0 ? got : 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ReaderLimits limits;
  std::vector<std::string> rest;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--memory" && has_value && parse_number(argv[i + 1], limits.memory_bytes)) ++i;
    else if (argument == "--cpu-seconds" && has_value && parse_number(argv[i + 1], limits.cpu_seconds)) ++i;
    else if (argument == "--" && rest.empty()) rest.assign(argv + i + 1, argv + argc), i = argc;
    else return usage();
  }
  if (rest.size() != 2) return usage();
  const std::string& verb = rest[0];
  const bool reads = verb == "read" || verb == "read-regions";
  const auto kind = verb == "write-nano"         ? vdb::VolumeKind::nano
                    : verb == "write-nano-whole" ? vdb::VolumeKind::nano_whole
                                                 : vdb::VolumeKind::vdb;
  if (!reads && kind == vdb::VolumeKind::vdb && verb != "write") return usage();
  limits.writes_file = !reads;
  limits.code_bytes = uint64_t(16) << 20;  // templates for all kinds of grids
  limit_self(limits);
  const ByteSink sink = take_standard_output("quarry-vdb");
  if (!sink) return 2;

  io::VoxelStreamWriter out(sink);
  std::vector<std::string> warnings;
  Result<void> done;
  try {
    openvdb::initialize();
    if (reads) done = vdb::read_file(rest[1], brick_limit(rest[1], verb == "read-regions", limits), out, warnings);
    else if (const auto bytes = vdb::write_file(standard_input, rest[1], kind))
      out.metadata(io::kWrittenBytes, std::to_string(*bytes));
    else done = tl::unexpected(bytes.error());
  } catch (const std::bad_alloc&) {
    done = fail(ErrorCode::out_of_memory, "it needs more memory than the limit of " +
                                              std::to_string(limits.memory_bytes >> 20) +
                                              " MiB; raise the memory limit or resample it coarser");
  } catch (const openvdb::IoError& e) {
    done = fail(limits.writes_file ? ErrorCode::io : ErrorCode::malformed_input, e.what());
  } catch (const std::ios_base::failure&) {
    done = fail(limits.writes_file ? ErrorCode::io : ErrorCode::malformed_input,
                "it ends within a grid, or is damaged, or cannot be read");
  } catch (const vdb::NanoDamage& e) {
    done = fail(ErrorCode::malformed_input, e.what());
  } catch (const std::exception& e) {
    done = fail(limits.writes_file ? ErrorCode::io : ErrorCode::malformed_input,
                std::string("the volume library gave up: ") + e.what());
  }
  out.warnings(warnings);
  if (!done) out.failure(done.error());
  const bool sent = out.finish();
  // No destructors run: nothing is left to save, and a damaged heap must not spoil a stream that is already written.
  _exit(!sent ? 2 : done ? 0 : 1);
}
