// SPDX-License-Identifier: Apache-2.0
// dependencies.hpp - the files other than its inputs that a conversion depends on, as its readers report them
// (io::ReadOptions::accessed_files): textures, materials, buffers, headers, logs. Files that were looked for but not
// found count too, because the same input may read differently when they appear.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace quarry::app {

struct Dependencies {
  std::vector<std::string> files;  // relative to the folder of the job's first input, sorted, each once
  // Hash of their contents (XXH3, 128 bits, in hex) and of which of them exist; "": not known.
  std::string hash;
};

// Now, in nanoseconds of the clock that the file system stamps files with: no later change of a file has an earlier
// stamp. (An earlier change can have a later one, by a tick: Linux since 6.13 stamps some with the exact time.)
int64_t file_clock_now();

// The present content of `accessed_files` (absolute). `since` is the time when reading began. For a file changed after
// that, nobody knows which content was read, so the hash is not known. It is also not known for more than 4096 files or
// 1 MiB of names, and if `cancel` (may be null) is set meanwhile.
Dependencies dependencies_now(const std::filesystem::path& folder,
                              const std::vector<std::filesystem::path>& accessed_files, int64_t since,
                              const std::atomic<bool>* cancel);
// Whether the files' contents are still the same.
bool unchanged(const Dependencies& before, const std::filesystem::path& folder, const std::atomic<bool>* cancel);

}  // namespace quarry::app
