// SPDX-License-Identifier: Apache-2.0
// on_device.cpp - what a session does where its world is at home on a device: a change is made there, and when
// its stroke is over the file is brought up to date.
#include <fmt/format.h>

#include <algorithm>

#include "app/editor/session/document_session.hpp"

namespace quarry::app {

using engine::DeviceHome;

namespace {

constexpr uint64_t kMostForWindow = uint64_t(8) << 30;  // of a device's memory, for a world that one grid does not hold
constexpr uint64_t kBareBytes = 60'000'000;             // of a device's memory, what a world without bricks takes there

}  // namespace

// Null, with the reason, if the host is to have the world.
Result<std::shared_ptr<DeviceWorld>> Session::device_world_of(Content& content, std::string& reason,
                                                              const Progress& progress) {
  std::optional<Error> wrong;  // with a mesh's file, at every home
  const auto make = [&](engine::Home home, uint64_t memory_bytes) -> Result<std::shared_ptr<DeviceWorld>> {
    if (!DeviceHome::takes(content.scene)) return fail(ErrorCode::unsupported, DeviceHome::kTaken);
    QRY_TRY_ASSIGN(auto memory, place_.prepare_home(home));
    auto world = std::make_shared<DeviceWorld>();
    world->blocks = std::move(memory.blocks);
    world->kind = home == engine::Home::automatic ? engine::Home::device : home;
    reason = std::move(memory.reason);
    if (content.read_mesh) {
      const auto read = [&](const DeviceSink& sink) { return content.read_mesh(&sink); };
      QRY_TRY_ASSIGN(world->home,
                     DeviceHome::create(std::move(memory.executor), read, content.scene, wrong, progress, 0, 0));
      return world;
    }
    const uint64_t for_bricks = memory_bytes - std::min(memory_bytes, kBareBytes);
    const bool in_parts =
        content.file &&
        (content.is_wide || content.file->bricks() > for_bricks / (engine::kKeyBytes + engine::kVoxelBytes));
    QRY_TRY_ASSIGN(world->home,
                   DeviceHome::create(std::move(memory.executor),
                                      {content.scene, content.history, content.position,
                                       in_parts ? nullptr : content.file, progress, false, content.history_of_file},
                                      0, 0));
    if (in_parts) {
      QRY_TRY(world->home->set_budget(std::min(memory_bytes, kMostForWindow),
                                      home == engine::Home::host ? 0 : place_.page_memory_bytes));
      world->pages()->set_frames(place_.frames);
    }
    return world;
  };
  if (content.host_memory_bytes) return make(engine::Home::host, content.host_memory_bytes);
  auto made = [&]() -> Result<std::shared_ptr<DeviceWorld>> {
    QRY_TRY(engine::may_be_on_device(place_.home));
    return make(place_.home, place_.device_memory_bytes);
  }();
  if (made) return made;
  if (wrong) return tl::unexpected(*wrong);
  const Error& error = made.error();
  // Other scenes are edited on the host, whatever is asked for: an instance that is hidden makes one.
  const bool may_be_host =
      place_.home == engine::Home::host || place_.home == engine::Home::automatic || !DeviceHome::takes(content.scene);
  if (!may_be_host || engine::fails_at_every_home(error.code))
    return fail(error.code, fmt::format("no home on a device: {}", error.message));
  reason = error.message;
  return std::shared_ptr<DeviceWorld>();
}

// Of a stroke when it ends.
Result<uint64_t> Session::apply_there(const Edit& edit) {
  QRY_TRY_ASSIGN(const auto change, home().wait(home().edit(edit)));
  if (!change.step) return 0;
  kept_at_.reset();
  changed_ = true;
  if (in_stroke_) {
    stroke_has_edit_ = true;
    return change.voxels;
  }
  QRY_TRY(keep_or_take_back(false));
  return change.voxels;
}

Result<void> Session::end_stroke_there() {
  QRY_TRY_ASSIGN(const uint64_t voxels, home().end_step());
  return voxels && stroke_has_edit_ ? keep_or_take_back(false) : Result<void>();
}

Result<uint64_t> Session::change_there(const VolumeChange& change) {
  QRY_TRY(keep_safe());
  auto made_there = change.made_there;
  if (change.made_in_parts) {
    QRY_TRY_ASSIGN(const bool fits, home().fits_together(change.more_bricks));
    if (!fits) made_there = change.made_in_parts;
  }
  if (made_there) {
    QRY_TRY(home().begin_step(change.label));
    const auto made = made_there(home());
    QRY_TRY_ASSIGN(const uint64_t voxels, home().end_step());
    if (made) {
      if (voxels) QRY_TRY(keep_or_take_back(false));
      return voxels;
    }
    if (voxels) {
      QRY_TRY(home().wait(home().undo()));
    }
    // The device has no room for what it would do itself. The host may have.
    const ErrorCode code = made.error().code;
    if (code != ErrorCode::full && code != ErrorCode::out_of_memory) return tl::unexpected(made.error());
  }
  std::vector<BrickPut> puts;
  {
    QRY_TRY_ASSIGN(const BrickMap before, home().bricks());
    QRY_TRY_ASSIGN(const BrickMap after, change.made(before));
    puts = differences(before, after);
  }
  if (puts.empty()) return 0;
  QRY_TRY_ASSIGN(const auto done, home().wait(home().write_bricks(puts, change.label.c_str())));
  if (done.step) QRY_TRY(keep_or_take_back(false));
  return done.voxels;
}

// Of a mesh's file, as a world in the same device's memory: the voxels that CUDA makes of it stay there. None: the host
// is to read it.
Result<std::optional<VolumeChange>> Session::mesh_there(const std::filesystem::path& file,
                                                        const io::ReadOptions& options, BooleanKind kind,
                                                        uint32_t& replaced) {
  if (!device_ || device_->pages()) return std::optional<VolumeChange>();
  QRY_TRY_ASSIGN(const auto* const format, io::format_for_reading(file));
  if (format->kind != io::FormatKind::mesh) return std::optional<VolumeChange>();
  std::optional<Error> wrong;
  const auto make = [&]() -> Result<VolumeChange> {
    QRY_TRY_ASSIGN(auto memory, place_.prepare_home(device_->kind));
    const auto mesh = std::make_shared<DeviceWorld>();
    mesh->blocks = std::move(memory.blocks);
    Scene scene;
    const auto read = [&](const DeviceSink& sink) {
      io::ReadOptions its = options;
      its.sink = &sink;
      return io::read_scene(file, its);
    };
    QRY_TRY_ASSIGN(mesh->home,
                   DeviceHome::create(std::move(memory.executor), read, scene, wrong, options.progress, 0, 0));
    if (!home().reads(*mesh->home)) return fail(ErrorCode::unsupported, "the mesh is in another device's memory");
    return combined_there({mesh, mesh->home.get()}, scene.palette, document_->scene().palette, kind, replaced);
  };
  auto made = make();
  if (made) return std::optional(std::move(*made));
  if (wrong) return tl::unexpected(*wrong);
  if (made.error().code == ErrorCode::device_lost) return tl::unexpected(made.error());
  return std::optional<VolumeChange>();
}

Result<void> Session::step_there(bool back) {
  QRY_TRY(home().wait(back ? home().undo() : home().redo()));
  return keep_or_take_back(back);
}

Result<void> Session::set_palette_there(const Palette& palette) {
  QRY_TRY(home().wait(home().change_palette(palette)));
  return keep_or_take_back(false);
}

// What is not on disk must not look done: where the file cannot be written, the last change is exchanged once more.
Result<void> Session::keep_or_take_back(bool undone) {
  stroke_has_edit_ = false;
  auto flushed = followed_ ? followed_->flush(homed()) : Result<void>();
  if (flushed) {
    kept();
    notice_drops();
  } else if (flushed.error().code != ErrorCode::device_lost) {
    QRY_TRY(home().wait(undone ? home().redo() : home().undo()));
  }
  if (in_stroke_) QRY_TRY(home().begin_step());  // later edits of the stroke are a step of their own
  return flushed;
}

// The world as it is. `history`: with its history, of which the file has the same records afterwards: a step that came
// from a file in several parts is one record now.
Result<void> Session::read_back(Content& content, bool history) {
  QRY_TRY_ASSIGN(content.scene.volumes[0].bricks, home().bricks());
  if (followed_) QRY_TRY(followed_->flush(homed()));
  if (!history) return {};
  QRY_TRY_ASSIGN(auto its, home().history());
  QRY_TRY_ASSIGN(content.history, its.all_records());
  content.position = size_t(its.position());
  if (!followed_) return {};
  const uint64_t first = records_before();
  io::Store::Later later;
  later.kept = first;
  later.records = content.history;
  later.position = first + content.position;
  return followed_->store().commit_later(document_->scene(), later);
}

const Session::Shown& Session::shown_there() const {
  const auto version = home().version();
  if (!version || (*version == shown_.version && shown_.world_bytes)) return shown_;
  if (const auto state = home().state())
    shown_ = {state->version, state->store.voxels, state->store.keys, state->store.world_bytes, state->store.bounds};
  return shown_;
}

std::optional<Pick> Session::pick_there(const Ray& ray) const {
  const auto traced = home().pick({ray.origin.x, ray.origin.y, ray.origin.z},
                                  {float(ray.direction.x), float(ray.direction.y), float(ray.direction.z)});
  if (!traced || traced->t < 0) return {};
  const RayHit& hit = *traced;
  Pick pick;
  pick.voxel = {hit.voxel[0], hit.voxel[1], hit.voxel[2]};
  const int towards = hit.face & 1u ? 1 : -1;
  if (hit.t > 0) (hit.face < 2 ? pick.normal.x : hit.face < 4 ? pick.normal.y : pick.normal.z) = towards;
  pick.t = double(hit.t);
  pick.material = uint8_t(hit.material);
  return pick;
}

bool Session::is_voxel_there(Int3 voxel) const {
  const int32_t at[3] = {voxel.x, voxel.y, voxel.z};
  uint8_t material = 0;
  return home().get_voxels(at, &material, 1) && material != 0;
}

}  // namespace quarry::app
