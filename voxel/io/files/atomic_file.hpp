// SPDX-License-Identifier: Apache-2.0
// atomic_file.hpp - the one way in which Quarry writes a file: it appears whole or not at all, even if the process dies
// or the disk fills. It is written under a temporary name in the same folder, checked (every write, the length, the
// fsync), then renamed. Worlds (quarry/writer.hpp), pictures, volumes, meshes with their sidecars and reports are all
// written by it, as are the files of programs and libraries that write in their own way (sink(), temporary()).
//
//   Destination           where to write, and what may be replaced
//   find_target()         the file that a destination means: links are followed; devices, pipes, sockets and folders
//                         are refused
//   AtomicFile             the file that is being made
//   DeferredSync             (deferred_sync.hpp) brings all new files of a batch to disk at once
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "voxel/io/files/deferred_sync.hpp"
#include "voxel/io/files/sink.hpp"

namespace quarry::io {

// A name alone is enough: an existing file is replaced, and the call that writes returns when the file is on disk.
struct Destination {
  std::filesystem::path file;
  // False: a file that exists, or appears while this one is made, is kept, and the writer returns conflict.
  bool replace = true;
  // Without `replace`: a file that exists with the very bytes that would be written counts as written. The writer does
  // its whole work to find out. Any other file is kept, and the writer returns conflict.
  bool same_is_fine = false;
  // If given, the caller of settle() waits for the disk instead of the writer, unless the file replaces another.
  DeferredSync* later = nullptr;

  // Implicit, as from string to path.
  template <class T>
  requires std::convertible_to<T, std::filesystem::path>  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  Destination(T&& name, bool may_replace = true, DeferredSync* deferred_sync = nullptr)
      : file(std::forward<T>(name)), replace(may_replace), later(deferred_sync) {}
  // The same for another file.
  Destination with(std::filesystem::path other) const {
    Destination out = *this;
    out.file = std::move(other);
    return out;
  }
};

// Returns the file that `to.file` leads to. A link is followed, even to a file that does not exist yet. Errors:
// conflict (the file exists and must not be replaced), io (a folder, device, FIFO or socket; a cycle of links),
// not_found. Messages do not name the file.
Result<std::filesystem::path> find_target(const Destination& to);

// Not thread-safe. After the first failure every call does nothing, and commit() returns that failure, with the
// system's reason.
class AtomicFile {
 public:
  // Makes the temporary file in the folder of the target. It gets the target's mode and owner, if the target exists and
  // they can be kept. Errors: those of find_target(), io (no permission).
  static Result<AtomicFile> create(const Destination& to);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile();  // without commit(): removes the temporary file and keeps the old one

  void put(std::span<const uint8_t> bytes) { sink_.put(bytes); }
  void put(std::string_view text) { sink_.put(text); }
  void put_u32(uint32_t v);  // little-endian
  // Replaces bytes that were written before.
  void patch_u32(uint64_t offset, uint32_t v);
  uint64_t size() const { return sink_.size(); }
  // For libraries that write into a stream: SinkStreambuf.
  FileSink& sink() { return sink_; }
  // For libraries and programs that open the file by name, write all of it and close it. They then state its length.
  // Do not call put() with it.
  const std::filesystem::path& temporary() const { return temporary_; }
  void written_by_name(uint64_t bytes) { by_name_ = bytes; }
  int descriptor() const { return fd_; }  // of the temporary file, for reading and writing; it holds the lock

  const std::filesystem::path& target() const { return target_; }
  bool replaces() const { return replaces_; }  // the target existed at the beginning
  bool may_keep() const { return to_.same_is_fine && !to_.replace; }
  bool kept() const { return kept_; }  // after commit(): the target was there with the same bytes, and still is

  // Gives the file its name. `before`, if given, is called when the file is whole and on disk and the target is still
  // untouched. `after` is called once the file has its name, which is not on disk yet. Errors: those of the two; io (no
  // space, no permission; the target has become something else), conflict (another file has appeared, and must not be
  // replaced), that of an earlier call. One error comes after the file has its name, and says so: the folder could not
  // be brought to disk.
  Result<void> commit(const std::function<Result<void>()>& before = {},
                      const std::function<Result<void>()>& after = {});
  // Makes both files whole. Then the sidecar, which is needed to read this file, gets its name, then this file. If this
  // file cannot get it, the old sidecar is restored. A process that is killed between the two leaves a mark, from which
  // remove_stale_temporaries() does the same.
  Result<void> commit_after(AtomicFile& sidecar);

 private:
  explicit AtomicFile(const Destination& to) : to_(to) {}
  bool waits() const { return replaces_ || !to_.later; }  // whether it waits for the disk before the rename
  Result<void> settle();
  Result<void> place();
  Result<void> keep_same();
  Result<void> sync_folder();
  void forget();

  Destination to_;
  std::filesystem::path target_, temporary_;
  std::filesystem::path folder_;  // of the target; known before the rename, after which nothing should fail for memory
  bool replaces_ = false, settled_ = false, kept_ = false;
  int fd_ = -1;  // locked until the file has its name
  std::optional<uint64_t> by_name_;
  FileSink sink_;
};

}  // namespace quarry::io
