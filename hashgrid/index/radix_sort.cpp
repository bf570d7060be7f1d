// SPDX-License-Identifier: Apache-2.0
// radix_sort.cpp - least digit first. In each pass every thread counts the digits of its piece, and then moves it: the
// pieces' places are those that one thread would give.
#include "hashgrid/index/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/parallel.hpp"
#include "hashgrid/index/host_scratch.hpp"

namespace quarry::hashgrid {
namespace {

constexpr uint32_t kDigitBits = 8, kDigits = 1u << kDigitBits;
constexpr size_t kLeastPiece = 1 << 14;

template <class Key>
struct Pairs {
  Key* keys;
  uint32_t* values;  // null: keys alone
};

template <class Key>
Result<void> sort(const Key* keys, const uint32_t* values, size_t count, Key* keys_out, uint32_t* values_out,
                  uint32_t threads) {
  if (count == 0) return {};
  const size_t pieces = std::clamp<size_t>(count / kLeastPiece, 1, threads), piece = (count + pieces - 1) / pieces;
  const auto each_piece = [&](const auto& body) {
    parallel_for(
        pieces, 1,
        [&](size_t begin, size_t) {
          body(begin, std::min(count, begin * piece), std::min(count, (begin + 1) * piece));
        },
        threads);
  };
  std::atomic<Key> differ{0};
  std::atomic<bool> is_sorted{true};
  each_piece([&](size_t, size_t begin, size_t end) {
    Key bits = 0;
    bool rises = true;
    for (size_t i = begin; i < end; ++i) {
      bits |= keys[i] ^ keys[0];
      rises = rises && (i == 0 || keys[i - 1] <= keys[i]);
    }
    differ |= bits;
    if (!rises) is_sorted = false;
  });
  std::vector<uint32_t> shifts;
  if (!is_sorted)
    for (uint32_t shift = 0; shift < sizeof(Key) * 8; shift += kDigitBits)
      if ((differ.load() >> shift & (kDigits - 1)) != 0) shifts.push_back(shift);
  if (shifts.empty()) {
    each_piece([&](size_t, size_t begin, size_t end) {
      std::copy(keys + begin, keys + end, keys_out + begin);
      if (values != nullptr) std::copy(values + begin, values + end, values_out + begin);
    });
    return {};
  }

  HostScratch spare;
  if (shifts.size() > 1) {
    QRY_TRY_ASSIGN(spare, HostScratch::allocate(count * (sizeof(Key) + sizeof(uint32_t))));
  }
  Key* const spare_keys = spare.as<Key>();
  const Pairs<Key> out{keys_out, values_out},
      other{spare_keys, spare_keys == nullptr ? nullptr : reinterpret_cast<uint32_t*>(spare_keys + count)};
  std::vector<std::array<size_t, kDigits>> places(pieces);
  const Key* from = keys;
  const uint32_t* from_values = values;
  for (size_t pass = 0; pass < shifts.size(); ++pass) {
    const uint32_t shift = shifts[pass];
    const Pairs<Key>& to = (shifts.size() - 1 - pass) % 2 == 0 ? out : other;  // the last one ends in the result
    each_piece([&](size_t p, size_t begin, size_t end) {
      places[p] = {};
      for (size_t i = begin; i < end; ++i) ++places[p][from[i] >> shift & (kDigits - 1)];
    });
    size_t at = 0;
    for (uint32_t digit = 0; digit < kDigits; ++digit)
      for (auto& of_piece : places) at += std::exchange(of_piece[digit], at);
    each_piece([&](size_t p, size_t begin, size_t end) {
      auto& next = places[p];
      for (size_t i = begin; i < end; ++i) {
        const size_t place = next[from[i] >> shift & (kDigits - 1)]++;
        to.keys[place] = from[i];
        if (from_values != nullptr) to.values[place] = from_values[i];
      }
    });
    from = to.keys;
    if (values != nullptr) from_values = to.values;
  }
  return {};
}

}  // namespace

Result<void> radix_sort(const uint32_t* keys, const uint32_t* values, size_t count, uint32_t* keys_out,
                        uint32_t* values_out, uint32_t threads) {
  return sort(keys, values, count, keys_out, values_out, threads);
}
Result<void> radix_sort(const uint64_t* keys, const uint32_t* values, size_t count, uint64_t* keys_out,
                        uint32_t* values_out, uint32_t threads) {
  return sort(keys, values, count, keys_out, values_out, threads);
}

}  // namespace quarry::hashgrid
