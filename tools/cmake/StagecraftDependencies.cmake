# Finds what the project uses. Required libraries stop the configuration; optional ones answer to AUTO|ON|OFF.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}" CACHE STRING "Compiler cache" FORCE)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(PkgConfig REQUIRED)

# stagecraft_optional(<name> <found> <what is lost without it>)
# Turns AUTO|ON|OFF and the search's answer into STAGECRAFT_WITH_<name>, and remembers a line for the summary.
function(stagecraft_optional name found lost)
  set(wish "${ENABLE_${name}}")
  if(wish STREQUAL "OFF")
    set(with OFF)
    set(note "off, as asked: ${lost}")
  elseif(found)
    set(with ON)
    set(note "yes")
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

if(NOT ENABLE_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
stagecraft_optional(MPI "${MPI_CXX_FOUND}" "real execution within one process only")
if(STAGECRAFT_WITH_MPI AND STAGECRAFT_WITH_SIMGRID)
  # libsimgrid has an MPI of its own, for simulated programs, and the loader takes the first. Options stand before all
  # libraries, whose order is CMake's; old C++ bindings are not used.
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "cxx[^/]*$")
  list(JOIN MPI_CXX_LIBRARIES "," libraries)
  target_link_options(MPI::MPI_CXX INTERFACE "LINKER:--push-state,--no-as-needed,${libraries},--pop-state")
endif()

# Real execution on GPUs is not written yet: AUTO and OFF say so, ON fails.
if(ENABLE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "ENABLE_CUDA=ON, but the CUDA backend is not part of this version.")
endif()
set_property(GLOBAL APPEND PROPERTY STAGECRAFT_SUMMARY "  CUDA: the backend is not part of this version")

add_library(stagecraft_warnings INTERFACE)
target_compile_options(stagecraft_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${STAGECRAFT_WERROR}>:-Werror>
  # GCC 12 warns about its own std::string (GCC bug 105329, 105562).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>)
if(STAGECRAFT_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

function(stagecraft_summary)
  get_property(lines GLOBAL PROPERTY STAGECRAFT_SUMMARY)
  list(JOIN lines "\n" text)
  message(STATUS "Stagecraft ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n${text}")
endfunction()
