// SPDX-License-Identifier: Apache-2.0
// salvage.cpp - collects rows of a damaged world file into a scene. The types of its columns tell a row's table,
// because they differ for every table (quarry/schema.cpp). Checksums tell whether it is whole. The history of edits is
// not read, because a conversion keeps none.
#include "voxel/io/quarry/salvage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/file.hpp"
#include "voxel/io/quarry/pipeline.hpp"
#include "voxel/io/quarry/sidecars.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxWarnings = 50;
constexpr const char* kChunkShape = "iiiiiiib";
constexpr uint64_t kLeastRowBytes = 16;  // ids above the file's length divided by this are damage

// Whole chunks, by volume, x, y, z: the order of a world file.
using ChunkPlaces = std::map<std::tuple<int64_t, int32_t, int32_t, int32_t>, RowPlace>;

// The numbers and the bytes of a chunk's row, as they are there.
struct SalvagedChunk {
  int64_t volume = 0;
  PackedChunk chunk;
  uint64_t checksum = 0;

  // None if it has numbers that no chunk has.
  static std::optional<SalvagedChunk> of(const PageRow& row, int64_t max_id);
  bool whole() const {
    return chunk_checksum(chunk.data, uint32_t(volume), chunk.chunk, chunk.plain_bytes, chunk.count) == checksum;
  }
  ChunkPlaces::key_type key() const { return {volume, chunk.chunk.x, chunk.chunk.y, chunk.chunk.z}; }
};

std::optional<SalvagedChunk> SalvagedChunk::of(const PageRow& row, int64_t max_id) {
  const auto& v = row.values;
  const auto coordinate = [](const PageValue& c) {
    return c.integer >= -kMaxChunkCoordinate && c.integer < kMaxChunkCoordinate;
  };
  if (v[0].integer < 0 || v[0].integer >= max_id || !coordinate(v[1]) || !coordinate(v[2]) || !coordinate(v[3]) ||
      v[4].integer < 1 || v[4].integer > kChunkBricks || v[5].integer < 0 || v[5].integer > kChunkBytesMax ||
      v[7].bytes.size() > 2 * kChunkBytesMax)
    return {};
  const Int3 chunk{int32_t(v[1].integer), int32_t(v[2].integer), int32_t(v[3].integer)};
  return SalvagedChunk{
      v[0].integer, {v[7].bytes, uint32_t(v[5].integer), uint32_t(v[4].integer), chunk}, uint64_t(v[6].integer)};
}

class StoreSalvage {
 public:
  // What becomes of whole chunks: their bricks are put into the scene, or looked at and forgotten.
  enum class Bricks : uint8_t { kept, forgotten };
  StoreSalvage(const DatabasePages& pages, Bricks bricks, uint64_t memory_limit, Salvage& salvage,
               std::vector<std::string>* warnings)
      : pages_(pages),
        max_id_(int64_t(pages.given_bytes() / kLeastRowBytes)),
        keeps_bricks_(bricks == Bricks::kept),
        memory_limit_(memory_limit),
        salvage_(salvage),
        warnings_(warnings) {}

  Result<Scene> run(const Progress& progress);
  uint64_t bricks() const { return brick_count_; }  // seen so far
  const ChunkPlaces& chunks() const { return chunks_; }
  // The row at one of these places.
  Result<void> with_chunk(const ChunkPlaces::value_type& place,
                          const std::function<void(const SalvagedChunk&)>& shown) const;

 private:
  using Kind = PageValue::Kind;
  void take(const PageRow& row);
  void take_chunk(const PageRow& row);
  void take_instance(const PageRow& row);
  void take_camera(const PageRow& row);
  void take_material(const PageRow& row);
  void put_together();
  void check_chunks();
  void place_single_volume();
  void warn(std::string sentence) {
    if (warnings_ && ++warning_count_ <= kMaxWarnings) warnings_->push_back(std::move(sentence));
  }
  // 'i' integer, 't' text, 'b' blob, 'n' any number, '-' null.
  static bool shape(const PageRow& row, std::string_view kinds) {
    if (row.values.size() != kinds.size()) return false;
    for (size_t i = 0; i < kinds.size(); ++i) {
      const Kind k = row.values[i].kind;
      const bool same = kinds[i] == 'i'   ? k == Kind::integer
                        : kinds[i] == 't' ? k == Kind::text
                        : kinds[i] == 'b' ? k == Kind::blob
                        : kinds[i] == 'n' ? k == Kind::integer || k == Kind::real
                                          : k == Kind::null;
      if (!same) return false;
    }
    return true;
  }
  static std::string text(const PageValue& v) {
    return {reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size()};
  }
  static double number(const PageValue& v) { return v.kind == Kind::real ? v.real : double(v.integer); }
  static bool fits_int32(const PageValue& v) { return v.integer >= INT32_MIN && v.integer <= INT32_MAX; }
  bool id_ok(int64_t id) const { return id >= 0 && id < max_id_; }
  // Puts the rows of a table in order. Their ids should rise from 0 without gaps. Gaps are counted.
  template <class Row, class Put>
  void in_order(std::map<int64_t, Row>& rows, const char* kind, const char* what, const Put& put) {
    int64_t next = 0;
    for (auto& [id, row] : rows) {
      salvage_.count_loss(kind, uint64_t(id - next), what);
      if (id > next)
        warn(std::to_string(id - next) + " of the " + what + " are lost, from number " + std::to_string(next) + " on");
      put(id, std::move(row));
      next = id + 1;
    }
  }

  const DatabasePages& pages_;
  const int64_t max_id_;
  const bool keeps_bricks_;
  const uint64_t memory_limit_;
  Salvage& salvage_;
  std::vector<std::string>* warnings_;
  size_t warning_count_ = 0;
  Scene scene_;
  struct VolumeRow {
    Volume volume;
    StoreHead::Volume head;
  };
  std::map<int64_t, VolumeRow> volumes_;
  std::map<int64_t, Layer> layers_;
  std::map<int64_t, Instance> instances_;
  std::map<int64_t, Camera> cameras_;
  std::set<int64_t> materials_;
  std::map<std::string, int64_t, std::less<>> state_;
  std::map<int64_t, BrickMap> bricks_;
  std::map<int64_t, StoreHead::Volume> found_;  // chunks that were whole
  ChunkPlaces chunks_;
  uint64_t bad_chunks_ = 0, twice_ = 0, brick_count_ = 0;
  bool too_large_ = false;
};

void StoreSalvage::take_chunk(const PageRow& row) {
  const auto found = SalvagedChunk::of(row, max_id_);
  if (!found) {
    ++bad_chunks_;
    warn("page " + std::to_string(row.place.page) + ": a chunk with numbers that no chunk has; it is lost");
    return;
  }
  const Int3 chunk = found->chunk.chunk;
  const std::string name = "volume " + std::to_string(uint32_t(found->volume)) + ", chunk (" + std::to_string(chunk.x) +
                           ", " + std::to_string(chunk.y) + ", " + std::to_string(chunk.z) + ")";
  if (!found->whole()) {
    ++bad_chunks_;
    warn(name + ": the checksum is wrong; its voxels, 64 on each axis from (" + std::to_string(int64_t(chunk.x) * 64) +
         ", " + std::to_string(int64_t(chunk.y) * 64) + ", " + std::to_string(int64_t(chunk.z) * 64) +
         ") on, are lost");
    return;
  }
  if (chunks_.count(found->key())) {
    ++twice_;
    return;
  }
  brick_count_ += found->chunk.count;
  if (keeps_bricks_ && brick_count_ > memory_limit_ / kBrickMemoryBytes) {
    too_large_ = true;
    return;
  }
  Result<std::vector<BrickPut>> puts;
  if (keeps_bricks_) puts = found->chunk.bricks(BrickPool::loose());
  else if (const auto looked = found->chunk.each([](Int3, const Brick&, uint8_t) {}); !looked)
    puts = tl::unexpected(looked.error());
  if (!puts) {
    ++bad_chunks_;
    warn(name + ": " + puts.error().message + "; it is lost");
    return;
  }
  if (keeps_bricks_) bricks_[found->volume].put(*puts);
  chunks_.emplace(found->key(), row.place);
  StoreHead::Volume& volume = found_[found->volume];
  ++volume.chunks;
  volume.bricks += found->chunk.count;
  volume.sum += found->checksum;
}

void StoreSalvage::take_instance(const PageRow& row) {
  const auto& v = row.values;
  Instance n;
  n.rotation = unpack_rotation(v[2].integer & 511);
  if (!id_ok(v[1].integer) || v[2].integer != pack_rotation(n.rotation) || !n.rotation.valid() || !fits_int32(v[3]) ||
      !fits_int32(v[4]) || !fits_int32(v[5]) || !fits_int32(v[6])) {
    salvage_.count_loss("instances", 1, "instances");
    warn("page " + std::to_string(row.place.page) + ": an instance with numbers that none has; it is lost");
    return;
  }
  n.volume = uint32_t(v[1].integer);
  n.offset = {int32_t(v[3].integer), int32_t(v[4].integer), int32_t(v[5].integer)};
  n.layer = int32_t(v[6].integer);
  n.hidden = v[7].integer != 0;
  n.name = text(v[8]);
  n.group_path = text(v[9]);
  instances_.try_emplace(row.rowid, std::move(n));
}

void StoreSalvage::take_camera(const PageRow& row) {
  Camera c;
  c.name = text(row.values[1]);
  for (size_t a = 0; a < 3; ++a) {
    c.position[a] = number(row.values[2 + a]);
    c.target[a] = number(row.values[5 + a]);
  }
  c.vertical_fov_degrees = number(row.values[8]);
  cameras_.try_emplace(row.rowid, std::move(c));
}

void StoreSalvage::take_material(const PageRow& row) {
  const auto& v = row.values;
  if (row.rowid > 255 || v[2].integer < 0 || v[2].integer > UINT32_MAX || !materials_.insert(row.rowid).second) return;
  const auto id = size_t(row.rowid);
  Material& m = scene_.palette.materials[id];
  scene_.palette.names[id] = text(v[1]);
  const auto rgba = uint32_t(v[2].integer);
  m.r = uint8_t(rgba), m.g = uint8_t(rgba >> 8), m.b = uint8_t(rgba >> 16), m.a = uint8_t(rgba >> 24);
  size_t column = 3;
  for (float* f : {&m.roughness, &m.metalness, &m.emission, &m.transparency, &m.ior, &m.reserved[0], &m.reserved[1]})
    *f = float(number(v[column++]));
}

void StoreSalvage::take(const PageRow& row) {
  const auto& v = row.values;
  if (row.of_index) {
    if (shape(row, "tt")) scene_.metadata.try_emplace(text(v[0]), text(v[1]));
    else if (shape(row, "ti") && state_.size() < 64) state_.try_emplace(text(v[0]), v[1].integer);
    return;
  }
  if (shape(row, kChunkShape)) return take_chunk(row);
  if (!id_ok(row.rowid)) return;
  if (shape(row, "-tiiiiii") && fits_int32(v[2]) && fits_int32(v[3]) && fits_int32(v[4])) {
    VolumeRow volume;
    volume.volume.name = text(v[1]);
    volume.volume.size = {int32_t(v[2].integer), int32_t(v[3].integer), int32_t(v[4].integer)};
    volume.head = {v[5].integer, v[6].integer, uint64_t(v[7].integer)};
    volumes_.try_emplace(row.rowid, std::move(volume));
  } else if (shape(row, "-ti")) {
    layers_.try_emplace(row.rowid, Layer{text(v[1]), v[2].integer != 0});
  } else if (shape(row, "-iiiiiiitt")) {
    take_instance(row);
  } else if (shape(row, "-tinnnnnnn")) {
    take_material(row);
  } else if (shape(row, "-tnnnnnnn")) {
    take_camera(row);
  }
}

// Compares the counts in the volumes' rows with the chunks that were found.
void StoreSalvage::check_chunks() {
  uint64_t lost = 0;
  bool other = false;
  for (size_t i = 0; i < scene_.volumes.size(); ++i) {
    const auto row = volumes_.find(int64_t(i));
    const StoreHead::Volume found = found_[int64_t(i)];
    if (row == volumes_.end() || !id_ok(row->second.head.chunks)) continue;
    const StoreHead::Volume& wanted = row->second.head;
    if (wanted.chunks > found.chunks) {
      lost += uint64_t(wanted.chunks - found.chunks);
      warn("volume " + std::to_string(i) + " ('" + scene_.volumes[i].name.substr(0, 60) +
           "'): " + std::to_string(wanted.chunks - found.chunks) + " of its " + std::to_string(wanted.chunks) +
           " chunks are lost, with " + std::to_string(wanted.bricks - std::min(wanted.bricks, found.bricks)) + " of " +
           std::to_string(wanted.bricks) + " bricks");
    } else if (wanted.chunks < found.chunks || wanted.sum != found.sum) {
      other = true;
      warn("volume " + std::to_string(i) + " ('" + scene_.volumes[i].name.substr(0, 60) +
           "'): its chunks are whole, but not those that it should have; some may be of an older state");
    }
  }
  salvage_.count_loss("chunks", lost > 0 ? lost : bad_chunks_, "chunks of bricks");
  if (other || twice_)
    salvage_.count_loss("uncertain_chunks", std::max<uint64_t>(1, twice_), "chunks that may be of an older state");
}

// The common case is one volume at the origin. With several, their places are not known.
void StoreSalvage::place_single_volume() {
  if (!scene_.instances.empty() || scene_.volumes.empty()) return;
  if (scene_.volumes.size() > 1) {
    warn("no instance is left; the volumes are there, but have no place");
    return;
  }
  warn("no instance is left; the one volume was placed at the origin");
  scene_.instances.emplace_back();
}

void StoreSalvage::put_together() {
  const auto wanted_sum = [&](const char* key, uint64_t sum) {
    const auto it = state_.find(key);
    return it != state_.end() && uint64_t(it->second) == sum;
  };
  const int64_t count =
      std::max(volumes_.empty() ? 0 : volumes_.rbegin()->first + 1, found_.empty() ? 0 : found_.rbegin()->first + 1);
  scene_.volumes.resize(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    Volume& v = scene_.volumes[size_t(i)];
    if (const auto row = volumes_.find(i); row != volumes_.end()) {
      v = row->second.volume;
    } else {
      v.name = "volume " + std::to_string(i);
      salvage_.count_loss("volume_rows", 1, "names and sizes of volumes");
    }
    if (const auto it = bricks_.find(i); it != bricks_.end()) v.bricks = std::move(it->second);
  }
  in_order(layers_, "layers", "layers", [&](int64_t id, Layer&& layer) {
    scene_.layers.resize(size_t(id));
    scene_.layers.push_back(std::move(layer));
  });
  in_order(instances_, "instances", "instances", [&](int64_t id, Instance&& n) {
    if (n.volume >= scene_.volumes.size()) {
      salvage_.count_loss("instances", 1, "instances");
      warn("instance " + std::to_string(id) + " shows volume " + std::to_string(n.volume) + ", which is lost");
      return;
    }
    if (n.layer < -1 || n.layer >= int64_t(scene_.layers.size())) {
      n.layer = -1;
      salvage_.count_loss("layers_of_instances", 1, "instances' layers");
    }
    scene_.instances.push_back(std::move(n));
  });
  in_order(cameras_, "cameras", "cameras", [&](int64_t, Camera&& c) { scene_.cameras.push_back(std::move(c)); });
  if (const auto it = state_.find(kOverlapKey); it != state_.end() && it->second == 1)
    scene_.overlap = OverlapRule::last_instance_wins;
  if (state_.count(kUnfinishedFromKey))
    warn(
        "an edit had come into the file only in part when its program stopped or the file was copied; that part is in "
        "the voxels");
  if (!wanted_sum(kSceneSumKey, scene_sum(scene_))) {
    salvage_.count_loss("scene_rows", 1, "checksum over metadata, layers, instances, cameras and names");
    warn("tables meta, volumes, layers, instances, cameras: rows are missing or changed; what is there was read");
    place_single_volume();
  }
  if (!wanted_sum(kPaletteSumKey, palette_sum(scene_.palette))) {
    salvage_.count_loss("materials", std::max<uint64_t>(1, 256 - materials_.size()), "materials of the palette");
    warn("table palette: " + std::to_string(materials_.size()) +
         " of 256 materials were read; the others are the standard palette's");
  }
  check_chunks();
}

Result<Scene> StoreSalvage::run(const Progress& progress) {
  scene_.palette = Palette::standard();
  if (!pages_.readable())
    return fail(ErrorCode::malformed_input,
                "it is shorter than the 100 bytes with which a Quarry world begins; nothing of it is left");
  ThrottledReport report(progress, "salvage");
  bool stopped = false;
  const uint64_t broken = pages_.for_rows([&](const PageRow& row) {
    report.at(double(row.place.page) / double(pages_.pages()));
    take(row);
    stopped = progress.cancelled();
    return !stopped && !too_large_;
  });
  if (stopped) return fail(ErrorCode::cancelled, "stopped");
  if (too_large_)
    return fail(ErrorCode::out_of_memory, "its bricks need more than the " + std::to_string(memory_limit_ >> 20) +
                                              " MiB of memory that there are");
  if (chunks_.empty() && volumes_.empty())
    return fail(ErrorCode::malformed_input, "no volume and no chunk of a Quarry world is left in it");
  for (const auto& [journal, kind, what] :
       {std::tuple(&pages_.journal(), "journal_pages", "pages of the unfinished edit's journal"),
        std::tuple(&pages_.log(), "log_pages", "pages of the log of the last edits")}) {
    salvage_.count_loss(kind, journal->damaged, what);
    for (const std::string& sentence : journal->messages) warn(sentence);
  }
  if (pages_.missing_pages()) {
    salvage_.count_loss("pages_cut_off", pages_.missing_pages(), "pages after the file's end");
    warn("the file ends after page " + std::to_string(pages_.pages()) + "; it says that " +
         std::to_string(pages_.missing_pages()) + " pages follow");
  }
  if (broken) {
    salvage_.count_loss("rows", broken, "rows of the database");
    warn(std::to_string(broken) + " rows of the database are cut short or damaged");
  }
  if (!pages_.free_list_whole()) {
    salvage_.count_loss("free_list", 1, "list of free pages");
    warn("the list of free pages is damaged; rows that were deleted may be among what was read");
  }
  put_together();
  if (warnings_ && warning_count_ > kMaxWarnings)
    warnings_->push_back("there is more of this kind; only the first " + std::to_string(kMaxWarnings) + " are listed");
  return std::move(scene_);
}

Result<void> StoreSalvage::with_chunk(const ChunkPlaces::value_type& place,
                                      const std::function<void(const SalvagedChunk&)>& shown) const {
  bool same = false;
  pages_.with_row(place.second, [&](const PageRow& row) {
    if (!shape(row, kChunkShape)) return;
    const auto found = SalvagedChunk::of(row, max_id_);
    same = found && found->key() == place.first && found->whole();
    if (same) shown(*found);
  });
  if (!same) return fail(ErrorCode::io, "it was changed by another program while it was read");
  return {};
}

// Hands the chunks' bricks to the sink, in their order; all threads decode.
Result<RegionsDone> take_bricks(const StoreSalvage& found, const RegionSink& sink, const Progress& progress) {
  struct Packed {
    SalvagedChunk row;
    std::vector<uint8_t> data;
  };
  struct Decoded {
    uint32_t volume = 0;
    std::vector<BrickPut> bricks;
  };
  RegionGatherer regions(sink);
  ThrottledReport report(progress, "read");
  auto at = found.chunks().begin();
  size_t done = 0;
  PipelineSteps<Packed, Decoded> steps;
  steps.next = [&]() -> Result<std::optional<Packed>> {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    if (at == found.chunks().end()) return std::optional<Packed>();
    Packed one;
    QRY_TRY(found.with_chunk(*at++, [&](const SalvagedChunk& row) {
      one.row = row;
      one.data.assign(row.chunk.data.begin(), row.chunk.data.end());
    }));
    return one;
  };
  steps.decode = [](Packed& one) -> Result<Decoded> {
    one.row.chunk.data = one.data;
    QRY_TRY_ASSIGN(auto bricks, one.row.chunk.bricks(BrickPool::loose()));
    return Decoded{uint32_t(one.row.volume), std::move(bricks)};
  };
  steps.put = [&](Decoded& one) -> Result<void> {
    QRY_TRY_ASSIGN(BrickMap* const into, regions.target(one.volume, uint32_t(one.bricks.size())));
    into->put(one.bricks);
    report.at(double(++done) / double(found.chunks().size()));
    return {};
  };
  QRY_TRY((Pipeline<Packed, Decoded>(steps, chunks_in_flight(regions.most_waiting())).run()));
  return regions.end();
}

// A file that is open and locked, and its sidecars.
class SalvagedFile {
 public:
  Result<void> open(const fs::path& file, std::vector<std::string>* warnings) {
    QRY_TRY_ASSIGN(locked_, lock_file(file, O_RDONLY, LOCK_SH));
    struct stat info {};
    if (::fstat(locked_.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
    bytes_ = ByteSource::of_open(locked_.fd, uint64_t(info.st_size));
    const auto sidecar = [&](const char* suffix, const char* what) {
      std::error_code ignored;
      if (!fs::exists(sidecar_path(file, suffix), ignored)) return ByteSource();
      auto bytes = open_sidecar(sidecar_path(file, suffix));
      if (bytes) return std::move(*bytes);
      if (warnings) warnings->push_back(std::string(what) + " beside it was not read: " + bytes.error().message);
      return ByteSource();
    };
    journals_ = {sidecar("-wal", "the log of the last edits"),
                 sidecar("-journal", "the journal of an unfinished edit")};
    return {};
  }
  const ByteSource& bytes() const { return bytes_; }
  const DatabaseJournals& journals() const { return journals_; }
  // What was made of the files, unless a part of them could not be read.
  template <class T>
  Result<T> made(Result<T> result) const {
    for (const ByteSource* source : {&bytes_, &journals_.log, &journals_.journal})
      if (auto error = source->error()) return tl::unexpected(std::move(*error));
    return result;
  }

 private:
  LockedFile locked_;
  ByteSource bytes_;
  DatabaseJournals journals_;
};

}  // namespace

Result<Scene> salvage_database(const ByteSource& database, const DatabaseJournals& journals, uint64_t memory_limit,
                               Salvage& salvage, std::vector<std::string>* warnings, const Progress& progress) {
  const DatabasePages pages(database, journals);
  return StoreSalvage(pages, StoreSalvage::Bricks::kept, memory_limit, salvage, warnings).run(progress);
}

Result<RegionsDone> salvage_database_regions(const ByteSource& database, const DatabaseJournals& journals,
                                             Salvage& salvage, std::vector<std::string>* warnings,
                                             const RegionSink& sink, const Progress& progress) {
  const DatabasePages pages(database, journals);
  StoreSalvage found(pages, StoreSalvage::Bricks::forgotten, 0, salvage, warnings);
  QRY_TRY_ASSIGN(const auto scene, found.run(progress));
  QRY_TRY(sink.begin(scene));
  return take_bricks(found, sink, progress);
}

Result<Scene> salvage_store(const fs::path& file, Salvage& salvage, std::vector<std::string>* warnings,
                            const Progress& progress, const MemoryBudget* budget) {
  return guarded(file, [&]() -> Result<Scene> {
    SalvagedFile from;
    QRY_TRY(from.open(file, warnings));
    const DatabasePages pages(from.bytes(), from.journals());
    const uint64_t memory = budget ? std::min(physical_memory(), budget->available_bytes()) : physical_memory();
    StoreSalvage found(pages, StoreSalvage::Bricks::kept, memory, salvage, warnings);
    auto scene = found.run(progress);
    if (!scene && budget && scene.error().code == ErrorCode::out_of_memory)
      return tl::unexpected(budget->too_little(found.bricks() * kBrickMemoryBytes, "reading it"));
    return from.made(std::move(scene));
  });
}

Result<RegionsDone> salvage_store_regions(const fs::path& file, Salvage& salvage, std::vector<std::string>* warnings,
                                          const RegionSink& sink, const Progress& progress) {
  return guarded(file, [&]() -> Result<RegionsDone> {
    SalvagedFile from;
    QRY_TRY(from.open(file, warnings));
    RegionSink checked = sink;
    checked.begin = [&](const Scene& scene) -> Result<void> {
      QRY_TRY(from.made(Result<void>()));
      return sink.begin(scene);
    };
    return from.made(salvage_database_regions(from.bytes(), from.journals(), salvage, warnings, checked, progress));
  });
}

}  // namespace quarry::io
