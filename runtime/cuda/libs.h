/* runtime/cuda/libs.h: NVIDIA's libraries, opened by dlopen at first use: they are large, start-up
   must not wait for them, and one build serves machines with and without them. Types are those of
   NVIDIA's headers. */
#ifndef LT_CUDA_LIBS_H
#define LT_CUDA_LIBS_H

#include <cublasLt.h>

#include "cuda/cuda.h"

/* One member a row of libs.def. */
typedef struct lt_cuda_libs {
#define LT_LIB(library, name) decltype(::name) *name;
#include "cuda/libs.def"
} lt_cuda_libs;

enum { LT_CUDA_WHY = 256 };

/* cuBLASLt; NULL: `why` (which may be NULL) of LT_CUDA_WHY bytes says what is missing or too old.
   Looked for in LTRAIN_CUDA_LIBS (a folder), by the loader, in CUDA_HOME, /usr/local/cuda, and in
   the packages nvidia-* of the Python environment. Any thread. */
const lt_cuda_libs *lt_cuda_cublaslt(char *why);

#endif
