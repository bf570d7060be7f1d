// SPDX-License-Identifier: Apache-2.0
// salvage_test.cpp - salvage of .vox files: whole parts are restored exactly, others are counted, and nothing happens
// without the option.
#include <catch2/catch.hpp>
#include <random>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/vox/read.hpp"

namespace salvage_test {

using namespace quarry;
using io::parse_vox;
using test::file_bytes, test::Saved, test::VoxBuilder;
using Bytes = VoxBuilder::Bytes;
namespace fs = std::filesystem;

namespace {

// Three models side by side in a group. Model n has n + 1 voxels of colour n + 1.
Bytes three_models() {
  VoxBuilder b(200);
  for (uint8_t n = 0; n < 3; ++n) {
    std::vector<VoxBuilder::Voxel> voxels;
    for (uint8_t i = 0; i <= n; ++i) voxels.push_back({i, 0, 0, uint8_t(n + 1)});
    b.model(4, 4 + n, 6, voxels);
  }
  b.transform(0, 1, {{}}).group(1, {2, 4, 6});
  for (int64_t n = 0; n < 3; ++n)
    b.transform(2 + 2 * n, 3 + 2 * n, {{{"_t", std::to_string(10 * n) + " 0 0"}}},
                {{"_name", "part " + std::to_string(n)}})
        .shape(3 + 2 * n, {{n, {}}});
  return b.palette({{10, 20, 30, 255}, {40, 50, 60, 255}, {70, 80, 90, 255}}).bytes();
}

size_t find(const Bytes& bytes, const char* id, int nth = 0) {
  auto at = bytes.begin();
  for (int n = 0; n <= nth; ++n) {
    at = std::search(at + (n > 0), bytes.end(), id, id + 4);
    REQUIRE(at != bytes.end());
  }
  return size_t(at - bytes.begin());
}

bool same_volume(const Volume& a, const Volume& b) {
  const auto &x = a.bricks.bricks(), &y = b.bricks.bricks();
  return a.size == b.size && x.size() == y.size() &&
         std::equal(x.begin(), x.end(), y.begin(),
                    [](const auto& p, const auto& q) { return p.first == q.first && p.second() == q.second(); });
}
bool same_place(const Instance& a, const Instance& b) {
  return a.volume == b.volume && a.offset == b.offset && a.rotation == b.rotation && a.name == b.name &&
         a.hidden == b.hidden;
}

Saved save(const Bytes& bytes) {
  CHECK_FALSE(parse_vox(bytes));  // there is no salvage without the option
  Saved s;
  auto scene = parse_vox(bytes, &s.warnings, &s.salvage);
  INFO((scene ? "" : scene.error().message));
  REQUIRE(scene);
  s.scene = std::move(*scene);
  CHECK_FALSE(s.salvage.losses().empty());
  CHECK_FALSE(s.warnings.empty());
  return s;
}

}  // namespace

TEST_CASE("vox salvage: a sound file gives the same scene and no loss") {
  const Bytes bytes = three_models();
  io::Salvage salvage;
  const auto a = parse_vox(bytes), b = parse_vox(bytes, nullptr, &salvage);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(salvage.losses().empty());
  CHECK(a->palette == b->palette);
  CHECK(a->metadata == b->metadata);
  REQUIRE(b->instances.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK((same_place(a->instances[i], b->instances[i]) && same_volume(a->volumes[i], b->volumes[i])));
}

TEST_CASE(
    "vox salvage: a lost model stays empty under its number, and all others keep their voxels, places and names") {
  const Bytes whole = three_models();
  const auto sound = parse_vox(whole);
  REQUIRE(sound);
  const auto check = [&](const Saved& s, size_t lost) {
    REQUIRE(s.scene.volumes.size() == 3);
    REQUIRE(s.scene.instances.size() == 3);
    CHECK(s.scene.palette == sound->palette);
    for (size_t i = 0; i < 3; ++i) {
      INFO("model " << i);
      CHECK((i == lost ? s.scene.volumes[i].bricks.empty() : same_volume(s.scene.volumes[i], sound->volumes[i])));
      if (i != lost) CHECK(same_place(s.scene.instances[i], sound->instances[i]));
    }
    CHECK(s.lost("models") == 1);
  };
  SECTION("the name of its voxels' chunk is damaged") {
    Bytes bytes = whole;
    bytes[find(bytes, "XYZI", 1)] = 0;
    check(save(bytes), 1);
  }
  SECTION("its size is impossible") {
    Bytes bytes = whole;
    bytes[find(bytes, "SIZE", 0) + 12 + 3] = 0x7f;
    check(save(bytes), 0);
  }
  SECTION("all of it is overwritten") {
    Bytes bytes = whole;
    std::fill(bytes.begin() + std::ptrdiff_t(find(bytes, "SIZE", 1)),
              bytes.begin() + std::ptrdiff_t(find(bytes, "SIZE", 2)), uint8_t(0xee));
    check(save(bytes), 1);
  }
}

TEST_CASE("vox salvage: a chunk whose length is wrong loses nothing if its voxels say where it ends") {
  const Bytes whole = three_models();
  const auto sound = parse_vox(whole);
  for (const uint8_t wrong : {uint8_t(1), uint8_t(0xff)}) {
    Bytes bytes = whole;
    bytes[find(bytes, "XYZI", 1) + 6] = wrong;  // 65536 times that
    io::Salvage salvage;
    const auto scene = parse_vox(bytes, nullptr, &salvage);
    REQUIRE(scene);
    REQUIRE(scene->volumes.size() == 3);
    for (size_t i = 0; i < 3; ++i)
      CHECK(
          (same_volume(scene->volumes[i], sound->volumes[i]) && same_place(scene->instances[i], sound->instances[i])));
  }
}

TEST_CASE("vox salvage: a MAIN chunk that calls its chunks its own content loses nothing, and that is said") {
  const Bytes sound = three_models();
  Bytes bytes = sound;
  std::swap_ranges(bytes.begin() + 12, bytes.begin() + 16, bytes.begin() + 16);
  const Saved s = save(bytes);
  CHECK(s.lost("main_length") == 1);
  const auto whole = parse_vox(sound);
  REQUIRE(s.scene.volumes.size() == whole->volumes.size());
  for (size_t i = 0; i < whole->volumes.size(); ++i) CHECK(same_volume(s.scene.volumes[i], whole->volumes[i]));
  CHECK(std::ranges::equal(s.scene.instances, whole->instances, same_place));
}

TEST_CASE("vox salvage: a file that ends early gives every model before the end, and says how many bytes are missing") {
  const Bytes whole = three_models();
  const auto sound = parse_vox(whole);
  for (size_t length = find(whole, "SIZE", 1); length < whole.size(); ++length) {
    INFO(length << " of " << whole.size() << " bytes");
    const Saved s = save(Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(length)));
    CHECK(s.lost("bytes_cut_off") == whole.size() - length);
    CHECK(s.lost("palette") == 1);
    for (size_t i = 0; i < 3; ++i)
      if (i == 0 || length >= find(whole, "SIZE", int(i)) + 24 + 16 + 4 * (i + 1))
        CHECK(same_volume(s.scene.volumes[i], sound->volumes[i]));
    for (const Instance& n : s.scene.instances) {
      const auto& should = sound->instances[n.volume];
      CHECK((same_place(n, should) || s.lost("parents") + s.lost("scene_graph") > 0));
    }
  }
}

TEST_CASE("vox salvage: a lost node of the scene graph loses its own part and no other") {
  const Bytes whole = three_models();
  const auto sound = parse_vox(whole);
  Bytes bytes = whole;
  bytes[find(bytes, "nSHP", 1) + 16] = 0xff;  // its number of attributes
  const Saved s = save(bytes);
  CHECK(s.lost("chunks") == 1);
  REQUIRE(s.scene.instances.size() == 2);
  CHECK(same_place(s.scene.instances[0], sound->instances[0]));
  CHECK(same_place(s.scene.instances[1], sound->instances[2]));
  for (size_t i = 0; i < 3; ++i) CHECK(same_volume(s.scene.volumes[i], sound->volumes[i]));
}

TEST_CASE("vox salvage: what is below a lost group stands where its own transforms put it, and that is said") {
  Bytes bytes = three_models();
  bytes[find(bytes, "nGRP")] = 0;
  const auto sound = parse_vox(three_models());
  const Saved s = save(bytes);
  CHECK(s.lost("parents") == 3);
  REQUIRE(s.scene.instances.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(same_place(s.scene.instances[i], sound->instances[i]));
}

TEST_CASE("vox salvage: where it cannot be known which models are missing, no shape shows a wrong one") {
  const Bytes whole = three_models();
  Bytes bytes = whole;
  std::fill(bytes.begin() + std::ptrdiff_t(find(bytes, "SIZE", 0)),
            bytes.begin() + std::ptrdiff_t(find(bytes, "SIZE", 1)), uint8_t(0xee));
  const size_t last = find(bytes, "nSHP", 2);
  bytes[last] = 0;  // the only shape that shows that there are three
  const auto sound = parse_vox(whole);
  const Saved s = save(bytes);
  CHECK(s.lost("nodes") == 3);  // two shapes, and the missing child
  for (const Instance& n : s.scene.instances) {
    const size_t shown = size_t(n.name.back() - '0');
    CHECK((s.scene.volumes[n.volume].bricks.empty() || same_volume(s.scene.volumes[n.volume], sound->volumes[shown])));
  }
}

TEST_CASE("vox salvage: nothing left is an error") {
  for (const Bytes& bytes : {Bytes{}, Bytes{'V', 'O', 'X', ' ', 150, 0, 0, 0}, Bytes(5000, 'S')}) {
    io::Salvage salvage;
    const auto scene = parse_vox(bytes, nullptr, &salvage);
    REQUIRE_FALSE(scene);
    CHECK(scene.error().message.find("no model is left") != std::string::npos);
  }
}

TEST_CASE("vox salvage: real files with bytes changed at random never crash, and what is given holds together") {
  const fs::path dir = test::data_dir();
  if (dir.empty()) return test::skip("no test data");
  for (const auto& entry : fs::directory_iterator(dir / "broken-vox")) {
    io::Salvage salvage;
    std::vector<std::string> warnings;
    const auto bytes = file_bytes(entry.path());
    const auto plain = parse_vox(bytes);
    const auto scene = parse_vox(bytes, &warnings, &salvage);
    INFO(entry.path());
    CHECK((scene || !scene.error().message.empty()));
    if (!plain && scene) CHECK_FALSE(salvage.losses().empty());
    if (plain) {
      REQUIRE(scene);
      REQUIRE(scene->volumes.size() == plain->volumes.size());
      for (size_t v = 0; v < plain->volumes.size(); ++v) CHECK(same_volume(plain->volumes[v], scene->volumes[v]));
      CHECK(scene->instances.size() == plain->instances.size());
    }
  }
  std::mt19937 random(7);
  const Bytes whole = three_models();
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = whole;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) bytes[random() % bytes.size()] = uint8_t(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    io::Salvage salvage;
    const auto plain = parse_vox(bytes), scene = parse_vox(bytes, nullptr, &salvage);
    INFO("round " << round << ": " << (plain ? "" : plain.error().message));
    if (!plain && scene) CHECK_FALSE(salvage.losses().empty());
    if (scene)
      for (const Instance& n : scene->instances)
        REQUIRE((n.volume < scene->volumes.size() && n.layer < int64_t(scene->layers.size())));
  }
}

}  // namespace salvage_test
