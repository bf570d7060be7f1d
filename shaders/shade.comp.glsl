#version 460
// shade.comp.glsl - visibility and light -> colour: palette materials in sun and sky, glass, tone mapping, debug views, the highlighted box.
// Traces nothing: the passes before it did. Runs once for each sub-pixel sample; the last run writes the picture.
#extension GL_GOOGLE_include_directive : require

#include "shaders/surface.glsl"
#include "shaders/ramp.glsl"

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;

const uint kShaded = 0u, kAlbedo = 1u, kNormals = 2u, kDepth = 3u, kBricks = 4u, kProbeDepth = 5u, kSteps = 6u, kMaterial = 7u, kLoad = 8u;  // engine::DebugView

// The light buffer's mean over 4 x 4 pixels on the same plane: their 16 sets of rays together, without the noise of each. Planes that a
// pixel's width hides from each other count as one.
vec3 ambient_about(const QryFrame frame, uvec2 pixel, QryVisibility seen, float pixel_angle) {
  const uint face = seen_face(seen), axis = face >> 1;
  const int plane = seen_voxel(seen)[axis], near = int(2.0 * seen.t * pixel_angle);
  const ivec2 size = ivec2(frame.width, frame.height);
  vec3 sum = vec3(0.0);
  float count = 0.0;
  for (int y = -2; y < 2; ++y)
    for (int x = -2; x < 2; ++x) {
      const ivec2 there = clamp(ivec2(pixel) + ivec2(x, y), ivec2(0), size - 1);
      const uint at = uint(there.y * size.x + there.x);
      const QryVisibility other = QryVisibilityRef(frame.visibility).at[at];
      if (!seen_hit(other) || seen_face(other) != face || abs(seen_voxel(other)[axis] - plane) > near) continue;
      sum += QryColorRef(frame.light).at[at].rgb;
      count += 1.0;
    }
  return sum / max(count, 1.0);
}

// What a surface met beyond the first one sends: nothing more is traced there, so its light is a guess.
vec3 light_beyond(const QryLook look, const Surface s, vec3 sun) {
  return s.albedo * (qry_sun_light(look) * max(dot(s.normal, sun), 0.0) * 0.7 + qry_surrounding_light(look, s.normal) * 0.5 + s.emission);
}

// Light that leaves the surface towards the eye, where `ambient` comes from all around and `lit` of the sun is seen.
vec3 light_of(const QryLook look, const Surface s, vec3 d, vec3 sun, vec3 ambient, float lit, bool knows_mirrored, vec3 mirrored_light) {
  const float facing_sun = max(dot(s.normal, sun), 0.0);
  const vec3 sun_light = qry_sun_light(look);
  const vec3 diffuse = s.albedo * (1.0 - s.metalness) * (ambient + sun_light * facing_sun * lit);
  // A glossy coat or metal: the sky it mirrors, blurred by roughness, dimmed where the surroundings are dark.
  const vec3 f0 = mix(vec3(0.04), s.albedo, s.metalness);
  const float gloss = 1.0 - clamp(s.roughness, 0.0, 1.0);
  const vec3 mirrored = reflect(d, s.normal), half_way = normalize(sun - d);
  const vec3 fresnel = f0 + (max(vec3(gloss), f0) - f0) * pow(1.0 - max(dot(-d, s.normal), 0.0), 5.0);
  const float openness = clamp(dot(ambient, vec3(0.6)), 0.0, 1.0);
  const vec3 blurred = normalize(mix(mirrored, s.normal, s.roughness * s.roughness * 0.6));
  vec3 specular = fresnel * (knows_mirrored ? mirrored_light : qry_surroundings(look, blurred) * openness);
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
  const QryLook look = frame.look;
  const uint at = pixel.y * frame.width + pixel.x;
  const QryVisibility seen = QryVisibilityRef(frame.visibility).at[at];
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, push.sample_index), sun = qry_array3(look.sun_direction);
  const float pixel_angle = 2.0 * length(qry_vec3(frame.up)) / float(frame.height);
  const bool hit = seen_hit(seen);
  const ivec3 voxel = seen_voxel(seen);
  const uint face = seen_face(seen), material = seen_material(seen);

  vec3 color = vec3(0.0);  // display-linear, 0..1
  float cover = 1.0;
  if (frame.view == kShaded) {
    vec3 light = vec3(0.0);
    float open = 1.0;  // of the floor's light, where it is seen
    if (!hit) {
      vec3 on_floor;
      uint ignored;
      if (look.ground != 0u && lit_point(frame, pixel, push.sample_index, seen, on_floor, ignored)) {
        const vec4 reaching = QryColorRef(frame.light).at[at];
        const float from_sky = dot(qry_surrounding_light(look, normalize(vec3(0.3, 0.9, 0.3))), vec3(0.3, 0.5, 0.2));
        const float from_sun = max(sun.y, 0.0) * dot(qry_sun_light(look), vec3(0.3, 0.5, 0.2));
        open = (from_sky * reaching.r + from_sun * reaching.a) / max(from_sky + from_sun, 1e-6);
      }
      if (look.background == kQryBackgroundSky) light = qry_backdrop(look, d) * open;
      else cover = 1.0 - open;
    } else {
      Surface s = surface_of(root, o, d, seen.t, voxel, face, material);
      const bool smooth_surface = frame.mirror != 0ul && mirrors(s.roughness);
      const vec3 mirrored_way = reflect(d, s.normal);
      vec3 mirrored = qry_surroundings(look, mirrored_way);
      if (smooth_surface) {
        const QryVisibility met = QryVisibilityRef(frame.mirror).at[at];
        if (seen_hit(met)) mirrored = light_beyond(look, surface_of(root, s.point, mirrored_way, met.t, seen_voxel(met), seen_face(met), seen_material(met)), sun);
      }
      light = light_of(look, s, d, sun, ambient_about(frame, pixel, seen, pixel_angle), QryColorRef(frame.light).at[at].a, smooth_surface, mirrored);
      if (frame.behind != 0ul && lets_through(s.transparency)) {
        // Straight through everything of this material to what is behind, tinted on the way; the sky mirrored in the surface.
        const vec3 inside = point_inside(s.point, s.normal);
        const QryVisibility behind = QryVisibilityRef(frame.behind).at[at];
        vec3 through = qry_surroundings(look, d);
        float depth_inside = 24.0;
        if (seen_hit(behind)) {
          const Surface b = surface_of(root, inside, d, behind.t, seen_voxel(behind), seen_face(behind), seen_material(behind));
          through = light_beyond(look, b, sun);
          depth_inside = behind.t;
        }
        const vec3 tint = pow(max(s.albedo, vec3(0.02)), vec3(clamp(depth_inside * 0.06, 0.15, 1.5)));
        const float fresnel = qry_fresnel(pow((s.ior - 1.0) / (s.ior + 1.0), 2.0), max(dot(-d, s.normal), 0.0));
        light = mix(mix(light, through * tint, s.transparency), mirrored, fresnel);
      }
    }
    if (look.fog_density > 0.0) {
      // The fog's own light is that of the sky near the horizon.
      const float clear = exp(-qry_fog_until(look, o, d, hit ? seen.t : 1e6));
      light = mix(qry_surroundings(look, normalize(vec3(d.x, 0.08, d.z))), light, clear);
      if (!hit) cover = max(cover, 1.0 - clear);
    }
    color = qry_displayed(look, light);
    if (look.background == kQryBackgroundColor) {
      color = mix(qry_array3(look.background_color), color, cover);
      cover = 1.0;
    }
  } else if (!hit) {
    color = frame.view == kSteps ? qry_ramp(float(seen.cost & 0xFFFFu) / 64.0) : vec3(0.012);
  } else if (frame.view == kAlbedo) {
    color = qry_from_srgb(unpackUnorm4x8(QryPalette(root.palette).at[material].rgba).rgb);
  } else if (frame.view == kNormals) {
    color = qry_from_srgb(0.5 + 0.5 * qry_face_normal(face));
  } else if (frame.view == kDepth) {
    const vec3 size = vec3(root.bounds_max[0] - root.bounds_min[0], root.bounds_max[1] - root.bounds_min[1], root.bounds_max[2] - root.bounds_min[2]) + 1.0;
    color = vec3(exp(-1.6 * seen.t / max(length(size), 1.0)));
  } else {
    const float shape = 0.72 + 0.28 * abs(dot(qry_face_normal(face), normalize(vec3(0.35, 0.84, 0.42))));
    if (frame.view == kBricks) {
      const vec3 p = o + seen.t * d;
      const uint axis = face >> 1, u = (axis + 1u) % 3u, v = (axis + 2u) % 3u;
      const float edge_u = abs(p[u] - 8.0 * round(p[u] / 8.0)), edge_v = abs(p[v] - 8.0 * round(p[v] / 8.0));
      color = qry_label_color(qry_key_of(voxel)) * (min(edge_u, edge_v) < 0.25 ? 0.35 : 1.0);
    } else if (frame.view == kMaterial) {
      color = qry_label_color(material);
    } else if (frame.view == kLoad) {
      const uint page = qry_grid_page(root.grid_pages, qry_key_of(voxel));
      color = qry_ramp(float(QryUints(frame.page_loads).at[page]) / float(kQrySlotsPerPage));
    } else if (frame.view == kProbeDepth) {
      color = qry_depth_color(seen.cost >> 16);
    } else {
      color = qry_ramp(float(seen.cost & 0xFFFFu) / 64.0);
    }
    color = qry_from_srgb(color) * shape;
  }

  if (frame.highlight != 0u) {
    float t_line;
    if (outline(o, d, qry_vec3(frame.highlight_min), qry_vec3(frame.highlight_max), pixel_angle, t_line)) {
      const bool covered = hit && seen.t < t_line - 0.05 - 1e-4 * t_line;
      const float strength = covered ? 0.22 : 0.9;
      color = mix(color, vec3(1.0, 0.72, 0.12), strength);
      cover = max(cover, strength);
    }
  }

  const uint samples = max(frame.samples_a_side, 1u) * max(frame.samples_a_side, 1u);
  vec4 sum = vec4(color * cover, cover);
  if (samples > 1u) {
    QryColorRef sums = QryColorRef(frame.accumulation);
    if (push.sample_index > 0u) sum += sums.at[at];
    if (push.sample_index + 1u < samples) {
      sums.at[at] = sum;
      return;
    }
    sum /= float(samples);
  }
  imageStore(target, ivec2(pixel), vec4(qry_to_srgb(clamp(sum.rgb / max(sum.a, 1e-4), 0.0, 1.0)), sum.a));
}
