// SPDX-License-Identifier: Apache-2.0
// minecraft_fuzz.cpp - reads any bytes as a schematic or a litematic, compressed or not.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/minecraft/schematic.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  return quarry::test::check_answer(quarry::io::parse_minecraft({data, size}, 1u << 22, &warnings));
}
