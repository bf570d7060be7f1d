#include "app/editor/session.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "app/editor/recovery.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"

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

SceneFacts facts_of(const Session& session) { return *scene_facts(session.scene(), Axes::y_up); }

// A world file with one small ball.
fs::path saved_world(const fs::path& dir) {
  Session session({}, dir / "recovery");
  REQUIRE(session.start_new());
  REQUIRE(session.apply(ball(0, 0, 0, 3, 7)));
  REQUIRE(session.save_as(dir / "world.quarry"));
  return dir / "world.quarry";
}

}  // namespace

TEST_CASE("session: each edit of a world file is in the file when the call returns") {
  const fs::path dir = test::scratch_dir("session-commit");
  const fs::path file = saved_world(dir);
  Session session({}, dir / "recovery");
  REQUIRE(session.open(file));
  CHECK(session.is_world_file());
  for (int i = 1; i <= 5; ++i) {
    const auto changed = session.apply(ball(i * 10, 0, 0, 4, uint8_t(i)));
    REQUIRE(changed);
    CHECK(*changed > 0);
    CHECK_FALSE(session.unsaved());
    // A copy of the file as it lies there now, as after a crash.
    const fs::path copy = dir / "copy.quarry";
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    for (const char* suffix : {"-wal", "-journal", "-shm"})
      if (fs::exists(file.string() + suffix)) fs::copy_file(file.string() + suffix, copy.string() + suffix, fs::copy_options::overwrite_existing);
    CHECK(facts_of(copy).pos_sum == facts_of(session).pos_sum);
    CHECK(facts_of(copy).col_sum == facts_of(session).col_sum);
  }
}

TEST_CASE("session: saving over a world whose editor was killed leaves nothing of that editor's log, and a damaged log is not opened") {
  const fs::path dir = test::scratch_dir("session-over-crashed");
  const fs::path file = saved_world(dir), crashed = dir / "crashed.quarry", log = dir / "crashed.quarry-wal";
  {
    Session session({}, dir / "recovery");
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
    Session session({}, dir / "recovery");
    const auto refused = session.open(dir / "hurt.quarry");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("hurt.quarry-wal, is damaged") != std::string::npos);
    CHECK((test::file_bytes(dir / "hurt.quarry-wal") == bytes));
    // As unsaved work it is not offered as an older state, but said.
    std::vector<std::pair<fs::path, Error>> damaged;
    for (const RecoveryFile& offered : recoverable_files(dir, &damaged)) CHECK(offered.file.filename() != "hurt.quarry");
    REQUIRE(damaged.size() == 1);
    CHECK(damaged[0].first.filename() == "hurt.quarry");
  }
  Session session({}, dir / "recovery");
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
  const fs::path dir = test::scratch_dir("session-undo");
  const fs::path file = saved_world(dir);
  std::vector<uint64_t> sums;
  {
    Session session({}, dir / "recovery");
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
    CHECK(steps[1].records == 3);
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
    CHECK(session.world().voxel_count() == 0);
    REQUIRE(session.go_to_step(2));
  }
  Session session({}, dir / "recovery");
  REQUIRE(session.open(file));
  CHECK(facts_of(session).pos_sum == sums[1]);
  REQUIRE(session.redo());
  CHECK(facts_of(session).pos_sum == sums[2]);
  // A new edit drops what could be redone.
  REQUIRE(session.undo());
  REQUIRE(session.apply(ball(0, -12, 0, 3, 4)));
  CHECK_FALSE(session.document().can_redo());
  CHECK(session.step_position() == session.steps().size());
}

TEST_CASE("session: a new document keeps its edits in a recovery file that a crash leaves and a clean end removes") {
  const fs::path dir = test::scratch_dir("session-recovery") / "recovery";
  fs::path left;
  uint64_t sum = 0;
  {
    Session session({}, dir);
    REQUIRE(session.start_new());
    CHECK(session.store_file().empty());  // nothing is written for looking
    REQUIRE(session.apply(ball(1, 2, 3, 5, 9)));
    REQUIRE(session.apply(ball(9, 2, 3, 5, 8)));
    CHECK(session.unsaved());
    CHECK(recoverable_files(dir).empty());  // it is open: not offered to others
    left = session.store_file();
    sum = facts_of(session).col_sum;
  }
  const auto files = recoverable_files(dir);
  REQUIRE(files.size() == 1);
  CHECK(files[0].file == left);
  CHECK(files[0].title == "untitled");
  {
    Session session({}, dir);
    REQUIRE(session.recover(left));
    CHECK(facts_of(session).col_sum == sum);
    CHECK(session.unsaved());
    CHECK_FALSE(session.is_world_file());
    REQUIRE(session.undo());  // its history is there too
    REQUIRE(session.redo());
    REQUIRE(session.save_as(dir / "../kept.quarry"));
    CHECK_FALSE(session.unsaved());
    CHECK_FALSE(fs::exists(left));
  }
  CHECK(recoverable_files(dir).empty());
  CHECK(facts_of(dir / "../kept.quarry").col_sum == sum);
}

TEST_CASE("session: saving under a new name takes the history along and goes on there") {
  const fs::path dir = test::scratch_dir("session-save-as");
  const fs::path first = saved_world(dir), second = dir / "second.quarry";
  Session session({}, dir / "recovery");
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
  CHECK(facts_of(first).pos_sum == after);  // the old file keeps what was committed to it
}

TEST_CASE("session: a file that cannot be opened leaves the open document as it was") {
  const fs::path dir = test::scratch_dir("session-bad-open");
  Session session({}, dir / "recovery");
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
  CHECK(session.world().voxel_count() == 0);
}

TEST_CASE("session: edits in world axes reach the volume through a turned and shifted instance") {
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
  Session session({}, dir / "recovery");
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
    for (int y = 0; y <= 2; ++y) CHECK(session.world().get({placed.x + x, placed.y + y, placed.z}) == 77);
  CHECK(session.scene().volumes[0].bricks.voxel_count() == 1);
  // The outline of what is chosen follows the edit.
  CHECK(session.active_box() == Box3{placed, placed + Int3{4, 2, 0}});
  REQUIRE(session.undo());
  CHECK(session.active_box() == Box3{placed, placed});
  REQUIRE(session.set_instance_hidden(1, true));
  CHECK(session.active_box().empty());
}

TEST_CASE("session: hiding an instance takes its voxels out of the world, and edits do not act on what is hidden") {
  const fs::path dir = test::scratch_dir("session-hide");
  const fs::path file = saved_world(dir);
  Session session({}, dir / "recovery");
  REQUIRE(session.open(file));
  const uint64_t voxels = session.world().voxel_count();
  REQUIRE(session.set_instance_hidden(0, true));
  CHECK(session.world().voxel_count() == 0);
  CHECK_FALSE(session.apply(ball(0, 0, 0, 2, 1)));
  session.close(true);
  REQUIRE(session.start_new());
  REQUIRE(session.open(file));  // it is kept in the file
  CHECK(session.scene().instances[0].hidden);
  CHECK(session.world().voxel_count() == 0);
  REQUIRE(session.set_instance_hidden(0, false));
  CHECK(session.world().voxel_count() == voxels);
  REQUIRE(session.undo());  // the history came along
  CHECK(session.world().voxel_count() == 0);
}

TEST_CASE("session: an edit outside the world is refused and changes neither memory nor file") {
  const fs::path dir = test::scratch_dir("session-outside");
  const fs::path file = saved_world(dir);
  Session session({}, dir / "recovery");
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
  const fs::path dir = test::scratch_dir("session-palette");
  const fs::path file = saved_world(dir);
  {
    Session session({}, dir / "recovery");
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
