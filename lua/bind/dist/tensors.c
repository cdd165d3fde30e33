/* lua/bind/dist/tensors.c: collectives on tensors of scripts, which may be strided and have a
   history. What is passed to comm/ is contiguous, on the device where it was. */
#include "bind/dist/dist.h"

#include "ops/inplace.h"
#include "ops/node.h"

/* The shape of what this rank gets: that of x, which says `fits`, or one made from it. The op
   counts are written out without a default, so that a new collective does not compile until its
   shape is decided. */
static lt_shape shape_of_result(lt_ctx *c, const lt_collective *k, const lt_tensor *x, int world) {
  lt_shape s = lt_tensor_shape(x);
  switch (k->op) {
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER: /* [world, ..] */
      if (x->ndim == LT_MAX_DIMS) {
        lt_fail(c, LT_ESHAPE, "%s: the result would have %d dims, at most %d are possible: %s",
                k->who, LT_MAX_DIMS + 1, LT_MAX_DIMS, LT_TENSOR_STR(x));
        return s;
      }
      memmove(s.size + 1, s.size, (size_t)s.ndim++ * sizeof *s.size);
      s.size[0] = world;
      return s;
    case LT_COMM_REDUCE_SCATTER: /* [n, ..] of [world * n, ..] */
    case LT_COMM_ALL_TO_ALL:
      if (k->rows == NULL && (x->ndim == 0 || x->size[0] % world != 0))
        lt_fail(c, LT_ESHAPE, "%s: dim 1 must be a multiple of the %d ranks: got %s", k->who, world,
                LT_TENSOR_STR(x));
      if (k->op == LT_COMM_REDUCE_SCATTER && lt_ok(c)) s.size[0] /= world;
      for (int r = 0; k->rows != NULL && r < world; r++)
        s.size[0] = (r > 0 ? s.size[0] : 0) + k->from[r];
      return s;
    case LT_COMM_ALL_REDUCE:
    case LT_COMM_BROADCAST:
    case LT_COMM_REDUCE: return s;
    case LT_COMM_SCATTER: /* [n, ..] of the root's [world * n, ..]; x of others is `out` */
      if (x != k->into && (x->ndim == 0 || x->size[0] % world != 0))
        lt_fail(c, LT_ESHAPE, "%s: dim 1 must be a multiple of the %d ranks: got %s", k->who, world,
                LT_TENSOR_STR(x));
      if (x != k->into && lt_ok(c)) s.size[0] /= world;
      return s;
    case LT_COMM_BARRIER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_OP_COUNT: break;
  }
  (void)lt_assert(c, false);
  return s;
}

/* Whether the result can come straight into the tensor that the script wants it in. */
static bool is_straight(const lt_ctx *c, const lt_collective *k, const lt_tensor *in) {
  const lt_tensor *into = k->into;
  return into->contiguous && lt_device_equal(into->storage->device, in->storage->device) &&
         (!k->in_place || into == in) && lt_ok(c);
}

/* Where the result will stand; NULL when this rank gets none, when comm/ makes it, or with a
   failure. Broadcast alone moves in place: the root copies its values first, so that it never sends
   from memory that it is about to overwrite. */
static lt_tensor *place_for(lt_ctx *c, const lt_collective *k, lt_tensor *in, lt_group *g) {
  bool root = lt_group_rank(g) == k->root;
  if (k->cat || (!root && (k->op == LT_COMM_GATHER || k->op == LT_COMM_REDUCE))) return NULL;
  lt_shape s = shape_of_result(c, k, in, lt_group_size(g));
  lt_tensor *out = k->into;
  if (out != NULL && (out->dtype != in->dtype || !lt_shape_equal(lt_tensor_shape(out), s)))
    lt_fail(c, LT_ESHAPE, "%s: out must be %s %s: got %s %s", k->who,
            lt_shape_text(s, (char[LT_SHAPE_TEXT]){0}), lt_dtype_name((lt_dtype)in->dtype),
            LT_TENSOR_STR(out), lt_dtype_name((lt_dtype)out->dtype));
  if (out == NULL || !is_straight(c, k, in))
    out = lt_tensor_empty(c, in->storage->device, (lt_dtype)in->dtype, s.ndim, s.size);
  if (k->op == LT_COMM_BROADCAST && root && out != NULL && !lt_copy_into(c, out, in)) return NULL;
  return lt_ok(c) ? out : NULL;
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
    case LT_COMM_SCATTER: return lt_comm_scatter(c, g, in, out, k->root, at);
    case LT_COMM_REDUCE: return lt_comm_reduce_to(c, g, in, out, k->reduce, k->root, at);
    case LT_COMM_ALL_TO_ALL:
      return lt_comm_all_to_all(c, g, in, out, k->rows, k->from, k->most, at);
    case LT_COMM_BARRIER: /* place_for has refused them */
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_OP_COUNT: break;
  }
  return NULL;
}

/* On all ranks alike, before anything is sent: a rank that raised later, alone, would leave the
   others waiting. */
static bool check(lt_ctx *c, const lt_collective *k) {
  const char *op = c->op;
  lt_tensor *x = k->x;
  c->op = k->who;
  bool ok =
      lt_check_view(c, x) &&
      (k->into == NULL || (lt_check_view(c, k->into) && lt_check_writable(c, k->into, 1, &x)));
  c->op = op;
  if (!ok) return false;
  bool linear =
      k->reduce == LT_COMM_NO_REDUCE || k->reduce == LT_COMM_SUM || k->reduce == LT_COMM_MEAN;
  if (k->record && k->into != NULL && !k->in_place)
    return lt_fail(c, LT_EARG, "%s: a result in `out` has no gradient: write x:detach()", k->who);
  if (k->record && !linear)
    return lt_fail(c, LT_EARG,
                   "%s: only sum and mean have gradients: write x:detach(), or sync_grads = false",
                   k->who);
  if (k->cat && x->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: cat = true needs a dim to concatenate along: got %s", k->who,
                   LT_TENSOR_STR(x));
  return true;
}

bool lt_collective_rows(lt_ctx *c, lt_collective *k, int n) {
  k->rows_bytes = 2 * (size_t)n * sizeof *k->rows;
  k->rows = lt_alloc(c, k->rows_bytes);
  if (k->rows == NULL) return false;
  k->from = k->rows + n;
  return true;
}

/* x and out stay referenced until the wait: an asynchronous collective reads and writes them while
   the script runs on, and may drop its own handles. A result that shares memory with x but is not x
   gets a copy of x to send from. */
bool lt_collective_issue(lt_ctx *c, lt_collective *k, lt_group *g) {
  lt_modes modes = c->modes;
  lt_collective asked = *k;
  lt_tensor *x = k->x;
  k->x = k->into = NULL;
  if (!lt_ok(c) || !check(c, &asked)) return false;
  c->modes.collective = true;
  lt_frame frame = lt_frame_open(c);
  c->modes.grad = c->modes.autocast = false;
  lt_tensor *in = lt_contiguous(c, x);
  if (in == x && asked.into != NULL && asked.into != x && asked.into->storage == x->storage)
    in = lt_apply1(c, LT_OP_clone, 1, &in, &(lt_args_clone){.contiguous = true});
  lt_tensor *out = in != NULL ? place_for(c, &asked, in, g) : NULL;
  const char *op = c->op;
  c->op = k->who; /* who writes into `out` */
  lt_work *work = lt_ok(c) ? start(c, k, g, in, out) : NULL;
  c->op = op;
  c->modes = modes;
  if (work != NULL) {
    lt_group_ref_set(c, &k->ref, g);
    k->ref.work = work;
    k->x = lt_retain(x);
    k->out = lt_retain(out);
    k->into = lt_retain(asked.into);
  }
  lt_frame_close(c, frame, 0, NULL);
  return work != NULL && lt_ok(c);
}

/* What came is in the memory that the script wants it in, or goes there. */
static lt_tensor *result_of(lt_ctx *c, const lt_collective *k) {
  lt_tensor *y = k->cat ? lt_work_result(k->ref.work) : k->out;
  if (y != NULL && k->into != NULL) {
    if (y == k->into)
      lt_storage_bump(c, y->storage);
    else if (!lt_copy_into(c, k->into, y))
      return NULL;
    y = k->into;
  }
  return y != NULL && lt_frame_add(c, lt_retain(y)) ? y : NULL;
}

/* Where this rank's rows begin in what was joined. */
static int64_t offset_of(const lt_collective *k) {
  const int64_t *sizes = k->cat ? lt_work_extents(k->ref.work) : NULL;
  int64_t offset = 0;
  for (int r = 0; sizes != NULL && r < lt_group_rank(k->ref.group); r++) offset += sizes[r];
  return offset;
}

/* The node of the tape is made here, not at the issue: only now are the sizes known of what other
   ranks sent. */
lt_tensor *lt_collective_finish(lt_ctx *c, lt_collective *k) {
  lt_tensor *y = NULL;
  if (k->ref.work == NULL) {
    lt_fail(c, LT_EARG, "%s: the launch that it belongs to has ended", k->who);
  } else if (lt_work_wait(c, k->ref.work)) {
    lt_modes modes = c->modes;
    const char *op = c->op;
    c->modes.collective = true;
    c->modes.grad = c->modes.autocast = false;
    c->op = k->who;
    y = result_of(c, k);
    c->modes = modes;
    c->op = op;
    if (k->record && y == NULL && lt_ok(c))
      y = lt_collective_record_zero(c, k);
    else if (k->record && y != NULL && !lt_collective_record(c, k, y, offset_of(k)))
      y = NULL;
  }
  lt_collective_drop(c, k);
  return y;
}

void lt_collective_drop(lt_ctx *c, lt_collective *k) {
  lt_group_ref_clear(c, &k->ref);
  lt_release(c, k->x);
  lt_release(c, k->out);
  lt_release(c, k->into);
  lt_free(c, k->rows, k->rows_bytes);
  k->x = k->out = k->into = NULL;
  k->rows = k->from = NULL;
}
