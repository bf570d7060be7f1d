// SPDX-License-Identifier: Apache-2.0
// qb.hpp - Qubicle binary (.qb): named matrices of coloured voxels with positions, plain or in runs; and its project
// format (.qbcl), a tree of such matrices. The rules for matrices hold for both. A project is left-handed.
// Axes: y is up in the file. A right-handed file's cells are kept, a left-handed one's z is mirrored (z becomes
// -1 - z). Each matrix is a volume that fills [0, size) and one instance at its position. Where matrices overlap, the
// later one is visible.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class ByteReader;

constexpr uint32_t kQbMaxEdge = 16384;       // of a matrix: the world's longest
constexpr int32_t kQbMaxPosition = 1 << 24;  // in both directions

// The fields before a matrix's cells in both formats.
struct QbExtent {
  std::array<uint32_t, 3> size{};
  std::array<int32_t, 3> position{};
};
// A size or position past the limits above fails `in`.
QbExtent read_qb_extent(ByteReader& in);

// Errors: malformed_input with the byte offset and what was expected; unsupported past a limit above or BrickBudget's.
// Memory: at most 640 MiB + 60 times the bytes given.
Result<Scene> parse_qb(std::span<const uint8_t> bytes, std::vector<std::string>* warnings = nullptr);
Result<Scene> parse_qb(ByteView& file, std::vector<std::string>* warnings, const BrickLimits& limits);
Result<Scene> read_qb(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_qb_regions(const std::filesystem::path& file, const ReadOptions& options,
                                    const RegionSink& sink);
// The same for a project, with the same errors. Groups become paths, and hidden nodes become hidden instances.
// `memory_limit_bytes` limits an inflated matrix.
Result<Scene> parse_qbcl(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                         std::vector<std::string>* warnings = nullptr);
Result<Scene> parse_qbcl(ByteView& file, uint64_t memory_limit_bytes, std::vector<std::string>* warnings,
                         const BrickLimits& limits);
Result<Scene> read_qbcl(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_qbcl_regions(const std::filesystem::path& file, const ReadOptions& options,
                                      const RegionSink& sink);
// .qb has no magic number, but its first six fields are small numbers with which no other known format begins.
bool looks_like_qb(std::span<const uint8_t> head);

// The rows of the table of formats.
extern const Format kQbFormat, kQbclFormat;

}  // namespace quarry::io
