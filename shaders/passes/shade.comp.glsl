#version 460
// SPDX-License-Identifier: Apache-2.0
// shade.comp.glsl - visibility and light -> colour: palette materials in sun and sky, glass, tone mapping, the highlighted box. Debug views: views.comp.glsl.
// Traces nothing: the passes before it did. Runs once for each sub-pixel sample; the last run writes the picture.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/picture.glsl"

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

void main() {
  const QryFrame frame = given.frame;
  const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_own_pixel(gl_WorkGroupSize.xy);
  if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
  const QryWorldRoot root = push.root;
  const QryLook look = frame.look;
  const uint at = pixel.y * frame.width + pixel.x;
  const QryVisibility seen = QryVisibilityRef(frame.visibility).at[at];
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, push.sample_index), sun = qry_array3(look.sun_direction);
  const bool hit = seen_hit(seen);
  const ivec3 voxel = seen_voxel(seen);
  const uint face = seen_face(seen), material = seen_material(seen);

  float cover = 1.0;
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
    light = light_of(look, s, d, sun, ambient_about(frame, pixel, seen, pixel_angle_of(frame)), QryColorRef(frame.light).at[at].a, smooth_surface, mirrored);
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
  vec3 color = qry_displayed(look, light);
  if (look.background == kQryBackgroundColor) {
    color = mix(qry_array3(look.background_color), color, cover);
    cover = 1.0;
  }
  add_sample(frame, pixel, at, seen, o, d, color, cover);
}
