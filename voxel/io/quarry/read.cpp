// SPDX-License-Identifier: Apache-2.0
// read.cpp - reads the tables of a .quarry file into a scene and its history. Nothing is trusted: every value's type
// and range, every checksum and every count is checked. A world that would not fit into memory is rejected before its
// bricks are read.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/parallel.hpp"
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/pipeline.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {
namespace {

constexpr int64_t kMaxRows = int64_t(1) << 31;  // of volumes, layers, instances, cameras

Result<std::map<std::string, int64_t>> read_state(Db& db) {
  std::map<std::string, int64_t> state;
  auto r = for_rows(db, "SELECT key, value FROM state", "state", [&](Statement& s) -> Result<void> {
    if (state.size() > 64) return damaged("table state has too many rows");
    state[s.text(0, "key")] = s.integer(1, "value");
    return {};
  });
  QRY_TRY(r);
  for (const char* key : {kOverlapKey, kPositionKey, kLengthKey, kHistoryKey, kHistorySumKey, kSceneSumKey,
                          kPaletteSumKey, kVolumesSumKey})
    if (!state.count(key))
      return fail(ErrorCode::malformed_input, "table state has no row '" + std::string(key) + "'; the file is damaged");
  return state;
}

// Ids count from 0 without gaps, in every table.
int64_t next_id(Statement& s, size_t expected) { return s.integer(0, "id", int64_t(expected), int64_t(expected)); }

Result<void> read_volumes(Db& db, Scene* scene, StoreHead* head) {
  return for_rows(
      db, "SELECT id, name, size_x, size_y, size_z, chunks, bricks, chunk_sum FROM volumes ORDER BY id", "volumes",
      [&](Statement& s) -> Result<void> {
        next_id(s, head->volumes.size());
        Volume v;
        v.name = s.text(1, "name");
        v.size = {s.int32(2, "size_x"), s.int32(3, "size_y"), s.int32(4, "size_z")};
        head->volumes.push_back({s.integer(5, "chunks", 0, INT64_MAX), s.integer(6, "bricks", 0, int64_t(1) << 40),
                                 uint64_t(s.integer(7, "chunk_sum"))});
        if (scene) scene->volumes.push_back(std::move(v));
        return {};
      });
}

Result<void> read_small_tables(Db& db, Scene* scene) {
  QRY_TRY(for_rows(db, "SELECT key, value FROM meta ORDER BY key", "meta", [&](Statement& s) -> Result<void> {
    std::string key = s.text(0, "key");
    scene->metadata[std::move(key)] = s.text(1, "value");
    return {};
  }));
  QRY_TRY(for_rows(db, "SELECT id, name, hidden FROM layers ORDER BY id", "layers", [&](Statement& s) -> Result<void> {
    next_id(s, scene->layers.size());
    Layer l;
    l.name = s.text(1, "name");
    l.hidden = s.integer(2, "hidden", 0, 1) != 0;
    scene->layers.push_back(std::move(l));
    return {};
  }));
  QRY_TRY(for_rows(db,
                   "SELECT id, volume, rotation, x, y, z, layer, hidden, name, group_path FROM instances ORDER BY id",
                   "instances", [&](Statement& s) -> Result<void> {
                     next_id(s, scene->instances.size());
                     Instance n;
                     n.volume = uint32_t(s.integer(1, "volume", 0, int64_t(scene->volumes.size()) - 1));
                     n.rotation = unpack_rotation(s.integer(2, "rotation", 0, 511));
                     if (!n.rotation.valid()) s.fail_row("rotation", "expected one of the 48");
                     n.offset = {s.int32(3, "x"), s.int32(4, "y"), s.int32(5, "z")};
                     n.layer = s.int32(6, "layer", -1, int32_t(std::min<size_t>(scene->layers.size(), INT32_MAX)) - 1);
                     n.hidden = s.integer(7, "hidden", 0, 1) != 0;
                     n.name = s.text(8, "name");
                     n.group_path = s.text(9, "group_path");
                     scene->instances.push_back(std::move(n));
                     return {};
                   }));
  return for_rows(db, "SELECT * FROM cameras ORDER BY id", "cameras", [&](Statement& s) -> Result<void> {
    next_id(s, scene->cameras.size());
    Camera c;
    c.name = s.text(1, "name");
    for (int a = 0; a < 3; ++a) {
      c.position[a] = s.real(2 + a, "position");
      c.target[a] = s.real(5 + a, "target");
    }
    c.vertical_fov_degrees = s.real(8, "vertical_fov");
    scene->cameras.push_back(std::move(c));
    return {};
  });
}

Result<void> read_palette(Db& db, Palette* palette) {
  size_t rows = 0;
  auto r = for_rows(db, "SELECT * FROM palette ORDER BY id", "palette", [&](Statement& s) -> Result<void> {
    if (rows == 256) return damaged("table palette has more than 256 rows");
    next_id(s, rows);
    Material& m = palette->materials[rows];
    palette->names[rows++] = s.text(1, "name");
    const uint32_t rgba = uint32_t(s.integer(2, "rgba", 0, UINT32_MAX));
    m.r = uint8_t(rgba), m.g = uint8_t(rgba >> 8), m.b = uint8_t(rgba >> 16), m.a = uint8_t(rgba >> 24);
    int column = 3;
    for (float* v : {&m.roughness, &m.metalness, &m.emission, &m.transparency, &m.ior, &m.reserved[0], &m.reserved[1]})
      *v = float(s.real(column++, "value"));
    return {};
  });
  if (r && rows != 256) return damaged("table palette has " + std::to_string(rows) + " rows, expected 256");
  return r;
}

// One row of the table chunks. All but the blob's content is checked.
struct ChunkRow {
  uint32_t volume = 0, bricks = 0, bytes = 0;
  Int3 chunk;
  uint64_t checksum = 0;
  std::span<const uint8_t> data;  // valid until the next row
  std::string name() const {
    return "table chunks, volume " + std::to_string(volume) + ", chunk (" + std::to_string(chunk.x) + ", " +
           std::to_string(chunk.y) + ", " + std::to_string(chunk.z) + ")";
  }
};
constexpr size_t kChunksAtOnce = 16;  // a thread
constexpr const char* kChunkColumns = "SELECT volume, x, y, z, bricks, bytes, checksum, data FROM chunks ";

Result<ChunkRow> chunk_row(Statement& s, size_t volumes) {
  ChunkRow row;
  row.volume = uint32_t(s.integer(0, "volume", 0, int64_t(volumes) - 1));
  row.chunk = {s.int32(1, "x", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1),
               s.int32(2, "y", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1),
               s.int32(3, "z", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1)};
  row.bricks = uint32_t(s.integer(4, "bricks", 1, kChunkBricks));
  row.bytes = uint32_t(s.integer(5, "bytes", 0, kChunkBytesMax));
  row.checksum = uint64_t(s.integer(6, "checksum"));
  row.data = s.blob(7, "data", 2 * kChunkBytesMax);
  QRY_TRY(s.row_check());
  if (chunk_checksum(row.data, row.volume, row.chunk, row.bytes, row.bricks) != row.checksum)
    return tl::unexpected(damaged(row.name() + ": the checksum is wrong").error());
  return row;
}

Result<StoreHead> head_from(Db& db, const std::map<std::string, int64_t>& state, Scene* scene) {
  StoreHead head;
  for (const char* table : {"volumes", "layers", "instances", "cameras"}) {
    QRY_TRY_ASSIGN(const auto rows, db.integer(("SELECT count(*) FROM " + std::string(table)).c_str(), table));
    if (rows > kMaxRows)
      return fail(ErrorCode::malformed_input, "table " + std::string(table) + " has " + std::to_string(rows) +
                                                  " rows, expected at most " + std::to_string(kMaxRows));
  }
  QRY_TRY_ASSIGN(const auto version, db.integer("PRAGMA user_version", "read the database's header"));
  head.version = version;
  const auto unfinished = [&](const char* key) {
    const auto row = state.find(key);
    return row == state.end() ? std::nullopt : std::optional(row->second);
  };
  if (const auto from = unfinished(kUnfinishedFromKey), is_new = unfinished(kUnfinishedNewKey),
      its_version = unfinished(kUnfinishedVersionKey);
      from || is_new || its_version || version == kUnfinished) {
    if (version != kUnfinished || !from || !is_new || !its_version || *its_version < 1 || *its_version >= kUnfinished)
      return tl::unexpected(damaged("table state: it does not say where the step began that is not whole").error());
    head.version = *its_version;
    head.unfinished = UnfinishedStep{*from, *is_new != 0};
  }
  QRY_TRY(read_volumes(db, scene, &head));
  head.position = state.at(kPositionKey);
  head.length = state.at(kLengthKey);
  head.history_sum = uint64_t(state.at(kHistoryKey));
  if (volumes_sum(head) != uint64_t(state.at(kVolumesSumKey)))
    return fail(ErrorCode::malformed_input, "table volumes: the checksum is wrong; the file is damaged");
  const int64_t from = head.unfinished ? head.unfinished->position : 0;
  if (history_state_sum(head) != uint64_t(state.at(kHistorySumKey)) || head.position < 0 ||
      head.position > head.length || from < 0 || from > head.length)
    return fail(ErrorCode::malformed_input,
                "table state: the checksum of the history's place is wrong; the file is damaged");
  return head;
}

// What is done with each chunk: `check` while its row is read, by one thread at a time in the order of the rows, then
// `decode` by several threads at once, then `put` by one at a time in order, which may take the bricks. Whatever fails
// first in the order of the rows is reported.
struct ChunkSteps {
  std::function<Result<void>(const ChunkRow& row)> check;
  std::function<Result<std::vector<BrickPut>>(const ChunkRow& row, const PackedChunk& chunk)> decode;
  std::function<Result<void>(const ChunkRow& row, std::vector<BrickPut>& bricks)> put;
};

// A row and what its data was.
struct ChunkCopy {
  ChunkRow row;
  std::vector<uint8_t> data;
  Result<std::vector<BrickPut>> decoded(const ChunkSteps& steps, const StoreHead& head) {
    row.data = {};
    auto bricks = steps.decode(row, {data, row.bytes, row.bricks, row.chunk, head.version});
    if (!bricks) return tl::unexpected(of_row(row.name(), bricks.error()));
    return bricks;
  }
};

// None after the last.
Result<std::optional<ChunkCopy>> next_chunk(Statement& rows, const StoreHead& head, const ChunkSteps& steps) {
  QRY_TRY_ASSIGN(const auto there, rows.step());
  if (!there) return std::optional<ChunkCopy>();
  QRY_TRY_ASSIGN(const auto row, chunk_row(rows, head.volumes.size()));
  QRY_TRY(steps.check(row));
  return ChunkCopy{row, {row.data.begin(), row.data.end()}};
}

Result<void> take_chunks(Statement rows, const StoreHead& head, const Progress& progress, const ChunkSteps& steps,
                         uint64_t most_waiting) {
  struct Decoded {
    ChunkRow row;  // without its data
    std::vector<BrickPut> bricks;
  };
  const auto next = [&]() -> Result<std::optional<ChunkCopy>> {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    return next_chunk(rows, head, steps);
  };
  const auto decode = [&](ChunkCopy& from) -> Result<Decoded> {
    QRY_TRY_ASSIGN(auto bricks, from.decoded(steps, head));
    return Decoded{from.row, std::move(bricks)};
  };
  const auto put = [&](Decoded& one) { return steps.put(one.row, one.bricks); };
  return Pipeline<ChunkCopy, Decoded>({next, decode, put}, chunks_in_flight(most_waiting)).run();
}

// Errors: malformed_input if a volume's chunks are not those that its row counts.
Result<void> check_counts(size_t volume, const StoreHead::Volume& found, const StoreHead::Volume& expected) {
  if (found.chunks == expected.chunks && found.sum == expected.sum && found.bricks == expected.bricks) return {};
  return damaged("volume " + std::to_string(volume) + " has " + std::to_string(found.chunks) + " chunks with " +
                 std::to_string(found.bricks) + " bricks, expected " + std::to_string(expected.chunks) + " with " +
                 std::to_string(expected.bricks));
}

// All chunks of all volumes, checked against the head.
Result<void> each_chunk(Db& db, const StoreHead& head, const Progress& progress, ChunkSteps steps,
                        uint64_t most_waiting) {
  QRY_TRY_ASSIGN(auto rows,
                 Statement::prepare(db, (std::string(kChunkColumns) + "ORDER BY volume, x, y, z").c_str(), "chunks"));
  std::vector<StoreHead::Volume> seen(head.volumes.size());
  ThrottledReport report(progress, "read");
  int64_t total = 1, done = 0;
  for (const StoreHead::Volume& v : head.volumes) total += v.bricks;
  steps.check = [&](const ChunkRow& row) -> Result<void> {
    StoreHead::Volume& v = seen[row.volume];
    v.bricks += row.bricks;
    if (v.bricks > head.volumes[row.volume].bricks)
      return damaged(row.name() + ": there are more bricks than the volume has");
    ++v.chunks;
    v.sum += row.checksum;
    return {};
  };
  const auto put = std::move(steps.put);
  steps.put = [&](const ChunkRow& row, std::vector<BrickPut>& bricks) -> Result<void> {
    if (put) QRY_TRY(put(row, bricks));
    report.at(double(done += row.bricks) / double(total));
    return {};
  };
  QRY_TRY(take_chunks(std::move(rows), head, progress, steps, most_waiting));
  for (size_t i = 0; i < seen.size(); ++i) QRY_TRY(check_counts(i, seen[i], head.volumes[i]));
  return {};
}

// Steps that make bricks of no world's pool: handles are made by all threads.
ChunkSteps loose_steps() {
  return {[](const ChunkRow&) -> Result<void> { return {}; },
          [](const ChunkRow&, const PackedChunk& chunk) { return chunk.bricks(BrickPool::loose()); },
          {}};
}

// The same, which puts them into maps; those are written by one thread.
ChunkSteps put_steps(const ChunkTarget& target) {
  ChunkSteps steps = loose_steps();
  steps.put = [&target](const ChunkRow& row, std::vector<BrickPut>& bricks) -> Result<void> {
    QRY_TRY_ASSIGN(const auto into, target(row.volume, row.bricks));
    into->put(bricks);
    return {};
  };
  return steps;
}

}  // namespace

size_t chunks_in_flight(uint64_t most_waiting) {
  return size_t(std::clamp<uint64_t>(most_waiting / kChunkBricks, 1, kChunksAtOnce * thread_count()));
}

Result<void> read_all_chunks(Db& db, const StoreHead& head, const Progress& progress, const ChunkTarget& target,
                             uint64_t most_waiting) {
  return each_chunk(db, head, progress, put_steps(target), most_waiting);
}

Result<void> visit_all_chunks(Db& db, const StoreHead& head, const Progress& progress, const ChunkVisit& visit) {
  const auto decode = [&](const ChunkRow& row, const PackedChunk& chunk) -> Result<std::vector<BrickPut>> {
    QRY_TRY(visit(row.volume, chunk));
    return std::vector<BrickPut>();
  };
  return each_chunk(db, head, progress, {{}, decode, {}}, UINT64_MAX);
}

namespace {

constexpr const char* kInBox =
    "WHERE volume = ?1 AND x BETWEEN ?2 AND ?3 AND y BETWEEN ?4 AND ?5 AND z BETWEEN ?6 AND ?7";
void bind_box(Statement& s, uint32_t volume, const Box3& box) {
  s.bind(1, int64_t(volume))
      .bind(2, int64_t(box.min.x))
      .bind(3, int64_t(box.max.x))
      .bind(4, int64_t(box.min.y))
      .bind(5, int64_t(box.max.y))
      .bind(6, int64_t(box.min.z))
      .bind(7, int64_t(box.max.z));
}

}  // namespace

Result<void> visit_some_chunks(Db& db, const StoreHead& head, const ChunkBox& box, const Progress& progress,
                               const ChunkVisit& visit) {
  QRY_TRY_ASSIGN(
      auto rows,
      Statement::prepare(db, (std::string(kChunkColumns) + kInBox + " ORDER BY volume, x, y, z").c_str(), "chunks"));
  bind_box(rows, box.volume, box.chunks);
  const ChunkSteps steps{[](const ChunkRow&) -> Result<void> { return {}; },
                         [&](const ChunkRow& row, const PackedChunk& chunk) -> Result<std::vector<BrickPut>> {
                           QRY_TRY(visit(row.volume, chunk));
                           return std::vector<BrickPut>();
                         },
                         [](const ChunkRow&, std::vector<BrickPut>&) -> Result<void> { return {}; }};
  return take_chunks(std::move(rows), head, progress, steps, UINT64_MAX);
}

Result<std::vector<ChunkBricks>> list_chunks(Db& db, const StoreHead& head, uint32_t volume) {
  QRY_TRY_ASSIGN(auto rows,
                 Statement::prepare(
                     db, "SELECT x, y, z, bricks, checksum FROM chunks WHERE volume = ?1 ORDER BY x, y, z", "chunks"));
  rows.bind(1, int64_t(volume));
  std::vector<ChunkBricks> list;
  StoreHead::Volume found;
  for (;;) {
    QRY_TRY_ASSIGN(const auto there, rows.step());
    if (!there) break;
    ChunkBricks& one = list.emplace_back();
    one.chunk = {rows.int32(0, "x", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1),
                 rows.int32(1, "y", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1),
                 rows.int32(2, "z", -kMaxChunkCoordinate, kMaxChunkCoordinate - 1)};
    one.bricks = uint32_t(rows.integer(3, "bricks", 1, kChunkBricks));
    found.sum += uint64_t(rows.integer(4, "checksum"));
    QRY_TRY(rows.row_check());
    ++found.chunks;
    found.bricks += one.bricks;
  }
  QRY_TRY(check_counts(volume, found, head.volumes[volume]));
  return list;
}

Result<uint64_t> count_chunk_bricks(Db& db, uint32_t volume, const Box3& chunks) {
  QRY_TRY_ASSIGN(
      auto s,
      Statement::prepare(db, (std::string("SELECT coalesce(sum(bricks), 0) FROM chunks ") + kInBox).c_str(), "chunks"));
  bind_box(s, volume, chunks);
  QRY_TRY_ASSIGN(const auto row, s.step());
  const int64_t bricks = row ? s.integer(0, "bricks", 0, int64_t(1) << 40) : 0;
  QRY_TRY(s.row_check());
  return uint64_t(bricks);
}

Result<void> read_some_chunks(Db& db, const StoreHead& head, uint32_t volume, const Box3& chunks,
                              const Progress& progress, BrickMap& into, uint64_t most_waiting) {
  QRY_TRY_ASSIGN(
      auto rows,
      Statement::prepare(db, (std::string(kChunkColumns) + kInBox + " ORDER BY volume, x, y, z").c_str(), "chunks"));
  bind_box(rows, volume, chunks);
  const ChunkTarget target = [&](uint32_t, uint32_t) -> Result<BrickMap*> { return &into; };
  const ChunkSteps steps = put_steps(target);
  return take_chunks(std::move(rows), head, progress, steps, most_waiting);
}

Result<void> read_chunk_pieces(Db& db, const StoreHead& head, std::span<const std::vector<ChunkBox>> pieces,
                               const PieceSteps& steps, const Progress& progress, size_t most_waiting) {
  struct Piece {
    size_t number = 0;
    std::vector<ChunkCopy> chunks;
  };
  // A row of chunks along z is a run of the table's key. Of a box as a range of x the table is searched from its first
  // to its last, which for a small box in a large volume is nearly all in vain.
  QRY_TRY_ASSIGN(auto rows,
                 Statement::prepare(db,
                                    (std::string(kChunkColumns) +
                                     "WHERE volume = ?1 AND x = ?2 AND y = ?3 AND z BETWEEN ?4 AND ?5 ORDER BY z")
                                        .c_str(),
                                    "chunks"));
  const ChunkSteps of_chunk = loose_steps();
  size_t read = 0;
  const auto read_row = [&](uint32_t volume, int32_t x, int32_t y, const Box3& box, Piece& piece) -> Result<void> {
    rows.reset();
    rows.bind(1, int64_t(volume)).bind(2, int64_t(x)).bind(3, int64_t(y));
    rows.bind(4, int64_t(box.min.z)).bind(5, int64_t(box.max.z));
    for (;;) {
      QRY_TRY_ASSIGN(auto chunk, next_chunk(rows, head, of_chunk));
      if (!chunk) return {};
      piece.chunks.push_back(std::move(*chunk));
    }
  };
  const auto next = [&]() -> Result<std::optional<Piece>> {
    if (read == pieces.size()) return std::optional<Piece>();
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    Piece piece{read, {}};
    for (const auto& [volume, chunks] : pieces[read++]) {
      const Box3 box = intersected(chunks, {{-kMaxChunkCoordinate, -kMaxChunkCoordinate, -kMaxChunkCoordinate},
                                            {kMaxChunkCoordinate, kMaxChunkCoordinate, kMaxChunkCoordinate}});
      if (box.empty()) continue;
      for (int32_t x = box.min.x; x <= box.max.x; ++x)
        for (int32_t y = box.min.y; y <= box.max.y; ++y) QRY_TRY(read_row(volume, x, y, box, piece));
    }
    return std::optional<Piece>(std::move(piece));
  };
  most_waiting =
      std::clamp<size_t>(most_waiting, 1, std::min(2 * size_t(thread_count()), std::max<size_t>(1, pieces.size())));
  // Where few pieces wait, several threads decode the chunks of one.
  const uint32_t threads = uint32_t(std::max<size_t>(1, thread_count() / most_waiting));
  const auto decode = [&](Piece& piece) -> Result<size_t> {
    std::vector<ChunkRead> out(piece.chunks.size());
    std::vector<Result<void>> said(piece.chunks.size());
    parallel_for(
        piece.chunks.size(), 1,
        [&](size_t i, size_t) {
          auto bricks = piece.chunks[i].decoded(of_chunk, head);
          if (bricks) out[i] = {piece.chunks[i].row.volume, std::move(*bricks)};
          else said[i] = tl::unexpected(bricks.error());
        },
        threads);
    for (const Result<void>& one : said) QRY_TRY(one);
    piece.chunks.clear();
    QRY_TRY(steps.take(piece.number, out));
    return piece.number;
  };
  const auto put = [&](size_t& number) { return steps.put(number); };
  return Pipeline<Piece, size_t>({next, decode, put}, most_waiting).run();
}

Result<uint64_t> fingerprint_of(Db& db) {
  FieldSum sum;
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, "SELECT key, value FROM state WHERE key <> ?1 ORDER BY key", "state"));
  s.bind(1, kLogNumberKey);
  for (;;) {
    QRY_TRY_ASSIGN(const auto row, s.step());
    if (!row) return sum.value();
    sum.add(s.text(0, "key")).add(s.integer(1, "value"));
    QRY_TRY(s.row_check());
  }
}

Result<StoreHead> read_head(Db& db) {
  QRY_TRY_ASSIGN(const auto state, read_state(db));
  return head_from(db, state, nullptr);
}

Result<Scene> read_without_chunks(Db& db, StoreHead* head) {
  QRY_TRY_ASSIGN(const auto state, read_state(db));
  Scene scene;
  QRY_TRY_ASSIGN(auto got, head_from(db, state, &scene));
  const int64_t overlap = state.at(kOverlapKey);
  if (overlap != 0 && overlap != 1)
    return fail(ErrorCode::malformed_input, "table state, overlap: expected 0 or 1, found " + std::to_string(overlap));
  scene.overlap = overlap ? OverlapRule::last_instance_wins : OverlapRule::first_instance_wins;
  QRY_TRY(read_small_tables(db, &scene));
  if (scene_sum(scene) != uint64_t(state.at(kSceneSumKey)))
    return fail(
        ErrorCode::malformed_input,
        "tables meta, volumes, layers, instances, cameras: the checksum over them is wrong; the file is damaged");
  QRY_TRY(read_palette(db, &scene.palette));
  if (palette_sum(scene.palette) != uint64_t(state.at(kPaletteSumKey)))
    return fail(ErrorCode::malformed_input, "table palette: the checksum is wrong; the file is damaged");
  *head = std::move(got);
  return scene;
}

Result<Scene> read_tables(Db& db, uint64_t memory_limit, const Progress& progress, const BrickPool* pool,
                          StoreHead* head) {
  auto scene = read_without_chunks(db, head);
  QRY_TRY(scene);
  uint64_t bricks = 0;
  for (const StoreHead::Volume& v : head->volumes) bricks += uint64_t(v.bricks);
  if (bricks > memory_limit / kBrickMemoryBytes)
    return fail(ErrorCode::out_of_memory, "its " + std::to_string(bricks) + " bricks need " +
                                              std::to_string(bricks * kBrickMemoryBytes >> 20) +
                                              " MiB of memory; there are " + std::to_string(memory_limit >> 20));
  if (pool)
    for (Volume& volume : scene->volumes) QRY_TRY(volume.bricks.move_to(*pool));
  // One thread only collects the bricks, which come chunk by chunk, slab by slab along x; then all threads sort the
  // slabs and make their maps.
  struct Slab {
    uint32_t volume;
    int32_t chunk_x;
    std::vector<BrickPut> bricks;
    BrickMap map;
  };
  std::vector<Slab> slabs;
  const auto make = [pool](const ChunkRow&, const PackedChunk& chunk) {
    return chunk.bricks(pool ? *pool : BrickPool::loose());
  };
  const auto collect = [&](const ChunkRow& row, std::vector<BrickPut>& some) -> Result<void> {
    if (slabs.empty() || slabs.back().volume != row.volume || slabs.back().chunk_x != row.chunk.x)
      slabs.push_back({row.volume, row.chunk.x, {}, {}});
    std::vector<BrickPut>& all = slabs.back().bricks;
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    return {};
  };
  QRY_TRY(each_chunk(db, *head, progress, {{}, make, collect}, UINT64_MAX));
  parallel_for(slabs.size(), 1, [&](size_t i, size_t) {
    std::vector<BrickPut>& all = slabs[i].bricks;
    std::sort(all.begin(), all.end(), [](const BrickPut& a, const BrickPut& b) { return a.brick < b.brick; });
    slabs[i].map.put(all);
    std::vector<BrickPut>().swap(all);
  });
  for (Slab& slab : slabs) scene->volumes[slab.volume].bricks.append(std::move(slab.map));
  return scene;
}

namespace {

// One row of the table journal. All but the blob's content is checked.
struct PartRow {
  RecordHead part;
  uint32_t count = 0, bytes = 0;
  bool starts = false;  // it is its record's first part
  std::vector<uint8_t> data;
  bool of_palette() const { return part.volume == kPaletteVolume; }
  std::string name() const {
    return "table journal, record " + std::to_string(part.record) + ", part " + std::to_string(part.part);
  }
};
// Some are read, and decoded, at a time: most are small.
constexpr size_t kPartsAtOnce = 64;
constexpr uint64_t kPlainBytesAtOnce = uint64_t(1) << 19;
constexpr size_t kPiecesWaiting = 4;  // a thread

// The rows in the order of the records, checked against the head; or those of applied records from the last one back.
class PartRows {
 public:
  // Of some records. `back`: those of all that are applied.
  static Result<PartRows> select(Db& db, const StoreHead& head, bool back, RecordRange range = {}) {
    const char* const text = back ? "SELECT record, part, volume, label, voxels, changes, bytes, checksum, data FROM "
                                    "journal WHERE record BETWEEN ?1 AND ?2 ORDER BY record DESC, part DESC"
                                  : "SELECT record, part, volume, label, voxels, changes, bytes, checksum, data FROM "
                                    "journal WHERE record BETWEEN ?1 AND ?2 ORDER BY record, part";
    if (back) range = {1, head.position};
    QRY_TRY_ASSIGN(auto rows, Statement::prepare(db, text, "journal"));
    rows.bind(1, range.first).bind(2, range.last);
    return PartRows(std::move(rows), head, back, range);
  }
  Result<std::optional<std::vector<PartRow>>> next(const Progress& progress) {
    std::vector<PartRow> some;
    for (uint64_t bytes = 0; !ended_ && some.size() < kPartsAtOnce && bytes < kPlainBytesAtOnce;) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
      QRY_TRY_ASSIGN(const auto there, rows_.step());
      ended_ = !there;  // a further step would begin anew
      if (ended_) break;
      some.emplace_back();
      QRY_TRY(read(some.back()));
      bytes += some.back().bytes;
    }
    if (!some.empty()) return std::optional(std::move(some));
    if (!back_) QRY_TRY(check_all());
    return std::optional<std::vector<PartRow>>();
  }

 private:
  PartRows(Statement rows, const StoreHead& head, bool back, RecordRange range)
      : rows_(std::move(rows)), head_(head), back_(back), range_(range) {
    last_.record = range.first - 1;
  }

  Result<void> read(PartRow& row) {
    Statement& s = rows_;
    RecordHead& next = row.part;
    next.record = s.integer(0, "record", 1, head_.length);
    next.part = uint32_t(s.integer(1, "part", 0, UINT32_MAX));
    next.volume =
        s.integer(2, "volume", head_.version >= kSteps ? kPaletteVolume : 0, int64_t(head_.volumes.size()) - 1);
    next.label = s.text(3, "label");
    next.voxels = uint64_t(s.integer(4, "voxels", 0, INT64_MAX));
    row.count = uint32_t(s.integer(5, "changes", 0, kPartChanges));
    row.bytes = uint32_t(s.integer(6, "bytes", 0, kPartBytesMax));
    const uint64_t checksum = uint64_t(s.integer(7, "checksum"));
    const std::span<const uint8_t> data = s.blob(8, "data", 2 * kPartBytesMax);
    QRY_TRY(s.row_check());
    if (part_checksum(data, next, row.bytes, row.count) != checksum)
      return damaged(row.name() + ": the checksum is wrong");
    if (!back_) {
      const bool continues = next.part == 1 && next.record > 1 && head_.version >= kSteps;
      row.starts = next.record == last_.record + 1 && (next.part == 0 || continues);
      const bool goes_on = next.part > 0 && next.record == last_.record && next.part == last_.part + 1 &&
                           next.volume == last_.volume && next.label == last_.label && next.voxels == last_.voxels;
      if (!row.starts && !goes_on) return damaged(row.name() + " does not follow the one before it");
      if (row.of_palette() && goes_on) return damaged(row.name() + ": a change of the palette has one part");
      sum_ += checksum;
    }
    row.data.assign(data.begin(), data.end());
    last_ = next;
    return {};
  }

  // Records are numbered from 1 without gaps.
  Result<void> check_all() const {
    const bool whole = range_.last >= head_.length && range_.first == 1;
    if (last_.record == std::min(range_.last, head_.length) && (!whole || sum_ == head_.history_sum)) return {};
    if (!whole) return fail(ErrorCode::malformed_input, "table journal lacks records; the file is damaged");
    return fail(ErrorCode::malformed_input, "table journal has " + std::to_string(last_.record) +
                                                " records, expected " + std::to_string(head_.length) +
                                                " with another checksum; the file is damaged");
  }

  Statement rows_;
  const StoreHead& head_;
  bool back_, ended_ = false;
  RecordRange range_;
  RecordHead last_;
  uint64_t sum_ = 0;
};

// A row, decoded: its changes of voxels as T, or those of the palette.
template <class T>
struct DecodedPart {
  PartRow row;  // without its data
  std::optional<PackedPart::Range> range;
  T voxels{};
  std::vector<MaterialChange> materials;
};
template <class T>
using DecodePart = std::function<Result<std::optional<PackedPart::Range>>(const PackedPart& part, T& out)>;

// All threads decode, one at a time takes, in the order of the rows. Memory: some parts a thread.
template <class T>
Result<void> take_parts(Db& db, const StoreHead& head, bool back, const Progress& progress, const DecodePart<T>& decode,
                        const std::function<Result<void>(DecodedPart<T>& part)>& take, RecordRange range = {}) {
  QRY_TRY_ASSIGN(auto rows, PartRows::select(db, head, back, range));
  using Rows = std::vector<PartRow>;
  using Parts = std::vector<DecodedPart<T>>;
  const auto decode_one = [&](const PartRow& row, DecodedPart<T>& part) -> Result<void> {
    if (row.of_palette()) return decode_materials(row.data, row.bytes, row.count, &part.materials);
    QRY_TRY_ASSIGN(part.range, decode({row.data, row.bytes, row.count, head.version}, part.voxels));
    return {};
  };
  const auto decode_all = [&](Rows& some) -> Result<Parts> {
    Parts parts(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      if (const auto decoded = decode_one(some[i], parts[i]); !decoded)
        return tl::unexpected(of_row(some[i].name(), decoded.error()));
      some[i].data = {};
      parts[i].row = std::move(some[i]);
    }
    return parts;
  };
  int64_t record = 0;
  std::optional<PackedPart::Range> beside;  // of this record's part that was taken last
  const auto take_all = [&](Parts& parts) -> Result<void> {
    for (DecodedPart<T>& part : parts) {
      if (std::exchange(record, part.row.part.record) != record) beside.reset();
      if (beside && part.range && !(back ? part.range->last < beside->first : beside->last < part.range->first))
        return damaged(part.row.name() + ": expected the bricks of the changes to rise");
      if (part.range) beside = part.range;
      QRY_TRY(take(part));
    }
    return {};
  };
  const PipelineSteps<Rows, Parts> steps{[&] { return rows.next(progress); }, decode_all, take_all};
  return Pipeline<Rows, Parts>(steps, kPiecesWaiting * thread_count()).run();
}

}  // namespace

Result<std::vector<UndoRecord>> read_history(Db& db, const StoreHead& head, uint64_t memory_limit,
                                             const Progress& progress, const BrickPool* pool, RecordRange range) {
  using Changes = std::vector<BrickChange>;
  std::vector<UndoRecord> records;
  uint64_t changes = 0;
  const auto decode = [&](const PackedPart& part, Changes& out) -> Result<std::optional<PackedPart::Range>> {
    QRY_TRY_ASSIGN(out, part.changes(pool ? *pool : BrickPool::loose()));
    if (out.empty()) return std::optional<PackedPart::Range>();
    return PackedPart::Range{out.front().brick, out.back().last()};
  };
  const auto take = [&](DecodedPart<Changes>& part) -> Result<void> {
    const RecordHead& its = part.row.part;
    // A change of the palette counts as those that take its memory.
    changes += part.row.of_palette() ? part.row.bytes / sizeof(BrickChange) + 1 : uint64_t(part.voxels.size());
    if (changes > memory_limit / sizeof(BrickChange))
      return fail(ErrorCode::out_of_memory,
                  "its history of edits needs more than " + std::to_string(memory_limit >> 20) + " MiB of memory");
    if (part.row.starts) {
      UndoRecord& record = records.emplace_back();
      record.volume = part.row.of_palette() ? 0 : uint32_t(its.volume);
      record.continues = its.part == 1;
      record.label = its.label;
      record.voxels_changed = its.voxels;
      record.materials = std::move(part.materials);
    }
    Changes& all = records.back().changes;
    if (part.voxels.empty()) return {};
    append_change(all, std::move(part.voxels.front()));
    all.insert(all.end(), std::make_move_iterator(part.voxels.begin() + 1), std::make_move_iterator(part.voxels.end()));
    return {};
  };
  QRY_TRY(take_parts<Changes>(db, head, false, progress, decode, take, range));
  return records;
}

// A step begins with a record that has a part 0.
Result<RecordRange> step_beside(Db& db, const StoreHead& head, int64_t number, bool before) {
  const char* const text = before ? "SELECT coalesce(max(record), 0) FROM journal WHERE record <= ?1 AND part = 0"
                                  : "SELECT coalesce(min(record), 0) FROM journal WHERE record > ?1 AND part = 0";
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, text, "journal"));
  QRY_TRY_ASSIGN(const bool there, s.bind(1, before ? number : number + 1).step());
  const int64_t found = there ? s.integer(0, "record", 0, head.length) : 0;
  QRY_TRY(s.row_check());
  if (before) return RecordRange{std::max<int64_t>(found, 1), number};
  return RecordRange{number + 1, found ? found - 1 : head.length};
}

Result<std::vector<StepName>> read_step_names(Db& db, const StoreHead& head, RecordRange range) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db,
                                            "SELECT min(part), label, voxels FROM journal WHERE record BETWEEN ?1 AND "
                                            "?2 GROUP BY record ORDER BY record",
                                            "journal"));
  s.bind(1, range.first).bind(2, std::min(range.last, head.length));
  std::vector<StepName> names;
  for (;;) {
    QRY_TRY_ASSIGN(const bool there, s.step());
    if (!there) return names;
    const bool continues = s.integer(0, "part", 0, 1) == 1;
    if (!continues || names.empty()) names.push_back({s.text(1, "label"), 0, 0, continues});
    names.back().voxels += uint64_t(s.integer(2, "voxels", 0, INT64_MAX));
    ++names.back().records;
    QRY_TRY(s.row_check());
  }
}

Result<void> visit_history(Db& db, const StoreHead& head, HistorySide side, const Progress& progress,
                           const HistoryVisit& visit) {
  const bool back = side == HistorySide::before;
  const auto decode = [back](const PackedPart& part, HistoryBricks& out) {
    return part.each([&](Int3 first, uint32_t count, const PackedPart::Side& before, const PackedPart::Side& after) {
      const PackedPart::Side& its = back ? before : after;
      if (!its.voxels) {
        out.full.push_back({first, count, its.full});
      } else {
        out.at.push_back(first);
        out.materials.push_back(its.voxels->materials);
      }
    });
  };
  const auto take = [&](DecodedPart<HistoryBricks>& part) -> Result<void> {
    const RecordHead& its = part.row.part;
    return visit({its.record, part.row.starts && its.part == 1, its.label, its.voxels, part.materials, part.voxels});
  };
  return take_parts<HistoryBricks>(db, head, back, progress, decode, take);
}

Result<void> check_history(Db& db, const StoreHead& head, const Progress& progress) {
  struct Nothing {};
  const auto decode = [](const PackedPart& part, Nothing&) {
    return part.each([](Int3, uint32_t, const PackedPart::Side&, const PackedPart::Side&) {});
  };
  return take_parts<Nothing>(db, head, false, progress, decode,
                             [](DecodedPart<Nothing>&) -> Result<void> { return {}; });
}

Result<Scene> read_world(Db& db, uint64_t memory_limit, const Progress& progress, std::vector<UndoRecord>* history,
                         size_t* history_position, const BrickPool* pool) {
  QRY_TRY(check_schema(db));
  // One transaction, so that all tables are of the same state.
  QRY_TRY(db.run("BEGIN", "begin reading"));
  StoreHead head;
  auto scene = read_tables(db, memory_limit, progress, pool, &head);
  if (scene && history) {
    auto records = read_history(db, head, memory_limit, progress, pool);
    if (records) *history = std::move(*records);
    else scene = tl::unexpected(records.error());
  }
  if (scene && history_position) *history_position = size_t(head.position);
  sqlite3_exec(db.handle(), "COMMIT", nullptr, nullptr, nullptr);
  return scene;
}

Result<bool> record_is(Db& db, int64_t number, const UndoRecord& record) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db,
                                            "SELECT volume, label, voxels, (SELECT sum(changes) FROM journal "
                                            "WHERE record = ?1) FROM journal WHERE record = ?1 AND part = ?2",
                                            "journal"));
  QRY_TRY_ASSIGN(const auto row, s.bind(1, number).bind(2, int64_t(record.continues)).step());
  if (!row) return false;
  const int64_t volume = record.of_palette() ? kPaletteVolume : int64_t(record.volume);
  bool same = s.integer(0, "volume") == volume && s.text(1, "label") == record.label &&
              s.integer(2, "voxels") == int64_t(record.voxels_changed);
  const int64_t changes = s.integer(3, "changes");
  QRY_TRY(s.row_check());
  if (record.of_palette()) return same && changes == int64_t(record.materials.size());
  // Older programs wrote the bricks of a row one by one.
  int64_t rows = 0;
  for (size_t i = 0; i < record.changes.size(); ++i)
    rows += i == 0 || !goes_on(record.changes[i - 1], record.changes[i]);
  return same && (changes == rows || changes == int64_t(bricks_in(record.changes)));
}

}  // namespace quarry::io
