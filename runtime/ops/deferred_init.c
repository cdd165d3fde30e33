/* runtime/ops/deferred_init.c: recording the calls that make meta tensors.

   The record belongs to the storage (`made`), and ends with it; calls are shared by all storages
   that they wrote. An input is remembered by storage and version: if anything outside of the record
   writes it later, the replay finds the version changed and says so instead of giving other
   values. */
#include "ops/deferred_init.h"

#include "ops/inplace.h"

typedef lt_deferred_place place;
typedef lt_deferred_call noted_call;
typedef lt_deferred_record record;

static size_t call_size(int n) { return sizeof(noted_call) + (size_t)n * sizeof(place); }

static void call_drop(lt_ctx *c, lt_object *object) {
  noted_call *r = (noted_call *)object;
  for (int k = 0; k < r->n_in; k++) lt_storage_release(c, r->places[k].storage);
  if (r->args != NULL) lt_free(c, r->args, lt_kinds[lt_ops[r->op].kind].args_size);
  lt_free(c, r, call_size(r->n_in + r->n_out));
}

static void record_drop(lt_ctx *c, lt_object *object) {
  record *r = (record *)object;
  for (int k = 0; k < r->n; k++) lt_release(c, r->calls[k]);
  lt_free(c, r->calls, (size_t)r->capacity * sizeof *r->calls);
  lt_free(c, r, sizeof *r);
}

/* A storage without a record can no longer be materialized. */
static void forget(lt_ctx *c, lt_storage *s) {
  lt_release(c, s->made);
  s->made = NULL;
}

bool lt_is_meta(const lt_ctx *c, const lt_storage *s) {
  return lt_device_table(c, s->device)->no_data;
}

static bool is_written(const lt_call *call, const lt_storage *s) {
  for (int k = 0; k < call->n_out; k++)
    if (call->out[k]->storage == s) return true;
  return false;
}

/* Whether a result is all of its storage, and no input is of it. */
static bool begins(const lt_call *call, const lt_tensor *t) {
  for (int k = 0; k < call->n_in; k++)
    if (call->in[k] != NULL && call->in[k]->storage == t->storage) return false;
  return lt_is_dense(t) && (size_t)t->numel * lt_item_size(t) == t->storage->bytes;
}

/* Whether the call is one of those that are recorded, and can be. Makers, clones and writes in
   place are what a constructor of a module does; other calls on meta are a forward pass, whose
   record would keep every activation's inputs alive. */
static bool is_recorded(lt_ctx *c, const lt_call *call) {
  lt_kind kind = lt_ops[call->op].kind;
  bool wanted = call->n_in == 0 || kind == LT_KIND_clone ||
                lt_device_table(c, lt_device_default(c))->no_data;
  for (int k = 0; k < call->n_in; k++) {
    const lt_tensor *t = call->in[k];
    if (t == NULL) continue;
    if (lt_is_meta(c, t->storage) && t->storage->made == NULL) return false;
    wanted = wanted || is_written(call, t->storage);
  }
  for (int k = 0; k < call->n_out; k++) {
    bool first = begins(call, call->out[k]);
    if (!first && call->out[k]->storage->made == NULL) return false;
    wanted = wanted || call->out[k]->storage->made != NULL;
  }
  return wanted && (lt_kinds[kind].flags & LT_KIND_MUTATES) == 0;
}

/* An input that the call also writes is stored without its storage: the record belongs to that
   storage, and would keep itself alive. */
static place place_of(const lt_call *call, const lt_tensor *t, bool input) {
  if (t == NULL) return (place){.bytes = -1};
  lt_storage *s = t->storage;
  place p = {.id = s->id, .version = s->version, .bytes = (int64_t)s->bytes,
             .dtype = (lt_dtype)t->dtype, .ndim = t->ndim, .offset = t->offset,
             .contiguous = t->contiguous};
  if (input && !is_written(call, s)) p.storage = lt_storage_retain(s);
  memcpy(p.size, t->size, sizeof p.size);
  memcpy(p.stride, t->stride, sizeof p.stride);
  return p;
}

/* `seq` comes from the counter of tape nodes: one order for all. */
static noted_call *call_new(lt_ctx *c, const lt_call *call) {
  noted_call *r = lt_alloc(c, call_size(call->n_in + call->n_out));
  if (r == NULL) return NULL;
  r->object = (lt_object){.refs = 1, .drop = call_drop};
  r->seq = ++c->node_seq;
  r->op = (lt_op)call->op;
  r->n_in = call->n_in;
  r->n_out = call->n_out;
  for (int k = 0; k < call->n_in; k++) r->places[k] = place_of(call, call->in[k], true);
  for (int k = 0; k < call->n_out; k++)
    r->places[call->n_in + k] = place_of(call, call->out[k], false);
  if (call->args_size > 0 && (r->args = lt_alloc(c, call->args_size)) != NULL)
    memcpy(r->args, call->args, call->args_size);
  if (lt_ok(c)) return r;
  lt_release(c, r);
  return NULL;
}

/* Doubling from 2: most parameters are made by two calls (such as empty and uniform_). */
static bool append(lt_ctx *c, lt_storage *s, noted_call *call) {
  record *r = (record *)s->made;
  if (r == NULL) {
    if ((r = lt_alloc(c, sizeof *r)) == NULL) return false;
    r->object = (lt_object){.refs = 1, .drop = record_drop};
    s->made = &r->object;
  }
  if (r->n == r->capacity) {
    int capacity = r->capacity > 0 ? 2 * r->capacity : 2;
    noted_call **calls = lt_alloc(c, (size_t)capacity * sizeof *calls);
    if (calls == NULL) return false;
    if (r->n > 0) memcpy(calls, r->calls, (size_t)r->n * sizeof *calls);
    lt_free(c, r->calls, (size_t)r->capacity * sizeof *calls);
    r->calls = calls;
    r->capacity = capacity;
  }
  r->calls[r->n++] = lt_retain(call);
  return true;
}

/* A call that writes all of a storage begins its record anew: what was there before is not needed.
   A call that cannot be recorded ends the records of all that it writes. */
bool lt_deferred_note(lt_ctx *c, const lt_call *call) {
  lt_kind kind = lt_ops[call->op].kind;
  bool mutates = (lt_kinds[kind].flags & LT_KIND_MUTATES) != 0;
  noted_call *noted = is_recorded(c, call) ? call_new(c, call) : NULL;
  for (int k = 0; k < call->n_in && mutates; k++)
    if (call->in[k] != NULL && lt_kind_writes(kind, k, call->n_in, call->args))
      forget(c, call->in[k]->storage);
  for (int k = 0; k < call->n_out; k++) {
    lt_storage *s = call->out[k]->storage;
    if (noted == NULL || begins(call, call->out[k])) forget(c, s);
    if (noted != NULL && !append(c, s, noted)) forget(c, s);
  }
  lt_release(c, noted);
  return lt_ok(c);
}
