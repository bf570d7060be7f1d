// SPDX-License-Identifier: Apache-2.0
// host_search.hpp - several keys are looked for at once by one host thread: while a node of one comes from memory,
// those of the others are compared.
#pragma once

#include "hashgrid/index/view.hpp"

namespace quarry::hashgrid {

// Keys of a group: as many requests for memory as a core has under way, and some more.
constexpr uint32_t kIndexGroup = 32;

// place_of() of up to kIndexGroup keys.
void places_of(const IndexView<uint32_t>& view, const uint32_t* keys, uint32_t count, IndexPlace* places);
void places_of(const IndexView<uint64_t>& view, const uint64_t* keys, uint32_t count, IndexPlace* places);

}  // namespace quarry::hashgrid
