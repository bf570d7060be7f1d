// SPDX-License-Identifier: Apache-2.0
// flight.cpp - the camera's path and stops, and what is measured and compared there.
#include "bench/flight.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <quarry/quarry.h>

#include "bench/engine_frames.hpp"

namespace quarry::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "quarry bench world: flight: %s\n", what.c_str());
  std::exit(1);
}

void require(qry_result result, const char* call) {
  if (result != QRY_OK) give_up(std::string(call) + ": " + qry_last_error());
}

// Of values that need not be sorted.
double share_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, size_t(share * double(values.size())));
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(at), values.end());
  return values[at];
}

constexpr size_t kWaits = std::size(decltype(qry_paging_state::waits){});

struct View {
  std::array<double, 3> position, target;
};

constexpr std::array<uint32_t, 2> kLarge{1920, 1080}, kSmall{192, 108};  // pixels

// What the host waited for from the begin of a frame to the next one's.
struct FrameMs {
  double stream = 0, publish = 0, record = 0;  // calls; the last with the submission
  double frames_before = 0;                    // until the third frame before is done
  double all() const { return stream + publish + record + frames_before; }
};

// A world in an engine, and what its frames took.
class Flown {
 public:
  Flown(const Flight& flight, uint64_t budget_bytes)
      : small_(flight.small),
        width_((small_ ? kSmall : kLarge)[0]),
        height_((small_ ? kSmall : kLarge)[1]),
        frames_(EngineFrames::create(width_, height_)) {
    if (!frames_) give_up("it needs a Vulkan driver");
    const qry_vulkan_device_info device = frames_->device_info();
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.next = &device;
    require(qry_context_create(QRY_ABI_VERSION, &info, &context_), "qry_context_create");
    qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
    budget.bytes = budget_bytes;
    qry_host_budget_info host = QRY_HOST_BUDGET_INFO_INIT;
    host.bytes = flight.host_bytes;
    budget.next = &host;
    qry_world_home_info home = QRY_WORLD_HOME_INFO_INIT;
    home.next = &budget;
    home.home = flight.home;
    qry_open_info open = QRY_OPEN_INFO_INIT;
    open.next = &home;
    open.path = flight.path.c_str();
    const auto start = Clock::now();
    require(qry_world_open(context_, &open, &world_), "qry_world_open");
    opened_ms = ms_since(start);
    qry_recorder_info slots = QRY_RECORDER_INFO_INIT;
    slots.slots = EngineFrames::kUnderWay;
    require(qry_recorder_create(context_, &slots, &recorder_), "qry_recorder_create");
  }
  ~Flown() {
    frames_->finish();
    qry_recorder_destroy(&recorder_);
    qry_world_destroy(&world_);
    qry_context_destroy(&context_);
  }
  Flown(const Flown&) = delete;
  Flown& operator=(const Flown&) = delete;

  qry_world_state state() const {
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require(qry_world_get_state(world_, &state), "qry_world_get_state");
    return state;
  }

  // Publishes, records and submits, and between two frames brings what the last ones wanted.
  qry_stream_state frame(const View& view) {
    FrameMs ms;
    auto last = Clock::now();
    const auto part = [&] {
      const auto now = Clock::now();
      return std::chrono::duration<double, std::milli>(now - std::exchange(last, now)).count();
    };
    qry_stream_state streamed = QRY_STREAM_STATE_INIT;
    require(qry_world_stream(world_, nullptr, &streamed), "qry_world_stream");
    ms.stream = part();
    if (streamed.brought_pages) stream_ms.push_back(ms.stream);
    brought_bytes += streamed.brought_bytes;
    qry_published published = QRY_PUBLISHED_INIT;
    require(qry_world_publish(world_, &published), "qry_world_publish");
    ms.publish = part();
    const qry_record_info record = frames_->begin();
    ms.frames_before = part();
    qry_look_info look = QRY_LOOK_INFO_INIT;
    look.background = QRY_BACKGROUND_NONE;
    qry_render_info render = QRY_RENDER_INFO_INIT;
    render.next = &look;
    render.width = width_, render.height = height_;
    for (size_t axis = 0; axis < 3; ++axis)
      render.camera.position[axis] = view.position[axis], render.camera.target[axis] = view.target[axis];
    require(qry_record_frame(recorder_, world_, &render, &record), "qry_record_frame");
    frames_->submit(published);
    ms.record = part();
    frame_ms.push_back(ms);
    return streamed;
  }

  // Until what its frames want is there. Frames tell so when they are done, and may then come to what is behind it.
  double stop(const View& view, std::vector<uint8_t>& arrived, std::vector<uint8_t>& there) {
    frame(view);
    arrived = frames_->picture();
    const auto start = Clock::now();
    double done = 0;
    for (uint64_t quiet = 0; quiet <= EngineFrames::kUnderWay;) {
      const qry_stream_state streamed = frame(view);
      const bool idle = streamed.brought_pages == 0 && streamed.missing_pages == 0;
      quiet = idle ? quiet + 1 : 0;
      if (!idle) done = ms_since(start);
      if (ms_since(start) > (small_ ? 120'000 : 5'000)) give_up("full detail did not come to a stop");
    }
    there = frames_->picture();
    return done;
  }

  // A ball around a place, until a frame from `view` shows it.
  double edit(const std::array<int32_t, 3>& at, const View& view) {
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.mode = QRY_MODE_FILL;
    edit.material = 200;
    std::copy(at.begin(), at.end(), edit.a);
    edit.radius = 64;
    const auto start = Clock::now();
    uint64_t changed = 0;
    require(qry_world_edit(world_, &edit, &changed), "qry_world_edit");
    edited_ms.push_back(ms_since(start));
    frame(view);
    frames_->finish();
    const double ms = ms_since(start);
    if (changed == 0) give_up("an edit has changed nothing");
    return ms;
  }
  // The pages around it come, and leave again when others are needed.
  void prefetch(const std::array<int32_t, 3>& at, const View& view) {
    std::array<int32_t, 3> low = at, high = at;
    for (size_t axis = 0; axis < 3; ++axis) low[axis] -= 64, high[axis] += 64;
    require(qry_world_prefetch(world_, low.data(), high.data()), "qry_world_prefetch");
    frame(view);  // it publishes: what has left for them is free then
  }
  void undo() { require(qry_world_undo(world_, nullptr), "qry_world_undo"); }

  qry_home_state home(qry_paging_state& paging, qry_page_cache_state& cache) const {
    cache = QRY_PAGE_CACHE_STATE_INIT;
    paging = QRY_PAGING_STATE_INIT;
    paging.next = &cache;
    qry_home_state home = QRY_HOME_STATE_INIT;
    home.next = &paging;
    require(qry_world_get_home(world_, &home), "qry_world_get_home");
    return home;
  }

  double opened_ms = 0;
  std::vector<FrameMs> frame_ms;
  std::vector<double> stream_ms, edited_ms;
  uint64_t brought_bytes = 0;

 private:
  bool small_;
  uint32_t width_, height_;
  std::unique_ptr<EngineFrames> frames_;
  qry_context* context_ = nullptr;
  qry_world* world_ = nullptr;
  qry_recorder* recorder_ = nullptr;
};

// From around the world into it, along the axes through its middle, and out again.
std::vector<View> stops_in(const qry_world_state& state, int count) {
  const auto at = [&](std::array<double, 3> part) {
    for (size_t axis = 0; axis < 3; ++axis)
      part[axis] = state.min[axis] + part[axis] * (double(state.max[axis]) - state.min[axis]);
    return part;
  };
  std::vector<View> stops;
  for (int i = 0; i < count; ++i) {
    const auto along = size_t(i % 3);
    std::array<double, 3> position{0.5, 0.5, 0.5}, target{0.5, 0.5, 0.5};
    position[along] = std::fmod(0.17 + 0.37 * i, 1.5) - 0.25;
    target[(along + 1) % 3] = std::fmod(0.29 * i, 1.0);
    target[(along + 2) % 3] = std::fmod(0.43 * i + 0.2, 1.0);
    if (i % 5 == 0) position[(along + 1) % 3] = 1.6;
    stops.push_back({at(position), at(target)});
  }
  return stops;
}

View between(const View& from, const View& to, double part) {
  View view = from;
  for (size_t axis = 0; axis < 3; ++axis) {
    view.position[axis] += part * (to.position[axis] - from.position[axis]);
    view.target[axis] += part * (to.target[axis] - from.target[axis]);
  }
  return view;
}

struct Pictures {
  std::vector<std::vector<uint8_t>> arrived, there;
};

}  // namespace

void fly(const Flight& flight, const AddRow& add) {
  const int count = flight.small ? 4 : 24;
  const double leg_ms = 1500;
  const int leg_frames = flight.small ? 6 : 0;  // 0: by the clock
  std::array<Pictures, 2> pictures;             // of the world in parts, of the whole one
  qry_paging_state paging = QRY_PAGING_STATE_INIT;
  qry_page_cache_state cache = QRY_PAGE_CACHE_STATE_INIT;
  // From stop to stop.
  const auto lap = [&](Flown& flown, const std::string& row, Pictures* into) {
    flown.frame_ms.clear(), flown.stream_ms.clear(), flown.brought_bytes = 0;
    flown.home(paging, cache);
    const qry_paging_state before = paging;
    const qry_page_cache_state cache_before = cache;
    const std::vector<View> stops = stops_in(flown.state(), count);
    std::vector<double> stop_ms, leg_frame_ms;
    FrameMs worst;
    uint64_t most_bytes = 0;
    double flown_ms = 0;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (i > 0) {
        const size_t first = flown.frame_ms.size();
        const auto start = Clock::now();
        int frames = 0;
        for (double part = 0; part < 1; ++frames) {
          part = leg_frames ? double(frames) / leg_frames : ms_since(start) / leg_ms;
          flown.frame(between(stops[i - 1], stops[i], std::min(part, 1.0)));
        }
        flown_ms += ms_since(start);
        for (const FrameMs& frame : std::span(flown.frame_ms).subspan(first)) {
          leg_frame_ms.push_back(frame.all());
          if (frame.all() > worst.all()) worst = frame;
        }
      }
      std::vector<uint8_t> arrived, there;
      stop_ms.push_back(flown.stop(stops[i], arrived, there));
      if (into) {
        into->arrived.push_back(std::move(arrived));
        into->there.push_back(std::move(there));
      }
      most_bytes = std::max(most_bytes, flown.home(paging, cache).device_bytes);
    }
    add(row + ": frames", double(leg_frame_ms.size()) / flown_ms * 1000, "a second");
    add(row + ": a frame", share_of(leg_frame_ms, 0.5), "ms");
    add(row + ": a frame, 99%", share_of(leg_frame_ms, 0.99), "ms");
    add(row + ": a frame, the worst", worst.all(), "ms");
    add(row + ": a frame, the worst, the call that brings pages", worst.stream, "ms");
    add(row + ": a frame, the worst, publishing", worst.publish, "ms");
    add(row + ": a frame, the worst, waiting for frames before", worst.frames_before, "ms");
    add(row + ": a frame, the worst, recording", worst.record, "ms");
    add(row + ": device's memory at its peak", double(most_bytes) / 1e6, "MB");
    if (paging.budget_bytes == 0) return;
    add(row + ": pages with voxels", double(paging.pages), "pages");
    add(row + ": pages brought", double(paging.brought_pages - before.brought_pages), "pages");
    add(row + ": of these from the host's memory at once", double(cache.found_pages - cache_before.found_pages),
        "pages");
    add(row + ": pages read from the file", double(cache.read_pages - cache_before.read_pages), "pages");
    add(row + ": the host's memory for pages", double(cache.bytes) / 1e6, "MB");
    add(row + ": brought while flying and at stops", double(flown.brought_bytes) / 1e6, "MB");
    add(row + ": a call that brings pages", share_of(flown.stream_ms, 0.5), "ms");
    add(row + ": a call that brings pages, the worst", share_of(flown.stream_ms, 1), "ms");
    const auto add_waits = [&](const char* which, const uint64_t* now, const uint64_t* then) {
      uint64_t waited = 0, so_far = 0;
      for (size_t i = 0; i < kWaits; ++i) waited += now[i] - then[i];
      double most = 0, part95 = 0;
      for (size_t i = 0; i < kWaits; ++i) {
        so_far += now[i] - then[i];
        if (now[i] > then[i]) most = double(uint64_t(1) << i);
        if (part95 == 0 && double(so_far) >= 0.95 * double(waited)) part95 = double(uint64_t(1) << i);
      }
      add(row + ": request to resident" + which, double(waited), "pages");
      add(row + ": request to resident" + which + ", 95% below", part95, "ms");
      add(row + ": request to resident" + which + ", all below", most, "ms");
    };
    add_waits("", paging.waits, before.waits);
    add_waits(", from the host's memory", cache.waits, cache_before.waits);
    add(row + ": request to resident, from the host's memory, the longest so far", cache.longest_wait_ms, "ms");
    add(row + ": full detail at " + std::to_string(count) + " stops, 95%", share_of(stop_ms, 0.95), "ms");
    add(row + ": full detail, the worst", share_of(stop_ms, 1), "ms");
  };
  for (size_t whole = 0; whole < 2; ++whole) {
    const std::string row = whole ? "flight, whole world" : "flight";
    Flown flown(flight, whole ? 0 : flight.budget_bytes);
    add(row + ": opened", flown.opened_ms, "ms");
    lap(flown, row, &pictures[whole]);
    if (whole) continue;
    // Where the camera has not been: the pages have left, or never came. Else they are in the host's memory alone.
    const auto edit_around = [&](const char* what, double inset, bool before_a_lap) {
      std::vector<std::array<int32_t, 3>> places;
      for (int i = 0; i < (flight.small ? 2 : 12); ++i) {
        const qry_world_state state = flown.state();
        std::array<int32_t, 3>& at = places.emplace_back();
        for (size_t axis = 0; axis < 3; ++axis) {
          const double size = double(state.max[axis]) - state.min[axis];
          at[axis] = state.min[axis] + int32_t(size * (((i >> axis) & 1 ? 1 - inset : inset) + 0.01 * (i >> 3)));
        }
      }
      if (before_a_lap) {
        for (const std::array<int32_t, 3>& at : places) flown.prefetch(at, stops_in(flown.state(), 1)[0]);
        lap(flown, row + " again", nullptr);
      }
      std::vector<double> seen_ms;
      flown.edited_ms.clear();
      for (size_t i = 0; i < places.size(); ++i) {
        View view{};
        for (size_t axis = 0; axis < 3; ++axis) {
          view.target[axis] = places[i][axis];
          view.position[axis] = places[i][axis] + ((i >> axis) & 1 ? 150 : -150);
        }
        seen_ms.push_back(flown.edit(places[i], view));
      }
      for (size_t i = 0; i < seen_ms.size(); ++i) flown.undo();
      add(row + ": an edit of radius 64 " + what + ", until seen", share_of(seen_ms, 0.5), "ms");
      add(row + ": such an edit, the worst", share_of(seen_ms, 1), "ms");
      add(row + ": such an edit, its call alone", share_of(flown.edited_ms, 0.5), "ms");
    };
    edit_around("where nothing is there", 0.02, false);
    if (flight.host_bytes) edit_around("whose pages are in the host's memory", 0.1, true);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    add(row + ": host's memory at its peak", double(usage.ru_maxrss) * 1024 / 1e6, "MB");
  }
  // Where the whole world's picture is covered, with all around it: at an edge of what is seen a ray that passes by in
  // one may meet a voxel in the other.
  const auto within = [&](const std::vector<uint8_t>& picture, size_t pixel) {
    const size_t width = flight.small ? kSmall[0] : kLarge[0], rows = picture.size() / 4 / width;
    const size_t x = pixel % width, y = pixel / width;
    if (x == 0 || y == 0 || x + 1 == width || y + 1 == rows) return false;
    for (size_t row = y - 1; row <= y + 1; ++row)
      for (size_t column = x - 1; column <= x + 1; ++column)
        if (picture[(row * width + column) * 4 + 3] != 255) return false;
    return true;
  };
  uint64_t holes = 0, at_edges = 0, different = 0, all = 0;
  for (size_t i = 0; i < pictures[0].there.size(); ++i) {
    const std::vector<uint8_t>&arrived = pictures[0].arrived[i], &there = pictures[0].there[i],
          &expected = pictures[1].there[i];
    for (size_t at = 0; at < expected.size(); at += 4) {
      ++all;
      if (expected[at + 3] == 255 && (arrived[at + 3] != 255 || there[at + 3] != 255))
        ++(within(expected, at / 4) ? holes : at_edges);
      different += !std::equal(there.begin() + std::ptrdiff_t(at), there.begin() + std::ptrdiff_t(at) + 4,
                               expected.begin() + std::ptrdiff_t(at));
    }
  }
  add("flight: pixels of stops that differ from the whole world's", 100 * double(different) / double(all), "%");
  add("flight: empty pixels of stops at edges of what is seen", double(at_edges), "pixels");
  if (holes) give_up(std::to_string(holes) + " pixels are holes");
}

}  // namespace quarry::bench
