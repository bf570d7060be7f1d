// SPDX-License-Identifier: Apache-2.0
// resident_pages.cpp - exchanges pages of an edited world between its file and a device's memory.
#include "engine/home/resident_pages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/parallel.hpp"
#include "engine/home/device_home.hpp"
#include "engine/home/page_rays.hpp"
#include "voxel/bricks/occupancy.hpp"
#include "voxel/io/quarry/codec.hpp"

namespace quarry::engine {
namespace {

// Of the budget this share, and at least so much, is for lists of bricks that are sent to the device or make edits.
constexpr uint64_t kListShare = 20, kLeastListBytes = uint64_t(12) << 20;
// A new world has room for so much; and a budget has room for so much beside what a world takes without bricks.
constexpr uint64_t kFirstRoomBytes = uint64_t(20) << 20, kLeastRoomBytes = uint64_t(16) << 20;
// A brick of the coarse level that is smaller is as good as its voxels.
constexpr double kLeastPixels = 0.5;
// What frames want leaves this share of the room to edits, for which nothing can leave at once while frames see it.
constexpr uint64_t kEditShare = 8;
constexpr uint64_t kReadAtOnce = 16;  // bricks are read and sent this share of the budget at a time
// What is read of the file has this share of the budget in the host's memory, and at least so much.
constexpr uint64_t kHostShare = 8, kLeastHostBytes = uint64_t(32) << 20;
constexpr int32_t kNearPages = 6;  // in each direction from the eye, that are read ahead

// Chunks of a page in its array.
uint32_t number_in_page(Int3 chunk) {
  return uint32_t(chunk.x & 1) | uint32_t(chunk.y & 1) << 1 | uint32_t(chunk.z & 1) << 2;
}

// Of a dense box, whose bricks come in an array, too.
uint64_t bytes_to_change(const Box3& voxels) {
  const Box3 inside = intersected(voxels, {kWorldMin, kWorldMax});
  if (inside.empty()) return 0;
  const Int3 low = brick_of(inside.min), high = brick_of(inside.max);
  return uint64_t(high.x - low.x + 1) * uint64_t(high.y - low.y + 1) * uint64_t(high.z - low.z + 1) *
         (kChangeBytes + kVoxelsPerBrick);
}

// The corners of windows are at pages. What is no larger than this has one that holds it.
constexpr Int3 kMostInWindow{16384 - 512, 8192 - 512, 16384 - 512};
constexpr int32_t kPageEdge = 128;
// So many pages elsewhere are known as well as those of the window, 600 bytes to 5 KB each. Of more the file is asked
// when the window comes there, of few of them page by page.
constexpr size_t kMostSummaries = size_t(1) << 15, kFewPages = 512;
// An eye is well inside of a window in the middle half of it.
constexpr Int3 kWellInside{4096, 2048, 4096};

Int3 page_floor(Int3 voxel) { return {voxel.x & -kPageEdge, voxel.y & -kPageEdge, voxel.z & -kPageEdge}; }
Int3 low_of_page(Int3 page) { return {page.x * kPageEdge, page.y * kPageEdge, page.z * kPageEdge}; }  // of the world
Int3 world_page(uint32_t number, Int3 origin) {
  const Int3 low = voxels_of_page(number).min + origin;
  return {low.x >> 7, low.y >> 7, low.z >> 7};
}
bool is_at_corner(Int3 voxel) { return page_of(brick_of(voxel)) == page_of(brick_of(kWorldMax)); }

std::string in_mib(uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

// `its_full`: the material of a brick that is full of one; else 0.
void ResidentPages::Chunk::add(Int3 at, const BrickView& brick, uint8_t its_full, CoarseCells& coarse) {
  ++bricks;
  full += its_full ? 1 : 0;
  voxels += count_of(brick.mask);
  const Box3 own = voxel_bounds(at, brick.mask);
  bounds = united(bounds, own);
  add_coarse(own, its_full ? its_full : coarse_material(brick), coarse);
}

uint64_t ResidentPages::Page::bricks() const {
  return std::accumulate(chunks.begin(), chunks.end(), uint64_t(0),
                         [](uint64_t sum, const Chunk& chunk) { return sum + chunk.bricks; });
}

uint64_t ResidentPages::Page::bytes() const {
  uint64_t full = 0;
  for (const Chunk& chunk : chunks) full += chunk.full;
  return bricks() * (kKeyBytes + kVoxelBytes) - full * kVoxelBytes;
}

ResidentPages::ResidentPages(DeviceHome& home, uint64_t budget_bytes, uint64_t most_bytes, uint64_t host_bytes,
                             uint32_t threads)
    : home_(&home),
      budget_bytes_(budget_bytes),
      most_bytes_(most_bytes),
      cache_(
          host_bytes, [&home](size_t bytes) { return home.host_memory(bytes); }, threads) {}

Result<std::unique_ptr<ResidentPages>> ResidentPages::create(DeviceHome& home, uint64_t budget_bytes,
                                                             uint64_t host_bytes, uint32_t threads) {
  QRY_TRY_ASSIGN(const auto used, home.used());
  const uint64_t other = used.size_bytes - std::min(kFirstRoomBytes, used.size_bytes) +
                         std::max(budget_bytes / kListShare, kLeastListBytes);
  if (budget_bytes < other + kLeastRoomBytes)
    return fail(ErrorCode::invalid_argument, "a world that keeps to a part of this device's memory takes " +
                                                 in_mib(other + kLeastRoomBytes) + " at least, and not " +
                                                 in_mib(budget_bytes));
  QRY_TRY(home.open_copies());  // the first page comes while frames are drawn
  host_bytes = std::max(host_bytes ? host_bytes : budget_bytes / kHostShare, kLeastHostBytes);
  return std::unique_ptr<ResidentPages>(
      new ResidentPages(home, budget_bytes, budget_bytes - other, host_bytes, threads));
}

// What the file has of a chunk of the window, from here on.
void ResidentPages::put_chunk(const Written& written) {
  const Int3 at = written.at - chunk_of(brick_of(origin_));
  const uint32_t page = page_of({at.x * 8, at.y * 8, at.z * 8});
  Chunk& chunk = pages_[page].chunks[number_in_page(at)] = written.chunk;
  if (chunk.bricks) chunk.bounds = moved(chunk.bounds, voxels_of_page(page).min);
  CoarseCells cells;
  for (const auto& [number, cell] : written.coarse) cells.emplace(page << 6 | (number & 63u), cell);
  // The chunk's eight cells among the page's 4^3.
  const auto first = uint32_t((at.x & 1) * 2 + (at.y & 1) * 8 + (at.z & 1) * 32);
  coarse_.put(page, uint64_t(0x330033) << first, cells);
}

// The same outside of it.
void ResidentPages::put_elsewhere(const Written& written) {
  const Int3 at{written.at.x >> 1, written.at.y >> 1, written.at.z >> 1};
  const auto [found, is_new] = elsewhere_.try_emplace(at);
  Elsewhere& page = found->second;
  page.voxels += written.chunk.voxels;
  page.bricks += written.chunk.bricks;
  page.bounds = united(page.bounds, moved(written.chunk.bounds, low_of_page(at)));
  if (is_new && summaries_ < kMostSummaries) {
    page.summary = std::make_unique<Summary>();
    ++summaries_;
  }
  if (!page.summary) return;
  page.summary->chunks[number_in_page(written.at)] = written.chunk;
  for (const auto& [number, cell] : written.coarse) page.summary->cells.emplace_back(uint8_t(number & 63u), cell);
}

// ---- What the file has

Result<void> ResidentPages::follow(io::Store& file, Flush flush, Recall recall, bool there, const Progress& progress) {
  const Stay stay(lock_);
  QRY_TRY(settle());
  forget_pages();
  elsewhere_.clear();
  summaries_ = 0;
  if (!there) QRY_TRY(choose_window(file));
  std::mutex list_lock;
  QRY_TRY(file.visit_all(
      [&](uint32_t, const io::PackedChunk& packed) -> Result<void> {
        QRY_TRY_ASSIGN(const Written one, summary_of(packed));
        const std::lock_guard hold(list_lock);
        if (has_chunk(one.at)) {
          put_chunk(one);
          return {};
        }
        if (there) return fail(ErrorCode::out_of_bounds, "a brick is outside of the world");
        put_elsewhere(one);
        return {};
      },
      progress));
  note_elsewhere();
  for (auto& [number, page] : pages_) {
    page.absent = !there;
    page.held = there;  // the device's history may have steps of it
    if (residency_) residency_->set_absent(number, page.absent);
  }
  file_ = &file;
  cache_.follow(file, brick_of(origin_));
  flush_ = std::move(flush);
  recall_ = std::move(recall);
  return {};
}

void ResidentPages::let_go() {
  const Stay stay(lock_);
  (void)settle();  // if it has failed, its pages are in the file
  torn_.clear();
  cache_.let_go();
  file_ = nullptr;
  flush_ = nullptr;
  recall_ = nullptr;
}

void ResidentPages::pause() {
  const Stay stay(lock_);
  cache_.pause();
}

void ResidentPages::go_on() {
  const Stay stay(lock_);
  if (file_) cache_.follow(*file_, brick_of(origin_));
}

void ResidentPages::note_written(std::span<const Int3> chunks, const BrickMap& bricks) {
  const size_t before = written_.size();
  written_.resize(before + chunks.size());
  parallel_for(chunks.size(), 1, [&](size_t i, size_t) {
    const Int3 low{chunks[i].x * 8, chunks[i].y * 8, chunks[i].z * 8};
    Written& one = written_[before + i];
    one.at = chunks[i];
    for (const BrickPut& put : bricks.within({low, low + Int3{7, 7, 7}}))
      one.chunk.add(put.brick - brick_of(page_floor({low.x * 8, low.y * 8, low.z * 8})), *put.value,
                    put.value.material(), one.coarse);
  });
}

// What has been written is what steps of the device's history have changed.
void ResidentPages::keep_written() {
  for (const Written& one : written_) {
    put_chunk(one);
    const Int3 at = one.at - chunk_of(brick_of(origin_));
    pages_[page_of({at.x * 8, at.y * 8, at.z * 8})].held = true;
  }
  written_.clear();
  unknown_ = false;
}

// ---- The window

bool ResidentPages::has_chunk(Int3 chunk) const {
  const Int3 at = chunk - chunk_of(brick_of(origin_)), low{at.x * 64, at.y * 64, at.z * 64};
  return !intersected({low, low}, {kWorldMin, kWorldMax}).empty() && !(wide_ && is_at_corner(low));
}

bool ResidentPages::holds(const Box3& voxels) const {
  const Box3 its = moved(voxels, Int3{} - origin_);
  if (!(intersected(its, {kWorldMin, kWorldMax}) == its)) return false;
  return wide_ ? !is_at_corner(its.max) : voxel_in_world(its.max);
}

// What was known of the window's pages. One page after the other: frames may still see what was known of them.
void ResidentPages::forget_pages() {
  if (residency_)
    for (const auto& [number, page] : pages_) residency_->set_absent(number, false);
  cache_.let_go();
  pages_.clear();
  written_.clear();
  std::vector<uint32_t> known;
  coarse_.each_page([&](uint32_t number) { known.push_back(number); });
  for (const uint32_t number : known) coarse_.put(number, ~uint64_t(0), {});
  bounds_known_ = false;
  near_page_.reset();
  near_.clear();
  waiting_.clear();
  glowing_ = {};
}

void ResidentPages::note_elsewhere() {
  elsewhere_voxels_ = elsewhere_bricks_ = 0;
  elsewhere_bounds_ = {};
  for (const auto& [at, page] : elsewhere_) {
    elsewhere_voxels_ += page.voxels;
    elsewhere_bricks_ += page.bricks;
    elsewhere_bounds_ = united(elsewhere_bounds_, page.bounds);
  }
  world_bounds_ = elsewhere_bounds_;
  for (const auto& [number, page] : pages_)
    for (const Chunk& chunk : page.chunks)
      if (chunk.bricks) world_bounds_ = united(world_bounds_, moved(chunk.bounds, origin_));
}

bool ResidentPages::one_grid_holds(std::span<const io::ChunkBricks> chunks) {
  constexpr Box3 kGrid = chunks_of({brick_of(kWorldMin), brick_of(kWorldMax)});
  return std::ranges::all_of(chunks, [&](const io::ChunkBricks& one) {
    const Box3 its{one.chunk, one.chunk};
    return intersected(its, kGrid) == its;
  });
}

// Of a file of which nothing is there yet: about the world's origin if that holds all of it, else about the middle of
// its chunks, or the chunk that is nearest to that.
Result<void> ResidentPages::choose_window(io::Store& file) {
  origin_ = {};
  wide_ = false;
  QRY_TRY_ASSIGN(const auto chunks, file.chunks(0));
  Box3 all;
  for (const io::ChunkBricks& one : chunks) all = united(all, {one.chunk, one.chunk});
  wide_ = !one_grid_holds(chunks);
  if (wide_) {
    const auto middle = [](int32_t a, int32_t b) { return int32_t((int64_t(a) + b) / 2); };
    const Int3 centre{middle(all.min.x, all.max.x), middle(all.min.y, all.max.y), middle(all.min.z, all.max.z)};
    const auto far = [&](Int3 chunk) {
      return std::max({std::abs(int64_t(chunk.x) - centre.x), 2 * std::abs(int64_t(chunk.y) - centre.y),
                       std::abs(int64_t(chunk.z) - centre.z)});
    };
    const auto nearest = std::ranges::min_element(chunks, {}, [&](const auto& one) { return far(one.chunk); });
    const bool fits = all.max.x - all.min.x < 240 && all.max.y - all.min.y < 112 && all.max.z - all.min.z < 240;
    const Int3 at = fits ? centre : nearest->chunk;
    origin_ = page_floor({at.x * 64, at.y * 64, at.z * 64});
  }
  home_->set_origin(origin_);
  return {};
}

Result<ResidentPages::Written> ResidentPages::summary_of(const io::PackedChunk& packed) const {
  Written one{packed.chunk, {}, {}};
  const Int3 low{packed.chunk.x * 64, packed.chunk.y * 64, packed.chunk.z * 64}, its_page = brick_of(page_floor(low));
  const bool inside = !wide_ && has_chunk(packed.chunk);
  bool no_key = false;
  QRY_TRY(packed.each([&](Int3 at, const Brick& brick, uint8_t full) {
    no_key |= inside && !brick_in_world(at - brick_of(origin_));
    one.chunk.add(at - its_page, brick, full, one.coarse);
  }));
  if (no_key) return fail(ErrorCode::out_of_bounds, "a brick is outside of the world");
  return one;
}

std::vector<Box3> ResidentPages::windows_of(const Box3& voxels, bool creates) const {
  std::vector<Box3> windows;
  if (!file_ || voxels.empty()) return windows;
  const Box3 window = moved({kWorldMin, kWorldMax}, origin_);
  if (!creates && elsewhere_.empty()) return windows;
  const auto fits = [&](const Box3& box) {
    const auto edge = [](int32_t low, int32_t high) { return int64_t(high) - low + 1; };
    return edge(box.min.x, box.max.x) <= kMostInWindow.x && edge(box.min.y, box.max.y) <= kMostInWindow.y &&
           edge(box.min.z, box.max.z) <= kMostInWindow.z;
  };
  if (holds(voxels) || fits(voxels)) return {voxels};
  const Box3 inside = creates ? voxels : intersected(voxels, united(world_bounds_, window));
  if (inside.empty()) return windows;
  const Int3 first = page_floor(inside.min);
  const auto tile = [&](Int3 at) {
    const Int3 low{int32_t(first.x + int64_t(at.x) * kMostInWindow.x),
                   int32_t(first.y + int64_t(at.y) * kMostInWindow.y),
                   int32_t(first.z + int64_t(at.z) * kMostInWindow.z)};
    return intersected({low, low + kMostInWindow - Int3{1, 1, 1}}, {page_floor(inside.min), inside.max});
  };
  const auto tile_at = [&](Int3 voxel) {
    const auto along = [](int32_t at, int32_t from, int32_t edge) { return int32_t((int64_t(at) - from) / edge); };
    return Int3{along(voxel.x, first.x, kMostInWindow.x), along(voxel.y, first.y, kMostInWindow.y),
                along(voxel.z, first.z, kMostInWindow.z)};
  };
  const Int3 last = tile_at(inside.max);
  if (creates) {
    for (int32_t z = 0; z <= last.z; ++z)
      for (int32_t y = 0; y <= last.y; ++y)
        for (int32_t x = 0; x <= last.x; ++x) windows.push_back(tile({x, y, z}));
    return windows;
  }
  // Only where something is.
  std::set<Int3> tiles;
  const auto add = [&](const Box3& page) {
    const Box3 both = intersected(page, inside);
    if (both.empty()) return;
    const Int3 a = tile_at(both.min), b = tile_at(both.max);
    for (int32_t z = a.z; z <= b.z; ++z)
      for (int32_t y = a.y; y <= b.y; ++y)
        for (int32_t x = a.x; x <= b.x; ++x) tiles.insert({x, y, z});
  };
  for (const auto& [at, page] : elsewhere_) add(page.bounds);
  for (const auto& [number, page] : pages_) add(moved(voxels_of_page(number), origin_));
  for (const Int3 at : tiles) windows.push_back(tile(at));
  return windows;
}

Result<void> ResidentPages::show(const Box3& voxels) {
  const Stay stay(lock_);
  if (holds(voxels)) return {};
  if (!(intersected(voxels, {kSceneMin, kSceneMax}) == voxels))
    return fail(ErrorCode::out_of_bounds, "voxels would be beyond all coordinates, which are -2^30 to 2^30 - 1");
  const auto middle = [](int32_t a, int32_t b) { return int32_t((int64_t(a) + b) / 2); };
  return move_to(page_floor(
      {middle(voxels.min.x, voxels.max.x), middle(voxels.min.y, voxels.max.y), middle(voxels.min.z, voxels.max.z)}));
}

// The eye, or where voxels may be nearest to it.
std::array<int32_t, 3> ResidentPages::nearest_to(const std::array<double, 3>& eye) const {
  const std::array<int32_t, 3> low{world_bounds_.min.x, world_bounds_.min.y, world_bounds_.min.z},
      high{world_bounds_.max.x, world_bounds_.max.y, world_bounds_.max.z};
  std::array<int32_t, 3> at{};
  for (size_t a = 0; a < 3; ++a) at[a] = int32_t(std::clamp(eye[a], double(low[a]), double(high[a])));
  return at;
}

bool ResidentPages::sees_from(const std::array<double, 3>& eye) const {
  if (elsewhere_.empty()) return true;
  const std::array<int32_t, 3> at = nearest_to(eye);
  return std::abs(int64_t(at[0]) - origin_.x) <= kWellInside.x &&
         std::abs(int64_t(at[1]) - origin_.y) <= kWellInside.y && std::abs(int64_t(at[2]) - origin_.z) <= kWellInside.z;
}

Result<bool> ResidentPages::look_from(const std::array<double, 3>& eye) {
  const Stay stay(lock_);
  if (sees_from(eye)) return false;
  const std::array<int32_t, 3> at = nearest_to(eye);
  QRY_TRY(move_to(page_floor({at[0], at[1], at[2]})));
  return true;
}

Result<BrickMap> ResidentPages::read_chunks(std::span<const Int3> chunks) {
  const Stay stay(lock_);
  BrickMap all;
  if (!file_ || chunks.empty()) return all;
  std::vector<std::vector<io::ChunkBox>> pieces;
  pieces.reserve(chunks.size());
  for (const Int3 chunk : chunks) pieces.push_back({{0, {chunk, chunk}}});
  std::vector<std::vector<BrickPut>> bricks(pieces.size());
  const io::PieceSteps steps{[&](size_t i, std::vector<io::ChunkRead>& read) -> Result<void> {
                               for (io::ChunkRead& chunk : read) bricks[i] = std::move(chunk.bricks);
                               return {};
                             },
                             [&](size_t i) -> Result<void> {
                               all.put(bricks[i]);
                               std::vector<BrickPut>().swap(bricks[i]);
                               return {};
                             }};
  QRY_TRY(file_->read_pieces(pieces, steps, {}, pieces.size()));
  return all;
}

Result<void> ResidentPages::move_to(Int3 origin) {
  if (origin == origin_) return {};
  if (!file_)
    return fail(
        ErrorCode::out_of_bounds,
        "voxels would be outside of the world's window: attach the world to a file, which has what is elsewhere");
  QRY_TRY(settle());
  QRY_TRY(flush_and_forget());
  return move_window(origin);
}

// Of a world that the file has as it is.
Result<void> ResidentPages::move_window(Int3 origin) {
  const Box3 window = moved({kWorldMin, kWorldMax}, origin);
  const auto arrives = [&](Int3 page) {
    const Int3 low = low_of_page(page);
    return !intersected({low, low}, window).empty() && !is_at_corner(low - origin);
  };
  // What is not known of the pages that it will have.
  std::vector<Int3> unknown;
  for (const auto& [at, page] : elsewhere_)
    if (!page.summary && arrives(at)) unknown.push_back(at);
  std::vector<Written> coming;
  std::mutex list_lock;
  const auto note = [&](uint32_t, const io::PackedChunk& packed) -> Result<void> {
    if (!std::ranges::binary_search(unknown, Int3{packed.chunk.x >> 1, packed.chunk.y >> 1, packed.chunk.z >> 1}))
      return {};
    QRY_TRY_ASSIGN(Written one, summary_of(packed));
    const std::lock_guard hold(list_lock);
    coming.push_back(std::move(one));
    return {};
  };
  if (unknown.size() > kFewPages) {
    QRY_TRY(file_->visit_box({0, chunks_of({brick_of(window.min), brick_of(window.max)})}, note, {}));
  } else {
    for (const Int3 at : unknown) {
      const Int3 first{at.x * 2, at.y * 2, at.z * 2};
      QRY_TRY(file_->visit_box({0, {first, first + Int3{1, 1, 1}}}, note, {}));
    }
  }
  std::vector<uint32_t> leaving;
  for (const auto& [number, page] : pages_)
    if (!page.absent && page.bricks()) leaving.push_back(number);
  if (!leaving.empty()) QRY_TRY(bring({}, leaving));
  QRY_TRY(settle());
  for (const auto& [number, page] : pages_)
    if (page.bricks()) put_page_elsewhere(number, page, arrives(world_page(number, origin_)));
  forget_pages();
  wide_ = true;
  origin_ = origin;
  home_->set_origin(origin);
  for (const Written& one : coming) put_chunk(one);
  for (auto page = elsewhere_.begin(); page != elsewhere_.end();) {
    if (!arrives(page->first)) {
      ++page;
      continue;
    }
    if (page->second.summary) {
      put_page(page->first, *page->second.summary);
      --summaries_;
    }
    page = elsewhere_.erase(page);
  }
  for (auto& [number, page] : pages_) page.absent = true;
  if (residency_) {
    for (const auto& [number, page] : pages_) residency_->set_absent(number, true);
    residency_->begin_anew();
  }
  seen_ = {};
  note_elsewhere();
  cache_.follow(*file_, brick_of(origin_));
  QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
  return {};
}

// `keeps`: its summary, as many as there are.
void ResidentPages::put_page_elsewhere(uint32_t number, const Page& page, bool keeps) {
  const Int3 low = voxels_of_page(number).min;
  Elsewhere& its = elsewhere_[world_page(number, origin_)];
  if (keeps || summaries_ < kMostSummaries) {
    its.summary = std::make_unique<Summary>();
    its.summary->chunks = page.chunks;
    for (const auto& [cell_number, cell] : coarse_.cells_of(number))
      its.summary->cells.emplace_back(uint8_t(cell_number & 63u), cell);
    ++summaries_;
  }
  for (size_t i = 0; i < page.chunks.size(); ++i) {
    const Chunk& chunk = page.chunks[i];
    if (!chunk.bricks) continue;
    its.voxels += chunk.voxels;
    its.bricks += chunk.bricks;
    its.bounds = united(its.bounds, moved(chunk.bounds, origin_));
    if (its.summary) its.summary->chunks[i].bounds = moved(chunk.bounds, Int3{} - low);
  }
}

// Of the window.
void ResidentPages::put_page(Int3 page, const Summary& summary) {
  const Int3 low = low_of_page(page) - origin_;
  const uint32_t number = page_of(brick_of(low));
  Page& its = pages_[number];
  its.chunks = summary.chunks;
  for (Chunk& chunk : its.chunks)
    if (chunk.bricks) chunk.bounds = moved(chunk.bounds, low);
  CoarseCells cells;
  for (const auto& [cell_number, cell] : summary.cells) cells.emplace(number << 6 | cell_number, cell);
  coarse_.put(number, ~uint64_t(0), cells);
}

// ---- What a call needs

Result<ResidentPages::Stay> ResidentPages::box(const Box3& voxels, Use use) {
  std::vector<uint32_t> numbers;
  add_box(voxels, numbers);
  return need(std::move(numbers), use, use == Use::change ? bytes_to_change(voxels) : 0);
}

ResidentPages::Meets ResidentPages::meets(const Edit& edit, const EditShape& shape, const Box3& box) const {
  Meets meets;
  const Box3 inside = intersected(intersected(shape.bounds(), {kWorldMin, kWorldMax}), box);
  if (inside.empty()) return meets;
  add_box(inside, meets.pages);
  const SolidShape* const solid = shape.solid();
  std::erase_if(meets.pages, [&](uint32_t number) {
    // What sets nothing changes nothing where there is nothing.
    if (!edit.creates() && !unknown_ && !pages_.contains(number)) return true;
    // A page is a cube of 2^4 bricks.
    const Int3 low = brick_of(voxels_of_page(number).min);
    return solid && !solid->meets_cube(low.x, low.y, low.z, 4);
  });
  // About: the bricks that it touches, and of those the ones that it cuts.
  const double x = double(inside.max.x) - inside.min.x + 9, y = double(inside.max.y) - inside.min.y + 9,
               z = double(inside.max.z) - inside.min.z + 9;
  double touched = x * y * z / 512, cut = (x * y + y * z + z * x) / 64 * 2;
  if (edit.shape == Shape::sphere) touched *= inside == shape.bounds() ? 0.55 : 1;
  if (edit.shape == Shape::sphere) cut *= 0.85;
  if (edit.shape == Shape::line) touched = std::min(touched, cut);
  touched = std::min(touched, double(meets.pages.size() * kPageBricks));
  cut = std::min(cut, touched);
  // What is there already is no new key.
  const double free = double(meets.pages.size() * kPageBricks - known_bricks(meets.pages));
  meets.bytes = uint64_t(std::min(touched, free)) * kKeyBytes + uint64_t(touched) * kRecordBytes +
                uint64_t(cut) * kVoxelBytes + kChangeBytes * 64;
  return meets;
}

Result<ResidentPages::Stay> ResidentPages::shape(const Edit& edit, const Box3& part) {
  if (edit.shape == Shape::connected) return all(Use::change, "a flood");
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  const Stay stay(lock_);
  Meets its = meets(edit, shape, part);
  return need(std::move(its.pages), Use::change, its.bytes);
}

Result<std::vector<Box3>> ResidentPages::parts_of(const Edit& edit) {
  if (edit.shape == Shape::connected) return std::vector<Box3>(1);
  QRY_TRY_ASSIGN(const auto shape, EditShape::create(edit));
  const Stay stay(lock_);
  return parts_of([&](const Box3& box) { return meets(edit, shape, box); });
}

std::vector<Box3> ResidentPages::parts_of(const Box3& voxels) {
  const Stay stay(lock_);
  return parts_of([&](const Box3& box) {
    const Box3 both = intersected(voxels, box);
    Meets its;
    add_box(both, its.pages);
    its.bytes = bytes_to_change(both);
    return its;
  });
}

std::vector<Box3> ResidentPages::parts_of(const MeetsIn& meets) const {
  const Box3 world{kWorldMin, kWorldMax};
  const Meets its = meets(world);
  std::vector<Box3> parts;
  if (bytes_of(its.pages) + its.bytes > most_bytes_) halve(meets, world, parts);
  else parts.push_back(world);
  return parts;
}

// Of each half at most half of what there is room for: what leaves for it need not be the very pages that it needs.
void ResidentPages::halve(const MeetsIn& meets, const Box3& box, std::vector<Box3>& parts) const {
  const Meets its = meets(box);
  if (its.pages.empty()) return;
  Box3 tight;
  for (const uint32_t number : its.pages) tight = united(tight, voxels_of_page(number));
  if (its.pages.size() == 1 || bytes_of(its.pages) + its.bytes <= most_bytes_ / 2) {
    parts.push_back(tight);
    return;
  }
  const Int3 pages = {(tight.max.x - tight.min.x) >> 7, (tight.max.y - tight.min.y) >> 7,
                      (tight.max.z - tight.min.z) >> 7};
  Box3 low = tight, high = tight;
  const auto part = [&](int32_t Int3::*axis) {
    high.min.*axis = tight.min.*axis + ((pages.*axis + 1) / 2 << 7);
    low.max.*axis = high.min.*axis - 1;
  };
  if (pages.z >= pages.y && pages.z >= pages.x) part(&Int3::z);
  else if (pages.x >= pages.y) part(&Int3::x);
  else part(&Int3::y);
  halve(meets, low, parts);
  halve(meets, high, parts);
}

std::vector<std::vector<uint64_t>> ResidentPages::parts_of(const int32_t* xyz, uint64_t count) {
  const Stay stay(lock_);
  struct Its {
    uint64_t voxels = 0;  // of the list
    size_t part = 0;
  };
  std::map<uint32_t, Its> pages;  // rising: parts are of pages near each other
  const auto page_at = [&](uint64_t i) { return page_of(brick_of({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]})); };
  for (uint64_t i = 0; i < count; ++i) ++pages[page_at(i)].voxels;
  const auto bytes_to_have = [&](uint32_t number, const Its& its) {
    return bytes_of({&number, 1}) + std::min(its.voxels, kPageBricks) * kChangeBytes;
  };
  uint64_t bytes = 0;
  for (const auto& [number, its] : pages) bytes += bytes_to_have(number, its);
  if (bytes <= most_bytes_) return {};
  size_t last = 0;
  bytes = 0;
  for (auto& [number, its] : pages) {
    const uint64_t more = bytes_to_have(number, its);
    if (bytes && bytes + more > most_bytes_ / 2) ++last, bytes = 0;
    bytes += more;
    its.part = last;
  }
  std::vector<std::vector<uint64_t>> parts(last + 1);
  for (uint64_t i = 0; i < count; ++i) parts[pages.find(page_at(i))->second.part].push_back(i);
  return parts;
}

uint64_t ResidentPages::bytes_of(std::span<const uint32_t> numbers) const {
  uint64_t bytes = 0;
  for (const uint32_t number : numbers)
    if (const auto found = pages_.find(number); found != pages_.end()) bytes += found->second.bytes();
  return bytes;
}

uint64_t ResidentPages::known_bricks(std::span<const uint32_t> numbers) const {
  uint64_t bricks = 0;
  for (const uint32_t number : numbers)
    if (const auto found = pages_.find(number); found != pages_.end()) bricks += found->second.bricks();
  return bricks;
}

Result<std::optional<uint64_t>> ResidentPages::recall(bool forward) {
  const Stay stay(lock_);
  return recall_ ? recall_(forward) : std::optional<uint64_t>();
}

Result<ResidentPages::Stay> ResidentPages::voxels(const int32_t* xyz, uint64_t count, Use use) {
  std::vector<uint32_t> numbers;
  for (uint64_t i = 0; i < count; ++i) {
    const Int3 voxel{xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]};
    if (!voxel_in_world(voxel)) continue;
    const uint32_t number = page_of(brick_of(voxel));
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
  const uint64_t most = std::min<uint64_t>(count, numbers.size() * kPageBricks);
  return need(std::move(numbers), use, use == Use::change ? most * kChangeBytes : 0);
}

Result<ResidentPages::Stay> ResidentPages::bricks(std::span<const BrickPut> puts) {
  std::vector<uint32_t> numbers;
  for (const BrickPut& put : puts)
    if (brick_in_world(put.brick)) numbers.push_back(page_of(put.brick));
  return need(std::move(numbers), Use::change, puts.size() * kChangeBytes);
}

Result<ResidentPages::Stay> ResidentPages::records(std::span<const UndoRecord> step, bool before) {
  const Stay stay(lock_);
  // Each was made in one window.
  Box3 box;
  for (const UndoRecord& record : step)
    for (const BrickChange& change : record.changes) box = united(box, {change.brick, change.last()});
  if (file_ && !box.empty()) QRY_TRY(show(box_of_voxels(box)));
  std::vector<uint32_t> numbers;
  uint64_t bytes = 0;
  for (const UndoRecord& record : step)
    for (const BrickChange& change : record.changes) {
      const Int3 first = change.brick - brick_of(origin_), last = change.last() - brick_of(origin_);
      if (!brick_in_world(first) || !brick_in_world(last)) continue;
      for (Int3 at = first; at.z <= last.z; at.z = (at.z | 15) + 1) numbers.push_back(page_of(at));
      const SharedBrick &made = before ? change.before : change.after, &there = before ? change.after : change.before;
      bytes += change.count *
               (kRecordBytes + (made && !there ? kKeyBytes : 0) + (made && !made.material() ? kVoxelBytes : 0));
    }
  return need(std::move(numbers), Use::change, bytes);
}

Result<ResidentPages::Stay> ResidentPages::pages(std::vector<uint32_t> numbers) {
  return need(std::move(numbers), Use::read, 0);
}

AbsentPages ResidentPages::absent() {
  const Stay stay(lock_);
  AbsentPages absent;
  for (const auto& [number, page] : pages_)
    if (page.absent) absent.add(number, coarse_.outline(number));
  return absent;
}

Result<ResidentPages::Stay> ResidentPages::all(Use use, const char* what) {
  Stay stay(lock_);
  std::vector<uint32_t> numbers;
  bool lacks_some = false;
  uint64_t bytes = 0;
  for (const auto& [number, page] : pages_) {
    bytes += page.bytes();
    lacks_some |= page.absent;
    numbers.push_back(number);  // also those that are there: none of them leaves for the others
  }
  if (!elsewhere_.empty())
    return fail(ErrorCode::unsupported, std::string(what) +
                                            " needs all of the world, which is larger than one grid (16384 x 8192 x "
                                            "16384 voxels): use a file of the part that it is about");
  if (lacks_some) {
    if (bytes > most_bytes_)
      return fail(ErrorCode::out_of_memory, std::string(what) + " needs all of the world, about " + in_mib(bytes) +
                                                ", and its part of the device's memory is " + in_mib(budget_bytes_) +
                                                ": open it without a budget, or with a larger one");
    QRY_TRY(need(std::move(numbers), use, 0));
  }
  if (use == Use::change) {
    for (auto& [number, page] : pages_) begin_change(page, number);
    unknown_ = edited_ = true;
  }
  return stay;
}

void ResidentPages::add_box(const Box3& voxels, std::vector<uint32_t>& numbers) const {
  const Box3 box = intersected(voxels, {kWorldMin, kWorldMax});
  if (box.empty()) return;
  for (int32_t z = box.min.z >> 7; z <= box.max.z >> 7; ++z)
    for (int32_t y = box.min.y >> 7; y <= box.max.y >> 7; ++y)
      for (int32_t x = box.min.x >> 7; x <= box.max.x >> 7; ++x) numbers.push_back(page_of({x * 16, y * 16, z * 16}));
}

Result<ResidentPages::Stay> ResidentPages::need(std::vector<uint32_t> numbers, Use use, uint64_t bytes) {
  Stay stay(lock_);
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  ++round_;
  QRY_TRY(settle());
  std::vector<Coming> missing;
  uint64_t coming = 0;
  for (const uint32_t number : numbers) {
    const auto found = pages_.find(number);
    if (found == pages_.end()) continue;
    found->second.round = round_;
    if (!found->second.absent) continue;
    missing.push_back({number, cache_.find(number)});
    coming += found->second.bytes();
  }
  if (coming + bytes) QRY_TRY(make_room(coming + bytes));
  if (!missing.empty()) {
    QRY_TRY(bring(missing, {}));
    QRY_TRY(settle());
  }
  edited_ |= use == Use::change;
  if (use == Use::change)
    for (const uint32_t number : numbers) {
      Page& page = pages_[number];
      page.round = round_;
      begin_change(page, number);
    }
  return stay;
}

// The file's state of it is old, or will be.
void ResidentPages::begin_change(Page& page, uint32_t number) {
  if (!std::exchange(page.held, true)) cache_.forget(number);
}

// ---- What comes and goes

uint64_t ResidentPages::there_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, page] : pages_)
    if (!page.absent) bytes += page.bytes();
  return bytes;
}

Result<uint64_t> ResidentPages::used_bytes() {
  if (frames_)
    if (const auto frames = frames_(in_rounds_)) QRY_TRY(home_->recycle(*frames));
  QRY_TRY_ASSIGN(const auto used, home_->used());
  const uint64_t all = used.keys * kKeyBytes + used.bricks * kVoxelBytes + used.records * kRecordBytes;
  const uint64_t there = there_bytes() + used.retired * kVoxelBytes;
  steps_bytes_ = all - std::min(all, there);
  edited_ = false;
  return all;
}

Result<void> ResidentPages::make_room(uint64_t bytes) {
  const uint64_t most = most_bytes_;
  const auto over = [&](uint64_t spare) {
    const uint64_t wanted = expected_bytes_ + bytes + spare;
    return wanted - std::min(wanted, most);
  };
  const auto fits = [&](uint64_t spare) { return over(spare) == 0; };
  // Without waiting for the device, as long as what it has been told may take fits.
  if (!fits(0)) {
    QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
    if (!fits(0)) QRY_TRY(let_leave(over(0)));
  }
  if (!fits(0)) {
    if (!file_)
      return fail(ErrorCode::out_of_memory,
                  "the world's part of the device's memory, " + in_mib(budget_bytes_) +
                      ", has no room left: attach the world to a file, for which parts of it can leave");
    QRY_TRY(flush_and_forget());
    // So that the next edits have room, too.
    if (!fits(most / 4)) QRY_TRY(let_leave(over(most / 4)));
    // What was made room for and is no more needed. Where even that wants memory, it stays.
    QRY_TRY_ASSIGN(const auto used, home_->used());
    if (used.size_bytes > budget_bytes_)
      if (const auto trimmed = home_->trim(); !trimmed && device_failed(trimmed.error()))
        return tl::unexpected(trimmed.error());
  }
  if (!fits(0))
    return fail(ErrorCode::out_of_memory,
                "it needs about " + in_mib(expected_bytes_ + bytes) +
                    " of the device's memory at once, and the world's part of that is " + in_mib(most) +
                    ": make it of smaller parts, or the budget larger" +
                    (frames_ && !frames_(in_rounds_) ? "; what has left is kept for frames that may "
                                                       "still show it, until the next publish"
                                                     : ""));
  expected_bytes_ += bytes;
  return {};
}

// A step that has begun goes on: what comes of it belongs to what the file has of it now.
Result<void> ResidentPages::flush_and_forget() {
  const auto begun = home_->begun_step();
  auto flushed = flush_(begun.unfinished);
  if (flushed) flushed = home_->forget_steps();
  QRY_TRY(home_->go_on_with(begun));
  QRY_TRY(flushed);
  for (auto& [number, page] : pages_)
    if (std::exchange(page.held, false)) glowing_.changed.insert(number);
  ++flushes_;
  QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
  return {};
}

// Those that were needed longest ago, and that the file has as they are, of so many bytes.
std::vector<uint32_t> ResidentPages::oldest(uint64_t bytes) const {
  std::vector<uint32_t> leaving;
  if (!file_) return leaving;
  std::vector<std::pair<uint64_t, uint32_t>> old;
  for (const auto& [number, page] : pages_)
    if (!page.absent && !page.held && page.round != round_ && page.bricks()) old.emplace_back(page.round, number);
  std::ranges::sort(old);
  uint64_t left = 0;
  for (const auto& [round, number] : old) {
    if (left >= bytes) break;
    left += pages_.at(number).bytes();
    leaving.push_back(number);
  }
  return leaving;
}

void ResidentPages::note_left(std::span<const uint32_t> leaving) {
  for (const uint32_t number : leaving) {
    Page& page = pages_[number];
    page.absent = true;
    page.wanted.reset();
    if (!residency_) continue;
    residency_->set_absent(number, true);
    // At once: the next picture may be drawn in the same rounds.
    for (const Chunk& chunk : page.chunks) residency_->set_bounds(united(residency_->bounds(), chunk.bounds));
  }
  bounds_known_ = false;
  left_ += leaving.size();
}

Result<void> ResidentPages::let_leave(uint64_t bytes) {
  const std::vector<uint32_t> leaving = oldest(bytes);
  if (leaving.empty()) return {};
  QRY_TRY(bring({}, leaving));
  QRY_TRY(settle());
  QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
  return {};
}

// Of bricks that these pages have in the file.
std::vector<uint32_t> ResidentPages::keys_of(std::span<const uint32_t> pages) const {
  std::vector<uint32_t> keys;
  for (const uint32_t number : pages) coarse_.list_bricks(number, keys);
  return keys;
}

// Returns when it is launched: settle() waits.
Result<void> ResidentPages::bring(std::span<const Coming> coming, std::span<const uint32_t> leaving) {
  std::vector<SharedPage> arrived;
  uint64_t bytes = 0;
  std::vector<uint32_t> going = keys_of(leaving);
  for (const Coming& one : coming) under_way_.push_back(one.number);
  under_way_.insert(under_way_.end(), leaving.begin(), leaving.end());
  const auto send = [&]() -> Result<void> {
    if (arrived.empty() && going.empty()) return {};
    QRY_TRY(home_->exchange(arrived, going));
    if (!going.empty()) note_left(leaving);
    sent_ = std::exchange(arrived, {});
    going.clear();
    bytes = 0;
    return {};
  };
  const uint64_t at_once = std::min(budget_bytes_ / kReadAtOnce, cache_.most_bytes() / 4);
  const auto put = [&](uint32_t number, SharedPage page) -> Result<void> {
    arrived.push_back(std::move(page));
    bytes += pages_[number].bytes();
    return bytes > at_once ? send() : Result<void>();
  };
  const auto bring_all = [&]() -> Result<void> {
    std::vector<uint32_t> missing;
    uint64_t all = 0;
    for (const Coming& one : coming) {
      if (one.page) {
        arrived.push_back(one.page);
        continue;
      }
      missing.push_back(one.number);
      all += pages_[one.number].bytes();
    }
    from_host_ += arrived.size();
    if (!missing.empty()) {
      const auto waiting = std::max<size_t>(size_t(at_once * missing.size() / std::max<uint64_t>(all, 1)), 1);
      QRY_TRY(cache_.read(
          *file_, missing, [&](size_t i, SharedPage page) { return put(missing[i], std::move(page)); }, waiting));
    }
    return send();
  };
  if (auto brought = bring_all(); !brought) {
    give_up_exchange();
    return brought;
  }
  for (const Coming& one : coming) {
    pages_[one.number].absent = false;
    if (residency_) residency_->set_absent(one.number, false);
  }
  brought_ += coming.size();
  return {};
}

// Of pages that were to come or to go none is there, not a part of one.
void ResidentPages::give_up_exchange() {
  (void)home_->exchanged();
  sent_.clear();
  for (const uint32_t number : under_way_) {
    pages_[number].absent = true;
    if (residency_) residency_->set_absent(number, true);
  }
  bounds_known_ = false;
  torn_.insert(torn_.end(), under_way_.begin(), under_way_.end());
  under_way_.clear();
  (void)remove_torn();
}

Result<void> ResidentPages::remove_torn() {
  if (torn_.empty()) return {};
  QRY_TRY(home_->exchange({}, keys_of(torn_)));
  QRY_TRY(home_->exchanged());
  torn_.clear();
  return {};
}

Result<void> ResidentPages::make_whole() {
  const Stay stay(lock_);
  (void)settle();  // what it gives up is torn, or absent
  return remove_torn();
}

Result<void> ResidentPages::settle() {
  QRY_TRY(remove_torn());
  if (under_way_.empty()) return {};
  if (auto done = home_->exchanged(); !done) {
    give_up_exchange();
    return done;
  }
  sent_.clear();
  const auto now = std::chrono::steady_clock::now();
  for (const uint32_t number : std::exchange(under_way_, {})) {
    Page& page = pages_[number];
    if (page.absent || !page.wanted) continue;
    const double ms = std::chrono::duration<double, std::milli>(now - *page.wanted).count();
    const size_t bucket = std::min<size_t>(size_t(std::bit_width(uint64_t(ms))), waits_.size() - 1);
    ++waits_[bucket];
    if (page.found) {
      ++host_waits_[bucket];
      longest_host_wait_ms_ = std::max(longest_host_wait_ms_, ms);
    }
    page.wanted.reset();
  }
  return {};
}

// ---- Pictures

bool ResidentPages::lacks_some() {
  const Stay stay(lock_);
  return !elsewhere_.empty() || std::ranges::any_of(pages_, [](const auto& one) { return one.second.absent; });
}

Result<Residency*> ResidentPages::shown(Device& device) {
  const Stay stay(lock_);
  if (!lacks_some()) return nullptr;
  if (!residency_) {
    QRY_TRY_ASSIGN(residency_, Residency::create(device, {}, coarse_));
    for (const auto& [number, page] : pages_)
      if (page.absent) residency_->set_absent(number, true);
    bounds_known_ = false;
  }
  if (!bounds_known_) {
    Box3 bounds;
    for (const auto& [number, page] : pages_)
      if (page.absent)
        for (const Chunk& chunk : page.chunks) bounds = united(bounds, chunk.bounds);
    residency_->set_bounds(bounds);
    bounds_known_ = true;
  }
  return residency_.get();
}

Result<PagesBrought> ResidentPages::bring_reached() {
  const Stay stay(lock_);
  std::vector<uint32_t> reached = residency_->reached().pages;
  if (std::ranges::none_of(reached, [&](uint32_t number) { return residency_->absent(number); }))
    return PagesBrought::none_missing;
  in_rounds_ = true;
  const auto there = need(std::move(reached), Use::read, 0);
  in_rounds_ = false;
  if (!there && there.error().code == ErrorCode::out_of_memory) return PagesBrought::too_many;
  QRY_TRY(there);
  return PagesBrought::some;
}

namespace {

// Of an eye, wherever it is.
Int3 brick_of_eye(const Eye& eye) {
  const auto of = [](double at) { return int32_t(std::floor(std::clamp(at, -1e8, 1e8))) >> 3; };
  return {of(eye.position[0]), of(eye.position[1]), of(eye.position[2])};
}

// From the nearest eye to a page, in pixels of that eye's frame: how large one of its bricks is at least.
double brick_pixels(const std::vector<Eye>& eyes, uint32_t page) {
  const Box3 box = voxels_of_page(page);
  double most = 0;
  for (const Eye& eye : eyes) {
    const std::array<double, 3> low{double(box.min.x), double(box.min.y), double(box.min.z)};
    double square = 0;
    for (size_t a = 0; a < 3; ++a) {
      const double beside = std::max({low[a] - eye.position[a], eye.position[a] - low[a] - 128, 0.0});
      square += beside * beside;
    }
    most = std::max(most, 8 / std::max(std::sqrt(square) * eye.pixel, 1e-9));
  }
  return most;
}

}  // namespace

// What the last frames have come to. A picture may come in parts, of which each tells its own, and again at another
// resolution; from elsewhere other pages are wanted.
void ResidentPages::merge_seen(Residency::Reached seen) {
  const auto places = [](const Residency::Reached& of) {
    std::vector<std::array<double, 3>> positions;
    for (const Eye& eye : of.eyes) positions.push_back(eye.position);
    std::ranges::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    return positions;
  };
  if (places(seen) == places(seen_)) {
    std::vector<uint32_t> both;
    std::ranges::set_union(seen.pages, seen_.pages, std::back_inserter(both));
    seen.pages = std::move(both);
    for (const Eye& eye : seen_.eyes)
      if (!std::ranges::count(seen.eyes, eye)) seen.eyes.push_back(eye);
  }
  seen_ = std::move(seen);
}

Result<ResidentPages::Streamed> ResidentPages::stream(uint64_t completed, uint64_t most_bytes) {
  const Stay stay(lock_);
  Streamed done;
  if (!residency_) return done;
  // The device has other work: frames. What it has not done yet is not waited for.
  QRY_TRY_ASSIGN(const bool idle, home_->exchange_done());
  if (idle) QRY_TRY(settle());
  if (auto seen = residency_->reached(completed); !seen.eyes.empty()) merge_seen(std::move(seen));
  QRY_TRY(cache_.failure());
  if (idle && !elsewhere_.empty() && !seen_.eyes.empty()) {
    const std::array<double, 3>& eye = seen_.eyes.front().position;
    QRY_TRY_ASSIGN(const bool moved, look_from({eye[0] + origin_.x, eye[1] + origin_.y, eye[2] + origin_.z}));
    if (moved) return done;
  }
  // The nearest first, as many as the budget holds.
  std::vector<std::pair<double, uint32_t>> near;
  for (const uint32_t number : seen_.pages) {
    const auto found = pages_.find(number);
    if (found == pages_.end() || found->second.bricks() == 0) continue;
    if (const double pixels = brick_pixels(seen_.eyes, number); pixels >= kLeastPixels)
      near.emplace_back(-pixels, number);
  }
  std::ranges::sort(near);
  ++round_;
  const auto now = std::chrono::steady_clock::now();
  const uint64_t most = most_bytes_ - most_bytes_ / kEditShare, spare = most / kEditShare;
  // What edits keep there takes its room from what frames want: pages, and what their steps alone have.
  const auto kept_bytes = [&] {
    uint64_t kept = steps_bytes_;
    for (const auto& [number, page] : pages_)
      if (page.held && !page.absent) kept += page.bytes();
    return kept;
  };
  uint64_t all = 0, kept = 0;
  for (const auto& [distance, number] : near) all += pages_[number].bytes();
  if (all > most / 2) {
    if (idle && edited_) {
      QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
    }
    kept = kept_bytes();
  }
  const uint64_t most_wanted = most - spare - std::min(kept, most / 2);
  std::vector<Coming> coming;
  std::vector<uint32_t> waiting;
  uint64_t wanted = 0, missing = 0;
  for (const auto& [distance, number] : near) {
    Page& page = pages_[number];
    wanted += page.bytes();
    if (wanted > most_wanted) break;
    page.round = round_;
    if (!page.absent || cache_.failed(number)) continue;
    ++done.missing;
    missing += page.bytes();
    SharedPage found = cache_.find(number);
    if (!page.wanted) page.wanted = now, page.found = found != nullptr;
    waiting.push_back(number);
    if (!found || (!coming.empty() && done.bytes + page.bytes() > most_bytes)) continue;
    done.bytes += page.bytes();
    coming.push_back({number, std::move(found)});
  }
  QRY_TRY(read_behind(waiting));
  // For those that no frame wants any more nobody waits.
  for (const uint32_t number : std::exchange(waiting_, std::move(waiting)))
    if (const auto found = pages_.find(number);
        found != pages_.end() && found->second.absent && found->second.round != round_)
      found->second.wanted.reset();
  if (!idle) return done;
  // Frames keep what leaves for some time. So it leaves for all that is missing at once, and as much besides as the
  // next pages may need.
  std::vector<uint32_t> leaving;
  const auto fits = [&](uint64_t bytes) { return expected_bytes_ + bytes <= most; };
  if (!fits(missing + spare)) {
    QRY_TRY_ASSIGN(expected_bytes_, used_bytes());
    const uint64_t there = there_bytes() + steps_bytes_ + missing + spare;
    if (there > most) leaving = oldest(there - most);
    // If edits that only the device has keep most of the memory, they are brought to the file, which frees it.
    if (!fits(done.bytes) && kept_bytes() > most / 2) {
      const uint64_t wanted_room = done.bytes + most_bytes_ - most;  // what edits may take stays free besides
      const auto room = make_room(wanted_room);
      if (!room && room.error().code != ErrorCode::out_of_memory) return tl::unexpected(room.error());
      if (room) expected_bytes_ -= wanted_room;
      std::erase_if(leaving, [&](uint32_t number) { return pages_[number].absent; });
    }
    while (!fits(done.bytes) && !coming.empty()) {
      done.bytes -= pages_[coming.back().number].bytes();
      coming.pop_back();
    }
  }
  if (coming.empty() && leaving.empty()) return done;
  QRY_TRY(bring(coming, leaving));
  expected_bytes_ += done.bytes;
  done.brought = coming.size();
  done.left = leaving.size();
  done.missing -= coming.size();
  return done;
}

// Absent pages around the eye, the nearest first.
std::vector<uint32_t> ResidentPages::near_eye(uint64_t most_bytes) const {
  std::vector<std::pair<double, uint32_t>> around;
  const Int3 at = brick_of_eye(seen_.eyes.front());
  for (int32_t z = -kNearPages; z <= kNearPages; ++z)
    for (int32_t y = -kNearPages; y <= kNearPages; ++y)
      for (int32_t x = -kNearPages; x <= kNearPages; ++x) {
        const Int3 brick{at.x + x * 16, at.y + y * 16, at.z + z * 16};
        if (!brick_in_world(brick)) continue;
        const auto found = pages_.find(page_of(brick));
        if (found == pages_.end() || !found->second.absent || found->second.bricks() == 0) continue;
        around.emplace_back(-brick_pixels(seen_.eyes, found->first), found->first);
      }
  std::ranges::sort(around);
  std::vector<uint32_t> near;
  for (const auto& [distance, number] : around) {
    const uint64_t bytes = pages_.at(number).bytes();
    if (bytes > most_bytes) break;
    most_bytes -= bytes;
    near.push_back(number);
  }
  return near;
}

// As many of those that are wanted as the host's memory has room for, and what is near the eye in the rest of it.
Result<void> ResidentPages::read_behind(std::span<const uint32_t> wanted) {
  const uint64_t room = cache_.most_bytes() / 4 * 3;
  std::vector<uint32_t> first;
  uint64_t bytes = 0;
  for (const uint32_t number : wanted) {
    bytes += pages_[number].bytes();
    if (bytes > room && !first.empty()) break;
    first.push_back(number);
  }
  if (!seen_.eyes.empty()) {
    if (const uint32_t page = page_of(brick_of_eye(seen_.eyes.front())); near_page_ != page) {
      near_page_ = page;
      near_ = near_eye(room);
    }
  }
  std::vector<uint32_t> near;
  for (const uint32_t number : near_) {
    if (!pages_[number].absent) continue;
    bytes += pages_[number].bytes();
    if (bytes > room) break;
    near.push_back(number);
  }
  return cache_.want(std::move(first), std::move(near));
}

ResidentPages::Counters ResidentPages::counters() {
  const Stay stay(lock_);
  Counters counters;
  counters.budget_bytes = budget_bytes_;
  for (const auto& [number, page] : pages_) {
    if (page.bricks() == 0) continue;
    ++counters.pages;
    if (!page.absent) continue;
    ++counters.absent;
    for (const Chunk& chunk : page.chunks) {
      counters.voxels += chunk.voxels;
      counters.bricks += chunk.bricks;
      counters.bounds = united(counters.bounds, chunk.bounds);
    }
  }
  counters.pages += elsewhere_.size();
  counters.absent += elsewhere_.size();
  counters.voxels += elsewhere_voxels_;
  counters.bricks += elsewhere_bricks_;
  counters.elsewhere = elsewhere_bounds_;
  counters.brought = brought_;
  counters.left = left_;
  counters.flushes = flushes_;
  counters.from_host = from_host_;
  counters.host = cache_.counters();
  counters.waits = waits_;
  counters.host_waits = host_waits_;
  counters.longest_host_wait_ms = longest_host_wait_ms_;
  return counters;
}

}  // namespace quarry::engine
