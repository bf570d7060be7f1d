// SPDX-License-Identifier: Apache-2.0
// exr_file_test.cpp - EXR files: the library reads exactly the bits that were written. Without the library no file is
// left behind.
#if defined(QRY_HAVE_OPENEXR)
#include <ImfChannelList.h>
#include <ImfFrameBuffer.h>
#include <ImfHeader.h>
#include <ImfInputFile.h>
#endif

#include <catch2/catch.hpp>
#include <limits>

#include "engine/pictures/exr_file.hpp"
#include "tests/test_data.hpp"

namespace exr_file_test {

using namespace quarry;
using namespace quarry::engine;
namespace fs = std::filesystem;

namespace {

PathPicture some_picture(uint32_t width, uint32_t height, bool layers) {
  PathPicture picture;
  picture.picture = {width, height, {}};
  const size_t pixels = size_t(width) * height;
  const auto fill = [](std::vector<float>& to, size_t count, float step) {
    for (size_t i = 0; i < count; ++i) to.push_back(float(i) * step - 3.0f);
  };
  fill(picture.radiance, pixels * 4, 0.37f);
  if (layers) {
    fill(picture.albedo, pixels * 3, 0.01f);
    fill(picture.normal, pixels * 3, 0.11f);
    fill(picture.depth, pixels, 13.0f);
    picture.depth.back() = std::numeric_limits<float>::infinity();
  }
  return picture;
}

}  // namespace

#if defined(QRY_HAVE_OPENEXR)

TEST_CASE("exr: every channel comes back to the bit") {
  const fs::path dir = quarry::test::scratch_dir("exr");
  const PathPicture picture = some_picture(7, 5, true);
  REQUIRE(can_write_exr());
  REQUIRE(write_exr(picture, dir / "p.exr"));
  Imf::InputFile file((dir / "p.exr").c_str());
  const auto read = [&](const char* channel) {
    std::vector<float> values(35, -1);
    Imf::FrameBuffer frame;
    frame.insert(channel, Imf::Slice(Imf::FLOAT, reinterpret_cast<char*>(values.data()), 4, 4 * 7));
    file.setFrameBuffer(frame);
    file.readPixels(0, 4);
    return values;
  };
  const auto every = [](const std::vector<float>& from, size_t step, size_t at) {
    std::vector<float> out;
    for (size_t i = at; i < from.size(); i += step) out.push_back(from[i]);
    return out;
  };
  const char* colors[] = {"R", "G", "B", "A"};
  for (size_t c = 0; c < 4; ++c) CHECK(read(colors[c]) == every(picture.radiance, 4, c));
  const char* albedo[] = {"albedo.R", "albedo.G", "albedo.B"};
  const char* normal[] = {"normal.X", "normal.Y", "normal.Z"};
  for (size_t c = 0; c < 3; ++c) {
    CHECK(read(albedo[c]) == every(picture.albedo, 3, c));
    CHECK(read(normal[c]) == every(picture.normal, 3, c));
  }
  CHECK(read("Z") == picture.depth);

  REQUIRE(write_exr(some_picture(7, 5, false), dir / "q.exr"));
  Imf::InputFile bare((dir / "q.exr").c_str());
  CHECK(bare.header().channels().findChannel("Z") == nullptr);
  CHECK(bare.header().channels().findChannel("A") != nullptr);
}

#endif

TEST_CASE("exr: what cannot be written leaves no file and says why") {
  const fs::path dir = quarry::test::scratch_dir("exr-bad");
  PathPicture wrong = some_picture(4, 4, false);
  wrong.radiance.pop_back();
  CHECK_FALSE(write_exr(wrong, dir / "p.exr"));
  const auto nowhere = write_exr(some_picture(4, 4, false), dir / "absent" / "p.exr");
  REQUIRE(!nowhere);
  CHECK(nowhere.error().message.find("p.exr") != std::string::npos);
  CHECK(fs::is_empty(dir));
}

}  // namespace exr_file_test
