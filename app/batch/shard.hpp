// SPDX-License-Identifier: Apache-2.0
// shard.hpp - divides a batch's inputs among tasks that know nothing of each other (`quarry convert --shard I/N`). They
// need not see each other's files, and may have begun to write outputs in the meantime.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/console/inputs.hpp"

namespace quarry::app {

struct Shard {
  uint32_t number = 1, count = 1;  // the number from 1; 1 of 1 is the whole
  bool operator==(const Shard&) const = default;
};

// "2/8". False if it is anything else, or the number is not one of 1 to the count.
bool parse_shard(const std::string& text, Shard& shard);

// The number of the shard that an input belongs to, of `count`. It depends on the relative name alone, so every machine
// finds the same without looking at the files.
uint32_t shard_of(const Input& input, uint32_t count);

// Takes those files out of the inputs that a directory or a pattern found in the folder of the outputs below it, with
// the extension of the outputs: other shards, or an earlier run, wrote them.
void leave_out_outputs(std::vector<Input>& inputs, const std::filesystem::path& folder, const std::string& extension);

}  // namespace quarry::app
