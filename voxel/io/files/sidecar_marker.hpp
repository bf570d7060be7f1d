// SPDX-License-Identifier: Apache-2.0
// sidecar_marker.hpp - two files that are understood together (an .obj and its .mtl) get their names one after the
// other. While that lasts, a small file beside them, ".FILE.set-MACHINE-PID-N" (temporary_name.hpp), says which they
// are. Whoever finds it and nobody who holds its lock knows that the writer was killed between the two, and puts the
// sidecar back that was there before.
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

// One thread.
class SidecarMarker {
 public:
  SidecarMarker() = default;
  SidecarMarker(const SidecarMarker&) = delete;
  SidecarMarker& operator=(const SidecarMarker&) = delete;
  ~SidecarMarker();
  // Before either has its name. `replaces`: the sidecar that is there is kept under a second name. `on_disk`: a power
  // cut must leave the mark, too.
  // Errors: io.
  Result<void> begin(const SidecarPair& pair, bool replaces, bool on_disk);
  // Both have their names: what was kept goes.
  void end();
  // The sidecar may have its name already, the file has not: what was there before comes back. Errors: io; then the
  // mark stays for the next run.
  Result<void> rollback();

  // What a killed program left: puts it right and removes the mark, whose lock the caller has. What is to be message of
  // it; "" if both files had their names already, or neither.
  static std::string repair(const std::filesystem::path& mark);

 private:
  // The mark's text: fields that end in a zero byte, which no name has.
  struct Fields {
    std::filesystem::path sidecar, kept, file;
    uint64_t sidecar_number = 0, file_number = 0;  // inodes of the new ones: whether a name is theirs already
    std::string text() const;
    static std::optional<Fields> read(const std::filesystem::path& mark);
    bool new_sidecar() const;  // it has its name
    // What was kept comes back over the new sidecar, or into its empty place; 0 or an errno.
    int put_back() const;
  };
  Fields fields_;
  std::filesystem::path mark_;  // empty: there is none
  int fd_ = -1;
};

}  // namespace quarry::io
