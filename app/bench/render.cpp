// SPDX-License-Identifier: Apache-2.0
// render.cpp - the row of `quarry bench` that measures the ray-marcher. The measurement is in bench/render/passes.cpp.
#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"
#include "bench/render/passes.hpp"
#include "bench/render/scenes.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_render(const BenchOptions& options) {
  bench::RenderBenchOptions bench_options;
  ProgressLine line("render");
  bench_options.progress = line.progress();
  bench_options.device = options.device;
  bench_options.validation = options.validation;
  if (options.small) {
    bench_options.full_size = false;
    bench_options.width = 320;
    bench_options.height = 180;
    bench_options.repeats = options.repeats;
  } else {
    bench_options.repeats = std::max(options.repeats, 20u);
  }
  if (!options.scene.empty()) {
    bench_options.scenes.clear();
    std::string known;
    for (int scene = 0; scene < bench::kSceneCount; ++scene) {
      const std::string name = bench::render_scene(scene).name;
      if (name == options.scene) bench_options.scenes.push_back(scene);
      known += (scene ? ", " : "") + name;
    }
    if (bench_options.scenes.empty())
      return fail(ErrorCode::bad_usage, "there is no scene '" + options.scene + "'. Scenes: " + known + ".");
  }
  auto result = bench::bench_render(bench_options);
  if (result) (*result)["table"] = bench::render_table(*result);
  return result;
}

}  // namespace quarry::app
