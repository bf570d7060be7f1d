// SPDX-License-Identifier: Apache-2.0
// png_file.cpp - converts rendered pictures to and from the samples of voxel/io/pictures/png.
#include "engine/pictures/png_file.hpp"

#include <limits>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/pictures/png.hpp"

namespace quarry::engine {

Result<void> write_png(const Picture& picture, const io::Destination& to) {
  const std::string name = "'" + to.file.string() + "': ";
  if (!picture.width || !picture.height || picture.rgba.size() != size_t(picture.width) * picture.height * 4)
    return fail(ErrorCode::invalid_argument,
                name + "a picture of " + std::to_string(picture.width) + "x" + std::to_string(picture.height) +
                    " needs width*height*4 bytes, it has " + std::to_string(picture.rgba.size()));
  auto whole = io::AtomicFile::create(to);
  if (!whole)
    return fail(whole.error().code == ErrorCode::conflict ? ErrorCode::conflict : ErrorCode::io,
                "cannot write " + name + whole.error().message);
  auto written = io::write_png({picture.width, picture.height, 4, 8, picture.rgba, true}, *whole);
  if (written) written = whole->commit();
  if (!written) return fail(written.error().code, "cannot write " + name + written.error().message);
  return {};
}

Result<Picture> read_png(const std::filesystem::path& file) {
  constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  auto image = io::read_file(file, kNoLimit).and_then([](const std::vector<uint8_t>& bytes) {
    return io::decode_png(bytes, kNoLimit, nullptr);
  });
  if (!image) return fail(image.error().code, "cannot read '" + file.string() + "': " + image.error().message);
  Picture picture{image->width, image->height, {}};
  picture.rgba.reserve(size_t(image->width) * image->height * 4);
  const uint16_t opaque = image->bits == 16 ? 65535 : 255;
  for (auto p = image->samples.cbegin(); p != image->samples.cend(); p += image->channels) {
    const bool grey = image->channels <= 2, alpha = image->channels % 2 == 0;
    for (const uint16_t sample : {p[0], p[grey ? 0 : 1], p[grey ? 0 : 2], alpha ? p[image->channels - 1] : opaque})
      picture.rgba.push_back(uint8_t(image->byte(sample)));
  }
  return picture;
}

}  // namespace quarry::engine
