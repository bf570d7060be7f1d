// SPDX-License-Identifier: Apache-2.0
// multi_grid.cpp - memory of a multi grid, and argument checks. A grid in use is built anew in new memory, which then
// takes the place of the old.
#include "hashgrid/multi_grid.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace quarry::hashgrid {
namespace {

Result<void> as_many(const char* what, size_t keys, size_t others, const char* name) {
  if (keys == others) return {};
  return fail(ErrorCode::invalid_argument, std::string("multi grid ") + what + ": " + std::to_string(keys) +
                                               " keys but " + std::to_string(others) + " " + name);
}
Result<void> apart(bool overlap, const char* what) {
  if (!overlap) return {};
  return fail(ErrorCode::invalid_argument,
              std::string("multi grid ") + what + ": an output overlaps another array; give each its own memory");
}
Result<void> countable(uint64_t pairs) {
  if (pairs <= kMultiMostPairs) return {};
  return fail(ErrorCode::full, "multi grid: " + std::to_string(pairs) + " pairs, more than 32 bits can number");
}

}  // namespace

struct MultiGrid::State {
  Executor* executor = nullptr;
  MemorySource* memory = nullptr;
  MemoryBlock block;
  uint64_t capacity = 0, size = 0;
  MultiView view;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (block.data != nullptr) memory->release(block);
  }

  MultiOperations& operations() const { return executor->multi(); }
  Result<MemoryBlock> allocate(uint64_t pairs) const {
    return memory->allocate(MultiShape::of(pairs).size_bytes(), "multi grid");
  }
};

MultiGrid::MultiGrid(std::unique_ptr<State> state) : state_(std::move(state)) {}
MultiGrid::MultiGrid(MultiGrid&&) noexcept = default;
MultiGrid& MultiGrid::operator=(MultiGrid&&) noexcept = default;
MultiGrid::~MultiGrid() = default;

Result<MultiGrid> MultiGrid::create(Executor& executor, const MultiOptions& options, MemorySource* memory) {
  QRY_TRY(countable(options.capacity));
  auto state = std::make_unique<State>();
  state->executor = &executor;
  state->memory = memory != nullptr ? memory : &executor.memory();
  QRY_TRY_ASSIGN(state->block, state->allocate(options.capacity));
  state->capacity = options.capacity;
  MultiGrid grid(std::move(state));
  QRY_TRY(grid.clear());
  return grid;
}

MultiView MultiGrid::view() const { return state_->view; }
uint64_t MultiGrid::size() const { return state_->size; }
uint64_t MultiGrid::size_bytes() const { return state_->block.size_bytes; }
uint64_t MultiGrid::capacity() const { return state_->capacity; }

Result<void> MultiGrid::clear() {
  QRY_TRY_ASSIGN(state_->view, state_->operations().build(state_->block.data, nullptr, 0, nullptr, nullptr, 0));
  state_->size = 0;
  return {};
}

Result<void> MultiGrid::insert(Span<const uint32_t> keys, Span<const uint32_t> values) {
  QRY_TRY(as_many("insert", keys.size(), values.size(), "values"));
  State& state = *state_;
  const uint64_t all = state.size + keys.size();
  QRY_TRY(countable(all));
  if (keys.size() == 0) return {};
  const MultiView* const from = state.size != 0 ? &state.view : nullptr;
  MemoryBlock fresh{};
  if (from != nullptr || all > state.capacity) {
    QRY_TRY_ASSIGN(fresh, state.allocate(std::max(all, state.capacity)));
  }
  void* const to = fresh.data != nullptr ? fresh.data : state.block.data;
  auto built = state.operations().build(to, from, state.size, keys.data(), values.data(), keys.size());
  if (fresh.data != nullptr) {
    if (built) {
      std::swap(state.block, fresh);
      state.capacity = std::max(all, state.capacity);
    }
    state.memory->release(fresh);
  }
  QRY_TRY(built);
  state.view = *built;
  state.size = all;
  return {};
}

Result<uint64_t> MultiGrid::erase(Span<const uint32_t> keys) {
  QRY_TRY_ASSIGN(const uint64_t erased, state_->operations().erase(state_->view, keys.data(), keys.size()));
  state_->size -= erased;
  return erased;
}

Result<BulkReport> MultiGrid::count(Span<const uint32_t> keys, Span<uint32_t> counts_out) const {
  if (counts_out.data() != nullptr) QRY_TRY(as_many("count", keys.size(), counts_out.size(), "counts"));
  QRY_TRY(apart(overlap(keys, counts_out), "count"));
  return state_->operations().count(state_->view, keys.data(), keys.size(), counts_out.data());
}

Result<uint64_t> MultiGrid::retrieve(Span<const uint32_t> keys, Span<uint64_t> starts_out,
                                     Span<uint32_t> values_out) const {
  if (starts_out.data() != nullptr && starts_out.size() != keys.size() + 1)
    return fail(ErrorCode::invalid_argument, "multi grid retrieve: " + std::to_string(keys.size()) + " keys have " +
                                                 std::to_string(keys.size() + 1) + " starts, but there is room for " +
                                                 std::to_string(starts_out.size()));
  QRY_TRY(apart(overlap(keys, starts_out) || overlap(keys, values_out) || overlap(starts_out, values_out), "retrieve"));
  const uint64_t room = values_out.data() != nullptr ? values_out.size() : UINT64_MAX;
  return state_->operations().retrieve(state_->view, keys.data(), keys.size(), starts_out.data(), values_out.data(),
                                       room);
}

Result<uint64_t> MultiGrid::list(Span<uint32_t> keys_out, Span<uint32_t> values_out) const {
  QRY_TRY(apart(overlap(keys_out, values_out), "list"));
  uint64_t room = UINT64_MAX;
  if (keys_out.data() != nullptr) room = keys_out.size();
  if (values_out.data() != nullptr) room = std::min<uint64_t>(room, values_out.size());
  return state_->operations().list(state_->view, keys_out.data(), values_out.data(), room);
}

}  // namespace quarry::hashgrid
