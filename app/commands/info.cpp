// SPDX-License-Identifier: Apache-2.0
// info.cpp - `quarry info`: describes the content of a file. A .vox is described in its own axes (z up) with order-free
// checksums, so that two readers can be compared. Everything else is described in Quarry's axes (y up). All files get
// the statistics of their hash grid. World files are read in pieces (info_file.cpp). `--box` is in info_box.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/batch/scene_steps.hpp"
#include "app/commands/info_box.hpp"
#include "app/commands/info_file.hpp"
#include "app/console/load.hpp"
#include "app/console/terminal.hpp"
#include "voxel/io/vox/read.hpp"
#include "voxel/operations/connected_parts.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::app {
namespace {

using nlohmann::json;

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }
json triple(Int3 v) { return json::array({v.x, v.y, v.z}); }

json grid_json(const hashgrid::Stats& stats) {
  json histogram = json::array();
  size_t used = stats.depth_histogram.size();
  while (used > 1 && stats.depth_histogram[used - 1] == 0) --used;
  for (size_t i = 0; i < used; ++i) histogram.push_back(stats.depth_histogram[i]);
  return {{"live", stats.live},
          {"slots", stats.slots},
          {"load_factor", stats.load_factor},
          {"pages", stats.page_count},
          {"overflow_live", stats.overflow_live},
          {"bytes", stats.size_bytes},
          {"probe_depth",
           {{"mean", stats.depth_mean},
            {"p50", stats.depth_p50},
            {"p99", stats.depth_p99},
            {"max", stats.depth_max},
            {"histogram", histogram}}}};
}

// Facts that only a .vox has. Their names are those of other readers' reports, so a program can compare them.
void add_vox_facts(json& out, const Scene& scene) {
  io::VoxFacts facts;
  if (!io::vox_facts(scene, &facts)) return;
  out["version"] = facts.version;
  out["models"] = facts.models;
  out["empty_models"] = facts.empty_models;
  out["instances"] = facts.instances;
  out["mirrored_instances"] = facts.mirrored_instances;
  out["rotated_instances"] = facts.rotated_instances;
  out["groups"] = facts.groups;
  out["layers"] = facts.layers;
  out["cameras"] = facts.cameras;
  out["nondiffuse_mats"] = facts.nondiffuse_mats;
  out["anim_transform"] = facts.anim_transform;
  out["anim_model"] = facts.anim_model;
  json list = json::array();
  uint64_t voxels = 0;
  for (const auto& model : facts.model_list) {
    list.push_back(json::array({model.size[0], model.size[1], model.size[2], model.voxels}));
    voxels += model.voxels;
  }
  out["model_list"] = std::move(list);
  out["model_voxels_total"] = voxels;
}

json scene_json(const std::string& file, const io::Format& format, const Scene& scene, const SceneFacts& facts,
                Axes axes) {
  json out;
  out["file"] = file;
  out["format"] = format.name;
  out["axes"] = axes == Axes::z_up ? "z-up" : "y-up";
  out["models"] = facts.volumes;
  out["instances"] = facts.instances;
  out["layers"] = scene.layers.size();
  out["cameras"] = scene.cameras.size();
  out["placed"] = facts.placed;
  out["flat_all"] = facts.flat_all;
  out["flat_visible"] = facts.flat_visible;
  out["voxels"] = facts.flat_visible;
  out["overlap"] = facts.placed - facts.flat_all;
  out["colors_used"] = facts.colors_used;
  out["min"] = facts.bounds.empty() ? json() : triple(facts.bounds.min);
  out["max"] = facts.bounds.empty() ? json() : triple(facts.bounds.max);
  out["pos_sum"] = hex(facts.pos_sum);
  out["col_sum"] = hex(facts.col_sum);
  if (format.has_vox_facts) add_vox_facts(out, scene);
  // "vox." keys hold what a Scene cannot, including whole chunks. add_vox_facts shows the part that a person can read.
  for (const auto& [key, value] : scene.metadata)
    if (!key.starts_with("vox.")) out["metadata"][key] = value;
  return out;
}

// The same part, for what no grid holds.
void add_no_world(json& out, uint64_t bricks, uint64_t voxels) {
  out["bricks"] = bricks;
  out["world"] = {{"bricks", bricks},
                  {"voxels", voxels},
                  {"voxels_per_brick", double(voxels) / double(std::max<uint64_t>(1, bricks))}};
  out["grid"] = json();
}

// Whether a world has room for what is visible.
bool shown_in_world(const Scene& scene) {
  return std::ranges::all_of(scene.instances, [&](const Instance& instance) {
    return !scene.instance_visible(instance) ||
           in_world(placed(instance, scene.volumes[instance.volume].bricks.bounds()));
  });
}

// The part that is about the world and its grid. `more_bytes`, `more_packed`: what its bricks take beyond what it has,
// as it is and when packed.
Result<void> add_world(json& out, World& world, uint64_t voxel_count, uint64_t more_bytes = 0,
                       uint64_t more_packed = 0) {
  QRY_TRY_ASSIGN(const auto stats, world.stats());
  const auto bricks = double(std::max(1u, world.brick_count()));
  const auto voxels = double(std::max<uint64_t>(1, voxel_count));
  const uint64_t bytes = world.size_bytes() + more_bytes;
  out["bricks"] = world.brick_count();
  out["world"] = {{"bricks", world.brick_count()},
                  {"voxels", voxel_count},
                  {"bytes", bytes},
                  {"voxels_per_brick", double(voxel_count) / bricks},
                  {"bytes_per_voxel", double(bytes) / voxels}};
  out["grid"] = grid_json(stats);
  QRY_TRY(world.pack());
  const uint64_t packed = world.size_bytes() + more_packed;
  out["world"]["packed_bytes"] = packed;
  out["world"]["packed_bytes_per_voxel"] = double(packed) / voxels;
  return {};
}

// A world file is described without having all of it in memory: nothing, if the file is another one.
Result<std::optional<json>> streamed(const std::string& file, const io::Format& format) {
  QRY_TRY_ASSIGN(auto found, file_facts(file, format));
  if (!found) return std::nullopt;
  json out = scene_json(file, format, found->scene, found->facts, format.z_up ? Axes::z_up : Axes::y_up);
  if (!found->world) add_no_world(out, found->bricks, found->voxels);
  else QRY_TRY(add_world(out, *found->world, found->voxels, found->more_bytes, found->more_packed));
  return out;
}

// The connected parts of what is visible: how many, and the largest.
constexpr size_t kListedParts = 20;
Result<void> add_parts(json& out, const Scene& scene, Connectivity neighbours, Axes axes, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto bricks, flatten(scene, true));
  QRY_TRY_ASSIGN(const auto found, ConnectedParts::find(bricks, neighbours, progress));
  json list = json::array();
  for (const ConnectedPart& part : found.parts().first(std::min(found.parts().size(), kListedParts))) {
    const Box3 box = in_axes(part.box, axes);
    list.push_back(
        {{"voxels", part.voxels}, {"min", triple(box.min)}, {"max", triple(box.max)}, {"material", part.material}});
  }
  const size_t count = found.parts().size();
  out["parts"] = {{"neighbours", uint32_t(neighbours)},
                  {"count", count},
                  {"single_voxels", count - found.at_least(2)},
                  {"largest", std::move(list)}};
  return {};
}

std::string box_text(const json& min, const json& max) {
  return fmt::format("{},{},{} to {},{},{}", min[0].get<int>(), min[1].get<int>(), min[2].get<int>(), max[0].get<int>(),
                     max[1].get<int>(), max[2].get<int>());
}

void row(const char* name, const std::string& value) { fmt::print("  {:<14} {}\n", name, value); }

void print_parts(const json& out) {
  if (!out.contains("parts")) return;
  const json& parts = out["parts"];
  const json& largest = parts["largest"];
  row("parts", fmt::format("{} by {} neighbours, {} of them single voxels", with_commas(parts["count"]),
                           parts["neighbours"].get<uint32_t>(), with_commas(parts["single_voxels"])));
  for (size_t i = 0; i < largest.size(); ++i)
    row("", fmt::format("{}: {} voxels, {}, mostly material {}", i + 1, with_commas(largest[i]["voxels"]),
                        box_text(largest[i]["min"], largest[i]["max"]), largest[i]["material"].get<uint32_t>()));
  if (const uint64_t more = parts["count"].get<uint64_t>() - largest.size())
    row("", fmt::format("and {} smaller or equal", with_commas(more)));
}

void print_text(const json& out) {
  fmt::print("{} ({}, {})\n", out["file"].get<std::string>(), out["format"].get<std::string>(),
             out["axes"].get<std::string>());
  row("voxels",
      fmt::format("{} visible, {} with hidden ones", with_commas(out["flat_visible"]), with_commas(out["flat_all"])));
  row("models", fmt::format("{}, {} instances, {} layers, {} cameras", with_commas(out["models"]),
                            with_commas(out["instances"]), with_commas(out["layers"]), with_commas(out["cameras"])));
  if (!out["min"].is_null()) row("bounds", box_text(out["min"], out["max"]));
  row("colours", fmt::format("{} used", out["colors_used"].get<uint32_t>()));
  row("checksums",
      fmt::format("positions {}, colours {}", out["pos_sum"].get<std::string>(), out["col_sum"].get<std::string>()));
  const json& world = out["world"];
  if (out["grid"].is_null()) {
    row("bricks", fmt::format("{} of 8x8x8, {:.1f} voxels each", with_commas(world["bricks"]),
                              world["voxels_per_brick"].get<double>()));
    row("hash grid", "none: it reaches beyond x and z in -8192 to 8191, y in -4096 to 4095");
    print_parts(out);
    return;
  }
  row("bricks", fmt::format("{} of 8x8x8, {:.1f} voxels each, {:.2f} bytes a voxel", with_commas(world["bricks"]),
                            world["voxels_per_brick"].get<double>(), world["bytes_per_voxel"].get<double>()));
  row("memory", fmt::format("{}; packed for reading {}, {:.2f} bytes a voxel", bytes_text(world["bytes"]),
                            bytes_text(world["packed_bytes"]), world["packed_bytes_per_voxel"].get<double>()));
  const json& grid = out["grid"];
  const json& depth = grid["probe_depth"];
  row("hash grid",
      fmt::format("{} keys in {} slots (load factor {:.3f}), {}", with_commas(grid["live"]), with_commas(grid["slots"]),
                  grid["load_factor"].get<double>(), bytes_text(grid["bytes"])));
  row("probe depth",
      fmt::format("mean {:.3f}, p50 {}, p99 {}, max {} sectors", depth["mean"].get<double>(),
                  depth["p50"].get<uint32_t>(), depth["p99"].get<uint32_t>(), depth["max"].get<uint32_t>()));
  print_parts(out);
}

}  // namespace

int run_info(const CommandArguments& words) {
  std::string file, box_text, parts;
  bool as_json = false;
  LoadOptions load;
  Arguments arguments("info", "Say what is in a file, and what its hash grid looks like.",
                      "  quarry info castle.vox\n  quarry info --json world.quarry\n"
                      "  quarry info bunny.obj --resolution 512\n"
                      "  quarry info --parts 6 bridge.quarry     # what would fall down\n"
                      "  quarry info city.quarry --box 0,0,0,511,255,511\n");
  arguments.text("file", file, "FILE", "File to read", true);
  arguments.text(
      "--box", box_text, "X0,Y0,Z0,X1,Y1,Z1",
      "Only what is visible between these voxels, both included, y up: voxels, bricks, materials. Of a world "
      "file only the chunks are read that have some of it");
  arguments.flag("--json", as_json, "Print one JSON document");
  arguments.choice("--parts", parts, "K",
                   "List the largest connected parts of all that is visible: voxels that 6 (faces), 18 (edges too) or "
                   "26 (corners too) neighbours connect",
                   {"6", "18", "26"});
  load.add_to(arguments);
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = load.check(arguments)) return *code;

  std::optional<Box3> box;
  if (arguments.given("--box")) {
    box = box_of_text(box_text);
    if (!box)
      return arguments.wrong(
          fmt::format("--box {}: write the lowest and the highest voxel, X0,Y0,Z0,X1,Y1,Z1", box_text));
    // What leaves the box may come back: a part of a part says nothing.
    if (!parts.empty())
      return arguments.wrong("--parts and --box: give one of them; `quarry convert --crop` cuts a box out of a file.");
  }

  const auto format = io::format_for_reading(file);
  if (!format) return failed(file, format.error());
  const auto print = [&](const json& out) {
    if (as_json) fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
    else if (box) print_box(out);
    else print_text(out);
    return kExitDone;
  };
  if (box) {
    const auto described = describe_box(file, **format, load, *box);
    return described ? print(*described) : failed(file, described.error());
  }
  if (parts.empty()) {
    auto in_pieces = streamed(file, **format);
    if (!in_pieces) return failed(file, in_pieces.error());
    if (*in_pieces) return print(**in_pieces);
  }
  auto scene = load_scene(file, load);
  if (!scene) return failed(file, scene.error());
  const Axes axes = (*format)->z_up ? Axes::z_up : Axes::y_up;
  const auto facts = scene_facts(*scene, axes);
  if (!facts) return failed(file, facts.error());
  json out = scene_json(file, **format, *scene, *facts, axes);

  ProgressLine line(file);
  if (const auto neighbours = connectivity_of(parts))  // none: they were not asked for
    if (auto ok = add_parts(out, *scene, *neighbours, axes, line.progress()); !ok) return failed(file, ok.error());
  if (!shown_in_world(*scene)) {
    const auto visible = flatten(*scene, true);
    if (!visible) return failed(file, visible.error());
    add_no_world(out, visible->bricks().size(), visible->voxel_count());
    line.clear();
    return print(out);
  }
  // The world is made as for the renderer, so the grid's statistics are true of what is drawn.
  auto document = Document::create(std::move(*scene), {}, line.progress());
  line.clear();
  if (!document) return failed(file, document.error());
  if (auto ok = add_world(out, document->world(), document->world().voxel_count()); !ok)
    return failed(file, ok.error());
  return print(out);
}

}  // namespace quarry::app
