// SPDX-License-Identifier: Apache-2.0
// snapshot.cpp - worlds of the C interface as they are at one time, to be read while they are edited.
//
// A snapshot of a world at home on the host has handles of its bricks, which nobody changes: what is edited gets new
// ones. Beside them it has lists of 20 bytes a brick, and shares these too until they are edited.
#include "engine/api/handles.hpp"
#include "engine/home/drawing.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {

qry_result check_writable(const qry_world& world, const char* function) {
  if (!world.is_snapshot) return QRY_OK;
  return refuse(QRY_ERROR_UNSUPPORTED, "%s: the world is a snapshot, which is only read", function);
}

}  // namespace quarry::c_api

qry_result qry_world_snapshot(const qry_world* world, qry_world** snapshot) {
  const char* const function = "qry_world_snapshot";
  return guarded(function, [&]() -> qry_result {
    if (!snapshot) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: snapshot is NULL", function);
    *snapshot = nullptr;
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    auto fresh = std::make_unique<qry_world>();
    fresh->context = world->context;
    fresh->is_snapshot = true;
    const auto version = version_of(*world);
    if (!version) return refuse(version.error());
    fresh->version = *version;
    auto scene =
        world->home ? engine::whole_scene(*world->home, *world->document) : Result<Scene>(world->document->scene());
    if (!scene) return refuse(scene.error());
    auto bricks = world->lent ? Result<BrickMap>(world->lent->bricks) : flatten_for_world(*scene, true);
    if (!bricks) return refuse(bricks.error());
    fresh->lent.emplace(qry_world::Lent{world->lent ? world->lent->memory : world->shared,
                                        world->lent ? world->lent->pool : world->document->world().pool(),
                                        std::move(*bricks)});
    auto document = Document::create_unshown(std::move(*scene));
    if (!document) return refuse(document.error());
    fresh->document.emplace(std::move(*document));
    {
      const std::lock_guard lock(world->context->mutex);
      fresh->number = ++world->context->worlds_made;
    }
    *snapshot = fresh.release();
    return QRY_OK;
  });
}
