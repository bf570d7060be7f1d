// SPDX-License-Identifier: Apache-2.0
// diff.cpp - `quarry diff`: compares two files voxel by voxel (voxel/operations/diff.hpp). Its exit codes are those of
// diff(1) and cmp(1), so scripts can tell "different" from "could not be read". World files are compared in pieces, or
// layer by layer.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "app/console/load.hpp"
#include "app/console/terminal.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/operations/diff.hpp"
#include "voxel/worlds/flatten.hpp"

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

// So many bricks of both files are held at a time, 40 MiB, unless a row of chunks along z has more.
constexpr uint64_t kBricksAtOnce = uint64_t(1) << 16;

// Boxes that have all of `chunks`, which rise, and none of them twice: of whole layers across x, or of whole rows along
// z in one layer, in the order in which the file has them.
std::vector<Box3> boxes_of(std::span<const io::ChunkBricks> chunks) {
  struct Box {
    Box3 box;
    uint64_t bricks = 0;
  };
  // Joins neighbours that have the same key, then while they stay small and `may_join` lets them.
  const auto joined = [](const std::vector<Box>& parts, const auto& may_join) {
    std::vector<Box> out;
    for (const Box& part : parts) {
      if (!out.empty() && may_join(out.back(), part)) {
        out.back().box = united(out.back().box, part.box);
        out.back().bricks += part.bricks;
      } else {
        out.push_back(part);
      }
    }
    return out;
  };
  std::vector<Box> each;
  each.reserve(chunks.size());
  for (const io::ChunkBricks& c : chunks) each.push_back({{c.chunk, c.chunk}, c.bricks});
  const auto small = [](const Box& a, const Box& b) { return a.bricks + b.bricks <= kBricksAtOnce; };
  const auto layer = [](const Box& a, const Box& b) { return a.box.max.x == b.box.min.x; };
  const std::vector<Box> rows =
      joined(each, [&](const Box& a, const Box& b) { return layer(a, b) && a.box.max.y == b.box.min.y; });
  std::vector<Box3> boxes;
  for (const Box& layers : joined(joined(rows, layer), small)) {
    if (layers.bricks <= kBricksAtOnce) {
      boxes.push_back(layers.box);
      continue;
    }
    const auto first = std::find_if(rows.begin(), rows.end(), [&](const Box& r) { return layer(layers, r); });
    const auto last = std::find_if(first, rows.end(), [&](const Box& r) { return !layer(layers, r); });
    for (const Box& some : joined({first, last}, small)) boxes.push_back(some.box);
  }
  return boxes;
}

// A world file of one volume that its only instance shows as it is.
struct WorldFile {
  io::StoreReader store;
  Scene scene;  // its volume is filled piece by piece
  std::vector<io::ChunkBricks> chunks;

  Int3 offset() const { return scene.instances[0].offset; }
  Result<void> read(const Box3& chunk_box, const Progress& progress) {
    scene.volumes[0].bricks.clear();
    return store.read(0, chunk_box, scene.volumes[0].bricks, progress);
  }
};

// None if the file is another one.
Result<std::optional<WorldFile>> open_world(const std::string& file, bool visible_only,
                                            std::vector<std::string>& warnings) {
  const auto format = io::format_for_reading(file);
  if (!format || (*format)->kind != io::FormatKind::world) return std::nullopt;
  QRY_TRY_ASSIGN(auto store, io::StoreReader::open(file, &warnings));
  Scene scene = store.scene();
  if (scene.volumes.size() != 1 || scene.instances.size() != 1 || !Flattener(scene, visible_only).alone(0))
    return std::nullopt;
  QRY_TRY_ASSIGN(auto chunks, store.chunks(0));
  return WorldFile{std::move(store), std::move(scene), std::move(chunks)};
}

// Where an error happened, and what it is.
struct Trouble {
  std::string file;  // "": in the comparison
  Error error;
};

// Compares two world files in the memory of some of their chunks: nothing, if one of them must be read whole.
tl::expected<std::optional<SceneDiff>, Trouble> diff_in_pieces(const std::string& a, const std::string& b,
                                                               const SceneDiffOptions& options) {
  const auto in = [](const std::string& file) { return [&file](const Error& error) { return Trouble{file, error}; }; };
  std::vector<std::string> warnings_a, warnings_b;
  auto first = open_world(a, options.visible_only, warnings_a).map_error(in(a));
  QRY_TRY(first);
  if (!*first) return std::nullopt;
  auto second = open_world(b, options.visible_only, warnings_b).map_error(in(b));
  QRY_TRY(second);
  if (!*second) return std::nullopt;
  WorldFile &left = **first, &right = **second;
  // Chunks of one cover chunks of the other only if they are shifted by whole ones.
  const auto chunks_between = [](int32_t to, int32_t from) -> std::optional<int32_t> {
    constexpr int64_t kChunkEdge = 64;  // voxels
    const int64_t voxels = int64_t(to) - from;
    if (voxels % kChunkEdge) return std::nullopt;
    return int32_t(voxels / kChunkEdge);
  };
  const Int3 to = left.offset(), from = right.offset();
  const auto x = chunks_between(to.x, from.x), y = chunks_between(to.y, from.y), z = chunks_between(to.z, from.z);
  if (!x || !y || !z) return std::nullopt;
  const Int3 to_right{*x, *y, *z};
  for (const std::string& warning : warnings_a) say_warning(shown(a), warning);
  for (const std::string& warning : warnings_b) say_warning(shown(b), warning);

  std::vector<io::ChunkBricks> all = left.chunks;
  for (const io::ChunkBricks& c : right.chunks) all.push_back({c.chunk - to_right, c.bricks});
  std::sort(all.begin(), all.end(), [](const auto& c, const auto& d) { return c.chunk < d.chunk; });
  const std::vector<Box3> boxes = boxes_of(all);
  ProgressLine line(shown(a) + " and " + shown(b));
  const Progress progress = line.progress();
  SceneDiff sum;
  for (size_t i = 0; i < boxes.size(); ++i) {
    progress.say("comparing", double(i) / double(boxes.size()));
    QRY_TRY(left.read(boxes[i], progress).map_error(in(a)));
    QRY_TRY(right.read({boxes[i].min + to_right, boxes[i].max + to_right}, progress).map_error(in(b)));
    const auto part = diff_scenes(left.scene, right.scene, options).map_error(in(""));
    QRY_TRY(part);
    sum.add(*part);
  }
  return sum;
}

constexpr uint64_t kLayerBytes = uint64_t(256) << 20;  // of each file that are flattened at a time, with what it takes

// World files whose volumes are placed in any way, flattened and compared some layers at a time: nothing, if one is
// another file, or must be read whole: a layer is too large, or a volume lies less than a chunk from the world's edge.
tl::expected<std::optional<SceneDiff>, Trouble> diff_in_layers(const std::string& a, const std::string& b,
                                                               const SceneDiffOptions& options) {
  ProgressLine line(shown(a) + " and " + shown(b));
  const Progress progress = line.progress();
  struct Side {
    const std::string* file;
    std::vector<std::string> warnings = {};
    std::optional<io::StoreReader> store = {};
    std::optional<io::VisibleRegions> regions = {};
    Box3 bricks() const { return {brick_of(regions->bounds().min), brick_of(regions->bounds().max)}; }
    bool empty() const { return regions->bounds().empty(); }
  };
  Side sides[2] = {{&a}, {&b}};
  for (Side& side : sides) {
    const auto trouble = [&](const Error& error) { return Trouble{*side.file, error}; };
    const auto format = io::format_for_reading(*side.file);
    if (!format || (*format)->kind != io::FormatKind::world) return std::nullopt;
    auto store = io::StoreReader::open(*side.file, &side.warnings).map_error(trouble);
    QRY_TRY(store);
    side.store.emplace(std::move(*store));
    auto regions =
        io::VisibleRegions::of_chunks(*side.store, kLayerBytes, progress, options.visible_only).map_error(trouble);
    if (!regions && regions.error().error.code == ErrorCode::out_of_bounds) return std::nullopt;
    QRY_TRY(regions);
    side.regions.emplace(std::move(*regions));
  }
  for (const Side& side : sides)
    for (const std::string& warning : side.warnings) say_warning(shown(*side.file), warning);
  Box3 all;
  for (const Side& side : sides)
    if (!side.empty()) all = united(all, side.bricks());
  SceneDiff sum;
  for (int32_t first = all.min.x; first <= all.max.x;) {
    progress.say("comparing", double(first - all.min.x) / double(all.max.x - all.min.x + 1));
    int32_t last = all.max.x;
    for (const Side& side : sides) {
      // Where there is nothing more of one, the other decides.
      if (side.empty() || side.bricks().max.x < first) continue;
      const auto fits = side.regions->last_layer(0, first);
      if (!fits && fits.error().code == ErrorCode::out_of_memory) return std::nullopt;
      QRY_TRY(fits.map_error([&](const Error& error) { return Trouble{*side.file, error}; }));
      if (*fits < side.bricks().max.x) last = std::min(last, *fits);
    }
    BrickMap bricks[2];
    for (size_t i = 0; i < 2; ++i) {
      auto read = sides[i].regions->layers(0, first, last).map_error([&](const Error& error) {
        return Trouble{*sides[i].file, error};
      });
      QRY_TRY(read);
      bricks[i] = std::move(*read);
    }
    Box3 layers{brick_of(kSceneMin), brick_of(kSceneMax)};
    layers.min.x = first, layers.max.x = last;
    sum.add(diff_bricks({bricks[0], sides[0].store->scene().palette}, {bricks[1], sides[1].store->scene().palette},
                        layers, options.shape_only));
    first = last + 1;
  }
  return sum;
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
  SceneDiffOptions options;
  options.visible_only = !hidden;
  options.shape_only = shape;
  const auto say = [&](const SceneDiff& diff) {
    if (as_json) fmt::print("{}\n", diff_json(a, b, diff).dump(2, ' ', false, json::error_handler_t::replace));
    else print_text(a, b, diff);
    return diff.equal() ? kEqual : kDifferent;
  };
  const auto incomparable = [&](const Error& error) {
    say_error("", error);
    return trouble(exit_code_of(error));
  };
  for (const auto& diff_in_parts : {diff_in_pieces, diff_in_layers}) {
    const auto in_parts = diff_in_parts(a, b, options);
    if (!in_parts) {
      const auto& [file, error] = in_parts.error();
      return file.empty() ? incomparable(error) : trouble(failed(file, error));
    }
    if (*in_parts) return say(**in_parts);
  }
  const auto first = load_scene(a, load);
  if (!first) return trouble(failed(a, first.error()));
  const auto second = load_scene(b, load);
  if (!second) return trouble(failed(b, second.error()));
  const auto diff = diff_scenes(*first, *second, options);
  if (!diff) return incomparable(diff.error());
  return say(*diff);
}

}  // namespace quarry::app
