// SPDX-License-Identifier: Apache-2.0
// mesh_client_test.cpp - the mesh reader's process and its client: real files, broken files, a reader that misbehaves.
#include "voxel/foreign/mesh_client.hpp"

#include <signal.h>

#include <catch2/catch.hpp>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "tests/test_data.hpp"
#include "voxel/foreign/pipe/mesh_stream.hpp"

namespace mesh_client_test {

using namespace quarry;
namespace fs = std::filesystem;

namespace {

struct Env {  // a variable for the length of a test
  Env(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Env() { unsetenv(name_); }
  const char* name_;
};

fs::path write_file(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
  return file;
}
fs::path write_script(const fs::path& file, const std::string& body) {
  std::ofstream(file, std::ios::binary) << "#!/bin/sh\n" << body << "\n";
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

std::string message_of(const Result<Mesh>& result) { return result ? std::string("(a mesh)") : result.error().message; }

// One sentence for a person: begins with the file, no line breaks.
void check_clean(const Result<Mesh>& result, const fs::path& file) {
  REQUIRE_FALSE(result);
  INFO(result.error().message);
  CHECK(result.error().message.rfind(file.string() + ": ", 0) == 0);
  CHECK(result.error().message.find('\n') == std::string::npos);
}

Mesh small_mesh() {
  Mesh m;
  m.positions = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  m.uvs = {0, 0, 1, 0, 0, 1, 1, 1};
  m.colors = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 9, 9, 9, 255};
  m.indices = {0, 1, 2, 0, 2, 3};
  m.triangle_material = {0, 1};
  m.materials.resize(2);
  m.materials[1].name = "glass";
  m.materials[1].emission[1] = 2;
  m.materials[1].base_color_image = 0;
  m.materials[1].base_color_place.wrap_v = Wrap::mirror;
  m.images.push_back({2, 1, {1, 2, 3, 4, 5, 6, 7, 8}});
  return m;
}
std::vector<uint8_t> stream_of(const Mesh& mesh) {
  std::vector<uint8_t> bytes;
  REQUIRE(write_mesh_stream(mesh, {"a warning"}, {"/there/a picture.png"}, [&](std::span<const uint8_t> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return true;
  }));
  return bytes;
}

}  // namespace

TEST_CASE("mesh: every well-formed mesh of the shared data is read with its known vertices and faces") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  struct Known {
    const char* file;
    size_t vertices, triangles, images;
  };
  for (const Known k : {Known{"mesh/20mm-xyz-cube.stl", 780, 260, 0}, Known{"mesh/BoxTextured.ply", 24, 12, 0},
                        Known{"mesh/ballA.off", 1900, 3796, 0}, Known{"mesh/bunny.ply", 8171, 16301, 0},
                        Known{"mesh/dragon_vrip_res4.ply", 5205, 11102, 0}, Known{"mesh/spot.obj", 17568, 5856, 1},
                        Known{"mesh/stanford-bunny.obj", 208353, 69451, 0}, Known{"gltf/BoxTextured.glb", 24, 12, 1},
                        Known{"gltf/DamagedHelmet.glb", 14556, 15452, 3}, Known{"gltf/Duck.glb", 2399, 4212, 1}}) {
    std::vector<std::string> warnings;
    io::ReadOptions options;
    options.warnings = &warnings;
    const auto mesh = read_mesh(data / k.file, options);
    INFO(k.file << ": " << message_of(mesh));
    REQUIRE(mesh);
    CHECK(mesh->vertex_count() == k.vertices);
    CHECK(mesh->triangle_count() == k.triangles);
    CHECK(mesh->images.size() == k.images);
    CHECK(check_mesh(*mesh));
  }
}

TEST_CASE("mesh: a file that kills the mesh library gives one clean error, or a whole mesh") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  // This one kills Assimp's own tool; whether it dies here depends on what lies in memory.
  const auto zip = read_mesh(data / "mesh/P_XPM_0331_01.3mf", {});
  if (zip) {
    CHECK(zip->vertex_count() == 5);
    CHECK(zip->triangle_count() == 6);
  } else {
    check_clean(zip, data / "mesh/P_XPM_0331_01.3mf");
  }
}

TEST_CASE("mesh: each kind of broken file has a message of its own") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto expect = [&](const char* name, const char* words) {
    const auto mesh = read_mesh(data / "broken-mesh" / name, {});
    check_clean(mesh, data / "broken-mesh" / name);
    INFO(message_of(mesh));
    CHECK(message_of(mesh).find(words) != std::string::npos);
  };
  expect("empty.obj", "the file is empty");
  expect("crash.ply", "byte 112: expected a line of the PLY header");  // Assimp 5.2.5 dies of it
  expect("BoxWithInfinites-glTF-Binary/BoxWithInfinites.glb", "infinite or undefined position");
  expect("IndexOutOfRange/AllIndicesOutOfRange.gltf", "it has no faces");
  expect("RecursiveNodes/RecursiveNodes.gltf", "nodes refer to themselves");
  const auto partly = read_mesh(data / "broken-mesh/IndexOutOfRange/IndexOutOfRange.gltf", {});
  REQUIRE(partly);
  CHECK(partly->triangle_count() == 11);
}

TEST_CASE("mesh: node transforms, instances and the up axis are applied") {
  const fs::path dir = test::scratch_dir("mesh-nodes");
  // One triangle in a buffer, placed by two nodes: the second moved by (10, 0, 0) under a parent scaled by 2.
  const float corners[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
  std::string bytes(reinterpret_cast<const char*>(corners), sizeof corners);
  write_file(dir / "t.bin", bytes);
  write_file(dir / "t.gltf", R"({"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0,1]}],
    "nodes":[{"mesh":0},{"scale":[2,2,2],"children":[2]},{"mesh":0,"translation":[10,0,0]}],
    "meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],
    "buffers":[{"uri":"t.bin","byteLength":36}],"bufferViews":[{"buffer":0,"byteLength":36}],
    "accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3","min":[0,0,0],"max":[1,1,0]}]})");
  const auto mesh = read_mesh(dir / "t.gltf", {});
  INFO(message_of(mesh));
  REQUIRE(mesh);
  REQUIRE(mesh->triangle_count() == 2);
  std::vector<float> xs;
  for (size_t i = 0; i < mesh->positions.size(); i += 3) xs.push_back(mesh->positions[i]);
  std::sort(xs.begin(), xs.end());
  CHECK(xs == std::vector<float>{0, 0, 1, 20, 20, 22});

  write_file(dir / "up.obj", "v 0 0 0\nv 1 0 0\nv 0 2 5\nf 1 2 3\n");
  io::ReadOptions z;
  z.up = std::string("z");
  const auto y_up = read_mesh(dir / "up.obj", {}), z_up = read_mesh(dir / "up.obj", z);
  REQUIRE(y_up);
  REQUIRE(z_up);
  CHECK(std::vector<float>(y_up->positions.begin() + 6, y_up->positions.end()) == std::vector<float>{0, 2, 5});
  CHECK(std::vector<float>(z_up->positions.begin() + 6, z_up->positions.end()) == std::vector<float>{0, 5, -2});
  z.up = std::string("x");
  check_clean(read_mesh(dir / "up.obj", z), dir / "up.obj");
}

TEST_CASE("mesh: a material's colour, texture and glow arrive, and a missing texture is a warning") {
  const fs::path dir = test::scratch_dir("mesh-materials");
  write_file(dir / "m.mtl", "newmtl lamp\nKd 1 0.5 0\nKe 3 3 3\nnewmtl skin\nKd 1 1 1\nmap_Kd nowhere.png\n");
  write_file(
      dir / "m.obj",
      "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 0.25\nusemtl lamp\nf 1/1 2/2 3/3\nusemtl skin\n"
      "f 3/3 2/2 1/1\n");
  std::vector<std::string> warnings;
  io::ReadOptions options;
  options.warnings = &warnings;
  const auto mesh = read_mesh(dir / "m.obj", options);
  INFO(message_of(mesh));
  REQUIRE(mesh);
  REQUIRE(mesh->triangle_count() == 2);
  const MeshMaterial& lamp = mesh->materials[mesh->triangle_material[0]];
  CHECK(lamp.name == "lamp");
  CHECK(lamp.base_color[0] == Approx(1));
  CHECK(lamp.base_color[1] == Approx(std::pow((0.5 + 0.055) / 1.055, 2.4)));
  CHECK(lamp.emission[0] == Approx(3));
  CHECK(mesh->images.empty());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("nowhere.png") != std::string::npos);
  // v = 0 is the top row.
  CHECK(mesh->uvs[5] == Approx(0.75));
}

TEST_CASE("mesh: a missing file, a directory and a missing reader each say what is missing") {
  const fs::path dir = test::scratch_dir("mesh-missing");
  check_clean(read_mesh(dir / "none.obj", {}), dir / "none.obj");
  check_clean(read_mesh(dir, {}), dir);
  write_file(dir / "a.obj", "v 0 0 0\n");
  const Env env("QUARRY_MESH_READER", (dir / "no-such-reader").string());
  const auto mesh = read_mesh(dir / "a.obj", {});
  check_clean(mesh, dir / "a.obj");
  CHECK(mesh.error().code == ErrorCode::not_found);
  CHECK(message_of(mesh).find("no-such-reader") != std::string::npos);
}

TEST_CASE("mesh: a reader that hangs is stopped at the time limit, and one that is cancelled at once") {
  const fs::path dir = test::scratch_dir("mesh-hang");
  write_file(dir / "a.obj", "v 0 0 0\n");
  // However slow the machine is: the process must be gone, and of itself it would not be.
  const Env env(
      "QUARRY_MESH_READER",
      write_script(dir / "reader", "echo $$ > " + (dir / "started").string() + "; exec sleep 100000").string());
  const auto was_stopped = [&] {
    pid_t pid = 0;
    // Stopped before its first line: then there is nobody to look for.
    if (!(std::ifstream(dir / "started") >> pid)) return;
    CHECK((::kill(pid, 0) != 0 && errno == ESRCH));
    fs::remove(dir / "started");
  };
  io::ReadOptions options;
  options.time_limit_s = 0.3;
  const auto start = std::chrono::steady_clock::now();
  const auto mesh = read_mesh(dir / "a.obj", options);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(300));
  check_clean(mesh, dir / "a.obj");
  CHECK(message_of(mesh).find("longer than the limit of 0.3 s") != std::string::npos);
  was_stopped();
  const std::atomic<bool> cancel{true};
  options.time_limit_s = 50000;
  options.progress.cancel = &cancel;
  const auto cancelled = read_mesh(dir / "a.obj", options);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == ErrorCode::cancelled);
  was_stopped();
}

TEST_CASE("mesh: a reader that dies, fails or babbles is one error") {
  const fs::path dir = test::scratch_dir("mesh-babble");
  const fs::path file = write_file(dir / "a.obj", "v 0 0 0\n");
  const auto with = [&](const std::string& body, const char* words) {
    const Env env("QUARRY_MESH_READER", write_script(dir / "reader", body).string());
    const auto mesh = read_mesh(file, {});
    check_clean(mesh, file);
    INFO(message_of(mesh));
    CHECK(message_of(mesh).find(words) != std::string::npos);
  };
  with("kill -ABRT $$", "crashed (signal SIGABRT)");
  with("kill -KILL $$", "killed from outside");
  with("kill -XCPU $$", "processor time");
  with("echo it went wrong >&2; exit 7", "exit code 7 and no mesh: it went wrong");
  with("echo hello", "wrong magic");
  with("printf QRYMESH3", "ends too soon");
  with("exit 0", "wrong magic");
  io::ReadOptions small;
  small.memory_limit_bytes = 1 << 20;
  const Env env("QUARRY_MESH_READER", write_script(dir / "reader", "exec head -c 9000000 /dev/zero").string());
  const auto mesh = read_mesh(file, small);
  check_clean(mesh, file);
  CHECK(mesh.error().code == ErrorCode::out_of_memory);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("mesh: a file that needs more memory than allowed says so") {
  const fs::path dir = test::scratch_dir("mesh-memory");
  {
    std::ofstream out(dir / "big.obj");
    for (int i = 0; i < 300000; ++i) out << "v " << i << " " << i % 7 << " " << i % 11 << "\n";
    for (int i = 1; i + 2 < 300000; ++i) out << "f " << i << " " << i + 1 << " " << i + 2 << "\n";
  }
  io::ReadOptions options;
  options.memory_limit_bytes = 8 << 20;
  const auto mesh = read_mesh(dir / "big.obj", options);
  check_clean(mesh, dir / "big.obj");
  INFO(message_of(mesh));
  CHECK(mesh.error().code == ErrorCode::out_of_memory);
}
#endif

TEST_CASE("mesh stream: what is written is read back the same") {
  const Mesh m = small_mesh();
  std::vector<std::string> warnings;
  std::vector<std::filesystem::path> accessed_files;
  const auto back = parse_mesh_stream(stream_of(m), &warnings, &accessed_files);
  REQUIRE(back);
  CHECK(accessed_files == std::vector<std::filesystem::path>{"/there/a picture.png"});
  CHECK(warnings == std::vector<std::string>{"a warning"});
  CHECK(back->positions == m.positions);
  CHECK(back->uvs == m.uvs);
  CHECK(back->colors == m.colors);
  CHECK(back->indices == m.indices);
  CHECK(back->triangle_material == m.triangle_material);
  REQUIRE(back->materials.size() == 2);
  CHECK(back->materials[1].name == "glass");
  CHECK(back->materials[1].emission[1] == 2);
  CHECK(back->materials[1].base_color_image == 0);
  CHECK(back->materials[1].base_color_place.wrap_v == Wrap::mirror);
  CHECK(back->images[0].rgba == m.images[0].rgba);
}

TEST_CASE("mesh stream: no truncation and no changed byte is taken for a mesh, and none crashes") {
  const auto bytes = stream_of(small_mesh());
  for (size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(parse_mesh_stream({bytes.data(), length}, nullptr));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const uint8_t flip : {uint8_t(1), uint8_t(0x80)}) {
      auto changed = bytes;
      changed[at] ^= flip;
      // A tag's letters and a warning's length are not under the checksum; nothing else may pass.
      const auto mesh = parse_mesh_stream(changed, nullptr);
      if (mesh) CHECK(check_mesh(*mesh));
    }
}

TEST_CASE("mesh stream: indices, materials, images and lengths out of range are refused") {
  const auto refused = [](auto change, const char* words) {
    Mesh m = small_mesh();
    change(m);
    const auto result = parse_mesh_stream(stream_of(m), nullptr);
    REQUIRE_FALSE(result);
    INFO(result.error().message);
    CHECK(result.error().message.find(words) != std::string::npos);
  };
  refused([](Mesh& m) { m.indices[4] = 4; }, "index 4 of 4 vertices");
  refused([](Mesh& m) { m.triangle_material[0] = 2; }, "a triangle's material");
  refused([](Mesh& m) { m.materials[0].base_color_image = 1; }, "a material's image");
  refused([](Mesh& m) { m.positions[5] = std::numeric_limits<float>::infinity(); }, "not finite");
  refused([](Mesh& m) { m.positions[5] = std::nanf(""); }, "not finite");
  refused([](Mesh& m) { m.images[0].width = 3; }, "an image's size");
  refused([](Mesh& m) { m.uvs.pop_back(); }, "TEXC");
  refused([](Mesh& m) { m.uvs.clear(); }, "texture coordinates");
  refused(
      [](Mesh& m) {
        m.indices.clear();
        m.triangle_material.clear();
      },
      "no triangles");
  refused([](Mesh& m) { m.materials.clear(); }, "material");
}

}  // namespace mesh_client_test
