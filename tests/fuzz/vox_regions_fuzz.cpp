// SPDX-License-Identifier: Apache-2.0
// vox_regions_fuzz.cpp - reads any bytes as a .vox file model by model. Results, warnings and errors are those of
// reading it whole. A sink that fails, a file that changes meanwhile and a cancellation end it with an error that says
// so. Dictionary and first inputs are those of `vox`.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "voxel/io/vox/chunks.hpp"
#include "voxel/io/vox/read.hpp"

using namespace quarry;

namespace {

// These limits on bytes and on steps of a walk through the scene graph keep every input below a second. 44 bytes may be
// a model that costs 7 ms here. The reader's own limit on steps would take seconds.
constexpr size_t kLongest = 4096;
constexpr uint64_t kMostSteps = 50000;

void require(bool holds) {
  if (!holds) std::abort();
}

// Counts the nodes that a walk through the scene graph enters, shared ones each time. The count is at most a little
// above kMostSteps.
class Steps {
 public:
  explicit Steps(const std::vector<io::vox::Node>& nodes) : nodes_(nodes), known_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) node_of_id_.try_emplace(nodes[i].id, i);
    std::vector<bool> is_child(nodes.size());
    for (const io::vox::Node& n : nodes)
      for (const size_t child : children(n)) is_child[child] = true;
    for (size_t i = 0; i < nodes.size() && count_ <= kMostSteps; ++i)
      if (nodes[i].id == 0 || !is_child[i]) count_ += from(i);
  }
  uint64_t count() const { return count_; }

 private:
  std::vector<size_t> children(const io::vox::Node& n) const {
    std::vector<size_t> out;
    const auto add = [&](int32_t id) {
      if (const auto it = node_of_id_.find(id); it != node_of_id_.end()) out.push_back(it->second);
    };
    if (n.kind == io::vox::NodeKind::transform) add(n.target);
    for (const int32_t id : n.children) add(id);
    return out;
  }
  uint64_t from(size_t node) {
    if (known_[node]) return *known_[node];
    known_[node] = 0;  // while its descendants are counted; a cycle ends the reader's walk, too
    uint64_t steps = 1;
    for (const size_t child : children(nodes_[node])) steps = std::min(steps + from(child), kMostSteps + 1);
    known_[node] = steps;
    return steps;
  }

  const std::vector<io::vox::Node>& nodes_;
  std::unordered_map<int32_t, size_t> node_of_id_;
  std::vector<std::optional<uint64_t>> known_;
  uint64_t count_ = 0;
};

// A file in memory, with a path that is in no folder.
class FileInMemory {
 public:
  FileInMemory() : fd_(::memfd_create("vox", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    require(fd_ >= 0);
  }
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;
  ~FileInMemory() { ::close(fd_); }
  void set(std::span<const uint8_t> bytes) const {
    require(::ftruncate(fd_, off_t(bytes.size())) == 0);
    require(::pwrite(fd_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

// The data that reading in regions passes to its sink.
struct Parts {
  std::optional<Scene> scene;
  uint64_t regions = 0;
  std::function<void()> begun;      // may be null
  uint64_t refused = ~uint64_t(0);  // the region that the sink rejects

  RegionSink sink() {
    RegionSink out;
    out.begin = [this](const Scene& head) -> Result<void> {
      require(!scene);
      for (const Volume& v : head.volumes) require(v.bricks.empty());
      scene = head;
      if (begun) begun();
      return {};
    };
    out.take = [this](uint32_t volume, BrickMap&& bricks) -> Result<void> {
      require(scene && volume < scene->volumes.size() && scene->volumes[volume].bricks.empty() && !bricks.empty());
      require(regions <= refused);
      if (regions++ == refused) return fail(ErrorCode::io, "no room");
      scene->volumes[volume].bricks = std::move(bricks);
      return {};
    };
    return out;
  }
};

bool same_camera(const Camera& a, const Camera& b) {
  const auto bits = [](const Camera& c) {
    std::array<uint64_t, 7> out{};
    for (size_t i = 0; i < 3; ++i)
      out[i] = std::bit_cast<uint64_t>(c.position[i]), out[3 + i] = std::bit_cast<uint64_t>(c.target[i]);
    out[6] = std::bit_cast<uint64_t>(c.vertical_fov_degrees);
    return out;
  };
  return a.name == b.name && bits(a) == bits(b);
}

bool same_instance(const Instance& a, const Instance& b) {
  return a.volume == b.volume && a.rotation == b.rotation && a.offset == b.offset && a.layer == b.layer &&
         a.hidden == b.hidden && a.name == b.name && a.group_path == b.group_path;
}

void require_same(const Scene& a, const Scene& b) {
  require(std::equal(
      a.volumes.begin(), a.volumes.end(), b.volumes.begin(), b.volumes.end(),
      [](const Volume& v, const Volume& w) { return v.name == w.name && v.size == w.size && v.bricks == w.bricks; }));
  require(std::equal(a.instances.begin(), a.instances.end(), b.instances.begin(), b.instances.end(), same_instance));
  require(std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                     [](const Layer& l, const Layer& m) { return l.name == m.name && l.hidden == m.hidden; }));
  require(std::equal(a.cameras.begin(), a.cameras.end(), b.cameras.begin(), b.cameras.end(), same_camera));
  require(a.palette == b.palette && a.overlap == b.overlap && a.metadata == b.metadata);
  uint64_t placed = 0;
  for (const Instance& i : a.instances) placed += a.volumes[i.volume].bricks.voxel_count();
  if (placed >= 20000 || a.instances.size() >= 200) return;
  const auto facts = scene_facts(a, Axes::z_up), others = scene_facts(b, Axes::z_up);
  require(facts.has_value() == others.has_value());
  if (!facts) return require(facts.error().message == others.error().message);
  require(facts->placed == placed && others->placed == placed && facts->flat_all == others->flat_all &&
          facts->flat_visible == others->flat_visible);
  require(facts->colors_used == others->colors_used && facts->bounds == others->bounds &&
          facts->pos_sum == others->pos_sum && facts->col_sum == others->col_sum);
}

// Interrupts a reading. A hash of the input decides how and where.
void disturb(const FileInMemory& file, std::span<const uint8_t> bytes, uint64_t regions) {
  uint64_t choice = 0xcbf29ce484222325;
  for (const uint8_t b : bytes) choice = (choice ^ b) * 0x100000001b3;
  const uint64_t kind = choice >> 62, number = choice >> 32 & 0xffff;
  const size_t part = number % bytes.size();
  Parts parts;
  std::atomic<bool> stop = false;
  Progress progress;
  progress.cancel = &stop;
  if (kind == 0) parts.refused = regions ? number % regions : 0;
  if (kind == 1) parts.begun = [&] { stop = true; };
  if (kind == 2) parts.begun = [&] { file.set(bytes.first(part)); };
  if (kind == 3)
    parts.begun = [&] {
      std::vector<uint8_t> other(bytes.begin(), bytes.end());
      if (number & 1) {
        // Models of one voxel fill the rest of the file, so there are more than before.
        constexpr std::string_view kModel(
            "SIZE\x0c\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0XYZI\x08\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1", 44);
        for (size_t at = 20; at + kModel.size() <= other.size(); at += kModel.size())
          std::copy(kModel.begin(), kModel.end(), other.begin() + std::ptrdiff_t(at));
      } else {
        other[part] = uint8_t(choice >> 48);
        std::rotate(other.begin() + std::ptrdiff_t(part),
                    other.begin() + std::ptrdiff_t(part + (other.size() - part) / 2), other.end());
      }
      file.set(other);
    };
  const auto done = io::read_vox_regions(file.path(), kLongest, nullptr, progress, parts.sink());
  if (!done) require(!done.error().message.empty());
  if (kind == 0) require(regions == 0 ? done.has_value() : !done && done.error().message == "no room");
  if (kind == 1) require(!done && done.error().code == ErrorCode::cancelled);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kLongest) return 0;
  const std::span<const uint8_t> bytes(data, size);
  {
    io::vox::Warnings unheard(nullptr);
    const auto chunks = io::vox::read_chunks(bytes, unheard, nullptr);
    if (chunks && Steps(chunks->nodes).count() > kMostSteps) return 0;
  }
  static const FileInMemory file;
  file.set(bytes);
  std::vector<std::string> warnings, warnings_whole;
  const auto whole = io::parse_vox(bytes, &warnings_whole);
  Parts parts;
  const auto done = io::read_vox_regions(file.path(), kLongest, &warnings, {}, parts.sink());
  require(warnings == warnings_whole && done.has_value() == whole.has_value() &&
          parts.scene.has_value() == whole.has_value());
  if (!whole) {
    require(done.error().code == whole.error().code && done.error().message == whole.error().message &&
            !done.error().message.empty());
    return 0;
  }
  require(done->regions == parts.regions);
  require_same(*whole, *parts.scene);
  disturb(file, bytes, done->regions);
  return 0;
}
