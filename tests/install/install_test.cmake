# SPDX-License-Identifier: Apache-2.0
# The installed package as consumers use it. The test installs to a temporary folder and moves it elsewhere (it must be
# relocatable). It builds and runs the programs of docs/plugin.md against it, through find_package in C and in C++ and
# through pkg-config.
#   cmake -DBUILD_DIR= -DSOURCE_DIR= -DWORK_DIR= -DC_COMPILER= -DCXX_COMPILER= -DLIBDIR= -DCONFIG= -DGENERATOR= -P
#   install_test.cmake
set(ENV{CCACHE_DISABLE} 1)
set(ENV{CMAKE_GENERATOR} "${GENERATOR}")  # a machine may have Ninja and no make
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR}/programs)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output WORKING_DIRECTORY ${WORK_DIR})
  message(STATUS "${what}\n${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: failed with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The program in docs/plugin.md whose first line begins with `opening`.
file(READ ${SOURCE_DIR}/docs/plugin.md guide)
function(extract opening name)
  string(FIND "${guide}" "\n${opening}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "docs/plugin.md has no program that begins with '${opening}'")
  endif()
  string(SUBSTRING "${guide}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} program)
  file(WRITE ${WORK_DIR}/programs/${name} "${program}\n")
endfunction()
extract("/* hello_quarry.c " hello_quarry.c)
extract("/* adopt_device.c " adopt_device.c)
extract("/* record_frame.c " record_frame.c)
extract("// hello_quarry.cpp " hello_quarry.cpp)
extract("// traced_quarry.cpp " traced_quarry.cpp)

foreach(component runtime development)
  run("install ${component}" ${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/first --component ${component})
endforeach()
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/moved)
set(prefix ${WORK_DIR}/moved)

# No file of the package may name the tree it was built in, or private parts of the library.
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h ${prefix}/*.hpp)
list(LENGTH texts text_count)
if(text_count LESS 6)
  message(FATAL_ERROR "only ${text_count} text files were installed: ${texts}")
endif()
foreach(text ${texts})
  file(READ ${text} content)
  foreach(word "${SOURCE_DIR}" "${BUILD_DIR}" "${WORK_DIR}" qry_engine qry_voxel qry_hashgrid)
    string(FIND "${content}" "${word}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${text} speaks of ${word}")
    endif()
  endforeach()
endforeach()

set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH}")
run("configure the C consumer" ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/consumer_c -B ${WORK_DIR}/c -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_C_COMPILER=${C_COMPILER} -DSOURCES=${WORK_DIR}/programs)
run("build the C consumer" ${CMAKE_COMMAND} --build ${WORK_DIR}/c)
run("run the C consumer" ${WORK_DIR}/c/hello_quarry)
if(NOT output MATCHES "the sphere set [0-9]+ voxels" OR NOT EXISTS ${WORK_DIR}/hello.quarry)
  message(FATAL_ERROR "the C consumer did not do its work")
endif()
if(output MATCHES "no picture: ")
  message("SKIPPED: the C consumer's picture, for want of a Vulkan device")
elseif(NOT EXISTS ${WORK_DIR}/hello.ppm)
  message(FATAL_ERROR "the C consumer wrote no picture")
endif()
run("run the C consumer on its own file" ${WORK_DIR}/c/hello_quarry ${WORK_DIR}/hello.quarry)
# A mesh needs the second program of the package, found next to the moved library.
unset(ENV{QUARRY_MESH_READER})
file(WRITE ${WORK_DIR}/pyramid.obj "v 0 0 0\nv 4 0 0\nv 4 0 4\nv 0 0 4\nv 2 3 2\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\nf 1 2 3 4\n")
run("run the C consumer on a mesh" ${WORK_DIR}/c/hello_quarry ${WORK_DIR}/pyramid.obj)
if(NOT output MATCHES "[0-9][0-9][0-9]+ voxels in")
  message(FATAL_ERROR "the mesh did not become a world")
endif()

run("configure the C++ consumer" ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/consumer_cpp -B ${WORK_DIR}/cpp -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DSOURCES=${WORK_DIR}/programs)
run("build the C++ consumer" ${CMAKE_COMMAND} --build ${WORK_DIR}/cpp)
run("run the C++ consumer" ${WORK_DIR}/cpp/hello_quarry_cpp)
run("run the C++ consumer that traces paths" ${WORK_DIR}/cpp/traced_quarry)

find_program(pkg_config pkg-config REQUIRED)
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run("ask pkg-config" ${pkg_config} --cflags --libs quarry)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run("build the pkg-config consumer" ${C_COMPILER} -std=c99 -pedantic -Wall -Wextra -Werror ${WORK_DIR}/programs/hello_quarry.c ${flags} -o ${WORK_DIR}/by_pkg_config)
run("run the pkg-config consumer" ${WORK_DIR}/by_pkg_config)
