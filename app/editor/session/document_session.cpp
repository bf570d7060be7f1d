// SPDX-License-Identifier: Apache-2.0
// document_session.cpp - a change is made in memory and committed to the store; it is undone if the commit fails.
// Recovery files of documents without a name.
#include "app/editor/session/document_session.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "app/editor/session/recovery.hpp"
#include "voxel/io/export_loss.hpp"

namespace quarry::app {
namespace fs = std::filesystem;
Session::Session(WorldPlace place, fs::path recovery) : place_(std::move(place)), recovery_(std::move(recovery)) {}
Session::~Session() { close(true); }

// Room for a new world. It is given back if the world is not used. Scenes with bricks in it must go first.
class Session::NewWorld {
 public:
  explicit NewWorld(WorldPlace& place) : place_(place) {}
  NewWorld(const NewWorld&) = delete;
  NewWorld& operator=(const NewWorld&) = delete;
  ~NewWorld() {
    if (prepared_ && place_.settle) place_.settle(false);
  }
  Result<void> prepare() {
    if (!place_.prepare) return {};
    QRY_TRY_ASSIGN(memory_, place_.prepare());
    prepared_ = true;
    return {};
  }
  WorldMemory& memory() { return memory_; }
  void use() {
    prepared_ = false;
    if (place_.settle) place_.settle(true);
  }

 private:
  WorldPlace& place_;
  WorldMemory memory_;
  bool prepared_ = false;
};

Result<void> Session::adopt(NewWorld& world, Scene scene, std::vector<UndoRecord> history, size_t position,
                            const Progress& progress) {
  if (scene.volumes.empty()) scene.volumes.push_back({"voxels", {}, {}});
  if (scene.instances.empty()) scene.instances.push_back({});
  QRY_TRY_ASSIGN(auto document, Document::create(std::move(scene), world.memory(), progress));
  document.set_history_budget(history_budget_);
  QRY_TRY(document.restore_history(std::move(history), position));
  dropped_before_ = 0;
  drops_noticed_ = false;
  active_box_.reset();
  kept_palette_.reset();
  document_ = std::move(document);
  world.use();
  in_stroke_ = stroke_has_edit_ = false;
  set_active_instance(active_instance_);
  return {};
}

void Session::set_history_budget(uint64_t bytes) {
  history_budget_ = bytes;
  if (!document_) return;
  document_->set_history_budget(bytes);
  notice_drops();
}

uint64_t Session::dropped_steps() const { return dropped_before_ + (document_ ? document_->dropped_steps() : 0); }

void Session::notice_drops() {
  if (drops_noticed_ || dropped_steps() == 0) return;
  drops_noticed_ = true;
  notice_ = fmt::format("{}the history's memory of {} is full: the oldest steps can no longer be undone{}",
                        notice_.empty() ? "" : notice_ + "; ", bytes_text(history_budget_),
                        world_file_ ? fmt::format(" ({} has them)", file_.filename().string()) : "");
}

Result<void> Session::start_new() {
  NewWorld world(place_);
  QRY_TRY(world.prepare());
  Scene scene;
  scene.volumes.push_back({"voxels", {}, {}});
  scene.instances.push_back({});
  active_instance_ = 0;
  QRY_TRY(adopt(world, std::move(scene), {}, 0));
  close(false);
  title_ = "untitled";
  return {};
}

// Empty if the file does not exist or cannot be examined.
std::optional<Session::Origin> Session::look_at(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  Origin origin;
  origin.device = info.st_dev;
  origin.inode = info.st_ino;
  origin.bytes = uint64_t(info.st_size);
  origin.modified_ns = int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  return origin;
}

Result<void> Session::open(const fs::path& file, const io::ReadOptions& options) {
  QRY_TRY_ASSIGN(const auto format, io::format_for_reading(file));
  if (format->kind == io::FormatKind::world) {
    std::error_code error;
    if (store_ && fs::equivalent(file, store_path_, error)) return {};  // it is already open here
    QRY_TRY_ASSIGN(auto store, io::Store::open(file));
    NewWorld world(place_);
    QRY_TRY(world.prepare());
    std::vector<UndoRecord> history;
    size_t position = 0;
    QRY_TRY_ASSIGN(auto scene, store.read_scene(options.progress, &history, &position, &world.memory().new_pool()));
    QRY_TRY(adopt(world, std::move(scene), std::move(history), position, options.progress));
    close(false);
    take_warnings(store.warnings());
    store_ = std::move(store);
    store_path_ = file;
    world_file_ = true;
  } else {
    std::vector<std::string> warnings;
    io::ReadOptions read = options;
    read.warnings = &warnings;
    auto origin = look_at(file);  // taken before the file is read, so that a change during reading is noticed
    QRY_TRY_ASSIGN(auto scene, io::read_scene(file, read));
    NewWorld world(place_);
    QRY_TRY(world.prepare());
    QRY_TRY(adopt(world, std::move(scene), {}, 0, options.progress));
    close(false);
    take_warnings(warnings);
    origin_ = std::move(origin);
    if (origin_) {
      origin_->format = format;
      origin_->left_out = std::move(warnings);
    }
  }
  file_ = file;
  title_ = file.filename().string();
  active_instance_ = 0;
  notice_drops();
  return {};
}

void Session::take_warnings(const std::vector<std::string>& warnings) {
  if (!warnings.empty())
    notice_ =
        warnings.size() == 1 ? warnings[0] : fmt::format("{} (and {} more warnings)", warnings[0], warnings.size() - 1);
}

Result<void> Session::recover(const fs::path& file) {
  QRY_TRY(open(file));
  // Edits are still committed to its file, but the user has not saved it anywhere yet.
  world_file_ = false;
  changed_ = true;
  title_ = file.filename().string();
  title_ = title_.substr(0, title_.find('.')) + " (recovered)";
  file_.clear();
  return {};
}

// Its content is saved elsewhere now, or not wanted.
void Session::drop_recovery_file() {
  if (!store_ || world_file_) return;
  store_.reset();
  std::error_code ignored;
  fs::remove(store_path_, ignored);
  store_path_.clear();
}

void Session::close(bool keep_recovery) {
  if (!(keep_recovery && changed_)) drop_recovery_file();
  store_.reset();
  store_path_.clear();
  file_.clear();
  origin_.reset();
  world_file_ = changed_ = false;
  notice_.clear();
}

std::optional<uint32_t> Session::instance_at(Int3 voxel) const {
  const Scene& scene = document_->scene();
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (!scene.instance_visible(instance)) continue;
    if (scene.volumes[instance.volume].bricks.get(instance.rotation.inverse().apply_to_cell(voxel - instance.offset)) ==
        0)
      continue;
    found = i;
    if (scene.overlap == OverlapRule::first_instance_wins) break;
  }
  return found;
}

void Session::set_active_instance(uint32_t instance) {
  const auto count = uint32_t(document_->scene().instances.size());
  active_instance_ = std::min(instance, count - 1);
}

Box3 Session::active_box() const {
  const std::pair key{document_->version(), active_instance_};
  if (active_box_ && std::get<0>(*active_box_) == key.first && std::get<1>(*active_box_) == key.second)
    return std::get<2>(*active_box_);
  const Scene& scene = document_->scene();
  const Instance& instance = scene.instances[active_instance_];
  Box3 box;
  if (scene.instance_visible(instance)) box = scene.volumes[instance.volume].bricks.bounds();
  if (!box.empty()) {
    const Int3 a = instance.rotation.apply_to_cell(box.min) + instance.offset,
               b = instance.rotation.apply_to_cell(box.max) + instance.offset;
    box = {{std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)},
           {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}};
  }
  active_box_.emplace(key.first, key.second, box);
  return box;
}

Edit Session::in_volume_axes(const Edit& edit, const Instance& instance) const {
  const Rotation back = instance.rotation.inverse();
  Edit turned = edit;
  turned.a = back.apply_to_cell(edit.a - instance.offset);
  turned.b = back.apply_to_cell(edit.b - instance.offset);
  return turned;
}

// Creates the recovery file of a document without a world file, before its first change since it was opened or saved.
// The file gets the history up to then.
Result<void> Session::keep_safe() {
  if (store_ || recovery_.empty()) return {};
  QRY_TRY_ASSIGN(auto file, new_recovery_file(recovery_, title_));
  QRY_TRY(io::Store::save_with_history(document_->scene(), document_->history(), document_->history_position(),
                                       {file, false}));
  QRY_TRY_ASSIGN(auto store, io::Store::open(file));
  store_ = std::move(store);
  store_path_ = file;
  return {};
}

// A change that is not on disk must not look done: the document undoes a change whose commit fails.
Document::Persist Session::commit_with(Result<void> (io::Store::*commit)(const Scene&, std::span<const UndoRecord>)) {
  if (!store_) return {};
  return
      [this, commit](std::span<const UndoRecord> records) { return ((*store_).*commit)(document_->scene(), records); };
}

Result<void> Session::check_shown(const Instance& instance) const {
  if (document_->scene().instance_visible(instance)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is hidden: show it or choose another instance", instance.name));
}

Result<uint64_t> Session::change(const VolumeChange& change) {
  end_preview();
  const Instance& instance = document_->scene().instances[active_instance_];
  QRY_TRY(check_shown(instance));
  std::vector<BrickPut> puts;
  {
    const BrickMap before = document_->scene().volumes[instance.volume].bricks;
    QRY_TRY_ASSIGN(const BrickMap after, change.made(before));
    puts = differences(before, after);
  }
  if (puts.empty()) return 0;
  QRY_TRY(keep_safe());
  QRY_TRY_ASSIGN(const auto record,
                 document_->write(instance.volume, puts, change.label, 0, commit_with(&io::Store::commit_edit)));
  stroke_has_edit_ = false;  // later edits of a stroke are a step of their own
  changed_ = true;
  return record->voxels_changed;
}

Result<uint64_t> Session::combine(const fs::path& file, BooleanKind kind) {
  std::vector<std::string> warnings;
  io::ReadOptions read;
  read.warnings = &warnings;
  QRY_TRY_ASSIGN(const Scene other, io::read_scene(file, read));
  end_preview();
  const Scene& scene = document_->scene();
  uint32_t replaced = 0;
  QRY_TRY_ASSIGN(const auto by_file, combined(other, scene.instances[active_instance_], scene.palette, kind, replaced));
  QRY_TRY_ASSIGN(const uint64_t voxels, change(by_file));
  if (replaced)
    warnings.insert(warnings.begin(), fmt::format("{}: {} of its materials are not in the palette; the ones that look "
                                                  "most like them are used",
                                                  file.filename().string(), replaced));
  take_warnings(warnings);
  return voxels;
}

Result<uint64_t> Session::apply(const Edit& edit) {
  end_preview();
  const Scene& scene = document_->scene();
  const Instance& instance = scene.instances[active_instance_];
  QRY_TRY(check_shown(instance));
  QRY_TRY(keep_safe());
  QRY_TRY_ASSIGN(const auto record,
                 document_->apply(instance.volume, in_volume_axes(edit, instance), 0, in_stroke_ && stroke_has_edit_,
                                  commit_with(&io::Store::commit_edit)));
  if (record->changes.empty()) return 0;
  const uint64_t voxels = record->voxels_changed;
  stroke_has_edit_ = true;
  changed_ = true;
  notice_drops();
  return voxels;
}

void Session::begin_stroke() {
  in_stroke_ = true;
  stroke_has_edit_ = false;
}
void Session::end_stroke() { in_stroke_ = false; }

Result<void> Session::step(bool back) {
  end_preview();
  stroke_has_edit_ = false;  // later edits of the stroke are a step of their own
  if (back ? !document_->can_undo() : !document_->can_redo()) return {};
  QRY_TRY(keep_safe());
  const auto done = back ? document_->undo(commit_with(&io::Store::commit_undo))
                         : document_->redo(commit_with(&io::Store::commit_redo));
  QRY_TRY(done);
  changed_ = true;
  return {};
}

Result<void> Session::undo() { return step(true); }
Result<void> Session::redo() { return step(false); }

Result<void> Session::go_to_step(size_t position) {
  while (step_position() > position) QRY_TRY(undo());
  while (step_position() < position && document_->can_redo()) QRY_TRY(redo());
  return {};
}

Result<void> Session::set_palette(const Palette& palette) {
  end_preview();
  if (palette == document_->scene().palette) return {};
  QRY_TRY(keep_safe());
  const auto record = document_->change_palette(palette, commit_with(&io::Store::commit_edit));
  QRY_TRY(record);
  stroke_has_edit_ = false;
  changed_ = true;
  notice_drops();
  return {};
}

void Session::preview_palette(const Palette& palette) {
  if (!kept_palette_) kept_palette_ = document_->scene().palette;
  document_->set_palette(palette);
}

void Session::end_preview() {
  if (!kept_palette_) return;
  document_->set_palette(*kept_palette_);
  kept_palette_.reset();
}

Result<void> Session::reflatten(Scene scene) {
  QRY_TRY(keep_safe());
  std::vector<UndoRecord> history = document_->history();
  Scene before = document_->scene();
  for (Volume& volume : before.volumes) volume.bricks.clear();  // the old world's memory may go before `before`
  const size_t position = document_->history_position();
  NewWorld world(place_);
  QRY_TRY(world.prepare());
  if (store_) QRY_TRY(store_->commit_visibility(scene));
  const uint64_t dropped = dropped_steps();
  const bool noticed = drops_noticed_;
  if (auto done = adopt(world, std::move(scene), std::move(history), position); !done) {
    // What cannot be shown must not be in the file.
    if (store_) QRY_TRY(store_->commit_visibility(before));
    return done;
  }
  dropped_before_ = dropped;
  drops_noticed_ = noticed;
  changed_ = true;
  return {};
}

Result<void> Session::set_layer_hidden(uint32_t layer, bool hidden) {
  end_preview();
  Scene scene = document_->scene();
  scene.layers.at(layer).hidden = hidden;
  return reflatten(std::move(scene));
}
Result<void> Session::set_instance_hidden(uint32_t instance, bool hidden) {
  end_preview();
  Scene scene = document_->scene();
  scene.instances.at(instance).hidden = hidden;
  return reflatten(std::move(scene));
}

std::vector<Session::Step> Session::steps() const {
  std::vector<Step> steps;
  for (const UndoRecord& record : document_->history()) {
    if (!record.continues || steps.empty()) steps.push_back({record.label, 0, 0});
    steps.back().voxels += record.voxels_changed;
    ++steps.back().records;
  }
  return steps;
}

size_t Session::step_position() const { return document_->step_position(); }

std::string Session::title() const { return title_; }
const fs::path& Session::store_file() const { return store_path_; }

Result<Session::WriteBack> Session::write_back() const {
  if (file_.empty())
    return fail(ErrorCode::not_found, fmt::format("'{}' has no file yet: save it under a name", title_));
  const std::string name = file_.filename().string();
  if (world_file_) return WriteBack{};
  const auto writer = io::format_for_writing(file_);
  if (!writer || !origin_ || *writer != origin_->format)
    return fail(ErrorCode::unsupported, fmt::format("{}: {} files are not written: save it under another name", name,
                                                    origin_ ? origin_->format->title : "such"));
  if (!(*writer)->returns)
    return fail(ErrorCode::unsupported, fmt::format("{}: what was read from it is not all that is in it, so it is not "
                                                    "written back ({}): save under another name",
                                                    name, (*writer)->title));
  WriteBack meant;
  for (io::ExportLoss& loss : io::export_losses(document_->scene(), **writer))
    meant.losses.push_back(std::move(loss.text));
  for (const std::string& sentence : origin_->left_out) meant.losses.push_back("not read: " + sentence);
  const auto now = look_at(file_);
  meant.changed_on_disk = now && !now->same_file(*origin_);
  return meant;
}

Result<void> Session::save_as(const fs::path& file, const Progress& progress) {
  end_preview();
  QRY_TRY_ASSIGN(const auto format, io::format_for_writing(file));
  remove_left_behind(file);
  if (format->kind != io::FormatKind::world) {
    QRY_TRY(io::write_scene(document_->scene(), file, progress));
    if (world_file_) return {};  // a copy; edits still go into the world's file
    // The document is in a file of the user's choice, so no recovery is offered. The next change creates a new recovery
    // file.
    drop_recovery_file();
    changed_ = false;
    if (!format->returns) return {};
    file_ = file;
    title_ = file.filename().string();
    origin_ = look_at(file);
    if (origin_) origin_->format = format;
    return {};
  }
  std::error_code error;
  if (store_ && world_file_ && fs::equivalent(file, store_path_, error)) return {};  // every edit is in it already
  if (store_) {
    // The file with the edits so far is copied whole, with its history. It is closed first, so that the copy is
    // complete.
    const fs::path from = store_path_;
    store_.reset();
    const auto copied = io::Store::copy(from, file);
    QRY_TRY_ASSIGN(auto again, io::Store::open(from));
    store_ = std::move(again);
    QRY_TRY(copied);
  } else
    QRY_TRY(io::Store::save_with_history(document_->scene(), document_->history(), document_->history_position(), file,
                                         progress));
  QRY_TRY_ASSIGN(auto store, io::Store::open(file));
  close(false);
  store_ = std::move(store);
  store_path_ = file_ = file;
  title_ = file.filename().string();
  world_file_ = true;
  return {};
}

std::string Session::take_notice() {
  std::string taken;
  taken.swap(notice_);
  return taken;
}

}  // namespace quarry::app
