// SPDX-License-Identifier: Apache-2.0
// ply_builder.hpp - writes small PLY files in any encoding, of any types: for tests, and the fuzzer's first inputs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

enum class PlyForm { ascii, little, big };

class PlyBuilder {
 public:
  // A property's values in one entry; a list's may be any number.
  using Row = std::vector<std::vector<double>>;

  // `properties`: "float x", "list uchar int vertex_indices".
  PlyBuilder& element(const std::string& name, const std::vector<std::string>& properties,
                      const std::vector<Row>& rows) {
    elements_.push_back({name, properties, rows});
    return *this;
  }
  PlyBuilder& comment(const std::string& text) {
    comments_ += "comment " + text + "\n";
    return *this;
  }
  std::vector<uint8_t> bytes(PlyForm form, const std::string& line_end = "\n") const {
    std::string header = std::string("ply\nformat ") +
                         (form == PlyForm::ascii    ? "ascii"
                          : form == PlyForm::little ? "binary_little_endian"
                                                    : "binary_big_endian") +
                         " 1.0\n" + comments_;
    for (const Element& e : elements_) {
      header += "element " + e.name + " " + std::to_string(e.rows.size()) + "\n";
      for (const std::string& p : e.properties) header += "property " + p + "\n";
    }
    std::vector<uint8_t> out;
    const auto text = [&](const std::string& lines) {
      for (const char c : lines)
        if (c == '\n') out.insert(out.end(), line_end.begin(), line_end.end());
        else out.push_back(uint8_t(c));
    };
    text(header + "end_header\n");
    for (const Element& e : elements_)
      for (const Row& row : e.rows) {
        for (size_t p = 0; p < row.size(); ++p) {
          const auto types = types_of(e.properties[p]);
          const bool list = types.size() == 2;
          if (list) put(out, form, types[0], double(row[p].size()));
          for (const double v : row[p]) put(out, form, types.back(), v);
        }
        if (form == PlyForm::ascii) out.pop_back(), text("\n");
      }
    return out;
  }

 private:
  struct Element {
    std::string name;
    std::vector<std::string> properties;
    std::vector<Row> rows;
  };

  static std::vector<std::string> types_of(const std::string& property) {
    const size_t a = property.find(' ');
    if (property.substr(0, a) != "list") return {property.substr(0, a)};
    const size_t b = property.find(' ', a + 1), c = property.find(' ', b + 1);
    return {property.substr(a + 1, b - a - 1), property.substr(b + 1, c - b - 1)};
  }
  template <class T>
  static void raw(std::vector<uint8_t>& out, bool big, double value) {
    const T v = T(value);
    uint8_t b[sizeof v];
    std::memcpy(b, &v, sizeof v);
    for (size_t i = 0; i < sizeof v; ++i) out.push_back(b[big ? sizeof v - 1 - i : i]);
  }
  static void put(std::vector<uint8_t>& out, PlyForm form, const std::string& type, double v) {
    if (form == PlyForm::ascii) {
      char text[40];
      const int n = std::snprintf(text, sizeof text, "%.17g ", v);
      out.insert(out.end(), text, text + n);
      return;
    }
    const bool big = form == PlyForm::big;
    if (type == "char" || type == "int8") raw<int8_t>(out, big, v);
    else if (type == "uchar" || type == "uint8") raw<uint8_t>(out, big, v);
    else if (type == "short" || type == "int16") raw<int16_t>(out, big, v);
    else if (type == "ushort" || type == "uint16") raw<uint16_t>(out, big, v);
    else if (type == "int" || type == "int32") raw<int32_t>(out, big, v);
    else if (type == "uint" || type == "uint32") raw<uint32_t>(out, big, v);
    else if (type == "float" || type == "float32") raw<float>(out, big, v);
    else raw<double>(out, big, v);
  }

  std::string comments_;
  std::vector<Element> elements_;
};

// Eight corners of a box 2 x 1 x 0.5 about the origin, and its sides.
inline std::vector<PlyBuilder::Row> box_vertices(double scale = 1) {
  std::vector<PlyBuilder::Row> rows;
  for (int i = 0; i < 8; ++i)
    rows.push_back({{(i & 1 ? 1 : -1) * scale}, {(i & 2 ? 0.5 : -0.5) * scale}, {(i & 4 ? 0.25 : -0.25) * scale}});
  return rows;
}
inline std::vector<std::vector<double>> box_quads() {
  return {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
}
inline std::vector<PlyBuilder::Row> ply_box_triangles() {
  std::vector<PlyBuilder::Row> rows;
  for (const auto& q : box_quads()) rows.push_back({{q[0], q[1], q[2]}}), rows.push_back({{q[0], q[2], q[3]}});
  return rows;
}
inline const std::vector<std::string>& xyz_floats() {
  static const std::vector<std::string> properties{"float x", "float y", "float z"};
  return properties;
}

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> ply_seeds() {
  std::vector<PlyBuilder::Row> rich;
  for (int i = 0; i < 8; ++i)
    rich.push_back({{double(i)},
                    {i & 1 ? 1.0 : 0.0},
                    {i & 2 ? 1.0 : 0.0},
                    {i & 4 ? 1.0 : 0.0},
                    {255},
                    {65535},
                    {0.5},
                    {0.25},
                    {0.75}});
  const std::vector<std::string> rich_properties{"list uchar short skipped",
                                                 "double x",
                                                 "float y",
                                                 "short z",
                                                 "uchar red",
                                                 "ushort green",
                                                 "float blue",
                                                 "float s",
                                                 "float t"};
  rich[0][0] = {1, 2, 3};
  rich[1][0] = {};
  std::vector<PlyBuilder::Row> coloured;
  for (const auto& t : ply_box_triangles()) coloured.push_back({t[0], {0, 0, 1, 0, 1, 1}, {1}, {255}, {0}, {9}});
  coloured[3][1] = {};
  PlyBuilder plain, many, faces, strips;
  plain.element("vertex", xyz_floats(), box_vertices())
      .element("face", {"list uchar int vertex_indices"}, ply_box_triangles());
  many.comment("TextureFile none.png")
      .element("vertex", rich_properties, rich)
      .element("edge", {"int vertex1", "int vertex2"}, {{{0}, {1}}})
      .element("face", {"list int ushort vertex_index"}, {{{0, 1, 3, 2}}, {{0, 1, 3, 7, 5}}, {{4, 99, 1}}});
  faces
      .element("face",
               {"list uchar uint vertex_indices", "list uchar float texcoord", "int texnumber", "uchar red",
                "uchar green", "uchar blue"},
               coloured)
      .element("vertex", xyz_floats(), box_vertices());
  strips.element("vertex", xyz_floats(), box_vertices())
      .element("material", {"uchar diffuse_red", "uchar diffuse_green", "uchar diffuse_blue", "float specular_power"},
               {{{255}, {1}, {2}, {0.5}}})
      .element("tristrips", {"list int int vertex_indices"}, {{{0, 2, 1, 3, -1, 4, 5, 6, 7, 7, 0}}});
  std::vector<std::pair<std::string, std::vector<uint8_t>>> seeds;
  for (const auto& [name, file] : {std::pair<std::string, const PlyBuilder*>{"plain", &plain},
                                   {"many", &many},
                                   {"faces", &faces},
                                   {"strips", &strips}})
    for (const auto& [ending, form] :
         {std::pair<std::string, PlyForm>{"ascii", PlyForm::ascii}, {"little", PlyForm::little}, {"big", PlyForm::big}})
      seeds.emplace_back(name + "-" + ending + ".ply", file->bytes(form));
  return seeds;
}

}  // namespace quarry::test
