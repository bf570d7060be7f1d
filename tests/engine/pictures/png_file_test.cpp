// SPDX-License-Identifier: Apache-2.0
// png_file_test.cpp - PNG files written and read back, the errors for other files, and cameras.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "engine/pictures/png_file.hpp"
#include "engine/render/camera.hpp"
#include "tests/test_data.hpp"

namespace png_file_test {

using namespace quarry;
using namespace quarry::engine;

TEST_CASE("picture_file: a picture written is the picture read") {
  const auto dir = test::scratch_dir("picture_file");
  Picture picture{7, 3, std::vector<uint8_t>(7 * 3 * 4)};
  for (size_t i = 0; i < picture.rgba.size(); ++i) picture.rgba[i] = uint8_t(i * 37 + 11);
  REQUIRE(write_png(picture, dir / "a.png"));
  auto back = read_png(dir / "a.png");
  REQUIRE(back);
  CHECK(back->width == 7);
  CHECK(back->height == 3);
  CHECK(back->rgba == picture.rgba);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) files += entry.is_regular_file();
  CHECK(files == 1);  // no part file left
}

TEST_CASE("picture_file: missing, foreign and truncated files and impossible pictures are errors that name the file") {
  const auto dir = test::scratch_dir("picture_file_errors");
  auto missing = read_png(dir / "none.png");
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().message.find("none.png") != std::string::npos);

  std::ofstream(dir / "text.png") << "this is no picture";
  auto foreign = read_png(dir / "text.png");
  REQUIRE(!foreign);
  CHECK(foreign.error().code == ErrorCode::malformed_input);
  CHECK(foreign.error().message.find("text.png") != std::string::npos);

  REQUIRE(write_png(Picture{64, 64, std::vector<uint8_t>(64 * 64 * 4, 200)}, dir / "whole.png"));
  const auto size = std::filesystem::file_size(dir / "whole.png");
  std::filesystem::resize_file(dir / "whole.png", size / 2);
  auto truncated = read_png(dir / "whole.png");
  REQUIRE(!truncated);
  CHECK(truncated.error().code == ErrorCode::malformed_input);

  CHECK(!write_png(Picture{2, 2, std::vector<uint8_t>(3)}, dir / "short.png"));
  CHECK(!std::filesystem::exists(dir / "short.png"));
  auto nowhere = write_png(Picture{1, 1, {1, 2, 3, 4}}, dir / "no" / "such" / "folder.png");
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == ErrorCode::io);
}

TEST_CASE("camera: look_at gives a right-handed frame and fit_camera puts every corner into the picture") {
  for (double azimuth : {0.0, 35.0, 90.0, 200.0})
    for (double elevation : {-60.0, 0.0, 30.0, 89.9}) {
      const Box3 bounds{{-40, 3, 10}, {200, 20, 90}};
      glm::dvec3 position, target;
      fit_camera(bounds, 40, 16.0 / 9, azimuth, elevation, position, target);
      const View v = look_at(position, target, 40, 1600, 900);
      const double right = std::hypot(v.right[0], std::hypot(v.right[1], v.right[2])),
                   up = std::hypot(v.up[0], std::hypot(v.up[1], v.up[2]));
      CHECK(right / up == Approx(16.0 / 9).epsilon(1e-5));
      CHECK(up == Approx(std::tan(20 * 3.14159265358979 / 180)).epsilon(1e-5));
      CHECK(v.up[1] >= 0);
      // right x up points back to the viewer
      const double back_x = (double(v.right[1]) * v.up[2] - double(v.right[2]) * v.up[1]) / (right * up);
      CHECK(back_x == Approx(-v.forward[0]).margin(1e-5));
      for (int c = 0; c < 8; ++c) {
        const double p[3] = {c & 1 ? 201.0 : -40.0, c & 2 ? 21.0 : 3.0, c & 4 ? 91.0 : 10.0};
        double along = 0, x = 0, y = 0;
        for (int i = 0; i < 3; ++i) {
          const double d = p[i] - position[i];
          along += d * v.forward[i];
          x += d * v.right[i] / right;
          y += d * v.up[i] / up;
        }
        CHECK(along > 0);
        CHECK(std::abs(x) <= along * right);
        CHECK(std::abs(y) <= along * up);
      }
    }
}

}  // namespace png_file_test
