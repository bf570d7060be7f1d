// SPDX-License-Identifier: Apache-2.0
// driver_leaks.cpp - suppresses leaks of Vulkan drivers and layers under AddressSanitizer, because they are not ours.
// Libraries that are opened stay so to the end: a leak in an unloaded library has no name to suppress it by. Opening
// the drivers ahead would do as well, but takes half of the time of a program that needs none.
#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>

extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\nleak:libLLVM\nleak:libVkLayer_khronos_validation.so\nleak:libvulkan.so\n"
         "leak:libnvidia\nleak:libGLX_nvidia\nleak:libVkLayer_MESA_device_select.so\n";
}
// Tests of the program's output must not find a list of suppressed leaks in it.
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }

// Whoever opens a library, the loader of Vulkan too, comes by here, because symbols of the program come first.
extern "C" __attribute__((visibility("default"))) void* dlopen(const char* file, int mode) noexcept {
  using Open = void* (*)(const char*, int);
  static const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  return next(file, mode | RTLD_NODELETE);
}
#endif
