// SPDX-License-Identifier: Apache-2.0
// ply.cpp - converts the elements and properties of a PLY file to a mesh. ply/header.hpp and ply/body.hpp read the
// header and the encodings. Counts are checked against the file's length before memory is allocated for them.
#include "voxel/foreign/meshes/ply.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "voxel/foreign/meshes/polygon.hpp"
#include "voxel/foreign/meshes/textures.hpp"
#include "voxel/io/files/byte_reader.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/ply/body.hpp"

namespace quarry::mesh_reader {
namespace {
namespace fs = std::filesystem;
using io::PlyElement, io::PlyType;

constexpr uint64_t kMaxPlyBytes = uint64_t(1) << 40;
constexpr uint64_t kMaxPlyTriangles = (1u << 30) - 1, kMaxPlyVertices = 0xFFFFFFFEull;  // what a Mesh may hold
constexpr uint64_t kMaxPlyCorners = 1u << 16;  // of one face; a face with reflex corners takes quadratic time
constexpr size_t kMaxPlyMaterials = 4096;

// The places of an element's r, g, b and a; -1 if it has none.
struct PlyColor {
  std::array<int, 4> at{-1, -1, -1, -1};
  explicit PlyColor(const PlyElement& e)
      : at{e.find({"red", "diffuse_red", "r"}), e.find({"green", "diffuse_green", "g"}),
           e.find({"blue", "diffuse_blue", "b"}), e.find({"alpha", "diffuse_alpha"})} {}
  bool there() const { return at[0] >= 0 && at[1] >= 0 && at[2] >= 0; }
  std::array<uint8_t, 4> of(const PlyElement& e, const std::vector<double>& row) const {
    std::array<uint8_t, 4> rgba{255, 255, 255, 255};
    for (size_t c = 0; c < 4; ++c)
      if (at[c] >= 0) rgba[c] = io::ply_channel(row[size_t(at[c])], e.properties[size_t(at[c])].type);
    return rgba;
  }
};

float linear_of_byte(uint8_t srgb) {
  const float value = float(srgb) / 255;
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

// The attributes that a face gives a corner: texture coordinates and the face's colour.
struct PlyCorner {
  std::array<float, 2> uv{};
  std::array<uint8_t, 4> rgba{255, 255, 255, 255};
};
struct PlyCornerKey {
  uint32_t vertex;
  PlyCorner corner;
  // The comparison is bitwise, so that a NaN equals itself.
  bool operator==(const PlyCornerKey& b) const {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    return vertex == b.vertex && std::memcmp(&corner, &b.corner, sizeof corner) == 0;
  }
};
struct PlyCornerHash {
  size_t operator()(const PlyCornerKey& k) const {
    uint64_t h = k.vertex;
    for (const uint32_t part : {std::bit_cast<uint32_t>(k.corner.uv[0]), std::bit_cast<uint32_t>(k.corner.uv[1]),
                                std::bit_cast<uint32_t>(k.corner.rgba)}) {
      h = (h ^ part) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    }
    return size_t(h);
  }
};

class PlyReader {
 public:
  PlyReader(io::BufferedReader& bytes, const fs::path& file, bool z_up, std::vector<std::string>& warnings,
            ReferencedFiles& files)
      : bytes_(bytes), z_up_(z_up), textures_(file, mesh_, warnings, files) {}

  Result<Mesh> read() {
    auto header = io::read_ply_header(bytes_.peek(io::kPlyHeaderBytes));
    QRY_TRY(bytes_.good());
    QRY_TRY(header);
    header_ = std::move(*header);
    QRY_TRY(look_at_elements());
    QRY_TRY(walk(false));
    // This reads the faces that precede the elements they refer to.
    if (faces_waited_) QRY_TRY(walk(true));
    QRY_TRY(anything_left());
    if (mesh_.materials.empty()) mesh_.materials.emplace_back();
    if (mesh_.triangle_material.empty()) mesh_.triangle_material.resize(mesh_.triangle_count());
    name_textures();
    for (MeshMaterial& m : mesh_.materials)
      // The colours are already there.
      if (!mesh_.colors.empty() && m.base_color_image < 0) std::fill(m.base_color, m.base_color + 3, 1.0f);
    textures_.use_beside();
    textures_.forget_without_uvs();
    return std::move(mesh_);
  }

 private:
  static tl::unexpected<Error> bad(size_t at, const std::string& what) {
    return fail(ErrorCode::malformed_input, io::at_byte(at) + what);
  }

  // Finds everything that is known before the body is read.
  Result<void> look_at_elements() {
    vertices_ = header_.find("vertex");
    if (!vertices_ || vertices_->count == 0) return bad(header_.body_at, "expected vertices, found none");
    if (header_.faces() == 0)
      return fail(ErrorCode::malformed_input,
                  "it has no faces; Quarry reads surfaces, not points or lines, from meshes.");
    QRY_TRY(io::check_ply_counts(header_, bytes_.size()));
    if (vertices_->count > kMaxPlyVertices) return fail(ErrorCode::out_of_memory, "");
    position_ = {vertices_->find({"x"}), vertices_->find({"y"}), vertices_->find({"z"})};
    for (const int p : position_)
      if (p < 0) return bad(vertices_->at, "expected the properties x, y and z of the vertices");
    vertex_uv_ = {vertices_->find({"u", "s", "tx", "texture_u"}), vertices_->find({"v", "t", "ty", "texture_v"})};
    for (const PlyElement& e : header_.elements) {
      if (e.name != "face" && e.name != "tristrips") continue;
      int indices = e.find({"vertex_indices", "vertex_index"}, true);
      for (size_t p = 0; p < e.properties.size() && indices < 0 && e.name == "tristrips"; ++p)
        if (e.properties[p].length) indices = int(p);
      if (indices < 0 && e.count > 0) return bad(e.at, "expected a list 'vertex_indices' of the faces");
    }
    return {};
  }

  // Reads the elements in file order. Vertices and materials are needed first, so faces that precede them wait for a
  // second walk. It ends after the last element that may hold such faces.
  Result<void> walk(bool second) {
    io::PlyBody body(header_, bytes_);
    bytes_.seek(header_.body_at);
    size_t first_reader = 0;
    for (size_t i = 0; i < header_.elements.size(); ++i)
      if (&header_.elements[i] == vertices_ || header_.elements[i].name == "material") first_reader = i;
    for (size_t i = 0; i < header_.elements.size(); ++i) {
      const PlyElement& e = header_.elements[i];
      const bool faces = e.name == "face" || e.name == "tristrips", early = i < first_reader;
      if (second && !early) return {};
      Result<void> done;
      if (faces && early && !second) {
        faces_waited_ = true;
        done = passed_over(body, e);
      } else if (faces) {
        done = e.name == "face" ? read_faces(body, e) : read_strips(body, e);
      } else if (second) {
        done = passed_over(body, e);
      } else if (&e == vertices_) {
        done = read_vertices(body);
      } else if (e.name == "material") {
        done = read_materials(body, e);
      } else {
        done = passed_over(body, e);
      }
      QRY_TRY(done);
    }
    return {};
  }

  static Result<void> passed_over(io::PlyBody& body, const PlyElement& e) {
    if (!body.skip(e)) return tl::unexpected(body.error());
    return {};
  }

  Result<void> read_vertices(io::PlyBody& body) {
    const PlyElement& e = *vertices_;
    const PlyColor color(e);
    const bool with_uv = vertex_uv_[0] >= 0 && vertex_uv_[1] >= 0;
    std::vector<double> row(e.properties.size());
    mesh_.positions.reserve(e.count * 3);
    finite_.reserve(e.count);
    if (with_uv) mesh_.uvs.reserve(e.count * 2);
    if (color.there()) mesh_.colors.reserve(e.count * 4);
    for (uint64_t i = 0; i < e.count; ++i) {
      if (!body.read(e, i, row.data())) return tl::unexpected(body.error());
      const float x = float(row[size_t(position_[0])]), y = float(row[size_t(position_[1])]),
                  z = float(row[size_t(position_[2])]);
      const bool finite = std::isfinite(x) && std::isfinite(y) && std::isfinite(z);
      finite_.push_back(finite);
      const std::array<float, 3> place = z_up_ ? std::array<float, 3>{x, z, -y} : std::array<float, 3>{x, y, z};
      for (const float value : place) mesh_.positions.push_back(finite ? value : 0);
      if (with_uv) put_uv(mesh_.uvs, uv_of(row[size_t(vertex_uv_[0])], row[size_t(vertex_uv_[1])]));
      if (!color.there()) continue;
      const auto rgba = color.of(e, row);
      mesh_.colors.insert(mesh_.colors.end(), rgba.begin(), rgba.end());
    }
    return {};
  }

  Result<void> read_materials(io::PlyBody& body, const PlyElement& e) {
    const PlyColor color(e);
    const int shininess = e.find({"specular_power"});
    std::vector<double> row(e.properties.size());
    for (uint64_t i = 0; i < e.count; ++i) {
      if (!body.read(e, i, row.data())) return tl::unexpected(body.error());
      if (mesh_.materials.size() == kMaxPlyMaterials)
        return fail(ErrorCode::unsupported,
                    io::at_byte(e.at) + "the file has more than " + std::to_string(kMaxPlyMaterials) + " materials");
      MeshMaterial m;
      if (color.there()) {
        const auto rgba = color.of(e, row);
        for (size_t c = 0; c < 3; ++c) m.base_color[c] = linear_of_byte(rgba[c]);
        m.base_color[3] = float(rgba[3]) / 255;
      }
      // Blinn-Phong exponent to roughness.
      if (shininess >= 0 && row[size_t(shininess)] > 0)
        m.roughness = float(std::sqrt(2 / (row[size_t(shininess)] * 15 + 2)));
      mesh_.materials.push_back(std::move(m));
    }
    return {};
  }

  Result<void> read_faces(io::PlyBody& body, const PlyElement& e) {
    const auto indices = size_t(e.find({"vertex_indices", "vertex_index"}, true));
    const auto texcoords = size_t(e.find({"texcoord"}, true));
    const int material_index = e.find({"material_index"}), texture_number = e.find({"texnumber"});
    const PlyColor color(e);
    const size_t count = size_t(vertices_->count);
    face_colors_ = color.there() && mesh_.colors.empty();  // vertex colours are finer than face colours
    face_uvs_ = texcoords != size_t(-1);
    if (face_colors_) mesh_.colors.resize(count * 4, 255);
    // Faces without attributes keep those of the vertex.
    if (face_colors_ || face_uvs_) taken_.resize(count, face_uvs_ && !mesh_.uvs.empty());
    const bool made_uvs = face_uvs_ && mesh_.uvs.empty();
    if (made_uvs) mesh_.uvs.resize(count * 2);
    std::vector<double> row(e.properties.size()), coordinates;
    std::vector<double> corners;
    const io::PlyBody::Item item = [&](size_t property, uint64_t number, double value) {
      if (number >= kMaxPlyCorners * 2) return;
      if (property == indices) corners.push_back(value);
      else if (property == texcoords) coordinates.push_back(value);
    };
    for (uint64_t i = 0; i < e.count; ++i) {
      corners.clear();
      coordinates.clear();
      const uint64_t at = bytes_.at();
      if (!body.read(e, i, row.data(), item)) return tl::unexpected(body.error());
      if (corners.size() > kMaxPlyCorners)
        return fail(ErrorCode::unsupported, io::at_byte(at) + "face " + std::to_string(i) + " has " +
                                                std::to_string(uint64_t(row[indices])) + " corners; at most " +
                                                std::to_string(kMaxPlyCorners) + " are read");
      face_corner_.rgba = face_colors_ ? color.of(e, row) : PlyCorner{}.rgba;
      material_ = material_index >= 0                                       ? row[size_t(material_index)]
                  : texture_number >= 0 && header_.texture_files.size() > 1 ? row[size_t(texture_number)]
                                                                            : 0;
      QRY_TRY(take_face(corners, coordinates));
    }
    if (made_uvs && !some_coordinates_) mesh_.uvs.clear();
    return {};
  }

  // Takes one face. Its corners and texture coordinates are as in the file.
  Result<void> take_face(const std::vector<double>& corners, const std::vector<double>& coordinates) {
    if (corners.size() < 3) return {};  // points and edges
    face_.clear();
    for (const double c : corners) {
      if (!(c >= 0) || c >= double(vertices_->count) || c != std::floor(c)) {
        ++bad_indices_;
        return {};
      }
      face_.push_back(uint32_t(c));
    }
    const bool with_uv = face_uvs_ && coordinates.size() == corners.size() * 2;
    if (face_uvs_ && !with_uv && !coordinates.empty()) ++bad_coordinates_;
    some_coordinates_ = some_coordinates_ || with_uv;
    local_.clear();
    if (face_.size() == 3) {
      local_ = {0, 1, 2};
    } else {
      places_.clear();
      for (const uint32_t v : face_)
        places_.push_back(
            {finite_[v] ? mesh_.positions[v * 3] : NAN, mesh_.positions[v * 3 + 1], mesh_.positions[v * 3 + 2]});
      triangulate(places_, local_);
    }
    for (size_t t = 0; t < local_.size(); t += 3) {
      std::array<uint32_t, 3> triangle{};
      for (size_t k = 0; k < 3; ++k) {
        const size_t c = local_[t + k];
        triangle[k] = face_[c];
        if (!finite_[face_[c]] || (!face_colors_ && !face_uvs_)) continue;
        PlyCorner corner = face_corner_;
        if (with_uv) corner.uv = uv_of(coordinates[c * 2], coordinates[c * 2 + 1]);
        if (!with_uv && !mesh_.uvs.empty()) corner.uv = {mesh_.uvs[face_[c] * 2], mesh_.uvs[face_[c] * 2 + 1]};
        QRY_TRY_ASSIGN(const auto own, vertex_of(face_[c], corner));
        triangle[k] = own;
      }
      if (!finite_[face_[local_[t]]] || !finite_[face_[local_[t + 1]]] || !finite_[face_[local_[t + 2]]]) ++not_finite_;
      else QRY_TRY(put_triangle(triangle));
    }
    return {};
  }

  // Returns a vertex at the place of `vertex` with the attributes of `corner`. The first corner uses `vertex` itself.
  // Each different corner after it gets a copy.
  Result<uint32_t> vertex_of(uint32_t vertex, const PlyCorner& corner) {
    const auto [known, is_new] = copies_.try_emplace({vertex, corner}, vertex);
    if (!is_new) return known->second;
    if (taken_[vertex]) {
      if (mesh_.vertex_count() >= kMaxPlyVertices) return fail(ErrorCode::out_of_memory, "");
      known->second = uint32_t(mesh_.vertex_count());
      for (size_t k = 0; k < 3; ++k) mesh_.positions.push_back(mesh_.positions[vertex * 3 + k]);
      for (size_t k = 0; k < 2 && !mesh_.uvs.empty(); ++k) mesh_.uvs.push_back(0);
      for (size_t k = 0; k < 4 && !mesh_.colors.empty(); ++k) mesh_.colors.push_back(mesh_.colors[vertex * 4 + k]);
    }
    taken_[vertex] = true;
    const size_t at = known->second;
    if (!mesh_.uvs.empty()) std::copy(corner.uv.begin(), corner.uv.end(), mesh_.uvs.begin() + ptrdiff_t(at * 2));
    if (face_colors_) std::copy(corner.rgba.begin(), corner.rgba.end(), mesh_.colors.begin() + ptrdiff_t(at * 4));
    return known->second;
  }

  // Reads strips. Each vertex makes a triangle with the two before it. Every second triangle is flipped. -1 begins a
  // new strip.
  Result<void> read_strips(io::PlyBody& body, const PlyElement& e) {
    if (e.count == 0) return {};  // an empty element need not have a list
    size_t indices = 0;
    const int named = e.find({"vertex_indices", "vertex_index"}, true);
    if (named >= 0) indices = size_t(named);
    else
      while (!e.properties[indices].length) ++indices;
    const PlyType type = e.properties[indices].type;
    // These values stand for -1 in unsigned types.
    const double highest = type == PlyType::u8    ? 255.0
                           : type == PlyType::u16 ? 65535.0
                           : type == PlyType::u32 ? 4294967295.0
                                                  : -1.0;
    const double count = double(vertices_->count);
    double before[2] = {-1, -1};
    bool turned = false;
    Result<void> put;
    const auto there = [&](double v) { return v >= 0 && v < count && v == std::floor(v); };
    const io::PlyBody::Item item = [&](size_t property, uint64_t number, double value) {
      if (property != indices || !put) return;
      if (number == 0) before[0] = before[1] = -1, turned = false;
      if (value == -1 || (value == highest && value >= count)) {
        before[0] = before[1] = -1;
        turned = false;
        return;
      }
      const double a = before[0], b = before[1];
      before[0] = b;
      // A missing vertex is counted once. The next two triangles that it would be part of are left out too.
      before[1] = there(value) ? value : -2;
      if (before[1] == -2) ++bad_indices_;
      if (a == -1) return;
      // Triangles with equal vertices only link one strip to the next.
      if (a != b && b != value && a != value && there(a) && there(b) && there(value)) {
        const auto x = uint32_t(turned ? b : a), y = uint32_t(turned ? a : b), z = uint32_t(value);
        if (!finite_[x] || !finite_[y] || !finite_[z]) ++not_finite_;
        else put = put_triangle({x, y, z});
      }
      turned = !turned;
    };
    material_ = 0;
    std::vector<double> row(e.properties.size());
    for (uint64_t i = 0; i < e.count; ++i) {
      if (!body.read(e, i, row.data(), item)) return tl::unexpected(body.error());
      QRY_TRY(put);
    }
    return {};
  }

  Result<void> put_triangle(const std::array<uint32_t, 3>& vertices) {
    if (mesh_.triangle_count() == kMaxPlyTriangles) return fail(ErrorCode::out_of_memory, "");
    mesh_.indices.insert(mesh_.indices.end(), vertices.begin(), vertices.end());
    const size_t known = std::max({size_t(1), mesh_.materials.size(), header_.texture_files.size()});
    mesh_.triangle_material.push_back(material_ >= 0 && material_ < double(known) ? uint32_t(material_) : 0);
    return {};
  }

  Result<void> anything_left() {
    if (mesh_.indices.empty()) {
      if (not_finite_ > 0)
        return fail(ErrorCode::malformed_input, "every triangle has an infinite or undefined position.");
      if (bad_indices_ > 0) return fail(ErrorCode::malformed_input, "every face refers to a vertex that is not there.");
      return fail(ErrorCode::malformed_input,
                  "it has no faces; Quarry reads surfaces, not points or lines, from meshes.");
    }
    if (not_finite_ > 0)
      textures_.warn(std::to_string(not_finite_) + " triangles with an infinite or undefined position are left out");
    if (bad_indices_ > 0)
      textures_.warn(std::to_string(bad_indices_) + " faces that refer to vertices that are not there are left out");
    if (bad_coordinates_ > 0)
      textures_.warn(
          std::to_string(bad_coordinates_) +
          " faces have another number of texture coordinates than of corners; these coordinates are left out");
    return {};
  }

  // Reads "comment TextureFile NAME". A single texture belongs to all materials. Several textures make one material
  // each, which faces choose by number.
  void name_textures() {
    const auto& names = header_.texture_files;
    if (names.size() > mesh_.materials.size()) mesh_.materials.resize(std::min(names.size(), kMaxPlyMaterials));
    for (size_t i = 0; i < mesh_.materials.size() && !names.empty(); ++i) {
      MeshMaterial& m = mesh_.materials[i];
      m.base_color_image = textures_.from_file(names[std::min(i, names.size() - 1)]);
      // Black is written for "only the texture".
      if (m.base_color[0] + m.base_color[1] + m.base_color[2] == 0) std::fill(m.base_color, m.base_color + 3, 1.0f);
    }
    for (uint32_t& material : mesh_.triangle_material)
      if (material >= mesh_.materials.size()) material = 0;
  }

  // The file's v = 0 is the bottom row.
  static std::array<float, 2> uv_of(double u, double v) {
    const float x = float(u), y = 1 - float(v);
    return std::isfinite(x) && std::isfinite(y) ? std::array<float, 2>{x, y} : std::array<float, 2>{0, 0};
  }
  static void put_uv(std::vector<float>& uvs, const std::array<float, 2>& uv) {
    uvs.insert(uvs.end(), uv.begin(), uv.end());
  }

  io::BufferedReader& bytes_;
  bool z_up_ = false, faces_waited_ = false;
  io::PlyHeader header_;
  const PlyElement* vertices_ = nullptr;
  std::array<int, 3> position_{-1, -1, -1};
  std::array<int, 2> vertex_uv_{-1, -1};
  Mesh mesh_;
  MeshTextures textures_;
  std::vector<bool> finite_;  // of the file's vertices
  std::vector<bool> taken_;   // used if faces have attributes: whether a vertex already has those of a face
  // The state of the face that is being read.
  bool face_colors_ = false, face_uvs_ = false, some_coordinates_ = false;
  PlyCorner face_corner_;
  double material_ = 0;
  std::vector<uint32_t> face_, local_;
  std::vector<std::array<float, 3>> places_;
  std::unordered_map<PlyCornerKey, uint32_t, PlyCornerHash> copies_;
  uint64_t not_finite_ = 0, bad_indices_ = 0, bad_coordinates_ = 0;
};

}  // namespace

bool is_ply(const fs::path& file) {
  const auto head = io::read_file_head(file, 4);
  return head && head->size() == 4 && std::memcmp(head->data(), "ply", 3) == 0 &&
         ((*head)[3] == '\n' || (*head)[3] == '\r');
}

Result<Mesh> parse_ply(io::BufferedReader& bytes, const fs::path& file, bool z_up, std::vector<std::string>& warnings,
                       ReferencedFiles& files) {
  return PlyReader(bytes, file, z_up, warnings, files).read();
}

Result<Mesh> read_ply(const fs::path& file, bool z_up, std::vector<std::string>& warnings, ReferencedFiles& files) {
  QRY_TRY_ASSIGN(auto bytes, io::BufferedReader::open(file, kMaxPlyBytes));
  return parse_ply(bytes, file, z_up, warnings, files);
}

}  // namespace quarry::mesh_reader
