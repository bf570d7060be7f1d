// SPDX-License-Identifier: Apache-2.0
// named_files.cpp - the places that a name in a mesh file may mean: as written, percent-decoded, with backslashes as
// slashes, in the mesh's folder or in its folder of textures.
#include "voxel/foreign/pipe/named_files.hpp"

#include <algorithm>

namespace quarry::mesh_reader {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostFiles = 4096;  // a file that names more is damaged or hostile, but its result is still used

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

std::string with_slashes(std::string text) {
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

}  // namespace

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool code =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += code ? char(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (code) i += 2;
  }
  return out;
}

void ReferencedFiles::note(const fs::path& place) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(place, ignored).lexically_normal();
  if (whole == fs::absolute(mesh_file_, ignored).lexically_normal() || accessed_files_.size() >= kMostFiles) return;
  if (std::find(accessed_files_.begin(), accessed_files_.end(), whole) == accessed_files_.end())
    accessed_files_.push_back(whole);
}

bool ReferencedFiles::is_there(const fs::path& place) {
  note(place);
  std::error_code ignored;
  return fs::is_regular_file(place, ignored);
}

std::optional<fs::path> ReferencedFiles::find(const std::string& reference) {
  if (reference.empty() || reference.find('\0') != std::string::npos) return std::nullopt;
  const fs::path folder = mesh_file_.parent_path(), decoded = with_slashes(percent_decoded(reference)),
                 written = reference;
  for (const fs::path& place :
       {folder / decoded, folder / written, folder / decoded.filename(), folder / "textures" / decoded.filename()})
    if (is_there(place)) return place;
  return std::nullopt;
}

}  // namespace quarry::mesh_reader
