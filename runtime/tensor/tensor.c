/* runtime/tensor/tensor.c: creation and destruction of tensors. */
#include "tensor/tensor.h"

#include <string.h>

void lt_hooks_drop(lt_ctx *c, lt_hook *hooks) {
  while (hooks != NULL) {
    lt_hook *next = hooks->next;
    if (hooks->drop != NULL) hooks->drop(c, hooks->ud);
    c->hooks_after -= hooks->after;
    lt_free(c, hooks, sizeof *hooks);
    hooks = next;
  }
}

/* An intrusive doubly linked list: a tensor leaves it in O(1) when it is destroyed, wherever it
   is. */
void lt_tensor_note_grad(lt_ctx *c, lt_tensor *t) {
  if (t->grad == NULL || t->graded_link != NULL) return;
  t->next_graded = c->graded;
  t->graded_link = &c->graded;
  if (c->graded != NULL) c->graded->graded_link = &t->next_graded;
  c->graded = t;
}

static void unlink_graded(lt_tensor *t) {
  if (t->graded_link == NULL) return;
  *t->graded_link = t->next_graded;
  if (t->next_graded != NULL) t->next_graded->graded_link = t->graded_link;
  t->graded_link = NULL;
}

void lt_drop_grads(lt_ctx *c) {
  /* Releasing a gradient may destroy tensors, this one among them, and so change the list: it is
     read anew from its head each time, and the tensor is unlinked first. */
  for (lt_tensor *t; (t = c->graded) != NULL;) {
    lt_tensor *grad = t->grad;
    unlink_graded(t);
    t->grad = NULL;
    lt_release(c, grad); /* the tensor with it, perhaps */
  }
}

static void drop(lt_ctx *c, lt_object *object) {
  lt_tensor *t = (lt_tensor *)object;
  unlink_graded(t);
  lt_storage_release(c, t->storage);
  lt_release(c, t->node);
  lt_release(c, t->base);
  lt_release(c, t->grad);
  lt_hooks_drop(c, t->hooks);
  lt_free(c, t, sizeof *t);
}

/* Strides of dims of size 1 mean nothing, and an empty tensor is contiguous whatever its
   strides. */
static bool is_contiguous(const lt_tensor *t) {
  int64_t expected = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->size[i] == 1) continue;
    if (t->stride[i] != expected) return t->numel == 0;
    expected *= t->size[i];
  }
  return true;
}

void lt_tensor_set_shape(lt_tensor *t, int ndim, const int64_t *size, const int64_t *stride) {
  t->ndim = (int8_t)ndim;
  t->numel = 1;
  for (int i = 0; i < ndim; i++) t->size[i] = size[i], t->numel *= size[i];
  if (stride != NULL) {
    memcpy(t->stride, stride, (size_t)ndim * sizeof *stride);
    t->contiguous = is_contiguous(t);
  } else {
    lt_shape_strides(lt_shape_of(ndim, size), t->stride);
    t->contiguous = true;
  }
}

lt_tensor *lt_tensor_make(lt_ctx *c, lt_storage *storage, lt_dtype dtype, int ndim,
                          const int64_t *size, const int64_t *stride, int64_t offset) {
  lt_tensor *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  t->object = (lt_object){.refs = 1, .drop = drop};
  t->storage = lt_storage_retain(storage);
  t->dtype = (int8_t)dtype;
  t->offset = offset;
  lt_tensor_set_shape(t, ndim, size, stride);
  return lt_frame_add(c, t) ? t : NULL;
}

/* At the end: hooks run in the order of their registration, as in PyTorch. */
void lt_tensor_add_hook(lt_tensor *t, lt_hook *hook) {
  lt_hook **link = &t->hooks;
  while (*link != NULL) link = &(*link)->next;
  *link = hook;
}

lt_dtype lt_tensor_dtype(const lt_tensor *t) { return (lt_dtype)t->dtype; }
int lt_tensor_ndim(const lt_tensor *t) { return t->ndim; }
int64_t lt_tensor_size(const lt_tensor *t, int dim) {
  return dim >= 0 && dim < t->ndim ? t->size[dim] : 0;
}
int64_t lt_tensor_stride(const lt_tensor *t, int dim) {
  return dim >= 0 && dim < t->ndim ? t->stride[dim] : 0;
}
lt_device lt_tensor_device(const lt_tensor *t) { return t->storage->device; }
