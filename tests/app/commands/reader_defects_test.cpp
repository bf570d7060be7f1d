// SPDX-License-Identifier: Apache-2.0
// reader_defects_test.cpp - files from other programs that were refused, misread or killed the reader up to version
// 0.1.1: PLY, COLLADA, .vox, .qb; and "--".
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/foreign/ply_builder.hpp"
#include "tests/voxel/io/grids/qb_seeds.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"

namespace reader_defects_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

Outcome convert(const fs::path& in, const fs::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"convert", in.string(), "-o", out.string(), "--overwrite"};
  words.insert(words.end(), more.begin(), more.end());
  return run_quarry(words);
}

// The number of voxels of a mesh at 16 along its longest edge.
json voxels_of_mesh(const fs::path& in) {
  const fs::path out = in.parent_path() / "out.quarry";
  const Outcome done = convert(in, out, {"--resolution", "16"});
  INFO(in << ": " << done.err);
  REQUIRE(done.code == 0);
  return info(out)["flat_visible"];
}

PlyBuilder box(bool strips = false) {
  PlyBuilder file;
  file.element("vertex", xyz_floats(), box_vertices());
  if (!strips) return file.element("face", {"list uchar int vertex_indices"}, ply_box_triangles());
  std::vector<double> strip;
  for (const auto& q : box_quads()) strip.insert(strip.end(), {q[0], q[1], q[3], q[2], -1});
  return file.element("tristrips", {"list int int vertex_indices"}, {{strip}});
}

// Sets the body's first byte to `first`, which hardly changes the first number.
std::vector<uint8_t> beginning_with(std::vector<uint8_t> bytes, uint8_t first, const std::string& line_end = "\n") {
  const std::string mark = "end_header" + line_end;
  *(std::search(bytes.begin(), bytes.end(), mark.begin(), mark.end()) + ptrdiff_t(mark.size())) = first;
  return bytes;
}

}  // namespace

// Strips used to be read as one degenerate plane: 88 voxels.
TEST_CASE("quarry convert: a PLY of triangle strips is the mesh that its faces would be, text or binary") {
  const fs::path dir = scratch_dir("defects-strips");
  for (const PlyForm form : {PlyForm::ascii, PlyForm::little, PlyForm::big}) {
    write_bytes(dir / "faces.ply", box().bytes(form));
    write_bytes(dir / "strips.ply", box(true).bytes(form));
    CHECK(voxels_of_mesh(dir / "faces.ply") == 426);
    CHECK(voxels_of_mesh(dir / "strips.ply") == 426);
  }
}

// 0x0A after the header's end used to kill the reader by SIGSEGV or SIGABRT.
TEST_CASE("quarry convert: a binary PLY whose data begins with any blank or line end is read") {
  const fs::path dir = scratch_dir("defects-first-byte");
  for (const std::string line_end : {"\n", "\r\n"})
    for (const int first : {0x00, 0x09, 0x0a, 0x0d, 0x20}) {
      INFO(first);
      write_bytes(dir / "little.ply", beginning_with(box().bytes(PlyForm::little, line_end), uint8_t(first), line_end));
      CHECK(voxels_of_mesh(dir / "little.ply") == (first == 0 ? 426 : 388));
    }
  // The same number as text.
  std::vector<PlyBuilder::Row> vertices = box_vertices();
  vertices[0][0] = {-1.0000012};
  write_bytes(dir / "text.ply", PlyBuilder()
                                    .element("vertex", xyz_floats(), vertices)
                                    .element("face", {"list uchar int vertex_indices"}, ply_box_triangles())
                                    .bytes(PlyForm::ascii));
  CHECK(voxels_of_mesh(dir / "text.ply") == 388);
  // Big-endian: a number near zero instead of -1, starting with 0x0A and with 0x00.
  std::vector<uint8_t> big = box().bytes(PlyForm::big);
  const std::string mark = "end_header\n";
  const auto at = std::search(big.begin(), big.end(), mark.begin(), mark.end()) + ptrdiff_t(mark.size());
  for (const int first : {0x0a, 0x00}) {
    at[0] = uint8_t(first), at[1] = at[2] = 0x80, at[3] = 0;
    write_bytes(dir / "big.ply", big);
    CHECK(voxels_of_mesh(dir / "big.ply") == 426);
  }
}

TEST_CASE(
    "quarry convert: a PLY with its faces before its vertices, or with lines that end in a return alone, is read") {
  const fs::path dir = scratch_dir("defects-order");
  for (const PlyForm form : {PlyForm::ascii, PlyForm::little, PlyForm::big}) {
    write_bytes(dir / "first.ply", PlyBuilder()
                                       .element("face", {"list uchar int vertex_indices"}, ply_box_triangles())
                                       .element("vertex", xyz_floats(), box_vertices())
                                       .bytes(form));
    CHECK(voxels_of_mesh(dir / "first.ply") == 426);
    write_bytes(dir / "returns.ply", box().bytes(form, "\r"));
    CHECK(voxels_of_mesh(dir / "returns.ply") == 426);
  }
}

TEST_CASE("quarry convert: a face's colours reach the voxels") {
  const fs::path dir = scratch_dir("defects-face-colours");
  std::vector<PlyBuilder::Row> faces = ply_box_triangles();
  for (size_t i = 0; i < faces.size(); ++i)
    faces[i].insert(faces[i].end(), {{i < 2 ? 255.0 : 0.0}, {0}, {i < 2 ? 0.0 : 255.0}});
  write_bytes(dir / "c.ply",
              PlyBuilder()
                  .element("vertex", xyz_floats(), box_vertices())
                  .element("face", {"list uchar int vertex_indices", "uchar red", "uchar green", "uchar blue"}, faces)
                  .bytes(PlyForm::little));
  CHECK(voxels_of_mesh(dir / "c.ply") == 426);
  CHECK(info(dir / "out.quarry")["colors_used"].get<int>() >= 2);
}

TEST_CASE("quarry convert: a damaged PLY mesh is one error that names the byte") {
  const fs::path dir = scratch_dir("defects-damaged");
  std::vector<uint8_t> cut = box().bytes(PlyForm::little);
  cut.resize(cut.size() - 5);
  write_bytes(dir / "cut.ply", cut);
  const Outcome outcome = convert(dir / "cut.ply", dir / "out.quarry");
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, (dir / "cut.ply").string() + ": byte "));
  CHECK(has(outcome.err, "cut.ply"));
  CHECK_FALSE(fs::exists(dir / "out.quarry"));
}

// With a count of 4000 over 24 numbers, the reader used to read on behind them: other voxels in each run.
TEST_CASE(
    "quarry convert: a COLLADA file whose numbers do not fit its arrays is an error that names element and number") {
  const fs::path dir = scratch_dir("defects-dae");
  const auto dae = [&](const std::string& accessor, const std::string& last) {
    std::ofstream(dir / "a.dae")
        << "<?xml version=\"1.0\"?><COLLADA "
           "xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" version=\"1.4.1\"><library_geometries><geometry "
           "id=\"g\"><mesh><source id=\"s\">"
           "<float_array id=\"a\" count=\"12\">0 0 0 1 0 0 0 1 0 0 0 "
           "1</float_array><technique_common><accessor source=\"#a\" " +
               accessor +
               "><param name=\"X\" type=\"float\"/><param name=\"Y\" type=\"float\"/><param "
               "name=\"Z\" type=\"float\"/></accessor></technique_common></source>"
               "<vertices id=\"v\"><input semantic=\"POSITION\" "
               "source=\"#s\"/></vertices><triangles count=\"4\"><input semantic=\"VERTEX\" "
               "source=\"#v\" offset=\"0\"/><p>0 1 2 0 2 3 0 3 1 1 3 " +
               last +

               "</p></triangles></mesh></geometry></library_geometries><library_visual_scenes><visual_scene "
               "id=\"vs\"><node><instance_geometry "
               "url=\"#g\"/></node></visual_scene></library_visual_scenes>"
               "<scene><instance_visual_scene url=\"#vs\"/></scene></COLLADA>";
    return convert(dir / "a.dae", dir / "a.quarry", {"--resolution", "16"});
  };
  const Outcome good = dae("count=\"4\" stride=\"3\"", "2");
  INFO(good.err);
  CHECK(good.code == 0);
  fs::remove(dir / "a.quarry");
  for (const auto& [accessor, last, message] :
       {std::tuple<std::string, std::string, std::string>{"count=\"4000\" stride=\"3\"", "19",
                                                          "<accessor> of 's': it needs 12000 numbers"},
        {"count=\"4\" stride=\"3\"", "-3", "found '-3'"},
        {"count=\"4\" stride=\"1000\"", "2", "it needs 3003 numbers"},
        {"count=\"4\" stride=\"2\"", "2", "its stride is 2"},
        {"count=\"4\" stride=\"3\"", "500", "index 11 is 500"}}) {
    const Outcome bad = dae(accessor, last);
    CHECK(bad.code == 1);
    CHECK(has(bad.err, (dir / "a.dae").string() + ": byte "));
    CHECK(has(bad.err, message));
    CHECK_FALSE(fs::exists(dir / "a.quarry"));
  }
}

TEST_CASE("quarry convert: COLLADA that another program exported is read as what it was exported from") {
  if (std::system("command -v assimp >/dev/null") != 0) return skip("no assimp (assimp-utils)");
  const fs::path dir = scratch_dir("defects-exported");
  std::ofstream obj(dir / "box.obj");
  for (const auto& v : box_vertices()) obj << "v " << v[0][0] << " " << v[1][0] << " " << v[2][0] << "\n";
  for (const auto& t : ply_box_triangles())
    obj << "f " << t[0][0] + 1 << " " << t[0][1] + 1 << " " << t[0][2] + 1 << "\n";
  obj.close();
  REQUIRE(std::system(("assimp export '" + (dir / "box.obj").string() + "' '" + (dir / "box.dae").string() +
                       "' >/dev/null 2>&1")
                          .c_str()) == 0);
  CHECK(voxels_of_mesh(dir / "box.dae") == 426);
}

// 6 of 34 real .qb files were refused because of their version number.
TEST_CASE("quarry convert: a .qb of another version is read, with a warning where nobody knows that version") {
  const fs::path dir = scratch_dir("defects-qb");
  std::vector<uint8_t> bytes =
      QbBuilder().matrix("body", {2, 2, 2}, {0, 0, 0}, std::vector<uint32_t>(8, 0xff0000ff)).bytes();
  for (const auto& [version, known] :
       {std::pair<std::array<uint8_t, 4>, bool>{{3, 1, 2, 0}, true}, {{1, 0, 0, 0}, false}, {{2, 0, 0, 0}, false}}) {
    std::copy(version.begin(), version.end(), bytes.begin());
    write_bytes(dir / "a.qb", bytes);
    const Outcome outcome = convert(dir / "a.qb", dir / "a.quarry");
    CHECK(outcome.code == 0);
    CHECK(info(dir / "a.quarry")["flat_visible"] == 8);
    CHECK(has(outcome.err, "is not known") == !known);
  }
}

// Such a file looked empty, and could not become a mesh.
TEST_CASE(
    "quarry convert: of a .vox of several models without a scene graph the first is seen, and the others are kept") {
  const fs::path dir = scratch_dir("defects-pack");
  const auto voxels = [](int n) {
    std::vector<VoxBuilder::Voxel> list;
    for (int i = 0; i < n; ++i) list.push_back({uint8_t(i), 0, 0, uint8_t(70 + n)});
    return list;
  };
  for (const bool packed : {true, false}) {
    VoxBuilder file(150);
    if (packed) file.chunk("PACK", {3, 0, 0, 0});
    write_bytes(dir / "three.vox",
                file.model(8, 8, 8, voxels(5)).model(8, 8, 8, voxels(6)).model(8, 8, 8, voxels(7)).bytes());
    write_bytes(dir / "one.vox", VoxBuilder(150).model(8, 8, 8, voxels(5)).bytes());
    const Outcome outcome = convert(dir / "three.vox", dir / "three.quarry");
    REQUIRE(outcome.code == 0);
    CHECK(has(outcome.err, "3 models and no scene graph"));
    REQUIRE(convert(dir / "one.vox", dir / "one.quarry").code == 0);
    const json three = info(dir / "three.quarry"), one = info(dir / "one.quarry");
    CHECK(three["flat_visible"] == 5);
    CHECK(three["models"] == 3);
    CHECK(three["pos_sum"] == one["pos_sum"]);
    CHECK(convert(dir / "three.vox", dir / "three.glb").code == 0);
    CHECK(fs::file_size(dir / "three.glb") > 100);
    // Converted back, the models are still frames.
    REQUIRE(convert(dir / "three.quarry", dir / "back.vox").code == 0);
    CHECK(has(file_text(dir / "back.vox"), "PACK"));
    CHECK_FALSE(has(file_text(dir / "back.vox"), "nTRN"));
    REQUIRE(convert(dir / "back.vox", dir / "back.quarry").code == 0);
    CHECK(info(dir / "back.quarry")["pos_sum"] == one["pos_sum"]);
    CHECK(info(dir / "back.quarry")["models"] == 3);
  }
}

// Every command used to say: there is no option '--'.
TEST_CASE("quarry: -- ends the options of every command, so that a name may begin with a dash") {
  const fs::path dir = scratch_dir("defects-dash");
  write_bytes(dir / "-dash.vox", VoxBuilder(150).model(2, 2, 2, {{0, 0, 0, 1}}).bytes());
  const fs::path before = fs::current_path();
  fs::current_path(dir);
  const std::vector<std::vector<std::string>> lines{{"convert", "-o", "d.quarry", "--", "-dash.vox"},
                                                    {"convert", "-o", "-out.quarry", "--", "-dash.vox"},
                                                    {"info", "--", "-dash.vox"},
                                                    {"info", "--json", "--", "-dash.vox"},
                                                    {"validate", "--", "-dash.vox"},
                                                    {"diff", "--", "-dash.vox", "d.quarry"},
                                                    {"generate", "-o", "g.quarry", "--size", "32", "--", "spheres"},
                                                    {"doctor", "--"},
                                                    {"bench", "--list", "--"},
                                                    {"completion", "--", "bash"}};
  for (const auto& words : lines) {
    const Outcome outcome = run_quarry(words);
    INFO(words[0] << ": " << outcome.err);
    CHECK(outcome.code == 0);
  }
  CHECK(fs::exists(dir / "d.quarry"));
  CHECK(fs::exists(dir / "-out.quarry"));
  // After it nothing is an option, and too many names are still an error.
  const Outcome missing = run_quarry({"convert", "--", "-dash.vox", "-o", "x.quarry"}),
                many = run_quarry({"info", "--", "-dash.vox", "--json"}),
                render = run_quarry({"render", "--", "-no such.vox"});
  CHECK(missing.code != 0);
  CHECK_FALSE(fs::exists(dir / "x.quarry"));
  CHECK(many.code == 2);
  CHECK(has(many.err, "unexpected argument '--json'"));
  CHECK(render.code != 0);
  CHECK_FALSE(has(render.err, "no option"));
  // Without it, a name with a dash is an unknown option.
  CHECK(run_quarry({"info", "-dash.vox"}).code == 2);
  fs::current_path(before);
}

}  // namespace reader_defects_test
