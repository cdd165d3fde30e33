/* runtime/data/sampler.c: orders by Philox, batches by arithmetic. */
#include "data/sampler.h"

static void drop_order(lt_ctx *c, lt_object *object) {
  lt_order *o = (lt_order *)object;
  lt_free(c, o->index, (size_t)o->n * sizeof *o->index);
  lt_free(c, o, sizeof *o);
}

lt_order *lt_order_sequential(lt_ctx *c, int64_t n) {
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

/* Fisher and Yates. A draw is 64 bits, so that the bias is below n / 2^64. */
lt_order *lt_order_shuffled(lt_ctx *c, int64_t n, uint64_t seed, uint32_t epoch) {
  lt_order *o = lt_order_empty(c, n);
  if (o == NULL) return NULL;
  lt_ticket ticket = {.seed = seed, .position = (uint64_t)epoch << 16 | LT_RNG_ORDER};
  lt_random4 r = {{0}};
  for (int64_t i = 0; i < n; i++) {
    if (i % 2 == 0) r = lt_philox(ticket, (uint64_t)i / 2);
    uint32_t low = r.word[i % 2 * 2], high = r.word[i % 2 * 2 + 1];
    uint64_t bits = (uint64_t)high << 32 | low;
    int64_t k = (int64_t)(((unsigned __int128)bits * (uint64_t)(i + 1)) >> 64);
    o->index[i] = o->index[k];
    o->index[k] = i;
  }
  return o;
}

/* How many samples the batch at the front of `left` takes. */
static int64_t batch_total(const lt_batching *b, int64_t left) {
  if (left < b->batch) return b->drop_last || left < 0 ? 0 : left;
  int64_t tail = left - b->batch;
  if (!b->evaluation || b->drop_last || tail == 0 || tail >= b->world) return b->batch;
  return left >= 2 * (int64_t)b->world ? left - b->world : left;
}

lt_span lt_batch_at(const lt_batching *b, int64_t n, int64_t position) {
  int64_t total = batch_total(b, n - position);
  int64_t each = total / b->world, more = total % b->world;
  int64_t rank = b->rank;
  return (lt_span){.begin = position,
                   .total = total,
                   .first = position + rank * each + (rank < more ? rank : more),
                   .n = each + (rank < more)};
}

int64_t lt_batch_count(const lt_batching *b, int64_t n, int64_t position) {
  int64_t left = n - position;
  int64_t whole = left > 2 * b->batch ? left / b->batch - 2 : 0;
  int64_t count = whole, total;
  for (left -= whole * b->batch; (total = batch_total(b, left)) > 0; left -= total) count++;
  return count;
}

lt_rng lt_sample_rng(uint64_t seed, uint32_t epoch, int64_t index) {
  lt_ticket ticket = {.seed = seed, .position = (uint64_t)epoch << 16 | LT_RNG_SAMPLE};
  lt_random4 r = lt_philox(ticket, (uint64_t)index);
  return (lt_rng){.seed = (uint64_t)r.word[1] << 32 | r.word[0], .stream = LT_RNG_SAMPLE};
}
