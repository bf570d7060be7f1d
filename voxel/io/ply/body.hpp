// SPDX-License-Identifier: Apache-2.0
// body.hpp - reads the part after a PLY file's header, element by element, in its three encodings. Points and meshes
// share it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "voxel/io/files/buffered_reader.hpp"
#include "voxel/io/ply/header.hpp"

namespace quarry::io {

// Walks one body from its beginning. The bytes must be positioned at the header's end (or at the beginning of an
// element). A line of text holds one element. Text after the last property is skipped, and lists may continue in the
// next line.
class PlyBody {
 public:
  // Receives an item of a list: the property's number, the item's number, and its value. It is called in their order.
  using Item = std::function<void(size_t property, uint64_t item, double value)>;

  PlyBody(const PlyHeader& header, BufferedReader& bytes) : header_(header), bytes_(bytes) {}

  // Reads the next one of `element`, the `number`th. The value of each property (the length of a list) is stored in
  // `values`, which must have room for all.
  // Returns false if it is missing or damaged; then there is an error.
  bool read(const PlyElement& element, uint64_t number, double* values, const Item& item = {});
  // Skips all of `element`. Returns false as above.
  bool skip(const PlyElement& element);
  // The error: malformed_input with the byte and what was expected there, or the system's error if reading the file
  // failed.
  Error error() const { return bytes_.error() ? *bytes_.error() : error_; }

 private:
  bool read_text(const PlyElement& element, double* values, const Item& item);
  bool read_binary(const PlyElement& element, double* values, const Item& item);
  bool text_number(double& value, bool over_lines);
  bool binary_number(PlyType type, double& value);
  bool binary_items(const PlyProperty& property, size_t index, uint64_t length, const Item& item);
  bool length_fits(double length, uint64_t least_bytes_each, const PlyProperty& property);
  bool fail_with(std::string what);

  const PlyHeader& header_;
  BufferedReader& bytes_;
  Error error_;
  // The fault of the element that is being read, if it is more than missing.
  std::string message_;
  std::vector<double> row_;  // for skip
};

}  // namespace quarry::io
