// Document: a scene, the world it flattens into, and the history of its edits. See world.hpp.
//
//   edit -> plan_edit: bricks of one volume, before and after -> the volume's BrickMap
//                                                             -> the world bricks they show up in, flattened again -> World
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "voxel/flatten.hpp"
#include "voxel/world.hpp"

namespace quarry {
namespace {

constexpr size_t kBatchBricks = 1u << 16;          // between two looks at Progress while a world is built
constexpr int32_t kMostBrick = (1 << 28) - 1;      // beyond it a brick's voxels have no 32-bit coordinates

bool has_voxel_coordinates(Int3 b) {
  const auto fits = [](int32_t c) { return c >= -kMostBrick - 1 && c <= kMostBrick; };
  return fits(b.x) && fits(b.y) && fits(b.z);
}

std::string brick_text(Int3 b) { return "brick (" + std::to_string(b.x) + ", " + std::to_string(b.y) + ", " + std::to_string(b.z) + ")"; }

uint32_t differing_voxels(const Brick& a, const Brick& b) {
  uint32_t count = 0;
  for (size_t i = 0; i < kVoxelsPerBrick; ++i) count += a.materials[i] != b.materials[i];
  return count;
}

}  // namespace

struct Document::State {
  Scene scene;
  Flattener flattener;  // refers to `scene`, which stays where it is
  World world;
  std::vector<UndoRecord> history;
  size_t position = 0;
  UndoRecord nothing;  // the record of an edit that changed nothing
  uint64_t version = 0;

  State(Scene its_scene, World its_world) : scene(std::move(its_scene)), flattener(scene, true), world(std::move(its_world)) {}

  Result<void> check_volume(uint32_t volume) const {
    if (volume < scene.volumes.size()) return {};
    return fail(ErrorCode::invalid_argument,
                "there is no volume " + std::to_string(volume) + "; the scene has " + std::to_string(scene.volumes.size()));
  }

  // Makes the bricks `after` (forward) or `before` of every change the volume's, and the world what the scene then flattens into.
  Result<void> commit(uint32_t volume, const std::vector<BrickChange>& changes, bool forward) {
    std::vector<Int3> places;
    for (const BrickChange& change : changes) {
      BrickMask either;
      for (size_t w = 0; w < 8; ++w) either[w] = change.before.mask[w] | change.after.mask[w];
      if (auto ok = flattener.touched(volume, change.brick, either, places); !ok) return ok;
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());

    // The volume goes back to what it was unless the world follows it, also when memory ends on the way.
    struct TakeBack {
      BrickMap& bricks;
      BrickMap saved = bricks;  // shares everything: what this costs is one pointer per leaf
      bool kept = false;
      ~TakeBack() {
        if (!kept) bricks = std::move(saved);
      }
    } volume_bricks{scene.volumes[volume].bricks};
    for (const BrickChange& change : changes) {
      volume_bricks.bricks.put(change.brick, forward ? change.after : change.before);
      flattener.volume_has(volume, change.brick);
    }
    std::vector<Brick> flat(places.size());
    flattener.bricks(places, flat);
    std::vector<World::BrickRef> writes(places.size());
    for (size_t i = 0; i < places.size(); ++i) writes[i] = {places[i], &flat[i]};
    if (auto ok = world.write(writes); !ok) return ok;
    volume_bricks.kept = true;
    ++version;
    return {};
  }

  Result<const UndoRecord*> enter(uint32_t volume, UndoRecord record) {
    record.volume = volume;
    if (record.changes.empty()) {
      nothing = std::move(record);
      return &nothing;
    }
    // Room before the change: once it is made, entering it must not fail.
    if (history.capacity() < position + 1) history.reserve(std::max(position + 1, 2 * history.capacity()));
    if (auto ok = commit(volume, record.changes, true); !ok) return tl::unexpected(ok.error());
    history.resize(position);
    history.push_back(std::move(record));
    ++position;
    return &history.back();
  }
};

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::create(Scene scene, const WorldMemory& memory, const Progress& progress) {
  progress.say("flattening", -1);
  const auto flat = flatten(scene, true);
  if (!flat) return tl::unexpected(flat.error());
  auto world = World::create(memory);
  if (!world) return tl::unexpected(world.error());
  std::vector<World::BrickRef> batch;
  size_t done = 0;
  for (const auto& [at, brick] : flat->bricks()) {
    batch.push_back({at, &brick});
    if (++done < flat->bricks().size() && batch.size() < kBatchBricks) continue;
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "building the world was cancelled");
    if (auto ok = world->write(batch); !ok) return tl::unexpected(ok.error());
    batch.clear();
    progress.say("building the world", double(done) / double(flat->bricks().size()));
  }
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "building the world was cancelled");
  if (!flat->bricks().empty()) (void)world->fit();  // when memory for that is wanting, it is as good a world without
  return Document(std::make_unique<State>(std::move(scene), std::move(*world)));
}

Result<Document> Document::create_empty(const WorldMemory& memory) {
  Scene scene;
  scene.volumes.resize(1);
  scene.volumes[0].name = "world";
  scene.instances.resize(1);
  scene.instances[0].name = "world";
  return create(std::move(scene), memory);
}

const Scene& Document::scene() const { return state_->scene; }
const World& Document::world() const { return state_->world; }
World& Document::world() { return state_->world; }
bool Document::can_undo() const { return state_->position > 0; }
bool Document::can_redo() const { return state_->position < state_->history.size(); }
const std::vector<UndoRecord>& Document::history() const { return state_->history; }
size_t Document::history_position() const { return state_->position; }
uint64_t Document::version() const { return state_->version; }

Result<const UndoRecord*> Document::apply(uint32_t volume, const Edit& edit, uint32_t threads) {
  if (auto ok = state_->check_volume(volume); !ok) return tl::unexpected(ok.error());
  const auto bounds = edit_bounds(edit);
  if (!bounds) return tl::unexpected(bounds.error());
  if (edit.material != 0 && (edit.mode == Mode::add || edit.mode == Mode::fill)) {
    // Every voxel of the shape will be there, and its box is tight: refuse before work is done that cannot stay.
    if (auto ok = state_->flattener.check_box(volume, *bounds); !ok) return tl::unexpected(ok.error());
  }
  auto record = plan_edit(state_->scene.volumes[volume].bricks, edit, threads);
  if (!record) return tl::unexpected(record.error());
  return state_->enter(volume, std::move(*record));
}

Result<const UndoRecord*> Document::write(uint32_t volume, std::span<const World::BrickWrite> writes, std::string label) {
  if (auto ok = state_->check_volume(volume); !ok) return tl::unexpected(ok.error());
  std::vector<uint32_t> order(writes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return writes[a].brick < writes[b].brick; });
  UndoRecord record;
  record.label = std::move(label);
  for (size_t i = 0; i < order.size(); ++i) {
    const World::BrickWrite& write = writes[order[i]];
    if (!has_voxel_coordinates(write.brick)) return fail(ErrorCode::out_of_bounds, brick_text(write.brick) + " lies beyond the range of 32-bit voxel coordinates");
    if (i > 0 && writes[order[i - 1]].brick == write.brick) return fail(ErrorCode::invalid_argument, brick_text(write.brick) + " is in the batch more than once");
    const Brick* const there = state_->scene.volumes[volume].bricks.find(write.brick);
    const Brick before = there ? *there : Brick{};
    if (before == write.value) continue;
    record.voxels_changed += differing_voxels(before, write.value);
    record.changes.push_back({write.brick, before, write.value});
  }
  return state_->enter(volume, std::move(record));
}

Result<const UndoRecord*> Document::undo() {
  if (!can_undo()) return fail(ErrorCode::invalid_argument, "there is nothing to undo");
  const UndoRecord& record = state_->history[state_->position - 1];
  if (auto ok = state_->check_volume(record.volume); !ok) return tl::unexpected(ok.error());
  if (auto ok = state_->commit(record.volume, record.changes, false); !ok) return tl::unexpected(ok.error());
  --state_->position;
  return &record;
}

Result<const UndoRecord*> Document::redo() {
  if (!can_redo()) return fail(ErrorCode::invalid_argument, "there is nothing to redo");
  const UndoRecord& record = state_->history[state_->position];
  if (auto ok = state_->check_volume(record.volume); !ok) return tl::unexpected(ok.error());
  if (auto ok = state_->commit(record.volume, record.changes, true); !ok) return tl::unexpected(ok.error());
  ++state_->position;
  return &record;
}

void Document::restore_history(std::vector<UndoRecord> records, size_t position) {
  state_->history = std::move(records);
  state_->position = std::min(position, state_->history.size());
}

void Document::set_palette(const Palette& palette) {
  state_->scene.palette = palette;
  ++state_->version;
}

}  // namespace quarry
