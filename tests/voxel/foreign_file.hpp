// SPDX-License-Identifier: Apache-2.0
// foreign_file.hpp - what every reader of foreign bytes must stand: files cut after any byte, and thousands of seeded
// mutations. The seeds are the same that the fuzzers begin with (<format>_seeds.hpp).
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "tests/file_bytes.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::test {

using Bytes = std::vector<uint8_t>;
using Parse = std::function<Result<Scene>(const Bytes&, std::vector<std::string>*)>;

// What came through of a damaged file.
struct Saved {
  Scene scene;
  io::Salvage salvage;
  std::vector<std::string> warnings;
  uint64_t lost(const std::string& kind) const {
    for (const io::SalvageLoss& l : salvage.losses())
      if (l.kind == kind) return l.count;
    return 0;
  }
};

inline uint64_t voxels_of(const Scene& scene) {
  uint64_t total = 0;
  for (const Volume& v : scene.volumes) total += v.bricks.voxel_count();
  return total;
}

// Whatever comes out must hold together; what it is does not matter.
inline void check_sane(const Result<Scene>& scene) {
  if (!scene) {
    REQUIRE((scene.error().code == ErrorCode::malformed_input || scene.error().code == ErrorCode::unsupported));
    REQUIRE(!scene.error().message.empty());
    return;
  }
  for (const Instance& i : scene->instances) {
    REQUIRE(i.volume < scene->volumes.size());
    REQUIRE(i.layer < int64_t(scene->layers.size()));
  }
  for (const Volume& v : scene->volumes)
    for (const auto& [at, brick] : v.bricks.bricks()) REQUIRE_FALSE(brick.empty());
}

inline void check_refused(const Result<Scene>& scene, const std::string& begin, const std::string& part) {
  REQUIRE_FALSE(scene);
  CHECK_THAT(scene.error().message, Catch::StartsWith(begin));
  CHECK_THAT(scene.error().message, Catch::Contains(part));
}

// The files of <format>_seeds.hpp without their names.
inline std::vector<Bytes> contents(const std::vector<std::pair<std::string, Bytes>>& seeds) {
  std::vector<Bytes> all;
  for (const auto& [name, bytes] : seeds) all.push_back(bytes);
  return all;
}

// Every cut is an error that begins with `begin`, tried at up to `most` places spread over the file.
inline void check_cuts(const Bytes& whole, const Parse& parse, const std::string& begin = "byte ",
                       size_t most = 20000) {
  REQUIRE(parse(whole, nullptr));
  const size_t step = std::max<size_t>(1, whole.size() / most);
  for (size_t n = 0; n < whole.size(); n += step) {
    const Bytes cut(whole.begin(), whole.begin() + int64_t(n));  // an allocation of its own: sanitizers see its end
    const auto scene = parse(cut, nullptr);
    if (scene || scene.error().message.rfind(begin, 0) != 0)
      FAIL("cut after byte " << n << ": " << (scene ? "read" : scene.error().message));
  }
}

// Some of the mutated files are read and some are not: `least` of each.
inline void check_mutations(const std::vector<Bytes>& seeds, const Parse& parse, int rounds, int least = 100) {
  std::mt19937 random(20240611);
  constexpr uint32_t kNasty[] = {0,          1,          2,          0x7f,    0x80,       0xff,      0x100,
                                 0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 0x40000000, 0xfffffffe};
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = seeds[random() % seeds.size()];
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = uint8_t(random()); break;
        case 1: bytes[at] ^= uint8_t(1u << random() % 8); break;
        case 2:
          if (at + 4 <= bytes.size()) std::memcpy(&bytes[at], &kNasty[random() % std::size(kNasty)], 4);
          break;
        default: {
          const size_t from = random() % bytes.size(),
                       count = std::min<size_t>(random() % 64, bytes.size() - std::max(at, from));
          std::memmove(&bytes[at], &bytes[from], count);
        }
      }
    }
    std::vector<std::string> warnings;
    const auto scene = parse(bytes, &warnings);
    check_sane(scene);
    REQUIRE(warnings.size() <= 51);
    good += scene.has_value();
  }
  CHECK(good > least);
  CHECK(good < rounds - 100);
}

}  // namespace quarry::test
