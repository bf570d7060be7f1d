// SPDX-License-Identifier: Apache-2.0
// operations.hpp - the bulk operations on tables of the pairs layout by host threads.
#pragma once

#include <memory>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

std::unique_ptr<BulkOperations<GridView>> make_host_pairs(uint32_t threads);

}  // namespace quarry::hashgrid
