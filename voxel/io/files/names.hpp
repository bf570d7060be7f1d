// SPDX-License-Identifier: Apache-2.0
// names.hpp - what the names of files say: which folder they are in, which extension they have, what lies beside them.
#pragma once

#include <filesystem>
#include <string>

namespace quarry::io {

// The folder in which a name is; "." of a name alone.
std::filesystem::path folder_of(const std::filesystem::path& file);

// In lower case, without the dot; "" if there is none.
std::string extension_of(const std::filesystem::path& file);

// What is written beside `file` and belongs to it: the materials of an .obj, the header of a .raw. Empty: nothing.
std::filesystem::path sidecar_of(const std::filesystem::path& file);

}  // namespace quarry::io
