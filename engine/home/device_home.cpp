// SPDX-License-Identifier: Apache-2.0
// device_home.cpp - launches edits on the device, and reads from it what is asked for.
#include "engine/home/device_home.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/ahead.hpp"
#include "base/parallel.hpp"
#include "engine/home/flattening.hpp"
#include "engine/home/page_rays.hpp"
#include "engine/home/record_batch.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/shapes/change.hpp"
#include "voxel/worlds/edit_shape.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::engine {
namespace {

constexpr size_t kMostUnheard = 2000;                   // the store remembers 4096 answers
constexpr uint64_t kFewVoxels = 256;                    // so few are grouped here before a device has begun
constexpr size_t kBricksAtOnce = size_t(1) << 14;       // 8 MiB of materials over the bus
constexpr size_t kFewBricks = 4096;                     // records of a file that have fewer go to a device together
constexpr uint64_t kRecordsAtOnce = uint64_t(1) << 20;  // changes of bricks, on their way to a file
constexpr size_t kRaysInParts = size_t(1) << 16;        // that are traced together where pages are not there
constexpr size_t kMostSent = size_t(1) << 16;           // bricks of pages that go to a device as one list, 33 MB
constexpr size_t kChunksAtOnce = 64;                    // 17 MB of bricks at most, of a file
constexpr size_t kBricksKept = size_t(1) << 16;         // 38 MB, of those that are read back at once

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

// Of a world with a budget: it goes on in parts.
bool lacks_room(const Error& error) { return error.code == ErrorCode::out_of_memory; }

// Sends all bricks of a file, chunk by chunk, in no order: all threads decode, each into an array that it has taken,
// and send it when it is large.
Result<void> send_file(device::Store& store, io::StoreReader& file, const Progress& progress) {
  struct Decoded {
    std::vector<uint32_t> keys, full_keys;
    std::vector<uint8_t> full;
    std::vector<BrickMaterials> materials;
  };
  std::mutex list_lock, store_lock;
  std::vector<std::unique_ptr<Decoded>> idle;
  const auto send = [&](Decoded& some) -> Result<void> {
    if (some.keys.empty() && some.full_keys.empty()) return {};
    const std::lock_guard lock(store_lock);
    QRY_TRY(store.put({some.full_keys, some.full, some.keys, some.materials}));
    some.keys.clear();
    some.full_keys.clear();
    some.full.clear();
    some.materials.clear();
    return {};
  };
  const auto visit = [&](uint32_t, const io::PackedChunk& chunk) -> Result<void> {
    std::unique_ptr<Decoded> mine;
    {
      const std::lock_guard lock(list_lock);
      if (!idle.empty()) {
        mine = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!mine) mine = std::make_unique<Decoded>();
    std::optional<Int3> outside;
    QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
      if (!brick_in_world(at)) {
        outside = outside.value_or(at);
        return;
      }
      const uint32_t key = brick_key(at);
      if (full) {
        mine->full_keys.push_back(key);
        mine->full.push_back(full);
      } else {
        mine->keys.push_back(key);
        mine->materials.push_back(brick.materials);
      }
    }));
    if (outside)
      return fail(ErrorCode::out_of_bounds, "a brick at (" + std::to_string(outside->x) + ", " +
                                                std::to_string(outside->y) + ", " + std::to_string(outside->z) +
                                                ") is outside of the world");
    if (mine->keys.size() >= kBricksAtOnce || mine->full_keys.size() >= 64 * kBricksAtOnce) QRY_TRY(send(*mine));
    const std::lock_guard lock(list_lock);
    idle.push_back(std::move(mine));
    return {};
  };
  QRY_TRY(file.visit_all(visit, progress));
  for (const auto& rest : idle) QRY_TRY(send(*rest));
  return {};
}

Result<void> check_on_host(device::Side side, const char* what) {
  if (side == device::Side::host) return {};
  return fail(ErrorCode::unsupported, std::string(what) + ": give it in the host's memory, or in parts");
}
Error beyond_scene() {
  return {ErrorCode::out_of_bounds, "voxels would be beyond all coordinates, which are -2^30 to 2^30 - 1"};
}
void put_in_world(RayHit& hit, Int3 origin) {
  if (hit.t < 0) return;
  hit.voxel[0] += origin.x;
  hit.voxel[1] += origin.y;
  hit.voxel[2] += origin.z;
}
// The same edit in a window. What is cut off is beyond all that a window holds.
Edit in_window(Edit edit, Int3 origin) {
  const auto along = [](int32_t at, int32_t from) {
    return int32_t(std::clamp<int64_t>(int64_t(at) - from, INT32_MIN, INT32_MAX));
  };
  for (Int3* const at : {&edit.a, &edit.b})
    *at = {along(at->x, origin.x), along(at->y, origin.y), along(at->z, origin.z)};
  return edit;
}

// Calls use(i, materials) for each place of the pool, from all threads; some thousands are read at a time.
template <class Use>
Result<void> read_each(device::Store& store, std::span<const uint32_t> places, uint32_t threads, const Use& use) {
  std::vector<BrickMaterials> materials;
  for (size_t first = 0; first < places.size(); first += kBricksAtOnce) {
    const auto some = places.subspan(first, std::min(kBricksAtOnce, places.size() - first));
    materials.resize(some.size());
    QRY_TRY(store.read_places(some, materials));
    parallel_for(
        some.size(), 256,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) use(first + i, materials[i]);
        },
        threads);
  }
  return {};
}

// Records that are in memory, as StoreReader shows those of a file.
Result<void> visit_records(std::span<const UndoRecord> records, size_t position, io::HistorySide side,
                           const io::HistoryVisit& visit) {
  const bool back = side == io::HistorySide::before;
  const size_t count = back ? position : records.size();
  for (size_t n = 0; n < count; ++n) {
    const size_t number = back ? count - 1 - n : n;
    const UndoRecord& record = records[number];
    io::HistoryBricks bricks;
    for (const BrickChange& change : record.changes) {
      const SharedBrick& its = back ? change.before : change.after;
      if (its && !its.material()) {
        bricks.at.push_back(change.brick);
        bricks.materials.push_back(its->materials);
      } else {
        bricks.full.push_back({change.brick, change.count, its.material()});
      }
    }
    std::vector<MaterialChange> materials = record.materials;
    QRY_TRY(visit({int64_t(number) + 1, record.continues, record.label, record.voxels_changed, materials, bricks}));
  }
  return {};
}

}  // namespace

bool DeviceHome::takes(const Scene& scene) {
  return scene.volumes.size() == 1 && scene.instances.size() == 1 && volume_at_origin(scene, true);
}

Result<std::unique_ptr<DeviceHome>> DeviceHome::create(std::unique_ptr<device::Executor> executor,
                                                       const Content& content, uint32_t max_bricks, uint32_t threads) {
  if (!takes(content.scene) && !content.flattens)
    return fail(ErrorCode::unsupported,
                std::string(kTaken) + ": open the file with QRY_OPEN_FLATTEN, or keep the world at home on the host");
  QRY_TRY_ASSIGN(auto store, device::Store::create(std::move(executor), max_bricks ? max_bricks : 0xFFFFFFFEu));
  std::unique_ptr<DeviceHome> home(new DeviceHome(std::move(store), threads));
  QRY_TRY(home->fill(content));
  return home;
}

Result<std::unique_ptr<DeviceHome>> DeviceHome::create(std::unique_ptr<device::Executor> executor, const ReadMesh& read,
                                                       Scene& scene, std::optional<Error>& wrong,
                                                       const Progress& progress, uint32_t max_bricks,
                                                       uint32_t threads) {
  QRY_TRY_ASSIGN(auto store, device::Store::create(std::move(executor), max_bricks ? max_bricks : 0xFFFFFFFEu));
  bool there = false;
  std::optional<Error> full;  // the device's, which is no matter of the file
  const DeviceSink sink{store->executor().device(), [&](const DeviceVoxels& voxels) -> Result<void> {
                          there = true;
                          auto put =
                              store->put_there(voxels.bricks, voxels.keys, voxels.materials, voxels.box, voxels.stream);
                          if (!put) full = put.error();
                          return put;
                        }};
  auto made = read(sink);
  if (!made) {
    if (!full) wrong = made.error();
    return tl::unexpected(full.value_or(made.error()));
  }
  scene = std::move(*made);
  if (!takes(scene)) return fail(ErrorCode::unsupported, kTaken);
  std::unique_ptr<DeviceHome> home(new DeviceHome(std::move(store), threads));
  if (there) {
    QRY_TRY_ASSIGN(home->version_offset_, home->store_->version());
  } else {
    QRY_TRY(home->fill({scene, {}, 0, nullptr, progress}));
  }
  return home;
}

Result<void> DeviceHome::fill(const Content& content) {
  if (!takes(content.scene)) {
    const ThreadShare share(threads_ ? threads_ : thread_count());
    QRY_TRY_ASSIGN(flattened_, flatten_on_device(*store_, content.scene, content.file, content.progress));
    QRY_TRY_ASSIGN(version_offset_, store_->version());
    return {};
  }
  BrickMap bricks;
  if (!content.file) {
    // It names what is outside of the world.
    QRY_TRY_ASSIGN(bricks, flatten_for_world(content.scene, true));
  }
  const uint64_t count = content.file ? content.file->bricks() : bricks.bricks().size();
  if (count) QRY_TRY(store_->reserve(uint32_t(std::min<uint64_t>(count, UINT32_MAX)), uint32_t(count / 8)));
  if (content.file) {
    QRY_TRY(send_file(*store_, *content.file, content.progress));
  } else {
    BrickBatch batch;
    const auto in_order = bricks.bricks();
    for (auto brick = in_order.begin(); brick != in_order.end(); ++brick) {
      batch.put(brick_key((*brick).first), brick.shared());
      if (!batch.is_large()) continue;
      QRY_TRY(store_->put(batch.bricks()));
      batch.clear();
    }
    if (!batch.empty()) QRY_TRY(store_->put(batch.bricks()));
  }
  if (content.history_of_file) {
    QRY_TRY(make_history(content.file->history_position(), [&](io::HistorySide side, const io::HistoryVisit& visit) {
      return content.file->visit_history(side, visit, content.progress);
    }));
  } else if (!content.history.empty()) {
    const size_t applied = std::min(content.position, content.history.size());
    QRY_TRY(make_history(applied, [&](io::HistorySide side, const io::HistoryVisit& visit) {
      return visit_records(content.history, applied, side, visit);
    }));
  }
  QRY_TRY_ASSIGN(version_offset_, store_->version());
  return {};
}

// First the world goes back to what it was before all steps, by whole bricks. Then the device makes each step once
// more, and undoes those that were undone. The host has one step at a time.
Result<void> DeviceHome::make_history(uint64_t position, const VisitHistory& visit) {
  RecordBatch batch(threads_);
  const auto put = [&]() -> Result<void> {
    if (!batch.empty()) QRY_TRY(store_->put(batch.bricks()));
    batch.clear();
    return {};
  };
  int64_t record = 0;
  const auto go_back = [&](io::HistoryPart part) -> Result<void> {
    if (std::exchange(record, part.record) != part.record) {
      if (batch.size() >= kFewBricks) QRY_TRY(put());
      batch.begin_record();
    }
    QRY_TRY(batch.add(part));
    return batch.is_large() ? put() : Result<void>();
  };
  QRY_TRY(visit(io::HistorySide::before, go_back));
  QRY_TRY(put());

  const auto applied = int64_t(position);
  record = 0;
  const auto end_step = [&]() -> Result<void> {
    if (batch.empty()) return {};
    QRY_TRY_ASSIGN(const auto change, store_->write_bricks(batch.bricks()));
    steps_.back().stored = change.voxels > 0;
    batch.clear();
    return {};
  };
  const auto make = [&](io::HistoryPart part) -> Result<void> {
    if (std::exchange(record, part.record) != part.record) {
      // Of a step of which a part is undone, that part is one of its own.
      const bool rest = part.continues && !steps_.empty() && part.record == applied + 1;
      if (!part.continues || steps_.empty() || rest) {
        QRY_TRY(end_step());
        steps_.push_back({part.label, 0, false, {}, 0, rest});
        has_parts_ |= rest;
        if (part.record <= applied) ++position_;
      }
      batch.begin_record();
      HomeStep& step = steps_.back();
      step.voxels += part.voxels;
      ++step.records;
      step.materials.insert(step.materials.end(), std::make_move_iterator(part.materials.begin()),
                            std::make_move_iterator(part.materials.end()));
    }
    return batch.add(part);
  };
  QRY_TRY(visit(io::HistorySide::after, make));
  QRY_TRY(end_step());
  plain_from_ = steps_.size();
  for (uint64_t i = steps_.size(); i-- > position_;) {
    if (!steps_[size_t(i)].stored) continue;
    QRY_TRY_ASSIGN(const auto ticket, store_->undo());
    QRY_TRY(store_->wait(ticket));
  }
  return {};
}

// ---- What is launched

namespace {

constexpr const char *kSetVoxels = "set voxels", *kWriteRegion = "write region";

}  // namespace

// One change, with a ticket and perhaps a step, after those that are under way.
Result<void> DeviceHome::prepare_change() {
  steps_.reserve_more(launched_.size() + 1);
  return hear(last_ticket_);
}

// `make` launches it, and returns the store's ticket.
template <class Launch>
Result<uint64_t> DeviceHome::launch(int position, std::string label, const Launch& make) {
  steps_.reserve_more(launched_.size() + 1);
  if (launched_.size() >= kMostUnheard) QRY_TRY(hear(launched_.front().ticket));
  launched_.push_back({last_ticket_ + 1, 0, position, std::move(label)});
  auto ticket = [&]() -> Result<device::Store::Ticket> {
    try {
      return make();
    } catch (...) {
      launched_.pop_back();
      throw;
    }
  }();
  if (!ticket) {
    launched_.pop_back();
    return tl::unexpected(std::move(ticket.error()));
  }
  launched_.back().store_ticket = *ticket;
  return ++last_ticket_;
}

// What was launched before it is done too: it has waited for all of it.
uint64_t DeviceHome::done(const device::Store::Change& change, std::string label) {
  answer(++last_ticket_, settle(change, 0, std::move(label)));
  return last_ticket_;
}

Result<uint64_t> DeviceHome::edit(const Edit& edit) {
  if (!pages_) return edit_there(edit, {});
  const auto stay = stay_there();
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  const bool floods = edit.shape == Shape::connected, creates = !floods && edit.creates();
  const Box3 bounds = floods ? Box3{edit.a, edit.a} : shape.bounds();
  if (creates && pages_->has_file() && !in_scene(bounds)) return tl::unexpected(beyond_scene());
  // What one grid does not hold is made window by window.
  const std::vector<Box3> windows = pages_->windows_of(intersected(bounds, {kSceneMin, kSceneMax}), creates || floods);
  if (creates && windows.size() > 1) QRY_TRY(shape.rows(kMostBricksPerEdit));
  if (const Box3 here = moved(intersected(bounds, {kSceneMin, kSceneMax}), Int3{} - origin());
      windows.empty() && creates && !(intersected(here, {kWorldMin, kWorldMax}) == here && in_scene(bounds)))
    return edit_there(in_window(edit, origin()), {});  // which says so
  Edit its;
  std::vector<Box3> parts;
  const auto show = [&](const Box3* window) -> Result<void> {
    if (window) QRY_TRY(pages_->show(*window));
    const Int3 from = origin();
    its = in_window(edit, from);
    QRY_TRY_ASSIGN(parts, pages_->parts_of(its));
    if (windows.size() > 1) {
      for (Box3& part : parts) part = intersected(part, moved(*window, Int3{} - from));
      std::erase_if(parts, [](const Box3& part) { return part.empty(); });
    }
    return {};
  };
  if (windows.size() <= 1) {
    QRY_TRY(show(windows.empty() ? nullptr : windows.data()));
    if (parts.size() == 1) {
      const auto there = pages_->shape(its, parts[0]);
      if (!there && floods && lacks_room(there.error()) && pages_->has_file()) return flood_in_parts(its);
      QRY_TRY(there);
      return edit_there(its, {});
    }
  }
  size_t window = windows.size() > 1 ? 0 : windows.size(), next = 0;  // a single one is shown
  return in_parts(edit_label(edit), [&](size_t) -> Result<std::optional<uint64_t>> {
    while (next == parts.size()) {
      if (window == windows.size()) return std::optional<uint64_t>();
      QRY_TRY(show(&windows[window++]));
      next = 0;
    }
    const Box3 part = parts[next++];
    QRY_TRY(pages_->shape(its, part));
    QRY_TRY_ASSIGN(const uint64_t ticket, edit_there(its, part));
    return std::optional(ticket);
  });
}

Result<uint64_t> DeviceHome::edit_there(const Edit& edit, const std::optional<Box3>& part) {
  const std::lock_guard lock(lock_);
  std::string label = edit_label(edit);
  if (edit.shape == Shape::connected) {
    QRY_TRY(prepare_change());
    QRY_TRY_ASSIGN(const auto change, store_->edit_connected(edit, kMostBricksPerEdit));
    return done(change, std::move(label));
  }
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  if (const SolidShape* const solid = shape.solid()) {
    const Int3 first = brick_of(shape.bounds().min), last = brick_of(shape.bounds().max);
    const double box = (double(last.x) - first.x + 1) * (double(last.y) - first.y + 1) * (double(last.z) - first.z + 1);
    if (edit.creates() && box > double(kMostBricksPerEdit)) QRY_TRY(shape.rows(kMostBricksPerEdit));
    return launch(0, std::move(label), [&] { return store_->edit(*solid, edit, part); });
  }
  QRY_TRY_ASSIGN(const auto rows, shape.rows(kMostBricksPerEdit));
  std::vector<uint32_t> keys;
  std::vector<BrickMask> voxels;
  for (const EditShape::Row& row : rows)
    for (uint32_t i = 0; i < row.count; ++i) {
      const Int3 brick = row.at(i);
      const Int3 voxel{brick.x * 8, brick.y * 8, brick.z * 8};
      if (part && intersected(*part, {voxel, voxel}).empty()) continue;
      if (brick_in_world(brick)) {
        keys.push_back(brick_key(brick));
        voxels.push_back(shape.mask(brick));
      } else if (edit.creates()) {
        return fail(ErrorCode::out_of_bounds,
                    "edit: the line leaves the world, x and z in [-8192, 8191], y in "
                    "[-4096, 4095], without the brick at its upper corner");
      }
    }
  return write(keys, voxels, {}, edit, std::move(label));
}

Result<uint64_t> DeviceHome::write(const std::vector<uint32_t>& keys, const std::vector<BrickMask>& voxels,
                                   const std::vector<BrickMaterials>& materials, const Edit& edit, std::string label) {
  QRY_TRY(prepare_change());
  device::Store::Change change;
  if (!keys.empty()) {
    QRY_TRY_ASSIGN(change, store_->write(keys, voxels, materials, edit));
  }
  return done(change, std::move(label));
}

Result<uint64_t> DeviceHome::set_voxels(const device::GivenVoxels& voxels) {
  if (!pages_) return set_there(voxels);
  const auto stay = stay_there();
  if (voxels.side == device::Side::device) {
    QRY_TRY(pages_->all(ResidentPages::Use::change, "a list in the device's memory"));
    if (origin() != Int3{}) QRY_TRY(check_on_host(voxels.side, "a list of a world whose window is not at its origin"));
    return set_there(voxels);
  }
  // What one window holds, and what others do, each in the order of the list.
  std::vector<std::vector<uint64_t>> groups;
  std::vector<uint64_t> rest;
  const bool moves = pages_->has_file();
  for (uint64_t i = 0; i < voxels.count; ++i) {
    const Int3 voxel{voxels.xyz[3 * i], voxels.xyz[3 * i + 1], voxels.xyz[3 * i + 2]};
    if (moves && !in_scene({voxel, voxel})) return tl::unexpected(beyond_scene());
    if (pages_->holds({voxel, voxel})) continue;
    if (!moves) return tl::unexpected(device::outside_of_world(voxel, i));
    rest.push_back(i);
  }
  if (rest.empty() && origin() == Int3{}) {
    const auto parts = pages_->parts_of(voxels.xyz, voxels.count);
    if (!parts.empty()) return set_in_window(voxels, parts);
    QRY_TRY(pages_->voxels(voxels.xyz, voxels.count, ResidentPages::Use::change));
    return set_there(voxels);
  }
  std::vector<uint64_t> held;
  for (uint64_t i = 0, next = 0; i < voxels.count; ++i) {
    if (next < rest.size() && rest[next] == i) ++next;
    else held.push_back(i);
  }
  if (!held.empty()) groups.push_back(std::move(held));
  while (!rest.empty()) {
    // Half a window around the first of them.
    const uint64_t first = rest.front();
    const Int3 at{voxels.xyz[3 * first], voxels.xyz[3 * first + 1], voxels.xyz[3 * first + 2]};
    const auto with = [&](uint64_t i) {
      return std::abs(int64_t(voxels.xyz[3 * i]) - at.x) < 4000 &&
             std::abs(int64_t(voxels.xyz[3 * i + 1]) - at.y) < 2000 &&
             std::abs(int64_t(voxels.xyz[3 * i + 2]) - at.z) < 4000;
    };
    std::vector<uint64_t> group;
    std::ranges::copy_if(rest, std::back_inserter(group), with);
    std::erase_if(rest, with);
    groups.push_back(std::move(group));
  }
  return set_in_window(voxels, std::move(groups));
}

// Each of the groups, of the numbers of voxels, is in one window.
Result<uint64_t> DeviceHome::set_in_window(const device::GivenVoxels& voxels,
                                           std::vector<std::vector<uint64_t>> groups) {
  std::deque<std::vector<uint64_t>> left(std::make_move_iterator(groups.begin()),
                                         std::make_move_iterator(groups.end()));
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  // Of the first group, in the window.
  const auto take = [&] {
    const Int3 from = origin();
    xyz.clear();
    materials.clear();
    for (const uint64_t i : left.front()) {
      const int32_t* const at = voxels.xyz + 3 * i;
      xyz.insert(xyz.end(), {at[0] - from.x, at[1] - from.y, at[2] - from.z});
      materials.push_back(voxels.materials[i]);
    }
  };
  // Its window is shown; if it does not fit the budget together, its parts take its place.
  const auto show = [&]() -> Result<void> {
    Box3 box;
    for (const uint64_t i : left.front()) {
      const Int3 voxel{voxels.xyz[3 * i], voxels.xyz[3 * i + 1], voxels.xyz[3 * i + 2]};
      box = united(box, {voxel, voxel});
    }
    if (pages_->has_file()) QRY_TRY(pages_->show(box));
    take();
    auto parts = pages_->parts_of(xyz.data(), materials.size());
    if (parts.empty()) return {};
    const std::vector<uint64_t> group = std::move(left.front());
    left.pop_front();
    for (std::vector<uint64_t>& part : parts)
      for (uint64_t& number : part) number = group[size_t(number)];
    left.insert(left.begin(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
    take();
    return {};
  };
  const auto set_first = [&]() -> Result<uint64_t> {
    QRY_TRY(pages_->voxels(xyz.data(), materials.size(), ResidentPages::Use::change));
    left.pop_front();
    return set_there({xyz.data(), materials.data(), materials.size(), device::Side::host});
  };
  if (left.size() == 1) {
    QRY_TRY(show());
    if (left.size() == 1) return set_first();
  }
  return in_parts(kSetVoxels, [&](size_t) -> Result<std::optional<uint64_t>> {
    if (left.empty()) return std::optional<uint64_t>();
    QRY_TRY(show());
    QRY_TRY_ASSIGN(const uint64_t ticket, set_first());
    return std::optional(ticket);
  });
}

Result<uint64_t> DeviceHome::set_there(const device::GivenVoxels& voxels) {
  const std::lock_guard lock(lock_);
  const ThreadShare share(threads_ ? threads_ : thread_count());
  if (voxels.side == device::Side::device || voxels.count > kFewVoxels) {
    QRY_TRY(prepare_change());
    const auto change = store_->write_voxels(voxels);
    if (change) return done(*change, kSetVoxels);
    if (change.error().code != ErrorCode::unsupported || voxels.side == device::Side::device)
      return tl::unexpected(change.error());
  }
  Parts parts;
  for (size_t i = 0; i < voxels.count; ++i) {
    const Int3 voxel{voxels.xyz[3 * i], voxels.xyz[3 * i + 1], voxels.xyz[3 * i + 2]};
    if (!voxel_in_world(voxel)) return tl::unexpected(device::outside_of_world(voxel, i));
    parts.put(voxel, voxels.materials[i]);
  }
  return write(parts.keys(), parts.voxels(), parts.materials(), {}, kSetVoxels);
}

// Of a box that the window holds, in its coordinates.
Result<uint64_t> DeviceHome::write_box_part(const Box3& part, const uint8_t* materials, device::Side side) {
  if (pages_) QRY_TRY(pages_->box(part, ResidentPages::Use::change));
  const std::lock_guard lock(lock_);
  const ThreadShare share(threads_ ? threads_ : thread_count());
  QRY_TRY(prepare_change());
  QRY_TRY_ASSIGN(const auto change, store_->write_box(part, materials, side));
  return done(change, kWriteRegion);
}

Result<uint64_t> DeviceHome::write_box(const Box3& box, const uint8_t* materials, device::Side side) {
  if (!pages_) return write_box_part(box, materials, side);
  const auto stay = stay_there();
  if (pages_->has_file() && !in_scene(box)) return tl::unexpected(beyond_scene());
  std::vector<Box3> windows = pages_->windows_of(box, true);
  if (windows.empty()) windows.push_back(box);
  std::vector<Box3> parts;  // in the window
  const auto show = [&](const Box3& window) -> Result<void> {
    if (pages_->has_file()) QRY_TRY(pages_->show(window));
    const Box3 its = moved(intersected(window, box), Int3{} - origin());
    parts = pages_->parts_of(its);
    if (parts.size() == 1) parts.front() = its;
    for (Box3& part : parts) part = intersected(part, its);
    return {};
  };
  QRY_TRY(show(windows.front()));
  if (windows.size() == 1 && (parts.size() == 1 || side == device::Side::device))
    return write_box_part(moved(box, Int3{} - origin()), materials, side);
  QRY_TRY(check_on_host(side, "a box in the device's memory that is larger than one grid"));
  size_t window = 1, next = 0;
  return in_parts(kWriteRegion, [&](size_t) -> Result<std::optional<uint64_t>> {
    while (next == parts.size()) {
      if (window == windows.size()) return std::optional<uint64_t>();
      QRY_TRY(show(windows[window++]));
      next = 0;
    }
    // Its rows, one after the other.
    const Box3 part = parts[next++];
    const Int3 size = box.max - box.min + Int3{1, 1, 1}, from = part.min + origin() - box.min;
    const auto row = size_t(part.max.x - part.min.x) + 1;
    std::vector<uint8_t> rows;
    for (int32_t z = 0; z <= part.max.z - part.min.z; ++z)
      for (int32_t y = 0; y <= part.max.y - part.min.y; ++y) {
        const uint8_t* const first =
            materials + (size_t(z + from.z) * size_t(size.y) + size_t(y + from.y)) * size_t(size.x) + size_t(from.x);
        rows.insert(rows.end(), first, first + row);
      }
    QRY_TRY_ASSIGN(const uint64_t ticket, write_box_part(part, rows.data(), device::Side::host));
    return std::optional(ticket);
  });
}

Result<uint64_t> DeviceHome::write_bricks(std::span<const BrickPut> all, const char* label) {
  std::vector<BrickPut> own;
  std::span<const BrickPut> puts = all;
  ResidentPages::Stay stay;
  if (pages_) {
    stay = stay_there();
    Box3 box;
    for (const BrickPut& put : puts) box = united(box, {put.brick, put.brick});
    // One window's.
    const auto is_there = [from = brick_of(origin())](const BrickPut& put) { return brick_in_world(put.brick - from); };
    if (!std::ranges::all_of(puts, is_there) && pages_->windows_of(box_of_voxels(box), true).size() == 1)
      QRY_TRY(pages_->show(box_of_voxels(box)));
    if (const Int3 from = brick_of(origin()); from != Int3{}) {
      own.assign(all.begin(), all.end());
      for (BrickPut& put : own) put.brick = put.brick - from;
      puts = own;
    }
    QRY_TRY(pages_->bricks(puts));
  }
  const std::lock_guard lock(lock_);
  QRY_TRY(prepare_change());
  std::string name = label;
  BrickBatch batch;
  for (const BrickPut& put : puts) {
    if (!brick_in_world(put.brick))
      return fail(ErrorCode::out_of_bounds,
                  std::string("voxels would be outside of the world: ") + device::kWorldExtent);
    batch.put(brick_key(put.brick), put.value);
  }
  device::Store::Change change;
  if (!batch.empty()) {
    QRY_TRY_ASSIGN(change, store_->write_bricks(batch.bricks()));
  }
  return done(change, std::move(name));
}

// `going`: what goes with the first of several lists, and then nothing.
Result<void> DeviceHome::launch_exchange(const device::Store::Bricks& coming, std::span<const uint32_t>& going) {
  exchanges_.reserve(exchanges_.size() + 1);
  QRY_TRY_ASSIGN(const auto ticket, store_->exchange(coming, going));
  exchanges_.push_back(ticket);
  ++version_offset_;  // the world is as it was, whatever the store's version
  going = {};
  return {};
}

Result<void> DeviceHome::put_bricks(std::span<const BrickPut> bricks) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  std::span<const uint32_t> none;
  BrickBatch batch;
  for (const BrickPut& put : bricks) {
    batch.put(brick_key(put.brick), put.value);
    if (!batch.is_large()) continue;
    QRY_TRY(launch_exchange(batch.bricks(), none));
    batch.clear();
  }
  return batch.empty() ? Result<void>() : launch_exchange(batch.bricks(), none);
}

Result<void> DeviceHome::exchange(std::span<const SharedPage> coming, std::span<const uint32_t> going) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  std::vector<uint32_t> keys, full_keys;
  std::vector<uint8_t> full;
  std::vector<device::Store::Bricks::Part> parts;
  const auto launch = [&] { return launch_exchange({full_keys, full, keys, {}, {}, parts}, going); };
  for (const SharedPage& page : coming) {
    if (keys.size() + page->keys.size() > kMostSent) {
      QRY_TRY(launch());
      for (auto* const list : {&keys, &full_keys}) list->clear();
      full.clear();
      parts.clear();
    }
    keys.insert(keys.end(), page->keys.begin(), page->keys.end());
    full_keys.insert(full_keys.end(), page->full_keys.begin(), page->full_keys.end());
    full.insert(full.end(), page->full.begin(), page->full.end());
    for (const std::span<const BrickMaterials> part : page->parts) parts.push_back({part, page->kept});
  }
  return keys.empty() && full_keys.empty() && going.empty() ? Result<void>() : launch();
}

Result<bool> DeviceHome::exchange_done() {
  const std::lock_guard lock(lock_);
  return exchanges_.empty() ? Result<bool>(true) : store_->is_done(exchanges_.back());
}

Result<void> DeviceHome::exchanged() {
  const std::lock_guard lock(lock_);
  Result<void> all;
  for (const device::Store::Ticket ticket : std::exchange(exchanges_, {})) {
    const auto change = store_->wait(ticket);
    if (change) continue;
    --version_offset_;
    if (all) all = tl::unexpected(change.error());
  }
  return all;
}

Result<device::Store::Used> DeviceHome::used() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->used();
}

Result<void> DeviceHome::forget_steps() {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  QRY_TRY(store_->forget());
  for (uint64_t i = 0; i < position_; ++i) dropped_records_ += steps_[size_t(i)].records;
  dropped_ += steps_.size();
  steps_.drop_front(steps_.size());
  position_ = plain_from_ = 0;
  if (followed_) {
    followed_->steps.clear();
    followed_->kept = followed_->applied = 0;
  }
  return {};
}

DeviceHome::DeviceHome(std::unique_ptr<device::Store> store, uint32_t threads)
    : store_(std::move(store)), threads_(threads) {}
DeviceHome::~DeviceHome() = default;

std::shared_ptr<void> DeviceHome::host_memory(size_t bytes) { return store_->executor().host_memory(bytes); }

Result<void> DeviceHome::open_copies() {
  const std::lock_guard lock(lock_);
  return store_->executor().open_copies();
}

Int3 DeviceHome::origin() const {
  const std::lock_guard lock(lock_);
  return origin_;
}

void DeviceHome::set_origin(Int3 origin) {
  const std::lock_guard lock(lock_);
  origin_ = origin;
  read_bricks_.reset();
}

ResidentPages::Stay DeviceHome::stay_there() { return pages_ ? pages_->stay() : ResidentPages::Stay(); }

Result<ResidentPages::Stay> DeviceHome::all_there(bool to_change, const char* what) {
  if (!pages_) return ResidentPages::Stay();
  return pages_->all(to_change ? ResidentPages::Use::change : ResidentPages::Use::read, what);
}

Result<void> DeviceHome::set_budget(uint64_t bytes, uint64_t host_bytes) {
  QRY_TRY_ASSIGN(auto pages, ResidentPages::create(*this, bytes, host_bytes, threads_));
  grow_little();
  pages_ = std::move(pages);
  return {};
}

namespace {

// Both worlds are this thread's alone; the two may be one.
std::array<std::unique_lock<std::mutex>, 2> locked(std::mutex& own, std::mutex& others) {
  std::unique_lock first(own, std::defer_lock), second(others, std::defer_lock);
  if (&own == &others) first.lock();
  else std::lock(first, second);
  return {std::move(first), std::move(second)};
}

}  // namespace

Result<void> DeviceHome::check_one_grid() {
  const auto stay = stay_there();
  if (!pages_ || (origin() == Int3{} && !pages_->has_elsewhere())) return {};
  return fail(
      ErrorCode::unsupported,
      "the world is not within one grid about its origin (16384 x 8192 x 16384 voxels), as algebra, parts, sums "
      "and comparisons need it: do this to its file (quarry convert, diff, info)");
}

Result<uint64_t> DeviceHome::combine(DeviceHome& other, device::Combination combination,
                                     const device::Store::NewMaterials* materials) {
  QRY_TRY(check_one_grid());
  QRY_TRY(other.check_one_grid());
  {
    const auto stay = stay_there(), others = other.stay_there();
    QRY_TRY_ASSIGN(const bool others_fit, other.fits_together());
    uint64_t more_bricks = 0;
    if (pages_ && combination == device::Combination::union_of) {
      QRY_TRY_ASSIGN(const State theirs, other.state());
      more_bricks = theirs.store.keys;
    }
    QRY_TRY_ASSIGN(const bool fit, fits_together(more_bricks));
    if (!fit || !others_fit) return combine_in_parts(other, combination, materials);
  }
  QRY_TRY_ASSIGN(const auto stay, all_there(true, "an operation on two worlds"));
  QRY_TRY_ASSIGN(const auto others, other.all_there(false, "an operation on two worlds"));
  const auto locks = locked(lock_, other.lock_);
  QRY_TRY(prepare_change());
  QRY_TRY_ASSIGN(const auto change, store_->combine(*other.store_, combination, materials));
  return done(change, "combine");
}
Result<device::Store::VoxelSums> DeviceHome::voxel_sums(const Palette& palette) {
  std::array<uint32_t, 256> colours{};
  for (size_t m = 0; m < colours.size(); ++m) colours[m] = rgba_word(palette.materials[m]);
  const auto held = stay_there();
  QRY_TRY(check_one_grid());
  const auto stay = all_there(false, "a sum over voxels");
  if (!stay) return lacks_room(stay.error()) ? sums_in_parts(palette) : tl::unexpected(stay.error());
  const std::lock_guard lock(lock_);
  return store_->voxel_sums(colours);
}
Result<device::Store::Comparison> DeviceHome::compare(DeviceHome& other, std::span<const uint32_t, 512> looks) {
  QRY_TRY(check_one_grid());
  QRY_TRY(other.check_one_grid());
  QRY_TRY_ASSIGN(const auto stay, all_there(false, "a comparison"));
  QRY_TRY_ASSIGN(const auto others, other.all_there(false, "a comparison"));
  const auto locks = locked(lock_, other.lock_);
  return store_->compare(*other.store_, looks);
}

Result<uint64_t> DeviceHome::morph(bool grows, uint32_t neighbours) {
  const auto held = stay_there();
  QRY_TRY(check_one_grid());
  QRY_TRY_ASSIGN(const bool fits, fits_together());
  if (!fits) return change_by_steps(grows, neighbours, 1);
  QRY_TRY_ASSIGN(const auto stay, all_there(true, "a growth or an erosion"));
  const std::lock_guard lock(lock_);
  QRY_TRY(prepare_change());
  QRY_TRY_ASSIGN(const auto change, grows ? store_->grow(neighbours) : store_->erode(neighbours));
  return done(change, grows ? "grow" : "erode");
}

Result<std::vector<device::PartScratch::Part>> DeviceHome::find_parts(uint32_t neighbours) {
  const auto held = stay_there();
  QRY_TRY(check_one_grid());
  const auto stay = all_there(false, "a search for parts");
  if (!stay) return lacks_room(stay.error()) ? find_parts_in_parts(neighbours) : tl::unexpected(stay.error());
  const std::lock_guard lock(lock_);
  return store_->find_parts(neighbours);
}

Result<uint64_t> DeviceHome::keep_parts(uint32_t neighbours, uint64_t most, uint64_t least) {
  const auto held = stay_there();
  QRY_TRY(check_one_grid());
  QRY_TRY_ASSIGN(const bool fits, fits_together());
  if (!fits) return keep_parts_in_parts(neighbours, most, least);
  QRY_TRY_ASSIGN(const auto stay, all_there(true, "a search for parts"));
  const std::lock_guard lock(lock_);
  QRY_TRY(prepare_change());
  QRY_TRY_ASSIGN(const auto change, store_->keep_parts(neighbours, most, least));
  return done(change, "keep parts");
}

Result<void> DeviceHome::wait_for(void* stream) {
  const std::lock_guard lock(lock_);
  return store_->executor().wait_for(stream);
}

Result<void> DeviceHome::signal(void* stream) {
  const std::lock_guard lock(lock_);
  return store_->executor().signal(stream);
}

Result<uint64_t> DeviceHome::undo() { return exchange(false); }
Result<uint64_t> DeviceHome::redo() { return exchange(true); }

Result<uint64_t> DeviceHome::exchange(bool forward) {
  {
    const std::lock_guard lock(lock_);
    if (!has_parts_) return exchange_part(forward);
  }
  const auto stay = stay_there();
  QRY_TRY_ASSIGN(const Change change, exchange_all_parts(forward));
  const std::lock_guard lock(lock_);
  answer(++last_ticket_, change);
  return last_ticket_;
}

// Of a step that was made in parts: all of them, wherever they are; or none.
Result<DeviceHome::Change> DeviceHome::exchange_all_parts(bool forward) {
  {
    const std::lock_guard lock(lock_);
    QRY_TRY(close_step());
    QRY_TRY(hear(last_ticket_));
  }
  const UnderWay under_way(this, false);
  // The part that comes next in this direction, if it belongs to the one that was exchanged last.
  const auto next = [&](uint64_t done) -> Result<std::optional<Change>> {
    if (done == 0) return exchange_next(forward);
    // What was undone just now is step number `position_`, and what would be redone next is, too.
    const auto [known, goes_on] = [&] {
      const std::lock_guard lock(lock_);
      const bool is_there = position_ < steps_.size();
      return std::pair(is_there, is_there && steps_[size_t(position_)].continues);
    }();
    if (goes_on) return exchange_next(forward);
    if (known || !forward) return std::optional<Change>();
    QRY_TRY_ASSIGN(const auto redone, pages_ ? pages_->recall(true) : std::optional<uint64_t>());
    return redone ? std::optional(Change{*redone, 0, true}) : std::nullopt;
  };
  Change all;
  for (uint64_t done = 0;; ++done) {
    const auto part = next(done);
    if (!part) {
      Error error = part.error();
      for (; done > 0; --done) {
        const auto back = exchange_next(!forward);
        if (back && *back) continue;
        error.message += std::string("; a part of the step is ") + (forward ? "redone" : "undone") +
                         ", the next call goes on with it";
        break;
      }
      return tl::unexpected(std::move(error));
    }
    if (!*part) break;
    all.voxels += (*part)->voxels;
    all.step |= (*part)->step;
  }
  const std::lock_guard lock(lock_);
  all.version = version_;
  return all;
}

// The part of a step that is next, wherever it is. Nothing: there is none.
Result<std::optional<DeviceHome::Change>> DeviceHome::exchange_next(bool forward) {
  QRY_TRY_ASSIGN(const bool there, has_step(!forward));
  if (!there) {
    QRY_TRY_ASSIGN(const auto recalled, pages_ ? pages_->recall(forward) : std::optional<uint64_t>());
    if (!recalled) return std::optional<Change>();
    if (forward) return std::optional(Change{*recalled, 0, true});
  }
  QRY_TRY_ASSIGN(const Change change, wait([&] {
                   const std::lock_guard lock(lock_);
                   return exchange_part(forward);
                 }()));
  return std::optional(change);
}

Result<uint64_t> DeviceHome::exchange_part(bool forward) {
  QRY_TRY(close_step());
  if (plain_from_ > 0) {
    QRY_TRY(prepare_change());
    const uint64_t number = forward ? position_ : position_ - 1;
    if (number < plain_from_ && number < steps_.size()) return exchange_own(steps_[size_t(number)], forward);
  }
  return launch(forward ? 1 : -1, {}, [&] { return forward ? store_->redo() : store_->undo(); });
}

// Steps of a file, and those that change materials, which the host has, and perhaps nothing but them.
Result<uint64_t> DeviceHome::exchange_own(const HomeStep& step, bool forward) {
  std::optional<Palette> palette;
  if (!step.materials.empty()) palette = exchanged(step.materials, forward);
  Change change{0, 0, true};
  if (step.stored) {
    QRY_TRY_ASSIGN(const auto ticket, forward ? store_->redo() : store_->undo());
    QRY_TRY_ASSIGN(const auto exchanged, store_->wait(ticket));
    change = settle(exchanged, forward ? 1 : -1);
  } else {
    position_ += forward ? 1 : uint64_t(-1);
    change.version = ++version_;
    --version_offset_;
  }
  change.voxels = step.voxels;
  if (palette) document_->set_palette(std::move(*palette));
  answer(++last_ticket_, change);
  return last_ticket_;
}

// The document's, with the changes made, or taken back.
Palette DeviceHome::exchanged(const std::vector<MaterialChange>& changes, bool forward) const {
  Palette palette = document_->scene().palette;
  for (size_t i = 0; i < changes.size(); ++i) {
    const MaterialChange& one = changes[forward ? i : changes.size() - 1 - i];
    palette.materials[one.index] = forward ? one.after : one.before;
    palette.names[one.index] = forward ? one.name_after : one.name_before;
  }
  return palette;
}

// ---- What became of it

DeviceHome::Change DeviceHome::settle(const device::Store::Change& change, int position, std::string label) {
  if (change.voxels == 0) return {0, version_, false};
  version_ = change.version - version_offset_;
  if (position) {
    position_ += uint64_t(int64_t(position));
  } else if (stroke_ == Stroke::begun) {
    steps_.back().voxels += change.voxels;
  } else {
    if (stroke_ == Stroke::empty) {
      stroke_ = Stroke::begun;
      if (!stroke_label_.empty()) label = stroke_label_;
    }
    add_step({std::move(label), change.voxels, true, {}, 1, continues_});
    has_parts_ |= continues_;
    continues_ = in_parts_;
  }
  return {change.voxels, version_, true};
}

// Those that could be redone go.
void DeviceHome::add_step(HomeStep step) {
  steps_.truncate(size_t(position_));
  plain_from_ = std::min(plain_from_, position_);
  if (followed_) followed_->kept = std::min(followed_->kept, position_);
  steps_.push_back(std::move(step));
  ++position_;
}

Result<void> DeviceHome::begin_step(std::string label) {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  QRY_TRY(store_->begin_step());
  stroke_ = Stroke::empty;
  stroke_label_ = std::move(label);
  stroke_voxels_ = 0;
  if (pages_) unfinished_ = step_from_here(true);
  return {};
}

io::UnfinishedStep DeviceHome::step_from_here(bool is_new) const {
  const auto first = steps_.begin();
  const uint64_t records = std::accumulate(first, first + std::ptrdiff_t(position_), dropped_records_,
                                           [](uint64_t sum, const HomeStep& step) { return sum + step.records; });
  return {int64_t(records), is_new};
}

DeviceHome::UnderWay::UnderWay(DeviceHome* home, bool is_new) : home_(nullptr) {
  if (!home || !home->pages_) return;
  const std::lock_guard lock(home->lock_);
  if (home->unfinished_) return;
  home->unfinished_ = home->step_from_here(is_new);
  home_ = home;
}

DeviceHome::UnderWay::~UnderWay() {
  if (!home_) return;
  const std::lock_guard lock(home_->lock_);
  home_->unfinished_.reset();
}

DeviceHome::BegunStep DeviceHome::begun_step() {
  const std::lock_guard lock(lock_);
  if (stroke_ == Stroke::none) return {false, false, {}, 0, unfinished_};
  const uint64_t voxels = stroke_voxels_ + (stroke_ == Stroke::begun ? steps_.back().voxels : 0);
  return {true, stroke_ == Stroke::begun || continues_, stroke_label_, voxels, unfinished_};
}

Result<void> DeviceHome::go_on_with(const BegunStep& step) {
  if (!step.begun) return {};
  QRY_TRY(begin_step(step.label));
  const std::lock_guard lock(lock_);
  continues_ = step.has_parts;
  stroke_voxels_ = step.voxels;
  unfinished_ = step.unfinished;
  return {};
}

// What needs more pages than the budget has room for: a step of parts that are undone and redone together. A part that
// fails takes back those before it.
Result<uint64_t> DeviceHome::in_parts(const std::string& label, const NextPart& next_part) {
  const auto part_of_step = [&](bool on) -> Result<void> {
    const std::lock_guard lock(lock_);
    QRY_TRY(hear(last_ticket_));  // what was launched before is a step of its own
    in_parts_ = on;
    if (stroke_ == Stroke::none) continues_ = false;
    return {};
  };
  Change all;
  Result<void> made;
  QRY_TRY(part_of_step(true));
  const UnderWay under_way(this, true);
  for (size_t i = 0; made; ++i) {
    const auto ticket = next_part(i);
    if (ticket && !*ticket) break;
    const auto part = ticket ? wait(**ticket) : Result<Change>(tl::unexpected(ticket.error()));
    if (!part) made = tl::unexpected(part.error());
    else all.voxels += part->voxels, all.step |= part->step;
  }
  if (auto ended = part_of_step(false); !ended && made) made = ended;
  if (!made) {
    if (!all.step || made.error().code == ErrorCode::device_lost) return tl::unexpected(made.error());
    const bool in_stroke = begun_step().begun;
    const auto back = in_stroke ? tl::unexpected(made.error()) : exchange_all_parts(false);
    if (!back)
      made.error().message +=
          "; a part of '" + label + "' is done, of " + std::to_string(all.voxels) + " voxels: undo takes it back";
    if (!in_stroke) (void)forget_redo();  // what was taken back of it; if the device refuses, redo goes on to offer it
    return tl::unexpected(made.error());
  }
  const std::lock_guard lock(lock_);
  all.version = version_;
  answer(++last_ticket_, all);
  return last_ticket_;
}

Result<void> DeviceHome::forget_redo() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  QRY_TRY(store_->forget_redo());
  steps_.truncate(size_t(position_));
  plain_from_ = std::min(plain_from_, position_);
  if (followed_) followed_->kept = std::min(followed_->kept, position_);
  return {};
}

Result<uint64_t> DeviceHome::end_step() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  const uint64_t voxels = stroke_voxels_ + (stroke_ == Stroke::begun ? steps_.back().voxels : 0);
  QRY_TRY(close_step());
  return voxels;
}

// Before everything that looks at steps, or makes another one.
Result<void> DeviceHome::close_step() {
  if (stroke_ == Stroke::none) return {};
  QRY_TRY(hear(last_ticket_));
  QRY_TRY(store_->end_step());
  stroke_ = Stroke::none;
  unfinished_.reset();
  stroke_voxels_ = 0;
  continues_ = false;
  follow_drops();
  return {};
}

uint64_t DeviceHome::position() {
  const std::lock_guard lock(lock_);
  return whole_steps(position_);
}

// Of the first so many; one whose beginning only the file has counts.
uint64_t DeviceHome::whole_steps(uint64_t number) const {
  if (!has_parts_) return number;
  const auto first = steps_.begin();
  return uint64_t(std::count_if(first, first + std::ptrdiff_t(number),
                                [&](const HomeStep& step) { return !step.continues || &step == &*first; }));
}

uint64_t DeviceHome::last_ticket() {
  const std::lock_guard lock(lock_);
  return last_ticket_;
}

uint64_t DeviceHome::records() {
  const std::lock_guard lock(lock_);
  uint64_t records = 0;
  for (const HomeStep& step : steps_) records += step.records;
  return records;
}

Result<bool> DeviceHome::has_step(bool back) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return back ? position_ > 0 : position_ < steps_.size();
}

bool DeviceHome::file_has_steps() {
  const std::lock_guard lock(lock_);
  return followed_ && followed_->kept == steps_.size();
}

uint64_t DeviceHome::dropped_steps() {
  const std::lock_guard lock(lock_);
  return dropped_;
}

Result<uint64_t> DeviceHome::change_palette(const Palette& palette) {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(prepare_change());
  UndoRecord record = plan_palette_change(document_->scene().palette, palette);
  Change change{0, version_, false};
  if (!record.materials.empty()) {
    Palette copy = palette;
    QRY_TRY(store_->forget_redo());
    document_->set_palette(std::move(copy));
    add_step({std::move(record.label), 0, false, std::move(record.materials)});
    plain_from_ = position_;
    change = {0, ++version_, true};
    --version_offset_;
  }
  answer(++last_ticket_, change);
  return last_ticket_;
}

std::vector<DeviceHome::StepMade> DeviceHome::steps() {
  const std::lock_guard lock(lock_);
  std::vector<StepMade> steps;
  steps.reserve(steps_.size());
  for (const HomeStep& step : steps_) {
    if (!step.continues || steps.empty()) steps.push_back({step.label, 0, 0, step.continues});
    steps.back().voxels += step.voxels;
    steps.back().records += step.records;
  }
  return steps;
}

void DeviceHome::answer(uint64_t ticket, Result<Change> change) {
  answers_[ticket % kAnswers] = {ticket, std::move(change)};
}

Result<void> DeviceHome::hear(uint64_t ticket) {
  while (!launched_.empty() && launched_.front().ticket <= ticket) {
    Launched& oldest = launched_.front();
    auto change = store_->wait(oldest.store_ticket);
    if (!change && device_failed(change.error())) return tl::unexpected(change.error());
    if (change) answer(oldest.ticket, settle(*change, oldest.position, std::move(oldest.label)));
    else answer(oldest.ticket, tl::unexpected(std::move(change.error())));
    launched_.pop_front();
  }
  follow_drops();
  return {};
}

// The store has dropped steps. Those of a palette that are older go with them. As long as an answer is missing, steps
// here are counted as if all were there.
void DeviceHome::follow_drops() {
  if (!launched_.empty()) return;
  uint64_t gone = 0;
  for (; store_dropped_ < store_->dropped_steps(); ++gone) {
    store_dropped_ += steps_[size_t(gone)].stored ? 1 : 0;
    dropped_records_ += steps_[size_t(gone)].records;
  }
  if (followed_) {
    std::vector<FollowedStep>& steps = followed_->steps;
    steps.erase(steps.begin(), steps.begin() + std::ptrdiff_t(std::min<uint64_t>(gone, steps.size())));
    followed_->kept -= std::min(gone, followed_->kept);
    followed_->applied -= std::min(gone, followed_->applied);
  }
  steps_.drop_front(size_t(gone));
  position_ -= gone;
  plain_from_ -= std::min(gone, plain_from_);
  dropped_ += gone;
  // Those of a palette that came after the last one cannot be reached without it.
  for (; store_cut_ < store_->cut_off_steps(); ++dropped_) {
    store_cut_ += steps_.back().stored ? 1 : 0;
    steps_.pop_back();
  }
  plain_from_ = std::min<uint64_t>(plain_from_, steps_.size());
}

Result<void> DeviceHome::set_history_budget(uint64_t bytes) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  if (!followed_) QRY_TRY(store_->set_history_budget(bytes));
  budget_ = bytes;
  follow_drops();
  return {};
}

Result<DeviceHome::HistoryUse> DeviceHome::history_use() {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  QRY_TRY_ASSIGN(const auto use, store_->history_use());
  follow_drops();
  return HistoryUse{budget_, use.bytes, whole_steps(steps_.size()), whole_steps(position_), dropped_};
}

// ---- A file that follows

namespace {

constexpr const char* kLacksStep = "the device's history lacks a step";

Int3 region_of(Int3 brick) { return {brick.x >> 3, brick.y >> 3, brick.z >> 3}; }

void make_rising(std::vector<Int3>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Of those that change something; each once, rising.
std::vector<Int3> regions_of(std::span<const device::Record> records, Int3 origin) {
  std::vector<Int3> regions;
  for (const device::Record& one : records) {
    if (one.before == one.after) continue;
    if (const Int3 region = region_of(brick_from_key(one.key)) + region_of(brick_of(origin));
        regions.empty() || regions.back() != region)
      regions.push_back(region);
  }
  make_rising(regions);
  return regions;
}

// In rising order of their bricks: by x first, then those of each x by all threads.
void sort_by_brick(std::vector<device::Record>& records, uint32_t threads) {
  constexpr size_t kEdge = 2048;
  std::vector<size_t> ends(kEdge + 1);
  for (const device::Record& record : records) ++ends[(record.key & (kEdge - 1)) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<device::Record> sorted(records.size());
  for (const device::Record& record : records) sorted[ends[record.key & (kEdge - 1)]++] = record;
  // Without x: z is in the key's highest bits, y between.
  const auto rank_of = [](uint32_t key) { return (key >> 11 & 1023u) << 11 | key >> 21; };
  parallel_for(
      kEdge, 4,
      [&](size_t begin, size_t end) {
        for (size_t x = begin; x < end; ++x)
          std::sort(sorted.begin() + std::ptrdiff_t(x ? ends[x - 1] : 0), sorted.begin() + std::ptrdiff_t(ends[x]),
                    [&](const device::Record& a, const device::Record& b) { return rank_of(a.key) < rank_of(b.key); });
      },
      threads);
  records.swap(sorted);
}

// Of all bricks of regions, which rise, in rising order of the bricks; without those outside of the world.
std::vector<uint32_t> keys_of_regions(std::span<const Int3> regions, Int3 origin) {
  const Int3 from = brick_of(origin);
  std::vector<uint32_t> keys;
  keys.reserve(regions.size() * 512);
  // Those from `begin` on that `same` says are like it.
  const auto like = [](auto begin, auto end, const auto& same) {
    return std::find_if_not(begin, end, [&](Int3 region) { return same(*begin, region); });
  };
  for (auto of_x = regions.begin(); of_x != regions.end();) {
    const auto end_x = like(of_x, regions.end(), [](Int3 a, Int3 b) { return a.x == b.x; });
    for (int32_t x = 0; x < 8; ++x)
      for (auto of_y = of_x; of_y != end_x;) {
        const auto end_y = like(of_y, end_x, [](Int3 a, Int3 b) { return a.y == b.y; });
        for (int32_t y = 0; y < 8; ++y)
          for (auto region = of_y; region != end_y; ++region)
            for (int32_t z = 0; z < 8; ++z) {
              const Int3 brick = Int3{region->x * 8 + x, region->y * 8 + y, region->z * 8 + z} - from;
              if (brick_in_world(brick)) keys.push_back(brick_key(brick));
            }
        of_y = end_y;
      }
    of_x = end_x;
  }
  return keys;
}

// Of several changes of one material the first one's before and the last one's after; rising, as in a record.
std::vector<MaterialChange> joined_changes(const std::vector<MaterialChange>& changes) {
  std::map<uint8_t, MaterialChange> of;
  for (const MaterialChange& change : changes) {
    const auto [found, is_new] = of.try_emplace(change.index, change);
    if (is_new) continue;
    found->second.after = change.after;
    found->second.name_after = change.name_after;
  }
  std::vector<MaterialChange> rising;
  rising.reserve(of.size());
  for (auto& [index, change] : of) rising.push_back(std::move(change));
  return rising;
}

}  // namespace

// Bricks that are read back from the device's pool, each once. Full ones and none are told by the index alone.
class DeviceHome::BricksRead {
 public:
  // Before the next read().
  void want(uint32_t index) {
    if (device::is_stored_index(index)) places_.add(index);
  }
  Result<void> read(device::Store& store, uint32_t threads) {
    const size_t before = bricks_.size();
    bricks_.resize(places_.keys().size());
    return read_each(store, std::span(places_.keys()).subspan(before), threads,
                     [&](size_t i, const BrickMaterials& materials) {
                       bricks_[before + i] = brick_of_materials(materials, BrickPool::loose());
                     });
  }
  // The brick of an index that was wanted and has been read.
  SharedBrick at(uint32_t index) const {
    if (index == device::kNone) return {};
    return device::is_full_index(index) ? SharedBrick::full(uint8_t(index + 1)) : bricks_[places_.at(index)];
  }
  void forget_if_many() {
    if (bricks_.size() < kBricksKept) return;
    places_.clear();
    bricks_.clear();
  }

 private:
  KeyNumbers places_;                // of the pool
  std::vector<SharedBrick> bricks_;  // of as many places as have been read
};

// Steps of a palette alone are not the store's.
uint64_t DeviceHome::stored_steps_before(uint64_t number) const {
  const uint64_t among = std::min(number, plain_from_);
  return number - uint64_t(std::count_if(steps_.begin(), steps_.begin() + std::ptrdiff_t(among),
                                         [](const HomeStep& step) { return !step.stored; }));
}

uint64_t DeviceHome::records_before(const std::vector<FollowedStep>& steps, uint64_t number) const {
  uint64_t records = 0;
  for (uint64_t i = 0; i < number; ++i) records += i < steps.size() ? steps[size_t(i)].records : 1;
  return records;
}

namespace {

// Changes of bricks, in their order, as few as a record needs. `bricks` tells the brick of an index.
template <class Bricks>
std::vector<BrickChange> changes_of_part(std::span<const device::Record> records, const Bricks& bricks, Int3 origin) {
  const auto stored = [](const device::Record& one) {
    return device::is_stored_index(one.before) || device::is_stored_index(one.after);
  };
  std::vector<BrickChange> changes;
  for (size_t begin = 0, end = 0; begin < records.size(); begin = end) {
    const device::Record& first = records[begin];
    // A row along z, which is in the key's highest bits.
    for (end = begin + 1; end < records.size() && !stored(first); ++end) {
      const device::Record& next = records[end];
      if (next.before != first.before || next.after != first.after ||
          next.key != first.key + (uint32_t(end - begin) << 21))
        break;
    }
    changes.push_back({brick_from_key(first.key) + brick_of(origin), uint32_t(end - begin), bricks.at(first.before),
                       bricks.at(first.after)});
  }
  return changes;
}

// The same by all threads; what goes on from part to part is joined.
template <class Bricks>
std::vector<BrickChange> changes_of(std::span<const device::Record> records, const Bricks& bricks, Int3 origin,
                                    uint32_t threads) {
  constexpr size_t kPart = size_t(1) << 14;
  std::vector<std::vector<BrickChange>> parts((records.size() + kPart - 1) / kPart);
  parallel_for(
      parts.size(), 1,
      [&](size_t i, size_t) {
        const size_t begin = i * kPart;
        parts[i] = changes_of_part(records.subspan(begin, std::min(kPart, records.size() - begin)), bricks, origin);
      },
      threads);
  std::vector<BrickChange> changes;
  for (std::vector<BrickChange>& part : parts) {
    if (changes.empty()) {
      changes = std::move(part);
      continue;
    }
    append_change(changes, std::move(part.front()));
    changes.insert(changes.end(), std::make_move_iterator(part.begin() + 1), std::make_move_iterator(part.end()));
  }
  return changes;
}

}  // namespace

// Some of the steps [first, end), with all bricks before and after them.
struct DeviceHome::StepsRead {
  uint64_t first = 0, end = 0;
  std::vector<device::Store::StepRecords> stored;  // of those that the store has
  BricksRead bricks;
};

// Steps from number `first` on, at least one if there are any. `raw` has what was read of those after them and is for
// later calls.
Result<DeviceHome::StepsRead> DeviceHome::read_steps(uint64_t first, std::deque<device::Store::StepRecords>& raw) {
  StepsRead read{first, first, {}, {}};
  if (first >= steps_.size()) return read;
  if (raw.empty()) {
    QRY_TRY_ASSIGN(auto some, store_->step_records(stored_steps_before(first), kRecordsAtOnce));
    std::move(some.begin(), some.end(), std::back_inserter(raw));
  }
  for (size_t places = 0; !raw.empty(); raw.pop_front()) {
    for (const device::Record& one : raw.front().records)
      for (const uint32_t place : {one.before, one.after}) places += device::is_stored_index(place);
    if (places > kBricksKept && !read.stored.empty()) break;
    read.stored.push_back(std::move(raw.front()));
  }
  size_t left = read.stored.size();
  for (; read.end < steps_.size(); ++read.end) {
    if (!steps_[size_t(read.end)].stored) continue;
    if (left == 0 && read.end > first) break;
    if (left == 0) return fail(ErrorCode::device, kLacksStep);
    --left;
  }
  // Steps side by side, and each by as many threads as are left: of many small ones and of one large one.
  parallel_for(
      read.stored.size(), 1,
      [&](size_t i, size_t) {
        std::vector<device::Record>& records = read.stored[i].records;
        std::erase_if(records, [](const device::Record& one) { return one.before == one.after; });
        sort_by_brick(records, threads_);
      },
      threads_);
  for (const device::Store::StepRecords& step : read.stored)
    for (const device::Record& one : step.records)
      for (const uint32_t place : {one.before, one.after}) read.bricks.want(place);
  QRY_TRY(read.bricks.read(*store_, threads_));
  return read;
}

// The same as records of a file. `as_followed` gets one more for each step. `after_others`: the file has steps before
// the first one of all.
Result<std::vector<UndoRecord>> DeviceHome::records_of(StepsRead& read, bool after_others,
                                                       std::vector<FollowedStep>* as_followed) const {
  std::vector<UndoRecord> records;
  std::vector<device::Store::StepRecords>& stored = read.stored;
  struct Changes {
    std::vector<BrickChange> list;
    std::vector<Int3> regions;
  };
  std::vector<Changes> changes(stored.size());
  parallel_for(
      stored.size(), 1,
      [&](size_t i, size_t) {
        changes[i].list = changes_of(stored[i].records, read.bricks, origin_, threads_);
        changes[i].regions = regions_of(stored[i].records, origin_);
        std::vector<device::Record>().swap(stored[i].records);
      },
      threads_);
  auto next = stored.begin();
  for (uint64_t number = read.first; number < read.end; ++number) {
    const HomeStep& step = steps_[size_t(number)];
    FollowedStep followed;
    followed.records = 0;
    if (step.stored) {
      UndoRecord record;
      record.label = step.label;
      record.continues = step.continues && (number > 0 || after_others);
      record.voxels_changed = next->voxels;
      Changes& made = changes[size_t(next - stored.begin())];
      record.changes = std::move(made.list);
      followed.regions = std::move(made.regions);
      ++next;
      records.push_back(std::move(record));
      ++followed.records;
    }
    if (!step.materials.empty()) {
      UndoRecord record;
      record.label = step.label;
      record.materials = joined_changes(step.materials);
      record.continues = followed.records > 0 || (step.continues && (number > 0 || after_others));
      records.push_back(std::move(record));
      ++followed.records;
    }
    as_followed->push_back(std::move(followed));
  }
  return records;
}

// Of most bricks only the index comes over the bus: they are full, or not there, or have been read with the records.
Result<BrickMap> DeviceHome::bricks_of_regions(std::span<const Int3> regions, BricksRead& bricks) {
  const std::vector<uint32_t> keys = keys_of_regions(regions, origin_);
  std::vector<uint32_t> places(keys.size());
  QRY_TRY(store_->look_up(keys, places));
  // Those that are there, by parts: how many each has, then all of them.
  constexpr size_t kPart = 4096;
  std::vector<size_t> ends((keys.size() + kPart - 1) / kPart);
  const auto each_part = [&](const auto& work) {
    parallel_for(
        ends.size(), 1,
        [&](size_t part, size_t) { work(part, part * kPart, std::min(keys.size(), (part + 1) * kPart)); }, threads_);
  };
  each_part([&](size_t part, size_t begin, size_t end) {
    ends[part] = end - begin - size_t(std::count(&places[begin], &places[begin] + (end - begin), device::kNone));
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<BrickPut> puts(ends.empty() ? 0 : ends.back());
  std::vector<uint32_t> there(puts.size());
  each_part([&](size_t part, size_t begin, size_t end) {
    for (size_t i = begin, to = part ? ends[part - 1] : 0; i < end; ++i) {
      if (places[i] == device::kNone) continue;
      puts[to].brick = brick_from_key(keys[i]) + brick_of(origin_);
      there[to++] = places[i];
    }
  });
  for (const uint32_t place : there) bricks.want(place);
  QRY_TRY(bricks.read(*store_, threads_));
  parallel_for(
      puts.size(), 4096,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) puts[i].value = bricks.at(there[i]);
      },
      threads_);
  BrickMap map;
  map.put(puts);
  return map;
}

Result<void> DeviceHome::follow(bool by_history) {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  if (by_history) {
    // The file may have another number of records of a step than the one that the world was opened from.
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].records = written_[i].records;
    next_followed_ = std::move(written_);
  } else if (!followed_) {
    // Which regions each step changes is asked once, of some steps at a time.
    std::vector<FollowedStep> steps;
    steps.resize(steps_.size());
    std::vector<std::vector<Int3>> regions;  // of the store's steps
    uint64_t asked = 0;
    auto next = regions.begin();
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].records = steps_[i].records;
      if (!steps_[i].stored) continue;
      if (next == regions.end()) {
        QRY_TRY_ASSIGN(const auto stored, store_->step_records(asked, kRecordsAtOnce));
        if (stored.empty()) return fail(ErrorCode::device, kLacksStep);
        asked += stored.size();
        regions.assign(stored.size(), {});
        parallel_for(
            stored.size(), 1, [&](size_t j, size_t) { regions[j] = regions_of(stored[j].records, origin_); }, threads_);
        next = regions.begin();
      }
      steps[i].regions = std::move(*next++);
    }
    next_followed_ = std::move(steps);
  }
  followed_ = Followed{};
  followed_->steps = std::move(next_followed_);
  next_followed_.clear();
  // What is over the budget goes now, and then nothing until the next call.
  if (budget_) drop_over_budget(0);
  followed_->steps.resize(steps_.size());
  followed_->kept = steps_.size();
  followed_->applied = position_;
  followed_->version = version_;
  return {};
}

// A file has all of them, whether they go now or later.
void DeviceHome::drop_over_budget(uint64_t budget_after) {
  try {
    (void)store_->set_history_budget(budget_);
  } catch (const std::bad_alloc&) {
    // as the errors
  }
  if (budget_after != budget_) (void)store_->set_history_budget(budget_after);
  follow_drops();
}

Result<void> DeviceHome::unfollow() {
  const std::lock_guard lock(lock_);
  followed_.reset();
  QRY_TRY(hear(last_ticket_));
  drop_over_budget(budget_);
  return {};
}

struct DeviceHome::Unsaved::State {
  DeviceHome& home;
  std::vector<FollowedStep>& steps;  // of the file, with those that were told
  uint64_t next;                     // step of the history to be read
  size_t common;                     // steps that are applied in the world and in the file
  bool after_others;                 // the file has steps before the history's first one
  uint64_t made = 0;                 // the first step that is not made into records
  std::deque<device::Store::StepRecords> raw = {};
  BricksRead bricks = {};  // of the last steps that were made
  std::vector<UndoRecord> told = {};
  std::vector<Int3> regions = {}, coming = {};  // all of them; those that are read ahead
  BrickMap map = {};
  // While some are written those after them are made into records, and those after these are read.
  Ahead<StepsRead> ahead_read{[this] { return read_some(); }};
  Ahead<std::vector<UndoRecord>> ahead{[this] { return make_some(); }};
  Ahead<BrickMap> ahead_bricks{[this] { return read_bricks(coming); }};

  Result<StepsRead> read_some() {
    const std::lock_guard lock(home.lock_);
    QRY_TRY_ASSIGN(auto some, home.read_steps(next, raw));
    next = some.end;
    return some;
  }
  // The history does not change meanwhile.
  Result<std::vector<UndoRecord>> make_some() {
    QRY_TRY_ASSIGN(auto some, ahead_read.next());
    made = some.end;
    if (made < home.steps_.size()) ahead_read.start();
    QRY_TRY_ASSIGN(auto records, home.records_of(some, after_others, &steps));
    bricks = std::move(some.bricks);
    return records;
  }
  Result<BrickMap> read_bricks(std::span<const Int3> of) {
    const std::lock_guard lock(home.lock_);
    bricks.forget_if_many();
    return home.bricks_of_regions(of, bricks);
  }
};

DeviceHome::Unsaved::Unsaved(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceHome::Unsaved::Unsaved(Unsaved&&) noexcept = default;
DeviceHome::Unsaved& DeviceHome::Unsaved::operator=(Unsaved&&) noexcept = default;
DeviceHome::Unsaved::~Unsaved() = default;

Result<io::SomeRecords> DeviceHome::Unsaved::records() {
  State& s = *state_;
  s.told.clear();
  QRY_TRY_ASSIGN(s.told, s.ahead.next());
  const bool last = s.made >= s.home.steps_.size();
  if (!last) s.ahead.start();
  return io::SomeRecords{s.told, last};
}

Result<std::vector<UndoRecord>> DeviceHome::Unsaved::all_records() {
  std::vector<UndoRecord> all;
  for (bool last = false; !last;) {
    QRY_TRY_ASSIGN(const auto some, records());
    last = some.last;
    all.insert(all.end(), std::make_move_iterator(state_->told.begin()), std::make_move_iterator(state_->told.end()));
  }
  return all;
}

uint64_t DeviceHome::Unsaved::position() const {
  const State& s = *state_;
  const std::lock_guard lock(s.home.lock_);
  return s.home.records_before(s.steps, s.home.position_);
}

std::vector<Int3> DeviceHome::Unsaved::regions() {
  State& s = *state_;
  const std::lock_guard lock(s.home.lock_);
  std::vector<Int3> regions;
  const auto add = [&](const std::vector<FollowedStep>& steps, uint64_t applied) {
    for (const FollowedStep& step : std::span(steps).first(size_t(applied)).subspan(s.common))
      regions.insert(regions.end(), step.regions.begin(), step.regions.end());
  };
  if (moved) {
    add(s.home.followed_->steps, s.home.followed_->applied);
    add(s.steps, s.home.position_);
  }
  make_rising(regions);
  s.regions = regions;
  return regions;
}

// While some are written those after them are read.
Result<const BrickMap*> DeviceHome::Unsaved::bricks(std::span<const Int3> regions) {
  State& s = *state_;
  s.map.clear();
  if (!s.coming.empty()) {
    QRY_TRY_ASSIGN(s.map, s.ahead_bricks.next());
  }
  if (!std::ranges::equal(regions, s.coming)) {
    QRY_TRY_ASSIGN(s.map, s.read_bricks(regions));
  }
  const auto next = std::ranges::upper_bound(s.regions, regions.back());
  s.coming.assign(next, next + std::min(std::ptrdiff_t(regions.size()), s.regions.end() - next));
  if (!s.coming.empty()) s.ahead_bricks.start();
  return &s.map;
}

Result<DeviceHome::Unsaved> DeviceHome::unsaved() {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  const Followed& file = *followed_;
  // Nothing has changed: all steps are the file's.
  const bool same = version_ == file.version;
  const uint64_t kept = same ? file.steps.size() : file.kept;
  next_followed_.assign(file.steps.begin(), file.steps.begin() + std::ptrdiff_t(kept));
  Unsaved unsaved(std::unique_ptr<Unsaved::State>(
      new Unsaved::State{*this, next_followed_, same ? steps_.size() : kept,
                         size_t(std::min({position_, file.applied, file.kept})), true}));
  unsaved.moved = !same && (position_ != file.applied || steps_.size() > file.kept);
  unsaved.kept = records_before(file.steps, file.kept);
  return unsaved;
}

Result<DeviceHome::Unsaved> DeviceHome::history() {
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  written_.clear();
  return Unsaved(std::unique_ptr<Unsaved::State>(new Unsaved::State{*this, written_, 0, 0, false}));
}

// ---- Steps of the file alone

DeviceHome::HomeStep DeviceHome::recalled(std::span<const UndoRecord> step, FollowedStep* as_followed) const {
  HomeStep made{step.front().label, 0, true, {}, step.size(), step.front().continues};
  as_followed->records = step.size();
  for (const UndoRecord& record : step) {
    made.voxels += record.voxels_changed;
    made.materials.insert(made.materials.end(), record.materials.begin(), record.materials.end());
    for (const BrickChange& change : record.changes)
      for (Int3 region = region_of(change.brick); region.z <= region_of(change.last()).z; ++region.z)
        as_followed->regions.push_back(region);
  }
  make_rising(as_followed->regions);
  return made;
}

namespace {

// Of several changes of a brick the first one's before, or the last one's after.
Result<void> put_changes(std::span<const UndoRecord> step, bool before, Int3 origin, BrickBatch& batch) {
  std::unordered_map<uint32_t, SharedBrick> bricks;
  for (const UndoRecord& record : step)
    for (const BrickChange& change : record.changes)
      for (uint32_t i = 0; i < change.count; ++i) {
        const Int3 brick = change.at(i) - brick_of(origin);
        if (!brick_in_world(brick))
          return fail(ErrorCode::out_of_bounds, "the history has a step outside of the world, '" + record.label + "'");
        const uint32_t key = brick_key(brick);
        if (before) bricks.try_emplace(key, change.before);
        else bricks.insert_or_assign(key, change.after);
      }
  for (const auto& [key, brick] : bricks) batch.put(key, brick);
  return {};
}

}  // namespace

Result<void> DeviceHome::recall_older(std::span<const UndoRecord> step) {
  ResidentPages::Stay stay;
  if (pages_) {
    QRY_TRY_ASSIGN(stay, pages_->records(step, true));
  }
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  if (position_ != 0) return fail(ErrorCode::invalid_argument, "the history has steps that are applied");
  FollowedStep followed;
  HomeStep made = recalled(step, &followed);
  BrickBatch batch;
  QRY_TRY(put_changes(step, true, origin_, batch));
  QRY_TRY(prepare_change());
  if (followed_) followed_->steps.reserve(followed_->steps.size() + 1);
  made.stored = false;
  if (!batch.empty()) {
    QRY_TRY_ASSIGN(const uint64_t version, store_->version());
    QRY_TRY_ASSIGN(const auto change, store_->recall_step(batch.bricks()));
    made.stored = change.voxels > 0;
    if (made.stored) version_offset_ += change.version - version;  // nothing has changed
  }
  has_parts_ |= made.continues;
  steps_.push_front(std::move(made));
  position_ = 1;
  ++plain_from_;
  if (followed_) {
    followed_->steps.insert(followed_->steps.begin(), std::move(followed));
    ++followed_->kept;
    ++followed_->applied;
  }
  dropped_ -= std::min<uint64_t>(1, dropped_);
  dropped_records_ -= std::min<uint64_t>(step.size(), dropped_records_);
  follow_drops();
  return {};
}

Result<uint64_t> DeviceHome::redo_recalled(std::span<const UndoRecord> step) {
  ResidentPages::Stay stay;
  if (pages_) {
    QRY_TRY_ASSIGN(stay, pages_->records(step, false));
  }
  const std::lock_guard lock(lock_);
  QRY_TRY(close_step());
  QRY_TRY(hear(last_ticket_));
  if (position_ != steps_.size()) return fail(ErrorCode::invalid_argument, "the history has steps that can be redone");
  FollowedStep followed;
  HomeStep made = recalled(step, &followed);
  BrickBatch batch;
  QRY_TRY(put_changes(step, false, origin_, batch));
  QRY_TRY(prepare_change());
  if (followed_) followed_->steps.reserve(followed_->steps.size() + 1);
  std::optional<Palette> palette;
  if (!made.materials.empty()) palette = exchanged(made.materials, true);
  Change change{made.voxels, version_ + 1, true};
  made.stored = false;
  if (!batch.empty()) {
    QRY_TRY_ASSIGN(const auto exchanged, store_->write_bricks(batch.bricks()));
    made.stored = exchanged.voxels > 0;
    if (made.stored) change.version = exchanged.version - version_offset_;
  }
  if (!made.stored) --version_offset_;
  version_ = change.version;
  if (palette) document_->set_palette(std::move(*palette));
  has_parts_ |= made.continues;
  add_step(std::move(made));
  plain_from_ = position_;
  if (followed_) {
    followed_->steps.resize(size_t(followed_->kept));
    followed_->steps.push_back(std::move(followed));
    ++followed_->kept;
  }
  answer(++last_ticket_, change);
  follow_drops();
  return last_ticket_;
}

void DeviceHome::begin_after(uint64_t records) {
  const std::lock_guard lock(lock_);
  dropped_records_ = records;
  dropped_ = 0;
}

Result<uint64_t> DeviceHome::dropped_records() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return dropped_records_;
}

Result<DeviceHome::Change> DeviceHome::wait(uint64_t ticket) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(ticket));
  const Answered& found = answers_[ticket % kAnswers];
  if (found.ticket != ticket || !found.change)
    return fail(ErrorCode::invalid_argument, "no edit of this world has the ticket " + std::to_string(ticket) +
                                                 ", or it is older than the last 4096");
  return *found.change;
}

// ---- Questions

// Of all of the world, whatever of it is there.
Result<DeviceHome::State> DeviceHome::state() {
  const auto stay = stay_there();
  if (pages_) QRY_TRY(pages_->make_whole());
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  State state;
  QRY_TRY_ASSIGN(state.store, store_->state());
  if (pages_) {
    const ResidentPages::Counters away = pages_->counters();
    state.store.voxels += away.voxels;
    state.store.keys += uint32_t(away.bricks);
    state.absent_keys = away.bricks;
    state.store.bounds = united(state.store.bounds, away.bounds);
    if (!state.store.bounds.empty()) state.store.bounds = moved(state.store.bounds, origin_);
    state.store.bounds = united(state.store.bounds, away.elsewhere);
  }
  follow_drops();
  state.version = version_;
  state.history_length = whole_steps(steps_.size());
  state.history_position = whole_steps(position_);
  state.traffic = store_->executor().traffic();
  return state;
}

void DeviceHome::time_edits(bool on) {
  const std::lock_guard lock(lock_);
  store_->time_edits(on);
}

Result<device::StepTimes> DeviceHome::edit_times() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->edit_times();
}

Result<uint64_t> DeviceHome::version() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return version_;
}

Result<device::Store::MemoryUse> DeviceHome::memory_use() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->memory_use();
}

Result<hashgrid::Stats> DeviceHome::grid_stats() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->grid_stats();
}

Result<void> DeviceHome::reserve(uint32_t keys, uint32_t bricks) {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->reserve(keys, bricks);
}

void DeviceHome::grow_little() {
  const std::lock_guard lock(lock_);
  store_->grow_little();
}

Result<void> DeviceHome::trim() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->trim();
}

// Neighbours have different ones.
uint32_t DeviceHome::place_in_cache(Int3 brick) {
  return uint32_t(brick.x & 3) | uint32_t(brick.y & 3) << 2 | uint32_t(brick.z & 3) << 4;
}
bool DeviceHome::read_before(Int3 voxel) const {
  const Int3 brick = brick_of(voxel);
  return read_bricks_ && read_bricks_->after == store_->last_ticket() &&
         read_bricks_->keys[place_in_cache(brick)] == brick_key(brick);
}
Result<void> DeviceHome::read_around(Int3 brick) {
  const device::Store::Ticket after = store_->last_ticket();
  const bool is_new = !read_bricks_;
  if (is_new) read_bricks_ = std::make_unique<ReadBricks>();
  if (is_new || read_bricks_->after != after) read_bricks_->keys.fill(kQryReservedKey);
  read_bricks_->after = after;
  std::vector<uint32_t> keys, places;
  for (int32_t z = -1; z <= 1; ++z)
    for (int32_t y = -1; y <= 1; ++y)
      for (int32_t x = -1; x <= 1; ++x) {
        const Int3 at = brick + Int3{x, y, z};
        const uint32_t place = place_in_cache(at);
        if (!brick_in_world(at) || read_bricks_->keys[place] == brick_key(at)) continue;
        keys.push_back(brick_key(at));
        places.push_back(place);
      }
  std::vector<BrickMaterials> materials(keys.size());
  QRY_TRY(store_->read(keys, materials));
  for (size_t i = 0; i < keys.size(); ++i) {
    read_bricks_->keys[places[i]] = keys[i];
    read_bricks_->materials[places[i]] = materials[i];
  }
  return {};
}
Result<void> DeviceHome::pack() {
  QRY_TRY_ASSIGN(const auto stay, all_there(false, "a packed world"));
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->pack();
}

Result<void> DeviceHome::unpack() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  return store_->unpack();
}

Result<bool> DeviceHome::packed() {
  const std::lock_guard lock(lock_);
  QRY_TRY(hear(last_ticket_));
  QRY_TRY(store_->wait_all());
  return store_->packed();
}

Result<void> DeviceHome::get_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count) {
  if (!pages_) return read_voxels(xyz, materials, count);
  const auto stay = stay_there();
  const Int3 from = origin();
  if (from == Int3{} && !pages_->has_elsewhere()) return get_held_voxels(xyz, materials, count);
  std::vector<int32_t> held;
  std::vector<uint64_t> in_window, outside;
  for (uint64_t i = 0; i < count; ++i) {
    const Int3 voxel{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]};
    materials[i] = 0;
    if (!in_scene({voxel, voxel})) continue;
    if (!pages_->holds({voxel, voxel})) {
      outside.push_back(i);
      continue;
    }
    in_window.push_back(i);
    held.insert(held.end(), {voxel.x - from.x, voxel.y - from.y, voxel.z - from.z});
  }
  std::vector<uint8_t> found(in_window.size());
  QRY_TRY(get_held_voxels(held.data(), found.data(), found.size()));
  for (size_t i = 0; i < in_window.size(); ++i) materials[in_window[i]] = found[i];
  return read_outside(xyz, outside, materials);
}

// Of voxels of the file alone, some chunks at a time.
Result<void> DeviceHome::read_outside(const int32_t* xyz, std::span<const uint64_t> which, uint8_t* materials) {
  std::map<Int3, std::vector<uint64_t>> of_chunk;
  for (const uint64_t i : which)
    of_chunk[chunk_of(brick_of({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]}))].push_back(i);
  for (auto first = of_chunk.begin(); first != of_chunk.end();) {
    std::vector<Int3> chunks;
    auto end = first;
    for (; end != of_chunk.end() && chunks.size() < kChunksAtOnce; ++end) chunks.push_back(end->first);
    QRY_TRY_ASSIGN(const BrickMap bricks, pages_->read_chunks(chunks));
    for (; first != end; ++first)
      for (const uint64_t i : first->second) materials[i] = bricks.get({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]});
  }
  return {};
}

// In the window. What does not fit the budget together comes in halves.
Result<void> DeviceHome::get_held_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count) {
  const auto stay = pages_->voxels(xyz, count, ResidentPages::Use::read);
  if (stay) return read_voxels(xyz, materials, count);
  if (stay.error().code != ErrorCode::out_of_memory || count < 2) return tl::unexpected(stay.error());
  const uint64_t half = count / 2;
  QRY_TRY(get_held_voxels(xyz, materials, half));
  return get_held_voxels(xyz + 3 * half, materials + half, count - half);
}

Result<void> DeviceHome::read_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count) {
  const std::lock_guard lock(lock_);
  // A few, as picks and walks ask for them one after the other.
  constexpr uint64_t kFew = 8;
  if (count <= kFew) {
    for (uint64_t i = 0; i < count; ++i) {
      const Int3 voxel{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]};
      materials[i] = 0;
      if (!voxel_in_world(voxel)) continue;
      if (!read_before(voxel)) QRY_TRY(read_around(brick_of(voxel)));
      materials[i] = read_bricks_->materials[place_in_cache(brick_of(voxel))][voxel_index(voxel)];
    }
    return {};
  }
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

Result<void> DeviceHome::read_box(const Box3& of_world, uint8_t* materials, device::Side side) {
  ResidentPages::Stay stay;
  Box3 box = of_world;
  if (pages_) {
    const auto whole = stay_there();
    const Int3 from = origin();
    if (from != Int3{} || pages_->has_elsewhere()) {
      if (!pages_->holds(of_world)) {
        QRY_TRY(check_on_host(side, "a box in the device's memory that is not in the world's window"));
        return read_box_outside(of_world, materials);
      }
      box = moved(of_world, Int3{} - from);
    }
  }
  return read_held_box(box, materials, side);
}

// In the window.
Result<void> DeviceHome::read_held_box(const Box3& box, uint8_t* materials, device::Side side) {
  ResidentPages::Stay stay;
  if (pages_) {
    auto there = pages_->box(box, ResidentPages::Use::read);
    if (!there && there.error().code == ErrorCode::out_of_memory && side == device::Side::host)
      return read_box_by_parts(box, box, materials);
    QRY_TRY_ASSIGN(stay, std::move(there));
  }
  const std::lock_guard lock(lock_);
  return store_->read_box(box, materials, side);
}

// A box of which the window holds a part, or nothing: the rest comes from the file, a layer of chunks at a time.
Result<void> DeviceHome::read_box_outside(const Box3& box, uint8_t* materials) {
  const Int3 from = origin();
  const auto size_x = size_t(int64_t(box.max.x) - box.min.x + 1), size_y = size_t(int64_t(box.max.y) - box.min.y + 1);
  const auto at = [&](Int3 voxel) {
    return (size_t(int64_t(voxel.z) - box.min.z) * size_y + size_t(int64_t(voxel.y) - box.min.y)) * size_x +
           size_t(int64_t(voxel.x) - box.min.x);
  };
  std::memset(materials, 0, size_x * size_y * size_t(int64_t(box.max.z) - box.min.z + 1));
  const Box3 inside = intersected(box, {kSceneMin, kSceneMax});
  if (inside.empty()) return {};
  const Box3 chunks = chunks_of({brick_of(inside.min), brick_of(inside.max)});
  std::vector<Int3> outside;
  const auto read_some = [&]() -> Result<void> {
    QRY_TRY_ASSIGN(const BrickMap bricks, pages_->read_chunks(outside));
    for (const Int3 chunk : outside) {
      const Box3 of_chunk = box_of_voxels(box_of_bricks({chunk, chunk})), part = intersected(of_chunk, inside);
      for (const BrickPut& put : bricks.within({brick_of(part.min), brick_of(part.max)})) {
        const Box3 its = intersected(box_of_voxels({put.brick, put.brick}), part);
        for (int32_t z = its.min.z; z <= its.max.z; ++z)
          for (int32_t y = its.min.y; y <= its.max.y; ++y)
            for (int32_t x = its.min.x; x <= its.max.x; ++x)
              materials[at({x, y, z})] = put.value->materials[voxel_index({x, y, z})];
      }
    }
    outside.clear();
    return {};
  };
  for (int32_t z = chunks.min.z; z <= chunks.max.z; ++z)
    for (int32_t y = chunks.min.y; y <= chunks.max.y; ++y)
      for (int32_t x = chunks.min.x; x <= chunks.max.x; ++x) {
        const Int3 low{x * 64, y * 64, z * 64};
        const Box3 part = intersected({low, low + Int3{63, 63, 63}}, inside);
        if (!pages_->holds(part)) {
          outside.push_back({x, y, z});
          if (outside.size() == kChunksAtOnce) QRY_TRY(read_some());
          continue;
        }
        std::vector<uint8_t> some(size_t(part.max.x - part.min.x + 1) * size_t(part.max.y - part.min.y + 1) *
                                  size_t(part.max.z - part.min.z + 1));
        QRY_TRY(read_held_box(moved(part, Int3{} - from), some.data(), device::Side::host));
        const auto row = size_t(part.max.x - part.min.x) + 1;
        const uint8_t* next = some.data();
        for (int32_t v = part.min.z; v <= part.max.z; ++v)
          for (int32_t u = part.min.y; u <= part.max.y; ++u, next += row)
            std::memcpy(materials + at({part.min.x, u, v}), next, row);
      }
  return outside.empty() ? Result<void>() : read_some();
}

// A part of a box of which not all fits the budget together: its halves, between pages, as long as they do not either.
Result<void> DeviceHome::read_box_by_parts(const Box3& box, const Box3& part, uint8_t* materials) {
  const auto there = pages_->box(part, ResidentPages::Use::read);
  if (!there) {
    int32_t Int3::*const axes[] = {&Int3::z, &Int3::y, &Int3::x};
    int32_t Int3::*longest = axes[0];
    for (int32_t Int3::*const axis : axes)
      if (part.max.*axis - part.min.*axis > part.max.*longest - part.min.*longest) longest = axis;
    const int32_t middle = ((part.min.*longest + part.max.*longest) / 2 + 1) & ~127;
    if (there.error().code != ErrorCode::out_of_memory || middle <= part.min.*longest || middle > part.max.*longest)
      return tl::unexpected(there.error());
    Box3 low = part, high = part;
    low.max.*longest = middle - 1;
    high.min.*longest = middle;
    QRY_TRY(read_box_by_parts(box, low, materials));
    return read_box_by_parts(box, high, materials);
  }
  const size_t x = size_t(part.max.x - part.min.x) + 1, y = size_t(part.max.y - part.min.y) + 1,
               z = size_t(part.max.z - part.min.z) + 1;
  const size_t box_x = size_t(box.max.x - box.min.x) + 1, box_y = size_t(box.max.y - box.min.y) + 1;
  std::vector<uint8_t> some(x * y * z);
  {
    const std::lock_guard lock(lock_);
    QRY_TRY(store_->read_box(part, some.data(), device::Side::host));
  }
  for (size_t row = 0; row < y * z; ++row) {
    const size_t of_y = row % y + size_t(part.min.y - box.min.y), of_z = row / y + size_t(part.min.z - box.min.z);
    std::memcpy(materials + (of_z * box_y + of_y) * box_x + size_t(part.min.x - box.min.x), &some[row * x], x);
  }
  return {};
}

Result<void> DeviceHome::trace_there(const Ray* rays, size_t count, RayHit* hits) {
  QRY_TRY_ASSIGN(const auto stay, all_there(false, "a list of rays"));
  const std::lock_guard lock(lock_);
  if (origin_ != Int3{})
    return fail(
        ErrorCode::unsupported,
        "rays in the device's memory, of a world whose window is not at its origin: give them in the host's memory");
  return store_->trace_there(rays, count, hits);
}

Result<void> DeviceHome::trace(size_t count, const device::Executor::FillRays& fill,
                               const device::Executor::TakeHits& take) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  const auto stay = stay_there();
  if (!pages_ || (!pages_->lacks_some() && origin() == Int3{})) {
    const std::lock_guard lock(lock_);
    return store_->trace(count, fill, take);
  }
  std::vector<Ray> rays;
  std::vector<RayHit> hits;
  for (size_t first = 0; first < count; first += rays.size()) {
    rays.resize(std::min(kRaysInParts, count - first));
    hits.resize(rays.size());
    fill(first, rays);
    QRY_TRY(trace_in_windows(rays, hits));
    take(first, hits);
  }
  return {};
}

Result<RayHit> DeviceHome::pick(const std::array<double, 3>& origin, const std::array<float, 3>& direction) {
  const auto stay = stay_there();
  const Int3 from = this->origin();
  const Ray ray{{float(origin[0] - from.x), float(origin[1] - from.y), float(origin[2] - from.z)},
                {direction[0], direction[1], direction[2]}};
  RayHit hit{};
  hit.t = -1;
  if (pages_) {
    QRY_TRY(trace_in_window({&ray, 1}, {&hit, 1}));
  } else {
    const std::lock_guard lock(lock_);
    QRY_TRY(store_->trace(
        1, [&](size_t, std::span<Ray> to) { to[0] = ray; },
        [&](size_t, std::span<const RayHit> hits) { hit = hits[0]; }));
  }
  put_in_world(hit, from);
  return hit;
}

// Each in the window that its origin is well inside of, as far as that reaches; the present one first.
Result<void> DeviceHome::trace_in_windows(std::span<const Ray> rays, std::span<RayHit> hits) {
  std::vector<size_t> left(rays.size());
  std::iota(left.begin(), left.end(), size_t(0));
  std::vector<Ray> some;
  std::vector<RayHit> found;
  for (bool looked = false; !left.empty(); looked = true) {
    const auto near = [&](size_t i) {
      if (!pages_->has_elsewhere() || !can_be_traced(rays[i])) return true;
      const Ray& ray = rays[looked ? left.front() : i];
      const std::array<double, 3> eye{ray.origin[0], ray.origin[1], ray.origin[2]};
      if (!looked) return pages_->sees_from(eye);
      // As one that the window was moved for.
      double far = 0;
      for (size_t a = 0; a < 3; ++a) far = std::max(far, std::abs(double(rays[i].origin[a]) - eye[a]));
      return far < 1000;
    };
    if (looked) {
      const Ray& ray = rays[left.front()];
      QRY_TRY(pages_->look_from({ray.origin[0], ray.origin[1], ray.origin[2]}));
    }
    std::vector<size_t> now;
    std::ranges::copy_if(left, std::back_inserter(now), near);
    if (now.empty()) continue;
    std::erase_if(left, [&](size_t i) { return std::ranges::binary_search(now, i); });
    const Int3 from = origin();
    some.clear();
    for (const size_t i : now) {
      Ray& ray = some.emplace_back(rays[i]);
      ray.origin[0] = float(double(ray.origin[0]) - from.x);
      ray.origin[1] = float(double(ray.origin[1]) - from.y);
      ray.origin[2] = float(double(ray.origin[2]) - from.z);
    }
    found.resize(some.size());
    QRY_TRY(trace_in_window(some, found));
    for (size_t n = 0; n < now.size(); ++n) {
      hits[now[n]] = found[n];
      put_in_world(hits[now[n]], from);
    }
  }
  return {};
}

Result<void> DeviceHome::trace_in_window(std::span<const Ray> rays, std::span<RayHit> hits) {
  const auto trace_there = [this](std::span<const Ray> some, std::span<RayHit> theirs) {
    const std::lock_guard lock(lock_);
    return store_->trace(
        some.size(),
        [&](size_t first, std::span<Ray> to) { std::ranges::copy(some.subspan(first, to.size()), to.begin()); },
        [&](size_t first, std::span<const RayHit> found) {
          std::ranges::copy(found, theirs.begin() + std::ptrdiff_t(first));
        });
  };
  return trace_in_parts(*pages_, rays, hits, trace_there);
}

Result<const device::Store::Published*> DeviceHome::publish(const device::Store::Frames& frames, bool in_parts) {
  ResidentPages::Stay stay;
  if (!in_parts) {
    QRY_TRY_ASSIGN(stay, all_there(false, "a picture"));
  }
  const std::lock_guard lock(lock_);
  return store_->publish(frames);
}

Result<void> DeviceHome::recycle(const device::Store::Frames& frames) {
  const std::lock_guard lock(lock_);
  return store_->shares() ? store_->recycle(frames) : Result<void>();
}

Result<void> DeviceHome::prefetch(const Box3& box) {
  const auto stay = stay_there();
  const Box3 inside = intersected(box, moved({kWorldMin, kWorldMax}, origin()));
  if (inside.empty()) return {};
  QRY_TRY(pages_->box(moved(inside, Int3{} - origin()), ResidentPages::Use::read));
  return {};
}

Result<std::vector<uint32_t>> DeviceHome::keys() {
  const auto held = stay_there();
  const auto stay = all_there(false, "a list of bricks");
  if (!stay) return lacks_room(stay.error()) ? keys_in_parts() : tl::unexpected(stay.error());
  const std::lock_guard lock(lock_);
  QRY_TRY_ASSIGN(const auto entries, store_->entries());
  std::vector<uint32_t> keys;
  keys.reserve(entries.size());
  for (const device::Store::Entry& entry : entries) keys.push_back(entry.key);
  return keys;
}

Result<BrickMap> DeviceHome::bricks(const BrickPool& pool) {
  QRY_TRY_ASSIGN(const auto stay, all_there(false, "reading all bricks"));
  const std::lock_guard lock(lock_);
  QRY_TRY_ASSIGN(const auto entries, store_->entries());
  return bricks_of(entries, brick_of(origin_), pool);
}

Result<BrickMap> DeviceHome::bricks_with(const std::array<bool, 256>& materials) {
  const auto held = stay_there();
  if (pages_ && pages_->has_file()) return bricks_in_parts(materials);
  QRY_TRY_ASSIGN(const auto stay, all_there(false, "the search for lights"));
  const std::lock_guard lock(lock_);
  QRY_TRY_ASSIGN(auto entries, store_->entries());
  enum : uint8_t { kLeftOut, kBeside, kFound };
  std::vector<uint8_t> which(entries.size(), kLeftOut);
  std::vector<uint32_t> places;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (device::is_full_index(entries[i].index)) {
      if (materials[entries[i].index + 1]) which[i] = kFound;
      continue;
    }
    places.push_back(entries[i].index);
    numbers.push_back(i);
  }
  QRY_TRY(read_each(*store_, places, threads_, [&](size_t i, const BrickMaterials& read) {
    if (std::ranges::any_of(read, [&](uint8_t material) { return material && materials[material]; }))
      which[numbers[i]] = kFound;
  }));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (which[i] != kFound) continue;
    const Int3 at = brick_from_key(entries[i].key);
    for (const Int3 step : {Int3{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}}) {
      if (!brick_in_world(at + step)) continue;
      const uint32_t key = brick_key(at + step);
      const auto beside = std::ranges::lower_bound(entries, key, {}, &device::Store::Entry::key);
      if (beside == entries.end() || beside->key != key) continue;
      uint8_t& its = which[size_t(beside - entries.begin())];
      its = std::max<uint8_t>(its, kBeside);
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i)
    if (which[i] != kLeftOut) entries[kept++] = entries[i];
  entries.resize(kept);
  return bricks_of(entries, {}, BrickPool::loose());
}

Result<BrickMap> DeviceHome::bricks_of(std::span<const device::Store::Entry> entries, Int3 from,
                                       const BrickPool& pool) {
  std::vector<BrickPut> puts(entries.size());
  std::vector<uint32_t> places;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < entries.size(); ++i) {
    puts[i].brick = brick_from_key(entries[i].key) + from;
    if (device::is_full_index(entries[i].index)) {
      puts[i].value = SharedBrick::full(uint8_t(entries[i].index + 1));
    } else {
      places.push_back(entries[i].index);
      numbers.push_back(i);
    }
  }
  QRY_TRY(read_each(*store_, places, threads_, [&](size_t i, const BrickMaterials& materials) {
    puts[numbers[i]].value = brick_of_materials(materials, pool);
  }));
  std::sort(puts.begin(), puts.end(), [](const BrickPut& a, const BrickPut& b) { return a.brick < b.brick; });
  BrickMap bricks(pool);
  bricks.put(puts);
  return bricks;
}

}  // namespace quarry::engine
