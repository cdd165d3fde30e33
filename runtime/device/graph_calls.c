/* runtime/device/graph_calls.c: the calls of a device graph whose arguments change from launch to
   launch (graph.h): keys of random numbers, and updates of optimizers.

   A key is a position: seed, stream, batch, number of the draw (base/random.h). A draw keeps its
   distance from the beginning of the segment that drew it, so that a launch draws what the script
   would have drawn. Backward repeats the key of a draw of forward, and moves along with it. */
#include "device/graph.h"

/* The kernel asks for the scratch that it had when it was captured. */
static bool update(lt_ctx *c, const lt_graph *g, const lt_segment *s, const lt_varying *v) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  const lt_device_ops *ops = lt_device_table(c, g->device);
  lt_launch before = st->launch;
  st->launch = (lt_launch){.device = g->device, .is_open = true, .given = v->scratch,
                           .n_given = v->n_scratch};
  bool ok = ops->graph_update(c, g->stream, s->native, v->number, v->kernel, &v->call);
  st->launch = before;
  return ok && lt_ok(c);
}

/* ---- random numbers ---- */

static uint64_t draw_of(uint32_t batch, uint32_t ordinal) {
  return (uint64_t)batch << 32 | ordinal;
}

/* The key that the draw has in this launch. */
static lt_rng_key moved(const lt_graph *g, int segment, lt_rng_key key) {
  uint32_t batch = (uint32_t)(key.position >> 32);
  uint32_t ordinal = (uint32_t)((key.position >> 16 & 0xffff) | key.base >> 48 << 16);
  const lt_segment *s = NULL;
  for (int k = segment; k >= 0 && s == NULL; k--) {
    const lt_rng *from = &g->segments[k].from;
    if (key.seed == from->seed && (key.position & 0xffff) == from->stream &&
        draw_of(batch, ordinal) >= draw_of(from->batch, from->ordinal))
      s = &g->segments[k];
  }
  if (s == NULL) return key; /* drawn before the graph */
  if (batch == s->from.batch) ordinal += s->at.ordinal - s->from.ordinal;
  batch += s->at.batch - s->from.batch;
  lt_rng rng = {.seed = s->at.seed, .stream = s->at.stream, .batch = batch, .ordinal = ordinal};
  lt_rng_key now = lt_rng_draw(&rng);
  now.base |= key.base & (((uint64_t)1 << 48) - 1); /* where a part of a tensor begins */
  return now;
}

bool lt_graph_move_keys(lt_ctx *c, lt_graph *g, int segment) {
  lt_segment *s = &g->segments[segment];
  for (int k = 0; k < s->n_varying; k++) {
    lt_varying *v = &s->varying[k];
    if (v->key == LT_NO_KEY) continue;
    lt_rng_key now = moved(g, segment, v->captured), last;
    memcpy(&last, (char *)v->args + v->key, sizeof last);
    if (last.seed == now.seed && last.position == now.position && last.base == now.base) continue;
    memcpy((char *)v->args + v->key, &now, sizeof now);
    if (!update(c, g, s, v)) return false;
  }
  return true;
}

/* ---- updates ---- */

bool lt_graph_feed(lt_ctx *c, lt_graph *g, int segment) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  if (!lt_graph_allows(c, "contain another") || !lt_assert(c, st->feed.graph == NULL)) return false;
  st->feed = (lt_graph_feeding){.graph = g, .segment = segment, .rng = c->rng};
  return true;
}

/* The next update of the segment, from number `k` on; NULL: none. */
static lt_varying *next_update(lt_segment *s, int *k) {
  while (*k < s->n_varying && s->varying[*k].key != LT_NO_KEY) (*k)++;
  return *k < s->n_varying ? &s->varying[(*k)++] : NULL;
}

bool lt_graph_feed_end(lt_ctx *c, bool complete) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  lt_graph_feeding feed = st->feed;
  st->feed = (lt_graph_feeding){0};
  c->rng = feed.rng;
  return !complete || next_update(&feed.graph->segments[feed.segment], &feed.next) == NULL ||
         lt_fail(c, LT_EDEVICE, "cuda.graph: an optimizer has fewer updates than were captured");
}

static bool is_same(const lt_tensor *a, const lt_tensor *b) {
  if (a == NULL || b == NULL) return a == b;
  return lt_data(a) == lt_data(b) && a->dtype == b->dtype && a->numel == b->numel;
}

bool lt_graph_fed_call(lt_ctx *c, const lt_call *call) {
  lt_graph_feeding *feed = &((lt_device_state *)c->slot[LT_SLOT_DEVICE])->feed;
  lt_segment *s = &feed->graph->segments[feed->segment];
  lt_varying *v = next_update(s, &feed->next);
  bool same = v != NULL && v->call.op == call->op && v->call.n_in == call->n_in &&
              call->n_out == 0 && v->call.args_size == call->args_size;
  for (int k = 0; k < call->n_in && same; k++) same = is_same(v->call.in[k], call->in[k]);
  if (!same)
    return lt_fail(c, LT_EDEVICE, "%s%snot what the CUDA graph has captured of this optimizer",
                   lt_op_name(c), lt_op_colon(c));
  if (memcmp(v->args, call->args, call->args_size) == 0) return true;
  memcpy(v->args, call->args, call->args_size);
  return update(c, feed->graph, s, v);
}
