# cpack reads this before it packs. It sets the packages that a Debian package of Stagecraft depends on, as
# CPACK_DEBIAN_PACKAGE_SHLIBDEPS would, which starts two programs for each of a thousand files.
if(CPACK_GENERATOR STREQUAL "DEB")
  file(GLOB modules "${CPACK_STAGECRAFT_BUILD}/lib/stagecraft/*.so")
  set(folder "${CPACK_STAGECRAFT_BUILD}/package")
  file(WRITE "${folder}/debian/control" "Source: stagecraft\n")  # dpkg-shlibdeps works only where one is.
  execute_process(COMMAND dpkg-shlibdeps -O "${CPACK_STAGECRAFT_BUILD}/bin/stagecraft" ${modules}
    WORKING_DIRECTORY "${folder}" OUTPUT_VARIABLE depends ERROR_VARIABLE problems RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "dpkg-shlibdeps: ${code}\n${problems}\napt install dpkg-dev, if it is missing")
  endif()
  string(REGEX REPLACE "^shlibs:Depends=|\n$" "" CPACK_DEBIAN_PACKAGE_DEPENDS "${depends}")
endif()
