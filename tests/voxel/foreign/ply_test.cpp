// SPDX-License-Identifier: Apache-2.0
// ply_test.cpp - the PLY mesh reader, called as quarry-mesh-reader calls it: each encoding and type against one file of
// text, what elements and properties mean, damaged files.
#include "voxel/foreign/meshes/ply.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/foreign/ply_builder.hpp"
#include "voxel/foreign/meshes/polygon.hpp"
#include "voxel/io/ply/header.hpp"

namespace ply_test {

using namespace quarry;
using test::PlyBuilder, test::PlyForm;
using Bytes = std::vector<uint8_t>;
namespace fs = std::filesystem;

namespace {

constexpr PlyForm kForms[] = {PlyForm::ascii, PlyForm::little, PlyForm::big};

struct Read {
  Result<Mesh> mesh = fail(ErrorCode::malformed_input, "not read");
  std::vector<std::string> warnings;
};

Read read(const Bytes& bytes, bool z_up = false, const fs::path& file = "/nowhere/at all.ply") {
  Read out;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): an allocation of its own, so sanitizers see its end
  const Bytes exact(bytes);
  io::BufferedReader pieces(exact);
  mesh_reader::ReferencedFiles files(file);
  out.mesh = mesh_reader::parse_ply(pieces, file, z_up, out.warnings, files);
  if (out.mesh) CHECK(check_mesh(*out.mesh));
  else CHECK_FALSE(out.mesh.error().message.empty());
  return out;
}

Mesh mesh_of(const Bytes& bytes) {
  Read r = read(bytes);
  INFO((r.mesh ? std::string() : r.mesh.error().message));
  REQUIRE(r.mesh);
  CHECK(r.warnings == std::vector<std::string>{});
  return std::move(*r.mesh);
}

void check_error(const Bytes& bytes, const std::string& begin, const std::string& part) {
  const Read r = read(bytes);
  REQUIRE_FALSE(r.mesh);
  CHECK_THAT(r.mesh.error().message, Catch::StartsWith(begin) && Catch::Contains(part));
}

Bytes text(const std::string& lines) { return {lines.begin(), lines.end()}; }
std::string ascii_head(const std::string& elements) { return "ply\nformat ascii 1.0\n" + elements + "end_header\n"; }
const std::string kXyz = "property float x\nproperty float y\nproperty float z\n";

PlyBuilder box() {
  return PlyBuilder()
      .element("vertex", test::xyz_floats(), test::box_vertices())
      .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles());
}

// The triangles with their corners in the order that begins with the least, as places.
std::multiset<std::array<std::array<float, 3>, 3>> triangles_of(const Mesh& m) {
  std::multiset<std::array<std::array<float, 3>, 3>> all;
  for (size_t t = 0; t < m.indices.size(); t += 3) {
    std::array<std::array<float, 3>, 3> corners;
    for (size_t k = 0; k < 3; ++k) std::copy_n(&m.positions[size_t(m.indices[t + k]) * 3], 3, corners[k].begin());
    std::rotate(corners.begin(), std::min_element(corners.begin(), corners.end()), corners.end());
    all.insert(corners);
  }
  return all;
}

double area_of(const Mesh& m) {
  double sum = 0;
  for (const auto& t : triangles_of(m)) {
    double a[3], b[3];
    for (size_t k = 0; k < 3; ++k) a[k] = double(t[1][k]) - t[0][k], b[k] = double(t[2][k]) - t[0][k];
    sum += std::sqrt(std::pow(a[1] * b[2] - a[2] * b[1], 2) + std::pow(a[2] * b[0] - a[0] * b[2], 2) +
                     std::pow(a[0] * b[1] - a[1] * b[0], 2)) /
           2;
  }
  return sum;
}

}  // namespace

// Found by the fuzzer: the list of such an element was looked for behind its properties.
TEST_CASE("mesh: a PLY file's strips that are none need no list") {
  for (const PlyForm form : {PlyForm::ascii, PlyForm::little})
    CHECK(mesh_of(box().element("tristrips", {}, {}).bytes(form)).triangle_count() == 12);
}

TEST_CASE("mesh ply: every encoding, type of positions, lengths and indices, and line end gives the same mesh") {
  // Whole numbers from -100 to 100, which every type with a sign holds.
  const auto vertices = test::box_vertices(4);
  const Mesh known = mesh_of(PlyBuilder()
                                 .element("vertex", test::xyz_floats(), vertices)
                                 .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles())
                                 .bytes(PlyForm::ascii));
  REQUIRE(known.triangle_count() == 12);
  REQUIRE(known.vertex_count() == 8);
  CHECK(known.positions[0] == -4);
  const auto same = [&](const PlyBuilder& file, const std::string& what) {
    for (const PlyForm form : kForms)
      for (const char* line_end : {"\n", "\r\n", "\r"}) {
        INFO(what << ", form " << int(form) << ", line end of " << std::strlen(line_end)
                  << (line_end[0] == '\r' ? " with a return" : ""));
        const Mesh m = mesh_of(file.bytes(form, line_end));
        CHECK(m.positions == known.positions);
        CHECK(m.indices == known.indices);
        CHECK(m.triangle_material == known.triangle_material);
        CHECK(m.uvs.empty());
        CHECK(m.colors.empty());
      }
  };
  for (const std::string type :
       {"char", "int8", "short", "int16", "int", "int32", "float", "float32", "double", "float64"})
    same(PlyBuilder()
             .element("vertex", {type + " x", type + " y", type + " z"}, vertices)
             .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles()),
         type);
  for (const std::string type :
       {"char", "int8", "uchar", "uint8", "short", "int16", "ushort", "uint16", "int", "int32", "uint", "uint32"}) {
    same(PlyBuilder()
             .element("vertex", test::xyz_floats(), vertices)
             .element("face", {"list " + type + " int vertex_index"}, test::ply_box_triangles()),
         "lengths of " + type);
    same(PlyBuilder()
             .element("vertex", test::xyz_floats(), vertices)
             .element("face", {"list uchar " + type + " vertex_indices"}, test::ply_box_triangles()),
         "indices of " + type);
  }
}

TEST_CASE(
    "mesh ply: elements and properties that mean nothing to a mesh are passed over, lists too, wherever they stand") {
  const Mesh known = mesh_of(box().bytes(PlyForm::ascii));
  std::vector<PlyBuilder::Row> vertices = test::box_vertices(), faces = test::ply_box_triangles();
  for (size_t i = 0; i < vertices.size(); ++i) {
    vertices[i].insert(vertices[i].begin(), std::vector<double>(i, 7));  // a list of i
    vertices[i].insert(vertices[i].begin() + 2, {{0}, {1}, {0}});        // a normal
    vertices[i].push_back(std::vector<double>(8 - i, 0.5));
  }
  for (auto& f : faces) f.insert(f.begin(), {3, 2, 1, 0}), f.push_back({5});
  const auto file =
      PlyBuilder()
          .comment("made by a test")
          .element("camera", {"float view_px", "list int double matrix"}, {{{1}, {1, 2, 3}}, {{2}, {}}})
          .element("vertex",
                   {"list ushort char neighbours", "float x", "float nx", "float ny", "float nz", "float y", "float z",
                    "list uchar float weights"},
                   vertices)
          .element("edge", {"int vertex1", "int vertex2"}, {{{0}, {1}}, {{1}, {2}}})
          .element("face", {"list uchar uchar flags", "list uchar int vertex_indices", "double quality"}, faces)
          .element("user_data", {"list uint uchar bytes"}, {{std::vector<double>(1000, 65)}});
  for (const PlyForm form : kForms) {
    const Mesh m = mesh_of(file.bytes(form));
    CHECK(m.positions == known.positions);
    CHECK(m.indices == known.indices);
  }
}

TEST_CASE("mesh ply: faces that stand before their vertices are the same faces") {
  const Mesh known = mesh_of(box().bytes(PlyForm::ascii));
  for (const PlyForm form : kForms) {
    const Mesh m = mesh_of(PlyBuilder()
                               .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles())
                               .element("vertex", test::xyz_floats(), test::box_vertices())
                               .bytes(form));
    CHECK(m.positions == known.positions);
    CHECK(m.indices == known.indices);
  }
}

TEST_CASE("mesh ply: a body may begin with any byte, a line end too") {
  for (const std::string line_end : {"\n", "\r\n"})
    for (int first = 0; first < 256; ++first) {
      Bytes b = box().bytes(PlyForm::little, line_end);
      const std::string mark = "end_header" + line_end;
      const auto at = std::search(b.begin(), b.end(), mark.begin(), mark.end()) + ptrdiff_t(mark.size());
      *at = uint8_t(first);
      const Mesh m = mesh_of(b);
      REQUIRE(m.triangle_count() == 12);
      CHECK(m.positions[0] == Approx(-1).margin(0.001));
      CHECK(m.positions[1] == -0.5f);
    }
  Bytes big = box().bytes(PlyForm::big);
  const auto at = std::search(big.begin(), big.end(), std::begin("end_header\n"), std::end("end_header\n") - 1) + 11;
  *at = '\n';
  CHECK(mesh_of(big).positions[1] == -0.5f);
}

TEST_CASE("mesh ply: strips turn every second triangle, begin anew at -1, and join over equal corners") {
  const auto quads = test::box_quads();
  std::vector<double> restarts, joined;
  for (const auto& q : quads) {
    restarts.insert(restarts.end(), {q[0], q[1], q[3], q[2], -1});
    if (!joined.empty()) joined.insert(joined.end(), {joined.back(), q[0]});
    joined.insert(joined.end(), {q[0], q[1], q[3], q[2]});
    if (joined.size() % 2) joined.push_back(joined.back());
  }
  std::vector<PlyBuilder::Row> strips;
  for (const auto& q : quads) strips.push_back({{q[0], q[1], q[3], q[2]}});
  const auto with = [](const std::vector<PlyBuilder::Row>& rows, const std::string& type = "int") {
    return PlyBuilder()
        .element("vertex", test::xyz_floats(), test::box_vertices())
        .element("tristrips", {"list int " + type + " vertex_indices"}, rows);
  };
  const auto area = area_of(mesh_of(box().bytes(PlyForm::ascii)));
  for (const PlyForm form : kForms)
    for (const auto& rows : {std::vector<PlyBuilder::Row>{{restarts}}, strips, {{joined}}}) {
      const Mesh m = mesh_of(with(rows).bytes(form));
      CHECK(m.triangle_count() == 12);
      CHECK(area_of(m) == Approx(area));
      // All run round as the sides do: the volume that they enclose is the box's.
      double volume = 0;
      for (const auto& t : triangles_of(m))
        volume += double(t[0][0]) * (double(t[1][1]) * t[2][2] - double(t[1][2]) * t[2][1]) +
                  double(t[0][1]) * (double(t[1][2]) * t[2][0] - double(t[1][0]) * t[2][2]) +
                  double(t[0][2]) * (double(t[1][0]) * t[2][1] - double(t[1][1]) * t[2][0]);
      CHECK(std::abs(volume / 6) == Approx(1));
    }
  // -1 in a type without a sign; strips beside faces; an index that is not there costs its triangles alone.
  std::vector<double> unsigned_restarts = restarts;
  std::replace(unsigned_restarts.begin(), unsigned_restarts.end(), -1.0, 255.0);
  CHECK(mesh_of(with({{unsigned_restarts}}, "uchar").bytes(PlyForm::big)).triangle_count() == 12);
  CHECK(mesh_of(
            with({{restarts}}).element("face", {"list uchar int vertex_indices"}, {{{0, 1, 2}}}).bytes(PlyForm::little))
            .triangle_count() == 13);
  const Read broken = read(with({{{0, 1, 2, 99, 3, 4, 5}}}).bytes(PlyForm::ascii));
  REQUIRE(broken.mesh);
  CHECK(broken.mesh->triangle_count() == 2);
  CHECK(broken.warnings == std::vector<std::string>{"1 faces that refer to vertices that are not there are left out"});
}

TEST_CASE("mesh ply: a face with more than three corners covers its own area and no more, with dents too") {
  // A star, seen from three sides and tilted; an L; a quad with a dent at each corner in turn.
  const auto area = [](const std::vector<std::array<double, 2>>& outline, int view) {
    std::vector<PlyBuilder::Row> vertices;
    std::vector<double> corners;
    for (const auto& [u, v] : outline) {
      corners.push_back(double(corners.size()));
      const double w = 0.5 * u - 0.25 * v;
      vertices.push_back(view == 0   ? PlyBuilder::Row{{u}, {v}, {w}}
                         : view == 1 ? PlyBuilder::Row{{w}, {u}, {v}}
                                     : PlyBuilder::Row{{v}, {w}, {u}});
    }
    const Mesh m = mesh_of(PlyBuilder()
                               .element("vertex", test::xyz_floats(), vertices)
                               .element("face", {"list uchar int vertex_indices"}, {{corners}})
                               .bytes(PlyForm::little));
    CHECK(m.triangle_count() == outline.size() - 2);
    return area_of(m) / std::sqrt(1 + 0.5 * 0.5 + 0.25 * 0.25);
  };
  std::vector<std::array<double, 2>> star;
  for (int i = 0; i < 20; ++i)
    star.push_back({std::cos(i * 0.314159265) * (i % 2 ? 1 : 4), std::sin(i * 0.314159265) * (i % 2 ? 1 : 4)});
  for (int view = 0; view < 3; ++view)
    for (int turned = 0; turned < 2; ++turned) {
      CHECK(area(star, view) == Approx(10 * 4 * std::sin(0.314159265)));
      std::vector<std::array<double, 2>> corner{{0, 0}, {3, 0}, {3, 1}, {1, 1}, {1, 3}, {0, 3}},
          arrow{{0, 0}, {2, 4}, {0, 1}, {-2, 4}};
      if (turned) std::reverse(corner.begin(), corner.end()), std::reverse(arrow.begin(), arrow.end());
      for (size_t first = 0; first < 6; ++first, std::rotate(corner.begin(), corner.begin() + 1, corner.end()))
        CHECK(area(corner, view) == Approx(5));
      for (size_t first = 0; first < 4; ++first, std::rotate(arrow.begin(), arrow.begin() + 1, arrow.end()))
        CHECK(area(arrow, view) == Approx(2));
      std::reverse(star.begin(), star.end());
    }
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {  // a fan about the origin with random lengths is a simple polygon
    std::vector<std::array<double, 2>> polygon;
    const int n = 5 + int(random() % 30);
    double whole = 0;
    for (int i = 0; i < n; ++i) {
      const double length = 1 + double(random() % 1000) / 100;
      polygon.push_back({std::cos(i * 6.283185307179586 / n) * length, std::sin(i * 6.283185307179586 / n) * length});
    }
    for (size_t i = 0; i < polygon.size(); ++i)
      whole +=
          polygon[i][0] * polygon[(i + 1) % polygon.size()][1] - polygon[i][1] * polygon[(i + 1) % polygon.size()][0];
    CHECK(area(polygon, round % 3) == Approx(whole / 2).epsilon(1e-5));
  }
  // Edges and points are no faces.
  CHECK(mesh_of(PlyBuilder()
                    .element("vertex", test::xyz_floats(), test::box_vertices())
                    .element("face", {"list uchar int vertex_indices"}, {{{0}}, {{0, 1}}, {{}}, {{0, 1, 2}}})
                    .bytes(PlyForm::ascii))
            .triangle_count() == 1);
}

TEST_CASE("mesh ply: colours of vertices come from bytes, 16 bits and floating point, with alpha and without") {
  for (const auto& [type, full, half] : {std::tuple<std::string, double, double>{"uchar", 255, 128},
                                         {"ushort", 65535, 32896},
                                         {"float", 1, 128.0 / 255},
                                         {"double", 1, 128.0 / 255},
                                         {"int", 255, 128}})
    for (const std::string prefix : {"", "diffuse_"})
      for (const bool alpha : {false, true}) {
        INFO(type << " " << prefix << alpha);
        std::vector<PlyBuilder::Row> vertices = test::box_vertices();
        for (auto& v : vertices) {
          v.insert(v.end(), {{full}, {half}, {0}});
          if (alpha) v.push_back({half});
        }
        std::vector<std::string> properties = test::xyz_floats();
        for (const char* name : {"red", "green", "blue"}) properties.push_back(type + " " + prefix + name);
        if (alpha) properties.push_back(type + " " + prefix + "alpha");
        for (const PlyForm form : kForms) {
          const Mesh m = mesh_of(PlyBuilder()
                                     .element("vertex", properties, vertices)
                                     .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles())
                                     .bytes(form));
          REQUIRE(m.colors.size() == 32);
          CHECK(std::vector<uint8_t>(m.colors.begin(), m.colors.begin() + 4) ==
                std::vector<uint8_t>{255, 128, 0, uint8_t(alpha ? 128 : 255)});
        }
      }
}

TEST_CASE("mesh ply: a face's own colour and texture coordinates are its corners', and its neighbours keep theirs") {
  // Two triangles over one edge.
  const std::vector<PlyBuilder::Row> corners{{{0}, {0}, {0}}, {{1}, {0}, {0}}, {{1}, {1}, {0}}, {{0}, {1}, {0}}};
  const auto coloured =
      mesh_of(PlyBuilder()
                  .element("vertex", test::xyz_floats(), corners)
                  .element("face", {"list uchar int vertex_indices", "uchar red", "uchar green", "uchar blue"},
                           {{{0, 1, 2}, {255}, {0}, {0}}, {{0, 2, 3}, {0}, {0}, {255}}})
                  .bytes(PlyForm::little));
  REQUIRE(coloured.triangle_count() == 2);
  CHECK(coloured.vertex_count() == 6);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(coloured.colors[coloured.indices[k] * 4] == 255);
    CHECK(coloured.colors[coloured.indices[3 + k] * 4] == 0);
    CHECK(coloured.colors[coloured.indices[3 + k] * 4 + 2] == 255);
  }
  const auto same =
      mesh_of(PlyBuilder()
                  .element("vertex", test::xyz_floats(), corners)
                  .element("face", {"list uchar int vertex_indices", "uchar red", "uchar green", "uchar blue"},
                           {{{0, 1, 2}, {1}, {2}, {3}}, {{0, 2, 3}, {1}, {2}, {3}}})
                  .bytes(PlyForm::ascii));
  CHECK(same.vertex_count() == 4);

  // A seam: the edge 0-2 has other coordinates on each side. v = 0 of the file is the bottom.
  const auto seam = mesh_of(PlyBuilder()
                                .element("vertex", test::xyz_floats(), corners)
                                .element("face", {"list uchar int vertex_indices", "list uchar float texcoord"},
                                         {{{0, 1, 2}, {0, 0, 1, 0, 1, 1}}, {{0, 2, 3}, {0.5, 0, 0.75, 0.25, 0.5, 1}}})
                                .bytes(PlyForm::big));
  REQUIRE(seam.uvs.size() == seam.vertex_count() * 2);
  const auto uv = [&](size_t corner) {
    return std::array<float, 2>{seam.uvs[seam.indices[corner] * 2], seam.uvs[seam.indices[corner] * 2 + 1]};
  };
  CHECK(uv(0) == std::array<float, 2>{0, 1});
  CHECK(uv(2) == std::array<float, 2>{1, 0});
  CHECK(uv(3) == std::array<float, 2>{0.5f, 1});
  CHECK(uv(4) == std::array<float, 2>{0.75f, 0.75f});
  CHECK(uv(5) == std::array<float, 2>{0.5f, 0});

  const auto odd = read(PlyBuilder()
                            .element("vertex", test::xyz_floats(), corners)
                            .element("face", {"list uchar int vertex_indices", "list uchar float texcoord"},
                                     {{{0, 1, 2}, {0, 0, 1, 0}}, {{0, 2, 3}, {0, 0, 1, 1, 0, 1}}, {{1, 2, 3}, {}}})
                            .bytes(PlyForm::ascii));
  REQUIRE(odd.mesh);
  CHECK(odd.mesh->triangle_count() == 3);
  REQUIRE(odd.warnings.size() == 1);
  CHECK_THAT(odd.warnings[0], Catch::StartsWith("1 faces have another number of texture coordinates"));
}

TEST_CASE("mesh ply: textures that the file names, several by number, and one of the same name beside it") {
  const fs::path dir = test::scratch_dir("ply-textures");
  const Bytes red{'B', 'M', 58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0,   24,
                  0,   0,   0,  0, 0, 4, 0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0};
  test::write_bytes(dir / "a b.bmp", red);
  Bytes blue = red;
  blue[54] = 255, blue[56] = 0;
  test::write_bytes(dir / "second.bmp", blue);
  const std::vector<PlyBuilder::Row> corners{
      {{0}, {0}, {0}, {0}, {1}}, {{1}, {0}, {0}, {1}, {1}}, {{1}, {1}, {0}, {1}, {0}}};
  for (const auto& [u, v] : {std::pair<std::string, std::string>{"u", "v"}, {"s", "t"}, {"texture_u", "texture_v"}}) {
    const std::vector<std::string> properties{"float x", "float y", "float z", "float " + u, "float " + v};
    const auto bytes = PlyBuilder()
                           .comment("TextureFile a b.bmp")
                           .comment("TextureFile second.bmp")
                           .element("vertex", properties, corners)
                           .element("face", {"list uchar int vertex_indices", "int texnumber"},
                                    {{{0, 1, 2}, {1}}, {{2, 1, 0}, {0}}, {{0, 2, 1}, {77}}})
                           .bytes(PlyForm::little);
    const Read r = read(bytes, false, dir / "named.ply");
    REQUIRE(r.mesh);
    CHECK(r.warnings.empty());
    REQUIRE(r.mesh->images.size() == 2);
    CHECK(r.mesh->triangle_material == std::vector<uint32_t>{1, 0, 0});
    CHECK(r.mesh->images[size_t(r.mesh->materials[0].base_color_image)].rgba == Bytes{255, 0, 0, 255});
    CHECK(r.mesh->images[size_t(r.mesh->materials[1].base_color_image)].rgba == Bytes{0, 0, 255, 255});
    CHECK(r.mesh->uvs[1] == 0);  // v = 1 is the top row
  }
  const auto plain = PlyBuilder()
                         .element("vertex", {"float x", "float y", "float z", "float s", "float t"}, corners)
                         .element("face", {"list uchar int vertex_indices"}, {{{0, 1, 2}}})
                         .bytes(PlyForm::ascii);
  const Read beside = read(plain, false, dir / "second.ply");
  REQUIRE(beside.mesh);
  CHECK(beside.mesh->images.size() == 1);
  CHECK(beside.warnings == std::vector<std::string>{"it names no texture; second.bmp beside it is used"});
  const Read missing = read(PlyBuilder()
                                .comment("TextureFile gone.png")
                                .element("vertex", test::xyz_floats(), test::box_vertices())
                                .element("face", {"list uchar int vertex_indices"}, test::ply_box_triangles())
                                .bytes(PlyForm::ascii));
  REQUIRE(missing.mesh);
  CHECK(missing.warnings ==
        std::vector<std::string>{"texture 'gone.png' is left out: there is no such file beside the mesh"});
}

TEST_CASE("mesh ply: materials of the file colour the faces that choose them") {
  const auto m = mesh_of(PlyBuilder()
                             .element("vertex", test::xyz_floats(), test::box_vertices())
                             .element("face", {"list uchar int vertex_indices", "int material_index"},
                                      {{{0, 1, 2}, {1}}, {{1, 2, 3}, {0}}, {{4, 5, 6}, {9}}})
                             .element("material", {"uchar diffuse_red", "uchar diffuse_green", "uchar diffuse_blue"},
                                      {{{255}, {0}, {0}}, {{0}, {255}, {0}}})
                             .bytes(PlyForm::big));
  CHECK(m.triangle_material == std::vector<uint32_t>{1, 0, 0});
  CHECK(m.materials[1].base_color[1] == 1);
  CHECK(m.materials[0].base_color[1] == 0);
}

TEST_CASE("mesh ply: z up turns the axes") {
  const auto file = PlyBuilder()
                        .element("vertex", test::xyz_floats(), {{{1}, {2}, {3}}, {{0}, {0}, {0}}, {{5}, {0}, {0}}})
                        .element("face", {"list uchar int vertex_indices"}, {{{0, 1, 2}}})
                        .bytes(PlyForm::little);
  const auto up = read(file, true).mesh;
  REQUIRE(up);
  CHECK(std::vector<float>(up->positions.begin(), up->positions.begin() + 3) == std::vector<float>{1, 3, -2});
}

TEST_CASE("mesh ply: faces of vertices that are not there, or nowhere, are left out and counted") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto vertices = test::box_vertices();
  vertices[7][1] = {kInfinity};
  for (const PlyForm form : kForms) {
    const Read r = read(PlyBuilder()
                            .element("vertex", test::xyz_floats(), vertices)
                            .element("face", {"list uchar int vertex_indices"},
                                     {{{0, 1, 2}}, {{0, 1, 8}}, {{-1, 1, 2}}, {{0, 1, 7}}, {{0, 1, 3, 99}}})
                            .bytes(form));
    REQUIRE(r.mesh);
    CHECK(r.mesh->triangle_count() == 1);
    CHECK(r.warnings == std::vector<std::string>{"1 triangles with an infinite or undefined position are left out",
                                                 "3 faces that refer to vertices that are not there are left out"});
  }
  check_error(PlyBuilder()
                  .element("vertex", test::xyz_floats(), vertices)
                  .element("face", {"list uchar int vertex_indices"}, {{{0, 1, 8}}})
                  .bytes(PlyForm::big),
              "every face refers to a vertex", "not there");
  check_error(PlyBuilder()
                  .element("vertex", test::xyz_floats(), vertices)
                  .element("face", {"list uchar int vertex_indices"}, {{{0, 1, 7}}})
                  .bytes(PlyForm::big),
              "every triangle has an infinite", "position");
}

TEST_CASE("mesh ply: every error of a header or body names the byte and what was expected there") {
  const std::string faces = "element face 1\nproperty list uchar int vertex_indices\n",
                    vertices = "element vertex 3\n" + kXyz;
  check_error(text("plx\n"), "byte 0: ", "'ply'");
  check_error(text("ply\nformat ascii 1.0\n"), "byte 21: ", "the data ends");
  check_error(text("ply\n" + vertices + faces + "end_header\n"), "byte ", "'format'");
  check_error(text("ply\nformat text 1.0\nend_header\n"), "byte 4: ", "binary_big_endian");
  check_error(text(ascii_head("property float x\n")), "byte 21: ", "an element before its property");
  check_error(text(ascii_head("element vertex\n")), "byte 21: ", "whole number");
  check_error(text(ascii_head("element vertex -1\n")), "byte 21: ", "whole number");
  check_error(text(ascii_head(vertices + "property half w\n")), "byte ", "found 'half'");
  check_error(text(ascii_head(vertices + "property float\n")), "byte ", "and its name");
  check_error(text(ascii_head(vertices + "element face 1\nproperty list float int vertex_indices\n")), "byte ",
              "whole numbers for a list's length");
  check_error(text(ascii_head(vertices + vertices)), "byte ", "is there twice");
  check_error(
      text(ascii_head("element vertex 3\nproperty float x\nproperty float y\n" + faces) + "0 0\n0 0\n0 0\n3 0 1 2\n"),
      "byte 21: ", "x, y and z");
  check_error(text(ascii_head(vertices + "element face 1\nproperty int a\n") + "0 0 0\n1 0 0\n1 1 0\n3\n"), "byte ",
              "vertex_indices");
  check_error(text(ascii_head(vertices) + "0 0 0\n1 0 0\n1 1 0\n"), "it has no faces", "surfaces");
  check_error(text(ascii_head(faces) + "3 0 1 2\n"), "byte ", "vertices");
  check_error(text(ascii_head(vertices + faces) + "0 0 0\n1 0\n1 1 0 0 0 0 0 0\n3 0 1 2\n"), "byte ",
              "vertex 1, a line of 3 numbers");
  check_error(text(ascii_head(vertices + faces) + "0 0 0\n1 0 x\n1 1 0 0 0 0 0 0\n3 0 1 2\n"), "byte ",
              "vertex 1, a line of 3 numbers");
  check_error(text(ascii_head(vertices + faces) + "0 0 0\n1 0 0\n1 1 0\n3 0 1 1.2.3\n"), "byte ", "face 0");
  check_error(text(ascii_head(vertices + faces) + "0 0 0\n1 0 0\n1 1 0\n4000 0 1 2\n"), "byte ",
              "4000 items, but there are bytes for only 4");
  check_error(text(ascii_head(vertices + faces) + "0 0 0\n1 0 0\n1 1 0\n-3 0 1 2\n"), "byte ", "no number of items");
  check_error(text(ascii_head("element vertex 4000000000000\n" + kXyz + faces) + "0 0 0\n1 0 0\n1 1 0\n3 0 1 2\n"),
              "byte 21: ", "4000000000000 vertices");
  check_error(text("ply\nformat binary_little_endian 1.0\nelement vertex 3\n" + kXyz +
                   "element face 18446744073709551615\nproperty list uchar int vertex_indices\nend_header\n" +
                   std::string(40, 'x')),
              "byte ", "18446744073709551615 faces");
  const Read open = read(text("ply\nformat ascii 1.0\n" + std::string(io::kPlyHeaderBytes, 'x')));
  REQUIRE_FALSE(open.mesh);
  CHECK(open.mesh.error().code == ErrorCode::unsupported);
}

TEST_CASE(
    "mesh ply: text with plus signs, exponents, tabs, empty lines, broken lists and more numbers than it needs is "
    "read") {
  const Mesh m = mesh_of(
      text(ascii_head("element vertex 3\n" + kXyz + "element face 1\nproperty list uchar int vertex_indices\n") +
           "\n+1 -2e0\t3.5e-1   99 98 \n 1e-400 0 0\n\n0 0 .5 # words\n3 0\n1\n2"));
  CHECK(m.positions == std::vector<float>{1, -2, 0.35f, 0, 0, 0, 0, 0, 0.5f});
  CHECK(m.indices == std::vector<uint32_t>{0, 1, 2});
}

TEST_CASE("mesh ply: cut after any byte, a binary file is an error that says so") {
  for (const auto& [name, whole] : test::ply_seeds()) {
    if (name.find("ascii") != std::string::npos) continue;
    REQUIRE(read(whole).mesh);
    for (size_t n = 0; n < whole.size(); ++n) {
      const Read r = read(Bytes(whole.begin(), whole.begin() + ptrdiff_t(n)));
      if (r.mesh || r.mesh.error().message.rfind("byte ", 0) != 0)
        FAIL(name << " cut after byte " << n << ": " << (r.mesh ? "read" : r.mesh.error().message));
    }
  }
}

TEST_CASE("mesh ply: thousands of seeded mutations end in a whole mesh or a clean error") {
  std::mt19937 random(20261122);
  const auto seeds = test::ply_seeds();
  int good = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    Bytes b = seeds[random() % seeds.size()].second;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % b.size();
      if (random() % 3 == 0) b.erase(b.begin() + ptrdiff_t(at));
      else b[at] = random() % 2 ? uint8_t(random()) : uint8_t(b[at] ^ (1u << random() % 8));
    }
    const Read r = read(b);  // checks the mesh
    ++(r.mesh ? good : refused);
  }
  CHECK(good > 500);
  CHECK(refused > 500);
}

TEST_CASE("mesh ply: a file in pieces is the same mesh as the same bytes in memory") {
  const fs::path dir = test::scratch_dir("ply-pieces");
  // Longer than a piece, with a list across each border.
  std::vector<PlyBuilder::Row> vertices, faces;
  for (int i = 0; i < 60000; ++i) {
    const int row = i / 251;
    vertices.push_back({{double(i % 251)}, {double(row)}, {double(i % 7)}});
  }
  for (int i = 0; i + 9 < 60000; i += 3)
    faces.push_back({{double(i), double(i + 1), double(i + 2), double(i + 5), double(i + 9)}});
  for (const PlyForm form : kForms) {
    const Bytes bytes = PlyBuilder()
                            .element("face", {"list uchar int vertex_indices"}, faces)
                            .element("vertex", test::xyz_floats(), vertices)
                            .bytes(form);
    test::write_bytes(dir / "long.ply", bytes);
    const Mesh known = mesh_of(bytes);
    std::vector<std::string> warnings;
    mesh_reader::ReferencedFiles files(dir / "long.ply");
    const auto m = mesh_reader::read_ply(dir / "long.ply", false, warnings, files);
    REQUIRE(m);
    CHECK(m->positions == known.positions);
    CHECK(m->indices == known.indices);
  }
}

}  // namespace ply_test
