// SPDX-License-Identifier: Apache-2.0
// driver_leaks.cpp - suppresses leaks of Vulkan drivers and layers under AddressSanitizer, because they are not ours.
// Their libraries are kept open to the end: a leak in an unloaded library has no name to suppress it by.
#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>

#include <initializer_list>

extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\nleak:libLLVM\nleak:libVkLayer_khronos_validation.so\nleak:libvulkan.so\n"
         "leak:libnvidia\nleak:libGLX_nvidia\nleak:libVkLayer_MESA_device_select.so\n";
}
// Tests of the program's output must not find a list of suppressed leaks in it.
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }

namespace {
const bool held = [] {
  for (const char* library : {"libvulkan.so.1", "libvulkan_lvp.so", "libVkLayer_khronos_validation.so",
                              "libVkLayer_MESA_device_select.so", "libGLX_nvidia.so.0"})
    (void)dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return true;
}();
}  // namespace
#endif
