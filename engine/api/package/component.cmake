# SPDX-License-Identifier: Apache-2.0
# The component "quarry" of the installed package.
include(${CMAKE_CURRENT_LIST_DIR}/quarry-targets.cmake)
