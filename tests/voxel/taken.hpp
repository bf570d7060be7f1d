// SPDX-License-Identifier: Apache-2.0
// taken.hpp - what a call gives, where a test requires that it succeeds; else the test fails with its message.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace quarry::test {

template <class T>
T taken(Result<T>&& result) {
  INFO((result ? std::string() : result.error().message));
  REQUIRE(result);
  return std::move(*result);
}

}  // namespace quarry::test
