// SPDX-License-Identifier: Apache-2.0
// header.cpp - parses the header line by line, and checks its counts against the length of the file before memory is
// allocated for them.
#include "voxel/io/ply/header.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "voxel/io/files/byte_reader.hpp"

namespace quarry::io {
namespace {

std::optional<PlyType> type_of(std::string_view name) {
  constexpr std::pair<std::string_view, PlyType> kNames[] = {
      {"char", PlyType::i8},   {"int8", PlyType::i8},     {"uchar", PlyType::u8},   {"uint8", PlyType::u8},
      {"short", PlyType::i16}, {"int16", PlyType::i16},   {"ushort", PlyType::u16}, {"uint16", PlyType::u16},
      {"int", PlyType::i32},   {"int32", PlyType::i32},   {"uint", PlyType::u32},   {"uint32", PlyType::u32},
      {"float", PlyType::f32}, {"float32", PlyType::f32}, {"double", PlyType::f64}, {"float64", PlyType::f64}};
  for (const auto& [text, type] : kNames)
    if (text == name) return type;
  return std::nullopt;
}

constexpr std::string_view kBlanks = " \t\r";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size() && words.size() < 8;) {
    const size_t begin = line.find_first_not_of(kBlanks, at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

// The text after "TextureFile" in a comment: a name, which may contain blanks.
std::string_view texture_file(std::string_view line) {
  constexpr std::string_view kWord = "TextureFile";
  const size_t word = line.find(kWord);
  line = line.substr(std::min(line.size(), word + kWord.size()));
  const size_t begin = line.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::string shown_name(std::string_view word) {
  std::string text = "'" + std::string(word.substr(0, 40)) + "'";
  for (char& c : text)
    if (uint8_t(c) < 0x20 || uint8_t(c) >= 0x7F) c = '?';
  return text;
}

bool PlyElement::has_lists() const {
  return std::any_of(properties.begin(), properties.end(), [](const PlyProperty& p) { return p.length.has_value(); });
}

uint64_t PlyElement::least_bytes(PlyEncoding encoding) const {
  // A number in text takes at least a digit and a blank or the line's end.
  if (encoding == PlyEncoding::ascii) return properties.size() * 2;
  uint64_t bytes = 0;
  for (const PlyProperty& p : properties) bytes += size_of(p.length ? *p.length : p.type);
  return bytes;
}

int PlyElement::find(std::initializer_list<std::string_view> names, bool list) const {
  for (size_t i = 0; i < properties.size(); ++i)
    if (properties[i].length.has_value() == list &&
        std::find(names.begin(), names.end(), properties[i].name) != names.end())
      return int(i);
  return -1;
}

const PlyElement* PlyHeader::find(std::string_view name) const {
  for (const PlyElement& e : elements)
    if (e.name == name) return &e;
  return nullptr;
}

uint64_t PlyHeader::faces() const {
  uint64_t sum = 0;
  for (const PlyElement& e : elements)
    if ((e.name == "face" || e.name == "tristrips") && e.count > 0) sum = std::max(sum, sum + e.count);
  return sum;
}

Result<PlyHeader> read_ply_header(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto bad = [](size_t at, const std::string& what) {
    return fail(ErrorCode::malformed_input, at_byte(at) + what);
  };
  // All lines end as the first one does. With "\r\n" the body begins after the "\n", too.
  const size_t first_end = text.find_first_of("\r\n");
  const bool lone_returns = first_end != std::string_view::npos && text[first_end] == '\r' &&
                            (first_end + 1 == text.size() || text[first_end + 1] != '\n');
  PlyHeader h;
  bool has_format = false;
  for (size_t at = 0;;) {
    const size_t end = text.find(lone_returns ? '\r' : '\n', at);
    if (end == std::string_view::npos && bytes.size() >= kPlyHeaderBytes)
      return fail(ErrorCode::unsupported,
                  at_byte(at) + "the header is longer than " + std::to_string(kPlyHeaderBytes) + " bytes");
    if (end == std::string_view::npos)
      return bad(at, "expected a line of the PLY header (up to 'end_header'), but the data ends");
    const std::string_view line = text.substr(at, end - at);
    const auto words = words_of(line);
    const std::string_view first = words.empty() ? std::string_view() : words[0];
    if (at == 0) {
      if (first != "ply") return bad(0, "expected 'ply', the beginning of a PLY file");
    } else if (first == "format") {
      has_format = true;
      const std::string_view name = words.size() > 1 ? words[1] : std::string_view();
      if (name == "ascii") h.encoding = PlyEncoding::ascii;
      else if (name == "binary_little_endian") h.encoding = PlyEncoding::little;
      else if (name == "binary_big_endian") h.encoding = PlyEncoding::big;
      else return bad(at, "expected format ascii, binary_little_endian or binary_big_endian");
    } else if (first == "comment" || first == "obj_info") {
      if (words.size() > 2 && words[1] == "TextureFile") h.texture_files.emplace_back(texture_file(line));
    } else if (first == "element") {
      PlyElement element;
      element.at = at;
      const std::string_view number = words.size() > 2 ? words[2] : std::string_view();
      const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), element.count);
      if (number.empty() || error != std::errc{} || stop != number.data() + number.size())
        return bad(at, "expected an element's name and how many there are, a whole number");
      if (h.elements.size() == kPlyMaxElements)
        return fail(ErrorCode::unsupported,
                    at_byte(at) + "the file has more than " + std::to_string(kPlyMaxElements) + " elements");
      element.name = words[1];
      if (h.find(element.name))
        return bad(at, "element " + shown_name(element.name) + " is there twice; expected each once");
      h.elements.push_back(std::move(element));
    } else if (first == "property") {
      if (h.elements.empty()) return bad(at, "expected an element before its property");
      PlyElement& element = h.elements.back();
      const bool list = words.size() > 1 && words[1] == "list";
      const size_t at_type = list ? 3 : 1;
      if (words.size() < at_type + 2)
        return bad(at, list ? "expected the types of a list's length and items, and its name"
                            : "expected the type of a property (char, float, ...) and its name");
      PlyProperty property;
      const auto type = type_of(words[at_type]);
      if (!type)
        return bad(at, "expected the type of a property (char, float, ...), found " + shown_name(words[at_type]));
      property.type = *type;
      if (list) {
        property.length = type_of(words[2]);
        if (!property.length || *property.length == PlyType::f32 || *property.length == PlyType::f64)
          return bad(at, "expected a type of whole numbers for a list's length (uchar, int, ...), found " +
                             shown_name(words[2]));
      }
      if (element.properties.size() == kPlyMaxProperties)
        return fail(ErrorCode::unsupported, at_byte(at) + "element " + shown_name(element.name) + " has more than " +
                                                std::to_string(kPlyMaxProperties) + " properties");
      property.name = words[at_type + 1];
      element.properties.push_back(std::move(property));
    } else if (first == "end_header") {
      h.body_at = end + 1;
      break;
    }
    at = end + 1;
  }
  if (!has_format) return bad(h.body_at, "expected a line 'format' in the header, found none");
  return h;
}

Result<void> check_ply_counts(const PlyHeader& header, uint64_t file_bytes) {
  uint64_t left = file_bytes - std::min<uint64_t>(file_bytes, header.body_at);
  if (header.encoding == PlyEncoding::ascii) ++left;  // the last line may lack its end
  for (const PlyElement& e : header.elements) {
    const uint64_t each = e.least_bytes(header.encoding);
    if (each == 0) continue;
    if (e.count > left / each) {
      const std::string what = e.name == "vertex" ? " vertices"
                               : e.name == "face" ? " faces"
                                                  : " of element " + shown_name(e.name);
      return fail(ErrorCode::malformed_input, at_byte(e.at) + "the header says " + std::to_string(e.count) + what +
                                                  ", but there are bytes for only " + std::to_string(left / each) +
                                                  "; the file is cut short or damaged");
    }
    left -= e.count * each;
  }
  return {};
}

uint8_t ply_channel(double value, PlyType type) {
  switch (type) {
    case PlyType::f32:
    case PlyType::f64: value *= 255; break;
    case PlyType::i8: value += value < 0 ? 256 : 0; break;  // bytes that the file declares as signed
    case PlyType::u16: value /= 257; break;
    case PlyType::i16: value = (value < 0 ? value + 65536 : value) / 257; break;
    default: break;
  }
  value += 0.5;
  return value >= 0 && value < 256 ? uint8_t(value) : value >= 256 ? uint8_t(255) : uint8_t(0);  // NaN: 0
}

}  // namespace quarry::io
