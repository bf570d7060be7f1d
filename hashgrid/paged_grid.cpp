// SPDX-License-Identifier: Apache-2.0
// paged_grid.cpp - batches by region, what is done when something fails, and argument checks. Where children are, and
// who leaves for whom: paged/residence.hpp.
//
// Within a call, a thread drives each lane and takes one job after the other: a region's part of the batch.
#include "hashgrid/paged_grid.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/parallel.hpp"
#include "hashgrid/paged/pieces.hpp"
#include "hashgrid/paged/residence.hpp"
#include "hashgrid/paged/split.hpp"

namespace quarry::hashgrid {
namespace {

using paged::bytes_of;
using paged::Child;
using paged::kMostChildPages;
using paged::Pieces;

constexpr uint32_t kCudaLanes = 4, kMostLanes = 64;
constexpr uint64_t kMostStaged = uint64_t{1} << 20, kLeastStaged = 256;
constexpr uint64_t kStagedBytes = 2 * 2 * sizeof(uint32_t);  // of a staged pair: two buffers
constexpr uint64_t kStagingPart = 4;                         // of the budget, if the caller does not say
constexpr size_t kMostAtOnce = size_t{1} << 31;              // of a batch that is split at once
constexpr size_t kGrain = 16384;

enum class Change : uint8_t { insert, assign, erase };
const char* to_string(Change what) {
  return what == Change::insert ? "insert" : what == Change::assign ? "assign" : "erase";
}

Result<void> same_number(const char* what, size_t keys, size_t others, const char* name) {
  if (keys == others) return {};
  return fail(ErrorCode::invalid_argument, std::string("paged grid ") + what + ": " + std::to_string(keys) +
                                               " keys but " + std::to_string(others) + " " + name);
}

}  // namespace

struct PagedGrid::State : paged::Residence {
  // A region's part of a batch.
  struct Job {
    Child* child = nullptr;
    uint64_t begin = 0, count = 0;
    bool on_host = false;
    bool fresh = false;  // the child has no table yet. (During the call other jobs may move it.)
    BulkReport report{};
  };
  // A batch in the order of regions.
  struct Batch {
    const uint32_t* keys = nullptr;
    const uint32_t* values = nullptr;
    uint32_t* results = nullptr;
  };

  Executor* executor = nullptr;
  MemorySource* memory = nullptr;
  PagedOptions options;
  std::vector<std::unique_ptr<Lane>> lanes;
  MemoryBlock block;  // staging of the lanes, then the arena's pages
  // For view(): the directory's pages, views of the resident children, then keys and values that it is made from.
  MemoryBlock index;
  PagedView index_view;
  bool index_current = false;
  MemoryBlock scratch;  // a batch in the order of regions; kept between calls
  std::unique_ptr<Executor> host;
  std::unique_ptr<Grid> directory;  // region -> position in `children`
  std::vector<std::unique_ptr<Child>> children;

  std::atomic<uint64_t> host_parts{0}, rescued{0};
  std::atomic<size_t> parts_to_come{0};  // of the call under way, for lanes

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    lanes.clear();
    for (const auto& child : children)
      if (child->cached.data != nullptr) host_memory->release(child->cached);
    for (const MemoryBlock& each : spare) host_memory->release(each);
    if (scratch.data != nullptr) host_memory->release(scratch);
    if (index.data != nullptr) memory->release(index);
    if (block.data != nullptr) memory->release(block);
  }

  uint32_t threads() const { return host->parallelism(); }
  uint32_t* staging_of(uint32_t lane) const {
    return static_cast<uint32_t*>(block.data) + lane * options.staged_pairs * kStagedBytes / sizeof(uint32_t);
  }
  uint64_t pages_for(uint64_t keys) const {
    return std::max<uint64_t>(1, uint64_t(std::ceil(double(keys) / options.max_load_factor / kQrySlotsPerPage)));
  }
  Result<uint32_t*> take_scratch(size_t words) {
    if (scratch.size_bytes < words * sizeof(uint32_t)) {
      if (scratch.data != nullptr) host_memory->release(std::exchange(scratch, MemoryBlock{}));
      QRY_TRY_ASSIGN(scratch, host_memory->allocate(words * sizeof(uint32_t), "paged grid batch"));
    }
    return static_cast<uint32_t*>(scratch.data);
  }

  // ---- Parts of batches.
  static Result<BulkReport> change_once(BulkOperations<GridView>& on, const GridView& view, Change what, bool exclusive,
                                        bool fresh, const Pieces::Piece& piece) {
    if (what == Change::erase) return on.erase_exclusive(view, piece.keys, piece.count);
    if (what == Change::insert)
      return exclusive ? on.insert_exclusive(view, piece.keys, piece.values, piece.count, fresh)
                       : on.insert(view, piece.keys, piece.values, piece.count, nullptr);
    return exclusive ? on.assign_exclusive(view, piece.keys, piece.values, piece.count)
                     : on.assign(view, piece.keys, piece.values, piece.count, nullptr);
  }
  // Tries a piece's keys once more, one by one, and moves other keys for those that have no place then. What is left
  // over is `full` of the report; all of them, if there is no memory for their outcomes.
  Result<BulkReport> place_refused(Lane* lane, Child& child, Change what, const Pieces::Piece& piece, uint64_t full) {
    MemorySource& from = lane == nullptr ? *host_memory : *memory;
    BulkReport none;
    none.full = full;
    const auto room = from.allocate(piece.count * sizeof(Outcome), "paged grid outcomes");
    if (!room) return none;
    auto* const outcomes = static_cast<Outcome*>(room->data);
    auto placed = [&]() -> Result<BulkReport> {
      BulkOperations<GridView>& on = operations(lane);
      QRY_TRY_ASSIGN(BulkReport again,
                     what == Change::insert
                         ? on.insert(view_of(lane, child), piece.keys, piece.values, piece.count, outcomes)
                         : on.assign(view_of(lane, child), piece.keys, piece.values, piece.count, outcomes));
      if (again.full == 0) return again;
      next_phase(child);
      QRY_TRY_ASSIGN(const BulkReport late,
                     on.insert_refused(view_of(lane, child), piece.keys, piece.values, piece.count, outcomes));
      again.inserted += late.inserted;
      again.full = late.full;
      return again;
    }();
    from.release(*room);
    return placed;
  }
  static void next_phase(Child& child) { child.phase = child.phase + 1 == kQryPhaseNever ? 0 : child.phase + 1; }

  // Puts a piece. Keys that a stream over pages refuses are tried one by one, then other keys are moved for them, then
  // a larger table is made.
  Result<BulkReport> change_piece(Lane* lane, Child& child, Change what, bool fresh, uint64_t keys_before,
                                  const Pieces::Piece& piece) {
    uint64_t earlier = 0;
    bool may_move = what != Change::erase;  // once for each size of the table
    for (uint32_t round = 0;; ++round) {
      next_phase(child);
      QRY_TRY_ASSIGN(BulkReport report, change_once(operations(lane), view_of(lane, child), what, round % 2 == 0,
                                                    fresh && round == 0, piece));
      if (report.full == 0) {
        // Keys of earlier rounds were found again.
        uint64_t& found = what == Change::assign ? report.assigned : report.present;
        found -= std::min(found, earlier);
        report.inserted += earlier;
        return report;
      }
      earlier += report.inserted;
      if (round % 2 == 0) continue;
      if (may_move) {
        may_move = false;
        QRY_TRY_ASSIGN(const BulkReport placed, place_refused(lane, child, what, piece, report.full));
        earlier += placed.inserted;
        report.full = placed.full;
      }
      if (report.full == 0) continue;  // all of them are found now
      const uint64_t pages = lane != nullptr ? child.pages : child.cached_pages;
      QRY_TRY(grow(lane, child, pages * 2, keys_before + earlier + report.full, true));
      may_move = what != Change::erase;
    }
  }
  // `begun` is set before the first change.
  Result<BulkReport> try_change(Lane* lane, Pieces& pieces, Change what, Job& job, bool& begun) {
    Child& child = *job.child;
    const bool fresh = job.fresh;
    const uint64_t more = what == Change::erase ? 0 : job.count;
    uint64_t needed = pages_for(std::max(child.least_keys, child.keys + more));
    if (needed > kMostChildPages) needed = kMostChildPages;  // then most keys are known or equal
    if (lane != nullptr) {
      if (const auto sent = pieces.send(0); !sent) return tl::unexpected(sent.error());
      QRY_TRY(fresh ? open(*lane, child, uint32_t(needed)) : bring(*lane, child));
    } else if (fresh) {
      QRY_TRY(open_in_cache(child, uint32_t(needed)));
    }
    if (!child.counted) recount(lane, child);
    const auto pages = [&] { return uint64_t{lane != nullptr ? child.pages : child.cached_pages}; };
    if (!fresh && what != Change::erase && needed > pages()) {
      // Only absent keys take slots.
      uint64_t added = job.count;
      if (child.keys != 0) {
        added = 0;
        for (uint64_t i = 0; i < pieces.size(); ++i) {
          QRY_TRY_ASSIGN(const Pieces::Piece piece, pieces.take(i));
          QRY_TRY_ASSIGN(const BulkReport there,
                         operations(lane).find(view_of(lane, child), piece.keys, piece.count, nullptr, nullptr));
          added += there.absent;
        }
      }
      needed = pages_for(std::max(child.least_keys, child.keys + added));
      if (needed > pages()) {
        // By a quarter at least, so that small batches do not copy the table each time.
        uint64_t wanted = std::max(needed, pages() + pages() / 4);
        if (lane != nullptr && wanted > arena.pages()) wanted = needed;
        QRY_TRY(grow(lane, child, wanted, UINT64_MAX, false));
      }
    }
    BulkReport total;
    for (uint64_t i = 0; i < pieces.size(); ++i) {
      QRY_TRY_ASSIGN(const Pieces::Piece piece, pieces.take(i));
      begun = true;
      QRY_TRY_ASSIGN(const BulkReport report,
                     change_piece(lane, child, what, fresh && i == 0, child.keys + total.inserted, piece));
      add(total, report);
    }
    return total;
  }

  Result<void> change_part(Lane* lane, uint32_t* staging, Change what, const Batch& batch, Job& job) {
    Child& child = *job.child;
    const uint32_t* const keys = batch.keys + job.begin;
    const uint32_t* const values = batch.values == nullptr ? nullptr : batch.values + job.begin;
    Pieces pieces(lane, staging, options.staged_pairs, keys, values, job.count);
    bool begun = false;
    auto done = try_change(lane, pieces, what, job, begun);
    bytes_in += pieces.bytes();
    if (done) {
      child.keys += done->inserted;
      child.keys -= std::min(child.keys, done->erased);
      if (lane != nullptr && done->inserted + done->assigned + done->erased != 0) child.current = false;
      if (lane == nullptr) ++host_parts;
    } else {
      if (lane != nullptr) (void)lane->wait();  // nothing is on its way to or from what is given back
      if (job.fresh) drop_table(child);
      else if (begun) done = mend(lane, what, keys, values, job, done.error());
    }
    if (child.users != 0) release(child);
    QRY_TRY(done);
    job.report = *done;
    if (lane != nullptr && will_leave()) begin_copy(*lane, child);
    return {};
  }
  // The executor failed within a part, or memory for a growth was refused.
  Result<BulkReport> mend(Lane* lane, Change what, const uint32_t* keys, const uint32_t* values, const Job& job,
                          const Error& why) {
    Child& child = *job.child;
    // As before the call.
    if (lane != nullptr && child.resident() && child.current) {
      drop_run(child);
      return tl::unexpected(why);
    }
    if (lane == nullptr) {
      recount(nullptr, child);
      return tl::unexpected(why);
    }
    // The rest by host threads. What is in already is found and put again.
    if (child.resident()) {
      if (!copy_out(*lane, child)) {
        recount(lane, child);
        return tl::unexpected(why);
      }
      drop_run(child);
    }
    const uint64_t before = child.keys;
    Pieces whole(nullptr, nullptr, 0, keys, values, job.count);
    auto done = whole.take(0);
    QRY_TRY(done);
    auto report = change_piece(nullptr, child, what, false, child.keys, *done);
    recount(nullptr, child);
    if (!report) return tl::unexpected(why);
    ++rescued;
    // What was put before the failure has been found again.
    if (what == Change::erase) {
      const uint64_t gone = before - std::min(before, child.keys);
      report->absent -= std::min(report->absent, gone - std::min(gone, report->erased));
      report->erased = gone;
    } else {
      const uint64_t come = child.keys - std::min(child.keys, before);
      uint64_t& found = what == Change::assign ? report->assigned : report->present;
      found -= std::min(found, come - std::min(come, report->inserted));
      report->inserted = come;
    }
    return report;
  }
  void recount(Lane* lane, Child& child) {
    const auto keys = operations(lane).enumerate(view_of(lane, child), nullptr, nullptr, 0);
    if (keys) child.keys = *keys;
    child.counted = keys.has_value();
  }

  Result<void> find_part(Lane* lane, uint32_t* staging, const Batch& batch, Job& job) {
    Child& child = *job.child;
    const uint32_t* const keys = batch.keys + job.begin;
    uint32_t* const results = batch.results + job.begin;
    if (lane == nullptr) {
      QRY_TRY_ASSIGN(job.report, host->pairs().find(view_of(nullptr, child), keys, job.count, results, nullptr));
      ++host_parts;
      return {};
    }
    const auto found = [&]() -> Result<BulkReport> {
      uint32_t* const values = staging + 2 * options.staged_pairs;
      QRY_TRY(lane->upload(staging, keys, job.count * sizeof(uint32_t)));
      QRY_TRY(lane->order_after_uploads());
      QRY_TRY_ASSIGN(const BulkReport report,
                     lane->pairs().find(view_of(lane, child), staging, job.count, values, nullptr));
      QRY_TRY(lane->download(results, values, job.count * sizeof(uint32_t)));
      bytes_in += job.count * sizeof(uint32_t);
      bytes_out += job.count * sizeof(uint32_t);
      return report;
    };
    QRY_TRY(bring(*lane, child));
    const auto report = found();
    const auto waited = lane->wait();
    release(child);
    QRY_TRY(report);
    QRY_TRY(waited);
    job.report = *report;
    return {};
  }

  // Whether what a part has just changed will leave within the call: as many parts follow as children are resident.
  bool will_leave() {
    const std::lock_guard lock(mutex);
    return parts_to_come >= residents.size();
  }

  // Does the jobs: those of resident children first, a thread for each lane; those in the cache by host threads beside
  // them. After an error no further job is begun. The error names the first region that failed.
  using Work = std::function<Result<void>(Lane*, uint32_t*, Job&)>;
  Result<void> run(const char* what, std::vector<Job>& jobs, const Work& work) {
    index_current = false;
    std::vector<Job*> of_lanes, of_host;
    for (Job& job : jobs) (job.on_host ? of_host : of_lanes).push_back(&job);
    std::stable_partition(of_lanes.begin(), of_lanes.end(), [](const Job* job) { return job->child->resident(); });
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    Result<void> result;
    std::mutex result_mutex;
    const auto attempt = [&](Lane* lane, uint32_t* staging, Job& job) {
      if (failed) return;
      const auto ok = work(lane, staging, job);
      if (ok) return;
      const std::lock_guard lock(result_mutex);
      if (!failed.exchange(true))
        result = fail(ok.error().code, std::string("paged grid ") + what + ": region " +
                                           std::to_string(job.child->region) + ": " + ok.error().message);
    };
    const auto drive = [&](uint32_t lane) {
      for (size_t i = next++; i < of_lanes.size(); i = next++) {
        parts_to_come = of_lanes.size() - i - 1;
        attempt(lanes[lane].get(), staging_of(lane), *of_lanes[i]);
      }
      end_copy(*lanes[lane]);
    };
    const auto drive_host = [&] {
      parallel_for(
          of_host.size(), 1,
          [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) attempt(nullptr, nullptr, *of_host[i]);
          },
          threads());
    };
    std::vector<std::thread> drivers;
    const size_t driven = std::min(lanes.size(), of_lanes.size());
    for (uint32_t lane = 1; lane < driven; ++lane) drivers.emplace_back(drive, lane);
    if (driven != 0 && !of_host.empty()) drivers.emplace_back(drive_host);
    if (driven != 0) drive(0);
    else drive_host();
    for (std::thread& driver : drivers) driver.join();
    return result;
  }

  bool better_in_cache(const Child& child, uint64_t keys, bool adds) const {
    if (child.resident()) return false;
    const uint64_t pages = std::max<uint64_t>(child.cached_pages, adds ? pages_for(child.keys + keys) : 1);
    return keys < options.host_keys_per_page * pages;
  }

  // The children of parts; those without one get it if `adds`, else null.
  Result<std::vector<Child*>> children_of(const std::vector<RegionPart>& parts, bool adds) {
    std::vector<uint32_t> regions(parts.size()), places(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) regions[i] = parts[i].region;
    QRY_TRY(directory->find(regions, places));
    std::vector<Child*> found(parts.size());
    std::vector<uint32_t> fresh, fresh_places;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (places[i] == kQryReservedValue && adds && regions[i] != kQryReservedKey) {
        places[i] = uint32_t(children.size() + fresh.size());
        fresh.push_back(regions[i]);
        fresh_places.push_back(places[i]);
      }
    }
    if (!fresh.empty()) {
      QRY_TRY(directory->insert(fresh, fresh_places));
      for (const uint32_t region : fresh) {
        children.push_back(std::make_unique<Child>());
        children.back()->region = region;
      }
    }
    for (size_t i = 0; i < parts.size(); ++i)
      if (places[i] != kQryReservedValue) found[i] = children[places[i]].get();
    return found;
  }
  Child* child_of(uint32_t region) const {
    const Found found = hashgrid::find(directory->view(), region);
    return found.hit ? children[found.value].get() : nullptr;
  }

  Result<BulkReport> change_all(Change what, const std::vector<RegionPart>& parts, const Batch& batch) {
    QRY_TRY_ASSIGN(const auto found, children_of(parts, what != Change::erase));
    std::vector<Job> jobs;
    BulkReport total;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].count == 0) continue;
      if (found[i] == nullptr || (what == Change::erase && !found[i]->has_table())) {
        (what == Change::erase ? total.absent : total.reserved) += parts[i].count;
        continue;
      }
      jobs.push_back({found[i], parts[i].begin, parts[i].count,
                      better_in_cache(*found[i], parts[i].count, what != Change::erase), !found[i]->has_table()});
    }
    QRY_TRY(run(to_string(what), jobs,
                [&](Lane* lane, uint32_t* staging, Job& job) { return change_part(lane, staging, what, batch, job); }));
    for (const Job& job : jobs) add(total, job.report);
    return total;
  }
  Result<BulkReport> find_all(const std::vector<RegionPart>& parts, const Batch& batch) {
    QRY_TRY_ASSIGN(const auto found, children_of(parts, false));
    std::vector<Job> jobs;
    BulkReport total;
    const uint64_t most = 2 * options.staged_pairs;
    for (size_t i = 0; i < parts.size(); ++i) {
      const RegionPart& part = parts[i];
      if (found[i] == nullptr || !found[i]->has_table()) {
        std::fill_n(batch.results + part.begin, part.count, kQryReservedValue);
        total.absent += part.count;
        continue;
      }
      // Several lanes may answer for one child.
      const bool on_host = better_in_cache(*found[i], part.count, false);
      for (uint64_t at = 0; at < part.count; at += most)
        jobs.push_back({found[i], part.begin + at, std::min(most, part.count - at), on_host});
    }
    QRY_TRY(run("find", jobs,
                [&](Lane* lane, uint32_t* staging, Job& job) { return find_part(lane, staging, batch, job); }));
    for (const Job& job : jobs) add(total, job.report);
    return total;
  }

  // Reserved keys and values are not in; all others are.
  static Result<BulkReport> refuse_reserved(Change what, const BulkReport& total, size_t keys) {
    if (what == Change::erase || total.reserved == 0) return total;
    return fail(ErrorCode::invalid_argument, std::string("paged grid ") + to_string(what) + ": " +
                                                 std::to_string(total.reserved) + " of " + std::to_string(keys) +
                                                 " regions, keys or values are the reserved 0xFFFFFFFF; all others "
                                                 "are in");
  }
  // A batch in any order: split, then as above.
  Result<BulkReport> change_unsorted(Change what, Span<const uint64_t> keys, const uint32_t* values) {
    BulkReport total;
    for (size_t first = 0; first < keys.size(); first += kMostAtOnce) {
      const Span<const uint64_t> some(keys.data() + first, std::min(kMostAtOnce, keys.size() - first));
      QRY_TRY_ASSIGN(uint32_t* const words, take_scratch(some.size() * (values != nullptr ? 2 : 1)));
      uint32_t* const values_out = values != nullptr ? words + some.size() : nullptr;
      RegionSplit split;
      QRY_TRY(split.plan(some, threads()));
      split.write(some, values == nullptr ? nullptr : values + first, words, values_out, nullptr);
      QRY_TRY_ASSIGN(const BulkReport report, change_all(what, split.parts(), {words, values_out, nullptr}));
      add(total, report);
    }
    return refuse_reserved(what, total, keys.size());
  }

  // What the caller says about a batch by regions.
  Result<std::vector<RegionPart>> parts_of(const char* what, Span<const RegionCount> counts, size_t keys) const {
    std::vector<RegionPart> parts(counts.size());
    uint64_t at = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      parts[i] = {counts[i].region, at, counts[i].keys};
      if (counts[i].keys > keys - at) at = keys + 1;
      else at += counts[i].keys;
      if (at > keys) break;
    }
    if (at != keys)
      return fail(ErrorCode::invalid_argument, std::string("paged grid ") + what + ": " + std::to_string(keys) +
                                                   " keys, but the regions' counts add up to another number");
    std::vector<uint32_t> regions(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) regions[i] = counts[i].region;
    std::sort(regions.begin(), regions.end());
    const auto twice = std::adjacent_find(regions.begin(), regions.end());
    if (twice != regions.end())
      return fail(ErrorCode::invalid_argument,
                  std::string("paged grid ") + what + ": region " + std::to_string(*twice) + " is named twice");
    return parts;
  }
  Result<BulkReport> change_sorted(Change what, Span<const RegionCount> counts, Span<const uint32_t> keys,
                                   const uint32_t* values) {
    QRY_TRY_ASSIGN(const auto parts, parts_of(to_string(what), counts, keys.size()));
    QRY_TRY_ASSIGN(const BulkReport total, change_all(what, parts, {keys.data(), values, nullptr}));
    return refuse_reserved(what, total, keys.size());
  }
  Result<void> check_empty() const {
    uint64_t keys = 0;
    for (const auto& child : children) keys += child->keys;
    if (keys == 0) return {};
    return fail(ErrorCode::invalid_argument,
                "paged grid build: it has " + std::to_string(keys) + " keys; clear it first, or call insert");
  }

  // Children with a table, each once.
  std::vector<Job> jobs_of(Span<const uint32_t> regions) const {
    std::vector<Job> jobs;
    for (size_t i = 0; i < regions.size(); ++i) {
      Child* const child = regions[i] == kQryReservedKey ? nullptr : child_of(regions[i]);
      const bool known = std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.child == child; });
      if (child != nullptr && child->has_table() && !known) jobs.push_back({child, 0, 0, false});
    }
    return jobs;
  }
  // The directory of view().
  Result<void> write_index() {
    std::vector<uint32_t> regions, places;
    std::vector<GridView> tables;
    for (const auto& child : children) {
      if (!child->has_table()) continue;
      regions.push_back(child->region);
      places.push_back(child->resident() ? uint32_t(tables.size()) : PagedView::kAway);
      if (child->resident()) tables.push_back(view_at(child->at, child->pages, child->phase));
    }
    constexpr double kIndexLoad = 0.5;
    for (uint64_t pages = uint64_t(double(regions.size()) / kIndexLoad / kQrySlotsPerPage) + 1;; pages *= 2) {
      const size_t tables_at = size_t(pages) * kQryPageBytes, regions_at = tables_at + tables.size() * sizeof(GridView),
                   places_at = regions_at + regions.size() * sizeof(uint32_t),
                   end = places_at + regions.size() * sizeof(uint32_t);
      if (index.size_bytes < end) {
        index_view = {};
        if (index.data != nullptr) memory->release(std::exchange(index, MemoryBlock{}));
        QRY_TRY_ASSIGN(index, memory->allocate(end, "paged grid directory"));
      }
      auto* const bytes = static_cast<std::byte*>(index.data);
      auto* const keys = reinterpret_cast<uint32_t*>(bytes + regions_at);
      auto* const values = reinterpret_cast<uint32_t*>(bytes + places_at);
      const GridView view{static_cast<uint64_t*>(index.data), uint32_t(pages), 0, kQryPlain};
      QRY_TRY(executor->upload(bytes + tables_at, tables.data(), tables.size() * sizeof(GridView)));
      QRY_TRY(executor->upload(keys, regions.data(), regions.size() * sizeof(uint32_t)));
      QRY_TRY(executor->upload(values, places.data(), places.size() * sizeof(uint32_t)));
      QRY_TRY(executor->pairs().clear(view));
      QRY_TRY_ASSIGN(const BulkReport report, executor->pairs().insert(view, keys, values, regions.size(), nullptr));
      if (report.full != 0) continue;
      index_view = {view, reinterpret_cast<const GridView*>(bytes + tables_at)};
      index_current = true;
      return {};
    }
  }

  Result<void> evict(std::vector<Job> jobs) {
    return run("evict", jobs, [&](Lane* lane, uint32_t*, Job& job) -> Result<void> {
      std::unique_lock lock(mutex);
      while (job.child->moving) moved.wait(lock);
      if (!job.child->resident()) return {};
      return send_out(*lane, *job.child, lock);
    });
  }
};

PagedGrid::PagedGrid(std::unique_ptr<State> state) : state_(std::move(state)) {}
PagedGrid::PagedGrid(PagedGrid&&) noexcept = default;
PagedGrid& PagedGrid::operator=(PagedGrid&&) noexcept = default;
PagedGrid::~PagedGrid() = default;

Result<PagedGrid> PagedGrid::create(Executor& executor, const PagedOptions& options, MemorySource* memory,
                                    MemorySource* host_memory) {
  if (!(options.max_load_factor > 0.0 && options.max_load_factor <= 0.95))
    return fail(ErrorCode::invalid_argument,
                "paged grid: max_load_factor must be in (0, 0.95], not " + std::to_string(options.max_load_factor));
  if (options.lanes > kMostLanes)
    return fail(ErrorCode::invalid_argument,
                "paged grid: " + std::to_string(options.lanes) + " lanes; at most " + std::to_string(kMostLanes));
  auto state = std::make_unique<State>();
  state->executor = &executor;
  state->memory = memory != nullptr ? memory : &executor.memory();
  state->host_memory = host_memory != nullptr ? host_memory : &executor.host_memory();
  state->options = options;
  PagedOptions& chosen = state->options;
  state->locality = uint32_t(options.locality);
  const bool host = executor.kind() == ExecutorKind::host;
  if (chosen.lanes == 0) chosen.lanes = host ? 1 : kCudaLanes;
  if (chosen.staged_pairs == 0)
    chosen.staged_pairs =
        std::clamp(options.budget_bytes / kStagingPart / kStagedBytes / chosen.lanes, kLeastStaged, kMostStaged);
  // Pages begin at a multiple of their size.
  constexpr uint64_t kMostStagedEver = uint64_t{1} << 28;
  const uint64_t staged = std::min(chosen.staged_pairs, kMostStagedEver) * kStagedBytes * chosen.lanes;
  chosen.staged_pairs = std::min(chosen.staged_pairs, kMostStagedEver);
  chosen.staged_pairs = chosen.staged_pairs < 4 ? chosen.staged_pairs : chosen.staged_pairs / 4 * 4;  // vector loads
  const uint64_t before_pages = (staged + 4095) / 4096 * 4096;
  const uint64_t pages =
      options.budget_bytes < before_pages ? 0 : (options.budget_bytes - before_pages) / kQryPageBytes;
  if (pages == 0)
    return fail(ErrorCode::invalid_argument, "paged grid: a budget of " + std::to_string(options.budget_bytes) +
                                                 " bytes has no room: " + std::to_string(chosen.lanes) +
                                                 " lanes stage " + std::to_string(before_pages) +
                                                 " bytes, and the least table has " + std::to_string(kQryPageBytes) +
                                                 "; give more, or fewer lanes or staged_pairs");
  const uint64_t used = std::min<uint64_t>(pages, UINT32_MAX - 1);
  QRY_TRY_ASSIGN(state->block, state->memory->allocate(before_pages + used * kQryPageBytes, "paged grid"));
  state->pages_of_block = reinterpret_cast<uint64_t*>(static_cast<std::byte*>(state->block.data) + before_pages);
  state->arena = Arena(uint32_t(used));
  for (uint32_t lane = 0; lane < chosen.lanes; ++lane) {
    QRY_TRY_ASSIGN(auto made, executor.make_lane());
    state->lanes.push_back(std::move(made));
  }
  state->host = make_host_executor(host ? executor.parallelism() : 0);
  state->host_pairs = &state->host->pairs();
  QRY_TRY_ASSIGN(Grid directory, Grid::create(*state->host));
  state->directory = std::make_unique<Grid>(std::move(directory));
  return PagedGrid(std::move(state));
}

uint64_t PagedGrid::size() const {
  uint64_t keys = 0;
  for (const auto& child : state_->children) keys += child->keys;
  return keys;
}

PagedStats PagedGrid::stats() const {
  const State& state = *state_;
  PagedStats stats;
  stats.keys = size();
  stats.budget_bytes = state.block.size_bytes;
  for (const auto& child : state.children) {
    stats.regions += child->has_table();
    stats.resident += child->resident();
    stats.resident_bytes += bytes_of(child->pages);
    stats.host_bytes += child->cached.size_bytes;
  }
  stats.directory_bytes = state.index.size_bytes;
  for (const MemoryBlock& block : state.spare) stats.host_bytes += block.size_bytes;
  stats.host_bytes += state.scratch.size_bytes;
  stats.bytes_in = state.bytes_in;
  stats.bytes_out = state.bytes_out;
  stats.loads = state.loads;
  stats.evictions = state.evictions;
  stats.writebacks = state.writebacks;
  stats.growths = state.growths;
  stats.host_parts = state.host_parts;
  stats.rescued_parts = state.rescued;
  return stats;
}

Result<PagedView> PagedGrid::view() {
  if (!state_->index_current) QRY_TRY(state_->write_index());
  return state_->index_view;
}

bool PagedGrid::is_resident(uint32_t region) const {
  const Child* const child = region == kQryReservedKey ? nullptr : state_->child_of(region);
  return child != nullptr && child->resident();
}

Result<BulkReport> PagedGrid::insert(Span<const uint64_t> keys, Span<const uint32_t> values) {
  QRY_TRY(same_number("insert", keys.size(), values.size(), "values"));
  return state_->change_unsorted(Change::insert, keys, values.data());
}
Result<BulkReport> PagedGrid::assign(Span<const uint64_t> keys, Span<const uint32_t> values) {
  QRY_TRY(same_number("assign", keys.size(), values.size(), "values"));
  return state_->change_unsorted(Change::assign, keys, values.data());
}
Result<BulkReport> PagedGrid::build(Span<const uint64_t> keys, Span<const uint32_t> values) {
  QRY_TRY(state_->check_empty());
  return insert(keys, values);
}
Result<BulkReport> PagedGrid::erase(Span<const uint64_t> keys) {
  return state_->change_unsorted(Change::erase, keys, nullptr);
}

Result<BulkReport> PagedGrid::find(Span<const uint64_t> keys, Span<uint32_t> values_out) {
  QRY_TRY(same_number("find", keys.size(), values_out.size(), "places for values"));
  State& state = *state_;
  BulkReport total;
  for (size_t first = 0; first < keys.size(); first += kMostAtOnce) {
    const Span<const uint64_t> some(keys.data() + first, std::min(kMostAtOnce, keys.size() - first));
    QRY_TRY_ASSIGN(uint32_t* const words, state.take_scratch(some.size() * 3));
    uint32_t *const results = words + some.size(), *const positions = results + some.size();
    RegionSplit split;
    QRY_TRY(split.plan(some, state.threads()));
    split.write(some, nullptr, words, nullptr, positions);
    QRY_TRY_ASSIGN(const BulkReport report, state.find_all(split.parts(), {words, nullptr, results}));
    add(total, report);
    uint32_t* const out = values_out.data() + first;
    parallel_for(
        some.size(), kGrain,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) out[positions[i]] = results[i];
        },
        state.threads());
  }
  return total;
}

Result<BulkReport> PagedGrid::insert(Span<const RegionCount> parts, Span<const uint32_t> keys,
                                     Span<const uint32_t> values) {
  QRY_TRY(same_number("insert", keys.size(), values.size(), "values"));
  return state_->change_sorted(Change::insert, parts, keys, values.data());
}
Result<BulkReport> PagedGrid::assign(Span<const RegionCount> parts, Span<const uint32_t> keys,
                                     Span<const uint32_t> values) {
  QRY_TRY(same_number("assign", keys.size(), values.size(), "values"));
  return state_->change_sorted(Change::assign, parts, keys, values.data());
}
Result<BulkReport> PagedGrid::build(Span<const RegionCount> parts, Span<const uint32_t> keys,
                                    Span<const uint32_t> values) {
  QRY_TRY(state_->check_empty());
  return insert(parts, keys, values);
}
Result<BulkReport> PagedGrid::erase(Span<const RegionCount> parts, Span<const uint32_t> keys) {
  return state_->change_sorted(Change::erase, parts, keys, nullptr);
}
Result<BulkReport> PagedGrid::find(Span<const RegionCount> parts, Span<const uint32_t> keys,
                                   Span<uint32_t> values_out) {
  QRY_TRY(same_number("find", keys.size(), values_out.size(), "places for values"));
  QRY_TRY_ASSIGN(const auto each, state_->parts_of("find", parts, keys.size()));
  return state_->find_all(each, {keys.data(), nullptr, values_out.data()});
}

Result<void> PagedGrid::clear() {
  State& state = *state_;
  QRY_TRY(state.directory->clear());
  for (const auto& child : state.children) state.give_block(child->cached);
  state.children.clear();
  state.residents.clear();
  state.index_current = false;
  state.arena = Arena(state.arena.pages());
  return {};
}

void PagedGrid::reserve(uint32_t region, uint64_t keys) {
  const std::vector<RegionPart> part{{region, 0, 0}};
  if (region == kQryReservedKey) return;
  if (const auto child = state_->children_of(part, true)) (*child)[0]->least_keys = keys;
}

Result<uint64_t> PagedGrid::prefetch(Span<const uint32_t> regions) {
  using Job = State::Job;
  State& state = *state_;
  std::vector<Job> jobs = state.jobs_of(regions);
  uint64_t pages = 0;
  size_t fit = 0;
  while (fit < jobs.size()) {
    const Child& child = *jobs[fit].child;
    pages += child.resident() ? child.pages : child.cached_pages;
    if (pages > state.arena.pages()) break;
    ++fit;
  }
  jobs.resize(fit);
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) job->child->last_use = ++state.clock;
  QRY_TRY(state.run("prefetch", jobs, [&](Lane* lane, uint32_t*, Job& job) -> Result<void> {
    QRY_TRY(state.bring(*lane, *job.child));
    state.release(*job.child);
    return {};
  }));
  return uint64_t(std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return job.child->resident(); }));
}

Result<void> PagedGrid::evict(Span<const uint32_t> regions) { return state_->evict(state_->jobs_of(regions)); }
Result<void> PagedGrid::evict_all() {
  std::vector<State::Job> jobs;
  for (const auto& child : state_->children)
    if (child->resident()) jobs.push_back({child.get(), 0, 0, false});
  return state_->evict(std::move(jobs));
}

}  // namespace quarry::hashgrid
