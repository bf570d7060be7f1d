// SPDX-License-Identifier: Apache-2.0
// request.cpp - the command line of `quarry bench`.
#include <fmt/format.h>

#include <algorithm>

#include "app/bench/benchmarks.hpp"
#include "app/console/arguments.hpp"
#include "base/suggest.hpp"

namespace quarry::app {
namespace {

struct BenchRow {
  const char* name;
  const char* title;
};

// In the order of Bench.
constexpr BenchRow kBenches[] = {
    {"hashgrid", "Hash grid on host threads and CUDA: every operation beside the memory's ceilings and other tables"},
    {"index", "Ordered index: builds, look-ups, ranges, boxes and batches, beside the hash grid and sorted arrays"},
    {"join", "Several values a key, and joins of two tables: beside sorting and merging"},
    {"render", "Ray-marcher on reference scenes: primary, shadow, ambient rays and frames, beside two ceilings"},
    {"world", "Worlds with history through the C interface: edits, undo, lists of voxels, memory"},
    {"scan", "Running sums and selections of lists by shaders, beside a copy of the list"},
    {"paged", "Paged grids: builds and look-ups beyond a budget, beside a table used in parts and beside the bus"},
    {"readers",
     "A world in a device's memory, read in place: the same rays, and random bricks, by kernels and by shaders"},
};

}  // namespace

const char* bench_name(Bench bench) { return kBenches[size_t(bench)].name; }

tl::expected<BenchRequest, int> read_bench_request(const CommandArguments& words) {
  BenchRequest request;
  BenchOptions& options = request.options;
  std::string name, budget, host_memory;
  bool list = false;
  int64_t keys = 0, repeats = 5, rays = 0, resolution = 256;
  Arguments arguments("bench", "Measure, and print ratios to rivals measured in the same run.",
                      "  quarry bench --list\n  quarry bench hashgrid\n"
                      "  quarry bench hashgrid --keys 16777216 --json\n"
                      "  quarry bench render --scene sponge\n");
  arguments.text("name", name, "NAME", "Which benchmark; see --list");
  arguments.integer(
      "--keys", keys, "N",
      "hashgrid, index, join, paged: size in keys (65536, 1048576 and 16777216; index: 1000000 and 8000000; join: "
      "1048576; paged: 1000000, 10000000 and 100000000; readers: bricks of the larger world, 27500000)",
      1000, int64_t(1) << 28);
  arguments.integer("--repeats", repeats, "N", "The median of these is reported (5)", 1, 1000);
  arguments.text(
      "--only", options.only, "TEXT",
      "hashgrid, index, join, paged: rows whose name has this in it, as 'find' or 'V:' (all); world: lists, "
      "spheres, strokes, box, trim, algebra or flatten (all); attached: the sessions, with a file behind "
      "the world; flight: frames through the file of --open, of which --budget holds a part; window: edits of that "
      "file here and a million voxels away; readers: rays or look-ups "
      "(all)");
  arguments.text("--scene", options.scene, "NAME", "render: terrain, sponge or sphere (all)");
  arguments.text("--device", options.device, "NAME", "render, scan, readers: part of a Vulkan device's name");
  arguments.flag(
      "--small", options.small,
      "render: miniatures at 320x180, for software drivers; scan: short lists; world: a part in seconds; readers: few "
      "rays and bricks");
  arguments.flag("--validation", options.validation, "render, scan, readers: with the Vulkan validation layers");
  arguments.text("--replays", options.replays, "FOLDER",
                 "world: recorded sessions, NAME.csv and facts.json (left out)");
  arguments.text("--session", options.session, "NAME", "world: which of them (small); any other is measured alone");
  arguments.text("--home", options.home, "HOME",
                 "world, readers: where worlds are kept: automatic, host, device, emulated (automatic)");
  arguments.text("--budget", budget, "SIZE",
                 "world: with --only attached, flight or window, the part of the device's memory that worlds keep to, "
                 "256M (all of "
                 "it)");
  arguments.text("--host-memory", host_memory, "SIZE",
                 "world: with --only flight, the host's memory for its pages; it is flown again, from these (none)");
  arguments.flag("--pictures", options.pictures, "world: pictures after edits, too, on the device");
  arguments.integer("--rays", rays, "N", "world: a list of so many rays, too, on the device (none)", 0,
                    int64_t(1) << 28);
  arguments.text("--open", options.open, "FILE", "world: a file to open and picture, and nothing else (none)");
  arguments.integer("--resolution", resolution, "N", "world: voxels along the longest edge of a mesh that is opened", 1,
                    8192);
  arguments.flag("--json", request.as_json, "Print one JSON document");
  arguments.flag("--list", list, "Show the benchmarks there are");
  if (const auto code = arguments.parse(words)) return tl::unexpected(*code);
  if (const auto code = arguments.check_bytes("--budget", budget, options.budget_bytes)) return tl::unexpected(*code);
  if (const auto code = arguments.check_bytes("--host-memory", host_memory, options.host_bytes))
    return tl::unexpected(*code);
  if (list) {
    for (const BenchRow& row : kBenches) fmt::print("{:<16} {}\n", row.name, row.title);
    return tl::unexpected<int>(kExitDone);
  }
  if (name.empty()) return tl::unexpected(arguments.wrong("which benchmark? `quarry bench --list` shows them."));
  std::vector<std::string> known;
  for (const BenchRow& row : kBenches) known.emplace_back(row.name);
  const auto found = std::ranges::find(known, name);
  if (found == known.end())
    return tl::unexpected(
        arguments.wrong(fmt::format("there is no benchmark '{}'.{}", name, did_you_mean(name, known))));

  const std::vector<std::string> homes{"automatic", "host", "device", "emulated"};
  if (std::ranges::find(homes, options.home) == homes.end())
    return tl::unexpected(
        arguments.wrong(fmt::format("there is no home '{}'.{}", options.home, did_you_mean(options.home, homes))));
  request.bench = Bench(found - known.begin());
  options.keys = uint64_t(keys);
  options.repeats = uint32_t(repeats);
  options.rays = uint64_t(rays);
  return request;
}

}  // namespace quarry::app
