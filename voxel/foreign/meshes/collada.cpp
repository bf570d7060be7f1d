// SPDX-License-Identifier: Apache-2.0
// collada.cpp - the checks of arrays, accessors and indices, after "COLLADA - Digital Asset Schema Release 1.4.1",
// chapters on <source>, <accessor>, the geometry elements and <vertex_weights>. Elements are visited in file order, as
// Assimp does, so that both choose the same one of equal ids.
#include "voxel/foreign/meshes/collada.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <pugixml.hpp>
#include <string_view>
#include <unordered_map>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"

namespace quarry::mesh_reader {
namespace {

using pugi::xml_node;
constexpr uint64_t kMaxColladaNumber = 0x7FFFFFFF;
constexpr uint64_t kMaxColladaBytes = uint64_t(1) << 34;

bool is_xml_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The words of an element's text, one after the other.
class XmlWords {
 public:
  explicit XmlWords(const xml_node& node) : at_(node.text().get()) {}
  std::string_view next() {  // empty after the last word
    while (is_xml_blank(*at_)) ++at_;
    const char* begin = at_;
    while (*at_ && !is_xml_blank(*at_)) ++at_;
    return {begin, size_t(at_ - begin)};
  }

 private:
  const char* at_;
};

std::optional<uint64_t> xml_number(std::string_view word) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc{} || stop != word.data() + word.size() || value > kMaxColladaNumber)
    return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  std::string out = "'" + std::string(text.substr(0, 60)) + "'";
  for (char& c : out)
    if (uint8_t(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

// "<accessor> of 's'". An element without a name is named by its parent.
std::string name_of_element(const xml_node& node) {
  for (xml_node n = node; n; n = n.parent())
    if (const char* id = n.attribute("id").value(); *id)
      return "<" + std::string(node.name()) + ">" + (n == node ? " " : " of ") + in_quotes(id);
  return "<" + std::string(node.name()) + ">";
}

struct ColladaInput {
  std::string semantic, source;  // without the '#'
  uint64_t offset = 0;
};
struct ColladaArray {
  uint64_t count = 0;
  bool words = false;  // names, not numbers
};
struct ColladaAccessor {
  uint64_t count = 0;
  ColladaArray array;
};

bool is_collada_array(std::string_view name) {
  return name == "float_array" || name == "int_array" || name == "bool_array" || name == "Name_array" ||
         name == "IDREF_array";
}

struct ColladaPrimitive {
  const char* name;
  uint64_t vertices;  // of each; 0: as many as its list has
  uint64_t least;     // of a list
};
constexpr ColladaPrimitive kColladaPrimitives[] = {{"triangles", 3, 0}, {"polylist", 0, 0},  {"polygons", 0, 3},
                                                   {"trifans", 0, 3},   {"tristrips", 0, 3}, {"lines", 0, 0},
                                                   {"linestrips", 0, 2}};

class ColladaChecker {
 public:
  Result<void> check(const xml_node& root) {
    // The walk is not recursive, because the file decides the depth.
    int depth = 0;
    for (xml_node node = root.first_child(); node;) {
      QRY_TRY(enter(node));
      if (node.first_child()) {
        if (++depth > kColladaMaxDepth)
          return fail(ErrorCode::unsupported, where(node) + "elements stand in one another more than " +
                                                  std::to_string(kColladaMaxDepth) + " deep");
        node = node.first_child();
        continue;
      }
      while (node && !node.next_sibling()) {
        node = node.parent();
        if (--depth < 0) return skins();
      }
      node = node.next_sibling();
    }
    return skins();
  }

 private:
  static std::string where(const xml_node& node) {
    return node.offset_debug() >= 0 ? io::at_byte(size_t(node.offset_debug())) : std::string();
  }
  static tl::unexpected<Error> bad(const xml_node& node, const std::string& what) {
    return fail(ErrorCode::malformed_input, where(node) + name_of_element(node) + ": " + what);
  }

  // The whole number in an attribute, or `otherwise` if there is no such attribute.
  static Result<uint64_t> number(const xml_node& node, const char* attribute, uint64_t otherwise) {
    std::string_view text = node.attribute(attribute).value();
    if (!node.attribute(attribute)) return otherwise;
    while (!text.empty() && is_xml_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_xml_blank(text.back())) text.remove_suffix(1);
    const auto value = xml_number(text);
    if (!value)
      return bad(node, std::string("expected a whole number from 0 to 2147483647 as ") + attribute + ", found " +
                           in_quotes(text));
    return *value;
  }

  static Result<std::vector<ColladaInput>> inputs_of(const xml_node& node) {
    std::vector<ColladaInput> inputs;
    for (const xml_node in : node.children("input")) {
      QRY_TRY_ASSIGN(const auto offset, number(in, "offset", 0));
      std::string_view source = in.attribute("source").value();
      if (source.substr(0, 1) == "#") source.remove_prefix(1);
      inputs.push_back({in.attribute("semantic").value(), std::string(source), offset});
    }
    return inputs;
  }

  Result<void> enter(const xml_node& node) {
    const std::string_view name = node.name();
    if (is_collada_array(name)) return array(node);
    if (name == "accessor") return accessor(node);
    if (name == "vertices") return vertices(node);
    if (name == "vertex_weights") skins_.push_back(node);
    for (const ColladaPrimitive& p : kColladaPrimitives)
      if (name == p.name) return primitive(node, p);
    return {};
  }

  Result<void> array(const xml_node& node) {
    QRY_TRY_ASSIGN(const auto count, number(node, "count", 0));
    uint64_t there = 0;
    for (XmlWords words(node); there < count && !words.next().empty();) ++there;
    if (there < count)
      return bad(node, "the count says " + std::to_string(count) + ", but there are only " + std::to_string(there));
    const std::string_view name = node.name();
    array_[node.attribute("id").value()] = {count, name == "Name_array" || name == "IDREF_array"};
    return {};
  }

  Result<void> accessor(const xml_node& node) {
    const auto count = number(node, "count", 0), offset = number(node, "offset", 0), stride = number(node, "stride", 1);
    for (const auto* n : {&count, &offset, &stride}) QRY_TRY(*n);
    uint64_t width = 0;
    for (const xml_node param : node.children("param"))
      width += std::string_view(param.attribute("type").value()) == "float4x4" ? 16 : 1;
    if (*count > 0 && width > std::max<uint64_t>(1, *stride))
      return bad(node, "its stride is " + std::to_string(*stride) + ", but its parameters take " +
                           std::to_string(width) + " numbers");
    std::string_view source = node.attribute("source").value();
    if (source.substr(0, 1) == "#") source.remove_prefix(1);
    const auto numbers = array_.find(std::string(source));
    if (*stride == 16 && *offset == 0) width = 16;  // matrices, whatever their parameter is called
    if (*count > 0 && numbers != array_.end()) {
      const uint64_t needed = *offset + (*count - 1) * *stride + std::max<uint64_t>(1, width);
      if (needed > numbers->second.count)
        return bad(node, "it needs " + std::to_string(needed) + " numbers (offset " + std::to_string(*offset) +
                             ", count " + std::to_string(*count) + ", stride " + std::to_string(*stride) +
                             "), but array " + in_quotes(source) + " has " + std::to_string(numbers->second.count));
    }
    // The accessor is stored under the source that contains it.
    xml_node in = node.parent();
    while (in && std::string_view(in.name()) != "source") in = in.parent();
    accessor_[in.attribute("id").value()] = {*count, numbers == array_.end() ? ColladaArray{} : numbers->second};
    return {};
  }

  Result<void> vertices(const xml_node& node) {
    QRY_TRY_ASSIGN(auto inputs, inputs_of(node));
    uint64_t least = UINT64_MAX;
    for (const ColladaInput& in : inputs) {
      const auto known = accessor_.find(in.source);
      if (known == accessor_.end())
        return bad(node, "its input " + in_quotes(in.semantic) + " names source " + in_quotes(in.source) +
                             ", which is not before it");
      if (known->second.array.words) return words_for_numbers(node, in);
      least = std::min(least, known->second.count);
      if (in.semantic == "POSITION") positions_[geometry_of(node)] = known->second.count;
    }
    vertices_[node.attribute("id").value()] = least;
    return {};
  }

  static tl::unexpected<Error> words_for_numbers(const xml_node& node, const ColladaInput& in) {
    return bad(node, "its input " + in_quotes(in.semantic) + " names source " + in_quotes(in.source) +
                         ", which holds words where numbers are expected");
  }

  static std::string geometry_of(const xml_node& node) {
    xml_node n = node;
    while (n && std::string_view(n.name()) != "geometry") n = n.parent();
    return n.attribute("id").value();
  }

  // The number of elements that an input refers to.
  Result<uint64_t> limit_of(const xml_node& node, const ColladaInput& in) const {
    if (in.semantic == "VERTEX") {
      const auto known = vertices_.find(in.source);
      if (known != vertices_.end()) return known->second;
    } else if (const auto known = accessor_.find(in.source); known != accessor_.end()) {
      if (known->second.array.words && in.semantic != "JOINT") return words_for_numbers(node, in);
      return known->second.count;
    }
    return bad(node, "its input " + in_quotes(in.semantic) + " names source " + in_quotes(in.source) +
                         ", which is not before it");
  }

  // Counts the groups of indices, and checks each index against the limit of its offset. A group has one index per
  // offset. `free` is an offset where -1 is allowed.
  static Result<uint64_t> groups(const xml_node& node, const std::vector<uint64_t>& limits,
                                 std::optional<size_t> free = {}) {
    uint64_t n = 0;
    XmlWords words(node);
    for (std::string_view word = words.next(); !word.empty(); word = words.next(), ++n) {
      const size_t offset = size_t(n % limits.size());
      const auto index = xml_number(word);
      if (!index && word == "-1" && free == offset) continue;
      if (!index)
        return bad(node,
                   "expected a whole number from 0 on as index " + std::to_string(n) + ", found " + in_quotes(word));
      if (*index >= limits[offset])
        return bad(node, "index " + std::to_string(n) + " is " + std::to_string(*index) +
                             ", but what it refers to (offset " + std::to_string(offset) + ") has only " +
                             std::to_string(limits[offset]));
    }
    if (n % limits.size() != 0)
      return bad(node, std::to_string(n) + " indices are no multiple of the " + std::to_string(limits.size()) +
                           " that each vertex has");
    return n / limits.size();
  }

  // The limit of each offset of an index group.
  Result<std::vector<uint64_t>> limits_of(const xml_node& node, const std::vector<ColladaInput>& inputs) const {
    uint64_t offsets = 1;
    for (const ColladaInput& in : inputs) offsets = std::max(offsets, in.offset + 1);
    if (offsets > 256)
      return bad(node, "an input's offset is " + std::to_string(offsets - 1) + "; at most 255 is read");
    std::vector<uint64_t> limits(size_t(offsets), kMaxColladaNumber + 1);
    for (const ColladaInput& in : inputs) {
      QRY_TRY_ASSIGN(const auto limit, limit_of(node, in));
      limits[in.offset] = std::min(limits[in.offset], limit);
    }
    return limits;
  }

  // The number of groups that a <vcount> announces for its first `count` entries. They must exist.
  static Result<uint64_t> announced(const xml_node& vcount, uint64_t count) {
    uint64_t sum = 0;
    XmlWords words(vcount);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view word = words.next();
      if (word.empty())
        return bad(vcount, "expected " + std::to_string(count) + " numbers, found " + std::to_string(i));
      const auto n = xml_number(word);
      if (!n)
        return bad(vcount,
                   "expected a whole number from 0 on as number " + std::to_string(i) + ", found " + in_quotes(word));
      sum += *n;
    }
    return sum;
  }

  Result<void> primitive(const xml_node& node, const ColladaPrimitive& kind) {
    QRY_TRY_ASSIGN(const auto inputs, inputs_of(node));
    QRY_TRY_ASSIGN(const auto count, number(node, "count", 0));
    const auto lists = lists_of(node);
    if (lists.empty()) return {};
    QRY_TRY_ASSIGN(const auto limits, limits_of(node, inputs));
    std::optional<uint64_t> wanted;
    if (kind.vertices) wanted = count * kind.vertices;
    if (std::string_view(kind.name) == "polylist" && count > 0) {
      const xml_node vcount = node.child("vcount");
      if (!vcount) return bad(node, "it has no <vcount>");
      QRY_TRY_ASSIGN(const auto sum, announced(vcount, count));
      wanted = sum;
    }
    for (const xml_node& p : lists) {
      QRY_TRY_ASSIGN(const auto got, groups(p, limits));
      if (wanted && got != *wanted)
        return bad(p, "expected " + std::to_string(*wanted) + " vertices of " + std::to_string(limits.size()) +
                          " indices each, found " + std::to_string(got));
      if (got < kind.least)
        return bad(p, "expected at least " + std::to_string(kind.least) + " vertices, found " + std::to_string(got));
    }
    return {};
  }

  // All <p> elements, including those of polygons with holes, which are in <ph>.
  static std::vector<xml_node> lists_of(const xml_node& node) {
    std::vector<xml_node> lists;
    for (const xml_node child : node.children()) {
      if (std::string_view(child.name()) == "p") lists.push_back(child);
      if (std::string_view(child.name()) == "ph")
        for (const xml_node p : child.children("p")) lists.push_back(p);
    }
    return lists;
  }

  // Checks the skins. It runs last, because a skin may precede its geometry in the file.
  Result<void> skins() const {
    for (const xml_node& node : skins_) {
      QRY_TRY_ASSIGN(const auto inputs, inputs_of(node));
      QRY_TRY_ASSIGN(const auto limits, limits_of(node, inputs));
      QRY_TRY_ASSIGN(const auto count, number(node, "count", 0));
      std::optional<size_t> joints;
      for (const ColladaInput& in : inputs)
        if (in.semantic == "JOINT") joints = size_t(in.offset);
      uint64_t wanted = 0;
      if (count > 0) {
        if (!node.child("vcount")) return bad(node, "it has no <vcount>");
        QRY_TRY_ASSIGN(const auto sum, announced(node.child("vcount"), count));
        wanted = sum;
      }
      QRY_TRY_ASSIGN(const auto got, groups(node.child("v"), limits, joints));
      if (got != wanted)
        return bad(node, "expected " + std::to_string(wanted) + " influences of " + std::to_string(limits.size()) +
                             " indices each in <v>, found " + std::to_string(got));
      QRY_TRY(bind_matrices(node.parent().child("joints")));
      std::string_view geometry = node.parent().attribute("source").value();
      if (geometry.substr(0, 1) == "#") geometry.remove_prefix(1);
      if (const auto known = positions_.find(std::string(geometry)); known != positions_.end() && count < known->second)
        return bad(node, "it has weights of " + std::to_string(count) + " vertices, but geometry " +
                             in_quotes(geometry) + " has " + std::to_string(known->second));
    }
    return {};
  }

  // Checks that there is a matrix for each joint.
  Result<void> bind_matrices(const xml_node& node) const {
    QRY_TRY_ASSIGN(const auto inputs, inputs_of(node));
    uint64_t joints = 0, matrices = UINT64_MAX;
    for (const ColladaInput& in : inputs) {
      const auto known = accessor_.find(in.source);
      if (known == accessor_.end())
        return bad(node, "its input " + in_quotes(in.semantic) + " names source " + in_quotes(in.source) +
                             ", which is not there");
      if (in.semantic == "JOINT") joints = known->second.array.count;
      if (in.semantic == "INV_BIND_MATRIX") matrices = known->second.count;
    }
    if (joints > matrices)
      return bad(node,
                 "there are " + std::to_string(joints) + " joints, but only " + std::to_string(matrices) + " matrices");
    return {};
  }

  std::unordered_map<std::string, ColladaArray> array_;
  std::unordered_map<std::string, uint64_t> vertices_, positions_;  // positions: by the geometry
  std::unordered_map<std::string, ColladaAccessor> accessor_;       // by the source
  std::vector<xml_node> skins_;
};

}  // namespace

Result<void> check_collada(std::vector<uint8_t>& bytes) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer_inplace(bytes.data(), bytes.size());
  if (parsed.status == pugi::status_out_of_memory) return fail(ErrorCode::out_of_memory, "");
  if (!parsed)
    return fail(ErrorCode::malformed_input,
                io::at_byte(size_t(std::max<ptrdiff_t>(0, parsed.offset))) + "it is no XML: " + parsed.description());
  return ColladaChecker().check(document);
}

Result<void> check_collada(const std::filesystem::path& file) {
  QRY_TRY_ASSIGN(auto bytes, io::read_file(file, kMaxColladaBytes));
  return check_collada(bytes);
}

}  // namespace quarry::mesh_reader
