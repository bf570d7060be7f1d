// SPDX-License-Identifier: Apache-2.0
// qbcl_fuzz.cpp - reads any bytes as a Qubicle project.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/grids/qb.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  return quarry::test::check_answer(quarry::io::parse_qbcl({data, size}, uint64_t(64) << 20, &warnings));
}
