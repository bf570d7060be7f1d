// SPDX-License-Identifier: Apache-2.0
// binvox_fuzz.cpp - reads any bytes as a .binvox file.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/grids/binvox.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  return quarry::test::check_answer(quarry::io::parse_binvox({data, size}, &warnings));
}
