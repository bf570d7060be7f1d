// SPDX-License-Identifier: Apache-2.0
// formats_test.cpp - the registry: which format reads or writes a file, and the message if none can.
#include "voxel/io/formats.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"

namespace formats_test {

using namespace quarry;
using test::write_bytes;
namespace fs = std::filesystem;

namespace {
const std::vector<uint8_t> kDot = test::VoxBuilder().model(1, 1, 1, {{0, 0, 0, 5}}).bytes();
}  // namespace

TEST_CASE("format: every row can do something, and no two claim one extension") {
  std::set<std::string> names, extensions;
  for (const io::Format& f : io::formats()) {
    INFO(f.name);
    CHECK(names.insert(f.name).second);
    CHECK_FALSE(f.extensions.empty());
    for (const char* e : f.extensions) CHECK(extensions.insert(e).second);
    CHECK((f.read || f.write));
  }
  CHECK(names.count("vox"));
  CHECK(names.count("quarry"));
}

TEST_CASE("format: content goes before extension, upper case is no matter") {
  const fs::path dir = test::scratch_dir("format-sniff");
  write_bytes(dir / "a.quarry", kDot);
  CHECK(std::string((*io::format_for_reading(dir / "a.quarry"))->name) == "vox");
  write_bytes(dir / "no-extension", kDot);
  CHECK(std::string((*io::format_for_reading(dir / "no-extension"))->name) == "vox");
  write_bytes(dir / "b.VOX", {'x'});
  CHECK(std::string((*io::format_for_reading(dir / "b.VOX"))->name) == "vox");
  // Twenty small numbers begin a Qubicle file, but may begin a grid too.
  std::vector<uint8_t> small(64, 0);
  small[0] = small[1] = 1;
  write_bytes(dir / "d.raw", small);
  CHECK(std::string((*io::format_for_reading(dir / "d.raw"))->name) == "raw");
  write_bytes(dir / "d", small);
  CHECK(std::string((*io::format_for_reading(dir / "d"))->name) == "qb");
  REQUIRE(io::write_scene(test::busy_scene(), dir / "C.Quarry"));
  fs::rename(dir / "C.Quarry", dir / "c.vox");
  CHECK(std::string((*io::format_for_reading(dir / "c.vox"))->name) == "quarry");
  CHECK(io::read_scene(dir / "c.vox"));
}

TEST_CASE("format: a scene says where it came from, also after a way through a world file") {
  const fs::path dir = test::scratch_dir("format-source");
  write_bytes(dir / "dot.vox", kDot);
  const auto scene = io::read_scene(dir / "dot.vox");
  REQUIRE(scene);
  CHECK(scene->metadata.at("source_format") == "vox");
  CHECK(scene->metadata.at("source_file") == "dot.vox");
  REQUIRE(io::write_scene(*scene, dir / "dot.quarry"));
  const auto back = io::read_scene(dir / "dot.quarry");
  REQUIRE(back);
  CHECK(test::same_scene(*scene, *back) == "");
}

TEST_CASE("format: every refusal begins with the file's name and says what to do") {
  const fs::path dir = test::scratch_dir("format-errors");
  const auto reading = [&](const std::string& name, ErrorCode code, const std::string& part) {
    const auto scene = io::read_scene(dir / name);
    REQUIRE_FALSE(scene);
    INFO(scene.error().message);
    CHECK(scene.error().code == code);
    CHECK_THAT(scene.error().message, Catch::StartsWith((dir / name).string() + ": "));
    CHECK_THAT(scene.error().message, Catch::Contains(part));
  };
  reading("none.vox", ErrorCode::not_found, "No such file");
  write_bytes(dir / "a.voxx", {'?'});
  reading("a.voxx", ErrorCode::unsupported, "did you mean .vox?");
  write_bytes(dir / "a.quary", {'?'});
  reading("a.quary", ErrorCode::unsupported, "did you mean .quarry?");
  write_bytes(dir / "a.nonsense", {'?'});
  reading("a.nonsense", ErrorCode::unsupported, ".vox");
  write_bytes(dir / "bare", {'?'});
  reading("bare", ErrorCode::unsupported, "no extension");
  write_bytes(dir / "empty.vox", {});
  reading("empty.vox", ErrorCode::malformed_input, "empty");
  write_bytes(dir / "cut.vox", {kDot.begin(), kDot.begin() + 30});
  reading("cut.vox", ErrorCode::malformed_input, "byte 12");
  fs::create_directory(dir / "folder.vox");
  reading("folder.vox", ErrorCode::io, "folder");

  const auto writing = [&](const std::string& name, ErrorCode code, const std::string& part) {
    const auto done = io::write_scene(Scene{}, dir / name);
    REQUIRE_FALSE(done);
    INFO(done.error().message);
    CHECK(done.error().code == code);
    CHECK_THAT(done.error().message, Catch::StartsWith((dir / name).string() + ": "));
    CHECK_THAT(done.error().message, Catch::Contains(part));
    CHECK_FALSE(fs::exists(dir / name));
  };
  writing("out.qarry", ErrorCode::unsupported, "did you mean .quarry?");
  writing("out", ErrorCode::unsupported, ".quarry");
  writing("no-folder/out.quarry", ErrorCode::not_found, "no-folder");
  for (const io::Format& f : io::formats())
    if (!f.write) writing(std::string("out.") + f.extensions.front(), ErrorCode::unsupported, "not written");
}

}  // namespace formats_test
