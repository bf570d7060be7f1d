// executor_cuda.cu - the bulk operations on a CUDA device: launches and memory. Kernels are in key_kernels.cuh and page_kernels.cuh.
//
// One stream per executor. Every call waits for its own result; scratch memory comes from the stream's pool, so several host threads may
// call at once. No launch waits for anything but earlier work of the stream: nothing here synchronises the device.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "hashgrid/arguments.hpp"
#include "hashgrid/pairs/find_kernels.cuh"
#include "hashgrid/pairs/merge.cuh"
#include "hashgrid/pairs/rows.cuh"
#include "hashgrid/compact/cuda.cuh"
#include "hashgrid/bulk/cuda_stream.cuh"
#include "hashgrid/executor.hpp"
#include "hashgrid/bulk/key_kernels.cuh"
#include "hashgrid/pairs/page_kernels.cuh"

namespace quarry::hashgrid {
namespace {

class CudaMemory final : public MemorySource {
 public:
  explicit CudaMemory(int device) : device_(device) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    const DeviceScope scope(device_);
    if (size_bytes == 0) return fail(ErrorCode::invalid_argument, std::string("CUDA memory for ") + label + ": 0 bytes asked for");
    void* raw = nullptr;
    const std::string what = std::string("memory for ") + label + " (" + std::to_string(size_bytes) + " bytes)";
    if (auto ok = cuda_result(cudaMalloc(&raw, size_bytes + kAlignment), what.c_str()); !ok) {
      cudaGetLastError();  // not sticky: the next call must not report it again
      return tl::unexpected(ok.error());
    }
    // cudaMalloc aligns to 512 bytes only.
    void* data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(raw) + kAlignment - 1) / kAlignment * kAlignment);
    auto zeroed = cuda_result(cudaMemset(data, 0, size_bytes), what.c_str());
    if (zeroed) zeroed = cuda_result(cudaStreamSynchronize(cudaStreamLegacy), what.c_str());
    if (!zeroed) {
      cudaFree(raw);
      return tl::unexpected(zeroed.error());
    }
    return MemoryBlock{.data = data, .size_bytes = size_bytes, .owner = raw};
  }
  void release(const MemoryBlock& block) noexcept override {
    const DeviceScope scope(device_);
    cudaFree(block.owner);
  }

 private:
  static constexpr size_t kAlignment = 4096;
  int device_;
};

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

// The answer to work done page by page; nothing where the keys are to be gone through one by one: there was no scratch memory, or too many are equal.
std::optional<Result<BulkReport>> answer_by_pages(const Result<std::optional<BulkReport>>& done) {
  if (!done && done.error().code != ErrorCode::out_of_memory) return Result<BulkReport>(tl::unexpected(done.error()));
  if (!done || !*done) return std::nullopt;
  return Result<BulkReport>(**done);
}

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

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(int device, cudaStream_t stream, uint32_t multiprocessors)
      : device_(device), stream_(stream), multiprocessors_(multiprocessors), memory_(device), compact_(make_cuda_compact(device, stream, multiprocessors)) {}
  ~CudaExecutor() override {
    const DeviceScope scope(device_);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  ExecutorKind kind() const override { return ExecutorKind::cuda; }
  uint32_t parallelism() const override { return multiprocessors_; }
  MemorySource& memory() override { return memory_; }
  BulkOperations<CompactView>& compact() override { return *compact_; }
  cudaStream_t stream() const { return stream_; }

  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override { return copy(to, from_host, size_bytes, "upload"); }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override { return copy(to_host, from, size_bytes, "download"); }

  Result<void> clear(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device_);
    kernels::clear_pages<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    return finish("clear");
  }

  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      if (auto done = answer_by_pages(bulk_put(stream_, view, keys, values, count, false))) return *std::move(done);
    }
    return for_keys(kernels::InsertKey<GridView>{view, keys, values}, count, outcomes, "insert");
  }
  Result<BulkReport> insert_alone(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, bool fresh) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (!worth_merging(view.page_count, count, fresh)) return insert(view, keys, values, count, nullptr);
    const DeviceScope scope(device_);
    auto merged = bulk_merge(stream_, view, keys, values, count, fresh);
    // Scratch memory is the one thing it needs more of than plain insertion.
    if (!merged && merged.error().code == ErrorCode::out_of_memory) return insert(view, keys, values, count, nullptr);
    return merged;
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      if (auto done = answer_by_pages(bulk_put(stream_, view, keys, values, count, true))) return *std::move(done);
    }
    return for_keys(kernels::AssignKey<GridView>{view, keys, values}, count, outcomes, "assign");
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    return for_keys(kernels::FindOrInsertKey<GridView>{view, keys, values}, count, outcomes, "find_or_insert");
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out, uint8_t* depths_out) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    QRY_TRY_ASSIGN(auto totals, zeroed(sizeof(unsigned long long) * kernels::kOutcomes));
    auto* const counts = totals.as<unsigned long long>();
    if (view.locality == kQryRows) {
      constexpr uint32_t kKeys = kernels::kRowThreads * kernels::kRowKeys;
      kernels::find_in_rows<<<uint32_t((count + kKeys - 1) / kKeys), kernels::kRowThreads, 0, stream_>>>(
          view, keys, count, values_out, depths_out, counts + size_t(Outcome::present), counts + size_t(Outcome::reserved));
    } else
    kernels::find_keys<<<blocks((count + kernels::kFindThreads - 1) / kernels::kFindThreads, 64), kernels::kFindThreads, 0, stream_>>>(
        view, keys, count, values_out, depths_out, counts + size_t(Outcome::present), counts + size_t(Outcome::reserved));
    auto report = read_report(totals, "find");
    if (report) report->absent = count - report->present - report->reserved;
    return report;
  }
  Result<void> find_neighbours(const GridView& view, const uint32_t* bricks, size_t count, Neighbourhood which, uint32_t* values_out) override {
    QRY_TRY(detail::check_batch(view, bricks, values_out, count));
    if (count == 0) return {};
    const DeviceScope scope(device_);
    const bool rows = view.locality == kQryRows;
    const auto kernel = which == Neighbourhood::faces
                            ? (rows ? kernels::find_around<Neighbourhood::faces, true> : kernels::find_around<Neighbourhood::faces, false>)
                            : (rows ? kernels::find_around<Neighbourhood::all, true> : kernels::find_around<Neighbourhood::all, false>);
    const uint32_t grid = uint32_t((count + kernels::kAroundThreads - 1) / kernels::kAroundThreads);
    kernel<<<grid, kernels::kAroundThreads, 0, stream_>>>(view, bricks, count, values_out);
    return finish("find_neighbours");
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values, Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (old_values == nullptr && outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device_);
      if (auto done = answer_by_pages(bulk_erase(stream_, view, keys, count))) return *std::move(done);
    }
    return for_keys(kernels::EraseKey<GridView>{view, keys, old_values}, count, outcomes, "erase");
  }

  Result<BulkReport> settle(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    const thrust::counting_iterator<uint64_t> all(0);

    // Which keys wait, in the order of the batch.
    QRY_TRY_ASSIGN(auto number, Scratch::allocate(stream_, sizeof(uint64_t)));
    QRY_TRY_ASSIGN(auto chosen, Scratch::allocate(stream_, count * sizeof(uint64_t)));
    auto ok = with_temporary("select refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceSelect::If(temporary, size_bytes, all, chosen.as<uint64_t>(), number.as<uint64_t>(), count, IsFull{outcomes}, stream_);
    });
    QRY_TRY(ok);
    uint64_t waiting = 0;
    QRY_TRY(download(&waiting, number.as<uint64_t>(), sizeof(waiting)));
    if (waiting == 0) return BulkReport{};

    // Sorted by page; the sort is stable, so within a page the order of the batch stays.
    QRY_TRY_ASSIGN(auto pages, Scratch::allocate(stream_, waiting * 2 * sizeof(uint32_t)));
    QRY_TRY_ASSIGN(auto positions, Scratch::allocate(stream_, waiting * sizeof(uint64_t)));
    uint32_t* unsorted_pages = pages.as<uint32_t>();
    uint32_t* sorted_pages = unsorted_pages + waiting;
    pages_of_positions<<<simple_blocks(waiting), kSimpleThreads, 0, stream_>>>(keys, chosen.as<uint64_t>(), waiting, view.page_count, view.locality,
                                                                               unsorted_pages);
    ok = with_temporary("sort refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, size_bytes, unsorted_pages, sorted_pages, chosen.as<uint64_t>(), positions.as<uint64_t>(),
                                             waiting, 0, 32, stream_);
    });
    QRY_TRY(ok);

    // One group for each page that is touched.
    QRY_TRY_ASSIGN(auto groups, Scratch::allocate(stream_, waiting * (sizeof(uint32_t) + 2 * sizeof(uint64_t)) + sizeof(uint64_t)));
    uint64_t* sizes = groups.as<uint64_t>();
    uint64_t* begins = sizes + waiting;
    uint32_t* group_pages = reinterpret_cast<uint32_t*>(begins + waiting);
    ok = with_temporary("group refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRunLengthEncode::Encode(temporary, size_bytes, sorted_pages, group_pages, sizes, number.as<uint64_t>(), waiting, stream_);
    });
    QRY_TRY(ok);
    uint64_t group_count = 0;
    QRY_TRY(download(&group_count, number.as<uint64_t>(), sizeof(group_count)));
    ok = with_temporary("place groups", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, sizes, begins, group_count, stream_);
    });
    QRY_TRY(ok);

    QRY_TRY_ASSIGN(auto totals, zeroed(sizeof(unsigned long long) * kernels::kOutcomes));
    kernels::settle_pages<<<page_blocks(group_count), kernels::kPageThreads, 0, stream_>>>(view, keys, values, outcomes, group_pages, begins, sizes,
                                                                                          positions.as<uint64_t>(), group_count);
    count_outcomes_at<<<simple_blocks(waiting), kSimpleThreads, 0, stream_>>>(outcomes, positions.as<uint64_t>(), waiting,
                                                                             totals.as<unsigned long long>());
    return read_report(totals, "settle");
  }

  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device_);
    // One more than pages: the last sum is the number of pairs.
    QRY_TRY_ASSIGN(auto counts, zeroed((size_t{view.page_count} + 1) * 2 * sizeof(uint64_t)));
    uint64_t* per_page = counts.as<uint64_t>();
    uint64_t* begins = per_page + view.page_count + 1;
    kernels::count_pairs<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count, per_page);
    auto ok = with_temporary("sum pairs of pages", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, per_page, begins, view.page_count + 1, stream_);
    });
    QRY_TRY(ok);
    if (capacity != 0)
      kernels::write_pairs<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count, view.locality, begins, keys, values,
                                                                                              capacity);
    QRY_TRY(finish("enumerate"));
    uint64_t total = 0;
    QRY_TRY(download(&total, begins + view.page_count, sizeof(total)));
    return total;
  }

  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    QRY_TRY(detail::check_view(from));
    QRY_TRY(detail::check_view(to));
    const DeviceScope scope(device_);
    QRY_TRY_ASSIGN(auto refused, zeroed(sizeof(unsigned long long)));
    kernels::rehash_pages<<<page_blocks(to.page_count), kernels::kPageThreads, 0, stream_>>>(from, to, refused.as<unsigned long long>());
    QRY_TRY(finish("rehash"));
    unsigned long long count = 0;
    QRY_TRY(download(&count, refused.as<unsigned long long>(), sizeof(count)));
    return uint64_t{count};
  }

  Result<void> sweep(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device_);
    kernels::sweep_pages<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    kernels::sweep_stashes<<<qry_group_count(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count);
    return finish("sweep");
  }

  Result<Stats> stats(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device_);
    QRY_TRY_ASSIGN(auto sums, zeroed(sizeof(kernels::StatsSums)));
    kernels::sum_stats<<<page_blocks(view.page_count), kernels::kPageThreads, 0, stream_>>>(view.words, view.page_count,
                                                                                          sums.as<kernels::StatsSums>());
    QRY_TRY(finish("stats"));
    kernels::StatsSums got{};
    QRY_TRY(download(&got, sums.as<kernels::StatsSums>(), sizeof(got)));
    Stats stats = kernels::stats_of(got);
    detail::finish_stats(stats, view.page_count);
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
    QRY_TRY(cuda_result(cudaGetLastError(), doing));
    return cuda_result(cudaStreamSynchronize(stream_), doing);
  }

  Result<void> copy(void* to, const void* from, size_t size_bytes, const char* doing) const {
    if (size_bytes == 0) return {};
    const DeviceScope scope(device_);
    QRY_TRY(cuda_result(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream_), doing));
    return finish(doing);
  }

  Result<Scratch> zeroed(size_t size_bytes) const {
    auto scratch = Scratch::allocate(stream_, size_bytes);
    QRY_TRY(scratch);
    QRY_TRY(cuda_result(cudaMemsetAsync(scratch->as<void>(), 0, size_bytes, stream_), "clear scratch memory"));
    return scratch;
  }

  // CUB's two steps: ask for the size of its temporary memory, then run.
  template <class Call>
  Result<void> with_temporary(const char* doing, const Call& call) const {
    size_t size_bytes = 0;
    QRY_TRY(cuda_result(call(nullptr, size_bytes), doing));
    QRY_TRY_ASSIGN(auto temporary, Scratch::allocate(stream_, size_bytes));
    return cuda_result(call(temporary.template as<void>(), size_bytes), doing);
  }

  Result<BulkReport> read_report(const Scratch& totals, const char* doing) {
    QRY_TRY(cuda_result(cudaGetLastError(), doing));
    unsigned long long got[kernels::kOutcomes] = {};
    QRY_TRY(download(got, totals.as<void>(), sizeof(got)));
    return report_of(got);
  }

  template <class Operate>
  Result<BulkReport> for_keys(const Operate& operate, size_t count, Outcome* outcomes, const char* doing) {
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device_);
    QRY_TRY_ASSIGN(auto totals, zeroed(sizeof(unsigned long long) * kernels::kOutcomes));
    const uint32_t grid = blocks((count + kernels::kKeyThreads - 1) / kernels::kKeyThreads, 64);
    kernels::for_each_key<<<grid, kernels::kKeyThreads, 0, stream_>>>(operate, count, outcomes, totals.template as<unsigned long long>());
    return read_report(totals, doing);
  }

  int device_;
  cudaStream_t stream_;
  uint32_t multiprocessors_;
  CudaMemory memory_;
  std::unique_ptr<BulkOperations<CompactView>> compact_;
};

}  // namespace

cudaStream_t cuda_stream_of(const Executor& executor) {
  const auto* cuda = dynamic_cast<const CudaExecutor*>(&executor);
  return cuda != nullptr ? cuda->stream() : nullptr;
}

Result<std::unique_ptr<Executor>> make_cuda_executor(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    return fail(ErrorCode::not_found, std::string("no CUDA device: ") + cudaGetErrorString(error) + "; install the NVIDIA driver, or use the host executor");
  if (device < 0 || device >= count)
    return fail(ErrorCode::not_found, "no CUDA device " + std::to_string(device) + ": there are " + std::to_string(count));
  const DeviceScope scope(device);
  int multiprocessors = 0, pools = 0;
  QRY_TRY(cuda_result(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "ask the device"));
  QRY_TRY(cuda_result(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device), "ask the device"));
  if (pools == 0) return fail(ErrorCode::unsupported, "CUDA device " + std::to_string(device) + " has no stream-ordered memory");
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernels::clear_pages) != cudaSuccess) {
    cudaGetLastError();
    return fail(ErrorCode::unsupported, "CUDA device " + std::to_string(device) +
                                            " is of an architecture this build has no code for; configure with QRY_CUDA_ARCHITECTURES for it");
  }
  // Scratch memory stays with the pool between calls: getting it from the system anew takes longer than most calls.
  cudaMemPool_t pool = nullptr;
  uint64_t kept_bytes = uint64_t{4} << 30;
  QRY_TRY(cuda_result(cudaDeviceGetDefaultMemPool(&pool, device), "find the memory pool"));
  QRY_TRY(cuda_result(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes), "set up the memory pool"));
  cudaStream_t stream = nullptr;
  QRY_TRY(cuda_result(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream"));
  return std::make_unique<CudaExecutor>(device, stream, uint32_t(multiprocessors));
}

}  // namespace quarry::hashgrid
