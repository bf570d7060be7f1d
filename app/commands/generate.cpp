// SPDX-License-Identifier: Apache-2.0
// generate.cpp - `quarry generate`: writes a procedural scene into a file of any writable format.
#include <fmt/format.h>

#include <chrono>

#include "app/console/arguments.hpp"
#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "base/suggest.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {

int run_generate(const CommandArguments& words) {
  std::string name, output;
  int64_t size = 0, seed = 1;
  bool list = false, overwrite = false;
  Arguments arguments("generate", "Make a procedural scene.",
                      "  quarry generate --list\n  quarry generate terrain -o terrain.quarry\n"
                      "  quarry generate menger --size 243 -o menger.vox\n");
  arguments.text("name", name, "NAME", "Which scene; see --list");
  arguments.text("-o,--output", output, "FILE", "Where to; the ending names the format");
  arguments.integer("--size", size, "N", "Edge in voxels (each scene's own)", 1, 16384);
  arguments.integer("--seed", seed, "S", "Another number, another scene (1)", 0, 0xFFFFFFFFll);
  arguments.flag("--list", list, "Show the scenes there are");
  arguments.flag("--overwrite", overwrite, "Replace the output if it is there");
  if (const auto code = arguments.parse(words)) return *code;

  if (list) {
    for (const Generator& generator : generators())
      fmt::print("{:<10} {} (size {} to {}, {} if not given)\n", generator.name, generator.title, generator.min_size,
                 generator.max_size, generator.default_size);
    return kExitDone;
  }
  if (name.empty()) return arguments.wrong("which scene? `quarry generate --list` shows them.");
  if (output.empty()) return arguments.wrong("-o FILE is missing.");
  std::vector<std::string> known;
  const Generator* chosen = nullptr;
  for (const Generator& generator : generators()) {
    known.emplace_back(generator.name);
    if (name == generator.name) chosen = &generator;
  }
  if (!chosen) return arguments.wrong(fmt::format("there is no scene '{}'.{}", name, did_you_mean(name, known)));
  if (size != 0 && (size < chosen->min_size || size > chosen->max_size))
    return arguments.wrong(
        fmt::format("--size {} is outside {} to {} of '{}'.", size, chosen->min_size, chosen->max_size, name));
  if (const auto format = io::format_for_writing(output); !format) return arguments.wrong(format.error().message + ".");
  if (const auto free = check_output(output, overwrite); !free) {
    say_error("", free.error());
    return kExitFailed;
  }

  const std::string sidecars = replaced_sidecars(output);
  const auto start = std::chrono::steady_clock::now();
  ProgressLine line(output);
  const auto scene = generate(name, int32_t(size), uint32_t(seed), line.progress());
  const Result<void> written =
      scene ? io::write_scene(*scene, {output, overwrite}, line.progress()) : tl::unexpected<Error>(scene.error());
  line.clear();
  if (!written) {
    say_error(output, written.error());
    return exit_code_of(written.error());
  }
  if (!sidecars.empty()) say_warning(output, sidecars);
  uint64_t voxels = 0;
  for (const Volume& volume : scene->volumes) voxels += volume.bricks.voxel_count();
  fmt::print("{}: {} voxels, {:.2f} s\n", output, with_commas(voxels),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return kExitDone;
}

}  // namespace quarry::app
