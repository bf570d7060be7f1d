// sqlite_pages.hpp - the rows of an SQLite 3 database read from its pages one by one, without its trees: what is left of a file whose
// inner pages, schema or end are gone. Not a database: it knows neither tables nor order, only rows, each as its page has it.
//
// Layouts after "Database File Format" (sqlite.org/fileformat2.html): the database, the rollback journal, the write-ahead log. Bytes are
// never trusted. Rows on pages that the file says are free are not rows any more and are left out. What a program that was killed left
// beside the database counts as SQLite would have it: the journal's pages, each with its checksum, undo a change that was not finished;
// then the log's replace the database's up to its last whole commit. Unlike SQLite, this goes on behind a damaged page of either.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

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

// The files that may lie beside a database; empty: not there.
struct DatabaseCompanions {
  std::span<const uint8_t> log;      // FILE-wal
  std::span<const uint8_t> journal;  // FILE-journal
};

// What of a companion counted. Pages may be counted again each time that they were written.
struct CompanionUse {
  uint64_t used = 0;            // pages taken instead of the database's
  uint64_t damaged = 0;         // pages that should have been, but whose checksums are wrong
  std::vector<std::string> said;  // what was done and what was not, in whole sentences; empty: there was nothing in it
};

// The bytes must outlive it.
class DatabasePages {
 public:
  explicit DatabasePages(std::span<const uint8_t> database, const DatabaseCompanions& beside = {});

  bool readable() const { return page_bytes_ != 0; }
  uint32_t pages() const { return count_; }
  uint32_t missing_pages() const { return missing_; }  // that the header counts and the file does not have
  bool free_list_whole() const { return free_list_whole_; }
  const CompanionUse& log() const { return log_; }
  const CompanionUse& journal() const { return journal_; }

  // Every row, in the order of pages. False from `each` ends it. Gives how many cells were not rows. Work and memory: a few times the
  // bytes given, whatever they say.
  uint64_t for_rows(const std::function<bool(const PageRow&)>& each) const;

 private:
  std::span<const uint8_t> page(uint32_t number) const;  // empty if it is not there
  void undo_unfinished(std::span<const uint8_t> journal);
  void take_log(std::span<const uint8_t> log);
  void read_free_list();
  bool cell(std::span<const uint8_t> page, size_t at, bool leaf, PageRow* row, std::vector<uint8_t>* payload, uint64_t* budget) const;

  std::span<const uint8_t> database_;
  uint64_t given_bytes_ = 0;
  uint32_t page_bytes_ = 0, usable_ = 0, count_ = 0, missing_ = 0;
  bool free_list_whole_ = true;
  std::vector<bool> free_;
  std::map<uint32_t, std::span<const uint8_t>> replaced_;  // pages that a companion has instead
  CompanionUse log_, journal_;
};

}  // namespace quarry::io
