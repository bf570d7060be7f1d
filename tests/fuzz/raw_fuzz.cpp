// raw_fuzz.cpp - any bytes as an NRRD file.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/raw.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { return quarry::test::check_answer(quarry::io::parse_nrrd({data, size}, {})); }
