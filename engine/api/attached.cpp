// SPDX-License-Identifier: Apache-2.0
// attached.cpp - worlds of the C interface with a file behind their edits: attached, flushed, detached.
//
//   edit, undo, redo: the world alone     flush: what differs ─► one transaction of the file ─► it is the same again
//
// A world at home on the host knows by its Document what the file lacks, one on a device by its DeviceHome.
#include <filesystem>
#include <system_error>

#include "engine/api/handles.hpp"
#include "engine/home/drawing.hpp"
#include "voxel/io/formats.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

namespace fs = std::filesystem;

Result<void> write_new(qry_world& world, const io::Destination& to) {
  if (!world.home)
    return io::Store::save_with_history(world.document->scene(), world.document->history(),
                                        world.document->history_position(), to);
  QRY_TRY_ASSIGN(const Scene scene, engine::whole_scene(*world.home, *world.document));
  size_t position = 0;
  QRY_TRY_ASSIGN(const auto history, world.home->history(&position));
  return io::Store::save_with_history(scene, history, position, to);
}

// Lets the file go. The world goes on without one.
Result<void> let_go(qry_world& world) {
  world.file.reset();
  if (world.home) return world.home->unfollow();
  world.document->unfollow();
  return {};
}

Result<void> follow(qry_world& world, bool written_whole) {
  if (world.home) return world.home->follow(written_whole);
  world.document->follow();
  return {};
}

// The oldest ones, since the world was made.
Result<uint64_t> dropped_records(qry_world& world) {
  return world.home ? world.home->dropped_records() : world.document->dropped_records();
}

Result<std::unique_ptr<AttachedFile>> attach(qry_world& world, const fs::path& path) {
  QRY_TRY_ASSIGN(const auto format, io::format_for_writing(path));
  if (format->kind != io::FormatKind::world)
    return fail(
        ErrorCode::unsupported,
        path.string() + ": only a .quarry file can be attached, not a file of the kind '" + format->title + "'");
  QRY_TRY_ASSIGN(const uint64_t version, version_of(world));
  QRY_TRY_ASSIGN(const uint64_t dropped, dropped_records(world));
  int64_t first_record = -int64_t(dropped);
  std::error_code ignored;
  const bool there = fs::exists(path, ignored);
  std::optional<io::Store> store;
  if (there) {
    QRY_TRY_ASSIGN(store, io::Store::open(path));
    QRY_TRY_ASSIGN(const uint64_t fingerprint, store->fingerprint());
    if (!world.same_file || fingerprint != world.same_file->fingerprint)
      return fail(ErrorCode::conflict, path.string() +
                                           ": it is not the file that the world was opened or detached from, or has "
                                           "changed since: attach the world under a name that no file has");
    if (version == world.same_file->version) first_record = world.same_file->first_record;
    else store.reset();
  }
  const bool whole = !store;
  if (whole) {
    QRY_TRY(write_new(world, {path, there}));
    QRY_TRY_ASSIGN(store, io::Store::open(path));
  }
  QRY_TRY(follow(world, whole));
  for (const std::string& warning : store->warnings()) world.context->say(QRY_LOG_WARNING, warning.c_str());
  return std::unique_ptr<AttachedFile>(
      new AttachedFile{std::move(*store), world.document->scene().palette, first_record});
}

Result<void> flush(qry_world& world) {
  AttachedFile& file = *world.file;
  const Scene& scene = world.document->scene();
  io::Store::Later later;
  later.palette = !(scene.palette == file.palette);
  const Palette palette = scene.palette;
  QRY_TRY_ASSIGN(const uint64_t dropped, dropped_records(world));
  const int64_t first = file.first_record + int64_t(dropped);
  if (world.home) {
    QRY_TRY_ASSIGN(auto unsaved, world.home->unsaved());
    if (!unsaved.moved && !later.palette) return {};
    later.kept = uint64_t(first + int64_t(unsaved.kept));
    later.records = unsaved.records;
    later.position = uint64_t(first + int64_t(unsaved.position));
    if (!unsaved.regions.empty()) later.chunks[0] = std::move(unsaved.regions);
    Scene changed = scene;
    changed.volumes[0].bricks = std::move(unsaved.bricks);
    QRY_TRY(file.store.commit_later(changed, later));
  } else {
    auto unsaved = world.document->unsaved();
    if (!unsaved.moved && !later.palette) return {};
    later.kept = uint64_t(first + int64_t(unsaved.kept));
    later.records = std::span(world.document->history()).subspan(unsaved.kept);
    later.position = uint64_t(first + int64_t(world.document->history_position()));
    later.chunks = std::move(unsaved.regions);
    QRY_TRY(file.store.commit_later(scene, later));
  }
  file.palette = palette;
  return follow(world, false);
}

}  // namespace
}  // namespace quarry::c_api

qry_result qry_world_attach(qry_world* world, const char* path) {
  const char* const function = "qry_world_attach";
  return guarded(function, [&]() -> qry_result {
    if (!world || !path || !*path)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s", function,
                    !world  ? "world is NULL"
                    : !path ? "path is NULL"
                            : "path is empty");
    QRY_PASS_REFUSAL(check_writable(*world, function));
    if (world->file)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: the world is attached to %s: detach it first", function,
                    world->file->store.path().c_str());
    auto file = attach(*world, path);
    if (!file) return refuse(file.error());
    world->file = std::move(*file);
    return QRY_OK;
  });
}

qry_result qry_world_flush(qry_world* world) {
  const char* const function = "qry_world_flush";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (!world->file) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: the world is not attached to a file", function);
    if (auto ok = flush(*world); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_detach(qry_world* world) {
  const char* const function = "qry_world_detach";
  return guarded(function, [&]() -> qry_result {
    const qry_result flushed = qry_world_flush(world);
    if (flushed == QRY_ERROR_DEVICE_LOST) {  // nothing of the world will come there any more
      const std::string reason = qry_last_error(), file = world->file->store.path();
      world->same_file.reset();
      (void)let_go(*world);
      return refuse(flushed, "%s: %s is as after the last flush, and let go: %s", function, file.c_str(),
                    reason.c_str());
    }
    QRY_PASS_REFUSAL(flushed);
    const auto version = version_of(*world);
    if (!version) return refuse(version.error());
    if (auto single = world->file->store.fold_in(); !single) return refuse(single.error());
    if (const auto fingerprint = world->file->store.fingerprint(); fingerprint)
      world->same_file = qry_world::SameFile{*fingerprint, *version, world->file->first_record};
    else world->same_file.reset();
    if (auto ok = let_go(*world); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}
