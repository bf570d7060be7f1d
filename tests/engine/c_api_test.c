/* The plugin interface as a plain C99 program sees it: what quarry.h promises, line by line, and every way to be refused.
 * Its own few lines of test frame, because the point is that nothing but C is needed. One argument: a folder to write files to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quarry/quarry.h>

static int g_checks, g_failures, g_skips;

static void check_at(int line, int good, const char* what) {
  ++g_checks;
  if (good) return;
  ++g_failures;
  printf("c_api_test.c:%d: FAILED: %s   (last error: %s)\n", line, what, qry_last_error());
}
#define CHECK(condition) check_at(__LINE__, (condition) != 0, #condition)

static void check_result_at(int line, qry_result got, qry_result wanted, const char* message_part, const char* what) {
  ++g_checks;
  if (got == wanted && (!message_part || strstr(qry_last_error(), message_part))) return;
  ++g_failures;
  printf("c_api_test.c:%d: FAILED: %s\n  gave %s, expected %s%s%s\n  last error: %s\n", line, what, qry_result_name(got), qry_result_name(wanted),
         message_part ? " with a message that has " : "", message_part ? message_part : "", qry_last_error());
}
#define OK(call) check_result_at(__LINE__, (call), QRY_OK, NULL, #call)
#define REFUSED(call, code, message_part) check_result_at(__LINE__, (call), (code), (message_part), #call)

static void skip(const char* why) {
  ++g_skips;
  printf("SKIPPED: %s\n", why);
}

static char g_path[4096];
static const char* g_folder;
static const char* path_of(const char* name) {
  snprintf(g_path, sizeof g_path, "%s/%s", g_folder, name);
  return g_path;
}
static int file_exists(const char* name) {
  FILE* file = fopen(path_of(name), "rb");
  if (file) fclose(file);
  return file != NULL;
}

static qry_context* new_context(uint32_t device) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_context* context = NULL;
  info.device = device;
  OK(qry_context_create(QRY_ABI_VERSION, &info, &context));
  return context;
}
static qry_world* new_world(qry_context* context) {
  qry_world* world = NULL;
  OK(qry_world_create(context, NULL, &world));
  return world;
}
static qry_world_state state_of(qry_world* world) {
  qry_world_state state = QRY_WORLD_STATE_INIT;
  OK(qry_world_get_state(world, &state));
  return state;
}
static uint8_t voxel_at(const qry_world* world, int32_t x, int32_t y, int32_t z) {
  int32_t xyz[3];
  uint8_t material = 99;
  xyz[0] = x;
  xyz[1] = y;
  xyz[2] = z;
  OK(qry_world_get_voxels(world, xyz, &material, 1));
  return material;
}

/* ---- versions and results ---- */

static void every_result_has_its_own_name(void) {
  qry_result a, b;
  int named = 0;
  for (a = -40; a <= 10; ++a) {
    if (strcmp(qry_result_name(a), "QRY_UNKNOWN_RESULT") == 0) continue;
    ++named;
    CHECK(strncmp(qry_result_name(a), "QRY_", 4) == 0);
    CHECK((a < 0) == (strncmp(qry_result_name(a), "QRY_ERROR_", 10) == 0));
    for (b = -40; b < a; ++b) CHECK(strcmp(qry_result_name(a), qry_result_name(b)) != 0 || strcmp(qry_result_name(b), "QRY_UNKNOWN_RESULT") == 0);
  }
  CHECK(named == 3 + 17);
  CHECK(strcmp(qry_result_name(QRY_ERROR_FULL), "QRY_ERROR_FULL") == 0);
  CHECK(qry_abi_version() == QRY_ABI_VERSION);
  CHECK(qry_version() == (((uint32_t)QRY_VERSION_MAJOR << 22) | ((uint32_t)QRY_VERSION_MINOR << 12) | (uint32_t)QRY_VERSION_PATCH));
}

static void a_context_refuses_what_it_does_not_understand(void) {
  qry_context* context = (qry_context*)&g_checks; /* must be nulled by a failure */
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_vulkan_device_info adopted = QRY_VULKAN_DEVICE_INFO_INIT;
  qry_vulkan_device_info second = QRY_VULKAN_DEVICE_INFO_INIT;
  qry_save_info stranger = QRY_SAVE_INFO_INIT;
  char numbers[64];

  REFUSED(qry_context_create(QRY_ABI_VERSION, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "out is NULL");
  snprintf(numbers, sizeof numbers, "ABI version %u, this library", QRY_ABI_VERSION + 7u);
  REFUSED(qry_context_create(QRY_ABI_VERSION + 7u, NULL, &context), QRY_ERROR_ABI_MISMATCH, numbers);
  snprintf(numbers, sizeof numbers, "has ABI version %u", QRY_ABI_VERSION);
  CHECK(strstr(qry_last_error(), numbers) != NULL);
  CHECK(context == NULL);

  info.stype = 0;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_CONTEXT_INFO");
  info.stype = QRY_STYPE_CONTEXT_INFO;
  info.reserved = 1;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "reserved");
  info.reserved = 0;
  info.device = 3;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "info->device is 3");
  info.device = QRY_DEVICE_LAZY;
  info.sharing = 9;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "info->sharing is 9");
  info.sharing = QRY_SHARING_AUTOMATIC;
  info.validation = 2;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "info->validation is 2");
  info.validation = 0;

  info.next = &stranger;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_SAVE_INFO");
  stranger.stype = 0x70000001u;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_UNKNOWN_STRUCT, "1879048193");
  info.next = &adopted;
  adopted.next = &second;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_DUPLICATE_STRUCT, "QRY_STYPE_VULKAN_DEVICE_INFO");
  adopted.next = &adopted; /* a circle ends too */
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_DUPLICATE_STRUCT, "twice");
  adopted.next = NULL;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "get_instance_proc_addr is NULL");
  info.prefer_device = "some GPU";
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT, "prefer_device");
  CHECK(context == NULL);

  qry_context_destroy(NULL);
  qry_context_destroy(&context);
  qry_world_destroy(NULL);
}

static void requirements_are_data_and_can_be_switched_on(void) {
  const qry_requirements* r = qry_get_requirements();
  uint32_t i;
  CHECK(r != NULL);
  CHECK(r->api_version == ((1u << 22) | (2u << 12)));
  CHECK(r->required_feature_count > 0);
  for (i = 0; i < r->required_feature_count; ++i) {
    CHECK(strlen(r->required_features[i]) > 3);
    CHECK(strncmp(r->required_feature_structs[i], "VkPhysicalDevice", 16) == 0);
  }
  for (i = 0; i < r->optional_extension_count; ++i) CHECK(strncmp(r->optional_extensions[i], "VK_", 3) == 0);
  REFUSED(qry_enable_required_features(NULL), QRY_ERROR_INVALID_ARGUMENT, "chain is NULL");
}

static void null_handles_are_refused_by_name(void) {
  qry_world* world = NULL;
  qry_world_state state = QRY_WORLD_STATE_INIT;
  qry_grid_stats stats = QRY_GRID_STATS_INIT;
  qry_edit edit = QRY_EDIT_INIT;
  qry_save_info save = QRY_SAVE_INFO_INIT;
  qry_open_info open = QRY_OPEN_INFO_INIT;
  qry_render_info render = QRY_RENDER_INFO_INIT;
  qry_device_state device = QRY_DEVICE_STATE_INIT;
  qry_material material;
  qry_camera camera;
  qry_ray ray;
  qry_hit hit;
  int32_t xyz[3] = {0, 0, 0};
  uint8_t byte = 0;
  uint64_t count = 0;
  REFUSED(qry_context_get_device(NULL, &device), QRY_ERROR_INVALID_ARGUMENT, "context is NULL");
  REFUSED(qry_world_create(NULL, NULL, &world), QRY_ERROR_INVALID_ARGUMENT, "context is NULL");
  REFUSED(qry_world_open(NULL, &open, &world), QRY_ERROR_INVALID_ARGUMENT, "context is NULL");
  REFUSED(qry_world_save(NULL, &save), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_set_voxels(NULL, 0, xyz, &byte, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_voxels(NULL, xyz, &byte, 1), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_write_region(NULL, 0, xyz, xyz, &byte, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_read_region(NULL, xyz, xyz, &byte, 1), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_list_bricks(NULL, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_edit(NULL, &edit, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_undo(NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_redo(NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_materials(NULL, 1, 1, &material), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_set_materials(NULL, 1, 1, &material), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_state(NULL, &state), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_grid_stats(NULL, &stats), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_fit_camera(NULL, 45, 1, 0, 0, &camera), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_render(NULL, &render, &byte, 1, 0), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_trace(NULL, &ray, 1, &hit), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_camera_ray(NULL, 8, 8, 0, 0, &ray), QRY_ERROR_INVALID_ARGUMENT, "camera is NULL");
}

/* ---- voxels ---- */

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
  CHECK(got[3] == 10 && got[4] == 10); /* of two for one voxel, the last one wins */
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
      seen |= (b[0] == 0 && b[1] == 0 && b[2] == 0) ? 1 : (b[0] == -1 && b[1] == -1 && b[2] == -1) ? 2 : (b[0] == 1023 && b[1] == 0 && b[2] == -1024) ? 4 : 8;
    }
    CHECK(seen == 7);
  }
  count = 1;
  REFUSED(qry_world_list_bricks(world, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "brick_xyz is NULL");
  REFUSED(qry_world_list_bricks(world, bricks, NULL), QRY_ERROR_INVALID_ARGUMENT, "count is NULL");

  /* The same again changes nothing and is no step of the history; nothing at all is fine too. */
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
  REFUSED(qry_world_set_voxels(world, 0, far_out, ones, 2, NULL), QRY_ERROR_OUT_OF_BOUNDS, "(2, 4096, 3), number 1 of the array");
  REFUSED(qry_world_set_voxels(world, 0, limits, ones, 2, NULL), QRY_ERROR_OUT_OF_BOUNDS, "(2147483647, 0, 0), number 0");
  REFUSED(qry_world_set_voxels(world, 0, corner, ones, 1, NULL), QRY_ERROR_OUT_OF_BOUNDS, "(8184, 4088, 8184)");
  memset(region, 1, sizeof region);
  REFUSED(qry_world_write_region(world, 0, corner_min, corner_max, region, sizeof region, NULL), QRY_ERROR_OUT_OF_BOUNDS, "(8180, 4080, 8180)");
  edit.shape = QRY_SHAPE_SPHERE;
  edit.a[0] = 8190;
  edit.radius = 5;
  REFUSED(qry_world_edit(world, &edit, NULL), QRY_ERROR_OUT_OF_BOUNDS, NULL);
  edit.a[0] = INT32_MIN;
  REFUSED(qry_world_edit(world, &edit, NULL), QRY_ERROR_OUT_OF_BOUNDS, NULL);
  CHECK(state_of(world).voxel_count == 0 && state_of(world).history_length == 0);
  CHECK(voxel_at(world, 1, 1, 1) == 0);
  /* The corner's neighbours are in the world, and so is the box that contains them all but only by its corners. */
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
  OK(qry_world_undo(world, NULL)); /* gives the bricks back */
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
            const int32_t low = edit->a[i] < edit->b[i] ? edit->a[i] : edit->b[i], high = edit->a[i] < edit->b[i] ? edit->b[i] : edit->a[i];
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
    if (g_failures > 20) break;
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
  { /* a write drops what could have been redone */
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
  REFUSED(qry_world_edit(world, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "edit is NULL");
#define WITH(member, value, part)                                            \
  do {                                                                       \
    qry_edit bad = QRY_EDIT_INIT;                                            \
    bad.shape = QRY_SHAPE_SPHERE;                                            \
    bad.member = (value);                                                    \
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
  CHECK(memcmp(two, again, sizeof two) == 0);
  CHECK(state_of(world).version == version + 1 && state_of(world).history_length == 0);
  OK(qry_world_set_materials(world, 7, 2, two));
  CHECK(state_of(world).version == version + 1);
  two[1].roughness = 1.5f;
  two[0].rgba[0] = 99;
  REFUSED(qry_world_set_materials(world, 7, 2, two), QRY_ERROR_INVALID_ARGUMENT, "materials[1]");
  two[1].roughness = (float)NAN;
  REFUSED(qry_world_set_materials(world, 7, 2, two), QRY_ERROR_INVALID_ARGUMENT, "materials[1]");
  OK(qry_world_get_materials(world, 7, 1, again));
  CHECK(again[0].rgba[0] == 12); /* none was taken */
  REFUSED(qry_world_get_materials(world, 0, 1, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_get_materials(world, 255, 2, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_get_materials(world, 2, UINT32_MAX, again), QRY_ERROR_INVALID_ARGUMENT, "1..255");
  REFUSED(qry_world_set_materials(world, 1, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "materials is NULL");
  qry_world_destroy(&world);
}

/* ---- files ---- */

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

static void fill_example(qry_world* world) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.b[0] = edit.b[2] = 31;
  edit.material = 3;
  OK(qry_world_edit(world, &edit, NULL));
  edit.shape = QRY_SHAPE_SPHERE;
  edit.mode = QRY_MODE_FILL;
  edit.a[0] = edit.a[2] = 15;
  edit.a[1] = 10;
  edit.radius = 7.5;
  edit.material = 40;
  OK(qry_world_edit(world, &edit, NULL));
}
static void check_same_voxels(qry_world* a, qry_world* b) {
  static uint8_t va[64 * 64 * 64], vb[64 * 64 * 64];
  const int32_t min[3] = {-16, -16, -16}, max[3] = {47, 47, 47};
  OK(qry_world_read_region(a, min, max, va, sizeof va));
  OK(qry_world_read_region(b, min, max, vb, sizeof vb));
  CHECK(memcmp(va, vb, sizeof va) == 0);
}
static void write_file(const char* name, const void* bytes, size_t size) {
  FILE* file = fopen(path_of(name), "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size);
  if (file) fclose(file);
}
/* Version 150, MAIN { SIZE 2 x 1 x 3, XYZI of three voxels }. */
static const uint8_t k_scene_vox[] = {
    'V', 'O', 'X', ' ', 150, 0, 0, 0, 'M', 'A', 'I', 'N', 0, 0, 0, 0, 52, 0, 0, 0,                             /* header */
    'S', 'I', 'Z', 'E', 12, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0,                            /* 24 bytes */
    'X', 'Y', 'Z', 'I', 16, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 6, 0, 0, 2, 7};               /* 28 bytes */

static void a_world_is_saved_and_opened_again(qry_context* context) {
  qry_world* world = new_world(context);
  qry_world* again = NULL;
  qry_save_info save = QRY_SAVE_INFO_INIT;
  qry_open_info open = QRY_OPEN_INFO_INIT;
  qry_world_info limit = QRY_WORLD_INFO_INIT;
  qry_material glow;
  uint64_t voxels;
  int calls = 0;
  fill_example(world);
  OK(qry_world_get_materials(world, 40, 1, &glow));
  glow.emission = 2;
  glow.rgba[1] = 17;
  OK(qry_world_set_materials(world, 40, 1, &glow));
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
    CHECK(memcmp(&material, &glow, sizeof glow) == 0);
    /* Saving over a file that is there, and flattening what already is flat. */
    OK(qry_world_save(again, &save));
    qry_world_destroy(&again);
    open.path = path_of("saved.quarry");
    open.flags = QRY_OPEN_FLATTEN;
    OK(qry_world_open(context, &open, &again));
    if (again) check_same_voxels(world, again);
    qry_world_destroy(&again);
  }

  /* A .vox scene is z-up in its file and has its pivot in the model's middle: voxels (0,0,0), (1,0,0) and (0,0,2) of a 2 x 1 x 3 model. */
  write_file("scene.vox", k_scene_vox, sizeof k_scene_vox);
  open.path = path_of("scene.vox");
  open.flags = QRY_OPEN_FLATTEN;
  OK(qry_world_open(context, &open, &again));
  if (again) {
    const qry_world_state opened = state_of(again);
    CHECK(opened.voxel_count == 3 && opened.volume_count == 1 && opened.instance_count == 1);
    CHECK(opened.max[0] - opened.min[0] == 1 && opened.max[1] - opened.min[1] == 2 && opened.max[2] - opened.min[2] == 0);
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

  /* Refusals: no handle, no file, and the reason. */
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
  open.flags = 2;
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

/* ---- cameras, pictures, rays ---- */

static void cameras_and_their_rays_agree(qry_context* context) {
  qry_world* world = new_world(context);
  qry_camera camera;
  qry_ray ray;
  double to_target[3], length;
  int i;
  fill_example(world);
  OK(qry_world_fit_camera(world, 40, 1.5, 0, 0, &camera));
  CHECK(fabs(camera.target[0] - 16) < 1e-9 && camera.position[2] > 32 && fabs(camera.position[1] - camera.target[1]) < 1e-6);
  OK(qry_world_fit_camera(world, 40, 1.5, 90, 0, &camera));
  CHECK(camera.position[0] > 32 && fabs(camera.position[2] - camera.target[2]) < 1e-6);
  OK(qry_world_fit_camera(world, 40, 1.5, 30, 25, &camera));
  OK(qry_camera_ray(&camera, 300, 200, 150, 100, &ray)); /* the middle looks at the target */
  length = 0;
  for (i = 0; i < 3; ++i) {
    to_target[i] = camera.target[i] - camera.position[i];
    length += to_target[i] * to_target[i];
  }
  for (i = 0; i < 3; ++i) CHECK(fabs(ray.direction[i] - to_target[i] / sqrt(length)) < 1e-5 && fabs(ray.origin[i] - camera.position[i]) < 1e-3);
  OK(qry_camera_ray(&camera, 300, 200, 150, 0, &ray)); /* the upper border is half the angle above */
  CHECK(fabs(acos((ray.direction[0] * to_target[0] + ray.direction[1] * to_target[1] + ray.direction[2] * to_target[2]) / sqrt(length)) -
             20.0 * 3.14159265358979 / 180) < 1e-4);
  CHECK(ray.direction[1] > to_target[1] / sqrt(length));
  REFUSED(qry_world_fit_camera(world, 180, 1, 0, 0, &camera), QRY_ERROR_INVALID_ARGUMENT, "vertical_fov_degrees is 180");
  REFUSED(qry_world_fit_camera(world, 45, 0, 0, 0, &camera), QRY_ERROR_INVALID_ARGUMENT, "aspect is 0");
  REFUSED(qry_world_fit_camera(world, 45, 1, 0, 90, &camera), QRY_ERROR_INVALID_ARGUMENT, "elevation_degrees 90");
  REFUSED(qry_world_fit_camera(world, 45, 1, 0, 0, NULL), QRY_ERROR_INVALID_ARGUMENT, "camera is NULL");
  REFUSED(qry_camera_ray(&camera, 0, 5, 0, 0, &ray), QRY_ERROR_INVALID_ARGUMENT, "0 x 5");
  REFUSED(qry_camera_ray(&camera, 5, 5, (double)NAN, 0, &ray), QRY_ERROR_INVALID_ARGUMENT, "finite");
  for (i = 0; i < 3; ++i) camera.target[i] = camera.position[i];
  REFUSED(qry_camera_ray(&camera, 5, 5, 0, 0, &ray), QRY_ERROR_INVALID_ARGUMENT, "camera.target");
  qry_world_destroy(&world);
}

static void rendering_refuses_bad_numbers_before_it_needs_a_device(void) {
  qry_context* context = new_context(QRY_DEVICE_NEVER);
  qry_world* world = new_world(context);
  qry_device_state device = QRY_DEVICE_STATE_INIT;
  qry_render_info good = QRY_RENDER_INFO_INIT;
  qry_ray rays[2] = {{{0, 0, 0}, {1, 0, 0}}, {{0, 0, 0}, {0, 0, 0}}};
  qry_hit hits[2];
  static uint8_t rgba[16 * 16 * 4];
  good.width = good.height = 16;
#define WITH(member, value, part)                                                                                \
  do {                                                                                                           \
    qry_render_info bad = good;                                                                                  \
    bad.member = (value);                                                                                        \
    REFUSED(qry_world_render(world, &bad, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, part);              \
  } while (0)
  WITH(width, 0, "0 x 16");
  WITH(height, 16385, "16 x 16385");
  WITH(view, 7, "info->view is 7");
  WITH(samples, 0, "info->samples is 0");
  WITH(shadow_rays, 65, "info->shadow_rays is 65");
  WITH(ambient_rays, 65, "info->ambient_rays is 65");
  WITH(ambient_reach, 0, "info->ambient_reach is 0");
  WITH(exposure, (float)NAN, "info->exposure");
  WITH(sun_strength, -1, "info->sun_strength is -1");
  WITH(sky_strength, -1, "info->sky_strength is -1");
  WITH(camera.vertical_fov_degrees, 0, "vertical_fov_degrees is 0");
  WITH(camera.target[2], 0, "camera.target is the same");
  WITH(camera.position[0], (double)INFINITY, "must be finite");
#undef WITH
  good.sun_direction[0] = good.sun_direction[1] = good.sun_direction[2] = 0;
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "sun_direction");
  good.sun_direction[1] = 1;
  REFUSED(qry_world_render(world, &good, NULL, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "rgba is NULL");
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba - 1, 0), QRY_ERROR_BUFFER_TOO_SMALL, "takes 1024");
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba, 63), QRY_ERROR_INVALID_ARGUMENT, "row_pitch_bytes is 63");
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba, 65), QRY_ERROR_BUFFER_TOO_SMALL, "takes 1039");
  REFUSED(qry_world_render(world, NULL, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "info is NULL");
  REFUSED(qry_world_trace(world, rays, 2, hits), QRY_ERROR_INVALID_ARGUMENT, "rays[1]");
  REFUSED(qry_world_trace(world, rays, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "hits is NULL");
  OK(qry_world_trace(world, NULL, 0, NULL));
  /* More than any vector can hold: the exception stays inside. */
  REFUSED(qry_world_trace(world, rays, (uint64_t)1 << 60, hits), QRY_ERROR_OUT_OF_MEMORY, "qry_world_trace");
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba, 0), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  REFUSED(qry_world_trace(world, rays, 1, hits), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  REFUSED(qry_context_get_device(context, &device), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  device.stype = 0;
  REFUSED(qry_context_get_device(context, &device), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_DEVICE_STATE");
  qry_context_destroy(&context); /* before its world: the world goes on */
  CHECK(context == NULL);
  fill_example(world);
  CHECK(state_of(world).voxel_count > 2000);
  qry_world_destroy(&world);
}

static void QRY_CALL count_messages(void* user, int32_t level, const char* message) {
  ++((int*)user)[level];
  if (level == QRY_LOG_ERROR) printf("log: %s\n", message);
}

static int is_sky(const uint8_t* a, const uint8_t* b) { return memcmp(a, b, 3) == 0; }

static void pictures_and_rays_show_the_world(void) {
  enum { kEdge = 64, kPitch = kEdge * 4 + 24 };
  static uint8_t first[kEdge * kEdge * 4], second[kEdge * kEdge * 4], empty[kEdge * kEdge * 4], wide[kPitch * kEdge];
  int messages[3] = {0, 0, 0};
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_device_state device = QRY_DEVICE_STATE_INIT;
  qry_render_info render = QRY_RENDER_INFO_INIT;
  qry_context* context = NULL;
  qry_world* world;
  qry_world* nothing;
  qry_result result;
  qry_ray ray;
  qry_hit hit;
  size_t i, different = 0;
  info.log = count_messages;
  info.log_user = messages;
  info.prefer_device = getenv("QUARRY_TEST_DEVICE");
  OK(qry_context_create(QRY_ABI_VERSION, &info, &context));
  world = new_world(context); /* before there is a device: rendering must move it */
  fill_example(world);
  result = qry_context_get_device(context, &device);
  if (result == QRY_ERROR_NOT_FOUND || result == QRY_ERROR_MISSING_FEATURE) {
    skip(qry_last_error());
    CHECK(strlen(qry_last_error()) > 0);
    qry_world_destroy(&world);
    qry_context_destroy(&context);
    return;
  }
  OK(result);
  printf("device: %s (%s), sharing %u: %s\n", device.name, device.driver, device.sharing, device.sharing_reason);
  CHECK(device.name[0] && device.sharing != QRY_SHARING_AUTOMATIC && device.sharing_reason[0] && !device.adopted);
  CHECK(device.api_version >= qry_get_requirements()->api_version);

  render.width = render.height = kEdge;
  OK(qry_world_fit_camera(world, 45, 1, 35, 25, &render.camera));
  OK(qry_world_render(world, &render, first, sizeof first, 0));
  CHECK(state_of(world).history_length == 2 && state_of(world).voxel_count > 2000);
  OK(qry_world_render(world, &render, second, sizeof second, 0));
  CHECK(memcmp(first, second, sizeof first) == 0);
  memset(wide, 0xA5, sizeof wide);
  OK(qry_world_render(world, &render, wide, sizeof wide - 24, kPitch));
  for (i = 0; i < kEdge; ++i) {
    CHECK(memcmp(wide + i * kPitch, first + i * kEdge * 4, kEdge * 4) == 0);
    CHECK(wide[i * kPitch + kEdge * 4] == 0xA5 && wide[(i + 1) * kPitch - 1] == 0xA5);
  }

  /* Every pixel that differs from the empty world's picture shows a voxel, by its own ray, and the other way round. */
  nothing = new_world(context);
  OK(qry_world_render(nothing, &render, empty, sizeof empty, 0));
  {
    static qry_ray rays[kEdge * kEdge];
    static qry_hit hits[kEdge * kEdge];
    size_t hit_count = 0, agree = 0;
    for (i = 0; i < kEdge * kEdge; ++i) OK(qry_camera_ray(&render.camera, kEdge, kEdge, (double)(i % kEdge) + 0.5, (double)(i / kEdge) + 0.5, &rays[i]));
    OK(qry_world_trace(world, rays, kEdge * kEdge, hits));
    for (i = 0; i < kEdge * kEdge; ++i) {
      const int shown = !is_sky(first + 4 * i, empty + 4 * i);
      different += (size_t)shown;
      hit_count += hits[i].t >= 0;
      agree += shown == (hits[i].t >= 0);
      if (hits[i].t >= 0) CHECK(voxel_at(world, hits[i].voxel[0], hits[i].voxel[1], hits[i].voxel[2]) == hits[i].material && hits[i].material > 0);
    }
    CHECK(hit_count > kEdge * kEdge / 10 && hit_count < kEdge * kEdge);
    CHECK(agree >= kEdge * kEdge - kEdge); /* a voxel may by chance have the sky's colour, and rays may graze */
    CHECK(different > 0);
  }

  /* A ray straight down on the sphere's top: voxel (15, 17, 15), from above. */
  ray.origin[0] = ray.origin[2] = 15.5f;
  ray.origin[1] = 100;
  ray.direction[0] = ray.direction[2] = 0;
  ray.direction[1] = -8; /* any length */
  OK(qry_world_trace(world, &ray, 1, &hit));
  CHECK(hit.voxel[0] == 15 && hit.voxel[1] == 17 && hit.voxel[2] == 15 && hit.material == 40 && hit.face == 3);
  CHECK(fabs(hit.t - 82.0) < 1e-3);
  ray.direction[1] = 1;
  OK(qry_world_trace(world, &ray, 1, &hit));
  CHECK(hit.t < 0 && hit.material == 0);

  /* An edit is in the next picture, undone it is gone: also for a world that moved. */
  {
    const int32_t at[3] = {15, 40, 15};
    const uint8_t one = 1;
    OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL));
    ray.direction[1] = -1;
    OK(qry_world_trace(world, &ray, 1, &hit));
    CHECK(hit.voxel[1] == 40 && hit.material == 1);
    OK(qry_world_undo(world, NULL));
    OK(qry_world_trace(world, &ray, 1, &hit));
    CHECK(hit.voxel[1] == 17);
    OK(qry_world_undo(world, NULL));
    OK(qry_world_trace(world, &ray, 1, &hit));
    CHECK(hit.voxel[1] == 0 && hit.material == 3);
    OK(qry_world_redo(world, NULL));
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) == 0);
  }
  for (render.view = QRY_VIEW_ALBEDO; render.view <= QRY_VIEW_STEPS; ++render.view) {
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) != 0);
  }
  CHECK(messages[QRY_LOG_ERROR] == 0);
  qry_context_destroy(&context); /* before its worlds */
  render.view = QRY_VIEW_SHADED;
  OK(qry_world_render(world, &render, second, sizeof second, 0));
  CHECK(memcmp(first, second, sizeof first) == 0);
  qry_world_destroy(&nothing);
  qry_world_destroy(&world);
}

static void a_device_by_a_name_that_is_not_there_is_refused(void) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_context* context = NULL;
  info.device = QRY_DEVICE_NOW;
  info.prefer_device = "no such device, surely";
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_NOT_FOUND, NULL);
  CHECK(context == NULL && strlen(qry_last_error()) > 10);
}

int main(int argc, char** argv) {
  qry_context* context;
  if (argc != 2) {
    printf("usage: %s FOLDER_FOR_FILES\n", argv[0]);
    return 2;
  }
  g_folder = argv[1];
  CHECK(strcmp(qry_last_error(), "") == 0);
  every_result_has_its_own_name();
  a_context_refuses_what_it_does_not_understand();
  requirements_are_data_and_can_be_switched_on();
  null_handles_are_refused_by_name();
  /* All of this needs no Vulkan. */
  context = new_context(QRY_DEVICE_NEVER);
  voxels_set_in_bulk_are_read_back(context);
  writing_outside_the_world_changes_nothing_and_names_the_voxel(context);
  a_world_with_a_limit_says_full_and_stays_as_it_was(context);
  a_random_history_agrees_with_a_plain_array(context);
  edits_with_bad_numbers_are_refused(context);
  materials_are_read_set_and_checked(context);
  a_world_is_saved_and_opened_again(context);
  cameras_and_their_rays_agree(context);
  qry_context_destroy(&context);
  rendering_refuses_bad_numbers_before_it_needs_a_device();
  /* And this does. */
  a_device_by_a_name_that_is_not_there_is_refused();
  pictures_and_rays_show_the_world();
  printf("%d checks, %d failed, %d skipped\n", g_checks, g_failures, g_skips);
  if (g_skips) printf("SKIPPED %d checks for want of a device or of files; see the lines above\n", g_skips);
  return g_failures ? 1 : 0;
}
