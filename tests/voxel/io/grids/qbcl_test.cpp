// SPDX-License-Identifier: Apache-2.0
// qbcl_test.cpp - the reader of Qubicle projects: the real file against known counts and the .qb file of the same
// figure, runs, nesting and axes on files made here, damaged files.
#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/grids/qbcl_seeds.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/grids/qb.hpp"
#include "voxel/worlds/flatten.hpp"

namespace qbcl_test {

using namespace quarry;
using test::Bytes;
using test::QbclBuilder;
namespace fs = std::filesystem;

namespace {
constexpr uint64_t kMemory = uint64_t(64) << 20;
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>* warnings) {
  return io::parse_qbcl(bytes, kMemory, warnings);
}

int red_at(const Scene& scene, Int3 cell) {
  const auto flat = flatten(scene, true);
  REQUIRE(flat);
  const uint8_t m = flat->get(cell);
  return m ? scene.palette.materials[m].r : -1;
}

void says(const Bytes& bytes, const std::string& begin, const std::string& part) {
  test::check_refused(parse(bytes, nullptr), begin, part);
}
}  // namespace

TEST_CASE(
    "qbcl: the real project has the known models and voxels, and its figure is that of the .qb file, voxel by voxel") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .qbcl file");
  const auto scene = io::read_scene(data / "other/chr_knight.qbcl"),
             knight = io::read_scene(data / "other/chr_knight.qb");
  REQUIRE(scene);
  REQUIRE(knight);
  CHECK(scene->metadata.at("source_format") == "qbcl");
  CHECK(scene->volumes.size() == 30);
  CHECK(test::voxels_of(*scene) == 7655);
  size_t compared = 0;
  for (size_t k = 0; k < knight->volumes.size(); ++k)
    for (size_t s = 0; s < scene->volumes.size(); ++s) {
      if (scene->volumes[s].name != knight->volumes[k].name) continue;
      ++compared;
      CHECK(scene->instances[s].offset == knight->instances[k].offset);
      REQUIRE(scene->volumes[s].size == knight->volumes[k].size);
      size_t different = 0;
      const Int3 size = scene->volumes[s].size;
      for (int32_t z = 0; z < size.z; ++z)
        for (int32_t y = 0; y < size.y; ++y)
          for (int32_t x = 0; x < size.x; ++x)
            different +=
                (scene->volumes[s].bricks.get({x, y, z}) != 0) != (knight->volumes[k].bricks.get({x, y, z}) != 0);
      CHECK(different == 0);
    }
  CHECK(compared == 17);
  // The second figure is a compound, whose own matrix merges its children.
  const auto whole =
      std::find_if(scene->volumes.begin(), scene->volumes.end(), [](const Volume& v) { return v.name == "Compound"; });
  REQUIRE(whole != scene->volumes.end());
  Scene parts = *scene, compound = *scene;
  for (size_t i = 0; i < scene->instances.size(); ++i) {
    const bool child = scene->instances[i].group_path == "Model/Compound",
               itself = scene->instances[i].volume == size_t(whole - scene->volumes.begin());
    parts.instances[i].hidden = !child;
    compound.instances[i].hidden = !itself;
  }
  const auto a = flatten(parts, true), b = flatten(compound, true);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a->bounds() == b->bounds());
  CHECK(a->voxel_count() == b->voxel_count());
}

TEST_CASE("qbcl: columns run along y for each x, then z; z is mirrored; runs are what single voxels are") {
  const QbclBuilder::Columns columns{
      {0xff000001, 0, 0xff000002}, {0x02000003, 0xff000003}, {}, {0x02000002, 0, 0xff000004}};
  const auto scene = parse(QbclBuilder().matrix("m", {2, 3, 2}, {10, 20, 30}, columns).bytes(), nullptr);
  REQUIRE(scene);
  CHECK(test::voxels_of(*scene) == 6);
  CHECK(red_at(*scene, {10, 20, -31}) == 1);  // x 0, z 0: world z = -1 - 30
  CHECK(red_at(*scene, {10, 22, -31}) == 2);
  for (int y = 0; y < 3; ++y) CHECK(red_at(*scene, {10, 20 + y, -32}) == 3);
  CHECK(red_at(*scene, {11, 22, -32}) == 4);
}

TEST_CASE("qbcl: groups become paths, hidden nodes hide what is in them, a compound moves its children") {
  const auto scene = parse(QbclBuilder()
                               .model("root", 2)
                               .model("off", 1, false)
                               .matrix("unseen", {1, 1, 1}, {0, 0, 0}, {{0xff000009}})
                               .compound("c", {1, 1, 1}, {10, 0, 0}, {{0xff000001}}, 1)
                               .matrix("child", {1, 1, 1}, {1, 2, 3}, {{0xff000002}})
                               .bytes(),
                           nullptr);
  REQUIRE(scene);
  REQUIRE(scene->instances.size() == 3);
  CHECK(scene->instances[0].hidden);
  CHECK(scene->instances[0].group_path == "root/off");
  CHECK_FALSE(scene->instances[1].hidden);
  CHECK(scene->instances[1].group_path == "root");
  CHECK(scene->instances[2].group_path == "root/c");
  CHECK(red_at(*scene, {11, 2, -4}) == 2);
  CHECK(scene->metadata.at("qbcl.title") == "a title");
  CHECK(scene->metadata.at("qbcl.author") == "somebody");
}

TEST_CASE("qbcl: every error names the byte and what was expected there") {
  says({}, "byte 0: ", "QBCL");
  says(QbclBuilder(3).model("m", 0).bytes(), "byte 8: ", "version 2");
  says(QbclBuilder().model("m", 0).bytes(), "the project has no matrix", "");
  says(QbclBuilder().put(7).put(1).put(0).put(0).bytes(), "byte 83: ", "node's type");
  says(QbclBuilder().model("m", 1000).bytes(), "byte 135: ", "1000 children");
  says(QbclBuilder().matrix("m", {1, 16385, 1}, {0, 0, 0}, {{}}).bytes(), "byte 99: ", "16384");
  says(QbclBuilder().matrix("m", {1, 1, 1}, {0, 1 << 25, 0}, {{}}).bytes(), "byte 111: ", "position");
  says(QbclBuilder().matrix("m", {1, 2, 1}, {0, 0, 0}, {{0x02000003, 0xff000001}}).bytes(),
       "the voxels of matrix 'm', byte 2: ", "3 voxels");
  says(QbclBuilder().matrix("m", {1, 2, 1}, {0, 0, 0}, {{0x02000001}}).bytes(),
       "the voxels of matrix 'm', byte 2: ", "without a voxel");
  says(QbclBuilder().matrix("m", {1, 1, 2}, {0, 0, 0}, {{}}).bytes(),
       "the voxels of matrix 'm', byte 2: ", "length of a column");
}

TEST_CASE("qbcl: nodes nested without end and matrices that claim the world are refused, not believed") {
  QbclBuilder deep;
  for (int i = 0; i < 2000; ++i) deep.model("m", 1);
  says(deep.matrix("m", {1, 1, 1}, {0, 0, 0}, {{}}).bytes(), "byte ", "nested");
  QbclBuilder::Columns columns(size_t(256) * 256);
  for (auto& column : columns)
    for (int i = 0; i < 64; ++i) column.insert(column.end(), {0x020000ff, 0xff000001});
  says(QbclBuilder().matrix("m", {256, 16384, 256}, {0, 0, 0}, columns).bytes(), "byte ", "bricks");
}

TEST_CASE("qbcl: cut after any byte, a project is an error that says so") {
  for (const auto& [name, bytes] : test::qbcl_seeds()) test::check_cuts(bytes, parse);
  if (const fs::path data = test::data_dir(); !data.empty())
    test::check_cuts(test::file_bytes(data / "other/chr_knight.qbcl"), parse, "byte ", 500);
}

TEST_CASE("qbcl: thousands of seeded mutations end in a whole scene or a clean error") {
  test::check_mutations(test::contents(test::qbcl_seeds()), parse, 3000);
}

}  // namespace qbcl_test
