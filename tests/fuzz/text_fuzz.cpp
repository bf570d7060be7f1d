// SPDX-License-Identifier: Apache-2.0
// text_fuzz.cpp - reads any bytes as a text that the program reads: an editor's script, a list of inputs, the record of
// an earlier batch, the template of a name (the first byte selects which); and as the head of a file whose format is to
// be guessed.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/batch/resume.hpp"
#include "app/console/inputs.hpp"
#include "app/editor/session/script.hpp"
#include "voxel/io/formats.hpp"

using namespace quarry;
using namespace quarry::app;
namespace fs = std::filesystem;

namespace {

const fs::path& folder() {
  struct Folder {
    fs::path path;
    Folder() {
      std::string name = (fs::temp_directory_path() / "quarry-text-XXXXXX").string();
      if (!::mkdtemp(name.data())) std::abort();
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

template <class T>
void check(const Result<T>& result) {
  if (!result && result.error().message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: {
      const auto script = parse_script(text, "a script");
      check(script);
      if (script)
        for (const ScriptCommand& c : *script)
          if (c.words.empty() || c.line == 0) std::abort();
      break;
    }
    case 1: {
      // Only names are allowed. Patterns and directories would give the fuzzer access to the machine's files.
      for (char& c : text)
        if (std::string_view("*?[./").find(c) != std::string_view::npos) c = '_';
      write(folder() / "list", text);
      const std::string word = "@" + (folder() / "list").string();
      check(expand_inputs(std::span(&word, 1)));
      break;
    }
    case 2: {
      write(folder() / ".quarry-resume", text);
      const ResumeManifest manifest(folder(), "");
      (void)manifest.unchanged("a", "b");
      for (const fs::path& output : manifest.outputs("a"))
        if (output.empty()) std::abort();
      (void)manifest.wrote(folder() / "list");
      // Files that a fuzzer names belong to the machine, so they are not read.
      (void)manifest.dependencies("a");
      if (manifest.unchanged("a", "")) std::abort();  // no content has an empty hash
      break;
    }
    case 3: check(fill_template(text, {"a/b.vox", 3, 12, "part"})); break;
    default:
      for (const io::Format& format : io::formats())
        (void)io::recognises(format, {data + 1, std::min<size_t>(size - 1, 64)});
  }
  return 0;
}
