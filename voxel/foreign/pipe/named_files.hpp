// SPDX-License-Identifier: Apache-2.0
// named_files.hpp - the files that a mesh file names (textures, buffers): where they may lie, and which were asked for,
// so that who converts again knows what the result depends on.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace quarry::mesh_reader {

// One mesh file's. One thread.
class ReferencedFiles {
 public:
  explicit ReferencedFiles(std::filesystem::path mesh_file) : mesh_file_(std::move(mesh_file)) {}

  // The first regular file among: the reference percent-decoded (with '\' as '/'), the same as it is written, each from
  // the mesh file's folder, then its last part there and in a folder "textures" beside it. nullopt: there is none.
  std::optional<std::filesystem::path> find(const std::string& reference);
  // Whether `place` is a regular file. It is asked for either way: if it appears later, the same mesh file may read
  // differently.
  bool is_there(const std::filesystem::path& place);
  // Says that `place` was opened, or was looked for, by a library.
  void note(const std::filesystem::path& place);
  // In the order of first asking, absolute, each once, without the mesh file itself.
  const std::vector<std::filesystem::path>& accessed_files() const { return accessed_files_; }

 private:
  std::filesystem::path mesh_file_;
  std::vector<std::filesystem::path> accessed_files_;
};

// %41 becomes A; what is no such code stays.
std::string percent_decoded(const std::string& text);

}  // namespace quarry::mesh_reader
