// SPDX-License-Identifier: Apache-2.0
// host.hpp - the bulk operations on tables of the compact layout by host threads.
#pragma once

#include <memory>

#include "hashgrid/compact/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

std::unique_ptr<BulkOperations<CompactView>> make_host_compact(uint32_t threads);

}  // namespace quarry::hashgrid
