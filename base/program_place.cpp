// SPDX-License-Identifier: Apache-2.0
// program_place.cpp - searches beside the executable, beside the shared library and in the installation's folders.
#include "base/program_place.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace quarry {
namespace {
namespace fs = std::filesystem;

// The candidate paths, in search order.
std::vector<fs::path> candidates(const char* name, const char* variable) {
  if (const char* given = std::getenv(variable); given && *given) return {given};
  std::vector<fs::path> places;
  const auto beside = [&](const fs::path& other) {
    const fs::path dir = other.parent_path();
    places.push_back(dir / name);
    places.push_back(dir / "../libexec/quarry" / name);
  };
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error) beside(self);
  // For a shared library inside a foreign program: beside the library.
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_program), &info) && info.dli_fname) {
    const fs::path library = fs::weakly_canonical(info.dli_fname, error);
    if (!error && !library.empty()) {
      beside(library);
      places.push_back(library.parent_path() / "../../libexec/quarry" / name);  // lib/<triplet>/libquarry.so
      places.push_back(library.parent_path() / "../bin" / name);
    }
  }
#ifdef QRY_LIBEXEC_DIR
  places.emplace_back(fs::path(QRY_LIBEXEC_DIR) / name);
#endif
  return places;
}

}  // namespace

Result<fs::path> find_program(const char* name, const char* variable, const char* task) {
  std::string looked;
  for (const fs::path& place : candidates(name, variable)) {
    if (::access(place.c_str(), X_OK) == 0 && fs::is_regular_file(place)) return place;
    const std::string text = place.lexically_normal().string();
    if (looked.find(text) == std::string::npos) looked += (looked.empty() ? "" : ", ") + text;
  }
  return fail(ErrorCode::not_found, std::string("the program that ") + task + ", " + name + ", is not at " + looked +
                                        ". Reinstall Quarry, or set " + variable + " to its path.");
}

}  // namespace quarry
