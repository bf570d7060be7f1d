#version 460
// ambient.comp.glsl - light from all around each visible point: short rays to the sky and to what stands near -> the first three components
// of the light buffer.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require

#include "shaders/traverse.glsl"
#include "shaders/surface.glsl"
#include "shaders/sky.glsl"

layout(local_size_x = 8, local_size_y = 4) in;

// Cosine-weighted about the normal, from two numbers in 0..1.
vec3 around(vec3 n, vec2 u) {
  const float z = 1.0 - 2.0 * u.x, r = sqrt(max(0.0, 1.0 - z * z)), phi = 2.0 * kPi * u.y;
  const vec3 d = n + vec3(r * cos(phi), r * sin(phi), z);
  return dot(d, d) < 1e-6 ? n : normalize(d);
}

void main() {
  const QryFrame frame = QryFrameRef(push.frame).frame;
  const uvec2 pixel = gl_GlobalInvocationID.xy;
  if (pixel.x >= frame.width || pixel.y >= frame.height) return;
  const uint at = pixel.y * frame.width + pixel.x;
  const QryVisibility seen = QryVisibilityRef(frame.visibility).at[at];
  if (!seen_hit(seen)) return;
  const QryWorldRoot root = QryRootRef(frame.root).root;
  const vec3 sun = qry_vec3(frame.sun_direction), sun_light = frame.sun_strength * qry_sun_color(sun);
  const uint face = seen_face(seen), rays = frame.ambient_rays;
  const vec3 normal = face_normal(face);
  const vec3 o = leaving_point(qry_vec3(frame.origin), qry_pixel_direction(frame, pixel, push.sample_index), seen.t, seen_voxel(seen), face);
  const vec2 noise = pixel_noise(frame, pixel, push.sample_index);
  vec3 ambient = vec3(0.0);
  for (uint i = 0u; i < rays; ++i) {
    const float k = float(i);
    const vec3 direction = around(normal, vec2((k + noise.x) / float(rays), fract(noise.y + k * 0.61803399)));
    const QryHit hit = qry_traverse(root, o, direction, 0.0, frame.ambient_reach, 0u);
    if (hit.t < 0.0) {
      ambient += qry_sky_light(direction, sun) * frame.sky_strength / float(rays);
    } else {
      // What is near gives its own colour's light back: emission, and a guess at what it gets from the sky.
      const QryMaterial m = QryPalette(root.palette).at[qry_material(root, hit.brick, hit.voxel)];
      const vec3 color = from_srgb(unpackUnorm4x8(m.rgba).rgb);
      const float open_air = hit.t / frame.ambient_reach;
      const vec3 bounced = color * (0.25 + 0.5 * open_air) * qry_sky_light(normalize(vec3(direction.x, abs(direction.y) + 0.3, direction.z)), sun) * frame.sky_strength;
      const float hit_sun = max(dot(face_normal(hit.face), sun), 0.0);
      ambient += (bounced + color * (m.emission * 2.0 + 0.4 * hit_sun * sun_light)) / float(rays);
    }
  }
  if (rays == 0u) ambient = mix(vec3(0.35), qry_sky_light(normalize(normal + vec3(0.0, 0.35, 0.0)), sun), 0.7) * frame.sky_strength;
  QryColorRef(frame.light).at[at].rgb = ambient;
}
