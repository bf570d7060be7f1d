// SPDX-License-Identifier: Apache-2.0
// picture_compare.cpp - counts pixels that differ and pixels that differ by far. It also draws the difference times
// four.
#include "tests/engine/picture_compare.hpp"

#include <algorithm>
#include <cstdlib>

namespace quarry::test {

PictureDifference compare_pictures(const engine::Picture& a, const engine::Picture& b) {
  PictureDifference out;
  if (a.width != b.width || a.height != b.height || a.rgba.size() != b.rgba.size()) {
    out.differing = out.far = uint64_t(std::max(a.width, b.width)) * std::max(a.height, b.height);
    out.largest = 255;
    out.mean = 255;
    return out;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < a.rgba.size(); i += 4) {
    uint32_t worst = 0;
    for (size_t c = 0; c < 4; ++c) {
      const uint32_t d = uint32_t(std::abs(int(a.rgba[i + c]) - int(b.rgba[i + c])));
      sum += d;
      worst = std::max(worst, d);
    }
    out.differing += worst > 0;
    out.far += worst > 24;
    out.largest = std::max(out.largest, worst);
  }
  out.mean = a.rgba.empty() ? 0 : double(sum) / double(a.rgba.size());
  return out;
}

engine::Picture difference_picture(const engine::Picture& a, const engine::Picture& b) {
  engine::Picture out{a.width, a.height, std::vector<uint8_t>(a.rgba.size(), 255)};
  if (a.rgba.size() != b.rgba.size()) return out;
  for (size_t i = 0; i < a.rgba.size(); ++i)
    if (i % 4 != 3) out.rgba[i] = uint8_t(std::min(255, 4 * std::abs(int(a.rgba[i]) - int(b.rgba[i]))));
  return out;
}

}  // namespace quarry::test
