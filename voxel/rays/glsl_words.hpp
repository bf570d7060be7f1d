// SPDX-License-Identifier: Apache-2.0
// glsl_words.hpp - the words of GLSL that walk.h uses, for C++ and CUDA: vectors of three and two numbers and what is
// done with them, as far as that text needs it. min() and max() of a number and a NaN are the number, as on every GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "hashgrid/table/outcome.hpp"

// A kernel's rays are registers only if all of the walk is in it.
#if defined(__CUDACC__)
#define QRY_WALK __host__ __device__ __forceinline__
#else
#define QRY_WALK inline
#endif

namespace quarry::ray_walk {

using uint = uint32_t;

template <class T>
struct Two {
  T x, y;
  Two() = default;
  QRY_WALK constexpr Two(T its_x, T its_y) : x(its_x), y(its_y) {}
};

template <class T>
struct Three {
  T x, y, z;
  Three() = default;
  QRY_WALK constexpr explicit Three(T all) : x(all), y(all), z(all) {}
  QRY_WALK constexpr Three(T its_x, T its_y, T its_z) : x(its_x), y(its_y), z(its_z) {}
  template <class Other>
  QRY_WALK constexpr explicit Three(const Three<Other>& from) : x(T(from.x)), y(T(from.y)), z(T(from.z)) {}
};

using vec3 = Three<float>;
using ivec3 = Three<int>;
using uvec3 = Three<uint>;
using bvec3 = Three<bool>;
using uvec2 = Two<uint>;

#define QRY_OPERATOR(op)                                                          \
  template <class T>                                                              \
  QRY_WALK constexpr Three<T> operator op(const Three<T>& a, const Three<T>& b) { \
    return {T(a.x op b.x), T(a.y op b.y), T(a.z op b.z)};                         \
  }                                                                               \
  template <class T>                                                              \
  QRY_WALK constexpr Three<T> operator op(const Three<T>& a, T b) {               \
    return {T(a.x op b), T(a.y op b), T(a.z op b)};                               \
  }                                                                               \
  template <class T>                                                              \
  QRY_WALK constexpr Three<T> operator op(T a, const Three<T>& b) {               \
    return {T(a op b.x), T(a op b.y), T(a op b.z)};                               \
  }
QRY_OPERATOR(+)
QRY_OPERATOR(-)
QRY_OPERATOR(*)
QRY_OPERATOR(/)
QRY_OPERATOR(&)
QRY_OPERATOR(|)
QRY_OPERATOR(^)
#undef QRY_OPERATOR
QRY_WALK constexpr uvec3 operator<<(const uvec3& a, uint bits) { return {a.x << bits, a.y << bits, a.z << bits}; }
QRY_WALK constexpr uvec3 operator>>(const uvec3& a, uint bits) { return {a.x >> bits, a.y >> bits, a.z >> bits}; }
QRY_WALK constexpr vec3 operator-(const vec3& a) { return {-a.x, -a.y, -a.z}; }

// Of single numbers. A host without such an instruction calls a function for fma(), which rounds once too.
QRY_WALK float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
QRY_WALK float floor(float a) { return ::floorf(a); }
QRY_WALK float abs(float a) { return ::fabsf(a); }
#if defined(__CUDA_ARCH__)
QRY_WALK float min(float a, float b) { return ::fminf(a, b); }
QRY_WALK float max(float a, float b) { return ::fmaxf(a, b); }
QRY_WALK uint floatBitsToUint(float a) { return __float_as_uint(a); }
QRY_WALK float uintBitsToFloat(uint a) { return __uint_as_float(a); }
QRY_WALK uint bitCount(uint a) { return uint(__popc(a)); }
#else
QRY_WALK float min(float a, float b) { return a <= b || std::isnan(b) ? a : b; }
QRY_WALK float max(float a, float b) { return a >= b || std::isnan(b) ? a : b; }
QRY_WALK uint floatBitsToUint(float a) { return std::bit_cast<uint>(a); }
QRY_WALK float uintBitsToFloat(uint a) { return std::bit_cast<float>(a); }
QRY_WALK uint bitCount(uint a) { return uint(std::popcount(a)); }
#endif
QRY_WALK constexpr uint bitfieldInsert(uint base, uint insert, int offset, int bits) {
  const uint mask = ((1u << bits) - 1u) << offset;
  return (base & ~mask) | ((insert << offset) & mask);
}
QRY_WALK constexpr uint64_t packUint2x32(const uvec2& a) { return uint64_t(a.y) << 32 | a.x; }

// The same of each number of a vector.
QRY_WALK vec3 fma(const vec3& a, const vec3& b, const vec3& c) {
  return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z)};
}
QRY_WALK vec3 floor(const vec3& a) { return {floor(a.x), floor(a.y), floor(a.z)}; }
QRY_WALK vec3 abs(const vec3& a) { return {abs(a.x), abs(a.y), abs(a.z)}; }
QRY_WALK vec3 min(const vec3& a, const vec3& b) { return {min(a.x, b.x), min(a.y, b.y), min(a.z, b.z)}; }
QRY_WALK vec3 max(const vec3& a, const vec3& b) { return {max(a.x, b.x), max(a.y, b.y), max(a.z, b.z)}; }
QRY_WALK vec3 clamp(const vec3& a, const vec3& low, const vec3& high) { return min(max(a, low), high); }
QRY_WALK uvec3 floatBitsToUint(const vec3& a) {
  return {floatBitsToUint(a.x), floatBitsToUint(a.y), floatBitsToUint(a.z)};
}
QRY_WALK vec3 uintBitsToFloat(const uvec3& a) {
  return {uintBitsToFloat(a.x), uintBitsToFloat(a.y), uintBitsToFloat(a.z)};
}
QRY_WALK constexpr bvec3 lessThan(const vec3& a, const vec3& b) { return {a.x < b.x, a.y < b.y, a.z < b.z}; }
QRY_WALK constexpr bvec3 greaterThanEqual(const vec3& a, const vec3& b) { return {a.x >= b.x, a.y >= b.y, a.z >= b.z}; }
template <class T>
QRY_WALK constexpr Three<T> mix(const Three<T>& a, const Three<T>& b, const bvec3& second) {
  return {second.x ? b.x : a.x, second.y ? b.y : a.y, second.z ? b.z : a.z};
}
QRY_WALK constexpr float dot(const vec3& a, const vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

}  // namespace quarry::ray_walk
