// SPDX-License-Identifier: Apache-2.0
// quarry.hpp - quarry.h for C++17: handles that free themselves and results that carry their message. It is header only
// and throws no exceptions. Every call is the C call of the same name. Its contract (threads, units, errors) is in
// quarry.h.
//
//   qry::Result<qry::Context> context = qry::Context::create();
//   if (!context) return report(context.message());
//   qry::Result<qry::World> world = context->create_world();
//
// A Context may be destroyed before its Worlds: the library keeps what they need (quarry.h, "Ownership").
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "quarry.h"

namespace qry {

// The result of a call. ok() is true for 0 and for positive codes (success with a remark). Otherwise message() says
// why.
class Status {
 public:
  Status() = default;
  explicit Status(qry_result code) : code_(code) {
    if (code != QRY_OK) message_ = qry_last_error();
  }
  bool ok() const { return code_ >= 0; }
  explicit operator bool() const { return ok(); }
  qry_result code() const { return code_; }
  const char* name() const { return qry_result_name(code_); }
  const std::string& message() const { return message_; }

 private:
  qry_result code_ = QRY_OK;
  std::string message_;
};

// A Status, and a T that is valid only if the status is ok().
template <class T>
class Result : public Status {
 public:
  Result(qry_result code, T value) : Status(code), value_(std::move(value)) {}
  T& operator*() & { return value_; }
  const T& operator*() const& { return value_; }
  T&& operator*() && { return std::move(value_); }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_;
};

// Records frames into the host engine's command buffers (World::record).
class Recorder {
 public:
  Recorder() = default;
  explicit Recorder(qry_recorder* handle) : handle_(handle) {}
  Recorder(Recorder&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Recorder& operator=(Recorder&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Recorder() { qry_recorder_destroy(&handle_); }
  qry_recorder* get() const { return handle_; }

 private:
  qry_recorder* handle_ = nullptr;
};

// A path-traced picture that is gathered over calls of World::trace_paths.
class Paths {
 public:
  Paths() = default;
  explicit Paths(qry_paths* handle) : handle_(handle) {}
  Paths(Paths&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Paths& operator=(Paths&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Paths() { qry_paths_destroy(&handle_); }
  qry_paths* get() const { return handle_; }

  Result<qry_paths_state> state() const {
    qry_paths_state state = QRY_PATHS_STATE_INIT;
    const qry_result code = qry_paths_get_state(handle_, &state);
    return {code, state};
  }
  // RGBA8, row 0 on top.
  Result<std::vector<uint8_t>> color() const { return read<uint8_t>(QRY_LAYER_COLOR, 4); }
  // Linear, 4 floats a pixel.
  Result<std::vector<float>> radiance() const { return read<float>(QRY_LAYER_RADIANCE, 4); }
  // 3 floats a pixel, 3 floats and 1 float. They need QRY_PATHS_LAYERS.
  Result<std::vector<float>> albedo() const { return read<float>(QRY_LAYER_ALBEDO, 3); }
  Result<std::vector<float>> normals() const { return read<float>(QRY_LAYER_NORMAL, 3); }
  Result<std::vector<float>> depth() const { return read<float>(QRY_LAYER_DEPTH, 1); }

 private:
  template <class T>
  Result<std::vector<T>> read(uint32_t layer, size_t channels) const {
    qry_paths_state state = QRY_PATHS_STATE_INIT;
    const qry_result asked = qry_paths_get_state(handle_, &state);
    if (asked != QRY_OK) return {asked, {}};
    std::vector<T> values(size_t(state.width) * state.height * channels);
    T none{};  // no picture: the call reports that, but needs an address
    const qry_result code =
        qry_paths_read(handle_, layer, values.empty() ? &none : values.data(), values.size() * sizeof(T), 0);
    return {code, std::move(values)};
  }

  qry_paths* handle_ = nullptr;
};

class World {
 public:
  World() = default;
  explicit World(qry_world* handle) : handle_(handle) {}
  World(World&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  World& operator=(World&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~World() { qry_world_destroy(&handle_); }
  qry_world* get() const { return handle_; }

  Status save(const char* path) {
    qry_save_info info = QRY_SAVE_INFO_INIT;
    info.path = path;
    return Status(qry_world_save(handle_, &info));
  }
  Status attach(const char* path) { return Status(qry_world_attach(handle_, path)); }
  Status flush() { return Status(qry_world_flush(handle_)); }
  Status detach() { return Status(qry_world_detach(handle_)); }
  Result<World> snapshot() const {
    qry_world* handle = nullptr;
    const qry_result code = qry_world_snapshot(handle_, &handle);
    return {code, World(handle)};
  }
  // Returns how many voxels differ from before.
  Result<uint64_t> set_voxels(const int32_t* xyz, const uint8_t* materials, uint64_t count, uint32_t volume = 0) {
    uint64_t changed = 0;
    const qry_result code = qry_world_set_voxels(handle_, volume, xyz, materials, count, &changed);
    return {code, changed};
  }
  Status get_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count) const {
    return Status(qry_world_get_voxels(handle_, xyz, materials, count));
  }
  Result<uint64_t> edit(const qry_edit& edit) {
    uint64_t changed = 0;
    const qry_result code = qry_world_edit(handle_, &edit, &changed);
    return {code, changed};
  }
  // Each returns how many voxels differ from before. `info`, which may be null, is told how far it is.
  Result<uint64_t> combine(const World& other, uint32_t mode, uint32_t volume = 0,
                           const qry_progress_info* info = nullptr) {
    uint64_t changed = 0;
    const qry_result code = qry_world_combine(handle_, volume, other.handle_, mode, info, &changed);
    return {code, changed};
  }
  Result<uint64_t> dilate(uint32_t neighbours, uint32_t steps = 1, uint32_t volume = 0,
                          const qry_progress_info* info = nullptr) {
    uint64_t changed = 0;
    const qry_result code = qry_world_dilate(handle_, volume, neighbours, steps, info, &changed);
    return {code, changed};
  }
  Result<uint64_t> erode(uint32_t neighbours, uint32_t steps = 1, uint32_t volume = 0,
                         const qry_progress_info* info = nullptr) {
    uint64_t changed = 0;
    const qry_result code = qry_world_erode(handle_, volume, neighbours, steps, info, &changed);
    return {code, changed};
  }
  Result<uint64_t> keep_parts(uint32_t neighbours, uint64_t most, uint64_t least, uint32_t volume = 0,
                              const qry_progress_info* info = nullptr) {
    uint64_t changed = 0;
    const qry_result code = qry_world_keep_parts(handle_, volume, neighbours, most, least, info, &changed);
    return {code, changed};
  }
  // The largest first.
  Result<std::vector<qry_part>> find_parts(uint32_t neighbours, const qry_progress_info* info = nullptr) const {
    std::vector<qry_part> parts(64);
    uint64_t count = parts.size();
    qry_result code = qry_world_find_parts(handle_, neighbours, info, parts.data(), &count);
    if (code == QRY_INCOMPLETE) {
      parts.resize(size_t(count));
      code = qry_world_find_parts(handle_, neighbours, info, parts.data(), &count);
    }
    parts.resize(code < 0 ? 0 : size_t(count));
    return {code, std::move(parts)};
  }
  Result<uint64_t> undo() {
    uint64_t changed = 0;
    const qry_result code = qry_world_undo(handle_, &changed);
    return {code, changed};
  }
  Result<uint64_t> redo() {
    uint64_t changed = 0;
    const qry_result code = qry_world_redo(handle_, &changed);
    return {code, changed};
  }
  Result<qry_world_state> state() {
    qry_world_state state = QRY_WORLD_STATE_INIT;
    const qry_result code = qry_world_get_state(handle_, &state);
    return {code, state};
  }
  Result<qry_grid_stats> grid_stats() const {
    qry_grid_stats stats = QRY_GRID_STATS_INIT;
    const qry_result code = qry_world_get_grid_stats(handle_, &stats);
    return {code, stats};
  }
  Result<qry_world_sums> sums() const {
    qry_world_sums sums = QRY_WORLD_SUMS_INIT;
    const qry_result code = qry_world_get_sums(handle_, &sums);
    return {code, sums};
  }
  Result<qry_comparison> compare(const World& other, uint32_t flags = 0) const {
    qry_comparison comparison = QRY_COMPARISON_INIT;
    const qry_result code = qry_world_compare(handle_, other.handle_, flags, &comparison);
    return {code, comparison};
  }
  Result<qry_memory_state> memory() const {
    qry_memory_state state = QRY_MEMORY_STATE_INIT;
    const qry_result code = qry_world_get_memory(handle_, &state);
    return {code, state};
  }
  Status set_history_budget(uint64_t bytes) { return Status(qry_world_set_history_budget(handle_, bytes)); }
  Result<qry_memory_history> history() const {
    qry_memory_history history = QRY_MEMORY_HISTORY_INIT;
    qry_memory_state state = QRY_MEMORY_STATE_INIT;
    state.next = &history;
    const qry_result code = qry_world_get_memory(handle_, &state);
    return {code, history};
  }
  Status time_edits(bool on) { return Status(qry_world_time_edits(handle_, on ? 1 : 0)); }
  // Of the last edit.
  Result<std::vector<qry_edit_stage>> edit_stages() const {
    std::vector<qry_edit_stage> stages(128);
    uint64_t count = stages.size();
    const qry_result code = qry_world_list_edit_stages(handle_, stages.data(), &count);
    stages.resize(code < 0 ? 0 : size_t(count));
    return {code, std::move(stages)};
  }
  Status pack() { return Status(qry_world_pack(handle_)); }
  Status unpack() { return Status(qry_world_unpack(handle_)); }
  Status trim() { return Status(qry_world_trim(handle_)); }
  Result<qry_camera> fit_camera(double vertical_fov_degrees, double aspect, double azimuth_degrees,
                                double elevation_degrees) {
    qry_camera camera{};
    const qry_result code =
        qry_world_fit_camera(handle_, vertical_fov_degrees, aspect, azimuth_degrees, elevation_degrees, &camera);
    return {code, camera};
  }
  // RGBA8, row 0 on top.
  Result<std::vector<uint8_t>> render(const qry_render_info& info) {
    std::vector<uint8_t> rgba(size_t(info.width) * info.height * 4);
    const qry_result code = qry_world_render(handle_, &info, rgba.data(), rgba.size(), 0);
    return {code, std::move(rgba)};
  }
  Result<qry_published> publish() {
    qry_published published = QRY_PUBLISHED_INIT;
    const qry_result code = qry_world_publish(handle_, &published);
    return {code, published};
  }
  Status record(Recorder& recorder, const qry_render_info& render, const qry_record_info& record) {
    return Status(qry_record_frame(recorder.get(), handle_, &render, &record));
  }
  Status frames_done(uint64_t safe_frame) { return Status(qry_world_frames_done(handle_, safe_frame)); }
  Result<qry_stream_state> stream(uint64_t max_bytes = uint64_t(4) << 20) {
    qry_stream_info info = QRY_STREAM_INFO_INIT;
    info.max_bytes = max_bytes;
    qry_stream_state state = QRY_STREAM_STATE_INIT;
    const qry_result code = qry_world_stream(handle_, &info, &state);
    return {code, state};
  }
  Status prefetch(const int32_t min[3], const int32_t max[3]) { return Status(qry_world_prefetch(handle_, min, max)); }
  Status trace_paths(Paths& paths, const qry_paths_info& info) {
    return Status(qry_world_trace_paths(handle_, paths.get(), &info));
  }
  Result<qry_hit> trace(const qry_ray& ray) {
    qry_hit hit{};
    const qry_result code = qry_world_trace(handle_, &ray, 1, &hit);
    return {code, hit};
  }

 private:
  qry_world* handle_ = nullptr;
};

class Context {
 public:
  Context() = default;
  explicit Context(qry_context* handle) : handle_(handle) {}
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Context() { qry_context_destroy(&handle_); }
  qry_context* get() const { return handle_; }

  static Result<Context> create(const qry_context_info& info = QRY_CONTEXT_INFO_INIT) {
    qry_context* handle = nullptr;
    const qry_result code = qry_context_create(QRY_ABI_VERSION, &info, &handle);
    return {code, Context(handle)};
  }
  Result<qry_device_state> device() {
    qry_device_state state = QRY_DEVICE_STATE_INIT;
    const qry_result code = qry_context_get_device(handle_, &state);
    return {code, state};
  }
  Result<World> create_world(const qry_world_info& info = QRY_WORLD_INFO_INIT) {
    qry_world* handle = nullptr;
    const qry_result code = qry_world_create(handle_, &info, &handle);
    return {code, World(handle)};
  }
  Result<Paths> create_paths() {
    qry_paths* handle = nullptr;
    const qry_result code = qry_paths_create(handle_, &handle);
    return {code, Paths(handle)};
  }
  Result<Recorder> create_recorder(const qry_recorder_info& info = QRY_RECORDER_INFO_INIT) {
    qry_recorder* handle = nullptr;
    const qry_result code = qry_recorder_create(handle_, &info, &handle);
    return {code, Recorder(handle)};
  }
  Result<World> open_world(const qry_open_info& info) {
    qry_world* handle = nullptr;
    const qry_result code = qry_world_open(handle_, &info, &handle);
    return {code, World(handle)};
  }
  Result<World> open_world(const char* path) {
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.path = path;
    return open_world(info);
  }

 private:
  qry_context* handle_ = nullptr;
};

}  // namespace qry
