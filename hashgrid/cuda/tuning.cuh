// SPDX-License-Identifier: Apache-2.0
// tuning.cuh - the constants of the CUDA operations that were chosen by measurement: threads of a block, work of a
// thread, blocks of a launch, and the batch size from which a call goes page by page. Kernels and launches use them.
// Another number changes speed, never results. Measured on an H200 (docs/hashgrid-tried.md). Lengths that an algorithm
// depends on (walks, misses, room of lists) are beside that algorithm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quarry::hashgrid {

// Which batches go page by page, in both layouts.
struct BulkTuning {
  static constexpr size_t kLeastBatch = size_t{1} << 18;  // below, five launches cost more than they save
  // For the only writer of a table. Key by key, a table at a load of 0.8 refuses some, which then cost more.
  static constexpr size_t kLeastMerge = size_t{1} << 17;
  static constexpr size_t kMostBatch = size_t{1} << 28;  // list positions are 32-bit
  static constexpr uint32_t kMostPages = 1u << 21;       // of the pairs layout
  // Streaming a page through shared memory takes 19 ns, or 9 ns if it need not be read. A single key insert takes 0.08
  // ns.
  static constexpr uint32_t kLeastKeysPerPage = 240, kLeastKeysPerFreshPage = 120;
  static constexpr uint32_t kLeastKeysPerWindow = 256;  // reading a page takes 9 ns, a random sector 0.03
};

// Scratch memory that an executor keeps between calls.
constexpr uint64_t kKeptScratchBytes = uint64_t{4} << 30;

namespace kernels {

// The most blocks of a launch for each multiprocessor; kernels stride over the rest.
constexpr uint32_t kKeyBlocks = 64, kSimpleBlocks = 32, kPageBlocks = 16;

// One thread a key (key_kernels.cuh, find_kernels.cuh), or one block a page (page_kernels.cuh).
constexpr uint32_t kKeyThreads = 256, kFindThreads = 256, kSimpleThreads = 256;
constexpr uint32_t kPageThreads = 256;

// Splitting by page (split.cuh).
constexpr uint32_t kSplitThreads = 512;
constexpr uint32_t kSplitPerThread = 16;
constexpr uint32_t kSplitTile =
    kSplitThreads * kSplitPerThread;  // 64 KiB of pairs: runs of 32 pairs in 256 ranges, two blocks a multiprocessor

// Merging into pages in shared memory (page_builds.cuh): pairs that a thread holds, and blocks on a multiprocessor,
// each with 43 KiB of shared memory.
constexpr uint32_t kMergeThreads = 256, kMergeHeld = 8, kMergeBlocks = 5;
constexpr uint32_t kLeaveThreads = 256, kLeavePages = 8;

// Putting and erasing by page beside other operations (put.cuh).
constexpr uint32_t kPutThreads = 256, kPutBlocks = 8, kPutHeld = 2;
constexpr uint32_t kRestThreads = 256, kRestPages = 8;
constexpr uint32_t kWindowThreads = 512;

// The compact layout (compact/build.cuh, compact/kernels.cuh).
constexpr uint32_t kCompactThreads = 256, kCompactHeld = 4, kCompactWindowThreads = 512;

// Multi grids (multi/build.cuh, multi/expand.cuh): pairs of a page that a thread holds; results of a thread.
constexpr uint32_t kMultiThreads = 512, kMultiHeld = 4, kMultiBlocks = 3;
constexpr uint32_t kExpandThreads = 256, kExpandRows = 8;

// Joins by page (multi/join.cuh): right rows of a page that a thread holds; from how many results of a left row on a
// warp writes those of one row after the other.
constexpr uint32_t kJoinThreads = 256, kJoinHeld = 8, kJoinCountBlocks = 6, kJoinWriteBlocks = 5;
constexpr uint32_t kJoinManyEach = 16;

}  // namespace kernels
}  // namespace quarry::hashgrid
