# cmake/LtProducts.cmake: binary, libraries and Lua module, all from the same objects.

configure_file(cmake/version.h.in ${LT_GENERATED}/include/ltrain/version.h @ONLY)

get_property(lt_runtime_objects GLOBAL PROPERTY LT_RUNTIME_OBJECTS)
get_property(lt_lua_objects GLOBAL PROPERTY LT_LUA_OBJECTS)
set(lt_all_objects ${lt_runtime_objects} ${lt_lua_objects})

# The runtime alone, for the C tests: it knows no Lua, and they link none.
if(LT_WITH_SPECS)
  add_library(ltrain_runtime STATIC ${lt_runtime_objects})
  target_link_libraries(ltrain_runtime PUBLIC lt_flags lt_runtime_deps)
endif()

# What hosts include, below one folder as it is installed.
configure_file(lua/host/ltrain.h ${LT_GENERATED}/host/ltrain.h COPYONLY)
set(LT_HOST_INCLUDE $<BUILD_INTERFACE:${LT_GENERATED}/host>
  $<BUILD_INTERFACE:${LT_GENERATED}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>)

add_library(ltrain_shared SHARED ${lt_all_objects})
set_target_properties(ltrain_shared PROPERTIES OUTPUT_NAME ltrain EXPORT_NAME ltrain
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_include_directories(ltrain_shared INTERFACE ${LT_HOST_INCLUDE})
target_link_libraries(ltrain_shared PRIVATE lt_hardened lt_runtime_deps PkgConfig::LUA)
target_link_options(ltrain_shared PRIVATE -Wl,-z,defs) # a missing kernel fails here
add_library(ltrain::ltrain ALIAS ltrain_shared)

# libltrain.a: who links it also links what it is made of.
set(LT_STATIC_NEEDS ${LUA_LINK_LIBRARIES} ${LT_DNNL_LIBRARY} ${JANSSON_LINK_LIBRARIES} z gomp pthread
  m dl)
add_library(ltrain_static STATIC ${lt_all_objects})
set_target_properties(ltrain_static PROPERTIES OUTPUT_NAME ltrain)
target_include_directories(ltrain_static INTERFACE ${LT_HOST_INCLUDE})
target_link_libraries(ltrain_static INTERFACE ${LT_STATIC_NEEDS})
add_library(ltrain::ltrain_static ALIAS ltrain_static)

# The process of isolated states, which ltrain_open starts.
add_executable(ltrain_worker lua/host/isolate/worker.c ${lt_all_objects})
set_target_properties(ltrain_worker PROPERTIES OUTPUT_NAME ltrain-worker
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../bundled") # tools/bundle.sh
target_link_libraries(ltrain_worker PRIVATE lt_flags lt_lua_flags PkgConfig::LUA)
target_link_options(ltrain_worker PRIVATE -Wl,--disable-new-dtags)
add_dependencies(ltrain_shared ltrain_worker)
add_dependencies(ltrain_static ltrain_worker)

if(LT_PROGRAM)
  # The module exports luaopen_ltrain and nothing else: a process may hold libltrain as well.
  # It is not linked with Lua: the interpreter that loads it brings its own.
  add_library(ltrain_module MODULE ${lt_all_objects})
  set_target_properties(ltrain_module PROPERTIES OUTPUT_NAME ltrain PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lua/5.4
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/module.map)
  target_link_libraries(ltrain_module PRIVATE lt_hardened lt_runtime_deps)
  target_link_options(ltrain_module PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/module.map)

  add_executable(ltrain ${LT_CLI_FILES} ${lt_all_objects})
  target_link_libraries(ltrain PRIVATE lt_flags lt_lua_flags PkgConfig::LUA
    $<TARGET_NAME_IF_EXISTS:PkgConfig::EDIT>)
  # Where tools/bundle.sh puts libraries; the older tag also leads to what these need themselves.
  set_target_properties(ltrain PROPERTIES BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/../lib/bundled")
  target_link_options(ltrain PRIVATE -Wl,--disable-new-dtags)
endif()

# The kernels of GPUs take minutes to compile: with the program where there is a GPU, else when
# they are asked for by name.
if(TARGET ltrain_cuda AND TARGET ltrain AND EXISTS /dev/nvidia0)
  add_dependencies(ltrain ltrain_cuda)
endif()
foreach(plugin ltrain_mpi ltrain_ucx ltrain_xla) # opened at run time
  if(TARGET ${plugin})
    add_dependencies(ltrain_shared ${plugin})
    add_dependencies(ltrain_static ${plugin})
    if(LT_PROGRAM)
      add_dependencies(ltrain ${plugin})
    endif()
  endif()
endforeach()
