/* runtime/cuda/attention_heads.cu: queries, keys and values as [B, H, T, E]. */
#include "cuda/attention.h"

/* Missing leading dims have size 1 and stride 0. */
lt_view lt_cuda_four_dims(const lt_view *v) {
  lt_view w = *v;
  int lead = 4 - v->ndim;
  w.ndim = 4;
  for (int d = 0; d < 4; d++) {
    w.size[d] = d < lead ? 1 : v->size[d - lead];
    w.stride[d] = d < lead ? 0 : v->stride[d - lead];
  }
  return w;
}

/* Strides in elements, of any layout: no copy is made here. */
bool lt_cuda_attention_heads(lt_ctx *c, lt_tensor *t, lt_cuda_heads *out) {
  lt_view v;
  if (!lt_cuda_view(c, t, &v)) return false;
  v = lt_cuda_four_dims(&v);
  *out = {v.data, v.dtype, v.stride[0], v.stride[1], v.stride[2], v.stride[3]};
  return true;
}
