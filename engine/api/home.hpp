// SPDX-License-Identifier: Apache-2.0
// home.hpp - the device home of a world of the C interface: its voxels and its history are in a CUDA device's memory
// (voxel/device/store.hpp), and edits are launched there. The document beside it is behind. It is brought up to date by
// making the same edits, when a call needs what only the host does: saving, pictures, packing, its own reads.
//
//   edit, undo, lists ─► Store, and a note of what was done ─┬─► answers by ticket, counts, bounds, reads of voxels
//                                                            └─► catch_up(): Document, when it is asked for
//
// Edits are deterministic, so both agree; each edit's count of voxels is compared. Any number of threads may read.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::c_api {

class DeviceHome {
 public:
  // Puts the document's voxels into the device's memory. Its history stays with it, and is undone there. Its scene has
  // one volume, at the origin. Errors: unsupported (another scene), out_of_memory, full, device.
  static Result<std::unique_ptr<DeviceHome>> create(std::unique_ptr<device::Executor> executor, Document& document,
                                                    uint32_t max_bricks, uint32_t threads);

  // The document gets what was done here. Errors: those of the edits; device.
  Result<void> catch_up();

  struct Change {
    uint64_t voxels = 0, version = 0;
    bool step = false;  // one was made, undone or redone; one of a palette changes no voxel
  };
  // Returns when it is launched, with its ticket. Errors: as Document::apply, but what only the device can tell.
  Result<uint64_t> edit(const Edit& edit);
  Result<uint64_t> undo();
  Result<uint64_t> redo();
  // Blocks until it is done.
  Result<uint64_t> set_voxels(const VoxelWrites& writes);
  Result<uint64_t> write_region(const Box3& box, const uint8_t* materials);
  Result<Change> wait(uint64_t ticket);

  struct State {
    device::Store::State store;
    uint64_t version = 0, history_length = 0, history_position = 0;
    uint64_t behind = 0;  // edits that the document does not have
  };
  Result<State> state();
  Result<uint64_t> version();  // of the world: changes made here
  Result<void> reserve(uint32_t keys, uint32_t bricks);
  Result<void> trim();
  // Materials of voxels, and of a box, x fastest; both in the world.
  Result<void> get_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count);
  Result<void> read_box(const Box3& box, const std::function<uint8_t*(Int3 voxel)>& row);
  // As Store::trace().
  Result<void> trace(size_t count, const device::Executor::FillRays& fill, const device::Executor::TakeHits& take);
  // As Store::publish().
  Result<const device::Store::Published*> publish(const device::Store::Frames& frames);
  bool shares() const { return store_->shares(); }
  // The keys of all bricks, sorted.
  Result<std::vector<uint32_t>> keys();

 private:
  enum class Kind : uint8_t { edit, undo, redo, voxels };
  // A list of voxels, as the caller gave it.
  struct ListNote {
    std::unique_ptr<int32_t[]> xyz;
    std::unique_ptr<uint8_t[]> materials;
    uint64_t count = 0;
    size_t size_bytes() const { return size_t(count) * (3 * sizeof(int32_t) + 1); }
  };
  ListNote note_of(const VoxelWrites& writes) const;
  // What was done here and not by the document.
  struct Done {
    uint64_t ticket;
    std::optional<device::Store::Ticket> launched;  // none: it is done
    Kind kind;
    Edit edit;
    ListNote list;
    uint64_t voxels = 0;  // that differ, once that is heard
  };

  DeviceHome(std::unique_ptr<device::Store> store, Document& document, uint32_t threads)
      : store_(std::move(store)), document_(document), threads_(threads) {}
  Result<void> fill();
  Result<uint64_t> add(Done done, const Result<device::Store::Change>* change);
  Result<uint64_t> write(ListNote list);
  Result<uint64_t> write(Done done, const std::vector<uint32_t>& keys, const std::vector<BrickMask>& voxels,
                         const std::vector<BrickMaterials>& materials, const Edit& edit);
  Result<void> hear(uint64_t ticket);
  void heard(Done& done, const Result<device::Store::Change>& change);
  Result<void> catch_up_locked();
  Result<uint64_t> exchange(bool forward);
  Result<void> push_records(std::span<const UndoRecord> records);

  std::mutex lock_;
  std::unique_ptr<device::Store> store_;
  Document& document_;
  uint32_t threads_;
  std::deque<Done> done_;
  size_t unheard_ = 0;  // done_[unheard_ ...] have no answer yet
  size_t list_bytes_ = 0;
  std::map<uint64_t, Result<Change>> answers_;  // the last 4096
  uint64_t last_ticket_ = 0;
  uint64_t version_offset_ = 0;  // what the store's version is more than the world's, wrapping round
  uint64_t version_ = 0;         // of the world, as far as heard
  // The steps that the store has: those of the document before them are `base_`.
  uint64_t base_ = 0, steps_ = 0, position_ = 0;
  bool edited_ = false;  // since then: what the document could redo is gone
};

}  // namespace quarry::c_api
