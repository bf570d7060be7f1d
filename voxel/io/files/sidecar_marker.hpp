// SPDX-License-Identifier: Apache-2.0
// sidecar_marker.hpp - two files that belong together (an .obj and its .mtl) get their names one after the other.
// During that time a small file in their folder, ".FILE.set-MACHINE-PID-N" (temporary_name.hpp), names them. If this
// mark exists and nobody holds its lock, the writer was killed between the two. The process that finds it restores the
// old sidecar.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace quarry::io {

struct SidecarPair {
  std::filesystem::path sidecar_temporary, sidecar, file_temporary, file;
};

// Not thread-safe.
class SidecarMarker {
 public:
  SidecarMarker() = default;
  SidecarMarker(const SidecarMarker&) = delete;
  SidecarMarker& operator=(const SidecarMarker&) = delete;
  ~SidecarMarker();
  // Call it before either file has its name. If `replaces`, the existing sidecar is kept under a second name. If
  // `on_disk`, the mark must survive a power cut, too.
  // Errors: io.
  Result<void> begin(const SidecarPair& pair, bool replaces, bool on_disk);
  // Call it when both have their names. It removes the kept sidecar.
  void end();
  // Restores the old sidecar. The new sidecar may have its name already, but the file must not. Errors: io; then the
  // mark stays for the next run.
  Result<void> rollback();

  // Repairs what a killed program left, and removes the mark, whose lock the caller holds. Returns a message about it;
  // "" if both files had their names already, or neither.
  static std::string repair(const std::filesystem::path& mark);

 private:
  // The mark's text. Its fields end in a zero byte, which no name contains.
  struct Fields {
    std::filesystem::path sidecar, kept, file;
    uint64_t sidecar_number = 0, file_number = 0;  // inodes of the new files, which tell whether they have their names
    std::string text() const;
    static std::optional<Fields> read(const std::filesystem::path& mark);
    bool new_sidecar() const;  // whether it has its name
    // Moves the kept sidecar over the new one, or to its free name. Returns 0 or an errno.
    int put_back() const;
  };
  Fields fields_;
  std::filesystem::path mark_;  // empty if there is none
  int fd_ = -1;
};

}  // namespace quarry::io
