// SPDX-License-Identifier: Apache-2.0
// journals.hpp - applies the files that a killed program left with an SQLite 3 database: the rollback journal's pages
// undo an unfinished edit, then the write-ahead log's pages replace the database's up to its last whole edit. Nothing
// is written.
//
// Layouts follow "Database File Format" (sqlite.org/fileformat2.html). Bytes are never trusted: every page of both has
// a checksum. SQLite silently stops at the first wrong page of a log, and so returns a state from before acknowledged
// edits. This code detects that. Pages of a log are written in order, and an edit begins only when the previous one is
// on disk. So anything that a kill or a power cut leaves half written is in the last edit. A wrong page with later
// edits after it is damage.
//
// SQLite takes any log of that name for the database's own, whatever state of whatever database it was written for.
// Here the two must match (docs/world-file.md): a closed database has no log, and one that was open has the number that
// its log's pages have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/io/sqlite/byte_source.hpp"

namespace quarry::io {

// Reads a number in the format of SQLite's files: `count` bytes (at most four) from `at` on, the high ones first.
inline uint32_t big(std::span<const uint8_t> b, size_t at, size_t count) {
  uint32_t v = 0;
  for (size_t i = 0; i < count; ++i) v = v << 8 | b[at + i];
  return v;
}

// The files that may accompany a database; empty if missing.
struct DatabaseJournals {
  ByteSource log;      // FILE-wal
  ByteSource journal;  // FILE-journal
};

// Two keys in a table WITHOUT ROWID of text keys and whole numbers. The first is of the number that links a database
// and its log. The table has always had the second, so a page with it belongs to the table, with or without the number.
constexpr std::string_view kLogNumberKey = "log_number", kLogNumberNeighbour = "overlap";

// Returns a page of the database as it is in the file; empty if it is incomplete.
using PageOfFile = std::function<std::vector<uint8_t>(uint32_t number)>;

// The parts of a log or journal that were used. A page may be counted once for each time that it was written.
struct JournalUse {
  uint64_t used = 0;     // pages taken instead of the database's
  uint64_t damaged = 0;  // pages that should have been used, but have wrong checksums
  // What was used and what was not, in whole sentences; empty if there was nothing in it.
  std::vector<std::string> messages;
  std::string broken;      // why it cannot be read whole; empty if it can, or if that is unknown
  std::string unfinished;  // log: where it ends in an edit that is not whole; empty if it does not
  bool foreign = false;    // of another database or state; not used
  // It was used, but neither it nor the database tells its owner, so the contents must decide.
  bool unsure = false;
  bool nothing_new = false;  // log: the database has all its pages; checked only if the log should not count
  bool headless = false;     // log: its header is damaged, so SQLite would not read it
};

// Memory: some pages, and 50 bytes for each that the journals have.
class JournalPages {
 public:
  enum class BehindDamage : uint8_t { stop, go_on };  // as SQLite does; as salvage does
  JournalPages() = default;
  // Where in the log or the journal a page begins.
  struct Place {
    bool in_log = false;
    uint64_t at = 0;
  };
  // `first` is the database's first page, or as much of it as exists (at least 100 bytes). What cannot be read of the
  // journals is taken for damaged: whoever made them asks them whether there was an error. Page numbers above
  // `most_pages` are rejected. `first` and `page_of_file` are used only during construction.
  JournalPages(std::span<const uint8_t> first, uint32_t page_bytes, uint32_t pages_in_file, uint32_t most_pages,
               const DatabaseJournals& journals, BehindDamage behind, const PageOfFile& page_of_file);

  const std::map<uint32_t, Place>& pages() const { return pages_; }
  // Reads a part of such a page, from its byte `from` on. False: it cannot be read.
  bool read(Place page, uint32_t from, std::span<uint8_t> to) const {
    return (page.in_log ? journals_.log : journals_.journal).read(page.at + from, to);
  }
  uint32_t count() const { return count_; }                    // pages of the database with the journals applied
  uint32_t counted_before_log() const { return before_log_; }  // the count by page 1, before the log
  const JournalUse& log() const { return log_; }
  const JournalUse& journal() const { return journal_; }
  // Whether the database was closed, so that it has no log, by its header before the log.
  bool closed() const { return closed_; }

 private:
  struct LogSigns;
  void undo_unfinished();
  void take_log(BehindDamage behind, const PageOfFile& page_of_file);
  // Why the log is foreign; "" if it is not, or if that is unknown (unsure).
  std::string why_foreign(const LogSigns& signs, bool nothing_new, const PageOfFile& page_of_file);

  DatabaseJournals journals_;
  std::span<const uint8_t> database_first_;
  std::vector<uint8_t> first_;  // page 1, before the log; empty if it is incomplete
  uint32_t page_bytes_ = 0, count_ = 0, most_pages_ = 0, before_log_ = 0;
  std::map<uint32_t, Place> pages_;
  bool closed_ = false;
  JournalUse log_, journal_;
};

// The bytes per page of the database with this header (at least 100 bytes); 0 if the header does not tell.
uint32_t database_page_bytes(std::span<const uint8_t> header);

}  // namespace quarry::io
