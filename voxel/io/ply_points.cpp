// ply_points.cpp - PLY files without faces, after Greg Turk's "The PLY Polygon File Format": vertices with positions and maybe colours.
// Those with faces are meshes and go to the mesh reader.
#include <algorithm>
#include <bit>
#include <charconv>

#include "voxel/io/byte_reader.hpp"
#include "voxel/io/file_bytes.hpp"
#include "voxel/io/points.hpp"
#include "voxel/io/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxPlyBytes = uint64_t(1) << 37;
constexpr size_t kMaxProperties = 256;

enum class Encoding { ascii, little, big };
enum class Kind : uint8_t { i8, u8, i16, u16, i32, u32, f32, f64 };

size_t size_of(Kind kind) {
  constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return kSizes[size_t(kind)];
}
std::optional<Kind> kind_of(std::string_view name) {
  constexpr std::pair<std::string_view, Kind> kNames[] = {
      {"char", Kind::i8}, {"int8", Kind::i8}, {"uchar", Kind::u8}, {"uint8", Kind::u8}, {"short", Kind::i16}, {"int16", Kind::i16}, {"ushort", Kind::u16}, {"uint16", Kind::u16},
      {"int", Kind::i32}, {"int32", Kind::i32}, {"uint", Kind::u32}, {"uint32", Kind::u32}, {"float", Kind::f32}, {"float32", Kind::f32}, {"double", Kind::f64}, {"float64", Kind::f64}};
  for (const auto& [text, kind] : kNames)
    if (text == name) return kind;
  return std::nullopt;
}

struct PlyHeader {
  Encoding encoding = Encoding::ascii;
  uint64_t vertices = 0, faces = 0;
  std::vector<Kind> properties;      // of a vertex
  std::vector<size_t> offsets;       // of these, in a binary vertex
  size_t vertex_bytes = 0;           // of a binary vertex
  int position[3] = {-1, -1, -1};    // properties
  int color[3] = {-1, -1, -1};
  size_t vertices_at = 0, body_at = 0;  // the header's line; the first byte after it
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size() && words.size() < 8;) {
    const size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

Result<PlyHeader> read_header(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto bad = [](size_t at, const std::string& what) { return fail(ErrorCode::malformed_input, at_byte(at) + what); };
  PlyHeader h;
  std::string_view element;
  bool before_vertices = true, has_format = false;
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return bad(at, "expected a line of the PLY header (up to 'end_header'), but the data ends");
    const auto words = words_of(text.substr(at, end - at));
    const std::string_view first = words.empty() ? std::string_view() : words[0];
    if (at == 0) {
      if (first != "ply") return bad(0, "expected 'ply', the beginning of a PLY file");
    } else if (first == "format" && words.size() >= 2) {
      has_format = true;
      if (words[1] == "ascii") h.encoding = Encoding::ascii;
      else if (words[1] == "binary_little_endian") h.encoding = Encoding::little;
      else if (words[1] == "binary_big_endian") h.encoding = Encoding::big;
      else return bad(at, "expected format ascii, binary_little_endian or binary_big_endian");
    } else if (first == "element" && words.size() >= 3) {
      uint64_t count = 0;
      const auto [stop, error] = std::from_chars(words[2].data(), words[2].data() + words[2].size(), count);
      if (error != std::errc{} || stop != words[2].data() + words[2].size()) return bad(at, "expected how many elements there are, a whole number");
      element = words[1];
      if (element == "vertex") {
        h.vertices = count;
        h.vertices_at = at;
        before_vertices = false;
      } else {
        if (element == "face" || element == "tristrips") h.faces += count;
        if (before_vertices && count) return fail(ErrorCode::unsupported, at_byte(at) + "elements before the vertices are not read");
      }
    } else if (first == "property" && words.size() >= 3 && element == "vertex") {
      if (words[1] == "list") return fail(ErrorCode::unsupported, at_byte(at) + "lists in the vertices are not read");
      const auto kind = kind_of(words[1]);
      if (!kind) return bad(at, "expected the type of a property (char, float, ...), found '" + std::string(words[1].substr(0, 20)) + "'");
      if (h.properties.size() == kMaxProperties) return fail(ErrorCode::unsupported, at_byte(at) + "a vertex has more than 256 properties");
      constexpr std::string_view kPosition[] = {"x", "y", "z"}, kColor[] = {"red", "green", "blue"}, kDiffuse[] = {"diffuse_red", "diffuse_green", "diffuse_blue"};
      for (size_t a = 0; a < 3; ++a) {
        if (words[2] == kPosition[a]) h.position[a] = int(h.properties.size());
        if (words[2] == kColor[a] || words[2] == kDiffuse[a]) h.color[a] = int(h.properties.size());
      }
      h.properties.push_back(*kind);
      h.offsets.push_back(h.vertex_bytes);
      h.vertex_bytes += size_of(*kind);
    } else if (first == "end_header") {
      h.body_at = end + 1;
      break;
    }
    at = end + 1;
  }
  if (!has_format) return bad(h.body_at, "expected a line 'format' in the header, found none");
  return h;
}

double value_of(const uint8_t* p, Kind kind, bool big) {
  uint8_t b[8];
  const size_t size = size_of(kind);
  for (size_t i = 0; i < size; ++i) b[i] = p[big ? size - 1 - i : i];
  const auto as = [&](auto value) {
    std::memcpy(&value, b, sizeof value);
    return double(value);
  };
  switch (kind) {
    case Kind::i8: return as(int8_t());
    case Kind::u8: return as(uint8_t());
    case Kind::i16: return as(int16_t());
    case Kind::u16: return as(uint16_t());
    case Kind::i32: return as(int32_t());
    case Kind::u32: return as(uint32_t());
    case Kind::f32: return as(float());
    default: return as(double());
  }
}

// Bytes as they are, wider whole numbers by their high byte, floating point from 0..1.
uint32_t channel_of(double value, Kind kind) {
  if (kind == Kind::f32 || kind == Kind::f64) value = value * 255 + 0.5;
  else if (size_of(kind) == 2) value /= 257;
  return value >= 0 && value <= 255.999 ? uint32_t(value) : value > 255 ? 255u : 0u;
}

}  // namespace

bool ply_is_points(std::span<const uint8_t> head) {
  const auto header = read_header(head);
  return header && header->vertices > 0 && header->faces == 0;
}

Result<Scene> parse_ply_points(std::span<const uint8_t> bytes, const ReadOptions& options) {
  const auto header = read_header(bytes);
  if (!header) return tl::unexpected(header.error());
  const PlyHeader& h = *header;
  const auto bad = [](size_t at, const std::string& what) { return fail(ErrorCode::malformed_input, at_byte(at) + what); };
  if (h.vertices == 0) return bad(h.body_at, "expected at least one vertex, found none");
  for (const int p : h.position)
    if (p < 0) return bad(h.vertices_at, "expected the properties x, y and z of the vertices");
  const bool coloured = std::all_of(h.color, h.color + 3, [](int c) { return c >= 0; });
  const uint64_t left = bytes.size() - h.body_at;
  // A number of text takes a digit and a blank or the line's end, which the last may lack.
  const uint64_t most = h.encoding == Encoding::ascii ? (left + 1) / (h.properties.size() * 2) : left / h.vertex_bytes;
  if (h.vertices > most)
    return bad(h.vertices_at, "the header says " + std::to_string(h.vertices) + " vertices, but there are bytes for only " + std::to_string(most) + "; the file is cut short or damaged");

  // One vertex's properties into `row`. Text: from `at` on, to behind the line.
  std::vector<double> row(h.properties.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto read_line = [&](size_t* at) {
    const size_t end = std::min(text.find('\n', *at), text.size());
    const char *p = text.data() + *at, *const stop = text.data() + end;
    for (double& value : row) {
      while (p < stop && (*p == ' ' || *p == '\t')) ++p;
      const auto [next, error] = std::from_chars(p, stop, value);
      if (error != std::errc{}) return false;
      p = next;
    }
    *at = end + 1;
    return true;
  };
  if (h.encoding == Encoding::ascii) {
    size_t at = h.body_at;
    for (uint64_t i = 0; i < h.vertices; ++i)
      if (at >= text.size() || !read_line(&at)) return bad(std::min(at, text.size()), "expected vertex " + std::to_string(i) + ", a line of " + std::to_string(row.size()) + " numbers");
  }
  auto scene = voxelize_points(
      [&](const PointVisitor& visit) {
        size_t at = h.body_at;
        for (uint64_t i = 0; i < h.vertices; ++i) {
          if (h.encoding == Encoding::ascii) {
            read_line(&at);
          } else {
            for (size_t p = 0; p < row.size(); ++p) row[p] = value_of(bytes.data() + at + h.offsets[p], h.properties[p], h.encoding == Encoding::big);
            at += h.vertex_bytes;
          }
          const double position[3] = {row[size_t(h.position[0])], row[size_t(h.position[1])], row[size_t(h.position[2])]};
          uint32_t c[3] = {200, 200, 200};
          for (size_t a = 0; a < 3 && coloured; ++a) c[a] = channel_of(row[size_t(h.color[a])], h.properties[size_t(h.color[a])]);
          visit(position, rgba_of(c[0], c[1], c[2]));
        }
      },
      h.vertices, false, bytes.size(), options);
  if (scene) scene->metadata["points.color"] = coloured ? "rgb" : "none";
  return scene;
}

Result<Scene> read_ply_points(const std::filesystem::path& file, const ReadOptions& options) {
  const auto bytes = read_input(file, kMaxPlyBytes, options.progress);
  if (!bytes) return tl::unexpected(bytes.error());
  return named_after(file, parse_ply_points(*bytes, options));
}

}  // namespace quarry::io
