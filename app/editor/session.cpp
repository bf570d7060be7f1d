#include "app/editor/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/editor/recovery.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

Session::Session(WorldPlace place, fs::path recovery) : place_(std::move(place)), recovery_(std::move(recovery)) {}
Session::~Session() { close(true); }

Result<void> Session::adopt(Scene scene, std::vector<UndoRecord> history, size_t position, const Progress& progress) {
  if (scene.volumes.empty()) scene.volumes.push_back({"voxels", {}, {}});
  if (scene.instances.empty()) scene.instances.push_back({});
  WorldMemory memory;
  if (place_.prepare) {
    auto prepared = place_.prepare();
    if (!prepared) return tl::unexpected(prepared.error());
    memory = *prepared;
  }
  auto document = Document::create(std::move(scene), memory, progress);
  if (!document) {
    if (place_.settle) place_.settle(false);
    return tl::unexpected(document.error());
  }
  active_box_.reset();
  stroke_starts_.resize(history.size());
  for (size_t i = 0; i < history.size(); ++i) stroke_starts_[i] = i;
  document->restore_history(std::move(history), position);
  document_ = std::move(*document);
  if (place_.settle) place_.settle(true);
  in_stroke_ = stroke_has_edit_ = false;
  set_active_instance(active_instance_);
  return {};
}

Result<void> Session::start_new() {
  Scene scene;
  scene.volumes.push_back({"voxels", {}, {}});
  scene.instances.push_back({});
  active_instance_ = 0;
  if (auto done = adopt(std::move(scene), {}, 0); !done) return done;
  close(false);
  title_ = "untitled";
  return {};
}

Result<void> Session::open(const fs::path& file, const io::ReadOptions& options) {
  const auto format = io::format_for_reading(file);
  if (!format) return tl::unexpected(format.error());
  if (std::string_view((*format)->name) == "quarry") {
    std::error_code error;
    if (store_ && fs::equivalent(file, store_path_, error)) return {};  // it is open here already
    auto store = io::Store::open(file);
    if (!store) return tl::unexpected(store.error());
    std::vector<UndoRecord> history;
    size_t position = 0;
    auto scene = store->read_scene(options.progress, &history, &position);
    if (!scene) return tl::unexpected(scene.error());
    if (auto done = adopt(std::move(*scene), std::move(history), position, options.progress); !done) return done;
    close(false);
    take_warnings(store->warnings());
    store_ = std::move(*store);
    store_path_ = file;
    world_file_ = true;
  } else {
    std::vector<std::string> warnings;
    io::ReadOptions read = options;
    read.warnings = &warnings;
    auto scene = io::read_scene(file, read);
    if (!scene) return tl::unexpected(scene.error());
    if (auto done = adopt(std::move(*scene), {}, 0, options.progress); !done) return done;
    close(false);
    take_warnings(warnings);
  }
  file_ = file;
  title_ = file.filename().string();
  active_instance_ = 0;
  return {};
}

void Session::take_warnings(const std::vector<std::string>& warnings) {
  if (!warnings.empty()) notice_ = warnings.size() == 1 ? warnings[0] : fmt::format("{} (and {} more warnings)", warnings[0], warnings.size() - 1);
}

Result<void> Session::recover(const fs::path& file) {
  if (auto done = open(file); !done) return done;
  // Its file goes on being where edits are committed to, but the user has not saved it anywhere yet.
  world_file_ = false;
  changed_ = true;
  title_ = file.filename().string();
  title_ = title_.substr(0, title_.find('.')) + " (recovered)";
  file_.clear();
  return {};
}

void Session::close(bool keep_recovery) {
  const bool recovery_file = store_ && !world_file_;
  store_.reset();
  std::error_code ignored;
  if (recovery_file && !(keep_recovery && changed_)) fs::remove(store_path_, ignored);
  store_path_.clear();
  file_.clear();
  world_file_ = changed_ = false;
  notice_.clear();
}

std::optional<uint32_t> Session::instance_at(Int3 voxel) const {
  const Scene& scene = document_->scene();
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (!scene.instance_visible(instance)) continue;
    if (scene.volumes[instance.volume].bricks.get(instance.rotation.inverse().apply_to_cell(voxel - instance.offset)) == 0) continue;
    found = i;
    if (scene.overlap == OverlapRule::first_instance_wins) break;
  }
  return found;
}

void Session::set_active_instance(uint32_t instance) {
  const auto count = static_cast<uint32_t>(document_->scene().instances.size());
  active_instance_ = std::min(instance, count - 1);
}

Box3 Session::active_box() const {
  const std::pair key{document_->version(), active_instance_};
  if (active_box_ && std::get<0>(*active_box_) == key.first && std::get<1>(*active_box_) == key.second) return std::get<2>(*active_box_);
  const Scene& scene = document_->scene();
  const Instance& instance = scene.instances[active_instance_];
  Box3 box;
  if (scene.instance_visible(instance)) box = scene.volumes[instance.volume].bricks.bounds();
  if (!box.empty()) {
    const Int3 a = instance.rotation.apply_to_cell(box.min) + instance.offset, b = instance.rotation.apply_to_cell(box.max) + instance.offset;
    box = {{std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}, {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}};
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

// A document without a world file gets its recovery file before its first change, so that the file's history begins where the
// document's does.
Result<void> Session::keep_safe() {
  if (store_ || recovery_.empty()) return {};
  auto file = new_recovery_file(recovery_, title_);
  if (!file) return tl::unexpected(file.error());
  if (auto saved = io::Store::save(document_->scene(), {*file, false}); !saved) return saved;
  auto store = io::Store::open(*file);
  if (!store) return tl::unexpected(store.error());
  store_ = std::move(*store);
  store_path_ = *file;
  return {};
}

Result<uint64_t> Session::apply(const Edit& edit) {
  const Scene& scene = document_->scene();
  const Instance& instance = scene.instances[active_instance_];
  if (!scene.instance_visible(instance))
    return fail(ErrorCode::invalid_argument, fmt::format("'{}' is hidden: show it or choose another instance", instance.name));
  if (auto safe = keep_safe(); !safe) return tl::unexpected(safe.error());
  const size_t position = document_->history_position();
  const auto record = document_->apply(instance.volume, in_volume_axes(edit, instance));
  if (!record) return tl::unexpected(record.error());
  if ((*record)->changes.empty()) return 0;
  const uint64_t voxels = (*record)->voxels_changed;
  if (store_) {
    if (auto kept = store_->commit_edit(document_->scene(), **record); !kept) {
      // What is not on disk must not look done.
      if (auto back = document_->undo(); !back) return tl::unexpected(back.error());
      return tl::unexpected(kept.error());
    }
  }
  std::erase_if(stroke_starts_, [&](size_t start) { return start >= position; });
  if (!in_stroke_ || !stroke_has_edit_) stroke_starts_.push_back(position);
  stroke_has_edit_ = true;
  changed_ = true;
  return voxels;
}

void Session::begin_stroke() {
  in_stroke_ = true;
  stroke_has_edit_ = false;
}
void Session::end_stroke() { in_stroke_ = false; }

size_t Session::stroke_start_before(size_t position) const {
  const auto at = std::lower_bound(stroke_starts_.begin(), stroke_starts_.end(), position);
  return at == stroke_starts_.begin() ? 0 : *(at - 1);
}
size_t Session::stroke_start_after(size_t position) const {
  const auto at = std::upper_bound(stroke_starts_.begin(), stroke_starts_.end(), position);
  return at == stroke_starts_.end() ? document_->history().size() : *at;
}

Result<void> Session::step_record(bool back) {
  const auto record = back ? document_->undo() : document_->redo();
  if (!record) return tl::unexpected(record.error());
  changed_ = true;
  if (!store_) return {};
  const auto kept = back ? store_->commit_undo(document_->scene(), **record) : store_->commit_redo(document_->scene(), **record);
  if (!kept)
    if (auto reversed = back ? document_->redo() : document_->undo(); !reversed) return tl::unexpected(reversed.error());
  return kept;
}

Result<void> Session::undo() {
  end_stroke();
  const size_t start = stroke_start_before(document_->history_position());
  while (document_->history_position() > start)
    if (auto done = step_record(true); !done) return done;
  return {};
}

Result<void> Session::redo() {
  end_stroke();
  const size_t end = stroke_start_after(document_->history_position());
  while (document_->history_position() < end)
    if (auto done = step_record(false); !done) return done;
  return {};
}

Result<void> Session::go_to_step(size_t position) {
  while (step_position() > position)
    if (auto done = undo(); !done) return done;
  while (step_position() < position && document_->can_redo())
    if (auto done = redo(); !done) return done;
  return {};
}

Result<void> Session::set_palette(const Palette& palette) {
  if (palette == document_->scene().palette && !palette_previewed_) return {};
  if (auto safe = keep_safe(); !safe) return safe;
  if (store_)
    if (auto kept = store_->commit_palette(palette); !kept) return kept;
  document_->set_palette(palette);
  changed_ = true;
  palette_previewed_ = false;
  return {};
}

void Session::preview_palette(const Palette& palette) {
  document_->set_palette(palette);
  palette_previewed_ = true;
}

Result<void> Session::reflatten(Scene scene) {
  if (auto safe = keep_safe(); !safe) return safe;
  std::vector<UndoRecord> history = document_->history();
  const std::vector<size_t> starts = stroke_starts_;
  const Scene before = document_->scene();
  const size_t position = document_->history_position();
  if (store_)
    if (auto kept = store_->commit_visibility(scene); !kept) return kept;
  if (auto done = adopt(std::move(scene), std::move(history), position); !done) {
    // What cannot be shown must not be in the file either.
    if (store_)
      if (auto back = store_->commit_visibility(before); !back) return back;
    return done;
  }
  stroke_starts_ = starts;
  changed_ = true;
  return {};
}

Result<void> Session::set_layer_hidden(uint32_t layer, bool hidden) {
  Scene scene = document_->scene();
  scene.layers.at(layer).hidden = hidden;
  return reflatten(std::move(scene));
}
Result<void> Session::set_instance_hidden(uint32_t instance, bool hidden) {
  Scene scene = document_->scene();
  scene.instances.at(instance).hidden = hidden;
  return reflatten(std::move(scene));
}

std::vector<Session::Step> Session::steps() const {
  std::vector<Step> steps;
  const std::vector<UndoRecord>& history = document_->history();
  for (size_t i = 0; i < stroke_starts_.size(); ++i) {
    const size_t end = i + 1 < stroke_starts_.size() ? stroke_starts_[i + 1] : history.size();
    Step step;
    for (size_t at = stroke_starts_[i]; at < end && at < history.size(); ++at) {
      if (step.label.empty()) step.label = history[at].label;
      step.voxels += history[at].voxels_changed;
      ++step.records;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

size_t Session::step_position() const {
  const auto at = std::lower_bound(stroke_starts_.begin(), stroke_starts_.end(), document_->history_position());
  return static_cast<size_t>(at - stroke_starts_.begin());
}

std::string Session::title() const { return title_; }
const fs::path& Session::store_file() const { return store_path_; }

Result<void> Session::save_as(const fs::path& file, const Progress& progress) {
  const auto format = io::format_for_writing(file);
  if (!format) return tl::unexpected(format.error());
  if (std::string_view((*format)->name) != "quarry") return io::write_scene(document_->scene(), file, progress);
  std::error_code error;
  if (store_ && world_file_ && fs::equivalent(file, store_path_, error)) return {};  // every edit is in it already
  if (store_) {
    // The file that holds the edits so far is copied whole: the history goes with it. Closed first, so that the copy is complete.
    const fs::path from = store_path_;
    store_.reset();
    const auto copied = io::Store::copy(from, file);
    auto again = io::Store::open(from);
    if (!again) return tl::unexpected(again.error());
    store_ = std::move(*again);
    if (!copied) return copied;
  } else if (auto saved = io::Store::save(document_->scene(), file, progress); !saved) {
    return saved;
  }
  auto store = io::Store::open(file);
  if (!store) return tl::unexpected(store.error());
  close(false);
  store_ = std::move(*store);
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
