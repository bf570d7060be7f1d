// SPDX-License-Identifier: Apache-2.0
// shared.hpp - a handle of an immutable brick: none, full of one material, or a counted reference.
//
// Volumes, undo records, files being saved and copies of any of these share bricks through handles. So a copy of a
// volume, an undo record and a snapshot cost a handle a brick, and no voxel is written twice.
//   none   the empty brick                                                               no memory
//   full   all 512 voxels set, all of one material; one handle for each of 255           no memory
//   else   one heap block, shared by all its handles                                     584 B + the allocator's
// Bricks that are made from voxels take the cheapest form, so that equal full bricks have equal handles.
// Thread safety: handles of one brick may be copied, read and destroyed by any threads; one handle as any value type.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "voxel/bricks/brick.hpp"

namespace quarry {

class SharedBrick {
 public:
  SharedBrick() = default;
  explicit SharedBrick(const Brick& value) {
    if (value.empty()) return;
    if (const uint8_t material = full_material(value)) bits_ = full_bits(material);
    else bits_ = reinterpret_cast<uintptr_t>(new Node{value});
  }
  // Material 0: none.
  static SharedBrick full(uint8_t material) {
    SharedBrick brick;
    if (material) brick.bits_ = full_bits(material);
    return brick;
  }
  SharedBrick(const SharedBrick& other) noexcept : bits_(other.bits_) {
    if (Node* const shared = node()) shared->references.fetch_add(1, std::memory_order_relaxed);
  }
  SharedBrick(SharedBrick&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  SharedBrick& operator=(SharedBrick other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~SharedBrick() {
    // Release: this handle's reads happen before the count drops. Acquire: the handle that frees sees all of them.
    if (Node* const last = node(); last && last->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete last;
  }

  // True if there is a voxel.
  explicit operator bool() const { return bits_ != 0; }
  // The voxels; valid while a handle of the brick lives, for ever if it is full or none.
  const Brick& operator*() const {
    const Node* const counted = node();
    return counted ? counted->value : full_brick(material());
  }
  const Brick* operator->() const { return &**this; }
  // The material of a full brick, else 0.
  uint8_t material() const { return bits_ & 1u ? uint8_t(bits_ >> 1) : uint8_t(0); }
  uint32_t count() const { return !bits_ ? 0 : bits_ & 1u ? kVoxelsPerBrick : (**this).count(); }
  // True if both share one brick: then they are equal; equal bricks need not share one.
  bool same_as(const SharedBrick& other) const { return bits_ == other.bits_; }
  // A block of its own on the heap, of which this is one of the handles; 0 for full bricks and none.
  uint64_t size_bytes() const { return node() ? sizeof(Node) : 0; }
  friend bool operator==(const SharedBrick& a, const SharedBrick& b) { return a.bits_ == b.bits_ || *a == *b; }

 private:
  friend class BrickMap;  // writes bricks that nobody else has yet

  struct Node {
    Brick value;
    std::atomic<uint32_t> references{1};
  };
  static uintptr_t full_bits(uint8_t material) { return uintptr_t(material) << 1 | 1u; }
  Node* node() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the tag in its lowest bit is what makes the handle 8 bytes
    return bits_ & 1u ? nullptr : reinterpret_cast<Node*>(bits_);
  }
  // True if this is the only handle of a counted brick. No other can be made then but from this one, and the brick may
  // be written in place. Acquire pairs with the release of the last other handle, whose reads are therefore over.
  bool unique() const { return node() && node()->references.load(std::memory_order_acquire) == 1; }
  // The brick for writing: copied first if it is shared, full or none. May leave it in a form that is not the cheapest.
  Brick& own() {
    if (!unique()) {
      SharedBrick copy;
      copy.bits_ = reinterpret_cast<uintptr_t>(new Node{**this});
      *this = std::move(copy);
    }
    return node()->value;
  }

  uintptr_t bits_ = 0;  // 0: none; odd: a full brick's material << 1 | 1; else the address of a Node
};

// What comes to be at a place: a whole brick, or none.
struct BrickPut {
  Int3 brick;
  SharedBrick value;
};

}  // namespace quarry
