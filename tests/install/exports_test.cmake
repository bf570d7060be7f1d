# SPDX-License-Identifier: Apache-2.0
# The shared library exports exactly the names that engine/api/package/exports.txt lists and quarry.h declares, under
# the ABI's symbol version, with the right soname and without needing a Vulkan loader.
#   cmake -DLIBRARY= -DSOURCE_DIR= -DNM= -DREADELF= -P exports_test.cmake
file(STRINGS ${SOURCE_DIR}/engine/api/package/exports.txt listed)
list(SORT listed COMPARE STRING)

file(STRINGS ${SOURCE_DIR}/engine/api/quarry.h lines REGEX "QRY_API .*QRY_CALL qry_")
set(declared "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".*QRY_CALL (qry_[a-z_0-9]+)\\(.*" "\\1" name "${line}")
  list(APPEND declared ${name})
endforeach()
list(SORT declared COMPARE STRING)
if(NOT declared STREQUAL listed)
  message(FATAL_ERROR "quarry.h declares\n  ${declared}\nexports.txt lists\n  ${listed}")
endif()

file(STRINGS ${SOURCE_DIR}/engine/api/quarry.h abi_line REGEX "^#define QRY_ABI_VERSION ")
string(REGEX MATCH "[0-9]+" abi "${abi_line}")
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" rows "${table}")
set(shown "")
foreach(row IN LISTS rows)
  if(row MATCHES " A QRY_${abi}$")  # the version itself
    continue()
  endif()
  if(NOT row MATCHES " T (qry_[a-z_0-9]+)@@QRY_${abi}$")
    message(FATAL_ERROR "the library shows what it should not, or under the wrong version: ${row}")
  endif()
  list(APPEND shown ${CMAKE_MATCH_1})
endforeach()
list(SORT shown COMPARE STRING)
if(NOT shown STREQUAL listed)
  message(FATAL_ERROR "the library shows\n  ${shown}\nexports.txt lists\n  ${listed}")
endif()

execute_process(COMMAND ${READELF} -d ${LIBRARY} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "SONAME[^\n]*\\[libquarry\\.so\\.${abi}\\]")
  message(FATAL_ERROR "wrong soname:\n${dynamic}")
endif()
if(dynamic MATCHES "NEEDED[^\n]*(libvulkan|libcuda|libassimp|libglfw)")
  message(FATAL_ERROR "the library needs at load time what it must do without:\n${dynamic}")
endif()
