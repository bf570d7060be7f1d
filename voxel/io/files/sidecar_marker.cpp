// SPDX-License-Identifier: Apache-2.0
// sidecar_marker.cpp - the mark's fields, and the order of links and renames. From these, a process that finds a mark
// can tell which of the two files is new, and restore the old sidecar.
#include "voxel/io/files/sidecar_marker.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/deferred_sync.hpp"
#include "voxel/io/files/sink.hpp"
#include "voxel/io/files/temporary_name.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kHead = "quarry companion mark 1";
constexpr size_t kMaxBytes = 1 << 16;

// The errors of systems that do not support links, or not for this file.
bool no_links(int number) {
  return number == EPERM || number == ENOTSUP || number == ENOSYS || number == EMLINK || number == EINVAL;
}

uint64_t number_of(const fs::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? uint64_t(info.st_ino) : 0;
}

}  // namespace

std::string SidecarMarker::Fields::text() const {
  std::string out(kHead);
  for (const std::string& field :
       {sidecar.string(), kept.string(), file.string(), std::to_string(sidecar_number), std::to_string(file_number)})
    (out += '\0') += field;
  return out += '\0';
}

std::optional<SidecarMarker::Fields> SidecarMarker::Fields::read(const fs::path& mark) {
  const auto bytes = read_file_head(mark, kMaxBytes);
  if (!bytes || bytes->empty() || bytes->back() != 0) return {};
  std::vector<std::string> texts(1);
  for (const uint8_t byte : *bytes)
    if (byte) texts.back() += char(byte);
    else texts.emplace_back();
  if (texts.size() != 7 || texts[0] != kHead) return {};
  Fields fields{texts[1], texts[2], texts[3], 0, 0};
  for (const auto& [text, number] :
       {std::pair(&texts[4], &fields.sidecar_number), std::pair(&texts[5], &fields.file_number)})
    if (std::from_chars(text->data(), text->data() + text->size(), *number).ec != std::errc()) return {};
  return fields;
}

bool SidecarMarker::Fields::new_sidecar() const { return sidecar_number != 0 && number_of(sidecar) == sidecar_number; }

int SidecarMarker::Fields::put_back() const {
  const bool new_one = new_sidecar();
  if (!number_of(kept)) return !new_one || ::unlink(sidecar.c_str()) == 0 ? 0 : errno;
  const bool wanted = new_one || !number_of(sidecar);
  return (wanted ? ::rename(kept.c_str(), sidecar.c_str()) : ::unlink(kept.c_str())) == 0 ? 0 : errno;
}

SidecarMarker::~SidecarMarker() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> SidecarMarker::begin(const SidecarPair& pair, bool replaces, bool on_disk) {
  QRY_TRY_ASSIGN(auto made, make_temporary_file(pair.file, 0600, "set"));
  mark_ = std::move(made.path);
  fd_ = made.fd;
  // Others may not remove the second name as a temporary one. Only a process that reads the mark does.
  fields_ = {fs::absolute(pair.sidecar), fs::absolute(temporary_name(pair.sidecar, "kept")), fs::absolute(pair.file),
             number_of(pair.sidecar_temporary), number_of(pair.file_temporary)};
  FileSink sink(fd_);
  sink.put(fields_.text());
  int number = sink.settle();
  const fs::path folder = pair.file.has_parent_path() ? pair.file.parent_path() : fs::path(".");
  if (!number && on_disk) number = sync_file(fd_);
  if (!number && on_disk) number = sync_folder(folder, fd_);
  const fs::path &sidecar = fields_.sidecar, &kept = fields_.kept;
  // If links are not supported (FAT), the old sidecar is renamed and its name is free for a moment.
  if (!number && replaces && ::link(sidecar.c_str(), kept.c_str()) != 0 && errno != ENOENT)
    number = no_links(errno) && ::rename(sidecar.c_str(), kept.c_str()) == 0 ? 0 : errno;
  if (!number) return {};
  const fs::path mark = mark_;
  end();
  return tl::unexpected(error_from_errno("cannot write the mark " + mark.string() + " beside it", number));
}

void SidecarMarker::end() {
  ::unlink(fields_.kept.c_str());
  ::unlink(mark_.c_str());
  mark_.clear();
}

Result<void> SidecarMarker::rollback() {
  if (mark_.empty()) return {};
  if (const int number = fields_.put_back())
    return tl::unexpected(
        error_from_errno(fields_.sidecar.string() +
                             " is the new one, and the one before it could not be put back; the next run tries again",
                         number));
  ::unlink(mark_.c_str());
  mark_.clear();
  return {};
}

std::string SidecarMarker::repair(const fs::path& mark) {
  std::string message;
  if (const auto fields = Fields::read(mark)) {
    const bool both = fields->file_number != 0 && number_of(fields->file) == fields->file_number;
    const bool new_sidecar = fields->new_sidecar(), kept = number_of(fields->kept) != 0;
    const std::string sidecar = fields->sidecar.filename().string(), file = fields->file.filename().string();
    if (both) {
      ::unlink(fields->kept.c_str());
    } else if (const int number = fields->put_back()) {
      return error_from_errno(sidecar + " is of a newer writing than " + file +
                                  ": a killed quarry had replaced it; convert again, for it cannot be put back",
                              number)
          .message;
    } else if (new_sidecar) {
      message = kept ? sidecar + " was of a newer writing than " + file +
                           ": a killed quarry had replaced it; the one before is back; convert again"
                     : sidecar + " was there without its " + file +
                           ": a killed quarry had not come to that; it is removed; convert again";
    }
  }
  ::unlink(mark.c_str());
  return message;
}

}  // namespace quarry::io
