// SPDX-License-Identifier: Apache-2.0
// host_search.cpp - one text, compiled for plain processors and for those with AVX2, chosen at run time.
#include "hashgrid/index/host_search.hpp"

namespace quarry::hashgrid {
namespace {

template <class Key>
[[gnu::always_inline]] inline void search(const IndexView<Key>& view, const Key* keys, uint32_t count,
                                          IndexPlace* places) {
  using Node = IndexNode<Key>;
  constexpr size_t kLine = 64 / sizeof(Key);
  Key wanted[kIndexGroup];
  uint32_t node[kIndexGroup];
  for (uint32_t i = 0; i < count; ++i) {
    wanted[i] = keys[i] == Node::kReservedKey ? keys[i] - 1 : keys[i];
    node[i] = 0;
  }
  for (uint32_t level = view.shape.levels; level-- > 0;) {
    const Key* const nodes = view.inner + size_t{view.shape.first_node[level]} * Node::kSlots;
    const Key* const below =
        level == 0 ? view.keys : view.inner + size_t{view.shape.first_node[level - 1]} * Node::kSlots;
    for (uint32_t i = 0; i < count; ++i) {
      node[i] =
          node[i] * Node::kFanout + detail::count_in_node<true>(nodes + size_t{node[i]} * Node::kSlots, wanted[i]);
      const Key* const next = below + size_t{node[i]} * Node::kSlots;
      for (size_t line = 0; line < Node::kSlots; line += kLine) __builtin_prefetch(next + line);
      if (level == 0) __builtin_prefetch(view.before + node[i]);
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const size_t first = size_t{node[i]} * Node::kSlots;
    places[i] = {node[i], detail::count_in_node<false>(view.keys + first, keys[i])};
    __builtin_prefetch(view.values + first + places[i].slot);
  }
}

#if defined(__x86_64__)
template <class Key>
[[gnu::target("avx2")]] void search_avx2(const IndexView<Key>& view, const Key* keys, uint32_t count,
                                         IndexPlace* places) {
  search(view, keys, count, places);
}
#endif

template <class Key>
void choose(const IndexView<Key>& view, const Key* keys, uint32_t count, IndexPlace* places) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return search_avx2(view, keys, count, places);
#endif
  search(view, keys, count, places);
}

}  // namespace

void places_of(const IndexView<uint32_t>& view, const uint32_t* keys, uint32_t count, IndexPlace* places) {
  choose(view, keys, count, places);
}
void places_of(const IndexView<uint64_t>& view, const uint64_t* keys, uint32_t count, IndexPlace* places) {
  choose(view, keys, count, places);
}

}  // namespace quarry::hashgrid
