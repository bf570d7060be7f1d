// SPDX-License-Identifier: Apache-2.0
// write.cpp - writes a scene, an edit or a palette into the tables of a .quarry file. The caller owns the transaction.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {
namespace {

Result<void> write_state(Db& db, const char* key, int64_t value) {
  QRY_TRY_ASSIGN(
      auto s,
      Statement::prepare(
          db, "INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2", "state"));
  return s.bind(1, std::string_view(key)).bind(2, value).execute();
}

Error unsavable(const std::string& what) { return {ErrorCode::invalid_argument, what + " cannot be saved"}; }

Result<void> check_palette(const Palette& palette) {
  for (size_t i = 0; i < 256; ++i) {
    const Material& m = palette.materials[i];
    for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior, m.reserved[0], m.reserved[1]})
      if (std::isnan(v))
        return tl::unexpected(unsavable("material " + std::to_string(i) + " has a value that is not a number; it"));
  }
  return {};
}

Result<void> check_bricks(const std::string& volume, const BrickMap& bricks) {
  const Box3 box = bricks.brick_bounds();
  if (!bricks.empty() && !(brick_storable(box.min) && brick_storable(box.max)))
    return tl::unexpected(unsavable("volume '" + volume + "' has a brick outside all coordinates; it"));
  return {};
}

// Finds all values that SQLite could not hold unchanged, before anything is written.
Result<void> check_scene(const Scene& scene) {
  const auto bad = [](const std::string& what) { return tl::unexpected(unsavable(what)); };
  QRY_TRY(check_palette(scene.palette));
  for (const Camera& c : scene.cameras)
    for (const double v :
         {c.position[0], c.position[1], c.position[2], c.target[0], c.target[1], c.target[2], c.vertical_fov_degrees})
      if (std::isnan(v)) return bad("camera '" + c.name + "' has a value that is not a number; it");
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (instance.volume >= scene.volumes.size() || instance.layer < -1 ||
        instance.layer >= int64_t(scene.layers.size()) || !instance.rotation.valid())
      return bad("instance " + std::to_string(i) + " names a volume, layer or rotation that is not there; it");
  }
  for (const Volume& v : scene.volumes) QRY_TRY(check_bricks(v.name, v.bricks));
  return {};
}

// The chunks that have bricks, rising.
std::vector<Int3> chunks_of(const BrickMap& map) {
  std::vector<Int3> chunks;
  for (const auto& [at, brick] : map.bricks())
    if (const Int3 c = chunk_of(at); chunks.empty() || c != chunks.back()) chunks.push_back(c);
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

// Compresses chunks on `threads` threads into `out`, which has a place for each.
void encode_chunks(const BrickMap& bricks, std::span<const Int3> chunks, uint32_t volume, uint32_t threads,
                   const Progress& progress, std::vector<Result<Blob>>& out) {
  parallel_for(
      chunks.size(), 1,
      [&](size_t begin, size_t end) {
        for (size_t c = begin; c < end && !progress.cancelled(); ++c) {
          try {
            out[c] = encode_chunk(bricks, chunks[c], volume);
          } catch (const std::bad_alloc&) {
            out[c] = fail(ErrorCode::out_of_memory, "not enough memory to compress a chunk");
          }
        }
      },
      threads);
}

Result<void> write_volume_row(Db& db, uint32_t id, const Volume& v) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO volumes VALUES (?, ?, ?, ?, ?, 0, 0, 0)", "volumes"));
  return s.bind(1, int64_t(id))
      .bind(2, std::string_view(v.name))
      .bind(3, int64_t(v.size.x))
      .bind(4, int64_t(v.size.y))
      .bind(5, int64_t(v.size.z))
      .execute();
}

Result<void> write_volumes_sum(Db& db, const StoreHead& head) {
  return write_state(db, kVolumesSumKey, int64_t(volumes_sum(head)));
}

Result<void> write_history_state(Db& db, const StoreHead& head) {
  for (const auto& [key, value] : {std::pair{kPositionKey, head.position},
                                   {kLengthKey, head.length},
                                   {kHistoryKey, int64_t(head.history_sum)},
                                   {kHistorySumKey, int64_t(history_state_sum(head))}})
    QRY_TRY(write_state(db, key, value));
  return {};
}

Result<void> write_volume_head(Db& db, const StoreHead& head, uint32_t volume) {
  QRY_TRY_ASSIGN(
      auto s,
      Statement::prepare(db, "UPDATE volumes SET chunks = ?1, bricks = ?2, chunk_sum = ?3 WHERE id = ?4", "volumes"));
  const StoreHead::Volume& v = head.volumes[volume];
  return s.bind(1, v.chunks).bind(2, v.bricks).bind(3, int64_t(v.sum)).bind(4, int64_t(volume)).execute();
}

Result<void> write_small_tables(Db& db, const Scene& scene) {
  {
    QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO meta VALUES (?, ?)", "meta"));
    for (const auto& [key, value] : scene.metadata) {
      if (key.size() + value.size() > kMaxValueBytes / 2)
        return fail(ErrorCode::invalid_argument, "the metadata '" + key.substr(0, 60) + "' is too long to be saved");
      QRY_TRY(s.bind(1, std::string_view(key)).bind(2, std::string_view(value)).execute());
    }
  }
  {
    QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO layers VALUES (?, ?, ?)", "layers"));
    for (size_t i = 0; i < scene.layers.size(); ++i)
      QRY_TRY(s.bind(1, int64_t(i))
                  .bind(2, std::string_view(scene.layers[i].name))
                  .bind(3, int64_t(scene.layers[i].hidden))
                  .execute());
  }
  {
    QRY_TRY_ASSIGN(auto s,
                   Statement::prepare(db, "INSERT INTO instances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "instances"));
    for (size_t i = 0; i < scene.instances.size(); ++i) {
      const Instance& n = scene.instances[i];
      s.bind(1, int64_t(i))
          .bind(2, int64_t(n.volume))
          .bind(3, pack_rotation(n.rotation))
          .bind(4, int64_t(n.offset.x))
          .bind(5, int64_t(n.offset.y))
          .bind(6, int64_t(n.offset.z));
      QRY_TRY(s.bind(7, int64_t(n.layer))
                  .bind(8, int64_t(n.hidden))
                  .bind(9, std::string_view(n.name))
                  .bind(10, std::string_view(n.group_path))
                  .execute());
    }
  }
  {
    QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "cameras"));
    for (size_t i = 0; i < scene.cameras.size(); ++i) {
      const Camera& c = scene.cameras[i];
      s.bind(1, int64_t(i)).bind(2, std::string_view(c.name)).bind(9, c.vertical_fov_degrees);
      for (int a = 0; a < 3; ++a) s.bind(3 + a, c.position[a]).bind(6 + a, c.target[a]);
      QRY_TRY(s.execute());
    }
  }
  QRY_TRY(write_state(db, kOverlapKey, scene.overlap == OverlapRule::last_instance_wins));
  return write_state(db, kSceneSumKey, int64_t(scene_sum(scene)));
}

void bind_place(Statement& s, Int3 chunk, uint32_t volume) {
  s.bind(1, int64_t(volume)).bind(2, int64_t(chunk.x)).bind(3, int64_t(chunk.y)).bind(4, int64_t(chunk.z));
}

// `insert` adds rows to the table chunks. The chunk is counted in `head`.
Result<void> insert_chunk(Statement& insert, const Blob& blob, Int3 chunk, uint32_t volume, StoreHead* head) {
  StoreHead::Volume& v = head->volumes[volume];
  ++v.chunks;
  v.bricks += blob.count;
  v.sum += blob.checksum;
  bind_place(insert, chunk, volume);
  return insert.bind(5, int64_t(blob.count))
      .bind(6, int64_t(blob.plain_bytes))
      .bind(7, int64_t(blob.checksum))
      .bind(8, std::span<const uint8_t>(blob.data))
      .execute();
}

// Writes chunks that the file does not have yet. The rows and their order do not depend on the threads: some chunks are
// compressed on all threads while the previous ones are written.
Result<void> write_new_chunks(Db& db, const BrickMap& bricks, std::span<const Int3> chunks, uint32_t volume,
                              StoreHead* head, const Progress& progress, const std::function<void()>& written) {
  constexpr size_t kAtOnce = 256;
  QRY_TRY_ASSIGN(auto insert,
                 Statement::prepare(db, "INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", "chunks"));
  const uint32_t threads = thread_count();
  const auto part = [&](size_t first) { return chunks.subspan(first, std::min(kAtOnce, chunks.size() - first)); };
  std::vector<Result<Blob>> now, next(part(0).size());
  encode_chunks(bricks, part(0), volume, threads, progress, next);
  for (size_t first = 0; first < chunks.size(); first += kAtOnce) {
    now.swap(next);
    const auto later = part(std::min(first + kAtOnce, chunks.size()));
    next.clear();
    next.resize(later.size());
    const auto encode_later = [&] { encode_chunks(bricks, later, volume, threads, progress, next); };
    std::jthread ahead;
    if (threads > 1 && !later.empty()) {
      try {
        ahead = std::jthread(encode_later);
      } catch (const std::system_error&) {
        // No further thread is allowed, so this thread compresses them below.
      }
    }
    for (size_t c = 0; c < now.size(); ++c) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
      QRY_TRY(now[c]);
      QRY_TRY(insert_chunk(insert, *now[c], chunks[first + c], volume, head));
      written();
    }
    if (ahead.joinable()) ahead.join();
    else encode_later();
  }
  return {};
}

}  // namespace

Result<void> write_log_number(Db& db) {
  int64_t number = 0;
  // SQLite's random numbers are the same in a forked process.
  if (::getrandom(&number, sizeof number, 0) != ssize_t(sizeof number))
    return tl::unexpected(error_from_errno("cannot get a random number", errno));
  return write_state(db, kLogNumberKey.data(), number);
}

Result<void> write_palette(Db& db, const Palette& palette) {
  QRY_TRY(check_palette(palette));
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT OR REPLACE INTO palette VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                            "palette"));
  for (size_t i = 0; i < 256; ++i) {
    const Material& m = palette.materials[i];
    s.bind(1, int64_t(i))
        .bind(2, std::string_view(palette.names[i]))
        .bind(3, pack_rgba(m))
        .bind(4, double(m.roughness))
        .bind(5, double(m.metalness));
    s.bind(6, double(m.emission))
        .bind(7, double(m.transparency))
        .bind(8, double(m.ior))
        .bind(9, double(m.reserved[0]))
        .bind(10, double(m.reserved[1]));
    QRY_TRY(s.execute());
  }
  return write_state(db, kPaletteSumKey, int64_t(palette_sum(palette)));
}

Result<void> write_visibility(Db& db, const Scene& scene) {
  const auto update = [&](const char* sql, const char* table, size_t count, const auto& hidden) -> Result<void> {
    QRY_TRY_ASSIGN(auto s, Statement::prepare(db, sql, table));
    for (size_t i = 0; i < count; ++i) QRY_TRY(s.bind(1, int64_t(i)).bind(2, int64_t(hidden(i))).execute());
    return {};
  };
  QRY_TRY(update("UPDATE layers SET hidden = ?2 WHERE id = ?1", "layers", scene.layers.size(),
                 [&](size_t i) { return scene.layers[i].hidden; }));
  QRY_TRY(update("UPDATE instances SET hidden = ?2 WHERE id = ?1", "instances", scene.instances.size(),
                 [&](size_t i) { return scene.instances[i].hidden; }));
  return write_state(db, kSceneSumKey, int64_t(scene_sum(scene)));
}

Result<void> write_chunks(Db& db, const BrickMap& bricks, std::span<const Int3> chunks, uint32_t volume,
                          StoreHead* head) {
  constexpr size_t kAtOnce = 256;
  const Progress progress;
  QRY_TRY_ASSIGN(
      auto old,
      Statement::prepare(db, "SELECT bricks, checksum FROM chunks WHERE volume = ?1 AND x = ?2 AND y = ?3 AND z = ?4",
                         "chunks"));
  QRY_TRY_ASSIGN(auto drop, Statement::prepare(
                                db, "DELETE FROM chunks WHERE volume = ?1 AND x = ?2 AND y = ?3 AND z = ?4", "chunks"));
  QRY_TRY_ASSIGN(auto put, Statement::prepare(
                               db,
                               "INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (volume, x, y, "
                               "z) DO UPDATE SET bricks = ?5, bytes = ?6, "
                               "checksum = ?7, data = ?8",
                               "chunks"));
  std::vector<Result<Blob>> blobs;
  for (size_t first = 0; first < chunks.size(); first += kAtOnce) {
    const auto some = chunks.subspan(first, std::min(kAtOnce, chunks.size() - first));
    blobs.clear();
    blobs.resize(some.size());
    encode_chunks(bricks, some, volume, thread_count(), progress, blobs);
    for (size_t c = 0; c < some.size(); ++c) {
      QRY_TRY(blobs[c]);
      bind_place(old, some[c], volume);
      QRY_TRY_ASSIGN(const auto there, old.step());
      if (there) {
        StoreHead::Volume& v = head->volumes[volume];
        --v.chunks;
        v.bricks -= old.integer(0, "bricks", 1, kChunkBricks);
        v.sum -= uint64_t(old.integer(1, "checksum"));
        QRY_TRY(old.row_check());
      }
      old.reset();
      if (blobs[c]->count) {
        QRY_TRY(insert_chunk(put, *blobs[c], some[c], volume, head));
      } else if (there) {
        bind_place(drop, some[c], volume);
        QRY_TRY(drop.execute());
      }
    }
  }
  return {};
}

Result<void> write_head(Db& db, const StoreHead& head, const std::set<uint32_t>& changed_volumes) {
  for (const uint32_t volume : changed_volumes) QRY_TRY(write_volume_head(db, head, volume));
  QRY_TRY(write_volumes_sum(db, head));
  return write_history_state(db, head);
}

Result<void> TableWriter::begin(const Scene& scene) {
  QRY_TRY(check_scene(scene));
  QRY_TRY(write_small_tables(db_, scene));
  QRY_TRY(write_palette(db_, scene.palette));
  for (const Volume& v : scene.volumes) volumes_.push_back({v.name, {}, v.size});
  head_.volumes.resize(scene.volumes.size());
  return {};
}

// Ends the current volume and begins those up to number `volume`. Those between are empty.
Result<void> TableWriter::go_to(uint32_t volume) {
  while (begun_ <= volume) {
    if (begun_ > 0) QRY_TRY(write_volume_head(db_, head_, begun_ - 1));
    if (begun_ == volumes_.size()) return {};
    QRY_TRY(write_volume_row(db_, begun_, volumes_[begun_]));
    ++begun_;
    last_.reset();
  }
  return {};
}

Result<void> TableWriter::append(uint32_t volume, const BrickMap& bricks, const Progress& progress,
                                 const std::function<void()>& written) {
  if (volume >= volumes_.size() || volume + 1 < begun_)
    return fail(ErrorCode::invalid_argument, "bricks of volume " + std::to_string(volume) + " came out of order");
  QRY_TRY(check_bricks(volumes_[volume].name, bricks));
  QRY_TRY(go_to(volume));
  const std::vector<Int3> chunks = chunks_of(bricks);
  if (chunks.empty()) return {};
  if (last_ && !(*last_ < chunks.front()))
    return fail(ErrorCode::invalid_argument, "chunks of volume " + std::to_string(volume) + " came out of order");
  last_ = chunks.back();
  const uint64_t before = bricks_ - uint64_t(head_.volumes[volume].bricks);
  return write_new_chunks(db_, bricks, chunks, volume, &head_, progress, [&] {
    bricks_ = before + uint64_t(head_.volumes[volume].bricks);
    written();
  });
}

Result<void> TableWriter::history(std::span<const UndoRecord> records, size_t position) {
  for (const UndoRecord& record : records) QRY_TRY(write_record(db_, record, &head_));
  head_.position = int64_t(std::min(position, records.size()));
  return {};
}

Result<void> TableWriter::end() {
  if (!volumes_.empty()) QRY_TRY(go_to(uint32_t(volumes_.size())));
  QRY_TRY(write_volumes_sum(db_, head_));
  return write_history_state(db_, head_);
}

Result<void> write_record(Db& db, const UndoRecord& record, StoreHead* head) {
  if (record.continues && head->position == 0)
    return fail(ErrorCode::invalid_argument, "the first edit of a history continues no step");
  if ((record.continues || record.of_palette()) && head->version == kPlainHistory) {
    QRY_TRY(db.run(("PRAGMA user_version=" + std::to_string(kSchemaVersion)).c_str(), "mark the file's version"));
    head->version = kSchemaVersion;
  }
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

  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "journal"));
  RecordHead part{head->position + 1, record.continues ? 1u : 0u,
                  record.of_palette() ? kPaletteVolume : int64_t(record.volume), record.label, record.voxels_changed};
  // The file has the changes brick by brick, so many to a part. Some parts are compressed at a time, by all threads.
  const uint64_t all = bricks_in(record.changes);
  const bool one_by_one = all == record.changes.size();  // then they are encoded where they are
  uint64_t done = 0;
  auto next = record.changes.begin();
  uint32_t done_of_next = 0;
  std::vector<std::vector<BrickChange>> some(one_by_one ? 0 : thread_count());
  std::vector<std::span<const BrickChange>> spans;
  std::vector<Result<Blob>> blobs;
  do {  // a record without changes is a row, too
    spans.clear();
    for (const size_t most = one_by_one ? thread_count() * size_t{8} : some.size();
         spans.size() < most && (spans.empty() || done < all);) {
      if (one_by_one) {
        spans.push_back(std::span(record.changes).subspan(done, std::min<uint64_t>(kWrittenPartChanges, all - done)));
        done += spans.back().size();
        continue;
      }
      std::vector<BrickChange>& its = some[spans.size()];
      for (its.clear(); done < all && its.size() < kWrittenPartChanges; ++done) {
        its.push_back({next->at(done_of_next), 1, next->before, next->after});
        if (++done_of_next == next->count) ++next, done_of_next = 0;
      }
      spans.push_back(its);
    }
    blobs.clear();
    blobs.resize(spans.size());
    parallel_for(spans.size(), 1, [&](size_t i, size_t) {
      RecordHead its = part;
      its.part += uint32_t(i);
      blobs[i] = record.of_palette() ? encode_materials(record.materials, its) : encode_part(spans[i], its);
    });
    for (const Result<Blob>& blob : blobs) {
      QRY_TRY(blob);
      s.bind(1, part.record)
          .bind(2, int64_t(part.part))
          .bind(3, part.volume)
          .bind(4, std::string_view(part.label))
          .bind(5, int64_t(part.voxels));
      s.bind(6, int64_t(blob->count))
          .bind(7, int64_t(blob->plain_bytes))
          .bind(8, int64_t(blob->checksum))
          .bind(9, std::span<const uint8_t>(blob->data));
      QRY_TRY(s.execute());
      head->history_sum += blob->checksum;
      ++part.part;
    }
  } while (done < all);
  head->length = ++head->position;
  return {};
}

}  // namespace quarry::io
