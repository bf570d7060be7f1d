// SPDX-License-Identifier: Apache-2.0
// exr_file.cpp - writes through OpenEXR's C++ interface and catches its exceptions. A build without OpenEXR says so.
#include "engine/pictures/exr_file.hpp"

#if defined(QRY_HAVE_OPENEXR)
#include <ImfChannelList.h>
#include <ImfCompression.h>
#include <ImfFrameBuffer.h>
#include <ImfHeader.h>
#include <ImfIO.h>
#include <ImfOutputFile.h>

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "voxel/io/files/atomic_file.hpp"
#endif

namespace quarry::engine {

#if defined(QRY_HAVE_OPENEXR)

namespace {

class SinkStream : public Imf::OStream {
 public:
  SinkStream(io::FileSink& sink, const std::string& name) : OStream(name.c_str()), sink_(sink) {}
  void write(const char* bytes, int count) override {
    sink_.put(std::string_view(bytes, size_t(count)));
    if (sink_.error()) throw std::runtime_error(std::strerror(sink_.error()));
  }
  uint64_t tellp() override { return sink_.position(); }
  void seekp(uint64_t position) override { sink_.seek(position); }

 private:
  io::FileSink& sink_;
};

}  // namespace

bool can_write_exr() { return true; }

Result<void> write_exr(const PathPicture& picture, const io::Destination& to) {
  const std::filesystem::path& file = to.file;
  const size_t width = picture.picture.width, height = picture.picture.height, pixels = width * height;
  if (!pixels || picture.radiance.size() != pixels * 4)
    return fail(ErrorCode::invalid_argument, "'" + file.string() + "': the picture's radiance is not " +
                                                 std::to_string(width) + "x" + std::to_string(height));
  auto whole = io::AtomicFile::create(to);
  if (!whole) return fail(whole.error().code, "cannot write '" + file.string() + "': " + whole.error().message);
  std::string why;
  // The library reports errors by exceptions. They are caught here.
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
    SinkStream stream(whole->sink(), file.filename().string());
    Imf::OutputFile out(stream, header);  // its destructor also writes and hides exceptions; commit() reports them
    out.setFrameBuffer(frame);
    out.writePixels(int(height));
  } catch (const std::exception& error) {
    why = error.what();
  }
  // The system's reason, if there is one, is more precise than the library's.
  if (why.empty() || whole->sink().error())
    if (const auto placed = whole->commit(); !placed)
      return fail(placed.error().code, "cannot write '" + file.string() + "': " + placed.error().message);
  if (!why.empty()) return fail(ErrorCode::io, "cannot write '" + file.string() + "': " + why);
  return {};
}

#else

bool can_write_exr() { return false; }

Result<void> write_exr(const PathPicture&, const io::Destination& to) {
  return fail(ErrorCode::unsupported,
              "cannot write '" + to.file.string() +
                  "': this build has no OpenEXR (Debian: libopenexr-dev, then configure again); write a .png");
}

#endif

}  // namespace quarry::engine
