// SPDX-License-Identifier: Apache-2.0
// document_test.cpp - Document under random histories of edits, writes, undo and redo. After every step the world must
// equal the flattened scene, and the volumes a model of single voxels.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/limited_memory.hpp"
#include "voxel/worlds/document.hpp"

namespace document_test {

using namespace quarry;

namespace {

Edit random_edit(std::mt19937& random, int reach) {
  const auto pick = [&] { return int(random() % uint32_t(2 * reach)) - reach; };
  Edit edit;
  edit.shape = Shape(random() % 3);
  edit.mode = Mode(random() % 5);
  edit.a = {pick(), pick(), pick()};
  edit.b = {pick(), pick(), pick()};
  if (edit.shape == Shape::box) edit.b = edit.a + Int3{int(random() % 20), int(random() % 20), int(random() % 20)};
  edit.radius = double(random() % 20) / 2;
  edit.material = uint8_t(random() % 6);
  edit.from = uint8_t(1 + random() % 5);
  return edit;
}

// Two volumes, one of them in three instances: rotated, mirrored, overlapping the other; one instance is hidden.
Scene small_scene(std::mt19937& random) {
  Scene scene;
  scene.volumes.resize(2);
  for (Volume& volume : scene.volumes)
    for (int n = 0; n < 2000; ++n)
      volume.bricks.set({int(random() % 40) - 20, int(random() % 40) - 20, int(random() % 40) - 20},
                        uint8_t(1 + random() % 5));
  scene.instances.resize(5);
  scene.instances[1].volume = 1;
  scene.instances[1].offset = {16, -8, 24};
  scene.instances[2].volume = 1;
  scene.instances[2].offset = {-13, 5, 7};
  scene.instances[2].rotation = {{1, 0, 2}, {1, -1, 1}};
  scene.instances[3].volume = 1;
  scene.instances[3].rotation = {{2, 0, 1}, {-1, 1, 1}};
  scene.instances[4].hidden = true;
  scene.instances[4].offset = {100, 0, 0};
  scene.overlap = (random() & 1) ? OverlapRule::first_instance_wins : OverlapRule::last_instance_wins;
  return scene;
}

void require_flattened(const Document& document) {
  const auto flat = flatten(document.scene(), true);
  REQUIRE(flat);
  BrickMap seen;
  document.world().for_each_brick([&](Int3 at, const Brick& brick) { seen.put(at, brick); });
  REQUIRE((seen == *flat));
  REQUIRE(document.world().voxel_count() == flat->voxel_count());
  REQUIRE(document.world().bounds() == flat->bounds());
}

Document make(Scene scene, const WorldMemory& memory = {}) {
  auto document = Document::create(std::move(scene), memory);
  REQUIRE(document);
  return std::move(*document);
}

using Volumes = std::vector<BrickMap>;
Volumes volumes_of(const Document& document) {
  Volumes volumes;
  for (const Volume& volume : document.scene().volumes) volumes.push_back(volume.bricks);
  return volumes;
}

}  // namespace

TEST_CASE(
    "document: through random edits, undo and redo the world is the scene flattened, and every state comes back "
    "exactly") {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    Document document = make(small_scene(random));
    require_flattened(document);
    std::vector<Volumes> states = {volumes_of(document)};  // states[i]: after i entries of the history
    size_t position = 0;
    for (int step = 0; step < 120; ++step) {
      const uint32_t what = uint32_t(random() % 10);
      const uint64_t version = document.version();
      if (what < 3) {
        const auto record = document.undo();
        REQUIRE(record.has_value() == (position > 0));
        if (record) --position;
      } else if (what < 5) {
        const auto record = document.redo();
        REQUIRE(record.has_value() == (position + 1 < states.size()));
        if (record) ++position;
      } else {
        const auto volume = uint32_t(random() % 2);
        const auto record = document.apply(volume, random_edit(random, 24));
        REQUIRE(record);
        if (!(*record)->changes.empty()) {
          REQUIRE((*record)->volume == volume);
          states.resize(++position);
          states.push_back(volumes_of(document));
          REQUIRE(document.version() > version);
        } else {
          REQUIRE((*record)->voxels_changed == 0);
          REQUIRE(document.version() == version);
        }
      }
      REQUIRE(document.history_position() == position);
      REQUIRE(document.history().size() + 1 == states.size());
      REQUIRE(document.can_undo() == (position > 0));
      REQUIRE(document.can_redo() == (position + 1 < states.size()));
      REQUIRE((volumes_of(document) == states[position]));
      if (step % 10 == 0) require_flattened(document);
    }
    while (document.can_undo()) REQUIRE(document.undo());
    REQUIRE((volumes_of(document) == states[0]));
    require_flattened(document);
    while (document.can_redo()) REQUIRE(document.redo());
    REQUIRE((volumes_of(document) == states.back()));
    require_flattened(document);
  }
}

TEST_CASE("document: the same edits give the same volumes and the same world with 1, 2 and 8 threads") {
  const auto run = [](uint32_t threads) {
    std::mt19937 random(9);
    Document document = make(small_scene(random));
    for (int n = 0; n < 20; ++n) REQUIRE(document.apply(uint32_t(random() % 2), random_edit(random, 60), threads));
    return document;
  };
  const Document one = run(1);
  const auto pairs = one.world().grid().enumerate(true);
  REQUIRE(pairs);
  for (const uint32_t threads : {2u, 8u}) {
    const Document many = run(threads);
    REQUIRE((volumes_of(many) == volumes_of(one)));
    const auto its_pairs = many.world().grid().enumerate(true);
    REQUIRE(its_pairs);
    REQUIRE((its_pairs->keys == pairs->keys));
    for (size_t i = 0; i < pairs->values.size(); ++i)
      REQUIRE((many.world().pool().get(its_pairs->values[i]) == one.world().pool().get(pairs->values[i])));
  }
}

TEST_CASE("document: written bricks are one entry of the history and come and go with it") {
  auto document = Document::create_empty();
  REQUIRE(document);
  Brick stone, sand;
  for (uint32_t i = 0; i < 512; ++i) stone.set(i, 4), sand.set(i, i % 3 ? uint8_t(0) : uint8_t(7));
  const std::vector<World::BrickWrite> first = {{{3, 0, 0}, stone}, {{-1, 0, 0}, sand}, {{2, 5, 5}, Brick{}}};
  auto record = document->write(0, first, "stamp");
  REQUIRE(record);
  REQUIRE((*record)->label == "stamp");
  REQUIRE((*record)->changes.size() == 2);
  REQUIRE((*record)->changes[0].brick == Int3{-1, 0, 0});
  REQUIRE((*record)->voxels_changed == 512 + 171);
  REQUIRE(document->world().get({24, 0, 0}) == 4);
  const std::vector<World::BrickWrite> second = {{{3, 0, 0}, sand}, {{-1, 0, 0}, Brick{}}};
  REQUIRE(document->write(0, second, "stamp"));
  REQUIRE(document->world().brick_count() == 1);
  REQUIRE(document->undo());
  REQUIRE(document->undo());
  REQUIRE(document->world().voxel_count() == 0);
  REQUIRE(document->redo());
  require_flattened(*document);
  REQUIRE(document->world().voxel_count() == 512 + 171);
  const std::vector<World::BrickWrite> twice = {{{0, 0, 0}, sand}, {{0, 0, 0}, stone}};
  REQUIRE(document->write(0, twice, "").error().code == ErrorCode::invalid_argument);
  const std::vector<World::BrickWrite> far = {{{0, 0, 0}, sand}, {{1 << 28, 0, 0}, stone}};
  REQUIRE(document->write(0, far, "").error().code == ErrorCode::out_of_bounds);
  require_flattened(*document);
}

TEST_CASE("document: an edit that cannot be changes nothing and says why", "[one-caller]") {
  std::mt19937 random(5);
  Document document = make(small_scene(random), {.max_bricks = 2000});
  Edit first;
  first.b = {9, 9, 9};
  first.mode = Mode::fill;
  first.material = 77;
  REQUIRE(document.apply(0, first));
  const Volumes before = volumes_of(document);
  const size_t entries = document.history().size(), position = document.history_position();
  const uint64_t version = document.version(), world_version = document.world().version();
  const auto refused = [&](uint32_t volume, const Edit& edit, ErrorCode code) {
    const auto record = document.apply(volume, edit);
    REQUIRE_FALSE(record);
    REQUIRE(record.error().code == code);
    REQUIRE_FALSE(record.error().message.empty());
    REQUIRE((volumes_of(document) == before));
    REQUIRE(document.history().size() == entries);
    REQUIRE(document.history_position() == position);
    REQUIRE(document.version() == version);
    REQUIRE(document.world().version() == world_version);
    require_flattened(document);
  };
  Edit edit;
  edit.material = 3;
  refused(2, edit, ErrorCode::invalid_argument);
  edit.shape = Shape::sphere;
  edit.radius = -3;
  refused(0, edit, ErrorCode::invalid_argument);
  edit.radius = 5;
  edit.a = {8190, 0, 0};
  refused(0, edit, ErrorCode::out_of_bounds);
  edit.a = {8170, 0, 0};  // fits by itself, but an instance of volume 1 is 16 further on
  REQUIRE(document.apply(0, edit));
  REQUIRE(document.undo());
  const auto out = document.apply(1, edit);
  REQUIRE_FALSE(out);
  REQUIRE(out.error().code == ErrorCode::out_of_bounds);
  REQUIRE((volumes_of(document) == before));
  // The corner brick whose key is reserved.
  Edit corner;
  corner.shape = Shape::box;
  corner.a = {8180, 4080, 8180};
  corner.b = {8191, 4095, 8191};
  corner.material = 1;
  REQUIRE(document.apply(0, corner).error().code == ErrorCode::out_of_bounds);
  REQUIRE((volumes_of(document) == before));
  // More bricks than the pool may hold.
  Edit large;
  large.shape = Shape::box;
  large.a = {-200, -200, -200};
  large.b = {200, 200, 200};
  large.material = 1;
  REQUIRE(document.apply(0, large).error().code == ErrorCode::full);
  REQUIRE((volumes_of(document) == before));
  require_flattened(document);
  REQUIRE(document.undo());
  require_flattened(document);
}

TEST_CASE("document: memory refused in the middle of an edit or an undo changes nothing") {
  test::LimitedMemory memory;
  auto document = Document::create_empty({.memory = &memory});
  REQUIRE(document);
  Edit edit;
  edit.shape = Shape::box;
  edit.b = {300, 300, 300};  // 55,000 bricks: a second slab, more pages
  memory.refuse_after = 1;
  REQUIRE(document->apply(0, edit).error().code == ErrorCode::out_of_memory);
  REQUIRE(document->scene().volumes[0].bricks.empty());
  REQUIRE(document->world().brick_count() == 0);
  REQUIRE(document->history().empty());
  memory.refuse_after = size_t(-1);
  REQUIRE(document->apply(0, edit));
  REQUIRE(document->world().voxel_count() == 301ull * 301 * 301);
  REQUIRE(document->scene().volumes[0].bricks.voxel_count() == 301ull * 301 * 301);
}

TEST_CASE("document: history restored from a file can be undone and redone") {
  std::mt19937 random(6);
  const Scene scene = small_scene(random);
  Document document = make(scene);
  for (int n = 0; n < 6; ++n) REQUIRE(document.apply(uint32_t(n % 2), random_edit(random, 20)));
  REQUIRE(document.undo());
  Document reopened = make(document.scene());
  REQUIRE(reopened.restore_history(document.history(), document.history_position()));
  while (reopened.can_redo()) REQUIRE(reopened.redo());
  REQUIRE(document.redo());
  REQUIRE((volumes_of(reopened) == volumes_of(document)));
  while (reopened.can_undo()) REQUIRE(reopened.undo());
  REQUIRE((reopened.scene().volumes[0].bricks == scene.volumes[0].bricks));
  require_flattened(reopened);
}

TEST_CASE("document: cancelling while it is built leaves nothing, and progress is told") {
  std::mt19937 random(7);
  const Scene scene = small_scene(random);
  std::atomic<bool> cancel{false};
  double last = -2;
  Progress progress{[&](std::string_view, double fraction) { last = fraction; }, &cancel};
  REQUIRE(Document::create(scene, {}, progress));
  REQUIRE(last == 1.0);
  cancel = true;
  REQUIRE(Document::create(scene, {}, progress).error().code == ErrorCode::cancelled);
}

TEST_CASE("document: a new palette is a new version") {
  auto document = Document::create_empty();
  REQUIRE(document);
  Palette palette = Palette::standard();
  palette.materials[3].r = 1;
  const uint64_t version = document->version();
  document->set_palette(palette);
  REQUIRE((document->scene().palette == palette));
  REQUIRE(document->version() > version);
}

TEST_CASE("document: a step of several records is undone and redone whole, and each world brick is as the scene says") {
  std::mt19937 random(8);
  Document document = make(small_scene(random));
  const Volumes start = volumes_of(document);
  Edit first;
  first.b = {30, 3, 3};
  first.mode = Mode::fill;
  first.material = 7;
  REQUIRE(document.apply(0, first, 0, true));  // there is no step to continue: it begins one
  std::vector<Volumes> bounds = {start, volumes_of(document)};
  std::vector<size_t> lengths = {1};
  for (int step = 0; step < 8; ++step) {
    const size_t before = document.history().size();
    // Both volumes, and overlapping places, so that the order of the records matters.
    for (int part = 0; part < 4; ++part)
      REQUIRE(document.apply(uint32_t(part % 2), random_edit(random, 6), 0, document.history().size() > before));
    if (document.history().size() == before) continue;
    lengths.push_back(document.history().size() - before);
    bounds.push_back(volumes_of(document));
  }
  REQUIRE(lengths.size() > 4);
  REQUIRE(document.step_count() == lengths.size());
  for (size_t at = lengths.size(); at-- > 0;) {
    const auto step = document.undo();
    REQUIRE(step);
    REQUIRE(step->size() == lengths[at]);
    REQUIRE((volumes_of(document) == bounds[at]));
    REQUIRE(document.step_position() == at);
    require_flattened(document);
  }
  for (size_t at = 0; at < lengths.size(); ++at) {
    const auto step = document.redo();
    REQUIRE(step);
    REQUIRE(step->size() == lengths[at]);
    REQUIRE((volumes_of(document) == bounds[at + 1]));
    require_flattened(document);
  }
  REQUIRE_FALSE(document.can_redo());
}

TEST_CASE(
    "document: a change that cannot be kept elsewhere leaves scene, world and history as they were, with all "
    "that could be redone") {
  std::mt19937 random(9);
  Document document = make(small_scene(random));
  for (int n = 0; n < 4; ++n) REQUIRE(document.apply(0, random_edit(random, 12), 0, n == 2));
  Palette other = document.scene().palette;
  other.materials[3].roughness = 0.25f;
  REQUIRE(document.change_palette(other));
  REQUIRE(document.undo());
  REQUIRE(document.undo());
  const Volumes before = volumes_of(document);
  const Palette palette = document.scene().palette;
  const size_t entries = document.history().size(), position = document.history_position();
  REQUIRE(entries > position);
  size_t asked = 0;
  const Document::Persist refuse = [&](std::span<const UndoRecord> records) -> Result<void> {
    asked += records.size();
    // It is called with the change in place.
    REQUIRE_FALSE((volumes_of(document) == before && document.scene().palette == palette));
    return fail(ErrorCode::io, "the disk is full");
  };
  const auto unchanged = [&](const auto& refused) {
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().message == "the disk is full");
    REQUIRE((volumes_of(document) == before));
    REQUIRE((document.scene().palette == palette));
    REQUIRE(document.history().size() == entries);
    REQUIRE(document.history_position() == position);
    require_flattened(document);
  };
  Edit edit;
  edit.b = {40, 9, 40};
  edit.material = 6;
  edit.mode = Mode::fill;
  unchanged(document.apply(0, edit, 0, false, refuse));
  unchanged(document.change_palette(other, refuse));
  unchanged(document.undo(refuse));
  unchanged(document.redo(refuse));
  REQUIRE(asked >= 5);
  REQUIRE(document.redo());
  REQUIRE(document.redo());
  REQUIRE((document.scene().palette == other));
}

TEST_CASE("document: a change of the palette is a step that says what it changed, and the same palette is none") {
  auto document = Document::create_empty();
  REQUIRE(document);
  const Palette first = document->scene().palette;
  const uint64_t voxels_version = document->world().version();
  REQUIRE((*document->change_palette(first))->label == "palette: 0 materials");
  REQUIRE(document->history().empty());
  Palette palette = first;
  palette.materials[12].roughness = 0.35f;
  REQUIRE(document->change_palette(palette));
  palette.materials[12].roughness = 0.8675f;
  REQUIRE(document->change_palette(palette));
  const UndoRecord& record = document->history().back();
  REQUIRE(record.label == "material 12: roughness 0.35 to 0.868");
  REQUIRE(record.of_palette());
  REQUIRE(record.changes.empty());
  palette.materials[12].r = 1, palette.materials[12].g = 2, palette.materials[12].b = 0xAB;
  palette.materials[12].ior = 2;
  palette.names[12] = "glass";
  REQUIRE((*document->change_palette(palette))->label == "material 12: colour, refraction, name");
  palette.materials[0].a = 3;
  palette.materials[255].emission = 1;
  REQUIRE((*document->change_palette(palette))->label == "palette: 2 materials");
  while (document->can_undo()) REQUIRE(document->undo());
  REQUIRE((document->scene().palette == first));
  while (document->can_redo()) REQUIRE(document->redo());
  REQUIRE((document->scene().palette == palette));
  REQUIRE(document->world().version() == voxels_version);  // no voxel was written
}

namespace {

// A world of one volume at the origin, with a model of it that is an array.
class ModelledDocument {
 public:
  static constexpr int32_t kEdge = 64, kLow = -32;  // whole bricks
  explicit ModelledDocument(uint32_t seed) : random_(seed), document_(make_document(nullptr)) {
    states_.emplace_back(size_t(kEdge) * kEdge * kEdge);
  }

  void step() {
    switch (random_() % 12) {
      case 0:
      case 1:
        if (document_.can_undo()) {
          REQUIRE(document_.undo());
          --position_;
        }
        break;
      case 2:
      case 3:
        if (document_.can_redo()) {
          REQUIRE(document_.redo());
          ++position_;
        }
        break;
      case 4: write_list(); break;
      case 5: write_bricks(); break;
      case 6: rearrange(); break;
      default: edit(); break;
    }
    check();
  }
  uint64_t steps() const { return states_.size(); }

 private:
  using Voxels = std::vector<uint8_t>;

  static size_t at(Int3 v) { return (size_t(v.z - kLow) * kEdge + size_t(v.y - kLow)) * kEdge + size_t(v.x - kLow); }
  template <class Visit>
  static void each(const Visit& visit) {
    for (int32_t z = kLow; z < kLow + kEdge; ++z)
      for (int32_t y = kLow; y < kLow + kEdge; ++y)
        for (int32_t x = kLow; x < kLow + kEdge; ++x) visit(Int3{x, y, z});
  }
  int32_t pick(int32_t count) { return int32_t(random_() % uint32_t(count)); }
  Int3 pick_voxel(int32_t margin) {
    const int32_t reach = kEdge - 2 * margin;
    return {kLow + margin + pick(reach), kLow + margin + pick(reach), kLow + margin + pick(reach)};
  }

  static Document make_document(const Scene* scene) {
    auto document = scene ? Document::create(*scene) : Document::create_empty();
    REQUIRE(document);
    return std::move(*document);
  }

  // Boxes of whole bricks too, whose rows are one change each.
  void edit() {
    Edit edit;
    edit.shape = pick(3) ? Shape::box : Shape::sphere;
    edit.mode = Mode(pick(5));
    edit.material = uint8_t(pick(4));
    edit.from = uint8_t(1 + pick(3));
    edit.radius = pick(11);
    edit.a = pick_voxel(12);
    edit.b = edit.a + Int3{pick(12), pick(12), pick(12)};
    if (edit.shape == Shape::box && pick(2)) {
      edit.a = {pick(3) * 8 - 24, pick(3) * 8 - 24, pick(3) * 8 - 24};
      edit.b = edit.a + Int3{8 * pick(4) + 7, 8 * pick(4) + 7, 8 * pick(4) + 7};
    }
    Voxels next = states_[position_];
    uint64_t changed = 0;
    each([&](Int3 v) {
      const Int3 d = v - edit.a;
      const bool inside = edit.shape == Shape::box
                              ? v.x >= edit.a.x && v.x <= edit.b.x && v.y >= edit.a.y && v.y <= edit.b.y &&
                                    v.z >= edit.a.z && v.z <= edit.b.z
                              : d.x * d.x + d.y * d.y + d.z * d.z <= int(edit.radius * edit.radius);
      if (!inside) return;
      uint8_t& voxel = next[at(v)];
      const uint8_t old = voxel;
      switch (edit.mode) {
        case Mode::add: voxel = old ? old : edit.material; break;
        case Mode::remove: voxel = 0; break;
        case Mode::paint: voxel = old ? edit.material : old; break;
        case Mode::replace: voxel = old && old == edit.from ? edit.material : old; break;
        case Mode::fill: voxel = edit.material; break;
      }
      changed += voxel != old;
    });
    const auto record = document_.apply(0, edit, 1 + uint32_t(pick(3)));
    REQUIRE(record);
    REQUIRE((*record)->voxels_changed == changed);
    enter(std::move(next));
  }
  void write_list() {
    Voxels next = states_[position_];
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (int n = pick(400); n >= 0; --n) {
      const Int3 v = pick_voxel(0);
      xyz.insert(xyz.end(), {v.x, v.y, v.z});
      next[at(v)] = materials.emplace_back(uint8_t(pick(4)));
    }
    REQUIRE(document_.write(0, {xyz.data(), materials.data(), materials.size()}, "list"));
    enter(std::move(next));
  }
  void write_bricks() {
    Voxels next = states_[position_];
    std::map<Int3, Brick> bricks;
    for (int n = pick(6); n >= 0; --n) {
      Brick& brick = bricks[{pick(6) - 3, pick(6) - 3, pick(6) - 3}];
      const int kind = pick(3);
      for (uint32_t i = 0; i < 512; ++i)
        brick.set(i, kind == 0 ? uint8_t(0) : kind == 1 ? uint8_t(2) : uint8_t(pick(3)));
    }
    std::vector<World::BrickWrite> writes;
    for (const auto& [brick, value] : bricks) {
      writes.push_back({brick, value});
      for (uint32_t i = 0; i < 512; ++i)
        next[at(voxel_from_index(i) + Int3{brick.x * 8, brick.y * 8, brick.z * 8})] = value.materials[i];
    }
    REQUIRE(document_.write(0, writes, "bricks"));
    enter(std::move(next));
  }
  // What changes no voxel: packed, fitted, or made anew from the scene with its history, as after saving and opening.
  void rearrange() {
    switch (pick(4)) {
      case 0: REQUIRE(document_.pack()); break;
      case 1: REQUIRE(document_.unpack()); break;
      case 2: REQUIRE(document_.shrink_to_fit()); break;
      default: {
        Document again = make_document(&document_.scene());
        REQUIRE(again.restore_history(document_.history(), document_.history_position()));
        document_ = std::move(again);
      }
    }
  }
  // After what may have changed nothing: then it is no step.
  void enter(Voxels next) {
    if (next == states_[position_]) return;
    states_.resize(++position_);
    states_.push_back(std::move(next));
  }

  void check() {
    const Voxels& expected = states_[position_];
    REQUIRE(document_.history_position() == position_);
    REQUIRE(document_.history().size() + 1 == states_.size());
    // The volume is asked in one of two ways: brick by brick, or as a list that is made of all.
    const BrickMap& volume = document_.scene().volumes[0].bricks;
    REQUIRE(volume.is_view());
    Voxels seen(expected.size());
    const auto note = [&](Int3 brick, const BrickView& value) {
      for (uint32_t i = 0; i < 512; ++i)
        seen[at(voxel_from_index(i) + Int3{brick.x * 8, brick.y * 8, brick.z * 8})] = value.materials[i];
    };
    if (pick(3)) {
      for (const BrickPut& put : volume.within({{-4, -4, -4}, {4, 4, 4}})) note(put.brick, *put.value);
    } else {
      for (const auto& [brick, value] : volume.bricks()) note(brick, value);
    }
    REQUIRE((seen == expected));
    uint64_t voxels = 0;
    Box3 box;
    each([&](Int3 v) {
      if (!expected[at(v)]) return;
      ++voxels;
      box = united(box, {v, v});
    });
    const World& world = document_.world();
    REQUIRE(world.voxel_count() == voxels);
    REQUIRE(volume.voxel_count() == voxels);
    REQUIRE(volume.bounds() == box);
    REQUIRE(volume.empty() == (voxels == 0));
    REQUIRE(volume.bricks().size() == world.brick_count());
    for (int n = 0; n < 20; ++n) {
      const Int3 v = pick_voxel(0);
      REQUIRE(world.get(v) == expected[at(v)]);
      REQUIRE(volume.get(v) == expected[at(v)]);
    }
    const auto stats = world.stats();
    REQUIRE(stats);
    REQUIRE(stats->live == world.brick_count());
    const Document::Holdings held = document_.holdings();
    REQUIRE(held.keys == world.brick_count());
    REQUIRE(held.bricks == world.pool().live());
  }

  std::mt19937 random_;
  Document document_;
  std::vector<Voxels> states_;  // after so many steps of the history
  size_t position_ = 0;
};

}  // namespace

TEST_CASE(
    "document: a volume that is its world's own table is, after each of many random changes, undos, redos, packs and "
    "reopenings, what an array of its voxels is") {
  for (uint32_t seed = 0; seed < (test::kThreadSanitized ? 2u : 4u); ++seed) {
    ModelledDocument modelled(seed);
    for (int step = 0; step < (test::kThreadSanitized ? 40 : test::kSanitized ? 150 : 300); ++step) {
      INFO("seed " << seed << ", step " << step);
      modelled.step();
    }
  }
}

TEST_CASE("document: a row of bricks full of one material is one change of its record, whatever its length") {
  auto document = Document::create_empty();
  REQUIRE(document);
  Edit edit;
  edit.mode = Mode::fill;
  edit.a = {-80, 0, -800};
  edit.b = {-1, 39, 799};
  const auto record = document->apply(0, edit);
  REQUIRE(record);
  REQUIRE((*record)->changes.size() == 10 * 5);
  REQUIRE(bricks_in((*record)->changes) == 10 * 5 * 200);
  CHECK(document->holdings().history_changes == 10 * 5 * 200);
  CHECK(document->holdings().history_bytes == 10 * 5 * sizeof(BrickChange));
  CHECK(document->holdings().scene_bytes == 0);
  REQUIRE(document->undo());
  CHECK(document->world().brick_count() == 0);
  REQUIRE(document->redo());
  CHECK(document->world().voxel_count() == 80 * 40 * 1600);
}

TEST_CASE("document: a copy of its scene is what it was then, and a volume changed by others is their own") {
  auto document = Document::create_empty();
  REQUIRE(document);
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = Mode::fill;
  edit.radius = 20;
  REQUIRE(document->apply(0, edit));
  Scene before = document->scene();
  const BrickMap model = before.volumes[0].bricks;
  CHECK_FALSE(before.volumes[0].bricks.is_view());
  edit.mode = Mode::remove;
  edit.radius = 15;
  REQUIRE(document->apply(0, edit));
  CHECK(before.volumes[0].bricks == model);
  CHECK_FALSE(document->scene().volumes[0].bricks == model);
  before.volumes[0].bricks.set({100, 0, 0}, 3);
  CHECK(document->world().get({100, 0, 0}) == 0);
  REQUIRE(document->undo());
  CHECK(document->scene().volumes[0].bricks == model);
  // Of a scene in which it is turned, moved, or beside another, the volume has a list of its own.
  Scene moved = document->scene();
  moved.instances[0].offset = {8, 0, 0};
  auto other = Document::create(std::move(moved));
  REQUIRE(other);
  CHECK_FALSE(other->scene().volumes[0].bricks.is_view());
  CHECK(other->scene().volumes[0].bricks == model);
}

}  // namespace document_test
