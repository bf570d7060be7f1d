// SPDX-License-Identifier: Apache-2.0
// info_box.cpp - a world file's directory of chunks finds what the box needs; other files are read whole.
#include "app/commands/info_box.hpp"

#include <fmt/format.h>

#include <optional>

#include "app/console/terminal.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/operations/box_facts.hpp"

namespace quarry::app {
namespace {

using nlohmann::json;

json corner(Int3 v) { return json::array({v.x, v.y, v.z}); }

struct Content {
  BrickMap bricks;
  Palette palette;
  std::optional<std::pair<uint64_t, uint64_t>> read;  // bricks that were read, of how many; none: all
};

Result<Content> content_of(const std::string& file, const io::Format& format, const LoadOptions& load,
                           const Box3& box) {
  if (format.kind != io::FormatKind::world) {
    QRY_TRY_ASSIGN(const Scene scene, load_scene(file, load));
    QRY_TRY_ASSIGN(auto bricks, flatten(scene, true));
    return Content{std::move(bricks), scene.palette, std::nullopt};
  }
  std::vector<std::string> warnings;
  auto store = io::StoreReader::open(file, &warnings);
  for (const std::string& warning : warnings) say_warning(shown(file), warning);
  QRY_TRY(store);
  ProgressLine line(shown(file));
  uint64_t read = 0;
  QRY_TRY_ASSIGN(auto bricks, io::visible_in_box(*store, box, &read, line.progress()));
  return Content{std::move(bricks), store->scene().palette, std::pair{read, store->bricks()}};
}

}  // namespace

Result<json> describe_box(const std::string& file, const io::Format& format, const LoadOptions& load, const Box3& box) {
  QRY_TRY_ASSIGN(const Content content, content_of(file, format, load, box));
  const BoxFacts facts = box_facts(content.bricks, box);
  json out;
  out["file"] = file;
  out["format"] = format.name;
  out["axes"] = "y-up";
  out["box"] = {{"min", corner(box.min)}, {"max", corner(box.max)}};
  out["voxels"] = facts.voxels;
  out["bricks"] = facts.bricks;
  out["min"] = facts.bounds.empty() ? json() : corner(facts.bounds.min);
  out["max"] = facts.bounds.empty() ? json() : corner(facts.bounds.max);
  out["materials"] = json::array();
  for (uint32_t m = 1; m < facts.of_material.size(); ++m) {
    if (facts.of_material[m] == 0) continue;
    const Material& material = content.palette.materials[m];
    out["materials"].push_back({{"index", m},
                                {"name", content.palette.names[m]},
                                {"color", fmt::format("#{:02x}{:02x}{:02x}", material.r, material.g, material.b)},
                                {"voxels", facts.of_material[m]}});
  }
  if (content.read) out["read"] = {{"bricks", content.read->first}, {"of", content.read->second}};
  return out;
}

void print_box(const json& out) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("  {:<14} {}\n", name, value); };
  const auto corners = [](const json& low, const json& high) {
    return fmt::format("{},{},{} to {},{},{}", low[0].get<int>(), low[1].get<int>(), low[2].get<int>(),
                       high[0].get<int>(), high[1].get<int>(), high[2].get<int>());
  };
  fmt::print("{} ({}, {})\n", out["file"].get<std::string>(), out["format"].get<std::string>(),
             out["axes"].get<std::string>());
  row("box", corners(out["box"]["min"], out["box"]["max"]));
  row("voxels", with_commas(out["voxels"]));
  row("bricks", with_commas(out["bricks"]));
  if (!out["min"].is_null()) row("bounds", corners(out["min"], out["max"]));
  if (out.contains("read"))
    row("read",
        fmt::format("{} of the file's {} bricks", with_commas(out["read"]["bricks"]), with_commas(out["read"]["of"])));
  for (const json& material : out["materials"]) {
    const std::string name = material["name"];
    row(fmt::format("material {}", material["index"].get<uint32_t>()).c_str(),
        fmt::format("{} voxels, {}{}{}", with_commas(material["voxels"]), material["color"].get<std::string>(),
                    name.empty() ? "" : ", ", name));
  }
}

}  // namespace quarry::app
