// SPDX-License-Identifier: Apache-2.0
// whole_outputs_test.cpp - every output is whole or absent. Each call of a run that writes below its folder is made to
// fail, to stop half-way, or to be the last. After that the folder must hold the old file or the new one, with exit
// code 0 only for the new.
//
// A case runs once undisturbed, which yields the new files and the numbers of its calls. Then it runs once for each
// call and each action that the call can meet (faults.hpp). If there are many calls of one kind, only some are tried,
// including the first and the last. Of the actions of a call, every second one is tried, in turn. QUARRY_LONG=1 tries
// all.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "tests/app/faults.hpp"
#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/formats.hpp"

namespace whole_outputs_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

bool long_run() {
  const char* wanted = std::getenv("QUARRY_LONG");
  return wanted && *wanted && std::string(wanted) != "0";
}

// Of the actions that a call can meet, one in this many is tried, in turn, so that each action happens to each kind of
// call of some output. Under AddressSanitizer a program takes many times as long to start. The failures found there are
// memory errors, and the same few paths reach those.
size_t turns_of([[maybe_unused]] bool driver) {
  if (long_run()) return 1;
#if defined(__SANITIZE_ADDRESS__)
  return 7;  // odd, so that turns do not coincide with the number of actions
#else
  return driver ? 4 : 2;
#endif
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// "@" stands for the run's folder, in words and in the contents of files.
struct Case {
  std::string name;
  std::vector<std::string> words;  // without the program
  // The command that makes the old files, in the same places. Empty: only a new output is tried.
  std::vector<std::string> old_words;
  bool slow = false;         // another program or a driver must start, so fewer calls are tried
  std::string program = {};  // "": quarry
  // The file of a set that must not be old next to new ones; "": each file on its own.
  std::string main = {};
  std::string overwrite = "--overwrite";  // the option that the run after a kill needs to replace existing files
  bool driver = false;                    // each run starts a device driver, which takes longer than all others
  // The new world is opened for editing once it has its name, so log and journal are part of it.
  bool edits = false;
};

std::vector<std::string> filled(const std::vector<std::string>& words, const fs::path& folder) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(replaced(word, "@", folder.string()));
  return out;
}

// Each run has its own folder. Its outputs are below "out" in it.
Outcome run_case(const Case& one, std::vector<std::string> words, const fs::path& run,
                 const std::map<std::string, std::string>& environment) {
  words = filled(words, run);
  words.insert(words.begin(), one.program.empty() ? quarry_program().string() : one.program);
  return Process(words, environment).finish(60);
}

Tree outputs(const fs::path& run) {
  Tree tree = tree_of(run / "out");
  for (auto& [name, bytes] : tree)
    if (name.ends_with(".json")) bytes = replaced(bytes, run.string(), "@");
  return tree;
}

struct Reference {
  Tree old_files, new_files;  // below "out"
  std::vector<fault_record> calls;
  fs::path whole_world;  // for a case that edits: the new world, in a place of its own
};

struct Injection {
  size_t reference = 0;
  uint32_t at = 0;
  fault_call call{};
  fault_action action{};
  bool unsynced = false;
  bool editing = false;  // a call of SQLite, in a world that already has its name
};

// Numbers of the calls to try: at most `most` of each kind and file.
std::vector<uint32_t> chosen_calls(const std::vector<fault_record>& calls, size_t most) {
  std::map<int, std::vector<uint32_t>> kinds;
  for (size_t i = 0; i < calls.size(); ++i) kinds[calls[i].call].push_back(uint32_t(i + 1));
  std::vector<uint32_t> out;
  for (const auto& [kind, numbers] : kinds) {
    const size_t take = std::min(most, numbers.size());
    for (size_t i = 0; i < take; ++i)
      out.push_back(numbers[take == 1 ? numbers.size() - 1 : i * (numbers.size() - 1) / (take - 1)]);
  }
  return out;
}

bool hard_error(fault_action action) {
  return action == FAULT_NO_SPACE || action == FAULT_FULL || action == FAULT_IO_ERROR;
}
bool killing(fault_action action) { return action == FAULT_KILL_BEFORE || action == FAULT_KILL_AFTER; }

bool gives_name(fault_call call) { return call == FAULT_RENAME || call == FAULT_RENAMEAT2 || call == FAULT_LINK; }

// Whether the error may be ignored, because no content of a file depends on it.
bool harmless(fault_call call, bool unsynced) {
  return ((call == FAULT_CLOSE || call == FAULT_FCLOSE) && !unsynced) || call == FAULT_FALLOCATE;
}

// Whether bytes for a file that stays are still on their way. A file without a name is read again by its own process,
// so that nothing depends on whether it came to disk.
bool unsynced(const fault_record& call) {
  const std::string_view name(call.name, strnlen(call.name, sizeof call.name));
  return call.unsynced && !name.ends_with(" (deleted)");
}

bool names_reason(const std::string& err, fault_action action) {
  const auto any = [&](std::initializer_list<const char*> parts) {
    return std::ranges::any_of(parts, [&](const char* part) { return has(err, part); });
  };
  if (any({"were written"})) return true;  // the file was shorter than it should be, and no call reported why
  if (action == FAULT_IO_ERROR) return any({"Input/output error", "disk I/O error"});
  return any({"No space left", "disk is full", "disk I/O error"});
}

class Sweep {
 public:
  explicit Sweep(const std::string& name) : dir_(scratch_dir(name)) {
    for (size_t i = 0; i < workers(); ++i)
      faults_.push_back(std::make_unique<Faults>(dir_ / ("state" + std::to_string(i))));
    // The scene that is written now, and another one that an older run has written.
    for (const auto& [file, scene, size] :
         {std::tuple("new.quarry", "spheres", "32"), std::tuple("old.quarry", "menger", "9")})
      REQUIRE(run_quarry({"generate", scene, "--size", size, "-o", (dir_ / file).string()}).code == 0);
  }
  std::string newer() const { return (dir_ / "new.quarry").string(); }
  std::string older() const { return (dir_ / "old.quarry").string(); }
  const fs::path& dir() const { return dir_; }

  void run(const std::vector<Case>& cases) {
    std::vector<std::pair<size_t, bool>> variants;
    for (size_t i = 0; i < cases.size(); ++i) {
      variants.emplace_back(i, false);
      if (!cases[i].old_words.empty()) variants.emplace_back(i, true);
    }
    std::vector<Reference> references(variants.size());
    in_parallel(variants.size(), [&](size_t worker, size_t i) {
      references[i] = undisturbed(worker, cases[variants[i].first], variants[i].second);
    });
    std::vector<Injection> injections;
    for (size_t i = 0; i < references.size(); ++i) {
      const std::vector<fault_record>& calls = references[i].calls;
      const bool slow = cases[variants[i].first].slow && !long_run();
      for (const uint32_t at : chosen_calls(calls, long_run() ? SIZE_MAX : slow ? 2 : 4)) {
        const fault_record& call = calls[at - 1];
        // If there was no file before, only the calls that give the name differ from replacing one.
        if (slow && !variants[i].second && !cases[variants[i].first].old_words.empty() &&
            !gives_name(fault_call(call.call)))
          continue;
        const auto named = std::find_if(calls.begin() + at, calls.end(),
                                        [](const fault_record& later) { return gives_name(fault_call(later.call)); });
        const bool editing =
            cases[variants[i].first].edits && named == calls.end() && !gives_name(fault_call(call.call));
        const std::vector<fault_action> actions = actions_for(fault_call(call.call));
        const size_t turns = turns_of(cases[variants[i].first].driver);
        for (size_t a = 0; a < actions.size(); ++a)
          if ((a + at + i) % turns == 0)
            injections.push_back({i, at, fault_call(call.call), actions[a], unsynced(call), editing});
      }
    }
    in_parallel(injections.size(), [&](size_t worker, size_t i) {
      attempt(worker, cases[variants[injections[i].reference].first], references[injections[i].reference],
              injections[i]);
    });
    size_t tried = injections.size();
    std::ostringstream message;
    message << "combinations of output, call and fault: " << tried << ", of " << variants.size() << " undisturbed runs";
    WARN(message.str());
    std::ranges::sort(failures_);
    // Each failure is printed on one line, so that it can be searched for.
    for (const std::string& failure : failures_) std::printf("WRONG: %s\n", failure.c_str());
    std::fflush(stdout);
    CHECK(failures_.empty());
    CHECK(tried * turns_of(false) > 16 * cases.size());
  }

 private:
  fs::path fresh(size_t worker) const {
    fs::path run = dir_ / ("run" + std::to_string(worker));
    fs::remove_all(run);
    fs::create_directories(run / "out");
    return run;
  }
  void failed(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    failures_.push_back(text);
  }

  Reference undisturbed(size_t worker, const Case& one, bool overwrites) {
    Reference reference;
    fs::path run = fresh(worker);
    if (overwrites) {
      const Outcome made = run_case(one, one.old_words, run, {{"QUARRY_THREADS", "1"}});
      if (made.code != 0) failed(one.name + ": the old files cannot be made: " + made.err);
      reference.old_files = outputs(run);
      run = fresh(worker);
      put_tree(reference.old_files, run / "out");
    }
    Faults& faults = *faults_[worker];
    faults.begin(run / "out");
    const Outcome made = run_case(one, words_of(one, overwrites), run, faults.environment());
    if (made.code != 0) failed(one.name + ", undisturbed: exit code " + std::to_string(made.code) + ": " + made.err);
    reference.new_files = outputs(run);
    reference.calls = faults.calls();
    if (one.edits && fs::exists(run / "out" / "o.quarry")) {
      static std::atomic<int> number{0};
      reference.whole_world = dir_ / ("whole" + std::to_string(number++) + ".quarry");
      fs::copy_file(run / "out" / "o.quarry", reference.whole_world);
    }
    if (reference.calls.empty()) failed(one.name + ": no call was counted");
    for (const auto& [name, bytes] : reference.new_files)
      if (is_temporary(name)) failed(one.name + ", undisturbed: left " + name);
    return reference;
  }

  static std::vector<std::string> words_of(const Case& one, bool overwrites) {
    std::vector<std::string> words = one.words;
    if (overwrites && !one.overwrite.empty()) words.push_back(one.overwrite);
    return words;
  }

  // Returns "" if everything is as it must be.
  std::string wrong(const Case& one, const Reference& reference, const Injection& injection, const Outcome& outcome,
                    const fs::path& run, bool main_killed, bool* left, std::string* mixed) const {
    const Tree found = outputs(run);
    const bool killed = killing(injection.action);
    if (outcome.timed_out) return "it hangs";
    bool all_new = true, any_new = false, main_old = false, any_other = false;
    std::string other;
    std::set<std::string> names;
    for (const auto* tree : {&reference.old_files, &reference.new_files, &found})
      for (const auto& [name, bytes] : *tree) names.insert(name);
    for (const std::string& name : names) {
      const auto now = found.find(name), old_one = reference.old_files.find(name),
                 new_one = reference.new_files.find(name);
      if (now != found.end() && is_temporary(name)) {
        *left = true;
        if (!killed) return "it left " + name + " behind";
        continue;
      }
      if (one.edits && (name.ends_with("-journal") || name.ends_with("-wal") || name.ends_with("-shm"))) continue;
      const bool there = now != found.end();
      bool is_new = there ? new_one != reference.new_files.end() && same_file(name, now->second, new_one->second)
                          : new_one == reference.new_files.end();
      const bool is_old = there ? old_one != reference.old_files.end() && now->second == old_one->second
                                : old_one == reference.old_files.end();
      if (!is_new && !is_old && there && one.edits && name.ends_with(".quarry"))
        is_new = same_world(run / "out" / name, reference.whole_world);
      if (!is_new && !is_old)
        any_other = true, other = name + (there ? " (" + std::to_string(now->second.size()) + " bytes)" : " (gone)");
      all_new = all_new && is_new;
      if (is_new && !is_old && name != one.main) any_new = true, *mixed = name;
      if (name == one.main && !is_new) main_old = true;
    }
    if (any_other) return "neither old nor new: " + other;
    if (one.main.empty() || !any_new || !main_old) mixed->clear();
    if (outcome.code == 0 && !all_new) return "exit code 0, but the new file is not there";
    if (main_killed)
      return outcome.code == 128 + SIGKILL ? "" : "it was killed, but ended with " + std::to_string(outcome.code);
    if (outcome.code >= 128) return "it died by signal " + std::to_string(outcome.code - 128);
    if (!one.main.empty() && outcome.code != 0 && !killed && any_new && main_old)
      return "a new sidecar stands beside the old " + one.main;
    if (outcome.code != 0 && !has(outcome.err, "quarry: ")) return "it fails without a sentence";
    // All of the world is in its place. Pages that closing could not write back, the next opening does.
    if (injection.editing) return "";
    if (hard_error(injection.action)) {
      if (outcome.code == 0 && !harmless(injection.call, injection.unsynced))
        return "the error was passed over: exit code 0";
      if (outcome.code != 0 && !names_reason(outcome.err, injection.action)) return "the reason is not in what it says";
    }
    if (killed && outcome.code == 0) return "a killed child, but exit code 0";
    if (injection.action == FAULT_SHORT && outcome.code != 0) return "a short write must be continued";
    if (injection.action == FAULT_INTERRUPTED && outcome.code != 0) return "an interrupted call must be made again";
    if (injection.action == FAULT_UNSUPPORTED && outcome.code != 0) return "a file system without this call must do";
    return "";
  }

  void attempt(size_t worker, const Case& one, const Reference& reference, const Injection& injection) {
    const bool overwrites = !reference.old_files.empty();
    const fs::path run = fresh(worker);
    put_tree(reference.old_files, run / "out");
    Faults& faults = *faults_[worker];
    faults.begin(run / "out", injection.action, injection.at);
    const Outcome outcome = run_case(one, words_of(one, overwrites), run, faults.environment());
    const std::vector<fault_record> calls = faults.calls();
    bool left = false, main_killed = false;
    std::string why, mixed;
    if (faults.state().hits == 0) {
      if (injection.action == FAULT_SHORT) return;  // one byte cannot be half written
      why = "the call was not made again";
    } else {
      main_killed = killing(injection.action) && calls[injection.at - 1].process == main_process(reference, calls);
      why = wrong(one, reference, injection, outcome, run, main_killed, &left, &mixed);
    }
    std::string text = one.name + (overwrites ? ", over an old one" : "") + ": call " + std::to_string(injection.at) +
                       ", " + name_of(injection.call) + " of " + reference.calls[injection.at - 1].name + ", " +
                       name_of(injection.action) + ": ";
    if (!why.empty())
      return failed(text + why + "; exit code " + std::to_string(outcome.code) + ", it says: " + outcome.err);
    if (!killing(injection.action)) return;
    // The next run repairs it: it removes the left files, reports that, and writes its own file.
    std::vector<std::string> words = one.words;
    if (!one.overwrite.empty()) words.push_back(one.overwrite);
    const Outcome again = run_case(one, words, run, {{"QUARRY_THREADS", "1"}});
    if (again.code != 0) return failed(text + "the next run fails: " + again.err);
    if (left && one.program.empty() && !has(again.err, "killed quarry"))
      return failed(text + "the next run does not say what it removed: " + again.err);
    if (!mixed.empty() && one.program.empty() && !has(again.err, mixed))
      return failed(text + "the next run does not name " + mixed + ", which was newer than " + one.main + ": " +
                    again.err);
    const Tree now = outputs(run);
    for (const auto& [name, bytes] : now)
      if (is_temporary(name)) return failed(text + "the next run leaves " + name);
    for (const auto& [name, bytes] : reference.new_files)
      if (!now.count(name) || !same_file(name, now.at(name), bytes))
        return failed(text + "the next run's " + name + " is not the new one");
  }

  // The process of the program itself. It makes the last counted call of a whole run, because children only write and
  // it renames.
  static int32_t main_process(const Reference& reference, const std::vector<fault_record>& calls) {
    // Process numbers differ from run to run, so the process is found by its place in the reference, in the order of
    // first calls.
    const auto order = [](const std::vector<fault_record>& list) {
      std::vector<int32_t> seen;
      for (const fault_record& record : list)
        if (std::ranges::find(seen, record.process) == seen.end()) seen.push_back(record.process);
      return seen;
    };
    const std::vector<int32_t> before = order(reference.calls), now = order(calls);
    const size_t place = size_t(std::ranges::find(before, reference.calls.back().process) - before.begin());
    return place < now.size() ? now[place] : -1;
  }

  fs::path dir_;
  std::vector<std::unique_ptr<Faults>> faults_;
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

// Prints a notice if it cannot.
bool can_fault() {
  static const std::string why = no_faults_here();
  if (!why.empty()) skip("calls cannot be made to fail: " + why);
  return why.empty();
}

bool can_write(const char* extension) {
  const auto format = io::format_for_writing(std::string("a.") + extension);
  if (format && !(*format)->absent) return true;
  skip(std::string("this build does not write .") + extension);
  return false;
}

std::vector<std::string> convert(const std::string& from, const std::string& to, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"convert", from, "-o", to};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE(
    "outputs: whatever call fails or is the last, a file of every format is the old one or the new one, and "
    "exit code 0 means the new") {
  if (!can_fault()) return;
  Sweep sweep("whole-formats");
  std::vector<Case> cases;
  const std::map<std::string, std::string> mains{{"obj", "o.obj"}, {"raw", "o.raw"}};
  for (const char* extension :
       {"quarry", "vox", "obj", "ply", "glb", "gltf", "png", "binvox", "raw", "nrrd", "vdb", "nvdb"}) {
    if (!can_write(extension)) continue;
    const std::string out = std::string("@/out/o.") + extension;
    Case one{extension, convert(sweep.newer(), out), convert(sweep.older(), out)};
    one.slow = std::string(extension).ends_with("vdb");
    if (mains.count(extension)) one.main = mains.at(extension);
    cases.push_back(one);
  }
  for (const io::Format& format : io::formats())
    if (format.write && !format.absent)
      for (const char* extension : format.extensions) {
        INFO("." << extension << " is written, but is not in the sweep");
        CHECK(std::ranges::any_of(cases, [&](const Case& one) { return one.name == extension; }));
      }
  sweep.run(cases);
}

TEST_CASE(
    "outputs: a report, levels of detail, a folder of pictures, a generated scene and each file of a batch are "
    "whole or not there") {
  if (!can_fault()) return;
  Sweep sweep("whole-others");
  std::vector<Case> cases;
  cases.push_back({"report", convert(sweep.newer(), "@/o.vox", {"--report", "@/out/r.json", "--overwrite"}),
                   convert(sweep.older(), "@/o.vox", {"--report", "@/out/r.json", "--overwrite"})});
  cases.back().overwrite = "";
  cases.push_back({"lod", convert(sweep.newer(), "@/out/o.glb", {"--lod-levels", "2"}),
                   convert(sweep.older(), "@/out/o.glb", {"--lod-levels", "2"})});
  cases.push_back({"height map", convert(sweep.newer(), "@/out/o.png", {"--picture", "height"}),
                   convert(sweep.older(), "@/out/o.png", {"--picture", "height"})});
  cases.push_back({"generate",
                   {"generate", "menger", "--size", "27", "-o", "@/out/o.obj"},
                   {"generate", "menger", "--size", "9", "-o", "@/out/o.obj"}});
  cases.back().main = "o.obj";
  // A few new files are synced one by one at the end of a batch, many all at once.
  std::vector<std::string> inputs;
  for (const char* from : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
    inputs.push_back((sweep.dir() / (std::string(from) + ".quarry")).string());
    fs::copy_file(sweep.newer(), inputs.back());
  }
  for (const auto& [format, count] :
       {std::pair("vox", size_t(3)), std::pair("quarry", size_t(2)), std::pair("glb", inputs.size())}) {
    std::vector<std::string> words{"convert", "-o", "@/out", "--to", format, "-j", "1"};
    words.insert(words.end(), inputs.begin(), inputs.begin() + long(count));
    cases.push_back({fmt::format("batch of {} to .{}", count, format), words,
                     convert(sweep.older(), std::string("@/out/b.") + format)});
  }
  sweep.run(cases);
}

TEST_CASE("outputs: a rendered picture is the old one or the new one") {
  if (!can_fault() || !can_render()) return;
  Sweep sweep("whole-pictures");
  std::vector<Case> cases;
  const auto render = [&](const std::string& from, const char* to, std::vector<std::string> more) {
    std::vector<std::string> words{"render", from, "-o", std::string("@/out/") + to, "--size", "16x16"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  cases.push_back({"render .png", render(sweep.newer(), "p.png", {"--samples", "1"}),
                   render(sweep.older(), "p.png", {"--samples", "1"}), true});
  if (run_quarry({"render", sweep.newer(), "-o", (sweep.dir() / "p.exr").string(), "--size", "16x16", "--spp", "1"})
          .code == 0)
    cases.push_back({"render .exr", render(sweep.newer(), "p.exr", {"--spp", "1"}), {}, true});
  else skip("this build does not write .exr");
  for (Case& one : cases) {
    one.overwrite = "";  // pictures are always overwritten
    one.driver = true;
  }
  sweep.run(cases);
}

TEST_CASE("outputs: what the editor saves under a name is whole or not there, and what was there stays") {
  if (!can_fault()) return;
  Sweep sweep("whole-saved");
  std::vector<Case> cases;
  const std::string program = QRY_SESSION_STEPS;
  const auto steps = [&](std::vector<std::string> list) {
    list.insert(list.begin(), "@/recovery");
    return list;
  };
  REQUIRE(run_quarry(convert(sweep.newer(), (sweep.dir() / "new.vox").string())).code == 0);
  REQUIRE(run_quarry(convert(sweep.older(), (sweep.dir() / "old.vox").string())).code == 0);
  const std::string open = "open:" + (sweep.dir() / "new.vox").string(),
                    open_old = "open:" + (sweep.dir() / "old.vox").string();
  // Edits are in a world file by then, and it is copied with its history. A scene without edits is written anew.
  for (const char* extension : {"quarry", "vox", "obj"}) {
    const std::string save = std::string("save:@/out/o.") + extension;
    Case saved{std::string("saved as .") + extension, steps({open, save}), steps({open_old, save}), false, program};
    if (std::string(extension) == "obj") saved.main = "o.obj";
    saved.overwrite = "";
    saved.edits = std::string(extension) == "quarry";
    cases.push_back(saved);
    saved.name = "edited and " + saved.name;
    saved.words = steps({open, "ball:1", "ball:2", save});
    cases.push_back(saved);
  }
  sweep.run(cases);
}

namespace {

// Number of the balls 1, 2, 3 in a world, found by its voxels. -1: it cannot be read, or matches no such state.
int balls_in(const fs::path& world, const std::vector<Scene>& states) {
  const auto scene = io::Store::read(world);
  if (!scene) return -1;
  for (size_t i = 0; i < states.size(); ++i)
    if (std::ranges::equal(scene->volumes[0].bricks.bricks(), states[i].volumes[0].bricks.bricks())) return int(i);
  return -1;
}

// "done 1" belongs to the opening.
int acknowledged_balls(const Outcome& outcome) {
  const size_t at = outcome.out.rfind("done ");
  return at == std::string::npos ? 0 : std::max(0, std::stoi(outcome.out.substr(at + 5)) - 1);
}

struct FaultInjection {
  uint32_t at;
  fault_call call;
  fault_action action;
};

// The faults to inject into a run: for `most` of its calls, each action that the call can meet, in turns.
std::vector<FaultInjection> injections_of(const std::vector<fault_record>& calls, size_t most) {
  std::vector<FaultInjection> injections;
  for (const uint32_t at : chosen_calls(calls, most))
    for (size_t a = 0; const fault_action action : actions_for(fault_call(calls[at - 1].call)))
      if ((a++ + at) % turns_of(false) == 0) injections.push_back({at, fault_call(calls[at - 1].call), action});
  return injections;
}

void check_injections(size_t injections, size_t calls, std::vector<std::string>& failures) {
  WARN("combinations of call and fault: " << injections << ", of " << calls << " calls");
  std::ranges::sort(failures);
  for (const std::string& failure : failures) std::printf("WRONG: %s\n", failure.c_str());
  std::fflush(stdout);
  CHECK(failures.empty());
}

// Runs the steps once for each call and each action that it can meet. `prepare` fills the folder "out" of a run;
// `wrong` checks it afterwards.
void sweep_edits(const std::string& name, const std::vector<std::string>& steps,
                 const std::function<void(const fs::path& run)>& prepare,
                 const std::function<std::string(const fs::path& run, const Outcome&, fault_action,
                                                 const std::vector<Scene>& states)>& wrong) {
  const fs::path dir = scratch_dir(name);
  std::vector<std::unique_ptr<Faults>> faults;
  for (size_t i = 0; i < workers(); ++i)
    faults.push_back(std::make_unique<Faults>(dir / ("state" + std::to_string(i))));
  const auto fresh = [&](size_t worker) {
    fs::path run = dir / ("run" + std::to_string(worker));
    fs::remove_all(run);
    fs::create_directories(run / "out");
    prepare(run);
    return run;
  };
  const auto act = [&](const fs::path& run, const std::vector<std::string>& list,
                       const std::map<std::string, std::string>& environment) {
    std::vector<std::string> words = filled(list, run);
    words.insert(words.begin(), QRY_SESSION_STEPS);
    return Process(words, environment).finish(60);
  };
  // The worlds after none, one, two and three balls, each saved under its own name.
  std::vector<Scene> states;
  for (size_t balls = 0; balls <= 3; ++balls) {
    const fs::path run = fresh(0);
    std::vector<std::string> list(steps.begin(), steps.begin() + long(2 + balls));
    list.push_back("save:@/saved.quarry");
    REQUIRE(act(run, list, {}).code == 0);
    auto scene = io::Store::read(run / "saved.quarry");
    REQUIRE(scene);
    states.push_back(std::move(*scene));
  }
  const fs::path run = fresh(0);
  faults[0]->begin(run / "out");
  const Outcome whole = act(run, steps, faults[0]->environment());
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  REQUIRE(wrong(run, whole, FAULT_NOTHING, states) == "");
  const std::vector<fault_record> calls = faults[0]->calls();
  const std::vector<FaultInjection> injections = injections_of(calls, long_run() ? SIZE_MAX : 6);
  std::mutex mutex;
  std::vector<std::string> failures;
  in_parallel(injections.size(), [&](size_t worker, size_t i) {
    const FaultInjection& injection = injections[i];
    const fs::path here = fresh(worker);
    faults[worker]->begin(here / "out", injection.action, injection.at);
    const Outcome outcome = act(here, steps, faults[worker]->environment());
    std::string why;
    if (faults[worker]->state().hits == 0 && injection.action != FAULT_SHORT) why = "the call was not made again";
    else if (outcome.timed_out) why = "it hangs";
    else if (killing(injection.action) != (outcome.code == 128 + SIGKILL) ||
             (!killing(injection.action) && outcome.code >= 128))
      why = "it ended by a signal or did not";
    else if (outcome.code == 1 && !has(outcome.err, "quarry: ")) why = "it fails without a sentence";
    else why = wrong(here, outcome, injection.action, states);
    if (why.empty()) return;
    const std::scoped_lock lock(mutex);
    failures.push_back(fmt::format("{}: call {}, {} of {}, {}: {}; exit code {}, it says: {}{}", name, injection.at,
                                   name_of(injection.call), calls[injection.at - 1].name, name_of(injection.action),
                                   why, outcome.code, outcome.out, outcome.err));
  });
  check_injections(injections.size(), calls.size(), failures);
  CHECK(injections.size() * turns_of(false) > 60);
}

// As many edits as were acknowledged, or one more that was under way; never fewer, and no half edit.
std::string right_number(int found, const Outcome& outcome) {
  const int reported = acknowledged_balls(outcome);
  if (found < 0) return "the world cannot be read, or is of no state that it ever had";
  if (found < reported) return fmt::format("{} edits were acknowledged, {} are there", reported, found);
  if (found > reported + 1) return fmt::format("{} edits were acknowledged, but {} are there", reported, found);
  return outcome.code == 0 && found != 3 ? "exit code 0, but not all is there" : "";
}

}  // namespace

TEST_CASE(
    "outputs: an edit that the editor acknowledged is in the world file, whatever call of the next fails or is "
    "the last, and the file can be edited on") {
  if (!can_fault()) return;
  const fs::path base = scratch_dir("whole-edited-base");
  REQUIRE(run_quarry({"generate", "menger", "--size", "9", "-o", (base / "w.quarry").string()}).code == 0);
  const auto prepare = [&](const fs::path& run) { fs::copy_file(base / "w.quarry", run / "out" / "w.quarry"); };
  sweep_edits(
      "whole-edited", {"@/recovery", "open:@/out/w.quarry", "ball:1", "ball:2", "ball:3"}, prepare,
      [&](const fs::path& run, const Outcome& outcome, fault_action, const std::vector<Scene>& states) -> std::string {
        const fs::path world = run / "out" / "w.quarry";
        const int found = balls_in(world, states);
        if (std::string why = right_number(found, outcome); !why.empty()) return why;
        const Outcome again =
            Process({QRY_SESSION_STEPS, (run / "recovery").string(), "open:" + world.string(), "ball:3"}).finish(60);
        if (again.code != 0) return "it cannot be edited on: " + again.err;
        return names_in(run / "out").size() == 1 ? "" : "beside it lies something when it is closed";
      });
}

TEST_CASE(
    "outputs: an edit of a scene that has no world file yet is in its recovery file, whatever call fails or is the "
    "last") {
  if (!can_fault()) return;
  const auto nothing = [](const fs::path&) {};
  sweep_edits("whole-recovered", {"@/out", "new", "ball:1", "ball:2", "ball:3"}, nothing,
              [](const fs::path& run, const Outcome& outcome, fault_action action,
                 const std::vector<Scene>& states) -> std::string {
                std::vector<std::string> worlds;
                for (const std::string& name : names_in(run / "out")) {
                  if (name.ends_with(".quarry")) worlds.push_back(name);
                  else if (is_temporary(name) && !killing(action)) return "it left " + name + " behind";
                }
                const int reported = acknowledged_balls(outcome);
                if (worlds.size() > 1) return "there are several recovery files";
                if (worlds.empty())
                  return reported == 0
                             ? ""
                             : fmt::format("{} edits were acknowledged, but there is no recovery file", reported);
                return right_number(balls_in(run / "out" / worlds[0], states), outcome);
              });
}

TEST_CASE(
    "outputs: of two programs that write one new file at the same time one does, and the other says that it is "
    "there already") {
  if (!can_fault()) return;
  const fs::path dir = scratch_dir("whole-two");
  for (const auto& [file, scene, size] :
       {std::tuple("first.quarry", "spheres", "32"), std::tuple("second.quarry", "menger", "9")})
    REQUIRE(run_quarry({"generate", scene, "--size", size, "-o", (dir / file).string()}).code == 0);
  // `quarry render` is left out, because it always overwrites.
  std::vector<std::pair<std::string, std::array<std::vector<std::string>, 2>>> pairs;
  for (const char* extension :
       {"quarry", "vox", "obj", "ply", "glb", "gltf", "png", "binvox", "raw", "nrrd", "vdb", "nvdb"}) {
    if (!can_write(extension)) continue;
    const std::string out = std::string("@/out/o.") + extension;
    pairs.push_back(
        {extension, {convert((dir / "first.quarry").string(), out), convert((dir / "second.quarry").string(), out)}});
  }
  pairs.push_back({"vox",
                   {std::vector<std::string>{"generate", "menger", "--size", "9", "-o", "@/out/o.vox"},
                    {"generate", "menger", "--size", "27", "-o", "@/out/o.vox"}}});
  std::mutex mutex;
  std::vector<std::string> failures;
  in_parallel(pairs.size(), [&](size_t, size_t i) {
    const auto& [extension, words] = pairs[i];
    const Case plain{extension, {}, {}};
    const fs::path run = dir / ("run" + std::to_string(i));
    // Of two files, the sidecar gets its name first.
    const fs::path file = run / "out" /
                          (extension == "obj"   ? "o.mtl"
                           : extension == "raw" ? "o.nhdr"
                                                : "o." + extension);
    Tree alone[2];
    for (size_t k = 0; k < 2; ++k) {
      fs::remove_all(run);
      fs::create_directories(run / "out");
      (void)run_case(plain, words[k], run, {});
      alone[k] = outputs(run);
    }
    fs::remove_all(run);
    fs::create_directories(run / "out");
    Faults faults(dir / ("state" + std::to_string(i)));
    faults.begin(run / "out");
    faults.meet(file, 2);
    Outcome outcomes[2];
    {
      std::unique_ptr<Process> processes[2];
      for (size_t k = 0; k < 2; ++k) {
        std::vector<std::string> all = filled(words[k], run);
        all.insert(all.begin(), quarry_program().string());
        processes[k] = std::make_unique<Process>(all, faults.environment());
      }
      for (size_t k = 0; k < 2; ++k) outcomes[k] = processes[k]->finish(60);
    }
    std::string why;
    if (faults.state().missed || faults.state().arrived != 2) why = "they did not meet";
    else if (outcomes[0].code + outcomes[1].code != 1 || outcomes[0].code < 0 || outcomes[1].code < 0)
      why = fmt::format("exit codes {} and {}", outcomes[0].code, outcomes[1].code);
    else {
      const size_t winner = outcomes[0].code == 0 ? 0 : 1;
      if (!has(outcomes[1 - winner].err, "is there already")) why = "the other does not say that it is there already";
      const Tree found = outputs(run);
      for (const auto& [name, bytes] : found)
        if (!alone[winner].count(name) || !same_file(name, bytes, alone[winner].at(name)))
          why = name + " is not the winner's";
      if (found.size() != alone[winner].size()) why = "there are other files than the winner's";
    }
    if (why.empty()) return;
    const std::scoped_lock lock(mutex);
    failures.push_back("two writers of ." + extension + ": " + why + "; they say: " + outcomes[0].err + " | " +
                       outcomes[1].err);
  });
  for (const std::string& failure : failures) std::printf("WRONG: %s\n", failure.c_str());
  std::fflush(stdout);
  CHECK(failures.empty());
  WARN("pairs of writers that met: " << pairs.size());
}

TEST_CASE(
    "outputs: a batch that was killed between a file and its line of --resume, or whose line could not be "
    "written, goes on and loses nothing") {
  if (!can_fault()) return;
  const fs::path dir = scratch_dir("whole-resume");
  for (const char* name : {"a.quarry", "b.quarry"})
    REQUIRE(run_quarry({"generate", "menger", "--size", "9", "-o", (dir / name).string()}).code == 0);
  const Case plain{"resume", {}, {}};
  const std::vector<std::string> words{"convert",
                                       (dir / "a.quarry").string(),
                                       (dir / "b.quarry").string(),
                                       "-o",
                                       "@/out",
                                       "--to",
                                       "vox",
                                       "-j",
                                       "1",
                                       "--resume",
                                       "--manifest",
                                       "@/out/done.json"};
  const auto fresh = [&](size_t worker) {
    fs::path run = dir / ("run" + std::to_string(worker));
    fs::remove_all(run);
    fs::create_directories(run / "out");
    return run;
  };
  std::vector<std::unique_ptr<Faults>> faults;
  for (size_t i = 0; i < workers(); ++i)
    faults.push_back(std::make_unique<Faults>(dir / ("state" + std::to_string(i))));
  fs::path run = fresh(0);
  faults[0]->begin(run / "out");
  REQUIRE(run_case(plain, words, run, faults[0]->environment()).code == 0);
  const Tree whole = outputs(run);
  const std::vector<fault_record> calls = faults[0]->calls();
  const std::vector<FaultInjection> injections = injections_of(calls, SIZE_MAX);
  std::mutex mutex;
  std::vector<std::string> failures;
  in_parallel(injections.size(), [&](size_t worker, size_t i) {
    const FaultInjection& injection = injections[i];
    const fs::path here = fresh(worker);
    faults[worker]->begin(here / "out", injection.action, injection.at);
    const Outcome outcome = run_case(plain, words, here, faults[worker]->environment());
    std::string why;
    const auto look = [&](bool all) {
      const Tree found = outputs(here);
      for (const char* name : {"a.vox", "b.vox", "done.json"}) {
        if (found.count(name) ? found.at(name) != whole.at(name) : all) why = std::string(name) + " is not whole";
      }
      if (all)
        for (const auto& [name, bytes] : found)
          if (is_temporary(name)) why = "it left " + name;
    };
    if (faults[worker]->state().hits == 0 && injection.action != FAULT_SHORT) why = "the call was not made again";
    look(outcome.code == 0);
    if (why.empty() && hard_error(injection.action) && outcome.code == 0 &&
        !harmless(injection.call, unsynced(calls[injection.at - 1])))
      why = "the error was passed over";
    if (why.empty() && (injection.action == FAULT_SHORT || injection.action == FAULT_INTERRUPTED) && outcome.code != 0)
      why = "it must go on";
    // The file may have a line for --resume or not: it has the bytes that it should have, so it stays. Running twice
    // gives the same as once.
    for (int time = 0; time < 2 && why.empty(); ++time) {
      const Outcome again = run_case(plain, words, here, {{"QUARRY_THREADS", "1"}});
      if (again.code != 0) why = fmt::format("run {} after it: exit code {}: {}", time + 1, again.code, again.err);
      else look(true);
      if (time == 1 && why.empty() && !has(again.out, "2 unchanged") && !has(again.err, "2 unchanged") &&
          !has(again.out + again.err, "unchanged"))
        why = "the second run knows nothing of the first: " + again.out + again.err;
    }
    if (why.empty()) return;
    const std::scoped_lock lock(mutex);
    failures.push_back(fmt::format("resume: call {}, {} of {}, {}: {}; exit code {}, it says: {}", injection.at,
                                   name_of(injection.call), calls[injection.at - 1].name, name_of(injection.action),
                                   why, outcome.code, outcome.err));
  });
  check_injections(injections.size(), calls.size(), failures);
}

}  // namespace whole_outputs_test
