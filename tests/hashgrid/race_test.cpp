// SPDX-License-Identifier: Apache-2.0
// race_test.cpp - many threads at once on one key, one bucket, one page, with all five operations: the functions of
// view.hpp called directly, from host threads and (race_kernel.cu) from one CUDA launch. ThreadSanitizer must report
// nothing in this test.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <map>
#include <set>
#include <thread>

#include "tests/hashgrid/backends.hpp"
#include "tests/hashgrid/cuda/race_kernel.hpp"
#include "tests/test_data.hpp"

namespace quarry::hashgrid::test::race_test {
namespace {

using Events = std::vector<RaceEvent>;

template <class View>
Events race_on_host(const View& view, const RacePlan& plan, uint32_t threads) {
  Events events(size_t{threads} * plan.steps);
  std::barrier start(threads);
  {
    std::vector<std::jthread> racers;
    for (uint32_t t = 0; t < threads; ++t)
      racers.emplace_back([&, t] {
        start.arrive_and_wait();
        for (uint32_t step = 0; step < plan.steps; ++step)
          events[size_t{t} * plan.steps + step] = race_step(view, plan, t, step);
      });
  }
  return events;
}

// What must hold for every interleaving of the threads.
template <class View>
void check_race(Table<View>& table, const std::vector<uint32_t>& keys, uint32_t steady,
                const std::vector<uint32_t>& before, const Events& events) {
  struct Sum {
    int64_t balance = 0;
    bool written = false;
  };
  std::vector<Sum> sums(keys.size());
  size_t lost_steady = 0, foreign_values = 0, wrong_outcomes = 0;
  for (const RaceEvent& e : events) {
    Sum& sum = sums[e.key_index];
    sum.balance += e.outcome == Outcome::inserted;
    sum.balance -= e.outcome == Outcome::erased;
    const bool handed_back = (e.op == Op::find && e.outcome == Outcome::present) || e.outcome == Outcome::erased ||
                             (e.op == Op::find_or_insert && e.outcome == Outcome::present);
    if (handed_back) foreign_values += (e.got & ~0xFFu) != (value_of(keys[e.key_index]) & ~0xFFu);
    if (e.key_index < steady)
      lost_steady += e.outcome != Outcome::present || (e.op != Op::insert && e.got != value_of(keys[e.key_index]));
    wrong_outcomes += e.outcome == Outcome::reserved;
  }
  CHECK(lost_steady == 0);
  CHECK(foreign_values == 0);
  CHECK(wrong_outcomes == 0);
  const std::vector<uint32_t> after = table.find(keys);
  size_t unbalanced = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t was = before[i] != kQryReservedValue, is = after[i] != kQryReservedValue;
    unbalanced += was + sums[i].balance != is;
    if (is) foreign_values += (after[i] & ~0xFFu) != (value_of(keys[i]) & ~0xFFu);
  }
  CHECK(unbalanced == 0);
  CHECK(foreign_values == 0);
  REQUIRE(table.fault() == "");
}

// Rounds of races, one phase each, on host threads or CUDA.
template <class View>
void race_rounds(const On<View>& executor, uint32_t page_count, const std::vector<uint32_t>& keys, uint32_t steady,
                 uint32_t rounds, uint32_t steps, bool erases) {
  Table table(executor, page_count);
  if (steady != 0) {
    const std::vector<uint32_t> first(keys.begin(), keys.begin() + steady);
    REQUIRE(table.insert(first, values_of(first)).inserted == steady);
  }
  const Array<uint32_t> device_keys(executor, keys);
  for (uint32_t round = 0; round < rounds; ++round) {
    INFO("round " << round);
    table.next_phase();
    const std::vector<uint32_t> before = table.find(keys);
    const RacePlan plan{device_keys.data(), uint32_t(keys.size()), steady, steps, round + 1, erases};
    Events events;
    if (executor.kind() == ExecutorKind::cuda) {
      events = race_on_cuda(table.view(), plan, 4096);
    } else {
      events = race_on_host(table.view(), plan, std::max(2u, executor.parallelism()));
    }
    check_race(table, keys, steady, before, events);
  }
}

TEST_CASE("race: on one key inserts and erases balance, and finds never see a foreign value", "[quick]") {
  on_each_layout([](const auto& executor) { race_rounds(executor, 1, {12345}, 0, 200, 6, true); });
}

TEST_CASE("race: on one bucket steady keys are never missed while their neighbours come and go", "[quick]") {
  on_each_layout([](const auto& executor) {
    // More keys than the bucket holds, so that some steady ones are behind it.
    race_rounds(executor, 1, keys_of_bucket(executor, 0, 500, 1, 24), 8, 60, 40, true);
  });
}

TEST_CASE("race: on one page, beyond what it holds, nothing is lost and nothing doubled", "[quick]") {
  on_each_layout(
      [](const auto& executor) { race_rounds(executor, 3, keys_of_page(executor, 1, 3, 5000), 1500, 6, 1500, true); });
}

TEST_CASE("race: of threads that insert the same keys, with no erase beside them, each key has one winner", "[quick]") {
  on_each_layout([](const auto& executor) { race_rounds(executor, 2, some_keys(31, 3000), 0, 4, 2000, false); });
}

TEST_CASE("race: bulk calls of several threads on one table balance") {
  on_each_layout([](const auto& executor) {
    Table table(executor, 4);
    const std::vector<uint32_t> keys = some_keys(41, 6000), values = values_of(keys);
    const Array<uint32_t> k(executor, keys), v(executor, values);
    for (int round = 0; round < 3; ++round) {
      table.next_phase();
      std::array<BulkReport, 4> reports;
      {
        std::vector<std::jthread> callers;
        for (size_t t = 0; t < reports.size(); ++t)
          callers.emplace_back([&, t] {
            const auto report =
                t < 2 ? executor.operations().insert(table.view(), k.data(), v.data(), keys.size(), nullptr)
                      : executor.operations().erase(table.view(), k.data(), keys.size(), nullptr, nullptr);
            if (report) reports[t] = *report;
          });
      }
      uint64_t in = 0, out = 0, present = 0;
      for (const BulkReport& report : reports) {
        in += report.inserted;
        out += report.erased;
        REQUIRE(report.inserted + report.present + report.erased + report.absent + report.full == keys.size());
      }
      for (const uint32_t value : table.find(keys)) present += value != kQryReservedValue;
      REQUIRE(in - out == present);
      table.next_phase();
      table.erase(keys);
      REQUIRE(table.fault() == "");
    }
  });
}

// Linearizability per key, decided by search: every event with the instants of its call and return on one clock.
struct Timed {
  RaceEvent event;
  uint64_t begin, end;
};

// Whether an order of the events exists that respects time and in which each has the result of a map of one key. State:
// value, or absent.
bool has_order(const std::vector<Timed>& events, uint32_t done, uint32_t state,
               std::set<std::pair<uint32_t, uint32_t>>& dead) {
  if (done == (1u << events.size()) - 1) return true;
  if (!dead.insert({done, state}).second) return false;
  for (size_t i = 0; i < events.size(); ++i) {
    if (done >> i & 1) continue;
    bool first = true;  // no remaining event ended before this began
    for (size_t j = 0; j < events.size(); ++j) first &= j == i || (done >> j & 1) || events[j].end > events[i].begin;
    if (!first) continue;
    const RaceEvent& e = events[i].event;
    const bool there = state != kQryReservedValue;
    uint32_t next = state;
    bool legal = false;
    switch (e.outcome) {
      case Outcome::inserted:
        legal = !there;
        next = e.given;
        break;
      case Outcome::assigned:
        legal = there;
        next = e.given;
        break;
      case Outcome::present: legal = there && (e.op == Op::insert || e.got == state); break;
      case Outcome::erased:
        legal = there && e.got == state;
        next = kQryReservedValue;
        break;
      case Outcome::absent: legal = !there; break;
      case Outcome::full: legal = !there; break;
      case Outcome::reserved: break;
    }
    if (legal && has_order(events, done | 1u << i, next, dead)) return true;
  }
  return false;
}

TEST_CASE("race: every short history of host threads is linearizable per key") {
  const std::unique_ptr<Executor> host = make_host_executor(1);
  const auto for_layout = [](const auto& executor) {
    // Keys of one bucket and some that fill it, so that keys move between their buckets and the stash as they recur.
    const std::vector<uint32_t> keys = keys_of_bucket(executor, 0, 7, 1, 12);
    Table table(executor, 1);
    table.insert({keys.begin() + 3, keys.end()}, values_of({keys.begin() + 3, keys.end()}));
    constexpr uint32_t kThreads = 2, kSteps = 9, kRounds = 2000, kMostRounds = 50000, kEnoughRaces = 500;
    std::vector<Timed> log(kThreads * kSteps);
    std::atomic<uint64_t> clock{0}, awake{0};
    size_t races = 0;
    bool all = true, finished = false;  // written between rounds only
    std::vector<uint32_t> before;
    uint32_t round = 0;
    const auto between = [&]() noexcept {
      if (round != 0) {
        for (uint32_t k = 0; k < 3; ++k) {
          std::vector<Timed> mine;
          for (const Timed& t : log)
            if (t.event.key_index == k) mine.push_back(t);
          for (const Timed& a : mine)
            for (const Timed& b : mine) races += a.begin < b.begin && b.begin < a.end;
          std::set<std::pair<uint32_t, uint32_t>> dead;
          all &= has_order(mine, 0, before[k], dead);
        }
        // Frees a slot at another place each round, so that the keys' slots change.
        table.next_phase();
        erase(table.view(), keys[3 + round % 9]);
        table.next_phase();
        if (round % 2 == 0) insert(table.view(), keys[3 + (round + 4) % 9], value_of(keys[3 + (round + 4) % 9]));
      }
      finished = round >= kRounds && races >= kEnoughRaces;
      table.next_phase();
      before.clear();
      for (uint32_t k = 0; k < 3; ++k) before.push_back(find(table.view(), keys[k]).value);
      ++round;
    };
    std::barrier turn(kThreads, between);
    {
      std::vector<std::jthread> racers;
      for (uint32_t t = 0; t < kThreads; ++t)
        racers.emplace_back([&, t] {
          // On a busy machine the threads seldom overlap: then more rounds.
          for (uint32_t r = 0; r < kMostRounds && !finished; ++r) {
            turn.arrive_and_wait();
            if (finished) return;
            // The barrier wakes one thread much later than the other: they synchronise again when both are awake.
            awake.fetch_add(1);
            while (awake.load() < kThreads * (r + 1)) std::this_thread::yield();
            const RacePlan plan{keys.data(), 3, 0, kSteps, r * 7 + 1, true};
            for (uint32_t step = 0; step < kSteps; ++step) {
              const uint64_t begin = clock.fetch_add(1);
              // Calls overlap even if one core runs both threads.
              if ((r + step + t) % 5 == 0) std::this_thread::yield();
              const RaceEvent event = race_step(table.view(), plan, t, step);
              log[t * kSteps + step] = {event, begin, clock.fetch_add(1)};
            }
          }
          turn.arrive_and_wait();
        });
    }
    CHECK(all);
    if (races == 0) quarry::test::skip("linearizability: the threads never ran at the same time on this machine");
    REQUIRE(table.fault() == "");
  };
  SECTION("pairs") { for_layout(On<GridView>(*host)); }
  SECTION("compact") { for_layout(On<CompactView>(*host)); }
}

}  // namespace
}  // namespace quarry::hashgrid::test::race_test
