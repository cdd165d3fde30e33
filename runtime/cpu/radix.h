/* runtime/cpu/radix.h: sorting whole lines by their digits. */
#ifndef LT_CPU_RADIX_H
#define LT_CPU_RADIX_H

#include "base/ctx.h"
#include "tensor/dtype.h"

/* Below this many elements a line is sorted faster by comparing. */
enum { LT_RADIX_LEAST = 192 };

/* Lines of n values (f32, f64 or i64) and where they go: values in order, and where each stood. */
typedef struct lt_radix {
  const void *x;
  void *value;
  int64_t *index;
  int64_t lines, n;
  bool descending;
  lt_dtype dtype;
} lt_radix;

/* Bytes of scratch memory, 8-byte aligned, that sorting needs. */
size_t lt_radix_scratch(const lt_ctx *c, const lt_radix *r);

/* Stable: equal elements (0 and -0 are) keep their order; NaN counts as larger than every number.
   The result does not depend on the number of threads. */
void lt_radix_sort(lt_ctx *c, const lt_radix *r, void *scratch);

#endif
