// SPDX-License-Identifier: Apache-2.0
// scan.hpp - running sums of lists in device memory, and lists of those elements that are wanted, each in one dispatch
// that reads a word once and writes it once. For devices without CUDA too.
//
//   words ---> record_sums ---> what is before each word; the sum of all
//   flags ---> record_select -> places of set flags, or items there, in order; their number; a dispatch over them
//
// Literature: D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016; T. Smith,
// R. Levien and J. Owens, "Decoupled Fallback: A Portable Single-Pass GPU Scan", 2025. shaders/library/scan.glsl says
// what is done otherwise; nothing depends on the order in which a device runs workgroups, or on whether it runs one to
// its end before another.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/functions.hpp"

struct QryScanPush;  // shaders/shared/scan.h

namespace quarry::engine {

// How a device's threads share the work. No result depends on it.
struct ScanOptions {
  uint32_t group = 0;   // threads of a workgroup, a power of two from 64 to what the device has, at most 1024; 0: what
                        // suits the device
  uint32_t quads = 0;   // fours of words of a thread, at most 16; 0: what suits the device
  uint32_t spins = 64;  // looks at a tile before a workgroup sums that tile up itself
  uint32_t trial = 0;   // kQryScan... of shaders/shared/scan.h: workgroups that stall, for tests
  bool own_order = false;  // sums: the other order of a thread's words than suits the device
};

// It owns the state, 16 bytes and 16 bytes a tile (16,384 words on a GPU): a 4096th of the longest list. Calls record
// into the caller's command buffer and never wait. They may be recorded by one thread at a time, and must run one after
// the other on the device's queue, each recording any number of times.
class Scan {
 public:
  // For lists of at most `most_words` words. Makes two pipelines and clears the state, and waits for that. Errors:
  // invalid_argument, for options out of range; unsupported, for a device without arithmetic or ballots over subgroups
  // in compute shaders; out_of_memory; device.
  static Result<std::unique_ptr<Scan>> create(Device& device, uint32_t most_words, const ScanOptions& options = {});
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // All numbers below are device addresses of 32-bit words or their counts. The caller allocates all lists. Lists are
  // at multiples of 16 bytes, single words at multiples of 4. What is read and what is written must not overlap: a
  // workgroup that waits too long reads the words of others again.
  struct Sums {
    uint64_t words = 0;      // `count` of them
    uint64_t to = 0;         // `count` of them
    uint32_t count = 0;      // 0..2^32-1
    bool inclusive = false;  // each with its own word, else without
    uint64_t total = 0;      // one word: the sum of all; 0: not wanted
  };
  // Sums are modulo 2^32. 8 bytes of memory traffic a word.
  // Waits, on the device, for writes of compute shaders and copies before it. Compute shaders, indirect dispatches and
  // copies after it see the results. Errors: invalid_argument, with nothing recorded, for a list that is too long,
  // missing, misplaced or that overlaps another.
  Result<void> record_sums(VkCommandBuffer commands, const Sums& sums) const;

  struct Selection {
    uint64_t flags = 0;  // `count` of them; set if low <= flag <= high
    uint64_t items = 0;  // `count` words to select from, which may be the flags; 0: their places are wanted, from 0
    uint64_t to = 0;     // `room` words
    uint32_t count = 0;  // 0..2^32-1
    uint32_t room = 0;   // no more are written; `number` still counts all
    uint32_t low = 1, high = 0xFFFFFFFFu;
    uint64_t number = 0;    // one word: how many flags are set; 0: not wanted
    uint64_t dispatch = 0;  // 12 bytes, a VkDispatchIndirectCommand over what was written; 0: not wanted
    // Its workgroups' threads. It is x workgroups wide and y high, so that any device can dispatch it. Element number
    // (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * dispatch_group + gl_LocalInvocationIndex may be
    // beyond the last.
    uint32_t dispatch_group = 64;
  };
  // The same promises and errors. 4 bytes of memory traffic a flag, 4 an element written, and what its item costs.
  Result<void> record_select(VkCommandBuffer commands, const Selection& selection) const;

  uint64_t state_bytes() const { return state_->size_bytes(); }
  // Of a workgroup; there are sizes of a list that tell more than others.
  uint32_t sums_tile_words() const { return sums_tile_words_; }
  uint32_t select_tile_words() const { return select_tile_words_; }

 private:
  explicit Scan(Device& device) : device_(&device) {}
  Result<void> clear_state();
  void record(VkCommandBuffer commands, VkPipeline pipeline, uint32_t tile_words, QryScanPush& push) const;
  Device* device_;
  uint32_t most_words_ = 0, sums_tile_words_ = 0, select_tile_words_ = 0;
  std::unique_ptr<DeviceMemory> state_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline sums_ = VK_NULL_HANDLE, select_ = VK_NULL_HANDLE;
};

}  // namespace quarry::engine
