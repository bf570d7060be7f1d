// SPDX-License-Identifier: Apache-2.0
// nano.cpp - makes NanoVDB files of bricks as they come, or of OpenVDB's trees by the library. The types are named one
// by one, because NanoVDB's calls for any type take minutes and gigabytes to compile.
#include <nanovdb/util/IO.h>
#include <nanovdb/util/OpenToNanoVDB.h>
#include <zlib.h>

#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/foreign/vdb/nano_layout.hpp"
#include "voxel/foreign/vdb/nano_tree_writer.hpp"

namespace quarry::vdb {
namespace {

using Handle = nanovdb::GridHandle<nanovdb::HostBuffer>;

// The layout that files are read by is the library's.
template <class V, class T>
constexpr bool same_tree() {
  using Upper = typename nanovdb::NanoUpper<T>::DataType;
  using Lower = typename nanovdb::NanoLower<T>::DataType;
  using Leaf = typename nanovdb::NanoLeaf<T>::DataType;
  using Root = typename nanovdb::NanoRoot<T>::DataType;
  using Tile = typename Root::Tile;
  using OurUpper = nano::NodeData<V, 5>;
  using OurLower = nano::NodeData<V, 4>;
  static_assert(sizeof(Root) == sizeof(nano::RootData<V>) && sizeof(Tile) == sizeof(nano::RootTile<V>));
  static_assert(offsetof(Root, mBackground) == offsetof(nano::RootData<V>, background));
  static_assert(offsetof(Root, mTableSize) == offsetof(nano::RootData<V>, tiles));
  static_assert(offsetof(Tile, child) == offsetof(nano::RootTile<V>, child) &&
                offsetof(Tile, state) == offsetof(nano::RootTile<V>, active) &&
                offsetof(Tile, value) == offsetof(nano::RootTile<V>, value));
  static_assert(sizeof(Upper) == sizeof(OurUpper) && sizeof(Lower) == sizeof(OurLower));
  static_assert(offsetof(Upper, mValueMask) == offsetof(OurUpper, active) &&
                offsetof(Upper, mChildMask) == offsetof(OurUpper, children) &&
                offsetof(Upper, mTable) == offsetof(OurUpper, places));
  static_assert(offsetof(Lower, mValueMask) == offsetof(OurLower, active) &&
                offsetof(Lower, mChildMask) == offsetof(OurLower, children) &&
                offsetof(Lower, mTable) == offsetof(OurLower, places));
  static_assert(sizeof(Upper::mTable[0]) == sizeof(OurUpper::places[0]));
  if constexpr (sizeof(V) == sizeof(T) && !nanovdb::is_same<T, nanovdb::Fp8>::value)
    static_assert(sizeof(Leaf) == sizeof(nano::LeafData<V>) &&
                  offsetof(Leaf, mValues) == offsetof(nano::LeafData<V>, values) &&
                  offsetof(Leaf, mValueMask) == offsetof(nano::LeafData<V>, head.active));
  return true;
}
static_assert(same_tree<float, float>() && same_tree<int32_t, int32_t>() && same_tree<nano::Float3, nanovdb::Vec3f>() &&
              same_tree<float, nanovdb::Fp8>() && same_tree<float, nanovdb::Fp16>() &&
              same_tree<float, nanovdb::FpN>());
static_assert(sizeof(nanovdb::NanoLeaf<nanovdb::FpN>) == sizeof(nano::CodedLeaf) &&
              sizeof(nanovdb::NanoLeaf<nanovdb::Fp8>) == sizeof(nano::CodedLeaf) + 512 &&
              sizeof(nanovdb::NanoLeaf<nanovdb::Fp16>) == sizeof(nano::CodedLeaf) + 1024);
static_assert(sizeof(nanovdb::GridData) == sizeof(nano::GridData) &&
              offsetof(nanovdb::GridData, mMap.mMatD) == offsetof(nano::GridData, matrix) &&
              offsetof(nanovdb::GridData, mMap.mVecD) == offsetof(nano::GridData, translation) &&
              offsetof(nanovdb::GridData, mGridName) == offsetof(nano::GridData, name) &&
              offsetof(nanovdb::GridData, mGridClass) == offsetof(nano::GridData, grid_class) &&
              offsetof(nanovdb::GridData, mGridType) == offsetof(nano::GridData, type));
static_assert(sizeof(nanovdb::TreeData<3>) == sizeof(nano::TreeData) &&
              offsetof(nanovdb::TreeData<3>, mNodeOffset) == offsetof(nano::TreeData, node_at));
static_assert(sizeof(nanovdb::io::MetaData) == sizeof(nano::GridHead) &&
              offsetof(nanovdb::io::MetaData, nameSize) == offsetof(nano::GridHead, name_bytes));
static_assert(NANOVDB_MAGIC_NUMBER == nano::kMagic && NANOVDB_MAJOR_VERSION_NUMBER == nano::kMajorVersion);

}  // namespace

void write_nano(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out) {
  std::vector<Handle> handles;
  handles.push_back(nanovdb::openToNanoVDB(density));
  handles.push_back(nanovdb::openToNanoVDB(color));
  nanovdb::io::writeGrids<nanovdb::HostBuffer, std::vector>(out, handles, nanovdb::io::Codec::ZIP);
}

namespace {

// Bytes as one zlib stream, the same as of zlib's compress() of all at once.
class Deflater {
 public:
  explicit Deflater(std::ostream& out) : out_(out), piece_(size_t(1) << 16) {
    if (deflateInit(&state_, Z_DEFAULT_COMPRESSION) != Z_OK) throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&state_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  void put(const void* bytes, size_t count) {
    state_.next_in = const_cast<Bytef*>(static_cast<const Bytef*>(bytes));
    state_.avail_in = uInt(count);
    pass(Z_NO_FLUSH);
  }
  // The length of the stream.
  uint64_t finish() {
    pass(Z_FINISH);
    return written_;
  }

 private:
  void pass(int flush) {
    do {
      state_.next_out = piece_.data();
      state_.avail_out = uInt(piece_.size());
      deflate(&state_, flush);
      const size_t made = piece_.size() - state_.avail_out;
      out_.write(reinterpret_cast<const char*>(piece_.data()), std::streamsize(made));
      written_ += made;
    } while (state_.avail_out == 0);
  }
  std::ostream& out_;
  z_stream state_{};
  std::vector<Bytef> piece_;
  uint64_t written_ = 0;
};

}  // namespace

struct NanoWriter::Parts {
  Waiting bricks;
  NanoTreeWriter<float> density;
  NanoTreeWriter<nanovdb::Vec3f> color;
  const std::array<openvdb::Vec3s, 256>& colors;
  NanoBrick brick;

  float density_of(uint8_t) const { return 1.0f; }
  nanovdb::Vec3f color_of(uint8_t material) const {
    const openvdb::Vec3s& c = colors[material];
    return {c.x(), c.y(), c.z()};
  }
};

NanoWriter::NanoWriter(const std::filesystem::path& file, const std::array<openvdb::Vec3s, 256>& colors)
    : parts_(new Parts{Waiting(file), NanoTreeWriter<float>(file), NanoTreeWriter<nanovdb::Vec3f>(file), colors, {}}) {}
NanoWriter::~NanoWriter() = default;

void NanoWriter::add(Int3 brick, const BrickMask& mask, std::span<const uint8_t> materials) {
  Parts& p = *parts_;
  p.brick.origin = {brick.x * 8, brick.y * 8, brick.z * 8};
  p.brick.mask = mask;
  p.brick.materials.assign(materials.begin(), materials.end());
  p.density.add(p.brick, [&](uint8_t material) { return p.density_of(material); });
  p.color.add(p.brick, [&](uint8_t material) { return p.color_of(material); });
  p.brick.save(p.bricks);
}

void NanoWriter::write(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out) {
  Parts& p = *parts_;
  p.density.end();
  p.color.end();
  p.bricks.check();
  const Handle density_head = p.density.head(nanovdb::openToNanoVDB(density)),
               color_head = p.color.head(nanovdb::openToNanoVDB(color));
  // What the file says of its grids comes first and is known last.
  nanovdb::io::Segment segment(nanovdb::io::Codec::ZIP);
  segment.add(density_head);
  segment.add(color_head);
  out.seekp(std::streamoff(segment.memUsage()));
  const auto write_grid = [&](auto& meta, const Handle& head, auto& tree, const auto& value_of) {
    const std::streamoff length_at = out.tellp();
    uint64_t length = 0;
    out.write(reinterpret_cast<const char*>(&length), sizeof length);  // to be replaced
    Deflater zip(out);
    zip.put(head.data(), head.size());
    tree.write_nodes(p.bricks, value_of, [&](const void* bytes, size_t count) { zip.put(bytes, count); });
    length = zip.finish();
    out.seekp(length_at);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out.seekp(std::streamoff(length), std::ios::cur);
    meta.gridSize = tree.bytes();
    meta.fileSize = sizeof length + length;
  };
  write_grid(segment.meta[0], density_head, p.density, [&](uint8_t material) { return p.density_of(material); });
  write_grid(segment.meta[1], color_head, p.color, [&](uint8_t material) { return p.color_of(material); });
  out.seekp(0);
  segment.write(out);
}

}  // namespace quarry::vdb
