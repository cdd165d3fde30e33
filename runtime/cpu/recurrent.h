/* runtime/cpu/recurrent.h: what the kernels of recurrent layers, forward and backward, share.

   A step has one parallel loop: a chunk has some hidden units of all sequences, makes their part of
   the product with what the step before gave, and runs the cell on it while it is in the cache.
   The weights are packed for that once. */
#ifndef LT_CPU_RECURRENT_H
#define LT_CPU_RECURRENT_H

#include <string.h>

#include "base/threads.h"
#include "cpu/packed.h"
#include "cpu/scratch.h"
#include "cpu/tile.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "ops/recurrent.h"

enum {
  LT_GROUP_ROWS = 4 * LT_TILE_ROWS,
  LT_TILE_MOST = 2 * 64 / 4, /* columns of a panel */
  LT_TERMS = 16              /* terms of a product that cost as much as an element of cheap work */
};

/* [T, N, C] whose last dim lies side by side: strides in elements. */
typedef struct lt_steps {
  void *data; /* NULL: absent */
  int64_t step, row;
} lt_steps;

typedef struct lt_recurrent_job {
  lt_recurrent r;
  bool wide, reverse, relu;
  const int64_t *lengths; /* NULL: all steps of all */
  int64_t panel;            /* columns of one */
  void *panels, *panels_hr; /* weight_hh and weight_hr, packed */
  /* Forward: h and its follower take turns. */
  void *gates;        /* [T, N, G H], of x */
  const void *bias;   /* of h, a GRU's */
  void *acts, *cells, *hidden; /* what is saved, or NULL */
  void *h[2], *c, *m; /* [N, P] each, [N, H], [N, H] before the projection */
  lt_steps y;
  /* Backward. */
  lt_steps g_y;
  const void *state;          /* [N, H], before the first step, or NULL */
  void *g_gates, *g_h, *g_p;  /* [T, N, G H] of x and of h, [T, N, P] */
  void *carry, *g_c;          /* [N, P], [N, H]: from the step after */
  /* The step that is worked on, the one before it in time (-1: none) and the one after. */
  int64_t at, before, after;
  int turn;
} lt_recurrent_job;

static inline bool lt_is_active(const lt_recurrent_job *j, int64_t n) {
  return j->lengths == NULL || j->at < j->lengths[n];
}

/* Step number k of all, in the order of the direction. */
static inline void lt_recurrent_at(lt_recurrent_job *j, int64_t k) {
  int64_t t = j->r.t;
  j->at = j->reverse ? t - 1 - k : k;
  j->before = k == 0 ? -1 : j->reverse ? j->at + 1 : j->at - 1;
  j->after = k == t - 1 ? -1 : j->reverse ? j->at - 1 : j->at + 1;
  j->turn = (int)(k % 2);
}

/* An input of a call, NULL: absent; and its values side by side in `dtype`. */
static inline lt_tensor *lt_rec_input(const lt_call *call, int k) {
  return k < call->n_in ? call->in[k] : NULL;
}

static inline void *lt_rec_values(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  t = lt_cpu_contiguous(c, t, dtype);
  return t != NULL ? lt_data(t) : NULL;
}

/* A copy of n values that the steps change, zeros where there are none: a first state, or a
   gradient that comes from after the last step. */
static inline void *lt_rec_copy(lt_ctx *c, lt_tensor *t, int64_t n, lt_dtype dtype) {
  void *to = lt_cpu_scratch(c, dtype, n), *from = lt_rec_values(c, t, dtype);
  if (to == NULL || !lt_ok(c)) return NULL;
  if (from != NULL)
    memcpy(to, from, (size_t)n * lt_dtype_size(dtype));
  else
    memset(to, 0, (size_t)n * lt_dtype_size(dtype));
  return to;
}

/* Panels that hold so many columns. */
static inline int64_t lt_rec_blocks(const lt_recurrent_job *j, int64_t columns) {
  return (columns + j->panel - 1) / j->panel;
}

/* A weight becomes n panels of `terms` rows; `run` packs one of them. */
typedef struct lt_rec_packing {
  int64_t n, terms;
  void (*run)(const lt_recurrent_job *j, const void *weight, int64_t panel);
  const lt_recurrent_job *j;
  const void *weight;
} lt_rec_packing;

static inline void lt_rec_pack_panel(void *ud, int64_t panel) {
  const lt_rec_packing *p = ud;
  p->run(p->j, p->weight, panel);
}

/* `panels`: the job's, that `run` writes. */
static inline bool lt_rec_pack(lt_ctx *c, const lt_recurrent_job *j, lt_tensor *weight,
                               lt_dtype dtype, void **panels, lt_rec_packing *p) {
  int64_t size = p->n * p->terms * j->panel;
  p->j = j, p->weight = lt_rec_values(c, weight, dtype);
  *panels = lt_cpu_scratch(c, dtype, size);
  if (!lt_ok(c)) return false;
  lt_parallel_work(c, size, p->n, lt_rec_pack_panel, p);
  return true;
}

/* The shapes and arguments of a call; lengths are checked. */
bool LT_CPU(lt_recurrent_begin)(lt_ctx *c, const lt_call *call, const lt_tensor *x,
                                const lt_tensor *weight_hh, lt_tensor *weight_hr,
                                lt_tensor *lengths, lt_recurrent_job *j);

#endif
