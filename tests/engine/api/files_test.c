/* SPDX-License-Identifier: Apache-2.0 */
/* files_test.c - opening and saving through the plugin interface, and every way in which they can fail. */
#include <string.h>

#include "tests/engine/api/check.h"

static int32_t QRY_CALL stop_at_once(void* user, const char* stage, double fraction) {
  ++*(int*)user;
  (void)stage;
  (void)fraction;
  return 1;
}
static int32_t QRY_CALL go_on(void* user, const char* stage, double fraction) {
  ++*(int*)user;
  return stage && fraction <= 1.0 ? 0 : 1;
}

static void check_same_voxels(qry_world* a, qry_world* b) {
  static uint8_t va[64 * 64 * 64], vb[64 * 64 * 64];
  const int32_t min[3] = {-16, -16, -16}, max[3] = {47, 47, 47};
  OK(qry_world_read_region(a, min, max, va, sizeof va));
  OK(qry_world_read_region(b, min, max, vb, sizeof vb));
  CHECK(memcmp(va, vb, sizeof va) == 0);
}
/* Version 150, MAIN { SIZE 2 x 1 x 3, XYZI of three voxels }. */
static const uint8_t k_scene_vox[] = {
    'V', 'O', 'X', ' ', 150, 0, 0, 0, 'M', 'A', 'I', 'N', 0, 0, 0, 0, 52, 0, 0, 0,             /* header */
    'S', 'I', 'Z', 'E', 12,  0, 0, 0, 0,   0,   0,   0,   2, 0, 0, 0, 1,  0, 0, 0, 3, 0, 0, 0, /* 24 bytes */
    'X', 'Y', 'Z', 'I', 16,  0, 0, 0, 0,   0,   0,   0,   3, 0, 0, 0, 0,  0, 0, 5, 1, 0, 0, 6,
    0,   0,   2,   7}; /* 28 bytes */

static void a_world_is_saved_and_opened_again(qry_context* context) {
  qry_world* world = new_world(context);
  qry_world* again = NULL;
  qry_save_info save = QRY_SAVE_INFO_INIT;
  qry_open_info open = QRY_OPEN_INFO_INIT;
  qry_world_info limit = QRY_WORLD_INFO_INIT;
  qry_material emissive;
  uint64_t voxels;
  int calls = 0;
  fill_example(world);
  OK(qry_world_get_materials(world, 40, 1, &emissive));
  emissive.emission = 2;
  emissive.rgba[1] = 17;
  OK(qry_world_set_materials(world, 40, 1, &emissive));
  voxels = state_of(world).voxel_count;
  CHECK(voxels > 2000);

  save.path = path_of("saved.quarry");
  save.progress = go_on;
  save.progress_user = &calls;
  OK(qry_world_save(world, &save));
  open.path = path_of("saved.quarry");
  OK(qry_world_open(context, &open, &again));
  if (again) {
    qry_material material;
    CHECK(state_of(again).voxel_count == voxels && state_of(again).version == 0);
    check_same_voxels(world, again);
    OK(qry_world_get_materials(again, 40, 1, &material));
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): without padding */
    CHECK(memcmp(&material, &emissive, sizeof emissive) == 0);
    /* Saves over an existing file, and flattens a flat world. */
    OK(qry_world_save(again, &save));
    qry_world_destroy(&again);
    open.path = path_of("saved.quarry");
    open.flags = QRY_OPEN_FLATTEN;
    OK(qry_world_open(context, &open, &again));
    if (again) check_same_voxels(world, again);
    qry_world_destroy(&again);
  }

  /* A .vox scene is z-up in its file and has its pivot in the model's middle: voxels (0,0,0), (1,0,0) and (0,0,2) of a
   * 2 x 1 x 3 model. */
  write_file("scene.vox", k_scene_vox, sizeof k_scene_vox);
  open.path = path_of("scene.vox");
  open.flags = QRY_OPEN_FLATTEN;
  OK(qry_world_open(context, &open, &again));
  if (again) {
    const qry_world_state opened = state_of(again);
    CHECK(opened.voxel_count == 3 && opened.volume_count == 1 && opened.instance_count == 1);
    CHECK(opened.max[0] - opened.min[0] == 1 && opened.max[1] - opened.min[1] == 2 &&
          opened.max[2] - opened.min[2] == 0);
    CHECK(voxel_at(again, opened.min[0], opened.min[1], opened.min[2]) != 0);
    CHECK(voxel_at(again, opened.min[0], opened.max[1], opened.min[2]) != 0);
    CHECK(voxel_at(again, opened.max[0], opened.max[1], opened.min[2]) == 0);
    { /* flattened, volume 0 has the world's axes */
      const int32_t at[3] = {-40, 50, 60};
      const uint8_t material = 8;
      OK(qry_world_set_voxels(again, 0, at, &material, 1, NULL));
      CHECK(voxel_at(again, -40, 50, 60) == 8);
    }
    qry_world_destroy(&again);
  }

  /* Refusals give no handle, no file, and the reason. */
  limit.max_bricks = 3;
  open.next = &limit;
  open.path = path_of("saved.quarry");
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_FULL, "saved.quarry");
  CHECK(again == NULL);
  open.next = NULL;
  open.path = path_of("not_there.vox");
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_NOT_FOUND, "not_there.vox");
  write_file("broken.vox", k_scene_vox, sizeof k_scene_vox - 7);
  open.path = path_of("broken.vox");
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_MALFORMED_INPUT, "broken.vox");
  write_file("notes.txt", "not a world at all", 18);
  open.path = path_of("notes.txt");
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_UNSUPPORTED, "notes.txt");
  open.path = NULL;
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_INVALID_ARGUMENT, "info->path is NULL");
  open.path = "";
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_INVALID_ARGUMENT, "info->path is empty");
  open.path = path_of("scene.vox");
  open.flags = 8;
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_INVALID_ARGUMENT, "info->flags");
  open.flags = 0;
  open.resolution = 0;
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_INVALID_ARGUMENT, "info->resolution is 0");
  open.resolution = 256;
  open.stype = QRY_STYPE_SAVE_INFO;
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_OPEN_INFO");
  REFUSED(qry_world_open(context, NULL, &again), QRY_ERROR_INVALID_ARGUMENT, "info is NULL");
  CHECK(again == NULL);

  save.path = path_of("saved.xyzzy");
  REFUSED(qry_world_save(world, &save), QRY_ERROR_UNSUPPORTED, NULL);
  CHECK(!file_exists("saved.xyzzy"));
  save.path = path_of("no_such_folder/saved.quarry");
  REFUSED(qry_world_save(world, &save), QRY_ERROR_NOT_FOUND, "no_such_folder");
  save.path = NULL;
  REFUSED(qry_world_save(world, &save), QRY_ERROR_INVALID_ARGUMENT, "info->path is NULL");
  calls = 0;
  save.path = path_of("stopped.quarry");
  save.progress = stop_at_once;
  REFUSED(qry_world_save(world, &save), QRY_ERROR_CANCELLED, NULL);
  CHECK(calls > 0 && !file_exists("stopped.quarry"));
  open.stype = QRY_STYPE_OPEN_INFO;
  open.path = path_of("saved.quarry");
  open.progress = stop_at_once;
  open.progress_user = &calls;
  calls = 0;
  REFUSED(qry_world_open(context, &open, &again), QRY_ERROR_CANCELLED, NULL);
  CHECK(calls > 0 && again == NULL);
  qry_world_destroy(&world);
}

void check_files(qry_context* context) { a_world_is_saved_and_opened_again(context); }
