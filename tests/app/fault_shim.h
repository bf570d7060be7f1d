/* SPDX-License-Identifier: Apache-2.0 */
/* fault_shim.h - what a test and the shim in the programs that it starts (fault_shim.c) tell one another: one file,
 * mapped by all of them. C and C++. Every process that finds the file's name in QUARRY_FAULTS in its environment maps
 * it, children and their children too. */
#ifndef QUARRY_TESTS_APP_FAULT_SHIM_H
#define QUARRY_TESTS_APP_FAULT_SHIM_H

#include <stdint.h>

/* The calls that are counted: those that change what stands below `folder`. Names: kFaultCallNames in faults.cpp, in
 * this order. */
enum fault_call {
  FAULT_WRITE,  /* write and writev */
  FAULT_PWRITE, /* pwrite and pwritev */
  FAULT_FWRITE, /* stdio, which calls the kernel past every shim: fwrite, */
  FAULT_FFLUSH, /* fflush, */
  FAULT_FCLOSE, /* fclose */
  FAULT_SENDFILE,
  FAULT_COPY_FILE_RANGE,
  FAULT_FTRUNCATE, /* and truncate */
  FAULT_FALLOCATE, /* and posix_fallocate */
  FAULT_FSYNC,     /* and fdatasync, sync_file_range */
  FAULT_SYNCFS,
  FAULT_CLOSE,     /* of what was open for writing */
  FAULT_RENAME,    /* rename, renameat, and renameat2 without flags */
  FAULT_RENAMEAT2, /* with flags */
  FAULT_LINK,      /* link, linkat */
  FAULT_CALLS
};

/* What happens to call number `at`. */
enum fault_action {
  FAULT_NOTHING,
  FAULT_NO_SPACE,    /* ENOSPC, this once: later calls succeed, and must not hide it */
  FAULT_FULL,        /* half of the bytes are written, and from there on there is no space for anybody */
  FAULT_IO_ERROR,    /* EIO, this once */
  FAULT_INTERRUPTED, /* EINTR, this once, and nothing was done */
  FAULT_SHORT,       /* half of the bytes are written, this once */
  FAULT_UNSUPPORTED, /* from there on the file system does not know this call: EINVAL, EOPNOTSUPP or EPERM, whatever
                        such file systems say */
  FAULT_KILL_BEFORE, /* SIGKILL instead of the call */
  FAULT_KILL_AFTER,  /* SIGKILL when it is done */
  FAULT_ACTIONS
};

enum { FAULT_PATH_BYTES = 1024, FAULT_NAME_BYTES = 88, FAULT_LOGGED = 4096 };

struct fault_record {
  uint8_t call;     /* enum fault_call */
  uint8_t hit;      /* enum fault_action that it met */
  uint8_t unsynced; /* bytes were written through this descriptor that no fsync has brought to disk yet */
  uint8_t reserved;
  int32_t process;
  char name[FAULT_NAME_BYTES]; /* below `folder`; its end where it is longer */
};

struct fault_state {
  char folder[FAULT_PATH_BYTES]; /* without links in it and without a slash at its end */
  uint32_t action, at;           /* from 1; 0: only count */
  uint32_t count;                /* of calls, by all processes */
  uint32_t hits;                 /* how often something was done to one */
  uint32_t full;                 /* FAULT_FULL has happened */
  uint32_t unsupported;          /* 1 + the call of FAULT_UNSUPPORTED */
  /* Before the first rename or link to this name a process waits until so many are there. */
  char meeting[FAULT_PATH_BYTES];
  uint32_t expected, arrived;
  uint32_t missed; /* processes that waited in vain */
  struct fault_record calls[FAULT_LOGGED];
};

#endif
