# What the engine needs as WebAssembly, in place of StagecraftDependencies: Debian has emscripten, but no libraries for
# it. STAGECRAFT_WASM_SOURCES has the sources of fmt and yaml-cpp, which tools/setup wasm brings there; libraries that are
# headers alone are taken from the system. There are no threads, processes, sockets, modules or databases.
set(STAGECRAFT_WASM_SOURCES "${PROJECT_SOURCE_DIR}/build/wasm-sources" CACHE PATH "Folders fmt and yaml-cpp with their sources")
foreach(file fmt/src/format.cc yaml-cpp/src/parser.cpp)
  if(NOT EXISTS "${STAGECRAFT_WASM_SOURCES}/${file}")
    message(FATAL_ERROR "${STAGECRAFT_WASM_SOURCES}/${file} is not there: run tools/setup wasm")
  endif()
endforeach()

add_compile_options(-fwasm-exceptions -Wno-unused-command-line-argument)  # Every message about an input is an exception.
string(REPLACE "-O2" "-Os" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")  # With -O2 the page has 1.46 MB in brotli in place of 1.05 MB.
# Debian has acorn, which shortens the loader, where a node of another origin does not search.
set(CMAKE_CXX_LINKER_LAUNCHER env NODE_PATH=/usr/share/nodejs)

add_library(fmt STATIC "${STAGECRAFT_WASM_SOURCES}/fmt/src/format.cc")
add_library(fmt::fmt ALIAS fmt)
target_include_directories(fmt SYSTEM PUBLIC "${STAGECRAFT_WASM_SOURCES}/fmt/include")
file(GLOB sources CONFIGURE_DEPENDS "${STAGECRAFT_WASM_SOURCES}/yaml-cpp/src/*.cpp")
add_library(yaml-cpp STATIC ${sources})
target_include_directories(yaml-cpp SYSTEM PUBLIC "${STAGECRAFT_WASM_SOURCES}/yaml-cpp/include")

# A folder with these headers alone: the others of /usr/include are for this machine.
set(headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
foreach(folder nlohmann protozero toml++)
  if(NOT EXISTS "/usr/include/${folder}")
    message(FATAL_ERROR "/usr/include/${folder} is not there: run tools/setup wasm")
  endif()
  file(CREATE_LINK "/usr/include/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()
foreach(library nlohmann_json::nlohmann_json protozero tomlplusplus)
  add_library(${library} INTERFACE IMPORTED)
  target_include_directories(${library} SYSTEM INTERFACE "${headers}")
endforeach()
add_library(stagecraft_warnings INTERFACE)
