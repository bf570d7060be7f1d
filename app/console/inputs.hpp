// SPDX-License-Identifier: Apache-2.0
// inputs.hpp - which files a command line names: plain names, directories, patterns that no shell has expanded, lists
// in files; and the names of what is made of them. Commands that take many inputs (convert, render) stand on it.
// Nothing here opens an input.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::app {

struct Input {
  std::filesystem::path file;  // as it is opened and shown
  // Where it lies below the directory, or the pattern's part without wildcards, that found it; the bare name of a file
  // named as it is. Does not depend on where the tree is mounted: {dir} and --shard go by it.
  std::filesystem::path relative;
};

// The inputs that `words` name, each once (what comes again is left out), in the order of the words; what one directory
// or pattern gives is sorted by its path's bytes. A word is, in this order:
//   @FILE        one word a line (not another @FILE); blank lines and lines that begin with # are none. @- is standard
//   input. a name that is there, whatever characters are in it. A directory stands for the files in it and below it
//   that a reader's extension
//                fits, without hidden ones and without .png (beside models they are textures; name them, or use a
//                pattern).
//   a pattern    * ? [a-z] within a name, ** for any number of directories. Hidden names only match a written dot;
//   links to
//                directories are not walked below ** and below directories. A directory that matches stands for its
//                files.
//   any other    the name of a file that is not there: it is given all the same, so that a batch can count it among the
//   failures.
// Errors: not_found (a list that is not there; a pattern or a directory that gives nothing), io (a directory that
// cannot be read), invalid_argument (`..` behind a wildcard).
Result<std::vector<Input>> expand_inputs(std::span<const std::string> words);

// True if `text` has a {placeholder} of fill_template.
bool is_template(const std::string& text);

// What fill_template puts in: {stem} and {ext} of the input's name, {dir} its place (see Input::relative; empty for the
// top), {index} its number among `count` inputs from 1 on, with as many digits as the last one needs, {part} the part
// of an input that was split.
struct TemplateValues {
  std::filesystem::path relative;
  size_t index = 1, count = 1;
  std::string part;
};
// "out/{dir}/{stem}.glb" -> "out/houses/mill.glb"; "{{" and "}}" are braces. Errors: invalid_argument (an unknown name:
// with the nearest).
Result<std::filesystem::path> fill_template(const std::string& text, const TemplateValues& values);

}  // namespace quarry::app
