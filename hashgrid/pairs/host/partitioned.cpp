// SPDX-License-Identifier: Apache-2.0
// partitioned.cpp - each thread filters the batch for its pages and processes its keys in order by plain stores.
#include "hashgrid/pairs/host/partitioned.hpp"

#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "hashgrid/pairs/host/find.hpp"

namespace quarry::hashgrid::detail {
namespace {

constexpr size_t kKeysToShare = 4096;  // with fewer, the caller works alone

// The keys of a batch that belong to one owner, a block at a time; a block's tags are positions in the batch.
class OwnKeys {
 public:
  OwnKeys(const GridView& view, const uint32_t* keys, size_t count, uint32_t first_page, uint32_t last_page)
      : view_(view),
        kernels_(bucket_kernels()),
        keys_(keys),
        count_(count),
        first_page_(first_page),
        pages_(last_page - first_page) {}

  void operator()(Block& block) {
    while (held_ < kKeysPerBlock && next_ < count_) {
      const size_t in_group = std::min(kKeysPerBlock, count_ - next_);
      held_ += kernels_.filter(keys_ + next_, in_group, view_, first_page_, pages_, uint32_t(next_), stored_ + held_,
                               tags_ + held_, &refused_);
      next_ += in_group;
    }
    block.count = std::min(held_, kKeysPerBlock);
    block.some_refused = refused_;  // of this block or a nearby one: it only causes a second check
    std::copy_n(stored_, block.count, block.stored);
    std::copy_n(tags_, block.count, block.tags);
    held_ -= block.count;
    std::copy_n(stored_ + block.count, held_, stored_);
    std::copy_n(tags_ + block.count, held_, tags_);
  }

 private:
  const GridView& view_;
  const BucketKernels& kernels_;
  const uint32_t* keys_;
  size_t count_, next_ = 0, held_ = 0;
  uint32_t first_page_, pages_;
  bool refused_ = false;
  uint32_t stored_[2 * kKeysPerBlock], tags_[2 * kKeysPerBlock];
};

// Calls each(report, absent, block) for all blocks of all owners.
template <class Each>
BulkReport for_owners(const GridView& view, const uint32_t* keys, size_t count, uint32_t threads,
                      std::vector<uint32_t>* absent, const Each& each) {
  const uint32_t owners = count < kKeysToShare ? 1 : std::clamp(std::min(threads, view.page_count), 1u, kMostOwners);
  std::vector<BulkReport> reports(owners);
  std::vector<std::vector<uint32_t>> lists(owners);
  parallel_for(
      owners, 1,
      [&](size_t first, size_t last) {
        for (size_t owner = first; owner < last; ++owner) {
          const auto page_of = [&](size_t n) { return uint32_t(uint64_t{view.page_count} * n / owners); };
          BulkReport report;
          for_blocks<true>(view, OwnKeys(view, keys, count, page_of(owner), page_of(owner + 1)),
                           [&](const Block& block) { each(report, lists[owner], block); });
          reports[owner] = report;
        }
      },
      threads);
  BulkReport sum;
  for (const BulkReport& one : reports) add(sum, one);
  for (const auto& list : lists) {
    if (absent == nullptr) break;
    const auto before = ptrdiff_t(absent->size());
    absent->insert(absent->end(), list.begin(), list.end());
    std::inplace_merge(absent->begin(), absent->begin() + before, absent->end());
  }
  return sum;
}

// Readers may run beside this: a slot changes atomically. A thread that finds the key sees what the owner wrote before.
void store_slot(uint64_t* slot, uint64_t word) {
  std::atomic_ref<uint64_t>(*slot).store(word, std::memory_order_release);
}

}  // namespace

BulkReport erase_partitioned(const GridView& view, const uint32_t* keys, size_t count, uint32_t threads) {
  return for_owners(view, keys, count, threads, nullptr,
                    [&](BulkReport& report, std::vector<uint32_t>&, const Block& block) {
                      for (size_t i = 0; i < block.count; ++i) {
                        // Looked up before earlier keys were erased: if one of them was a duplicate, this key is absent
                        // by now.
                        uint64_t* const slot = block.there(i) ? block.slot(view, i) : nullptr;
                        if (slot != nullptr && low(SharedWords::load(slot)) == block.stored[i]) {
                          store_slot(slot, freed_word(view.phase));
                          ++report.erased;
                        } else {
                          add(report, block.stored[i] == kQryReservedKey ? Outcome::reserved : Outcome::absent);
                        }
                      }
                    });
}

BulkReport visit_partitioned(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Present what,
                             uint32_t threads, std::vector<uint32_t>& absent) {
  return for_owners(view, keys, count, threads, &absent,
                    [&](BulkReport& report, std::vector<uint32_t>& not_there, const Block& block) {
                      for (size_t i = 0; i < block.count; ++i) {
                        uint32_t& value = values[block.tags[i]];
                        if (value == kQryReservedValue || block.stored[i] == kQryReservedKey) {
                          ++report.reserved;
                        } else if (!block.there(i)) {
                          not_there.push_back(block.tags[i]);
                        } else if (what == Present::tell) {
                          value = block.values[i];
                          ++report.present;
                        } else {
                          store_slot(block.slot(view, i), pair_word(block.stored[i], value));
                          ++report.assigned;
                        }
                      }
                    });
}

}  // namespace quarry::hashgrid::detail
