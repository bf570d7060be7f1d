// SPDX-License-Identifier: Apache-2.0
// blocks.cpp - the table of patterns. The first that matches a block's name decides.
#include "voxel/io/minecraft/blocks.hpp"

#include <algorithm>

#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr size_t kMaterials = 255;
constexpr size_t kMaxName = 256;

struct Pattern {
  std::string_view part;  // what the name contains
  uint32_t rgb;
  float emission = 0, transparency = 0;
};

// The first match counts. Names that begin with a dye's name but are not dyed precede the dyes.
constexpr Pattern kBeforeDyes[] = {
    {"redstone_lamp", 0xb5703c, 2},  {"redstone_torch", 0xd03020, 2}, {"redstone_block", 0xa81a0c},
    {"redstone", 0x9c2015},          {"red_sandstone", 0xb5621f},     {"red_sand", 0xbe6621},
    {"red_nether_brick", 0x46080a},  {"red_mushroom", 0xc82e2d},      {"brown_mushroom", 0x957051},
    {"blue_ice", 0x74a8fd, 0, 0.2f}, {"magma", 0x8e3f1f, 1},          {"coral", 0xc05a9a},
    {"jack_o_lantern", 0xd8881c, 2},
};

struct Dye {
  std::string_view name;
  uint32_t rgb;
};
constexpr Dye kDyes[] = {
    // "light_" names come first: they end as others begin
    {"light_blue_", 0x3aafd9}, {"light_gray_", 0x8e8e86}, {"white_", 0xe9ecec},  {"orange_", 0xf07613},
    {"magenta_", 0xbd44b3},    {"yellow_", 0xf8c527},     {"lime_", 0x70b919},   {"pink_", 0xed8dac},
    {"gray_", 0x3e4447},       {"cyan_", 0x158991},       {"purple_", 0x792aac}, {"blue_", 0x35399d},
    {"brown_", 0x724728},      {"green_", 0x546d1b},      {"red_", 0xa12722},    {"black_", 0x141519},
};

constexpr Pattern kPatterns[] = {
    // Lights and liquids.
    {"lava", 0xd45a12, 3},
    {"water", 0x3f64c8, 0, 0.6f},
    {"bubble_column", 0x3f64c8, 0, 0.6f},
    {"soul_torch", 0x7ce8ec, 3},
    {"soul_lantern", 0x6ad8dc, 3},
    {"soul_campfire", 0x5ac8d0, 2},
    {"sea_lantern", 0xbfd6ce, 4},
    {"lantern", 0xe0a040, 4},
    {"torch", 0xffd060, 4},
    {"glowstone", 0xd8a860, 4},
    {"shroomlight", 0xf09648, 4},
    {"campfire", 0xe08830, 3},
    {"froglight", 0xf2e8c4, 4},
    {"end_rod", 0xf4ede2, 4},
    {"beacon", 0x78dcd6, 4},
    {"soul_fire", 0x60d8e0, 4},
    {"fire", 0xf08020, 4},
    {"glow_lichen", 0x70887e, 0.5f},
    {"candle", 0xe4c896, 1},
    {"nether_portal", 0x6e22c8, 2, 0.5f},
    {"end_portal", 0x101c24, 1},
    {"conduit", 0xa08c6c, 1},
    // Plants. Leaves precede woods, because their names contain the wood's.
    {"cherry_leaves", 0xe6aecb},
    {"azalea_leaves", 0x5e7a34},
    {"spruce_leaves", 0x3c5c3c},
    {"birch_leaves", 0x648244},
    {"mangrove_leaves", 0x4c7a2a},
    {"jungle_leaves", 0x4a8c28},
    {"leaves", 0x48782c},
    {"sapling", 0x5a8c34},
    {"vine", 0x46702c},
    {"lily_pad", 0x286c28},
    {"moss", 0x5a6e2e},
    {"fern", 0x58843c},
    {"seagrass", 0x327a1e},
    {"kelp", 0x46642c},
    {"grass_block", 0x6aa042},
    {"grass", 0x6aa042},
    {"cactus", 0x587c2c},
    {"sugar_cane", 0x90c068},
    {"wheat", 0xc8ac54},
    {"hay_block", 0xb89820},
    {"pumpkin", 0xc87818},
    {"melon", 0x70921e},
    {"carrots", 0x50882c},
    {"potatoes", 0x508c30},
    {"beetroots", 0x5c7c30},
    {"cocoa", 0x8c5424},
    {"sweet_berry", 0x3a5c38},
    {"mushroom_stem", 0xcac4b8},
    {"mushroom", 0x90705a},
    {"chorus", 0x5e3a5e},
    {"poppy", 0xc02c24},
    {"dandelion", 0xe8cc28},
    {"orchid", 0x2c9ec4},
    {"allium", 0xa06ac4},
    {"tulip", 0xd87848},
    {"cornflower", 0x4a6ad0},
    {"lilac", 0xb07eb0},
    {"peony", 0xc89ac0},
    {"rose", 0xb03428},
    {"sunflower", 0xe0b828},
    {"azure_bluet", 0xc8ccc0},
    {"oxeye", 0xd8d8c8},
    {"azalea", 0x667e30},
    {"dead_bush", 0x6a4e28},
    {"dripleaf", 0x6c8832},
    {"spore", 0x6a7c30},
    {"roots", 0x7c5c40},
    {"bamboo", 0xbea64c},
    {"nether_wart_block", 0x721010},
    {"nether_wart", 0x701418},
    {"warped_wart", 0x16786e},
    {"sponge", 0xc2c04a},
    // Glass, ice, slime.
    {"tinted_glass", 0x2c262e, 0, 0.5f},
    {"glass", 0xc8dce0, 0, 0.75f},
    {"packed_ice", 0x8cb4fa},
    {"ice", 0x90b6fc, 0, 0.4f},
    {"slime", 0x70c05c, 0, 0.3f},
    {"honeycomb", 0xe4921c},
    {"honey", 0xf0a834, 0, 0.3f},
    {"snow", 0xf4fafa},
    // Metals and gems.
    {"raw_copper", 0x9a6a4e},
    {"oxidized_copper", 0x52a284},
    {"oxidized_cut", 0x509c80},
    {"weathered", 0x6c996e},
    {"exposed", 0xa17d67},
    {"copper_ore", 0x7c7d78},
    {"copper", 0xc06c4e},
    {"raw_gold", 0xdda82e},
    {"gold_block", 0xf6d03c},
    {"raw_iron", 0xa6886a},
    {"iron", 0xc8c8c8},
    {"chain", 0x34394a},
    {"anvil", 0x444444},
    {"cauldron", 0x4a494a},
    {"hopper", 0x4c4a4c},
    {"rail", 0x7c6c58},
    {"lightning_rod", 0xc06c4e},
    {"diamond_block", 0x62ece4},
    {"emerald_block", 0x2acb58},
    {"lapis_block", 0x1e438c},
    {"netherite", 0x423d40},
    {"ancient_debris", 0x5f4239},
    {"coal_block", 0x101010},
    {"amethyst", 0x8662bf},
    {"_ore", 0x7e7c78},
    // Nether and end.
    {"netherrack", 0x622626},
    {"soul_sand", 0x513e33},
    {"soul_soil", 0x4b3a2e},
    {"nether_brick", 0x2c161a},
    {"nether", 0x5c2424},
    {"crimson", 0x653147},
    {"warped", 0x2b6963},
    {"polished_basalt", 0x58585a},
    {"basalt", 0x49484d},
    {"blackstone", 0x2a2429},
    {"quartz", 0xece6df},
    {"purpur", 0xaa7eaa},
    {"end_stone", 0xdce0a0},
    {"obsidian", 0x0f0b19},
    {"crying", 0x200a3c},
    {"shulker", 0x8c608c},
    {"dragon", 0x0c090f},
    {"sculk", 0x0d1e24},
    {"respawn_anchor", 0x281640},
    // Woods.
    {"pale_oak", 0xe4dad8},
    {"dark_oak", 0x432b14},
    {"stripped_oak", 0xb19056},
    {"oak_log", 0x6d5533},
    {"oak_wood", 0x6d5533},
    {"oak", 0xa2834f},
    {"stripped_spruce", 0x735934},
    {"spruce_log", 0x3b2610},
    {"spruce_wood", 0x3b2610},
    {"spruce", 0x735531},
    {"stripped_birch", 0xc5b076},
    {"birch_log", 0xd9d7d3},
    {"birch_wood", 0xd9d7d3},
    {"birch", 0xc0af79},
    {"jungle_log", 0x554319},
    {"jungle", 0xa07351},
    {"acacia_log", 0x676157},
    {"acacia_wood", 0x676157},
    {"acacia", 0xa85a32},
    {"mangrove", 0x763631},
    {"cherry_log", 0x37222d},
    {"cherry", 0xe3b3ad},
    {"bookshelf", 0x75603b},
    {"crafting_table", 0x7d5b37},
    {"cartography", 0x5c4a3c},
    {"fletching", 0xc5b485},
    {"smithing", 0x39393e},
    {"loom", 0x8e775c},
    {"composter", 0x704622},
    {"barrel", 0x86643b},
    {"lectern", 0xad8a53},
    {"chest", 0xa07028},
    {"ladder", 0x806840},
    {"beehive", 0x9f804e},
    {"bee_nest", 0xcaa04c},
    {"note_block", 0x593a28},
    {"jukebox", 0x5d402f},
    {"scaffolding", 0xaa8449},
    {"item_frame", 0x8c6038},
    {"planks", 0xa2834f},
    {"fence", 0xa2834f},
    {"sign", 0xa2834f},
    // Earths and stones.
    {"farmland", 0x8f6746},
    {"dirt_path", 0x947a41},
    {"podzol", 0x5b3f18},
    {"mycelium", 0x6f6265},
    {"coarse_dirt", 0x77553b},
    {"mud_brick", 0x89684f},
    {"mud", 0x3c393c},
    {"dirt", 0x866043},
    {"clay", 0xa0a6b3},
    {"gravel", 0x837f7e},
    {"sandstone", 0xd8cb9b},
    {"sand", 0xdbcfa3},
    {"terracotta", 0x985e43},
    {"mossy", 0x6e765e},
    {"deepslate", 0x505053},
    {"tuff", 0x6c6d66},
    {"calcite", 0xdfe0dc},
    {"dripstone", 0x866b5c},
    {"granite", 0x956755},
    {"diorite", 0xbcbcbc},
    {"andesite", 0x888889},
    {"prismarine_brick", 0x63ab9e},
    {"dark_prismarine", 0x335b4b},
    {"prismarine", 0x639c97},
    {"bedrock", 0x555555},
    {"cobblestone", 0x7f7f7f},
    {"stone_brick", 0x7a7979},
    {"smooth_stone", 0x9e9e9e},
    {"stonecutter", 0x7a766f},
    {"grindstone", 0x8b8b8b},
    {"stone", 0x7d7d7d},
    {"brick", 0x966153},
    {"flower_pot", 0x7c4536},
    {"potted", 0x7c4536},
    {"decorated_pot", 0x8c4e3a},
    // Things.
    {"furnace", 0x6e6e6e},
    {"smoker", 0x5c5348},
    {"observer", 0x626262},
    {"piston", 0x6d6860},
    {"dispenser", 0x7a7a7a},
    {"dropper", 0x7a7a7a},
    {"enchanting", 0x801c20},
    {"brewing", 0x7c674f},
    {"bell", 0xfdeb6e},
    {"cobweb", 0xe4e9ea},
    {"bone_block", 0xe5e1cf},
    {"tnt", 0xdb441a},
    {"egg", 0xe4e3bf},
    {"target", 0xe5b0a8},
    {"lodestone", 0x939597},
    {"cake", 0xf8dede},
    {"tripwire", 0x808080},
    {"lever", 0x6f5d43},
    {"button", 0x7d7d7d},
    {"repeater", 0xa09d9c},
    {"comparator", 0xa6a3a2},
    {"daylight", 0x82745f},
    {"head", 0x8c7460},
    {"skull", 0xc0c0c0},
    {"banner", 0xe9ecec},
    {"bed", 0x8e2020},
    {"wool", 0xe9ecec},
    {"carpet", 0xe9ecec},
    {"command_block", 0xb58a6c},
    {"structure_block", 0x584a5a},
    {"jigsaw", 0x504652},
    {"spawner", 0x243040},
};

Material coloured(uint32_t rgb, float emission, float transparency) {
  Material m;
  m.r = uint8_t(rgb >> 16);
  m.g = uint8_t(rgb >> 8);
  m.b = uint8_t(rgb);
  m.emission = emission;
  m.transparency = transparency;
  if (transparency > 0) m.roughness = 0.05f;
  return m;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
uint32_t channel(uint32_t rgb, int shift) { return rgb >> shift & 255; }

}  // namespace

std::string_view block_name(std::string_view state) { return state.substr(0, state.find('[')); }

bool block_is_empty(std::string_view state) {
  std::string_view name = block_name(state);
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  constexpr std::string_view kNothing[] = {"air", "cave_air", "void_air", "structure_void", "barrier", "light"};
  return std::find(std::begin(kNothing), std::end(kNothing), name) != std::end(kNothing);
}

Material block_material(std::string_view state) {
  const std::string_view full = block_name(state);
  std::string_view name = full;
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  const bool out = contains(state, "lit=false");  // a lamp that is off
  for (const Pattern& p : kBeforeDyes)
    if (contains(name, p.part)) return coloured(p.rgb, out ? 0 : p.emission, p.transparency);
  for (const Dye& dye : kDyes) {
    if (name.substr(0, dye.name.size()) != dye.name) continue;
    uint32_t rgb = dye.rgb;
    if (contains(name, "terracotta") && !contains(name, "glazed")) {  // the dye half mixed into clay
      rgb = 0;
      for (const int shift : {16, 8, 0}) rgb |= (channel(dye.rgb, shift) + channel(0x985e43, shift)) / 2 << shift;
    }
    return coloured(rgb, contains(name, "candle") && contains(state, "lit=true") ? 1.0f : 0.0f,
                    contains(name, "glass") ? 0.6f : 0.0f);
  }
  for (const Pattern& p : kPatterns)
    if (contains(name, p.part)) return coloured(p.rgb, out ? 0 : p.emission, p.transparency);
  uint32_t hash = 2166136261u;  // FNV-1a, Fowler, Noll, Vo
  for (const char c : full) hash = (hash ^ uint8_t(c)) * 16777619u;
  hash ^= hash >> 15;
  return coloured(((hash >> 16 & 127) + 64) << 16 | ((hash >> 8 & 127) + 64) << 8 | ((hash & 127) + 64), 0, 0);
}

uint32_t BlockTable::id_of(const std::string& state) {
  const auto [at, fresh] = ids_.try_emplace(state, uint32_t(blocks_.size()));
  if (fresh) blocks_.push_back({state, block_is_empty(state)});
  return at->second;
}

void BlockTable::finish(Scene& scene, std::vector<std::string>* warnings) {
  const auto used = [](const Block& b) { return b.voxels && !b.empty; };
  const auto states = size_t(std::count_if(blocks_.begin(), blocks_.end(), used));
  scene.metadata["minecraft.states"] = std::to_string(states);
  const bool by_name = states > kMaterials;
  struct Kind {
    std::string name;
    uint64_t voxels = 0;
    Material material;
    uint8_t index = 0;
  };
  std::vector<Kind> kinds;  // in order of the first block of each
  std::map<std::string_view, size_t> kind_of;
  std::vector<size_t> kind_of_block(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!used(blocks_[i])) continue;
    const std::string_view name = by_name ? block_name(blocks_[i].state) : std::string_view(blocks_[i].state);
    const auto [at, fresh] = kind_of.try_emplace(name, kinds.size());
    if (fresh) kinds.push_back({std::string(name.substr(0, kMaxName)), 0, block_material(blocks_[i].state)});
    kinds[at->second].voxels += blocks_[i].voxels;
    kind_of_block[i] = at->second;
  }
  if (by_name)
    add_warning(
        warnings,
        std::to_string(states) +
            " block states are more than 255 materials; states of one block share a material, named as the block");
  std::vector<size_t> kept(kinds.size());
  for (size_t k = 0; k < kept.size(); ++k) kept[k] = k;
  if (kinds.size() > kMaterials) {
    std::stable_sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return kinds[a].voxels > kinds[b].voxels; });
    kept.resize(kMaterials);
    std::sort(kept.begin(), kept.end());
    add_warning(warnings, std::to_string(kinds.size()) + " kinds of blocks are more than 255 materials; the " +
                              std::to_string(kinds.size() - kMaterials) + " rarest took the nearest colour");
  }
  scene.palette = Palette{};
  for (size_t i = 0; i < kept.size(); ++i) {
    kinds[kept[i]].index = uint8_t(i + 1);
    scene.palette.materials[i + 1] = kinds[kept[i]].material;
    scene.palette.names[i + 1] = kinds[kept[i]].name;
  }
  for (Kind& kind : kinds) {
    if (kind.index) continue;
    const auto distance = [&](size_t k) {
      const Material &a = kind.material, &b = kinds[k].material;
      return (a.r - b.r) * (a.r - b.r) + (a.g - b.g) * (a.g - b.g) + (a.b - b.b) * (a.b - b.b);
    };
    kind.index = kinds[*std::min_element(kept.begin(), kept.end(), [&](size_t a, size_t b) {
                   return distance(a) < distance(b);
                 })].index;
  }
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (used(blocks_[i])) blocks_[i].material = kinds[kind_of_block[i]].index;
}

}  // namespace quarry::io
