// SPDX-License-Identifier: Apache-2.0
// atomic_file_test.cpp - the one way in which files are written: the state of the target before, meanwhile and after.
#include "voxel/io/files/atomic_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <ostream>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/files/temporary_name.hpp"
#include "voxel/io/quarry/store.hpp"

namespace atomic_file_test {

using namespace quarry;
using io::AtomicFile;
using test::file_text;
using test::names_in;
namespace fs = std::filesystem;

namespace {

// During its lifetime no file of this process can become longer, as on a full disk.
class NoMoreThan {
 public:
  explicit NoMoreThan(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoMoreThan() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

fs::path with_text(const fs::path& file, const std::string& text) {
  test::write_bytes(file, {text.begin(), text.end()});
  return file;
}

}  // namespace

TEST_CASE("atomic file: bytes come in any order, over earlier ones and behind the end, through the stream too") {
  const fs::path dir = test::scratch_dir("whole_order");
  auto file = AtomicFile::create(dir / "a");
  REQUIRE(file);
  io::SinkStreambuf buffer(file->sink());
  std::ostream out(&buffer);
  out << "0123456789" << std::string(3 << 20, 'x');
  out.seekp(2);
  out << "ab";
  out.seekp(0, std::ios_base::end);
  CHECK(out.tellp() == std::streampos(10 + (3 << 20)));
  out << "end";
  out.seekp(4, std::ios_base::cur);  // a hole
  out << "!";
  file->patch_u32(5, 0x64636261);
  CHECK(file->size() == 10 + (3 << 20) + 8);
  REQUIRE(out.flush());
  REQUIRE(file->commit());
  const std::string text = file_text(dir / "a");
  CHECK(text.substr(0, 12) == "01ab4abcd9xx");
  CHECK(text.substr(text.size() - 8) == std::string("end\0\0\0\0!", 8));
  CHECK(names_in(dir) == std::vector<std::string>{"a"});
}

TEST_CASE(
    "atomic file: what cannot be written whole leaves what was there, nothing beside it, and says the system's "
    "reason") {
  const fs::path dir = test::scratch_dir("whole_full");
  with_text(dir / "a", "old");
  for (const size_t bytes : {size_t(5000), size_t(3) << 20}) {
    auto file = AtomicFile::create(dir / "a");
    REQUIRE(file);
    const NoMoreThan full(4096);
    file->put(std::string(bytes, 'n'));
    const auto done = file->commit();
    REQUIRE_FALSE(done);
    CHECK_THAT(done.error().message, Catch::Contains("File too large"));
    CHECK(file_text(dir / "a") == "old");
    CHECK(names_in(dir) == std::vector<std::string>{"a"});
  }
  // A file that another program was to write.
  auto file = AtomicFile::create(dir / "a");
  REQUIRE(file);
  with_text(file->temporary(), "cut sho");
  file->written_by_name(9);
  const auto done = file->commit();
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("9 bytes") && Catch::Contains("7 were written"));
  CHECK(file_text(dir / "a") == "old");
}

TEST_CASE("atomic file: a stream throws when its file cannot take more") {
  const fs::path dir = test::scratch_dir("whole_throw");
  auto file = AtomicFile::create(dir / "a");
  REQUIRE(file);
  io::SinkStreambuf buffer(file->sink());
  std::ostream out(&buffer);
  out.exceptions(std::ios_base::badbit | std::ios_base::failbit);
  const NoMoreThan full(100);
  CHECK_THROWS(out << std::string(2 << 20, 'x') << std::flush);
  CHECK(file->sink().error() == EFBIG);
}

TEST_CASE("atomic file: what appears meanwhile stays, unless it may be replaced") {
  const fs::path dir = test::scratch_dir("whole_meanwhile");
  for (const bool replace : {false, true}) {
    io::DeferredSync later;
    for (io::DeferredSync* who : {static_cast<io::DeferredSync*>(nullptr), &later}) {
      fs::remove(dir / "a");
      auto file = AtomicFile::create({dir / "a", replace, who});
      REQUIRE(file);
      file->put("mine");
      with_text(dir / "a", "theirs");
      const auto done = file->commit();
      CHECK(done.has_value() == replace);
      if (!done) CHECK(done.error().code == ErrorCode::conflict);
      CHECK(file_text(dir / "a") == (replace ? "mine" : "theirs"));
    }
    CHECK(later.settle());
  }
  // A target that is no file is never replaced.
  fs::remove(dir / "a");
  auto file = AtomicFile::create(dir / "a");
  REQUIRE(file);
  REQUIRE(::mkfifo((dir / "a").c_str(), 0600) == 0);
  CHECK_FALSE(file->commit());
  CHECK(fs::is_fifo(dir / "a"));
  CHECK(AtomicFile::create({dir / "b", false}));
  with_text(dir / "b", "b");
  const auto refused = AtomicFile::create({dir / "b", false});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::conflict);
}

TEST_CASE("atomic file: of two files that belong together both are new or both are old") {
  const fs::path dir = test::scratch_dir("whole_pair");
  for (const bool there : {false, true})
    for (const bool fails : {false, true}) {
      for (const char* name : {"main", "beside"}) {
        fs::remove_all(dir / name);
        if (there) with_text(dir / name, "old");
      }
      auto sidecar = AtomicFile::create(dir / "beside"), main = AtomicFile::create(dir / "main");
      REQUIRE(sidecar);
      REQUIRE(main);
      sidecar->put("new");
      main->put("new");
      if (fails) {
        fs::remove(dir / "main");
        fs::create_directory(dir / "main");
      }
      const auto done = main->commit_after(*sidecar);
      INFO(there << fails << (done ? "" : done.error().message));
      CHECK(done.has_value() == !fails);
      CHECK(file_text(dir / "beside") == (!fails ? "new" : there ? "old" : ""));
      CHECK(fs::exists(dir / "beside") == (!fails || there));
      if (!fails) CHECK(file_text(dir / "main") == "new");
      CHECK(names_in(dir).size() == size_t(!fails || there ? 2 : 1));
    }
  // If the sidecar is not whole, neither gets its name.
  fs::remove_all(dir / "main");
  with_text(dir / "main", "old");
  with_text(dir / "beside", "old");
  auto sidecar = AtomicFile::create(dir / "beside"), main = AtomicFile::create(dir / "main");
  main->put("new");
  sidecar->put("new");
  sidecar->written_by_name(100);
  CHECK_FALSE(main->commit_after(*sidecar));
  CHECK(file_text(dir / "main") == "old");
  CHECK(file_text(dir / "beside") == "old");
}

TEST_CASE("atomic file: a copy of a world that cannot be written whole leaves the world that was there") {
  const fs::path dir = test::scratch_dir("whole_copy");
  Scene scene;
  scene.volumes.resize(1);
  for (int32_t i = 0; i < 3000; ++i)
    scene.volumes[0].bricks.set({i * 7 % 500, i % 90, i * 13 % 400}, uint8_t(1 + i % 200));
  scene.instances.resize(1);
  REQUIRE(io::Store::save(scene, dir / "from.quarry"));
  scene.volumes[0].bricks.set({0, 100, 0}, 5);
  REQUIRE(io::Store::save(scene, dir / "to.quarry"));
  const auto before = test::file_bytes(dir / "to.quarry");
  {
    const NoMoreThan full(fs::file_size(dir / "from.quarry") - 1000);
    const auto done = io::Store::copy(dir / "from.quarry", dir / "to.quarry");
    REQUIRE_FALSE(done);
    CHECK_THAT(done.error().message, Catch::Contains("File too large") && Catch::Contains("to.quarry"));
  }
  CHECK(test::file_bytes(dir / "to.quarry") == before);
  CHECK(names_in(dir) == std::vector<std::string>{"from.quarry", "to.quarry"});
  REQUIRE(io::Store::copy(dir / "from.quarry", dir / "to.quarry"));
  CHECK(test::file_bytes(dir / "to.quarry") == test::file_bytes(dir / "from.quarry"));
  CHECK_FALSE(io::Store::copy(dir / "from.quarry", {dir / "to.quarry", false}));
}

TEST_CASE("atomic file: temporary names are as long as the file system takes, end between letters, and differ") {
  const fs::path dir = test::scratch_dir("whole_names");
  std::string name;
  for (int i = 0; i < 85; ++i) name += "\xe2\x82\xac";  // three bytes each
  for (size_t cut = 0; cut < 3; ++cut)
    for (const char* kind : {"new", "regions", "set", "kept"}) {
      const fs::path file = dir / (std::string(cut, 'x') + name.substr(0, name.size() - (cut ? 3 : 0)));
      const std::string a = io::temporary_name(file, kind).filename().string(),
                        b = io::temporary_name(file, kind).filename().string();
      CHECK(a != b);
      CHECK(a.size() <= 255);
      CHECK(a.size() > 250);
      const std::string stem = a.substr(1 + cut, a.rfind("." + std::string(kind) + "-") - 1 - cut);
      CHECK(stem.size() % 3 == 0);
      CHECK(name.starts_with(stem));
    }
  auto made = io::make_temporary_file(dir / name, 0600);
  REQUIRE(made);
  ::close(made->fd);
  CHECK(io::remove_stale_temporaries(dir) == 1);
  CHECK(names_in(dir).empty());
}

TEST_CASE("deferred sync: what was added is asked for once, few and many, and what was moved away is no error") {
  const fs::path dir = test::scratch_dir("deferred_sync");
  for (const int count : {3, 40}) {
    io::DeferredSync later;
    const fs::path folder = dir / std::to_string(count) / "deep";
    REQUIRE(later.make_folders(folder));
    for (int i = 0; i < count; ++i) {
      auto file = AtomicFile::create({folder / std::to_string(i), false, &later});
      REQUIRE(file);
      file->put("text");
      REQUIRE(file->commit());
    }
    fs::remove(folder / "1");
    CHECK(later.settle());
    fs::remove_all(folder);
    CHECK(later.settle());
  }
  io::DeferredSync later;
  with_text(dir / "file", "x");
  const auto refused = later.make_folders(dir / "file" / "below");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("below"));
}

}  // namespace atomic_file_test
