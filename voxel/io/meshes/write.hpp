// SPDX-License-Identifier: Apache-2.0
// write.hpp - writes the visible surface of a scene as a triangle mesh: PLY, OBJ with MTL, glTF and GLB.
//
// The scene is flattened first. Hidden parts, parts inside another instance, instances, layers and groups are lost. One
// unit is one voxel, y is up. docs/formats.md says what each format keeps of a material.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/operations/surface_mesh.hpp"

namespace quarry::io {

class VisibleRegions;

// The file appears whole or not at all (OBJ: its .mtl first). Errors of all: invalid_argument (no visible voxel),
// out_of_bounds (flatten), unsupported (too many vertices or bytes), cancelled; conflict if an .mtl that Quarry did not
// write has the needed name; those of AtomicFile.
Result<void> write_ply(const Scene& scene, const Destination& to, const Progress& progress);
Result<void> write_obj(const Scene& scene, const Destination& to, const Progress& progress);
// Writes binary glTF for .glb, else JSON with the data inside.
Result<void> write_gltf(const Scene& scene, const Destination& to, const Progress& progress);
// These write the same files from a scene of which only some layers are in memory at once. Errors: also out_of_memory.
Result<void> write_ply_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
Result<void> write_obj_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
Result<void> write_gltf_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

// The metadata key for a voxel's edge in the mesh, if it is not 1. A coarser level of detail has 2^n, so that it lies
// in the same place as the finest one.
constexpr const char* kMeshScaleKey = "mesh_scale";
constexpr int32_t kMaxMeshScale = 1 << 16;

// The surface that all three write. One unit is one voxel.
Result<SurfaceMesh> visible_surface(const Scene& scene, const Progress& progress);
// "gold", or "colour 12": distinct for each material.
std::string material_name(const Palette& palette, uint8_t material);
// Linear light from the palette's sRGB bytes.
std::array<float, 3> linear_color(const Material& material);
// The shortest text that reads back as the same number.
std::string number_text(float v);
// "voxel_size 0.01, origin 1 2 3" for a comment: the voxels' place in the units of the scene's source; "" if it is not
// known.
std::string units_comment(const Scene& scene);

}  // namespace quarry::io
