// SPDX-License-Identifier: Apache-2.0
// inputs.cpp - walks directories and matches patterns (*, ?, [], **) in sorted order, so that the same words name the
// same files in the same order on every machine.
#include "app/console/inputs.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>

#include "base/suggest.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

bool hidden(const fs::path& name) { return name.native().starts_with('.'); }
bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// Whether a directory's file counts as an input.
bool known_extension(const fs::path& file) {
  std::string extension = file.extension().string();
  if (extension.size() < 2) return false;
  extension.erase(0, 1);
  std::ranges::transform(extension, extension.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (extension == "png") return false;
  return std::ranges::any_of(io::formats(), [&](const io::Format& format) {
    return format.read && std::ranges::find(format.extensions, extension) != format.extensions.end();
  });
}

Error cannot_read(const fs::path& directory, const std::error_code& error) {
  return {ErrorCode::io, directory.string() + ": the directory cannot be read: " + error.message()};
}

// The names in a directory, sorted.
Result<std::vector<fs::directory_entry>> entries_of(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::directory_entry> out;
  for (fs::directory_iterator it(directory.empty() ? fs::path(".") : directory, error), end; !error && it != end;
       it.increment(error))
    out.emplace_back(directory / it->path().filename());
  if (error) return tl::unexpected(cannot_read(directory, error));
  std::ranges::sort(out, {}, [](const fs::directory_entry& e) { return e.path().native(); });
  return out;
}

// A link to a directory may lead back up, so it is not walked where the depth is unlimited.
bool walkable(const fs::directory_entry& entry) {
  std::error_code error;
  return !entry.is_symlink(error) && entry.is_directory(error);
}

Result<void> files_below(const fs::path& directory, std::vector<fs::path>& out) {
  QRY_TRY_ASSIGN(const auto entries, entries_of(directory));
  for (const fs::directory_entry& entry : entries) {
    std::error_code error;
    if (hidden(entry.path().filename())) continue;
    if (walkable(entry)) {
      QRY_TRY(files_below(entry.path(), out));
    } else if (entry.is_regular_file(error) && known_extension(entry.path())) {
      out.push_back(entry.path());
    }
  }
  return {};
}

// The pattern's components from `begin` on, matched below `directory`.
Result<void> match_below(const fs::path& directory, std::span<const std::string> pattern, std::vector<fs::path>& out) {
  const std::string& name = pattern.front();
  const bool last = pattern.size() == 1;
  std::error_code error;
  if (name == "**") {
    if (last) return files_below(directory, out);
    QRY_TRY(match_below(directory, pattern.subspan(1), out));
    QRY_TRY_ASSIGN(const auto entries, entries_of(directory));
    for (const fs::directory_entry& entry : entries)
      if (walkable(entry) && !hidden(entry.path().filename())) QRY_TRY(match_below(entry.path(), pattern, out));
    return {};
  }
  const auto take = [&](const fs::path& found) -> Result<void> {
    if (!last) return fs::is_directory(found, error) ? match_below(found, pattern.subspan(1), out) : Result<void>();
    if (fs::is_directory(found, error)) return files_below(found, out);
    out.push_back(found);
    return {};
  };
  if (!has_wildcard(name)) return fs::exists(directory / name, error) ? take(directory / name) : Result<void>();
  QRY_TRY_ASSIGN(const auto entries, entries_of(directory));
  for (const fs::directory_entry& entry : entries)
    if (fnmatch(name.c_str(), entry.path().filename().c_str(), FNM_PERIOD) == 0) QRY_TRY(take(entry.path()));
  return {};
}

Result<void> expand_pattern(const std::string& word, fs::path& base, std::vector<fs::path>& out) {
  std::vector<std::string> pattern;
  for (const fs::path& part : fs::path(word)) {
    if (pattern.empty() && !has_wildcard(part.native())) base /= part;
    else if (part == "..")
      return fail(ErrorCode::invalid_argument, word + ": '..' behind a wildcard; write the pattern without it");
    else if (!part.empty() && part != ".") pattern.push_back(part.string());
  }
  std::error_code error;
  if (fs::is_directory(base.empty() ? fs::path(".") : base, error)) QRY_TRY(match_below(base, pattern, out));
  // ** reaches some files in several ways.
  std::ranges::sort(out, {}, [](const fs::path& p) -> const std::string& { return p.native(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.empty()) return fail(ErrorCode::not_found, word + ": no file matches this pattern");
  return {};
}

Result<std::vector<std::string>> words_of_list(const std::string& name) {
  std::ifstream file;
  if (name != "-") {
    file.open(name);
    if (!file)
      return fail(ErrorCode::not_found, "@" + name + ": there is no list " + name +
                                            " that can be read (a file with this name is ./@" + name + ")");
  }
  std::istream& in = name == "-" ? std::cin : file;
  std::vector<std::string> words;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && line[0] != '#') words.push_back(std::move(line));
  }
  if (words.empty()) return fail(ErrorCode::not_found, "@" + name + ": no name is in this list");
  return words;
}

class Expansion {
 public:
  Result<void> add(const std::string& word) {
    std::error_code error;
    std::vector<fs::path> found;
    fs::path base;
    if (fs::is_directory(word, error)) {
      base = word;
      QRY_TRY(files_below(base, found));
      if (found.empty())
        return fail(
            ErrorCode::not_found,
            word + ": no file in this directory has a name that a reader knows; name files or patterns to take others");
    } else if (!fs::exists(word, error) && has_wildcard(word)) {
      QRY_TRY(expand_pattern(word, base, found));
    } else {
      put(word, fs::path(word).filename());
    }
    for (const fs::path& file : found) put(file, base.empty() ? file : file.lexically_relative(base));
    return {};
  }
  std::vector<Input> inputs;

 private:
  void put(const fs::path& file, const fs::path& relative) {
    if (seen_.insert(file.lexically_normal()).second) inputs.push_back({file, relative});
  }
  std::set<fs::path> seen_;
};

constexpr const char* kPlaceholders[] = {"stem", "ext", "dir", "index", "part"};

}  // namespace

Result<std::vector<Input>> expand_inputs(std::span<const std::string> words) {
  Expansion expansion;
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '@') {
      QRY_TRY(expansion.add(word));
      continue;
    }
    QRY_TRY_ASSIGN(const auto list, words_of_list(word.substr(1)));
    for (const std::string& name : list)
      if (auto added = expansion.add(name); !added)
        return fail(added.error().code, word + ": " + added.error().message);
  }
  return std::move(expansion.inputs);
}

bool is_template(const std::string& text) { return text.find('{') != std::string::npos; }

Result<fs::path> fill_template(const std::string& text, const TemplateValues& values) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i]) {
      out += text[i++];
      continue;
    }
    if (text[i] != '{') {
      out += text[i];
      continue;
    }
    const size_t end = text.find('}', i);
    if (end == std::string::npos)
      return fail(ErrorCode::invalid_argument, fmt::format("'{}' has a {{ without a }}; write {{{{ for a brace", text));
    const std::string name = text.substr(i + 1, end - i - 1);
    if (name == "stem") out += values.relative.stem().string();
    else if (name == "ext")
      out += values.relative.has_extension() ? values.relative.extension().string().substr(1) : std::string();
    else if (name == "dir")
      out += values.relative.parent_path().empty() ? std::string(".") : values.relative.parent_path().string();
    else if (name == "index") out += fmt::format("{:0{}}", values.index, std::to_string(values.count).size());
    else if (name == "part") out += values.part;
    else
      return fail(ErrorCode::invalid_argument,
                  fmt::format("'{{{}}}' is none of {{{}}}.{}", name, fmt::join(kPlaceholders, "}, {"),
                              did_you_mean(name, {std::begin(kPlaceholders), std::end(kPlaceholders)})));
    i = end;
  }
  return fs::path(out).lexically_normal();
}

}  // namespace quarry::app
