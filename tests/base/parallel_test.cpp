// SPDX-License-Identifier: Apache-2.0
// parallel_test.cpp - the loops of all bulk operations on the host: every piece runs once, beside other loops, and in a
// child process too.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "tests/test_data.hpp"

namespace quarry::test::parallel_test {
namespace {

// How often each index was visited, and whether a piece was longer than requested.
struct Visits {
  explicit Visits(size_t count) : times(count) {}
  void add(size_t begin, size_t end, size_t grain) {
    too_long = too_long || end - begin > grain || begin >= end;
    for (size_t i = begin; i < end; ++i) times[i].fetch_add(1, std::memory_order_relaxed);
  }
  bool each_once() const {
    for (const auto& t : times)
      if (t.load() != 1) return false;
    return !too_long;
  }
  std::vector<std::atomic<uint32_t>> times;
  std::atomic<bool> too_long{false};
};

TEST_CASE("parallel_for: visits every index once, in pieces no longer than asked for") {
  for (const size_t count : {0u, 1u, 7u, 64u, 1000u})
    for (const size_t grain : {1u, 3u, 64u, 5000u})
      for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
        Visits visits(count);
        parallel_for(
            count, grain, [&](size_t begin, size_t end) { visits.add(begin, end, grain); }, threads);
        CHECK(visits.each_once());
      }
}

TEST_CASE("parallel_for: what its pieces wrote is there when it returns, loop after loop") {
  std::vector<uint64_t> values(4096, 0);
  for (uint64_t round = 1; round <= 300; ++round) {
    parallel_for(
        values.size(), 64,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) values[i] += i ^ round;
        },
        4);
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) wrong += values[i] != (i ^ round);
    REQUIRE(wrong == 0);
    std::fill(values.begin(), values.end(), 0);
  }
}

TEST_CASE("parallel_for: loops inside loops, from several threads at once, all end") {
  constexpr size_t kOuter = 20, kInner = 50;
  std::vector<std::unique_ptr<Visits>> each;
  for (int caller = 0; caller < 4; ++caller) each.push_back(std::make_unique<Visits>(kOuter * kInner));
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&, caller] {
        parallel_for(
            kOuter, 1,
            [&](size_t outer, size_t) {
              parallel_for(
                  kInner, 2,
                  [&](size_t begin, size_t end) {
                    each[size_t(caller)]->add(outer * kInner + begin, outer * kInner + end, 2);
                  },
                  3);
            },
            3);
      });
  }
  for (const auto& one : each) CHECK(one->each_once());
}

TEST_CASE("parallel_for: gets the threads it asks for, and the next loops get the same ones") {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<uint32_t> inside{0};
    // Each piece waits until all three are running, which proves three threads.
    parallel_for(
        3, 1,
        [&](size_t, size_t) {
          {
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
          }
          inside.fetch_add(1);
          const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (inside.load() < 3 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
        },
        3);
    REQUIRE(inside.load() == 3);
  }
  // The caller and the pool's threads. Other loops may have grown the pool to the number of processors, or to the
  // number that they requested.
  CHECK(seen.size() >= 3);
  CHECK(seen.size() <= std::max(8u, thread_count()));
}

TEST_CASE("parallel_for: an exception of a piece reaches the caller when no thread is inside any more") {
  for (const uint32_t threads : {1u, 4u}) {
    std::atomic<int> inside{0}, begun{0};
    const auto loop = [&] {
      parallel_for(
          10000, 1,
          [&](size_t begin, size_t) {
            ++inside, ++begun;
            const bool fails = begin == 17;
            --inside;
            if (fails) throw std::bad_alloc();
          },
          threads);
    };
    CHECK_THROWS_AS(loop(), std::bad_alloc);
    CHECK(inside == 0);
    CHECK(begun < 10000);
    std::atomic<size_t> visited{0};  // the next loop is not affected
    parallel_for(
        1000, 1, [&](size_t begin, size_t end) { visited += end - begin; }, threads);
    CHECK(visited == 1000);
  }
}

TEST_CASE("parallel_for: within a share a loop that does not say how many threads keeps to it") {
  const ThreadShare share(1);
  CHECK(thread_count() == 1);
  const auto self = std::this_thread::get_id();
  std::atomic<uint32_t> elsewhere{0};
  parallel_for(64, 1, [&](size_t, size_t) { elsewhere += std::this_thread::get_id() != self; });
  CHECK(elsewhere.load() == 0);
}

TEST_CASE("parallel_for: a child process loops with threads of its own") {
#if defined(__SANITIZE_THREAD__)
  skip("ThreadSanitizer lets no child of a process with threads start others");
#else
  parallel_for(
      64, 1, [](size_t, size_t) {}, 4);  // this process has its helpers, asleep or about to sleep
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(20);  // a child that waits for missing threads ends as a failure
      Visits visits(1000);
      for (int loop = 0; loop < 3; ++loop)
        parallel_for(
            1000, 10,
            [&](size_t begin, size_t end) {
              if (loop == 0) visits.add(begin, end, 10);
            },
            4);
      std::atomic<uint32_t> inside{0};
      parallel_for(
          2, 1,
          [&](size_t, size_t) {
            inside.fetch_add(1);
            while (inside.load() < 2) std::this_thread::yield();
          },
          2);
      _exit(visits.each_once() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    Visits visits(100);
    parallel_for(
        100, 1, [&](size_t begin, size_t end) { visits.add(begin, end, 1); }, 4);
    REQUIRE(visits.each_once());
  }
#endif
}

}  // namespace
}  // namespace quarry::test::parallel_test
