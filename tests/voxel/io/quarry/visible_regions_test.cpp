// SPDX-License-Identifier: Apache-2.0
// visible_regions_test.cpp - worlds read in pieces, and grids, meshes and pictures written from some layers or boxes at
// a time, have the same bytes as those from a whole scene.
#include "voxel/io/quarry/visible_regions.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/export_loss.hpp"
#include "voxel/io/files/spill.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/grids/write.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/io/pictures/write.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/io/vox/write.hpp"
#include "voxel/operations/box_facts.hpp"

namespace visible_regions_test {

using namespace quarry;
namespace fs = std::filesystem;

namespace {

// Rotated, mirrored, overlapping, hidden and unplaced volumes at odd offsets, over many chunks.
Scene crowd(uint32_t seed) {
  std::mt19937 random(seed);
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  Scene s;
  s.volumes.resize(4);
  for (size_t v = 0; v < 4; ++v) {
    s.volumes[v].name = std::string(1, char(97 + v));
    for (int i = 0; i < 3000; ++i)
      s.volumes[v].bricks.set({number(-100, 90), number(0, 120), number(-40, 200)}, uint8_t(number(1, 255)));
  }
  for (int i = 0; i < 8; ++i) {
    Instance n;
    n.volume = uint32_t(i % 3);
    std::array<uint8_t, 3> axis{0, 1, 2};
    std::shuffle(axis.begin(), axis.end(), random);
    n.rotation.axis = axis;
    for (auto& sign : n.rotation.sign) sign = random() & 1 ? int8_t(1) : int8_t(-1);
    n.offset = {number(-200, 200), number(150, 200), number(-200, 200)};
    n.hidden = i == 5;
    s.instances.push_back(n);
  }
  s.overlap = seed & 1 ? OverlapRule::last_instance_wins : OverlapRule::first_instance_wins;
  s.metadata["origin"] = "1 2 3";
  s.metadata["voxel_size"] = "0.5";
  return s;
}

std::vector<VolumeSummary> summaries(const Scene& scene) {
  std::vector<VolumeSummary> out(scene.volumes.size());
  for (size_t v = 0; v < out.size(); ++v) out[v].add(scene.volumes[v].bricks);
  return out;
}
std::vector<Box3> bounds_of(const Scene& scene) {
  std::vector<Box3> out;
  for (const auto& v : summaries(scene)) out.push_back(v.bounds);
  return out;
}

}  // namespace

TEST_CASE("store reader: a world copied region by region has the bytes of one that was read and saved") {
  const fs::path dir = test::scratch_dir("store-regions");
  const Scene scene = crowd(3);
  REQUIRE(io::Store::save(scene, dir / "world.quarry"));
  for (const uint64_t available_bytes : {uint64_t(0), uint64_t(1) << 20, uint64_t(1) << 33}) {
    RegionSink sink;
    const Progress progress;
    std::optional<io::StoreWriter> writer;
    size_t taken = 0;
    sink.available_bytes = [&] { return available_bytes; };
    sink.begin = [&](const Scene& head) -> Result<void> {
      QRY_TRY_ASSIGN(auto made, io::StoreWriter::create(head, dir / "copy.quarry", progress));
      writer.emplace(std::move(made));
      return {};
    };
    sink.take = [&](uint32_t volume, BrickMap&& bricks) {
      ++taken;
      const BrickMap all = std::move(bricks);
      if (available_bytes < 10000) CHECK(all.bricks().size() <= 512);
      return writer->append(volume, all);
    };
    auto reader = io::StoreReader::open(dir / "world.quarry");
    REQUIRE(reader);
    const auto done = reader->read_all(sink, progress);
    REQUIRE(done);
    CHECK(done->regions == taken);
    CHECK((available_bytes > uint64_t(1) << 30 ? taken == 4 : taken > 8));
    REQUIRE(writer->commit());
    CHECK((test::file_text(dir / "copy.quarry") == test::file_text(dir / "world.quarry")));
  }
}

TEST_CASE("store reader: a box of chunks has its bricks and no others, and damage is found") {
  const fs::path dir = test::scratch_dir("store-box");
  const Scene scene = crowd(4);
  REQUIRE(io::Store::save(scene, dir / "world.quarry"));
  auto reader = io::StoreReader::open(dir / "world.quarry");
  REQUIRE(reader);
  std::mt19937 random(5);
  for (int i = 0; i < 30; ++i) {
    const auto at = [&] { return int32_t(random() % 7) - 3; };
    const Int3 a{at(), at(), at()}, b{at(), at(), at()};
    const Box3 box = united({a, a}, {b, b});
    const auto volume = uint32_t(random() % 4);
    BrickMap expected, got;
    for (const auto& [where, brick] : scene.volumes[volume].bricks.bricks()) {
      const Int3 c{where.x >> 3, where.y >> 3, where.z >> 3};
      if (c.x >= box.min.x && c.x <= box.max.x && c.y >= box.min.y && c.y <= box.max.y && c.z >= box.min.z &&
          c.z <= box.max.z)
        expected.put(where, brick);
    }
    REQUIRE(reader->read(volume, box, got, {}));
    CHECK(got == expected);
    CHECK(*reader->count_bricks(volume, box) == expected.bricks().size());
  }
  std::string bytes = test::file_text(dir / "world.quarry");
  for (size_t at = bytes.size() / 2; at < bytes.size(); at += 997) bytes[at] = char(bytes[at] ^ 1);
  std::ofstream(dir / "bad.quarry", std::ios::binary) << bytes;
  auto bad = io::StoreReader::open(dir / "bad.quarry");
  if (bad) {
    RegionSink sink;
    sink.available_bytes = [] { return uint64_t(1) << 30; };
    sink.begin = [](const Scene&) -> Result<void> { return {}; };
    sink.take = [](uint32_t, BrickMap&&) -> Result<void> { return {}; };
    const auto read = bad->read_all(sink, {});
    REQUIRE(!read);
    CHECK(read.error().code == ErrorCode::malformed_input);
  }
}

TEST_CASE("visible regions: with where they are from, bricks are those of the whole scene, in any memory") {
  const fs::path dir = test::scratch_dir("regions-shown");
  for (const uint32_t seed : {6u, 7u}) {
    Scene scene = crowd(seed);
    for (size_t i = 0; i < scene.instances.size(); i += 2) {
      Instance& its = scene.instances[i];
      its.rotation = {};
      its.offset = {its.offset.x & ~7, its.offset.y & ~7, its.offset.z & ~7};
    }
    scene.volumes[0].bricks.put({3, 3, 3}, full_brick(8));
    REQUIRE(io::Store::save(scene, dir / "world.quarry"));
    auto store = io::StoreReader::open(dir / "world.quarry");
    REQUIRE(store);
    const auto whole = flatten(scene, true);
    REQUIRE(whole);
    // Each of the scene's own bricks, for who has its handle.
    std::vector<std::pair<const BrickMask*, std::pair<uint32_t, Int3>>> own;
    for (uint32_t v = 0; v < scene.volumes.size(); ++v)
      for (const BrickMap::Entry& entry : scene.volumes[v].bricks.bricks())
        if (!entry.handle->material()) own.push_back({&(*entry.handle)->mask, {v, entry.first}});
    for (const uint64_t bytes : {uint64_t(8) << 20, uint64_t(1) << 34}) {
      const auto regions = io::VisibleRegions::of(*store, bounds_of(scene), [bytes] { return bytes; }, {});
      REQUIRE(regions);
      const Box3 box = regions->bounds();
      BrickMap all;
      uint64_t as_they_are = 0;
      REQUIRE(regions->visit_shown({brick_of(box.min), brick_of(box.max)}, [&](const auto& bricks) -> Result<void> {
        for (const auto& shown : bricks) {
          REQUIRE_FALSE(all.find(shown.brick));
          all.put(shown.brick, shown.value);
          const SharedBrick expected = whole->share(shown.brick);
          const auto found = std::ranges::find_if(
              own, [&](const auto& one) { return !expected.material() && one.first == &(*expected).mask; });
          REQUIRE((found != own.end()) == shown.source.has_value());
          if (!shown.source) continue;
          ++as_they_are;
          REQUIRE(shown.source->volume == found->second.first);
          REQUIRE(shown.source->brick == found->second.second);
        }
        return {};
      }));
      CHECK(all == *whole);
      CHECK(as_they_are > 1000);
      CHECK((bytes < 1u << 30) == (regions->read_regions() > 1));
    }
  }
}

TEST_CASE("vox: read model by model it gives the world, the warnings and the errors of a whole reading") {
  const fs::path dir = test::scratch_dir("vox-regions");
  std::vector<fs::path> files;
  Scene scene = crowd(2);
  for (int32_t x = 0; x < 700; ++x) scene.volumes[3].bricks.set({x, x / 2, 5}, 9);  // becomes several models
  REQUIRE(io::write_vox(scene, dir / "crowd.vox", {}));
  files.push_back(dir / "crowd.vox");
  const std::string whole = test::file_text(files[0]);
  for (const size_t length : {size_t(0), size_t(7), size_t(19), size_t(30), whole.size() / 2, whole.size() - 1}) {
    files.push_back(dir / ("cut" + std::to_string(length) + ".vox"));
    std::ofstream(files.back(), std::ios::binary) << whole.substr(0, length);
  }
  {
    // There are more voxels than may be placed, by a model whose bricks are freed when its instances are counted.
    std::vector<test::VoxBuilder::Voxel> full;
    for (int i = 0; i < 32768; ++i) full.push_back({uint8_t(i & 31), uint8_t(i >> 5 & 31), uint8_t(i >> 10), 1});
    test::VoxBuilder builder(200);
    builder.model(32, 32, 32, full)
        .group(0, std::vector<int64_t>(33, 1))
        .group(1, std::vector<int64_t>(32, 2))
        .group(2, std::vector<int64_t>(32, 3))
        .shape(3, {{0, {}}});
    files.push_back(dir / "placed.vox");
    test::write_bytes(files.back(), builder.bytes());
  }
  const fs::path data = test::data_dir();
  if (data.empty()) test::skip("no real .vox files");
  else
    for (const char* folder : {"vox", "broken-vox"})
      for (const auto& entry : fs::directory_iterator(data / folder))
        if (entry.path().extension() == ".vox") files.push_back(entry.path());
  size_t good = 0;
  for (const fs::path& file : files) {
    INFO(file.string());
    io::ReadOptions options;
    std::vector<std::string> warnings, warnings_whole;
    options.warnings = &warnings_whole;
    const auto read = io::read_scene(file, options);
    options.warnings = &warnings;
    const Progress progress;
    std::optional<io::StoreWriter> writer;
    RegionSink sink;
    sink.available_bytes = [] { return uint64_t(1) << 30; };
    sink.begin = [&](const Scene& head) -> Result<void> {
      QRY_TRY_ASSIGN(auto made, io::StoreWriter::create(head, dir / "parts.quarry", progress));
      writer.emplace(std::move(made));
      return {};
    };
    sink.take = [&](uint32_t volume, BrickMap&& bricks) {
      const BrickMap taken = std::move(bricks);
      return writer->append(volume, taken);
    };
    const auto done = io::read_scene_regions(file, options, sink);
    if (!read) {
      REQUIRE(!done);
      CHECK(done.error().code == read.error().code);
      CHECK(done.error().message == read.error().message);
      CHECK(warnings == warnings_whole);
      continue;
    }
    if (!done) FAIL(done.error().message);
    ++good;
    CHECK(warnings == warnings_whole);
    REQUIRE(writer->commit());
    writer.reset();
    REQUIRE(io::Store::save(*read, dir / "whole.quarry"));
    CHECK((test::file_text(dir / "parts.quarry") == test::file_text(dir / "whole.quarry")));
  }
  CHECK(good > 0);
}

TEST_CASE("grids: written from some layers at a time they have the bytes of those written at once") {
  const fs::path dir = test::scratch_dir("grid-regions");
  for (uint32_t seed = 1; seed <= (test::kSanitized ? 2 : 4); ++seed) {
    const Scene scene = crowd(seed);
    REQUIRE(io::Store::save(scene, dir / "world.quarry"));
    REQUIRE(io::write_binvox(scene, dir / "whole.binvox", {}));
    REQUIRE(io::write_raw(scene, dir / "whole.nrrd", {}));
    for (const uint64_t available_bytes : {uint64_t(14) << 20, uint64_t(1) << 33}) {
      auto store = io::StoreReader::open(dir / "world.quarry");
      REQUIRE(store);
      const auto voxels =
          io::VisibleRegions::of(*store, bounds_of(scene), [available_bytes] { return available_bytes; }, {});
      REQUIRE(voxels);
      const auto binvox = io::write_binvox_regions(*voxels, dir / "parts.binvox", {});
      if (!binvox) FAIL(binvox.error().message);
      const uint64_t regions = voxels->read_regions();
      INFO("regions " << regions << " with room for " << available_bytes);
      CHECK((available_bytes > uint64_t(1) << 30 ? regions <= 3 : regions > 1));
      REQUIRE(io::write_raw_regions(*voxels, dir / "parts.nrrd", {}));
      CHECK(voxels->read_regions() > regions);
      CHECK((test::file_text(dir / "parts.binvox") == test::file_text(dir / "whole.binvox")));
      CHECK((test::file_text(dir / "parts.nrrd") == test::file_text(dir / "whole.nrrd")));
    }
    auto store = io::StoreReader::open(dir / "world.quarry");
    const auto voxels = io::VisibleRegions::of(*store, bounds_of(scene), [] { return uint64_t(1000); }, {});
    REQUIRE(voxels);
    const auto small = io::write_raw_regions(*voxels, dir / "small.nrrd", {});
    REQUIRE(!small);
    CHECK(small.error().code == ErrorCode::out_of_memory);
    CHECK(!fs::exists(dir / "small.nrrd"));
  }
}

TEST_CASE("pictures: of some voxels at a time they have the bytes of those of all at once") {
  using Write = Result<void> (*)(const io::VisibleRegions&, const io::Destination&, const Progress&);
  const fs::path dir = test::scratch_dir("pictures-regions"), world = dir / "world.quarry";
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    const Scene scene = crowd(seed);
    REQUIRE(io::Store::save(scene, world));
    const auto all = io::VisibleRegions::of(scene, {});
    REQUIRE(all);
    const Int3 size = all->bounds().max - all->bounds().min + Int3{1, 1, 1};
    const uint64_t picture = 12 * uint64_t(size.x) * uint64_t(size.z);
    for (const Write write :
         {Write(io::write_top_view_regions), Write(io::write_height_map), Write(io::write_slices)}) {
      const bool slices = write == Write(io::write_slices);
      REQUIRE(write(*all, dir / "whole", {}));
      uint64_t regions = 0;
      for (const uint64_t room : {uint64_t(1) << 33, picture + 200'000}) {
        auto store = io::StoreReader::open(world);
        REQUIRE(store);
        const auto voxels = io::VisibleRegions::of(*store, bounds_of(scene), [room] { return room; }, {});
        REQUIRE(voxels);
        REQUIRE(write(*voxels, dir / "parts", {}));
        CHECK(voxels->read_regions() > regions);
        regions = voxels->read_regions();
        for (int32_t layer = 0; layer < (slices ? size.y : 1); ++layer) {
          char name[16];
          std::snprintf(name, sizeof name, "%04d.png", layer);
          const auto in = [&](const char* picture_of) { return slices ? dir / picture_of / name : dir / picture_of; };
          REQUIRE((test::file_text(in("parts")) == test::file_text(in("whole"))));
        }
        fs::remove_all(dir / "parts");
      }
      auto store = io::StoreReader::open(world);
      REQUIRE(store);
      // Too little for the picture; then enough for that, and too little for a brick.
      for (const uint64_t later : {picture - 1, uint64_t(1000)}) {
        bool asked = later < picture - 1;
        const auto voxels = io::VisibleRegions::of(*store, bounds_of(scene),
                                                   [&] { return std::exchange(asked, false) ? picture : later; }, {});
        REQUIRE(voxels);
        const auto refused = write(*voxels, dir / "parts", {});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::out_of_memory);
      }
      fs::remove_all(dir / "whole");
      CHECK(std::distance(fs::directory_iterator(dir), fs::directory_iterator()) == 1);
    }
  }
}

TEST_CASE("meshes: written from some layers at a time they have the bytes of those written at once") {
  const fs::path dir = test::scratch_dir("mesh-regions");
  const std::vector<const char*> kinds[] = {
      test::kSanitized ? std::vector<const char*>{"obj"} : std::vector<const char*>{"glb", "obj"},
      test::kSanitized ? std::vector<const char*>{"ply"} : std::vector<const char*>{"glb", "ply"},
      {"gltf"}};
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    Scene scene = crowd(seed);
    if (seed == 3) scene.metadata[io::kMeshScaleKey] = "4";
    for (size_t m = 1; m < 256; m += 5) scene.palette.materials[m].transparency = seed == 2 ? 0.5f : 0;
    // A part with large rectangles, across several chunks.
    for (int32_t x = 0; x < 200; ++x)
      for (int32_t z = -70; z < 70; ++z) scene.volumes[0].bricks.set({x, (x + z) / 90, z}, uint8_t(1 + (x > 150)));
    REQUIRE(io::Store::save(scene, dir / "world.quarry"));
    for (const char* extension : kinds[seed - 1]) {
      const auto format = io::format_for_writing(dir / (std::string("name.") + extension));
      REQUIRE(format);
      // The name is in the file, so both have the same.
      fs::create_directories(dir / "whole");
      fs::create_directories(dir / "parts");
      const fs::path whole = dir / "whole" / (std::string("name.") + extension),
                     parts = dir / "parts" / (std::string("name.") + extension);
      REQUIRE((*format)->write(scene, whole, {}));
      for (const uint64_t available_bytes : {uint64_t(16) << 20, uint64_t(1) << 33}) {
        if (test::kSanitized && seed > 1 && available_bytes > uint64_t(1) << 30) continue;  // as a whole
        auto store = io::StoreReader::open(dir / "world.quarry");
        REQUIRE(store);
        const auto voxels =
            io::VisibleRegions::of(*store, bounds_of(scene), [available_bytes] { return available_bytes; }, {});
        REQUIRE(voxels);
        const auto written = (*format)->write_regions(*voxels, parts, {});
        if (!written) FAIL(written.error().message);
        INFO(extension << " of seed " << seed << ", regions " << voxels->read_regions() << " with room for "
                       << available_bytes);
        CHECK((available_bytes > uint64_t(1) << 30 ? voxels->read_regions() <= 4 : voxels->read_regions() > 4));
        CHECK((test::file_text(parts) == test::file_text(whole)));
        CHECK(size_t(std::distance(fs::directory_iterator(dir / "parts"), fs::directory_iterator())) ==
              (std::string_view(extension) == "obj" ? 2 : 1));
        fs::remove_all(dir / "parts");
        fs::create_directories(dir / "parts");
      }
      fs::remove_all(dir / "whole");
    }
    auto store = io::StoreReader::open(dir / "world.quarry");
    const auto voxels = io::VisibleRegions::of(*store, bounds_of(scene), [] { return uint64_t(1000); }, {});
    REQUIRE(voxels);
    const auto small = io::write_gltf_regions(*voxels, dir / "small.glb", {});
    REQUIRE(!small);
    CHECK(small.error().code == ErrorCode::out_of_memory);
    CHECK(!fs::exists(dir / "small.glb"));
  }
}

TEST_CASE("meshes: worlds that are thin along any axis need only slabs of the other two") {
  const fs::path dir = test::scratch_dir("mesh-thin");
  fs::create_directories(dir / "parts");
  for (size_t thin = 0; thin < 3; ++thin) {
    std::mt19937 random{uint32_t(thin)};
    Scene scene;
    scene.volumes.resize(1);
    scene.instances.resize(1);
    for (int i = 0; i < 30000; ++i) {
      std::array<int32_t, 3> c{int32_t(random() % 300), int32_t(random() % 300), int32_t(random() % 300)};
      c[thin] %= 20;
      // Half of the voxels are in rows, so that rectangles are long in every direction.
      if (i % 2) c[random() % 3] &= ~31;
      scene.volumes[0].bricks.set({c[0] - 7, c[1], c[2] - 150}, uint8_t(1 + random() % 3));
    }
    for (int32_t a = 0; a < 300; ++a)
      for (int32_t b = 0; b < 300; ++b) {
        std::array<int32_t, 3> c{a, a, a};
        c[(thin + 1) % 3] = b;
        c[thin] = 9 + (a > 100 && b < 200);
        scene.volumes[0].bricks.set({c[0] - 7, c[1], c[2] - 150}, 4);
      }
    REQUIRE(io::Store::save(scene, dir / "world.quarry"));
    REQUIRE(io::write_gltf(scene, dir / "world.glb", {}));
    auto store = io::StoreReader::open(dir / "world.quarry");
    REQUIRE(store);
    const auto voxels = io::VisibleRegions::of(*store, bounds_of(scene), [] { return uint64_t(3) << 20; }, {});
    REQUIRE(voxels);
    const auto written = io::write_gltf_regions(*voxels, dir / "parts" / "world.glb", {});
    INFO("thin along axis " << thin);
    if (!written) FAIL(written.error().message);
    CHECK(voxels->read_regions() > 4);
    CHECK((test::file_text(dir / "parts" / "world.glb") == test::file_text(dir / "world.glb")));
  }
}

TEST_CASE("spill: values sorted in runs come in order and once, and a failure is said") {
  const fs::path dir = test::scratch_dir("spill");
  std::mt19937_64 random(9);
  for (const size_t count : {size_t(0), size_t(1), size_t(1000), size_t(1024), size_t(1025), size_t(50000)}) {
    auto spill = io::Spill::create(dir / "out");
    REQUIRE(spill);
    CHECK(fs::is_empty(dir));
    io::SpilledSort<uint64_t> sort(**spill, 1024 * 8);
    std::vector<uint64_t> expected;
    for (size_t i = 0; i < count; ++i) {
      expected.push_back(random() % (count / 2 + 1));
      sort.add(expected.back());
    }
    sort.finish();
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    std::vector<uint64_t> got;
    for (uint64_t v = 0; sort.next(v);) got.push_back(v);
    CHECK((*spill)->good());
    CHECK(got == expected);
  }
  CHECK(io::Spill::create(dir / "no" / "out").error().code == ErrorCode::not_found);
  auto spill = io::Spill::create(dir / "out");
  uint8_t byte = 0;
  CHECK(!(*spill)->read(0, {&byte, 1}));
  CHECK((*spill)->good().error().code == ErrorCode::io);
}

TEST_CASE("grids: an instance that is too far out is refused region by region as it is at once") {
  const fs::path dir = test::scratch_dir("grid-outside");
  Scene scene = crowd(1);
  scene.instances[0].offset.x = (1 << 30) + 5000;
  REQUIRE(io::Store::save(scene, dir / "world.quarry"));
  auto store = io::StoreReader::open(dir / "world.quarry");
  REQUIRE(store);
  CHECK(io::write_raw(scene, dir / "a.nrrd", {}).error().code == ErrorCode::out_of_bounds);
  CHECK(io::VisibleRegions::of(*store, bounds_of(scene), [] { return uint64_t(1) << 30; }, {}).error().code ==
        ErrorCode::out_of_bounds);
}

TEST_CASE("visible regions: a box of a world file has the voxels of the flattened scene, and few others are read") {
  const fs::path dir = test::scratch_dir("visible-in-box");
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Scene scene = crowd(seed);
    const fs::path file = dir / (std::to_string(seed) + ".quarry");
    REQUIRE(io::Store::save(scene, file, {}).has_value());
    const auto all = flatten(scene, true);
    REQUIRE(all.has_value());
    auto store = io::StoreReader::open(file);
    REQUIRE(store.has_value());
    std::mt19937 random(seed);
    const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
    for (uint32_t i = 0; i < 24; ++i) {
      const Int3 at{number(-300, 300), number(0, 350), number(-400, 400)};
      const int32_t edge = i % 3 == 0 ? 0 : number(1, i % 3 == 1 ? 20 : 300);
      const Box3 box = i == 0 ? Box3{{INT32_MIN, INT32_MIN, INT32_MIN}, {INT32_MAX, INT32_MAX, INT32_MAX}}
                              : Box3{at, {at.x + edge, at.y + edge / 2, at.z + edge}};
      uint64_t read = 0;
      const auto some = io::visible_in_box(*store, box, &read, {});
      REQUIRE(some.has_value());
      const Box3 inside = intersected(box, {kWorldMin, kWorldMax});
      const BoxFacts facts = box_facts(*some, inside), expected = box_facts(*all, inside);
      REQUIRE(facts.voxels == expected.voxels);
      REQUIRE(facts.bricks == expected.bricks);
      REQUIRE(facts.bounds == expected.bounds);
      REQUIRE(facts.of_material == expected.of_material);
      if (i == 0) REQUIRE(facts.voxels == all->voxel_count());
      if (i % 3 == 0 && i != 0) REQUIRE(read < store->bricks());
    }
    uint64_t read = 7;
    CHECK(io::visible_in_box(*store, {{9000, 0, 0}, {9001, 0, 0}}, &read, {})->empty());
    CHECK(read == 0);
  }
}

TEST_CASE("visible regions: many boxes read together have the voxels of each read alone, and come in their order") {
  const fs::path dir = test::scratch_dir("visible-in-boxes");
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Scene scene = crowd(seed);
    const fs::path file = dir / (std::to_string(seed) + ".quarry");
    REQUIRE(io::Store::save(scene, file, {}).has_value());
    auto store = io::StoreReader::open(file);
    REQUIRE(store.has_value());
    std::vector<Box3> boxes;
    for (int32_t x = -512; x < 512; x += 128)
      for (int32_t y = -128; y < 512; y += 128)
        for (int32_t z = -512; z < 512; z += 128) boxes.push_back({{x, y, z}, {x + 127, y + 127, z + 127}});
    boxes.push_back({{9000, 0, 0}, {9001, 0, 0}});  // outside the world
    for (const size_t most_waiting : {size_t(0), size_t(1), size_t(3), size_t(1000)}) {
      std::vector<BoxFacts> facts(boxes.size());
      std::vector<uint64_t> read(boxes.size(), 7);
      std::vector<size_t> order;
      const auto take = [&](size_t i, const BrickMap& bricks, uint64_t bricks_read) -> Result<void> {
        facts[i] = box_facts(bricks, boxes[i]);
        read[i] = bricks_read;
        return {};
      };
      const auto put = [&](size_t i) -> Result<void> {
        order.push_back(i);
        return {};
      };
      REQUIRE(io::visible_in_boxes(*store, boxes, bounds_of(scene), {take, put}, {}, most_waiting));
      REQUIRE(std::ranges::is_sorted(order));
      REQUIRE(order.size() == boxes.size());
      for (size_t i = 0; i < boxes.size(); ++i) {
        uint64_t alone = 0;
        const auto expected = io::visible_in_box(*store, boxes[i], &alone, {});
        REQUIRE(expected.has_value());
        const BoxFacts own = box_facts(*expected, boxes[i]);
        REQUIRE(facts[i].voxels == own.voxels);
        REQUIRE(facts[i].bounds == own.bounds);
        REQUIRE(facts[i].of_material == own.of_material);
        // Instances whose voxels are elsewhere are left out, so it may be fewer.
        REQUIRE(read[i] <= alone);
      }
    }
  }
}

TEST_CASE("visible regions: of many boxes the first that fails is told, and nothing after it is put") {
  const fs::path file = test::scratch_dir("visible-in-boxes-fail") / "world.quarry";
  const Scene scene = crowd(2);
  REQUIRE(io::Store::save(scene, file, {}).has_value());
  auto store = io::StoreReader::open(file);
  REQUIRE(store.has_value());
  const std::vector<Box3> boxes(40, Box3{{0, 0, 0}, {127, 127, 127}});
  std::vector<size_t> order;
  const auto put = [&](size_t i) -> Result<void> {
    order.push_back(i);
    return {};
  };
  const auto take = [&](size_t i, const BrickMap&, uint64_t) -> Result<void> {
    if (i >= 20) return fail(ErrorCode::full, std::to_string(i));
    return {};
  };
  const auto error = io::visible_in_boxes(*store, boxes, bounds_of(scene), {take, put}, {}, 8).error();
  CHECK(error.code == ErrorCode::full);
  CHECK(error.message.ends_with("20"));
  CHECK(order.size() == 20);
  order.clear();
  const auto full = [&](size_t i) -> Result<void> {
    if (i == 7) return fail(ErrorCode::full, "seven");
    order.push_back(i);
    return {};
  };
  const auto none = [](size_t, const BrickMap&, uint64_t) -> Result<void> { return {}; };
  CHECK(io::visible_in_boxes(*store, boxes, bounds_of(scene), {none, full}, {}, 8).error().message.ends_with("seven"));
  CHECK(order.size() == 7);
  const std::atomic<bool> cancel{true};
  CHECK(io::visible_in_boxes(*store, boxes, bounds_of(scene), {none, put}, {.report = {}, .cancel = &cancel}, 8)
            .error()
            .code == ErrorCode::cancelled);
}

TEST_CASE("chunks: what their visitor lacks is its own error, and no damage of the file") {
  const fs::path file = test::scratch_dir("regions-visitor") / "world.quarry";
  REQUIRE(io::Store::save(crowd(3), file, {}).has_value());
  auto store = io::StoreReader::open(file);
  REQUIRE(store.has_value());
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::full, ErrorCode::device, ErrorCode::cancelled}) {
    const auto visited = store->visit_all(
        [&](uint32_t, const io::PackedChunk&) -> Result<void> { return fail(code, "no more of it"); }, {});
    REQUIRE(!visited.has_value());
    CHECK(visited.error().code == code);
    CHECK(visited.error().message == file.string() + ": no more of it");
  }
  const auto damaged = store->visit_all(
      [](uint32_t, const io::PackedChunk&) -> Result<void> { return fail(ErrorCode::malformed_input, "nonsense"); },
      {});
  REQUIRE(!damaged.has_value());
  CHECK(damaged.error().message.ends_with("nonsense; the file is damaged"));
}

}  // namespace visible_regions_test
