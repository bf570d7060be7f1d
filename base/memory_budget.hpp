// SPDX-License-Identifier: Apache-2.0
// memory_budget.hpp - the memory that a command may hold, this process and its children together, as those see it who
// are about to take some. One object for all jobs of a command. app/batch/tasks.hpp watches the same limit from outside
// and stops what is above it, some milliseconds late; who can say beforehand what a step takes asks here, and is
// refused before the step is begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace quarry {

// Bytes of memory that this process and its children hold now (resident, shared pages too).
uint64_t memory_in_use();
// "12.5 MiB" from 10 MiB down, else "343 MiB": rounded up.
std::string memory_text(uint64_t bytes);

// Any number of threads.
class MemoryBudget {
 public:
  // `option` is what the limit is called where it is set ("--memory"), for messages.
  MemoryBudget(uint64_t limit_bytes, std::string option) : limit_(limit_bytes), option_(std::move(option)) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  uint64_t limit_bytes() const { return limit_; }
  // What may be taken now: the limit without what is held, and without what was promised and is not taken yet. Looks at /proc (some 50 us); where
  // that is little, what the allocator keeps of freed memory is given back first.
  uint64_t available_bytes() const;
  // The error for a step that takes at least so much more than is held now. `what` begins the sentence: "reading it".
  Error too_little(uint64_t bytes, const std::string& what) const;
  // The error for a step that has come to the limit; what it takes in all is not known.
  Error used_up(const std::string& what) const;

  // Memory that is set aside for a step until the step has taken it: two files that are read at once must not both
  // count on the same room.
  class Promise {
   public:
    Promise() = default;
    Promise(Promise&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), left_(std::exchange(other.left_, 0)) {}
    Promise& operator=(Promise&& other) noexcept {
      taken(left_);
      budget_ = std::exchange(other.budget_, nullptr);
      left_ = std::exchange(other.left_, 0);
      return *this;
    }
    ~Promise() { taken(left_); }
    // So many of them are held now.
    void taken(uint64_t bytes) {
      bytes = bytes < left_ ? bytes : left_;
      left_ -= bytes;
      if (budget_) budget_->promised_ -= bytes;
    }

   private:
    friend class MemoryBudget;
    Promise(const MemoryBudget* budget, uint64_t bytes) : budget_(budget), left_(bytes) {}
    const MemoryBudget* budget_ = nullptr;
    uint64_t left_ = 0;
  };
  // Errors: out_of_memory (too_little) if it does not fit now.
  Result<Promise> promise(uint64_t bytes, const std::string& what) const;
  // The same where there may be no budget: then everything fits.
  static Result<Promise> promise(const MemoryBudget* budget, uint64_t bytes, const std::string& what) { return budget ? budget->promise(bytes, what) : Promise(); }

 private:
  uint64_t held() const;  // and promised
  uint64_t limit_;
  std::string option_;
  mutable std::atomic<uint64_t> promised_{0};
};

}  // namespace quarry
