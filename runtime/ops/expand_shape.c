/* runtime/ops/expand_shape.c: composite view ops, written as reshape, permute and as_strided.

   None copies but `flip`. Offsets and strides of as_strided are those of a row-major tensor of x's
   shape; infer_memory.c carries them over to the strides that x really has, so that these
   definitions need not know whether x is a view. */
#include "ops/expand.h"

bool lt_expand_transpose(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_transpose *a = call->args;
  lt_tensor *x = call->in[0];
  *out = x->ndim == 0 ? lt_permute(c, x, (int[]){0})
                      : lt_transpose(c, x, (int)a->dim0, (int)a->dim1);
  return *out != NULL;
}

bool lt_expand_t(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  *out = lt_permute(c, call->in[0], call->in[0]->ndim == 2 ? (int[]){1, 0} : (int[]){0, 0});
  return *out != NULL;
}

/* A dim that is named but is not of size 1 stays, as in PyTorch, so that code for batches also runs
   with N = 1 or more. */
bool lt_expand_squeeze(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_squeeze *a = call->args;
  const lt_tensor *x = call->in[0];
  bool drop[LT_MAX_DIMS] = {false};
  for (int k = 0; k < x->ndim && a->dims.n < 0; k++) drop[k] = true;
  for (int k = 0; k < a->dims.n; k++) drop[a->dims.dim[k]] = true;
  lt_shape s = {0};
  for (int k = 0; k < x->ndim; k++)
    if (!drop[k] || x->size[k] != 1) s.size[s.ndim++] = x->size[k];
  *out = lt_reshape(c, call->in[0], s);
  return *out != NULL;
}

bool lt_expand_unsqueeze(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_unsqueeze *a = call->args;
  lt_shape from = lt_tensor_shape(call->in[0]), s = {.ndim = from.ndim + 1};
  for (int k = 0, at = 0; k < s.ndim; k++) s.size[k] = k == a->dim ? 1 : from.size[at++];
  *out = lt_reshape(c, call->in[0], s);
  return *out != NULL;
}

/* A tensor without dims becomes [1]. Joined dims that are not contiguous make reshape copy. */
bool lt_expand_flatten(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_flatten *a = call->args;
  lt_shape from = lt_tensor_shape(call->in[0]), s = {0};
  int64_t joined = 1;
  for (int k = 0; k < from.ndim; k++) {
    if (k < a->start_dim || k > a->end_dim) {
      s.size[s.ndim++] = from.size[k];
      continue;
    }
    joined *= from.size[k];
    if (k == a->end_dim) s.size[s.ndim++] = joined;
  }
  if (from.ndim == 0) s = (lt_shape){.ndim = 1, .size = {1}};
  *out = lt_reshape(c, call->in[0], s);
  return *out != NULL;
}

/* The dims that are named go to their places, the others fill the rest in their order: NumPy's
   moveaxis. */
bool lt_expand_movedim(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_movedim *a = call->args;
  int n = call->in[0]->ndim, dims[LT_MAX_DIMS];
  bool moved[LT_MAX_DIMS] = {false}, taken[LT_MAX_DIMS] = {false};
  for (int k = 0; k < a->source.n; k++) {
    dims[a->destination.dim[k]] = (int)a->source.dim[k];
    taken[a->destination.dim[k]] = moved[a->source.dim[k]] = true;
  }
  for (int k = 0, from = 0; k < n; k++) {
    if (taken[k]) continue;
    while (moved[from]) from++;
    dims[k] = from++;
  }
  *out = lt_permute(c, call->in[0], dims);
  return *out != NULL;
}

/* A copy: strides never run backwards outside of this function. torch.flip copies too, for the same
   reason; NumPy's is a view. */
bool lt_expand_flip(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_flip *a = call->args;
  lt_shape s = lt_tensor_shape(call->in[0]);
  lt_args_as_strided w = {.size = {.n = s.ndim}, .stride = {.n = s.ndim}};
  bool back[LT_MAX_DIMS] = {false};
  for (int k = 0; k < a->dims.n && s.ndim > 0; k++) back[a->dims.dim[k]] = true;
  lt_shape_strides(s, w.stride.size);
  for (int k = 0; k < s.ndim; k++) {
    w.size.size[k] = s.size[k];
    if (!back[k] || s.size[k] < 2) continue;
    w.offset += (s.size[k] - 1) * w.stride.size[k];
    w.stride.size[k] = -w.stride.size[k];
  }
  lt_tensor *y = lt_apply1(c, LT_OP_as_strided, 1, call->in, &w);
  *out = y == NULL ? NULL
                   : lt_apply1(c, LT_OP_clone, 1, &y, &(lt_args_clone){.contiguous = true});
  return *out != NULL;
}

bool lt_expand_select(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_select *a = call->args;
  *out = lt_select(c, call->in[0], (int)a->dim, a->index);
  return *out != NULL;
}

bool lt_expand_narrow(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_narrow *a = call->args;
  *out = lt_slice(c, call->in[0], (int)a->dim, a->start, a->length, 1);
  return *out != NULL;
}

/* from..to, both included, every `step`: the last is the largest from + k step that is not beyond
   `to`. A single element has step 1, so that its stride stays that of the dim. */
bool lt_expand_slice(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_slice *a = call->args;
  int64_t n = a->to < a->from ? 0 : (a->to - a->from) / a->step + 1;
  *out = lt_slice(c, call->in[0], (int)a->dim, a->from, n, n > 1 ? a->step : 1);
  return *out != NULL;
}
