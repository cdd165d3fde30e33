/* spec/cuda/ptx_functions.h: the kernels of ptx_math.cu as nvcc compiled them, made C by
   ptx_to_c.lua. */
#ifndef LT_SPEC_PTX_FUNCTIONS_H
#define LT_SPEC_PTX_FUNCTIONS_H

typedef struct ptx_function {
  const char *name;
  void (*run)(const void *v, void *y);
  void (*fused)(const void *v, void *y); /* with the loose sums fused; else `run` */
  int loose;                             /* sums of a product that ptxas may fuse, or not */
} ptx_function;

extern const ptx_function ptx_functions[]; /* the last one has no name */

#endif
