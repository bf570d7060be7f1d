// SPDX-License-Identifier: Apache-2.0
// salvage_test.cpp - salvage of .quarry files: every chunk with a right checksum is restored exactly, wherever the
// database is broken. Losses are counted, and the damaged file is not changed. Whatever is damaged, reading region by
// region gives the same (salvaged.hpp).
#include "voxel/io/quarry/salvage.hpp"

#include <sqlite3.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <random>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/quarry/salvaged.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/io/quarry/writer.hpp"

namespace salvage_test {

using namespace quarry;
using io::Store;
using test::Bytes, test::file_bytes, test::same_scene, test::Saved, test::write_bytes;
namespace fs = std::filesystem;

namespace {

constexpr size_t kPage = 4096;

void sql(const fs::path& file, const std::string& text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

Saved save(const fs::path& file) {
  const Bytes before = file_bytes(file);
  Saved s;
  auto scene = test::salvaged(file, s.salvage, &s.warnings);
  INFO((scene ? "" : scene.error().message));
  REQUIRE(scene);
  s.scene = std::move(*scene);
  CHECK(file_bytes(file) == before);
  return s;
}

// Checks that each chunk of 64^3 is unchanged or missing. Returns how many are missing.
uint64_t missing_chunks(const BrickMap& was, const BrickMap& is) {
  std::map<Int3, std::pair<uint64_t, uint64_t>> chunks;  // bricks that were, that are
  for (const auto& [at, brick] : was.bricks()) ++chunks[Int3{at.x >> 3, at.y >> 3, at.z >> 3}].first;
  for (const auto& [at, brick] : is.bricks()) {
    const auto old = was.find(at);
    REQUIRE(old);
    REQUIRE(*old == brick);
    ++chunks[Int3{at.x >> 3, at.y >> 3, at.z >> 3}].second;
  }
  uint64_t missing = 0;
  for (const auto& [at, counts] : chunks) {
    REQUIRE((counts.second == 0 || counts.second == counts.first));
    missing += counts.second == 0;
  }
  return missing;
}

// Some 150 chunks in two volumes.
Scene wide_scene() {
  Scene s = test::busy_scene();
  std::mt19937 random(11);
  for (int i = 0; i < 40000; ++i)
    s.volumes[0].bricks.set({int32_t(random() % 700) - 350, int32_t(random() % 20), int32_t(random() % 700) - 350},
                            uint8_t(1 + random() % 255));
  return s;
}

uint64_t missing_chunks(const Scene& was, const Scene& is) {
  uint64_t missing = 0;
  for (size_t v = 0; v < was.volumes.size(); ++v)
    missing += missing_chunks(was.volumes[v].bricks, v < is.volumes.size() ? is.volumes[v].bricks : BrickMap());
  return missing;
}

}  // namespace

TEST_CASE("store salvage: a sound file gives the same scene and no loss") {
  const fs::path dir = test::scratch_dir("salvage_sound"), file = dir / "a.quarry";
  for (const Scene& scene : {test::busy_scene(), wide_scene(), Scene{}}) {
    REQUIRE(Store::save(scene, file));
    if (scene.volumes.empty()) break;
    const Saved s = save(file);
    CHECK(same_scene(*Store::read(file), s.scene) == "");
    CHECK(s.salvage.losses().empty());
    CHECK(s.warnings.empty());
  }
}

TEST_CASE("store salvage: chunks with wrong bytes and missing rows are lost alone, and their places are said") {
  const fs::path dir = test::scratch_dir("salvage_rows"), file = dir / "a.quarry";
  const Scene scene = wide_scene();
  REQUIRE(Store::save(scene, file));
  SECTION("wrong bytes") {
    sql(file,
        "UPDATE chunks SET data = CAST(substr(data, 1, 20) || x'00112233' || substr(data, 25) AS BLOB) WHERE "
        "volume = 0 AND x = 2 AND z < 1");
    const Saved s = save(file);
    CHECK(missing_chunks(scene, s.scene) == s.lost("chunks"));
    CHECK(s.lost("chunks") > 2);
    REQUIRE_FALSE(s.warnings.empty());
    CHECK(s.warnings[0].find("volume 0, chunk (2, ") != std::string::npos);
    CHECK(s.scene.instances.size() == scene.instances.size());
  }
  SECTION("rows missing") {
    sql(file,
        "DELETE FROM chunks WHERE volume = 0 AND z > 2; DELETE FROM palette WHERE id = 5; DELETE FROM "
        "instances WHERE id = 1");
    const Saved s = save(file);
    CHECK(missing_chunks(scene, s.scene) == s.lost("chunks"));
    CHECK(s.lost("chunks") > 2);
    CHECK(s.lost("materials") == 1);
    CHECK(s.lost("instances") == 1);
  }
  SECTION("state, volumes and journal broken") {
    sql(file,
        "DELETE FROM state; DELETE FROM volumes WHERE id = 0; INSERT INTO journal VALUES (9, 9, 9, 'x', 1, 1, "
        "1, 1, x'00')");
    const Saved s = save(file);
    CHECK(missing_chunks(scene, s.scene) == 0);
    CHECK(s.lost("volume_rows") == 1);
  }
  CHECK_FALSE(Store::read(file));  // there is no salvage without the option
}

TEST_CASE("store salvage: a database cut short gives every chunk on the pages that are left") {
  const fs::path dir = test::scratch_dir("salvage_cut"), file = dir / "a.quarry", cut = dir / "cut.quarry";
  const Scene scene = wide_scene();
  REQUIRE(Store::save(scene, file));
  const Bytes whole = file_bytes(file);
  uint64_t missing = UINT64_MAX;
  for (const size_t part : {3, 5, 8, 9}) {
    Bytes bytes = whole;
    bytes.resize(whole.size() * part / 10 + 17);
    write_bytes(cut, bytes);
    CHECK_FALSE(Store::read(cut));
    const Saved s = save(cut);
    const uint64_t lost = missing_chunks(scene, s.scene);
    INFO(part << " tenths: " << lost << " chunks lost");
    CHECK(lost < missing);
    CHECK((s.lost("chunks") == lost || s.lost("volume_rows") > 0));
    CHECK(s.lost("pages_cut_off") > 0);
    missing = lost;
  }
  CHECK(missing > 0);
}

TEST_CASE("store salvage: any one page overwritten loses only what was on it") {
  const fs::path dir = test::scratch_dir("salvage_page"), file = dir / "a.quarry";
  const Scene scene = wide_scene();
  REQUIRE(Store::save(scene, file));
  const Bytes whole = file_bytes(file);
  REQUIRE(whole.size() % kPage == 0);
  uint64_t worst = 0;
  for (size_t page = 0; page < whole.size() / kPage; ++page) {
    INFO("page " << page + 1);
    Bytes bytes = whole;
    std::fill_n(bytes.begin() + std::ptrdiff_t(page * kPage), kPage, uint8_t(page % 3 ? 0 : 0xa5));
    io::Salvage salvage;
    std::vector<std::string> warnings;
    // Both ways for the pages at the front, which have the head and the small tables, and for some of the others.
    const auto got = page < 16 || page % 5 == 0
                         ? test::salvaged(bytes, {}, salvage, &warnings)
                         : io::salvage_database(io::ByteSource(bytes), {}, uint64_t(1) << 30, salvage, &warnings);
    REQUIRE(got);
    const uint64_t lost = missing_chunks(scene, *got);
    worst = std::max(worst, lost);
    // Pages without rows (inner pages of trees, indices) lose nothing, so nothing is reported then.
    if (lost > 0) CHECK_FALSE(salvage.losses().empty());
    if (salvage.losses().empty()) CHECK(same_scene(*Store::read(file), *got) == "");
  }
  CHECK(worst < 40);
}

TEST_CASE("store salvage: edits in a crashed editor's log count, and what the edits replaced does not come back") {
  const fs::path dir = test::scratch_dir("salvage_log"), file = dir / "a.quarry", crashed = dir / "crashed.quarry";
  test::EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  {
    auto store = Store::open(file);
    REQUIRE(store);
    for (int i = 0; i < 25; ++i) REQUIRE(scenario.next(&*store));
    fs::copy_file(file, crashed);
    fs::copy_file(file.string() + "-wal", crashed.string() + "-wal");
  }
  const Saved from_log = save(crashed);
  CHECK(from_log.salvage.losses().empty());
  CHECK(same_scene(*Store::read(file), from_log.scene) == "");
  const Saved folded = save(file);  // with freed pages inside
  CHECK(folded.salvage.losses().empty());
  CHECK(same_scene(*Store::read(file), folded.scene) == "");
  // A log that is broken in its middle is used up to there.
  Bytes log = file_bytes(crashed.string() + "-wal");
  log[log.size() / 2] ^= 0xff;
  write_bytes(crashed.string() + "-wal", log);
  Saved part;
  CHECK(test::salvaged(crashed, part.salvage, &part.warnings));
}

TEST_CASE("store salvage: bytes changed at random never crash, and every voxel that is given was there") {
  const fs::path dir = test::scratch_dir("salvage_random"), file = dir / "a.quarry";
  const Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, file));
  const Bytes whole = file_bytes(file);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = whole;
    for (auto n = uint32_t(1 + random() % 20); n > 0; --n)
      bytes[random() % (n % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 3 * kPage))] = uint8_t(random());
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    io::Salvage salvage;
    const auto got = test::salvaged(bytes, {}, salvage, nullptr);
    if (!got) {
      CHECK_FALSE(got.error().message.empty());
      continue;
    }
    (void)missing_chunks(scene, *got);
  }
  io::Salvage salvage;
  CHECK_FALSE(test::salvaged(Bytes(), {}, salvage, nullptr));
  CHECK_FALSE(test::salvaged(Bytes(50000, 13), {}, salvage, nullptr));
}

TEST_CASE("store salvage: a world written from regions has the bytes of the one written from the whole scene") {
  const fs::path dir = test::scratch_dir("salvage_bytes"), file = dir / "a.quarry", whole = dir / "whole.quarry",
                 parts = dir / "parts.quarry";
  REQUIRE(Store::save(wide_scene(), file));
  sql(file, "DELETE FROM chunks WHERE volume = 0 AND z > 2; DELETE FROM instances WHERE id = 1");
  io::Salvage salvage;
  const auto scene = io::salvage_store(file, salvage, nullptr);
  REQUIRE(scene);
  REQUIRE(Store::save(*scene, whole));
  const Progress quiet;
  for (const uint64_t available : {uint64_t(1), uint64_t(3) << 20, uint64_t(1) << 30}) {
    fs::remove(parts);
    std::optional<io::StoreWriter> writer;
    RegionSink sink;
    sink.available_bytes = [&] { return available; };
    sink.begin = [&](const Scene& begun) -> Result<void> {
      QRY_TRY_ASSIGN(auto made, io::StoreWriter::create(begun, parts, quiet));
      writer.emplace(std::move(made));
      return {};
    };
    sink.take = [&](uint32_t volume, BrickMap&& bricks) { return writer->append(volume, bricks); };
    io::Salvage again;
    const auto done = io::salvage_store_regions(file, again, nullptr, sink);
    INFO((done ? "" : done.error().message));
    REQUIRE(done);
    REQUIRE(writer->commit());
    CHECK(file_bytes(parts) == file_bytes(whole));
  }
}

TEST_CASE("store salvage: region by region, it ends at once when it is stopped, and when the sink fails") {
  const fs::path dir = test::scratch_dir("salvage_stopped"), file = dir / "a.quarry";
  REQUIRE(Store::save(wide_scene(), file));
  const Bytes before = file_bytes(file);
  const auto run = [&](const std::function<void(test::SceneOfRegions&, std::atomic<bool>&)>& prepare) {
    test::SceneOfRegions parts(1);
    std::atomic<bool> cancel{false};
    prepare(parts, cancel);
    Progress progress;
    progress.cancel = &cancel;
    io::Salvage salvage;
    const auto done = io::salvage_store_regions(file, salvage, nullptr, parts.sink, progress);
    REQUIRE_FALSE(done);
    return std::pair(done.error(), parts.regions);
  };
  const auto [at_once, none] = run([](auto&, std::atomic<bool>& cancel) { cancel = true; });
  CHECK(at_once.code == ErrorCode::cancelled);
  CHECK(none == 0);
  const auto [later, some] = run([](test::SceneOfRegions& parts, std::atomic<bool>& cancel) {
    parts.sink.take = [&, take = parts.sink.take](uint32_t volume, BrickMap&& bricks) {
      cancel = parts.regions == 4;
      return take(volume, std::move(bricks));
    };
  });
  CHECK(later.code == ErrorCode::cancelled);
  CHECK(some >= 5);
  CHECK(some < 100);  // it has 150
  const auto [full, taken] = run([](test::SceneOfRegions& parts, std::atomic<bool>&) {
    parts.sink.take = [&, take = parts.sink.take](uint32_t volume, BrickMap&& bricks) -> Result<void> {
      if (parts.regions == 7) return fail(ErrorCode::io, "the disk is full");
      return take(volume, std::move(bricks));
    };
  });
  CHECK(full.code == ErrorCode::io);
  CHECK_THAT(full.message, Catch::Contains("the disk is full"));
  CHECK(taken == 7);
  CHECK(file_bytes(file) == before);
  // What another program does to the file meanwhile is an error; nothing is made up.
  const auto [shorter, read] = run([&](test::SceneOfRegions& parts, std::atomic<bool>&) {
    parts.sink.begin = [&, begin = parts.sink.begin](const Scene& scene) {
      fs::resize_file(file, before.size() / 2);
      return begin(scene);
    };
  });
  CHECK(shorter.code == ErrorCode::io);
  CHECK_THAT(shorter.message, Catch::Contains("became shorter"));
  write_bytes(file, before);
  const auto [other, wrong] = run([&](test::SceneOfRegions& parts, std::atomic<bool>&) {
    parts.sink.begin = [&, begin = parts.sink.begin](const Scene& scene) {
      Bytes changed = before;
      for (size_t at = before.size() / 2; at < before.size(); at += 64) changed[at] ^= 1;
      write_bytes(file, changed);
      return begin(scene);
    };
  });
  CHECK(other.code == ErrorCode::io);
  CHECK_THAT(other.message, Catch::Contains("changed by another program"));
}

}  // namespace salvage_test
