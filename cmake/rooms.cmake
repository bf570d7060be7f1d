# SPDX-License-Identifier: Apache-2.0
# Rooms: each is one folder and one CMake target, with a list of rooms that it may include and link (rooms.txt). An
# arrow missing from the list does not link, and lint_test reads the same list for the includes.

set(QRY_ROOMS_FILE ${CMAKE_CURRENT_LIST_DIR}/rooms.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${QRY_ROOMS_FILE})

# The target of a room: voxel/io/vox -> qry_voxel_io_vox.
function(qry_room_target room result)
  string(REPLACE "/" "_" name ${room})
  set(${result} qry_${name} PARENT_SCOPE)
endfunction()

# The rooms that rooms.txt lists for `room`.
function(qry_room_arrows room result)
  file(STRINGS ${QRY_ROOMS_FILE} lines REGEX "^${room}:")
  list(LENGTH lines count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${QRY_ROOMS_FILE}: expected one line for the room ${room}, found ${count}")
  endif()
  string(REGEX REPLACE "^[^:]*:" "" arrows "${lines}")
  string(REGEX MATCHALL "[^ ]+" arrows "${arrows}")
  set(${result} ${arrows} PARENT_SCOPE)
endfunction()

# qry_room(<room> [SOURCES a.cpp ...] [CUDA a.cu ...] [WITHOUT_CUDA a.cpp ...] [LIBS ...]): a static library of the
# room's sources, given relative to its folder. CUDA and WITHOUT_CUDA are sources for builds with and without CUDA. LIBS
# are external libraries, for this room alone. A room of headers or shaders has no sources.
function(qry_room room)
  cmake_parse_arguments(arg "" "" "SOURCES;CUDA;WITHOUT_CUDA;LIBS" ${ARGN})
  qry_room_target(${room} target)
  if(QRY_HAVE_CUDA)
    list(APPEND arg_SOURCES ${arg_CUDA})
  else()
    list(APPEND arg_SOURCES ${arg_WITHOUT_CUDA})
  endif()
  set(public INTERFACE)
  if(arg_SOURCES)
    set(public PUBLIC)
    list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/${room}/)
    add_library(${target} STATIC ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:qry_build_flags> ${arg_LIBS})
    if(QRY_SANITIZE AND NOT QRY_BUILD_FUZZERS AND room MATCHES "^voxel/(io|foreign)(/|$)")
      # Readers and writers take longer to compile than to run, as all above this floor: -Og halves it. xxhash's forced
      # inlining fails with it.
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
      target_compile_definitions(${target} PRIVATE XXH_NO_INLINE_HINTS=1)
    endif()
    if(QRY_HAVE_CUDA AND arg_CUDA)
      target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    endif()
  else()
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${public} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  qry_room_arrows(${room} arrows)
  foreach(below ${arrows})
    qry_room_target(${below} library)
    target_link_libraries(${target} ${public} ${library})
  endforeach()
endfunction()
