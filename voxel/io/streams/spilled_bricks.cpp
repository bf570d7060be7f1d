// SPDX-License-Identifier: Apache-2.0
// spilled_bricks.cpp - sorted runs in a spill file, and a merge of all runs by volume and chunk when reading is done.
#include "voxel/io/streams/spilled_bricks.hpp"

#include <algorithm>
#include <tuple>

#include "voxel/io/streams/format.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr double kSpilledShare = 0.5;         // of the sink's room, for a region's bricks; the rest is for writing them
constexpr uint64_t kSpilledBrickBytes = 700;  // in a map
constexpr size_t kSpilledHeadBytes = size_t(8) << 20;  // bytes of all runs' heads together
constexpr uint64_t kSpilledChunkBricks = 512;

auto chunk_order(Int3 brick) { return std::tuple(brick.x >> 3, brick.y >> 3, brick.z >> 3, brick.x, brick.y, brick.z); }
Int3 chunk_around(Int3 brick) { return {brick.x >> 3, brick.y >> 3, brick.z >> 3}; }

}  // namespace

bool SpilledBricks::add(size_t volume, BrickMap&& bricks) {
  const BrickMap taken = std::move(bricks);
  if (error_) return false;
  if (taken.empty()) return true;
  if (!spill_) {
    auto made = Spill::create(beside_);
    if (!made) {
      error_ = made.error();
      return false;
    }
    spill_ = std::move(*made);
  }
  std::vector<BrickMap::Entry> order;
  order.reserve(taken.bricks().size());
  for (const auto& entry : taken.bricks()) order.push_back(entry);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return chunk_order(a.first) < chunk_order(b.first); });
  runs_.push_back({volume, spill_->size(), order.size()});
  for (const auto& entry : order) {
    const Record record{entry.first, 0, entry.second().copy()};
    spill_->append_all(std::span(&record, 1));
  }
  if (const auto good = spill_->good(); !good) error_ = good.error();
  return !error_;
}

bool SpilledBricks::refill(Run& run, size_t block) {
  run.head.resize(size_t(std::min<uint64_t>(block, run.left)));
  run.at = 0;
  if (run.head.empty() || !spill_->read_all(run.at_byte, std::span(run.head))) return false;
  run.at_byte += run.head.size() * sizeof(Record);
  run.left -= run.head.size();
  return true;
}

Result<RegionsDone> SpilledBricks::hand_over(const RegionSink& sink, const Progress& progress) {
  if (error_) return tl::unexpected(*error_);
  RegionsDone done;
  uint64_t all = 0, handed = 0;
  for (const Run& run : runs_) all += run.left;
  std::stable_sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.volume < b.volume; });
  for (size_t begin = 0, end; begin < runs_.size(); begin = end) {
    const size_t volume = runs_[begin].volume;
    for (end = begin + 1; end < runs_.size() && runs_[end].volume == volume;) ++end;
    const size_t block = std::clamp<size_t>(kSpilledHeadBytes / sizeof(Record) / (end - begin), 4, 512);
    // A heap of the runs' first bricks. Among equal ones, the run that was added first precedes.
    const auto later = [&](size_t a, size_t b) {
      const auto x = chunk_order(runs_[a].head[runs_[a].at].at), y = chunk_order(runs_[b].head[runs_[b].at].at);
      return std::tie(y, b) < std::tie(x, a);
    };
    std::vector<size_t> heap;
    for (size_t r = begin; r < end; ++r)
      if (refill(runs_[r], block)) heap.push_back(r);
    std::make_heap(heap.begin(), heap.end(), later);
    const auto most =
        std::max<uint64_t>(1, uint64_t(double(sink.available_bytes()) * kSpilledShare) / kSpilledBrickBytes);
    BrickMap region;
    const auto hand = [&]() -> Result<void> {
      if (region.empty()) return {};
      ++done.regions;
      auto taken = sink.take(uint32_t(volume), std::move(region));
      region = {};
      return taken;
    };
    std::optional<Record> open;  // the next run may add to it
    const auto close = [&] {
      if (!open) return;
      region.put(open->at, open->brick);
      open.reset();
      ++handed;
    };
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Run& run = runs_[heap.back()];
      const Record next = run.head[run.at++];
      if (run.at < run.head.size() || refill(run, block)) std::push_heap(heap.begin(), heap.end(), later);
      else heap.pop_back();
      if (open && open->at == next.at) {
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
          if (next.brick.materials[i]) open->brick.set(i, next.brick.materials[i]);
        continue;
      }
      const bool new_chunk = !open || chunk_around(open->at) != chunk_around(next.at);
      close();
      if (new_chunk) {
        if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
        progress.say("regions", double(handed) / double(all));
        // Chunks are passed on whole, so there must be room for one more.
        if (region.bricks().size() + kSpilledChunkBricks > most) QRY_TRY(hand());
      }
      open = next;
    }
    close();
    QRY_TRY(hand());
    QRY_TRY(spill_->good());
    for (size_t r = begin; r < end; ++r) std::vector<Record>().swap(runs_[r].head);
  }
  return done;
}

Result<RegionsDone> read_with_spilling(const ReadOptions& options, const RegionSink& sink,
                                       const std::function<Result<Scene>(const BrickLimits& limits)>& parse) {
  SpilledBricks spill(sink.beside);
  const auto scene = parse({options.budget, &spill});
  QRY_TRY(spill.good());
  QRY_TRY(scene);
  QRY_TRY(sink.begin(*scene));
  return spill.hand_over(sink, options.progress);
}

}  // namespace quarry::io
