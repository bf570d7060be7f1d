// brick_map.hpp - the sparse bricks of one volume on the host: an ordered map from brick coordinate to brick.
// A volume's own data; what is rendered is the flattened World, whose bricks the hash grid addresses.
// Unbounded by the world's extent: a volume may lie anywhere, only its flattened instances must fit the world.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "voxel/brick.hpp"

namespace quarry {

class BrickMap {
 public:
  uint8_t get(Int3 voxel) const;            // 0 if empty
  void set(Int3 voxel, uint8_t material);   // 0 removes; a brick that becomes empty goes
  const Brick* find(Int3 brick) const;      // null if absent
  // Replaces a whole brick; an empty one removes it.
  void put(Int3 brick, const Brick& value);
  const std::map<Int3, Brick>& bricks() const { return bricks_; }
  uint64_t voxel_count() const;
  Box3 bounds() const;                      // tight; empty box if there are no voxels
  bool empty() const { return bricks_.empty(); }
  void clear() { bricks_.clear(); }

 private:
  std::map<Int3, Brick> bricks_;  // ordered, so that whatever is made from it is the same every time
};

}  // namespace quarry
