/* SPDX-License-Identifier: Apache-2.0 */
/* fault_shim.c - preloaded into a program and its children. It counts the calls that change files below a folder, and
 * makes one of them fail, stop half-way, or be the process's last. fault_shim.h has the actions, calls and folder.
 *
 * Only the folder is affected, so drivers' caches, pipes and terminals work as usual. A failing call behaves as the
 * kernel's would. If closing reports an error for bytes that no fsync has brought to disk, half of the file is lost,
 * because such an error means that. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE

#include "fault_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct fault_state* state;
static __thread int kill_after;
static unsigned char unsynced[4096]; /* by descriptor */
static int met;                      /* this process has waited at the meeting */

/* The next definition of the same name: libc's, or a sanitizer's before it. */
#define NEXT(name)                                       \
  static __typeof__(&name) next;                         \
  do {                                                   \
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name); \
  } while (0)

__attribute__((constructor)) static void map_state(void) {
  const char* file = getenv("QUARRY_FAULTS");
  void* at;
  int fd;
  if (!file || state) return;
  fd = open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    fprintf(stderr, "fault shim: cannot open %s: %s\n", file, strerror(errno));
    abort();
  }
  at = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (at == MAP_FAILED) abort();
  state = at;
}

static const char* below(const char* path) {
  const size_t length = state ? strlen(state->folder) : 0;
  if (length == 0 || strncmp(path, state->folder, length) != 0 || (path[length] != '/' && path[length] != 0))
    return NULL;
  return path[length] == '/' ? path + length + 1 : path + length;
}

/* The descriptor's name below the folder, or NULL if it is not counted. Does not change errno. */
static const char* name_of_fd(int fd, char* buffer) {
  char link[64];
  const int before = errno;
  ssize_t length;
  if (!state || fd < 0) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, buffer, PATH_MAX - 1);
  errno = before;
  if (length <= 0) return NULL;
  buffer[length] = 0;
  return below(buffer);
}

/* The same for a path. A folder in it may be a link, so links are resolved. */
static const char* name_of_path(int folder, const char* path, char* buffer) {
  char whole[PATH_MAX], real[PATH_MAX];
  const int before = errno;
  char* slash;
  const char* last;
  if (!state || !path) return NULL;
  if (path[0] == '/' || folder == AT_FDCWD) {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    if (snprintf(whole, sizeof whole, "/proc/self/fd/%d/%s", folder, path) >= (int)sizeof whole) return NULL;
  }
  slash = strrchr(whole, '/');
  last = slash ? slash + 1 : whole;
  if (slash == whole) {
    snprintf(real, sizeof real, "/");
  } else {
    if (slash) *slash = 0;
    if (!realpath(slash ? whole : ".", real)) real[0] = 0;
  }
  errno = before;
  if (!real[0] || snprintf(buffer, PATH_MAX, "%s/%s", real, last) >= PATH_MAX) return NULL;
  return below(buffer);
}

static int open_for_writing(int fd) {
  const int before = errno, flags = fcntl(fd, F_GETFL);
  errno = before;
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static int is_unsynced(int fd) { return fd >= 0 && fd < (int)sizeof unsynced && unsynced[fd]; }
static void set_unsynced(int fd, int yes) {
  if (fd >= 0 && fd < (int)sizeof unsynced) unsynced[fd] = (unsigned char)yes;
}

static void die(void) {
  for (;;) kill(getpid(), SIGKILL);
}

static int takes_space(enum fault_call call) {
  return call == FAULT_WRITE || call == FAULT_PWRITE || call == FAULT_FWRITE || call == FAULT_SENDFILE ||
         call == FAULT_COPY_FILE_RANGE || call == FAULT_FALLOCATE;
}

static int unsupported_error(enum fault_call call) {
  switch (call) {
    case FAULT_RENAMEAT2:
    case FAULT_SENDFILE:
    case FAULT_FSYNC: return EINVAL;
    case FAULT_LINK: return EPERM;
    case FAULT_SYNCFS: return ENOSYS;
    default: return EOPNOTSUPP;
  }
}

/* Numbers a call. Returns 0 if it may run, with *bytes as they are now. Otherwise returns the error that it ends
 * with. */
static int meet(enum fault_call call, const char* name, int fd, size_t* bytes) {
  const uint32_t number = __atomic_add_fetch(&state->count, 1, __ATOMIC_SEQ_CST);
  enum fault_action action = number == state->at ? (enum fault_action)state->action : FAULT_NOTHING;
  const size_t length = strlen(name);
  int error = 0;
  if (__atomic_load_n(&state->unsupported, __ATOMIC_SEQ_CST) == (uint32_t)call + 1) action = FAULT_UNSUPPORTED;
  if (__atomic_load_n(&state->full, __ATOMIC_SEQ_CST) && takes_space(call)) action = FAULT_NO_SPACE;
  switch (action) {
    case FAULT_NO_SPACE: error = ENOSPC; break;
    case FAULT_IO_ERROR: error = EIO; break;
    case FAULT_INTERRUPTED: error = EINTR; break;
    case FAULT_FULL:
      __atomic_store_n(&state->full, 1, __ATOMIC_SEQ_CST);
      if (*bytes < 2) error = ENOSPC;
      *bytes /= 2;
      break;
    case FAULT_SHORT:
      if (*bytes > 1) *bytes /= 2;
      else action = FAULT_NOTHING;
      break;
    case FAULT_UNSUPPORTED:
      __atomic_store_n(&state->unsupported, (uint32_t)call + 1, __ATOMIC_SEQ_CST);
      error = unsupported_error(call);
      break;
    default: break;
  }
  if (number <= FAULT_LOGGED) {
    struct fault_record* record = &state->calls[number - 1];
    record->process = (int32_t)getpid();
    record->call = (uint8_t)call;
    record->hit = (uint8_t)action;
    record->unsynced = (uint8_t)is_unsynced(fd);
    memcpy(record->name, length < FAULT_NAME_BYTES ? name : name + length - FAULT_NAME_BYTES + 1,
           (length < FAULT_NAME_BYTES ? length : FAULT_NAME_BYTES - 1) + 1);
  }
  if (action != FAULT_NOTHING) __atomic_add_fetch(&state->hits, 1, __ATOMIC_SEQ_CST);
  if (action == FAULT_KILL_BEFORE) die();
  if (action == FAULT_KILL_AFTER) kill_after = 1;
  return error;
}

/* Makes a call that may run. */
#define DO(call)                             \
  do {                                       \
    __extension__ __auto_type done = (call); \
    if (kill_after) die();                   \
    return done;                             \
  } while (0)

#define FAIL_WITH(error) \
  do {                   \
    errno = (error);     \
    return -1;           \
  } while (0)

/* The body of each call that writes through a descriptor. `bytes` may shrink. */
#define WRITING(call, fd, bytes, run)                   \
  do {                                                  \
    char buffer[PATH_MAX];                              \
    const char* name = name_of_fd(fd, buffer);          \
    if (name) {                                         \
      const int error = meet(call, name, fd, &(bytes)); \
      if (error) FAIL_WITH(error);                      \
      set_unsynced(fd, 1);                              \
    }                                                   \
    DO(run);                                            \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(write);
  WRITING(FAULT_WRITE, fd, size, next(fd, data, size));
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  NEXT(pwrite);
  WRITING(FAULT_PWRITE, fd, size, next(fd, data, size, at));
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  NEXT(pwrite64);
  WRITING(FAULT_PWRITE, fd, size, next(fd, data, size, at));
}

/* With several pieces, a short write writes only half of the first. */
static size_t bytes_in(const struct iovec* pieces, int count) {
  size_t sum = 0;
  for (int i = 0; i < count; ++i) sum += pieces[i].iov_len;
  return sum;
}

ssize_t writev(int fd, const struct iovec* pieces, int count) {
  const size_t whole = bytes_in(pieces, count);
  size_t size = whole;
  struct iovec part = pieces && count > 0 ? pieces[0] : (struct iovec){NULL, 0};
  NEXT(writev);
  if (part.iov_len > 1) part.iov_len /= 2;
  WRITING(FAULT_WRITE, fd, size, size == whole ? next(fd, pieces, count) : next(fd, &part, 1));
}

ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t at) {
  const size_t whole = bytes_in(pieces, count);
  size_t size = whole;
  struct iovec part = pieces && count > 0 ? pieces[0] : (struct iovec){NULL, 0};
  NEXT(pwritev);
  if (part.iov_len > 1) part.iov_len /= 2;
  WRITING(FAULT_PWRITE, fd, size, size == whole ? next(fd, pieces, count, at) : next(fd, &part, 1, at));
}

ssize_t sendfile(int to, int from, off_t* at, size_t size) {
  NEXT(sendfile);
  WRITING(FAULT_SENDFILE, to, size, next(to, from, at, size));
}

ssize_t sendfile64(int to, int from, off64_t* at, size_t size) {
  NEXT(sendfile64);
  WRITING(FAULT_SENDFILE, to, size, next(to, from, at, size));
}

ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  NEXT(copy_file_range);
  WRITING(FAULT_COPY_FILE_RANGE, to, size, next(from, from_at, to, to_at, size, flags));
}

int ftruncate(int fd, off_t size) {
  size_t none = 0;
  NEXT(ftruncate);
  WRITING(FAULT_FTRUNCATE, fd, none, next(fd, size));
}

int ftruncate64(int fd, off64_t size) {
  size_t none = 0;
  NEXT(ftruncate64);
  WRITING(FAULT_FTRUNCATE, fd, none, next(fd, size));
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  size_t none = 0;
  NEXT(fallocate);
  WRITING(FAULT_FALLOCATE, fd, none, next(fd, mode, at, size));
}

int fallocate64(int fd, int mode, off64_t at, off64_t size) {
  size_t none = 0;
  NEXT(fallocate64);
  WRITING(FAULT_FALLOCATE, fd, none, next(fd, mode, at, size));
}

/* These two return their error instead of setting errno. */
#define ALLOCATING(fd, run)                                     \
  do {                                                          \
    char buffer[PATH_MAX];                                      \
    size_t none = 0;                                            \
    const char* name = name_of_fd(fd, buffer);                  \
    if (name) {                                                 \
      const int error = meet(FAULT_FALLOCATE, name, fd, &none); \
      if (error) return error;                                  \
    }                                                           \
    DO(run);                                                    \
  } while (0)

int posix_fallocate(int fd, off_t at, off_t size) {
  NEXT(posix_fallocate);
  ALLOCATING(fd, next(fd, at, size));
}

int posix_fallocate64(int fd, off64_t at, off64_t size) {
  NEXT(posix_fallocate64);
  ALLOCATING(fd, next(fd, at, size));
}

#define SYNCING(call, fd, run)                       \
  do {                                               \
    char buffer[PATH_MAX];                           \
    size_t none = 0;                                 \
    const char* name = name_of_fd(fd, buffer);       \
    if (name) {                                      \
      const int error = meet(call, name, fd, &none); \
      if (error) FAIL_WITH(error);                   \
      set_unsynced(fd, 0);                           \
    }                                                \
    DO(run);                                         \
  } while (0)

int fsync(int fd) {
  NEXT(fsync);
  SYNCING(FAULT_FSYNC, fd, next(fd));
}

int fdatasync(int fd) {
  NEXT(fdatasync);
  SYNCING(FAULT_FSYNC, fd, next(fd));
}

int sync_file_range(int fd, off64_t at, off64_t size, unsigned flags) {
  NEXT(sync_file_range);
  SYNCING(FAULT_FSYNC, fd, next(fd, at, size, flags));
}

int syncfs(int fd) {
  NEXT(syncfs);
  SYNCING(FAULT_SYNCFS, fd, next(fd));
}

/* Removes half of the bytes that a failed descriptor had written. */
static void lose_half(int fd) {
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) syscall(SYS_ftruncate, fd, info.st_size / 2);
}

int close(int fd) {
  char buffer[PATH_MAX];
  size_t none = 0;
  const char* name = state && open_for_writing(fd) ? name_of_fd(fd, buffer) : NULL;
  int error = 0;
  NEXT(close);
  if (name) {
    error = meet(FAULT_CLOSE, name, fd, &none);
    if (error && error != EINTR && is_unsynced(fd)) lose_half(fd);
    set_unsynced(fd, 0);
  }
  if (error) {
    next(fd); /* it is closed in any case */
    FAIL_WITH(error);
  }
  DO(next(fd));
}

/* stdio's own calls into the kernel cannot be seen from here, so its functions are counted as the calls. */
static void mark_failed(FILE* file, int error) {
  file->_flags |= _IO_ERR_SEEN;
  errno = error;
}

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  char buffer[PATH_MAX];
  const char* name = state ? name_of_fd(fileno(file), buffer) : NULL;
  NEXT(fwrite);
  if (name) {
    size_t bytes = size * count;
    const int error = meet(FAULT_FWRITE, name, fileno(file), &bytes);
    if (error) {
      mark_failed(file, error);
      return 0;
    }
    set_unsynced(fileno(file), 1);
  }
  DO(next(data, size, count, file));
}

int fflush(FILE* file) {
  char buffer[PATH_MAX];
  size_t none = 0;
  const char* name = state && file ? name_of_fd(fileno(file), buffer) : NULL;
  NEXT(fflush);
  if (name) {
    const int error = meet(FAULT_FFLUSH, name, fileno(file), &none);
    if (error) {
      mark_failed(file, error);
      return EOF;
    }
  }
  DO(next(file));
}

int fclose(FILE* file) {
  char buffer[PATH_MAX];
  size_t none = 0;
  const int fd = state ? fileno(file) : -1;
  const char* name = fd >= 0 && open_for_writing(fd) ? name_of_fd(fd, buffer) : NULL;
  NEXT(fclose);
  if (name) {
    const int error = meet(FAULT_FCLOSE, name, fd, &none);
    if (error) {
      const int other = is_unsynced(fd) && error != EINTR ? dup(fd) : -1;
      set_unsynced(fd, 0);
      next(file);
      if (other >= 0) {
        lose_half(other);
        syscall(SYS_close, other);
      }
      errno = error;
      return EOF;
    }
    set_unsynced(fd, 0);
  }
  DO(next(file));
}

/* The wait is bounded, so that a test fails and does not hang. */
static void wait_for_others(const char* path) {
  const struct timespec pause = {0, 1000000};
  if (!state || !state->expected || met || strcmp(path, state->meeting) != 0) return;
  met = 1;
  __atomic_add_fetch(&state->arrived, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 20000; ++i) {
    if (__atomic_load_n(&state->arrived, __ATOMIC_SEQ_CST) >= state->expected) return;
    nanosleep(&pause, NULL);
  }
  __atomic_add_fetch(&state->missed, 1, __ATOMIC_SEQ_CST);
}

/* A counted call that names its target in a folder. */
#define NAMING(call, folder, target, run)                    \
  do {                                                       \
    char buffer[PATH_MAX];                                   \
    size_t none = 0;                                         \
    const char* name = name_of_path(folder, target, buffer); \
    if (name) {                                              \
      int error;                                             \
      wait_for_others(buffer);                               \
      error = meet(call, name, -1, &none);                   \
      if (error) FAIL_WITH(error);                           \
    }                                                        \
    DO(run);                                                 \
  } while (0)

int truncate(const char* file, off_t size) {
  NEXT(truncate);
  NAMING(FAULT_FTRUNCATE, AT_FDCWD, file, next(file, size));
}

int truncate64(const char* file, off64_t size) {
  NEXT(truncate64);
  NAMING(FAULT_FTRUNCATE, AT_FDCWD, file, next(file, size));
}

int rename(const char* from, const char* to) {
  NEXT(rename);
  NAMING(FAULT_RENAME, AT_FDCWD, to, next(from, to));
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  NEXT(renameat);
  NAMING(FAULT_RENAME, to_folder, to, next(from_folder, from, to_folder, to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  NEXT(renameat2);
  NAMING(flags ? FAULT_RENAMEAT2 : FAULT_RENAME, to_folder, to, next(from_folder, from, to_folder, to, flags));
}

int link(const char* from, const char* to) {
  NEXT(link);
  if (access(from, F_OK) != 0) return next(from, to); /* a missing file is reported first on every file system */
  NAMING(FAULT_LINK, AT_FDCWD, to, next(from, to));
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  NEXT(linkat);
  NAMING(FAULT_LINK, to_folder, to, next(from_folder, from, to_folder, to, flags));
}
