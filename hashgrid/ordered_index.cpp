// SPDX-License-Identifier: Apache-2.0
// ordered_index.cpp - memory of an ordered index, and argument checks. New memory is filled before the old is released.
#include "hashgrid/ordered_index.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace quarry::hashgrid {
namespace {

constexpr uint64_t kMostKeys = 0xFFFFFFFFu;  // ranks have 32 bits
constexpr uint32_t kSparse = 4;              // an index with a quarter of the keys it was made for is packed

template <class Key>
IndexOperations<Key>& operations_of(Executor& executor) {
  if constexpr (sizeof(Key) == 4) return executor.index32();
  else return executor.index64();
}

Result<void> same_length(const char* what, size_t keys, size_t others, const char* name) {
  if (keys == others) return {};
  return fail(ErrorCode::invalid_argument, std::string("ordered index ") + what + ": " + std::to_string(keys) +
                                               " keys but " + std::to_string(others) + " " + name);
}

// Rooms of a list's outputs: as many as both hold; those without memory count nothing.
template <class Key>
Result<uint64_t> room_of(size_t queries, Span<uint64_t> starts, Span<Key> keys, Span<uint32_t> values) {
  if (starts.data() != nullptr && starts.size() != queries + 1)
    return fail(ErrorCode::invalid_argument, "ordered index: " + std::to_string(queries) + " ranges have " +
                                                 std::to_string(queries + 1) + " starts, but there is room for " +
                                                 std::to_string(starts.size()));
  uint64_t room = UINT64_MAX;
  if (keys.data() != nullptr) room = keys.size();
  if (values.data() != nullptr) room = std::min<uint64_t>(room, values.size());
  return room;
}

}  // namespace

template <class Key>
struct OrderedIndex<Key>::State {
  Executor* executor = nullptr;
  MemorySource* memory = nullptr;
  uint32_t per_leaf = 1;
  MemoryBlock block;
  IndexView<Key> view;
  uint64_t merges = 0;
  // reserve(): what is asked for, and memory that is ready.
  size_t reserved_bytes = 0;
  MemoryBlock spare;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (block.data != nullptr) memory->release(block);
    if (spare.data != nullptr) memory->release(spare);
  }
  IndexShape<Key> shape_of(uint64_t keys) const {
    return IndexShape<Key>::of(uint32_t((keys + per_leaf - 1) / per_leaf));
  }

  IndexOperations<Key>& operations() const { return operations_of<Key>(*executor); }

  // Memory of an index of so many keys, which is not filled.
  struct Fresh {
    explicit Fresh(State& of) : state(of) {}
    Fresh(const Fresh&) = delete;
    Fresh& operator=(const Fresh&) = delete;
    ~Fresh() {
      if (block.data == nullptr) return;
      if (state.spare.data == nullptr && state.reserved_bytes != 0 && block.size_bytes >= state.reserved_bytes)
        state.spare = block;
      else state.memory->release(block);
    }
    Result<IndexView<Key>> allocate(uint64_t keys) {
      if (keys > kMostKeys)
        return fail(ErrorCode::full, "ordered index: " + std::to_string(keys) + " keys, more than 32 bits can count");
      const auto shape = state.shape_of(keys);
      if (state.spare.data != nullptr && state.spare.size_bytes >= shape.size_bytes()) {
        block = std::exchange(state.spare, {});
      } else {
        QRY_TRY_ASSIGN(block,
                       state.memory->allocate(std::max(shape.size_bytes(), state.reserved_bytes), "ordered index"));
      }
      const auto* bytes = static_cast<const std::byte*>(block.data);
      view.inner = reinterpret_cast<const Key*>(bytes);
      view.keys = reinterpret_cast<const Key*>(bytes + shape.keys_at());
      view.values = reinterpret_cast<const uint32_t*>(bytes + shape.values_at());
      view.before = reinterpret_cast<const uint32_t*>(bytes + shape.before_at());
      view.shape = shape;
      view.size = uint32_t(keys);
      return view;
    }
    // It is filled now: it takes the place of the old one.
    void keep() {
      std::swap(state.block, block);
      state.view = view;
    }
    State& state;
    MemoryBlock block;
    IndexView<Key> view;
  };
};

template <class Key>
OrderedIndex<Key>::OrderedIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class Key>
OrderedIndex<Key>::OrderedIndex(OrderedIndex&&) noexcept = default;
template <class Key>
OrderedIndex<Key>& OrderedIndex<Key>::operator=(OrderedIndex&&) noexcept = default;
template <class Key>
OrderedIndex<Key>::~OrderedIndex() = default;

template <class Key>
Result<OrderedIndex<Key>> OrderedIndex<Key>::create(Executor& executor, const IndexOptions& options,
                                                    MemorySource* memory) {
  if (!(options.fill > 0.0 && options.fill <= 1.0))
    return fail(ErrorCode::invalid_argument,
                "ordered index: fill must be in (0, 1], not " + std::to_string(options.fill));
  auto state = std::make_unique<State>();
  state->executor = &executor;
  state->memory = memory != nullptr ? memory : &executor.memory();
  constexpr uint32_t kSlots = IndexNode<Key>::kSlots;
  state->per_leaf = std::clamp(uint32_t(std::lround(options.fill * kSlots)), 1u, kSlots);
  OrderedIndex index(std::move(state));
  QRY_TRY(index.clear());
  return index;
}

template <class Key>
IndexView<Key> OrderedIndex<Key>::view() const {
  return state_->view;
}
template <class Key>
uint64_t OrderedIndex<Key>::size() const {
  return state_->view.size;
}
template <class Key>
uint64_t OrderedIndex<Key>::size_bytes() const {
  return state_->block.size_bytes + state_->spare.size_bytes;
}
template <class Key>
uint32_t OrderedIndex<Key>::leaves() const {
  return state_->view.shape.leaves;
}
template <class Key>
uint64_t OrderedIndex<Key>::insert_merges() const {
  return state_->merges;
}

template <class Key>
Result<void> OrderedIndex<Key>::build(Span<const Key> keys, Span<const uint32_t> values, KeyOrder order) {
  QRY_TRY(same_length("build", keys.size(), values.size(), "values"));
  typename State::Fresh fresh(*state_);
  QRY_TRY(fresh.allocate(keys.size()));
  auto& operations = state_->operations();
  QRY_TRY(order == KeyOrder::rising
              ? operations.build(fresh.view, state_->per_leaf, keys.data(), values.data(), keys.size())
              : operations.sort_and_build(fresh.view, state_->per_leaf, keys.data(), values.data(), keys.size()));
  fresh.keep();
  return {};
}

template <class Key>
Result<void> OrderedIndex<Key>::reserve(uint64_t keys) {
  if (keys > kMostKeys)
    return fail(ErrorCode::full, "ordered index: " + std::to_string(keys) + " keys, more than 32 bits can count");
  State& state = *state_;
  const size_t wanted = keys == 0 ? 0 : state.shape_of(keys).size_bytes();
  if (wanted > state.spare.size_bytes || wanted == 0) {
    MemoryBlock more;
    if (wanted != 0) {
      QRY_TRY_ASSIGN(more, state.memory->allocate(wanted, "ordered index"));
    }
    if (state.spare.data != nullptr) state.memory->release(state.spare);
    state.spare = more;
  }
  state.reserved_bytes = wanted;
  return {};
}

template <class Key>
Result<void> OrderedIndex<Key>::clear() {
  return build({}, {}, KeyOrder::rising);
}

template <class Key>
Result<BulkReport> OrderedIndex<Key>::change(IndexChange what, Span<const Key> keys, Span<const uint32_t> values) {
  typename State::Fresh fresh(*state_);
  bool merged = false;
  QRY_TRY_ASSIGN(const BulkReport report, state_->operations().change(
                                              state_->view, state_->per_leaf, what, keys.data(), values.data(),
                                              keys.size(), [&](uint64_t all) { return fresh.allocate(all); }, &merged));
  if (merged) {
    fresh.keep();
    ++state_->merges;
  } else {
    state_->view.size += uint32_t(report.inserted) - uint32_t(report.erased);
  }
  return report;
}

template <class Key>
Result<BulkReport> OrderedIndex<Key>::insert(Span<const Key> keys, Span<const uint32_t> values) {
  QRY_TRY(same_length("insert", keys.size(), values.size(), "values"));
  return change(IndexChange::insert, keys, values);
}
template <class Key>
Result<BulkReport> OrderedIndex<Key>::assign(Span<const Key> keys, Span<const uint32_t> values) {
  QRY_TRY(same_length("assign", keys.size(), values.size(), "values"));
  return change(IndexChange::assign, keys, values);
}

template <class Key>
Result<BulkReport> OrderedIndex<Key>::erase(Span<const Key> keys) {
  QRY_TRY_ASSIGN(const BulkReport report, change(IndexChange::erase, keys, {}));
  const uint64_t made_for = uint64_t{leaves()} * state_->per_leaf;
  if (report.erased != 0 && leaves() > 1 && size() * kSparse < made_for) {
    typename State::Fresh fresh(*state_);
    // It need not succeed: without memory, the index stays as large as it is.
    if (fresh.allocate(size()) && state_->operations().repack(state_->view, fresh.view, state_->per_leaf)) fresh.keep();
  }
  return report;
}

template <class Key>
Result<BulkReport> OrderedIndex<Key>::find(Span<const Key> keys, Span<uint32_t> values_out) const {
  QRY_TRY(same_length("find", keys.size(), values_out.size(), "values"));
  QRY_TRY_ASSIGN(const uint64_t hits,
                 state_->operations().find(state_->view, keys.data(), keys.size(), values_out.data()));
  BulkReport report;
  report.present = hits;
  report.absent = keys.size() - hits;
  return report;
}

template <class Key>
Result<void> OrderedIndex<Key>::lower_bounds(Span<const Key> keys, Span<uint32_t> ranks_out) const {
  QRY_TRY(same_length("lower_bounds", keys.size(), ranks_out.size(), "ranks"));
  return state_->operations().lower_bounds(state_->view, keys.data(), keys.size(), ranks_out.data());
}

template <class Key>
Result<uint64_t> OrderedIndex<Key>::count_ranges(Span<const KeyRange<Key>> ranges, Span<RankRange> out) const {
  if (out.data() != nullptr && out.size() != ranges.size())
    return fail(ErrorCode::invalid_argument, "ordered index: " + std::to_string(ranges.size()) +
                                                 " ranges but room for " + std::to_string(out.size()));
  return state_->operations().count_ranges(state_->view, ranges.data(), ranges.size(), out.data());
}

template <class Key>
Result<uint64_t> OrderedIndex<Key>::list_ranges(Span<const KeyRange<Key>> ranges, Span<uint64_t> starts_out,
                                                Span<Key> keys_out, Span<uint32_t> values_out) const {
  QRY_TRY_ASSIGN(const uint64_t room, room_of(ranges.size(), starts_out, keys_out, values_out));
  return state_->operations().list_ranges(state_->view, ranges.data(), ranges.size(), starts_out.data(),
                                          keys_out.data(), values_out.data(), room);
}

template <class Key>
Result<uint64_t> OrderedIndex<Key>::list_boxes(Span<const MortonBox> boxes, Span<uint64_t> starts_out,
                                               Span<uint64_t> keys_out, Span<uint32_t> values_out) const {
  QRY_TRY_ASSIGN(const uint64_t room, room_of(boxes.size(), starts_out, keys_out, values_out));
  if constexpr (sizeof(Key) == 8) {
    return state_->operations().list_boxes(state_->view, boxes.data(), boxes.size(), starts_out.data(), keys_out.data(),
                                           values_out.data(), room);
  } else {
    return state_->operations().list_boxes(state_->view, boxes.data(), boxes.size(), nullptr, nullptr, nullptr, room);
  }
}

template class OrderedIndex<uint32_t>;
template class OrderedIndex<uint64_t>;

}  // namespace quarry::hashgrid
