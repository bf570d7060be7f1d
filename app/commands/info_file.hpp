// SPDX-License-Identifier: Apache-2.0
// info_file.hpp - what `quarry info` says of a world file, found chunk by chunk: the bricks are never all in memory.
#pragma once

#include <optional>

#include "app/console/load.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/worlds/scene.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::app {

struct FileFacts {
  Scene scene;  // without bricks
  SceneFacts facts;
  uint64_t bricks = 0, voxels = 0;  // that are visible
  // A world with the grid and the pyramid of what is visible; all its keys have one full brick. None: a grid has no
  // room for some of it.
  std::optional<World> world;
  // What the bricks of the world that is drawn take beyond this one's, as it is and when packed.
  uint64_t more_bytes = 0, more_packed = 0;
};

// A file with one instance that shows a volume's bricks as they are takes one pass over its chunks, in the memory of
// the world's keys. Another one takes a pass, and then box by box what instances place there: once, and once more if
// some are hidden; in the memory of the keys, of a bit for each brick of volumes that several instances show as they
// are, and of some 256 MiB. None: it is no world file, or what is to be placed into one brick does not fit those.
Result<std::optional<FileFacts>> file_facts(const std::string& file, const io::Format& format);

}  // namespace quarry::app
