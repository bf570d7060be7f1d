// SPDX-License-Identifier: Apache-2.0
// job_estimate.cpp - adds up the need of a job from the measured memory and work per byte of each format. A world file
// gives its own number of bricks.
#include "app/batch/job_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/quarry/reader.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kLeast = uint64_t{1} << 20;
constexpr double kBrickBytes = 650 * 1.3;             // in a scene, with earlier stages
constexpr uint64_t kCountedFrom = uint64_t{1} << 20;  // a world of at least this size is asked how many bricks it has

// A PLY file may hold points or a mesh, which its format does not say. No other mesh format begins as points do.
bool is_points(const fs::path& file, const io::Format& format) {
  if (format.kind != io::FormatKind::mesh) return format.kind == io::FormatKind::points;
  constexpr size_t kHeaderBytes = size_t{1} << 16;
  const auto head = io::read_file_head(file, kHeaderBytes);
  return head && io::ply_is_points(*head);
}

struct InputNeed {
  BatchItem item;
  double bricks = 0;
};

InputNeed estimate_input(const fs::path& file, const LoadOptions& load) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  const double bytes = error ? 0 : double(size);
  const auto format = io::format_for_reading(file);
  if (!format) return {{1, 0}, 0};
  const io::FormatCost& cost = (*format)->cost;
  double memory = bytes * cost.memory_per_byte, work = bytes * cost.work_per_byte,
         bricks = bytes * cost.bricks_per_byte;
  if ((*format)->kind == io::FormatKind::world && size >= kCountedFrom) {
    if (const auto world = io::StoreReader::open(file)) {
      bricks = double(world->bricks());
      memory = bricks * kBrickBytes;
    }
  }
  const double edge = load.voxel_size > 0 ? 1024 : double(load.resolution);
  if (is_points(file, **format)) {
    // Each point takes 16 bytes while they are sorted, and at least 12 in the file. At most a third of the box's bricks
    // are used, and none without a point.
    bricks = std::min(bytes / 12, (edge / 8) * (edge / 8) * (edge / 8) / 3);
    memory = bytes * 16 / 12 + bricks * kBrickBytes;
    work = bytes * 0.05;
  } else if (cost.bricks_per_byte == 0) {
    // Estimates the voxels of a mesh as twice the six sides of a box.
    double all = 12 * (edge / 8) * (edge / 8);
    bricks = all / 3;  // most surfaces have less
    // Estimates the inside as a third of the box.
    if (load.fill != FillRule::none) all += (edge / 8) * (edge / 8) * (edge / 8) / 3;
    memory += all * 650 * 2;
    work += all * 5;
  }
  return {{uint64_t(std::min(work, 1e15)) + 100, uint64_t(std::min(memory, 1e15)) + kLeast}, bricks};
}

// Memory that writing takes in addition to the scene.
double to_write(const ConversionJob& job, double bricks) {
  const auto file = job.file();
  const auto to = file ? io::format_for_writing(*file) : tl::unexpected<Error>(file.error());
  return to ? bricks * (*to)->cost.memory_per_written_brick + double((*to)->cost.memory_to_write) : 0;
}

}  // namespace

BatchItem estimate(const ConversionJob& job, const ConversionOptions& options, uint64_t memory_limit) {
  BatchItem sum{0, 0};
  double bricks = 0;
  for (const Input& input : job.inputs) {
    const InputNeed one = estimate_input(input.file, options.load);
    sum.work += one.item.work;
    sum.memory_bytes += one.item.memory_bytes;
    bricks += one.bricks;
  }
  sum.memory_bytes += uint64_t(std::min(to_write(job, bricks), 1e15));
  sum.can_save_memory = why_whole(job, options).empty();
  // Several devices share regions; a whole mesh is made by one.
  const bool shared = options.load.gpus != 1 && std::ranges::any_of(job.inputs, [](const Input& input) {
                        const auto format = io::format_for_reading(input.file);
                        return format && (*format)->kind == io::FormatKind::mesh;
                      });
  sum.saves_memory = sum.can_save_memory && (shared || memory_in_use() + sum.memory_bytes > memory_limit);
  return sum;
}

}  // namespace quarry::app
