// SPDX-License-Identifier: Apache-2.0
// write.cpp - splits volumes into models of 256^3, plans the tree of nodes from group paths, and writes chunk by chunk.
#include "voxel/io/vox/write.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/vox/read.hpp"
#include "voxel/io/vox/write_dicts.hpp"

namespace quarry::io {
namespace {

using vox::NumberedDict;
using vox::OwnedDict;
using Long3 = std::array<int64_t, 3>;

constexpr int64_t kMaxTranslation = 1 << 24;         // the reader's limit
constexpr Rotation kUpright{{0, 2, 1}, {1, 1, -1}};  // world axes from the file's, as in vox/graph.cpp
constexpr int32_t kEdgeBricks = kVoxModelEdge / kBrickEdge;

Long3 wide(Int3 v) { return {v.x, v.y, v.z}; }
Long3 sum(const Long3& a, const Long3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Long3 turned(const Rotation& r, const Long3& v) {
  return {r.sign[0] * v[r.axis[0]], r.sign[1] * v[r.axis[1]], r.sign[2] * v[r.axis[2]]};
}
std::string int_text(int64_t v) { return std::to_string(v); }

// A model of the file: the cells [origin, origin + size) of a volume.
struct Piece {
  uint32_t volume = 0;
  Long3 origin{};
  Int3 size{1, 1, 1};
  uint64_t voxels = 0;
  Box3 bricks;  // which it has of the volume's
};

// The volumes' bricks: in memory, or in a world file.
struct VolumeBricks {
  struct Facts {
    uint64_t voxels = 0;
    Box3 bounds;
  };
  std::vector<Facts> volumes;
  using Take = std::function<void(const std::vector<BrickPut>& bricks)>;
  // Shows those in a box, rising, some at a time.
  std::function<Result<void>(uint32_t volume, const Box3& bricks, const Take& take)> visit;
};

// Returns the whole volume if it fits a model, with its declared size if that holds its voxels. Otherwise there is a
// piece for each 256^3 cells that have voxels.
Result<std::vector<Piece>> pieces_of(const Volume& v, uint32_t volume, const VolumeBricks& bricks) {
  const auto declared_fits = [&] {
    for (const int32_t edge : {v.size.x, v.size.y, v.size.z})
      if (edge < 0 || edge > kVoxModelEdge) return false;
    return v.size != Int3{};
  };
  const auto& [voxels, bounds] = bricks.volumes[volume];
  std::vector<Piece> out;
  if (bounds.empty()) {
    const auto edge = [](int32_t e) { return std::clamp(e, 1, kVoxModelEdge); };
    out.push_back({volume, {}, declared_fits() ? v.size : Int3{edge(v.size.x), edge(v.size.y), edge(v.size.z)}, 0, {}});
    return out;
  }
  const Long3 low = wide(bounds.min), high = wide(bounds.max);
  const Box3 all{brick_of(bounds.min), brick_of(bounds.max)};
  const bool inside =
      low[0] >= 0 && low[1] >= 0 && low[2] >= 0 && high[0] < v.size.x && high[1] < v.size.y && high[2] < v.size.z;
  const bool one =
      high[0] - low[0] < kVoxModelEdge && high[1] - low[1] < kVoxModelEdge && high[2] - low[2] < kVoxModelEdge;
  if ((declared_fits() && inside) || one) {
    Piece p{volume, {}, v.size, voxels, all};
    if (!(declared_fits() && inside)) {
      p.origin = low;
      p.size = {int32_t(high[0] - low[0] + 1), int32_t(high[1] - low[1] + 1), int32_t(high[2] - low[2] + 1)};
    }
    out.push_back(p);
    return out;
  }
  // Volumes are cut at whole bricks, counted from the first one, so that a brick is in one piece.
  struct Tile {
    uint64_t voxels = 0;
    Box3 box, bricks;
  };
  std::map<Long3, Tile> tiles;
  QRY_TRY(bricks.visit(volume, all, [&](const std::vector<BrickPut>& some) {
    for (const BrickPut& put : some) {
      const BrickMask& mask = (*put.value).mask;
      Tile& tile =
          tiles[{(int64_t(put.brick.x) - all.min.x) / kEdgeBricks, (int64_t(put.brick.y) - all.min.y) / kEdgeBricks,
                 (int64_t(put.brick.z) - all.min.z) / kEdgeBricks}];
      tile.voxels += put.value->count();
      tile.box = united(tile.box, voxel_bounds(put.brick, mask));
      tile.bricks = united(tile.bricks, {put.brick, put.brick});
    }
  }));
  for (const auto& [at, tile] : tiles)
    out.push_back({volume, wide(tile.box.min), tile.box.max - tile.box.min + Int3{1, 1, 1}, tile.voxels, tile.bricks});
  return out;
}

// A transform node and its child node: a group (children) or a shape (model).
struct Branch {
  std::string name;
  int32_t model = -1;  // -1: a group
  int32_t layer = -1;
  bool hidden = false;
  Rotation rotation;  // in the file's axes
  Long3 translation{};
  std::vector<size_t> children;
};

class Writer {
 public:
  // The scene's own bricks do not count.
  Writer(const Scene& scene, VolumeBricks bricks, const Progress& progress)
      : scene_(scene), bricks_(std::move(bricks)), progress_(progress) {}
  Result<void> plan();
  Result<void> write(AtomicFile& out);

 private:
  Result<void> plan_tree();
  std::string_view root_name() const;
  Result<Branch> leaf(const Instance& instance, size_t index, uint32_t model) const;
  size_t child_group(size_t parent, std::string_view name);
  bool are_frames() const;
  Result<void> put_model(AtomicFile& out, const Piece& piece);
  void put_tree(AtomicFile& out);
  void put_palette(AtomicFile& out);

  const Scene& scene_;
  const VolumeBricks bricks_;
  const Progress& progress_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> first_piece_;  // of each volume, and one past the end
  std::vector<NumberedDict> layers_;
  std::vector<Branch> tree_;  // [0]: the root
};

// Chunks are gathered in memory, because all but the models' are small.
class ChunkBytes {
 public:
  ChunkBytes& u32(uint32_t v) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(uint8_t(v >> (8 * i)));
    return *this;
  }
  ChunkBytes& i32(int32_t v) { return u32(uint32_t(v)); }
  ChunkBytes& raw(std::span<const uint8_t> v) {
    bytes_.insert(bytes_.end(), v.begin(), v.end());
    return *this;
  }
  ChunkBytes& text(std::string_view s) {
    u32(uint32_t(s.size()));
    bytes_.insert(bytes_.end(), s.begin(), s.end());
    return *this;
  }
  ChunkBytes& dict(const OwnedDict& d) {
    u32(uint32_t(d.size()));
    for (const auto& [key, value] : d) text(key).text(value);
    return *this;
  }
  void put(AtomicFile& out, const char* id) const {
    out.put(std::string_view(id, 4));
    out.put_u32(uint32_t(bytes_.size()));
    out.put_u32(0);
    out.put(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
};

Result<Branch> Writer::leaf(const Instance& instance, size_t index, uint32_t model) const {
  const Piece& piece = pieces_[model];
  Branch b;
  b.name = instance.name;
  b.model = int32_t(model);
  b.hidden = instance.hidden;
  b.rotation = kUpright.inverse() * instance.rotation * kUpright;
  if (instance.layer >= 0 && size_t(instance.layer) < layers_.size()) b.layer = layers_[size_t(instance.layer)].id;
  // This inverts the reader's make_instance: its pivot is in the volume's axes, moved by the piece's beginning.
  const Long3 pivot =
      sum(turned(kUpright, {piece.size.x / 2, piece.size.z / 2, piece.size.y / 2}), {0, 0, piece.size.z});
  b.translation =
      turned(kUpright.inverse(), sum(wide(instance.offset), turned(instance.rotation, sum(piece.origin, pivot))));
  for (const int64_t t : b.translation)
    if (t < -kMaxTranslation || t > kMaxTranslation)
      return fail(ErrorCode::out_of_bounds,
                  "instance " + std::to_string(index) + (instance.name.empty() ? "" : " '" + instance.name + "'") +
                      " lies " + std::to_string(t) + " voxels from the origin; a .vox file takes at most " +
                      std::to_string(kMaxTranslation));
  return b;
}

size_t Writer::child_group(size_t parent, std::string_view name) {
  tree_.push_back({});
  tree_.back().name = name;
  tree_[parent].children.push_back(tree_.size() - 1);
  return tree_.size() - 1;
}

// The name of the root itself, if one group holds everything and the scene's source file had no group around that one.
std::string_view Writer::root_name() const {
  std::set<std::string_view> groups;
  for (const Instance& i : scene_.instances)
    for (size_t end = i.group_path.find('/');; end = i.group_path.find('/', end + 1)) {
      groups.insert(std::string_view(i.group_path).substr(0, end));
      if (end == std::string::npos) break;
    }
  const auto count = scene_.metadata.find("vox.groups");
  if (count == scene_.metadata.end() || count->second != std::to_string(groups.size()) || groups.empty()) return {};
  const std::string_view first = *groups.begin();  // a prefix precedes the names that begin with it
  const auto below = [&](std::string_view g) {
    return g.substr(0, first.size()) == first && (g.size() == first.size() || g[first.size()] == '/');
  };
  return !first.empty() && first.front() != '#' && std::all_of(groups.begin(), groups.end(), below)
             ? first
             : std::string_view();
}

// Makes groups from the paths. Instances keep their order, which decides overlaps. So a group that other instances
// interrupt is begun again.
Result<void> Writer::plan_tree() {
  tree_.push_back({});
  std::vector<std::pair<std::string_view, size_t>> open{{"", 0}};
  const std::string_view root = root_name();
  tree_[0].name = root;
  for (size_t i = 0; i < scene_.instances.size(); ++i) {
    const Instance& instance = scene_.instances[i];
    std::vector<std::string_view> path;
    for (std::string_view rest = instance.group_path; !rest.empty();) {
      path.push_back(rest.substr(0, rest.find('/')));
      rest.remove_prefix(std::min(rest.size(), path.back().size() + 1));
    }
    if (!root.empty()) path.erase(path.begin());
    size_t same = 0;
    while (same < path.size() && same + 1 < open.size() && open[same + 1].first == path[same]) ++same;
    open.resize(same + 1);
    while (open.size() <= path.size()) {
      const std::string_view name = path[open.size() - 1];
      open.emplace_back(name, child_group(open.back().second, name));
    }
    size_t parent = open.back().second;
    const uint32_t begin = first_piece_[instance.volume], end = first_piece_[instance.volume + 1];
    if (end - begin > 1) {
      const std::string& volume_name = scene_.volumes[instance.volume].name;
      parent = child_group(parent, !instance.name.empty() ? instance.name : volume_name);
    }
    for (uint32_t model = begin; model < end; ++model) {
      QRY_TRY_ASSIGN(auto made, leaf(instance, i, model));
      if (end - begin > 1) tree_[parent].layer = made.layer;
      tree_.push_back(std::move(made));
      tree_[parent].children.push_back(tree_.size() - 1);
    }
    if (tree_.size() > kVoxMaxInstances)
      return fail(ErrorCode::unsupported, "the scene would have more than " + std::to_string(kVoxMaxInstances) +
                                              " nodes, more than readers of .vox take");
  }
  return {};
}

Result<void> Writer::plan() {
  for (size_t i = 0; i < scene_.instances.size(); ++i)
    if (scene_.instances[i].volume >= scene_.volumes.size())
      return fail(ErrorCode::invalid_argument, "instance " + std::to_string(i) + " shows volume " +
                                                   std::to_string(scene_.instances[i].volume) +
                                                   ", but the scene has only " + std::to_string(scene_.volumes.size()));
  for (uint32_t v = 0; v < scene_.volumes.size(); ++v) {
    first_piece_.push_back(uint32_t(pieces_.size()));
    QRY_TRY_ASSIGN(const auto pieces, pieces_of(scene_.volumes[v], v, bricks_));
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
  }
  first_piece_.push_back(uint32_t(pieces_.size()));
  if (pieces_.empty()) pieces_.emplace_back();  // the format requires a model
  layers_ = vox::layer_dicts(scene_);
  QRY_TRY(plan_tree());
  uint64_t bytes = 0;
  for (const Piece& p : pieces_) bytes += 40 + 4 * p.voxels;
  // A node takes a hundred bytes and its name. With the rest of the file that is far below the gigabyte left free here.
  if (bytes > uint64_t(3) << 30)
    return fail(ErrorCode::unsupported, "its voxels would take " + std::to_string(bytes) +
                                            " bytes; a .vox file holds 4 GiB, of which 3 are used for models");
  return {};
}

// Whether the scene is exactly what an old animation is read as (vox/graph.cpp). It is then written without a scene
// graph, too.
bool Writer::are_frames() const {
  const auto count = scene_.metadata.find("vox.frames");
  if (count == scene_.metadata.end() || count->second != std::to_string(pieces_.size()) ||
      pieces_.size() != scene_.volumes.size() || pieces_.size() < 2 || tree_.size() != 2)
    return false;
  const Branch& first = tree_[1];
  return tree_[0].name.empty() && scene_.instances[0].group_path.empty() && first.model == 0 && first.layer < 0 &&
         !first.hidden && first.rotation.identity() && first.translation == Long3{} && first.name.empty();
}

Result<void> Writer::put_model(AtomicFile& out, const Piece& piece) {
  ChunkBytes().i32(piece.size.x).i32(piece.size.z).i32(piece.size.y).put(out, "SIZE");
  out.put("XYZI");
  out.put_u32(uint32_t(4 + 4 * piece.voxels));
  out.put_u32(0);
  out.put_u32(uint32_t(piece.voxels));
  if (piece.voxels == 0) return {};
  std::vector<uint8_t> voxels;
  return bricks_.visit(piece.volume, piece.bricks, [&](const std::vector<BrickPut>& some) {
    for (const BrickPut& put : some) {
      const BrickView brick = *put.value;
      const Long3 corner{int64_t(put.brick.x) * 8 - piece.origin[0], int64_t(put.brick.y) * 8 - piece.origin[1],
                         int64_t(put.brick.z) * 8 - piece.origin[2]};
      voxels.clear();
      for (uint32_t w = 0; w < 8; ++w)
        for (uint64_t left = brick.mask[w]; left; left &= left - 1) {
          const uint32_t index = w * 64 + uint32_t(std::countr_zero(left));
          const Int3 local = voxel_from_index(index);
          const int64_t x = corner[0] + local.x, y = corner[1] + local.y, z = corner[2] + local.z;
          voxels.insert(voxels.end(), {uint8_t(x), uint8_t(piece.size.z - 1 - z), uint8_t(y), brick.materials[index]});
        }
      out.put(voxels);
    }
  });
}

uint32_t rotation_byte(const Rotation& r) {
  return uint32_t(r.axis[0]) | uint32_t(r.axis[1]) << 2 | uint32_t(r.sign[0] < 0) << 4 | uint32_t(r.sign[1] < 0) << 5 |
         uint32_t(r.sign[2] < 0) << 6;
}

// Nodes are numbered in MagicaVoxel's order: a transform, the nodes below it, then the next transform.
void Writer::put_tree(AtomicFile& out) {
  std::vector<int32_t> id(tree_.size());
  std::vector<size_t> order, stack{0};
  int32_t next = 0;
  while (!stack.empty()) {
    const size_t b = stack.back();
    stack.pop_back();
    order.push_back(b);
    id[b] = next;
    next += 2;
    stack.insert(stack.end(), tree_[b].children.rbegin(), tree_[b].children.rend());
  }
  for (const size_t b : order) {
    const Branch& branch = tree_[b];
    const int32_t below = id[b] + 1;
    OwnedDict attributes, frame;
    // "#12" is the reader's name for a nameless group 12. Such a group stays nameless if it gets the same number.
    if (!branch.name.empty() && !(branch.model < 0 && branch.name == "#" + int_text(below)))
      attributes.emplace_back("_name", branch.name);
    if (branch.hidden) attributes.emplace_back("_hidden", "1");
    if (!branch.rotation.identity()) frame.emplace_back("_r", int_text(rotation_byte(branch.rotation)));
    if (branch.translation != Long3{})
      frame.emplace_back("_t", int_text(branch.translation[0]) + " " + int_text(branch.translation[1]) + " " +
                                   int_text(branch.translation[2]));
    ChunkBytes().i32(id[b]).dict(attributes).i32(below).i32(-1).i32(branch.layer).u32(1).dict(frame).put(out, "nTRN");
    ChunkBytes node;
    node.i32(below).dict({});
    if (branch.model >= 0) {
      node.u32(1).i32(branch.model).dict({}).put(out, "nSHP");
    } else {
      node.u32(uint32_t(branch.children.size()));
      for (const size_t child : branch.children) node.i32(id[child]);
      node.put(out, "nGRP");
    }
  }
}

void Writer::put_palette(AtomicFile& out) {
  ChunkBytes rgba;
  for (size_t i = 1; i < 256; ++i) {
    const Material& m = scene_.palette.materials[i];
    rgba.raw(std::array<uint8_t, 4>{m.r, m.g, m.b, m.a});
  }
  const auto last = vox::hex_entry(scene_, "vox.rgba_256", 4);
  rgba.raw(last ? *last : std::vector<uint8_t>(4)).put(out, "RGBA");
  if (const auto map = vox::hex_entry(scene_, "vox.index_map", 256)) ChunkBytes().raw(*map).put(out, "IMAP");
  for (const NumberedDict& d : vox::material_dicts(scene_)) ChunkBytes().i32(d.id).dict(d.dict).put(out, "MATL");
}

Result<void> Writer::write(AtomicFile& out) {
  // The version decides which instance is visible in an overlap (vox/read.hpp). Programs know the two versions 150 and
  // 200.
  out.put("VOX ");
  out.put_u32(scene_.overlap == OverlapRule::first_instance_wins ? 200 : 150);
  out.put("MAIN");
  out.put_u32(0);
  out.put_u32(0);
  const uint64_t begin = out.size();
  const bool frames = are_frames();
  if (frames) ChunkBytes().u32(uint32_t(pieces_.size())).put(out, "PACK");
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (progress_.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    QRY_TRY(put_model(out, pieces_[i]));
    progress_.say("write", double(i + 1) / double(pieces_.size()));
  }
  if (!frames) put_tree(out);
  for (const NumberedDict& d : layers_) ChunkBytes().i32(d.id).dict(d.dict).i32(-1).put(out, "LAYR");
  put_palette(out);
  for (const NumberedDict& d : vox::camera_dicts(scene_)) ChunkBytes().i32(d.id).dict(d.dict).put(out, "rCAM");
  const uint64_t bytes = out.size() - begin;
  if (bytes > UINT32_MAX)
    return fail(ErrorCode::unsupported,
                "it would be " + std::to_string(bytes) + " bytes long; a .vox file holds at most 4 GiB");
  out.patch_u32(16, uint32_t(bytes));
  return {};
}

Result<void> write_file(Writer writer, const Destination& to, const Progress& progress) {
  QRY_TRY(writer.plan());
  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  QRY_TRY(writer.write(out));
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  return out.commit();
}

}  // namespace

Result<void> write_vox(const Scene& scene, const Destination& to, const Progress& progress) {
  VolumeBricks bricks;
  for (const Volume& v : scene.volumes) bricks.volumes.push_back({v.bricks.voxel_count(), v.bricks.bounds()});
  bricks.visit = [&](uint32_t volume, const Box3& box, const VolumeBricks::Take& take) -> Result<void> {
    take(scene.volumes[volume].bricks.within(box));
    return {};
  };
  return write_file({scene, std::move(bricks), progress}, to, progress);
}

Result<RegionsDone> write_vox_of_world(StoreReader& store, const std::vector<VolumeSummary>& volumes,
                                       const std::function<uint64_t()>& available_bytes, const Destination& to,
                                       const Progress& progress) {
  constexpr uint64_t kBrickBytes = 1000;  // with its handles, and some room
  RegionsDone done;
  Progress quiet;
  quiet.cancel = progress.cancel;
  VolumeBricks bricks;
  for (const VolumeSummary& v : volumes) bricks.volumes.push_back({v.voxels, v.bounds});
  // Layers of chunks along x, as many at once as there is room for, have their bricks in rising order.
  bricks.visit = [&](uint32_t volume, const Box3& box, const VolumeBricks::Take& take) -> Result<void> {
    const Box3 chunks = chunks_of(box);
    for (Box3 run = chunks; run.min.x <= chunks.max.x; run.min.x = run.max.x + 1) {
      const uint64_t most = available_bytes() / kBrickBytes;
      for (run.max.x = chunks.max.x;; run.max.x = run.min.x + (run.max.x - run.min.x) / 2) {
        QRY_TRY_ASSIGN(const uint64_t count, store.count_bricks(volume, run));
        if (count <= most || run.max.x == run.min.x) break;
      }
      BrickMap some;
      QRY_TRY(store.read(volume, run, some, quiet));
      ++done.regions;
      take(some.within(box));
    }
    return {};
  };
  QRY_TRY(write_file({store.scene(), std::move(bricks), progress}, to, progress));
  return done;
}

}  // namespace quarry::io
