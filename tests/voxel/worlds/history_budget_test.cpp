// SPDX-License-Identifier: Apache-2.0
// history_budget_test.cpp - a document whose history has a budget, and the file of one, which keeps all steps.
#include "tests/voxel/worlds/history_budget.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <span>
#include <utility>

#include "tests/test_data.hpp"
#include "tests/voxel/taken.hpp"
#include "tests/voxel/worlds/edit_of.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/document.hpp"

namespace history_budget_test {

using namespace quarry;
using test::taken;

namespace {

class BudgetedDocument final : public test::BudgetedWorld {
 public:
  void set_budget(uint64_t bytes) override { document_.set_history_budget(bytes); }
  uint64_t edit(const test::DenseEdit& edit) override {
    return taken(document_.apply(0, test::edit_of(edit)))->voxels_changed;
  }
  bool undo() override {
    if (!document_.can_undo()) {
      REQUIRE(document_.undo().error().code == ErrorCode::invalid_argument);
      return false;
    }
    taken(document_.undo());
    return true;
  }
  bool redo() override {
    if (!document_.can_redo()) return false;
    taken(document_.redo());
    return true;
  }
  void forget() override { REQUIRE(document_.restore_history({}, 0)); }
  test::HistoryFacts facts() override {
    const Document::Holdings held = document_.holdings();
    // A world's bricks that are full of one material stay in its pool, one each, though no key has them any more.
    std::set<uint8_t> materials;
    for (const BrickMap::Entry& entry : document_.scene().volumes[0].bricks.bricks())
      materials.insert(entry.handle->material());
    uint64_t left = 0;
    for (uint32_t m = 1; m < 256; ++m)
      left += document_.world().pool().full(uint8_t(m)) != kNoBrick && !materials.contains(uint8_t(m)) ? 1 : 0;
    return {document_.history_size_bytes(),
            document_.step_count(),
            document_.step_position(),
            document_.dropped_steps(),
            held.history_bytes + (held.history_bricks - left) * (sizeof(BrickMask) + sizeof(BrickMaterials)),
            held.bricks - left};
  }
  std::vector<uint8_t> read(test::Cell min, test::Cell max) override {
    std::vector<uint8_t> voxels;
    for (int32_t z = min[2]; z <= max[2]; ++z)
      for (int32_t y = min[1]; y <= max[1]; ++y)
        for (int32_t x = min[0]; x <= max[0]; ++x) voxels.push_back(document_.scene().volumes[0].bricks.get({x, y, z}));
    return voxels;
  }

 private:
  Document document_ = taken(Document::create_empty());
};

std::unique_ptr<test::BudgetedWorld> make_document() { return std::make_unique<BudgetedDocument>(); }

Edit voxel_at(Int3 at) {
  Edit edit;
  edit.a = edit.b = at;
  return edit;
}

}  // namespace

TEST_CASE("A document's history keeps the newest steps that fit its budget, one at least, and undo goes as far") {
  test::check_history_budget(make_document, 30'000, 1, 60);
  test::check_history_budget(make_document, 1, 3, 40);
}

TEST_CASE("A document frees the bricks of the steps that it drops") { test::check_bricks_freed(make_document); }

TEST_CASE("A budget that a document gets late drops its oldest steps, then those that redo reaches last") {
  test::check_budget_set_late(make_document);
}

TEST_CASE("A stroke is dropped as a whole, and the newest one is kept with all its parts") {
  Document document = taken(Document::create_empty());
  document.set_history_budget(1);
  for (int32_t i = 0; i < 3; ++i) taken(document.apply(0, voxel_at({i, 0, 0}), 0, i > 0));
  REQUIRE(document.history().size() == 3);
  REQUIRE(document.dropped_steps() == 0);
  taken(document.apply(0, voxel_at({9, 0, 0})));
  REQUIRE(document.history().size() == 1);
  REQUIRE(document.dropped_steps() == 1);
  // It goes on with a step that is there, not with one that is gone.
  taken(document.apply(0, voxel_at({10, 0, 0}), 0, true));
  REQUIRE(document.history().size() == 2);
  REQUIRE(taken(document.undo()).size() == 2);
  REQUIRE_FALSE(document.can_undo());
  REQUIRE(document.world().voxel_count() == 3);
}

TEST_CASE("A refused change of a document over its budget drops nothing") {
  Document document = taken(Document::create_empty());
  document.set_history_budget(1);
  taken(document.apply(0, voxel_at({0, 0, 0})));
  const Document::Persist full_disk = [](std::span<const UndoRecord>) -> Result<void> {
    return fail(ErrorCode::io, "the disk is full");
  };
  REQUIRE(document.apply(0, voxel_at({1, 0, 0}), 0, false, full_disk).error().code == ErrorCode::io);
  REQUIRE(document.dropped_steps() == 0);
  REQUIRE(document.can_undo());
}

TEST_CASE("The file of a document that drops steps keeps them, and undo survives reopening it") {
  const auto file = test::scratch_dir("history_budget") / "world.quarry";
  constexpr int32_t kSteps = 5;
  {
    Document document = taken(Document::create_empty());
    REQUIRE(io::Store::save(document.scene(), file));
    auto store = taken(io::Store::open(file));
    document.set_history_budget(1);
    using Commit = Result<void> (io::Store::*)(const Scene&, std::span<const UndoRecord>);
    const auto commit = [&](Commit to) -> Document::Persist {
      return [&, to](std::span<const UndoRecord> records) { return (store.*to)(document.scene(), records); };
    };
    for (int32_t i = 0; i < kSteps; ++i)
      taken(document.apply(0, voxel_at({8 * i, 0, 0}), 0, false, commit(&io::Store::commit_edit)));
    REQUIRE(document.step_count() == 1);
    taken(document.undo(commit(&io::Store::commit_undo)));
    REQUIRE_FALSE(document.can_undo());
    taken(document.redo(commit(&io::Store::commit_redo)));
  }
  std::vector<UndoRecord> history;
  size_t position = 0;
  Scene scene = taken(io::Store::read(file, {}, &history, &position));
  REQUIRE(history.size() == kSteps);
  REQUIRE(position == kSteps);
  // With a budget the document takes what fits; without one, all.
  Document document = taken(Document::create(std::move(scene)));
  const std::vector<UndoRecord> all = history;
  document.set_history_budget(1);
  const auto restored = document.restore_history(std::move(history), position);
  REQUIRE(restored);
  REQUIRE(document.step_count() == 1);
  REQUIRE(document.dropped_steps() == kSteps - 1);
  document.set_history_budget(0);
  REQUIRE(document.restore_history(all, position));
  for (int32_t i = kSteps; i > 0; --i) {
    REQUIRE(document.world().voxel_count() == uint64_t(i));
    taken(document.undo());
  }
  REQUIRE(document.world().voxel_count() == 0);
}

}  // namespace history_budget_test
