// SPDX-License-Identifier: Apache-2.0
// bulk.hpp - the neighbours of many bricks at once, by an executor's threads or in its stream. For one brick see
// one_brick.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "hashgrid/executor.hpp"
#include "hashgrid/grid.hpp"
#include "voxel/neighbours/one_brick.hpp"

namespace quarry {

// values_out[direction * count + i]: the grid's value for the neighbour of bricks[i] in that direction, in the order of
// one_brick.hpp; kQryReservedValue if it is absent. `bricks` are brick keys, present or not. May run beside any
// operation; as linearizable as that many finds. Memory traffic a brick: 4 bytes read, 24 or 104 written, and in scan
// order in a grid of rows 0.7 sectors. Pointers: what the executor dereferences. Returns when the work is done.
Result<void> find_neighbours(hashgrid::Executor& executor, const hashgrid::GridView& view, const uint32_t* bricks,
                             size_t count, Neighbourhood which, uint32_t* values_out);

// The same in a grid of the pairs layout, created with this executor. values_out: 6 or 26 times as many as bricks,
// direction by direction.
Result<void> find_neighbours(hashgrid::Executor& executor, const hashgrid::Grid& grid, std::span<const uint32_t> bricks,
                             Neighbourhood which, std::span<uint32_t> values_out);

}  // namespace quarry
