// SPDX-License-Identifier: Apache-2.0
// turned_scene.hpp - a .vox scene of turned and overlapping balls, for `quarry bench world`: half of them solid and of
// one material, the others hollow, each of their voxels of another one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace quarry::bench {

struct TurnedScene {
  std::vector<uint8_t> vox;
  uint64_t instances, placed;  // voxels over all of these
  uint64_t voxels;             // that are distinct, as a dense array of them counts
};

inline TurnedScene turned_scene(bool small) {
  using Bytes = std::vector<uint8_t>;
  const auto put = [](Bytes& out, int64_t value) {
    for (int i = 0; i < 4; ++i) out.push_back(uint8_t(value >> (8 * i)));
  };
  const auto put_text = [&](Bytes& out, const std::string& text) {
    put(out, int64_t(text.size()));
    out.insert(out.end(), text.begin(), text.end());
  };
  Bytes chunks;
  const auto chunk = [&](const char* id, const Bytes& content) {
    chunks.insert(chunks.end(), id, id + 4);
    put(chunks, int64_t(content.size()));
    put(chunks, 0);
    chunks.insert(chunks.end(), content.begin(), content.end());
  };

  // Two models of the same size, in the order of their numbers.
  const int radius = small ? 14 : 62, wall = small ? 4 : 12, edge = 2 * radius + 1;
  uint64_t sizes[2] = {0, 0};
  for (const bool hollow : {false, true}) {
    Bytes size, voxels, list;
    for (int i = 0; i < 3; ++i) put(size, edge);
    for (int z = -radius; z <= radius; ++z)
      for (int y = -radius; y <= radius; ++y)
        for (int x = -radius; x <= radius; ++x) {
          const int squared = x * x + y * y + z * z;
          if (squared > radius * radius || (hollow && squared <= (radius - wall) * (radius - wall))) continue;
          const auto colour = hollow ? uint8_t(1 + (unsigned(x * 7 + y * 13 + z * 29) & 127u)) : uint8_t(200);
          voxels.insert(voxels.end(), {uint8_t(x + radius), uint8_t(y + radius), uint8_t(z + radius), colour});
          ++sizes[hollow];
        }
    put(list, int64_t(sizes[hollow]));
    list.insert(list.end(), voxels.begin(), voxels.end());
    chunk("SIZE", size);
    chunk("XYZI", list);
  }

  // Instances in rows that are closer than the balls are wide, turned by all 48 rotations one after the other.
  const int across[3] = {small ? 2 : 4, small ? 2 : 5, small ? 2 : 8}, apart = small ? 21 : 101;
  constexpr int kTurns[6] = {0 | 1 << 2, 0 | 2 << 2, 1 | 0 << 2, 1 | 2 << 2, 2 | 0 << 2, 2 | 1 << 2};
  std::vector<int64_t> children;
  const auto transform = [&](int64_t id, int64_t child, const std::vector<std::pair<const char*, std::string>>& frame) {
    Bytes content;
    for (const int64_t value : {id, int64_t(0), child, int64_t(-1), int64_t(-1), int64_t(1), int64_t(frame.size())})
      put(content, value);
    for (const auto& [key, value] : frame) put_text(content, key), put_text(content, value);
    chunk("nTRN", content);
  };
  transform(0, 1, {});
  TurnedScene scene{{}, 0, 0, small ? 66187u : 102953145u};
  for (int z = 0; z < across[2]; ++z)
    for (int y = 0; y < across[1]; ++y)
      for (int x = 0; x < across[0]; ++x) {
        const auto number = int(scene.instances++);
        const int turn = kTurns[number % 6] | (number / 6 % 8) << 4, model = (x + y + z) & 1;
        std::string place;
        for (const int along : {2 * x - across[0], 2 * y - across[1], 2 * z - across[2]})
          place += std::to_string(along * apart / 2 + number % 5) + " ";
        place.pop_back();
        children.push_back(10 + number);
        transform(10 + number, 2 + model, {{"_r", std::to_string(turn)}, {"_t", place}});
        scene.placed += sizes[model];
      }
  Bytes group;
  for (const int64_t value : {int64_t(1), int64_t(0), int64_t(children.size())}) put(group, value);
  for (const int64_t child : children) put(group, child);
  chunk("nGRP", group);
  for (int64_t model = 0; model < 2; ++model) {
    Bytes shape;
    for (const int64_t value : {2 + model, int64_t(0), int64_t(1), model, int64_t(0)}) put(shape, value);
    chunk("nSHP", shape);
  }

  Bytes& out = scene.vox;
  out = {'V', 'O', 'X', ' '};
  put(out, 200);
  out.insert(out.end(), {'M', 'A', 'I', 'N'});
  put(out, 0);
  put(out, int64_t(chunks.size()));
  out.insert(out.end(), chunks.begin(), chunks.end());
  return scene;
}

}  // namespace quarry::bench
