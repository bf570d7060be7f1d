// heightmap_fuzz.cpp - any bytes as a PNG height map, and again as its colour map. Checksums are libpng's to check: mutations rarely pass
// them, so this mostly tries the refusals; heights and colours are tried by the tests.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/heightmap.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const std::span<const uint8_t> bytes(data, size);
  return quarry::test::check_answer(quarry::io::parse_heightmap(bytes, bytes, {32, 1u << 22}, &warnings));
}
