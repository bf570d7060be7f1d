// SPDX-License-Identifier: Apache-2.0
// join.cpp - argument checks of the joins. Their passes: multi/passes.hpp.
#include "hashgrid/join.hpp"

#include <algorithm>
#include <string>

namespace quarry::hashgrid {
namespace {

Result<uint64_t> join(Executor& executor, JoinKind kind, Span<const uint32_t> left, Span<const uint32_t> right,
                      Span<uint32_t> left_out, Span<uint32_t> right_out) {
  const size_t most = std::max(left.size(), right.size());
  if (most > kMultiMostPairs)
    return fail(ErrorCode::invalid_argument,
                "join: " + std::to_string(most) + " rows on one side, more than 32 bits can number");
  if (overlap(left, left_out) || overlap(left, right_out) || overlap(right, left_out) || overlap(right, right_out) ||
      overlap(left_out, right_out))
    return fail(ErrorCode::invalid_argument, "join: an output overlaps another array; give each its own memory");
  uint64_t room = UINT64_MAX;
  if (left_out.data() != nullptr) room = left_out.size();
  if (right_out.data() != nullptr) room = std::min<uint64_t>(room, right_out.size());
  return executor.multi().join(kind, left.data(), left.size(), right.data(), right.size(), left_out.data(),
                               right_out.data(), room);
}

}  // namespace

Result<uint64_t> inner_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                            Span<uint32_t> left_rows_out, Span<uint32_t> right_rows_out) {
  return join(executor, JoinKind::inner, left_keys, right_keys, left_rows_out, right_rows_out);
}
Result<uint64_t> left_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out, Span<uint32_t> right_rows_out) {
  return join(executor, JoinKind::left, left_keys, right_keys, left_rows_out, right_rows_out);
}
Result<uint64_t> semi_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out) {
  return join(executor, JoinKind::semi, left_keys, right_keys, left_rows_out, {});
}
Result<uint64_t> anti_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out) {
  return join(executor, JoinKind::anti, left_keys, right_keys, left_rows_out, {});
}

}  // namespace quarry::hashgrid
