# What is installed: the program with its files, completions and page of the manual; one static library of all rooms with
# its headers, for find_package(stagecraft) and pkg-config. tools/package/build makes packages of all that.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY STAGECRAFT_ROOMS)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(stagecraft_all STATIC ${objects})
set_target_properties(stagecraft_all PROPERTIES OUTPUT_NAME stagecraft EXPORT_NAME stagecraft LINKER_LANGUAGE CXX)
target_include_directories(stagecraft_all INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/stagecraft>")
target_compile_features(stagecraft_all INTERFACE cxx_std_20)
set(needs fmt yaml-cpp SQLiteCpp sqlite3 pthread dl)
if(STAGECRAFT_WITH_MPI)
  list(JOIN MPI_CXX_LIBRARIES "," mpi)
  list(PREPEND needs "-Wl,--push-state,--no-as-needed,${mpi},--pop-state")
endif()
if(STAGECRAFT_WITH_CUDA)
  list(APPEND needs "${CUDA_cudart_static_LIBRARY}" rt)
endif()
list(TRANSFORM needs REPLACE "(.+)" "$<INSTALL_INTERFACE:\\1>" OUTPUT_VARIABLE links)
set(modules "${CMAKE_INSTALL_LIBDIR}/stagecraft")
if(STAGECRAFT_WITH_SIMGRID)
  # A program that links the library finds the module, which calls the program.
  target_link_options(stagecraft_all INTERFACE
    "$<INSTALL_INTERFACE:-rdynamic>" "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${modules}>")
  set(module_flags " -rdynamic -Wl,-rpath,\${prefix}/${modules}")
  install(TARGETS stagecraft_simgrid_module LIBRARY DESTINATION "${modules}")
endif()
target_link_libraries(stagecraft_all INTERFACE ${links})

# Pages that the program writes about itself.
set(pages "${CMAKE_CURRENT_BINARY_DIR}/pages")
file(MAKE_DIRECTORY "${pages}")
add_custom_command(OUTPUT "${pages}/stagecraft.1" DEPENDS stagecraft
  COMMAND stagecraft manual > "${pages}/stagecraft.1"
  COMMAND stagecraft completion bash > "${pages}/stagecraft"
  COMMAND stagecraft completion zsh > "${pages}/_stagecraft"
  COMMAND stagecraft completion fish > "${pages}/stagecraft.fish")
add_custom_target(stagecraft_pages ALL DEPENDS "${pages}/stagecraft.1")

set(data "${CMAKE_INSTALL_DATADIR}")
install(TARGETS stagecraft)
install(DIRECTORY models topologies scenarios DESTINATION "${data}/stagecraft" FILES_MATCHING
  PATTERN "*.yaml" PATTERN "*.csv" PATTERN "*.onnx" PATTERN "schema/*.json")
install(FILES "${pages}/stagecraft.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${pages}/stagecraft" DESTINATION "${data}/bash-completion/completions")
install(FILES "${pages}/_stagecraft" DESTINATION "${data}/zsh/vendor-completions")
install(FILES "${pages}/stagecraft.fish" DESTINATION "${data}/fish/vendor_completions.d")
# Programs put lib/stagecraft/python on PYTHONPATH; the module finds the program beside it.
install(DIRECTORY tools/python/stagecraft DESTINATION "${CMAKE_INSTALL_LIBDIR}/stagecraft/python" FILES_MATCHING
  PATTERN "*.py" PATTERN "py.typed")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft")
install(TARGETS stagecraft_all EXPORT stagecraft DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT stagecraft NAMESPACE stagecraft:: FILE stagecraft-config.cmake DESTINATION "${package}")
write_basic_package_version_file("${pages}/stagecraft-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${pages}/stagecraft-config-version.cmake" DESTINATION "${package}")
install(DIRECTORY sim backends DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stagecraft" FILES_MATCHING
  REGEX "/(sim/.*|backends/(backend|world))\\.hpp$")
list(TRANSFORM needs REPLACE "^([^-/].*)" "-l\\1" OUTPUT_VARIABLE flags)
list(JOIN flags " " flags)
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
file(GENERATE OUTPUT "${pages}/stagecraft.pc" CONTENT "prefix=\${pcfiledir}/${up}
Name: stagecraft
Description: ${PROJECT_DESCRIPTION}
Version: ${PROJECT_VERSION}
Cflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}/stagecraft
Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} -lstagecraft ${flags}${module_flags}
")
install(FILES "${pages}/stagecraft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
