// SPDX-License-Identifier: Apache-2.0
// color.hpp - a mesh's textures with their mip levels for filtering, its materials and tables. The views of
// voxelize/texturing.hpp point to them on the host, and they are copied to a device.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel/voxelize/mesh.hpp"
#include "voxel/voxelize/texturing.hpp"

namespace quarry::voxelize_detail {

float emission_of_byte(uint32_t byte);
const SrgbTables& srgb_tables();

class Surface {
 public:
  // Keeps a reference to `mesh`. Textures are halved over `threads` threads.
  Surface(const Mesh& mesh, uint32_t threads);
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;

  // True if every triangle has one colour all over, so that any point of it has that colour.
  bool uniform() const { return uniform_; }
  // Pointers into this object and the mesh.
  const SurfaceView& view() const { return view_; }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<MaterialView>& materials() const { return materials_; }
  const std::vector<TextureView>& textures() const { return textures_; }
  // How many 16-bit numbers textures()[image].smaller points to.
  size_t smaller_size(size_t image) const { return smaller_[image].size(); }

 private:
  const Mesh& mesh_;
  bool uniform_ = false;
  std::vector<MaterialView> materials_;
  std::vector<TextureView> textures_;           // by image
  std::vector<std::vector<uint16_t>> smaller_;  // by image: levels 1, 2, ... in sequence
  SurfaceView view_{};
};

}  // namespace quarry::voxelize_detail
