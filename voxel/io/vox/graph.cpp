// SPDX-License-Identifier: Apache-2.0
// graph.cpp - flattens the scene graph of a .vox file to a list of instances, in the order in which the file's groups
// list them. Nodes may be shared; then each path to them is an instance. Cycles are an error. The walk keeps its own
// stack, because the file decides the depth.
#include <algorithm>
#include <unordered_map>

#include "voxel/io/vox/chunks.hpp"
#include "voxel/io/vox/read.hpp"

namespace quarry::io::vox {
namespace {

constexpr int64_t kMaxTranslation = 1 << 24;  // the world is 2^14 wide
constexpr uint32_t kMaxSteps = 1u << 22;      // nodes entered: a graph of shared empty groups must end too

// World axes from the file's: (x, y, z) -> (x, z, -y) for vectors, (x, z, -1 - y) for cells.
constexpr Rotation kUpright{{0, 2, 1}, {1, 1, -1}};

struct Frame {
  const Node* node;
  size_t next_child = 0;
  Rotation rotation;
  std::array<int64_t, 3> translation{};
  bool hidden = false;
  int32_t layer = -1;
  std::string_view name;
  size_t path_length = 0;  // of the path above this node
};

class Walk {
 public:
  Walk(const File& file, Warnings& warnings, Salvage* salvage) : file_(file), warnings_(warnings), salvage_(salvage) {}
  Result<std::vector<Instance>> run();

 private:
  Result<void> index_nodes();
  Result<void> walk_from(uint32_t root);
  Result<void> enter(const Frame& from, int32_t child);
  Result<void> place(const Frame& at);
  Result<Frame> transformed(const Frame& from, const Node& node) const;
  tl::unexpected<Error> too_many_names(const Node& n) const {
    return fail(ErrorCode::unsupported,
                where(n) + ": the names of the instances and of the groups around them take more than 64 MiB");
  }
  // Handles a damaged part of the graph: it is an error, or with salvage it is left out and counted.
  Result<void> broken(std::string what) {
    if (!salvage_) return fail(ErrorCode::malformed_input, std::move(what));
    salvage_->count_loss("nodes", 1, "pieces of the scene graph");
    warnings_.add(std::move(what) + "; it was left out");
    return {};
  }
  std::string where(const Node& n) const {
    return "byte " + std::to_string(n.offset) + ": node " + std::to_string(n.id);
  }

  const File& file_;
  Warnings& warnings_;
  Salvage* salvage_;
  std::unordered_map<int32_t, uint32_t> node_of_id_, layer_of_id_;
  std::vector<uint8_t> on_path_, is_child_, visited_;
  std::vector<Frame> stack_;
  std::string path_;
  std::vector<Instance> instances_;
  std::vector<uint64_t> model_voxels_;
  uint64_t placed_ = 0, name_bytes_ = 0;
  uint32_t steps_ = 0;
};

// Makes an instance of `model` with the file's rotation and translation, converted to world axes (vox/read.hpp
// describes a volume's cells).
Instance make_instance(const Rotation& rotation, const std::array<int64_t, 3>& t, uint32_t model, Int3 size) {
  Instance out;
  out.volume = model;
  out.rotation = kUpright * rotation * kUpright.inverse();
  // The pivot in the volume's axes: kUpright * pivot, moved by the volume's shift of (0, 0, size_y). `size` is (x, z,
  // y) of the file.
  const Int3 pivot = kUpright.apply_to_vector({size.x / 2, size.z / 2, size.y / 2}) + Int3{0, 0, size.z};
  out.offset =
      kUpright.apply_to_vector({int32_t(t[0]), int32_t(t[1]), int32_t(t[2])}) - out.rotation.apply_to_vector(pivot);
  return out;
}

Result<void> Walk::index_nodes() {
  for (uint32_t i = 0; i < file_.layers.size(); ++i)
    if (!layer_of_id_.try_emplace(file_.layers[i].id, i).second)
      warnings_.add("layer " + std::to_string(file_.layers[i].id) + " is there twice; its nodes stay with the first");
  for (uint32_t i = 0; i < file_.nodes.size(); ++i)
    if (!node_of_id_.try_emplace(file_.nodes[i].id, i).second)
      QRY_TRY(broken(where(file_.nodes[i]) + " has the number of an earlier node; expected each number once"));
  is_child_.resize(file_.nodes.size());
  on_path_.resize(file_.nodes.size());
  visited_.resize(file_.nodes.size());
  const auto mark = [&](const Node& from, int32_t id) -> Result<void> {
    const auto it = node_of_id_.find(id);
    if (it == node_of_id_.end())
      return broken(where(from) + " names child " + std::to_string(id) + ", which is not in the file");
    is_child_[it->second] = 1;
    return {};
  };
  for (const Node& n : file_.nodes) {
    if (n.kind == NodeKind::transform) QRY_TRY(mark(n, n.target));
    for (int32_t child : n.children) QRY_TRY(mark(n, child));
    if (n.kind == NodeKind::shape && n.target >= int64_t(file_.models.size()))
      QRY_TRY(broken(where(n) + " shows model " + std::to_string(n.target) + ", but there are only " +
                     std::to_string(file_.models.size())));
  }
  return {};
}

Result<Frame> Walk::transformed(const Frame& from, const Node& node) const {
  Frame to = from;
  const std::array<int32_t, 3>& t = node.translation;
  for (size_t row = 0; row < 3; ++row) {
    to.translation[row] += int64_t(from.rotation.sign[row]) * t[from.rotation.axis[row]];
    if (to.translation[row] < -kMaxTranslation || to.translation[row] > kMaxTranslation)
      return fail(ErrorCode::malformed_input, where(node) + " moves what is below it to " +
                                                  std::to_string(to.translation[row]) + ", expected at most " +
                                                  std::to_string(kMaxTranslation) + " voxels from the origin");
  }
  to.rotation = from.rotation * node.rotation;
  to.name = node.name;
  to.layer = -1;
  if (const auto it = layer_of_id_.find(node.layer); it != layer_of_id_.end()) to.layer = int32_t(it->second);
  return to;
}

Result<void> Walk::place(const Frame& at) {
  const Node& shape = *at.node;
  if (shape.target < 0) return {};
  if (size_t(shape.target) >= file_.models.size()) return {};  // salvage: index_nodes has reported it
  if (size_t(shape.target) >= file_.certain_models)
    return broken(where(shape) + " shows model " + std::to_string(shape.target) +
                  ", and which that is cannot be known: models before it are lost");
  if (instances_.size() >= kVoxMaxInstances)
    return fail(ErrorCode::unsupported, where(shape) + " would be instance " + std::to_string(instances_.size() + 1) +
                                            "; at most " + std::to_string(kVoxMaxInstances) + " are read");
  const uint32_t model = uint32_t(shape.target);
  placed_ += model_voxels_[model];
  name_bytes_ += path_.size() + at.name.size();
  if (placed_ > kVoxMaxPlacedVoxels)
    return fail(ErrorCode::unsupported, where(shape) + ": the instances up to here place more than " +
                                            std::to_string(kVoxMaxPlacedVoxels) + " voxels");
  if (name_bytes_ > kVoxMaxNameBytes) return too_many_names(shape);
  Instance instance = make_instance(at.rotation, at.translation, model, file_.models[model].size);
  instance.layer = at.layer;
  instance.hidden = at.hidden;
  instance.name = std::string(at.name);
  instance.group_path = path_;
  instances_.push_back(std::move(instance));
  return {};
}

Result<void> Walk::enter(const Frame& from, int32_t child) {
  const auto found = node_of_id_.find(child);
  if (found == node_of_id_.end()) return {};  // salvage: index_nodes has reported it
  const uint32_t index = found->second;
  const Node& node = file_.nodes[index];
  if (on_path_[index]) return broken(where(node) + " is below itself: the scene graph has a cycle");
  if (++steps_ > kMaxSteps)
    return fail(ErrorCode::unsupported, where(node) + ": the scene graph has more than " + std::to_string(kMaxSteps) +
                                            " nodes when shared ones are counted each time");
  Frame to = from;
  if (node.kind == NodeKind::transform) {
    auto moved = transformed(from, node);
    if (!moved) return broken(moved.error().message);
    to = *moved;
  }
  to.node = &node;
  to.next_child = 0;
  to.hidden = from.hidden || node.hidden;
  to.path_length = path_.size();
  if (node.kind == NodeKind::group) {
    // A hidden group hides its descendants. A group is also hidden by its own layer.
    to.hidden = to.hidden || (from.layer >= 0 && file_.layers[size_t(from.layer)].hidden);
    if (stack_.size() > 1 || !from.name.empty()) {  // the unnamed root group is in every file and means nothing
      std::string segment(from.name.empty() ? node.name : from.name);
      if (segment.empty()) (segment = '#') += std::to_string(node.id);
      std::replace(segment.begin(), segment.end(), '/', '_');
      // Names are counted here too, or shared groups with long names would be copied for hours before any instance is
      // reached.
      if ((name_bytes_ += segment.size()) > kVoxMaxNameBytes) return too_many_names(node);
      if (!path_.empty()) path_ += '/';
      path_ += segment;
    }
    to.name = {};
  }
  visited_[index] = on_path_[index] = 1;
  stack_.push_back(to);
  return {};
}

Result<void> Walk::walk_from(uint32_t root) {
  const Frame origin{};
  QRY_TRY(enter(origin, file_.nodes[root].id));
  while (!stack_.empty()) {
    Frame& top = stack_.back();
    const Node& node = *top.node;
    if (node.kind == NodeKind::transform && top.next_child == 0) {
      top.next_child = 1;
      const Frame from = top;  // entering may move the stack
      QRY_TRY(enter(from, node.target));
      continue;
    }
    if (node.kind == NodeKind::group && top.next_child < node.children.size()) {
      const int32_t child = node.children[top.next_child++];
      const Frame from = top;
      QRY_TRY(enter(from, child));
      continue;
    }
    if (node.kind == NodeKind::shape) QRY_TRY(place(top));
    on_path_[size_t(&node - file_.nodes.data())] = 0;
    path_.resize(top.path_length);
    stack_.pop_back();
  }
  return {};
}

Result<std::vector<Instance>> Walk::run() {
  QRY_TRY(index_nodes());
  model_voxels_ = file_.taken_voxels;
  if (model_voxels_.empty())
    for (const Volume& m : file_.models) model_voxels_.push_back(m.bricks.voxel_count());
  if (file_.nodes.empty()) {
    // Without a scene graph a model is placed at the origin. Several models are the frames of an old animation, and the
    // first one is placed. In a damaged file it is not known which was the first.
    const size_t models = file_.models.size();
    const bool placed = models == 1 || !file_.damaged;
    if (placed) instances_.push_back(make_instance({}, {}, 0, file_.models[0].size));
    if (models > 1)
      warnings_.add("the file has " + std::to_string(models) + " models and no scene graph" +
                    (placed ? " (an old animation); the first one is placed, the others are read, but not placed"
                            : "; its models are read, but none is placed"));
    return std::move(instances_);
  }
  if (const auto zero = node_of_id_.find(0); zero != node_of_id_.end()) {
    QRY_TRY(walk_from(zero->second));
  } else {
    warnings_.add("the scene graph has no node 0; every node without a parent was taken as a root");
    bool any = false;
    for (uint32_t i = 0; i < file_.nodes.size(); ++i) {
      if (is_child_[i]) continue;
      any = true;
      QRY_TRY(walk_from(i));
    }
    if (!any)
      QRY_TRY(broken(where(file_.nodes[0]) + ": every node is a child of another: the scene graph has a cycle"));
  }
  if (file_.damaged && node_of_id_.count(0)) {
    uint64_t orphans = 0;
    for (uint32_t i = 0; i < file_.nodes.size(); ++i) {
      if (visited_[i] || is_child_[i] || node_of_id_.at(file_.nodes[i].id) != i) continue;
      ++orphans;
      QRY_TRY(walk_from(i));
    }
    if (orphans)
      warnings_.add(
          std::to_string(orphans) +
          " nodes have lost the node above them; what is below them stands where their own transforms put it");
    if (orphans) salvage_->count_loss("parents", orphans, "nodes without what is above them");
  }
  if (const auto unseen = std::count(visited_.begin(), visited_.end(), 0))
    warnings_.add(std::to_string(unseen) +
                  " nodes of the scene graph cannot be reached from its root and were left out");
  return std::move(instances_);
}

}  // namespace

Result<std::vector<Instance>> place_instances(const File& file, Warnings& warnings, Salvage* salvage) {
  return Walk(file, warnings, salvage).run();
}

}  // namespace quarry::io::vox
