// SPDX-License-Identifier: Apache-2.0
// sanitized.hpp - whether a sanitizer looks on: then what a process holds in memory, and for how long, says little.
#pragma once

namespace quarry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace quarry::test
