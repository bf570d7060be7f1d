// file_bytes.hpp - whole files into memory, and how the operating system's refusals become errors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/progress.hpp"

namespace quarry::io {

// The first `limit` bytes at most. Errors: not_found, io (a folder, no permission), out_of_memory. Messages do not name the file.
Result<std::vector<uint8_t>> read_file_head(const std::filesystem::path& file, size_t limit);
// All of it. Also: unsupported if it is longer than `limit`.
Result<std::vector<uint8_t>> read_file(const std::filesystem::path& file, uint64_t limit);
// The same as a format reader's first step, which `progress` is told. Also: cancelled.
Result<std::vector<uint8_t>> read_input(const std::filesystem::path& file, uint64_t limit, const Progress& progress);
// `errno` of a failed call as an Error: not_found, conflict, out_of_memory or io. `what` is what was tried: "cannot open it".
Error error_from_errno(const std::string& what, int number);

}  // namespace quarry::io
