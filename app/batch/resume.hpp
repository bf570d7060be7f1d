// SPDX-License-Identifier: Apache-2.0
// resume.hpp - what `quarry convert --resume` remembers: which outputs were made of what. One JSON document a line in a
// file beside the outputs, `.quarry-resume` (or `.quarry-resume-I-of-N` of a shard, so that no two machines write into
// one file); a later line for the same job replaces an earlier one, and a last line that is cut short is none.
//
// A line is written when its job is done, and says in which start of the machine that was, for its outputs need not be
// on disk yet. At a batch's end they are, and another line says that all before it hold. Without that (killed) they
// hold until the machine is started anew; with a line that says that the disk failed, they do not.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/batch/dependencies.hpp"
#include "app/console/inputs.hpp"
#include "base/result.hpp"

namespace quarry::app {

// A checksum (XXH3, 128 bits, in hex) of `options`, and of the names and contents of the inputs. Errors: those of
// opening; cancelled.
Result<std::string> content_hash(const std::vector<Input>& inputs, const std::string& options,
                                 const std::atomic<bool>* cancel = nullptr);

class ResumeManifest {
 public:
  // Reads all manifests in `folder`; `suffix` ("", "-2-of-7") names the one to be written.
  ResumeManifest(std::filesystem::path folder, const std::string& suffix);

  // True if the job's last outputs were made with this hash and are as they were left (sizes and times). What they
  // depend on beside the inputs is to be asked for too.
  bool unchanged(const std::string& job, const std::string& hash) const;
  // True if what is in this file is what this program wrote there: it may be replaced.
  bool wrote(const std::filesystem::path& file) const;
  std::vector<std::filesystem::path> outputs(const std::string& job) const;
  // What the job's outputs were made with, as it was then; not known if there is no such job.
  Dependencies dependencies(const std::string& job) const;
  // True if there are jobs of Quarry 0.1.1 or older, which did not know of all that an output depends on: their outputs
  // are ours, but made anew, and then no longer such.
  bool has_old() const;
  // Outputs of earlier runs in this start of the machine that nobody has waited for: who settles must do it.
  std::vector<std::filesystem::path> unsynced() const;
  // Any thread. Errors: io.
  Result<void> record(const std::string& job, const std::string& hash,
                      const std::vector<std::filesystem::path>& outputs, const Dependencies& needs);
  // At the end: all outputs recorded here are on disk, or may not be. On disk itself when it returns. Errors: io.
  Result<void> settled(bool on_disk);
  static std::filesystem::path file_in(const std::filesystem::path& folder, const std::string& suffix);

 private:
  struct Output {
    std::string file;  // from the folder
    uint64_t bytes = 0;
    int64_t time = 0;
    bool unsure = false;  // nobody had waited for it to be on disk when that was written
  };
  struct Entry {
    std::string hash;
    std::vector<Output> outputs;
    std::string start;     // of the machine, when it was written
    bool on_disk = true;   // somebody has waited for that
    bool believed = true;  // on disk, or at least not lost yet
    Dependencies needs;
  };
  Result<void> append(std::string line, bool sync);
  Output look(const std::filesystem::path& file) const;
  bool as_left(const Output& output) const;

  std::filesystem::path folder_, file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Output> files_;
  std::mutex mutex_;
};

}  // namespace quarry::app
