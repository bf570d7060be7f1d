// SPDX-License-Identifier: Apache-2.0
// temporary_name_test.cpp - the next run removes the unfinished files of a killed program, and nothing else.
#include "voxel/io/files/temporary_name.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/quarry/writer.hpp"

namespace temporary_name_test {

using namespace quarry;
using test::names_in;
namespace fs = std::filesystem;

namespace {

// The child half writes a file, a world and a folder, reports it, and then waits.
[[noreturn]] void write_half(const fs::path& dir, int pipe) {
  auto file = io::AtomicFile::create(dir / "a.glb");
  const Scene scene = test::busy_scene();
  const Progress quiet;
  auto world = io::StoreWriter::create(scene, dir / "b.quarry", quiet);
  const auto folder = io::make_temporary_folder(dir / "c");
  if (!file || !world || !folder || !world->append(0, scene.volumes[0].bricks)) _exit(2);
  file->put("half");
  std::ofstream(folder->path / "0000.png") << "half";
  if (::write(pipe, "x", 1) != 1) _exit(3);
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("temporary names: what a killed writer leaves is removed by the next, what a living one has is not") {
  const fs::path dir = test::scratch_dir("temporary_killed");
  test::write_bytes(dir / "kept.glb", {1});
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) write_half(dir, ends[1]);
  ::close(ends[1]);
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  ::close(ends[0]);
  const auto half = names_in(dir);
  CHECK(half.size() == 4);
  CHECK(io::remove_stale_temporaries(dir) == 0);
  CHECK(names_in(dir) == half);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(io::remove_stale_temporaries(dir) == 3);
  CHECK(names_in(dir) == std::vector<std::string>{"kept.glb"});
}

TEST_CASE("temporary names: only names of ours go, and another machine's only after a day") {
  const fs::path dir = test::scratch_dir("temporary_names");
  const std::string ours = io::temporary_name(dir / "w.vox").filename().string(),
                    tail = ours.substr(ours.rfind(".new-"));
  REQUIRE(tail.size() > 14);
  const std::string other = tail[5] == '0' ? "1" : "0";
  const std::string elsewhere = ".w.vox.new-" + other + tail.substr(6);
  const std::vector<std::string> kept = {"w.vox",
                                         "w.vox" + tail,
                                         ".hidden",
                                         ".w.vox.new-12-3",
                                         ".w.vox.new-" + std::string(8, 'g') + "-1-2",
                                         ours + ".mine",
                                         ours + "-",
                                         tail,
                                         elsewhere,
                                         io::temporary_name(dir / "w.vox", "regions").filename().string()};
  for (const std::string& name : kept) test::write_bytes(dir / name, {1});
  test::write_bytes(dir / ours, {1});
  fs::create_symlink(dir / "w.vox", io::temporary_name(dir / "link"));
  const size_t links = 1;
  CHECK(io::remove_stale_temporaries(dir) == 1);
  CHECK(names_in(dir).size() == kept.size() + links);
  for (const std::string& name : kept) CHECK(fs::exists(dir / name));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(dir / elsewhere, now - std::chrono::hours(23));
  fs::last_write_time(dir / kept.back(), now - std::chrono::seconds(20));
  CHECK(io::remove_stale_temporaries(dir) == 1);  // the temporary world
  fs::last_write_time(dir / elsewhere, now - std::chrono::hours(25));
  CHECK(io::remove_stale_temporaries(dir) == 1);
  CHECK(io::remove_stale_temporaries(dir / "absent") == 0);
}

}  // namespace temporary_name_test
