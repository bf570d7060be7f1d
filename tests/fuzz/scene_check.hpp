// SPDX-License-Identifier: Apache-2.0
// scene_check.hpp - a fuzzer's check of any reader's result: a consistent scene, or an error with a message.
#pragma once

#include <cstdlib>

#include "voxel/worlds/scene.hpp"

namespace quarry::test {

inline int check_answer(const Result<Scene>& scene) {
  if (!scene) {
    if (scene.error().message.empty()) std::abort();
    return 0;
  }
  uint64_t bricks = 0;
  for (const Instance& i : scene->instances) {
    if (i.volume >= scene->volumes.size() || i.layer >= int64_t(scene->layers.size())) std::abort();
    bricks += scene->volumes[i.volume].bricks.bricks().size();
  }
  for (const Volume& v : scene->volumes)
    for (const auto& [at, brick] : v.bricks.bricks())
      if (brick.empty()) std::abort();
  if (bricks < 200 && scene->instances.size() < 200) (void)scene_facts(*scene, Axes::y_up);
  return 0;
}

}  // namespace quarry::test
