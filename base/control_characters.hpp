// SPDX-License-Identifier: Apache-2.0
// control_characters.hpp - names for text files. A name may hold any byte, but a line end in it would start a new line
// of the file.
#pragma once

#include <algorithm>
#include <string>

namespace quarry::io {

inline bool is_control(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

// Control characters become '_'. Formats that can store any byte (JSON, length before text) escape instead.
inline std::string replace_control_characters(std::string name) {
  std::ranges::replace_if(name, is_control, '_');
  return name;
}

}  // namespace quarry::io
