// SPDX-License-Identifier: Apache-2.0
// las.cpp - LAS point clouds, after the ASPRS "LAS Specification" 1.4 R15. LAZ, its compressed form, is not read.
#include <algorithm>
#include <array>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxLasBytes = uint64_t(1) << 37;
constexpr size_t kIntensityAt = 12;

struct PointFormat {
  int number;
  size_t length;    // at least
  size_t color_at;  // 0: none
};
constexpr PointFormat kPointFormats[] = {{0, 20, 0}, {1, 28, 0},  {2, 26, 20}, {3, 34, 28},
                                         {6, 30, 0}, {7, 36, 30}, {8, 38, 30}};

template <class T>
T field(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Calls visit(a point's first byte) for all points. `visit` returns false to end the walk.
template <class Visit>
Result<void> walk_records(BufferedReader& bytes, uint64_t at, uint64_t count, size_t length, const Progress& progress,
                          const Visit& visit) {
  bytes.seek(at);
  for (uint64_t i = 0; i < count; ++i) {
    const auto record = bytes.peek(length);
    if (bytes.error()) return tl::unexpected(*bytes.error());
    if (!visit(record.data())) return {};
    bytes.take(length);
    if (i % 65536 == 0 && progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
  }
  return {};
}

Result<PointCloud> las_cloud(BufferedReader& bytes, const ReadOptions& options) {
  constexpr size_t kHeadBytes = 375;  // of version 1.4
  const auto head = bytes.peek(kHeadBytes);
  if (bytes.error()) return tl::unexpected(*bytes.error());
  ByteReader in(head.first(std::min(head.size(), kHeadBytes)));
  if (in.text(4, "'LASF', the beginning of a LAS file") != "LASF")
    in.fail_at(0, "expected 'LASF', the beginning of a LAS file");
  in.skip(20, "the header");
  const uint8_t major = in.u8("the version"), minor = in.u8("the version");
  if (in.ok() && (major != 1 || minor > 4))
    return fail(ErrorCode::unsupported, at_byte(24) + "expected LAS version 1.0 to 1.4, found " +
                                            std::to_string(major) + "." + std::to_string(minor));
  in.skip(94 - 26, "the header");
  const uint16_t header_size = in.u16("the header's size");
  const uint32_t points_at = in.u32("where the points begin");
  in.skip(4, "the number of records before the points");
  const uint8_t format_byte = in.u8("the points' format");
  const uint16_t length = in.u16("a point's length");
  uint64_t count = in.u32("the number of points");
  in.skip(20, "the header");
  double scale[3], offset[3];
  for (double& v : scale) v = in.f64("a scale");
  for (double& v : offset) v = in.f64("an offset");
  in.skip(48, "the bounds");
  if (in.ok() && minor >= 4 && header_size >= 375) {
    in.skip(20, "the header");
    count = in.u64("the number of points");
  }
  QRY_TRY(in.good());
  if (format_byte & 0xc0)
    return fail(ErrorCode::unsupported,
                at_byte(104) + "the points are compressed (LAZ); decompress the file first, as with laszip or pdal");
  const auto format = std::find_if(std::begin(kPointFormats), std::end(kPointFormats),
                                   [&](const PointFormat& f) { return f.number == format_byte; });
  if (format == std::end(kPointFormats))
    return fail(ErrorCode::unsupported,
                at_byte(104) + "point format " + std::to_string(format_byte) + " is not read; 0 to 3 and 6 to 8 are");
  if (length < format->length)
    return fail(ErrorCode::malformed_input, at_byte(105) + "expected points of at least " +
                                                std::to_string(format->length) + " bytes, found " +
                                                std::to_string(length));
  if (points_at < 227 || points_at > bytes.size())
    return fail(ErrorCode::malformed_input, at_byte(96) + "the points begin at byte " + std::to_string(points_at) +
                                                ", which is outside the file or its header");
  if (count == 0) return fail(ErrorCode::malformed_input, at_byte(107) + "expected at least one point, found none");
  if (count > (bytes.size() - points_at) / length)
    return fail(ErrorCode::malformed_input,
                at_byte(107) + "the header says " + std::to_string(count) + " points, but there are bytes for only " +
                    std::to_string((bytes.size() - points_at) / length) + "; the file is cut short or damaged");

  uint16_t brightest = 0, strongest = 0;  // of colour, of intensity
  const auto looked = walk_records(bytes, points_at, count, length, options.progress, [&](const uint8_t* p) {
    strongest = std::max(strongest, field<uint16_t>(p + kIntensityAt));
    for (size_t c = 0; c < 3 && format->color_at; ++c)
      brightest = std::max(brightest, field<uint16_t>(p + format->color_at + 2 * c));
    return true;
  });
  QRY_TRY(looked);
  const uint32_t shift = brightest > 255 ? 8 : 0;  // the format has sixteen bits, but many writers store bytes
  const auto colour_of = [=](const uint8_t* p) {
    if (brightest) {
      const uint8_t* c = p + format->color_at;
      const auto channel = [&](size_t at) { return std::min(uint32_t(field<uint16_t>(c + at)) >> shift, 255u); };
      return rgba_of(channel(0), channel(2), channel(4));
    }
    const uint32_t grey =
        strongest ? std::min(uint32_t(field<uint16_t>(p + kIntensityAt)) * 255 / strongest, 255u) : 200;
    return rgba_of(grey, grey, grey);
  };
  PointCloud cloud;
  const std::array<double, 3> scales{scale[0], scale[1], scale[2]}, offsets{offset[0], offset[1], offset[2]};
  cloud.walk = [=, &bytes, progress = &options.progress](const PointVisitor& visit) {
    return walk_records(bytes, points_at, count, length, *progress, [&](const uint8_t* p) {
      double position[3];
      for (size_t a = 0; a < 3; ++a) position[a] = field<int32_t>(p + 4 * a) * scales[a] + offsets[a];
      return visit(position, colour_of(p));
    });
  };
  cloud.points = count;
  cloud.z_up = true;
  cloud.file_bytes = bytes.size();
  cloud.color = brightest ? "rgb" : strongest ? "intensity" : "none";
  return cloud;
}

}  // namespace

Result<Scene> parse_las(std::span<const uint8_t> bytes, const ReadOptions& options) {
  BufferedReader all(bytes);
  QRY_TRY_ASSIGN(const auto cloud, las_cloud(all, options));
  return voxelize_points(cloud, options);
}

Result<Scene> read_las(const std::filesystem::path& file, const ReadOptions& options) {
  return read_cloud(file, kMaxLasBytes, options, las_cloud);
}
Result<RegionsDone> read_las_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink) {
  return read_cloud_regions(file, kMaxLasBytes, options, sink, las_cloud);
}

constinit const Format kLasFormat{
    .name = "las",
    .title = "LAS point cloud",
    .kind = FormatKind::points,
    .extensions = {"las"},
    .magic = "LASF",
    .read = read_las,
    .read_regions = read_las_regions,
};

}  // namespace quarry::io
