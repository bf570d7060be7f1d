// SPDX-License-Identifier: Apache-2.0
// inputs_test.cpp - the files that words on a command line name: directories, patterns, lists, templates.
#include "app/console/inputs.hpp"

#include <unistd.h>

#include <glob.h>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/test_data.hpp"

namespace inputs_test {

using namespace quarry;
using namespace quarry::app;
namespace fs = std::filesystem;

namespace {

void touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "x";
}

// A tree with the difficult cases: hidden names, names with wildcards in them, other files, links.
fs::path tree() {
  fs::path dir = test::scratch_dir("inputs");
  for (const char* name : {"b.vox", "a.vox", "c.obj", "c.mtl", "notes.txt", "wall.png", ".hidden.vox", "sub/d.VOX",
                           "sub/deep/e.ply", "sub/deep/f.vox", ".git/g.vox", "odd[1].vox", "odd1.vox"})
    touch(dir / name);
  fs::create_directory_symlink(dir, dir / "sub" / "loop");
  return dir;
}

// The relative names that words yield in the tree.
std::vector<std::string> names(const fs::path& dir, std::vector<std::string> words) {
  for (std::string& word : words) word = (dir / word).string();
  const auto found = expand_inputs(words);
  if (!found) return {"error: " + found.error().message};
  std::vector<std::string> out;
  for (const Input& input : *found) {
    CHECK(fs::exists(input.file));
    out.push_back(input.relative.string());
  }
  return out;
}
using Names = std::vector<std::string>;
std::string list_word(const fs::path& list) { return std::string("@").append(list.string()); }

}  // namespace

TEST_CASE(
    "inputs: a directory stands for the files below it that can be read, sorted, without hidden ones and pictures") {
  const fs::path dir = tree();
  CHECK(names(dir, {"."}) ==
        Names{"a.vox", "b.vox", "c.obj", "odd1.vox", "odd[1].vox", "sub/d.VOX", "sub/deep/e.ply", "sub/deep/f.vox"});
  CHECK(names(dir, {"sub/deep"}) == Names{"e.ply", "f.vox"});
  fs::create_directory(dir / "none");
  CHECK(names(dir, {"none"})[0].find("no file in this directory") != std::string::npos);
}

TEST_CASE("inputs: a pattern matches what a shell's glob() matches, and ** any depth") {
  const fs::path dir = tree();
  for (const char* pattern :
       {"*.vox", "?.vox", "[ab].vox", "[!a].vox", ".*.vox", "sub/*/*.vox", "s*/d*/[ef].*", "*.png", "odd[[]1].vox"}) {
    glob_t found{};
    REQUIRE(glob((dir / pattern).c_str(), GLOB_NOSORT, nullptr, &found) == 0);
    std::vector<std::string> want;
    for (size_t i = 0; i < found.gl_pathc; ++i) want.push_back(found.gl_pathv[i]);
    globfree(&found);
    std::sort(want.begin(), want.end());
    const auto got = expand_inputs(std::vector<std::string>{(dir / pattern).string()});
    INFO(pattern);
    REQUIRE(got);
    Names files;
    for (const Input& input : *got) files.push_back(input.file.string());
    CHECK(files == want);
  }
  CHECK(names(dir, {"**/*.vox"}) == Names{"a.vox", "b.vox", "odd1.vox", "odd[1].vox", "sub/deep/f.vox"});
  CHECK(names(dir, {"sub/**/f.vox"}) == Names{"deep/f.vox"});
  CHECK(names(dir, {"**/deep/*"}) == Names{"sub/deep/e.ply", "sub/deep/f.vox"});
  CHECK(names(dir, {"su?"}) == Names{"sub/d.VOX", "sub/deep/e.ply", "sub/deep/f.vox"});  // a directory that matches
  CHECK(names(dir, {"sub/**"}) == Names{"d.VOX", "deep/e.ply", "deep/f.vox"});
  CHECK(names(dir, {"*.schem"})[0].find("no file matches") != std::string::npos);
  CHECK(names(dir, {"nowhere/*.vox"})[0].find("no file matches") != std::string::npos);
  CHECK(names(dir, {"*/../*.vox"})[0].find("'..'") != std::string::npos);
}

TEST_CASE("inputs: what is there is taken by its name, what is not is given on, and nothing comes twice") {
  const fs::path dir = tree();
  CHECK(names(dir, {"odd[1].vox"}) == Names{"odd[1].vox"});  // not the pattern that matches odd1.vox
  CHECK(names(dir, {"wall.png", "notes.txt"}) == Names{"wall.png", "notes.txt"});
  CHECK(names(dir, {"b.vox", "*.vox", "./a.vox", "sub/../b.vox"}) == Names{"b.vox", "a.vox", "odd1.vox", "odd[1].vox"});
  const auto absent = expand_inputs(std::vector<std::string>{"absent.vox"});
  REQUIRE(absent);
  CHECK(absent->at(0).file == "absent.vox");
}

TEST_CASE("inputs: a list has one word a line, of the same kinds as on the command line") {
  const fs::path dir = tree();
  std::ofstream(dir / "list.txt") << "# chosen\n"
                                  << (dir / "b.vox").string() << "\r\n\n"
                                  << (dir / "sub" / "**" / "*.vox").string() << "\n"
                                  << (dir / "gone.vox").string() << "\n";
  const auto found = expand_inputs(std::vector<std::string>{list_word(dir / "list.txt")});
  REQUIRE(found);
  REQUIRE(found->size() == 3);
  CHECK(found->at(1).relative == "deep/f.vox");
  CHECK(found->at(2).file == dir / "gone.vox");
  const auto none = expand_inputs(std::vector<std::string>{list_word(dir / "nolist")});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::not_found);
  std::ofstream(dir / "empty.txt") << "# nothing\n";
  CHECK_FALSE(expand_inputs(std::vector<std::string>{list_word(dir / "empty.txt")}));
  std::ofstream(dir / "bad.txt") << (dir / "*.litematic").string() << "\n";
  const auto bad = expand_inputs(std::vector<std::string>{list_word(dir / "bad.txt")});
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message.find("bad.txt: ") != std::string::npos);
}

TEST_CASE("fill_template: every placeholder, braces, and the nearest name for a wrong one") {
  const TemplateValues values{"houses/red/mill.old.vox", 7, 120, "roof"};
  CHECK(is_template("a{stem}"));
  CHECK_FALSE(is_template("a.vox"));
  CHECK(*fill_template("out/{dir}/{stem}.glb", values) == "out/houses/red/mill.old.glb");
  CHECK(*fill_template("{index}-{stem}-{part}.{ext}", values) == "007-mill.old-roof.vox");
  CHECK(*fill_template("{{{stem}}}", values) == "{mill.old}");
  CHECK(*fill_template("out/{dir}/{stem}.glb", {"mill", 1, 1, ""}) == "out/mill.glb");
  const auto wrong = fill_template("{stm}.glb", values);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("Did you mean 'stem'?") != std::string::npos);
  CHECK_FALSE(fill_template("{stem", values));
}

}  // namespace inputs_test
