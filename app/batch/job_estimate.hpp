// SPDX-License-Identifier: Apache-2.0
// job_estimate.hpp - estimates what a conversion needs before it begins, from the sizes of its files and measured costs
// of each format. These are only estimates. They decide what goes first and what may run at the same time; the batch's
// watch keeps the limit (batch/tasks.hpp).
#pragma once

#include "app/batch/conversion.hpp"
#include "app/batch/tasks.hpp"

namespace quarry::app {

// A job that needs more than `memory_limit` is begun region by region, if possible.
BatchItem estimate(const ConversionJob& job, const ConversionOptions& options, uint64_t memory_limit);

}  // namespace quarry::app
