// SPDX-License-Identifier: Apache-2.0
// visible_pixel.glsl - the start of main() in a pass over the visibility buffer: this invocation's pixel, its index in
// the buffers and what is visible there. It is included in main(), because a function could not return from main() for
// invocations beyond the picture.
const QryFrame frame = given.frame;
#if defined(QRY_OF_SHADOWS)
const uvec2 pixel = qry_tile_corner(push.tile_from) +
                    (kQryStrided ? qry_dispatch_pixel(gl_WorkGroupSize.xy) : qry_shadow_pixel(gl_WorkGroupSize.xy));
#else
const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
#endif
if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
const uint at = pixel.y * frame.width + pixel.x;
const QryVisibility visible = QryVisibilityRef(frame.visibility).at[at];
