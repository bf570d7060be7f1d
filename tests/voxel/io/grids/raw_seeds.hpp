// SPDX-License-Identifier: Apache-2.0
// raw_seeds.hpp - small NRRD files made here: first inputs of the fuzzer, and of the tests' mutations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> raw_seeds() {
  const auto file = [](const std::string& header, const std::vector<uint8_t>& grid) {
    std::vector<uint8_t> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), grid.begin(), grid.end());
    return bytes;
  };
  return {{"plain.nrrd",
           file("NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 3 1\nencoding: raw\n\n", {0, 1, 2, 3, 4, 255})},
          {"placed.nrrd", file("NRRD0005\r\n# c\r\ntype: unsigned char\r\nsizes: 1 1 2\r\n"
                               "space origin: (0.5,-0.5,-6.5)\r\nencoding: raw\r\nquarry_palette:=" +
                                   std::string(2048, '7') + "\r\n\r\n",
                               {9, 9})}};
}

}  // namespace quarry::test
