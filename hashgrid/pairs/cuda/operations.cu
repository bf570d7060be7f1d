// operations.cu - the bulk operations on a CUDA device: launches and scratch memory. Kernels are in hashgrid/cuda/key_kernels.cuh, page_kernels.cuh.
//
// All in the stream of one executor. Every call waits for its own result; scratch memory comes from the stream's pool, so several host threads may
// call at once. No launch waits for anything but earlier work of the stream: nothing here synchronises the device.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "hashgrid/cuda/device_scope.cuh"
#include "hashgrid/cuda/error.cuh"
#include "hashgrid/cuda/key_kernels.cuh"
#include "hashgrid/pairs/arguments.hpp"
#include "hashgrid/pairs/cuda/find_kernels.cuh"
#include "hashgrid/pairs/cuda/merge.cuh"
#include "hashgrid/pairs/cuda/operations.cuh"
#include "hashgrid/pairs/cuda/page_kernels.cuh"
#include "hashgrid/pairs/cuda/rows.cuh"

namespace quarry::hashgrid {
namespace {

// Device memory of one call, in stream order.
class Scratch {
 public:
  static Result<Scratch> allocate(cudaStream_t stream, size_t size_bytes) {
    void* data = nullptr;
    if (auto ok = cuda_result(cudaMallocAsync(&data, std::max<size_t>(size_bytes, 1), stream), "scratch memory"); !ok) {
      cudaGetLastError();
      return tl::unexpected(ok.error());
    }
    return Scratch(stream, data);
  }
  Scratch(Scratch&& other) noexcept : stream_(other.stream_), data_(std::exchange(other.data_, nullptr)) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Scratch(cudaStream_t stream, void* data) : stream_(stream), data_(data) {}
  cudaStream_t stream_;
  void* data_;
};

struct IsFull {
  const Outcome* outcomes;
  __device__ bool operator()(uint64_t i) const { return outcomes[i] == Outcome::full; }
};

constexpr uint32_t kSimpleThreads = 256;

__global__ void __launch_bounds__(kSimpleThreads) pages_of_positions(const uint32_t* keys, const uint64_t* positions, uint64_t count,
                                                                     uint32_t page_count, uint32_t locality, uint32_t* pages) {
  for (uint64_t i = uint64_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count; i += uint64_t{gridDim.x} * kSimpleThreads)
    pages[i] = qry_page(qry_stored_key(keys[positions[i]], locality), page_count);
}

__global__ void __launch_bounds__(kSimpleThreads) count_outcomes_at(const Outcome* outcomes, const uint64_t* positions, uint64_t count,
                                                                    unsigned long long* totals) {
  for (uint64_t i = uint64_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count; i += uint64_t{gridDim.x} * kSimpleThreads)
    atomicAdd(totals + uint32_t(outcomes[positions[i]]), 1ull);
}

BulkReport report_of(const unsigned long long (&totals)[kernels::kOutcomes]) {
  const auto of = [&](Outcome outcome) { return uint64_t{totals[size_t(outcome)]}; };
  return {of(Outcome::inserted), of(Outcome::present), of(Outcome::assigned), of(Outcome::erased),
          of(Outcome::absent),   of(Outcome::full),    of(Outcome::reserved)};
}

class CudaPairs final : public BulkOperations<GridView> {
 public:
  CudaPairs(int device, cudaStream_t stream, uint32_t multiprocessors) : device_(device), stream_(stream), multiprocessors_(multiprocessors) {}

  Result<void> clear(const GridView& view) override {
    if (auto ok = detail::check_view(view); !ok) return ok;
    const DeviceScope scope(device_);
    kernels::clear_pages<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    return finish("clear");
  }

  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      auto inserted = bulk_put(stream_, view, keys, values, count, false);
      if (inserted || inserted.error().code != ErrorCode::out_of_memory) return inserted;
    }
    return for_keys(kernels::InsertKey<GridView>{view, keys, values}, count, outcomes, "insert");
  }
  Result<BulkReport> insert_alone(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, bool fresh) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (!worth_merging(view.page_count, count, fresh)) return insert(view, keys, values, count, nullptr);
    const DeviceScope scope(device_);
    auto merged = bulk_merge(stream_, view, keys, values, count, fresh);
    // Scratch memory is the one thing it needs more of than plain insertion.
    if (!merged && merged.error().code == ErrorCode::out_of_memory) return insert(view, keys, values, count, nullptr);
    return merged;
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      auto assigned = bulk_put(stream_, view, keys, values, count, true);
      if (assigned || assigned.error().code != ErrorCode::out_of_memory) return assigned;
    }
    return for_keys(kernels::AssignKey<GridView>{view, keys, values}, count, outcomes, "assign");
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    return for_keys(kernels::FindOrInsertKey<GridView>{view, keys, values}, count, outcomes, "find_or_insert");
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out, uint8_t* depths_out) override {
    if (auto ok = detail::check_batch(view, keys, keys, count); !ok) return tl::unexpected(ok.error());
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    auto totals = zeroed(sizeof(unsigned long long) * kernels::kOutcomes);
    if (!totals) return tl::unexpected(totals.error());
    auto* const counts = totals->as<unsigned long long>();
    if (view.locality == kQryRows) {
      constexpr uint32_t kKeys = kernels::kRowThreads * kernels::kRowKeys;
      kernels::find_in_rows<<<uint32_t((count + kKeys - 1) / kKeys), kernels::kRowThreads, 0, stream_>>>(
          view, keys, count, values_out, depths_out, counts + size_t(Outcome::present), counts + size_t(Outcome::reserved));
    } else
    kernels::find_keys<<<blocks((count + kernels::kFindThreads - 1) / kernels::kFindThreads, 64), kernels::kFindThreads, 0, stream_>>>(
        view, keys, count, values_out, depths_out, counts + size_t(Outcome::present), counts + size_t(Outcome::reserved));
    auto report = read_report(*totals, "find");
    if (report) report->absent = count - report->present - report->reserved;
    return report;
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, keys, count); !ok) return tl::unexpected(ok.error());
    if (old_values == nullptr && outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      auto erased = bulk_erase(stream_, view, keys, count);
      if (erased || erased.error().code != ErrorCode::out_of_memory) return erased;
    }
    return for_keys(kernels::EraseKey<GridView>{view, keys, old_values}, count, outcomes, "erase");
  }

  Result<BulkReport> settle(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = detail::check_batch(view, keys, values, count); !ok) return tl::unexpected(ok.error());
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    const thrust::counting_iterator<uint64_t> all(0);

    // Which keys wait, in the order of the batch.
    auto number = Scratch::allocate(stream_, sizeof(uint64_t));
    if (!number) return tl::unexpected(number.error());
    auto chosen = Scratch::allocate(stream_, count * sizeof(uint64_t));
    if (!chosen) return tl::unexpected(chosen.error());
    auto ok = with_temporary("select refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceSelect::If(temporary, size_bytes, all, chosen->as<uint64_t>(), number->as<uint64_t>(), count, IsFull{outcomes}, stream_);
    });
    if (!ok) return tl::unexpected(ok.error());
    uint64_t waiting = 0;
    if (ok = download(&waiting, number->as<uint64_t>(), sizeof(waiting)); !ok) return tl::unexpected(ok.error());
    if (waiting == 0) return BulkReport{};

    // Sorted by page; the sort is stable, so within a page the order of the batch stays.
    auto pages = Scratch::allocate(stream_, waiting * 2 * sizeof(uint32_t));
    if (!pages) return tl::unexpected(pages.error());
    auto positions = Scratch::allocate(stream_, waiting * sizeof(uint64_t));
    if (!positions) return tl::unexpected(positions.error());
    uint32_t* unsorted_pages = pages->as<uint32_t>();
    uint32_t* sorted_pages = unsorted_pages + waiting;
    pages_of_positions<<<simple_blocks(waiting), kSimpleThreads, 0, stream_>>>(keys, chosen->as<uint64_t>(), waiting, view.page_count, view.locality,
                                                                               unsorted_pages);
    ok = with_temporary("sort refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, size_bytes, unsorted_pages, sorted_pages, chosen->as<uint64_t>(), positions->as<uint64_t>(),
                                             waiting, 0, 32, stream_);
    });
    if (!ok) return tl::unexpected(ok.error());

    // One group for each page that is touched.
    auto groups = Scratch::allocate(stream_, waiting * (sizeof(uint32_t) + 2 * sizeof(uint64_t)) + sizeof(uint64_t));
    if (!groups) return tl::unexpected(groups.error());
    uint64_t* sizes = groups->as<uint64_t>();
    uint64_t* begins = sizes + waiting;
    uint32_t* group_pages = reinterpret_cast<uint32_t*>(begins + waiting);
    ok = with_temporary("group refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRunLengthEncode::Encode(temporary, size_bytes, sorted_pages, group_pages, sizes, number->as<uint64_t>(), waiting, stream_);
    });
    if (!ok) return tl::unexpected(ok.error());
    uint64_t group_count = 0;
    if (ok = download(&group_count, number->as<uint64_t>(), sizeof(group_count)); !ok) return tl::unexpected(ok.error());
    ok = with_temporary("place groups", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, sizes, begins, group_count, stream_);
    });
    if (!ok) return tl::unexpected(ok.error());

    auto totals = zeroed(sizeof(unsigned long long) * kernels::kOutcomes);
    if (!totals) return tl::unexpected(totals.error());
    kernels::settle_pages<<<page_blocks(group_count), kernels::kPageThreads, 0, stream_>>>(view, keys, values, outcomes, group_pages, begins, sizes,
                                                                                          positions->as<uint64_t>(), group_count);
    count_outcomes_at<<<simple_blocks(waiting), kSimpleThreads, 0, stream_>>>(outcomes, positions->as<uint64_t>(), waiting,
                                                                             totals->as<unsigned long long>());
    return read_report(*totals, "settle");
  }

  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    if (auto ok = detail::check_view(view); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    // One more than pages: the last sum is the number of pairs.
    auto counts = zeroed((size_t{view.page_count} + 1) * 2 * sizeof(uint64_t));
    if (!counts) return tl::unexpected(counts.error());
    uint64_t* per_page = counts->as<uint64_t>();
    uint64_t* begins = per_page + view.page_count + 1;
    kernels::count_pairs<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count, per_page);
    auto ok = with_temporary("sum pairs of pages", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, per_page, begins, view.page_count + 1, stream_);
    });
    if (!ok) return tl::unexpected(ok.error());
    if (capacity != 0)
      kernels::write_pairs<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count, view.locality, begins, keys, values,
                                                                                              capacity);
    if (ok = finish("enumerate"); !ok) return tl::unexpected(ok.error());
    uint64_t total = 0;
    if (ok = download(&total, begins + view.page_count, sizeof(total)); !ok) return tl::unexpected(ok.error());
    return total;
  }

  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    if (auto ok = detail::check_view(from); !ok) return tl::unexpected(ok.error());
    if (auto ok = detail::check_view(to); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    auto refused = zeroed(sizeof(unsigned long long));
    if (!refused) return tl::unexpected(refused.error());
    kernels::rehash_pages<<<page_blocks(to.page_count), kernels::kPageThreads, 0, stream_>>>(from, to, refused->as<unsigned long long>());
    if (auto ok = finish("rehash"); !ok) return tl::unexpected(ok.error());
    unsigned long long count = 0;
    if (auto ok = download(&count, refused->as<unsigned long long>(), sizeof(count)); !ok) return tl::unexpected(ok.error());
    return uint64_t{count};
  }

  Result<void> sweep(const GridView& view) override {
    if (auto ok = detail::check_view(view); !ok) return ok;
    const DeviceScope scope(device_);
    kernels::sweep_pages<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    kernels::sweep_stashes<<<qry_group_count(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    return finish("sweep");
  }

  Result<Stats> stats(const GridView& view) override {
    if (auto ok = detail::check_view(view); !ok) return tl::unexpected(ok.error());
    const DeviceScope scope(device_);
    auto sums = zeroed(sizeof(kernels::StatsSums));
    if (!sums) return tl::unexpected(sums.error());
    kernels::sum_stats<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count,
                                                                                          sums->as<kernels::StatsSums>());
    if (auto ok = finish("stats"); !ok) return tl::unexpected(ok.error());
    kernels::StatsSums got{};
    if (auto ok = download(&got, sums->as<kernels::StatsSums>(), sizeof(got)); !ok) return tl::unexpected(ok.error());
    Stats stats = kernels::stats_of(got);
    detail::finish_stats(stats, view.page_count, kQrySlotsPerPage);
    return stats;
  }

 private:
  // Enough blocks to fill the device a few times over; kernels stride over the rest.
  uint32_t blocks(uint64_t wanted, uint32_t per_multiprocessor) const {
    return uint32_t(std::clamp<uint64_t>(wanted, 1, uint64_t{multiprocessors_} * per_multiprocessor));
  }
  uint32_t page_blocks(uint64_t pages) const { return blocks(pages, 16); }
  uint32_t simple_blocks(uint64_t count) const { return blocks((count + kSimpleThreads - 1) / kSimpleThreads, 32); }

  Result<void> finish(const char* doing) const {
    if (auto ok = cuda_result(cudaGetLastError(), doing); !ok) return ok;
    return cuda_result(cudaStreamSynchronize(stream_), doing);
  }

  Result<void> download(void* to_host, const void* from, size_t size_bytes) const {
    if (auto ok = cuda_result(cudaMemcpyAsync(to_host, from, size_bytes, cudaMemcpyDefault, stream_), "download"); !ok) return ok;
    return finish("download");
  }

  Result<Scratch> zeroed(size_t size_bytes) const {
    auto scratch = Scratch::allocate(stream_, size_bytes);
    if (!scratch) return scratch;
    if (auto ok = cuda_result(cudaMemsetAsync(scratch->as<void>(), 0, size_bytes, stream_), "clear scratch memory"); !ok)
      return tl::unexpected(ok.error());
    return scratch;
  }

  // CUB's two steps: ask for the size of its temporary memory, then run.
  template <class Call>
  Result<void> with_temporary(const char* doing, const Call& call) const {
    size_t size_bytes = 0;
    if (auto ok = cuda_result(call(nullptr, size_bytes), doing); !ok) return ok;
    auto temporary = Scratch::allocate(stream_, size_bytes);
    if (!temporary) return tl::unexpected(temporary.error());
    return cuda_result(call(temporary->template as<void>(), size_bytes), doing);
  }

  Result<BulkReport> read_report(const Scratch& totals, const char* doing) {
    if (auto ok = cuda_result(cudaGetLastError(), doing); !ok) return tl::unexpected(ok.error());
    unsigned long long got[kernels::kOutcomes] = {};
    if (auto ok = download(got, totals.as<void>(), sizeof(got)); !ok) return tl::unexpected(ok.error());
    return report_of(got);
  }

  template <class Operate>
  Result<BulkReport> for_keys(const Operate& operate, size_t count, Outcome* outcomes, const char* doing) {
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    auto totals = zeroed(sizeof(unsigned long long) * kernels::kOutcomes);
    if (!totals) return tl::unexpected(totals.error());
    const uint32_t grid = blocks((count + kernels::kKeyThreads - 1) / kernels::kKeyThreads, 64);
    kernels::for_each_key<<<grid, kernels::kKeyThreads, 0, stream_>>>(operate, count, outcomes, totals->template as<unsigned long long>());
    return read_report(*totals, doing);
  }

  int device_;
  cudaStream_t stream_;
  uint32_t multiprocessors_;
};

}  // namespace

std::unique_ptr<BulkOperations<GridView>> make_cuda_pairs(int device, cudaStream_t stream, uint32_t multiprocessors) {
  return std::make_unique<CudaPairs>(device, stream, multiprocessors);
}

bool cuda_pairs_run_here() {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernels::clear_pages) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

}  // namespace quarry::hashgrid
