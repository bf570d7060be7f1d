// SPDX-License-Identifier: Apache-2.0
// collada_test.cpp - what is asked of a COLLADA file before Assimp reads it: arrays, accessors and indices that hold
// together; and that sound files still are read.
#include "voxel/foreign/meshes/collada.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <string>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"

namespace collada_test {

using namespace quarry;
using mesh_reader::check_collada;
namespace fs = std::filesystem;

namespace {

// A box 2 x 1 x 0.5 of triangles with texture coordinates at an offset of their own.
struct Dae {
  std::string floats = "-1 -.5 -.25 1 -.5 -.25 -1 .5 -.25 1 .5 -.25 -1 -.5 .25 1 -.5 .25 -1 .5 .25 1 .5 .25";
  std::string array_count = "24", accessor = "count=\"8\" stride=\"3\"", uv_accessor = "count=\"2\" stride=\"2\"",
              uv_input = "offset=\"1\"";
  std::string open = "<triangles count=\"12\">", close = "</triangles>";
  std::string p =
      "<p>0 0 2 0 3 0 0 1 3 0 1 0 4 0 5 0 7 0 4 0 7 0 6 0 0 0 1 0 5 0 0 0 5 0 4 0 2 0 6 0 7 0 2 0 7 0 3 "
      "0 0 0 4 0 6 0 0 0 6 0 2 0 1 0 3 0 7 0 1 0 7 0 5 1</p>";
  std::string more;  // among the libraries
  std::string text() const {
    return "<?xml version=\"1.0\"?><COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" "
           "version=\"1.4.1\"><asset><up_axis>Y_UP</up_axis></asset>"
           "<library_geometries><geometry id=\"g\"><mesh><source id=\"s\"><float_array id=\"a\" count=\"" +
           array_count + "\">" + floats + "</float_array><technique_common><accessor source=\"#a\" " + accessor +
           "><param name=\"X\" type=\"float\"/><param name=\"Y\" type=\"float\"/><param name=\"Z\" "
           "type=\"float\"/></accessor></technique_common></source>"
           "<source id=\"t\"><float_array id=\"b\" count=\"4\">0 0 1 1</float_array><technique_common><accessor "
           "source=\"#b\" " +
           uv_accessor +
           "><param name=\"S\" type=\"float\"/><param name=\"T\" "
           "type=\"float\"/></accessor></technique_common></source>"
           "<vertices id=\"v\"><input semantic=\"POSITION\" source=\"#s\"/></vertices>" +
           open + "<input semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/><input semantic=\"TEXCOORD\" source=\"#t\" " +
           uv_input + "/>" + p + close + "</mesh></geometry></library_geometries>" + more +
           "<library_visual_scenes><visual_scene id=\"vs\"><node><instance_geometry "
           "url=\"#g\"/></node></visual_scene></library_visual_scenes><scene><instance_visual_scene "
           "url=\"#vs\"/></scene></COLLADA>";
  }
};

Result<void> check(const std::string& text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  return check_collada(bytes);
}

template <class Change>
void refused(const Change& change, const std::string& element, const std::string& number) {
  Dae dae;
  change(dae);
  const auto result = check(dae.text());
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::malformed_input);
  CHECK_THAT(result.error().message, Catch::StartsWith("byte ") && Catch::Contains(element) && Catch::Contains(number));
}

template <class Change>
void taken(const Change& change, size_t triangles) {
  const fs::path file = test::scratch_dir("collada-good") / "good.dae";
  Dae dae;
  change(dae);
  std::ofstream(file) << dae.text();
  const auto mesh = read_mesh(file, {});
  INFO((mesh ? std::string() : mesh.error().message));
  REQUIRE(mesh);
  CHECK(mesh->triangle_count() == triangles);
}

std::string with_skin(const std::string& count, const std::string& vcount, const std::string& v,
                      const std::string& matrices = "2") {
  std::string numbers;
  for (int i = 0; i < 32; ++i) numbers += i % 5 ? "0 " : "1 ";
  return "<library_controllers><controller id=\"c\"><skin source=\"#g\"><source id=\"jn\"><Name_array id=\"jna\" "
         "count=\"2\">one two</Name_array><technique_common><accessor source=\"#jna\" count=\"2\"><param "
         "name=\"JOINT\" "
         "type=\"name\"/></accessor></technique_common></source>"
         "<source id=\"jm\"><float_array id=\"jma\" count=\"32\">" +
         numbers + "</float_array><technique_common><accessor source=\"#jma\" count=\"" + matrices +
         "\" stride=\"16\"><param name=\"TRANSFORM\" type=\"float4x4\"/></accessor></technique_common></source>"
         "<source id=\"w\"><float_array id=\"wa\" count=\"3\">1 .5 .25</float_array><technique_common><accessor "
         "source=\"#wa\" count=\"3\"><param name=\"WEIGHT\" type=\"float\"/></accessor></technique_common></source>"
         "<joints><input semantic=\"JOINT\" source=\"#jn\"/><input semantic=\"INV_BIND_MATRIX\" "
         "source=\"#jm\"/></joints>"
         "<vertex_weights count=\"" +
         count +
         "\"><input semantic=\"JOINT\" source=\"#jn\" offset=\"0\"/><input "
         "semantic=\"WEIGHT\" source=\"#w\" offset=\"1\"/><vcount>" +
         vcount + "</vcount><v>" + v + "</v></vertex_weights></skin></controller></library_controllers>";
}

}  // namespace

// Each was read up to version 0.1.1, with whatever lay behind the array; or it killed the reader's process.
TEST_CASE(
    "collada: accessors that reach behind their arrays, and arrays shorter than they say, are errors that name "
    "element and number") {
  refused([](Dae& d) { d.accessor = "count=\"4000\" stride=\"3\""; }, "<accessor> of 's'", "12000 numbers");
  refused([](Dae& d) { d.accessor = "count=\"8\" stride=\"1000\""; }, "<accessor> of 's'", "7003 numbers");
  refused([](Dae& d) { d.accessor = "count=\"8\" stride=\"2\""; }, "<accessor> of 's'", "stride is 2");
  refused([](Dae& d) { d.accessor = "count=\"8\""; }, "<accessor> of 's'", "stride is 1");
  refused([](Dae& d) { d.accessor = "count=\"8\" stride=\"3\" offset=\"1\""; }, "<accessor> of 's'", "25 numbers");
  refused([](Dae& d) { d.accessor = "count=\"-8\" stride=\"3\""; }, "<accessor> of 's'", "'-8'");
  refused([](Dae& d) { d.accessor = "count=\"99999999999\" stride=\"3\""; }, "<accessor> of 's'", "'99999999999'");
  refused([](Dae& d) { d.accessor = "count=\"2147483647\" stride=\"2147483647\" offset=\"2147483647\""; },
          "<accessor> of 's'", "numbers");
  refused([](Dae& d) { d.uv_accessor = "count=\"3\" stride=\"2\""; }, "<accessor> of 't'", "6 numbers");
  refused([](Dae& d) { d.array_count = "25"; }, "<float_array> 'a'", "only 24");
  refused([](Dae& d) { d.floats = "1 2 3"; }, "<float_array> 'a'", "only 3");
  refused([](Dae& d) { d.array_count = "twenty"; }, "<float_array> 'a'", "'twenty'");
  refused([](Dae& d) { d.array_count = "12"; }, "<accessor> of 's'", "has 12");
}

TEST_CASE(
    "collada: indices that are not there, lists of another length and strips without a triangle are errors "
    "that name element and number") {
  const auto p = [](const char* from, const char* to) {
    return [from, to](Dae& d) { d.p.replace(d.p.find(from), std::string(from).size(), to); };
  };
  refused(p("5 1</p>", "8 1</p>"), "<p> of 'g'", "index 70 is 8");
  refused(p("5 1</p>", "5 2</p>"), "<p> of 'g'", "index 71 is 2");
  refused(p("5 1</p>", "-3 1</p>"), "<p> of 'g'", "'-3'");
  refused(p("5 1</p>", "5.5 1</p>"), "<p> of 'g'", "'5.5'");
  refused(p("5 1</p>", "5</p>"), "<p> of 'g'", "71 indices");
  refused(p("7 0 5 1</p>", "7 0</p>"), "<p> of 'g'", "expected 36 vertices");
  refused([](Dae& d) { d.uv_input = "offset=\"4000000\""; }, "<triangles> of 'g'", "4000000");
  refused([](Dae& d) { d.uv_input = "offset=\"2\""; }, "<p> of 'g'", "offset 2");
  refused([](Dae& d) { d.open = "<polylist count=\"12\">", d.close = "</polylist>"; }, "<polylist> of 'g'",
          "no <vcount>");
  refused([](Dae& d) { d.open = "<polylist count=\"2\"><vcount>3</vcount>", d.close = "</polylist>"; },
          "<vcount> of 'g'", "expected 2 numbers, found 1");
  refused([](Dae& d) { d.open = "<polylist count=\"2\"><vcount>3 4</vcount>", d.close = "</polylist>"; }, "<p> of 'g'",
          "expected 7 vertices");
  refused([](Dae& d) { d.open = "<polylist count=\"2\"><vcount>3 -4</vcount>", d.close = "</polylist>"; },
          "<vcount> of 'g'", "'-4'");
  for (const std::string kind : {"tristrips", "trifans", "polygons"})
    refused(
        [&](Dae& d) {
          d.open = kind + " count=\"1\">", d.open.insert(0, "<"), d.close = kind + ">", d.close.insert(0, "</"),
          d.p = "<p>0 0 1 0</p>";
        },
        "<p> of 'g'", "at least 3 vertices, found 2");
}

TEST_CASE("collada: a skin's joints, weights and counts are looked at too") {
  const std::string eight = "1 1 1 1 1 1 1 1", pairs = "0 0 1 1 0 2 0 0 0 0 0 0 0 0 -1 0";
  const auto with = [&](size_t at, char digit) {
    std::string changed = pairs;
    changed[at] = digit;
    return changed;
  };
  taken([&](Dae& d) { d.more = with_skin("8", eight, pairs); }, 12);
  refused([&](Dae& d) { d.more = with_skin("8", eight, with(0, '2')); }, "<v> of 'c'", "index 0 is 2");
  refused([&](Dae& d) { d.more = with_skin("8", eight, with(2, '3')); }, "<v> of 'c'", "index 1 is 3");
  refused([&](Dae& d) { d.more = with_skin("8", eight, pairs.substr(4)); }, "<vertex_weights> of 'c'",
          "expected 8 influences");
  refused([&](Dae& d) { d.more = with_skin("7", eight, pairs.substr(4)); }, "<vertex_weights> of 'c'",
          "geometry 'g' has 8");
  refused([&](Dae& d) { d.more = with_skin("9", eight, pairs); }, "<vcount> of 'c'", "expected 9 numbers");
  refused([&](Dae& d) { d.more = with_skin("8", eight, pairs, "1"); }, "<joints> of 'c'", "2 joints, but only 1");
  refused([&](Dae& d) { d.more = with_skin("8", eight, pairs, "3"); }, "<accessor> of 'jm'", "48 numbers");
}

TEST_CASE("collada: sound files are read: lists, polygons, strips, fans, interleaved and longer arrays") {
  taken([](Dae&) {}, 12);
  taken(
      [](Dae& d) {
        d.open = "<polylist count=\"3\"><vcount>4 4 3</vcount>", d.close = "</polylist>",
        d.p = "<p>0 0 2 0 3 0 1 0 4 0 5 0 7 0 6 0 0 0 1 0 5 0</p>";
      },
      5);
  taken(
      [](Dae& d) {
        d.open = "<polygons count=\"2\">", d.close = "</polygons>", d.p = "<p>0 0 2 0 3 0 1 0</p><p>4 0 5 0 7 0</p>";
      },
      3);
  taken([](Dae& d) { d.open = "<tristrips count=\"1\">", d.close = "</tristrips>", d.p = "<p>0 0 2 0 1 0 3 0</p>"; },
        2);
  taken([](Dae& d) { d.open = "<trifans count=\"1\">", d.close = "</trifans>", d.p = "<p>0 0 2 0 3 0 1 0</p>"; }, 2);
  // More numbers than the count.
  taken([](Dae& d) { d.floats += " 9 9 9"; }, 12);
  // More than the accessor takes.
  taken([](Dae& d) { d.array_count = "27", d.floats += " 9 9 9"; }, 12);
  taken(
      [](Dae& d) {
        d.array_count = "25", d.floats.insert(0, "7\n"), d.accessor = "offset=\"1\" count=\"8\" stride=\"3\"";
      },
      12);
  // Ends before a whole stride does.
  taken(
      [](Dae& d) {
        d.array_count = "24", d.accessor = "offset=\"2\" count=\"4\" stride=\"6\"",
        d.p = "<p>0 0 1 0 2 0 1 0 2 0 3 1</p>", d.open = "<triangles count=\"2\">";
      },
      2);
  taken([](Dae& d) { d.uv_input = "offset=\"1\" set=\"0\""; }, 12);
}

TEST_CASE("collada: what is no XML, or too deep, or full of entities, is a clean error or read without them") {
  CHECK_FALSE(check("<COLLADA><asset></COLLADA>"));
  CHECK_FALSE(check("no XML"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<node>";
  for (int i = 0; i < 100000; ++i) deep += "</node>";
  const auto result = check(deep.insert(0, "<COLLADA>").append("</COLLADA>"));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::unsupported);
  std::string bomb = "<?xml version=\"1.0\"?><!DOCTYPE c [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c < 'z'; ++c) {
    const std::string four(4, char(c - 1));
    bomb.append("<!ENTITY ").append(1, c).append(" \"");
    for (const char before : four) bomb.append("&").append(1, before).append(";");
    bomb.append("\">");
  }
  CHECK(check(bomb + "]><COLLADA><asset><title>&y;</title></asset></COLLADA>"));
}

TEST_CASE(
    "collada: thousands of changed numbers and bytes are a clean error or pass, and what passes Assimp reads "
    "the same twice") {
  const std::string good = Dae().text();
  std::mt19937 random(5);
  const fs::path dir = test::scratch_dir("collada-changed");
  int passed = 0, failed = 0, read = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    const size_t begin = text.find("<mesh>"), end = text.find("</mesh>");
    for (uint32_t n = 1 + random() % 2; n > 0; --n) {
      const size_t at = begin + random() % (end - begin);
      if (std::isdigit(static_cast<unsigned char>(text[at])))
        text.replace(at, 1, std::array<const char*, 6>{"0", "1", "9", "-1", "77777", ""}[random() % 6]);
      else if (random() % 8 == 0) text[at] = char(' ' + random() % 90);
    }
    const auto sound = check(text);
    ++(sound ? passed : failed);
    if (!sound) {
      CHECK_FALSE(sound.error().message.empty());
      continue;
    }
    if (text == good || ++read > 40) continue;
    std::ofstream(dir / "changed.dae") << text;
    const auto once = read_mesh(dir / "changed.dae", {}), twice = read_mesh(dir / "changed.dae", {});
    INFO(text);
    REQUIRE(bool(once) == bool(twice));
    if (once) CHECK(once->positions == twice->positions);
    else CHECK(once.error().message.find("crashed") == std::string::npos);
  }
  CHECK(passed > 200);
  CHECK(failed > 500);
}

}  // namespace collada_test
