// store_fuzz.cpp - any bytes as a .quarry file, or (the first byte says which) as the bytes inside its blobs. Checksums would keep the
// fuzzer out of the blobs, so these are given to the decoder directly, compressed here as a writer would.
#include <sqlite3.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>

#include "voxel/io/store_salvage.hpp"
#include "voxel/io/store_tables.hpp"

using namespace quarry;
using namespace quarry::io;

namespace {

constexpr uint64_t kMemoryLimit = 64u << 20;

// Rows from pages, of the database and of a log: the second half of the bytes may be one.
void salvage(std::span<const uint8_t> bytes) {
  for (const size_t split : {bytes.size(), bytes.size() / 2}) {
    io::Salvage salvage;
    std::vector<std::string> warnings;
    const auto scene = salvage_database(bytes.first(split), bytes.subspan(split), kMemoryLimit, salvage, &warnings);
    if (!scene && scene.error().message.empty()) std::abort();
    if (!scene) continue;
    for (const Instance& i : scene->instances)
      if (i.volume >= scene->volumes.size() || i.layer >= int64_t(scene->layers.size())) std::abort();
  }
}

void read_database(const uint8_t* data, size_t size) {
  salvage({data, size});
  auto db = Db::open(":memory:", SQLITE_OPEN_READWRITE);
  if (!db) std::abort();
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(size ? size : 1));
  std::memcpy(copy, data, size);
  // The database in memory takes the copy over, whatever it says about it.
  if (sqlite3_deserialize(db->handle(), "main", copy, int64_t(size), int64_t(size), SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) return;
  std::vector<UndoRecord> history;
  size_t position = 0;
  const auto scene = read_world(*db, kMemoryLimit, {}, &history, &position);
  if (scene ? position > history.size() : scene.error().message.empty()) std::abort();
}

std::vector<uint8_t> compressed(const uint8_t* data, size_t size) {
  std::vector<uint8_t> out(ZSTD_compressBound(size));
  out.resize(ZSTD_compress(out.data(), out.size(), data, size, 1));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const uint8_t which = data[0];
  const uint32_t count = data[1] | uint32_t(data[2]) << 8;
  const uint8_t* rest = data + 3;
  const size_t length = size - 3;
  BrickMap bricks;
  std::vector<BrickChange> changes;
  switch (which & 3) {
    case 0: read_database(rest, length); break;
    case 1: {
      // What decodes must encode to the same bytes again: there is one form of each chunk.
      const auto blob = compressed(rest, length);
      if (!decode_chunk(blob, uint32_t(length), count, {-3, 0, 5}, &bricks)) break;
      const auto again = encode_chunk(bricks, {-3, 0, 5}, 0);
      if (!again || again->count != count || again->plain_bytes != length) std::abort();
      break;
    }
    case 2: {
      const auto blob = compressed(rest, length);
      (void)decode_part(blob, uint32_t(length), count, &changes);
      break;
    }
    default:  // a frame that is not zstd's, or lies about its length
      (void)decode_chunk({rest, length}, count, 1, {0, 0, 0}, &bricks);
      (void)decode_part({rest, length}, count, 1, &changes);
  }
  return 0;
}
