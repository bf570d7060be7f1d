// SPDX-License-Identifier: Apache-2.0
// journal.cpp - writes records of the history into the table journal, and takes those of a step back that is not whole.
// Their parts are compressed by all threads while those before them are written, so that neither all records nor all
// their bytes are in memory at once.
#include <algorithm>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ahead.hpp"
#include "base/parallel.hpp"
#include "voxel/io/quarry/file.hpp"
#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {
namespace {

struct JournalRow {
  RecordHead part;
  bool starts = false;  // it is its record's first part
  int64_t version = kPlainHistory;
  Result<Blob> blob;
};

// The rows of a source's records, some at a time.
class JournalEncoder {
 public:
  // `last`: the record before the first one.
  JournalEncoder(const RecordSource& source, int64_t last) : source_(source), number_(last) {}
  bool ended() const { return ended_ && records_.empty() && !rest_; }

  // Errors: the source's.
  Result<std::vector<JournalRow>> next() {
    const size_t most = thread_count() * size_t{8};
    std::vector<JournalRow> rows;
    std::vector<Part> parts;
    rows.reserve(most);
    parts.reserve(most);
    // What was joined for parts that were encoded; the current record's goes on.
    while (joined_.size() > (rest_ ? 1u : 0u)) joined_.pop_front();
    while (parts.size() < most) {
      if (!rest_ && records_.empty()) {
        if (ended_ || !parts.empty()) break;  // the source may need the room of the records that it gave
        QRY_TRY_ASSIGN(const SomeRecords some, source_());
        records_ = some.records;
        ended_ = some.last;
        continue;
      }
      if (!rest_) begin_record();
      JournalRow& row = rows.emplace_back();
      row.part = part_;
      row.starts = std::exchange(starts_, false);
      row.version = part_.part == 1 && row.starts ? kSteps : current_->of_palette() ? kSteps : kPlainHistory;
      ++part_.part;
      const auto some = rest_->first(std::min<size_t>(kWrittenPartChanges, rest_->size()));
      parts.push_back({current_, some});
      if (some.size() < rest_->size()) *rest_ = rest_->subspan(some.size());
      else rest_.reset();
    }
    parallel_for(parts.size(), 1, [&](size_t i, size_t) {
      try {
        rows[i].blob = parts[i].record->of_palette() ? encode_materials(parts[i].record->materials, rows[i].part)
                                                     : encode_part(parts[i].changes, rows[i].part);
        if (rows[i].blob) rows[i].version = std::max(rows[i].version, rows[i].blob->version);
      } catch (const std::bad_alloc&) {
        rows[i].blob = fail(ErrorCode::out_of_memory, "not enough memory to compress a part of an edit");
      }
    });
    return rows;
  }

 private:
  struct Part {
    const UndoRecord* record;
    std::span<const BrickChange> changes;
  };

  // A record without changes is a row, too.
  void begin_record() {
    current_ = &records_.front();
    records_ = records_.subspan(1);
    part_ = {++number_, current_->continues ? 1u : 0u,
             current_->of_palette() ? kPaletteVolume : int64_t(current_->volume), current_->label,
             current_->voxels_changed};
    starts_ = true;
    rest_ = current_->changes;
    if (std::adjacent_find(rest_->begin(), rest_->end(), goes_on) == rest_->end()) return;
    std::vector<BrickChange>& joined = joined_.emplace_back();
    for (const BrickChange& change : *rest_) append_change(joined, change);
    rest_ = joined;
  }

  const RecordSource& source_;
  int64_t number_;
  std::span<const UndoRecord> records_;  // that are not begun
  bool ended_ = false;
  // The record that is divided.
  const UndoRecord* current_ = nullptr;
  std::optional<std::span<const BrickChange>> rest_;
  RecordHead part_;
  bool starts_ = false;
  std::list<std::vector<BrickChange>> joined_;  // records whose changes were not yet as few as they can be
};

// The bricks of a record as they were before it, or are after it.
Result<void> put_side(Db& db, const UndoRecord& record, bool before, StoreHead* head) {
  std::map<Int3, std::vector<BrickPut>> puts;  // by chunk
  for (const BrickChange& change : record.changes)
    for (uint32_t i = 0; i < change.count; ++i)
      puts[chunk_of(change.at(i))].push_back({change.at(i), before ? change.before : change.after});
  constexpr size_t kAtOnce = 256;
  for (auto next = puts.begin(); next != puts.end();) {
    BrickMap map;
    std::vector<Int3> chunks;
    std::vector<ChunkBox> boxes;
    const auto first = next;
    for (; next != puts.end() && chunks.size() < kAtOnce; ++next) {
      chunks.push_back(next->first);
      boxes.push_back({record.volume, {next->first, next->first}});
    }
    const auto take = [&](size_t, std::vector<ChunkRead>& read) -> Result<void> {
      for (const ChunkRead& chunk : read) map.put(chunk.bricks);
      return {};
    };
    const auto put = [](size_t) -> Result<void> { return {}; };
    QRY_TRY(read_chunk_pieces(db, *head, std::span(&boxes, 1), {take, put}, {}, 1));
    for (auto its = first; its != next; ++its) map.put(its->second);
    const ChunkSource source = [&](std::span<const Int3>) -> Result<const BrickMap*> { return &map; };
    QRY_TRY(write_chunks(db, source, chunks, record.volume, head));
  }
  return {};
}

Result<void> put_materials(Db& db, const UndoRecord& record, bool before) {
  StoreHead ignored;
  QRY_TRY_ASSIGN(Scene scene, read_without_chunks(db, &ignored));
  for (const MaterialChange& change : record.materials) {
    scene.palette.materials[change.index] = before ? change.before : change.after;
    scene.palette.names[change.index] = before ? change.name_before : change.name_after;
  }
  return write_palette(db, scene.palette);
}

}  // namespace

Result<void> drop_records(Db& db, StoreHead* head) {
  QRY_TRY_ASSIGN(auto dropped, Statement::prepare(db, "SELECT checksum FROM journal WHERE record > ?1", "journal"));
  dropped.bind(1, head->position);
  for (;;) {
    QRY_TRY_ASSIGN(const auto row, dropped.step());
    if (!row) break;
    head->history_sum -= uint64_t(dropped.integer(0, "checksum"));
    QRY_TRY(dropped.row_check());
  }
  dropped.reset();
  QRY_TRY_ASSIGN(auto drop, Statement::prepare(db, "DELETE FROM journal WHERE record > ?1", "journal"));
  QRY_TRY(drop.bind(1, head->position).execute());
  head->length = head->position;
  return {};
}

Result<std::string> take_back_unfinished(Db& db, StoreHead* head) {
  QRY_TRY(db.run("BEGIN IMMEDIATE", "take back a part of an edit"));
  const UnfinishedStep step = *head->unfinished;
  const bool before = head->position > step.position;
  const int64_t count = before ? head->position - step.position : step.position - head->position;
  std::set<uint32_t> volumes;
  std::string label;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = before ? head->position - i : head->position + 1 + i;
    QRY_TRY_ASSIGN(const auto records,
                   read_history(db, *head, physical_memory(), {}, nullptr, RecordRange{number, number}));
    for (const UndoRecord& record : records) {
      if (record.of_palette()) {
        QRY_TRY(put_materials(db, record, before));
      } else {
        QRY_TRY(put_side(db, record, before, head));
        volumes.insert(record.volume);
      }
      label = record.label;
    }
  }
  head->position = step.position;
  if (step.is_new) QRY_TRY(drop_records(db, head));
  head->unfinished.reset();
  QRY_TRY(write_head(db, *head, volumes));
  QRY_TRY(db.run("COMMIT", "take back a part of an edit"));
  const std::string what = step.is_new ? "an edit" : before ? "a redo" : "an undo";
  return what + ", '" + label.substr(0, 60) +
         "', had come into the file only in part when its program stopped or the file was copied";
}

Result<void> write_records(Db& db, const RecordSource& source, StoreHead* head) {
  bool begun = false;  // the first row replaces what could be redone
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "journal"));
  JournalEncoder encoder(source, head->position);
  Ahead<std::vector<JournalRow>> ahead([&] { return encoder.next(); });
  for (bool more = true; more;) {
    QRY_TRY_ASSIGN(const auto rows, ahead.next());
    more = !encoder.ended();
    if (more) ahead.start();
    if (!rows.empty() && !std::exchange(begun, true)) QRY_TRY(drop_records(db, head));
    for (const JournalRow& row : rows) {
      const RecordHead& part = row.part;
      if (row.starts && part.part == 1 && part.record == 1)
        return fail(ErrorCode::invalid_argument, "the first edit of a history continues no step");
      QRY_TRY(row.blob);
      QRY_TRY(need_version(db, row.version, head));
      s.bind(1, part.record)
          .bind(2, int64_t(part.part))
          .bind(3, part.volume)
          .bind(4, std::string_view(part.label))
          .bind(5, int64_t(part.voxels));
      s.bind(6, int64_t(row.blob->count))
          .bind(7, int64_t(row.blob->plain_bytes))
          .bind(8, int64_t(row.blob->checksum))
          .bind(9, std::span<const uint8_t>(row.blob->data));
      QRY_TRY(s.execute());
      head->history_sum += row.blob->checksum;
      head->length = head->position = part.record;
    }
  }
  return {};
}

}  // namespace quarry::io
