#include "app/output_file.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "voxel/io/store.hpp"
#include "voxel/io/temporary_name.hpp"

namespace quarry::app {
namespace fs = std::filesystem;
namespace {

// Once for each folder.
void remove_left_behind(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> seen;
  const std::scoped_lock lock(mutex);
  if (!seen.insert(fs::absolute(folder).lexically_normal()).second) return;
  if (const size_t removed = io::remove_stale_temporaries(folder); removed > 0)
    fmt::print(stderr, "quarry: {}: removed {} unfinished file{} that a killed quarry had left there\n", folder.string(), removed, removed == 1 ? "" : "s");
}

}  // namespace

Result<void> check_output(const fs::path& output, bool overwrite) {
  std::error_code error;
  if (fs::is_directory(output, error)) return fail(ErrorCode::invalid_argument, output.string() + ": is a directory, not a file to write");
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error)) return fail(ErrorCode::io, output.string() + ": there is no directory " + parent.string());
  remove_left_behind(parent);
  if (!overwrite && fs::exists(output, error)) return fail(ErrorCode::conflict, output.string() + ": is there already; give --overwrite to replace it");
  return {};
}

std::string replaced_beside(const fs::path& output) {
  const std::string damage = io::Store::damaged_beside(output);
  return damage.empty() ? damage : fmt::format("replacing the world {} takes away edits beside it: {}", output.string(), damage);
}

}  // namespace quarry::app
