// SPDX-License-Identifier: Apache-2.0
// known_files.hpp - the real .vox files, and their facts on which two other readers agreed: vox_facts.json of the test
// data.
#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/vox/read.hpp"

namespace quarry::test {

struct KnownVox {
  std::filesystem::path file;
  nlohmann::json facts;
};

// Empty, with a message, if there are none.
inline std::vector<KnownVox> known_vox_files() {
  const std::filesystem::path data = data_dir();
  std::vector<KnownVox> known;
  if (data.empty() || !std::filesystem::exists(data / "vox_facts.json"))
    return skip("no .vox files with known facts"), known;
  const auto facts = nlohmann::json::parse(file_text(data / "vox_facts.json"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data / "vox")) {
    if (entry.path().extension() != ".vox") continue;
    INFO(entry.path());
    REQUIRE(facts.contains(entry.path().filename().string()));
    known.push_back({entry.path(), facts[entry.path().filename().string()]});
  }
  CHECK(known.size() >= 36);
  return known;
}

inline std::string hex64(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

inline void check_facts(const io::VoxFacts& got, const nlohmann::json& known) {
  CHECK(got.version == known["version"]);
  CHECK(got.models == known["models"]);
  CHECK(got.empty_models == known["empty_models"]);
  CHECK(got.instances == known["instances"]);
  CHECK(got.mirrored_instances == known["mirrored_instances"]);
  CHECK(got.rotated_instances == known["rotated_instances"]);
  CHECK(got.groups == known["groups"]);
  CHECK(got.layers == known["layers"]);
  CHECK(got.cameras == known["cameras"]);
  CHECK(got.nondiffuse_mats == known["nondiffuse_mats"]);
  nlohmann::json list = nlohmann::json::array();
  for (const auto& m : got.model_list) list.push_back({m.size[0], m.size[1], m.size[2], m.voxels});
  CHECK(list == known["model_list"]);
}

// Checks the facts of a scene in the file's own axes.
inline void check_facts(const SceneFacts& got, const nlohmann::json& known) {
  CHECK(got.volumes == known["models"]);
  CHECK(got.instances == known["instances"]);
  CHECK(got.placed == known["placed"]);
  CHECK(got.flat_all == known["flat_all"]);
  CHECK(got.flat_visible == known["flat_visible"]);
  CHECK(got.colors_used == known["colors_used"]);
  CHECK(nlohmann::json({got.bounds.min.x, got.bounds.min.y, got.bounds.min.z}) == known["min"]);
  CHECK(nlohmann::json({got.bounds.max.x, got.bounds.max.y, got.bounds.max.z}) == known["max"]);
  CHECK(hex64(got.pos_sum) == known["pos_sum"]);
  CHECK(hex64(got.col_sum) == known["col_sum"]);
}

}  // namespace quarry::test
