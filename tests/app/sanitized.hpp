// SPDX-License-Identifier: Apache-2.0
// sanitized.hpp - whether a sanitizer is active. Then memory use and times of a process mean little, and tests are
// shorter.
#pragma once

namespace quarry::test {

// Under ThreadSanitizer a reference's loops cost a hundredfold; what races shows in a few rounds.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitized = true;
#else
constexpr bool kThreadSanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace quarry::test
