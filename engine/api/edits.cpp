// SPDX-License-Identifier: Apache-2.0
// edits.cpp - edits and history of the C interface, at once or by tickets, and where a world is at home.
#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/api/handles.hpp"
#include "engine/home/choice.hpp"
#include "engine/home/drawing.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/device/executor.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {

qry_result check_volume(const qry_world& world, uint32_t volume, const char* function) {
  QRY_PASS_REFUSAL(check_writable(world, function));
  const size_t count = world.document->scene().volumes.size();
  if (volume < count) return QRY_OK;
  return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: volume is %u, but the world has %zu", function, volume, count);
}

qry_result finish(qry_world& world, const Result<const UndoRecord*>& done, uint64_t* changed) {
  if (!done) return refuse(done.error());
  const uint64_t voxels = *done ? (*done)->voxels_changed : 0;
  if (voxels) ++world.version;
  if (changed) *changed = voxels;
  return QRY_OK;
}

qry_result finish(qry_world& world, const Result<uint64_t>& ticket, bool is_exchange, uint64_t* changed) {
  const auto change = world.home->wait(ticket);
  if (!change) return refuse(change.error());
  if (changed) *changed = change->voxels;
  if (is_exchange && !change->step) return refuse(QRY_NOTHING_TO_DO, "the history has no step to undo or redo");
  return QRY_OK;
}

qry_result copy_to_document(qry_world& world) {
  const auto version = version_of(world);
  if (!version) return refuse(version.error());
  if (*version == world.copied_version) return QRY_OK;
  if (auto ok = engine::copy_to_document(*world.home, *world.document); !ok) return refuse(ok.error());
  world.copied_version = *version;
  return QRY_OK;
}

engine::RenderedWorld rendered(qry_world& world) {
  if (world.home && world.home->shares())
    return engine::rendered_world(*world.shared, *world.document, *world.home, *world.blocks);
  return engine::rendered_world(*world.shared, *world.document);
}

Result<engine::RenderedWorld> drawn_whole(qry_world& world) {
  if (!world.home || !world.home->shares() || !world.home->pages() || !world.home->pages()->lacks_some())
    return rendered(world);
  return engine::drawn_in_parts(*world.shared, *world.document, *world.home, *world.blocks, *world.context->device);
}

Result<uint64_t> version_of(const qry_world& world) {
  if (!world.home) return world.version;
  QRY_TRY_ASSIGN(const uint64_t there, world.home->version());
  return world.version + there;
}

namespace {

static_assert(uint32_t(engine::Home::automatic) == QRY_HOME_AUTOMATIC &&
              uint32_t(engine::Home::host) == QRY_HOME_HOST && uint32_t(engine::Home::device) == QRY_HOME_DEVICE &&
              uint32_t(engine::Home::emulated) == QRY_HOME_EMULATED);

constexpr const char kNotTimed[] =
    "%s: the world is at home on the host (qry_world_get_home), where edits have no stages to be timed";

// What calls the caller's function before each call of an emulated device.
device::Emulation emulation_of(const qry_emulation_info* info) {
  device::Emulation emulation;
  if (!info || !info->before) return emulation;
  emulation.before = [before = info->before, user = info->user](device::DeviceCall call) {
    static_assert(uint32_t(device::DeviceCall::launch) == QRY_EMULATED_LAUNCH &&
                  uint32_t(device::DeviceCall::copy) == QRY_EMULATED_COPY &&
                  uint32_t(device::DeviceCall::allocation) == QRY_EMULATED_ALLOCATION &&
                  uint32_t(device::DeviceCall::wait) == QRY_EMULATED_WAIT);
    switch (before(user, uint32_t(call))) {
      case QRY_OK: return device::Fault::none;
      case QRY_ERROR_OUT_OF_MEMORY: return device::Fault::no_memory;
      default: return device::Fault::lost;
    }
  };
  return emulation;
}

}  // namespace

Result<void> may_be_on_device(const ContextState& context, uint32_t home) {
  if (home == QRY_HOME_AUTOMATIC && context.device_when == QRY_DEVICE_NEVER)
    return fail(ErrorCode::unsupported, "the context uses no device (QRY_DEVICE_NEVER)");
  return engine::may_be_on_device(engine::Home(home));
}

qry_result settle_world(qry_world& world, const HomeInfos& infos, bool packed, Opened opened, WorldMemory& memory,
                        const Progress& progress, const char* function) {
  const auto* const info = static_cast<const qry_world_home_info*>(infos.home);
  const auto* const emulation = static_cast<const qry_emulation_info*>(infos.emulation);
  const uint32_t home = info ? info->home : uint32_t(QRY_HOME_AUTOMATIC);
  if (info && info->reserved2 != 0)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_world_home_info.reserved2 must be 0", function);
  if (home > QRY_HOME_EMULATED)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_world_home_info.home is %u, expected a QRY_HOME_ number",
                  function, home);
  if (emulation && home != QRY_HOME_EMULATED)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_emulation_info needs the home QRY_HOME_EMULATED, not %u",
                  function, home);
  ContextState& context = *world.context;
  const auto refused = [&](const Error& error) {
    return refuse(result_of(error.code), "%s: %s", function, error.message.c_str());
  };
  const uint64_t budget_bytes = infos.budget_bytes();
  if (home != QRY_HOME_HOST || budget_bytes) {
    const std::lock_guard lock(context.mutex);
    std::optional<Error> wrong;  // with the file, which is no matter of homes
    bool in_parts = false;       // opened without its voxels, which its file has
    const auto settle = [&](engine::Home asked) -> Result<void> {
      using enum engine::Home;
      if (asked != host) QRY_TRY(may_be_on_device(context, uint32_t(asked)));
      if (asked != emulated && !context.device && context.device_when != QRY_DEVICE_NEVER &&
          need_device(context, function) != QRY_OK && asked == automatic)
        return fail(ErrorCode::unsupported, "there is no Vulkan device");
      QRY_TRY_ASSIGN(auto memory_there,
                     engine::home_memory(asked, context.device.get(), context.sharing, emulation_of(emulation)));
      world.blocks = std::move(memory_there.blocks);
      if (budget_bytes && opened.file && !opened.flattens) {
        // Its file has all of it, and its history.
        in_parts = true;
        opened.leaves_history = true;
        opened.file.reset();
      }
      if (opened.read_mesh) {
        QRY_TRY_ASSIGN(world.home, DeviceHome::create(std::move(memory_there.executor), opened.read_mesh, opened.scene,
                                                      wrong, progress, world.max_bricks, context.threads));
      } else {
        QRY_TRY_ASSIGN(world.home, DeviceHome::create(std::move(memory_there.executor),
                                                      {opened.scene, opened.history,
                                                       opened.leaves_history ? 0 : opened.history_position,
                                                       opened.file.get(), progress, opened.flattens,
                                                       opened.file && !opened.flattens && !opened.leaves_history},
                                                      world.max_bricks, context.threads));
      }
      const auto ask_frames = [&world](bool in_rounds) -> std::optional<device::Store::Frames> {
        if (!world.shared) return std::nullopt;
        const device::Store::Frames frames = world.shared->frames();
        if (world.published_for_frames) return in_rounds ? std::optional(frames) : std::nullopt;
        // Pictures are done when their calls return.
        return device::Store::Frames{frames.recorded, frames.recorded};
      };
      world.home->set_frames([ask_frames] { return ask_frames(false); });
      if (budget_bytes) {
        QRY_TRY(world.home->set_budget(budget_bytes, infos.host_bytes()));
        world.home->pages()->set_frames(ask_frames);
      }
      return packed ? world.home->pack() : Result<void>();
    };
    auto settled = settle(engine::Home(home));
    world.home_kind = home == QRY_HOME_AUTOMATIC ? uint32_t(QRY_HOME_DEVICE) : home;
    // What keeps to a part of its home's memory does so on the host, too.
    if (!settled && home == QRY_HOME_AUTOMATIC && budget_bytes && !in_parts &&
        settled.error().code == ErrorCode::unsupported) {
      world.home_kind = QRY_HOME_HOST;
      settled = settle(engine::Home::host);
    }
    if (settled) {
      if (opened.flattens) opened.scene = engine::as_one_volume(std::move(opened.scene));
      if (const auto& flattened = world.home->flattened()) world.flattened = {flattened->made_ms, flattened->room_ms};
      opened.scene.volumes[0].bricks.clear();
      opened.history.clear();
      memory.pool.reset();  // in which the bricks were read
    } else {
      const bool on_host = std::exchange(world.home_kind, uint32_t(QRY_HOME_HOST)) == QRY_HOME_HOST;
      world.home.reset();  // it may have had no room to be packed
      if (in_parts) return refuse(settled.error());
      world.blocks.reset();
      if (wrong) return refuse(*wrong);
      // What is wrong with the file is no matter of homes.
      if (opened.file && engine::fails_at_every_home(settled.error().code)) return refuse(settled.error());
      if (opened.flattens && settled.error().code == ErrorCode::out_of_bounds) return refused(settled.error());
      // Several volumes are the host's as a whole.
      if (on_host && settled.error().code != ErrorCode::unsupported) return refused(settled.error());
      if (!on_host && home != QRY_HOME_AUTOMATIC)
        return refuse(result_of(settled.error().code), "%s: no home on a device: %s", function,
                      settled.error().message.c_str());
      context.say(QRY_LOG_INFO, ("a world is at home on the host: " + settled.error().message).c_str());
    }
  }
  if (!world.home && opened.waits()) {
    opened.file.reset();
    const auto finish_reading = std::move(opened.finish_reading);  // which replaces all of `opened`
    if (const auto read = finish_reading(opened); !read) return refuse(read.error());
  }
  const auto begin = std::chrono::steady_clock::now();
  if (!world.home && opened.flattens) {
    auto flat = engine::flattened_scene(std::move(opened.scene), memory.new_pool());
    if (!flat) return refused(flat.error());
    opened.scene = std::move(*flat);
  }
  auto document = Document::create(std::move(opened.scene), memory, progress);
  if (!world.home && opened.flattens)
    world.flattened = {std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(), 0};
  if (!document) return refused(document.error());
  if (opened.leaves_history) {
    if (world.home) world.home->begin_after(opened.history_position);
    else document->begin_after(opened.history_position);
  } else if (auto ok = document->restore_history(std::move(opened.history), opened.history_position); !ok) {
    return refused(ok.error());
  }
  if (packed && !world.home)
    if (auto ok = document->pack(); !ok) return refused(ok.error());
  world.document.emplace(std::move(*document));
  if (world.home) world.home->attach(*world.document);
  return QRY_OK;
}

namespace {

qry_result finish_step(qry_world& world, const Result<std::span<const UndoRecord>>& step, uint64_t* changed) {
  if (!step) return refuse(step.error());
  uint64_t voxels = 0;
  for (const UndoRecord& record : *step) voxels += record.voxels_changed;
  ++world.version;
  if (changed) *changed = voxels;
  return QRY_OK;
}

qry_result read_edit(const qry_world& world, const qry_edit* edit, const char* function, Edit* out) {
  QRY_PASS_REFUSAL(check_struct(function, "edit", edit, QRY_STYPE_EDIT));
  QRY_PASS_REFUSAL(check_volume(world, edit->volume, function));
  if (edit->reserved2 != 0) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->reserved2 must be 0", function);
  if (edit->shape > QRY_SHAPE_CONNECTED)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->shape is %u, expected a QRY_SHAPE_ number", function,
                  edit->shape);
  if (edit->mode > QRY_MODE_FILL)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->mode is %u, expected a QRY_MODE_ number", function,
                  edit->mode);
  const bool empty_allowed = edit->mode == QRY_MODE_REPLACE || edit->mode == QRY_MODE_REMOVE;
  if (edit->material > 255 || (edit->material == 0 && !empty_allowed))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->material is %u, expected %d..255 in this mode", function,
                  edit->material, empty_allowed ? 0 : 1);
  if (edit->mode == QRY_MODE_REPLACE && (edit->from < 1 || edit->from > 255))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->from is %u, expected 1..255", function, edit->from);
  const bool has_radius = edit->shape == QRY_SHAPE_SPHERE || edit->shape == QRY_SHAPE_LINE;
  if (has_radius && !(edit->radius >= 0 && edit->radius <= 4096))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: edit->radius is %g, expected 0..4096", function, edit->radius);
  Edit inner;
  inner.shape = Shape(edit->shape);
  inner.mode = Mode(edit->mode);
  inner.a = {edit->a[0], edit->a[1], edit->a[2]};
  inner.b = {edit->b[0], edit->b[1], edit->b[2]};
  inner.radius = has_radius ? edit->radius : 0;
  inner.material = uint8_t(edit->material);
  inner.from = edit->mode == QRY_MODE_REPLACE ? uint8_t(edit->from) : uint8_t(0);
  *out = inner;
  return QRY_OK;
}

// A step that only the file has to which the world is attached.
Result<bool> exchange_of_file(qry_world& world, bool forward, uint64_t* changed) {
  if (!world.file) return false;
  if (!forward) return world.file->recall_older(homed(world));
  QRY_TRY_ASSIGN(const auto redone, world.file->redo_newer(homed(world)));
  if (!redone) return false;
  if (!world.home) ++world.version;
  if (changed) *changed = *redone;
  return true;
}

qry_result exchange(qry_world* world, bool forward, const char* function, uint64_t* changed) {
  if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
  const auto at_end = [&]() -> Result<bool> {
    if (!world->home) return !(forward ? world->document->can_redo() : world->document->can_undo());
    QRY_TRY_ASSIGN(const bool has_step, world->home->has_step(!forward));
    return !has_step;
  };
  if (world->file) {
    const auto ends = at_end();
    if (!ends) return refuse(ends.error());
    const auto recalled = *ends ? exchange_of_file(*world, forward, changed) : Result<bool>(false);
    if (!recalled) return refuse(recalled.error());
    if (*recalled && forward) return QRY_OK;
  }
  if (world->home) {
    const qry_result result = finish(*world, forward ? world->home->redo() : world->home->undo(), true, changed);
    if (result != QRY_NOTHING_TO_DO) return result;
  } else if (forward ? world->document->can_redo() : world->document->can_undo()) {
    return finish_step(*world, forward ? world->document->redo() : world->document->undo(), changed);
  }
  if (changed) *changed = 0;
  return refuse(QRY_NOTHING_TO_DO, "%s: the history has no step to %s", function, forward ? "redo" : "undo");
}

// Of a change that the host has made.
void keep_answer(qry_world& world, uint64_t changed, uint64_t* ticket) {
  constexpr size_t kKept = 4096;
  world.answers.push_back({changed, world.version, true});
  if (world.answers.size() > kKept) world.answers.pop_front();
  *ticket = ++world.last_ticket;
}

qry_result submit_exchange(qry_world* world, bool forward, const char* function, uint64_t* ticket) {
  return guarded(function, [&]() -> qry_result {
    if (!world || !ticket)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "ticket" : "world");
    if (world->home) {
      // Of a world with a budget the next step is often in its file.
      if (world->file && world->home->pages()) {
        const auto has_step = world->home->has_step(!forward);
        if (!has_step) return refuse(has_step.error());
        const auto recalled = *has_step ? Result<bool>(false) : exchange_of_file(*world, forward, nullptr);
        if (!recalled) return refuse(recalled.error());
        *ticket = world->home->last_ticket();
        if (*recalled && forward) return QRY_OK;
      }
      const auto launched = forward ? world->home->redo() : world->home->undo();
      if (!launched) return refuse(launched.error());
      *ticket = *launched;
      return QRY_OK;
    }
    uint64_t changed = 0;
    const qry_result result = exchange(world, forward, function, &changed);
    if (result < 0) return result;
    keep_answer(*world, changed, ticket);
    return QRY_OK;
  });
}

}  // namespace
}  // namespace quarry::c_api

qry_result qry_world_edit(qry_world* world, const qry_edit* edit, uint64_t* changed) {
  const char* const function = "qry_world_edit";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    Edit inner;
    QRY_PASS_REFUSAL(read_edit(*world, edit, function, &inner));
    if (world->home) return finish(*world, world->home->edit(inner), false, changed);
    return finish(*world, world->document->apply(edit->volume, inner, world->context->threads), changed);
  });
}

qry_result qry_world_undo(qry_world* world, uint64_t* changed) {
  const char* const function = "qry_world_undo";
  return guarded(function, [&]() -> qry_result { return exchange(world, false, function, changed); });
}

qry_result qry_world_redo(qry_world* world, uint64_t* changed) {
  const char* const function = "qry_world_redo";
  return guarded(function, [&]() -> qry_result { return exchange(world, true, function, changed); });
}

qry_result qry_world_submit_edit(qry_world* world, const qry_edit* edit, uint64_t* ticket) {
  const char* const function = "qry_world_submit_edit";
  return guarded(function, [&]() -> qry_result {
    if (!world || !ticket)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "ticket" : "world");
    Edit inner;
    QRY_PASS_REFUSAL(read_edit(*world, edit, function, &inner));
    if (world->home) {
      const auto launched = world->home->edit(inner);
      if (!launched) return refuse(launched.error());
      *ticket = *launched;
      return QRY_OK;
    }
    uint64_t changed = 0;
    QRY_PASS_REFUSAL(finish(*world, world->document->apply(edit->volume, inner, world->context->threads), &changed));
    keep_answer(*world, changed, ticket);
    return QRY_OK;
  });
}

qry_result qry_world_submit_undo(qry_world* world, uint64_t* ticket) {
  return submit_exchange(world, false, "qry_world_submit_undo", ticket);
}

qry_result qry_world_submit_redo(qry_world* world, uint64_t* ticket) {
  return submit_exchange(world, true, "qry_world_submit_redo", ticket);
}

qry_result qry_world_await(qry_world* world, uint64_t ticket, uint64_t* changed, uint64_t* version) {
  const char* const function = "qry_world_await";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    DeviceHome::Change change;
    if (world->home) {
      const auto answer = world->home->wait(ticket);
      if (!answer) return refuse(answer.error());
      change = *answer;
      change.version += world->version;
    } else {
      const uint64_t first = world->last_ticket - world->answers.size() + 1;
      if (ticket < first || ticket > world->last_ticket)
        return refuse(QRY_ERROR_INVALID_ARGUMENT,
                      "%s: no change of this world has the ticket %llu, or it is older than the last 4096", function,
                      static_cast<unsigned long long>(ticket));
      change = world->answers[size_t(ticket - first)];
    }
    if (changed) *changed = change.voxels;
    if (version) *version = change.version;
    return QRY_OK;
  });
}

qry_result qry_world_get_home(const qry_world* world, qry_home_state* state) {
  const char* const function = "qry_world_get_home";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    const void *flatten_asked = nullptr, *hand_over_asked = nullptr, *paging_asked = nullptr, *cache_asked = nullptr;
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_HOME_STATE,
                                  {{QRY_STYPE_FLATTEN_STATE, &flatten_asked},
                                   {QRY_STYPE_HAND_OVER_STATE, &hand_over_asked},
                                   {QRY_STYPE_PAGING_STATE, &paging_asked},
                                   {QRY_STYPE_PAGE_CACHE_STATE, &cache_asked}}));
    DeviceHome::State there;
    if (world->home) {
      auto found = world->home->state();
      if (!found) return refuse(found.error());
      there = *found;
    }
    state->home = world->home_kind;
    state->brick_count = there.store.bricks;
    state->device_bytes = there.store.size_bytes;
    state->bytes_to_device = there.traffic.to_device_bytes;
    state->bytes_from_device = there.traffic.from_device_bytes;
    state->in_place = !world->home || world->home->shares() ? 1 : 0;
    state->reserved2 = 0;
    if (hand_over_asked)
      static_cast<qry_hand_over_state*>(const_cast<void*>(hand_over_asked))->hand_overs =
          world->blocks ? world->blocks->hand_overs() : 0;
    engine::ResidentPages::Counters counters;
    if ((paging_asked || cache_asked) && world->home && world->home->pages())
      counters = world->home->pages()->counters();
    if (cache_asked) {
      auto* const cache = static_cast<qry_page_cache_state*>(const_cast<void*>(cache_asked));
      cache->budget_bytes = counters.host.most_bytes;
      cache->bytes = counters.host.bytes;
      cache->pages = counters.host.pages;
      cache->read_pages = counters.host.read;
      cache->found_pages = counters.from_host;
      std::ranges::copy(counters.host_waits, cache->waits);
      cache->longest_wait_ms = counters.longest_host_wait_ms;
    }
    if (paging_asked) {
      auto* const paging = static_cast<qry_paging_state*>(const_cast<void*>(paging_asked));
      paging->budget_bytes = counters.budget_bytes;
      paging->pages = counters.pages;
      paging->absent_pages = counters.absent;
      paging->absent_bricks = counters.bricks;
      paging->brought_pages = counters.brought;
      paging->left_pages = counters.left;
      paging->flushes = counters.flushes;
      std::ranges::copy(counters.waits, paging->waits);
    }
    if (flatten_asked) {
      auto* const flatten = static_cast<qry_flatten_state*>(const_cast<void*>(flatten_asked));
      const auto its = world->flattened.value_or(qry_world::Flattened{0, 0});
      flatten->flattened = world->flattened ? 1 : 0;
      flatten->reserved2 = 0;
      flatten->ms = its.ms;
      flatten->room_ms = its.room_ms;
    }
    return QRY_OK;
  });
}

qry_result qry_world_time_edits(qry_world* world, uint32_t on) {
  const char* const function = "qry_world_time_edits";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (!world->home) return refuse(QRY_ERROR_UNSUPPORTED, kNotTimed, function);
    world->home->time_edits(on != 0);
    return QRY_OK;
  });
}

qry_result qry_world_list_edit_stages(const qry_world* world, qry_edit_stage* stages, uint64_t* count) {
  const char* const function = "qry_world_list_edit_stages";
  return guarded(function, [&]() -> qry_result {
    if (!world || !count)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "count" : "world");
    if (*count && !stages)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: stages is NULL, but *count is not 0", function);
    if (!world->home) return refuse(QRY_ERROR_UNSUPPORTED, kNotTimed, function);
    const auto times = world->home->edit_times();
    if (!times) return refuse(times.error());
    static_assert(size_t(device::StepId::count) < 128, "what quarry.h says");
    const auto found = times->steps();
    const uint64_t room = *count;
    for (size_t i = 0; i < std::min<uint64_t>(room, found.size()); ++i)
      stages[i] = {found[i].name, found[i].launches, found[i].ms};
    *count = found.size();
    if (found.size() > room)
      return refuse(QRY_INCOMPLETE, "%s: room for %llu stages, but there are %zu", function,
                    static_cast<unsigned long long>(room), found.size());
    return QRY_OK;
  });
}

qry_result qry_world_reserve(qry_world* world, uint32_t bricks, uint32_t not_full) {
  const char* const function = "qry_world_reserve";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (!world->home) return QRY_OK;
    if (auto ok = world->home->reserve(bricks, not_full); !ok) return refuse(ok.error());
    return QRY_OK;
  });
}
