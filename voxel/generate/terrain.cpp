// SPDX-License-Identifier: Apache-2.0
// terrain.cpp - a valley cut out like a model: mountains in the far corner, a lake open to the near side, forest
// between. All lengths scale with the size; the numbers below are voxels at size 512.
#include <algorithm>
#include <cstdlib>

#include "base/parallel.hpp"
#include "voxel/generate/canvas.hpp"

namespace quarry::generate_detail {
namespace {

constexpr int64_t kOne = 65536;

struct TerrainColours {
  Paints paints;
  uint8_t grass = paints.ramp("grass", 0x4F7A2C, 0x86A844, 6, 0.95f);
  uint8_t meadow = paints.ramp("meadow", 0x93A04A, 0xB0A45A, 3, 0.95f);
  uint8_t floor = paints.ramp("forest floor", 0x4A4A26, 0x5E5A30, 3, 0.98f);
  uint8_t sand = paints.ramp("sand", 0xD9C08A, 0xEBDCB2, 3, 0.95f);
  uint8_t bed = paints.ramp("lake bed", 0x6E7A55, 0x9AA27A, 3, 0.9f);
  uint8_t earth = paints.ramp("earth", 0x5A3F28, 0x7A5A3A, 4, 1.0f);
  uint8_t strata = paints.ramp("strata", 0x8A7360, 0x5B5552, 6, 0.95f);
  uint8_t rock = paints.ramp("rock", 0x6A6764, 0x9A958C, 6, 0.9f);
  uint8_t scree = paints.ramp("scree", 0x857C6C, 0xA0977F, 3, 0.95f);
  uint8_t snow = paints.ramp("snow", 0xDDE6F0, 0xFBFCFF, 4, 0.7f);
  uint8_t water = paints.ramp("water", 0x4FA3A8, 0x12405F, 8, 0.06f);
  uint8_t foam = paints.add("foam", 0xD8ECEA, 0.4f);
  uint8_t trunk = paints.ramp("trunk", 0x4A3222, 0x6B4A30, 2, 0.95f);
  uint8_t birch = paints.add("birch bark", 0xD8D2C4, 0.8f);
  uint8_t fir = paints.ramp("fir", 0x1F4226, 0x3F6B38, 6, 0.95f);
  uint8_t leaf = paints.ramp("leaf", 0x4B7A24, 0x8DB03C, 6, 0.95f);
  uint8_t autumn = paints.ramp("autumn leaf", 0xB5521B, 0xE0A530, 6, 0.95f);
  uint8_t frost = paints.ramp("frosted fir", 0x8FA8A0, 0xD8E4E6, 3, 0.8f);
  uint8_t flower = paints.add("poppy", 0xD8392B, 0.8f);
  uint8_t flower2 = paints.add("daisy", 0xF4F1E0, 0.8f);
  uint8_t flower3 = paints.add("lavender", 0x8B62C4, 0.8f);
  uint8_t log = paints.ramp("log", 0x6E4A2A, 0x8A6238, 3, 0.9f);
  uint8_t plank = paints.ramp("plank", 0x9A7B52, 0xB4946A, 2, 0.85f);
  uint8_t roof = paints.ramp("roof", 0x7A2F26, 0x9A4536, 3, 0.8f);
  uint8_t stone = paints.ramp("stone", 0x77736D, 0x93908A, 3, 0.9f);
  uint8_t window = paints.add("lit window", 0xFFC871, 0.3f, 0, 6);
  uint8_t door = paints.add("door", 0x3C2A1C, 0.8f);
  uint8_t sail = paints.add("sail", 0xF2EEE4, 0.9f);
  uint8_t hull = paints.add("hull", 0x7C2D22, 0.5f);
};

struct Tree {
  int32_t x, y, z, height;
  uint8_t kind;  // 0 fir, 1 broad-leaved, 2 autumn, 3 birch, 4 frosted fir
  uint64_t hash;
};
struct Place {
  int32_t x, y, z;
};

class Terrain {
 public:
  Terrain(int32_t size, uint32_t seed)
      : s_(size),
        seed_(mixed(seed)),
        tall_((size / 2 + 7) / 8 * 8),
        water_(len(44)),
        heights_(size_t(size) * size_t(size)) {
    parallel_for(size_t(s_), 8, [&](size_t begin, size_t end) {
      for (size_t z = begin; z < end; ++z)
        for (int32_t x = 0; x < s_; ++x) heights_[z * size_t(s_) + size_t(x)] = height_at(x, int32_t(z));
    });
    place_cabins();
    place_trees();
    place_boulders();
  }

  Int3 size() const { return {s_, tall_, s_}; }
  const Palette& palette() const { return c_.paints.palette(); }

  void paint(Slab& slab) const {
    for (int32_t x = slab.x0(); x < std::min(s_, slab.x0() + 8); ++x)
      for (int32_t z = 0; z < s_; ++z) paint_column(slab, x, z);
    for (const Place& b : boulders_) paint_boulder(slab, b);
    for (const Tree& t : trees_) paint_tree(slab, t);
    for (const Place& c : cabins_) paint_cabin(slab, c);
    if (!cabins_.empty()) paint_jetty(slab);
  }

 private:
  int32_t len(int32_t at_512) const { return std::max(1, int32_t(int64_t(at_512) * s_ / 512)); }
  int32_t height(int32_t x, int32_t z) const {
    return heights_[size_t(std::clamp(z, 0, s_ - 1)) * size_t(s_) + size_t(std::clamp(x, 0, s_ - 1))];
  }
  int32_t slope(int32_t x, int32_t z) const {  // rise over four voxels, the steeper axis
    return std::max(std::abs(height(x + 2, z) - height(x - 2, z)), std::abs(height(x, z + 2) - height(x, z - 2)));
  }
  // Fractal noise with `cells` lattice cells across the scene.
  int64_t field(int32_t x, int32_t z, int32_t cells, int octaves, uint64_t salt) const {
    return fractal_noise(int64_t(x) * cells * kOne / s_, int64_t(z) * cells * kOne / s_, octaves, seed_ + salt);
  }
  uint8_t shade(uint8_t first, int32_t count, int32_t x, int32_t y, int32_t z) const {
    return uint8_t(first + pick(hashed(seed_ + 77, x, y, z), count));
  }

  int32_t height_at(int32_t x, int32_t z) const {
    const int64_t u = int64_t(x) * kOne / s_, v = int64_t(z) * kOne / s_;
    // Bent coordinates: no ridge or shore is straight.
    const int64_t bend_u = field(x, z, 3, 3, 1) / 9, bend_v = field(x, z, 3, 3, 2) / 9;
    const int64_t mu = u + bend_u, mv = v + bend_v;
    const int64_t hills = field(x, z, 5, 5, 3);
    const int64_t ridge = ridged_noise(mu * 2 + kOne / 3, mv * 2 + kOne / 5, 5, seed_ + 4);
    const int64_t diagonal = (mu + mv) / 2 + std::abs(mu - mv) / 7;
    const int64_t mountain = kOne - smooth_step(kOne * 12 / 100, kOne * 66 / 100, diagonal);
    // The lake: an oval about (0.62, 0.84) that runs out of the scene on the near side.
    const int64_t du = mu - kOne * 60 / 100, dv = (mv - kOne * 86 / 100) * 9 / 10;
    const int64_t away = (du * du + dv * dv) >> 16;
    const int64_t lake = kOne - smooth_step(kOne * 12 / 1000, kOne * 100 / 1000, away);
    // A valley with a stream from the mountains to the lake.
    const int64_t course = mu - kOne * 52 / 100 + field(x, z, 4, 2, 6) / 12 + (mv - kOne * 60 / 100) / 9;
    const int64_t valley = kOne - smooth_step(0, kOne * 9 / 100, std::abs(course));
    int64_t h = int64_t(len(56)) * kOne + hills * len(13) + mountain * len(12) + (mountain * mountain >> 16) * len(34) +
                (mountain * std::max<int64_t>(0, ridge - kOne * 30 / 100) >> 16) * len(205);
    h -= lake * len(40);
    const int64_t stream_bed = int64_t(len(41)) * kOne + std::max<int64_t>(0, kOne * 55 / 100 - v) * len(70);
    if (h > stream_bed) h -= ((h - stream_bed) >> 8) * (valley * 7 / 10 >> 8);
    return int32_t(std::clamp<int64_t>(h >> 16, len(6), tall_ - 2));
  }

  int32_t snow_line(int32_t x, int32_t z) const { return len(128) + int32_t(field(x, z, 9, 3, 8) * len(18) >> 16); }

  uint8_t surface(int32_t x, int32_t z, int32_t h) const {
    const int32_t steep = slope(x, z), line = snow_line(x, z);
    if (h < water_) return shade(c_.bed, 3, x, 0, z);
    if (h <= water_ + len(2) + int32_t(field(x, z, 24, 2, 9) * len(3) >> 16) && steep <= 6)
      return shade(c_.sand, 3, x, 0, z);
    if (h > line && steep <= (h > line + len(24) ? 13 : 8)) return shade(c_.snow, 4, x, 0, z);
    if (steep > 6 || h > line - len(10)) return rock_at(x, h, z);
    if (h > line - len(34) || steep > 5) return shade(c_.scree, 3, x, 0, z);
    if (forest(x, z) > kOne * 12 / 100) return shade(c_.floor, 3, x, 0, z);
    const int64_t dry = field(x, z, 7, 4, 10);
    if (dry > kOne * 28 / 100) return shade(c_.meadow, 3, x, 0, z);
    const auto tone = int32_t(std::clamp<int64_t>((dry + kOne / 2) * 5 / kOne, 0, 4));
    return uint8_t(c_.grass + tone + pick(hashed(seed_ + 12, x, z), 2));
  }
  uint8_t rock_at(int32_t x, int32_t y, int32_t z) const {
    const auto band = int32_t((int64_t(y) * kOne + field(x, z, 6, 3, 11) * len(10)) / (kOne * std::max(2, len(5))));
    return uint8_t(c_.rock + (pick(hashed(seed_ + 13, band), 5) + pick(hashed(seed_ + 14, x, y, z), 2)) % 6);
  }
  int64_t forest(int32_t x, int32_t z) const { return field(x, z, 6, 3, 15); }

  void paint_column(Slab& slab, int32_t x, int32_t z) const {
    const int32_t h = height(x, z);
    const uint8_t top = surface(x, z, h);
    const bool snowy = top >= c_.snow && top < c_.water, stony = snowy || (top >= c_.rock && top < c_.scree);
    const int32_t soil = h - (stony ? 0 : len(4) + pick(hashed(seed_ + 16, x / 3, z / 3), 3));
    const auto wave = int32_t(field(x, z, 4, 3, 17) * len(9) >> 16);
    for (int32_t y = 0; y < h; ++y) {
      if (y >= soil) {
        slab.set(x, y, z, shade(c_.earth, 4, x, y, z));
      } else if (snowy && y > h - len(5)) {
        slab.set(x, y, z, shade(c_.snow, 4, x, y, z));
      } else if (stony && y > h - len(28)) {
        slab.set(x, y, z, rock_at(x, y, z));
      } else {
        const int32_t layer = (y + wave + len(64)) / len(9);
        slab.set(x, y, z, uint8_t(c_.strata + pick(hashed(seed_ + 18, layer), 6)));
      }
    }
    slab.set(x, h, z, top);
    if (h < water_) {
      const int32_t deep = std::min(7, (water_ - h) * 8 / std::max(1, len(26)));
      for (int32_t y = h + 1; y <= water_; ++y) slab.set(x, y, z, uint8_t(c_.water + deep));
      if (water_ - h <= 1 && hashed(seed_ + 19, x, z) % 3 == 0) slab.set(x, water_, z, c_.foam);
    } else if (top >= c_.grass && top < c_.floor) {
      const uint64_t hash = hashed(seed_ + 20, x, z);
      const int64_t patch = field(x, z, 14, 2, 21);
      if (patch > kOne / 5 && hash % 9 == 0) {
        const uint8_t kinds[3] = {c_.flower, c_.flower2, c_.flower3};
        slab.set(x, h + 1, z, kinds[pick(hashed(seed_ + 22, x / 24, z / 24), 3)]);
      } else if (hash % 7 == 0) {
        slab.set(x, h + 1, z, shade(c_.grass, 6, x, 1, z));
      }
    }
  }

  bool flat_land(int32_t x, int32_t z, int32_t reach, int32_t most) const {
    int32_t low = height(x, z), high = low;
    for (int32_t j = -reach; j <= reach; j += std::max(1, reach / 2))
      for (int32_t i = -reach; i <= reach; i += std::max(1, reach / 2)) {
        low = std::min(low, height(x + i, z + j));
        high = std::max(high, height(x + i, z + j));
      }
    return low > water_ + 1 && high - low <= most;
  }

  // Cabins: the flattest places near the lake, apart from each other.
  void place_cabins() {
    for (int32_t reach = 4; reach <= 9 && cabins_.size() < 6; ++reach)
      for (int32_t i = 0; i < 900 && cabins_.size() < 6; ++i) {
        const uint64_t hash = hashed(seed_ + 30, i, reach);
        const int32_t x = s_ * 22 / 100 + pick(hash, s_ * 70 / 100),
                      z = s_ * 45 / 100 + pick(mixed(hash), s_ * 48 / 100);
        const int32_t h = height(x, z);
        if (h > water_ + len(20) || !flat_land(x, z, len(11), reach)) continue;
        bool apart = true;
        for (const Place& c : cabins_) apart = apart && std::max(std::abs(c.x - x), std::abs(c.z - z)) > len(34);
        if (apart) cabins_.push_back({x, h, z});
      }
  }

  bool near_cabin(int32_t x, int32_t z) const {
    for (const Place& c : cabins_)
      if (std::max(std::abs(c.x - x), std::abs(c.z - z)) < len(18)) return true;
    return false;
  }

  void place_trees() {
    const int32_t cell = std::max(5, len(9));
    for (int32_t j = 0; j < s_ / cell; ++j)
      for (int32_t i = 0; i < s_ / cell; ++i) {
        const uint64_t hash = hashed(seed_ + 40, i, j);
        const int32_t x = i * cell + pick(hash, cell), z = j * cell + pick(mixed(hash), cell), h = height(x, z);
        const int32_t line = snow_line(x, z);
        if (h <= water_ + len(4) || h > line + len(4) || slope(x, z) > 6 || near_cabin(x, z)) continue;
        const int64_t wood = forest(x, z);
        // Dense in the woods, sparse on the meadows, fewer towards the snow.
        const int64_t chance = wood > kOne * 10 / 100 ? 88 : wood > 0 ? 30 : 4;
        if (int64_t(mixed(hash + 1) % 100) >= chance * (h > line - len(30) ? 45 : 100) / 100) continue;
        const bool high = h > len(84) || field(x, z, 5, 2, 41) > 0;
        Tree t{x, h + 1, z, 0, 0, hash};
        if (h > line - len(14)) t.kind = 4;
        else if (high) t.kind = 0;
        else t.kind = uint8_t(1 + (field(x, z, 9, 2, 42) > kOne / 6 ? 1 : mixed(hash + 2) % 9 == 0 ? 2 : 0));
        const int32_t grown = 75 + pick(mixed(hash + 3), 55);
        t.height = std::max(5, len(t.kind == 0 ? 25 : t.kind == 4 ? 17 : 18) * grown / 100);
        trees_.push_back(t);
      }
  }

  void place_boulders() {
    const int32_t cell = std::max(8, len(20));
    for (int32_t j = 0; j < s_ / cell; ++j)
      for (int32_t i = 0; i < s_ / cell; ++i) {
        const uint64_t hash = hashed(seed_ + 50, i, j);
        const int32_t x = i * cell + pick(hash, cell), z = j * cell + pick(mixed(hash), cell), h = height(x, z);
        if (mixed(hash + 1) % 100 < (h < water_ + len(4) ? 12u
                                     : h > len(90)       ? 30u
                                                         : 9u) &&
            h > water_ - len(5) && !near_cabin(x, z))
          boulders_.push_back({x, h, z});
      }
  }

  void paint_boulder(Slab& slab, const Place& b) const {
    const uint64_t hash = hashed(seed_ + 51, b.x, b.z);
    const int32_t r = std::max(1, len(2) + pick(hash, std::max(2, len(4))));
    if (!slab.meets(b.x - r, b.x + r)) return;
    for (int32_t y = -r; y <= r; ++y)
      for (int32_t z = -r; z <= r; ++z)
        for (int32_t x = -r; x <= r; ++x)
          if (x * x * 3 + y * y * 5 + z * z * 4 <= r * r * 4 - pick(hashed(hash, x, y, z), r * 2 + 1))
            slab.set(b.x + x, b.y + y, b.z + z, shade(c_.stone, 3, x, y, z));
  }

  void paint_tree(Slab& slab, const Tree& t) const {
    const int32_t h = t.height, reach = h / 2 + 2;
    if (!slab.meets(t.x - reach, t.x + reach)) return;
    if (t.kind == 0 || t.kind == 4) {
      // A fir: rings that narrow towards the tip, each a small skirt.
      for (int32_t y = 0; y < h * 3 / 4; ++y) slab.set(t.x, t.y + y, t.z, shade(c_.trunk, 2, 0, y, 0));
      const int32_t base = h / 6, skirt = std::max(3, h / 5);
      for (int32_t y = base; y <= h; ++y) {
        const int32_t whole = (h - y) * h * 10 / (h * 27);  // the cone
        const int32_t in_skirt = skirt - 1 - (y - base) % skirt;
        const int32_t r10 = whole * 10 * 7 / 10 + in_skirt * 10 * whole / std::max(1, skirt * 2) + 6;
        const int32_t r = r10 / 10 + 1;
        for (int32_t z = -r; z <= r; ++z)
          for (int32_t x = -r; x <= r; ++x) {
            if ((x * x + z * z) * 100 > r10 * r10 || (x == 0 && z == 0 && y < h * 3 / 4)) continue;
            const uint64_t hash = hashed(t.hash, x, y, z);
            if (hash % 9 == 0 && (x * x + z * z) * 100 > r10 * r10 / 2) continue;  // ragged
            uint8_t paint = uint8_t(
                c_.fir + std::min(5, in_skirt == 0 ? 1 + int32_t(hash % 2) : 2 + pick(hash, 3) + int32_t(t.hash % 2)));
            if (in_skirt == skirt - 1) paint = uint8_t(c_.fir + int32_t(hash % 2));
            if (t.kind == 4 && in_skirt <= 1) paint = uint8_t(c_.frost + pick(hash, 3));
            slab.set(t.x + x, t.y + y, t.z + z, paint);
          }
      }
      return;
    }
    // A broad-leaved tree: a trunk and a few overlapping balls of leaves.
    const int32_t thick = h >= 14 ? 2 : 1;
    for (int32_t y = 0; y < h * 6 / 10; ++y)
      for (int32_t k = 0; k < thick * thick; ++k)
        slab.set(t.x + k % thick, t.y + y, t.z + k / thick, t.kind == 3 ? c_.birch : shade(c_.trunk, 2, k, y, 0));
    const uint8_t first = t.kind == 2 ? c_.autumn : c_.leaf;
    for (int32_t ball = 0; ball < 5; ++ball) {
      const uint64_t hash = hashed(t.hash, ball);
      const int32_t r = std::max(2, h * (ball == 0 ? 32 : 20 + pick(hash, 6)) / 100),
                    out = ball == 0 ? 0 : h * 22 / 100;
      const int32_t ox = pick(mixed(hash + 1), 2 * out + 1) - out, oz = pick(mixed(hash + 2), 2 * out + 1) - out;
      const int32_t oy = h * 68 / 100 + (ball == 0 ? 0 : pick(mixed(hash + 3), h / 4 + 1) - h / 8);
      for (int32_t y = -r; y <= r; ++y)
        for (int32_t z = -r; z <= r; ++z)
          for (int32_t x = -r; x <= r; ++x) {
            const uint64_t each = hashed(t.hash, x + ox, y + oy, z + oz);
            if (x * x + y * y * 5 / 4 + z * z > r * r - pick(each, r + 1)) continue;
            // Lighter above, darker below: this makes the crown look round.
            const int32_t tone = std::clamp(2 + (y * 3) / std::max(1, r) + pick(mixed(each), 3) - 1, 0, 5);
            slab.set(t.x + ox + x, t.y + oy + y, t.z + oz + z, uint8_t(first + tone));
          }
    }
  }

  void paint_cabin(Slab& slab, const Place& c) const {
    const int32_t w = std::max(7, len(15)) | 1, d = std::max(7, len(12)) | 1, wall = std::max(4, len(8));
    const int32_t x0 = c.x - w / 2, z0 = c.z - d / 2, y0 = c.y + 1;
    if (!slab.meets(x0 - 3, x0 + w + 3)) return;
    for (int32_t z = z0 - 2; z < z0 + d + 2; ++z)
      for (int32_t x = x0 - 2; x < x0 + w + 2; ++x) {
        for (int32_t y = c.y - len(8); y < y0; ++y)
          if (slab.get(x, y, z) == 0 || y == y0 - 1) slab.set(x, y, z, shade(c_.stone, 3, x, y, z));
        for (int32_t y = y0; y < y0 + wall + d; ++y) slab.set(x, y, z, 0);
      }
    for (int32_t y = y0; y < y0 + wall; ++y)
      for (int32_t z = z0; z < z0 + d; ++z)
        for (int32_t x = x0; x < x0 + w; ++x)
          if (x == x0 || x == x0 + w - 1 || z == z0 || z == z0 + d - 1) slab.set(x, y, z, uint8_t(c_.log + y % 3));
    // Gable roof along x, with eaves; its ends are closed with logs.
    for (int32_t i = 0; i <= d / 2 + 1; ++i)
      for (int32_t x = x0 - 1; x <= x0 + w; ++x) {
        const int32_t y = y0 + wall - 1 + i;
        for (const int32_t z : {z0 - 1 + i, z0 + d - i}) {
          slab.set(x, y, z, shade(c_.roof, 3, x, y, z));
          slab.set(x, y + 1, z, shade(c_.roof, 3, x, y + 1, z));
        }
        if (x == x0 || x == x0 + w - 1)
          for (int32_t z = z0 + i; z < z0 + d - i; ++z) slab.set_if_empty(x, y, z, uint8_t(c_.log + y % 3));
      }
    const int32_t sill = y0 + wall / 3, lintel = y0 + wall * 3 / 4, half = std::max(1, w / 8);
    for (int32_t y = sill; y < lintel; ++y) {
      for (const int32_t z : {z0, z0 + d - 1})
        for (int32_t x = -half; x <= half; ++x) slab.set(c.x + (z == z0 ? 0 : w / 4) + x, y, z, c_.window);
      for (const int32_t x : {x0, x0 + w - 1})
        for (int32_t z = -half; z <= half; ++z) slab.set(x, y, c.z + z, c_.window);
    }
    for (int32_t y = y0; y < lintel; ++y)
      for (int32_t x = 0; x <= half; ++x) slab.set(c.x - w / 4 + x, y, z0 + d - 1, c_.door);
    for (int32_t y = y0; y < y0 + wall + d / 2 + 4; ++y)
      for (int32_t k = 0; k < 4; ++k) slab.set(x0 + w - 3 + k % 2, y, z0 + 2 + k / 2, shade(c_.stone, 3, k, y, 0));
  }

  // A jetty straight from the cabin nearest the water, and a boat at its end.
  void paint_jetty(Slab& slab) const {
    Place best{};
    int32_t shortest = s_, step_x = 0, step_z = 0;
    for (const Place& c : cabins_)
      for (int32_t side = 0; side < 4; ++side) {
        const int32_t sx = side == 0 ? 1 : side == 1 ? -1 : 0, sz = side == 2 ? 1 : side == 3 ? -1 : 0;
        for (int32_t i = len(9); i < shortest; ++i) {
          const int32_t x = c.x + sx * i, z = c.z + sz * i;
          if (x < 8 || z < 8 || x >= s_ - 8 || z >= s_ - 8) break;
          if (height(x, z) < water_ - 1) {
            shortest = i;
            best = {x, water_, z};
            step_x = sx;
            step_z = sz;
            break;
          }
        }
      }
    if (shortest == s_) return;
    const int32_t length = len(26);
    for (int32_t i = -len(5); i < length; ++i)
      for (int32_t k = -1; k <= 1; ++k) {
        const int32_t x = best.x + step_x * i + step_z * k, z = best.z + step_z * i + step_x * k;
        slab.set(x, water_ + 2, z, uint8_t(c_.plank + std::abs(i) % 2));
        if (k != 0 && i % 5 == 0)
          for (int32_t y = height(x, z); y <= water_ + (i % 10 == 0 ? 4 : 1); ++y) slab.set(x, y, z, c_.trunk);
      }
    const int32_t bx = best.x + step_x * (length - 4) + step_z * 6, bz = best.z + step_z * (length - 4) + step_x * 6;
    for (int32_t i = -5; i <= 5; ++i) {
      const int32_t half = std::abs(i) >= 5 ? 0 : std::abs(i) >= 4 ? 1 : 2;
      for (int32_t k = -half; k <= half; ++k) {
        const int32_t x = bx + step_x * i + step_z * k, z = bz + step_z * i + step_x * k;
        slab.set(x, water_ + 1, z, c_.hull);
        if (std::abs(k) == half || std::abs(i) == 5) slab.set(x, water_ + 2, z, c_.hull);
        else slab.set(x, water_ + 2, z, 0);
      }
    }
    for (int32_t y = 1; y <= 16; ++y) {
      slab.set(bx, water_ + y, bz, c_.trunk);
      if (y >= 4)
        for (int32_t i = 1; i <= (17 - y) / 2; ++i) slab.set(bx - step_x * i, water_ + y, bz - step_z * i, c_.sail);
    }
  }

  int32_t s_;
  uint64_t seed_;
  int32_t tall_, water_;
  std::vector<int32_t> heights_;
  std::vector<Place> cabins_, boulders_;
  std::vector<Tree> trees_;
  TerrainColours c_;
};

}  // namespace

Result<Scene> terrain(int32_t size, uint32_t seed, const Progress& progress) {
  const Terrain made(size, seed);
  auto scene = paint_scene(
      "terrain", made.size(), seed, made.palette(), [&](Slab& slab) { made.paint(slab); }, progress);
  QRY_TRY(scene);
  const double s = size;
  scene->cameras.push_back(camera_at("valley", {s * 0.60, s * 0.48, s * 0.95}, {s * -0.03, s * 0.10, s * -0.03}, 37));
  scene->cameras.push_back(camera_at("lake", {s * 0.14, s * 0.15, s * 0.62}, {s * -0.08, s * 0.15, s * -0.3}, 50));
  return scene;
}

}  // namespace quarry::generate_detail
