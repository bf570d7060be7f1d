// SPDX-License-Identifier: Apache-2.0
// lane.hpp - one of several ways on which tables travel and are worked on at the same time: on CUDA three streams, on
// the host memcpy by the thread that calls.
//
// A lane is used by one thread at a time; different lanes by different threads at once. Copies in, operations and
// copies out of a lane overlap each other as far as order_after_uploads() and wait() let them.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

class Lane {
 public:
  virtual ~Lane() = default;

  // Copies between host memory and memory of the executor. They may return before the copy is done: the memory on both
  // sides stays as it is until wait(). From memory that is not pinned they are done later, but as right. Each waits for
  // nothing of this lane: not for its operations either, which have all returned. Errors: device.
  virtual Result<void> upload(void* to, const void* from_host, size_t size_bytes) = 0;
  virtual Result<void> download(void* to_host, const void* from, size_t size_bytes) = 0;
  // The operations that are called from here on see what the uploads issued so far have brought. Does not wait.
  virtual Result<void> order_after_uploads() = 0;
  // Returns when all copies are done.
  virtual Result<void> wait() = 0;

  // Run in a stream of this lane; each returns when it is done (table/operations.hpp).
  virtual BulkOperations<GridView>& pairs() = 0;
};

}  // namespace quarry::hashgrid
