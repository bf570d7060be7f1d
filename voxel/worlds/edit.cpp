// SPDX-License-Identifier: Apache-2.0
// edit.cpp - finds the bricks that an edit may change, applies the mode by masks in parallel, and records both states.
#include "voxel/worlds/edit.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "base/parallel.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace quarry {
namespace {

constexpr size_t kEditBricksPerTask = 256;

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

constexpr uint64_t kEachByte = 0x0101010101010101u;

// Bit i: byte i of the eight is `value`.
uint64_t equal_bytes(uint64_t eight, uint8_t value) {
  const uint64_t x = eight ^ (kEachByte * value), low7 = kEachByte * 0x7F;
  const uint64_t zero_bytes = ~(((x & low7) + low7) | x) & (kEachByte * 0x80);
  return (zero_bytes >> 7) * 0x0102040810204080u >> 56;
}

// Byte i is 0xFF where bit i of the eight is set.
uint64_t widened(uint64_t eight_bits) {
  const uint64_t spread = (eight_bits * kEachByte) & 0x8040201008040201u;  // byte i: its bit i, or 0
  return ((((spread + kEachByte * 0x7F) | spread) >> 7) & kEachByte) * 0xFF;
}

// Changes the voxels of `shape` in `brick`, eight at a time; returns how many differ afterwards.
uint32_t apply_mode(const Edit& edit, const BrickMask& shape, Brick& brick) {
  const uint8_t material = edit.mode == Mode::remove ? uint8_t(0) : edit.material;
  const bool of_set = edit.mode == Mode::remove || edit.mode == Mode::paint || edit.mode == Mode::replace;
  uint32_t changed = 0;
  for (uint32_t w = 0; w < 8; ++w) {
    const uint64_t reached = edit.mode == Mode::add ? shape[w] & ~brick.mask[w]
                             : of_set               ? shape[w] & brick.mask[w]
                                                    : shape[w];
    if (!reached) continue;
    uint64_t differing = 0;
    for (uint32_t byte = 0; byte < 8; ++byte) {
      uint64_t bits = reached >> (byte * 8) & 0xFFu, eight;
      if (!bits) continue;
      uint8_t* const at = brick.materials.data() + w * 64 + byte * 8;
      std::memcpy(&eight, at, 8);
      if (edit.mode == Mode::replace) bits &= equal_bytes(eight, edit.from);
      bits &= ~equal_bytes(eight, material);
      const uint64_t mask = widened(bits);
      eight = (eight & ~mask) | (kEachByte * material & mask);
      std::memcpy(at, &eight, 8);
      differing |= bits << (byte * 8);
    }
    changed += uint32_t(std::popcount(differing));
    brick.mask[w] = material ? brick.mask[w] | differing : brick.mask[w] & ~differing;
  }
  return changed;
}

// What the edit makes of `before`, the brick at `at`, and how many voxels differ.
SharedBrick edited(const Edit& edit, const EditShape& shape, Int3 at, const SharedBrick& before, BrickWriter& writer,
                   uint32_t& changed) {
  const uint8_t material = edit.mode == Mode::remove ? uint8_t(0) : edit.material, full = before.material();
  const bool creates = edit.mode == Mode::add || edit.mode == Mode::fill;
  changed = 0;
  if (!before && (!creates || material == 0)) return before;
  if (full && (edit.mode == Mode::add || full == material || (edit.mode == Mode::replace && full != edit.from)))
    return before;
  // A whole brick that is absent, full, or removed becomes another such without its voxels being looked at.
  const BrickMask mask = shape.mask(at);
  if ((!before || full || edit.mode == Mode::remove) && all_set(mask)) {
    changed = before ? before.voxels() : kVoxelsPerBrick;
    return SharedBrick::full(material);
  }
  Brick brick = before->copy();
  changed = apply_mode(edit, mask, brick);
  return changed ? writer.make(brick) : before;
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
  QRY_TRY_ASSIGN(const auto places, candidates(bricks, edit, shape));

  std::vector<PlannedChanges> pieces((places.size() + kEditBricksPerTask - 1) / kEditBricksPerTask);
  parallel_for(
      places.size(), kEditBricksPerTask,
      [&](size_t begin, size_t end) {
        PlannedChanges& piece = pieces[begin / kEditBricksPerTask];
        piece.changes.reserve(end - begin);
        BrickWriter writer(bricks.pool());
        for (size_t i = begin; i < end; ++i) {
          const Int3 at = places[i];
          SharedBrick before = bricks.share(at);
          uint32_t changed = 0;
          SharedBrick after = edited(edit, shape, at, before, writer, changed);
          if (changed == 0) continue;
          piece.voxels += changed;
          piece.changes.push_back({at, std::move(before), std::move(after)});
        }
      },
      threads);
  UndoRecord record = joined(pieces);
  record.label = std::string(name_of(edit.mode)) + " " + name_of(edit.shape);
  return record;
}

UndoRecord joined(std::vector<PlannedChanges>& pieces) {
  UndoRecord record;
  size_t count = 0;
  for (const PlannedChanges& piece : pieces) count += piece.changes.size();
  record.changes.reserve(count);
  for (PlannedChanges& piece : pieces) {
    std::move(piece.changes.begin(), piece.changes.end(), std::back_inserter(record.changes));
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
