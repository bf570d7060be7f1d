// SPDX-License-Identifier: Apache-2.0
// faults.cpp - shares a mapping with fault_shim.c, and compares folders as trees of names and bytes.
#include "tests/app/faults.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"

namespace quarry::test {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCalls[FAULT_CALLS] = {"write",    "pwrite",          "fwrite",    "fflush",    "fclose",
                                             "sendfile", "copy_file_range", "ftruncate", "fallocate", "fsync",
                                             "syncfs",   "close",           "rename",    "renameat2", "link"};
constexpr const char* kActions[FAULT_ACTIONS] = {
    "nothing", "no space", "full", "I/O error", "interrupted", "short", "unsupported", "killed before", "killed after"};

}  // namespace

const char* name_of(fault_call call) { return kCalls[call]; }
const char* name_of(fault_action action) { return kActions[action]; }

std::vector<fault_action> actions_for(fault_call call) {
  switch (call) {
    case FAULT_WRITE:
    case FAULT_PWRITE:
      return {FAULT_NO_SPACE, FAULT_FULL,        FAULT_IO_ERROR,  FAULT_INTERRUPTED,
              FAULT_SHORT,    FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_SENDFILE:
    case FAULT_COPY_FILE_RANGE:
      return {FAULT_NO_SPACE, FAULT_FULL,        FAULT_IO_ERROR,    FAULT_INTERRUPTED,
              FAULT_SHORT,    FAULT_UNSUPPORTED, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_FWRITE:
    case FAULT_FFLUSH:
    case FAULT_FCLOSE:
    case FAULT_CLOSE: return {FAULT_NO_SPACE, FAULT_IO_ERROR, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_FTRUNCATE:
      return {FAULT_NO_SPACE, FAULT_IO_ERROR, FAULT_INTERRUPTED, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_FALLOCATE: return {FAULT_NO_SPACE, FAULT_UNSUPPORTED, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_FSYNC:
    case FAULT_SYNCFS: return {FAULT_NO_SPACE, FAULT_IO_ERROR, FAULT_INTERRUPTED, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_RENAME: return {FAULT_NO_SPACE, FAULT_IO_ERROR, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_RENAMEAT2:
    case FAULT_LINK: return {FAULT_NO_SPACE, FAULT_IO_ERROR, FAULT_UNSUPPORTED, FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
    case FAULT_CALLS: break;
  }
  return {};
}

Faults::Faults(const fs::path& state_file) : file_(state_file) {
  const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || ::ftruncate(fd, sizeof(fault_state)) != 0) throw std::runtime_error("cannot make " + file_.string());
  void* at = ::mmap(nullptr, sizeof(fault_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) throw std::runtime_error("cannot map " + file_.string());
  state_ = static_cast<fault_state*>(at);
}

Faults::~Faults() { ::munmap(state_, sizeof(fault_state)); }

void Faults::begin(const fs::path& folder, fault_action action, uint32_t at) {
  std::memset(state_, 0, sizeof *state_);
  const std::string name = fs::canonical(folder).string();
  std::strncpy(state_->folder, name.c_str(), sizeof state_->folder - 1);
  state_->action = action;
  state_->at = at;
}

void Faults::meet(const fs::path& file, uint32_t expected) {
  const std::string name = (fs::canonical(file.parent_path()) / file.filename()).string();
  std::strncpy(state_->meeting, name.c_str(), sizeof state_->meeting - 1);
  state_->expected = expected;
}

std::map<std::string, std::string> Faults::environment() const {
  // One thread, so that calls have the same numbers in each run.
  std::map<std::string, std::string> all{
      {"LD_PRELOAD", QRY_FAULT_SHIM}, {"QUARRY_FAULTS", file_.string()}, {"QUARRY_THREADS", "1"}};
  // AddressSanitizer wants to be loaded first. It also works after the shim, because the shim passes every call on to
  // it.
  const char* options = std::getenv("ASAN_OPTIONS");
  all["ASAN_OPTIONS"] =
      std::string(options && *options ? std::string(options) + ":" : std::string()) + "verify_asan_link_order=0";
  return all;
}

std::vector<fault_record> Faults::calls() const {
  return {state_->calls, state_->calls + std::min<uint32_t>(state_->count, FAULT_LOGGED)};
}

std::string no_faults_here() {
#if defined(__SANITIZE_THREAD__)
  return "the shim is not made for ThreadSanitizer";
#else
  const fs::path dir = scratch_dir("faults-probe");
  fs::create_directory(dir / "out");
  Faults faults(dir / "state");
  faults.begin(dir / "out");
  const Outcome made =
      run_quarry({"generate", "menger", "--size", "3", "-o", (dir / "out" / "m.vox").string()}, faults.environment());
  if (made.code != 0) return "the program does not run under the shim: " + made.err;
  return faults.state().count > 0 ? "" : "the shim is not called";
#endif
}

Tree tree_of(const fs::path& folder) {
  Tree tree;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().lexically_relative(folder).generic_string();
    if (at->is_directory()) tree[name + "/"];
    else tree[name] = file_text(at->path());
  }
  return tree;
}

void put_tree(const Tree& tree, const fs::path& folder) {
  for (const auto& [name, bytes] : tree) {
    if (name.ends_with('/')) fs::create_directories(folder / name);
    else std::ofstream(folder / name, std::ios::binary) << bytes;
  }
}

bool is_temporary(const std::string& name) {
  const std::string first = name.substr(0, name.find('/'));
  const auto has = [&](const char* part) { return first.find(part) != std::string::npos; };
  return first.starts_with('.') && (has(".new-") || has(".regions-") || has(".set-") || has(".kept-"));
}

namespace {

nlohmann::json without_times(nlohmann::json value) {
  if (value.is_object()) {
    value.erase("seconds");
    value.erase("time");
  }
  if (value.is_structured())
    for (auto& part : value) part = without_times(std::move(part));
  return value;
}

bool same_world_bytes(const std::string& a, const std::string& b) {
  static std::atomic<int> number{0};
  const fs::path dir =
      fs::temp_directory_path() / ("quarry-test-" + std::to_string(::getpid()) + "-same-" + std::to_string(number++));
  fs::create_directory(dir);
  std::ofstream(dir / "a.quarry", std::ios::binary) << a;
  std::ofstream(dir / "b.quarry", std::ios::binary) << b;
  const bool same = same_world(dir / "a.quarry", dir / "b.quarry");
  fs::remove_all(dir);
  return same;
}

}  // namespace

bool same_world(const fs::path& a, const fs::path& b) {
  std::vector<UndoRecord> history_a, history_b;
  size_t position_a = 0, position_b = 0;
  const auto scene_a = io::Store::read(a, {}, &history_a, &position_a),
             scene_b = io::Store::read(b, {}, &history_b, &position_b);
  return scene_a && scene_b && same_scene(*scene_a, *scene_b).empty() && same_history(history_a, history_b).empty() &&
         position_a == position_b;
}

bool same_file(const std::string& name, const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (name.ends_with(".quarry")) return same_world_bytes(a, b);
  if (name.ends_with(".json")) {
    const auto left = nlohmann::json::parse(a, nullptr, false), right = nlohmann::json::parse(b, nullptr, false);
    return !left.is_discarded() && without_times(left) == without_times(right);
  }
  return false;
}

size_t workers() { return std::max(1u, std::thread::hardware_concurrency()); }

void in_parallel(size_t items, const std::function<void(size_t worker, size_t item)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < workers(); ++worker)
    threads.emplace_back([&, worker] {
      for (size_t item = next++; item < items; item = next++) work(worker, item);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace quarry::test
