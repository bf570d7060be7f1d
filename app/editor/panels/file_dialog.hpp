// SPDX-License-Identifier: Apache-2.0
// file_dialog.hpp - choosing a file to open or to write, as a window of the editor: the same on every desktop, and scriptable.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quarry::app {

struct Editor;

class FileDialog {
 public:
  void show_open();
  void show_save(const std::filesystem::path& suggestion);
  bool shown() const { return kind_ != Kind::none; }
  void draw(Editor& editor);

 private:
  enum class Kind { none, open, save };
  void list();
  void accept(Editor& editor);

  Kind kind_ = Kind::none;
  bool opened_ = false, confirm_overwrite_ = false;
  std::filesystem::path directory_;
  std::string name_, problem_;
  struct Entry {
    std::string name;
    bool directory = false;
    uintmax_t bytes = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace quarry::app
