// SPDX-License-Identifier: Apache-2.0
// accessor.cpp - bounds are checked once when an accessor is made, elements are converted when they are read.
#include "voxel/foreign/gltf/accessor.hpp"

#include <algorithm>
#include <cstring>

namespace quarry::mesh_reader {
namespace {

// An accessor without a buffer view may always have this many elements. Without a limit, a file of a few bytes could
// ask for gigabytes of zeros.
constexpr uint64_t kFreeElements = 1 << 16;

Component component_of(uint64_t number, const std::string& where) {
  switch (number) {
    case 5120: return Component::i8;
    case 5121: return Component::u8;
    case 5122: return Component::i16;
    case 5123: return Component::u16;
    case 5125: return Component::u32;
    case 5126: return Component::f32;
    default: gltf_fault(where + ".componentType " + std::to_string(number) + " is none that glTF 2.0 knows.");
  }
}

uint64_t size_of(Component component) {
  switch (component) {
    case Component::i8:
    case Component::u8: return 1;
    case Component::i16:
    case Component::u16: return 2;
    default: return 4;
  }
}

// Matrices are not read: their columns begin at multiples of 4 bytes, and this reader needs none of them.
uint32_t components_of(const std::string& type, const std::string& where) {
  if (type == "SCALAR") return 1;
  if (type == "VEC2") return 2;
  if (type == "VEC3") return 3;
  if (type == "VEC4") return 4;
  gltf_fault(where + ".type \"" + type + "\" is not SCALAR, VEC2, VEC3 or VEC4.");
}

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double load_number(Component component, const uint8_t* at) {
  switch (component) {
    case Component::i8: return int8_t(*at);
    case Component::u8: return *at;
    case Component::i16: return load<int16_t>(at);
    case Component::u16: return load<uint16_t>(at);
    case Component::u32: return load<uint32_t>(at);
    default: return double(load<float>(at));
  }
}

// The address of `count` elements of `size` bytes, `stride` apart, that begin at `offset`. It checks the bounds.
const uint8_t* within(std::span<const uint8_t> bytes, uint64_t offset, uint64_t count, uint64_t stride, uint64_t size,
                      const std::string& where) {
  if (count == 0) return nullptr;
  if (offset > bytes.size() || size > bytes.size() - offset || count - 1 > (bytes.size() - offset - size) / stride)
    gltf_fault(where + ": " + std::to_string(count) + " elements of " + std::to_string(size) + " bytes, " +
               std::to_string(stride) + " apart, from byte " + std::to_string(offset) +
               " on, are more than its buffer view of " + std::to_string(bytes.size()) + " bytes holds.");
  return bytes.data() + offset;
}

}  // namespace

double largest_of(Component component) {
  switch (component) {
    case Component::i8: return 127;
    case Component::u8: return 255;
    case Component::i16: return 32767;
    case Component::u16: return 65535;
    case Component::u32: return 4294967295.0;
    default: return 1;
  }
}

GltfAccessor::GltfAccessor(GltfDocument& document, uint64_t index, const std::string& who) {
  const Json& object = document.item("accessors", index, who);
  const std::string where = place("accessors", index);
  count_ = whole_number(object, "count", 0, where);
  component_ = component_of(whole_number(object, "componentType", 0, where), where);
  components_ = components_of(text(object, "type"), where);
  normalized_ = boolean(object, "normalized") && component_ != Component::f32;
  const uint64_t size = size_of(component_) * components_;
  stride_ = size;
  if (const auto view_index = whole_number(object, "bufferView", where)) {
    const GltfDocument::View view = document.view(*view_index, where + ".bufferView");
    if (view.stride != 0 && view.stride < size)
      gltf_fault(place("bufferViews", *view_index) + ".byteStride " + std::to_string(view.stride) + ": an element of " +
                 where + " has " + std::to_string(size) + " bytes.");
    if (view.stride != 0) stride_ = view.stride;
    data_ = within(view.bytes, whole_number(object, "byteOffset", 0, where), count_, stride_, size, where);
  }
  if (const Json* const sparse = member(object, "sparse")) take_sparse(document, *sparse, where + ".sparse");
  if (!data_ && count_ > std::max(kFreeElements, document.known_bytes()))
    gltf_fault(where + ".count " + std::to_string(count_) + ": it has no buffer view, and the file has " +
               std::to_string(document.known_bytes()) + " bytes in all.");
}

GltfAccessor::GltfAccessor(std::shared_ptr<const std::vector<float>> values, uint32_t components)
    : data_(reinterpret_cast<const uint8_t*>(values->data())),
      count_(values->size() / components),
      stride_(components * sizeof(float)),
      components_(components),
      owned_(std::move(values)) {}

void GltfAccessor::take_sparse(GltfDocument& document, const Json& sparse, const std::string& where) {
  const uint64_t count = whole_number(sparse, "count", 0, where);
  if (count == 0) return;
  if (count > count_)
    gltf_fault(where + ".count " + std::to_string(count) + ": the accessor has " + std::to_string(count_) +
               " elements.");
  const Json* const at = member(sparse, "indices");
  const Json* const values = member(sparse, "values");
  if (!at || !values) gltf_fault(where + " has no indices or no values.");
  const auto bytes_of = [&](const Json& part, const std::string& name, uint64_t size) {
    const auto view = whole_number(part, "bufferView", name);
    if (!view) gltf_fault(name + " names no bufferView.");
    return within(document.view(*view, name + ".bufferView").bytes, whole_number(part, "byteOffset", 0, name), count,
                  size, size, name);
  };
  const Component kind = component_of(whole_number(*at, "componentType", 0, where + ".indices"), where + ".indices");
  if (kind != Component::u8 && kind != Component::u16 && kind != Component::u32)
    gltf_fault(where + ".indices.componentType is not one of unsigned integers.");
  const uint8_t* const place_of = bytes_of(*at, where + ".indices", size_of(kind));
  sparse_values_ = bytes_of(*values, where + ".values", size_of(component_) * components_);
  auto places = std::make_shared<std::vector<uint64_t>>(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto value = uint64_t(load_number(kind, place_of + i * size_of(kind)));
    if (value >= count_ || (i > 0 && value <= (*places)[i - 1]))
      gltf_fault(where + ".indices: number " + std::to_string(i) + " is " + std::to_string(value) +
                 "; they must rise, below " + std::to_string(count_) + ".");
    (*places)[i] = value;
  }
  sparse_at_ = std::move(places);
}

const uint8_t* GltfAccessor::element(uint64_t i) const {
  if (sparse_at_) {
    const auto found = std::lower_bound(sparse_at_->begin(), sparse_at_->end(), i);
    if (found != sparse_at_->end() && *found == i)
      return sparse_values_ + uint64_t(found - sparse_at_->begin()) * size_of(component_) * components_;
  }
  return data_ ? data_ + i * stride_ : nullptr;
}

void GltfAccessor::read(uint64_t i, double* out) const {
  const uint8_t* const at = element(i);
  const uint64_t size = size_of(component_);
  const double divisor = normalized_ ? largest_of(component_) : 1;
  for (uint32_t c = 0; c < components_; ++c) {
    out[c] = at ? load_number(component_, at + c * size) / divisor : 0;
    if (normalized_) out[c] = std::max(out[c], -1.0);
  }
}

uint32_t GltfAccessor::read_index(uint64_t i) const {
  const uint8_t* const at = element(i);
  return at ? uint32_t(load_number(component_, at)) : 0;
}

}  // namespace quarry::mesh_reader
