/* SPDX-License-Identifier: Apache-2.0 */
/* paths_test.c - path-traced pictures of the plugin interface: paths gathered over calls, a new start when anything
 * changes, cancellation, reading layer by layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/api/check.h"

enum { kEdge = 32, kPixels = kEdge * kEdge };

static qry_paths_state state_of_paths(const qry_paths* paths) {
  qry_paths_state state = QRY_PATHS_STATE_INIT;
  OK(qry_paths_get_state(paths, &state));
  return state;
}

static void wrong_use_is_refused_before_it_needs_a_device(qry_context* context) {
  qry_context* other = new_context(QRY_DEVICE_NEVER);
  qry_world* world = new_world(context);
  qry_paths* paths = NULL;
  qry_paths* none = NULL;
  qry_paths_info good = QRY_PATHS_INFO_INIT;
  qry_paths_state state = QRY_PATHS_STATE_INIT;
  qry_look_info look = QRY_LOOK_INFO_INIT, twice = QRY_LOOK_INFO_INIT;
  qry_render_info render = QRY_RENDER_INFO_INIT;
  static uint8_t rgba[kPixels * 4];
  good.width = good.height = kEdge;
  REFUSED(qry_paths_create(NULL, &paths), QRY_ERROR_INVALID_ARGUMENT, "context is NULL");
  REFUSED(qry_paths_create(context, NULL), QRY_ERROR_INVALID_ARGUMENT, "out is NULL");
  OK(qry_paths_create(context, &paths));
  OK(qry_paths_create(other, &none));
  REFUSED(qry_world_trace_paths(NULL, paths, &good), QRY_ERROR_INVALID_ARGUMENT, "world is NULL");
  REFUSED(qry_world_trace_paths(world, NULL, &good), QRY_ERROR_INVALID_ARGUMENT, "paths is NULL");
  REFUSED(qry_world_trace_paths(world, paths, NULL), QRY_ERROR_INVALID_ARGUMENT, "info is NULL");
  REFUSED(qry_world_trace_paths(world, none, &good), QRY_ERROR_INVALID_ARGUMENT, "different contexts");
#define WITH(member, value, part)                                                         \
  do {                                                                                    \
    qry_paths_info bad = good;                                                            \
    bad.member = (value);                                                                 \
    REFUSED(qry_world_trace_paths(world, paths, &bad), QRY_ERROR_INVALID_ARGUMENT, part); \
  } while (0)
  WITH(width, 16385, "16385 x 32");
  WITH(height, 0, "32 x 0");
  WITH(samples, 0, "info->samples is 0");
  WITH(samples, 65537, "info->samples is 65537");
  WITH(flags, 8, "unknown bits 0x8");
  WITH(bounces, 257, "info->bounces is 257");
  WITH(exposure, 0, "info->exposure is 0");
  WITH(sun_strength, (float)NAN, "info->sun_strength");
  WITH(sky_strength, -1, "info->sky_strength is -1");
  WITH(lens_radius, -1, "info->lens_radius is -1");
  WITH(focus, (float)INFINITY, "info->focus");
  WITH(firefly_limit, -1, "info->firefly_limit is -1");
  WITH(reserved2, 1, "info->reserved2 is 1");
  WITH(reserved, 1, "info->reserved must be 0");
  WITH(camera.vertical_fov_degrees, 0, "vertical_fov_degrees is 0");
#undef WITH
  good.stype = QRY_STYPE_RENDER_INFO;
  REFUSED(qry_world_trace_paths(world, paths, &good), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_PATHS_INFO");
  good.stype = QRY_STYPE_PATHS_INFO;
  good.next = &look;
#define WITH(member, value, part)                                                                      \
  do {                                                                                                 \
    const qry_look_info before = look;                                                                 \
    look.member = (value);                                                                             \
    REFUSED(qry_world_trace_paths(world, paths, &good), QRY_ERROR_INVALID_ARGUMENT, part);             \
    render.next = &look;                                                                               \
    render.width = render.height = kEdge;                                                              \
    REFUSED(qry_world_render(world, &render, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, part); \
    look = before;                                                                                     \
  } while (0)
  WITH(sky, 2, "qry_look_info.sky is 2");
  WITH(background, 3, "qry_look_info.background is 3");
  WITH(tone, 2, "qry_look_info.tone is 2");
  WITH(ground, 2, "qry_look_info.ground is 2");
  WITH(sky_color[1], -1, "qry_look_info.sky_color is -1");
  WITH(background_color[2], 1.5f, "qry_look_info.background_color is 1.5");
  WITH(sun_radius, 0.6f, "qry_look_info.sun_radius is 0.6");
  WITH(fog_distance, (float)NAN, "qry_look_info.fog_distance");
  WITH(fog_height, -1, "qry_look_info.fog_height is -1");
  WITH(reserved2, 1, "qry_look_info.reserved2 is 1");
#undef WITH
  look.next = &twice;
  REFUSED(qry_world_trace_paths(world, paths, &good), QRY_ERROR_DUPLICATE_STRUCT, "QRY_STYPE_LOOK_INFO is twice");
  look.next = NULL;
  REFUSED(qry_world_trace_paths(world, paths, &good), QRY_ERROR_UNSUPPORTED, "QRY_DEVICE_NEVER");
  CHECK(state_of_paths(paths).samples == 0 && state_of_paths(paths).traced == 0 && state_of_paths(paths).width == 0);
  REFUSED(qry_paths_read(paths, QRY_LAYER_COLOR, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "no picture yet");
  REFUSED(qry_paths_read(paths, 5, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "layer is 5");
  REFUSED(qry_paths_read(NULL, 0, rgba, sizeof rgba, 0), QRY_ERROR_INVALID_ARGUMENT, "paths is NULL");
  REFUSED(qry_paths_read(paths, 0, NULL, 0, 0), QRY_ERROR_INVALID_ARGUMENT, "out is NULL");
  REFUSED(qry_paths_get_state(NULL, &state), QRY_ERROR_INVALID_ARGUMENT, "paths is NULL");
  state.stype = 0;
  REFUSED(qry_paths_get_state(paths, &state), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_PATHS_STATE");
  qry_context_destroy(&other); /* before its paths */
  qry_paths_destroy(&none);
  CHECK(none == NULL);
  qry_paths_destroy(&none);
  qry_paths_destroy(NULL);
  qry_paths_destroy(&paths);
  qry_world_destroy(&world);
}

static int32_t QRY_CALL stop_after_one(void* user, const char* stage, double fraction) {
  CHECK(stage != NULL && fraction <= 1.0);
  return ++*(int*)user >= 1;
}

static void pictures_gather_and_begin_anew(qry_context* context) {
  static uint8_t whole[kPixels * 4], parts[kPixels * 4], other[kPixels * 4];
  const int32_t at[3] = {15, 25, 15};
  const uint8_t one = 9;
  qry_world* world = new_world(context);
  qry_world* twin = new_world_at(context, QRY_HOME_HOST);
  qry_paths* a = NULL;
  qry_paths* b = NULL;
  qry_paths_info info = QRY_PATHS_INFO_INIT;
  qry_paths_state state;
  int calls = 0, i;
  fill_example(world);
  fill_example(twin);
  OK(qry_paths_create(context, &a));
  OK(qry_paths_create(context, &b));
  info.width = info.height = kEdge;
  OK(qry_world_fit_camera(world, 45, 1, 35, 25, &info.camera));
  info.samples = 8;
  OK(qry_world_trace_paths(world, a, &info));
  OK(qry_paths_read(a, QRY_LAYER_COLOR, whole, sizeof whole, 0));
  info.samples = 2;
  for (i = 0; i < 4; ++i) {
    OK(qry_world_trace_paths(world, b, &info));
    state = state_of_paths(b);
    CHECK(state.samples == 2u * (unsigned)(i + 1) && state.traced == state.samples && state.width == kEdge &&
          state.height == kEdge);
    CHECK(state.world_version == state_of(world).version && state.has_layers == 0);
    OK(qry_paths_read(b, QRY_LAYER_COLOR, parts, sizeof parts, 0));
    CHECK((memcmp(whole, parts, sizeof whole) == 0) == (i == 3));
  }

  /* Exposure may change between calls, but nothing that is traced. */
  info.exposure = 3;
  OK(qry_world_trace_paths(world, b, &info));
  CHECK(state_of_paths(b).samples == 10);
  info.exposure = 1;
#define ANEW(change)                            \
  do {                                          \
    change;                                     \
    OK(qry_world_trace_paths(world, b, &info)); \
    CHECK(state_of_paths(b).samples == 2);      \
    OK(qry_world_trace_paths(world, b, &info)); \
    CHECK(state_of_paths(b).samples == 4);      \
  } while (0)
  ANEW(info.seed = 1);
  ANEW(info.bounces = 2);
  ANEW(info.sun_direction[0] = 0.5f);
  ANEW(info.camera.position[1] += 1);
  ANEW(info.width = kEdge / 2);
  ANEW(info.flags = QRY_PATHS_LAYERS);
  ANEW(OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL)));
  ANEW(OK(qry_world_undo(world, NULL)));
#undef ANEW
  info.flags |= QRY_PATHS_RESTART;
  for (i = 0; i < 2; ++i) {
    OK(qry_world_trace_paths(world, b, &info));
    CHECK(state_of_paths(b).samples == 2);
  }
  info.flags = 0;

  /* An edit is in the next picture. An equal world gives the same picture, but begins anew. A packed world
   * continues. */
  info = (qry_paths_info)QRY_PATHS_INFO_INIT;
  info.width = info.height = kEdge;
  OK(qry_world_fit_camera(world, 45, 1, 35, 25, &info.camera));
  info.samples = 4;
  OK(qry_world_set_voxels(world, 0, at, &one, 1, NULL));
  OK(qry_world_trace_paths(world, b, &info));
  OK(qry_paths_read(b, QRY_LAYER_COLOR, other, sizeof other, 0));
  CHECK(memcmp(whole, other, sizeof whole) != 0);
  OK(qry_world_trace_paths(twin, b, &info));
  CHECK(state_of_paths(b).samples == 4);
  OK(qry_world_pack(twin));
  OK(qry_world_trace_paths(twin, b, &info));
  CHECK(state_of_paths(b).samples == 8);
  OK(qry_paths_read(b, QRY_LAYER_COLOR, parts, sizeof parts, 0));
  CHECK(memcmp(whole, parts, sizeof whole) == 0);

  /* After a cancellation the picture stays, the traced paths are kept, and the final picture is the same. */
  OK(qry_world_undo(world, NULL));
  OK(qry_world_trace_paths(world, a, &info));
  OK(qry_paths_read(a, QRY_LAYER_COLOR, other, sizeof other, 0));
  info.samples = 100;
  info.progress = stop_after_one;
  info.progress_user = &calls;
  REFUSED(qry_world_trace_paths(world, a, &info), QRY_ERROR_CANCELLED, "paths a pixel");
  CHECK(calls == 1);
  state = state_of_paths(a);
  CHECK(state.samples == 4 && state.traced > 4 && state.traced < 104);
  OK(qry_paths_read(a, QRY_LAYER_COLOR, parts, sizeof parts, 0));
  CHECK(memcmp(other, parts, sizeof other) == 0);
  info.progress = NULL;
  info.samples = 20 - state.traced;
  OK(qry_world_trace_paths(world, a, &info));
  CHECK(state_of_paths(a).samples == 20);
  OK(qry_paths_read(a, QRY_LAYER_COLOR, parts, sizeof parts, 0));
  info.samples = 20;
  OK(qry_world_trace_paths(twin, a, &info));
  OK(qry_paths_read(a, QRY_LAYER_COLOR, other, sizeof other, 0));
  CHECK(memcmp(other, parts, sizeof other) == 0);
  qry_world_destroy(&twin); /* destroyed before the picture of it */
  OK(qry_paths_read(a, QRY_LAYER_COLOR, other, sizeof other, 0));
  qry_paths_destroy(&a);
  qry_paths_destroy(&b);
  qry_world_destroy(&world);
}

static void layers_say_what_is_seen(qry_context* context) {
  enum { kRow = kEdge * 12 + 20 };
  static float depth[kPixels], normal[kPixels * 3], albedo[kPixels * 3], radiance[kPixels * 4];
  static uint8_t rgba[kPixels * 4], wide[kRow * kEdge];
  static qry_ray rays[kPixels];
  static qry_hit hits[kPixels];
  qry_world* world = new_world(context);
  qry_paths* paths = NULL;
  qry_paths_info info = QRY_PATHS_INFO_INIT;
  qry_look_info look = QRY_LOOK_INFO_INIT;
  qry_render_info render = QRY_RENDER_INFO_INIT;
  int i, c, near = 0, sky = 0, solid = 0, covered = 0;
  fill_example(world);
  OK(qry_paths_create(context, &paths));
  look.background = QRY_BACKGROUND_NONE;
  info.next = &look;
  info.width = info.height = kEdge;
  info.samples = 16;
  info.flags = QRY_PATHS_LAYERS;
  OK(qry_world_fit_camera(world, 45, 1, 35, 25, &info.camera));
  OK(qry_world_trace_paths(world, paths, &info));
  CHECK(state_of_paths(paths).has_layers == 1);
  OK(qry_paths_read(paths, QRY_LAYER_DEPTH, depth, sizeof depth, 0));
  OK(qry_paths_read(paths, QRY_LAYER_NORMAL, normal, sizeof normal, 0));
  OK(qry_paths_read(paths, QRY_LAYER_ALBEDO, albedo, sizeof albedo, 0));
  OK(qry_paths_read(paths, QRY_LAYER_RADIANCE, radiance, sizeof radiance, 0));
  OK(qry_paths_read(paths, QRY_LAYER_COLOR, rgba, sizeof rgba, 0));
  REFUSED(qry_paths_read(paths, QRY_LAYER_DEPTH, depth, sizeof depth - 1, 0), QRY_ERROR_BUFFER_TOO_SMALL, "takes 4096");
  REFUSED(qry_paths_read(paths, QRY_LAYER_NORMAL, normal, sizeof normal, 383), QRY_ERROR_INVALID_ARGUMENT, "takes 384");
  memset(wide, 0xA5, sizeof wide);
  OK(qry_paths_read(paths, QRY_LAYER_NORMAL, wide, sizeof wide - 20, kRow));
  for (i = 0; i < kEdge; ++i) {
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    CHECK(memcmp(wide + i * kRow, normal + i * kEdge * 3, kEdge * 12) == 0);
    CHECK(wide[i * kRow + kEdge * 12] == 0xA5 && wide[(i + 1) * kRow - 1] == 0xA5);
  }
  for (i = 0; i < kPixels; ++i) /* NOLINTNEXTLINE(bugprone-integer-division) */
    OK(qry_camera_ray(&info.camera, kEdge, kEdge, i % kEdge + 0.5, i / kEdge + 0.5, &rays[i]));
  OK(qry_world_trace(world, rays, kPixels, hits));
  for (i = 0; i < kPixels; ++i) {
    if (isinf(depth[i])) { /* no path hit anything, and neither does the ray through the middle */
      ++sky;
      CHECK(hits[i].t < 0);
      CHECK(rgba[4 * i + 3] == 0);
      CHECK(radiance[4 * i + 3] == 0);
      continue;
    }
    if (radiance[4 * i + 3] < 1 || hits[i].t < 0) continue; /* an edge */
    ++solid;
    CHECK(rgba[4 * i + 3] == 255);
    near += fabsf(depth[i] - hits[i].t) < 3;
    {
      const double length = sqrtf(normal[3 * i] * normal[3 * i] + normal[3 * i + 1] * normal[3 * i + 1] +
                                  normal[3 * i + 2] * normal[3 * i + 2]);
      CHECK(length <= 1.001);
      covered += length > 0.99 && normal[3 * i + hits[i].face / 2] * (hits[i].face & 1 ? 1 : -1) > 0.99;
    }
    for (c = 0; c < 3; ++c) CHECK(albedo[3 * i + c] >= 0 && albedo[3 * i + c] <= 1);
  }
  CHECK(sky > kPixels / 8 && solid > kPixels / 8);
  CHECK(near > solid * 9 / 10); /* the mean over a pixel, compared with the ray through its middle */
  CHECK(covered > solid / 4);   /* the others see more than one face */

  /* The same look for ray-marched pictures: pixels that hit nothing are transparent. */
  render.next = &look;
  render.width = render.height = kEdge;
  render.camera = info.camera;
  OK(qry_world_render(world, &render, rgba, sizeof rgba, 0));
  for (i = 0; i < kPixels; ++i) CHECK(rgba[4 * i + 3] == (hits[i].t < 0 ? 0 : 255));
  look.background = QRY_BACKGROUND_COLOR;
  look.background_color[1] = 0;
  OK(qry_world_render(world, &render, rgba, sizeof rgba, 0));
  for (i = 0; i < kPixels; ++i)
    if (hits[i].t < 0)
      CHECK(rgba[4 * i] == 255 && rgba[4 * i + 1] == 0 && rgba[4 * i + 2] == 255 && rgba[4 * i + 3] == 255);

  info.flags = 0;
  OK(qry_world_trace_paths(world, paths, &info));
  REFUSED(qry_paths_read(paths, QRY_LAYER_ALBEDO, albedo, sizeof albedo, 0), QRY_ERROR_INVALID_ARGUMENT,
          "QRY_PATHS_LAYERS");
  qry_world_destroy(&world);
  qry_paths_destroy(&paths);
}

void check_paths(qry_context* context) {
  qry_device_state device = QRY_DEVICE_STATE_INIT;
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  qry_context* with_device = NULL;
  qry_result result;
  wrong_use_is_refused_before_it_needs_a_device(context);
  info.prefer_device = getenv("QUARRY_TEST_DEVICE");
  OK(qry_context_create(QRY_ABI_VERSION, &info, &with_device));
  result = qry_context_get_device(with_device, &device);
  if (result == QRY_ERROR_NOT_FOUND || result == QRY_ERROR_MISSING_FEATURE) {
    skip(qry_last_error());
  } else {
    OK(result);
    pictures_gather_and_begin_anew(with_device);
    layers_say_what_is_seen(with_device);
  }
  qry_context_destroy(&with_device);
}
