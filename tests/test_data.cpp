// SPDX-License-Identifier: Apache-2.0
// test_data.cpp - finds the data by $QUARRY_TEST_DATA or beside the source tree, and counts what was skipped.
#include "tests/test_data.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace quarry::test {
namespace {
namespace fs = std::filesystem;

struct Scratch {
  std::mutex mutex;
  std::map<std::string, fs::path> dirs;
  int skips = 0;
  ~Scratch() {
    std::error_code ignored;
    for (const auto& [name, dir] : dirs) fs::remove_all(dir, ignored);
    if (skips) std::printf("SKIPPED %d checks for want of a device or of files; see the lines above\n", skips);
  }
};
Scratch& scratch() {
  static Scratch instance;
  return instance;
}
}  // namespace

fs::path data_dir() {
  if (const char* given = std::getenv("QUARRY_TEST_DATA")) return given;
  const fs::path root = QRY_SOURCE_DIR;
  for (const fs::path& candidate : {root / "../shared/data", root / "shared/data"})
    if (fs::exists(candidate / "FACTS.tsv")) return fs::canonical(candidate);
  return {};
}

fs::path asset(const std::string& name) { return fs::path(QRY_SOURCE_DIR) / "assets" / name; }

fs::path scratch_dir(const std::string& name) {
  Scratch& s = scratch();
  const std::lock_guard lock(s.mutex);
  auto [it, fresh] = s.dirs.try_emplace(name);
  if (fresh) it->second = fs::temp_directory_path() / ("quarry-test-" + std::to_string(getpid()) + "-" + name);
  fs::remove_all(it->second);
  fs::create_directories(it->second);
  return it->second;
}

void skip(const std::string& why) {
  const std::lock_guard lock(scratch().mutex);
  ++scratch().skips;
  std::printf("SKIPPED: %s\n", why.c_str());
  std::fflush(stdout);
}

}  // namespace quarry::test
