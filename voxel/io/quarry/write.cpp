// SPDX-License-Identifier: Apache-2.0
// write.cpp - writes a scene, an edit or a palette into the tables of a .quarry file. The caller owns the transaction.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <new>
#include <span>
#include <vector>

#include "base/ahead.hpp"
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

// Compresses some chunks at a time, by all threads. After `progress` is cancelled blobs may be missing.
class ChunkEncoder {
 public:
  // As many as are about `group_bytes`, by what the last ones were, but at least two a thread.
  ChunkEncoder(const ChunkSource& bricks, std::span<const Int3> chunks, uint32_t volume, const Progress& progress,
               size_t group_bytes)
      : bricks_(bricks), rest_(chunks), volume_(volume), progress_(progress), group_bytes_(group_bytes) {}
  bool ended() const { return rest_.empty(); }
  Result<std::vector<Result<Blob>>> next() {
    constexpr size_t kMost = 256;
    const size_t least = std::min(2 * size_t(thread_count()), kMost);
    const auto some = rest_.first(std::min(std::clamp(group_bytes_ / bytes_, least, kMost), rest_.size()));
    rest_ = rest_.subspan(some.size());
    std::vector<Result<Blob>> blobs(some.size());
    if (some.empty()) return blobs;
    QRY_TRY_ASSIGN(const BrickMap* const map, bricks_(some));
    parallel_for(some.size(), 1, [&](size_t c, size_t) {
      if (progress_.cancelled()) return;
      try {
        blobs[c] = encode_chunk(*map, some[c], volume_);
      } catch (const std::bad_alloc&) {
        blobs[c] = fail(ErrorCode::out_of_memory, "not enough memory to compress a chunk");
      }
    });
    size_t bytes = 0;
    for (const Result<Blob>& blob : blobs) bytes += blob ? blob->data.size() : 0;
    bytes_ = std::max<size_t>(1, bytes / blobs.size());
    return blobs;
  }

 private:
  const ChunkSource& bricks_;
  std::span<const Int3> rest_;
  uint32_t volume_;
  const Progress& progress_;
  size_t group_bytes_, bytes_ = size_t(128) << 10;  // of a chunk
};

// Calls put(chunk, blob) for each chunk, in their order, while those after it are compressed.
template <class Put>
Result<void> put_chunks(const ChunkSource& bricks, std::span<const Int3> chunks, uint32_t volume,
                        const Progress& progress, const Put& put, size_t group_bytes = SIZE_MAX) {
  ChunkEncoder encoder(bricks, chunks, volume, progress, group_bytes);
  Ahead<std::vector<Result<Blob>>> ahead([&] { return encoder.next(); });
  for (size_t done = 0; done < chunks.size();) {
    QRY_TRY_ASSIGN(const auto blobs, ahead.next());
    if (!encoder.ended()) ahead.start();
    for (const Result<Blob>& blob : blobs) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
      QRY_TRY(blob);
      QRY_TRY(put(chunks[done], *blob));
      ++done;
    }
  }
  return {};
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

// The version is the file's own again as soon as nothing is unfinished.
Result<void> write_unfinished(Db& db, const StoreHead& head) {
  int64_t version = kUnfinished;
  if (head.unfinished) {
    QRY_TRY(write_state(db, kUnfinishedFromKey, head.unfinished->position));
    QRY_TRY(write_state(db, kUnfinishedNewKey, head.unfinished->is_new));
    QRY_TRY(write_state(db, kUnfinishedVersionKey, head.version));
  } else {
    QRY_TRY_ASSIGN(auto drop, Statement::prepare(db, "DELETE FROM state WHERE key IN (?1, ?2, ?3)", "state"));
    drop.bind(1, std::string_view(kUnfinishedFromKey)).bind(2, std::string_view(kUnfinishedNewKey));
    QRY_TRY(drop.bind(3, std::string_view(kUnfinishedVersionKey)).execute());
    if (sqlite3_changes(db.handle()) == 0) return {};
    version = head.version;
  }
  return db.run(("PRAGMA user_version=" + std::to_string(version)).c_str(), "mark the file's version");
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
Result<void> insert_chunk(Db& db, Statement& insert, const Blob& blob, Int3 chunk, uint32_t volume, StoreHead* head) {
  QRY_TRY(need_version(db, blob.version, head));
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

// Writes chunks that the file does not have yet. The rows and their order do not depend on the threads.
Result<void> write_new_chunks(Db& db, const BrickMap& bricks, std::span<const Int3> chunks, uint32_t volume,
                              StoreHead* head, const Progress& progress, const std::function<void()>& written) {
  QRY_TRY_ASSIGN(auto insert,
                 Statement::prepare(db, "INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", "chunks"));
  const ChunkSource source = [&](std::span<const Int3>) -> Result<const BrickMap*> { return &bricks; };
  const auto put = [&](Int3 chunk, const Blob& blob) -> Result<void> {
    QRY_TRY(insert_chunk(db, insert, blob, chunk, volume, head));
    written();
    return {};
  };
  constexpr size_t kGroupBytes = size_t(2) << 20;  // two groups are in memory at once
  return put_chunks(source, chunks, volume, progress, put, kGroupBytes);
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

Result<void> need_version(Db& db, int64_t version, StoreHead* head) {
  if (version <= head->version) return {};
  QRY_TRY(db.run(("PRAGMA user_version=" + std::to_string(version)).c_str(), "mark the file's version"));
  head->version = version;
  return {};
}

Result<void> write_chunks(Db& db, const ChunkSource& bricks, std::span<const Int3> chunks, uint32_t volume,
                          StoreHead* head) {
  QRY_TRY_ASSIGN(
      auto old,
      Statement::prepare(db, "SELECT bricks, checksum FROM chunks WHERE volume = ?1 AND x = ?2 AND y = ?3 AND z = ?4",
                         "chunks"));
  QRY_TRY_ASSIGN(auto drop, Statement::prepare(
                                db, "DELETE FROM chunks WHERE volume = ?1 AND x = ?2 AND y = ?3 AND z = ?4", "chunks"));
  QRY_TRY_ASSIGN(auto insert, Statement::prepare(
                                  db,
                                  "INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (volume, x, "
                                  "y, z) DO UPDATE SET bricks = ?5, bytes = ?6, "
                                  "checksum = ?7, data = ?8",
                                  "chunks"));
  return put_chunks(bricks, chunks, volume, {}, [&](Int3 chunk, const Blob& blob) -> Result<void> {
    bind_place(old, chunk, volume);
    QRY_TRY_ASSIGN(const auto there, old.step());
    if (there) {
      StoreHead::Volume& v = head->volumes[volume];
      --v.chunks;
      v.bricks -= old.integer(0, "bricks", 1, kChunkBricks);
      v.sum -= uint64_t(old.integer(1, "checksum"));
      QRY_TRY(old.row_check());
    }
    old.reset();
    if (blob.count) return insert_chunk(db, insert, blob, chunk, volume, head);
    if (!there) return {};
    bind_place(drop, chunk, volume);
    return drop.execute();
  });
}

Result<void> write_head(Db& db, const StoreHead& head, const std::set<uint32_t>& changed_volumes) {
  for (const uint32_t volume : changed_volumes) QRY_TRY(write_volume_head(db, head, volume));
  QRY_TRY(write_volumes_sum(db, head));
  QRY_TRY(write_history_state(db, head));
  return write_unfinished(db, head);
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
  const std::vector<Int3> chunks = bricks.chunks();
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

Result<void> TableWriter::history(const RecordSource& records, const std::function<size_t()>& position) {
  QRY_TRY(write_records(db_, records, &head_));
  head_.position = int64_t(std::min<uint64_t>(position(), uint64_t(head_.length)));
  return {};
}

Result<void> TableWriter::end() {
  if (!volumes_.empty()) QRY_TRY(go_to(uint32_t(volumes_.size())));
  QRY_TRY(write_volumes_sum(db_, head_));
  return write_history_state(db_, head_);
}

}  // namespace quarry::io
