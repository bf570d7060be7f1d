// SPDX-License-Identifier: Apache-2.0
// reader.cpp - node transforms, instances and the choice of texture coordinate sets; parts are appended to one mesh.
#include "voxel/foreign/gltf/reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <glm/gtc/type_ptr.hpp>
#include <string_view>

#include "voxel/foreign/gltf/accessor.hpp"
#include "voxel/foreign/gltf/affine.hpp"
#include "voxel/foreign/gltf/material.hpp"
#include "voxel/foreign/gltf/primitive.hpp"

namespace quarry::mesh_reader {
namespace {

// Extensions that a file may require: those that are read, and those that change no shape, place or colour.
constexpr std::string_view kKnownExtensions[] = {
    "KHR_mesh_quantization", "KHR_texture_transform", "KHR_draco_mesh_compression", "EXT_meshopt_compression",
    "KHR_meshopt_compression", "EXT_mesh_gpu_instancing", "KHR_node_visibility", "KHR_materials_emissive_strength",
    "KHR_materials_pbrSpecularGlossiness", "KHR_materials_unlit",
    // These change how a surface reflects and transmits light, beyond base colour, metalness and roughness.
    "KHR_materials_anisotropy", "KHR_materials_clearcoat", "KHR_materials_diffuse_transmission",
    "KHR_materials_dispersion", "KHR_materials_ior", "KHR_materials_iridescence", "KHR_materials_sheen",
    "KHR_materials_specular", "KHR_materials_transmission", "KHR_materials_volume",
    "KHR_materials_variants",  // the material without a variant is the one that the file shows first
    // These are not part of the surface.
    "KHR_lights_punctual", "EXT_lights_ies", "EXT_lights_image_based", "KHR_animation_pointer", "KHR_audio_emitter",
    "KHR_physics_rigid_bodies", "KHR_implicit_shapes", "KHR_node_hoverability", "KHR_node_selectability",
    "KHR_interactivity", "KHR_xmp", "KHR_xmp_json_ld", "EXT_mesh_features", "EXT_instance_features",
    "EXT_structural_metadata", "FB_geometry_metadata", "AGI_articulations", "AGI_stk_metadata",
    "CESIUM_primitive_outline", "MSFT_lod"};
// Extensions for pictures of kinds that are not decoded here.
constexpr std::string_view kPictureExtensions[] = {"KHR_texture_basisu", "EXT_texture_webp", "EXT_texture_avif",
                                                   "MSFT_texture_dds"};

template <size_t N>
bool among(const std::string& name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Translation x rotation x scale; the quaternion is x, y, z, w.
glm::dmat4x3 matrix_of(const double t[3], const double q[4], const double s[3]) {
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const bool usable = std::isfinite(length) && length > 0;
  const double x = usable ? q[0] / length : 0, y = usable ? q[1] / length : 0, z = usable ? q[2] / length : 0,
               w = usable ? q[3] / length : 1;
  return {s[0] * (1 - 2 * (y * y + z * z)),
          s[0] * 2 * (x * y + z * w),
          s[0] * 2 * (x * z - y * w),
          s[1] * 2 * (x * y - z * w),
          s[1] * (1 - 2 * (x * x + z * z)),
          s[1] * 2 * (y * z + x * w),
          s[2] * 2 * (x * z + y * w),
          s[2] * 2 * (y * z - x * w),
          s[2] * (1 - 2 * (x * x + y * y)),
          t[0],
          t[1],
          t[2]};
}

glm::dmat4x3 local_matrix(const Json& node, const std::string& where) {
  double m[16];
  if (numbers(node, "matrix", m, where)) return glm::dmat4x3(glm::make_mat4(m));
  double t[3] = {0, 0, 0}, q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1};
  numbers(node, "translation", t, where);
  numbers(node, "rotation", q, where);
  numbers(node, "scale", s, where);
  return matrix_of(t, q, s);
}

std::vector<double> weights_of(const Json& holder, const std::string& where) {
  const Json* const list = member(holder, "weights");
  if (!list || !list->is_array()) return {};
  std::vector<double> out(list->size());
  numbers(holder, "weights", out, where);
  while (!out.empty() && out.back() == 0) out.pop_back();
  return out;
}

class GltfScene {
 public:
  GltfScene(std::vector<uint8_t> file, bool z_up, const GltfOutside& outside, std::vector<std::string>& warnings,
            const GltfLimits& limits)
      : document_(std::move(file), outside),
        materials_(document_, outside, mesh_, warnings),
        warnings_(warnings),
        limits_(limits) {
    if (z_up) root_ = kZUp;
  }

  Mesh read() {
    check_asset();
    placements_.resize(document_.count("meshes"));
    place_nodes();
    for (uint64_t i = 0; i < placements_.size(); ++i) {
      if (!placements_[i].empty()) add_mesh(i);
      placements_[i] = {};
    }
    check_result();
    join_uvs();
    return std::move(mesh_);
  }

 private:
  struct Placement {
    glm::dmat4x3 to_world;
    std::optional<uint64_t> node;  // that has weights of its own
  };

  void warn(const std::string& text) {
    if (warnings_.size() < 100) warnings_.push_back(text);
  }

  void check_asset() {
    const Json* const asset = member(document_.json(), "asset");
    const std::string version = asset ? text(*asset, "version") : "", least = asset ? text(*asset, "minVersion") : "";
    if (version.empty()) gltf_fault("it is not glTF: it has no asset.version.");
    const auto refused = [](const std::string& what) { throw GltfFault{{ErrorCode::unsupported, what}}; };
    if (version.rfind("2.", 0) != 0) refused("it is glTF " + version.substr(0, 20) + "; versions 1 and 2 are read.");
    if (!least.empty() && least != "2.0")
      refused("it needs a reader of glTF " + least.substr(0, 20) + "; this one knows 2.0.");
    const Json* const required = member(document_.json(), "extensionsRequired");
    if (!required) return;
    if (!required->is_array()) gltf_fault("extensionsRequired is not an array.");
    for (const Json& name : *required) {
      if (!name.is_string()) gltf_fault("extensionsRequired holds what is not a string.");
      const auto& wanted = name.get_ref<const std::string&>();
      if (among(wanted, kPictureExtensions))
        refused("it requires the extension " + wanted +
                ", whose pictures cannot be read here; export it with PNG or JPEG.");
      if (!among(wanted, kKnownExtensions))
        refused("it requires the extension " + wanted + ", which is not known here.");
    }
  }

  std::vector<uint64_t> roots() {
    if (document_.count("scenes") > 0) {
      const uint64_t index = whole_number(document_.json(), "scene", 0, "the file");
      return indices(document_.item("scenes", index, "scene"), "nodes", place("scenes", index));
    }
    // Without a scene, all nodes without a parent are the roots.
    std::vector<bool> child(document_.count("nodes"));
    for (uint64_t i = 0; i < child.size(); ++i)
      for (const uint64_t c : indices(document_.item("nodes", i, "nodes"), "children", place("nodes", i)))
        if (c < child.size()) child[c] = true;
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < child.size(); ++i)
      if (!child[i]) out.push_back(i);
    return out;
  }

  // Finds each node's transform, visiting it once. Nodes must form a tree: a graph could have cycles or many copies.
  void place_nodes() {
    struct Item {
      uint64_t node, parent;
      glm::dmat4x3 to_world;  // of the parent
    };
    constexpr uint64_t kNone = UINT64_MAX, kUnseen = UINT64_MAX - 1;
    std::vector<uint64_t> parent_of(document_.count("nodes"), kUnseen);
    std::vector<Item> stack;
    const std::vector<uint64_t> top = roots();
    for (auto i = top.rbegin(); i != top.rend(); ++i) stack.push_back({*i, kNone, root_});
    while (!stack.empty()) {
      const Item item = stack.back();
      stack.pop_back();
      const std::string who = item.parent == kNone ? "the scene's node" : place("nodes", item.parent) + ".children";
      const Json& node = document_.item("nodes", item.node, who);
      const std::string where = place("nodes", item.node);
      if (parent_of[item.node] != kUnseen) {
        for (uint64_t up = item.parent; up != kNone; up = parent_of[up])
          if (up == item.node)
            gltf_fault("its nodes refer to themselves, so the scene has no end: " + who + " names " + where +
                       ", which is above it.");
        const uint64_t first = parent_of[item.node];
        gltf_fault(where + " is named twice, by " + (first == kNone ? "the scene" : place("nodes", first)) +
                   " and by " + (item.parent == kNone ? "the scene" : place("nodes", item.parent)) +
                   ": nodes must form a tree.");
      }
      parent_of[item.node] = item.parent;
      if (const Json* const shown = extension(node, "KHR_node_visibility");
          shown && member(*shown, "visible") && !boolean(*shown, "visible"))
        continue;
      const glm::dmat4x3 here = product(item.to_world, local_matrix(node, where));
      if (const auto mesh = whole_number(node, "mesh", where)) place_mesh(node, item.node, *mesh, here);
      const auto children = indices(node, "children", where);
      if (stack.size() + children.size() > limits_.nodes) too_many_nodes();
      for (auto i = children.rbegin(); i != children.rend(); ++i) stack.push_back({*i, item.node, here});
    }
  }

  void too_many_nodes() const {
    gltf_fault("it has more than " + std::to_string(limits_.nodes) + " nodes and instances.");
  }

  void place_mesh(const Json& node, uint64_t index, uint64_t mesh, const glm::dmat4x3& here) {
    const std::string where = place("nodes", index);
    document_.item("meshes", mesh, where + ".mesh");
    const std::optional<uint64_t> with_weights = member(node, "weights") ? std::optional(index) : std::nullopt;
    const auto add = [&](const glm::dmat4x3& to_world) {
      if (++placed_ > limits_.nodes) too_many_nodes();
      placements_[mesh].push_back({to_world, with_weights});
    };
    const Json* const instances = extension(node, "EXT_mesh_gpu_instancing");
    const Json* const attributes = instances ? member(*instances, "attributes") : nullptr;
    if (!attributes) return add(here);
    const std::string there = where + ".extensions.EXT_mesh_gpu_instancing.attributes";
    std::optional<uint64_t> count;
    const auto accessor = [&](const char* name, uint32_t components) -> std::optional<GltfAccessor> {
      const auto at = whole_number(*attributes, name, there);
      if (!at) return std::nullopt;
      GltfAccessor found(document_, *at, there + "." + name);
      if (found.components() != components)
        gltf_fault(there + "." + name + " is not of VEC" + std::to_string(components) + ".");
      if (count && *count != found.count())
        gltf_fault(there + ": " + std::to_string(*count) + " and " + std::to_string(found.count()) + " instances.");
      count = found.count();
      return found;
    };
    const auto moved = accessor("TRANSLATION", 3), turned = accessor("ROTATION", 4), scaled = accessor("SCALE", 3);
    if (!count) return add(here);
    if (*count > limits_.nodes) too_many_nodes();
    for (uint64_t i = 0; i < *count; ++i) {
      double t[3] = {0, 0, 0}, q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1};
      if (moved) moved->read(i, t);
      if (turned) turned->read(i, q);
      if (scaled) scaled->read(i, s);
      add(product(here, matrix_of(t, q, s)));
    }
  }

  void add_mesh(uint64_t index) {
    const Json& mesh = document_.item("meshes", index, "meshes");
    const std::string where = place("meshes", index);
    const Json* const primitives = member(mesh, "primitives");
    if (!primitives || !primitives->is_array()) gltf_fault(where + " has no primitives.");
    std::vector<std::vector<double>> weights;  // by placement
    size_t targets = 0;
    const std::vector<double> usual = weights_of(mesh, where);
    for (const Placement& at : placements_[index]) {
      weights.push_back(at.node ? weights_of(document_.item("nodes", *at.node, where), place("nodes", *at.node))
                                : usual);
      targets = std::max(targets, weights.back().size());
    }
    for (size_t i = 0; i < primitives->size(); ++i) {
      const Json& primitive = (*primitives)[i];
      const std::string here = where + ".primitives[" + std::to_string(i) + "]";
      if (!has_triangles(primitive, here)) {
        ++not_surfaces_;
        continue;
      }
      const uint32_t material = materials_.of(whole_number(primitive, "material", here), here + ".material");
      const uint64_t most = limits_.triangles - mesh_.triangle_count();
      GltfPart part = read_primitive(
          document_, primitive, here,
          {materials_.uv_sets(material), targets, most, [this](const std::string& words) { warn(words); }});
      const uint64_t copies = placements_[index].size();
      if (part.indices.size() / 3 * copies > most ||
          part.positions.size() / 3 * copies > limits_.vertices - mesh_.vertex_count())
        throw GltfFault{{ErrorCode::out_of_memory, ""}};
      bad_indices_ += part.bad_indices;
      reserve(part, copies);
      for (size_t p = 0; p < copies; ++p) append(part, material, placements_[index][p].to_world, weights[p]);
    }
  }

  // Reserves room for `more` elements, but at least doubles the capacity. Otherwise many small parts would be copied
  // again and again.
  template <class T>
  static void make_room(std::vector<T>& list, uint64_t more) {
    if (list.size() + more > list.capacity()) list.reserve(std::max<uint64_t>(list.size() + more, list.capacity() * 2));
  }
  void reserve(const GltfPart& part, uint64_t copies) {
    make_room(mesh_.positions, part.positions.size() * copies);
    make_room(mesh_.indices, part.indices.size() * copies);
    make_room(mesh_.triangle_material, part.indices.size() / 3 * copies);
  }

  void append(const GltfPart& part, uint32_t material, const glm::dmat4x3& m, const std::vector<double>& weights) {
    const size_t first = mesh_.vertex_count(), count = part.positions.size() / 3;
    finite_.assign(count, true);
    for (size_t v = 0; v < count; ++v) {
      glm::dvec3 p = glm::make_vec3(&part.positions[v * 3]);
      for (size_t t = 0; t < std::min(weights.size(), part.targets.size()); ++t)
        if (!part.targets[t].empty()) p += weights[t] * glm::dvec3(glm::make_vec3(&part.targets[t][v * 3]));
      const glm::vec3 out(m * glm::dvec4(p, 1));
      finite_[v] = std::isfinite(out.x) && std::isfinite(out.y) && std::isfinite(out.z);
      for (int r = 0; r < 3; ++r) mesh_.positions.push_back(finite_[v] ? out[r] : 0);
    }
    for (size_t set = 0; set < part.uvs.size(); ++set) {
      const std::vector<float>& from = part.uvs[set];
      if (from.empty()) continue;
      if (uvs_.size() <= set) uvs_.resize(set + 1);
      uvs_[set].resize(first * 2);
      for (size_t v = 0; v < count; ++v) {
        const bool good = std::isfinite(from[v * 2]) && std::isfinite(from[v * 2 + 1]);
        for (size_t k = 0; k < 2; ++k) uvs_[set].push_back(good ? from[v * 2 + k] : 0);
      }
    }
    if (!part.colors.empty()) {
      mesh_.colors.resize(first * 4, 255);
      mesh_.colors.insert(mesh_.colors.end(), part.colors.begin(), part.colors.end());
    }
    for (size_t t = 0; t < part.indices.size(); t += 3) {
      const uint32_t* const i = part.indices.data() + t;
      if (!finite_[i[0]] || !finite_[i[1]] || !finite_[i[2]]) {
        ++not_finite_;
        continue;
      }
      for (int k = 0; k < 3; ++k) mesh_.indices.push_back(uint32_t(first + i[k]));
      mesh_.triangle_material.push_back(material);
    }
  }

  void check_result() {
    if (mesh_.indices.empty()) {
      if (not_finite_ > 0) gltf_fault("every triangle has an infinite or undefined position.");
      if (bad_indices_ > 0) gltf_fault("it has no faces: every one refers to a vertex that is not there.");
      gltf_fault("it has no faces; Quarry reads surfaces, not points or lines, from meshes.");
    }
    if (not_finite_ > 0)
      warn(std::to_string(not_finite_) + " triangles with an infinite or undefined position are left out");
    if (bad_indices_ > 0)
      warn(std::to_string(bad_indices_) + " faces that refer to vertices that are not there are left out");
    if (not_surfaces_ > 0) warn(std::to_string(not_surfaces_) + " primitives of points or lines are left out");
    if (!mesh_.colors.empty()) mesh_.colors.resize(mesh_.vertex_count() * 4, 255);
  }

  // Joins all UV sets into one array, set after set, for as many sets as the textures use.
  void join_uvs() {
    if (uvs_.empty()) {
      if (!mesh_.images.empty()) warn("it has textures but no texture coordinates; the textures are left out");
      for (MeshMaterial& m : mesh_.materials) m.base_color_image = m.metal_rough_image = m.emission_image = -1;
      mesh_.images.clear();
      return;
    }
    size_t sets = uvs_.size();
    for (uint32_t m = 0; m < mesh_.materials.size(); ++m) sets = std::max(sets, materials_.uv_sets(m).size());
    const size_t each = mesh_.vertex_count() * 2;
    mesh_.uvs = std::move(uvs_[0]);
    mesh_.uvs.resize(each * sets);
    for (size_t set = 1; set < uvs_.size(); ++set)
      std::copy(uvs_[set].begin(), uvs_[set].end(), mesh_.uvs.begin() + int64_t(each * set));
  }

  GltfDocument document_;
  Mesh mesh_;
  GltfMaterials materials_;
  std::vector<std::string>& warnings_;
  GltfLimits limits_;
  glm::dmat4x3 root_{1};
  std::vector<std::vector<Placement>> placements_;  // by mesh
  uint64_t placed_ = 0;
  std::vector<std::vector<float>> uvs_;  // by set
  std::vector<bool> finite_;
  uint64_t not_finite_ = 0, bad_indices_ = 0, not_surfaces_ = 0;
};

}  // namespace

Result<Mesh> read_gltf(std::vector<uint8_t> file, bool z_up, const GltfOutside& outside,
                       std::vector<std::string>& warnings, const GltfLimits& limits) {
  try {
    return GltfScene(std::move(file), z_up, outside, warnings, limits).read();
  } catch (const GltfFault& fault) {
    return tl::unexpected(fault.error);
  }
}

}  // namespace quarry::mesh_reader
