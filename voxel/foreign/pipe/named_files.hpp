// SPDX-License-Identifier: Apache-2.0
// named_files.hpp - the files that a mesh file names (textures, buffers): their possible places, and those that were
// asked for. A later conversion needs the list to know what the result depends on.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace quarry::mesh_reader {

// The named files of one mesh file. Not thread-safe.
class ReferencedFiles {
 public:
  explicit ReferencedFiles(std::filesystem::path mesh_file) : mesh_file_(std::move(mesh_file)) {}

  // Returns the first regular file among these: the reference percent-decoded (with '\' as '/'), and as written, both
  // relative to the mesh file's folder; then its last part in that folder and in "textures" there. nullopt if there is
  // none.
  std::optional<std::filesystem::path> find(const std::string& reference);
  // Whether `place` is a regular file. It is recorded either way: if the file appears later, the same mesh file may
  // give another result.
  bool is_there(const std::filesystem::path& place);
  // Records that a library opened or looked for `place`.
  void note(const std::filesystem::path& place);
  // The absolute paths, each once, in the order of first access, without the mesh file itself.
  const std::vector<std::filesystem::path>& accessed_files() const { return accessed_files_; }

 private:
  std::filesystem::path mesh_file_;
  std::vector<std::filesystem::path> accessed_files_;
};

// Turns %41 into A. Text that is no such code is kept.
std::string percent_decoded(const std::string& text);

}  // namespace quarry::mesh_reader
