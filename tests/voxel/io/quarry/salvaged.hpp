// SPDX-License-Identifier: Apache-2.0
// salvaged.hpp - salvages a world as a whole, and region by region, in one region and in as many as there are chunks.
// All must give the same scene, losses and warnings, or the same error.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <tuple>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/salvage.hpp"

namespace quarry::test {

using Losses = std::vector<std::tuple<std::string, uint64_t, std::string>>;
inline Losses losses_of(const io::Salvage& salvage) {
  Losses all;
  for (const io::SalvageLoss& l : salvage.losses()) all.emplace_back(l.kind, l.count, l.text);
  return all;
}

// Puts regions together into a scene again.
class SceneOfRegions {
 public:
  explicit SceneOfRegions(uint64_t available_bytes) {
    sink.available_bytes = [available_bytes] { return available_bytes; };
    sink.begin = [this](const Scene& begun) -> Result<void> {
      CHECK_FALSE(scene);
      for (const Volume& volume : begun.volumes) CHECK(volume.bricks.empty());
      scene = begun;
      return {};
    };
    sink.take = [this](uint32_t volume, BrickMap&& bricks) -> Result<void> {
      REQUIRE(scene);
      REQUIRE(volume < scene->volumes.size());
      for (const Int3 chunk : bricks.chunks()) {
        const std::tuple at(volume, chunk.x, chunk.y, chunk.z);
        CHECK((!last_ || *last_ < at));
        last_ = at;
      }
      for (const auto& [at, brick] : bricks.bricks()) scene->volumes[volume].bricks.put(at, brick);
      ++regions;
      return {};
    };
  }
  RegionSink sink;
  std::optional<Scene> scene;
  uint64_t regions = 0;

 private:
  std::optional<std::tuple<uint32_t, int32_t, int32_t, int32_t>> last_;
};

// `whole(salvage, warnings)` gives a scene, `regions(salvage, warnings, sink)` the same piece by piece.
template <class Whole, class Regions>
Result<Scene> salvaged_both_ways(const Whole& whole, const Regions& regions, io::Salvage& salvage,
                                 std::vector<std::string>* warnings) {
  std::vector<std::string> all;
  auto scene = whole(salvage, &all);
  for (const uint64_t available : {uint64_t(1), uint64_t(1) << 30}) {
    INFO("with room for " << available << " bytes");
    io::Salvage again;
    std::vector<std::string> warned;
    SceneOfRegions parts(available);
    const auto begin = parts.sink.begin;
    parts.sink.begin = [&](const Scene& begun) {
      CHECK((losses_of(again) == losses_of(salvage)));
      CHECK((warned == all));
      return begin(begun);
    };
    const auto done = regions(again, &warned, parts.sink);
    REQUIRE(done.has_value() == scene.has_value());
    CHECK((losses_of(again) == losses_of(salvage)));
    CHECK((warned == all));
    if (!scene) {
      CHECK(done.error().code == scene.error().code);
      CHECK(done.error().message == scene.error().message);
      CHECK_FALSE(parts.scene);
      continue;
    }
    CHECK(done->regions == parts.regions);
    REQUIRE(parts.scene);
    CHECK(same_scene(*scene, *parts.scene) == "");
  }
  if (warnings) warnings->insert(warnings->end(), all.begin(), all.end());
  return scene;
}

// Of the bytes of a database and its sidecars.
inline Result<Scene> salvaged(std::span<const uint8_t> database, const io::DatabaseJournals& journals,
                              io::Salvage& salvage, std::vector<std::string>* warnings) {
  constexpr uint64_t kMemory = uint64_t(1) << 30;
  const io::ByteSource bytes(database);
  return salvaged_both_ways(
      [&](io::Salvage& to, std::vector<std::string>* warned) {
        return io::salvage_database(bytes, journals, kMemory, to, warned);
      },
      [&](io::Salvage& to, std::vector<std::string>* warned, const RegionSink& sink) {
        return io::salvage_database_regions(bytes, journals, to, warned, sink);
      },
      salvage, warnings);
}

// Of a file and what lies beside it.
inline Result<Scene> salvaged(const std::filesystem::path& file, io::Salvage& salvage,
                              std::vector<std::string>* warnings) {
  return salvaged_both_ways(
      [&](io::Salvage& to, std::vector<std::string>* warned) { return io::salvage_store(file, to, warned); },
      [&](io::Salvage& to, std::vector<std::string>* warned, const RegionSink& sink) {
        return io::salvage_store_regions(file, to, warned, sink);
      },
      salvage, warnings);
}

}  // namespace quarry::test
