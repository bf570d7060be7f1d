// SPDX-License-Identifier: Apache-2.0
// faults.hpp - runs programs under fault_shim.c, and compares the folders they leave.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/app/fault_shim.h"
#include "tests/app/spawn.hpp"

namespace quarry::test {

const char* name_of(fault_call call);
const char* name_of(fault_action action);
// The actions that can happen to such a call. Impossible ones (an interrupted rename) are left out.
std::vector<fault_action> actions_for(fault_call call);

// The settings and results of one run. Use it from one thread.
class Faults {
 public:
  explicit Faults(const std::filesystem::path& state_file);  // creates the file anew
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  // Forgets earlier calls. Calls below `folder`, which must exist, are counted from now on. Call number `at` meets
  // `action`.
  void begin(const std::filesystem::path& folder, fault_action action = FAULT_NOTHING, uint32_t at = 0);
  // The first rename or link to `file` waits until `expected` processes have come to it.
  void meet(const std::filesystem::path& file, uint32_t expected);
  std::map<std::string, std::string> environment() const;
  const fault_state& state() const { return *state_; }
  std::vector<fault_record> calls() const;

 private:
  std::filesystem::path file_;
  fault_state* state_ = nullptr;
};

// Why the shim cannot be used here; "" if it can.
std::string no_faults_here();

// All files below a folder with their bytes. Folders themselves are listed as "name/".
using Tree = std::map<std::string, std::string>;
Tree tree_of(const std::filesystem::path& folder);
void put_tree(const Tree& tree, const std::filesystem::path& folder);
bool is_temporary(const std::string& name);

// Whether two files of this name have the same content. They are compared byte for byte, except values that differ in
// each run (the times in a report). A .quarry file is compared by its scene and history.
bool same_file(const std::string& name, const std::string& a, const std::string& b);
// The same for worlds at their place, each with the log or journal next to it.
bool same_world(const std::filesystem::path& a, const std::filesystem::path& b);

// Calls `work(worker, item)` for all items below `items`, on as many threads as there are cores.
void in_parallel(size_t items, const std::function<void(size_t worker, size_t item)>& work);
size_t workers();

}  // namespace quarry::test
