// SPDX-License-Identifier: Apache-2.0
// nano_file.hpp - which grids a NanoVDB file has, and the bytes of each from front to back, unpacked as they go by.
// Nothing here is the library's. Every length is compared with the file's before it is used.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "voxel/foreign/vdb/nano_layout.hpp"

namespace quarry::vdb {

// The bytes of a file. read() throws if it cannot; it is only asked for bytes before the end.
struct NanoInput {
  uint64_t bytes = 0;
  std::function<void(uint64_t at, std::span<uint8_t> out)> read;
  template <class T>
  void read_value(uint64_t at, T& out) const {
    read(at, {reinterpret_cast<uint8_t*>(&out), sizeof out});
  }
};
// Throws std::ios_base::failure if it cannot be opened, and when it cannot be read.
NanoInput open_nano(const std::filesystem::path& file);

// Damage, in words for the user.
struct NanoDamage : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Something that lies in front of what was read. NanoVDB writes nodes in the order of the tree, but allows others.
struct NanoDisorder : NanoDamage {
  NanoDisorder() : NanoDamage("the nodes of a grid are not in order") {}
};

struct NanoGrid {
  std::string name;
  uint32_t type = 0, grid_class = 0;
  double matrix[9] = {}, translation[3] = {};  // to world space: matrix * (x, y, z), by rows, + translation
  // Where the file has it:
  uint64_t at = 0, bytes = 0;
  nano::Codec codec = nano::Codec::none;
  // All of it, if it cannot be read from front to back: hold_whole().
  std::shared_ptr<const std::vector<uint8_t>> whole;
};

// All grids, of any type. Throws NanoDamage.
std::vector<NanoGrid> nano_grids(const NanoInput& file);

// Unpacks all of the grid, so that its bytes can be read in any order.
void hold_whole(const NanoInput& file, NanoGrid& grid);

// A grid's bytes, forward. Memory: 0.2 MB; for blosc two blocks, which are of 256 KiB where NanoVDB wrote them.
class NanoBytes {
 public:
  static std::unique_ptr<NanoBytes> open(const NanoInput& file, const NanoGrid& grid);
  virtual ~NanoBytes() = default;
  NanoBytes(const NanoBytes&) = delete;
  NanoBytes& operator=(const NanoBytes&) = delete;

  uint64_t at() const { return at_; }
  // Throws NanoDamage.
  void read(void* out, size_t count);
  template <class T>
  void read_value(T& out) {
    read(&out, sizeof out);
  }
  // Throws NanoDisorder if `to` is behind and the grid is not held whole, and NanoDamage.
  void skip_to(uint64_t to);
  // Passes what is left, and throws NanoDamage if it, or the checksum of a zlib stream, is damaged.
  virtual void finish() { skip_to(bytes_); }

 protected:
  explicit NanoBytes(uint64_t bytes) : bytes_(bytes) {}
  // The next piece, which stays until the next call; not empty.
  virtual std::span<const uint8_t> next() = 0;
  // Leaves out as many of the next `count` bytes as need not be unpacked.
  virtual uint64_t skip(uint64_t count) = 0;
  virtual bool goes_back() const { return false; }
  const uint64_t bytes_;

 private:
  uint64_t at_ = 0;
  std::span<const uint8_t> piece_;
};

}  // namespace quarry::vdb
