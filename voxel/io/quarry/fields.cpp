// SPDX-License-Identifier: Apache-2.0
// fields.cpp - packs rotations and colours into integers, and computes the sums over scene, palette, volumes and
// history.
#include "voxel/io/quarry/fields.hpp"

namespace quarry::io {

void ThrottledReport::at(double fraction) {
  if (!progress_.report) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(40);
  progress_.say(stage_, fraction);
}

uint64_t scene_sum(const Scene& scene) {
  FieldSum sum;
  sum.add(int64_t(scene.metadata.size()));
  for (const auto& [key, value] : scene.metadata) sum.add(key).add(value);
  sum.add(int64_t(scene.layers.size()));
  for (const Layer& l : scene.layers) sum.add(l.name).add(int64_t(l.hidden));
  sum.add(int64_t(scene.instances.size()));
  for (const Instance& i : scene.instances) {
    sum.add(int64_t(i.volume))
        .add(pack_rotation(i.rotation))
        .add(int64_t(i.offset.x))
        .add(int64_t(i.offset.y))
        .add(int64_t(i.offset.z));
    sum.add(int64_t(i.layer)).add(int64_t(i.hidden)).add(i.name).add(i.group_path);
  }
  sum.add(int64_t(scene.cameras.size()));
  for (const Camera& c : scene.cameras) {
    sum.add(c.name).add(c.vertical_fov_degrees);
    for (int a = 0; a < 3; ++a) sum.add(c.position[a]).add(c.target[a]);
  }
  sum.add(int64_t(scene.volumes.size()));
  for (const Volume& v : scene.volumes)
    sum.add(v.name).add(int64_t(v.size.x)).add(int64_t(v.size.y)).add(int64_t(v.size.z));
  return sum.add(int64_t(scene.overlap == OverlapRule::last_instance_wins)).value();
}

uint64_t palette_sum(const Palette& palette) {
  FieldSum sum;
  for (size_t i = 0; i < 256; ++i) {
    const Material& m = palette.materials[i];
    sum.add(pack_rgba(m)).add(palette.names[i]);
    for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior, m.reserved[0], m.reserved[1]})
      sum.add(double(v));
  }
  return sum.value();
}

uint64_t volumes_sum(const StoreHead& head) {
  FieldSum sum;
  for (const StoreHead::Volume& v : head.volumes) sum.add(v.chunks).add(v.bricks).add(int64_t(v.sum));
  return sum.value();
}

uint64_t history_state_sum(const StoreHead& head) {
  FieldSum sum;
  sum.add(head.position).add(head.length).add(int64_t(head.history_sum));
  if (head.unfinished) sum.add(head.unfinished->position).add(int64_t(head.unfinished->is_new)).add(head.version);
  return sum.value();
}

int64_t pack_rotation(const Rotation& r) {
  int64_t packed = 0;
  for (int row = 0; row < 3; ++row)
    packed |= int64_t(r.axis[size_t(row)] & 3) << (2 * row) | int64_t(r.sign[size_t(row)] < 0) << (6 + row);
  return packed;
}

Rotation unpack_rotation(int64_t packed) {
  Rotation r;
  for (int row = 0; row < 3; ++row) {
    r.axis[size_t(row)] = uint8_t(packed >> (2 * row) & 3);
    r.sign[size_t(row)] = packed >> (6 + row) & 1 ? int8_t(-1) : int8_t(1);
  }
  return r;
}

int64_t pack_rgba(const Material& m) { return rgba_word(m); }

}  // namespace quarry::io
