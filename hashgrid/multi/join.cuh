// SPDX-License-Identifier: Apache-2.0
// join.cuh - joins page by page: both sides are divided by the same bits of their stored keys, so a left row's partners
// are in the page of its number. A block builds a small table of a page's right rows in shared memory, and the page's
// left rows look for their keys in it.
//
// It does so twice. First results are counted, so that each page's place in the output is known, and whether all fit,
// before one is written.
//
// Between two barriers a word of shared memory is only touched by atomics, or only by one thread, or only read.
//
// Literature: S. Manegold, P. Boncz, M. Kersten, "Optimizing Main-Memory Join on Modern Hardware", 2002.
#pragma once

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/multi/build.cuh"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kJoinMostRows = kJoinThreads * kJoinHeld;  // right rows of a page
constexpr uint32_t kJoinMostLeft = 1u << 16;                  // left rows of a page, which one block goes through
constexpr uint32_t kJoinSlots = kJoinMostRows * 2;
constexpr uint32_t kJoinAhead = 4;  // left rows that a thread has on their way
static_assert(kJoinMostRows < 1u << 16);

// Rows are {stored key, number of the row}.
struct JoinSides {
  const uint2* left;
  const uint32_t* left_begins;
  const uint2* right;
  const uint32_t* right_begins;
  bool outer;  // a left row without a partner is a result
};

// The slot of a key, or a free one.
__device__ inline uint32_t find_slot(const uint32_t* table, uint32_t bits, uint32_t stored) {
  uint32_t slot = table_home(stored, bits);
  while (table[slot] != stored && table[slot] != kQryReservedKey) slot = (slot + 1) & ((1u << bits) - 1);
  return slot;
}

template <bool kWrites>
struct JoinPage {
  alignas(16) uint32_t keys[kJoinSlots];
  alignas(16) uint32_t runs[kJoinSlots];  // rows so far; then, to be written: begin of the run << 16, and its length
  uint32_t rows[kWrites ? kJoinMostRows : 1];
  uint32_t taken;    // of `rows`
  uint32_t results;  // so far
};

// !kWrites: numbers[p] becomes the number of page p's results; `unfit` is raised if a page has too many rows or
// results for this road. kWrites: numbers[p] is where they go.
template <bool kWrites>
__global__ void __launch_bounds__(kJoinThreads, kWrites ? kJoinWriteBlocks : kJoinCountBlocks)
    join_pages(JoinSides sides, uint64_t* numbers, uint64_t* unfit, uint32_t* left_out, uint32_t* right_out) {
  __shared__ JoinPage<kWrites> page;
  const uint32_t thread = threadIdx.x, lane = thread % 32, number = blockIdx.x;
  const uint32_t right_begin = sides.right_begins[number], right = sides.right_begins[number + 1] - right_begin;
  const uint32_t left_begin = sides.left_begins[number], left = sides.left_begins[number + 1] - left_begin;
  if (right > kJoinMostRows || left > kJoinMostLeft) {
    if (thread == 0) {
      *unfit = 1;
      numbers[number] = 0;
    }
    return;
  }
  const uint32_t bits = table_bits(right);
  clear_table(page.keys, bits, kQryReservedKey);
  clear_table(page.runs, bits, 0);
  if (thread == 0) page.taken = page.results = 0;
  uint2 row[kJoinHeld];
#pragma unroll
  for (uint32_t j = 0; j < kJoinHeld; ++j) {
    const uint32_t i = j * kJoinThreads + thread;
    if (i < right) row[j] = __ldcs(sides.right + right_begin + i);
  }
  __syncthreads();
  uint32_t place[kJoinHeld];  // slot, and rank in its run
#pragma unroll
  for (uint32_t j = 0; j < kJoinHeld; ++j) {
    if (j * kJoinThreads + thread >= right) continue;
    bool is_first;
    const uint32_t slot = claim_slot(page.keys, bits, row[j].x, &is_first);
    place[j] = slot << 16 | atomicAdd(&page.runs[slot], 1u);
  }
  __syncthreads();

  if constexpr (!kWrites) {
    uint32_t sum = 0;
    for (uint32_t first = 0; first < left; first += kJoinAhead * kJoinThreads) {
      uint32_t stored[kJoinAhead];
#pragma unroll
      for (uint32_t j = 0; j < kJoinAhead; ++j) {
        const uint32_t i = first + j * kJoinThreads + thread;
        if (i < left) stored[j] = sides.left[left_begin + i].x;
      }
#pragma unroll
      for (uint32_t j = 0; j < kJoinAhead; ++j) {
        if (first + j * kJoinThreads + thread >= left) continue;
        const uint32_t partners = page.runs[find_slot(page.keys, bits, stored[j])];
        sum += partners == 0 && sides.outer ? 1 : partners;
      }
    }
    static_assert(uint64_t{kJoinMostLeft} * kJoinMostRows < uint64_t{1} << 32);
    for (uint32_t step = 16; step != 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
    if (lane == 0) atomicAdd(&page.results, sum);
    __syncthreads();
    if (thread == 0) numbers[number] = page.results;
  } else {
    // The thread whose row came first takes room for the run.
    uint32_t wanted = 0;
#pragma unroll
    for (uint32_t j = 0; j < kJoinHeld; ++j)
      if (j * kJoinThreads + thread < right && (place[j] & 0xFFFFu) == 0) wanted += page.runs[place[j] >> 16];
    uint32_t begin = list_places(&page.taken, wanted);
#pragma unroll
    for (uint32_t j = 0; j < kJoinHeld; ++j) {
      if (j * kJoinThreads + thread >= right || (place[j] & 0xFFFFu) != 0) continue;
      uint32_t& run = page.runs[place[j] >> 16];
      const uint32_t length = run;
      run = begin << 16 | length;
      begin += length;
    }
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < kJoinHeld; ++j)
      if (j * kJoinThreads + thread < right)
        page.rows[(page.runs[place[j] >> 16] >> 16) + (place[j] & 0xFFFFu)] = row[j].y;
    __syncthreads();

    const uint64_t to = numbers[number];
    const uint32_t rounds = (left + kJoinThreads - 1) / kJoinThreads;  // of whole warps
    for (uint32_t round = 0; round < rounds; round += kJoinAhead) {
      uint2 mine[kJoinAhead];
#pragma unroll
      for (uint32_t j = 0; j < kJoinAhead; ++j) {
        const uint32_t i = (round + j) * kJoinThreads + thread;
        mine[j] = make_uint2(kQryReservedKey, 0);
        if (i < left) mine[j] = __ldcs(sides.left + left_begin + i);
      }
#pragma unroll
      for (uint32_t j = 0; j < kJoinAhead; ++j) {
        if (round + j >= rounds) break;
        const bool there = (round + j) * kJoinThreads + thread < left;
        const uint32_t run = there ? page.runs[find_slot(page.keys, bits, mine[j].x)] : 0;
        const uint32_t partners = run & 0xFFFFu, results = there && sides.outer ? max(partners, 1u) : partners;
        if (__all_sync(0xFFFFFFFFu, results <= 1)) {
          const uint32_t with = __ballot_sync(0xFFFFFFFFu, results != 0);
          if (with == 0) continue;
          uint32_t at = 0;
          if (lane == 0) at = atomicAdd(&page.results, uint32_t(__popc(with)));
          at = __shfl_sync(0xFFFFFFFFu, at, 0) + __popc(with & ((1u << lane) - 1));
          if (results == 0) continue;
          if (left_out != nullptr) __stcs(left_out + to + at, mine[j].y);
          if (right_out != nullptr)
            __stcs(right_out + to + at, partners != 0 ? page.rows[run >> 16] : kQryReservedValue);
          continue;
        }
        uint32_t behind = results;  // results up to this lane's last
#pragma unroll
        for (uint32_t step = 1; step < 32; step *= 2) {
          const uint32_t before = __shfl_up_sync(0xFFFFFFFFu, behind, step);
          if (lane >= step) behind += before;
        }
        const uint32_t all = __shfl_sync(0xFFFFFFFFu, behind, 31);
        uint32_t at = 0;
        if (lane == 0) at = atomicAdd(&page.results, all);
        const uint64_t first = to + __shfl_sync(0xFFFFFFFFu, at, 0);
        const auto put = [&](uint32_t result, uint32_t left_row, uint32_t of_run, uint32_t i) {
          if (left_out != nullptr) __stcs(left_out + first + result, left_row);
          if (right_out != nullptr)
            __stcs(right_out + first + result,
                   (of_run & 0xFFFFu) != 0 ? page.rows[(of_run >> 16) + i] : kQryReservedValue);
        };
        if (all >= 32 * kJoinManyEach) {  // one left row after the other
          for (uint32_t owners = __ballot_sync(0xFFFFFFFFu, results != 0); owners != 0; owners &= owners - 1) {
            const int owner = __ffs(int(owners)) - 1;
            const uint32_t left_row = __shfl_sync(0xFFFFFFFFu, mine[j].y, owner);
            const uint32_t of_run = __shfl_sync(0xFFFFFFFFu, run, owner);
            const uint32_t many = __shfl_sync(0xFFFFFFFFu, results, owner);
            const uint32_t start = __shfl_sync(0xFFFFFFFFu, behind, owner) - many;
            for (uint32_t i = lane; i < many; i += 32) put(start + i, left_row, of_run, i);
          }
          continue;
        }
        for (uint32_t base = 0; base < all; base += 32) {
          const uint32_t result = min(base + lane, all - 1);
          uint32_t owner = 0;  // lanes that end before it
#pragma unroll
          for (uint32_t step = 16; step != 0; step /= 2)
            if (__shfl_sync(0xFFFFFFFFu, behind, int(owner + step - 1)) <= result) owner += step;
          const uint32_t left_row = __shfl_sync(0xFFFFFFFFu, mine[j].y, int(owner));
          const uint32_t of_run = __shfl_sync(0xFFFFFFFFu, run, int(owner));
          const uint32_t start = __shfl_sync(0xFFFFFFFFu, behind - results, int(owner));
          if (base + lane < all) put(result, left_row, of_run, result - start);
        }
      }
    }
  }
}

}  // namespace quarry::hashgrid::kernels
