// SPDX-License-Identifier: Apache-2.0
// ahead.hpp - makes the next piece of something on a thread of its own, while the caller works on the piece before.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/parallel.hpp"
#include "base/result.hpp"

namespace quarry {

// For one thread. What `make` uses must outlive it.
template <class T>
class Ahead {
 public:
  explicit Ahead(std::function<Result<T>()> make) : make_(std::move(make)), threads_(thread_count()) {}

  // Begins to make the next piece, unless the caller may use one thread alone, or no further one is allowed.
  void start() {
    if (threads_ < 2 || thread_.joinable()) return;
    try {
      thread_ = std::jthread([this] {
        try {
          const ThreadShare share(threads_);
          made_ = make_();
        } catch (...) {
          thrown_ = std::current_exception();
        }
      });
    } catch (const std::system_error&) {
      // next() makes it.
    }
  }

  // The next piece: the one that was begun, or made now. Throws what `make` throws.
  Result<T> next() {
    if (!thread_.joinable()) return make_();
    thread_.join();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    return std::move(made_);
  }

 private:
  std::function<Result<T>()> make_;
  uint32_t threads_;
  Result<T> made_;
  std::exception_ptr thrown_;
  std::jthread thread_;  // last: it is joined before the rest goes
};

}  // namespace quarry
