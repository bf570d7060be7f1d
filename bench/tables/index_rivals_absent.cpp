// SPDX-License-Identifier: Apache-2.0
// index_rivals_absent.cpp - in a build without CUDA.
#include "bench/tables/index_rivals.hpp"

namespace quarry::bench {

IndexRivals cuda_index_rivals() { return {}; }

}  // namespace quarry::bench
