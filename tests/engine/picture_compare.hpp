// SPDX-License-Identifier: Apache-2.0
// picture_compare.hpp - measures the difference of two pictures.
#pragma once

#include "engine/render/ray_marcher.hpp"

namespace quarry::test {

struct PictureDifference {
  uint64_t differing = 0;  // pixels with any channel that differs
  uint32_t largest = 0;    // of any channel
  double mean = 0;         // absolute, over all channels
  uint64_t far = 0;        // pixels with a channel more than 24 away
};
// Pictures of different sizes differ in every pixel.
PictureDifference compare_pictures(const engine::Picture& a, const engine::Picture& b);
// |a - b| times four, opaque. A person looks at it when a golden picture fails.
engine::Picture difference_picture(const engine::Picture& a, const engine::Picture& b);

}  // namespace quarry::test
