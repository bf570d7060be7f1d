#include "app/load.hpp"

#include "app/terminal.hpp"

namespace quarry::app {

void LoadOptions::add_to(Arguments& arguments) {
  arguments.integer("--resolution", resolution, "N", "Meshes: voxels along the longest edge (256)", 1, 8192);
  arguments.real("--voxel-size", voxel_size, "S", "Meshes: edge of a voxel in the file's units, instead of --resolution", 1e-9, 1e9);
  arguments.text("--up", up, "AXIS", "Meshes: which axis is up, y or z (what the format says)");
  arguments.integer("--memory-limit", memory_limit_mib, "MIB", "Meshes: memory for the reading process (1024)", 64, 1 << 20);
  arguments.real("--time-limit", time_limit_s, "SECONDS", "Meshes: time for the reading process (120)", 0.1, 86400);
}

std::optional<int> LoadOptions::check(const Arguments& arguments) const {
  if (!up.empty())
    if (const auto code = arguments.check_name("--up", up, {"y", "z"})) return code;
  return {};
}

Result<Scene> load_scene(const std::filesystem::path& file, const LoadOptions& options) {
  std::vector<std::string> warnings;
  io::ReadOptions read;
  read.resolution = static_cast<int32_t>(options.resolution);
  read.voxel_size = options.voxel_size;
  read.up = options.up;
  read.memory_limit_bytes = static_cast<uint64_t>(options.memory_limit_mib) << 20;
  read.time_limit_s = options.time_limit_s;
  read.warnings = &warnings;
  ProgressLine line(shown(file));
  read.progress = line.progress();
  Result<Scene> scene = io::read_scene(file, read);
  line.clear();
  for (const std::string& warning : warnings) say_warning(shown(file), warning);
  return scene;
}

int failed(const std::filesystem::path& file, const Error& error) {
  say_error(shown(file), error);
  return exit_code_of(error);
}

}  // namespace quarry::app
