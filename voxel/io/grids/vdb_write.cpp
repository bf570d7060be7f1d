// SPDX-License-Identifier: Apache-2.0
// vdb_write.cpp - sends the visible bricks to quarry-vdb in the order of OpenVDB's trees, so that neither side holds
// more of them than one box, and both work at once.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "voxel/foreign/pipe/voxel_stream.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/grids/vdb.hpp"
#include "voxel/io/grids/vdb_process.hpp"
#include "voxel/io/quarry/visible_regions.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

// Of the program's memory, which does not depend on the file. It takes a fifth of it (kVdbProgram.own_bytes), but where
// memory cannot be had the library crashes.
constexpr uint64_t kProgramLimit = uint64_t(256) << 20;

// Beside the program there must be room for a box of bricks, and for what is on its way.
constexpr uint64_t kLeastRoom = uint64_t(4) << 20;

double metadata_number(const Scene& scene, const char* key, size_t index, double otherwise) {
  const auto found = scene.metadata.find(key);
  if (found == scene.metadata.end()) return otherwise;
  const char* at = found->second.c_str();
  for (size_t i = 0;; ++i) {
    char* end = nullptr;
    const double v = std::strtod(at, &end);
    if (end == at) return otherwise;
    if (i == index) return std::isfinite(v) ? v : otherwise;
    at = end;
  }
}

int32_t along(const Int3& v, size_t axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }
int32_t& along(Int3& v, size_t axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }

// The visible bricks in the order of OpenVDB's trees: nodes of 512^3 bricks rising by x, y, z, in each its nodes of
// 16^3, in each its bricks.
class BricksInTreeOrder {
 public:
  // `room`: the bytes that bricks may take.
  BricksInTreeOrder(const VisibleRegions& voxels, uint64_t room) : voxels_(voxels), room_(room) {
    boxes_.push_back({brick_of(voxels.bounds().min), brick_of(voxels.bounds().max)});
    nodes_ = nodes_left_ = nodes_of(boxes_.back());
  }
  // The next bricks; none at the end.
  Result<std::vector<BrickPut>> next() {
    std::vector<BrickPut> out;
    while (out.empty() && !boxes_.empty()) {
      const Box3 box = boxes_.back();
      boxes_.pop_back();
      QRY_TRY_ASSIGN(const bool fits, voxels_.fits(box, room_));
      if (!fits && halve(box)) continue;
      QRY_TRY(voxels_.visit(box, [&](const std::vector<BrickPut>& bricks) -> Result<void> {
        out.insert(out.end(), bricks.begin(), bricks.end());
        return {};
      }));
      nodes_left_ -= nodes_of(box);
    }
    const auto order = [](Int3 b) {
      return std::tuple(b.x >> kUpper, b.y >> kUpper, b.z >> kUpper, b.x >> kLower, b.y >> kLower, b.z >> kLower, b.x,
                        b.y, b.z);
    };
    std::sort(out.begin(), out.end(),
              [&](const BrickPut& a, const BrickPut& b) { return order(a.brick) < order(b.brick); });
    return out;
  }
  double done() const { return 1 - nodes_left_ / nodes_; }

 private:
  static constexpr int kUpper = 9, kLower = 4;  // log2 of the nodes' edges, in bricks

  static double nodes_of(const Box3& box) {
    double product = 1;
    for (size_t axis = 0; axis < 3; ++axis)
      product *= double((along(box.max, axis) >> kLower) - (along(box.min, axis) >> kLower) + 1);
    return product;
  }
  // The half that precedes in the order comes next. False: the box is of one node of 16^3.
  bool halve(const Box3& box) {
    for (const int edge : {kUpper, kLower})
      for (size_t axis = 0; axis < 3; ++axis) {
        const int32_t low = along(box.min, axis) >> edge, high = along(box.max, axis) >> edge;
        if (low == high) continue;
        const int32_t middle = low + (high - low) / 2 + 1;
        Box3 first = box, second = box;
        along(first.max, axis) = middle * (1 << edge) - 1;
        along(second.min, axis) = middle * (1 << edge);
        boxes_.push_back(second);
        boxes_.push_back(first);
        return true;
      }
    return false;
  }

  const VisibleRegions& voxels_;
  const uint64_t room_;
  std::vector<Box3> boxes_;  // the next one last
  double nodes_left_ = 0, nodes_ = 0;
};

StreamGrid head_of(const Scene& scene) {
  StreamGrid head;
  head.name = "world";
  head.record.value_bytes = 1;
  const double size = metadata_number(scene, "voxel_size", 0, 1);
  for (size_t i = 0; i < 3; ++i) {
    head.record.voxel_size[i] = size > 0 ? size : 1;
    head.record.origin[i] = metadata_number(scene, "vdb.origin", i, 0) -
                            metadata_number(scene, "vdb.shift", i, 0) * head.record.voxel_size[i];
  }
  return head;
}

// The stream to the program, made while it is sent.
class BrickStream {
 public:
  BrickStream(const VisibleRegions& voxels, uint64_t room, const Progress& progress)
      : bricks_(voxels, room), progress_(progress) {
    stream_.metadata("quarry_materials", materials_text(voxels.scene().palette));
    stream_.palette(voxels.scene().palette);
    stream_.grid(head_of(voxels.scene()));
  }
  BrickStream(const BrickStream&) = delete;
  BrickStream& operator=(const BrickStream&) = delete;
  // Stays valid until the next call. Nothing at the end, and after an error, which good() returns.
  std::span<const uint8_t> next() {
    while (pending_.empty() && !ended_) {
      if (at_ < list_.size()) put(list_[at_++]);
      else read();
    }
    std::swap(sent_, pending_);
    pending_.clear();
    return sent_;
  }
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }

 private:
  void read() {
    std::vector<BrickPut>().swap(list_);
    at_ = 0;
    auto more = bricks_.next();
    if (more) list_ = std::move(*more);
    else error_ = more.error();
    ended_ = list_.empty();
    if (ended_ && !error_) stream_.finish();
    progress_.say("write", bricks_.done());
  }
  void put(BrickPut& brick) {
    const BrickView voxels = *brick.value;
    std::array<uint8_t, kVoxelsPerBrick> values;
    size_t n = 0;
    for (uint32_t octant = 0; octant < 8; ++octant)
      for (uint64_t word = voxels.mask[octant]; word; word &= word - 1)
        values[n++] = voxels.materials[octant * 64 + uint32_t(std::countr_zero(word))];
    stream_.brick(brick.brick, voxels.mask, {values.data(), n});
    brick.value = {};
  }

  BricksInTreeOrder bricks_;
  const Progress& progress_;
  std::vector<uint8_t> pending_, sent_;
  const ByteSink sink_ = [this](std::span<const uint8_t> bytes) {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    return true;
  };
  VoxelStreamWriter stream_{sink_};
  std::vector<BrickPut> list_;
  size_t at_ = 0;
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<void> write_vdb(const Scene& scene, const Destination& to, const Progress& progress) {
  // NOLINTNEXTLINE(bugprone-string-constructor): this is reached only if it is not null
  if (kVdbAbsent) return fail(ErrorCode::unsupported, kVdbAbsent);
  QRY_TRY_ASSIGN(const auto voxels, VisibleRegions::of(scene, progress));
  return write_vdb_regions(voxels, to, progress);
}

Result<void> write_vdb_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  // NOLINTNEXTLINE(bugprone-string-constructor): this is reached only if it is not null
  if (kVdbAbsent) return fail(ErrorCode::unsupported, kVdbAbsent);
  if (voxels.bounds().empty())
    return fail(ErrorCode::invalid_argument, "the scene has no visible voxel, so there is no grid to write");
  const uint64_t available_bytes = voxels.available_bytes(), least = kVdbProgram.own_bytes + kLeastRoom;
  if (available_bytes < least)
    return fail(ErrorCode::out_of_memory, "writing it in the volume reader's process takes at least " +
                                              memory_text(least) + ", and " + memory_text(available_bytes) +
                                              " are left of the memory it may take; allow more");
  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  BrickStream stream(voxels, available_bytes - kVdbProgram.own_bytes, progress);
  ReadOptions limits;
  const bool nano = extension_of(to.file) == "nvdb";
  limits.memory_limit_bytes = kProgramLimit;
  limits.time_limit_s = 0;
  limits.progress = progress;
  const auto answer =
      run_reader(kVdbProgram, {"--", nano ? "write-nano" : "write", fs::absolute(out.temporary()).string()}, limits,
                 [&] { return stream.next(); });
  QRY_TRY(stream.good());
  QRY_TRY(answer);
  uint64_t bytes = 0;
  VoxelStreamEvents events;
  events.metadata = [&](const std::string& key, const std::string& text) {
    if (key == kWrittenBytes) std::from_chars(text.data(), text.data() + text.size(), bytes);
  };
  if (auto parsed = parse_voxel_stream(answer->stream, kVdbProgram.role, events, nullptr); !parsed)
    return tl::unexpected(answer->end ? *answer->end : parsed.error());
  out.written_by_name(bytes);
  return out.commit();
}

}  // namespace quarry::io
