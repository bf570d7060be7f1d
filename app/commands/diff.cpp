// SPDX-License-Identifier: Apache-2.0
// diff.cpp - `quarry diff`: compares two files voxel by voxel (voxel/operations/diff.hpp). Its exit codes are those of
// diff(1) and cmp(1), so scripts can tell "different" from "could not be read".
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/console/load.hpp"
#include "app/console/terminal.hpp"
#include "voxel/operations/diff.hpp"

namespace quarry::app {
namespace {

using nlohmann::json;

enum DiffExit : int { kEqual = 0, kDifferent = 1, kTrouble = 2 };

json box_json(const Box3& box) {
  if (box.empty()) return nullptr;
  return {{"min", {box.min.x, box.min.y, box.min.z}}, {"max", {box.max.x, box.max.y, box.max.z}}};
}

json diff_json(const std::string& a, const std::string& b, const SceneDiff& diff) {
  json out{
      {"a", a},           {"b", b}, {"equal", diff.equal()}, {"voxels_a", diff.voxels_a}, {"voxels_b", diff.voxels_b},
      {"same", diff.same}};
  const auto kind = [&](const char* name, const SceneDiff::Kind& k) {
    out[name] = k.voxels;
    out["bounds"][name] = box_json(k.bounds);
  };
  kind("added", diff.added);
  kind("removed", diff.removed);
  kind("recoloured", diff.recoloured);
  out["bounds"]["all"] = box_json(diff.bounds());
  return out;
}

void print_text(const std::string& a, const std::string& b, const SceneDiff& diff) {
  if (diff.equal()) {
    fmt::print("{} and {} are equal: {} voxels\n", a, b, with_commas(diff.same));
    return;
  }
  fmt::print("{} and {} differ\n", a, b);
  const auto row = [](const char* name, const SceneDiff::Kind& k) {
    if (k.voxels == 0) return;
    fmt::print("  {:<11} {:>14}  in {},{},{} to {},{},{}\n", name, with_commas(k.voxels), k.bounds.min.x,
               k.bounds.min.y, k.bounds.min.z, k.bounds.max.x, k.bounds.max.y, k.bounds.max.z);
  };
  row("added", diff.added);
  row("removed", diff.removed);
  row("recoloured", diff.recoloured);
  fmt::print("  {:<11} {:>14}  of {} and {}\n", "same", with_commas(diff.same), with_commas(diff.voxels_a),
             with_commas(diff.voxels_b));
}

}  // namespace

int run_diff(const CommandArguments& words) {
  std::string a, b;
  bool as_json = false, hidden = false, shape = false;
  LoadOptions load;
  Arguments arguments("diff",
                      "Compare two files voxel by voxel. Exit codes: 0 equal, 1 different, 2 wrong usage or a file "
                      "that cannot be read.",
                      "  quarry diff castle.vox castle.quarry\n  quarry diff --json before.quarry after.quarry\n"
                      "  quarry diff --shape bunny.obj bunny.binvox\n");
  arguments.text("a", a, "A", "The file before", true);
  arguments.text("b", b, "B", "The file after", true);
  arguments.flag("--json", as_json, "Print one JSON document");
  arguments.flag("--hidden", hidden, "Count hidden layers and instances too");
  arguments.flag("--shape", shape, "Compare where voxels are, not their materials");
  load.add_to(arguments);
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = load.check(arguments)) return *code;

  const auto trouble = [](int code) { return code == kExitCancelled ? code : int(kTrouble); };
  const auto first = load_scene(a, load);
  if (!first) return trouble(failed(a, first.error()));
  const auto second = load_scene(b, load);
  if (!second) return trouble(failed(b, second.error()));
  SceneDiffOptions options;
  options.visible_only = !hidden;
  options.shape_only = shape;
  const auto diff = diff_scenes(*first, *second, options);
  if (!diff) {
    say_error("", diff.error());
    return trouble(exit_code_of(diff.error()));
  }
  if (as_json) fmt::print("{}\n", diff_json(a, b, *diff).dump(2, ' ', false, json::error_handler_t::replace));
  else print_text(a, b, *diff);
  return diff->equal() ? kEqual : kDifferent;
}

}  // namespace quarry::app
