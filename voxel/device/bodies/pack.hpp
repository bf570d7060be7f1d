// SPDX-License-Identifier: Apache-2.0
// pack.hpp - the steps that pack a world for reading, and unpack it. The form is the host's (voxel/bricks/pool.hpp), so
// shaders read either: masks stay where they are, and of materials only those of set voxels, four a word, one brick
// after the other in the order of places.
//
//   count_words    a thread a holder of a brick: how many words its materials take
//   survey_words   of each run of places the sum
//   scan_words     how many words are before each run; and in all. The host makes room for so many
//   place_words    of each place where its words start
//   pack_bricks    a block of threads packs some bricks in shared memory, and writes whole words
//   unpack_bricks  a thread eight voxels: back to Memory::materials
//
// What holds a brick is the grid or one record, and there are the full bricks, which every world has.
#pragma once

#include "voxel/device/bodies/growth.hpp"

namespace quarry::device {

constexpr uint32_t kPlaceRun = 256;  // places that a block of threads has
QRY_HD inline uint64_t runs_of_places(const Memory& m) {
  return (uint64_t(m.packing.places) + kPlaceRun - 1) / kPlaceRun;
}

struct BeginWords {
  QRY_HD static void run(const Memory& m, const EditCall&) { m.control->packed_words = 0; }
};

// Full bricks first, then the holders of others. `kSums`: nothing is written but the sum.
template <bool kSums>
struct CountWords {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return kFullBricks + holders(m); }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint32_t index = item < kFullBricks ? uint32_t(item) : held_by(m, item - kFullBricks);
    if (index == kNone) return;
    const uint32_t words = (voxels_of(m, index) + 3) / 4;
    if constexpr (kSums) add(m.control->packed_words, uint64_t(words));
    else m.packing.words[index] = words;
  }
};

struct SurveyWords {
  static constexpr uint32_t kThreads = kPlaceRun, kResident = 8;
  struct Shared {
    uint32_t sum;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return runs_of_places(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane == 0) s.sum = 0;
    });
    block.each([&](uint32_t lane) {
      const uint64_t place = item * kPlaceRun + lane;
      add_together(s.sum, place < m.packing.places ? m.packing.words[place] : 0);
    });
    block.each([&](uint32_t lane) {
      if (lane == 0) m.packing.before[item] = s.sum;
    });
  }
};

// One block of threads: there are few runs.
struct ScanWords {
  static constexpr uint32_t kThreads = 1024, kResident = 1;
  struct Shared {
    uint64_t sums[2][kThreads];
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall&) { return 1; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t, Shared& s, Block& block) {
    const Packing& p = m.packing;
    const auto runs = uint32_t(runs_of_places(m)), share = (runs + kThreads - 1) / kThreads;
    const auto end_of = [=](uint32_t lane) { return (lane + 1) * share < runs ? (lane + 1) * share : runs; };
    block.each([&](uint32_t lane) {
      uint64_t sum = lane ? 0 : p.places;  // the starts come first
      for (uint32_t i = lane * share; i < end_of(lane); ++i) sum += p.before[i];
      s.sums[0][lane] = sum;
    });
    const uint32_t row = sum_up(s.sums, block);
    block.each([&](uint32_t lane) {
      uint64_t sum = lane ? s.sums[row][lane - 1] : p.places;
      for (uint32_t i = lane * share; i < end_of(lane); ++i) {
        const uint64_t words = p.before[i];
        p.before[i] = sum;
        sum += words;
      }
      if (lane == kThreads - 1) m.control->packed_words = s.sums[row][lane];
    });
  }
};

struct PlaceWords {
  static constexpr uint32_t kThreads = kPlaceRun, kResident = 8;
  struct Shared {
    uint32_t sums[2][kThreads];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return runs_of_places(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const Packing& p = m.packing;
    const auto words_of = [&](uint32_t lane) {
      const uint64_t place = item * kPlaceRun + lane;
      return place < p.places ? p.words[place] : 0u;
    };
    block.each([&](uint32_t lane) { s.sums[0][lane] = words_of(lane); });
    const uint32_t row = sum_up(s.sums, block);
    block.each([&](uint32_t lane) {
      const uint32_t words = words_of(lane);
      if (words) m.packed[item * kPlaceRun + lane] = uint32_t(p.before[item]) + s.sums[row][lane] - words;
    });
  }
};

struct PackBricks {
  static constexpr uint32_t kThreads = 256, kResident = 8, kBricks = 16;
  struct Shared {
    uint32_t words[kBricks], starts[kBricks];
    uint32_t packed[kBricks][kVoxelsPerBrick / 4];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return (uint64_t(m.packing.places) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const uint64_t first = item * kBricks;
    block.each([&](uint32_t lane) {
      if (lane < kBricks) {
        const bool there = first + lane < m.packing.places;
        s.words[lane] = there ? m.packing.words[first + lane] : 0;
        s.starts[lane] = there ? m.packed[first + lane] : 0;
      }
      // What is behind a brick's last material, in its last word, is 0.
      for (uint32_t i = lane; i < kBricks * (kVoxelsPerBrick / 4); i += kThreads) s.packed[i >> 7][i & 127u] = 0;
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < kBricks * 64; i += kThreads) {
        const uint32_t brick = i >> 6, at = i & 63u;
        if (s.words[brick] == 0) continue;
        const uint64_t* const mask = m.masks + (first + brick) * 8;
        const uint64_t eight = m.materials[(first + brick) * 64 + at];
        auto* to = reinterpret_cast<uint8_t*>(s.packed[brick]) + set_before(mask, at);
        for (uint32_t set = eight_of_mask(mask, at); set; set &= set - 1)
          *to++ = uint8_t(eight >> (8 * lowest_bit(set)));
      }
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < kBricks * (kVoxelsPerBrick / 4); i += kThreads) {
        const uint32_t brick = i >> 7, word = i & 127u;
        if (word < s.words[brick]) m.packed[size_t(s.starts[brick]) + word] = s.packed[brick][word];
      }
    });
  }
};

struct UnpackBricks {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.packing.places) * 64; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const auto place = uint32_t(item >> 6), at = uint32_t(item & 63u);
    if (m.packed[place]) m.materials[item] = eight_materials(m, place, at);
  }
};

}  // namespace quarry::device
