// beam.glsl - how far a whole tile of pixels sees nothing: one cone for all its rays, marched over the pyramid alone.
//
// All rays start at one point, so at distance t they lie in a ball around the middle ray's point, of radius t times the longest chord
// between directions. Eight threads look at the eight corners of that ball's box: when the smallest of the empty cubes they find is at
// least as wide as the box, all of the box is empty, and stays so until it leaves the cubes it touches. Conservative: the walk from
// there finds what it would have found from the eye.
// The including shader has a workgroup of 32 threads, four beams of eight.
#ifndef QRY_BEAM_GLSL
#define QRY_BEAM_GLSL

#include "shaders/traverse.glsl"

shared int qry_beam_edges[32];
shared uint qry_beam_live[4];

const int kQryBeamSteps = 24;
const float kQryBeamMargin = 0.06, kQryBeamNudge = 0.02;  // voxels: more than floats' error in the largest world, and less than that

// `chord`: longest distance of a ray's direction from d. Every thread of the workgroup calls it.
float qry_beam(const QryWorldRoot root, vec3 o, vec3 d, float chord) {
  const uint lane = gl_LocalInvocationIndex, corner = lane & 7u, beam = lane >> 3;
  const bvec3 rising = greaterThanEqual(d, vec3(0.0));
  const vec3 a = abs(d), start = mix(vec3(kVoxelExtent - kVoxelBias) - o, o + vec3(kVoxelBias), rising) + float(kQryMirrorOffset);
  const vec3 side = vec3((corner & 1u) != 0u ? 1.0 : -1.0, (corner & 2u) != 0u ? 1.0 : -1.0, (corner & 4u) != 0u ? 1.0 : -1.0);
  const vec3 opening = a + chord, closing = chord - a;
  QryWalk walk;
  walk.flip = (rising.x ? 0u : 3u) | (rising.y ? 0u : 12u) | (rising.z ? 0u : 48u);
  float t = 0.0;
  bool live = all(lessThan(abs(o), vec3(3.0e4)));
  for (int n = 0; n < kQryBeamSteps; ++n) {
    const float r = fma(t, chord, kQryBeamMargin);
    const vec3 p = fma(vec3(t), a, start);
    int edge = 0;
    if (live) {
      const vec3 at = fma(vec3(r), side, p);
      // A world's width beyond it there is nothing to find.
      if (any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(kVoxelExtent + 2 * kQryMirrorOffset)))) edge = 0;
      else {
        const uvec3 cell = uvec3(at);
        walk.frame = (cell.x >> 9) | ((cell.y >> 9) << 8) | ((cell.z >> 9) << 16);
        edge = int((qry_descend(root, floatBitsToUint(kQryFrame + vec3(cell & 511u)), kQryStart, walk) + 1u) >> 13);
      }
    }
    qry_beam_edges[lane] = edge;
    if (corner == 0u) qry_beam_live[beam] = live ? 1u : 0u;
    barrier();
    int smallest = qry_beam_edges[beam * 8u];
    for (uint i = 1u; i < 8u; ++i) smallest = min(smallest, qry_beam_edges[beam * 8u + i]);
    const bool any_live = (qry_beam_live[0] | qry_beam_live[1] | qry_beam_live[2] | qry_beam_live[3]) != 0u;
    barrier();
    if (!any_live) break;
    if (live) {
      if (float(smallest) < 2.0 * r) {
        live = false;
      } else {
        // To where the box first leaves the cubes it touches, through upper planes or, when it grows faster than it goes, lower ones.
        const float cube = float(smallest), per_cube = 1.0 / cube;
        const vec3 high = (floor((p + r) * per_cube) + 1.0) * cube, low = floor((p - r) * per_cube) * cube;
        const vec3 up = (high - (p + r)) / opening, down = mix(vec3(1e9), ((p - r) - low) / closing, greaterThan(closing, vec3(1e-6)));
        t += max(0.0, min(min(min(up.x, up.y), up.z), min(min(down.x, down.y), down.z))) + kQryBeamNudge;
        live = t < 6.0e4;
      }
    }
  }
  return max(0.0, t - 2.0 * kQryBeamNudge);
}

#endif
