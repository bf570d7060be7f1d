// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the grid compared with the ceilings of the machine and with sort + binary search, in one process, every
// result checked. Prints a table with ratios; --json writes the same figures as a record. Needs a CUDA device with 16
// GiB.
//
// Called by hashgrid/main.cpp and `quarry bench hashgrid`.
//
// Sweep: insert rate and probe depth against load factor, of the grid and of the simple table of D. Farell, "A Simple
// GPU Hash Table", 2020, as comma-separated values.
#include <thrust/binary_search.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "bench/hashgrid/ceilings.cuh"
#include "bench/hashgrid/cuda.hpp"
#include "bench/hashgrid/workloads.cuh"
#include "hashgrid/cuda/enqueue.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/grid.hpp"
#include "voxel/neighbours/bulk.hpp"

namespace quarry::bench {
namespace {

using namespace hashgrid;

struct Row {
  std::string name;
  double rate;  // 10^9 a second, or GB/s
  const char* unit;
  double ceiling;  // same unit, 0: none
  const char* ceiling_name;
  uint64_t wrong;
  std::string note;
};

struct Cancelled {};

class Table {
 public:
  Table(bool print, const Progress& progress) : print_(print), progress_(progress) {}
  void add(Row row) {
    if (print_) show(row);
    progress_.say(row.name, -1);
    if (progress_.cancelled()) throw Cancelled{};
    rows_.push_back(std::move(row));
  }
  static void show(const Row& row) {
    std::printf("%-44s %8.2f %-5s", row.name.c_str(), row.rate, row.unit);
    if (row.ceiling > 0) std::printf("  %5.2f of %s", row.rate / row.ceiling, row.ceiling_name);
    std::printf("%s%s%s\n", row.note.empty() ? "" : "  ", row.note.c_str(), row.wrong != 0 ? "  WRONG ANSWERS" : "");
    std::fflush(stdout);
  }
  bool all_right() const {
    for (const Row& row : rows_)
      if (row.wrong != 0) return false;
    return true;
  }
  std::string json(const std::string& head) const {
    std::ostringstream out;
    out << "{\n" << head << "  \"rows\": [\n";
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      out << "    {\"name\": \"" << r.name << "\", \"rate\": " << r.rate << ", \"unit\": \"" << r.unit
          << "\", \"of_ceiling\": " << (r.ceiling > 0 ? r.rate / r.ceiling : 0.0) << ", \"ceiling\": \""
          << r.ceiling_name << "\", \"wrong\": " << r.wrong << ", \"note\": \"" << r.note << "\"}"
          << (i + 1 < rows_.size() ? ",\n" : "\n");
    }
    out << "  ]\n}\n";
    return out.str();
  }

 private:
  bool print_;
  const Progress& progress_;
  std::vector<Row> rows_;
};

template <class T>
T* device_array(size_t count) {
  void* data = nullptr;
  require(cudaMalloc(&data, count * sizeof(T)), "memory of the benchmark");
  return static_cast<T*>(data);
}

template <class T>
T good(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}
void good(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

// The faces one by one, as a caller's own kernel would: the same results in the same places as find_neighbours.
__global__ void __launch_bounds__(256) six_finds(GridView view, const uint32_t* keys, uint32_t count, uint32_t* out) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  for (uint32_t d = 0; d < 6; ++d) {
    const NeighbourStep step = step_of<Neighbourhood::faces>(d);
    out[size_t{d} * count + i] = find(view, neighbour_key(keys[i], step.x, step.y, step.z)).value;
  }
}
__global__ void check_values(const uint32_t* values, const uint32_t* got, uint32_t count, unsigned long long* wrong) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < count && values[i] != got[i]) atomicAdd(wrong, 1ull);
}
__global__ void mark(const uint32_t* keys, uint32_t count, uint32_t* bits) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < count) atomicOr(bits + keys[i] / 32, 1u << keys[i] % 32);
}
// Compares got[d * count + i] with the bits of all existing bricks: the order is implemented independently here.
__global__ void check_neighbours(const uint32_t* bits, const uint32_t* keys, uint32_t count, bool all,
                                 const uint32_t* got, unsigned long long* wrong) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  for (uint32_t d = 0; d < (all ? 26u : 6u); ++d) {
    int x = int(keys[i] & 2047u), y = int(keys[i] >> 11 & 1023u), z = int(keys[i] >> 21);
    const int s = d % 2 == 0 ? -1 : 1, n = int(d < 13 ? d : d + 1);
    x += all ? n % 3 - 1 : d / 2 == 0 ? s : 0;
    y += all ? n / 3 % 3 - 1 : d / 2 == 1 ? s : 0;
    z += all ? n / 9 - 1 : d / 2 == 2 ? s : 0;
    uint32_t value = kQryReservedValue;
    if (x >= 0 && x < 2048 && y >= 0 && y < 1024 && z >= 0 && z < 2048) {
      const uint32_t key = uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21;
      if ((bits[key / 32] >> key % 32 & 1u) != 0) value = value_of(key);
    }
    if (got[size_t{d} * count + i] != value) atomicAdd(wrong, 1ull);
  }
}

// The simple table of the literature: linear probing over 64-bit slots, key and value in two steps. depth_sum, deepest:
// slots probed after the first.
__global__ void __launch_bounds__(256)
    insert_simple(uint64_t* slots, uint32_t mask, const uint32_t* keys, const uint32_t* values, uint32_t count,
                  unsigned long long* depth_sum, uint32_t* deepest) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  const uint32_t key = keys[i], home = shuffled(key) & mask;
  uint32_t depth = 0;
  for (;; ++depth) {
    uint32_t* const slot = reinterpret_cast<uint32_t*>(slots + ((home + depth) & mask));
    const uint32_t held = atomicCAS(slot, kQryReservedKey, key);
    if (held != kQryReservedKey && held != key) continue;
    slot[1] = values[i];
    break;
  }
  if (depth_sum != nullptr) {
    atomicAdd(depth_sum, (unsigned long long)depth);
    atomicMax(deepest, depth);
  }
}

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

struct Arrays {
  uint32_t count = 1u << 27;
  uint32_t* keys = device_array<uint32_t>(count);
  uint32_t* values = device_array<uint32_t>(count);
  uint32_t* absent = device_array<uint32_t>(count);
  uint32_t* out = device_array<uint32_t>(count);
  uint64_t* table = device_array<uint64_t>(size_t{1} << 28);
  unsigned long long* counter = device_array<unsigned long long>(1);
};

// A caller's own kernels: one thread a key, through a view (or ReadOnly<View>).
template <class View>
__global__ void __launch_bounds__(256) find_one_by_one(View view, const uint32_t* keys, uint32_t count, uint32_t* out) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < count) out[i] = find(view, keys[i]).value;
}
template <class View>
__global__ void __launch_bounds__(256) insert_one_by_one(View view, const uint32_t* keys, const uint32_t* values,
                                                         uint32_t count, unsigned long long* refused) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < count && insert(view, keys[i], values[i]) != Outcome::inserted) atomicAdd(refused, 1ull);
}

// What a caller's own kernel does at a load, and batches of known keys. `view` has the first `count` keys, `refused` of
// them not; `clear` and `refill` are of its table. It stays filled.
template <class View, class Clear, class Refill>
void own_kernel_rows(const std::string& layout, double load, const View& view, uint32_t count, uint64_t refused,
                     BulkOperations<View>& operations, cudaStream_t stream, const Arrays& a, Table& table,
                     const Ceilings& c, const Clear& clear, const Refill& refill) {
  const std::string at = " at " + fixed(load, 2);
  const auto nothing = [] {};
  const auto row = [&](const std::string& what, double seconds, double ceiling, const char* of, uint64_t wrong) {
    table.add({layout + " " + what + at, count / seconds * 1e-9, "G/s", ceiling, of, wrong, ""});
  };
  const auto find_row = [&](const std::string& what, const auto& through, bool present) {
    const uint32_t* const keys = present ? a.keys : a.absent;
    const double s = seconds_of(
        [&] {
          launch_each("find, one thread a key", count, stream, find_one_by_one<std::decay_t<decltype(through)>>,
                      through, keys, count, a.out);
        },
        nothing, stream);
    const uint64_t wrong = wrong_answers(keys, a.out, count, present, a.counter);
    row("find, one thread a key, " + what, s, c.read_8, "random reads", present && wrong == refused ? 0 : wrong);
  };
  find_row("present", view, true);
  find_row("read-only, present", ReadOnly<View>{view}, true);
  find_row("read-only, absent", ReadOnly<View>{view}, false);
  if (load == 0.5) {
    const auto empty = [&] { clear(), require(cudaMemset(a.counter, 0, sizeof(*a.counter)), "clear a counter"); };
    const double s = seconds_of(
        [&] {
          launch_each("insert, one thread a key", count, stream, insert_one_by_one<View>, view, a.keys, a.values, count,
                      a.counter);
        },
        empty, stream);
    unsigned long long wrong = 0;
    require(cudaMemcpy(&wrong, a.counter, sizeof(wrong), cudaMemcpyDeviceToHost), "read a counter");
    good(operations.find(view, a.keys, count, a.out, nullptr));
    row("insert, one thread a key", s, c.swap_8, "random CAS",
        wrong + wrong_answers(a.keys, a.out, count, true, a.counter));

    // Small batches on the caller's stream: what the call takes, and until a host that waits sees it done.
    constexpr uint32_t kFew = 1000;
    OutcomeCounts* const counts = reinterpret_cast<OutcomeCounts*>(a.out);
    clear(), require(cudaMemset(counts, 0, sizeof(*counts)), "clear counters");
    std::vector<double> returned, done;
    constexpr uint32_t kBatches = 200;
    const auto enqueue = [&](uint32_t batch) {
      good(enqueue_insert(stream, view, a.keys + size_t{batch} * kFew, a.values + size_t{batch} * kFew, kFew, nullptr,
                          counts));
    };
    const auto wait = [&] { require(cudaStreamSynchronize(stream), "wait"); };
    const auto since = [](std::chrono::steady_clock::time_point start) {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      wait();
      const auto start = std::chrono::steady_clock::now();
      enqueue(batch);
      returned.push_back(since(start));
      wait();
      done.push_back(since(start));
    }
    const auto first = std::chrono::steady_clock::now();
    for (uint32_t batch = kBatches; batch < 2 * kBatches; ++batch) enqueue(batch);
    wait();
    const double in_a_row = since(first) / kBatches;
    OutcomeCounts got{};
    require(cudaMemcpy(&got, counts, sizeof(got), cudaMemcpyDeviceToHost), "read counters");
    std::sort(returned.begin(), returned.end()), std::sort(done.begin(), done.end());
    table.add({layout + " insert of 1,000 keys on the caller's stream, until done", done[kBatches / 2] * 1e6, "us", 0,
               "", 2 * kBatches * kFew - got[Outcome::inserted],
               "the call returns after " + fixed(returned[kBatches / 2] * 1e6, 1) + " us; of 200 in a row each takes " +
                   fixed(in_a_row * 1e6, 1) + " us"});
    clear(), refill();
  }
  if (load == 0.8) {
    const double s =
        seconds_of([&] { good(operations.assign(view, a.keys, a.values, count, nullptr)); }, nothing, stream);
    good(operations.find(view, a.keys, count, a.out, nullptr));
    row("assign known keys, bulk", s, c.swap_8, "random CAS", wrong_answers(a.keys, a.out, count, true, a.counter));
    refill();
  }
}

// The compact layout, through the public grid: at equal load factors, that is, equal memory for equal keys.
void compact_rows(Executor& cuda, const Arrays& a, Table& table, const Ceilings& c) {
  const cudaStream_t stream = cuda_stream_of(cuda);
  const auto time = [&](const auto& operate, const auto& prepare) { return seconds_of(operate, prepare, stream); };
  const auto nothing = [] {};
  const auto rate = [](double count, double seconds) { return count / seconds * 1e-9; };
  BulkReport report;
  struct Load {
    double load;
    uint32_t pages;
  };
  for (const Load& l : {Load{0.5, 65536}, Load{0.8, 32768}, Load{0.9, 32768}, Load{0.95, 32768}, Load{0.95, 16384}}) {
    const uint32_t count = uint32_t(l.load * l.pages * 4096.0);
    const std::string at = " at " + fixed(l.load, 2) + (l.pages == 16384 ? " in 2^26 slots" : "");
    Grid grid = good(Grid::create(cuda, {.capacity = count, .max_load_factor = l.load, .layout = Layout::compact}));
    const std::span<const uint32_t> keys(a.keys, count), values(a.values, count), absent(a.absent, count);
    const std::span<uint32_t> out(a.out, count);
    const auto clear = [&] { good(grid.clear()); };
    const auto fill = [&] { report = good(grid.insert(keys, values)); };
    const auto wrong = [&](bool present) {
      return wrong_answers(present ? a.keys : a.absent, a.out, count, present, a.counter);
    };
    double s = time(fill, clear);
    good(grid.find(keys, out));
    const Stats stats = good(grid.stats());
    table.add({"compact insert, bulk" + at, rate(count, s), "G/s", c.radix_16_bits, "two radix passes",
               wrong(true) + (grid.page_count() != l.pages) + (stats.live != count),
               "depth mean " + fixed(stats.depth_mean, 3) + " max " + std::to_string(stats.depth_max) + ", " +
                   std::to_string(stats.overflow_live) + " in the stash"});
    s = time([&] { good(grid.find(keys, out)); }, nothing);
    table.add({"compact find, present" + at, rate(count, s), "G/s", c.read_8, "random reads", wrong(true), ""});
    s = time([&] { good(grid.find(absent, out)); }, nothing);
    table.add({"compact find, absent" + at, rate(count, s), "G/s", c.read_8, "random reads", wrong(false), ""});
    if (l.pages != 16384)
      own_kernel_rows("compact", l.load, grid.compact_view(), count, 0, cuda.compact(), stream, a, table, c, clear,
                      fill);
    if (l.load == 0.5 || l.load == 0.9) {
      s = time([&] { report = good(grid.erase(keys.first(count / 2))); }, [&] { clear(), fill(); });
      table.add({"compact erase half" + at, rate(count / 2, s), "G/s", c.swap_8, "random CAS", report.absent, ""});
    }
    if (l.load == 0.5) {
      const uint32_t half = count / 2;
      const auto half_full = [&] { clear(), good(grid.insert(keys.first(half), values.first(half))); };
      s = time([&] { report = good(grid.insert(keys.last(half), values.last(half))); }, half_full);
      good(grid.find(keys, out));
      table.add({"compact insert into a grid in use, to 0.5", rate(half, s), "G/s", c.radix_16_bits, "two radix passes",
                 wrong(true), ""});
      const CompactView view = grid.compact_view();
      s = time([&] { report = good(cuda.compact().insert(view, a.keys + half, a.values + half, half, nullptr)); },
               half_full);
      table.add({"compact the same, beside other operations", rate(half, s), "G/s", c.swap_8, "random CAS",
                 half - report.inserted, ""});
      Outcome* const each = reinterpret_cast<Outcome*>(a.out);
      s = time([&] { report = good(cuda.compact().insert(view, a.keys + half, a.values + half, half, each)); },
               half_full);
      table.add({"compact the same, one by one, concurrent", rate(half, s), "G/s", c.swap_8, "random CAS",
                 half - report.inserted, ""});
    }
    if (l.load == 0.8) {
      clear(), fill();
      const double gb = double(l.pages) * kQryPageBytes * 1e-9;
      const CompactView view = grid.compact_view();
      s = time([&] { good(grid.stats()); }, nothing);
      table.add({"compact statistics (bytes read)", gb / s, "GB/s", c.copy_gb, "copy", 0, fixed(s * 1e6, 0) + " us"});
      uint64_t listed = 0;
      s = time([&] { listed = good(cuda.compact().enumerate(view, a.out, a.absent, a.count)); }, nothing);
      table.add({"compact enumerate (bytes read twice and written)", (2 * gb + count * 8e-9) / s, "GB/s", c.copy_gb,
                 "copy", listed != count, ""});
      fill_uniform(a.absent, nullptr, a.count, a.count);
      s = time([&] { good(grid.sweep()); }, [&] { clear(), fill(), good(grid.erase(keys.first(count / 8))); });
      good(grid.find(keys.subspan(count / 8), out.subspan(count / 8)));
      table.add({"compact sweep, an eighth erased (read and written)", 2 * gb / s, "GB/s", c.copy_gb, "copy",
                 wrong_answers(a.keys + count / 8, a.out + count / 8, count - count / 8, true, a.counter) +
                     good(grid.stats()).freed,
                 ""});
      s = time([&] { good(grid.sweep()); }, nothing);
      table.add({"compact sweep, nothing to do", 2 * gb / s, "GB/s", c.copy_gb, "copy", 0, ""});
      // Half the pages grow to the full number.
      const uint32_t few = l.pages / 2, keys_in_few = count / 2;
      const CompactView small = compact_view(a.table + (size_t{1} << 27), few), large = compact_view(a.table, l.pages);
      good(cuda.compact().clear(small));
      good(cuda.compact().insert_exclusive(small, a.keys, a.values, keys_in_few, true));
      uint64_t left = 0;
      s = time([&] { left = good(cuda.compact().rehash(small, large)); }, [&] { good(cuda.compact().clear(large)); });
      good(cuda.compact().find(large, a.keys, keys_in_few, a.out, nullptr));
      table.add({"compact grow x2 (bytes read and written)", gb * 1.5 / s, "GB/s", c.copy_gb, "copy",
                 wrong_answers(a.keys, a.out, keys_in_few, true, a.counter) + left,
                 fixed(rate(keys_in_few, s), 1) + " G keys/s"});
    }
  }
}

}  // namespace

int bench_hashgrid_cuda(const CudaBenchOptions& options, std::string* json) try {
  const std::unique_ptr<Executor> executor = good(make_cuda_executor());
  Executor& cuda = *executor;
  const cudaStream_t stream = cuda_stream_of(cuda);
  cudaDeviceProp device{};
  int driver = 0;
  require(cudaGetDeviceProperties(&device, cuda_device_of(cuda).ordinal), "ask the device");
  require(cudaDriverGetVersion(&driver), "ask the driver");
  if (options.print)
    std::printf("%s, %d multiprocessors, CUDA driver %d.%d\n", device.name, device.multiProcessorCount, driver / 1000,
                driver % 1000 / 10);

  Arrays a;
  Table table(options.print, options.progress);
  fill_uniform(a.keys, a.values, a.count, 0);
  fill_uniform(a.absent, nullptr, a.count, a.count);
  const Ceilings c = measure_ceilings(a.table, 1u << 28, a.keys, a.values, a.out, a.absent, a.count);
  fill_uniform(a.absent, nullptr, a.count, a.count);
  const auto ceiling = [&](const char* name, double rate, const char* unit = "G/s") {
    table.add({name, rate, unit, 0, "", 0, ""});
  };
  ceiling("ceiling: random reads of 8 bytes", c.read_8);
  ceiling("ceiling: random sectors, two L2 loads", c.read_32);
  ceiling("ceiling: random compare-and-swap", c.swap_8);
  ceiling("ceiling: the same in 16 MiB", c.swap_8_in_l2);
  ceiling("ceiling: pages filled in shared memory", c.shared_fill);
  ceiling("ceiling: CUB radix sort, 8 bits", c.radix_8_bits);
  ceiling("ceiling: CUB radix sort, 16 bits", c.radix_16_bits);
  ceiling("ceiling: copy", c.copy_gb, "GB/s");

  const auto time = [&](const auto& operate, const auto& prepare) { return seconds_of(operate, prepare, stream); };
  const auto nothing = [] {};
  const auto rate = [](double count, double seconds) { return count / seconds * 1e-9; };
  BulkReport report;
  const auto finish = [&] {
    *json = table.json(std::string("  \"machine\": \"") + device.name +
                       "\",\n  \"cuda_driver\": " + std::to_string(driver) + ",\n");
    if (options.print) std::printf("%s\n", table.all_right() ? "all answers right" : "WRONG ANSWERS");
    return table.all_right() ? 0 : 1;
  };

  struct Load {
    double load;
    uint32_t pages;
  };
  for (const Load& l : {Load{0.5, 65536}, Load{0.8, 32768}, Load{0.9, 32768}, Load{0.95, 32768}}) {
    if (options.only == Only::compact) break;
    const uint32_t count = uint32_t(l.load * l.pages * 4096.0);
    const GridView view{a.table, l.pages, 1};
    const std::string at = " at " + fixed(l.load, 2);
    const auto clear = [&] { good(cuda.pairs().clear(view)); };
    const auto fill = [&] { report = good(cuda.pairs().insert_exclusive(view, a.keys, a.values, count, true)); };
    const auto refill = [&] { clear(), fill(); };
    const auto look_wrong = [&](bool present) {
      return wrong_answers(present ? a.keys : a.absent, a.out, count, present, a.counter);
    };

    double s = time(fill, clear);
    const uint64_t refused = report.full;
    good(cuda.pairs().find(view, a.keys, count, a.out, nullptr));
    const uint64_t lost = look_wrong(true);
    const Stats stats = good(cuda.pairs().stats(view));
    table.add({"pairs insert, bulk" + at, rate(count, s), "G/s", c.radix_16_bits, "two radix passes",
               lost == refused ? 0 : lost,
               "refused " + std::to_string(refused) + ", depth mean " + fixed(stats.depth_mean, 3) + " max " +
                   std::to_string(stats.depth_max)});
    s = time([&] { report = good(cuda.pairs().find(view, a.keys, count, a.out, nullptr)); }, nothing);
    table.add({"pairs find, present" + at, rate(count, s), "G/s", c.read_8, "random reads",
               report.absent == refused ? 0 : look_wrong(true), ""});
    s = time([&] { report = good(cuda.pairs().find(view, a.absent, count, a.out, nullptr)); }, nothing);
    table.add({"pairs find, absent" + at, rate(count, s), "G/s", c.read_8, "random reads", look_wrong(false), ""});
    own_kernel_rows("pairs", l.load, view, count, refused, cuda.pairs(), stream, a, table, c, clear, refill);
    const GridView next{a.table, l.pages, 2};
    if (l.load == 0.5 || l.load == 0.9) {
      s = time([&] { report = good(cuda.pairs().erase(next, a.keys, count / 2, nullptr, nullptr)); }, refill);
      table.add(
          {"pairs erase half" + at, rate(count / 2, s), "G/s", c.swap_8, "random CAS", report.absent > refused, ""});
    }
    if (l.load < 0.9) {
      s = time(
          [&] { report = good(cuda.pairs().insert(view, a.keys, a.values, count, reinterpret_cast<Outcome*>(a.out))); },
          clear);
      table.add({"pairs insert, one by one" + at, rate(count, s), "G/s", c.swap_8, "random CAS",
                 report.inserted + report.full != count, ""});
    }
    if (l.load == 0.5) {
      const uint32_t half = count / 2;
      const auto half_full = [&] { clear(), good(cuda.pairs().insert_exclusive(view, a.keys, a.values, half, true)); };
      s = time([&] { report = good(cuda.pairs().insert_exclusive(next, a.keys + half, a.values + half, half, false)); },
               half_full);
      good(cuda.pairs().find(view, a.keys, count, a.out, nullptr));
      table.add({"pairs insert into a grid in use, to 0.5", rate(half, s), "G/s", c.radix_16_bits, "two radix passes",
                 look_wrong(true) + report.full, ""});
      s = time([&] { report = good(cuda.pairs().insert(next, a.keys + half, a.values + half, half, nullptr)); },
               half_full);
      good(cuda.pairs().find(view, a.keys, count, a.out, nullptr));
      table.add({"pairs the same, beside other operations", rate(half, s), "G/s", c.swap_8, "random CAS",
                 look_wrong(true) + report.full, ""});
    }
    if (l.load == 0.8) {
      refill();
      const double gb = double(l.pages) * kQryPageBytes * 1e-9;
      const double live = double(report.inserted);
      s = time([&] { good(cuda.pairs().stats(view)); }, nothing);
      table.add({"statistics (bytes read)", gb / s, "GB/s", c.copy_gb, "copy", 0, fixed(s * 1e6, 0) + " us"});
      s = time([&] { good(cuda.pairs().sweep(next)); }, nothing);
      table.add({"sweep (bytes read and written)", 2 * gb / s, "GB/s", c.copy_gb, "copy", 0, ""});
      uint64_t listed = 0;
      s = time([&] { listed = good(cuda.pairs().enumerate(view, a.out, a.absent, a.count)); }, nothing);
      table.add({"enumerate (bytes read twice and written)", (2 * gb + live * 8e-9) / s, "GB/s", c.copy_gb, "copy",
                 listed != report.inserted, ""});
      fill_uniform(a.absent, nullptr, a.count, a.count);
      // Half the pages grow to the full number.
      const uint32_t few = l.pages / 2, keys_in_few = count / 2;
      const GridView small{a.table + (size_t{1} << 27), few, 1}, large{a.table, l.pages, 1};
      good(cuda.pairs().clear(small));
      good(cuda.pairs().insert_exclusive(small, a.keys, a.values, keys_in_few, true));
      uint64_t left = 0;
      s = time([&] { left = good(cuda.pairs().rehash(small, large)); }, [&] { good(cuda.pairs().clear(large)); });
      good(cuda.pairs().find(large, a.keys, keys_in_few, a.out, nullptr));
      table.add({"grow x2 (bytes read and written)", gb * 1.5 / s, "GB/s", c.copy_gb, "copy",
                 wrong_answers(a.keys, a.out, keys_in_few, true, a.counter) + left,
                 fixed(rate(keys_in_few, s), 1) + " G keys/s"});
    }
  }

  if (options.only != Only::pairs) compact_rows(cuda, a, table, c);
  if (options.only == Only::compact) return finish();

  {  // Each key four times.
    const uint32_t distinct = a.count / 4, pages = 16384;
    const GridView view{a.table, pages, 1};
    launch_each("make copies", a.count, nullptr, make_copies, a.keys, a.values, a.count, distinct);
    const double s = time([&] { report = good(cuda.pairs().insert_exclusive(view, a.keys, a.values, a.count, true)); },
                          [&] { good(cuda.pairs().clear(view)); });
    good(cuda.pairs().find(view, a.keys, a.count, a.out, nullptr));
    const Stats stats = good(cuda.pairs().stats(view));
    table.add({"pairs insert, 4 copies of each key", rate(a.count, s), "G/s", c.radix_16_bits, "two radix passes",
               wrong_answers(a.keys, a.out, a.count, true, a.counter) + report.full + (stats.live != report.inserted),
               ""});
  }

  {  // Churn: a window of keys slides on by 1/16 of the capacity, 1600 times, which inserts 100 capacities.
    const uint32_t pages = 4096, slots = pages * kQrySlotsPerPage, live = uint32_t(slots * 0.7), step = slots / 16,
                   rounds = 1600;
    GridView view{a.table, pages, 1};
    good(cuda.pairs().clear(view));
    fill_uniform(a.keys, a.values, a.count, 0);
    const uint32_t turn = (a.count / step - 16) * step;  // the keys recur long after they were erased
    const auto key_at = [&](uint64_t position) { return a.keys + position % turn; };
    const auto value_at = [&](uint64_t position) { return a.values + position % turn; };
    uint64_t full = good(cuda.pairs().insert_exclusive(view, a.keys, a.values, live / step * step, true)).full,
             begin = 0;
    double first = 0, last = 0;
    for (uint32_t r = 0; r < rounds; ++r) {
      const uint64_t end = begin + live / step * step;
      const double s = seconds_of(
          [&] {
            ++view.phase;
            good(cuda.pairs().erase(view, key_at(begin), step, nullptr, nullptr));
            ++view.phase;
            full += good(cuda.pairs().insert_exclusive(view, key_at(end), value_at(end), step, false)).full;
            ++view.phase;
            if (r % 16 == 15) good(cuda.pairs().sweep(view));  // once a capacity; its time counts
          },
          nothing, stream, 0);
      begin += step;
      if (r >= 8 && r < 108) first += s;
      if (r >= rounds - 100) last += s;
    }
    table.add({"churn at 0.7, first 6 capacities", rate(200.0 * step, first), "G/s", 0, "", 0, ""});
    table.add({"churn at 0.7, after 94 capacities", rate(200.0 * step, last), "G/s", 0, "", 0,
               fixed(first / last, 3) + " of the rate at first, " + std::to_string(full) + " refused"});
  }

  {  // Sort + binary search, the common alternative.
    const uint32_t count = 1u << 26;
    fill_uniform(a.keys, a.values, a.count, 0);
    uint32_t *sorted = reinterpret_cast<uint32_t*>(a.table), *sorted_values = sorted + count;
    size_t bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, a.keys, sorted, a.values, sorted_values, count);
    void* temporary = nullptr;
    require(cudaMalloc(&temporary, bytes), "temporary memory of the radix sort");
    double s = seconds_of(
        [&] { cub::DeviceRadixSort::SortPairs(temporary, bytes, a.keys, sorted, a.values, sorted_values, count); });
    table.add({"baseline: radix sort of 2^26 pairs", rate(count, s), "G/s", 0, "", 0, ""});
    s = seconds_of([&] { thrust::lower_bound(thrust::device, sorted, sorted + count, a.keys, a.keys + count, a.out); });
    table.add({"baseline: binary search in them", rate(count, s), "G/s", c.read_8, "random reads", 0, ""});
    cudaFree(temporary);
  }

  {  // Bricks.
    const uint32_t pages = 8192;
    const uint32_t count = make_scan(a.keys, a.values, a.absent);
    uint32_t* const bits = device_array<uint32_t>(size_t{1} << 27);
    require(cudaMemset(bits, 0, size_t{1} << 29), "clear bits");
    launch_each("mark bricks", count, nullptr, mark, a.keys, count, bits);
    const auto counted = [&](const auto& check) {
      require(cudaMemset(a.counter, 0, sizeof(*a.counter)), "clear a counter");
      check();
      unsigned long long wrong = 0;
      require(cudaMemcpy(&wrong, a.counter, sizeof(wrong), cudaMemcpyDeviceToHost), "check");
      return uint64_t{wrong};
    };
    uint32_t* const around = device_array<uint32_t>(size_t{26} * count);
    const auto neighbours_right = [&](bool all) {
      return [&, all] {
        launch_each("check neighbours", count, nullptr, check_neighbours, bits, a.keys, count, all, around, a.counter);
      };
    };
    const auto values_right = [&] {
      launch_each("check values", count, nullptr, check_values, a.values, a.out, count, a.counter);
    };
    for (const uint32_t locality : {kQryPlain, kQryRows}) {
      const GridView view{a.table, pages, 1, locality};
      const std::string how = locality == kQryPlain ? ", plain" : ", rows";
      const uint32_t* const keys = a.keys;
      double s = time([&] { report = good(cuda.pairs().insert_exclusive(view, keys, a.values, count, true)); },
                      [&] { good(cuda.pairs().clear(view)); });
      const Stats stats = good(cuda.pairs().stats(view));
      table.add({"V: scan insert" + how, rate(count, s), "G/s", c.radix_16_bits, "two radix passes",
                 report.inserted != count,
                 std::to_string(count) + " bricks, depth mean " + fixed(stats.depth_mean, 3) + " max " +
                     std::to_string(stats.depth_max)});
      s = time([&] { report = good(cuda.pairs().find(view, keys, count, a.out, nullptr)); }, nothing);
      table.add({"V: self" + how, rate(count, s), "G/s", c.read_8, "random reads", counted(values_right), ""});
      s = time([&] { good(find_neighbours(cuda, view, keys, count, Neighbourhood::faces, around)); }, nothing);
      table.add({"V: nbr6" + how, rate(6.0 * count, s), "G/s", c.read_8, "random reads",
                 counted(neighbours_right(false)), "24 bytes written"});
      s = time([&] { launch_each("six finds", count, stream, six_finds, view, keys, count, around); }, nothing);
      table.add({"V: nbr6 by six finds" + how, rate(6.0 * count, s), "G/s", c.read_8, "random reads",
                 counted(neighbours_right(false)), ""});
      s = time([&] { good(find_neighbours(cuda, view, keys, count, Neighbourhood::all, around)); }, nothing);
      table.add({"V: nbr26" + how, rate(26.0 * count, s), "G/s", c.read_8, "random reads",
                 counted(neighbours_right(true)), "104 bytes written"});
      s = time(
          [&] {
            report = good(cuda.pairs().erase({a.table, pages, 2, locality}, keys, count / 2, nullptr, nullptr));
          },
          [&] {
            good(cuda.pairs().clear(view)), good(cuda.pairs().insert_exclusive(view, keys, a.values, count, true));
          });
      table.add(
          {"V: erase half in scan order" + how, rate(count / 2, s), "G/s", c.swap_8, "random CAS", report.absent, ""});
    }
    cudaFree(around);
    cudaFree(bits);
  }

  if (!options.sweep_path.empty()) {  // 2^26 slots
    const uint32_t pages = 16384, slots = pages * 4096;
    fill_uniform(a.keys, a.values, a.count, 0);
    std::ofstream out(options.sweep_path);
    out << "load,pairs_rate,pairs_mean,pairs_max,pairs_refused,compact_rate,compact_mean,compact_max,"
           "simple_rate,simple_mean,simple_max\n";
    uint32_t* const deepest = reinterpret_cast<uint32_t*>(a.counter);
    unsigned long long* const depth_sum = device_array<unsigned long long>(1);
    for (const double load : {0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4,  0.45, 0.5,  0.55,
                              0.6,  0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97}) {
      const uint32_t count = uint32_t(load * slots);
      const GridView view{a.table, pages, 1};
      const double pairs =
          time([&] { report = good(cuda.pairs().insert_exclusive(view, a.keys, a.values, count, true)); },
               [&] { good(cuda.pairs().clear(view)); });
      const Stats stats = good(cuda.pairs().stats(view));
      const CompactView compact = compact_view(a.table, pages);
      const double built = time([&] { good(cuda.compact().insert_exclusive(compact, a.keys, a.values, count, true)); },
                                [&] { good(cuda.compact().clear(compact)); });
      uint8_t* const depths = reinterpret_cast<uint8_t*>(a.absent);
      good(cuda.compact().find(compact, a.keys, count, a.out, depths));
      std::vector<uint8_t> each(count);
      require(cudaMemcpy(each.data(), depths, count, cudaMemcpyDeviceToHost), "read depths");
      double sum = 0;
      uint32_t most = 0;
      for (const uint8_t d : each) sum += d, most = std::max<uint32_t>(most, d);
      const auto reset = [&] { cudaMemset(a.table, 0xFF, size_t{slots} * 8); };
      const double simple = seconds_of(
          [&] {
            launch_each("insert, the simple table", count, nullptr, insert_simple, a.table, slots - 1, a.keys, a.values,
                        count, nullptr, nullptr);
          },
          reset);
      reset();
      cudaMemset(depth_sum, 0, 8), cudaMemset(deepest, 0, 4);
      launch_each("insert, the simple table", count, nullptr, insert_simple, a.table, slots - 1, a.keys, a.values,
                  count, depth_sum, deepest);
      unsigned long long simple_sum = 0;
      uint32_t simple_max = 0;
      require(cudaMemcpy(&simple_sum, depth_sum, 8, cudaMemcpyDeviceToHost), "read depths");
      require(cudaMemcpy(&simple_max, deepest, 4, cudaMemcpyDeviceToHost), "read depths");
      out << load << ',' << rate(count, pairs) << ',' << stats.depth_mean << ',' << stats.depth_max << ','
          << report.full << ',' << rate(count, built) << ',' << sum / count << ',' << most << ',' << rate(count, simple)
          << ',' << double(simple_sum) / count << ',' << simple_max << '\n';
    }
  }

  return finish();
} catch (const Cancelled&) {
  return 2;
}

}  // namespace quarry::bench
