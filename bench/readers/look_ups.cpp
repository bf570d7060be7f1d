// SPDX-License-Identifier: Apache-2.0
// look_ups.cpp - worlds of bricks whose content is known by their number, host threads that look them up, and the check
// of what was found.
#include "bench/readers/look_ups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/parallel.hpp"
#include "bench/readers/dispatches.hpp"
#include "look_ups_spirv.h"

namespace quarry::bench {
namespace {

static_assert(sizeof(QryLookUpPush) <= Dispatches::kPushBytes);

// In the order of memory. Each brick has voxels and empty ones.
uint8_t material_at(uint32_t number, uint32_t at) {
  return ((at ^ number) & 7u) == 0 ? 0 : uint8_t(1 + (((number >> 3) + at) & 127u));
}

Result<void> fill(SharedStore& world, uint32_t bricks, const Progress& progress) {
  constexpr uint32_t kAtOnce = 1u << 18;  // 128 MiB
  QRY_TRY(world.store().reserve(bricks, bricks));
  std::vector<uint32_t> keys;
  std::vector<BrickMaterials> materials;
  for (uint32_t first = 0; first < bricks; first += kAtOnce) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
    progress.say(fmt::format("{} bricks", bricks), double(first) / bricks);
    const uint32_t some = std::min(kAtOnce, bricks - first);
    keys.resize(some);
    materials.resize(some);
    parallel_for(some, 1024, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        keys[i] = qry_key_of_number(first + uint32_t(i));
        for (uint32_t at = 0; at < 512; ++at) materials[i][at] = material_at(first + uint32_t(i), at);
      }
    });
    QRY_TRY(world.store().put({{}, {}, keys, materials}));
  }
  return {};
}

// The sum of what is there.
template <class One>
uint32_t sum_of(uint32_t count, const One& one) {
  std::atomic<uint32_t> sum{0};
  parallel_for(count, size_t(1) << 14, [&](size_t begin, size_t end) {
    uint32_t mine = 0;
    for (size_t i = begin; i < end; ++i) mine += one(uint32_t(i));
    sum.fetch_add(mine, std::memory_order_relaxed);
  });
  return sum;
}
uint32_t expected_sum(uint32_t bricks, uint32_t count) {
  return sum_of(count, [&](uint32_t i) {
    const uint8_t material = material_at(qry_looked_up(i, bricks), qry_looked_at(i));
    return material ? material + 256u : 0u;
  });
}

struct Shader {
  std::unique_ptr<Dispatches> dispatches;
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::unique_ptr<engine::DeviceMemory> sums;
};

Result<Summed> look_up_by_shader(const Shader& shader, SharedStore& world, uint32_t bricks, uint32_t count,
                                 engine::Device::TimelinePoint ready) {
  QRY_TRY(shader.dispatches->clear(*shader.sums));
  const QryLookUpPush push{world.shared().root(), shader.sums->address(), bricks, count};
  constexpr uint32_t kOfGroup = kQryLookUpGroup * kQryLookUpsEach, kRow = 32768;
  const uint32_t groups = (count + kOfGroup - 1) / kOfGroup, x = std::min(groups, kRow);
  Summed summed;
  QRY_TRY_ASSIGN(summed.us, shader.dispatches->microseconds(shader.pipeline, std::as_bytes(std::span(&push, 1)),
                                                            {x, (groups + x - 1) / x}, ready));
  QRY_TRY_ASSIGN(const void* const read, shader.dispatches->read(*shader.sums, kQryLookUpSums * 4));
  for (uint32_t i = 0; i < kQryLookUpSums; ++i) summed.sum += static_cast<const uint32_t*>(read)[i];
  return summed;
}

Result<nlohmann::json> measure(engine::Device& device, const Shader& shader, const ReadersOptions& options,
                               uint32_t bricks) {
  QRY_TRY_ASSIGN(const auto world, SharedStore::create(device, options.kernels));
  QRY_TRY(fill(*world, bricks, options.progress));
  QRY_TRY_ASSIGN(const device::Store::State state, world->store().state());
  QRY_TRY_ASSIGN(const engine::Device::TimelinePoint ready, world->publish());
  QRY_TRY(world->store().executor().wait());  // the kernel runs on another stream
  const device::Memory& memory = world->store().memory();
  const uint32_t count = options.look_ups;
  const LookedUp looked_up{memory.grid, memory.masks, reinterpret_cast<const uint8_t*>(memory.materials), bricks,
                           count};
  const uint32_t expected = expected_sum(bricks, count);
  std::vector<double> times[2], reads;
  for (uint32_t round = 0; round < options.repeats + 2; ++round) {
    Summed by[2];
    if (world->on_cuda()) {
      QRY_TRY_ASSIGN(by[0], look_up_on_cuda(world->store().executor().device(), looked_up));
    } else {
      by[0] = look_up_on_host(looked_up);
    }
    if (world->on_cuda()) {
      QRY_TRY_ASSIGN(const double read_us, read_on_cuda(world->store().executor().device(), looked_up));
      if (round >= 2) reads.push_back(read_us);
    }
    QRY_TRY_ASSIGN(by[1], look_up_by_shader(shader, *world, bricks, count, ready));
    for (size_t i = 0; i < 2; ++i) {
      if (by[i].sum != expected)
        return fail(ErrorCode::device, fmt::format("look-ups in {} bricks by a {}: the sum is {} instead of {}: the "
                                                   "measurement is void",
                                                   bricks, i ? "shader" : "kernel", by[i].sum, expected));
      if (round >= 2) times[i].push_back(by[i].us);
    }
  }
  const double us[2] = {median(times[0]), median(times[1])};
  const auto row = [&](double took) {
    return nlohmann::json{{"microseconds", took}, {"million_per_s", double(count) / took}};
  };
  nlohmann::json rows{{"kernel", row(us[0])}, {"shader", row(us[1])}};
  if (!reads.empty()) rows["reads"] = row(median(reads));
  return nlohmann::json{
      {"bricks", bricks}, {"bytes", state.world_bytes}, {"look_ups", count}, {"rows", rows}, {"ratio", us[0] / us[1]}};
}

}  // namespace

Summed look_up_on_host(const LookedUp& world) {
  const auto begin = std::chrono::steady_clock::now();
  const uint32_t sum =
      sum_of(world.count, [&](uint32_t i) { return found_at(world, brick_looked_up(world, i), qry_looked_at(i)); });
  return {std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count(), sum};
}

Result<nlohmann::json> bench_reader_look_ups(engine::Device& device, const ReadersOptions& options) {
  if (options.bricks < 16 || options.bricks > kQryMostLookedUp)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a world of {} bricks to look up in: 16 to {}", options.bricks, kQryMostLookedUp));
  Shader shader;
  QRY_TRY_ASSIGN(shader.dispatches, Dispatches::create(device));
  QRY_TRY_ASSIGN(shader.pipeline, shader.dispatches->make("look-ups", k_look_ups_spirv, {}));
  QRY_TRY_ASSIGN(shader.sums, engine::DeviceMemory::create(device, engine::BufferMemory::device, kQryLookUpSums * 4,
                                                           "quarry bench"));
  QRY_TRY_ASSIGN(auto large, measure(device, shader, options, options.bricks));
  QRY_TRY_ASSIGN(auto small, measure(device, shader, options, options.bricks / 16));
  nlohmann::json ratios;
  for (const char* row : {"kernel", "shader", "reads"})
    if (large["rows"].contains(row))
      ratios[row] =
          large["rows"][row]["million_per_s"].get<double>() / small["rows"][row]["million_per_s"].get<double>();
  return nlohmann::json{{"worlds", {large, small}}, {"ratios", ratios}};
}

}  // namespace quarry::bench
