// SPDX-License-Identifier: Apache-2.0
// host.hpp - the bulk operations on multi grids, and joins, by host threads.
#pragma once

#include <memory>

#include "hashgrid/multi/operations.hpp"

namespace quarry::hashgrid {

std::unique_ptr<MultiOperations> make_host_multi(uint32_t threads);

}  // namespace quarry::hashgrid
