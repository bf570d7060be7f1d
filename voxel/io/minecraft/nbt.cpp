// SPDX-License-Identifier: Apache-2.0
// nbt.cpp - format after the Minecraft community's description of NBT (minecraft.wiki, "NBT format"): big-endian, Java
// edition.
#include "voxel/io/minecraft/nbt.hpp"

#include <algorithm>

namespace quarry::io {
namespace {

// The bytes of an element of fixed size; 0 for types whose size is in the payload.
size_t fixed_size(NbtType type) {
  switch (type) {
    case NbtType::i8: return 1;
    case NbtType::i16: return 2;
    case NbtType::i32:
    case NbtType::f32: return 4;
    case NbtType::i64:
    case NbtType::f64: return 8;
    default: return 0;
  }
}
// The least bytes that a payload can have.
size_t least_size(NbtType type) {
  if (const size_t fixed = fixed_size(type)) return fixed;
  switch (type) {
    case NbtType::text: return 2;
    case NbtType::list: return 5;
    case NbtType::compound: return 1;
    default: return 4;
  }
}
size_t element_size(NbtType array) { return array == NbtType::bytes ? 1 : array == NbtType::ints ? 4 : 8; }

NbtType read_type(ByteReader& in, const char* what) {
  const size_t at = in.at();
  const uint8_t type = in.u8(what);
  if (type > uint8_t(NbtType::longs))
    in.fail_at(at, std::string("expected ") + what + " (0 to 12), found " + std::to_string(type));
  return in.ok() ? NbtType(type) : NbtType::end;
}

std::string_view read_name(ByteReader& in, const char* what) {
  const uint16_t length = in.u16_big("the length of a name");
  return in.text(length, what);
}

// Reads a count, which must fit the rest of the file.
uint32_t read_count(ByteReader& in, size_t least, const char* what) {
  const size_t at = in.at();
  const auto count = int32_t(in.u32_big(what));
  if (count < 0 || size_t(count) > in.left() / least) {
    in.fail_at(at, std::string(what) + " says " + std::to_string(count) + ", more than the " +
                       std::to_string(in.left()) + " bytes that follow can hold");
    return 0;
  }
  return uint32_t(count);
}

struct Frame {
  bool list;
  NbtType element;
  uint32_t left;
};

// Skips a payload, without recursion.
void skip_payload(ByteReader& in, NbtType type) {
  std::vector<Frame> open;
  for (;;) {
    if (const size_t fixed = fixed_size(type)) {
      in.skip(fixed, "a number");
    } else if (type == NbtType::text) {
      read_name(in, "a text");
    } else if (type == NbtType::list) {
      const NbtType element = read_type(in, "the type of a list's elements");
      const uint32_t count =
          read_count(in, element == NbtType::end ? size_t(1) << 32 : least_size(element), "the length of a list");
      if (const size_t size = fixed_size(element)) in.skip(count * size, "the elements of a list");
      else if (count) open.push_back({true, element, count});
    } else if (type == NbtType::compound) {
      open.push_back({false, NbtType::end, 0});
    } else {
      const uint32_t count = read_count(in, element_size(type), "the length of an array");
      in.skip(count * element_size(type), "the elements of an array");
    }
    if (open.size() > kNbtMaxDepth) in.fail_at(in.at(), "tags are nested deeper than " + std::to_string(kNbtMaxDepth));
    for (;;) {  // the next element of the innermost open tag
      if (open.empty() || !in.ok()) return;
      Frame& top = open.back();
      if (top.list) {
        if (top.left == 0) {
          open.pop_back();
          continue;
        }
        --top.left;
        type = top.element;
        break;
      }
      type = read_type(in, "the type of a tag");
      if (type == NbtType::end) {
        open.pop_back();
        continue;
      }
      read_name(in, "the name of a tag");
      break;
    }
  }
}

}  // namespace

Result<Nbt> Nbt::check(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  const NbtType type = read_type(in, "a compound tag, the beginning of an NBT file");
  if (in.ok() && type != NbtType::compound)
    in.fail_at(
        0, "expected a compound tag (10), the beginning of an NBT file, found tag type " + std::to_string(int(type)));
  Nbt nbt;
  nbt.bytes_ = bytes;
  nbt.root_ = {type, read_name(in, "the name of the outermost tag"), 0};
  nbt.root_.at = in.at();
  if (in.ok()) skip_payload(in, type);
  QRY_TRY(in.good());
  return nbt;
}

void Nbt::each(const NbtTag& compound, const std::function<void(const NbtTag&)>& visit) const {
  if (compound.type != NbtType::compound) return;
  ByteReader in(bytes_, compound.at);
  for (;;) {
    NbtTag tag;
    tag.type = read_type(in, "the type of a tag");
    if (tag.type == NbtType::end) return;
    tag.name = read_name(in, "the name of a tag");
    tag.at = in.at();
    visit(tag);
    skip_payload(in, tag.type);
  }
}

void Nbt::each_element(const NbtTag& list, const std::function<void(const NbtTag&)>& visit) const {
  if (list.type != NbtType::list) return;
  ByteReader in(bytes_, list.at);
  const NbtType type = read_type(in, "the type of a list's elements");
  const uint32_t count = in.u32_big("the length of a list");
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    visit({type, {}, in.at()});
    skip_payload(in, type);
  }
}

std::optional<NbtTag> Nbt::find(const NbtTag& compound, std::string_view name, NbtType type) const {
  std::optional<NbtTag> found;
  each(compound, [&](const NbtTag& tag) {
    if (tag.name == name && tag.type == type) found = tag;
  });
  return found;
}

std::optional<int64_t> Nbt::integer(const NbtTag& tag) const {
  ByteReader in(bytes_, tag.at);
  switch (tag.type) {
    case NbtType::i8: return int8_t(in.u8("a number"));
    case NbtType::i16: return int16_t(in.u16_big("a number"));
    case NbtType::i32: return int32_t(in.u32_big("a number"));
    case NbtType::i64: return int64_t(in.u64_big("a number"));
    default: return std::nullopt;
  }
}

std::string_view Nbt::text(const NbtTag& tag) const {
  if (tag.type != NbtType::text) return {};
  ByteReader in(bytes_, tag.at);
  return read_name(in, "a text");
}

std::span<const uint8_t> Nbt::array(const NbtTag& tag) const {
  if (tag.type != NbtType::bytes && tag.type != NbtType::ints && tag.type != NbtType::longs) return {};
  ByteReader in(bytes_, tag.at);
  const size_t count = in.u32_big("the length of an array") * element_size(tag.type);
  return {in.bytes(count, "the elements of an array"), count};
}

}  // namespace quarry::io
