# cmake/LtParts.cmake: finds what the parts of a build need; prints one line a part.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

function(lt_say mark part reason)
  message(STATUS "${mark} ${part}: ${reason}")
endfunction()

# The CPU device: oneDNN for products and convolutions, OpenMP, one build a level of instructions.
# Sets LT_CPU_LEVEL_NAMES and the target lt_runtime_deps.
macro(lt_part_cpu)
  find_package(OpenMP REQUIRED COMPONENTS C)
  find_package(ZLIB REQUIRED)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  find_path(LT_DNNL_INCLUDE dnnl.h REQUIRED)
  find_library(LT_DNNL_LIBRARY dnnl REQUIRED)
  mark_as_advanced(LT_DNNL_INCLUDE LT_DNNL_LIBRARY)
  add_library(lt_runtime_deps INTERFACE)
  target_include_directories(lt_runtime_deps SYSTEM INTERFACE ${LT_DNNL_INCLUDE})
  target_link_libraries(lt_runtime_deps INTERFACE ${LT_DNNL_LIBRARY} OpenMP::OpenMP_C ZLIB::ZLIB
    PkgConfig::JANSSON Threads::Threads m ${CMAKE_DL_LIBS})

  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(LT_CPU_LEVEL_NAMES v2 v3 v4)
  else()
    set(LT_CPU_LEVEL_NAMES plain)
  endif()
  list(JOIN LT_CPU_LEVEL_NAMES ", " said)
  lt_say("✓" "cpu" "oneDNN in ${LT_DNNL_LIBRARY}, levels ${said}")
endmacro()

# Lua 5.4, shared, so that C modules that a script loads meet the same Lua.
macro(lt_part_lua)
  pkg_check_modules(LUA QUIET IMPORTED_TARGET lua5.4)
  if(NOT LUA_FOUND)
    pkg_check_modules(LUA REQUIRED IMPORTED_TARGET lua-5.4)
  endif()
  lt_say("✓" "lua" "${LUA_VERSION} (shared)")
endmacro()

# The prompt: line editing and history.
macro(lt_part_prompt)
  pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
  lt_say("✓" "prompt" "libedit ${EDIT_VERSION}")
endmacro()

# MPI: a shared object of its own, so that only who asks for it needs the library. Sets LT_WITH_MPI.
macro(lt_part_mpi)
  set(LT_WITH_MPI 0)
  if(LT_MPI STREQUAL "OFF")
    lt_say("✗" "mpi collectives" "switched off (LT_MPI=OFF)")
  else()
    find_package(MPI QUIET COMPONENTS C)
    if(MPI_C_FOUND)
      set(LT_WITH_MPI 1)
      lt_say("✓" "mpi collectives" "MPI ${MPI_C_VERSION} in ${MPI_mpi_LIBRARY}")
    elseif(LT_MPI STREQUAL "ON")
      message(FATAL_ERROR "mpi collectives: LT_MPI=ON, but no MPI found (libopenmpi-dev)")
    else()
      lt_say("✗" "mpi collectives" "no MPI found (libopenmpi-dev)")
    endif()
  endif()
endmacro()

# A part that this version does not have yet: fine when left out, an error when asked for.
function(lt_part_absent option name)
  if(LT_${option} STREQUAL "ON")
    message(FATAL_ERROR "${name}: LT_${option}=ON, but not in this version")
  elseif(LT_${option} STREQUAL "OFF")
    lt_say("✗" "${name}" "switched off (LT_${option}=OFF)")
  else()
    lt_say("✗" "${name}" "not in this version")
  endif()
endfunction()
