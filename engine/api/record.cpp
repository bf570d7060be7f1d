// SPDX-License-Identifier: Apache-2.0
// record.cpp - frames of the C interface, recorded into the host engine's own command buffer. Nothing here waits. Only
// publishing submits.
#include <vulkan/vulkan_core.h>

#include <cstring>

#include "engine/api/handles.hpp"
#include "engine/home/drawing.hpp"
#include "engine/home/resident_pages.hpp"
#include "engine/render/frame_settings.hpp"

using namespace quarry;
using namespace quarry::c_api;

qry_recorder::~qry_recorder() {
  if (!renderer) return;
  const std::lock_guard lock(context->mutex);
  renderer.reset();
}

namespace quarry::c_api {
namespace {

constexpr uint32_t kMaxSlots = 64;

// Converts to handles, which are pointers or numbers depending on the platform.
template <class Handle>
Handle vulkan_handle(uint64_t number) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(uintptr_t(number));  // NOLINT(performance-no-int-to-ptr): Vulkan's own form
  else return number;
}
uint64_t number_of(VkSemaphore semaphore) {
  uint64_t number = 0;
  std::memcpy(&number, &semaphore, sizeof(VkSemaphore));
  return number;
}

qry_result check_adopted(const ContextState& context, const char* function) {
  if (context.adopted) return QRY_OK;
  return refuse(
      QRY_ERROR_UNSUPPORTED,
      "%s: the command buffers are yours, so the device must be: create the context with qry_vulkan_device_info",
      function);
}

}  // namespace

Result<engine::Device::TimelinePoint> published_for_frames(qry_world& world) {
  if (!world.home || !world.home->shares() || !world.home->pages()) return rendered(world).publish();
  return engine::streamed_world(*world.shared, *world.document, *world.home, *world.blocks, *world.context->device)
      .publish();
}

}  // namespace quarry::c_api

qry_result qry_world_publish(qry_world* world, qry_published* published) {
  const char* const function = "qry_world_publish";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "published", published, QRY_STYPE_PUBLISHED));
    QRY_PASS_REFUSAL(check_adopted(*world->context, function));
    const std::lock_guard lock(world->context->mutex);
    QRY_PASS_REFUSAL(share_world(*world, function));
    world->published_for_frames = true;
    const auto point = published_for_frames(*world);
    if (!point) return refuse(point.error());
    published->semaphore = number_of(point->semaphore);
    published->value = point->semaphore ? point->value : 0;
    const auto version = version_of(*world);
    if (!version) return refuse(version.error());
    published->version = *version;
    return QRY_OK;
  });
}

qry_result qry_world_frames_done(qry_world* world, uint64_t safe_frame) {
  const char* const function = "qry_world_frames_done";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (world->shared) world->shared->frame_completed(safe_frame);
    return QRY_OK;
  });
}

qry_result qry_world_stream(qry_world* world, const qry_stream_info* info, qry_stream_state* state) {
  const char* const function = "qry_world_stream";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    const qry_stream_info defaults = QRY_STREAM_INFO_INIT;
    if (!info) info = &defaults;
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_STREAM_INFO));
    if (state) QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_STREAM_STATE));
    engine::ResidentPages::Streamed streamed;
    if (world->home && world->home->pages() && world->shared) {
      auto done =
          world->home->pages()->stream(world->shared->frames().done, info->max_bytes ? info->max_bytes : UINT64_MAX);
      if (!done) return refuse(done.error());
      streamed = *done;
    }
    if (!state) return QRY_OK;
    state->brought_pages = streamed.brought;
    state->left_pages = streamed.left;
    state->brought_bytes = streamed.bytes;
    state->missing_pages = streamed.missing;
    return QRY_OK;
  });
}

qry_result qry_world_prefetch(qry_world* world, const int32_t min[3], const int32_t max[3]) {
  const char* const function = "qry_world_prefetch";
  return guarded(function, [&]() -> qry_result {
    if (!world || !min || !max)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, !world ? "world" : !min ? "min" : "max");
    const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    if (box.empty()) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: min is above max", function);
    if (!world->home || !world->home->pages()) return QRY_OK;
    const auto there = world->home->prefetch(box);
    return there ? QRY_OK : refuse(there.error());
  });
}

qry_result qry_recorder_create(qry_context* context, const qry_recorder_info* info, qry_recorder** out) {
  const char* const function = "qry_recorder_create";
  return guarded(function, [&]() -> qry_result {
    if (!out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: out is NULL", function);
    *out = nullptr;
    if (!context) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: context is NULL", function);
    const qry_recorder_info defaults = QRY_RECORDER_INFO_INIT;
    if (!info) info = &defaults;
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_RECORDER_INFO));
    if (info->slots < 1 || info->slots > kMaxSlots || info->reserved2)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->slots is %u, info->reserved2 %u: expected 1..%u and 0",
                    function, info->slots, info->reserved2, kMaxSlots);
    QRY_PASS_REFUSAL(check_adopted(*context->state, function));
    auto fresh = std::make_unique<qry_recorder>();
    fresh->context = context->state;
    fresh->frames.resize(info->slots);
    const std::lock_guard lock(context->state->mutex);
    auto renderer = engine::Renderer::create(*context->state->device, info->slots);
    if (!renderer) return refuse(renderer.error());
    fresh->renderer = std::move(*renderer);
    *out = fresh.release();
    return QRY_OK;
  });
}

void qry_recorder_destroy(qry_recorder** recorder) {
  if (!recorder) return;
  delete *recorder;
  *recorder = nullptr;
}

qry_result qry_record_frame(qry_recorder* recorder, qry_world* world, const qry_render_info* render,
                            const qry_record_info* record) {
  const char* const function = "qry_record_frame";
  return guarded(function, [&]() -> qry_result {
    if (!recorder || !world)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, recorder ? "world" : "recorder");
    engine::View view;
    engine::RenderSettings settings;
    QRY_PASS_REFUSAL(read_render_info(function, render, view, settings));
    QRY_PASS_REFUSAL(check_struct(function, "record", record, QRY_STYPE_RECORD_INFO));
    if (!record->command_buffer || !record->image_view)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: record->%s is NULL", function,
                    record->command_buffer ? "image_view" : "command_buffer");
    if (record->safe_frame >= record->frame || record->frame < recorder->last_frame)
      return refuse(QRY_ERROR_INVALID_ARGUMENT,
                    "%s: record->frame is %llu, record->safe_frame %llu, and %llu was "
                    "recorded before: expected a frame above the safe one, and none below "
                    "that before",
                    function, static_cast<unsigned long long>(record->frame),
                    static_cast<unsigned long long>(record->safe_frame),
                    static_cast<unsigned long long>(recorder->last_frame));
    if (world->context != recorder->context)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: recorder and world are of different contexts", function);
    if (!world->shared || !world->shared->root_address())
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: the world was never published: call qry_world_publish first",
                    function);
    const auto slot = std::find_if(recorder->frames.begin(), recorder->frames.end(),
                                   [&](uint64_t frame) { return frame <= record->safe_frame; });
    if (slot == recorder->frames.end())
      return refuse(QRY_ERROR_FULL,
                    "%s: all %zu slots are in frames after the safe one, %llu: create the recorder "
                    "with more, or record fewer frames ahead",
                    function, recorder->frames.size(), static_cast<unsigned long long>(record->safe_frame));
    if (world->shared->residency() && engine::reads_grid(settings.view))
      return refuse(QRY_ERROR_UNSUPPORTED,
                    "%s: this view shows the hash grid of a whole world, and of this one some pages are not there",
                    function);
    // The frame counts from here on, even if only a part is recorded: the host may submit that part.
    *slot = recorder->last_frame = record->frame;
    world->shared->frame_completed(record->safe_frame);
    world->shared->frame_submitted(record->frame, engine::reads_grid(settings.view));
    see_from_window(render->camera, world->shared->origin(), view, settings);
    const auto recorded = engine::record_reached(
        record->command_buffer, *world->shared, view, settings, record->frame, [&]() -> Result<void> {
          return recorder->renderer->record(record->command_buffer, *world->shared, view, settings,
                                            vulkan_handle<VkImageView>(record->image_view),
                                            uint32_t(slot - recorder->frames.begin()));
        });
    return recorded ? QRY_OK : refuse(recorded.error());
  });
}
