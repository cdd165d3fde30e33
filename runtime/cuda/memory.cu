/* runtime/cuda/memory.cu: empty, full, copies, casts and where, by the elementwise kernels.

   Every copy and cast is the row COPY of elementwise.cu, so that strided, broadcast and contiguous
   memory of any two dtypes have one kernel, but for transposes (transpose.cu). */
#include "cuda/elementwise.h"

LT_CUDA_KERNEL(empty) {
  (void)c, (void)call;
  return true;
}

/* `through` is the compute type that holds all values of both dtypes, as on the CPU. */
bool lt_cuda_move(lt_ctx *c, const lt_view *to, const lt_view *from) {
  lt_view views[2] = {*to, *from};
  lt_scalar none = {};
  lt_dtype through = lt_cast_through(from->dtype, to->dtype);
  return lt_cuda_row(c, LT_ROW_COPY, through, 2, views, nullptr, none, none);
}

/* A fill is a row without operands, whose number is an argument. */
bool lt_cuda_fill_view(lt_ctx *c, const lt_view *to, lt_scalar value) {
  lt_scalar none = {};
  value = lt_cuda_number_of(value, to->dtype);
  return lt_cuda_row(c, LT_ROW_FILL, lt_cuda_own(to->dtype), 1, to, nullptr, value, none);
}

static bool move(lt_ctx *c, lt_tensor *to, lt_tensor *from) {
  lt_view v[2];
  return lt_cuda_view(c, to, &v[0]) && lt_cuda_view(c, from, &v[1]) &&
         lt_cuda_move(c, &v[0], &v[1]);
}

static bool fill(lt_ctx *c, lt_tensor *t, lt_scalar value) {
  lt_view v;
  return lt_cuda_view(c, t, &v) && lt_cuda_fill_view(c, &v, value);
}

LT_CUDA_KERNEL(full) {
  return fill(c, call->out[0], lt_cuda_args<lt_args_create>(call)->fill_value);
}
LT_CUDA_KERNEL(fill) { return fill(c, call->out[0], lt_cuda_args<lt_args_fill>(call)->value); }
LT_CUDA_KERNEL(cast) { return move(c, call->out[0], call->in[0]); }
LT_CUDA_KERNEL(clone) { return move(c, call->out[0], call->in[0]); }
LT_CUDA_KERNEL(copy) { return move(c, call->out[0], call->in[1]); }

/* A strided view of `t`, which is row-major. The op's own check has made sure that the view stays
   within the tensor. */
static bool strided_view(lt_ctx *c, lt_tensor *t, const lt_sizes *size, const lt_sizes *stride,
                         int64_t offset, lt_view *out) {
  if (!lt_cuda_view(c, t, out)) return false;
  out->data = static_cast<char *>(out->data) + offset * lt_cuda_item_size(out->dtype);
  out->ndim = size->n;
  for (int d = 0; d < size->n; d++) out->size[d] = size->size[d], out->stride[d] = stride->size[d];
  return true;
}

/* Two launches: a copy, and the part over it; the stream keeps their order. */
LT_CUDA_KERNEL(as_strided_scatter) {
  const lt_args_as_strided_scatter *a = lt_cuda_args<lt_args_as_strided_scatter>(call);
  lt_view w, source;
  return move(c, call->out[0], call->in[0]) && lt_cuda_view(c, call->in[1], &source) &&
         strided_view(c, call->out[0], &a->size, &a->stride, a->offset, &w) &&
         lt_cuda_move(c, &w, &source);
}

LT_CUDA_KERNEL(as_strided_zero) {
  const lt_args_as_strided_zero *a = lt_cuda_args<lt_args_as_strided_zero>(call);
  lt_view w;
  return move(c, call->out[0], call->in[0]) &&
         strided_view(c, call->out[0], &a->size, &a->stride, a->offset, &w) &&
         lt_cuda_fill_view(c, &w, lt_cuda_number(0));
}

LT_CUDA_KERNEL(as_strided_backward) {
  const lt_args_as_strided_backward *a = lt_cuda_args<lt_args_as_strided_backward>(call);
  lt_view w, g;
  return fill(c, call->out[0], lt_cuda_number(0)) && lt_cuda_view(c, call->in[0], &g) &&
         strided_view(c, call->out[0], &a->size, &a->stride, a->offset, &w) &&
         lt_cuda_move(c, &w, &g);
}

/* Choosing between values is a row, too. */
LT_CUDA_KERNEL(where) {
  lt_view v[4];
  lt_scalar none = {};
  return lt_cuda_view(c, call->out[0], &v[0]) && lt_cuda_view(c, call->in[0], &v[1]) &&
         lt_cuda_view(c, call->in[1], &v[2]) && lt_cuda_view(c, call->in[2], &v[3]) &&
         lt_cuda_row(c, LT_ROW_WHERE, lt_cuda_own(v[0].dtype), 4, v, nullptr, none, none);
}

LT_CUDA_KERNEL(masked_fill) {
  lt_scalar value = lt_cuda_args<lt_args_masked_fill>(call)->value, none = {};
  lt_view v[3];
  if (!lt_cuda_view(c, call->out[0], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !lt_cuda_view(c, call->in[1], &v[2]))
    return false;
  value = lt_cuda_number_of(value, v[0].dtype);
  return lt_cuda_row(c, LT_ROW_MASKED_FILL, lt_cuda_own(v[0].dtype), 3, v, nullptr, value, none);
}
