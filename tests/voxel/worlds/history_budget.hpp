// SPDX-License-Identifier: Apache-2.0
// history_budget.hpp - random changes of a world whose history has a budget, beside a plain array with a list of all
// its states, and beside the same world without a budget, which tells what each step takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/voxel/worlds/dense_model.hpp"

namespace quarry::test {

struct HistoryFacts {
  uint64_t bytes = 0;  // that the budget limits
  uint64_t steps = 0, position = 0, dropped = 0;
  uint64_t held_bytes = 0;  // what the records take, and the bricks that only they have
  uint64_t bricks = 0;      // that the world stores, the history's too
};

// A world with a history, wherever it is at home. Each call must succeed.
class BudgetedWorld {
 public:
  virtual ~BudgetedWorld() = default;
  virtual void set_budget(uint64_t bytes) = 0;
  virtual uint64_t edit(const DenseEdit& edit) = 0;  // voxels changed
  virtual bool undo() = 0;                           // false: there is nothing to undo
  virtual bool redo() = 0;
  virtual void forget() = 0;  // all steps
  virtual HistoryFacts facts() = 0;
  virtual std::vector<uint8_t> read(Cell min, Cell max) = 0;
};
using MakeWorld = std::function<std::unique_ptr<BudgetedWorld>()>;

// Makes random edits, undos and redos. After each, the steps that are kept are the newest ones that fit, one at least;
// in the end undo goes exactly as far back as they say. Under a sanitizer it makes half of the changes.
void check_history_budget(const MakeWorld& make, uint64_t budget, uint32_t seed, int changes);
// With only the newest step the world stores as many bricks as one that forgot all steps before it.
void check_bricks_freed(const MakeWorld& make);
// A budget that is set where steps are undone: the oldest go, then those that redo reaches last.
void check_budget_set_late(const MakeWorld& make);

}  // namespace quarry::test
