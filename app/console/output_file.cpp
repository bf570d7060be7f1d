// SPDX-License-Identifier: Apache-2.0
// output_file.cpp - compares places by device and inode, not by name, before anything is written. Reports may also go
// to streams and pipes.
#include "app/console/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/files/temporary_name.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/store.hpp"

namespace quarry::app {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kOldReportBytes = uint64_t{64} << 20;  // of a report by 0.1; it is recognised by its whole content

// Does its work once for each folder.
void remove_left_in(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> seen;
  const std::scoped_lock lock(mutex);
  if (!seen.insert(fs::absolute(folder).lexically_normal()).second) return;
  std::vector<std::string> repaired;
  if (const size_t removed = io::remove_stale_temporaries(folder, &repaired); removed > 0)
    fmt::print(stderr, "quarry: {}: removed {} unfinished file{} that a killed quarry had left there\n",
               folder.string(), removed, removed == 1 ? "" : "s");
  for (const std::string& sentence : repaired) fmt::print(stderr, "quarry: {}: {}\n", folder.string(), sentence);
}

Error named(const fs::path& file, const Error& error) { return {error.code, file.string() + ": " + error.message}; }

struct FileIdentity {
  bool there = false;
  struct stat info {};
  explicit FileIdentity(const fs::path& file) { there = ::stat(file.c_str(), &info) == 0; }
  explicit FileIdentity(int fd) { there = ::fstat(fd, &info) == 0; }
  bool same(const FileIdentity& other) const {
    return there && other.there && info.st_dev == other.info.st_dev && info.st_ino == other.info.st_ino;
  }
};

// True for the same existing file under any names, or the same name of a file that does not exist.
bool same_file(const fs::path& a, const fs::path& b) {
  const FileIdentity first(a), second(b);
  if (first.there || second.there) return first.same(second);
  const auto to_a = io::find_target(a), to_b = io::find_target(b);
  return to_a && to_b && to_a->filename() == to_b->filename() &&
         FileIdentity(io::folder_of(*to_a)).same(FileIdentity(io::folder_of(*to_b)));
}

// A stream that a report is written into without replacing it: a descriptor of this program, or one that must be
// opened. If neither is set, the report is a file.
struct ReportStream {
  int own = -1;
  bool open = false;
};
ReportStream stream_of(const fs::path& report) {
  const FileIdentity target(report);
  if (!target.there) return {};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (target.same(FileIdentity(fd))) return {fd, false};
  return {-1, S_ISCHR(target.info.st_mode) || S_ISFIFO(target.info.st_mode)};
}

// Whether --report wrote the file. Its first line tells, or for version 0.1 its content. An empty file counts too.
bool is_report(const fs::path& file) {
  const std::string_view head = kReportHead;
  const auto first = io::read_file_head(file, head.size());
  if (!first) return false;
  if (first->empty() || std::equal(first->begin(), first->end(), head.begin(), head.end())) return true;
  const auto all = io::read_file(file, kOldReportBytes);
  if (!all) return false;
  const nlohmann::json document = nlohmann::json::parse(*all, nullptr, false);
  return document.is_object() && document.size() == 2 && document.contains("files") && document["files"].is_array() &&
         document.contains("summary") && document["summary"].is_object() &&
         document["summary"].value("event", nlohmann::json()) == "summary";
}

// Whether a report may be written to `report`, which is no stream.
Result<void> check_report_file(const fs::path& report) {
  QRY_TRY_ASSIGN(const auto target, io::find_target(report));
  std::error_code error;
  if (!fs::is_directory(io::folder_of(target), error))
    return fail(ErrorCode::io, "there is no directory " + io::folder_of(target).string());
  if (fs::exists(target, error) && !is_report(target))
    return fail(ErrorCode::conflict,
                "is there already and is no report of quarry's, so it is not replaced; give "
                "--report another name, or take the file away");
  return {};
}

}  // namespace

void remove_left_behind(const fs::path& output) {
  if (const auto target = io::find_target(output)) remove_left_in(io::folder_of(*target));
}

Result<void> check_output(const fs::path& output, bool overwrite) {
  std::error_code error;
  if (fs::is_directory(output, error))
    return fail(ErrorCode::invalid_argument, output.string() + ": is a directory, not a file to write");
  const auto target = io::find_target(output);
  if (!target) return tl::unexpected<Error>(named(output, target.error()));
  const fs::path parent = io::folder_of(*target);
  if (!fs::is_directory(parent, error))
    return fail(ErrorCode::io, output.string() + ": there is no directory " + parent.string());
  remove_left_in(parent);
  if (!overwrite && fs::exists(output, error))
    return fail(ErrorCode::conflict, output.string() + ": is there already; give --overwrite to replace it");
  if (const fs::path sidecar = io::sidecar_of(output); !sidecar.empty())
    if (const auto free = io::find_target({sidecar, overwrite}); !free)
      return fail(free.error().code, fmt::format("{}: {}, which belongs to it: {}", output.string(), sidecar.string(),
                                                 free.error().message));
  return {};
}

std::string replaced_sidecars(const fs::path& output) {
  const auto format = io::format_for_writing(output);
  if (!format || (*format)->kind != io::FormatKind::world) return {};
  const std::string damage = io::Store::damaged_sidecars(output);
  if (!damage.empty())
    return fmt::format("replacing the world {} takes away edits beside it: {}", output.string(), damage);
  const std::string kept = io::Store::foreign_sidecars(output);
  return kept.empty() ? kept : fmt::format("{}: {}", output.string(), kept);
}

Result<void> check_apart(const fs::path& file, std::span<const fs::path> used, const char* option) {
  for (const fs::path& other : used)
    if (same_file(file, other))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: is {}, which this command reads or writes; give {} another name", file.string(),
                              other.string(), option));
  return {};
}

Result<void> check_report(const fs::path& report, std::span<const fs::path> used) {
  QRY_TRY(check_apart(report, used, "--report"));
  const ReportStream stream = stream_of(report);
  if (stream.own >= 0 || stream.open) return {};
  remove_left_behind(report);
  return check_report_file(report).map_error([&](const Error& e) { return named(report, e); });
}

Result<void> write_report(const fs::path& report, const std::string& text) {
  const auto refused = [&](const std::string& what, int number) {
    return tl::unexpected<Error>(named(report, io::error_from_errno(what, number)));
  };
  const ReportStream stream = stream_of(report);
  if (stream.own < 0 && !stream.open) {
    Result<void> done = check_report_file(report);
    if (done) {
      auto out = io::AtomicFile::create(report);
      if (out) out->put(text);
      done = out ? out->commit() : tl::unexpected<Error>(out.error());
    }
    return done.map_error([&](const Error& e) { return named(report, e); });
  }
  int fd = stream.own;
  if (stream.open) {
    // Opened without waiting for a reader, because that could take forever.
    fd = ::open(report.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENXIO) return fail(ErrorCode::io, report.string() + ": nobody reads from it");
    if (fd < 0) return refused("cannot open it", errno);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  }
  // Text printed before goes first.
  int number = std::fflush(stdout) == 0 ? 0 : errno;
  for (size_t at = 0; at < text.size() && !number;) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) number = n < 0 ? errno : EIO;
    else at += size_t(n);
  }
  if (stream.open && ::close(fd) != 0 && errno != EINTR && !number) number = errno;
  if (number) return refused("cannot write into it", number);
  return {};
}

}  // namespace quarry::app
