# stagecraft_catalog(<room> KIND schedules TYPE ScheduleDef HEADER sim/schedule/builder.hpp DIR schedules)
# Every <name>.cpp in DIR defines `extern const TYPE <name>` in namespace stagecraft::KIND. The list of them is
# generated here, so that a new file is a new entry and nothing else has to be edited.
# DIR . is the folder of the room itself.
# ALSO <dir> adds the entries of a folder whose sources another room builds.
# FOLDERS <file> instead of DIR: every sub-folder with such a file is an entry; its sources are built elsewhere. ONLY
# <folders>: the others are none.
function(stagecraft_catalog room)
  cmake_parse_arguments(A "" "KIND;TYPE;HEADER;DIR;ALSO;FOLDERS" "ONLY" ${ARGN})
  if(A_DIR)
    file(GLOB names CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/${A_DIR}" "${A_DIR}/*.cpp")
    if(NOT A_DIR STREQUAL ".")
      stagecraft_folders(${room} ${A_DIR})
    endif()
    if(A_ALSO)
      file(GLOB also CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/${A_ALSO}" "${A_ALSO}/*.cpp")
      list(APPEND names ${also})
    endif()
    list(TRANSFORM names REPLACE "^\\./" "")
    list(TRANSFORM names REPLACE "\\.cpp$" "")
  else()
    file(GLOB names CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*/${A_FOLDERS}")
    list(TRANSFORM names REPLACE "/.*" "")
    list(JOIN A_ONLY "|" only)
    list(FILTER names INCLUDE REGEX "^(${only})$")
  endif()
  list(SORT names)
  set(declarations "")
  set(entries "")
  foreach(name IN LISTS names)
    string(APPEND declarations "extern const ${A_TYPE} ${name};\n")
    string(APPEND entries "    &${name},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${A_KIND}_catalog.cpp" @ONLY CONTENT
"// Generated.
#include \"${A_HEADER}\"
namespace stagecraft::${A_KIND} {
${declarations}
Catalog<${A_TYPE}> catalog() {
  static const ${A_TYPE}* const entries[] = {
${entries}  };
  return entries;
}
}  // namespace stagecraft::${A_KIND}
")
  target_sources(stagecraft_${room} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${A_KIND}_catalog.cpp")
  stagecraft_unity(stagecraft_${room} "${CMAKE_CURRENT_BINARY_DIR}/${A_KIND}_catalog.cpp")
endfunction()
