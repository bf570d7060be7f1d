// SPDX-License-Identifier: Apache-2.0
// manifest.cpp - a line for each job, so that parts are joined by sorting their lines and nothing is formatted twice.
#include "app/batch/manifest.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kHead = "{\"quarry_manifest\":";
constexpr std::string_view kTail = "]}\n";
constexpr int kVersion = 1;

std::string dumped(const OrderedJson& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

OrderedJson json_of(const std::vector<FileChecksum>& files) {
  OrderedJson list = OrderedJson::array();
  for (const FileChecksum& file : files) {
    OrderedJson one{{"file", file.file}};
    if (!file.xxh128.empty()) one.update({{"bytes", file.bytes}, {"xxh128", file.xxh128}});
    list.push_back(std::move(one));
  }
  return list;
}

std::string line_of(const ManifestEntry& entry) {
  OrderedJson out{{"index", entry.index}, {"inputs", json_of(entry.inputs)}};
  if (entry.error.empty()) out["outputs"] = json_of(entry.outputs);
  else out["error"] = entry.error;
  return dumped(out);
}

std::string shard_text(Shard shard) { return fmt::format("{}/{}", shard.number, shard.count); }

std::string line_of(const ManifestHead& head) {
  OrderedJson out{{"quarry_manifest", kVersion},
                  {"version", head.version},
                  {"options", head.options},
                  {"names", head.names},
                  {"jobs", head.jobs}};
  if (head.shard.count > 1) out["shard"] = shard_text(head.shard);
  std::string text = dumped(out);
  text.pop_back();
  return text + ",\"files\":[\n";
}

// Whether the file begins as a manifest. An empty one counts, too.
bool is_manifest(const fs::path& file) {
  const auto first = io::read_file_head(file, kHead.size());
  return first && (first->empty() || std::equal(first->begin(), first->end(), kHead.begin(), kHead.end()));
}

Result<void> check_place(const fs::path& file) {
  remove_left_behind(file);
  std::error_code error;
  const auto target = io::find_target(file);
  if (!target) return fail(target.error().code, shown(file) + ": " + target.error().message);
  if (!fs::is_directory(io::folder_of(*target), error))
    return fail(ErrorCode::io, fmt::format("{}: there is no directory {}", shown(file), shown(io::folder_of(*target))));
  if (fs::exists(*target, error) && !is_manifest(*target))
    return fail(ErrorCode::conflict,
                shown(file) +
                    ": is there already and is no manifest of quarry's, so it is not replaced; give --manifest another "
                    "name, or take the file away");
  return {};
}

// Writes the lines of a manifest, without ends, in their order.
template <class Lines>
Result<void> write(const fs::path& file, const ManifestHead& head, const Lines& lines) {
  QRY_TRY(check_place(file));
  auto out = io::AtomicFile::create(file);
  if (out) {
    out->put(line_of(head));
    for (auto it = lines.begin(); it != lines.end();) {
      out->put(std::string_view(it->second));
      out->put(++it == lines.end() ? "\n" : ",\n");
    }
    out->put(kTail);
  }
  const Result<void> done = out ? out->commit() : tl::unexpected<Error>(out.error());
  return done.map_error([&](const Error& e) { return Error{e.code, shown(file) + ": " + e.message}; });
}

bool read_number(std::string_view text, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text[0] != '0';
}

struct Part {
  Shard shard;
  fs::path file;
};

// The parts beside a manifest, sorted by division and number.
std::vector<Part> parts_of(const fs::path& manifest) {
  const std::string stem = manifest.stem().string() + ".", extension = manifest.extension().string();
  std::vector<Part> out;
  std::error_code error;
  const fs::path folder = io::folder_of(manifest);
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() <= stem.size() + extension.size() || !name.starts_with(stem) || !name.ends_with(extension))
      continue;
    const std::string_view middle =
        std::string_view(name).substr(stem.size(), name.size() - stem.size() - extension.size());
    const size_t of = middle.find("-of-");
    Part part{{}, manifest.parent_path() / name};
    if (of == std::string_view::npos || !read_number(middle.substr(0, of), part.shard.number) ||
        !read_number(middle.substr(of + 4), part.shard.count))
      continue;
    if (part.shard.number <= part.shard.count && part.shard.count > 1) out.push_back(std::move(part));
  }
  std::ranges::sort(out, {}, [](const Part& p) { return std::pair(p.shard.count, p.shard.number); });
  return out;
}

// Parts of two divisions of the inputs do not make a whole, and nobody knows which are old.
Result<void> check_division(const std::vector<Part>& parts, uint32_t count) {
  for (const Part& part : parts)
    if (part.shard.count != count)
      return fail(ErrorCode::conflict,
                  fmt::format("{} is part of a division into {} shards, not {}; take the old parts away, or give "
                              "--manifest another name",
                              shown(part.file), part.shard.count, count));
  return {};
}

tl::unexpected<Error> damaged(const fs::path& part, const std::string& what) {
  return fail(ErrorCode::malformed_input,
              fmt::format("{}: {}; take it away and run its shard again with --resume", shown(part), what));
}

// Reads a part. `lines` gets those of its jobs, by index.
Result<ManifestHead> read_part(const Part& part, std::map<uint64_t, std::string>& lines) {
  std::ifstream in(part.file, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line))
    return tl::unexpected(io::error_from_errno(shown(part.file) + ": cannot read it", in ? ENODATA : ENOENT));
  const auto head = nlohmann::json::parse(line + "]}", nullptr, false);
  if (!head.is_object() || head.value("quarry_manifest", nlohmann::json()) != kVersion ||
      !head.value("version", nlohmann::json()).is_string() || !head.value("options", nlohmann::json()).is_string() ||
      !head.value("names", nlohmann::json()).is_string() || !head.value("jobs", nlohmann::json()).is_number_unsigned())
    return damaged(part.file, "its first line is not that of a manifest");
  ManifestHead out{head["version"], head["options"], head["names"], head["jobs"], part.shard};
  if (head.value("shard", nlohmann::json()) != shard_text(part.shard))
    return damaged(part.file, "what it says of its shard is not what its name says");
  bool more = true, ended = false;
  while (std::getline(in, line)) {
    if (line == "]}") {
      ended = true;
      break;
    }
    if (!more) break;
    more = line.ends_with(',');
    if (more) line.pop_back();
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.value("index", nlohmann::json()).is_number_unsigned())
      return damaged(part.file, "a line of it is damaged");
    const uint64_t index = entry["index"];
    if (index < 1 || index > out.jobs || !lines.try_emplace(index, std::move(line)).second)
      return damaged(part.file, fmt::format("job {} is not one of its own", index));
  }
  if (!ended) return damaged(part.file, "it is cut short");
  return out;
}

// What tells two parts apart that should be of one batch; "" if nothing does.
std::string difference(const ManifestHead& a, const ManifestHead& b) {
  if (a.version != b.version) return fmt::format("were made by Quarry {} and {}", a.version, b.version);
  if (a.options != b.options) return fmt::format("have different options: '{}' and '{}'", a.options, b.options);
  if (a.jobs != b.jobs) return fmt::format("are of {} and {} inputs", a.jobs, b.jobs);
  return a.names == b.names ? "" : "are of inputs with different names";
}

}  // namespace

fs::path manifest_part(const fs::path& file, Shard shard) {
  if (shard.count == 1) return file;
  const std::string name =
      fmt::format("{}.{}-of-{}{}", file.stem().string(), shard.number, shard.count, file.extension().string());
  return file.parent_path() / name;
}

std::vector<fs::path> files_of_outputs(const std::vector<fs::path>& outputs) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::path& output : outputs) {
    if (fs::is_directory(output, error)) {
      std::vector<fs::path> inside;
      for (const auto& entry : fs::directory_iterator(output, error)) inside.push_back(entry.path());
      std::ranges::sort(inside);
      out.insert(out.end(), inside.begin(), inside.end());
      continue;
    }
    out.push_back(output);
    if (fs::path sidecar = io::sidecar_of(output); !sidecar.empty() && fs::exists(sidecar, error))
      out.push_back(std::move(sidecar));
  }
  return out;
}

Result<void> check_manifest(const fs::path& file, Shard shard) {
  QRY_TRY(check_place(file));
  QRY_TRY(check_place(manifest_part(file, shard)));
  return check_division(parts_of(file), shard.count);
}

Result<void> begin_manifest(const fs::path& file, Shard shard) {
  if (file.empty()) return {};
  std::error_code error;
  for (const fs::path& one : {file, manifest_part(file, shard)}) {
    fs::remove(one, error);
    if (error)
      return tl::unexpected(io::error_from_errno(shown(one) + ": cannot take away the old manifest", error.value()));
  }
  return {};
}

Result<void> write_manifest(const fs::path& file, const ManifestHead& head, std::span<const ManifestEntry> entries) {
  std::map<uint64_t, std::string> lines;
  for (const ManifestEntry& entry : entries) lines.try_emplace(entry.index, line_of(entry));
  return write(manifest_part(file, head.shard), head, lines);
}

std::string missing_text(const JoinedManifest& joined) {
  constexpr size_t kNamed = 10;
  const size_t count = joined.missing.size();
  std::string text = fmt::format("{} of {} parts {} not there:", count, joined.shards, count == 1 ? "is" : "are");
  for (size_t i = 0; i < std::min(count, kNamed); ++i)
    text += fmt::format("{} {}/{}", i == 0 ? "" : ",", joined.missing[i], joined.shards);
  return count > kNamed ? text + fmt::format(" and {} more", count - kNamed) : text;
}

Result<JoinedManifest> join_manifest(const fs::path& file) {
  QRY_TRY(check_place(file));
  const std::vector<Part> parts = parts_of(file);
  if (parts.empty())
    return fail(ErrorCode::not_found,
                fmt::format("{}: no part of it is there ({}); run convert with --shard and --manifest first",
                            shown(file), shown(manifest_part(file, {1, 2}).filename())));
  QRY_TRY(check_division(parts, parts.back().shard.count));
  JoinedManifest out{parts.back().shard.count, {}};
  for (uint32_t number = 1, at = 0; number <= out.shards; ++number) {
    if (at < parts.size() && parts[at].shard.number == number) ++at;
    else out.missing.push_back(number);
  }
  std::map<uint64_t, std::string> lines;
  std::optional<ManifestHead> first;
  for (const Part& part : parts) {
    QRY_TRY_ASSIGN(auto head, read_part(part, lines));
    if (!first) first = std::move(head);
    else if (const std::string other = difference(*first, head); !other.empty())
      return fail(ErrorCode::conflict,
                  fmt::format("{} and {} {}; run the shards of both again, with the same command line over the same "
                              "inputs",
                              shown(parts[0].file), shown(part.file), other));
  }
  if (!out.missing.empty()) return out;
  if (lines.size() != first->jobs)
    return fail(ErrorCode::malformed_input,
                fmt::format("{}: its parts have {} jobs of {}; run the shards again with --resume", shown(file),
                            lines.size(), first->jobs));
  first->shard = {};
  QRY_TRY(write(file, *first, lines));
  std::error_code error;
  for (const Part& part : parts) {
    if (fs::exists(part.file, error)) continue;
    fs::remove(file, error);
    out.missing.push_back(part.shard.number);
  }
  return out;
}

}  // namespace quarry::app
