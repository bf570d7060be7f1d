#include "app/output_file.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

Result<void> check_output(const fs::path& output, bool overwrite) {
  std::error_code error;
  if (fs::is_directory(output, error)) return fail(ErrorCode::invalid_argument, output.string() + ": is a directory, not a file to write");
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error)) return fail(ErrorCode::io, output.string() + ": there is no directory " + parent.string());
  if (!overwrite && fs::exists(output, error)) return fail(ErrorCode::conflict, output.string() + ": is there already; give --overwrite to replace it");
  return {};
}

}  // namespace quarry::app
