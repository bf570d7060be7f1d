// SPDX-License-Identifier: Apache-2.0
// residence.cpp - children on their way in and out, and growing.
#include "hashgrid/paged/residence.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace quarry::hashgrid::paged {
namespace {

// As in grid.cpp: below this load a table is not grown for keys that crowd into few pages.
constexpr double kLeastChildLoad = 1.0 / 64;
constexpr uint32_t kChildPagesAllowed = 64;

}  // namespace

Result<MemoryBlock> Residence::take_block(size_t size_bytes) {
  {
    const std::lock_guard lock(mutex);
    auto best = spare.end();
    for (auto each = spare.begin(); each != spare.end(); ++each)
      if (each->size_bytes >= size_bytes && each->size_bytes / 2 <= size_bytes &&
          (best == spare.end() || each->size_bytes < best->size_bytes))
        best = each;
    if (best != spare.end()) {
      const MemoryBlock found = *best;
      spare.erase(best);
      return found;
    }
  }
  auto made = host_memory->allocate(size_bytes, "paged grid cache");
  if (made) return made;
  std::vector<MemoryBlock> unused;
  {
    const std::lock_guard lock(mutex);
    unused.swap(spare);
  }
  if (unused.empty()) return made;
  for (const MemoryBlock& each : unused) host_memory->release(each);
  return host_memory->allocate(size_bytes, "paged grid cache");
}

void Residence::give_block(MemoryBlock& given) {
  if (given.data == nullptr) return;
  const std::lock_guard lock(mutex);
  spare.push_back(std::exchange(given, MemoryBlock{}));
}

Result<void> Residence::check_budget(uint64_t pages) const {
  if (pages <= arena.pages()) return {};
  return fail(ErrorCode::full, "its table needs " + std::to_string(pages * kQryPageBytes) +
                                   " bytes, but the budget has " + std::to_string(bytes_of(arena.pages())) +
                                   " for tables; give a larger budget_bytes, or use smaller regions");
}

Result<uint32_t> Residence::take_run(Lane& lane, uint32_t pages) {
  std::unique_lock lock(mutex);
  QRY_TRY(check_budget(pages));
  bool ended = false;  // the lane's own copy
  for (;;) {
    if (const auto at = arena.take(pages)) return *at;
    Child* leaving = nullptr;
    for (Child* const child : residents)
      if (child->users == 0 && !child->moving && (leaving == nullptr || child->last_use < leaving->last_use))
        leaving = child;
    if (leaving == nullptr) {
      if (ended) {
        moved.wait(lock);
        continue;
      }
      ended = true;
      lock.unlock();
      end_copy(lane);
      lock.lock();
      continue;
    }
    QRY_TRY(send_out(lane, *leaving, lock));
  }
}

Result<void> Residence::send_out(Lane& lane, Child& child, std::unique_lock<std::mutex>& lock) {
  child.moving = true;
  lock.unlock();
  auto written = write_back(lane, child);
  lock.lock();
  child.moving = false;
  if (written) {
    leave(child);
    ++evictions;
  }
  moved.notify_all();
  return written;
}

void Residence::settle(Child& child, uint32_t at, uint32_t pages) {
  child.at = at;
  child.pages = pages;
  child.among_residents = residents.size();
  residents.push_back(&child);
}

void Residence::leave(Child& child) {
  arena.give(child.at, child.pages);
  residents.back()->among_residents = child.among_residents;
  residents[child.among_residents] = residents.back();
  residents.pop_back();
  child.at = kNowhere;
  child.pages = 0;
}

void Residence::drop_run(Child& child) {
  const std::lock_guard lock(mutex);
  if (child.resident()) leave(child);
  moved.notify_all();
}

Result<void> Residence::write_back(Lane& lane, Child& child) {
  if (child.current) return {};
  return copy_out(lane, child);
}

Result<void> Residence::send_to_cache(Lane& lane, Child& child) {
  const size_t size_bytes = bytes_of(child.pages);
  if (child.cached.size_bytes < size_bytes) {
    QRY_TRY_ASSIGN(MemoryBlock larger, take_block(size_bytes));
    give_block(child.cached);
    child.cached = larger;
  }
  child.current = false;
  child.cached_pages = 0;
  return lane.download(child.cached.data, view_of(&lane, child).words, size_bytes);
}

void Residence::is_in_cache(Child& child) {
  child.cached_pages = child.pages;
  child.current = true;
  ++writebacks;
  bytes_out += bytes_of(child.pages);
}

Result<void> Residence::copy_out(Lane& lane, Child& child) {
  const auto sent = send_to_cache(lane, child);
  const auto done = lane.wait();
  QRY_TRY(sent);
  QRY_TRY(done);
  is_in_cache(child);
  return {};
}

void Residence::begin_copy(Lane& lane, Child& child) {
  end_copy(lane);
  {
    const std::lock_guard lock(mutex);
    if (!child.resident() || child.users != 0 || child.moving || child.current) return;
    child.moving = true;
  }
  const auto sent = send_to_cache(lane, child);
  if (!sent) (void)lane.wait();
  const std::lock_guard lock(mutex);
  if (sent) {
    copying.emplace_back(&lane, &child);
    return;
  }
  child.moving = false;
  moved.notify_all();
}

void Residence::end_copy(Lane& lane) {
  Child* child = nullptr;
  {
    const std::lock_guard lock(mutex);
    const auto own = std::find_if(copying.begin(), copying.end(), [&](const auto& one) { return one.first == &lane; });
    if (own == copying.end()) return;
    child = own->second;
    copying.erase(own);
  }
  const auto done = lane.wait();
  const std::lock_guard lock(mutex);
  child->moving = false;
  if (done) is_in_cache(*child);
  moved.notify_all();
}

Result<void> Residence::bring(Lane& lane, Child& child) {
  std::unique_lock lock(mutex);
  while (child.moving) moved.wait(lock);
  if (child.resident()) {
    ++child.users;
    return {};
  }
  child.moving = true;
  lock.unlock();
  auto at = take_run(lane, child.cached_pages);
  Result<void> copied;
  if (at) {
    copied = lane.upload(view_at(*at, 1, 0).words, child.cached.data, bytes_of(child.cached_pages));
    const auto done = lane.wait();
    if (copied) copied = done;
  }
  lock.lock();
  child.moving = false;
  if (at && copied) {
    settle(child, *at, child.cached_pages);
    ++child.users;
    ++loads;
    bytes_in += bytes_of(child.pages);
  } else if (at) {
    arena.give(*at, child.cached_pages);
  }
  moved.notify_all();
  QRY_TRY(at);
  return copied;
}

Result<void> Residence::open(Lane& lane, Child& child, uint32_t pages) {
  QRY_TRY_ASSIGN(const uint32_t at, take_run(lane, pages));
  {
    const std::lock_guard lock(mutex);
    settle(child, at, pages);
    child.current = false;
    ++child.users;
  }
  auto cleared = lane.pairs().clear(view_of(&lane, child));
  if (!cleared) {
    drop_run(child);
    release(child);
  }
  return cleared;
}

Result<void> Residence::open_in_cache(Child& child, uint32_t pages) {
  if (child.cached.size_bytes < bytes_of(pages)) {
    QRY_TRY_ASSIGN(MemoryBlock larger, take_block(bytes_of(pages)));
    give_block(child.cached);
    child.cached = larger;
  }
  QRY_TRY(host_pairs->clear(view_in(child.cached, pages, child.phase)));
  child.cached_pages = pages;
  child.current = true;
  return {};
}

void Residence::release(Child& child) {
  const std::lock_guard lock(mutex);
  --child.users;
  child.last_use = ++clock;
  moved.notify_all();
}

void Residence::drop_table(Child& child) {
  drop_run(child);
  give_block(child.cached);
  child.cached_pages = 0;
  child.current = false;
  child.keys = 0;
}

bool Residence::may_have(uint64_t pages, uint64_t keys) const {
  return pages <= kChildPagesAllowed || double(keys) >= kLeastChildLoad * double(pages) * kQrySlotsPerPage;
}

Result<void> Residence::check_growth(uint64_t pages, uint64_t keys) const {
  if (pages > kMostChildPages) return fail(ErrorCode::full, "its table needs more pages than 32-bit keys can fill");
  if (!may_have(pages, keys))
    return fail(ErrorCode::full, "the keys crowd into few pages, and a table twice as large would be nearly empty");
  // One that could never be brought in again is not made.
  return check_budget(pages);
}

Result<void> Residence::grow(Lane* lane, Child& child, uint64_t pages, uint64_t keys, bool begun) {
  ++growths;
  if (lane != nullptr) {
    for (uint64_t wanted = pages;; wanted *= 2) {
      QRY_TRY(check_growth(wanted, keys));
      if (wanted > arena.pages()) break;
      std::optional<uint32_t> at;
      {
        const std::lock_guard lock(mutex);
        at = arena.take(uint32_t(wanted));
      }
      if (!at) break;
      const GridView to = view_at(*at, uint32_t(wanted), child.phase);
      auto cleared = lane->pairs().clear(to);
      Result<uint64_t> left = uint64_t{0};
      if (cleared) left = lane->pairs().rehash(view_of(lane, child), to);
      const std::lock_guard lock(mutex);
      const bool moved_all = cleared && left && *left == 0;
      if (moved_all) {
        arena.give(child.at, child.pages);
        child.at = *at;
        child.pages = uint32_t(wanted);
      } else {
        arena.give(*at, uint32_t(wanted));
      }
      moved.notify_all();
      QRY_TRY(cleared);
      QRY_TRY(left);
      if (moved_all) return {};
    }
    if (begun) QRY_TRY(copy_out(*lane, child));
    else QRY_TRY(write_back(*lane, child));
    {
      const std::lock_guard lock(mutex);
      leave(child);
      --child.users;
      child.moving = true;  // nobody else brings it in
      moved.notify_all();
    }
    auto grown = grow_in_cache(child, pages, keys);
    {
      const std::lock_guard lock(mutex);
      child.moving = false;
    }
    if (grown) grown = bring(*lane, child);
    if (!grown) {  // the caller's release() is owed
      const std::lock_guard lock(mutex);
      ++child.users;
    }
    return grown;
  }
  return grow_in_cache(child, pages, keys);
}

Result<void> Residence::grow_in_cache(Child& child, uint64_t pages, uint64_t keys) {
  for (;; pages *= 2) {
    QRY_TRY(check_growth(pages, keys));
    QRY_TRY_ASSIGN(MemoryBlock larger, take_block(bytes_of(uint32_t(pages))));
    const GridView to = view_in(larger, uint32_t(pages), child.phase);
    auto cleared = host_pairs->clear(to);
    Result<uint64_t> left = uint64_t{0};
    if (cleared) left = host_pairs->rehash(view_of(nullptr, child), to);
    if (!cleared || !left || *left != 0) give_block(larger);
    QRY_TRY(cleared);
    QRY_TRY(left);
    if (*left != 0) continue;
    give_block(child.cached);
    child.cached = larger;
    child.cached_pages = uint32_t(pages);
    return {};
  }
}

}  // namespace quarry::hashgrid::paged
