// SPDX-License-Identifier: Apache-2.0
// one_brick.hpp - the neighbours of a brick in a grid whose keys are brick keys (voxel/bricks/key.h), for one brick and
// any thread. find_neighbours() of bulk.hpp does it for many. It suits grids of rows, where a brick's neighbours along
// x are mostly in its own 128-byte line. A plain grid gives the same results, at the cost of a sector for each
// neighbour.
//
// Order. 6: -x, +x, -y, +y, -z, +z. 26: z slowest, x fastest, each from -1 to +1, without the brick itself: direction d
// < 13 is step d of the 27, direction d >= 13 is step d + 1. So 12 is -x and 13 is +x. Beyond the edges of the world
// all bricks are absent.
#pragma once

#include "hashgrid/pairs/home.hpp"
#include "hashgrid/pairs/view.hpp"
#include "voxel/bricks/key.h"

// Unrolls loops whose arrays must be registers on a GPU.
#if defined(__CUDA_ARCH__)
#define QRY_UNROLL _Pragma("unroll")
#else
#define QRY_UNROLL
#endif

namespace quarry {

enum class Neighbourhood : uint32_t { faces = 6, all = 26 };

// The key of the brick at an offset of dx, dy, dz, each -1, 0 or 1; the reserved key beyond the edges of the world.
QRY_HD inline uint32_t neighbour_key(uint32_t brick, int dx, int dy, int dz) {
  const uint32_t x = (brick & 2047u) + uint32_t(dx), y = (brick >> 11 & 1023u) + uint32_t(dy),
                 z = (brick >> 21) + uint32_t(dz);
  return x > 2047u || y > 1023u || z > 2047u ? kQryReservedKey : x | y << 11 | z << 21;
}

struct NeighbourStep {
  int x, y, z;
};
// The step of a direction, in the order above.
template <Neighbourhood kWhich>
QRY_HD constexpr NeighbourStep step_of(uint32_t direction) {
  if (kWhich == Neighbourhood::faces) {
    const int way = direction % 2 == 0 ? -1 : 1;
    return {direction / 2 == 0 ? way : 0, direction / 2 == 1 ? way : 0, direction / 2 == 2 ? way : 0};
  }
  const uint32_t step = direction < 13 ? direction : direction + 1;
  return {int(step % 3) - 1, int(step / 3 % 3) - 1, int(step / 9) - 1};
}

// values[d]: the grid's value for the brick in direction d, kQryReservedValue if it is absent. The brick itself may be
// absent. Any thread, beside any other operation; each look-up is linearizable by itself. Reads 6 sectors for 6
// neighbours and, in a grid of rows, 18 for 26. For three bricks of four these are in 5 and 9 lines.
QRY_HD inline void find_neighbours6(const hashgrid::GridView& view, uint32_t brick, uint32_t (&values)[6]);
QRY_HD inline void find_neighbours26(const hashgrid::GridView& view, uint32_t brick, uint32_t (&values)[26]);

namespace neighbour_detail {

using hashgrid::GridView;
using hashgrid::detail::Home;
using hashgrid::detail::home_of;
using hashgrid::detail::InSector;
using hashgrid::detail::probe_bucket;
using hashgrid::detail::value_beyond;

// The common part of both functions and of the kernels. Calls found(direction, value) for what home sectors settle;
// returns a bit for each direction that needs value_beyond(). Nothing here branches, so that many loads are in flight
// at once.
template <class Words, Neighbourhood kWhich, class Found>
QRY_HD inline uint32_t look_around(const GridView& view, uint32_t locality, uint32_t brick, const Found& found) {
  uint32_t beyond = 0;
  const auto answer = [&](const InSector& got, uint32_t key, uint32_t direction) {
    const bool wait = key != kQryReservedKey && got.beyond;
    beyond |= uint32_t{wait} << direction;
    if (!wait) found(direction, key == kQryReservedKey ? kQryReservedValue : got.value);
  };
  if constexpr (kWhich == Neighbourhood::faces) {
    QRY_UNROLL
    for (uint32_t direction = 0; direction < 6; ++direction) {
      const NeighbourStep step = step_of<kWhich>(direction);
      const uint32_t key = neighbour_key(brick, step.x, step.y, step.z);
      const Home home = home_of(view, key, locality);
      answer(probe_bucket(Words::load_bucket(home.words), home.stored), key, direction);
    }
  } else {
    // Of the three bricks at x-1, x, x+1, two share a sector of a grid of rows: x and the other brick of its pair.
    const bool odd = (brick & 1u) != 0;
    QRY_UNROLL
    for (uint32_t line = 0; line < 9; ++line) {
      const int dy = int(line % 3) - 1, dz = int(line / 3) - 1;
      const uint32_t left = neighbour_key(brick, -1, dy, dz), middle = neighbour_key(brick, 0, dy, dz),
                     right = neighbour_key(brick, 1, dy, dz);
      const uint32_t direction = line * 3 - (line > 4 ? 1 : 0);  // of `left`
      const Home home_beside = home_of(view, odd ? left : right, locality),
                 home_apart = home_of(view, odd ? right : left, locality);
      const hashgrid::detail::Bucket bucket = Words::load_bucket(home_beside.words);
      const InSector beside = probe_bucket(bucket, home_beside.stored);
      if (line != 4) {
        if (locality == kQryPlain) {
          const Home home = home_of(view, middle, locality);
          answer(probe_bucket(Words::load_bucket(home.words), home.stored), middle, direction + 1);
        } else {
          // A pair of keys does not cross the world's edge.
          answer(probe_bucket(bucket, home_beside.stored ^ 1u), middle, direction + 1);
        }
      }
      const InSector apart = probe_bucket(Words::load_bucket(home_apart.words), home_apart.stored);
      answer(odd ? beside : apart, left, direction);
      answer(odd ? apart : beside, right, line == 4 ? 13 : direction + 2);
    }
  }
  return beyond;
}

template <class Words, Neighbourhood kWhich>
QRY_HD inline void find_neighbours_of(const GridView& view, uint32_t brick, uint32_t (&values)[uint32_t(kWhich)]) {
  const uint32_t beyond = look_around<Words, kWhich>(
      view, view.locality, brick, [&](uint32_t direction, uint32_t value) { values[direction] = value; });
  QRY_UNROLL
  for (uint32_t direction = 0; direction < uint32_t(kWhich); ++direction) {
    if ((beyond >> direction & 1u) == 0) continue;
    const NeighbourStep step = step_of<kWhich>(direction);
    values[direction] =
        value_beyond<Words>(view, qry_stored_key(neighbour_key(brick, step.x, step.y, step.z), view.locality));
  }
}

}  // namespace neighbour_detail

QRY_HD inline void find_neighbours6(const hashgrid::GridView& view, uint32_t brick, uint32_t (&values)[6]) {
  neighbour_detail::find_neighbours_of<hashgrid::detail::SharedWords, Neighbourhood::faces>(view, brick, values);
}
QRY_HD inline void find_neighbours26(const hashgrid::GridView& view, uint32_t brick, uint32_t (&values)[26]) {
  neighbour_detail::find_neighbours_of<hashgrid::detail::SharedWords, Neighbourhood::all>(view, brick, values);
}

}  // namespace quarry
