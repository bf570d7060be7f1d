// SPDX-License-Identifier: Apache-2.0
// memory.cpp - a world's memory use and its packed form, in the C interface.
#include "engine/api/handles.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

qry_result memory_on_device(const qry_world& world, qry_memory_state* state, qry_memory_bricks* bricks) {
  const auto found = world.home->state();
  if (!found) return refuse(found.error());
  const auto use = world.home->memory_use();
  if (!use) return refuse(use.error());
  const device::Store::State& store = found->store;
  state->grid_bytes = use->grid_bytes;
  state->mask_bytes = use->mask_bytes;
  state->material_bytes = use->material_bytes;
  state->pyramid_bytes = use->pyramid_bytes;
  state->packed_bytes = use->packed_bytes;
  state->scene_bytes = 0;
  state->history_bytes = use->history_bytes;
  state->device_bytes = store.size_bytes;
  state->packed = use->packed ? 1 : 0;
  state->reserved2 = 0;
  if (!bricks) return QRY_OK;
  bricks->keys = store.keys;
  bricks->full_keys = use->full_keys;
  bricks->bricks = store.bricks;
  bricks->history_bricks = found->history_bricks(use->full_keys);
  bricks->history_changes = use->history_changes;
  bricks->spare_bytes = use->spare_bytes;
  return QRY_OK;
}

// A device that is lost is told of.
Result<bool> is_packed(const qry_world& world) {
  if (world.home) return world.home->packed();
  return world.document->world().packed();
}

qry_result history_of(const qry_world& world, qry_memory_history* history) {
  if (world.home) {
    const auto found = world.home->history_use();
    if (!found) return refuse(found.error());
    history->budget_bytes = found->budget;
    history->used_bytes = found->bytes;
    history->undo_steps = found->position;
    history->redo_steps = found->length - found->position;
    history->dropped_steps = found->dropped;
    return QRY_OK;
  }
  const Document& document = *world.document;
  history->budget_bytes = document.history_budget();
  history->used_bytes = document.history_size_bytes();
  history->undo_steps = document.step_position();
  history->redo_steps = document.step_count() - document.step_position();
  history->dropped_steps = world.dropped_before + document.dropped_steps();
  return QRY_OK;
}

}  // namespace
}  // namespace quarry::c_api

qry_result qry_world_get_memory(const qry_world* world, qry_memory_state* state) {
  const char* const function = "qry_world_get_memory";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    const void *chained = nullptr, *history = nullptr;
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_MEMORY_STATE,
                                  {{QRY_STYPE_MEMORY_BRICKS, &chained}, {QRY_STYPE_MEMORY_HISTORY, &history}}));
    if (history) QRY_PASS_REFUSAL(history_of(*world, static_cast<qry_memory_history*>(const_cast<void*>(history))));
    if (world->home)
      return memory_on_device(*world, state, static_cast<qry_memory_bricks*>(const_cast<void*>(chained)));
    const World& voxels = world->document->world();
    state->grid_bytes = voxels.grid().block().size_bytes;
    state->mask_bytes = voxels.pool().mask_slabs().size_bytes();
    state->material_bytes = voxels.pool().material_slabs().size_bytes();
    state->pyramid_bytes = voxels.pyramid().size_bytes();
    state->packed_bytes = voxels.packed_bytes();
    Document::Holdings held = world->document->holdings();
    if (world->lent) {  // bricks that are not its own
      held.scene_bytes = world->lent->bricks.size_bytes(&world->lent->pool);
      held.keys = world->lent->bricks.bricks().size();
    }
    state->scene_bytes = held.scene_bytes;
    state->history_bytes = held.history_bytes;
    state->device_bytes = world->shared ? world->shared->device_bytes() : 0;
    state->packed = voxels.packed() ? 1 : 0;
    state->reserved2 = 0;
    if (!chained) return QRY_OK;
    auto* const bricks = static_cast<qry_memory_bricks*>(const_cast<void*>(chained));
    bricks->keys = held.keys;
    bricks->full_keys = held.full_keys;
    bricks->bricks = held.bricks;
    bricks->history_bricks = held.history_bricks;
    bricks->history_changes = held.history_changes;
    bricks->spare_bytes = voxels.spare_bytes();
    return QRY_OK;
  });
}

qry_result qry_world_set_history_budget(qry_world* world, uint64_t bytes) {
  const char* const function = "qry_world_set_history_budget";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (!world->home) {
      world->document->set_history_budget(bytes);
      return QRY_OK;
    }
    if (auto ok = world->home->set_history_budget(bytes); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_pack(qry_world* world) {
  const char* const function = "qry_world_pack";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_writable(*world, function));
    const auto packed = is_packed(*world);
    if (!packed) return refuse(packed.error());
    if (*packed) return refuse(QRY_NOTHING_TO_DO, "%s: the world is packed already", function);
    if (auto ok = world->home ? world->home->pack() : world->document->pack(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_unpack(qry_world* world) {
  const char* const function = "qry_world_unpack";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    const auto packed = is_packed(*world);
    if (!packed) return refuse(packed.error());
    if (!*packed) return refuse(QRY_NOTHING_TO_DO, "%s: the world is not packed", function);
    if (auto ok = world->home ? world->home->unpack() : world->document->unpack(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_trim(qry_world* world) {
  const char* const function = "qry_world_trim";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_writable(*world, function));
    const auto packed = is_packed(*world);
    if (!packed) return refuse(packed.error());
    if (*packed) return refuse(QRY_NOTHING_TO_DO, "%s: the world is packed, with nothing to spare", function);
    if (auto ok = world->home ? world->home->trim() : world->document->shrink_to_fit(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}
