#version 460
// path.comp.glsl - the path tracer: for every pixel, light followed backwards from the eye, as often as it is asked for. Adds up; what is
// shown of the sums is path_resolve.comp.glsl's business.
//
// At each surface the sun is asked for by a ray of its own (next-event estimation); sky and glowing voxels are found by the scattered ray
// itself. One loop traces both kinds in turn, so that the traversal stands in the code once. Glass lets light go straight on, tinted by the
// way inside and dimmed by Fresnel's reflection; so the sun's rays pass it too, and no caustics need be found by chance. Fog scatters.
// The numbers a path is made of depend on its pixel, its index and the seed alone, and sums are taken in the paths' order: the same input
// gives the same bits on one driver, however the work is cut into submissions.
#extension GL_GOOGLE_include_directive : require

#include "shaders/traverse.glsl"
#include "shaders/path.h"
#include "shaders/look.glsl"
#include "shaders/sampling.glsl"
#include "shaders/material.glsl"

layout(local_size_x = 8, local_size_y = 4) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryPathFrameRef { QryPathFrame frame; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QrySums { vec4 at[]; };
layout(push_constant, scalar) uniform QryPush { QryPathPush push; };

const uint kGlassSteps = 1024u;   // voxels that one pane is followed through
const float kMirrorAlpha = 0.02;  // surfaces smoother than this show the sun's disc instead of asking for its light

struct QryPathResult {
  vec4 light;   // radiance, coverage
  vec4 albedo;  // of what is seen first; its distance
  vec4 normal;  // 1 in w: something was hit
};

// From the point p inside biased voxel v of material `same` straight on along d: distance to where another material begins, that voxel, the
// face it is entered by and its brick (kQryReservedValue: air).
float qry_leave_glass(const QryWorldRoot root, inout ivec3 v, vec3 p, vec3 d, uint same, out uint face, inout uint brick, out uint material) {
  const ivec3 way = ivec3(mix(vec3(-1.0), vec3(1.0), greaterThanEqual(d, vec3(0.0))));
  const vec3 inv = 1.0 / max(abs(d), vec3(1e-12));
  const vec3 local = p - vec3(v - kVoxelBias);
  vec3 next = mix(local, 1.0 - local, greaterThanEqual(d, vec3(0.0))) * inv;
  uint key = qry_key_of(v);
  float t = 0.0;
  face = 0u;
  material = same;
  for (uint n = 0u; n < kGlassSteps && material == same; ++n) {
    const uint axis = next.x <= next.y && next.x <= next.z ? 0u : (next.y <= next.z ? 1u : 2u);
    t = next[axis];
    next[axis] += inv[axis];
    v[axis] += way[axis];
    face = 2u * axis + (way[axis] > 0 ? 0u : 1u);
    if (any(lessThan(v, ivec3(0))) || any(greaterThanEqual(v, kVoxelExtent))) {
      brick = kQryReservedValue;
    } else if (qry_key_of(v) != key) {
      key = qry_key_of(v);
      uint sectors;
      brick = qry_find_brick(root, key, sectors);
    }
    material = brick == kQryReservedValue ? 0u : qry_material(root, brick, v);
  }
  return t;
}

vec3 qry_glass_tint(vec3 albedo, float way) { return pow(max(albedo, vec3(0.01)), vec3(0.1 + 0.06 * way)); }

bool qry_is_number(vec3 c) { return !any(isnan(c)) && !any(isinf(c)); }

QryPathResult qry_path(const QryWorldRoot root, const QryPathFrame frame, uvec2 pixel, uint index) {
  const QryLook look = frame.look;
  const vec3 sun = qry_array3(look.sun_direction), sun_light = qry_sun_light(look);
  const bool has_sun = max(sun_light.r, max(sun_light.g, sun_light.b)) > 0.0;
  const uint seed = qry_combined(qry_combined(frame.seed, pixel.x), pixel.y);
  uint pair = 0u;  // of numbers, used so far

  // Through the pixel, spread by a tent filter, and through the lens.
  const vec2 at = vec2(pixel) + 0.5 + qry_tent(qry_sample(index, seed, pair++));
  const vec2 screen = vec2(fma(2.0 / float(frame.width), at.x, -1.0), fma(-2.0 / float(frame.height), at.y, 1.0));
  const vec3 right = qry_array3(frame.right), up = qry_array3(frame.up);
  const vec3 through = qry_array3(frame.forward) + screen.x * right + screen.y * up;
  vec3 o = qry_array3(frame.origin), d = normalize(through);
  if (look.lens_radius > 0.0) {
    const vec2 lens = look.lens_radius * qry_disc(qry_sample(index, seed, pair++));
    const vec3 off = lens.x * normalize(right) + lens.y * normalize(up);
    d = normalize(through * look.focus - off);
    o += off;
  }

  QryPathResult result;
  result.light = vec4(0.0, 0.0, 0.0, 1.0);
  result.albedo = vec4(0.0);
  result.normal = vec4(0.0);
  vec3 light = vec3(0.0), share = vec3(1.0);
  bool from_eye = true;        // only mirrors and glass so far: what is met is seen, not light on something
  bool straight = true;        // not even a mirror so far
  bool shows_disc = true;      // the sun's disc counts where the ray gets away
  float roughest = 0.0;        // after a diffuse bounce mirrors are taken as rougher: sharp caustics are not worth their noise
  uint scattered = 0u;

  // A ray for the sun waits for its turn before the path goes on from next_o along next_d.
  bool to_sun = false, goes_on = true;
  vec3 sun_share = vec3(0.0), next_o = o, next_d = d;
  // The floor that catches shadows: 0 not met, 1 its sun ray is under way, 2 its sky ray.
  uint floor_state = 0u;
  float floor_open = 0.0;
  vec3 floor_color = vec3(0.0);
  const float sky_on_floor = dot(qry_surrounding_light(look, normalize(vec3(0.3, 0.9, 0.3))), vec3(0.3, 0.5, 0.2));
  const float sun_on_floor = has_sun ? max(sun.y, 0.0) * dot(sun_light, vec3(0.3, 0.5, 0.2)) : 0.0;

  const uint most_rays = 4u * frame.bounces + 24u;
  for (uint n = 0u; n < most_rays; ++n) {
    QryHit hit = qry_traverse(root, o, d, 0.0, 1e29, 0u);
    uint material = hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u;

    if (to_sun) {
      if (material != 0u) {
        const QryMaterial m = QryPalette(root.palette).at[material];
        if (m.transparency > 0.0) {
          const vec3 n_in = qry_face_normal(hit.face), p = qry_point_on(o, d, hit.t, hit.voxel, hit.face) - n_in / 32.0;
          ivec3 v = hit.voxel;
          uint face, brick = hit.brick, next_material;
          const float way = qry_leave_glass(root, v, p, d, material, face, brick, next_material);
          const float mirrored = qry_fresnel(pow((m.ior - 1.0) / (m.ior + 1.0), 2.0), abs(dot(d, n_in)));
          sun_share *= m.transparency * (1.0 - mirrored) * qry_glass_tint(qry_from_srgb(unpackUnorm4x8(m.rgba).rgb), way);
          if (next_material == 0u) {
            o = p + (way + 1.0 / 64.0) * d;
            continue;
          }
        }
        sun_share = vec3(0.0);
      }
      if (floor_state == 1u) {
        floor_open += sun_on_floor * dot(sun_share, vec3(1.0 / 3.0));
        floor_state = 2u;
      } else {
        light += sun_share * exp(-qry_fog_until(look, o, d, 1e6));
      }
      to_sun = false;
      if (!goes_on) break;
      o = next_o;
      d = next_d;
      continue;
    }

    if (floor_state == 2u) {  // how much of the sky the floor sees
      if (material == 0u) floor_open += sky_on_floor;
      break;
    }

    float t_end = hit.t >= 0.0 ? hit.t : 1e30;

    // Fog: does the path scatter in it before it gets anywhere?
    if (look.fog_density > 0.0) {
      const float depth_all = qry_fog_until(look, o, d, t_end);
      const float depth = -log(max(1.0 - qry_sample(index, seed, pair++).x, 1e-9));
      if (depth < depth_all) {
        if (scattered >= frame.bounces) break;
        ++scattered;
        const vec3 p = o + min(qry_fog_reach(look, o, d, depth), t_end) * d;
        const vec2 u = qry_sample(index, seed, pair++);
        // L. G. Henyey and J. L. Greenstein, 1941: mostly onwards.
        const float g = 0.45, s = (1.0 - g * g) / (1.0 - g + 2.0 * g * u.x), cosine = (1.0 + g * g - s * s) / (2.0 * g);
        const float side = sqrt(max(0.0, 1.0 - cosine * cosine));
        next_d = normalize(qry_frame_about(d) * vec3(side * cos(2.0 * kPi * u.y), side * sin(2.0 * kPi * u.y), cosine));
        next_o = p;
        if (has_sun) {
          const vec3 l = qry_cone_about(sun, look.sun_radius, qry_sample(index, seed, pair++));
          const float c = dot(d, l), around = (1.0 - g * g) / (4.0 * pow(max(1.0 + g * g - 2.0 * g * c, 1e-4), 1.5));  // phase * pi
          sun_share = share * sun_light * around;
          to_sun = true;
          goes_on = true;
          o = p;
          d = l;
        } else {
          o = next_o;
          d = next_d;
        }
        from_eye = straight = shows_disc = false;
        roughest = 0.5;
        continue;
      }
    }

    // The floor lies behind everything that is hit.
    if (straight && look.ground != 0u && d.y < -1e-5 && material == 0u) {
      const float t = (look.ground_y - o.y) / d.y;
      if (t > 0.0) {
        floor_color = share;
        next_o = o + t * d + vec3(0.0, 1.0 / 64.0, 0.0);
        next_d = qry_cosine_about(vec3(0.0, 1.0, 0.0), qry_sample(index, seed, pair++));
        if (look.background == kQryBackgroundSky) floor_color *= qry_backdrop(look, d);
        o = next_o;
        d = next_d;
        floor_state = 2u;
        if (sun_on_floor > 0.0) {
          floor_state = 1u;
          d = qry_cone_about(sun, look.sun_radius, qry_sample(index, seed, pair++));
          sun_share = vec3(1.0);
          to_sun = true;
          goes_on = true;
        }
        continue;
      }
    }

    if (material == 0u) {
      if (straight && look.background != kQryBackgroundSky) {
        result.light.a = 1.0 - dot(share, vec3(1.0 / 3.0));
      } else {
        vec3 beyond;
        if (from_eye && straight) beyond = qry_backdrop(look, d);
        else if (shows_disc) beyond = qry_surroundings(look, d) + (look.sky == kQrySkyUniform ? vec3(0.0) : qry_sky(d, sun) - qry_sky_diffuse(d, sun));
        else if (from_eye) beyond = qry_surroundings(look, d);
        else beyond = qry_surrounding_light(look, d);
        if (frame.clamp > 0.0 && scattered > 0u) beyond = min(beyond, vec3(frame.clamp));
        light += share * beyond;
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
    vec3 glow = s.albedo * m.emission;
    if (frame.clamp > 0.0 && scattered > 0u) glow = min(glow, vec3(frame.clamp));
    light += share * glow;

    const vec2 choice = qry_sample(index, seed, pair++), turn = qry_sample(index, seed, pair++);
    const float mirrored_by_glass = qry_fresnel(pow((m.ior - 1.0) / (m.ior + 1.0), 2.0), cos_view);
    float chance = choice.x;
    if (m.transparency > 0.0) {
      if (chance >= mirrored_by_glass) {
        chance = (chance - mirrored_by_glass) / (1.0 - mirrored_by_glass);
        if (chance < m.transparency) {
          const vec3 inside = p - normal / 32.0;
          ivec3 voxel = hit.voxel;
          uint face, brick = hit.brick, next_material;
          const vec3 onwards = m.roughness > 0.05 ? qry_cone_about(d, m.roughness * m.roughness, turn) : d;
          const float way = qry_leave_glass(root, voxel, inside, onwards, material, face, brick, next_material);
          share *= qry_glass_tint(s.albedo, way);
          // Just short of the next surface, or just outside.
          o = inside + (next_material == 0u ? way + 1.0 / 64.0 : way) * onwards;
          d = onwards;
          if (next_material != 0u) o[face >> 1] = vec3(voxel - kVoxelBias)[face >> 1] + ((face & 1u) != 0u ? 1.0 : 0.0) + ((face & 1u) != 0u ? -1.0 : 1.0) / 512.0;
          continue;
        }
        chance = (chance - m.transparency) / max(1.0 - m.transparency, 1e-4);
      } else {
        if (scattered >= frame.bounces) break;
        ++scattered;
        d = reflect(d, m.roughness > 0.05 ? qry_facet(normal, v, s.alpha, turn) : normal);
        if (dot(d, normal) <= 0.0) break;
        o = p;
        straight = false;
        shows_disc = m.roughness <= 0.05;
        continue;
      }
    }

    // Opaque. The sun first.
    goes_on = scattered < frame.bounces;
    const vec3 diffuse = s.albedo * (1.0 - s.metalness) * (1.0 - s.coat);
    to_sun = false;
    if (has_sun) {
      const vec3 l = qry_cone_about(sun, look.sun_radius, qry_sample(index, seed, pair++));
      const float facing = dot(l, normal);
      if (facing > 0.0) {
        vec3 sent = diffuse * facing;
        if (s.alpha >= kMirrorAlpha) sent += kPi * qry_mirrored_light(s, normal, v, l);
        sun_share = share * sent * sun_light;
        if (frame.clamp > 0.0 && scattered > 0u) sun_share = min(sun_share, share * frame.clamp);
        to_sun = max(sun_share.r, max(sun_share.g, sun_share.b)) > 0.0;
        next_o = p;
        o = p;
        if (to_sun) d = l;
      }
    }
    // Then where the path goes on to.
    if (goes_on) {
      ++scattered;
      const float to_mirror = mix(s.coat, 1.0, s.metalness);
      if (chance < to_mirror) {
        const vec3 h = qry_facet(normal, v, s.alpha, turn);
        const vec3 l = reflect(-v, h);
        const float nl = dot(l, normal);
        const vec3 metal = s.albedo + (1.0 - s.albedo) * pow(clamp(1.0 - dot(v, h), 0.0, 1.0), 5.0);
        share *= ((1.0 - s.metalness) * s.coat + s.metalness * metal) / to_mirror * qry_ggx_side(s.alpha, max(nl, 1e-3));
        if (nl <= 0.0) goes_on = false;
        next_d = l;
        straight = false;
        shows_disc = s.alpha < kMirrorAlpha;
      } else {
        share *= s.albedo;
        next_d = qry_cosine_about(normal, turn);
        from_eye = straight = shows_disc = false;
        roughest = 0.5;
      }
      // Russian roulette: faint paths end early, the rest stand for them.
      if (scattered > 3u) {
        const float stays = clamp(max(share.r, max(share.g, share.b)), 0.05, 1.0);
        if (choice.y >= stays) goes_on = false;
        else share /= stays;
      }
      next_o = p;
    }
    if (to_sun) continue;
    if (!goes_on) break;
    o = next_o;
    d = next_d;
  }

  if (floor_state != 0u) {
    const float open = clamp(floor_open / max(sky_on_floor + sun_on_floor, 1e-6), 0.0, 1.0);
    if (look.background == kQryBackgroundSky) light += floor_color * open;
    else result.light.a = 1.0 - open * dot(floor_color, vec3(1.0 / 3.0));
  }
  result.light.rgb = qry_is_number(light) ? light : vec3(0.0);
  return result;
}

void main() {
  const QryPathFrame frame = QryPathFrameRef(push.frame).frame;
  // Step 16k + i: the pixel of each block of 4 x 4 that has rank i in B. E. Bayer's order, 1973.
  const uint rank = push.first_step & 15u;
  const bool whole = push.steps >= 16u;
  uvec2 pixel = gl_GlobalInvocationID.xy;
  if (!whole) {
    const uint y_bits = ((rank >> 1) & 1u) ^ (rank & 1u), y_low = ((rank >> 3) & 1u) ^ ((rank >> 2) & 1u);
    pixel = pixel * 4u + uvec2(2u * (rank & 1u) + ((rank >> 2) & 1u), 2u * y_bits + y_low);
  }
  if (pixel.x >= frame.width || pixel.y >= frame.height) return;
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
