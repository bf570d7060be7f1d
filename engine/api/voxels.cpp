// SPDX-License-Identifier: Apache-2.0
// voxels.cpp - voxels in bulk and the palette of the C interface.
// A bulk write becomes whole bricks and goes the way of every other edit: Document::write.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "engine/api/handles.hpp"
#include "engine/home/resident_pages.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

// The corners have 64 bits, because a caller's int32 box may leave int32 when an instance places it.
struct WideBox {
  int64_t min[3], max[3];
};

WideBox placed(const WideBox& box, const Instance& instance) {
  const int64_t offset[3] = {instance.offset.x, instance.offset.y, instance.offset.z};
  WideBox out;
  for (int r = 0; r < 3; ++r) {
    const int axis = instance.rotation.axis[r];
    const bool negated = instance.rotation.sign[r] < 0;
    out.min[r] = (negated ? -1 - box.max[axis] : box.min[axis]) + offset[r];
    out.max[r] = (negated ? -1 - box.min[axis] : box.max[axis]) + offset[r];
  }
  return out;
}

bool inside_world(const WideBox& box) {
  const int64_t low[3] = {kWorldMin.x, kWorldMin.y, kWorldMin.z}, high[3] = {kWorldMax.x, kWorldMax.y, kWorldMax.z};
  bool reaches_corner = true;
  for (int i = 0; i < 3; ++i) {
    if (box.min[i] < low[i] || box.max[i] > high[i]) return false;
    reaches_corner = reaches_corner && box.max[i] > high[i] - kBrickEdge;  // the corner brick, whose key is reserved
  }
  return !reaches_corner;
}

// Returns " where it is shown as <name>" if the instance rotates or moves the volume.
std::string shown_as(const Instance& instance) {
  if (instance.rotation.identity() && instance.offset == Int3{}) return {};
  return " where it is shown as " + (instance.name.empty() ? "an instance without a name" : "'" + instance.name + "'");
}

// True if every voxel of `box`, in the volume's axes, is in the world for each instance of the volume.
bool shown_inside_world(const Scene& scene, uint32_t volume, const WideBox& box, const Instance** offender) {
  for (const Instance& instance : scene.instances)
    if (instance.volume == volume && scene.instance_visible(instance) && !inside_world(placed(box, instance))) {
      *offender = &instance;
      return false;
    }
  return true;
}

// A caller's box and array after their check.
struct Region {
  WideBox box;
  uint64_t size[3];
};
qry_result check_region(const char* function, const int32_t* min, const int32_t* max, const void* materials,
                        uint64_t size_bytes, Region* region) {
  if (!min || !max || !materials)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, !min ? "min" : !max ? "max" : "materials");
  uint64_t voxels = 1;
  for (int i = 0; i < 3; ++i) {
    if (max[i] < min[i])
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: max[%d] = %d is below min[%d] = %d", function, i, max[i], i,
                    min[i]);
    region->box.min[i] = min[i];
    region->box.max[i] = max[i];
    region->size[i] = uint64_t(int64_t(max[i]) - min[i] + 1);
    if (region->size[i] > (uint64_t(1) << 32) / voxels)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: the box has more than 2^32 voxels", function);
    voxels *= region->size[i];
  }
  if (size_bytes < voxels)
    return refuse(QRY_ERROR_BUFFER_TOO_SMALL,
                  "%s: size_bytes is %llu, but the box of %llu x %llu x %llu voxels takes %llu", function,
                  static_cast<unsigned long long>(size_bytes), static_cast<unsigned long long>(region->size[0]),
                  static_cast<unsigned long long>(region->size[1]), static_cast<unsigned long long>(region->size[2]),
                  static_cast<unsigned long long>(voxels));
  return QRY_OK;
}

// Calls visit(brick coordinate, first voxel, last voxel) for the part of `box` in each brick. `box` must fit int32.
template <class Visit>
void for_bricks_of(const WideBox& box, Visit&& visit) {
  const Int3 from{int32_t(box.min[0]), int32_t(box.min[1]), int32_t(box.min[2])};
  const Int3 to{int32_t(box.max[0]), int32_t(box.max[1]), int32_t(box.max[2])};
  const Int3 first = brick_of(from), last = brick_of(to);
  for (int32_t z = first.z; z <= last.z; ++z)
    for (int32_t y = first.y; y <= last.y; ++y)
      for (int32_t x = first.x; x <= last.x; ++x) {
        const Int3 low{x * kBrickEdge, y * kBrickEdge, z * kBrickEdge};
        visit(Int3{x, y, z}, Int3{std::max(low.x, from.x), std::max(low.y, from.y), std::max(low.z, from.z)},
              Int3{std::min(low.x + 7, to.x), std::min(low.y + 7, to.y), std::min(low.z + 7, to.z)});
      }
}

size_t region_index(const Region& region, Int3 voxel) {
  return size_t(voxel.x - region.box.min[0]) +
         size_t(region.size[0]) *
             (size_t(voxel.y - region.box.min[1]) + size_t(region.size[1]) * size_t(voxel.z - region.box.min[2]));
}

// The voxels from `from` along x up to `last`, in a brick that has all of them. Four lie together there.
void copy_row(const Brick& brick, Int3 from, int32_t last, uint8_t* to) {
  for (int32_t x = from.x; x <= last;) {
    const uint8_t* const at = brick.materials.data() + voxel_index({x, from.y, from.z});
    if ((x & 3) == 0 && x + 3 <= last) {
      std::memcpy(to, at, 4);
      to += 4;
      x += 4;
    } else {
      *to++ = *at;
      ++x;
    }
  }
}

bool in_unit(float v) { return v >= 0 && v <= 1; }

qry_result check_range(const char* function, uint32_t first, uint32_t count, const void* materials) {
  if (!materials) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: materials is NULL", function);
  if (first < 1 || first > 255 || count > 256 - first)
    return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: first %u and count %u leave the palette, 1..255", function, first,
                  count);
  return QRY_OK;
}

}  // namespace

qry_result check_region(const char* function, const int32_t* min, const int32_t* max, const void* materials,
                        uint64_t size_bytes) {
  Region region;
  return check_region(function, min, max, materials, size_bytes, &region);
}

qry_result check_region_inside(const qry_world& world, uint32_t volume, const int32_t* min, const int32_t* max,
                               const char* function) {
  const WideBox box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
  const Instance* offender = nullptr;
  // One that a file follows may be larger than its grid: what is beyond all coordinates is refused there.
  if (world.home && world.home->pages() &&
      (world.home->pages()->has_file() ||
       world.home->pages()->holds({{min[0], min[1], min[2]}, {max[0], max[1], max[2]}})))
    return QRY_OK;
  if (shown_inside_world(world.document->scene(), volume, box, &offender)) return QRY_OK;
  return refuse(QRY_ERROR_OUT_OF_BOUNDS, "%s: the box (%d, %d, %d) .. (%d, %d, %d) reaches outside the world%s: %s",
                function, min[0], min[1], min[2], max[0], max[1], max[2], shown_as(*offender).c_str(),
                device::kWorldExtent);
}

}  // namespace quarry::c_api

qry_result qry_world_set_voxels(qry_world* world, uint32_t volume, const int32_t* xyz, const uint8_t* materials,
                                uint64_t count, uint64_t* changed) {
  const char* const function = "qry_world_set_voxels";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_volume(*world, volume, function));
    if (count && (!xyz || !materials))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, but count is not 0", function,
                    xyz ? "materials" : "xyz");
    if (world->home) {
      const auto ticket = world->home->set_voxels({xyz, materials, size_t(count), device::Side::host});
      if (!ticket && ticket.error().code == ErrorCode::out_of_bounds)
        return refuse(QRY_ERROR_OUT_OF_BOUNDS, "%s: %s", function, ticket.error().message.c_str());
      return finish(*world, ticket, false, changed);
    }
    const Scene& scene = world->document->scene();
    const auto voxel_box = [xyz](uint64_t i) {
      return WideBox{{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]}, {xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]}};
    };
    // The box of all of them is almost always inside; only if not is there one to name, unless only the box meets the
    // corner brick.
    VoxelWrites writes{xyz, materials, count};
    const Box3 box = writes.box = bounds_of(writes, world->context->threads);
    const Instance* offender = nullptr;
    if (count &&
        !shown_inside_world(scene, volume,
                            WideBox{{box.min.x, box.min.y, box.min.z}, {box.max.x, box.max.y, box.max.z}}, &offender))
      for (uint64_t i = 0; i < count; ++i)
        if (!shown_inside_world(scene, volume, voxel_box(i), &offender))
          return refuse(QRY_ERROR_OUT_OF_BOUNDS,
                        "%s: voxel (%d, %d, %d), number %llu of the array, lies outside the world%s: %s", function,
                        xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2], static_cast<unsigned long long>(i),
                        shown_as(*offender).c_str(), device::kWorldExtent);
    return finish(*world, world->document->write(volume, writes, "set voxels", world->context->threads), changed);
  });
}

qry_result qry_world_get_voxels(const qry_world* world, const int32_t* xyz, uint8_t* materials, uint64_t count) {
  const char* const function = "qry_world_get_voxels";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    if (count && (!xyz || !materials))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, but count is not 0", function,
                    xyz ? "materials" : "xyz");
    if (world->home) {
      if (auto ok = world->home->get_voxels(xyz, materials, count); !ok) return refuse(ok.error());
      return QRY_OK;
    }
    const World& voxels = world->document->world();
    const BrickMap* const lent = world->lent ? &world->lent->bricks : nullptr;
    parallel_for(
        size_t(count), 1 << 16,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const Int3 voxel{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]};
            materials[i] = lent ? lent->get(voxel) : voxels.get(voxel);
          }
        },
        world->context->threads);
    return QRY_OK;
  });
}

qry_result qry_world_write_region(qry_world* world, uint32_t volume, const int32_t min[3], const int32_t max[3],
                                  const uint8_t* materials, uint64_t size_bytes, uint64_t* changed) {
  const char* const function = "qry_world_write_region";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_volume(*world, volume, function));
    Region region;
    QRY_PASS_REFUSAL(check_region(function, min, max, materials, size_bytes, &region));
    QRY_PASS_REFUSAL(check_region_inside(*world, volume, min, max, function));
    const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    if (world->home) return finish(*world, world->home->write_box(box, materials, device::Side::host), false, changed);
    std::vector<Int3> places;
    for_bricks_of(region.box, [&](Int3 brick, Int3, Int3) { places.push_back(brick); });
    std::sort(places.begin(), places.end());
    const auto fill = [&](size_t i, Brick& brick) {
      const Int3 corner{places[i].x * kBrickEdge, places[i].y * kBrickEdge, places[i].z * kBrickEdge};
      const Box3 part = intersected(box, {corner, corner + Int3{7, 7, 7}});
      for (int32_t z = part.min.z; z <= part.max.z; ++z)
        for (int32_t y = part.min.y; y <= part.max.y; ++y)
          for (int32_t x = part.min.x; x <= part.max.x; ++x)
            brick.set(voxel_index({x, y, z}), materials[region_index(region, {x, y, z})]);
    };
    return finish(*world, world->document->write(volume, places, fill, "write region", world->context->threads),
                  changed);
  });
}

qry_result qry_world_read_region(const qry_world* world, const int32_t min[3], const int32_t max[3], uint8_t* materials,
                                 uint64_t size_bytes) {
  const char* const function = "qry_world_read_region";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    Region region;
    QRY_PASS_REFUSAL(check_region(function, min, max, materials, size_bytes, &region));
    const int64_t low[3] = {kWorldMin.x, kWorldMin.y, kWorldMin.z}, high[3] = {kWorldMax.x, kWorldMax.y, kWorldMax.z};
    WideBox inside = region.box;
    for (int i = 0; i < 3; ++i) {
      inside.min[i] = std::max(inside.min[i], low[i]);
      inside.max[i] = std::min(inside.max[i], high[i]);
    }
    if (world->home) {
      const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
      if (auto ok = world->home->read_box(box, materials, device::Side::host); !ok) return refuse(ok.error());
      return QRY_OK;
    }
    const World& voxels = world->document->world();
    const BrickMap* const lent = world->lent ? &world->lent->bricks : nullptr;
    const auto found = [&](Int3 brick, Brick* value) {
      if (!lent) return voxels.find_brick(brick, value);
      const auto view = lent->find(brick);
      if (view) *value = view->copy();
      return view.has_value();
    };
    // Layers of bricks along z, which lie one after the other in the caller's memory.
    const int64_t first = region.box.min[2] >> 3, layers = (region.box.max[2] >> 3) - first + 1;
    parallel_for(
        size_t(layers), 1,
        [&](size_t i, size_t) {
          const int64_t corner = (first + int64_t(i)) * kBrickEdge,
                        from_z = std::max<int64_t>(corner, region.box.min[2]),
                        to_z = std::min<int64_t>(corner + kBrickEdge - 1, region.box.max[2]);
          const size_t plane = size_t(region.size[0]) * size_t(region.size[1]);
          std::memset(materials + plane * size_t(from_z - region.box.min[2]), 0, plane * size_t(to_z - from_z + 1));
          WideBox layer = inside;
          layer.min[2] = std::max(layer.min[2], from_z);
          layer.max[2] = std::min(layer.max[2], to_z);
          for (int axis = 0; axis < 3; ++axis)
            if (layer.max[axis] < layer.min[axis]) return;
          for_bricks_of(layer, [&](Int3 brick, Int3 from, Int3 to) {
            Brick value;
            if (!brick_in_world(brick) || !found(brick, &value)) return;
            for (int32_t z = from.z; z <= to.z; ++z)
              for (int32_t y = from.y; y <= to.y; ++y)
                copy_row(value, {from.x, y, z}, to.x, materials + region_index(region, {from.x, y, z}));
          });
        },
        world->context->threads);
    return QRY_OK;
  });
}

qry_result qry_world_list_bricks(const qry_world* world, int32_t* brick_xyz, uint64_t* count) {
  const char* const function = "qry_world_list_bricks";
  return guarded(function, [&]() -> qry_result {
    if (!world || !count)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, world ? "count" : "world");
    if (*count && !brick_xyz)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: brick_xyz is NULL, but *count is not 0", function);
    const uint64_t room = *count;
    uint64_t found = 0;
    std::vector<uint32_t> keys;
    Int3 from;
    if (world->home) {
      const auto stay = world->home->stay_there();
      auto listed = world->home->keys();
      if (!listed) return refuse(listed.error());
      keys = std::move(*listed);
      from = brick_of(world->home->origin());
    } else if (world->lent) {
      for (const BrickMap::Entry& entry : world->lent->bricks.bricks()) keys.push_back(brick_key(entry.first));
      std::sort(keys.begin(), keys.end());
    } else {
      keys = world->document->world().pyramid().keys();
    }
    for (const uint32_t key : keys) {
      if (found < room) {
        const Int3 brick = brick_from_key(key) + from;
        const int32_t xyz[3] = {brick.x, brick.y, brick.z};
        std::memcpy(brick_xyz + 3 * found, xyz, sizeof xyz);
      }
      ++found;
    }
    *count = found;
    if (found > room)
      return refuse(QRY_INCOMPLETE, "%s: room for %llu bricks, but there are %llu", function,
                    static_cast<unsigned long long>(room), static_cast<unsigned long long>(found));
    return QRY_OK;
  });
}

qry_result qry_world_get_materials(const qry_world* world, uint32_t first, uint32_t count, qry_material* materials) {
  const char* const function = "qry_world_get_materials";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_range(function, first, count, materials));
    const Palette& palette = world->document->scene().palette;
    for (uint32_t i = 0; i < count; ++i) {
      const Material& from = palette.materials[first + i];
      materials[i] = qry_material{{from.r, from.g, from.b, from.a},
                                  from.roughness,
                                  from.metalness,
                                  from.emission,
                                  from.transparency,
                                  from.ior,
                                  {0, 0}};
    }
    return QRY_OK;
  });
}

qry_result qry_world_set_materials(qry_world* world, uint32_t first, uint32_t count, const qry_material* materials) {
  const char* const function = "qry_world_set_materials";
  return guarded(function, [&]() -> qry_result {
    if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
    QRY_PASS_REFUSAL(check_writable(*world, function));
    QRY_PASS_REFUSAL(check_range(function, first, count, materials));
    Palette palette = world->document->scene().palette;
    for (uint32_t i = 0; i < count; ++i) {
      const qry_material& from = materials[i];
      if (!in_unit(from.roughness) || !in_unit(from.metalness) || !in_unit(from.transparency) ||
          !(from.emission >= 0) || !std::isfinite(from.emission) || !(from.ior >= 1) || !std::isfinite(from.ior) ||
          from.reserved[0] != 0 || from.reserved[1] != 0)
        return refuse(QRY_ERROR_INVALID_ARGUMENT,
                      "%s: materials[%u]: expected roughness, metalness and transparency in 0..1, emission 0 or more, "
                      "ior 1 or more, reserved 0",
                      function, i);
      Material& to = palette.materials[first + i];
      to.r = from.rgba[0];
      to.g = from.rgba[1];
      to.b = from.rgba[2];
      to.a = from.rgba[3];
      to.roughness = from.roughness;
      to.metalness = from.metalness;
      to.emission = from.emission;
      to.transparency = from.transparency;
      to.ior = from.ior;
    }
    if (palette == world->document->scene().palette) return QRY_OK;
    world->document->set_palette(palette);
    ++world->version;
    return QRY_OK;
  });
}
