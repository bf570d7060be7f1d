// SPDX-License-Identifier: Apache-2.0
// light_tree.glsl - draws an emissive face for a point, by the light that it would probably send there without
// occlusion, and gives the probability with which any face is drawn. Include it after world.glsl. The tree is that of
// engine/sharing/light_tree.hpp. The probabilities follow A. Conty Estevez and C. Kulla, "Importance Sampling of Many
// Lights with Adaptive Tree Splitting", 2018, with one power for each of the six directions of voxels' faces.
#ifndef QRY_LIGHT_TREE_GLSL
#define QRY_LIGHT_TREE_GLSL

#include "shaders/shared/light_tree.h"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryLightsRef { QryLights lights; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer QryLightNodes { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryLightCells { QryLightCell at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryLightFaces { QryLightFace at[]; };

const uint kQryNoFace = 6u;        // the point is in the air
const uint kQryLightLevels = 40u;  // more than there are bits in a cell's number

// The point whose light is wanted, and the face that it is on.
struct QryShadingPoint {
  vec3 point;
  uint face;
};

struct QryLightSample {
  ivec3 voxel;  // biased
  uint face;
  uint material;
  float probability;  // 0: nothing was drawn
};

// The cosine factor of each direction for faces at their mean place: of the upward directions in x, y, z and of the
// downward ones. `v` is the vector from the faces' middle to the point. `half_size` is that of their box. The factor is
// 0 for a direction in which no face sees the point.
void qry_facing(vec3 v, vec3 half_size, float inverse_distance, out vec3 downward, out vec3 upward) {
  upward = clamp((half_size + v) * inverse_distance, 0.0, 1.0);
  downward = clamp((half_size - v) * inverse_distance, 0.0, 1.0);
}

float qry_light_importance(uint64_t nodes, uint index, const QryShadingPoint shading_point) {
  const uvec4 a = QryLightNodes(nodes).at[2u * index], b = QryLightNodes(nodes).at[2u * index + 1u];
  const vec3 low = vec3(a.x & 0xFFFFu, a.x >> 16, a.y & 0xFFFFu), high = vec3(a.y >> 16, a.z & 0xFFFFu, a.z >> 16);
  const vec3 half_size = 0.5 * (high - low), v = shading_point.point + vec3(kVoxelBias) - 0.5 * (low + high);
  const float inverse_square = 1.0 / max(dot(v, v), dot(half_size, half_size)), inverse_distance = sqrt(inverse_square);
  vec3 downward, upward;
  qry_facing(v, half_size, inverse_distance, downward, upward);
  float power = dot(downward, vec3(b.x & 0xFFFFu, b.y & 0xFFFFu, b.z & 0xFFFFu)) +
                dot(upward, vec3(b.x >> 16, b.y >> 16, b.z >> 16));
  if (shading_point.face != kQryNoFace) {
    const uint axis = shading_point.face >> 1;
    power *=
        clamp((((shading_point.face & 1u) != 0u ? -v[axis] : v[axis]) + half_size[axis]) * inverse_distance, 0.0, 1.0);
  }
  return uintBitsToFloat(a.w) * power * inverse_square;
}

// Descends from the root to a cell: by the bits of `voxel` if it is given, else by u. Returns false if nothing there
// can send light to the point.
bool qry_light_cell(uint64_t nodes, const QryShadingPoint shading_point, bool given, ivec3 voxel, inout float u,
                    out uint cell, out float probability) {
  probability = 1.0;
  uint index = 0u;
  for (uint level = 0u; level < kQryLightLevels; ++level) {
    const uint link = QryLightNodes(nodes).at[2u * index + 1u].w, bit = link >> 26;
    cell = link & kQryLightIndex;
    if (bit == kQryLightLeaf) return true;
    const float first = qry_light_importance(nodes, cell, shading_point),
                second = qry_light_importance(nodes, cell + 1u, shading_point), both = first + second;
    if (!(both > 0.0)) return false;
    const float share = first / both;
    const bool to_second = given ? ((uint(voxel[bit % 3u]) >> (bit / 3u + kQryLightCellShift)) & 1u) != 0u : u >= share;
    if (!given) u = to_second ? (u - share) / (1.0 - share) : u / share;
    probability *= to_second ? 1.0 - share : share;
    index = to_second ? cell + 1u : cell;
  }
  return false;
}

// The shares of the cell's directions, not yet divided by their sum.
void qry_light_directions(const QryLightCell cell, const QryShadingPoint shading_point, out float shares[6]) {
  const vec3 v = shading_point.point + vec3(kVoxelBias) - (vec3(cell.x, cell.y, cell.z) * 4.0 + 2.0);
  vec3 downward, upward;
  qry_facing(v, vec3(2.0), inversesqrt(max(dot(v, v), 12.0)), downward, upward);
  for (uint axis = 0u; axis < 3u; ++axis) {
    shares[2u * axis] = cell.powers[2u * axis] * downward[axis];
    shares[2u * axis + 1u] = cell.powers[2u * axis + 1u] * upward[axis];
  }
}

uint qry_light_end(const QryLightCell cell, uint direction) {
  return (cell.ends[direction >> 1] >> (16u * (direction & 1u))) & 0xFFFFu;
}

QryLightSample qry_sample_light_tree(uint64_t address, const QryShadingPoint shading_point, vec2 u) {
  QryLightSample sampled = QryLightSample(ivec3(0), 0u, 0u, 0.0);
  QryLightsRef at = QryLightsRef(address);
  uint cell_index;
  float probability;
  if (!qry_light_cell(at.lights.nodes, shading_point, false, ivec3(0), u.x, cell_index, probability)) return sampled;
  const QryLightCell cell = QryLightCells(at.lights.cells).at[cell_index];
  float shares[6], sum = 0.0;
  qry_light_directions(cell, shading_point, shares);
  for (uint i = 0u; i < 6u; ++i) sum += shares[i];
  if (!(sum > 0.0)) return sampled;
  float left = u.y * sum;
  uint direction = 6u;
  for (uint i = 0u; i < 6u; ++i)
    if (direction == 6u && shares[i] > 0.0) {
      if (left < shares[i]) direction = i;
      else left -= shares[i];
    }
  if (direction == 6u) return sampled;  // rounding causes this once in a million
  const float wanted = left / shares[direction] * cell.powers[direction];
  uint low = direction > 0u ? qry_light_end(cell, direction - 1u) : 0u, high = qry_light_end(cell, direction) - 1u;
  for (uint step = 0u; step < 6u && low < high; ++step) {  // at most 64 faces
    const uint middle = (low + high) >> 1;
    if (QryLightFaces(at.lights.faces).at[cell.first + middle].cumulative > wanted) high = middle;
    else low = middle + 1u;
  }
  const uint place = QryLightFaces(at.lights.faces).at[cell.first + low].place;
  sampled.voxel = ivec3(cell.x, cell.y, cell.z) * 4 + ivec3(place & 3u, (place >> 2) & 3u, (place >> 4) & 3u);
  sampled.face = direction;
  sampled.material = place >> 8;
  sampled.probability =
      probability * shares[direction] / sum * at.lights.powers[sampled.material] / cell.powers[direction];
  return sampled;
}

// The probability of drawing this face of a voxel, which touches air. 0 means that it is not in the tree.
float qry_light_pdf(uint64_t address, const QryShadingPoint shading_point, ivec3 voxel, uint face, uint material) {
  QryLightsRef at = QryLightsRef(address);
  uint cell_index;
  float probability, unused = 0.0;
  if (!qry_light_cell(at.lights.nodes, shading_point, true, voxel, unused, cell_index, probability)) return 0.0;
  const QryLightCell cell = QryLightCells(at.lights.cells).at[cell_index];
  if (uvec3(voxel) >> kQryLightCellShift != uvec3(cell.x, cell.y, cell.z) || cell.powers[face] <= 0.0) return 0.0;
  float shares[6], sum = 0.0;
  qry_light_directions(cell, shading_point, shares);
  for (uint i = 0u; i < 6u; ++i) sum += shares[i];
  return sum > 0.0 ? probability * shares[face] / sum * at.lights.powers[material] / cell.powers[face] : 0.0;
}

// Draws a point on an emissive face. Gives the direction to it, its density over directions, its power and the face.
// Returns false if it drew no face that sees the shading point.
bool qry_sample_light(uint64_t address, const QryShadingPoint shading_point, vec2 u, vec2 place, out vec3 d,
                      out float density, out float power, out ivec3 voxel, out uint face) {
  const QryLightSample sampled = qry_sample_light_tree(address, shading_point, u);
  const uint axis = sampled.face >> 1;
  vec3 within = vec3(place, place.x);
  if (axis == 0u) within = vec3(0.0, place);
  else if (axis == 1u) within = vec3(place.x, 0.0, place.y);
  within[axis] = float(sampled.face & 1u);
  const vec3 to = vec3(sampled.voxel - kVoxelBias) + within - shading_point.point;
  const float square = dot(to, to);
  d = to * inversesqrt(square);
  power = QryLightsRef(address).lights.powers[sampled.material];
  voxel = sampled.voxel;
  face = sampled.face;
  const float cosine = (sampled.face & 1u) != 0u ? -d[axis] : d[axis];
  density = sampled.probability * square / cosine;
  return sampled.probability > 0.0 && cosine > 1e-6;
}

#endif
