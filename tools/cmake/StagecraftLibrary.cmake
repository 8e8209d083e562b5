# What most files include is read once for each set of flags. A file still includes what it uses: in tools/test full clang
# reads each alone.
set(STAGECRAFT_STD_HEADERS <algorithm> <cmath> <functional> <map> <memory> <optional> <set> <span> <stdexcept> <string>
  <unordered_map> <variant> <vector>)
# What most files of UPPER rooms and of tests include besides.
set(STAGECRAFT_UPPER_HEADERS <chrono> <filesystem>)
foreach(header core/diagnostic core/file core/json core/text config/value schedule/builder program/program report/report
    experiment/experiment experiment/run)
  list(APPEND STAGECRAFT_UPPER_HEADERS "${PROJECT_SOURCE_DIR}/sim/${header}.hpp")
endforeach()
list(APPEND STAGECRAFT_UPPER_HEADERS "${PROJECT_SOURCE_DIR}/backends/backend.hpp")

# The compiler needs less time for a whole build when it reads several files of a room at once: sim/report took 28 s in
# place of 42 s. After a change of one file it has more to do, so the preset for daily work does without.
option(STAGECRAFT_UNITY "Compile several files of a room at once" OFF)

# stagecraft_unity(<target> <folder> <sources>): these files of one folder are compiled eight at a time. They must not use
# one name for different things in their anonymous namespaces, so names in entries of a catalog carry the entry's name.
function(stagecraft_unity target folder)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STAGECRAFT_UNITY} UNITY_BUILD_MODE GROUP)
  set(index 0)
  foreach(source IN LISTS ARGN)
    math(EXPR group "${index} / 8")
    math(EXPR index "${index} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
endfunction()

# What reads files, prints and draws, and never computes for long: g++ compiles it with little optimization, in about half
# the time. clang is quick as it is.
set(STAGECRAFT_QUICK_FLAGS $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Og>)

# The precompiled headers of rooms that compute, and of QUICK and UPPER rooms: g++ 12 fails when their flags are mixed.
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp" CONTENT "")
foreach(headers stagecraft_headers stagecraft_quick_headers stagecraft_upper_headers)
  add_library(${headers} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(${headers} PRIVATE fmt::fmt stagecraft_warnings)
  target_precompile_headers(${headers} PRIVATE ${STAGECRAFT_STD_HEADERS} <fmt/format.h>)
endforeach()
target_compile_options(stagecraft_quick_headers PRIVATE ${STAGECRAFT_QUICK_FLAGS})
target_compile_options(stagecraft_upper_headers PRIVATE ${STAGECRAFT_QUICK_FLAGS})
target_include_directories(stagecraft_upper_headers PRIVATE "${PROJECT_SOURCE_DIR}")
target_precompile_headers(stagecraft_upper_headers PRIVATE ${STAGECRAFT_UPPER_HEADERS})

# stagecraft_library(<room> [QUICK|UPPER] USES <rooms> LINKS <libraries>)
# One static library of the .cpp files in the current folder. A room sees only what it uses. QUICK: see above. UPPER: QUICK,
# and above the reports, so that it includes most of what is below.
function(stagecraft_library room)
  cmake_parse_arguments(A "QUICK;UPPER" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  add_library(stagecraft_${room} STATIC ${sources})
  add_library(stagecraft::${room} ALIAS stagecraft_${room})
  target_include_directories(stagecraft_${room} PUBLIC "${PROJECT_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_ROOMS stagecraft_${room})
  list(TRANSFORM A_USES PREPEND "stagecraft::")
  target_link_libraries(stagecraft_${room} PUBLIC ${A_USES} fmt::fmt PRIVATE ${A_LINKS} $<BUILD_INTERFACE:stagecraft_warnings>)
  stagecraft_unity(stagecraft_${room} room ${sources})
  if(A_UPPER)
    target_compile_options(stagecraft_${room} PRIVATE ${STAGECRAFT_QUICK_FLAGS})
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_upper_headers)
  elseif(A_QUICK)
    target_compile_options(stagecraft_${room} PRIVATE ${STAGECRAFT_QUICK_FLAGS})
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_quick_headers)
  else()
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_headers)
  endif()
endfunction()

# stagecraft_folders(<room> <folders>): the .cpp files in these folders below the current one belong to the room too.
function(stagecraft_folders room)
  foreach(folder IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    target_sources(stagecraft_${room} PRIVATE ${sources})
    string(MAKE_C_IDENTIFIER "${folder}" group)
    stagecraft_unity(stagecraft_${room} ${group} ${sources})
  endforeach()
endfunction()
