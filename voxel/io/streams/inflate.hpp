// SPDX-License-Identifier: Apache-2.0
// inflate.hpp - gzip and zlib streams into memory, within a limit and a budget.
#pragma once

#include <cstdint>
#include <span>

#include "base/byte_buffer.hpp"
#include "base/memory_budget.hpp"
#include "base/result.hpp"

namespace quarry::io {

// The whole of a gzip or zlib stream; other bytes come back as they are. Errors: malformed_input with the byte,
// unsupported if more than `limit` bytes come out; out_of_memory if what comes out passes `memory` (may be null).
Result<ByteBuffer> inflated(std::span<const uint8_t> bytes, uint64_t limit, const MemoryBudget* memory = nullptr);

}  // namespace quarry::io
