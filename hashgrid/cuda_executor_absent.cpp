// Stands in for cuda_executor.cu in builds without a CUDA toolkit.
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

Result<std::unique_ptr<Executor>> make_cuda_executor(int) {
  return fail(ErrorCode::unsupported,
              "this build of Quarry has no CUDA executor: configure with a CUDA toolkit (nvcc) installed, or use the host executor");
}

}  // namespace quarry::hashgrid
