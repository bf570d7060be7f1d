// SPDX-License-Identifier: Apache-2.0
// sanitized.hpp - whether a sanitizer is active. Then memory use and times of a process mean little.
#pragma once

namespace quarry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace quarry::test
