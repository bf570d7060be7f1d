#version 460
// SPDX-License-Identifier: Apache-2.0
// debug_views.comp.glsl - visibility -> the debug views: what each pixel shows, as a colour. It is separate from
// shade.comp.glsl, so that pictures need not wait until a driver has compiled code that they do not use. It runs once
// for each sub-pixel sample. The last run writes the picture.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/resolve.glsl"
#include "shaders/library/ramp.glsl"

// engine::DebugView
const uint kAlbedo = 1u, kNormals = 2u, kDepth = 3u, kBricks = 4u, kProbeDepth = 5u, kSteps = 6u, kMaterial = 7u,
           kLoad = 8u;

// The darkness of a brick's border on its face. Lines are a quarter of a voxel wide. There are none if that is far
// below a pixel.
float border(vec3 p, uint axis, float pixel_size) {
  const uint u = (axis + 1u) % 3u, v = (axis + 2u) % 3u;
  const float edge = min(abs(p[u] - 8.0 * round(p[u] / 8.0)), abs(p[v] - 8.0 * round(p[v] / 8.0)));
  return edge < 0.25 ? clamp(2.0 - pixel_size, 0.0, 1.0) : 0.0;
}

void main() {
#include "shaders/library/visible_pixel.glsl"
  const QryWorldRoot root = push.root;
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, push.sample_index);
  const float pixel_angle = pixel_angle_of(frame);
  const uint face = visible_face(visible), material = visible_material(visible);
  const ivec3 voxel = visible_voxel(visible);
  vec3 color = vec3(0.012);  // linear, 0..1
  if (visible_hit(visible) && frame.view == kAlbedo) {
    color = qry_from_srgb(unpackUnorm4x8(QryPalette(root.palette).at[material].rgba).rgb);
  } else if (visible_hit(visible) && frame.view == kNormals) {
    color = qry_from_srgb(0.5 + 0.5 * qry_face_normal(face));
  } else if (visible_hit(visible) && frame.view == kDepth) {
    const vec3 size = vec3(root.box_high[0] - root.box_low[0], root.box_high[1] - root.box_low[1],
                           root.box_high[2] - root.box_low[2]) -
                      2.0 * float(kQryBoxMargin);
    color = vec3(exp(-1.6 * visible.t / max(length(size), 1.0)));
  } else if (visible_hit(visible) || frame.view == kSteps) {
    // Numbers and labels. The picture keeps some shape, and with light (ambient.comp.glsl) corners are darker. Borders
    // of bricks are drawn.
    float shape = 1.0, lines = 0.0;
    if (visible_hit(visible)) {
      shape = 0.72 + 0.28 * abs(dot(qry_face_normal(face), normalize(vec3(0.35, 0.84, 0.42))));
      if (frame.light != 0ul) shape *= 0.22 + 0.78 * ambient_about(frame, pixel, visible, pixel_angle).r;
      lines = border(o + visible.t * d, face >> 1, visible.t * pixel_angle);
    }
    float number = float(visible.cost & 0xFFFFu) / 64.0;  // steps
    if (frame.view == kLoad)
      number = float(QryUints(frame.page_loads).at[qry_grid_page(root.grid_pages, qry_key_of(voxel))]) /
               float(kQrySlotsPerPage);
    if (frame.view == kBricks) color = qry_label_color(qry_key_of(voxel)) * (1.0 - 0.65 * lines);
    else if (frame.view == kMaterial) color = qry_label_color(material);
    else if (frame.view == kProbeDepth) color = qry_depth_color(visible.cost >> 16) * (1.0 - 0.25 * lines);
    else color = qry_ramp(number) * (frame.view == kLoad ? 1.0 - 0.25 * lines : 1.0);
    color = qry_from_srgb(color) * shape;
  }
  add_sample(frame, pixel, at, visible, o, d, color, 1.0);
}
