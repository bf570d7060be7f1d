// SPDX-License-Identifier: Apache-2.0
// validation_test.cpp - fails if the validation layers reported anything during all other cases. It is linked last, so
// that Catch runs it last.
#include <catch2/catch.hpp>

#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace validation_test {

TEST_CASE("validation: core and synchronisation validation had nothing to say about all tests above") {
  quarry::engine::Device* device = quarry::test::test_device();
  if (!device) return;
  if (!quarry::test::test_device_validates())
    return quarry::test::skip("the Vulkan validation layer is not installed (Debian package vulkan-validationlayers)");
  CHECK(device->validation_errors() == 0);
}

}  // namespace validation_test
