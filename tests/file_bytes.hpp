// SPDX-License-Identifier: Apache-2.0
// file_bytes.hpp - whole files in and out of tests, past everything of ours that reads and writes files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace quarry::test {

// Empty: not there, or not to be read.
template <class Bytes>
Bytes read_whole(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  Bytes bytes(size_t(in.tellg()), 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  return bytes;
}
inline std::vector<uint8_t> file_bytes(const std::filesystem::path& file) {
  return read_whole<std::vector<uint8_t>>(file);
}
inline std::string file_text(const std::filesystem::path& file) { return read_whole<std::string>(file); }

// Gives the file's name, for a command line.
inline std::string write_bytes(const std::filesystem::path& file, const std::vector<uint8_t>& bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  return file.string();
}

// What stands in a folder, folders too, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace quarry::test
