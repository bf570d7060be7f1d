// SPDX-License-Identifier: Apache-2.0
// sidecars_test.cpp - the sidecars of a killed editor, when the world file is only read: all of them are used, and
// nothing is written. If damage keeps edits from being read, there is an error or a warning, never silently an older
// state (as SQLite returns).
#include <catch2/catch.hpp>
#include <random>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/store.hpp"

namespace sidecars_test {

using namespace quarry;
using io::Store;
using test::file_bytes, test::names_in, test::same_scene, test::write_bytes;
namespace fs = std::filesystem;

namespace {

constexpr size_t kPage = 4096, kFrame = kPage + 24, kHeader = 32;
using Bytes = std::vector<uint8_t>;

fs::path sidecar_path(const fs::path& file, const char* suffix) { return file.string() + suffix; }

// A world whose editor was killed after some edits: file, log, and the scene after each edit.
struct Crashed {
  fs::path dir, file;
  Bytes database, log;
  std::vector<Scene> states;  // before the first edit, and after each edit
  std::vector<size_t> ends;   // bytes of the log after each edit

  explicit Crashed(const char* name, int edits = 20) : dir(test::scratch_dir(name)), file(dir / "crashed.quarry") {
    const fs::path live = dir / "live.quarry";
    test::EditScenario scenario;
    REQUIRE(Store::save(scenario.scene(), live));
    {
      auto store = Store::open(live);
      REQUIRE(store);
      states.push_back(scenario.scene());
      ends.push_back(file_bytes(sidecar_path(live, "-wal")).size());
      for (int i = 0; i < edits; ++i) {
        REQUIRE(scenario.next(&*store));
        states.push_back(scenario.scene());
        ends.push_back(file_bytes(sidecar_path(live, "-wal")).size());
      }
      database = file_bytes(live);
      log = file_bytes(sidecar_path(live, "-wal"));
    }
    fs::remove(live);
    REQUIRE(log.size() == ends.back());
  }
  void put(const Bytes& with_log) const {
    write_bytes(file, database);
    write_bytes(sidecar_path(file, "-wal"), with_log);
  }
  // The newest state that equals a scene, or none.
  std::optional<size_t> state_of(const Scene& scene) const {
    for (size_t i = states.size(); i-- > 0;)
      if (same_scene(states[i], scene) == "") return i;
    return {};
  }
};

struct Outcome {
  Result<Scene> scene = fail(ErrorCode::io, "not read");
  std::vector<std::string> warnings;
};
Outcome read(const fs::path& file) {
  Outcome o;
  o.scene = Store::read(file, {}, nullptr, nullptr, &o.warnings);
  return o;
}

}  // namespace

TEST_CASE("store sidecars: reading takes all edits of a killed editor's log and changes neither it nor the file") {
  const Crashed world("sidecars_sound");
  world.put(world.log);
  const auto before = names_in(world.dir);
  const Outcome o = read(world.file);
  REQUIRE(o.scene);
  CHECK(same_scene(world.states.back(), *o.scene) == "");
  CHECK(o.warnings.empty());
  {
    std::vector<std::string> warnings;
    auto reader = io::StoreReader::open(world.file, &warnings);
    REQUIRE(reader);
    CHECK(warnings.empty());
    CHECK(names_in(world.dir) == before);
  }
  CHECK(names_in(world.dir) == before);
  CHECK(file_bytes(world.file) == world.database);
  CHECK(file_bytes(sidecar_path(world.file, "-wal")) == world.log);
  auto store = Store::open(world.file);
  REQUIRE(store);
  CHECK(store->warnings().empty());
  CHECK(same_scene(world.states.back(), *store->read_scene({}, nullptr, nullptr)) == "");
}

TEST_CASE(
    "store sidecars: a log damaged in its middle is an error that says where, also for an editor, who would "
    "drop the edits behind it") {
  const Crashed world("sidecars_middle");
  Bytes log = world.log;
  const size_t wrong = (world.ends[9] - kHeader) / kFrame * kFrame + kHeader;  // the first page of the tenth edit
  log[wrong + 24 + 1000] ^= 1;
  world.put(log);
  const Outcome o = read(world.file);
  REQUIRE_FALSE(o.scene);
  CHECK(o.scene.error().code == ErrorCode::malformed_input);
  CHECK_THAT(o.scene.error().message, Catch::Contains("crashed.quarry-wal") &&
                                          Catch::Contains("byte " + std::to_string(wrong)) &&
                                          Catch::Contains("later edits"));
  CHECK_FALSE(io::StoreReader::open(world.file));
  const auto store = Store::open(world.file);
  REQUIRE_FALSE(store);
  CHECK(store.error().message == o.scene.error().message);
  CHECK(file_bytes(world.file) == world.database);
  CHECK(file_bytes(sidecar_path(world.file, "-wal")) == log);
}

TEST_CASE("store sidecars: wherever bytes of a log are wrong or cut off, the scene is whole, or that is said") {
  const Crashed world("sidecars_anywhere");
  std::mt19937 random(17);
  int errors = 0, warned = 0, whole = 0;
  const auto judge = [&](const Bytes& log) {
    world.put(log);
    const Outcome o = read(world.file);
    if (!o.scene) {
      ++errors;
      CHECK(o.scene.error().code == ErrorCode::malformed_input);
      return;
    }
    const auto state = world.state_of(*o.scene);
    REQUIRE(state);
    if (o.warnings.empty()) {
      ++whole;
      CHECK(*state + 1 == world.states.size());
    } else {
      ++warned;
      CHECK_THAT(o.warnings[0], Catch::Contains("ends in an edit that is not whole"));
      CHECK(*state + 2 >= world.states.size());  // the last edit at most
    }
    if (auto store = Store::open(world.file)) CHECK(store->warnings().size() == o.warnings.size());
    else FAIL("readable, but not to be edited: " << store.error().message);
  };
  for (size_t at = kHeader; at < world.log.size(); at += kFrame)
    for (const size_t byte : {size_t(random() % 4), size_t(4 + random() % 4), size_t(8 + random() % 8),
                              size_t(16 + random() % 8), size_t(24 + random() % kPage)}) {
      INFO("page at " << at << ", byte " << byte);
      Bytes log = world.log;
      log[at + byte] ^= uint8_t(1u << random() % 8);
      judge(log);
    }
  for (size_t byte = 0; byte < kHeader; ++byte) {
    INFO("header, byte " << byte);
    Bytes log = world.log;
    log[byte] ^= uint8_t(1u << random() % 8);
    judge(log);
  }
  CHECK(errors > 100);
  CHECK(warned > 5);
  // The log is cut anywhere. A killed writer leaves the same, so this is a warning. A cut at the end of an edit cannot
  // be detected.
  for (int i = 0; i < 60; ++i) {
    const size_t size = kHeader + 1 + random() % (world.log.size() - kHeader - 1);
    INFO("cut to " << size);
    Bytes log = world.log;
    log.resize(size);
    world.put(log);
    const Outcome o = read(world.file);
    REQUIRE(o.scene);
    const auto complete = size_t(std::upper_bound(world.ends.begin(), world.ends.end(), size) - world.ends.begin()) - 1;
    CHECK(same_scene(world.states[complete], *o.scene) == "");
    CHECK(o.warnings.empty() == (size - world.ends[complete] < 16));
  }
}

TEST_CASE("store sidecars: a log whose header is damaged is an error unless the file has all of it") {
  const Crashed world("sidecars_header");
  Bytes log = world.log;
  log[17] ^= 0x40;
  world.put(log);
  const Outcome o = read(world.file);
  REQUIRE_FALSE(o.scene);
  CHECK_THAT(o.scene.error().message, Catch::Contains("header"));
  // A log that was folded in whole, then a torn header of the next one. Nothing is missing.
  world.put(world.log);
  {
    auto store = Store::open(world.file);
    REQUIRE(store);
  }
  const Bytes folded = file_bytes(world.file);
  write_bytes(sidecar_path(world.file, "-wal"), log);
  const Outcome same = read(world.file);
  if (same.scene) CHECK(same_scene(world.states.back(), *same.scene) == "");
  CHECK(file_bytes(world.file) == folded);
}

TEST_CASE("store sidecars: a copy of an open world without its log is said to be one") {
  const Crashed world("sidecars_missing");
  write_bytes(world.file, world.database);
  const Outcome o = read(world.file);
  REQUIRE(o.scene);
  REQUIRE(o.warnings.size() == 1);
  CHECK_THAT(o.warnings[0], Catch::Contains("crashed.quarry-wal, is not beside it"));
  world.put({});
  CHECK(read(world.file).warnings.empty());  // nothing was ever in it
}

}  // namespace sidecars_test
