// SPDX-License-Identifier: Apache-2.0
// salvage.hpp - what reading a damaged file could not bring back. A reader that is given a Salvage mends and leaves out
// where it would else refuse; without one it refuses. What is kept is exact; every thing left out is counted here and
// said with its place as a warning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::io {

struct SalvageLoss {
  const char* kind;  // "damaged_chunks", for programs
  uint64_t count = 0;
  std::string text;  // "chunks of bricks", for people: follows the count
};

class Salvage {
 public:
  void count_loss(const char* kind, uint64_t count, const char* text) {
    if (count == 0) return;
    const auto same = std::find_if(losses_.begin(), losses_.end(),
                                   [&](const SalvageLoss& l) { return std::string_view(l.kind) == kind; });
    if (same == losses_.end()) losses_.push_back({kind, count, text});
    else same->count += count;
  }
  // Empty: the file was sound, or at least nothing of it is missing.
  const std::vector<SalvageLoss>& losses() const { return losses_; }

 private:
  std::vector<SalvageLoss> losses_;
};

}  // namespace quarry::io
