// SPDX-License-Identifier: Apache-2.0
// memory.cpp - a world's memory use and its packed form, in the C interface.
#include "engine/api/handles.hpp"

using namespace quarry;
using namespace quarry::c_api;

qry_result qry_world_get_memory(const qry_world* world, qry_memory_state* state) {
  const char* const function = "qry_world_get_memory";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_MEMORY_STATE));
    const World& voxels = world->document->world();
    state->grid_bytes = voxels.grid().block().size_bytes;
    state->mask_bytes = voxels.pool().mask_slabs().size_bytes();
    state->material_bytes = voxels.pool().material_slabs().size_bytes();
    state->pyramid_bytes = voxels.pyramid().size_bytes();
    state->packed_bytes = voxels.packed_bytes();
    state->scene_bytes = state->history_bytes = 0;
    for (const Volume& volume : world->document->scene().volumes) state->scene_bytes += volume.bricks.size_bytes();
    const std::vector<UndoRecord>& history = world->document->history();
    for (size_t i = 0; i < history.size(); ++i)
      for (const BrickChange& change : history[i].changes) {
        // The other brick is the scene's, or that of the next change on the way there.
        const SharedBrick& held = i < world->document->history_position() ? change.before : change.after;
        state->history_bytes += sizeof(BrickChange) + held.size_bytes();
      }
    state->device_bytes = world->shared ? world->shared->device_bytes() : 0;
    state->packed = voxels.packed() ? 1 : 0;
    state->reserved2 = 0;
    return QRY_OK;
  });
}

qry_result qry_world_pack(qry_world* world) {
  const char* const function = "qry_world_pack";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    World& voxels = world->document->world();
    if (voxels.packed()) return refuse(QRY_NOTHING_TO_DO, "%s: the world is packed already", function);
    if (auto ok = voxels.pack(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_unpack(qry_world* world) {
  const char* const function = "qry_world_unpack";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    World& voxels = world->document->world();
    if (!voxels.packed()) return refuse(QRY_NOTHING_TO_DO, "%s: the world is not packed", function);
    if (auto ok = voxels.unpack(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}

qry_result qry_world_trim(qry_world* world) {
  const char* const function = "qry_world_trim";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    World& voxels = world->document->world();
    if (voxels.packed()) return refuse(QRY_NOTHING_TO_DO, "%s: the world is packed, with nothing to spare", function);
    if (auto ok = voxels.shrink_to_fit(); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}
