// SPDX-License-Identifier: Apache-2.0
// png.cpp - PNG by libpng. It reports errors by longjmp, so calls that may jump are in functions without objects that
// need destructors.
#include "voxel/io/pictures/png.hpp"

#include <png.h>

#include <cassert>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <limits>

#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

struct Source {
  const uint8_t* data;
  size_t size, at = 0;
  char message[160] = "";
  char warning[160] = "";
};

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->size - source->at) png_error(png, "the file ends in the middle of the picture");
  std::memcpy(out, source->data + source->at, count);
  source->at += count;
}
[[noreturn]] void keep_error(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof source->message, "%s", text);
  std::longjmp(*png_set_longjmp_fn(png, std::longjmp, sizeof(jmp_buf)), 1);
}
void keep_warning(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  if (!source->warning[0]) std::snprintf(source->warning, sizeof source->warning, "%s", text);
}

// Reads up to the picture. If it is too large, only its size is read. On errors it returns false with source.message.
bool read_header(png_structp png, png_infop info, PngImage* image) {
  if (setjmp(png_jmpbuf(png))) return false;
  // Our own check gives a better message.
  png_set_user_limits(png, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max());
  png_set_chunk_malloc_max(png, 1u << 20);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_read_info(png, info);
  image->width = png_get_image_width(png, info);
  image->height = png_get_image_height(png, info);
  // This check precedes libpng's allocation of rows of the stated width.
  if (image->width > kPngMaxEdge || image->height > kPngMaxEdge) return true;
  png_set_expand(png);
  if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  image->channels = png_get_channels(png, info);
  image->bits = png_get_bit_depth(png, info);
  return true;
}

bool read_rows(png_structp png, png_infop info, uint8_t** rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, info);
  return true;
}

void put_bytes(png_structp png, png_bytep data, size_t count) {
  auto* sink = static_cast<FileSink*>(png_get_io_ptr(png));
  sink->put(std::span<const uint8_t>(data, count));
  if (sink->error()) png_error(png, "the file cannot be written");
}
void flush_nothing(png_structp) {}

bool write_rows(png_structp png, png_infop info, const PngPixels& pixels) {
  if (setjmp(png_jmpbuf(png))) return false;
  constexpr int kTypes[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, pixels.width, pixels.height, int(pixels.bits), kTypes[pixels.channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (pixels.srgb) png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  png_write_info(png, info);
  const size_t row_bytes = pixels.bytes.size() / pixels.height;
  for (uint32_t y = 0; y < pixels.height; ++y) png_write_row(png, pixels.bytes.data() + y * row_bytes);
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

Result<void> write_png(const PngPixels& pixels, AtomicFile& to) {
  assert(pixels.bytes.size() == size_t(pixels.width) * pixels.height * pixels.channels * (pixels.bits / 8));
  Source messages{nullptr, 0};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &messages, keep_error, keep_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info) png_set_write_fn(png, &to.sink(), put_bytes, flush_nothing);
  const bool done = info && write_rows(png, info, pixels);
  png_destroy_write_struct(&png, &info);
  // The system's reason, if there is one, says more than the library's.
  if (done || to.sink().error()) return {};
  return fail(ErrorCode::io, messages.message[0] ? messages.message : "not enough memory to make a PNG file");
}

Result<PngImage> decode_png(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                            std::vector<std::string>* warnings, const MemoryBudget* budget) {
  if (bytes.size() < 8 || png_sig_cmp(bytes.data(), 0, 8) != 0)
    return fail(ErrorCode::malformed_input, at_byte(0) + "expected the beginning of a PNG picture (8 bytes)" +
                                                (bytes.empty() ? " (the file is empty)" : ""));
  Source source{bytes.data(), bytes.size()};
  struct Reader {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  } reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, keep_error, keep_warning);
  if (reader.png) reader.info = png_create_info_struct(reader.png);
  if (!reader.info) return fail(ErrorCode::out_of_memory, "no memory to read a PNG picture");
  png_set_read_fn(reader.png, &source, read_bytes);

  const auto failed = [&] {
    return fail(ErrorCode::malformed_input, at_byte(source.at) + "expected a whole PNG picture: " + source.message);
  };
  PngImage image;
  if (!read_header(reader.png, reader.info, &image)) return failed();
  if (image.width > kPngMaxEdge || image.height > kPngMaxEdge)
    return fail(ErrorCode::unsupported, at_byte(16) + "the picture has " + std::to_string(image.width) + " x " +
                                            std::to_string(image.height) + " pixels; at most " +
                                            std::to_string(kPngMaxEdge) + " along an edge are read");
  const size_t row_bytes = size_t(image.width) * image.channels * (image.bits / 8);
  const uint64_t needed = uint64_t(image.width) * image.channels * image.height * 2 + row_bytes;
  if (needed > memory_limit_bytes)
    return fail(ErrorCode::unsupported,
                at_byte(16) + "the picture of " + std::to_string(image.width) + " x " + std::to_string(image.height) +
                    " pixels needs " + std::to_string(needed >> 20) + " MiB, more than the limit of " +
                    std::to_string(memory_limit_bytes >> 20) + " MiB; raise it or make the picture smaller");
  const auto promise = MemoryBudget::promise(
      budget, needed,
      "the picture of " + std::to_string(image.width) + " x " + std::to_string(image.height) + " pixels: decoding it");
  QRY_TRY(promise);
  image.samples.resize(size_t(image.width) * image.channels * image.height);
  // Rows of bytes are read into the upper half of their row of samples, and widened in place from the front.
  auto* base = reinterpret_cast<uint8_t*>(image.samples.data());
  const size_t stride = size_t(image.width) * image.channels * 2;
  std::vector<uint8_t*> rows(image.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = base + y * stride + (stride - row_bytes);
  if (!read_rows(reader.png, reader.info, rows.data())) return failed();
  if (image.bits == 8)
    for (size_t y = 0; y < rows.size(); ++y)
      for (size_t i = 0; i < row_bytes; ++i) {
        const uint16_t sample = rows[y][i];  // at or after its two bytes in the result
        std::memcpy(base + y * stride + 2 * i, &sample, 2);
      }
  if (source.warning[0]) add_warning(warnings, std::string("the PNG picture is odd: ") + source.warning);
  if (source.at < source.size)
    add_warning(warnings, at_byte(source.at) + std::to_string(source.size - source.at) +
                              " bytes after the picture were not read");
  return image;
}

}  // namespace quarry::io
