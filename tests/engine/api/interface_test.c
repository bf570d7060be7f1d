/* SPDX-License-Identifier: Apache-2.0 */
/* interface_test.c - the plugin interface in a plain C99 program: each promise of quarry.h, and every refusal. Its
 * argument is a folder to write files to. */
#include <stdio.h>
#include <string.h>

#include "tests/engine/api/check.h"

static void every_result_has_its_own_name(void) {
  qry_result a, b;
  int named = 0;
  for (a = -40; a <= 10; ++a) {
    if (strcmp(qry_result_name(a), "QRY_UNKNOWN_RESULT") == 0) continue;
    ++named;
    CHECK(strncmp(qry_result_name(a), "QRY_", 4) == 0);
    CHECK((a < 0) == (strncmp(qry_result_name(a), "QRY_ERROR_", 10) == 0));
    for (b = -40; b < a; ++b)
      CHECK(strcmp(qry_result_name(a), qry_result_name(b)) != 0 ||
            strcmp(qry_result_name(b), "QRY_UNKNOWN_RESULT") == 0);
  }
  CHECK(named == 3 + 18);
  CHECK(strcmp(qry_result_name(QRY_ERROR_FULL), "QRY_ERROR_FULL") == 0);
  CHECK(qry_abi_version() == QRY_ABI_VERSION);
  CHECK(qry_version() ==
        (((uint32_t)QRY_VERSION_MAJOR << 22) | ((uint32_t)QRY_VERSION_MINOR << 12) | (uint32_t)QRY_VERSION_PATCH));
}

static void a_context_refuses_what_it_does_not_understand(void) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_context* context = (qry_context*)&info; /* a failure must set it to NULL */
  qry_vulkan_device_info adopted = QRY_VULKAN_DEVICE_INFO_INIT;
  qry_vulkan_device_info second = QRY_VULKAN_DEVICE_INFO_INIT;
  qry_save_info unknown = QRY_SAVE_INFO_INIT;
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

  info.next = &unknown;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_SAVE_INFO");
  unknown.stype = 0x70000001u;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_UNKNOWN_STRUCT, "1879048193");
  info.next = &adopted;
  adopted.next = &second;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_DUPLICATE_STRUCT,
          "QRY_STYPE_VULKAN_DEVICE_INFO");
  adopted.next = &adopted; /* a circular chain ends too */
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_DUPLICATE_STRUCT, "twice");
  adopted.next = NULL;
  REFUSED(qry_context_create(QRY_ABI_VERSION, &info, &context), QRY_ERROR_INVALID_ARGUMENT,
          "get_instance_proc_addr is NULL");
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
  REFUSED(qry_world_attach(NULL, "w.quarry"), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_flush(NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_detach(NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_snapshot(NULL, &world), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_set_voxels(NULL, 0, xyz, &byte, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_get_voxels(NULL, xyz, &byte, 1), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_write_region(NULL, 0, xyz, xyz, &byte, 1, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_read_region(NULL, xyz, xyz, &byte, 1), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_list_bricks(NULL, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_time_edits(NULL, 1), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_list_edit_stages(NULL, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_edit(NULL, &edit, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_combine(NULL, 0, NULL, 0, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_dilate(NULL, 0, 6, 1, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_erode(NULL, 0, 6, 1, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_find_parts(NULL, 6, NULL, NULL, &count), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_keep_parts(NULL, 0, 6, 1, 0, NULL, NULL), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
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

int main(int argc, char** argv) {
  qry_context* context;
  if (argc != 2) {
    printf("usage: %s FOLDER_FOR_FILES\n", argv[0]);
    return 2;
  }
  use_folder(argv[1]);
  CHECK(strcmp(qry_last_error(), "") == 0);
  every_result_has_its_own_name();
  a_context_refuses_what_it_does_not_understand();
  requirements_are_data_and_can_be_switched_on();
  null_handles_are_refused_by_name();
  context = new_context(QRY_DEVICE_NEVER); /* works on a machine without any Vulkan */
  check_voxels(context);
  check_algebra(context);
  check_files(context);
  check_attached(context);
  check_packed(context);
  check_pictures(context);
  check_paths(context);
  qry_context_destroy(&context);
  return finish_checks();
}
