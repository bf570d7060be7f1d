// SPDX-License-Identifier: Apache-2.0
// inflate.hpp - inflates gzip and zlib streams into memory, within a limit and a budget.
#pragma once

#include <cstdint>
#include <span>

#include "base/byte_buffer.hpp"
#include "base/memory_budget.hpp"
#include "base/result.hpp"

namespace quarry::io {

// Inflates a whole gzip or zlib stream. Other bytes are returned unchanged. Errors: malformed_input with the byte;
// unsupported if the output exceeds `limit` bytes; out_of_memory if it exceeds `memory` (may be null).
Result<ByteBuffer> inflated(std::span<const uint8_t> bytes, uint64_t limit, const MemoryBudget* memory = nullptr);

}  // namespace quarry::io
