/* SPDX-License-Identifier: Apache-2.0 */
/* fault_shim.h - the data that a test shares with the shim in the programs that it starts (fault_shim.c): one file,
 * mapped by all of them. C and C++. Every process with the file's name in QUARRY_FAULTS in its environment maps it,
 * including children and their children. */
#ifndef QUARRY_TESTS_APP_FAULT_SHIM_H
#define QUARRY_TESTS_APP_FAULT_SHIM_H

#include <stdint.h>

/* The counted calls, which change files below `folder`. Their names are kFaultCallNames in faults.cpp, in this
 * order. */
enum fault_call {
  FAULT_WRITE,  /* write and writev */
  FAULT_PWRITE, /* pwrite and pwritev */
  FAULT_FWRITE, /* stdio calls the kernel without passing a shim: fwrite, */
  FAULT_FFLUSH, /* fflush, */
  FAULT_FCLOSE, /* fclose */
  FAULT_SENDFILE,
  FAULT_COPY_FILE_RANGE,
  FAULT_FTRUNCATE, /* and truncate */
  FAULT_FALLOCATE, /* and posix_fallocate */
  FAULT_FSYNC,     /* and fdatasync, sync_file_range */
  FAULT_SYNCFS,
  FAULT_CLOSE,     /* of a descriptor open for writing */
  FAULT_RENAME,    /* rename, renameat, and renameat2 without flags */
  FAULT_RENAMEAT2, /* with flags */
  FAULT_LINK,      /* link, linkat */
  FAULT_CALLS
};

/* The action on call number `at`. */
enum fault_action {
  FAULT_NOTHING,
  FAULT_NO_SPACE,    /* ENOSPC, only once: later calls succeed, and must not hide it */
  FAULT_FULL,        /* half of the bytes are written, and from then on no process has space */
  FAULT_IO_ERROR,    /* EIO, only once */
  FAULT_INTERRUPTED, /* EINTR, only once, and nothing was done */
  FAULT_SHORT,       /* half of the bytes are written, only once */
  FAULT_UNSUPPORTED, /* from then on the file system does not support this call: EINVAL, EOPNOTSUPP or EPERM, as such
                        file systems report it */
  FAULT_KILL_BEFORE, /* SIGKILL instead of the call */
  FAULT_KILL_AFTER,  /* SIGKILL when it is done */
  FAULT_ACTIONS
};

enum { FAULT_PATH_BYTES = 1024, FAULT_NAME_BYTES = 88, FAULT_LOGGED = 4096 };

struct fault_record {
  uint8_t call;     /* enum fault_call */
  uint8_t hit;      /* the enum fault_action applied to it */
  uint8_t unsynced; /* this descriptor has written bytes that no fsync has brought to disk yet */
  uint8_t reserved;
  int32_t process;
  char name[FAULT_NAME_BYTES]; /* below `folder`; only the end of a longer name */
};

struct fault_state {
  char folder[FAULT_PATH_BYTES]; /* without links, and without a slash at its end */
  uint32_t action, at;           /* `at` counts from 1; 0: only count */
  uint32_t count;                /* calls, by all processes */
  uint32_t hits;                 /* calls that an action was applied to */
  uint32_t full;                 /* FAULT_FULL has happened */
  uint32_t unsupported;          /* 1 + the call of FAULT_UNSUPPORTED */
  /* Before the first rename or link to this name a process waits until `expected` processes have arrived. */
  char meeting[FAULT_PATH_BYTES];
  uint32_t expected, arrived;
  uint32_t missed; /* processes whose wait timed out */
  struct fault_record calls[FAULT_LOGGED];
};

#endif
