// SPDX-License-Identifier: Apache-2.0
// accessor.hpp - the numbers of a glTF accessor, one element at a time: any component type, normalised or not, strided,
// sparse, or without data (zeros).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "voxel/foreign/gltf/document.hpp"

namespace quarry::mesh_reader {

enum class Component : uint8_t { i8, u8, i16, u16, u32, f32 };

// Refers to the document's bytes; cheap to copy. Every element below count() may be read.
class GltfAccessor {
 public:
  // Reads accessors[index]. Throws GltfFault if it does not exist or does not lie within its bytes.
  GltfAccessor(GltfDocument& document, uint64_t index, const std::string& who);
  // Takes decompressed numbers. They are divided already, or are to be left as they are.
  GltfAccessor(std::shared_ptr<const std::vector<float>> values, uint32_t components);

  uint64_t count() const { return count_; }
  uint32_t components() const { return components_; }
  bool normalized() const { return normalized_; }
  Component component() const { return component_; }

  // Reads the components() numbers of element i. Normalised integers are divided (c / 255, c / 65535,
  // max(c / 127, -1), max(c / 32767, -1)).
  void read(uint64_t i, double* out) const;
  // Returns the first component of an accessor of unsigned integers, unchanged.
  uint32_t read_index(uint64_t i) const;

 private:
  const uint8_t* element(uint64_t i) const;
  void take_sparse(GltfDocument& document, const Json& sparse, const std::string& where);

  const uint8_t* data_ = nullptr;  // null: zeros
  uint64_t count_ = 0, stride_ = 0;
  uint32_t components_ = 1;
  Component component_ = Component::f32;
  bool normalized_ = false;
  std::shared_ptr<const std::vector<uint64_t>> sparse_at_;  // rising
  const uint8_t* sparse_values_ = nullptr;
  std::shared_ptr<const std::vector<float>> owned_;
};

// The divisor of a normalised integer of this type.
double largest_of(Component component);

}  // namespace quarry::mesh_reader
