// SPDX-License-Identifier: Apache-2.0
// qb_fuzz.cpp - reads any bytes as a Qubicle .qb file.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/grids/qb.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  return quarry::test::check_answer(quarry::io::parse_qb({data, size}, &warnings));
}
