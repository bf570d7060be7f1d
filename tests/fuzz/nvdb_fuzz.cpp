// SPDX-License-Identifier: Apache-2.0
// nvdb_fuzz.cpp - reads any bytes as a NanoVDB file. An input with an even first byte is the rest of a file as it is.
// One with an odd first byte changes one of the seeds, whose nodes are too large to be found by chance:
//   u8 seed * 2 + 1 | repeated: u24 place, u8 count (its lowest 3 bits, and one more), that many bytes
// What seek() says of a voxel must be what visit() showed.
#include <array>
#include <bit>
#include <cstdlib>

#include "tests/voxel/foreign/nano_seeds.hpp"

namespace {

using namespace quarry;
using namespace quarry::test;

NanoFileBytes changed(std::span<const uint8_t> input) {
  static const auto seeds = nano_seeds();
  NanoFileBytes bytes = seeds[size_t(input[0] >> 1) % seeds.size()].second;
  for (input = input.subspan(1); input.size() > 4;) {
    const size_t place = input[0] | size_t(input[1]) << 8 | size_t(input[2]) << 16;
    const size_t count = std::min<size_t>((input[3] & 7) + 1, input.size() - 4);
    for (size_t i = 0; i < count; ++i) bytes[(place + i) % bytes.size()] = input[4 + i];
    input = input.subspan(4 + count);
  }
  return bytes;
}

template <class V>
void read_grid(const NanoInput& file, NanoGrid grid) {
  if (!NanoCursor<V>::in_order(file, grid)) {
    if (grid.bytes > (64 << 20)) return;
    hold_whole(file, grid);
  }
  std::vector<Int3> leaves;
  std::vector<V> values;
  NanoCursor<V> cursor(file, grid);
  size_t shown = 0;
  cursor.visit(
      [&](const Int3& origin, const auto& leaf) {
        leaves.push_back(origin);
        values.push_back(leaf.getValue(9));
        return leaves.size() < 64;
      },
      [&](const Int3&, int, const V&, bool) { return ++shown < (1 << 20); });
  NanoCursor<V> again(file, grid);
  for (size_t n = 0; n < leaves.size(); ++n) {
    again.seek(leaves[n]);
    const V value = again.value(leaves[n] + Int3{0, 1, 1});
    // By their bits: a value may be no number.
    using Bits = std::array<uint8_t, sizeof(V)>;
    if (std::bit_cast<Bits>(value) != std::bit_cast<Bits>(values[n])) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const NanoFileBytes bytes = data[0] & 1 ? changed({data, size}) : NanoFileBytes(data + 1, data + size);
  const NanoInput file = nano_input(bytes);
  try {
    for (const NanoGrid& grid : nano_grids(file)) switch (nano::Type(grid.type)) {
        case nano::Type::Float:
        case nano::Type::Fp8:
        case nano::Type::Fp16:
        case nano::Type::FpN: read_grid<float>(file, grid); break;
        case nano::Type::Int32: read_grid<int32_t>(file, grid); break;
        case nano::Type::Vec3f: read_grid<nano::Float3>(file, grid); break;
        default: break;
      }
  } catch (const NanoDamage&) {
  }
  return 0;
}
