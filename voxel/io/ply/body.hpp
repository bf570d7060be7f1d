// SPDX-License-Identifier: Apache-2.0
// body.hpp - what follows a PLY file's header, element by element, in its three encodings. What points and meshes
// share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "voxel/io/files/buffered_reader.hpp"
#include "voxel/io/ply/header.hpp"

namespace quarry::io {

// Walks one body from its beginning; the bytes must stand where the header ends (or at an element's begin). A line of
// text holds one element; what stands in it behind the last property is passed over, and lists may go on in the next
// line.
class PlyBody {
 public:
  // An item of a list: the property's number, the item's, and its value. Called in their order.
  using Item = std::function<void(size_t property, uint64_t item, double value)>;

  PlyBody(const PlyHeader& header, BufferedReader& bytes) : header_(header), bytes_(bytes) {}

  // The next one of `element`, the `number`th: the value of each property (of a list its length) into `values`, which
  // has room for all.
  // False: it is not there, or is damaged; then there is an error.
  bool read(const PlyElement& element, uint64_t number, double* values, const Item& item = {});
  // Passes over all of `element`. False as above.
  bool skip(const PlyElement& element);
  // Malformed_input with the byte and what was expected there; what the file's system said, if that was why.
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
  // Of the element that is being read: what is wrong with it, if that is more than "not there".
  std::string message_;
  std::vector<double> row_;  // for skip
};

}  // namespace quarry::io
