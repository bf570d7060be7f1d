// SPDX-License-Identifier: Apache-2.0
// names.hpp - derives a file's folder, extension and sidecar from its name.
#pragma once

#include <filesystem>
#include <string>

namespace quarry::io {

// The folder of a name; "." for a name alone.
std::filesystem::path folder_of(const std::filesystem::path& file);

// The extension in lower case, without the dot; "" if there is none.
std::string extension_of(const std::filesystem::path& file);

// The second file that is written with `file` and belongs to it: the materials of an .obj, the header of a .raw. Empty
// if there is none.
std::filesystem::path sidecar_of(const std::filesystem::path& file);

}  // namespace quarry::io
