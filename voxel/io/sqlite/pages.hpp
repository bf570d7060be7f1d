// SPDX-License-Identifier: Apache-2.0
// pages.hpp - reads the rows of an SQLite 3 database from its pages one by one, without its trees, so that rows survive
// the loss of inner pages, schema or end. It knows neither tables nor order, only rows as they are on their pages.
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

struct PageRow {
  bool of_index = false;  // of an index, or of a table WITHOUT ROWID; `rowid` is 0 then
  int64_t rowid = 0;
  uint32_t page = 0;
  std::vector<PageValue> values;
};

// Reads a leaf page of a table WITHOUT ROWID with a text and a whole number in each row. Returns the number after this
// text, or none if it is no such page, a row of it is not whole, or there is no such row.
std::optional<int64_t> integer_of_key(std::span<const uint8_t> page, std::string_view key);

// The bytes must outlive this object.
class DatabasePages {
 public:
  explicit DatabasePages(std::span<const uint8_t> database, const DatabaseJournals& journals = {});

  bool readable() const { return page_bytes_ != 0; }
  uint32_t pages() const { return count_; }
  uint32_t missing_pages() const { return missing_; }  // pages that the header counts but the file lacks
  bool free_list_whole() const { return free_list_whole_; }
  const JournalUse& log() const { return journals_.log(); }
  const JournalUse& journal() const { return journals_.journal(); }

  // Visits every row, in the order of pages. `each` returns false to end it. Returns how many cells were not rows. Work
  // and memory: a few times the bytes given, whatever their content.
  uint64_t for_rows(const std::function<bool(const PageRow&)>& each) const;

 private:
  std::span<const uint8_t> page(uint32_t number) const;  // empty if it is missing
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
