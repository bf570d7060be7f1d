// SPDX-License-Identifier: Apache-2.0
// temporary_name.hpp - names for what is written beside its place and renamed when it is whole, and how what killed
// programs left of that goes.
//
// ".FILE.new-MACHINE-PID-N": nobody shows or converts it. Its owner holds flock() on it until it has its own name, so a
// lock that can be had means that the owner is gone, whatever runs under its number now. MACHINE stands for this start
// of this machine: only there is the lock believed at once. Elsewhere (a folder that several machines share, a machine
// that was started anew) it must be a day old as well. Names that would be too long for the file system have only the
// prefix of FILE.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// This start of this machine, in 8 hex digits.
const std::string& machine_start();

// The next name for `file`, in its folder. `kind`: "new"; "regions" for a world that is only passed through; "set" for
// a mark, and "kept" for what it keeps (sidecar_marker.hpp).
std::filesystem::path temporary_name(const std::filesystem::path& file, const char* kind = "new");

struct TemporaryHandle {
  std::filesystem::path path;
  int fd = -1;  // locked until closed
};
// A new file for reading and writing under such a name. Errors: io, not_found (no such folder). The caller closes and
// renames or removes.
Result<TemporaryHandle> make_temporary_file(const std::filesystem::path& file, mode_t mode, const char* kind = "new");
// The same for a folder.
Result<TemporaryHandle> make_temporary_folder(const std::filesystem::path& folder);

// Removes from a folder what programs that are gone left there under such names; gives how many. `repaired` (may be
// null) gets a sentence for each pair of files that was put right.
size_t remove_stale_temporaries(const std::filesystem::path& folder, std::vector<std::string>* repaired = nullptr);

}  // namespace quarry::io
