/* SPDX-License-Identifier: Apache-2.0 */
/* quarry.h - Quarry's plugin interface: sparse voxel worlds for any engine, in C99.
 *
 * A qry_context is one Vulkan device (ours or yours) and the settings of one user of the library. A qry_world is a
 * scene of voxels. Calls set, edit, combine, grow and read back its voxels, undo edits, measure, save and open it, pack
 * it for reading, render it into your memory by marching rays or tracing paths, and shoot rays at it. The guide is
 * docs/plugin.md.
 *
 * Conventions
 *   - Axes: y is up, right-handed, one unit is one voxel. Voxel (x,y,z) is the cube [x,x+1) x [y,y+1) x [z,z+1). You
 * decide how long a voxel is in metres: scale your matrices.
 *   - World: x and z are in [-8192, 8191], y in [-4096, 4095], without the voxels of the corner brick x >= 8184,
 * y >= 4088, z >= 8184 (its 32-bit key is reserved). Reading outside gives 0. Writing outside is
 * QRY_ERROR_OUT_OF_BOUNDS.
 *   - Voxels: one byte each. 0 is empty, 1..255 index the world's palette. They are kept in bricks of 8x8x8.
 *   - Boxes: two int32_t[3] corners, both inclusive.
 *   - Colours: bytes are sRGB with straight alpha. Pictures are RGBA8, row 0 on top.
 *   - Strings: UTF-8, ended by 0. The library reads your strings only during the call, unless said otherwise.
 *   - Units: names of sizes end in _bytes, names of angles in _degrees.
 *
 * Results
 *   Every call that can fail returns a qry_result. 0 is success, negative is failure, positive is success with a remark
 * (QRY_INCOMPLETE, QRY_NOTHING_TO_DO). A failed call has changed nothing that you can observe, except where it says
 * otherwise: no voxel, no file, and no output but `*out = NULL` of the calls that make a handle. qry_last_error() says
 * in one sentence what was wrong, where, and what to do. No C++ exception leaves the library. Running out of memory is
 * QRY_ERROR_OUT_OF_MEMORY.
 *
 * Structures
 *   Those that begin with `stype` and `next` are initialised with their macro, qry_xxx x = QRY_XXX_INIT, which also
 * sets the defaults. `next` is NULL or points to another structure that begins the same way and that the call says it
 * accepts. A structure that the call does not know is QRY_ERROR_UNKNOWN_STRUCT. One that is in the chain twice is
 * QRY_ERROR_DUPLICATE_STRUCT. Nothing is ever ignored. Structures never grow: later additions come as new structures to
 * chain. Fields named `reserved` must be 0.
 *
 * Threads: every function has one of four marks.
 *   [free]   from any thread at any time.
 *   [read]   from any number of threads at once on one world, while no [write] call runs on that world.
 *   [write]  one thread at a time for one world, and no other call on that world meanwhile.
 *   [last]   no other call on that handle meanwhile or afterwards.
 *   Calls on different worlds never disturb each other, not even in one context. Rendering locks the context's device
 * itself.
 *
 * Ownership
 *   Handles are made by *_create and *_open and freed by *_destroy, which takes the handle's address, accepts NULL and
 * a NULL handle, and sets the handle to NULL. A context stays alive internally until its last world is gone, so you may
 * destroy them in any order. Your own Vulkan device and your callbacks' `user` data must live until then. All other
 * memory is yours, and used only during the call.
 *
 * Quarry does not
 *   - draw into a picture of yours that already has depth, yet: a recorded frame writes your whole colour image;
 *   - take allocator callbacks, for host or device memory, yet;
 *   - write to a file by itself: a world is in memory. It is saved when you ask for it, with its voxels but without its
 * undo history; or it is attached to a .quarry file, which gets both whenever you flush (qry_world_attach);
 *   - edit the scene's tree (instances, layers): it opens, flattens, shows and saves the tree, and edits single volumes
 * of it;
 *   - start threads that outlive a call, install signal handlers, print, or read environment variables other than those
 * of the Vulkan loader, QUARRY_THREADS, QUARRY_MESH_READER and, in a build with CUDA, QUARRY_CUDA_SYNC and the one by
 * which NVTX finds a profiler;
 *   - keep state outside its handles, apart from the calling thread's last error message.
 */
#ifndef QUARRY_H
#define QUARRY_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define QRY_CALL __cdecl
#if defined(QRY_BUILDING_LIBRARY)
#define QRY_API __declspec(dllexport)
#else
#define QRY_API __declspec(dllimport)
#endif
#else
#define QRY_CALL
#define QRY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ----------------------------------------------------------------------------------------------------- */

#define QRY_VERSION_MAJOR 0
#define QRY_VERSION_MINOR 2
#define QRY_VERSION_PATCH 0

/* Rises with every change that a compiled program could notice. While the major version is 0, the library's soname
 * rises with it. qry_context_create compares it with the library's own. */
#define QRY_ABI_VERSION 0u

/* The library's version as major << 22 | minor << 12 | patch, as Vulkan packs it. [free] */
QRY_API uint32_t QRY_CALL qry_version(void);
/* The library's own QRY_ABI_VERSION. [free] */
QRY_API uint32_t QRY_CALL qry_abi_version(void);

/* ---- Results ----------------------------------------------------------------------------------------------------- */

typedef int32_t qry_result;
enum {
  QRY_OK = 0,

  QRY_INCOMPLETE = 1,    /* your array was too small: it is full, and the count says how many entries there are */
  QRY_NOTHING_TO_DO = 2, /* nothing to undo, nothing to redo; the world is in that form already */

  QRY_ERROR_INVALID_ARGUMENT = -1,  /* a null pointer, a number out of its range: the message names the argument */
  QRY_ERROR_ABI_MISMATCH = -2,      /* program and library are of different ABI versions: the message has both */
  QRY_ERROR_UNKNOWN_STRUCT = -3,    /* a wrong or uninitialised stype, or one this call does not accept in its chain */
  QRY_ERROR_DUPLICATE_STRUCT = -4,  /* a structure that is in the chain twice */
  QRY_ERROR_NOT_FOUND = -5,         /* no such file; no Vulkan loader or device */
  QRY_ERROR_MALFORMED_INPUT = -6,   /* a file that breaks its format: the message has the place */
  QRY_ERROR_OUT_OF_BOUNDS = -7,     /* a voxel outside the world */
  QRY_ERROR_FULL = -8,              /* no more bricks allowed (qry_world_info.max_bricks) or a table that cannot grow */
  QRY_ERROR_OUT_OF_MEMORY = -9,     /* host or device memory */
  QRY_ERROR_UNSUPPORTED = -10,      /* a format, a feature of a format, or a context that was made without a device */
  QRY_ERROR_IO = -11,               /* the operating system refused to read or write */
  QRY_ERROR_DEVICE = -12,           /* a Vulkan or CUDA call failed */
  QRY_ERROR_CANCELLED = -13,        /* your progress callback stopped the call */
  QRY_ERROR_CONFLICT = -14,         /* another program has the file open */
  QRY_ERROR_BUFFER_TOO_SMALL = -15, /* your memory is smaller than what is to be written: the message has both sizes */
  QRY_ERROR_MISSING_FEATURE =
      -16, /* the Vulkan device lacks, or was created without, a required feature: the message names it */
  QRY_ERROR_INTERNAL = -17,   /* a fault of ours: please report it with the message */
  QRY_ERROR_DEVICE_LOST = -18 /* the Vulkan or CUDA device is lost; any call that needs it says so: "Lost devices" */
};

/* The name of a result, such as "QRY_ERROR_FULL", or "QRY_UNKNOWN_RESULT". Static and never NULL. [free] */
QRY_API const char* QRY_CALL qry_result_name(qry_result result);

/* The message of this thread's last call that did not return QRY_OK, or "" if there was none. It is never NULL. It is
 * valid until this thread's next call into the library. It has at most 1023 bytes. Each thread has its own. [free] */
QRY_API const char* QRY_CALL qry_last_error(void);

/* ---- Structure types --------------------------------------------------------------------------------------------- */

typedef uint32_t qry_stype;
enum {
  QRY_STYPE_CONTEXT_INFO = 1,
  QRY_STYPE_VULKAN_DEVICE_INFO = 2,
  QRY_STYPE_DEVICE_STATE = 3,
  QRY_STYPE_WORLD_INFO = 4,
  QRY_STYPE_OPEN_INFO = 5,
  QRY_STYPE_SAVE_INFO = 6,
  QRY_STYPE_EDIT = 7,
  QRY_STYPE_WORLD_STATE = 8,
  QRY_STYPE_GRID_STATS = 9,
  QRY_STYPE_RENDER_INFO = 10,
  QRY_STYPE_MEMORY_STATE = 11,
  QRY_STYPE_LOOK_INFO = 12,
  QRY_STYPE_PATHS_INFO = 13,
  QRY_STYPE_PATHS_STATE = 14,
  QRY_STYPE_OUTLINE_INFO = 15,
  QRY_STYPE_PUBLISHED = 16,
  QRY_STYPE_RECORDER_INFO = 17,
  QRY_STYPE_RECORD_INFO = 18,
  QRY_STYPE_MEMORY_BRICKS = 19,
  QRY_STYPE_WORLD_HOME_INFO = 20,
  QRY_STYPE_HOME_STATE = 21,
  QRY_STYPE_MEMORY_HISTORY = 22,
  QRY_STYPE_PROGRESS_INFO = 23,
  QRY_STYPE_EMULATION_INFO = 24,
  QRY_STYPE_FLATTEN_STATE = 25,
  QRY_STYPE_WORLD_SUMS = 26,
  QRY_STYPE_COMPARISON = 27,
  QRY_STYPE_HAND_OVER_STATE = 28,
  QRY_STYPE_DEVICE_BUDGET_INFO = 29,
  QRY_STYPE_PAGING_STATE = 30,
  QRY_STYPE_STREAM_INFO = 31,
  QRY_STYPE_STREAM_STATE = 32,
  QRY_STYPE_HOST_BUDGET_INFO = 33,
  QRY_STYPE_PAGE_CACHE_STATE = 34
  /* 0x70000000 and above: for structures of out-of-tree builds; never used here. */
};

/* What every chained structure begins with. */
typedef struct qry_chain {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
} qry_chain;

/* ---- Requirements: static data to read before you create your own Vulkan device ---------------------------------- */

/* These are Vulkan's own types under their struct tags. So VkInstance, VkPhysicalDevice, VkDevice, VkQueue and
 * PFN_vkGetInstanceProcAddr are passed as they are. Programs that do not use Vulkan themselves need no Vulkan header.
 */
struct VkInstance_T;
struct VkPhysicalDevice_T;
struct VkDevice_T;
struct VkQueue_T;
struct VkCommandBuffer_T;
struct VkPhysicalDeviceFeatures2;
typedef void(QRY_CALL* qry_vk_function)(void);
typedef qry_vk_function(QRY_CALL* qry_vk_get_instance_proc_addr)(struct VkInstance_T* instance, const char* name);

typedef struct qry_requirements {
  uint32_t api_version; /* minimum version of instance and device, as VK_MAKE_API_VERSION packs it: 1.2 */
  uint32_t required_feature_count;
  const char* const* required_features; /* names of members of Vulkan's feature structures, e.g. "timelineSemaphore" */
  const char* const*
      required_feature_structs; /* the structure each one is a member of, e.g. "VkPhysicalDeviceVulkan12Features" */
  uint32_t required_extension_count; /* device extensions: none so far */
  uint32_t optional_extension_count;
  const char* const* required_extensions;
  const char* const* optional_extensions; /* worth enabling if present; docs/plugin.md says what each is for */
} qry_requirements;

/* Points into static data. Loads and calls no Vulkan. [free] */
QRY_API const qry_requirements* QRY_CALL qry_get_requirements(void);

/* Sets every required feature to VK_TRUE in a chain that you will give to vkCreateDevice. All else stays unchanged. If
 * no structure of the chain has a place for a feature, the result is QRY_ERROR_MISSING_FEATURE. The message then names
 * such features and the structures to add, and nothing was set. vkGetPhysicalDeviceFeatures2 or vkCreateDevice tells
 * whether your physical device has the features. Calls no Vulkan. [free] */
QRY_API qry_result QRY_CALL qry_enable_required_features(struct VkPhysicalDeviceFeatures2* chain);

/* ---- Context ----------------------------------------------------------------------------------------------------- */

typedef struct qry_context qry_context;

enum { QRY_LOG_INFO = 0, QRY_LOG_WARNING = 1, QRY_LOG_ERROR = 2 };
/* Any thread may call it, several at once, during any call on the context or its worlds. It must not call into Quarry.
 */
typedef void(QRY_CALL* qry_log_function)(void* user, int32_t level, const char* message);

enum {
  QRY_DEVICE_LAZY =
      0, /* when a call first needs it: a context that only edits and saves works on a machine without any Vulkan */
  QRY_DEVICE_NOW = 1,  /* in qry_context_create, which fails without it */
  QRY_DEVICE_NEVER = 2 /* calls that need one are QRY_ERROR_UNSUPPORTED */
};
/* How shaders come to read a world. ZERO_COPY: of worlds at home on a CUDA device, where CUDA wrote them; one at home
 * on the host is STAGED there. HOST_IMPORT: in host memory. STAGED: in a copy of what changed. */
enum { QRY_SHARING_AUTOMATIC = 0, QRY_SHARING_ZERO_COPY = 1, QRY_SHARING_HOST_IMPORT = 2, QRY_SHARING_STAGED = 3 };

typedef struct qry_context_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next; /* accepts qry_vulkan_device_info; then `device`, `prefer_device` and `validation` must be as INIT
                       set them */
  qry_log_function log; /* NULL: no messages */
  void* log_user;
  uint32_t device;           /* QRY_DEVICE_...: when our own Vulkan device is made */
  uint32_t validation;       /* 1: with the Khronos validation layer, if installed; its messages go to `log` */
  const char* prefer_device; /* part of its name; NULL: a GPU that CUDA also has, else any GPU, else software */
  uint32_t sharing; /* QRY_SHARING_...: how voxels reach the device; a mode it cannot do is QRY_ERROR_UNSUPPORTED */
  uint32_t threads; /* the most host threads that a call may use; 0: all, or $QUARRY_THREADS */
} qry_context_info;
#define QRY_CONTEXT_INFO_INIT \
  { QRY_STYPE_CONTEXT_INFO, 0, NULL, NULL, NULL, QRY_DEVICE_LAZY, 0, NULL, QRY_SHARING_AUTOMATIC, 0 }

/* Your Vulkan device, to be used instead of one of our own. Chain it to qry_context_info.
 * Vulkan has no query for what a device was created with. So give it in the features chain and the extension names.
 * Then a missing feature is QRY_ERROR_MISSING_FEATURE with its name, and not a crash. We take no ownership of any of
 * it, and never call vkDeviceWaitIdle or vkQueueWaitIdle. Only vkGetInstanceProcAddr is used to find functions. Nothing
 * is loaded without your knowledge. `lock_queue` is called before and `unlock_queue` after every vkQueueSubmit on
 * `queue`, on the same thread, never across a wait. Give both or none. None means that no other thread uses the queue
 * during any call on the context's worlds. */
typedef struct qry_vulkan_device_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  qry_vk_get_instance_proc_addr get_instance_proc_addr;
  struct VkInstance_T* instance;
  struct VkPhysicalDevice_T* physical_device;
  struct VkDevice_T* device;
  struct VkQueue_T* queue; /* of a family with compute */
  uint32_t queue_family;
  uint32_t enabled_extension_count;
  const char* const* enabled_extensions;                    /* VkDeviceCreateInfo.ppEnabledExtensionNames */
  const struct VkPhysicalDeviceFeatures2* enabled_features; /* VkDeviceCreateInfo.pNext, from this structure on */
  void(QRY_CALL* lock_queue)(void* user);
  void(QRY_CALL* unlock_queue)(void* user);
  void* queue_user;
} qry_vulkan_device_info;
#define QRY_VULKAN_DEVICE_INFO_INIT \
  { QRY_STYPE_VULKAN_DEVICE_INFO, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL }

/* abi_version: pass QRY_ABI_VERSION. info: NULL means QRY_CONTEXT_INFO_INIT.
 * Errors: ABI_MISMATCH, INVALID_ARGUMENT, UNKNOWN_STRUCT, DUPLICATE_STRUCT, OUT_OF_MEMORY; with a device: NOT_FOUND,
 * MISSING_FEATURE, UNSUPPORTED, DEVICE. [free] */
QRY_API qry_result QRY_CALL qry_context_create(uint32_t abi_version, const qry_context_info* info, qry_context** out);
/* The context's worlds still work. The rest of the context is freed with the last of them. [last] */
QRY_API void QRY_CALL qry_context_destroy(qry_context** context);

typedef struct qry_device_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  char name[256]; /* the driver's name for it */
  char driver[256];
  uint8_t uuid[16];
  uint32_t api_version;
  int32_t cuda_device;      /* ordinal of the CUDA device with the same UUID; -1: none, or a build without CUDA */
  uint32_t sharing;         /* the chosen QRY_SHARING_..., never AUTOMATIC */
  uint32_t adopted;         /* 1: your device */
  char sharing_reason[256]; /* the reason for this choice, in one sentence */
  uint64_t device_memory_bytes;
} qry_device_state;
#define QRY_DEVICE_STATE_INIT \
  { QRY_STYPE_DEVICE_STATE, 0, NULL, {0}, {0}, {0}, 0, 0, 0, 0, {0}, 0 }

/* Describes the context's device. Makes the device if there is none yet.
 * Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, UNSUPPORTED (QRY_DEVICE_NEVER), NOT_FOUND, MISSING_FEATURE, DEVICE,
 * OUT_OF_MEMORY. [free] */
QRY_API qry_result QRY_CALL qry_context_get_device(qry_context* context, qry_device_state* state);

/* ---- Worlds: make, open, save ------------------------------------------------------------------------------------ */

typedef struct qry_world qry_world;

typedef struct qry_world_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;    /* accepts qry_world_home_info, qry_emulation_info, qry_device_budget_info,
                          qry_host_budget_info */
  uint32_t max_bricks; /* more bricks than this are QRY_ERROR_FULL; 0: only memory limits them. A brick costs 576 bytes
                          and its grid slot */
  uint32_t reserved2;
} qry_world_info;
#define QRY_WORLD_INFO_INIT \
  { QRY_STYPE_WORLD_INFO, 0, NULL, 0, 0 }

/* Where a world's voxels and history are kept, and where edits are made. */
enum {
  /* The context's device, as QRY_HOME_DEVICE, where it is a CUDA device that shares its memory (QRY_SHARING_ZERO_COPY),
   * and the world has one volume, at the origin, and fits into the device's memory; else the host, and the log says
   * why. Where CUDA has a device, and QRY_DEVICE_LAZY has not made the context's yet, it is made. */
  QRY_HOME_AUTOMATIC = 0,
  QRY_HOME_HOST = 1, /* host memory, by host threads */
  /* A CUDA device's memory, by its kernels: the context's device where it has one, else CUDA's first. For worlds of one
   * volume at the origin. The host has no copy: what it does with all voxels (saving; paths in a world that glows)
   * reads them from the device, for as long as that takes. Pictures are drawn from the same memory, where the context's
   * device and CUDA's are one that can share it; elsewhere a picture needs a copy. */
  QRY_HOME_DEVICE = 2,
  QRY_HOME_EMULATED = 3 /* host threads that stand in for a CUDA device, with its memory: slow; to test programs with */
};
/* Chain it to qry_world_info or qry_open_info. A home that cannot be had is QRY_ERROR_UNSUPPORTED. */
typedef struct qry_world_home_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint32_t home; /* QRY_HOME_... */
  uint32_t reserved2;
} qry_world_home_info;
#define QRY_WORLD_HOME_INFO_INIT \
  { QRY_STYPE_WORLD_HOME_INFO, 0, NULL, QRY_HOME_AUTOMATIC, 0 }

/* Chain it to qry_world_info or qry_open_info: a world keeps to a part of the memory that it is at home in, and may be
 * larger than it. What is not needed, in pages of 128^3 voxels, leaves for the file that the world is attached
 * to, those first that were needed longest ago, and comes back when a call needs it. At home on the host such a world
 * is edited as one on a device is, by host threads, which takes them up to four times as long as that of a world that
 * is there as a whole; one of several volumes, or turned, is there as a whole all the same.
 * - A .quarry that is opened so is attached to its file (qry_world_attach), with its history there: undo takes steps
 *   from it. No voxel of it is in memory until a call needs it. A world that is made is attached by its caller; until
 *   then an edit that has no room is QRY_ERROR_OUT_OF_MEMORY.
 * - Before pages leave that have changed, the world is flushed. So its file may be newer than after the last
 *   qry_world_flush, by whole steps, and what the disk refuses ends the edit that needs room, with nothing lost.
 * - Edits, lists, regions, undo, redo, reading, rays and saving take worlds of any size. Edits, lists and regions that
 *   need more at once than the budget has room for (not those in the device's memory) are made in parts, which are one
 *   step of the history. If one fails, those before it are taken back; if the disk does not take that either, the
 *   message says so, and qry_world_undo takes them back later. The same of an undo or a redo of such a step, which the
 *   next call goes on with. After the program was killed meanwhile, the file has the world as before the step, which
 *   a warning says when it is opened; and what could be redone before an edit may be gone.
 *   qry_world_render and qry_world_trace_paths draw what is there, and again what they missed,
 *   until the picture is that of the whole world; recorded frames show coarsely what is not there yet
 *   (qry_world_stream). What glows for paths is looked for in all of the file, then in what may have changed since; it
 *   is kept, OUT_OF_MEMORY if it takes more than the host's memory for pages.
 * - World algebra, connected parts, floods, comparisons, sums and lists of bricks of a world that does not fit are made
 *   on the host, some pages after the other; what changes are parts of one step, as above. The world, and another one
 *   that does not fit, may be flushed for that, and progress is not told between parts. Calls that need all voxels at
 *   once (rays in the device's memory, packing, detaching; algebra of a world that has no home on a device with one
 *   that does not fit) bring all of the world, and are QRY_ERROR_OUT_OF_MEMORY if that does not fit. What
 *   qry_world_get_memory and qry_world_get_grid_stats measure is what is there.
 * - Once it is attached, such a world may also be larger than one hash grid (16384 x 8192 x 16384 voxels): voxels are
 *   anywhere from -2^30 to 2^30 - 1, and all calls are in these coordinates. The grid holds a window of it, which
 *   goes to what is edited and to the camera; edits, undo and redo that go beyond it are made window by window, as one
 *   step. When it goes, the world is flushed, and what leaves costs reading it again; what is only read elsewhere
 *   (qry_world_get_voxels, qry_world_read_region) comes from the file, and moves nothing. Rays and frames see what the
 *   window holds, from an eye in it at least 4000 voxels away (2000 up and down). A ray's origin is in floats, a camera
 *   in doubles. What needs all voxels together, also lists and rays in the device's memory and detaching, is
 *   UNSUPPORTED while voxels are outside of the window. The document must be one volume at the origin.
 * - A brick counts 624 bytes, or 40 if it is full of one material, and a change of the history 12. What a world takes
 *   without bricks counts too, some 60 MB with CUDA, and a twentieth is for lists of bricks. What is in use may be a
 *   tenth more than the budget, or 24 MB. A budget that has no room for some pages beside what any world takes is
 *   QRY_ERROR_INVALID_ARGUMENT, and the message says the least one. */
typedef struct qry_device_budget_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint64_t bytes; /* 0: no limit */
} qry_device_budget_info;
#define QRY_DEVICE_BUDGET_INFO_INIT \
  { QRY_STYPE_DEVICE_BUDGET_INFO, 0, NULL, 0 }

/* Chain it beside qry_device_budget_info: how much of the host's memory keeps pages that were read from the world's
 * file, as the device takes them. What frames want (qry_world_stream) is read there by a thread of the world's, which
 * lives from the first such call until the world is destroyed; then what is near the cameras, as far as there is room.
 * A page that has left the device, and is needed again, comes from there if it is there, at the bus's speed. A brick
 * counts 512 bytes, or nothing if it is full of one material; with CUDA it is memory that is locked. Without this
 * structure it is an eighth of the device's budget, and 32 MiB at least. */
typedef struct qry_host_budget_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint64_t bytes; /* 0: as without it; else 32 MiB are taken at least */
} qry_host_budget_info;
#define QRY_HOST_BUDGET_INFO_INIT \
  { QRY_STYPE_HOST_BUDGET_INFO, 0, NULL, 0 }

/* Lost devices
 *   A device may be lost at any moment: a kernel of anyone in the process breaks, hardware fails, a driver starts anew.
 * What was in its memory is gone then, for a world at home there all voxels and the history. From then on
 * - calls on that world that need the device are QRY_ERROR_DEVICE_LOST, whatever else they list: edits, undo, redo,
 * what was submitted and has no answer yet, reading, saving, snapshots, states, pictures, rays. Arrays that such a call
 * was to fill may be filled in part;
 * - calls that need nothing of it answer as before: the palette, worlds at home elsewhere, what was awaited already,
 *   qry_world_flush if nothing has changed since the last one;
 * - an attached file has what the last flush brought there that returned QRY_OK, and of one that the loss has stopped
 *   all or nothing. qry_world_detach lets the file go, too, and is QRY_ERROR_DEVICE_LOST only if changes are lost or
 *   may be;
 * - handles are destroyed as always, which lets go of an attached file.
 *   Then the file is opened again, in the same process: at home on the host, or on another device. A CUDA device cannot
 * be used again by the process that has lost it: worlds there are QRY_ERROR_DEVICE_LOST until the program is started
 * anew, and QRY_HOME_AUTOMATIC takes the host. A lost Vulkan device needs a new context. An emulated one is made anew
 * with each world. */

/* What a world at home on a device asks of it. */
enum {
  QRY_EMULATED_LAUNCH = 0, /* of a kernel */
  QRY_EMULATED_COPY = 1,
  QRY_EMULATED_ALLOCATION = 2,
  QRY_EMULATED_WAIT = 3
};
/* Called before each of them, by one thread at a time for one world, not always the caller's. Return QRY_OK, or
 * QRY_ERROR_OUT_OF_MEMORY, which refuses an allocation and is QRY_OK to all else, or QRY_ERROR_DEVICE_LOST, as anything
 * else: the device is lost at this call. It must not call into Quarry. */
typedef qry_result(QRY_CALL* qry_emulated_function)(void* user, uint32_t emulated_call);
/* Chain it beside a qry_world_home_info with QRY_HOME_EMULATED; with any other home it is QRY_ERROR_INVALID_ARGUMENT.
 * So a program can be tested with devices that have no memory left or are lost, without any. */
typedef struct qry_emulation_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  qry_emulated_function before; /* may be NULL; no more called when the world is destroyed */
  void* user;
} qry_emulation_info;
#define QRY_EMULATION_INFO_INIT \
  { QRY_STYPE_EMULATION_INFO, 0, NULL, NULL, NULL }

/* Makes an empty world: one volume (number 0) at the origin, the standard palette. info: NULL means
 * QRY_WORLD_INFO_INIT.
 * Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_MEMORY, DEVICE. [free] */
QRY_API qry_result QRY_CALL qry_world_create(qry_context* context, const qry_world_info* info, qry_world** out);
/* Waits until the device no longer reads the world. [last] */
QRY_API void QRY_CALL qry_world_destroy(qry_world** world);

/* fraction: 0..1, or negative if unknown. Return 0 to continue, anything else to stop with QRY_ERROR_CANCELLED and
 * nothing done. One thread at a time calls it, not always the caller's. It must not call into Quarry. */
typedef int32_t(QRY_CALL* qry_progress_function)(void* user, const char* stage, double fraction);

enum {
  QRY_OPEN_FLATTEN = 1, /* all visible instances become one volume at the origin, whose axes are the world's; the
                           scene's tree is dropped. At home on a device it does that: each volume is sent once */
  QRY_OPEN_PACK = 2,    /* the opened world is packed, as by qry_world_pack */
  QRY_OPEN_WITHOUT_HISTORY =
      4 /* the undo history of a .quarry file stays in the file, and takes neither time nor memory. Once the world is
           attached to the file, undo and redo take its steps from there, one at a time, as they are wanted */
};
typedef struct qry_open_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next; /* accepts qry_world_info, qry_world_home_info, qry_emulation_info, qry_device_budget_info,
                       qry_host_budget_info */
  const char* path;
  uint32_t flags;                 /* QRY_OPEN_... */
  int32_t resolution;             /* meshes: voxels along the longest edge, 1..16384 */
  double voxel_size;              /* meshes: edge of a voxel in the file's units; wins over `resolution` if > 0 */
  uint64_t reader_memory_bytes;   /* meshes: limit of the process that reads them */
  double reader_time_s;           /* meshes: limit of the same */
  qry_progress_function progress; /* may be NULL */
  void* progress_user;
} qry_open_info;
#define QRY_OPEN_INFO_INIT \
  { QRY_STYPE_OPEN_INFO, 0, NULL, NULL, 0, 256, 0.0, (uint64_t)1 << 30, 120.0, NULL, NULL }

/* Reads a .quarry world, a .vox scene, a mesh or any other format that `quarry info` knows, into memory. The format is
 * found by the file's content first, then by its extension. Skipped or repaired parts are warnings in the log. The file
 * is not kept open. A mesh for a world at home on a CUDA device is voxelised there, and its voxels stay there; unless
 * flags say otherwise. The undo history of a .quarry file is read too, but for the flags above. Errors:
 * INVALID_ARGUMENT, UNKNOWN_STRUCT, DUPLICATE_STRUCT, NOT_FOUND, MALFORMED_INPUT, UNSUPPORTED, OUT_OF_BOUNDS (it does
 * not fit the world), FULL, IO, CONFLICT, CANCELLED, OUT_OF_MEMORY, DEVICE. Messages begin with the file's name. [free]
 */
QRY_API qry_result QRY_CALL qry_world_open(qry_context* context, const qry_open_info* info, qry_world** out);

typedef struct qry_save_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  const char* path; /* its extension sets the format: .quarry keeps all but the history, others keep what they can */
  qry_progress_function progress; /* may be NULL */
  void* progress_user;
} qry_save_info;
#define QRY_SAVE_INFO_INIT \
  { QRY_STYPE_SAVE_INFO, 0, NULL, NULL, NULL, NULL }

/* The file appears whole or not at all. It is written under a temporary name and renamed.
 * Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, UNSUPPORTED (format; the message lists the known ones), NOT_FOUND (folder),
 * IO, CONFLICT, CANCELLED, OUT_OF_MEMORY. [read] */
QRY_API qry_result QRY_CALL qry_world_save(qry_world* world, const qry_save_info* info);

/* A world that is attached to a .quarry file has a journal behind its edits: qry_world_flush brings to the file what
 * has changed since the last flush, by the regions of 64^3 voxels that changed and the steps of the history that are
 * new. Edits, undo and redo cost as before; no thread writes between calls. What a flush returned QRY_OK for is on disk
 * and survives the program and the machine. What was not flushed is not in the file, and a flush that was cut short is
 * in it as a whole or not at all. Calls on the world need not know of the file. */

/* Attaches the world to the file, which has the whole world and its history when the call returns. path ends in .quarry
 * and is
 * - no file yet: it is written, as by qry_world_save, and with the history;
 * - the file that the world was opened from, without QRY_OPEN_FLATTEN, or was detached from, or a copy of it: a world
 *   that has not changed since is not written again; of one that has the file is replaced as a whole, unless it has
 *   steps of the history that the world has not (QRY_OPEN_WITHOUT_HISTORY, the budget): QRY_ERROR_CONFLICT;
 * - any other file: QRY_ERROR_CONFLICT, and it stays as it is.
 * Other programs and worlds cannot edit or replace the file until it is detached: QRY_ERROR_CONFLICT. A file beside it,
 * named path-wal, is part of it for so long. On failure the world is not attached, but the file may be there already.
 * Cost: opening checks the file by reading all of it, without unpacking. Errors: INVALID_ARGUMENT (also: is attached
 * already), UNSUPPORTED (another format), CONFLICT, NOT_FOUND (folder), MALFORMED_INPUT, IO (also a folder, or a file
 * that must not be written), OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_attach(qry_world* world, const char* path);
/* Brings all changes since the last flush into the file, as one transaction, and waits for the disk. The file gets the
 * steps that came and went by undo, too, as far as they can be redone, and the palette. After a failure the file is as
 * after the last flush, and the next flush tries again with all of it. The budget of the history
 * (qry_world_set_history_budget) is kept here, so that the file gets every step first: it keeps them all. Cost: changed
 * regions and new steps are compressed by all threads; at home on a device they are read back some at a time, 8 bytes
 * for each of a changed region's 512 bricks, 12 for each brick that a step changes, 516 for each of either that is not
 * full of one material: the host has the records of half a million bricks, or of one step. Errors: INVALID_ARGUMENT
 * (not attached), IO (disk full), OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_flush(qry_world* world);
/* Flushes, and lets the file go: it is a single file again, which needs room on the disk. On failure the world stays
 * attached, except that DEVICE_LOST lets the file go as it was after the last flush. qry_world_destroy of an attached
 * world lets the file go without flushing: it cannot tell you of a failure. Errors: as qry_world_flush. [write] */
QRY_API qry_result QRY_CALL qry_world_detach(qry_world* world);

/* ---- Snapshots: readers beside a writer -----------------------------------------------------------------------------
 */

/* Makes a world that stays as this one is now, while this one is edited: any threads may use the one beside the other.
 * It is only read: calls that change it or attach it are QRY_ERROR_UNSUPPORTED, and it has no history. It is saved,
 * read and listed by any number of threads, and drawn and traced by one thread at a time, as every world. It is
 * destroyed as every world, before this one or after it. Of a world at home on the host it shares the bricks: it takes
 * 20 bytes a brick, and what is removed or changed meanwhile stays in memory for it. When it is first drawn or traced
 * it becomes a world of its own, with all bricks copied. Of a world at home on a device it is a copy in host memory:
 * all bricks are read back, 516 bytes over the bus for each that is not full of one material, which waits for submitted
 * changes. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE. [read] */
QRY_API qry_result QRY_CALL qry_world_snapshot(const qry_world* world, qry_world** snapshot);

/* ---- Voxels in bulk ---------------------------------------------------------------------------------------------- */

/* Calls write to one volume of the scene, in that volume's own axes. They read the flattened scene, in world axes. In a
 * world made by qry_world_create, or opened with QRY_OPEN_FLATTEN, volume 0 is at the origin and the two are the same.
 * Each writing call is one step of the undo history, if it changed anything. */

/* Sets `count` voxels: xyz[3*i .. 3*i+2] becomes materials[i] (0: empty). If a voxel is given more than once, the last
 * one wins. It does all or nothing. changed (may be NULL): how many voxels differ from before. Cost: 13 bytes a
 * voxel read twice, 6 written and read, and each touched brick once. History takes at most 624 bytes a brick, 32 if it
 * was absent or full of one material. Errors: INVALID_ARGUMENT, OUT_OF_BOUNDS (names the first such voxel and its place
 * in the array), FULL, OUT_OF_MEMORY. [write] */
QRY_API qry_result QRY_CALL qry_world_set_voxels(qry_world* world, uint32_t volume, const int32_t* xyz,
                                                 const uint8_t* materials, uint64_t count, uint64_t* changed);
/* materials[i] = the voxel at xyz[3*i .. 3*i+2], 0 if empty or outside the world. At home on a device at most 8 voxels
 * are read with the bricks around them, which stay on the host until the next change: the next such calls close by ask
 * no device. Errors: INVALID_ARGUMENT, DEVICE. [read] */
QRY_API qry_result QRY_CALL qry_world_get_voxels(const qry_world* world, const int32_t* xyz, uint8_t* materials,
                                                 uint64_t count);

/* Write or read a dense box, x fastest, then y, then z: materials[(x-min[0]) + w*((y-min[1]) + h*(z-min[2]))], where w
 * and h are the box's width and height. Writing sets every voxel of the box to the array's value, 0 included. It does
 * all or nothing. Errors: INVALID_ARGUMENT (max < min, or more than 2^32 voxels), BUFFER_TOO_SMALL; when writing also
 * OUT_OF_BOUNDS, FULL, OUT_OF_MEMORY. [write] and [read] */
QRY_API qry_result QRY_CALL qry_world_write_region(qry_world* world, uint32_t volume, const int32_t min[3],
                                                   const int32_t max[3], const uint8_t* materials, uint64_t size_bytes,
                                                   uint64_t* changed);
QRY_API qry_result QRY_CALL qry_world_read_region(const qry_world* world, const int32_t min[3], const int32_t max[3],
                                                  uint8_t* materials, uint64_t size_bytes);

/* Lists the coordinates of every brick that has a voxel, in rising order of their keys. Brick b covers voxels 8b ..
 * 8b+7 on each axis. count: in, how many fit into brick_xyz (three int32_t each); out, how many there are. brick_xyz
 * may be NULL if *count is 0. It returns QRY_INCOMPLETE if not all fitted. Errors: INVALID_ARGUMENT. [read] */
QRY_API qry_result QRY_CALL qry_world_list_bricks(const qry_world* world, int32_t* brick_xyz, uint64_t* count);

/* ---- Edits and history ------------------------------------------------------------------------------------------- */

enum {
  QRY_SHAPE_BOX = 0,    /* all voxels from a to b, corners in any order */
  QRY_SHAPE_SPHERE = 1, /* voxels whose centre is within `radius` of the centre of voxel a */
  QRY_SHAPE_LINE = 2,   /* voxels whose centre is within `radius` of the segment between a's and b's centres; radius 0:
                           6-connected */
  QRY_SHAPE_CONNECTED = 3 /* voxels that are connected with voxel a, through faces, by voxels of a's material; none if
                             a is empty */
};
enum {
  QRY_MODE_ADD = 0,     /* empty voxels become `material`; others stay */
  QRY_MODE_REMOVE = 1,  /* voxels become empty */
  QRY_MODE_PAINT = 2,   /* voxels that are not empty become `material` */
  QRY_MODE_REPLACE = 3, /* voxels of material `from` become `material`, or empty if that is 0 */
  QRY_MODE_FILL = 4     /* all voxels become `material` */
};

typedef struct qry_edit {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint32_t volume;
  uint32_t shape;    /* QRY_SHAPE_... */
  uint32_t mode;     /* QRY_MODE_... */
  uint32_t material; /* 1..255; 0 only with REPLACE, and with REMOVE, which does not read it */
  uint32_t from;     /* REPLACE: 1..255 */
  int32_t a[3];
  int32_t b[3]; /* box and line */
  uint32_t reserved2;
  double radius; /* sphere and line: in voxels, 0..4096 */
} qry_edit;
#define QRY_EDIT_INIT \
  { QRY_STYPE_EDIT, 0, NULL, 0, QRY_SHAPE_BOX, QRY_MODE_ADD, 1, 0, {0, 0, 0}, {0, 0, 0}, 0, 0.0 }

/* Applies an edit. The same edits in the same order give the same world, with any number of threads. It does all or
 * nothing. changed may be NULL. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_BOUNDS, FULL, OUT_OF_MEMORY. [write]
 */
QRY_API qry_result QRY_CALL qry_world_edit(qry_world* world, const qry_edit* edit, uint64_t* changed);

/* Go one step back or forth in the history. Voxels are restored exactly. Steps of a .quarry file that changed materials
 * restore those too. A whole step is restored or nothing; a stroke is one step with all its parts. At the history's end
 * the result is QRY_NOTHING_TO_DO; of a world that is attached to a file the history goes on there, with the steps that
 * its budget has dropped (qry_world_submit_undo and _redo end with what is in memory). changed may be NULL. A writing
 * call drops the steps that could have been redone. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY; of the file IO,
 * MALFORMED_INPUT. [write] */
QRY_API qry_result QRY_CALL qry_world_undo(qry_world* world, uint64_t* changed);
QRY_API qry_result QRY_CALL qry_world_redo(qry_world* world, uint64_t* changed);

/* The same three calls without waiting: they return when the change is on its way, with a ticket by which
 * qry_world_await tells what became of it. Changes are made in the order of the calls, whichever calls make them. One
 * that fails changes nothing, and those after it are made without it. Calls that read the world wait for all of them.
 * On a world that is at home on the host they do the same as the calls above, and have a ticket of what is done.
 * Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_BOUNDS, DEVICE, and at home on the host those of the calls above;
 * then there is no ticket and nothing is on its way. [write] */
QRY_API qry_result QRY_CALL qry_world_submit_edit(qry_world* world, const qry_edit* edit, uint64_t* ticket);
QRY_API qry_result QRY_CALL qry_world_submit_undo(qry_world* world, uint64_t* ticket);
QRY_API qry_result QRY_CALL qry_world_submit_redo(qry_world* world, uint64_t* ticket);

/* Waits until a submitted change is done, and tells how many voxels it changed and the version of the world after it.
 * Both may be NULL. The last 4096 tickets are known. An undo or redo without a step is QRY_NOTHING_TO_DO. Errors:
 * INVALID_ARGUMENT (no such ticket), FULL, OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_await(qry_world* world, uint64_t ticket, uint64_t* changed, uint64_t* version);

/* ---- Algebra: volumes as sets of voxels -------------------------------------------------------------------------- */

/* Calls that change something make one volume, in its own axes, what the operation makes of it, as one step of the
 * history; none if no voxel differs. changed (may be NULL): how many voxels differ from before. They do all or nothing,
 * and come to the same with any number of threads and at every home. They return when they are done, after what was
 * submitted before. Two worlds at home on one device are combined there; a single step of growth or erosion is made
 * there, and parts are found and removed there. Everything else the host finds out: all bricks of a world at home on a
 * device are read back first (516 bytes over the bus for each that is not full of one material), and those that differ
 * are sent.
 * Beside the world there are, until the call returns, a list of 20 bytes a brick two or three times, and 576 bytes for
 * each brick that differs, at a device home for each brick. History as that of qry_world_set_voxels.
 * neighbours: which voxels touch. 6: those that share a face; 18: a face or an edge; 26: a corner too.
 * info (may be NULL): who is told how far it is, and may stop it. What is read back from a device, and instances that
 * are made one volume, are not stopped, nor is the edit itself: the last call is before it, with the fraction 1.
 * Errors of all that change something: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_BOUNDS, FULL, CANCELLED (nothing has
 * changed), OUT_OF_MEMORY, DEVICE. */

typedef struct qry_progress_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  qry_progress_function progress; /* at most some tens of times a second; may be NULL */
  void* progress_user;
} qry_progress_info;
#define QRY_PROGRESS_INFO_INIT \
  { QRY_STYPE_PROGRESS_INFO, 0, NULL, NULL, NULL }

enum {
  QRY_COMBINE_UNION = 0,        /* voxels of the volume or of `other` */
  QRY_COMBINE_INTERSECTION = 1, /* voxels of both */
  QRY_COMBINE_DIFFERENCE = 2    /* voxels of the volume that `other` does not have */
};

/* Combines a volume with what another world of the same context shows, whose world axes are taken for the volume's own.
 * The volume's material wins wherever it has the voxel; what comes from `other` alone keeps the number of its material
 * there, whatever the two palettes say. `other` may be the same world, and at another home. It is only read, as by a
 * [read] call. Cost: a pass over both lists of bricks, and over the voxels of bricks that both have. Errors: also
 * INVALID_ARGUMENT for a world of another context. [write] */
QRY_API qry_result QRY_CALL qry_world_combine(qry_world* world, uint32_t volume, const qry_world* other, uint32_t mode,
                                              const qry_progress_info* info, uint64_t* changed);

/* Grows a volume: each of `steps` steps, 1..4096, adds the empty voxels that have a neighbour. An added voxel gets the
 * material of its first neighbour in this order: of 6: -x, +x, -y, +y, -z, +z; of 18 and 26: z slowest, x fastest, each
 * from -1 to +1. Voxels that were there stay as they are. A voxel that would be outside the world is OUT_OF_BOUNDS.
 * Cost of a step: 3 to 5 us of a core for each brick that changes, next to nothing for a full one. [write] */
QRY_API qry_result QRY_CALL qry_world_dilate(qry_world* world, uint32_t volume, uint32_t neighbours, uint32_t steps,
                                             const qry_progress_info* info, uint64_t* changed);
/* Erodes a volume: each of `steps` steps, 1..4096, takes away the voxels that have an empty neighbour. The others keep
 * their materials. The outside of the world is empty. Cost: as qry_world_dilate. [write] */
QRY_API qry_result QRY_CALL qry_world_erode(qry_world* world, uint32_t volume, uint32_t neighbours, uint32_t steps,
                                            const qry_progress_info* info, uint64_t* changed);

/* A connected part: voxels of which each is reached from each other one by steps from neighbour to neighbour. */
typedef struct qry_part {
  uint64_t voxel_count;
  int32_t min[3]; /* its tight box */
  int32_t max[3];
  uint32_t material; /* the commonest in it; of several the lowest */
  uint32_t reserved; /* 0 */
} qry_part;

/* Lists the connected parts of what the world shows, in world axes, whatever their materials: the largest first, those
 * of equal size by their first brick in the order of x, then y, then z. count: in, how many fit into `parts`; out, how
 * many there are. parts may be NULL if *count is 0. It returns QRY_INCOMPLETE if not all fitted; the first *count of
 * before are there then. Cost: 1 to 2 us of a core for each brick, whatever *count is, so a first call with some room
 * may spare the second. Memory: 100 bytes a brick, 512 more for one with several parts. A device finds the parts of
 * worlds that are at home there: then that memory is the device's, until qry_world_trim; if it has too little, the host
 * reads the bricks and finds them. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, UNSUPPORTED (more than 2^32 pieces of
 * bricks), OUT_OF_BOUNDS, CANCELLED (parts and count are as they were), OUT_OF_MEMORY, DEVICE. [read] */
QRY_API qry_result QRY_CALL qry_world_find_parts(const qry_world* world, uint32_t neighbours,
                                                 const qry_progress_info* info, qry_part* parts, uint64_t* count);
/* Removes a volume's connected parts but the `most` largest of those that have at least `least` voxels; of equal ones
 * the first in the order of qry_world_find_parts stay. most: at least 1; UINT64_MAX: all of that size. least: 0 or 1:
 * of any size. So (1, 0) keeps the largest, and (UINT64_MAX, n) drops those of less than n voxels. Errors: also
 * UNSUPPORTED, as qry_world_find_parts. [write] */
QRY_API qry_result QRY_CALL qry_world_keep_parts(qry_world* world, uint32_t volume, uint32_t neighbours, uint64_t most,
                                                 uint64_t least, const qry_progress_info* info, uint64_t* changed);

/* ---- Worlds compared --------------------------------------------------------------------------------------------- */

/* Sums that tell worlds apart, whatever made them: worlds that show the same voxels have the same sums, and others have
 * not, as far as 64 bits can tell. A hash begins with 0x9e3779b97f4a7c15, and takes a number, as 32 bits without a
 * sign, by h = m(h + number), where m is the splitmix64 finaliser. Of each voxel the hash of x, y, z is added to
 * place_sum, and that hash after r | g << 8 | b << 16 | a << 24 of its material to colour_sum, modulo 2^64: parts of a
 * world may be added up. They are pos_sum and col_sum of `quarry info --json` where no instance is hidden. */
typedef struct qry_world_sums {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t voxel_count;
  uint64_t place_sum;
  uint64_t colour_sum;
} qry_world_sums;
#define QRY_WORLD_SUMS_INIT \
  { QRY_STYPE_WORLD_SUMS, 0, NULL, 0, 0, 0 }

/* Sums up what the world shows, after what was submitted before: by the device if it is at home there, else by all
 * threads. Cost: a pass over all bricks. Memory: of scenes of several instances those bricks that several of them make.
 * Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_BOUNDS, OUT_OF_MEMORY, DEVICE. [read] */
QRY_API qry_result QRY_CALL qry_world_get_sums(const qry_world* world, qry_world_sums* sums);

typedef struct qry_difference {
  uint64_t voxel_count;
  int32_t min[3]; /* their tight box; min is above max if there are none */
  int32_t max[3];
} qry_difference;
typedef struct qry_comparison {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  qry_difference added;      /* voxels that only the other world has */
  qry_difference removed;    /* that only this one has */
  qry_difference recoloured; /* that both have, of materials that are not alike */
  uint64_t alike_count;      /* that both have, of materials that are: numbers equal in every member but the name */
} qry_comparison;
#define QRY_COMPARISON_INIT                                                                    \
  {                                                                                            \
    QRY_STYPE_COMPARISON, 0, NULL, {0, {0, 0, 0}, {-1, -1, -1}}, {0, {0, 0, 0}, {-1, -1, -1}}, \
        {0, {0, 0, 0}, {-1, -1, -1}}, 0                                                        \
  }
enum {
  QRY_COMPARE_SHAPE = 1 /* which voxels there are, whatever their materials */
};

/* Compares what two worlds of a context show, in world axes, after what was submitted before to either; they may be
 * one. flags: of QRY_COMPARE_. Two worlds at home on one device are compared there, and nothing of them goes over the
 * bus; bricks of a world at home on a device that is compared with one that is not are read back first (516 bytes over
 * the bus for each that is not full of one material). Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_BOUNDS,
 * OUT_OF_MEMORY, DEVICE; then *comparison is as it was. [read], of both */
QRY_API qry_result QRY_CALL qry_world_compare(const qry_world* world, const qry_world* other, uint32_t flags,
                                              qry_comparison* comparison);

/* ---- Palette ----------------------------------------------------------------------------------------------------- */

typedef struct qry_material {
  uint8_t rgba[4];    /* sRGB, straight alpha */
  float roughness;    /* 0..1 */
  float metalness;    /* 0..1 */
  float emission;     /* radiance in units of the colour; 0: none */
  float transparency; /* 0 opaque .. 1 clear */
  float ior;          /* index of refraction, at least 1 */
  float reserved[2];
} qry_material;

/* Get or set materials first .. first+count-1 of the palette, within 1..255. Setting refuses numbers that are not
 * finite or out of range, and sets all or none. It is no step of the history, and keeps the materials' names. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. [read] and [write] */
QRY_API qry_result QRY_CALL qry_world_get_materials(const qry_world* world, uint32_t first, uint32_t count,
                                                    qry_material* materials);
QRY_API qry_result QRY_CALL qry_world_set_materials(qry_world* world, uint32_t first, uint32_t count,
                                                    const qry_material* materials);

/* ---- Statistics -------------------------------------------------------------------------------------------------- */

typedef struct qry_world_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t version;     /* rises with every change of voxels or palette; 0 when made or opened */
  uint64_t voxel_count; /* voxels that are not empty */
  uint64_t brick_count;
  uint64_t size_bytes;       /* grid, bricks and pyramid; bricks that only volumes or the history have included */
  uint64_t history_length;   /* steps that can be undone and redone */
  uint64_t history_position; /* how many of them can be undone */
  uint32_t volume_count;
  uint32_t instance_count;
  int32_t min[3]; /* bounds of the voxels; max < min if there are none */
  int32_t max[3];
} qry_world_state;
#define QRY_WORLD_STATE_INIT                                                       \
  {                                                                                \
    QRY_STYPE_WORLD_STATE, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}, { 0, 0, 0 } \
  }

/* After a change it passes over the bricks' masks to find the bounds, and keeps them. Therefore it is [write]. Errors:
 * INVALID_ARGUMENT, UNKNOWN_STRUCT, OUT_OF_MEMORY. */
QRY_API qry_result QRY_CALL qry_world_get_state(qry_world* world, qry_world_state* state);

typedef struct qry_grid_stats {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t live; /* keys (bricks) in the table */
  uint64_t slots;
  uint64_t freed;         /* empty slots that once held a key */
  uint64_t overflow_live; /* keys in the stash, whose two buckets were full */
  uint64_t spilled_buckets;
  uint64_t size_bytes;
  double load_factor;           /* live / slots */
  double depth_mean;            /* probe depth: 32-byte sectors read to find a present key */
  uint64_t depth_histogram[32]; /* [d]: keys of depth d + 1; the last also counts deeper ones */
  uint64_t bucket_fill[5];      /* buckets that hold 0..4 keys */
  uint32_t depth_p50;
  uint32_t depth_p99;
  uint32_t depth_max;
  uint32_t page_count;
  uint32_t fullest_page_live;
  uint32_t reserved2;
} qry_grid_stats;
#define QRY_GRID_STATS_INIT \
  { QRY_STYPE_GRID_STATS, 0, NULL, 0, 0, 0, 0, 0, 0, 0.0, 0.0, {0}, {0}, 0, 0, 0, 0, 0, 0 }

/* Measures the hash grid by a pass over its table. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, DEVICE, OUT_OF_MEMORY.
 * [read] */
QRY_API qry_result QRY_CALL qry_world_get_grid_stats(const qry_world* world, qry_grid_stats* stats);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

typedef struct qry_memory_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t grid_bytes; /* these four are the world, with the bricks of volumes and history: each brick is there once,
                          whoever has it. They add up to qry_world_state.size_bytes */
  uint64_t mask_bytes;
  uint64_t material_bytes;
  uint64_t pyramid_bytes;
  uint64_t packed_bytes; /* the sum of the four when packed; until then an estimate, within 128 KiB and a hundredth */
  uint64_t scene_bytes; /* the volumes' lists of bricks, in host memory: some 22 bytes a brick. The volume that alone is
                           shown, at the origin and not turned, needs none but while all of it is read, to be saved */
  uint64_t history_bytes; /* the records of all steps that can be undone and redone, in host memory: 32 bytes for each
                             brick that they changed, or for a row of bricks that are empty or full of one material */
  uint64_t device_bytes;  /* memory made for this world that the device reads; 0: no device yet; with
                             QRY_SHARING_HOST_IMPORT it is the memory of the four */
  uint32_t packed;        /* 1: packed */
  uint32_t reserved2;
} qry_memory_state;
#define QRY_MEMORY_STATE_INIT \
  { QRY_STYPE_MEMORY_STATE, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* May be chained to qry_memory_state. */
typedef struct qry_memory_bricks {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t keys;            /* bricks of the world that have voxels, qry_world_state.brick_count */
  uint64_t full_keys;       /* those of them that are full of one material: they share one brick for each material */
  uint64_t bricks;          /* bricks that are stored */
  uint64_t history_bricks;  /* those of them that only the history has, or a file that is being saved */
  uint64_t history_changes; /* bricks that the steps changed, each as often as they did */
  uint64_t spare_bytes;     /* room for bricks to come, in the four of qry_memory_state; qry_world_trim frees most */
} qry_memory_bricks;
#define QRY_MEMORY_BRICKS_INIT \
  { QRY_STYPE_MEMORY_BRICKS, 0, NULL, 0, 0, 0, 0, 0, 0 }

/* May be chained to qry_memory_state. */
typedef struct qry_memory_history {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t budget_bytes;  /* qry_world_set_history_budget's; 0: no limit */
  uint64_t used_bytes;    /* what it limits: records, and the bricks that they may come to hold */
  uint64_t undo_steps;    /* that can be undone */
  uint64_t redo_steps;    /* that can be redone */
  uint64_t dropped_steps; /* that went for the budget, since the world was made or opened */
} qry_memory_history;
#define QRY_MEMORY_HISTORY_INIT \
  { QRY_STYPE_MEMORY_HISTORY, 0, NULL, 0, 0, 0, 0, 0 }

/* Measures memory by a pass over the bricks' masks, the volumes' lists and the records. Of a world at home on a device
 * all of it is the device's, the history too, at 12 bytes a changed brick; there are no lists of volumes, and
 * the grid is copied to the host to count keys. Accepts a qry_memory_bricks and a
 * qry_memory_history. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT. [read] */
QRY_API qry_result QRY_CALL qry_world_get_memory(const qry_world* world, qry_memory_state* state);

/* Limits the memory of the history; 0, as worlds are made: no limit. A step takes its record (32 bytes, at home on a
 * device 12, a changed brick, and some 100) and some 580 bytes for each brick of those before it or those after it that
 * are not full of one material, whichever are more, so that undo and redo change nothing of the sum. When a step is
 * added, and by this call, the oldest steps go until the rest fits, and memory that only they had is free for later
 * bricks. The step that undo takes next stays, however large. Where that is not enough, by this call, those go too that
 * redo reaches last, but for the next one if nothing can be undone. Undo beyond what is kept is QRY_NOTHING_TO_DO, but
 * of an attached world, whose file has every step: qry_world_undo. At home on a device steps that were submitted go
 * when they are awaited, or when one more is submitted, and then it waits for those before it. An opened file is not
 * changed. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_set_history_budget(qry_world* world, uint64_t bytes);

/* Packs the world for reading, with all bricks of volumes and history, in about a third of the memory, above all of the
 * device's. A packed world keeps only the materials of set voxels and has no spare memory. Voxels, version, pictures
 * and the results of all queries stay the same. A picture costs up to a twentieth more. The next call that changes
 * voxels (or qry_world_unpack) unpacks it first, at the cost of copying every brick, and it stays so if that call
 * fails. Both forms are in memory until that is done. At home on a device it is trimmed before; an edit there is
 * launched before it is known whether it changes anything, so one that changes nothing unpacks it too, and so does
 * qry_world_reserve. QRY_NOTHING_TO_DO: it is packed already.
 * Errors: INVALID_ARGUMENT, FULL (more than 16 GiB of materials), OUT_OF_MEMORY, DEVICE; it is as before. [write] */
QRY_API qry_result QRY_CALL qry_world_pack(qry_world* world);
/* Unpacks the world, so that the next edit need not do it. Errors: as qry_world_pack. [write] */
QRY_API qry_result QRY_CALL qry_world_unpack(qry_world* world);
/* Frees memory that no brick uses. It is worth its cost after much was built or removed. An opened world is already
 * trimmed. The world can still be edited, and grows again by small parts of itself. The next picture gives the device
 * all of the world again. QRY_NOTHING_TO_DO: it is packed. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE; then it is
 * as before. [write] */
QRY_API qry_result QRY_CALL qry_world_trim(qry_world* world);

typedef struct qry_home_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;               /* accepts qry_flatten_state, qry_hand_over_state, qry_paging_state */
  uint32_t home;            /* QRY_HOME_..., never AUTOMATIC */
  uint32_t brick_count;     /* bricks that the device stores: not full ones, but those that only the history has */
  uint64_t device_bytes;    /* device memory of the world, its history and its spare room; 0 on the host */
  uint64_t bytes_to_device; /* over the bus, since the world was made: copies, arguments of kernels, rays */
  uint64_t bytes_from_device;
  uint32_t in_place; /* 1: pictures are drawn from the memory in which edits are made; 0: from a copy on the host, or on
                        the context's device, which a picture brings up to date */
  uint32_t reserved2;
} qry_home_state;
#define QRY_HOME_STATE_INIT \
  { QRY_STYPE_HOME_STATE, 0, NULL, 0, 0, 0, 0, 0, 0, 0 }

/* How long it took to lay the scene of a world into one volume, where it was opened with QRY_OPEN_FLATTEN. Chain it to
 * qry_home_state. */
typedef struct qry_flatten_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint32_t flattened; /* 0: it was not, or is one volume at the origin as it is, on a device; the rest is 0 */
  uint32_t reserved2;
  double ms;      /* from volumes in the home's memory until the world was there: by the device, or by host threads */
  double room_ms; /* of a device: the time to make memory for it, which is not in `ms` */
} qry_flatten_state;
#define QRY_FLATTEN_STATE_INIT \
  { QRY_STYPE_FLATTEN_STATE, 0, NULL, 0, 0, 0.0, 0.0 }

/* How often the memory of a world at home on a device has changed hands. Chain it to qry_home_state. Two states and a
 * clock tell how often it does in a second. */
typedef struct qry_hand_over_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t hand_overs; /* from CUDA to Vulkan, since the world was made: a submission for each publish or picture of a
                          world that has changed. 0 where nothing is handed over: at home on the host or on host threads
                          in a device's place, whose memory Vulkan reads as it is, and where pictures need a copy */
} qry_hand_over_state;
#define QRY_HAND_OVER_STATE_INIT \
  { QRY_STYPE_HAND_OVER_STATE, 0, NULL, 0 }

/* Which parts of a world with a budget (qry_device_budget_info) are in its device's memory; all 0 without one. Chain it
 * to qry_home_state. */
typedef struct qry_paging_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t budget_bytes;
  uint64_t pages, absent_pages;       /* of 128^3 voxels that have some, as the file knows; those in the file alone */
  uint64_t absent_bricks;             /* in these */
  uint64_t brought_pages, left_pages; /* since the world was made */
  uint64_t flushes;                   /* of the file, because pages had to leave */
  /* Pages that recorded frames wanted (qry_world_stream), by the time from when that was known until they were there:
   * below 1 ms, 2 ms, 4 ms and so on; the last has all others. */
  uint64_t waits[16];
} qry_paging_state;
#define QRY_PAGING_STATE_INIT                                   \
  {                                                             \
    QRY_STYPE_PAGING_STATE, 0, NULL, 0, 0, 0, 0, 0, 0, 0, { 0 } \
  }

/* What the host's memory has of such a world's pages (qry_host_budget_info). Chain it to qry_home_state. */
typedef struct qry_page_cache_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t budget_bytes, bytes; /* at most, and in use; of voxels */
  uint64_t pages;               /* that are there, be they on the device or not */
  uint64_t read_pages;          /* from the file, since the world was made */
  uint64_t found_pages;         /* of those that were brought to the device: that were there when they were needed */
  uint64_t waits[16];           /* qry_paging_state's of pages that were there when frames wanted them first */
  double longest_wait_ms;       /* of these */
} qry_page_cache_state;
#define QRY_PAGE_CACHE_STATE_INIT \
  { QRY_STYPE_PAGE_CACHE_STATE, 0, NULL, 0, 0, 0, 0, 0, {0}, 0.0 }

/* Tells where a world is at home. Waits for submitted changes. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, DEVICE.
 * [read] */
QRY_API qry_result QRY_CALL qry_world_get_home(const qry_world* world, qry_home_state* state);

/* One of the kernels that an edit, undo or redo of a world at home on a device was made of, all its launches together.
 */
typedef struct qry_edit_stage {
  const char* name;  /* what it does, such as "cut" or "write keys". Static */
  uint64_t launches; /* a flood launches some of them for each of its rounds */
  double ms;         /* on the device; at home on host threads in its place, by the clock */
} qry_edit_stage;

/* Times the stages of edits from now on, or, with 0, no more. It is off at first, and costs nothing then. While it is
 * on each stage waits until the one before is done, so an edit takes a little longer. No edit fails for it. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (at home on the host). [write] */
QRY_API qry_result QRY_CALL qry_world_time_edits(qry_world* world, uint32_t on);
/* The stages of the last edit, undo or redo that was made while they were timed, in the order in which they were first
 * launched, with what it took to find voxels and to make room; copies over the bus and the host's own time are not in
 * them. Edits that were submitted before those before them had been awaited are told as one. Waits for submitted
 * changes. count: in, how many fit into stages; out, how many there are, at most 128; 0: nothing was timed. stages may
 * be NULL if *count is 0. It returns QRY_INCOMPLETE if not all fitted. Errors: INVALID_ARGUMENT, UNSUPPORTED (at home
 * on the host), DEVICE. [read] */
QRY_API qry_result QRY_CALL qry_world_list_edit_stages(const qry_world* world, qry_edit_stage* stages, uint64_t* count);

/* Makes room ahead of edits, so that none has to wait for memory: for so many bricks in all, of which so many are not
 * full of one material. At home on a device; on the host it does nothing. Errors: INVALID_ARGUMENT, FULL,
 * OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_reserve(qry_world* world, uint32_t bricks, uint32_t not_full);

/* ---- Pictures and rays: these need a Vulkan device, and make the context's own if there is none yet -------------- */

typedef struct qry_camera {
  double position[3];
  double
      target[3]; /* the middle of the picture; must differ from the position. Straight down or up, +x is to the right */
  double vertical_fov_degrees; /* above 0, below 180 */
} qry_camera;

/* Makes a camera that sees all voxels. For an empty world it sees a box of 16 voxels a side about the origin. azimuth:
 * 0 stands on the +z side and looks along -z, 90 stands on the +x side. elevation: above the horizon, within -89..89.
 * aspect: width / height. Needs no device. Errors: INVALID_ARGUMENT. It may measure the bounds as qry_world_get_state
 * does, so it is [write]. */
QRY_API qry_result QRY_CALL qry_world_fit_camera(qry_world* world, double vertical_fov_degrees, double aspect,
                                                 double azimuth_degrees, double elevation_degrees, qry_camera* camera);

enum {
  QRY_VIEW_SHADED = 0,
  QRY_VIEW_ALBEDO = 1,
  QRY_VIEW_NORMALS = 2,
  QRY_VIEW_DEPTH = 3,
  QRY_VIEW_BRICKS = 4,
  QRY_VIEW_PROBE_DEPTH = 5, /* heat map of hash grid look-ups */
  QRY_VIEW_STEPS = 6,       /* heat map of steps along the ray */
  QRY_VIEW_MATERIAL = 7,    /* a colour for each material number */
  QRY_VIEW_LOAD = 8         /* heat map of how full the hit brick's page of the hash grid is */
};

enum { QRY_SKY_DAY = 0, QRY_SKY_UNIFORM = 1 };
enum { QRY_BACKGROUND_SKY = 0, QRY_BACKGROUND_COLOR = 1, QRY_BACKGROUND_NONE = 2 };
enum { QRY_TONE_FILMIC = 0, QRY_TONE_LINEAR = 1 };

/* The surroundings of the world, and how its light is shown. Chain it to qry_render_info or qry_paths_info. Without it,
 * the values of INIT hold. */
typedef struct qry_look_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint32_t sky;        /* QRY_SKY_...: day, evening or night by the sun's height, or sky_color from all directions */
  float sky_color[3];  /* linear, 0 or more */
  uint32_t background; /* QRY_BACKGROUND_...: what rays that hit nothing see; with NONE, alpha is a pixel's coverage */
  float background_color[3]; /* sRGB, 0..1; shown unchanged */
  float sun_radius;          /* of its disc, in radians, 0..0.5; sets how soft shadows are */
  uint32_t ground;           /* 1: an unseen floor under the lowest voxel catches shadows */
  float fog_distance;        /* voxels over which the fog at the world's foot takes 63 % of the light; 0: no fog */
  float fog_height;          /* voxels over which the fog thins out to 1/e; 0: a third of the world's height */
  uint32_t tone;             /* QRY_TONE_...; LINEAR is clipped at white */
  uint32_t reserved2;
} qry_look_info;
#define QRY_LOOK_INFO_INIT                                                                                            \
  {                                                                                                                   \
    QRY_STYPE_LOOK_INFO, 0, NULL, QRY_SKY_DAY, {1.0f, 1.0f, 1.0f}, QRY_BACKGROUND_SKY, {1.0f, 1.0f, 1.0f}, 0.012f, 0, \
        0.0f, 0.0f, QRY_TONE_FILMIC, 0                                                                                \
  }

/* The box of a selection, drawn as its edges, about two pixels wide. It is faint where voxels hide it. Chain it to
 * qry_render_info. */
typedef struct qry_outline_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  int32_t min_xyz[3]; /* the lowest and the highest voxel in it; if max is below min on an axis, nothing is drawn */
  int32_t max_xyz[3];
} qry_outline_info;
#define QRY_OUTLINE_INFO_INIT                                  \
  {                                                            \
    QRY_STYPE_OUTLINE_INFO, 0, NULL, {0, 0, 0}, { -1, -1, -1 } \
  }

typedef struct qry_render_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next; /* accepts qry_look_info, qry_outline_info */
  qry_camera camera;
  uint32_t width, height; /* 1..16384 each */
  uint32_t view;          /* QRY_VIEW_... */
  uint32_t samples;       /* primary rays a pixel along one side, 1..8: 2 means 4 a pixel */
  uint32_t shadow_rays;   /* a pixel, 0: none; at most 64 */
  uint32_t ambient_rays;  /* a pixel, 0: none; at most 64 */
  float ambient_reach;    /* voxels, above 0 */
  float exposure;         /* above 0 */
  float sun_direction[3]; /* towards the sun, any length but 0 */
  float sun_strength;     /* 0 or more */
  float sky_strength;     /* 0 or more */
  uint32_t frame_seed;    /* of the noise; the same seed gives the same picture */
} qry_render_info;
#define QRY_RENDER_INFO_INIT                                                                                        \
  {                                                                                                                 \
    QRY_STYPE_RENDER_INFO, 0, NULL, {{0.0, 0.0, 0.0}, {0.0, 0.0, -1.0}, 45.0}, 1280, 720, QRY_VIEW_SHADED, 1, 1, 4, \
        64.0f, 1.0f, {-0.43f, 0.77f, -0.37f}, 3.0f, 1.0f, 0                                                         \
  }

/* Renders, waits for it, and copies the picture to `rgba`: 4 bytes a pixel, row 0 on top, rows row_pitch_bytes apart
 * (0: width * 4). size_bytes: at least row_pitch_bytes * (height - 1) + width * 4. A world made before the context had
 * a device is moved to memory that the device can read. That happens once, in the first call, and costs flattening it
 * again. Both copies exist meanwhile. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, DUPLICATE_STRUCT, BUFFER_TOO_SMALL,
 * UNSUPPORTED, NOT_FOUND, MISSING_FEATURE, DEVICE, OUT_OF_MEMORY. [write] */
QRY_API qry_result QRY_CALL qry_world_render(qry_world* world, const qry_render_info* info, void* rgba,
                                             uint64_t size_bytes, uint64_t row_pitch_bytes);

typedef struct qry_ray {
  float origin[3];
  float direction[3]; /* any length but 0 */
} qry_ray;
typedef struct qry_hit {
  float t; /* distance in voxels; negative: nothing was hit, and the other members are 0 */
  int32_t voxel[3];
  uint32_t face; /* the face entered through: 2*axis, + 1 for the face towards the positive axis; the voxel in front of
                    it is one step that way */
  uint32_t material;    /* 1..255 */
  uint32_t steps;       /* of the traversal */
  uint32_t probe_depth; /* sectors of the hash grid read for the last brick */
} qry_hit;

/* Finds the first voxel that each ray meets, by the same traversal as rendering. Blocks until done. One ray picks the
 * voxel under a pointer (qry_camera_ray makes the ray). Thousands of rays in one call are cheaper each. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND, MISSING_FEATURE, DEVICE, OUT_OF_MEMORY. [write] */
QRY_API qry_result QRY_CALL qry_world_trace(qry_world* world, const qry_ray* rays, uint64_t count, qry_hit* hits);

/* ---- Arrays in a CUDA device's memory ------------------------------------------------------------------------------
 *
 * For worlds at home on a device: pointers are of that device (with QRY_HOME_EMULATED, of the host), streams are
 * cudaStream_t, NULL is CUDA's default stream. What a call does waits for what the stream has got before the call.
 * On a world that is at home on the host they are QRY_ERROR_UNSUPPORTED. */

/* Edits and reads of the world that are called from now on wait for what the stream has got until now. Returns at once.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_cuda_wait(qry_world* world, void* stream);
/* What the stream gets from now on waits for the edits and reads of the world that were called until now. Returns at
 * once. Errors: INVALID_ARGUMENT, UNSUPPORTED, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_cuda_signal(qry_world* world, void* stream);

/* As qry_world_set_voxels and qry_world_write_region, of volume 0. They return when it is done: a list's bricks are
 * counted by the host. Nothing of the arrays goes over the bus. Errors: as these, and UNSUPPORTED (also more than 2^26
 * voxels or 5.8 million bricks in a list), DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_cuda_set_voxels(qry_world* world, const int32_t* xyz, const uint8_t* materials,
                                                      uint64_t count, void* stream, uint64_t* changed);
QRY_API qry_result QRY_CALL qry_world_cuda_write_region(qry_world* world, const int32_t min[3], const int32_t max[3],
                                                        const uint8_t* materials, uint64_t size_bytes, void* stream,
                                                        uint64_t* changed);
/* As qry_world_read_region and qry_world_trace. They wait for edits under way, not for what they launch: what the
 * stream gets after the call waits for that. A ray that cannot be traced meets nothing. rays begin at a multiple of 8
 * bytes, hits of 16. Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL, UNSUPPORTED, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_cuda_read_region(qry_world* world, const int32_t min[3], const int32_t max[3],
                                                       uint8_t* materials, uint64_t size_bytes, void* stream);
QRY_API qry_result QRY_CALL qry_world_cuda_trace(qry_world* world, const qry_ray* rays, uint64_t count, qry_hit* hits,
                                                 void* stream);

/* Makes the ray through point (x, y) of a picture, in pixels from its upper left corner: (0.5, 0.5) is the middle of
 * the first pixel. Errors: INVALID_ARGUMENT. Needs no device. [free] */
QRY_API qry_result QRY_CALL qry_camera_ray(const qry_camera* camera, uint32_t width, uint32_t height, double x,
                                           double y, qry_ray* ray);

/* ---- Frames in your own command buffer --------------------------------------------------------------------------- */

/* Since 0.1.1. For engines that own the queue: nothing here waits, and qry_record_frame submits nothing. Only in a
 * context with a device of yours (qry_vulkan_device_info). A frame goes like this:
 *
 *   edit the world, on any thread that may
 *   qry_world_publish(world, &published)                     the device sees the world as it is now
 *   qry_record_frame(recorder, world, &render, &record)      into your command buffer, once for each view
 *   submit it to the queue that qry_vulkan_device_info names, waiting for `published` if its value is not 0
 *   tell in a later qry_record_frame, or by qry_world_frames_done, which frames are done
 *
 * Order: submit what was recorded before the same world is published again. qry_world_render, qry_world_trace and
 * qry_world_trace_paths also publish it. Edits may come at any time, between recording and submitting too, and never
 * wait for frames. One exception: with QRY_SHARING_HOST_IMPORT, the views that show the hash grid itself
 * (QRY_VIEW_PROBE_DEPTH, QRY_VIEW_LOAD) read the table that edits write; an edit waits for submitted frames of these.
 *
 * You number frames in rising order, with one numbering for all recorders of a context. The numbers alone tell us when
 * memory that a frame may read can be freed. There is no fence, no semaphore and no wait for it. */

typedef struct qry_published {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t semaphore; /* a VkSemaphore of type timeline, owned by us; lives as long as the world */
  uint64_t value;     /* frames recorded from now on must wait for it, at the compute stage; 0: nothing to wait for */
  uint64_t version;   /* qry_world_state.version of what was published */
} qry_published;
#define QRY_PUBLISHED_INIT \
  { QRY_STYPE_PUBLISHED, 0, NULL, 0, 0, 0 }

/* Makes the device see the world as it is now. May submit copies to your queue, between your locks. Never waits for the
 * device. It is cheap if nothing has changed. The first call moves a world that was made before the context had a
 * device, as qry_world_render does. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, UNSUPPORTED (the context's device is not
 * yours), DEVICE, OUT_OF_MEMORY. [write] */
QRY_API qry_result QRY_CALL qry_world_publish(qry_world* world, qry_published* published);

/* Tells us that frame `safe_frame` and all before it are done on the device. Memory that only they could read is freed.
 * It is for times when nothing is recorded; qry_record_frame tells us the same. Before a world is destroyed, all frames
 * with it must be done, because destroying does not wait for them. Errors: INVALID_ARGUMENT. [write] */
QRY_API qry_result QRY_CALL qry_world_frames_done(qry_world* world, uint64_t safe_frame);

/* Worlds that keep to a part of the device's memory (qry_device_budget_info), in frames
 *   qry_world_publish publishes what is there. Of a page that is not there, 128^3 voxels, a frame shows the coarse
 * level, which is always there: each brick full, with one material. So no frame has a hole, and none waits. Frames tell
 * which pages their rays have come to; qry_world_stream brings those of frames that are done, and the next publish
 * shows them:
 *
 *   qry_world_publish, qry_record_frame, submit, as above
 *   qry_world_stream(world, &info, &state)                   once a frame, or whenever there is time
 *
 *   Views of the hash grid itself are QRY_ERROR_UNSUPPORTED while pages are not there. An edit needs the pages that it
 * changes, and brings them itself. What has left stays in memory until the next qry_world_publish, and until the frames
 * recorded before are done: an edit that is QRY_ERROR_OUT_OF_MEMORY for that can be made then. */
typedef struct qry_stream_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint64_t max_bytes; /* of the device's memory, of pages that come; a page has 2.5 MB at most, and one comes at least.
                         32 MiB are a millisecond of a fast bus. 0: all that fit the budget */
} qry_stream_info;
#define QRY_STREAM_INFO_INIT \
  { QRY_STYPE_STREAM_INFO, 0, NULL, (uint64_t)32 << 20 }

typedef struct qry_stream_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t brought_pages, left_pages; /* by this call */
  uint64_t brought_bytes;             /* of the device's memory */
  uint64_t missing_pages;             /* that frames want and that are not there yet, as far as the budget holds them */
} qry_stream_state;
#define QRY_STREAM_STATE_INIT \
  { QRY_STYPE_STREAM_STATE, 0, NULL, 0, 0, 0, 0 }

/* Brings pages that frames up to the last safe one have come to, the nearest to their cameras first, as far as the
 * host's memory has them; the others are read and decoded behind it (qry_host_budget_info), for later calls. Pages that
 * are farther away, or that no frame has come to lately, leave for them. A page stays coarse while a brick of it is
 * smaller than half a pixel. Returns when what comes is on its way to the device. As long as the device is not done
 * with what the last call has brought, it brings nothing. It waits for neither file nor device; only if edits that the
 * device alone has keep most of the budget, they are flushed. A page that cannot be read stays coarse: one call tells
 * why, and it is not read again before its file changes. Does nothing to worlds without a budget. `info` and `state`
 * may be NULL. Of a world that one grid does not hold it moves the window after the cameras of these frames; then the
 * next publish shows another part of the world. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, those of reading the file,
 * those of qry_world_flush, OUT_OF_MEMORY, DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_stream(qry_world* world, const qry_stream_info* info, qry_stream_state* state);
/* Brings the pages that meet a box of voxels, both corners included, before a camera or an edit gets there. They leave
 * as others do, when they have not been needed for longest; of a world that one grid does not hold those of the window
 * come. Does nothing to worlds without a budget. Errors:
 * INVALID_ARGUMENT, those of qry_world_flush, OUT_OF_MEMORY (they do not fit the budget together), DEVICE. [write] */
QRY_API qry_result QRY_CALL qry_world_prefetch(qry_world* world, const int32_t min[3], const int32_t max[3]);

/* Holds pipelines and, for each frame in flight, the buffers between its passes: 36 to 68 bytes a pixel. It can record
 * any world of its context. */
typedef struct qry_recorder qry_recorder;

typedef struct qry_recorder_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  uint32_t slots; /* recordings that may be in flight at once, 1..64: frames in flight times views a frame */
  uint32_t reserved2;
} qry_recorder_info;
#define QRY_RECORDER_INFO_INIT \
  { QRY_STYPE_RECORDER_INFO, 0, NULL, 3, 0 }

/* Makes all pipelines, so that no frame has to wait for one. Software drivers still compile when they first draw. info:
 * NULL means QRY_RECORDER_INFO_INIT. Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT, UNSUPPORTED (the context's device is not
 * yours), DEVICE, OUT_OF_MEMORY. [free] */
QRY_API qry_result QRY_CALL qry_recorder_create(qry_context* context, const qry_recorder_info* info,
                                                qry_recorder** out);
/* All that was recorded with it must be done. Recorders, worlds and the context may be destroyed in any order.
 * [last] */
QRY_API void QRY_CALL qry_recorder_destroy(qry_recorder** recorder);

typedef struct qry_record_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next;
  struct VkCommandBuffer_T*
      command_buffer;  /* recording, outside a render pass, of a family with compute; primary or secondary */
  uint64_t image_view; /* VkImageView: 2D, one level and layer, VK_FORMAT_R8G8B8A8_UNORM, of an image with
                          VK_IMAGE_USAGE_STORAGE_BIT, at least as large as the picture */
  uint64_t frame;      /* the frame that this command buffer is part of; not below one recorded before */
  uint64_t safe_frame; /* this frame and all before it are done on the device; below `frame` */
} qry_record_info;
#define QRY_RECORD_INFO_INIT \
  { QRY_STYPE_RECORD_INFO, 0, NULL, NULL, 0, 0, 0 }

/* Records a picture of the world as it was last published. Submits nothing, waits for nothing, allocates no
 * descriptors, begins no render pass and leaves none open. The buffers of a slot are made at its first picture and at a
 * larger one. Compiles pipelines only on software drivers, and at the first frame of a world of which pages are not
 * there. On entry the image must be in VK_IMAGE_LAYOUT_GENERAL, ready to be written by
 * VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT with VK_ACCESS_SHADER_WRITE_BIT. On exit it is still in VK_IMAGE_LAYOUT_GENERAL,
 * written by that stage with that access. You record the barriers before and after. If the image is larger, pixels
 * outside the picture stay as they are. In the command buffer's state it changes the compute pipeline, compute
 * descriptor set 0 and the compute push constants, and nothing of graphics. The command buffer must be submitted once,
 * and to the queue of qry_vulkan_device_info. A failed call may have recorded a part of the picture. Then begin the
 * command buffer anew, or draw over what was recorded. Errors: INVALID_ARGUMENT (also: never published; recorder and
 * world of different contexts), UNKNOWN_STRUCT, DUPLICATE_STRUCT, FULL (as many recordings are in frames after
 * safe_frame as there are slots), DEVICE, OUT_OF_MEMORY. [write] for both world and recorder */
QRY_API qry_result QRY_CALL qry_record_frame(qry_recorder* recorder, qry_world* world, const qry_render_info* render,
                                             const qry_record_info* record);

/* ---- Pictures that converge: light followed over many bounces ---------------------------------------------------- */

/* A picture to which calls add paths until it is good enough. It belongs to a context, and not to a world. It begins
 * anew when what it shows is no longer the same. Holds about 60 bytes a pixel on device and host together, 150 with
 * layers. */
typedef struct qry_paths qry_paths;

/* Nothing is made on a device yet. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. [free] */
QRY_API qry_result QRY_CALL qry_paths_create(qry_context* context, qry_paths** out);
/* Paths, worlds and the context may be destroyed in any order. [last] */
QRY_API void QRY_CALL qry_paths_destroy(qry_paths** paths);

enum {
  QRY_PATHS_RESTART = 1, /* begin anew in any case */
  QRY_PATHS_LAYERS = 2   /* also trace albedo, normals and depth */
};
typedef struct qry_paths_info {
  qry_stype stype;
  uint32_t reserved;
  const void* next; /* accepts qry_look_info */
  qry_camera camera;
  uint32_t width, height; /* 1..16384 each */
  uint32_t samples;       /* paths a pixel that this call adds, 1..65536 */
  uint32_t flags;         /* QRY_PATHS_... */
  uint32_t bounces;       /* how often a path may scatter, 0..256 */
  uint32_t seed;          /* of the noise; the same seed gives the same picture */
  float exposure;         /* above 0; may change between calls */
  float sun_direction[3]; /* towards the sun, any length but 0 */
  float sun_strength;     /* 0 or more */
  float sky_strength;     /* 0 or more */
  float lens_radius;      /* voxels, 0 or more: how much is blurred before and behind the focus */
  float focus;            /* voxels from the eye to the sharp plane; 0: everything is sharp */
  float firefly_limit;    /* the brightest radiance that scattered light may add; 0: no limit, and no bias */
  uint32_t reserved2;
  qry_progress_function progress; /* about four times a second; may be NULL */
  void* progress_user;
} qry_paths_info;
#define QRY_PATHS_INFO_INIT                                                                                 \
  {                                                                                                         \
    QRY_STYPE_PATHS_INFO, 0, NULL, {{0.0, 0.0, 0.0}, {0.0, 0.0, -1.0}, 45.0}, 1280, 720, 16, 0, 4, 0, 1.0f, \
        {-0.43f, 0.77f, -0.37f}, 3.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0, NULL, NULL                                \
  }

/* Adds `samples` paths a pixel to the picture and waits for them. It continues with the paths of earlier calls if
 * world, its version, and all of info but samples, exposure, tone and progress are unchanged. Otherwise, or with
 * QRY_PATHS_RESTART, it begins anew. 16 calls of one path and one call of 16 give the same picture. It shows the voxels
 * as they are now: after an edit, the next call's picture is of the new world. If it is CANCELLED, the picture that can
 * be read stays that of the call before. The paths traced until then are kept, and the next call continues with them.
 * Any other failure leaves the picture too, and the next call begins anew. world and paths must be of one context. The
 * first call makes two pipelines. If the cache on disk does not hold them, that takes a second or two on a software
 * device. Errors: INVALID_ARGUMENT (also more than 2^24 paths a pixel in all), UNKNOWN_STRUCT, DUPLICATE_STRUCT,
 * CANCELLED, UNSUPPORTED, NOT_FOUND, MISSING_FEATURE, DEVICE, OUT_OF_MEMORY. [write] for world and paths alike */
QRY_API qry_result QRY_CALL qry_world_trace_paths(qry_world* world, qry_paths* paths, const qry_paths_info* info);

typedef struct qry_paths_state {
  qry_stype stype;
  uint32_t reserved;
  void* next;
  uint64_t world_version; /* of the world that the picture shows */
  uint32_t width, height; /* of the picture; 0: no picture yet */
  uint32_t samples;       /* paths a pixel in it */
  uint32_t traced;        /* paths a pixel that the next call would continue from */
  uint32_t has_layers;    /* 1: it was traced with QRY_PATHS_LAYERS */
  uint32_t reserved2;
} qry_paths_state;
#define QRY_PATHS_STATE_INIT \
  { QRY_STYPE_PATHS_STATE, 0, NULL, 0, 0, 0, 0, 0, 0, 0 }

/* Errors: INVALID_ARGUMENT, UNKNOWN_STRUCT. [read] for paths */
QRY_API qry_result QRY_CALL qry_paths_get_state(const qry_paths* paths, qry_paths_state* state);

enum {
  QRY_LAYER_COLOR = 0,    /* RGBA8, to be shown: exposure and tone of the last call, sRGB, straight alpha */
  QRY_LAYER_RADIANCE = 1, /* 4 floats: linear colour multiplied by coverage, and coverage; before exposure and tone */
  QRY_LAYER_ALBEDO = 2,   /* 3 floats, linear; this layer and those below need QRY_PATHS_LAYERS */
  QRY_LAYER_NORMAL = 3,   /* 3 floats, in world axes, the mean over the pixel; 0 if nothing is hit */
  QRY_LAYER_DEPTH = 4     /* 1 float: voxels from the eye, the mean of all hits; infinite if nothing is hit */
};

/* Copies a layer of the picture to `out`: row 0 on top, rows row_pitch_bytes apart (0: no gaps), size_bytes at least
 * row_pitch_bytes * (height - 1) + the bytes of a row. Needs no device. Errors: INVALID_ARGUMENT (also: no picture yet,
 * or none with layers), BUFFER_TOO_SMALL. [read] for paths */
QRY_API qry_result QRY_CALL qry_paths_read(const qry_paths* paths, uint32_t layer, void* out, uint64_t size_bytes,
                                           uint64_t row_pitch_bytes);

#ifdef __cplusplus
}
#endif

#endif /* QUARRY_H */
