// SPDX-License-Identifier: Apache-2.0
// compressed.hpp - the compressed parts of glTF files: Draco's meshes and meshoptimizer's buffer views. Their libraries
// decode them. The arguments are checked before each call, and the results before they are used. A crash in a library
// ends the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry::mesh_reader {

// A buffer view as EXT_meshopt_compression describes it.
struct MeshoptStream {
  uint64_t count = 0, stride = 0;
  // "ATTRIBUTES", "TRIANGLES", "INDICES"; "", "NONE", "OCTAHEDRAL", "QUATERNION", "EXPONENTIAL".
  std::string mode, filter;
};
// Returns count x stride bytes. Errors: malformed_input, unsupported.
Result<std::vector<uint8_t>> decode_meshopt(std::span<const uint8_t> bytes, const MeshoptStream& stream);

struct DracoAttribute {
  std::string name;  // "POSITION"
  uint32_t components = 0;
  bool normalized = false;  // the numbers are in [0, 1] or [-1, 1] already
  std::vector<float> values;
};
struct DracoMesh {
  uint32_t vertices = 0;
  std::vector<uint32_t> indices;  // 3 per triangle, each below `vertices`
  std::vector<DracoAttribute> attributes;
};
// `wanted` lists names and Draco's unique ids. Errors: malformed_input, out_of_memory.
Result<DracoMesh> decode_draco(std::span<const uint8_t> bytes,
                               std::span<const std::pair<std::string, uint64_t>> wanted);

}  // namespace quarry::mesh_reader
