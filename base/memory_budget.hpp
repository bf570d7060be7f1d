// SPDX-License-Identifier: Apache-2.0
// memory_budget.hpp - the memory that a command may hold, this process and its children together, for code that is
// about to allocate. All jobs of a command share one object. app/batch/tasks.hpp watches the same limit from outside
// and stops what exceeds it, some milliseconds late. A step whose need is known beforehand queries this budget, and is
// refused before it begins.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace quarry {

// Bytes of memory that this process and its children hold now (resident, shared pages included).
uint64_t memory_in_use();
// "9.5 MiB" below 10 MiB, else "343 MiB": rounded up.
std::string memory_text(uint64_t bytes);

// Any number of threads.
class MemoryBudget {
 public:
  // `option`: the name of the option that sets the limit ("--memory"), for messages.
  MemoryBudget(uint64_t limit_bytes, std::string option) : limit_(limit_bytes), option_(std::move(option)) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  uint64_t limit_bytes() const { return limit_; }
  // Bytes that may be taken now: the limit minus what is held, minus what is promised and not yet taken. Reads /proc
  // (some 50 us). If the result is small, free memory that the allocator keeps is returned to the system first.
  uint64_t available_bytes() const;
  // The error for a step that takes at least `bytes` more than is held now. `what` begins the sentence: "reading it".
  Error too_little(uint64_t bytes, const std::string& what) const;
  // The error for a step that has reached the limit; its total need is unknown.
  Error used_up(const std::string& what) const;

  // Memory that is reserved for a step until the step has taken it: two files that are read at once must not both
  // count on the same room.
  class Promise {
   public:
    Promise() = default;
    Promise(Promise&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), left_(std::exchange(other.left_, 0)) {}
    Promise& operator=(Promise&& other) noexcept {
      taken(left_);
      budget_ = std::exchange(other.budget_, nullptr);
      left_ = std::exchange(other.left_, 0);
      return *this;
    }
    ~Promise() { taken(left_); }
    // `bytes` of the promise are now held.
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
  // Errors: out_of_memory (too_little) if `bytes` do not fit now.
  Result<Promise> promise(uint64_t bytes, const std::string& what) const;
  // The same with an optional budget: without one, everything fits.
  static Result<Promise> promise(const MemoryBudget* budget, uint64_t bytes, const std::string& what) {
    return budget ? budget->promise(bytes, what) : Promise();
  }

 private:
  uint64_t held() const;  // bytes in use plus bytes promised
  uint64_t limit_;
  std::string option_;
  mutable std::atomic<uint64_t> promised_{0};
};

}  // namespace quarry
