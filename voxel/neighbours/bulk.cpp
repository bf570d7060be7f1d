// SPDX-License-Identifier: Apache-2.0
// bulk.cpp - the neighbours of many bricks on host threads, and the choice between host and CUDA.
#include "voxel/neighbours/bulk.hpp"

#include <string>

#include "base/parallel.hpp"
#include "hashgrid/pairs/arguments.hpp"
#include "voxel/neighbours/bulk_stage.hpp"

namespace quarry {
namespace {

constexpr size_t kBricksPerTask = 4096;  // that a thread takes at a time

template <Neighbourhood kWhich>
void find_on_host(const hashgrid::Executor& executor, const hashgrid::GridView& view, const uint32_t* bricks,
                  size_t count, uint32_t* values_out) {
  parallel_for(
      count, kBricksPerTask,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          uint32_t values[uint32_t(kWhich)];
          neighbour_detail::find_neighbours_of<hashgrid::detail::SharedWords, kWhich>(view, bricks[i], values);
          for (uint32_t direction = 0; direction < uint32_t(kWhich); ++direction)
            values_out[direction * count + i] = values[direction];
        }
      },
      executor.parallelism());
}

}  // namespace

Result<void> find_neighbours(hashgrid::Executor& executor, const hashgrid::GridView& view, const uint32_t* bricks,
                             size_t count, Neighbourhood which, uint32_t* values_out) {
  QRY_TRY(hashgrid::detail::check_batch(view, bricks, values_out, count));
  if (executor.kind() == hashgrid::ExecutorKind::cuda)
    return neighbour_detail::find_on_cuda(executor, view, bricks, count, which, values_out);
  if (which == Neighbourhood::faces) find_on_host<Neighbourhood::faces>(executor, view, bricks, count, values_out);
  else find_on_host<Neighbourhood::all>(executor, view, bricks, count, values_out);
  return {};
}

Result<void> find_neighbours(hashgrid::Executor& executor, const hashgrid::Grid& grid, std::span<const uint32_t> bricks,
                             Neighbourhood which, std::span<uint32_t> values_out) {
  if (values_out.size() != bricks.size() * uint32_t(which))
    return fail(ErrorCode::invalid_argument, "hash grid find_neighbours: " + std::to_string(bricks.size()) +
                                                 " bricks want " + std::to_string(bricks.size() * uint32_t(which)) +
                                                 " values, not " + std::to_string(values_out.size()));
  if (grid.layout() == hashgrid::Layout::compact)
    return fail(ErrorCode::unsupported,
                "hash grid find_neighbours: the compact layout has no neighbour look-up; "
                "take the pairs layout, or find()");
  return find_neighbours(executor, grid.view(), bricks.data(), bricks.size(), which, values_out.data());
}

}  // namespace quarry
