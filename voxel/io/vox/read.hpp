// SPDX-License-Identifier: Apache-2.0
// read.hpp - MagicaVoxel .vox, read from memory: all models, scene graph, groups, layers, hidden, rotations, palette,
// MATL, IMAP, frame 0 of animations, cameras. In old multi-model files without a scene graph the models are frames, and
// the first one is placed.
//
// Rules: a model's pivot is floor(size / 2); cell = floor(R * (v + 0.5 - pivot) + t) in the file's z-up axes, then
// world (x, y, z) = file (x, z, -1 - y). In an overlap the lower instance is visible for file version >= 200, the
// higher one below 200. Of duplicate voxels in one model the last one counts. Bytes are never trusted: every size is
// checked before memory is allocated.
//
// A volume's own cell is (x, z, size_y - 1 - y) of the file's model, so that it fills [0, size) of its y-up axes. Pivot
// and axes are folded into the instance, whose rotation and offset stay exact integers. docs/formats.md says what is
// kept and what is lost.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

struct Format;  // streams/format.hpp

// Limits against small files that describe something huge. All are far above what MagicaVoxel writes.
// A voxel's coordinate is one byte, so cells above 255 stay empty.
constexpr int32_t kVoxMaxModelEdge = 2048;
constexpr uint32_t kVoxMaxInstances = 1u << 20;       // shared nodes expanded
constexpr uint64_t kVoxMaxPlacedVoxels = 1ull << 30;  // voxels over all instances
// Names of instances and of the groups above them, over all instances.
constexpr uint64_t kVoxMaxNameBytes = 64ull << 20;

// `warnings` (may be null) gets one sentence for each thing skipped or repaired. Errors: malformed_input with the byte
// offset and what was expected; unsupported if a limit above is exceeded. Memory: at most 1 GiB + 50 times the bytes
// given. With `salvage`, whole models, nodes and other chunks are read from a damaged file, and the voxels of a model
// that is cut short. A lost model is empty, so that all others keep their numbers. The only errors are then that
// nothing is left, or a limit.
Result<Scene> parse_vox(std::span<const uint8_t> bytes, std::vector<std::string>* warnings = nullptr,
                        Salvage* salvage = nullptr);
// Reads the same scene from a file that need not fit memory, model by model. It is read twice, once for the scene
// graph, which follows the models. Memory: the file's bytes without its voxels, and the largest model's. Errors also:
// conflict (it was changed meanwhile), those of the sink.
Result<RegionsDone> read_vox_regions(const std::filesystem::path& file, uint64_t limit,
                                     std::vector<std::string>* warnings, const Progress& progress,
                                     const RegionSink& sink);

// The data of a .vox file that a Scene has no fields for. parse_vox puts it into the scene's metadata, as decimal
// numbers under "vox.<field>". The .quarry file keeps it with the rest.
struct VoxFacts {
  uint32_t version = 0;
  uint32_t models = 0, empty_models = 0;
  // Rotated instances have any rotation but the identity, including mirrored ones.
  uint32_t instances = 0, mirrored_instances = 0, rotated_instances = 0;
  uint32_t groups = 0, layers = 0;  // layers: at least 1, since a file without any has the implicit one
  uint32_t cameras = 0;
  uint32_t nondiffuse_mats = 0;
  uint32_t anim_transform = 0, anim_model = 0;  // transform nodes and shapes with more than one frame
  struct Model {
    std::array<int32_t, 3> size;  // in the file's z-up axes
    uint64_t voxels;
  };
  std::vector<Model> model_list;
};
// Returns the facts of a scene that came from parse_vox, even if it was saved as a .quarry file since. Counts of models
// and instances are those of the scene as it is now. Returns false, with `out` unchanged, if the scene did not come
// from a .vox.
bool vox_facts(const Scene& scene, VoxFacts* out);

// The row of the table of formats.
extern const Format kVoxFormat;

}  // namespace quarry::io
