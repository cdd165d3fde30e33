/* runtime/cuda/library.h: one of NVIDIA's libraries, opened when it is first wanted. In C, for the
   backends of CUDA and of NCCL. */
#ifndef LT_CUDA_LIBRARY_H
#define LT_CUDA_LIBRARY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_CUDA_WHY = 256 };

/* `names` in the order of preference, the last one NULL. */
typedef struct lt_cuda_library {
  const char *called, *package, *const *names;
  void *handle;
  bool tried;
  char why[LT_CUDA_WHY]; /* a sentence on what is missing; "": nothing */
} lt_cuda_library;

/* Looked for in LTRAIN_CUDA_LIBS (a folder), by the loader, in CUDA_HOME, /usr/local/cuda, and in
   the packages nvidia-* of the Python environment; once. False: `why` says that there is none. */
bool lt_cuda_library_open(lt_cuda_library *l);
/* The function of that name; NULL, with a reason: the library is too old. */
void *lt_cuda_library_find(lt_cuda_library *l, const char *name);

#ifdef __cplusplus
}
#endif
#endif
