/* runtime/cpu/lines.c: iteration over one tensor with its dims in a chosen order. */
#include "cpu/lines.h"

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
