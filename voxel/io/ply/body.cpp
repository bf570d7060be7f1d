// SPDX-License-Identifier: Apache-2.0
// body.cpp - numbers in text and in both byte orders, and lists whose lengths are checked against the remaining bytes.
#include "voxel/io/ply/body.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "voxel/io/files/byte_reader.hpp"

namespace quarry::io {
namespace {

constexpr size_t kLongestNumber = 512;  // characters of text

template <class T>
double bits_as(const uint8_t* bytes, bool big) {
  uint8_t b[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); ++i) b[i] = bytes[big ? sizeof(T) - 1 - i : i];
  T value;
  std::memcpy(&value, b, sizeof value);
  return double(value);
}

double ply_value(const uint8_t* p, PlyType type, bool big) {
  switch (type) {
    case PlyType::i8: return bits_as<int8_t>(p, big);
    case PlyType::u8: return bits_as<uint8_t>(p, big);
    case PlyType::i16: return bits_as<int16_t>(p, big);
    case PlyType::u16: return bits_as<uint16_t>(p, big);
    case PlyType::i32: return bits_as<int32_t>(p, big);
    case PlyType::u32: return bits_as<uint32_t>(p, big);
    case PlyType::f32: return bits_as<float>(p, big);
    default: return bits_as<double>(p, big);
  }
}

bool is_blank(uint8_t c) { return c == ' ' || c == '\t'; }
bool is_line_end(uint8_t c) { return c == '\n' || c == '\r'; }

// The value of a number that is too small or too large for a double.
double beyond_range(std::string_view text) {
  const size_t exponent = text.find_first_of("eE"), digit = text.find_first_not_of('-');
  const bool small = exponent != std::string_view::npos ? text.substr(exponent + 1, 1) == "-"
                                                        : text.substr(digit, 1) == "0" || text.substr(digit, 1) == ".";
  return small ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

bool PlyBody::fail_with(std::string what) {
  message_ = std::move(what);
  return false;
}

bool PlyBody::length_fits(double length, uint64_t least_bytes_each, const PlyProperty& property) {
  if (!(length >= 0) || length != std::floor(length))
    return fail_with("its list " + shown_name(property.name) + " has a length that is no number of items");
  const uint64_t most = (bytes_.left() + (header_.encoding == PlyEncoding::ascii ? 1 : 0)) / least_bytes_each;
  if (length > double(most))
    return fail_with("its list " + shown_name(property.name) + " has " +
                     std::to_string(uint64_t(std::min(length, 1e18))) + " items, but there are bytes for only " +
                     std::to_string(most));
  return true;
}

// Reads the next number. At a line's end there is none, unless it may be in a later line.
bool PlyBody::text_number(double& value, bool over_lines) {
  for (;;) {
    const auto here = bytes_.peek(kLongestNumber);
    size_t at = 0;
    while (at < here.size() && (is_blank(here[at]) || (over_lines && is_line_end(here[at])))) ++at;
    bytes_.take(at);
    if (here.empty() || (at < here.size() && is_line_end(here[at]))) return false;
    if (at == here.size()) continue;  // all blanks
    if (at == 0) break;
  }
  const auto here = bytes_.peek(kLongestNumber);
  const char *begin = reinterpret_cast<const char*>(here.data()), *end = begin + std::min(here.size(), kLongestNumber);
  if (*begin == '+' && begin + 1 < end && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) value = beyond_range(std::string_view(begin, size_t(stop - begin)));
  else if (error != std::errc{}) return false;
  if (stop < end && !is_blank(uint8_t(*stop)) && !is_line_end(uint8_t(*stop))) return false;
  bytes_.take(size_t(stop - reinterpret_cast<const char*>(here.data())));
  return true;
}

bool PlyBody::binary_number(PlyType type, double& value) {
  const auto here = bytes_.peek(size_of(type));
  if (here.size() < size_of(type)) return false;
  value = ply_value(here.data(), type, header_.encoding == PlyEncoding::big);
  bytes_.take(size_of(type));
  return true;
}

bool PlyBody::binary_items(const PlyProperty& property, size_t index, uint64_t length, const Item& item) {
  const size_t each = size_of(property.type);
  if (!item) {
    bytes_.take(length * each);
    return true;
  }
  for (uint64_t done = 0; done < length;) {
    const auto here = bytes_.peek(each);
    const uint64_t now = std::min<uint64_t>(length - done, here.size() / each);
    if (now == 0) return false;
    for (uint64_t i = 0; i < now; ++i)
      item(index, done + i, ply_value(here.data() + i * each, property.type, header_.encoding == PlyEncoding::big));
    bytes_.take(now * each);
    done += now;
  }
  return true;
}

bool PlyBody::read_text(const PlyElement& element, double* values, const Item& item) {
  bool in_list = false;
  for (size_t p = 0; p < element.properties.size(); ++p) {
    const PlyProperty& property = element.properties[p];
    if (!text_number(values[p], p == 0 || in_list)) return false;  // empty lines may precede the first property
    if (!property.length) continue;
    in_list = true;
    if (!length_fits(values[p], 2, property)) return false;
    for (uint64_t i = 0, length = uint64_t(values[p]); i < length; ++i) {
      double value = 0;
      if (!text_number(value, true)) return false;
      if (item) item(p, i, value);
    }
  }
  // Skips the rest of the line.
  for (;;) {
    const auto here = bytes_.peek(1);
    const auto stop = std::find_if(here.begin(), here.end(), is_line_end);
    bytes_.take(uint64_t(stop - here.begin()) + (stop != here.end()));
    if (stop != here.end() || here.empty()) return true;
  }
}

bool PlyBody::read_binary(const PlyElement& element, double* values, const Item& item) {
  for (size_t p = 0; p < element.properties.size(); ++p) {
    const PlyProperty& property = element.properties[p];
    if (!binary_number(property.length ? *property.length : property.type, values[p])) return false;
    if (!property.length) continue;
    if (!length_fits(values[p], size_of(property.type), property) ||
        !binary_items(property, p, uint64_t(values[p]), item))
      return false;
  }
  return true;
}

bool PlyBody::read(const PlyElement& element, uint64_t number, double* values, const Item& item) {
  const uint64_t at = bytes_.at();
  const bool text = header_.encoding == PlyEncoding::ascii;
  if (element.properties.empty() || (text ? read_text(element, values, item) : read_binary(element, values, item)))
    return true;
  std::string what =
      "expected " +
      std::string(element.name == "vertex" || element.name == "face" ? element.name
                                                                     : "element " + shown_name(element.name)) +
      " " + std::to_string(number);
  if (!message_.empty()) what += "; " + message_;
  else if (text && !element.has_lists())
    what += ", a line of " + std::to_string(element.properties.size()) + " numbers";
  else what += bytes_.left() == 0 || !text ? ", but the data ends" : ", numbers";
  error_ = {ErrorCode::malformed_input, at_byte(at) + what};
  message_.clear();
  return false;
}

bool PlyBody::skip(const PlyElement& element) {
  if (element.properties.empty()) return true;
  if (header_.encoding != PlyEncoding::ascii && !element.has_lists()) {
    const uint64_t each = element.least_bytes(header_.encoding);
    if (element.count > bytes_.left() / each) {
      error_ = {ErrorCode::malformed_input, at_byte(bytes_.at()) + "expected " + std::to_string(element.count) +
                                                " of element " + shown_name(element.name) + ", but the data ends"};
      return false;
    }
    bytes_.take(element.count * each);
    return true;
  }
  row_.resize(element.properties.size());
  for (uint64_t i = 0; i < element.count; ++i)
    if (!read(element, i, row_.data())) return false;
  return true;
}

}  // namespace quarry::io
