// SPDX-License-Identifier: Apache-2.0
// run_step.hpp - which body belongs to which step, for both executors.
#pragma once

#include "voxel/device/bodies/algebra.hpp"
#include "voxel/device/bodies/compare.hpp"
#include "voxel/device/bodies/flatten.hpp"
#include "voxel/device/bodies/flood.hpp"
#include "voxel/device/bodies/grid_stats.hpp"
#include "voxel/device/bodies/growth.hpp"
#include "voxel/device/bodies/lists.hpp"
#include "voxel/device/bodies/pack.hpp"
#include "voxel/device/bodies/parts.hpp"
#include "voxel/device/bodies/steps.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

// A runner has single<Body>(), items<Body>() and blocks<Body>(), for bodies that one thread runs, that a thread runs
// for each item, and that a block of threads runs for each item. Of the latter a body may have begin() and end(), for
// what a block has before the first of its items and after the last.
template <class Runner>
auto run_step(StepId step, Runner&& runner) {
  switch (step) {
    case StepId::find_tiles: return runner.template items<FindTiles>();
    case StepId::touch_box: return runner.template blocks<TouchTiles<false>>();
    case StepId::touch_tiles: return runner.template blocks<TouchTiles<true>>();
    case StepId::touch_grid: return runner.template items<TouchGrid>();
    case StepId::touch_list: return runner.template items<TouchList>();
    case StepId::cut: return runner.template blocks<CutBricks<false>>();
    case StepId::cut_list: return runner.template blocks<CutBricks<true>>();
    case StepId::settle_undo: return runner.template items<SettleExchange<false>>();
    case StepId::settle_redo: return runner.template items<SettleExchange<true>>();
    case StepId::keys: return runner.template items<Keys>();
    case StepId::erase: return runner.template items<Erase>();
    case StepId::roll_back: return runner.template items<RollBack>();
    case StepId::regions: return runner.template blocks<Regions>();
    case StepId::tops: return runner.template blocks<Tops>();
    case StepId::release: return runner.template items<Release>();
    case StepId::clear_grid: return runner.template items<ClearGrid>();
    case StepId::rehash: return runner.template items<Rehash>();
    case StepId::forget: return runner.template items<Forget>();
    case StepId::recycle: return runner.template items<Recycle>();
    case StepId::find_places: return runner.template items<FindPlaces>();
    case StepId::find_moves: return runner.template items<FindMoves>();
    case StepId::move_bricks: return runner.template items<MoveBricks>();
    case StepId::redirect: return runner.template items<Redirect>();
    case StepId::list_places: return runner.template items<ListPlaces>();
    case StepId::leave_places: return runner.template items<LeavePlaces>();
    case StepId::list_records: return runner.template items<ListRecords>();
    case StepId::join_records: return runner.template items<JoinRecords>();
    case StepId::copy_pyramid: return runner.template blocks<CopyPyramid>();
    case StepId::begin_bounds: return runner.template single<BeginBounds>();
    case StepId::bounds: return runner.template blocks<Bounds>();
    case StepId::gather: return runner.template items<Gather>();
    case StepId::gather_places: return runner.template items<GatherPlaces>();
    case StepId::look_up: return runner.template items<LookUp>();
    case StepId::begin_list: return runner.template single<BeginList>();
    case StepId::list_combined: return runner.template items<ListCombined>();
    case StepId::copy_materials: return runner.template blocks<CopyMaterials>();
    case StepId::find_around: return runner.template items<FindAround>();
    case StepId::list_around: return runner.template blocks<ListAround>();
    case StepId::morph_masks: return runner.template blocks<MorphMasks>();
    case StepId::morph_materials: return runner.template blocks<MorphMaterials>();
    case StepId::survey_list: return runner.template blocks<SurveyList>();
    case StepId::key_voxels: return runner.template items<KeyVoxels>();
    case StepId::begin_bricks: return runner.template blocks<BeginBricks>();
    case StepId::assemble: return runner.template blocks<Assemble>();
    case StepId::list_box: return runner.template items<ListBox>();
    case StepId::read_box: return runner.template items<ReadBox>();
    case StepId::clear_table: return runner.template items<ClearTable>();
    case StepId::seed_flood: return runner.template single<SeedFlood>();
    case StepId::number_bricks: return runner.template items<NumberBricks>();
    case StepId::flood_round: return runner.template blocks<FloodRound>();
    case StepId::begin_parts: return runner.template single<BeginParts>();
    case StepId::list_bricks: return runner.template items<ListBricks>();
    case StepId::label_bricks: return runner.template blocks<LabelBricks>();
    case StepId::join_bricks: return runner.template blocks<JoinBricks>();
    case StepId::number_parts: return runner.template items<NumberParts>();
    case StepId::clear_parts: return runner.template items<ClearParts>();
    case StepId::measure_pieces: return runner.template items<MeasurePieces>();
    case StepId::count_materials: return runner.template blocks<CountMaterials>();
    case StepId::pick_materials: return runner.template items<PickMaterials>();
    case StepId::list_lost: return runner.template blocks<ListLost>();
    case StepId::sort_in: return runner.template items<SortIn>();
    case StepId::mask_bricks: return runner.template items<MaskBricks>();
    case StepId::survey_placed: return runner.template blocks<SurveyPlaced>();
    case StepId::scan_placed: return runner.template blocks<ScanPlaced>();
    case StepId::contribute: return runner.template blocks<Contribute>();
    case StepId::group_placed: return runner.template blocks<GroupPlaced>();
    case StepId::list_filled: return runner.template items<ListFilled>();
    case StepId::compose: return runner.template blocks<Compose>();
    case StepId::begin_grid_stats: return runner.template single<BeginGridStats>();
    case StepId::sum_grid_stats: return runner.template blocks<SumGridStats>();
    case StepId::begin_compare: return runner.template single<BeginCompare>();
    case StepId::sum_voxels: return runner.template blocks<SumVoxels>();
    case StepId::compare_bricks: return runner.template blocks<CompareBricks>();
    case StepId::begin_words: return runner.template single<BeginWords>();
    case StepId::count_words: return runner.template items<CountWords<false>>();
    case StepId::sum_words: return runner.template items<CountWords<true>>();
    case StepId::survey_words: return runner.template blocks<SurveyWords>();
    case StepId::scan_words: return runner.template blocks<ScanWords>();
    case StepId::place_words: return runner.template blocks<PlaceWords>();
    case StepId::pack_bricks: return runner.template blocks<PackBricks>();
    case StepId::unpack_bricks: return runner.template items<UnpackBricks>();
    case StepId::count: break;
  }
  return runner.template single<BeginBounds>();  // not reached
}

}  // namespace quarry::device
