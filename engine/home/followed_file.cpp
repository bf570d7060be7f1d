// SPDX-License-Identifier: Apache-2.0
// followed_file.cpp - writes a world whole, or what of it has changed.
#include "engine/home/followed_file.hpp"

#include <utility>

#include "engine/home/drawing.hpp"
#include "engine/home/resident_pages.hpp"

namespace quarry::engine {
namespace {

Result<void> follow(const HomedWorld& world, bool written) {
  if (world.home) return world.home->follow(written);
  world.document.follow();
  return {};
}

ResidentPages* pages_of(const HomedWorld& world) { return world.home ? world.home->pages() : nullptr; }

// No page comes or goes while the file is used.
ResidentPages::Stay stay_of(const HomedWorld& world) {
  return world.home ? world.home->stay_there() : ResidentPages::Stay();
}

}  // namespace

Result<uint64_t> HomedWorld::dropped_records() const {
  return home ? home->dropped_records() : Result<uint64_t>(document.dropped_records());
}

Result<void> FollowedFile::write_all(const HomedWorld& world, const io::Destination& to, const Progress& progress) {
  const Document& document = world.document;
  if (!world.home)
    return io::Store::save_with_history(document.scene(), document.history(), document.history_position(), to,
                                        progress);
  QRY_TRY_ASSIGN(const Scene scene, whole_scene(*world.home, document));
  QRY_TRY_ASSIGN(auto history, world.home->history());
  return io::Store::save_with_history(
      scene, [&] { return history.records(); }, [&] { return size_t(history.position()); }, to, progress);
}

Result<FollowedFile> FollowedFile::begin(io::Store store, const HomedWorld& world, bool written, int64_t first_record,
                                         bool there, const Progress& progress) {
  FollowedFile file(std::unique_ptr<State>(
      new State{std::move(store), world.document.scene().palette, first_record, pages_of(world)}));
  QRY_TRY(follow(world, written));
  State* const state = file.state_.get();
  if (ResidentPages* const pages = pages_of(world)) {
    const auto recall = [state, world](bool forward) -> Result<std::optional<uint64_t>> {
      if (forward) return state->redo_newer(world, true);
      QRY_TRY_ASSIGN(const bool recalled, state->recall_older(world));
      return recalled ? std::optional<uint64_t>(0) : std::nullopt;
    };
    if (auto begun = pages->follow(
            state->store,
            [state, world](const std::optional<io::UnfinishedStep>& unfinished) {
              return state->flush(world, unfinished);
            },
            recall, there, progress);
        !begun) {
      (void)let_go(world);
      return tl::unexpected(begun.error());
    }
  }
  return file;
}

FollowedFile::State::~State() {
  if (reader) reader->pause();
}

io::Store FollowedFile::take() {
  if (state_->reader) state_->reader->pause();
  return std::move(state_->store);
}

void FollowedFile::replace(io::Store same) {
  state_->store = std::move(same);
  if (state_->reader) state_->reader->go_on();
}

Result<int64_t> FollowedFile::State::first_kept(const HomedWorld& world) const {
  QRY_TRY_ASSIGN(const uint64_t dropped, world.dropped_records());
  return first_record + int64_t(dropped);
}

Result<int64_t> FollowedFile::first_kept(const HomedWorld& world) const { return state_->first_kept(world); }

// The step, or, of a world with a budget, which may have no room for all of that, the record of it that is next.
Result<std::vector<UndoRecord>> FollowedFile::State::records_beside(const HomedWorld& world, uint64_t at, bool before) {
  if (pages_of(world)) return store.record(before ? at - 1 : at);
  return before ? store.step_before(at) : store.step_from(at);
}

Result<bool> FollowedFile::recall_older(const HomedWorld& world) {
  const auto stay = stay_of(world);
  return state_->recall_older(world);
}

Result<bool> FollowedFile::State::recall_older(const HomedWorld& world) {
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  if (first <= 0) return false;
  QRY_TRY_ASSIGN(auto step, records_beside(world, uint64_t(first), true));
  QRY_TRY(world.home ? world.home->recall_older(step) : world.document.recall_older(std::move(step)));
  return true;
}

Result<std::optional<uint64_t>> FollowedFile::redo_newer(const HomedWorld& world) {
  const auto stay = stay_of(world);
  const DeviceHome::UnderWay under_way(world.home, false);
  QRY_TRY_ASSIGN(auto voxels, state_->redo_newer(world, false));
  for (auto part = voxels; part && pages_of(world);) {
    auto next = state_->redo_newer(world, true);
    if (!next) {
      (void)world.home->wait(world.home->undo());
      return next;
    }
    part = *next;
    *voxels += part.value_or(0);
  }
  return voxels;
}

// `same_step`: only if it belongs to the step before it. What was made of a step that failed is none.
Result<std::optional<uint64_t>> FollowedFile::State::redo_newer(const HomedWorld& world, bool same_step) {
  Document& document = world.document;
  if (world.home ? !world.home->file_has_steps() : document.unsaved().kept < document.history().size())
    return std::optional<uint64_t>();
  if (const auto unfinished = store.unfinished(); unfinished && unfinished->is_new) return std::optional<uint64_t>();
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  const uint64_t records = world.home ? world.home->records() : uint64_t(document.history().size()),
                 until = uint64_t(first) + records;
  if (until >= store.history_length()) return std::optional<uint64_t>();
  QRY_TRY_ASSIGN(auto step, records_beside(world, until, false));
  if (same_step && !step.front().continues) return std::optional<uint64_t>();
  uint64_t voxels = 0;
  for (const UndoRecord& record : step) voxels += record.voxels_changed;
  if (world.home) {
    QRY_TRY(world.home->wait(world.home->redo_recalled(step)));
  } else {
    QRY_TRY(document.recall_newer(std::move(step)));
    QRY_TRY(document.redo());
  }
  return std::optional(voxels);
}

Result<void> FollowedFile::bring_all(const HomedWorld& world) {
  ResidentPages* const pages = pages_of(world);
  if (pages) QRY_TRY(pages->all(ResidentPages::Use::read, "a world without a file"));
  return {};
}

Result<void> FollowedFile::let_go(const HomedWorld& world) {
  if (ResidentPages* const pages = pages_of(world)) pages->let_go();
  if (world.home) return world.home->unfollow();
  world.document.unfollow();
  return {};
}

Result<void> FollowedFile::flush(const HomedWorld& world) {
  const auto stay = stay_of(world);
  return state_->flush(world);
}

Result<void> FollowedFile::State::flush(const HomedWorld& world, std::optional<io::UnfinishedStep> unfinished) {
  const Scene& scene = world.document.scene();
  io::Store::Later later;
  later.palette = !(scene.palette == palette);
  const Palette now = scene.palette;
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  if (unfinished) unfinished->position += first_record;
  if (world.home) {
    QRY_TRY_ASSIGN(auto unsaved, world.home->unsaved());
    const bool becomes_whole = store.unfinished() && !unfinished;
    if (!unsaved.moved && !later.palette && !becomes_whole) return {};
    const auto rest = [&]() -> Result<io::Store::Later> {
      later.position = uint64_t(first + int64_t(unsaved.position()));
      if (auto regions = unsaved.regions(); !regions.empty()) later.chunks[0] = std::move(regions);
      return later;
    };
    ResidentPages* const pages = world.home->pages();
    const auto bricks = [&](uint32_t, std::span<const Int3> chunks) -> Result<const BrickMap*> {
      QRY_TRY_ASSIGN(const BrickMap* const map, unsaved.bricks(chunks));
      if (pages) pages->note_written(chunks, *map);
      return map;
    };
    if (pages) pages->forget_written();
    QRY_TRY(store.commit_later(
        scene, {uint64_t(first + int64_t(unsaved.kept)), [&] { return unsaved.records(); }, rest, bricks, unfinished}));
    if (pages) pages->keep_written();
  } else {
    auto unsaved = world.document.unsaved();
    if (!unsaved.moved && !later.palette) return {};
    later.kept = uint64_t(first + int64_t(unsaved.kept));
    later.records = std::span(world.document.history()).subspan(unsaved.kept);
    later.position = uint64_t(first + int64_t(world.document.history_position()));
    later.chunks = std::move(unsaved.regions);
    QRY_TRY(store.commit_later(scene, later));
  }
  palette = now;
  return follow(world, false);
}

}  // namespace quarry::engine
