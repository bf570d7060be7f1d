// SPDX-License-Identifier: Apache-2.0
// wide_scene.cpp - finds how large a scene is, makes its far world, and says where the two lie.
#include "app/pictures/wide_scene.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/batch/conversion.hpp"
#include "base/memory_budget.hpp"
#include "voxel/io/files/temporary_name.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::app {
namespace {

namespace fs = std::filesystem;

// The near world's reach from its middle, and the steps in which that follows the eye: so it is the same for many
// pictures, and never nearer than 6,000 voxels (2,900 up and down) to its end.
constexpr Int3 kReach{8064, 3968, 8064}, kStep{4096, 2048, 4096};
// A world's extent less what a scene may be off its middle, and what halving may add.
constexpr int64_t kFits[3] = {16384 - 256, 8192 - 256, 16384 - 256};

int64_t span(int32_t low, int32_t high) { return int64_t(high) - low + 1; }

// A multiple of 128, a page's edge.
int32_t middle(int32_t low, int32_t high) { return int32_t((int64_t(low) + high) / 2 & ~int64_t(127)); }
Int3 middle_of(const Box3& box) {
  return {middle(box.min.x, box.max.x), middle(box.min.y, box.max.y), middle(box.min.z, box.max.z)};
}

Box3 halved_box(const Box3& box, uint32_t times) {
  return {{box.min.x >> times, box.min.y >> times, box.min.z >> times},
          {box.max.x >> times, box.max.y >> times, box.max.z >> times}};
}

}  // namespace

glm::dvec3 DrawnPlace::of_scene(const glm::dvec3& point) const {
  return point / double(uint64_t(1) << halved) - glm::dvec3(origin.x, origin.y, origin.z);
}

WideScene::Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  ::close(lock);
}

Result<std::optional<WideScene>> WideScene::of(const fs::path& file, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto* const format, io::format_for_reading(file));
  if (format->kind != io::FormatKind::world) return std::nullopt;
  QRY_TRY_ASSIGN(auto store, io::StoreReader::open(file));
  WideScene wide(file);
  wide.scene_ = store.scene();
  const Scene& scene = wide.scene_;
  struct Extent {
    Box3 bounds;
    uint64_t voxels = 0, bricks = 0;
  };
  std::vector<Extent> volumes(scene.volumes.size());
  const auto visible = [&](const auto& take) {
    for (const Instance& instance : scene.instances)
      if (scene.instance_visible(instance) && instance.volume < volumes.size() &&
          !volumes[instance.volume].bounds.empty())
        take(instance, volumes[instance.volume]);
  };
  const auto fits = [&] {
    bool all = true;
    visible([&](const Instance& instance, const Extent& its) { all = all && in_world(placed(instance, its.bounds)); });
    return all;
  };
  for (uint32_t volume = 0; volume < volumes.size(); ++volume) {
    QRY_TRY_ASSIGN(const auto chunks, store.chunks(volume));
    for (const io::ChunkBricks& c : chunks)
      volumes[volume].bounds = united(volumes[volume].bounds, box_of_voxels(box_of_bricks({c.chunk, c.chunk})));
  }
  if (fits()) return std::nullopt;
  // Chunks are larger than what they have.
  std::vector<Extent> tight(volumes.size());
  std::mutex lock;
  QRY_TRY(store.visit_all(
      [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
        Extent some;
        QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
          ++some.bricks;
          some.voxels += full ? kVoxelsPerBrick : brick.count();
          some.bounds = united(some.bounds, voxel_bounds(at, brick.mask));
        }));
        const std::lock_guard hold(lock);
        tight[volume].bricks += some.bricks;
        tight[volume].voxels += some.voxels;
        tight[volume].bounds = united(tight[volume].bounds, some.bounds);
        return {};
      },
      progress));
  volumes = std::move(tight);
  if (fits()) return std::nullopt;
  visible([&](const Instance& instance, const Extent& its) {
    wide.bounds_ = united(wide.bounds_, placed(instance, its.bounds));
    wide.voxels_ += its.voxels;
    wide.bricks_ += its.bricks;
  });
  if (!in_scene(wide.bounds_)) {
    for (uint32_t i = 0; i < scene.instances.size(); ++i)
      if (const Instance& instance = scene.instances[i];
          scene.instance_visible(instance) && !in_scene(placed(instance, volumes[instance.volume].bounds)))
        return tl::unexpected(instance_too_far(scene, i));
  }
  const Box3& b = wide.bounds_;
  const int64_t spans[3] = {span(b.min.x, b.max.x), span(b.min.y, b.max.y), span(b.min.z, b.max.z)};
  while (std::ranges::any_of(std::array{0, 1, 2}, [&](int k) { return spans[k] >> wide.halved_ > kFits[k]; }))
    ++wide.halved_;
  return wide;
}

Result<void> WideScene::make_far(const fs::path& beside, uint64_t memory_bytes, const Progress& progress) {
  progress.say("halving what is far", -1);
  (void)io::remove_stale_temporaries(beside.has_parent_path() ? beside.parent_path() : fs::path("."));
  QRY_TRY_ASSIGN(const auto folder, io::make_temporary_folder(beside));
  folder_ = std::make_unique<Folder>(folder.path, folder.fd);
  const MemoryBudget budget(memory_bytes, "--memory");
  ConversionOptions options;
  Arguments words("convert", "", "");
  options.steps.add_to(words);
  const bool parsed = !words.parse({"--lod", std::to_string(halved_)}) && !options.steps.check(words);
  if (!parsed) return fail(ErrorCode::invalid_argument, "it cannot be halved " + std::to_string(halved_) + " times");
  options.in_regions = true;
  options.budget = &budget;
  ConversionJob job;
  job.inputs.push_back({file_, file_.filename()});
  job.output = (folder.path / "far.quarry").string();
  OutputNames names;
  Conversion done;
  QRY_TRY(convert(job, options, names, progress, done));
  far_file_ = job.output;
  return {};
}

std::optional<Box3> WideScene::near(const glm::dvec3& eye) const {
  if (halved_ == 0) return std::nullopt;
  const auto along = [](double at, int32_t step) {
    return int32_t(std::clamp(std::round(at / step) * step, -double(1 << 30), double(1 << 30)));
  };
  const Int3 at{along(eye.x, kStep.x), along(eye.y, kStep.y), along(eye.z, kStep.z)};
  const Box3 box{at - kReach, at + kReach - Int3{1, 1, 1}};
  if (intersected(box, bounds_).empty()) return std::nullopt;
  return box;
}

engine::SceneWindow WideScene::near_window(const Box3& near) const { return {middle_of(near), near, {}}; }

engine::SceneWindow WideScene::far_window(const std::optional<Box3>& near) const {
  engine::SceneWindow window;
  window.origin = middle_of(halved_box(bounds_, halved_));
  if (!near) return window;
  // Whole bricks of the far world that are in the near one.
  const auto ceiling = [&](int32_t v) { return -((-v) >> (3 + halved_)); };
  const auto floor = [&](int32_t v) { return v >> (3 + halved_); };
  const Int3 low{ceiling(near->min.x), ceiling(near->min.y), ceiling(near->min.z)};
  const Int3 end{floor(near->max.x + 1), floor(near->max.y + 1), floor(near->max.z + 1)};
  if (low.x < end.x && low.y < end.y && low.z < end.z) window.left_out = box_of_voxels({low, end - Int3{1, 1, 1}});
  return window;
}

DrawnPlace WideScene::place_of(const engine::SceneWindow& window, bool far) const {
  return {window.origin, far ? halved_ : 0};
}

engine::Picture over(const engine::Picture& near, const engine::Picture& far) {
  engine::Picture out = far;
  for (size_t i = 0; i < out.rgba.size(); i += 4) {
    const uint32_t alpha = near.rgba[i + 3], back = far.rgba[i + 3];
    const uint32_t under = back * (255 - alpha);  // of 255 * 255
    const uint32_t all = alpha * 255 + under;
    for (size_t c = 0; c < 3; ++c)
      if (all) out.rgba[i + c] = uint8_t((near.rgba[i + c] * alpha * 255 + far.rgba[i + c] * under + all / 2) / all);
    out.rgba[i + 3] = uint8_t((all + 127) / 255);
  }
  return out;
}

}  // namespace quarry::app
