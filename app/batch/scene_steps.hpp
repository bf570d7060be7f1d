// SPDX-License-Identifier: Apache-2.0
// scene_steps.hpp - what `quarry convert` does to scenes between reading and writing: --crop, --turn, --merge, --split
// and the others, in their order on the command line. The operations themselves are in
// voxel/operations/whole_scene.hpp.
//
// The steps work on a list of parts. It begins with one part for each input of the job. Most steps change each part. A
// step that combines (--merge, --union, --intersection, --difference) turns the list into one part. --split turns each
// part into several.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/console/arguments.hpp"
#include "base/progress.hpp"
#include "voxel/operations/regions/combine_by_regions.hpp"
#include "voxel/operations/whole_scene.hpp"

namespace quarry::app {

// A box of voxels as the command line has it, X0,Y0,Z0,X1,Y1,Z1: the lowest and the highest. None if it is not one.
std::optional<Box3> box_of_text(std::string_view text);
// "6", "18" or "26"; none if the text is anything else.
std::optional<Connectivity> connectivity_of(std::string_view text);

class SceneSteps {
 public:
  // One line for each thing that a step could not keep: "312 colours became 255 (off by 2.1 of 255 on average, 9 at
  // worst)".
  using Losses = std::vector<std::string>;

  void add_to(Arguments& arguments);
  // Call it after parse(). Returns the exit code if a value is wrong.
  std::optional<int> check(const Arguments& arguments);

  bool empty() const { return steps_.empty(); }
  bool combines() const { return combines_; }  // all inputs become one job
  bool splits() const { return splits_; }      // a job may have several outputs
  std::string text() const;                    // the options as given; equal texts mean equal steps

  // Names of parts are "" until a --split names them. The names of a second split are appended to those of the first
  // with a '-'.
  Result<std::vector<ScenePart>> apply(std::vector<ScenePart> parts, Losses& losses,
                                       const std::atomic<bool>* cancel) const;

  // Does what apply() does, to scenes that are made region by region. `pass` makes all bricks of a scene.
  Result<std::vector<PartByRegions>> apply_by_regions(std::vector<PartByRegions> parts, Losses& losses,
                                                      const SceneByRegions::Pass& pass,
                                                      const std::atomic<bool>* cancel) const;

  // What a step does: to scenes in memory, and to those that are made region by region.
  struct Step {
    std::function<Result<std::vector<ScenePart>>(std::vector<ScenePart>, Losses&, const Progress&)> whole;
    std::function<Result<std::vector<PartByRegions>>(std::vector<PartByRegions>, Losses&, const SceneByRegions::Pass&,
                                                     const Progress&)>
        by_regions;
  };

 private:
  std::vector<OrderedOption> given_;
  std::vector<Step> steps_;
  bool combines_ = false, splits_ = false;
};

}  // namespace quarry::app
