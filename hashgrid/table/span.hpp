// SPDX-License-Identifier: Apache-2.0
// span.hpp - a reference to contiguous elements: the part of std::span, which C++17 lacks, that this library's
// interface needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace quarry::hashgrid {

// Made from a pointer and a size, an array, or a type with data() and size(): std::vector, std::array, std::span. Owns
// nothing.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t kSize>
  constexpr Span(T (&array)[kSize]) : data_(array), size_(kSize) {}
  template <class Range, class Element = std::remove_pointer_t<decltype(std::declval<Range&>().data())>,
            class = std::enable_if_t<std::is_convertible_v<Element (*)[], T (*)[]>>,
            class = decltype(std::declval<Range&>().size())>
  constexpr Span(Range&& range) : data_(range.data()), size_(range.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Whether two arrays share memory.
template <class A, class B>
bool overlap(Span<A> a, Span<B> b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data()), begin_b = reinterpret_cast<uintptr_t>(b.data());
  return a.size() != 0 && b.size() != 0 && begin_a < begin_b + b.size() * sizeof(B) &&
         begin_b < begin_a + a.size() * sizeof(A);
}

}  // namespace quarry::hashgrid
