// SPDX-License-Identifier: Apache-2.0
// view.hpp - reads a database together with the journals of a killed program (sqlite/journals.hpp) without writing a
// byte. SQLite itself would undo an unfinished edit in the file, needs to write even to read a log, and does not report
// a damaged log. What is written to a view may stay in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel/io/sqlite/db.hpp"
#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {

struct DatabaseView {
  JournalPages pages;
  uint32_t page_bytes = 0;
  uint64_t bytes = 0;  // of the database with the journals applied
};

// What becomes of pages that are written: they are refused, or the connection alone sees them, and their memory lives
// as long as it does. For that its journal_mode must be MEMORY.
enum class ViewWrites : uint8_t { refused, in_memory };

// Opens a connection that reads the file of `fd` through the view. It keeps a copy of `fd`. Nobody may write to the
// file meanwhile.
Result<Db> open_view(int fd, DatabaseView view, ViewWrites writes = ViewWrites::refused);

}  // namespace quarry::io
