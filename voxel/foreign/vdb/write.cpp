// SPDX-License-Identifier: Apache-2.0
// write.cpp - converts a voxel stream to density, colour and material grids of OpenVDB, and these to NanoVDB.
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ostream>

#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/io/files/sink.hpp"

namespace quarry::vdb {
namespace {

float linear(uint8_t srgb) {
  const float c = float(srgb) / 255.0f;
  return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
}

// Writes the same bytes as openvdb::io::File into our own stream, because that class never checks its stream for write
// errors. They include the grids' offsets, by which programs find one grid without reading the others.
class SeekableArchive : public openvdb::io::Archive {
 public:
  void write(std::ostream& out, const openvdb::GridPtrVec& grids, const openvdb::MetaMap& metadata) const {
    Archive::write(out, grids, true, metadata);
  }
};

// The archive's UUID, by which programs tell files apart. The library makes it of random numbers, so that no two runs
// would write the same file. Ours is made of what is written (version 8 of RFC 9562: anything of one's own).
constexpr uint64_t kUuidAt = 21;  // behind the magic number, the file's and the library's version and a byte
std::string uuid_of(std::span<const uint8_t> stream) {
  const XXH128_hash_t hash = XXH3_128bits(stream.data(), stream.size());
  const uint64_t high = (hash.high64 & ~uint64_t{0xf000}) | 0x8000, low = (hash.low64 << 2 >> 2) | uint64_t{1} << 63;
  char text[37];
  std::snprintf(text, sizeof text, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
                high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffffffffffff);
  return text;
}

}  // namespace

Result<uint64_t> write_file(std::span<const uint8_t> stream, const std::filesystem::path& file, bool nano) {
  auto density = openvdb::FloatGrid::create(0.0f);
  auto color = openvdb::Vec3SGrid::create(openvdb::Vec3s(0));
  auto material = openvdb::Int32Grid::create(0);
  density->setName(kDensity);
  density->setGridClass(openvdb::GRID_FOG_VOLUME);
  color->setName(kColor);
  color->setVectorType(openvdb::VEC_INVARIANT);
  material->setName(kMaterial);
  openvdb::MetaMap metadata;
  metadata.insertMeta("creator", openvdb::StringMetadata("Quarry"));
  std::array<openvdb::Vec3s, 256> colors{};

  io::VoxelStreamEvents events;
  events.metadata = [&](const std::string& key, const std::string& text) {
    metadata.insertMeta(key, openvdb::StringMetadata(text));
  };
  events.palette = [&](std::span<const Material, 256> materials) {
    for (size_t i = 0; i < 256; ++i)
      colors[i] = {linear(materials[i].r), linear(materials[i].g), linear(materials[i].b)};
  };
  events.grid = [&](const io::StreamGrid& grid) -> Result<void> {
    const openvdb::math::Transform::Ptr transform =
        openvdb::math::Transform::createLinearTransform(grid.record.voxel_size[0]);
    transform->postTranslate(openvdb::Vec3d(grid.record.origin[0], grid.record.origin[1], grid.record.origin[2]));
    for (const openvdb::GridBase::Ptr& g :
         {openvdb::GridBase::Ptr(density), openvdb::GridBase::Ptr(color), openvdb::GridBase::Ptr(material)})
      g->setTransform(transform->copy());
    return {};
  };
  events.brick = [&](Int3 brick, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    const openvdb::Coord origin(brick.x * 8, brick.y * 8, brick.z * 8);
    auto* d = density->tree().touchLeaf(origin);
    auto* c = color->tree().touchLeaf(origin);
    auto* m = nano ? nullptr : material->tree().touchLeaf(origin);
    size_t at = 0;
    for (uint32_t octant = 0; octant < 8; ++octant)
      for (uint64_t word = mask[octant]; word; word &= word - 1, ++at) {
        const Int3 v = voxel_from_index(octant * 64 + uint32_t(std::countr_zero(word)));
        const openvdb::Index offset = openvdb::Index(v.x << 6 | v.y << 3 | v.z);
        d->setValueOn(offset, 1.0f);
        c->setValueOn(offset, colors[values[at]]);
        if (m) m->setValueOn(offset, values[at]);
      }
    return {};
  };
  QRY_TRY(parse_voxel_stream(stream, "the program that writes", events, nullptr));
  // Full bricks of one value become tiles. A solid then takes a fraction of the room, and every reader knows tiles.
  density->tree().prune();
  color->tree().prune();
  material->tree().prune();
  const int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::io, std::string("cannot open it: ") + std::strerror(errno));
  io::FileSink sink(fd);
  io::SinkStreambuf buffer(sink);
  std::ostream out(&buffer);
  std::string why;
  // The libraries do not check whether their streams have failed.
  try {
    out.exceptions(std::ios_base::badbit | std::ios_base::failbit);
    if (nano) write_nano(*density, *color, out);
    else SeekableArchive().write(out, openvdb::GridPtrVec{density, color, material}, metadata);
  } catch (const std::bad_alloc&) {
    ::close(fd);
    throw;
  } catch (const std::exception& e) {
    why = e.what();
  }
  if (!nano && why.empty()) {
    sink.seek(kUuidAt);
    sink.put(uuid_of(stream));
  }
  int number = sink.settle();
  if (::close(fd) != 0 && errno != EINTR && !number) number = errno;
  if (number) return fail(ErrorCode::io, std::string("cannot write it: ") + std::strerror(number));
  if (!why.empty()) return fail(ErrorCode::io, "the volume library gave up: " + why);
  return sink.size();
}

}  // namespace quarry::vdb
