// SPDX-License-Identifier: Apache-2.0
// result.hpp - how every call that can fail answers: a value, or an Error that says what, where and what to do. No
// exception crosses an interface.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace quarry {

enum class ErrorCode : uint8_t {
  invalid_argument,    // the caller's fault: reserved key, null pointer, wrong size
  bad_usage,           // a program was started with wrong arguments
  not_found,           // file, device or name that is not there
  malformed_input,     // a file or message that breaks its format
  out_of_bounds,       // a coordinate outside the range there is
  full,                // a table or pool that may not grow any more
  out_of_memory,       // host or device memory
  unsupported,         // a device or build that lacks something, or a feature of a format not read
  io,                  // the operating system said no
  device,              // a call of a GPU's driver or runtime failed
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

// Passing an error on. Both work in every function and lambda that returns a Result; a lambda without a return type of
// its own then returns a tl::unexpected, so give it one. The expression is evaluated once; put no lambda with a QRY_TRY
// inside into it, but name it before.

// QRY_TRY(expression); returns the expression's error, if there is one, and drops its value. A named Result stays as it
// is: its error is copied, and its value is there for the lines below.
#define QRY_TRY(...) QRY_TRY_AS(QRY_TRY_NAME(qry_tried_, __LINE__), __VA_ARGS__)

// QRY_TRY_ASSIGN(const auto file, open(path)); returns the expression's error, if there is one; else it declares
// `file`, into which the value is moved. It is two statements and a declaration: a line of its own in a block, never
// the only thing that an `if` without braces does.
#define QRY_TRY_ASSIGN(declaration, ...) QRY_TRY_ASSIGN_AS(QRY_TRY_NAME(qry_tried_, __LINE__), declaration, __VA_ARGS__)

#define QRY_TRY_NAME(prefix, line) QRY_TRY_NAME_OF(prefix, line)
#define QRY_TRY_NAME_OF(prefix, line) prefix##line

#define QRY_TRY_AS(tried, ...)                                                                \
  do {                                                                                        \
    auto&& tried = (__VA_ARGS__);                                                             \
    if (!tried) return tl::unexpected(std::forward<decltype(tried)>(tried).error());          \
  } while (false)

#define QRY_TRY_ASSIGN_AS(tried, declaration, ...)                  \
  auto tried = (__VA_ARGS__);                                       \
  if (!tried) return tl::unexpected(std::move(tried).error());      \
  declaration = *std::move(tried)
