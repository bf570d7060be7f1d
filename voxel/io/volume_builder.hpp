// volume_builder.hpp - what the readers of foreign voxel formats share: bricks paid for with bytes of the file, colours that become
// materials, and where a volume goes that does not fit the world from its origin on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/scene.hpp"

namespace quarry::io {

// A file that is small and describes something huge takes no more than this: 2^20 bricks (640 MiB) and one for each 16 bytes more.
class BrickBudget {
 public:
  explicit BrickBudget(uint64_t file_bytes) : limit_((uint64_t(1) << 20) + file_bytes / 16) {}
  // False if that is more than the file may have.
  bool take(uint64_t bricks) {
    taken_ += bricks;
    return taken_ <= limit_;
  }
  // False if so many voxels cannot lie in the bricks that there may be, however dense.
  bool holds(uint64_t voxels) const { return voxels / kVoxelsPerBrick <= limit_; }
  // The message, which says what to do; `where` is the beginning of the sentence, as "byte 12: ".
  Error error(const std::string& where) const {
    return {ErrorCode::unsupported, where + "it fills more than " + std::to_string(limit_) + " bricks of 8 x 8 x 8 voxels, the most that a file of its length may; split it into smaller ones"};
  }

 private:
  uint64_t limit_, taken_ = 0;
};

// Voxels into a volume's bricks, in any order; the last of equal cells wins.
class VolumeBuilder {
 public:
  explicit VolumeBuilder(BrickBudget& budget) : budget_(budget) {}
  // False once the budget is spent: stop then.
  bool set(Int3 cell, uint8_t material) {
    bricks_.set(cell, material);
    const uint64_t now = bricks_.bricks().size();
    if (now <= counted_) return true;
    const bool enough = budget_.take(now - counted_ + (counted_ ? 0 : kFirstBrick));
    counted_ = now;
    return enough;
  }
  BrickMap take() { return std::move(bricks_); }

 private:
  static constexpr uint64_t kFirstBrick = 5;  // what the map of a volume with a single brick takes besides, as bricks
  BrickBudget& budget_;
  BrickMap bricks_;
  uint64_t counted_ = 0;
};

// Colours as r | g << 8 | b << 16 | a << 24, counted first, then asked for: exact up to 255 of them, else the nearest of 255 by
// median cut and k-means (voxelize_palette.hpp). About 60 bytes a distinct colour. Deterministic.
class ColorTable {
 public:
  void count(uint32_t rgba, uint64_t voxels = 1) {
    if (voxels) counts_[rgba] += voxels;
  }
  // Ends the counting. Materials get the format's default roughness; metadata says how far the palette is from the file's colours.
  void finish(Scene& scene, std::vector<std::string>* warnings);
  uint8_t material(uint32_t rgba) const { return materials_.at(rgba); }

 private:
  std::unordered_map<uint32_t, uint64_t> counts_;
  std::unordered_map<uint32_t, uint8_t> materials_;
};

constexpr uint32_t rgba_of(uint32_t r, uint32_t g, uint32_t b, uint32_t a = 255) { return r | g << 8 | b << 16 | a << 24; }

// A volume [0, size) stays where it is on each axis on which it fits the world from 0 on, and is centred on the others.
Int3 fitting_offset(Int3 size);
// A sentence for the user, if anybody listens; not more than a screenful of them.
void add_warning(std::vector<std::string>* warnings, std::string sentence);
// A scene of one volume that is placed once.
void add_single_volume(Scene& scene, std::string name, BrickMap bricks, Int3 size);
// The same scene (or error), whose only volume and instance are called as the file is.
Result<Scene> named_after(const std::filesystem::path& file, Result<Scene> scene);

}  // namespace quarry::io
