// SPDX-License-Identifier: Apache-2.0
// environment.h - light, air, lens and background of a picture: one text for C++ (engine/render/frame_settings.cpp) and
// GLSL (environment.glsl). Ray-marched and path-traced pictures use the same.
#ifndef QRY_ENVIRONMENT_H
#define QRY_ENVIRONMENT_H

#include "shaders/shared/world_root.h"

struct QryEnvironment {
  QRY_F32 sun_direction[3];  // unit, towards the sun
  QRY_F32 sun_strength;
  QRY_F32 sun_radius;  // of its disc, in radians
  QRY_F32 sky_strength;
  QRY_U32 sky;                  // kQrySkyDay...
  QRY_F32 sky_color[3];         // linear; of kQrySkyUniform
  QRY_U32 background;           // kQryBackgroundSky...
  QRY_F32 background_color[3];  // display-linear; shown unchanged at every exposure
  QRY_U32 ground;               // 1: an unseen floor at ground_y catches shadows
  QRY_F32 ground_y;
  QRY_F32 fog_density;  // at fog_base, per voxel; 0: no fog
  QRY_F32 fog_height;   // voxels over which the fog thins out to 1/e
  QRY_F32 fog_base;     // no fog below
  QRY_F32 exposure;
  QRY_U32 tone;         // kQryToneFilmic...
  QRY_F32 lens_radius;  // voxels; 0: everything is sharp
  QRY_F32 focus;        // sharp distance along the view's direction
  // The part of the sky that depends on the sun's height, the same for every pixel (engine/render/frame_settings.cpp).
  QRY_F32 sun_color[3];
  QRY_F32 day;      // 0 night .. 1 day
  QRY_F32 evening;  // how red the horizon towards the sun is
  QRY_F32 zenith[3];
  QRY_F32 horizon[3];  // away from the evening's red
  QRY_F32 red[3];
};

QRY_CONST kQrySkyDay = 0u;
QRY_CONST kQrySkyUniform = 1u;
QRY_CONST kQryBackgroundSky = 0u;
QRY_CONST kQryBackgroundColor = 1u;
QRY_CONST kQryBackgroundNone = 2u;
QRY_CONST kQryToneFilmic = 0u;
QRY_CONST kQryToneLinear = 1u;

#endif
