# SPDX-License-Identifier: Apache-2.0
# The installed package, one for all components. Each component's folder installs its own targets and a file that loads
# them, quarry-component-<name>.cmake. This file has what every prefix needs, whichever components it has.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(qry_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quarry)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/config.cmake.in ${PROJECT_BINARY_DIR}/quarry-config.cmake
  INSTALL_DESTINATION ${qry_cmake_dir} NO_SET_AND_CHECK_MACRO)
# While the major version is 0, a minor version may break promises of the one before.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quarry-config-version.cmake COMPATIBILITY SameMinorVersion)
foreach(component development hashgrid)
  install(FILES ${PROJECT_BINARY_DIR}/quarry-config.cmake ${PROJECT_BINARY_DIR}/quarry-config-version.cmake
    DESTINATION ${qry_cmake_dir} COMPONENT ${component})
endforeach()
