// SPDX-License-Identifier: Apache-2.0
// image.cpp - decodes textures to RGBA with stb_image, inside the reader's process.
#include <cstdio>
#include <fstream>

#include "voxel/foreign/meshes/readers.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 16384
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace quarry::mesh_reader {
namespace {
constexpr uint64_t kMaxPixels = uint64_t(1) << 27;  // 512 MiB of RGBA
constexpr uint64_t kMaxFileBytes = uint64_t(1) << 29;
}  // namespace

std::optional<Image> decode_image(std::span<const uint8_t> bytes, std::string& why) {
  int width = 0, height = 0, channels = 0;
  if (bytes.empty() || bytes.size() > kMaxFileBytes) {
    why = bytes.empty() ? "it is empty" : "it is too large";
    return std::nullopt;
  }
  if (!stbi_info_from_memory(bytes.data(), int(bytes.size()), &width, &height, &channels)) {
    why = std::string("it is not an image that can be read (") + stbi_failure_reason() + ")";
    return std::nullopt;
  }
  if (width <= 0 || height <= 0 || uint64_t(width) * uint64_t(height) > kMaxPixels) {
    why = "it is too large: " + std::to_string(width) + " x " + std::to_string(height) + " pixels";
    return std::nullopt;
  }
  stbi_uc* pixels = stbi_load_from_memory(bytes.data(), int(bytes.size()), &width, &height, &channels, 4);
  if (!pixels) {
    why = std::string("it is damaged (") + stbi_failure_reason() + ")";
    return std::nullopt;
  }
  Image image{uint32_t(width), uint32_t(height), {pixels, pixels + size_t(width) * size_t(height) * 4}};
  stbi_image_free(pixels);
  return image;
}

std::optional<Image> load_image(const std::filesystem::path& file, std::string& why) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    why = "there is no such file";
    return std::nullopt;
  }
  const uint64_t size = std::filesystem::file_size(file, error);
  if (error || size > kMaxFileBytes) {
    why = error ? error.message() : "it is too large";
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(size);
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(size))) {
    why = "it cannot be read";
    return std::nullopt;
  }
  return decode_image(bytes, why);
}

}  // namespace quarry::mesh_reader
