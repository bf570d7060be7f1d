// SPDX-License-Identifier: Apache-2.0
// compare_test.cpp - `quarry diff` and `quarry validate` as a script uses them: exit codes, JSON, messages.
#include <catch2/catch.hpp>

#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("quarry diff: 0 for equal, 1 for different, 2 for wrong usage and unreadable files") {
  const fs::path dir = scratch_dir("diff");
  const std::string a =
      write_bytes(dir / "a.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 2}, {3, 3, 3, 3}}).bytes());
  const std::string b = write_bytes(
      dir / "b.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 5}, {0, 3, 0, 3}, {0, 3, 1, 3}}).bytes());
  const std::string world = (dir / "a.quarry").string();
  REQUIRE(run_quarry({"convert", a, "-o", world}).code == 0);

  const Outcome same = run_quarry({"diff", a, world});
  CHECK(same.code == 0);
  CHECK(has(same.out, "are equal: 3 voxels"));
  const Outcome same_json = run_quarry({"diff", "--json", a, world});
  CHECK(same_json.code == 0);
  CHECK(json::parse(same_json.out)["equal"] == true);

  const Outcome other = run_quarry({"diff", a, b});
  CHECK(other.code == 1);
  CHECK(has(other.out, "differ"));
  CHECK(other.err.empty());
  const Outcome other_json = run_quarry({"diff", "--json", a, b});
  CHECK(other_json.code == 1);
  const json report = json::parse(other_json.out);
  CHECK(report["equal"] == false);
  CHECK(report["added"] == 2);
  CHECK(report["removed"] == 1);
  CHECK(report["recoloured"] == 1);
  CHECK(report["same"] == 1);
  CHECK(report["voxels_a"] == 3);
  CHECK(report["voxels_b"] == 4);
  // File (0,3,0) and (0,3,1), pivot 2: world (-2,-2,-2) and (-2,-1,-2).
  CHECK(report["bounds"]["added"] == json({{"min", {-2, -2, -2}}, {"max", {-2, -1, -2}}}));
  CHECK(report["bounds"]["recoloured"] == json({{"min", {-1, -2, 1}}, {"max", {-1, -2, 1}}}));
  CHECK(run_quarry({"diff", "--shape", a, b}).code == 1);

  for (const std::vector<std::string>& words : {std::vector<std::string>{"diff", a},
                                                {"diff"},
                                                {"diff", a, b, a},
                                                {"diff", "--jsno", a, b},
                                                {"diff", a, (dir / "none.vox").string()},
                                                {"diff", write_bytes(dir / "cut.vox", {'V', 'O', 'X', ' '}), a}}) {
    const Outcome outcome = run_quarry(words);
    CHECK(outcome.code == 2);
    CHECK_FALSE(outcome.err.empty());
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("quarry validate: 0 for sound files, 1 for none, 3 for some, each bad one with its message") {
  const fs::path dir = scratch_dir("validate");
  const std::string good = write_bytes(dir / "good.vox", VoxBuilder().model(1, 1, 1, {{0, 0, 0, 1}}).bytes());
  const std::string odd =
      write_bytes(dir / "odd.vox", VoxBuilder().model(1, 1, 1, {{0, 0, 0, 1}, {7, 0, 0, 1}}).bytes());
  const std::string bad = write_bytes(dir / "bad.vox", {'V', 'O', 'X', ' ', 150, 0, 0, 0});
  const std::string far = write_bytes(dir / "far.vox", VoxBuilder(200)
                                                           .model(1, 1, 1, {{0, 0, 0, 1}})
                                                           .transform(0, 1, {{{"_t", "1000000 0 0"}}})
                                                           .shape(1, {{0, {}}})
                                                           .bytes());
  CHECK(run_quarry({"validate", good}).code == 0);
  CHECK(run_quarry({"validate", good, odd}).code == 0);
  const Outcome strict = run_quarry({"validate", "--strict", good, odd});
  CHECK(strict.code == 3);
  CHECK(has(strict.err, "outside its size"));
  const Outcome none = run_quarry({"validate", bad, far});
  CHECK(none.code == 1);
  CHECK(has(none.err, "bad.vox"));
  CHECK(has(none.err, "far.vox"));
  CHECK(run_quarry({"validate"}).code == 2);
  const Outcome some = run_quarry({"validate", "--json", bad, good, odd, (dir / "none.vox").string()});
  CHECK(some.code == 3);
  const json report = json::parse(some.out);
  REQUIRE(report.size() == 4);
  CHECK(report[0]["ok"] == false);
  CHECK(has(report[0]["error"], "MAIN"));
  CHECK(report[1]["ok"] == true);
  CHECK(report[1]["format"] == "vox");
  CHECK(report[1]["voxels"] == 1);
  CHECK(report[2]["warnings"].size() == 1);
  CHECK(report[3]["format"].is_null());

  // A world file with one byte changed in a chunk's compressed data.
  const std::string world = small_world(dir / "w.quarry");
  CHECK(run_quarry({"validate", world}).code == 0);
  std::vector<uint8_t> bytes = file_bytes(world);
  const std::array magic{0x28, 0xb5, 0x2f, 0xfd};
  const auto frame = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
  REQUIRE(bytes.end() - frame > 20);
  frame[20] ^= 0x55;
  write_bytes(world, bytes);
  CHECK(run_quarry({"validate", world}).code == 1);
}
