// SPDX-License-Identifier: Apache-2.0
// ray_setup.hpp - computes the ray setup of voxel/rays/ray_setup.h for a direction.
#pragma once

#include "voxel/rays/ray_setup.h"

namespace quarry::engine {

QryDirectionSetup direction_setup(const float (&direction)[3]);

}  // namespace quarry::engine
