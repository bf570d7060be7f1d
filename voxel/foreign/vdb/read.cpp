// SPDX-License-Identifier: Apache-2.0
// read.cpp - writes grids of OpenVDB and NanoVDB, leaf by leaf and tile by tile, as bricks to a voxel stream. Colour
// and material come from separate grids. Trees go by from front to back (tree_cursor.hpp, nano_cursor.hpp) and are not
// held; only those of very old files, and of NanoVDB's in another order than the tree's, are read whole.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "voxel/foreign/vdb/grids.hpp"
#include "voxel/foreign/vdb/nano_cursor.hpp"
#include "voxel/foreign/vdb/tree_cursor.hpp"

namespace quarry::vdb {
namespace {

using openvdb::Coord;
using openvdb::GridBase;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

bool names_color(const std::string& name) {
  const std::string n = lower(name);
  return n == "cd" || n == "cs" || n == "color" || n == "colour" || n == "rgb" || n == "albedo" || n == "diffuse" ||
         n == "diffusecolor";
}

// The sRGB curve of IEC 61966-2-1.
uint8_t srgb(float linear) {
  const float c = std::isfinite(linear) ? std::clamp(linear, 0.0f, 1.0f) : 0.0f;
  return uint8_t(std::lround(255.0f * (c <= 0.0031308f ? 12.92f * c : 1.055f * std::pow(c, 1 / 2.4f) - 0.055f)));
}

// How NanoVDB's files have the values of a grid.
template <class Value>
struct NanoValue {
  using Type = Value;
  static Value from(const Type& v) { return v; }
};
template <>
struct NanoValue<openvdb::Vec3s> {
  using Type = nano::Float3;
  static openvdb::Vec3s from(const Type& v) { return {v.x, v.y, v.z}; }
};

Int3 int3(const Coord& at) { return {at.x(), at.y(), at.z()}; }
Coord coord(const Int3& at) { return {at.x, at.y, at.z}; }

// The grid that gives the voxels of the others their colour or material: whole in memory, or one that goes forward with
// them.
template <class GridType>
class ValueGrid {
 public:
  using Grid = GridType;
  using Tree = typename GridType::TreeType;
  using Value = typename Tree::ValueType;
  void set(const GridType& grid) { whole_.emplace(grid.tree()); }
  void set(GridPlaces& places, const openvdb::io::GridDescriptor& place) { cursor_.emplace(places, place); }
  void set(const NanoInput& file, const NanoGrid& place) { nano_.emplace(file, place); }
  bool is_set() const { return whole_ || cursor_ || nano_; }
  void seek(Coord brick) {
    if (cursor_) cursor_->seek(brick);
    if (nano_) nano_->seek(int3(brick));
  }
  Value value(Coord voxel) const {
    if (nano_) return NanoValue<Value>::from(nano_->value(int3(voxel)));
    return cursor_ ? cursor_->value(voxel) : whole_->getValue(voxel);
  }

 private:
  std::optional<openvdb::tree::ValueAccessor<const Tree>> whole_;
  std::optional<TreeCursor<GridType>> cursor_;
  std::optional<NanoCursor<typename NanoValue<Value>::Type>> nano_;
};

// `half` is half a voxel, or negative if the grid is no level set.
template <class T>
bool inside(double half, T value, bool active) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, openvdb::ValueMask>) return active && bool(value);
  else return half >= 0 ? double(value) <= half : active && value > T(0);
}

// The voxel index in a brick of OpenVDB's offset in a leaf (x << 6 | y << 3 | z).
constexpr uint32_t index_of(uint32_t offset) {
  const uint32_t x = offset >> 6, y = offset >> 3 & 7, z = offset & 7;
  return ((x >> 2) | (y >> 2) << 1 | (z >> 2) << 2) * 64 + ((x & 3) | (y & 3) << 2 | (z & 3) << 4);
}

constexpr int kBrick = 8;

class Grids {
 public:
  Grids(BrickLimit limit, io::VoxelStreamWriter& out) : limit_(limit), out_(out) {}

  // At most one of them is set, and set anew for each grid that goes by.
  ValueGrid<openvdb::Vec3SGrid> color;
  ValueGrid<openvdb::Int32Grid> material;

  // Sends a grid that is whole in memory.
  template <class GridType>
  Result<void> send(const GridType& grid, const io::StreamGrid& head) {
    using Leaf = typename GridType::TreeType::LeafNodeType;
    static_assert(Leaf::DIM == kBrick);
    struct Piece {
      Coord origin;
      const Leaf* leaf;  // null: a full brick
    };
    const double half = half_of(head);
    std::vector<Piece> pieces;
    const auto room = [&](uint64_t more) { return bricks_ + pieces.size() + more <= limit_.bricks; };
    for (auto leaf = grid.tree().cbeginLeaf(); leaf; ++leaf) pieces.push_back({leaf->origin(), &*leaf});
    if (!room(0)) return too_many(head);
    auto tile = grid.tree().cbeginValueAll();
    tile.setMaxDepth(decltype(tile)::LEAF_DEPTH - 1);
    for (; tile; ++tile) {
      if (!inside(half, *tile, tile.isValueOn())) continue;
      const openvdb::CoordBBox box = tile.getBoundingBox();
      if (!room(bricks_of_tile(box.dim().x()))) return too_many(head);
      for (int x = box.min().x(); x <= box.max().x(); x += kBrick)
        for (int y = box.min().y(); y <= box.max().y(); y += kBrick)
          for (int z = box.min().z(); z <= box.max().z(); z += kBrick) pieces.push_back({Coord(x, y, z), nullptr});
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.origin < b.origin; });
    out_.grid(head);
    for (const Piece& piece : pieces) {
      if (piece.leaf) send_leaf(piece.origin, *piece.leaf, half);
      else send_full(piece.origin);
    }
    out_.active_voxels(grid.activeVoxelCount());
    return {};
  }

  // Sends a grid of which only its place in the file is known, leaf by leaf.
  template <class GridType>
  Result<void> send(GridPlaces& places, const openvdb::io::GridDescriptor& place, const io::StreamGrid& head) {
    TreeCursor<GridType> cursor(places, place);
    return send_passing(cursor, head);
  }
  // The same of NanoVDB.
  template <class Value>
  Result<void> send(const NanoInput& file, const NanoGrid& place, const io::StreamGrid& head) {
    NanoCursor<Value> cursor(file, place);
    return send_passing(cursor, head);
  }

 private:
  template <class Cursor>
  Result<void> send_passing(Cursor& cursor, const io::StreamGrid& head) {
    const double half = half_of(head);
    out_.grid(head);
    uint64_t active_voxels = 0;
    bool enough = true;
    cursor.visit(
        [&](const auto& origin, const auto& leaf) {
          active_voxels += leaf.onVoxelCount();
          enough = bricks_ < limit_.bricks;
          if (enough) send_leaf(place(origin), leaf, half);
          return enough && out_.ok();
        },
        [&](const auto& origin, int edge, auto value, bool active) {
          if (active) active_voxels += uint64_t(edge) * uint64_t(edge) * uint64_t(edge);
          if (!inside(half, value, active)) return true;
          enough = bricks_of_tile(edge) <= limit_.bricks - bricks_;
          if (enough) send_tile(place(origin), edge);
          return enough && out_.ok();
        });
    if (!enough) return too_many(head);
    out_.active_voxels(active_voxels);
    return {};
  }
  static Coord place(const Coord& at) { return at; }
  static Coord place(const Int3& at) { return coord(at); }
  Result<void> too_many(const io::StreamGrid& head) const {
    return fail(ErrorCode::out_of_memory, "grid '" + head.name + "' fills more than " + std::to_string(limit_.bricks) +
                                              " bricks of 8 x 8 x 8 voxels, " + limit_.why);
  }
  static double half_of(const io::StreamGrid& head) {
    return head.record.kind == io::GridRecord::level_set ? head.record.voxel_size[0] / 2 : -1;
  }
  static uint64_t bricks_of_tile(int edge) {
    const auto bricks = uint64_t(edge / kBrick);
    return bricks * bricks * bricks;
  }
  template <class Leaf>
  void send_leaf(Coord origin, const Leaf& leaf, double half) {
    BrickMask mask{};
    for (uint32_t offset = 0; offset < Leaf::SIZE; ++offset)
      if (inside(half, leaf.getValue(offset), leaf.isValueOn(offset)))
        mask[index_of(offset) >> 6] |= uint64_t(1) << (index_of(offset) & 63);
    if (std::any_of(mask.begin(), mask.end(), [](uint64_t word) { return word != 0; })) send_brick(origin, mask);
  }
  // In the order of the tree, so that the colours can go forward.
  void send_tile(Coord origin, int edge) {
    const int part = edge > 128 ? 128 : kBrick;
    if (edge == kBrick) return send_full(origin);
    for (int x = 0; x < edge; x += part)
      for (int y = 0; y < edge; y += part)
        for (int z = 0; z < edge; z += part) {
          if (!out_.ok()) return;
          send_tile(origin + Coord(x, y, z), part);
        }
  }
  void send_full(Coord origin) {
    BrickMask mask;
    mask.fill(~uint64_t(0));
    send_brick(origin, mask);
  }
  void send_brick(Coord origin, const BrickMask& mask) {
    ++bricks_;
    take_values(origin, mask);
    out_.brick({origin.x() >> 3, origin.y() >> 3, origin.z() >> 3}, mask, bytes_);
  }
  void take_values(Coord origin, const BrickMask& mask) {
    bytes_.clear();
    if (!color.is_set() && !material.is_set()) return;
    color.seek(origin);
    material.seek(origin);
    for (uint32_t octant = 0; octant < 8; ++octant)
      for (uint64_t word = mask[octant]; word; word &= word - 1) {
        const uint32_t bit = uint32_t(std::countr_zero(word));
        const Coord cell =
            origin + Coord(int((bit & 3) | (octant & 1) << 2), int((bit >> 2 & 3) | (octant >> 1 & 1) << 2),
                           int((bit >> 4) | (octant >> 2) << 2));
        if (material.is_set()) {
          bytes_.push_back(uint8_t(std::clamp(material.value(cell), 1, 255)));
        } else {
          const openvdb::Vec3s c = color.value(cell);
          for (const float v : {c.x(), c.y(), c.z()}) bytes_.push_back(srgb(v));
          bytes_.push_back(255);
        }
      }
  }

  const BrickLimit limit_;
  uint64_t bricks_ = 0;
  io::VoxelStreamWriter& out_;
  std::vector<uint8_t> bytes_;
};

// Calls f(grid) with the grid's own type; false if voxels cannot be made of it.
template <class F>
bool with_shape(const GridBase& grid, const F& f) {
  if (grid.isType<openvdb::FloatGrid>()) f(static_cast<const openvdb::FloatGrid&>(grid));
  else if (grid.isType<openvdb::DoubleGrid>()) f(static_cast<const openvdb::DoubleGrid&>(grid));
  else if (grid.isType<openvdb::Int32Grid>()) f(static_cast<const openvdb::Int32Grid&>(grid));
  else if (grid.isType<openvdb::Int64Grid>()) f(static_cast<const openvdb::Int64Grid&>(grid));
  else if (grid.isType<openvdb::BoolGrid>()) f(static_cast<const openvdb::BoolGrid&>(grid));
  else if (grid.isType<openvdb::MaskGrid>()) f(static_cast<const openvdb::MaskGrid&>(grid));
  else return false;
  return true;
}

Result<io::StreamGrid> head_of(const GridBase& grid, const std::string& name, uint32_t value_bytes,
                               std::vector<std::string>& warnings) {
  io::StreamGrid head;
  head.name = name;
  head.type = grid.type();
  const bool numbers = grid.isType<openvdb::FloatGrid>() || grid.isType<openvdb::DoubleGrid>();
  head.record.kind = numbers && grid.getGridClass() == openvdb::GRID_LEVEL_SET ? io::GridRecord::level_set
                     : numbers                                                 ? io::GridRecord::fog
                                                                               : io::GridRecord::mask;
  head.record.value_bytes = value_bytes;
  const openvdb::Vec3d zero = grid.indexToWorld(openvdb::Vec3d(0, 0, 0)), size = grid.voxelSize();
  for (int i = 0; i < 3; ++i) {
    head.record.voxel_size[i] = size[i];
    head.record.origin[i] = zero[i];
    if (!std::isfinite(size[i]) || size[i] <= 0 || !std::isfinite(zero[i]))
      return fail(ErrorCode::malformed_input, "the transform of grid '" + name + "' is not finite");
  }
  if (!grid.transform().isLinear())
    warnings.push_back("grid '" + name + "' is not on straight axes (a frustum); its cells are taken as they are");
  else if (!grid.hasUniformVoxels())
    warnings.push_back("the voxels of grid '" + name + "' are not cubes; its cells are taken as they are");
  return head;
}

// The grid without its tree: name, class and transform, as NanoVDB itself makes them. Null for a type of which no
// voxels are made.
GridBase::Ptr head_of(const NanoGrid& nano) {
  GridBase::Ptr grid;
  switch (nano::Type(nano.type)) {
    case nano::Type::Float:
    case nano::Type::Fp8:
    case nano::Type::Fp16:
    case nano::Type::FpN: grid = openvdb::FloatGrid::create(); break;
    case nano::Type::Int32: grid = openvdb::Int32Grid::create(); break;
    case nano::Type::Vec3f: grid = openvdb::Vec3SGrid::create(); break;
    default: return nullptr;
  }
  grid->setName(nano.name);
  switch (nano::Class(nano.grid_class)) {
    case nano::Class::level_set: grid->setGridClass(openvdb::GRID_LEVEL_SET); break;
    case nano::Class::fog: grid->setGridClass(openvdb::GRID_FOG_VOLUME); break;
    case nano::Class::staggered: grid->setGridClass(openvdb::GRID_STAGGERED); break;
    case nano::Class::point_index:
    case nano::Class::point_data: throw NanoDamage("grid '" + nano.name + "' is of points; it cannot be read");
    default: grid->setGridClass(openvdb::GRID_UNKNOWN);
  }
  auto matrix = openvdb::Mat4d::identity();
  matrix.setMat3(openvdb::Mat3d(nano.matrix));
  matrix = matrix.transpose();  // OpenVDB multiplies from the left
  matrix.setTranslation(openvdb::Vec3d(nano.translation));
  grid->setTransform(openvdb::math::Transform::createLinearTransform(matrix));
  return grid;
}

const char* type_name(uint32_t type) {
  static constexpr const char* kNames[] = {"?",      "float",   "double", "int16",  "int32", "int64", "Vec3f",
                                           "Vec3d",  "Mask",    "Half",   "uint32", "bool",  "RGBA8", "Float4",
                                           "Float8", "Float16", "FloatN", "Vec4f",  "Vec4d", "Index"};
  return type < std::size(kNames) ? kNames[type] : "?";
}

// Whether the grid can be read from front to back.
bool in_order(const NanoInput& file, const NanoGrid& grid) {
  switch (nano::Type(grid.type)) {
    case nano::Type::Int32: return NanoCursor<int32_t>::in_order(file, grid);
    case nano::Type::Vec3f: return NanoCursor<nano::Float3>::in_order(file, grid);
    default: return NanoCursor<float>::in_order(file, grid);
  }
}

}  // namespace

Result<void> read_file(const std::filesystem::path& file, BrickLimit limit, io::VoxelStreamWriter& out,
                       std::vector<std::string>& warnings) {
  struct Found {
    std::string name;
    GridBase::ConstPtr grid;                             // of a tree that goes by: without it
    const openvdb::io::GridDescriptor* place = nullptr;  // both null: the grid is whole
    const NanoGrid* nano = nullptr;
  };
  std::vector<Found> grids;
  openvdb::MetaMap::Ptr metadata(new openvdb::MetaMap);
  std::optional<GridPlaces> places;
  NanoInput nano;
  std::vector<NanoGrid> nano_list;
  if (lower(file.extension().string()) == ".nvdb") {
    nano = open_nano(file);
    nano_list = nano_grids(nano);
    for (NanoGrid& grid : nano_list) {
      if (const GridBase::Ptr head = head_of(grid)) {
        grids.push_back({grid.name, head, nullptr, &grid});
        if (!in_order(nano, grid)) hold_whole(nano, grid);
      } else {
        warnings.push_back("grid '" + grid.name + "' of type " + type_name(grid.type) +
                           " was not read; NanoVDB grids are read as float, Fp8, Fp16, FpN, Int32 and Vec3f");
      }
    }
  } else {
    openvdb::io::File in(file.string());
    in.open(false);
    metadata = in.getMetadata();
    places.emplace(file);
    bool all_places = true;
    for (auto name = in.beginName(); name != in.endName(); ++name) {
      const GridBase::ConstPtr head = in.readGridMetadata(name.gridName());
      const bool color = head->isType<openvdb::Vec3SGrid>() && names_color(head->getName());
      if (!color && !with_shape(*head, [](const auto&) {})) {
        warnings.push_back("grid '" + name.gridName() + "' of type " + head->type() +
                           " was not read; voxels are made of numbers and masks, and coloured by Cd or color");
        continue;
      }
      grids.push_back({name.gridName(), head, places->find(name.gridName())});
      all_places = all_places && grids.back().place;
    }
    if (!all_places)
      for (Found& found : grids) found.grid = in.readGrid(found.name), found.place = nullptr;
    in.close();
  }
  if (grids.empty())
    return fail(ErrorCode::unsupported, "the file has no grid that voxels can be made of (numbers or masks)");

  const Found *color = nullptr, *material = nullptr;
  const auto materials = metadata->getMetadata<openvdb::StringMetadata>(kMaterials);
  for (const Found& found : grids) {
    if (found.grid->isType<openvdb::Vec3SGrid>() && names_color(found.name) && !color) color = &found;
    if (materials && found.grid->isType<openvdb::Int32Grid>() && found.name == kMaterial) material = &found;
  }
  if (material) out.metadata(kMaterials, materials->value());
  for (auto item = metadata->beginMeta(); item != metadata->endMeta(); ++item)
    if (item->second && item->first != kMaterials) out.metadata("vdb." + item->first, item->second->str());

  Grids sender(limit, out);
  const auto set = [&](auto& values, const Found& found) {
    using GridType = typename std::decay_t<decltype(values)>::Grid;
    if (found.place) values.set(*places, *found.place);
    else if (found.nano) values.set(nano, *found.nano);
    else values.set(static_cast<const GridType&>(*found.grid));
  };
  size_t sent = 0;
  for (const Found& found : grids) {
    if (&found == material) continue;
    Result<void> done;
    const bool shape = with_shape(*found.grid, [&](const auto& typed) {
      const auto head = head_of(*found.grid, found.name, material ? 1 : color ? 4 : 0, warnings);
      if (!head) done = tl::unexpected(head.error());
      if (!done) return;
      if (material) set(sender.material, *material);
      else if (color) set(sender.color, *color);
      using GridType = std::decay_t<decltype(typed)>;
      if constexpr (std::is_same_v<GridType, openvdb::FloatGrid> || std::is_same_v<GridType, openvdb::Int32Grid>)
        if (found.nano) {
          done = sender.template send<typename GridType::ValueType>(nano, *found.nano, *head);
          return;
        }
      done = found.place ? sender.template send<GridType>(*places, *found.place, *head) : sender.send(typed, *head);
    });
    QRY_TRY(done);
    sent += shape;
  }
  if (sent == 0)
    return fail(ErrorCode::unsupported,
                "the file has colours only; a grid of numbers or a mask must say where voxels are");
  return {};
}

}  // namespace quarry::vdb
