// SPDX-License-Identifier: Apache-2.0
// program.hpp - the common parts of the programs that wrap a foreign library: limits on themselves, and the stream on
// standard output. foreign/process.hpp is the other side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/section_stream.hpp"

namespace quarry {

struct ReaderLimits {
  uint64_t memory_bytes = 0, cpu_seconds = 0;  // 0: none
  bool writes_file = false;
  // Code of the program and its libraries that is not loaded at the start. Its pages are loaded when it first runs.
  uint64_t code_bytes = uint64_t(6) << 20;
};
// Sets this process's limits; call it before a file is opened. The process dies with its parent, leaves no core, writes
// no file unless `writes_file`, and a signal ends it past a limit.
void limit_self(const ReaderLimits& limits);
bool parse_number(const char* text, uint64_t& value);

// Takes standard output for the stream. From then on, anything a library prints goes to standard error. Returns null if
// that fails or if standard output is a terminal, and says so on standard error.
ByteSink take_standard_output(const char* program);

}  // namespace quarry
