// SPDX-License-Identifier: Apache-2.0
// in_order_test.cpp - pieces that several threads make: in order, bounded, and ended by errors and exceptions.
#include "base/in_order.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace in_order_test {

using namespace quarry;

TEST_CASE("make_in_order: every piece is made once, by one worker at a time, and passed on in its order") {
  for (const size_t workers : {1u, 2u, 5u})
    for (const size_t count : {0u, 1u, 3u, 100u}) {
      std::vector<std::atomic<int>> made(count), busy(workers);
      std::vector<size_t> used;
      std::atomic<bool> twice{false};
      const auto done = make_in_order<size_t>(
          count, workers, workers + 1,
          [&](size_t worker, size_t i) -> Result<size_t> {
            if (busy[worker].fetch_add(1) != 0) twice = true;
            ++made[i];
            if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
            --busy[worker];
            return i * i;
          },
          [&](size_t i, Result<size_t>&& piece) -> Result<void> {
            CHECK(piece.value() == i * i);
            used.push_back(i);
            return {};
          });
      CHECK(done);
      CHECK_FALSE(twice);
      REQUIRE(used.size() == count);
      for (size_t i = 0; i < count; ++i) {
        CHECK(used[i] == i);
        CHECK(made[i] == 1);
      }
    }
}

TEST_CASE("make_in_order: no more pieces than were said are being made or wait") {
  constexpr size_t kAhead = 3;
  std::atomic<size_t> begun{0}, used{0}, most{0};
  CHECK(make_in_order<int>(
      40, 4, kAhead,
      [&](size_t, size_t) -> Result<int> {
        const size_t now = ++begun - used.load();
        for (size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        return 0;
      },
      [&](size_t, Result<int>&&) -> Result<void> {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++used;
        return {};
      }));
  CHECK(most >= 1);
  CHECK(most <= kAhead + 1);  // the one that is being used counts as begun until `used` says so
}

TEST_CASE("make_in_order: an error of who uses the pieces ends it, and errors of who makes them are passed on") {
  std::atomic<size_t> begun{0};
  std::vector<bool> whole;
  const auto done = make_in_order<int>(
      1000, 3, 4,
      [&](size_t, size_t i) -> Result<int> {
        ++begun;
        if (i == 2) return fail(ErrorCode::out_of_memory, "no room");
        return int(i);
      },
      [&](size_t i, Result<int>&& piece) -> Result<void> {
        whole.push_back(piece.has_value());
        return i == 5 ? fail(ErrorCode::io, "the disk is full") : Result<void>();
      });
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "the disk is full");
  CHECK(whole == std::vector<bool>{true, true, false, true, true, true});
  CHECK(begun <= 6 + 4);
}

TEST_CASE("make_in_order: an exception of either side comes to the caller when all threads have ended") {
  std::atomic<int> under_way{0};
  const auto run = [&](bool in_make) {
    return make_in_order<int>(
        50, 3, 4,
        [&](size_t, size_t i) -> Result<int> {
          ++under_way;
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          --under_way;
          if (in_make && i == 4) throw std::runtime_error("made");
          return 0;
        },
        [&](size_t i, Result<int>&&) -> Result<void> {
          if (!in_make && i == 4) throw std::runtime_error("used");
          return {};
        });
  };
  CHECK_THROWS_WITH(run(true), "made");
  CHECK(under_way == 0);
  CHECK_THROWS_WITH(run(false), "used");
  CHECK(under_way == 0);
}

}  // namespace in_order_test
