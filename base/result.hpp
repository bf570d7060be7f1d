// SPDX-License-Identifier: Apache-2.0
// result.hpp - what every call that can fail returns: a value, or an Error that says what, where and what to do. No
// exception crosses an interface.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace quarry {

enum class ErrorCode : uint8_t {
  invalid_argument,  // the caller's error: reserved key, null pointer, wrong size
  bad_usage,         // a program was started with wrong arguments
  not_found,         // no such file, device or name
  malformed_input,   // a file or message that breaks its format
  out_of_bounds,     // a coordinate outside the valid range
  full,              // a table or pool that may not grow further
  out_of_memory,     // host or device memory
  unsupported,       // a device or build that lacks something, or a feature of a format not read
  io,                // the operating system refused
  device,            // a call of a GPU driver or runtime failed
  device_lost,       // the same, and so will every later one: what was in the device's memory is gone
  cancelled,         // the user cancelled
  conflict,          // the file is in use, or was changed by someone else
};

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;  // one sentence for a person: what, where (file, offset, argument), what to do
};

// Whether a device failed, and not what was asked of it: it would fail at less, or in another way, too.
inline bool device_failed(const Error& error) {
  return error.code == ErrorCode::device || error.code == ErrorCode::device_lost;
}

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace quarry

// Error propagation. Both macros work in every function and lambda that returns a Result. A lambda without an explicit
// return type then returns a tl::unexpected, so declare one. The expression is evaluated once. It must not contain a
// lambda with a QRY_TRY inside: give that lambda a name first.

// QRY_TRY(expression); returns the expression's error, if there is one, and drops its value. A named Result stays
// unchanged: its error is copied, and its value is available to the lines below.
#define QRY_TRY(...) QRY_TRY_AS(QRY_TRY_NAME(qry_tried_, __LINE__), __VA_ARGS__)

// QRY_TRY_ASSIGN(const auto file, open(path)); returns the expression's error, if there is one; else it declares
// `file`, into which the value is moved. It expands to two statements and a declaration: a line of its own in a block,
// never the only statement of an `if` without braces.
#define QRY_TRY_ASSIGN(declaration, ...) QRY_TRY_ASSIGN_AS(QRY_TRY_NAME(qry_tried_, __LINE__), declaration, __VA_ARGS__)

#define QRY_TRY_NAME(prefix, line) QRY_TRY_NAME_OF(prefix, line)
#define QRY_TRY_NAME_OF(prefix, line) prefix##line

#define QRY_TRY_AS(tried, ...)                                                       \
  do {                                                                               \
    auto&& tried = (__VA_ARGS__);                                                    \
    if (!tried) return tl::unexpected(std::forward<decltype(tried)>(tried).error()); \
  } while (false)

#define QRY_TRY_ASSIGN_AS(tried, declaration, ...)             \
  auto tried = (__VA_ARGS__);                                  \
  if (!tried) return tl::unexpected(std::move(tried).error()); \
  declaration = *std::move(tried)
