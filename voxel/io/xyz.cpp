// xyz.cpp - points as text: a line for each, numbers between blanks, commas or semicolons.
#include <algorithm>
#include <charconv>

#include "voxel/io/byte_reader.hpp"
#include "voxel/io/file_bytes.hpp"
#include "voxel/io/points.hpp"
#include "voxel/io/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxXyzBytes = uint64_t(1) << 36;
constexpr size_t kColumns = 6;  // that are looked at

bool separates(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';'; }

// The line's numbers, up to six; -1 if there is anything else before that.
int numbers_of(std::string_view line, double out[kColumns]) {
  size_t at = 0;
  int count = 0;
  while (size_t(count) < kColumns) {
    while (at < line.size() && separates(line[at])) ++at;
    if (at == line.size()) break;
    if (line[at] == '+') ++at;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), out[count]);
    if (error != std::errc{} || (end != line.data() + line.size() && !separates(*end))) return -1;
    at = size_t(end - line.data());
    ++count;
  }
  return count;
}

// Calls visit(numbers, how many, byte of the line) for each line that is no comment and not empty, until it answers false.
template <class Visit>
void walk_lines(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    while (!line.empty() && separates(line.front())) line.remove_prefix(1);
    double numbers[kColumns];
    if (!line.empty() && line.front() != '#' && line.substr(0, 2) != "//" && !visit(numbers, numbers_of(line, numbers), at)) return;
    at = end + 1;
  }
}

}  // namespace

Result<Scene> parse_xyz(std::span<const uint8_t> bytes, const ReadOptions& options) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  uint64_t points = 0, lines = 0;
  bool skip_first = false, coloured = true;
  std::optional<Error> error;
  walk_lines(text, [&](const double n[kColumns], int count, size_t at) {
    if (++lines == 1 && (count == -1 || count == 1)) {  // the names of the columns, or how many points follow
      skip_first = true;
      return true;
    }
    if (count < 3) {
      error = Error{ErrorCode::malformed_input, at_byte(at) + "expected a line of x, y and z, or of x, y, z, red, green and blue (line " + std::to_string(lines) + " that is no comment)"};
      return false;
    }
    coloured = coloured && count >= 6 && std::all_of(n + 3, n + 6, [](double c) { return c >= 0 && c <= 255; });
    ++points;
    return true;
  });
  if (error) return tl::unexpected(*error);
  if (points == 0) return fail(ErrorCode::malformed_input, at_byte(0) + "expected lines of x, y and z, found no point" + (bytes.empty() ? " (the file is empty)" : ""));
  auto scene = voxelize_points(
      [&](const PointVisitor& visit) {
        bool first = skip_first;
        walk_lines(text, [&](const double n[kColumns], int, size_t) {
          if (!std::exchange(first, false)) visit(n, coloured ? rgba_of(uint32_t(n[3]), uint32_t(n[4]), uint32_t(n[5])) : rgba_of(200, 200, 200));
          return true;
        });
      },
      points, true, bytes.size(), options);
  if (scene) scene->metadata["points.color"] = coloured ? "rgb" : "none";
  return scene;
}

Result<Scene> read_xyz(const std::filesystem::path& file, const ReadOptions& options) {
  const auto bytes = read_input(file, kMaxXyzBytes, options.progress);
  if (!bytes) return tl::unexpected(bytes.error());
  return named_after(file, parse_xyz(*bytes, options));
}

}  // namespace quarry::io
