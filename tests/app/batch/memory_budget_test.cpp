// SPDX-License-Identifier: Apache-2.0
// memory_budget_test.cpp - tests the limit of --memory. For any file, this process and its children together hold no
// more than the limit, or the file is refused in time, with the number that would be enough. Sparse files are used
// where possible, so that they cost nothing.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "base/memory_budget.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/app/spawn.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/files/bytes.hpp"

namespace memory_budget_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;
constexpr uint64_t kBudget = 40 * kMiB, kFileBytes = 4 * kBudget;  // the program's own memory is included

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Resident memory of a process and of all its descendants.
uint64_t held_by(pid_t process) {
  const std::string place = "/proc/" + std::to_string(process);
  uint64_t size = 0, resident = 0;
  std::ifstream(place + "/statm") >> size >> resident;
  uint64_t sum = resident * uint64_t(sysconf(_SC_PAGESIZE));
  std::error_code error;
  for (fs::directory_iterator task(place + "/task", error), end; !error && task != end; task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child = 0; children >> child;) sum += held_by(child);
  }
  return sum;
}

struct Measured {
  int code = -1;
  uint64_t peak = 0;  // of the process and its children together
  std::string message;
};

Measured converted(const fs::path& dir, std::vector<std::string> words) {
  words.insert(words.begin(), {quarry_program().string(), "convert"});
  const fs::path log = dir / "said";
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Measured m;
  int status = 0;
  bool begun = false;  // until then the child is a copy of this process
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::error_code error;
    begun =
        begun || fs::read_symlink("/proc/" + std::to_string(child) + "/exe", error) == fs::canonical(quarry_program());
    if (begun) m.peak = std::max(m.peak, held_by(child));
    usleep(1000);
  }
  m.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  m.message = text_of(log);
  fs::remove(log);
  return m;
}

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Writes `head`, then zeros that take no room on disk up to `size`, then `tail`.
void file_of_holes(const fs::path& file, const std::string& head, uint64_t size, const std::string& tail = {}) {
  std::ofstream(file, std::ios::binary) << head;
  fs::resize_file(file, size);
  std::ofstream(file, std::ios::binary | std::ios::app) << tail;
}

// A grid with a full layer every 64 and nothing between them. It has more bricks than fit.
constexpr int kRawEdge = 552;  // one byte each: 160 MiB
void raw_file(const fs::path& file) {
  const std::string layer(size_t(kRawEdge) * kRawEdge, 5);
  file_of_holes(file, "", uint64_t(kRawEdge) * kRawEdge * kRawEdge);
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  for (int z = 0; z < kRawEdge; z += 40)
    out.seekp(std::streamoff(z) * kRawEdge * kRawEdge).write(layer.data(), std::streamsize(layer.size()));
}

void qb_file(const fs::path& file) {
  constexpr uint32_t kEdge = 348;  // four bytes each
  std::string head("\1\1\0\0", 4);
  for (const uint32_t v : {0u, 0u, 0u, 0u, 1u}) put(head, v);
  head += "\4body";
  for (const uint32_t v : {kEdge, kEdge, kEdge, 0u, 0u, 0u}) put(head, v);
  file_of_holes(file, head, head.size() + uint64_t(kEdge) * kEdge * kEdge * 4);
  std::string layer;
  for (uint32_t i = 0; i < kEdge * kEdge; ++i) put(layer, 0xff000000u | (i / 16 % 200) << 8 | i % 5);
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  for (uint32_t z = 0; z < kEdge; z += 24)
    out.seekp(std::streamoff(head.size() + uint64_t(z) * kEdge * kEdge * 4))
        .write(layer.data(), std::streamsize(layer.size()));
}

void binvox_file(const fs::path& file) {
  // Runs without a voxel, which are holes of the file, before those of a cube.
  std::string tail;
  for (int left = 128 * 128 * 128; left > 0; left -= 255) tail += {char(1), char(std::min(left, 255))};
  const std::string head = "#binvox 1\ndim 128 128 128\ndata\n";
  file_of_holes(file, head, head.size() + kFileBytes, tail);
}

std::string vox_chunk(const char* id, const std::string& body, uint32_t children = 0) {
  std::string out(id, 4);
  put(out, uint32_t(body.size()));
  put(out, children);
  return out + body;
}
void vox_file(const fs::path& file) {
  std::string size, voxels;
  for (const uint32_t v : {64u, 64u, 64u}) put(size, v);
  put(voxels, uint32_t(64 * 64 * 64));
  for (uint32_t i = 0; i < 64 * 64 * 64; ++i) put(voxels, (i & 63) | (i >> 6 & 63) << 8 | (i >> 12) << 16 | 7u << 24);
  const std::string model = vox_chunk("SIZE", size) + vox_chunk("XYZI", voxels);
  constexpr uint32_t kModels = 152;
  std::string graph, group;
  const auto transform = [](uint32_t id, uint32_t child, int32_t x) {
    std::string body;
    for (const uint32_t v : {id, 0u, child, ~0u, 0u, 1u}) put(body, v);
    const std::string place = std::to_string(x) + " 0 0";
    put(body, 1u);
    put(body, 2u);
    body += "_t";
    put(body, uint32_t(place.size()));
    return vox_chunk("nTRN", body + place);
  };
  for (const uint32_t v : {1u, 0u, kModels}) put(group, v);
  for (uint32_t i = 0; i < kModels; ++i) put(group, 2 + 2 * i);
  graph = transform(0, 1, 0) + vox_chunk("nGRP", group);
  for (uint32_t i = 0; i < kModels; ++i) {
    std::string shape;
    for (const uint32_t v : {3 + 2 * i, 0u, 1u, i, 0u}) put(shape, v);
    graph += transform(2 + 2 * i, 3 + 2 * i, int32_t(i) * 64 - 5000) + vox_chunk("nSHP", shape);
  }
  std::ofstream out(file, std::ios::binary);
  std::string head = "VOX ";
  put(head, 200u);
  head += "MAIN";
  put(head, 0u);
  put(head, uint32_t(model.size() * kModels + graph.size()));
  out << head;
  for (uint32_t i = 0; i < kModels; ++i) out << model;
  out << graph;
}

void las_file(const fs::path& file) {
  constexpr uint16_t kLength = 160;  // of a point; the bytes after the known fields have no meaning
  const uint64_t points = kFileBytes / kLength;
  std::string head(227, 0);
  const auto at = [&](size_t offset, const auto& value) { std::memcpy(head.data() + offset, &value, sizeof value); };
  head.replace(0, 4, "LASF");
  head[24] = 1;
  head[25] = 2;
  at(94, uint16_t(227));
  at(96, uint32_t(227));
  at(105, kLength);
  at(107, uint32_t(points + 1));
  for (const size_t offset : {131, 139, 147}) at(offset, 0.01);
  std::string last;
  for (const int32_t v : {10000, 5000, 700}) put(last, v);
  file_of_holes(file, head, 227 + points * kLength, last + std::string(kLength - 12, 0));
}

// Mostly comments, so that it is read quickly.
void xyz_file(const fs::path& file) {
  std::string block;
  for (int i = 0; block.size() < 2 * kMiB; ++i)
    block += std::to_string(i % 977) + " " + std::to_string(i % 331) + " " + std::to_string(i % 97) + "\n# " +
             std::string(400, 'x') + "\n";
  std::ofstream out(file, std::ios::binary);
  for (uint64_t size = 0; size < kFileBytes; size += block.size()) out << block;
}

std::string ply_head(uint64_t vertices, const std::string& more) {
  return "ply\nformat binary_little_endian 1.0\nelement vertex " + std::to_string(vertices) +
         "\nproperty float x\nproperty float y\nproperty float z\n" + more + "end_header\n";
}

// Points with a colour each. There are more than fit into memory for sorting.
void points_file(const fs::path& file, uint64_t points) {
  std::mt19937 random(1);
  std::ofstream out(file, std::ios::binary);
  out << ply_head(points, "property uchar red\nproperty uchar green\nproperty uchar blue\n");
  std::string block;
  for (uint64_t i = 0; i < points; ++i) {
    const float a = float(random() % 65536) / 10430.0f, b = float(random() % 65536) / 20860.0f;
    for (const float v : {std::cos(a) * std::sin(b), std::cos(b), std::sin(a) * std::sin(b)}) put(block, v);
    block += {char(uint8_t(a * 40) & 0xf0), char(uint8_t(b * 80) & 0xf0), char(60)};
    if (block.size() > kMiB || i + 1 == points) out << block, block.clear();
  }
}

// A wavy sheet of n x n vertices.
void sheet_ply(const fs::path& file, uint32_t n) {
  std::ofstream out(file, std::ios::binary);
  out << ply_head(uint64_t(n) * n, "element face " + std::to_string(2 * (n - 1) * (n - 1)) +
                                       "\nproperty list uchar int vertex_indices\n");
  std::string row;
  for (uint32_t y = 0; y < n; ++y, out << row, row.clear())
    for (uint32_t x = 0; x < n; ++x)
      for (const float v : {float(x), 40 * std::sin(float(x) / 90) * std::cos(float(y) / 70), float(y)}) put(row, v);
  for (uint32_t y = 0; y + 1 < n; ++y, out << row, row.clear())
    for (uint32_t x = 0; x + 1 < n; ++x) {
      const uint32_t a = y * n + x;
      for (const auto& t : {std::array{a, a + n, a + 1}, std::array{a + 1, a + n, a + n + 1}}) {
        row += '\3';
        for (const uint32_t i : t) put(row, i);
      }
    }
}
void sheet_obj(const fs::path& file, uint32_t n) {
  std::ofstream out(file);
  for (uint32_t y = 0; y < n; ++y)
    for (uint32_t x = 0; x < n; ++x) out << "v " << x << ' ' << 40 * std::sin(float(x) / 90) << ' ' << y << '\n';
  for (uint32_t y = 0; y + 1 < n; ++y)
    for (uint32_t x = 0; x + 1 < n; ++x) {
      const uint32_t a = y * n + x + 1;
      out << "f " << a << ' ' << a + n << ' ' << a + 1 << "\nf " << a + 1 << ' ' << a + n << ' ' << a + n + 1 << '\n';
    }
}

std::string qbcl_head(uint32_t bytes) {
  std::string out = "QBCL";
  // Versions, thumbnail, seven texts.
  for (const uint32_t v : {0u, 2u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}) put(out, v);
  out += std::string(16, 'g');
  for (const uint32_t v : {0u, 0u, 0u}) put(out, v);  // a matrix without a name
  out += std::string("\1\0\0", 3);
  for (const uint32_t v : {8u, 8u, 8u, 0u, 0u, 0u, 0u, 0u, 0u, bytes}) put(out, v);
  return out;
}

std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }
// Zeros, packed by zlib; 31 bits of window: with gzip's header.
std::string packed_zeros(uint64_t size, int window) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string zeros(kMiB, 0), out, piece(kMiB, 0);
  int status = Z_OK;
  for (uint64_t done = 0; status != Z_STREAM_END;) {
    const uint64_t part = std::min<uint64_t>(zeros.size(), size - done);
    z.next_in = reinterpret_cast<Bytef*>(zeros.data());
    z.avail_in = uInt(part);
    done += part;
    do {
      z.next_out = reinterpret_cast<Bytef*>(piece.data());
      z.avail_out = uInt(piece.size());
      status = deflate(&z, done == size ? Z_FINISH : Z_NO_FLUSH);
      out.append(piece, 0, piece.size() - z.avail_out);
    } while (z.avail_out == 0);
  }
  deflateEnd(&z);
  return out;
}
void png_file(const fs::path& file, uint32_t edge) {
  const auto chunk = [](const std::string& kind, const std::string& body) {
    const std::string both = kind + body;
    return big_endian(uint32_t(body.size())) + both +
           big_endian(uint32_t(crc32(0, reinterpret_cast<const Bytef*>(both.data()), uInt(both.size()))));
  };
  std::ofstream(file, std::ios::binary) << "\x89PNG\r\n\x1a\n"
                                        << chunk("IHDR",
                                                 big_endian(edge) + big_endian(edge) + std::string("\x08\0\0\0\0", 5))
                                        << chunk("IDAT", packed_zeros((uint64_t(edge) + 1) * edge, 15))
                                        << chunk("IEND", "");
}

// A reader's file that is four times as large as the budget, or becomes four times as large when read.
struct Case {
  const char* name;
  std::function<void(const fs::path&)> make;
  std::vector<std::string> more{};
  bool converts = false;  // otherwise it may be refused
};

// Ctrl+C in the middle of a conversion ends it with 130.
void check_interrupted(const std::string& input, const std::string& output, const std::string& memory) {
  Process process({quarry_program().string(), "convert", input, "-o", output, "--memory", memory, "--json"});
  REQUIRE(process.wait_for_output("started", 60));
  usleep(200'000);
  process.signal(SIGINT);
  const Outcome stopped = process.finish(60);
  INFO(stopped.err);
  CHECK(stopped.code == 130);
}

}  // namespace

TEST_CASE(
    "convert: of a file four times as large as --memory, whatever its format, the process and its children "
    "never hold more than --memory") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-readers");
  const Case cases[] = {
      {"a.vox", vox_file, {}, true},
      {"a.raw",
       raw_file,
       {"--raw-size", std::to_string(kRawEdge) + "x" + std::to_string(kRawEdge) + "x" + std::to_string(kRawEdge)},
       true},
      {"a.qb", qb_file, {}, true},
      {"a.binvox", binvox_file, {}, true},
      {"a.las", las_file, {}, true},
      {"a.xyz", xyz_file, {"--resolution", "100"}, true},
      {"points.ply",
       [](const fs::path& f) { points_file(f, std::getenv("QUARRY_LONG") ? kFileBytes / 15 : 2'400'000); },
       {"--resolution", "200"},
       true},
      {"a.qbcl", [](const fs::path& f) { file_of_holes(f, qbcl_head(kFileBytes), kFileBytes + qbcl_head(0).size()); }},
      {"large.png", [](const fs::path& f) { file_of_holes(f, "\x89PNG\r\n\x1a\n", kFileBytes); }},
      {"wide.png", [](const fs::path& f) { png_file(f, 9000); }},
      {"a.schem", [](const fs::path& f) { file_of_holes(f, "\x0a", kFileBytes); }},
      {"a.litematic", [](const fs::path& f) { std::ofstream(f, std::ios::binary) << packed_zeros(kFileBytes, 31); }},
      {"mesh.ply", [](const fs::path& f) { sheet_ply(f, 1700); }},
      {"large.obj",
       [](const fs::path& f) { file_of_holes(f, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n#", kFileBytes, "\n"); }},
      {"a.stl",
       [](const fs::path& f) {
         std::string head(80, ' ');
         put(head, uint32_t(kFileBytes / 50));
         file_of_holes(f, head, 84 + kFileBytes / 50 * 50);
       }},
      {"a.glb",
       [](const fs::path& f) {
         std::string head = "glTF";
         for (const uint32_t v : {2u, uint32_t(kFileBytes), 4u, 0x4E4F534Au}) put(head, v);
         file_of_holes(f, head + "{}  ", kFileBytes);
       }},
      // The file's size fits, but not what the two processes make of it.
      {"middle.ply", [](const fs::path& f) { sheet_ply(f, 700); }},
      {"middle.obj", [](const fs::path& f) { sheet_obj(f, 400); }},
  };
  for (const Case& c : cases) {
    const fs::path in = dir / c.name, out = dir / "out.quarry";
    c.make(in);
    std::vector<std::string> words{in.string(), "-o", out.string(), "--memory", "40M", "--executor", "host"};
    words.insert(words.end(), c.more.begin(), c.more.end());
    const auto start = std::chrono::steady_clock::now();
    const Measured m = converted(dir, words);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("  %-12s code %d, at most %.1f MiB, %.1f s\n", c.name, m.code, double(m.peak) / double(kMiB), seconds);
    INFO(c.name << ": " << m.message);
    CHECK(m.peak < kBudget);
    CHECK(m.peak > 2 * kMiB);  // it was read
    CHECK((m.code == 0 || (m.code == 1 && !c.converts)));
    if (m.code == 1) {
      CHECK(m.message.find("--memory is 40 MiB") != std::string::npos);
      CHECK_FALSE(fs::exists(out));
    }
    fs::remove(in);
    fs::remove(out);
  }
}

TEST_CASE("convert: worlds that do not fit --memory stay below it, and so does what is refused, a volume of one") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-worlds");
  const std::string edge = std::to_string(kRawEdge);
  raw_file(dir / "a.raw");
  REQUIRE(run_quarry({"convert", (dir / "a.raw").string(), "-o", (dir / "a.quarry").string(), "--raw-size",
                      edge + "x" + edge + "x" + edge})
              .code == 0);
  const Measured same =
      converted(dir, {(dir / "a.quarry").string(), "-o", (dir / "b.quarry").string(), "--memory", "40M"});
  INFO(same.message);
  CHECK(same.code == 0);
  CHECK(same.peak < kBudget);
  const Measured models =
      converted(dir, {(dir / "a.quarry").string(), "-o", (dir / "b.vox").string(), "--memory", "40M"});
  INFO(models.message);
  CHECK(models.code == 0);
  CHECK(models.peak < kBudget);
  // Each of its layers is a part.
  for (const char* memory : {"4G", "40M"}) {
    const Measured parts = converted(dir, {(dir / "a.quarry").string(), "-o", (dir / memory).string() + ".quarry",
                                           "--keep-parts", "2", "--memory", memory});
    INFO(parts.message);
    CHECK(parts.code == 0);
    CHECK((parts.peak < kBudget) == (memory == std::string_view("40M")));
  }
  CHECK((text_of(dir / "4G.quarry") == text_of(dir / "40M.quarry")));
  // The program that writes volumes is larger.
  const Measured whole =
      converted(dir, {(dir / "a.quarry").string(), "-o", (dir / "c.vdb").string(), "--memory", "40M"});
  INFO(whole.message);
  CHECK(whole.code == 1);
  CHECK(whole.message.find("takes at least") != std::string::npos);
  CHECK(whole.peak < kBudget);
}

// The program that reads volumes and its libraries are 50 MiB themselves.
constexpr uint64_t kVolumeBudget = 84 * kMiB;

// A volume whose conversion as a whole takes far more. False: this build has no OpenVDB.
bool sponge_volume(const fs::path& file) {
  const std::string world = (file.parent_path() / "sponge.quarry").string();
  REQUIRE(run_quarry({"generate", "menger", "--size", "486", "-o", world}).code == 0);
  const bool made = run_quarry({"convert", world, "-o", file.string(), "--memory", "8G"}).code == 0;
  fs::remove(world);
  return made;
}

TEST_CASE(
    "convert: a volume that does not fit --memory is read region by region to the same bytes, with its own materials "
    "and by another grid's colours, and the process and its reader stay below --memory") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-volumes");
  if (!sponge_volume(dir / "own.vdb")) return skip("volumes: this build has no OpenVDB");
  // Without the list of materials, the grid of materials is a volume like the other, and both have the colours of "Cd".
  std::string bytes = text_of(dir / "own.vdb");
  const size_t name = bytes.find("quarry_materials");
  REQUIRE(name != std::string::npos);
  bytes[name] = 'Q';
  std::ofstream(dir / "coloured.vdb", std::ios::binary) << bytes;
  std::string().swap(bytes);
  REQUIRE(sponge_volume(dir / "colours.nvdb"));
  for (const char* volume : {"own.vdb", "coloured.vdb", "colours.nvdb"}) {
    INFO(volume);
    const Measured whole =
        converted(dir, {(dir / volume).string(), "-o", (dir / "whole.quarry").string(), "--memory", "8G"});
    const Measured parts = converted(dir, {(dir / volume).string(), "-o", (dir / "parts.quarry").string(), "--memory",
                                           std::to_string(kVolumeBudget / kMiB) + "M"});
    INFO(whole.message << parts.message);
    CHECK(whole.code == 0);
    if (volume == std::string_view("coloured.vdb")) CHECK(whole.peak > 2 * kVolumeBudget);
    REQUIRE(parts.code == 0);
    CHECK(parts.message.find(" regions") != std::string::npos);
    CHECK(parts.peak < kVolumeBudget);
    CHECK((text_of(dir / "parts.quarry") == text_of(dir / "whole.quarry")));
    CHECK(std::distance(fs::directory_iterator(dir), {}) == 5);
    fs::remove(dir / "whole.quarry");
    fs::remove(dir / "parts.quarry");
  }
}

TEST_CASE(
    "convert: of a volume that is cut off, for which the disk is full, or whose conversion is stopped, region by "
    "region, the message says so and nothing is left") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const std::string name = GENERATE("a.vdb", "a.nvdb");
  const fs::path dir = scratch_dir("budget-volume-errors");
  if (!sponge_volume(dir / name)) return skip("volumes: this build has no OpenVDB");
  const std::string volume = (dir / name).string(), out = (dir / "out.quarry").string(),
                    memory = std::to_string(kVolumeBudget / kMiB) + "M";
  const auto left = [&] { return std::distance(fs::directory_iterator(dir), {}); };

  Process full({"/bin/sh", "-c", "ulimit -f 4000; exec \"$0\" convert \"$1\" -o \"$2\" --memory \"$3\"",
                quarry_program().string(), volume, out, memory});
  const Outcome no_room = full.finish(120);
  INFO(no_room.err);
  CHECK(no_room.code == 1);
  CHECK(no_room.err.find("cannot write what does not fit memory beside it") != std::string::npos);
  CHECK(left() == 1);

  check_interrupted(volume, out, memory);
  CHECK(left() == 1);

  for (const char* part : {"0.999", "0.5", "0.03"}) {
    fs::resize_file(volume, uintmax_t(double(fs::file_size(volume)) * std::stod(part)));
    const Outcome cut = run_quarry({"convert", volume, "-o", out, "--memory", memory});
    INFO(part << ": " << cut.err);
    CHECK(cut.code == 1);
    CHECK(cut.err.find(name + ": ") != std::string::npos);
    if (name == "a.nvdb") CHECK(cut.err.find("a.nvdb: the file ends within a grid") != std::string::npos);
    CHECK(left() == 1);
  }

  const Outcome little = run_quarry({"convert", volume, "-o", out, "--memory", "40M"});
  INFO(little.err);
  CHECK(little.code == 1);
  CHECK(little.err.find("reading it in the volume reader's process takes at least") != std::string::npos);
  CHECK(left() == 1);
}

TEST_CASE(
    "convert: a world that does not fit --memory becomes a volume region by region, with the same bytes, and the "
    "process "
    "and its writer stay below --memory; if the disk is full or it is stopped, nothing is left") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-volume-writing");
  const std::string extension = GENERATE(".vdb", ".nvdb");
  if (!sponge_volume(dir / "a.vdb")) return skip("volumes: this build has no OpenVDB");
  fs::remove(dir / "a.vdb");
  const std::string world = (dir / "a.quarry").string(), memory = std::to_string(kVolumeBudget / kMiB) + "M";
  REQUIRE(run_quarry({"generate", "menger", "--size", "486", "-o", world}).code == 0);
  const Measured whole = converted(dir, {world, "-o", (dir / ("whole" + extension)).string(), "--memory", "8G"});
  const Measured parts = converted(dir, {world, "-o", (dir / ("parts" + extension)).string(), "--memory", memory});
  INFO(whole.message << parts.message);
  CHECK(whole.code == 0);
  CHECK(whole.peak > kVolumeBudget);
  REQUIRE(parts.code == 0);
  CHECK(parts.message.find(" regions") != std::string::npos);
  CHECK(parts.peak < kVolumeBudget);
  CHECK((text_of(dir / ("parts" + extension)) == text_of(dir / ("whole" + extension))));
  fs::remove(dir / ("whole" + extension));
  fs::remove(dir / ("parts" + extension));

  const auto left = [&] { return std::distance(fs::directory_iterator(dir), {}); };
  const std::string out = (dir / ("out" + extension)).string();
  // In blocks of 512 bytes: the files in which parts of it wait do not fit, then the volume itself.
  for (const char* blocks : {"4000", extension == ".vdb" ? "120000" : "40000"}) {
    Process full({"/bin/sh", "-c",
                  std::string("ulimit -f ") + blocks + "; exec \"$0\" convert \"$1\" -o \"$2\" --memory \"$3\"",
                  quarry_program().string(), world, out, memory});
    const Outcome no_room = full.finish(120);
    INFO(no_room.err);
    CHECK(no_room.code == 1);
    CHECK(no_room.err.find("cannot write") != std::string::npos);
    CHECK(no_room.err.find("File too large") != std::string::npos);
    CHECK(left() == 1);
  }
  check_interrupted(world, out, memory);
  CHECK(left() == 1);
}

TEST_CASE("convert: a file that --memory cannot hold is refused before it is read, with the number that would do") {
  const fs::path dir = scratch_dir("budget-refused");
  file_of_holes(dir / "b.schem", "\x0a", 1500 * kMiB);
  const Outcome refused =
      run_quarry({"convert", (dir / "b.schem").string(), "-o", (dir / "b.quarry").string(), "--memory", "900M"});
  INFO(refused.err);
  CHECK(refused.code == 1);
  CHECK(refused.err.find("reading it takes at least 1500 MiB; --memory is 900 MiB") != std::string::npos);
  const size_t give = refused.err.find("give --memory ");
  REQUIRE(give != std::string::npos);
  const int enough = std::stoi(refused.err.substr(give + 14));
  CHECK(enough >= 1500);
  CHECK(enough < 1500 + (kSanitized ? 600 : 60));
}

TEST_CASE("convert: a --memory that is less than the program itself takes is said to be so, before anything is read") {
  const fs::path dir = scratch_dir("budget-least");
  sheet_ply(dir / "a.ply", 4);
  const Outcome outcome =
      run_quarry({"convert", (dir / "a.ply").string(), "-o", (dir / "a.quarry").string(), "--memory", "4M"});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.find("the program itself holds") != std::string::npos);
}

TEST_CASE("convert: point clouds, grids and matrices are read region by region to the same bytes as whole") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-same");
  points_file(dir / "points.ply", 2'500'000);
  raw_file(dir / "grid.raw");
  qb_file(dir / "body.qb");
  png_file(dir / "flat.png", 2600);  // one layer of 105,625 bricks
  const std::string edge = std::to_string(kRawEdge);
  for (const char* name : {"points.ply", "grid.raw", "body.qb", "flat.png"}) {
    const auto made = [&](const char* memory, const char* out) {
      const Outcome outcome =
          run_quarry({"convert", (dir / name).string(), "-o", (dir / out).string(), "--memory", memory, "--json",
                      "--resolution", "300", "--raw-size", edge + "x" + edge + "x" + edge});
      INFO(name << ": " << outcome.err);
      CHECK(outcome.code == 0);
      return outcome.out;
    };
    const std::string whole = made("8G", "whole.quarry"), parts = made("48M", "parts.quarry");
    INFO(whole << parts);
    CHECK(whole.find("\"in_regions\":false") != std::string::npos);
    CHECK(parts.find("\"in_regions\":true") != std::string::npos);
    CHECK((text_of(dir / "whole.quarry") == text_of(dir / "parts.quarry")));
    for (const char* out : {"whole.quarry", "parts.quarry"}) fs::remove(dir / out);
  }
}

TEST_CASE("convert: a job that finds no room beside others is begun again alone") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("budget-alone");
  fs::create_directory(dir / "in");
  for (const char* name : {"a", "b", "c", "d"}) sheet_ply(dir / "in" / (name + std::string(".ply")), 300);
  const Measured m =
      converted(dir, {(dir / "in").string(), "-o", (dir / "out").string(), "--to", "quarry", "--keep-going", "-j", "4",
                      "--memory", "60M", "--resolution", "64", "--executor", "host"});
  INFO(m.message);
  CHECK(m.code == 0);
  CHECK(m.peak < 66 * kMiB);  // two items that begin at once are only seen together when both have begun
}

TEST_CASE("read_input: a file is read in pieces that heed cancel, and what does not fit is not begun") {
  const fs::path file = scratch_dir("budget-pieces") / "a";
  file_of_holes(file, "", 6000 * kMiB);
  const std::atomic<bool> cancel{true};
  Progress progress;
  progress.cancel = &cancel;
  const uint64_t before = memory_in_use();
  const auto stopped = io::read_input(file, UINT64_MAX, progress, nullptr);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(memory_in_use() < before + 100 * kMiB);
  const MemoryBudget budget(before + 1000 * kMiB, "--memory");
  const auto refused = io::read_input(file, UINT64_MAX, {}, &budget);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_memory);
  CHECK(refused.error().message.find("at least 6000 MiB") != std::string::npos);
}

TEST_CASE("memory budget: what is promised and not taken yet is nobody else's room") {
  malloc_trim(0);  // the budget returns what the allocator keeps of earlier tests, which would look like room
  const MemoryBudget budget(memory_in_use() + 400 * kMiB, "--memory");
  auto first = budget.promise(300 * kMiB, "reading it");
  REQUIRE(first);
  CHECK(budget.available_bytes() < 110 * kMiB);
  CHECK_FALSE(budget.promise(200 * kMiB, "reading it"));
  first->taken(250 * kMiB);  // reported as held but not really held, so there is room again
  CHECK(budget.promise(200 * kMiB, "reading it"));
  { const auto gone = std::move(*first); }
  CHECK(budget.promise(300 * kMiB, "reading it"));
}

}  // namespace memory_budget_test
