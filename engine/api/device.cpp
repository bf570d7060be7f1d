// SPDX-License-Identifier: Apache-2.0
// device.cpp - the C interface's versions, results, error message and chains, and the context with its device.
// The other files are api/requirements.cpp (what a host's device needs), api/world.cpp, api/memory.cpp, api/voxels.cpp,
// api/render.cpp, api/record.cpp, api/paths.cpp.
#include "engine/api/handles.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace quarry::c_api {
namespace {

// The only state outside handles. It is a fixed array, so that reporting "out of memory" needs no memory and a thread's
// end has nothing to free.
constexpr size_t kMessageBytes = 1024;
thread_local char t_message[kMessageBytes];

// Cuts off a broken UTF-8 sequence at the end. It would make the whole message unprintable for strict readers.
void trim_to_utf8(char* text, size_t length) {
  size_t start = length;
  while (start > 0 && (static_cast<unsigned char>(text[start - 1]) & 0xC0) == 0x80) --start;
  if (start == 0) return;
  const auto lead = static_cast<unsigned char>(text[start - 1]);
  const size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length - (start - 1) < wanted) text[start - 1] = 0;
}

}  // namespace

qry_result refuse(qry_result code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(t_message, kMessageBytes, format, arguments);
  va_end(arguments);
  if (length >= int(kMessageBytes)) trim_to_utf8(t_message, kMessageBytes - 1);
  return code;
}

qry_result refuse(const Error& error) noexcept { return refuse(result_of(error.code), "%s", error.message.c_str()); }

qry_result result_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::bad_usage: return QRY_ERROR_INVALID_ARGUMENT;
    case ErrorCode::not_found: return QRY_ERROR_NOT_FOUND;
    case ErrorCode::malformed_input: return QRY_ERROR_MALFORMED_INPUT;
    case ErrorCode::out_of_bounds: return QRY_ERROR_OUT_OF_BOUNDS;
    case ErrorCode::full: return QRY_ERROR_FULL;
    case ErrorCode::out_of_memory: return QRY_ERROR_OUT_OF_MEMORY;
    case ErrorCode::unsupported: return QRY_ERROR_UNSUPPORTED;
    case ErrorCode::io: return QRY_ERROR_IO;
    case ErrorCode::device: return QRY_ERROR_DEVICE;
    case ErrorCode::device_lost: return QRY_ERROR_DEVICE_LOST;
    case ErrorCode::cancelled: return QRY_ERROR_CANCELLED;
    case ErrorCode::conflict: return QRY_ERROR_CONFLICT;
  }
  return QRY_ERROR_INTERNAL;
}

const char* stype_name(qry_stype stype) noexcept {
  switch (stype) {
    case QRY_STYPE_CONTEXT_INFO: return "QRY_STYPE_CONTEXT_INFO";
    case QRY_STYPE_VULKAN_DEVICE_INFO: return "QRY_STYPE_VULKAN_DEVICE_INFO";
    case QRY_STYPE_DEVICE_STATE: return "QRY_STYPE_DEVICE_STATE";
    case QRY_STYPE_WORLD_INFO: return "QRY_STYPE_WORLD_INFO";
    case QRY_STYPE_OPEN_INFO: return "QRY_STYPE_OPEN_INFO";
    case QRY_STYPE_SAVE_INFO: return "QRY_STYPE_SAVE_INFO";
    case QRY_STYPE_EDIT: return "QRY_STYPE_EDIT";
    case QRY_STYPE_WORLD_STATE: return "QRY_STYPE_WORLD_STATE";
    case QRY_STYPE_GRID_STATS: return "QRY_STYPE_GRID_STATS";
    case QRY_STYPE_RENDER_INFO: return "QRY_STYPE_RENDER_INFO";
    case QRY_STYPE_MEMORY_STATE: return "QRY_STYPE_MEMORY_STATE";
    case QRY_STYPE_MEMORY_BRICKS: return "QRY_STYPE_MEMORY_BRICKS";
    case QRY_STYPE_MEMORY_HISTORY: return "QRY_STYPE_MEMORY_HISTORY";
    case QRY_STYPE_PROGRESS_INFO: return "QRY_STYPE_PROGRESS_INFO";
    case QRY_STYPE_DEVICE_BUDGET_INFO: return "QRY_STYPE_DEVICE_BUDGET_INFO";
    case QRY_STYPE_PAGING_STATE: return "QRY_STYPE_PAGING_STATE";
    case QRY_STYPE_STREAM_INFO: return "QRY_STYPE_STREAM_INFO";
    case QRY_STYPE_STREAM_STATE: return "QRY_STYPE_STREAM_STATE";
    case QRY_STYPE_HOST_BUDGET_INFO: return "QRY_STYPE_HOST_BUDGET_INFO";
    case QRY_STYPE_PAGE_CACHE_STATE: return "QRY_STYPE_PAGE_CACHE_STATE";
    case QRY_STYPE_WORLD_HOME_INFO: return "QRY_STYPE_WORLD_HOME_INFO";
    case QRY_STYPE_HOME_STATE: return "QRY_STYPE_HOME_STATE";
    case QRY_STYPE_LOOK_INFO: return "QRY_STYPE_LOOK_INFO";
    case QRY_STYPE_OUTLINE_INFO: return "QRY_STYPE_OUTLINE_INFO";
    case QRY_STYPE_PUBLISHED: return "QRY_STYPE_PUBLISHED";
    case QRY_STYPE_RECORDER_INFO: return "QRY_STYPE_RECORDER_INFO";
    case QRY_STYPE_RECORD_INFO: return "QRY_STYPE_RECORD_INFO";
    case QRY_STYPE_EMULATION_INFO: return "QRY_STYPE_EMULATION_INFO";
    case QRY_STYPE_FLATTEN_STATE: return "QRY_STYPE_FLATTEN_STATE";
    case QRY_STYPE_WORLD_SUMS: return "QRY_STYPE_WORLD_SUMS";
    case QRY_STYPE_COMPARISON: return "QRY_STYPE_COMPARISON";
    case QRY_STYPE_HAND_OVER_STATE: return "QRY_STYPE_HAND_OVER_STATE";
    case QRY_STYPE_PATHS_INFO: return "QRY_STYPE_PATHS_INFO";
    case QRY_STYPE_PATHS_STATE: return "QRY_STYPE_PATHS_STATE";
    default: return "unknown";
  }
}

qry_result read_chain(const char* function, const void* next, std::initializer_list<Accepted> accepted) noexcept {
  // A circular chain ends too: its second round meets a structure that was found already.
  while (next) {
    const auto* link = static_cast<const qry_chain*>(next);
    const auto match =
        std::find_if(accepted.begin(), accepted.end(), [&](const Accepted& a) { return a.stype == link->stype; });
    if (match == accepted.end())
      return refuse(QRY_ERROR_UNKNOWN_STRUCT, "%s: does not accept a structure with stype %u (%s) in this chain",
                    function, link->stype, stype_name(link->stype));
    if (*match->found)
      return refuse(QRY_ERROR_DUPLICATE_STRUCT, "%s: %s is twice in one chain", function, stype_name(link->stype));
    if (link->reserved != 0)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: %s: reserved must be 0", function, stype_name(link->stype));
    *match->found = next;
    next = link->next;
  }
  return QRY_OK;
}

ProgressCall::ProgressCall(qry_progress_function function, void* user) {
  progress_.cancel = &cancel_;
  if (!function) return;
  progress_.report = [this, function, user](std::string_view stage, double fraction) {
    if (function(user, std::string(stage).c_str(), fraction) != 0) cancel_.store(true, std::memory_order_relaxed);
  };
}

namespace {

qry_result create_device(ContextState& context) {
  engine::DeviceOptions options;
  options.prefer = context.prefer_device;
  options.validation = context.validation;
  if (context.log) options.log = [&context](int severity, const char* message) { context.say(severity, message); };
  auto device = engine::Device::create(options);
  if (!device) {
    if (device.error().code != ErrorCode::unsupported) return refuse(device.error());
    // `unsupported` may also mean a missing layer on a machine with a usable device.
    const auto devices = engine::list_devices();
    const bool one_would_do =
        devices && std::any_of(devices->begin(), devices->end(), [](const auto& d) { return d.missing.empty(); });
    return refuse(one_would_do ? QRY_ERROR_UNSUPPORTED : QRY_ERROR_MISSING_FEATURE, "%s",
                  device.error().message.c_str());
  }
  context.device = std::move(*device);
  return QRY_OK;
}

qry_result adopt_device(ContextState& context, const qry_vulkan_device_info& given) {
  const char* const function = "qry_context_create";
  const struct {
    bool there;
    const char* name;
  } needed[] = {{given.get_instance_proc_addr != nullptr, "get_instance_proc_addr"},
                {given.instance != nullptr, "instance"},
                {given.physical_device != nullptr, "physical_device"},
                {given.device != nullptr, "device"},
                {given.queue != nullptr, "queue"},
                {given.enabled_features != nullptr, "enabled_features"}};
  for (const auto& member : needed)
    if (!member.there)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_vulkan_device_info.%s is NULL", function, member.name);
  if (given.enabled_extension_count && !given.enabled_extensions)
    return refuse(QRY_ERROR_INVALID_ARGUMENT,
                  "%s: qry_vulkan_device_info.enabled_extensions is NULL, but its count is %u", function,
                  given.enabled_extension_count);
  if (!given.lock_queue != !given.unlock_queue)
    return refuse(QRY_ERROR_INVALID_ARGUMENT,
                  "%s: qry_vulkan_device_info needs both lock_queue and unlock_queue, or neither", function);

  engine::AdoptedDevice adopted;
  adopted.get_instance_proc_addr = given.get_instance_proc_addr;
  adopted.instance = given.instance;
  adopted.physical_device = given.physical_device;
  adopted.device = given.device;
  adopted.queue = given.queue;
  adopted.queue_family = given.queue_family;
  for (uint32_t i = 0; i < given.enabled_extension_count; ++i) {
    if (!given.enabled_extensions[i])
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: qry_vulkan_device_info.enabled_extensions[%u] is NULL", function,
                    i);
    adopted.enabled_extensions.emplace_back(given.enabled_extensions[i]);
  }
  adopted.enabled_features = given.enabled_features;
  if (given.lock_queue) {
    adopted.lock_queue = [call = given.lock_queue, user = given.queue_user] { call(user); };
    adopted.unlock_queue = [call = given.unlock_queue, user = given.queue_user] { call(user); };
  }
  auto device = engine::Device::adopt(adopted);
  if (!device)
    return device.error().code == ErrorCode::unsupported
               ? refuse(QRY_ERROR_MISSING_FEATURE, "%s", device.error().message.c_str())
               : refuse(device.error());
  context.device = std::move(*device);
  context.adopted = true;
  return QRY_OK;
}

void copy_text(char (&to)[256], const std::string& from) { std::snprintf(to, sizeof to, "%s", from.c_str()); }

}  // namespace

qry_result need_device(ContextState& context, const char* function) {
  if (context.device) return QRY_OK;
  if (context.device_when == QRY_DEVICE_NEVER)
    return refuse(QRY_ERROR_UNSUPPORTED, "%s: this context was made with QRY_DEVICE_NEVER, and a device is needed",
                  function);
  return create_device(context);
}

}  // namespace quarry::c_api

using namespace quarry;
using namespace quarry::c_api;

uint32_t qry_version(void) {
  return uint32_t(QRY_VERSION_MAJOR) << 22 | uint32_t(QRY_VERSION_MINOR) << 12 | uint32_t(QRY_VERSION_PATCH);
}

uint32_t qry_abi_version(void) { return QRY_ABI_VERSION; }

const char* qry_last_error(void) { return t_message; }

const char* qry_result_name(qry_result result) {
  switch (result) {
    case QRY_OK: return "QRY_OK";
    case QRY_INCOMPLETE: return "QRY_INCOMPLETE";
    case QRY_NOTHING_TO_DO: return "QRY_NOTHING_TO_DO";
    case QRY_ERROR_INVALID_ARGUMENT: return "QRY_ERROR_INVALID_ARGUMENT";
    case QRY_ERROR_ABI_MISMATCH: return "QRY_ERROR_ABI_MISMATCH";
    case QRY_ERROR_UNKNOWN_STRUCT: return "QRY_ERROR_UNKNOWN_STRUCT";
    case QRY_ERROR_DUPLICATE_STRUCT: return "QRY_ERROR_DUPLICATE_STRUCT";
    case QRY_ERROR_NOT_FOUND: return "QRY_ERROR_NOT_FOUND";
    case QRY_ERROR_MALFORMED_INPUT: return "QRY_ERROR_MALFORMED_INPUT";
    case QRY_ERROR_OUT_OF_BOUNDS: return "QRY_ERROR_OUT_OF_BOUNDS";
    case QRY_ERROR_FULL: return "QRY_ERROR_FULL";
    case QRY_ERROR_OUT_OF_MEMORY: return "QRY_ERROR_OUT_OF_MEMORY";
    case QRY_ERROR_UNSUPPORTED: return "QRY_ERROR_UNSUPPORTED";
    case QRY_ERROR_IO: return "QRY_ERROR_IO";
    case QRY_ERROR_DEVICE: return "QRY_ERROR_DEVICE";
    case QRY_ERROR_CANCELLED: return "QRY_ERROR_CANCELLED";
    case QRY_ERROR_CONFLICT: return "QRY_ERROR_CONFLICT";
    case QRY_ERROR_BUFFER_TOO_SMALL: return "QRY_ERROR_BUFFER_TOO_SMALL";
    case QRY_ERROR_MISSING_FEATURE: return "QRY_ERROR_MISSING_FEATURE";
    case QRY_ERROR_INTERNAL: return "QRY_ERROR_INTERNAL";
    case QRY_ERROR_DEVICE_LOST: return "QRY_ERROR_DEVICE_LOST";
    default: return "QRY_UNKNOWN_RESULT";
  }
}

qry_result qry_context_create(uint32_t abi_version, const qry_context_info* info, qry_context** out) {
  const char* const function = "qry_context_create";
  return guarded(function, [&]() -> qry_result {
    if (!out) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: out is NULL", function);
    *out = nullptr;
    if (abi_version != QRY_ABI_VERSION)
      return refuse(QRY_ERROR_ABI_MISMATCH,
                    "%s: the program was compiled for ABI version %u, this library (%d.%d.%d) has ABI version %u: "
                    "recompile the program "
                    "with this library's quarry.h, or install the library it was compiled for",
                    function, abi_version, QRY_VERSION_MAJOR, QRY_VERSION_MINOR, QRY_VERSION_PATCH, QRY_ABI_VERSION);
    const qry_context_info defaults = QRY_CONTEXT_INFO_INIT;
    if (!info) info = &defaults;
    const void* adopted = nullptr;
    QRY_PASS_REFUSAL(
        check_struct(function, "info", info, QRY_STYPE_CONTEXT_INFO, {{QRY_STYPE_VULKAN_DEVICE_INFO, &adopted}}));
    if (info->device > QRY_DEVICE_NEVER)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->device is %u, expected a QRY_DEVICE_ number", function,
                    info->device);
    if (info->sharing > QRY_SHARING_STAGED)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->sharing is %u, expected a QRY_SHARING_ number", function,
                    info->sharing);
    if (info->validation > 1)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: info->validation is %u, expected 0 or 1", function,
                    info->validation);
    if (adopted && (info->device != QRY_DEVICE_LAZY || info->prefer_device || info->validation))
      return refuse(QRY_ERROR_INVALID_ARGUMENT,
                    "%s: device, prefer_device and validation are about a device of our own; leave them as "
                    "QRY_CONTEXT_INFO_INIT sets them "
                    "beside qry_vulkan_device_info",
                    function);

    auto context = std::make_unique<qry_context>();
    context->state = std::make_shared<ContextState>();
    ContextState& state = *context->state;
    state.log = info->log;
    state.log_user = info->log_user;
    state.device_when = info->device;
    state.validation = info->validation != 0;
    if (info->prefer_device) state.prefer_device = info->prefer_device;
    state.sharing = engine::SharingMode(info->sharing);
    state.threads = info->threads;
    if (adopted) {
      QRY_PASS_REFUSAL(adopt_device(state, *static_cast<const qry_vulkan_device_info*>(adopted)));
    } else if (info->device == QRY_DEVICE_NOW) {
      QRY_PASS_REFUSAL(create_device(state));
    }
    if (state.device) {  // an impossible sharing mode is reported now, not at the first world
      if (auto choice = engine::choose_sharing(*state.device, state.sharing); !choice) return refuse(choice.error());
    }
    *out = context.release();
    return QRY_OK;
  });
}

void qry_context_destroy(qry_context** context) {
  if (!context) return;
  delete *context;
  *context = nullptr;
}

qry_result qry_context_get_device(qry_context* context, qry_device_state* state) {
  const char* const function = "qry_context_get_device";
  return guarded(function, [&]() -> qry_result {
    if (!context) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: context is NULL", function);
    QRY_PASS_REFUSAL(check_struct(function, "state", state, QRY_STYPE_DEVICE_STATE));
    ContextState& shared = *context->state;
    const std::lock_guard lock(shared.mutex);
    QRY_PASS_REFUSAL(need_device(shared, function));
    const auto choice = engine::choose_sharing(*shared.device, shared.sharing);
    if (!choice) return refuse(choice.error());
    const engine::DeviceInfo& info = shared.device->info();
    copy_text(state->name, info.name);
    copy_text(state->driver, info.driver);
    copy_text(state->sharing_reason, choice->reason);
    std::memcpy(state->uuid, info.uuid.data(), sizeof state->uuid);
    state->api_version = info.api_version;
    state->cuda_device = shared.device->cuda_device();
    state->sharing = uint32_t(choice->mode);
    state->adopted = shared.adopted ? 1 : 0;
    state->device_memory_bytes = info.device_memory_bytes;
    return QRY_OK;
  });
}
