// SPDX-License-Identifier: Apache-2.0
// view.hpp - a database read as it is with what a killed program left beside it (sqlite/journals.hpp), without a byte
// written: SQLite itself would undo an unfinished edit in the file, wants to write even to read a log, and says nothing
// of a log that is damaged.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel/io/sqlite/db.hpp"
#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {

// The bytes beside are here because the pages point into them.
struct DatabaseView {
  std::vector<uint8_t> log, journal;
  JournalPages pages;
  uint32_t page_bytes = 0;
  uint64_t bytes = 0;  // of the database with them
};

// A connection that reads the file behind `fd`, of which it keeps a copy, through the view. Nobody may write to the
// file meanwhile.
Result<Db> open_view(int fd, DatabaseView view);

}  // namespace quarry::io
