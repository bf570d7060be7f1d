// SPDX-License-Identifier: Apache-2.0
// names.cpp - folder, lower-case extension and sidecar of a file: rules of names alone, without access to the disk.
#include "voxel/io/files/names.hpp"

#include <algorithm>

#include "base/control_characters.hpp"

namespace quarry::io {

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

std::string extension_of(const std::filesystem::path& file) {
  std::string e = file.extension().string();
  if (!e.empty()) e.erase(0, 1);
  std::transform(e.begin(), e.end(), e.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return e;
}

std::filesystem::path sidecar_of(const std::filesystem::path& file) {
  const std::string extension = extension_of(file);
  if (extension != "obj" && extension != "raw") return {};
  // An .obj names its materials file in a line of text, so a name that would end that line is changed.
  std::filesystem::path out = file.parent_path() / replace_control_characters(file.filename().string());
  return out.replace_extension(extension == "obj" ? ".mtl" : ".nhdr");
}

}  // namespace quarry::io
