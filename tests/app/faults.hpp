// SPDX-License-Identifier: Apache-2.0
// faults.hpp - programs started under fault_shim.c, and what a folder holds afterwards.
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
// What can happen to such a call. What cannot (a rename that is interrupted) is not among them.
std::vector<fault_action> actions_for(fault_call call);

// What one run is told and tells. One thread.
class Faults {
 public:
  explicit Faults(const std::filesystem::path& state_file);  // made anew
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  // Forgets what was; calls below `folder`, which is there, count from now on, and number `at` meets `action`.
  void begin(const std::filesystem::path& folder, fault_action action = FAULT_NOTHING, uint32_t at = 0);
  // The first rename or link to `file` waits until `expected` processes are there.
  void meet(const std::filesystem::path& file, uint32_t expected);
  std::map<std::string, std::string> environment() const;
  const fault_state& state() const { return *state_; }
  std::vector<fault_record> calls() const;

 private:
  std::filesystem::path file_;
  fault_state* state_ = nullptr;
};

// Why the shim cannot be used here; "": it can.
std::string no_faults_here();

// All files below a folder and their bytes; folders themselves as "name/".
using Tree = std::map<std::string, std::string>;
Tree tree_of(const std::filesystem::path& folder);
void put_tree(const Tree& tree, const std::filesystem::path& folder);
bool is_temporary(const std::string& name);

// Whether two files of this name say the same: byte for byte but for what is another in each run (an OpenVDB file's
// number, the times in a report); a .quarry file by its scene and history.
bool same_file(const std::string& name, const std::string& a, const std::string& b);
// The same of worlds where they lie, each with the log or journal beside it.
bool same_world(const std::filesystem::path& a, const std::filesystem::path& b);

// Does `work(worker, item)` for all items below `items`, on as many threads as there are cores.
void in_parallel(size_t items, const std::function<void(size_t worker, size_t item)>& work);
size_t workers();

}  // namespace quarry::test
