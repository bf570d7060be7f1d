// SPDX-License-Identifier: Apache-2.0
// scene_steps.cpp - the table of steps. Each option's value is parsed and checked once, and becomes a function from
// parts to parts.
#include "app/batch/scene_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>

#include "base/suggest.hpp"
#include "voxel/operations/regions/fill_by_regions.hpp"
#include "voxel/operations/regions/parts_by_regions.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::app {
namespace {

using Parts = std::vector<ScenePart>;
using Losses = SceneSteps::Losses;
using Step = SceneSteps::Step;
using PartsByRegions = std::vector<PartByRegions>;
using Pass = SceneByRegions::Pass;

// Whole numbers with commas between them, all from lowest to highest. None if the text is anything else.
std::optional<std::vector<int64_t>> numbers_of(std::string_view text, size_t count, int64_t lowest, int64_t highest) {
  std::vector<int64_t> out;
  for (;;) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < lowest || number > highest) return {};
    out.push_back(number);
    text.remove_prefix(size_t(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
  return out.size() == count ? std::optional(std::move(out)) : std::nullopt;
}
std::optional<int64_t> number_of(std::string_view text, int64_t lowest, int64_t highest) {
  const auto list = numbers_of(text, 1, lowest, highest);
  return list ? std::optional((*list)[0]) : std::nullopt;
}

// N, or N:K with K neighbours of 6, 18 and 26. None if the text is anything else.
struct Counted {
  int64_t number = 0;
  Connectivity neighbours = Connectivity::faces;
};
std::optional<Counted> counted(std::string_view text, int64_t highest, Connectivity otherwise) {
  const size_t colon = std::min(text.find(':'), text.size());
  const auto number = number_of(text.substr(0, colon), 1, highest);
  const auto neighbours = colon == text.size() ? std::optional(otherwise) : connectivity_of(text.substr(colon + 1));
  if (!number || !neighbours) return {};
  return Counted{*number, *neighbours};
}

// A step that changes each part on its own: `operation` in memory, `by_regions` what is made region by region.
template <class Operation>
Step each(Operation operation,
          const std::function<Result<void>(SceneByRegions&, Losses&, const Pass&, const Progress&)>& by_regions) {
  return {[operation](Parts parts, Losses& losses, const Progress& progress) -> Result<Parts> {
            const auto change = [&](const Scene& scene) {
              if constexpr (std::is_invocable_v<Operation, const Scene&, const Progress&>)
                return operation(scene, progress);
              else return operation(scene, losses);
            };
            for (ScenePart& part : parts) {
              QRY_TRY_ASSIGN(auto changed, change(part.scene));
              part.scene = std::move(changed);
            }
            return parts;
          },
          [by_regions](PartsByRegions parts, Losses& losses, const Pass& pass,
                       const Progress& progress) -> Result<PartsByRegions> {
            for (PartByRegions& part : parts) QRY_TRY(by_regions(part.scene, losses, pass, progress));
            return parts;
          }};
}

void say_palette(const PaletteError& error, Losses& losses) {
  if (error.after < error.before)
    losses.push_back(fmt::format("{} materials became {} (off by {:.1f} of 255 on average, {:.0f} at worst)",
                                 error.before, error.after, error.rms, error.worst));
}

tl::unexpected<Error> bad(const std::string& expected) { return fail(ErrorCode::bad_usage, expected); }

Result<Step> crop_step(const std::string& value) {
  const auto box = box_of_text(value);
  if (!box) return bad("write the lowest and the highest voxel that stay, X0,Y0,Z0,X1,Y1,Z1");
  return each([box = *box](const Scene& scene, Losses&) { return crop(scene, box); },
              [box = *box](SceneByRegions& scene, Losses&, const Pass& pass, const Progress&) {
                return scene.crop(box, pass);
              });
}

Step turned_step(const Rotation& rotation) {
  return each(
      [rotation](const Scene& scene, Losses&) { return turn(scene, rotation); },
      [rotation](SceneByRegions& scene, Losses&, const Pass&, const Progress&) { return scene.turn(rotation); });
}

Result<Step> turn_step(const std::string& value) {
  const auto expected = [] { return bad("write an axis and a right-handed angle: y90, y180, x-90, ..."); };
  if (value.size() < 2 || value[0] < 'x' || value[0] > 'z') return expected();
  const auto degrees = number_of(std::string_view(value).substr(1), -3600, 3600);
  if (!degrees || *degrees % 90 != 0) return expected();
  const auto axis = size_t(value[0] - 'x');
  // A quarter turn about an axis: the first of the other two axes goes to the second, the second to minus the first.
  Rotation quarter, all;
  const size_t a = (axis + 1) % 3, b = (axis + 2) % 3;
  quarter.axis[a] = uint8_t(b), quarter.sign[a] = -1;
  quarter.axis[b] = uint8_t(a), quarter.sign[b] = 1;
  for (int64_t turns = (*degrees / 90 % 4 + 4) % 4; turns > 0; --turns) all = quarter * all;
  return turned_step(all);
}

Result<Step> mirror_step(const std::string& value) {
  if (value.size() != 1 || value[0] < 'x' || value[0] > 'z')
    return bad("write x, y or z: the coordinate that changes its sign");
  Rotation mirror;
  mirror.sign[size_t(value[0] - 'x')] = -1;
  return turned_step(mirror);
}

Result<Step> scale_step(const std::string& value) {
  const bool down = value.starts_with("1/");
  const auto n = number_of(std::string_view(value).substr(down ? 2 : 0), 1, 64);
  if (!n) return bad("write N (each voxel becomes N voxels along each axis) or 1/N, N from 1 to 64");
  const auto factor = uint32_t(*n);
  return each(
      [down, factor](const Scene& scene, Losses&) { return down ? shrink(scene, factor) : enlarge(scene, factor); },
      [down, factor](SceneByRegions& scene, Losses&, const Pass&, const Progress&) {
        return down ? scene.shrink(factor) : scene.enlarge(factor);
      });
}

Result<Step> lod_step(const std::string& value) {
  const auto levels = number_of(value, 1, 16);
  if (!levels) return bad("write how many times to halve, 1 to 16");
  return each(
      [times = *levels](const Scene& scene, Losses&) {
        Result<Scene> level = shrink(scene, 2);
        for (int64_t i = 1; i < times && level; ++i) level = shrink(*level, 2);
        return level;
      },
      [times = *levels](SceneByRegions& scene, Losses&, const Pass&, const Progress&) {
        Result<void> done;
        for (int64_t i = 0; i < times && done; ++i) done = scene.shrink(2);
        return done;
      });
}

Result<Step> hollow_step(const std::string& value) {
  const auto thickness = number_of(value, 1, 4096);
  if (!thickness) return bad("write the thickness of the shell in voxels, 1 to 4096");
  return each([t = uint32_t(*thickness)](const Scene& scene, Losses&) { return hollow(scene, t); },
              [t = uint32_t(*thickness)](SceneByRegions& scene, Losses&, const Pass&, const Progress&) {
                return scene.hollow(t);
              });
}

Result<Step> fill_step(const std::string& value) {
  const auto material = value == "auto" ? std::optional<int64_t>(0) : number_of(value, 1, 255);
  if (!material) return bad("write the number of a material, 1 to 255, or auto for each model's commonest");
  return each([m = uint8_t(*material)](const Scene& scene, Losses&) { return fill(scene, m); },
              [m = uint8_t(*material)](SceneByRegions& scene, Losses&, const Pass& pass,
                                       const Progress& progress) -> Result<void> {
                QRY_TRY_ASSIGN(scene, fill(std::move(scene), m, pass, progress));
                return {};
              });
}

enum class Way : uint8_t { grow, erode };
template <Way kWay>
Result<Step> morphology_step(const std::string& value) {
  const auto c = counted(value, kMostMorphologySteps, Connectivity::faces);
  if (!c) return bad("write how many steps, 1 to 4096, and which neighbours count if not 6: N, N:18 or N:26");
  return each(
      [steps = uint32_t(c->number), n = c->neighbours](const Scene& scene, const Progress& progress) {
        return kWay == Way::grow ? dilate(scene, n, steps, progress) : erode(scene, n, steps, progress);
      },
      [steps = uint32_t(c->number), n = c->neighbours](SceneByRegions& scene, Losses&, const Pass&, const Progress&) {
        return kWay == Way::grow ? scene.dilate(n, steps) : scene.erode(n, steps);
      });
}

Step parts_step(const PartChoice& choice) {
  return each([choice](const Scene& scene, const Progress& progress) { return keep_parts(scene, choice, progress); },
              [choice](SceneByRegions& scene, Losses&, const Pass& pass, const Progress& progress) -> Result<void> {
                QRY_TRY_ASSIGN(scene, keep_parts(std::move(scene), choice, pass, progress));
                return {};
              });
}

Result<Step> drop_parts_step(const std::string& value) {
  const auto c = counted(value, INT64_MAX, Connectivity::corners);
  if (!c)
    return bad("write the fewest voxels of a part that stays, and which neighbours count if not 26: N, N:6 or N:18");
  return parts_step({c->neighbours, UINT64_MAX, uint64_t(c->number)});
}

Result<Step> keep_parts_step(const std::string& value) {
  const auto c = counted(value, INT64_MAX, Connectivity::corners);
  if (!c) return bad("write how many parts stay, at least 1, and which neighbours count if not 26: N, N:6 or N:18");
  return parts_step({c->neighbours, uint64_t(c->number), 0});
}

Result<Step> materials_step(const std::string& value) {
  const auto count = number_of(value, 1, 255);
  if (!count) return bad("write how many materials may stay, 1 to 255");
  return each(
      [c = uint32_t(*count)](const Scene& scene, Losses& losses) {
        PaletteError error;
        auto done = quantise(scene, c, &error);
        say_palette(error, losses);
        return done;
      },
      [c = uint32_t(*count)](SceneByRegions& scene, Losses& losses, const Pass& pass, const Progress&) {
        PaletteError error;
        auto done = scene.quantise(c, pass, &error);
        say_palette(error, losses);
        return done;
      });
}

Result<Step> merge_step(const std::string&) {
  return Step{
      [](Parts parts, Losses& losses, const Progress&) -> Result<Parts> {
        std::vector<const Scene*> scenes;
        for (const ScenePart& part : parts) scenes.push_back(&part.scene);
        PaletteError error;
        QRY_TRY_ASSIGN(auto merged, merge(scenes, &error));
        say_palette(error, losses);
        parts.clear();
        parts.push_back({"", std::move(merged)});
        return parts;
      },
      [](PartsByRegions parts, Losses& losses, const Pass& pass, const Progress& progress) -> Result<PartsByRegions> {
        std::vector<SceneByRegions> scenes;
        for (PartByRegions& part : parts) scenes.push_back(std::move(part.scene));
        PaletteError error;
        QRY_TRY_ASSIGN(auto merged, merge(std::move(scenes), pass, progress, &error));
        say_palette(error, losses);
        parts.clear();
        parts.push_back({"", std::move(merged)});
        return parts;
      }};
}

template <BooleanKind kKind>
Result<Step> boolean_step(const std::string&) {
  return Step{
      [](Parts parts, Losses& losses, const Progress&) -> Result<Parts> {
        Scene all = std::move(parts[0].scene);
        for (size_t i = 1; i < parts.size(); ++i) {
          PaletteError error;
          QRY_TRY_ASSIGN(auto both, boolean(all, parts[i].scene, kKind, &error));
          say_palette(error, losses);
          parts[i].scene = {};  // its memory is no longer needed
          if (const auto units = source_units(all)) set_source_units(both, *units);
          all = std::move(both);
        }
        parts.clear();
        parts.push_back({"", std::move(all)});
        return parts;
      },
      [](PartsByRegions parts, Losses& losses, const Pass& pass, const Progress& progress) -> Result<PartsByRegions> {
        SceneByRegions all = std::move(parts[0].scene);
        for (size_t i = 1; i < parts.size(); ++i) {
          PaletteError error;
          const auto units = source_units(all.scene());
          QRY_TRY_ASSIGN(auto both, boolean(std::move(all), std::move(parts[i].scene), kKind, pass, progress, &error));
          say_palette(error, losses);
          if (units) set_source_units(both.scene(), *units);
          all = std::move(both);
        }
        parts.clear();
        parts.push_back({"", std::move(all)});
        return parts;
      }};
}

const std::vector<std::string> kSplitNames{"models", "instances", "layers", "colours", "parts", "regions:N"};

Result<Step> split_step(const std::string& value) {
  SplitKind kind = SplitKind::models;
  int32_t edge = 0;
  std::optional<Connectivity> parts_by;
  if (value == "parts" || value.starts_with("parts:")) {
    parts_by = value == "parts" ? Connectivity::corners : connectivity_of(std::string_view(value).substr(6));
    if (!parts_by) return bad("write parts, or which neighbours count if not 26: parts:6 or parts:18");
  } else if (value.starts_with("regions:")) {
    const auto n = number_of(std::string_view(value).substr(8), 1, 16384);
    if (!n) return bad("write regions:N, the edge of a region in voxels, 1 to 16384");
    kind = SplitKind::regions;
    edge = int32_t(*n);
  } else {
    const std::map<std::string, SplitKind> kinds{{"models", SplitKind::models},
                                                 {"instances", SplitKind::instances},
                                                 {"layers", SplitKind::layers},
                                                 {"colours", SplitKind::materials},
                                                 {"colors", SplitKind::materials}};
    const auto it = kinds.find(value);
    if (it == kinds.end())
      return bad(fmt::format("write one of {}{}", fmt::join(kSplitNames, ", "), did_you_mean(value, kSplitNames)));
    kind = it->second;
  }
  // Names of the pieces after that of what they are pieces of. There may be thousands, each with a palette.
  const auto add = [](auto& out, const std::string& whole, auto pieces) {
    if (!whole.empty())
      for (auto& piece : pieces) piece.name = whole + "-" + piece.name;
    if (out.empty()) out = std::move(pieces);
    else std::ranges::move(pieces, std::back_inserter(out));
  };
  return Step{[=](Parts parts, Losses&, const Progress& progress) -> Result<Parts> {
                Parts out;
                for (ScenePart& whole : parts) {
                  QRY_TRY_ASSIGN(auto pieces, parts_by ? split_parts(whole.scene, *parts_by, progress)
                                                       : split(whole.scene, kind, edge));
                  whole.scene = {};
                  add(out, whole.name, std::move(pieces));
                }
                return out;
              },
              [=](PartsByRegions parts, Losses&, const Pass& pass, const Progress& progress) -> Result<PartsByRegions> {
                PartsByRegions out;
                for (PartByRegions& whole : parts) {
                  QRY_TRY_ASSIGN(auto pieces, parts_by ? split_parts(std::move(whole.scene), *parts_by, pass, progress)
                                                       : split(std::move(whole.scene), kind, edge, pass));
                  add(out, whole.name, std::move(pieces));
                }
                return out;
              }};
}

enum class Effect : uint8_t { changes, combines, splits };
struct Row {
  const char *name, *shown, *help;
  Result<Step> (*make)(const std::string& value);
  Effect effect;
};
constexpr Row kRows[] = {
    {"--crop", "X0,Y0,Z0,X1,Y1,Z1",
     "Keep what lies in this box of voxels, both corners included, y up (info shows a .vox in its own axes, z up)",
     crop_step, Effect::changes},
    {"--turn", "TURN", "Turn about an axis by quarters: y90, x-90, z180", turn_step, Effect::changes},
    {"--mirror", "AXIS", "Mirror x, y or z about the origin", mirror_step, Effect::changes},
    {"--scale", "N", "N: each voxel becomes a cube of N voxels an edge; 1/N: each cube of N an edge one voxel",
     scale_step, Effect::changes},
    {"--lod", "LEVEL", "Halve the resolution LEVEL times", lod_step, Effect::changes},
    {"--hollow", "N", "Take away what is deeper than N voxels below the surface of its model", hollow_step,
     Effect::changes},
    {"--fill", "M", "Fill closed cavities of each model with material M, or auto for its commonest", fill_step,
     Effect::changes},
    {"--grow", "N[:K]",
     "Add N layers of voxels around each model: K neighbours, 6 (faces, unless given), 18 (edges too) or 26 (corners)",
     morphology_step<Way::grow>, Effect::changes},
    {"--erode", "N[:K]", "Take N layers of voxels off each model: those with an empty one among their K neighbours",
     morphology_step<Way::erode>, Effect::changes},
    {"--drop-parts", "N[:K]",
     "Drop connected parts of fewer than N voxels (K: 26, 18 or 6 neighbours connect). Looks at all that is visible; "
     "several models become one",
     drop_parts_step, Effect::changes},
    {"--keep-parts", "N[:K]", "Keep the N largest connected parts of all that is visible, as --drop-parts",
     keep_parts_step, Effect::changes},
    {"--materials", "N", "At most N materials; says how far off the colours are then", materials_step, Effect::changes},
    {"--merge", nullptr, "All inputs into one scene", merge_step, Effect::combines},
    {"--union", nullptr, "All voxels of all inputs, as one model; the first input's where they meet",
     boolean_step<BooleanKind::union_of>, Effect::combines},
    {"--intersection", nullptr, "The first input's voxels that are in all others too",
     boolean_step<BooleanKind::intersection>, Effect::combines},
    {"--difference", nullptr, "The first input's voxels that are in none of the others",
     boolean_step<BooleanKind::difference>, Effect::combines},
    {"--split", "KIND",
     "A file for each of: models, instances, layers, colours, parts[:K] (connected ones of all that is visible, the "
     "largest first), regions:N (cubes of N voxels an edge)",
     split_step, Effect::splits},
};

}  // namespace

std::optional<Connectivity> connectivity_of(std::string_view text) {
  if (text == "6") return Connectivity::faces;
  if (text == "18") return Connectivity::edges;
  if (text == "26") return Connectivity::corners;
  return {};
}

std::optional<Box3> box_of_text(std::string_view text) {
  const auto n = numbers_of(text, 6, INT32_MIN, INT32_MAX);
  if (!n || (*n)[0] > (*n)[3] || (*n)[1] > (*n)[4] || (*n)[2] > (*n)[5]) return {};
  const auto cell = [&](size_t i) { return int32_t((*n)[i]); };
  return Box3{{cell(0), cell(1), cell(2)}, {cell(3), cell(4), cell(5)}};
}

void SceneSteps::add_to(Arguments& arguments) {
  for (const Row& row : kRows) arguments.ordered(row.name, given_, row.shown, row.help);
}

std::optional<int> SceneSteps::check(const Arguments& arguments) {
  for (const OrderedOption& option : given_) {
    const Row& row = *std::ranges::find_if(kRows, [&](const Row& r) { return option.name == r.name; });
    auto step = row.make(option.value);
    if (!step)
      return arguments.wrong(fmt::format("{} '{}': {}{}", option.name, option.value, step.error().message,
                                         step.error().message.ends_with('?') ? "" : "."));
    steps_.push_back(std::move(*step));
    if (row.effect == Effect::combines && combines_)
      return arguments.wrong(fmt::format("{}: the inputs have been made one already.", option.name));
    combines_ = combines_ || row.effect == Effect::combines;
    splits_ = splits_ || row.effect == Effect::splits;
  }
  return {};
}

std::string SceneSteps::text() const {
  std::string out;
  for (const OrderedOption& option : given_) out += option.name + "=" + option.value + " ";
  return out;
}

Result<std::vector<ScenePart>> SceneSteps::apply(std::vector<ScenePart> parts, Losses& losses,
                                                 const std::atomic<bool>* cancel) const {
  Progress progress;
  progress.cancel = cancel;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    auto done = steps_[i].whole(std::move(parts), losses, progress);
    if (!done) return fail(done.error().code, given_[i].name + ": " + done.error().message);
    parts = std::move(*done);
  }
  return parts;
}

Result<PartsByRegions> SceneSteps::apply_by_regions(PartsByRegions parts, Losses& losses, const Pass& pass,
                                                    const std::atomic<bool>* cancel) const {
  Progress progress;
  progress.cancel = cancel;
  for (size_t i = 0; i < steps_.size(); ++i) {
    auto done = steps_[i].by_regions(std::move(parts), losses, pass, progress);
    if (!done) return fail(done.error().code, given_[i].name + ": " + done.error().message);
    parts = std::move(*done);
  }
  return parts;
}

}  // namespace quarry::app
