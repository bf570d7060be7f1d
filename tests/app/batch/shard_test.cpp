// SPDX-License-Identifier: Apache-2.0
// shard_test.cpp - a batch divided among processes that know nothing of each other (`quarry convert --shard`), and the
// manifest of what they did. The reference is one run over all inputs.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/formats.hpp"

namespace shard_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::vector<uint8_t> model(uint8_t seed, uint8_t edge) {
  std::vector<VoxBuilder::Voxel> voxels;
  for (uint8_t x = 0; x < edge; ++x)
    for (uint8_t z = 0; z <= x; ++z)
      voxels.push_back({x, uint8_t((x + seed) % edge), z, uint8_t(1 + (x + seed) % 200)});
  return VoxBuilder().model(edge, edge, edge, voxels).bytes();
}
void make_models(const fs::path& folder, int count, uint8_t edge = 8) {
  fs::create_directories(folder / "sub");
  for (int i = 0; i < count; ++i)
    write_bytes(folder / (i % 2 ? "sub" : ".") / (std::to_string(100 + i) + ".vox"), model(uint8_t(i), edge));
}

// All files below a folder, without what --resume remembers and the parts of manifests.
std::map<std::string, std::string> tree(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_regular_file() && !has(name, "-of-") && name != ".quarry-resume") out[name] = file_text(entry.path());
  }
  return out;
}

// A batch of models. Its outputs go where `out` says, its manifest beside them.
struct Batch {
  fs::path in, out;
  std::vector<std::string> more{};
  std::vector<std::string> words(const std::string& shard = {}) const {
    std::vector<std::string> list{"convert", in.string(), "-o",         out.string(),       "--to",
                                  "quarry",  "--resume",  "--manifest", manifest().string()};
    if (!shard.empty()) list.insert(list.end(), {"--shard", shard});
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  Outcome run(const std::string& shard = {}) const { return run_quarry(words(shard)); }
  fs::path manifest() const { return out / "done.json"; }
};

std::string checksum(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

ino_t inode(const fs::path& file) {
  struct stat info {};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  return info.st_ino;
}

}  // namespace

TEST_CASE(
    "shard: xargs runs four shards side by side into a folder among the inputs, and all bytes are those of one run") {
  const fs::path dir = scratch_dir("shard-xargs");
  for (const char* name : {"whole", "parts"}) {
    make_models(dir / name, 24);
    std::ofstream(dir / name / "sub" / "bad.vox") << "VOX ";
  }
  const Batch whole{dir / "whole", dir / "whole" / "out", {"--keep-going"}},
      parts{dir / "parts", dir / "parts" / "out", {"--keep-going"}};
  CHECK(whole.run().code == 3);
  std::string line = quarry_program().string();
  for (const std::string& word : parts.words("{}/4")) line += " '" + word + "'";
  // xargs says 123 if any of its commands failed: the shard with the bad file ended with 3.
  const Outcome outcome = Process({"sh", "-c", "seq 4 | xargs -P 4 -I{} " + line}).finish(60);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 123);
  auto one = tree(whole.out), four = tree(parts.out);
  CHECK(one.size() == 25);
  CHECK(one == four);
  CHECK(has(one["done.json"], "\"error\":\"malformed_input\""));
  CHECK(has(outcome.out, "joined from 4 parts"));
  // The outputs are no inputs of a run that comes later, whatever their number.
  CHECK(parts.run("2/4").code % 3 == 0);
  CHECK(tree(parts.out) == one);
  CHECK_FALSE(fs::exists(parts.out / "out"));
}

TEST_CASE("shard: two of four tasks killed in the middle and begun again give the same bytes as one run") {
  const fs::path dir = scratch_dir("shard-killed");
  make_models(dir / "in", 48, 100);
  const Batch whole{dir / "in", dir / "whole"}, parts{dir / "in", dir / "parts", {"-j", "1", "--json"}};
  REQUIRE(whole.run().code == 0);
  const auto start = [&](int shard) {
    std::vector<std::string> words = parts.words(std::to_string(shard) + "/4");
    words.insert(words.begin(), quarry_program().string());
    return std::make_unique<Process>(words);
  };
  const auto first = start(1), last = start(4);
  for (const int shard : {2, 3}) {
    // A task that was too fast for this is one more chance.
    int code = 0;
    for (int chance = 0; chance < 10 && code != 128 + SIGKILL; ++chance) {
      fs::remove(parts.out / (".quarry-resume-" + std::to_string(shard) + "-of-4"));
      const auto task = start(shard);
      REQUIRE(task->wait_for_output("\"finished\"", 30));
      task->signal(SIGKILL);
      code = task->finish(30).code;
    }
    CHECK(code == 128 + SIGKILL);
  }
  CHECK(first->finish(60).code == 0);
  CHECK(last->finish(60).code == 0);
  CHECK_FALSE(fs::exists(parts.manifest()));
  for (const char* part : {"done.2-of-4.json", "done.3-of-4.json"}) CHECK_FALSE(fs::exists(parts.out / part));
  int skipped = 0;
  for (const char* shard : {"2/4", "3/4"}) {
    const Outcome again = parts.run(shard);
    INFO(again.out << again.err);
    CHECK(again.code == 0);
    skipped += events(again.out).back()["skipped"].get<int>();
  }
  CHECK(skipped > 0);  // what was done before the kill is not done again
  const auto one = tree(whole.out), four = tree(parts.out);
  CHECK(one.size() == 49);
  CHECK(one == four);
}

TEST_CASE(
    "manifest: it has size and checksum of every input and output, with what belongs to it, and nothing of the "
    "machine") {
  const fs::path dir = scratch_dir("manifest-facts");
  make_models(dir / "in", 2);
  const auto run = [&](const char* out, const std::vector<std::string>& more) {
    std::vector<std::string> words{"convert", (dir / "in").string(), "--manifest", (dir / out / "m.json").string()};
    fs::create_directories(dir / out);
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(file_text(dir / out / "m.json"));
  };
  const std::vector<std::string> kinds[] = {
      {"--to", "obj"}, {"--to", "raw"}, {"--slices"}, {"--to", "ply", "--lod-levels", "2"}};
  for (std::vector<std::string> kind : kinds) {
    INFO(kind.back());
    const bool slices = kind[0] == "--slices";
    kind.insert(kind.end(), {"-o", slices ? (dir / kind.back() / "{stem}").string() : (dir / kind.back()).string()});
    const json manifest = run(kind[kind.size() - 3].c_str(), kind);
    const fs::path out = dir / kind[kind.size() - 3];
    std::map<std::string, std::string> named;
    CHECK(manifest["jobs"] == 2);
    for (const json& job : manifest["files"]) {
      for (const json& file : job["outputs"]) {
        const std::string name = file["file"], bytes = file_text(out / name);
        named[name] = bytes;
        CHECK(file["bytes"] == bytes.size());
        CHECK(file["xxh128"] == checksum(bytes));
      }
      const json& input = job["inputs"].at(0);
      CHECK(input["xxh128"] == checksum(file_text(dir / "in" / input["file"].get<std::string>())));
    }
    auto there = tree(out);
    there.erase("m.json");
    CHECK(named == there);
    CHECK_FALSE(has(file_text(out / "m.json"), dir.string()));
    fs::remove_all(out);
  }
}

TEST_CASE("manifest: an output whose bytes have changed, though not its size and time, is made again") {
  const fs::path dir = scratch_dir("manifest-rot");
  make_models(dir / "in", 3);
  const Batch batch{dir / "in", dir / "out", {"--json"}};
  REQUIRE(batch.run().code == 0);
  const auto before = tree(batch.out);
  const fs::path rotten = batch.out / "100.quarry";
  const auto time = fs::last_write_time(rotten);
  std::string bytes = file_text(rotten);
  bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(rotten, std::ios::binary) << bytes;
  fs::last_write_time(rotten, time);
  const Outcome again = batch.run();
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(events(again.out).back()["converted"] == 1);
  CHECK(has(again.out, "are not those that were written"));
  CHECK(tree(batch.out) == before);
  CHECK(events(batch.run().out).back()["skipped"] == 3);
}

TEST_CASE(
    "convert: with --resume an output that a kill left unnoted is kept if its bytes are right, and nothing else is "
    "touched") {
  const fs::path dir = scratch_dir("resume-unnoted");
  make_models(dir / "in", 1);
  std::vector<std::vector<std::string>> kinds{
      {"glb"}, {"obj"}, {"raw"}, {"quarry"}, {"quarry", "--split", "models"}, {"ply", "--lod-levels", "1"}};
  if (const auto vdb = io::format_for_writing("a.vdb"); vdb && (*vdb)->absent == nullptr) kinds.push_back({"vdb"});
  for (const auto& kind : kinds) {
    const fs::path out = dir / (kind[0] + std::to_string(kind.size()));
    INFO(out);
    std::vector<std::string> words{"convert", (dir / "in").string(), "-o", out.string(), "--resume", "--to"};
    words.insert(words.end(), kind.begin(), kind.end());
    REQUIRE(run_quarry(words).code == 0);
    const auto before = tree(out);
    std::map<std::string, ino_t> inodes;
    for (const auto& [name, bytes] : before) inodes[name] = inode(out / name);
    fs::remove(out / ".quarry-resume");
    const Outcome again = run_quarry(words);
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(tree(out) == before);
    for (const auto& [name, number] : inodes) CHECK(inode(out / name) == number);
    words.emplace_back("--json");
    CHECK(events(run_quarry(words).out).back()["skipped"] == 1);
    // One byte more, and it is somebody else's.
    fs::remove(out / ".quarry-resume");
    std::ofstream(out / before.begin()->first, std::ios::app) << "!";
    const auto foreign = tree(out);
    const Outcome refused = run_quarry(words);
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "with other bytes; give --overwrite"));
    CHECK(tree(out) == foreign);
  }
  // A world with a log beside it has been edited, whatever its own bytes are.
  const fs::path out = dir / "quarry1";
  const std::vector<std::string> words{"convert", (dir / "in/100.vox").string(), "-o", (out / "e.quarry").string(),
                                       "--resume"};
  REQUIRE(run_quarry(words).code == 0);
  fs::remove(out / ".quarry-resume");
  std::ofstream(out / "e.quarry-wal") << std::string(5000, 'x');
  const Outcome refused = run_quarry(words);
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "edits beside it"));
  CHECK(fs::file_size(out / "e.quarry-wal") == 5000);
}

TEST_CASE("shard: another number of shards skips what is done, and of two lines about an output the true one counts") {
  const fs::path dir = scratch_dir("shard-again");
  make_models(dir / "in", 6);
  const auto counts = [&](const std::string& shard) {
    std::vector<std::string> words{
        "convert", (dir / "in").string(), "-o", (dir / "out").string(), "--to", "ply", "--resume", "--json"};
    if (!shard.empty()) words.insert(words.end(), {"--shard", shard});
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    const json last = events(outcome.out).back();
    return std::pair(last["converted"].get<int>(), last["skipped"].get<int>());
  };
  CHECK(counts("1/2").first + counts("2/2").first == 6);
  CHECK(counts("") == std::pair(0, 6));
  write_bytes(dir / "in/100.vox", model(77, 8));
  CHECK(counts("") == std::pair(1, 5));
  // The shard's older line about that output comes later in the order of names.
  CHECK(counts("") == std::pair(0, 6));
  CHECK(counts("1/3").second + counts("2/3").second + counts("3/3").second == 6);
}

TEST_CASE(
    "shard: wrong shards, parts that do not fit together, and places that are taken are refused with what to do") {
  const fs::path dir = scratch_dir("shard-wrong");
  make_models(dir / "in", 8);
  const Batch batch{dir / "in", dir / "out"};
  for (const char* wrong : {"0/4", "5/4", "x/y", "1", "1/0", "-1/4", "1/4/2", "1/4x", " 1/4", "99999999999/4"}) {
    const Outcome outcome = batch.run(wrong);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, std::string("--shard '") + wrong + "' is not I/N with I from 1 to N"));
  }
  CHECK_FALSE(fs::exists(batch.out));
  const auto merge = [&] { return run_quarry({"convert", "--merge-manifest", batch.manifest().string()}); };
  fs::create_directory(batch.out);
  Outcome outcome = merge();
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "no part of it is there (done.1-of-2.json)"));

  REQUIRE(batch.run("1/3").code == 0);
  outcome = merge();
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "2 of 3 parts are not there: 2/3, 3/3; run those shards"));
  outcome = batch.run("1/4");  // another division, whose parts would never be a whole
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "done.1-of-3.json is part of a division into 3 shards, not 4; take the old parts away"));
  REQUIRE(batch.run("2/3").code == 0);
  REQUIRE(batch.run("3/3").code == 0);
  const std::string joined = file_text(batch.manifest());
  fs::remove(batch.manifest());
  CHECK(merge().code == 0);
  CHECK(file_text(batch.manifest()) == joined);

  // Inputs that changed between shards.
  write_bytes(dir / "in/new.vox", model(90, 8));
  outcome = batch.run("2/3");
  CHECK(outcome.code == 0);
  CHECK(has(outcome.err, "is not joined: "));
  CHECK(has(outcome.err, "are of 8 and 9 inputs; run the shards of both again"));
  CHECK_FALSE(fs::exists(batch.manifest()));
  CHECK(merge().code == 1);
  fs::rename(dir / "in/new.vox", dir / "in/other.vox");
  CHECK(batch.run("1/3").code == 0);
  outcome = merge();
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "are of inputs with different names"));
  for (const char* shard : {"1/3", "2/3", "3/3"}) CHECK(batch.run(shard).code == 0);
  CHECK(merge().code == 0);
  CHECK(json::parse(file_text(batch.manifest()))["files"].size() == 9);
  Batch other = batch;
  other.more = {"--mirror", "x"};
  outcome = other.run("1/3");
  CHECK(outcome.code == 0);
  CHECK(has(outcome.err, "have different options"));

  // A damaged part: cut short anywhere, or with a line of another.
  const fs::path part = batch.out / "done.2-of-3.json";
  REQUIRE(batch.run("1/3").code == 0);
  const std::string good = file_text(part);
  for (const size_t at : {size_t(0), size_t(30), good.find('\n') + 1, good.size() / 2, good.size() - 3}) {
    std::ofstream(part, std::ios::binary) << good.substr(0, at);
    outcome = merge();
    INFO(at << outcome.err);
    CHECK(outcome.code == 1);
    CHECK(has(outcome.err, "done.2-of-3.json"));
  }
  std::ofstream(part, std::ios::binary) << file_text(batch.out / "done.1-of-3.json");
  CHECK(has(merge().err, "what it says of its shard is not what its name says"));
  std::ofstream(part, std::ios::binary) << good;

  // A place that is something else's.
  fs::remove(batch.manifest());
  std::ofstream(batch.manifest()) << "precious";
  CHECK(has(merge().err, "is no manifest of quarry's"));
  CHECK(has(batch.run("1/3").err, "is no manifest of quarry's"));
  CHECK(file_text(batch.manifest()) == "precious");
  for (const fs::path& taken : {dir / "in/100.vox", batch.out / "102.quarry"}) {
    const Outcome refused = run_quarry(
        {"convert", (dir / "in").string(), "-o", batch.out.string(), "--to", "quarry", "--manifest", taken.string()});
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "give --manifest another name"));
  }
  CHECK(run_quarry({"convert", "in", "--merge-manifest", "x.json"}).code == 2);
  CHECK(run_quarry({"convert", (dir / "in").string(), "-o", (dir / "a.quarry").string(), "--merge", "--shard", "1/2"})
            .code == 2);
}

}  // namespace shard_test
