// SPDX-License-Identifier: Apache-2.0
// file_dialog.cpp - lists a folder and draws the dialog. Only files of known formats are shown.
#include "app/editor/panels/file_dialog.hpp"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "app/console/terminal.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

namespace {

bool readable(const fs::path& file) {
  std::string extension = file.extension().string();
  if (extension.empty()) return false;
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  for (const io::Format& format : io::formats())
    if (format.read && std::ranges::find(format.extensions, extension.substr(1)) != format.extensions.end())
      return true;
  return false;
}

}  // namespace

void FileDialog::show_open() {
  kind_ = Kind::open;
  opened_ = false;
  name_.clear();
  list();
}

void FileDialog::show_combine(BooleanKind kind) {
  show_open();
  kind_ = Kind::combine;
  combined_ = kind;
}

void FileDialog::show_save(const fs::path& suggestion) {
  kind_ = Kind::save;
  opened_ = false;
  confirm_overwrite_ = false;
  std::error_code error;
  const fs::path whole = fs::absolute(suggestion, error);
  if (fs::is_directory(whole.parent_path(), error)) directory_ = whole.parent_path();
  name_ = whole.filename().string();
  list();
}

void FileDialog::list() {
  std::error_code error;
  if (directory_.empty()) directory_ = fs::current_path(error);
  entries_.clear();
  problem_.clear();
  for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
    std::error_code entry_error;
    Entry entry;
    entry.name = at->path().filename().string();
    entry.directory = at->is_directory(entry_error);
    if (entry.name.starts_with(".") || (!entry.directory && !readable(at->path()))) continue;
    if (!entry.directory) entry.bytes = at->file_size(entry_error);
    entries_.push_back(std::move(entry));
  }
  if (error) problem_ = directory_.string() + ": " + error.message();
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return a.directory != b.directory ? a.directory : a.name < b.name;
  });
}

void FileDialog::accept(const FileDialogAnswers& answers) {
  if (name_.empty()) return;
  const fs::path file = directory_ / name_;  // an absolute name wins
  std::error_code error;
  if (fs::is_directory(file, error)) {
    directory_ = fs::canonical(file, error);
    name_.clear();
    list();
    return;
  }
  if (kind_ == Kind::save && fs::exists(file, error) && !confirm_overwrite_) {
    confirm_overwrite_ = true;
    problem_ = file.filename().string() + " is there already. Press again to replace it.";
    return;
  }
  const auto done = kind_ == Kind::open      ? answers.open(file)
                    : kind_ == Kind::combine ? answers.combine(file, combined_)
                                             : answers.save_as(file);
  if (done) kind_ = Kind::none;
  else problem_ = done.error().message;
}

void FileDialog::draw(const FileDialogAnswers& answers) {
  if (kind_ == Kind::none) return;
  const char* title = kind_ == Kind::save                      ? "Save as###file"
                      : kind_ == Kind::open                    ? "Open###file"
                      : combined_ == BooleanKind::union_of     ? "Unite with a file###file"
                      : combined_ == BooleanKind::intersection ? "Intersect with a file###file"
                                                               : "Subtract a file###file";
  if (!opened_) ImGui::OpenPopup(title);
  opened_ = true;
  const float em = ImGui::GetFontSize();
  ImGui::SetNextWindowSize({em * 42, em * 30}, ImGuiCond_Appearing);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  bool keep = true;
  if (!ImGui::BeginPopupModal(title, &keep, ImGuiWindowFlags_NoSavedSettings)) {
    kind_ = Kind::none;
    return;
  }
  if (ImGui::Button("Up")) {
    directory_ = directory_.parent_path();
    list();
  }
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(directory_.string().c_str());
  ImGui::BeginChild("files", {0, -em * 6.1f}, true);
  std::string enter;
  for (const Entry& entry : entries_) {
    const std::string label = entry.directory ? entry.name + "/" : entry.name;
    if (ImGui::Selectable(label.c_str(), name_ == entry.name, ImGuiSelectableFlags_AllowDoubleClick)) {
      confirm_overwrite_ = false;
      if (entry.directory) enter = entry.name;
      else name_ = entry.name;
      if (!entry.directory && ImGui::IsMouseDoubleClicked(0)) accept(answers);
    }
    if (!entry.directory) {
      const std::string size = bytes_text(entry.bytes);
      ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - ImGui::CalcTextSize(size.c_str()).x);
      ImGui::TextDisabled("%s", size.c_str());
    }
  }
  if (entries_.empty()) ImGui::TextDisabled("No files that can be read here");
  ImGui::EndChild();
  if (!enter.empty()) {
    directory_ /= enter;
    list();
  }
  ImGui::SetNextItemWidth(-1);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  if (ImGui::InputText("##name", &name_, ImGuiInputTextFlags_EnterReturnsTrue)) accept(answers);
  if (ImGui::IsItemEdited()) confirm_overwrite_ = false;
  if (!problem_.empty()) ImGui::TextColored({0.94f, 0.48f, 0.48f, 1}, "%s", problem_.c_str());
  else
    ImGui::TextDisabled("%s", kind_ == Kind::save ? "The ending names the format: .quarry keeps everything"
                                                  : "Worlds, .vox and meshes");
  const char* const button = kind_ == Kind::open ? "Open" : kind_ == Kind::save ? "Save" : "Combine";
  if (ImGui::Button(button, {em * 7, 0})) accept(answers);
  ImGui::SameLine();
  if (ImGui::Button("Cancel", {em * 7, 0}) || !keep) {
    kind_ = Kind::none;
    answers.cancelled();
  }
  if (kind_ == Kind::none) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace quarry::app
