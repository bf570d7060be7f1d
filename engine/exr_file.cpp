#include "engine/exr_file.hpp"

#if defined(QRY_HAVE_OPENEXR)
#include <ImfChannelList.h>
#include <ImfCompression.h>
#include <ImfFrameBuffer.h>
#include <ImfHeader.h>
#include <ImfOutputFile.h>

#include <exception>

#include "voxel/io/whole_file.hpp"
#endif

namespace quarry::engine {

#if defined(QRY_HAVE_OPENEXR)

bool can_write_exr() { return true; }

Result<void> write_exr(const PathPicture& picture, const std::filesystem::path& file) {
  const size_t width = picture.picture.width, height = picture.picture.height, pixels = width * height;
  if (!pixels || picture.radiance.size() != pixels * 4)
    return fail(ErrorCode::invalid_argument, "'" + file.string() + "': the picture's radiance is not " + std::to_string(width) + "x" + std::to_string(height));
  auto whole = io::WholeFile::create(file);
  if (!whole) return fail(ErrorCode::io, "cannot write '" + file.string() + "': " + whole.error().message);
  std::string why;
  // The library reports by exceptions; they end here.
  try {
    Imf::Header header{int(width), int(height)};
    header.compression() = Imf::ZIP_COMPRESSION;
    Imf::FrameBuffer frame;
    const auto add = [&](const char* name, const std::vector<float>& from, size_t floats_a_pixel, size_t at) {
      if (from.size() != pixels * floats_a_pixel) return;
      header.channels().insert(name, Imf::Channel(Imf::FLOAT));
      // The library reads through this pointer only.
      char* base = const_cast<char*>(reinterpret_cast<const char*>(from.data() + at));
      frame.insert(name, Imf::Slice(Imf::FLOAT, base, floats_a_pixel * 4, floats_a_pixel * 4 * width));
    };
    add("R", picture.radiance, 4, 0);
    add("G", picture.radiance, 4, 1);
    add("B", picture.radiance, 4, 2);
    add("A", picture.radiance, 4, 3);
    add("Z", picture.depth, 1, 0);
    add("albedo.R", picture.albedo, 3, 0);
    add("albedo.G", picture.albedo, 3, 1);
    add("albedo.B", picture.albedo, 3, 2);
    add("normal.X", picture.normal, 3, 0);
    add("normal.Y", picture.normal, 3, 1);
    add("normal.Z", picture.normal, 3, 2);
    Imf::OutputFile out(whole->temporary().c_str(), header);
    out.setFrameBuffer(frame);
    out.writePixels(int(height));
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (why.empty())
    if (const auto placed = whole->commit(); !placed) why = placed.error().message;
  if (!why.empty()) return fail(ErrorCode::io, "cannot write '" + file.string() + "': " + why);
  return {};
}

#else

bool can_write_exr() { return false; }

Result<void> write_exr(const PathPicture&, const std::filesystem::path& file) {
  return fail(ErrorCode::unsupported, "cannot write '" + file.string() + "': this build has no OpenEXR (Debian: libopenexr-dev, then configure again); write a .png");
}

#endif

}  // namespace quarry::engine
