// SPDX-License-Identifier: Apache-2.0
// statistics.hpp - the panel of numbers: statistics of the hash grid, the world and the renderer.
#pragma once

#include <chrono>
#include <cstdint>

#include "app/editor/panels/refinement.hpp"
#include "app/editor/session/document_session.hpp"
#include "app/editor/window/presenter.hpp"
#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

// The contents of the statistics panel. They are taken again when the world has changed, at most a few times a second.
struct Statistics {
  hashgrid::Stats grid;
  uint64_t voxels = 0, bricks = 0, world_bytes = 0, spare_bytes = 0, device_bytes = 0, world_version = ~uint64_t(0);
  uint64_t history_bytes = 0;                           // as the history's budget counts
  uint64_t to_device_bytes = 0, from_device_bytes = 0;  // over the bus, of a world at home on a device
  device::StepTimes edit_times;                         // of the last edit, undo or redo there, while they are timed
  double hand_overs_a_second = 0;                       // of the world's memory, from CUDA to Vulkan
  Document::Holdings holdings;
  engine::ResidentPages::Counters pages;  // of a document in parts
  std::chrono::steady_clock::time_point taken;
};

// What the panel reads; and the debug view and whether a table is open, which are chosen in it.
struct StatisticsPanel {
  const Statistics& statistics;
  const Resolution& resolution;
  const Convergence& convergence;
  const Presenter& presenter;
  const engine::SharedWorld& shared;
  const Session& session;
  const engine::Device& device;
  double frame_ms;
  uint64_t history_budget;  // bytes; 0: no limit
  engine::DebugView& view;
  bool& times_shown;  // the table of the last edit's stages is open: edits are to be timed
};
void draw_statistics(const StatisticsPanel& shown);

}  // namespace quarry::app
