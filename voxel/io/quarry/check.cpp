// SPDX-License-Identifier: Apache-2.0
// check.cpp - checks whether the tables of a world file agree with each other, without building a scene. A file must
// pass before it is written to, and before a log in its folder counts.
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {
namespace {

Result<void> check_chunks(Db& db, const StoreHead& head, CheckBlobs blobs) {
  std::vector<StoreHead::Volume> seen(head.volumes.size());
  const std::string columns = "volume, x, y, z, bricks, bytes, checksum";
  auto r = for_rows(
      db, ("SELECT " + columns + (blobs == CheckBlobs::yes ? ", data" : "") + " FROM chunks").c_str(), "chunks",
      [&](Statement& s) -> Result<void> {
        const auto volume = uint32_t(s.integer(0, "volume", 0, int64_t(seen.size()) - 1));
        const Int3 chunk{s.int32(1, "x"), s.int32(2, "y"), s.int32(3, "z")};
        const auto bricks = uint32_t(s.integer(4, "bricks", 1, kChunkBricks)),
                   bytes = uint32_t(s.integer(5, "bytes", 0, kChunkBytesMax));
        const auto checksum = uint64_t(s.integer(6, "checksum"));
        QRY_TRY(s.row_check());
        if (blobs == CheckBlobs::yes &&
            chunk_checksum(s.blob(7, "data", 2 * kChunkBytesMax), volume, chunk, bytes, bricks) != checksum)
          return damaged("table chunks, volume " + std::to_string(volume) + ", chunk (" + std::to_string(chunk.x) +
                         ", " + std::to_string(chunk.y) + ", " + std::to_string(chunk.z) + "): the checksum is wrong");
        ++seen[volume].chunks;
        seen[volume].bricks += bricks;
        seen[volume].sum += checksum;
        return {};
      });
  QRY_TRY(r);
  for (size_t i = 0; i < seen.size(); ++i) {
    const StoreHead::Volume &a = seen[i], &b = head.volumes[i];
    if (a.chunks != b.chunks || a.sum != b.sum || a.bricks != b.bricks)
      return damaged("volume " + std::to_string(i) + " has " + std::to_string(a.chunks) + " chunks with " +
                     std::to_string(a.bricks) + " bricks, expected " + std::to_string(b.chunks) + " with " +
                     std::to_string(b.bricks) + " and this checksum");
  }
  return {};
}

Result<void> check_history(Db& db, const StoreHead& head, CheckBlobs blobs) {
  uint64_t sum = 0;
  const std::string columns = "record, part, volume, label, voxels, changes, bytes, checksum";
  auto r = for_rows(db, ("SELECT " + columns + (blobs == CheckBlobs::yes ? ", data" : "") + " FROM journal").c_str(),
                    "journal", [&](Statement& s) -> Result<void> {
                      RecordHead part;
                      part.record = s.integer(0, "record");
                      part.part = uint32_t(s.integer(1, "part", 0, UINT32_MAX));
                      // The value is taken unchecked, because the checksum tells whether it is right.
                      part.volume = decltype(part.volume)(s.integer(2, "volume", -1, UINT32_MAX));
                      part.label = s.text(3, "label");
                      part.voxels = uint64_t(s.integer(4, "voxels", 0, INT64_MAX));
                      const auto count = uint32_t(s.integer(5, "changes", 0, kPartChanges)),
                                 bytes = uint32_t(s.integer(6, "bytes", 0, kPartBytesMax));
                      const auto checksum = uint64_t(s.integer(7, "checksum"));
                      QRY_TRY(s.row_check());
                      if (blobs == CheckBlobs::yes &&
                          part_checksum(s.blob(8, "data", 2 * kPartBytesMax), part, bytes, count) != checksum)
                        return damaged("table journal, record " + std::to_string(part.record) + ", part " +
                                       std::to_string(part.part) + ": the checksum is wrong");
                      sum += checksum;
                      return {};
                    });
  QRY_TRY(r);
  if (sum != head.history_sum) return damaged("table journal: the checksum over its records is wrong");
  return {};
}

}  // namespace

Result<void> check_tables(Db& db, CheckBlobs blobs) {
  QRY_TRY(check_schema(db));
  StoreHead head;
  QRY_TRY(read_without_chunks(db, &head));
  QRY_TRY(check_chunks(db, head, blobs));
  return check_history(db, head, blobs);
}

}  // namespace quarry::io
