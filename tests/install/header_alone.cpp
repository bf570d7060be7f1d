// SPDX-License-Identifier: Apache-2.0
// header_alone.cpp - quarry.h and quarry.hpp in C++, with layouts that every compiler must agree on, because they are
// the ABI.
#include <quarry/quarry.hpp>

#include <cstddef>

#include "header_alone.c"

static_assert(offsetof(qry_chain, next) == 8 && sizeof(qry_chain) == 16,
              "every chained structure begins with these 16 bytes");
static_assert(offsetof(qry_context_info, next) == 8 && offsetof(qry_edit, next) == 8 &&
                  offsetof(qry_render_info, next) == 8,
              "");
static_assert(sizeof(qry_material) == 32 && sizeof(qry_ray) == 24 && sizeof(qry_hit) == 32,
              "arrays of these are passed");
static_assert(sizeof(qry_camera) == 56 && sizeof(qry_edit) == 72 && sizeof(qry_world_state) == 96, "");
static_assert(sizeof(qry_result) == 4 && sizeof(qry_stype) == 4, "");
