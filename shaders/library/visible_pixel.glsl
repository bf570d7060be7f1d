// SPDX-License-Identifier: Apache-2.0
// visible_pixel.glsl - how main() of a pass over the visibility buffer begins: this invocation's pixel, its place in
// the buffers and what is visible there. A part of main(), included in it, because a function could not leave it for
// invocations beyond the picture.
const QryFrame frame = given.frame;
#if defined(QRY_OF_SHADOWS)
const uvec2 pixel = qry_tile_corner(push.tile_from) +
                    (kQrySlanted ? qry_dispatch_pixel(gl_WorkGroupSize.xy) : qry_shadow_pixel(gl_WorkGroupSize.xy));
#else
const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
#endif
if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
const uint at = pixel.y * frame.width + pixel.x;
const QryVisibility visible = QryVisibilityRef(frame.visibility).at[at];
