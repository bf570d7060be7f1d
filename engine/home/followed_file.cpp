// SPDX-License-Identifier: Apache-2.0
// followed_file.cpp - writes a world whole, or what of it has changed.
#include "engine/home/followed_file.hpp"

#include <utility>

#include "engine/home/drawing.hpp"

namespace quarry::engine {
namespace {

Result<void> follow(const HomedWorld& world, bool written) {
  if (world.home) return world.home->follow(written);
  world.document.follow();
  return {};
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

Result<FollowedFile> FollowedFile::begin(io::Store store, const HomedWorld& world, bool written, int64_t first_record) {
  QRY_TRY(follow(world, written));
  return FollowedFile(std::move(store), world.document.scene().palette, first_record);
}

Result<int64_t> FollowedFile::first_kept(const HomedWorld& world) const {
  QRY_TRY_ASSIGN(const uint64_t dropped, world.dropped_records());
  return first_record_ + int64_t(dropped);
}

Result<bool> FollowedFile::recall_older(const HomedWorld& world) {
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  if (first <= 0) return false;
  QRY_TRY_ASSIGN(auto step, store_.step_before(uint64_t(first)));
  QRY_TRY(world.home ? world.home->recall_older(step) : world.document.recall_older(std::move(step)));
  return true;
}

Result<std::optional<uint64_t>> FollowedFile::redo_newer(const HomedWorld& world) {
  Document& document = world.document;
  if (world.home ? !world.home->file_has_steps() : document.unsaved().kept < document.history().size())
    return std::optional<uint64_t>();
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  const uint64_t records = world.home ? world.home->records() : uint64_t(document.history().size()),
                 until = uint64_t(first) + records;
  if (until >= store_.history_length()) return std::optional<uint64_t>();
  QRY_TRY_ASSIGN(auto step, store_.step_from(until));
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

Result<void> FollowedFile::let_go(const HomedWorld& world) {
  if (world.home) return world.home->unfollow();
  world.document.unfollow();
  return {};
}

Result<void> FollowedFile::flush(const HomedWorld& world) {
  const Scene& scene = world.document.scene();
  io::Store::Later later;
  later.palette = !(scene.palette == palette_);
  const Palette palette = scene.palette;
  QRY_TRY_ASSIGN(const int64_t first, first_kept(world));
  if (world.home) {
    QRY_TRY_ASSIGN(auto unsaved, world.home->unsaved());
    if (!unsaved.moved && !later.palette) return {};
    const auto rest = [&]() -> Result<io::Store::Later> {
      later.position = uint64_t(first + int64_t(unsaved.position()));
      if (auto regions = unsaved.regions(); !regions.empty()) later.chunks[0] = std::move(regions);
      return later;
    };
    QRY_TRY(
        store_.commit_later(scene, {uint64_t(first + int64_t(unsaved.kept)), [&] { return unsaved.records(); }, rest,
                                    [&](uint32_t, std::span<const Int3> chunks) { return unsaved.bricks(chunks); }}));
  } else {
    auto unsaved = world.document.unsaved();
    if (!unsaved.moved && !later.palette) return {};
    later.kept = uint64_t(first + int64_t(unsaved.kept));
    later.records = std::span(world.document.history()).subspan(unsaved.kept);
    later.position = uint64_t(first + int64_t(world.document.history_position()));
    later.chunks = std::move(unsaved.regions);
    QRY_TRY(store_.commit_later(scene, later));
  }
  palette_ = palette;
  return follow(world, false);
}

}  // namespace quarry::engine
