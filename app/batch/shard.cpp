// SPDX-License-Identifier: Apache-2.0
// shard.cpp - shards by hashes of names: FNV-1a of 64 bits, its bits then mixed as in splitmix64.
#include "app/batch/shard.hpp"

#include <charconv>
#include <iterator>

#include "voxel/io/files/names.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

bool parse_shard(const std::string& text, Shard& shard) {
  auto& [number, count] = shard;
  const char *at = text.data(), *end = at + text.size();
  const auto [slash, first] = std::from_chars(at, end, number);
  if (first != std::errc() || slash == end || *slash != '/') return false;
  const auto [last, second] = std::from_chars(slash + 1, end, count);
  return second == std::errc() && last == end && number >= 1 && number <= count;
}

uint32_t shard_of(const Input& input, uint32_t count) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : input.relative.generic_string()) h = (h ^ uint8_t(c)) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return uint32_t((h ^ (h >> 31)) % count) + 1;
}

void leave_out_outputs(std::vector<Input>& inputs, const fs::path& folder, const std::string& extension) {
  const fs::path root = (fs::absolute(folder.empty() ? fs::path(".") : folder).lexically_normal() / "").parent_path();
  std::erase_if(inputs, [&](const Input& input) {
    if (io::extension_of(input.file) != extension) return false;
    const fs::path below = fs::absolute(input.file).lexically_normal().lexically_relative(root);
    // What found it lies above the folder if the name from there is longer.
    return !below.empty() && *below.begin() != ".." &&
           std::distance(below.begin(), below.end()) < std::distance(input.relative.begin(), input.relative.end());
  });
}

}  // namespace quarry::app
