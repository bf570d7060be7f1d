// SPDX-License-Identifier: Apache-2.0
// run_step.hpp - which body belongs to which step, for both executors.
#pragma once

#include "voxel/device/executor.hpp"
#include "voxel/device/growth.hpp"
#include "voxel/device/steps.hpp"

namespace quarry::device {

// A runner has single<Body>(), items<Body>() and blocks<Body>(), for bodies that one thread runs, that a thread runs
// for each item, and that a block of threads runs for each item.
template <class Runner>
auto run_step(StepId step, Runner&& runner) {
  switch (step) {
    case StepId::begin_edit: return runner.template single<BeginEdit>();
    case StepId::begin_undo: return runner.template single<BeginUndo>();
    case StepId::begin_redo: return runner.template single<BeginRedo>();
    case StepId::touch_box: return runner.template items<TouchBox>();
    case StepId::find_cubes: return runner.template items<FindCubes>();
    case StepId::touch_cubes: return runner.template items<TouchCubes>();
    case StepId::touch_grid: return runner.template items<TouchGrid>();
    case StepId::touch_list: return runner.template items<TouchList>();
    case StepId::cut: return runner.template items<CutOctants<false>>();
    case StepId::cut_list: return runner.template items<CutOctants<true>>();
    case StepId::settle: return runner.template items<Settle>();
    case StepId::settle_exchange: return runner.template items<SettleExchange>();
    case StepId::admit: return runner.template single<Admit>();
    case StepId::keys: return runner.template items<Keys>();
    case StepId::erase: return runner.template items<Erase>();
    case StepId::regions: return runner.template blocks<Regions>();
    case StepId::tops: return runner.template blocks<Tops>();
    case StepId::seen: return runner.template single<Seen>();
    case StepId::release: return runner.template items<Release>();
    case StepId::clear_grid: return runner.template items<ClearGrid>();
    case StepId::rehash: return runner.template items<Rehash>();
    case StepId::begin_bounds: return runner.template single<BeginBounds>();
    case StepId::bounds: return runner.template items<Bounds>();
    case StepId::count: break;
  }
  return runner.template single<Seen>();  // not reached
}

// Adds what threads have summed up.
QRY_HD inline void add_sums(Control& control, const Sums& sums) {
  if (sums.changed) add(control.changed, sums.changed);
  if (sums.more) add(reinterpret_cast<uint64_t&>(control.more), uint64_t(sums.more));
  if (sums.inserted) fetch_add(control.inserted, sums.inserted);
  if (sums.erased) fetch_add(control.erased, sums.erased);
  if (sums.chunks) fetch_add(control.chunks, sums.chunks);
}

}  // namespace quarry::device
