// SPDX-License-Identifier: Apache-2.0
// reader.cpp - one read transaction for head and chunks. Bricks are gathered into regions that fill a part of the
// sink's room.
#include "voxel/io/quarry/reader.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>

#include "base/parallel.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/sidecars.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/io/streams/format.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

// A region's bricks take this share of the sink's room. The rest is for their compression and for memory that
// allocators keep.
constexpr double kPlannedShare = 0.6;

}  // namespace

RegionGatherer::RegionGatherer(const RegionSink& sink) : sink_(sink) {
  // Each thread has a chunk, packed and unpacked, and the decompressor's state.
  constexpr uint64_t kDecodingBytes = uint64_t(1) << 20;
  const uint64_t available = sink.available_bytes(),
                 decoding = std::min(available / 2, thread_count() * kDecodingBytes);
  most_ = std::max<uint64_t>(1, uint64_t(double(available - decoding) * kPlannedShare) / kBrickMemoryBytes);
}

Result<BrickMap*> RegionGatherer::target(uint32_t volume, uint32_t bricks) {
  if (volume != volume_ || region_.bricks().size() + bricks > most_) QRY_TRY(hand_over());
  volume_ = volume;
  return &region_;
}

Result<void> RegionGatherer::hand_over() {
  if (region_.empty()) return {};
  ++done_.regions;
  return sink_.take(volume_, std::exchange(region_, {}));
}

Result<RegionsDone> RegionGatherer::end() {
  QRY_TRY(hand_over());
  return done_;
}

struct StoreReader::State {
  fs::path file;
  LockedFile lock;
  Db db;
  StoreHead head;
  Scene scene;

  Result<void> start(std::vector<std::string>* warnings) {
    QRY_TRY_ASSIGN(auto locked, lock_file(file, O_RDONLY, LOCK_SH));
    lock = std::move(locked);
    QRY_TRY(check_header(lock));
    QRY_TRY_ASSIGN(auto opened, open_for_reading(lock, file, warnings));
    db = std::move(opened);
    QRY_TRY(check_schema(db));
    // One transaction, so that everything is of the same state.
    QRY_TRY(db.run("BEGIN", "begin reading"));
    QRY_TRY_ASSIGN(auto read, read_without_chunks(db, &head));
    scene = std::move(read);
    return {};
  }

  Result<RegionsDone> all(const RegionSink& sink, const Progress& progress) {
    QRY_TRY(sink.begin(scene));
    RegionGatherer regions(sink);
    const auto target = [&](uint32_t volume, uint32_t bricks) { return regions.target(volume, bricks); };
    QRY_TRY(read_all_chunks(db, head, progress, target, regions.most_waiting()));
    return regions.end();
  }
};

StoreReader::StoreReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreReader::StoreReader(StoreReader&&) noexcept = default;
StoreReader& StoreReader::operator=(StoreReader&&) noexcept = default;
StoreReader::~StoreReader() = default;

Result<StoreReader> StoreReader::open(const fs::path& file, std::vector<std::string>* warnings) {
  return guarded(file, [&]() -> Result<StoreReader> {
    auto state = std::make_unique<State>();
    state->file = file;
    QRY_TRY(state->start(warnings));
    return StoreReader(std::move(state));
  });
}

const Scene& StoreReader::scene() const { return state_->scene; }

uint64_t StoreReader::bricks() const { return state_->head.bricks(); }

Result<uint64_t> StoreReader::fingerprint() const {
  return guarded(state_->file, [&] { return fingerprint_of(state_->db); });
}

Result<RegionsDone> StoreReader::read_all(const RegionSink& sink, const Progress& progress) {
  return guarded(state_->file, [&] { return state_->all(sink, progress); });
}

Result<void> StoreReader::visit_all(const Visit& visit, const Progress& progress) {
  return guarded(state_->file, [&] { return visit_all_chunks(state_->db, state_->head, progress, visit); });
}

uint64_t StoreReader::history_position() const { return uint64_t(state_->head.position); }

Result<void> StoreReader::visit_history(HistorySide side, const HistoryVisit& visit, const Progress& progress) {
  return guarded(state_->file,
                 [&] { return quarry::io::visit_history(state_->db, state_->head, side, progress, visit); });
}

Result<void> StoreReader::check_history(const Progress& progress) {
  return guarded(state_->file, [&] { return quarry::io::check_history(state_->db, state_->head, progress); });
}

Result<std::vector<ChunkBricks>> StoreReader::chunks(uint32_t volume) {
  return guarded(state_->file, [&] { return list_chunks(state_->db, state_->head, volume); });
}

Result<uint64_t> StoreReader::count_bricks(uint32_t volume, const Box3& chunks) {
  return guarded(state_->file, [&] { return count_chunk_bricks(state_->db, volume, chunks); });
}

Result<void> StoreReader::read(uint32_t volume, const Box3& chunks, BrickMap& into, const Progress& progress,
                               uint64_t most_waiting) {
  return guarded(state_->file, [&] {
    return read_some_chunks(state_->db, state_->head, volume, chunks, progress, into, most_waiting);
  });
}

Result<void> StoreReader::read_pieces(std::span<const std::vector<ChunkBox>> pieces, const PieceSteps& steps,
                                      const Progress& progress, size_t most_waiting) {
  return guarded(state_->file,
                 [&] { return read_chunk_pieces(state_->db, state_->head, pieces, steps, progress, most_waiting); });
}

namespace {

// Notes the journals that are read with the world as accessed files.
void note_journals(const fs::path& file, const ReadOptions& options) {
  for (const char* suffix : {"-wal", "-journal"}) options.note_access(file.string() + suffix);
}

}  // namespace

Result<void> check_world_fits(const fs::path& file, const ReadOptions& options) {
  // A smaller file has at most some thousand bricks, however densely it is packed.
  constexpr uintmax_t kCountedFrom = uintmax_t(1) << 14;
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  if (!options.budget || error || size < kCountedFrom) return {};
  uint64_t bricks = 0;
  if (const auto store = StoreReader::open(file)) bricks = store->bricks();
  const auto promise = options.budget->promise(bricks * kBrickMemoryBytes, "reading it");
  if (!promise) return fail(promise.error().code, file.string() + ": " + promise.error().message);
  return {};
}

namespace {

Result<Scene> read_quarry(const fs::path& file, const ReadOptions& options) {
  note_journals(file, options);
  QRY_TRY(check_world_fits(file, options));
  return options.salvage ? salvage_store(file, *options.salvage, options.warnings, options.progress, options.budget)
                         : Store::read(file, options.progress, nullptr, nullptr, options.warnings, options.pool);
}

Result<RegionsDone> read_quarry_regions(const fs::path& file, const ReadOptions& options, const RegionSink& sink) {
  note_journals(file, options);
  if (options.salvage) return salvage_store_regions(file, *options.salvage, options.warnings, sink, options.progress);
  QRY_TRY_ASSIGN(auto store, StoreReader::open(file, options.warnings));
  return store.read_all(sink, options.progress);
}

}  // namespace

constinit const Format kQuarryFormat{
    .name = "quarry",
    .title = "Quarry world",
    .kind = FormatKind::world,
    .extensions = {"quarry"},
    .magic = std::string_view("SQLite format 3\0", 16),
    .read = read_quarry,
    .read_regions = read_quarry_regions,
    .write = Store::save,
    .keeps = kKeepsAll,
    .salvages = true,
    .salvages_regions = true,
    .returns = true,
    .cost = {.memory_per_byte = 30, .bricks_per_byte = 1 / 25.0, .work_per_byte = 0.2},
};

}  // namespace quarry::io
