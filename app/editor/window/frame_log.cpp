// SPDX-License-Identifier: Apache-2.0
// frame_log.cpp - writes the lines. Each is flushed at once, so the log of a killed editor is complete.
#include "app/editor/window/frame_log.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace quarry::app {

FrameLog::FrameLog() {
  if (const char* name = std::getenv("QUARRY_EDITOR_LOG"); name && *name) file_.reset(std::fopen(name, "w"));
}

double FrameLog::now() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun_).count();
}

void FrameLog::frame(double waited, double input, double prepared, double drawn, double rays, double ms) {
  if (!file_) return;
  fmt::print(file_.get(),
             R"({{"at": {:.1f}, "frame": {{"waited": {:.2f}, "heard": {:.2f}, "prepared": {:.2f}, "drawn": {:.2f}, )"
             R"("rays": {:.0f}, "ms": {:.2f}}}}})"
             "\n",
             now(), waited, input, prepared, drawn, rays, ms);
  std::fflush(file_.get());
}

void FrameLog::tile(const engine::Tile& tile, uint32_t width, uint32_t height, uint32_t steps, double ms) {
  if (!file_) return;
  fmt::print(file_.get(),
             R"({{"at": {:.1f}, "tile": {{"x": {}, "y": {}, "width": {}, "height": {}, "of": [{}, {}], )"
             R"("steps": {}, "ms": {:.2f}}}}})"
             "\n",
             now(), tile.x, tile.y, tile.width, tile.height, width, height, steps, ms);
  std::fflush(file_.get());
}

void FrameLog::session(const Session& now_there) {
  if (!file_ || now_there == last_) return;
  last_ = now_there;
  fmt::print(file_.get(),
             R"({{"at": {:.1f}, "session": {{"home": "{}", "edits": {}, "undone": {}, "redone": {}, "opened": {}, )"
             R"("saved": {}, "published": {}, "voxels": {}, "history_bytes": {}, "device_bytes": {}, "unsaved": {}, )"
             R"("asks": {}, "complains": {}}}}})"
             "\n",
             now(), last_.home, last_.edits, last_.undone, last_.redone, last_.opened, last_.saved, last_.published,
             last_.voxels, last_.history_bytes, last_.device_bytes, last_.unsaved, last_.asks, last_.complains);
  std::fflush(file_.get());
}

}  // namespace quarry::app
