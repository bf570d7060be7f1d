// SPDX-License-Identifier: Apache-2.0
// resume.hpp - the record of `quarry convert --resume`: which inputs and options each output was made from. It is a
// file next to the outputs with one JSON document a line: `.quarry-resume`, or `.quarry-resume-I-of-N` for a shard, so
// that no two machines write into one file. A later line for the same job replaces an earlier one. A last line that is
// cut short is ignored.
//
// A line is written when its job is done. It names the start of the machine in which that was, because its outputs need
// not be on disk yet. At the end of a batch they are, and another line says that all lines before it hold. Without that
// line (killed) they hold until the machine is restarted. With a line that says that the disk failed, they do not hold.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/batch/checksum.hpp"
#include "app/batch/dependencies.hpp"
#include "app/console/inputs.hpp"
#include "base/result.hpp"

namespace quarry::app {

// A checksum (XXH3, 128 bits, in hex) of `options`, and of the names and contents of the inputs. `each`, if given, gets
// the checksum of each input by its relative name. Errors: those of opening; cancelled.
Result<std::string> content_hash(const std::vector<Input>& inputs, const std::string& options,
                                 const std::atomic<bool>* cancel = nullptr, std::vector<FileChecksum>* each = nullptr);

class ResumeManifest {
 public:
  // Reads all manifests in `folder`. `suffix` ("", "-2-of-7") names the one to be written.
  ResumeManifest(std::filesystem::path folder, const std::string& suffix);

  // True if the job's last outputs were made with this hash and still have their sizes and times. The caller must also
  // check their dependencies other than the inputs.
  bool unchanged(const std::string& job, const std::string& hash) const;
  // True if the file is still as this program wrote it. It may then be replaced.
  bool wrote(const std::filesystem::path& file) const;
  std::vector<std::filesystem::path> outputs(const std::string& job) const;
  // What the job's outputs depended on when they were made. Not known if there is no such job.
  Dependencies dependencies(const std::string& job) const;
  // True if there are jobs of Quarry 0.1.1 or older, which did not record all that an output depends on. Their outputs
  // were written by Quarry, but are made again. Then they are no longer old.
  bool has_old() const;
  // Outputs of earlier runs in this start of the machine that nobody has synced. The caller of settled() must do it.
  std::vector<std::filesystem::path> unsynced() const;
  // The checksums that record() was given for the job's outputs; empty if none.
  std::vector<FileChecksum> checksums(const std::string& job) const;
  // `checksums`: of the outputs and what belongs to them, if they are known. Any thread. Errors: io.
  Result<void> record(const std::string& job, const std::string& hash,
                      const std::vector<std::filesystem::path>& outputs, const Dependencies& needs,
                      const std::vector<FileChecksum>& checksums = {});
  // To be called at the end. It says that all outputs recorded here are on disk, or that they may not be. This line is
  // itself on disk when the call returns. Errors: io.
  Result<void> settled(bool on_disk);
  static std::filesystem::path file_in(const std::filesystem::path& folder, const std::string& suffix);

 private:
  struct Output {
    std::string file;  // relative to the folder
    uint64_t bytes = 0;
    int64_t time = 0;
    bool unsure = false;  // nobody had waited for it to be on disk when the line was written
  };
  struct Entry {
    std::string hash;
    std::vector<Output> outputs;
    std::string start;     // the start of the machine in which it was written
    bool on_disk = true;   // somebody has waited for that
    bool believed = true;  // on disk, or at least not lost yet
    Dependencies needs;
    std::vector<FileChecksum> checksums;
    std::filesystem::path manifest;  // the file with the line
  };
  void take(const std::string& job, Entry&& read);
  Result<void> append(std::string line, bool sync);
  Output look(const std::filesystem::path& file) const;
  bool as_left(const Output& output) const;

  std::filesystem::path folder_, file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Output> files_;
  std::mutex mutex_;
};

}  // namespace quarry::app
