// SPDX-License-Identifier: Apache-2.0
// program.hpp - what the programs that wrap a foreign library have in common: limits on themselves, and the stream on
// standard output (foreign/process.hpp is the other side).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/section_stream.hpp"

namespace quarry {

struct ReaderLimits {
  uint64_t memory_bytes = 0, cpu_seconds = 0;  // 0: none
  bool writes_file = false;
  // Of the program and its libraries: pages that are not there yet when it begins, and come when their code is used.
  uint64_t code_bytes = uint64_t(6) << 20;
};
// Before a file is opened: dies with its parent, leaves no core, writes no file unless it is to, and ends by a signal
// past a limit.
void limit_self(const ReaderLimits& limits);
bool parse_number(const char* text, uint64_t& value);

// Takes standard output for the stream: what a library prints from now on goes to standard error. Null if that fails,
// or it is a terminal (said on standard error).
ByteSink take_standard_output(const char* program);

}  // namespace quarry
