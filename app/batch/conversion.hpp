// SPDX-License-Identifier: Apache-2.0
// conversion.hpp - one job of `quarry convert`: reads its inputs, applies its steps, writes each output whole. It
// prints nothing and may run next to other jobs. batch/tasks.hpp runs many; batch/log.hpp reports on them.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/batch/scene_steps.hpp"
#include "app/console/inputs.hpp"
#include "app/console/load.hpp"
#include "voxel/io/export_loss.hpp"
#include "voxel/io/files/deferred_sync.hpp"

namespace quarry::app {

// What a .png output shows: the colours from above, the heights, or a folder with a picture of each layer.
enum class PictureKind : uint8_t { top, height, slices };

struct ConversionOptions {
  LoadOptions load;
  SceneSteps steps;
  bool overwrite = false;
  bool same_is_fine = false;  // an output that is there with the bytes that it should have counts as written
  // Number of additional outputs, each half as fine as the one before: OUT_lod1, OUT_lod2 ...
  int64_t lod_levels = 0;
  bool salvage = false;  // read the intact part of damaged inputs
  bool strict = false;   // a warning or a loss fails the job, before anything is written
  PictureKind picture = PictureKind::top;
  bool in_regions = false;  // convert region by region (only if why_whole() returns "")
  // Limit for the memory of this process and its children. Needed for in_regions; otherwise null means no limit.
  const MemoryBudget* budget = nullptr;
  io::DeferredSync* deferred_sync = nullptr;  // waits for the disk at the batch's end; null: each file waits itself
};

struct ConversionJob {
  std::vector<Input> inputs;  // several only if the steps combine them
  std::string output;         // a name, or a template for fill_template
  TemplateValues values;      // for the template; `part` is empty

  // The file for the whole, or for one part of a split. A part's name goes into {part}, or after the stem if the
  // template has none.
  Result<std::filesystem::path> file(const std::string& part = {}) const;
};

struct Conversion {
  std::vector<std::filesystem::path> outputs;
  uint64_t voxels = 0, bytes = 0;  // voxels of all written instances
  uint64_t regions = 0;            // number of regions it was converted in; 0: as a whole
  double seconds = 0;
  // Files other than the inputs that reading opened or looked for, absolute.
  std::vector<std::filesystem::path> accessed_files;
  std::vector<std::string> warnings;   // of readers: what was skipped or repaired
  std::vector<io::ExportLoss> losses;  // of salvage, of steps and of the format
  bool salvaged = false;               // an input was damaged, and something of it is missing
};

// The names that jobs of one batch have taken. No two parts of any jobs go into one file.
class OutputNames {
 public:
  // A job that is begun again keeps its names.
  bool take(const std::filesystem::path& file, const ConversionJob& job) {
    const std::scoped_lock lock(mutex_);
    return taken_.try_emplace(file.lexically_normal(), &job).first->second == &job;
  }

 private:
  std::mutex mutex_;
  std::map<std::filesystem::path, const ConversionJob*> taken_;
};

// Why a job can only be converted with its whole scene in memory ("--crop needs the whole scene"). "" if it can be
// converted region by region. May open the inputs to examine them.
std::string why_whole(const ConversionJob& job, const ConversionOptions& options);

// Any number of threads, different jobs. `progress` as everywhere. If a job with several outputs fails, the outputs
// written before stay written and are in `done`. Errors: those of readers, steps and writers; conflict (an output
// already exists, or is an input); invalid_argument (strict, with the list of losses; a split that yields no part).
Result<void> convert(const ConversionJob& job, const ConversionOptions& options, OutputNames& names,
                     const Progress& progress, Conversion& done);

}  // namespace quarry::app
