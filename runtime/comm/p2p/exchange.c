/* runtime/comm/p2p/exchange.c: reductions of few bytes, and the order of additions of all of them.

   They add in the tree T(lo, hi) = T(lo, m) + T(m, hi), on every number of hosts and with every
   transport: it is fixed by the number of ranks alone, so that a run gives the same bits with every
   transport. A library's own reduction (lt_p2p_ops.whole) is used where the order need not be
   fixed: its order of additions depends on the library, the ranks a host and the message's size,
   and sums of floats with it.

   Few bytes of many ranks climb the tree: neighbours at distance 1 first, then 2, then 4, and the
   sum comes down by a broadcast, in 2 log2(ranks) steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/p2p/steps.h"

void lt_p2p_add(const lt_p2p *l, const lt_comm_move *m, const char **from, char *const *sums,
                char *out, int64_t n) {
  for (int distance = 1; distance < l->size; distance *= 2) {
    for (int r = 0; r + distance < l->size; r += 2 * distance) {
      char *to = 2 * distance >= l->size ? out : sums[r];
      l->host->combine(to, from[r], from[r + distance], n, (lt_dtype)m->dtype,
                       (lt_comm_reduce)m->reduce);
      from[r] = to;
    }
  }
  if (l->size == 1) memmove(out, from[0], (size_t)n * l->host->item_size((lt_dtype)m->dtype));
}

/* Once a movement; freed with its state. malloc and not the ctx's allocator: this runs below a
   backend that has no ctx. */
static bool need_scratch(lt_comm_move *m, lt_p2p_moving *s, size_t bytes) {
  if (s->scratch == NULL) s->scratch = malloc(bytes > 0 ? bytes : 1);
  if (s->scratch != NULL) return true;
  snprintf(m->text, sizeof m->text, "out of memory: %zu bytes for a reduction", bytes);
  return false;
}

/* `stage` is the distance of the neighbour whose values are on their way to us, 0 at first, -1
   while the sum of all is on its way to us or from us. Scratch: our sum, then the values that
   come. */
lt_p2p_step lt_p2p_tree_all_reduce(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  size_t bytes = (size_t)m->count * s->item;
  if (s->at == m->count) return LT_STEP_FINISHED;
  if (!need_scratch(m, s, 2 * bytes)) return LT_STEP_FAILED;
  char *sum = s->scratch, *came = s->scratch + bytes;
  int distance = s->stage * 2;
  if (s->stage == 0) {
    memcpy(sum, m->in, bytes);
    distance = 1;
  } else if (s->stage > 0) {
    l->host->combine(sum, sum, came, m->count, (lt_dtype)m->dtype, (lt_comm_reduce)m->reduce);
  }
  for (; s->stage >= 0 && distance < l->size; distance *= 2) {
    if (l->rank & distance) {
      s->stage = -1;
      /* The answer may come while the question is still on its way out: another buffer. */
      return lt_p2p_started(lt_p2p_recv(l, m, s, m->out, m->count, l->rank - distance) &&
                            lt_p2p_send(l, m, s, sum, m->count, l->rank - distance));
    }
    if (l->rank + distance < l->size) {
      s->stage = distance;
      return lt_p2p_started(lt_p2p_recv(l, m, s, came, m->count, l->rank + distance));
    }
  }
  if (l->rank == 0) memcpy(m->out, sum, bytes);
  s->at = m->count;
  return lt_p2p_started(lt_p2p_hand_down(l, m, s, m->out, m->count, 0));
}
