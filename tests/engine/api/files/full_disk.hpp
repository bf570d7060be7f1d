// SPDX-License-Identifier: Apache-2.0
// full_disk.hpp - a process that can write no more, as on a full disk.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdint>

namespace quarry::test {

// The process can make no file larger, as long as this lives: as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(uint64_t most_bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{most_bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  struct rlimit before_ {};
  void (*handler_)(int);
};

}  // namespace quarry::test
