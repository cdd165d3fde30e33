/* runtime/xla/record.c: records calls and copies as nodes of the graph. No text is made here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "xla/graph.h"
#include "xla/lowerings.h"
#include "xla/plugin.h"
#include "xla/report.h"

static void put(lt_graph *g, int64_t word) {
  g->hash = (g->hash ^ (uint64_t)word) * 0x9E3779B97F4A7C15u;
  g->hash ^= g->hash >> 29;
  LT_PUSH(g, g->stream, word);
}

static int value_new(lt_graph *g, int type, int64_t n, lt_leaf *leaf) {
  bool sharded = leaf != NULL ? leaf->sharded : false;
  LT_PUSH(g, g->values, ((lt_value){type, n, leaf, sharded}));
  return (int)g->values.n - 1;
}

static void list_slot(lt_graph *g, lt_slot *s) {
  if (!s->listed) s->listed = LT_PUSH(g, g->slots, s);
}

/* The value of a storage, whose type is known by what is done with it first. */
static int64_t value_of(lt_graph *g, lt_slot *s, int type) {
  if (s->value >= 0) return s->value;
  if (s->type < 0) s->type = type;
  int64_t n = (int64_t)(s->bytes / lt_hlo_bytes(s->type));
  put(g, s->leaf == NULL ? LT_NODE_ZERO : s->leaf->sharded ? LT_NODE_SHARDED : LT_NODE_LEAF);
  put(g, s->type);
  put(g, n);
  s->value = value_new(g, s->type, n, s->leaf != NULL ? lt_leaf_retain(s->leaf) : NULL);
  list_slot(g, s);
  return s->value;
}

/* Tensors that have all of a contiguous storage need not what was in it. */
static bool is_whole(const lt_slot *s, const lt_flat_view *v) {
  return lt_view_is_whole(v, (int64_t)(s->bytes / lt_hlo_bytes(v->type)));
}

static void put_shape(lt_graph *g, const lt_flat_view *v) {
  put(g, v->type);
  if (v->type < 0) return;
  put(g, v->ndim);
  for (int k = 0; k < v->ndim; k++) put(g, v->size[k]);
}

static void put_place(lt_graph *g, const lt_flat_view *v, const lt_slot *s) {
  LT_PUSH(g, g->offsets, v->offset);
  if (v->type < 0) return;
  put(g, v->value);
  put(g, v->written);
  int64_t n = (int64_t)(s->bytes / lt_hlo_bytes(v->type));
  put(g, lt_view_boxed(v, n) + 2 * lt_slot_shards(s, n));
  for (int k = 0; k < v->ndim; k++) put(g, v->stride[k]);
}

static void forget_value(lt_slot *s, int type) {
  lt_leaf_release(s->leaf);
  s->leaf = NULL;
  s->lost = false;
  s->type = type;
  s->value = -1;
}

/* A storage's new value replaces its leaf, whose memory the program may then use for it. */
static int64_t write(lt_graph *g, lt_slot *s, int type) {
  forget_value(s, type);
  int64_t n = (int64_t)(s->bytes / lt_hlo_bytes(type));
  s->value = value_new(g, type, n, NULL);
  g->values.at[s->value].sharded = lt_slot_shards(s, n);
  list_slot(g, s);
  return s->value;
}

static bool lost(lt_ctx *c) {
  return lt_xla_host->fail(c, LT_EDEVICE,
                           "xla: the value of a tensor was lost when a program failed");
}

enum { TENSORS = 32 };

typedef struct seen {
  lt_flat_view v;
  lt_slot *slot;
} seen;

static bool see(lt_ctx *c, lt_tensor *t, seen *s) {
  lt_view v;
  lt_storage_place place;
  size_t offset;
  s->v = (lt_flat_view){.value = -1, .written = -1, .type = -1};
  s->slot = NULL;
  if (t == NULL) return true;
  if (!lt_xla_host->view(c, t, &v)) return false;
  lt_xla_host->place(t, &place);
  s->slot = lt_slot_at(place.base, &offset);
  if (s->slot == NULL)
    return lt_xla_host->fail(c, LT_EDEVICE, "xla: a tensor that is not on this device");
  s->v.type = (int)v.dtype;
  s->v.ndim = v.ndim;
  s->v.offset = place.offset;
  memcpy(s->v.size, v.size, sizeof v.size);
  memcpy(s->v.stride, v.stride, sizeof v.stride);
  return true;
}

static void put_sizes(lt_graph *g, int n, const int64_t *size) {
  put(g, n);
  for (int k = 0; k < n; k++) put(g, size[k]);
}

/* Of some numbers a program depends: whether there is a momentum, which norm. */
static void put_number(lt_graph *g, const char *name, double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (strcmp(name, "momentum") == 0) put(g, value != 0);
  if (strcmp(name, "p") == 0) put(g, bits);
  LT_PUSH(g, g->numbers, value);
}

/* What integers take of a scalar. */
static uint64_t whole_of(const lt_scalar *s) {
  if (s->kind == LT_SCALAR_INT || s->kind == LT_SCALAR_BOOL) return (uint64_t)s->i;
  return s->kind == LT_SCALAR_FLOAT && fabs(s->f) < 0x1p63 ? (uint64_t)(int64_t)s->f : 0;
}

/* What of an argument is structure goes to the stream, what is a number to the numbers. `step` of
   Adam and `first` of SGD are what lowerings see only by derived numbers. */
static void put_argument(lt_graph *g, const lt_arg *a, const void *at, bool derived) {
  switch (a->type) {
    case LT_ARG_NUMBER: put_number(g, a->name, *(const double *)at); break;
    case LT_ARG_SCALAR: {
      const lt_scalar *s = at;
      put(g, s->kind);
      LT_PUSH(g, g->numbers, s->kind != LT_NO_SCALAR ? s->f : 0);
      LT_PUSH(g, g->words, whole_of(s));
      break;
    }
    case LT_ARG_RNG_KEY: {
      const lt_rng_key *k = at;
      put(g, k->drawn);
      LT_PUSH(g, g->words, k->seed);
      LT_PUSH(g, g->words, k->position);
      LT_PUSH(g, g->words, k->base);
      break;
    }
    case LT_ARG_FLAG:
      if (derived && strcmp(a->name, "first") == 0) break;
      put(g, *(const bool *)at);
      break;
    case LT_ARG_DTYPE: put(g, *(const lt_dtype *)at); break;
    case LT_ARG_DEVICE: break;
    case LT_ARG_DIMS: put_sizes(g, ((const lt_dims *)at)->n, ((const lt_dims *)at)->dim); break;
    case LT_ARG_SIZES:
    case LT_ARG_EACH:
    case LT_ARG_PADDING:
      put_sizes(g, ((const lt_sizes *)at)->n, ((const lt_sizes *)at)->size);
      break;
    case LT_ARG_PAIR:
      put(g, ((const lt_pair *)at)->h);
      put(g, ((const lt_pair *)at)->w);
      break;
    case LT_ARG_INT:
      if (derived && strcmp(a->name, "step") == 0) break;
      put(g, *(const int64_t *)at);
      break;
    case LT_ARG_DIM:
    case LT_ARG_POS:
    case LT_ARG_CHOICE: put(g, *(const int64_t *)at); break;
  }
}

/* A script's line costs more than a node: it is asked for where an index may be wrong. */
static uint32_t line_of(lt_ctx *c, const seen *list, int n) {
  bool indices = false;
  for (int k = 0; k < n; k++)
    indices = indices || (list[k].slot != NULL && (list[k].v.type == LT_I64 ||
                                                    list[k].v.type == LT_I32));
  return indices ? lt_xla_host->line(c) : lt_xla_host->known_line(c);
}

static bool put_arguments(lt_ctx *c, lt_graph *g, const lt_call *call, const seen *list, int n) {
  int n_args = 0;
  const lt_arg *args = lt_xla_host->arguments(call->op, &n_args);
  lt_derive *derive = lt_derive_of(call->op);
  const char *given = call->args != NULL ? call->args : lt_xla_no_args;
  double derived[LT_DERIVED];
  lt_node node = {g->args.n, call->args_size, g->numbers.n, g->words.n, g->offsets.n, 0};
  LT_PUSH(g, g->words, (uint64_t)line_of(c, list, n));
  for (int k = 0; k < n_args; k++)
    put_argument(g, &args[k], given + args[k].offset, derive != NULL);
  int m = derive != NULL ? derive(call, derived) : 0;
  for (int k = 0; k < m; k++) LT_PUSH(g, g->numbers, derived[k]);
  size_t bytes = (call->args_size + 15) / 16 * 16;
  if (g->args.n + bytes > g->args.capacity && !lt_list_grow(&g->args, bytes, 1)) g->failed = true;
  if (!g->failed && call->args_size > 0) {
    memcpy(g->args.at + g->args.n, call->args, call->args_size);
    g->args.n += bytes;
  }
  LT_PUSH(g, g->nodes, node);
  return !g->failed || lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
}

/* Where a graph stood before a call that has no lowering. */
typedef struct mark {
  size_t stream, args, numbers, words;
  uint64_t hash;
} mark;

static mark mark_of(const lt_graph *g) {
  return (mark){g->stream.n, g->args.n, g->numbers.n, g->words.n, g->hash};
}

static void roll_back(lt_graph *g, mark m) {
  g->stream.n = m.stream;
  g->args.n = m.args;
  g->numbers.n = m.numbers;
  g->words.n = m.words;
  g->nodes.n--;
  g->hash = m.hash;
}

/* Whether there are lowerings for calls, by the hash of op, arguments and shapes. */
enum { KNOWN = 1 << 12 };
static struct { uint64_t hash; bool takes; } known[KNOWN];

static bool takes(const lt_call *call, uint64_t hash, const lt_flat_view *tensors) {
  size_t k = hash % KNOWN;
  if (known[k].hash == hash) return known[k].takes;
  known[k].hash = hash;
  return known[k].takes = lt_program_takes(call, tensors);
}

/* Op, arguments and shapes; the hash is of these alone. */
static bool put_structure(lt_ctx *c, lt_graph *g, const lt_call *call, const seen *list) {
  int n = call->n_in + call->n_out;
  g->hash = 0;
  put(g, call->op);
  put(g, call->n_in);
  put(g, call->n_out);
  size_t count = g->stream.n;
  put(g, 0);
  if (!put_arguments(c, g, call, list, n)) return false;
  g->stream.at[count] = (int64_t)(g->stream.n - count - 1);
  for (int k = 0; k < n; k++) put_shape(g, &list[k].v);
  return true;
}

static bool check_takes(const lt_call *call, uint64_t hash, const seen *list) {
  int n = call->n_in + call->n_out;
  lt_flat_view few[TENSORS], *v = n > TENSORS ? malloc((size_t)n * sizeof *v) : few;
  if (v == NULL) return false;
  for (int k = 0; k < n; k++) v[k] = list[k].v;
  bool ok = takes(call, hash, v);
  if (v != few) free(v);
  return ok;
}

/* Whether a call makes a storage of zeros, or of no values: then it stays unwritten, and reads as
   zeros. */
static bool makes_nothing(const lt_call *call, const seen *out) {
  lt_lower *lower = lt_lower_of(call->op);
  if (call->n_in > 0 || call->n_out != 1 || !is_whole(out->slot, &out->v)) return false;
  if (lower != lt_lower_full) return lower == lt_lower_empty;
  const lt_scalar *s = lt_xla_host->argument(call, "fill_value");
  return s != NULL && s->kind != LT_NO_SCALAR && s->f == 0 && !signbit(s->f);
}

/* Unwritten storages that are leaves all the same: states of optimizers and small ones, which sums
   over steps begin with. Later they are leaves, too: all steps are one program. */
static bool becomes_leaf(const lt_call *call, int k, const lt_slot *s) {
  if (s->bytes <= LT_SMALL_LEAF) return true;
  return k < call->n_in && lt_derive_of(call->op) != NULL && lt_xla_host->writes(call, k);
}

static bool make_leaf(lt_ctx *c, lt_slot *s, int type) {
  size_t n = s->bytes / lt_hlo_bytes(type);
  if (s->leaf != NULL || s->value >= 0 || s->lost) return true;
  void *zeros = calloc(1, s->bytes);
  bool sharded = lt_slot_shards(s, (int64_t)n);
  s->leaf = zeros != NULL ? lt_leaf_upload(c, zeros, type, (int64_t)n, sharded) : NULL;
  free(zeros);
  s->type = type;
  return s->leaf != NULL || lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
}

/* Values are read before any is written: a call may write what it reads. */
static bool record(lt_ctx *c, const lt_call *call, seen *list, bool *taken) {
  lt_graph *g = &lt_xla_graph;
  int n = call->n_in + call->n_out;
  for (int k = 0; k < n; k++) {
    seen *s = &list[k];
    if (!see(c, k < call->n_in ? call->in[k] : call->out[k - call->n_in], s)) return false;
    if (s->slot == NULL) continue;
    if (k == 0 && makes_nothing(call, s)) return forget_value(s->slot, s->v.type), true;
    bool reads = k < call->n_in || !is_whole(s->slot, &s->v);
    if (reads && s->slot->lost) return lost(c);
    if (reads && becomes_leaf(call, k, s->slot) && !make_leaf(c, s->slot, s->v.type)) return false;
    if (reads) s->v.value = value_of(g, s->slot, s->v.type);
  }
  mark before = mark_of(g);
  if (!put_structure(c, g, call, list)) return false;
  uint64_t structure = g->hash;
  if (!(*taken = check_takes(call, structure, list))) return roll_back(g, before), true;
  g->hash = before.hash;
  put(g, (int64_t)structure);
  g->stream.n--; /* it is in the stream already */
  for (int k = 0; k < n; k++) {
    seen *s = &list[k];
    if (s->slot != NULL && (k >= call->n_in || lt_xla_host->writes(call, k)))
      s->v.written = write(g, s->slot, s->v.type);
    put_place(g, &s->v, s->slot);
  }
  g->recorded++;
  if (!g->failed) g->nodes.at[g->nodes.n - 1].line = lt_report_line(c, g->hash);
  return !g->failed || lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
}

bool lt_xla_record(lt_ctx *c, const lt_call *call, bool *taken) {
  seen few[TENSORS], *list = few;
  lt_graph *g = &lt_xla_graph;
  /* A graph is of one root: its errors are that one's. */
  if (g->nodes.n > 0 && g->root != lt_xla_host->root(c) && !lt_xla_cut(c, LT_CUT_CONTEXT))
    return false;
  g->root = lt_xla_host->root(c);
  int n = call->n_in + call->n_out;
  if (n > TENSORS && (list = malloc((size_t)n * sizeof *list)) == NULL)
    return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
  bool ok = record(c, call, list, taken);
  if (list != few) free(list);
  return ok;
}

/* One dim of n elements from an element on. */
static lt_flat_view row(int type, size_t offset, size_t bytes) {
  size_t size = lt_hlo_bytes(type);
  return (lt_flat_view){.value = -1, .written = -1, .type = type, .ndim = 1,
                        .offset = (int64_t)(offset / size), .size = {(int64_t)(bytes / size)},
                        .stride = {1}};
}

static bool put_copy(lt_graph *g, lt_flat_view from, const lt_slot *source, lt_slot *s,
                     size_t offset, size_t bytes, int type) {
  lt_flat_view to = row(type, offset, bytes);
  bool whole = is_whole(s, &to);
  if (!whole) to.value = value_of(g, s, type);
  put(g, LT_NODE_COPY);
  put(g, 1);
  put(g, 1);
  put(g, 0);
  put_shape(g, &from);
  put_shape(g, &to);
  size_t first = g->offsets.n;
  put_place(g, &from, source);
  to.written = write(g, s, type);
  put_place(g, &to, s);
  g->recorded++;
  LT_PUSH(g, g->nodes, ((lt_node){g->args.n, 0, g->numbers.n, g->words.n, first, 0}));
  return !g->failed;
}

static bool no_storage(lt_ctx *c) {
  return lt_xla_host->fail(c, LT_EDEVICE, "xla: an address that is not of this device");
}

lt_slot *lt_xla_readable(lt_ctx *c, const void *address, size_t *offset) {
  lt_slot *s = lt_slot_at(address, offset);
  if (s == NULL) no_storage(c);
  if (s != NULL && s->lost) lost(c);
  return s != NULL && !s->lost ? s : NULL;
}

bool lt_xla_record_copy(lt_ctx *c, void *dst, const void *src, size_t bytes, int type) {
  lt_graph *g = &lt_xla_graph;
  size_t from, to;
  lt_slot *a = lt_xla_readable(c, src, &from), *b = lt_slot_at(dst, &to);
  if (a == NULL) return false;
  if (b == NULL) return no_storage(c);
  if (type == LT_U8 && a->type >= 0) type = a->type; /* bytes of no known type */
  lt_flat_view v = row(type, from, bytes);
  v.value = value_of(g, a, type);
  return put_copy(g, v, a, b, to, bytes, type) ||
         lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
}

bool lt_xla_record_upload(lt_ctx *c, void *dst, lt_leaf *leaf, size_t bytes, int type) {
  lt_graph *g = &lt_xla_graph;
  size_t to;
  lt_slot *b = lt_slot_at(dst, &to);
  if (leaf == NULL) return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  if (b == NULL || (to == 0 && bytes == b->bytes)) {
    if (b == NULL) return lt_leaf_release(leaf), no_storage(c);
    lt_leaf_release(b->leaf);
    b->leaf = leaf;
    b->value = -1;
    b->type = type;
    b->lost = false;
    return true;
  }
  lt_flat_view v = row(type, 0, bytes);
  put(g, LT_NODE_LEAF);
  put(g, type);
  put(g, v.size[0]);
  v.value = value_new(g, type, v.size[0], leaf);
  lt_slot source = {.bytes = bytes};
  return put_copy(g, v, &source, b, to, bytes, type) ||
         lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for recording");
}
