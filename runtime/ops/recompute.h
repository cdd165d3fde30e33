/* runtime/ops/recompute.h: saved values that backward computes again instead of keeping them.

   While `modes.dropping` is one of these, nodes note what they save there in order, and release
   it. When the first of these values is wanted, `run` does the same once more, with the same modes
   and random numbers, under `modes.filling`: the k-th value that is saved then goes to where the
   k-th is missing; after the last one the run stops, by a failure that `run` takes back. The tape
   itself is not made anew, so gradients flow as if nothing had been dropped. They nest: what an
   inner one gets as an argument is a value of the outer one, and comes back without a run of the
   inner. */
#ifndef LT_OPS_RECOMPUTE_H
#define LT_OPS_RECOMPUTE_H

#include "ops/node.h"

/* A tensor argument of the computation: its memory, and where it came from. */
typedef struct lt_recompute_input {
  lt_saved value;
  lt_edge edge;
} lt_recompute_input;

typedef struct lt_recompute {
  lt_object object; /* its nodes own it */
  bool (*run)(lt_ctx *c, struct lt_recompute *r);
  void (*drop)(lt_ctx *c, void *ud);
  void *ud;
  lt_modes modes;
  lt_rng rng;
  int n_inputs;
  lt_recompute_input *input;
  int64_t count, capacity, next;
  bool stopped;      /* this run has made all values */
  lt_saved *waiting; /* is made of one of these */
  lt_saved **value; /* whom the k-th belongs to, NULL: nobody any more */
} lt_recompute;

/* One that has noted nothing; `ud` is dropped by it, also where it cannot be made. `in`: tensors
   with a history, that `run` gets back by lt_recompute_input_tensor. */
lt_recompute *lt_recompute_new(lt_ctx *c, int n_in, lt_tensor *const *in,
                               bool (*run)(lt_ctx *c, lt_recompute *r),
                               void (*drop)(lt_ctx *c, void *ud), void *ud);
lt_tensor *lt_recompute_input_tensor(lt_ctx *c, lt_recompute *r, int k);

/* *s was saved: under `dropping` it goes, under `filling` it is what was missing. */
bool lt_recompute_note(lt_ctx *c, lt_saved *s);

#endif
