# stagecraft_catalog(<room> KIND schedules TYPE ScheduleDef HEADER sim/schedule/builder.hpp DIR schedules)
# Every <name>.cpp in DIR defines `extern const TYPE <name>` in namespace stagecraft::KIND. The list of them is
# generated here, so that a new file is a new entry and nothing else has to be edited.
function(stagecraft_catalog room)
  cmake_parse_arguments(A "" "KIND;TYPE;HEADER;DIR" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/${A_DIR}" "${A_DIR}/*.cpp")
  list(SORT files)
  set(declarations "")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND declarations "extern const ${A_TYPE} ${name};\n")
    string(APPEND entries "    &${name},\n")
    target_sources(stagecraft_${room} PRIVATE "${A_DIR}/${file}")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${A_KIND}_catalog.cpp" @ONLY CONTENT
"// Generated from ${A_DIR}/*.cpp.
#include \"${A_HEADER}\"
namespace stagecraft::${A_KIND} {
${declarations}
Catalog<${A_TYPE}> all() {
  static const ${A_TYPE}* const entries[] = {
${entries}  };
  return entries;
}
}  // namespace stagecraft::${A_KIND}
")
  target_sources(stagecraft_${room} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${A_KIND}_catalog.cpp")
endfunction()
