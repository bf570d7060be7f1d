// SPDX-License-Identifier: Apache-2.0
// race_kernel.hpp - the races of race_test.cpp in one CUDA launch. Never called without CUDA.
#pragma once

#include <vector>

#include "tests/hashgrid/race_script.hpp"

namespace quarry::hashgrid::test {

// Runs `threads` CUDA threads at once; view and plan.keys are device memory. Events as in race_on_host.
std::vector<RaceEvent> race_on_cuda(const GridView& view, const RacePlan& plan, uint32_t threads);
std::vector<RaceEvent> race_on_cuda(const CompactView& view, const RacePlan& plan, uint32_t threads);

}  // namespace quarry::hashgrid::test
