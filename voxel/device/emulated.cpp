// SPDX-License-Identifier: Apache-2.0
// emulated.cpp - a device of host threads: the bodies of the kernels, run in any order of their blocks and lanes, with
// memory that can be limited and room that can be refused at every step.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/device/run_step.hpp"

namespace quarry::device {
namespace {

constexpr size_t kPageBytes = 4096;

// What a block of threads shares. There is enough for all host threads, so that a kernel which has been launched lacks
// no memory.
class SharedMemory {
 public:
  static constexpr size_t kBytes = size_t(48) << 10;
  // One thread's, until it is given back.
  std::byte* take() {
    for (uint32_t i = 0;; i = (i + 1) % count_)
      if (!memory_[i].taken.exchange(true, std::memory_order_acquire)) return memory_[i].bytes;
  }
  void give_back(std::byte* bytes) {
    for (uint32_t i = 0; i < count_; ++i)
      if (memory_[i].bytes == bytes) memory_[i].taken.store(false, std::memory_order_release);
  }

 private:
  struct Place {
    std::atomic<bool> taken{false};
    alignas(64) std::byte bytes[kBytes];
  };
  const uint32_t count_ = thread_count();
  const std::unique_ptr<Place[]> memory_ = std::make_unique<Place[]>(count_);
};

uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ x >> 33;
}

// Shows 0 .. count - 1 in an order that the seed chooses.
class Shuffled {
 public:
  Shuffled(uint64_t count, uint64_t seed, bool in_order) : count_(count), in_order_(in_order) {
    if (count == 0 || in_order) return;
    first_ = mixed(seed) % count;
    step_ = mixed(seed + 1) % count | 1u;
    while (std::gcd(step_, count) != 1) step_ += 2;
    step_ %= count;
    if (step_ == 0) step_ = 1;
  }
  uint64_t operator()(uint64_t number) const {
    return seeded() ? (first_ + (number % count_) * (step_ % count_)) % count_ : number;
  }

 private:
  bool seeded() const { return !in_order_ && count_ > 1 && count_ < (uint64_t(1) << 31); }
  uint64_t count_, first_ = 0, step_ = 1;
  bool in_order_;
};

class EmulatedExecutor final : public Executor {
 public:
  EmulatedExecutor(Emulation emulation, ShaderMemory* shaders) : emulation_(std::move(emulation)), shaders_(shaders) {}

  Result<Range> reserve(size_t most_bytes, const char* label, bool for_shaders) override {
    QRY_TRY(begin(DeviceCall::allocation, label));
    const size_t size = (most_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    void* const data = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      return fail(ErrorCode::out_of_memory,
                  "no addresses for " + std::to_string(size) + " bytes of " + label + ": raise `ulimit -v`");
    return Range{data, 0, size, label, for_shaders && shaders_};
  }
  Result<void> grow(Range& range, size_t size_bytes) override {
    const size_t size = rounded(size_bytes);
    if (size <= range.size_bytes) return {};
    if (size > range.most_bytes)
      return fail(ErrorCode::full, "a device's array may have at most " + std::to_string(range.most_bytes) +
                                       " bytes, not " + std::to_string(size));
    if (!range.has_room_for_part()) return fail(ErrorCode::out_of_memory, "no host memory for a part of an array");
    QRY_TRY(begin(DeviceCall::allocation, range.label));
    const size_t more = size - range.size_bytes;
    if ((emulation_.memory_limit && held_ + more > emulation_.memory_limit) ||
        mprotect(static_cast<char*>(range.data) + range.size_bytes, more, PROT_READ | PROT_WRITE) != 0)
      return fail(ErrorCode::out_of_memory, "the emulated device has no " + std::to_string(more) + " bytes more");
    ShaderMemory::Block its;
    if (range.for_shaders) {
      void* const at = static_cast<char*>(range.data) + range.size_bytes;
      auto block = shaders_->import_host(at, more, range.label);
      if (!block) {
        mprotect(at, more, PROT_NONE);
        return tl::unexpected(block.error());
      }
      its = std::move(*block);
    }
    range.parts.push_back({range.size_bytes, more, std::move(its)});
    range.size_bytes = size;
    held_ += more;
    return {};
  }
  size_t rounded(size_t size_bytes) const override { return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }
  void release(Range& range) noexcept override {
    range.parts.clear();
    if (range.data) munmap(range.data, range.most_bytes);
    held_ -= range.size_bytes;
    range = {};
  }
  // Memory that comes back is zero.
  void shrink(Range& range, size_t size_bytes) noexcept override {
    while (!range.parts.empty() && range.parts.back().offset_bytes >= size_bytes) {
      const Range::Part& part = range.parts.back();
      void* const at = static_cast<char*>(range.data) + part.offset_bytes;
      const size_t size = part.size_bytes;
      range.parts.pop_back();
      madvise(at, size, MADV_DONTNEED);
      mprotect(at, size, PROT_NONE);
      range.size_bytes -= size;
      held_ -= size;
    }
  }
  bool shares() const override { return shaders_ != nullptr; }
  int device() const override { return -1; }
  Outcome* outcomes() override { return outcomes_.data(); }

  Result<void> run(StepId step, const Memory& memory, const EditCall& call, uint64_t) override {
    QRY_TRY(begin(DeviceCall::launch, name_of(step)));
    ++runs_;
    count_step(step);
    const Clock::time_point began = now_if_timing();
    run_step(step, Runner{*this, memory, call});
    timed(name_of(step), began);
    if (emulation_.refuse)
      if (const uint32_t missing = emulation_.refuse(step)) memory.control->missing |= missing;
    return {};
  }
  Result<uint32_t> sort(const Pairs& pairs, uint32_t count, uint32_t bits) override {
    QRY_TRY(begin(DeviceCall::launch, "sort"));
    const Clock::time_point began = now_if_timing();
    // The number of a pair breaks ties: the sort is stable.
    const uint64_t mask = (uint64_t(1) << bits) - 1u;
    std::vector<uint64_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[i] = (pairs.keys[0][i] & mask) << 32 | i;
    std::sort(order.begin(), order.end());
    parallel_for(count, size_t(1) << 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        pairs.keys[1][i] = pairs.keys[0][uint32_t(order[i])];
        pairs.values[1][i] = pairs.values[0][uint32_t(order[i])];
      }
    });
    timed(StepTimes::kSort, began);
    return 1u;
  }
  Result<void> trace(const RayWorld& world, const hashgrid::GridView& grid, size_t count, const FillRays& fill,
                     const TakeHits& take) override {
    constexpr size_t kPiece = size_t(1) << 16;
    std::vector<Ray> rays(std::min(count, kPiece));
    std::vector<RayHit> hits(rays.size());
    for (size_t first = 0; first < count; first += kPiece) {
      const size_t size = std::min(kPiece, count - first);
      fill(first, std::span(rays).first(size));
      QRY_TRY(begin(DeviceCall::launch, "trace rays"));
      parallel_for(size, 256, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) hits[i] = trace_given(world, grid, rays[i]);
      });
      take(first, std::span<const RayHit>(hits).first(size));
    }
    traffic_.to_device_bytes += count * sizeof(Ray);
    traffic_.from_device_bytes += count * sizeof(RayHit);
    return {};
  }
  Result<void> trace_there(const RayWorld& world, const hashgrid::GridView& grid, const Ray* rays, size_t count,
                           RayHit* hits) override {
    QRY_TRY(begin(DeviceCall::launch, "trace rays"));
    parallel_for(count, 256, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) hits[i] = trace_given(world, grid, rays[i]);
    });
    return {};
  }
  // Everything is done when a call returns.
  Result<void> wait_for(void*) override { return begin(DeviceCall::wait, "order streams"); }
  Result<void> signal(void*) override { return begin(DeviceCall::wait, "order streams"); }
  Result<void> copy_in_made(uint64_t* to, size_t count, const MakeWords& make) override {
    if (count == 0) return {};
    QRY_TRY(begin(DeviceCall::copy, "copy to the device"));
    traffic_.to_device_bytes += count * sizeof(uint64_t);
    parallel_for(count, size_t(1) << 14,
                 [&](size_t begin, size_t end) { make(begin, std::span(to + begin, end - begin)); });
    return {};
  }
  Result<void> copy_in(void* to, const void* from_host, size_t size_bytes) override {
    traffic_.to_device_bytes += size_bytes;
    return copy(to, from_host, size_bytes, "copy to the device");
  }
  Result<void> copy_in_kept(void* to, const void* from_host, size_t size_bytes) override {
    return copy_in(to, from_host, size_bytes);
  }
  std::shared_ptr<void> host_memory(size_t size_bytes) override {
    void* const data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    return {data, [size_bytes](void* at) { munmap(at, size_bytes); }};
  }
  Result<void> copy_out(void* to_host, const void* from, size_t size_bytes) override {
    traffic_.from_device_bytes += size_bytes;
    return copy(to_host, from, size_bytes, "copy from the device");
  }
  Result<void> copy_within(void* to, const void* from, size_t size_bytes) override {
    return copy(to, from, size_bytes, "copy within the device");
  }
  Result<void> wait() override { return begin(DeviceCall::wait, "wait for edits"); }
  uint64_t size_bytes() const override { return held_; }

  void time_steps(bool on) override { timing_ = on; }
  StepTimes take_times() override { return std::exchange(times_, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point now_if_timing() const { return timing_ ? Clock::now() : Clock::time_point(); }
  void timed(const char* name, Clock::time_point began) {
    if (timing_) times_.add({name, 1, std::chrono::duration<double, std::milli>(Clock::now() - began).count()});
  }
  Result<void> begin(DeviceCall call, const char* doing) {
    const Fault fault = lost_ ? Fault::lost : emulation_.before ? emulation_.before(call) : Fault::none;
    if (fault == Fault::no_memory && call == DeviceCall::allocation)
      return fail(ErrorCode::out_of_memory, std::string("the emulated device has no memory for ") + doing);
    lost_ = fault == Fault::lost;
    if (!lost_) return {};
    return fail(ErrorCode::device_lost, std::string("the emulated device: ") + doing +
                                            ": it is lost, with all that its memory held: destroy what is there, and "
                                            "open files again");
  }
  Result<void> copy(void* to, const void* from, size_t size_bytes, const char* doing) {
    if (size_bytes == 0) return {};
    QRY_TRY(begin(DeviceCall::copy, doing));
    std::copy_n(static_cast<const char*>(from), size_bytes, static_cast<char*>(to));
    return {};
  }

  struct Runner {
    EmulatedExecutor& device;
    const Memory& memory;
    const EditCall& call;

    template <class Body>
    void single() const {
      Body::run(memory, call);
    }
    template <class Body>
    void items() const {
      constexpr uint64_t kBlock = 64;
      const uint64_t count = Body::items(memory, call), blocks = (count + kBlock - 1) / kBlock;
      const Shuffled order(blocks, device.emulation_.seed + device.runs_, device.emulation_.in_order);
      const auto some = [&](size_t begin, size_t end) {
        Sums sums;
        for (size_t b = begin; b < end; ++b) {
          const uint64_t first = order(b) * kBlock, last = std::min(first + kBlock, count);
          for (uint64_t i = first; i < last; ++i) Body::run(memory, call, i, sums);
        }
        add_sums(*memory.control, sums);
      };
      parallel_for(size_t(blocks), 16, std::ref(some));  // a step that has begun asks for no memory
      tail<Body>();
    }
    template <class Body>
    void blocks() const {
      const uint64_t count = Body::items(memory, call);
      const bool in_order = device.emulation_.in_order;
      const Shuffled order(count, device.emulation_.seed + device.runs_, in_order);
      using Shared = typename Body::Shared;
      static_assert(sizeof(Shared) <= SharedMemory::kBytes && std::is_trivially_copyable_v<Shared>);
      const auto some = [&](size_t begin, size_t end) {
        // A kernel's shared memory has any content.
        std::byte* const memory_of_block = device.shared_memory_.take();
        if (!in_order) std::memset(memory_of_block, 0xA5, sizeof(Shared));
        auto& shared = *reinterpret_cast<Shared*>(memory_of_block);
        Block<Body::kThreads> block{in_order ? 0 : uint32_t(mixed(device.emulation_.seed + begin))};
        if constexpr (requires { Body::begin(shared, block); }) Body::begin(shared, block);
        for (size_t b = begin; b < end; ++b) Body::run(memory, call, order(b), shared, block);
        if constexpr (requires { Body::end(memory, call, shared, block); }) Body::end(memory, call, shared, block);
        device.shared_memory_.give_back(memory_of_block);
      };
      parallel_for(size_t(count), 1, std::ref(some));
      tail<Body>();
    }
    template <class Body>
    void tail() const {
      if constexpr (requires { typename Body::Tail; }) Body::Tail::run(memory, call);
    }
  };
  // The lanes of a block one after the other, beginning with any.
  template <uint32_t kThreads>
  struct Block {
    uint32_t first;
    template <class Body>
    void each(const Body& body) {
      for (uint32_t i = 0; i < kThreads; ++i) body((first + i) % kThreads);
    }
  };

  Emulation emulation_;
  SharedMemory shared_memory_;
  ShaderMemory* shaders_;
  std::array<Outcome, kOutcomes> outcomes_{};
  std::atomic<uint64_t> held_{0};
  bool lost_ = false;
  uint64_t runs_ = 0;
  bool timing_ = false;
  StepTimes times_;
};

}  // namespace

const char* name_of(StepId step) {
  static constexpr std::array<const char*, size_t(StepId::count)> kNames{"find tiles",
                                                                         "touch a box",
                                                                         "touch tiles",
                                                                         "touch the grid",
                                                                         "touch a list",
                                                                         "cut",
                                                                         "cut by a list",
                                                                         "settle an undo",
                                                                         "settle a redo",
                                                                         "write keys",
                                                                         "erase keys",
                                                                         "roll back",
                                                                         "write regions",
                                                                         "write tops",
                                                                         "release",
                                                                         "clear a grid",
                                                                         "move keys",
                                                                         "forget steps",
                                                                         "recycle bricks",
                                                                         "find places",
                                                                         "find moves",
                                                                         "move bricks",
                                                                         "redirect",
                                                                         "list places",
                                                                         "leave places",
                                                                         "list records",
                                                                         "join records",
                                                                         "copy the pyramid",
                                                                         "begin bounds",
                                                                         "find bounds",
                                                                         "gather bricks",
                                                                         "gather places",
                                                                         "look keys up",
                                                                         "begin a list",
                                                                         "list what is combined",
                                                                         "copy materials",
                                                                         "find nodes around",
                                                                         "list nodes around",
                                                                         "grow or erode masks",
                                                                         "grow or erode materials",
                                                                         "survey a list",
                                                                         "key voxels",
                                                                         "begin bricks",
                                                                         "assemble bricks",
                                                                         "list a box",
                                                                         "read a box",
                                                                         "clear a table",
                                                                         "seed a flood",
                                                                         "number bricks",
                                                                         "flood",
                                                                         "begin parts",
                                                                         "list bricks",
                                                                         "label bricks",
                                                                         "join bricks",
                                                                         "number parts",
                                                                         "clear parts",
                                                                         "measure pieces",
                                                                         "count materials",
                                                                         "pick materials",
                                                                         "list what is lost",
                                                                         "sort bricks in",
                                                                         "mask bricks",
                                                                         "survey placed volumes",
                                                                         "scan placed volumes",
                                                                         "list contributions",
                                                                         "group contributions",
                                                                         "list filled bricks",
                                                                         "compose bricks",
                                                                         "begin statistics",
                                                                         "sum statistics",
                                                                         "begin to compare",
                                                                         "sum voxels",
                                                                         "compare bricks",
                                                                         "begin words",
                                                                         "count words",
                                                                         "sum words",
                                                                         "survey words",
                                                                         "scan words",
                                                                         "place words",
                                                                         "pack bricks",
                                                                         "unpack bricks"};
  static_assert(kNames.back() != nullptr, "each step has a name");
  return step < StepId::count ? kNames[size_t(step)] : "no step";
}

void StepTimes::add(const Time& time) {
  // Names are pointers to the same text, one a step.
  size_t i = 0;
  while (i < count_ && times_[i].name != time.name) ++i;
  if (i == times_.size()) return;
  if (i == count_) times_[count_++].name = time.name;
  times_[i].launches += time.launches;
  times_[i].ms += time.ms;
}

double StepTimes::ms() const {
  double sum = 0;
  for (const Time& time : steps()) sum += time.ms;
  return sum;
}

std::unique_ptr<Executor> make_emulated_executor(Emulation emulation, ShaderMemory* shaders) {
  return std::make_unique<EmulatedExecutor>(std::move(emulation), shaders);
}

}  // namespace quarry::device
