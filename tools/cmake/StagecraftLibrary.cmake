# What most files of the rooms and of the tests include is read once for each set of flags. A file still includes what it uses:
# in tools/test full clang reads each alone.
set(STAGECRAFT_HEADERS <algorithm> <cmath> <functional> <map> <memory> <optional> <set> <span> <stdexcept> <string> <unordered_map>
  <variant> <vector> <fmt/core.h> <chrono> <filesystem>)
foreach(header core/diagnostic core/file core/json core/text config/value schedule/builder program/program result/report
    experiment/experiment experiment/run)
  list(APPEND STAGECRAFT_HEADERS "${PROJECT_SOURCE_DIR}/sim/${header}.hpp")
endforeach()
list(APPEND STAGECRAFT_HEADERS "${PROJECT_SOURCE_DIR}/backends/backend.hpp")

# The compiler needs less time for a whole build when it reads several files of a room at once: the room of reports took 28 s in
# place of 42 s. After a change of one file it has more to do, so the preset for daily work does without.
option(STAGECRAFT_UNITY "Compile several files of a room at once" OFF)

# stagecraft_unity(<target> <sources>): these files, and the files of earlier calls, are compiled 24 at a time. They must not use
# one name for different things in their anonymous namespaces, so names in entries of a catalog carry the entry's name.
function(stagecraft_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STAGECRAFT_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(index ${target} STAGECRAFT_FILES)
  if(NOT index)
    set(index 0)
  endif()
  foreach(source IN LISTS ARGN)
    math(EXPR group "${index} / 24")
    math(EXPR index "${index} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES STAGECRAFT_FILES ${index})
endfunction()

# The headers, precompiled with some flags: compilers do not mix them. Whoever changes the list renames the targets: CMake gives
# the file of the list the date of CMakeLists.txt, so an older build would not notice the change, and clang would refuse it.
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp" CONTENT "")
function(stagecraft_precompiled name)
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(${name} PRIVATE fmt::fmt stagecraft_warnings)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE ${STAGECRAFT_HEADERS})
endfunction()
stagecraft_precompiled(stagecraft_shared_headers)

# What reads files, prints and draws, and never computes for long: g++ compiles it with little optimization, in about half
# the time. clang is quick as it is.
set(STAGECRAFT_QUICK_FLAGS)
set(STAGECRAFT_QUICK_PRECOMPILED stagecraft_shared_headers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(STAGECRAFT_QUICK_FLAGS $<$<CONFIG:Release>:-Og>)
  set(STAGECRAFT_QUICK_PRECOMPILED stagecraft_quick_headers)
  stagecraft_precompiled(${STAGECRAFT_QUICK_PRECOMPILED} ${STAGECRAFT_QUICK_FLAGS})
endif()
# What runs once for each command: reading its options, printing its answer. The preset ci does not optimize it at all, which
# takes clang 40 % of the time; large outputs would suffer, so this is for tests.
set(STAGECRAFT_BRIEF_FLAGS "" CACHE STRING "Flags for the commands; empty: as for other code that prints")
if(STAGECRAFT_BRIEF_FLAGS)
  set(STAGECRAFT_BRIEF_PRECOMPILED stagecraft_brief_headers)
  stagecraft_precompiled(${STAGECRAFT_BRIEF_PRECOMPILED} ${STAGECRAFT_BRIEF_FLAGS})
else()
  set(STAGECRAFT_BRIEF_FLAGS ${STAGECRAFT_QUICK_FLAGS})
  set(STAGECRAFT_BRIEF_PRECOMPILED ${STAGECRAFT_QUICK_PRECOMPILED})
endif()

# stagecraft_brief(<target>): this target is BRIEF.
function(stagecraft_brief target)
  target_compile_options(${target} PRIVATE ${STAGECRAFT_BRIEF_FLAGS})
  target_precompile_headers(${target} REUSE_FROM ${STAGECRAFT_BRIEF_PRECOMPILED})
endfunction()

# stagecraft_rooms_of(<variable> <libraries>): the rooms that these libraries of the project need, and they themselves.
function(stagecraft_rooms_of result)
  set(rooms)
  set(left ${ARGN})
  while(NOT "${left}" STREQUAL "")
    list(POP_FRONT left library)
    string(REGEX REPLACE "^stagecraft::" "stagecraft_" name "${library}")
    if(NOT name MATCHES "^stagecraft_" OR NOT TARGET ${name} OR name IN_LIST rooms)
      continue()
    endif()
    list(APPEND rooms ${name})
    get_target_property(uses ${name} LINK_LIBRARIES)  # Private ones too: a static library needs them as well.
    if(uses)
      list(APPEND left ${uses})
    endif()
  endwhile()
  set(${result} ${rooms} PARENT_SCOPE)
endfunction()

# stagecraft_optimized_first(<target>): the linker takes an inline function from the first object that has it, so the objects
# of optimized rooms come before the target's own, which are not optimized. A run takes 0.25 s in place of 0.55 s, and
# the tests of planners 18 s in place of 31 s.
function(stagecraft_optimized_first target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  stagecraft_rooms_of(rooms ${libraries})
  get_property(optimized GLOBAL PROPERTY STAGECRAFT_OPTIMIZED)
  foreach(room IN LISTS optimized)
    if(room IN_LIST rooms)
      list(APPEND archives $<TARGET_FILE:${room}>)
    endif()
  endforeach()
  if(NOT rooms)
    message(FATAL_ERROR "${target} is not linked to any room yet")
  endif()
  if(archives)
    target_link_options(${target} BEFORE PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
  endif()
endfunction()

# stagecraft_library(<room> [QUICK|BRIEF] USES <rooms> LINKS <libraries> HEADERS <headers>)
# One static library of the .cpp files in the current folder. A room sees only what it uses. QUICK, BRIEF: see above. A room with
# other flags names the HEADERS that are compiled for it alone; its files are not compiled together.
function(stagecraft_library room)
  cmake_parse_arguments(A "QUICK;BRIEF" "" "USES;LINKS;HEADERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  add_library(stagecraft_${room} STATIC ${sources})
  add_library(stagecraft::${room} ALIAS stagecraft_${room})
  target_include_directories(stagecraft_${room} PUBLIC "${PROJECT_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_ROOMS stagecraft_${room})
  list(TRANSFORM A_USES PREPEND "stagecraft::")
  target_link_libraries(stagecraft_${room} PUBLIC ${A_USES} fmt::fmt PRIVATE ${A_LINKS} $<BUILD_INTERFACE:stagecraft_warnings>)
  if(NOT A_BRIEF AND NOT (A_QUICK AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    set_property(GLOBAL APPEND PROPERTY STAGECRAFT_OPTIMIZED stagecraft_${room})
  endif()
  if(A_HEADERS)
    target_precompile_headers(stagecraft_${room} PRIVATE ${A_HEADERS})
    return()
  endif()
  stagecraft_unity(stagecraft_${room} ${sources})
  if(A_BRIEF)
    stagecraft_brief(stagecraft_${room})
  elseif(A_QUICK)
    target_compile_options(stagecraft_${room} PRIVATE ${STAGECRAFT_QUICK_FLAGS})
    target_precompile_headers(stagecraft_${room} REUSE_FROM ${STAGECRAFT_QUICK_PRECOMPILED})
  else()
    target_precompile_headers(stagecraft_${room} REUSE_FROM stagecraft_shared_headers)
  endif()
endfunction()

# stagecraft_computing(<room> <files>): these files of a BRIEF room are compiled as the files of rooms that compute.
function(stagecraft_computing room)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  get_target_property(sources stagecraft_${room} SOURCES)
  list(REMOVE_ITEM sources ${files})
  set_property(TARGET stagecraft_${room} PROPERTY SOURCES ${sources})
  add_library(stagecraft_${room}_computing OBJECT ${files})
  get_target_property(libraries stagecraft_${room} LINK_LIBRARIES)
  target_link_libraries(stagecraft_${room}_computing PRIVATE ${libraries})
  target_include_directories(stagecraft_${room}_computing PRIVATE "${PROJECT_SOURCE_DIR}")
  target_precompile_headers(stagecraft_${room}_computing REUSE_FROM stagecraft_shared_headers)
  stagecraft_unity(stagecraft_${room}_computing ${files})
  target_sources(stagecraft_${room} PRIVATE $<TARGET_OBJECTS:stagecraft_${room}_computing>)
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_ROOMS stagecraft_${room}_computing)
endfunction()

# stagecraft_folders(<room> <folders>): the .cpp files in these folders below the current one belong to the room too.
function(stagecraft_folders room)
  foreach(folder IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    target_sources(stagecraft_${room} PRIVATE ${sources})
    stagecraft_unity(stagecraft_${room} ${sources})
  endforeach()
endfunction()
