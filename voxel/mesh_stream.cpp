#include "voxel/mesh_stream.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

namespace quarry {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream is written as it lies in memory");

constexpr char kMagic[8] = {'Q', 'R', 'Y', 'M', 'E', 'S', 'H', '1'};
constexpr uint64_t kMaxMaterials = 1u << 20, kMaxImages = 4096, kMaxText = 1u << 16, kMaxWarnings = 256;

struct SectionHead {
  char tag[4];
  uint32_t zero = 0;
  uint64_t length = 0;
};
static_assert(sizeof(SectionHead) == 16);

struct MaterialRecord {
  float base_color[4], roughness, metalness, emission[3];
  int32_t base_color_image, metal_rough_image, emission_image;
  uint32_t wrap_u, wrap_v;
};
static_assert(sizeof(MaterialRecord) == 56);

struct HashFree {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using Hash = std::unique_ptr<XXH3_state_t, HashFree>;
Hash new_hash() {
  Hash hash(XXH3_createState());
  if (hash) XXH3_64bits_reset(hash.get());
  return hash;
}

class Writer {
 public:
  explicit Writer(const ByteSink& sink) : sink_(sink), hash_(new_hash()) { send(kMagic, sizeof kMagic); }

  void section(const char (&tag)[5], std::initializer_list<std::span<const uint8_t>> parts) {
    SectionHead head;
    std::memcpy(head.tag, tag, 4);
    for (const auto part : parts) head.length += part.size();
    send(&head, sizeof head);
    for (const auto part : parts) {
      if (hash_) XXH3_64bits_update(hash_.get(), part.data(), part.size());
      send(part.data(), part.size());
    }
  }
  bool finish() {
    const uint64_t sum = hash_ ? XXH3_64bits_digest(hash_.get()) : 0;
    SectionHead head;
    std::memcpy(head.tag, "DONE", 4);
    head.length = sizeof sum;
    send(&head, sizeof head);
    send(&sum, sizeof sum);
    return ok_;
  }

 private:
  void send(const void* data, size_t size) {
    if (ok_ && size) ok_ = sink_({static_cast<const uint8_t*>(data), size});
  }
  const ByteSink& sink_;
  Hash hash_;
  bool ok_ = true;
};

template <class T>
std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::span<const uint8_t> bytes_of(const T& value) requires std::is_trivially_copyable_v<T> {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}
std::span<const uint8_t> text_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), std::min<size_t>(text.size(), kMaxText)};
}

void write_warnings(Writer& out, const std::vector<std::string>& warnings) {
  for (size_t i = 0; i < warnings.size() && i < kMaxWarnings; ++i) out.section("WARN", {text_bytes(warnings[i])});
}

Error bad_stream(const std::string& what) {
  return {ErrorCode::malformed_input,
          "the mesh reader sent something that is not a mesh (" + what + "); is quarry-mesh-reader of the same version?"};
}

// Text from the other process: control characters would spoil a terminal or a log.
std::string clean_text(std::span<const uint8_t> bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), kMaxText));
  for (char& c : text)
    if (uint8_t(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

template <class T>
Result<void> take_array(std::span<const uint8_t> payload, size_t per_element, std::vector<T>& out, const char* tag) {
  if (!out.empty()) return tl::unexpected(bad_stream(std::string("two sections ") + tag));
  if (payload.size() % (sizeof(T) * per_element) != 0) return tl::unexpected(bad_stream(std::string("length of section ") + tag));
  out.resize(payload.size() / sizeof(T));
  if (!payload.empty()) std::memcpy(out.data(), payload.data(), payload.size());
  return {};
}

bool image_index_valid(int32_t index, size_t count) { return index >= -1 && index < int64_t(count); }

Result<void> take_material(std::span<const uint8_t> payload, Mesh& mesh) {
  if (payload.size() < sizeof(MaterialRecord) || mesh.materials.size() >= kMaxMaterials) return tl::unexpected(bad_stream("a material"));
  MaterialRecord r;
  std::memcpy(&r, payload.data(), sizeof r);
  MeshMaterial m;
  m.name = clean_text(payload.subspan(sizeof r));
  const auto finite = [](float value, float low, float high) { return std::isfinite(value) ? std::min(std::max(value, low), high) : low; };
  for (int i = 0; i < 4; ++i) m.base_color[i] = finite(r.base_color[i], 0, i == 3 ? 1.0f : 64.0f);
  for (int i = 0; i < 3; ++i) m.emission[i] = finite(r.emission[i], 0, 65504.0f);
  m.roughness = finite(r.roughness, 0, 1);
  m.metalness = finite(r.metalness, 0, 1);
  m.base_color_image = r.base_color_image;
  m.metal_rough_image = r.metal_rough_image;
  m.emission_image = r.emission_image;
  if (r.wrap_u > 2 || r.wrap_v > 2) return tl::unexpected(bad_stream("a texture's wrap mode"));
  m.wrap_u = Wrap(r.wrap_u);
  m.wrap_v = Wrap(r.wrap_v);
  mesh.materials.push_back(std::move(m));
  return {};
}

Result<void> take_image(std::span<const uint8_t> payload, Mesh& mesh) {
  uint32_t size[2];
  if (payload.size() < sizeof size || mesh.images.size() >= kMaxImages) return tl::unexpected(bad_stream("an image"));
  std::memcpy(size, payload.data(), sizeof size);
  payload = payload.subspan(sizeof size);
  if (size[0] == 0 || size[1] == 0 || uint64_t(size[0]) * size[1] > payload.size() || uint64_t(size[0]) * size[1] * 4 != payload.size())
    return tl::unexpected(bad_stream("an image's size"));
  mesh.images.push_back({size[0], size[1], {payload.begin(), payload.end()}});
  return {};
}

}  // namespace

bool write_mesh_stream(const Mesh& mesh, const std::vector<std::string>& warnings, const ByteSink& sink) {
  Writer out(sink);
  write_warnings(out, warnings);
  for (const MeshMaterial& m : mesh.materials) {
    const MaterialRecord r{{m.base_color[0], m.base_color[1], m.base_color[2], m.base_color[3]}, m.roughness, m.metalness,
                           {m.emission[0], m.emission[1], m.emission[2]}, m.base_color_image, m.metal_rough_image, m.emission_image,
                           uint32_t(m.wrap_u), uint32_t(m.wrap_v)};
    out.section("MATL", {bytes_of(r), text_bytes(m.name)});
  }
  for (const Image& image : mesh.images) out.section("IMAG", {bytes_of(image.width), bytes_of(image.height), bytes_of(image.rgba)});
  out.section("POSN", {bytes_of(mesh.positions)});
  out.section("TEXC", {bytes_of(mesh.uvs)});
  out.section("COLR", {bytes_of(mesh.colors)});
  out.section("INDX", {bytes_of(mesh.indices)});
  out.section("TMAT", {bytes_of(mesh.triangle_material)});
  return out.finish();
}

bool write_error_stream(const Error& error, const std::vector<std::string>& warnings, const ByteSink& sink) {
  Writer out(sink);
  write_warnings(out, warnings);
  out.section("FAIL", {bytes_of(uint32_t(error.code)), text_bytes(error.message)});
  return out.finish();
}

Result<Mesh> parse_mesh_stream(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) {
  if (bytes.size() < sizeof kMagic || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return tl::unexpected(bad_stream("wrong magic"));
  bytes = bytes.subspan(sizeof kMagic);
  const Hash hash = new_hash();
  if (!hash) return fail(ErrorCode::out_of_memory, "no memory to read what the mesh reader sent");
  Mesh mesh;
  size_t warned = 0;
  for (;;) {
    SectionHead head;
    if (bytes.size() < sizeof head) return tl::unexpected(bad_stream("it ends too soon"));
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    if (head.zero != 0 || head.length > bytes.size()) return tl::unexpected(bad_stream("a section's length"));
    const auto payload = bytes.first(size_t(head.length));
    bytes = bytes.subspan(size_t(head.length));
    const std::string_view tag(head.tag, 4);
    if (tag == "DONE") {
      uint64_t sum = 0;
      if (payload.size() == sizeof sum) std::memcpy(&sum, payload.data(), sizeof sum);
      if (payload.size() != sizeof sum || sum != XXH3_64bits_digest(hash.get())) return tl::unexpected(bad_stream("wrong checksum"));
      if (!bytes.empty()) return tl::unexpected(bad_stream("bytes after its end"));
      break;
    }
    XXH3_64bits_update(hash.get(), payload.data(), payload.size());
    Result<void> taken;
    if (tag == "WARN") {
      if (warnings && ++warned <= kMaxWarnings) warnings->push_back(clean_text(payload));
    } else if (tag == "FAIL") {
      uint32_t code = 0;
      if (payload.size() < sizeof code) return tl::unexpected(bad_stream("an error without code"));
      std::memcpy(&code, payload.data(), sizeof code);
      if (code > uint32_t(ErrorCode::conflict)) return tl::unexpected(bad_stream("an unknown error code"));
      return fail(ErrorCode(code), clean_text(payload.subspan(sizeof code)));
    } else if (tag == "POSN") {
      taken = take_array(payload, 3, mesh.positions, "POSN");
    } else if (tag == "TEXC") {
      taken = take_array(payload, 2, mesh.uvs, "TEXC");
    } else if (tag == "COLR") {
      taken = take_array(payload, 4, mesh.colors, "COLR");
    } else if (tag == "INDX") {
      taken = take_array(payload, 3, mesh.indices, "INDX");
    } else if (tag == "TMAT") {
      taken = take_array(payload, 1, mesh.triangle_material, "TMAT");
    } else if (tag == "MATL") {
      taken = take_material(payload, mesh);
    } else if (tag == "IMAG") {
      taken = take_image(payload, mesh);
    } else {
      return tl::unexpected(bad_stream("an unknown section"));
    }
    if (!taken) return tl::unexpected(taken.error());
  }
  if (const auto checked = check_mesh(mesh); !checked) return tl::unexpected(bad_stream(checked.error().message));
  return mesh;
}

Result<void> check_mesh(const Mesh& mesh) {
  const auto bad = [](const std::string& what) { return fail(ErrorCode::invalid_argument, "invalid mesh: " + what); };
  const size_t vertices = mesh.vertex_count(), triangles = mesh.triangle_count();
  if (mesh.positions.size() != vertices * 3 || vertices > 0xFFFFFFFFull) return bad("the length of positions");
  if (mesh.indices.size() != triangles * 3 || triangles > 0x3FFFFFFFull) return bad("the length of indices");
  if (triangles == 0) return bad("it has no triangles");
  if (!mesh.uvs.empty() && mesh.uvs.size() != vertices * 2) return bad("the length of uvs");
  if (!mesh.colors.empty() && mesh.colors.size() != vertices * 4) return bad("the length of colors");
  if (mesh.triangle_material.size() != triangles) return bad("the length of triangle_material");
  if (mesh.materials.empty()) return bad("it has no material");
  for (const uint32_t index : mesh.indices)
    if (index >= vertices) return bad("index " + std::to_string(index) + " of " + std::to_string(vertices) + " vertices");
  for (const uint32_t material : mesh.triangle_material)
    if (material >= mesh.materials.size()) return bad("a triangle's material");
  for (const float value : mesh.positions)
    if (!std::isfinite(value)) return bad("a position that is not finite");
  for (const Image& image : mesh.images)
    if (image.width == 0 || image.height == 0 || image.rgba.size() != uint64_t(image.width) * image.height * 4)
      return bad("an image's size");
  for (const MeshMaterial& m : mesh.materials) {
    if (!image_index_valid(m.base_color_image, mesh.images.size()) || !image_index_valid(m.metal_rough_image, mesh.images.size()) ||
        !image_index_valid(m.emission_image, mesh.images.size()))
      return bad("a material's image");
    if (m.base_color_image >= 0 && mesh.uvs.empty()) return bad("a texture without texture coordinates");
  }
  return {};
}

}  // namespace quarry
