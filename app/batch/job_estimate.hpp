// SPDX-License-Identifier: Apache-2.0
// job_estimate.hpp - what a conversion will need before it is begun, from the sizes of its files and what was measured
// of each format. Estimates only: they say what goes first and what may run side by side; the batch's watch keeps the
// limit (batch/tasks.hpp).
#pragma once

#include "app/batch/conversion.hpp"
#include "app/batch/tasks.hpp"

namespace quarry::app {

// `memory_limit`: one that needs more is begun region by region, if it can be.
BatchItem estimate(const ConversionJob& job, const ConversionOptions& options, uint64_t memory_limit);

}  // namespace quarry::app
