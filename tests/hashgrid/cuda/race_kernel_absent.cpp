// SPDX-License-Identifier: Apache-2.0
// race_kernel_absent.cpp - replaces race_kernel.cu in builds without CUDA, where no CUDA executor exists to call it.
#include "tests/hashgrid/cuda/race_kernel.hpp"

namespace quarry::hashgrid::test {

std::vector<RaceEvent> race_on_cuda(const GridView&, const RacePlan&, uint32_t) { return {}; }
std::vector<RaceEvent> race_on_cuda(const CompactView&, const RacePlan&, uint32_t) { return {}; }

}  // namespace quarry::hashgrid::test
