// SPDX-License-Identifier: Apache-2.0
// assimp_scene.cpp - converts Assimp's scene to one Mesh: node transforms applied, instances expanded, materials and
// textures gathered. It runs in quarry-mesh-reader only. Assimp's output is not trusted: indices, counts and numbers
// are checked before use.
#include <assimp/DefaultIOSystem.h>
#include <assimp/GltfMaterial.h>
#include <assimp/config.h>
#include <assimp/material.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>

#include <algorithm>
#include <assimp/Importer.hpp>
#include <cmath>
#include <cstring>

#include "voxel/foreign/gltf/affine.hpp"
#include "voxel/foreign/gltf/reader.hpp"
#include "voxel/foreign/meshes/collada.hpp"
#include "voxel/foreign/meshes/ply.hpp"
#include "voxel/foreign/meshes/readers.hpp"
#include "voxel/foreign/meshes/textures.hpp"
#include "voxel/foreign/pipe/vertex_color.hpp"

namespace quarry::mesh_reader {
namespace {
namespace fs = std::filesystem;

std::string lower_extension(const fs::path& file) {
  std::string text = file.extension().string();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

// Records the files that the library opens or looks for, besides the mesh's own.
class NotingFiles final : public Assimp::DefaultIOSystem {
 public:
  explicit NotingFiles(ReferencedFiles& files) : files_(files) {}
  bool Exists(const char* file) const override {
    files_.note(file);
    return DefaultIOSystem::Exists(file);
  }
  Assimp::IOStream* Open(const char* file, const char* mode) override {
    files_.note(file);
    return DefaultIOSystem::Open(file, mode);
  }

 private:
  ReferencedFiles& files_;
};

class SceneReader {
 public:
  SceneReader(const fs::path& file, const std::string& up, std::vector<std::string>& warnings, ReferencedFiles& files)
      : file_(file), extension_(lower_extension(file)), files_(files), textures_(file, mesh_, warnings, files) {
    // 3MF is z-up by its specification. glTF is y-up. FBX and DAE state their axis, and Assimp turns them. Other
    // formats state none and are read as y-up.
    z_up_ = up == "z" || (up == "auto" && extension_ == ".3mf");
    linear_colors_ = extension_ == ".gltf" || extension_ == ".glb";
  }

  Result<Mesh> read() {
    Assimp::Importer importer;
    importer.SetIOHandler(new NotingFiles(files_));  // the importer owns it now
    importer.SetPropertyInteger(AI_CONFIG_PP_SBP_REMOVE, aiPrimitiveType_POINT | aiPrimitiveType_LINE);
    importer.SetPropertyBool(AI_CONFIG_IMPORT_NO_SKELETON_MESHES, true);
    scene_ =
        importer.ReadFile(file_.string(), aiProcess_Triangulate | aiProcess_SortByPType | aiProcess_TransformUVCoords);
    if (!scene_) return failed(importer.GetErrorString());
    if (!scene_->mRootNode) return fail(ErrorCode::malformed_input, "it holds no scene.");
    gather_materials();
    const auto expanded = expand_nodes();
    // The scene must not be destroyed: malformed files leave it in states that crash its destructor.
    importer.GetOrphanedScene();
    QRY_TRY(expanded);
    if (!linear_colors_) textures_.use_beside();
    textures_.forget_without_uvs();
    return std::move(mesh_);
  }

 private:
  Result<Mesh> failed(std::string message) const {
    if (message.find("bad_alloc") != std::string::npos || message.find("allocation failed") != std::string::npos)
      return fail(ErrorCode::out_of_memory, "");
    if (message.find("has no faces") != std::string::npos)
      return fail(ErrorCode::malformed_input, "it has no faces (" + message + ").");
    if (message.find("recursive reference") != std::string::npos)
      return fail(ErrorCode::malformed_input,
                  "its nodes refer to themselves, so the scene has no end (" + message + ").");
    if (message.empty()) message = "no reason given";
    while (!message.empty() && message.back() == '.') message.pop_back();
    return fail(ErrorCode::malformed_input, "the mesh library cannot read it: " + message + ".");
  }

  void warn(const std::string& text) { textures_.warn(text); }

  int32_t image_index(const std::string& name) {
    if (const auto known = textures_.known(name)) return *known;
    std::string why;
    if (const aiTexture* embedded = scene_->GetEmbeddedTexture(name.c_str())) {
      if (embedded->mHeight == 0) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(embedded->pcData);
        auto image = decode_image({bytes, embedded->mWidth}, why);
        return textures_.keep(name, std::move(image), why);
      }
      const uint64_t pixels = uint64_t(embedded->mWidth) * embedded->mHeight;
      if (embedded->mWidth == 0 || pixels > (uint64_t(1) << 27))
        return textures_.keep(name, std::nullopt, "its size is not usable");
      Image image{embedded->mWidth, embedded->mHeight, {}};
      image.rgba.reserve(pixels * 4);
      for (uint64_t i = 0; i < pixels; ++i) {
        const aiTexel& t = embedded->pcData[i];
        image.rgba.insert(image.rgba.end(), {t.r, t.g, t.b, t.a});
      }
      return textures_.keep(name, std::move(image), why);
    }
    return textures_.from_file(name);
  }

  struct Texture {
    bool named = false;  // the file names one, even if it could not be read
    int32_t image = -1;
    unsigned uv_channel = 0;
    Wrap wrap_u = Wrap::repeat, wrap_v = Wrap::repeat;
  };
  Texture texture(const aiMaterial& material, std::initializer_list<aiTextureType> types) {
    for (const aiTextureType type : types) {
      aiString path;
      unsigned uv = 0;
      aiTextureMapMode modes[2] = {aiTextureMapMode_Wrap, aiTextureMapMode_Wrap};
      if (material.GetTextureCount(type) == 0 ||
          material.GetTexture(type, 0, &path, nullptr, &uv, nullptr, nullptr, modes) != aiReturn_SUCCESS)
        continue;
      const auto wrap = [](aiTextureMapMode mode) {
        return mode == aiTextureMapMode_Mirror ? Wrap::mirror
               : mode == aiTextureMapMode_Wrap ? Wrap::repeat
                                               : Wrap::clamp;
      };
      return {true, image_index(path.C_Str()), uv < AI_MAX_NUMBER_OF_TEXTURECOORDS ? uv : 0, wrap(modes[0]),
              wrap(modes[1])};
    }
    return {};
  }

  void gather_materials() {
    for (unsigned i = 0; i < scene_->mNumMaterials; ++i) {
      const aiMaterial& source = *scene_->mMaterials[i];
      MeshMaterial m;
      aiString name;
      if (source.Get(AI_MATKEY_NAME, name) == aiReturn_SUCCESS) m.name = name.C_Str();
      const Texture base = texture(source, {aiTextureType_BASE_COLOR, aiTextureType_DIFFUSE});
      m.base_color_image = base.image;
      m.base_color_place.wrap_u = m.metal_rough_place.wrap_u = m.emission_place.wrap_u = base.wrap_u;
      m.base_color_place.wrap_v = m.metal_rough_place.wrap_v = m.emission_place.wrap_v = base.wrap_v;
      aiColor4D color(1, 1, 1, 1);
      if (source.Get(AI_MATKEY_BASE_COLOR, color) == aiReturn_SUCCESS ||
          source.Get(AI_MATKEY_COLOR_DIFFUSE, color) == aiReturn_SUCCESS) {
        // Formats older than glTF store colours as displayed. Exporters write black under a texture for "only the
        // texture".
        if (!linear_colors_)
          color = aiColor4D(srgb_to_linear(color.r), srgb_to_linear(color.g), srgb_to_linear(color.b), color.a);
        if (!linear_colors_ && base.named && color.r + color.g + color.b == 0) color = aiColor4D(1, 1, 1, color.a);
        const float values[4] = {color.r, color.g, color.b, color.a};
        std::copy(values, values + 4, m.base_color);
      }
      float number = 0;
      if (linear_colors_) {
        m.roughness = m.metalness = 1;  // glTF's defaults
      } else if (source.Get(AI_MATKEY_SHININESS, number) == aiReturn_SUCCESS && number > 0) {
        m.roughness = std::sqrt(2 / (number + 2));  // Blinn-Phong exponent to roughness
      }
      if (source.Get(AI_MATKEY_ROUGHNESS_FACTOR, number) == aiReturn_SUCCESS) m.roughness = number;
      if (source.Get(AI_MATKEY_METALLIC_FACTOR, number) == aiReturn_SUCCESS) m.metalness = number;
      aiColor3D glow(0, 0, 0);
      if (source.Get(AI_MATKEY_COLOR_EMISSIVE, glow) == aiReturn_SUCCESS) {
        m.emission[0] = glow.r;
        m.emission[1] = glow.g;
        m.emission[2] = glow.b;
      }
      if (linear_colors_) m.metal_rough_image = texture(source, {aiTextureType_UNKNOWN, aiTextureType_METALNESS}).image;
      if (glow.r > 0 || glow.g > 0 || glow.b > 0) m.emission_image = texture(source, {aiTextureType_EMISSIVE}).image;
      uv_channel_.push_back(base.uv_channel);
      mesh_.materials.push_back(std::move(m));
    }
    if (mesh_.materials.empty()) {
      mesh_.materials.emplace_back();
      uv_channel_.push_back(0);
    }
  }

  Result<void> expand_nodes() {
    struct Item {
      const aiNode* node;
      glm::dmat4x3 to_world;
    };
    std::vector<Item> stack;
    stack.push_back({scene_->mRootNode, z_up_ ? kZUp : glm::dmat4x3(1)});
    uint64_t nodes = 0, triangles_given = 0;
    while (!stack.empty()) {
      const Item item = stack.back();
      stack.pop_back();
      if (++nodes > kMaxNodes)
        return fail(ErrorCode::malformed_input, "it has more than " + std::to_string(kMaxNodes) + " nodes.");
      const aiMatrix4x4& t = item.node->mTransformation;
      const glm::dmat4x3 here =
          product(item.to_world, {t.a1, t.b1, t.c1, t.a2, t.b2, t.c2, t.a3, t.b3, t.c3, t.a4, t.b4, t.c4});
      for (unsigned i = 0; i < item.node->mNumMeshes; ++i) {
        if (item.node->mMeshes[i] >= scene_->mNumMeshes)
          return fail(ErrorCode::malformed_input, "a node refers to a mesh that is not there.");
        const aiMesh& part = *scene_->mMeshes[item.node->mMeshes[i]];
        triangles_given += part.mNumFaces;
        if (triangles_given > kMaxTriangles || mesh_.vertex_count() + part.mNumVertices > kMaxVertices)
          return fail(ErrorCode::out_of_memory, "");
        append(part, here);
      }
      for (unsigned i = item.node->mNumChildren; i-- > 0;)
        if (item.node->mChildren[i]) stack.push_back({item.node->mChildren[i], here});
    }
    if (mesh_.indices.empty()) {
      if (not_finite_ > 0)
        return fail(ErrorCode::malformed_input, "every triangle has an infinite or undefined position.");
      if (bad_indices_ > 0) return fail(ErrorCode::malformed_input, "every face refers to a vertex that is not there.");
      return fail(ErrorCode::malformed_input,
                  "it has no faces; Quarry reads surfaces, not points or lines, from meshes.");
    }
    if (not_finite_ > 0)
      warn(std::to_string(not_finite_) + " triangles with an infinite or undefined position are left out");
    if (bad_indices_ > 0)
      warn(std::to_string(bad_indices_) + " faces that refer to vertices that are not there are left out");
    return {};
  }

  void append(const aiMesh& part, const glm::dmat4x3& m) {
    if (!part.mVertices || !part.mFaces) return;
    const uint32_t material = part.mMaterialIndex < mesh_.materials.size() ? part.mMaterialIndex : 0;
    const size_t first = mesh_.vertex_count(), count = part.mNumVertices;
    std::vector<bool> finite(count);
    mesh_.positions.reserve((first + count) * 3);
    for (size_t v = 0; v < count; ++v) {
      const aiVector3D& p = part.mVertices[v];
      const glm::vec3 out(m * glm::dvec4(p.x, p.y, p.z, 1));
      finite[v] = std::isfinite(out.x) && std::isfinite(out.y) && std::isfinite(out.z);
      for (int r = 0; r < 3; ++r) mesh_.positions.push_back(finite[v] ? out[r] : 0);
    }
    const aiVector3D* uv = part.mTextureCoords[uv_channel_[material]];
    if (!uv) uv = part.mTextureCoords[0];
    if (uv || !mesh_.uvs.empty()) {
      mesh_.uvs.resize(first * 2);
      for (size_t v = 0; v < count; ++v) {
        const bool good = uv && std::isfinite(uv[v].x) && std::isfinite(uv[v].y);
        mesh_.uvs.push_back(good ? uv[v].x : 0);
        mesh_.uvs.push_back(good ? 1 - uv[v].y : 0);  // Assimp's v = 0 is the bottom
      }
    }
    const aiColor4D* colors = part.mColors[0];
    if (colors || !mesh_.colors.empty()) {
      mesh_.colors.resize(first * 4, 255);
      for (size_t v = 0; v < count; ++v) {
        const aiColor4D c = colors ? colors[v] : aiColor4D(1, 1, 1, 1);
        for (const float value : {c.r, c.g, c.b})
          mesh_.colors.push_back(linear_colors_ ? linear_to_srgb_byte(value) : to_byte(value));
        mesh_.colors.push_back(to_byte(c.a));
      }
      // Assimp invents a grey material for formats with vertex colours. It must not darken those colours.
      if (colors && !linear_colors_ && mesh_.materials[material].base_color_image < 0)
        std::fill(mesh_.materials[material].base_color, mesh_.materials[material].base_color + 3, 1.0f);
    }
    for (unsigned f = 0; f < part.mNumFaces; ++f) {
      const aiFace& face = part.mFaces[f];
      if (face.mNumIndices != 3 || !face.mIndices) continue;
      const unsigned* i = face.mIndices;
      if (i[0] >= count || i[1] >= count || i[2] >= count) {
        ++bad_indices_;
      } else if (!finite[i[0]] || !finite[i[1]] || !finite[i[2]]) {
        ++not_finite_;
      } else {
        for (int k = 0; k < 3; ++k) mesh_.indices.push_back(uint32_t(first + i[k]));
        mesh_.triangle_material.push_back(material);
      }
    }
  }

  fs::path file_;
  std::string extension_;
  ReferencedFiles& files_;
  bool z_up_ = false, linear_colors_ = false;
  const aiScene* scene_ = nullptr;
  Mesh mesh_;
  MeshTextures textures_;
  std::vector<unsigned> uv_channel_;  // of each material
  uint64_t not_finite_ = 0, bad_indices_ = 0;
};

}  // namespace

Result<Mesh> read_file(const fs::path& file, const std::string& up, std::vector<std::string>& warnings,
                       ReferencedFiles& files) {
  if (auto gltf = read_gltf_file(file, up == "z", warnings, files)) return std::move(*gltf);
  if (lower_extension(file) == ".dae") QRY_TRY(check_collada(file));
  if (is_ply(file)) return read_ply(file, up == "z", warnings, files);
  return SceneReader(file, up, warnings, files).read();
}

}  // namespace quarry::mesh_reader
