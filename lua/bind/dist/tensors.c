/* lua/bind/dist/tensors.c: collectives on tensors as scripts hold them: strided, with a history.
   What is passed to comm/ lies close together, on the device where it was. */
#include "bind/dist/dist.h"

#include "ops/inplace.h"
#include "ops/node.h"

static lt_tensor *empty_like(lt_ctx *c, const lt_tensor *t) {
  return lt_tensor_empty(c, t->storage->device, (lt_dtype)t->dtype, t->ndim, t->size);
}

/* [world, *shape] */
static lt_tensor *empty_for_all(lt_ctx *c, const lt_collective *k, const lt_tensor *t, int world) {
  int64_t size[LT_MAX_DIMS + 1] = {world};
  for (int i = 0; i < t->ndim; i++) size[i + 1] = t->size[i];
  if (t->ndim == LT_MAX_DIMS) {
    lt_fail(c, LT_ESHAPE, "%s: the result would have %d dims, at most %d are possible: %s", k->who,
            LT_MAX_DIMS + 1, LT_MAX_DIMS, LT_TENSOR_STR(t));
    return NULL;
  }
  return lt_tensor_empty(c, t->storage->device, (lt_dtype)t->dtype, t->ndim + 1, size);
}

/* [n, ..] of [world * n, ..] */
static lt_tensor *empty_for_one(lt_ctx *c, const lt_collective *k, const lt_tensor *t, int world) {
  int64_t size[LT_MAX_DIMS];
  if (t->ndim == 0 || t->size[0] % world != 0) {
    lt_fail(c, LT_ESHAPE, "%s: dim 1 must be a multiple of the %d ranks: got %s", k->who, world,
            LT_TENSOR_STR(t));
    return NULL;
  }
  memcpy(size, t->size, sizeof size);
  size[0] /= world;
  return lt_tensor_empty(c, t->storage->device, (lt_dtype)t->dtype, t->ndim, size);
}

/* Where the result will stand; NULL when this rank gets none, when comm/ makes it, or with a
   failure. */
static lt_tensor *place_for(lt_ctx *c, const lt_collective *k, lt_tensor *in, lt_group *g) {
  int world = lt_group_size(g);
  bool root = lt_group_rank(g) == k->root;
  switch (k->op) {
    case LT_COMM_ALL_REDUCE: return k->in_place ? in : empty_like(c, in);
    case LT_COMM_BROADCAST:
      return root ? lt_apply1(c, LT_OP_clone, 1, &in, &(lt_args_clone){.contiguous = true})
                  : empty_like(c, in);
    case LT_COMM_ALL_GATHER: return k->cat ? NULL : empty_for_all(c, k, in, world);
    case LT_COMM_REDUCE_SCATTER: return empty_for_one(c, k, in, world);
    case LT_COMM_GATHER: return root ? empty_for_all(c, k, in, world) : NULL;
    case LT_COMM_BARRIER:
    case LT_COMM_SCATTER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_ALL_TO_ALL:
    case LT_COMM_OP_COUNT: break;
  }
  lt_assert(c, k->op == LT_COMM_GATHER);
  return NULL;
}

static lt_work *start(lt_ctx *c, const lt_collective *k, lt_group *g, lt_tensor *in,
                      lt_tensor *out) {
  lt_origin at = lt_origin_of(&k->place);
  switch (k->op) {
    case LT_COMM_ALL_REDUCE: return lt_comm_all_reduce(c, g, in, out, k->reduce, at);
    case LT_COMM_BROADCAST: return lt_comm_broadcast(c, g, out, k->root, at);
    case LT_COMM_ALL_GATHER:
      return k->cat ? lt_comm_all_gather_cat(c, g, in, at) : lt_comm_all_gather(c, g, in, out, at);
    case LT_COMM_REDUCE_SCATTER: return lt_comm_reduce_scatter(c, g, in, out, k->reduce, at);
    case LT_COMM_GATHER: return lt_comm_gather(c, g, in, out, k->root, at);
    case LT_COMM_BARRIER: /* place_for has refused them */
    case LT_COMM_SCATTER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_ALL_TO_ALL:
    case LT_COMM_OP_COUNT: break;
  }
  return NULL;
}

static bool check(lt_ctx *c, const lt_collective *k) {
  const char *op = c->op;
  lt_tensor *x = k->x;
  c->op = k->who;
  bool ok = lt_check_view(c, x) && (!k->in_place || lt_check_writable(c, x, 1, &x));
  c->op = op;
  if (!ok) return false;
  bool linear = k->reduce == LT_COMM_SUM || k->reduce == LT_COMM_MEAN;
  if (k->record && k->op != LT_COMM_ALL_GATHER && !linear)
    return lt_fail(c, LT_EARG,
                   "%s: only sum and mean have gradients: write x:detach(), or sync_grads = false",
                   k->who);
  if (k->cat && x->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: cat = true needs a dim to concatenate along: got %s", k->who,
                   LT_TENSOR_STR(x));
  return true;
}

bool lt_collective_issue(lt_ctx *c, lt_collective *k, lt_group *g) {
  lt_modes modes = c->modes;
  lt_tensor *x = k->x;
  k->x = NULL;
  lt_collective asked = *k;
  asked.x = x;
  if (!lt_ok(c) || !check(c, &asked)) return false;
  c->modes.collective = true;
  lt_frame frame = lt_frame_open(c);
  c->modes.grad = c->modes.autocast = false;
  lt_tensor *in = lt_contiguous(c, x);
  lt_tensor *out = in != NULL ? place_for(c, k, in, g) : NULL;
  const char *op = c->op;
  c->op = k->who; /* who writes into `out` */
  lt_work *work = lt_ok(c) ? start(c, k, g, in, out) : NULL;
  c->op = op;
  c->modes = modes;
  if (work != NULL) {
    lt_hold(c, &k->held, g);
    k->held.work = work;
    k->x = lt_retain(x);
    k->out = lt_retain(out);
  }
  lt_frame_close(c, frame, 0, NULL);
  return work != NULL && lt_ok(c);
}

/* What came is in x's own memory, or goes there. */
static lt_tensor *into_place(lt_ctx *c, const lt_collective *k) {
  if (k->out == k->x)
    lt_storage_bump(c, k->x->storage);
  else if (!lt_copy_into(c, k->x, k->out))
    return NULL;
  return lt_frame_add(c, lt_retain(k->x)) ? k->x : NULL;
}

static lt_tensor *result_of(lt_ctx *c, const lt_collective *k) {
  if (k->in_place) return into_place(c, k);
  lt_tensor *y = k->cat ? lt_work_result(k->held.work) : k->out;
  return y != NULL && lt_frame_add(c, lt_retain(y)) ? y : NULL;
}

/* Where this rank's rows begin in what was joined. */
static int64_t offset_of(const lt_collective *k) {
  const int64_t *sizes = k->cat ? lt_work_extents(k->held.work) : NULL;
  int64_t offset = 0;
  for (int r = 0; sizes != NULL && r < lt_group_rank(k->held.group); r++) offset += sizes[r];
  return offset;
}

lt_tensor *lt_collective_finish(lt_ctx *c, lt_collective *k) {
  lt_tensor *y = NULL;
  if (k->held.work == NULL) {
    lt_fail(c, LT_EARG, "%s: the launch that it belongs to has ended", k->who);
  } else if (lt_work_wait(c, k->held.work)) {
    lt_modes modes = c->modes;
    const char *op = c->op;
    c->modes.collective = true;
    c->modes.grad = c->modes.autocast = false;
    c->op = k->who;
    y = result_of(c, k);
    c->modes = modes;
    c->op = op;
    if (y != NULL && k->record && !lt_collective_record(c, k, y, offset_of(k))) y = NULL;
  }
  lt_collective_drop(c, k);
  return y;
}

void lt_collective_drop(lt_ctx *c, lt_collective *k) {
  lt_let_go(c, &k->held);
  lt_release(c, k->x);
  lt_release(c, k->out);
  k->x = k->out = NULL;
}
