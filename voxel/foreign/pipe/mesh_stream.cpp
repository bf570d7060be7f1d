// SPDX-License-Identifier: Apache-2.0
// mesh_stream.cpp - the sections' records in their memory layout. The reader writes them, and the client checks them
// field by field.
#include "voxel/foreign/pipe/mesh_stream.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quarry {
namespace {

constexpr std::string_view kMagic = "QRYMESH3";
constexpr uint64_t kMaxMaterials = 1u << 20, kMaxImages = 4096, kMaxAskedFor = 1u << 14;

struct PlaceRecord {
  uint32_t wrap_u, wrap_v, uv_set;
  float m[6];
};
struct MaterialRecord {
  float base_color[4], roughness, metalness, emission[3];
  int32_t base_color_image, metal_rough_image, emission_image;
  PlaceRecord places[3];  // of base colour, metalness and roughness, emission
};
static_assert(sizeof(MaterialRecord) == 156);

Error bad_stream(const std::string& what) {
  return {ErrorCode::malformed_input, "the mesh reader sent something that is not a mesh (" + what +
                                          "); is quarry-mesh-reader of the same version?"};
}

// Frees the stream's memory of the part that was read. Without a store it is kept.
struct Dropped {
  ByteBuffer* store = nullptr;
  void operator()(std::span<const uint8_t> looked_at) const {
    if (!store) return;
    const auto begin = size_t(looked_at.data() - store->data());
    store->drop(begin, begin + looked_at.size());
  }
};

template <class T>
Result<void> take_array(std::span<const uint8_t> payload, size_t per_element, std::vector<T>& out, const char* tag,
                        const Dropped& dropped) {
  if (!out.empty()) return tl::unexpected(bad_stream(std::string("two sections ") + tag));
  if (payload.size() % (sizeof(T) * per_element) != 0)
    return tl::unexpected(bad_stream(std::string("length of section ") + tag));
  // This reserves addresses only. Memory is used piece by piece, while the stream's is freed.
  out.reserve(payload.size() / sizeof(T));
  constexpr size_t kPiece = size_t(1) << 20;
  for (size_t at = 0; at < payload.size(); at += kPiece) {
    const auto piece = payload.subspan(at, std::min(kPiece, payload.size() - at));
    const size_t had = out.size();
    out.resize(had + piece.size() / sizeof(T));
    std::memcpy(out.data() + had, piece.data(), piece.size());
    dropped(piece);
  }
  return {};
}

PlaceRecord record_of(const ImagePlace& place) {
  PlaceRecord r{uint32_t(place.wrap_u), uint32_t(place.wrap_v), place.uv_set, {}};
  std::copy(place.m, place.m + 6, r.m);
  return r;
}
Result<ImagePlace> place_of(const PlaceRecord& r) {
  if (r.wrap_u > 2 || r.wrap_v > 2) return tl::unexpected(bad_stream("a texture's wrap mode"));
  ImagePlace place{Wrap(r.wrap_u), Wrap(r.wrap_v), r.uv_set, {}};
  for (int i = 0; i < 6; ++i) place.m[i] = std::isfinite(r.m[i]) ? r.m[i] : 0;
  return place;
}

Result<void> take_material(std::span<const uint8_t> payload, Mesh& mesh) {
  if (payload.size() < sizeof(MaterialRecord) || mesh.materials.size() >= kMaxMaterials)
    return tl::unexpected(bad_stream("a material"));
  MaterialRecord r;
  std::memcpy(&r, payload.data(), sizeof r);
  MeshMaterial m;
  m.name = clean_text(payload.subspan(sizeof r));
  const auto finite = [](float value, float low, float high) {
    return std::isfinite(value) ? std::min(std::max(value, low), high) : low;
  };
  for (int i = 0; i < 4; ++i) m.base_color[i] = finite(r.base_color[i], 0, i == 3 ? 1.0f : 64.0f);
  for (int i = 0; i < 3; ++i) m.emission[i] = finite(r.emission[i], 0, 65504.0f);
  m.roughness = finite(r.roughness, 0, 1);
  m.metalness = finite(r.metalness, 0, 1);
  m.base_color_image = r.base_color_image;
  m.metal_rough_image = r.metal_rough_image;
  m.emission_image = r.emission_image;
  ImagePlace* const places[3] = {&m.base_color_place, &m.metal_rough_place, &m.emission_place};
  for (size_t i = 0; i < 3; ++i) {
    QRY_TRY_ASSIGN(const auto place, place_of(r.places[i]));
    *places[i] = place;
  }
  mesh.materials.push_back(std::move(m));
  return {};
}

Result<void> take_image(std::span<const uint8_t> payload, Mesh& mesh, const Dropped& dropped) {
  uint32_t size[2];
  if (payload.size() < sizeof size || mesh.images.size() >= kMaxImages) return tl::unexpected(bad_stream("an image"));
  std::memcpy(size, payload.data(), sizeof size);
  payload = payload.subspan(sizeof size);
  if (size[0] == 0 || size[1] == 0 || uint64_t(size[0]) * size[1] > payload.size() ||
      uint64_t(size[0]) * size[1] * 4 != payload.size())
    return tl::unexpected(bad_stream("an image's size"));
  mesh.images.push_back({size[0], size[1], {}});
  return take_array(payload, 4, mesh.images.back().rgba, "IMAG", dropped);
}

void put_accessed_files(SectionWriter& out, const AccessedFiles& accessed_files) {
  for (const std::filesystem::path& file : accessed_files) out.section("ASKD", {text_bytes(file.native())});
}

Result<void> take_accessed_files(std::span<const uint8_t> payload, AccessedFiles* accessed_files, size_t& taken) {
  const std::string path(payload.begin(), payload.end());
  if (++taken > kMaxAskedFor || path.empty() || path[0] != '/' || path.find('\0') != std::string::npos)
    return tl::unexpected(bad_stream("the name of a file"));
  if (accessed_files) accessed_files->emplace_back(path);
  return {};
}

// `sent` is called with each array after it was sent.
template <class AMesh, class Sent>
bool write_mesh(AMesh& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                const ByteSink& sink, const Sent& sent) {
  const auto put = [&sent](SectionWriter& out, const char* tag, auto& values) {
    out.section(tag, {bytes_of(values)});
    sent(values);
  };
  SectionWriter out(kMagic, sink);
  out.warnings(warnings);
  put_accessed_files(out, accessed_files);
  for (const MeshMaterial& m : mesh.materials) {
    const MaterialRecord r{
        {m.base_color[0], m.base_color[1], m.base_color[2], m.base_color[3]},
        m.roughness,
        m.metalness,
        {m.emission[0], m.emission[1], m.emission[2]},
        m.base_color_image,
        m.metal_rough_image,
        m.emission_image,
        {record_of(m.base_color_place), record_of(m.metal_rough_place), record_of(m.emission_place)}};
    out.section("MATL", {bytes_of(r), text_bytes(m.name)});
  }
  for (auto& image : mesh.images) {
    out.section("IMAG", {bytes_of(image.width), bytes_of(image.height), bytes_of(image.rgba)});
    sent(image.rgba);
  }
  put(out, "POSN", mesh.positions);
  put(out, "TEXC", mesh.uvs);
  put(out, "COLR", mesh.colors);
  put(out, "INDX", mesh.indices);
  put(out, "TMAT", mesh.triangle_material);
  return out.finish();
}

}  // namespace

bool write_mesh_stream(const Mesh& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                       const ByteSink& sink) {
  return write_mesh(mesh, warnings, accessed_files, sink, [](const auto&) {});
}

bool write_mesh_stream(Mesh&& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                       const ByteSink& sink) {
  Mesh taken = std::move(mesh);
  return write_mesh(taken, warnings, accessed_files, sink,
                    [](auto& sent) { std::decay_t<decltype(sent)>().swap(sent); });
}

bool write_error_stream(const Error& error, const std::vector<std::string>& warnings,
                        const AccessedFiles& accessed_files, const ByteSink& sink) {
  SectionWriter out(kMagic, sink);
  out.warnings(warnings);
  put_accessed_files(out, accessed_files);
  out.failure(error);
  return out.finish();
}

static Result<Mesh> parse_mesh_sections(std::span<const uint8_t> bytes, std::vector<std::string>* warnings,
                                        AccessedFiles* accessed_files, const Dropped& dropped) {
  Mesh mesh;
  size_t names = 0;
  const auto take = [&](std::string_view tag, std::span<const uint8_t> payload) -> Result<void> {
    if (tag == "POSN") return take_array(payload, 3, mesh.positions, "POSN", dropped);
    if (tag == "TEXC") return take_array(payload, 2, mesh.uvs, "TEXC", dropped);
    if (tag == "COLR") return take_array(payload, 4, mesh.colors, "COLR", dropped);
    if (tag == "INDX") return take_array(payload, 3, mesh.indices, "INDX", dropped);
    if (tag == "TMAT") return take_array(payload, 1, mesh.triangle_material, "TMAT", dropped);
    if (tag == "MATL") return take_material(payload, mesh);
    if (tag == "IMAG") return take_image(payload, mesh, dropped);
    if (tag == "ASKD") return take_accessed_files(payload, accessed_files, names);
    return tl::unexpected(bad_stream("an unknown section"));
  };
  QRY_TRY(SectionReader{kMagic, bad_stream, take}.read(bytes, warnings));
  if (const auto checked = check_mesh(mesh); !checked) return tl::unexpected(bad_stream(checked.error().message));
  return mesh;
}

Result<Mesh> parse_mesh_stream(std::span<const uint8_t> bytes, std::vector<std::string>* warnings,
                               AccessedFiles* accessed_files) {
  return parse_mesh_sections(bytes, warnings, accessed_files, {});
}

Result<Mesh> parse_mesh_stream(ByteBuffer&& bytes, std::vector<std::string>* warnings, AccessedFiles* accessed_files) {
  ByteBuffer taken = std::move(bytes);
  return parse_mesh_sections(taken.span(), warnings, accessed_files, {&taken});
}

}  // namespace quarry
