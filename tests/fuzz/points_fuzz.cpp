// SPDX-License-Identifier: Apache-2.0
// points_fuzz.cpp - reads any bytes as a point cloud. The first byte selects LAS, text or PLY.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/points/cloud.hpp"

using namespace quarry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<std::string> warnings;
  io::ReadOptions options;
  options.warnings = &warnings;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0: return test::check_answer(io::parse_las(rest, options));
    case 1: return test::check_answer(io::parse_xyz(rest, options));
    default: (void)io::ply_is_points(rest); return test::check_answer(io::parse_ply_points(rest, options));
  }
}
