# cmake -DSOURCE=<dir> -DHEADER=<file> -P WriteCommit.cmake: the commit of the source tree as a header, touched only when it changes.
find_package(Git QUIET)
set(commit "unknown")
if(GIT_FOUND AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE}" describe --always --dirty --exclude=* OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define STAGECRAFT_COMMIT \"${commit}\"\n" @ONLY)
