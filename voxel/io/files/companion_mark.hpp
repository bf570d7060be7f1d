// SPDX-License-Identifier: Apache-2.0
// companion_mark.hpp - two files that are understood together (an .obj and its .mtl) get their names one after the other. While that lasts, a small
// file beside them, ".FILE.set-MACHINE-PID-N" (temporary_name.hpp), says which they are. Whoever finds it and nobody who holds its lock knows
// that the writer was killed between the two, and puts the companion back that was there before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace quarry::io {

struct CompanionPair {
  std::filesystem::path companion_temporary, companion, file_temporary, file;
};

// One thread.
class CompanionMark {
 public:
  CompanionMark() = default;
  CompanionMark(const CompanionMark&) = delete;
  CompanionMark& operator=(const CompanionMark&) = delete;
  ~CompanionMark();
  // Before either has its name. `replaces`: the companion that is there is kept under a second name. `on_disk`: a power cut must leave the mark, too.
  // Errors: io.
  Result<void> begin(const CompanionPair& pair, bool replaces, bool on_disk);
  // Both have their names: what was kept goes.
  void end();
  // The companion may have its name already, the file has not: what was there before comes back. Errors: io; then the mark stays for the next run.
  Result<void> take_back();

  // What a killed program left: puts it right and removes the mark, whose lock the caller has. What is to be said of it; "" if both files had
  // their names already, or neither.
  static std::string mend(const std::filesystem::path& mark);

 private:
  // The mark's text: fields that end in a zero byte, which no name has.
  struct Fields {
    std::filesystem::path companion, kept, file;
    uint64_t companion_number = 0, file_number = 0;  // inodes of the new ones: whether a name is theirs already
    std::string text() const;
    static std::optional<Fields> read(const std::filesystem::path& mark);
    bool new_companion() const;  // it has its name
    int put_back() const;        // what was kept comes back over the new companion, or into its empty place; 0 or an errno
  };
  Fields fields_;
  std::filesystem::path mark_;  // empty: there is none
  int fd_ = -1;
};

}  // namespace quarry::io
