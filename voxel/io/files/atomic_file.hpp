// SPDX-License-Identifier: Apache-2.0
// atomic_file.hpp - the one way in which Quarry writes a file: it appears whole or not at all, whatever ends the
// process or fills the disk. Written beside its name, looked at again (every write, the length, the disk's own word),
// then renamed. Worlds (quarry/writer.hpp), pictures, volumes, meshes with what lies beside them and reports all stand
// on it; so do programs and libraries that write in their own way (sink(), temporary()).
//
//   Destination           where to, and what may be in its place
//   find_target()         which file that is: links are followed; devices, pipes, sockets and folders are refused
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

// A name alone will do: what is there is replaced, and the call that writes returns when the file is on disk.
struct Destination {
  std::filesystem::path file;
  // False: what is there, or comes while the file is made, stays, and the writer answers with conflict.
  bool replace = true;
  // Given: whoever settles it waits for the disk, not the writer, unless the file replaces another.
  DeferredSync* later = nullptr;

  template <class T>
  requires std::convertible_to<T, std::filesystem::path> Destination(
      T&& name, bool may_replace = true,
      DeferredSync* deferred_sync = nullptr)  // NOLINT: implicit as from string to path
      : file(std::forward<T>(name)), replace(may_replace), later(deferred_sync) {}
  // The same for another file.
  Destination with(std::filesystem::path other) const { return {std::move(other), replace, later}; }
};

// The file that `file` leads to: a link is followed, also one to a file that is not there yet. Errors: conflict (it is
// there and must not be replaced), io (a folder, device, FIFO or socket; links that lead in a circle), not_found.
// Messages do not name the file.
Result<std::filesystem::path> find_target(const Destination& to);

// One thread. After the first failure every call does nothing and commit() returns that failure, with the system's
// reason.
class AtomicFile {
 public:
  // Makes the temporary file, in the folder of the target, with the target's mode and owner if it is there and they can
  // be kept. Errors: those of find_target(), io (no permission).
  static Result<AtomicFile> create(const Destination& to);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile();  // without commit(): the temporary file goes, what was there before stays

  void put(std::span<const uint8_t> bytes) { sink_.put(bytes); }
  void put(std::string_view text) { sink_.put(text); }
  void put_u32(uint32_t v);  // little-endian
  // Replaces bytes that were put before.
  void patch_u32(uint64_t offset, uint32_t v);
  uint64_t size() const { return sink_.size(); }
  // For libraries that write into a stream: SinkStreambuf.
  FileSink& sink() { return sink_; }
  // For libraries and programs that open it by its name and write all of it; they close it, and say how long it must be
  // then. Put nothing.
  const std::filesystem::path& temporary() const { return temporary_; }
  void written_by_name(uint64_t bytes) { by_name_ = bytes; }
  int descriptor() const { return fd_; }  // of the temporary file, to read and write; the lock is on it

  const std::filesystem::path& target() const { return target_; }
  bool replaces() const { return replaces_; }  // a file was there when it was begun

  // Gives it its name. `before`, if given, is called when it is whole and on disk and nothing has happened to the
  // target yet; `after` once it has its name, which is not on disk yet. Errors: those of the two; io (no space, no
  // permission; the target has become something else), conflict (another file has appeared, and must not be replaced),
  // that of an earlier call. An error that says so comes after the new file has its name: its folder could not be
  // brought to disk.
  Result<void> commit(const std::function<Result<void>()>& before = {},
                      const std::function<Result<void>()>& after = {});
  // Both are made whole; then the sidecar, without which this one is not understood, gets its name, then this one. If
  // this one cannot, what was in the sidecar's place comes back. Killed between the two it leaves a mark, by which
  // remove_stale_temporaries() does the same.
  Result<void> commit_after(AtomicFile& sidecar);

 private:
  explicit AtomicFile(const Destination& to) : to_(to) {}
  bool waits() const { return replaces_ || !to_.later; }  // for the disk, before it has its name
  Result<void> settle();
  Result<void> place();
  Result<void> sync_folder();
  void forget();

  Destination to_;
  std::filesystem::path target_, temporary_;
  bool replaces_ = false, settled_ = false;
  int fd_ = -1;  // locked, until the file has its name
  std::optional<uint64_t> by_name_;
  FileSink sink_;
};

}  // namespace quarry::io
