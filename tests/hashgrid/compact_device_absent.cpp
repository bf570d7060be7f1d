#include "tests/hashgrid/compact_device.hpp"

namespace quarry::hashgrid::test {

bool with_compact_device_table(uint32_t, const std::function<void(CompactDeviceTable&)>&) { return false; }

}  // namespace quarry::hashgrid::test
