// SPDX-License-Identifier: Apache-2.0
// attached_test.cpp - worlds with a file behind their edits: what a flush brings there, beside twins that have none.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/full_disk.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"

namespace attached_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

void refused(qry_result result, qry_result expected, const char* part) {
  INFO(qry_last_error());
  CHECK(result == expected);
  CHECK_THAT(qry_last_error(), Catch::Contains(part));
}

}  // namespace

TEST_CASE(
    "c_api: whatever was edited, undone and redone between two flushes, the file then has the voxels, the palette and "
    "every step of the history, and goes on with them when it is opened again") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached");
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    const fs::path file = dir / ("w" + std::to_string(home) + ".quarry");
    OneWorld world = new_world(worlds, home), twin = new_world(worlds, QRY_HOME_HOST);
    uint32_t number = 0;
    std::mt19937 random(5);
    for (int round = 0; round < 8; ++round) {
      INFO("round " << round);
      if (round % 4 == 0) {  // the first edits come before the file, later ones between two files' times
        for (int i = 0; i < 5; ++i, ++number) change(world.get(), 1, number), change(twin.get(), 1, number);
        require_ok(qry_world_attach(world.get(), file.c_str()));
      }
      const int edits = int(random() % 12);
      for (int i = 0; i < edits; ++i, ++number) change(world.get(), 1, number), change(twin.get(), 1, number);
      require_ok(qry_world_flush(world.get()));
      if (round % 4 == 3) require_ok(qry_world_detach(world.get()));
      const OneWorld again = copied(worlds, file, dir / "copy.quarry");
      REQUIRE((facts_of(again.get()) == facts_of(twin.get())));
      if (round % 4 < 3) continue;
      REQUIRE((all_facts(again.get()) == all_facts(twin.get())));
      if (round == 3) {  // it goes on as another world
        CHECK_FALSE(fs::exists(file.string() + "-wal"));
        world = opened(worlds, file, home);
        CHECK(state_of(world.get()).version == 0);
      }
    }
  }
}

TEST_CASE("c_api: a step of the file that was undone and made way for another one is gone from the file, voxels too") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_lost"), file = dir / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::remove(file);
    OneWorld world = new_world(worlds, home);
    const auto box_at = [&](int32_t x, uint32_t material) {
      qry_edit edit = QRY_EDIT_INIT;
      edit.mode = QRY_MODE_FILL;
      edit.material = material;
      edit.a[0] = x, edit.b[0] = x + 20;
      require_ok(qry_world_edit(world.get(), &edit, nullptr));
    };
    box_at(0, 1);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    box_at(300, 2);
    box_at(600, 3);
    require_ok(qry_world_flush(world.get()));
    for (int i = 0; i < 2; ++i) require_ok(qry_world_undo(world.get(), nullptr));
    box_at(-300, 4);
    box_at(-600, 5);
    require_ok(qry_world_undo(world.get(), nullptr));
    require_ok(qry_world_flush(world.get()));
    const OneWorld again = copied(worlds, file, dir / "copy.quarry");
    CHECK(state_of(again.get()).voxel_count == 42);
    CHECK((all_facts(again.get()) == all_facts(world.get())));
    // Far back, and forth by redo alone.
    for (int i = 0; i < 2; ++i) require_ok(qry_world_undo(world.get(), nullptr));
    require_ok(qry_world_flush(world.get()));
    CHECK((all_facts(copied(worlds, file, dir / "copy.quarry").get()) == all_facts(world.get())));
    for (int i = 0; i < 3; ++i) require_ok(qry_world_redo(world.get(), nullptr));
    require_ok(qry_world_flush(world.get()));
    CHECK((all_facts(copied(worlds, file, dir / "copy.quarry").get()) == all_facts(world.get())));
  }
}

TEST_CASE(
    "c_api: the steps of a file of the editor, strokes of several parts and changes of materials, are undone, cut off "
    "and "
    "gone on with in the file that it is attached to, and in a new one") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_steps"), file = dir / "w.quarry", other = dir / "other.quarry";
  for (const uint32_t home : homes(worlds))
    for (const bool elsewhere : {false, true})
      for (int undone = 0; undone < 4; ++undone) {
        INFO("home " << home << ", a new file " << elsewhere << ", undone " << undone);
        fs::copy_file(asset("compat/world-steps.quarry"), file, fs::copy_options::overwrite_existing);
        fs::remove(other);
        const OneWorld world = opened(worlds, file, home), twin = opened(worlds, file);
        const fs::path& its = elsewhere ? other : file;
        require_ok(qry_world_attach(world.get(), its.c_str()));
        const auto both = [&](const auto& call) {
          require_ok(call(world.get()));
          require_ok(call(twin.get()));
        };
        const auto flushed_right = [&] {
          require_ok(qry_world_flush(world.get()));
          CHECK((all_facts(copied(worlds, its, dir / "copy.quarry").get()) == all_facts(twin.get())));
        };
        flushed_right();
        for (int i = 0; i < undone; ++i) both([](qry_world* w) { return qry_world_undo(w, nullptr); });
        if (undone % 2) flushed_right();
        both([](qry_world* w) {
          qry_edit edit = QRY_EDIT_INIT;
          edit.a[0] = edit.b[0] = 200;
          return qry_world_edit(w, &edit, nullptr);
        });
        flushed_right();
        both([](qry_world* w) { return qry_world_undo(w, nullptr); });
        if (undone < 3) both([](qry_world* w) { return qry_world_undo(w, nullptr); });
        flushed_right();
        both([](qry_world* w) { return qry_world_redo(w, nullptr); });
        require_ok(qry_world_detach(world.get()));
        CHECK((all_facts(opened(worlds, its, home).get()) == all_facts(twin.get())));
      }
}

TEST_CASE("c_api: what was not flushed is not in the file, and destroying an attached world does not flush") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_unflushed"), file = dir / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::remove(file);
    OneWorld world = new_world(worlds, home);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    for (uint32_t i = 0; i < 9; ++i) change(world.get(), 2, i);
    require_ok(qry_world_flush(world.get()));
    const Facts flushed = facts_of(world.get());
    for (uint32_t i = 9; i < 20; ++i) change(world.get(), 2, i);
    CHECK_FALSE((facts_of(world.get()) == flushed));
    CHECK((facts_of(copied(worlds, file, dir / "copy.quarry").get()) == flushed));
    world = OneWorld(nullptr);
    CHECK_FALSE(fs::exists(file.string() + "-wal"));
    CHECK((facts_of(opened(worlds, file).get()) == flushed));
  }
}

TEST_CASE(
    "c_api: a world is attached to its own file without writing it again, and to no file that is another world's, that "
    "is open elsewhere or that cannot be one") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attach_where"), file = dir / "w.quarry", other = dir / "other.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::remove(file);
    fs::remove(other);
    OneWorld world = new_world(worlds, home), second = new_world(worlds, home);
    for (uint32_t i = 0; i < 9; ++i) change(world.get(), 3, i);
    refused(qry_world_flush(world.get()), QRY_ERROR_INVALID_ARGUMENT, "not attached");
    refused(qry_world_detach(world.get()), QRY_ERROR_INVALID_ARGUMENT, "not attached");
    require_ok(qry_world_attach(world.get(), file.c_str()));
    refused(qry_world_attach(world.get(), other.c_str()), QRY_ERROR_INVALID_ARGUMENT, "detach it first");
    CHECK_FALSE(fs::exists(other));
    refused(qry_world_attach(second.get(), file.c_str()), QRY_ERROR_CONFLICT, "w.quarry");
    qry_save_info save = QRY_SAVE_INFO_INIT;
    save.path = file.c_str();
    CHECK(qry_world_save(second.get(), &save) == QRY_ERROR_CONFLICT);
    require_ok(qry_world_detach(world.get()));
    refused(qry_world_attach(second.get(), file.c_str()), QRY_ERROR_CONFLICT, "under a name that no file has");

    // Its own file is the same one, by its inode, when nothing has changed; else it is replaced.
    const auto inode_of = [](const fs::path& of) {
      struct stat info {};
      REQUIRE(::stat(of.c_str(), &info) == 0);
      return info.st_ino;
    };
    const auto inode = inode_of(file);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    CHECK(inode_of(file) == inode);
    require_ok(qry_world_detach(world.get()));
    second = opened(worlds, file, home);
    require_ok(qry_world_attach(second.get(), file.c_str()));
    CHECK(inode_of(file) == inode);
    require_ok(qry_world_detach(second.get()));
    const uint64_t length = state_of(world.get()).history_length;
    for (uint32_t i = 9; i < 14; ++i) change(world.get(), 3, i);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    CHECK(inode_of(file) != inode);
    require_ok(qry_world_detach(world.get()));
    CHECK((all_facts(opened(worlds, file).get()) == all_facts(world.get())));
    // For the second one that is another file now.
    refused(qry_world_attach(second.get(), file.c_str()), QRY_ERROR_CONFLICT, "has changed since");
    CHECK(state_of(second.get()).history_length == length);

    refused(qry_world_attach(world.get(), nullptr), QRY_ERROR_INVALID_ARGUMENT, "path is NULL");
    refused(qry_world_attach(world.get(), ""), QRY_ERROR_INVALID_ARGUMENT, "path is empty");
    refused(qry_world_attach(world.get(), (dir / "w.vox").c_str()), QRY_ERROR_UNSUPPORTED, ".quarry");
    refused(qry_world_attach(world.get(), (dir / "none" / "w.quarry").c_str()), QRY_ERROR_NOT_FOUND, "none");
    fs::create_directory(dir / "folder.quarry");
    refused(qry_world_attach(world.get(), (dir / "folder.quarry").c_str()), QRY_ERROR_IO, "folder.quarry");
    write_bytes(other, {'n', 'o', 't', ' ', 'a', ' ', 'w', 'o', 'r', 'l', 'd'});
    refused(qry_world_attach(world.get(), other.c_str()), QRY_ERROR_MALFORMED_INPUT, "other.quarry");
    CHECK(file_bytes(other).size() == 11);
    // After all of it the world can still be attached.
    require_ok(qry_world_attach(world.get(), file.c_str()));
  }
}

TEST_CASE(
    "c_api: with the disk full at any point of a flush the file stays as after the last one, the world goes on, and a "
    "later flush brings all of it") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_full"), file = dir / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::remove(file);
    OneWorld world = new_world(worlds, home);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    uint32_t number = 0;
    for (; number < 6; ++number) change(world.get(), 4, number);
    require_ok(qry_world_flush(world.get()));
    int failures = 0;
    Facts flushed = facts_of(world.get());
    for (uint64_t room = 0;; room += 4096 + 24) {
      for (int i = 0; i < 2; ++i) change(world.get(), 4, number++);
      const uint64_t log = fs::file_size(file.string() + "-wal");
      qry_result result = QRY_OK;
      std::string message;
      {
        const FullDisk full(log + room);
        result = qry_world_flush(world.get());
        message = qry_last_error();
      }
      if (result == QRY_OK && room > 18 * 4096) break;
      if (result == QRY_OK) {
        flushed = facts_of(world.get());
        continue;
      }
      ++failures;
      INFO(message);
      CHECK(result == QRY_ERROR_IO);
      CHECK_THAT(message, Catch::Contains("w.quarry"));
      CHECK((facts_of(copied(worlds, file, dir / "copy.quarry").get()) == flushed));
      if (failures % 2) continue;
      require_ok(qry_world_flush(world.get()));
      flushed = facts_of(world.get());
      CHECK((facts_of(copied(worlds, file, dir / "copy.quarry").get()) == flushed));
    }
    CHECK(failures > 3);
    require_ok(qry_world_detach(world.get()));
    CHECK((all_facts(opened(worlds, file).get()) == all_facts(world.get())));
  }
}

TEST_CASE(
    "c_api: with the disk full at any point of attaching or detaching the error names the file and the reason, the "
    "world "
    "goes on as before, and with room it is attached, or detached, with all it has") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attach_full"), file = dir / "w.quarry", own = dir / "own.quarry";
  const auto io_error = [&](qry_result result, const std::string& message, const char* name) {
    INFO(message);
    CHECK(result == QRY_ERROR_IO);
    CHECK_THAT(message, Catch::Contains(name) && (Catch::Contains("full") || Catch::Contains("large")));
  };
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    OneWorld world = new_world(worlds, home), twin = new_world(worlds, QRY_HOME_HOST);
    uint32_t number = 0;
    const auto both = [&] {
      change(world.get(), 14, number), change(twin.get(), 14, number);
      ++number;
    };
    for (int i = 0; i < 12; ++i) both();
    const auto limited = [&](uint64_t room, const auto& call) {
      const FullDisk full(room);
      const qry_result result = call();
      return std::pair(result, std::string(qry_last_error()));
    };
    int refusals = 0;
    for (uint64_t room = 0;; room += 4096 + 8) {
      INFO("room " << room);
      fs::remove(file);
      const auto [result, message] = limited(room, [&] { return qry_world_attach(world.get(), file.c_str()); });
      if (result == QRY_OK) break;
      ++refusals;
      io_error(result, message, "w.quarry");
      CHECK(qry_world_flush(world.get()) == QRY_ERROR_INVALID_ARGUMENT);
      REQUIRE((facts_of(world.get()) == facts_of(twin.get())));
      if (refusals % 4 == 0) both();
    }
    CHECK(refusals > 3);
    refusals = 0;
    for (uint64_t room = 0;; room += 4096 + 8) {
      INFO("room " << room);
      const auto [result, message] = limited(room, [&] { return qry_world_detach(world.get()); });
      if (result == QRY_OK && refusals > 3) break;
      if (result == QRY_OK) {
        require_ok(qry_world_attach(world.get(), file.c_str()));
      } else {
        ++refusals;
        io_error(result, message, "w.quarry");
        CHECK(qry_world_attach(world.get(), own.c_str()) == QRY_ERROR_INVALID_ARGUMENT);
      }
      both();
    }
    CHECK_FALSE(fs::exists(file.string() + "-wal"));
    CHECK((all_facts(opened(worlds, file).get()) == all_facts(twin.get())));
    // Nothing is left beside it.
    CHECK(std::distance(fs::directory_iterator(dir), fs::directory_iterator()) == 1);
  }
}

TEST_CASE(
    "c_api: steps that the budget of the history takes from an attached world are all in its file, and go no sooner "
    "than they are there") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_budget"), file = dir / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::remove(file);
    OneWorld world = new_world(worlds, home), twin = new_world(worlds, QRY_HOME_HOST);
    for (uint32_t i = 0; i < 10; ++i) change(world.get(), 6, i), change(twin.get(), 6, i);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    require_ok(qry_world_set_history_budget(world.get(), 40000));
    bool dropped = false;
    for (uint32_t i = 10; i < 45; ++i) {
      INFO("change " << i);
      change(world.get(), 6, i);
      change(twin.get(), 6, i);
      // Not so many are undone at once that one is missing.
      REQUIRE(state_of(world.get()).voxel_count == state_of(twin.get()).voxel_count);
      if (i % 7 == 0) {
        require_ok(qry_world_flush(world.get()));
        qry_memory_history history = QRY_MEMORY_HISTORY_INIT;
        qry_memory_state memory = QRY_MEMORY_STATE_INIT;
        memory.next = &history;
        require_ok(qry_world_get_memory(world.get(), &memory));
        dropped = dropped || history.dropped_steps > 0;
        CHECK((history.used_bytes <= 40000 || history.undo_steps == 1));
        CHECK((all_facts(copied(worlds, file, dir / "copy.quarry").get()) == all_facts(twin.get())));
      }
    }
    CHECK(dropped);
    // Reopened, all of it can be undone.
    require_ok(qry_world_detach(world.get()));
    CHECK(state_of(opened(worlds, file).get()).history_length > state_of(world.get()).history_length);
  }
}

TEST_CASE(
    "c_api: a world that moves to a device's memory when it is first drawn stays attached, and so does the history; a "
    "snapshot is drawn as the world was",
    "[one-caller]") {
  const Worlds worlds(QRY_DEVICE_LAZY);
  const fs::path dir = scratch_dir("api_attached_drawn"), file = dir / "w.quarry";
  const OneWorld world = new_world(worlds, QRY_HOME_HOST), twin = new_world(worlds, QRY_HOME_HOST);
  const auto both = [&](uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) change(world.get(), 12, i), change(twin.get(), 12, i);
  };
  qry_render_info info = QRY_RENDER_INFO_INIT;
  info.width = info.height = 24;
  info.camera.position[2] = 900;
  const auto picture_of = [&](qry_world* drawn) {
    std::vector<uint8_t> rgba(24 * 24 * 4);
    require_ok(qry_world_render(drawn, &info, rgba.data(), rgba.size(), 0));
    return rgba;
  };
  both(0, 10);
  qry_world *early = nullptr, *late = nullptr;
  require_ok(qry_world_snapshot(world.get(), &early));
  const OneWorld first(early);
  require_ok(qry_world_attach(world.get(), file.c_str()));
  both(10, 20);
  std::vector<uint8_t> rgba(24 * 24 * 4);
  const qry_result drawn = qry_world_render(world.get(), &info, rgba.data(), rgba.size(), 0);
  if (drawn == QRY_ERROR_NOT_FOUND || drawn == QRY_ERROR_MISSING_FEATURE) {
    skip(qry_last_error());
    return;
  }
  require_ok(drawn);
  require_ok(qry_world_snapshot(world.get(), &late));
  const OneWorld second(late);
  both(20, 30);
  require_ok(qry_world_flush(world.get()));
  CHECK((all_facts(copied(worlds, file, dir / "copy.quarry").get()) == all_facts(twin.get())));
  CHECK(picture_of(second.get()) == rgba);
  CHECK(state_of(second.get()).voxel_count > 0);
  const OneWorld beginning = new_world(worlds, QRY_HOME_HOST);
  for (uint32_t i = 0; i < 10; ++i) change(beginning.get(), 12, i);
  CHECK(picture_of(first.get()) == picture_of(beginning.get()));
  CHECK(facts_of(first.get()).materials == facts_of(beginning.get()).materials);
  require_ok(qry_world_detach(world.get()));
}

TEST_CASE("c_api: a packed world, and one that is packed and trimmed meanwhile, is flushed as any other") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_packed"), file = dir / "w.quarry";
  OneWorld world = new_world(worlds, QRY_HOME_HOST);
  for (uint32_t i = 0; i < 10; ++i) change(world.get(), 8, i);
  require_ok(qry_world_pack(world.get()));
  require_ok(qry_world_attach(world.get(), file.c_str()));
  for (uint32_t i = 10; i < 30; ++i) {
    change(world.get(), 8, i);
    if (i % 4 == 0) CHECK(qry_world_pack(world.get()) >= 0);
    if (i % 4 == 2) CHECK(qry_world_trim(world.get()) >= 0);
    if (i % 3 == 0) require_ok(qry_world_flush(world.get()));
  }
  require_ok(qry_world_detach(world.get()));
  CHECK((all_facts(opened(worlds, file).get()) == all_facts(world.get())));
}

TEST_CASE(
    "c_api: the history of an attached world goes on in its file: undo and redo reach the steps that its budget "
    "drops") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_attached_beyond"), file = dir / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    for (const uint64_t budget : {uint64_t(1), uint64_t(60'000)}) {
      INFO("budget " << budget);
      fs::remove(file);
      OneWorld world = new_world(worlds, home), twin = new_world(worlds, QRY_HOME_HOST);
      require_ok(qry_world_attach(world.get(), file.c_str()));
      require_ok(qry_world_set_history_budget(world.get(), budget));
      std::mt19937 engine(11);
      const auto random = [&] { return uint32_t(engine()); };
      const auto both = [&](auto call) {
        uint64_t voxels = 77, expected = 88;
        const qry_result result = call(world.get(), &voxels), wanted = call(twin.get(), &expected);
        INFO(qry_last_error());
        REQUIRE(result == wanted);
        REQUIRE(voxels == expected);
        return result;
      };
      uint32_t recalled = 0;
      for (int round = 0; round < (kThreadSanitized ? 50 : 120); ++round) {
        INFO("round " << round);
        const uint32_t what = round < 14 ? 0 : round == 14 ? 2 : random() % 6;
        if (what < 2) {
          qry_edit edit = QRY_EDIT_INIT;
          edit.shape = QRY_SHAPE_SPHERE;
          edit.mode = random() % 3 ? QRY_MODE_FILL : QRY_MODE_REMOVE;
          edit.material = edit.mode == QRY_MODE_FILL ? 1 + random() % 200 : 0;
          for (int32_t& c : edit.a) c = int32_t(random() % 60);
          edit.radius = 3 + random() % 12;
          both([&](qry_world* one, uint64_t* voxels) { return qry_world_edit(one, &edit, voxels); });
        } else if (what == 2) {
          require_ok(qry_world_flush(world.get()));
        } else {
          for (uint32_t times = 1 + random() % 6; times-- > 0;) {
            const uint64_t kept = state_of(world.get()).history_position, all = state_of(world.get()).history_length;
            const bool undoes = what < 5;
            const qry_result result = both(
                [&](qry_world* one, uint64_t* v) { return undoes ? qry_world_undo(one, v) : qry_world_redo(one, v); });
            recalled += result == QRY_OK && (undoes ? kept == 0 : kept == all);
          }
        }
        const auto shown = [](qry_world* one) {
          const qry_world_state state = state_of(one);
          return std::pair(state.voxel_count, state.brick_count);
        };
        REQUIRE(shown(world.get()) == shown(twin.get()));
        if (what != 2) continue;
        const OneWorld again = copied(worlds, file, dir / "copy.quarry");
        REQUIRE((facts_of(again.get()) == facts_of(twin.get())));
      }
      REQUIRE(recalled > 3);
      require_ok(qry_world_detach(world.get()));
      REQUIRE((all_facts(opened(worlds, file).get()) == all_facts(twin.get())));
    }
  }
}

TEST_CASE(
    "c_api: a file opened without its history is the same world once it is attached, with every step to undo and redo, "
    "and goes on from there") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_without_history"), file = dir / "w.quarry", copy = dir / "copy.quarry";
  for (const uint32_t home : homes(worlds))
    for (const int undone : {0, 3, 1000}) {  // of the last steps; all
      if (kThreadSanitized && undone == 0) continue;
      INFO("home " << home << ", " << undone << " undone");
      {
        const OneWorld world = new_world(worlds, QRY_HOME_HOST);
        for (uint32_t i = 0; i < 40; ++i) change(world.get(), 77, i);
        for (int i = 0; i < undone && qry_world_undo(world.get(), nullptr) == QRY_OK; ++i) {
        }
        require_ok(qry_world_attach(world.get(), file.string().c_str()));
        require_ok(qry_world_detach(world.get()));
      }
      fs::copy_file(file, copy);
      const OneWorld whole = opened(worlds, copy);
      OneWorld world = opened(worlds, file, home, QRY_OPEN_WITHOUT_HISTORY);
      REQUIRE(state_of(world.get()).history_length == 0);
      REQUIRE(qry_world_undo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
      REQUIRE(qry_world_redo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
      require_ok(qry_world_attach(world.get(), file.string().c_str()));
      const auto walk = [&] {  // both to the first step, and to the last one
        for (const auto step : {qry_world_undo, qry_world_redo}) {
          for (;;) {
            uint64_t one = 0, other = 0;
            const qry_result result = step(whole.get(), &one);
            REQUIRE(step(world.get(), &other) == result);
            if (result != QRY_OK) break;
            REQUIRE(one == other);
          }
          Facts its = facts_of(world.get()), expected = facts_of(whole.get());
          its.length = expected.length, its.position = expected.position;  // of what is in memory
          REQUIRE((its == expected));
        }
      };
      walk();
      for (uint32_t i = 100; i < 112; ++i) change(world.get(), 77, i), change(whole.get(), 77, i);
      require_ok(qry_world_flush(world.get()));
      walk();
      require_ok(qry_world_detach(world.get()));
      REQUIRE((all_facts(opened(worlds, file).get()) == all_facts(whole.get())));
      fs::remove(file);
      fs::remove(copy);
    }
}

TEST_CASE("c_api: a world that has changed since its file's history was left there does not take its place") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_left_history"), file = dir / "w.quarry", other = dir / "other.quarry";
  {
    const OneWorld world = new_world(worlds, QRY_HOME_HOST);
    for (uint32_t i = 0; i < 20; ++i) change(world.get(), 5, i);
    require_ok(qry_world_attach(world.get(), file.string().c_str()));
    require_ok(qry_world_detach(world.get()));
  }
  const std::vector<Facts> before = all_facts(opened(worlds, file).get());
  for (const uint32_t home : homes(worlds)) {
    const OneWorld world = opened(worlds, file, home, QRY_OPEN_WITHOUT_HISTORY);
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.radius = 5;
    require_ok(qry_world_edit(world.get(), &edit, nullptr));
    REQUIRE(qry_world_attach(world.get(), file.string().c_str()) == QRY_ERROR_CONFLICT);
    REQUIRE(std::string(qry_last_error()).find("steps of the history that the world has not") != std::string::npos);
    require_ok(qry_world_attach(world.get(), other.string().c_str()));
    require_ok(qry_world_detach(world.get()));
    REQUIRE((facts_of(opened(worlds, other).get()) == facts_of(world.get())));
    fs::remove(other);
    REQUIRE((all_facts(opened(worlds, file).get()) == before));
  }
}

}  // namespace attached_test
