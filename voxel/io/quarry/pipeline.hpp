// SPDX-License-Identifier: Apache-2.0
// pipeline.hpp - rows of a table on their way through several threads: one at a time has the database and reads the
// next piece, all decode theirs, and one puts what is decoded, in the order of the rows. Internal to the store.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "base/result.hpp"

namespace quarry::io {

// What is done with each piece. Whatever fails first in the order of the pieces is reported.
template <class Piece, class Decoded>
struct PipelineSteps {
  std::function<Result<std::optional<Piece>>()> next;      // by one thread at a time; none after the last
  std::function<Result<Decoded>(Piece& piece)> decode;     // by several threads at once
  std::function<Result<void>(Decoded& decoded)> put = {};  // by one at a time in order; may take what is there
};

template <class Piece, class Decoded>
class Pipeline {
 public:
  // At most `most_waiting` pieces (at least 1) are read and not yet put.
  Pipeline(const PipelineSteps<Piece, Decoded>& steps, size_t most_waiting)
      : steps_(steps), most_waiting_(std::max<size_t>(1, most_waiting)) {}

  Result<void> run() {
    // One thread, where memory lets only one piece wait.
    parallel_for(std::min<size_t>(thread_count(), most_waiting_), 1, [&](size_t number, size_t) {
      try {
        work(number == 0);
      } catch (...) {  // the others wait for this one
        const std::lock_guard lock(lock_);
        if (!thrown_) thrown_ = std::current_exception();
        stop();
      }
    });
    if (thrown_) std::rethrow_exception(thrown_);
    if (failed_) return tl::unexpected(*failed_);
    return {};
  }

 private:
  // Under the lock: nothing more is read or put.
  void stop() {
    stopped_ = true;
    changed_.notify_all();
  }

  void work(bool puts) {
    while (begin_one(puts)) {
      size_t number = 0;
      Result<std::optional<Piece>> read = read_one(&number);
      const bool none = read && !*read;
      Result<Decoded> decoded = none   ? Result<Decoded>(Decoded())
                                : read ? steps_.decode(**read)
                                       : Result<Decoded>(tl::unexpected(read.error()));
      const std::lock_guard lock(lock_);
      --begun_;
      if (none) ended_ = true;
      else waiting_.emplace(number, std::move(decoded));
      changed_.notify_all();
    }
  }

  // Waits until another piece may be read; false if none is left. Who puts, puts meanwhile what there is, and at the
  // end what the others still decode.
  bool begin_one(bool puts) {
    std::unique_lock lock(lock_);
    for (;;) {
      if (puts) put_waiting(lock);
      if (stopped_ || (ended_ && (!puts || begun_ + waiting_.size() == 0))) return false;
      if (!ended_ && begun_ + waiting_.size() < most_waiting_) {
        ++begun_;
        return true;
      }
      changed_.wait(lock);
    }
  }

  void put_waiting(std::unique_lock<std::mutex>& lock) {
    while (!stopped_ && !waiting_.empty() && waiting_.begin()->first == next_put_) {
      Result<Decoded> one = std::move(waiting_.begin()->second);
      lock.unlock();
      Result<void> put;
      if (!one) put = tl::unexpected(one.error());
      else if (steps_.put) put = steps_.put(*one);
      lock.lock();
      waiting_.erase(waiting_.begin());  // until here it counted as waiting
      ++next_put_;
      if (!put) {
        failed_ = put.error();
        stop();
      }
      changed_.notify_all();
    }
  }

  // None after the last, and after one with an error.
  Result<std::optional<Piece>> read_one(size_t* number) {
    const std::lock_guard lock(reading_);
    if (read_all_) return std::optional<Piece>();
    *number = pieces_read_++;
    auto read = steps_.next();
    read_all_ = !read || !*read;
    return read;
  }

  const PipelineSteps<Piece, Decoded>& steps_;
  const size_t most_waiting_;

  std::mutex reading_;  // of what is read:
  size_t pieces_read_ = 0;
  bool read_all_ = false;

  std::mutex lock_;  // of the rest:
  std::condition_variable changed_;
  std::map<size_t, Result<Decoded>> waiting_;  // to be put, or what is wrong, by the number of the piece
  size_t begun_ = 0;                           // pieces that threads read or decode
  size_t next_put_ = 0;
  bool ended_ = false, stopped_ = false;
  std::exception_ptr thrown_;
  std::optional<Error> failed_;
};

}  // namespace quarry::io
