// SPDX-License-Identifier: Apache-2.0
// chunks.cpp - reads the contents of a .vox file's chunks. The layout follows the published format notes of MagicaVoxel
// (ephtracy, "voxel-model": MagicaVoxel-file-format-vox.txt and its extension). Fields observed in files are marked so.
#include "voxel/io/vox/chunks.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "voxel/io/vox/read.hpp"

namespace quarry::io::vox {
namespace {

constexpr size_t kMaxWarnings = 50;
constexpr uint64_t kFreeBricks = 1u << 20;  // 640 MiB; more bricks are allowed only by the bytes of the file
constexpr uint64_t kBytesPerBrick = 16;     // four voxels: real models have forty and more to a brick
constexpr uint64_t kBricksPerModel = 5;     // the memory of the map of a one-brick model, in bricks

std::string at_byte(size_t offset) { return "byte " + std::to_string(offset) + ": "; }

std::string printable(const uint8_t* id) {
  std::string s = "'";
  for (int i = 0; i < 4; ++i) s += id[i] >= 32 && id[i] < 127 ? char(id[i]) : '?';
  return s + "'";
}

int32_t frame_number(const Dict& dict) {
  const std::string_view text = value_of(dict, "_f");
  int32_t frame = 0;
  std::from_chars(text.data(), text.data() + text.size(), frame);
  return frame;
}

// Bits 0-1 and 2-3 are the columns of the first and second row's entry. Bits 4, 5 and 6 are the rows' signs.
std::optional<Rotation> rotation_from_text(std::string_view text) {
  unsigned bits = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (err != std::errc{} || end != text.data() + text.size() || bits > 127) return std::nullopt;
  const unsigned row0 = bits & 3, row1 = bits >> 2 & 3;
  if (row0 == 3 || row1 == 3 || row0 == row1) return std::nullopt;
  Rotation r;
  r.axis = {uint8_t(row0), uint8_t(row1), uint8_t(3 - row0 - row1)};
  for (size_t i = 0; i < 3; ++i) r.sign[i] = bits >> (4 + i) & 1 ? int8_t(-1) : int8_t(1);
  return r;
}

class ChunkReader {
 public:
  ChunkReader(std::span<const uint8_t> bytes, Warnings& warnings, Salvage* salvage, Stream* stream)
      : bytes_(bytes), warnings_(warnings), salvage_(salvage), stream_(stream) {}
  Result<File> read();
  Result<File> read_past_damage();

 private:
  Result<void> header(size_t* begin, size_t* end);
  Result<void> chunk(const uint8_t* id, size_t begin, size_t end);
  Result<void> salvaged_chunk(size_t at, size_t end, bool bounded);
  size_t first_chunk();
  bool known_at(size_t at) const;
  bool plausible(size_t at) const;
  size_t next_known(size_t at) const;
  void lost_model(size_t offset, const std::string& why);
  void repaired(size_t at);
  bool fields_fill(size_t at, size_t content);
  std::array<size_t, 5> counts() const {
    return {file_.nodes.size(), file_.layers.size(), file_.materials.size(), file_.cameras.size(),
            file_.old_materials.size()};
  }
  void back_to(const std::array<size_t, 5>& before);
  void fill_gaps();
  Result<void> size(Cursor& in);
  Result<void> voxels(Cursor& in);
  void transform(Cursor& in, size_t offset);
  void group(Cursor& in, size_t offset);
  void shape(Cursor& in, size_t offset);
  void old_material(Cursor& in);
  uint32_t u32_at(size_t at) const {
    uint32_t v;
    std::memcpy(&v, bytes_.data() + at, 4);
    return v;
  }

  std::span<const uint8_t> bytes_;
  Warnings& warnings_;
  Salvage* salvage_;
  Stream* stream_;
  File file_;
  size_t unread_ = 0;  // bytes of the last chunk that its fields did not use
  size_t models_read_ = 0;
  struct Gap {
    size_t models, bytes;  // models before it, its length
  };
  size_t chunks_lost_ = 0;
  std::vector<Gap> gaps_;  // salvage: places where unknown chunks may be missing
  std::optional<std::array<int32_t, 3>> pending_size_;
  std::optional<uint32_t> packed_models_;
  uint64_t bricks_ = 0;
};

Result<void> ChunkReader::header(size_t* begin, size_t* end) {
  if (bytes_.size() < 8 || std::memcmp(bytes_.data(), "VOX ", 4) != 0)
    return fail(ErrorCode::malformed_input,
                at_byte(0) + "expected 'VOX ' and a version number, the beginning of a MagicaVoxel file" +
                    (bytes_.empty() ? " (the file is empty)" : ""));
  file_.version = u32_at(4);
  if (bytes_.size() < 20)
    return fail(
        ErrorCode::malformed_input,
        at_byte(8) + "expected the MAIN chunk (12 bytes), but the file ends at byte " + std::to_string(bytes_.size()));
  if (std::memcmp(bytes_.data() + 8, "MAIN", 4) != 0)
    return fail(ErrorCode::malformed_input,
                at_byte(8) + "expected the MAIN chunk, found " + printable(bytes_.data() + 8));
  const uint64_t content = u32_at(12), children = u32_at(16), left = bytes_.size() - 20;
  if (content > left || children > left - content)
    return fail(ErrorCode::malformed_input, at_byte(12) + "the MAIN chunk says " + std::to_string(content + children) +
                                                " bytes follow, but only " + std::to_string(left) +
                                                " do; the file is cut short or damaged");
  *begin = 20 + content;
  *end = *begin + children;
  if (*end < bytes_.size()) {
    if (children == 0) {  // seen from exporters that write the header before they know the length
      *end = bytes_.size();
      warnings_.add("byte 16: the MAIN chunk says that it is empty; its chunks were read up to the end of the file");
    } else {
      warnings_.add(at_byte(*end) + std::to_string(bytes_.size() - *end) + " bytes after the MAIN chunk were not read");
    }
  }
  return {};
}

Result<File> ChunkReader::read() {
  const auto load = [&](size_t begin, size_t end) {
    return stream_ ? stream_->load(begin, std::min(end, bytes_.size())) : Result<void>();
  };
  size_t at = 0, end = 0;
  QRY_TRY(load(0, 20));
  QRY_TRY(header(&at, &end));
  while (at < end) {
    if (end - at < 12)
      return fail(ErrorCode::malformed_input, at_byte(at) + "expected a chunk's header (12 bytes), but only " +
                                                  std::to_string(end - at) + " bytes are left");
    QRY_TRY(load(at, at + 12));
    const uint8_t* id = bytes_.data() + at;
    const uint64_t content = u32_at(at + 4), children = u32_at(at + 8), left = end - at - 12;
    if (content > left || children > left - content)
      return fail(ErrorCode::malformed_input, at_byte(at + 4) + "chunk " + printable(id) + " says that it is " +
                                                  std::to_string(content + children) + " bytes long, but only " +
                                                  std::to_string(left) + " are left");
    QRY_TRY(load(at + 12, at + 12 + content));
    QRY_TRY(chunk(id, at + 12, at + 12 + content));
    at += 12 + content + children;
  }
  if (pending_size_) warnings_.add("the last SIZE chunk has no XYZI chunk; it was left out");
  if (file_.models.empty())
    return fail(ErrorCode::malformed_input,
                at_byte(end) + "expected at least one model (SIZE and XYZI chunks) before the end, found none");
  if (packed_models_ && *packed_models_ != file_.models.size())
    warnings_.add("the PACK chunk says " + std::to_string(*packed_models_) + " models, but there are " +
                  std::to_string(file_.models.size()));
  return std::move(file_);
}

// --- Salvage. A chunk is trusted if the next one begins where its length says. Otherwise the next known chunk's name
// is searched for.

bool ChunkReader::known_at(size_t at) const {
  if (bytes_.size() < 12 || at > bytes_.size() - 12) return false;
  constexpr std::string_view kNames =
      "SIZE XYZI PACK nTRN nGRP nSHP LAYR RGBA IMAP MATL rCAM MATT rOBJ NOTE META rLIT rAIR rLEN POST rDIS ";
  const std::string_view name(reinterpret_cast<const char*>(bytes_.data() + at), 4);
  const size_t found = kNames.find(name);
  return found != std::string_view::npos && found % 5 == 0;
}

// Whether there is the end, a known chunk, or one with another name and a possible length.
bool ChunkReader::plausible(size_t at) const {
  if (at == bytes_.size() || known_at(at)) return true;
  if (at > bytes_.size() || bytes_.size() - at < 12) return false;
  const uint64_t content = u32_at(at + 4), children = u32_at(at + 8), left = bytes_.size() - at - 12;
  if (content > left || children > left - content) return false;
  return std::all_of(bytes_.data() + at, bytes_.data() + at + 4, [](uint8_t c) { return c >= 32 && c < 127; });
}

size_t ChunkReader::next_known(size_t at) const {
  while (at < bytes_.size() && !known_at(at)) ++at;
  return at;
}

// The lost model's number must stay in use, or later shapes would show other models.
void ChunkReader::lost_model(size_t offset, const std::string& why) {
  salvage_->count_loss("models", 1, "models");
  warnings_.add(at_byte(offset) + why + std::to_string(file_.models.size()) + " is lost; the model is empty here");
  file_.damaged = true;
  Volume empty;
  if (pending_size_) empty.size = {(*pending_size_)[0], (*pending_size_)[2], (*pending_size_)[1]};
  pending_size_.reset();
  file_.models.push_back(std::move(empty));
}

// Finds the length that the file should have, and the place of its first chunk.
size_t ChunkReader::first_chunk() {
  const bool begins = bytes_.size() >= 8 && std::memcmp(bytes_.data(), "VOX ", 4) == 0;
  file_.version = begins ? u32_at(4) : 150;
  if (!begins || bytes_.size() < 20 || std::memcmp(bytes_.data() + 8, "MAIN", 4) != 0) {
    salvage_->count_loss("header", 1, "header of the file");
    warnings_.add(at_byte(0) + "the file does not begin as a MagicaVoxel file; its version was taken as " +
                  std::to_string(file_.version));
    file_.damaged = true;
    return next_known(0);
  }
  const uint64_t content = u32_at(12), promised = content + u32_at(16), left = bytes_.size() - 20;
  if (promised > left) {
    salvage_->count_loss("bytes_cut_off", promised - left, "bytes after the file's end");
    warnings_.add(at_byte(bytes_.size()) + "the file ends here; it says that " + std::to_string(promised - left) +
                  " bytes follow");
    file_.damaged = true;
  }
  // MAIN has no content of its own. If what it says it has does not end before a chunk, chunks begin at once.
  const bool skip = content < left && plausible(20 + content);
  const bool wrong_content = content > 0 && !skip && promised <= left;
  if (wrong_content || (promised < left && promised != content)) {
    salvage_->count_loss("main_length", 1, "length of the MAIN chunk");
    warnings_.add(at_byte(12) + "the MAIN chunk says " + std::to_string(promised) + " bytes follow, " +
                  std::to_string(content) + " of them before its chunks; all " + std::to_string(left) +
                  " that follow were read");
  }
  return skip ? 20 + content : 20;
}

void ChunkReader::back_to(const std::array<size_t, 5>& before) {
  file_.nodes.resize(before[0]);
  file_.layers.resize(before[1]);
  file_.materials.resize(before[2]);
  file_.cameras.resize(before[3]);
  file_.old_materials.resize(before[4]);
}

// True if the chunk's fields use exactly its stated number of bytes. It is then whole, whatever follows it.
bool ChunkReader::fields_fill(size_t at, size_t content) {
  const std::string_view name(reinterpret_cast<const char*>(bytes_.data() + at), 4);
  if (name == "SIZE") return content == 12;
  if (name == "XYZI") return content >= 4 && 4 + uint64_t(u32_at(at + 12)) * 4 == content;
  if (name == "RGBA") return content == 1024;
  if (name == "IMAP") return content == 256;
  if (name == "NOTE" || name == "PACK" || name == "rOBJ" || name == "META") return false;
  const auto before = counts();
  const bool whole = chunk(bytes_.data() + at, at + 12, at + 12 + content).has_value() && unread_ <= 4;
  back_to(before);
  return whole;
}

Result<void> ChunkReader::salvaged_chunk(size_t at, size_t end, bool bounded) {
  const auto before = counts();
  const std::string label = printable(bytes_.data() + at);
  auto r = chunk(bytes_.data() + at, at + 12, std::max(at + 12, end));
  if (!r && r.error().code != ErrorCode::malformed_input) return r;  // a limit was exceeded
  // If nothing else confirms that the chunk ends here, its fields must end here, except for the four bytes that a layer
  // has after them.
  const bool voxels = label == "'XYZI'";
  if (r && bounded) return {};
  if (r && (voxels || unread_ <= 4)) {
    repaired(at);
    return {};
  }
  back_to(before);
  file_.damaged = true;
  if (voxels && pending_size_) {
    lost_model(at, "the voxels of model ");
    return {};
  }
  salvage_->count_loss("chunks", 1, "chunks");
  ++chunks_lost_;
  warnings_.add(at_byte(at) + "chunk " + label + " is damaged and was left out" + (r ? "" : ": " + r.error().message));
  return {};
}

void ChunkReader::repaired(size_t at) {
  salvage_->count_loss("mended_chunks", 1, "chunks' lengths");
  warnings_.add(at_byte(at + 4) + "the length of chunk " + printable(bytes_.data() + at) +
                " is wrong; it was read as what is in it says");
  file_.damaged = true;
}

// If the shapes show more models than exist, the missing ones were in a gap. With one gap their place is clear. With
// several, no shape from the first gap on can be trusted.
void ChunkReader::fill_gaps() {
  int64_t shown = 0;
  for (const Node& n : file_.nodes)
    if (n.kind == NodeKind::shape) shown = std::max<int64_t>(shown, int64_t(n.target) + 1);
  constexpr uint64_t kLeastModel = 40;  // bytes of an empty model's two chunks
  const size_t behind = std::erase_if(gaps_, [&](const Gap& g) { return g.models >= file_.models.size(); });
  std::erase_if(gaps_, [&](const Gap& g) { return g.bytes < kLeastModel; });
  if (gaps_.empty()) return;
  if (behind > 0 || chunks_lost_ > 0 || file_.nodes.empty()) {  // the shape that shows the last model may be lost too
    file_.certain_models = gaps_[0].models;
    return;
  }
  if (shown <= int64_t(file_.models.size())) return;
  const uint64_t missing = uint64_t(shown) - file_.models.size();
  if (gaps_.size() > 1 || missing > gaps_[0].bytes / kLeastModel) {
    file_.certain_models = gaps_[0].models;
    return;
  }
  salvage_->count_loss("models", missing, "models");
  warnings_.add(std::to_string(missing) + " models from number " + std::to_string(gaps_[0].models) +
                " on are lost; they are empty here");
  file_.models.insert(file_.models.begin() + std::ptrdiff_t(gaps_[0].models), missing, Volume{});
}

Result<File> ChunkReader::read_past_damage() {
  const size_t end = bytes_.size();
  for (size_t at = first_chunk(); at < end;) {
    const size_t left = end - at;
    uint64_t length = left < 12 ? 0 : uint64_t(u32_at(at + 4)) + u32_at(at + 8);
    const bool voxels = left >= 16 && std::memcmp(bytes_.data() + at, "XYZI", 4) == 0;
    size_t content = left < 12 ? 0 : u32_at(at + 4);
    bool bounded = left >= 12 && length <= left - 12 &&
                   (plausible(at + 12 + length) ? plausible(at) : known_at(at) && fields_fill(at, content));
    if (!bounded && voxels) {  // the number of voxels gives the length, too
      length = 4 + uint64_t(u32_at(at + 12)) * 4;
      content = size_t(length);
      bounded = length <= left - 12 && plausible(at + 12 + length);
      if (bounded) repaired(at);
    }
    if (bounded) {
      QRY_TRY(salvaged_chunk(at, at + 12 + content, true));
      at += 12 + size_t(length);
      continue;
    }
    const size_t next = next_known(at + (known_at(at) ? 12 : 1));
    if (known_at(at)) {
      QRY_TRY(salvaged_chunk(at, next, false));
    } else {
      salvage_->count_loss("bytes", next - at, "bytes of no known chunk");
      warnings_.add(at_byte(at) + std::to_string(next - at) + " bytes are no chunk and were left out");
    }
    file_.damaged = true;
    gaps_.push_back({file_.models.size() + (pending_size_ ? 1 : 0), next - at});
    at = next;
  }
  if (pending_size_) lost_model(end, "the voxels of model ");
  if (models_read_ == 0) return fail(ErrorCode::malformed_input, "no model is left in it");
  fill_gaps();
  if (file_.damaged && !file_.rgba) {
    salvage_->count_loss("palette", 1, "palette");
    warnings_.add("no palette is left in the file; its voxels have the colours of the default one");
  }
  if (file_.damaged && file_.nodes.empty()) {
    salvage_->count_loss("scene_graph", 1, "scene graph");
    warnings_.add("no scene graph is left in the file, so where its models stood is not known");
  }
  return std::move(file_);
}

Result<void> ChunkReader::chunk(const uint8_t* id, size_t begin, size_t end) {
  const size_t offset = begin - 12;
  const std::string_view name(reinterpret_cast<const char*>(id), 4);
  const std::string label(name);
  Cursor in(bytes_, begin, end, label.c_str());
  if (name == "SIZE") {
    QRY_TRY(size(in));
  } else if (name == "XYZI") {
    QRY_TRY(voxels(in));
  } else if (name == "PACK") {
    packed_models_ = in.u32("the number of models");
  } else if (name == "nTRN") {
    transform(in, offset);
  } else if (name == "nGRP") {
    group(in, offset);
  } else if (name == "nSHP") {
    shape(in, offset);
  } else if (name == "LAYR") {
    LayerChunk layer;
    layer.id = in.i32("the layer's number");
    layer.dict = in.dict("the layer's attributes");
    layer.hidden = value_of(layer.dict, "_hidden") == "1";
    if (in.ok()) file_.layers.push_back(std::move(layer));
  } else if (name == "RGBA") {
    if (const uint8_t* p = in.bytes(1024, "256 colours (1024 bytes)")) file_.rgba = p;
  } else if (name == "IMAP") {
    if (const uint8_t* p = in.bytes(256, "256 palette places")) file_.index_map = p;
  } else if (name == "MATL" || name == "rCAM") {
    DictChunk c;
    c.id = in.i32("a number");
    c.dict = in.dict("attributes");
    if (in.ok()) (name == "MATL" ? file_.materials : file_.cameras).push_back(std::move(c));
  } else if (name == "MATT") {
    old_material(in);
  } else if (name == "MAIN") {
    return fail(ErrorCode::malformed_input, at_byte(offset) + "a second MAIN chunk inside the first");
  } else if (name != "rOBJ" && name != "NOTE" && name != "META" && name != "rLIT" && name != "rAIR" && name != "rLEN" &&
             name != "POST" && name != "rDIS") {
    warnings_.add(at_byte(offset) + "chunk " + printable(id) + " is not known; its " + std::to_string(end - begin) +
                  " bytes were skipped");
  }
  QRY_TRY(in.good());
  unread_ = in.left();
  return {};
}

Result<void> ChunkReader::size(Cursor& in) {
  const size_t at = in.at();
  std::array<int32_t, 3> s;
  for (int32_t& edge : s) edge = in.i32("the model's size");
  if (!in.ok()) return {};
  if (std::any_of(s.begin(), s.end(), [](int32_t edge) { return edge < 0 || edge > kVoxMaxModelEdge; }))
    return fail(ErrorCode::malformed_input, at_byte(at) + "expected a model size of at most " +
                                                std::to_string(kVoxMaxModelEdge) + " on each axis, found " +
                                                std::to_string(s[0]) + " x " + std::to_string(s[1]) + " x " +
                                                std::to_string(s[2]));
  if (pending_size_ && salvage_) lost_model(at - 12, "the voxels of model ");
  else if (pending_size_)
    warnings_.add(at_byte(at) + "the SIZE chunk before this one has no XYZI chunk; it was left out");
  pending_size_ = s;
  return {};
}

Result<void> ChunkReader::voxels(Cursor& in) {
  const size_t at = in.at();
  if (!pending_size_ && salvage_) {
    lost_model(at - 12, "the size of model ");
    in.bytes(in.left(), "voxels");
    return {};
  }
  if (!pending_size_)
    return fail(ErrorCode::malformed_input, at_byte(at - 12) + "expected a SIZE chunk before this XYZI chunk");
  const std::array<int32_t, 3> s = *pending_size_;
  pending_size_.reset();
  uint32_t count = in.left() < 4 && salvage_ ? ~0u : in.u32("the number of voxels");
  if (!in.ok()) return {};
  if (count > in.left() / 4 && salvage_) {
    salvage_->count_loss("damaged_models", 1, "models with voxels missing");
    warnings_.add(at_byte(at) + "model " + std::to_string(file_.models.size()) +
                  (count == ~0u ? std::string(" does not say how many voxels it has")
                                : " says that it has " + std::to_string(count) + " voxels") +
                  "; the " + std::to_string(in.left() / 4) + " that are there were read");
    file_.damaged = true;
    count = uint32_t(in.left() / 4);
  }
  if (count > in.left() / 4)
    return fail(ErrorCode::malformed_input, at_byte(at) + "the XYZI chunk says " + std::to_string(count) +
                                                " voxels, but holds bytes for only " + std::to_string(in.left() / 4));
  const uint8_t* p = in.bytes(size_t(count) * 4, "voxels");
  if (in.left())
    warnings_.add(at_byte(in.at()) + std::to_string(in.left()) +
                  " bytes after the last voxel of the XYZI chunk were not read");

  Volume model;
  model.size = {s[0], s[2], s[1]};
  // Bricks are found by a dense table of the part of the model within byte coordinates: at most 33^3 entries.
  const int32_t first_z = std::max(0, s[1] - 256) >> 3;
  const Int3 extent{(std::min(s[0], 256) + 7) / 8, (std::min(s[2], 256) + 7) / 8, ((s[1] + 7) >> 3) - first_z};
  std::vector<uint32_t> table(count ? size_t(extent.x) * size_t(extent.y) * size_t(extent.z) : 0, ~0u);
  std::vector<Brick> bricks;
  uint64_t outside = 0, colourless = 0;
  if (count) bricks_ += kBricksPerModel;
  for (uint32_t i = 0; i < count; ++i, p += 4) {
    if (p[0] >= s[0] || p[1] >= s[1] || p[2] >= s[2]) {
      ++outside;
      continue;
    }
    colourless += p[3] == 0;
    const Int3 cell{p[0], p[2], s[1] - 1 - p[1]};
    const Int3 b = brick_of(cell);
    uint32_t& slot = table[(size_t(b.x) * size_t(extent.y) + size_t(b.y)) * size_t(extent.z) + size_t(b.z - first_z)];
    if (slot == ~0u) {
      slot = uint32_t(bricks.size());
      if (++bricks_ > kFreeBricks + bytes_.size() / kBytesPerBrick)
        return fail(ErrorCode::unsupported, at_byte(at) + "the file's voxels are spread over more than " +
                                                std::to_string(bricks_ - 1) +
                                                " bricks of 8^3 (five more counted for each model), more than a file "
                                                "of its length can need");
      bricks.emplace_back();
    }
    bricks[slot].set(voxel_index(cell), p[3]);
  }
  if (outside)
    warnings_.add(at_byte(at) + std::to_string(outside) + " voxels of model " + std::to_string(file_.models.size()) +
                  " lie outside its size and were left out");
  if (colourless)
    warnings_.add(at_byte(at) + std::to_string(colourless) + " voxels of model " + std::to_string(file_.models.size()) +
                  " have colour 0, which means empty");
  size_t entry = 0;
  for (int32_t x = 0; x < extent.x && count; ++x)
    for (int32_t y = 0; y < extent.y; ++y)
      for (int32_t z = 0; z < extent.z; ++z, ++entry)
        if (table[entry] != ~0u && !bricks[table[entry]].empty())
          model.bricks.put({x, y, z + first_z}, bricks[table[entry]]);
  if (stream_) {
    // The source bricks must not stay in memory together with the result.
    std::vector<Brick>().swap(bricks);
    stream_->drop(at, in.at());
    file_.taken_voxels.push_back(model.bricks.voxel_count());
    QRY_TRY(stream_->take(file_.models.size(), std::move(model.bricks)));
    model.bricks.clear();
  }
  file_.models.push_back(std::move(model));
  ++models_read_;
  return {};
}

void ChunkReader::transform(Cursor& in, size_t offset) {
  Node n;
  n.kind = NodeKind::transform;
  n.offset = offset;
  n.id = in.i32("the node's number");
  const Dict attributes = in.dict("the node's attributes");
  n.name = value_of(attributes, "_name");
  n.hidden = value_of(attributes, "_hidden") == "1";
  n.target = in.i32("the child's number");
  in.i32("a reserved number");
  n.layer = in.i32("the layer's number");
  const uint32_t frames = in.u32("the number of frames");
  if (in.ok() && frames > in.left() / 4)
    in.fail_at(in.at() - 4, "the transform says " + std::to_string(frames) + " frames, more than its bytes can hold");
  n.animated = frames > 1;
  // Frame 0, or the first after it. The frames' numbers rise, but nothing guarantees that they are sorted.
  std::optional<int32_t> best;
  for (uint32_t f = 0; f < frames && in.ok(); ++f) {
    const size_t frame_at = in.at();
    const Dict frame = in.dict("a frame's attributes");
    const int32_t number = frame_number(frame);
    if (!in.ok() || (best && *best <= number)) continue;
    best = number;
    n.rotation = {};
    n.translation = {};
    if (const std::string_view r = value_of(frame, "_r"); !r.empty()) {
      if (const auto rotation = rotation_from_text(r)) n.rotation = *rotation;
      else
        warnings_.add(at_byte(frame_at) + "rotation '" + std::string(r.substr(0, 20)) + "' of node " +
                      std::to_string(n.id) + " is none of the 48; no rotation was taken");
    }
    if (const std::string_view t = value_of(frame, "_t"); !t.empty() && !parse_ints(t, &n.translation))
      in.fail_at(frame_at,
                 "expected a translation of three whole numbers, found '" + std::string(t.substr(0, 60)) + "'");
  }
  if (in.ok()) file_.nodes.push_back(std::move(n));
}

void ChunkReader::group(Cursor& in, size_t offset) {
  Node n;
  n.kind = NodeKind::group;
  n.offset = offset;
  n.id = in.i32("the node's number");
  const Dict attributes = in.dict("the node's attributes");
  n.name = value_of(attributes, "_name");
  n.hidden = value_of(attributes, "_hidden") == "1";
  const uint32_t count = in.u32("the number of children");
  if (in.ok() && count > in.left() / 4)
    in.fail_at(in.at() - 4, "the group says " + std::to_string(count) + " children, but has bytes for " +
                                std::to_string(in.left() / 4));
  if (!in.ok()) return;
  n.children.resize(count);
  for (int32_t& child : n.children) child = in.i32("a child's number");
  file_.nodes.push_back(std::move(n));
}

void ChunkReader::shape(Cursor& in, size_t offset) {
  Node n;
  n.kind = NodeKind::shape;
  n.offset = offset;
  n.id = in.i32("the node's number");
  n.hidden = value_of(in.dict("the node's attributes"), "_hidden") == "1";
  const uint32_t models = in.u32("the number of models");
  if (in.ok() && models > in.left() / 8)
    in.fail_at(in.at() - 4, "the shape says " + std::to_string(models) + " models, more than its bytes can hold");
  n.animated = models > 1;
  std::optional<int32_t> best;
  for (uint32_t m = 0; m < models && in.ok(); ++m) {
    const size_t model_at = in.at();
    const int32_t model = in.i32("a model's number");
    const int32_t number = frame_number(in.dict("a model's attributes"));
    if (in.ok() && model < 0) in.fail_at(model_at, "expected a model's number, found " + std::to_string(model));
    if (!in.ok() || (best && *best <= number)) continue;
    best = number;
    n.target = model;
  }
  if (in.ok()) file_.nodes.push_back(std::move(n));
}

void ChunkReader::old_material(Cursor& in) {
  OldMaterial m;
  m.id = in.i32("the material's number");
  m.type = in.i32("the material's kind");
  m.weight = in.f32("the material's weight");
  const uint32_t bits = in.u32("which properties follow");
  for (size_t i = 0; i < 7 && in.ok(); ++i)
    if (bits >> i & 1) m.properties[i] = in.f32("a property");
  if (in.ok()) file_.old_materials.push_back(m);
}

}  // namespace

void Warnings::add(std::string sentence) {
  if (!out_) return;
  if (++count_ <= kMaxWarnings) out_->push_back(std::move(sentence));
  else if (count_ == kMaxWarnings + 1)
    out_->push_back("there is more of this kind; only the first " + std::to_string(kMaxWarnings) + " are listed");
}

std::string_view value_of(const Dict& dict, std::string_view key) {
  for (const auto& [k, v] : dict)
    if (k == key) return v;
  return {};
}

void Cursor::fail_at(size_t offset, const std::string& what) {
  if (!error_) error_ = Error{ErrorCode::malformed_input, at_byte(offset) + what};
  at_ = end_;
}

const uint8_t* Cursor::bytes(size_t count, const char* what) {
  if (error_) return nullptr;
  if (count > left()) {
    fail_at(at_, "expected " + std::string(what) + " in the " + chunk_ + " chunk, but only " + std::to_string(left()) +
                     " bytes of it are left");
    return nullptr;
  }
  at_ += count;
  return file_.data() + (at_ - count);
}

uint32_t Cursor::u32(const char* what) {
  uint32_t v = 0;
  if (const uint8_t* p = bytes(4, what)) std::memcpy(&v, p, 4);
  return v;
}

float Cursor::f32(const char* what) { return std::bit_cast<float>(u32(what)); }

std::string_view Cursor::text(const char* what) {
  const size_t begin = at_;
  const uint32_t length = u32(what);
  if (!ok()) return {};
  if (length > left()) {
    fail_at(begin, std::string(what) + " in the " + chunk_ + " chunk says that it is " + std::to_string(length) +
                       " bytes long, but only " + std::to_string(left()) + " are left");
    return {};
  }
  return {reinterpret_cast<const char*>(bytes(length, what)), length};
}

Dict Cursor::dict(const char* what) {
  const size_t begin = at_;
  const uint32_t count = u32(what);
  if (ok() && count > left() / 8)
    fail_at(begin, std::string(what) + " in the " + chunk_ + " chunk say that there are " + std::to_string(count) +
                       ", more than its " + std::to_string(left()) + " bytes can hold");
  Dict dict;
  for (uint32_t i = 0; i < count && ok(); ++i) {
    const std::string_view key = text("an attribute's name");
    const std::string_view value = text("an attribute's value");
    if (ok()) dict.emplace_back(key, value);
  }
  return dict;
}

Result<File> read_chunks(std::span<const uint8_t> bytes, Warnings& warnings, Salvage* salvage, Stream* stream) {
  ChunkReader reader(bytes, warnings, salvage, stream);
  return salvage ? reader.read_past_damage() : reader.read();
}

}  // namespace quarry::io::vox
