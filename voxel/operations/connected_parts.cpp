// SPDX-License-Identifier: Apache-2.0
// connected_parts.cpp - components of bricks by slices, joined across faces, edges and corners.
#include "voxel/operations/connected_parts.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>

namespace quarry {
using operations_detail::Columns;
namespace parts_detail {

constexpr size_t kPartBricks = size_t(1) << 10;  // bricks a thread takes at once

// A brick's voxels as slices along z: bit x + 8 * y of slice z.
using BrickSlices = std::array<uint64_t, 8>;
constexpr uint64_t kNotFirstX = 0xFEFEFEFEFEFEFEFEull, kNotLastX = 0x7F7F7F7F7F7F7F7Full;

// Four rows of four bits, eight apart.
constexpr uint64_t spread(uint64_t rows) {
  rows &= 0xFFFFu;
  rows = (rows | rows << 8) & 0x00FF00FFu;
  return (rows | rows << 4) & 0x0F0F0F0Fu;
}
BrickSlices slices_of(const BrickMask& mask) {
  BrickSlices out;
  for (uint32_t z = 0; z < 8; ++z) {
    const uint32_t octant = z >> 2 << 2, shift = (z & 3u) * 16;
    out[z] = spread(mask[octant] >> shift) | spread(mask[octant + 1] >> shift) << 4 |
             spread(mask[octant + 2] >> shift) << 32 | spread(mask[octant + 3] >> shift) << 36;
  }
  return out;
}
constexpr Int3 voxel_at(uint32_t bit, int32_t z) { return {int32_t(bit & 7u), int32_t(bit >> 3), z}; }

// The voxels and their neighbours, in a square of 8 x 8: of a slice, or of a face.
constexpr uint64_t along_x(uint64_t s) { return s | (s << 1 & kNotFirstX) | (s >> 1 & kNotLastX); }
constexpr uint64_t cross(uint64_t s) { return along_x(s) | s << 8 | s >> 8; }
constexpr uint64_t square(uint64_t s) {
  s = along_x(s);
  return s | s << 8 | s >> 8;
}
uint64_t in_slice(uint64_t s, Connectivity c) { return c == Connectivity::faces ? cross(s) : square(s); }
uint64_t across(uint64_t s, Connectivity c) {  // to the slice beside
  return c == Connectivity::faces ? s : c == Connectivity::edges ? cross(s) : square(s);
}

// Grows `part` to all of the brick's voxels that it is connected with.
void spread_in_brick(BrickSlices& part, const BrickSlices& all, Connectivity c) {
  const auto fill = [&](size_t z) {
    for (uint64_t before = 0; before != part[z];) {
      before = part[z];
      part[z] = in_slice(before, c) & all[z];
    }
  };
  for (size_t z = 0; z < 8; ++z) fill(z);
  for (bool more = true; more;) {
    more = false;
    const auto reach = [&](size_t from, size_t to) {
      const uint64_t reached = across(part[from], c) & all[to] & ~part[to];
      if (!reached) return;
      part[to] |= reached;
      fill(to);
      more = true;
    };
    for (size_t z = 1; z < 8; ++z) reach(z - 1, z);
    for (size_t z = 7; z > 0; --z) reach(z, z - 1);
  }
}

// The voxels of one side of a brick that touches another, as the bits of a square, a line or a point.
struct Side {
  Int3 step;  // towards the other brick: each -1, 0 or 1

  uint32_t free_axes() const { return uint32_t((step.x == 0) + (step.y == 0) + (step.z == 0)); }
  // The voxel of a bit.
  Int3 voxel(uint32_t bit) const {
    const auto coordinate = [&](int32_t s) {
      if (s) return s < 0 ? 0 : 7;
      const auto own = int32_t(bit & 7u);
      bit >>= 3;
      return own;
    };
    const int32_t x = coordinate(step.x), y = coordinate(step.y);
    return {x, y, coordinate(step.z)};
  }
  uint64_t bits(const BrickSlices& s) const {
    const auto last = [](int32_t way) { return way < 0 ? 0 : 7; };
    if (step.z) {
      const uint64_t slice = s[size_t(last(step.z))];
      if (!step.x && !step.y) return slice;
      if (step.x && step.y) return slice >> (last(step.y) * 8 + last(step.x)) & 1u;
      return step.y ? slice >> (last(step.y) * 8) & 0xFFu : column(slice, last(step.x));
    }
    uint64_t out = 0;
    for (uint32_t z = 0; z < 8; ++z) {
      if (step.x && step.y) out |= (s[z] >> (last(step.y) * 8 + last(step.x)) & 1u) << z;
      else if (step.y) out |= (s[z] >> (last(step.y) * 8) & 0xFFu) << (z * 8);
      else out |= column(s[z], last(step.x)) << (z * 8);
    }
    return out;
  }

 private:
  // The eight bits of one x.
  static uint64_t column(uint64_t slice, int32_t x) {
    return ((slice >> x & 0x0101010101010101ull) * 0x0102040810204080ull) >> 56;
  }
};
// The bits of the other brick's side that touch one of these.
uint64_t touching(uint64_t bits, uint32_t free_axes, Connectivity c) {
  if (free_axes == 2) return across(bits, c);
  if (free_axes == 1) return c == Connectivity::corners ? (bits | bits << 1 | bits >> 1) & 0xFFu : bits;
  return bits;
}

// A brick's voxels and their components; null: they are one.
struct LabelledBrick {
  const BrickSlices& slices;
  const std::array<uint8_t, kVoxelsPerBrick>* labels;
  uint32_t component(Int3 voxel) const { return labels ? (*labels)[voxel_index(voxel)] : 0u; }
};
// Calls join(component of a, component of b) for what touches in two bricks, of which `b` is a step from `a`.
template <class Join>
void join_bricks(const LabelledBrick& a, const LabelledBrick& b, Int3 step, Connectivity c, const Join& join) {
  const Side from{step}, to{{-step.x, -step.y, -step.z}};
  const uint32_t axes = from.free_axes();
  const uint64_t theirs = to.bits(b.slices);
  uint64_t ours = from.bits(a.slices) & touching(theirs, axes, c);
  if (!ours) return;
  if (!a.labels && !b.labels) return join(0u, 0u);
  std::pair<uint32_t, uint32_t> last{UINT32_MAX, UINT32_MAX};
  for (; ours; ours &= ours - 1) {
    const auto bit = uint32_t(std::countr_zero(ours));
    const uint32_t own = a.component(from.voxel(bit));
    for (uint64_t met = touching(uint64_t(1) << bit, axes, c) & theirs; met; met &= met - 1) {
      const std::pair both{own, b.component(to.voxel(uint32_t(std::countr_zero(met))))};
      if (both != last) join(both.first, both.second);
      last = both;
    }
  }
}

constexpr BrickSlices kAll{~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};

// Sets of numbers. Any threads may join any two at once; the root of a set is its lowest number.
class Forest {
 public:
  explicit Forest(size_t count) : parents_(count) {
    parallel_for(count, size_t(1) << 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) parents_[i].store(uint32_t(i), std::memory_order_relaxed);
    });
  }
  uint32_t root(uint32_t of) {
    for (;;) {
      uint32_t parent = parents_[of].load(std::memory_order_relaxed);
      if (parent == of) return of;
      const uint32_t above = parents_[parent].load(std::memory_order_relaxed);
      // Halving the path: parents only ever fall, so a lost exchange does no harm.
      if (above != parent) parents_[of].compare_exchange_weak(parent, above, std::memory_order_relaxed);
      of = above;
    }
  }
  void join(uint32_t a, uint32_t b) {
    for (;;) {
      a = root(a), b = root(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      uint32_t own = a;
      if (parents_[a].compare_exchange_strong(own, b, std::memory_order_relaxed)) return;
    }
  }

 private:
  std::vector<std::atomic<uint32_t>> parents_;
};

// Voxels of one material of one part.
struct Share {
  uint32_t part = 0;
  uint8_t material = 0;
  uint64_t voxels = 0;
  Box3 box;
};
// Gathers shares; what comes close together is added up at once.
class Shares {
 public:
  void add(uint32_t part, uint8_t material, uint64_t voxels, const Box3& box) {
    const size_t place = (part * 0x9E3779B1u >> 8 ^ material) % recent_.size();
    if (const uint32_t at = recent_[place]; at && list[at - 1].part == part && list[at - 1].material == material) {
      list[at - 1].voxels += voxels;
      if (!box.empty()) list[at - 1].box = united(list[at - 1].box, box);
      return;
    }
    list.push_back({part, material, voxels, box});
    recent_[place] = uint32_t(list.size());
  }
  std::vector<Share> list;

 private:
  std::array<uint32_t, 1024> recent_{};  // where in the list, + 1
};

// The material that all of a brick's voxels have, or 0.
uint8_t only_material(const BrickView& brick) {
  const uint8_t* first = brick.materials.data();
  while (!*first) ++first;
  uint32_t same = 0;
  for (const uint8_t material : brick.materials) same += material == *first;
  return same == brick.count() ? *first : uint8_t(0);
}

}  // namespace parts_detail
using namespace parts_detail;

class PartFinder {
 public:
  PartFinder(const BrickMap& bricks, Connectivity neighbours, const Progress& progress)
      : neighbours_(neighbours), progress_(progress, "looking for parts") {
    out_.bricks_ = Columns(bricks);
  }

  Result<ConnectedParts> run() {
    const size_t count = out_.bricks_.size();
    QRY_TRY(label());
    uint64_t components = 0;
    out_.firsts_.resize(count + 1);
    for (size_t i = 0; i < count; ++i) {
      out_.firsts_[i] = uint32_t(components);
      components += counts_[i];
    }
    if (components > UINT32_MAX)
      return fail(ErrorCode::unsupported, "more than 2^32 pieces of bricks, too many to look for parts; crop it first");
    out_.firsts_[count] = uint32_t(components);
    counts_ = {};
    Forest forest(components);
    QRY_TRY(join(forest));
    slices_ = {};
    number_roots(forest);
    QRY_TRY(measure());
    return std::move(out_);
  }

 private:
  static constexpr double kLabelled = 0.4, kJoined = 0.7;  // how far it is then

  // Calls piece(begin, end) for pieces of `count` things on all threads, unless it is cancelled.
  template <class Piece>
  Result<void> each_piece(size_t count, size_t grain, double from, double to, const Piece& piece) {
    progress_.begin((count + grain - 1) / grain, from, to);
    std::atomic<bool> cancelled{progress_.cancelled()};
    parallel_for(count, grain, [&](size_t begin, size_t end) {
      if (cancelled) return;
      piece(begin, end);
      if (!progress_.piece_done()) cancelled = true;
    });
    if (cancelled) return fail(ErrorCode::cancelled, "stopped");
    return {};
  }

  // The components of each brick by itself.
  Result<void> label() {
    const size_t count = out_.bricks_.size();
    counts_.resize(count);
    slices_.resize(count);
    out_.labels_.resize(count);
    out_.kept_labels_.resize((count + kPartBricks - 1) / kPartBricks);
    return each_piece(count, kPartBricks, 0, kLabelled, [&](size_t begin, size_t end) {
      auto& kept = out_.kept_labels_[begin / kPartBricks];
      for (size_t i = begin; i < end; ++i) {
        const SharedBrick& brick = out_.bricks_.brick(i);
        counts_[i] = 1;
        slices_[i] = brick.material() ? kAll : slices_of((*brick).mask);
        if (slices_[i] != kAll) counts_[i] = label_brick(i, kept);
      }
    });
  }
  uint16_t label_brick(size_t brick, std::vector<std::unique_ptr<ConnectedParts::Labels>>& kept) {
    BrickSlices left = slices_[brick];
    ConnectedParts::Labels* labels = nullptr;
    for (uint16_t component = 0;; ++component) {
      size_t z = 0;
      while (z < 8 && !left[z]) ++z;
      if (z == 8) return component;
      BrickSlices part{};
      part[z] = left[z] & (~left[z] + 1);
      spread_in_brick(part, left, neighbours_);
      if (component == 0) {
        if (part == left) return 1;
        kept.push_back(std::make_unique<ConnectedParts::Labels>());
        labels = kept.back().get();
        out_.labels_[brick] = labels;
      }
      for (z = 0; z < 8; ++z) {
        left[z] &= ~part[z];
        for (uint64_t bits = part[z]; bits; bits &= bits - 1)
          (*labels)[voxel_index(voxel_at(uint32_t(std::countr_zero(bits)), int32_t(z)))] = uint8_t(component);
      }
    }
  }

  // Each brick with those around it that come later in the order of x, y, z.
  Result<void> join(Forest& forest) {
    const Columns& bricks = out_.bricks_;
    const int32_t most = most_axes(neighbours_);
    const auto labelled = [this](size_t i) { return LabelledBrick{slices_[i], out_.labels_[i]}; };
    return each_piece(bricks.columns().size(), 64, kLabelled, kJoined, [&](size_t begin, size_t end) {
      for (size_t c = begin; c < end; ++c) {
        const Columns::Column& column = bricks.columns()[c];
        Columns::Around around = bricks.around(column.x, column.y);
        for (size_t i = column.begin; i < column.end; ++i) {
          const int32_t z = bricks.at(i).z;
          bricks.skip_to(around, z - 1);
          for (size_t place = 4; place < 9; ++place)
            for (size_t n = around[place].begin; n != around[place].end && bricks.at(n).z <= z + 1; ++n) {
              const Int3 step = bricks.at(n) - bricks.at(i);
              if (n > i && axes_of(step) <= most)
                join_bricks(labelled(i), labelled(n), step, neighbours_, [&](uint32_t own, uint32_t others) {
                  forest.join(out_.firsts_[i] + own, out_.firsts_[n] + others);
                });
            }
        }
      }
    });
  }

  // Parts are numbered by their lowest component, for now.
  void number_roots(Forest& forest) {
    const size_t count = out_.firsts_.back();
    out_.part_of_.resize(count);
    uint32_t parts = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t root = forest.root(uint32_t(i));
      out_.part_of_[i] = root == i ? parts++ : out_.part_of_[root];  // a root is the lowest, so it has its number
    }
    out_.parts_.resize(parts);
  }

  void measure_brick(size_t i, Shares& shares) const {
    const Int3 at = out_.bricks_.at(i);
    const SharedBrick& brick = out_.bricks_.brick(i);
    if (const uint8_t material = brick.material()) {
      shares.add(out_.part_of(i, 0), material, kVoxelsPerBrick, box_of_voxels({at, at}));
      return;
    }
    const BrickView view = *brick;
    const size_t components = out_.components(i);
    std::vector<BrickMask> masks(components > 1 ? components : 0);
    for (uint32_t w = 0; w < 8 && components > 1; ++w)
      for (uint64_t left = view.mask[w]; left; left &= left - 1) {
        const auto bit = uint32_t(std::countr_zero(left));
        masks[(*out_.labels_[i])[w * 64 + bit]][w] |= uint64_t(1) << bit;
      }
    for (size_t c = 0; c < components; ++c) {
      const BrickMask& mask = components > 1 ? masks[c] : view.mask;
      const uint32_t part = out_.part_of(i, uint32_t(c));
      Box3 box = voxel_bounds(at, mask);
      if (const uint8_t only = components == 1 ? only_material(view) : uint8_t(0)) {
        shares.add(part, only, view.count(), box);
        continue;
      }
      for (uint32_t w = 0; w < 8; ++w)
        for (uint64_t left = mask[w]; left; left &= left - 1) {
          shares.add(part, view.materials[w * 64 + uint32_t(std::countr_zero(left))], 1, box);
          box = {};
        }
    }
  }

  // Sizes, boxes and materials; then the largest first.
  Result<void> measure() {
    const size_t count = out_.bricks_.size();
    std::vector<std::vector<Share>> pieces((count + kPartBricks - 1) / kPartBricks);
    QRY_TRY(each_piece(count, kPartBricks, kJoined, 1, [&](size_t begin, size_t end) {
      Shares shares;
      for (size_t i = begin; i < end; ++i) measure_brick(i, shares);
      pieces[begin / kPartBricks] = std::move(shares.list);
    }));
    std::vector<Share> all;
    for (auto& piece : pieces) {
      all.insert(all.end(), piece.begin(), piece.end());
      piece = {};
    }
    std::sort(all.begin(), all.end(), [](const Share& a, const Share& b) {
      return std::pair(a.part, a.material) < std::pair(b.part, b.material);
    });
    std::vector<uint64_t> most(out_.parts_.size());
    for (size_t i = 0; i < all.size();) {
      const Share& first = all[i];
      ConnectedPart& part = out_.parts_[first.part];
      uint64_t voxels = 0;
      for (; i < all.size() && all[i].part == first.part && all[i].material == first.material; ++i) {
        voxels += all[i].voxels;
        if (!all[i].box.empty()) part.box = united(part.box, all[i].box);
      }
      part.voxels += voxels;
      if (voxels > most[first.part]) most[first.part] = voxels, part.material = first.material;
    }
    std::vector<uint32_t> order(out_.parts_.size()), place(out_.parts_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return out_.parts_[a].voxels > out_.parts_[b].voxels; });
    std::vector<ConnectedPart> sorted;
    sorted.reserve(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      sorted.push_back(out_.parts_[order[i]]);
      place[order[i]] = uint32_t(i);
    }
    out_.parts_ = std::move(sorted);
    for (uint32_t& part : out_.part_of_) part = place[part];
    return {};
  }

  Connectivity neighbours_;
  PieceProgress progress_;
  ConnectedParts out_;
  std::vector<uint16_t> counts_;  // of each brick's components
  std::vector<BrickSlices> slices_;
};

Result<ConnectedParts> ConnectedParts::find(const BrickMap& bricks, Connectivity neighbours, const Progress& progress) {
  return PartFinder(bricks, neighbours, progress).run();
}

size_t ConnectedParts::at_least(uint64_t voxels) const {
  return size_t(std::partition_point(parts_.begin(), parts_.end(),
                                     [&](const ConnectedPart& part) { return part.voxels >= voxels; }) -
                parts_.begin());
}

template <class Chosen>
SharedBrick ConnectedParts::chosen(size_t brick, const Chosen& chosen) const {
  const size_t count = components(brick);
  size_t taken = 0;
  for (size_t c = 0; c < count; ++c) taken += chosen(part_of(brick, uint32_t(c)));
  if (taken == count) return bricks_.brick(brick);
  if (taken == 0) return {};
  const BrickView before = *bricks_.brick(brick);
  Brick out;
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
    if (before.materials[i] && chosen(part_of(brick, (*labels_[brick])[i]))) out.set(i, before.materials[i]);
  return BrickPool::loose().make(out);
}

template <class Chosen>
BrickMap ConnectedParts::map_of(const Chosen& is_chosen) const {
  std::vector<Int3> at(bricks_.size());
  std::vector<SharedBrick> bricks(bricks_.size());
  parallel_for(bricks_.size(), kPartBricks, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      at[i] = bricks_.at(i);
      bricks[i] = chosen(i, is_chosen);
    }
  });
  return Columns(std::move(at), std::move(bricks)).map();
}

BrickMap ConnectedParts::first(size_t count) const {
  return map_of([count](uint32_t part) { return part < count; });
}

BrickMap ConnectedParts::some(std::span<const uint8_t> chosen) const {
  return map_of([chosen](uint32_t part) { return chosen[part] != 0; });
}

std::vector<BrickMap> ConnectedParts::each(size_t count) const {
  count = std::min(count, parts_.size());
  // The bricks of each part, in rising order.
  std::vector<std::vector<uint32_t>> bricks(count);
  for (size_t i = 0; i < bricks_.size(); ++i)
    for (size_t c = 0; c < components(i); ++c)
      if (const uint32_t part = part_of(i, uint32_t(c));
          part < count && (bricks[part].empty() || bricks[part].back() != i))
        bricks[part].push_back(uint32_t(i));
  std::vector<BrickMap> out(count);
  parallel_for(count, 1, [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) {
      std::vector<BrickPut> puts;
      puts.reserve(bricks[p].size());
      for (const uint32_t i : bricks[p])
        puts.push_back({bricks_.at(i), chosen(i, [p](uint32_t part) { return part == p; })});
      out[p].put(puts);
    }
  });
  return out;
}

std::vector<PartBegin> ConnectedParts::begins() const {
  std::vector<PartBegin> out(parts_.size());
  std::vector<bool> known(parts_.size());
  for (size_t i = 0; i < bricks_.size(); ++i)
    for (uint32_t c = 0; c < components(i); ++c)
      if (const uint32_t part = part_of(i, c); !known[part]) {
        known[part] = true;
        out[part] = {bricks_.at(i), c};
      }
  return out;
}

PartBorder ConnectedParts::border(const Box3& without) const {
  PartBorder out;
  for (size_t i = 0; i < bricks_.size(); ++i) {
    const Int3 at = bricks_.at(i);
    if (!intersected({at, at}, without).empty()) continue;
    PartBorder::Brick& brick = out.bricks_.emplace_back();
    brick.at = at;
    if (!bricks_.brick(i).material()) {
      out.slices_.push_back(slices_of(bricks_.brick(i)->mask));
      brick.slices = uint32_t(out.slices_.size());
    }
    brick.first = uint32_t(out.parts_.size());
    for (uint32_t c = 0; c < components(i); ++c) out.parts_.push_back(part_of(i, c));
    if (labels_[i]) {
      out.labels_.push_back(*labels_[i]);
      brick.labels = uint32_t(out.labels_.size());
    }
    out.box_ = united(out.box_, {at, at});
  }
  // Many borders are kept at once.
  out.bricks_.shrink_to_fit(), out.parts_.shrink_to_fit(), out.slices_.shrink_to_fit(), out.labels_.shrink_to_fit();
  return out;
}

PartBorder PartBorder::of_full(const Box3& bricks, const Box3& without) {
  PartBorder out;
  out.parts_ = {0};
  out.box_ = bricks;
  for (int32_t x = bricks.min.x; x <= bricks.max.x; ++x)
    for (int32_t y = bricks.min.y; y <= bricks.max.y; ++y)
      for (int32_t z = bricks.min.z; z <= bricks.max.z; ++z)
        if (const Int3 at{x, y, z}; intersected({at, at}, without).empty()) out.bricks_.push_back({at});
  return out;
}

void PartBorder::meet(const PartBorder& other, Connectivity neighbours, const Touch& touch) const {
  const auto labelled = [](const PartBorder& of, const Brick& brick) {
    return LabelledBrick{brick.slices ? of.slices_[brick.slices - 1] : kAll,
                         brick.labels ? &of.labels_[brick.labels - 1] : nullptr};
  };
  const int32_t most = most_axes(neighbours);
  for (const Brick& own : bricks_) {
    const Int3 one{1, 1, 1};
    const Box3 near = intersected({own.at - one, own.at + one}, other.box_);
    for (int32_t x = near.min.x; x <= near.max.x; ++x)
      for (int32_t y = near.min.y; y <= near.max.y; ++y)
        for (int32_t z = near.min.z; z <= near.max.z; ++z) {
          const Int3 at{x, y, z}, step = at - own.at;
          if (axes_of(step) > most) continue;
          const auto met = std::ranges::lower_bound(other.bricks_, at, {}, &Brick::at);
          if (met == other.bricks_.end() || met->at != at) continue;
          join_bricks(labelled(*this, own), labelled(other, *met), step, neighbours,
                      [&](uint32_t a, uint32_t b) { touch(parts_[own.first + a], other.parts_[met->first + b]); });
        }
  }
}

}  // namespace quarry
