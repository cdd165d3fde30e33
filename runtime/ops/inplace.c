/* runtime/ops/inplace.c: which in-place writes are allowed, and errors of stale views. */
#include "ops/inplace.h"

#include <stdio.h>
#include <string.h>

#include "base/script_lines.h"
#include "ops/node.h"

static bool stale(lt_ctx *c, const lt_tensor *t) {
  const lt_storage *s = t->storage;
  const lt_node *n = (const lt_node *)t->node;
  char line[128], made[144] = "", wrote[128];
  if (n != NULL)
    snprintf(made, sizeof made, " was made at %s, and its memory",
             lt_line_text(c, n->line, line, sizeof line));
  return lt_fail(
      c, LT_EVERSION,
      "%s: this view of %s%s was written in place since by %s at %s; make the view again "
      "after the write",
      c->op, LT_TENSOR_STR(t), made, s->writer != NULL ? s->writer : "a writer",
      lt_line_text(c, s->writer_line, wrote, sizeof wrote));
}

/* A view without history goes stale when its memory gets one: it would pass no gradient on. With
   history, any write since makes it stale; without, only one that was recorded. Views are renewed
   from their base when that is exact, so that scripts rarely see the error. */
bool lt_check_view(lt_ctx *c, lt_tensor *t) {
  if ((t->flags & LT_IS_VIEW) == 0 || !c->modes.grad) return true;
  uint64_t version = t->node != NULL ? t->storage->version : t->storage->recorded;
  bool fresh = t->node != NULL ? t->view_version == version : t->view_version >= version;
  return fresh || (lt_ok(c) && lt_view_renew(c, t)) || (lt_ok(c) && stale(c, t));
}

/* The order is from what is never possible (memory that is not ours to write, places that are one
   element) to what the tape forbids. A leaf must not be written in grad mode: its gradient would be
   that of a value that no longer exists. */
bool lt_check_writable(lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in) {
  if (t->storage->read_only)
    return lt_fail(c, LT_EVERSION,
                   "%s: cannot write into %s in place: its memory is another library's, which "
                   "lends it read-only; write x:clone() first", c->op, LT_TENSOR_STR(t));
  if ((t->flags & LT_VIEW_COPIED) != 0)
    return lt_fail(c, LT_EVERSION,
                   "%s: view copied here: write x:reshape() to say that a copy is meant", c->op);
  for (int k = 0; k < t->ndim; k++)
    if (t->stride[k] == 0 && t->size[k] > 1)
      return lt_fail(c, LT_EVERSION,
                     "%s: cannot write into %s in place: dim %d is repeated without memory of its "
                     "own; write x:clone() first", c->op, LT_TENSOR_STR(t), k + 1);
  if (!c->modes.grad) return true;
  if ((t->flags & LT_REQUIRES_GRAD) != 0)
    return lt_fail(c, LT_EVERSION,
                   "%s: in-place write into a leaf that requires grad; do it under lt.no_grad()",
                   c->op);
  if ((t->flags & LT_VIEW_UNSEEN) != 0)
    return lt_fail(c, LT_EVERSION,
                   "%s: in-place write, in grad mode, into a view that was made under no_grad of "
                   "something with history: do both in the same mode, or write into x:detach()",
                   c->op);
  if ((t->flags & LT_IS_VIEW) == 0) return true;
  bool history = t->node != NULL;
  for (int k = 0; k < n_in && !history; k++) history = in[k] != NULL && lt_requires_grad(in[k]);
  return !history ||
         lt_fail(c, LT_EVERSION,
                 "%s: in-place write into a view of something with history; assign with "
                 "x[i] = v, or write x:clone() first",
                 c->op);
}

/* Casts of leaves are cached by (storage id, version, dtype, grad mode) in the ctx. A weight that
   is used by several layers, or in several steps of a recurrent one, is cast once a step; a write
   to it, which changes its version, makes the cast old. */
enum { CACHE_SIZE = 256 };

typedef struct entry {
  uint64_t storage, version;
  int64_t offset;
  lt_shape shape;
  int64_t stride[LT_MAX_DIMS];
  bool grad;
  lt_tensor *cast;
} entry;

static void forget(lt_ctx *c, entry *cache) {
  for (int k = 0; k < CACHE_SIZE; k++) {
    lt_tensor *cast = cache[k].cast;
    cache[k].cast = NULL;
    lt_release(c, cast);
  }
}

void lt_autocast_forget(lt_ctx *c) {
  if (c->slot[LT_SLOT_OPS] != NULL) forget(c, c->slot[LT_SLOT_OPS]);
}

void lt_autocast_forget_of(lt_ctx *c, const lt_storage *s) {
  entry *cache = c->slot[LT_SLOT_OPS], *e = cache != NULL ? &cache[s->id % CACHE_SIZE] : NULL;
  if (e == NULL || e->cast == NULL || e->storage != s->id) return;
  lt_tensor *cast = e->cast;
  e->cast = NULL;
  lt_release(c, cast);
}

static void cache_drop(lt_ctx *c, void *slot) {
  entry *cache = slot;
  forget(c, cache);
  lt_free(c, cache, CACHE_SIZE * sizeof *cache);
}

/* Whether `e` is this leaf's cast. The storage's id is never used again, unlike its address, and
   its version changes with each write. Two leaves may share a storage, and each wants its own
   gradient: a recorded cast must lead to this very tensor, and to a node that no backward has used
   up. */
static bool is_cast_of(const lt_ctx *c, const entry *e, const lt_tensor *x, lt_dtype dtype) {
  if (e->cast == NULL || e->storage != x->storage->id || e->version != x->storage->version ||
      e->grad != c->modes.grad || (lt_dtype)e->cast->dtype != dtype)
    return false;
  const lt_node *n = (const lt_node *)e->cast->node;
  if (n != NULL) return !n->used && n->edges[0].target == &x->object;
  return e->offset == x->offset && lt_shape_equal(e->shape, lt_tensor_shape(x)) &&
         memcmp(e->stride, x->stride, (size_t)x->ndim * sizeof *x->stride) == 0;
}

/* Direct mapping by storage id: 256 places hold the weights of most models; of a larger one some
   are cast twice a step, as without a cache (PyTorch's autocast has the same cache, cleared at the
   end of the context). */
lt_tensor *lt_autocast_to(lt_ctx *c, lt_tensor *x, lt_dtype dtype) {
  if ((x->flags & LT_REQUIRES_GRAD) == 0) return lt_cast(c, x, dtype);
  entry *cache = c->slot[LT_SLOT_OPS];
  if (cache == NULL) {
    c->slot[LT_SLOT_OPS] = cache = lt_alloc(c, CACHE_SIZE * sizeof *cache);
    c->slot_drop[LT_SLOT_OPS] = cache_drop;
    if (cache == NULL) return NULL;
  }
  entry *e = &cache[x->storage->id % CACHE_SIZE];
  if (is_cast_of(c, e, x, dtype)) /* the frame's too: a neighbour may take the place at once */
    return lt_frame_add(c, lt_retain(e->cast)) ? e->cast : NULL;
  lt_tensor *cast = lt_cast(c, x, dtype);
  if (cast == NULL) return NULL;
  lt_release(c, e->cast);
  *e = (entry){.storage = x->storage->id, .version = x->storage->version, .offset = x->offset,
               .shape = lt_tensor_shape(x), .grad = c->modes.grad, .cast = lt_retain(cast)};
  memcpy(e->stride, x->stride, sizeof e->stride);
  return cast;
}
