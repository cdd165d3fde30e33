# cmake/LtFlags.cmake: how our C is compiled, and lt_objects(), which compiles a list of files.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(LT_CCACHE ccache)
mark_as_advanced(LT_CCACHE)
if(LT_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${LT_CCACHE})
endif()

set(LT_GENERATED ${PROJECT_BINARY_DIR}/generated)

# What is harder to break into: tables of addresses that nobody can write, frames and buffers that
# are checked; and no path of the machine that built it. Sanitizers check more, and the C library's
# checks want an optimising compiler.
add_library(lt_hardened INTERFACE)
target_compile_options(lt_hardened INTERFACE -fstack-protector-strong
  -ffile-prefix-map=${PROJECT_BINARY_DIR}=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(NOT LT_SANITIZE)
  target_compile_options(lt_hardened INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
endif()
target_link_options(lt_hardened INTERFACE -Wl,-z,relro,-z,now)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C) # programs are linked as their objects are compiled

# Every file of ours, in runtime/, lua/ and spec/c alike.
add_library(lt_flags INTERFACE)
target_link_libraries(lt_flags INTERFACE lt_hardened)
target_compile_definitions(lt_flags INTERFACE _GNU_SOURCE)
target_compile_options(lt_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wconversion -Wswitch-enum $<$<BOOL:${LT_WERROR}>:-Werror>)
target_include_directories(lt_flags INTERFACE ${PROJECT_SOURCE_DIR}/runtime
  ${PROJECT_SOURCE_DIR}/runtime/include ${LT_GENERATED} ${LT_GENERATED}/include)

# Kernels: vectorise, never change what NaN and infinity mean. gcc follows each arm of a clamp to
# the end of the function unless -fno-thread-jumps forbids it: a factor of 3 for silu.
add_library(lt_kernel_flags INTERFACE)
target_compile_options(lt_kernel_flags INTERFACE -O3 -fno-math-errno -fno-trapping-math
  -ffp-contract=fast -fopenmp)
include(CheckCCompilerFlag)
check_c_compiler_flag(-fno-thread-jumps LT_HAVE_NO_THREAD_JUMPS)
if(LT_HAVE_NO_THREAD_JUMPS)
  target_compile_options(lt_kernel_flags INTERFACE -fno-thread-jumps)
endif()
# clang warns of each loop that it leaves as it is: slower there, and not wrong.
target_compile_options(lt_kernel_flags INTERFACE $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)

if(LT_SANITIZE)
  # -O1 and lines alone compile in half the time; kernels have a level of their own.
  add_compile_options(-fsanitize=${LT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -O1 -g1)
  add_link_options(-fsanitize=${LT_SANITIZE})
endif()

# Object targets that make up the runtime, and those of lua/ that join them in libltrain.
set_property(GLOBAL PROPERTY LT_RUNTIME_OBJECTS "")
set_property(GLOBAL PROPERTY LT_LUA_OBJECTS "")

# lt_objects(LT_RUNTIME_OBJECTS|LT_LUA_OBJECTS name LIBS libs... FILES files...)
# Compiles the files as the object library `name` and adds it to that list.
function(lt_objects group name)
  cmake_parse_arguments(PARSE_ARGV 2 a "" "" "LIBS;FILES")
  add_library(${name} OBJECT ${a_FILES})
  target_link_libraries(${name} PRIVATE lt_flags ${a_LIBS})
  set_property(GLOBAL APPEND PROPERTY ${group} $<TARGET_OBJECTS:${name}>)
endfunction()

# lt_level(target level): compiles the target's files as kernels for one level of instructions.
function(lt_level target level)
  target_link_libraries(${target} PRIVATE lt_kernel_flags)
  target_compile_definitions(${target} PRIVATE LT_LEVEL=${level})
  if(NOT level STREQUAL "plain")
    target_compile_options(${target} PRIVATE -march=x86-64-${level}
      $<$<STREQUAL:${level},v4>:-mprefer-vector-width=512>)
  endif()
endfunction()
