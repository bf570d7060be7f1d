// SPDX-License-Identifier: Apache-2.0
// store_fuzz.cpp - reads any bytes as a .quarry file, sound, in the middle of a step or to be salvaged, with a log or a
// journal, or as the bytes inside its blobs. The first byte selects which. Checksums would keep the fuzzer out of the
// blobs, so these are passed to the decoder directly, compressed here as a writer would do it.
#include <sqlite3.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/tables.hpp"

using namespace quarry;
using namespace quarry::io;

namespace {

constexpr uint64_t kMemoryLimit = 64u << 20;

uint32_t big(const uint8_t* at) { return uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3]; }
void put_big(uint8_t* at, uint32_t v) {
  for (int i = 3; i >= 0; --i, v >>= 8) at[i] = uint8_t(v);
}

// Corrects the checksums of a log or a journal, as a faulty program would write them.
void make_right(std::vector<uint8_t>& sidecar, size_t page) {
  if (sidecar.size() > 32 && sidecar[0] == 0x37) {
    uint32_t s0 = 0, s1 = 0;
    const auto add = [&](size_t at, size_t length) {
      for (size_t i = at; i + 8 <= at + length; i += 8) {
        s0 += __builtin_bswap32(big(&sidecar[i])) + s1;
        s1 += __builtin_bswap32(big(&sidecar[i + 4])) + s0;
      }
    };
    sidecar[3] = 0x82;
    add(0, 24);
    put_big(&sidecar[24], s0);
    put_big(&sidecar[28], s1);
    for (size_t at = 32; at + 24 + page <= sidecar.size(); at += 24 + page) {
      std::memcpy(&sidecar[at + 8], &sidecar[16], 8);
      add(at, 8);
      add(at + 24, page);
      put_big(&sidecar[at + 16], s0);
      put_big(&sidecar[at + 20], s1);
    }
  } else if (sidecar.size() > 512 && sidecar[0] == 0xd9) {
    for (size_t at = 512; at + page + 8 <= sidecar.size(); at += page + 8) {
      uint32_t sum = big(&sidecar[12]);
      for (int64_t b = int64_t(page) - 200; b > 0; b -= 200) sum += sidecar[at + 4 + size_t(b)];
      put_big(&sidecar[at + 4 + page], sum);
    }
  }
}

bool same_losses(const Salvage& a, const Salvage& b) {
  return std::ranges::equal(a.losses(), b.losses(), [](const SalvageLoss& x, const SalvageLoss& y) {
    return std::string_view(x.kind) == y.kind && x.count == y.count;
  });
}

// Reads rows from pages of the database and of its sidecar, as a whole and region by region, which must give the same.
// The last `sidecar_bytes` are a log or a journal.
void salvage(std::span<const uint8_t> bytes, size_t sidecar_bytes, bool right) {
  const auto database = bytes.first(bytes.size() - std::min(bytes.size(), sidecar_bytes));
  std::vector<uint8_t> sidecar(bytes.begin() + int64_t(database.size()), bytes.end());
  if (right && database.size() >= 100)
    make_right(sidecar, std::max<size_t>(512, size_t(database[16]) << 8 | database[17]));
  const bool journal = !sidecar.empty() && sidecar[0] == 0xd9;
  const DatabaseJournals journals{journal ? ByteSource() : ByteSource(sidecar),
                                  journal ? ByteSource(sidecar) : ByteSource()};
  io::Salvage salvage, again;
  std::vector<std::string> warnings, warned;
  const auto scene = salvage_database(ByteSource(database), journals, kMemoryLimit, salvage, &warnings);
  if (!scene && scene.error().message.empty()) std::abort();
  if (scene)
    for (const Instance& i : scene->instances)
      if (i.volume >= scene->volumes.size() || i.layer >= int64_t(scene->layers.size())) std::abort();

  Scene parts;
  RegionSink sink;
  sink.available_bytes = [] { return kMemoryLimit / 64; };
  sink.begin = [&](const Scene& begun) -> Result<void> {
    parts = begun;
    return {};
  };
  sink.take = [&](uint32_t volume, BrickMap&& bricks) -> Result<void> {
    if (volume >= parts.volumes.size()) std::abort();
    for (const auto& [at, brick] : bricks.bricks()) parts.volumes[volume].bricks.put(at, brick);
    return {};
  };
  const auto done = salvage_database_regions(ByteSource(database), journals, again, &warned, sink);
  if (!done && done.error().message.empty()) std::abort();
  if (!scene && scene.error().code == ErrorCode::out_of_memory) return;  // for the other way there is room
  if (done.has_value() != scene.has_value() || warnings != warned || !same_losses(salvage, again)) std::abort();
  if (!done) return;
  if (parts.volumes.size() != scene->volumes.size() || parts.instances.size() != scene->instances.size()) std::abort();
  for (size_t i = 0; i < parts.volumes.size(); ++i)
    if (!(parts.volumes[i].bricks == scene->volumes[i].bricks)) std::abort();
}

// Opens a copy of the bytes; `flags` as SQLite has them.
Result<Db> database_of(const uint8_t* data, size_t size, unsigned flags) {
  auto db = Db::open(":memory:", SQLITE_OPEN_READWRITE);
  if (!db) std::abort();
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(size ? size : 1));
  std::memcpy(copy, data, size);
  // The database in memory takes ownership of the copy, whatever the call returns.
  if (sqlite3_deserialize(db->handle(), "main", copy, int64_t(size), int64_t(size),
                          SQLITE_DESERIALIZE_FREEONCLOSE | flags) != SQLITE_OK)
    return fail(ErrorCode::malformed_input, "no database");
  return db;
}

void read_database(const uint8_t* data, size_t size) {
  auto db = database_of(data, size, SQLITE_DESERIALIZE_READONLY);
  if (!db) return;
  std::vector<UndoRecord> history;
  size_t position = 0;
  const auto scene = read_world(*db, kMemoryLimit, {}, &history, &position);
  if (scene ? position > history.size() : scene.error().message.empty()) std::abort();
}

// A step that is not whole is taken back in memory, before anything else has looked at the tables.
void take_back(const uint8_t* data, size_t size) {
  auto db = database_of(data, size, SQLITE_DESERIALIZE_RESIZEABLE);
  if (!db || !check_schema(*db)) return;
  auto head = read_head(*db);
  if (!head || !head->unfinished) return;
  const int64_t position = head->unfinished->position;
  const auto taken = take_back_unfinished(*db, &*head);
  if (!taken && taken.error().message.empty()) std::abort();
  if (!taken) return;
  const auto now = read_head(*db);
  if (!now || now->unfinished || now->position != position) std::abort();
}

std::vector<uint8_t> compressed(const uint8_t* data, size_t size) {
  std::vector<uint8_t> out(ZSTD_compressBound(size));
  out.resize(ZSTD_compress(out.data(), out.size(), data, size, 1));
  return out;
}

bool same_change(const BrickChange& a, const BrickChange& b) {
  return a.brick == b.brick && a.count == b.count && a.before == b.before && a.after == b.after;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const uint8_t which = data[0];
  const uint32_t count = data[1] | uint32_t(data[2]) << 8;
  const uint8_t* rest = data + 3;
  const size_t length = size - 3;
  switch (which & 3) {
    case 0:
      if (count == 0) read_database(rest, length);
      if (count == 0) take_back(rest, length);
      salvage({rest, length}, size_t(count) * 8, which & 4);
      break;
    case 1: {
      // A decoded chunk must encode to the same bytes again, because each chunk has only one form; unless it has a full
      // brick voxel by voxel, as in older files.
      const auto blob = compressed(rest, length);
      const auto decoded = PackedChunk{blob, uint32_t(length), count, {-3, 0, 5}}.bricks(BrickPool::loose());
      if (!decoded) break;
      BrickMap bricks;
      bricks.put(*decoded);
      const auto again = encode_chunk(bricks, {-3, 0, 5}, 0);
      if (!again || again->count != count) std::abort();
      const bool is_short = length > 1 && (rest[1] & 0x80);
      if (is_short == (again->version == kShortBricks) ? again->plain_bytes != length : is_short) std::abort();
      const auto twice = PackedChunk{again->data, again->plain_bytes, count, {-3, 0, 5}}.bricks(BrickPool::loose());
      BrickMap same;
      if (twice) same.put(*twice);
      if (!twice || !(same == bricks)) std::abort();
      break;
    }
    case 2: {
      const auto blob = compressed(rest, length);
      if (const auto changes = PackedPart{blob, uint32_t(length), count}.changes(BrickPool::loose())) {
        const auto again = encode_part(*changes, {});
        if (!again || again->count != changes->size()) std::abort();
        const auto twice = PackedPart{again->data, again->plain_bytes, again->count}.changes(BrickPool::loose());
        if (!twice || !std::ranges::equal(*twice, *changes, same_change)) std::abort();
      }
      if (std::vector<MaterialChange> materials; decode_materials(blob, uint32_t(length), count, &materials)) {
        const auto again = encode_materials(materials, {});
        if (!again || again->count != count || again->plain_bytes != length) std::abort();
      }
      break;
    }
    default:  // a frame that is not zstd's, or states a wrong length
      (void)PackedChunk{{rest, length}, count, 1, {0, 0, 0}}.bricks(BrickPool::loose());
      (void)PackedPart{{rest, length}, count, 1}.changes(BrickPool::loose());
      if (std::vector<MaterialChange> materials;
          decode_materials({rest, length}, count, 1, &materials) && materials.size() != 1)
        std::abort();
  }
  return 0;
}
