// SPDX-License-Identifier: Apache-2.0
// writer.cpp - makes the database under a temporary name without a journal on disk, and renames it when it is whole.
#include "voxel/io/quarry/writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/file.hpp"
#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {

struct StoreWriter::State {
  const Progress& progress;
  Destination to;
  LockedFile old;
  std::optional<AtomicFile> world;
  Db db;
  std::optional<TableWriter> tables;
  ThrottledReport report;
  uint64_t expected = 0;  // bricks

  State(const Destination& where, const Progress& how) : progress(how), to(where), report(how, "save") {}

  Result<void> start(const Scene& scene) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    QRY_TRY_ASSIGN(auto locked, lock_replaced(to));
    old = std::move(locked);
    QRY_TRY_ASSIGN(auto made, AtomicFile::create(to));
    world.emplace(std::move(made));
    // Only this process uses the file, so SQLite needs no locks. Where flock is implemented by locks of SQLite's kind,
    // the two would conflict.
    auto opened = Db::open(world->temporary().string(), SQLITE_OPEN_READWRITE, "unix-none");
    QRY_TRY(opened);
    db = std::move(*opened);
    // There is no journal on disk (a new file has nothing to put in one; OFF is not available in SQLite's defensive
    // mode) and no fsync while writing, because nobody sees the file before it is whole and synced.
    for (const char* pragma : {"PRAGMA journal_mode=MEMORY", "PRAGMA synchronous=OFF", "PRAGMA locking_mode=EXCLUSIVE",
                               "PRAGMA temp_store=MEMORY", "BEGIN EXCLUSIVE"})
      QRY_TRY(db.run(pragma, "start the new file"));
    QRY_TRY(create_schema(db));
    for (const Volume& v : scene.volumes) expected += v.bricks.bricks().size();
    tables.emplace(db);
    return tables->begin(scene);
  }

  Result<void> finish() {
    QRY_TRY(tables->end());
    QRY_TRY(db.run("COMMIT", "finish the new file"));
    tables.reset();
    QRY_TRY_ASSIGN(const auto bytes, database_bytes());
    db = Db();
    world->written_by_name(bytes);
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    return put_in_place(*world, old);
  }

  // The length that the file must have.
  Result<uint64_t> database_bytes() {
    const auto pages = db.integer("PRAGMA page_count", "count the new file's pages"),
               bytes = db.integer("PRAGMA page_size", "count the new file's pages");
    if (!pages || !bytes) return tl::unexpected((pages ? bytes : pages).error());
    return uint64_t(*pages) * uint64_t(*bytes);
  }
};

StoreWriter::StoreWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter& StoreWriter::operator=(StoreWriter&&) noexcept = default;
StoreWriter::~StoreWriter() = default;

Result<StoreWriter> StoreWriter::create(const Scene& scene, const Destination& to, const Progress& progress) {
  return guarded(to.file, [&]() -> Result<StoreWriter> {
    auto state = std::make_unique<State>(to, progress);
    QRY_TRY(state->start(scene));
    return StoreWriter(std::move(state));
  });
}

Result<void> StoreWriter::append(uint32_t volume, const BrickMap& bricks) {
  return guarded(state_->to.file, [&]() -> Result<void> {
    State& s = *state_;
    const auto written = [&s] {
      if (s.expected > 0) s.report.at(std::min(1.0, double(s.tables->bricks()) / double(s.expected + 1)));
    };
    return s.tables->append(volume, bricks, s.progress, written);
  });
}

Result<void> StoreWriter::append_history(const RecordSource& records, const std::function<size_t()>& position) {
  return guarded(state_->to.file, [&] { return state_->tables->history(records, position); });
}

uint64_t StoreWriter::bricks() const { return state_->tables ? state_->tables->bricks() : 0; }

Result<void> StoreWriter::commit() {
  return guarded(state_->to.file, [&] { return state_->finish(); });
}

}  // namespace quarry::io
