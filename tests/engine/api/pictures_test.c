/* SPDX-License-Identifier: Apache-2.0 */
/* pictures_test.c - cameras, pictures and rays of the plugin interface. The first part needs no Vulkan device. The
 * second reports if there is none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/api/check.h"

static void cameras_and_their_rays_agree(qry_context* context) {
  qry_world* world = new_world(context);
  qry_camera camera;
  qry_ray ray;
  double to_target[3], length;
  int i;
  fill_example(world);
  OK(qry_world_fit_camera(world, 40, 1.5, 0, 0, &camera));
  CHECK(fabs(camera.target[0] - 16) < 1e-9 && camera.position[2] > 32 &&
        fabs(camera.position[1] - camera.target[1]) < 1e-6);
  OK(qry_world_fit_camera(world, 40, 1.5, 90, 0, &camera));
  CHECK(camera.position[0] > 32 && fabs(camera.position[2] - camera.target[2]) < 1e-6);
  OK(qry_world_fit_camera(world, 40, 1.5, 30, 25, &camera));
  OK(qry_camera_ray(&camera, 300, 200, 150, 100, &ray)); /* the middle looks at the target */
  length = 0;
  for (i = 0; i < 3; ++i) {
    to_target[i] = camera.target[i] - camera.position[i];
    length += to_target[i] * to_target[i];
  }
  for (i = 0; i < 3; ++i)
    CHECK(fabs(ray.direction[i] - to_target[i] / sqrt(length)) < 1e-5 &&
          fabs(ray.origin[i] - camera.position[i]) < 1e-3);
  OK(qry_camera_ray(&camera, 300, 200, 150, 0, &ray)); /* the upper border is half the angle above */
  CHECK(
      fabs(acos((ray.direction[0] * to_target[0] + ray.direction[1] * to_target[1] + ray.direction[2] * to_target[2]) /
                sqrt(length)) -
           20.0 * 3.14159265358979 / 180) < 1e-4);
  CHECK(ray.direction[1] > to_target[1] / sqrt(length));
  REFUSED(qry_world_fit_camera(world, 180, 1, 0, 0, &camera), QRY_ERROR_INVALID_ARGUMENT,
          "vertical_fov_degrees is 180");
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
#define WITH(member, value, part)                                                                   \
  do {                                                                                              \
    qry_render_info bad = good;                                                                     \
    bad.member = (value);                                                                           \
    REFUSED(qry_world_render(world, &bad, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, part); \
  } while (0)
  WITH(width, 0, "0 x 16");
  WITH(height, 16385, "16 x 16385");
  WITH(view, 9, "info->view is 9");
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
  /* This is more than any vector can hold. The exception must not leave the library. */
  REFUSED(qry_world_trace(world, rays, (uint64_t)1 << 60, hits), QRY_ERROR_OUT_OF_MEMORY, "qry_world_trace");
  REFUSED(qry_world_render(world, &good, rgba, sizeof rgba, 0), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  REFUSED(qry_world_trace(world, rays, 1, hits), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  REFUSED(qry_context_get_device(context, &device), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  device.stype = 0;
  REFUSED(qry_context_get_device(context, &device), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_DEVICE_STATE");
  qry_context_destroy(&context); /* before its world, which still works */
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
  world = new_world(context); /* made before the device, so rendering must move it */
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

  /* A pixel must differ from the empty world's picture exactly if its own ray hits a voxel. */
  nothing = new_world(context);
  OK(qry_world_render(nothing, &render, empty, sizeof empty, 0));
  {
    static qry_ray rays[kEdge * kEdge];
    static qry_hit hits[kEdge * kEdge];
    size_t hit_count = 0, agree = 0;
    for (i = 0; i < kEdge * kEdge; ++i) /* NOLINTNEXTLINE(bugprone-integer-division) */
      OK(qry_camera_ray(&render.camera, kEdge, kEdge, (double)(i % kEdge) + 0.5, (double)(i / kEdge) + 0.5, &rays[i]));
    OK(qry_world_trace(world, rays, kEdge * kEdge, hits));
    for (i = 0; i < kEdge * kEdge; ++i) {
      const int shown = !is_sky(first + 4 * i, empty + 4 * i);
      different += (size_t)shown;
      hit_count += hits[i].t >= 0;
      agree += shown == (hits[i].t >= 0);
      if (hits[i].t >= 0)
        CHECK(voxel_at(world, hits[i].voxel[0], hits[i].voxel[1], hits[i].voxel[2]) == hits[i].material &&
              hits[i].material > 0);
    }
    CHECK(hit_count > kEdge * kEdge / 10 && hit_count < kEdge * kEdge);
    CHECK(agree >= kEdge * kEdge - kEdge); /* a voxel may have the sky's colour by chance, and rays may graze */
    CHECK(different > 0);
  }

  /* A chained outline changes some pixels, an empty one none. */
  {
    qry_outline_info outline = QRY_OUTLINE_INFO_INIT;
    size_t lines = 0;
    render.next = &outline;
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) == 0);
    for (i = 0; i < 3; ++i) outline.max_xyz[i] = 20;
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    for (i = 0; i < kEdge * kEdge; ++i) lines += memcmp(first + 4 * i, second + 4 * i, 4) != 0;
    CHECK(lines > kEdge / 2 && lines < kEdge * kEdge / 2);
    outline.next = &outline;
    REFUSED(qry_world_render(world, &render, second, sizeof second, 0), QRY_ERROR_DUPLICATE_STRUCT,
            "QRY_STYPE_OUTLINE_INFO");
    render.next = NULL;
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

  /* An edit is in the next picture, and gone after undo. This also holds for a world that moved. */
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
  /* Packed worlds look the same: the world that moved here, one that moves packed, and again after an edit. */
  {
    qry_memory_state editable = QRY_MEMORY_STATE_INIT, packed = QRY_MEMORY_STATE_INIT;
    qry_context* late = NULL;
    qry_world* mover;
    qry_home_state home = QRY_HOME_STATE_INIT;
    OK(qry_world_get_home(world, &home));
    OK(qry_world_get_memory(world, &editable));
    OK(qry_world_pack(world));
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) == 0);
    OK(qry_world_get_memory(world, &packed));
    CHECK(packed.packed == 1 && packed.device_bytes > 0 && packed.material_bytes < editable.material_bytes);
    if (home.home == QRY_HOME_HOST) CHECK(packed.device_bytes < editable.device_bytes);
    OK(qry_world_undo(world, NULL));
    OK(qry_world_redo(world, NULL));
    OK(qry_world_trim(world));
    OK(qry_world_render(world, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) == 0);
    OK(qry_context_create(QRY_ABI_VERSION, &info, &late));
    mover = new_world_at(late, QRY_HOME_HOST);
    fill_example(mover);
    OK(qry_world_pack(mover));
    OK(qry_world_render(mover, &render, second, sizeof second, 0));
    CHECK(memcmp(first, second, sizeof first) == 0);
    OK(qry_world_get_memory(mover, &packed));
    CHECK(packed.packed == 1 && packed.device_bytes > 0);
    qry_world_destroy(&mover);
    qry_context_destroy(&late);
  }
  for (render.view = QRY_VIEW_ALBEDO; render.view <= QRY_VIEW_LOAD; ++render.view) {
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

void check_pictures(qry_context* context) {
  cameras_and_their_rays_agree(context);
  rendering_refuses_bad_numbers_before_it_needs_a_device();
  a_device_by_a_name_that_is_not_there_is_refused();
  pictures_and_rays_show_the_world();
}
