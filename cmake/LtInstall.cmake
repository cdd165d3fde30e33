# cmake/LtInstall.cmake: what `cmake --install` and `cpack` put where, and how it goes again.
include(CMakePackageConfigHelpers)

set(lua_dir ${CMAKE_INSTALL_LIBDIR}/lua/5.4)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ltrain)

if(LT_PROGRAM)
  install(TARGETS ltrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS ltrain_module LIBRARY DESTINATION ${lua_dir})
  install(FILES docs/ltrain.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(TARGETS ltrain_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(CODE "# CMake strips no archives
  if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libltrain.a\"
      COMMAND_ERROR_IS_FATAL ANY)
  endif()")
install(TARGETS ltrain_shared EXPORT ltrain-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ltrain_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain)
if(LT_WITH_MPI)
  install(TARGETS ltrain_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain COMPONENT mpi)
endif()
if(LT_WITH_UCX)
  install(TARGETS ltrain_ucx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain COMPONENT ucx)
endif()
if(LT_PROGRAM)
  install(TARGETS ltrain_xla LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain)
endif()
if(LT_WITH_CUDA)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/backends/ltrain_cuda.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain OPTIONAL)
endif()
if(LT_WITH_NCCL)
  install(TARGETS ltrain_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ltrain OPTIONAL)
endif()
install(DIRECTORY runtime/include/ltrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${LT_GENERATED}/include/ltrain/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ltrain)
install(FILES lua/host/ltrain.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Laid out as in the source, so that links between the pages lead somewhere.
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.lua" PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.py"
  PATTERN "*.yaml" PATTERN "*.sbatch" PATTERN Containerfile PATTERN CMakeLists.txt
  PATTERN ltrain_logs EXCLUDE PATTERN __pycache__ EXCLUDE)

# Relative to the file itself, so that an installed tree can be moved. It requires no other module:
# ltrain.h needs no header of Lua's, and machines that have the package have no ltrain's libraries'
# pkg-config files.
list(GET LUA_LIBRARIES 0 LT_PC_LUA)
file(RELATIVE_PATH LT_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/ltrain.pc.in ltrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ltrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT ltrain-targets NAMESPACE ltrain:: DESTINATION ${package_dir})
configure_package_config_file(cmake/ltrain-config.cmake.in ltrain-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ltrain-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ltrain-config.cmake
  ${PROJECT_BINARY_DIR}/ltrain-config-version.cmake DESTINATION ${package_dir})

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# `cmake --build build --target uninstall`: takes away what the last installation put there.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
          -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
  VERBATIM)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # packing builds nothing: not the tests
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME ltrain)
string(TOLOWER "ltrain-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}"
  CPACK_PACKAGE_FILE_NAME)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# `cpack -G DEB`: ltrain, and ltrain-mpi and ltrain-ucx, which want an MPI, or UCX. They depend on what they were linked
# with; libraries that are opened when they are first used are recommended.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the ltrain authors <ltrain@localhost>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME ltrain)
string(JOIN ", " CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS liblapacke libturbojpeg0 libspng0
  libwebp7 libpcre2-8-0 libutf8proc2 libmicrohttpd12 libyaml-0-2)
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION
  "The program, the library with its headers, the module for Lua 5.4, documentation.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME ltrain-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "ltrain (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MPI_DESCRIPTION "What ltrain needs to run ranks over MPI.")
set(CPACK_DEBIAN_UCX_PACKAGE_NAME ltrain-ucx)
set(CPACK_DEBIAN_UCX_PACKAGE_DEPENDS "ltrain (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_UCX_DESCRIPTION
  "What ltrain needs to run ranks that torchrun, Kubernetes or a script started, over UCX.")
include(CPack)
