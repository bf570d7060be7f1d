#include "hashgrid/compact/cuda.cuh"

#include <cub/device/device_scan.cuh>

#include "hashgrid/compact/arguments.hpp"
#include "hashgrid/compact/find.cuh"
#include "hashgrid/compact/kernels.cuh"
#include "hashgrid/cuda/device_scope.cuh"
#include "hashgrid/cuda/key_kernels.cuh"

namespace quarry::hashgrid {
namespace {

using kernels::Atomic64;
using kernels::kCompactThreads;

constexpr size_t kMostBatch = size_t{1} << 28;   // list positions are 32-bit
constexpr size_t kLeastBatch = size_t{1} << 18;  // below, five launches cost more than they save
// As for the pairs layout (pairs/cuda/merge.cu): a page through shared memory, or brought to the L2 cache, against keys one by one.
constexpr uint32_t kLeastKeysPerPage = 240, kLeastKeysPerFreshPage = 120, kLeastKeysPerWindow = 256;
constexpr uint32_t kWindowThreads = 512;

// values[i]: what the table holds, or the reserved value. Either output may be null.
template <class Format>
__global__ void __launch_bounds__(kCompactThreads) find_compact(CompactView view, const uint32_t* keys, size_t count, uint32_t* values,
                                                                uint8_t* depths, Atomic64* hits, Atomic64* reserved) {
  uint32_t hit_count = 0, reserved_count = 0;
  for (size_t base = size_t{blockIdx.x} * kCompactThreads + threadIdx.x / 32 * 32; base < count; base += size_t{gridDim.x} * kCompactThreads) {
    const size_t i = base + threadIdx.x % 32;
    const uint32_t key = i < count ? __ldcs(keys + i) : kQryReservedKey;
    const Found found = kernels::find_in_warp<Format>(view, key);
    if (i >= count) continue;
    hit_count += found.hit;
    reserved_count += key == kQryReservedKey;
    if (values != nullptr) __stcs(values + i, found.value);
    if (depths != nullptr) depths[i] = uint8_t(min(found.sectors, 255u));
  }
  hit_count = __reduce_add_sync(0xFFFFFFFFu, hit_count);
  reserved_count = __reduce_add_sync(0xFFFFFFFFu, reserved_count);
  if (threadIdx.x % 32 == 0 && hit_count != 0) atomicAdd(hits, Atomic64{hit_count});
  if (threadIdx.x % 32 == 0 && reserved_count != 0) atomicAdd(reserved, Atomic64{reserved_count});
}

// Erase in the order of pages, each brought to the L2 cache before its keys are looked for; beside anything that erase may run beside.
__global__ void __launch_bounds__(kWindowThreads) erase_in_compact_pages(CompactView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0 && size != 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(view.words + size_t{blockIdx.x} * kernels::kCompactPageWords)),
                 "r"(kQryPageBytes)
                 : "memory");
#endif
  uint32_t absent = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kWindowThreads) {
    const detail::CompactEntry entry = detail::entry_of(view, __ldcs(list + i).x);
    absent += entry.value == nullptr || detail::CompactWords::exchange(entry.value, kQryCompactNoValue) == kQryCompactNoValue;
  }
  absent = __reduce_add_sync(0xFFFFFFFFu, absent);
  if (threadIdx.x % 32 == 0 && absent != 0) atomicAdd(&pages.totals->refused, Atomic64{absent});
}

// insert, for keys that were refused before.
struct InsertRefused {
  CompactView view;
  const uint32_t* keys;
  const uint32_t* values;
  const Outcome* outcomes;
  __device__ Outcome operator()(size_t i) const { return outcomes[i] == Outcome::full ? insert(view, keys[i], values[i]) : outcomes[i]; }
};

struct SameOutcome {
  const Outcome* outcomes;
  __device__ Outcome operator()(size_t i) const { return outcomes[i]; }
};

class CudaCompact final : public BulkOperations<CompactView> {
 public:
  CudaCompact(int device, cudaStream_t stream, uint32_t multiprocessors) : device_(device), stream_(stream), multiprocessors_(multiprocessors) {}

  Result<void> clear(const CompactView& view) override {
    if (auto ok = detail::check_view(view); !ok) return ok;
    const DeviceScope scope(device_);
    kernels::clear_compact<<<multiprocessors_ * 16, kCompactThreads, 0, stream_>>>(view);
    return finish("clear a compact table");
  }

  Result<BulkReport> insert(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    return for_keys(kernels::InsertKey<CompactView>{view, keys, values}, count, outcomes, "insert into a compact table");
  }
  Result<BulkReport> assign(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    return for_keys(kernels::AssignKey<CompactView>{view, keys, values}, count, outcomes, "assign in a compact table");
  }
  Result<BulkReport> find_or_insert(const CompactView& view, const uint32_t* keys, uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    return for_keys(kernels::FindOrInsertKey<CompactView>{view, keys, values}, count, outcomes, "find or insert in a compact table");
  }
  Result<BulkReport> find(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* values_out, uint8_t* depths_out) override {
    if (auto ok = detail::check_batch(view, keys, keys, count); !ok) return tl::unexpected(ok.error());
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    auto report = counted("find in a compact table", [&](Atomic64* totals) {
      detail::with_format(view.layout.table.fields, [&](auto format) {
        find_compact<decltype(format)><<<blocks(count), kCompactThreads, 0, stream_>>>(
            view, keys, count, values_out, depths_out, totals + size_t(Outcome::present), totals + size_t(Outcome::reserved));
      });
    });
    if (report) report->absent = count - report->present - report->reserved;
    return report;
  }
  Result<BulkReport> erase(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* old_values, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, keys, count); !ok) return tl::unexpected(ok.error());
    if (old_values == nullptr && outcomes == nullptr && worth_lists(view, count, kLeastKeysPerWindow) && count <= kMostBatch) {
      const DeviceScope scope(device_);
      const auto got = with_page_lists(stream_, view.layout.table.pages, kernels::SplitForm::mixed, keys, keys, uint32_t(count), [&](const PageLists& pages) {
        erase_in_compact_pages<<<view.layout.table.pages, kWindowThreads, 0, stream_>>>(view, pages);
        return cudaGetLastError();
      });
      if (got && got->overflowed == 0)
        return BulkReport{.erased = count - got->reserved - got->refused, .absent = got->refused, .reserved = got->reserved};
      // Scratch memory, and lists for keys that are spread, are what it needs more of than going key by key.
      if (!got && got.error().code != ErrorCode::out_of_memory) return tl::unexpected(got.error());
    }
    return for_keys(kernels::EraseKey<CompactView>{view, keys, old_values}, count, outcomes, "erase from a compact table");
  }

  Result<BulkReport> insert_alone(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count, bool fresh) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (!worth_lists(view, count, fresh ? kLeastKeysPerFreshPage : kLeastKeysPerPage)) return insert(view, keys, values, count, nullptr);
    const DeviceScope scope(device_);
    BulkReport report;
    for (size_t begin = 0; begin < count; begin += kMostBatch) {
      const uint32_t batch = uint32_t(std::min(kMostBatch, count - begin));
      const auto got = with_page_lists(stream_, view.layout.table.pages, kernels::SplitForm::mixed, keys + begin, values + begin, batch, [&](const PageLists& pages) {
        detail::with_format(view.layout.table.fields, [&](auto format) {
          if (fresh && begin == 0)
            kernels::merge_compact<decltype(format), true><<<view.layout.table.pages, kCompactThreads, kQryPageBytes, stream_>>>(view, pages);
          else
            kernels::merge_compact<decltype(format), false><<<view.layout.table.pages, kCompactThreads, kQryPageBytes, stream_>>>(view, pages);
        });
        return cudaGetLastError();
      });
      if (!got && got.error().code == ErrorCode::out_of_memory && begin == 0) return insert(view, keys, values, count, nullptr);
      if (!got) return tl::unexpected(got.error());
      if (got->overflowed != 0) {  // equal keys, more than a list has room for
        report.full += batch;
        continue;
      }
      report.reserved += got->reserved;
      report.present += got->present;
      report.full += got->refused;
      report.inserted += batch - got->reserved - got->present - got->refused;
    }
    return report;
  }

  Result<BulkReport> settle(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    if (auto ok = sweep(view); !ok) return tl::unexpected(ok.error());
    // The others' outcomes are counted too, before and after: what changed is the report on those that were refused.
    const PoolMemory before(stream_, count);
    if (auto ok = cuda_result(before.error(), "memory for outcomes"); !ok) return tl::unexpected(ok.error());
    const auto was = for_keys(SameOutcome{outcomes}, count, before.as<Outcome>(), "count outcomes");
    if (!was) return was;
    auto report = for_keys(InsertRefused{view, keys, values, before.as<Outcome>()}, count, outcomes, "insert refused keys");
    if (!report) return report;
    return BulkReport{.inserted = report->inserted - was->inserted, .present = report->present - was->present, .full = report->full};
  }

  Result<uint64_t> enumerate(const CompactView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    if (auto ok = detail::check_view(view); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    // One more than pages: the last sum is the number of pairs.
    const size_t sums = size_t{view.page_count} + 1;
    size_t scan_bytes = 0;
    cub::DeviceScan::ExclusiveSum(nullptr, scan_bytes, static_cast<uint64_t*>(nullptr), static_cast<uint64_t*>(nullptr), int(sums), stream_);
    const PoolMemory counts(stream_, sums * 2 * sizeof(uint64_t)), temporary(stream_, scan_bytes);
    for (const PoolMemory* memory : {&counts, &temporary})
      if (auto ok = cuda_result(memory->error(), "memory for counts of pages"); !ok) return tl::unexpected(ok.error());
    uint64_t *const per_page = counts.as<uint64_t>(), *const begins = per_page + sums;
    cudaError_t error = cudaMemsetAsync(per_page, 0, sums * sizeof(uint64_t), stream_);
    kernels::count_compact<<<page_blocks(view.page_count), kCompactThreads, 0, stream_>>>(view, per_page);
    if (error == cudaSuccess)
      error = cub::DeviceScan::ExclusiveSum(temporary.as<void>(), scan_bytes, per_page, begins, int(sums), stream_);
    if (capacity != 0) kernels::write_compact<<<page_blocks(view.page_count), kCompactThreads, 0, stream_>>>(view, of_table(view), of_stash(view), begins, keys, values, capacity);
    uint64_t total = 0;
    if (error == cudaSuccess) error = cudaMemcpyAsync(&total, begins + view.page_count, sizeof(total), cudaMemcpyDeviceToHost, stream_);
    if (auto ok = cuda_result(error, "enumerate a compact table"); !ok) return tl::unexpected(ok.error());
    if (auto ok = finish("enumerate a compact table"); !ok) return tl::unexpected(ok.error());
    return total;
  }

  Result<uint64_t> rehash(const CompactView& from, const CompactView& to) override {
    if (auto ok = detail::check_view(from); !ok) return tl::unexpected(ok.error());
    if (auto ok = detail::check_view(to); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    return counting_refused("rehash a compact table", [&](Atomic64* refused) {
      detail::with_format(to.layout.table.fields, [&](auto format) {
        constexpr uint32_t kSharedBytes = kQryPageBytes + kQrySectorsPerPage * 4;
        kernels::rehash_compact<decltype(format)><<<to.layout.table.pages, kCompactThreads, kSharedBytes, stream_>>>(from, of_table(from), to, refused);
      });
      if (from.layout.stash.pages != 0)
        kernels::empty_stash<<<stash_blocks(from), kCompactThreads, 0, stream_>>>(from, of_stash(from), to, false, refused);
    });
  }

  Result<void> sweep(const CompactView& view) override {
    if (auto ok = detail::check_view(view); !ok) return ok;
    const DeviceScope scope(device_);
    const QryCompactPart &table = view.layout.table, &stash = view.layout.stash;
    const auto refused = counting_refused("sweep a compact table", [&](Atomic64* count) {
      detail::with_format(table.fields, [&](auto format) {
        kernels::sweep_compact<decltype(format)><<<table.pages, kCompactThreads, kQryPageBytes, stream_>>>(view, table, of_table(view));
      });
      if (stash.pages == 0) return;
      kernels::empty_stash<<<stash_blocks(view), kCompactThreads, 0, stream_>>>(view, of_stash(view), view, true, count);
      kernels::sweep_compact<detail::CompactFormat<1>><<<stash.pages, kCompactThreads, kQryPageBytes, stream_>>>(view, stash, of_stash(view));
    });
    if (!refused) return tl::unexpected(refused.error());
    return {};
  }

  Result<Stats> stats(const CompactView& view) override {
    if (auto ok = detail::check_view(view); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    const PoolMemory sums(stream_, sizeof(kernels::StatsSums));
    kernels::StatsSums got{};
    cudaError_t error = sums.error();
    if (error == cudaSuccess) error = cudaMemsetAsync(sums.as<void>(), 0, sizeof(got), stream_);
    if (error == cudaSuccess)
      kernels::sum_compact_stats<<<page_blocks(view.page_count), kCompactThreads, 0, stream_>>>(view, of_stash(view), sums.as<kernels::StatsSums>());
    if (error == cudaSuccess) error = cudaMemcpyAsync(&got, sums.as<void>(), sizeof(got), cudaMemcpyDeviceToHost, stream_);
    if (auto ok = cuda_result(error, "statistics of a compact table"); !ok) return tl::unexpected(ok.error());
    if (auto ok = finish("statistics of a compact table"); !ok) return tl::unexpected(ok.error());
    Stats stats = kernels::stats_of(got);
    detail::finish_compact_stats(stats, view.page_count);
    return stats;
  }

 private:
  static detail::CompactInverse of_table(const CompactView& view) { return detail::CompactInverse(view.layout.table); }
  static detail::CompactInverse of_stash(const CompactView& view) { return detail::CompactInverse(view.layout.stash); }
  static bool worth_lists(const CompactView& view, size_t count, uint32_t least_per_page) {
    return count >= kLeastBatch && count / view.layout.table.pages >= least_per_page;
  }
  uint32_t blocks(size_t count) const {
    return uint32_t(std::min<size_t>((count + kCompactThreads - 1) / kCompactThreads, size_t{multiprocessors_} * 64));
  }
  uint32_t page_blocks(uint32_t pages) const { return std::min(pages, multiprocessors_ * 16); }
  static uint32_t stash_blocks(const CompactView& view) { return view.layout.stash.pages * (kQrySectorsPerPage / kCompactThreads); }

  Result<void> finish(const char* doing) const {
    if (auto ok = cuda_result(cudaGetLastError(), doing); !ok) return ok;
    return cuda_result(cudaStreamSynchronize(stream_), doing);
  }

  // Runs launch(count) with a cleared counter of pairs that find no place, waits and reads it.
  template <class Launch>
  Result<uint64_t> counting_refused(const char* doing, const Launch& launch) const {
    const auto report = counted(doing, launch);
    if (!report) return tl::unexpected(report.error());
    return report->inserted;  // the first of the counters
  }

  // Runs launch(totals) with a cleared count for each Outcome, waits and reads them.
  template <class Launch>
  Result<BulkReport> counted(const char* doing, const Launch& launch) const {
    const PoolMemory totals(stream_, kernels::kOutcomes * sizeof(Atomic64));
    cudaError_t error = totals.error();
    Atomic64 got[kernels::kOutcomes] = {};
    if (error == cudaSuccess) error = cudaMemsetAsync(totals.as<void>(), 0, sizeof(got), stream_);
    if (error == cudaSuccess) {
      launch(totals.as<Atomic64>());
      error = cudaGetLastError();
    }
    if (error == cudaSuccess) error = cudaMemcpyAsync(got, totals.as<void>(), sizeof(got), cudaMemcpyDeviceToHost, stream_);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream_);
    if (auto ok = cuda_result(error, doing); !ok) return tl::unexpected(ok.error());
    const auto of = [&](Outcome outcome) { return uint64_t{got[size_t(outcome)]}; };
    return BulkReport{of(Outcome::inserted), of(Outcome::present), of(Outcome::assigned), of(Outcome::erased),
                      of(Outcome::absent),   of(Outcome::full),    of(Outcome::reserved)};
  }

  template <class Operate>
  Result<BulkReport> for_keys(const Operate& operate, size_t count, Outcome* outcomes, const char* doing) const {
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    return counted(doing, [&](Atomic64* totals) {
      kernels::for_each_key<<<blocks(count), kernels::kKeyThreads, 0, stream_>>>(operate, count, outcomes, totals);
    });
  }

  int device_;
  cudaStream_t stream_;
  uint32_t multiprocessors_;
};

}  // namespace

std::unique_ptr<BulkOperations<CompactView>> make_cuda_compact(int device, cudaStream_t stream, uint32_t multiprocessors) {
  return std::make_unique<CudaCompact>(device, stream, multiprocessors);
}

}  // namespace quarry::hashgrid
