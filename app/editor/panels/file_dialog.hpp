// SPDX-License-Identifier: Apache-2.0
// file_dialog.hpp - the choice of a file to open or to write, as a window of the editor. It is the same on every
// desktop, and scripts can drive it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/editor/session/volume_changes.hpp"
#include "base/result.hpp"

namespace quarry::app {

// What happens with the chosen file. An error is shown in the dialog, which stays open.
struct FileDialogAnswers {
  std::function<Result<void>(const std::filesystem::path&)> open, save_as;
  std::function<Result<void>(const std::filesystem::path&, BooleanKind)> combine;
  std::function<void()> cancelled;
};

class FileDialog {
 public:
  void show_open();
  void show_combine(BooleanKind kind);  // a file that is combined with the volume
  void show_save(const std::filesystem::path& suggestion);
  bool shown() const { return kind_ != Kind::none; }
  void draw(const FileDialogAnswers& answers);

 private:
  enum class Kind { none, open, combine, save };
  void list();
  void accept(const FileDialogAnswers& answers);

  Kind kind_ = Kind::none;
  BooleanKind combined_ = BooleanKind::union_of;
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
