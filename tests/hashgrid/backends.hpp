// backends.hpp - the executors that every case of tests/hashgrid runs on, and arrays in the memory of each.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/grid.hpp"

namespace quarry::hashgrid::test {

// Runs `body` on host executors with 1, 2 and 8 threads and on CUDA, on one of 2 threads and CUDA once more with rows; says so aloud where there
// is no CUDA.
void on_each_executor(const std::function<void(Executor&)>& body);
// What on_each_executor asks tables to be at the moment. Table and the key makers below obey; grids must be made with it.
Locality test_locality();

// An array in an executor's memory.
template <class T>
class Array {
 public:
  Array(Executor& executor, size_t count) : executor_(executor), count_(count) {
    auto block = executor.memory().allocate(std::max<size_t>(1, count * sizeof(T)), "test array");
    if (!block) FAIL(block.error().message);
    block_ = *block;
  }
  Array(Executor& executor, std::span<const T> from) : Array(executor, from.size()) { set(from); }
  Array(Executor& executor, const std::vector<T>& from) : Array(executor, std::span<const T>(from)) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { executor_.memory().release(block_); }

  T* data() const { return static_cast<T*>(block_.data); }
  size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }
  void set(std::span<const T> from) {
    REQUIRE(from.size() == count_);
    REQUIRE(executor_.upload(data(), from.data(), count_ * sizeof(T)).has_value());
  }
  std::vector<T> get() const {
    std::vector<T> copy(count_);
    REQUIRE(executor_.download(copy.data(), data(), count_ * sizeof(T)).has_value());
    return copy;
  }

 private:
  Executor& executor_;
  size_t count_;
  MemoryBlock block_;
};

// A bare table, without an owner: for what Grid hides (phases, outcomes, refusal).
class Table {
 public:
  Table(Executor& executor, uint32_t page_count)
      : executor_(executor), words_(executor, size_t{page_count} * kQryPageWords), view_{words_.data(), page_count, 0, uint32_t(test_locality())} {
    REQUIRE(executor.clear(view_).has_value());
  }
  GridView& view() { return view_; }
  void next_phase() { ++view_.phase; }

  BulkReport insert(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values, std::vector<Outcome>* outcomes = nullptr);
  BulkReport assign(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values, std::vector<Outcome>* outcomes = nullptr);
  BulkReport find_or_insert(const std::vector<uint32_t>& keys, std::vector<uint32_t>& values, std::vector<Outcome>* outcomes = nullptr);
  BulkReport erase(const std::vector<uint32_t>& keys, std::vector<Outcome>* outcomes = nullptr, std::vector<uint32_t>* old = nullptr);
  std::vector<uint32_t> find(const std::vector<uint32_t>& keys, std::vector<uint8_t>* depths = nullptr);
  std::vector<uint64_t> words() const { return words_.get(); }

 private:
  Executor& executor_;
  Array<uint64_t> words_;
  GridView view_;
};

// Independent check of a table's memory against docs in layout.h: no key twice, each key where a plain reading of the probe order finds it,
// state bits no less than the truth, no never-used slot in a bucket or a sector of the stash that keys went past. Returns the first fault, or "".
std::string fault_in(const std::vector<uint64_t>& words, uint32_t page_count);

// `count` different keys whose home is bucket `bucket` (0..991) of `page`; needs few pages.
std::vector<uint32_t> keys_of_bucket(uint32_t page, uint32_t bucket, uint32_t page_count, size_t count);
// `count` different keys of one page, spread over it.
std::vector<uint32_t> keys_of_page(uint32_t page, uint32_t page_count, size_t count);
// `count` different keys anywhere, the same for the same seed.
std::vector<uint32_t> some_keys(uint32_t seed, size_t count);
// A value that belongs to the key: no other key's value has the same upper 24 bits pattern by rule.
constexpr uint32_t value_of(uint32_t key, uint32_t tag = 0) { return ((key * 0x9E3779B1u) & 0x7FFFFF00u) | (tag & 0xFFu); }
std::vector<uint32_t> values_of(const std::vector<uint32_t>& keys, uint32_t tag = 0);

}  // namespace quarry::hashgrid::test
