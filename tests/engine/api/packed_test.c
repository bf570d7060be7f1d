/* SPDX-License-Identifier: Apache-2.0 */
/* packed_test.c - the memory of worlds, and their packed form, through the plugin interface, at every home. It needs no
 * device. */
#include <string.h>

#include "tests/engine/api/check.h"

static qry_memory_state memory_of(const qry_world* world) {
  qry_memory_state memory = QRY_MEMORY_STATE_INIT;
  OK(qry_world_get_memory(world, &memory));
  return memory;
}

static qry_memory_bricks bricks_of(const qry_world* world) {
  qry_memory_state memory = QRY_MEMORY_STATE_INIT;
  qry_memory_bricks bricks = QRY_MEMORY_BRICKS_INIT;
  memory.next = &bricks;
  OK(qry_world_get_memory(world, &memory));
  return bricks;
}

static uint64_t rendered_bytes(const qry_memory_state* m) {
  return m->grid_bytes + m->mask_bytes + m->material_bytes + m->pyramid_bytes;
}

/* Makes slabs with holes, so that bricks are not full. */
static void fill_slabs(qry_world* world) {
  qry_edit edit = QRY_EDIT_INIT;
  int32_t y;
  edit.b[0] = edit.b[2] = 255;
  for (y = 0; y < 32; y += 4) {
    edit.a[1] = edit.b[1] = y;
    edit.material = (uint32_t)(1 + y);
    OK(qry_world_edit(world, &edit, NULL));
  }
}

static void a_packed_world_is_the_same_and_smaller(qry_context* context, uint32_t home) {
  static uint8_t before[64 * 64 * 64], after[64 * 64 * 64];
  const int32_t min[3] = {-16, -16, -16}, max[3] = {47, 47, 47}, at[3] = {3, 1, 3};
  const uint8_t one = 9;
  qry_world* world = new_world_at(context, home);
  qry_memory_state editable, packed;
  qry_memory_bricks counts;
  qry_world_state state;
  fill_slabs(world);
  OK(qry_world_read_region(world, min, max, before, sizeof before));
  editable = memory_of(world);
  state = state_of(world);
  CHECK(editable.packed == 0 && rendered_bytes(&editable) == state.size_bytes);
  CHECK(editable.mask_bytes >= state.brick_count * 64 && editable.material_bytes >= state.brick_count * 512);
  /* Each brick was changed twice: history has both changes, and the brick in between. It is stored with the others. */
  counts = bricks_of(world);
  CHECK(counts.keys == state.brick_count && counts.full_keys == 0 && counts.bricks == 2 * state.brick_count);
  CHECK(counts.history_bricks == state.brick_count && counts.history_changes == 2 * state.brick_count);
  CHECK(editable.material_bytes >= counts.bricks * 512);
  /* Nothing is held twice: the volume is the world's own table. */
  CHECK(editable.scene_bytes == 0);
  if (home == QRY_HOME_HOST) {
    CHECK(editable.history_bytes == counts.history_changes * 32);
    CHECK(editable.device_bytes == 0 && counts.spare_bytes < rendered_bytes(&editable) / 2);
  } else { /* it has room ahead of edits */
    CHECK(editable.history_bytes >= counts.history_changes * 12);
    CHECK(editable.device_bytes > rendered_bytes(&editable));
  }
  OK(qry_world_pack(world));
  packed = memory_of(world);
  CHECK(packed.packed == 1 && packed.packed_bytes == rendered_bytes(&packed) &&
        rendered_bytes(&packed) == state_of(world).size_bytes);
  CHECK(packed.packed_bytes * 2 < rendered_bytes(&editable));
  CHECK(editable.packed_bytes < packed.packed_bytes + packed.packed_bytes / 100 + 131072);
  CHECK(packed.packed_bytes < editable.packed_bytes + editable.packed_bytes / 100 + 131072);
  CHECK(packed.scene_bytes == editable.scene_bytes && packed.history_bytes <= editable.history_bytes);
  CHECK(home == QRY_HOME_HOST ? packed.history_bytes == editable.history_bytes
                              : packed.device_bytes < editable.device_bytes);
  CHECK(bricks_of(world).keys == counts.keys && bricks_of(world).bricks == counts.bricks &&
        bricks_of(world).history_bricks == counts.history_bricks);
  CHECK(state_of(world).version == state.version && state_of(world).voxel_count == state.voxel_count);
  OK(qry_world_read_region(world, min, max, after, sizeof after));
  CHECK(memcmp(before, after, sizeof before) == 0);
  REFUSED(qry_world_pack(world), QRY_NOTHING_TO_DO, "packed already");
  REFUSED(qry_world_trim(world), QRY_NOTHING_TO_DO, "nothing to spare");

  /* Edit, undo and redo unpack it themselves. */
  OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL));
  CHECK(memory_of(world).packed == 0 && voxel_at(world, 3, 1, 3) == 9);
  OK(qry_world_pack(world));
  OK(qry_world_undo(world, NULL));
  CHECK(memory_of(world).packed == 0 && voxel_at(world, 3, 1, 3) == 0);
  OK(qry_world_pack(world));
  OK(qry_world_redo(world, NULL));
  OK(qry_world_undo(world, NULL));
  OK(qry_world_read_region(world, min, max, after, sizeof after));
  CHECK(memcmp(before, after, sizeof before) == 0);
  REFUSED(qry_world_unpack(world), QRY_NOTHING_TO_DO, "not packed");
  OK(qry_world_pack(world));
  OK(qry_world_unpack(world));
  OK(qry_world_read_region(world, min, max, after, sizeof after));
  CHECK(memcmp(before, after, sizeof before) == 0);
  qry_world_destroy(&world);
}

static void trimming_gives_back_what_went(qry_context* context) {
  qry_world* world = new_world(context);
  qry_edit edit = QRY_EDIT_INIT;
  const int32_t at[3] = {3, 1, 3};
  const uint8_t one = 9;
  uint64_t full;
  fill_slabs(world);
  full = state_of(world).size_bytes;
  edit.mode = QRY_MODE_REMOVE;
  edit.a[0] = 16;
  edit.b[0] = edit.b[1] = edit.b[2] = 255;
  OK(qry_world_edit(world, &edit, NULL));
  CHECK(state_of(world).size_bytes >= full);
  OK(qry_world_trim(world));
  CHECK(voxel_at(world, 3, 4, 200) == 5 && voxel_at(world, 30, 4, 200) == 0);
  OK(qry_world_undo(world, NULL));
  CHECK(voxel_at(world, 3, 4, 200) == 5 && voxel_at(world, 30, 4, 200) == 5);
  /* What can be undone or redone is held. A new change after undoing drops what could be redone. */
  while (qry_world_undo(world, NULL) == QRY_OK) continue;
  OK(qry_world_trim(world));
  CHECK(bricks_of(world).keys == 0 && bricks_of(world).bricks == bricks_of(world).history_bricks);
  CHECK(bricks_of(world).bricks > 1000);
  OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL));
  CHECK(bricks_of(world).bricks == 1 && bricks_of(world).history_bricks == 0);
  OK(qry_world_trim(world));
  CHECK(state_of(world).size_bytes < full / 4 && bricks_of(world).spare_bytes < full / 16);
  CHECK(voxel_at(world, 3, 1, 3) == 9 && state_of(world).voxel_count == 1);
  qry_world_destroy(&world);
}

static void a_world_is_opened_packed(qry_context* context, uint32_t home) {
  qry_world* world = new_world_at(context, home);
  qry_world* again = NULL;
  qry_save_info save = QRY_SAVE_INFO_INIT;
  qry_open_info open = QRY_OPEN_INFO_INIT;
  qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
  qry_home_state at = QRY_HOME_STATE_INIT;
  wanted.home = home;
  open.next = &wanted;
  fill_slabs(world);
  save.path = path_of("to_pack.quarry");
  OK(qry_world_save(world, &save));
  open.path = path_of("to_pack.quarry");
  open.flags = QRY_OPEN_PACK;
  OK(qry_world_open(context, &open, &again));
  if (again) {
    CHECK(memory_of(again).packed == 1 && state_of(again).version == 0);
    OK(qry_world_get_home(again, &at));
    CHECK(at.home == home);
    CHECK(state_of(again).voxel_count == state_of(world).voxel_count);
    save.path = path_of("to_pack.vox"); /* saves the scene */
    OK(qry_world_save(again, &save));
    CHECK(memory_of(again).packed == 1);
  }
  qry_world_destroy(&again);
  open.flags = QRY_OPEN_PACK | QRY_OPEN_FLATTEN;
  OK(qry_world_open(context, &open, &again));
  if (again) CHECK(memory_of(again).packed == 1);
  qry_world_destroy(&again);
  qry_world_destroy(&world);
}

static void wrong_use_is_refused(qry_context* context, uint32_t home) {
  qry_world* world = new_world_at(context, home);
  qry_memory_state memory = QRY_MEMORY_STATE_INIT;
  REFUSED(qry_world_pack(NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_unpack(NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_trim(NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_memory(NULL, &memory), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_memory(world, NULL), QRY_ERROR_INVALID_ARGUMENT, "state is NULL");
  memory.stype = QRY_STYPE_WORLD_STATE;
  REFUSED(qry_world_get_memory(world, &memory), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_MEMORY_STATE");
  memory.stype = QRY_STYPE_MEMORY_STATE;
  memory.next = &memory;
  REFUSED(qry_world_get_memory(world, &memory), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_MEMORY_STATE");
  OK(qry_world_pack(world)); /* an empty world can be packed too */
  CHECK(memory_of(world).packed == 1);
  qry_world_destroy(&world);
}

void check_packed(qry_context* context) {
  uint32_t home;
  for (home = QRY_HOME_HOST; home <= QRY_HOME_EMULATED; ++home) {
    qry_world* world = new_world_at(context, home);
    if (!world) continue;
    qry_world_destroy(&world);
    a_packed_world_is_the_same_and_smaller(context, home);
    a_world_is_opened_packed(context, home);
    wrong_use_is_refused(context, home);
  }
  trimming_gives_back_what_went(context);
}
