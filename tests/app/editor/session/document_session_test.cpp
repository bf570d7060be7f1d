// SPDX-License-Identifier: Apache-2.0
// document_session_test.cpp - the promises of an editing session: each acknowledged edit is on disk, undo and redo go
// by strokes, also after a crash, and a failed write changes nothing.
#include "app/editor/session/document_session.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>

#include "app/editor/session/recovery.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/formats.hpp"

namespace document_session_test {

using namespace quarry;
using namespace quarry::app;
namespace fs = std::filesystem;

namespace {

Edit ball(int x, int y, int z, double radius, uint8_t material, Mode mode = Mode::add) {
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = mode;
  edit.a = edit.b = {x, y, z};
  edit.radius = radius;
  edit.material = material;
  return edit;
}

SceneFacts facts_of(const fs::path& file) {
  const auto scene = io::Store::read(file);
  REQUIRE(scene);
  const auto facts = scene_facts(*scene, Axes::y_up);
  REQUIRE(facts);
  return *facts;
}

// A copy of the file as it is on disk now, as after a crash.
fs::path copy_of(const fs::path& file) {
  fs::path copy = file.parent_path() / "copy.quarry";
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
  for (const char* suffix : {"-wal", "-journal", "-shm"})
    if (fs::exists(file.string() + suffix))
      fs::copy_file(file.string() + suffix, copy.string() + suffix, fs::copy_options::overwrite_existing);
  return copy;
}

SceneFacts facts_of(const Session& session) {
  const auto whole = session.whole_scene();
  REQUIRE(whole);
  return *scene_facts(*whole, Axes::y_up);
}

// Where documents are at home: each case is tried on the host and on a device, CUDA's if there is one.
engine::Home some_home() {
  static const engine::Home device = device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated;
  return GENERATE_COPY(engine::Home::host, device);
}
WorldPlace place_of(engine::Home home) {
  return {
      {}, {}, home, [](engine::Home its) { return engine::home_memory(its, nullptr, engine::SharingMode::automatic); }};
}

// The records of a stroke of so many edits: at home on a device it is one.
size_t parts_of(const Session& session, size_t edits) { return session.on_device() ? 1 : edits; }

// A world file with one small ball.
fs::path saved_world(const fs::path& dir) {
  Session session({}, dir / "recovery");
  REQUIRE(session.start_new());
  REQUIRE(session.apply(ball(0, 0, 0, 3, 7)));
  REQUIRE(session.save_as(dir / "world.quarry"));
  return dir / "world.quarry";
}

// A mesh of two boxes, of two colours, of which one is like none of the palette.
fs::path two_boxes(const fs::path& dir) {
  fs::path mesh = dir / "boxes.obj";
  std::ofstream(dir / "boxes.mtl") << "newmtl red\nKd 0.8 0.1 0.1\nnewmtl odd\nKd 0.123 0.456 0.789\n";
  std::ofstream out(mesh);
  out << "mtllib boxes.mtl\n";
  for (int box = 0; box < 2; ++box) {
    for (int corner = 0; corner < 8; ++corner)
      out << "v " << (corner & 1) * 40 + box * 30 << ' ' << (corner >> 1 & 1) * 20 + box * 7 << ' '
          << (corner >> 2) * 24 << '\n';
    out << "usemtl " << (box ? "odd" : "red") << '\n';
    for (const auto& face :
         {std::array{1, 2, 4, 3}, {5, 6, 8, 7}, {1, 2, 6, 5}, {3, 4, 8, 7}, {1, 3, 7, 5}, {2, 4, 8, 6}}) {
      out << 'f';
      for (const int corner : face) out << ' ' << corner + 8 * box;
      out << '\n';
    }
  }
  return mesh;
}

// While this lives, files of this process grow no further than `file` is now. The next write to its end fails as on a
// full disk.
class FullDisk {
 public:
  explicit FullDisk(const fs::path& file) {
    ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit now = before_;
    now.rlim_cur = fs::file_size(file);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("session: each edit of a world file is in the file when the call returns") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-commit");
  const fs::path file = saved_world(dir);
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  CHECK(session.is_world_file());
  for (int i = 1; i <= 5; ++i) {
    const auto changed = session.apply(ball(i * 10, 0, 0, 4, uint8_t(i)));
    REQUIRE(changed);
    CHECK(*changed > 0);
    CHECK_FALSE(session.unsaved());
    const fs::path copy = copy_of(file);
    CHECK(facts_of(copy).pos_sum == facts_of(session).pos_sum);
    CHECK(facts_of(copy).col_sum == facts_of(session).col_sum);
  }
}

TEST_CASE("session: growing, eroding, parts and combining with a file are a step each, on disk when the call returns") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-volume");
  const fs::path file = saved_world(dir);
  {
    Session other(place_of(home), {});
    REQUIRE(other.start_new());
    REQUIRE(other.apply(ball(4, 0, 0, 3, 9)));
    REQUIRE(other.save_as(dir / "other.quarry"));
  }
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  REQUIRE(session.apply(ball(40, 0, 0, 2, 5)));
  const size_t before = session.steps().size();
  std::vector<SceneFacts> states{facts_of(session)};
  const std::vector<std::pair<std::string, std::function<Result<uint64_t>()>>> changes{
      {"grow", [&] { return session.change(grow(Connectivity::edges, 2)); }},
      {"erode", [&] { return session.change(erode_by(Connectivity::faces, 1)); }},
      {"drop parts",
       [&] {
         return session.change(keep({Connectivity::corners, UINT64_MAX, 100}));
       }},
      {"unite", [&] { return session.combine(dir / "other.quarry", BooleanKind::union_of); }},
      {"keep parts",
       [&] {
         return session.change(keep({Connectivity::corners, 1, 0}));
       }},
      {"subtract", [&] { return session.combine(dir / "other.quarry", BooleanKind::difference); }},
      {"intersect", [&] { return session.combine(dir / "other.quarry", BooleanKind::intersection); }},
  };
  for (const auto& [label, change] : changes) {
    CAPTURE(label);
    const auto changed = change();
    REQUIRE(changed);
    if (*changed == 0) {  // no step of nothing
      CHECK(session.steps().size() == before + states.size() - 1);
      continue;
    }
    states.push_back(facts_of(session));
    REQUIRE(session.steps().size() == before + states.size() - 1);
    CHECK(session.steps().back().label == label);
    CHECK(session.steps().back().voxels == *changed);
    const SceneFacts kept = facts_of(copy_of(file));
    CHECK(kept.pos_sum == states.back().pos_sum);
    CHECK(kept.col_sum == states.back().col_sum);
  }
  CHECK(states.size() >= 6);
  CHECK(session.shown().voxels == 0);  // what was subtracted is not in what is left
  for (size_t i = states.size() - 1; i-- > 0;) {
    REQUIRE(session.undo());
    CHECK(facts_of(session).pos_sum == states[i].pos_sum);
    CHECK(facts_of(session).col_sum == states[i].col_sum);
    CHECK(facts_of(copy_of(file)).pos_sum == states[i].pos_sum);
  }
  CHECK_FALSE(session.combine(dir / "missing.vox", BooleanKind::union_of));
  CHECK(session.steps().size() == before + states.size() - 1);
  {
    const FullDisk full(file);
    CHECK_FALSE(session.change(grow(Connectivity::corners, test::kSanitized ? 6 : 40)));
  }
  CHECK(facts_of(session).pos_sum == states[0].pos_sum);
  CHECK(session.step_position() == before);
  // At home on a device what was refused is there, to be redone, in place of what could be.
  CHECK(session.steps().size() == before + (session.on_device() ? 1 : states.size() - 1));
}

TEST_CASE("session: a file is combined in world axes, whatever way the volume is turned, by the palette's looks") {
  Scene scene;
  scene.volumes.push_back({"voxels", {}, {}});
  scene.volumes[0].bricks.set({3, 4, 5}, 7);
  Instance instance;
  instance.rotation.axis = {2, 1, 0};
  instance.rotation.sign = {1, -1, -1};
  instance.offset = {10, -20, 30};
  scene.instances.push_back(instance);
  Scene other;
  other.volumes.push_back({"voxels", {}, {}});
  other.instances.emplace_back();
  const Int3 shown = instance.rotation.apply_to_cell({3, 4, 5}) + instance.offset, beside = shown + Int3{1, 2, 3};
  other.volumes[0].bricks.set(shown, 1);
  other.volumes[0].bricks.set(beside, 1);
  other.palette.materials[1] = scene.palette.materials[200];
  uint32_t replaced = 77;
  const auto united = combined(other, instance, scene.palette, BooleanKind::union_of, replaced);
  REQUIRE(united);
  CHECK(replaced == 0);
  const auto made = united->made(scene.volumes[0].bricks);
  REQUIRE(made);
  CHECK(made->voxel_count() == 2);
  CHECK(made->get({3, 4, 5}) == 7);  // the volume's own
  const uint8_t got = made->get(instance.rotation.inverse().apply_to_cell(beside - instance.offset));
  CHECK(got != 0);
  CHECK(scene.palette.materials[got] == scene.palette.materials[200]);
  other.palette.materials[1].r ^= 1;
  other.palette.materials[1].emission = 3.25f;
  REQUIRE(combined(other, instance, scene.palette, BooleanKind::union_of, replaced));
  CHECK(replaced == 1);
  const auto less = combined(other, instance, scene.palette, BooleanKind::difference, replaced);
  REQUIRE(less);
  CHECK(less->made(scene.volumes[0].bricks)->empty());
  CHECK_FALSE(connectivity_from(7));
  CHECK(connectivity_from(18) == Connectivity::edges);
  CHECK(boolean_from_name("subtract") == BooleanKind::difference);
  CHECK_FALSE(boolean_from_name("add"));
}

TEST_CASE(
    "session: a mesh that is combined is the same at every home, its voxels and the looks of them, and is undone") {
  const fs::path dir = test::scratch_dir("session-mesh"), mesh = two_boxes(dir);
  for (const BooleanKind kind : {BooleanKind::union_of, BooleanKind::difference, BooleanKind::intersection}) {
    CAPTURE(int(kind));
    std::vector<std::pair<SceneFacts, std::string>> made;
    for (const engine::Home home :
         {engine::Home::host, device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated}) {
      WorldPlace place = place_of(home);
      int homes = 0;
      place.prepare_home = [&, prepare = place.prepare_home](engine::Home its) { return ++homes, prepare(its); };
      Session session(std::move(place), dir / "recovery");
      REQUIRE(session.start_new());
      REQUIRE(session.apply(ball(60, 60, 60, 50, 7)));
      const SceneFacts before = facts_of(session);
      const auto changed = session.combine(mesh, kind);
      REQUIRE(changed);
      CHECK(*changed > 1000);
      REQUIRE(session.on_device() == (home != engine::Home::host));
      CHECK(homes == (session.on_device() ? 2 : 0));  // the document's, and the mesh's
      made.push_back({facts_of(session), session.take_notice()});
      CHECK(session.steps().back().voxels == *changed);
      CHECK((session.shown().voxels > before.flat_all) == (kind == BooleanKind::union_of));
      REQUIRE(session.undo());
      CHECK(facts_of(session).col_sum == before.col_sum);
      std::ofstream(dir / "broken.obj") << "v 1 2\nf 1 2 9\n";
      CHECK_FALSE(session.combine(dir / "broken.obj", kind));
    }
    CHECK(made[0].first.flat_all == made[1].first.flat_all);
    CHECK(made[0].first.pos_sum == made[1].first.pos_sum);
    CHECK(made[0].first.col_sum == made[1].first.col_sum);
    CHECK(made[0].second == made[1].second);
    CHECK((made[0].second.find("of its materials are not in the palette") != std::string::npos) ==
          (kind == BooleanKind::union_of));
  }
}

TEST_CASE("session: a mesh that is opened is the same document at every home, whoever makes its voxels") {
  const fs::path dir = test::scratch_dir("session-open-mesh"), mesh = two_boxes(dir);
  std::ofstream(dir / "broken.obj") << "v 1 2\nf 1 2 9\n";
  const auto read = io::read_scene(mesh);
  REQUIRE(read);
  const SceneFacts expected = *scene_facts(*read, Axes::y_up);
  for (const engine::Home home :
       {engine::Home::host, device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated}) {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.start_new());
    CHECK_FALSE(session.open(dir / "broken.obj"));
    CHECK_FALSE(session.open(dir / "missing.obj"));
    CHECK(session.title() == "untitled");
    REQUIRE(session.open(mesh));
    REQUIRE(session.on_device() == (home != engine::Home::host));
    CHECK(session.title() == "boxes.obj");
    CHECK_FALSE(session.unsaved());
    CHECK(session.shown().voxels == expected.flat_all);
    CHECK(session.scene().palette == read->palette);
    REQUIRE(session.apply(ball(0, 0, 0, 5, 3)));
    CHECK(facts_of(session).pos_sum != expected.pos_sum);
    REQUIRE(session.undo());
    CHECK_FALSE(session.can_undo());
    REQUIRE(session.save_as(dir / "kept.quarry"));
    const SceneFacts facts = facts_of(copy_of(dir / "kept.quarry"));
    CHECK(facts.pos_sum == expected.pos_sum);
    CHECK(facts.col_sum == expected.col_sum);
  }
}

TEST_CASE(
    "session: saving over a world whose editor was killed leaves nothing of that editor's log, and a damaged "
    "log is not opened") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-over-crashed");
  const fs::path file = saved_world(dir), crashed = dir / "crashed.quarry", log = dir / "crashed.quarry-wal";
  {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    for (int i = 1; i <= 3; ++i) REQUIRE(session.apply(ball(i * 10, 0, 0, 4, 9)));
    fs::copy_file(file, crashed);
    fs::copy_file(file.string() + "-wal", log);
  }
  {
    fs::copy_file(crashed, dir / "hurt.quarry");
    auto bytes = test::file_bytes(log);
    bytes[32 + 24 + 100] ^= 1;
    test::write_bytes(dir / "hurt.quarry-wal", bytes);
    Session session(place_of(home), dir / "recovery");
    const auto refused = session.open(dir / "hurt.quarry");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("hurt.quarry-wal, is damaged") != std::string::npos);
    CHECK((test::file_bytes(dir / "hurt.quarry-wal") == bytes));
    // As unsaved work it is not offered as an older state; the damage is reported.
    std::vector<std::pair<fs::path, Error>> damaged;
    for (const RecoveryFile& offered : recoverable_files(dir, &damaged))
      CHECK(offered.file.filename() != "hurt.quarry");
    REQUIRE(damaged.size() == 1);
    CHECK(damaged[0].first.filename() == "hurt.quarry");
  }
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.start_new());
  REQUIRE(session.apply(ball(0, 40, 0, 5, 3)));
  const auto drawn = facts_of(session).pos_sum;
  REQUIRE(session.save_as(crashed));
  CHECK(facts_of(session).pos_sum == drawn);
  REQUIRE(session.apply(ball(9, 40, 0, 5, 3)));
  const auto more = facts_of(session).pos_sum;
  session.close(false);
  CHECK_FALSE(fs::exists(log));
  CHECK(facts_of(crashed).pos_sum == more);
}

TEST_CASE("session: undo and redo go stroke by stroke, also after the file was closed and opened again") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-undo");
  const fs::path file = saved_world(dir);
  std::vector<uint64_t> sums;
  {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    sums.push_back(facts_of(session).pos_sum);
    session.begin_stroke();
    for (int i = 1; i < 4; ++i) REQUIRE(session.apply(ball(10 + i, 0, 0, 2, 3)));
    session.end_stroke();
    sums.push_back(facts_of(session).pos_sum);
    REQUIRE(session.apply(ball(0, 12, 0, 3, 4)));
    sums.push_back(facts_of(session).pos_sum);
    const auto steps = session.steps();
    REQUIRE(steps.size() == 3);  // the ball saved before, the stroke, the ball
    CHECK(steps[1].records == parts_of(session, 3));
    CHECK(session.step_position() == 3);
    REQUIRE(session.undo());
    CHECK(facts_of(session).pos_sum == sums[1]);
    REQUIRE(session.undo());
    CHECK(facts_of(session).pos_sum == sums[0]);
    REQUIRE(session.redo());
    CHECK(facts_of(session).pos_sum == sums[1]);
    REQUIRE(session.go_to_step(3));
    CHECK(facts_of(session).pos_sum == sums[2]);
    REQUIRE(session.go_to_step(0));
    CHECK(session.shown().voxels == 0);
    REQUIRE(session.go_to_step(2));
  }
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  CHECK(facts_of(session).pos_sum == sums[1]);
  REQUIRE(session.redo());
  CHECK(facts_of(session).pos_sum == sums[2]);
  // A new edit drops the edits that could be redone.
  REQUIRE(session.undo());
  REQUIRE(session.apply(ball(0, -12, 0, 3, 4)));
  CHECK_FALSE(session.can_redo());
  CHECK(session.step_position() == session.steps().size());
}

TEST_CASE("session: a new document keeps its edits in a recovery file that a crash leaves and a clean end removes") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-recovery") / "recovery";
  fs::path left;
  uint64_t sum = 0;
  {
    Session session(place_of(home), dir);
    REQUIRE(session.start_new());
    CHECK(session.store_file().empty());  // looking writes nothing
    REQUIRE(session.apply(ball(1, 2, 3, 5, 9)));
    REQUIRE(session.apply(ball(9, 2, 3, 5, 8)));
    CHECK(session.unsaved());
    CHECK(recoverable_files(dir).empty());  // it is open, so it is not offered to others
    left = session.store_file();
    sum = facts_of(session).col_sum;
  }
  const auto files = recoverable_files(dir);
  REQUIRE(files.size() == 1);
  CHECK(files[0].file == left);
  CHECK(files[0].title == "untitled");
  {
    Session session(place_of(home), dir);
    REQUIRE(session.recover(left));
    CHECK(facts_of(session).col_sum == sum);
    CHECK(session.unsaved());
    CHECK_FALSE(session.is_world_file());
    REQUIRE(session.undo());  // its history is restored too
    REQUIRE(session.redo());
    REQUIRE(session.save_as(dir / "../kept.quarry"));
    CHECK_FALSE(session.unsaved());
    CHECK_FALSE(fs::exists(left));
  }
  CHECK(recoverable_files(dir).empty());
  CHECK(facts_of(dir / "../kept.quarry").col_sum == sum);
}

TEST_CASE("session: saving under a new name takes the history along and goes on there") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-save-as");
  const fs::path first = saved_world(dir), second = dir / "second.quarry";
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(first));
  const uint64_t before = facts_of(session).pos_sum;
  REQUIRE(session.apply(ball(30, 0, 0, 4, 2)));
  const uint64_t after = facts_of(session).pos_sum;
  REQUIRE(session.save_as(second));
  CHECK(session.file() == second);
  REQUIRE(session.undo());
  CHECK(session.store_file() == second);
  session.close(true);
  CHECK(facts_of(second).pos_sum == before);
  CHECK(facts_of(first).pos_sum == after);  // the old file keeps the edits committed to it
}

TEST_CASE("session: a file that cannot be opened leaves the open document as it was") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-bad-open");
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.start_new());
  REQUIRE(session.apply(ball(0, 0, 0, 3, 7)));
  const uint64_t sum = facts_of(session).pos_sum;
  std::ofstream(dir / "bad.vox") << "VOX nonsense";
  for (const char* name : {"bad.vox", "absent.vox"}) {
    const auto opened = session.open(dir / name);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message.find(name) != std::string::npos);
    CHECK(facts_of(session).pos_sum == sum);
    CHECK(session.unsaved());
  }
  REQUIRE(session.undo());
  CHECK(session.shown().voxels == 0);
}

TEST_CASE("session: a world that does not fit the memory is refused before it is read, with the numbers") {
  const fs::path dir = test::scratch_dir("session-memory"), small = saved_world(dir), large = dir / "large.quarry";
  Scene scene;
  scene.volumes.push_back({"many", {}, {}});
  for (int32_t i = 0; i < 20000; ++i) scene.volumes[0].bricks.set({i % 27 * 8, i / 27 % 27 * 8, i / 729 * 8}, 3);
  scene.instances.emplace_back();
  REQUIRE(io::Store::save(scene, large));
  Session session(place_of(engine::Home::host), dir / "recovery");
  const MemoryBudget some(memory_in_use() + (uint64_t(8) << 20), "--memory"), enough(uint64_t(1) << 40, "--memory");
  const auto options = [](const MemoryBudget& budget) {
    io::ReadOptions read;
    read.budget = &budget;
    return read;
  };
  REQUIRE(session.open(small, options(some)));
  const auto refused = session.open(large, options(some));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::out_of_memory);
  CHECK(refused.error().message.find("large.quarry: reading it takes at least 13 MiB") != std::string::npos);
  CHECK(refused.error().message.find("--memory") != std::string::npos);
  CHECK(session.file() == small);  // what was open is
  REQUIRE(session.apply(ball(0, 20, 0, 3, 7)));
  REQUIRE(session.open(large, options(enough)));
  CHECK(session.file() == large);
}

TEST_CASE("session: edits in world axes reach the volume through a turned and shifted instance") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-instance");
  Scene scene;
  scene.volumes.push_back({"plain", {}, {}});
  scene.volumes.push_back({"turned", {}, {}});
  scene.volumes[0].bricks.set({0, 0, 0}, 1);
  scene.volumes[1].bricks.set({0, 0, 0}, 2);
  scene.instances.push_back({});
  Instance turned;
  turned.volume = 1;
  turned.rotation.axis = {2, 0, 1};
  turned.rotation.sign = {-1, 1, 1};
  turned.offset = {40, 5, -9};
  scene.instances.push_back(turned);
  const fs::path file = dir / "two.quarry";
  REQUIRE(io::write_scene(scene, file));
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  const Int3 placed = turned.rotation.apply_to_cell({0, 0, 0}) + turned.offset;
  REQUIRE(session.instance_at(placed) == 1u);
  REQUIRE(session.instance_at({0, 0, 0}) == 0u);
  CHECK_FALSE(session.instance_at({3, 3, 3}));
  CHECK(session.active_box() == Box3{{0, 0, 0}, {0, 0, 0}});
  session.set_active_instance(1);
  CHECK(session.active_box() == Box3{placed, placed});
  Edit edit = ball(0, 0, 0, 0, 77);
  edit.shape = Shape::box;
  edit.a = {placed.x + 1, placed.y, placed.z};
  edit.b = {placed.x + 4, placed.y + 2, placed.z};
  const auto changed = session.apply(edit);
  REQUIRE(changed);
  CHECK(*changed == 12);
  for (int x = 1; x <= 4; ++x)
    for (int y = 0; y <= 2; ++y) CHECK(session.document().world().get({placed.x + x, placed.y + y, placed.z}) == 77);
  CHECK(session.scene().volumes[0].bricks.voxel_count() == 1);
  // The outline of the active instance follows the edit.
  CHECK(session.active_box() == Box3{placed, placed + Int3{4, 2, 0}});
  REQUIRE(session.undo());
  CHECK(session.active_box() == Box3{placed, placed});
  REQUIRE(session.set_instance_hidden(1, true));
  CHECK(session.active_box().empty());
}

TEST_CASE("session: hiding an instance takes its voxels out of the world, and edits do not act on what is hidden") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-hide");
  const fs::path file = saved_world(dir);
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  const uint64_t voxels = session.shown().voxels;
  REQUIRE(session.set_instance_hidden(0, true));
  CHECK(session.shown().voxels == 0);
  CHECK_FALSE(session.apply(ball(0, 0, 0, 2, 1)));
  session.close(true);
  REQUIRE(session.start_new());
  REQUIRE(session.open(file));  // the file keeps it
  CHECK(session.scene().instances[0].hidden);
  CHECK(session.shown().voxels == 0);
  REQUIRE(session.set_instance_hidden(0, false));
  CHECK(session.shown().voxels == voxels);
  REQUIRE(session.undo());  // the history was copied too
  CHECK(session.shown().voxels == 0);
}

TEST_CASE("session: what is done is counted, at either home; what fails or changes nothing is not") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-done");
  const fs::path file = saved_world(dir);
  Session session(place_of(home), dir / "recovery");
  const auto counts = [&] {
    const Session::Done& done = session.done();
    return std::vector<uint64_t>{done.edits, done.undone, done.redone, done.opened, done.saved};
  };
  CHECK_FALSE(session.open(dir / "nothing.quarry"));
  CHECK(counts() == std::vector<uint64_t>{0, 0, 0, 0, 0});
  REQUIRE(session.open(file));
  REQUIRE(session.begin_stroke());
  REQUIRE(session.apply(ball(20, 0, 0, 3, 5)));
  REQUIRE(session.apply(ball(24, 0, 0, 3, 5)));
  CHECK(session.apply(ball(24, 0, 0, 3, 5)) == 0u);
  REQUIRE(session.end_stroke());
  CHECK_FALSE(session.apply(ball(20000, 0, 0, 3, 5)));
  CHECK(counts() == std::vector<uint64_t>{2, 0, 0, 1, 0});
  REQUIRE(session.redo());
  REQUIRE(session.undo());
  REQUIRE(session.undo());  // of what the file has from before
  REQUIRE(session.undo());
  REQUIRE(session.redo());
  CHECK(counts() == std::vector<uint64_t>{2, 2, 1, 1, 0});
  REQUIRE(session.save_as(dir / "other.quarry"));
  CHECK_FALSE(session.save_as(dir / "nowhere" / "other.vox"));
  REQUIRE(session.start_new());
  CHECK(counts() == std::vector<uint64_t>{2, 2, 1, 2, 1});
}

TEST_CASE("session: an edit outside the world is refused and changes neither memory nor file") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-outside");
  const fs::path file = saved_world(dir);
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  const uint64_t sum = facts_of(session).pos_sum;
  const auto refused = session.apply(ball(kWorldMax.x, 0, 0, 5, 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_bounds);
  CHECK(facts_of(session).pos_sum == sum);
  CHECK(session.steps().size() == 1);
  session.close(true);
  CHECK(facts_of(file).pos_sum == sum);
}

TEST_CASE("session: a palette that was only looked at is not in the file; one that was set is") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-palette");
  const fs::path file = saved_world(dir);
  {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    Palette palette = session.scene().palette;
    palette.materials[7].r = 1;
    REQUIRE(session.set_palette(palette));
    palette.materials[7].r = 2;
    session.preview_palette(palette);
    CHECK(session.scene().palette.materials[7].r == 2);
  }
  const auto scene = io::Store::read(file);
  REQUIRE(scene);
  CHECK(scene->palette.materials[7].r == 1);
}

TEST_CASE("session: a stroke is one step also after its file was closed and opened again") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-strokes");
  const fs::path file = saved_world(dir);
  std::vector<uint64_t> sums;
  {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    sums.push_back(facts_of(session).pos_sum);
    for (int stroke = 1; stroke <= 2; ++stroke) {
      session.begin_stroke();
      for (int i = 0; i < 8; ++i) REQUIRE(session.apply(ball(10 * stroke, 4 * i, 0, 2, 3)));
      session.end_stroke();
      sums.push_back(facts_of(session).pos_sum);
    }
    REQUIRE(session.undo());
    REQUIRE(session.redo());
  }
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  const auto steps = session.steps();
  REQUIRE(steps.size() == 3);  // the ball that was saved, and the strokes
  CHECK(steps[1].records == parts_of(session, 8));
  CHECK(steps[2].records == parts_of(session, 8));
  CHECK(session.step_position() == 3);
  for (size_t at = 2; at-- > 0;) {
    REQUIRE(session.undo());
    CHECK(facts_of(session).pos_sum == sums[at]);
  }
  session.close(true);
  REQUIRE(session.open(file));
  CHECK(session.step_position() == 1);
  REQUIRE(session.redo());
  CHECK(facts_of(session).pos_sum == sums[1]);
}

TEST_CASE("session: an undo in the middle of a stroke ends the step, not the stroke") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-stroke-undo");
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.start_new());
  session.begin_stroke();
  for (int i = 0; i < 3; ++i) REQUIRE(session.apply(ball(9 * i, 0, 0, 2, 3)));
  REQUIRE(session.undo());
  CHECK(session.shown().voxels == 0);
  for (int i = 3; i < 6; ++i) REQUIRE(session.apply(ball(9 * i, 0, 0, 2, 3)));
  session.end_stroke();
  REQUIRE(session.steps().size() == 1);
  CHECK(session.steps()[0].records == parts_of(session, 3));
}

TEST_CASE(
    "session: a change of a material is a step with undo and redo, also after a restart, and what was only shown is "
    "none") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-palette-steps");
  const fs::path file = saved_world(dir);
  float first = 0;
  {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    Palette palette = session.scene().palette;
    first = palette.materials[7].roughness;
    for (const float shown : {0.1f, 0.2f, 0.4f}) {  // a dragged slider
      palette.materials[7].roughness = shown;
      session.preview_palette(palette);
      CHECK(session.previews_palette());
      CHECK(session.scene().palette == palette);
    }
    REQUIRE(session.set_palette(palette));
    CHECK_FALSE(session.previews_palette());
    REQUIRE(session.set_palette(palette));  // setting the same palette again is no step
    REQUIRE(session.steps().size() == 2);
    CHECK(session.steps()[1].label.find("material 7: roughness ") == 0);
    CHECK(session.steps()[1].label.find(" to 0.4") != std::string::npos);
    CHECK(session.steps()[1].voxels == 0);
    REQUIRE(session.apply(ball(20, 0, 0, 2, 3)));
    REQUIRE(session.undo());
    REQUIRE(session.undo());
    CHECK(session.scene().palette.materials[7].roughness == first);
    CHECK(session.shown().voxels > 0);
    REQUIRE(session.redo());
    CHECK(session.scene().palette.materials[7].roughness == 0.4f);
    // A preview ends before another change.
    palette.materials[7].roughness = 0.9f;
    session.preview_palette(palette);
    REQUIRE(session.redo());
    CHECK(session.scene().palette.materials[7].roughness == 0.4f);
  }
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  REQUIRE(session.steps().size() == 3);
  REQUIRE(session.undo());
  CHECK(session.scene().palette.materials[7].roughness == 0.4f);
  REQUIRE(session.undo());
  CHECK(session.scene().palette.materials[7].roughness == first);
  session.close(true);
  const auto kept = io::Store::read(file);
  REQUIRE(kept);
  CHECK(kept->palette.materials[7].roughness == first);
}

TEST_CASE(
    "session: a change that the full disk refuses leaves no step, and what could be redone stays; the same of "
    "undo, redo and materials") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-full-disk");
  const fs::path file = saved_world(dir);
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.open(file));
  session.begin_stroke();
  for (int i = 1; i < 4; ++i) REQUIRE(session.apply(ball(10 * i, 0, 0, 3, 3)));
  session.end_stroke();
  REQUIRE(session.apply(ball(0, 20, 0, 3, 4)));
  REQUIRE(session.undo());
  // At home on a device what was refused is undone, in place of what could be redone, and can be redone itself.
  const bool on_device = session.on_device();
  const auto state = [&] {
    std::string text;
    auto steps = session.steps();
    if (on_device) steps.resize(session.step_position());
    for (const Session::Step& step : steps)
      text += step.label + " " + std::to_string(step.voxels) + " " + std::to_string(step.records) + "; ";
    const SceneFacts facts = facts_of(session);
    return text + std::to_string(session.step_position()) + " " + std::to_string(facts.pos_sum) + " " +
           std::to_string(facts.col_sum) + " " + std::to_string(session.scene().palette.materials[7].roughness);
  };
  const std::string before = state();
  Palette palette = session.scene().palette;
  palette.materials[7].roughness = 0.125f;
  {
    const FullDisk full(file.string() + "-wal");
    for (int again = 0; again < 2; ++again) {
      CHECK_FALSE(session.apply(ball(40, 0, 0, 6, 9)));
      CHECK(state() == before);
      REQUIRE(session.begin_stroke());
      CHECK(session.apply(ball(40, 0, 0, 6, 9)).has_value() == on_device);
      CHECK(session.apply(ball(45, 0, 0, 6, 9)).has_value() == on_device);
      CHECK(session.end_stroke().has_value() != on_device);
      CHECK(state() == before);
      session.preview_palette(palette);
      CHECK_FALSE(session.set_palette(palette));
      CHECK(state() == before);
      CHECK_FALSE(session.undo());
      CHECK(state() == before);
      CHECK_FALSE(session.redo());
      CHECK(state() == before);
      CHECK_FALSE(session.go_to_step(0));
      CHECK(state() == before);
    }
  }
  // There is room again, so everything works, on disk too.
  REQUIRE(session.redo());
  CHECK((session.scene().palette.materials[7].roughness == 0.125f) == on_device);
  REQUIRE(session.undo());
  CHECK(state() == before);
  // If the disk cuts a stroke short, the step consists of the edits that were kept; at home on a device, which has none
  // in the file before the stroke ends, of all if there is room by then.
  REQUIRE(session.begin_stroke());
  REQUIRE(session.apply(ball(0, -20, 0, 3, 4)));
  {
    const FullDisk full(file.string() + "-wal");
    CHECK(session.apply(ball(8, -20, 0, 3, 4)).has_value() == on_device);
  }
  REQUIRE(session.apply(ball(16, -20, 0, 3, 4)));
  REQUIRE(session.end_stroke());
  REQUIRE(session.steps().size() == 3);
  CHECK(session.steps()[2].records == parts_of(session, 2));
  REQUIRE(session.undo());
  CHECK(facts_of(session).pos_sum == std::stoull(before.substr(before.find("; 2 ") + 4)));
  const std::string last = state();
  session.close(true);
  REQUIRE(session.open(file));
  CHECK(state() == last);
}

TEST_CASE(
    "session: saving in any format settles the question, and work done after it is kept safe anew with its whole "
    "history") {
  const engine::Home home = some_home();
  for (const char* name : {"saved.vox", "saved.glb", "saved.binvox"}) {
    INFO(name);
    const fs::path dir = test::scratch_dir("session-settled"), recovery = dir / "recovery";
    fs::path left;
    {
      Session session(place_of(home), recovery);
      REQUIRE(session.start_new());
      session.begin_stroke();
      REQUIRE(session.apply(ball(0, 0, 0, 5, 9)));
      REQUIRE(session.apply(ball(4, 0, 0, 5, 9)));
      session.end_stroke();
      CHECK(session.unsaved());
      REQUIRE(session.save_as(dir / name));
      CHECK_FALSE(session.unsaved());
      CHECK(fs::exists(dir / name));
      CHECK(test::names_in(recovery).empty());  // after a crash now there would be nothing to offer
      // The history still exists, and new edits are kept safe.
      CHECK(session.steps().size() == 1);
      REQUIRE(session.apply(ball(20, 0, 0, 5, 9)));
      CHECK(session.unsaved());
      left = session.store_file();
      REQUIRE_FALSE(left.empty());
    }
    {
      Session session(place_of(home), recovery);
      REQUIRE(session.recover(left));
      REQUIRE(session.steps().size() == 2);
      CHECK(session.steps()[0].records == parts_of(session, 2));
      REQUIRE(session.undo());
      REQUIRE(session.undo());
      CHECK(session.shown().voxels == 0);
      REQUIRE(session.redo());
      // An undo after saving is also a change.
      REQUIRE(session.save_as(dir / name));
      CHECK_FALSE(session.unsaved());
      REQUIRE(session.undo());
      CHECK(session.unsaved());
      // Saved as a world file, the document keeps all of its history, though no recovery file had it.
      REQUIRE(session.redo());
      REQUIRE(session.save_as(dir / name));
      REQUIRE(session.save_as(dir / "whole.quarry"));
    }
    CHECK(test::names_in(recovery).empty());
    std::vector<UndoRecord> history;
    REQUIRE(io::Store::read(dir / "whole.quarry", {}, &history));
    CHECK(history.size() == (home == engine::Home::host ? 3 : 2));  // the records of a stroke, and of an edit
  }
}

TEST_CASE("session: a .vox is written back where it was opened, and what would be lost is known before") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session-write-back");
  Scene scene;
  scene.palette = Palette::standard();
  scene.volumes.push_back({"thing", {}, {}});
  scene.volumes[0].bricks.set({1, 2, 3}, 5);
  scene.instances.push_back({});
  REQUIRE(io::write_scene(scene, dir / "thing.vox"));
  REQUIRE(io::write_scene(scene, dir / "thing.glb"));
  REQUIRE(io::write_scene(scene, dir / "thing.nrrd"));
  Session session(place_of(home), dir / "recovery");
  REQUIRE(session.start_new());
  CHECK(session.write_back().error().code == ErrorCode::not_found);
  for (const char* other : {"thing.glb", "thing.nrrd"}) {  // their content differs from what was read
    REQUIRE(session.open(dir / other));
    const auto meant = session.write_back();
    REQUIRE_FALSE(meant);
    CHECK(meant.error().code == ErrorCode::unsupported);
    CHECK(meant.error().message.find(other) == 0);
  }
  REQUIRE(session.open(dir / "thing.vox"));
  REQUIRE(session.apply(ball(10, 2, 3, 2, 7)));
  auto meant = session.write_back();
  REQUIRE(meant);
  CHECK(meant->losses.empty());
  CHECK_FALSE(meant->changed_on_disk);
  REQUIRE(session.save_as(session.file()));
  CHECK_FALSE(session.unsaved());
  CHECK(session.title() == "thing.vox");
  const auto written = io::read_scene(dir / "thing.vox");
  REQUIRE(written);
  CHECK(scene_facts(*written, Axes::y_up)->flat_all == session.shown().voxels);
  CHECK_FALSE(session.write_back()->changed_on_disk);  // our own writes do not count
  // A change by another program.
  auto bytes = test::file_bytes(dir / "thing.vox");
  test::write_bytes(dir / "other", bytes);
  fs::rename(dir / "other", dir / "thing.vox");
  CHECK(session.write_back()->changed_on_disk);
  REQUIRE(session.save_as(session.file()));
  CHECK_FALSE(session.write_back()->changed_on_disk);
  // If the file was removed, it is written again.
  fs::remove(dir / "thing.vox");
  REQUIRE(session.write_back());
  CHECK_FALSE(session.write_back()->changed_on_disk);
  REQUIRE(session.save_as(session.file()));
  CHECK(fs::exists(dir / "thing.vox"));
  // Parts that reading left out would be lost.
  bytes = test::file_bytes(dir / "thing.vox");
  for (const char c : std::string("xyzQ")) bytes.push_back(uint8_t(c));
  test::write_bytes(dir / "odd.vox", bytes);
  std::vector<std::string> warnings;
  io::ReadOptions options;
  options.warnings = &warnings;
  REQUIRE(io::read_scene(dir / "odd.vox", options));
  REQUIRE(warnings.size() == 1);
  REQUIRE(session.open(dir / "odd.vox"));
  meant = session.write_back();
  REQUIRE(meant);
  CHECK(meant->losses == std::vector<std::string>{"not read: " + warnings[0]});
  // A world file is always up to date.
  REQUIRE(session.save_as(dir / "w.quarry"));
  REQUIRE(session.write_back());
  CHECK(session.write_back()->losses.empty());
}

TEST_CASE("session: without a file a history over its memory loses its oldest steps, and says so once") {
  const engine::Home home = some_home();
  Session session(place_of(home), {});
  REQUIRE(session.start_new());
  session.set_history_budget(1);
  REQUIRE(session.apply(ball(0, 0, 0, 0, 1)));
  REQUIRE(session.take_notice().find("not kept safe") == std::string::npos);
  (void)session.take_notice();
  REQUIRE(session.apply(ball(8, 0, 0, 0, 1)));
  REQUIRE(session.dropped_steps() == 1);
  REQUIRE(session.take_notice().find("oldest steps can no longer be undone") != std::string::npos);
  REQUIRE(session.apply(ball(16, 0, 0, 0, 1)));
  REQUIRE(session.take_notice().empty());
  REQUIRE(session.steps().size() == 1);
  for (int i = 0; i < 3; ++i) REQUIRE(session.undo());
  REQUIRE(session.step_position() == 0);
  REQUIRE(session.shown().voxels == 2);
}

TEST_CASE("session: undo and redo reach every step of the file, whatever memory the history may have") {
  const engine::Home home = some_home();
  const fs::path dir = test::scratch_dir("session_history_budget"), file = dir / "world.quarry";
  for (const uint64_t budget : {uint64_t(1), uint64_t(40'000), uint64_t(0)}) {
    INFO(budget);
    fs::remove(file);
    uint32_t seed = 20261127;
    const auto below = [&](uint32_t count) {
      seed = seed * 1664525u + 1013904223u;
      return (seed >> 8) % count;
    };
    auto session = std::make_unique<Session>(place_of(home), dir / "recovery");
    session->set_history_budget(budget);
    REQUIRE(session->start_new());
    REQUIRE(session->save_as(file));
    (void)session->take_notice();
    // What each step left: the voxels, and the roughness of a material.
    struct State {
      uint64_t sum;
      float roughness;
    };
    const auto state = [&] {
      return State{facts_of(*session).col_sum, session->scene().palette.materials[7].roughness};
    };
    std::vector<State> states{state()};
    size_t at = 0, undone = 0, redone = 0;
    constexpr int kChanges = test::kThreadSanitized ? 50 : test::kSanitized ? 100 : 200;
    for (int change = 0; change < kChanges; ++change) {
      INFO("change " << change);
      const uint32_t what = change < 12 ? 7 + below(3) : below(10);
      const auto position = [&] { return Int3{int32_t(below(60)), int32_t(below(60)), int32_t(below(60))}; };
      if (what < 3) {
        for (uint32_t times = 1 + below(5); times-- > 0 && at > 0; --at, ++undone) {
          REQUIRE(session->undo());
        }
      } else if (what < 6) {
        for (uint32_t times = 1 + below(5); times-- > 0 && at + 1 < states.size(); ++at, ++redone) {
          REQUIRE(session->redo());
        }
      } else if (what == 6) {
        session.reset();  // and opened again
        session = std::make_unique<Session>(place_of(home), dir / "recovery");
        session->set_history_budget(budget);
        REQUIRE(session->open(file));
        REQUIRE(session->take_notice().empty());
      } else {
        if (what == 7) {
          Palette palette = session->scene().palette;
          palette.materials[7].roughness = float(1 + change) / 128;
          REQUIRE(session->set_palette(palette));
        } else if (what == 8) {
          const Int3 v = position();
          REQUIRE(session->apply(ball(v.x, v.y, v.z, 3 + below(9), uint8_t(1 + change), Mode::fill)));
        } else {
          REQUIRE(session->begin_stroke());
          for (int i = 0; i < 3; ++i) {
            const Int3 v = position();
            REQUIRE(session->apply(ball(v.x, v.y, v.z, 2 + below(5), uint8_t(1 + change), Mode::fill)));
          }
          REQUIRE(session->end_stroke());
        }
        states.resize(++at);
        states.push_back(state());
      }
      const State now = state();
      REQUIRE(now.sum == states[at].sum);
      REQUIRE(now.roughness == states[at].roughness);
      REQUIRE(session->steps().size() == states.size() - 1);
      REQUIRE(session->step_position() == at);
      REQUIRE(session->can_undo() == (at > 0));
      REQUIRE(session->can_redo() == (at + 1 < states.size()));
      REQUIRE(session->dropped_steps() == 0);
      if (change % 9 == 0) REQUIRE(facts_of(copy_of(file)).col_sum == now.sum);
      if (change % 50 == 19) {
        REQUIRE(session->set_instance_hidden(0, true));
        REQUIRE(session->set_instance_hidden(0, false));
        REQUIRE(session->step_position() == at);
      }
    }
    REQUIRE(undone > kChanges / 10);
    REQUIRE(redone > kChanges / 20);
    REQUIRE(session->go_to_step(0));
    REQUIRE(state().sum == states[0].sum);
    REQUIRE(session->go_to_step(states.size() - 1));
    REQUIRE(state().sum == states.back().sum);
    REQUIRE(facts_of(copy_of(file)).col_sum == states.back().sum);
  }
}

TEST_CASE("session: what was made at one home goes on at the other, with the steps of the file, hidden or not") {
  const fs::path dir = test::scratch_dir("session-homes");
  const fs::path file = saved_world(dir);
  const engine::Home homes[] = {engine::Home::host, engine::Home::emulated};
  const auto stroke = [](Session& session, int at) {
    REQUIRE(session.begin_stroke());
    for (int i = 0; i < 3; ++i) REQUIRE(session.apply(ball(20 * at + 2 * i, 0, 0, 3, uint8_t(i + 1), Mode::fill)));
    REQUIRE(session.end_stroke());
  };
  std::vector<uint64_t> sums{facts_of(file).col_sum};
  for (int round = 0; round < 4; ++round) {
    Session session(place_of(homes[round % 2]), dir / "recovery");
    REQUIRE(session.open(file));
    REQUIRE(session.on_device() == (round % 2 == 1));
    stroke(session, round);
    REQUIRE(session.kept_at());
    sums.push_back(facts_of(session).col_sum);
    REQUIRE(facts_of(copy_of(file)).col_sum == sums.back());
    if (round > 1) {
      REQUIRE(session.set_instance_hidden(0, true));
      REQUIRE_FALSE(session.on_device());
      REQUIRE(session.set_instance_hidden(0, false));
      REQUIRE(session.on_device() == (round % 2 == 1));
      REQUIRE(facts_of(session).col_sum == sums.back());
      REQUIRE(session.undo());
      REQUIRE(facts_of(copy_of(file)).col_sum == sums[sums.size() - 2]);
      REQUIRE(session.redo());
    }
    REQUIRE(session.steps().size() == sums.size());  // and the first ball
  }
  for (const engine::Home home : homes) {
    Session session(place_of(home), dir / "recovery");
    REQUIRE(session.open(file));
    for (size_t i = sums.size() - 1; i-- > 0;) {
      REQUIRE(session.undo());
      CHECK(facts_of(session).col_sum == sums[i]);
      CHECK(facts_of(copy_of(file)).col_sum == sums[i]);
    }
    for (size_t i = 1; i < sums.size(); ++i) {
      REQUIRE(session.redo());
      CHECK(facts_of(session).col_sum == sums[i]);
    }
  }
}

TEST_CASE("session: at home on a device the edits of a stroke are in the file when it ends, and not before") {
  const fs::path dir = test::scratch_dir("session-stroke-kept");
  const fs::path file = saved_world(dir);
  Session session(place_of(engine::Home::emulated), dir / "recovery");
  REQUIRE(session.open(file));
  const uint64_t before = facts_of(session).pos_sum;
  REQUIRE_FALSE(session.kept_at());
  REQUIRE(session.begin_stroke());
  for (int i = 1; i < 4; ++i) REQUIRE(session.apply(ball(10 * i, 0, 0, 3, 3)));
  CHECK_FALSE(session.kept_at());
  CHECK(facts_of(copy_of(file)).pos_sum == before);
  CHECK(session.steps().size() == 2);
  REQUIRE(session.end_stroke());
  CHECK(session.kept_at());
  CHECK(facts_of(copy_of(file)).pos_sum == facts_of(session).pos_sum);
  CHECK(session.steps().size() == 2);
  // A stroke that changes nothing writes nothing.
  REQUIRE(session.begin_stroke());
  REQUIRE(*session.apply(ball(500, 0, 0, 3, 0, Mode::remove)) == 0);
  REQUIRE(session.end_stroke());
  CHECK(session.steps().size() == 2);
  // A ray meets what it would meet on the host.
  const auto pick = session.pick({{10, 50, 0.5}, {0, -1, 0}});
  REQUIRE(pick);
  CHECK(pick->voxel == Int3{10, 3, 0});
  CHECK(pick->normal == Int3{0, 1, 0});
  CHECK(pick->material == 3);
  CHECK(session.instance_at(pick->voxel) == 0u);
  CHECK_FALSE(session.pick({{200, 50, 0.5}, {0, -1, 0}}));
}

TEST_CASE("session: with its device lost at any call the document is opened again on the host, as it is in its file") {
  const fs::path dir = test::scratch_dir("session-lost");
  const fs::path begun = saved_world(dir), file = dir / "w.quarry";
  const std::vector<std::pair<const char*, std::function<Result<void>(Session&)>>> changes{
      {"an edit",
       [](Session& session) -> Result<void> {
         QRY_TRY(session.apply(ball(12, 0, 0, 4, 3)));
         return {};
       }},
      {"a stroke",
       [](Session& session) -> Result<void> {
         QRY_TRY(session.begin_stroke());
         for (int i = 0; i < 3; ++i) QRY_TRY(session.apply(ball(5 * i, 9, 0, 4, 3)));
         return session.end_stroke();
       }},
      {"undo", [](Session& session) { return session.undo(); }},
      {"a volume",
       [](Session& session) -> Result<void> {
         QRY_TRY(session.change(grow(Connectivity::faces, 2)));
         return {};
       }},
      {"materials",
       [](Session& session) {
         Palette palette = session.scene().palette;
         palette.materials[7].roughness = 0.125f;
         return session.set_palette(palette);
       }},
  };
  // Whichever call it is, the same few lines of the session answer; under ThreadSanitizer an opening takes a second.
  constexpr uint64_t kEach = test::kThreadSanitized ? 2 : 6, kStride = test::kThreadSanitized ? 23 : 7;
  for (const auto& [name, change] : changes) {
    INFO(name);
    const uint64_t before = facts_of(begun).col_sum;
    bool done = false;
    for (uint64_t number = 1; !done; number += number < kEach ? 1 : kStride) {
      INFO("call " << number);
      fs::copy_file(begun, file, fs::copy_options::overwrite_existing);
      uint64_t calls = 0;
      bool armed = false;
      WorldPlace place = place_of(engine::Home::emulated);
      place.prepare_home = [&](engine::Home) {
        device::Emulation emulation;
        emulation.before = [&](device::DeviceCall) {
          return armed && ++calls == number ? device::Fault::lost : device::Fault::none;
        };
        return engine::home_memory(engine::Home::emulated, nullptr, engine::SharingMode::automatic,
                                   std::move(emulation));
      };
      Session session(place, dir / "recovery");
      REQUIRE(session.open(file));
      armed = true;
      const auto changed = change(session);
      armed = false;
      done = calls < number;
      REQUIRE(changed.has_value() == done);
      REQUIRE(session.on_device() == done);
      if (!done) {
        CHECK(changed.error().code == ErrorCode::device_lost);
        CHECK_THAT(changed.error().message, Catch::Contains("was opened again, at home on the host") &&
                                                Catch::Contains("the last steps there: add sphere"));
        // Nothing is half there, and memory and file are the same.
        const uint64_t now = facts_of(session).col_sum;
        CHECK(facts_of(copy_of(file)).col_sum == now);
        CHECK(now == before);
        CHECK(session.is_world_file());
        REQUIRE(session.begin_stroke());
        REQUIRE(session.apply(ball(0, 0, 30, 4, 3)));
        REQUIRE(session.end_stroke());
        REQUIRE(session.undo());
        CHECK(facts_of(copy_of(file)).col_sum == before);
      }
    }
  }
}

}  // namespace document_session_test
