// SPDX-License-Identifier: Apache-2.0
// write_test.cpp - mesh files are written here and read back by Assimp in its own process, and by its program: the
// triangles are the same, they have the colours of the voxels behind them, and voxelising them gives voxels again.
#include "voxel/io/meshes/write.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace write_test {

using namespace quarry;
using test::file_text;
namespace fs = std::filesystem;

namespace {

int shown_byte(float linear) {
  const double c = linear <= 0.0031308 ? linear * 12.92 : 1.055 * std::pow(double(linear), 1 / 2.4) - 0.055;
  return int(std::lround(c * 255));
}

std::string printed(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  for (size_t n = 0; pipe && (n = fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, n);
  if (pipe) pclose(pipe);
  return out;
}

Scene two_colours() {
  Scene s;
  s.volumes.resize(1);
  for (int32_t x = 0; x < 5; ++x)
    for (int32_t y = 0; y < 6; ++y)
      for (int32_t z = 0; z < 7; ++z) s.volumes[0].bricks.set({x, y, z}, x < 2 ? 20 : 100);
  s.instances.resize(1);
  return s;
}

}  // namespace

TEST_CASE("mesh files: read back through Assimp they have the voxels' area, volume, place and colours") {
  const fs::path dir = test::scratch_dir("mesh-write");
  for (const char* name : {"terrain", "spheres"}) {
    auto scene = generate(name, 64, 7);
    REQUIRE(scene);
    for (Material& m : scene->palette.materials) m.transparency = 0;  // one closed surface
    const auto bricks = flatten(*scene, true);
    REQUIRE(bricks);
    const auto own = io::visible_surface(*scene, {});
    REQUIRE(own);
    for (const char* extension : {"ply", "obj", "glb", "gltf"}) {
      INFO(name << "." << extension);
      const fs::path file = dir / (std::string(name) + "." + extension);
      const auto done = io::write_scene(*scene, file);
      INFO((done ? std::string() : done.error().message));
      REQUIRE(done);
      const auto mesh = read_mesh(file, {});
      INFO((mesh ? std::string() : mesh.error().message));
      REQUIRE(mesh);
      CHECK(mesh->triangle_count() == own->triangle_count());
      double volume = 0, area = 0;
      int wrong_inside = 0, wrong_outside = 0, wrong_colour = 0;
      for (size_t t = 0; t < mesh->triangle_count(); ++t) {
        double p[3][3];
        for (size_t c = 0; c < 3; ++c)
          for (size_t a = 0; a < 3; ++a) p[c][a] = mesh->positions[3 * mesh->indices[3 * t + c] + a];
        double n[3], middle[3];
        for (size_t a = 0; a < 3; ++a) {
          const size_t b = (a + 1) % 3, d = (a + 2) % 3;
          n[a] = (p[1][b] - p[0][b]) * (p[2][d] - p[0][d]) - (p[1][d] - p[0][d]) * (p[2][b] - p[0][b]);
          middle[a] = (p[0][a] + p[1][a] + p[2][a]) / 3;
        }
        const double length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        area += length / 2;
        volume += (p[0][0] * n[0] + p[0][1] * n[1] + p[0][2] * n[2]) / 6;
        const auto cell = [&](double outwards) {
          int32_t c[3];
          for (size_t a = 0; a < 3; ++a) c[a] = int32_t(std::floor(middle[a] + 1e-4 + n[a] / length * outwards));
          return bricks->get({c[0], c[1], c[2]});
        };
        const uint8_t inside = cell(-0.5);
        wrong_inside += inside == 0;
        wrong_outside += cell(0.5) != 0;
        const Material& want = scene->palette.materials[inside];
        const float* base = mesh->materials[mesh->triangle_material[t]].base_color;
        int got[3] = {shown_byte(base[0]), shown_byte(base[1]), shown_byte(base[2])};
        if (!mesh->colors.empty())
          for (size_t a = 0; a < 3; ++a) got[a] = mesh->colors[4 * mesh->indices[3 * t] + a];
        wrong_colour += got[0] != want.r || got[1] != want.g || got[2] != want.b;
      }
      CHECK(volume == Approx(double(bricks->voxel_count())));
      CHECK(area == Approx(double(own->faces)));
      CHECK(wrong_inside == 0);
      CHECK(wrong_outside == 0);
      CHECK(wrong_colour == 0);
    }
  }
}

TEST_CASE("mesh files: Debian's assimp tells of them what is in them") {
  if (std::system("command -v assimp >/dev/null") != 0) return test::skip("no assimp (assimp-utils)");
  const fs::path dir = test::scratch_dir("mesh-write-assimp"), data = test::data_dir();
  std::vector<std::pair<std::string, Scene>> scenes;
  for (const char* name : {"terrain", "spheres"}) {
    auto scene = generate(name, 64, 5);
    REQUIRE(scene);
    scenes.emplace_back(name, std::move(*scene));
  }
  if (data.empty()) test::skip("no test data: generated scenes only");
  else
    for (const char* name : {"mesh/spot.obj", "gltf/Duck.glb"}) {
      io::ReadOptions options;
      options.resolution = 96;
      auto scene = io::read_scene(data / name, options);
      REQUIRE(scene);
      scenes.emplace_back(fs::path(name).stem().string(), std::move(*scene));
    }
  for (const auto& [name, scene] : scenes) {
    const auto own = io::visible_surface(scene, {});
    REQUIRE(own);
    size_t vertices = 0;  // each counts once for every colour
    Int3 low = own->positions[0], high = low;
    for (const SurfaceMesh::Part& part : own->parts)
      vertices += std::set<uint32_t>(part.indices.begin(), part.indices.end()).size();
    for (const Int3 p : own->positions) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
    }
    for (const std::string extension : {"glb", "gltf", "obj", "ply"}) {
      const fs::path file = dir / (name + "." + extension);
      REQUIRE(io::write_scene(scene, file));
      const std::string reported = printed("assimp info '" + file.string() + "' 2>&1");
      INFO(file.filename().string() << ": " << reported);
      // The numbers after a word, as in "Faces:   12".
      const auto numbers = [&](const std::string& word) {
        std::vector<double> out;
        const size_t at = reported.find("\n" + word);
        if (at == std::string::npos) return out;
        std::string line = reported.substr(at + 1 + word.size(), reported.find('\n', at + 1) - at - 1 - word.size());
        for (char& c : line)
          if (c == ':' || c == '(' || c == ')') c = ' ';
        std::istringstream in(line);
        for (double n = 0; in >> n;) out.push_back(n);
        return out;
      };
      using Numbers = std::vector<double>;
      CHECK(numbers("Faces") == Numbers{double(own->triangle_count())});
      // In a PLY file Assimp joins vertices at the same place, whatever their colours.
      CHECK(numbers("Vertices") == Numbers{double(extension == "ply" ? own->positions.size() : vertices)});
      CHECK(numbers("Meshes") == Numbers{extension == "ply" ? 1.0 : double(own->parts.size())});
      if (extension != "ply") CHECK(numbers("Materials") == Numbers{double(own->parts.size())});
      CHECK(numbers("Minimum point") == Numbers{double(low.x), double(low.y), double(low.z)});
      CHECK(numbers("Maximum point") == Numbers{double(high.x), double(high.y), double(high.z)});
    }
  }
}

TEST_CASE("mesh files: voxelised again, a box is the same box") {
  const fs::path dir = test::scratch_dir("mesh-write-again");
  const Scene s = two_colours();
  for (const char* extension : {"ply", "obj", "glb"}) {
    INFO(extension);
    const fs::path file = dir / (std::string("box.") + extension);
    REQUIRE(io::write_scene(s, file));
    io::ReadOptions options;
    options.voxel_size = 1;
    const auto back = io::read_scene(file, options);
    REQUIRE(back);
    const auto cells = flatten(*back, true);
    REQUIRE(cells);
    const Box3 box = cells->bounds();
    CHECK(box.max - box.min == Int3{4, 5, 6});
    CHECK(cells->voxel_count() == 5 * 6 * 7 - 3 * 4 * 5);  // its shell
    int wrong = 0;
    for (int32_t x = 0; x < 5; ++x)
      for (int32_t y = 0; y < 6; ++y)
        for (int32_t z = 0; z < 7; ++z) {
          const uint8_t m = cells->get(box.min + Int3{x, y, z});
          if (m == 0 || x == 1 || x == 2) continue;  // voxels at the seam touch both colours
          const Material& got = back->palette.materials[m];
          const Material& want = s.palette.materials[x < 2 ? 20 : 100];
          wrong += std::abs(got.r - want.r) > 1 || std::abs(got.g - want.g) > 1 || std::abs(got.b - want.b) > 1;
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "mesh files: what was voxelised and written as a surface is the same voxels when its inside is voxelised again") {
  const fs::path dir = test::scratch_dir("mesh-write-inside"), data = test::data_dir();
  std::vector<std::pair<std::string, Scene>> scenes;
  for (const auto& [name, size] : {std::pair("terrain", 64), {"menger", 27}, {"spheres", 64}}) {
    auto scene = generate(name, size, 3);
    REQUIRE(scene);
    for (Material& m : scene->palette.materials) m.transparency = 0;  // one closed surface
    scenes.emplace_back(name, std::move(*scene));
  }
  if (data.empty()) test::skip("no test data: generated scenes only");
  else
    for (const char* name : {"mesh/spot.obj", "gltf/Duck.glb", "mesh/dragon_vrip_res4.ply"}) {
      io::ReadOptions options;
      options.resolution = 60;
      auto scene = io::read_scene(data / name, options);
      REQUIRE(scene);
      scenes.emplace_back(name, std::move(*scene));
    }
  for (const auto& [name, scene] : scenes) {
    const auto was = flatten(scene, true);
    REQUIRE(was);
    for (const char* extension : {"ply", "obj", "glb"}) {
      INFO(name << " as " << extension);
      const fs::path file = dir / (std::string("a.") + extension);
      REQUIRE(io::write_scene(scene, file));
      io::ReadOptions options;
      options.voxel_size = 1;
      options.surface = SurfaceVoxels::none;
      options.fill = FillRule::parity;
      const auto back = io::read_scene(file, options);
      INFO((back ? std::string() : back.error().message));
      REQUIRE(back);
      const auto is = flatten(*back, true);
      REQUIRE(is);
      REQUIRE(is->voxel_count() == was->voxel_count());
      const Int3 shift = is->bounds().min - was->bounds().min;
      uint64_t missing = 0;
      for (const auto& [at, brick] : was->bricks())
        for (int32_t i = 0; i < 512; ++i) {
          const Int3 cell{at.x * 8 + (i & 7), at.y * 8 + (i >> 3 & 7), at.z * 8 + (i >> 6)};
          missing += was->get(cell) != 0 && is->get(cell + shift) == 0;
        }
      CHECK(missing == 0);
    }
  }
}

TEST_CASE("mesh files: glTF says metal, roughness, glow and glass as the specification has it") {
  const fs::path dir = test::scratch_dir("mesh-write-gltf");
  Scene s = two_colours();
  s.volumes[0].bricks.set({9, 0, 0}, 200);
  s.palette.materials[20] = {255, 0, 128, 255, 0.25f, 0.75f, 0, 0, 1.5f, {0, 0}};
  s.palette.materials[100] = {255, 255, 255, 255, 0.5f, 0, 6, 0, 1.5f, {0, 0}};
  s.palette.materials[200] = {0, 0, 255, 255, 0.5f, 0, 0, 0.75f, 1.25f, {0, 0}};
  s.palette.names[20] = "odd \"name\"\n\xff\xc3\xa4";
  REQUIRE(io::write_scene(s, dir / "m.gltf"));
  REQUIRE(io::write_scene(s, dir / "m.glb"));
  const auto doc = nlohmann::json::parse(file_text(dir / "m.gltf"));
  REQUIRE(doc["materials"].size() == 3);
  const auto& metal = doc["materials"][0];
  CHECK(metal["name"] == "odd \"name\"\n?ä");
  CHECK(metal["pbrMetallicRoughness"]["metallicFactor"] == 0.75);
  CHECK(metal["pbrMetallicRoughness"]["roughnessFactor"] == 0.25);
  CHECK(metal["pbrMetallicRoughness"]["baseColorFactor"][2].get<double>() == Approx(0.2158605));
  CHECK(metal["extras"]["palette_index"] == 20);
  CHECK_FALSE(metal.contains("alphaMode"));
  const auto& lamp = doc["materials"][1];
  CHECK(lamp["emissiveFactor"] == nlohmann::json({1, 1, 1}));
  CHECK(lamp["extensions"]["KHR_materials_emissive_strength"]["emissiveStrength"] == 6);
  const auto& glass = doc["materials"][2];
  CHECK(glass["alphaMode"] == "BLEND");
  CHECK(glass["pbrMetallicRoughness"]["baseColorFactor"][3] == 0.25);
  CHECK(glass["extensions"]["KHR_materials_ior"]["ior"] == 1.25);
  CHECK(doc["extensionsUsed"].size() == 2);
  // The binary file has lengths that add up, chunks padded to four, and the same document except for the data's place.
  const std::string glb = file_text(dir / "m.glb");
  const auto u32 = [&](size_t at) {
    uint32_t v = 0;
    for (size_t i = 0; i < 4; ++i) v |= uint32_t(uint8_t(glb.at(at + i))) << (8 * i);
    return v;
  };
  CHECK(glb.substr(0, 4) == "glTF");
  CHECK(u32(4) == 2);
  CHECK(u32(8) == glb.size());
  const uint32_t json_bytes = u32(12);
  CHECK(json_bytes % 4 == 0);
  auto inner = nlohmann::json::parse(glb.substr(20, json_bytes));
  CHECK(u32(20 + json_bytes) == inner["buffers"][0]["byteLength"]);
  CHECK(28 + json_bytes + u32(20 + json_bytes) == glb.size());
  CHECK(doc["buffers"][0]["byteLength"] == inner["buffers"][0]["byteLength"]);
  CHECK(doc["accessors"] == inner["accessors"]);
  CHECK(doc["materials"] == inner["materials"]);
}

TEST_CASE("mesh files: OBJ keeps materials and never replaces an .mtl of someone else") {
  const fs::path dir = test::scratch_dir("mesh-write-mtl");
  Scene s = two_colours();
  s.palette.materials[20].metalness = 1;
  s.palette.materials[20].roughness = 0.375f;
  s.palette.names[20] = "two words";
  REQUIRE(io::write_scene(s, dir / "a.obj"));
  REQUIRE(io::write_scene(s, dir / "a.obj"));  // our own is replaced
  const auto mesh = read_mesh(dir / "a.obj", {});
  REQUIRE(mesh);
  bool found = false;
  for (const MeshMaterial& m : mesh->materials)
    if (m.name == "two_words_20") {
      found = true;
      CHECK(m.metalness == 1);
      CHECK(m.roughness == 0.375f);
    }
  CHECK(found);
  std::ofstream(dir / "b.mtl") << "newmtl precious\n";
  const auto refused = io::write_scene(s, dir / "b.obj");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK_FALSE(fs::exists(dir / "b.obj"));
  CHECK(file_text(dir / "b.mtl") == "newmtl precious\n");
}

TEST_CASE("mesh files: hidden voxels are left out, and without any visible one there is an error and no file") {
  const fs::path dir = test::scratch_dir("mesh-write-hidden");
  Scene s = two_colours();
  s.instances.push_back({0, {}, {100, 0, 0}, -1, true, "", ""});
  REQUIRE(io::write_scene(s, dir / "a.ply"));
  CHECK(read_mesh(dir / "a.ply", {})->triangle_count() > 12);
  float far = 0;
  const auto mesh = read_mesh(dir / "a.ply", {});
  for (size_t i = 0; i < mesh->positions.size(); i += 3) far = std::max(far, mesh->positions[i]);
  CHECK(far == 5);
  s.instances.erase(s.instances.begin());
  for (const char* name : {"b.ply", "b.obj", "b.glb"}) {
    const auto done = io::write_scene(s, dir / name);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::invalid_argument);
    CHECK_THAT(done.error().message,
               Catch::StartsWith((dir / name).string() + ": ") && Catch::Contains("no visible voxel"));
    CHECK_FALSE(fs::exists(dir / name));
  }
  CHECK_FALSE(fs::exists(dir / "b.mtl"));
}

}  // namespace write_test
