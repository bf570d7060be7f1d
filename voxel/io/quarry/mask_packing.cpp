// SPDX-License-Identifier: Apache-2.0
#include "voxel/io/quarry/mask_packing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quarry::io {
namespace {

uint8_t* pack_by_bits(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to) {
  for (uint32_t w = 0; w < 8; ++w) {
    const uint8_t* const from = materials.data() + w * 64;
    if (mask[w] == ~uint64_t(0)) {
      std::memcpy(to, from, 64);
      to += 64;
      continue;
    }
    for (uint64_t bits = mask[w]; bits; bits &= bits - 1) *to++ = from[std::countr_zero(bits)];
  }
  return to;
}

const uint8_t* unpack_by_bits(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                              BrickMaterials& materials) {
  const size_t count = count_of(mask);
  if (size_t(end - from) < count || std::memchr(from, 0, count)) return nullptr;
  for (uint32_t w = 0; w < 8; ++w) {
    uint8_t* const to = materials.data() + size_t(w) * 64;
    if (mask[w] == ~uint64_t(0)) {
      std::memcpy(to, from, 64);
      from += 64;
      continue;
    }
    std::memset(to, 0, 64);
    for (uint64_t bits = mask[w]; bits; bits &= bits - 1) to[std::countr_zero(bits)] = *from++;
  }
  return from;
}

#if defined(__x86_64__)
// Of eight bits, for a shuffle of eight bytes: where each byte comes from, 0x80: from nowhere. Not by pdep and pext:
// AMD's processors before Zen 3 take some hundred cycles for these.
struct Shuffles {
  std::array<std::array<uint8_t, 8>, 256> unpack{}, pack{};
  std::array<uint8_t, 256> count{};
  constexpr Shuffles() {
    for (size_t bits = 0; bits < 256; ++bits) {
      unpack[bits].fill(0x80);
      pack[bits].fill(0x80);
      uint8_t n = 0;
      for (uint8_t bit = 0; bit < 8; ++bit)
        if (bits >> bit & 1u) {
          unpack[bits][bit] = n;
          pack[bits][n++] = bit;
        }
      count[bits] = n;
    }
  }
};
constexpr Shuffles kShuffles;

[[gnu::target("ssse3")]] inline __m128i load_eight(const uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
[[gnu::target("ssse3")]] inline void store_eight(uint8_t* to, __m128i eight) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), eight);
}

[[gnu::target("ssse3")]] uint8_t* pack_by_eights(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to) {
  const uint8_t* from = materials.data();
  for (uint64_t word : mask)
    for (uint32_t i = 0; i < 8; ++i, word >>= 8, from += 8) {
      const uint64_t bits = word & 255;
      store_eight(to, _mm_shuffle_epi8(load_eight(from), load_eight(kShuffles.pack[bits].data())));
      to += kShuffles.count[bits];
    }
  return to;
}

[[gnu::target("ssse3")]] const uint8_t* unpack_by_eights(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                                                         BrickMaterials& materials) {
  uint8_t* to = materials.data();
  const __m128i none = _mm_setzero_si128();
  __m128i zeros = none;
  for (uint64_t word : mask)
    for (uint32_t i = 0; i < 8; ++i, word >>= 8, to += 8) {
      const uint64_t bits = word & 255;
      std::array<uint8_t, 8> last{};  // fewer than eight are left
      const uint8_t* at = from;
      if (end - from < 8) {
        if (end - from < kShuffles.count[bits]) return nullptr;
        std::copy(from, end, last.begin());
        at = last.data();
      }
      const __m128i shuffle = load_eight(kShuffles.unpack[bits].data());
      const __m128i eight = _mm_shuffle_epi8(load_eight(at), shuffle);
      store_eight(to, eight);
      // A byte that comes from somewhere and is 0.
      zeros = _mm_or_si128(zeros, _mm_andnot_si128(_mm_cmplt_epi8(shuffle, none), _mm_cmpeq_epi8(eight, none)));
      from += kShuffles.count[bits];
    }
  // The upper eight bytes of each are 0, and come from byte 0.
  return _mm_movemask_epi8(zeros) & 255 ? nullptr : from;
}
#endif

constexpr MaskPacking kByBits{pack_by_bits, unpack_by_bits};
#if defined(__x86_64__)
constexpr MaskPacking kWays[]{{pack_by_eights, unpack_by_eights}, kByBits};
#else
constexpr MaskPacking kWays[]{kByBits};
#endif

}  // namespace

std::span<const MaskPacking> mask_packings() {
  static const size_t missing = [] {
#if defined(__x86_64__)
    return __builtin_cpu_supports("ssse3") ? 0 : 1;
#else
    return 0;
#endif
  }();
  return std::span(kWays).subspan(missing);
}

uint8_t* pack_materials(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to) {
  return mask_packings().front().pack(mask, materials, to);
}

const uint8_t* unpack_materials(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                                BrickMaterials& materials) {
  return mask_packings().front().unpack(mask, from, end, materials);
}

}  // namespace quarry::io
