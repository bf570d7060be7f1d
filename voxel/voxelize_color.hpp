// voxelize_color.hpp - what a triangle looks like at a voxel: textures filtered to the voxel's size, vertex colours, factors.
// Integers where results are summed or compared; double arithmetic (IEEE, no fused operations) for the geometry.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "voxel/mesh.hpp"

namespace quarry::voxelize_detail {

// How a surface looks, linear: 16 bits for colours and glow, 8 for the rest.
struct Look {
  uint32_t r = 0, g = 0, b = 0;        // 0..65535
  uint32_t a = 255, rough = 255, metal = 0;  // 0..255
  uint32_t glow_r = 0, glow_g = 0, glow_b = 0;  // 1/1024 of radiance, up to 64
};

// The same as the palette knows it: sRGB bytes and one emission strength, in one word that can be sorted and counted.
//   r | g << 8 | b << 16 | a << 24 | rough << 32 | metal << 40 | emission << 48      emission e: strength 64 (e / 255)^2
using PackedLook = uint64_t;
float emission_of_byte(uint32_t byte);

// Weighted mean of looks; sums of integers, so that no order matters.
class LookSum {
 public:
  void add(const Look& look, uint64_t weight);
  Look mean() const;

 private:
  uint64_t weight_ = 0;
  std::array<uint64_t, 9> sum_{};
};
PackedLook pack(const Look& look);

// The mesh's textures, with smaller copies of each for filtering.
class Surface {
 public:
  // Keeps a reference to `mesh`.
  explicit Surface(const Mesh& mesh);

  // True if every triangle looks the same everywhere: then any look is the look.
  bool uniform() const { return uniform_; }
  // Textures of a triangle are read from copies of this level (0: full size) if its longest texture is to be filtered to voxels of
  // 1 / scale units: the level at which a texel is about as large as a voxel.
  int level_for(uint32_t triangle, double scale) const;
  // The look at a point of a triangle given by its barycentric coordinates.
  Look at(uint32_t triangle, const double barycentric[3], int level) const;

 private:
  struct Level {
    uint32_t width, height;
    std::vector<uint16_t> rgba;  // linear; empty for level 0, which reads the image
  };
  void sample(int32_t image, const MeshMaterial& material, double u, double v, int level, bool srgb, uint32_t out[4]) const;

  const Mesh& mesh_;
  bool uniform_ = false;
  std::vector<std::vector<Level>> levels_;  // by image; [0] is the image itself
  std::vector<bool> srgb_;                  // by image: colours (else plain numbers)
};

// The point of a triangle nearest to p, as barycentric coordinates. Defined for degenerate triangles too.
void nearest_point(const double corner[3][3], const double p[3], double barycentric[3]);
// Area of the part of a triangle inside the unit cube at `cell`, in square voxels.
double area_in_cell(const double corner[3][3], const double cell[3]);

}  // namespace quarry::voxelize_detail
