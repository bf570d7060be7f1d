// SPDX-License-Identifier: Apache-2.0
// binvox_seeds.hpp - small .binvox files made here: first inputs of the fuzzer, and of the tests' mutations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

inline std::vector<uint8_t> binvox_file(const std::string& header, const std::vector<uint8_t>& runs) {
  std::vector<uint8_t> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), runs.begin(), runs.end());
  return bytes;
}

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> binvox_seeds() {
  return {
      {"dot.binvox", binvox_file("#binvox 1\ndim 1 1 1\ndata\n", {1, 1})},
      {"full.binvox",
       binvox_file("#binvox 1\ndim 2 3 4\ntranslate -1 0.5 2\nscale 3.5\ndata\n", {0, 5, 1, 10, 7, 0, 255, 9})},
      {"long.binvox",
       binvox_file("#binvox 1\r\ndim 20 9 17\t\r\n# a comment\ndata\r\n",
                   {1, 255, 0, 255, 1, 255, 0, 255, 1, 255, 0, 255, 1, 255, 0, 255, 1, 255, 0, 255, 1, 255, 0, 255})},
  };
}

}  // namespace quarry::test
