// SPDX-License-Identifier: Apache-2.0
// edit.cpp - finds the bricks that an edit may change, applies the mode by masks in parallel, and records both states.
#include "voxel/worlds/edit.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>

#include "base/parallel.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace quarry {
namespace {

constexpr size_t kEditBricksPerTask = 32;

const char* name_of(Shape shape) {
  switch (shape) {
    case Shape::box: return "box";
    case Shape::sphere: return "sphere";
    case Shape::line: return "line";
  }
  return "shape";
}

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::add: return "add";
    case Mode::remove: return "remove";
    case Mode::paint: return "paint";
    case Mode::replace: return "replace";
    case Mode::fill: return "fill";
  }
  return "edit";
}

std::string colour_text(const Material& m) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02X%02X%02X", m.r, m.g, m.b);
  return text;
}

std::string number_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", double(value));
  return text;
}

std::string palette_label(const std::vector<MaterialChange>& changes) {
  if (changes.size() != 1) return "palette: " + std::to_string(changes.size()) + " materials";
  const MaterialChange& c = changes[0];
  std::string names, values;
  size_t count = 0;
  const auto note = [&](const char* name, const std::string& before, const std::string& after) {
    names += (count++ ? ", " : "") + std::string(name);
    values = before == after ? "" : " " + before + " to " + after;
  };
  const Material &a = c.before, &b = c.after;
  if (a.r != b.r || a.g != b.g || a.b != b.b) note("colour", colour_text(a), colour_text(b));
  if (a.a != b.a) note("alpha", std::to_string(a.a), std::to_string(b.a));
  const auto number = [&](const char* name, float before, float after) {
    if (before != after) note(name, number_text(before), number_text(after));
  };
  number("roughness", a.roughness, b.roughness);
  number("metalness", a.metalness, b.metalness);
  number("emission", a.emission, b.emission);
  number("transparency", a.transparency, b.transparency);
  number("refraction", a.ior, b.ior);
  if (c.name_before != c.name_after) note("name", "", "");
  return "material " + std::to_string(c.index) + ": " + (names.empty() ? "changed" : names) +
         (count == 1 ? values : "");
}

// Changes the voxels of `shape` in `brick`; returns how many differ afterwards.
uint32_t apply_mode(const Edit& edit, const BrickMask& shape, Brick& brick) {
  const uint8_t material = edit.mode == Mode::remove ? uint8_t(0) : edit.material;
  uint32_t changed = 0;
  for (uint32_t w = 0; w < 8; ++w) {
    uint64_t reached = shape[w];
    if (edit.mode == Mode::add) reached &= ~brick.mask[w];
    if (edit.mode == Mode::remove || edit.mode == Mode::paint || edit.mode == Mode::replace) reached &= brick.mask[w];
    uint8_t* const materials = brick.materials.data() + w * 64;
    if (reached == ~uint64_t(0) && brick.mask[w] == 0) {  // a whole octant that was empty
      if (material == 0) continue;
      std::fill(materials, materials + 64, material);
      brick.mask[w] = reached;
      changed += 64;
      continue;
    }
    for (; reached; reached &= reached - 1) {
      const auto bit = uint32_t(std::countr_zero(reached));
      if (materials[bit] == material || (edit.mode == Mode::replace && materials[bit] != edit.from)) continue;
      brick.set(w * 64 + bit, material);
      ++changed;
    }
  }
  return changed;
}

// The bricks that the edit may change, sorted.
Result<std::vector<Int3>> candidates(const BrickMap& bricks, const Edit& edit, const EditShape& shape) {
  const bool creates = (edit.mode == Mode::add || edit.mode == Mode::fill) && edit.material != 0;
  if (creates) return shape.bricks(kMostBricksPerEdit);
  // Only existing bricks can change: iterate over the shape or the volume, whichever has fewer bricks.
  const Int3 first = brick_of(shape.bounds().min), last = brick_of(shape.bounds().max);
  const double box_bricks =
      (double(last.x) - first.x + 1) * (double(last.y) - first.y + 1) * (double(last.z) - first.z + 1);
  std::vector<Int3> found;
  if (box_bricks < double(bricks.bricks().size())) {
    QRY_TRY_ASSIGN(auto all, shape.bricks(size_t(box_bricks)));
    for (const Int3 at : all)
      if (bricks.find(at)) found.push_back(at);
  } else {
    const auto end = bricks.bricks().end();
    for (auto it = bricks.bricks().lower_bound({first.x, first.y, first.z}); it != end && it->first.x <= last.x; ++it)
      if (shape.may_meet(it->first)) found.push_back(it->first);
  }
  if (found.size() > kMostBricksPerEdit)
    return fail(ErrorCode::full, "edit: it would change " + std::to_string(found.size()) + " bricks, more than the " +
                                     std::to_string(kMostBricksPerEdit) + " of one edit; split it");
  return found;
}

}  // namespace

Result<Box3> edit_bounds(const Edit& edit) {
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  return shape.bounds();
}

BrickMask edit_mask(const Edit& edit, Int3 brick) {
  const auto shape = EditShape::create(edit);
  return shape ? shape->mask(brick) : BrickMask{};
}

Result<UndoRecord> plan_edit(const BrickMap& bricks, const Edit& edit, uint32_t threads) {
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  UndoRecord record;
  record.label = std::string(name_of(edit.mode)) + " " + name_of(edit.shape);
  QRY_TRY_ASSIGN(const auto places, candidates(bricks, edit, shape));

  // Each piece keeps its own changes; joined in the order of the pieces, they do not depend on the threads.
  struct Piece {
    std::vector<BrickChange> changes;
    uint64_t voxels = 0;
  };
  std::vector<Piece> pieces((places.size() + kEditBricksPerTask - 1) / kEditBricksPerTask);
  parallel_for(
      places.size(), kEditBricksPerTask,
      [&](size_t begin, size_t end) {
        Piece& piece = pieces[begin / kEditBricksPerTask];
        piece.changes.reserve(end - begin);
        for (size_t i = begin; i < end; ++i) {
          const Int3 at = places[i];
          const Brick* const there = bricks.find(at);
          piece.changes.push_back({at, there ? *there : Brick{}, {}});
          BrickChange& change = piece.changes.back();
          change.after = change.before;
          const uint32_t changed = apply_mode(edit, shape.mask(at), change.after);
          piece.voxels += changed;
          if (changed == 0) piece.changes.pop_back();
        }
      },
      threads);
  size_t count = 0;
  for (const Piece& piece : pieces) count += piece.changes.size();
  record.changes.reserve(count);
  for (Piece& piece : pieces) {
    record.changes.insert(record.changes.end(), piece.changes.begin(), piece.changes.end());
    record.voxels_changed += piece.voxels;
    std::vector<BrickChange>().swap(piece.changes);
  }
  return record;
}

UndoRecord plan_palette_change(const Palette& before, const Palette& after) {
  UndoRecord record;
  for (size_t i = 0; i < before.materials.size(); ++i) {
    MaterialChange change{uint8_t(i), before.materials[i], after.materials[i], before.names[i], after.names[i]};
    if (change.before == change.after && change.name_before == change.name_after) continue;
    record.materials.push_back(std::move(change));
  }
  record.label = palette_label(record.materials);
  return record;
}

}  // namespace quarry
