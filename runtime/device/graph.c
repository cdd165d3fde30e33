/* runtime/device/graph.c: begins, ends and launches the segments of a device graph (graph.h).

   To all other work a launch is one operation on the storages that the segments use: those from
   outside, noted when they were captured, and those of the graph's pool that are still in use. */
#include "device/graph.h"

lt_graph *lt_graph_new(lt_ctx *c, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  if (ops->capture_begin == NULL) {
    lt_fail(c, LT_EDEVICE, "cuda.graph: %s has no graphs", ops->name);
    return NULL;
  }
  lt_stream *stream = lt_stream_current(c, d);
  lt_graph *g = stream != NULL ? lt_alloc(c, sizeof *g) : NULL;
  if (g == NULL) return NULL;
  g->device = d;
  g->stream = stream;
  g->pool = lt_pool_new(&c->memory.allocator, ops, d, lt_device_state_of(c)->budget);
  if (g->pool != NULL) return g;
  lt_free(c, g, sizeof *g);
  lt_fail(c, LT_EMEMORY, "cuda.graph: out of memory");
  return NULL;
}

static void segment_free(lt_ctx *c, const lt_graph *g, lt_segment *s) {
  if (s->native != NULL) lt_device_table(c, g->device)->graph_free(g->device.index, s->native);
  for (int k = 0; k < s->n_varying; k++) lt_varying_free(c, &s->varying[k]);
  for (int k = 0; k < s->n_leaves; k++) {
    lt_release(c, s->leaves[k].leaf);
    lt_release(c, s->leaves[k].before);
    lt_release(c, s->leaves[k].after);
  }
  lt_free(c, s->varying, (size_t)s->varying_capacity * sizeof *s->varying);
  lt_free(c, s->leaves, (size_t)s->leaves_capacity * sizeof *s->leaves);
  *s = (lt_segment){0};
}

/* Memory goes back to the device, which waits: not while another graph is captured. */
void lt_graph_free(lt_ctx *c, lt_graph *g) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  if (st->captures != NULL) {
    g->next = st->ended;
    st->ended = g;
    return;
  }
  for (int k = 0; k < g->n; k++) segment_free(c, g, &g->segments[k]);
  for (int k = 0; k < g->n_storages; k++) lt_storage_release(c, g->storages[k].storage);
  lt_free(c, g->storages, (size_t)g->storages_capacity * sizeof *g->storages);
  lt_graph_free_constants(c, g);
  lt_pool_leave(c, g->pool);
  lt_free(c, g, sizeof *g);
}

/* ---- capturing ---- */

/* The caches are given back first: the graph's pool takes none of them. Storages are listed in
   their pool while they are in use (notes_all): launches order those of the graph. */
bool lt_graph_begin(lt_ctx *c, lt_graph *g) {
  lt_device_state *st = lt_device_state_of(c);
  const lt_device_ops *ops = lt_device_table(c, g->device);
  if (!lt_graph_allows(c, "contain another") || !lt_assert(c, g->n < LT_SEGMENTS)) return false;
  lt_device_empty_caches(c);
  if (!lt_device_synchronize(c, g->device) || !ops->capture_begin(c, g->stream)) return false;
  lt_segment *s = &g->segments[g->n++];
  *s = (lt_segment){.from = c->rng, .at = c->rng};
  lt_pool **pool = &st->pools[g->device.kind][g->device.index];
  g->usual = *pool;
  *pool = g->pool;
  g->notes_all = st->notes_all;
  st->notes_all = true;
  st->captures = g;
  return true;
}

static void stop(lt_device_state *st, lt_graph *g) {
  st->captures = NULL;
  st->notes_all = g->notes_all;
  st->pools[g->device.kind][g->device.index] = g->usual;
}

static void free_ended(lt_ctx *c, lt_device_state *st) {
  while (st->ended != NULL) {
    lt_graph *g = st->ended;
    st->ended = g->next;
    lt_graph_free(c, g);
  }
}

static bool issue(lt_ctx *c, lt_graph *g, const lt_segment *s);

/* What the script computed when it was captured was not computed: it is now. */
bool lt_graph_end(lt_ctx *c, lt_graph *g, bool keep) {
  lt_device_state *st = lt_device_state_of(c);
  lt_segment *s = &g->segments[g->n - 1];
  if (!lt_assert(c, st->captures == g)) return false;
  s->native = lt_device_table(c, g->device)->capture_end(c, g->stream, keep);
  stop(st, g);
  if (s->native == NULL) {
    segment_free(c, g, s);
    g->n--;
  }
  free_ended(c, st);
  if (s->native == NULL) return !keep;
  s->to = c->rng;
  for (int k = 0; k < s->n_leaves; k++) s->leaves[k].after = lt_retain(s->leaves[k].leaf->grad);
  return issue(c, g, s);
}

/* ---- launching ---- */

bool lt_graph_suits(const lt_graph *g, int segment) {
  const lt_segment *s = &g->segments[segment];
  for (int k = 0; k < s->n_leaves; k++)
    if (!s->leaves[k].is_set && s->leaves[k].leaf->grad != s->leaves[k].before) return false;
  return true;
}

bool lt_graph_adds(const lt_graph *g, int segment) {
  const lt_segment *s = &g->segments[segment];
  for (int k = 0; k < s->n_leaves; k++)
    if (!s->leaves[k].is_set && s->leaves[k].before != NULL) return true;
  return false;
}

static bool order_before(lt_ctx *c, const lt_graph *g) {
  for (int k = 0; k < g->n_storages; k++)
    if (!lt_order_before(c, g->storages[k].storage, g->stream, g->storages[k].writes)) return false;
  for (lt_block *b = g->pool->in_use; b != NULL; b = b->older)
    if (!lt_order_before(c, &b->storage, g->stream, true)) return false;
  return true;
}

static bool order_after(lt_ctx *c, const lt_graph *g) {
  lt_event at;
  if (!lt_order_record(c, g->device, g->stream, &at)) return false;
  for (int k = 0; k < g->n_storages; k++)
    lt_order_after(g->storages[k].storage, at, g->storages[k].writes);
  for (lt_block *b = g->pool->in_use; b != NULL; b = b->older)
    lt_order_after(&b->storage, at, true);
  return true;
}

static bool issue(lt_ctx *c, lt_graph *g, const lt_segment *s) {
  lt_pool_drain(c, g->pool);
  if (!order_before(c, g)) return false;
  bool ok = lt_device_table(c, g->device)->graph_launch(c, g->stream, s->native);
  return order_after(c, g) && ok;
}

/* Tapes that have saved what it writes are stale, as after any write in place. */
static void bump_versions(lt_ctx *c, const lt_graph *g) {
  const char *op = c->op;
  bool update = c->modes.update;
  c->op = "cuda.graph", c->modes.update = true;
  for (int k = 0; k < g->n_storages; k++)
    if (g->storages[k].writes) lt_storage_bump(c, g->storages[k].storage);
  c->op = op, c->modes.update = update;
}

static void set_gradients(lt_ctx *c, const lt_segment *s) {
  for (int k = 0; k < s->n_leaves; k++) {
    lt_tensor *leaf = s->leaves[k].leaf, *after = s->leaves[k].after;
    if (leaf->grad == after) continue;
    lt_release(c, leaf->grad);
    leaf->grad = lt_retain(after);
    lt_tensor_note_grad(c, leaf);
  }
}

static void move_on(lt_rng *rng, const lt_segment *s) {
  bool same = s->to.batch == s->from.batch;
  rng->batch += s->to.batch - s->from.batch;
  rng->ordinal = s->to.ordinal + (same ? rng->ordinal - s->from.ordinal : 0);
}

bool lt_graph_launch(lt_ctx *c, lt_graph *g, int segment) {
  lt_segment *s = &g->segments[segment];
  if (!lt_graph_allows(c, "contain another")) return false;
  s->at = c->rng;
  if (!lt_graph_move_keys(c, g, segment) || !issue(c, g, s)) return false;
  bump_versions(c, g);
  set_gradients(c, s);
  move_on(&c->rng, s);
  return true;
}
