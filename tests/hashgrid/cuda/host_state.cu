// SPDX-License-Identifier: Apache-2.0
// host_state.cu - a process's CUDA state, read and compared.
#include "tests/hashgrid/cuda/host_state.hpp"

#include "base/cuda/launch.cuh"
#include "hashgrid/cuda_stream.cuh"

namespace quarry::hashgrid::test {
namespace {

// A driver call, as CUDA 4.0 declared it: later ones of the same name take more arguments.
template <class Call>
Call driver_call(const char* name) {
  void* call = nullptr;
  gpu::ContextCalls::find(name, &call, 4000);
  return reinterpret_cast<Call>(call);
}

__global__ void do_nothing() {}

}  // namespace

int cuda_device_count() { return gpu::device_count().value_or(0); }
void make_current(int device) { cudaSetDevice(device); }

HostState host_state() {
  HostState state;
  cudaGetDevice(&state.device);
  for (int device = 0; device < cuda_device_count(); ++device) {
    cudaMemPool_t pool = nullptr, usual = nullptr;
    uint64_t kept_bytes = 0;
    cudaDeviceGetDefaultMemPool(&pool, device);
    cudaDeviceGetMemPool(&usual, device);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes);
    state.pools += std::to_string(device) + (pool == usual ? ": default, keeps " : ": another, keeps ") +
                   std::to_string(kept_bytes) + "; ";
  }
  return state;
}

HostContext::HostContext(int device) {
  const auto make = driver_call<CUresult (*)(CUcontext*, unsigned int, CUdevice)>("cuCtxCreate");
  const auto find = driver_call<CUresult (*)(CUdevice*, int)>("cuDeviceGet");
  CUdevice found{};
  CUcontext context = nullptr;
  if (make != nullptr && find != nullptr && find(&found, device) == CUDA_SUCCESS &&
      make(&context, 0, found) == CUDA_SUCCESS)
    context_ = context;
}
HostContext::~HostContext() {
  const auto destroy = driver_call<CUresult (*)(CUcontext)>("cuCtxDestroy");
  if (context_ != nullptr && destroy != nullptr) destroy(static_cast<CUcontext>(context_));
}
bool HostContext::is_current() const {
  CUcontext now = nullptr;
  return gpu::context_calls().get != nullptr && gpu::context_calls().get(&now) == CUDA_SUCCESS && now == context_;
}

ScopeReport enter_scope(int device) {
  const auto current = [] {
    CUcontext now = nullptr;
    gpu::context_calls().get(&now);
    return now;
  };
  ScopeReport report;
  if (gpu::context_calls().get == nullptr) return report;
  const CUcontext before = current();
  {
    const gpu::DeviceScope scope(device);
    int inside = -1;
    cudaGetDevice(&inside);
    report.changes = scope.changes();
    report.works = scope.error() == cudaSuccess && inside == device &&
                   gpu::launch("one thread", {1, 1}, nullptr, do_nothing).has_value() &&
                   cudaStreamSynchronize(nullptr) == cudaSuccess;
  }
  report.restores = current() == before;
  return report;
}

DeviceUuid uuid_of(const Executor& executor) { return cuda_device_of(executor).uuid; }
int ordinal_of(const Executor& executor) { return cuda_device_of(executor).ordinal; }

LaunchMessages launch_messages() {
  const auto wrong = gpu::launch("too many threads", {1, 4096}, nullptr, do_nothing);
  const auto right = gpu::launch("one thread", {1, 1}, nullptr, do_nothing);
  return {wrong ? "" : wrong.error().message, right ? "" : right.error().message};
}

}  // namespace quarry::hashgrid::test
