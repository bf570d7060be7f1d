// SPDX-License-Identifier: Apache-2.0
// resume.cpp - the manifest behind --resume: XXH3 sums of inputs and options, and the size and time of each output when
// it was written.
#include "app/batch/resume.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/deferred_sync.hpp"
#include "voxel/io/files/temporary_name.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kName = ".quarry-resume";

// Reads the dependencies of a line. False if the line is of a version that did not record them.
bool read_needs(const json& entry, Dependencies& needs) {
  const json found = entry.value("needs", json());
  if (!found.is_object() || !found.value("files", json()).is_array() || !found.value("hash", json()).is_string())
    return false;
  for (const json& file : found["files"])
    if (file.is_string()) needs.files.push_back(file);
  needs.hash = found["hash"];
  return true;
}

}  // namespace

Result<std::string> content_hash(const std::vector<Input>& inputs, const std::string& options,
                                 const std::atomic<bool>* cancel, std::vector<FileChecksum>* each) {
  Checksum hash;
  hash.add_text(options);
  for (const Input& input : inputs) {
    hash.add_text(input.file.filename().string());
    QRY_TRY_ASSIGN(auto sum, checksum_of(input.file, cancel, &hash));
    if (!each) continue;
    sum.file = input.relative.generic_string();
    each->push_back(std::move(sum));
  }
  return hash.hex();
}

ResumeManifest::ResumeManifest(fs::path folder, const std::string& suffix)
    : folder_(folder.empty() ? fs::path(".") : std::move(folder)), file_(folder_ / (kName + suffix)) {
  std::error_code error;
  std::vector<fs::path> manifests;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kName)) manifests.push_back(it->path());
  std::ranges::sort(manifests);
  for (const fs::path& manifest : manifests) {
    std::ifstream in(manifest);
    std::vector<std::string> open;  // jobs without a settling line yet
    for (std::string line; std::getline(in, line);) {
      const json entry = json::parse(line, nullptr, false);
      if (entry.is_object() && entry.value("settled", json()).is_boolean()) {
        for (const std::string& job : open) {
          Entry& settled = entries_[job];
          if (settled.manifest != manifest) continue;
          if (entry.value("start", json()) != settled.start) continue;  // the machine was restarted between them
          settled.on_disk = settled.believed = entry["settled"];
          for (const Output& output : settled.outputs) files_[output.file].unsure = !settled.on_disk;
        }
        open.clear();
        continue;
      }
      if (!entry.is_object() || !entry.contains("job") || !entry["job"].is_string() || !entry.contains("hash") ||
          !entry["hash"].is_string() || !entry.contains("outputs") || !entry["outputs"].is_array())
        continue;
      Entry read;
      read.hash = entry["hash"];
      if (!read_needs(entry, read.needs)) read.hash.clear();
      // Lines of version 0.1 do not say when they were written; their files count as being on disk.
      if (const json start = entry.value("start", json()); start.is_string()) {
        read.start = start;
        read.on_disk = false;
        read.believed = read.start == io::machine_start();
        open.push_back(entry["job"]);
      }
      for (const json& output : entry["outputs"])
        if (output.is_object() && output.value("file", json()).is_string() &&
            output.value("bytes", json()).is_number_integer() && output.value("time", json()).is_number_integer())
          read.outputs.push_back({output["file"], output["bytes"], output["time"], false});
      for (const json& sum : entry.value("checksums", json::array()))
        if (sum.is_object() && sum.value("file", json()).is_string() && sum.value("xxh128", json()).is_string() &&
            sum.value("bytes", json()).is_number_integer())
          read.checksums.push_back({sum["file"], sum["bytes"], sum["xxh128"]});
      read.manifest = manifest;
      take(entry["job"], std::move(read));
    }
  }
}

// A later line of the same file replaces an earlier one. Lines of different files (of shards, of a run without) have no
// order, so the one stays that tells of the outputs that are there.
void ResumeManifest::take(const std::string& job, Entry&& read) {
  const auto as_left_all = [&](const Entry& entry) {
    return std::ranges::all_of(entry.outputs, [&](const Output& output) { return as_left(output); });
  };
  if (const auto it = entries_.find(job);
      it != entries_.end() && it->second.manifest != read.manifest && as_left_all(it->second) && !as_left_all(read))
    return;
  for (Output output : read.outputs) {
    output.unsure = !read.on_disk;
    files_[output.file] = output;
  }
  entries_[job] = std::move(read);
}

ResumeManifest::Output ResumeManifest::look(const fs::path& file) const {
  Output output{file.lexically_proximate(folder_).generic_string(), 0, 0, false};
  std::error_code error;
  output.bytes = fs::is_directory(file, error) ? 0 : fs::file_size(file, error);
  if (error) return output;
  output.time = int64_t(fs::last_write_time(file, error).time_since_epoch().count());
  return output;
}

bool ResumeManifest::as_left(const Output& output) const {
  std::error_code error;
  if (!fs::exists(folder_ / output.file, error)) return false;
  const Output now = look(folder_ / output.file);
  return now.bytes == output.bytes && now.time == output.time;
}

bool ResumeManifest::unchanged(const std::string& job, const std::string& hash) const {
  const auto it = entries_.find(job);
  return it != entries_.end() && !hash.empty() && it->second.hash == hash && it->second.believed &&
         !it->second.outputs.empty() &&
         std::ranges::all_of(it->second.outputs, [&](const Output& output) { return as_left(output); });
}

bool ResumeManifest::wrote(const fs::path& file) const {
  const auto it = files_.find(file.lexically_proximate(folder_).generic_string());
  if (it == files_.end()) return false;
  // After a power cut, a file that was not on disk yet is empty.
  std::error_code error;
  return as_left(it->second) ||
         (it->second.unsure && fs::is_regular_file(file, error) && fs::file_size(file, error) == 0);
}

std::vector<fs::path> ResumeManifest::unsynced() const {
  std::vector<fs::path> out;
  for (const auto& [job, entry] : entries_)
    if (!entry.on_disk && entry.believed)
      for (const Output& output : entry.outputs) out.push_back(folder_ / output.file);
  return out;
}

std::vector<fs::path> ResumeManifest::outputs(const std::string& job) const {
  std::vector<fs::path> out;
  if (const auto it = entries_.find(job); it != entries_.end())
    for (const Output& output : it->second.outputs) out.push_back(folder_ / output.file);
  return out;
}

bool ResumeManifest::has_old() const {
  return std::ranges::any_of(entries_, [](const auto& entry) { return entry.second.hash.empty(); });
}

Dependencies ResumeManifest::dependencies(const std::string& job) const {
  const auto it = entries_.find(job);
  return it == entries_.end() ? Dependencies() : it->second.needs;
}

std::vector<FileChecksum> ResumeManifest::checksums(const std::string& job) const {
  const auto it = entries_.find(job);
  return it == entries_.end() ? std::vector<FileChecksum>() : it->second.checksums;
}

Result<void> ResumeManifest::record(const std::string& job, const std::string& hash,
                                    const std::vector<fs::path>& outputs, const Dependencies& needs,
                                    const std::vector<FileChecksum>& checksums) {
  json entry{{"job", job}, {"hash", hash}, {"start", io::machine_start()}, {"outputs", json::array()}};
  entry["needs"] = {{"files", needs.files}, {"hash", needs.hash}};
  for (const fs::path& file : outputs) {
    const Output output = look(file);
    entry["outputs"].push_back({{"file", output.file}, {"bytes", output.bytes}, {"time", output.time}});
  }
  for (const FileChecksum& sum : checksums)
    entry["checksums"].push_back({{"file", sum.file}, {"bytes", sum.bytes}, {"xxh128", sum.xxh128}});
  return append(entry.dump(-1, ' ', false, json::error_handler_t::replace), false);
}

Result<void> ResumeManifest::settled(bool on_disk) {
  std::error_code error;
  if (!fs::exists(file_, error)) return {};  // nothing was recorded
  return append(json{{"settled", on_disk}, {"start", io::machine_start()}}.dump(), true);
}

fs::path ResumeManifest::file_in(const fs::path& folder, const std::string& suffix) {
  return folder / (kName + suffix);
}

// Appends a line of its own, in one write where the system allows. A kill then leaves whole lines, except perhaps the
// last.
Result<void> ResumeManifest::append(std::string line, bool sync) {
  const std::scoped_lock lock(mutex_);
  const auto refused = [&](int number) {
    return tl::unexpected(
        io::error_from_errno(file_.string() + ": cannot be written, so --resume will not know what was done", number));
  };
  const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return refused(errno);
  struct stat info {};
  int number = ::fstat(fd, &info) == 0 ? 0 : errno;
  if (!number && !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::io,
                file_.string() + ": is not a regular file, so --resume cannot remember what was done; take it away");
  }
  // Ends a line that a full disk or a kill cut off, before this one.
  char last = '\n';
  if (!number && info.st_size > 0 && ::pread(fd, &last, 1, info.st_size - 1) < 0) number = errno;
  line = (last == '\n' ? "" : "\n") + line + "\n";
  for (size_t at = 0; at < line.size() && !number;) {
    const ssize_t n = ::write(fd, line.data() + at, line.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) number = n < 0 ? errno : EIO;
    else at += size_t(n);
  }
  if (!number && sync) number = io::sync_file(fd);
  if (!number && sync) number = io::sync_folder(folder_, fd);
  if (::close(fd) != 0 && errno != EINTR && !number) number = errno;
  if (number) return refused(number);
  return {};
}

}  // namespace quarry::app
