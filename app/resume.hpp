// resume.hpp - what `quarry convert --resume` remembers: which outputs were made of what. One JSON document a line in a file beside the
// outputs, `.quarry-resume` (or `.quarry-resume-I-of-N` of a shard, so that no two machines write into one file); a later line for the same
// job replaces an earlier one, and a last line that is cut short is none.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/inputs.hpp"
#include "hashgrid/result.hpp"

namespace quarry::app {

// A checksum (XXH3, 128 bits, in hex) of `options`, and of the names and contents of the inputs and of the files that they name (materials and
// textures of .obj, .mtl, .gltf and .dae). Errors: those of opening.
Result<std::string> content_hash(const std::vector<Input>& inputs, const std::string& options);

class ResumeManifest {
 public:
  // Reads all manifests in `folder`; `suffix` ("", "-2-of-7") names the one to be written.
  ResumeManifest(std::filesystem::path folder, const std::string& suffix);

  // True if the job's last outputs were made with this hash and are as they were left (sizes and times).
  bool unchanged(const std::string& job, const std::string& hash) const;
  // True if what is in this file is what this program wrote there: it may be replaced.
  bool wrote(const std::filesystem::path& file) const;
  std::vector<std::filesystem::path> outputs(const std::string& job) const;
  // Any thread. Errors: io.
  Result<void> record(const std::string& job, const std::string& hash, const std::vector<std::filesystem::path>& outputs);

 private:
  struct Output {
    std::string file;  // from the folder
    uint64_t bytes = 0;
    int64_t time = 0;
  };
  struct Entry {
    std::string hash;
    std::vector<Output> outputs;
  };
  Output look(const std::filesystem::path& file) const;
  bool as_left(const Output& output) const;

  std::filesystem::path folder_, file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Output> files_;
  std::mutex mutex_;
};

}  // namespace quarry::app
