// SPDX-License-Identifier: Apache-2.0
// edit.cpp - finds the bricks that an edit may change, applies the mode by masks in parallel, and records both states.
#include "voxel/worlds/edit.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/shapes/change.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace quarry {
namespace {

constexpr size_t kEditBricksPerTask = 256;

const char* name_of(Shape shape) {
  switch (shape) {
    case Shape::box: return "box";
    case Shape::sphere: return "sphere";
    case Shape::line: return "line";
    case Shape::connected: return "connected";
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

// Changes the voxels of `shape` in `brick`, eight at a time; returns how many differ afterwards.
uint32_t apply_mode(const Edit& edit, const BrickMask& shape, Brick& brick) {
  uint32_t changed = 0;
  for (uint32_t w = 0; w < 8; ++w) {
    const uint64_t reached = reached_by(edit.mode, shape[w], brick.mask[w]);
    if (!reached) continue;
    uint64_t differing = 0;
    for (uint32_t byte = 0; byte < 8; ++byte) {
      const uint64_t bits = reached >> (byte * 8) & 0xFFu;
      if (!bits) continue;
      uint8_t* const at = brick.materials.data() + w * 64 + byte * 8;
      uint64_t eight;
      std::memcpy(&eight, at, 8);
      differing |= change_eight(edit.mode, edit.material, edit.from, bits, eight) << (byte * 8);
      std::memcpy(at, &eight, 8);
    }
    changed += uint32_t(std::popcount(differing));
    brick.mask[w] = material_after(edit.mode, edit.material) ? brick.mask[w] | differing : brick.mask[w] & ~differing;
  }
  return changed;
}

// What the edit makes of `before`, the brick at `at`, and how many voxels differ.
SharedBrick edited(const Edit& edit, const EditShape& shape, Int3 at, const SharedBrick& before, BrickWriter& writer,
                   uint32_t& changed) {
  const uint8_t material = material_after(edit.mode, edit.material), full = before.material();
  changed = 0;
  if (!before && !edit.creates()) return before;
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

// Those of the rows' bricks that are there, rising.
std::vector<BrickPut> share_rows(const BrickMap& bricks, std::span<const EditShape::Row> rows, uint32_t threads) {
  std::vector<BrickPut> found;
  for (const EditShape::Row& row : rows)
    for (uint32_t k = 0; k < row.count; ++k) found.push_back({row.at(k), {}});
  parallel_for(
      found.size(), kEditBricksPerTask,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) found[i].value = bricks.share(found[i].brick);
      },
      threads);
  std::erase_if(found, [](const BrickPut& put) { return !put.value; });
  return found;
}

Box3 brick_box(const EditShape& shape) { return {brick_of(shape.bounds().min), brick_of(shape.bounds().max)}; }

// Plans the changes of some bricks. No brick is looked up meanwhile, as the pool grows.
class ChangePlanner {
 public:
  ChangePlanner(const Edit& edit, const EditShape& shape, const BrickPool& pool, PlannedChanges& out)
      : edit_(edit), shape_(shape), writer_(pool), out_(out) {}

  void plan(Int3 brick, SharedBrick before) {
    uint32_t changed = 0;
    SharedBrick after = edited(edit_, shape_, brick, before, writer_, changed);
    if (!changed) return;
    out_.voxels += changed;
    append_change(out_.changes, {brick, 1, std::move(before), std::move(after)});
  }
  // A row, with those of its bricks that are there, rising. The edit creates voxels.
  void plan(const EditShape::Row& row, std::span<BrickPut> there) {
    uint32_t done = 0;
    for (BrickPut& put : there) {
      const auto number = uint32_t(int64_t(put.brick.z) - row.first.z);
      create(row, done, number);
      plan(put.brick, std::move(put.value));
      done = number + 1;
    }
    create(row, done, row.count);
  }

 private:
  // Bricks [from, to) of the row, of which none is there.
  void create(const EditShape::Row& row, uint32_t from, uint32_t to) {
    const uint32_t whole = std::clamp(row.whole_first, from, to), whole_end = std::clamp(row.whole_end, whole, to);
    for (; from < whole; ++from) plan(row.at(from), {});
    if (whole < whole_end) {
      out_.voxels += uint64_t(whole_end - whole) * kVoxelsPerBrick;
      append_change(out_.changes, {row.at(whole), whole_end - whole, {}, SharedBrick::full(edit_.material)});
    }
    for (from = whole_end; from < to; ++from) plan(row.at(from), {});
  }

  const Edit& edit_;
  const EditShape& shape_;
  BrickWriter writer_;
  PlannedChanges& out_;
};

// An edit that creates voxels, row by row.
Result<std::vector<PlannedChanges>> plan_rows(const BrickMap& bricks, const Edit& edit, const EditShape& shape,
                                              uint32_t threads) {
  QRY_TRY_ASSIGN(const auto rows, shape.rows(kMostBricksPerEdit));
  // Parts of about as many bricks each.
  std::vector<size_t> parts{0};
  size_t in_part = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    all += rows[i].count;
    if ((in_part += rows[i].count) < kEditBricksPerTask) continue;
    parts.push_back(i + 1);
    in_part = 0;
  }
  if (parts.back() != rows.size()) parts.push_back(rows.size());
  // The box of a line is much larger than the line.
  std::vector<BrickPut> there = shape.is_sparse() && all < bricks.bricks().size() ? share_rows(bricks, rows, threads)
                                                                                  : bricks.within(brick_box(shape));

  std::vector<PlannedChanges> pieces(parts.size() - 1);
  parallel_for(
      pieces.size(), 1,
      [&](size_t piece, size_t) {
        ChangePlanner planner(edit, shape, bricks.pool(), pieces[piece]);
        const auto before = [](const BrickPut& put, Int3 at) { return put.brick < at; };
        auto next = std::lower_bound(there.begin(), there.end(), rows[parts[piece]].first, before);
        for (size_t i = parts[piece]; i < parts[piece + 1]; ++i) {
          const EditShape::Row& row = rows[i];
          while (next != there.end() && next->brick < row.first) ++next;
          const auto begin = next;
          while (next != there.end() && next->brick <= row.at(row.count - 1)) ++next;
          planner.plan(row, {begin, next});
        }
      },
      threads);
  return pieces;
}

// An edit that only changes bricks that are there.
Result<std::vector<PlannedChanges>> plan_there(const BrickMap& bricks, const Edit& edit, const EditShape& shape,
                                               uint32_t threads) {
  const Box3 box = brick_box(shape);
  const double box_bricks =
      (double(box.max.x) - box.min.x + 1) * (double(box.max.y) - box.min.y + 1) * (double(box.max.z) - box.min.z + 1);
  std::vector<BrickPut> there;
  if (edit.shape == Shape::connected || (shape.is_sparse() && box_bricks < double(bricks.bricks().size()))) {
    QRY_TRY_ASSIGN(const auto rows, shape.rows(size_t(box_bricks)));
    there = share_rows(bricks, rows, threads);
  } else {
    there = bricks.within(box);
    std::erase_if(there, [&](const BrickPut& put) { return !shape.may_meet(put.brick); });
  }
  if (there.size() > kMostBricksPerEdit)
    return fail(ErrorCode::full, "edit: it would change " + std::to_string(there.size()) + " bricks, more than the " +
                                     std::to_string(kMostBricksPerEdit) + " of one edit; split it");
  std::vector<PlannedChanges> pieces((there.size() + kEditBricksPerTask - 1) / kEditBricksPerTask);
  parallel_for(
      there.size(), kEditBricksPerTask,
      [&](size_t begin, size_t end) {
        ChangePlanner planner(edit, shape, bricks.pool(), pieces[begin / kEditBricksPerTask]);
        for (size_t i = begin; i < end; ++i) planner.plan(there[i].brick, std::move(there[i].value));
      },
      threads);
  return pieces;
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
  QRY_TRY_ASSIGN(const auto shape, edit.shape == Shape::connected
                                       ? EditShape::connected(bricks, edit.a, kMostBricksPerEdit)
                                       : EditShape::create(edit));
  const bool creates = edit.shape != Shape::connected && edit.creates();
  QRY_TRY_ASSIGN(auto pieces,
                 creates ? plan_rows(bricks, edit, shape, threads) : plan_there(bricks, edit, shape, threads));
  UndoRecord record = joined(pieces);
  record.label = edit_label(edit);
  return record;
}

std::string edit_label(const Edit& edit) { return std::string(name_of(edit.mode)) + " " + name_of(edit.shape); }

UndoRecord joined(std::vector<PlannedChanges>& pieces) {
  UndoRecord record;
  size_t count = 0;
  for (const PlannedChanges& piece : pieces) count += piece.changes.size();
  record.changes.reserve(count);
  for (PlannedChanges& piece : pieces) {
    for (BrickChange& change : piece.changes) append_change(record.changes, std::move(change));
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
