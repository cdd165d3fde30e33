/* runtime/cpu/tile.h: loading and storing tiles of any dtype and strides in a compute type.

   A kernel works on tiles of LT_TILE elements in f32, f64 or i64; these functions bring them in
   and out. Elements are counted in the order of the iteration (see lt_iter). */
#ifndef LT_CPU_TILE_H
#define LT_CPU_TILE_H

#include "base/threads.h"
#include "cpu/simd_level.h"

enum { LT_TILE = 512, LT_ITER_OPERANDS = 6 };

typedef enum lt_compute { LT_COMPUTE_F32, LT_COMPUTE_F64, LT_COMPUTE_I64 } lt_compute;

/* The compute type that holds values of a dtype. */
static inline lt_compute lt_compute_of(lt_dtype d) {
  return d == LT_F64 ? LT_COMPUTE_F64 : lt_dtype_is_float(d) ? LT_COMPUTE_F32 : LT_COMPUTE_I64;
}

/* Before a loop: no dependency between iterations, whatever the pointers look like. */
#ifdef __clang__
#define LT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LT_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* n-dimensional iteration over operands of one shape: dims sorted by the first operand's strides
   and merged where all operands allow it. */
typedef struct lt_operand {
  char *data;
  lt_dtype dtype;
  bool linear;                     /* element i is at data + i * size */
  int64_t stride[LT_MAX_DIMS];     /* in elements, in the order of the iteration */
} lt_operand;

typedef struct lt_iter {
  int ndim, n;
  int64_t numel;
  int64_t size[LT_MAX_DIMS];
  lt_operand operand[LT_ITER_OPERANDS];
} lt_iter;

/* Operand 0 decides the order. Each tensor is read with `shape`, broadcast. NULL tensors are
   skipped (their operand has data NULL). */
void LT_CPU(lt_iter_make)(lt_iter *it, lt_shape shape, int n, lt_tensor *const *tensors);

/* Elements start..start+n-1 of an operand, converted. `buffer` is of n; returns where the
   values are: the operand's own memory if it is of that type and they lie side by side there, else
   `buffer`. */
const float *LT_CPU(lt_load_f32)(const lt_iter *it, int k, int64_t start, int64_t n, float *buffer);
const double *LT_CPU(lt_load_f64)(const lt_iter *it, int k, int64_t start, int64_t n,
                                  double *buffer);
const int64_t *LT_CPU(lt_load_i64)(const lt_iter *it, int k, int64_t start, int64_t n,
                                   int64_t *buffer);

/* Where to compute results: the operand's own memory or `buffer`; then the store that converts
   (nothing to do in the first case). */
void *LT_CPU(lt_target)(const lt_iter *it, int k, int64_t start, lt_dtype computed, void *buffer);
void LT_CPU(lt_store_f32)(const lt_iter *it, int k, int64_t start, int64_t n, const float *from);
void LT_CPU(lt_store_f64)(const lt_iter *it, int k, int64_t start, int64_t n, const double *from);
void LT_CPU(lt_store_i64)(const lt_iter *it, int k, int64_t start, int64_t n, const int64_t *from);

#endif
