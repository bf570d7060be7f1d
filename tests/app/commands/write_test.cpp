// SPDX-License-Identifier: Apache-2.0
// write_test.cpp - what a command may overwrite, what it must leave alone, and which files exist when it ends. The
// promise is the same for every format, report and picture, since all are written in one way
// (voxel/io/files/atomic_file.hpp). Full and failing disks are tested where calls can be made to fail.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/app/program_output.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/grids/vdb.hpp"

namespace write_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// An input. Different edges give different files.
fs::path make_model(const fs::path& file, uint8_t edge = 6) {
  std::vector<VoxBuilder::Voxel> voxels;
  for (uint8_t x = 0; x < edge; ++x)
    for (uint8_t z = 0; z <= x; ++z) voxels.push_back({x, uint8_t((x + z) % edge), z, uint8_t(1 + x % 200)});
  write_bytes(file, VoxBuilder().model(edge, edge, edge, voxels).bytes());
  return file;
}

std::vector<std::string> all_extensions() {
  std::vector<std::string> out{"quarry", "vox", "obj", "ply", "glb", "gltf", "png", "binvox", "raw", "nrrd"};
  if (kSanitized) return {"quarry", "vox", "obj", "png", "raw"};  // one file, two files, a folder
  if (!io::kVdbAbsent) out.insert(out.end(), {"vdb", "nvdb"});
  else skip(io::kVdbAbsent);
  return out;
}

Outcome convert(const fs::path& from, const fs::path& to, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"convert", from.string(), "-o", to.string()};
  words.insert(words.end(), more.begin(), more.end());
  return run_quarry(words);
}

mode_t mode_of(const fs::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? info.st_mode : 0;
}
ino_t inode_of(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

bool make_socket(const fs::path& file) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (file.string().size() >= sizeof name.sun_path) return false;
  std::strcpy(name.sun_path, file.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  if (fd >= 0) ::close(fd);
  return bound;
}

}  // namespace

TEST_CASE(
    "write: a device, FIFO or socket is never replaced, by no format, with --overwrite or through a link, and "
    "before any work") {
  const fs::path dir = scratch_dir("write-devices");
  const fs::path model = make_model(dir / "a.vox");
  std::vector<std::string> kinds{"fifo", "socket"};
  if (::geteuid() == 0) kinds.emplace_back("device");
  else skip("only root makes devices");
  for (const std::string& kind : kinds)
    for (const std::string& extension : all_extensions()) {
      const fs::path file = dir / (kind + "." + extension);
      if (kind == "fifo") REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
      else if (kind == "socket") REQUIRE(make_socket(file));
      else if (::mknod(file.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
        skip("no devices can be made here");
        break;
      }
      const mode_t before = mode_of(file);
      fs::create_symlink(file.filename(), dir / ("link-" + kind + "." + extension));
      for (const fs::path& name : {file, dir / ("link-" + kind + "." + extension)}) {
        const Outcome outcome = convert(model, name, {"--overwrite"});
        INFO(name << ": " << outcome.err);
        CHECK(outcome.code == 1);
        CHECK(has(outcome.err, "not a regular file"));
        CHECK(has(outcome.err, name.filename().string()));
        CHECK(mode_of(file) == before);
      }
    }
  const Outcome generated =
      run_quarry({"generate", "menger", "--size", "9", "-o", (dir / "fifo.vox").string(), "--overwrite"});
  CHECK(generated.code == 1);
  CHECK(S_ISFIFO(mode_of(dir / "fifo.vox")));
  // Its sidecar is not a file either.
  REQUIRE(::mkfifo((dir / "b.mtl").c_str(), 0600) == 0);
  CHECK(convert(model, dir / "b.obj", {"--overwrite"}).code == 1);
  CHECK(S_ISFIFO(mode_of(dir / "b.mtl")));
  CHECK_FALSE(fs::exists(dir / "b.obj"));
}

TEST_CASE("write: a rendered picture is not put in a FIFO's place") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("write-picture");
  const fs::path model = make_model(dir / "a.vox");
  REQUIRE(::mkfifo((dir / "p.png").c_str(), 0600) == 0);
  const Outcome outcome = run_quarry({"render", model.string(), "-o", (dir / "p.png").string(), "--size", "16x16"});
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "not a regular file"));
  CHECK(S_ISFIFO(mode_of(dir / "p.png")));
}

TEST_CASE("write: a link stays and its target is replaced, or made where there is none, by every format") {
  const fs::path dir = scratch_dir("write-links");
  const fs::path model = make_model(dir / "a.vox");
  fs::create_directories(dir / "far");
  fs::create_directory_symlink("far", dir / "near");
  for (const std::string& extension : all_extensions()) {
    const fs::path link = dir / ("l." + extension), target = dir / "far" / ("t." + extension);
    // The link is relative, and leads through another link.
    fs::create_symlink(fs::path("near") / ".." / "far" / target.filename(), link);
    for (const bool there : {false, true}) {
      const ino_t before = inode_of(target);
      const Outcome outcome =
          convert(model, link, there ? std::vector<std::string>{"--overwrite"} : std::vector<std::string>{});
      INFO(extension << ": " << outcome.err);
      CHECK(outcome.code == 0);
      CHECK(fs::is_symlink(link));
      CHECK(fs::is_regular_file(fs::symlink_status(target)));
      CHECK(fs::file_size(target) > 0);
      CHECK(inode_of(target) != before);
    }
    CHECK(convert(model, link).code == 1);  // without --overwrite
  }
  fs::create_symlink("round.vox", dir / "again.vox");
  fs::create_symlink("again.vox", dir / "round.vox");
  const Outcome round = convert(model, dir / "round.vox", {"--overwrite"});
  CHECK(round.code == 1);
  CHECK(has(round.err, "circle"));
  CHECK(fs::is_symlink(dir / "round.vox"));
  fs::create_symlink("absent/x.vox", dir / "nowhere.vox");
  const Outcome nowhere = convert(model, dir / "nowhere.vox");
  CHECK(nowhere.code == 1);
  CHECK(has(nowhere.err, "there is no directory"));
}

TEST_CASE("write: what is overwritten keeps its mode to the bit, and a new file has what the umask leaves") {
  const fs::path dir = scratch_dir("write-mode");
  const fs::path model = make_model(dir / "a.vox");
  for (const std::string& extension : all_extensions()) {
    const fs::path file = dir / ("o." + extension);
    const mode_t mask = ::umask(027);
    const Outcome first = convert(model, file);
    INFO(extension << ": " << first.err);
    CHECK(first.code == 0);
    CHECK((mode_of(file) & 07777) == 0640);
    for (const mode_t mode : {mode_t(0666), mode_t(0604), mode_t(0777)}) {
      REQUIRE(::chmod(file.c_str(), mode) == 0);
      CHECK(convert(model, file, {"--overwrite"}).code == 0);
      CHECK((mode_of(file) & 07777) == mode);
    }
    ::umask(mask);
  }
}

TEST_CASE(
    "write: names as long as the file system takes them can be written, in every format, and nothing is left beside "
    "them") {
  const fs::path dir = scratch_dir("write-long");
  const fs::path model = make_model(dir / "a.vox");
  for (const std::string& extension : all_extensions()) {
    // Letters of two bytes, so that the name is cut within a letter.
    std::string name;
    while (name.size() + 2 + extension.size() + 1 <= 255) name += "\xc3\xa9";
    if (name.size() + extension.size() + 1 < 255) name += "x";
    name += "." + extension;
    REQUIRE(name.size() == 255);
    const fs::path file = dir / name;
    const Outcome outcome = convert(model, file);
    INFO(extension << ": " << outcome.err);
    if (extension == "raw") {  // its header's name is one byte longer
      CHECK(outcome.code == 1);
      continue;
    }
    CHECK(outcome.code == 0);
    CHECK(fs::exists(file));
    CHECK(convert(model, file, {"--overwrite"}).code == 0);
  }
  for (const std::string& left : names_in(dir)) CHECK_FALSE(left.starts_with("."));
}

TEST_CASE("write: a sidecar that is there is not replaced without --overwrite, nor is it written without its file") {
  const fs::path dir = scratch_dir("write-companions");
  const fs::path model = make_model(dir / "a.vox");
  for (const auto& [main, sidecar] : {std::pair("o.obj", "o.mtl"), std::pair("v.raw", "v.nhdr")}) {
    REQUIRE(convert(model, dir / main).code == 0);
    const std::string before = file_text(dir / sidecar);
    fs::remove(dir / main);
    const Outcome refused = convert(model, dir / main);
    INFO(refused.err);
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "is there already"));
    CHECK(has(refused.err, sidecar));
    CHECK_FALSE(fs::exists(dir / main));
    CHECK(convert(model, dir / main, {"--overwrite"}).code == 0);
    CHECK(file_text(dir / sidecar) == before);
  }
  // The main file cannot get its name, because a folder took it meanwhile. No file of the set remains.
  CHECK(names_in(dir) == std::vector<std::string>{"a.vox", "o.mtl", "o.obj", "v.nhdr", "v.raw"});
  // An input's header is an input, too.
  CHECK(convert(dir / "v.nhdr", dir / "v.raw", {"--overwrite"}).code == 1);
}

TEST_CASE("write: of two that write one name at once, one writes it and the other says that it is there") {
  const fs::path dir = scratch_dir("write-two");
  const fs::path one = small_world(dir / "one.quarry"), other = make_model(dir / "other.vox", 40);
  for (const std::string extension : {"quarry", "vox", "obj", "glb", "nrrd"})
    for (int round = 0; round < 4; ++round) {
      const fs::path folder = dir / (extension + std::to_string(round));
      fs::create_directory(folder);
      const fs::path file = folder / ("t." + extension);
      const std::string program = quarry_program().string();
      Process first({program, "convert", one.string(), "-o", file.string()}),
          second({program, "convert", other.string(), "-o", file.string()});
      const Outcome a = first.finish(60), b = second.finish(60);
      INFO(extension << "\n" << a.err << b.err);
      CHECK(a.code + b.code == 1);
      CHECK(has(a.code ? a.err : b.err, "is there already"));
      // Written alone under the same name, because some files contain it.
      const fs::path alone = folder / "alone" / file.filename();
      fs::create_directory(alone.parent_path());
      REQUIRE(convert(a.code ? other : one, alone).code == 0);
      CHECK((file_bytes(file) == file_bytes(alone)));
    }
}

TEST_CASE("write: a report replaces a report or an empty file, and nothing else") {
  const fs::path dir = scratch_dir("write-report");
  const fs::path model = make_model(dir / "a.vox");
  const auto with_report = [&](const fs::path& report, const fs::path& out, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--report", report.string()});
    return convert(model, out, std::move(more));
  };
  REQUIRE(with_report(dir / "r.json", dir / "1.vox").code == 0);
  const json first = json::parse(file_text(dir / "r.json"));
  CHECK(first["quarry_report"] == "convert");
  CHECK(first["files"].size() == 1);
  REQUIRE(with_report(dir / "r.json", dir / "2.vox").code == 0);
  CHECK(json::parse(file_text(dir / "r.json"))["files"][0]["outputs"][0] == (dir / "2.vox").string());
  std::ofstream(dir / "empty.json").flush();
  CHECK(with_report(dir / "empty.json", dir / "3.vox").code == 0);
  // A report as version 0.1 wrote it.
  std::ofstream(dir / "old.json") << R"({"files": [], "summary": {"event": "summary", "inputs": 0}})";
  CHECK(with_report(dir / "old.json", dir / "4.vox").code == 0);

  // Any other file belongs to the user. With or without --overwrite it stays, and nothing is converted then.
  std::ofstream(dir / "notes.txt") << "precious";
  std::ofstream(dir / "other.json") << R"({"files": []})";
  for (const char* name : {"notes.txt", "other.json"})
    for (const bool overwrite : {false, true}) {
      const std::string before = file_text(dir / name);
      const Outcome outcome = with_report(
          dir / name, dir / "5.vox", overwrite ? std::vector<std::string>{"--overwrite"} : std::vector<std::string>{});
      INFO(outcome.err);
      CHECK(outcome.code == 1);
      CHECK(has(outcome.err, "no report"));
      CHECK(file_text(dir / name) == before);
      CHECK_FALSE(fs::exists(dir / "5.vox"));
    }
  // The report is refused if it is an input, an output or a sidecar of one, under any name.
  fs::create_hard_link(model, dir / "hard.json");
  fs::create_symlink("a.vox", dir / "soft.json");
  fs::create_symlink("6.obj", dir / "dangling.json");
  const std::vector<uint8_t> before = file_bytes(model);
  for (const fs::path& report : {model, dir / "." / "a.vox", dir / "hard.json", dir / "soft.json", dir / "6.obj",
                                 dir / "6.mtl", dir / "dangling.json"}) {
    const Outcome outcome = with_report(report, dir / "6.obj");
    INFO(report << ": " << outcome.err);
    CHECK(outcome.code == 1);
    CHECK(file_bytes(model) == before);
    CHECK_FALSE(fs::exists(dir / "6.obj"));
  }
}

TEST_CASE(
    "write: a report goes into a device, a FIFO that is read and the program's own streams, which stay what they are") {
  const fs::path dir = scratch_dir("write-report-stream");
  const fs::path model = make_model(dir / "a.vox");
  const Outcome spoken = convert(model, dir / "1.vox", {"--report", "/dev/stderr"});
  CHECK(spoken.code == 0);
  CHECK(has(spoken.err, "\"quarry_report\""));
  CHECK(S_ISLNK(mode_of("/dev/stderr")));
  // The test does not use the system's own /dev/null: a program that broke this promise would remove it for everybody.
  if (::geteuid() == 0 && ::mknod((dir / "null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    CHECK(convert(model, dir / "2.vox", {"--report", (dir / "null").string()}).code == 0);
    CHECK(S_ISCHR(mode_of(dir / "null")));
  } else {
    skip("only root makes devices");
  }

  const fs::path fifo = dir / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const Outcome unread = convert(model, dir / "3.vox", {"--report", fifo.string()});
  CHECK(unread.code == 1);
  CHECK(has(unread.err, "nobody reads"));
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(convert(model, dir / "4.vox", {"--report", fifo.string()}).code == 0);
  char text[4096] = {};
  CHECK(::read(reader, text, sizeof text - 1) > 0);
  CHECK(has(text, "\"quarry_report\""));
  ::close(reader);
  CHECK(S_ISFIFO(mode_of(fifo)));
  REQUIRE(make_socket(dir / "s"));
  CHECK(convert(model, dir / "5.vox", {"--report", (dir / "s").string()}).code == 1);
  CHECK(S_ISSOCK(mode_of(dir / "s")));
}

TEST_CASE("write: a line end in a name begins no line of a file that is written") {
  const fs::path dir = scratch_dir("write-line-end");
  const fs::path model = make_model(dir / "a.vox");
  const fs::path file = dir / "two\nv 9 9 9\x7f.obj";
  REQUIRE(convert(model, file).code == 0);
  CHECK(fs::exists(dir / "two_v 9 9 9_.mtl"));
  std::istringstream lines(file_text(file));
  size_t libraries = 0;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line != "v 9 9 9\x7f.mtl");
    CHECK(line != "v 9 9 9\x7f");
    if (line.starts_with("mtllib ")) {
      ++libraries;
      CHECK(line == "mtllib two_v 9 9 9_.mtl");
    }
    if (line.starts_with("o ")) CHECK(line == "o two_v 9 9 9_");
  }
  CHECK(libraries == 1);
  CHECK(run_quarry({"info", file.string()}).code == 0);
  const Outcome raw = convert(model, dir / "two\nlines.raw");
  CHECK(raw.code == 1);
  CHECK(has(raw.err, "control character"));
  CHECK(convert(model, dir / "two\nlines.nrrd").code == 0);
}

TEST_CASE("write: layers of pictures do not replace what has their folder's name") {
  const fs::path dir = scratch_dir("write-slices");
  const fs::path model = make_model(dir / "a.vox");
  fs::create_symlink("absent", dir / "dangling");
  std::ofstream(dir / "file") << "mine";
  fs::create_directory(dir / "folder");
  for (const char* name : {"dangling", "file", "folder"}) {
    const Outcome outcome = convert(model, dir / name, {"--slices", "--overwrite"});
    INFO(outcome.err);
    CHECK(outcome.code == 1);
  }
  CHECK(fs::is_symlink(dir / "dangling"));
  CHECK(file_text(dir / "file") == "mine");
  CHECK(fs::is_empty(dir / "folder"));
  CHECK(convert(model, dir / "layers", {"--slices"}).code == 0);
  CHECK(names_in(dir / "layers").size() == 6);
}

TEST_CASE("write: --resume believes what was on disk, and what was not only until the machine is started anew") {
  const fs::path dir = scratch_dir("write-resume");
  fs::create_directory(dir / "in");
  for (uint8_t i = 0; i < 3; ++i) make_model(dir / "in" / ("m" + std::to_string(i) + ".vox"), uint8_t(4 + i));
  const std::vector<std::string> words{"convert", (dir / "in").string(), "-o", (dir / "out").string(), "--to", "ply",
                                       "--resume"};
  REQUIRE(run_quarry(words).code == 0);
  const fs::path manifest = dir / "out" / ".quarry-resume";
  const auto last_line = [](const std::string& text) { return text.rfind('\n', text.size() - 2) + 1; };
  const std::string whole = file_text(manifest);
  const size_t last = last_line(whole);
  CHECK(json::parse(whole.substr(last))["settled"] == true);
  const auto skipped = [&](const std::string& text) {
    std::ofstream(manifest, std::ios::binary) << text;
    std::vector<std::string> more = words;
    more.emplace_back("--json");
    const Outcome outcome = run_quarry(more);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return events(outcome.out).back()["skipped"].get<int>();
  };
  CHECK(skipped(whole) == 3);
  const std::string killed = whole.substr(0, last);  // before the last line
  CHECK(skipped(killed) == 3);
  std::string rebooted = killed;
  const std::string start = "\"start\":\"";
  for (size_t at = rebooted.find(start); at != std::string::npos; at = rebooted.find(start, at + 1)) {
    char& digit = rebooted[at + start.size()];
    digit = digit == '0' ? '1' : '0';
  }
  CHECK(skipped(rebooted) == 0);
  // These were written again. The last line says that the disk refused them.
  const std::string anew = file_text(manifest);
  CHECK(skipped(anew) == 3);
  json refused = json::parse(anew.substr(last_line(anew)));
  refused["settled"] = false;
  CHECK(skipped(anew.substr(0, last_line(anew)) + refused.dump() + "\n") == 0);
  // A line that was cut off costs its own job, not the next one.
  const std::string again = file_text(manifest);
  CHECK(skipped(again.substr(0, again.size() - 20)) == 3);
  const std::string repaired = file_text(manifest);
  CHECK(json::parse(repaired.substr(last_line(repaired)))["settled"] == true);
}

TEST_CASE(
    "write: a pair of which a killed program had replaced only the sidecar is named by the next run, and put right") {
  const fs::path dir = scratch_dir("write-pair");
  const fs::path model = make_model(dir / "a.vox");
  REQUIRE(convert(model, dir / "o.obj").code == 0);
  const std::string old_materials = file_text(dir / "o.mtl");
  // The state after a kill between the two names; see voxel/io/files/sidecar_marker.hpp.
  const auto boot = [&] {
    REQUIRE(convert(model, dir / "probe.vox", {"--resume"}).code == 0);
    std::istringstream lines(file_text(dir / ".quarry-resume"));
    std::string line;
    std::getline(lines, line);
    return json::parse(line)["start"].get<std::string>();
  }();
  const auto leave_mark = [&](bool kept) {
    const fs::path keeper = dir / (".o.mtl.kept-" + boot + "-1-1");
    if (kept) fs::rename(dir / "o.mtl", keeper);
    std::ofstream(dir / "o.mtl") << "# Quarry materials\nnewmtl newer\n";
    const auto field = [](const std::string& text) { return text + std::string(1, '\0'); };
    std::ofstream(dir / (".o.obj.set-" + boot + "-1-2"), std::ios::binary)
        << field("quarry companion mark 1") + field((dir / "o.mtl").string()) + field(keeper.string()) +
               field((dir / "o.obj").string()) + field(std::to_string(inode_of(dir / "o.mtl"))) + field("1");
  };
  leave_mark(true);
  const Outcome next = convert(model, dir / "next.vox");
  INFO(next.err);
  CHECK(next.code == 0);
  CHECK(has(next.err, "o.mtl was of a newer writing than o.obj"));
  CHECK(file_text(dir / "o.mtl") == old_materials);
  fs::remove(dir / "o.obj");
  fs::remove(dir / "o.mtl");
  leave_mark(false);
  const Outcome alone = convert(model, dir / "o.obj");
  INFO(alone.err);
  CHECK(alone.code == 0);
  CHECK(has(alone.err, "o.mtl was there without its o.obj"));
  CHECK(file_text(dir / "o.mtl") == old_materials);
  for (const std::string& left : names_in(dir)) CHECK((left == ".quarry-resume" || !left.starts_with(".")));
}

}  // namespace write_test
