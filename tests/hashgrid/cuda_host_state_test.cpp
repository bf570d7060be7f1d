// SPDX-License-Identifier: Apache-2.0
// cuda_host_state_test.cpp - the grid as a guest in a process that uses CUDA itself: devices by UUID, and the host's
// state stays unchanged.
#include "tests/hashgrid/cuda/host_state.hpp"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/test_data.hpp"

namespace quarry::hashgrid::test::cuda_host_state_test {
namespace {

// The first device's executor, or null and a message without one.
std::unique_ptr<Executor> cuda_or_skip() {
  auto executor = make_cuda_executor();
  if (executor) return std::move(*executor);
  quarry::test::skip("CUDA executor: " + executor.error().message);
  return nullptr;
}

// Creates a table, inserts a batch, looks it up, reads statistics: this allocates every kind of memory.
void use(Executor& executor) {
  constexpr uint32_t kPages = 4, kKeys = 5000;
  const auto table = executor.memory().allocate(size_t{kPages} * kQryPageBytes, "table"),
             memory = executor.memory().allocate(size_t{kKeys} * 8, "keys");
  REQUIRE(table);
  REQUIRE(memory);
  std::vector<uint32_t> keys(size_t{kKeys} * 2);
  for (uint32_t i = 0; i < kKeys * 2; ++i) keys[i] = i + 1;
  REQUIRE(executor.upload(memory->data, keys.data(), keys.size() * sizeof(uint32_t)));
  const GridView view{static_cast<uint64_t*>(table->data), kPages, 1};
  auto* const on_device = static_cast<uint32_t*>(memory->data);
  REQUIRE(executor.pairs().clear(view));
  const auto inserted = executor.pairs().insert(view, on_device, on_device + kKeys, kKeys, nullptr);
  REQUIRE(inserted);
  CHECK(inserted->inserted == kKeys);
  const auto found = executor.pairs().find(view, on_device, kKeys, on_device + kKeys, nullptr);
  REQUIRE(found);
  CHECK(found->present == kKeys);
  const auto stats = executor.pairs().stats(view);
  REQUIRE(stats);
  CHECK(stats->live == kKeys);
  executor.memory().release(*table);
  executor.memory().release(*memory);
}

TEST_CASE("cuda: a device is chosen by its UUID, and without one it is the first", "[cuda]") {
  const auto first = cuda_or_skip();
  if (!first) return;
  CHECK(ordinal_of(*first) == 0);
  const auto same = make_cuda_executor(uuid_of(*first));
  REQUIRE(same);
  CHECK(ordinal_of(**same) == ordinal_of(*first));
  DeviceUuid unknown = uuid_of(*first);
  for (uint8_t& byte : unknown) byte = uint8_t(~byte);
  const auto none = make_cuda_executor(unknown);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::not_found);
}

TEST_CASE("cuda: the thread's current device and the default memory pools stay as the host has them", "[cuda]") {
  if (!cuda_or_skip()) return;
  for (int device = 0; device < cuda_device_count(); ++device) {
    make_current(device);
    const HostState before = host_state();
    CHECK(before.device == device);
    auto executor = make_cuda_executor();
    REQUIRE(executor);
    CHECK(host_state() == before);
    use(**executor);
    CHECK(host_state() == before);
    executor->reset();
    CHECK(host_state() == before);
  }
  make_current(0);
}

TEST_CASE("cuda: works beside a context of the host's own, which stays current", "[cuda]") {
  const auto executor = cuda_or_skip();
  if (!executor) return;
  {
    const HostContext context(ordinal_of(*executor));
    REQUIRE(context.made());
    REQUIRE(context.is_current());
    use(*executor);
    CHECK(context.is_current());
    const auto another = make_cuda_executor();
    REQUIRE(another);
    use(**another);
    CHECK(context.is_current());
  }
  use(*executor);
}

TEST_CASE("cuda: a scope changes nothing where the device's own context is current", "[cuda]") {
  if (!cuda_or_skip()) return;
  for (int device = 0; device < cuda_device_count(); ++device) {
    make_current(device);
    CHECK(enter_scope(device).works);  // from now on the device's own context is known
    for (int other = 0; other < cuda_device_count(); ++other) {
      const ScopeReport report = enter_scope(other);
      CHECK(report.changes == (other != device));
      CHECK(report.works);
      CHECK(report.restores);
      CHECK(host_state().device == device);
    }
  }
  make_current(0);
}

TEST_CASE("cuda: a scope tells the host's own context on a device from the device's own", "[cuda]") {
  const auto executor = cuda_or_skip();
  if (!executor) return;
  const int device = ordinal_of(*executor);
  CHECK(enter_scope(device).works);
  const HostContext context(device);
  REQUIRE(context.made());
  for (int round = 0; round < 2; ++round) {
    const ScopeReport report = enter_scope(device);
    CHECK(report.changes);
    CHECK(report.works);
    CHECK(report.restores);
    CHECK(context.is_current());
  }
}

TEST_CASE("cuda: a scope works on a thread that has used no device yet", "[cuda]") {
  const auto executor = cuda_or_skip();
  if (!executor) return;
  ScopeReport first, second;
  std::thread([&, device = ordinal_of(*executor)] {
    first = enter_scope(device);
    second = enter_scope(device);
  }).join();
  CHECK(first.changes);
  CHECK(first.works);
  CHECK(second.works);
  CHECK(second.restores);
}

TEST_CASE("cuda: a launch that cannot be says which it was, and the next one is not blamed for it", "[cuda]") {
  if (!cuda_or_skip()) return;
  const LaunchMessages messages = launch_messages();
  CHECK(messages.wrong.find("too many threads") != std::string::npos);
  CHECK(messages.right.empty());
}

}  // namespace
}  // namespace quarry::hashgrid::test::cuda_host_state_test
