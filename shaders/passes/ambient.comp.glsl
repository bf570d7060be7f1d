#version 460
// SPDX-License-Identifier: Apache-2.0
// ambient.comp.glsl - light from all directions at each visible point: short rays to the sky and to near surfaces ->
// the first three components of the light buffer.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 4) in;

void main() {
#include "shaders/library/visible_pixel.glsl"
  vec3 o;
  uint face;
  if (!shading_point(frame, pixel, push.sample_index, visible, o, face)) return;
  const QryWorldRoot root = push.root;
  const QryEnvironment environment = frame.environment;
  const vec3 sun = qry_array3(environment.sun_direction), sun_light = qry_sun_light(environment);
  const uint rays = frame.ambient_rays;
  const vec3 normal = qry_face_normal(face);
  const vec2 noise = pixel_noise(frame, pixel, push.sample_index);
  // The floor's shadow and the debug views need only the open share of the sky.
  const bool only_open = !visible_hit(visible) || frame.view != 0u;
  vec3 ambient = vec3(0.0);
  for (uint i = 0u; i < rays; ++i) {
    const float k = float(i);
    const vec3 direction = qry_cosine_about(normal, vec2((k + noise.x) / float(rays), fract(noise.y + k * 0.61803399)));
    const QryHit hit = qry_traverse(root, o, direction, 0.0, frame.ambient_reach, 0u);
    if (only_open) {
      ambient += vec3(hit.t < 0.0 ? 1.0 / float(rays) : 0.0);
    } else {
      vec3 sky_from = direction, share = vec3(1.0), own = vec3(0.0);
      if (hit.t >= 0.0) {
        // A near surface sends light of its own colour: its emission, and an estimate of its light from the sky.
        const QryMaterial m = QryPalette(root.palette).at[qry_material(root, hit.brick, hit.voxel)];
        const vec3 color = qry_from_srgb(unpackUnorm4x8(m.rgba).rgb);
        const float hit_sun = max(dot(qry_face_normal(hit.face), sun), 0.0);
        sky_from = normalize(vec3(direction.x, abs(direction.y) + 0.3, direction.z));
        share = color * (0.25 + 0.5 * hit.t / frame.ambient_reach);
        own = color * (m.emission * 2.0 + 0.4 * hit_sun * sun_light);
      }
      ambient += (share * qry_environment_light(environment, sky_from) + own) / float(rays);
    }
  }
  if (rays == 0u)
    ambient = only_open ? vec3(1.0)
                        : mix(vec3(0.35) * environment.sky_strength,
                              qry_environment_light(environment, normalize(normal + vec3(0.0, 0.35, 0.0))), 0.7);
  QryColorRef(frame.light).at[at].rgb = ambient;
}
