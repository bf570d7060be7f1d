#version 460
// SPDX-License-Identifier: Apache-2.0
// shade.comp.glsl - visibility and light -> colour: palette materials in sun and sky, refraction, reflection, tone
// mapping, the highlighted box. debug_views.comp.glsl makes the debug views. It traces no rays; the passes before it
// did. It runs once for each sub-pixel sample. The last run writes the picture.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/resolve.glsl"

// The light of a surface beyond the first one. No more rays are traced there, so it is an estimate.
vec3 light_beyond(const QryEnvironment environment, const Surface s, vec3 sun) {
  return s.albedo * (qry_sun_light(environment) * max(dot(s.normal, sun), 0.0) * 0.7 +
                     qry_environment_light(environment, s.normal) * 0.5 + s.emission);
}

// The light that leaves the surface towards the eye. `ambient` is the light from all directions, and `lit` the visible
// share of the sun.
vec3 light_of(const QryEnvironment environment, const Surface s, vec3 d, vec3 sun, vec3 ambient, float lit,
              bool knows_reflection, vec3 reflected_light) {
  const float facing_sun = max(dot(s.normal, sun), 0.0);
  const vec3 sun_light = qry_sun_light(environment);
  const vec3 diffuse = s.albedo * (1.0 - s.metalness) * (ambient + sun_light * facing_sun * lit);
  // A glossy coat or metal reflects the sky, blurred by roughness and dimmed in dark surroundings.
  const vec3 f0 = mix(vec3(0.04), s.albedo, s.metalness);
  const float gloss = 1.0 - clamp(s.roughness, 0.0, 1.0);
  const vec3 reflected = reflect(d, s.normal), half_way = normalize(sun - d);
  const vec3 fresnel = f0 + (max(vec3(gloss), f0) - f0) * pow(1.0 - max(dot(-d, s.normal), 0.0), 5.0);
  const float openness = clamp(dot(ambient, vec3(0.6)), 0.0, 1.0);
  const vec3 blurred = normalize(mix(reflected, s.normal, s.roughness * s.roughness * 0.6));
  vec3 specular = fresnel * (knows_reflection ? reflected_light : qry_environment(environment, blurred) * openness);
  const float power = 2.0 / max(pow(max(s.roughness, 0.08), 4.0), 1e-4) - 2.0;
  specular += fresnel * sun_light * lit * facing_sun * min((power + 8.0) / (8.0 * kPi), 40.0) *
              pow(max(dot(s.normal, half_way), 0.0), max(power, 0.0)) * gloss;
  return diffuse + specular * mix(gloss, 1.0, s.metalness) + s.albedo * s.emission;
}

void main() {
  const QryFrame frame = given.frame;
  const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
  if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
  const QryWorldRoot root = push.root;
  const QryEnvironment environment = frame.environment;
  const uint at = pixel.y * frame.width + pixel.x;
  const QryVisibility visible = QryVisibilityRef(frame.visibility).at[at];
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, push.sample_index),
             sun = qry_array3(environment.sun_direction);
  const bool hit = visible_hit(visible);
  const ivec3 voxel = visible_voxel(visible);
  const uint face = visible_face(visible), material = visible_material(visible);

  float cover = 1.0;
  vec3 light = vec3(0.0);
  float open = 1.0;  // share of the floor's light, where the floor is seen
  if (!hit) {
    vec3 on_floor;
    uint ignored;
    if (environment.ground != 0u && shading_point(frame, pixel, push.sample_index, visible, on_floor, ignored)) {
      const vec4 reaching = QryColorRef(frame.light).at[at];
      const float from_sky =
          dot(qry_environment_light(environment, normalize(vec3(0.3, 0.9, 0.3))), vec3(0.3, 0.5, 0.2));
      const float from_sun = max(sun.y, 0.0) * dot(qry_sun_light(environment), vec3(0.3, 0.5, 0.2));
      open = (from_sky * reaching.r + from_sun * reaching.a) / max(from_sky + from_sun, 1e-6);
    }
    if (environment.background == kQryBackgroundSky) light = qry_backdrop(environment, d) * open;
    else cover = 1.0 - open;
  } else {
    Surface s = surface_of(root, o, d, visible.t, voxel, face, material);
    const bool is_smooth = frame.reflection != 0ul && is_reflective(s.roughness);
    const vec3 reflected_direction = reflect(d, s.normal);
    vec3 reflected = qry_environment(environment, reflected_direction);
    if (is_smooth) {
      const QryVisibility met = QryVisibilityRef(frame.reflection).at[at];
      if (visible_hit(met))
        reflected = light_beyond(environment,
                                 surface_of(root, s.point, reflected_direction, met.t, visible_voxel(met),
                                            visible_face(met), visible_material(met)),
                                 sun);
    }
    light = light_of(environment, s, d, sun, ambient_about(frame, pixel, visible, pixel_angle_of(frame)),
                     QryColorRef(frame.light).at[at].a, is_smooth, reflected);
    if (frame.refraction != 0ul && is_transmissive(s.transparency)) {
      // Light goes straight through all of this material to the voxel behind and is tinted on the way. The surface
      // reflects the sky.
      const vec3 inside = point_inside(s.point, s.normal);
      const QryVisibility refraction = QryVisibilityRef(frame.refraction).at[at];
      vec3 through = qry_environment(environment, d);
      float depth_inside = 24.0;
      if (visible_hit(refraction)) {
        const Surface b = surface_of(root, inside, d, refraction.t, visible_voxel(refraction), visible_face(refraction),
                                     visible_material(refraction));
        through = light_beyond(environment, b, sun);
        depth_inside = refraction.t;
      }
      const vec3 tint = pow(max(s.albedo, vec3(0.02)), vec3(clamp(depth_inside * 0.06, 0.15, 1.5)));
      const float fresnel = qry_fresnel(pow((s.ior - 1.0) / (s.ior + 1.0), 2.0), max(dot(-d, s.normal), 0.0));
      light = mix(mix(light, through * tint, s.transparency), reflected, fresnel);
    }
  }
  if (environment.fog_density > 0.0) {
    // The fog's own light is the sky's near the horizon.
    const float clear = exp(-qry_fog_until(environment, o, d, hit ? visible.t : 1e6));
    light = mix(qry_environment(environment, normalize(vec3(d.x, 0.08, d.z))), light, clear);
    if (!hit) cover = max(cover, 1.0 - clear);
  }
  vec3 color = qry_displayed(environment, light);
  if (environment.background == kQryBackgroundColor) {
    color = mix(qry_array3(environment.background_color), color, cover);
    cover = 1.0;
  }
  add_sample(frame, pixel, at, visible, o, d, color, cover);
}
