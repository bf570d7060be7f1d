// SPDX-License-Identifier: Apache-2.0
// pages.hpp - the rows of an SQLite 3 database read from its pages one by one, without its trees: what is left of a
// file whose inner pages, schema or end are gone. Not a database: it knows neither tables nor order, only rows, each as
// its page has it.
//
// Layout after "Database File Format" (sqlite.org/fileformat2.html). Bytes are never trusted. Rows on pages that the
// file says are free are not rows any more and are left out. What a program that was killed left beside the database
// counts (sqlite/journals.hpp), behind a damaged page of it too.
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

struct PageRow {
  bool of_index = false;  // of an index, or of a table WITHOUT ROWID; `rowid` is 0 then
  int64_t rowid = 0;
  uint32_t page = 0;
  std::vector<PageValue> values;
};

// Of a leaf page of a table WITHOUT ROWID that has a text and a whole number in each row: the number behind this text;
// none: no such page, a row of it is not whole, or no such row.
std::optional<int64_t> integer_of_key(std::span<const uint8_t> page, std::string_view key);

// The bytes must outlive it.
class DatabasePages {
 public:
  explicit DatabasePages(std::span<const uint8_t> database, const DatabaseJournals& journals = {});

  bool readable() const { return page_bytes_ != 0; }
  uint32_t pages() const { return count_; }
  uint32_t missing_pages() const { return missing_; }  // that the header counts and the file does not have
  bool free_list_whole() const { return free_list_whole_; }
  const JournalUse& log() const { return journals_.log(); }
  const JournalUse& journal() const { return journals_.journal(); }

  // Every row, in the order of pages. False from `each` ends it. Gives how many cells were not rows. Work and memory: a
  // few times the bytes given, whatever they say.
  uint64_t for_rows(const std::function<bool(const PageRow&)>& each) const;

 private:
  std::span<const uint8_t> page(uint32_t number) const;  // empty if it is not there
  void read_free_list();
  bool cell(std::span<const uint8_t> page, size_t at, bool leaf, PageRow* row, std::vector<uint8_t>* payload,
            uint64_t* budget) const;

  std::span<const uint8_t> database_;
  uint64_t given_bytes_ = 0;
  uint32_t page_bytes_ = 0, usable_ = 0, count_ = 0, missing_ = 0;
  bool free_list_whole_ = true;
  std::vector<bool> free_;
  JournalPages journals_;
};

}  // namespace quarry::io
