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
#include "engine/home/drawing.hpp"
#include "voxel/io/export_loss.hpp"
#include "voxel/io/quarry/reader.hpp"

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
    memory_.pool.reset();  // it is in memory that goes now
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

Result<Session::Made> Session::make(NewWorld& world, Content content, const Progress& progress) {
  Made made;
  Scene& scene = content.scene;
  const auto has_an_instance = [&] {
    if (scene.volumes.empty()) scene.volumes.push_back({"voxels", {}, {}});
    if (scene.instances.empty()) scene.instances.push_back({});
  };
  has_an_instance();
  QRY_TRY_ASSIGN(made.device, device_world_of(content, made.home_reason, progress));
  if (!made.device && content.read_mesh) {
    QRY_TRY_ASSIGN(scene, content.read_mesh(nullptr));
    has_an_instance();
  }
  if (made.device) {
    scene.volumes[0].bricks.clear();
    content.history.clear();
    QRY_TRY(made.device->home->set_history_budget(history_budget_));
  } else if (content.file) {
    return made;
  }
  QRY_TRY_ASSIGN(made.document, Document::create(std::move(scene), world.memory(), progress));
  made.document->set_history_budget(history_budget_);
  QRY_TRY(made.document->restore_history(std::move(content.history), made.device ? 0 : content.position));
  return made;
}

void Session::take(NewWorld& world, Made made) {
  dropped_before_ = 0;
  drops_noticed_ = false;
  active_box_.reset();
  kept_palette_.reset();
  kept_at_.reset();
  shown_ = {};
  document_ = std::move(made.document);
  device_ = std::move(made.device);
  older_.clear();
  newer_.clear();
  home_reason_ = std::move(made.home_reason);
  if (device_) home().attach(*document_);
  world.use();
  in_stroke_ = stroke_has_edit_ = false;
  set_active_instance(active_instance_);
}

Result<void> Session::adopt(NewWorld& world, Content content, const Progress& progress) {
  QRY_TRY_ASSIGN(auto made, make(world, std::move(content), progress));
  take(world, std::move(made));
  return {};
}

void Session::set_history_budget(uint64_t bytes) {
  history_budget_ = bytes;
  if (!document_) return;
  document_->set_history_budget(bytes);
  // What the device has no memory for, or does not answer, stays for the next call.
  if (device_) (void)home().set_history_budget(bytes);
  notice_drops();
}

uint64_t Session::dropped_steps() const {
  if (!document_ || store()) return dropped_before_;
  return dropped_before_ + (device_ ? home().dropped_steps() : document_->dropped_steps());
}

void Session::notice_drops() {
  if (drops_noticed_ || dropped_steps() == 0) return;
  drops_noticed_ = true;
  notice_ = fmt::format("{}the history's memory of {} is full: the oldest steps can no longer be undone",
                        notice_.empty() ? "" : notice_ + "; ", bytes_text(history_budget_));
}

Result<void> Session::start_new() {
  NewWorld world(place_);
  QRY_TRY(world.prepare());
  Scene scene;
  scene.volumes.push_back({"voxels", {}, {}});
  scene.instances.push_back({});
  active_instance_ = 0;
  QRY_TRY(adopt(world, {std::move(scene)}));
  close(false);
  ++done_.opened;
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

// Chunk by chunk: the host never has the world. False: it is to be opened on the host.
Result<bool> Session::open_on_device(const fs::path& file, bool whole_history, uint64_t host_memory_bytes,
                                     const Progress& progress) {
  if (place_.home == engine::Home::host && host_memory_bytes == 0) return false;
  NewWorld world(place_);
  Made made;
  uint64_t fingerprint = 0;
  {
    QRY_TRY_ASSIGN(auto reader, io::StoreReader::open(file));
    if (!engine::DeviceHome::takes(reader.scene())) return false;
    QRY_TRY(world.prepare());
    Content content{reader.scene()};
    content.file = &reader;
    content.history_of_file = whole_history;
    content.host_memory_bytes = host_memory_bytes;
    QRY_TRY_ASSIGN(const auto chunks, reader.chunks(0));
    content.is_wide = !engine::ResidentPages::one_grid_holds(chunks);
    QRY_TRY_ASSIGN(fingerprint, reader.fingerprint());
    QRY_TRY_ASSIGN(made, make(world, std::move(content), progress));
  }
  if (!made.device) return false;
  QRY_TRY_ASSIGN(auto store, io::Store::open(file));
  QRY_TRY_ASSIGN(const uint64_t now, store.fingerprint());
  if (now != fingerprint)
    return fail(ErrorCode::conflict, file.string() + ": another program has changed it just now: open it again");
  take(world, std::move(made));
  close(false);
  take_warnings(store.warnings());
  // The history of a document in parts stays in the file.
  if (!whole_history || device_->pages()) home().begin_after(store.history_position());
  QRY_TRY(go_on_in(std::move(store), false, 0, device_->pages() == nullptr));
  return true;
}

Result<void> Session::open(const fs::path& file, const io::ReadOptions& options) {
  QRY_TRY(open_file(file, options, false));
  ++done_.opened;
  return {};
}

// As a whole.
Result<void> Session::fits_on_host(const fs::path& file, const io::ReadOptions& options) {
  QRY_TRY(io::check_world_fits(file, options));
  auto reader = io::StoreReader::open(file);
  if (!reader || !engine::DeviceHome::takes(reader->scene())) return {};  // who reads it says what is wrong
  QRY_TRY_ASSIGN(const auto chunks, reader->chunks(0));
  if (engine::ResidentPages::one_grid_holds(chunks)) return {};
  return fail(ErrorCode::out_of_bounds,
              fmt::format("{}: it is larger than one grid, and can be edited only in parts of "
                          "what memory holds",
                          file.string()));
}

// The history of a world file stays there until undo or redo wants some of it.
Result<void> Session::open_file(const fs::path& file, const io::ReadOptions& options, bool whole_history) {
  QRY_TRY_ASSIGN(const auto format, io::format_for_reading(file));
  if (format->kind == io::FormatKind::world) {
    std::error_code error;
    if (store() && fs::equivalent(file, store_path_, error)) return {};  // it is already open here
    QRY_TRY_ASSIGN(bool there, open_on_device(file, whole_history, 0, options.progress));
    if (auto fits = there ? Result<void>() : fits_on_host(file, options); !fits) {
      // In parts, in half of what there is: bringing large edits to the file takes some hundred MB, too.
      const uint64_t memory_bytes = options.budget ? options.budget->available_bytes() / 2 : uint64_t(2) << 30;
      const auto in_parts = place_.prepare_home && memory_bytes
                                ? open_on_device(file, whole_history, memory_bytes, options.progress)
                                : Result<bool>(false);
      if (!in_parts && in_parts.error().code != ErrorCode::unsupported &&
          in_parts.error().code != ErrorCode::invalid_argument)
        return tl::unexpected(in_parts.error());
      if (!in_parts || !*in_parts) return fits;
      there = true;
    }
    if (!there) {
      QRY_TRY_ASSIGN(auto store, io::Store::open(file));
      NewWorld world(place_);
      QRY_TRY(world.prepare());
      Content content;
      QRY_TRY_ASSIGN(content.scene,
                     store.read_scene(options.progress, whole_history ? &content.history : nullptr,
                                      whole_history ? &content.position : nullptr, &world.memory().new_pool()));
      QRY_TRY(adopt(world, std::move(content), options.progress));
      close(false);
      take_warnings(store.warnings());
      store_ = std::move(store);
    }
    store_path_ = file;
    world_file_ = true;
  } else {
    std::vector<std::string> warnings;
    io::ReadOptions read = options;
    read.warnings = &warnings;
    auto origin = look_at(file);  // taken before the file is read, so that a change during reading is noticed
    Content content;
    if (format->kind == io::FormatKind::mesh && place_.home != engine::Home::host) {
      content.read_mesh = [&](const DeviceSink* sink) {
        warnings.clear();
        read.sink = sink;
        return io::read_scene(file, read);
      };
    } else {
      QRY_TRY_ASSIGN(content.scene, io::read_scene(file, read));
    }
    NewWorld world(place_);
    QRY_TRY(world.prepare());
    QRY_TRY(adopt(world, std::move(content), options.progress));
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
  note_steps();
  notice_drops();
  return {};
}

void Session::take_warnings(const std::vector<std::string>& warnings) {
  if (!warnings.empty())
    notice_ =
        warnings.size() == 1 ? warnings[0] : fmt::format("{} (and {} more warnings)", warnings[0], warnings.size() - 1);
}

// The world is lost with its device, the file is there.
Result<void> Session::open_again(const fs::path& file) {
  place_.home = engine::Home::host;
  followed_.reset();  // first, so that it can be opened
  NewWorld world(place_);
  QRY_TRY(world.prepare());
  if (file.empty()) {  // nothing has been changed since it was opened
    if (!file_.empty()) return open(fs::path(file_));
    return adopt(world, {});
  }
  QRY_TRY_ASSIGN(auto store, io::Store::open(file));
  Content content;
  QRY_TRY_ASSIGN(content.scene, store.read_scene({}, nullptr, nullptr, &world.memory().new_pool()));
  QRY_TRY(adopt(world, std::move(content)));
  store_ = std::move(store);
  note_steps();
  return {};
}

Error Session::reopen_on_host(const Error& lost) {
  const char* const left = kept_at_               ? ""
                           : !store_path_.empty() ? ", without the change under way"
                           : changed_             ? ": its changes were kept in no file, and are gone"
                                                  : "";
  if (const auto opened = open_again(store_path_); !opened)
    return {ErrorCode::device_lost,
            fmt::format("{}; '{}' could not be opened again: {}", lost.message, title_, opened.error().message)};
  std::string last;
  const std::vector<Step> steps = this->steps();
  for (size_t i = step_position(), shown = 0; i-- > 0 && shown < 3; ++shown)
    last = steps[i].label + (last.empty() ? "" : ", ") + last;
  return {
      ErrorCode::device_lost,
      fmt::format("{}. '{}' was opened again, at home on the host, as it is in its file{}; the last steps there: {}",
                  lost.message, title_, left, last.empty() ? "none" : last)};
}

Result<void> Session::recover(const fs::path& file) {
  QRY_TRY(open_file(file, {}, true));
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
  if (!store() || world_file_) return;
  let_file_go();
  std::error_code ignored;
  fs::remove(store_path_, ignored);
  store_path_.clear();
}

void Session::let_file_go() {
  store_.reset();
  if (!followed_) return;
  followed_.reset();
  (void)engine::FollowedFile::let_go(homed());  // a device that does not answer has let it go, too
}

void Session::close(bool keep_recovery) {
  if (!(keep_recovery && changed_)) drop_recovery_file();
  let_file_go();
  store_path_.clear();
  file_.clear();
  origin_.reset();
  world_file_ = changed_ = false;
  notice_.clear();
}

std::optional<uint32_t> Session::instance_at(Int3 voxel) const {
  if (device_) return is_voxel_there(voxel) ? std::optional(0u) : std::nullopt;
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
  const std::pair key{device_ ? shown().version : document_->version(), active_instance_};
  if (active_box_ && std::get<0>(*active_box_) == key.first && std::get<1>(*active_box_) == key.second)
    return std::get<2>(*active_box_);
  const Scene& scene = document_->scene();
  const Instance& instance = scene.instances[active_instance_];
  Box3 box;
  if (device_) box = shown().bounds;  // at the origin
  else if (scene.instance_visible(instance)) box = scene.volumes[instance.volume].bricks.bounds();
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
  if (store() || recovery_.empty()) return {};
  QRY_TRY_ASSIGN(auto file, new_recovery_file(recovery_, title_));
  QRY_TRY(engine::FollowedFile::write_all(homed(), {file, false}));
  QRY_TRY_ASSIGN(auto opened, io::Store::open(file));
  QRY_TRY(go_on_in(std::move(opened), true, 0));
  store_path_ = file;
  // What looked at the history has ended the step of a stroke, of which nothing has been made yet.
  return device_ && in_stroke_ ? home().begin_step() : Result<void>();
}

// The store has what the document has now. `written`, `first_record`, `there`: as FollowedFile::begin() has it.
Result<void> Session::go_on_in(io::Store store, bool written, int64_t first_record, bool there) {
  if (!device_) {
    store_ = std::move(store);
    return {};
  }
  if (written) {
    QRY_TRY_ASSIGN(const uint64_t dropped, homed().dropped_records());
    first_record = -int64_t(dropped);
  }
  QRY_TRY_ASSIGN(auto followed, engine::FollowedFile::begin(std::move(store), homed(), written, first_record, there));
  followed_ = std::move(followed);
  return {};
}

void Session::kept() {
  changed_ = true;
  kept_at_.reset();
  if (store()) kept_at_ = std::chrono::system_clock::now();
  note_steps();
}

uint64_t Session::records_before() const {
  if (!device_) return store_->history_position() - document_->history_position();
  const auto dropped = home().dropped_records();
  return uint64_t(followed_->first_record() + int64_t(dropped ? *dropped : 0));
}
uint64_t Session::records_until() const {
  return records_before() + (device_ ? home().records() : uint64_t(document_->history().size()));
}

// What the steps are called that only the file has, as far as it tells.
void Session::note_forgotten_steps() const {
  if (device_ && device_->pages() && home().dropped_steps() != steps_dropped_) note_steps();
}

namespace {

// Of a step some parts may be the file's alone.
void add_part(std::vector<Session::Step>& steps, Session::Step part) {
  if (!part.continues || steps.empty()) {
    steps.push_back(std::move(part));
    return;
  }
  steps.back().voxels += part.voxels;
  steps.back().records += part.records;
}

}  // namespace

void Session::note_steps() const {
  if (device_) steps_dropped_ = home().dropped_steps();
  if (!store()) {
    older_.clear();
    newer_.clear();
    return;
  }
  const auto records_in = [](const std::vector<Step>& steps) {
    uint64_t sum = 0;
    for (const Step& step : steps) sum += step.records;
    return sum;
  };
  const auto add = [&](std::vector<Step>& to, uint64_t first, uint64_t end) {
    if (first >= end) return;
    if (auto names = const_cast<Session*>(this)->store()->step_names(first, end))
      for (io::StepName& name : *names)
        add_part(to, {std::move(name.label), name.voxels, size_t(name.records), name.continues});
  };
  const uint64_t before = records_before(), until = records_until(), all = store()->history_length();
  uint64_t known = records_in(older_);
  for (; known > before; older_.pop_back()) known -= older_.back().records;
  add(older_, known, before);
  if (records_in(newer_) == all - std::min(until, all)) return;
  newer_.clear();
  add(newer_, until, all);
}

bool Session::has_step(bool back) const {
  if (!device_) return back ? document_->can_undo() : document_->can_redo();
  const auto there = home().has_step(back);
  return there && *there;
}

// Brings a step from the file to memory. False: on a device it is redone already.
Result<bool> Session::recall(bool back) {
  if (device_) {
    if (back) return followed_->recall_older(homed());
    QRY_TRY(followed_->redo_newer(homed()));
    return false;
  }
  QRY_TRY_ASSIGN(auto step, back ? store_->step_before(records_before()) : store_->step_from(records_until()));
  QRY_TRY(back ? document_->recall_older(std::move(step)) : document_->recall_newer(std::move(step)));
  return true;
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
  if (device_) return heard(change_there(change));
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
  kept();
  return record->voxels_changed;
}

Result<uint64_t> Session::combine(const fs::path& file, BooleanKind kind) {
  std::vector<std::string> warnings;
  io::ReadOptions read;
  read.warnings = &warnings;
  end_preview();
  uint32_t replaced = 0;
  QRY_TRY_ASSIGN(auto by_file, heard(mesh_there(file, read, kind, replaced)));
  if (!by_file) {
    warnings.clear();
    QRY_TRY_ASSIGN(const Scene other, io::read_scene(file, read));
    const Scene& scene = document_->scene();
    QRY_TRY_ASSIGN(by_file, combined(other, scene.instances[active_instance_], scene.palette, kind, replaced));
  }
  QRY_TRY_ASSIGN(const uint64_t voxels, change(*by_file));
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
  QRY_TRY(heard(keep_safe()));
  if (device_) {
    QRY_TRY_ASSIGN(const uint64_t voxels, heard(apply_there(edit)));
    done_.edits += voxels > 0 ? 1 : 0;
    return voxels;
  }
  QRY_TRY_ASSIGN(const auto record,
                 document_->apply(instance.volume, in_volume_axes(edit, instance), 0, in_stroke_ && stroke_has_edit_,
                                  commit_with(&io::Store::commit_edit)));
  if (record->changes.empty()) return 0;
  const uint64_t voxels = record->voxels_changed;
  stroke_has_edit_ = true;
  ++done_.edits;
  kept();
  notice_drops();
  return voxels;
}

Result<void> Session::begin_stroke() {
  in_stroke_ = true;
  stroke_has_edit_ = false;
  return device_ ? heard(home().begin_step()) : Result<void>();
}
Result<void> Session::end_stroke() {
  in_stroke_ = false;
  return device_ ? heard(end_stroke_there()) : Result<void>();
}

Result<void> Session::step(bool back) {
  end_preview();
  stroke_has_edit_ = false;  // later edits of the stroke are a step of their own
  if (back ? !can_undo() : !can_redo()) return {};
  QRY_TRY(heard(keep_safe()));
  bool there = true;  // not redone already
  if (!has_step(back)) {
    QRY_TRY_ASSIGN(there, heard(recall(back)));
  }
  if (!there) {
    QRY_TRY(heard(keep_or_take_back(back)));
  } else if (device_) {
    QRY_TRY(heard(step_there(back)));
  } else {
    const auto done = back ? document_->undo(commit_with(&io::Store::commit_undo))
                           : document_->redo(commit_with(&io::Store::commit_redo));
    QRY_TRY(done);
    kept();
  }
  ++(back ? done_.undone : done_.redone);
  return {};
}

Result<void> Session::undo() { return step(true); }
Result<void> Session::redo() { return step(false); }

Result<void> Session::go_to_step(size_t position) {
  while (step_position() > position) QRY_TRY(undo());
  while (step_position() < position && can_redo()) QRY_TRY(redo());
  return {};
}

Result<void> Session::set_palette(const Palette& palette) {
  end_preview();
  if (palette == document_->scene().palette) return {};
  QRY_TRY(heard(keep_safe()));
  stroke_has_edit_ = false;
  if (device_) return heard(set_palette_there(palette));
  const auto record = document_->change_palette(palette, commit_with(&io::Store::commit_edit));
  QRY_TRY(record);
  kept();
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
  // The history of a world file stays there; that of others must not be gone with a recovery file.
  const bool carries = !store() || !world_file_;
  Content content{std::move(scene)};
  if (carries && !device_) content.history = document_->history(), content.position = document_->history_position();
  if (device_) QRY_TRY(read_back(content, carries));
  Scene before = document_->scene();
  for (Volume& volume : before.volumes) volume.bricks.clear();  // the old world's memory may go before `before`
  NewWorld world(place_);
  QRY_TRY(world.prepare());
  const size_t applied = content.position;
  if (store()) QRY_TRY(store()->commit_visibility(content.scene));
  const uint64_t dropped = dropped_steps();
  const bool noticed = drops_noticed_;
  auto made = make(world, std::move(content), {});
  if (!made) {
    // What cannot be shown must not be in the file.
    if (store()) QRY_TRY(store()->commit_visibility(before));
    return tl::unexpected(made.error());
  }
  std::optional<io::Store> file;
  if (followed_) file = followed_->take();
  else file = std::exchange(store_, std::nullopt);
  followed_.reset();
  take(world, std::move(*made));
  dropped_before_ = dropped;
  drops_noticed_ = noticed;
  if (file) {
    const uint64_t earlier = file->history_position() - applied;
    if (device_) home().begin_after(earlier);
    else document_->begin_after(earlier);
    QRY_TRY(go_on_in(std::move(*file), false, 0));
  }
  kept();
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
  note_forgotten_steps();
  std::vector<Step> steps = older_;
  if (device_)
    for (auto& step : home().steps())
      add_part(steps, {std::move(step.label), step.voxels, size_t(step.records), step.continues});
  else
    for (const UndoRecord& record : document_->history()) {
      if (!record.continues || steps.size() == older_.size()) steps.push_back({record.label, 0, 0});
      steps.back().voxels += record.voxels_changed;
      ++steps.back().records;
    }
  for (const Step& step : newer_) add_part(steps, step);
  return steps;
}

size_t Session::step_position() const {
  note_forgotten_steps();
  if (!device_) return older_.size() + document_->step_position();
  const auto there = home().steps();
  const bool is_one = !older_.empty() && !there.empty() && there.front().continues && home().position() > 0;
  return older_.size() + size_t(home().position()) - (is_one ? 1 : 0);
}
bool Session::can_redo() const {
  note_forgotten_steps();
  return has_step(false) || !newer_.empty();
}

Result<Scene> Session::whole_scene() const {
  if (!device_) return document_->scene();
  // Of a document in parts its file has all.
  if (device_->pages() && device_->pages()->lacks_some())
    return const_cast<Session*>(this)->store()->read_scene({}, nullptr, nullptr);
  return engine::whole_scene(home(), *document_);
}

const Session::Shown& Session::shown() const {
  if (device_) return shown_there();
  const World& world = document_->world();
  shown_ = {world.version(), world.voxel_count(), world.brick_count(), world.size_bytes(), world.bounds()};
  return shown_;
}

std::optional<Pick> Session::pick(const Ray& ray) const {
  return device_ ? pick_there(ray) : pick_voxel(document_->world(), ray);
}

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
  QRY_TRY_ASSIGN(const Scene whole, whole_scene());
  for (io::ExportLoss& loss : io::export_losses(whole, **writer)) meant.losses.push_back(std::move(loss.text));
  for (const std::string& sentence : origin_->left_out) meant.losses.push_back("not read: " + sentence);
  const auto now = look_at(file_);
  meant.changed_on_disk = now && !now->same_file(*origin_);
  return meant;
}

Result<void> Session::save_as(const fs::path& file, const Progress& progress) {
  QRY_TRY(write_as(file, progress));
  ++done_.saved;
  return {};
}

Result<void> Session::write_as(const fs::path& file, const Progress& progress) {
  end_preview();
  QRY_TRY_ASSIGN(const auto format, io::format_for_writing(file));
  remove_left_behind(file);
  if (format->kind != io::FormatKind::world) {
    {
      QRY_TRY_ASSIGN(const Scene whole, whole_scene());
      QRY_TRY(io::write_scene(whole, file, progress));
    }
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
  if (store() && world_file_ && fs::equivalent(file, store_path_, error)) return {};  // every edit is in it already
  const bool had_file = store() != nullptr;
  const int64_t first_record = followed_ ? followed_->first_record() : 0;
  if (had_file) {
    // The file with the edits so far is copied whole, with its history. It is closed first, so that the copy is
    // complete.
    if (followed_) QRY_TRY(followed_->flush(homed()));
    const fs::path from = store_path_;
    if (followed_) (void)followed_->take();
    store_.reset();
    const auto copied = io::Store::copy(from, file);
    QRY_TRY_ASSIGN(auto again, io::Store::open(from));
    if (followed_) followed_->replace(std::move(again));
    else store_ = std::move(again);
    QRY_TRY(copied);
  } else {
    QRY_TRY(engine::FollowedFile::write_all(homed(), file, progress));
  }
  QRY_TRY_ASSIGN(auto opened, io::Store::open(file));
  if (device_ && device_->pages()) {  // what is not there is in this file now
    followed_->replace(std::move(opened));
    store_path_ = file_ = file;
    title_ = file.filename().string();
    return {};
  }
  const auto kept_at = kept_at_;
  close(false);
  store_path_ = file_ = file;
  title_ = file.filename().string();
  world_file_ = true;
  kept_at_ = kept_at;
  return go_on_in(std::move(opened), !had_file, first_record);
}

std::string Session::take_notice() {
  std::string taken;
  taken.swap(notice_);
  return taken;
}

}  // namespace quarry::app
