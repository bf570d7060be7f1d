#include "voxel/io/sqlite_pages.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "voxel/io/store_codec.hpp"

namespace quarry::io {
namespace {

constexpr size_t kHeaderBytes = 100, kLogHeaderBytes = 32, kFrameHeaderBytes = 24, kJournalHeaderBytes = 28;
constexpr char kDatabaseMagic[] = "SQLite format 3";  // with the 0 at its end
constexpr uint8_t kJournalMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr uint8_t kIndexInterior = 2, kIndexLeaf = 10, kTableLeaf = 13;

uint32_t big(std::span<const uint8_t> b, size_t at, size_t count) {
  uint32_t v = 0;
  for (size_t i = 0; i < count; ++i) v = v << 8 | b[at + i];
  return v;
}

// SQLite's numbers of one to nine bytes, the high ones first. False at the end of the bytes.
bool varint(std::span<const uint8_t> b, size_t* at, uint64_t* out) {
  uint64_t v = 0;
  for (int i = 0; i < 9; ++i) {
    if (*at >= b.size()) return false;
    const uint8_t byte = b[(*at)++];
    if (i == 8) {
      *out = v << 8 | byte;
      return true;
    }
    v = v << 7 | (byte & 127);
    if (!(byte & 128)) break;
  }
  *out = v;
  return true;
}

// One value of a record, of the serial type `type`.
bool value(std::span<const uint8_t> record, size_t* at, uint64_t type, PageValue* out) {
  using Kind = PageValue::Kind;
  constexpr uint8_t kIntegerBytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
  if (type == 10 || type == 11) return false;
  const uint64_t bytes = type < 10 ? kIntegerBytes[type] : (type - 12) / 2;
  if (bytes > record.size() - *at) return false;
  const auto data = record.subspan(*at, size_t(bytes));
  *at += size_t(bytes);
  if (type >= 12) {
    out->kind = type & 1 ? Kind::text : Kind::blob;
    out->bytes = data;
    return true;
  }
  uint64_t bits = bytes && data[0] & 128 ? ~uint64_t(0) : 0;
  for (const uint8_t b : data) bits = bits << 8 | b;
  out->kind = type == 0 ? Kind::null : type == 7 ? Kind::real : Kind::integer;
  out->integer = type == 9 ? 1 : type == 7 ? 0 : int64_t(bits);
  if (type == 7) out->real = std::bit_cast<double>(bits);
  return true;
}

bool record_values(std::span<const uint8_t> record, std::vector<PageValue>* values) {
  constexpr size_t kMostColumns = 16;
  size_t at = 0;
  uint64_t header = 0;
  if (!varint(record, &at, &header) || header > record.size() || header < at) return false;
  size_t data = size_t(header);
  const auto types = record.first(data);
  values->clear();
  while (at < types.size()) {
    uint64_t type = 0;
    values->emplace_back();
    if (values->size() > kMostColumns || !varint(types, &at, &type) || !value(record, &data, type, &values->back())) return false;
  }
  return data == record.size();
}

}  // namespace

DatabasePages::DatabasePages(std::span<const uint8_t> database, const DatabaseCompanions& beside)
    : database_(database), given_bytes_(uint64_t(database.size()) + beside.log.size() + beside.journal.size()) {
  if (database.size() < kHeaderBytes) return;
  const uint32_t said = big(database, 16, 2);
  page_bytes_ = said == 1 ? 65536 : said;
  usable_ = page_bytes_ - database[20];
  // A header that is gone: what every Quarry world has.
  if (page_bytes_ < 512 || !std::has_single_bit(page_bytes_) || database[20] > 32) page_bytes_ = usable_ = 4096;
  count_ = uint32_t(std::min<uint64_t>(database.size() / page_bytes_, UINT32_MAX - 1));
  const uint32_t in_file = count_;
  undo_unfinished(beside.journal);
  const auto first = page(1);
  uint32_t wanted = first.empty() ? 0 : big(first, 28, 4);
  take_log(beside.log);
  if (log_.used > 0) wanted = count_;
  count_ = uint32_t(std::min<uint64_t>(count_, given_bytes_ / page_bytes_));
  uint64_t there = std::min(wanted, in_file);
  for (auto it = replaced_.upper_bound(in_file); it != replaced_.end() && it->first <= wanted; ++it) ++there;
  missing_ = uint32_t(wanted - there);
  free_.resize(size_t(count_) + 1);
  read_free_list();
}

std::span<const uint8_t> DatabasePages::page(uint32_t number) const {
  if (number == 0 || number > count_) return {};
  if (const auto it = replaced_.find(number); it != replaced_.end()) return it->second;
  const uint64_t at = uint64_t(number - 1) * page_bytes_;
  if (at + page_bytes_ > database_.size()) return {};
  return database_.subspan(size_t(at), page_bytes_);
}

// A journal holds pages as they were before a change; it is there for as long as the change is not finished. Records that SQLite had not yet
// counted in a header are of pages that it had not yet changed: they mend damage, and undo nothing.
void DatabasePages::undo_unfinished(std::span<const uint8_t> journal) {
  const auto not_used = [&](const char* why) { journal_.said.push_back(std::string("the journal beside it was not used: ") + why); };
  const auto starts_at = [&](uint64_t at) {
    return journal.size() >= kJournalHeaderBytes && at <= journal.size() - kJournalHeaderBytes && std::memcmp(journal.data() + at, kJournalMagic, sizeof kJournalMagic) == 0;
  };
  const size_t record_bytes = size_t(page_bytes_) + 8;
  if (!starts_at(0)) {
    // Zeros: a finished change's, where journals are kept, or one of a change that had not come to the database.
    const auto magic = journal.first(std::min(journal.size(), sizeof kJournalMagic));
    if (std::all_of(magic.begin(), magic.end(), [](uint8_t b) { return b == 0; })) return;
    journal_.damaged = std::max<uint64_t>(1, journal.size() / record_bytes);
    return not_used("its header is damaged; an unfinished edit may be there in part");
  }
  const bool own_header_whole = std::memcmp(database_.data(), kDatabaseMagic, sizeof kDatabaseMagic) == 0;
  const uint32_t pages_before = big(journal, 16, 4), sector = big(journal, 20, 4), page_size = big(journal, 24, 4);
  if (page_size != page_bytes_ || sector < 32 || sector > 65536 || !std::has_single_bit(sector)) {
    journal_.damaged = 1;
    return not_used("the sizes in its header are not this database's; an unfinished edit may be there in part");
  }
  if (std::memcmp(journal.data() + journal.size() - sizeof kJournalMagic, kJournalMagic, sizeof kJournalMagic) == 0)
    return not_used("it is of a change of several databases at once, which no Quarry makes");
  std::map<uint32_t, std::span<const uint8_t>> before;
  uint64_t damaged = 0, at = 0;
  while (starts_at(at)) {
    const uint32_t counted = big(journal, size_t(at) + 8, 4), nonce = big(journal, size_t(at) + 12, 4);
    const bool all = counted == 0 || counted == UINT32_MAX;
    at += sector;
    for (uint64_t i = 0; (all || i < counted) && at + record_bytes <= journal.size(); ++i, at += record_bytes) {
      const auto record = journal.subspan(size_t(at), record_bytes);
      const auto content = record.subspan(4, page_bytes_);
      const uint32_t number = big(record, 0, 4);
      uint32_t sum = nonce;
      for (size_t b = page_bytes_ - 200; b > 0 && b < page_bytes_; b -= 200) sum += content[b];
      if (sum == big(record, record_bytes - 4, 4) && number > 0) before.try_emplace(number, content);
      else if (counted == 0) break;  // was still being written
      else ++damaged;
    }
    at = (at + sector - 1) / sector * sector;
  }
  // Page 1 counts the changes: the journal's is one behind, or the same while the change had not come that far.
  if (const auto first = before.find(1); first != before.end() && own_header_whole) {
    const uint32_t was = big(first->second, 24, 4), is = big(database_, 24, 4);
    if (is != was && is != was + 1) return not_used("it is of another database, or of another state of this one");
  }
  journal_.used = before.size();
  journal_.damaged = damaged;
  if (before.empty() && damaged == 0) return;
  replaced_ = std::move(before);
  // Pages behind the size before are the change's own. The size is in page 1, too: a damaged one must not cut pages off.
  count_ = std::max(count_, pages_before);
  const auto first = page(1);
  const bool counted = !first.empty() && std::memcmp(first.data(), kDatabaseMagic, sizeof kDatabaseMagic) == 0 && big(first, 24, 4) == big(first, 92, 4);
  count_ = uint32_t(std::min<uint64_t>(std::max(pages_before, counted ? big(first, 28, 4) : 0), given_bytes_ / page_bytes_));
  journal_.said.push_back("an edit was not finished; the journal beside it undid it: " + std::to_string(journal_.used) + " pages are as they were before" +
                          (damaged ? ", of " + std::to_string(damaged) + " more the journal is damaged: these are as the edit left them" : ""));
}

// A frame counts if its checksum, which goes on from the frame before it, is right, and if a frame that ends a transaction follows. What is
// stored in a damaged frame's header mostly still starts the next one's checksum.
void DatabasePages::take_log(std::span<const uint8_t> log) {
  if (log.empty()) return;
  const size_t frame_bytes = kFrameHeaderBytes + page_bytes_;
  uint32_t s0 = 0, s1 = 0;
  bool big_endian = false;
  const auto add = [&](std::span<const uint8_t> bytes) {
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      uint32_t a = big(bytes, i, 4), b = big(bytes, i + 4, 4);
      if (!big_endian) a = __builtin_bswap32(a), b = __builtin_bswap32(b);
      s0 += a + s1;
      s1 += b + s0;
    }
  };
  if (log.size() < kLogHeaderBytes + frame_bytes) {
    if (log.size() > kLogHeaderBytes) log_.said.push_back("the log beside it was not used: its " + std::to_string(log.size()) + " bytes are less than one page");
    return;
  }
  big_endian = big(log, 0, 4) == 0x377f0683u;
  add(log.first(24));
  const bool header_whole = (big(log, 0, 4) | 1) == 0x377f0683u && s0 == big(log, 24, 4) && s1 == big(log, 28, 4);
  if (header_whole && big(log, 8, 4) != page_bytes_) {
    log_.said.push_back("the log beside it was not used: its pages have " + std::to_string(big(log, 8, 4)) + " bytes, the database's " + std::to_string(page_bytes_));
    return;
  }
  if (!header_whole) big_endian = false;  // every machine that Quarry runs on
  const auto salts = header_whole ? log.subspan(16, 8) : log.subspan(kLogHeaderBytes + 8, 8);
  s0 = big(log, 24, 4), s1 = big(log, 28, 4);
  std::map<uint32_t, std::span<const uint8_t>> pending;
  uint64_t doubtful = 0, doubtful_own = 0;  // since the last frame that was right; with this log's salts
  uint32_t pages_after = 0;
  for (size_t at = kLogHeaderBytes; log.size() - at >= frame_bytes; at += frame_bytes) {
    const auto frame = log.subspan(at, kFrameHeaderBytes), content = log.subspan(at + kFrameHeaderBytes, page_bytes_);
    const bool own = std::memcmp(frame.data() + 8, salts.data(), 8) == 0;
    add(frame.first(8));
    add(content);
    const bool right = own && s0 == big(frame, 16, 4) && s1 == big(frame, 20, 4) && big(frame, 0, 4) > 0;
    s0 = big(frame, 16, 4), s1 = big(frame, 20, 4);
    if (!right) {
      ++doubtful;
      doubtful_own += own;
      continue;
    }
    log_.damaged += std::exchange(doubtful, 0);
    doubtful_own = 0;
    pending[big(frame, 0, 4)] = content;
    if (big(frame, 4, 4) == 0) continue;
    pages_after = big(frame, 4, 4);
    log_.used += pending.size();
    for (const auto& [number, bytes] : pending) replaced_[number] = bytes;
    pending.clear();
  }
  log_.damaged += doubtful_own;  // the others are of an older log, which this one is written over
  if (log_.used > 0) count_ = pages_after;
  if (!header_whole) log_.said.push_back("the header of the log beside it is damaged; its pages were judged by their own checksums");
  if (log_.damaged > 0)
    log_.said.push_back("the log of the last edits beside it: " + std::to_string(log_.used) + " pages were read, " + std::to_string(log_.damaged) +
                        " are damaged; what was on them is of an older state, or lost");
  if (!pending.empty()) log_.said.push_back("the log beside it ends in an edit that was not finished; its " + std::to_string(pending.size()) + " pages were not used");
}

void DatabasePages::read_free_list() {
  const auto first = page(1);
  if (first.empty()) {
    free_list_whole_ = false;
    return;
  }
  uint32_t left = big(first, 36, 4);
  for (uint32_t trunk = big(first, 32, 4); trunk != 0;) {
    const auto list = page(trunk);
    if (list.empty() || free_[trunk] || left == 0) {
      free_list_whole_ = false;
      return;
    }
    free_[trunk] = true;
    --left;
    const uint32_t leaves = big(list, 4, 4);
    for (uint32_t i = 0; i < leaves && 8 + size_t(i) * 4 + 4 <= usable_ && left > 0; ++i, --left)
      if (const uint32_t number = big(list, 8 + size_t(i) * 4, 4); number != 0 && number <= count_) free_[number] = true;
      else free_list_whole_ = false;
    trunk = big(list, 0, 4);
  }
  if (left != 0) free_list_whole_ = false;
}

bool DatabasePages::cell(std::span<const uint8_t> page_data, size_t at, bool leaf, PageRow* row, std::vector<uint8_t>* payload, uint64_t* budget) const {
  const auto bytes = page_data.first(usable_);
  if (row->of_index && !leaf) at += 4;  // the child page's number
  uint64_t length = 0, rowid = 0;
  if (at >= bytes.size() || !varint(bytes, &at, &length) || length == 0 || length > kMaxValueBytes * 2) return false;
  if (!row->of_index && !varint(bytes, &at, &rowid)) return false;
  row->rowid = int64_t(rowid);
  const uint64_t most = row->of_index ? (uint64_t(usable_) - 12) * 64 / 255 - 23 : uint64_t(usable_) - 35;
  const uint64_t least = (uint64_t(usable_) - 12) * 32 / 255 - 23;
  uint64_t local = length;
  if (length > most) {
    const uint64_t filled = least + (length - least) % (usable_ - 4);
    local = filled <= most ? filled : least;
  }
  const bool overflows = local < length;
  if (local + (overflows ? 4 : 0) > bytes.size() - at) return false;
  if (!overflows) return record_values(bytes.subspan(at, size_t(local)), &row->values);
  if (length > *budget) return false;
  *budget -= length;
  payload->assign(bytes.begin() + std::ptrdiff_t(at), bytes.begin() + std::ptrdiff_t(at + local));
  uint32_t next = big(bytes, at + size_t(local), 4);
  while (payload->size() < length) {
    const auto more = page(next);
    if (more.empty()) return false;
    const size_t take = size_t(std::min<uint64_t>(length - payload->size(), usable_ - 4));
    payload->insert(payload->end(), more.begin() + 4, more.begin() + 4 + std::ptrdiff_t(take));
    next = big(more, 0, 4);
  }
  return record_values(*payload, &row->values);
}

uint64_t DatabasePages::for_rows(const std::function<bool(const PageRow&)>& each) const {
  uint64_t broken = 0;
  // Sound files follow each overflow page once. A file made to be slow may name the same chain in every cell.
  uint64_t budget = 4 * given_bytes_;
  PageRow row;
  std::vector<uint8_t> payload;
  for (uint32_t number = 1; number <= count_; ++number) {
    const auto bytes = page(number);
    if (bytes.empty() || free_[number]) continue;
    const size_t head = number == 1 ? kHeaderBytes : 0;
    const uint8_t kind = bytes[head];
    if (kind != kIndexInterior && kind != kIndexLeaf && kind != kTableLeaf) continue;
    const size_t pointers = head + (kind == kIndexInterior ? 12 : 8);
    const uint32_t cells = big(bytes, head + 3, 2);
    if (pointers + size_t(cells) * 2 > usable_) {
      ++broken;
      continue;
    }
    row.of_index = kind != kTableLeaf;
    row.page = number;
    for (uint32_t i = 0; i < cells; ++i) {
      row.rowid = 0;
      if (!cell(bytes, big(bytes, pointers + size_t(i) * 2, 2), kind != kIndexInterior, &row, &payload, &budget)) ++broken;
      else if (!each(row)) return broken;
    }
  }
  return broken;
}

}  // namespace quarry::io
