# SPDX-License-Identifier: Apache-2.0
# libquarry: the C interface as a shared library for other engines, its install rules and its package files. Included by
# engine/CMakeLists.txt. Everything inside is linked statically and PRIVATE, and no part of the exported targets.
set(qry_package_dir ${CMAKE_CURRENT_LIST_DIR})

# 0.x: the soname's number is the ABI version, so that two versions can be installed side by side.
file(STRINGS ${PROJECT_SOURCE_DIR}/engine/api/quarry.h qry_abi_line REGEX "^#define QRY_ABI_VERSION ")
string(REGEX MATCH "[0-9]+" qry_abi_version "${qry_abi_line}")
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${PROJECT_SOURCE_DIR}/engine/api/quarry.h qry_version_line REGEX "^#define QRY_VERSION_${part} ")
  string(REGEX MATCH "[0-9]+$" qry_version_${part} "${qry_version_line}")
endforeach()
set(qry_header_version ${qry_version_MAJOR}.${qry_version_MINOR}.${qry_version_PATCH})
if(NOT qry_header_version STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "engine/api/quarry.h says version ${qry_header_version}, CMakeLists.txt says ${PROJECT_VERSION}: make them agree")
endif()

# The version script is made from exports.txt, the list that is reviewed when the interface changes.
file(STRINGS ${qry_package_dir}/exports.txt qry_exports)
string(REPLACE ";" ";\n    " QRY_EXPORT_LINES "${qry_exports}")
set(QRY_SYMBOL_VERSION QRY_${qry_abi_version})
configure_file(${qry_package_dir}/exports.map.in ${CMAKE_CURRENT_BINARY_DIR}/exports.map @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${qry_package_dir}/exports.txt ${PROJECT_SOURCE_DIR}/engine/api/quarry.h)

add_library(qry_libquarry SHARED api/device.cpp api/requirements.cpp api/world.cpp api/attached.cpp api/snapshot.cpp api/memory.cpp api/voxels.cpp api/algebra.cpp api/cuda.cpp api/edits.cpp api/render.cpp api/record.cpp api/paths.cpp)
add_library(quarry::quarry ALIAS qry_libquarry)
set_target_properties(qry_libquarry PROPERTIES
  OUTPUT_NAME quarry EXPORT_NAME quarry VERSION ${PROJECT_VERSION} SOVERSION ${qry_abi_version}
  C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LINK_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
target_compile_definitions(qry_libquarry PRIVATE QRY_BUILDING_LIBRARY)
target_link_options(qry_libquarry PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/exports.map)
# clang leaves the sanitizers' symbols to the executable.
if(NOT (QRY_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))
  target_link_options(qry_libquarry PRIVATE -Wl,--no-undefined)
endif()
qry_room_arrows(engine/api arrows)
foreach(room ${arrows})
  qry_room_target(${room} library)
  target_link_libraries(qry_libquarry PRIVATE ${library})
endforeach()
target_link_libraries(qry_libquarry PRIVATE $<BUILD_INTERFACE:qry_build_flags>)
# The same include line, <quarry/quarry.h>, in this tree, in a tree that includes this one, and from the installed
# package.
configure_file(api/quarry.h ${PROJECT_BINARY_DIR}/include/quarry/quarry.h COPYONLY)
configure_file(api/quarry.hpp ${PROJECT_BINARY_DIR}/include/quarry/quarry.hpp COPYONLY)
target_include_directories(qry_libquarry INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)

if(QRY_INSTALL)
  install(TARGETS qry_libquarry EXPORT quarry-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES api/quarry.h api/quarry.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quarry COMPONENT development)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/plugin.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

  install(EXPORT quarry-targets NAMESPACE quarry:: DESTINATION ${qry_cmake_dir} COMPONENT development)
  configure_file(${qry_package_dir}/component.cmake ${CMAKE_CURRENT_BINARY_DIR}/quarry-component-quarry.cmake COPYONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quarry-component-quarry.cmake DESTINATION ${qry_cmake_dir} COMPONENT development)

  # Relocatable: the prefix is counted back from where the .pc file lies.
  set(qry_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH QRY_PC_PREFIX "/prefix/${qry_pc_dir}" "/prefix")
  string(REGEX REPLACE "/$" "" QRY_PC_PREFIX "${QRY_PC_PREFIX}")
  configure_file(${qry_package_dir}/quarry.pc.in ${CMAKE_CURRENT_BINARY_DIR}/quarry.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quarry.pc DESTINATION ${qry_pc_dir} COMPONENT development)
endif()
