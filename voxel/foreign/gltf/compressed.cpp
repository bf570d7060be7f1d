// SPDX-License-Identifier: Apache-2.0
// compressed.cpp - calls of the two libraries. Sizes are checked against the most that such a stream can hold.
#include "voxel/foreign/gltf/compressed.hpp"

#include <draco/compression/decode.h>
#include <meshoptimizer.h>

#include <memory>
#include <new>

namespace quarry::mesh_reader {
namespace {

auto refuse(const std::string& what) { return fail(ErrorCode::malformed_input, what); }

// The first byte names the codec and its version: 0xa0 vertices, 0xe0 triangles, 0xd0 indices, + version.
bool of_version(std::span<const uint8_t> bytes, uint8_t codec, uint8_t newest) {
  return !bytes.empty() && (bytes[0] & 0xf0) == codec && (bytes[0] & 0x0f) <= newest;
}

Result<void> check_stream(std::span<const uint8_t> bytes, const MeshoptStream& s) {
  const bool vertices = s.mode == "ATTRIBUTES", triangles = s.mode == "TRIANGLES";
  if (!vertices && !triangles && s.mode != "INDICES")
    return fail(ErrorCode::unsupported, "the mode \"" + s.mode + "\" is not known.");
  const bool filtered = !s.filter.empty() && s.filter != "NONE";
  if (vertices ? s.stride == 0 || s.stride > 256 || s.stride % 4 != 0 : s.stride != 2 && s.stride != 4)
    return refuse("byteStride " + std::to_string(s.stride) + " does not go with the mode " + s.mode + ".");
  if (triangles && s.count % 3 != 0) return refuse("count " + std::to_string(s.count) + " is not a multiple of 3.");
  if (filtered && !vertices) return refuse("the filter " + s.filter + " does not go with the mode " + s.mode + ".");
  if (s.filter == "OCTAHEDRAL" ? s.stride != 4 && s.stride != 8 : s.filter == "QUATERNION" ? s.stride != 8 : false)
    return refuse("byteStride " + std::to_string(s.stride) + " does not go with the filter " + s.filter + ".");
  if (filtered && s.filter != "OCTAHEDRAL" && s.filter != "QUATERNION" && s.filter != "EXPONENTIAL")
    return fail(ErrorCode::unsupported, "the filter \"" + s.filter + "\" is not known.");
  // 256 equal bytes of vertices take 4 bytes. A triangle or an index takes at least 1. The stream cannot hold more.
  const uint64_t per_byte = vertices ? 64 * 256 : 3;
  if (s.count > per_byte * (bytes.size() + 1) || (vertices && s.count * s.stride > 64 * (bytes.size() + 256)))
    return refuse("count " + std::to_string(s.count) + " is more than " + std::to_string(bytes.size()) +
                  " bytes can hold.");
  const uint8_t codec = vertices ? 0xa0 : triangles ? 0xe0 : 0xd0, newest = vertices ? 0 : 1;
  if (!of_version(bytes, codec, newest)) {
    if (!bytes.empty() && (bytes[0] & 0xf0) == codec)
      return fail(ErrorCode::unsupported, "it is compressed by version " + std::to_string(bytes[0] & 0x0f) +
                                              " of the codec; versions up to " + std::to_string(newest) +
                                              " are known.");
    return refuse("its bytes are not those of the mode " + s.mode + ".");
  }
  return {};
}

void unfilter(std::vector<uint8_t>& data, const MeshoptStream& s) {
  if (s.count == 0) return;
  if (s.filter == "OCTAHEDRAL") meshopt_decodeFilterOct(data.data(), s.count, s.stride);
  if (s.filter == "QUATERNION") meshopt_decodeFilterQuat(data.data(), s.count, s.stride);
  if (s.filter == "EXPONENTIAL") meshopt_decodeFilterExp(data.data(), s.count, s.stride);
}

std::string said_by(const draco::Status& status) {
  std::string words = status.error_msg_string();
  while (!words.empty() && words.back() == '.') words.pop_back();
  return "Draco: " + (words.empty() ? "it cannot be decompressed" : words) + ".";
}

// The attribute's values of every point, as numbers. Draco's normalised attributes are returned normalised.
Result<DracoAttribute> values_of(const draco::Mesh& mesh, const draco::PointAttribute& attribute,
                                 const std::string& name) {
  const int components = attribute.num_components();
  if (components < 1 || components > 4) return refuse(name + " has " + std::to_string(components) + " components.");
  DracoAttribute out{
      name, uint32_t(components), attribute.normalized() || attribute.data_type() == draco::DT_FLOAT32, {}};
  out.values.resize(size_t(mesh.num_points()) * size_t(components));
  for (uint32_t i = 0; i < mesh.num_points(); ++i) {
    const draco::AttributeValueIndex at = attribute.mapped_index(draco::PointIndex(i));
    if (at.value() >= attribute.size() ||
        !attribute.ConvertValue<float>(at, int8_t(components), out.values.data() + size_t(i) * size_t(components)))
      return refuse(name + ": vertex " + std::to_string(i) + " has no value.");
  }
  return out;
}

Result<DracoMesh> decode(std::span<const uint8_t> bytes, std::span<const std::pair<std::string, uint64_t>> wanted) {
  draco::DecoderBuffer buffer;
  buffer.Init(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto kind = draco::Decoder::GetEncodedGeometryType(&buffer);
  if (!kind.ok()) return refuse(said_by(kind.status()));
  if (kind.value() != draco::TRIANGULAR_MESH) return refuse("Draco: it is not a mesh of triangles.");
  draco::Decoder decoder;
  auto decoded = decoder.DecodeMeshFromBuffer(&buffer);
  if (!decoded.ok()) return refuse(said_by(decoded.status()));
  const std::unique_ptr<draco::Mesh> mesh = std::move(decoded).value();
  if (!mesh) return refuse("Draco gave no mesh.");
  DracoMesh out;
  out.vertices = mesh->num_points();
  out.indices.reserve(size_t(mesh->num_faces()) * 3);
  for (uint32_t f = 0; f < mesh->num_faces(); ++f)
    for (int k = 0; k < 3; ++k) {
      const uint32_t vertex = mesh->face(draco::FaceIndex(f))[size_t(k)].value();
      if (vertex >= out.vertices)
        return refuse("Draco: a face refers to vertex " + std::to_string(vertex) + " of " +
                      std::to_string(out.vertices) + ".");
      out.indices.push_back(vertex);
    }
  for (const auto& [name, id] : wanted) {
    const draco::PointAttribute* const attribute =
        id > UINT32_MAX ? nullptr : mesh->GetAttributeByUniqueId(uint32_t(id));
    if (!attribute)
      return refuse("attributes." + name + " " + std::to_string(id) + ": the compressed mesh has no such attribute.");
    QRY_TRY_ASSIGN(auto values, values_of(*mesh, *attribute, name));
    out.attributes.push_back(std::move(values));
  }
  return out;
}

}  // namespace

Result<std::vector<uint8_t>> decode_meshopt(std::span<const uint8_t> bytes, const MeshoptStream& s) {
  QRY_TRY(check_stream(bytes, s));
  std::vector<uint8_t> out(s.count * s.stride);
  if (s.count == 0) return out;
  const int result =
      s.mode == "ATTRIBUTES"  ? meshopt_decodeVertexBuffer(out.data(), s.count, s.stride, bytes.data(), bytes.size())
      : s.mode == "TRIANGLES" ? meshopt_decodeIndexBuffer(out.data(), s.count, s.stride, bytes.data(), bytes.size())
                              : meshopt_decodeIndexSequence(out.data(), s.count, s.stride, bytes.data(), bytes.size());
  if (result != 0) return refuse("its compressed bytes are damaged (" + std::to_string(result) + ").");
  unfilter(out, s);
  return out;
}

Result<DracoMesh> decode_draco(std::span<const uint8_t> bytes,
                               std::span<const std::pair<std::string, uint64_t>> wanted) {
  try {
    return decode(bytes, wanted);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "");
  } catch (const std::exception& e) {
    return refuse(std::string("Draco gave up: ") + e.what() + ".");
  }
}

}  // namespace quarry::mesh_reader
