/* runtime/data/sampler.h: in which order samples come, and how the stream is cut into batches.

   An order is a pure function of (n, seed, epoch); a position in it is a count of samples consumed
   by all ranks together. So a run that resumes at a position sees what it would have seen. */
#ifndef LT_DATA_SAMPLER_H
#define LT_DATA_SAMPLER_H

#include "base/ctx.h"

/* No data set has more samples and no batch is larger: sums and products of counts fit an int64. */
#define LT_SAMPLES_MAX ((int64_t)1 << 40)
#define LT_SAMPLE_RANKS_MAX (1 << 20)

/* The order of one epoch. `index` NULL: 0, 1, ..., n-1. Release with lt_release. */
typedef struct lt_order {
  lt_object object;
  int64_t n;
  int64_t *index;
} lt_order;

lt_order *lt_order_sequential(lt_ctx *c, int64_t n);
lt_order *lt_order_shuffled(lt_ctx *c, int64_t n, uint64_t seed, uint32_t epoch);
/* n entries to be filled in by the caller, e.g. from a sampler of the user's own. */
lt_order *lt_order_empty(lt_ctx *c, int64_t n);

/* Entry i; behind the last one the order begins again (see `wrap`). -1: there is none. */
static inline int64_t lt_order_at(const lt_order *o, int64_t i) {
  if (i < 0 || o->n == 0) return -1;
  if (i >= o->n) i %= o->n;
  return o->index != NULL ? o->index[i] : i;
}

/* A hash of an order: of its length and first `most` entries. */
uint64_t lt_order_hash(const lt_order *o, int64_t most);

/* How a stream is cut into steps of all ranks. Either each step is a batch of `batch` samples, of
   which each rank takes a contiguous slice, as even as possible; or whole batches are dealt. */
typedef struct lt_batching {
  int64_t batch;   /* samples of a step; dealt: of one rank's batch */
  bool drop_last;  /* no short batch at the end */
  bool evaluation; /* a tail smaller than `world` is shared with the batch before it */
  bool wrap;       /* a short batch is filled up from the order's start, a rank like another */
  bool dealt;      /* a step is `world` batches, one a rank */
  lt_order *lasts; /* (optional) dealt: where each batch ends, its last entry in the order */
  int rank, world;
} lt_batching;

/* One step: the whole is begin..begin+total-1 of the stream, this rank's part first..first+n-1. */
typedef struct lt_span {
  int64_t begin, total; /* total 0: the stream is at its end */
  int64_t first, n;     /* n 0: this rank has none, others have */
  int ranks;            /* how many hold samples: the first ones */
} lt_span;

/* Can these be walked? n, the position and the batch are in range, the rank is one of `world`. */
bool lt_batching_fits(const lt_batching *b, int64_t n, int64_t position);

/* The step that begins at `position` of a stream of n samples. The next begins at begin + total. */
lt_span lt_batch_at(const lt_batching *b, int64_t n, int64_t position);

/* How many steps there are from `position` on: the same on every rank. */
int64_t lt_batch_count(const lt_batching *b, int64_t n, int64_t position);

/* Where the step comes that is `steps` steps behind the one at `position`. */
int64_t lt_batch_skip(const lt_batching *b, int64_t n, int64_t position, int64_t steps);

/* The random numbers around one sample: the same whichever rank or thread asks for it. */
lt_rng lt_sample_rng(uint64_t seed, uint32_t epoch, int64_t index);

#endif
