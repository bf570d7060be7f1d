// SPDX-License-Identifier: Apache-2.0
// host_state.hpp - the CUDA state that a host application has set up before it calls the grid, and whether it is
// unchanged afterwards.
#pragma once

#include <string>

#include "base/cuda/device_uuid.hpp"
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid::test {

struct HostState {
  int device = -1;
  std::string pools;  // of each device: its default pool, and what that keeps
  bool operator==(const HostState&) const = default;
};
HostState host_state();
int cuda_device_count();
void make_current(int device);

// A context of the host's own on a device, made current by the driver API; destroyed with the object.
class HostContext {
 public:
  explicit HostContext(int device);
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;
  ~HostContext();
  bool made() const { return context_ != nullptr; }
  bool is_current() const;

 private:
  void* context_ = nullptr;
};

// The effects of a gpu::DeviceScope on a device and this thread.
struct ScopeReport {
  bool changes = false;   // it had to make the device's own context current
  bool works = false;     // within it the device is current and runs a kernel
  bool restores = false;  // after it the thread's current context is what it was
};
ScopeReport enter_scope(int device);

DeviceUuid uuid_of(const Executor& executor);
int ordinal_of(const Executor& executor);

// The message of a launch with too many threads in a block, labelled "too many threads", and that of a correct launch
// after it.
struct LaunchMessages {
  std::string wrong, right;
};
LaunchMessages launch_messages();

}  // namespace quarry::hashgrid::test
