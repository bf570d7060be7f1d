// SPDX-License-Identifier: Apache-2.0
// flight.hpp - a camera's flight through a world that is larger than its part of a device's memory, in frames as a host
// engine records them; then the same flight through the whole world, of which the pictures must be the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quarry::bench {

struct Flight {
  std::string path;           // of the world
  uint32_t home = 0;          // QRY_HOME_...
  uint64_t budget_bytes = 0;  // above 0
  uint64_t host_bytes = 0;    // of the host's memory for its pages; above 0: the flight is flown again, from these
  bool small = false;         // small pictures and few stops, for software drivers
};

// A row of the result as it is there. Gives up the program if a picture has a hole, or an edit is not seen.
using AddRow = std::function<void(const std::string& row, double value, const char* unit)>;
void fly(const Flight& flight, const AddRow& add);

}  // namespace quarry::bench
