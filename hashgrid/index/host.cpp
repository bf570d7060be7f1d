// SPDX-License-Identifier: Apache-2.0
// host.cpp - the passes by host threads.
#include "hashgrid/index/host.hpp"

#include "hashgrid/index/host_threads.hpp"
#include "hashgrid/index/passes.hpp"

namespace quarry::hashgrid {

std::unique_ptr<IndexOperations<uint32_t>> make_host_index32(uint32_t threads) {
  return std::make_unique<IndexPasses<HostThreads, uint32_t>>(HostThreads(threads));
}
std::unique_ptr<IndexOperations<uint64_t>> make_host_index64(uint32_t threads) {
  return std::make_unique<IndexPasses<HostThreads, uint64_t>>(HostThreads(threads));
}

}  // namespace quarry::hashgrid
