# SPDX-License-Identifier: Apache-2.0
# The hash grid alone as consumers use it. The test installs it to a prefix with no other part of Quarry and moves that
# elsewhere (it must be relocatable). It builds and runs a program in C++17, and one in CUDA if the build has CUDA. It
# also configures the grid alone while every package that it does not need is unreachable.
#   cmake -DBUILD_DIR= -DSOURCE_DIR= -DWORK_DIR= -DCXX_COMPILER= -DCUDA_COMPILER= -DCUDA_ARCHITECTURES= -DWITH_CUDA=
#   -DLIBDIR= -DCONFIG= -DGENERATOR= -P install_hashgrid_test.cmake
set(ENV{CCACHE_DISABLE} 1)
set(ENV{CMAKE_GENERATOR} "${GENERATOR}")  # a machine may have Ninja and no make
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output WORKING_DIRECTORY ${WORK_DIR})
  message(STATUS "${what}\n${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: failed with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("install the hash grid" ${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/first --component hashgrid)
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/moved)
set(prefix ${WORK_DIR}/moved)

file(GLOB_RECURSE files RELATIVE ${prefix} ${prefix}/*)
foreach(file ${files})
  if(NOT file MATCHES "^(include/quarry/(base|hashgrid)/|${LIBDIR}/libquarry_(base|hashgrid[a-z_]*)\\.a$|${LIBDIR}/cmake/quarry/)")
    message(FATAL_ERROR "${file} is no part of the hash grid")
  endif()
  if(file MATCHES "\\.(cmake|h|hpp|cuh)$")
    file(READ ${prefix}/${file} content)
    foreach(word "${SOURCE_DIR}" "${BUILD_DIR}" "${WORK_DIR}")
      string(FIND "${content}" "${word}" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "${file} speaks of ${word}")
      endif()
    endforeach()
  endif()
  # Only keys and values.
  if(file MATCHES "^include/quarry/hashgrid/" AND content MATCHES "[Bb]rick|[Vv]oxel|Vulkan")
    message(FATAL_ERROR "${file} speaks of ${CMAKE_MATCH_0}")
  endif()
endforeach()

set(cuda)
if(WITH_CUDA)
  set(cuda -DWITH_CUDA=ON -DCMAKE_CUDA_COMPILER=${CUDA_COMPILER} -DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES})
endif()
run("configure the consumer" ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/consumer_hashgrid -B ${WORK_DIR}/consumer -DCMAKE_PREFIX_PATH=${prefix} -DEXAMPLES=${SOURCE_DIR}/hashgrid/examples
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} ${cuda})
run("build the consumer" ${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
foreach(program count_words count_words_20)
  run("run ${program}" ${WORK_DIR}/consumer/${program})
  if(NOT output MATCHES "5000 keys came and went; refused: hash grid insert: 1 of 1 keys or values are the reserved")
    message(FATAL_ERROR "${program} did not do its work")
  endif()
endforeach()
run("run relational_join" ${WORK_DIR}/consumer/relational_join)
if(NOT output MATCHES "3000 orders and 2000 offers: [1-9][0-9]* pairs, as the loops have them")
  message(FATAL_ERROR "relational_join did not do its work")
endif()
if(WITH_CUDA)
  run("run own_kernel" ${WORK_DIR}/consumer/own_kernel)
  if(output MATCHES "no kernel was run")
    message("SKIPPED: the consumer's kernel, for want of a CUDA device")
  endif()
endif()

set(absent)
foreach(package absl assimp glm Imath meshoptimizer nlohmann_json OpenEXR PkgConfig PNG pugixml SQLite3 TBB Vulkan X11 ZLIB fmt)
  list(APPEND absent -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
run("configure the hash grid alone" ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/alone -DQRY_ONLY_HASHGRID=ON -DQRY_CUDA=off
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} ${absent})
