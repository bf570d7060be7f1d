// SPDX-License-Identifier: Apache-2.0
// raw_fuzz.cpp - reads any bytes as an NRRD file, as a header and a grid in separate files, or as a plain grid of a
// given size. The first byte selects which.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/grids/raw.hpp"

using namespace quarry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  std::vector<std::string> warnings;
  switch (data[0] % 3) {
    case 0: return test::check_answer(io::parse_nrrd(rest, {}));
    case 1: return test::check_answer(io::parse_nrrd(rest.first(rest.size() / 2), rest.subspan(rest.size() / 2)));
    default:
      return test::check_answer(
          io::parse_raw(rest.subspan(3), {int8_t(rest[0]), int8_t(rest[1]), int8_t(rest[2])}, &warnings));
  }
}
