# cmake/LtCuda.cmake: finds what the CUDA backend is built with, and compiles .cu files.
#
# nvcc compiles for the processors of LT_CUDA_ARCHS and, as PTX, for those to come; the runtime is
# linked statically. NVIDIA's headers alone are enough for the specs, which run the same files on
# the CPU (spec/cuda).

set(LT_CUDA_ARCHS "75;80;90" CACHE STRING "GPUs to compile for: compute capabilities without dot")

# Sets LT_WITH_CUDA, LT_WITH_NCCL, LT_NVCC, LT_CUDA_INCLUDE, LT_CUDNN_INCLUDE, LT_NCCL_INCLUDE and
# LT_WITH_CUDA_EMULATED.
macro(lt_part_cuda)
  set(LT_WITH_CUDA 0)
  set(LT_WITH_NCCL 0)
  set(LT_WITH_CUDA_EMULATED 0)
  set(cuda_homes $ENV{CUDA_HOME} /usr/local/cuda /opt/cuda)
  find_program(LT_NVCC nvcc HINTS ${cuda_homes} PATH_SUFFIXES bin)
  get_filename_component(nvcc_home "${LT_NVCC}" REALPATH)
  get_filename_component(nvcc_home "${nvcc_home}/../.." ABSOLUTE)
  find_path(LT_CUDA_INCLUDE cuda_runtime_api.h HINTS ${nvcc_home} ${cuda_homes}
    PATH_SUFFIXES include targets/x86_64-linux/include)
  foreach(library CUDNN NCCL) # else without it
    string(TOLOWER ${library} header)
    find_path(LT_${library}_INCLUDE ${header}.h HINTS ${LT_CUDA_INCLUDE})
  endforeach()
  mark_as_advanced(LT_NVCC LT_CUDA_INCLUDE LT_CUDNN_INCLUDE LT_NCCL_INCLUDE)
  if(LT_CUDA STREQUAL "OFF")
    lt_say("✗" "cuda devices" "switched off (LT_CUDA=OFF)")
  elseif(LT_NVCC AND LT_CUDA_INCLUDE AND NOT LT_SANITIZE)
    set(LT_WITH_CUDA 1)
    list(JOIN LT_CUDA_ARCHS ", " said)
    lt_say("✓" "cuda devices" "${LT_NVCC}, compute capability ${said} and later")
    if(LT_NCCL STREQUAL "OFF")
      lt_say("✗" "NCCL between them" "switched off (LT_NCCL=OFF)")
    elseif(LT_NCCL_INCLUDE)
      set(LT_WITH_NCCL 1)
      lt_say("✓" "NCCL between them" "headers in ${LT_NCCL_INCLUDE}")
    elseif(LT_NCCL STREQUAL "ON")
      lt_lack("nccl.h of NCCL (LT_NCCL=ON)" libnccl-dev)
    else()
      lt_say("✗" "NCCL between them" "no nccl.h found (NVIDIA's libnccl-dev, PyPI's nvidia-nccl-cu13)")
    endif()
  elseif(LT_CUDA STREQUAL "ON")
    lt_lack("nvcc of the CUDA Toolkit (LT_CUDA=ON)" "")
  else()
    lt_say("✗" "cuda devices" "no nvcc found (the CUDA Toolkit, developer.nvidia.com/cuda-downloads)")
  endif()
endmacro()

# For the specs: C++ and the headers. After lt_part_specs.
macro(lt_part_cuda_emulated)
  if(LT_WITH_SPECS AND LT_CUDA_INCLUDE AND NOT LT_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    check_language(CXX)
    if(CMAKE_CXX_COMPILER)
      enable_language(CXX)
      if(LT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
        set(CMAKE_CXX_COMPILER_LAUNCHER ${LT_CCACHE})
      endif()
      set(LT_WITH_CUDA_EMULATED 1)
      lt_say("✓" "tests of cuda devices" "on the CPU, with headers in ${LT_CUDA_INCLUDE}")
    endif()
  endif()
  if(NOT LT_WITH_CUDA_EMULATED)
    # What an earlier configuration has built would be run, and grow stale.
    file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/spec/cuda/backends)
    lt_say("✗" "tests of cuda devices" "need NVIDIA's headers, C++ and the tests in C")
  endif()
endmacro()

# lt_cuda_objects(VARIABLE FILES...): compiled by nvcc; their objects are listed in the variable.
function(lt_cuda_objects variable)
  set(codes "")
  foreach(arch IN LISTS LT_CUDA_ARCHS)
    list(APPEND codes -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  list(GET LT_CUDA_ARCHS -1 last)
  list(APPEND codes -gencode arch=compute_${last},code=compute_${last})
  set(objects "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.log
        ${CMAKE_C_COMPILER_LAUNCHER} ${LT_NVCC} -std=c++17 -O3 ${codes} --compress-mode=size -Xptxas -v
        -Xcompiler -fPIC,-fvisibility=hidden,-O2 -I ${PROJECT_SOURCE_DIR}/runtime
        -I ${PROJECT_SOURCE_DIR}/runtime/include -I ${LT_GENERATED} -I ${LT_GENERATED}/include
        -MD -MF ${object}.d -MT ${object} -c ${CMAKE_CURRENT_SOURCE_DIR}/${file} -o ${object}
      DEPENDS ${file} DEPFILE ${object}.d
      COMMENT "Compiling ${file} for GPUs" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
