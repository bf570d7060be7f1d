/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - counts checks, failures and skips, and makes the contexts, worlds and files of the C tests. */
#include "tests/engine/api/check.h"

#include <stdio.h>
#include <string.h>

static int g_checks, g_failures, g_skips;
static char g_path[4096];
static const char* g_folder;

void check_at(const char* file, int line, int good, const char* what) {
  ++g_checks;
  if (good) return;
  ++g_failures;
  printf("%s:%d: FAILED: %s   (last error: %s)\n", file, line, what, qry_last_error());
}

void check_result_at(const char* file, int line, qry_result got, qry_result wanted, const char* message_part,
                     const char* what) {
  ++g_checks;
  if (got == wanted && (!message_part || strstr(qry_last_error(), message_part))) return;
  ++g_failures;
  printf("%s:%d: FAILED: %s\n  gave %s, expected %s%s%s\n  last error: %s\n", file, line, what, qry_result_name(got),
         qry_result_name(wanted), message_part ? " with a message that has " : "", message_part ? message_part : "",
         qry_last_error());
}

int failures_so_far(void) { return g_failures; }

void skip(const char* why) {
  ++g_skips;
  printf("SKIPPED: %s\n", why);
}

int finish_checks(void) {
  printf("%d checks, %d failed, %d skipped\n", g_checks, g_failures, g_skips);
  if (g_skips) printf("SKIPPED %d checks for want of a device or of files; see the lines above\n", g_skips);
  return g_failures ? 1 : 0;
}

void use_folder(const char* folder) { g_folder = folder; }

const char* path_of(const char* name) {
  snprintf(g_path, sizeof g_path, "%s/%s", g_folder, name);
  return g_path;
}

int file_exists(const char* name) {
  FILE* file = fopen(path_of(name), "rb");
  if (file) fclose(file);
  return file != NULL;
}

void write_file(const char* name, const void* bytes, size_t size) {
  FILE* file = fopen(path_of(name), "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size);
  if (file) fclose(file);
}

qry_context* new_context(uint32_t device) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_context* context = NULL;
  info.device = device;
  OK(qry_context_create(QRY_ABI_VERSION, &info, &context));
  return context;
}

qry_world* new_world(qry_context* context) {
  qry_world* world = NULL;
  OK(qry_world_create(context, NULL, &world));
  return world;
}

qry_world* new_world_at(qry_context* context, uint32_t where) {
  qry_world* world = NULL;
  qry_world_home_info home = QRY_WORLD_HOME_INFO_INIT;
  qry_world_info info = QRY_WORLD_INFO_INIT;
  home.home = where;
  info.next = &home;
  if (where == QRY_HOME_DEVICE && qry_world_create(context, &info, &world) == QRY_ERROR_UNSUPPORTED)
    skip(qry_last_error());
  else if (!world) OK(qry_world_create(context, &info, &world));
  return world;
}

qry_world_state state_of(qry_world* world) {
  qry_world_state state = QRY_WORLD_STATE_INIT;
  OK(qry_world_get_state(world, &state));
  return state;
}

uint8_t voxel_at(const qry_world* world, int32_t x, int32_t y, int32_t z) {
  int32_t xyz[3];
  uint8_t material = 99;
  xyz[0] = x;
  xyz[1] = y;
  xyz[2] = z;
  OK(qry_world_get_voxels(world, xyz, &material, 1));
  return material;
}

void fill_example(qry_world* world) {
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
