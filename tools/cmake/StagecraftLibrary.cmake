# g++ reads once, in sim/core, what most files include, for all that is compiled with the same flags. A file still
# includes what it uses: clang reads each without.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
set(STAGECRAFT_STD_HEADERS <algorithm> <cmath> <functional> <map> <memory> <optional> <set> <span> <stdexcept> <string>
  <unordered_map> <variant> <vector>)

# stagecraft_library(<room> USES <rooms> LINKS <libraries>)
# One static library of the .cpp files in the current folder. A room sees only what it uses.
function(stagecraft_library room)
  cmake_parse_arguments(A "" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  add_library(stagecraft_${room} STATIC ${sources})
  add_library(stagecraft::${room} ALIAS stagecraft_${room})
  target_include_directories(stagecraft_${room} PUBLIC "${PROJECT_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_ROOMS stagecraft_${room})
  list(TRANSFORM A_USES PREPEND "stagecraft::")
  target_link_libraries(stagecraft_${room} PUBLIC ${A_USES} fmt::fmt PRIVATE ${A_LINKS} $<BUILD_INTERFACE:stagecraft_warnings>)
  if(room STREQUAL "core")
    target_precompile_headers(stagecraft_core PRIVATE ${STAGECRAFT_STD_HEADERS} <fmt/format.h>)
  else()
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_core)
  endif()
endfunction()
