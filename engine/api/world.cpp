// SPDX-License-Identifier: Apache-2.0
// world.cpp - worlds of the C interface: their memory, and making, opening, saving and measuring them.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "engine/api/handles.hpp"
#include "engine/home/drawing.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/store.hpp"

using namespace quarry;
using namespace quarry::c_api;

qry_world::~qry_world() {
  file.reset();  // first: what reads pages of `home` from it ends
  if (!shared && !blocks && !lent) return;
  const std::lock_guard lock(context->mutex);
  home.reset();
  blocks.reset();
  document.reset();
  lent.reset();
  shared.reset();
}

namespace quarry::c_api {

qry_result place_world(qry_world& world, bool device_needed, WorldMemory* memory, const char* function) {
  ContextState& context = *world.context;
  if (device_needed) QRY_PASS_REFUSAL(need_device(context, function));
  if (context.device) {
    auto shared = engine::SharedWorld::create(*context.device, context.sharing);
    if (!shared) return refuse(shared.error());
    world.shared = std::move(*shared);
    *memory = world.shared->memory();
  }
  if (!memory->executor && context.threads) {
    world.executor = hashgrid::make_host_executor(context.threads);
    memory->executor = world.executor.get();
  }
  if (world.max_bricks) memory->max_bricks = world.max_bricks;
  return QRY_OK;
}

qry_result share_world(qry_world& world, const char* function) {
  if (world.home && world.home->shares()) {
    if (world.shared) return QRY_OK;
    auto shared = engine::SharedWorld::create(*world.context->device, world.context->sharing);
    if (!shared) return refuse(shared.error());
    world.shared = std::move(*shared);
    return QRY_OK;
  }
  if (world.shared) return world.home ? copy_to_document(world) : qry_result(QRY_OK);
  // Makes a second world, so that a failure leaves the first unchanged.
  qry_world moved;
  moved.context = world.context;
  moved.max_bricks = world.max_bricks;
  WorldMemory memory;
  QRY_PASS_REFUSAL(place_world(moved, true, &memory, function));
  auto document = Document::create(world.document->scene(), memory);
  if (!document) return refuse(document.error());
  if (auto ok = document->restore_history(world.document->history(), world.document->history_position()); !ok)
    return refuse(ok.error());
  document->continue_from(*world.document);
  document->set_history_budget(world.document->history_budget());
  if (world.document->world().packed())
    if (auto ok = document->pack(); !ok) return refuse(ok.error());
  world.dropped_before += world.document->dropped_steps();
  world.document.emplace(std::move(*document));
  world.executor = std::move(moved.executor);
  world.shared = std::move(moved.shared);
  world.lent.reset();
  if (!world.home) return QRY_OK;
  world.home->attach(*world.document);
  return copy_to_document(world);
}

namespace {

// Makes a new empty handle and chooses its memory.
qry_result begin_world(qry_context* context, uint32_t max_bricks, const char* function,
                       std::unique_ptr<qry_world>* world, WorldMemory* memory) {
  auto fresh = std::make_unique<qry_world>();
  fresh->context = context->state;
  fresh->max_bricks = max_bricks;
  {
    const std::lock_guard lock(context->state->mutex);
    fresh->number = ++context->state->worlds_made;
    QRY_PASS_REFUSAL(place_world(*fresh, false, memory, function));
  }
  *world = std::move(fresh);
  return QRY_OK;
}

void say(const ContextState& context, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) context.say(QRY_LOG_WARNING, warning.c_str());
}

// A world file whose bricks and history may go straight to a device; nothing if they may not.
Result<std::optional<Opened>> begin_file(const std::filesystem::path& file, const qry_open_info& info,
                                         ContextState& context) {
  const bool flattens = (info.flags & QRY_OPEN_FLATTEN) != 0;
  std::vector<std::string> warnings;
  QRY_TRY_ASSIGN(auto reader, io::StoreReader::open(file, &warnings));
  if (!flattens && !DeviceHome::takes(reader.scene())) return std::optional<Opened>();
  Opened opened;
  opened.flattens = flattens;
  if (!flattens) {
    QRY_TRY_ASSIGN(opened.fingerprint, reader.fingerprint());
    opened.leaves_history = (info.flags & QRY_OPEN_WITHOUT_HISTORY) != 0;
    opened.history_position = size_t(reader.history_position());
  }
  opened.scene = reader.scene();
  opened.file = std::make_unique<io::StoreReader>(std::move(reader));
  say(context, warnings);
  return opened;
}

// Any file as a scene, its bricks in `pool` where the reader can make them there, or a mesh's in `sink`; null: in none.
Result<Scene> read_scene(const qry_open_info& info, const ContextState& context, const BrickPool* pool,
                         const DeviceSink* sink) {
  const ProgressCall call(info.progress, info.progress_user);
  std::vector<std::string> warnings;
  io::ReadOptions options;
  options.resolution = info.resolution;
  options.voxel_size = info.voxel_size;
  options.memory_limit_bytes = info.reader_memory_bytes;
  options.time_limit_s = info.reader_time_s;
  options.threads = context.threads;
  options.progress = call.progress();
  options.warnings = &warnings;
  options.pool = pool;
  options.sink = sink;
  QRY_TRY_ASSIGN(auto scene, io::read_scene(info.path, options));
  say(context, warnings);
  return scene;
}

// A mesh, to be read once its home is known. What the result's function refers to must outlive it.
Opened begin_mesh(const qry_open_info& info, const ContextState& context) {
  Opened opened;
  opened.read_mesh = [&info, &context](const DeviceSink& sink) { return read_scene(info, context, nullptr, &sink); };
  return opened;
}

// The bricks are made in `pool`, where the reader can.
Result<Opened> read_file(const qry_open_info& info, const ContextState& context, const BrickPool& pool) {
  const std::filesystem::path file(info.path);
  Opened opened;
  QRY_TRY_ASSIGN(auto format, io::format_for_reading(file));
  if (format->kind == io::FormatKind::world && !(info.flags & QRY_OPEN_FLATTEN)) {
    const ProgressCall call(info.progress, info.progress_user);
    std::vector<std::string> warnings;
    uint64_t fingerprint = 0;
    opened.leaves_history = (info.flags & QRY_OPEN_WITHOUT_HISTORY) != 0;
    QRY_TRY_ASSIGN(auto scene, io::Store::read(file, call.progress(), opened.leaves_history ? nullptr : &opened.history,
                                               &opened.history_position, &warnings, &pool, &fingerprint));
    say(context, warnings);
    opened.scene = std::move(scene);
    opened.fingerprint = fingerprint;
  } else {
    QRY_TRY_ASSIGN(opened.scene, read_scene(info, context, &pool, nullptr));
  }
  opened.flattens = (info.flags & QRY_OPEN_FLATTEN) != 0;
  return opened;
}

qry_result check_open_info(const qry_open_info& info, const char* function) {
  if (!info.path || !*info.path)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->path is %s", function, info.path ? "empty" : "NULL");
  if (const uint32_t unknown = info.flags & ~uint32_t(QRY_OPEN_FLATTEN | QRY_OPEN_PACK | QRY_OPEN_WITHOUT_HISTORY))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->flags has unknown bits 0x%x", function, unknown);
  if (info.resolution < 1 || info.resolution > 16384)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->resolution is %d, expected 1..16384", function,
                  info.resolution);
  if (!(info.voxel_size >= 0) || !std::isfinite(info.voxel_size))
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->voxel_size is %g, expected 0 or more", function,
                  info.voxel_size);
  if (!(info.reader_time_s > 0) || info.reader_memory_bytes == 0)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->reader_time_s and info->reader_memory_bytes must be above 0",
                  function);
  return QRY_OK;
}

qry_result check_world_info(const qry_world_info& info, const char* function) {
  if (info.reserved2 != 0)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_world_info.reserved2 must be 0", function);
  return QRY_OK;
}

// On the host for as long as the result is there. Of a world of which a part is in its file alone the file has it all.
Result<Scene> whole_scene(qry_world& world, const Progress& progress) {
  if (world.file && world.home->pages() && world.home->pages()->lacks_some()) {
    QRY_TRY(world.file->flush(homed(world)));
    return world.file->store().read_scene(progress, nullptr, nullptr);
  }
  return engine::whole_scene(*world.home, *world.document);
}

}  // namespace
}  // namespace quarry::c_api

qry_result qry_world_create(qry_context* context, const qry_world_info* info, qry_world** out) {
  const char* const function = "qry_world_create";
  return guarded(function, [&]() -> qry_result {
    if (!out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: out is NULL", function);
    *out = nullptr;
    if (!context) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: context is NULL", function);
    const qry_world_info defaults = QRY_WORLD_INFO_INIT;
    if (!info) info = &defaults;
    HomeInfos infos;
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_WORLD_INFO,
                                  {{QRY_STYPE_WORLD_HOME_INFO, &infos.home},
                                   {QRY_STYPE_EMULATION_INFO, &infos.emulation},
                                   {QRY_STYPE_DEVICE_BUDGET_INFO, &infos.budget},
                                   {QRY_STYPE_HOST_BUDGET_INFO, &infos.host_budget}}));
    QRY_PASS_REFUSAL(check_world_info(*info, function));
    std::unique_ptr<qry_world> world;
    WorldMemory memory;
    QRY_PASS_REFUSAL(begin_world(context, info->max_bricks, function, &world, &memory));
    Opened empty;
    empty.scene.volumes.push_back(Volume{"world", {}, {}});
    empty.scene.instances.push_back(Instance{});
    empty.scene.instances[0].name = "world";
    QRY_PASS_REFUSAL(settle_world(*world, infos, false, std::move(empty), memory, {}, function));
    *out = world.release();
    return QRY_OK;
  });
}

qry_result qry_world_open(qry_context* context, const qry_open_info* info, qry_world** out) {
  const char* const function = "qry_world_open";
  return guarded(function, [&]() -> qry_result {
    if (!out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: out is NULL", function);
    *out = nullptr;
    if (!context) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: context is NULL", function);
    const void* limits = nullptr;
    HomeInfos infos;
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_OPEN_INFO,
                                  {{QRY_STYPE_WORLD_INFO, &limits},
                                   {QRY_STYPE_WORLD_HOME_INFO, &infos.home},
                                   {QRY_STYPE_EMULATION_INFO, &infos.emulation},
                                   {QRY_STYPE_DEVICE_BUDGET_INFO, &infos.budget},
                                   {QRY_STYPE_HOST_BUDGET_INFO, &infos.host_budget}}));
    QRY_PASS_REFUSAL(check_open_info(*info, function));
    const auto* world_info = static_cast<const qry_world_info*>(limits);
    if (world_info) QRY_PASS_REFUSAL(check_world_info(*world_info, function));
    std::unique_ptr<qry_world> world;
    WorldMemory memory;
    QRY_PASS_REFUSAL(begin_world(context, world_info ? world_info->max_bricks : 0, function, &world, &memory));
    const ProgressCall call(info->progress, info->progress_user);
    const auto* const home_info = static_cast<const qry_world_home_info*>(infos.home);
    const auto read = [&]() -> Result<Opened> {
      const std::filesystem::path file(info->path);
      QRY_TRY_ASSIGN(const auto format, io::format_for_reading(file));
      const bool may =
          infos.budget_bytes() > 0 ||
          may_be_on_device(*context->state, home_info ? home_info->home : uint32_t(QRY_HOME_AUTOMATIC)).has_value();
      if (may && format->kind == io::FormatKind::world) {
        QRY_TRY_ASSIGN(auto begun, begin_file(file, *info, *context->state));
        if (begun) return std::move(*begun);
      }
      if (may && format->kind == io::FormatKind::mesh && !(info->flags & QRY_OPEN_FLATTEN))
        return begin_mesh(*info, *context->state);
      return read_file(*info, *context->state, memory.new_pool());
    };
    auto opened = read();
    if (!opened) return refuse(opened.error());
    if (opened->fingerprint) world->same_file = qry_world::SameFile{*opened->fingerprint, 0, 0};
    opened->finish_reading = [&](Opened& to) -> Result<void> {
      QRY_TRY_ASSIGN(to, read_file(*info, *context->state, memory.new_pool()));
      return {};
    };
    QRY_PASS_REFUSAL(settle_world(*world, infos, (info->flags & QRY_OPEN_PACK) != 0, std::move(*opened), memory,
                                  call.progress(), info->path));
    if (world->home && world->home->pages() && world->same_file)
      QRY_PASS_REFUSAL(attach_to(*world, info->path, false, call.progress()));
    *out = world.release();
    return QRY_OK;
  });
}

void qry_world_destroy(qry_world** world) {
  if (!world) return;
  delete *world;
  *world = nullptr;
}

qry_result qry_world_save(qry_world* world, const qry_save_info* info) {
  const char* const function = "qry_world_save";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "info", info, QRY_STYPE_SAVE_INFO));
    if (!info->path || !*info->path)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->path is %s", function, info->path ? "empty" : "NULL");
    const ProgressCall call(info->progress, info->progress_user);
    Result<Scene> whole;
    if (world->home) whole = whole_scene(*world, call.progress());
    if (!whole) return refuse(whole.error());
    if (auto saved = io::write_scene(world->home ? *whole : world->document->scene(), info->path, call.progress());
        !saved)
      return refuse(saved.error());
    return QRY_OK;
  });
}

qry_result qry_world_get_state(qry_world* world, qry_world_state* state) {
  const char* const function = "qry_world_get_state";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_WORLD_STATE));
    const World& voxels = world->document->world();
    Box3 bounds;
    if (world->home) {
      const auto found = world->home->state();
      if (!found) return refuse(found.error());
      bounds = found->store.bounds;
      state->version = world->version + found->version;
      state->voxel_count = found->store.voxels;
      state->brick_count = found->store.keys;
      state->size_bytes = found->store.world_bytes;
      state->history_length = found->history_length;
      state->history_position = found->history_position;
    } else if (world->lent) {
      const BrickMap& bricks = world->lent->bricks;
      bounds = bricks.bounds();
      state->version = world->version;
      state->voxel_count = bricks.voxel_count();
      state->brick_count = bricks.bricks().size();
      state->size_bytes = bricks.size_bytes(&world->lent->pool);
      state->history_length = state->history_position = 0;
    } else {
      bounds = voxels.bounds();
      state->version = world->version;
      state->voxel_count = voxels.voxel_count();
      state->brick_count = voxels.brick_count();
      state->size_bytes = voxels.size_bytes();
      state->history_length = world->document->step_count();
      state->history_position = world->document->step_position();
    }
    state->volume_count = uint32_t(world->document->scene().volumes.size());
    state->instance_count = uint32_t(world->document->scene().instances.size());
    const int32_t min[3] = {bounds.min.x, bounds.min.y, bounds.min.z},
                  max[3] = {bounds.max.x, bounds.max.y, bounds.max.z};
    std::memcpy(state->min, min, sizeof min);
    std::memcpy(state->max, max, sizeof max);
    return QRY_OK;
  });
}

qry_result qry_world_get_grid_stats(const qry_world* world, qry_grid_stats* stats) {
  const char* const function = "qry_world_get_grid_stats";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "stats", stats, QRY_STYPE_GRID_STATS));
    if (world->lent)
      return refuse(QRY_ERROR_UNSUPPORTED, "%s: a snapshot has no hash grid before it is first drawn", function);
    const auto found = world->home ? world->home->grid_stats() : world->document->world().stats();
    if (!found) return refuse(found.error());
    const hashgrid::Stats& s = *found;
    static_assert(sizeof stats->depth_histogram == sizeof s.depth_histogram &&
                  sizeof stats->bucket_fill == sizeof s.bucket_fill);
    stats->live = s.live;
    stats->slots = s.slots;
    stats->freed = s.freed;
    stats->overflow_live = s.overflow_live;
    stats->spilled_buckets = s.spilled_buckets;
    stats->size_bytes = s.size_bytes;
    stats->load_factor = s.load_factor;
    stats->depth_mean = s.depth_mean;
    std::memcpy(stats->depth_histogram, s.depth_histogram.data(), sizeof stats->depth_histogram);
    std::memcpy(stats->bucket_fill, s.bucket_fill.data(), sizeof stats->bucket_fill);
    stats->depth_p50 = s.depth_p50;
    stats->depth_p99 = s.depth_p99;
    stats->depth_max = s.depth_max;
    stats->page_count = s.page_count;
    stats->fullest_page_live = s.fullest_page_live;
    stats->reserved2 = 0;
    return QRY_OK;
  });
}
