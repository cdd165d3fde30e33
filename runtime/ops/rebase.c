/* runtime/ops/rebase.c: views and the history of their base.

   A view made in grad mode knows its base, the tensor whose memory it shows. A write into such a
   view becomes part of the base's history (the base with a strided part replaced), and a view whose
   memory was written takes its history from the base again: it is as_strided of it. That is exact
   where the base lies row-major and the view has no element twice; elsewhere the write and the
   use are refused (ops/inplace.c). A base is never a view, so that there are no chains. */
#include <string.h>

#include "ops/inplace.h"
#include "ops/node.h"

lt_tensor *lt_base_of_view(const lt_ctx *c, lt_tensor *x) {
  if (!c->modes.grad || !lt_dtype_is_float((lt_dtype)x->dtype)) return NULL;
  return (x->flags & LT_IS_VIEW) != 0 ? x->base : x;
}

/* Whether no two places of `t` are one element: sufficient, not necessary. Each stride must exceed
   all that the smaller ones reach together, which is so for every view that slicing and permuting
   make of a contiguous base; as_strided can make others, which are refused. */
static bool apart(const lt_tensor *t) {
  for (int k = 0; k < t->ndim; k++) {
    int64_t reach = 0;
    if (t->size[k] == 1) continue;
    for (int j = 0; j < t->ndim; j++) {
      if (j == k || t->size[j] == 1 || t->stride[j] > t->stride[k]) continue;
      if (t->stride[j] == t->stride[k]) return false;
      reach += (t->size[j] - 1) * t->stride[j];
    }
    if (t->stride[k] <= reach) return false;
  }
  return true;
}

/* Where `t` is in its base; false when it has none or the place cannot be said exactly. */
static bool place_in_base(const lt_tensor *t, lt_args_as_strided *w) {
  const lt_tensor *base = t->base;
  if (base == NULL || base->storage != t->storage || base->dtype != t->dtype ||
      !base->contiguous || t->numel == 0 || (t->flags & LT_REQUIRES_GRAD) != 0 || !apart(t))
    return false;
  *w = (lt_args_as_strided){
      .size = {.n = t->ndim}, .stride = {.n = t->ndim}, .offset = t->offset - base->offset};
  memcpy(w->size.size, t->size, sizeof t->size);
  memcpy(w->stride.size, t->stride, sizeof t->stride);
  return true;
}

/* lt_record for a call that no kernel ran: only its history is wanted. */
static bool record(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args,
                   lt_tensor *out) {
  const lt_op_info *info = &lt_ops[op];
  const lt_call call = {.op = (int)op, .n_in = n_in, .n_out = 1, .in = in, .out = &out,
                        .args = args, .args_size = lt_kinds[info->kind].args_size};
  return lt_record(c, &call, info, NULL);
}

/* The view's values are in the shared memory already; only the node changes, to as_strided of the
   base as it now is. A base without history leaves the view without. */
bool lt_view_renew(lt_ctx *c, lt_tensor *t) {
  lt_args_as_strided w;
  if (!place_in_base(t, &w)) return false;
  if (lt_requires_grad(t->base)) {
    if (!record(c, LT_OP_as_strided, 1, &t->base, &w, t)) return false;
  } else {
    lt_release(c, t->node);
    t->node = NULL;
  }
  t->view_version = t->storage->version;
  return true;
}

bool lt_writes_base(const lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in) {
  lt_args_as_strided w;
  if (!c->modes.grad || (t->flags & LT_IS_VIEW) == 0 || t->base == NULL) return false;
  bool history = t->node != NULL || t->base->node != NULL || lt_recording(c, n_in, in);
  return history && (t->base->flags & LT_REQUIRES_GRAD) == 0 && place_in_base(t, &w);
}

/* PyTorch's CopySlices: the base's new history is as_strided_scatter(old base, value), whose
   derivative sends the part's gradient to `value` and zeros there to the old base. The write itself
   runs without recording. */
bool lt_view_write(lt_ctx *c, lt_tensor *t, lt_tensor *value) {
  lt_args_as_strided w;
  value = lt_cast(c, value, (lt_dtype)t->dtype);
  if (value == NULL || !place_in_base(t, &w)) return false;
  c->modes.grad = false;
  bool ok = lt_copy_into(c, t, value);
  c->modes.grad = true;
  if (!ok) return false;
  t->storage->writer = c->op;
  const lt_args_as_strided_scatter scatter = {
      .size = w.size, .stride = w.stride, .offset = w.offset};
  lt_tensor *in[] = {t->base, value};
  if (lt_recording(c, 2, in) && !record(c, LT_OP_as_strided_scatter, 2, in, &scatter, t->base))
    return false;
  return lt_view_renew(c, t);
}
