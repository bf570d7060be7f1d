// SPDX-License-Identifier: Apache-2.0
// host_executor.cpp - the host executor: its threads and its memory. Its operations on tables are in pairs/host/,
// compact/host.cpp, index/host.cpp and multi/host.cpp.
#include <cstring>

#include "base/parallel.hpp"
#include "hashgrid/compact/host.hpp"
#include "hashgrid/executor.hpp"
#include "hashgrid/index/host.hpp"
#include "hashgrid/multi/host.hpp"
#include "hashgrid/pairs/host/operations.hpp"

namespace quarry::hashgrid {
namespace {

// Copies by the thread that calls: they are done when they return.
class HostLane final : public Lane {
 public:
  explicit HostLane(Executor& host) : host_(host) {}
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    return host_.upload(to, from_host, size_bytes);
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    return host_.download(to_host, from, size_bytes);
  }
  Result<void> order_after_uploads() override { return {}; }
  Result<void> wait() override { return {}; }
  BulkOperations<GridView>& pairs() override { return host_.pairs(); }

 private:
  Executor& host_;
};

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(uint32_t threads)
      : threads_(threads),
        pairs_(make_host_pairs(threads_)),
        compact_(make_host_compact(threads_)),
        index32_(make_host_index32(threads_)),
        index64_(make_host_index64(threads_)),
        multi_(make_host_multi(threads_)) {}

  ExecutorKind kind() const override { return ExecutorKind::host; }
  uint32_t parallelism() const override { return threads_; }
  MemorySource& memory() override { return host_memory_source(); }
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    if (size_bytes != 0) std::memcpy(to, from_host, size_bytes);
    return {};
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    if (size_bytes != 0) std::memcpy(to_host, from, size_bytes);
    return {};
  }
  MemorySource& host_memory() override { return host_memory_source(); }
  Result<std::unique_ptr<Lane>> make_lane() override { return std::make_unique<HostLane>(*this); }
  BulkOperations<GridView>& pairs() override { return *pairs_; }
  BulkOperations<CompactView>& compact() override { return *compact_; }
  IndexOperations<uint32_t>& index32() override { return *index32_; }
  IndexOperations<uint64_t>& index64() override { return *index64_; }
  MultiOperations& multi() override { return *multi_; }

 private:
  uint32_t threads_;
  std::unique_ptr<BulkOperations<GridView>> pairs_;
  std::unique_ptr<BulkOperations<CompactView>> compact_;
  std::unique_ptr<IndexOperations<uint32_t>> index32_;
  std::unique_ptr<IndexOperations<uint64_t>> index64_;
  std::unique_ptr<MultiOperations> multi_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(uint32_t threads) {
  return std::make_unique<HostExecutor>(threads == 0 ? thread_count() : threads);
}

}  // namespace quarry::hashgrid
