// SPDX-License-Identifier: Apache-2.0
// color.hpp - a mesh's textures with the smaller copies that filtering reads, its materials and tables: what the views
// of voxelize/texturing.hpp point to on the host, and what is copied to a device.
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

  // True if every triangle has the same colour everywhere: then any point gives it.
  bool uniform() const { return uniform_; }
  // Pointers into this object and the mesh.
  const SurfaceView& view() const { return view_; }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<MaterialView>& materials() const { return materials_; }
  const std::vector<TextureView>& textures() const { return textures_; }
  // 16-bit numbers that textures()[image].smaller points to.
  size_t smaller_size(size_t image) const { return smaller_[image].size(); }

 private:
  const Mesh& mesh_;
  bool uniform_ = false;
  std::vector<MaterialView> materials_;
  std::vector<TextureView> textures_;           // by image
  std::vector<std::vector<uint16_t>> smaller_;  // by image: levels 1, 2, ... one after the other
  SurfaceView view_{};
};

}  // namespace quarry::voxelize_detail
