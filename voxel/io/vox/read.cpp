// SPDX-License-Identifier: Apache-2.0
// read.cpp - makes a Scene from a .vox file's chunks and instances, and collects the facts that only the file has.
#include "voxel/io/vox/read.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/io/vox/chunks.hpp"
#include "voxel/io/vox/write.hpp"

namespace quarry::io {
namespace {

std::string hex(const uint8_t* bytes, size_t count) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) out += {kHex[bytes[i] >> 4], kHex[bytes[i] & 15]};
  return out;
}

std::string numbered_dicts(const std::vector<vox::DictChunk>& chunks) {
  std::string out;
  for (const vox::DictChunk& c : chunks) out += std::to_string(c.id) + " " + vox::dict_text(c.dict) + "\n";
  return out;
}

// Models have no names in the file. A model gets the name of the first instance that shows it, or else its number.
void name_volumes(Scene& scene) {
  for (const Instance& i : scene.instances)
    if (std::string& name = scene.volumes[i.volume].name; name.empty()) name = i.name;
  for (size_t v = 0; v < scene.volumes.size(); ++v)
    if (scene.volumes[v].name.empty()) scene.volumes[v].name = "model " + std::to_string(v);
}

Result<Scene> scene_of(vox::File& file, vox::Warnings& warn, Salvage* salvage) {
  QRY_TRY_ASSIGN(auto instances, vox::place_instances(file, warn, salvage));

  Scene scene;
  scene.volumes = std::move(file.models);
  scene.instances = std::move(instances);
  scene.overlap = file.version >= 200 ? OverlapRule::first_instance_wins : OverlapRule::last_instance_wins;
  std::string layers_text;
  for (const vox::LayerChunk& l : file.layers) {
    const std::string_view name = vox::value_of(l.dict, "_name");
    scene.layers.push_back({name.empty() ? "layer " + std::to_string(l.id) : std::string(name), l.hidden});
    layers_text += std::to_string(l.id) + " " + vox::dict_text(l.dict) + "\n";
  }
  for (const vox::DictChunk& c : file.cameras) scene.cameras.push_back(vox::make_camera(c));
  uint32_t nondiffuse = 0;
  scene.palette = vox::make_palette(file, &nondiffuse);
  name_volumes(scene);

  const auto count_nodes = [&](vox::NodeKind kind, bool animated_only) {
    return std::count_if(file.nodes.begin(), file.nodes.end(),
                         [&](const vox::Node& n) { return n.kind == kind && (n.animated || !animated_only); });
  };
  auto& meta = scene.metadata;
  meta["source_format"] = "vox";
  meta["vox.version"] = std::to_string(file.version);
  meta["vox.groups"] = std::to_string(std::max<int64_t>(1, count_nodes(vox::NodeKind::group, false)));
  meta["vox.layers"] = std::to_string(std::max<size_t>(1, file.layers.size()));
  meta["vox.cameras"] = std::to_string(file.cameras.size());
  meta["vox.nondiffuse_mats"] = std::to_string(nondiffuse);
  if (file.nodes.empty() && scene.volumes.size() > 1 && !scene.instances.empty())
    meta["vox.frames"] = std::to_string(scene.volumes.size());
  const auto moving = count_nodes(vox::NodeKind::transform, true), changing = count_nodes(vox::NodeKind::shape, true);
  meta["vox.anim_transform"] = std::to_string(moving);
  meta["vox.anim_model"] = std::to_string(changing);
  if (moving + changing > 0)
    warn.add("it is animated: " + std::to_string(moving) + " transforms and " + std::to_string(changing) +
             " shapes have more than one frame; frame 0, or the first after it, was read, the others are lost");
  if (!layers_text.empty()) meta["vox.layer_dicts"] = layers_text;
  if (!file.materials.empty()) meta["vox.material_dicts"] = numbered_dicts(file.materials);
  if (!file.cameras.empty()) meta["vox.camera_dicts"] = numbered_dicts(file.cameras);
  if (file.index_map) meta["vox.index_map"] = hex(file.index_map, 256);
  if (file.rgba) meta["vox.rgba_256"] = hex(file.rgba + 255 * 4, 4);
  return scene;
}

class VoxStream final : public vox::Stream {
 public:
  using Take = std::function<Result<void>(size_t, BrickMap&&)>;
  VoxStream(LazyFile& bytes, const Progress& progress, Take take)
      : bytes_(bytes), progress_(progress), take_(std::move(take)) {}
  Result<void> load(size_t begin, size_t end) override {
    if (progress_.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    return bytes_.load(begin, end);
  }
  void drop(size_t begin, size_t end) override { bytes_.drop(begin, end); }
  Result<void> take(size_t model, BrickMap&& bricks) override { return take_(model, std::move(bricks)); }

 private:
  LazyFile& bytes_;
  const Progress& progress_;
  Take take_;
};

}  // namespace

Result<Scene> parse_vox(std::span<const uint8_t> bytes, std::vector<std::string>* warnings, Salvage* salvage) {
  vox::Warnings warn(warnings);
  QRY_TRY_ASSIGN(auto file, vox::read_chunks(bytes, warn, salvage));
  return scene_of(file, warn, salvage);
}

Result<RegionsDone> read_vox_regions(const std::filesystem::path& path, uint64_t limit,
                                     std::vector<std::string>* warnings, const Progress& progress,
                                     const RegionSink& sink) {
  QRY_TRY_ASSIGN(auto bytes, LazyFile::open(path, limit));
  size_t models = 0;
  {
    progress.say("read", -1);
    VoxStream first(bytes, progress, [](size_t, BrickMap&&) -> Result<void> { return {}; });
    vox::Warnings warn(warnings);
    QRY_TRY_ASSIGN(auto file, vox::read_chunks(bytes.span(), warn, nullptr, &first));
    models = file.models.size();
    QRY_TRY_ASSIGN(const auto scene, scene_of(file, warn, nullptr));
    QRY_TRY(sink.begin(scene));
  }
  RegionsDone done;
  VoxStream second(bytes, progress, [&](size_t model, BrickMap&& bricks) -> Result<void> {
    if (model >= models) return fail(ErrorCode::conflict, "it was changed while it was read");
    progress.say("models", double(model) / double(models));
    if (bricks.empty()) return {};
    ++done.regions;
    return sink.take(uint32_t(model), std::move(bricks));
  });
  vox::Warnings second_warnings(nullptr);
  QRY_TRY_ASSIGN(const auto again, vox::read_chunks(bytes.span(), second_warnings, nullptr, &second));
  if (again.models.size() != models) return fail(ErrorCode::conflict, "it was changed while it was read");
  return done;
}

bool vox_facts(const Scene& scene, VoxFacts* out) {
  const auto source = scene.metadata.find("source_format");
  if (source == scene.metadata.end() || source->second != "vox") return false;
  const auto number = [&](const char* key) {
    uint32_t v = 0;
    if (const auto it = scene.metadata.find(key); it != scene.metadata.end())
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
    return v;
  };
  VoxFacts facts;
  facts.version = number("vox.version");
  facts.groups = number("vox.groups");
  facts.layers = number("vox.layers");
  facts.cameras = number("vox.cameras");
  facts.nondiffuse_mats = number("vox.nondiffuse_mats");
  facts.anim_transform = number("vox.anim_transform");
  facts.anim_model = number("vox.anim_model");
  facts.models = uint32_t(scene.volumes.size());
  for (const Volume& v : scene.volumes) {
    facts.model_list.push_back({{v.size.x, v.size.z, v.size.y}, v.bricks.voxel_count()});
    facts.empty_models += v.bricks.empty();
  }
  facts.instances = uint32_t(scene.instances.size());
  for (const Instance& i : scene.instances) {
    facts.mirrored_instances += i.rotation.mirrored();
    facts.rotated_instances += !i.rotation.identity();
  }
  *out = std::move(facts);
  return true;
}

namespace {

constexpr uint64_t kMaxVoxFileBytes = (uint64_t(1) << 32) + 20;  // a chunk's length has 32 bits

Result<Scene> read_vox(const std::filesystem::path& file, const ReadOptions& options) {
  QRY_TRY_ASSIGN(const auto bytes, read_input(file, kMaxVoxFileBytes, options.progress, options.budget));
  return parse_vox(bytes, options.warnings, options.salvage);
}

Result<RegionsDone> read_vox_in_regions(const std::filesystem::path& file, const ReadOptions& options,
                                        const RegionSink& sink) {
  return read_vox_regions(file, kMaxVoxFileBytes, options.warnings, options.progress, sink);
}

}  // namespace

constinit const Format kVoxFormat{
    .name = "vox",
    .title = "MagicaVoxel scene",
    .kind = FormatKind::scene,
    .extensions = {"vox"},
    .magic = "VOX ",
    .read = read_vox,
    .read_regions = read_vox_in_regions,
    .write = write_vox,
    .write_volumes = write_vox_of_world,
    .keeps = kKeepsAll,
    .salvages = true,
    .returns = true,
    .has_vox_facts = true,
    .z_up = true,
    .cost = {.memory_per_byte = 6, .bricks_per_byte = 1 / 256.0, .work_per_byte = 0.03},
};

}  // namespace quarry::io
