// SPDX-License-Identifier: Apache-2.0
// document_session.hpp - one document being edited, kept safe on disk. An acknowledged change is in a file when the
// call returns. A failed change is nowhere: not in the file, the document or its history.
//
//   Edit (world axes) -> instance's inverse transform -> Document::apply -> Store::commit_edit -> acknowledged
//   at home on a device: DeviceHome::edit, for all of a stroke      -> FollowedFile::flush at its end -> acknowledged
//
// A document opened from a .quarry file is committed to that file. Any other (new, imported) is committed to a recovery
// file. That file is created before the first edit, with the history so far, and removed once the document is saved. A
// session knows nothing of windows. Use it from one thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "app/editor/session/pick.hpp"
#include "app/editor/session/volume_changes.hpp"
#include "engine/home/choice.hpp"
#include "engine/home/followed_file.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::app {

// Where a document's world is stored. `prepare` makes room for a new world in addition to the present one.
// `settle(true)` says that the new one is in use and the old one's memory may be freed. `settle(false)` says that the
// new one is not used. If both are empty, worlds are in plain host memory.
struct WorldPlace {
  std::function<Result<WorldMemory>()> prepare;
  std::function<void(bool used)> settle;
  // Where documents are to be at home. `prepare_home` gives that memory for one world more, after `prepare`, or the
  // host's for one in parts. Errors: as engine::home_memory.
  engine::Home home = engine::Home::host;
  std::function<Result<engine::HomeMemory>(engine::Home home)> prepare_home = {};
  // What a document may take of a device's memory. A .quarry that would take more is edited in parts: the pages that
  // edits, picks and frames need are there (engine/home/resident_pages.hpp), and `frames` tells which may still be
  // seen. So is one on the host that does not fit the budget of its reading (ReadOptions).
  uint64_t device_memory_bytes = UINT64_MAX;
  // Of the host's memory, for pages that such a document has read; 0: as ResidentPages::create.
  uint64_t page_memory_bytes = 0;
  engine::ResidentPages::Frames frames = {};
};

// A world at home on a device, with what must outlive it.
struct DeviceWorld {
  std::unique_ptr<engine::DeviceBlocks> blocks;  // null: shaders cannot read it
  std::unique_ptr<engine::DeviceHome> home;
  engine::Home kind = engine::Home::device;  // host: in parts, which host threads edit as a device would
  engine::ResidentPages* pages() const { return home->pages(); }  // null: all of it is there
};

class Session {
 public:
  // `recovery`: directory for documents without a world file; empty: they are not kept safe (and say so in notice()).
  Session(WorldPlace place, std::filesystem::path recovery);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Each call replaces the document only if it succeeds. Errors are those of the readers and of Document::create.
  Result<void> start_new();
  Result<void> open(const std::filesystem::path& file, const io::ReadOptions& options = {});
  // Opens a recovery file as a document that is not saved yet.
  Result<void> recover(const std::filesystem::path& file);

  // Of this and later documents, as Document's. The journal of a world file or recovery file keeps all steps: undo and
  // redo take from there what memory does not have. Without such a file they are gone; the first time take_notice()
  // says so.
  void set_history_budget(uint64_t bytes);
  uint64_t history_budget() const { return history_budget_; }
  uint64_t dropped_steps() const;  // that can no longer be undone, since the document was opened

  // A document is at home on a device if that is asked for, or with Home::automatic where it can be, and the scene
  // shows one volume, at the origin; else on the host, and home_reason() says why. A .quarry file goes straight there.
  // At home on a device, the edits of a stroke are one part of the history, and are in the file when the stroke ends. A
  // change that cannot be written there is undone, and stays to be redone. If the device is lost, the call that notices
  // opens the document again, on the host, as it is in its file; its error, device_lost, says so, and what the last
  // steps there are.
  bool on_device() const { return device_ != nullptr; }
  engine::Home at_home() const {  // host, device or emulated
    using enum engine::Home;
    return device_ ? device_->kind : host;
  }
  const std::string& home_reason() const { return home_reason_; }
  // Null: at home on the host. Frames may read the world for as long as somebody has this.
  const std::shared_ptr<DeviceWorld>& device_world() const { return device_; }
  // For who notices it elsewhere, while drawing. Returns the error to show.
  Error reopen_on_host(const Error& lost);

  bool has_document() const { return document_.has_value(); }
  // At home on a device the document and its scene have no voxels; nor has it a history.
  const Document& document() const { return *document_; }
  Document& document() { return *document_; }
  const Scene& scene() const { return document_->scene(); }
  // The scene with all its voxels. Of a device's world every brick is read back. Errors: device.
  Result<Scene> whole_scene() const;
  // What is shown, at either home. On a device: asked for once a version; what cannot be asked is as it was last.
  struct Shown {
    uint64_t version = 0, voxels = 0, bricks = 0, world_bytes = 0;
    Box3 bounds;  // tight, in voxels
  };
  const Shown& shown() const;
  // The first voxel along the ray, of what is shown.
  std::optional<Pick> pick(const Ray& ray) const;
  bool can_undo() const { return step_position() > 0; }
  bool can_redo() const;

  // The instance that shows the voxel, by the scene's overlap rule among visible instances. None for empty space.
  std::optional<uint32_t> instance_at(Int3 voxel) const;
  // The instance that edits act on. Clamped to the existing ones.
  uint32_t active_instance() const { return active_instance_; }
  void set_active_instance(uint32_t instance);
  // The bounds of the active instance's voxels, in world axes. Empty if it has none or is hidden. Computed again after
  // a change, not on each call.
  Box3 active_box() const;

  // Applies one edit, in world axes, to the active instance's volume. Returns the number of voxels changed. On failure
  // nothing has changed, neither in memory nor in the file.
  Result<uint64_t> apply(const Edit& edit);
  // Makes the active instance's volume what the change makes of it, as one step, also in a stroke. Returns the number
  // of voxels changed. On failure nothing has changed. Errors: those of the change, and as apply().
  Result<uint64_t> change(const VolumeChange& change);
  // Combines it with what a file shows, of any format that is read, in world axes. Materials that the palette does not
  // have become the ones that look most like them, which notice() says. Errors: those of the reader, and as change().
  Result<uint64_t> combine(const std::filesystem::path& file, BooleanKind kind);
  // Edits between the two calls are one step. They are undone and redone together, also after the file was closed and
  // opened again. If an edit fails, the step consists of the others.
  // Errors: those of apply(), at the end of a stroke on a device; then none of its edits is left.
  Result<void> begin_stroke();
  Result<void> end_stroke();
  // One step back or forth: all of it, or nothing. With nothing to undo the call succeeds and does nothing.
  Result<void> undo();
  Result<void> redo();
  // A step of the history. On failure the last committed palette stays.
  Result<void> set_palette(const Palette& palette);
  // Shows a palette without committing it. set_palette follows when the user releases the mouse. Any other action on
  // the document first ends the preview.
  void preview_palette(const Palette& palette);
  bool previews_palette() const { return kept_palette_.has_value(); }
  // Flattens the scene again with this layer or instance shown or hidden. This is not a step, because hiding loses
  // nothing.
  Result<void> set_layer_hidden(uint32_t layer, bool hidden);
  Result<void> set_instance_hidden(uint32_t instance, bool hidden);

  struct Step {
    std::string label;
    uint64_t voxels = 0;
    size_t records = 0;      // the step's records in Document's history
    bool continues = false;  // it belongs to the step before it, in a list of some of the steps
  };
  std::vector<Step> steps() const;  // strokes and changes of the palette, oldest first; those of the file alone, too
  size_t step_position() const;     // steps()[0 .. position) are applied
  Result<void> go_to_step(size_t position);

  const std::filesystem::path& file() const { return file_; }  // opened or saved; empty for a new document
  bool is_world_file() const { return world_file_; }           // edits are committed directly to file()
  bool unsaved() const { return !world_file_ && changed_; }
  // When what was changed last came to be in a file, the user's or that for recovery; none: nothing has been changed
  // since the document was opened, or something is not in a file yet.
  std::optional<std::chrono::system_clock::time_point> kept_at() const { return kept_at_; }
  std::string title() const;
  const std::filesystem::path& store_file() const;  // holds the acknowledged edits; empty before the first
  // What has been done since the session began; what failed or changed nothing is not counted.
  struct Done {
    uint64_t edits = 0, undone = 0, redone = 0;  // edits by shape; steps
    uint64_t opened = 0, saved = 0;              // documents opened or begun; files written
  };
  const Done& done() const { return done_; }
  // Writes a copy through the format registry. After that nothing is unsaved, whatever the format. Saving as .quarry
  // also moves the session to that file, history included. So does saving a document without a world file in a format
  // that reads back what was written (Format::returns).
  Result<void> save_as(const std::filesystem::path& file, const Progress& progress = {});
  // The consequences of writing the document back into file().
  struct WriteBack {
    std::vector<std::string> losses;  // of the document and of the present file: what will be missing
    bool changed_on_disk = false;     // another program changed it since it was read or written here
  };
  // Errors: unsupported and not_found, with the reason why the document cannot be written back. Use save_as then.
  Result<WriteBack> write_back() const;
  void discard_changes() { changed_ = false; }
  // Closes the document. `keep_recovery` keeps unsaved work for the next start.
  void close(bool keep_recovery);
  // A sentence for the user that is not an error, such as a reader's warning or that something cannot be kept safe. It
  // is returned once.
  std::string take_notice();

 private:
  class NewWorld;
  Result<void> write_as(const std::filesystem::path& file, const Progress& progress);
  Result<void> open_file(const std::filesystem::path& file, const io::ReadOptions& options, bool whole_history);
  // Of the file's records: how many are before those in memory, and where these end.
  uint64_t records_before() const;
  uint64_t records_until() const;
  bool has_step(bool back) const;
  Result<bool> recall(bool back);
  void note_steps() const;
  // The same, if pages that left have let steps go to the file since.
  void note_forgotten_steps() const;
  // What a document begins with. With a `file` the scene has no bricks: they go from there straight to a device.
  struct Content {
    Scene scene;
    std::vector<UndoRecord> history = {};
    size_t position = 0;
    io::StoreReader* file = nullptr;
    bool history_of_file = false;
    uint64_t host_memory_bytes = 0;  // for it on the host, in parts; 0: not there
    bool is_wide = false;            // one grid does not hold the file's bricks
    // Of a mesh's file, instead of the scene: what reads it, into the sink, if there is one and CUDA makes the voxels.
    std::function<Result<Scene>(const DeviceSink* sink)> read_mesh = {};
  };
  struct Made {
    std::optional<Document> document;
    std::shared_ptr<DeviceWorld> device;
    std::string home_reason;
  };
  Result<Made> make(NewWorld& world, Content content, const Progress& progress);
  void take(NewWorld& world, Made made);
  Result<void> adopt(NewWorld& world, Content content, const Progress& progress = {});
  Result<void> reflatten(Scene scene);
  Result<void> keep_safe();
  Result<void> check_shown(const Instance& instance) const;
  void end_preview();
  void notice_drops();
  void take_warnings(const std::vector<std::string>& warnings);
  Result<void> step(bool back);
  Document::Persist commit_with(Result<void> (io::Store::*commit)(const Scene&, std::span<const UndoRecord>));
  Edit in_volume_axes(const Edit& edit, const Instance& instance) const;
  void drop_recovery_file();
  io::Store* store() { return store_ ? &*store_ : followed_ ? &followed_->store() : nullptr; }
  const io::Store* store() const { return const_cast<Session*>(this)->store(); }
  void kept();

  // At home on a device.
  Result<std::shared_ptr<DeviceWorld>> device_world_of(Content& content, std::string& reason, const Progress& progress);
  Result<bool> open_on_device(const std::filesystem::path& file, bool whole_history, uint64_t host_memory_bytes,
                              const Progress& progress);
  static Result<void> fits_on_host(const std::filesystem::path& file, const io::ReadOptions& options);
  Result<void> go_on_in(io::Store store, bool written, int64_t first_record, bool there = true);
  void let_file_go();
  engine::HomedWorld homed() { return {*document_, device_ ? device_->home.get() : nullptr}; }
  engine::DeviceHome& home() const { return *device_->home; }
  template <class T>
  Result<T> heard(Result<T> result) {
    if (!result && device_ && result.error().code == ErrorCode::device_lost)
      return tl::unexpected(reopen_on_host(result.error()));
    return result;
  }
  Result<void> open_again(const std::filesystem::path& file);
  Result<uint64_t> apply_there(const Edit& edit);
  Result<uint64_t> change_there(const VolumeChange& change);
  Result<std::optional<VolumeChange>> mesh_there(const std::filesystem::path& file, const io::ReadOptions& options,
                                                 BooleanKind kind, uint32_t& replaced);
  Result<void> end_stroke_there();
  Result<void> step_there(bool back);
  Result<void> set_palette_there(const Palette& palette);
  Result<void> keep_or_take_back(bool undone);
  Result<void> read_back(Content& content, bool history);
  const Shown& shown_there() const;
  std::optional<Pick> pick_there(const Ray& ray) const;
  bool is_voxel_there(Int3 voxel) const;

  WorldPlace place_;
  std::filesystem::path recovery_, file_, store_path_;
  std::optional<Document> document_;
  std::optional<io::Store> store_;                // of a world at home on the host
  std::shared_ptr<DeviceWorld> device_;           // null: at home on the host
  std::optional<engine::FollowedFile> followed_;  // of a world at home on a device
  std::string home_reason_;
  mutable Shown shown_;
  Done done_;
  std::optional<std::chrono::system_clock::time_point> kept_at_;
  bool world_file_ = false, changed_ = false, in_stroke_ = false, stroke_has_edit_ = false;
  std::optional<Palette> kept_palette_;  // set while another one is shown
  // About file_, if it is no world file: the identity of its bytes, how they were read, and what reading left out.
  struct Origin {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t modified_ns = 0;
    const io::Format* format = nullptr;
    std::vector<std::string> left_out;
    bool same_file(const Origin& other) const {
      return device == other.device && inode == other.inode && bytes == other.bytes && modified_ns == other.modified_ns;
    }
  };
  static std::optional<Origin> look_at(const std::filesystem::path& file);
  std::optional<Origin> origin_;
  uint32_t active_instance_ = 0;
  mutable std::optional<std::tuple<uint64_t, uint32_t, Box3>> active_box_;  // with document version and instance
  std::string title_, notice_;
  uint64_t history_budget_ = 0;  // bytes; 0: no limit
  uint64_t dropped_before_ = 0;  // steps that earlier worlds of this document dropped
  bool drops_noticed_ = false;
  mutable std::vector<Step> older_, newer_;  // of the file alone, before and after those in memory
  mutable uint64_t steps_dropped_ = 0;       // when these were noted
};

}  // namespace quarry::app
