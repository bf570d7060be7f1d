// SPDX-License-Identifier: Apache-2.0
// output_places_test.cpp - where an output may go, for every format, the picture and the report. A target that is not a
// file is refused and stays as it was. Links are followed. A name may be as long as the file system allows. A place
// that cannot be written to leads to a message and not a signal.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "tests/app/program_output.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "voxel/io/formats.hpp"

namespace output_places_test {

using namespace quarry;
using namespace quarry::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// All extensions that this build can write. Under a sanitizer one for each way to write: by SQLite, one file, two
// files, by another process. What looks at the place is the same for all, and whole_outputs_test has each format fail.
std::vector<std::string> extensions() {
  std::vector<std::string> all;
  for (const io::Format& format : io::formats())
    if (format.write && !format.absent)
      for (const char* extension : format.extensions) all.emplace_back(extension);
  REQUIRE(all.size() >= 10);
  if (kSanitized)
    std::erase_if(all, [](const std::string& extension) {
      for (const char* kept : {"quarry", "vox", "obj", "raw", "vdb"})
        if (extension == kept) return false;
      return true;
    });
  return all;
}

fs::path scene_in(const fs::path& dir, const char* size = "9") {
  fs::path file = dir / (std::string("in") + size + ".quarry");
  REQUIRE(run_quarry({"generate", "menger", "--size", size, "-o", file.string()}).code == 0);
  return file;
}

Outcome convert(const fs::path& from, const fs::path& to, std::vector<std::string> more = {"--overwrite"}) {
  std::vector<std::string> words{"convert", from.string(), "-o", to.string()};
  words.insert(words.end(), more.begin(), more.end());
  return run_quarry(words, {}, 30);
}

void check_refused(const Outcome& outcome, const fs::path& output, std::initializer_list<const char*> reasons) {
  INFO(output << ": exit code " << outcome.code << ": " << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "quarry: "));
  CHECK(has(outcome.err, output.filename().string()));
  bool found = false;
  for (const char* reason : reasons) found = found || has(outcome.err, reason);
  CHECK(found);
}

mode_t kind_of(const fs::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? info.st_mode & S_IFMT : 0;
}

fs::path empty_folder(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// A device that accepts everything ("null", 3) or nothing ("full", 7). A faulty program would replace the system's own
// device. If the test may do that, it uses a device of its own in its folder.
fs::path device(const fs::path& dir, const char* name, unsigned minor_number) {
  if (::geteuid() != 0) return fs::path("/dev") / name;
  fs::path node = dir / name;
  if (kind_of(node) == 0 && ::mknod(node.c_str(), S_IFCHR | 0666, makedev(1, minor_number)) != 0) {
    skip("no device can be made for the test");
    return {};
  }
  // In a folder mounted without devices, nodes cannot be opened.
  const int fd = ::open(node.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    skip("no device can be opened where the test makes one");
    return {};
  }
  ::close(fd);
  return node;
}

void make_socket(const fs::path& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(file.string().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, file.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
}

// False if the command does not exist or fails.
bool can_run(const std::vector<std::string>& words) { return Process(words).finish(20).code == 0; }

// Mounts a file system of its own at `folder` while this lives. ok() says whether that worked.
class Mounted {
 public:
  Mounted(const fs::path& folder, const std::string& options) : folder_(folder) {
    fs::create_directories(folder);
    ok_ = ::geteuid() == 0 && can_run({"mount", "-t", "tmpfs", "-o", options, "tmpfs", folder.string()});
    if (!ok_) skip("no file system can be mounted for the test (" + options + "): not root, or it is refused here");
  }
  ~Mounted() {
    if (ok_) (void)Process({"umount", folder_.string()}).finish(20);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  bool ok() const { return ok_; }

 private:
  fs::path folder_;
  bool ok_ = false;
};

// The words that run the program as a user other than root. Empty if the test is not root itself, {"cannot"} if it
// cannot switch.
std::vector<std::string> as_nobody(const fs::path& readable) {
  if (::geteuid() != 0) return {};
  fs::permissions(readable, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  std::vector<std::string> words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"};
  std::vector<std::string> probe = words;
  probe.insert(probe.end(), {quarry_program().string(), "--version"});
  return can_run(probe) ? words : std::vector<std::string>{"cannot"};
}

}  // namespace

TEST_CASE(
    "output: a device, a FIFO and a socket are refused for every format, at once and with --overwrite, and "
    "stay what they are") {
  const fs::path dir = scratch_dir("places-kinds");
  const fs::path in = scene_in(dir), null = device(dir, "null", 3), full = device(dir, "full", 7);
  if (null.empty() || full.empty()) return;
  for (const std::string& extension : extensions()) {
    const fs::path out = empty_folder(dir / "out");
    fs::create_symlink(null, out / ("null." + extension));
    fs::create_symlink(full, out / ("full." + extension));
    REQUIRE(::mkfifo((out / ("fifo." + extension)).c_str(), 0666) == 0);
    make_socket(out / ("socket." + extension));
    const auto before = names_in(out);
    for (const char* name : {"null", "full", "fifo", "socket"})
      check_refused(convert(in, out / (std::string(name) + "." + extension)),
                    out / (std::string(name) + "." + extension), {"not a regular file"});
    CHECK(names_in(out) == before);
    CHECK(kind_of(null) == S_IFCHR);
    CHECK(kind_of(full) == S_IFCHR);
    CHECK(kind_of(out / ("null." + extension)) == S_IFLNK);
    CHECK(kind_of(out / ("fifo." + extension)) == S_IFIFO);
    CHECK(kind_of(out / ("socket." + extension)) == S_IFSOCK);
  }
  const fs::path out = empty_folder(dir / "out");
  REQUIRE(::mkfifo((out / "fifo.vox").c_str(), 0666) == 0);
  check_refused(
      run_quarry({"generate", "menger", "--size", "9", "-o", (out / "fifo.vox").string(), "--overwrite"}, {}, 30),
      out / "fifo.vox", {"not a regular file"});
  CHECK(kind_of(out / "fifo.vox") == S_IFIFO);
}

TEST_CASE("output: a sidecar's place that is a device or a FIFO is refused before anything is written") {
  const fs::path dir = scratch_dir("places-sidecar");
  const fs::path in = scene_in(dir), null = device(dir, "null", 3);
  if (null.empty()) return;
  for (const auto& [name, sidecar] : {std::pair("o.obj", "o.mtl"), std::pair("o.raw", "o.nhdr")})
    for (const bool fifo : {false, true}) {
      const fs::path out = empty_folder(dir / "out");
      if (fifo) REQUIRE(::mkfifo((out / sidecar).c_str(), 0666) == 0);
      else fs::create_symlink(null, out / sidecar);
      check_refused(convert(in, out / name), out / sidecar, {"not a regular file"});
      CHECK(names_in(out) == std::vector<std::string>{sidecar});
      CHECK(kind_of(out / sidecar) == (fifo ? S_IFIFO : S_IFLNK));
      CHECK(kind_of(null) == S_IFCHR);
    }
}

TEST_CASE("output: a picture is not put in the place of a device or a FIFO") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("places-picture");
  const fs::path in = scene_in(dir), out = empty_folder(dir / "out"), null = device(dir, "null", 3);
  if (null.empty()) return;
  fs::create_symlink(null, out / "null.png");
  REQUIRE(::mkfifo((out / "fifo.png").c_str(), 0666) == 0);
  for (const char* name : {"null.png", "fifo.png"})
    check_refused(
        run_quarry({"render", in.string(), "-o", (out / name).string(), "--size", "16x16", "--samples", "1"}, {}, 60),
        out / name, {"not a regular file"});
  CHECK(kind_of(out / "null.png") == S_IFLNK);
  CHECK(kind_of(null) == S_IFCHR);
  CHECK(names_in(out).size() == 2);
}

TEST_CASE("output: a report may go into a device, whose error is heard, and replaces nothing that is no report") {
  const fs::path dir = scratch_dir("places-report");
  const fs::path in = scene_in(dir), null = device(dir, "null", 3), full = device(dir, "full", 7);
  if (null.empty() || full.empty()) return;
  Outcome outcome = convert(in, dir / "o.vox", {"--overwrite", "--report", null.string()});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(kind_of(null) == S_IFCHR);
  outcome = convert(in, dir / "o.vox", {"--overwrite", "--report", full.string()});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "No space left"));
  CHECK(kind_of(full) == S_IFCHR);
  std::ofstream(dir / "precious.txt") << "precious";
  fs::copy_file(dir / "o.vox", dir / "other.vox");
  for (const char* name : {"precious.txt", "other.vox", "in9.quarry", "o.vox"}) {
    const std::string before = file_text(dir / name);
    check_refused(convert(in, dir / "o.vox", {"--overwrite", "--report", (dir / name).string()}), dir / name,
                  {"report"});
    CHECK(file_text(dir / name) == before);
  }
  fs::create_symlink("r.json", dir / "link.json");  // its target does not exist yet
  CHECK(convert(in, dir / "o.vox", {"--overwrite", "--report", (dir / "link.json").string()}).code == 0);
  CHECK(kind_of(dir / "link.json") == S_IFLNK);
  CHECK(json::parse(file_text(dir / "r.json"))["summary"]["converted"] == 1);
  CHECK(convert(in, dir / "o.vox", {"--overwrite", "--report", (dir / "r.json").string()}).code == 0);
  fs::create_symlink("loop.json", dir / "loop.json");
  check_refused(convert(in, dir / "o.vox", {"--overwrite", "--report", (dir / "loop.json").string()}),
                dir / "loop.json", {"circle", "symbolic links"});
}

TEST_CASE(
    "output: links are followed for every format, also to nothing, and stay; one that leads in a circle is refused") {
  const fs::path dir = scratch_dir("places-links");
  const fs::path in = scene_in(dir);
  for (const std::string& extension : extensions()) {
    const fs::path out = empty_folder(dir / "out"), elsewhere = empty_folder(dir / "elsewhere");
    const std::string name = "o." + extension;
    INFO(name);
    for (const char* more : {"", "--overwrite"}) {
      fs::remove(out / name);
      fs::remove_all(elsewhere);
      fs::create_directory(elsewhere);
      fs::create_symlink("../elsewhere/" + name, out / name);
      const Outcome made = convert(in, out / name, *more ? std::vector<std::string>{more} : std::vector<std::string>{});
      INFO(made.err);
      CHECK(made.code == 0);
      CHECK(kind_of(out / name) == S_IFLNK);
      CHECK(kind_of(elsewhere / name) == S_IFREG);
      fs::remove(out / "o.mtl"), fs::remove(out / "o.nhdr");
    }
    // Now it exists.
    std::ofstream(elsewhere / name) << "old";
    fs::permissions(elsewhere / name, fs::perms(0646));
    CHECK(convert(in, out / name, {}).code == 1);
    CHECK(file_text(elsewhere / name) == "old");
    const Outcome again = convert(in, out / name);
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(kind_of(out / name) == S_IFLNK);
    CHECK(file_text(elsewhere / name).size() > 20);
    CHECK(fs::status(elsewhere / name).permissions() == fs::perms(0646));
    fs::create_symlink("loop." + extension, out / ("loop." + extension));
    check_refused(convert(in, out / ("loop." + extension)), out / ("loop." + extension), {"circle", "symbolic links"});
    CHECK(kind_of(out / ("loop." + extension)) == S_IFLNK);
  }
}

TEST_CASE(
    "output: a name of 255 bytes is written in every format, of any letters, or refused with nothing left behind") {
  const fs::path dir = scratch_dir("places-names");
  const fs::path in = scene_in(dir);
  for (const std::string& extension : extensions())
    for (const std::string& letter : {std::string("n"), std::string("\xc3\xa9"), std::string("\xf0\x9f\xa7\xb1")}) {
      const fs::path out = empty_folder(dir / "out");
      std::string name;
      while (name.size() + letter.size() + 1 + extension.size() <= 255) name += letter;
      while (name.size() + 1 + extension.size() < 255) name += "x";
      name += "." + extension;
      REQUIRE(name.size() == 255);
      for (const char* more : {"", "--overwrite"}) {
        const Outcome made =
            convert(in, out / name, *more ? std::vector<std::string>{more} : std::vector<std::string>{});
        INFO(extension << ", letters of " << letter.size() << " bytes: " << made.err);
        if (extension == "raw") {  // its header's name would have 256 bytes
          CHECK(made.code == 1);
          CHECK(has(made.err, "too long"));
          CHECK(names_in(out).empty());
        } else {
          CHECK(made.code == 0);
          CHECK(fs::file_size(out / name) > 20);
          CHECK(names_in(out).size() == (extension == "obj" ? 2 : 1));
        }
      }
    }
}

TEST_CASE(
    "output: a file larger than ulimit -f allows is a message and no signal, for every format, and what was there "
    "stays") {
  if (!can_run({"prlimit", "--version"})) return skip("no prlimit to set a limit of a file's size");
  const fs::path dir = scratch_dir("places-limit");
  const fs::path in = scene_in(dir, "27");
  for (const std::string& extension : extensions()) {
    const fs::path out = empty_folder(dir / "out"), file = out / ("o." + extension);
    for (const bool old : {false, true}) {
      std::vector<std::string> before =
          old ? std::vector<std::string>{file.filename().string()} : std::vector<std::string>{};
      if (old) std::ofstream(file) << "old";
      const Outcome outcome = Process({"prlimit", "--fsize=64", quarry_program().string(), "convert", in.string(), "-o",
                                       file.string(), "--overwrite"})
                                  .finish(30);
      check_refused(outcome, file, {"File too large", "disk I/O error"});
      CHECK(names_in(out) == before);
      if (old) CHECK(file_text(file) == "old");
    }
  }
  const Outcome report =
      Process({"prlimit", "--fsize=64", quarry_program().string(), "convert", (dir / "absent.vox").string(), "-o",
               (dir / "o.vox").string(), "--report", (dir / "r.json").string()})
          .finish(30);
  CHECK(report.code == 1);
  CHECK(has(report.err, "File too large"));
  CHECK_FALSE(fs::exists(dir / "r.json"));
}

TEST_CASE("output: a folder that may not be written to is refused with its reason, for every format") {
  const fs::path dir = scratch_dir("places-readonly");
  const fs::path in = scene_in(dir), out = empty_folder(dir / "out");
  fs::permissions(in, fs::perms::others_read, fs::perm_options::add);
  const std::vector<std::string> words = as_nobody(dir);
  if (words == std::vector<std::string>{"cannot"})
    return skip("root may write everywhere, and the program cannot be run as somebody else here");
  for (const std::string& extension : extensions()) std::ofstream(out / ("old." + extension)) << "old";
  const auto before = names_in(out);
  fs::permissions(out, fs::perms(0555));
  for (const std::string& extension : extensions())
    for (const char* stem : {"old.", "new."}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {quarry_program().string(), "convert", in.string(), "-o",
                             (out / (stem + extension)).string(), "--overwrite"});
      check_refused(Process(all).finish(30), out / (stem + extension), {"Permission denied"});
    }
  CHECK(names_in(out) == before);
  for (const std::string& name : before) CHECK(file_text(out / name) == "old");
  fs::permissions(out, fs::perms(0755));
}

TEST_CASE("output: on a file system that is full or read-only every format says so and what was there stays") {
  const fs::path dir = scratch_dir("places-mounts");
  const fs::path in = scene_in(dir, "27");
  {
    const Mounted full(dir / "full", "size=64k");
    if (full.ok()) {
      {
        std::ofstream filler(dir / "full" / "filler");
        for (int i = 0; i < 70; ++i) filler << std::string(1024, 'x');
      }
      for (const std::string& extension : extensions()) {
        const fs::path file = dir / "full" / ("o." + extension);
        std::ofstream(file).close();  // an empty file takes no room
        const auto before = names_in(dir / "full");
        check_refused(convert(in, file), file, {"No space left", "full"});
        CHECK(names_in(dir / "full") == before);
        CHECK(fs::file_size(file) == 0);
        fs::remove(file);
      }
    }
  }
  const Mounted closed(dir / "closed", "size=64k,ro");
  if (closed.ok())
    for (const std::string& extension : extensions())
      check_refused(convert(in, dir / "closed" / ("o." + extension)), dir / "closed" / ("o." + extension),
                    {"Read-only file system"});
}

}  // namespace output_places_test
