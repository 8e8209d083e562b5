# g++ reads once, in sim/core, what most files include, for all that is compiled with the same flags. A file still
# includes what it uses: clang reads each without.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
set(STAGECRAFT_STD_HEADERS <algorithm> <cmath> <functional> <map> <memory> <optional> <set> <span> <stdexcept> <string>
  <unordered_map> <variant> <vector>)

# The compiler needs less time for a whole build when it reads several files of a room at once: sim/report took 28 s in
# place of 42 s. After a change of one file it has more to do, so the preset for daily work does without.
option(STAGECRAFT_UNITY "Compile several files of a room at once" OFF)

# stagecraft_unity(<target> <sources>): these files of the target are compiled eight at a time. They must not use one name
# for different things in their anonymous namespaces; entries of catalogs may, so they are compiled alone.
function(stagecraft_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STAGECRAFT_UNITY} UNITY_BUILD_MODE GROUP)
  set(index 0)
  foreach(source IN LISTS ARGN)
    math(EXPR group "${index} / 8")
    math(EXPR index "${index} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

# What reads files, prints and draws, and never computes for long, is compiled with little optimization, in about half
# the time.
set(STAGECRAFT_QUICK_FLAGS $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Og>)

# stagecraft_library(<room> [QUICK] USES <rooms> LINKS <libraries>)
# One static library of the .cpp files in the current folder. A room sees only what it uses. QUICK: see above.
function(stagecraft_library room)
  cmake_parse_arguments(A "QUICK" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  add_library(stagecraft_${room} STATIC ${sources})
  add_library(stagecraft::${room} ALIAS stagecraft_${room})
  target_include_directories(stagecraft_${room} PUBLIC "${PROJECT_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_ROOMS stagecraft_${room})
  list(TRANSFORM A_USES PREPEND "stagecraft::")
  target_link_libraries(stagecraft_${room} PUBLIC ${A_USES} fmt::fmt PRIVATE ${A_LINKS} $<BUILD_INTERFACE:stagecraft_warnings>)
  stagecraft_unity(stagecraft_${room} ${sources})
  if(A_QUICK)
    target_compile_options(stagecraft_${room} PRIVATE ${STAGECRAFT_QUICK_FLAGS})
  endif()
  if(room STREQUAL "core")
    target_precompile_headers(stagecraft_core PRIVATE ${STAGECRAFT_STD_HEADERS} <fmt/format.h>)
  else()
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_core)
  endif()
endfunction()
