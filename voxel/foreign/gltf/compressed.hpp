// SPDX-License-Identifier: Apache-2.0
// compressed.hpp - what glTF files hold compressed: Draco's meshes and meshoptimizer's buffer views, by their
// libraries. What is asked of them is checked before they are called, and what they answer before it is used; a crash
// of theirs is the process's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry::mesh_reader {

// As EXT_meshopt_compression describes a view.
struct MeshoptStream {
  uint64_t count = 0, stride = 0;
  // "ATTRIBUTES", "TRIANGLES", "INDICES"; "", "NONE", "OCTAHEDRAL", "QUATERNION", "EXPONENTIAL".
  std::string mode, filter;
};
// count x stride bytes. Errors: malformed_input, unsupported.
Result<std::vector<uint8_t>> decode_meshopt(std::span<const uint8_t> bytes, const MeshoptStream& stream);

struct DracoAttribute {
  std::string name;  // "POSITION"
  uint32_t components = 0;
  bool normalized = false;  // the numbers are of [0, 1] or [-1, 1] already
  std::vector<float> values;
};
struct DracoMesh {
  uint32_t vertices = 0;
  std::vector<uint32_t> indices;  // 3 per triangle, each below `vertices`
  std::vector<DracoAttribute> attributes;
};
// `wanted` are names and Draco's unique ids. Errors: malformed_input, out_of_memory.
Result<DracoMesh> decode_draco(std::span<const uint8_t> bytes,
                               std::span<const std::pair<std::string, uint64_t>> wanted);

}  // namespace quarry::mesh_reader
