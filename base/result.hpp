// result.hpp - how every fallible call of the project answers: a value, or an Error that says what, where and what to do.
// No exception crosses a module. Lives here because hashgrid is the lowest floor and usable alone.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace quarry {

enum class ErrorCode : uint8_t {
  invalid_argument,    // the caller's fault: reserved key, null pointer, wrong size
  bad_usage,           // wrong command line (exit code 2)
  not_found,           // file, device or name that is not there
  malformed_input,     // a file or message that breaks its format
  out_of_bounds,       // outside the world's 16384 x 8192 x 16384 voxels
  full,                // a table or pool that may not grow any more
  out_of_memory,       // host or device memory
  unsupported,         // a device or build that lacks something, or a feature of a format not read
  io,                  // the operating system said no
  device,              // a CUDA or Vulkan call failed
  cancelled,           // the user asked to stop
  conflict,            // the file is in use, or has changed underneath
};

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;  // one sentence for a person: what, where (file, offset, argument), what to do
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace quarry
