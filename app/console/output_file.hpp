// SPDX-License-Identifier: Apache-2.0
// output_file.hpp - where commands may write: never over an existing file unless told to, never over their own input,
// never in place of anything that is not a file. The writers check again at the end (voxel/io/files/atomic_file.hpp).
// The checks here come before any work.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

namespace quarry::app {

// Removes the files that killed runs left in the output's folder (temporary_name.hpp), and reports it on stderr. Once
// for each folder.
void remove_left_behind(const std::filesystem::path& output);
// Calls remove_left_behind(). Refuses: conflict for an existing output or sidecar file without `overwrite`;
// invalid_argument for a directory; io for a missing parent directory, a device, a FIFO or a socket.
Result<void> check_output(const std::filesystem::path& output, bool overwrite);
// A message for the user about sidecar files that are lost or renamed when that world is replaced or made: edits of a
// world whose log is damaged, or the name under which a foreign log is kept. "": nothing.
std::string replaced_sidecars(const std::filesystem::path& output);

// A report (--report) may go into a new file, an empty one, or over a report that Quarry wrote. It may also go into a
// place that takes text without being replaced: a character device, a FIFO that has a reader, this program's own
// streams. Nothing else is touched.
//
// The first line marks a report as one that Quarry wrote.
constexpr const char* kReportHead = "{\n  \"quarry_report\": ";
// `used`: inputs and outputs of the run. A file that is written beside them must not be one of them, under any name.
// `option` names it in the message. Errors: invalid_argument.
Result<void> check_apart(const std::filesystem::path& file, std::span<const std::filesystem::path> used,
                         const char* option);
// `used`: as in check_apart(). The report must not be one of them, under any name. Errors: conflict, io,
// invalid_argument.
Result<void> check_report(const std::filesystem::path& report, std::span<const std::filesystem::path> used);
// Checks again and writes the report. A file is written whole or not at all. `text` begins with kReportHead.
Result<void> write_report(const std::filesystem::path& report, const std::string& text);

}  // namespace quarry::app
