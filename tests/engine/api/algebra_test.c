/* SPDX-License-Identifier: Apache-2.0 */
/* algebra_test.c - volumes as sets of voxels, in plain C: a guide's use of each call. */
#include "tests/engine/api/check.h"

void check_algebra(qry_context* context) {
  static const int32_t xyz[] = {0, 0, 0, 1, 0, 0, 2, 1, 0, 9, 9, 9};
  static const uint8_t materials[] = {1, 1, 2, 3};
  qry_world* world = new_world(context);
  qry_world* other = new_world(context);
  qry_part parts[4];
  uint64_t count = 0, changed = 0;
  OK(qry_world_set_voxels(world, 0, xyz, materials, 4, NULL));
  OK(qry_world_set_voxels(other, 0, xyz + 3, materials + 2, 1, NULL)); /* (1, 0, 0), of material 2 */

  /* Count first, then the array. By faces there are three parts, by edges two. */
  REFUSED(qry_world_find_parts(world, 6, NULL, NULL, &count), QRY_INCOMPLETE, "there are 3");
  CHECK(count == 3);
  OK(qry_world_find_parts(world, 6, NULL, parts, &count));
  CHECK(parts[0].voxel_count == 2 && parts[0].material == 1 && parts[1].voxel_count == 1 && parts[2].voxel_count == 1);
  count = 4;
  OK(qry_world_find_parts(world, 18, NULL, parts, &count));
  CHECK(count == 2 && parts[0].voxel_count == 3 && parts[0].min[0] == 0 && parts[0].max[0] == 2);
  CHECK(parts[0].max[1] == 1 && parts[1].min[2] == 9 && parts[1].material == 3 && parts[1].reserved == 0);

  OK(qry_world_keep_parts(world, 0, 18, 1, 0, NULL, &changed));
  CHECK(changed == 1 && voxel_at(world, 9, 9, 9) == 0 && voxel_at(world, 2, 1, 0) == 2);
  OK(qry_world_combine(world, 0, other, QRY_COMBINE_DIFFERENCE, NULL, &changed));
  CHECK(changed == 1 && voxel_at(world, 1, 0, 0) == 0);
  OK(qry_world_combine(world, 0, other, QRY_COMBINE_UNION, NULL, &changed));
  CHECK(changed == 1 && voxel_at(world, 1, 0, 0) == 2); /* with the number that it has in `other` */
  OK(qry_world_combine(world, 0, other, QRY_COMBINE_INTERSECTION, NULL, &changed));
  CHECK(changed == 2 && state_of(world).voxel_count == 1);
  OK(qry_world_dilate(world, 0, 26, 1, NULL, &changed));
  CHECK(changed == 26 && voxel_at(world, 0, -1, -1) == 2);
  OK(qry_world_erode(world, 0, 6, 1, NULL, NULL));
  CHECK(state_of(world).voxel_count == 1 && state_of(world).history_length == 7);
  OK(qry_world_erode(world, 0, 6, 1, NULL, &changed));
  CHECK(changed == 1 && state_of(world).voxel_count == 0);
  OK(qry_world_erode(world, 0, 6, 1, NULL, &changed)); /* nothing is left: no step */
  CHECK(changed == 0 && state_of(world).history_length == 8);
  OK(qry_world_undo(world, &changed));
  CHECK(changed == 1 && voxel_at(world, 1, 0, 0) == 2);
  REFUSED(qry_world_combine(world, 0, other, 9, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "mode is 9");
  qry_world_destroy(&other);
  qry_world_destroy(&world);
}
