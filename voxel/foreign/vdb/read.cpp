// SPDX-License-Identifier: Apache-2.0
// read.cpp - writes grids of OpenVDB, leaf by leaf and tile by tile, as bricks to a voxel stream. Colour and material
// come from separate grids.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "voxel/foreign/vdb/grids.hpp"

namespace quarry::vdb {
namespace {

using openvdb::Coord;
using openvdb::GridBase;
using ColorTree = openvdb::Vec3STree;
using ColorAccessor = openvdb::tree::ValueAccessor<const ColorTree>;
using MaterialAccessor = openvdb::tree::ValueAccessor<const openvdb::Int32Tree>;

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

// The grids that give the voxels of the others their colour.
struct ColorGrids {
  openvdb::Vec3SGrid::ConstPtr color;
  openvdb::Int32Grid::ConstPtr material;
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

class Grids {
 public:
  Grids(const ColorGrids& color_grids, uint64_t max_bricks, io::VoxelStreamWriter& out)
      : color_grids_(color_grids), max_bricks_(max_bricks), out_(out) {
    if (color_grids.color) color_.emplace(color_grids.color->tree());
    if (color_grids.material) material_.emplace(color_grids.material->tree());
  }

  template <class GridType>
  Result<void> send(const GridType& grid, const io::StreamGrid& head) {
    using Tree = typename GridType::TreeType;
    using Leaf = typename Tree::LeafNodeType;
    static_assert(Leaf::DIM == 8);
    const double half = head.record.kind == io::GridRecord::level_set ? head.record.voxel_size[0] / 2 : -1;
    struct Piece {
      Coord origin;
      const Leaf* leaf;  // null: a full brick
    };
    std::vector<Piece> pieces;
    const auto room = [&](uint64_t more) { return bricks_ + pieces.size() + more <= max_bricks_; };
    for (auto leaf = grid.tree().cbeginLeaf(); leaf; ++leaf) pieces.push_back({leaf->origin(), &*leaf});
    if (!room(0)) return too_many(head);
    auto tile = grid.tree().cbeginValueAll();
    tile.setMaxDepth(decltype(tile)::LEAF_DEPTH - 1);
    for (; tile; ++tile) {
      if (!inside(half, *tile, tile.isValueOn())) continue;
      const openvdb::CoordBBox box = tile.getBoundingBox();
      const openvdb::Coord d = box.dim();
      if (!room(uint64_t(d.x() / 8) * uint64_t(d.y() / 8) * uint64_t(d.z() / 8))) return too_many(head);
      for (int x = box.min().x(); x <= box.max().x(); x += 8)
        for (int y = box.min().y(); y <= box.max().y(); y += 8)
          for (int z = box.min().z(); z <= box.max().z(); z += 8) pieces.push_back({Coord(x, y, z), nullptr});
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.origin < b.origin; });
    out_.grid(head);
    for (const Piece& piece : pieces) {
      BrickMask mask{};
      if (!piece.leaf) mask.fill(~uint64_t(0));
      else
        for (uint32_t offset = 0; offset < Leaf::SIZE; ++offset)
          if (inside(half, piece.leaf->getValue(offset), piece.leaf->isValueOn(offset)))
            mask[index_of(offset) >> 6] |= uint64_t(1) << (index_of(offset) & 63);
      if (std::all_of(mask.begin(), mask.end(), [](uint64_t word) { return word == 0; })) continue;
      ++bricks_;
      take_values(piece.origin, mask);
      out_.brick({piece.origin.x() >> 3, piece.origin.y() >> 3, piece.origin.z() >> 3}, mask, bytes_);
    }
    return {};
  }

 private:
  Result<void> too_many(const io::StreamGrid& head) const {
    return fail(ErrorCode::out_of_memory, "grid '" + head.name + "' fills more than " + std::to_string(max_bricks_) +
                                              " bricks of 8 x 8 x 8 voxels, all that the memory limit allows; raise "
                                              "the limit or resample it coarser");
  }
  void take_values(Coord origin, const BrickMask& mask) {
    bytes_.clear();
    if (!color_ && !material_) return;
    for (uint32_t octant = 0; octant < 8; ++octant)
      for (uint64_t word = mask[octant]; word; word &= word - 1) {
        const uint32_t bit = uint32_t(std::countr_zero(word));
        const Coord cell =
            origin + Coord(int((bit & 3) | (octant & 1) << 2), int((bit >> 2 & 3) | (octant >> 1 & 1) << 2),
                           int((bit >> 4) | (octant >> 2) << 2));
        if (material_) {
          bytes_.push_back(uint8_t(std::clamp(material_->getValue(cell), 1, 255)));
        } else {
          const openvdb::Vec3s c = color_->getValue(cell);
          for (const float v : {c.x(), c.y(), c.z()}) bytes_.push_back(srgb(v));
          bytes_.push_back(255);
        }
      }
  }

  const ColorGrids& color_grids_;
  uint64_t max_bricks_, bricks_ = 0;
  io::VoxelStreamWriter& out_;
  std::optional<ColorAccessor> color_;
  std::optional<MaterialAccessor> material_;
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

Result<io::StreamGrid> head_of(const GridBase& grid, const std::string& name, const ColorGrids& color_grids,
                               std::vector<std::string>& warnings) {
  io::StreamGrid head;
  head.name = name;
  head.type = grid.type();
  const bool numbers = grid.isType<openvdb::FloatGrid>() || grid.isType<openvdb::DoubleGrid>();
  head.record.kind = numbers && grid.getGridClass() == openvdb::GRID_LEVEL_SET ? io::GridRecord::level_set
                     : numbers                                                 ? io::GridRecord::fog
                                                                               : io::GridRecord::mask;
  head.record.value_bytes = color_grids.material ? 1 : color_grids.color ? 4 : 0;
  head.record.active_voxels = grid.activeVoxelCount();
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

}  // namespace

Result<void> read_file(const std::filesystem::path& file, uint64_t max_bricks, io::VoxelStreamWriter& out,
                       std::vector<std::string>& warnings) {
  std::string extension = lower(file.extension().string());
  std::vector<std::pair<std::string, GridBase::Ptr>> grids;
  openvdb::MetaMap::Ptr metadata(new openvdb::MetaMap);
  if (extension == ".nvdb") {
    for (GridBase::Ptr& grid : read_nano(file, warnings)) grids.emplace_back(grid->getName(), grid);
  } else {
    openvdb::io::File in(file.string());
    in.open(false);
    metadata = in.getMetadata();
    // Grids are read one after another, so that unused ones do not stay in memory.
    for (auto name = in.beginName(); name != in.endName(); ++name) {
      const GridBase::ConstPtr head = in.readGridMetadata(name.gridName());
      const bool color = head->isType<openvdb::Vec3SGrid>() && names_color(head->getName());
      if (!color && !with_shape(*head, [](const auto&) {})) {
        warnings.push_back("grid '" + name.gridName() + "' of type " + head->type() +
                           " was not read; voxels are made of numbers and masks, and coloured by Cd or color");
        continue;
      }
      grids.emplace_back(name.gridName(), in.readGrid(name.gridName()));
    }
    in.close();
  }
  if (grids.empty())
    return fail(ErrorCode::unsupported, "the file has no grid that voxels can be made of (numbers or masks)");

  ColorGrids color_grids;
  const auto materials = metadata->getMetadata<openvdb::StringMetadata>(kMaterials);
  for (const auto& [name, grid] : grids) {
    if (grid->isType<openvdb::Vec3SGrid>() && names_color(name) && !color_grids.color)
      color_grids.color = openvdb::gridConstPtrCast<openvdb::Vec3SGrid>(grid);
    if (materials && grid->isType<openvdb::Int32Grid>() && name == kMaterial)
      color_grids.material = openvdb::gridConstPtrCast<openvdb::Int32Grid>(grid);
  }
  if (color_grids.material) out.metadata(kMaterials, materials->value());
  for (auto item = metadata->beginMeta(); item != metadata->endMeta(); ++item)
    if (item->second && item->first != kMaterials) out.metadata("vdb." + item->first, item->second->str());

  Grids sender(color_grids, max_bricks, out);
  size_t sent = 0;
  for (const auto& entry : grids) {
    const std::string& name = entry.first;  // by name: clang 14 lets no lambda have a structured binding
    const GridBase::Ptr& grid = entry.second;
    if (grid.get() == static_cast<const GridBase*>(color_grids.material.get())) continue;
    Result<void> done;
    const bool shape = with_shape(*grid, [&](const auto& typed) {
      const auto head = head_of(*grid, name, color_grids, warnings);
      done = head ? sender.send(typed, *head) : tl::unexpected(head.error());
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
