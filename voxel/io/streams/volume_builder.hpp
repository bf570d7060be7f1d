// SPDX-License-Identifier: Apache-2.0
// volume_builder.hpp - shared by the readers of foreign voxel formats: a limit on bricks by the bytes of the file, the
// conversion of colours to materials, and the place of a volume that does not fit the world from its origin on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/result.hpp"
#include "voxel/io/streams/spilled_bricks.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// The place of a reader's bricks, and their greatest number. By default they are kept in memory, as many as the file's
// size allows.
struct BrickLimits {
  const MemoryBudget* memory = nullptr;
  // Receives bricks when memory is short. Null: reading then ends with ErrorCode::out_of_memory.
  SpilledBricks* spill = nullptr;
};

// The limit for a small file that describes something huge: 2^20 bricks (640 MiB), and one more for each 16 bytes of
// the file. No file may take more memory than is available either. This is checked each time that half of the
// remaining memory may be used.
class BrickBudget {
 public:
  explicit BrickBudget(uint64_t file_bytes, const BrickLimits& limits = {})
      : limit_((uint64_t(1) << 20) + file_bytes / 16), limits_(limits) {}
  // Returns false if that is more than the file's size or the memory allows.
  bool take(uint64_t bricks) {
    taken_ += bricks;
    since_ += bricks;
    waiting_ += bricks;
    if (limits_.memory && since_ >= look_after_) look();
    return taken_ <= limit_ && (!short_ || limits_.spill);
  }
  // Memory is short: the bricks made so far must be spilled before more are made.
  bool short_of_memory() const { return short_; }
  SpilledBricks* spill() const { return limits_.spill; }
  // Call it if no spilling would help. Returns false.
  bool give_up() {
    limits_.spill = nullptr;
    return false;
  }
  // Call it after the bricks were spilled.
  void gone() {
    short_ = false;
    look_after_ = 0;
    since_ = 0;
    waiting_ = 0;
  }
  // Returns false if so many voxels cannot fit the allowed bricks, however dense.
  bool holds(uint64_t voxels) const { return voxels / kVoxelsPerBrick <= limit_; }
  // The message, which says what to do; `where` is the beginning of the sentence, as "byte 12: ".
  Error error(const std::string& where) const {
    if (short_) return limits_.memory->used_up("making voxels of it");
    return {ErrorCode::unsupported,
            where + "it fills more than " + std::to_string(limit_) +
                " bricks of 8 x 8 x 8 voxels, the most that a file of its length may; split it into smaller ones"};
  }

 private:
  void look() {
    // The bytes of a brick in a map, with those of the allocator and the tree's leaves. Some memory is left for writing
    // the bricks: also what spilling takes to order them, which is much beside full bricks that share their voxels.
    constexpr uint64_t kBytes = 700, kMostBricks = 1u << 15, kLeft = uint64_t(4) << 20;
    const uint64_t ordering = limits_.spill ? waiting_ * sizeof(BrickMap::Entry) : 0;
    const uint64_t available = limits_.memory->available_bytes(),
                   left = kLeft + limits_.memory->limit_bytes() / 16 + ordering;
    short_ = available < left;
    look_after_ = short_ ? 0 : std::min<uint64_t>((available - left) / 2 / kBytes + 256, kMostBricks);
    since_ = 0;
  }

  uint64_t limit_, taken_ = 0;
  BrickLimits limits_;
  uint64_t since_ = 0, look_after_ = 0;  // bricks since the last check of memory; bricks until the next one
  uint64_t waiting_ = 0;                 // bricks since the last that were spilled
  bool short_ = false;
};

// Puts voxels into a volume's bricks, in any order. The last of equal cells counts. `volume` is the volume's number in
// the scene.
class VolumeBuilder {
 public:
  explicit VolumeBuilder(BrickBudget& budget, size_t volume = 0) : budget_(budget), volume_(volume) {}
  // Returns false once the budget is used up. The caller must stop then.
  bool set(Int3 cell, uint8_t material) {
    bricks_.set(cell, material);
    const uint64_t now = bricks_.bricks().size();
    if (now <= counted_) return true;
    const bool enough = budget_.take(now - counted_ + (counted_ ? 0 : kFirstBrick));
    counted_ = now;
    return enough && (!budget_.short_of_memory() || spill());
  }
  // Does the same for a reader that makes whole bricks.
  bool put(Int3 at, const Brick& brick) {
    if (!budget_.take(1)) return false;
    bricks_.put(at, brick);
    return !budget_.short_of_memory() || spill();
  }
  // Returns the bricks in memory. If bricks are spilled, these are spilled too, and the result is empty.
  BrickMap take();

 private:
  static constexpr uint64_t kFirstBrick = 5;  // the overhead of the map of a one-brick volume, in bricks
  bool spill();
  BrickBudget& budget_;
  size_t volume_;
  BrickMap bricks_;
  uint64_t counted_ = 0;
};

// Colours as r | g << 8 | b << 16 | a << 24, which are counted first and looked up later. Up to 255 of them are exact.
// Of more, each becomes the nearest of 255 by median cut and k-means (voxelize/palette.hpp). Memory: about 60 bytes a
// distinct colour. Deterministic.
class ColorTable {
 public:
  explicit ColorTable(const MemoryBudget* memory = nullptr) : memory_(memory) {}
  void count(uint32_t rgba, uint64_t voxels = 1) {
    if (!voxels || error_) return;
    counts_[rgba] += voxels;
    if (memory_ && counts_.size() >= look_at_) look();
  }
  // Whether memory has sufficed for all colours so far. Check it before finish().
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }
  // Ends the counting. Materials get the format's default roughness. Metadata states the palette's error against the
  // file's colours.
  void finish(Scene& scene, std::vector<std::string>* warnings);
  uint8_t material(uint32_t rgba) const { return materials_.at(rgba); }
  // The material of a colour that may not have been counted, because the file was changed meanwhile. It is 0 then, and
  // `unknown` is set.
  uint8_t material(uint32_t rgba, bool* unknown) const {
    const auto found = materials_.find(rgba);
    *unknown = *unknown || found == materials_.end();
    return found == materials_.end() ? uint8_t(0) : found->second;
  }

 private:
  void look() {
    // The palette is made of a sorted copy, with a table from colour to material.
    constexpr uint64_t kStep = 1u << 16, kBytes = 100;
    look_at_ = counts_.size() + kStep;
    if (memory_->available_bytes() < (counts_.size() + kStep) * kBytes)
      error_ = memory_->used_up("counting its colours (" + std::to_string(counts_.size()) + " so far)");
  }
  const MemoryBudget* memory_;
  uint64_t look_at_ = 1u << 16;
  std::optional<Error> error_;
  std::unordered_map<uint32_t, uint64_t> counts_;
  std::unordered_map<uint32_t, uint8_t> materials_;
};

constexpr uint32_t rgba_of(uint32_t r, uint32_t g, uint32_t b, uint32_t a = 255) {
  return r | g << 8 | b << 16 | a << 24;
}

// A volume [0, size) keeps its place on each axis on which it fits the world from 0 on, and is centred on the others.
Int3 fitting_offset(Int3 size);
// Adds a sentence for the user, unless `warnings` is null. At most a screenful of them is kept.
void add_warning(std::vector<std::string>* warnings, std::string sentence);
// Makes a scene of one volume that is placed once.
void add_single_volume(Scene& scene, std::string name, BrickMap bricks, Int3 size);
// Returns the same scene (or error), with the file's name for its only volume and instance.
Result<Scene> named_after(const std::filesystem::path& file, Result<Scene> scene);

}  // namespace quarry::io
