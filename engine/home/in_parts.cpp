// SPDX-License-Identifier: Apache-2.0
// in_parts.cpp - what needs all voxels of a world that does not fit its budget, on the host, some pages after the
// other: the world grows, is eroded, taken apart, combined with another one, flooded, searched for what glows.
//
//   groups of pages ─► their bricks, and those around them ─► what becomes of them ─► what differs is an edit of these
//                      from where they are: the device,                               pages, a part of one step
//                      the host's pages, the file's chunks   what it changes beside a later group is kept as it was ▲
//
// So no group sees what has become of another one, whatever their order. The file is brought up to date first: it tells
// which pages have voxels, and where in them.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/parallel.hpp"
#include "engine/home/device_home.hpp"
#include "engine/home/record_batch.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/operations/connected_parts.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/operations/whole_scene.hpp"

namespace quarry::engine {
namespace {

// What a group of pages has, and what changes of it at most, are together this share of what there is room for.
constexpr uint64_t kGroupShare = 8;
constexpr size_t kMostGroupPages = 256;  // whose keys are looked up together
constexpr uint64_t kBricksBeside = 512;  // of a page that others grow into, about

// The page's bricks; `margin`: and so many around it.
Box3 bricks_in_page(uint32_t page, int32_t margin) {
  const Box3 voxels = voxels_of_page(page);
  const Int3 more{margin, margin, margin};
  return {brick_of(voxels.min) - more, brick_of(voxels.max) + more};
}

// Calls use(brick) for each of a box that the world can have.
void each_brick(const Box3& box, const auto& use) {
  for (int32_t z = box.min.z; z <= box.max.z; ++z)
    for (int32_t y = box.min.y; y <= box.max.y; ++y)
      for (int32_t x = box.min.x; x <= box.max.x; ++x)
        if (brick_in_world({x, y, z})) use(Int3{x, y, z});
}

// The pages in which voxels of a box are.
void each_page(const Box3& voxels, const auto& use) {
  const Box3 box = intersected(voxels, {kWorldMin, kWorldMax});
  if (box.empty()) return;
  for (int32_t z = box.min.z >> 7; z <= box.max.z >> 7; ++z)
    for (int32_t y = box.min.y >> 7; y <= box.max.y >> 7; ++y)
      for (int32_t x = box.min.x >> 7; x <= box.max.x >> 7; ++x) use(page_of({x * 16, y * 16, z * 16}));
}

// Of quarry::erode, which a member of the same name hides.
Result<BrickMap> erode_bricks(const BrickMap& bricks, Connectivity neighbours) { return erode(bricks, neighbours, 1); }

// What lacks memory of the host's ends its part as what lacks the device's does.
auto without_throwing(const auto& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "the host has no memory for a part of the world");
  }
}

Result<void> outside_of_world() {
  return fail(ErrorCode::out_of_bounds, std::string("voxels would be outside of the world: ") + device::kWorldExtent);
}

}  // namespace

// ---- What the pages have

Result<bool> ResidentPages::fits_together(uint64_t more_bricks) {
  const Stay stay(lock_);
  if (!file_) return true;
  QRY_TRY(settle());
  QRY_TRY_ASSIGN(const uint64_t used, used_bytes());
  expected_bytes_ = used;
  uint64_t bricks = 0, mixed = 0, absent = 0;  // of all pages; of these not full ones
  for (const auto& [number, page] : pages_) {
    bricks += page.bricks();
    for (const Chunk& chunk : page.chunks) mixed += chunk.bricks - chunk.full;
    if (page.absent) absent += page.bytes();
  }
  // What a step of one voxel makes anew, about: bricks at the surface.
  return used + absent + (mixed * 2 + bricks / 8 + more_bricks) * kChangeBytes <= most_bytes_;
}

bool ResidentPages::has_file() {
  const Stay stay(lock_);
  return file_ != nullptr;
}

Result<void> ResidentPages::bring_to_file() {
  const Stay stay(lock_);
  if (!file_) return {};
  QRY_TRY(settle());
  QRY_TRY(flush_and_forget());
  unknown_ = false;
  return {};
}

std::vector<PageUse> ResidentPages::in_use() {
  const Stay stay(lock_);
  std::vector<PageUse> all;
  for (const auto& [number, page] : pages_) {
    if (page.bricks() == 0) continue;
    Box3 box;
    for (const Chunk& chunk : page.chunks) box = united(box, chunk.bounds);
    all.push_back({number, page.bricks(), page.bytes(), box});
  }
  std::ranges::sort(all, {}, &PageUse::number);
  return all;
}

Result<std::vector<PageUse>> ResidentPages::known() {
  const Stay stay(lock_);
  if (unknown_) QRY_TRY(bring_to_file());
  std::vector<PageUse> all;
  for (const auto& [number, page] : pages_)
    if (page.held || page.bricks())
      all.push_back(
          {number, page.bricks(), page.held ? kPageBricks * (kKeyBytes + kVoxelBytes) : page.bytes(), {}, page.held});
  std::ranges::sort(all, {}, &PageUse::number);
  return all;
}

Result<void> ResidentPages::read_absent(std::span<const PageWanted> wanted, bool keep, std::vector<BrickPut>& bricks,
                                        std::vector<uint32_t>& there) {
  const Stay stay(lock_);
  QRY_TRY(settle());
  const auto is_wanted = [](const PageWanted& of, uint32_t key) {
    return of.all || std::ranges::binary_search(of.keys, key);
  };
  const auto take_page = [&](const PageWanted& of, const PageBricks& page) {
    for (size_t i = 0; i < page.full_keys.size(); ++i)
      if (const uint32_t key = page.full_keys[i]; is_wanted(of, key))
        bricks.push_back({brick_from_key(key), SharedBrick::full(page.full[i])});
    size_t i = 0;
    for (const std::span<const BrickMaterials> part : page.parts)
      for (const BrickMaterials& materials : part)
        if (const uint32_t key = page.keys[i++]; is_wanted(of, key))
          bricks.push_back({brick_from_key(key), brick_of_materials(materials, BrickPool::loose())});
  };
  std::vector<const PageWanted*> whole, some;
  std::vector<uint32_t> numbers;
  std::vector<std::vector<io::ChunkBox>> pieces;
  for (const PageWanted& one : wanted) {
    const auto found = pages_.find(one.page);
    if (found == pages_.end() || !found->second.absent) {
      if (one.all) each_brick(bricks_in_page(one.page, 0), [&](Int3 brick) { there.push_back(brick_key(brick)); });
      else there.insert(there.end(), one.keys.begin(), one.keys.end());
    } else if (const SharedPage page = cache_.find(one.page)) {
      take_page(one, *page);
    } else if (one.all && keep) {
      whole.push_back(&one);
      numbers.push_back(one.page);
    } else {
      Box3 box = one.all ? bricks_in_page(one.page, 0) : Box3{};
      for (const uint32_t key : one.keys) box = united(box, {brick_from_key(key), brick_from_key(key)});
      some.push_back(&one);
      pieces.push_back({{0, chunks_of(moved(box, brick_of(origin_)))}});
    }
  }
  const auto waiting = [&](size_t pages) {
    return std::clamp<size_t>(size_t(cache_.most_bytes() / 4 / (kPageBricks * sizeof(BrickMaterials))), 1, pages);
  };
  if (!whole.empty())
    QRY_TRY(cache_.read(
        *file_, numbers,
        [&](size_t i, const SharedPage& page) -> Result<void> {
          take_page(*whole[i], *page);
          return {};
        },
        waiting(whole.size())));
  if (some.empty()) return {};
  std::vector<std::vector<BrickPut>> read(some.size());
  const auto take = [&](size_t i, std::vector<io::ChunkRead>& chunks) -> Result<void> {
    for (io::ChunkRead& chunk : chunks)
      for (BrickPut& put : chunk.bricks) {
        put.brick = put.brick - brick_of(origin_);
        if (is_wanted(*some[i], brick_key(put.brick))) read[i].push_back(std::move(put));
      }
    return {};
  };
  const auto put = [&](size_t i) -> Result<void> {
    std::ranges::move(std::exchange(read[i], {}), std::back_inserter(bricks));
    return {};
  };
  return file_->read_pieces(pieces, {take, put}, {}, waiting(some.size()));
}

Result<bool> DeviceHome::fits_together(uint64_t more_bricks) {
  return pages_ ? pages_->fits_together(more_bricks) : Result<bool>(true);
}

uint64_t DeviceHome::group_bytes() const { return pages_ ? pages_->most_bytes() / kGroupShare : UINT64_MAX; }

// Of a world without a file the device knows.
Result<std::vector<PageUse>> DeviceHome::pages_in_use() {
  if (pages_ && pages_->has_file()) {
    QRY_TRY(pages_->bring_to_file());
    return pages_->in_use();
  }
  QRY_TRY_ASSIGN(const auto all, keys());
  std::unordered_map<uint32_t, PageUse> pages;
  for (const uint32_t key : all) {
    const Int3 brick = brick_from_key(key);
    PageUse& page = pages[page_of(brick)];
    page.number = page_of(brick);
    ++page.bricks;
    page.bytes += kKeyBytes + kVoxelBytes;
    page.voxels = united(page.voxels, box_of_voxels({brick, brick}));
  }
  std::vector<PageUse> rising;
  rising.reserve(pages.size());
  for (const auto& [number, page] : pages) rising.push_back(page);
  std::ranges::sort(rising, {}, &PageUse::number);
  return rising;
}

// ---- Groups

// Pages side by side, as many together as there is room for.
struct DeviceHome::PageGroups {
  std::vector<std::vector<uint32_t>> groups;      // rising
  std::unordered_map<uint32_t, size_t> of_pages;  // the group of each
  size_t size() const { return groups.size(); }

  // `bytes`: of each page and of what changes in it.
  PageGroups(const std::unordered_map<uint32_t, uint64_t>& bytes, uint64_t most_bytes) {
    // Numbers of pages near each other are near each other: blocks of 4^3 pages follow one another.
    std::vector<uint32_t> rising;
    rising.reserve(bytes.size());
    for (const auto& [page, its] : bytes) rising.push_back(page);
    std::ranges::sort(rising);
    uint64_t in_group = most_bytes;
    for (const uint32_t page : rising) {
      const uint64_t its = bytes.at(page);
      if (groups.empty() || in_group + its > most_bytes || groups.back().size() == kMostGroupPages) {
        groups.emplace_back();
        in_group = 0;
      }
      in_group += its;
      of_pages[page] = groups.size() - 1;
      groups.back().push_back(page);
    }
  }
  PageGroups() = default;
};

// Bricks as they were before a step, of groups that are done, which later ones see.
struct DeviceHome::BricksBefore {
  std::unordered_map<uint32_t, SharedBrick> bricks;             // by key; none: there was none
  std::unordered_map<size_t, std::vector<uint32_t>> last_seen;  // keys by the last group that sees them

  void forget_after(size_t group) {
    const auto found = last_seen.find(group);
    if (found == last_seen.end()) return;
    for (const uint32_t key : found->second) bricks.erase(key);
    last_seen.erase(found);
  }
};

// `around`: with the bricks around them; null: without.
Result<BrickMap> DeviceHome::bricks_of_pages(std::span<const uint32_t> pages, bool keep, const BricksBefore* around) {
  std::vector<BrickPut> puts;
  std::unordered_map<uint32_t, std::vector<uint32_t>> beside;  // keys by page
  if (around)
    for (const uint32_t page : pages) {
      const Box3 own = bricks_in_page(page, 0);
      each_brick(bricks_in_page(page, 1), [&](Int3 brick) {
        if (intersected(own, {brick, brick}) == Box3{brick, brick}) return;
        const uint32_t its = page_of(brick);
        if (std::ranges::binary_search(pages, its)) return;
        beside[its].push_back(brick_key(brick));
      });
    }
  std::vector<PageWanted> wanted;
  for (const uint32_t page : pages) wanted.push_back({page, true, {}});
  for (auto& [page, keys] : beside) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::erase_if(keys, [&](uint32_t key) {
      const auto kept = around->bricks.find(key);
      if (kept == around->bricks.end()) return false;
      if (kept->second) puts.push_back({brick_from_key(key), kept->second});
      return true;
    });
    if (!keys.empty()) wanted.push_back({page, false, std::move(keys)});
  }
  return read_wanted(wanted, keep, std::move(puts));
}

// `others`: more bricks of the result.
Result<BrickMap> DeviceHome::read_wanted(std::span<const PageWanted> wanted, bool keep, std::vector<BrickPut> others) {
  std::vector<uint32_t> there;
  if (pages_) {
    QRY_TRY(pages_->read_absent(wanted, keep, others, there));
  } else {
    for (const PageWanted& one : wanted) {
      if (one.all) each_brick(bricks_in_page(one.page, 0), [&](Int3 brick) { there.push_back(brick_key(brick)); });
      else there.insert(there.end(), one.keys.begin(), one.keys.end());
    }
  }
  BrickMap bricks;
  {
    const std::lock_guard lock(lock_);
    QRY_TRY(hear(last_ticket_));
    std::vector<uint32_t> indices(there.size());
    if (!there.empty()) QRY_TRY(store_->look_up(there, indices));
    std::vector<device::Store::Entry> entries;
    for (size_t i = 0; i < there.size(); ++i)
      if (indices[i] != device::kNone) entries.push_back({there[i], indices[i]});
    QRY_TRY_ASSIGN(bricks, bricks_of(entries, {}, BrickPool::loose()));
  }
  std::ranges::sort(others, {}, &BrickPut::brick);
  bricks.put(others);
  return bricks;
}

// What differs in the group's pages. `kept` gets what later groups see.
Result<uint64_t> DeviceHome::write_part(const PageGroups& groups, size_t number, const BrickMap& before,
                                        const BrickMap& after, const char* label, BricksBefore* kept) {
  std::vector<BrickPut> puts = differences(before, after);
  for (const BrickPut& put : puts)
    if (!brick_in_world(put.brick)) QRY_TRY(outside_of_world());
  const std::vector<uint32_t>& pages = groups.groups[number];
  std::erase_if(puts, [&](const BrickPut& put) { return !std::ranges::binary_search(pages, page_of(put.brick)); });
  if (kept)
    for (const BrickPut& put : puts) {
      const Int3 in_page{put.brick.x & 15, put.brick.y & 15, put.brick.z & 15};
      const auto inside = [](int32_t at) { return at > 0 && at < 15; };
      if (inside(in_page.x) && inside(in_page.y) && inside(in_page.z)) continue;
      size_t last = number;
      each_brick({put.brick - Int3{1, 1, 1}, put.brick + Int3{1, 1, 1}}, [&](Int3 beside) {
        if (const auto found = groups.of_pages.find(page_of(beside)); found != groups.of_pages.end())
          last = std::max(last, found->second);
      });
      if (last == number) continue;
      kept->bricks[brick_key(put.brick)] = before.share(put.brick);
      kept->last_seen[last].push_back(brick_key(put.brick));
    }
  return write_bricks(puts, label);
}

// ---- Reading

// One step of parts, none of which sees what others have become.
Result<uint64_t> DeviceHome::change_groups(const char* label, const BeginGroups& begin, const BecomeGroup& become) {
  PageGroups groups;
  const auto make = [&](size_t number) -> Result<std::optional<uint64_t>> {
    if (number == 0) {
      QRY_TRY_ASSIGN(groups, begin());
    }
    if (number == groups.size()) return std::optional<uint64_t>();
    const std::vector<uint32_t>& pages = groups.groups[number];
    QRY_TRY_ASSIGN(const BrickMap before, bricks_of_pages(pages, true, nullptr));
    QRY_TRY_ASSIGN(const BrickMap after, become(pages, before));
    QRY_TRY_ASSIGN(const uint64_t ticket, write_part(groups, number, before, after, label, nullptr));
    return std::optional(ticket);
  };
  return in_parts(label, [&](size_t number) { return without_throwing([&] { return make(number); }); });
}

Result<void> DeviceHome::read_in_groups(std::span<const PageUse> pages, const UseGroup& use) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  std::unordered_map<uint32_t, uint64_t> bytes;
  for (const PageUse& page : pages) bytes[page.number] = page.bytes;
  const PageGroups groups(bytes, group_bytes());
  for (const std::vector<uint32_t>& group : groups.groups) {
    QRY_TRY_ASSIGN(const BrickMap bricks, bricks_of_pages(group, false, nullptr));
    QRY_TRY(use(bricks));
  }
  return {};
}

Result<device::Store::VoxelSums> DeviceHome::sums_in_parts(const Palette& palette) {
  const VoxelHash hash(palette, Axes::y_up);
  VoxelSums sums;
  QRY_TRY_ASSIGN(const auto pages, pages_->known());
  QRY_TRY(read_in_groups(pages, [&](const BrickMap& bricks) -> Result<void> {
    sums.add(sums_of(bricks, hash));
    return {};
  }));
  return device::Store::VoxelSums{sums.voxels, sums.pos_sum, sums.col_sum};
}

Result<std::vector<uint32_t>> DeviceHome::keys_in_parts() {
  std::vector<uint32_t> keys;
  QRY_TRY_ASSIGN(const auto pages, pages_->known());
  QRY_TRY(read_in_groups(pages, [&](const BrickMap& bricks) -> Result<void> {
    for (const auto& [brick, value] : bricks.bricks()) keys.push_back(brick_key(brick));
    return {};
  }));
  std::ranges::sort(keys);
  return keys;
}

// ---- What glows

namespace {

// Bricks that have a voxel of one of the materials, rising.
std::vector<BrickPut> with_materials(const BrickMap& bricks, const std::array<bool, 256>& materials) {
  std::vector<BrickPut> all;
  const auto in_order = bricks.bricks();
  all.reserve(in_order.size());
  for (auto one = in_order.begin(); one != in_order.end(); ++one) all.push_back({(*one).first, one.shared()});
  std::vector<uint8_t> has(all.size());
  parallel_for(all.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint8_t full = all[i].value.material();
      has[i] = full ? materials[full] : std::ranges::any_of(all[i].value->materials, [&](uint8_t material) {
        return material && materials[material];
      });
    }
  });
  std::vector<BrickPut> found;
  for (size_t i = 0; i < all.size(); ++i)
    if (has[i]) found.push_back(std::move(all[i]));
  return found;
}

uint64_t bytes_of_brick(const SharedBrick& brick) {
  return sizeof(BrickPut) + (brick && !brick.material() ? sizeof(BrickMask) + sizeof(BrickMaterials) : 0);
}

}  // namespace

// Of pages that have changed since it was asked last, or may have; the others are as they were found.
Result<BrickMap> DeviceHome::bricks_in_parts(const std::array<bool, 256>& materials) {
  ResidentPages::Glowing& glowing = pages_->glowing();
  QRY_TRY_ASSIGN(const auto pages, pages_->known());
  if (glowing.materials != materials) glowing = {materials, {}, {}, {}};
  // After an error all is looked for anew.
  ResidentPages::Glowing before = std::exchange(glowing, {});
  std::vector<PageUse> to_look;
  std::unordered_map<uint32_t, std::vector<BrickPut>> found;
  std::unordered_set<uint32_t> as_before;
  uint64_t bytes = 0;
  const auto add = [&](const SharedBrick& brick) -> Result<void> {
    bytes += bytes_of_brick(brick);
    if (bytes <= pages_->host_bytes()) return {};
    return fail(ErrorCode::out_of_memory, "what glows, and what is beside it, takes more than the " +
                                              std::to_string(pages_->host_bytes() >> 20) +
                                              " MiB of the host's memory that the world's pages have");
  };
  const auto keep = [&](uint32_t page, std::vector<BrickPut> bricks) -> Result<void> {
    for (const BrickPut& put : bricks) QRY_TRY(add(put.value));
    found[page] = std::move(bricks);
    return {};
  };
  for (const PageUse& page : pages) {
    const auto known = before.bricks.find(page.number);
    if (page.held || before.changed.contains(page.number) || known == before.bricks.end()) {
      to_look.push_back(page);
    } else {
      as_before.insert(page.number);
      QRY_TRY(keep(page.number, std::move(known->second)));
    }
  }
  QRY_TRY(read_in_groups(to_look, [&](const BrickMap& bricks) -> Result<void> {
    std::unordered_map<uint32_t, std::vector<BrickPut>> by_page;
    for (BrickPut& put : with_materials(bricks, materials)) by_page[page_of(put.brick)].push_back(std::move(put));
    for (auto& [page, its] : by_page) QRY_TRY(keep(page, std::move(its)));
    return {};
  }));
  for (const PageUse& page : to_look) found.try_emplace(page.number);
  // Those beside them, which tell what can be seen of them.
  std::unordered_set<uint32_t> keys;
  for (const auto& [page, bricks] : found)
    for (const BrickPut& put : bricks) keys.insert(brick_key(put.brick));
  std::unordered_map<uint32_t, SharedBrick> beside;
  std::map<uint32_t, std::vector<uint32_t>> missing;  // by page
  for (const auto& [page, bricks] : found)
    for (const BrickPut& put : bricks)
      for (const Int3 step : {Int3{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}}) {
        const Int3 at = put.brick + step;
        if (!brick_in_world(at)) continue;
        const uint32_t key = brick_key(at), its = page_of(at);
        if (keys.contains(key) || beside.contains(key)) continue;
        const auto known = before.beside.find(key);
        if (known != before.beside.end() && as_before.contains(its)) {
          beside[key] = known->second;
        } else {
          beside[key] = {};
          missing[its].push_back(key);
        }
      }
  std::vector<PageWanted> wanted;
  for (auto& [page, its] : missing) {
    std::ranges::sort(its);
    wanted.push_back({page, false, std::move(its)});
  }
  // A page's at most.
  for (size_t first = 0; first < wanted.size(); first += kMostGroupPages) {
    const auto some = std::span(wanted).subspan(first, std::min(kMostGroupPages, wanted.size() - first));
    QRY_TRY_ASSIGN(const BrickMap bricks, read_wanted(some, false, {}));
    const auto in_order = bricks.bricks();
    for (auto one = in_order.begin(); one != in_order.end(); ++one) beside[brick_key((*one).first)] = one.shared();
  }
  std::vector<BrickPut> puts;
  for (const auto& [key, brick] : beside) {
    QRY_TRY(add(brick));
    if (brick) puts.push_back({brick_from_key(key), brick});
  }
  for (const auto& [page, bricks] : found) puts.insert(puts.end(), bricks.begin(), bricks.end());
  glowing = {materials, std::move(found), std::move(beside), {}};
  std::ranges::sort(puts, {}, &BrickPut::brick);
  BrickMap all;
  all.put(puts);
  return all;
}

// ---- By a voxel

Result<uint64_t> DeviceHome::change_by_steps(bool grows, uint32_t neighbours, uint32_t steps) {
  QRY_TRY(check_one_grid());
  const auto stay = stay_there();
  const ThreadShare share(threads_ ? threads_ : thread_count());
  const char* const label = grows ? "grow" : "erode";
  PageGroups groups;
  BricksBefore kept;
  uint32_t step = 0;
  size_t next = 0;
  bool changed = true;
  const auto begin_one = [&]() -> Result<void> {
    QRY_TRY_ASSIGN(const auto pages, pages_in_use());
    std::unordered_map<uint32_t, uint64_t> bytes;
    for (const PageUse& page : pages) {
      const Int3 one{1, 1, 1};
      const uint64_t changing = grows ? std::min(page.bricks * 3 + 64, kPageBricks) : page.bricks;
      bytes[page.number] = page.bytes + changing * kChangeBytes;
      if (!grows) continue;
      each_page({page.voxels.min - one, page.voxels.max + one},
                [&](uint32_t beside) { bytes.try_emplace(beside, kBricksBeside * kChangeBytes); });
    }
    groups = PageGroups(bytes, group_bytes());
    kept = {};
    next = 0;
    return {};
  };
  const auto make = [&]() -> Result<std::optional<uint64_t>> {
    while (next == groups.size()) {
      if (step == steps || !std::exchange(changed, false)) return std::optional<uint64_t>();
      ++step;
      QRY_TRY(begin_one());
      if (groups.size() == 0) return std::optional<uint64_t>();
    }
    QRY_TRY_ASSIGN(const BrickMap before, bricks_of_pages(groups.groups[next], true, &kept));
    QRY_TRY_ASSIGN(const BrickMap after, grows ? dilate(before, Connectivity(neighbours), 1)
                                               : erode_bricks(before, Connectivity(neighbours)));
    QRY_TRY_ASSIGN(const uint64_t ticket, write_part(groups, next, before, after, label, &kept));
    kept.forget_after(next);
    ++next;
    QRY_TRY_ASSIGN(const Change change, wait(ticket));
    changed |= change.voxels > 0;
    return std::optional(ticket);
  };
  return in_parts(label, [&](size_t) -> Result<std::optional<uint64_t>> { return without_throwing(make); });
}

// ---- Connected parts

// Pieces are the parts of each page by itself; what touches across pages is joined.
struct DeviceHome::PiecesFound {
  struct Piece {
    PartBegin begin;
    uint64_t voxels = 0;
    Box3 box;
  };
  struct OfMaterial {
    uint32_t piece;
    uint8_t material;
    uint64_t voxels;
  };
  std::vector<Piece> pieces;
  std::vector<uint32_t> parents;  // each lower or itself
  std::vector<OfMaterial> materials;
  std::unordered_map<uint32_t, uint32_t> firsts;  // of each page, its first piece
  std::vector<uint32_t> part_of;                  // of each piece, in the order of parts

  uint32_t root(uint32_t piece) {
    while (parents[piece] != piece) piece = parents[piece] = parents[parents[piece]];
    return piece;
  }
  void join(uint32_t a, uint32_t b) {
    a = root(a), b = root(b);
    parents[std::max(a, b)] = std::min(a, b);
  }
  // The largest first, then by where they begin.
  std::vector<device::PartScratch::Part> in_order();
};

namespace {

constexpr size_t kMostPieces = size_t(1) << 24;  // 1.6 GB

// The parts of each of some pages.
Result<std::vector<ConnectedParts>> parts_of_pages(const BrickMap& bricks, std::span<const uint32_t> pages,
                                                   Connectivity neighbours) {
  std::vector<Result<ConnectedParts>> found;
  found.reserve(pages.size());
  for (size_t i = 0; i < pages.size(); ++i) found.emplace_back(fail(ErrorCode::cancelled, "not looked for"));
  (void)bricks.bricks().begin();
  parallel_for(pages.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      BrickMap its;
      its.put(bricks.within(bricks_in_page(pages[i], 0)));
      found[i] = ConnectedParts::find(its, neighbours);
    }
  });
  std::vector<ConnectedParts> all;
  all.reserve(found.size());
  for (Result<ConnectedParts>& one : found) {
    QRY_TRY(one);
    all.push_back(std::move(*one));
  }
  return all;
}

// How many voxels of each material.
std::array<uint32_t, 256> materials_of(const BrickMap& bricks) {
  std::array<uint32_t, 256> count{};
  for (const auto& brick : bricks.bricks())
    for (const uint8_t material : brick.second().materials) ++count[material];
  count[0] = 0;
  return count;
}

}  // namespace

std::vector<device::PartScratch::Part> DeviceHome::PiecesFound::in_order() {
  struct Part {
    PartBegin begin;
    device::PartScratch::Part its;
    uint64_t most = 0;  // voxels of its material
    uint32_t root = 0;
  };
  std::vector<Part> parts;
  std::vector<uint32_t> number(pieces.size());  // of roots
  for (uint32_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const uint32_t its = root(i);
    if (its == i) {
      number[i] = uint32_t(parts.size());
      parts.push_back({piece.begin, {piece.voxels, piece.box, 0}, 0, i});
      continue;
    }
    Part& part = parts[number[its]];
    part.begin = std::min(part.begin, piece.begin);
    part.its.voxels += piece.voxels;
    part.its.box = united(part.its.box, piece.box);
  }
  std::ranges::sort(materials, {}, [&](const OfMaterial& of) { return std::pair(root(of.piece), of.material); });
  for (size_t i = 0; i < materials.size();) {
    const uint32_t its = root(materials[i].piece);
    const uint8_t material = materials[i].material;
    uint64_t voxels = 0;
    for (; i < materials.size() && root(materials[i].piece) == its && materials[i].material == material; ++i)
      voxels += materials[i].voxels;
    if (Part& part = parts[number[its]]; voxels > part.most) part.most = voxels, part.its.material = material;
  }
  std::ranges::sort(parts, [](const Part& a, const Part& b) {
    return a.its.voxels != b.its.voxels ? a.its.voxels > b.its.voxels : a.begin < b.begin;
  });
  std::vector<device::PartScratch::Part> sorted;
  sorted.reserve(parts.size());
  for (uint32_t i = 0; i < parts.size(); ++i) {
    number[parts[i].root] = i;
    sorted.push_back(parts[i].its);
  }
  part_of.resize(pieces.size());
  for (uint32_t i = 0; i < pieces.size(); ++i) part_of[i] = number[root(i)];
  return sorted;
}

Result<DeviceHome::PiecesFound> DeviceHome::find_pieces(uint32_t neighbours, bool with_materials) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  const auto connectivity = Connectivity(neighbours);
  PiecesFound found;
  QRY_TRY_ASSIGN(const auto pages, pages_->known());
  std::unordered_map<uint32_t, uint64_t> bytes;
  for (const PageUse& page : pages) bytes[page.number] = 2 * page.bytes;  // with labels
  const PageGroups groups(bytes, group_bytes());
  std::map<uint32_t, PartBorder> beside;  // of pages beside which others are to come
  const auto beside_page = [&](uint32_t page, const auto& use) {
    const Int3 low = brick_of(voxels_of_page(page).min);
    for (int32_t z = -1; z <= 1; ++z)
      for (int32_t y = -1; y <= 1; ++y)
        for (int32_t x = -1; x <= 1; ++x) {
          const Int3 step{x, y, z}, at = low + Int3{x * 16, y * 16, z * 16};
          if (axes_of(step) == 0 || axes_of(step) > most_axes(connectivity) || !brick_in_world(at)) continue;
          if (bytes.contains(page_of(at))) use(page_of(at));
        }
  };
  for (const std::vector<uint32_t>& group : groups.groups) {
    QRY_TRY_ASSIGN(const BrickMap bricks, bricks_of_pages(group, false, nullptr));
    QRY_TRY_ASSIGN(const auto parts, parts_of_pages(bricks, group, connectivity));
    for (size_t i = 0; i < group.size(); ++i) {
      const uint32_t page = group[i];
      const auto its = parts[i].parts();
      const auto first = uint32_t(found.pieces.size());
      if (first + its.size() > kMostPieces)
        return fail(ErrorCode::full, "the world has more than " + std::to_string(kMostPieces) +
                                         " pieces of pages, too many to look for what is connected");
      found.firsts[page] = first;
      const std::vector<PartBegin> begins = parts[i].begins();
      for (size_t part = 0; part < its.size(); ++part) {
        found.parents.push_back(uint32_t(found.pieces.size()));
        found.pieces.push_back({begins[part], its[part].voxels, its[part].box});
      }
      if (with_materials) {
        const std::vector<BrickMap> each = parts[i].each(its.size());
        std::vector<std::array<uint32_t, 256>> counts(each.size());
        parallel_for(each.size(), 1, [&](size_t begin, size_t end) {
          for (size_t part = begin; part < end; ++part) counts[part] = materials_of(each[part]);
        });
        for (uint32_t part = 0; part < counts.size(); ++part)
          for (uint32_t m = 1; m < 256; ++m)
            if (counts[part][m]) found.materials.push_back({first + part, uint8_t(m), counts[part][m]});
      }
      const Box3 own = bricks_in_page(page, 0);
      PartBorder border = parts[i].border({own.min + Int3{1, 1, 1}, own.max - Int3{1, 1, 1}});
      bool others_come = false;
      beside_page(page, [&](uint32_t other) {
        const auto known = found.firsts.find(other);
        if (known == found.firsts.end() || other == page) {
          others_come = true;
          return;
        }
        const auto touch = [&](uint32_t a, uint32_t b) { found.join(first + a, known->second + b); };
        if (const auto its_border = beside.find(other); its_border != beside.end())
          border.meet(its_border->second, connectivity, touch);
      });
      if (others_come) beside.emplace(page, std::move(border));
      // Those beside which no other is to come any more.
      beside_page(page, [&](uint32_t other) {
        const auto known = beside.find(other);
        if (known == beside.end()) return;
        bool more = false;
        beside_page(other, [&](uint32_t next) { more |= !found.firsts.contains(next); });
        if (!more) beside.erase(known);
      });
    }
  }
  return found;
}

Result<std::vector<device::PartScratch::Part>> DeviceHome::find_parts_in_parts(uint32_t neighbours) {
  QRY_TRY_ASSIGN(PiecesFound found, find_pieces(neighbours, true));
  return found.in_order();
}

Result<uint64_t> DeviceHome::keep_parts_in_parts(uint32_t neighbours, uint64_t most, uint64_t least) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  PiecesFound found;
  std::vector<uint8_t> stays;  // of the pieces
  const auto begin = [&]() -> Result<PageGroups> {
    QRY_TRY_ASSIGN(const auto pages, pages_in_use());
    QRY_TRY_ASSIGN(found, find_pieces(neighbours, false));
    const auto parts = found.in_order();
    stays.resize(found.pieces.size());
    for (size_t i = 0; i < stays.size(); ++i) {
      const uint32_t part = found.part_of[i];
      stays[i] = part < most && parts[part].voxels >= least;
    }
    std::unordered_map<uint32_t, uint64_t> bytes;
    for (const PageUse& page : pages) bytes[page.number] = page.bytes + page.bricks * kChangeBytes;
    return PageGroups(bytes, group_bytes());
  };
  const auto become = [&](std::span<const uint32_t> pages, const BrickMap& before) -> Result<BrickMap> {
    QRY_TRY_ASSIGN(const auto parts, parts_of_pages(before, pages, Connectivity(neighbours)));
    std::vector<BrickPut> left;
    for (size_t i = 0; i < pages.size(); ++i) {
      const auto first = found.firsts.find(pages[i]);
      if (first == found.firsts.end()) continue;
      const BrickMap some = parts[i].some(std::span(stays).subspan(first->second, parts[i].parts().size()));
      const auto all = some.bricks();
      for (auto one = all.begin(); one != all.end(); ++one) left.push_back({(*one).first, one.shared()});
    }
    std::ranges::sort(left, {}, &BrickPut::brick);
    BrickMap after;
    after.put(left);
    return after;
  };
  return change_groups("keep parts", begin, become);
}

// ---- Floods

namespace {

// What of the bricks has this material.
BrickMap of_material(const BrickMap& bricks, uint8_t material) {
  std::vector<BrickPut> puts;
  const auto all = bricks.bricks();
  for (auto one = all.begin(); one != all.end(); ++one) {
    if (one.shared().material()) {
      if (one.shared().material() == material) puts.push_back({(*one).first, one.shared()});
      continue;
    }
    const BrickView before = *one.shared();
    Brick its;
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (before.materials[i] == material) its.set(i, material);
    if (const SharedBrick some = BrickPool::loose().make(its)) puts.push_back({(*one).first, some});
  }
  BrickMap map;
  map.put(puts);
  return map;
}

}  // namespace

// What is connected with a voxel, found page by page from the one that has it on: of each page the parts of that
// material, which of them touch across pages, and which of them are reached so.
struct DeviceHome::FloodFound {
  struct OfPage {
    uint32_t first = 0, count = 0;  // its pieces
    PartBorder border;
  };
  std::unordered_map<uint32_t, OfPage> pages;
  std::vector<Box3> boxes;  // of the pieces
  std::vector<uint32_t> page_of_piece;
  std::vector<std::vector<uint32_t>> touching;  // pieces of other pages
  std::vector<uint8_t> reached;
  uint8_t material = 0;
};

// The page's parts are added, with what they touch of pages that are known.
Result<ConnectedParts> DeviceHome::add_flood_page(FloodFound& found, uint32_t page) {
  QRY_TRY_ASSIGN(const BrickMap bricks, bricks_of_pages({&page, 1}, true, nullptr));
  QRY_TRY_ASSIGN(ConnectedParts parts, ConnectedParts::find(of_material(bricks, found.material), Connectivity::faces));
  const auto first = uint32_t(found.boxes.size());
  if (first + parts.parts().size() > kMostPieces)
    return fail(ErrorCode::full, "a flood meets too many pieces of pages");
  const Box3 own = bricks_in_page(page, 0);
  PartBorder border = parts.border({own.min + Int3{1, 1, 1}, own.max - Int3{1, 1, 1}});
  for (const ConnectedPart& part : parts.parts()) {
    found.boxes.push_back(part.box);
    found.page_of_piece.push_back(page);
    found.touching.emplace_back();
    found.reached.push_back(0);
  }
  for (const Int3 step : {Int3{-16, 0, 0}, {16, 0, 0}, {0, -16, 0}, {0, 16, 0}, {0, 0, -16}, {0, 0, 16}}) {
    const Int3 at = own.min + step;
    const auto known = brick_in_world(at) ? found.pages.find(page_of(at)) : found.pages.end();
    if (known == found.pages.end()) continue;
    border.meet(known->second.border, Connectivity::faces, [&](uint32_t a, uint32_t b) {
      found.touching[first + a].push_back(known->second.first + b);
      found.touching[known->second.first + b].push_back(first + a);
    });
  }
  found.pages[page] = {first, uint32_t(parts.parts().size()), std::move(border)};
  return parts;
}

Result<DeviceHome::FloodFound> DeviceHome::find_flood(Int3 voxel) {
  FloodFound found;
  if (!voxel_in_world(voxel)) return found;
  const std::array<int32_t, 3> xyz{voxel.x, voxel.y, voxel.z};
  QRY_TRY(get_held_voxels(xyz.data(), &found.material, 1));
  if (found.material == 0) return found;
  std::unordered_set<uint32_t> known;
  QRY_TRY_ASSIGN(const auto pages, pages_->known());
  for (const PageUse& page : pages) known.insert(page.number);
  QRY_TRY_ASSIGN(const auto parts, add_flood_page(found, page_of(brick_of(voxel))));
  std::vector<uint32_t> to_do;
  const auto reach = [&](uint32_t piece) {
    if (!std::exchange(found.reached[piece], 1)) to_do.push_back(piece);
  };
  std::vector<uint8_t> chosen(parts.parts().size());
  for (uint32_t i = 0; i < chosen.size() && to_do.empty(); ++i) {
    if (intersected(parts.parts()[i].box, {voxel, voxel}).empty()) continue;
    chosen[i] = 1;
    if (parts.some(chosen).get(voxel)) reach(i);
    chosen[i] = 0;
  }
  while (!to_do.empty()) {
    const uint32_t piece = to_do.back();
    to_do.pop_back();
    const Box3 box = found.boxes[piece], page = voxels_of_page(found.page_of_piece[piece]);
    const auto beside = [&](bool touches, Int3 at) -> Result<void> {
      if (!touches || !voxel_in_world(at)) return {};
      const uint32_t number = page_of(brick_of(at));
      if (known.contains(number) && !found.pages.contains(number)) QRY_TRY(add_flood_page(found, number));
      return {};
    };
    QRY_TRY(beside(box.min.x == page.min.x, page.min - Int3{1, 0, 0}));
    QRY_TRY(beside(box.min.y == page.min.y, page.min - Int3{0, 1, 0}));
    QRY_TRY(beside(box.min.z == page.min.z, page.min - Int3{0, 0, 1}));
    QRY_TRY(beside(box.max.x == page.max.x, page.max + Int3{1, 0, 0}));
    QRY_TRY(beside(box.max.y == page.max.y, page.max + Int3{0, 1, 0}));
    QRY_TRY(beside(box.max.z == page.max.z, page.max + Int3{0, 0, 1}));
    for (const uint32_t other : found.touching[piece]) reach(other);
  }
  for (auto& [number, page] : found.pages) page.border = {};
  return found;
}

Result<uint64_t> DeviceHome::flood_in_parts(const Edit& edit) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  FloodFound found;
  PageGroups groups;
  uint64_t flooded = 0;  // bricks
  const auto begin = [&]() -> Result<void> {
    QRY_TRY_ASSIGN(found, find_flood(edit.a));
    std::unordered_map<uint32_t, uint64_t> bytes;
    for (const auto& [number, page] : found.pages) {
      const auto its = std::span(found.reached).subspan(page.first, page.count);
      if (std::ranges::count(its, 1)) bytes[number] = kPageBricks * kChangeBytes;
    }
    groups = PageGroups(bytes, group_bytes());
    return {};
  };
  const auto make = [&](size_t number) -> Result<std::optional<uint64_t>> {
    if (number == 0) QRY_TRY(begin());
    if (number == groups.size()) return std::optional<uint64_t>();
    std::vector<BrickPut> puts;
    for (const uint32_t page : groups.groups[number]) {
      const FloodFound::OfPage& its = found.pages.at(page);
      QRY_TRY_ASSIGN(const BrickMap bricks, bricks_of_pages({&page, 1}, true, nullptr));
      QRY_TRY_ASSIGN(const auto parts, ConnectedParts::find(of_material(bricks, found.material), Connectivity::faces));
      const BrickMap some = parts.some(std::span(found.reached).subspan(its.first, its.count));
      const auto all = some.bricks();
      for (auto one = all.begin(); one != all.end(); ++one) puts.push_back({(*one).first, one.shared()});
    }
    flooded += puts.size();
    if (flooded > kMostBricksPerEdit)
      return fail(ErrorCode::full, "a flood of more than " + std::to_string(kMostBricksPerEdit) + " bricks");
    QRY_TRY(pages_->bricks(puts));
    std::vector<uint32_t> keys;
    std::vector<BrickMask> voxels;
    for (const BrickPut& put : puts) {
      keys.push_back(brick_key(put.brick));
      voxels.push_back(put.value->mask);
    }
    const std::lock_guard lock(lock_);
    QRY_TRY_ASSIGN(const uint64_t ticket, write(keys, voxels, {}, edit, edit_label(edit)));
    return std::optional(ticket);
  };
  return in_parts(edit_label(edit), [&](size_t number) { return without_throwing([&] { return make(number); }); });
}

// ---- With another world

// Bricks of another world, by pages.
struct DeviceHome::OtherBricks {
  std::unordered_map<uint32_t, uint64_t> in_pages;  // how many each has
  std::function<Result<BrickMap>(std::span<const uint32_t> pages)> read;
  uint64_t most_bytes = UINT64_MAX;  // to be read at a time
};

Result<DeviceHome::OtherBricks> DeviceHome::bricks_as_other(const device::Store::NewMaterials* materials) {
  OtherBricks bricks;
  QRY_TRY_ASSIGN(const auto pages, pages_in_use());
  for (const PageUse& page : pages) bricks.in_pages[page.number] = page.bricks;
  bricks.most_bytes = group_bytes();
  const auto table = materials ? std::optional(*materials) : std::nullopt;
  bricks.read = [this, table](std::span<const uint32_t> of) -> Result<BrickMap> {
    QRY_TRY_ASSIGN(auto its, bricks_of_pages(of, false, nullptr));
    return table ? remapped(its, *table) : its;
  };
  return bricks;
}

// Those outside of the world are left out, but for `outside`.
DeviceHome::OtherBricks DeviceHome::as_other(const BrickMap& map, bool* outside) {
  OtherBricks bricks;
  const auto all = map.bricks();
  for (auto one = all.begin(); one != all.end(); ++one) {
    if (brick_in_world((*one).first)) ++bricks.in_pages[page_of((*one).first)];
    else *outside = true;
  }
  bricks.read = [&map](std::span<const uint32_t> pages) -> Result<BrickMap> {
    std::vector<BrickPut> puts;
    for (const uint32_t page : pages) std::ranges::move(map.within(bricks_in_page(page, 0)), std::back_inserter(puts));
    std::ranges::sort(puts, {}, &BrickPut::brick);
    BrickMap some;
    some.put(puts);
    return some;
  };
  return bricks;
}

Result<void> DeviceHome::visit_beside(DeviceHome& other, const UseBoth& use) {
  QRY_TRY(check_one_grid());
  QRY_TRY(other.check_one_grid());
  const auto stay = stay_there(), others = other.stay_there();
  QRY_TRY_ASSIGN(const auto bricks, other.bricks_as_other(nullptr));
  return visit_both(bricks, use);
}

Result<void> DeviceHome::visit_beside(const BrickMap& other, const UseBoth& use) {
  QRY_TRY(check_one_grid());
  const auto stay = stay_there();
  bool outside = false;
  return visit_both(as_other(other, &outside), use);
}

Result<void> DeviceHome::visit_both(const OtherBricks& other, const UseBoth& use) {
  const ThreadShare share(threads_ ? threads_ : thread_count());
  QRY_TRY_ASSIGN(const auto pages, pages_in_use());
  std::unordered_map<uint32_t, uint64_t> bytes;
  for (const auto& [page, bricks] : other.in_pages) bytes[page] = bricks * (kKeyBytes + kVoxelBytes);
  for (const PageUse& page : pages) bytes[page.number] += page.bytes;
  const PageGroups groups(bytes, std::min(other.most_bytes, group_bytes()));
  for (const std::vector<uint32_t>& group : groups.groups) {
    QRY_TRY_ASSIGN(const BrickMap own, bricks_of_pages(group, false, nullptr));
    QRY_TRY_ASSIGN(const BrickMap theirs, other.read(group));
    QRY_TRY(use(own, theirs));
  }
  return {};
}

Result<uint64_t> DeviceHome::combine_in_parts(DeviceHome& other, device::Combination combination,
                                              const device::Store::NewMaterials* materials) {
  QRY_TRY_ASSIGN(const auto bricks, other.bricks_as_other(materials));
  return combine_in_parts(bricks, combination, "combine");
}

Result<uint64_t> DeviceHome::combine(const BrickMap& other, device::Combination combination, const char* label) {
  QRY_TRY(check_one_grid());
  bool outside = false;
  const OtherBricks bricks = as_other(other, &outside);
  if (outside && combination == device::Combination::union_of) QRY_TRY(outside_of_world());
  return combine_in_parts(bricks, combination, label);
}

Result<uint64_t> DeviceHome::combine_in_parts(const OtherBricks& other, device::Combination combination,
                                              const char* label) {
  const auto stay = stay_there();
  const ThreadShare share(threads_ ? threads_ : thread_count());
  const auto begin = [&]() -> Result<PageGroups> {
    QRY_TRY_ASSIGN(const auto pages, pages_in_use());
    std::unordered_map<uint32_t, uint64_t> bytes;
    const bool is_union = combination == device::Combination::union_of;
    if (is_union)
      for (const auto& [page, bricks] : other.in_pages) bytes[page] = bricks * kChangeBytes;
    for (const PageUse& page : pages) {
      if (combination != device::Combination::intersection && !other.in_pages.contains(page.number)) continue;
      bytes[page.number] += page.bytes + (is_union ? 0 : page.bricks * kChangeBytes);
    }
    return PageGroups(bytes, std::min(other.most_bytes, group_bytes()));
  };
  const auto become = [&](std::span<const uint32_t> pages, const BrickMap& before) -> Result<BrickMap> {
    QRY_TRY_ASSIGN(const BrickMap theirs, other.read(pages));
    return boolean(before, theirs, BooleanKind(combination));
  };
  return change_groups(label, begin, become);
}

}  // namespace quarry::engine
