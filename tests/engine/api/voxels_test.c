/* SPDX-License-Identifier: Apache-2.0 */
/* voxels_test.c - voxels, edits, history and palette of the plugin interface, against a plain array. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/api/check.h"

static void voxels_set_in_bulk_are_read_back(qry_context* context) {
  static const int32_t xyz[] = {0, 0, 0, -1, -1, -1, 8191, 0, -8192, 5, 6, 7, 5, 6, 7};
  static const uint8_t materials[] = {1, 2, 255, 9, 10};
  static const int32_t outside[] = {8192, 0, 0, 0, -4097, 0, 0, 4096, 0, INT32_MIN, 0, 0, 0, 0, INT32_MAX};
  uint8_t got[5];
  uint64_t changed = 77, count;
  int32_t bricks[12];
  qry_world* world = new_world(context);
  qry_world_state state = state_of(world);
  qry_grid_stats stats = QRY_GRID_STATS_INIT;
  CHECK(state.voxel_count == 0 && state.brick_count == 0 && state.version == 0 && state.history_length == 0);
  CHECK(state.volume_count == 1 && state.instance_count == 1);
  CHECK(state.max[0] < state.min[0]);

  OK(qry_world_set_voxels(world, 0, xyz, materials, 5, &changed));
  CHECK(changed == 4);
  OK(qry_world_get_voxels(world, xyz, got, 5));
  CHECK(got[0] == 1 && got[1] == 2 && got[2] == 255);
  CHECK(got[3] == 10 && got[4] == 10); /* if a voxel is given twice, the last one wins */
  memset(got, 9, sizeof got);
  OK(qry_world_get_voxels(world, outside, got, 5));
  CHECK(got[0] == 0 && got[1] == 0 && got[2] == 0 && got[3] == 0 && got[4] == 0);

  state = state_of(world);
  CHECK(state.voxel_count == 4 && state.brick_count == 3 && state.version == 1 && state.history_position == 1);
  CHECK(state.min[0] == -1 && state.min[1] == -1 && state.min[2] == -8192);
  CHECK(state.max[0] == 8191 && state.max[1] == 6 && state.max[2] == 7);
  CHECK(state.size_bytes > 0);
  OK(qry_world_get_grid_stats(world, &stats));
  CHECK(stats.live == 3);
  CHECK(stats.slots > 0 && stats.size_bytes >= 8 * stats.slots && stats.page_count >= 1);
  CHECK(fabs(stats.load_factor - 3.0 / (double)stats.slots) < 1e-12);
  CHECK(stats.depth_histogram[0] + stats.depth_histogram[1] <= 3 && stats.depth_mean >= 1);

  count = 0;
  REFUSED(qry_world_list_bricks(world, NULL, &count), QRY_INCOMPLETE, "there are 3");
  CHECK(count == 3);
  count = 4;
  OK(qry_world_list_bricks(world, bricks, &count));
  CHECK(count == 3);
  {
    int seen = 0, i;
    for (i = 0; i < 3; ++i) {
      const int32_t* b = bricks + 3 * i;
      seen |= (b[0] == 0 && b[1] == 0 && b[2] == 0)          ? 1
              : (b[0] == -1 && b[1] == -1 && b[2] == -1)     ? 2
              : (b[0] == 1023 && b[1] == 0 && b[2] == -1024) ? 4
                                                             : 8;
    }
    CHECK(seen == 7);
  }
  count = 1;
  REFUSED(qry_world_list_bricks(world, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "brick_xyz is NULL");
  REFUSED(qry_world_list_bricks(world, bricks, NULL), QRY_ERROR_INVALID_ARGUMENT, "count is NULL");

  /* The same call again changes nothing and is no step of the history. A call with no voxels is fine too. */
  OK(qry_world_set_voxels(world, 0, xyz, materials, 5, &changed));
  CHECK(changed == 0 && state_of(world).history_length == 1 && state_of(world).version == 1);
  OK(qry_world_set_voxels(world, 0, NULL, NULL, 0, NULL));
  REFUSED(qry_world_set_voxels(world, 0, NULL, materials, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "xyz is NULL");
  REFUSED(qry_world_set_voxels(world, 0, xyz, NULL, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "materials is NULL");
  REFUSED(qry_world_set_voxels(world, 1, xyz, materials, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "volume is 1");
  REFUSED(qry_world_get_voxels(world, NULL, got, 1), QRY_ERROR_INVALID_ARGUMENT, "xyz is NULL");
  qry_world_destroy(&world);
  CHECK(world == NULL);
  qry_world_destroy(&world);
}

static void writing_outside_the_world_changes_nothing_and_names_the_voxel(qry_context* context) {
  static const int32_t far_out[] = {1, 1, 1, 2, 4096, 3};
  static const int32_t limits[] = {INT32_MAX, 0, 0, 0, INT32_MIN, 0};
  static const int32_t corner[] = {8184, 4088, 8184};
  static const int32_t beside_corner[] = {8183, 4088, 8184, 8184, 4087, 8191, 8191, 4095, 8183};
  static const int32_t corner_min[3] = {8180, 4080, 8180}, corner_max[3] = {8191, 4095, 8191};
  static const uint8_t ones[3] = {1, 1, 1};
  static uint8_t region[12 * 16 * 12];
  qry_edit edit = QRY_EDIT_INIT;
  qry_world* world = new_world(context);
  REFUSED(qry_world_set_voxels(world, 0, far_out, ones, 2, NULL), QRY_ERROR_OUT_OF_BOUNDS,
          "(2, 4096, 3), number 1 of the array");
  REFUSED(qry_world_set_voxels(world, 0, limits, ones, 2, NULL), QRY_ERROR_OUT_OF_BOUNDS,
          "(2147483647, 0, 0), number 0");
  REFUSED(qry_world_set_voxels(world, 0, corner, ones, 1, NULL), QRY_ERROR_OUT_OF_BOUNDS, "(8184, 4088, 8184)");
  memset(region, 1, sizeof region);
  REFUSED(qry_world_write_region(world, 0, corner_min, corner_max, region, sizeof region, NULL),
          QRY_ERROR_OUT_OF_BOUNDS, "(8180, 4080, 8180)");
  edit.shape = QRY_SHAPE_SPHERE;
  edit.a[0] = 8190;
  edit.radius = 5;
  REFUSED(qry_world_edit(world, &edit, NULL), QRY_ERROR_OUT_OF_BOUNDS, NULL);
  edit.a[0] = INT32_MIN;
  REFUSED(qry_world_edit(world, &edit, NULL), QRY_ERROR_OUT_OF_BOUNDS, NULL);
  CHECK(state_of(world).voxel_count == 0 && state_of(world).history_length == 0);
  CHECK(voxel_at(world, 1, 1, 1) == 0);
  /* The corner's neighbours are in the world, although the box that contains them all reaches the corner brick. */
  OK(qry_world_set_voxels(world, 0, beside_corner, ones, 3, NULL));
  CHECK(state_of(world).voxel_count == 3);
  CHECK(voxel_at(world, 8191, 4095, 8183) == 1);
  /* Reading across the border is allowed. */
  memset(region, 7, sizeof region);
  OK(qry_world_read_region(world, corner_min, corner_max, region, sizeof region));
  CHECK(region[(8191 - 8180) + 12 * ((4095 - 4080) + 16 * (8183 - 8180))] == 1);
  CHECK(region[sizeof region - 1] == 0 && region[0] == 0);
  qry_world_destroy(&world);
}

static void a_world_with_a_limit_says_full_and_stays_as_it_was(qry_context* context) {
  static const int32_t three[] = {0, 0, 0, 8, 0, 0, 16, 0, 0};
  static const uint8_t ones[3] = {1, 1, 1};
  qry_world_info info = QRY_WORLD_INFO_INIT;
  qry_world* world = NULL;
  info.max_bricks = 2;
  OK(qry_world_create(context, &info, &world));
  OK(qry_world_set_voxels(world, 0, three, ones, 2, NULL));
  REFUSED(qry_world_set_voxels(world, 0, three + 6, ones, 1, NULL), QRY_ERROR_FULL, NULL);
  CHECK(state_of(world).brick_count == 2 && state_of(world).voxel_count == 2 && state_of(world).history_length == 1);
  CHECK(voxel_at(world, 16, 0, 0) == 0);
  OK(qry_world_undo(world, NULL)); /* frees the bricks */
  OK(qry_world_set_voxels(world, 0, three + 3, ones, 2, NULL));
  CHECK(voxel_at(world, 16, 0, 0) == 1);
  qry_world_destroy(&world);

  info.stype = QRY_STYPE_EDIT;
  REFUSED(qry_world_create(context, &info, &world), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_WORLD_INFO");
  info.stype = QRY_STYPE_WORLD_INFO;
  info.reserved2 = 1;
  REFUSED(qry_world_create(context, &info, &world), QRY_ERROR_INVALID_ARGUMENT, "reserved2");
  REFUSED(qry_world_create(context, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "out is NULL");
}

/* A random history against a plain array of 40^3 bytes, placed so that bricks are cut and coordinates are negative. */
#define EDGE 40
#define BASE (-19)
static uint32_t g_random = 12345;
static uint32_t random_below(uint32_t n) {
  g_random = g_random * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)g_random * n) >> 32);
}
typedef struct model {
  uint8_t voxels[EDGE * EDGE * EDGE];
} model;
static model g_models[64];
static uint8_t* in_model(model* m, int32_t x, int32_t y, int32_t z) {
  return &m->voxels[(x - BASE) + EDGE * ((y - BASE) + EDGE * (z - BASE))];
}
static uint64_t differences(const model* a, const model* b) {
  uint64_t n = 0;
  size_t i;
  for (i = 0; i < sizeof a->voxels; ++i) n += a->voxels[i] != b->voxels[i];
  return n;
}
static int32_t random_coordinate(void) { return BASE + (int32_t)random_below(EDGE); }

static void apply_to_model(model* m, const qry_edit* edit) {
  int32_t x, y, z;
  for (z = BASE; z < BASE + EDGE; ++z)
    for (y = BASE; y < BASE + EDGE; ++y)
      for (x = BASE; x < BASE + EDGE; ++x) {
        uint8_t* v = in_model(m, x, y, z);
        int inside;
        if (edit->shape == QRY_SHAPE_BOX) {
          int i;
          const int32_t p[3] = {x, y, z};
          inside = 1;
          for (i = 0; i < 3; ++i) {
            const int32_t low = edit->a[i] < edit->b[i] ? edit->a[i] : edit->b[i],
                          high = edit->a[i] < edit->b[i] ? edit->b[i] : edit->a[i];
            inside = inside && p[i] >= low && p[i] <= high;
          }
        } else {
          const double dx = x - edit->a[0], dy = y - edit->a[1], dz = z - edit->a[2];
          inside = dx * dx + dy * dy + dz * dz <= edit->radius * edit->radius;
        }
        if (!inside) continue;
        if (edit->mode == QRY_MODE_ADD && !*v) *v = (uint8_t)edit->material;
        if (edit->mode == QRY_MODE_REMOVE) *v = 0;
        if (edit->mode == QRY_MODE_PAINT && *v) *v = (uint8_t)edit->material;
        if (edit->mode == QRY_MODE_REPLACE && *v == edit->from) *v = (uint8_t)edit->material;
        if (edit->mode == QRY_MODE_FILL) *v = (uint8_t)edit->material;
      }
}

static void a_random_history_agrees_with_a_plain_array(qry_context* context) {
  static model read;
  const int32_t low[3] = {BASE, BASE, BASE}, high[3] = {BASE + EDGE - 1, BASE + EDGE - 1, BASE + EDGE - 1};
  qry_world* world = new_world(context);
  int steps = 0, i;
  uint64_t changed;
  memset(&g_models[0], 0, sizeof g_models[0]);
  while (steps < 60) {
    model* now = &g_models[steps + 1];
    *now = g_models[steps];
    changed = 12345;
    if (random_below(3) == 0) {
      static int32_t xyz[3 * 500];
      static uint8_t materials[500];
      const uint32_t count = 1 + random_below(500);
      uint32_t k;
      for (k = 0; k < count; ++k) {
        for (i = 0; i < 3; ++i) xyz[3 * k + (uint32_t)i] = random_coordinate();
        materials[k] = (uint8_t)random_below(4);
        *in_model(now, xyz[3 * k], xyz[3 * k + 1], xyz[3 * k + 2]) = materials[k];
      }
      OK(qry_world_set_voxels(world, 0, xyz, materials, count, &changed));
    } else if (random_below(4) == 0) {
      static uint8_t dense[EDGE * EDGE * EDGE];
      int32_t min[3], max[3], x, y, z;
      size_t n = 0;
      for (i = 0; i < 3; ++i) {
        min[i] = random_coordinate();
        max[i] = min[i] + (int32_t)random_below((uint32_t)(BASE + EDGE - min[i]));
      }
      for (z = min[2]; z <= max[2]; ++z)
        for (y = min[1]; y <= max[1]; ++y)
          for (x = min[0]; x <= max[0]; ++x) *in_model(now, x, y, z) = dense[n++] = (uint8_t)random_below(3);
      REFUSED(qry_world_write_region(world, 0, min, max, dense, n - 1, NULL), QRY_ERROR_BUFFER_TOO_SMALL, "size_bytes");
      OK(qry_world_write_region(world, 0, min, max, dense, n, &changed));
    } else {
      qry_edit edit = QRY_EDIT_INIT;
      edit.shape = random_below(2) ? QRY_SHAPE_BOX : QRY_SHAPE_SPHERE;
      edit.mode = random_below(5);
      edit.material = 1 + random_below(3);
      edit.from = edit.mode == QRY_MODE_REPLACE ? 1 + random_below(3) : 0;
      for (i = 0; i < 3; ++i) {
        edit.a[i] = random_coordinate();
        edit.b[i] = random_coordinate();
      }
      if (edit.shape == QRY_SHAPE_SPHERE) {
        int32_t room = EDGE;
        for (i = 0; i < 3; ++i) {
          const int32_t to_low = edit.a[i] - BASE, to_high = BASE + EDGE - 1 - edit.a[i];
          if (to_low < room) room = to_low;
          if (to_high < room) room = to_high;
        }
        edit.radius = room ? (double)random_below((uint32_t)room * 4) / 4.0 : 0.0;
      }
      apply_to_model(now, &edit);
      OK(qry_world_edit(world, &edit, &changed));
    }
    CHECK(changed == differences(&g_models[steps], now));
    if (changed) ++steps; /* a call that changes nothing is no step */
    OK(qry_world_read_region(world, low, high, read.voxels, sizeof read.voxels));
    CHECK(differences(&read, &g_models[steps]) == 0);
    CHECK(state_of(world).history_length == (uint64_t)steps);
    if (failures_so_far() > 20) break;
  }
  for (i = steps - 1; i >= 0; --i) {
    OK(qry_world_undo(world, &changed));
    CHECK(changed == differences(&g_models[i], &g_models[i + 1]));
    OK(qry_world_read_region(world, low, high, read.voxels, sizeof read.voxels));
    CHECK(differences(&read, &g_models[i]) == 0);
  }
  REFUSED(qry_world_undo(world, &changed), QRY_NOTHING_TO_DO, "no step to undo");
  CHECK(changed == 0 && state_of(world).voxel_count == 0 && state_of(world).brick_count == 0);
  for (i = 1; i <= steps / 2; ++i) OK(qry_world_redo(world, NULL));
  OK(qry_world_read_region(world, low, high, read.voxels, sizeof read.voxels));
  CHECK(differences(&read, &g_models[steps / 2]) == 0);
  { /* a write drops the steps that could have been redone */
    const int32_t at[3] = {100, 100, 100};
    const uint8_t one = 1;
    OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL));
    REFUSED(qry_world_redo(world, &changed), QRY_NOTHING_TO_DO, "no step to redo");
    CHECK(state_of(world).history_length == (uint64_t)(steps / 2 + 1));
  }
  qry_world_destroy(&world);
}

static void edits_with_bad_numbers_are_refused(qry_context* context) {
  qry_world* world = new_world(context);
  qry_edit edit = QRY_EDIT_INIT;
  const int32_t low[3] = {0, 0, 0}, high[3] = {1, 1, 1}, huge[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
  uint8_t eight[8];
  edit.stype = 0;
  REFUSED(qry_world_edit(world, &edit, NULL), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_EDIT");
  {
    /* A plus of material 3 beside a voxel of material 4: what is connected with its middle becomes 5. */
    const int32_t xyz[] = {0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 2, 0, 0, 1, 1, 1};
    const uint8_t materials[] = {3, 3, 3, 3, 3, 4, 3};
    uint8_t now[7];
    qry_world* plus = new_world(context);
    qry_edit connected = QRY_EDIT_INIT;
    uint64_t changed = 9;
    connected.shape = QRY_SHAPE_CONNECTED;
    connected.mode = QRY_MODE_PAINT;
    connected.material = 5;
    OK(qry_world_set_voxels(plus, 0, xyz, materials, 7, NULL));
    OK(qry_world_edit(plus, &connected, &changed));
    CHECK(changed == 5);
    OK(qry_world_get_voxels(plus, xyz, now, 7));
    CHECK(now[0] == 5 && now[1] == 5 && now[4] == 5 && now[5] == 4 && now[6] == 3);
    connected.a[1] = 7; /* empty */
    OK(qry_world_edit(plus, &connected, &changed));
    CHECK(changed == 0);
    qry_world_destroy(&plus);
  }
  REFUSED(qry_world_edit(world, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "edit is NULL");
#define WITH(member, value, part)                                                 \
  do {                                                                            \
    qry_edit bad = QRY_EDIT_INIT;                                                 \
    bad.shape = QRY_SHAPE_SPHERE;                                                 \
    bad.member = (value);                                                         \
    REFUSED(qry_world_edit(world, &bad, NULL), QRY_ERROR_INVALID_ARGUMENT, part); \
  } while (0)
  WITH(shape, 99, "edit->shape is 99");
  WITH(mode, 5, "edit->mode is 5");
  WITH(material, 0, "edit->material is 0");
  WITH(material, 256, "edit->material is 256");
  WITH(mode, QRY_MODE_REPLACE, "edit->from is 0");
  WITH(radius, -1.0, "edit->radius is -1");
  WITH(radius, 4097.0, "edit->radius is 4097");
  WITH(radius, (double)NAN, "edit->radius");
  WITH(volume, 1, "volume is 1, but the world has 1");
  WITH(reserved2, 1, "reserved2");
#undef WITH
  REFUSED(qry_world_read_region(world, high, low, eight, 8), QRY_ERROR_INVALID_ARGUMENT, "is below min");
  REFUSED(qry_world_read_region(world, low, huge, eight, 8), QRY_ERROR_INVALID_ARGUMENT, "more than 2^32");
  REFUSED(qry_world_read_region(world, low, high, eight, 7), QRY_ERROR_BUFFER_TOO_SMALL, "takes 8");
  REFUSED(qry_world_read_region(world, low, high, NULL, 8), QRY_ERROR_INVALID_ARGUMENT, "materials is NULL");
  REFUSED(qry_world_read_region(world, NULL, high, eight, 8), QRY_ERROR_INVALID_ARGUMENT, "min is NULL");
  CHECK(state_of(world).version == 0);
  qry_world_destroy(&world);
}

static void materials_are_read_set_and_checked(qry_context* context) {
  qry_world* world = new_world(context);
  qry_material all[255], two[2], again[2];
  const uint64_t version = state_of(world).version;
  memset(two, 0, sizeof two);
  OK(qry_world_get_materials(world, 1, 255, all));
  CHECK(all[0].ior >= 1 && all[254].roughness >= 0 && all[254].roughness <= 1);
  two[0] = all[6];
  two[0].rgba[0] = 12;
  two[0].rgba[3] = 200;
  two[0].emission = 4.5f;
  two[1] = all[7];
  two[1].metalness = 1;
  OK(qry_world_set_materials(world, 7, 2, two));
  OK(qry_world_get_materials(world, 7, 2, again));
  CHECK(memcmp(two, again, sizeof two) == 0); /* NOLINT(bugprone-suspicious-memory-comparison) */
  CHECK(state_of(world).version == version + 1 && state_of(world).history_length == 0);
  OK(qry_world_set_materials(world, 7, 2, two));
  CHECK(state_of(world).version == version + 1);
  two[1].roughness = 1.5f;
  two[0].rgba[0] = 99;
  REFUSED(qry_world_set_materials(world, 7, 2, two), QRY_ERROR_INVALID_ARGUMENT, "materials[1]");
  two[1].roughness = (float)NAN;
  REFUSED(qry_world_set_materials(world, 7, 2, two), QRY_ERROR_INVALID_ARGUMENT, "materials[1]");
  OK(qry_world_get_materials(world, 7, 1, again));
  CHECK(again[0].rgba[0] == 12); /* no material was set */
  REFUSED(qry_world_get_materials(world, 0, 1, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_get_materials(world, 255, 2, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_get_materials(world, 2, UINT32_MAX, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_set_materials(world, 1, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "materials is NULL");
  qry_world_destroy(&world);
}

void check_voxels(qry_context* context) {
  voxels_set_in_bulk_are_read_back(context);
  writing_outside_the_world_changes_nothing_and_names_the_voxel(context);
  a_world_with_a_limit_says_full_and_stays_as_it_was(context);
  a_random_history_agrees_with_a_plain_array(context);
  edits_with_bad_numbers_are_refused(context);
  materials_are_read_set_and_checked(context);
}
