// SPDX-License-Identifier: Apache-2.0
// race_script.hpp - the steps of one thread in the race tests; the same text runs in host threads and in a CUDA kernel.
// Every choice follows from (seed, thread, step), so runs differ only by how the threads interleave.
#pragma once

#include "hashgrid/compact/view.hpp"
#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::test {

enum class Op : uint8_t { insert, assign, find, find_or_insert, erase };

struct RaceEvent {
  uint32_t key_index;
  uint32_t given;  // value passed in
  uint32_t got;    // value returned by find, find_or_insert, erase
  Op op;
  Outcome outcome;  // find: present or absent
};

struct RacePlan {
  const uint32_t* keys;
  uint32_t key_count;
  uint32_t steady;  // the first `steady` keys are in the table and are never erased or assigned
  uint32_t steps;   // per thread
  uint32_t seed;
  bool erases;
};

// Same as value_of() of backends.hpp: the upper bits belong to the key, the lowest eight identify the writer.
QRY_HD inline uint32_t race_value(uint32_t key, uint32_t tag) {
  return ((key * 0x9E3779B1u) & 0x7FFFFF00u) | (tag & 0xFFu);
}

template <class View>
QRY_HD inline RaceEvent race_step(const View& view, const RacePlan& plan, uint32_t thread, uint32_t step) {
  const uint32_t draw = qry_mix(plan.seed * 0x85EBCA6Bu + thread * 0x9E3779B1u + step * 0xC2B2AE35u + 1u);
  RaceEvent event{};
  event.key_index = draw % plan.key_count;
  const uint32_t key = plan.keys[event.key_index];
  const uint32_t choice = (draw >> 16) % 8;
  event.given = race_value(key, 1u + draw % 200u);
  event.got = kQryReservedValue;
  const bool steady = event.key_index < plan.steady;
  if (choice < 2 || (choice < 5 && steady)) {
    const Found found = find(view, key);
    event.op = Op::find;
    event.outcome = found.hit ? Outcome::present : Outcome::absent;
    event.got = found.value;
  } else if (choice < 4) {
    event.op = Op::insert;
    event.outcome = insert(view, key, event.given);
  } else if (choice == 4) {
    event.op = Op::assign;
    event.outcome = assign(view, key, event.given);
  } else if (choice == 5 || steady || !plan.erases) {
    event.op = Op::find_or_insert;
    event.got = event.given;
    event.outcome = find_or_insert(view, key, &event.got);
  } else {
    event.op = Op::erase;
    event.outcome = erase(view, key, &event.got);
  }
  return event;
}

}  // namespace quarry::hashgrid::test
