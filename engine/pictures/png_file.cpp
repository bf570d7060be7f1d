// SPDX-License-Identifier: Apache-2.0
// png_file.cpp - PNG through libpng's simplified interface, which reports errors by value and never jumps over C++ frames.
#include "engine/pictures/png_file.hpp"

#include <png.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "voxel/io/files/whole_file.hpp"

namespace quarry::engine {
namespace {

constexpr uint32_t kMaxEdge = 1u << 16;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// libpng writes into this.
ssize_t put(void* whole, const char* bytes, size_t count) {
  auto& sink = static_cast<io::WholeFile*>(whole)->sink();
  sink.put(std::string_view(bytes, count));
  return sink.error() ? 0 : ssize_t(count);
}

}  // namespace

Result<void> write_png(const Picture& picture, const io::Destination& to) {
  const std::filesystem::path& file = to.file;
  if (!picture.width || !picture.height || picture.width > kMaxEdge || picture.height > kMaxEdge ||
      picture.rgba.size() != size_t(picture.width) * picture.height * 4)
    return fail(ErrorCode::invalid_argument, "'" + file.string() + "': a picture of " + std::to_string(picture.width) + "x" + std::to_string(picture.height) +
                                                 " needs width*height*4 bytes, it has " + std::to_string(picture.rgba.size()));
  auto whole = io::WholeFile::create(to);
  if (!whole) return fail(whole.error().code == ErrorCode::conflict ? ErrorCode::conflict : ErrorCode::io, "cannot write '" + file.string() + "': " + whole.error().message);
  std::FILE* out = ::fopencookie(&*whole, "w", {nullptr, put, nullptr, nullptr});
  if (!out) return fail(ErrorCode::io, "cannot write '" + file.string() + "': " + std::strerror(errno));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGBA;
  std::string why;
  if (!png_image_write_to_stdio(&image, out, 0, picture.rgba.data(), 0, nullptr)) why = image.message;
  png_image_free(&image);
  if (std::fclose(out) != 0 && why.empty()) why = std::strerror(errno);
  // The system's reason, where there is one, says more than the library's.
  if (why.empty() || whole->sink().error())
    if (const auto placed = whole->commit(); !placed) return fail(placed.error().code, "cannot write '" + file.string() + "': " + placed.error().message);
  if (!why.empty()) return fail(ErrorCode::io, "cannot write '" + file.string() + "': " + why);
  return {};
}

Result<Picture> read_png(const std::filesystem::path& file) {
  const std::unique_ptr<std::FILE, Closer> in(std::fopen(file.c_str(), "rb"));
  if (!in) return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, "cannot read '" + file.string() + "': " + std::strerror(errno));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_stdio(&image, in.get())) {
    const std::string why = image.message;
    png_image_free(&image);
    return fail(ErrorCode::malformed_input, "'" + file.string() + "' is not a readable PNG: " + why);
  }
  if (image.width > kMaxEdge || image.height > kMaxEdge) {
    const std::string size = std::to_string(image.width) + "x" + std::to_string(image.height);
    png_image_free(&image);
    return fail(ErrorCode::malformed_input, "'" + file.string() + "' says it is " + size + "; at most 65536 a side are read");
  }
  image.format = PNG_FORMAT_RGBA;
  Picture picture{image.width, image.height, std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  if (!png_image_finish_read(&image, nullptr, picture.rgba.data(), 0, nullptr)) {
    const std::string why = image.message;
    png_image_free(&image);
    return fail(ErrorCode::malformed_input, "'" + file.string() + "' is a damaged PNG: " + why);
  }
  return picture;
}

}  // namespace quarry::engine
