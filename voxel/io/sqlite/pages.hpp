// SPDX-License-Identifier: Apache-2.0
// pages.hpp - reads the rows of an SQLite 3 database from its pages one by one, without its trees, so that rows survive
// the loss of inner pages, schema or end. It knows neither tables nor order, only rows as they are on their pages. It
// holds a page and a row at a time, so the database need not fit memory.
//
// Layout after "Database File Format" (sqlite.org/fileformat2.html). Bytes are never trusted. Rows on pages that the
// file marks as free are no longer valid and are left out. The journals that a killed program left are used
// (sqlite/journals.hpp), even after a damaged page of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {

struct PageValue {
  enum class Kind : uint8_t { null, integer, real, text, blob };
  Kind kind = Kind::null;
  int64_t integer = 0;
  double real = 0;
  std::span<const uint8_t> bytes;  // text, blob; valid during the call
};

// Where a row is: the number of its page, and which of that page's cells it is.
struct RowPlace {
  uint32_t page = 0, cell = 0;
};

struct PageRow {
  bool of_index = false;  // of an index, or of a table WITHOUT ROWID; `rowid` is 0 then
  int64_t rowid = 0;
  RowPlace place;
  std::vector<PageValue> values;
};

// Reads a leaf page of a table WITHOUT ROWID with a text and a whole number in each row. Returns the number after this
// text, or none if it is no such page, a row of it is not whole, or there is no such row.
std::optional<int64_t> integer_of_key(std::span<const uint8_t> page, std::string_view key);

// For one thread at a time. What cannot be read counts as missing: whoever made the sources asks them whether there was
// an error. Memory: a bit for each page and some pages, and that of JournalPages.
class DatabasePages {
 public:
  explicit DatabasePages(ByteSource database, const DatabaseJournals& journals = {});

  bool readable() const { return page_bytes_ != 0; }
  uint64_t given_bytes() const { return given_bytes_; }  // of the database and its journals
  uint32_t pages() const { return count_; }
  uint32_t missing_pages() const { return missing_; }  // pages that the header counts but the file lacks
  bool free_list_whole() const { return free_list_whole_; }
  const JournalUse& log() const { return journals_.log(); }
  const JournalUse& journal() const { return journals_.journal(); }

  // Visits every row, in the order of pages. `each` returns false to end it. Returns how many cells were not rows.
  // Work: a few times the bytes given, whatever their content. Memory: the longest row.
  uint64_t for_rows(const std::function<bool(const PageRow&)>& each) const;
  // Shows a row that for_rows() has visited again. False: it is not there any more.
  bool with_row(RowPlace place, const std::function<void(const PageRow&)>& shown) const;

 private:
  using Page = std::vector<uint8_t>;
  bool load(uint32_t number, Page* page) const;  // false if it is missing
  void read_free_list();
  // The cells of a page: their number, and where their places are listed. None if it has no rows.
  struct Cells {
    bool of_index = false, leaf = true;
    uint32_t count = 0;
    size_t pointers = 0;
  };
  std::optional<Cells> cells_of(const Page& page, uint32_t number) const;
  bool fits(const Cells& cells) const { return cells.pointers + size_t(cells.count) * 2 <= usable_; }
  // Reads the cell that `row->place` says. Its values point into the page or the payload.
  bool read_cell(const Page& page, const Cells& cells, PageRow* row, Page* payload, uint64_t* budget) const;

  ByteSource database_;
  std::vector<uint8_t> first_;  // the first page, or as much of it as exists
  uint64_t given_bytes_ = 0;
  uint32_t page_bytes_ = 0, usable_ = 0, count_ = 0, missing_ = 0;
  bool free_list_whole_ = true;
  std::vector<bool> free_;
  JournalPages journals_;
};

}  // namespace quarry::io
