// SPDX-License-Identifier: Apache-2.0
// edit_of.hpp - an edit of the plain array as the edit of a document or a device.
#pragma once

#include "tests/voxel/worlds/dense_model.hpp"
#include "voxel/shapes/shape.hpp"

namespace quarry::test {

inline Edit edit_of(const DenseEdit& dense) {
  Edit edit;
  edit.shape = Shape(dense.shape);  // both are in the order of quarry.h
  edit.mode = Mode(dense.mode);
  edit.a = {dense.a[0], dense.a[1], dense.a[2]};
  edit.b = {dense.b[0], dense.b[1], dense.b[2]};
  edit.radius = dense.radius();
  edit.material = dense.material;
  edit.from = dense.from;
  return edit;
}

}  // namespace quarry::test
