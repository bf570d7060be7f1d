// SPDX-License-Identifier: Apache-2.0
// temporary_name.hpp - names for files that are written next to their target and renamed when they are whole, and the
// removal of those that killed programs left.
//
// ".FILE.new-MACHINE-PID-N": nothing shows or converts it. Its owner holds flock() on it until it has its own name. So
// a free lock means that the owner is gone, whatever process has its number now. MACHINE identifies this start of this
// machine. Only for that start is a free lock enough. Otherwise (a folder that several machines share, a restarted
// machine) the file must also be a day old. Names too long for the file system have only a prefix of FILE.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// This start of this machine, in 8 hex digits.
const std::string& machine_start();

// Returns the next name for `file`, in its folder. `kind` is "new", "regions" for a temporary world, "set" for a mark,
// or "kept" for the sidecar that it keeps (sidecar_marker.hpp).
std::filesystem::path temporary_name(const std::filesystem::path& file, const char* kind = "new");

struct TemporaryHandle {
  std::filesystem::path path;
  int fd = -1;  // locked until closed
};
// Makes a new file for reading and writing under such a name. The caller closes it, and renames or removes it. Errors:
// io, not_found (no such folder).
Result<TemporaryHandle> make_temporary_file(const std::filesystem::path& file, mode_t mode, const char* kind = "new");
// Does the same for a folder.
Result<TemporaryHandle> make_temporary_folder(const std::filesystem::path& folder);

// Removes the files that dead programs left in a folder under such names. Returns how many. `repaired` (may be null)
// gets a sentence for each repaired pair of files.
size_t remove_stale_temporaries(const std::filesystem::path& folder, std::vector<std::string>* repaired = nullptr);

}  // namespace quarry::io
