// SPDX-License-Identifier: Apache-2.0
// handles.hpp - the shared code of the C interface's files: the handles' contents, the guard that no exception passes,
// the checks. It is private to engine/api/*.cpp. Those files are a thin layer over Document, io, Device, SharedWorld
// and Renderer: a C++ caller could do all their work with these. The contract is in quarry.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "engine/api/quarry.h"
#include "engine/home/device_home.hpp"
#include "engine/home/followed_file.hpp"
#include "engine/pictures/path_tracer.hpp"
#include "engine/render/ray_marcher.hpp"
#include "engine/sharing/device_blocks.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::c_api {

using engine::DeviceHome;

// The part of a context that its worlds need. It lives until the last of them is gone.
struct ContextState {
  qry_log_function log = nullptr;
  void* log_user = nullptr;
  uint32_t device_when = QRY_DEVICE_LAZY;
  bool validation = false;
  bool adopted = false;
  std::string prefer_device;
  engine::SharingMode sharing = engine::SharingMode::automatic;
  uint32_t threads = 0;

  // Guards the members below, and every use of the device except memory allocation. So a context renders one frame at a
  // time. It is recursive, because a half-made world may be destroyed while it is held.
  std::recursive_mutex mutex;
  std::unique_ptr<engine::Device> device;
  std::unique_ptr<engine::Renderer> renderer;  // after `device`: destroyed before it
  uint64_t worlds_made = 0;

  void say(int32_t level, const char* message) const {
    if (log) log(log_user, level, message);
  }
};

// Sets the thread's last error message. Returns `code`, so that a check is one line: return refuse(QRY_ERROR_...,
// "...").
[[gnu::format(printf, 2, 3)]] qry_result refuse(qry_result code, const char* format, ...) noexcept;
qry_result refuse(const Error& error) noexcept;
qry_result result_of(ErrorCode code) noexcept;

// QRY_PASS_REFUSAL(check_struct(...)); returns the call's result if that is not QRY_OK. Its message is already set.
#define QRY_PASS_REFUSAL(...)                                             \
  do {                                                                    \
    if (const qry_result qry_refused = (__VA_ARGS__)) return qry_refused; \
  } while (false)

// Turns exceptions of `body` into results. `body` returns a qry_result.
template <class Body>
qry_result guarded(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return refuse(QRY_ERROR_OUT_OF_MEMORY, "%s: out of host memory", function);
  } catch (const std::length_error&) {
    return refuse(QRY_ERROR_OUT_OF_MEMORY, "%s: more than host memory can hold was asked for", function);
  } catch (const std::exception& e) {
    return refuse(QRY_ERROR_INTERNAL, "%s: %s", function, e.what());
  } catch (...) {
    return refuse(QRY_ERROR_INTERNAL, "%s: an unknown exception", function);
  }
}

// One structure that a call accepts in a chain, and where to put its address.
struct Accepted {
  qry_stype stype;
  const void** found;
};
const char* stype_name(qry_stype stype) noexcept;
// Walks the chain `next` and refuses unknown and repeated structures.
qry_result read_chain(const char* function, const void* next, std::initializer_list<Accepted> accepted) noexcept;
// Checks a caller's structure: it must exist, have the right type, and have a chain of accepted structures.
template <class Struct>
qry_result check_struct(const char* function, const char* argument, const Struct* given, qry_stype wanted,
                        std::initializer_list<Accepted> accepted = {}) noexcept {
  if (!given) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
  if (given->stype != wanted)
    return refuse(QRY_ERROR_UNKNOWN_STRUCT, "%s: %s->stype is %u, expected %s (%u): initialise it with its _INIT macro",
                  function, argument, given->stype, stype_name(wanted), wanted);
  if (given->reserved != 0) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s->reserved must be 0", function, argument);
  return read_chain(function, given->next, accepted);
}

// Adapts a C progress callback. It sets `cancel` when the callback returns anything but 0.
class ProgressCall {
 public:
  ProgressCall(qry_progress_function function, void* user);
  const Progress& progress() const { return progress_; }

 private:
  std::atomic<bool> cancel_{false};
  Progress progress_;
};

// Makes the device if there is none. Call it with `mutex` held.
qry_result need_device(ContextState& context, const char* function);

}  // namespace quarry::c_api

struct qry_context {
  std::shared_ptr<quarry::c_api::ContextState> state;
};

// Members are destroyed from the last to the first. The document's memory belongs to `shared`, whose device belongs to
// `context`.
struct qry_world {
  std::shared_ptr<quarry::c_api::ContextState> context;
  // Only set if the context limits threads. Otherwise the world uses its own executor.
  std::unique_ptr<quarry::hashgrid::Executor> executor;
  std::shared_ptr<quarry::engine::SharedWorld> shared;  // null: the world is in plain host memory, no device yet
  // Without voxels, if the world is at home on a device, unless shaders need a copy: see copy_to_document().
  std::optional<quarry::Document> document;
  uint64_t copied_version = ~uint64_t(0);
  uint64_t lights_version = ~uint64_t(0);                // of the world whose lights `shared` has last been told
  std::unique_ptr<quarry::engine::DeviceBlocks> blocks;  // of `home`, if shaders read its memory
  std::unique_ptr<quarry::c_api::DeviceHome> home;       // null: at home on the host
  uint32_t home_kind = QRY_HOME_HOST;
  struct Flattened {
    double ms, room_ms;
  };
  std::optional<Flattened> flattened;  // when it was opened
  uint32_t max_bricks = 0;
  uint64_t dropped_before = 0;  // steps that `document` had dropped when it was another one
  uint64_t version = 0;         // changes that the host made; see version_of()
  // Of what was submitted to the host, which is done: the last ones.
  std::deque<quarry::c_api::DeviceHome::Change> answers;
  uint64_t last_ticket = 0;
  uint64_t number = 0;  // among the context's worlds
  // Of a snapshot: what the world showed, by handles of its bricks, with whom the bricks are and whose memory they are
  // in. Only until the snapshot is first drawn; then `document` shows a copy.
  struct Lent {
    std::shared_ptr<quarry::engine::SharedWorld> memory;
    quarry::BrickPool pool;
    quarry::BrickMap bricks;
  };
  bool is_snapshot = false;
  std::optional<Lent> lent;
  // A file that had this world's scene and history, when the world had the version.
  struct SameFile {
    uint64_t fingerprint, version;
    int64_t first_record;  // see FollowedFile::begin()
  };
  std::optional<SameFile> same_file;
  std::unique_ptr<quarry::engine::FollowedFile> file;  // null: not attached
  bool published_for_frames = false;                   // of a host engine, which may record them at any time

  ~qry_world();
};

struct qry_recorder {
  std::shared_ptr<quarry::c_api::ContextState> context;
  std::unique_ptr<quarry::engine::Renderer> renderer;
  std::vector<uint64_t> frames;  // the frame last recorded with each slot; 0: none
  uint64_t last_frame = 0;

  ~qry_recorder();
};

struct qry_paths {
  std::shared_ptr<quarry::c_api::ContextState> context;
  std::unique_ptr<quarry::engine::PathTracer> tracer;
  // The tracer's sums are of this world, view and settings.
  uint64_t world = 0, world_version = 0;
  quarry::engine::View view;
  quarry::engine::RenderSettings settings;
  quarry::Int3 origin;  // of the window that the view is in
  bool layers = false;
  // The picture that can be read.
  quarry::engine::PathPicture picture;
  uint32_t samples = 0;
  uint64_t picture_version = 0;

  ~qry_paths();
};

namespace quarry::c_api {

// Gives the memory for a world of this context. Creates `shared` if the context has a device or if `device_needed`.
qry_result place_world(qry_world& world, bool device_needed, WorldMemory* memory, const char* function);
// Moves a world made without a device to memory that the device reads. Call it with the context's mutex held.
qry_result share_world(qry_world& world, const char* function);

// Attaches a world to a file. `there`: it has its voxels; else the file alone has them (ResidentPages).
qry_result attach_to(qry_world& world, const char* path, bool there, const Progress& progress);
// As what a file follows.
inline engine::HomedWorld homed(qry_world& world) { return {*world.document, world.home.get()}; }

// What is drawn of a world that share_world() has prepared: a world at home on a device from there, if shaders read its
// memory.
engine::RenderedWorld rendered(qry_world& world);
// The same for a picture that is made again until it misses nothing, if pages of a world with a budget are not there.
Result<engine::RenderedWorld> drawn_whole(qry_world& world);
// Publishes it for frames of a host engine: of a world with a budget what is there.
Result<engine::Device::TimelinePoint> published_for_frames(qry_world& world);
// Lets the document have the voxels of a world at home on a device whose memory shaders do not read: a copy, which is
// brought up to date.
qry_result copy_to_document(qry_world& world);
// Waits for what was submitted. Errors: as DeviceHome::version.
Result<uint64_t> version_of(const qry_world& world);
// What a world begins with. With a `file` there are neither bricks nor history yet: they are to be read from there,
// straight to a device, or else by finish_reading().
struct Opened {
  Scene scene;
  bool flattens = false;  // what the scene shows is to become one volume; there is no history
  std::vector<UndoRecord> history;
  size_t history_position = 0;
  bool leaves_history = false;          // in the file: the position is that there
  std::optional<uint64_t> fingerprint;  // of a world file with all of these
  std::unique_ptr<io::StoreReader> file;
  // Of a mesh that is not read yet, because CUDA may leave its voxels where the world will be at home.
  engine::DeviceHome::ReadMesh read_mesh;
  bool waits() const { return file || read_mesh; }  // for a home, or for finish_reading
  std::function<Result<void>(Opened& opened)> finish_reading;
};
// Whether worlds of this request may be at home on a device, before one is asked for (engine/home/choice.hpp). Errors:
// unsupported, with the reason.
Result<void> may_be_on_device(const ContextState& context, uint32_t home);
// A caller's structures about a world's home, each as read_chain() finds it; null: it is not there.
struct HomeInfos {
  const void *home = nullptr, *emulation = nullptr;      // qry_world_home_info, qry_emulation_info
  const void *budget = nullptr, *host_budget = nullptr;  // qry_device_budget_info, qry_host_budget_info
  uint64_t budget_bytes() const { return budget ? static_cast<const qry_device_budget_info*>(budget)->bytes : 0; }
  uint64_t host_bytes() const { return host_budget ? static_cast<const qry_host_budget_info*>(host_budget)->bytes : 0; }
};
// Gives a world its home, and its document, which may take the pool of `memory`. Messages begin with `function`, which
// may be a file.
qry_result settle_world(qry_world& world, const HomeInfos& infos, bool packed, Opened opened, WorldMemory& memory,
                        const Progress& progress, const char* function);
// Refuses snapshots.
qry_result check_writable(const qry_world& world, const char* function);
// The same, and that there is such a volume.
qry_result check_volume(const qry_world& world, uint32_t volume, const char* function);
// Of a caller's dense box: the box and the array's size; and that each instance of the volume shows it in the world.
qry_result check_region(const char* function, const int32_t* min, const int32_t* max, const void* materials,
                        uint64_t size_bytes);
qry_result check_region_inside(const qry_world& world, uint32_t volume, const int32_t* min, const int32_t* max,
                               const char* function);
// The end of every call that may add a step to the history.
qry_result finish(qry_world& world, const Result<const UndoRecord*>& done, uint64_t* changed);
// The same of a change on a device, which it waits for. `is_exchange`: it undoes or redoes.
qry_result finish(qry_world& world, const Result<uint64_t>& ticket, bool is_exchange, uint64_t* changed);

// Checks that pictures of both kinds share.
qry_result check_camera(const char* function, const qry_camera& camera);
qry_result check_picture_size(const char* function, uint32_t width, uint32_t height);
// Refuses a member of `info`.
qry_result bad(const char* function, const char* member, double value, const char* expected);
engine::View view_of(const qry_camera& camera, uint32_t width, uint32_t height);
qry_result check_sun(const char* function, const float (&direction)[3], float strength, float sky_strength,
                     float exposure);
// Checks the rows in the caller's memory. A `pitch` of 0 becomes that of rows without gaps.
qry_result check_rows(const char* function, uint32_t width, uint32_t height, uint32_t pixel_bytes, uint64_t size_bytes,
                      uint64_t* pitch);
void copy_rows(const void* from, void* to, uint32_t width, uint32_t height, uint32_t pixel_bytes, uint64_t pitch);
// Copies the members that have the same name in qry_render_info and qry_paths_info.
void put_size_and_sun(const auto& info, engine::RenderSettings& settings) {
  settings.width = info.width;
  settings.height = info.height;
  settings.exposure = info.exposure;
  std::copy_n(info.sun_direction, 3, settings.sun_direction);
  settings.sun_strength = info.sun_strength;
  settings.sky_strength = info.sky_strength;
}
// Converts a picture's info, with its chained structures, for the renderer.
qry_result read_render_info(const char* function, const qry_render_info* info, engine::View& view,
                            engine::RenderSettings& settings);
// Moves both to the window of a larger world, whose voxel (0, 0, 0) is the world's `origin`.
void see_from_window(const qry_camera& camera, Int3 origin, engine::View& view, engine::RenderSettings& settings);
// Of a world that one grid does not hold: the window moves to where the camera is, if it must. Returns its origin.
Result<Int3> look_from(qry_world& world, const qry_camera& camera);
// `look` may be null. Then nothing is set.
qry_result apply_environment(const char* function, const qry_look_info* look, engine::RenderSettings& settings);

}  // namespace quarry::c_api
