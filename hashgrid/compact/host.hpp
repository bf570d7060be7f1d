// SPDX-License-Identifier: Apache-2.0
// host.hpp - the bulk operations on tables of the compact layout by host threads; a part of the host executor.
#pragma once

#include <memory>

#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

std::unique_ptr<BulkOperations<CompactView>> make_host_compact(uint32_t threads);

}  // namespace quarry::hashgrid
