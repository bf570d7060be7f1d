// SPDX-License-Identifier: Apache-2.0
// cuda.cpp - lists, regions, rays and hits of the C interface that are in a CUDA device's memory, ordered with the
// caller's stream. Nothing here needs a CUDA type: an executor knows what its pointers are.
#include "engine/api/handles.hpp"

using namespace quarry;
using namespace quarry::c_api;

namespace quarry::c_api {
namespace {

qry_result check_on_device(const qry_world* world, const char* function) {
  if (!world) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: world is NULL", function);
  if (!world->home)
    return refuse(QRY_ERROR_UNSUPPORTED,
                  "%s: the world is at home on the host (qry_world_get_home), where arrays must be in host memory",
                  function);
  return QRY_OK;
}

qry_result check_aligned(const char* function, const char* argument, const void* array, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(array) % alignment == 0) return QRY_OK;
  return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is not at a multiple of %zu bytes", function, argument, alignment);
}

qry_result passed_on(const Result<void>& done) { return done ? qry_result(QRY_OK) : refuse(done.error()); }

}  // namespace
}  // namespace quarry::c_api

qry_result qry_world_cuda_wait(qry_world* world, void* stream) {
  const char* const function = "qry_world_cuda_wait";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    return passed_on(world->home->wait_for(stream));
  });
}

qry_result qry_world_cuda_signal(qry_world* world, void* stream) {
  const char* const function = "qry_world_cuda_signal";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    return passed_on(world->home->signal(stream));
  });
}

qry_result qry_world_cuda_set_voxels(qry_world* world, const int32_t* xyz, const uint8_t* materials, uint64_t count,
                                     void* stream, uint64_t* changed) {
  const char* const function = "qry_world_cuda_set_voxels";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    if (count && (!xyz || !materials))
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, but count is not 0", function,
                    xyz ? "materials" : "xyz");
    QRY_PASS_REFUSAL(check_aligned(function, "xyz", xyz, alignof(int32_t)));
    QRY_PASS_REFUSAL(passed_on(world->home->wait_for(stream)));
    return finish(*world, world->home->set_voxels({xyz, materials, size_t(count), device::Side::device}), false,
                  changed);
  });
}

qry_result qry_world_cuda_write_region(qry_world* world, const int32_t min[3], const int32_t max[3],
                                       const uint8_t* materials, uint64_t size_bytes, void* stream, uint64_t* changed) {
  const char* const function = "qry_world_cuda_write_region";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    QRY_PASS_REFUSAL(check_region(function, min, max, materials, size_bytes));
    QRY_PASS_REFUSAL(check_region_inside(*world, 0, min, max, function));
    QRY_PASS_REFUSAL(passed_on(world->home->wait_for(stream)));
    const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    return finish(*world, world->home->write_box(box, materials, device::Side::device), false, changed);
  });
}

qry_result qry_world_cuda_read_region(qry_world* world, const int32_t min[3], const int32_t max[3], uint8_t* materials,
                                      uint64_t size_bytes, void* stream) {
  const char* const function = "qry_world_cuda_read_region";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    QRY_PASS_REFUSAL(check_region(function, min, max, materials, size_bytes));
    const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    QRY_PASS_REFUSAL(passed_on(world->home->wait_for(stream)));
    QRY_PASS_REFUSAL(passed_on(world->home->read_box(box, materials, device::Side::device)));
    return passed_on(world->home->signal(stream));
  });
}

qry_result qry_world_cuda_trace(qry_world* world, const qry_ray* rays, uint64_t count, qry_hit* hits, void* stream) {
  const char* const function = "qry_world_cuda_trace";
  return guarded(function, [&]() -> qry_result {
    QRY_PASS_REFUSAL(check_on_device(world, function));
    if (count == 0) return QRY_OK;
    if (!rays || !hits)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, but count is not 0", function, rays ? "hits" : "rays");
    QRY_PASS_REFUSAL(check_aligned(function, "rays", rays, 8));
    QRY_PASS_REFUSAL(check_aligned(function, "hits", hits, 16));
    QRY_PASS_REFUSAL(passed_on(world->home->wait_for(stream)));
    QRY_PASS_REFUSAL(passed_on(
        world->home->trace_there(reinterpret_cast<const Ray*>(rays), size_t(count), reinterpret_cast<RayHit*>(hits))));
    return passed_on(world->home->signal(stream));
  });
}
