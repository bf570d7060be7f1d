// SPDX-License-Identifier: Apache-2.0
// vdb_process.hpp - what reading and writing volumes share: the program that does it, and the palette as text.
#pragma once

#include <string>

#include "voxel/foreign/process.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry::io {

inline constexpr ReaderProgram kVdbProgram{
    "quarry-vdb",         "QUARRY_VDB", "the volume reader", "reads and writes volumes",
    "the volume library", "volume",     uint64_t(61) << 20};

// In a form from which the same number is read.
std::string number_text(double v);

// All materials as text, because other programs keep metadata but no palettes. Each has one line: number, r g b a, and
// its other properties.
std::string materials_text(const Palette& palette);

}  // namespace quarry::io
