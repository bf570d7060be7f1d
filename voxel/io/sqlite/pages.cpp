// SPDX-License-Identifier: Apache-2.0
// pages.cpp - varints, cells and overflow chains of leaf pages. Every offset is checked, and chains cannot be cyclic.
#include "voxel/io/sqlite/pages.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "voxel/io/sqlite/db.hpp"

namespace quarry::io {
namespace {

constexpr size_t kHeaderBytes = 100;
constexpr uint8_t kIndexInterior = 2, kIndexLeaf = 10, kTableLeaf = 13;

// Reads SQLite's numbers of one to nine bytes, the high ones first. Returns false at the end of the bytes.
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

// Reads one value of a record, of the serial type `type`.
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
    if (values->size() > kMostColumns || !varint(types, &at, &type) || !value(record, &data, type, &values->back()))
      return false;
  }
  return data == record.size();
}

}  // namespace

std::optional<int64_t> integer_of_key(std::span<const uint8_t> page, std::string_view key) {
  constexpr size_t kPointers = 8;
  if (page.size() < 512 || page[0] != kIndexLeaf) return {};
  const uint32_t cells = big(page, 3, 2);
  if (kPointers + size_t(cells) * 2 > page.size()) return {};
  std::vector<PageValue> values;
  std::optional<int64_t> found;
  for (uint32_t i = 0; i < cells; ++i) {
    size_t at = big(page, kPointers + size_t(i) * 2, 2);
    uint64_t length = 0;
    // Such rows are short.
    if (at >= page.size() || !varint(page, &at, &length) || length > page.size() - at) return {};
    if (!record_values(page.subspan(at, size_t(length)), &values) || values.size() != 2) return {};
    if (values[0].kind != PageValue::Kind::text || values[1].kind != PageValue::Kind::integer) return {};
    if (std::equal(key.begin(), key.end(), values[0].bytes.begin(), values[0].bytes.end())) found = values[1].integer;
  }
  return found;
}

DatabasePages::DatabasePages(ByteSource database, const DatabaseJournals& journals)
    : database_(std::move(database)), given_bytes_(database_.size() + journals.log.size() + journals.journal.size()) {
  if (database_.size() < kHeaderBytes) return;
  first_.resize(kHeaderBytes);
  if (!database_.read(0, first_)) return;
  page_bytes_ = database_page_bytes(first_);
  usable_ = page_bytes_ - first_[20];
  // If the header is lost, the values of every Quarry world are used.
  if (page_bytes_ == 0 || first_[20] > 32) page_bytes_ = usable_ = 4096;
  first_.resize(size_t(std::min<uint64_t>(database_.size(), page_bytes_)));
  if (!database_.read(0, first_)) first_.resize(kHeaderBytes);
  const auto in_file = uint32_t(std::min<uint64_t>(database_.size() / page_bytes_, UINT32_MAX - 1));
  const auto most = uint32_t(std::min<uint64_t>(given_bytes_ / page_bytes_, UINT32_MAX - 1));
  const auto page_of_file = [&](uint32_t number) {
    Page page(page_bytes_);
    const uint64_t at = uint64_t(number - 1) * page_bytes_;
    if (number == 0 || at + page_bytes_ > database_.size() || !database_.read(at, page)) page.clear();
    return page;
  };
  journals_ =
      JournalPages(first_, page_bytes_, in_file, most, journals, JournalPages::BehindDamage::go_on, page_of_file);
  const uint32_t counted = journals_.count();
  const uint32_t wanted = log().used > 0 ? counted : journals_.counted_before_log();
  count_ = std::min(counted, most);
  uint64_t there = std::min(wanted, in_file);
  for (auto it = journals_.pages().upper_bound(in_file); it != journals_.pages().end() && it->first <= wanted; ++it)
    ++there;
  missing_ = uint32_t(wanted - there);
  free_.resize(size_t(count_) + 1);
  read_free_list();
}

bool DatabasePages::load(uint32_t number, Page* page) const {
  if (number == 0 || number > count_) return false;
  page->resize(page_bytes_);
  if (const auto it = journals_.pages().find(number); it != journals_.pages().end())
    return journals_.read(it->second, 0, *page);
  const uint64_t at = uint64_t(number - 1) * page_bytes_;
  return database_.read(at, *page);
}

void DatabasePages::read_free_list() {
  Page list;
  if (!load(1, &list)) {
    free_list_whole_ = false;
    return;
  }
  uint32_t left = big(list, 36, 4);
  for (uint32_t trunk = big(list, 32, 4); trunk != 0;) {
    if (!load(trunk, &list) || free_[trunk] || left == 0) {
      free_list_whole_ = false;
      return;
    }
    free_[trunk] = true;
    --left;
    const uint32_t leaves = big(list, 4, 4);
    for (uint32_t i = 0; i < leaves && 8 + size_t(i) * 4 + 4 <= usable_ && left > 0; ++i, --left)
      if (const uint32_t number = big(list, 8 + size_t(i) * 4, 4); number != 0 && number <= count_)
        free_[number] = true;
      else free_list_whole_ = false;
    trunk = big(list, 0, 4);
  }
  if (left != 0) free_list_whole_ = false;
}

std::optional<DatabasePages::Cells> DatabasePages::cells_of(const Page& page, uint32_t number) const {
  const size_t head = number == 1 ? kHeaderBytes : 0;
  const uint8_t kind = page[head];
  if (kind != kIndexInterior && kind != kIndexLeaf && kind != kTableLeaf) return {};
  return Cells{kind != kTableLeaf, kind != kIndexInterior, big(page, head + 3, 2),
               head + (kind == kIndexInterior ? 12 : 8)};
}

bool DatabasePages::read_cell(const Page& page, const Cells& cells, PageRow* row, Page* payload,
                              uint64_t* budget) const {
  const auto bytes = std::span(page).first(usable_);
  size_t at = big(page, cells.pointers + size_t(row->place.cell) * 2, 2);
  row->of_index = cells.of_index;
  row->rowid = 0;
  if (!cells.leaf) at += 4;  // the child page's number
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
  for (Page more; payload->size() < length;) {
    if (!load(next, &more)) return false;
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
  Page page, payload;
  for (uint32_t number = 1; number <= count_; ++number) {
    if (free_[number] || !load(number, &page)) continue;
    const auto cells = cells_of(page, number);
    if (!cells) continue;
    if (!fits(*cells)) {
      ++broken;
      continue;
    }
    for (uint32_t i = 0; i < cells->count; ++i) {
      row.place = {number, i};
      if (!read_cell(page, *cells, &row, &payload, &budget)) ++broken;
      else if (!each(row)) return broken;
    }
  }
  return broken;
}

bool DatabasePages::with_row(RowPlace place, const std::function<void(const PageRow&)>& shown) const {
  Page page, payload;
  if (!load(place.page, &page)) return false;
  const auto cells = cells_of(page, place.page);
  if (!cells || !fits(*cells) || place.cell >= cells->count) return false;
  PageRow row;
  row.place = place;
  uint64_t budget = UINT64_MAX;
  if (!read_cell(page, *cells, &row, &payload, &budget)) return false;
  shown(row);
  return true;
}

}  // namespace quarry::io
