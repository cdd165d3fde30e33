/* runtime/ops/recompute.c: values of the tape that are computed again.

   T. Chen and others, Training Deep Nets with Sublinear Memory Cost, 2016: of a part of a
   network only its inputs are kept; when backward comes to it the part runs again, with the
   random numbers and modes that it had.

   Of n equal layers in segments of sqrt(n) memory falls from n to about 2 sqrt(n), for one more
   forward pass, a third of the time of a step. What is replayed must be deterministic given modes
   and random numbers; that it saves values of the same dtypes and shapes is checked, not that they
   are equal. */
#include "ops/recompute.h"

#include <string.h>

static void drop(lt_ctx *c, lt_object *object) {
  lt_recompute *r = (lt_recompute *)object;
  for (int k = 0; k < r->n_inputs; k++) {
    lt_saved_free(c, &r->input[k].value);
    lt_release(c, r->input[k].edge.target);
  }
  lt_free(c, r->input, (size_t)r->n_inputs * sizeof *r->input);
  lt_free(c, r->value, (size_t)r->capacity * sizeof(lt_saved *));
  r->drop(c, r->ud);
  lt_free(c, r, sizeof *r);
}

lt_recompute *lt_recompute_new(lt_ctx *c, int n_in, lt_tensor *const *in,
                               bool (*run)(lt_ctx *c, lt_recompute *r),
                               void (*drop_ud)(lt_ctx *c, void *ud), void *ud) {
  lt_recompute *r = lt_alloc(c, sizeof *r);
  if (r == NULL) {
    drop_ud(c, ud);
    return NULL;
  }
  *r = (lt_recompute){.object = {.refs = 1, .drop = drop}, .run = run, .drop = drop_ud, .ud = ud,
                      .modes = c->modes, .rng = c->rng};
  if (!lt_frame_add(c, r)) return NULL;
  r->input = lt_alloc(c, (size_t)n_in * sizeof *r->input);
  if (r->input == NULL) return NULL;
  r->n_inputs = n_in;
  for (int k = 0; k < n_in; k++) {
    r->input[k].edge = lt_edge_to(in[k]);
    lt_saved_keep(&r->input[k].value, in[k]);
    if (!lt_recompute_note(c, &r->input[k].value)) return NULL;
  }
  return r;
}

lt_tensor *lt_recompute_input_tensor(lt_ctx *c, lt_recompute *r, int k) {
  lt_saved *s = &r->input[k].value;
  if (!lt_saved_load(c, s)) return NULL;
  if (s->version != s->storage->version) {
    lt_fail(c, LT_EVERSION, "checkpoint: tensor %d that the function was given, of shape %s, was "
            "written in place since by %s", k + 1, LT_SHAPE_STR(lt_shape_of(s->ndim, s->size)),
            s->storage->writer != NULL ? s->storage->writer : "a writer");
    return NULL;
  }
  lt_tensor *t = lt_tensor_make(c, s->storage, s->dtype, s->ndim, s->size, s->stride, s->offset);
  if (t == NULL) return NULL;
  t->node = lt_retain(r->input[k].edge.target);
  t->output = r->input[k].edge.output;
  t->view_version = t->storage->version;
  return t;
}

/* Doubling: the number of values of a segment is not known before it has run. */
static bool grow(lt_ctx *c, lt_recompute *r) {
  if (r->count < r->capacity) return true;
  int64_t capacity = r->capacity > 0 ? 2 * r->capacity : 32;
  lt_saved **value = lt_alloc(c, (size_t)capacity * sizeof(lt_saved *));
  if (value == NULL) return false;
  if (r->count > 0) memcpy(value, r->value, (size_t)r->count * sizeof(lt_saved *));
  lt_free(c, r->value, (size_t)r->capacity * sizeof(lt_saved *));
  r->value = value;
  r->capacity = capacity;
  return true;
}

/* The k-th value of the second run goes to the k-th place: a function that does the same saves the
   same ones in the same order. `to` NULL: its node is gone. Shapes and dtypes are compared, which
   catches most functions that depend on a global. */
static bool put_back(lt_ctx *c, lt_saved *to, int64_t k, const lt_saved *s) {
  if (to == NULL || to->storage != NULL) return true;
  lt_shape was = lt_shape_of(to->ndim, to->size), is = lt_shape_of(s->ndim, s->size);
  if (to->dtype != s->dtype || !lt_shape_equal(was, is))
    return lt_fail(c, LT_ESHAPE,
                   "checkpoint: the function did something else when it was called again: value "
                   "%lld that it saved was %s %s, and is %s %s", (long long)k + 1,
                   lt_dtype_name(to->dtype), LT_SHAPE_STR(was), lt_dtype_name(s->dtype),
                   LT_SHAPE_STR(is));
  to->storage = lt_storage_retain(s->storage);
  to->version = s->version;
  to->offset = s->offset;
  memcpy(to->stride, s->stride, sizeof to->stride);
  return true;
}

/* The last value ends the run: what follows in the segment (its output, mostly) is not needed by
   any derivative. */
static bool fill(lt_ctx *c, lt_recompute *r, const lt_saved *s) {
  int64_t k = r->next++;
  if (k < r->count && !put_back(c, r->value[k], k, s)) return false;
  if (r->next != r->count || r->stopped) return true;
  r->stopped = true;
  /* An error, as only that ends a function of the script in the middle: what comes after the last
     value that is needed would be computed for nothing. */
  return lt_fail(c, LT_ECALLBACK, "checkpoint: all values are made");
}

/* The first time (`dropping`) a value leaves its memory and keeps its number; in a replay
   (`filling`) the number is counted up again. */
bool lt_recompute_note(lt_ctx *c, lt_saved *s) {
  lt_recompute *r = c->modes.dropping;
  if (r == NULL) return c->modes.filling == NULL || fill(c, c->modes.filling, s);
  if (!grow(c, r)) return false;
  s->again = lt_retain(r);
  s->place = r->count;
  r->value[r->count++] = s;
  lt_storage_release(c, s->storage);
  s->storage = NULL;
  return true;
}

/* The segment runs under the modes and random state that it had, then both are put back: the
   script's own random stream does not notice. A replay inside itself would wait for its own values:
   refused. */
static bool run(lt_ctx *c, lt_recompute *r) {
  lt_modes modes = c->modes;
  lt_rng rng = c->rng;
  if (c->modes.filling == r)
    return lt_fail(c, LT_EARG, "checkpoint: its function runs a backward through itself");
  lt_modes_restore(&c->modes, r->modes);
  c->modes.dropping = NULL;
  c->modes.filling = r;
  c->rng = r->rng;
  r->next = 0;
  r->stopped = false;
  bool ok = r->run(c, r);
  modes.trace = c->modes.trace;
  c->modes = modes;
  c->rng = rng;
  return ok;
}

static bool make(lt_ctx *c, const lt_saved *s) {
  lt_recompute *r = lt_retain(s->again);
  bool ok = run(c, r);
  if (ok && s->storage == NULL)
    ok = lt_fail(c, LT_EARG,
                 "checkpoint: the function did something else when it was called again: it saved "
                 "%lld values, and before %lld", (long long)r->next, (long long)r->count);
  lt_release(c, r);
  return ok;
}

/* The first value that is missing of those that it is given, or NULL. */
static lt_saved *missing_for(const lt_recompute *r) {
  for (int k = 0; k < r->n_inputs; k++)
    if (r->input[k].value.storage == NULL) return &r->input[k].value;
  return NULL;
}

/* Outer ones first, in a loop: a recursion could be deeper than the C stack. Each turn makes one
   value, or moves to the value that its segment misses. */
bool lt_saved_load(lt_ctx *c, lt_saved *s) {
  for (lt_saved *top = s, *next; top != NULL; top = next) {
    lt_recompute *r = top->again;
    if (top->storage == NULL && !lt_assert(c, r != NULL)) return false;
    next = top->storage == NULL ? missing_for(r) : NULL;
    if (next != NULL) {
      next->again->waiting = top;
      continue;
    }
    next = top == s ? NULL : r->waiting;
    if (top->storage == NULL && !make(c, top)) return false;
  }
  return true;
}

void lt_saved_keep(lt_saved *s, const lt_tensor *t) {
  s->storage = lt_storage_retain(t->storage);
  s->version = t->storage->version;
  s->dtype = (lt_dtype)t->dtype;
  s->ndim = t->ndim;
  s->offset = t->offset;
  memcpy(s->size, t->size, sizeof s->size);
  memcpy(s->stride, t->stride, sizeof s->stride);
}

void lt_saved_free(lt_ctx *c, lt_saved *s) {
  lt_storage_release(c, s->storage);
  s->storage = NULL;
  if (s->again == NULL) return;
  s->again->value[s->place] = NULL;
  lt_release(c, s->again);
  s->again = NULL;
}
