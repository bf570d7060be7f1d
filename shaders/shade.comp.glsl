#version 460
// shade.comp.glsl - visibility and light -> colour: palette materials in sun and sky, glass, tone mapping, debug views, the highlighted box.
// Traces nothing: the passes before it did. Runs once for each sub-pixel sample; the last run writes the picture.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require

#include "shaders/surface.glsl"
#include "shaders/sky.glsl"

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;

const uint kShaded = 0u, kAlbedo = 1u, kNormals = 2u, kDepth = 3u, kBricks = 4u, kProbeDepth = 5u, kSteps = 6u;  // engine::DebugView

vec3 to_srgb(vec3 c) { return mix(c * 12.92, 1.055 * pow(max(c, vec3(0.0)), vec3(1.0 / 2.4)) - 0.055, greaterThan(c, vec3(0.0031308))); }
// The curve of K. Narkowicz, "ACES Filmic Tone Mapping Curve", 2015.
vec3 tone_map(vec3 c) { return clamp(c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14), 0.0, 1.0); }

// Light that leaves the surface towards the eye, where `ambient` comes from all around and `lit` of the sun is seen.
vec3 light_of(const QryFrame frame, const Surface s, vec3 d, vec3 sun, vec3 ambient, float lit) {
  const float facing_sun = max(dot(s.normal, sun), 0.0);
  const vec3 sun_light = frame.sun_strength * qry_sun_color(sun);
  const vec3 diffuse = s.albedo * (1.0 - s.metalness) * (ambient + sun_light * facing_sun * lit);
  // A glossy coat or metal: the sky it mirrors, blurred by roughness, dimmed where the surroundings are dark.
  const vec3 f0 = mix(vec3(0.04), s.albedo, s.metalness);
  const float gloss = 1.0 - clamp(s.roughness, 0.0, 1.0);
  const vec3 mirrored = reflect(d, s.normal), half_way = normalize(sun - d);
  const vec3 fresnel = f0 + (max(vec3(gloss), f0) - f0) * pow(1.0 - max(dot(-d, s.normal), 0.0), 5.0);
  const float openness = clamp(dot(ambient, vec3(0.6)), 0.0, 1.0);
  const vec3 blurred = normalize(mix(mirrored, s.normal, s.roughness * s.roughness * 0.6));
  vec3 specular = fresnel * qry_sky_diffuse(blurred, sun) * frame.sky_strength * openness;
  const float power = 2.0 / max(pow(max(s.roughness, 0.08), 4.0), 1e-4) - 2.0;
  specular += fresnel * sun_light * lit * facing_sun * min((power + 8.0) / (8.0 * kPi), 40.0) * pow(max(dot(s.normal, half_way), 0.0), max(power, 0.0)) * gloss;
  return diffuse + specular * mix(gloss, 1.0, s.metalness) + s.albedo * s.emission;
}

// Distance along the ray to the outline of the box, and whether the ray meets it: lines of about two pixels on its visible faces.
bool outline(vec3 o, vec3 d, vec3 low, vec3 high, float pixel_angle, out float t_line) {
  t_line = 1e30;
  bool met = false;
  for (uint axis = 0u; axis < 3u; ++axis) {
    const uint u = (axis + 1u) % 3u, v = (axis + 2u) % 3u;
    for (uint side = 0u; side < 2u; ++side) {
      if (abs(d[axis]) < 1e-20) continue;
      const float t = ((side == 0u ? low[axis] : high[axis]) - o[axis]) / d[axis];
      if (t <= 0.0 || t >= t_line) continue;
      const vec3 p = o + t * d;
      const float width = max(0.03, 0.8 * t * pixel_angle / max(abs(d[axis]), 0.2));
      if (p[u] < low[u] - width || p[u] > high[u] + width || p[v] < low[v] - width || p[v] > high[v] + width) continue;
      const float near_u = min(abs(p[u] - low[u]), abs(p[u] - high[u])), near_v = min(abs(p[v] - low[v]), abs(p[v] - high[v]));
      if (min(near_u, near_v) > width) continue;
      t_line = t;
      met = true;
    }
  }
  return met;
}

void main() {
  const QryFrame frame = QryFrameRef(push.frame).frame;
  const uvec2 pixel = gl_GlobalInvocationID.xy;
  if (pixel.x >= frame.width || pixel.y >= frame.height) return;
  const QryWorldRoot root = QryRootRef(frame.root).root;
  const uint at = pixel.y * frame.width + pixel.x;
  const QryVisibility seen = QryVisibilityRef(frame.visibility).at[at];
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, push.sample_index), sun = qry_vec3(frame.sun_direction);
  const bool hit = seen_hit(seen);
  const ivec3 voxel = seen_voxel(seen);
  const uint face = seen_face(seen), material = seen_material(seen);

  vec3 color = vec3(0.0);  // display-linear, 0..1
  if (frame.view == kShaded) {
    vec3 light;
    if (!hit) {
      light = qry_sky(d, sun) * mix(1.0, frame.sky_strength, 0.5);
    } else {
      Surface s = surface_of(root, o, d, seen.t, voxel, face, material);
      const vec4 reaching = QryColorRef(frame.light).at[at];
      light = light_of(frame, s, d, sun, reaching.rgb, reaching.a);
      if (frame.behind != 0ul && lets_through(s.transparency)) {
        // Straight through everything of this material to what is behind, tinted on the way; the sky mirrored in the surface.
        const vec3 inside = point_inside(s.point, s.normal);
        const QryVisibility behind = QryVisibilityRef(frame.behind).at[at];
        vec3 through = qry_sky_diffuse(d, sun) * frame.sky_strength;
        float depth_inside = 24.0;
        if (seen_hit(behind)) {
          const Surface b = surface_of(root, inside, d, behind.t, seen_voxel(behind), seen_face(behind), seen_material(behind));
          const float facing_sun = max(dot(b.normal, sun), 0.0);
          through = b.albedo * (frame.sun_strength * qry_sun_color(sun) * facing_sun * 0.7 + qry_sky_light(b.normal, sun) * frame.sky_strength * 0.5 + b.emission);
          depth_inside = behind.t;
        }
        const vec3 tint = pow(max(s.albedo, vec3(0.02)), vec3(clamp(depth_inside * 0.06, 0.15, 1.5)));
        const float f0 = pow((s.ior - 1.0) / (s.ior + 1.0), 2.0);
        const float fresnel = f0 + (1.0 - f0) * pow(1.0 - max(dot(-d, s.normal), 0.0), 5.0);
        const vec3 mirrored = qry_sky_diffuse(reflect(d, s.normal), sun) * frame.sky_strength;
        light = mix(mix(light, through * tint, s.transparency), mirrored, fresnel);
      }
    }
    color = tone_map(light * frame.exposure * 0.45);
  } else if (!hit) {
    color = frame.view == kSteps ? qry_ramp(float(seen.cost & 0xFFFFu) / 64.0) : vec3(0.012);
  } else if (frame.view == kAlbedo) {
    color = from_srgb(unpackUnorm4x8(QryPalette(root.palette).at[material].rgba).rgb);
  } else if (frame.view == kNormals) {
    color = from_srgb(0.5 + 0.5 * face_normal(face));
  } else if (frame.view == kDepth) {
    const vec3 size = vec3(root.bounds_max[0] - root.bounds_min[0], root.bounds_max[1] - root.bounds_min[1], root.bounds_max[2] - root.bounds_min[2]) + 1.0;
    color = vec3(exp(-1.6 * seen.t / max(length(size), 1.0)));
  } else {
    const float shape = 0.72 + 0.28 * abs(dot(face_normal(face), normalize(vec3(0.35, 0.84, 0.42))));
    if (frame.view == kBricks) {
      const vec3 p = o + seen.t * d;
      const uint axis = face >> 1, u = (axis + 1u) % 3u, v = (axis + 2u) % 3u;
      const float edge_u = abs(p[u] - 8.0 * round(p[u] / 8.0)), edge_v = abs(p[v] - 8.0 * round(p[v] / 8.0));
      color = qry_label_color(qry_key_of(voxel)) * (min(edge_u, edge_v) < 0.25 ? 0.35 : 1.0);
    } else if (frame.view == kProbeDepth) {
      color = qry_depth_color(seen.cost >> 16);
    } else {
      color = qry_ramp(float(seen.cost & 0xFFFFu) / 64.0);
    }
    color = from_srgb(color) * shape;
  }

  if (frame.highlight != 0u) {
    float t_line;
    const float pixel_angle = 2.0 * length(qry_vec3(frame.up)) / float(frame.height);
    if (outline(o, d, qry_vec3(frame.highlight_min), qry_vec3(frame.highlight_max), pixel_angle, t_line)) {
      const bool covered = hit && seen.t < t_line - 0.05 - 1e-4 * t_line;
      color = mix(color, vec3(1.0, 0.72, 0.12), covered ? 0.22 : 0.9);
    }
  }

  const uint samples = max(frame.samples_a_side, 1u) * max(frame.samples_a_side, 1u);
  if (samples > 1u) {
    QryColorRef sums = QryColorRef(frame.accumulation);
    if (push.sample_index > 0u) color += sums.at[at].rgb;
    if (push.sample_index + 1u < samples) {
      sums.at[at] = vec4(color, 0.0);
      return;
    }
    color /= float(samples);
  }
  imageStore(target, ivec2(pixel), vec4(to_srgb(clamp(color, 0.0, 1.0)), 1.0));
}
