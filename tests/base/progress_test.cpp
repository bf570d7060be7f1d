// SPDX-License-Identifier: Apache-2.0
// progress_test.cpp - the progress of work in pieces: who reports, what, how often, and how it stops.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/progress.hpp"

namespace progress_test {

using namespace quarry;

TEST_CASE("progress: pieces are reported by rising fractions of their part of the stage") {
  std::vector<double> said;
  std::string stages;
  Progress progress;
  progress.report = [&](std::string_view stage, double fraction) {
    stages += stage;
    said.push_back(fraction);
  };
  PieceProgress pieces(progress, "s", std::chrono::milliseconds(0));
  pieces.begin(2, 0, 0.5);
  CHECK(pieces.piece_done());
  CHECK(pieces.piece_done());
  pieces.begin(0, 0.5, 0.5);
  pieces.begin(4, 0.5, 1);
  for (int i = 0; i < 4; ++i) CHECK(pieces.piece_done());
  CHECK(said == std::vector<double>{0, 0.25, 0.5, 0.625, 0.75, 0.875, 1});
  CHECK(stages == "sssssss");
}

TEST_CASE("progress: a report that says to stop ends the work, and is the last") {
  std::atomic<bool> cancel{false};
  int calls = 0;
  Progress progress{[&](std::string_view, double) { cancel = ++calls == 3; }, &cancel};
  PieceProgress pieces(progress, "s", std::chrono::milliseconds(0));
  pieces.begin(10, 0, 1);
  CHECK(pieces.piece_done());
  CHECK_FALSE(pieces.piece_done());
  CHECK_FALSE(pieces.piece_done());
  CHECK(pieces.cancelled());
  CHECK(calls == 3);
}

TEST_CASE("progress: many threads report one at a time, and no more often than asked for") {
  std::atomic<int> inside{0}, wrong{0}, calls{0};
  double last = -1;
  Progress progress;
  progress.report = [&](std::string_view, double fraction) {
    wrong += ++inside != 1 || fraction <= last || fraction > 1;
    last = fraction;
    ++calls;
    --inside;
  };
  const auto work = [&](std::chrono::milliseconds pause) {
    last = -1;
    calls = 0;
    PieceProgress pieces(progress, "s", pause);
    pieces.begin(4000, 0, 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) wrong += !pieces.piece_done();
      });
    for (std::thread& thread : threads) thread.join();
    return calls.load();
  };
  CHECK(work(std::chrono::milliseconds(0)) > 1);
  CHECK(work(std::chrono::hours(1)) == 1);  // at once, and then not yet again
  CHECK(wrong == 0);
}

}  // namespace progress_test
