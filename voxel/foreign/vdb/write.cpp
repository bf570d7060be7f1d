// SPDX-License-Identifier: Apache-2.0
// write.cpp - makes density, colour and material grids of OpenVDB of a voxel stream as it comes, and density and colour
// grids of NanoVDB.
#include <fcntl.h>
#include <openvdb/io/GridDescriptor.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>

#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/foreign/vdb/tree_writer.hpp"
#include "voxel/io/files/sink.hpp"

namespace quarry::vdb {
namespace {

float linear(uint8_t srgb) {
  const float c = float(srgb) / 255.0f;
  return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
}

// A grid whose tree is not in memory.
struct GridParts {
  openvdb::GridBase::Ptr grid;  // with its metadata and transform
  std::function<void(std::ostream&)> topology, buffers;
};

// Writes the same bytes as openvdb::io::File, of trees that are not in memory, and into our own stream, because that
// class never checks its stream for write errors. They include the grids' offsets, by which programs find one grid
// without reading the others.
class SeekableArchive : public openvdb::io::Archive {
 public:
  void write(std::ostream& out, const std::vector<GridParts>& grids, const openvdb::MetaMap& metadata) const {
    writeHeader(out, true);
    metadata.writeMeta(out);
    const auto count = int32_t(grids.size());
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    for (const GridParts& parts : grids) {
      openvdb::io::GridDescriptor place(parts.grid->getName(), parts.grid->type(), false);
      place.writeHeader(out);
      const std::streamoff place_at = out.tellp();
      place.writeStreamPos(out);  // to be replaced
      place.setGridPos(out.tellp());
      setGridCompression(out, *parts.grid);
      parts.grid->writeMeta(out);
      parts.grid->writeTransform(out);
      parts.topology(out);
      place.setBlockPos(out.tellp());
      parts.buffers(out);
      place.setEndPos(out.tellp());
      out.seekp(place_at);
      place.writeStreamPos(out);
      place.seekToEnd(out);
    }
  }
  // How the file has the grid's values.
  uint32_t compression_of(const openvdb::GridBase& grid) const {
    std::ostringstream probe;
    setGridCompression(probe, grid);
    return openvdb::io::getDataCompression(probe);
  }
};

// The archive's UUID, by which programs tell files apart. The library makes it of random numbers, so that no two runs
// would write the same file. Ours is made of what is written (version 8 of RFC 9562: anything of one's own).
constexpr uint64_t kUuidAt = 21;  // behind the magic number, the file's and the library's version and a byte
std::string uuid_of(const XXH128_hash_t& hash) {
  const uint64_t high = (hash.high64 & ~uint64_t{0xf000}) | 0x8000, low = (hash.low64 << 2 >> 2) | uint64_t{1} << 63;
  char text[37];
  std::snprintf(text, sizeof text, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
                high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffffffffffff);
  return text;
}

// A stream of voxels as it comes.
class Input {
 public:
  explicit Input(const ByteInput& bytes) : bytes_(bytes), hash_(XXH3_createState()) {
    if (!hash_) throw std::bad_alloc();
    XXH3_128bits_reset(hash_);
  }
  ~Input() { XXH3_freeState(hash_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  Result<void> read(const io::VoxelStreamEvents& events) {
    io::VoxelStreamParser parser("the program that writes", events, nullptr);
    std::vector<uint8_t> piece(size_t(1) << 18);
    for (size_t got; (got = bytes_(piece)) > 0;) {
      XXH3_128bits_update(hash_, piece.data(), got);
      QRY_TRY(parser.push({piece.data(), got}));
    }
    return parser.end();
  }
  XXH128_hash_t hash() const { return XXH3_128bits_digest(hash_); }

 private:
  const ByteInput& bytes_;
  XXH3_state_t* hash_;
};

// The grids, and what the stream says of them beside its bricks.
struct Grids {
  openvdb::FloatGrid::Ptr density = openvdb::FloatGrid::create(0.0f);
  openvdb::Vec3SGrid::Ptr color = openvdb::Vec3SGrid::create(openvdb::Vec3s(0));
  openvdb::Int32Grid::Ptr material = openvdb::Int32Grid::create(0);
  openvdb::MetaMap metadata;
  std::array<openvdb::Vec3s, 256> colors{};

  Grids() {
    density->setName(kDensity);
    density->setGridClass(openvdb::GRID_FOG_VOLUME);
    color->setName(kColor);
    color->setVectorType(openvdb::VEC_INVARIANT);
    material->setName(kMaterial);
    metadata.insertMeta("creator", openvdb::StringMetadata("Quarry"));
  }
  io::VoxelStreamEvents events() {
    io::VoxelStreamEvents out;
    out.metadata = [this](const std::string& key, const std::string& text) {
      metadata.insertMeta(key, openvdb::StringMetadata(text));
    };
    out.palette = [this](std::span<const Material, 256> materials) {
      for (size_t i = 0; i < 256; ++i)
        colors[i] = {linear(materials[i].r), linear(materials[i].g), linear(materials[i].b)};
    };
    out.grid = [this](const io::StreamGrid& grid) -> Result<void> {
      const openvdb::math::Transform::Ptr transform =
          openvdb::math::Transform::createLinearTransform(grid.record.voxel_size[0]);
      transform->postTranslate(openvdb::Vec3d(grid.record.origin[0], grid.record.origin[1], grid.record.origin[2]));
      for (const openvdb::GridBase::Ptr& g :
           {openvdb::GridBase::Ptr(density), openvdb::GridBase::Ptr(color), openvdb::GridBase::Ptr(material)})
        g->setTransform(transform->copy());
      return {};
    };
    return out;
  }
};

openvdb::Coord origin_of(Int3 brick) { return {brick.x * 8, brick.y * 8, brick.z * 8}; }

// A grid that is written leaf by leaf.
template <class GridType>
class LeafByLeaf {
 public:
  using Leaf = typename GridType::TreeType::LeafNodeType;
  LeafByLeaf(const SeekableArchive& archive, const typename GridType::Ptr& grid, const std::filesystem::path& beside)
      : grid_(grid),
        compression_(archive.compression_of(*grid)),
        tree_(new TreeWriter<GridType>(beside, compression_)) {}
  // The next one's leaf, without a voxel.
  Leaf& leaf(const openvdb::Coord& origin) {
    leaf_.setOrigin(origin);
    leaf_.fill(openvdb::zeroVal<typename Leaf::ValueType>(), false);
    return leaf_;
  }
  void add() { tree_->add(leaf_); }
  // The archive's part. Its room on disk is free when it is written.
  GridParts parts(uint64_t voxels, const openvdb::CoordBBox& bounds) {
    tree_->end();
    tree_->put_lengths(*grid_);
    grid_->insertMeta(GridType::META_FILE_BBOX_MIN, openvdb::Vec3IMetadata(bounds.min().asVec3i()));
    grid_->insertMeta(GridType::META_FILE_BBOX_MAX, openvdb::Vec3IMetadata(bounds.max().asVec3i()));
    grid_->insertMeta(GridType::META_FILE_VOXEL_COUNT, openvdb::Int64Metadata(int64_t(voxels)));
    grid_->insertMeta(GridType::META_FILE_MEM_BYTES, openvdb::Int64Metadata(int64_t(tree_->memory_bytes())));
    grid_->insertMeta(GridType::META_FILE_COMPRESSION,
                      openvdb::StringMetadata(openvdb::io::compressionToString(compression_)));
    return {grid_, [this](std::ostream& out) { tree_->write_topology(out); },
            [this](std::ostream& out) {
              tree_->write_buffers(out);
              tree_.reset();
            }};
  }

 private:
  typename GridType::Ptr grid_;
  uint32_t compression_;
  std::unique_ptr<TreeWriter<GridType>> tree_;
  Leaf leaf_;
};

// Makes a leaf at a time of the stream's bricks, which come in the order of the tree.
Result<void> write_leaves(Input& input, const std::filesystem::path& file, std::ostream& out) {
  const SeekableArchive archive;
  Grids grids;
  LeafByLeaf<openvdb::FloatGrid> density(archive, grids.density, file);
  LeafByLeaf<openvdb::Vec3SGrid> color(archive, grids.color, file);
  LeafByLeaf<openvdb::Int32Grid> material(archive, grids.material, file);
  uint64_t voxels = 0;
  openvdb::CoordBBox bounds;
  io::VoxelStreamEvents events = grids.events();
  events.brick = [&](Int3 brick, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    if (values.empty()) return fail(ErrorCode::malformed_input, "the bricks have no materials");
    auto& d = density.leaf(origin_of(brick));
    auto& c = color.leaf(origin_of(brick));
    auto& m = material.leaf(origin_of(brick));
    for_each_voxel(mask, [&](openvdb::Index offset, size_t at) {
      d.setValueOn(offset, 1.0f);
      c.setValueOn(offset, grids.colors[values[at]]);
      m.setValueOn(offset, values[at]);
    });
    voxels += values.size();
    d.evalActiveBoundingBox(bounds);
    density.add();
    color.add();
    material.add();
    return {};
  };
  QRY_TRY(input.read(events));
  archive.write(out, {density.parts(voxels, bounds), color.parts(voxels, bounds), material.parts(voxels, bounds)},
                grids.metadata);
  return {};
}

// The same as NanoVDB.
Result<void> write_nano_bricks(Input& input, const std::filesystem::path& file, std::ostream& out) {
  Grids grids;
  NanoWriter writer(file, grids.colors);
  io::VoxelStreamEvents events = grids.events();
  events.brick = [&](Int3 brick, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    if (values.empty()) return fail(ErrorCode::malformed_input, "the bricks have no materials");
    writer.add(brick, mask, values);
    return {};
  };
  QRY_TRY(input.read(events));
  writer.write(*grids.density, *grids.color, out);
  return {};
}

// The same by NanoVDB itself, of trees in memory.
Result<void> write_nano_trees(Input& input, std::ostream& out) {
  Grids grids;
  io::VoxelStreamEvents events = grids.events();
  events.brick = [&](Int3 brick, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
    if (values.empty()) return fail(ErrorCode::malformed_input, "the bricks have no materials");
    auto* d = grids.density->tree().touchLeaf(origin_of(brick));
    auto* c = grids.color->tree().touchLeaf(origin_of(brick));
    for_each_voxel(mask, [&](openvdb::Index offset, size_t at) {
      d->setValueOn(offset, 1.0f);
      c->setValueOn(offset, grids.colors[values[at]]);
    });
    return {};
  };
  QRY_TRY(input.read(events));
  // Full bricks of one value become tiles. A solid then takes a fraction of the room, and every reader knows tiles.
  grids.density->tree().prune();
  grids.color->tree().prune();
  write_nano(*grids.density, *grids.color, out);
  return {};
}

}  // namespace

Result<uint64_t> write_file(const ByteInput& bytes, const std::filesystem::path& file, VolumeKind kind) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::io, std::string("cannot open it: ") + std::strerror(errno));
  Input input(bytes);
  io::FileSink sink(fd);
  io::SinkStreambuf buffer(sink);
  std::ostream out(&buffer);
  Result<void> done;
  // The libraries do not check whether their streams have failed.
  try {
    out.exceptions(std::ios_base::badbit | std::ios_base::failbit);
    switch (kind) {
      case VolumeKind::vdb: done = write_leaves(input, file, out); break;
      case VolumeKind::nano: done = write_nano_bricks(input, file, out); break;
      case VolumeKind::nano_whole: done = write_nano_trees(input, out); break;
    }
  } catch (const std::bad_alloc&) {
    ::close(fd);
    throw;
  } catch (const SpillFailure& e) {
    done = tl::unexpected(e.error);
  } catch (const std::exception& e) {
    done = fail(ErrorCode::io, std::string("the volume library gave up: ") + e.what());
  }
  if (kind == VolumeKind::vdb && done) {
    sink.seek(kUuidAt);
    sink.put(uuid_of(input.hash()));
  }
  int number = sink.settle();
  if (::close(fd) != 0 && errno != EINTR && !number) number = errno;
  if (number) return fail(ErrorCode::io, std::string("cannot write it: ") + std::strerror(number));
  QRY_TRY(done);
  return sink.size();
}

}  // namespace quarry::vdb
