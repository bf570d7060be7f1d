// SPDX-License-Identifier: Apache-2.0
// algebra.cpp - volumes as sets of voxels in the C interface: combined, grown, eroded, taken apart; worlds compared.
// What becomes of a volume is found by voxel/operations, on the host; then the bricks that differ are written as one
// edit: Document::write, or DeviceHome::write_bricks. What a device does itself - two worlds on it, a single step, and
// parts - is in voxel/device/bodies/algebra.hpp and parts.hpp.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "engine/api/handles.hpp"
#include "voxel/operations/connected_parts.hpp"
#include "voxel/operations/diff.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/operations/whole_scene.hpp"
#include "voxel/worlds/flatten.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace {

qry_result check_neighbours(const char* function, uint32_t neighbours) {
  if (connectivity_from(neighbours)) return QRY_OK;
  return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: neighbours is %u, expected 6, 18 or 26", function, neighbours);
}

// The bricks of a volume, in its own axes. On a device there is one, at the origin.
Result<BrickMap> bricks_of_volume(const qry_world& world, uint32_t volume) {
  if (world.home) return world.home->bricks();
  return BrickMap(world.document->scene().volumes[volume].bricks);
}

// What is shown, in world axes.
Result<BrickMap> bricks_shown(const qry_world& world) {
  if (world.home) return world.home->bricks();
  const Scene& scene = world.document->scene();
  if (const auto alone = volume_at_origin(scene, true)) return BrickMap(scene.volumes[*alone].bricks);
  return flatten_for_world(scene, true);
}

qry_result check_info(const char* function, const qry_progress_info* info) {
  return info ? check_struct(function, "info", info, QRY_STYPE_PROGRESS_INFO) : QRY_OK;
}
class InfoCall : public ProgressCall {
 public:
  explicit InfoCall(const qry_progress_info* info)
      : ProgressCall(info ? info->progress : nullptr, info ? info->progress_user : nullptr) {}
  // The last time to stop. What follows is done whole.
  Result<void> last(const char* stage) const {
    if (!progress().cancelled()) progress().say(stage, 1);
    return progress().cancelled() ? Result<void>(fail(ErrorCode::cancelled, "stopped; nothing has changed"))
                                  : Result<void>();
  }
  // Of what a device makes itself, at once: that it begins, and that the last is to be done.
  Result<void> at_once(const char* what, const char* stage) const {
    progress().say(what, 0);
    return last(stage);
  }
};

// Makes the volume what `change` makes of its bricks, as one step of the history, if anything differs.
template <class Change>
qry_result change_volume(qry_world& world, uint32_t volume, const char* label, const qry_progress_info* info,
                         uint64_t* changed, const Change& change) {
  const InfoCall call(info);
  const uint32_t threads = world.context->threads;
  std::vector<BrickPut> puts;
  {
    const ThreadShare share(threads ? threads : thread_count());
    const auto before = bricks_of_volume(world, volume);
    if (!before) return refuse(before.error());
    const Result<BrickMap> after = change(*before, call.progress());
    if (!after) return refuse(after.error());
    puts = differences(*before, *after);
    if (const auto last = call.last("writing"); !last) return refuse(last.error());
  }
  if (world.home) return finish(world, world.home->write_bricks(puts, label), false, changed);
  return finish(world, world.document->write(volume, puts, label, threads), changed);
}

// The device has no room for what it would do itself. The host may have.
bool lacks_room(const Error& error) { return error.code == ErrorCode::full || error.code == ErrorCode::out_of_memory; }

// What qry_world_find_parts writes, of parts as host and device have them.
template <class Parts>
qry_result write_parts(const char* function, const Parts& found, qry_part* parts, uint64_t* count) {
  const uint64_t room = *count, all = found.size();
  for (uint64_t i = 0; i < std::min(room, all); ++i) {
    const auto& part = found[size_t(i)];
    parts[i] = {part.voxels,
                {part.box.min.x, part.box.min.y, part.box.min.z},
                {part.box.max.x, part.box.max.y, part.box.max.z},
                part.material,
                0};
  }
  *count = all;
  if (all > room)
    return refuse(QRY_INCOMPLETE, "%s: room for %llu parts, but there are %llu", function,
                  static_cast<unsigned long long>(room), static_cast<unsigned long long>(all));
  return QRY_OK;
}

// A device makes it itself.
template <class Launch>
qry_result change_there(qry_world& world, const qry_progress_info* info, const char* what, uint64_t* changed,
                        const Launch& launch) {
  if (const auto last = InfoCall(info).at_once(what, "writing"); !last) return refuse(last.error());
  return finish(world, launch(), false, changed);
}

// Whether a world, with more bricks, does not fit its budget: then not all of its bricks are read at once.
qry_result check_in_parts(const qry_world& world, uint64_t more_bricks, bool* in_parts) {
  *in_parts = false;
  if (!world.home) return QRY_OK;
  const auto fits = world.home->fits_together(more_bricks);
  if (!fits) return refuse(fits.error());
  *in_parts = !*fits;
  return QRY_OK;
}

// Of two worlds of which one does not fit its budget.
Result<SceneDiff> compare_in_parts(const qry_world& world, const qry_world& other, bool shape_only) {
  const Palette &own = world.document->scene().palette, &others = other.document->scene().palette;
  const Box3 all{brick_of(kWorldMin), brick_of(kWorldMax)};
  SceneDiff sum;
  const auto add = [&](const BrickMap& first, const BrickMap& second) -> Result<void> {
    sum.add(diff_bricks({first, own}, {second, others}, all, shape_only));
    return {};
  };
  if (world.home && other.home) {
    QRY_TRY(world.home->visit_beside(*other.home, add));
    return sum;
  }
  QRY_TRY_ASSIGN(const BrickMap bricks, bricks_shown(world.home ? other : world));
  if (world.home) QRY_TRY(world.home->visit_beside(bricks, add));
  else
    QRY_TRY(other.home->visit_beside(
        bricks, [&](const BrickMap& second, const BrickMap& first) { return add(first, second); }));
  return sum;
}

qry_result change_by_steps(qry_world* world, uint32_t volume, uint32_t neighbours, uint32_t steps,
                           const qry_progress_info* info, uint64_t* changed, const char* function, bool grows) {
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_volume(*world, volume, function));
    QRY_PASS_REFUSAL(check_neighbours(function, neighbours));
    if (steps < 1 || steps > kMostMorphologySteps)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: steps is %u, expected 1..%u", function, steps,
                    kMostMorphologySteps);
    QRY_PASS_REFUSAL(check_info(function, info));
    const char* const what = grows ? "grow" : "erode";
    if (world->home && steps == 1)
      return change_there(*world, info, what, changed,
                          [&] { return grows ? world->home->grow(neighbours) : world->home->erode(neighbours); });
    bool in_parts = false;
    QRY_PASS_REFUSAL(check_in_parts(*world, 0, &in_parts));
    if (in_parts)
      return change_there(*world, info, what, changed,
                          [&] { return world->home->change_by_steps(grows, neighbours, steps); });
    return change_volume(*world, volume, what, info, changed, [&](const BrickMap& bricks, const Progress& progress) {
      return grows ? dilate(bricks, Connectivity(neighbours), steps, progress)
                   : erode(bricks, Connectivity(neighbours), steps, progress);
    });
  });
}

// Of a device's comparison and of the host's.
template <class Kind>
qry_difference told(const Kind& kind) {
  const Box3 box = kind.voxels ? kind.bounds : Box3{};
  return {kind.voxels, {box.min.x, box.min.y, box.min.z}, {box.max.x, box.max.y, box.max.z}};
}
template <class Comparison>
void tell(const Comparison& found, uint64_t alike, qry_comparison& to) {
  to.added = told(found.added);
  to.removed = told(found.removed);
  to.recoloured = told(found.recoloured);
  to.alike_count = alike;
}

}  // namespace

qry_result qry_world_get_sums(const qry_world* world, qry_world_sums* sums) {
  const char* const function = "qry_world_get_sums";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "sums", sums, QRY_STYPE_WORLD_SUMS));
    const Palette& palette = world->document->scene().palette;
    if (world->home) {
      const auto found = world->home->voxel_sums(palette);
      if (!found) return refuse(found.error());
      sums->voxel_count = found->voxels;
      sums->place_sum = found->places;
      sums->colour_sum = found->colours;
      return QRY_OK;
    }
    const uint32_t threads = world->context->threads;
    const ThreadShare share(threads ? threads : thread_count());
    const auto bricks = bricks_shown(*world);
    if (!bricks) return refuse(bricks.error());
    const VoxelSums found = sums_of(*bricks, VoxelHash(palette, Axes::y_up));
    sums->voxel_count = found.voxels;
    sums->place_sum = found.pos_sum;
    sums->colour_sum = found.col_sum;
    return QRY_OK;
  });
}

qry_result qry_world_compare(const qry_world* world, const qry_world* other, uint32_t flags,
                             qry_comparison* comparison) {
  const char* const function = "qry_world_compare";
  return guarded(function, [&]() -> qry_result {
    if (!world || !other)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "other" : "world");
    if (flags & ~uint32_t(QRY_COMPARE_SHAPE))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: flags are 0x%x, expected QRY_COMPARE_ numbers", function, flags);
    if (other->context != world->context)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: other is a world of another context", function);
    QRY_PASS_REFUSAL(check_struct(function, "comparison", comparison, QRY_STYPE_COMPARISON));
    const Palette &own = world->document->scene().palette, &others = other->document->scene().palette;
    const bool shape_only = flags & QRY_COMPARE_SHAPE;
    bool own_in_parts = false, others_in_parts = false;
    QRY_PASS_REFUSAL(check_in_parts(*world, 0, &own_in_parts));
    QRY_PASS_REFUSAL(check_in_parts(*other, 0, &others_in_parts));
    if (own_in_parts || others_in_parts) {
      const auto found = compare_in_parts(*world, *other, shape_only);
      if (!found) return refuse(found.error());
      tell(*found, found->same, *comparison);
      return QRY_OK;
    }
    if (world->home && other->home && world->home->reads(*other->home)) {
      const auto found = world->home->compare(*other->home, material_looks(own, others, shape_only));
      if (!found) return refuse(found.error());
      tell(*found, found->alike, *comparison);
      return QRY_OK;
    }
    const uint32_t threads = world->context->threads;
    const ThreadShare share(threads ? threads : thread_count());
    const auto first = bricks_shown(*world);
    if (!first) return refuse(first.error());
    const auto second = bricks_shown(*other);
    if (!second) return refuse(second.error());
    const SceneDiff found =
        diff_bricks({*first, own}, {*second, others}, {brick_of(kWorldMin), brick_of(kWorldMax)}, shape_only);
    tell(found, found.same, *comparison);
    return QRY_OK;
  });
}

qry_result qry_world_combine(qry_world* world, uint32_t volume, const qry_world* other, uint32_t mode,
                             const qry_progress_info* info, uint64_t* changed) {
  const char* const function = "qry_world_combine";
  return guarded(function, [&]() -> qry_result {
    if (!world || !other)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "other" : "world");
    QRY_PASS_REFUSAL(check_volume(*world, volume, function));
    if (mode > QRY_COMBINE_DIFFERENCE)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: mode is %u, expected a QRY_COMBINE_ number", function, mode);
    if (other->context != world->context)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: other is a world of another context", function);
    QRY_PASS_REFUSAL(check_info(function, info));
    const auto by_home = [&] {
      return change_there(*world, info, "combine", changed,
                          [&] { return world->home->combine(*other->home, device::Combination(mode)); });
    };
    if (world->home && other->home && world->home->reads(*other->home)) return by_home();
    if (world->home && other->home) {
      bool own_in_parts = false, others_in_parts = false;
      QRY_PASS_REFUSAL(check_in_parts(*world, 0, &own_in_parts));
      QRY_PASS_REFUSAL(check_in_parts(*other, 0, &others_in_parts));
      if (own_in_parts || others_in_parts) return by_home();
    }
    if (world->home && world->home->pages() && !other->home) {
      const uint32_t threads = world->context->threads;
      const ThreadShare share(threads ? threads : thread_count());
      const auto theirs = bricks_shown(*other);
      if (!theirs) return refuse(theirs.error());
      bool in_parts = false;
      const bool is_union = mode == QRY_COMBINE_UNION;
      QRY_PASS_REFUSAL(check_in_parts(*world, is_union ? theirs->bricks().size() : 0, &in_parts));
      if (in_parts)
        return change_there(*world, info, "combine", changed,
                            [&] { return world->home->combine(*theirs, device::Combination(mode)); });
    }
    return change_volume(*world, volume, "combine", info, changed,
                         [&](const BrickMap& bricks, const Progress& progress) -> Result<BrickMap> {
                           QRY_TRY_ASSIGN(const BrickMap theirs, bricks_shown(*other));
                           return boolean(bricks, theirs, BooleanKind(mode), progress);
                         });
  });
}

qry_result qry_world_dilate(qry_world* world, uint32_t volume, uint32_t neighbours, uint32_t steps,
                            const qry_progress_info* info, uint64_t* changed) {
  return change_by_steps(world, volume, neighbours, steps, info, changed, "qry_world_dilate", true);
}

qry_result qry_world_erode(qry_world* world, uint32_t volume, uint32_t neighbours, uint32_t steps,
                           const qry_progress_info* info, uint64_t* changed) {
  return change_by_steps(world, volume, neighbours, steps, info, changed, "qry_world_erode", false);
}

qry_result qry_world_find_parts(const qry_world* world, uint32_t neighbours, const qry_progress_info* info,
                                qry_part* parts, uint64_t* count) {
  const char* const function = "qry_world_find_parts";
  return guarded(function, [&]() -> qry_result {
    if (!world || !count)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "count" : "world");
    QRY_PASS_REFUSAL(check_neighbours(function, neighbours));
    if (*count && !parts) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: parts is NULL, but *count is not 0", function);
    QRY_PASS_REFUSAL(check_info(function, info));
    const InfoCall call(info);
    const char* const stage = "looking for parts";
    if (world->home) {
      if (const auto last = call.at_once(stage, stage); !last) return refuse(last.error());
      const auto found = world->home->find_parts(neighbours);
      if (found) return write_parts(function, *found, parts, count);
      if (!lacks_room(found.error())) return refuse(found.error());
    }
    const uint32_t threads = world->context->threads;
    const ThreadShare share(threads ? threads : thread_count());
    const auto bricks = bricks_shown(*world);
    if (!bricks) return refuse(bricks.error());
    const auto found = ConnectedParts::find(*bricks, Connectivity(neighbours), call.progress());
    if (!found) return refuse(found.error());
    if (const auto last = call.last(stage); !last) return refuse(last.error());
    return write_parts(function, found->parts(), parts, count);
  });
}

qry_result qry_world_keep_parts(qry_world* world, uint32_t volume, uint32_t neighbours, uint64_t most, uint64_t least,
                                const qry_progress_info* info, uint64_t* changed) {
  const char* const function = "qry_world_keep_parts";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_volume(*world, volume, function));
    QRY_PASS_REFUSAL(check_neighbours(function, neighbours));
    if (most == 0)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: most is 0, expected at least 1; UINT64_MAX is no limit", function);
    QRY_PASS_REFUSAL(check_info(function, info));
    if (world->home) {
      if (const auto last = InfoCall(info).at_once("keep parts", "writing"); !last) return refuse(last.error());
      const auto ticket = world->home->keep_parts(neighbours, most, least);
      if (ticket || !lacks_room(ticket.error())) return finish(*world, ticket, false, changed);
    }
    return change_volume(*world, volume, "keep parts", info, changed,
                         [&](const BrickMap& bricks, const Progress& progress) {
                           return keep_parts(bricks, {Connectivity(neighbours), most, least}, progress);
                         });
  });
}
