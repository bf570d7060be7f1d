// SPDX-License-Identifier: Apache-2.0
// journals.hpp - what the files that a killed program left beside an SQLite 3 database change of it: the rollback
// journal's pages undo an edit that was not finished, then the write-ahead log's replace the database's up to its last
// whole edit. Nothing is written.
//
// Layouts after "Database File Format" (sqlite.org/fileformat2.html). Bytes are never trusted: every page of both has a
// checksum. SQLite stops at the first wrong page of a log without a word, and so gives a state from before edits that
// were acknowledged. Here that is seen: pages of a log are written in order, and an edit is begun only when the one
// before it is on disk, so whatever a kill or a power cut leaves half written is in the last edit. A wrong page with
// later edits behind it is damage.
//
// SQLite takes any log of that name for the database's own, whatever state of whatever database it was written for.
// Here the two must know each other (docs/world-file.md): a closed database has no log, and one that was open has the
// number that its log's pages have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::io {

// A number as SQLite's files have it: `count` bytes (at most four) from `at` on, the high ones first.
inline uint32_t big(std::span<const uint8_t> b, size_t at, size_t count) {
  uint32_t v = 0;
  for (size_t i = 0; i < count; ++i) v = v << 8 | b[at + i];
  return v;
}

// The files that may lie beside a database; empty: not there.
struct DatabaseJournals {
  std::span<const uint8_t> log;      // FILE-wal
  std::span<const uint8_t> journal;  // FILE-journal
};

// Key, in a table WITHOUT ROWID of text keys and whole numbers, of the number by which a database and its log know each
// other, and of one that the same table has always had: a page with this one is the table's, with the number or not.
constexpr std::string_view kLogNumberKey = "log_number", kLogNumberNeighbour = "overlap";

// Gives a page of the database as it is in the file; empty: it is not all there.
using PageOfFile = std::function<std::vector<uint8_t>(uint32_t number)>;

// What of a log or journal counted. Pages may be counted again each time that they were written.
struct JournalUse {
  uint64_t used = 0;     // pages taken instead of the database's
  uint64_t damaged = 0;  // pages that should have been, but whose checksums are wrong
  // What was done and what was not, in whole sentences; empty: there was nothing in it.
  std::vector<std::string> messages;
  std::string broken;      // why what it holds cannot be had whole; empty: it can, or nobody can tell
  std::string unfinished;  // log: where it ends in an edit that is not whole; empty: it does not
  bool foreign = false;    // of another database or state; not used
  // It was used, but neither it nor the database says whose it is: the contents must decide.
  bool unsure = false;
  bool nothing_new = false;  // log: looked for only if it should not count; all that it has, the database has
  bool headless = false;     // log: its header is damaged, so SQLite would not read it
};

class JournalPages {
 public:
  enum class BehindDamage : uint8_t { stop, go_on };  // what SQLite does; what salvage does
  JournalPages() = default;
  // `first`: the database's first page, or as much of it as there is (at least 100 bytes). The bytes beside must
  // outlive this; no page number above `most_pages` is believed. `page_of_file` is called during construction only.
  JournalPages(std::span<const uint8_t> first, uint32_t page_bytes, uint32_t pages_in_file, uint32_t most_pages,
               const DatabaseJournals& journals, BehindDamage behind, const PageOfFile& page_of_file);

  const std::map<uint32_t, std::span<const uint8_t>>& pages() const { return pages_; }
  uint32_t count() const { return count_; }                    // pages of the database as it is with them
  uint32_t counted_before_log() const { return before_log_; }  // what page 1 says of that, before the log
  const JournalUse& log() const { return log_; }
  const JournalUse& journal() const { return journal_; }
  // The database was closed, so that it has no log: what its header says, before the log.
  bool closed() const { return closed_; }

 private:
  struct LogSigns;
  void undo_unfinished(std::span<const uint8_t> journal);
  void take_log(std::span<const uint8_t> log, BehindDamage behind, const PageOfFile& page_of_file);
  // "": it is not, or nobody can tell (unsure).
  std::string why_foreign(const LogSigns& signs, bool nothing_new, const PageOfFile& page_of_file);
  std::span<const uint8_t> first() const;  // page 1; empty if it is not all there

  std::span<const uint8_t> database_first_;
  uint32_t page_bytes_ = 0, count_ = 0, most_pages_ = 0, before_log_ = 0;
  std::map<uint32_t, std::span<const uint8_t>> pages_;
  bool closed_ = false;
  JournalUse log_, journal_;
};

// Bytes of each page of the database whose header this is (at least 100 bytes); 0: it does not say.
uint32_t database_page_bytes(std::span<const uint8_t> header);

}  // namespace quarry::io
