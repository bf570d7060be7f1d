// SPDX-License-Identifier: Apache-2.0
// executor.hpp - what runs the work, behind one interface: host threads or a CUDA stream. host_executor.cpp is always
// built, cuda_executor.cu only with a CUDA toolkit. The tests run one text on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/cuda/device_uuid.hpp"
#include "base/memory_source.hpp"
#include "base/result.hpp"
#include "hashgrid/compact/view.hpp"
#include "hashgrid/index/operations.hpp"
#include "hashgrid/multi/operations.hpp"
#include "hashgrid/paged/lane.hpp"
#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

enum class ExecutorKind : uint8_t { host, cuda };
inline const char* to_string(ExecutorKind kind) { return kind == ExecutorKind::cuda ? "cuda" : "host"; }

// The threads or stream, their memory, and so the bulk operations of each layout. Several threads may use one executor.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual ExecutorKind kind() const = 0;
  virtual uint32_t parallelism() const = 0;  // threads, or multiprocessors

  // The memory for this executor's tables and key arrays if the caller brings none.
  virtual MemorySource& memory() = 0;
  // Copies between plain host memory and memory of this executor. Synchronises.
  virtual Result<void> upload(void* to, const void* from_host, size_t size_bytes) = 0;
  virtual Result<void> download(void* to_host, const void* from, size_t size_bytes) = 0;
  // Host memory that copies reach fastest: pinned for CUDA, else any.
  virtual MemorySource& host_memory() = 0;
  // A further way for copies and operations, beside the others (paged_grid.hpp). It must not outlive the executor.
  // Errors: device.
  virtual Result<std::unique_ptr<Lane>> make_lane() = 0;

  // The operations on tables of a layout, run by the same threads or in the same stream. They live as long as the
  // executor.
  virtual BulkOperations<GridView>& pairs() = 0;
  virtual BulkOperations<CompactView>& compact() = 0;
  // The same on ordered indexes (ordered_index.hpp), by the width of their keys.
  virtual IndexOperations<uint32_t>& index32() = 0;
  virtual IndexOperations<uint64_t>& index64() = 0;
  // The same on multi grids (multi_grid.hpp), and joins (join.hpp).
  virtual MultiOperations& multi() = 0;
};

// `threads` = 0: as many as the machine has.
std::unique_ptr<Executor> make_host_executor(uint32_t threads = 0);

// The CUDA device with this UUID; without one, the first that CUDA lists. Errors: not_found without such a device or
// without a driver, unsupported in a build without CUDA; the message says which. The process's memory pools and the
// thread's current device stay as they were.
Result<std::unique_ptr<Executor>> make_cuda_executor();
Result<std::unique_ptr<Executor>> make_cuda_executor(const DeviceUuid& uuid);

}  // namespace quarry::hashgrid
