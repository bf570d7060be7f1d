// SPDX-License-Identifier: Apache-2.0
// salvage.hpp - the losses of reading a damaged file. A reader with a Salvage repairs and leaves out parts. Without one
// it fails. Kept parts are exact. Everything left out is counted here, and a warning names its place.
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
  std::string text;  // "chunks of bricks", for people; it follows the count
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
  // Empty if the file was sound, or if at least nothing of it is missing.
  const std::vector<SalvageLoss>& losses() const { return losses_; }

 private:
  std::vector<SalvageLoss> losses_;
};

}  // namespace quarry::io
