/* runtime/ops/materialize.c: the replay of the calls that make meta tensors, on another device.

   The calls that wrote a storage are collected, those that wrote their inputs, and so on, and run
   in the order in which they were recorded: each reads what it would have read, whatever was
   written in place before and after.

   Cost: one run of the recorded calls for each materialized storage; memory of intermediates is
   freed at their last use (`uses`). A part of a parameter (first, n >= 0) is computed alone where
   every call is elementwise or random: random numbers are counter-based, so that those of element i
   need none before it. A rank that owns an eighth of a matrix so draws an eighth. */
#include "ops/materialize.h"

#include <stdlib.h>

#include "base/script_lines.h"
#include "ops/deferred_init.h"
#include "ops/inplace.h"

typedef lt_deferred_place place;
typedef lt_deferred_call noted_call;
typedef lt_deferred_record record;

/* A storage of the replay, for that of the id: `uses`, by calls that have not run yet. */
typedef struct copy {
  uint64_t id;
  int64_t bytes;
  lt_dtype dtype; /* of a part */
  lt_storage *storage;
  const record *followed; /* the record whose calls are collected */
  int uses;
} copy;

typedef struct replay {
  lt_device device;
  noted_call **calls;
  copy *copies;
  int n_calls, calls_capacity, n_copies, copies_capacity;
  int64_t numel, first, n; /* of a part: elements first..first+n-1 of `numel`; else n is 0 */
} replay;

/* A longer list; the old one is freed. NULL: no memory. */
static void *grown(lt_ctx *c, void *list, int n, int *capacity, size_t item) {
  if (n < *capacity) return list;
  int more = *capacity > 0 ? 2 * *capacity : 16;
  void *new = lt_alloc(c, (size_t)more * item);
  if (new == NULL) return NULL;
  if (n > 0) memcpy(new, list, (size_t)n * item);
  lt_free(c, list, (size_t)*capacity * item);
  *capacity = more;
  return new;
}

/* A linear search from the end: a replay has a few storages, the one in use is among the last. */
static copy *find(replay *r, uint64_t id) {
  for (int k = r->n_copies - 1; k >= 0; k--)
    if (r->copies[k].id == id) return &r->copies[k];
  return NULL;
}

static copy *add_copy(lt_ctx *c, replay *r, uint64_t id, int64_t bytes, lt_dtype dtype) {
  copy *found = find(r, id);
  if (found != NULL) return found;
  copy *list = grown(c, r->copies, r->n_copies, &r->copies_capacity, sizeof *list);
  if (list == NULL) return NULL;
  r->copies = list;
  list[r->n_copies] = (copy){.id = id, .bytes = bytes, .dtype = dtype};
  return &list[r->n_copies++];
}

static bool add_call(lt_ctx *c, replay *r, noted_call *call) {
  if (call->collected) return true;
  noted_call **list = grown(c, r->calls, r->n_calls, &r->calls_capacity, sizeof *list);
  if (list == NULL) return false;
  r->calls = list;
  list[r->n_calls++] = call;
  return call->collected = true;
}

/* The calls that wrote the storage; those of their inputs come when `collect` is at them. A record
   that was seen is not followed again: shared inputs are collected once. */
static bool follow(lt_ctx *c, replay *r, const lt_storage *s, lt_dtype dtype) {
  copy *k = add_copy(c, r, s->id, (int64_t)s->bytes, dtype);
  const record *made = (const record *)s->made;
  if (k == NULL || k->followed == made) return k != NULL;
  k->followed = made;
  for (int i = 0; i < made->n; i++)
    if (!add_call(c, r, made->calls[i])) return false;
  return true;
}

/* By the number in which calls were recorded: the order of the script. */
static int compare(const void *a, const void *b) {
  uint64_t x = (*(noted_call *const *)a)->seq, y = (*(noted_call *const *)b)->seq;
  return (x > y) - (x < y);
}

/* How often each storage is named by the collected calls, inputs and results alike: at 0 its memory
   can go. */
static bool count_uses(lt_ctx *c, replay *r, const noted_call *call) {
  for (int k = 0; k < call->n_in + call->n_out; k++) {
    const place *p = &call->places[k];
    if (p->bytes < 0 || (p->storage != NULL && !lt_is_meta(c, p->storage))) continue;
    copy *of = add_copy(c, r, p->id, p->bytes, p->dtype);
    if (of == NULL) return false;
    of->uses++;
  }
  return true;
}

/* The transitive closure of the calls behind `t`, in one growing list that is both queue and
   result: breadth first without a recursion, each call once (`collected`). */
static bool collect(lt_ctx *c, replay *r, const lt_tensor *t) {
  bool ok = follow(c, r, t->storage, (lt_dtype)t->dtype);
  for (int i = 0; i < r->n_calls && ok; i++)
    for (int k = 0; k < r->calls[i]->n_in && ok; k++) {
      const place *p = &r->calls[i]->places[k];
      if (p->storage == NULL || !lt_is_meta(c, p->storage)) continue;
      ok = p->storage->made != NULL
               ? follow(c, r, p->storage, p->dtype)
               : lt_fail(c, LT_EVERSION, "an input of %s, which made the tensor, was "
                         "overwritten since", lt_ops[r->calls[i]->op].name);
    }
  for (int i = 0; i < r->n_calls; i++) r->calls[i]->collected = false;
  if (ok) qsort(r->calls, (size_t)r->n_calls, sizeof *r->calls, compare);
  for (int i = 0; i < r->n_calls && ok; i++) ok = count_uses(c, r, r->calls[i]);
  if (ok) find(r, t->storage->id)->uses++; /* it is what is wanted */
  return ok;
}

/* Whether the call gives element i of a result from element i of its inputs, all of which must
   cover their storage contiguously: then elements first..first+n-1 can be computed from those of
   the inputs. */
static bool is_elementwise(const noted_call *call, int64_t numel) {
  lt_kind kind = lt_ops[call->op].kind;
  bool each = kind <= LT_KIND_compare || kind == LT_KIND_fill || kind == LT_KIND_clone ||
              kind == LT_KIND_cast || kind == LT_KIND_random ||
              (kind == LT_KIND_create && call->n_in == 0);
  for (int k = 0; k < call->n_in + call->n_out && each; k++) {
    const place *p = &call->places[k];
    each = p->bytes >= 0 && p->contiguous && p->offset == 0 &&
           p->bytes == numel * (int64_t)lt_dtype_size(p->dtype);
  }
  return each;
}

/* The tensor of a place in the replay. An input that was not on meta is used as it is, if nothing
   has written it since: the replay must see what the call saw. */
static lt_tensor *stand_in(lt_ctx *c, replay *r, const place *p) {
  if (p->storage != NULL && !lt_is_meta(c, p->storage)) {
    if (p->storage->version != p->version) {
      lt_fail(c, LT_EVERSION, "a tensor from which it was made was overwritten since");
      return NULL;
    }
    return lt_tensor_make(c, p->storage, p->dtype, p->ndim, p->size, p->stride, p->offset);
  }
  copy *of = find(r, p->id);
  size_t bytes = r->n > 0 ? (size_t)r->n * lt_dtype_size(p->dtype) : (size_t)of->bytes;
  if (of->storage == NULL) of->storage = lt_storage_new(c, r->device, bytes);
  if (of->storage == NULL) return NULL;
  if (r->n > 0) return lt_tensor_make(c, of->storage, p->dtype, 1, &r->n, NULL, 0);
  return lt_tensor_make(c, of->storage, p->dtype, p->ndim, p->size, p->stride, p->offset);
}

static void unuse(lt_ctx *c, replay *r, const noted_call *call) {
  for (int k = 0; k < call->n_in + call->n_out; k++) {
    copy *of = call->places[k].bytes < 0 ? NULL : find(r, call->places[k].id);
    if (of == NULL || --of->uses > 0) continue;
    lt_storage_release(c, of->storage);
    of->storage = NULL;
  }
}

/* The words of a part begin at its first element: a block of random words covers 4 elements (2 of
   f64), and the key's base counts blocks. */
static void shift_key(lt_rng_key *key, const replay *r, lt_dtype dtype) {
  key->base += (uint64_t)(r->first / (dtype == LT_F64 ? 2 : 4));
}

static bool run_call(lt_ctx *c, replay *r, const noted_call *call) {
  size_t size = lt_kinds[lt_ops[call->op].kind].args_size;
  lt_tensor *out[LT_MAX_OUT], **in = lt_alloc(c, (size_t)(call->n_in + 1) * sizeof *in);
  if (in == NULL) return false;
  lt_frame frame = lt_frame_open(c);
  for (int k = 0; k < call->n_in && lt_ok(c); k++)
    in[k] = call->places[k].bytes >= 0 ? stand_in(c, r, &call->places[k]) : NULL;
  for (int k = 0; k < call->n_out && lt_ok(c); k++)
    out[k] = stand_in(c, r, &call->places[call->n_in + k]);
  lt_args_random part;
  const void *args = call->args;
  if (r->n > 0 && lt_ops[call->op].kind == LT_KIND_random) {
    part = *(const lt_args_random *)args;
    shift_key(&part.rng_key, r, call->places[call->n_in].dtype);
    args = &part;
  }
  const char *outer = c->op;
  c->op = lt_ops[call->op].name;
  bool ok = lt_ok(c) && lt_run(c, call->op, call->n_in, in, args, size, call->n_out, out);
  c->op = outer;
  lt_frame_close(c, frame, 0, NULL);
  lt_free(c, in, (size_t)(call->n_in + 1) * sizeof *in);
  if (ok) unuse(c, r, call);
  return ok;
}

/* Rows first..first+n-1 alone, where all calls allow it. The start is rounded down to a block of 4
   elements, where a block of random words begins. */
static void choose_part(replay *r, const lt_tensor *t, int64_t first, int64_t n) {
  int64_t row = t->ndim > 0 && t->size[0] > 0 ? t->numel / t->size[0] : 0;
  bool each = t->contiguous && n * row > 0 && n < t->size[0] &&
              t->storage->bytes == (size_t)t->numel * lt_item_size(t);
  for (int k = 0; k < r->n_calls && each; k++) each = is_elementwise(r->calls[k], t->numel);
  if (!each) return;
  r->numel = t->numel;
  r->first = first * row / 4 * 4;
  r->n = (first + n) * row - r->first;
}

/* Rows of what was computed. */
static lt_tensor *result_of(lt_ctx *c, replay *r, const lt_tensor *t, int64_t first, int64_t n) {
  lt_storage *s = find(r, t->storage->id)->storage;
  bool all = n < 0 || t->ndim == 0;
  int64_t size[LT_MAX_DIMS], offset = t->offset;
  memcpy(size, t->size, sizeof size);
  if (!all) size[0] = n;
  if (r->n > 0)
    offset = first * (t->numel / t->size[0]) - r->first;
  else if (!all)
    offset += first * t->stride[0];
  lt_tensor *y = lt_tensor_make(c, s, (lt_dtype)t->dtype, t->ndim, size, t->stride, offset);
  if (y == NULL || (size_t)y->numel * lt_item_size(y) == s->bytes) return y;
  return lt_apply1(c, LT_OP_clone, 1, &y, NULL);
}

/* Messages name what made a tensor without a record, and where: an op that is not replayed, such as
   a forward pass on meta. */
static bool check(lt_ctx *c, const lt_tensor *t, lt_device device, int64_t first, int64_t n) {
  char line[128];
  const lt_storage *s = t->storage;
  if (!lt_is_meta(c, s) || lt_device_table(c, device)->no_data)
    return lt_fail(c, LT_EDEVICE, "takes a meta tensor to another device: got %s to "
                   "%s", lt_device_text(c, s->device, (char[32]){0}, 32),
                   lt_device_text(c, device, (char[32]){0}, 32));
  if (n >= 0 && (t->ndim == 0 || first < 0 || first + n > t->size[0]))
    return lt_fail(c, LT_EARG, "rows %lld to %lld of %s", (long long)first + 1,
                   (long long)(first + n), LT_TENSOR_STR(t));
  if (s->made != NULL) return true;
  return lt_fail(c, LT_EDEVICE, "the values of %s %s are not recorded: %s%s%s made "
                 "them", lt_dtype_name((lt_dtype)t->dtype), LT_TENSOR_STR(t),
                 s->writer != NULL ? s->writer : "what", s->writer_line != 0 ? " at " : "",
                 s->writer_line != 0 ? lt_line_text(c, s->writer_line, line, sizeof line) : "");
}

lt_tensor *lt_materialize(lt_ctx *c, lt_tensor *t, lt_device device, int64_t first, int64_t n) {
  if (!lt_ok(c) || !check(c, t, device, first, n)) return NULL;
  replay r = {.device = device};
  lt_tensor *y = NULL;
  bool ok = collect(c, &r, t);
  if (ok && n >= 0) choose_part(&r, t, first, n);
  for (int k = 0; k < r.n_calls && ok; k++) ok = run_call(c, &r, r.calls[k]);
  if (ok) y = result_of(c, &r, t, first, n);
  for (int k = 0; k < r.n_copies; k++) lt_storage_release(c, r.copies[k].storage);
  lt_free(c, r.copies, (size_t)r.copies_capacity * sizeof *r.copies);
  lt_free(c, r.calls, (size_t)r.calls_capacity * sizeof *r.calls);
  return y;
}
