// SPDX-License-Identifier: Apache-2.0
// path_tracer.cpp - creates the buffers, records the passes and reads the sums back. The number of paths in a
// submission follows from a wanted time.
#include "engine/pictures/path_tracer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>

#include "engine/render/frame_settings.hpp"
#include "engine/render/offscreen.hpp"
#include "engine/sharing/light_tree.hpp"
#include "engine/sharing/residency.hpp"
#include "engine/vulkan/loader.hpp"
#include "engine/vulkan/pipeline_cache.hpp"
#include "engine/vulkan/upload.hpp"
#include "path_paged_spirv.h"
#include "path_resolve_spirv.h"
#include "path_spirv.h"
#include "shaders/shared/path.h"

namespace quarry::engine {

static_assert(offsetof(QryPathFrame, origin) == 32 && offsetof(QryPathFrame, width) == 80 &&
                  offsetof(QryPathFrame, environment) == 100 && sizeof(QryPathFrame) == 248 &&
                  sizeof(QryPathPush) == 24,
              "the path frame's layout in C++ is not GLSL's scalar layout");

namespace {

constexpr uint32_t kMaxPaths = 1u << 24;  // a float counts exactly up to this number
constexpr uint64_t kPixelBytes = 16;
constexpr uint32_t kBlock = 4;  // a step is one path in each block of 4 x 4 pixels

uint32_t packed(uint32_t x, uint32_t y) { return x | y << 16; }

}  // namespace

struct PathTracer::State {
  Device* device = nullptr;
  std::unique_ptr<TargetSets> targets;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  // path_paged: of worlds of which some pages are not there; made when one is drawn.
  VkPipeline path = VK_NULL_HANDLE, path_paged = VK_NULL_HANDLE, resolve = VK_NULL_HANDLE;
  struct Frame {
    std::unique_ptr<DeviceMemory> parameters;
    std::shared_ptr<DeviceMemory> sums, lights;  // this frame may still read them
  } frames[kFrames + 1];
  std::shared_ptr<DeviceMemory> sums, layers;
  std::shared_ptr<DeviceMemory> kept;  // sums and layers as they were before paths that came to missing pages
  std::unique_ptr<Offscreen> offscreen;
  std::unique_ptr<DeviceMemory> back;
  uint32_t paths = 0;  // paths a pixel that render() has put into the sums
  // The version of the light tree in `lights`; 0 for none. A tree that a frame may read is never written again.
  uint64_t lights_version = 0;
  std::shared_ptr<DeviceMemory> lights;
  // Light trees still being copied, with the semaphore value that ends each copy.
  std::vector<std::pair<uint64_t, std::shared_ptr<DeviceMemory>>> on_their_way;
  VkSemaphore copies = VK_NULL_HANDLE;  // counts the copies; belongs to upload
  std::unique_ptr<Upload> upload;       // destroyed first: its destructor waits for the copies

  ~State() {
    const VulkanFunctions& vk = device->vk();
    for (VkPipeline pipeline : {path, path_paged, resolve})
      if (pipeline) vk.vkDestroyPipeline(device->handle(), pipeline, nullptr);
    if (layout) vk.vkDestroyPipelineLayout(device->handle(), layout, nullptr);
  }

  Result<void> set_up();
  Result<void> grow(std::shared_ptr<DeviceMemory>& memory, uint64_t size_bytes, const char* label) {
    if (memory && memory->size_bytes() >= size_bytes) return {};
    QRY_TRY_ASSIGN(auto made, DeviceMemory::create(*device, BufferMemory::device, size_bytes, label));
    memory = std::move(made);
    return {};
  }
  void show(VkCommandBuffer commands, const Tile& tile, uint32_t frame_index, uint32_t steps, VkImageView target);
  Result<void> record(VkCommandBuffer commands, SharedWorld& world, const View& view, const RenderSettings& settings,
                      uint32_t first_step, uint32_t steps, bool with_layers, VkImageView target, uint32_t frame_index,
                      const std::optional<Tile>& tile);
  void keep_rows(VkCommandBuffer commands, const RenderSettings& settings, const Tile& tile, bool with_layers,
                 bool back_again);
  Result<void> trace_paged(const RenderedWorld& world, const View& view, const RenderSettings& settings,
                           uint32_t first_step, uint32_t steps, bool with_layers, const Progress& progress);
};

Result<void> PathTracer::State::set_up() {
  const VulkanFunctions& vk = device->vk();
  QRY_TRY_ASSIGN(auto made_targets, TargetSets::create(*device, kFrames + 1, false));
  targets = std::move(made_targets);
  const VkDescriptorSetLayout target_layout = targets->layout();
  VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryPathPush)};
  VkPipelineLayoutCreateInfo layout_info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &target_layout, 1, &push};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device->handle(), &layout_info, nullptr, &layout),
                   "vkCreatePipelineLayout", "paths"));
  QRY_TRY_ASSIGN(auto cache, PipelineCache::open(*device));
  QRY_TRY_ASSIGN(auto made_path, cache->make(layout, k_path_spirv, sizeof k_path_spirv, "path", {.tiled = true}));
  path = made_path;
  QRY_TRY_ASSIGN(auto made_resolve, cache->make(layout, k_path_resolve_spirv, sizeof k_path_resolve_spirv,
                                                "path_resolve", {.tiled = true}));
  resolve = made_resolve;
  cache->store();
  for (Frame& frame : frames)
    QRY_TRY(ensure_memory(*device, frame.parameters, BufferMemory::device_mapped, sizeof(QryPathFrame),
                          "quarry path frame"));
  QRY_TRY_ASSIGN(auto made_offscreen, Offscreen::create(*device, "quarry path tracer"));
  offscreen = std::move(made_offscreen);
  return {};
}

void PathTracer::State::show(VkCommandBuffer commands, const Tile& tile, uint32_t frame_index, uint32_t steps,
                             VkImageView target) {
  const VulkanFunctions& vk = device->vk();
  compute_barrier(vk, commands);
  const QryPathPush push{frames[frame_index].parameters->address(), 0, steps, packed(tile.x, tile.y),
                         packed(tile.x + tile.width, tile.y + tile.height)};
  targets->bind(commands, layout, frame_index, target);
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, resolve);
  vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk.vkCmdDispatch(commands, (tile.width + 7) / 8, (tile.height + 7) / 8, 1);
}

// `target` null: nothing is shown yet.
Result<void> PathTracer::State::record(VkCommandBuffer commands, SharedWorld& world, const View& view,
                                       const RenderSettings& settings, uint32_t first_step, uint32_t steps,
                                       bool with_layers, VkImageView target, uint32_t frame_index,
                                       const std::optional<Tile>& tile) {
  QRY_TRY(check_frame(settings, world, frame_index));
  if (world.residency() && !path_paged) {
    QRY_TRY_ASSIGN(auto cache, PipelineCache::open(*device));
    QRY_TRY_ASSIGN(path_paged,
                   cache->make(layout, k_path_paged_spirv, sizeof k_path_paged_spirv, "path, paged", {.tiled = true}));
    cache->store();
  }
  const bool whole = steps % kStepsAPath == 0 && first_step % kStepsAPath == 0;
  if (!steps || (!whole && steps != 1) || (uint64_t(first_step) + steps) / kStepsAPath > kMaxPaths)
    return fail(ErrorCode::invalid_argument, std::to_string(steps) + " steps after " + std::to_string(first_step) +
                                                 ": must be 1, or whole paths of 16, and at most 2^24 paths");
  const Tile whole_picture{0, 0, settings.width, settings.height}, own = tile.value_or(whole_picture);
  QRY_TRY(check_tile(settings, own));
  const auto at_block = [](uint32_t place, uint32_t end) { return place % kBlock == 0 || place == end; };
  if (!at_block(own.x, 0) || !at_block(own.y, 0) || !at_block(own.x + own.width, settings.width) ||
      !at_block(own.y + own.height, settings.height))
    return fail(ErrorCode::invalid_argument, "a tile of light paths whose corners are not at multiples of 4 pixels");
  const uint64_t pixels = uint64_t(settings.width) * settings.height;
  QRY_TRY(grow(sums, pixels * kPixelBytes, "quarry path sums"));
  if (with_layers) QRY_TRY(grow(layers, pixels * 2 * kPixelBytes, "quarry path layers"));
  Frame& frame = frames[frame_index];
  frame.sums = sums;
  const bool samples_lights =
      settings.light_tree && world.lights().up_to_date() && world.lights().version() == lights_version;
  frame.lights = samples_lights ? lights : nullptr;

  QryPathFrame f{};
  f.root = world.root_address();
  f.sums = sums->address();
  f.layers = with_layers ? layers->address() : 0;
  f.lights = frame.lights ? frame.lights->address() : 0;
  put_view(view, f);
  f.width = settings.width;
  f.height = settings.height;
  f.bounces = settings.bounces;
  f.seed = settings.frame_seed;
  f.clamp = settings.firefly_limit;
  f.environment = environment_of(settings, world.root());
  std::memcpy(frame.parameters->mapped(), &f, sizeof f);

  const VulkanFunctions& vk = device->vk();
  compute_barrier(vk, commands);  // the frame before may still add to the sums or show them
  const QryPathPush push{frame.parameters->address(), first_step, steps,
                         whole ? packed(own.x, own.y) : packed(own.x / kBlock, own.y / kBlock),
                         packed(own.x + own.width, own.y + own.height)};
  const uint32_t across = whole ? own.width : (own.width + kBlock - 1) / kBlock,
                 down = whole ? own.height : (own.height + kBlock - 1) / kBlock;
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, world.residency() ? path_paged : path);
  vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk.vkCmdDispatch(commands, (across + 7) / 8, (down + 3) / 4, 1);
  if (target) show(commands, own, frame_index, first_step + steps, target);
  return {};
}

// Copies the sums of the tile's rows of pixels beside, or from there back again.
void PathTracer::State::keep_rows(VkCommandBuffer commands, const RenderSettings& settings, const Tile& tile,
                                  bool with_layers, bool back_again) {
  const VulkanFunctions& vk = device->vk();
  const uint64_t row_bytes = uint64_t(settings.width) * kPixelBytes;
  // Beside each other: the sums of all pixels, then their layers, two values a pixel.
  const auto copy = [&](const DeviceMemory& part, uint64_t kept_at, uint64_t bytes_a_row) {
    const uint64_t from = tile.y * bytes_a_row, bytes = tile.height * bytes_a_row;
    const VkBufferCopy region{back_again ? kept_at + from : from, back_again ? from : kept_at + from, bytes};
    vk.vkCmdCopyBuffer(commands, back_again ? kept->buffer() : part.buffer(),
                       back_again ? part.buffer() : kept->buffer(), 1, &region);
  };
  copy(*sums, 0, row_bytes);
  if (with_layers) copy(*layers, row_bytes * settings.height, 2 * row_bytes);
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                              VK_ACCESS_TRANSFER_WRITE_BIT};
  constexpr VkPipelineStageFlags kBoth = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  vk.vkCmdPipelineBarrier(commands, kBoth, kBoth, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Traces steps of the picture in a world of which some pages are not there. Paths that came to such pages are taken out
// of the sums and traced again, when the pages are there; in tiles, if those of the whole picture do not fit memory.
Result<void> PathTracer::State::trace_paged(const RenderedWorld& world, const View& view,
                                            const RenderSettings& settings, uint32_t first_step, uint32_t steps,
                                            bool with_layers, const Progress& progress) {
  const uint64_t sums_bytes = uint64_t(settings.width) * settings.height * kPixelBytes,
                 layers_bytes = with_layers ? 2 * sums_bytes : 0;
  QRY_TRY(grow(sums, sums_bytes, "quarry path sums"));
  if (with_layers) QRY_TRY(grow(layers, layers_bytes, "quarry path layers"));
  QRY_TRY(grow(kept, sums_bytes + layers_bytes, "quarry path sums, kept"));
  PagedTiles tiles(settings.width, settings.height, kBlock, PagedTiles::edge_for(device->info().type));
  std::optional<Tile> dirty;  // its sums have paths that are to be traced again
  while (const Tile* const tile = tiles.next()) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    QRY_TRY_ASSIGN(auto ready, world.publish());
    Residency* const residency = world.shared.residency();
    QRY_TRY_ASSIGN(auto commands, offscreen->begin());
    if (dirty) keep_rows(commands, settings, *dirty, with_layers, true);
    else keep_rows(commands, settings, *tile, with_layers, false);
    dirty.reset();
    residency->begin(commands);
    QRY_TRY(record(commands, world.shared, view, settings, first_step, steps, with_layers, VK_NULL_HANDLE, kOwnFrame,
                   *tile));
    QRY_TRY(residency->end(commands));
    QRY_TRY(offscreen->submit_and_wait(ready));
    QRY_TRY_ASSIGN(const PagesBrought brought, world.bring_pages());
    if (brought != PagesBrought::none_missing) dirty = *tile;
    QRY_TRY(tiles.settle(brought));
  }
  return {};
}

PathTracer::PathTracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PathTracer::~PathTracer() = default;

Result<std::unique_ptr<PathTracer>> PathTracer::create(Device& device) {
  auto state = std::make_unique<State>();
  state->device = &device;
  QRY_TRY(state->set_up());
  return std::unique_ptr<PathTracer>(new PathTracer(std::move(state)));
}

Result<void> PathTracer::prepare(const RenderedWorld& world) {
  State& s = *state_;
  const LightTree& tree = world.shared.update_lights(world.with_lights(), world.palette);
  if (tree.version() == s.lights_version) return {};
  if (!s.upload) {
    QRY_TRY_ASSIGN(auto upload, Upload::create(*s.device));
    s.upload = std::move(upload);
  }
  uint64_t reached = 0;
  if (!s.on_their_way.empty())
    QRY_TRY(vk_check(s.device->vk().vkGetSemaphoreCounterValue(s.device->handle(), s.copies, &reached),
                     "vkGetSemaphoreCounterValue", "lights"));
  std::erase_if(s.on_their_way, [&](const auto& copy) { return copy.first <= reached; });
  s.lights.reset();
  s.lights_version = 0;
  if (const uint64_t size = tree.image_bytes()) {
    QRY_TRY_ASSIGN(auto memory, DeviceMemory::create(*s.device, BufferMemory::device, size, "quarry lights"));
    const std::vector<uint8_t> image = tree.image(memory->address());
    QRY_TRY_ASSIGN(auto copied, s.upload->submit({{memory->buffer(), 0, size, image.data()}}));
    s.lights = std::move(memory);
    s.on_their_way.emplace_back(copied.value, s.lights);
    s.copies = copied.semaphore;
  }
  s.lights_version = tree.version();
  return {};
}

Result<void> PathTracer::record(VkCommandBuffer commands, SharedWorld& world, const View& view,
                                const RenderSettings& settings, uint32_t first_step, uint32_t steps, VkImageView target,
                                uint32_t frame, const std::optional<Tile>& tile) {
  return state_->record(commands, world, view, settings, first_step, steps, false, target, frame, tile);
}

uint32_t PathTracer::paths_done() const { return state_->paths; }

Result<PathPicture> PathTracer::render(const RenderedWorld& world, const View& view, const RenderSettings& settings,
                                       uint32_t paths, bool layers, const Progress& progress, uint32_t first_path) {
  QRY_TRY(check_settings(settings));
  if (!paths || paths > kMaxPaths || first_path > kMaxPaths - paths)
    return fail(ErrorCode::invalid_argument, std::to_string(uint64_t(first_path) + paths) +
                                                 " paths a pixel: must be 1 to " + std::to_string(kMaxPaths));
  State& s = *state_;
  if (first_path != 0 && first_path != s.paths)
    return fail(ErrorCode::invalid_argument, "path " + std::to_string(first_path) + " does not follow the " +
                                                 std::to_string(s.paths) + " that are done");
  const VulkanFunctions& vk = s.device->vk();
  QRY_TRY_ASSIGN(auto ready, world.publish());
  if (settings.light_tree) QRY_TRY(prepare(world));
  const uint64_t pixels = uint64_t(settings.width) * settings.height, sums_bytes = pixels * kPixelBytes,
                 layers_bytes = layers ? 2 * sums_bytes : 0;
  QRY_TRY(
      ensure_memory(*s.device, s.back, BufferMemory::host_readback, sums_bytes + layers_bytes, "quarry path pixels"));

  constexpr double kWantedSeconds = 0.25;
  // llvmpipe (22.3 at least) silently ends all loops of an invocation after 65,535 rounds in total. With 1024 paths at
  // once pictures lacked light.
  const uint32_t most_at_once = s.device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 4 : 1024;
  const uint32_t wanted = first_path + paths;
  s.paths = first_path;
  for (uint32_t done = first_path, at_once = 1; done < wanted;) {
    if (progress.cancelled())
      return fail(ErrorCode::cancelled,
                  "stopped after " + std::to_string(done) + " of " + std::to_string(wanted) + " paths a pixel");
    const uint32_t count = std::min(at_once, wanted - done);
    const bool last = done + count == wanted;
    const auto start = std::chrono::steady_clock::now();
    s.paths = 0;  // if this fails, the content of the sums is unknown
    if (world.bring_pages) {
      QRY_TRY(s.trace_paged(world, view, settings, done * kStepsAPath, count * kStepsAPath, layers, progress));
      QRY_TRY_ASSIGN(ready, world.publish());
    }
    QRY_TRY_ASSIGN(auto commands, s.offscreen->begin());
    VkImageView target = VK_NULL_HANDLE;
    if (last) {
      QRY_TRY_ASSIGN(auto image, s.offscreen->begin_image(settings.width, settings.height));
      target = image;
    }
    if (!world.bring_pages)
      QRY_TRY(s.record(commands, world.shared, view, settings, done * kStepsAPath, count * kStepsAPath, layers, target,
                       kOwnFrame, {}));
    else if (last) s.show(commands, {0, 0, settings.width, settings.height}, kOwnFrame, wanted * kStepsAPath, target);
    if (last) {
      QRY_TRY(s.offscreen->read_image());
      VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                              VK_ACCESS_TRANSFER_READ_BIT};
      vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                              &barrier, 0, nullptr, 0, nullptr);
      const VkBufferCopy sums_copy{0, 0, sums_bytes}, layers_copy{0, sums_bytes, layers_bytes};
      vk.vkCmdCopyBuffer(commands, s.sums->buffer(), s.back->buffer(), 1, &sums_copy);
      if (layers) vk.vkCmdCopyBuffer(commands, s.layers->buffer(), s.back->buffer(), 1, &layers_copy);
      host_read_barrier(vk, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    }
    QRY_TRY(s.offscreen->submit_and_wait(ready));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    s.paths = done += count;
    progress.say("tracing paths", double(done - first_path) / paths);
    if (seconds < kWantedSeconds / 2) at_once = std::min(at_once * 2, most_at_once);
    else if (seconds > kWantedSeconds * 2) at_once = std::max(at_once / 2, 1u);
  }

  PathPicture out;
  out.picture = s.offscreen->picture();
  const auto* sums = static_cast<const float*>(s.back->mapped());
  const float share = 1.0f / float(wanted);
  out.radiance.resize(pixels * 4);
  for (uint64_t i = 0; i < pixels * 4; ++i) out.radiance[i] = sums[i] * share;
  if (layers) {
    const float* layer = sums + pixels * 4;
    out.albedo.resize(pixels * 3);
    out.normal.resize(pixels * 3);
    out.depth.resize(pixels);
    for (uint64_t i = 0; i < pixels; ++i, layer += 8) {
      const float hits = layer[7];
      for (uint64_t c = 0; c < 3; ++c) {
        out.albedo[i * 3 + c] = layer[c] * share;
        out.normal[i * 3 + c] = layer[4 + c] * share;
      }
      out.depth[i] = hits > 0 ? layer[3] / hits : std::numeric_limits<float>::infinity();
    }
  }
  return out;
}

}  // namespace quarry::engine
