// SPDX-License-Identifier: Apache-2.0
// tree_test.cpp - the promises of the source tree about itself: floors, names, documents. Reads the tree as text.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tree_test {

namespace {
namespace fs = std::filesystem;

struct SourceFile {
  std::string path;   // from the root, '/'-separated
  std::string floor;  // first part of the path
  std::string room;   // its folder
  std::string text;
};

const fs::path kRoot = QRY_SOURCE_DIR;
const std::vector<std::string> kFloors = {"app",    "assets",   "base",    "bench", "cmake", "docs",
                                          "engine", "hashgrid", "shaders", "tests", "voxel"};
const std::set<std::string> kSourceKinds = {".h", ".hpp", ".cuh", ".c", ".cpp", ".cu", ".glsl"};

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::vector<SourceFile>& sources() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> found;
    for (const std::string& floor : kFloors) {
      if (!fs::exists(kRoot / floor)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / floor)) {
        if (!entry.is_regular_file() ||
            (entry.path().extension() != ".md" && !kSourceKinds.count(entry.path().extension().string())))
          continue;
        const fs::path path = fs::relative(entry.path(), kRoot);
        found.push_back({path.generic_string(), floor, path.parent_path().generic_string(), read(entry.path())});
      }
    }
    for (const auto& entry : fs::directory_iterator(kRoot))
      if (entry.path().extension() == ".md")
        found.push_back({entry.path().filename().string(), "", "", read(entry.path())});
    std::sort(found.begin(), found.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return found;
  }();
  return files;
}

bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

std::vector<std::string> includes(const std::string& text) {
  static const std::regex pattern(R"re(^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"])re", std::regex::multiline);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}
bool is_source(const SourceFile& file) { return kSourceKinds.count(fs::path(file.path).extension().string()) == 1; }

// Room -> the rooms that it may include.
using Arrows = std::map<std::string, std::set<std::string>>;
Arrows arrows() {
  Arrows rooms;
  std::istringstream lines(read(kRoot / "cmake/rooms.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    std::istringstream below(line.substr(colon + 1));
    std::set<std::string>& mine = rooms[line.substr(0, colon)];
    for (std::string room; below >> room;) mine.insert(room);
  }
  return rooms;
}
}  // namespace

TEST_CASE("lint: the tree is there and is read") { REQUIRE(sources().size() > 30); }

TEST_CASE("lint: a room includes only the rooms that cmake/rooms.txt lists for it, each of which is there and used") {
  const Arrows rooms = arrows();
  REQUIRE(rooms.size() > 20);
  Arrows used;
  for (const SourceFile& file : sources()) {
    if (!is_source(file) || file.floor == "tests" || file.floor == "docs" || file.floor == "assets") continue;
    INFO(file.path);
    const auto mine = rooms.find(file.room);
    REQUIRE(mine != rooms.end());
    for (const std::string& include : includes(file.text)) {
      if (!fs::exists(kRoot / include)) continue;  // a library's header, or one made by the build
      const std::string room = fs::path(include).parent_path().generic_string();
      if (room == file.room) continue;
      INFO("includes " << include);
      CHECK(mine->second.count(room) == 1);
      used[file.room].insert(room);
    }
  }
  for (const auto& [room, below] : rooms)
    for (const std::string& other : below) {
      INFO(room << " -> " << other);
      CHECK(rooms.count(other) == 1);
      CHECK(used[room].count(other) == 1);
    }
}

TEST_CASE("lint: no room reaches itself through those it includes") {
  const Arrows rooms = arrows();
  for (const auto& [start, below] : rooms) {
    std::set<std::string> reached;
    std::vector<std::string> open(below.begin(), below.end());
    while (!open.empty()) {
      const std::string room = open.back();
      open.pop_back();
      if (!reached.insert(room).second) continue;
      const auto next = rooms.find(room);
      if (next != rooms.end()) open.insert(open.end(), next->second.begin(), next->second.end());
    }
    INFO(start);
    CHECK(reached.count(start) == 0);
  }
}

TEST_CASE("lint: a room has at most 20 files, two that cannot be parted 25") {
  const std::map<std::string, long> more = {
      {"voxel/io/quarry", 25},  // one format with its tables, journal and salvage
      {"voxel/voxelize", 25},   // stages that pass one job on, with two executors
  };
  std::map<std::string, long> files;
  for (const SourceFile& file : sources())
    if (is_source(file)) ++files[file.room];
  for (const auto& [room, count] : files) {
    INFO(room);
    CHECK(count <= (more.count(room) ? more.at(room) : 20));
  }
}

TEST_CASE("lint: no file repeats the name of its room") {
  for (const SourceFile& file : sources()) {
    if (!is_source(file)) continue;
    const std::string room = fs::path(file.room).filename().string(), stem = fs::path(file.path).filename().string();
    INFO(file.path);
    CHECK_FALSE((stem.rfind(room + "_", 0) == 0 || stem.rfind(room + ".", 0) == 0));
  }
}

TEST_CASE(
    "lint: only engine and app see Vulkan, and host engines of tests and a benchmark, only app sees windows, only .cu "
    "and .cuh files see CUDA") {
  for (const SourceFile& file : sources()) {
    if (ends_with(file.path, ".md")) continue;  // the plugin guide shows a host engine's code
    const bool cuda_file = ends_with(file.path, ".cu") || ends_with(file.path, ".cuh");
    for (const std::string& include : includes(file.text)) {
      INFO(file.path << " includes " << include);
      if (include.rfind("vulkan/", 0) == 0)
        CHECK((file.floor == "engine" || file.floor == "app" || file.floor == "tests" ||
               file.path.rfind("bench/engine_frames.", 0) == 0));
      if (include.rfind("GLFW/", 0) == 0 || include.rfind("imgui", 0) == 0)
        CHECK((file.floor == "app" || file.path.rfind("tests/app/", 0) == 0));
      // words.hpp includes <cuda/atomic> under __CUDACC__, because it is the one text that both compilers read.
      if (include.rfind("cuda", 0) == 0 && !cuda_file) CHECK(file.path == "hashgrid/table/words.hpp");
    }
  }
}

TEST_CASE("lint: worlds go over the bus in one place, which counts their bytes, and Vulkan's memory is mapped in one") {
  // hashgrid/, voxel/bricks and voxel/voxelize have arrays of callers and of their own, and no world's.
  static const std::regex copies("cuda(Memcpy|MallocManaged|HostRegister|HostGetDevicePointer)|cuMemcpy"),
      maps("vkMapMemory\\(");
  std::set<std::string> copying, mapping;
  for (const SourceFile& file : sources()) {
    const bool of_worlds = file.floor == "engine" || file.floor == "app" || file.path.rfind("voxel/device/", 0) == 0 ||
                           file.path.rfind("voxel/worlds/", 0) == 0 || file.path.rfind("voxel/rays/", 0) == 0;
    if (!of_worlds || ends_with(file.path, ".md")) continue;
    if (std::regex_search(file.text, copies)) copying.insert(file.path);
    if (std::regex_search(file.text, maps)) mapping.insert(file.path);
  }
  CHECK(copying == std::set<std::string>{"voxel/device/cuda.cu"});
  CHECK(mapping == std::set<std::string>{"engine/vulkan/device_memory.cpp"});
}

TEST_CASE("lint: no file is called utils, common, helper or manager") {
  static const std::regex bad("(^|[/_.])(utils?|common|helpers?|managers?)([_.]|$)", std::regex::icase);
  for (const SourceFile& file : sources()) {
    INFO(file.path);
    CHECK_FALSE(std::regex_search(file.path, bad));
  }
}

// The text without a shader's version line, which must come first.
std::string opening(const std::string& text) {
  return text.rfind("#version ", 0) == 0 ? text.substr(text.find('\n') + 1) : text;
}

TEST_CASE("lint: every header and source opens with a comment that says what it is, and headers are guarded") {
  for (const SourceFile& file : sources()) {
    if (!is_source(file)) continue;
    INFO(file.path);
    const std::string name = fs::path(file.path).filename().string(), start = opening(file.text);
    const bool slashes = start.rfind("// SPDX-License-Identifier: Apache-2.0\n// " + name + " - ", 0) == 0;
    const bool stars = start.rfind("/* SPDX-License-Identifier: Apache-2.0 */\n/* " + name + " - ", 0) == 0;
    CHECK((slashes || stars));
    const bool header = ends_with(file.path, ".h") || ends_with(file.path, ".hpp") || ends_with(file.path, ".cuh");
    if (header)
      CHECK((file.text.find("#pragma once") != std::string::npos || file.text.find("#ifndef") != std::string::npos));
  }
}

TEST_CASE("lint: no line of a source has more than 120 characters") {
  for (const SourceFile& file : sources()) {
    if (!is_source(file)) continue;
    size_t number = 1, characters = 0;
    for (const char c : file.text) {
      const bool begins_character = (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;  // of UTF-8
      if (c != '\n') characters += begins_character;
      if (c == '\n') {
        INFO(file.path << ", line " << number);
        CHECK(characters <= 120);
        ++number, characters = 0;
      }
    }
  }
}

TEST_CASE("lint: at most ten checks of clang-tidy are off, and at most 40 lines are exempt from others") {
  size_t off = 0, exempt = 0;
  for (const char* file : {".clang-tidy", "tests/.clang-tidy"}) {
    const std::string text = read(kRoot / file);
    const std::regex disabled(R"re([ ,]-(bugprone|performance|concurrency|misc)-[a-z])re");
    off += size_t(std::distance(std::sregex_iterator(text.begin(), text.end(), disabled), std::sregex_iterator()));
  }
  for (const SourceFile& file : sources())
    for (size_t at = 0; is_source(file) && file.path != "tests/lint/tree_test.cpp" &&
                        (at = file.text.find("NOLINT", at)) != std::string::npos;
         at += 6)
      ++exempt;
  CHECK(off > 0);
  CHECK(off <= 10);
  CHECK(exempt <= 40);
}

TEST_CASE("lint: every CMake file and script names its licence first") {
  std::vector<fs::path> files = {kRoot / "CMakeLists.txt", kRoot / "run", kRoot / ".ci/run"};
  for (const std::string& floor : kFloors) {
    if (!fs::exists(kRoot / floor)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / floor))
      if (entry.path().filename() == "CMakeLists.txt" || entry.path().extension() == ".cmake")
        files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    INFO(file);
    std::string text = read(file);
    if (text.rfind("#!", 0) == 0) text.erase(0, text.find('\n') + 1);
    CHECK(text.rfind("# SPDX-License-Identifier: Apache-2.0\n", 0) == 0);
  }
}

TEST_CASE("lint: every top-level folder has a README of at most 40 lines, hashgrid's proof excepted") {
  for (const std::string& floor : kFloors) {
    if (!fs::exists(kRoot / floor) || floor == "cmake") continue;
    const fs::path readme = kRoot / floor / "README.md";
    INFO(readme);
    REQUIRE(fs::exists(readme));
    const std::string text = read(readme);
    // hashgrid's README also draws the memory byte by byte, argues why the grid is lock-free, and names papers and
    // trials. Anyone who changes a line of the grid needs these in one place.
    CHECK(std::count(text.begin(), text.end(), '\n') <= (floor == "hashgrid" ? 140 : 40));
    CHECK(text.size() > 200);
  }
}

TEST_CASE("lint: every relative link in the documents leads to a file that is there") {
  static const std::regex link(R"(\]\(([^)#\s]+)(#[^)]*)?\))");
  for (const SourceFile& file : sources()) {
    if (!ends_with(file.path, ".md")) continue;
    for (auto it = std::sregex_iterator(file.text.begin(), file.text.end(), link); it != std::sregex_iterator(); ++it) {
      const std::string target = (*it)[1];
      if (target.find("://") != std::string::npos) continue;
      INFO(file.path << " links to " << target);
      CHECK(fs::exists((kRoot / file.path).parent_path() / target));
    }
  }
}

TEST_CASE("lint: every package in packages.txt has a kind and a reason, and none stands twice") {
  std::istringstream lines(read(kRoot / "packages.txt"));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, kind, reason;
    words >> name >> kind;
    std::getline(words, reason);
    INFO(line);
    CHECK(names.insert(name).second);
    CHECK((kind == "[build]" || kind == "[test]" || kind == "[optional]"));
    CHECK(reason.size() > 10);
  }
  CHECK(names.size() > 10);
}

}  // namespace tree_test
