// SPDX-License-Identifier: Apache-2.0
// nbt.hpp - Minecraft's "named binary tag" files: they are inflated, checked as a whole once, then read in place.
// Nothing is copied and no tree is built, so the memory is that of the inflated bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/files/byte_reader.hpp"

namespace quarry::io {

constexpr size_t kNbtMaxDepth = 512;  // Minecraft's own limit

enum class NbtType : uint8_t { end, i8, i16, i32, i64, f32, f64, bytes, text, list, compound, ints, longs };

// A tag in a checked file: its type, its name and the beginning of its payload.
struct NbtTag {
  NbtType type = NbtType::end;
  std::string_view name;
  size_t at = 0;
};

class Nbt {
 public:
  // Walks the whole file without recursion. `bytes` must outlive the result. Errors: malformed_input with the byte (of
  // the inflated data).
  static Result<Nbt> check(std::span<const uint8_t> bytes);

  const NbtTag& root() const { return root_; }  // a compound
  // Visits the children of a compound, in file order. It does nothing for other types.
  void each(const NbtTag& compound, const std::function<void(const NbtTag&)>& visit) const;
  // Visits the elements of a list (their names are empty). It does nothing for other types.
  void each_element(const NbtTag& list, const std::function<void(const NbtTag&)>& visit) const;
  // Returns the last child of that name and type. Cost: one walk over the compound.
  std::optional<NbtTag> find(const NbtTag& compound, std::string_view name, NbtType type) const;
  std::optional<int64_t> integer(const NbtTag& tag) const;  // of any whole type
  std::string_view text(const NbtTag& tag) const;           // "" for other types
  // The bytes of a byte, int or long array (elements are big-endian); empty for other types.
  std::span<const uint8_t> array(const NbtTag& tag) const;

 private:
  std::span<const uint8_t> bytes_;
  NbtTag root_;
};

}  // namespace quarry::io
