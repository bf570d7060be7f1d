// SPDX-License-Identifier: Apache-2.0
// cuda_executor_absent.cpp - replaces cuda_executor.cu in builds without a CUDA toolkit.
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

Result<std::unique_ptr<Executor>> make_cuda_executor() {
  return fail(ErrorCode::unsupported,
              "this build of Quarry has no CUDA executor: configure with a CUDA toolkit (nvcc) installed, "
              "or use the host executor");
}
Result<std::unique_ptr<Executor>> make_cuda_executor(const DeviceUuid&) { return make_cuda_executor(); }

}  // namespace quarry::hashgrid
