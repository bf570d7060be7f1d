#version 460
// shadow.comp.glsl - how much of the sun each visible point sees: visibility buffer -> the fourth component of the light buffer.
#extension GL_GOOGLE_include_directive : require

#include "shaders/traverse.glsl"
#include "shaders/surface.glsl"

layout(local_size_x = 8, local_size_y = 16) in;

void main() {
#include "shaders/seen_pixel.glsl"
  vec3 o;
  uint face;
  if (!lit_point(frame, pixel, push.sample_index, seen, o, face)) return;
  const vec3 sun = qry_array3(frame.look.sun_direction);
  float lit = 0.0;
  if (dot(qry_face_normal(face), sun) > 0.0) {
    const QryWorldRoot root = QryRootRef(frame.root).root;
    const vec2 noise = pixel_noise(frame, pixel, push.sample_index);
    for (uint i = 0u; i < frame.shadow_rays; ++i) {
      // The sun is a disc: several rays soften its shadow, a single one goes to the middle.
      const vec2 u = fract(noise + float(i) * vec2(0.7548777, 0.5698403));
      const vec3 to_sun = qry_cone_about(sun, frame.shadow_rays > 1u ? frame.look.sun_radius : 0.0, u);
      QryWay way;
      QryWalk walk;
      uint steps = 0u;
      float free = 1.0;
      if (qry_walk(root, o, to_sun, 0.0, 1e29, 0u, way, walk, steps)) {
        free = 0.0;  // which voxel it is matters only where there is glass
        if (frame.behind != 0ul) free = 0.85 * QryPalette(root.palette).at[qry_material(root, qry_brick(root, way, walk), qry_voxel(way, walk))].transparency;
      }
      lit += free / float(frame.shadow_rays);
    }
    if (frame.shadow_rays == 0u) lit = 1.0;
  }
  QryColorRef(frame.light).at[at].a = lit;
}
