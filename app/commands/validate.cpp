// SPDX-License-Identifier: Apache-2.0
// validate.cpp - `quarry validate`: reads files whole, as every other command would, and reports their defects. Nothing
// is written.
// A sound file is one that the reader accepts (for a world file that covers every checksum), and whose instances lie
// where a scene may reach, which is far beyond what one grid holds. World files are checked chunk by chunk; where
// instances may overlap, voxels are counted layer by layer.
#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/console/load.hpp"
#include "app/console/terminal.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::app {
namespace {

using nlohmann::json;

struct ValidationResult {
  std::string format;
  std::vector<std::string> warnings;
  uint64_t volumes = 0, instances = 0, voxels = 0;
};

constexpr uint64_t kLayerBytes = uint64_t(256) << 20;  // flattened at a time, with what it takes

// The distinct voxels of all volumes, hidden ones too, some layers at a time. None: a layer is too large.
Result<std::optional<uint64_t>> flat_voxels(io::StoreReader& store, const Progress& progress) {
  auto regions = io::VisibleRegions::of_chunks(store, kLayerBytes, progress, false);
  // It may be that only a chunk is too far out.
  if (!regions && regions.error().code == ErrorCode::out_of_bounds) return std::nullopt;
  QRY_TRY(regions);
  uint64_t voxels = 0;
  if (regions->bounds().empty()) return voxels;
  const int32_t end = brick_of(regions->bounds().max).x;
  for (int32_t first = brick_of(regions->bounds().min).x; first <= end;) {
    const auto last = regions->last_layer(0, first);
    if (!last && last.error().code == ErrorCode::out_of_memory) return std::nullopt;
    QRY_TRY(last);
    QRY_TRY_ASSIGN(const auto bricks, regions->layers(0, first, *last));
    for (const auto& [at, brick] : bricks.bricks())
      if (at.x >= first && at.x <= *last) voxels += brick.count();
    first = *last + 1;
  }
  return voxels;
}

// A world file in the memory of some chunks. False: one that must be read whole, of which nothing is judged yet.
Result<bool> judge_by_chunks(const std::string& file, const Progress& progress, ValidationResult& result) {
  std::vector<std::string> warnings;
  QRY_TRY_ASSIGN(auto store, io::StoreReader::open(file, &warnings));
  const Scene& scene = store.scene();
  const Flattener flattener(scene, false);
  const auto shown = flattener.only_volume();
  const Int3 offset = shown ? brick_of(scene.instances[0].offset) : Int3{};
  std::atomic<uint64_t> voxels{0};
  std::mutex lock;
  bool outside = false;
  QRY_TRY(store.visit_all(
      [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
        uint64_t some = 0;
        bool beyond = false;
        QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
          some += full ? kVoxelsPerBrick : brick.count();
          if (!brick_in_scene(at + offset)) beyond = true;
        }));
        if (volume != shown) return {};
        voxels += some;
        const std::lock_guard hold(lock);
        outside = outside || beyond;
        return {};
      },
      progress));
  // A file that an editor would refuse is not sound, so its history counts too.
  QRY_TRY(store.check_history(progress));
  if (outside) return tl::unexpected(instance_too_far(scene, shown_instances(scene, false).front()));
  if (!shown) {
    QRY_TRY_ASSIGN(const auto flat, flat_voxels(store, progress));
    if (!flat) return false;
    voxels = *flat;
  }
  result.warnings = std::move(warnings);
  result.volumes = scene.volumes.size();
  result.instances = scene.instances.size();
  result.voxels = voxels;
  return true;
}

Result<void> judge(const std::string& file, io::ReadOptions options, ValidationResult& result) {
  QRY_TRY_ASSIGN(const auto format, io::format_for_reading(file));
  result.format = format->name;
  options.warnings = &result.warnings;
  ProgressLine line(file);
  options.progress = line.progress();
  if (format->kind == io::FormatKind::world) {
    QRY_TRY_ASSIGN(const bool judged, judge_by_chunks(file, options.progress, result));
    if (judged) return {};
  }
  std::vector<UndoRecord> history;  // counts too
  const auto scene = format->kind == io::FormatKind::world
                         ? io::Store::read(file, options.progress, &history, nullptr, options.warnings)
                         : io::read_scene(file, options);
  line.clear();
  QRY_TRY(scene);
  QRY_TRY_ASSIGN(const auto bricks, flatten(*scene, false));
  result.volumes = scene->volumes.size();
  result.instances = scene->instances.size();
  result.voxels = bricks.voxel_count();
  return {};
}

}  // namespace

int run_validate(const CommandArguments& words) {
  std::vector<std::string> files;
  bool as_json = false, strict = false;
  LoadOptions load;
  Arguments arguments(
      "validate",
      "Read files whole and say what is wrong with them. Exit codes: 0 all sound, 1 none is, 3 some are not.",
      "  quarry validate world.quarry\n  quarry validate --json models/*.vox\n"
      "  quarry validate --strict castle.vox\n");
  arguments.texts("file", files, "FILE...", "Files to check", true);
  arguments.flag("--json", as_json, "Print one JSON document");
  arguments.flag("--strict", strict, "A warning (something skipped or mended) is an error too");
  load.add_to(arguments);
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = load.check(arguments)) return *code;
  const io::ReadOptions options = load.read_options();

  size_t sound = 0;
  json report = json::array();
  for (const std::string& file : files) {
    ValidationResult result;
    const auto judged = judge(file, options, result);
    const bool ok = judged && !(strict && !result.warnings.empty());
    sound += ok;
    json entry{{"file", file},
               {"format", result.format.empty() ? json() : json(result.format)},
               {"ok", ok},
               {"warnings", result.warnings}};
    if (judged) entry.update({{"volumes", result.volumes}, {"instances", result.instances}, {"voxels", result.voxels}});
    else entry["error"] = with_salvage_hint(file, judged.error()).message;
    report.push_back(std::move(entry));
    for (const std::string& warning : result.warnings) say_warning(file, warning);
    if (!judged) {
      const int code = failed(file, judged.error());
      if (code == kExitCancelled) return code;
    } else if (!as_json) {
      fmt::print("{}: {} ({}, {} voxels in {} volumes, {} instances)\n", file, ok ? "sound" : "has warnings",
                 result.format, with_commas(result.voxels), with_commas(result.volumes), with_commas(result.instances));
    }
  }
  if (as_json) fmt::print("{}\n", report.dump(2, ' ', false, json::error_handler_t::replace));
  return sound == files.size() ? kExitDone : sound == 0 ? kExitFailed : kExitSomeFailed;
}

}  // namespace quarry::app
