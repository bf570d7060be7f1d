// SPDX-License-Identifier: Apache-2.0
// render.cpp - the row of `quarry bench` that measures the ray-marcher; the measuring is bench/render/passes.cpp.
#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"
#include "bench/render/passes.hpp"
#include "bench/render/scenes.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_render(const BenchOptions& options) {
  bench::RenderBenchOptions wanted;
  ProgressLine line("render");
  wanted.progress = line.progress();
  wanted.device = options.device;
  wanted.validation = options.validation;
  if (options.small) {
    wanted.full_size = false;
    wanted.width = 320;
    wanted.height = 180;
    wanted.repeats = options.repeats;
  } else {
    wanted.repeats = std::max(options.repeats, 20u);
  }
  if (!options.scene.empty()) {
    wanted.scenes.clear();
    std::string known;
    for (int scene = 0; scene < bench::kSceneCount; ++scene) {
      const std::string name = bench::render_scene(scene).name;
      if (name == options.scene) wanted.scenes.push_back(scene);
      known += (scene ? ", " : "") + name;
    }
    if (wanted.scenes.empty()) return fail(ErrorCode::bad_usage, "there is no scene '" + options.scene + "'. Scenes: " + known + ".");
  }
  auto result = bench::bench_render(wanted);
  if (result) (*result)["table"] = bench::render_table(*result);
  return result;
}

}  // namespace quarry::app
