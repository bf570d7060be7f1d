// SPDX-License-Identifier: Apache-2.0
// journals.cpp - walks journal and log page by page with their checksums, and finds their owner and the end of the last
// whole edit.
#include "voxel/io/sqlite/journals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "voxel/io/sqlite/pages.hpp"

namespace quarry::io {
namespace {

constexpr size_t kLogHeaderBytes = 32, kFrameHeaderBytes = 24, kJournalHeaderBytes = 28;
constexpr char kDatabaseMagic[] = "SQLite format 3";  // with the 0 at its end
constexpr uint8_t kJournalMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr char kClosed[] = "the file was closed since it was last edited, and has no log of its own";
constexpr uint32_t kLogMagic = 0x377f0683u;  // its lowest bit is the byte order of the checksums' words

// The checksum of a log, which continues from page to page.
struct LogSum {
  uint32_t s0 = 0, s1 = 0;
  bool big_endian = false;
  void add(std::span<const uint8_t> bytes) {
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      uint32_t a = big(bytes, i, 4), b = big(bytes, i + 4, 4);
      if (!big_endian) a = __builtin_bswap32(a), b = __builtin_bswap32(b);
      s0 += a + s1;
      s1 += b + s0;
    }
  }
  bool is(std::span<const uint8_t> bytes, size_t at) const {
    return s0 == big(bytes, at, 4) && s1 == big(bytes, at + 4, 4);
  }
  void set(std::span<const uint8_t> bytes, size_t at) { s0 = big(bytes, at, 4), s1 = big(bytes, at + 4, 4); }
};

std::string place(uint64_t byte) { return "byte " + std::to_string(byte); }

}  // namespace

// The signs by which a log's owner is known.
struct JournalPages::LogSigns {
  std::set<int64_t> numbers;            // the log numbers in it
  uint32_t number_page = 0;             // the page they are on, or would be
  std::set<uint32_t> counts;            // the counts of changes in its copies of page 1
  std::optional<uint32_t> first_count;  // the first of these
  bool whole = true;                    // nothing before the last of these is damaged

  void see(uint32_t page, std::span<const uint8_t> content) {
    if (page == 1) {
      const uint32_t count = big(content, 24, 4);
      counts.insert(count);
      if (!first_count) first_count = count;
      return;
    }
    if (const auto number = integer_of_key(content, kLogNumberKey)) numbers.insert(*number), number_page = page;
    else if (number_page == 0 && integer_of_key(content, kLogNumberNeighbour)) number_page = page;
  }
};

uint32_t database_page_bytes(std::span<const uint8_t> header) {
  const uint32_t stored = big(header, 16, 2), bytes = stored == 1 ? 65536 : stored;
  return bytes >= 512 && std::has_single_bit(bytes) ? bytes : 0;
}

JournalPages::JournalPages(std::span<const uint8_t> first_page, uint32_t page_bytes, uint32_t pages_in_file,
                           uint32_t most_pages, const DatabaseJournals& journals, BehindDamage behind,
                           const PageOfFile& page_of_file)
    : journals_(journals),
      database_first_(first_page),
      page_bytes_(page_bytes),
      count_(pages_in_file),
      most_pages_(most_pages) {
  if (first_page.size() >= page_bytes) first_.assign(first_page.begin(), first_page.end());
  undo_unfinished();
  before_log_ = first_.empty() || count_ == 0 ? 0 : big(first_, 28, 4);
  const auto header = first_.empty() ? database_first_ : std::span<const uint8_t>(first_);
  closed_ =
      std::memcmp(header.data(), kDatabaseMagic, sizeof kDatabaseMagic) == 0 && header[18] == 1 && header[19] == 1;
  take_log(behind, page_of_file);
  database_first_ = {};
}

// A journal holds pages as they were before a change. It exists while the change is unfinished. SQLite had not yet
// changed the pages of records that no header counts yet. Such records repair damage, and undo nothing.
void JournalPages::undo_unfinished() {
  const ByteSource& journal = journals_.journal;
  const auto not_used = [&](const std::string& why) {
    journal_.messages.push_back("the journal beside it was not used: " + why);
  };
  const auto starts_at = [&](uint64_t at) {
    std::array<uint8_t, sizeof kJournalMagic> magic;
    return journal.size() >= kJournalHeaderBytes && at <= journal.size() - kJournalHeaderBytes &&
           journal.read(at, magic) && std::equal(magic.begin(), magic.end(), kJournalMagic);
  };
  const size_t record_bytes = size_t(page_bytes_) + 8;
  if (!starts_at(0)) {
    // Zeros are the header of a finished change, if journals are kept, or of one that had not reached the database.
    std::vector<uint8_t> magic(size_t(std::min<uint64_t>(journal.size(), sizeof kJournalMagic)));
    journal.read(0, magic);
    if (std::all_of(magic.begin(), magic.end(), [](uint8_t b) { return b == 0; })) return;
    journal_.damaged = std::max<uint64_t>(1, journal.size() / record_bytes);
    journal_.broken = "its header (" + place(0) + ") is damaged";
    return not_used("its header is damaged; an unfinished edit may be there in part");
  }
  const bool own_header_whole = std::memcmp(database_first_.data(), kDatabaseMagic, sizeof kDatabaseMagic) == 0;
  std::array<uint8_t, kJournalHeaderBytes> head;
  journal.read(0, head);
  const uint32_t pages_before = big(head, 16, 4), sector = big(head, 20, 4), page_size = big(head, 24, 4);
  if (page_size != page_bytes_ || sector < 32 || sector > 65536 || !std::has_single_bit(sector)) {
    journal_.damaged = 1;
    journal_.broken = "the sizes in its header (" + place(20) + ") are not this file's";
    return not_used("the sizes in its header are not this database's; an unfinished edit may be there in part");
  }
  std::array<uint8_t, sizeof kJournalMagic> end;
  journal.read(journal.size() - sizeof kJournalMagic, end);
  if (std::equal(end.begin(), end.end(), kJournalMagic)) {
    journal_.foreign = true;
    return not_used("it is of a change of several databases at once, which no Quarry makes");
  }
  std::map<uint32_t, Place> before;
  std::vector<uint8_t> first_before, record(record_bytes);
  uint64_t damaged = 0, at = 0;
  while (starts_at(at)) {
    journal.read(at, head);
    const uint32_t counted = big(head, 8, 4), nonce = big(head, 12, 4);
    const bool all = counted == 0 || counted == UINT32_MAX;
    at += sector;
    uint64_t i = 0;
    for (; (all || i < counted) && at + record_bytes <= journal.size(); ++i, at += record_bytes) {
      journal.read(at, record);
      const auto content = std::span<const uint8_t>(record).subspan(4, page_bytes_);
      const uint32_t number = big(record, 0, 4);
      uint32_t sum = nonce;
      for (size_t b = page_bytes_ - 200; b > 0 && b < page_bytes_; b -= 200) sum += content[b];
      if (sum == big(record, record_bytes - 4, 4) && number > 0) {
        if (before.try_emplace(number, Place{false, at + 4}).second && number == 1)
          first_before.assign(content.begin(), content.end());
        continue;
      }
      if (counted == 0) break;  // it was still being written
      ++damaged;
      if (journal_.broken.empty()) journal_.broken = "its page at " + place(at) + " is damaged";
    }
    if (!all && i < counted && journal_.broken.empty())
      journal_.broken = "it ends after " + std::to_string(i) + " of its " + std::to_string(counted) + " pages";
    at = (at + sector - 1) / sector * sector;
  }
  // Page 1 counts the changes. The journal's count is one less, or equal if the change had not come that far.
  if (!first_before.empty() && own_header_whole) {
    const uint32_t was = big(first_before, 24, 4), is = big(database_first_, 24, 4);
    if (is != was && is != was + 1) {
      journal_.foreign = true;
      journal_.broken.clear();
      return not_used("it is of another database, or of another state of this one");
    }
  }
  journal_.used = before.size();
  journal_.damaged = damaged;
  journal_.unsure = true;  // counts of changes are small numbers, the same in many files
  if (before.empty() && damaged == 0) return;
  pages_ = std::move(before);
  if (!first_before.empty()) first_ = std::move(first_before);
  // Pages past the old size belong to the change. The size is in page 1, too. If that is damaged, it must not cut pages
  // off.
  count_ = std::max(count_, pages_before);
  const bool counted = !first_.empty() && std::memcmp(first_.data(), kDatabaseMagic, sizeof kDatabaseMagic) == 0 &&
                       big(first_, 24, 4) == big(first_, 92, 4);
  count_ = std::min(std::max(pages_before, counted ? big(first_, 28, 4) : 0), most_pages_);
  journal_.messages.push_back(
      "an edit was not finished; the journal beside it undid it: " + std::to_string(journal_.used) +
      " pages are as they were before" +
      (damaged ? ", of " + std::to_string(damaged) + " more the journal is damaged: these are as the edit left them"
               : ""));
}

std::string JournalPages::why_foreign(const LogSigns& signs, bool nothing_new, const PageOfFile& page_of_file) {
  if (closed_) return nothing_new ? std::string() : kClosed;
  const auto header = first_.empty() ? database_first_ : std::span<const uint8_t>(first_);
  if (std::memcmp(header.data(), kDatabaseMagic, sizeof kDatabaseMagic) != 0) {
    log_.unsure = true;
    return {};
  }
  if (signs.number_page != 0) {
    const std::vector<uint8_t> own = page_of_file(signs.number_page);
    const auto number = integer_of_key(own, kLogNumberKey);
    if (number && signs.numbers.count(*number)) return {};
    // A page without the number is of a file that was not opened since numbers were introduced. A damaged page tells
    // nothing.
    if (number || (!signs.numbers.empty() && integer_of_key(own, kLogNumberNeighbour)))
      return "it does not have the number that the file got when it was opened for editing";
  }
  const uint32_t count = big(header, 24, 4);
  if (signs.whole && signs.numbers.empty() && signs.first_count && *signs.first_count != count + 1 &&
      !signs.counts.count(count))
    return "it follows another count of changes than the file's";
  log_.unsure = true;
  return {};
}

// A page counts if its checksum, which continues from the previous page, is right, and if a page that ends an edit
// follows. After a damaged page, the checksum stored in its header is mostly still right for starting the next one's.
void JournalPages::take_log(BehindDamage behind, const PageOfFile& page_of_file) {
  const ByteSource& log = journals_.log;
  if (log.size() == 0) return;
  const size_t frame_bytes = kFrameHeaderBytes + page_bytes_;
  const auto foreign = [&](const std::string& why) {
    log_ = {};
    log_.foreign = true;
    log_.messages.push_back(
        "the log beside it was not applied: it is of another state of this world, or of another world (" + why + ")");
  };
  if (log.size() < kLogHeaderBytes + frame_bytes) {
    if (log.size() <= kLogHeaderBytes) return;
    if (closed_) return foreign(kClosed);
    log_.messages.push_back("the log beside it was not used: its " + std::to_string(log.size()) +
                            " bytes are less than one page");
    log_.unfinished = place(kLogHeaderBytes);
    return;
  }
  std::array<uint8_t, kLogHeaderBytes> head;
  log.read(0, head);
  LogSum sum;
  sum.big_endian = big(head, 0, 4) == kLogMagic;
  sum.add(std::span<const uint8_t>(head).first(24));
  const bool header_whole = (big(head, 0, 4) | 1) == kLogMagic && sum.is(head, 24);
  if (header_whole && big(head, 8, 4) != page_bytes_)
    return foreign("its pages have " + std::to_string(big(head, 8, 4)) + " bytes, the file's " +
                   std::to_string(page_bytes_));
  log_.headless = !header_whole;
  if (!header_whole) sum.big_endian = false;  // all machines that Quarry runs on are little-endian
  std::array<uint8_t, 8> salts, its;
  log.read(header_whole ? 16 : kLogHeaderBytes + 8, salts);
  const auto own_at = [&](uint64_t at) { return log.read(at + 8, its) && its == salts; };
  sum.set(head, 24);
  std::map<uint32_t, Place> pending, taken;
  LogSigns signs;
  uint64_t doubtful = 0, doubtful_own = 0;  // since the last page that was right; with this log's salts
  // Byte offsets: of the first wrong page; of the end of the last whole edit.
  uint64_t first_wrong = 0, last_end = kLogHeaderBytes;
  bool wrong_ends_edit = false, ended_behind = false, later_edits = false;
  uint32_t pages_after = 0;
  uint64_t at = kLogHeaderBytes;
  std::vector<uint8_t> both(frame_bytes);
  for (; log.size() - at >= frame_bytes; at += frame_bytes) {
    log.read(at, both);
    const auto frame = std::span<const uint8_t>(both).first(kFrameHeaderBytes),
               content = std::span<const uint8_t>(both).subspan(kFrameHeaderBytes, page_bytes_);
    const bool own = std::equal(salts.begin(), salts.end(), frame.begin() + 8), ends_edit = big(frame, 4, 4) != 0;
    sum.add(frame.first(8));
    sum.add(content);
    const bool right = own && sum.is(frame, 16) && big(frame, 0, 4) > 0;
    sum.set(frame, 16);
    if (!right) {
      ++doubtful;
      doubtful_own += own;
      if (first_wrong == 0) first_wrong = at;
      wrong_ends_edit = wrong_ends_edit || (own && ends_edit);
      continue;
    }
    log_.damaged += std::exchange(doubtful, 0);
    doubtful_own = 0;
    signs.see(big(frame, 0, 4), content);
    if (first_wrong > 0) later_edits = later_edits || ended_behind || wrong_ends_edit;
    if (first_wrong > 0) ended_behind = ended_behind || ends_edit;
    if (first_wrong > 0 && behind == BehindDamage::stop) continue;
    pending[big(frame, 0, 4)] = {true, at + kFrameHeaderBytes};
    if (!ends_edit) continue;
    pages_after = big(frame, 4, 4);
    log_.used += pending.size();
    for (const auto& [number, page] : pending) taken[number] = page;
    pending.clear();
    last_end = at + frame_bytes;
  }
  log_.damaged += doubtful_own;  // the others are of an older log, which this one overwrites
  if (closed_ || !header_whole)
    log_.nothing_new =
        (taken.empty() || pages_after == count_) && std::all_of(taken.begin(), taken.end(), [&](const auto& page) {
          const auto undone = pages_.find(page.first);
          std::vector<uint8_t> own(page_bytes_), in_log(page_bytes_);
          if (undone == pages_.end()) own = page_of_file(page.first);
          else if (!read(undone->second, 0, own)) return false;
          return read(page.second, 0, in_log) && own == in_log;
        });
  signs.whole = header_whole && log_.damaged == 0;
  if (const std::string why = why_foreign(signs, log_.nothing_new && !taken.empty(), page_of_file); !why.empty())
    return foreign(why);
  for (const auto& [number, page] : taken) pages_[number] = page;
  if (log_.used > 0) count_ = pages_after;
  if (later_edits) log_.broken = "its page at " + place(first_wrong) + " is damaged, and pages of later edits follow";
  // The part of this log after the last whole edit.
  const bool cut_in_page = doubtful == doubtful_own && log.size() - at >= 16 && own_at(at);
  const bool wrong_in_it = first_wrong > 0 && (ended_behind || doubtful_own > 0);
  if (!pending.empty() || wrong_in_it || cut_in_page) log_.unfinished = place(last_end);
  if (!header_whole)
    log_.messages.push_back("the header of the log beside it is damaged; its pages were judged by their own checksums");
  if (log_.damaged > 0)
    log_.messages.push_back("the log of the last edits beside it: " + std::to_string(log_.used) + " pages were read, " +
                            std::to_string(log_.damaged) +
                            " are damaged; what was on them is of an older state, or lost");
  if (!pending.empty())
    log_.messages.push_back("the log beside it ends in an edit that was not finished; its " +
                            std::to_string(pending.size()) + " pages were not used");
}

}  // namespace quarry::io
