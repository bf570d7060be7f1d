// SPDX-License-Identifier: Apache-2.0
// schematic.cpp - formats after "Sponge Schematic Specification" (SpongePowered, versions 1 to 3) and after the fields
// that Litematica writes (its versions 5 to 7; blocks packed without gaps, at least two bits each).
#include "voxel/io/minecraft/schematic.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/minecraft/blocks.hpp"
#include "voxel/io/minecraft/nbt.hpp"
#include "voxel/io/streams/inflate.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxMinecraftBytes = uint64_t(1) << 31;
constexpr const char* kEmpty = "expected gzip'd NBT, as Minecraft tools write it (the file is empty)";

tl::unexpected<Error> bad(size_t at, const std::string& what) {
  return fail(ErrorCode::malformed_input, at_byte(at) + what);
}

Result<NbtTag> want(const Nbt& nbt, const NbtTag& in, const char* name, NbtType type, const char* what) {
  if (const auto tag = nbt.find(in, name, type)) return *tag;
  return bad(in.at, std::string("expected '") + name + "' (" + what + ") in '" + std::string(in.name.substr(0, 60)) +
                        "', found none");
}

// A whole number of any width; `otherwise` if there is none.
int64_t number(const Nbt& nbt, const NbtTag& in, std::string_view name, int64_t otherwise) {
  int64_t value = otherwise;
  nbt.each(in, [&](const NbtTag& tag) {
    if (tag.name == name) value = nbt.integer(tag).value_or(otherwise);
  });
  return value;
}

// A region's blocks before their materials are known: ids of the BlockTable by palette entry, and the packed entries.
struct Region {
  std::string name;
  std::array<int64_t, 3> corner{}, size{};
  std::vector<uint32_t> palette;  // entry -> block
  std::vector<uint8_t> known;     // entries that are in the palette
  std::span<const uint8_t> data;
  size_t data_at = 0;  // of `data`, for messages
  uint32_t bits = 0;   // of an entry; 0: varints
  uint64_t total() const { return uint64_t(size[0]) * uint64_t(size[1]) * uint64_t(size[2]); }
};

// Calls visit(number of the cell, block) for each cell in order x, z, y. `visit` returns false to stop.
template <class Visit>
Result<void> walk_blocks(const Region& region, const Visit& visit) {
  const uint64_t total = region.total();
  size_t at = 0;
  for (uint64_t cell = 0; cell < total; ++cell) {
    uint64_t entry = 0;
    const size_t entry_at = region.bits ? size_t(cell * region.bits / 64 * 8) : at;
    if (region.bits == 0) {
      for (uint32_t shift = 0;; shift += 7) {
        if (at == region.data.size())
          return bad(region.data_at + at,
                     "expected " + std::to_string(total) + " blocks, but the data ends after " + std::to_string(cell));
        if (shift > 28) return bad(region.data_at + entry_at, "a block's number is longer than five bytes");
        const uint8_t byte = region.data[at++];
        entry |= uint64_t(byte & 127) << shift;
        if (byte < 128) break;
      }
    } else {
      const uint64_t first = cell * region.bits, word = first / 64, shift = first % 64;
      const auto word_at = [&](uint64_t w) {
        uint64_t v = 0;
        for (size_t i = 0; i < 8; ++i) v = v << 8 | region.data[size_t(w) * 8 + i];
        return v;
      };
      entry = word_at(word) >> shift;
      if (shift + region.bits > 64) entry |= word_at(word + 1) << (64 - shift);
      entry &= (uint64_t(1) << region.bits) - 1;
    }
    if (entry >= region.palette.size() || !region.known[size_t(entry)])
      return bad(region.data_at + entry_at, "block " + std::to_string(cell) + " has number " + std::to_string(entry) +
                                                ", which the palette does not have");
    if (!visit(cell, region.palette[size_t(entry)])) return {};
  }
  if (region.bits == 0 && at < region.data.size())
    return bad(region.data_at + at, "expected " + std::to_string(total) + " blocks, but " +
                                        std::to_string(region.data.size() - at) + " bytes more follow");
  return {};
}

Result<void> check_size(const Region& region, size_t at) {
  for (const int64_t edge : region.size) {
    if (edge < 1) return bad(at, "expected a size of at least 1 block on each axis");
    if (edge > kMinecraftMaxEdge)
      return fail(ErrorCode::unsupported, at_byte(at) + "an edge of " + std::to_string(edge) +
                                              " blocks is longer than the world's " +
                                              std::to_string(kMinecraftMaxEdge));
  }
  return {};
}

Result<Region> read_schematic(const Nbt& nbt, const NbtTag& root, int64_t version, BlockTable& blocks) {
  Region region;
  region.name = "schematic";
  constexpr const char* kEdges[] = {"Width", "Height", "Length"};
  for (size_t i = 0; i < 3; ++i) {
    QRY_TRY_ASSIGN(const auto edge, want(nbt, root, kEdges[i], NbtType::i16, "a short"));
    region.size[i] = *nbt.integer(edge) & 0xffff;  // written as an unsigned short
  }
  QRY_TRY(check_size(region, root.at));
  NbtTag holder = root;
  if (version >= 3) {
    QRY_TRY_ASSIGN(const auto inside, want(nbt, root, "Blocks", NbtType::compound, "a compound"));
    holder = inside;
  }
  QRY_TRY_ASSIGN(const auto palette, want(nbt, holder, "Palette", NbtType::compound, "a compound of block states"));
  QRY_TRY_ASSIGN(const auto data,
                 want(nbt, holder, version >= 3 ? "Data" : "BlockData", NbtType::bytes, "an array of bytes"));

  std::optional<Error> error;
  nbt.each(palette, [&](const NbtTag& tag) {
    const auto id = nbt.integer(tag);
    if (error) return;
    if (!id || *id < 0 || *id > kMinecraftMaxPaletteId) {
      error = bad(tag.at, "expected a number of 0 to " + std::to_string(kMinecraftMaxPaletteId) + " for '" +
                              std::string(tag.name.substr(0, 60)) + "'")
                  .value();
      return;
    }
    if (size_t(*id) >= region.palette.size()) {
      region.palette.resize(size_t(*id) + 1);
      region.known.resize(size_t(*id) + 1);
    }
    region.palette[size_t(*id)] = blocks.id_of(std::string(tag.name));
    region.known[size_t(*id)] = 1;
  });
  if (error) return tl::unexpected(*error);
  region.data = nbt.array(data);
  region.data_at = data.at + 4;
  if (region.total() > region.data.size())
    return bad(data.at, "expected " + std::to_string(region.total()) + " blocks of at least a byte, found " +
                            std::to_string(region.data.size()) + " bytes");
  return region;
}

// Makes "minecraft:oak_stairs[facing=east,half=top]" from the name and the sorted properties.
std::string state_text(const Nbt& nbt, const NbtTag& entry) {
  std::string name;
  std::vector<std::string> properties;
  nbt.each(entry, [&](const NbtTag& tag) {
    if (tag.name == "Name") name = nbt.text(tag);
    if (tag.name != "Properties") return;
    nbt.each(tag, [&](const NbtTag& p) { properties.push_back(std::string(p.name) + "=" + std::string(nbt.text(p))); });
  });
  std::sort(properties.begin(), properties.end());
  for (size_t i = 0; i < properties.size(); ++i) name += (i ? "," : "[") + properties[i];
  if (!properties.empty()) name += "]";
  return name;
}

Result<std::array<int64_t, 3>> vector_of(const Nbt& nbt, const NbtTag& region, const char* name) {
  QRY_TRY_ASSIGN(const auto tag, want(nbt, region, name, NbtType::compound, "x, y and z"));
  return std::array<int64_t, 3>{number(nbt, tag, "x", 0), number(nbt, tag, "y", 0), number(nbt, tag, "z", 0)};
}

Result<Region> read_litematic_region(const Nbt& nbt, const NbtTag& tag, BlockTable& blocks) {
  Region region;
  region.name = tag.name.substr(0, 256);
  QRY_TRY_ASSIGN(const auto position, vector_of(nbt, tag, "Position"));
  QRY_TRY_ASSIGN(const auto size, vector_of(nbt, tag, "Size"));
  for (size_t i = 0; i < 3; ++i) {
    const int64_t p = position[i], s = size[i];
    if (p < -kMinecraftMaxPosition || p > kMinecraftMaxPosition || s < -kMinecraftMaxPosition ||
        s > kMinecraftMaxPosition)
      return bad(tag.at, "a region lies or reaches farther than " + std::to_string(kMinecraftMaxPosition) +
                             " blocks from the origin");
    region.size[i] = s < 0 ? -s : s;
    region.corner[i] = s < 0 ? p + s + 1 : p;  // a negative size counts back from the position
  }
  QRY_TRY(check_size(region, tag.at));
  QRY_TRY_ASSIGN(const auto palette, want(nbt, tag, "BlockStatePalette", NbtType::list, "a list of block states"));
  QRY_TRY_ASSIGN(const auto data, want(nbt, tag, "BlockStates", NbtType::longs, "an array of longs"));
  nbt.each_element(palette,
                   [&](const NbtTag& entry) { region.palette.push_back(blocks.id_of(state_text(nbt, entry))); });
  if (region.palette.empty()) return bad(palette.at, "expected at least one block state in the palette");
  region.known.assign(region.palette.size(), 1);
  region.bits = std::max<uint32_t>(2, uint32_t(std::bit_width(region.palette.size() - 1)));
  region.data = nbt.array(data);
  region.data_at = data.at + 4;
  const uint64_t longs = (region.total() * region.bits + 63) / 64;
  if (longs > region.data.size() / 8)
    return bad(data.at, "expected " + std::to_string(longs) + " longs for " + std::to_string(region.total()) +
                            " blocks of " + std::to_string(region.bits) + " bits, found " +
                            std::to_string(region.data.size() / 8));
  return region;
}

Result<Scene> parse_nbt(std::span<const uint8_t> bytes, const BrickLimits& limits, std::vector<std::string>* warnings) {
  QRY_TRY_ASSIGN(const auto checked, Nbt::check(bytes));
  const Nbt& nbt = checked;
  NbtTag root = nbt.root();
  // Version 3 has one more compound around it.
  if (const auto inside = nbt.find(root, "Schematic", NbtType::compound)) root = *inside;

  Scene scene;
  BlockTable blocks;
  std::vector<Region> regions;
  if (const auto litematic = nbt.find(root, "Regions", NbtType::compound)) {
    scene.metadata["source_format"] = "litematic";
    std::optional<Error> error;
    nbt.each(*litematic, [&](const NbtTag& tag) {
      if (error || tag.type != NbtType::compound) return;
      auto region = read_litematic_region(nbt, tag, blocks);
      if (region) regions.push_back(std::move(*region));
      else error = region.error();
    });
    if (error) return tl::unexpected(*error);
    if (regions.empty()) return bad(litematic->at, "expected at least one region in 'Regions', found none");
    if (const auto about = nbt.find(root, "Metadata", NbtType::compound))
      for (const char* key : {"Name", "Author", "Description"})
        if (const auto tag = nbt.find(*about, key, NbtType::text); tag && !nbt.text(*tag).empty())
          scene.metadata[std::string("minecraft.") + key] = nbt.text(*tag);
  } else if (nbt.find(root, "Width", NbtType::i16)) {
    scene.metadata["source_format"] = "schem";
    if (nbt.find(root, "Blocks", NbtType::bytes))
      return fail(ErrorCode::unsupported, at_byte(root.at) +
                                              "this is an old MCEdit schematic with numbers for "
                                              "blocks; convert it to a Sponge schematic (.schem), as WorldEdit does");
    const int64_t version = number(nbt, root, "Version", 1);
    if (version < 1 || version > 3)
      return fail(ErrorCode::unsupported, at_byte(root.at) + "expected version 1 to 3 of the schematic format, found " +
                                              std::to_string(version));
    QRY_TRY_ASSIGN(auto region, read_schematic(nbt, root, version, blocks));
    regions.push_back(std::move(region));
    scene.metadata["minecraft.schematic_version"] = std::to_string(version);
    if (const auto offset = nbt.find(root, "Offset", NbtType::ints); offset && nbt.array(*offset).size() == 12) {
      ByteReader in(nbt.array(*offset));
      std::string text;
      for (int i = 0; i < 3; ++i) text += (i ? " " : "") + std::to_string(int32_t(in.u32_big("an offset")));
      scene.metadata["minecraft.offset"] = text;
    }
  } else {
    return bad(root.at,
               "expected 'Width' and its like (a Sponge schematic) or 'Regions' (a litematic) in the "
               "outermost tag, found neither");
  }
  const int64_t data_version =
      std::max(number(nbt, root, "DataVersion", -1), number(nbt, root, "MinecraftDataVersion", -1));
  if (data_version >= 0) scene.metadata["minecraft.data_version"] = std::to_string(data_version);

  BrickBudget budget(bytes.size(), limits);
  uint64_t voxels = 0;
  for (const Region& region : regions) {
    const auto counted = walk_blocks(region, [&](uint64_t, uint32_t block) {
      blocks.count(block, 1);
      voxels += !blocks.empty(block);
      return true;
    });
    QRY_TRY(counted);
  }
  if (!budget.holds(voxels)) return tl::unexpected(budget.error(""));
  blocks.finish(scene, warnings);
  for (Region& region : regions) {
    VolumeBuilder volume(budget, scene.volumes.size());
    bool enough = true;
    const auto walked = walk_blocks(region, [&](uint64_t cell, uint32_t block) {
      const uint8_t material = blocks.material(block);
      if (!material) return true;
      const uint64_t x = cell % uint64_t(region.size[0]), row = cell / uint64_t(region.size[0]);
      return enough = volume.set(
                 {int32_t(x), int32_t(row / uint64_t(region.size[2])), int32_t(row % uint64_t(region.size[2]))},
                 material);
    });
    QRY_TRY(walked);
    if (!enough) return tl::unexpected(budget.error(at_byte(region.data_at)));
    Instance instance;
    instance.volume = uint32_t(scene.volumes.size());
    instance.name = region.name;
    instance.offset = {int32_t(region.corner[0]), int32_t(region.corner[1]), int32_t(region.corner[2])};
    scene.instances.push_back(std::move(instance));
    scene.volumes.push_back(
        {region.name, volume.take(), {int32_t(region.size[0]), int32_t(region.size[1]), int32_t(region.size[2])}});
  }
  return scene;
}

Result<Scene> read_minecraft_with(const std::filesystem::path& file, const ReadOptions& options,
                                  const BrickLimits& limits) {
  QRY_TRY_ASSIGN(auto bytes, read_input(file, kMaxMinecraftBytes, options.progress, options.budget));
  if (bytes.empty()) return bad(0, kEmpty);
  QRY_TRY_ASSIGN(const auto plain, inflated(bytes, options.memory_limit_bytes, options.budget));
  std::vector<uint8_t>().swap(bytes);
  auto scene = parse_nbt(plain, limits, options.warnings);
  return scene && scene->metadata["source_format"] == "schem" ? named_after(file, std::move(scene)) : scene;
}

}  // namespace

Result<Scene> parse_minecraft(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                              std::vector<std::string>* warnings) {
  if (bytes.empty()) return bad(0, kEmpty);
  QRY_TRY_ASSIGN(const auto plain, inflated(bytes, memory_limit_bytes));
  return parse_nbt(plain, {}, warnings);
}

Result<Scene> read_minecraft(const std::filesystem::path& file, const ReadOptions& options) {
  return read_minecraft_with(file, options, {options.budget, nullptr});
}

Result<RegionsDone> read_minecraft_regions(const std::filesystem::path& file, const ReadOptions& options,
                                           const RegionSink& sink) {
  return read_with_spilling(options, sink,
                            [&](const BrickLimits& limits) { return read_minecraft_with(file, options, limits); });
}

constinit const Format kMinecraftFormat{
    .name = "minecraft",
    .title = "Minecraft schematic or litematic",
    .kind = FormatKind::scene,
    .extensions = {"schem", "litematic"},
    .read = read_minecraft,
    .read_regions = read_minecraft_regions,
    .cost = {.memory_per_byte = 400, .bricks_per_byte = 0.5, .work_per_byte = 0.4},
};

}  // namespace quarry::io
