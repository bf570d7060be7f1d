// SPDX-License-Identifier: Apache-2.0
// qbcl.cpp - Qubicle's project format (.qbcl, file version 2): a tree of models and compounds with matrices of voxels.
// The layout follows the community's description (T. Stock, "Qubicle's proprietary format QBCL v2.0", gist
// 7f049207a2e5a7ccb714499702b5e2fd).
//
//   "QBCL" | u32 program version | u32 2 | thumbnail: u32 width, u32 height, BGRA | seven texts (u32 length, bytes) |
//   16 B guid | one node node      u32 type (0 matrix, 1 model, 2 compound) | u32 (not known) | text name | u8 visible,
//   u8 (not known), u8 locked | by type: matrix    3 x u32 size | 3 x i32 position | 3 x f32 pivot | u32 length | zlib:
//   a column along y for each x, then z:
//             u16 words | each r, g, b, mask; mask 2: r times the next word; mask 0: empty
//   model     36 B (not known) | u32 children | nodes         compound   as a matrix, then as a model's children,
//   placed from the matrix on
// A compound's matrix shows its children merged, so both fill the same cells.
#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/grids/qb.hpp"
#include "voxel/io/streams/inflate.hpp"
#include "voxel/io/streams/volume_builder.hpp"

namespace quarry::io {
namespace {

constexpr uint64_t kMaxQbclBytes = uint64_t(1) << 36;
constexpr uint32_t kMatrix = 0, kModel = 1, kCompound = 2;
constexpr uint8_t kRun = 2;
constexpr size_t kLeastNodeBytes = 4 + 4 + 4 + 3, kModelBytes = 36, kMaxNodes = size_t(1) << 20, kMaxDepth = 512;
// The limit on the bytes of all groups' paths. Each nested group repeats its parents' names.
constexpr uint64_t kMaxNameBytes = uint64_t(64) << 20;

struct Node : QbExtent {
  std::string name, group_path;
  bool hidden = false;
  size_t data_at = 0, data_bytes = 0;
};

std::string_view read_text(ByteReader& in, const char* what) {
  const uint32_t length = in.u32("the length of a text");
  return in.text(length, what);
}

Node read_matrix(ByteReader& in) {
  Node m;
  static_cast<QbExtent&>(m) = read_qb_extent(in);
  in.skip(3 * 4, "a matrix's pivot");
  m.data_bytes = in.u32("the length of a matrix's voxels");
  m.data_at = in.at();
  in.skip(m.data_bytes, "a matrix's voxels");
  return m;
}

// An open node of the tree, which is walked without recursion, and the number of its children still to come.
struct Open {
  uint32_t children = 0;
  std::string path;
  bool hidden = false;
  std::array<int64_t, 3> origin{};  // the children's positions are relative to it
};

std::vector<Node> read_nodes(ByteReader& in) {
  std::vector<Node> matrices;
  std::vector<Open> open{{1, "", false, {}}};
  uint64_t name_bytes = 0;
  for (size_t nodes = 0; in.ok() && !open.empty();) {
    if (open.back().children == 0) {
      open.pop_back();
      continue;
    }
    --open.back().children;
    const size_t at = in.at();
    if (++nodes > kMaxNodes) in.fail_at(at, "more than " + std::to_string(kMaxNodes) + " nodes");
    const uint32_t type = in.u32("a node's type");
    if (type > kCompound)
      in.fail_at(at, "expected a node's type (0 matrix, 1 model, 2 compound), found " + std::to_string(type));
    in.skip(4, "a node's second word");
    const std::string name(read_text(in, "a node's name"));
    const bool visible = in.u8("a node's visibility") != 0;
    in.skip(2, "a node's flags");
    if (!in.ok()) break;
    const std::string parent = open.back().path;
    std::array<int64_t, 3> origin = open.back().origin;
    const bool hidden = open.back().hidden || !visible;
    name_bytes += parent.size() + name.size();
    if (name_bytes > kMaxNameBytes)
      in.fail_at(at, "the names of the groups take more than " + std::to_string(kMaxNameBytes >> 20) + " MiB");
    if (type != kModel) {
      Node matrix = read_matrix(in);
      matrix.name = name.empty() ? "matrix " + std::to_string(matrices.size()) : name;
      matrix.group_path = parent;
      matrix.hidden = hidden;
      for (int i = 0; i < 3; ++i) {
        origin[i] += matrix.position[i];
        if (origin[i] < -kQbMaxPosition || origin[i] > kQbMaxPosition)
          in.fail_at(at, "matrix '" + matrix.name + "' lies farther than " + std::to_string(kQbMaxPosition) +
                             " voxels from the origin");
        matrix.position[i] = int32_t(origin[i]);
      }
      if (in.ok()) matrices.push_back(std::move(matrix));
    } else {
      in.skip(kModelBytes, "a model's transform");
    }
    if (type == kMatrix) continue;
    const size_t count_at = in.at();
    const uint32_t children = in.u32("the number of children");
    if (children > in.left() / kLeastNodeBytes)
      in.fail_at(count_at, "a node says " + std::to_string(children) + " children, but the file has bytes for " +
                               std::to_string(in.left() / kLeastNodeBytes) + " at most");
    if (open.size() >= kMaxDepth) in.fail_at(at, "nodes are nested more than " + std::to_string(kMaxDepth) + " deep");
    std::string path = name.empty() ? parent : parent.empty() ? name : parent + "/" + name;
    open.push_back({children, std::move(path), hidden, origin});
  }
  return matrices;
}

// Calls run(x, y, z, count along y, colour) for set voxels. `run` returns false to stop. Offsets in messages count
// inflated bytes.
template <class Run>
Result<void> walk_columns(std::span<const uint8_t> inflated_bytes, const Node& m, const Run& run) {
  ByteReader in(inflated_bytes);
  const auto wrong = [&](const Error& e) {
    return fail(e.code, "the voxels of matrix '" + m.name + "', " + e.message);
  };
  for (uint32_t x = 0; x < m.size[0]; ++x)
    for (uint32_t z = 0; z < m.size[2]; ++z) {
      const uint32_t words = in.u16("the length of a column");
      uint32_t y = 0;
      for (uint32_t word = 0; word < words; ++word) {
        const size_t at = in.at();
        const uint8_t* color = in.bytes(4, "a voxel");
        uint32_t count = 1;
        if (color && color[3] == kRun) {
          count = color[0];
          if (++word >= words) in.fail_at(at, "a run without a voxel after it");
          color = in.bytes(4, "a run's voxel");
        }
        if (count > m.size[1] - y)
          in.fail_at(at, "a run of " + std::to_string(count) + " voxels, but the column has " +
                             std::to_string(m.size[1] - y) + " left");
        if (!in.ok()) return wrong(in.error());
        if (color[3] && count && !run(x, y, z, count, rgba_of(color[0], color[1], color[2]))) return {};
        y += count;
      }
      if (!in.ok()) return wrong(in.error());
    }
  return {};
}

}  // namespace

Result<Scene> parse_qbcl(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                         std::vector<std::string>* warnings) {
  ByteView all(bytes);
  return parse_qbcl(all, memory_limit_bytes, warnings, {});
}

Result<Scene> parse_qbcl(ByteView& bytes, uint64_t memory_limit_bytes, std::vector<std::string>* warnings,
                         const BrickLimits& limits) {
  ByteReader in(bytes);
  if (in.text(4, "'QBCL', the beginning of a Qubicle project") != "QBCL")
    in.fail_at(0, "expected 'QBCL', the beginning of a Qubicle project");
  in.skip(4, "the program's version");
  if (const uint32_t version = in.u32("the file's version"); in.ok() && version != 2)
    return fail(ErrorCode::unsupported,
                at_byte(8) + "expected version 2 of the project format, found " + std::to_string(version));
  const uint64_t width = in.u32("the thumbnail's width"), height = in.u32("the thumbnail's height");
  if (in.ok() && (width > (1 << 16) || height > (1 << 16) || width * height * 4 > in.left()))
    in.fail_at(12, "a thumbnail of " + std::to_string(width) + " x " + std::to_string(height) +
                       " pixels does not fit the file");
  if (in.ok()) in.skip(size_t(width * height * 4), "the thumbnail");
  constexpr const char* kTexts[] = {"title", "description", "metadata", "author", "company", "website", "copyright"};
  Scene scene;
  for (const char* key : kTexts)
    if (const std::string_view text = read_text(in, key); !text.empty())
      scene.metadata[std::string("qbcl.") + key] = std::string(text);
  in.skip(16, "the file's identifier");
  const std::vector<Node> matrices = read_nodes(in);
  QRY_TRY(in.good());
  if (matrices.empty())
    return fail(ErrorCode::malformed_input, "the project has no matrix, so there is nothing to read");
  if (in.left())
    add_warning(warnings, at_byte(in.at()) + std::to_string(in.left()) + " bytes after the last node were not read");

  // Each matrix is inflated twice (colours first), so that only one at a time is in memory.
  BrickBudget budget(bytes.size(), limits);
  ColorTable colors(limits.memory);
  uint64_t voxels = 0;
  const auto each = [&](const Node& m, const auto& run) -> Result<void> {
    if (m.data_bytes == 0) return {};
    const std::string of = "the voxels of matrix '" + m.name + "': ";
    const auto promise = MemoryBudget::promise(limits.memory, m.data_bytes, of + "reading them");
    QRY_TRY(promise);
    QRY_TRY_ASSIGN(const auto packed, bytes.look(m.data_at, m.data_at + m.data_bytes));
    const auto data = inflated(packed, memory_limit_bytes, limits.memory);
    if (!data)
      return fail(data.error().code,
                  at_byte(m.data_at) + "the voxels of matrix '" + m.name + "': " + data.error().message);
    return walk_columns(*data, m, run);
  };
  for (const Node& m : matrices) {
    const auto walked = each(m, [&](uint32_t, uint32_t, uint32_t, uint32_t count, uint32_t color) {
      colors.count(color, count);
      return budget.holds(voxels += count) && colors.good();
    });
    QRY_TRY(walked);
    QRY_TRY(colors.good());
    if (!budget.holds(voxels)) return tl::unexpected(budget.error(at_byte(m.data_at)));
  }
  scene.overlap = OverlapRule::last_instance_wins;
  colors.finish(scene, warnings);
  for (const Node& m : matrices) {
    VolumeBuilder volume(budget, scene.volumes.size());
    bool enough = true, changed = false;
    const auto walked = each(m, [&](uint32_t x, uint32_t y, uint32_t z, uint32_t count, uint32_t color) {
      const uint8_t material = colors.material(color, &changed);
      for (uint32_t i = 0; enough && i < count; ++i)
        enough = volume.set({int32_t(x), int32_t(y + i), int32_t(m.size[2] - 1 - z)}, material);
      return enough;
    });
    QRY_TRY(walked);
    if (!enough) return tl::unexpected(budget.error(at_byte(m.data_at)));
    if (changed) return fail(ErrorCode::conflict, "it was changed while it was read");
    Instance instance;
    instance.volume = uint32_t(scene.volumes.size());
    instance.name = m.name;
    instance.group_path = m.group_path;
    instance.hidden = m.hidden;
    instance.offset = {m.position[0], m.position[1], -(m.position[2] + int32_t(m.size[2]))};
    scene.instances.push_back(std::move(instance));
    scene.volumes.push_back({m.name, volume.take(), {int32_t(m.size[0]), int32_t(m.size[1]), int32_t(m.size[2])}});
  }
  return scene;
}

Result<Scene> read_qbcl(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxQbclBytes));
  ByteView window(bytes, options.progress);
  return parse_qbcl(window, options.memory_limit_bytes, options.warnings, {options.budget, nullptr});
}

Result<RegionsDone> read_qbcl_regions(const std::filesystem::path& file, const ReadOptions& options,
                                      const RegionSink& sink) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(file, kMaxQbclBytes));
  ByteView window(bytes, options.progress);
  return read_with_spilling(options, sink, [&](const BrickLimits& limits) {
    return parse_qbcl(window, options.memory_limit_bytes, options.warnings, limits);
  });
}

constinit const Format kQbclFormat{
    .name = "qbcl",
    .title = "Qubicle project",
    .kind = FormatKind::scene,
    .extensions = {"qbcl"},
    .magic = "QBCL",
    .read = read_qbcl,
    .read_regions = read_qbcl_regions,
};

}  // namespace quarry::io
