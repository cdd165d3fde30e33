/* runtime/cpu/dim_order.c: iteration over a tensor with its dims in a chosen order.

   Reductions and scans walk one dim in its order, whereas tile.c may reorder all: here the caller
   says which dim comes last. */
#include "cpu/dim_order.h"

#include <string.h>

void LT_CPU(lt_iter_dims)(lt_iter *it, const lt_tensor *t, int n, const int *dims) {
  lt_operand *o = &it->operand[0];
  int top = -1;
  it->n = 1;
  it->numel = 1;
  o->data = lt_data(t);
  o->dtype = (lt_dtype)t->dtype;
  for (int k = 0; k < n; k++) {
    int64_t size = t->size[dims[k]], stride = t->stride[dims[k]];
    it->numel *= size;
    if (size == 1) continue;
    bool merge = top >= 0 && o->stride[top] == stride * size;
    if (!merge) top++;
    it->size[top] = merge ? it->size[top] * size : size;
    o->stride[top] = stride;
  }
  if (top < 0) it->size[++top] = 1, o->stride[top] = 1;
  it->ndim = top + 1;
  o->linear = it->ndim == 1 && o->stride[0] == 1;
}

/* Where values can lie as they are, the store has nothing to do: they are copied there. */
#define PUT(suffix, type, own)                                                              \
  void LT_CPU(lt_put_##suffix)(const lt_iter *it, int k, int64_t at, int64_t n,             \
                               const type *v) {                                             \
    type *out = LT_CPU(lt_target)(it, k, at, own, NULL);                                    \
    if (out != NULL)                                                                        \
      memcpy(out, v, (size_t)n * sizeof *v);                                                \
    else                                                                                    \
      LT_CPU(lt_store_##suffix)(it, k, at, n, v);                                           \
  }
PUT(f32, float, LT_F32)
PUT(f64, double, LT_F64)
PUT(i64, int64_t, LT_I64)
#undef PUT
