// SPDX-License-Identifier: Apache-2.0
// xyz.cpp - points as text: a line for each, numbers between blanks, commas or semicolons.
#include <algorithm>
#include <charconv>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxXyzBytes = uint64_t(1) << 36;
constexpr size_t kColumns = 6;  // further columns are ignored

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

// Calls visit(numbers, how many, byte of the line) for each line that is no comment and not empty, until `visit`
// returns false.
template <class Visit>
Result<void> walk_lines(BufferedReader& bytes, const Progress& progress, const Visit& visit) {
  constexpr size_t kUsualLine = 256, kLongestLine = size_t(1) << 20;
  bytes.seek(0);
  for (uint64_t lines = 0; bytes.left() > 0; ++lines) {
    const uint64_t at = bytes.at();
    std::string_view text;
    size_t end = std::string_view::npos;
    for (size_t wanted = kUsualLine; end == std::string_view::npos; wanted *= 8) {
      const auto piece = bytes.peek(wanted);
      if (bytes.error()) return tl::unexpected(*bytes.error());
      text = {reinterpret_cast<const char*>(piece.data()), piece.size()};
      end = text.find('\n');
      if (end == std::string_view::npos && text.size() == bytes.left()) end = text.size();
      if (end == std::string_view::npos && text.size() > kLongestLine)
        return fail(ErrorCode::malformed_input,
                    at_byte(size_t(at)) + "expected lines of text, found one of more than 1 MiB");
    }
    std::string_view line = text.substr(0, end);
    bytes.take(end + 1);
    while (!line.empty() && separates(line.front())) line.remove_prefix(1);
    double numbers[kColumns];
    if (!line.empty() && line.front() != '#' && line.substr(0, 2) != "//" &&
        !visit(numbers, numbers_of(line, numbers), size_t(at)))
      return {};
    if (lines % 65536 == 0 && progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
  }
  return {};
}

Result<PointCloud> xyz_cloud(BufferedReader& bytes, const ReadOptions& options) {
  uint64_t points = 0, lines = 0;
  bool skip_first = false, coloured = true;
  std::optional<Error> error;
  const auto walked = walk_lines(bytes, options.progress, [&](const double n[kColumns], int count, size_t at) {
    if (++lines == 1 && (count == -1 || count == 1)) {  // the names of the columns, or the number of points
      skip_first = true;
      return true;
    }
    if (count < 3) {
      error = Error{ErrorCode::malformed_input,
                    at_byte(at) + "expected a line of x, y and z, or of x, y, z, red, green and blue (line " +
                        std::to_string(lines) + " that is no comment)"};
      return false;
    }
    coloured = coloured && count >= 6 && std::all_of(n + 3, n + 6, [](double c) { return c >= 0 && c <= 255; });
    ++points;
    return true;
  });
  QRY_TRY(walked);
  if (error) return tl::unexpected(*error);
  if (points == 0)
    return fail(ErrorCode::malformed_input, at_byte(0) + "expected lines of x, y and z, found no point" +
                                                (bytes.size() == 0 ? " (the file is empty)" : ""));
  PointCloud cloud;
  cloud.walk = [=, &bytes, progress = &options.progress](const PointVisitor& visit) -> Result<void> {
    bool first = skip_first, changed = false;
    auto again = walk_lines(bytes, *progress, [&](const double n[kColumns], int count, size_t) {
      if (std::exchange(first, false)) return true;
      changed = count < 3 ||
                (coloured && (count < 6 || !std::all_of(n + 3, n + 6, [](double c) { return c >= 0 && c <= 255; })));
      return !changed &&
             visit(n, coloured ? rgba_of(uint32_t(n[3]), uint32_t(n[4]), uint32_t(n[5])) : rgba_of(200, 200, 200));
    });
    if (again && changed) return fail(ErrorCode::conflict, "it was changed while it was read");
    return again;
  };
  cloud.points = points;
  cloud.z_up = true;
  cloud.file_bytes = bytes.size();
  cloud.color = coloured ? "rgb" : "none";
  return cloud;
}

}  // namespace

Result<Scene> parse_xyz(std::span<const uint8_t> bytes, const ReadOptions& options) {
  BufferedReader all(bytes);
  QRY_TRY_ASSIGN(const auto cloud, xyz_cloud(all, options));
  return voxelize_points(cloud, options);
}

Result<Scene> read_xyz(const std::filesystem::path& file, const ReadOptions& options) {
  return read_cloud(file, kMaxXyzBytes, options, xyz_cloud);
}
Result<RegionsDone> read_xyz_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink) {
  return read_cloud_regions(file, kMaxXyzBytes, options, sink, xyz_cloud);
}

constinit const Format kXyzFormat{
    .name = "xyz",
    .title = "XYZ point cloud",
    .kind = FormatKind::points,
    .extensions = {"xyz", "asc"},
    .read = read_xyz,
    .read_regions = read_xyz_regions,
};

}  // namespace quarry::io
