// SPDX-License-Identifier: Apache-2.0
// arena.hpp - which pages of one block of memory are taken: runs of pages, one for each resident table.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace quarry::hashgrid {

// Bookkeeping only: it touches no memory. Not free-threaded. Cost of a call: a walk over the gaps.
class Arena {
 public:
  Arena() = default;
  explicit Arena(uint32_t pages) : pages_(pages) {
    if (pages != 0) gaps_.emplace(0, pages);
  }
  uint32_t pages() const { return pages_; }
  uint32_t used() const { return used_; }

  // The first page of a run of `pages` (> 0), from the smallest gap that has room; none if no gap has.
  std::optional<uint32_t> take(uint32_t pages) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap)
      if (gap->second >= pages && (best == gaps_.end() || gap->second < best->second)) best = gap;
    if (best == gaps_.end()) return std::nullopt;
    const uint32_t at = best->first, rest = best->second - pages;
    gaps_.erase(best);
    if (rest != 0) gaps_.emplace(at + pages, rest);
    used_ += pages;
    return at;
  }
  // Gives back a run that take() gave.
  void give(uint32_t at, uint32_t pages) {
    used_ -= pages;
    auto next = gaps_.lower_bound(at);
    if (next != gaps_.end() && next->first == at + pages) {
      pages += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        before->second += pages;
        return;
      }
    }
    gaps_.emplace(at, pages);
  }

 private:
  std::map<uint32_t, uint32_t> gaps_;  // first page, number of pages; never side by side
  uint32_t pages_ = 0, used_ = 0;
};

}  // namespace quarry::hashgrid
