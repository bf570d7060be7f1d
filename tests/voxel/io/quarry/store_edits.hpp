// SPDX-License-Identifier: Apache-2.0
// store_edits.hpp - scenes, edits and comparisons for the tests of the world file. They do not use the library's own
// editing, so that only the file's work is compared.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "voxel/io/quarry/store.hpp"

namespace quarry::test {

// "" if equal, else the field that differs.
inline std::string same_scene(const Scene& a, const Scene& b) {
  const auto lists = [](const auto& x, const auto& y, auto same) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), same);
  };
  if (!lists(a.volumes, b.volumes,
             [](const Volume& x, const Volume& y) { return x.name == y.name && x.size == y.size; }))
    return "volumes";
  for (size_t i = 0; i < a.volumes.size(); ++i)
    if (!lists(a.volumes[i].bricks.bricks(), b.volumes[i].bricks.bricks(),
               [](const auto& x, const auto& y) { return x.first == y.first && x.second() == y.second(); }))
      return "bricks of volume " + std::to_string(i);
  if (!lists(a.instances, b.instances, [](const Instance& x, const Instance& y) {
        return x.volume == y.volume && x.rotation == y.rotation && x.offset == y.offset && x.layer == y.layer &&
               x.hidden == y.hidden && x.name == y.name && x.group_path == y.group_path;
      }))
    return "instances";
  if (!lists(a.layers, b.layers,
             [](const Layer& x, const Layer& y) { return x.name == y.name && x.hidden == y.hidden; }))
    return "layers";
  if (!lists(a.cameras, b.cameras, [](const Camera& x, const Camera& y) {
        return x.name == y.name && x.vertical_fov_degrees == y.vertical_fov_degrees &&
               std::equal(x.position, x.position + 3, y.position) && std::equal(x.target, x.target + 3, y.target);
      }))
    return "cameras";
  if (!(a.palette == b.palette)) return "palette";
  if (a.overlap != b.overlap) return "overlap";
  return a.metadata == b.metadata ? "" : "metadata";
}

inline std::string same_history(const std::vector<UndoRecord>& a, const std::vector<UndoRecord>& b) {
  const auto by_brick = [](const UndoRecord& record) {
    std::map<Int3, std::pair<SharedBrick, SharedBrick>> bricks;
    for (const BrickChange& c : record.changes)
      for (uint32_t k = 0; k < c.count; ++k) bricks[c.at(k)] = {c.before, c.after};
    return bricks;
  };
  if (a.size() != b.size()) return "lengths " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].volume != b[i].volume || a[i].label != b[i].label || a[i].voxels_changed != b[i].voxels_changed)
      return "record " + std::to_string(i);
    if (by_brick(a[i]) != by_brick(b[i])) return "changes of record " + std::to_string(i);
  }
  return "";
}

// A scene with data in every field, with values that are easily lost.
inline Scene busy_scene() {
  Scene s;
  s.volumes.resize(3);
  s.volumes[0].name = "ground";
  s.volumes[0].size = {40, 3, -2};
  s.volumes[1].name = std::string("odd \0 \xff name", 12);
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i)
    s.volumes[0].bricks.set({int32_t(random() % 200) - 100, int32_t(random() % 8), int32_t(random() % 200) - 100},
                            uint8_t(1 + random() % 255));
  for (int32_t x = 0; x < 140; ++x) s.volumes[1].bricks.set({x, 0, 0}, uint8_t(1 + x));
  s.volumes[1].bricks.set({INT32_MIN, INT32_MAX, 0}, 1);
  s.layers = {{"first", false}, {"", true}};
  Rotation turned{{2, 0, 1}, {-1, 1, -1}};
  s.instances.resize(3);
  s.instances[1] = {1, turned, {INT32_MIN, 0, INT32_MAX}, 1, true, "a name", "group/inner"};
  s.instances[2] = {2, {{0, 1, 2}, {1, -1, 1}}, {1, 2, 3}, 0, false, "", ""};
  s.cameras.resize(2);
  s.cameras[1] = {"cam", {0.1, -2e300, 1e-310}, {1, -0.0, 3}, 33.3};
  s.palette.materials[0].a = 7;
  s.palette.materials[5] = {1, 2, 3, 4, 0.1f, 0.2f, 1e30f, 0.4f, 1.33f, {-1e-40f, 5}};
  s.palette.names[5] = "glass, green";
  s.overlap = OverlapRule::last_instance_wins;
  s.metadata = {{"source_format", "vox"}, {"", "empty key"}, {"empty value", ""}, {"ü", std::string(70000, 'y')}};
  return s;
}

constexpr int kSceneChanges = 16;
inline void change_scene(Scene* s, int field) {
  switch (field) {
    case 0: s->volumes[0].name += "x"; break;
    case 1: s->volumes[0].size.y = 9; break;
    case 2: s->volumes[2].bricks.set({0, 0, 0}, 1); break;
    case 3: s->volumes[1].bricks.set({5, 0, 0}, 77); break;
    case 4: s->volumes.emplace_back(); break;
    case 5: s->instances[1].rotation.sign[0] = 1; break;
    case 6: s->instances[1].offset.z = 4; break;
    case 7: s->instances[0].layer = 1; break;
    case 8: s->instances[0].hidden = true; break;
    case 9: s->instances[2].group_path = "x"; break;
    case 10: s->layers[0].hidden = true; break;
    case 11: s->cameras[0].target[2] = 5; break;
    case 12: s->palette.materials[255].ior = 1.25f; break;
    case 13: s->palette.names[0] = "n"; break;
    case 14: s->overlap = OverlapRule::first_instance_wins; break;
    default: s->metadata["ü"] = "z"; break;
  }
}

// The record that turns a volume's bricks into `wanted`.
inline UndoRecord make_record(const Scene& scene, uint32_t volume, const BrickMap& wanted, std::string label) {
  UndoRecord record;
  record.volume = volume;
  record.label = std::move(label);
  std::map<Int3, BrickChange> changes;
  for (const auto& [at, brick] : scene.volumes[volume].bricks.bricks()) changes[at] = {at, 1, SharedBrick(brick), {}};
  for (const auto& [at, brick] : wanted.bricks()) changes[at].brick = at, changes[at].after = SharedBrick(brick);
  for (const auto& [at, change] : changes)
    if (!(change.before == change.after))
      record.changes.push_back(change), record.voxels_changed += change.after.voxels() + change.before.voxels();
  return record;
}

inline void apply_record(Scene* scene, const UndoRecord& record, bool forwards) {
  for (const BrickChange& c : record.changes)
    for (uint32_t k = 0; k < c.count; ++k)
      scene->volumes[record.volume].bricks.put(c.at(k), forwards ? c.after : c.before);
}

// A sequence of edits, undos and redos, in which step n does the same in every process that plays it: the scenario of a
// session, and its replay.
class EditScenario {
 public:
  EditScenario() {
    scene_.volumes.resize(2);
    for (int32_t x = -20; x < 20; ++x)
      for (int32_t z = -20; z < 20; ++z) scene_.volumes[0].bricks.set({x, 0, z}, uint8_t(1 + ((x ^ z) & 15)));
    scene_.instances.resize(2);
    scene_.instances[1].volume = 1;
    scene_.metadata["name"] = "story";
  }
  const Scene& scene() const { return scene_; }
  const std::vector<UndoRecord>& history() const { return history_; }
  size_t position() const { return position_; }
  int steps() const { return step_; }
  size_t dropped() const { return dropped_; }

  // Does the next step here, and in `store` unless it is null. The step is done here even if the store failed.
  Result<void> next(io::Store* store) {
    std::mt19937 random(uint32_t(++step_) * 2654435761u);
    const uint32_t dice = uint32_t(random() % 10);
    if (dice < 3 && position_ > 0) {
      const UndoRecord& record = history_[--position_];
      apply_record(&scene_, record, false);
      return store ? store->commit_undo(scene_, record) : Result<void>{};
    }
    if (dice < 5 && position_ < history_.size()) {
      const UndoRecord& record = history_[position_++];
      apply_record(&scene_, record, true);
      return store ? store->commit_redo(scene_, record) : Result<void>{};
    }
    const uint32_t volume = uint32_t(random() % 2);
    const Int3 at{int32_t(random() % 160) - 80, int32_t(random() % 40) - 20, int32_t(random() % 160) - 80};
    const int32_t r = int32_t(random() % 9);
    const uint8_t material = uint8_t(random() % 4 ? 1 + random() % 255 : 0);  // every fourth one removes
    BrickMap wanted = scene_.volumes[volume].bricks;
    for (int32_t x = -r; x <= r; ++x)
      for (int32_t y = -r; y <= r; ++y)
        for (int32_t z = -r; z <= r; ++z)
          if (x * x + y * y + z * z <= r * r) wanted.set({at.x + x, at.y + y, at.z + z}, material);
    dropped_ += history_.size() - position_;
    history_.resize(position_);
    history_.push_back(make_record(scene_, volume, wanted, "step " + std::to_string(step_)));
    ++position_;
    apply_record(&scene_, history_.back(), true);
    return store ? store->commit_edit(scene_, history_.back()) : Result<void>{};
  }

 private:
  Scene scene_;
  std::vector<UndoRecord> history_;
  size_t position_ = 0, dropped_ = 0;
  int step_ = 0;
};

}  // namespace quarry::test
