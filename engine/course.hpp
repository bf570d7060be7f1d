// course.hpp - the numbers of shaders/course.h for a direction.
#pragma once

#include "shaders/course.h"

namespace quarry::engine {

QryOneWay one_way(const float (&direction)[3]);

}  // namespace quarry::engine
