// SPDX-License-Identifier: Apache-2.0
// salvage_killed_test.cpp - salvage of .quarry files whose program was killed before they were damaged. SQLite's
// rollback journal or write-ahead log, which it left, is used as SQLite would use it. Pages that are damaged later, in
// either file, lose only their own content, and nothing is invented. SQLite itself is the reference for sound files.
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/salvaged.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/store.hpp"

namespace salvage_killed_test {

using namespace quarry;
using io::Store;
using test::file_bytes, test::same_scene;
namespace fs = std::filesystem;

namespace {

constexpr size_t kPage = 4096, kFrame = kPage + 24;
using Bytes = std::vector<uint8_t>;

fs::path sidecar_path(const fs::path& file, const char* suffix) { return file.string() + suffix; }

// A database and its sidecars.
struct Files {
  Bytes database, log, journal;
  explicit Files(const fs::path& file)
      : database(file_bytes(file)),
        log(file_bytes(sidecar_path(file, "-wal"))),
        journal(file_bytes(sidecar_path(file, "-journal"))) {}
};

struct Saved {
  Result<Scene> scene = fail(ErrorCode::io, "not read");
  io::Salvage salvage;
  std::vector<std::string> warnings;
  bool says(const char* words) const {
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const std::string& w) { return w.find(words) != std::string::npos; });
  }
};
Saved save(const Files& files) {
  Saved s;
  s.scene = test::salvaged(files.database, {io::ByteSource(files.log), io::ByteSource(files.journal)}, s.salvage,
                           &s.warnings);
  return s;
}

// Every chunk of 64^3 voxels of a scene, with a number that identifies its bricks.
using Chunks = std::map<std::pair<size_t, Int3>, uint64_t>;
Chunks chunks_of(const Scene& scene) {
  Chunks chunks;
  for (size_t v = 0; v < scene.volumes.size(); ++v)
    for (const auto& [at, brick] : scene.volumes[v].bricks.bricks()) {
      uint64_t& sum =
          chunks.try_emplace({v, Int3{at.x >> 3, at.y >> 3, at.z >> 3}}, 14695981039346656037u).first->second;
      const auto mix = [&](uint64_t value) { sum = (sum ^ value) * 1099511628211u; };
      mix(uint64_t(at.x & 7) | uint64_t(at.y & 7) << 3 | uint64_t(at.z & 7) << 6);
      for (const uint64_t word : brick.mask) mix(word);
      for (const uint8_t material : brick.materials) mix(material);
    }
  return chunks;
}
bool contains(const Chunks& all, const Chunks& some) {
  return std::all_of(some.begin(), some.end(), [&](const auto& c) {
    const auto it = all.find(c.first);
    return it != all.end() && it->second == c.second;
  });
}

void damage(Bytes& bytes, size_t at, size_t length, std::mt19937& random) {
  for (size_t i = at; i < std::min(bytes.size(), at + length); ++i) bytes[i] = uint8_t(random());
}

Scene wide_scene(uint32_t seed) {
  Scene s = test::busy_scene();
  std::mt19937 random(seed);
  for (int i = 0; i < 30000; ++i)
    s.volumes[0].bricks.set({int32_t(random() % 600) - 300, int32_t(random() % 20), int32_t(random() % 600) - 300},
                            uint8_t(1 + random() % 255));
  return s;
}

// The child turns the file into `a` and `b` alternately, each time in one transaction with SQLite's rollback journal.
// The cache is so small that pages are written long before the end. It runs until it is killed.
[[noreturn]] void turn_for_ever(const fs::path& file, const fs::path& a, const fs::path& b, int pipe) {
  sqlite3* db = nullptr;
  if (sqlite3_open(file.c_str(), &db) != SQLITE_OK) _exit(2);
  const std::string start = "PRAGMA journal_mode=DELETE; PRAGMA cache_size=10; PRAGMA cache_spill=10; ATTACH '" +
                            a.string() + "' AS a; ATTACH '" + b.string() + "' AS b";
  if (sqlite3_exec(db, start.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) _exit(3);
  for (int turn = 0;; ++turn) {
    const std::string from = turn % 2 ? "a." : "b.";
    // BEGIN IMMEDIATE would change all three databases, with a journal above the journals.
    std::string sql = "BEGIN; ";
    for (const std::string table : {"chunks", "state", "volumes", "palette", "meta"})
      sql += "DELETE FROM main." + table + "; INSERT INTO main." + table + " SELECT * FROM " + from + table + "; ";
    if (sqlite3_exec(db, (sql + "COMMIT").c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) _exit(4);
    if (::write(pipe, &turn, sizeof turn) != sizeof turn) _exit(5);
  }
}

void kill_while_turning(const fs::path& file, const fs::path& a, const fs::path& b, uint32_t microseconds) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    turn_for_ever(file, a, b, ends[1]);
  }
  ::close(ends[1]);
  int turn = 0;
  REQUIRE(::read(ends[0], &turn, sizeof turn) == sizeof turn);
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  ::close(ends[0]);
}

}  // namespace

TEST_CASE(
    "store salvage: an edit cut short by kill -9 is undone from its journal, and damage on top costs only what was on "
    "it") {
  const fs::path dir = test::scratch_dir("salvage_killed"), a = dir / "a.quarry", b = dir / "b.quarry",
                 file = dir / "w.quarry", whole = dir / "whole.quarry";
  const Scene scene_a = wide_scene(1), scene_b = wide_scene(2);
  REQUIRE(Store::save(scene_a, a));
  REQUIRE(Store::save(scene_b, b));
  const Chunks chunks_a = chunks_of(scene_a), chunks_b = chunks_of(scene_b);
  std::mt19937 random(99);
  int with_journal = 0, journal_mattered = 0;
  for (int round = 0; round < 40 && with_journal < 8; ++round) {
    INFO("round " << round);
    fs::remove(sidecar_path(file, "-journal"));
    fs::copy_file(a, file, fs::copy_options::overwrite_existing);
    kill_while_turning(file, a, b, uint32_t(random() % 40000));
    const Files killed(file);
    if (killed.journal.size() < kPage || killed.journal[0] == 0) continue;
    ++with_journal;
    fs::copy_file(file, whole, fs::copy_options::overwrite_existing);
    fs::copy_file(sidecar_path(file, "-journal"), sidecar_path(whole, "-journal"),
                  fs::copy_options::overwrite_existing);
    const auto reference = Store::read(whole);
    REQUIRE(reference);
    CHECK(file_bytes(whole) == killed.database);  // reading changes nothing
    CHECK(file_bytes(sidecar_path(whole, "-journal")) == killed.journal);
    {
      auto store = Store::open(whole);  // here SQLite undoes the edit in the file
      REQUIRE(store);
      REQUIRE(same_scene(*reference, *store->read_scene({}, nullptr, nullptr)) == "");
    }
    CHECK_FALSE(fs::exists(sidecar_path(whole, "-journal")));
    const Chunks expected = chunks_of(*reference);
    REQUIRE((expected == chunks_a || expected == chunks_b));
    const Saved sound = save(killed);
    REQUIRE(sound.scene);
    CHECK(same_scene(*reference, *sound.scene) == "");
    CHECK(sound.salvage.losses().empty());
    Files without = killed;
    without.journal.clear();
    const Saved blind = save(without);
    journal_mattered += !blind.scene || same_scene(*reference, *blind.scene) != "";

    const Files undone(whole);
    for (int attempt = 0; attempt < (test::kSanitized ? 3 : 8); ++attempt) {
      INFO("damage " << attempt);
      // Database pages are damaged: the result has everything that the undone database with the same damage has.
      Files damaged = killed, lower = undone;
      for (size_t n = 1 + random() % 6; n > 0; --n) {
        const size_t at = random() % (killed.database.size() / kPage) * kPage;
        damage(damaged.database, at, kPage, random);
        damage(lower.database, at, kPage, random);
      }
      const Saved got = save(damaged), least = save(lower);
      if (least.scene) {
        REQUIRE(got.scene);
        CHECK(contains(chunks_of(*got.scene), chunks_of(*least.scene)));
      }
      if (got.scene) {
        CHECK(contains(expected, chunks_of(*got.scene)));
        if (got.salvage.losses().empty()) CHECK(same_scene(*reference, *got.scene) == "");
      }
      // The journal is damaged too: each chunk is as before or after the edit, and any difference from before is
      // reported.
      for (size_t n = 1 + random() % 3; n > 0; --n)
        damage(damaged.journal, random() % damaged.journal.size(), 1 + random() % 600, random);
      const Saved both = save(damaged);
      if (!both.scene) continue;
      for (const auto& c : chunks_of(*both.scene)) CHECK((contains(chunks_a, {c}) || contains(chunks_b, {c})));
      if (both.salvage.losses().empty()) CHECK(same_scene(*reference, *both.scene) == "");
    }
  }
  INFO("killed with a journal " << with_journal << ", of which the journal mattered " << journal_mattered);
  CHECK(with_journal >= 5);
  CHECK(journal_mattered >= 3);
}

TEST_CASE("store salvage: a journal that is not this database's, or is damaged, is not used, and that is said") {
  const fs::path dir = test::scratch_dir("salvage_journal"), a = dir / "a.quarry", b = dir / "b.quarry",
                 file = dir / "w.quarry";
  const Scene scene_a = wide_scene(1);
  REQUIRE(Store::save(scene_a, a));
  REQUIRE(Store::save(wide_scene(2), b));
  fs::copy_file(a, file);
  Bytes journal;
  for (uint32_t wait = 3000; journal.size() < 4 * kPage || journal[0] == 0; wait += 1700) {
    fs::remove(sidecar_path(file, "-journal"));
    fs::copy_file(a, file, fs::copy_options::overwrite_existing);
    kill_while_turning(file, a, b, wait % 30000);
    journal = file_bytes(sidecar_path(file, "-journal"));
  }
  Files files(a);  // sound, and from before the edit
  Bytes& head = files.database;
  const auto expect_unused = [&](const char* words, bool foreign) {
    const Saved s = save(files);
    REQUIRE(s.scene);
    CHECK(s.says(words));
    CHECK(chunks_of(*s.scene) == chunks_of(scene_a));
    // Reading without salvage is an error if an edit may be there in part, and a warning if it belongs to another file.
    test::write_bytes(file, files.database);
    test::write_bytes(sidecar_path(file, "-journal"), files.journal);
    std::vector<std::string> warnings;
    const auto read = Store::read(file, {}, nullptr, nullptr, &warnings);
    if (read) {
      CHECK((chunks_of(*read) == chunks_of(scene_a)));
      REQUIRE(warnings.size() == 1);
      CHECK(warnings[0].find(words) != std::string::npos);
    } else {
      CHECK(read.error().message.find("w.quarry-journal, is damaged") != std::string::npos);
    }
    CHECK(bool(read) == foreign);
    CHECK((file_bytes(file) == files.database));
    CHECK((file_bytes(sidecar_path(file, "-journal")) == files.journal));
    // Opening for editing sets a foreign journal aside. A journal that may be the file's own is an error that changes
    // nothing.
    const fs::path quarantined = sidecar_path(file, "-journal.of-another-state-1");
    {
      auto store = Store::open(file);
      CHECK(bool(store) == foreign);
      if (store) CHECK((chunks_of(*store->read_scene({}, nullptr, nullptr)) == chunks_of(scene_a)));
    }
    CHECK((file_bytes(foreign ? quarantined : sidecar_path(file, "-journal")) == files.journal));
    if (!foreign) CHECK((file_bytes(file) == files.database));
    fs::remove(quarantined);
  };
  files.journal = journal;
  head[27] = uint8_t(head[27] + 77);  // another count of changes
  head[95] = uint8_t(head[95] + 77);
  expect_unused("of another state", true);
  head = file_bytes(a);
  files.journal = journal;
  files.journal[3] ^= 1;
  expect_unused("its header is damaged", false);
  files.journal = journal;
  files.journal[26] ^= 1;
  expect_unused("not this database's", false);
  files.journal = journal;
  files.journal.insert(files.journal.end(), journal.begin(), journal.begin() + 8);
  expect_unused("several databases", true);
  // The state that a finished edit leaves if the journal is kept.
  std::fill_n(files.journal.begin(), 28, uint8_t(0));
  files.journal.resize(files.journal.size() - 8);
  const Saved s = save(files);
  REQUIRE(s.scene);
  CHECK(s.warnings.empty());
  CHECK(s.salvage.losses().empty());
}

TEST_CASE("store salvage: behind a damaged page of a crashed editor's log the later edits still count") {
  const fs::path dir = test::scratch_dir("salvage_log_pages"), file = dir / "w.quarry",
                 crashed = dir / "crashed.quarry";
  test::EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  std::map<std::pair<size_t, Int3>, std::set<uint64_t>> ever;  // every state that each chunk had
  const auto note = [&] {
    for (const auto& [chunk, sum] : chunks_of(scenario.scene())) ever[chunk].insert(sum);
  };
  note();
  {
    auto store = Store::open(file);
    REQUIRE(store);
    for (int i = 0; i < 30; ++i) {
      REQUIRE(scenario.next(&*store));
      note();
    }
    fs::copy_file(file, crashed);
    fs::copy_file(sidecar_path(file, "-wal"), sidecar_path(crashed, "-wal"));
  }
  const Files whole(crashed);
  const Chunks expected = chunks_of(scenario.scene());
  const size_t frames = (whole.log.size() - 32) / kFrame;
  REQUIRE(frames > 60);
  const auto right = [&](const Saved& s) {
    size_t count = 0;
    for (const auto& c : chunks_of(*s.scene)) {
      REQUIRE(ever[c.first].count(c.second));
      count += contains(expected, {c});
    }
    if (s.salvage.losses().empty()) REQUIRE(same_scene(scenario.scene(), *s.scene) == "");
    return count;
  };
  std::mt19937 random(4);
  size_t going_on = 0, stopping = 0;
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    Files damaged = whole, cut = whole;
    const size_t frame = 1 + random() % (frames - 2);
    const bool header = round % 4 == 0;  // else some of the page's own bytes
    damage(damaged.log, 32 + frame * kFrame + (header ? 0 : 24 + random() % 3000), header ? 24 : 1000, random);
    cut.log.resize(32 + frame * kFrame);
    const Saved s = save(damaged), stopped = save(cut);
    REQUIRE(s.scene);
    REQUIRE(stopped.scene);
    CHECK(s.says(header ? "damaged" : "1 are damaged"));
    CHECK_FALSE(s.salvage.losses().empty());
    going_on += right(s);
    for (const auto& c : chunks_of(*stopped.scene)) stopping += contains(expected, {c});
  }
  INFO("chunks as they were last: " << going_on << ", if reading stopped at the damage: " << stopping);
  CHECK(going_on > stopping);
  // The log's own header, and its end.
  Files files = whole;
  damage(files.log, 0, 24, random);
  const Saved headless = save(files);
  REQUIRE(headless.scene);
  CHECK(headless.says("header of the log"));
  CHECK(same_scene(scenario.scene(), *headless.scene) == "");
  files = whole;
  size_t end = frames - 1;  // the last frame that ends an edit, and has pages of the same edit before it
  const auto ends_edit = [&](size_t frame) {
    return !std::equal(files.log.begin() + int64_t(36 + frame * kFrame),
                       files.log.begin() + int64_t(40 + frame * kFrame), Bytes(4).begin());
  };
  while (!ends_edit(end) || ends_edit(end - 1)) --end;
  files.log.resize(32 + end * kFrame);
  const Saved unfinished = save(files);
  REQUIRE(unfinished.scene);
  CHECK(unfinished.says("not finished"));
  CHECK(unfinished.salvage.losses().empty());
}

TEST_CASE("store salvage: a log or a journal that is not held in memory counts as one that is") {
  const fs::path dir = test::scratch_dir("salvage_large_log"), file = dir / "w.quarry", other = dir / "other.quarry",
                 crashed = dir / "crashed.quarry";
  std::mt19937 random(6);
  const auto noise = [&] {  // it does not compress
    Scene scene = test::busy_scene();
    for (int32_t i = 0; i < 20 * 20 * 50; ++i) {
      Brick brick;
      for (uint32_t v = 0; v < 512; ++v) brick.set(v, uint8_t(1 + random() % 255));
      scene.volumes[0].bricks.put({i / 1000, 60 + i / 50 % 20, i % 50}, brick);
    }
    return scene;
  };
  REQUIRE(Store::save(noise(), file));
  const Scene scene = noise();
  REQUIRE(Store::save(scene, other));
  // One becomes the other in a single edit of the log. Quarry itself would fold such a log in at once.
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  std::string sql =
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; ATTACH '" + other.string() + "' AS b; BEGIN; ";
  for (const std::string table : {"chunks", "state", "volumes"})
    sql += "DELETE FROM main." + table + "; INSERT INTO main." + table + " SELECT * FROM b." + table + "; ";
  REQUIRE(sqlite3_exec(db, (sql + "COMMIT").c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  fs::copy_file(file, crashed);
  fs::copy_file(sidecar_path(file, "-wal"), sidecar_path(crashed, "-wal"));
  sqlite3_close(db);
  const Files whole(crashed);
  REQUIRE(whole.log.size() > (size_t(9) << 20));
  const auto from_files = [&](const Files& files) {
    test::write_bytes(crashed, files.database);
    test::write_bytes(sidecar_path(crashed, "-wal"), files.log);
    Saved s;
    s.scene = test::salvaged(crashed, s.salvage, &s.warnings);
    return s;
  };
  const auto read = Store::read(crashed);
  REQUIRE(read);
  CHECK(same_scene(scene, *read) == "");
  for (int round = 0; round < 6; ++round) {
    INFO("round " << round);
    Files damaged = whole;
    if (round > 0) damage(damaged.log, random() % damaged.log.size(), 1000, random);
    if (round > 1) damage(damaged.database, random() % (damaged.database.size() / kPage) * kPage, kPage, random);
    if (round > 3) damaged.log.resize(damaged.log.size() - random() % 5000);
    const Saved memory = save(damaged), disk = from_files(damaged);
    REQUIRE(memory.scene);
    REQUIRE(disk.scene);
    CHECK(same_scene(*memory.scene, *disk.scene) == "");
    CHECK((test::losses_of(memory.salvage) == test::losses_of(disk.salvage)));
    CHECK((memory.warnings == disk.warnings));
    if (round == 0) CHECK(same_scene(scene, *disk.scene) == "");
  }
  // The same as a journal: of the pages it has, none is this file's any more.
  test::write_bytes(crashed, whole.database);
  fs::remove(sidecar_path(crashed, "-wal"));
  Files with = whole;
  with.log.clear();
  with.journal.assign(size_t(9) << 20, 7);
  test::write_bytes(sidecar_path(crashed, "-journal"), with.journal);
  Saved disk;
  disk.scene = test::salvaged(crashed, disk.salvage, &disk.warnings);
  const Saved memory = save(with);
  REQUIRE(disk.scene);
  CHECK(disk.says("journal"));
  CHECK((memory.warnings == disk.warnings));
  CHECK((test::losses_of(memory.salvage) == test::losses_of(disk.salvage)));
}

TEST_CASE("store: reading a damaged world leaves the log beside it for salvage") {
  const fs::path dir = test::scratch_dir("salvage_read_first"), file = dir / "w.quarry",
                 crashed = dir / "crashed.quarry";
  test::EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  {
    auto store = Store::open(file);
    REQUIRE(store);
    for (int i = 0; i < 5; ++i) REQUIRE(scenario.next(&*store));
    fs::copy_file(file, crashed);
    fs::copy_file(sidecar_path(file, "-wal"), sidecar_path(crashed, "-wal"));
  }
  const Files whole(crashed);
  // Every page except the first that no edit has rewritten. The palette's pages are among them.
  std::set<size_t> in_log;
  for (size_t at = 32; at + kFrame <= whole.log.size(); at += kFrame)
    in_log.insert(size_t(whole.log[at + 2]) << 8 | whole.log[at + 3]);
  std::fstream out(crashed, std::ios::in | std::ios::out | std::ios::binary);
  for (size_t page = 2; page <= whole.database.size() / kPage; ++page)
    if (!in_log.count(page)) out.seekp(std::streamoff((page - 1) * kPage)) << std::string(kPage, 'x');
  out.close();
  CHECK_FALSE(Store::read(crashed));
  CHECK((Files(crashed).log == whole.log));
  const Saved s = save(Files(crashed));
  REQUIRE(s.scene);
  CHECK(contains(chunks_of(scenario.scene()), chunks_of(*s.scene)));
}

}  // namespace salvage_killed_test
