// SPDX-License-Identifier: Apache-2.0
// obj.cpp - Wavefront OBJ, with the materials in an .mtl of the same stem. Vertices are shared between materials, so
// the surface is closed in the file as it is in space.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/control_characters.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/meshes/surface_source.hpp"
#include "voxel/io/meshes/write.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "# Quarry materials\n";

// Names in OBJ end at a blank.
std::string obj_name(const Palette& palette, uint8_t material) {
  std::string name = replace_control_characters(material_name(palette, material));
  for (char& c : name)
    if (c == ' ' || c == '#') c = '_';
  return name + "_" + std::to_string(material);
}

std::string material_text(const Palette& palette, uint8_t material) {
  const Material& m = palette.materials[material];
  const auto shown = [](uint8_t v) { return number_text(float(v) / 255); };
  std::string out =
      "newmtl " + obj_name(palette, material) + "\nKd " + shown(m.r) + " " + shown(m.g) + " " + shown(m.b) + "\n";
  if (m.emission > 0) {
    const auto light = linear_color(m);
    out += "Ke " + number_text(light[0] * m.emission) + " " + number_text(light[1] * m.emission) + " " +
           number_text(light[2] * m.emission) + "\n";
  }
  out += "Ni " + number_text(m.ior) + "\nd " + number_text(1 - m.transparency) + "\n";
  // The physically based extension of Exocortex, which Blender and Assimp know.
  return out + "Pr " + number_text(m.roughness) + "\nPm " + number_text(m.metalness) + "\nillum 2\n\n";
}

class Text {
 public:
  explicit Text(AtomicFile& out) : out_(out) {}
  ~Text() { flush(); }
  void letter(char c) { text_[size_++] = c; }
  template <class T>
  void number(T v) {
    size_ = size_t(std::to_chars(text_ + size_, text_ + sizeof text_, v).ptr - text_);
  }
  void line_end() {
    letter('\n');
    if (size_ > sizeof text_ - 256) flush();
  }

 private:
  void flush() {
    out_.put(std::string_view(text_, size_));
    size_ = 0;
  }
  AtomicFile& out_;
  char text_[8192];
  size_t size_ = 0;
};

Result<void> write_obj_surface(const Scene& scene, const SurfaceSource& surface, const Destination& to,
                               const Progress& progress) {
  const fs::path mtl = sidecar_of(to.file);
  std::error_code ignored;
  if (to.replace && fs::is_regular_file(mtl, ignored)) {
    const auto head = read_file_head(mtl, kFirstLine.size());
    if (!head || !std::equal(head->begin(), head->end(), kFirstLine.begin(), kFirstLine.end()))
      return fail(ErrorCode::conflict, "its materials belong into " + mtl.string() +
                                           ", which is there and is not of Quarry's making; choose another name");
  }
  auto materials = AtomicFile::create(to.with(mtl));
  if (!materials)
    return fail(materials.error().code,
                mtl.filename().string() + ", which belongs to it: " + materials.error().message);
  materials->put(kFirstLine);
  for (const SurfaceSource::Part& part : surface.parts()) materials->put(material_text(scene.palette, part.material));

  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  // Some readers end a library's name at a blank. Blanks are written unchanged, as most exporters do.
  const std::string units = units_comment(scene);
  out.put("# Quarry, one unit is one voxel, y up\n" + (units.empty() ? units : "# " + units + "\n") + "mtllib " +
          mtl.filename().string() + "\no " +
          (to.file.stem().empty() ? "scene" : replace_control_characters(to.file.stem().string())) + "\n");
  {
    Text text(out);
    std::array<Int3, 4096> some;
    for (uint64_t first = 0; first < surface.vertices(); first += some.size()) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
      const size_t count = size_t(std::min<uint64_t>(some.size(), surface.vertices() - first));
      QRY_TRY(surface.positions(first, std::span<Int3>(some.data(), count)));
      for (size_t i = 0; i < count; ++i) {
        text.letter('v');
        for (const int32_t c : {some[i].x, some[i].y, some[i].z}) text.letter(' '), text.number(c);
        text.line_end();
      }
    }
  }
  for (size_t p = 0; p < surface.parts().size(); ++p) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    out.put("usemtl " + obj_name(scene.palette, surface.parts()[p].material) + "\n");
    Text text(out);
    QRY_TRY(surface.indices(p, [&](std::span<const uint32_t> indices) {
      for (size_t t = 0; t < indices.size(); t += 3) {
        text.letter('f');
        for (size_t c = 0; c < 3; ++c) text.letter(' '), text.number(uint64_t(indices[t + c]) + 1);
        text.line_end();
      }
    }));
    progress.say("write", double(p + 1) / double(surface.parts().size()));
  }
  return out.commit_after(*materials);
}

}  // namespace

Result<void> write_obj(const Scene& scene, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(scene, progress);
  return surface ? write_obj_surface(scene, **surface, to, progress) : tl::unexpected(surface.error());
}

Result<void> write_obj_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(voxels, to.file, progress);
  return surface ? write_obj_surface(voxels.scene(), **surface, to, progress) : tl::unexpected(surface.error());
}

}  // namespace quarry::io
