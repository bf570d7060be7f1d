// SPDX-License-Identifier: Apache-2.0
// executor.hpp - what runs the steps of an edit: a CUDA device, or host threads that stand in for one.
//
// The host only launches: run() returns before the step has run, and nothing comes back but through Memory::outcomes
// and copy_out(). Steps run one after the other, in the order of the calls.
//
// A device may be lost at any time (a kernel's fault, hardware, a driver that restarts). Calls that need it answer
// device_lost from then on, wherever `device` stands as an error below, and have done nothing or a part. release(),
// shrink() and the destructor go on to work: they give back what there is to give back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/rays/trace.hpp"

namespace quarry::device {

// The steps of bodies/: those of steps.hpp, growth.hpp, lists.hpp, algebra.hpp, flood.hpp, parts.hpp, flatten.hpp,
// grid_stats.hpp, compare.hpp and pack.hpp.
enum class StepId : uint8_t {
  find_tiles,
  touch_box,
  touch_tiles,
  touch_grid,
  touch_list,
  cut,
  cut_list,
  settle_undo,
  settle_redo,
  keys,
  erase,
  roll_back,
  regions,
  tops,
  release,
  clear_grid,
  rehash,
  forget,
  recycle,
  find_places,
  find_moves,
  move_bricks,
  redirect,
  list_places,
  leave_places,
  list_records,
  join_records,
  copy_pyramid,
  begin_bounds,
  bounds,
  gather,
  gather_places,
  look_up,
  begin_list,
  list_combined,
  copy_materials,
  find_around,
  list_around,
  morph_masks,
  morph_materials,
  survey_list,
  key_voxels,
  begin_bricks,
  assemble,
  list_box,
  read_box,
  clear_table,
  seed_flood,
  number_bricks,
  flood_round,
  begin_parts,
  list_bricks,
  label_bricks,
  join_bricks,
  number_parts,
  clear_parts,
  measure_pieces,
  count_materials,
  pick_materials,
  list_lost,
  sort_in,
  mask_bricks,
  survey_placed,
  scan_placed,
  contribute,
  group_placed,
  list_filled,
  compose,
  begin_grid_stats,
  sum_grid_stats,
  begin_compare,
  sum_voxels,
  compare_bricks,
  begin_words,
  count_words,
  sum_words,
  survey_words,
  scan_words,
  place_words,
  pack_bricks,
  unpack_bricks,
  count,
};
const char* name_of(StepId step);

// What steps took, in the order in which each was first launched: those of one name are summed, so that a flood of
// thousands of rounds is as small as any edit. It allocates nothing.
class StepTimes {
 public:
  static constexpr const char* kSort = "sort";
  struct Time {
    const char* name = "";  // name_of(), or kSort; static
    uint64_t launches = 0;
    double ms = 0;
  };
  void add(const Time& time);
  void add(const StepTimes& others) {
    for (const Time& time : others.steps()) add(time);
  }
  std::span<const Time> steps() const { return std::span(times_).first(count_); }
  double ms() const;  // of all of them

 private:
  std::array<Time, size_t(StepId::count) + 1> times_{};
  size_t count_ = 0;
};

// Lets shaders read a device's arrays in place. What implements it knows Vulkan (engine/sharing/device_blocks.hpp).
class ShaderMemory {
 public:
  struct Block {
    uint64_t address = 0;         // in shaders
    std::shared_ptr<void> owner;  // gives it back
  };
  struct Exported {
    Block block;
    int fd = -1;  // opaque; who imports it takes it over
    size_t allocation_bytes = 0;
  };
  virtual ~ShaderMemory() = default;
  // Device memory of its own, exported. Errors: out_of_memory, device, unsupported.
  virtual Result<Exported> allocate(size_t size_bytes, const char* label) = 0;
  // Host memory, whole pages, which must outlive the block. Errors: out_of_memory, device, unsupported.
  virtual Result<Block> import_host(void* data, size_t size_bytes, const char* label) = 0;
};

// Memory that grows without moving: addresses for `most_bytes`, of which the first `size_bytes` are there.
struct Range {
  void* data = nullptr;
  size_t size_bytes = 0, most_bytes = 0;
  const char* label = "";
  bool for_shaders = false;
  struct Part {
    size_t offset_bytes, size_bytes;
    ShaderMemory::Block block;
  };
  std::vector<Part> parts = {};  // what each growth has added; blocks only if it is for shaders

  // So that a growth which has its memory does not fail on the host's.
  bool has_room_for_part() noexcept {
    try {
      if (parts.size() == parts.capacity()) parts.reserve(2 * parts.size() + 1);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Addresses, and no memory yet. Errors: out_of_memory, device.
  // `label` outlives it. `for_shaders`: they read it, too, if this executor shares memory with them.
  virtual Result<Range> reserve(size_t most_bytes, const char* label, bool for_shaders = false) = 0;
  virtual bool shares() const = 0;
  // The CUDA device's ordinal; -1: host threads. Executors with the same read each other's memory.
  virtual int device() const = 0;
  // At least `size_bytes` are there afterwards, what is new is zero. It may wait for the steps before it. Errors: full
  // (more than the range's most), out_of_memory, device; then nothing has changed.
  virtual Result<void> grow(Range& range, size_t size_bytes) = 0;
  // What a range has at least after grow() of so much.
  virtual size_t rounded(size_t size_bytes) const = 0;
  // What uses it must be done.
  virtual void release(Range& range) noexcept = 0;
  // Gives back each growth that is wholly behind `size_bytes`. What uses it must be done.
  virtual void shrink(Range& range, size_t size_bytes) noexcept = 0;
  // kOutcomes outcomes, zero, that the steps write and the host reads. They live as long as the executor.
  virtual Outcome* outcomes() = 0;

  // `most_items`: what is worth having threads for; more items than that are done too. Errors: device; then the device
  // is lost.
  virtual Result<void> run(StepId step, const Memory& memory, const EditCall& call, uint64_t most_items) = 0;
  // Sorts pairs by the lowest `bits` of their keys, after the steps before it; equal ones keep their order. Both arrays
  // are there twice; the numbers 0 or 1 tells where the sorted ones are. Literature: see lists.hpp. Errors:
  // out_of_memory, device.
  struct Pairs {
    uint32_t *keys[2], *values[2];
  };
  virtual Result<uint32_t> sort(const Pairs& pairs, uint32_t count, uint32_t bits) = 0;
  // Traces `count` rays, by trace_given(), after the steps before it, piece by piece, and returns when the last has
  // been taken. `fill` writes the rays [first, first + size) to where it is told, `take` gets the hits of the same;
  // both for several pieces at once, by several threads. Errors: out_of_memory, device.
  using FillRays = std::function<void(size_t first, std::span<Ray> to)>;
  using TakeHits = std::function<void(size_t first, std::span<const RayHit> hits)>;
  virtual Result<void> trace(const RayWorld& world, const hashgrid::GridView& grid, size_t count, const FillRays& fill,
                             const TakeHits& take) = 0;
  // The same of arrays that are the device's, without waiting.
  virtual Result<void> trace_there(const RayWorld& world, const hashgrid::GridView& grid, const Ray* rays, size_t count,
                                   RayHit* hits) = 0;
  // Of a caller's stream of the device (a cudaStream_t): steps from now on run after what it has got; and what it gets
  // from now on runs after the steps before. Errors: device.
  virtual Result<void> wait_for(void* stream) = 0;
  virtual Result<void> signal(void* stream) = 0;
  // After the steps before it. copy_in() returns when what is copied has been read, copy_out() when it is done. Errors:
  // out_of_memory, device.
  virtual Result<void> copy_in(void* to, const void* from_host, size_t size_bytes) = 0;
  // Makes what copies of many bytes need, which else the first of them does: it takes the driver some 20 ms. Errors: as
  // copy_in().
  virtual Result<void> open_copies() { return {}; }
  // As copy_in(), of words that `make` writes: those of number `first` and behind it, where it is told, for several
  // pieces at once, by several threads.
  using MakeWords = std::function<void(size_t first, std::span<uint64_t> to)>;
  virtual Result<void> copy_in_made(uint64_t* to, size_t count, const MakeWords& make) = 0;
  // As copy_in(), from memory of host_memory(), which stays as it is until the steps before the next wait() are done.
  // Returns when the copy is launched.
  virtual Result<void> copy_in_kept(void* to, const void* from_host, size_t size_bytes) = 0;
  // Memory of the host from which the device copies without the host's help, as long as a handle of it lives; null:
  // there is none. Any thread.
  virtual std::shared_ptr<void> host_memory(size_t size_bytes) = 0;
  virtual Result<void> copy_out(void* to_host, const void* from, size_t size_bytes) = 0;
  // Within the device, after the steps before it. The two do not overlap.
  virtual Result<void> copy_within(void* to, const void* from, size_t size_bytes) = 0;
  // Until all steps have run. Errors: device.
  virtual Result<void> wait() = 0;
  // Of device memory that this executor holds.
  virtual uint64_t size_bytes() const = 0;

  // Times what run() and sort() launch from now on, or no more; at first nothing is timed, which costs nothing. Copies
  // are not timed, nor is what the host does between steps. CUDA: by an event before each launch and one after it; so
  // no step is launched early, steps that are timed do not overlap, and an edit takes a little longer than untimed.
  // The first step on an idle device has in it the microseconds until it begins.
  // After each 512 launches that nobody has asked for the host waits for them. Host threads: by the clock.
  virtual void time_steps(bool on) = 0;
  // Of the steps that were launched since the last call, and timed. Waits for them. What cannot be timed is left out:
  // timing makes no step fail, and of a lost device there are no times.
  virtual StepTimes take_times() = 0;

  // What has gone over the bus since it was made: copies, the arguments of steps, answers, rays and hits.
  struct Traffic {
    uint64_t to_device_bytes = 0, from_device_bytes = 0;
  };
  const Traffic& traffic() const { return traffic_; }

 protected:
  void count_step(StepId step) {
    traffic_.to_device_bytes += sizeof(Memory) + sizeof(EditCall);
    if (step == StepId::tops) traffic_.from_device_bytes += sizeof(Outcome);
  }
  Traffic traffic_;
};

// What the host asks of a device. A sort and rays are launches; a copy that waits is a copy.
enum class DeviceCall : uint8_t { launch, copy, allocation, wait };
enum class Fault : uint8_t {
  none,
  no_memory,  // an allocation is out_of_memory, once; nothing to other calls
  lost        // the device is, at this call
};

// Host threads that run the bodies of the kernels, in any order of their blocks.
struct Emulation {
  uint64_t seed = 0;          // of the order
  uint64_t memory_limit = 0;  // bytes; 0: none
  // Called after each step. What it returns is missing from then on, as if the step had found no room for it.
  std::function<uint32_t(StepId)> refuse = {};
  // Called before each call of a device that is not lost, by the thread that makes it; one at a time.
  std::function<Fault(DeviceCall)> before = {};
  bool in_order = false;  // blocks and lanes, for who does not test: caches have what comes next
};
// `shaders`: null, or what lets shaders read its memory; it must outlive the executor.
std::unique_ptr<Executor> make_emulated_executor(Emulation emulation = {}, ShaderMemory* shaders = nullptr);

// The CUDA device with this ordinal. Errors: not_found, unsupported (a build without CUDA), device, out_of_memory.
Result<std::unique_ptr<Executor>> make_cuda_executor(int device, ShaderMemory* shaders = nullptr);
int cuda_device_count();  // 0 in a build without CUDA, or if CUDA cannot tell

}  // namespace quarry::device
