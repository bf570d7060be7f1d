// SPDX-License-Identifier: Apache-2.0
// short_form_test.cpp - blobs that say a brick full of one material in a byte and a row of equal changes once: what
// they are, which files have them, and records that come to a file some at a time.
#include <sqlite3.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "base/parallel.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/store.hpp"

namespace short_form_test {

using namespace quarry;
using namespace quarry::io;
using test::file_bytes, test::same_scene;
namespace fs = std::filesystem;

namespace {

// With voxels of two materials, `voxels` of them.
Brick brick_of(uint32_t voxels) {
  Brick brick;
  for (uint32_t i = 0; i < voxels; ++i) brick.set(i, uint8_t(1 + i % 2));
  return brick;
}

// Plain bytes by hand.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
    return *this;
  }
  Bytes& at(int32_t x, int32_t y, int32_t z) { return put(x).put(y).put(z); }
  Bytes& full(uint8_t material) { return put(material); }
  Bytes& none() { return put(uint8_t(0)).put(BrickMask{}); }
  Bytes& masked(const BrickMask& mask, uint8_t material) {
    put(uint8_t(0)).put(mask);
    for (uint32_t i = 0; i < count_of(mask); ++i) put(material);
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  std::vector<uint8_t> packed() const {
    std::vector<uint8_t> out(ZSTD_compressBound(bytes_.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), bytes_.data(), bytes_.size(), 1));
    return out;
  }

 private:
  std::vector<uint8_t> bytes_;
};

Result<std::vector<BrickChange>> changes_in(const Bytes& plain, uint32_t count, int64_t version = kShortBricks) {
  const std::vector<uint8_t> data = plain.packed();
  return PackedPart{data, uint32_t(plain.size()), count, version}.changes(BrickPool::loose());
}
Bytes short_part(uint32_t count) { return Bytes().put(count | 0x80000000u); }

int64_t version_of(const fs::path& file) {
  auto db = Db::open(file.string(), SQLITE_OPEN_READONLY);
  REQUIRE(db);
  const auto version = db->integer("PRAGMA user_version", "test");
  REQUIRE(version);
  return *version;
}

Scene plain_scene() {
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  return scene;
}

// A box of bricks of a volume becomes full of a material, by one change a row, or a brick.
UndoRecord box_record(const Scene& scene, Int3 first, Int3 last, uint8_t material, bool rows) {
  UndoRecord record;
  record.label = "box " + std::to_string(material);
  for (int32_t x = first.x; x <= last.x; ++x)
    for (int32_t y = first.y; y <= last.y; ++y)
      for (int32_t z = first.z; z <= last.z; ++z) {
        BrickChange change{{x, y, z}, 1, scene.volumes[0].bricks.share({x, y, z}), SharedBrick::full(material)};
        if (change.before == change.after) continue;
        record.voxels_changed += kVoxelsPerBrick;
        if (rows) append_change(record.changes, std::move(change));
        else record.changes.push_back(std::move(change));
      }
  return record;
}

// Boxes over each other, of bricks that are full and others; each applied to the scene.
std::vector<UndoRecord> boxes(Scene& scene, int count, bool rows) {
  std::vector<UndoRecord> records;
  std::mt19937 random(4);
  const auto within = [&](uint32_t most) { return int32_t(random() % most); };
  for (int i = 0; i < count; ++i) {
    const Int3 first{within(6), within(6), within(40)}, size{within(9), within(9), within(60)};
    records.push_back(box_record(scene, first, first + size, uint8_t(1 + i % 255), rows));
    if (i % 3 == 0) {
      UndoRecord& record = records.back();
      record.changes.push_back({{first.x + size.x, first.y + size.y, first.z + size.z + 7}, 1, {}, {}});
      BrickChange& last = record.changes.back();
      last.before = scene.volumes[0].bricks.share(last.brick);
      last.after = SharedBrick(brick_of(uint32_t(1 + i % 500)));
    }
    test::apply_record(&scene, records.back(), true);
  }
  return records;
}

}  // namespace

TEST_CASE("short form: a brick that is full of one material is a byte of a chunk; without one its bytes are as ever") {
  BrickMap bricks;
  for (int32_t i = 0; i < 300; ++i) bricks.put({i & 7, i >> 3 & 7, i >> 6}, brick_of(uint32_t(1 + i % 512)));
  const auto plain = encode_chunk(bricks, {0, 0, 0}, 0);
  REQUIRE(plain);
  CHECK(plain->version == kPlainHistory);
  size_t bytes = 2;
  for (const auto& [at, brick] : bricks.bricks()) bytes += 2 + 64 + brick.count();
  CHECK(plain->plain_bytes == bytes);

  for (int32_t i = 300; i < 512; ++i) bricks.put({i & 7, i >> 3 & 7, i >> 6}, full_brick(uint8_t(1 + i % 255)));
  const auto blob = encode_chunk(bricks, {0, 0, 0}, 0);
  REQUIRE(blob);
  CHECK(blob->version == kShortBricks);
  CHECK(blob->count == 512);
  CHECK(blob->plain_bytes == bytes + 300 + 212 * 3);
  PackedChunk packed{blob->data, blob->plain_bytes, blob->count, {0, 0, 0}};
  const auto back = packed.bricks(BrickPool::loose());
  REQUIRE(back);
  BrickMap again;
  again.put(*back);
  CHECK((again == bricks));
  REQUIRE(packed.each([](Int3, const Brick& brick, uint8_t full) { REQUIRE(full_material(brick) == full); }));
  const auto chunk_of = [](const Bytes& by_hand) {
    const std::vector<uint8_t> data = by_hand.packed();
    return PackedChunk{data, uint32_t(by_hand.size()), 1, {0, 0, 0}}.bricks(BrickPool::loose()).has_value();
  };
  BrickMask some{}, all;
  some[0] = 1;
  all.fill(~uint64_t(0));
  CHECK(chunk_of(Bytes().put(uint16_t(0x8001)).put(uint16_t(9)).full(3)));
  CHECK_FALSE(chunk_of(Bytes().put(uint16_t(0x8001)).put(uint16_t(9)).masked(some, 3)));
  CHECK_FALSE(chunk_of(Bytes().put(uint16_t(0x8001)).put(uint16_t(9)).masked(all, 3)));
  CHECK_FALSE(chunk_of(Bytes().put(uint16_t(0x8001)).put(uint16_t(9)).none()));
  // In a file that states an older version there is no such chunk.
  packed.version = kSteps;
  CHECK(packed.bricks(BrickPool::loose()).error().code == ErrorCode::malformed_input);
  packed.version = kShortBricks;
  packed.count = 511;
  CHECK(packed.bricks(BrickPool::loose()).error().code == ErrorCode::malformed_input);
}

TEST_CASE("short form: changes come back from a part, a row of them as one, and other bytes are refused") {
  const SharedBrick five = SharedBrick::full(5), nine = SharedBrick::full(9), part{brick_of(100)};
  const std::vector<BrickChange> changes = {{{-3, 2, -70}, 200, {}, five},
                                            {{-3, 2, 130}, 1, part, five},
                                            {{-3, 2, 131}, 30, nine, five},
                                            {{-3, 2, 161}, 30, five, {}},
                                            {{0, 0, 0}, 1, five, part}};
  const auto blob = encode_part(changes, {});
  REQUIRE(blob);
  CHECK(blob->version == kShortBricks);
  CHECK(blob->count == 5);
  CHECK(blob->plain_bytes == 4 + 5 * 16 + (65 + 1) + (165 + 1) + (1 + 1) + (1 + 65) + (1 + 165));
  PackedPart packed{blob->data, blob->plain_bytes, blob->count};
  const auto back = packed.changes(BrickPool::loose());
  REQUIRE(back);
  REQUIRE(back->size() == changes.size());
  for (size_t i = 0; i < changes.size(); ++i) {
    const BrickChange &a = changes[i], &b = (*back)[i];
    CHECK((a.brick == b.brick && a.count == b.count && a.before == b.before && a.after == b.after));
  }
  packed.version = kSteps;
  CHECK(packed.changes(BrickPool::loose()).error().code == ErrorCode::malformed_input);
  // Without a full brick a part is as ever.
  const auto plain = encode_part(std::vector<BrickChange>{{{1, 2, 3}, 1, {}, part}}, {});
  REQUIRE(plain);
  CHECK(plain->version == kPlainHistory);
  CHECK(plain->plain_bytes == 4 + 12 + 64 + 164);

  // By hand: one that is right, then each with one thing wrong.
  BrickMask some{}, all;
  some[3] = 7;
  all.fill(~uint64_t(0));
  CHECK(changes_in(short_part(2).at(0, 0, 0).put(3u).none().full(1).at(0, 0, 3).put(1u).full(1).masked(some, 2), 2));
  const auto refused = [](const Bytes& bytes, uint32_t count) {
    const auto read = changes_in(bytes, count);
    return !read && read.error().code == ErrorCode::malformed_input;
  };
  CHECK(refused(short_part(1).at(0, 0, 0).put(0u).none().full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(2u).masked(some, 1).full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(2u).full(1).masked(some, 1), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).masked(all, 4).full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).masked(some, 0).full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, kMaxBrickCoordinate - 1).put(2u).none().full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, -kMaxBrickCoordinate - 1).put(1u).none().full(1), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(0xFFFFFFFFu).none().full(1), 1));
  CHECK(refused(short_part(2).at(0, 0, 0).put(3u).none().full(1).at(0, 0, 2).put(1u).none().full(1), 2));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).none().full(1).put(uint8_t(0)), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).none(), 1));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).none().masked(some, 1), 1));  // the other form is its only one
  CHECK(refused(short_part(2).at(0, 0, 0).put(1u).none().full(1), 2));
  CHECK(refused(short_part(1).at(0, 0, 0).put(1u).none().full(1), 2));
}

TEST_CASE("short form: a file has the version that it needs: one without full bricks is read by older programs") {
  const fs::path dir = test::scratch_dir("store-short-version"), file = dir / "w.quarry";
  Scene scene = plain_scene();
  scene.volumes[0].bricks.set({1, 2, 3}, 4);
  REQUIRE(Store::save(scene, file));
  CHECK(version_of(file) == kPlainHistory);
  {
    auto store = Store::open(file);
    REQUIRE(store);
    BrickMap wanted = scene.volumes[0].bricks;
    wanted.set({100, 0, 0}, 7);
    const UndoRecord small = test::make_record(scene, 0, wanted, "small");
    test::apply_record(&scene, small, true);
    REQUIRE(store->commit_edit(scene, small));
  }
  CHECK(version_of(file) == kPlainHistory);
  const std::vector<uint8_t> before = file_bytes(file);
  {
    auto store = Store::open(file);
    REQUIRE(store);
    const UndoRecord box = box_record(scene, {20, 0, 0}, {22, 2, 9}, 5, true);
    test::apply_record(&scene, box, true);
    REQUIRE(store->commit_edit(scene, box));
    // Gone from the history and from the voxels: the version stays.
    test::apply_record(&scene, box, false);
    REQUIRE(store->commit_undo(scene, box));
    const UndoRecord other = box_record(scene, {30, 0, 0}, {30, 0, 0}, 6, true);
    test::apply_record(&scene, other, true);
    REQUIRE(store->commit_edit(scene, other));
  }
  CHECK(version_of(file) == kShortBricks);
  std::vector<UndoRecord> history;
  const auto read = Store::read(file, {}, &history);
  REQUIRE(read);
  CHECK(same_scene(scene, *read) == "");
  CHECK(history.size() == 2);
  REQUIRE(Store::save(scene, dir / "saved.quarry"));
  CHECK(version_of(dir / "saved.quarry") == kShortBricks);
  // What is not in the stated version is not read.
  for (const fs::path& newer : {file, dir / "saved.quarry"}) {
    auto db = Db::open(newer.string(), SQLITE_OPEN_READWRITE);
    REQUIRE(db);
    REQUIRE(db->run("PRAGMA user_version=2", "test"));
    db = {};
    CHECK(Store::read(newer).error().code == ErrorCode::malformed_input);
  }
}

TEST_CASE(
    "short form: the file's bytes do not depend on threads, on how records come, nor on whether their rows were "
    "joined") {
  const fs::path dir = test::scratch_dir("store-short-pieces");
  Scene scene = plain_scene(), same = scene;
  const std::vector<UndoRecord> records = boxes(scene, 60, true), loose = boxes(same, 60, false);
  REQUIRE(same_scene(scene, same) == "");
  REQUIRE(Store::save_with_history(scene, records, 55, dir / "first.quarry"));
  const std::vector<uint8_t> expected = file_bytes(dir / "first.quarry");
  std::vector<UndoRecord> history;
  size_t position = 0;
  const auto read = Store::read(dir / "first.quarry", {}, &history, &position);
  REQUIRE(read);
  CHECK(same_scene(scene, *read) == "");
  CHECK(test::same_history(records, history) == "");
  CHECK(position == 55);
  for (const uint32_t threads : {1u, 2u, 5u})
    for (const size_t at_once : {size_t(1), size_t(7), size_t(60)})
      for (const auto* const list : {&records, &loose}) {
        INFO("threads " << threads << ", at once " << at_once << ", joined " << (list == &records));
        const ThreadShare share(threads);
        size_t told = 0;
        std::vector<UndoRecord> some;  // of which nothing is left after the next call
        const RecordSource source = [&]() -> Result<SomeRecords> {
          const size_t count = std::min(at_once, list->size() - told);
          some.assign(list->begin() + std::ptrdiff_t(told), list->begin() + std::ptrdiff_t(told + count));
          told += count;
          return SomeRecords{some, told == list->size()};
        };
        REQUIRE(Store::save_with_history(
            scene, source, [&] { return told - 5; }, dir / "other.quarry"));
        CHECK((file_bytes(dir / "other.quarry") == expected));
      }
}

TEST_CASE("short form: when records, or bricks, cannot be had in the middle of a commit the file is as before") {
  const fs::path dir = test::scratch_dir("store-short-failing"), file = dir / "w.quarry";
  Scene scene = plain_scene();
  const std::vector<UndoRecord> first = boxes(scene, 5, true);
  REQUIRE(Store::save_with_history(scene, first, 5, file));
  const Scene before = scene;
  std::vector<UndoRecord> more = boxes(scene, 40, true);
  const auto unchanged = [&](Store& store) {
    std::vector<UndoRecord> history;
    const auto read = store.read_scene({}, &history, nullptr);
    REQUIRE(read);
    CHECK(same_scene(before, *read) == "");
    CHECK(test::same_history(first, history) == "");
  };
  auto store = Store::open(file);
  REQUIRE(store);
  for (int at = 0;; ++at) {
    INFO("failing call " << at);
    int calls = 0;
    const auto fails = [&]() -> Result<void> {
      if (calls++ == at) return fail(ErrorCode::device_lost, "it is gone");
      return {};
    };
    size_t told = 0;
    const RecordSource source = [&]() -> Result<SomeRecords> {
      QRY_TRY(fails());
      const auto some = std::span(more).subspan(told, std::min<size_t>(9, more.size() - told));
      told += some.size();
      return SomeRecords{some, told == more.size()};
    };
    const auto rest = [&]() -> Result<Store::Later> {
      QRY_TRY(fails());
      Store::Later later;
      later.position = 45;
      std::vector<Int3>& chunks = later.chunks[0];
      for (const auto& [brick, view] : scene.volumes[0].bricks.bricks()) chunks.push_back(chunk_of(brick));
      std::sort(chunks.begin(), chunks.end());
      chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
      return later;
    };
    const auto bricks = [&](uint32_t, std::span<const Int3>) -> Result<const BrickMap*> {
      QRY_TRY(fails());
      return &scene.volumes[0].bricks;
    };
    const auto done = store->commit_later(scene, {5, source, rest, bricks});
    if (done) {
      CHECK(calls == 7);  // five pieces of records, the rest, one piece of chunks
      CHECK(at == 7);
      break;
    }
    CHECK(done.error().code == ErrorCode::device_lost);
    unchanged(*store);
  }
  std::vector<UndoRecord> history;
  const auto read = store->read_scene({}, &history, nullptr);
  REQUIRE(read);
  CHECK(same_scene(scene, *read) == "");
  CHECK(history.size() == 45);
}

TEST_CASE("short form: parts of a record whose bricks do not rise from one to the next are refused, both ways") {
  const fs::path dir = test::scratch_dir("store-short-order"), file = dir / "w.quarry";
  Scene scene = plain_scene();
  UndoRecord record;
  record.label = "many";
  for (int32_t x = 0; x < 1000; ++x)
    record.changes.push_back({{x, 0, 0}, 1, {}, SharedBrick::full(uint8_t(1 + x % 2))});
  test::apply_record(&scene, record, true);
  REQUIRE(Store::save_with_history(scene, std::span(&record, 1), 1, file));
  {
    auto db = Db::open(file.string(), SQLITE_OPEN_READWRITE);
    REQUIRE(db);
    auto head = read_head(*db);
    REQUIRE(head);
    struct Row {
      int64_t count, bytes;
      std::vector<uint8_t> data;
    };
    std::vector<Row> rows;
    REQUIRE(for_rows(*db, "SELECT changes, bytes, data FROM journal ORDER BY part", "journal",
                     [&](Statement& s) -> Result<void> {
                       const auto data = s.blob(2, "data", 1u << 20);
                       rows.push_back({s.integer(0, "changes"), s.integer(1, "bytes"), {data.begin(), data.end()}});
                       return {};
                     }));
    REQUIRE(rows.size() == 2);
    head->history_sum = 0;
    auto s = Statement::prepare(
        *db, "UPDATE journal SET changes = ?1, bytes = ?2, checksum = ?3, data = ?4 WHERE part = ?5", "journal");
    REQUIRE(s);
    for (int64_t part = 0; part < 2; ++part) {
      const Row& row = rows[size_t(1 - part)];
      const uint64_t sum =
          part_checksum(row.data, {1, uint32_t(part), 0, "many", 0}, uint32_t(row.bytes), uint32_t(row.count));
      head->history_sum += sum;
      REQUIRE(s->bind(1, row.count).bind(2, row.bytes).bind(3, int64_t(sum)).bind(4, row.data).bind(5, part).execute());
    }
    REQUIRE(write_head(*db, *head, {}));
  }
  std::vector<UndoRecord> history;
  const auto read = Store::read(file, {}, &history);
  REQUIRE_FALSE(read);
  CHECK_THAT(read.error().message, Catch::Contains("part 1: expected the bricks of the changes to rise"));
  auto reader = StoreReader::open(file);
  REQUIRE(reader);
  CHECK(reader->check_history({}).error().code == ErrorCode::malformed_input);
  for (const HistorySide side : {HistorySide::before, HistorySide::after}) {
    const auto visited = reader->visit_history(side, [](HistoryPart) -> Result<void> { return {}; }, {});
    REQUIRE_FALSE(visited);
    CHECK_THAT(visited.error().message, Catch::Contains("to rise"));
  }
}

}  // namespace short_form_test
