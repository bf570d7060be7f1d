#version 460
// SPDX-License-Identifier: Apache-2.0
// march.comp.glsl - primary rays: camera -> visibility buffer. They start where beams.comp.glsl says. There is no
// shading; shade.comp.glsl reads the result.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/shared/frame.h"
#include "shaders/library/frame_access.glsl"

layout(local_size_x = 8, local_size_y = 16) in;  // a warp of 32 is 8 x 4 pixels: coherent in both directions

void main() {
  const QryFrame frame = given.frame;
  const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
  if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
  const QryWorldRoot root = push.root;
  const vec3 ray = qry_pixel_ray(frame, pixel, push.sample_index);
  float t_min = 0.0;
  if (frame.beams != 0ul) {
    const uvec2 tile = pixel / uvec2(kQryBeamTileWide, kQryBeamTileHigh);
    t_min = QryBeamRef(frame.beams).at[tile.y * ((frame.width + kQryBeamTileWide - 1u) / kQryBeamTileWide) + tile.x] *
            length(ray);
  }
  const QryHit hit = qry_traverse(root, qry_vec3(frame.origin), normalize(ray), t_min, 1e29, 0u);
  QryVisibilityRef(frame.visibility).at[pixel.y * frame.width + pixel.x] =
      qry_visibility(hit, hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u);
}
