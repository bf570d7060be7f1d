// SPDX-License-Identifier: Apache-2.0
// binvox.cpp - format after Patrick Min, "BINVOX voxel file format specification" (patrickmin.com/binvox).
#include "voxel/io/grids/binvox.hpp"

#include <algorithm>
#include <charconv>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/grids/write.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxBinvoxBytes = uint64_t(1) << 36;
constexpr size_t kMaxLine = 1024;

std::string_view trimmed(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  return s;
}

// Reads the next line, without its end, and moves past it. It fails if there is none.
Result<std::string_view> next_line(ByteView& bytes, size_t* at) {
  QRY_TRY_ASSIGN(const auto there, bytes.look(*at, std::min(bytes.size(), *at + kMaxLine)));
  const std::string_view rest(reinterpret_cast<const char*>(there.data()), there.size());
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos)
    return fail(ErrorCode::malformed_input,
                at_byte(*at) + "expected a line of the header (up to one that says 'data'), found no end of line");
  *at += end + 1;
  return rest.substr(0, end);
}

bool three_edges(std::string_view text, int32_t edges[3]) {
  for (int i = 0; i < 3; ++i) {
    text = trimmed(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), edges[i]);
    if (error != std::errc{}) return false;
    text.remove_prefix(size_t(end - text.data()));
  }
  return trimmed(text).empty();
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= 32 && c < 127 ? c : '?';
  return out;
}

}  // namespace

Result<Scene> parse_binvox(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) {
  ByteView all(bytes);
  return parse_binvox(all, warnings, {});
}

Result<Scene> parse_binvox(ByteView& bytes, std::vector<std::string>* warnings, const BrickLimits& limits) {
  size_t at = 0;
  if (bytes.size() == 0)
    return fail(ErrorCode::malformed_input,
                at_byte(0) + "expected '#binvox 1', the beginning of a binvox file (the file is empty)");
  const auto first = next_line(bytes, &at);
  if (!first || first->substr(0, 7) != "#binvox")
    return fail(ErrorCode::malformed_input, at_byte(0) + "expected '#binvox 1', the beginning of a binvox file");
  if (const std::string_view version = trimmed(first->substr(7)); version != "1")
    return fail(ErrorCode::unsupported,
                at_byte(8) + "expected version 1 of the format, found '" + printable(version) + "'");

  Scene scene;
  int32_t edges[3] = {0, 0, 0};  // x, z, y: the header's order
  size_t dim_at = 0;
  for (;;) {
    const size_t line_at = at;
    QRY_TRY_ASSIGN(const auto line, next_line(bytes, &at));
    const std::string_view text = trimmed(line);
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    const std::string_view value = trimmed(text.substr(word.size()));
    if (word == "data") break;
    if (word == "dim") {
      dim_at = line_at;
      if (!three_edges(value, edges))
        return fail(ErrorCode::malformed_input,
                    at_byte(line_at) + "expected 'dim' and three whole numbers, found '" + printable(text) + "'");
    } else if (word == "translate" || word == "scale") {
      scene.metadata["binvox." + std::string(word)] = printable(value);
    } else if (!text.empty() && text.front() != '#') {
      add_warning(warnings,
                  at_byte(line_at) + "the header's line '" + printable(text) + "' is not known; it was skipped");
    }
  }
  if (dim_at == 0)
    return fail(ErrorCode::malformed_input,
                at_byte(at) + "expected a line 'dim' with the three edges before 'data', found none");
  if (std::any_of(edges, edges + 3, [](int32_t e) { return e < 1; }))
    return fail(ErrorCode::malformed_input, at_byte(dim_at) + "expected edges of at least 1 voxel");
  if (std::any_of(edges, edges + 3, [](int32_t e) { return e > kBinvoxMaxEdge; }))
    return fail(ErrorCode::unsupported,
                at_byte(dim_at) + "an edge is longer than the world's " + std::to_string(kBinvoxMaxEdge) + " voxels");

  const int64_t size_x = edges[0], size_z = edges[1], size_y = edges[2];
  const uint64_t total = uint64_t(size_x) * uint64_t(size_y) * uint64_t(size_z);
  const uint64_t runs = (bytes.size() - at) / 2;
  if (total > runs * 255)
    return fail(ErrorCode::malformed_input, at_byte(at) + "expected runs for " + std::to_string(total) +
                                                " voxels, but the file's last " + std::to_string(bytes.size() - at) +
                                                " bytes can hold " + std::to_string(runs * 255) +
                                                " at most; it is cut short or damaged");
  BrickBudget budget(bytes.size(), limits);
  VolumeBuilder volume(budget);
  int64_t x = 0, y = 0, z = 0;
  uint64_t done = 0;
  while (done < total) {
    if (bytes.size() - at < 2)
      return fail(ErrorCode::malformed_input, at_byte(at) + "expected a run (2 bytes) of the " +
                                                  std::to_string(total - done) +
                                                  " voxels that are missing, but the file ends");
    QRY_TRY_ASSIGN(const auto run, bytes.look(at, at + 2));
    const uint8_t value = run[0], count = run[1];
    if (count > total - done)
      return fail(ErrorCode::malformed_input, at_byte(at) + "a run of " + std::to_string(count) +
                                                  " voxels is longer than the " + std::to_string(total - done) +
                                                  " that are missing");
    at += 2;
    done += count;
    for (int left = count; left > 0;) {
      const int64_t step = std::min<int64_t>(left, size_y - y);
      for (int64_t i = 0; value && i < step; ++i)
        if (!volume.set({int32_t(x), int32_t(y + i), int32_t(z)}, value))
          return tl::unexpected(budget.error(at_byte(at - 2)));
      left -= int(step);
      if ((y += step) == size_y) y = 0, ++z;
      if (z == size_z) z = 0, ++x;
    }
  }
  if (at < bytes.size())
    add_warning(warnings, at_byte(at) + std::to_string(bytes.size() - at) + " bytes after the last run were not read");
  add_single_volume(scene, "binvox", volume.take(), {int32_t(size_x), int32_t(size_y), int32_t(size_z)});
  return scene;
}

Result<Scene> read_binvox(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxBinvoxBytes));
  ByteView window(bytes, options.progress);
  return named_after(file, parse_binvox(window, options.warnings, {options.budget, nullptr}));
}

Result<RegionsDone> read_binvox_regions(const std::filesystem::path& file, const ReadOptions& options,
                                        const RegionSink& sink) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxBinvoxBytes));
  ByteView window(bytes, options.progress);
  return read_with_spilling(options, sink, [&](const BrickLimits& limits) {
    return named_after(file, parse_binvox(window, options.warnings, limits));
  });
}

constinit const Format kBinvoxFormat{
    .name = "binvox",
    .title = "binvox occupancy",
    .kind = FormatKind::grid,
    .extensions = {"binvox"},
    .magic = "#binvox",
    .read = read_binvox,
    .read_regions = read_binvox_regions,
    .write = write_binvox,
    .write_regions = write_binvox_regions,
    .returns = true,
    .cost = {.memory_per_byte = 400, .bricks_per_byte = 0.5, .work_per_byte = 0.4},
};

}  // namespace quarry::io
