// SPDX-License-Identifier: Apache-2.0
// home.cpp - launches edits on the device, keeps notes for the document, and lets the document make them.
#include "engine/api/home.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/parallel.hpp"
#include "voxel/worlds/edit_shape.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::c_api {
namespace {

constexpr size_t kAnswers = 4096;
constexpr size_t kMostUnheard = 2000;              // the store remembers 4096 answers
constexpr size_t kMostListBytes = 256u << 20;      // of notes; then the document catches up
constexpr uint64_t kFewVoxels = 256;               // so few are grouped here before a device has begun
constexpr size_t kBricksAtOnce = size_t(1) << 14;  // 8 MiB of materials over the bus

// One brick's part of a list of voxels.
class Parts {
 public:
  void put(Int3 voxel, uint8_t material) {
    const uint32_t key = brick_key(brick_of(voxel));
    if (keys_.empty() || keys_[last_] != key) {
      const auto [found, is_new] = numbers_.try_emplace(key, uint32_t(keys_.size()));
      last_ = found->second;
      if (is_new) {
        keys_.push_back(key);
        voxels_.emplace_back();
        materials_.emplace_back();
      }
    }
    voxels_[last_][octant_of(voxel)] |= uint64_t(1) << bit_of(voxel);
    materials_[last_][voxel_index(voxel)] = material;
  }
  const std::vector<uint32_t>& keys() const { return keys_; }
  const std::vector<BrickMask>& voxels() const { return voxels_; }
  const std::vector<BrickMaterials>& materials() const { return materials_; }

 private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
  std::vector<uint32_t> keys_;
  std::vector<BrickMask> voxels_;
  std::vector<BrickMaterials> materials_;
  uint32_t last_ = 0;
};

// Bricks on their way to a device: those of one material as a byte, others with all their materials.
class BrickSender {
 public:
  explicit BrickSender(device::Store& store) : store_(store) {}
  void put(Int3 place, const BrickMaterials& materials) {
    keys_.push_back(brick_key(place));
    materials_.push_back(materials);
  }
  void put_full(Int3 place, uint8_t material) {
    full_keys_.push_back(brick_key(place));
    full_.push_back(material);
  }
  // Those that wait, when they are more.
  Result<void> send(size_t more_than) {
    if (keys_.size() > more_than) {
      QRY_TRY(store_.put(keys_, materials_));
      keys_.clear();
      materials_.clear();
    }
    if (full_keys_.size() > more_than * 64) {
      QRY_TRY(store_.put_full(full_keys_, full_));
      full_keys_.clear();
      full_.clear();
    }
    return {};
  }

 private:
  device::Store& store_;
  std::vector<uint32_t> keys_, full_keys_;
  std::vector<BrickMaterials> materials_;
  std::vector<uint8_t> full_;
};

}  // namespace

Result<std::unique_ptr<DeviceHome>> DeviceHome::create(std::unique_ptr<device::Executor> executor, Document& document,
                                                       uint32_t max_bricks, uint32_t threads) {
  if (!volume_at_origin(document.scene(), false))
    return fail(ErrorCode::unsupported,
                "a world on a device has one volume, at the origin and not turned: open the file with "
                "QRY_OPEN_FLATTEN, or keep the world at home on the host");
  QRY_TRY_ASSIGN(auto store, device::Store::create(std::move(executor), max_bricks ? max_bricks : 0xFFFFFFFEu));
  std::unique_ptr<DeviceHome> home(new DeviceHome(std::move(store), document, threads));
  QRY_TRY(home->fill());
  return home;
}

Result<void> DeviceHome::fill() {
  const World& world = document_.world();
  if (world.brick_count()) QRY_TRY(store_->reserve(world.brick_count(), world.brick_count() / 8));
  BrickSender sender(*store_);
  Result<void> outcome;
  world.for_each_brick([&](Int3 at, const Brick& brick) {
    if (!outcome) return;
    if (const uint8_t material = full_material(brick)) sender.put_full(at, material);
    else sender.put(at, brick.materials);
    outcome = sender.send(kBricksAtOnce);
  });
  QRY_TRY(outcome);
  QRY_TRY(sender.send(0));
  QRY_TRY_ASSIGN(const uint64_t version, store_->version());
  version_offset_ = version - version_;
  base_ = document_.step_position();
  return {};
}

// ---- What is launched

Result<uint64_t> DeviceHome::add(Done done, const Result<device::Store::Change>* change) {
  done.ticket = ++last_ticket_;
  list_bytes_ += done.list.size_bytes();
  done_.push_back(std::move(done));
  const uint64_t ticket = last_ticket_;
  if (change) {
    // What was launched before it is done too: it waited for all of it.
    QRY_TRY(hear(ticket - 1));
    heard(done_.back(), *change);
    ++unheard_;
    if (list_bytes_ > kMostListBytes) QRY_TRY(catch_up_locked());
  } else if (done_.size() - unheard_ > kMostUnheard) {
    QRY_TRY(hear(done_[unheard_].ticket));
  }
  return ticket;
}

Result<uint64_t> DeviceHome::edit(const Edit& edit) {
  const std::lock_guard lock(lock_);
  Done done{0, std::nullopt, Kind::edit, edit, {}};
  if (edit.shape == Shape::connected) QRY_TRY(catch_up_locked());
  QRY_TRY_ASSIGN(const auto shape,
                 edit.shape == Shape::connected
                     ? EditShape::connected(document_.scene().volumes[0].bricks, edit.a, kMostBricksPerEdit)
                     : EditShape::create(edit));
  if (const SolidShape* const solid = shape.solid()) {
    const Int3 first = brick_of(shape.bounds().min), last = brick_of(shape.bounds().max);
    const double box = (double(last.x) - first.x + 1) * (double(last.y) - first.y + 1) * (double(last.z) - first.z + 1);
    if (edit.creates() && box > double(kMostBricksPerEdit)) QRY_TRY(shape.rows(kMostBricksPerEdit));
    QRY_TRY_ASSIGN(done.launched, store_->edit(*solid, edit));
    return add(std::move(done), nullptr);
  }
  QRY_TRY_ASSIGN(const auto rows, shape.rows(kMostBricksPerEdit));
  std::vector<uint32_t> keys;
  std::vector<BrickMask> voxels;
  for (const EditShape::Row& row : rows)
    for (uint32_t i = 0; i < row.count; ++i) {
      const Int3 brick = row.at(i);
      if (brick_in_world(brick)) {
        keys.push_back(brick_key(brick));
        voxels.push_back(shape.mask(brick));
      } else if (edit.creates()) {
        return fail(ErrorCode::out_of_bounds,
                    "edit: the line leaves the world, x and z in [-8192, 8191], y in "
                    "[-4096, 4095], without the brick at its upper corner");
      }
    }
  return write(std::move(done), keys, voxels, {}, edit);
}

Result<uint64_t> DeviceHome::write(Done done, const std::vector<uint32_t>& keys, const std::vector<BrickMask>& voxels,
                                   const std::vector<BrickMaterials>& materials, const Edit& edit) {
  Result<device::Store::Change> change = device::Store::Change{};
  if (!keys.empty()) change = store_->write(keys, voxels, materials, edit);
  if (!change) return tl::unexpected(change.error());
  return add(std::move(done), &change);
}

// By all threads: pages that are new cost more than what is copied into them.
DeviceHome::ListNote DeviceHome::note_of(const VoxelWrites& writes) const {
  const auto count = size_t(writes.count);
  ListNote note{std::make_unique_for_overwrite<int32_t[]>(3 * count), std::make_unique_for_overwrite<uint8_t[]>(count),
                writes.count};
  parallel_for(
      count, size_t(1) << 17,
      [&](size_t begin, size_t end) {
        std::copy(writes.xyz + 3 * begin, writes.xyz + 3 * end, note.xyz.get() + 3 * begin);
        std::copy(writes.materials + begin, writes.materials + end, note.materials.get() + begin);
      },
      threads_);
  return note;
}

Result<uint64_t> DeviceHome::write(ListNote list) {
  const size_t count = size_t(list.count);
  const int32_t* const xyz = list.xyz.get();
  const uint8_t* const materials = list.materials.get();
  Done done{0, std::nullopt, Kind::voxels, {}, std::move(list)};
  if (count > kFewVoxels) {
    const auto change = store_->write_voxels({xyz, 3 * count}, {materials, count});
    if (change) return add(std::move(done), &change);
    if (change.error().code != ErrorCode::unsupported) return tl::unexpected(change.error());
  }
  Parts parts;
  for (size_t i = 0; i < count; ++i) parts.put({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]}, materials[i]);
  return write(std::move(done), parts.keys(), parts.voxels(), parts.materials(), {});
}

Result<uint64_t> DeviceHome::set_voxels(const VoxelWrites& writes) {
  const std::lock_guard lock(lock_);
  return write(note_of(writes));
}

// For a device and for the document it is the same as the list of its voxels.
Result<uint64_t> DeviceHome::write_region(const Box3& box, const uint8_t* materials) {
  const std::lock_guard lock(lock_);
  const Int3 last = box.max - box.min;
  const size_t count = (size_t(last.x) + 1) * (size_t(last.y) + 1) * (size_t(last.z) + 1);
  ListNote list{std::make_unique_for_overwrite<int32_t[]>(3 * count), std::make_unique_for_overwrite<uint8_t[]>(count),
                count};
  std::copy_n(materials, count, list.materials.get());
  int32_t* xyz = list.xyz.get();
  for (int32_t z = box.min.z; z <= box.max.z; ++z)
    for (int32_t y = box.min.y; y <= box.max.y; ++y)
      for (int32_t x = box.min.x; x <= box.max.x; ++x, xyz += 3) xyz[0] = x, xyz[1] = y, xyz[2] = z;
  return write(std::move(list));
}

Result<uint64_t> DeviceHome::undo() { return exchange(false); }
Result<uint64_t> DeviceHome::redo() { return exchange(true); }

Result<uint64_t> DeviceHome::exchange(bool forward) {
  const std::lock_guard lock(lock_);
  Done done{0, std::nullopt, forward ? Kind::redo : Kind::undo, {}, {}};
  // Steps that the document had before the device did anything are undone by it, and those undone are redone by it.
  if (base_ > 0 || document_.step_count() > 0) {
    QRY_TRY(hear(last_ticket_));
    const bool here = forward ? position_ < steps_ : position_ > 0;
    if (!here) {
      QRY_TRY(catch_up_locked());
      Change change{0, version_, false};
      if (forward ? document_.can_redo() : document_.can_undo()) {
        QRY_TRY_ASSIGN(const auto records, forward ? document_.redo() : document_.undo());
        QRY_TRY(push_records(records));
        for (const UndoRecord& record : records) change.voxels += record.voxels_changed;
        QRY_TRY_ASSIGN(const uint64_t version, store_->version());
        version_offset_ = version - ++version_;
        change.version = version_;
        change.step = true;
      }
      answers_.insert_or_assign(++last_ticket_, change);
      return last_ticket_;
    }
  }
  QRY_TRY_ASSIGN(done.launched, forward ? store_->redo() : store_->undo());
  return add(std::move(done), nullptr);
}

// The device gets what the document has undone or redone. Its own steps, all of them undone, are the document's now.
Result<void> DeviceHome::push_records(std::span<const UndoRecord> records) {
  QRY_TRY(store_->forget());
  const BrickMap& bricks = document_.scene().volumes[0].bricks;
  // The parts of a stroke may change a brick more than once.
  std::vector<Int3> places;
  for (const UndoRecord& record : records)
    for (const BrickChange& change : record.changes)
      for (uint32_t i = 0; i < change.count; ++i) places.push_back(change.at(i));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  BrickSender sender(*store_);
  for (const Int3 place : places) {
    const SharedBrick now = bricks.share(place);
    if (now && !now.material()) sender.put(place, now->materials);
    else sender.put_full(place, now.material());
  }
  QRY_TRY(sender.send(0));
  base_ = document_.step_position();
  steps_ = position_ = 0;
  edited_ = false;
  return {};
}

// ---- What became of it

void DeviceHome::heard(Done& done, const Result<device::Store::Change>& change) {
  Result<Change> answer = Change{0, version_, false};
  if (!change) {
    answer = tl::unexpected(change.error());
  } else if (change->voxels) {
    done.voxels = change->voxels;
    version_ = change->version - version_offset_;
    answer = Change{change->voxels, version_, true};
    if (done.kind == Kind::undo) {
      --position_;
    } else if (done.kind == Kind::redo) {
      ++position_;
    } else {
      steps_ = ++position_;
      edited_ = true;
    }
  }
  done.launched.reset();
  answers_.insert_or_assign(done.ticket, std::move(answer));
  if (answers_.size() > kAnswers) answers_.erase(answers_.begin());
}

Result<void> DeviceHome::hear(uint64_t ticket) {
  for (; unheard_ < done_.size() && done_[unheard_].ticket <= ticket; ++unheard_) {
    Done& done = done_[unheard_];
    if (!done.launched) continue;
    const auto change = store_->wait(*done.launched);
    if (!change && change.error().code == ErrorCode::device) return tl::unexpected(change.error());
    heard(done, change);
  }
  return {};
}

Result<DeviceHome::Change> DeviceHome::wait(uint64_t ticket) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(ticket));
  const auto found = answers_.find(ticket);
  if (found == answers_.end())
    return fail(ErrorCode::invalid_argument, "no edit of this world has the ticket " + std::to_string(ticket) +
                                                 ", or it is older than the last 4096");
  return found->second;
}

Result<void> DeviceHome::catch_up() {
  const std::lock_guard lock(lock_);
  return catch_up_locked();
}

Result<void> DeviceHome::catch_up_locked() {
  QRY_TRY(hear(last_ticket_));
  while (!done_.empty()) {
    const Done& done = done_.front();
    uint64_t voxels = 0;
    if (done.voxels) {
      if (done.kind == Kind::edit) {
        QRY_TRY_ASSIGN(const auto* const record, document_.apply(0, done.edit, threads_));
        voxels = record->voxels_changed;
      } else if (done.kind == Kind::voxels) {
        const VoxelWrites writes{done.list.xyz.get(), done.list.materials.get(), done.list.count};
        QRY_TRY_ASSIGN(const auto* const record, document_.write(0, writes, "set voxels", threads_));
        voxels = record->voxels_changed;
      } else {
        QRY_TRY_ASSIGN(const auto records, done.kind == Kind::undo ? document_.undo() : document_.redo());
        for (const UndoRecord& record : records) voxels += record.voxels_changed;
      }
    }
    if (voxels != done.voxels)
      return fail(ErrorCode::device, "the device changed " + std::to_string(done.voxels) +
                                         " voxels where the host changed " + std::to_string(voxels) +
                                         ": please report this");
    list_bytes_ -= done.list.size_bytes();
    done_.pop_front();
    --unheard_;
  }
  return {};
}

// ---- Questions

Result<DeviceHome::State> DeviceHome::state() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  State state;
  QRY_TRY_ASSIGN(state.store, store_->state());
  state.version = version_;
  state.history_length = edited_ ? base_ + steps_ : document_.step_count();
  state.history_position = base_ + position_;
  state.behind = done_.size();
  return state;
}

Result<uint64_t> DeviceHome::version() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return version_;
}

Result<void> DeviceHome::reserve(uint32_t keys, uint32_t bricks) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->reserve(keys, bricks);
}

Result<void> DeviceHome::trim() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->trim();
}

Result<void> DeviceHome::get_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count) {
  const std::lock_guard lock(lock_);
  std::vector<uint32_t> keys;
  std::unordered_map<uint32_t, uint32_t> numbers;
  std::vector<BrickMaterials> bricks;
  for (uint64_t begin = 0; begin < count;) {
    keys.clear();
    numbers.clear();
    uint64_t end = begin;
    for (; end < count && keys.size() < kBricksAtOnce; ++end) {
      const Int3 voxel{xyz[3 * end], xyz[3 * end + 1], xyz[3 * end + 2]};
      if (!voxel_in_world(voxel)) continue;
      const uint32_t key = brick_key(brick_of(voxel));
      if (numbers.try_emplace(key, uint32_t(keys.size())).second) keys.push_back(key);
    }
    bricks.resize(keys.size());
    if (!keys.empty()) QRY_TRY(store_->read(keys, bricks));
    for (uint64_t i = begin; i < end; ++i) {
      const Int3 voxel{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]};
      materials[i] =
          voxel_in_world(voxel) ? bricks[numbers.at(brick_key(brick_of(voxel)))][voxel_index(voxel)] : uint8_t(0);
    }
    begin = end;
  }
  return {};
}

Result<void> DeviceHome::read_box(const Box3& box, const std::function<uint8_t*(Int3 voxel)>& row) {
  const std::lock_guard lock(lock_);
  const Int3 first = brick_of(box.min), last = brick_of(box.max);
  std::vector<uint32_t> keys;
  std::vector<Int3> places;
  std::vector<BrickMaterials> bricks;
  const auto read = [&]() -> Result<void> {
    bricks.resize(keys.size());
    if (!keys.empty()) QRY_TRY(store_->read(keys, bricks));
    for (size_t i = 0; i < places.size(); ++i) {
      const Int3 corner{places[i].x * 8, places[i].y * 8, places[i].z * 8};
      const Box3 part = intersected(box, {corner, corner + Int3{7, 7, 7}});
      for (int32_t z = part.min.z; z <= part.max.z; ++z)
        for (int32_t y = part.min.y; y <= part.max.y; ++y) {
          uint8_t* to = row({part.min.x, y, z});
          for (int32_t x = part.min.x; x <= part.max.x; ++x) *to++ = bricks[i][voxel_index({x, y, z})];
        }
    }
    keys.clear();
    places.clear();
    return {};
  };
  for (int32_t z = first.z; z <= last.z; ++z)
    for (int32_t y = first.y; y <= last.y; ++y)
      for (int32_t x = first.x; x <= last.x; ++x) {
        if (!brick_in_world({x, y, z})) continue;
        keys.push_back(brick_key({x, y, z}));
        places.push_back({x, y, z});
        if (keys.size() == kBricksAtOnce) QRY_TRY(read());
      }
  return read();
}

Result<void> DeviceHome::trace(size_t count, const device::Executor::FillRays& fill,
                               const device::Executor::TakeHits& take) {
  const std::lock_guard lock(lock_);
  return store_->trace(count, fill, take);
}

Result<const device::Store::Published*> DeviceHome::publish(const device::Store::Frames& frames) {
  const std::lock_guard lock(lock_);
  return store_->publish(frames);
}

Result<std::vector<uint32_t>> DeviceHome::keys() {
  const std::lock_guard lock(lock_);
  QRY_TRY_ASSIGN(const auto entries, store_->entries());
  std::vector<uint32_t> keys;
  keys.reserve(entries.size());
  for (const device::Store::Entry& entry : entries) keys.push_back(entry.key);
  return keys;
}

}  // namespace quarry::c_api
