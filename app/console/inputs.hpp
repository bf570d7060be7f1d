// SPDX-License-Identifier: Apache-2.0
// inputs.hpp - finds the files that a command line names: plain names, directories, patterns that no shell has
// expanded, lists in files. Also makes the names of outputs. Commands with many inputs (convert, render) use it.
// Nothing here opens an input.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::app {

struct Input {
  std::filesystem::path file;  // the name that is opened and shown
  // The file's place below the directory that found it, or below the pattern's part without wildcards. For a file named
  // directly it is the bare name. It does not depend on where the tree is mounted. {dir} and --shard use it.
  std::filesystem::path relative;
};

// The inputs that `words` name, in the order of the words. Each input is returned once; repetitions are left out. The
// files of one directory or pattern are sorted by their paths' bytes. A word is, in this order:
//   @FILE       One word a line (not another @FILE). Blank lines and lines that begin with # are ignored. @- is
//               standard input.
//   a name      An existing file or directory, whatever characters are in its name. A directory stands for the files
//               in it and below it with an extension that a reader knows, without hidden ones and without .png (next
//               to models they are textures; name them, or use a pattern).
//   a pattern   * ? [a-z] within a name, ** for any number of directories. Hidden names match only a written dot.
//               Links to directories are not walked below ** and below directories. A directory that matches stands
//               for its files.
//   any other   The name of a missing file. It is returned all the same, so that a batch can count it as a failure.
// Errors: not_found (a missing list; a pattern or a directory without any file), io (a directory that cannot be read),
// invalid_argument (`..` after a wildcard).
Result<std::vector<Input>> expand_inputs(std::span<const std::string> words);

// True if `text` has a {placeholder} of fill_template.
bool is_template(const std::string& text);

// The values of fill_template: {stem} and {ext} of the input's name; {dir}, its directory (see Input::relative; empty
// at the top); {index}, its number among `count` inputs from 1 on, with as many digits as the last one needs; {part},
// the part of an input that was split.
struct TemplateValues {
  std::filesystem::path relative;
  size_t index = 1, count = 1;
  std::string part;
};
// "out/{dir}/{stem}.glb" -> "out/houses/mill.glb"; "{{" and "}}" are braces. Errors: invalid_argument (an unknown name;
// the message has the nearest one).
Result<std::filesystem::path> fill_template(const std::string& text, const TemplateValues& values);

}  // namespace quarry::app
