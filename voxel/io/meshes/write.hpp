// SPDX-License-Identifier: Apache-2.0
// write.hpp - the visible surface of a scene as a triangle mesh in a file: PLY, OBJ with MTL, glTF and GLB.
//
// The scene is flattened first: what is hidden is left out, what lies inside another instance is gone, and so are
// instances, layers and groups. One unit is one voxel, y is up. docs/formats.md says what each format keeps of a
// material.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/operations/surface_mesh.hpp"

namespace quarry::io {

class VisibleRegions;

// All: the file whole or not at all (OBJ: its .mtl first). Errors: invalid_argument (no visible voxel), out_of_bounds
// (flatten), unsupported (too many vertices or bytes), cancelled; conflict where an .mtl that Quarry did not write has
// the name that is needed; those of AtomicFile.
Result<void> write_ply(const Scene& scene, const Destination& to, const Progress& progress);
Result<void> write_obj(const Scene& scene, const Destination& to, const Progress& progress);
// .glb: binary, else JSON with its data inside.
Result<void> write_gltf(const Scene& scene, const Destination& to, const Progress& progress);
// The same files from a scene of which only some layers are in memory at once. Errors: also out_of_memory.
Result<void> write_ply_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
Result<void> write_obj_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
Result<void> write_gltf_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

// Metadata: a voxel's edge in the mesh, if it is not 1. A coarser level of detail, 2^n here, then stands where the
// finest does.
constexpr const char* kMeshScaleKey = "mesh_scale";
constexpr int32_t kMaxMeshScale = 1 << 16;

// What the three stand on. One unit is one voxel.
Result<SurfaceMesh> visible_surface(const Scene& scene, const Progress& progress);
// "gold", or "colour 12": distinct for each material.
std::string material_name(const Palette& palette, uint8_t material);
// Linear light from the palette's sRGB bytes.
std::array<float, 3> linear_color(const Material& material);
// The shortest text that reads back as the same number.
std::string number_text(float v);
// "voxel_size 0.01, origin 1 2 3" for a comment: where the voxels lie in the units of the scene's source; "" if that is
// not known.
std::string units_comment(const Scene& scene);

}  // namespace quarry::io
