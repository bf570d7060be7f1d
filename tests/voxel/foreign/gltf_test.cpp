// SPDX-License-Identifier: Apache-2.0
// gltf_test.cpp - glTF files through quarry-mesh-reader: whatever way the numbers of one shape are written, its voxels
// are the same.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/foreign/gltf_seeds.hpp"
#include "tests/voxel/scene_cells.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/io/formats.hpp"

namespace gltf_test {

using namespace quarry;
using test::Gltf, test::gltf_box, test::gltf_square, test::box_corners, test::box_triangles, test::each, test::GltfJson;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kBoxVoxels = 426;  // of the box 2 x 1 x 0.5 at 16 voxels

class Files {
 public:
  explicit Files(const std::string& name) : dir_(test::scratch_dir("gltf-" + name)) {}
  fs::path glb(Gltf g) { return put("g" + std::to_string(++count_) + ".glb", g.glb()); }
  fs::path put(const std::string& name, const std::vector<uint8_t>& bytes) {
    return test::write_bytes(dir_ / name, bytes);
  }
  fs::path put(const std::string& name, const std::string& text) {
    return put(name, std::vector<uint8_t>(text.begin(), text.end()));
  }
  const fs::path& dir() const { return dir_; }

 private:
  fs::path dir_;
  int count_ = 0;
};

struct Read {
  std::optional<Mesh> mesh;
  std::string message;
  std::vector<std::string> warnings;
};
Read read(const fs::path& file) {
  Read out;
  io::ReadOptions options;
  options.warnings = &out.warnings;
  auto mesh = read_mesh(file, options);
  if (mesh) out.mesh = std::move(*mesh);
  else out.message = mesh.error().message;
  return out;
}

// What a person gets: voxels and their colours.
SceneFacts facts(const fs::path& file, int resolution = 16) {
  io::ReadOptions options;
  options.resolution = resolution;
  const auto scene = io::read_scene(file, options);
  INFO(file << ": " << (scene ? "" : scene.error().message));
  REQUIRE(scene);
  const auto found = scene_facts(*scene, Axes::y_up);
  REQUIRE(found);
  return *found;
}
void check_box(const fs::path& file) {
  const SceneFacts f = facts(file);
  INFO(file);
  CHECK(f.flat_all == kBoxVoxels);
  CHECK(f.bounds.min == Int3{-8, 0, -2});
  CHECK(f.bounds.max == Int3{7, 8, 2});
}
void check_equal(const fs::path& file, const fs::path& plain, int resolution = 16) {
  const SceneFacts a = facts(file, resolution), b = facts(plain, resolution);
  INFO(file << " and " << plain);
  CHECK(a.flat_all == b.flat_all);
  CHECK(a.pos_sum == b.pos_sum);
  CHECK(a.col_sum == b.col_sum);
}
void check_refused(const fs::path& file, const std::string& words) {
  const Read r = read(file);
  INFO(r.message);
  REQUIRE_FALSE(r.mesh);
  CHECK(r.message.rfind(file.string() + ": ", 0) == 0);
  CHECK(r.message.find(words) != std::string::npos);
}

// The colour, as 0xrrggbb, of the voxel at x, y of the layer z = 0, which a square fills.
uint32_t color_at(const fs::path& file, int x, int y) {
  io::ReadOptions options;
  options.resolution = 16;
  const auto scene = io::read_scene(file, options);
  REQUIRE(scene);
  const test::Cells cells = test::flat(*scene);
  for (int z = -1; z <= 1; ++z)
    if (const auto cell = cells.find({x, y, z}); cell != cells.end()) {
      const Material& m = scene->palette.materials[cell->second];
      return uint32_t(m.r) << 16 | uint32_t(m.g) << 8 | m.b;
    }
  return 0xffffffff;
}

}  // namespace

TEST_CASE("gltf: quantised positions, normalised or not, are the box that they stand for") {
  Files files("quantised");
  check_box(files.glb(gltf_box()));
  check_box(files.glb(gltf_box(each(box_corners(), 32767), 'h', true)));
  check_box(files.glb(gltf_box(each(box_corners(), 127), 'b', true)));
  Gltf scaled = gltf_box(each(box_corners(), 1000), 'h');
  scaled.json["nodes"][0]["scale"] = {.001, .001, .001};
  check_box(files.glb(scaled));
  Gltf moved = gltf_box(each(box_corners(), 1000, 1000), 'H');
  moved.json["nodes"][0]["scale"] = {.001, .001, .001};
  moved.json["nodes"][0]["translation"] = {-1, -1, -1};
  check_box(files.glb(moved));
  Gltf bytes = gltf_box(each(box_corners(), 4, 4), 'B');
  bytes.json["nodes"][0]["scale"] = {.25, .25, .25};
  check_box(files.glb(bytes));
  // max(c / 127, -1): the lowest number is -1 too.
  Gltf lowest = gltf_box(each(box_corners(), 127), 'b', true);
  for (size_t i = 0; i < lowest.bytes.size(); i += 4)
    if (i < 32 && lowest.bytes[i] == uint8_t(-127)) lowest.bytes[i] = uint8_t(-128);
  check_equal(files.glb(lowest), files.glb(gltf_box(each(box_corners(), 127), 'b', true)));
}

TEST_CASE("gltf: strides, sparse changes, missing and short indices, strips and fans make no difference") {
  Files files("layouts");
  check_box(files.glb(gltf_box(box_corners(), 'f', false, 20)));
  for (const char type : {'B', 'H', 'I'}) {
    Gltf g;
    g.primitive({{"POSITION", g.accessor(box_corners(), 'f')}}, box_triangles(), type);
    check_box(files.glb(g));
  }
  Gltf plain;
  Gltf::Rows rows;
  for (const uint32_t i : box_triangles()) rows.push_back(box_corners()[i]);
  plain.primitive({{"POSITION", plain.accessor(rows, 'f')}}, {0}).erase("indices");
  check_box(files.glb(plain));
  // Two attributes in one buffer view.
  Gltf mixed;
  test::GltfBytes both;
  for (const auto& corner : box_corners()) {
    for (const double value : corner) test::put_number(both, float(value));
    for (const int value : {255, 0, 0, 255}) both.push_back(uint8_t(value));
  }
  const size_t at = mixed.view(both, 16);
  mixed.json["accessors"] =
      GltfJson::array({{{"bufferView", at}, {"componentType", 5126}, {"count", 8}, {"type", "VEC3"}},
                       {{"bufferView", at},
                        {"byteOffset", 12},
                        {"componentType", 5121},
                        {"normalized", true},
                        {"count", 8},
                        {"type", "VEC4"}}});
  mixed.primitive({{"POSITION", 0}, {"COLOR_0", 1}}, box_triangles());
  check_box(files.glb(mixed));

  // One corner is put right by a sparse accessor; then all of them, over nothing.
  Gltf::Rows wrong = box_corners();
  wrong[7] = {9, 9, 9};
  Gltf sparse = gltf_box(wrong);
  const auto replace = [](Gltf& g, const std::vector<uint32_t>& which, char type, const Gltf::Rows& values) {
    const auto add = [&](size_t accessor) {
      GltfJson view = g.json["accessors"][accessor]["bufferView"];
      return view;
    };
    const GltfJson indices = add(g.column(which, type)), numbers = add(g.accessor(values, 'f'));
    g.json["accessors"][0]["sparse"] = {{"count", which.size()},
                                        {"indices", {{"bufferView", indices}, {"componentType", Gltf::code_of(type)}}},
                                        {"values", {{"bufferView", numbers}}}};
  };
  replace(sparse, {7}, 'H', {box_corners()[7]});
  check_box(files.glb(sparse));
  Gltf nothing = gltf_box(wrong);
  nothing.json["accessors"][0].erase("bufferView");
  replace(nothing, {0, 1, 2, 3, 4, 5, 6, 7}, 'B', box_corners());
  check_box(files.glb(nothing));

  // Each side of the box as a strip, and as a fan.
  const uint32_t sides[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
  for (const int mode : {5, 6}) {
    Gltf g;
    const size_t position = g.accessor(box_corners(), 'f');
    GltfJson primitives = GltfJson::array();
    for (const auto& s : sides) {
      const std::vector<uint32_t> strip{s[0], s[1], s[3], s[2]}, fan{s[0], s[1], s[2], s[3]};
      primitives.push_back(
          {{"attributes", {{"POSITION", position}}}, {"mode", mode}, {"indices", g.column(mode == 5 ? strip : fan)}});
    }
    // Lines are passed over, and that is said.
    primitives.push_back({{"attributes", {{"POSITION", position}}}, {"mode", 1}});
    g.json["meshes"] = GltfJson::array({{{"primitives", primitives}}});
    const fs::path file = files.glb(g);
    check_box(file);
    const Read r = read(file);
    REQUIRE(r.warnings.size() == 1);
    CHECK(r.warnings[0].find("1 primitives of points or lines are left out") != std::string::npos);
  }
}

TEST_CASE("gltf: the triangles of strips and fans keep their outside") {
  Files files("winding");
  Gltf g;
  const size_t position = g.accessor({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 2, 0}}, 'f');
  GltfJson primitives = GltfJson::array();
  primitives.push_back({{"attributes", {{"POSITION", position}}}, {"mode", 5}});
  primitives.push_back({{"attributes", {{"POSITION", position}}}, {"mode", 6}, {"indices", g.column({0, 1, 3, 2})}});
  g.json["meshes"] = GltfJson::array({{{"primitives", primitives}}});
  const Read r = read(files.glb(g));
  REQUIRE(r.mesh);
  CHECK(r.mesh->triangle_count() == 5);
  for (size_t t = 0; t < r.mesh->triangle_count(); ++t) {
    const auto corner = [&](size_t k, size_t c) { return r.mesh->positions[r.mesh->indices[t * 3 + k] * 3 + c]; };
    CHECK((corner(1, 0) - corner(0, 0)) * (corner(2, 1) - corner(0, 1)) -
              (corner(2, 0) - corner(0, 0)) * (corner(1, 1) - corner(0, 1)) >
          0);
  }
}

TEST_CASE("gltf: vertex colours of three components are opaque, whatever their numbers") {
  Files files("colours");
  std::set<uint64_t> sums;
  for (const size_t columns : {size_t(3), size_t(4)})
    for (const auto& [type, full] : {std::pair{'f', 1.}, std::pair{'B', 255.}, std::pair{'H', 65535.}}) {
      Gltf g;
      std::vector<double> red{full, 0, 0, full};
      red.resize(columns);
      const size_t position = g.accessor(box_corners(), 'f');
      g.primitive({{"POSITION", position}, {"COLOR_0", g.accessor(Gltf::Rows(8, red), type, type != 'f')}},
                  box_triangles());
      const fs::path file = files.glb(g);
      const Read r = read(file);
      REQUIRE(r.mesh);
      REQUIRE(r.mesh->colors.size() == 32);
      for (size_t i = 0; i < 32; ++i) CHECK(r.mesh->colors[i] == (i % 4 == 0 || i % 4 == 3 ? 255 : 0));
      check_box(file);
      sums.insert(facts(file).col_sum);
    }
  CHECK(sums.size() == 1);
}

TEST_CASE("gltf: normalised texture coordinates are those of the same file in floats") {
  Files files("uvs");
  const fs::path plain = files.glb(gltf_square());
  CHECK(facts(plain).colors_used > 50);
  check_equal(files.glb(gltf_square('B', 255)), plain);
  check_equal(files.glb(gltf_square('H', 65535)), plain);
  // As gltfpack writes them: half the range, and the other half in the texture's transform.
  Gltf half = gltf_square('H', 32767.5);
  half.json["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"]["extensions"]["KHR_texture_transform"]
           ["scale"] = {2, 2};
  CHECK(color_at(files.glb(half), -8, 15) == 0xff0000);
  CHECK(color_at(files.glb(half), 7, 0) == 0xffff00);
}

TEST_CASE("gltf: a texture's transform is about the origin: scaled, turned, then moved") {
  Files files("transform");
  const auto with = [&](const GltfJson& transform, const GltfJson& more = GltfJson::object()) {
    Gltf g = gltf_square();
    g.json["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"]["extensions"]["KHR_texture_transform"] =
        transform;
    for (const auto& [key, value] : more.items())
      g.json["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"][key] = value;
    return files.glb(g);
  };
  // u and v in 0 to 0.5: the picture's upper left quarter, so red in the upper left and half of the four colours in the
  // lower right.
  const fs::path halved = with({{"scale", {.5, .5}}});
  CHECK(color_at(halved, -8, 15) == 0xff0000);
  CHECK(color_at(halved, -8 + 7, 15) == 0xff0000);
  CHECK(color_at(halved, -8, 15 - 7) == 0xff0000);
  CHECK(color_at(halved, 7, 15) != 0xff0000);
  // Nearly one point, which is red.
  const fs::path point = with({{"offset", {.1, .1}}, {"scale", {.01, .01}}});
  CHECK(facts(point).colors_used == 1);
  CHECK(color_at(point, 0, 8) == 0xff0000);
  // Moved by half of the picture: yellow.
  CHECK(color_at(with({{"offset", {.5, .5}}, {"scale", {.5, .5}}}), 7, 0) == 0xffff00);
  // A quarter turn counter-clockwise where v goes down: (u, v) -> (v, -u), so with v moved by 1 the upper left corner
  // reads what was in the lower left.
  const fs::path turned = with({{"rotation", std::acos(-1.0) / 2}, {"offset", {0, 1}}});
  CHECK(color_at(turned, -8, 15) == 0x0000ff);
  CHECK(color_at(turned, 7, 15) == 0xff0000);
  CHECK(color_at(turned, -8, 0) == 0xffff00);
  // The transform's own choice of coordinates wins.
  Gltf g = gltf_square('f', 1, {{.1, .1}, {.1, .1}, {.1, .1}, {.1, .1}});
  auto& attributes = g.json["meshes"][0]["primitives"][0]["attributes"];
  attributes["TEXCOORD_1"] = g.accessor({{.9, .9}, {.9, .9}, {.9, .9}, {.9, .9}}, 'f');
  auto& base = g.json["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"];
  CHECK(color_at(files.glb(g), 0, 8) == 0xff0000);
  base["texCoord"] = 1;
  CHECK(color_at(files.glb(g), 0, 8) == 0xffff00);
  base["extensions"]["KHR_texture_transform"]["texCoord"] = 0;
  CHECK(color_at(files.glb(g), 0, 8) == 0xff0000);
}

TEST_CASE("gltf: each texture of a material has its own coordinates, transform and edges") {
  Files files("places");
  Gltf g = gltf_square();
  auto& attributes = g.json["meshes"][0]["primitives"][0]["attributes"];
  // The middle of the green texel.
  attributes["TEXCOORD_1"] = g.accessor({{.75, .25}, {.75, .25}, {.75, .25}, {.75, .25}}, 'f');
  auto& m = g.json["materials"][0];
  m["emissiveFactor"] = {1, 1, 1};
  m["emissiveTexture"] = {{"index", 1}, {"texCoord", 1}};
  m["pbrMetallicRoughness"]["metallicRoughnessTexture"] = {
      {"index", 1}, {"extensions", {{"KHR_texture_transform", {{"scale", {0, 0}}, {"offset", {.25, .75}}}}}}};
  m["pbrMetallicRoughness"]["metallicFactor"] = 1;
  g.json["textures"].push_back({{"source", 0}});
  const fs::path file = files.glb(g);
  const Read r = read(file);
  REQUIRE(r.mesh);
  CHECK(r.warnings.empty());
  CHECK(r.mesh->uv_sets() == 2);
  CHECK(r.mesh->images.size() == 2);  // as colours, and as plain numbers
  const MeshMaterial& material = r.mesh->materials[r.mesh->triangle_material[0]];
  CHECK(material.base_color_place.wrap_u == Wrap::clamp);
  CHECK(material.emission_place.wrap_u == Wrap::repeat);
  CHECK(material.emission_place.uv_set == 1);
  CHECK(material.metal_rough_place.uv_set == 0);
  // Green glow everywhere, and blue in the other picture's lower left: all metal, no roughness.
  io::ReadOptions options;
  options.resolution = 16;
  const auto scene = io::read_scene(file, options);
  REQUIRE(scene);
  std::set<uint8_t> used;
  for (const auto& [at, material_of] : test::flat(*scene)) used.insert(material_of);
  REQUIRE_FALSE(used.empty());
  for (const uint8_t id : used) {
    CHECK(scene->palette.materials[id].metalness == Approx(1));
    CHECK(scene->palette.materials[id].roughness == Approx(0));
    CHECK(scene->palette.materials[id].emission > 0);
  }
}

TEST_CASE("gltf: EXT_mesh_gpu_instancing places as many as nodes would") {
  Files files("instances");
  Gltf plain = gltf_box(), packed = gltf_box();
  plain.json["nodes"] = GltfJson::array();
  for (int i = 0; i < 4; ++i) plain.json["nodes"].push_back({{"mesh", 0}, {"translation", {0, 0, 4 * i}}});
  plain.json["scenes"][0]["nodes"] = {0, 1, 2, 3};
  packed.require("EXT_mesh_gpu_instancing");
  auto& attributes = packed.json["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"];
  attributes["TRANSLATION"] = packed.accessor({{0, 0, 0}, {0, 0, 4}, {0, 0, 8}, {0, 0, 12}}, 'f');
  check_equal(files.glb(packed), files.glb(plain), 64);
  CHECK(facts(files.glb(packed), 64).flat_all == 708);
  // Turned (in normalised bytes) and scaled too, under a node that is moved.
  for (int i = 0; i < 4; ++i) {
    plain.json["nodes"][size_t(i)]["rotation"] = i % 2 ? GltfJson{0, 0, 1, 0} : GltfJson{1, 0, 0, 0};
    plain.json["nodes"][size_t(i)]["scale"] = {1, 1 + i, 1};
    plain.json["nodes"][size_t(i)]["translation"] = {1, 0, 4 * i};
  }
  attributes["ROTATION"] = packed.accessor({{127, 0, 0, 0}, {0, 0, 127, 0}, {127, 0, 0, 0}, {0, 0, 127, 0}}, 'b', true);
  attributes["SCALE"] = packed.accessor({{1, 1, 1}, {1, 2, 1}, {1, 3, 1}, {1, 4, 1}}, 'f');
  packed.json["nodes"][0]["translation"] = {1, 0, 0};
  check_equal(files.glb(packed), files.glb(plain), 64);
  attributes["SCALE"] = packed.accessor({{1, 1, 1}}, 'f');
  check_refused(files.glb(packed), "nodes[0].extensions.EXT_mesh_gpu_instancing.attributes: 4 and 1 instances");
}

TEST_CASE("gltf: names of files are percent-decoded, and names that are not encoded are found too") {
  Files files("names");
  Gltf g = gltf_square();
  g.json["images"] = GltfJson::array({{{"uri", "my%20pic.png"}}});
  files.put("my pic.png", test::small_png());
  files.put("my data.bin", g.bytes);
  files.put("d\xC3\xA4ta.bin", g.bytes);
  files.put("100%25.bin", g.bytes);
  const fs::path inside = files.glb(gltf_square());
  check_equal(files.put("blank.gltf", g.text("my%20data.bin")), inside);
  check_equal(files.put("utf8.gltf", g.text("d%C3%A4ta.bin")), inside);
  check_equal(files.put("raw.gltf", g.text("my data.bin")), inside);
  check_equal(files.put("percent.gltf", g.text("100%25.bin")), inside);
  check_equal(files.put("base64.gltf",
                        [&] {
                          auto all = g;
                          all.json["images"][0]["uri"] = Gltf::data_uri("image/png", test::small_png());
                          return all.text();
                        }()),
              inside);
  std::vector<std::string> accessed;
  {
    io::ReadOptions options;
    std::vector<fs::path> accessed_files;
    options.accessed_files = &accessed_files;
    REQUIRE(read_mesh(files.dir() / "blank.gltf", options));
    for (const fs::path& p : accessed_files) accessed.push_back(p.filename().string());
  }
  CHECK(accessed == std::vector<std::string>{"my pic.png", "my data.bin"});
  check_refused(files.put("none.gltf", g.text("not%20there.bin")),
                "buffers[0].uri \"not%20there.bin\": there is no such file beside the mesh");
  files.put("short.bin", test::GltfBytes(10));
  check_refused(files.put("short.gltf", g.text("short.bin")),
                "buffers[0].byteLength " + std::to_string(g.bytes.size()) + ": short.bin holds 10 bytes");
}

TEST_CASE(
    "gltf: an extension that is required and not known is refused by its name, one that changes nothing here is not") {
  Files files("required");
  const auto with = [&](const std::string& name) {
    Gltf g = gltf_box();
    g.require(name);
    return files.glb(g);
  };
  check_refused(with("XYZ_nobody_knows"), "it requires the extension XYZ_nobody_knows");
  check_refused(with("KHR_texture_basisu"), "it requires the extension KHR_texture_basisu");
  for (const char* name :
       {"KHR_materials_clearcoat", "KHR_lights_punctual", "KHR_materials_variants", "KHR_materials_unlit"})
    check_box(with(name));
  Gltf used = gltf_box();
  used.json["extensionsUsed"] = {"XYZ_nobody_knows"};
  check_box(files.glb(used));
  Gltf next = gltf_box();
  next.json["asset"]["version"] = "3.0";
  check_refused(files.glb(next), "it is glTF 3.0");
  Gltf least = gltf_box();
  least.json["asset"]["minVersion"] = "2.7";
  check_refused(files.glb(least), "it needs a reader of glTF 2.7");
}

TEST_CASE("gltf: morph targets move the vertices by the weights of the mesh, or of the node") {
  Files files("morph");
  Gltf g = gltf_box();
  auto& mesh = g.json["meshes"][0];
  mesh["primitives"][0]["targets"] = GltfJson::array(
      {{{"POSITION", g.accessor(box_corners(), 'f')}}, {{"POSITION", g.accessor(Gltf::Rows(8, {0, 0, 7}), 'f')}}});
  const auto width = [&] {
    const Read r = read(files.glb(g));
    REQUIRE(r.mesh);
    float most = 0;
    for (const float value : r.mesh->positions) most = std::max(most, value);
    return most;
  };
  CHECK(width() == 1);
  mesh["weights"] = {.5, 0};
  CHECK(width() == 1.5);
  g.json["nodes"][0]["weights"] = {1, 1};
  CHECK(width() == 7.5);  // z: 0.25 + 0.25 + 7
}

TEST_CASE("gltf: the scene that the file names is read, else its first, else all that has no parent") {
  Files files("scene");
  Gltf g = gltf_box();
  g.json["nodes"] = GltfJson::parse(R"([{"translation":[5,0,0],"children":[1]},{"mesh":0},{"mesh":0}])");
  g.json["scenes"] = GltfJson::parse(R"([{"nodes":[0]},{"nodes":[0,2]}])");
  const auto triangles = [&] {
    const Read r = read(files.glb(g));
    REQUIRE(r.mesh);
    return r.mesh->triangle_count();
  };
  CHECK(triangles() == 12);
  g.json["scene"] = 1;
  CHECK(triangles() == 24);
  g.json.erase("scene");
  CHECK(triangles() == 12);
  g.json.erase("scenes");
  CHECK(triangles() == 24);
  g.json["nodes"][2]["extensions"]["KHR_node_visibility"]["visible"] = false;
  CHECK(triangles() == 12);
}

TEST_CASE("gltf: nodes that are no tree are refused by their places, and a deep tree is not") {
  Files files("tree");
  const auto with = [&](const char* nodes) {
    Gltf g = gltf_box();
    g.json["nodes"] = GltfJson::parse(nodes);
    return files.glb(g);
  };
  check_refused(with(R"([{"children":[1]},{"children":[0],"mesh":0}])"),
                "its nodes refer to themselves, so the scene has no end: nodes[1].children names nodes[0]");
  check_refused(with(R"([{"children":[0],"mesh":0}])"), "its nodes refer to themselves");
  check_refused(with(R"([{"children":[1,2]},{"children":[2]},{"mesh":0}])"),
                "nodes[2] is named twice, by nodes[1] and by nodes[0]");
  check_refused(with(R"([{"children":[9]}])"), "nodes[0].children 9: there is 1 node.");
  Gltf deep = gltf_box();
  deep.json["nodes"] = GltfJson::array();
  for (size_t i = 0; i + 1 < 100000; ++i) deep.json["nodes"].push_back({{"children", {i + 1}}});
  deep.json["nodes"].push_back({{"mesh", 0}});
  check_box(files.glb(deep));
}

TEST_CASE("gltf: a number out of place is named with its place") {
  Files files("places-named");
  const auto refused = [&](auto change, const std::string& words) {
    Gltf g = gltf_box();
    change(g.json);
    check_refused(files.glb(g), words);
  };
  refused([](GltfJson& j) { j["accessors"][0]["bufferView"] = 7; },
          "accessors[0].bufferView 7: there are 2 buffer views.");
  refused([](GltfJson& j) { j["nodes"][0]["mesh"] = 3; }, "nodes[0].mesh 3: there is 1 mesh.");
  refused([](GltfJson& j) { j["meshes"][0]["primitives"][0]["material"] = 0; },
          "meshes[0].primitives[0].material 0: there are no materials.");
  refused([](GltfJson& j) { j["accessors"][0]["count"] = 9; }, "accessors[0]: 9 elements of 12 bytes");
  refused([](GltfJson& j) { j["accessors"][0]["count"] = uint64_t(1) << 63; },
          "accessors[0]: 9223372036854775808 elements");
  refused([](GltfJson& j) { j["accessors"][0]["count"] = -1; }, "accessors[0].count is not a whole number");
  refused([](GltfJson& j) { j["accessors"][0]["byteOffset"] = uint64_t(0) - 4; }, "accessors[0]: 8 elements");
  refused([](GltfJson& j) { j["bufferViews"][0]["byteStride"] = 8; },
          "bufferViews[0].byteStride 8: an element of accessors[0] has 12 bytes.");
  refused([](GltfJson& j) { j["bufferViews"][0]["byteLength"] = uint64_t(0) - 1; },
          "bufferViews[0]: bytes 0 to 0 + 18446744073709551615 of a buffer of");
  refused([](GltfJson& j) { j["bufferViews"][0]["buffer"] = 1; }, "bufferViews[0].buffer 1: there is 1 buffer.");
  refused([](GltfJson& j) { j["accessors"][0]["componentType"] = 5124; }, "accessors[0].componentType 5124");
  refused([](GltfJson& j) { j["accessors"][0]["type"] = "MAT4"; }, "accessors[0].type \"MAT4\"");
  refused([](GltfJson& j) { j["accessors"][1]["componentType"] = 5122; },
          "meshes[0].primitives[0].indices needs single unsigned integers");
  refused([](GltfJson& j) { j["meshes"][0]["primitives"][0]["mode"] = 7; }, "meshes[0].primitives[0].mode 7");
  refused([](GltfJson& j) { j["accessors"][0].erase("bufferView"), j["accessors"][0]["count"] = 3000000000u; },
          "accessors[0].count 3000000000: it has no buffer view");
  refused([](GltfJson& j) { j.erase("asset"); }, "no asset.version");
  refused(
      [](GltfJson& j) {
        j["nodes"][0]["translation"] = {1, 2};
      },
      "nodes[0].translation is not an array of 3 numbers");
  refused([](GltfJson& j) { j["scene"] = 4; }, "scene 4: there is 1 scene.");
}

TEST_CASE("gltf: damaged containers and JSON say what is wrong, however deep it goes") {
  Files files("container");
  const auto whole = gltf_box().glb();
  for (size_t length = 4; length < whole.size(); ++length)
    if (length < 40 || length % 37 == 0) {
      const Read r = read(files.put("cut.glb", std::vector<uint8_t>(whole.begin(), whole.begin() + int64_t(length))));
      CHECK_FALSE(r.mesh);
      CHECK_FALSE(r.message.empty());
    }
  check_refused(files.put("cut.glb", std::vector<uint8_t>(whole.begin(), whole.end() - 4)), "it is cut short");
  check_refused(files.put("text.gltf", std::string("{\"asset\":{\"version\":\"2.0\"},")), "its JSON is broken");
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string deep = "{\"asset\":{\"version\":\"2.0\"},\"x\":";
    for (int i = 0; i < 1000000; ++i) deep += bracket;
    check_refused(files.put("deep.gltf", deep), "its JSON is nested deeper than 128 levels");
  }
  // A chunk of another kind, zeros as padding, and a name that does not tell what it is, are no harm.
  auto more = whole;
  const uint8_t chunk[12] = {4, 0, 0, 0, 'A', 'B', 'C', 'D', 1, 2, 3, 4};
  more.insert(more.end(), chunk, chunk + 12);
  const auto length = uint32_t(more.size());
  std::memcpy(more.data() + 8, &length, 4);
  check_box(files.put("more.glb", more));
  auto zeros = whole;
  for (size_t i = zeros.size(); i-- > 20;)
    if (zeros[i] == ' ') zeros[i] = 0;
  check_box(files.put("zeros.glb", zeros));
  check_box(files.put("glb-inside.gltf", whole));
  check_box(files.put("text-inside.glb", gltf_box().text()));
}

TEST_CASE("gltf: material factors, gloss and the strength of glow arrive") {
  Files files("materials");
  const auto material = [&](const char* text) {
    Gltf g = gltf_square();
    g.json["materials"][0] = GltfJson::parse(text);
    const Read r = read(files.glb(g));
    REQUIRE(r.mesh);
    return r.mesh->materials[r.mesh->triangle_material[0]];
  };
  const MeshMaterial usual = material("{}");
  CHECK(usual.roughness == 1);
  CHECK(usual.metalness == 1);
  const MeshMaterial factors = material(R"({"name":"m","pbrMetallicRoughness":{"baseColorFactor":[0.5,0.25,1,0.5],)"
                                        R"("metallicFactor":0.25,"roughnessFactor":0.75},"emissiveFactor":[1,0.5,0],
    "extensions":{"KHR_materials_emissive_strength":{"emissiveStrength":4}}})");
  CHECK(factors.name == "m");
  CHECK(std::vector<float>(factors.base_color, factors.base_color + 4) == std::vector<float>{.5f, .25f, 1, .5f});
  CHECK(std::vector<float>(factors.emission, factors.emission + 3) == std::vector<float>{4, 2, 0});
  CHECK(factors.roughness == .75f);
  CHECK(factors.metalness == .25f);
  const MeshMaterial gloss =
      material(R"({"extensions":{"KHR_materials_pbrSpecularGlossiness":{"diffuseFactor":[0,1,0,1],)"
               R"("glossinessFactor":0.75,"diffuseTexture":{"index":0}}}})");
  CHECK(gloss.base_color[1] == 1);
  CHECK(gloss.base_color[0] == 0);
  CHECK(gloss.roughness == .25f);
  CHECK(gloss.metalness == 0);
  CHECK(gloss.base_color_image == 0);
}

TEST_CASE("gltf: a picture that cannot be read is a warning, and one in another format has its fallback") {
  Files files("pictures");
  Gltf g = gltf_square();
  const fs::path plain = files.glb(g);
  g.json["textures"][0]["extensions"]["EXT_texture_webp"]["source"] = 9;
  check_equal(files.glb(g), plain);
  g.json["textures"][0].erase("source");
  const Read without = read(files.glb(g));
  REQUIRE(without.mesh);
  REQUIRE(without.warnings.size() == 1);
  CHECK(without.warnings[0].find("EXT_texture_webp") != std::string::npos);
  Gltf damaged = gltf_square();
  damaged.json["images"][0] = {{"bufferView", damaged.view({1, 2, 3, 4})}, {"name", "a picture"}};
  const Read r = read(files.glb(damaged));
  REQUIRE(r.mesh);
  REQUIRE(r.warnings.size() == 1);
  CHECK(r.warnings[0].find("texture 'a picture' is left out") != std::string::npos);
}

TEST_CASE("gltf: files that Debian's tools compressed with Draco and meshopt are voxel for voxel their plain twins") {
  Files files("tools");
  const auto run = [](const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()) == 0; };
  const auto there = [&](const char* program) {
    const bool found = run(std::string("command -v ") + program);
    if (!found) test::skip(std::string(program) + " is not installed");
    return found;
  };
  std::vector<fs::path> sources{files.glb(gltf_box()), files.glb(gltf_square())};
  if (const fs::path data = test::data_dir(); data.empty()) test::skip("no test data");
  else sources.push_back(data / "gltf/BoxTextured.glb");
  for (const fs::path& source : sources) {
    const std::string in = " -i '" + source.string() + "' -o ";
    const bool whole_numbers = source != sources.back() || sources.size() == 2;
    if (there("draco_transcoder")) {
      // 16 bits a coordinate; corners of boxes lie at the ends of their range, which are kept.
      const fs::path packed = files.dir() / (source.stem().string() + "-draco.glb");
      REQUIRE(run("draco_transcoder -qp 16 -qt 16" + in + "'" + packed.string() + "'"));
      if (whole_numbers) check_equal(packed, source);
      // A picture's coordinates in 16 bits are not those that they were: the same voxels, in nearly the same colours.
      CHECK(facts(packed).pos_sum == facts(source).pos_sum);
    }
    if (there("gltfpack")) {
      for (const char* how : {"-c -noq", "-cc -noq", "-c -vp 16 -vt 16", "-cc -vp 16 -vt 16", "-cf -noq"}) {
        if (!whole_numbers && std::string(how).find("-noq") == std::string::npos) continue;
        INFO(how);
        const fs::path packed =
            files.dir() / (source.stem().string() + std::to_string(std::hash<std::string>{}(how)) + ".glb");
        REQUIRE(run(std::string("gltfpack ") + how + in + "'" + packed.string() + "'"));
        check_equal(packed, source);
      }
    }
  }
}

}  // namespace gltf_test
