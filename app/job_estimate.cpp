#include "app/job_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

// Bytes of memory, and microseconds of one core, for each byte of the file. Estimates by the kind of file, not measurements: they only
// decide what runs side by side at first; batch.cpp watches the memory really in use and stops and repeats what was estimated wrong.
struct Need {
  std::string_view format;
  double memory_per_byte, work_per_byte;
};
constexpr Need kNeeds[] = {{"vox", 40, 0.03}, {"quarry", 200, 0.2}, {"qb", 60, 0.05}, {"binvox", 400, 0.4}, {"minecraft", 400, 0.4}, {"heightmap", 300, 0.3}, {"raw", 10, 0.02}, {"las", 10, 0.02}, {"xyz", 10, 0.05}};
constexpr Need kOther{"", 20, 0.1};
constexpr uint64_t kLeast = uint64_t{1} << 20;

BatchItem estimate_input(const fs::path& file, const LoadOptions& load) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  const double bytes = error ? 0 : static_cast<double>(size);
  const auto format = io::format_for_reading(file);
  if (!format) return {1, 0};
  const auto* need = std::ranges::find_if(kNeeds, [&](const Need& n) { return n.format == (*format)->name; });
  const bool sized_by_file = need != std::end(kNeeds);
  if (need == std::end(kNeeds)) need = &kOther;
  double memory = bytes * need->memory_per_byte, work = bytes * need->work_per_byte;
  if (!sized_by_file) {
    // A mesh's voxels: the six sides of a box twice over, in bricks of 650 bytes.
    const double edge = load.voxel_size > 0 ? 1024 : static_cast<double>(load.resolution);
    double bricks = 12 * (edge / 8) * (edge / 8);
    // What is inside: a third of the box.
    if (load.solid != "none") bricks += (edge / 8) * (edge / 8) * (edge / 8) / 3;
    memory += bricks * 650 * 2;
    work += bricks * 5;
  }
  return {static_cast<uint64_t>(std::min(work, 1e15)) + 100, static_cast<uint64_t>(std::min(memory, 1e15)) + kLeast};
}

}  // namespace

BatchItem estimate(const ConversionJob& job, const ConversionOptions& options, uint64_t memory_limit) {
  BatchItem sum{0, 0};
  for (const Input& input : job.inputs) {
    const BatchItem one = estimate_input(input.file, options.load);
    sum.work += one.work;
    sum.memory_bytes += one.memory_bytes;
  }
  sum.can_save_memory = why_whole(job, options).empty();
  sum.saves_memory = sum.can_save_memory && sum.memory_bytes > memory_limit;
  return sum;
}

}  // namespace quarry::app
