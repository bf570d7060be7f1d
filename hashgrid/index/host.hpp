// SPDX-License-Identifier: Apache-2.0
// host.hpp - the bulk operations on ordered indexes by host threads.
#pragma once

#include <memory>

#include "hashgrid/index/operations.hpp"

namespace quarry::hashgrid {

std::unique_ptr<IndexOperations<uint32_t>> make_host_index32(uint32_t threads);
std::unique_ptr<IndexOperations<uint64_t>> make_host_index64(uint32_t threads);

}  // namespace quarry::hashgrid
