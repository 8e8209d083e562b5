# Finds what the project uses. Required libraries stop the configuration; optional ones answer to AUTO|ON|OFF.
find_program(CCACHE_PROGRAM ccache)
# An own choice is left alone; a bare ccache is told what precompiled headers need, and that names are relative to the
# tree, or to a build folder beside it: copies of either find what is compiled.
if(CCACHE_PROGRAM AND "${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "^([^;]*ccache)?$")
  set(base "${PROJECT_SOURCE_DIR}")
  cmake_path(IS_PREFIX base "${PROJECT_BINARY_DIR}" inside)
  if(NOT inside)
    set(base "${PROJECT_BINARY_DIR}")
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${base} "${CCACHE_PROGRAM}")
  if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(PkgConfig REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
add_library(protozero INTERFACE IMPORTED)
target_include_directories(protozero SYSTEM INTERFACE "${PROTOZERO_INCLUDE_DIR}")
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(tomlplusplus INTERFACE IMPORTED)
target_include_directories(tomlplusplus SYSTEM INTERFACE "${TOMLPLUSPLUS_INCLUDE_DIR}")

# stagecraft_optional(<name> <found> <what is lost without it> [<what was found>])
# Turns AUTO|ON|OFF and the search's answer into STAGECRAFT_WITH_<name>, and remembers a line for the summary.
function(stagecraft_optional name found lost)
  set(wish "${ENABLE_${name}}")
  if(wish STREQUAL "OFF")
    set(with OFF)
    set(note "off, as asked: ${lost}")
  elseif(found)
    set(with ON)
    string(JOIN ", " note "yes" ${ARGN})
  elseif(wish STREQUAL "ON")
    message(FATAL_ERROR "ENABLE_${name}=ON, but it was not found.")
  else()
    set(with OFF)
    set(note "not found: ${lost}")
  endif()
  set(STAGECRAFT_WITH_${name} ${with} PARENT_SCOPE)
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_SUMMARY "  ${name}: ${note}")
endfunction()

if(NOT ENABLE_SIMGRID STREQUAL "OFF")
  pkg_check_modules(SIMGRID IMPORTED_TARGET simgrid>=3.32)
endif()
stagecraft_optional(SIMGRID "${SIMGRID_FOUND}" "contention is simulated by fluid alone")
if(STAGECRAFT_WITH_SIMGRID)
  # Where programs find the module that uses SimGrid, in the build folder and installed.
  set(STAGECRAFT_MODULES "${PROJECT_BINARY_DIR}/lib/stagecraft")
  set(CMAKE_BUILD_RPATH "${STAGECRAFT_MODULES}")
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/stagecraft")
endif()

if(NOT ENABLE_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
stagecraft_optional(MPI "${MPI_CXX_FOUND}" "real execution in several processes over TCP only")
if(STAGECRAFT_WITH_MPI AND STAGECRAFT_WITH_SIMGRID)
  # libsimgrid contains another MPI, for simulated programs, and the loader takes the first. Options stand before all
  # libraries, whose order is CMake's; old C++ bindings are not used.
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "cxx[^/]*$")
  list(JOIN MPI_CXX_LIBRARIES "," libraries)
  target_link_options(MPI::MPI_CXX INTERFACE "LINKER:--push-state,--no-as-needed,${libraries},--pop-state")
endif()

# The toolkit is enough to build it; cuBLASLt, NCCL and the driver are looked for when it runs.
if(NOT ENABLE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  find_package(CUDAToolkit 12.4 QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(NCCL_INCLUDE_DIR)
      set(cuda_found ON)
    endif()
  endif()
  if(CUDAToolkit_VERSION AND CUDAToolkit_VERSION VERSION_LESS 12.4)
    set(too_old " (toolkit ${CUDAToolkit_VERSION} is older than 12.4)")
  endif()
endif()
stagecraft_optional(CUDA "${cuda_found}" "nothing that runs on GPUs${too_old}" "toolkit ${CUDAToolkit_VERSION}")
if(STAGECRAFT_WITH_CUDA)
  enable_language(CUDA)
endif()

add_library(stagecraft_warnings INTERFACE)
target_compile_options(stagecraft_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<BOOL:${STAGECRAFT_WERROR}>:-Werror>
  # GCC also warns about members that designated initializers leave to their defaults.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  # GCC 12 warns about its own std::string (GCC bug 105329, 105562).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>)
if(STAGECRAFT_SANITIZE)
  set(checks -fsanitize=${STAGECRAFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(STAGECRAFT_SANITIZE MATCHES "address,undefined")
    # The address sanitizer itself stops at null pointers and objects that are not there. A check of each pointer took a
    # quarter of the time that compiling takes.
    list(APPEND checks -fno-sanitize=null,object-size,vptr,nonnull-attribute,returns-nonnull-attribute,pointer-overflow)
  endif()
  # Not kernels, whose compiler knows no such checks.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${checks}>")
  add_link_options(-fsanitize=${STAGECRAFT_SANITIZE})
  add_compile_definitions(STAGECRAFT_SANITIZED)
endif()

function(stagecraft_summary)
  get_property(lines GLOBAL PROPERTY STAGECRAFT_SUMMARY)
  list(JOIN lines "\n" text)
  message(STATUS "Stagecraft ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n${text}")
endfunction()
