/* SPDX-License-Identifier: Apache-2.0 */
/* attached_test.c - a world with a file behind its edits, and a snapshot of it, as a program in C uses them. */
#include <stdio.h>

#include "tests/engine/api/check.h"

static void edits_go_to_the_file_by_a_flush(qry_context* context) {
  qry_world* world = new_world(context);
  qry_world* again = NULL;
  qry_open_info open = QRY_OPEN_INFO_INIT;
  uint64_t voxels;
  remove(path_of("attached.quarry"));
  REFUSED(qry_world_flush(world), QRY_ERROR_INVALID_ARGUMENT, "not attached");
  REFUSED(qry_world_attach(world, "attached.ply"), QRY_ERROR_UNSUPPORTED, "only a .quarry file");
  OK(qry_world_attach(world, path_of("attached.quarry")));
  CHECK(file_exists("attached.quarry"));
  fill_example(world);
  OK(qry_world_undo(world, NULL));
  voxels = state_of(world).voxel_count;
  OK(qry_world_flush(world));
  CHECK(file_exists("attached.quarry-wal"));
  OK(qry_world_flush(world)); /* nothing more */
  OK(qry_world_redo(world, NULL));
  qry_world_destroy(&world); /* without the redo */
  CHECK(!file_exists("attached.quarry-wal"));

  open.path = path_of("attached.quarry");
  OK(qry_world_open(context, &open, &again));
  CHECK(state_of(again).voxel_count == voxels);
  CHECK(state_of(again).history_length == 2 && state_of(again).history_position == 1);
  OK(qry_world_attach(again, path_of("attached.quarry")));
  OK(qry_world_redo(again, NULL));
  voxels = state_of(again).voxel_count;
  OK(qry_world_detach(again));
  REFUSED(qry_world_detach(again), QRY_ERROR_INVALID_ARGUMENT, "not attached");
  qry_world_destroy(&again);
  OK(qry_world_open(context, &open, &again));
  CHECK(state_of(again).voxel_count == voxels && state_of(again).history_position == 2);
  qry_world_destroy(&again);
}

static void a_snapshot_stays_as_the_world_was(qry_context* context) {
  qry_world* world = new_world(context);
  qry_world* snapshot = NULL;
  qry_edit edit = QRY_EDIT_INIT;
  uint64_t voxels;
  fill_example(world);
  voxels = state_of(world).voxel_count;
  OK(qry_world_snapshot(world, &snapshot));
  OK(qry_world_undo(world, NULL));
  OK(qry_world_undo(world, NULL));
  CHECK(state_of(world).voxel_count == 0 && state_of(snapshot).voxel_count == voxels);
  CHECK(voxel_at(snapshot, 15, 10, 15) == 40 && voxel_at(world, 15, 10, 15) == 0);
  REFUSED(qry_world_edit(snapshot, &edit, NULL), QRY_ERROR_UNSUPPORTED, "snapshot");
  qry_world_destroy(&world);
  CHECK(voxel_at(snapshot, 15, 10, 15) == 40);
  qry_world_destroy(&snapshot);
}

void check_attached(qry_context* context) {
  edits_go_to_the_file_by_a_flush(context);
  a_snapshot_stays_as_the_world_was(context);
}
