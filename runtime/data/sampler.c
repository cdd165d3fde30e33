/* runtime/data/sampler.c: orders by Philox, batches by arithmetic.

   Everything is a function of numbers: nothing is stored between steps but a position, from which a
   resumed run, with the same world or another, continues at the same sample. */
#include "data/sampler.h"

#include "base/hash.h"
#include "base/round.h"

static void drop_order(lt_ctx *c, lt_object *object) {
  lt_order *o = (lt_order *)object;
  lt_free(c, o->index, (size_t)o->n * sizeof *o->index);
  lt_free(c, o, sizeof *o);
}

lt_order *lt_order_sequential(lt_ctx *c, int64_t n) {
  if (n < 0 || n > LT_SAMPLES_MAX) {
    lt_fail(c, LT_EARG, "data: a count of samples is in 0..%lld: got %lld",
            (long long)LT_SAMPLES_MAX, (long long)n);
    return NULL;
  }
  lt_order *o = lt_alloc(c, sizeof *o);
  if (o == NULL) return NULL;
  o->object = (lt_object){.refs = 1, .drop = drop_order};
  o->n = n;
  return o;
}

lt_order *lt_order_empty(lt_ctx *c, int64_t n) {
  lt_order *o = lt_order_sequential(c, n);
  if (o == NULL) return NULL;
  o->index = lt_alloc(c, (size_t)n * sizeof *o->index);
  if (o->index != NULL) return o;
  lt_release(c, o);
  return NULL;
}

/* Fisher and Yates. A draw is 64 bits, so that the bias is below n / 2^64. In its "inside-out"
   form, which fills the list while it shuffles it (R. Durstenfeld, 1964; D. Knuth, The Art of
   Computer Programming, volume 2, section 3.4.2). By sample, not by draw: the order is a function
   of seed and epoch alone. */
lt_order *lt_order_shuffled(lt_ctx *c, int64_t n, uint64_t seed, uint32_t epoch) {
  lt_order *o = lt_order_empty(c, n);
  if (o == NULL) return NULL;
  lt_rng_key rng_key = {.seed = seed, .position = (uint64_t)epoch << 16 | LT_RNG_ORDER};
  lt_random4 r = {{0}};
  for (int64_t i = 0; i < n; i++) {
    if (i % 2 == 0) r = lt_philox(rng_key, (uint64_t)i / 2);
    uint32_t low = r.word[i % 2 * 2], high = r.word[i % 2 * 2 + 1];
    uint64_t bits = (uint64_t)high << 32 | low;
    int64_t k = (int64_t)(((unsigned __int128)bits * (uint64_t)(i + 1)) >> 64);
    o->index[i] = o->index[k];
    o->index[k] = i;
  }
  return o;
}

uint64_t lt_order_hash(const lt_order *o, int64_t most) {
  uint64_t h = lt_hash_mix(0, (uint64_t)o->n);
  for (int64_t i = 0; i < o->n && i < most; i++) h = lt_hash_mix(h, (uint64_t)lt_order_at(o, i));
  return h;
}

bool lt_batching_fits(const lt_batching *b, int64_t n, int64_t position) {
  bool counts = n >= 0 && n <= LT_SAMPLES_MAX && position >= 0;
  bool ranks = b->world >= 1 && b->world <= LT_SAMPLE_RANKS_MAX && b->rank >= 0 &&
               b->rank < b->world;
  return counts && ranks && b->batch >= 1 && b->batch / b->world <= LT_SAMPLES_MAX;
}

/* How many samples the step at the front of `left` takes. In evaluation no rank of the last steps
   may go without a sample while others have one, where that can be avoided: a remainder of fewer
   samples than ranks is joined to the step before it, or that step gives some away. */
static int64_t step_total(const lt_batching *b, int64_t left) {
  if (left < b->batch) {
    if (b->drop_last || left <= 0) return 0;
    return b->wrap ? lt_round_up(left, b->world) : left;
  }
  int64_t tail = left - b->batch;
  if (!b->evaluation || b->drop_last || b->wrap || tail == 0 || tail >= b->world) return b->batch;
  return left >= 2 * (int64_t)b->world ? left - b->world : left;
}

/* Which of the batches that are dealt begins at `position`: the first that ends behind it. */
static int64_t dealt_index(const lt_batching *b, int64_t n, int64_t position) {
  if (b->lasts == NULL) return position < n ? position / b->batch : lt_round_up(n, b->batch);
  int64_t low = 0, high = b->lasts->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (lt_order_at(b->lasts, middle) < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int64_t dealt_count(const lt_batching *b, int64_t n) {
  if (b->lasts != NULL) return b->lasts->n;
  return b->drop_last ? n / b->batch : lt_round_up(n, b->batch) / b->batch;
}

/* The position behind the k-th of `count` batches; k = -1: the start. */
static int64_t dealt_end(const lt_batching *b, int64_t n, int64_t count, int64_t k) {
  if (k >= count) k = count - 1;
  if (k < 0) return 0;
  if (b->lasts != NULL) return lt_order_at(b->lasts, k) + 1;
  return (k + 1) * b->batch < n ? (k + 1) * b->batch : n;
}

/* Batches of a batch sampler are dealt to the ranks in turn: a step is `world` of them, and at the
   end some ranks may have none. */
static lt_span dealt_at(const lt_batching *b, int64_t n, int64_t position) {
  int64_t count = dealt_count(b, n), first = dealt_index(b, n, position), mine = first + b->rank;
  lt_span s = {.begin = position, .first = position};
  if (first >= count) return s;
  s.ranks = (int)(count - first < b->world ? count - first : b->world);
  s.total = dealt_end(b, n, count, first + b->world - 1) - position;
  s.first = b->rank == 0 ? position : dealt_end(b, n, count, mine - 1);
  s.n = dealt_end(b, n, count, mine) - s.first;
  return s;
}

/* A step's samples are split into equal runs, the first ranks with one more: contiguous, so that
   gathering reads neighbours. */
lt_span lt_batch_at(const lt_batching *b, int64_t n, int64_t position) {
  if (b->dealt) return dealt_at(b, n, position);
  int64_t total = step_total(b, n - position);
  int64_t each = total / b->world, more = total % b->world;
  int64_t rank = b->rank;
  return (lt_span){.begin = position,
                   .total = total,
                   .first = position + rank * each + (rank < more ? rank : more),
                   .n = each + (rank < more),
                   .ranks = (int)(each > 0 ? b->world : more)};
}

/* The last steps may differ from the others: they are walked. All others are alike, so that a count
   is a division, also of 10^12 samples. */
static int64_t whole_steps(const lt_batching *b, int64_t left) {
  return left > 2 * b->batch ? left / b->batch - 2 : 0;
}

int64_t lt_batch_count(const lt_batching *b, int64_t n, int64_t position) {
  if (b->dealt) {
    int64_t left = dealt_count(b, n) - dealt_index(b, n, position);
    return left > 0 ? lt_round_up(left, b->world) / b->world : 0;
  }
  int64_t left = n - position;
  int64_t count = whole_steps(b, left), total;
  for (left -= count * b->batch; (total = step_total(b, left)) > 0; left -= total) count++;
  return count;
}

int64_t lt_batch_skip(const lt_batching *b, int64_t n, int64_t position, int64_t steps) {
  if (steps > n) steps = n; /* each takes a sample at least */
  if (b->dealt) {
    int64_t to = dealt_index(b, n, position) + steps * b->world - 1;
    int64_t end = steps > 0 ? dealt_end(b, n, dealt_count(b, n), to) : position;
    return end > position ? end : position;
  }
  int64_t whole = whole_steps(b, n - position), total;
  if (whole > steps) whole = steps;
  position += whole * b->batch;
  for (int64_t i = whole; i < steps && (total = step_total(b, n - position)) > 0; i++)
    position += total;
  return position;
}

/* A seed of its own for each sample, drawn by Philox: draws within a sample may be any number
   without touching those of its neighbours. */
lt_rng lt_sample_rng(uint64_t seed, uint32_t epoch, int64_t index) {
  lt_rng_key rng_key = {.seed = seed, .position = (uint64_t)epoch << 16 | LT_RNG_SAMPLE};
  lt_random4 r = lt_philox(rng_key, (uint64_t)index);
  return (lt_rng){.seed = (uint64_t)r.word[1] << 32 | r.word[0], .stream = LT_RNG_SAMPLE};
}
