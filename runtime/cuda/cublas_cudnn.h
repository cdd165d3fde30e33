/* runtime/cuda/cublas_cudnn.h: NVIDIA's libraries, opened by dlopen at first use: they are large,
   start-up must not wait for them, and one build serves machines with and without them. Types are
   those of NVIDIA's headers. */
#ifndef LT_CUDA_CUBLAS_CUDNN_H
#define LT_CUDA_CUBLAS_CUDNN_H

#include <cublasLt.h>

#include "cuda/cuda.h"
#include "cuda/library.h"

/* cuBLASLt: one member a row of cublas_cudnn.def. */
typedef struct lt_cuda_libs {
#define LT_LIB(library, name) LT_LIB_##library(name)
#define LT_LIB_cublasLt(name) decltype(::name) *name;
#define LT_LIB_cudnn(name)
#include "cuda/cublas_cudnn.def"
#undef LT_LIB_cublasLt
#undef LT_LIB_cudnn
} lt_cuda_libs;

/* cuBLASLt; NULL: `why` (which may be NULL) of LT_CUDA_WHY bytes says what is missing or too old.
   Any thread. */
const lt_cuda_libs *lt_cuda_cublaslt(char *why);

/* Fills in cuDNN's functions, by the rows of cublas_cudnn.def; false: `why` as above. Untyped: its
   headers may be missing where this is built. Any thread. */
bool lt_cuda_cudnn(void **functions, char *why);

#endif
