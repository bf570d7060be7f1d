// SPDX-License-Identifier: Apache-2.0
// morphology.cpp - dilation of bricks by bytes, 16 voxels at once, and erosion by bits, a row of voxels at once.
#include "voxel/operations/morphology.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "voxel/operations/columns.hpp"
#include "voxel/operations/internal.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

// A brick with the voxels around it, as rows along x of voxels -1..8 in each axis.
constexpr int32_t kEdge = kBrickEdge + 2;
constexpr size_t kColumnsAtOnce = 64;  // columns of bricks a thread takes at once

constexpr bool is_neighbour(Int3 step, Connectivity neighbours) {
  return axes_of(step) >= 1 && axes_of(step) <= most_axes(neighbours);
}

// The bricks at a place and around it: [(dx + 1) * 9 + (dy + 1) * 3 + dz + 1], null where there is none.
using BricksAround = std::array<const SharedBrick*, 27>;
constexpr size_t kMiddle = 13;
constexpr Int3 step_of_place(size_t place) {
  return {int32_t(place / 9) - 1, int32_t(place / 3 % 3) - 1, int32_t(place % 3) - 1};
}

// The 3 x 3 x 3 bricks around (x, y, z), of columns whose begins are at z - 1 or above.
BricksAround bricks_around(const Columns& columns, const Columns::Around& around, int32_t z) {
  BricksAround out{};
  for (size_t c = 0; c < 9; ++c)
    for (size_t i = around[c].begin; i != around[c].end && columns.at(i).z <= z + 1; ++i)
      out[c * 3 + size_t(columns.at(i).z - z + 1)] = &columns.brick(i);
  return out;
}

// The range of a brick's own coordinates in one axis that lies beside the middle brick, and where in the rows.
struct Span {
  int32_t from, count, to;
};
constexpr Span span_of(int32_t step) { return step < 0 ? Span{7, 1, 0} : step > 0 ? Span{0, 1, 9} : Span{0, 8, 1}; }
struct Part {
  Span x, y, z;
};
constexpr Part part_of_place(size_t place) {
  const Int3 step = step_of_place(place);
  return {span_of(step.x), span_of(step.y), span_of(step.z)};
}
// Calls at.operator()<place>() for each of the 27, so that lengths are constants.
template <class At>
void each_place(const At& at) {
  [&]<size_t... kPlaces>(std::index_sequence<kPlaces...>) { (at.template operator()<kPlaces>(), ...); }
  (std::make_index_sequence<27>());
}

// 16 voxels at once.
using Lanes [[gnu::vector_size(16)]] = uint8_t;
Lanes load(const uint8_t* from) {
  Lanes out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}
void store(Lanes value, uint8_t* to) { std::memcpy(to, &value, sizeof(value)); }
// `a` where it is not 0, else `b`.
Lanes first_of(Lanes a, Lanes b) { return a | (b & Lanes(a == 0)); }

// Materials of a brick and of what is around it. Rows of 16 bytes, so that each is a vector; voxel x is byte x + 1.
class MaterialRows {
 public:
  static constexpr size_t kRow = 16;

  void load_all(const BricksAround& around, Connectivity neighbours) {
    each_place([&]<size_t kPlace>() {
      if (kPlace != kMiddle && !is_neighbour(step_of_place(kPlace), neighbours)) return;
      const SharedBrick* const brick = around[kPlace];
      if (!brick || !*brick || brick->material()) fill<kPlace>(brick ? brick->material() : uint8_t(0));
      else load_brick<kPlace>((**brick).materials);
    });
  }
  uint8_t* row(int32_t y, int32_t z) { return bytes_.data() + size_t(z * kEdge + y) * kRow; }

  // The brick after a step.
  void dilated(Connectivity neighbours, Brick& out);

 private:
  template <size_t kPlace>
  void fill(uint8_t material) {
    constexpr Part kPart = part_of_place(kPlace);
    for (int32_t k = 0; k < kPart.z.count; ++k)
      for (int32_t j = 0; j < kPart.y.count; ++j)
        std::memset(row(kPart.y.to + j, kPart.z.to + k) + kPart.x.to, material, size_t(kPart.x.count));
  }
  template <size_t kPlace>
  void load_brick(const BrickMaterials& materials) {
    constexpr Part kPart = part_of_place(kPlace);
    for (int32_t k = 0; k < kPart.z.count; ++k)
      for (int32_t j = 0; j < kPart.y.count; ++j) {
        uint8_t* const to = row(kPart.y.to + j, kPart.z.to + k) + kPart.x.to;
        const uint8_t* const from = materials.data() + voxel_index({0, kPart.y.from + j, kPart.z.from + k});
        if constexpr (kPart.x.count == 1) {
          *to = kPart.x.from ? from[64 + 3] : from[0];
        } else {
          std::memcpy(to, from, 4);
          std::memcpy(to + 4, from + 64, 4);
        }
      }
  }

  // A row more, so that 16 bytes may be read from the third of the last row.
  alignas(16) std::array<uint8_t, size_t(kEdge) * kEdge * kRow + 16> bytes_{};
};

void MaterialRows::dilated(Connectivity neighbours, Brick& out) {
  constexpr auto kSlice = size_t(kEdge) * kRow;
  alignas(16) std::array<uint8_t, 64 * kRow> result;
  const auto from = [&](int32_t y, int32_t z, int32_t dx) { return load(row(y, z) + 1 + dx); };
  if (neighbours == Connectivity::faces) {
    for (int32_t z = 1; z <= 8; ++z)
      for (int32_t y = 1; y <= 8; ++y) {
        Lanes v = first_of(from(y, z, 0), from(y, z, -1));
        v = first_of(first_of(v, from(y, z, 1)), from(y - 1, z, 0));
        v = first_of(first_of(v, from(y + 1, z, 0)), from(y, z - 1, 0));
        store(first_of(v, from(y, z + 1, 0)), result.data() + size_t((z - 1) * 8 + y - 1) * kRow);
      }
  } else {
    // The first of three voxels along x, then of three rows; of 18, planes above and below have no corners.
    alignas(16) std::array<uint8_t, size_t(kEdge) * kSlice> rows, squares, crosses;
    const bool all = neighbours == Connectivity::corners;
    const auto in = [&](auto& array, int32_t y, int32_t z) {
      return array.data() + size_t(z) * kSlice + size_t(y) * kRow;
    };
    for (int32_t z = 0; z < kEdge; ++z)
      for (int32_t y = 0; y < kEdge; ++y)
        store(first_of(first_of(from(y, z, -1), from(y, z, 0)), from(y, z, 1)), in(rows, y, z));
    for (int32_t z = 0; z < kEdge; ++z)
      for (int32_t y = 1; y <= 8; ++y) {
        const Lanes middle = load(in(rows, y, z));
        store(first_of(first_of(load(in(rows, y - 1, z)), middle), load(in(rows, y + 1, z))), in(squares, y, z));
        if (!all) store(first_of(first_of(from(y - 1, z, 0), middle), from(y + 1, z, 0)), in(crosses, y, z));
      }
    auto& beside = all ? squares : crosses;
    for (int32_t z = 1; z <= 8; ++z)
      for (int32_t y = 1; y <= 8; ++y) {
        const Lanes v = first_of(from(y, z, 0), load(in(beside, y, z - 1)));
        store(first_of(first_of(v, load(in(squares, y, z))), load(in(beside, y, z + 1))),
              result.data() + size_t((z - 1) * 8 + y - 1) * kRow);
      }
  }
  for (int32_t z = 0; z < 8; ++z)
    for (int32_t y = 0; y < 8; ++y) {
      const uint8_t* const r = result.data() + size_t(z * 8 + y) * kRow;
      uint8_t* const to = out.materials.data() + voxel_index({0, y, z});
      std::memcpy(to, r, 4);
      std::memcpy(to + 64, r + 4, 4);
    }
  // A bit for each byte that is not 0, eight at a time.
  static_assert(std::endian::native == std::endian::little);
  for (size_t word = 0; word < 8; ++word) {
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) {
      uint64_t eight = 0;
      std::memcpy(&eight, out.materials.data() + word * 64 + i * 8, 8);
      constexpr uint64_t kLow = 0x7F7F7F7F7F7F7F7Full;
      const uint64_t set = (((eight & kLow) + kLow) | eight) & ~kLow;
      bits |= ((set >> 7) * 0x0102040810204080ull) >> 56 << (8 * i);
    }
    out.mask[word] = bits;
  }
}

// Occupancy of a brick and of what is around it: bit x + 1 of a row is voxel x.
class BitRows {
 public:
  BitRows(const BricksAround& around, Connectivity neighbours) {
    static constexpr BrickMask kFull{~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
    each_place([&]<size_t kPlace>() {
      const SharedBrick* const brick = around[kPlace];
      if (!brick || !*brick || (kPlace != kMiddle && !is_neighbour(step_of_place(kPlace), neighbours))) return;
      load_mask<kPlace>(brick->material() ? kFull : (**brick).mask);
    });
  }
  // The voxels all of whose neighbours are there.
  BrickMask eroded(Connectivity neighbours) const {
    Rows along{}, squares{}, crosses{};
    for (size_t z = 0; z < kEdge; ++z)
      for (size_t y = 0; y < kEdge; ++y) {
        const uint16_t r = rows_[z][y];
        along[z][y] = uint16_t(r & (r << 1) & (r >> 1));
      }
    for (size_t z = 0; z < kEdge; ++z)
      for (size_t y = 1; y <= 8; ++y) {
        squares[z][y] = uint16_t(along[z][y - 1] & along[z][y] & along[z][y + 1]);
        crosses[z][y] = uint16_t(rows_[z][y - 1] & along[z][y] & rows_[z][y + 1]);
      }
    const Rows& within = neighbours == Connectivity::faces ? crosses : squares;
    const Rows& beside = neighbours == Connectivity::faces   ? rows_
                         : neighbours == Connectivity::edges ? crosses
                                                             : squares;
    BrickMask out{};
    for (size_t z = 1; z <= 8; ++z)
      for (size_t y = 1; y <= 8; ++y) {
        const uint32_t row = uint32_t(beside[z - 1][y] & within[z][y] & beside[z + 1][y]) >> 1;
        const uint32_t octant = uint32_t((y - 1) >> 2) << 1 | uint32_t((z - 1) >> 2) << 2;
        const uint32_t bit = uint32_t((y - 1) & 3u) << 2 | uint32_t((z - 1) & 3u) << 4;
        out[octant] |= uint64_t(row & 15u) << bit;
        out[octant + 1] |= uint64_t(row >> 4 & 15u) << bit;
      }
    return out;
  }

 private:
  using Rows = std::array<std::array<uint16_t, kEdge>, kEdge>;  // [z + 1][y + 1]

  template <size_t kPlace>
  void load_mask(const BrickMask& mask) {
    constexpr Part kPart = part_of_place(kPlace);
    for (int32_t k = 0; k < kPart.z.count; ++k)
      for (int32_t j = 0; j < kPart.y.count; ++j) {
        const uint32_t first = voxel_index({0, kPart.y.from + j, kPart.z.from + k});
        const uint32_t row = uint32_t(mask[first >> 6] >> (first & 63u) & 15u) |
                             uint32_t(mask[(first >> 6) + 1] >> (first & 63u) & 15u) << 4;
        const uint32_t part = kPart.x.count == 8 ? row << 1 : kPart.x.from ? row >> 7 : (row & 1u) << 9;
        rows_[uint32_t(kPart.z.to + k)][uint32_t(kPart.y.to + j)] |= uint16_t(part);
      }
  }

  Rows rows_{};
};

bool is_full(const SharedBrick& brick) { return brick.material() || (brick && all_set((*brick).mask)); }

// A brick after a step of dilation.
SharedBrick dilated_brick(const BricksAround& around, Connectivity neighbours, MaterialRows& rows,
                          BrickWriter& writer) {
  const SharedBrick* const own = around[kMiddle];
  if (own && is_full(*own)) return *own;
  rows.load_all(around, neighbours);
  Brick out;
  rows.dilated(neighbours, out);
  if (own && (*own)->mask == out.mask) return *own;
  return out.empty() ? SharedBrick() : writer.make(out);
}

// A brick, which is there, after a step of erosion.
SharedBrick eroded_brick(const BricksAround& around, Connectivity neighbours, BrickWriter& writer) {
  const SharedBrick& own = *around[kMiddle];
  bool inside = true;
  for (size_t place = 0; place < around.size() && inside; ++place)
    if (place == kMiddle || is_neighbour(step_of_place(place), neighbours))
      inside = around[place] && is_full(*around[place]);
  if (inside) return own;
  const BrickMask mask = BitRows(around, neighbours).eroded(neighbours);
  const BrickView before = *own;
  if (mask == before.mask) return own;
  Brick out;
  out.mask = mask;
  for (uint32_t i = 0; i < kVoxelsPerBrick; i += 8) {
    // Eight bits to eight bytes of all or no bits.
    constexpr uint64_t kLow = 0x7F7F7F7F7F7F7F7Full;
    uint64_t kept = (mask[i >> 6] >> (i & 63u) & 0xFFu) * 0x0101010101010101ull & 0x8040201008040201ull;
    kept = (((kept & kLow) + kLow) | kept) & ~kLow;
    kept = (kept >> 7) * 0xFFu;
    uint64_t eight = 0;
    std::memcpy(&eight, before.materials.data() + i, 8);
    eight &= kept;
    std::memcpy(out.materials.data() + i, &eight, 8);
  }
  return out.empty() ? SharedBrick() : writer.make(out);
}

// The columns that a step of dilation may have bricks in.
std::vector<std::pair<int32_t, int32_t>> columns_reached(const Columns& columns) {
  std::vector<std::pair<int32_t, int32_t>> out;
  out.reserve(columns.columns().size() * 9);
  for (const Columns::Column& c : columns.columns())
    for (int32_t dx = -1; dx <= 1; ++dx)
      for (int32_t dy = -1; dy <= 1; ++dy) out.emplace_back(c.x + dx, c.y + dy);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// What a step makes of the bricks, whose places may be any that are not far from them.
struct Made {
  std::vector<Int3> at;
  std::vector<SharedBrick> bricks;
  void add(Int3 place, SharedBrick brick) {
    if (!brick) return;
    at.push_back(place);
    bricks.push_back(std::move(brick));
  }
};

struct MorphologyStep {
  PieceProgress& progress;
  uint32_t number, count;
};

// Calls column(number, made) for each of `count` columns by all threads; none if it was cancelled.
template <class Column>
std::optional<Columns> each_column(size_t count, MorphologyStep& step, const Column& column) {
  std::vector<Made> parts((count + kColumnsAtOnce - 1) / kColumnsAtOnce);
  step.progress.begin(parts.size(), double(step.number) / step.count, double(step.number + 1) / step.count);
  std::atomic<bool> cancelled{step.progress.cancelled()};
  parallel_for(count, kColumnsAtOnce, [&](size_t begin, size_t end) {
    if (cancelled) return;
    BrickWriter writer(BrickPool::loose(), end - begin);
    for (size_t c = begin; c < end; ++c) column(c, parts[begin / kColumnsAtOnce], writer);
    if (!step.progress.piece_done()) cancelled = true;
  });
  if (cancelled) return {};
  std::vector<size_t> firsts{0};
  for (const Made& part : parts) firsts.push_back(firsts.back() + part.at.size());
  std::vector<Int3> at(firsts.back());
  std::vector<SharedBrick> bricks(firsts.back());
  parallel_for(parts.size(), 1, [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) {
      std::copy(parts[p].at.begin(), parts[p].at.end(), at.begin() + std::ptrdiff_t(firsts[p]));
      std::move(parts[p].bricks.begin(), parts[p].bricks.end(), bricks.begin() + std::ptrdiff_t(firsts[p]));
    }
  });
  return Columns(std::move(at), std::move(bricks));
}

std::optional<Columns> dilated(const Columns& before, Connectivity neighbours, MorphologyStep& step) {
  const auto reached = columns_reached(before);
  return each_column(reached.size(), step, [&](size_t c, Made& made, BrickWriter& writer) {
    const auto [x, y] = reached[c];
    Columns::Around around = before.around(x, y);
    MaterialRows rows;
    for (int64_t z = INT64_MIN;;) {
      // The next place with a brick within one of it.
      int64_t next = INT64_MAX;
      for (const Columns::Column& column : around)
        if (column.begin != column.end) next = std::min(next, int64_t(before.at(column.begin).z) - 1);
      if (next == INT64_MAX) break;
      z = std::max(z + 1, next);
      made.add({x, y, int32_t(z)}, dilated_brick(bricks_around(before, around, int32_t(z)), neighbours, rows, writer));
      before.skip_to(around, int32_t(z));  // those below the next place's are passed
    }
  });
}

std::optional<Columns> eroded(const Columns& before, Connectivity neighbours, MorphologyStep& step) {
  return each_column(before.columns().size(), step, [&](size_t c, Made& made, BrickWriter& writer) {
    const Columns::Column& column = before.columns()[c];
    Columns::Around around = before.around(column.x, column.y);
    for (size_t i = column.begin; i < column.end; ++i) {
      const int32_t z = before.at(i).z;
      before.skip_to(around, z - 1);
      made.add(before.at(i), eroded_brick(bricks_around(before, around, z), neighbours, writer));
    }
  });
}

template <class Change>
Result<BrickMap> steps_of(const BrickMap& bricks, uint32_t steps, const Progress& progress, const char* stage,
                          const Change& change) {
  if (steps == 0 || bricks.empty()) return bricks;
  Columns now(bricks);
  PieceProgress pieces(progress, stage);
  for (uint32_t i = 0; i < steps && now.size(); ++i) {
    MorphologyStep step{pieces, i, steps};
    auto next = change(now, step);
    if (!next) return fail(ErrorCode::cancelled, "stopped");
    now = std::move(*next);
  }
  return now.map();
}

}  // namespace

Result<void> operations_detail::check_dilate(const Box3& bounds, uint32_t steps) {
  if (bounds.empty()) return {};
  const auto [low_x, low_y, low_z] = bounds.min;
  const auto [high_x, high_y, high_z] = bounds.max;
  if (int64_t(std::min({low_x, low_y, low_z})) - steps < INT32_MIN ||
      int64_t(std::max({high_x, high_y, high_z})) + steps > INT32_MAX)
    return fail(ErrorCode::out_of_bounds, "voxels would be added beyond 32 bits");
  return {};
}

Result<BrickMap> dilate(const BrickMap& bricks, Connectivity neighbours, uint32_t steps, const Progress& progress) {
  QRY_TRY(operations_detail::check_dilate(bricks.bounds(), steps));
  return steps_of(bricks, steps, progress, "growing",
                  [&](const Columns& now, MorphologyStep& step) { return dilated(now, neighbours, step); });
}

Result<BrickMap> erode(const BrickMap& bricks, Connectivity neighbours, uint32_t steps, const Progress& progress) {
  return steps_of(bricks, steps, progress, "eroding",
                  [&](const Columns& now, MorphologyStep& step) { return eroded(now, neighbours, step); });
}

}  // namespace quarry
