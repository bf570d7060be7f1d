// SPDX-License-Identifier: Apache-2.0
// dependencies.hpp - the files beside its inputs that a conversion depends on, as its readers said it
// (io::ReadOptions::accessed_files): textures, materials, buffers, headers, logs. Those that were looked for and not
// there count too: the same input may read differently when they appear.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace quarry::app {

struct Dependencies {
  std::vector<std::string> files;  // from the folder of the job's first input, sorted, each once
  // Of what is in them (XXH3, 128 bits, in hex), and of which of them are there; "": not known.
  std::string hash;
};

// Nanoseconds of the clock that the file system stamps files with.
int64_t file_clock_now();

// What `accessed_files` (absolute) holds now. `since`: when reading began; of a file that was changed after that nobody
// knows which content was read, so the hash is not known. Nor is it of more than 4096 files or 1 MiB of names, nor if
// `cancel` (may be null) is set meanwhile.
Dependencies dependencies_now(const std::filesystem::path& folder,
                              const std::vector<std::filesystem::path>& accessed_files, int64_t since,
                              const std::atomic<bool>* cancel);
// Whether they hold the same now.
bool unchanged(const Dependencies& before, const std::filesystem::path& folder, const std::atomic<bool>* cancel);

}  // namespace quarry::app
