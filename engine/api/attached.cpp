// SPDX-License-Identifier: Apache-2.0
// attached.cpp - worlds of the C interface with a file behind their edits: attached, flushed, detached
// (engine/home/followed_file.hpp).
#include <filesystem>
#include <system_error>

#include "engine/api/handles.hpp"
#include "voxel/io/formats.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

namespace fs = std::filesystem;
using engine::FollowedFile;

// Lets the file go. The world goes on without one.
Result<void> let_go(qry_world& world) {
  world.file.reset();
  return FollowedFile::let_go(homed(world));
}

Result<FollowedFile> attach(qry_world& world, const fs::path& path, bool there, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto format, io::format_for_writing(path));
  if (format->kind != io::FormatKind::world)
    return fail(
        ErrorCode::unsupported,
        path.string() + ": only a .quarry file can be attached, not a file of the kind '" + format->title + "'");
  QRY_TRY_ASSIGN(const uint64_t version, version_of(world));
  QRY_TRY_ASSIGN(const uint64_t dropped, homed(world).dropped_records());
  int64_t first_record = -int64_t(dropped);
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  std::optional<io::Store> store;
  if (exists) {
    QRY_TRY_ASSIGN(store, io::Store::open(path));
    QRY_TRY_ASSIGN(const uint64_t fingerprint, store->fingerprint());
    if (!world.same_file || fingerprint != world.same_file->fingerprint)
      return fail(ErrorCode::conflict, path.string() +
                                           ": it is not the file that the world was opened or detached from, or has "
                                           "changed since: attach the world under a name that no file has");
    if (version == world.same_file->version) {
      first_record = world.same_file->first_record;
    } else if (world.same_file->first_record + int64_t(dropped) > 0) {
      return fail(
          ErrorCode::conflict,
          path.string() +
              ": it has steps of the history that the world has not, and would lose them, because the world has "
              "changed while it was not attached. Attach it before it changes, or under a name that no file has");
    } else {
      store.reset();
    }
  }
  const bool whole = !store;
  if (whole) {
    QRY_TRY(FollowedFile::write_all(homed(world), {path, exists}));
    QRY_TRY_ASSIGN(store, io::Store::open(path));
  }
  for (const std::string& warning : store->warnings()) world.context->say(QRY_LOG_WARNING, warning.c_str());
  return FollowedFile::begin(std::move(*store), homed(world), whole, first_record, there, progress);
}

}  // namespace

qry_result attach_to(qry_world& world, const char* path, bool there, const Progress& progress) {
  auto file = attach(world, path, there, progress);
  if (!file) return refuse(file.error());
  world.file = std::make_unique<FollowedFile>(std::move(*file));
  return QRY_OK;
}

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
                    world->file->store().path().c_str());
    return attach_to(*world, path, true, {});
  });
}

qry_result qry_world_flush(qry_world* world) {
  const char* const function = "qry_world_flush";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (!world->file) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: the world is not attached to a file", function);
    if (auto ok = world->file->flush(homed(*world)); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_detach(qry_world* world) {
  const char* const function = "qry_world_detach";
  return guarded(function, [&]() -> qry_result {
    if (world && world->file)
      if (auto whole = FollowedFile::bring_all(homed(*world));
          !whole && (whole.error().code == ErrorCode::out_of_memory || whole.error().code == ErrorCode::unsupported))
        return refuse(whole.error());
    const qry_result flushed = qry_world_flush(world);
    if (flushed == QRY_ERROR_DEVICE_LOST) {  // nothing of the world will come there any more
      const std::string reason = qry_last_error(), file = world->file->store().path();
      world->same_file.reset();
      (void)let_go(*world);
      return refuse(flushed, "%s: %s is as after the last flush, and let go: %s", function, file.c_str(),
                    reason.c_str());
    }
    QRY_PASS_REFUSAL(flushed);
    const auto version = version_of(*world);
    if (!version) return refuse(version.error());
    if (auto single = world->file->store().fold_in(); !single) return refuse(single.error());
    if (const auto fingerprint = world->file->store().fingerprint(); fingerprint)
      world->same_file = qry_world::SameFile{*fingerprint, *version, world->file->first_record()};
    else world->same_file.reset();
    if (auto ok = let_go(*world); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}
