// SPDX-License-Identifier: Apache-2.0
// killed_child.hpp - a child process that edits until it is killed, and the last step that it had acknowledged.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>

namespace quarry::test {

// Forks. The child runs `edit`, which calls its argument after each step that the store acknowledged. The child is
// killed a random time of less than `most_us` after it has reported step `wait_for`. Returns the last reported step, or
// `first` if there was none.
inline int32_t last_step_before_kill(int32_t first, int32_t wait_for, uint32_t most_us, std::mt19937& random,
                                     const std::function<void(const std::function<void(int32_t)>& report)>& edit) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    edit([&](int32_t step) {
      if (::write(ends[1], &step, sizeof step) != sizeof step) _exit(4);
    });
    _exit(0);
  }
  ::close(ends[1]);
  // The child first gets some time. It is then killed at a random instant, as likely in a transaction as between two.
  int32_t step = first, reported = first;
  while (reported < wait_for && ::read(ends[0], &reported, sizeof reported) == sizeof reported) {
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % most_us));
  ::kill(child, SIGKILL);
  while (::read(ends[0], &step, sizeof step) == sizeof step) reported = step;
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  return reported;
}

}  // namespace quarry::test
