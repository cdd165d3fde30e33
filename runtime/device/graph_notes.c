/* runtime/device/graph_notes.c: what a device graph notes of the work that it captures, as that is
   issued (graph.h): storages, gradients of leaves, calls whose arguments change. */
#include "device/graph.h"

bool lt_graph_allows(lt_ctx *c, const char *what) {
  return lt_graph_captures(c) == NULL ||
         lt_fail(c, LT_EDEVICE, "%s%sa captured CUDA graph cannot %s", lt_op_name(c),
                 lt_op_colon(c), what);
}

/* Makes a list of `*capacity` elements longer where `n` fill it. */
static bool grow(lt_ctx *c, void **list, int *capacity, int n, size_t size) {
  if (n < *capacity) return true;
  int more = *capacity > 0 ? 2 * *capacity : 64;
  void *grown = lt_realloc(c, *list, (size_t)*capacity * size, (size_t)more * size);
  if (grown == NULL) return false;
  *list = grown;
  *capacity = more;
  return true;
}

/* What it uses from outside stays as long as the graph: launches have its address. */
bool lt_graph_note_use(lt_ctx *c, lt_graph *g, lt_storage *s, const lt_stream *stream,
                       bool writes) {
  if (stream != g->stream) return lt_graph_allows(c, "use another stream or GPU");
  if (s->owner == g->pool) return true;
  for (int k = g->n_storages - 1; k >= 0; k--) {
    if (g->storages[k].storage != s) continue;
    g->storages[k].writes |= writes;
    return true;
  }
  void *list = g->storages;
  bool ok = grow(c, &list, &g->storages_capacity, g->n_storages, sizeof *g->storages);
  g->storages = list;
  if (ok) g->storages[g->n_storages++] = (lt_graph_storage){lt_storage_retain(s), writes};
  return ok;
}

bool lt_graph_has_leaf(const lt_graph *g, const lt_tensor *leaf) {
  const lt_segment *s = &g->segments[g->n - 1];
  for (int k = 0; k < s->n_leaves; k++)
    if (s->leaves[k].leaf == leaf) return true;
  return false;
}

bool lt_graph_note_leaf(lt_ctx *c, lt_graph *g, lt_tensor *leaf, bool is_set) {
  lt_segment *s = &g->segments[g->n - 1];
  if (lt_graph_has_leaf(g, leaf)) return true;
  void *list = s->leaves;
  bool ok = grow(c, &list, &s->leaves_capacity, s->n_leaves, sizeof *s->leaves);
  s->leaves = list;
  if (ok)
    s->leaves[s->n_leaves++] = (lt_graph_leaf){.leaf = lt_retain(leaf), .is_set = is_set,
                                               .before = lt_retain(leaf->grad)};
  return ok;
}

/* The call and what kernels read of its tensors. */
static bool copy_call(lt_ctx *c, lt_varying *v, const lt_call *call) {
  size_t n = (size_t)(call->n_in + call->n_out);
  v->call = *call;
  v->call.n_in = v->call.n_out = 0; /* till there is memory */
  v->call.args_size = 0;
  v->tensors = lt_alloc(c, (n + 1) * sizeof *v->tensors);
  v->storages = lt_alloc(c, (n + 1) * sizeof *v->storages);
  v->places = lt_alloc(c, (n + 1) * sizeof *v->places);
  v->args = lt_alloc(c, call->args_size + 1);
  if (v->tensors == NULL || v->storages == NULL || v->places == NULL || v->args == NULL)
    return false;
  for (size_t k = 0; k < n; k++) {
    const lt_tensor *t = k < (size_t)call->n_in ? call->in[k] : call->out[k - (size_t)call->n_in];
    if (t == NULL) continue;
    v->tensors[k] = *t;
    memcpy(&v->storages[k], t->storage, sizeof v->storages[k]);
    v->tensors[k].storage = &v->storages[k];
    v->places[k] = &v->tensors[k];
  }
  memcpy(v->args, call->args, call->args_size);
  v->call = *call;
  v->call.in = v->places, v->call.out = v->places + call->n_in, v->call.args = v->args;
  return true;
}

void lt_varying_free(lt_ctx *c, lt_varying *v) {
  size_t n = (size_t)(v->call.n_in + v->call.n_out);
  lt_free(c, v->tensors, (n + 1) * sizeof *v->tensors);
  lt_free(c, v->storages, (n + 1) * sizeof *v->storages);
  lt_free(c, v->places, (n + 1) * sizeof *v->places);
  lt_free(c, v->args, v->call.args_size + 1);
}

bool lt_graph_note_call(lt_ctx *c, lt_graph *g, lt_kernel kernel, const lt_call *call, bool varies,
                        int64_t key) {
  lt_segment *s = &g->segments[g->n - 1];
  const lt_launch *now = &((const lt_device_state *)c->slot[LT_SLOT_DEVICE])->launch;
  int64_t number = s->launches++;
  if (!varies) return true;
  void *list = s->varying;
  bool ok = grow(c, &list, &s->varying_capacity, s->n_varying, sizeof *s->varying);
  s->varying = list;
  if (!ok) return false;
  lt_varying *v = &s->varying[s->n_varying];
  *v = (lt_varying){.kernel = kernel, .number = number, .key = key, .n_scratch = now->n_scratch};
  for (int k = 0; k < now->n_scratch; k++) v->scratch[k] = now->scratch[k]->data;
  if (key != LT_NO_KEY)
    memcpy(&v->captured, (const char *)call->args + key, sizeof v->captured);
  if (!copy_call(c, v, call)) return false;
  s->n_varying++;
  return true;
}
