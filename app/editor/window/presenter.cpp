// SPDX-License-Identifier: Apache-2.0
// presenter.cpp - records and submits frames, keeps images until the timeline has passed them, and copies the screen
// for screenshots.
#include "app/editor/window/presenter.hpp"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_vulkan.h>

#include <algorithm>
#include <cstring>

#include "app/editor/window/vulkan_prototypes.hpp"
#include "engine/render/frame_settings.hpp"

namespace quarry::app {
Result<std::unique_ptr<Presenter>> Presenter::create(engine::Device& device, engine::Renderer& renderer,
                                                     VkSurfaceKHR surface, uint32_t width, uint32_t height) {
  std::unique_ptr<Presenter> presenter(new Presenter(device, renderer, surface));
  QRY_TRY(presenter->set_up(width, height));
  return presenter;
}

Presenter::Presenter(engine::Device& device, engine::Renderer& renderer, VkSurfaceKHR surface)
    : device_(device), renderer_(renderer), surface_(surface) {}

Result<void> Presenter::set_up(uint32_t width, uint32_t height) {
  const VkDevice handle = device_.handle();
  VkBool32 shows = VK_FALSE;
  vkGetPhysicalDeviceSurfaceSupportKHR(device_.physical_device(), device_.queue_family(), surface_, &shows);
  if (!shows)
    return fail(ErrorCode::unsupported,
                device_.info().name + " cannot show pictures in this window; choose another with --device");
  QRY_TRY_ASSIGN(auto format, choose_surface_format(device_.physical_device(), surface_));
  format_ = format;

  // The picture is already in the image when the pass begins. The panels are drawn over it.
  VkAttachmentDescription color{};
  color.format = format_.format;
  color.samples = VK_SAMPLE_COUNT_1_BIT;
  color.loadOp = VK_ATTACHMENT_LOAD_OP_LOAD;
  color.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  color.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  color.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  color.initialLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  color.finalLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
  const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &reference;
  const VkSubpassDependency dependencies[] = {
      {VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
       VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0},
      {0, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
       VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0}};
  auto pass = of_type<VkRenderPassCreateInfo>(VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO);
  pass.attachmentCount = 1;
  pass.pAttachments = &color;
  pass.subpassCount = 1;
  pass.pSubpasses = &subpass;
  pass.dependencyCount = 2;
  pass.pDependencies = dependencies;
  QRY_TRY(checked(vkCreateRenderPass(handle, &pass, nullptr, &render_pass_), "vkCreateRenderPass"));

  QRY_TRY_ASSIGN(auto timeline, engine::Timeline::create(device_, "quarry editor"));
  timeline_ = std::move(timeline);
  for (Slot& slot : slots_) {
    QRY_TRY_ASSIGN(auto commands, engine::Commands::create(device_, "the window"));
    slot.commands = std::move(commands);
    const VkSemaphoreCreateInfo binary{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, nullptr, 0};
    QRY_TRY(checked(vkCreateSemaphore(handle, &binary, nullptr, &slot.acquired), "vkCreateSemaphore"));
  }

  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(device_.physical_device(), &properties);
  uint32_t family_count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device_.physical_device(), &family_count, nullptr);
  std::vector<VkQueueFamilyProperties> families(family_count);
  vkGetPhysicalDeviceQueueFamilyProperties(device_.physical_device(), &family_count, families.data());
  if (device_.queue_family() < family_count && families[device_.queue_family()].timestampValidBits > 0) {
    nanoseconds_per_tick_ = properties.limits.timestampPeriod;
    auto queries = of_type<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2 * (kFrames + 1);
    QRY_TRY(checked(vkCreateQueryPool(handle, &queries, nullptr, &times_), "vkCreateQueryPool"));
  } else {
    picture_ms_ = tile_ms_ = -1;
  }
  QRY_TRY(remake_swapchain(width, height));
  return set_up_panels();
}

Result<void> Presenter::set_up_panels() {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 8};
  const VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                        nullptr,
                                        VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
                                        8,
                                        1,
                                        &size};
  QRY_TRY(checked(vkCreateDescriptorPool(device_.handle(), &pool, nullptr, &descriptors_), "vkCreateDescriptorPool"));
  ImGui_ImplVulkan_InitInfo info{};
  info.Instance = device_.instance();
  info.PhysicalDevice = device_.physical_device();
  info.Device = device_.handle();
  info.QueueFamily = device_.queue_family();
  info.Queue = device_.queue();
  info.DescriptorPool = descriptors_;
  info.MinImageCount = 2;
  info.ImageCount = kFrames;  // the backend keeps as many vertex buffers: one per frame in flight
  info.MSAASamples = VK_SAMPLE_COUNT_1_BIT;
  if (!ImGui_ImplVulkan_Init(&info, render_pass_))
    return fail(ErrorCode::device, "Dear ImGui's Vulkan backend could not be set up");
  panels_ready_ = true;
  // The font texture is copied to the device once, before the first frame.
  Slot& slot = slots_[0];
  QRY_TRY_ASSIGN(auto commands, slot.commands->begin());
  if (!ImGui_ImplVulkan_CreateFontsTexture(commands))
    return fail(ErrorCode::device, "the letters' texture could not be made");
  QRY_TRY(slot.commands->end());
  slot.value = timeline_->next();
  QRY_TRY(device_.submit(commands, {}, {{timeline_->handle(), slot.value}}));
  QRY_TRY(wait_for(slot.value));
  ImGui_ImplVulkan_DestroyFontUploadObjects();
  return {};
}

Presenter::~Presenter() {
  const VkDevice handle = device_.handle();
  if (timeline_) (void)wait_for(submitted());
  if (swapchain_.handle) {
    // Presentation signals no semaphore that could be waited for here. So this is the one place where the whole device
    // is waited for, at the end.
    device_.lock_queue();
    vkDeviceWaitIdle(handle);
    device_.unlock_queue();
  }
  for (auto& [value, destroy] : retired_) destroy();
  if (panels_ready_) ImGui_ImplVulkan_Shutdown();
  for (auto& [frame, old] : old_swapchains_) destroy_swapchain(handle, old);
  destroy_swapchain(handle, swapchain_);
  for (Slot& slot : slots_)
    if (slot.acquired) vkDestroySemaphore(handle, slot.acquired, nullptr);
  if (times_) vkDestroyQueryPool(handle, times_, nullptr);
  if (descriptors_) vkDestroyDescriptorPool(handle, descriptors_, nullptr);
  if (render_pass_) vkDestroyRenderPass(handle, render_pass_, nullptr);
  vkDestroySurfaceKHR(device_.instance(), surface_, nullptr);
}

Result<void> Presenter::remake_swapchain(uint32_t width, uint32_t height) {
  QRY_TRY_ASSIGN(auto made,
                 create_swapchain(device_, surface_, format_, render_pass_, width, height, swapchain_.handle));
  if (swapchain_.handle) {
    // A presented image may be shown a little longer than its frame takes. A few frames more are enough, and the
    // swapchain is destroyed when those are done.
    old_swapchains_.emplace_back(frames_ + 3 * kFrames, std::move(swapchain_));
  }
  swapchain_ = std::move(made);
  stale_ = false;
  return {};
}

uint64_t Presenter::completed() const { return timeline_->reached().value_or(0); }

Result<void> Presenter::wait_for(uint64_t value) { return timeline_->wait(value); }

void Presenter::retire(std::function<void()> destroy) { retired_.emplace_back(submitted(), std::move(destroy)); }

Result<void> Presenter::begin() {
  Slot& slot = slots_[slot_index()];
  const bool software = device_.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Slot& before = slots_[(frames_ + kFrames - 1) % kFrames];
  QRY_TRY(wait_for(software ? before.value : slot.value));
  for (uint32_t i = 0; i < kFrames; ++i)  // the finished ones, the oldest first
    if (const auto at = uint32_t((frames_ + i) % kFrames); slots_[at].value <= completed())
      if (const double ms = read_times(slots_[at], at); ms > 0)
        picture_ms_ = ms, picture_steps_ = slots_[at].steps, picture_rays_ = slots_[at].rays, ++pictures_done_;
  const uint64_t done_value = completed();
  std::erase_if(retired_, [&](auto& entry) {
    if (entry.first > done_value) return false;
    entry.second();
    return true;
  });
  std::erase_if(old_swapchains_, [&](auto& entry) {
    if (entry.first > frames_) return false;
    destroy_swapchain(device_.handle(), entry.second);
    return true;
  });
  if (panels_ready_) ImGui_ImplVulkan_NewFrame();
  return {};
}

double Presenter::read_times(Slot& slot, uint32_t slot_index) {
  if (!times_ || !slot.has_times) return 0;
  slot.has_times = false;
  uint64_t ticks[2]{};
  if (vkGetQueryPoolResults(device_.handle(), times_, slot_index * 2, 2, sizeof ticks, ticks, sizeof ticks[0],
                            VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
    return 0;
  return double(ticks[1] - ticks[0]) * nanoseconds_per_tick_ * 1e-6;
}

Result<engine::TargetImage*> Presenter::scene_image(uint32_t width, uint32_t height) {
  for (const auto& image : scene_images_)
    if (image->width() == width && image->height() == height) return image.get();
  // A few sizes are kept, one per step of the resolution. A window being resized creates many; the oldest are removed.
  constexpr size_t kKept = 5;
  if (scene_images_.size() >= kKept) {
    auto oldest = scene_images_.begin();
    if (oldest->get() == shown_) ++oldest;
    std::shared_ptr<engine::TargetImage> old = std::move(*oldest);
    scene_images_.erase(oldest);
    retire([old]() mutable { old.reset(); });
  }
  QRY_TRY_ASSIGN(auto made, engine::TargetImage::create(device_, width, height));
  scene_images_.push_back(std::move(made));
  return scene_images_.back().get();
}

Result<bool> Presenter::draw(const FrameRequest& request, uint32_t window_width, uint32_t window_height) {
  if (window_width == 0 || window_height == 0) return false;
  if (!swapchain_.handle || stale_ || swapchain_.width != window_width || swapchain_.height != window_height)
    QRY_TRY(remake_swapchain(window_width, window_height));
  if (!swapchain_.handle) return false;

  Slot& slot = slots_[slot_index()];
  uint32_t image = 0;
  const VkResult acquired =
      vkAcquireNextImageKHR(device_.handle(), swapchain_.handle, UINT64_MAX, slot.acquired, VK_NULL_HANDLE, &image);
  if (acquired == VK_ERROR_OUT_OF_DATE_KHR) {
    stale_ = true;
    return false;
  }
  if (acquired == VK_SUBOPTIMAL_KHR) stale_ = true;
  else QRY_TRY(checked(acquired, "vkAcquireNextImageKHR"));
  if (request.screenshot) QRY_TRY(prepare_screenshot());
  QRY_TRY(record(slot, slot_index(), image, request));

  slot.value = submitted() + 1;
  std::vector<VkSemaphore> wait{slot.acquired};
  std::vector<VkPipelineStageFlags> stages{VK_PIPELINE_STAGE_TRANSFER_BIT |
                                           VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT};
  std::vector<uint64_t> wait_values{0};
  if (request.scene && request.scene->wait.value > 0) {
    wait.push_back(request.scene->wait.semaphore);
    wait_values.push_back(request.scene->wait.value);
    stages.push_back(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
  }
  const VkSemaphore signal[] = {swapchain_.drawn[image], timeline_->handle()};
  const uint64_t signal_values[] = {0, slot.value};
  auto values = of_type<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.waitSemaphoreValueCount = uint32_t(wait_values.size());
  values.pWaitSemaphoreValues = wait_values.data();
  values.signalSemaphoreValueCount = 2;
  values.pSignalSemaphoreValues = signal_values;
  auto submit = of_type<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.pNext = &values;
  submit.waitSemaphoreCount = uint32_t(wait.size());
  submit.pWaitSemaphores = wait.data();
  submit.pWaitDstStageMask = stages.data();
  const VkCommandBuffer commands = slot.commands->handle();
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  submit.signalSemaphoreCount = 2;
  submit.pSignalSemaphores = signal;
  auto present = of_type<VkPresentInfoKHR>(VK_STRUCTURE_TYPE_PRESENT_INFO_KHR);
  present.waitSemaphoreCount = 1;
  present.pWaitSemaphores = &swapchain_.drawn[image];
  present.swapchainCount = 1;
  present.pSwapchains = &swapchain_.handle;
  present.pImageIndices = &image;
  device_.lock_queue();
  const VkResult submitted = vkQueueSubmit(device_.queue(), 1, &submit, VK_NULL_HANDLE);
  const VkResult presented = submitted == VK_SUCCESS ? vkQueuePresentKHR(device_.queue(), &present) : VK_SUCCESS;
  device_.unlock_queue();
  QRY_TRY(checked(submitted, "vkQueueSubmit"));
  timeline_->next();
  ++frames_;
  if (request.scene)
    request.scene->world->frame_submitted(slot.value, engine::reads_grid(request.scene->settings.view));
  if (presented == VK_ERROR_OUT_OF_DATE_KHR || presented == VK_SUBOPTIMAL_KHR) stale_ = true;
  else QRY_TRY(checked(presented, "vkQueuePresentKHR"));
  return true;
}

// Recorded between two timestamps.
Result<void> Presenter::record_scene(VkCommandBuffer commands, Slot& slot, uint32_t slot_index,
                                     const FrameRequest::Scene& wanted, engine::TargetImage* target) {
  if (times_) {
    vkCmdResetQueryPool(commands, times_, slot_index * 2, 2);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, times_, slot_index * 2);
  }
  const VkImageView view = target ? target->view() : VK_NULL_HANDLE;
  QRY_TRY(engine::record_reached(
      commands, *wanted.world, wanted.view, wanted.settings, submitted() + 1, [&]() -> Result<void> {
        return wanted.tracer ? wanted.tracer->record(commands, *wanted.world, wanted.view, wanted.settings,
                                                     wanted.first_step, wanted.steps, view, slot_index, wanted.tile)
                             : renderer_.record(commands, *wanted.world, wanted.view, wanted.settings, view, slot_index,
                                                wanted.tile);
      }));
  if (times_) vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times_, slot_index * 2 + 1);
  slot.has_times = times_ != VK_NULL_HANDLE;
  slot.steps = wanted.tracer ? wanted.steps : 0;
  slot.rays = wanted.tracer ? 0
                            : double(wanted.settings.width) * wanted.settings.height * wanted.settings.samples *
                                  wanted.settings.samples;
  return {};
}

// Copies the whole of `from`, stretched over these pixels of `to`. Both are in their layouts for copies.
void Presenter::blit(VkCommandBuffer commands, const engine::TargetImage& from, VkImage to, int x, int y, int right,
                     int bottom) {
  VkImageBlit blit{};
  blit.srcSubresource = blit.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  blit.srcOffsets[1] = {int32_t(from.width()), int32_t(from.height()), 1};
  blit.dstOffsets[0] = {x, y, 0};
  blit.dstOffsets[1] = {right, bottom, 1};
  const bool stretched = from.width() != uint32_t(right - x) || from.height() != uint32_t(bottom - y);
  vkCmdBlitImage(commands, from.image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, to, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                 1, &blit, stretched ? VK_FILTER_LINEAR : VK_FILTER_NEAREST);
}

Result<bool> Presenter::tile_done(double seconds) {
  Slot& slot = slots_[kTileFrame];
  auto done = timeline_->wait(slot.value, uint64_t(seconds * 1e9));
  if (done && *done)
    if (const double ms = read_times(slot, kTileFrame); ms > 0) tile_ms_ = ms;
  return done;
}

Result<void> Presenter::draw_tile(const FrameRequest::Scene& scene) {
  Slot& slot = slots_[kTileFrame];
  QRY_TRY_ASSIGN(auto begun, slot.commands->begin());
  const VkCommandBuffer commands = begun;
  constexpr auto kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr auto kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  engine::TargetImage* target = nullptr;
  if (scene.show) {
    QRY_TRY_ASSIGN(auto image, scene_image(scene.settings.width, scene.settings.height));
    target = image;
    // All work is on one queue, so these barriers also keep the picture from being overwritten while an earlier frame
    // copies it.
    const bool kept = shown_ == target;
    if (kept) {
      engine::image_barrier(device_.vk(), commands, target->image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                            VK_IMAGE_LAYOUT_GENERAL, kTransfer, 0, kCompute, VK_ACCESS_SHADER_WRITE_BIT);
    } else {
      engine::image_barrier(device_.vk(), commands, target->image(), VK_IMAGE_LAYOUT_UNDEFINED,
                            VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, kTransfer, 0, kTransfer,
                            VK_ACCESS_TRANSFER_WRITE_BIT);
      if (shown_) {
        blit(commands, *shown_, target->image(), 0, 0, int(target->width()), int(target->height()));
      } else {
        const VkClearColorValue dark{};
        const VkImageSubresourceRange whole{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        vkCmdClearColorImage(commands, target->image(), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &dark, 1, &whole);
      }
      engine::image_barrier(device_.vk(), commands, target->image(), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                            VK_IMAGE_LAYOUT_GENERAL, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kCompute,
                            VK_ACCESS_SHADER_WRITE_BIT);
    }
  }
  QRY_TRY(record_scene(commands, slot, kTileFrame, scene, target));
  if (target) {
    engine::image_barrier(device_.vk(), commands, target->image(), VK_IMAGE_LAYOUT_GENERAL,
                          VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kTransfer,
                          VK_ACCESS_TRANSFER_READ_BIT);
    shown_ = target;
  }
  QRY_TRY(slot.commands->end());
  const uint64_t value = submitted() + 1;
  QRY_TRY(device_.submit(commands, {scene.wait}, {{timeline_->handle(), value}}));
  slot.value = timeline_->next();
  scene.world->frame_submitted(slot.value, engine::reads_grid(scene.settings.view));
  return {};
}

Result<void> Presenter::record(Slot& slot, uint32_t slot_index, uint32_t image_index, const FrameRequest& request) {
  QRY_TRY_ASSIGN(auto begun, slot.commands->begin());
  const VkCommandBuffer commands = begun;
  constexpr auto kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr auto kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

  if (request.scene) {
    const FrameRequest::Scene& wanted = *request.scene;
    engine::TargetImage* scene = nullptr;
    if (wanted.show) {
      QRY_TRY_ASSIGN(auto target, scene_image(wanted.settings.width, wanted.settings.height));
      scene = target;
      // All frames are on one queue, so this barrier also keeps the picture from being overwritten while an earlier
      // frame copies it.
      engine::image_barrier(device_.vk(), commands, scene->image(), VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL,
                            kTransfer, 0, kCompute, VK_ACCESS_SHADER_WRITE_BIT);
    }
    QRY_TRY(record_scene(commands, slot, slot_index, wanted, scene));
    if (scene) {
      engine::image_barrier(device_.vk(), commands, scene->image(), VK_IMAGE_LAYOUT_GENERAL,
                            VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kTransfer,
                            VK_ACCESS_TRANSFER_READ_BIT);
      shown_ = scene;
    }
  }

  const VkImage screen = swapchain_.images[image_index];
  engine::image_barrier(device_.vk(), commands, screen, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                        kTransfer, 0, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT);
  VkClearColorValue background{};
  std::copy_n(request.background, 4, background.float32);
  const VkImageSubresourceRange whole{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vkCmdClearColorImage(commands, screen, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &background, 1, &whole);
  const PixelRect& at = request.viewport;
  const int right = std::min(at.x + at.width, int(swapchain_.width)),
            bottom = std::min(at.y + at.height, int(swapchain_.height));
  if (shown_ && right > at.x && bottom > at.y && at.x >= 0 && at.y >= 0) {
    engine::image_barrier(device_.vk(), commands, screen, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                          VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kTransfer,
                          VK_ACCESS_TRANSFER_WRITE_BIT);
    blit(commands, *shown_, screen, at.x, at.y, right, bottom);
  }

  auto pass = of_type<VkRenderPassBeginInfo>(VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO);
  pass.renderPass = render_pass_;
  pass.framebuffer = swapchain_.framebuffers[image_index];
  pass.renderArea.extent = {swapchain_.width, swapchain_.height};
  vkCmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
  if (request.panels) ImGui_ImplVulkan_RenderDrawData(request.panels, commands);
  vkCmdEndRenderPass(commands);
  if (request.screenshot) copy_screen(commands, screen);
  return slot.commands->end();
}

Result<void> Presenter::prepare_screenshot() {
  if (!swapchain_.readable)
    return fail(ErrorCode::unsupported, "this window's images cannot be read back, so there is no screenshot");
  QRY_TRY(wait_for(screenshot_.value));
  const uint64_t bytes = uint64_t(swapchain_.width) * swapchain_.height * 4;
  QRY_TRY(engine::ensure_memory(device_, screenshot_.pixels, engine::BufferMemory::host_readback, bytes,
                                "quarry screenshot"));
  screenshot_.width = swapchain_.width;
  screenshot_.height = swapchain_.height;
  screenshot_.bgra = format_.format == VK_FORMAT_B8G8R8A8_UNORM;
  screenshot_.value = submitted() + 1;
  return {};
}

void Presenter::copy_screen(VkCommandBuffer commands, VkImage image) {
  engine::image_barrier(device_.vk(), commands, image, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR,
                        VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
                        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_ACCESS_TRANSFER_READ_BIT);
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {screenshot_.width, screenshot_.height, 1};
  vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, screenshot_.pixels->buffer(), 1,
                         &region);
  engine::image_barrier(device_.vk(), commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                        VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                        VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0);
  engine::host_read_barrier(device_.vk(), commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
}

Result<engine::Picture> Presenter::take_screenshot() {
  if (!screenshot_.pixels) return fail(ErrorCode::invalid_argument, "no frame was drawn for a screenshot");
  QRY_TRY(wait_for(screenshot_.value));
  engine::Picture picture;
  picture.width = screenshot_.width;
  picture.height = screenshot_.height;
  const auto* first = static_cast<const uint8_t*>(screenshot_.pixels->mapped());
  picture.rgba.assign(first, first + uint64_t(picture.width) * picture.height * 4);
  for (size_t i = 0; i < picture.rgba.size(); i += 4) {
    if (screenshot_.bgra) std::swap(picture.rgba[i], picture.rgba[i + 2]);
    picture.rgba[i + 3] = 255;
  }
  return picture;
}

}  // namespace quarry::app
