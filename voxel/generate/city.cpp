// SPDX-License-Identifier: Apache-2.0
// city.cpp - blocks of buildings on a grid of streets: towers in the middle, houses outside, parks between, lit
// windows, lamps, cars. The size decides the number of blocks; a voxel is always about two feet.
#include <algorithm>
#include <cstdlib>

#include "voxel/generate/canvas.hpp"

namespace quarry::generate_detail {
namespace {

constexpr int32_t kPitch = 72, kRoad = 20, kBlock = kPitch - kRoad;  // a block with its pavement
constexpr int32_t kPavement = 5;                                     // of each side of a block
// Y of the roads' top layer; the pavement is one higher.
constexpr int32_t kGround = 4;
constexpr int32_t kTall = 288;

struct CityColours {
  Paints paints;
  uint8_t soil = paints.ramp("soil", 0x54483C, 0x6B5A48, 2, 1.0f);
  uint8_t asphalt = paints.ramp("asphalt", 0x34363A, 0x3C3F43, 3, 0.95f);
  uint8_t line = paints.add("road line", 0xE8E6DC, 0.8f);
  uint8_t amber_line = paints.add("centre line", 0xD9A62A, 0.8f);
  uint8_t pavement = paints.ramp("pavement", 0x9B978F, 0xADA9A0, 3, 0.95f);
  uint8_t kerb = paints.add("kerb", 0x82807A, 0.9f);
  uint8_t grass = paints.ramp("lawn", 0x4E7D33, 0x6B9A42, 4, 0.95f);
  uint8_t path = paints.ramp("path", 0xC7B08A, 0xD5C19C, 2, 0.95f);
  uint8_t water = paints.add("pond", 0x2F7F92, 0.06f);
  uint8_t trunk = paints.add("trunk", 0x5A4130, 0.95f);
  uint8_t leaf = paints.ramp("leaf", 0x3F6E2C, 0x86AE48, 5, 0.95f);
  uint8_t blossom = paints.ramp("blossom", 0xD98AA6, 0xF4C6D2, 3, 0.9f);
  // Walls: each style has four shades to draw from.
  uint8_t brick = paints.ramp("brick", 0x8A4432, 0xB06A4C, 4, 0.9f);
  uint8_t plaster = paints.ramp("plaster", 0xCDBB9C, 0xE9E0CE, 4, 0.9f);
  uint8_t concrete = paints.ramp("concrete", 0x8C8A86, 0xB9B6B0, 4, 0.9f);
  uint8_t steel = paints.ramp("steel frame", 0x2E3742, 0x5A6876, 4, 0.35f, 0.8f);
  uint8_t trim = paints.add("trim", 0xEDE9E0, 0.7f);
  uint8_t sand = paints.ramp("sandstone", 0xB99A6B, 0xD3B98C, 3, 0.9f);
  uint8_t glass = paints.ramp("dark glass", 0x1E2F40, 0x3C5A70, 4, 0.08f, 0.5f);
  uint8_t teal = paints.ramp("green glass", 0x1F4A4C, 0x3F7A78, 3, 0.08f, 0.5f);
  uint8_t warm = paints.ramp("warm window", 0xFFB65C, 0xFFE0A8, 4, 0.4f, 0, 3.5f);
  uint8_t cool = paints.ramp("cool window", 0xBFDCFF, 0xE8F2FF, 2, 0.4f, 0, 3.0f);
  uint8_t shop = paints.add("shop window", 0xFFE7B8, 0.3f, 0, 5.0f);
  uint8_t awning[4] = {paints.add("red awning", 0xB23A32, 0.8f), paints.add("green awning", 0x2F6B4F, 0.8f),
                       paints.add("blue awning", 0x2E5C93, 0.8f), paints.add("yellow awning", 0xD9A036, 0.8f)};
  uint8_t neon[4] = {paints.add("pink neon", 0xFF3D9A, 0.5f, 0, 9.0f), paints.add("cyan neon", 0x2FE6FF, 0.5f, 0, 9.0f),
                     paints.add("green neon", 0x5CFF7A, 0.5f, 0, 8.0f),
                     paints.add("orange neon", 0xFF8A2B, 0.5f, 0, 9.0f)};
  uint8_t roof = paints.ramp("roof felt", 0x4B4A4C, 0x66646A, 3, 0.95f);
  uint8_t tile = paints.ramp("roof tile", 0x7C3B2C, 0x9C5540, 3, 0.85f);
  uint8_t metal = paints.add("ventilator", 0xA7ADB3, 0.4f, 0.7f);
  uint8_t tank = paints.add("water tank", 0x7A5A40, 0.9f);
  uint8_t pole = paints.add("lamp post", 0x2C3136, 0.5f, 0.6f);
  uint8_t lamp = paints.add("street lamp", 0xFFD9A0, 0.4f, 0, 14.0f);
  uint8_t beacon = paints.add("beacon", 0xFF2A1F, 0.4f, 0, 12.0f);
  uint8_t car[7] = {paints.add("red car", 0xA8232A, 0.2f, 0.2f),
                    paints.add("white car", 0xE6E7E8, 0.2f, 0.1f),
                    paints.add("black car", 0x1C1E22, 0.2f, 0.3f),
                    paints.add("blue car", 0x24559B, 0.2f, 0.2f),
                    paints.add("silver car", 0x9CA3AA, 0.25f, 0.6f),
                    paints.add("taxi", 0xF2B91E, 0.3f),
                    paints.add("bus", 0x1F7A5A, 0.3f)};
  uint8_t tyre = paints.add("tyre", 0x141414, 0.95f);
  uint8_t windscreen = paints.add("windscreen", 0x22303A, 0.05f, 0.3f);
  uint8_t headlight = paints.add("headlight", 0xFFF6DC, 0.3f, 0, 10.0f);
  uint8_t taillight = paints.add("tail light", 0xFF1E14, 0.3f, 0, 7.0f);
};

enum class Style { glass, brick, setback, plaster };

struct Lot {
  int32_t x, z, w, d, height;
  Style style;
  uint64_t hash;
};

class City {
 public:
  City(int32_t size, uint32_t seed) : s_(size), seed_(mixed(seed + 0x51ed)) {
    blocks_ = (s_ - kRoad) / kPitch;
    margin_ = (s_ - blocks_ * kPitch - kRoad) / 2;
    for (int32_t j = 0; j < blocks_; ++j)
      for (int32_t i = 0; i < blocks_; ++i) plan_block(i, j);
  }
  Int3 size() const { return {s_, kTall, s_}; }
  const Palette& palette() const { return c_.paints.palette(); }

  void paint(Slab& slab) const {
    for (int32_t x = slab.x0(); x < std::min(s_, slab.x0() + 8); ++x)
      for (int32_t z = 0; z < s_; ++z) paint_ground(slab, x, z);
    for (const Park& p : parks_)
      if (slab.meets(p.x, p.x + kBlock)) paint_park(slab, p);
    for (const Lot& lot : lots_)
      if (slab.meets(lot.x - 2, lot.x + lot.w + 2)) paint_building(slab, lot);
    paint_streets(slab);
  }

 private:
  struct Park {
    int32_t x, z;
    uint64_t hash;
  };

  int32_t block_start(int32_t i) const { return margin_ + kRoad + i * kPitch; }
  // A coordinate's position on the grid: -1 on a road, else 0 .. kBlock - 1 from the block's edge.
  int32_t in_block(int32_t c) const {
    const int32_t at = c - margin_;
    if (at < 0 || at >= blocks_ * kPitch + kRoad) return -2;  // outside the grid: lawn
    const int32_t m = at % kPitch - kRoad;
    return m < 0 ? -1 : m;
  }
  int32_t in_road(int32_t c) const { return (c - margin_) % kPitch; }  // 0 .. kRoad - 1 on a road
  uint8_t shade(uint8_t first, int32_t count, int32_t x, int32_t y, int32_t z) const {
    return uint8_t(first + pick(hashed(seed_ + 5, x, y, z), count));
  }

  void plan_block(int32_t i, int32_t j) {
    const uint64_t hash = hashed(seed_, i, j);
    const int32_t x = block_start(i), z = block_start(j);
    // 1000 in the middle of the city, 0 in its corners.
    const int64_t mid = (blocks_ - 1) * 500, di = i * 1000 - mid, dj = j * 1000 - mid;
    const auto centre =
        int32_t(std::max<int64_t>(0, 1000 - (di * di + dj * dj) * 1000 / std::max<int64_t>(1, 2 * mid * mid + 500000)));
    const bool middle = blocks_ >= 3 && i == blocks_ / 2 && j == (blocks_ + 1) / 2;
    if (middle || (mixed(hash) % 100 < 13 && centre < 850)) {
      parks_.push_back({x, z, hash});
      return;
    }
    const int32_t inner = kBlock - 2 * kPavement, gap = 2;
    // 0: one lot, 1: two, 2: four.
    const int32_t split = centre > 800 ? pick(mixed(hash + 1), 2) : 1 + pick(mixed(hash + 1), 2);
    const bool along_x = mixed(hash + 2) % 2 == 0;
    const int32_t nx = split == 2 || (split == 1 && along_x) ? 2 : 1,
                  nz = split == 2 || (split == 1 && !along_x) ? 2 : 1;
    for (int32_t b = 0; b < nz; ++b)
      for (int32_t a = 0; a < nx; ++a) {
        const uint64_t each = hashed(hash, a, b);
        Lot lot;
        lot.w = (inner - (nx - 1) * gap) / nx;
        lot.d = (inner - (nz - 1) * gap) / nz;
        lot.x = x + kPavement + a * (lot.w + gap);
        lot.z = z + kPavement + b * (lot.d + gap);
        lot.hash = each;
        const int32_t chance = pick(mixed(each), 1000);
        const int64_t rise = int64_t(centre) * centre / 1000;
        lot.height = int32_t(18 + rise * (40 + chance * 165 / 1000) / 1000 + chance * 22 / 1000);
        lot.style = lot.height > 110  ? (chance % 2 ? Style::glass : Style::setback)
                    : lot.height > 62 ? (chance % 3 == 0   ? Style::glass
                                         : chance % 3 == 1 ? Style::setback
                                                           : Style::brick)
                                      : (chance % 2 ? Style::brick : Style::plaster);
        lots_.push_back(lot);
      }
  }

  void paint_ground(Slab& slab, int32_t x, int32_t z) const {
    for (int32_t y = 0; y < kGround; ++y) slab.set(x, y, z, shade(c_.soil, 2, x / 3, y, z / 3));
    const int32_t bx = in_block(x), bz = in_block(z);
    if (bx == -2 || bz == -2) {
      slab.set(x, kGround, z, shade(c_.grass, 4, x, 0, z));
      return;
    }
    if (bx >= 0 && bz >= 0) {
      const bool edge = bx == 0 || bz == 0 || bx == kBlock - 1 || bz == kBlock - 1;
      slab.set(x, kGround, z, c_.kerb);
      slab.set(x, kGround + 1, z,
               edge                           ? c_.kerb
               : (bx % 6 == 5 || bz % 6 == 5) ? c_.pavement
                                              : uint8_t(c_.pavement + 1 + pick(hashed(seed_ + 6, x / 6, z / 6), 2)));
      return;
    }
    uint8_t paint = shade(c_.asphalt, 3, x, 0, z);
    if (bx < 0 && bz < 0) {
      // A crossing: stays empty.
    } else {
      const int32_t across = bx < 0 ? in_road(x) : in_road(z), along = bx < 0 ? bz : bx;
      if (along < 6 || along >= kBlock - 6) {
        const int32_t stripe = along < 6 ? along : kBlock - 1 - along;
        // zebra.
        if (stripe >= 1 && stripe <= 4 && across % 3 != 0 && across > 0 && across < kRoad - 1) paint = c_.line;
      } else if (across == kRoad / 2 - 1 || across == kRoad / 2) {
        paint = c_.amber_line;
      } else if ((across == kRoad / 4 || across == kRoad * 3 / 4 - 1) && along % 8 < 4) {
        paint = c_.line;
      }
    }
    slab.set(x, kGround, z, paint);
  }

  uint8_t wall_paint(const Lot& lot, int32_t t, int32_t length, int32_t y, int32_t face, uint64_t tier) const {
    // t: along the wall; y: above its base; face: 0..3. Windows are lit by the hash of (floor, bay).
    const auto lit = [&](int32_t floor, int32_t bay, int32_t percent, uint8_t dark) {
      const uint64_t hash = hashed(lot.hash + tier, floor, bay, face);
      // Offices are lit by the floor, homes by the window.
      const uint64_t by_floor = hashed(lot.hash + tier, floor);
      if (lot.style == Style::glass && by_floor % 5 == 0) percent = 85;
      if (int32_t(hash % 100) >= percent) return dark;
      return hash % 7 == 0 || (lot.style == Style::glass && by_floor % 3 == 0) ? uint8_t(c_.cool + (hash >> 8) % 2)
                                                                               : uint8_t(c_.warm + (hash >> 8) % 4);
    };
    const bool corner = t == 0 || t == length - 1;
    switch (lot.style) {
      case Style::glass: {
        const bool green = lot.hash % 3 == 0;
        const auto frame = uint8_t(c_.steel + lot.hash % 4);
        if (corner || y % 5 == 0) return frame;
        if (t % 4 == 0) return y % 5 == 4 ? frame : green ? c_.teal : c_.glass;
        return lit(y / 5, t / 4, 16,
                   green ? uint8_t(c_.teal + 1 + (t / 4 + y / 5) % 2)
                         : uint8_t(c_.glass + 1 + hashed(lot.hash, y / 5, t / 4) % 3));
      }
      case Style::setback: {
        const auto wall = uint8_t(lot.hash % 2 ? c_.sand + lot.hash % 3 : c_.concrete + 1 + lot.hash % 3);
        if (corner || t % 3 == 0 || y % 6 == 5) return wall;  // strips of windows between piers
        return y % 6 == 0 ? uint8_t(c_.concrete) : lit(y / 6, t / 3, 30, uint8_t(c_.glass + lot.hash % 2));
      }
      case Style::brick: {
        const auto wall = uint8_t(c_.brick + (lot.hash + (hashed(lot.hash, t, y) % 5 == 0 ? 1 : 0)) % 4);
        const int32_t bay = (t + (length % 5) / 2) % 5, row = y % 7;
        if (y % 14 == 13 && !corner) return c_.trim;
        if (corner || bay < 1 || bay > 3 || row < 2 || row > 5) return wall;
        return row == 2 || row == 5 ? (row == 2 ? c_.trim : wall) : lit(y / 7, t / 5, 38, uint8_t(c_.glass));
      }
      case Style::plaster: {
        const auto wall = uint8_t(c_.plaster + lot.hash % 4);
        const int32_t bay = t % 6, row = y % 7;
        if (corner || bay < 2 || bay > 4 || row < 2 || row > 5) return wall;
        return row == 2 || bay == 2 ? c_.trim : lit(y / 7, t / 6, 42, uint8_t(c_.glass + 1));
      }
    }
    return c_.concrete;
  }

  // Four walls and a roof.
  void paint_tier(Slab& slab, const Lot& lot, int32_t x, int32_t z, int32_t w, int32_t d, int32_t y, int32_t h,
                  uint64_t tier) const {
    for (int32_t j = 0; j < h; ++j) {
      for (int32_t i = 0; i < w; ++i) {
        slab.set(x + i, y + j, z, wall_paint(lot, i, w, j, 0, tier));
        slab.set(x + i, y + j, z + d - 1, wall_paint(lot, i, w, j, 1, tier));
      }
      for (int32_t k = 1; k < d - 1; ++k) {
        slab.set(x, y + j, z + k, wall_paint(lot, k, d, j, 2, tier));
        slab.set(x + w - 1, y + j, z + k, wall_paint(lot, k, d, j, 3, tier));
      }
    }
    slab.box(x + 1, y + h - 1, z + 1, w - 2, 1, d - 2, uint8_t(c_.roof + lot.hash % 3));
    // Parapet.
    const uint8_t edge = lot.style == Style::glass ? uint8_t(c_.steel + lot.hash % 4) : c_.trim;
    for (int32_t i = 0; i < w; ++i)
      for (const int32_t k : {z, z + d - 1}) slab.set(x + i, y + h, k, edge);
    for (int32_t k = 0; k < d; ++k)
      for (const int32_t i : {x, x + w - 1}) slab.set(i, y + h, z + k, edge);
  }

  void paint_building(Slab& slab, const Lot& lot) const {
    const int32_t foot = kGround + 2;
    int32_t x = lot.x, z = lot.z, w = lot.w, d = lot.d, y = foot, left = std::min(lot.height, kTall - foot - 40);
    // Ground floor: shops with awnings, or a lobby.
    const uint8_t awning = c_.awning[lot.hash >> 9 & 3];
    const auto frontage = [&](int32_t i, int32_t length, int32_t j) -> uint8_t {
      if (i == 0 || i == length - 1 || j == 0 || j == 6 || i % 9 == 0)
        return lot.style == Style::glass ? uint8_t(c_.steel) : uint8_t(c_.concrete + 1);
      return i % 9 == 4 || i % 9 == 5 ? uint8_t(c_.glass) : c_.shop;
    };
    for (int32_t j = 0; j < 7; ++j) {
      for (int32_t i = 0; i < w; ++i)
        for (const int32_t k : {z, z + d - 1}) slab.set(x + i, y + j, k, frontage(i, w, j));
      for (int32_t k = 0; k < d; ++k)
        for (const int32_t i : {x, x + w - 1}) slab.set(i, y + j, z + k, frontage(k, d, j));
    }
    if (lot.style == Style::brick || lot.style == Style::plaster) {
      for (int32_t i = 1; i < w - 1; ++i)
        if (i % 9 != 0)
          for (int32_t out = 1; out <= 2; ++out)
            for (const int32_t k : {z - out, z + d - 1 + out})
              slab.set(x + i, y + 6 - out / 2, k, (i / 2) % 2 ? awning : c_.trim);
    }
    y += 7;
    left -= 7;
    uint64_t tier = 0;
    if (lot.style == Style::setback || (lot.style == Style::glass && lot.hash % 4 == 1)) {
      // Two or three tiers, each narrower.
      for (const int32_t share : {45, 60, 100}) {
        const int32_t h = share == 100 ? left : std::max(6, left * share / 100 / 6 * 6);
        if (h <= 0 || h > left) break;
        paint_tier(slab, lot, x, z, w, d, y, h, tier++);
        y += h;
        left -= h;
        const int32_t in = std::max(2, std::min(w, d) / 8);
        if (w - 2 * in < 10 || d - 2 * in < 10 || left < 8) break;
        x += in, z += in, w -= 2 * in, d -= 2 * in;
      }
    } else {
      paint_tier(slab, lot, x, z, w, d, y, left, tier);
      y += left;
    }
    paint_roof(slab, lot, x, z, w, d, y);
    // A neon sign down one edge, near the middle of the city.
    if (lot.height > 60 && lot.hash % 3 == 0) {
      const uint8_t neon = c_.neon[lot.hash >> 13 & 3];
      const int32_t from = kGround + 14, rows = 14 + pick(mixed(lot.hash), 16);
      for (int32_t j = 0; j < rows; ++j)
        for (int32_t k = 0; k < 3; ++k)
          if (k == 1 || j % 4 != 3)
            slab.set(lot.x + lot.w, from + j, lot.z + lot.d - 6 + k, k == 1 || j % 4 == 1 ? neon : c_.pole);
    }
  }

  void paint_roof(Slab& slab, const Lot& lot, int32_t x, int32_t z, int32_t w, int32_t d, int32_t y) const {
    const uint64_t hash = mixed(lot.hash + 3);
    if (lot.style == Style::plaster && std::min(w, d) >= 12) {  // hipped tile roof
      for (int32_t i = 0; i < std::min(w, d) / 2; ++i)
        for (int32_t k = i - 1; k < d - i + 1; ++k)
          for (int32_t q = i - 1; q < w - i + 1; ++q)
            if (q == i - 1 || q == w - i || k == i - 1 || k == d - i || i == std::min(w, d) / 2 - 1)
              slab.set(x + q, y + i * 2 / 3, z + k, shade(c_.tile, 3, x + q, i, z + k));
      return;
    }
    const bool garden = hash % 5 == 0;
    if (garden) {
      slab.box(x + 2, y, z + 2, w - 4, 1, d - 4, uint8_t(c_.grass + 1));
      for (int32_t i = 0; i < 3; ++i)
        paint_tree(slab, x + 4 + pick(hashed(hash, i), std::max(1, w - 8)), y + 1,
                   z + 4 + pick(hashed(hash, i, 1), std::max(1, d - 8)), 6, hashed(hash, i, 2));
    }
    for (int32_t i = 0; i < 4; ++i) {  // ventilators
      const uint64_t each = hashed(hash, i, 7);
      const int32_t vx = x + 2 + pick(each, std::max(1, w - 7)), vz = z + 2 + pick(mixed(each), std::max(1, d - 7));
      if (!garden)
        slab.box(vx, y, vz, 3 + int32_t(each % 2), 2 + int32_t(each % 3), 3,
                 i % 2 ? c_.metal : uint8_t(c_.concrete + 2));
    }
    if (lot.style == Style::brick) {  // a water tank on legs
      const int32_t tx = x + w / 2, tz = z + d / 2;
      for (int32_t j = 0; j < 12; ++j)
        for (int32_t k = -3; k <= 3; ++k)
          for (int32_t i = -3; i <= 3; ++i) {
            const int32_t r = i * i + k * k;
            if (j < 4 ? std::abs(i) == 2 && std::abs(k) == 2 : j < 10 ? r <= 9 : r <= (12 - j) * (12 - j))
              slab.set(tx + i, y + j, tz + k, j < 4 ? c_.pole : j == 6 ? c_.pole : c_.tank);
          }
    }
    if (lot.height > 90) {  // plant room, mast and beacon
      slab.box(x + w / 4, y, z + d / 4, w / 2, 6, d / 2, uint8_t(c_.concrete + 1));
      const int32_t mast = 14 + pick(hash, 18);
      for (int32_t j = 0; j < mast; ++j) {
        const int32_t half = j < mast / 3 ? 1 : 0;
        slab.box(x + w / 2 - half, y + 6 + j, z + d / 2 - half, 1 + half, 1, 1 + half, c_.metal);
      }
      slab.set(x + w / 2, y + 6 + mast, z + d / 2, c_.beacon);
      slab.set(x + w / 2, y + 7 + mast, z + d / 2, c_.beacon);
    }
  }

  void paint_tree(Slab& slab, int32_t x, int32_t y, int32_t z, int32_t height, uint64_t hash) const {
    const int32_t r = height * 42 / 100 + int32_t(hash % 2);
    if (!slab.meets(x - r - 1, x + r + 1)) return;
    for (int32_t j = 0; j < height * 6 / 10; ++j) slab.set(x, y + j, z, c_.trunk);
    const bool pink = hash % 9 == 0;
    for (int32_t j = -r; j <= r; ++j)
      for (int32_t k = -r; k <= r; ++k)
        for (int32_t i = -r; i <= r; ++i) {
          const uint64_t each = hashed(hash, i, j, k);
          if (i * i + j * j + k * k > r * r - pick(each, r + 1)) continue;
          const int32_t tone = std::clamp(2 + j * 3 / std::max(1, r) + int32_t(each % 2), 0, 4);
          slab.set(x + i, y + height * 7 / 10 + j, z + k,
                   pink ? uint8_t(c_.blossom + std::min(2, tone / 2)) : uint8_t(c_.leaf + tone));
        }
  }

  void paint_park(Slab& slab, const Park& p) const {
    const int32_t in = 3, n = kBlock - 2 * in, y = kGround + 1;
    const int32_t cx = n / 2, pond_x = cx + pick(p.hash, 9) - 4, pond_z = cx + pick(mixed(p.hash), 9) - 4;
    for (int32_t k = 0; k < n; ++k)
      for (int32_t i = 0; i < n; ++i) {
        const int32_t x = p.x + in + i, z = p.z + in + k;
        uint8_t paint = shade(c_.grass, 4, x, y, z);
        const int32_t dx = i - pond_x, dz = k - pond_z, away = dx * dx * 3 / 4 + dz * dz;
        if (std::abs(i - k) <= 1 || std::abs(i + k - n + 1) <= 1) paint = shade(c_.path, 2, x, y, z);
        if (away < 190) paint = shade(c_.path, 2, x, y, z);
        if (away < 130) paint = c_.water;
        slab.set(x, y, z, paint);
      }
    // A fountain in the pond.
    slab.box(p.x + in + pond_x - 1, y, p.z + in + pond_z - 1, 3, 3, 3, c_.pavement);
    slab.set(p.x + in + pond_x, y + 3, p.z + in + pond_z, c_.trim);
    for (int32_t t = 0; t < 26; ++t) {
      const uint64_t hash = hashed(p.hash, t);
      const int32_t i = 3 + pick(hash, n - 6), k = 3 + pick(mixed(hash), n - 6), dx = i - pond_x, dz = k - pond_z;
      if (dx * dx * 3 / 4 + dz * dz < 240 || std::abs(i - k) <= 3 || std::abs(i + k - n + 1) <= 3) continue;
      paint_tree(slab, p.x + in + i, y + 1, p.z + in + k, 10 + pick(mixed(hash + 1), 7), hash);
    }
    for (const int32_t i : {6, n - 7})
      for (const int32_t k : {6, n - 7}) paint_lamp(slab, p.x + in + i + 2, p.z + in + k, 0, 0);
  }

  void paint_lamp(Slab& slab, int32_t x, int32_t z, int32_t out_x, int32_t out_z) const {
    const int32_t y = kGround + 2;
    for (int32_t j = 0; j < 11; ++j) slab.set(x, y + j, z, c_.pole);
    for (int32_t i = 0; i <= 2; ++i) slab.set(x + out_x * i, y + 11, z + out_z * i, c_.pole);
    slab.set(x + out_x * 2, y + 10, z + out_z * 2, c_.lamp);
    if (out_x != 0 || out_z != 0) slab.set(x + out_x, y + 10, z + out_z, c_.lamp);
    else slab.set(x, y + 12, z, c_.lamp);
  }

  // A car of `length` along the street; `along_z`: the street runs in z. `ahead`: drives towards greater coordinates.
  void paint_car(Slab& slab, int32_t x, int32_t z, bool along_z, bool ahead, uint64_t hash) const {
    const bool bus = hash % 17 == 0;
    const int32_t length = bus ? 19 : 9 + int32_t(hash % 2), width = 5, tall = bus ? 8 : 4;
    const uint8_t body = bus ? c_.car[6] : hash % 5 == 0 ? c_.car[5] : c_.car[pick(hash, 5)];
    const auto put = [&](int32_t l, int32_t y, int32_t w, uint8_t paint) {
      const int32_t a = ahead ? l : length - 1 - l;
      slab.set(along_z ? x + w : x + a, kGround + 1 + y, along_z ? z + a : z + w, paint);
    };
    for (int32_t l = 0; l < length; ++l)
      for (int32_t w = 0; w < width; ++w) {
        const bool side = w == 0 || w == width - 1;
        for (int32_t y = 0; y < tall; ++y) {
          const bool wheel = y == 0 && side && (l == 1 || l == 2 || l == length - 3 || l == length - 2);
          if (y == 0) {
            if (wheel) put(l, y, w, c_.tyre);
            else if (!side) put(l, y, w, c_.car[2]);
            continue;
          }
          if (bus) {
            const bool pane = (y == 4 || y == 5) && (side ? l % 4 != 3 : l == 0 || l == length - 1);
            put(l, y, w, pane ? (side ? c_.warm : c_.windscreen) : y == tall - 1 ? c_.trim : body);
          } else if (y < 2) {
            put(l, y, w, body);
          } else if (l >= 2 && l < length - 3) {
            put(l, y, w, y == tall - 1 ? body : (l == 2 || l == length - 4 || side) ? c_.windscreen : body);
          }
        }
        if ((w == 0 || w == width - 1) || bus) {
          if (l == length - 1 && (w == 0 || w == width - 1)) put(l, 1, w, c_.headlight);
          if (l == 0 && (w == 0 || w == width - 1)) put(l, 1, w, c_.taillight);
        }
      }
  }

  void paint_streets(Slab& slab) const {
    for (int32_t r = 0; r <= blocks_; ++r)
      for (int32_t b = 0; b < blocks_; ++b) {
        const int32_t road = margin_ + r * kPitch, from = block_start(b);
        for (const bool along_z : {true, false}) {
          const int32_t low_x = along_z ? road - 8 : from, high_x = along_z ? road + kRoad + 8 : from + kBlock;
          if (!slab.meets(low_x - 8, high_x + 8)) continue;
          for (int32_t lane = 0; lane < 2; ++lane)
            for (int32_t slot = 0; slot < 2; ++slot) {
              const uint64_t hash = hashed(seed_ + 60, r * 64 + b, lane * 2 + slot, along_z);
              if (hash % 100 >= 46) continue;
              const int32_t along = from + 3 + slot * 26 + pick(mixed(hash), 4), across = road + (lane == 0 ? 3 : 12);
              paint_car(slab, along_z ? across : along, along_z ? along : across, along_z, along_z == (lane == 1),
                        mixed(hash + 1));
            }
          // Lamps and trees on both pavements, in turn.
          for (int32_t i = 0; i < 3; ++i)
            for (int32_t side = 0; side < 2; ++side) {
              if ((side == 0 && r == 0) || (side == 1 && r == blocks_)) continue;  // the pavement belongs to a block
              const int32_t along = from + 8 + i * 18, edge = side == 0 ? road - 2 : road + kRoad + 1,
                            out = side == 0 ? 1 : -1;
              if ((i + side) % 2 == 0)
                paint_lamp(slab, along_z ? edge : along, along_z ? along : edge, along_z ? out : 0, along_z ? 0 : out);
              else
                paint_tree(slab, along_z ? edge : along, kGround + 2, along_z ? along : edge, 8,
                           hashed(seed_ + 61, r * 64 + b, i * 2 + side, along_z));
            }
        }
      }
  }

  int32_t s_;
  uint64_t seed_;
  int32_t blocks_ = 0, margin_ = 0;
  std::vector<Lot> lots_;
  std::vector<Park> parks_;
  CityColours c_;
};

}  // namespace

Result<Scene> city(int32_t size, uint32_t seed, const Progress& progress) {
  const City made(size, seed);
  const int32_t shift = size / 16 * 8;
  auto scene = paint_scene(
      "city", made.size(), seed, made.palette(), [&](Slab& slab) { made.paint(slab); }, progress);
  QRY_TRY(scene);
  const double s = size;
  scene->cameras.push_back(camera_at("skyline", {s * 0.78, s * 0.56, s * 0.92}, {0, 50, 0}, 36));
  scene->cameras.push_back(camera_at("street", {double(2 - shift + s / 2), 26, s * 0.5}, {0, 60, -s * 0.2}, 60));
  return scene;
}

}  // namespace quarry::generate_detail
