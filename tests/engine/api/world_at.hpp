// SPDX-License-Identifier: Apache-2.0
// world_at.hpp - an empty world of the C interface at one home.
#pragma once

#include <catch2/catch.hpp>

#include <quarry/quarry.h>

#include "tests/test_data.hpp"

namespace quarry::test {

// Null: this machine has no such home, which is said and counted.
inline qry_world* world_at(qry_context* context, uint32_t home) {
  qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
  wanted.home = home;
  qry_world_info info = QRY_WORLD_INFO_INIT;
  info.next = &wanted;
  qry_world* world = nullptr;
  const qry_result result = qry_world_create(context, &info, &world);
  INFO(qry_last_error());
  if (result == QRY_ERROR_UNSUPPORTED) {
    skip(qry_last_error());
    return nullptr;
  }
  REQUIRE(result == QRY_OK);
  return world;
}

}  // namespace quarry::test
