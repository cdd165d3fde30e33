/* runtime/cpu/scratch.h: temporary memory and copies for kernels.

   All of it comes from the ctx's pool and belongs to the open frame: a kernel runs in one
   (lt_cpu_in_frame). Nothing here is recorded or dispatched. */
#ifndef LT_CPU_SCRATCH_H
#define LT_CPU_SCRATCH_H

#include "cpu/simd_level.h"

/* `n` elements, uninitialised, 64-byte aligned; NULL on failure. */
static inline void *lt_cpu_scratch(lt_ctx *c, lt_dtype dtype, int64_t n) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
  return t != NULL ? lt_data(t) : NULL;
}

/* dst = src, converted; any strides, same shape. */
static inline bool lt_cpu_move(lt_ctx *c, lt_tensor *dst, lt_tensor *src) {
  const lt_args_cast args = {.dtype = (lt_dtype)dst->dtype};
  const lt_call call = {.op = LT_OP_cast,
                        .n_in = 1,
                        .n_out = 1,
                        .in = &src,
                        .out = &dst,
                        .args = &args,
                        .args_size = sizeof args};
  return LT_CPU(lt_cpu_cast)(c, &call);
}

/* Whether `t` has this dtype and these strides (NULL: row-major). */
static inline bool lt_cpu_has_layout(const lt_tensor *t, lt_dtype dtype, const int64_t *stride) {
  if ((lt_dtype)t->dtype != dtype) return false;
  if (stride == NULL) return t->contiguous;
  for (int k = 0; k < t->ndim; k++)
    if (t->size[k] != 1 && t->stride[k] != stride[k]) return false;
  return true;
}

/* Where to compute a result that shall lie so: `out` itself, or else a new tensor that lt_cpu_move
   must bring into it. */
static inline lt_tensor *lt_cpu_result(lt_ctx *c, lt_tensor *out, lt_dtype dtype,
                                       const int64_t *stride) {
  if (lt_cpu_has_layout(out, dtype, stride)) return out;
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, out->ndim, out->size);
  if (t != NULL && stride != NULL) lt_tensor_set_shape(t, out->ndim, out->size, stride);
  return t;
}

/* `t` with this dtype and these dense strides (NULL: row-major): itself when it lies so, else a
   copy. An absent tensor stays absent. */
static inline lt_tensor *lt_cpu_laid_out(lt_ctx *c, lt_tensor *t, lt_dtype dtype,
                                         const int64_t *stride) {
  lt_tensor *copy = t != NULL ? lt_cpu_result(c, t, dtype, stride) : NULL;
  return copy == t || (copy != NULL && lt_cpu_move(c, copy, t)) ? copy : NULL;
}

static inline lt_tensor *lt_cpu_contiguous(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  return lt_cpu_laid_out(c, t, dtype, NULL);
}

/* Runs a kernel in a frame of its own, which frees its scratch. */
static inline bool lt_cpu_in_frame(lt_ctx *c, const lt_call *call,
                                   bool (*run)(lt_ctx *c, const lt_call *call)) {
  lt_frame frame = lt_frame_open(c);
  bool ok = run(c, call);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

#endif
