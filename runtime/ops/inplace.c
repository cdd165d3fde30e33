/* runtime/ops/inplace.c: what in-place writes may touch, and how stale views are told. */
#include "ops/inplace.h"

#include "base/lines.h"
#include "ops/node.h"

static bool stale(lt_ctx *c, const lt_tensor *t) {
  const lt_storage *s = t->storage;
  char made[128], wrote[128];
  const lt_node *n = (const lt_node *)t->node;
  return lt_fail(c, LT_EVERSION,
                 "%s: this view of %s was made at %s, and its memory was written in place since by "
                 "%s at %s; make the view again after the write",
                 c->op, LT_TENSOR_STR(t), lt_line_text(c, n->line, made, sizeof made),
                 s->writer != NULL ? s->writer : "a writer",
                 lt_line_text(c, s->writer_line, wrote, sizeof wrote));
}

bool lt_check_view(lt_ctx *c, const lt_tensor *t) {
  if (t->node == NULL || (t->flags & LT_IS_VIEW) == 0 || !c->modes.grad) return true;
  return t->view_version == t->storage->version || stale(c, t);
}

bool lt_check_writable(lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in) {
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
  if ((t->flags & LT_IS_VIEW) == 0) return true;
  bool history = t->node != NULL;
  for (int k = 0; k < n_in && !history; k++) history = in[k] != NULL && lt_requires_grad(in[k]);
  return !history || lt_fail(c, LT_EVERSION,
                             "%s: in-place write into a view of something with history; assign with "
                             "x[i] = v, or write x:clone() first", c->op);
}

/* Casts of leaves are cached by (storage id, version, dtype, grad mode) in the ctx. */
enum { CACHE_SIZE = 256 };

typedef struct entry {
  uint64_t storage, version;
  int64_t offset;
  lt_dtype dtype;
  bool grad;
  lt_tensor *cast;
} entry;

static void cache_drop(lt_ctx *c, void *slot) {
  entry *cache = slot;
  for (int k = 0; k < CACHE_SIZE; k++) lt_release(c, cache[k].cast);
  lt_free(c, cache, CACHE_SIZE * sizeof *cache);
}

lt_tensor *lt_autocast_to(lt_ctx *c, lt_tensor *x, lt_dtype dtype) {
  if ((x->flags & LT_REQUIRES_GRAD) == 0) return lt_cast(c, x, dtype);
  entry *cache = c->slot[LT_SLOT_OPS];
  if (cache == NULL) {
    c->slot[LT_SLOT_OPS] = cache = lt_alloc(c, CACHE_SIZE * sizeof *cache);
    c->slot_drop[LT_SLOT_OPS] = cache_drop;
    if (cache == NULL) return NULL;
  }
  entry *e = &cache[x->storage->id % CACHE_SIZE];
  if (e->cast != NULL && e->storage == x->storage->id && e->version == x->storage->version &&
      e->offset == x->offset && e->dtype == dtype && e->grad == c->modes.grad &&
      e->cast->numel == x->numel && !(e->cast->node != NULL && ((lt_node *)e->cast->node)->used))
    return e->cast;
  lt_tensor *cast = lt_cast(c, x, dtype);
  if (cast == NULL) return NULL;
  lt_release(c, e->cast);
  *e = (entry){.storage = x->storage->id, .version = x->storage->version, .offset = x->offset,
               .dtype = dtype, .grad = c->modes.grad, .cast = lt_retain(cast)};
  return cast;
}
