/* runtime/ops/deferred_init.h: how the values of meta tensors are made: a record of calls, which
   lt_materialize replays on another device.

   Recorded are, of the meta device: makers (rand, full, ...), clones and writes in place, and every
   call while tensors are made there by default (lt.device("meta")), each if its inputs are
   recorded. The arguments hold the random keys, so a replay gives the values that the calls would
   have given. Other results have no record, so a forward pass on meta keeps nothing alive. */
#ifndef LT_OPS_DEFERRED_INIT_H
#define LT_OPS_DEFERRED_INIT_H

#include "ops/op.h"

/* What a call sees of a tensor; absent: `bytes` is -1. `storage` is NULL where the call writes it:
   no storage refers to itself. */
typedef struct lt_deferred_place {
  lt_storage *storage;
  uint64_t id, version;
  int64_t bytes;
  lt_dtype dtype;
  int ndim;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS], offset;
  bool contiguous;
} lt_deferred_place;

typedef struct lt_deferred_call {
  lt_object object;
  uint64_t seq;
  bool collected; /* by the replay that is running */
  lt_op op;
  int n_in, n_out;
  void *args;
  lt_deferred_place places[]; /* inputs, then results */
} lt_deferred_call;

/* Of a storage: the calls that wrote it, the first of which wrote all of it. */
typedef struct lt_deferred_record {
  lt_object object;
  int n, capacity;
  lt_deferred_call **calls;
} lt_deferred_record;

/* A call whose results are on the meta device: records it, or drops the records of what it
   overwrites. */
bool lt_deferred_note(lt_ctx *c, const lt_call *call);

bool lt_is_meta(const lt_ctx *c, const lt_storage *s);

#endif
