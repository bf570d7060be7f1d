// SPDX-License-Identifier: Apache-2.0
// resume_test.cpp - `quarry convert --resume` records all files other than the input that reading opened or looked for.
// If one changes or appears, the input is converted again.
#include <zlib.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/batch/dependencies.hpp"
#include "app/batch/resume.hpp"
#include "tests/app/spawn.hpp"
#include "tests/test_data.hpp"

namespace resume_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
void write(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }
// A picture of 2 x 2 pixels of one colour.
std::string picture(uint8_t r, uint8_t g, uint8_t b) {
  const auto chunk = [](const std::string& kind, const std::string& body) {
    const std::string both = kind + body;
    return big_endian(uint32_t(body.size())) + both +
           big_endian(uint32_t(crc32(0, reinterpret_cast<const Bytef*>(both.data()), uInt(both.size()))));
  };
  const std::string pixel{char(r), char(g), char(b)},
      rows = std::string(1, 0) + pixel + pixel + std::string(1, 0) + pixel + pixel;
  std::string packed(200, 0);
  uLongf size = packed.size();
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                   rows.size()) == Z_OK);
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", big_endian(2) + big_endian(2) + std::string("\x08\2\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

// A textured triangle as glTF; `uri` names the picture.
std::string gltf(const std::string& uri, const std::string& buffer) {
  return "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],"
         "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0,\"TEXCOORD_0\":1},\"indices\":2,\"material\":0}]"
         "}],"
         "\"materials\":[{\"pbrMetallicRoughness\":{\"baseColorTexture\":{\"index\":0}}}],\"textures\":[{\"source\":0}]"
         ",\"images\":[{\"uri\":\"" +
         uri +
         "\"}],"
         "\"buffers\":[{" +
         buffer +
         "\"byteLength\":68}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,"
         "\"byteLength\":24},"
         "{\"buffer\":0,\"byteOffset\":60,\"byteLength\":6}],\"accessors\":[{\"bufferView\":0,\"componentType\":5126,"
         "\"count\":3,\"type\":\"VEC3\",\"min\":[0,0,0],\"max\":[1,1,0]},"
         "{\"bufferView\":1,\"componentType\":5126,\"count\":3,\"type\":\"VEC2\"},{\"bufferView\":2,\"componentType\":"
         "5123,\"count\":3,\"type\":\"SCALAR\"}]}";
}
std::string gltf_buffer() {
  std::string out;
  for (const float v : {0.f, 0.f, 0.f, 1.f, 0.f, 0.f, 0.f, 1.f, 0.f, 0.f, 0.f, 1.f, 0.f, 0.f, 1.f}) put(out, v);
  for (const int v : {0, 1, 2, 0}) put(out, uint16_t(v));
  return out;
}

struct Kind {
  const char* input;
  std::function<void(const fs::path&)> make;    // makes the files in a folder
  std::function<void(const fs::path&)> change;  // changes a file other than the input
  std::vector<std::string> more{};
};

const char* const kTextured = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n";

}  // namespace

TEST_CASE("convert: --resume converts again when any file changes, or appears, that reading opened or looked for") {
  const Kind kinds[] = {
      {"percent.gltf",
       [](const fs::path& d) {
         write(d / "percent.gltf", gltf("my%20pic.png", "\"uri\":\"d.bin\",")), write(d / "d.bin", gltf_buffer()),
             write(d / "my pic.png", picture(255, 0, 0));
       },
       [](const fs::path& d) { write(d / "my pic.png", picture(0, 255, 0)); }},
      {"buffer.gltf",
       [](const fs::path& d) {
         write(d / "buffer.gltf", gltf("p.png", "\"uri\":\"d.bin\",")), write(d / "d.bin", gltf_buffer()),
             write(d / "p.png", picture(255, 0, 0));
       },
       [](const fs::path& d) {
         std::string b = gltf_buffer();
         b[15] = 0x40;
         write(d / "d.bin", b);
       }},
      {"outside.glb",
       [](const fs::path& d) {
         std::string text = gltf("pic.png", ""), bytes = gltf_buffer(), out = "glTF";
         text.resize((text.size() + 3) / 4 * 4, ' ');
         for (const uint32_t v :
              {2u, uint32_t(12 + 8 + text.size() + 8 + bytes.size()), uint32_t(text.size()), 0x4E4F534Au})
           put(out, v);
         out += text;
         for (const uint32_t v : {uint32_t(bytes.size()), 0x004E4942u}) put(out, v);
         write(d / "outside.glb", out + bytes);
         write(d / "pic.png", picture(255, 0, 0));
       },
       [](const fs::path& d) { write(d / "pic.png", picture(0, 255, 0)); }},
      {"beside.obj",
       [](const fs::path& d) {
         write(d / "beside.obj", std::string(kTextured) + "f 1/1 2/2 3/3\n"),
             write(d / "beside.png", picture(255, 0, 0));
       },
       [](const fs::path& d) { write(d / "beside.png", picture(0, 255, 0)); }},
      {"appears.obj", [](const fs::path& d) { write(d / "appears.obj", std::string(kTextured) + "f 1/1 2/2 3/3\n"); },
       [](const fs::path& d) { write(d / "appears.png", picture(0, 255, 0)); }},
      {"texture.obj",
       [](const fs::path& d) {
         write(d / "texture.obj", std::string("mtllib m m.mtl\n") + kTextured + "usemtl m\nf 1/1 2/2 3/3\n");
         write(d / "m m.mtl", "newmtl m\nmap_Kd a b.png\n");
         write(d / "a b.png", picture(255, 0, 0));
       },
       [](const fs::path& d) { write(d / "a b.png", picture(0, 255, 0)); }},
      {"library.obj",
       [](const fs::path& d) {
         write(d / "library.obj", "mtllib x.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n"),
             write(d / "x.mtl", "newmtl m\nKd 1 0 0\n");
       },
       [](const fs::path& d) { write(d / "x.mtl", "newmtl m\nKd 0 1 0\n"); }},
      {"missing.obj",
       [](const fs::path& d) {
         write(d / "missing.obj", "mtllib y.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n");
       },
       [](const fs::path& d) { write(d / "y.mtl", "newmtl m\nKd 0 1 0\n"); }},
      {"grid.raw",
       [](const fs::path& d) {
         write(d / "grid.raw", std::string(64, 5)),
             write(d / "grid.nhdr", "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n");
       },
       [](const fs::path& d) {
         write(d / "grid.nhdr", "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 8 4 2\nencoding: raw\n\n");
       }},
      {"apart.nrrd",
       [](const fs::path& d) {
         write(d / "apart.nrrd",
               "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\ndata file: grid.bytes\n\n"),
             write(d / "grid.bytes", std::string(64, 5));
       },
       [](const fs::path& d) { write(d / "grid.bytes", std::string(63, 5) + char(6)); }},
      {"height.png",
       [](const fs::path& d) {
         write(d / "height.png", picture(9, 9, 9)), write(d / "colours.bin", picture(255, 0, 0));
       },
       [](const fs::path& d) { write(d / "colours.bin", picture(0, 0, 255)); },
       {"--color-map", "colours.bin"}},
      {"world.quarry",
       [](const fs::path& d) {
         REQUIRE(run_quarry({"generate", "spheres", "--size", "32", "-o", (d / "world.quarry").string()}).code == 0);
       },
       [](const fs::path& d) { write(d / "world.quarry-wal", ""); }},
  };
  for (const Kind& kind : kinds) {
    const fs::path dir = scratch_dir(std::string("resume-") + kind.input);
    INFO(kind.input);
    kind.make(dir);
    const auto counts = [&](bool dry) {
      std::vector<std::string> words{"convert",  (dir / kind.input).string(),
                                     "-o",       (dir / "out").string(),
                                     "--to",     "ply",
                                     "--resume", "--resolution",
                                     "8",        "--json"};
      for (const std::string& word : kind.more)
        words.push_back(word.find('.') == std::string::npos ? word : (dir / word).string());
      if (dry) words.emplace_back("--dry-run");
      const Outcome outcome = run_quarry(words);
      INFO(outcome.out << outcome.err);
      CHECK(outcome.code == 0);
      if (dry) return outcome.out.find("unchanged") == std::string::npos ? 1 : 0;
      const json last = json::parse(outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2) + 1));
      CHECK(last["converted"].get<int>() + last["skipped"].get<int>() == 1);
      return last["converted"].get<int>();
    };
    CHECK(counts(false) == 1);
    CHECK(counts(false) == 0);
    CHECK(counts(true) == 0);
    kind.change(dir);
    CHECK(counts(true) == 1);
    CHECK(counts(false) == 1);
    CHECK(counts(false) == 0);
  }
}

TEST_CASE("convert: --resume follows inputs and what they depend on to another place") {
  const fs::path dir = scratch_dir("resume-moved");
  fs::create_directories(dir / "one/in");
  write(dir / "one/in/a.obj", "mtllib x.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n");
  write(dir / "one/in/x.mtl", "newmtl m\nKd 1 0 0\n");
  const auto skipped = [&](const char* place) {
    const Outcome outcome = run_quarry({"convert", (dir / place / "in/a.obj").string(), "-o", (dir / "out").string(),
                                        "--to", "ply", "--resume", "--resolution", "8", "--json"});
    CHECK(outcome.code == 0);
    return outcome.out.find("\"skipped\":1") != std::string::npos;
  };
  CHECK_FALSE(skipped("one"));
  fs::rename(dir / "one", dir / "two");
  CHECK(skipped("two"));
}

TEST_CASE(
    "convert: what --resume of version 0.1 remembered is converted once more, replaced without being asked, "
    "and that is said once") {
  const fs::path dir = scratch_dir("resume-old");
  write(dir / "a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
  const auto run = [&] {
    return run_quarry({"convert", (dir / "a.obj").string(), "-o", (dir / "out").string(), "--to", "ply", "--resume",
                       "--resolution", "8", "--json"});
  };
  CHECK(run().code == 0);
  const fs::path manifest = dir / "out/.quarry-resume";
  std::string old;
  std::istringstream lines(text_of(manifest));
  for (std::string line; std::getline(lines, line);) {
    json entry = json::parse(line);
    if (!entry.contains("job")) continue;
    CHECK(entry["needs"]["files"].is_array());
    entry.erase("needs");
    old += entry.dump() + "\n";
  }
  write(manifest, old);
  const Outcome again = run();
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(again.err.find("Quarry 0.1.1") != std::string::npos);
  CHECK(again.out.find("\"converted\":1") != std::string::npos);
  const Outcome third = run();
  CHECK(third.code == 0);
  CHECK(third.out.find("\"skipped\":1") != std::string::npos);
  CHECK(third.err.find("Quarry 0.1.1") == std::string::npos);
}

TEST_CASE(
    "resume: a manifest's dependencies are bounded, and of a file that changed while it was read nothing is known") {
  const fs::path dir = scratch_dir("resume-bounds");
  write(dir / "a", "one");
  const int64_t later = app::file_clock_now() + 10'000'000'000;
  const auto known = app::dependencies_now(dir, {dir / "a", dir / "b", dir / "a"}, later, nullptr);
  CHECK(known.files == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(known.hash.empty());
  CHECK(app::unchanged(known, dir, nullptr));
  write(dir / "b", "");
  CHECK_FALSE(app::unchanged(known, dir, nullptr));
  CHECK(app::dependencies_now(dir, {dir / "a"}, 0, nullptr).hash.empty());
  std::vector<fs::path> many;
  for (int i = 0; i < 5000; ++i) many.push_back(dir / std::to_string(i));
  CHECK(app::dependencies_now(dir, many, later, nullptr).hash.empty());
  CHECK(app::dependencies_now(dir, many, later, nullptr).files.empty());
  CHECK_FALSE(app::unchanged({}, dir, nullptr));
}

}  // namespace resume_test
