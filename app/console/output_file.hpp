// SPDX-License-Identifier: Apache-2.0
// output_file.hpp - where commands may write: never over a file that is there unless told so, never over their own
// input, never in place of what is no file. The writers look again at the end (voxel/io/files/atomic_file.hpp); this is
// before any work.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

namespace quarry::app {

// Removes what killed runs left in the output's folder (temporary_name.hpp), and says so on stderr; once for each
// folder.
void remove_left_behind(const std::filesystem::path& output);
// Does that. Refuses (conflict) an existing file without `overwrite`, for the output or
// what is written beside it, (invalid_argument) a directory or a missing parent directory, (io) a device, FIFO or
// socket.
Result<void> check_output(const std::filesystem::path& output, bool overwrite);
// What replacing or making that world takes away beside it, for people to hear: edits of a world whose log is damaged;
// or under which name a log that is not its own is kept. "": nothing.
std::string replaced_sidecars(const std::filesystem::path& output);

// A report (--report) may go into a new file, into an empty one, over a report of ours, and into what takes text
// without being replaced: a character device, a FIFO that somebody reads, this program's own streams. Nothing else is
// touched.
//
// The first line by which a report of ours is known.
constexpr const char* kReportHead = "{\n  \"quarry_report\": ";
// `used`: inputs and outputs of the run, which it must not be, by whatever name. Errors: conflict, io,
// invalid_argument.
Result<void> check_report(const std::filesystem::path& report, std::span<const std::filesystem::path> used);
// Looks again, and writes it: a file whole or not at all. `text` begins with kReportHead.
Result<void> write_report(const std::filesystem::path& report, const std::string& text);

}  // namespace quarry::app
