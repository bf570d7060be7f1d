// SPDX-License-Identifier: Apache-2.0
// header.hpp - the header of a PLY file, after Greg Turk's "The PLY Polygon File Format": its elements, their counts
// and their properties. Points (points/ply.cpp) and meshes (meshes/ply.cpp) share it. ply/body.hpp reads the part after
// it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

constexpr size_t kPlyHeaderBytes = size_t(1) << 20;  // no header is longer
constexpr size_t kPlyMaxElements = 256, kPlyMaxProperties = 256;

enum class PlyEncoding : uint8_t { ascii, little, big };
enum class PlyType : uint8_t { i8, u8, i16, u16, i32, u32, f32, f64 };

constexpr size_t size_of(PlyType type) {
  constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return kSizes[size_t(type)];
}

struct PlyProperty {
  std::string name;
  PlyType type = PlyType::f32;    // for a list, the type of its items
  std::optional<PlyType> length;  // the type of a list's length; empty if it is no list
};

struct PlyElement {
  std::string name;
  uint64_t count = 0;
  std::vector<PlyProperty> properties;
  size_t at = 0;  // the header's line

  bool has_lists() const;
  // The least bytes of one element in the body. They are exact if it is binary and has no lists.
  uint64_t least_bytes(PlyEncoding encoding) const;
  // The number of the first property of one of these names that is (or is not) a list; -1: none.
  int find(std::initializer_list<std::string_view> names, bool list = false) const;
};

struct PlyHeader {
  PlyEncoding encoding = PlyEncoding::ascii;
  std::vector<PlyElement> elements;        // in the order of the body
  std::vector<std::string> texture_files;  // "comment TextureFile NAME"
  size_t body_at = 0;                      // the first byte after the header

  const PlyElement* find(std::string_view name) const;
  uint64_t faces() const;  // includes strips
};

// `bytes` is the file, or as much of its beginning as may be a header. The body begins after exactly one line end:
// "\n", "\r\n", or "\r" if the first line ends with it. Errors: malformed_input with the byte and what was expected;
// unsupported past a limit above.
Result<PlyHeader> read_ply_header(std::span<const uint8_t> bytes);

// Checks that each element's count fits into a file of `file_bytes`. Error: malformed_input.
Result<void> check_ply_counts(const PlyHeader& header, uint64_t file_bytes);

// A word of the file for a message: in quotes, shortened, without non-ASCII characters.
std::string shown_name(std::string_view word);

// A colour's channel, 0 to 255. Bytes are kept, 16 bits are divided by 257, floating point is from 0 to 1, and other
// whole numbers are treated as bytes.
uint8_t ply_channel(double value, PlyType type);

}  // namespace quarry::io
