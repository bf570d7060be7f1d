#version 460
// SPDX-License-Identifier: Apache-2.0
// path.comp.glsl - the path tracer: follows light backwards from the eye, as many times for every pixel as wanted. It
// adds the paths up. path_resolve.comp.glsl shows the sums.
//
// At each surface, and where fog scatters, the sun and one emissive face (light_tree.glsl) are sampled by their own
// rays (next-event estimation). The scattered ray itself finds the sky. It also finds emissive faces. Light that both
// ways find is weighted after E. Veach and L. Guibas, "Optimally Combining Sampling Techniques for Monte Carlo
// Rendering", 1995. In refractions and reflections the tree is not used, and only the path counts. One loop traces all
// kinds of rays in turn, so that the traversal is in the code once. Transparent voxels refract (transmission.glsl).
// Only the sun's rays go straight through, as through panes, because the sun's disc is too small to be hit. The random
// numbers of a path depend only on its pixel, its index and the seed. Sums are taken in the paths' order. So the same
// input gives the same bits on one driver, however the work is split into submissions.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/shared/path.h"
#include "shaders/library/dispatch_pixel.glsl"
#include "shaders/library/environment.glsl"
#include "shaders/library/sampling.glsl"
#include "shaders/library/material.glsl"
#include "shaders/library/transmission.glsl"
#include "shaders/library/light_tree.glsl"

layout(local_size_x = 8, local_size_y = 4) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryPathFrameRef { QryPathFrame frame; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QrySums { vec4 at[]; };
layout(push_constant, scalar) uniform QryPush { QryPathPush push; };

const float kReflectiveAlpha = 0.02;    // surfaces smoother than this reflect sun and lights instead of sampling them
const float kRoughTransmission = 0.05;  // roughness above which refractions blur
const float kFaint = 0.1;               // light, times the exposure, that is always worth a ray
const uint kPathRay = 0u, kSunRay = 1u, kLightRay = 2u;  // the purpose of the present ray

struct QryPathResult {
  vec4 light;   // radiance, coverage
  vec4 albedo;  // of the first visible surface; its distance
  vec4 normal;  // 1 in w: something was hit
};

bool qry_is_number(vec3 c) { return !any(isnan(c)) && !any(isinf(c)); }

// The weight of light found in one way with the density `own`, if another way could have found it with the density
// `other`.
float qry_weight(float own, float other) {
  const float ratio = other / own;
  return own > 0.0 ? 1.0 / (1.0 + ratio * ratio) : 0.0;
}

// Russian roulette for a ray to a light of this power. Faint ones are traced rarely and then count for those left out.
bool qry_light_worth_sampling(inout vec3 light_share, float power, float random) {
  const float asked = max(light_share.r, max(light_share.g, light_share.b)) * power / kFaint;
  if (!(random < asked)) return false;
  light_share /= min(asked, 1.0);
  return true;
}

// The density of the directions into which qry_facet()'s facets reflect.
float qry_reflected_pdf(const QrySurface s, vec3 n, vec3 v, vec3 l) {
  const float nv = max(dot(n, v), 1e-3), nh = max(dot(n, normalize(v + l)), 0.0), a2 = s.alpha * s.alpha,
              q = nh * nh * (a2 - 1.0) + 1.0;
  return a2 / (kPi * q * q) * qry_ggx_side(s.alpha, nv) / (4.0 * nv);
}

// H. C. Henyey and J. L. Greenstein, "Diffuse Radiation in the Galaxy", 1941. Fog scatters mostly forwards.
const float kOnwards = 0.45;
float qry_phase(float cosine) {
  return (1.0 - kOnwards * kOnwards) /
         (4.0 * kPi * pow(max(1.0 + kOnwards * kOnwards - 2.0 * kOnwards * cosine, 1e-4), 1.5));
}

QryPathResult qry_path(const QryWorldRoot root, const QryPathFrame frame, uvec2 pixel, uint index) {
  const QryEnvironment environment = frame.environment;
  const vec3 sun = qry_array3(environment.sun_direction), sun_light = qry_sun_light(environment);
  const bool has_sun = max(sun_light.r, max(sun_light.g, sun_light.b)) > 0.0;
  const float most = frame.clamp > 0.0 ? frame.clamp : 1e30;  // the most that scattered light may add
  const uint seed = qry_combined(qry_combined(frame.seed, pixel.x), pixel.y);
  uint pair = 0u;  // pairs of numbers used so far

  // The ray goes through the pixel, spread by a tent filter, and through the lens.
  const vec2 at = vec2(pixel) + 0.5 + qry_tent(qry_sample(index, seed, pair++));
  const vec2 screen = vec2(fma(2.0 / float(frame.width), at.x, -1.0), fma(-2.0 / float(frame.height), at.y, 1.0));
  const vec3 right = qry_array3(frame.right), up = qry_array3(frame.up);
  const vec3 through = qry_array3(frame.forward) + screen.x * right + screen.y * up;
  vec3 o = qry_array3(frame.origin), d = normalize(through);
  if (environment.lens_radius > 0.0) {
    const vec2 lens = environment.lens_radius * qry_disc(qry_sample(index, seed, pair++));
    const vec3 off = lens.x * normalize(right) + lens.y * normalize(up);
    d = normalize(through * environment.focus - off);
    o += off;
  }

  QryPathResult result;
  result.light = vec4(0.0, 0.0, 0.0, 1.0);
  result.albedo = vec4(0.0);
  result.normal = vec4(0.0);
  vec3 light = vec3(0.0), share = vec3(1.0);
  bool from_eye = true;    // only reflection and refraction so far: the eye sees what is hit
  bool straight = true;    // no reflection so far either
  bool shows_disc = true;  // the sun's disc counts if the ray hits nothing
  // After a diffuse bounce reflections count as rougher, because sharp caustics are not worth their noise.
  float roughest = 0.0;
  uint scattered = 0u;
  uint medium = 0u;  // the material that the ray is in; 0: air

  // The rays of a scattering point: its samples of sun and light, and the path's next ray. They are traced in turn.
  bool turns = false, goes_on = true, sun_waits = false, light_waits = false;
  uint ray_kind = kPathRay, next_medium = 0u;
  vec3 next_o = o, next_d = d, sun_d = sun, sun_share = vec3(0.0), light_d = d, light_share = vec3(0.0);
  ivec3 light_voxel = ivec3(0);
  uint light_face = 0u;
  // The last point that sampled a light, if the path has come from there straight through air, and the density of its
  // direction.
  QryShadingPoint shading_point = QryShadingPoint(o, kQryNoFace);
  float own_pdf = 0.0;
  // The floor that catches shadows: 0 not met, 1 its sun ray is traced, 2 its sky ray is traced.
  uint floor_state = 0u;
  float floor_open = 0.0;
  vec3 floor_color = vec3(0.0);
  const float sky_on_floor =
      dot(qry_environment_light(environment, normalize(vec3(0.3, 0.9, 0.3))), vec3(0.3, 0.5, 0.2));
  const float sun_on_floor = has_sun ? max(sun.y, 0.0) * dot(sun_light, vec3(0.3, 0.5, 0.2)) : 0.0;

  const uint most_rays = 6u * frame.bounces + 32u;
  for (uint n = 0u; n < most_rays; ++n) {
    if (turns) {
      turns = false;
      ray_kind = sun_waits ? kSunRay : (light_waits ? kLightRay : kPathRay);
      if (ray_kind == kPathRay && !goes_on) break;
      o = next_o;
      d = sun_waits ? sun_d : (light_waits ? light_d : next_d);
      medium = next_medium;
      if (sun_waits) sun_waits = false;
      else light_waits = false;
    }

    // The ray first goes through the medium, then through air.
    QryHit hit;
    uint material = 0u;
    hit.t = -1.0;
    bool lost = false;
    const bool in_medium = medium != 0u;
    if (in_medium) {
      const QryMaterial medium_material = QryPalette(root.palette).at[medium];
      const float ior = qry_refraction(medium_material);
      const QryTransmissionPath w = qry_trace_transmission(
          root, o, d, medium, ior, ray_kind == kPathRay ? qry_sample(index, seed, pair++).x : 2.0);
      const vec3 kept = qry_absorption(qry_from_srgb(unpackUnorm4x8(medium_material.rgba).rgb), w.path_length);
      if (ray_kind == kPathRay) {
        share *= kept;
        if (w.reflected) straight = false;
      } else {
        sun_share *= kept;
      }
      d = w.d;
      o = w.point;
      lost = !w.ends;
      if (w.material != 0u) {
        hit.t = 0.0;
        hit.voxel = w.voxel;
        hit.face = 2u * w.axis + (d[w.axis] < 0.0 ? 1u : 0u);
        hit.brick = w.brick;
        material = w.material;
      } else {
        vec3 outwards = vec3(0.0);
        outwards[w.axis] = d[w.axis] < 0.0 ? -1.0 : 1.0;
        o += outwards / 64.0;
        medium = 0u;
        if (ray_kind == kPathRay) {
          const vec3 smooth_d = refract(d, -outwards, ior);
          d = smooth_d;
          if (medium_material.roughness > kRoughTransmission) {
            d = qry_cone_about(smooth_d, medium_material.roughness * medium_material.roughness,
                               qry_sample(index, seed, pair++));
            if (dot(d, outwards) < 0.01) d = smooth_d;
          }
        } else if (next_medium != 0u) {
          sun_share *= 1.0 - qry_dielectric(abs(d[w.axis]), ior);
        }
      }
    }
    if (medium == 0u && !lost) {
      hit = qry_traverse(root, o, d, 0.0, 1e29, 0u);
      if (hit.t >= 0.0) material = qry_material(root, hit.brick, hit.voxel);
    }

    if (ray_kind == kLightRay) {
      if (material != 0u && hit.voxel == light_voxel && hit.face == light_face) {
        const QryMaterial m = QryPalette(root.palette).at[material];
        light += light_share * min(qry_from_srgb(unpackUnorm4x8(m.rgba).rgb) * m.emission, vec3(most)) *
                 exp(-qry_fog_until(environment, o, d, hit.t));
      }
      turns = true;
      continue;
    }
    if (ray_kind == kSunRay) {
      if (lost) sun_share = vec3(0.0);
      if (material != 0u && !lost) {
        const QryMaterial m = QryPalette(root.palette).at[material];
        if (m.transparency > 0.0) {
          // A pane: light reflected back and forth between its two faces leaves in the end.
          const vec3 n_in = qry_face_normal(hit.face);
          const float back = qry_dielectric(abs(dot(d, n_in)), in_medium ? 1.0 : qry_refraction(m));
          sun_share *= m.transparency * (1.0 - back) / (1.0 + back) *
                       qry_interface_tint(qry_from_srgb(unpackUnorm4x8(m.rgba).rgb));
          o = qry_point_on(o, d, hit.t, hit.voxel, hit.face) - n_in / 32.0;
          medium = material;
          continue;
        }
        sun_share = vec3(0.0);
      }
      if (floor_state == 1u) {
        floor_open += sun_on_floor * dot(sun_share, vec3(1.0 / 3.0));
        floor_state = 2u;
      } else {
        light += sun_share * exp(-qry_fog_until(environment, o, d, 1e6));
      }
      turns = true;
      continue;
    }
    if (lost) break;

    if (floor_state == 2u) {  // the share of the sky that the floor sees
      if (material == 0u) floor_open += sky_on_floor;
      break;
    }

    float t_end = hit.t >= 0.0 ? hit.t : 1e30;

    // Fog: the path may scatter in it before it hits anything.
    if (environment.fog_density > 0.0 && medium == 0u) {
      const float depth_all = qry_fog_until(environment, o, d, t_end);
      const float depth = -log(max(1.0 - qry_sample(index, seed, pair++).x, 1e-9));
      if (depth < depth_all) {
        if (scattered >= frame.bounces) break;
        ++scattered;
        next_o = o + min(qry_fog_reach(environment, o, d, depth), t_end) * d;
        const vec2 u = qry_sample(index, seed, pair++);
        const float s = (1.0 - kOnwards * kOnwards) / (1.0 - kOnwards + 2.0 * kOnwards * u.x),
                    cosine = (1.0 + kOnwards * kOnwards - s * s) / (2.0 * kOnwards);
        const float side = sqrt(max(0.0, 1.0 - cosine * cosine));
        next_d = normalize(qry_frame_about(d) * vec3(side * cos(2.0 * kPi * u.y), side * sin(2.0 * kPi * u.y), cosine));
        next_medium = 0u;
        if (has_sun) {
          sun_d = qry_cone_about(sun, environment.sun_radius, qry_sample(index, seed, pair++));
          sun_share = share * sun_light * kPi * qry_phase(dot(d, sun_d));
          sun_waits = true;
        }
        shading_point = QryShadingPoint(next_o, kQryNoFace);
        own_pdf = 0.0;
        if (frame.lights != 0ul) {
          own_pdf = qry_phase(dot(d, next_d));
          float density, power;
          if (qry_sample_light(frame.lights, shading_point, qry_sample(index, seed, pair++),
                               qry_sample(index, seed, pair++), light_d, density, power, light_voxel, light_face)) {
            const float onto = qry_phase(dot(d, light_d));
            light_share = share * onto / density * qry_weight(density, onto);
            light_waits =
                qry_light_worth_sampling(light_share, power * environment.exposure, qry_sample(index, seed, pair++).x);
          }
        }
        from_eye = straight = shows_disc = false;
        roughest = 0.5;
        goes_on = turns = true;
        continue;
      }
    }

    // The floor is behind everything that is hit.
    if (straight && environment.ground != 0u && d.y < -1e-5 && material == 0u) {
      const float t = (environment.ground_y - o.y) / d.y;
      if (t > 0.0) {
        floor_color = share;
        if (environment.background == kQryBackgroundSky) floor_color *= qry_backdrop(environment, d);
        next_o = o + t * d + vec3(0.0, 1.0 / 64.0, 0.0);
        next_d = qry_cosine_about(vec3(0.0, 1.0, 0.0), qry_sample(index, seed, pair++));
        next_medium = 0u;
        floor_state = 2u;
        if (sun_on_floor > 0.0) {
          floor_state = 1u;
          sun_d = qry_cone_about(sun, environment.sun_radius, qry_sample(index, seed, pair++));
          sun_share = vec3(1.0);
          sun_waits = true;
        }
        goes_on = turns = true;
        continue;
      }
    }

    if (material == 0u) {
      if (straight && environment.background != kQryBackgroundSky) {
        // For an unblocked ray it would be -2^-25 on a GPU that fuses product and sum.
        result.light.a = max(1.0 - dot(share, vec3(1.0 / 3.0)), 0.0);
      } else {
        vec3 beyond;
        if (from_eye && straight) beyond = qry_backdrop(environment, d);
        else if (shows_disc)
          beyond = qry_environment(environment, d) + (environment.sky == kQrySkyUniform
                                                          ? vec3(0.0)
                                                          : qry_sky(environment, d) - qry_sky_diffuse(environment, d));
        else if (from_eye) beyond = qry_environment(environment, d);
        else beyond = qry_environment_light(environment, d);
        light += share * (scattered > 0u ? min(beyond, vec3(most)) : beyond);
      }
      break;
    }

    const QryMaterial m = QryPalette(root.palette).at[material];
    const vec3 normal = qry_face_normal(hit.face), v = -d;
    const float cos_view = max(dot(v, normal), 1e-3);
    const QrySurface s = qry_surface(m, cos_view, roughest);
    if (result.normal.w == 0.0 && scattered == 0u) {
      result.albedo = vec4(s.albedo, hit.t);
      result.normal = vec4(normal, 1.0);
    }
    const vec3 p = qry_point_on(o, d, hit.t, hit.voxel, hit.face);
    if (m.emission > 0.0) {
      vec3 emission = s.albedo * m.emission;
      if (scattered > 0u) emission = min(emission, vec3(most));
      if (own_pdf > 0.0)
        emission *= qry_weight(own_pdf, qry_light_pdf(frame.lights, shading_point, hit.voxel, hit.face, material) *
                                            hit.t * hit.t / cos_view);
      light += share * emission;
    }
    own_pdf = 0.0;

    const vec2 choice = qry_sample(index, seed, pair++), turn = qry_sample(index, seed, pair++);
    float random = choice.x;
    if (m.transparency > 0.0) {
      const float here = medium != 0u ? qry_refraction(QryPalette(root.palette).at[medium]) : 1.0,
                  ratio = qry_refraction(m) / here;
      const vec3 facet = m.roughness > kRoughTransmission ? qry_facet(normal, v, s.alpha, turn) : normal;
      const float back = qry_dielectric(cos_view, ratio);
      if (random < back) {
        if (scattered >= frame.bounces) break;
        ++scattered;
        vec3 l = reflect(d, facet);
        if (dot(l, normal) <= 0.0) l = reflect(d, normal);
        d = l;
        o = p;
        straight = false;
        shows_disc = m.roughness <= kRoughTransmission;
        continue;
      }
      random = (random - back) / (1.0 - back);
      if (random < m.transparency) {
        vec3 l = refract(d, facet, 1.0 / ratio);
        // At such a flat angle no face would ever let it out. Only rough faces bend light this way.
        if (dot(l, normal) > -sqrt(max(1.0 - 1.0 / (ratio * ratio), 0.0))) l = refract(d, normal, 1.0 / ratio);
        share *= qry_interface_tint(s.albedo);
        d = l;
        o = p - normal / 32.0;
        medium = material;
        continue;
      }
      random = (random - m.transparency) / max(1.0 - m.transparency, 1e-4);
    }

    // An opaque surface. It samples the sun first.
    goes_on = scattered < frame.bounces;
    turns = true;
    next_o = p;
    next_medium = medium;
    const vec3 diffuse = s.albedo * (1.0 - s.metalness) * (1.0 - s.coat);
    if (has_sun) {
      sun_d = qry_cone_about(sun, environment.sun_radius, qry_sample(index, seed, pair++));
      const float facing = dot(sun_d, normal);
      if (facing > 0.0) {
        vec3 sent = diffuse * facing;
        if (s.alpha >= kReflectiveAlpha) sent += kPi * qry_reflected_light(s, normal, v, sun_d);
        sun_share = share * sent * sun_light;
        if (scattered > 0u) sun_share = min(sun_share, share * most);
        sun_waits = max(sun_share.r, max(sun_share.g, sun_share.b)) > 0.0;
      }
    }
    if (!goes_on) continue;
    ++scattered;
    // Choose between reflection and diffuse scattering by the light that each sends on.
    const float from_reflection = mix(s.coat, max(s.albedo.r, max(s.albedo.g, s.albedo.b)), s.metalness),
                from_inside = max(diffuse.r, max(diffuse.g, diffuse.b));
    const float to_reflection = from_reflection / max(from_reflection + from_inside, 1e-6);
    // Then it samples a light, as long as the path itself may still find it.
    const bool samples_light = frame.lights != 0ul && medium == 0u;
    if (samples_light) {
      shading_point = QryShadingPoint(p, hit.face);
      float density, power;
      if (qry_sample_light(frame.lights, shading_point, qry_sample(index, seed, pair++),
                           qry_sample(index, seed, pair++), light_d, density, power, light_voxel, light_face)) {
        const float facing = dot(light_d, normal);
        if (facing > 0.0) {
          vec3 sent = diffuse * (facing / kPi) * qry_weight(density, (1.0 - to_reflection) * facing / kPi);
          if (s.alpha >= kReflectiveAlpha)
            sent += qry_reflected_light(s, normal, v, light_d) *
                    qry_weight(density, to_reflection * qry_reflected_pdf(s, normal, v, light_d));
          light_share = share * sent / density;
          light_waits = qry_light_worth_sampling(light_share, power * environment.exposure, choice.y);
        }
      }
    }
    // Then it chooses the path's next direction.
    if (random < to_reflection) {
      const vec3 h = qry_facet(normal, v, s.alpha, turn);
      next_d = reflect(-v, h);
      const float nl = dot(next_d, normal);
      const vec3 metal = s.albedo + (1.0 - s.albedo) * pow(clamp(1.0 - dot(v, h), 0.0, 1.0), 5.0);
      share *=
          ((1.0 - s.metalness) * s.coat + s.metalness * metal) / to_reflection * qry_ggx_side(s.alpha, max(nl, 1e-3));
      if (nl <= 0.0) goes_on = false;
      if (samples_light && s.alpha >= kReflectiveAlpha)
        own_pdf = to_reflection * qry_reflected_pdf(s, normal, v, next_d);
      straight = false;
      shows_disc = s.alpha < kReflectiveAlpha;
    } else {
      share *= diffuse / (1.0 - to_reflection);
      next_d = qry_cosine_about(normal, turn);
      if (samples_light) own_pdf = (1.0 - to_reflection) * max(dot(next_d, normal), 1e-6) / kPi;
      from_eye = straight = shows_disc = false;
      roughest = 0.5;
    }
    // Russian roulette: faint paths may end early, and the others count for them.
    if (scattered > (samples_light ? 1u : 3u)) {
      const float stays = clamp((samples_light ? 2.0 : 1.0) * max(share.r, max(share.g, share.b)), 0.05, 1.0);
      if (choice.y >= stays) goes_on = false;
      else share /= stays;
    }
  }

  if (floor_state != 0u) {
    // Without an obstacle there is no division: GPUs may round x / x below 1, and a floor without a shadow must stay
    // clear.
    const float all = sky_on_floor + sun_on_floor,
                open = all > 0.0 && floor_open >= all ? 1.0 : clamp(floor_open / max(all, 1e-6), 0.0, 1.0);
    if (environment.background == kQryBackgroundSky) light += floor_color * open;
    else result.light.a = max(1.0 - open * dot(floor_color, vec3(1.0 / 3.0)), 0.0);
  }
  result.light.rgb = qry_is_number(light) ? light : vec3(0.0);
  return result;
}

void main() {
  const QryPathFrame frame = QryPathFrameRef(push.frame).frame;
  // Step 16k + i traces the pixel with rank i in B. E. Bayer's order, 1973, of each block of 4 x 4.
  const uint rank = push.first_step & 15u;
  const bool whole = push.steps >= 16u;
  uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
  if (!whole) {
    const uint y_bits = ((rank >> 1) & 1u) ^ (rank & 1u), y_low = ((rank >> 3) & 1u) ^ ((rank >> 2) & 1u);
    pixel = pixel * 4u + uvec2(2u * (rank & 1u) + ((rank >> 2) & 1u), 2u * y_bits + y_low);
  }
  if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
  const QryWorldRoot root = QryRootRef(frame.root).root;
  const uint at = pixel.y * frame.width + pixel.x, first = push.first_step >> 4, count = max(push.steps >> 4, 1u);
  QrySums sums = QrySums(frame.sums);
  QrySums layers = QrySums(frame.layers);
  vec4 light = first > 0u ? sums.at[at] : vec4(0.0), albedo = vec4(0.0), normal = vec4(0.0);
  if (frame.layers != 0ul && first > 0u) {
    albedo = layers.at[2u * at];
    normal = layers.at[2u * at + 1u];
  }
  for (uint i = 0u; i < count; ++i) {
    const QryPathResult path = qry_path(root, frame, pixel, first + i);
    light += path.light;
    albedo += path.albedo;
    normal += path.normal;
  }
  sums.at[at] = light;
  if (frame.layers != 0ul) {
    layers.at[2u * at] = albedo;
    layers.at[2u * at + 1u] = normal;
  }
}
