#include "hashgrid/arguments.hpp"
#include "hashgrid/compact_bulk.cuh"
#include "hashgrid/page_lists.cuh"
#include "hashgrid/sector_loads.cuh"

namespace quarry::hashgrid {
namespace {

using Atomic64 = unsigned long long;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kHeld = 4;
constexpr Atomic64 kEmptySectorTags = Atomic64{kCompactEmptyTags} << 32 | kCompactEmptyTags;
constexpr size_t kMostBatch = size_t{1} << 28;

__device__ inline uint4 empty_half(uint32_t i) {  // 16-byte halves of empty sectors
  return i % 2 == 0 ? make_uint4(kCompactEmptyTags, kCompactEmptyTags, kCompactNoValue, kCompactNoValue)
                    : make_uint4(kCompactNoValue, kCompactNoValue, kCompactNoValue, kCompactNoValue);
}

__global__ void __launch_bounds__(kThreads) clear_compact(uint4* words, size_t halves) {
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < halves; i += size_t{gridDim.x} * kThreads)
    words[i] = empty_half(uint32_t(i));
}

__global__ void __launch_bounds__(kThreads) clear_stash(GridView stash) {
  const size_t words = size_t{stash.page_count} * kQryPageWords;
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < words; i += size_t{gridDim.x} * kThreads)
    stash.words[i] = i % kQryPageWords < kQryStateSectors * kQrySlotsPerSector ? 0 : detail::kNeverUsed;
}

// One block a page, in shared memory. Tags are touched by compare-and-swap alone, each value by the one thread that claimed its tag.
__global__ void __launch_bounds__(kThreads) build_compact(CompactView view, PageLists pages) {
  extern __shared__ __align__(128) uint32_t page[];
  __shared__ uint32_t present;
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  uint4* const in_table = reinterpret_cast<uint4*>(view.words + size_t{blockIdx.x} * (kQryPageBytes / 4));
  uint4* const in_shared = reinterpret_cast<uint4*>(page);
  for (uint32_t i = threadIdx.x; i < kQryPageBytes / 16; i += kThreads) in_shared[i] = empty_half(i);
  if (threadIdx.x == 0) present = 0;
  __syncthreads();

  for (uint32_t base = 0; base < size; base += kHeld * kThreads) {
    uint2 held[kHeld];
#pragma unroll
    for (uint32_t j = 0; j < kHeld; ++j)
      if (base + j * kThreads + threadIdx.x < size) held[j] = __ldcs(list + base + j * kThreads + threadIdx.x);
#pragma unroll
    for (uint32_t j = 0; j < kHeld; ++j) {
      if (base + j * kThreads + threadIdx.x >= size) continue;
      const detail::CompactPlace place = detail::compact_place(held[j].x, view);
      bool done = false;
      for (uint32_t distance = 0; distance < view.reach && !done; ++distance) {
        const uint32_t sector = (place.home + distance) % kQrySectorsPerPage, tag = place.tag + distance * view.remainders;
        Atomic64* const word = reinterpret_cast<Atomic64*>(page + sector * 8);
        // The first try takes the sector for empty; where it is not, the answer says what it holds.
        Atomic64 tags = kEmptySectorTags;
        for (;;) {
          const uint32_t slot = detail::compact_slot(tags, kCompactNoTag);
          if (slot == kCompactSlots) {
            if ((tags & kCompactWentOn) == 0) atomicOr(word, Atomic64{kCompactWentOn});
            break;
          }
          const Atomic64 seen = atomicCAS(word, tags, Atomic64{detail::compact_claimed(tags, slot, tag)});
          if (seen == tags) {
            page[sector * 8 + 2 + slot] = held[j].y;
            done = true;
            break;
          }
          tags = seen;
          if (detail::compact_slot(tags, tag) != kCompactSlots) {
            atomicAdd(&present, 1u);
            done = true;
            break;
          }
        }
      }
      if (done) continue;
      const Outcome outcome = insert(view.stash, detail::stash_key(qry_unmix(held[j].x)), held[j].y);
      if (outcome == Outcome::present) atomicAdd(&present, 1u);
      if (outcome == Outcome::full) atomicAdd(&pages.totals->refused, Atomic64{1});
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && present != 0) atomicAdd(&pages.totals->present, Atomic64{present});
  for (uint32_t i = threadIdx.x; i < kQryPageBytes / 16; i += kThreads) __stcs(in_table + i, in_shared[i]);
}

// Two lanes to a sector, as in bulk_find.cuh; here the lanes exchange halves of sectors, because the even half has all the tags.
__global__ void __launch_bounds__(kThreads) find_compact(CompactView view, const uint32_t* keys, size_t count, uint32_t* values,
                                                         uint8_t* depths, Atomic64* hits, Atomic64* reserved) {
  const bool odd = threadIdx.x & 1;
  uint32_t hit_count = 0, reserved_count = 0;
  for (size_t base = size_t{blockIdx.x} * kThreads + threadIdx.x / 32 * 32; base < count; base += size_t{gridDim.x} * kThreads) {
    const size_t i = base + threadIdx.x % 32;
    const uint32_t key = i < count ? __ldcs(keys + i) : kQryReservedKey;
    const detail::CompactPlace place = detail::compact_place(qry_mix(key), view);
    bool looking = key != kQryReservedKey;
    uint32_t value = kQryReservedValue, sectors = 0;
    for (uint32_t distance = 0; distance < view.reach && __any_sync(0xFFFFFFFFu, looking); ++distance) {
      const uint32_t mine = looking ? detail::compact_sector(place.home, distance) : detail::kNoSlot;
      const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, mine, 1);
      const uint32_t of_even = odd ? other : mine, of_odd = odd ? mine : other;
      ulonglong2 a = make_ulonglong2(0, 0), b = a;
      if (of_even != detail::kNoSlot)
        a = kernels::load_two_words(reinterpret_cast<const uint64_t*>(view.words + size_t{of_even} * 8) + (odd ? 2 : 0));
      if (of_odd != detail::kNoSlot)
        b = kernels::load_two_words(reinterpret_cast<const uint64_t*>(view.words + size_t{of_odd} * 8) + (odd ? 2 : 0));
      const ulonglong2 give = odd ? a : b;
      const ulonglong2 got = make_ulonglong2(__shfl_xor_sync(0xFFFFFFFFu, give.x, 1), __shfl_xor_sync(0xFFFFFFFFu, give.y, 1));
      if (!looking) continue;
      const ulonglong2 low_half = odd ? got : a, high_half = odd ? b : got;
      const uint32_t tag = place.tag + distance * view.remainders;
      const uint32_t first = detail::compact_matches(detail::low(low_half.x), tag),
                     second = detail::compact_matches(detail::high(low_half.x), tag);
      ++sectors;
      if ((first | second) != 0) {
        if ((first & 0x200u) != 0)
          value = detail::low(low_half.y);
        else if ((first & 0x200u << 10) != 0)
          value = detail::high(low_half.y);
        else if ((first & 0x200u << 20) != 0)
          value = detail::low(high_half.x);
        else if ((second & 0x200u) != 0)
          value = detail::high(high_half.x);
        else if ((second & 0x200u << 10) != 0)
          value = detail::low(high_half.y);
        else
          value = detail::high(high_half.y);
        looking = false;
      } else if ((low_half.x & kCompactWentOn) == 0) {
        looking = false;
      }
    }
    if (i >= count) continue;
    if (looking) {  // every sector in reach is full
      const Found found = find(view.stash, detail::stash_key(key));
      value = found.value;
      sectors += found.sectors;
    }
    hit_count += value != kQryReservedValue;
    reserved_count += key == kQryReservedKey;
    __stcs(values + i, value);
    if (depths != nullptr) depths[i] = uint8_t(sectors);
  }
  hit_count = __reduce_add_sync(0xFFFFFFFFu, hit_count);
  reserved_count = __reduce_add_sync(0xFFFFFFFFu, reserved_count);
  if (threadIdx.x % 32 == 0 && hit_count != 0) atomicAdd(hits, Atomic64{hit_count});
  if (threadIdx.x % 32 == 0 && reserved_count != 0) atomicAdd(reserved, Atomic64{reserved_count});
}

// insert and erase, a thread a key. totals: one count for each Outcome.
template <bool kInsert>
__global__ void __launch_bounds__(kThreads)
    change_compact(CompactView view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes, Atomic64* totals) {
  __shared__ uint32_t counts[7];
  if (threadIdx.x < 7) counts[threadIdx.x] = 0;
  __syncthreads();
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += size_t{gridDim.x} * kThreads) {
    Outcome outcome;
    if constexpr (kInsert)
      outcome = insert(view, keys[i], values[i]);
    else
      outcome = erase(view, keys[i]);
    if (outcomes != nullptr) outcomes[i] = outcome;
    atomicAdd(&counts[uint32_t(outcome)], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 7 && counts[threadIdx.x] != 0) atomicAdd(totals + threadIdx.x, Atomic64{counts[threadIdx.x]});
}

Result<void> check(const CompactView& view) {
  if (view.words == nullptr || view.page_count + view.stash.page_count < kCompactLeastPages || view.reach == 0)
    return fail(ErrorCode::invalid_argument, "compact hash grid: " + std::to_string(view.page_count + view.stash.page_count) +
                                                 " pages, but the layout needs " + std::to_string(kCompactLeastPages) +
                                                 "; use the pairs layout");
  return detail::check_view(view.stash);
}

uint32_t blocks_for(size_t count) { return uint32_t(std::min<size_t>((count + kThreads - 1) / kThreads, 132 * 64)); }

// Runs launch(totals) with a cleared count for each Outcome, waits and reads them.
template <class Launch>
Result<BulkReport> counted(cudaStream_t stream, const char* doing, const Launch& launch) {
  const PoolMemory totals(stream, 7 * sizeof(Atomic64));
  cudaError_t error = totals.error();
  Atomic64 got[7] = {};
  if (error == cudaSuccess) error = cudaMemsetAsync(totals.as<void>(), 0, sizeof(got), stream);
  if (error == cudaSuccess) {
    launch(totals.as<Atomic64>());
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpyAsync(got, totals.as<void>(), sizeof(got), cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (auto ok = cuda_result(error, doing); !ok) return tl::unexpected(ok.error());
  const auto of = [&](Outcome outcome) { return uint64_t{got[size_t(outcome)]}; };
  return BulkReport{of(Outcome::inserted), of(Outcome::present), of(Outcome::assigned), of(Outcome::erased),
                    of(Outcome::absent),   of(Outcome::full),    of(Outcome::reserved)};
}

}  // namespace

Result<void> compact_clear(cudaStream_t stream, const CompactView& view) {
  if (auto ok = check(view); !ok) return ok;
  clear_compact<<<132 * 16, kThreads, 0, stream>>>(reinterpret_cast<uint4*>(view.words), size_t{view.page_count} * (kQryPageBytes / 16));
  clear_stash<<<132 * 4, kThreads, 0, stream>>>(view.stash);
  if (auto ok = cuda_result(cudaGetLastError(), "clear a compact table"); !ok) return ok;
  return cuda_result(cudaStreamSynchronize(stream), "clear a compact table");
}

Result<BulkReport> compact_build(cudaStream_t stream, const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count) {
  if (auto ok = check(view); !ok) return tl::unexpected(ok.error());
  if (count == 0) return BulkReport{};
  if (count > kMostBatch || keys == nullptr || values == nullptr)
    return fail(ErrorCode::invalid_argument,
                "compact hash grid: a build takes 1 to 2^28 keys and their values, not " + std::to_string(count));
  const auto got = with_page_lists(stream, view.page_count, kernels::SplitForm::mixed, keys, values, uint32_t(count), [&](const PageLists& pages) {
    build_compact<<<view.page_count, kThreads, kQryPageBytes, stream>>>(view, pages);
    return cudaGetLastError();
  });
  if (!got) return tl::unexpected(got.error());
  BulkReport report;
  if (got->overflowed != 0) {
    report.full = count;
    return report;
  }
  report.reserved = got->reserved;
  report.present = got->present;
  report.full = got->refused;
  report.inserted = count - report.reserved - report.present - report.full;
  return report;
}

Result<BulkReport> compact_insert(cudaStream_t stream, const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                  Outcome* outcomes) {
  if (auto ok = check(view); !ok) return tl::unexpected(ok.error());
  if (count == 0) return BulkReport{};
  return counted(stream, "insert into a compact table", [&](Atomic64* totals) {
    change_compact<true><<<blocks_for(count), kThreads, 0, stream>>>(view, keys, values, count, outcomes, totals);
  });
}

Result<BulkReport> compact_erase(cudaStream_t stream, const CompactView& view, const uint32_t* keys, size_t count, Outcome* outcomes) {
  if (auto ok = check(view); !ok) return tl::unexpected(ok.error());
  if (count == 0) return BulkReport{};
  return counted(stream, "erase from a compact table", [&](Atomic64* totals) {
    change_compact<false><<<blocks_for(count), kThreads, 0, stream>>>(view, keys, nullptr, count, outcomes, totals);
  });
}

Result<BulkReport> compact_find(cudaStream_t stream, const CompactView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                                uint8_t* depths_out) {
  if (auto ok = check(view); !ok) return tl::unexpected(ok.error());
  if (count == 0) return BulkReport{};
  auto report = counted(stream, "find in a compact table", [&](Atomic64* totals) {
    find_compact<<<blocks_for(count), kThreads, 0, stream>>>(view, keys, count, values_out, depths_out, totals + size_t(Outcome::present),
                                                             totals + size_t(Outcome::reserved));
  });
  if (report) report->absent = count - report->present - report->reserved;
  return report;
}

}  // namespace quarry::hashgrid
