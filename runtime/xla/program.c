/* runtime/xla/program.c: the text of a graph's program, made when its structure is new.

   Parameters are the leaves, flat, in the order of their use; then the numbers as f32, the numbers
   as f64, the words (ui64) and the error word, where they are needed. */
#include <stdlib.h>
#include <string.h>

#include "xla/graph.h"
#include "xla/lowerings.h"
#include "xla/plugin.h"
#include "xla/program_text.h"
#include "xla/views.h"

typedef struct tensors {
  lt_hlo *in, *out, *written;
  lt_flat_view *v;
} tensors;

static bool tensors_new(tensors *t, int64_t n) {
  t->in = calloc((size_t)(3 * n + 1), sizeof *t->in);
  t->v = calloc((size_t)(n + 1), sizeof *t->v);
  t->written = t->in + n;
  t->out = t->in + 2 * n;
  return t->in != NULL && t->v != NULL;
}

static void tensors_free(tensors *t) {
  free(t->in);
  free(t->v);
}

static bool lower(struct lt_program_text *p, lt_hlo_text *h, const lt_call *call, tensors *t) {
  lt_lowering l = {.h = h, .op = call->op, .n_in = call->n_in, .n_out = call->n_out, .in = t->in,
                   .out = t->out, .written = t->written, .call = call, .program = p};
  lt_lower *f = lt_lower_of(call->op);
  return f != NULL && f(&l) && !h->failed;
}

static lt_hlo typed(const lt_flat_view *v) { return lt_hlo_of(v->type, v->ndim, v->size); }

bool lt_program_takes(const lt_call *given, const lt_flat_view *v) {
  lt_call with_args = *given, *call = &with_args;
  if (with_args.args == NULL) with_args.args = lt_xla_no_args;
  lt_hlo_text h = {.discard = true, .values = 1000};
  lt_node node = {0};
  struct lt_program_text p = {.node = &node, .numbers = lt_hlo_of(LT_F32, 1, (int64_t[]){1}),
                              .wide = lt_hlo_of(LT_F64, 1, (int64_t[]){1}),
                              .words = lt_hlo_of(LT_HLO_U64, 1, (int64_t[]){1}),
                              .error = lt_hlo_of(LT_I64, 1, (int64_t[]){ERROR_WORDS})};
  p.numbers.id = 1, p.words.id = 2, p.error.id = 3, p.wide.id = 4;
  tensors t;
  int n = call->n_in + call->n_out;
  bool ok = tensors_new(&t, n);
  for (int k = 0; ok && k < n; k++) {
    if (v[k].type < 0) continue;
    lt_hlo x = typed(&v[k]);
    x.id = 10 + k;
    if (k < call->n_in) t.in[k] = x;
    else t.out[k - call->n_in] = typed(&v[k]);
  }
  ok = ok && lower(&p, &h, call, &t);
  free(h.text);
  tensors_free(&t);
  return ok;
}

/* Outputs have the types of their tensors, whatever a lowering computes in. */
static void set_value(struct lt_program_text *p, lt_hlo_text *h, const lt_flat_view *v,
                      lt_hlo offset, lt_hlo x) {
  lt_hlo old = v->value >= 0 ? p->values[v->value] : (lt_hlo){0};
  x = lt_hlo_convert(h, x, v->type);
  if (lt_hlo_numel(x) != lt_hlo_numel(typed(v))) h->failed = true;
  p->values[v->written] = lt_view_write(h, old, p->g->values.at[v->written].n, v, offset,
                                        x);
}

/* The offset of tensor k of the node, where it is an input. */
static lt_hlo offset_of(struct lt_program_text *p, lt_hlo_text *h, int k) {
  size_t at = p->node->offset + (size_t)k, word = p->g->words.n;
  if (!p->io->promoted[at]) return (lt_hlo){0};
  for (size_t j = 0; j < at; j++) word += p->io->promoted[j] != 0;
  return lt_hlo_bits(h, lt_hlo_element(h, p->words, word), LT_I64);
}

/* XLA joins the numbers of chains like x + 1 + 1 + ..., in a time that grows with the square of
   their length: after so many links it may not look further back. */
enum { LINKS = 32 };

static void bound_chain(struct lt_program_text *p, lt_hlo_text *h, const lt_call *call,
                        tensors *t) {
  bool links = call->op >= 0 && call->n_in == 1 && t->v[0].type >= 0 &&
               lt_lower_of(call->op) == lt_lower_row;
  int n = links ? p->links[t->v[0].value] + 1 : 0;
  if (n == LINKS && !h->failed) {
    lt_hlo *x = t->written[0].id != 0 ? &t->written[0] : &t->out[0];
    *x = lt_hlo_line(h, *x, "stablehlo.optimization_barrier $ : @", x, x);
    n = 0;
  }
  for (int k = 0; k < call->n_in + call->n_out; k++)
    if (t->v[k].type >= 0 && t->v[k].written >= 0)
      p->links[t->v[k].written] = (unsigned char)n;
}

static const int64_t *emit_call(struct lt_program_text *p, lt_hlo_text *h, const int64_t *at) {
  lt_call call = {.op = (int)at[0], .n_in = (int)at[1], .n_out = (int)at[2],
                  .args = p->node->args_size > 0 ? p->g->args.at + p->node->args : lt_xla_no_args,
                  .args_size = p->node->args_size};
  tensors t;
  if (!tensors_new(&t, call.n_in + call.n_out)) {
    tensors_free(&t);
    h->failed = true;
    return at;
  }
  const int64_t *next = lt_stream_call(at, p->g->offsets.at + p->node->offset, t.v);
  const lt_flat_view *out = t.v + call.n_in;
  for (int k = 0; k < call.n_in; k++)
    if (t.v[k].type >= 0)
      t.in[k] = lt_view_read(h, p->values[t.v[k].value], &t.v[k], offset_of(p, h, k));
  for (int k = 0; k < call.n_out; k++) t.out[k] = typed(&out[k]);
  if (call.op == LT_NODE_COPY) t.out[0] = t.in[0];
  else if (!lower(p, h, &call, &t)) h->failed = true;
  bound_chain(p, h, &call, &t);
  for (int k = 0; k < call.n_in && !h->failed; k++)
    if (t.v[k].written >= 0)
      set_value(p, h, &t.v[k], offset_of(p, h, k), t.written[k].id != 0 ? t.written[k] : t.in[k]);
  for (int k = 0; k < call.n_out && !h->failed; k++)
    if (out[k].written >= 0)
      set_value(p, h, &out[k], offset_of(p, h, call.n_in + k),
                t.out[k].id != 0 ? t.out[k] : lt_hlo_number(h, 0, t.out[k]));
  tensors_free(&t);
  return next;
}

static lt_hlo parameter(lt_hlo_text *h, int type, int64_t n) {
  lt_hlo x = lt_hlo_of(type, 1, &n);
  x.id = ++h->values;
  return x;
}

static void emit_body(struct lt_program_text *p, lt_hlo_text *h) {
  const int64_t *at = p->g->stream.at, *end = at + p->g->stream.n;
  size_t value = 0, node = 0;
  while (at < end && !h->failed) {
    const lt_value *v = &p->g->values.at[value];
    if (lt_node_is_value(*at)) {
      if (*at == LT_NODE_ZERO)
        p->values[value] = lt_hlo_number(h, 0, lt_hlo_of(v->type, 1, &v->n));
      at += 3;
      value++;
      continue;
    }
    lt_hlo_put(h, "//%d\n", (int64_t)node); /* for errors of the plugin (compile.c) */
    p->node = &p->g->nodes.at[node++];
    int64_t n = at[1] + at[2];
    lt_flat_view *views = malloc((size_t)(n + 1) * sizeof *views);
    if (views == NULL) { h->failed = true; return; }
    lt_stream_call(at, p->g->offsets.at + p->node->offset, views);
    for (int64_t k = 0; k < n; k++)
      if (views[k].type >= 0 && views[k].written >= 0) value++;
    free(views);
    at = emit_call(p, h, at);
  }
}

/* Of parameters and results: where they are among the devices, whose memory they take. */
static void emit_attributes(lt_hlo_text *h, bool sharded, int64_t alias) {
  int64_t n = lt_xla_partitions();
  if (n > 1 && sharded) lt_hlo_put(h, " {mhlo.sharding = \"{devices=[%d]<=[%d]}\"", n, n);
  if (n > 1 && !sharded) lt_hlo_put(h, " {mhlo.sharding = \"{replicated}\"");
  if (alias >= 0) lt_hlo_put(h, "%stf.aliasing_output = %d : i32", n > 1 ? ", " : " {", alias);
  if (n > 1 || alias >= 0) lt_hlo_put(h, "}");
}

static void emit_parameter(lt_hlo_text *h, bool *first, const lt_hlo *x, bool sharded,
                           int64_t alias) {
  lt_hlo_put(h, *first ? "$: @" : ", $: @", x, x);
  emit_attributes(h, sharded, alias);
  *first = false;
}

/* `attributes`: those of results. */
static void emit_types(const struct lt_program_text *p, lt_hlo_text *h, const lt_program_io *io,
                       bool attributes) {
  for (size_t k = 0; k < io->n_outputs + p->uses.error; k++) {
    bool is_word = k == io->n_outputs;
    lt_hlo_put(h, k > 0 ? ", @" : "@", is_word ? &p->error : &p->values[io->outputs[k]]);
    if (attributes)
      emit_attributes(h, !is_word && p->g->values.at[io->outputs[k]].sharded, -1);
  }
}

static void emit_head(const struct lt_program_text *p, lt_hlo_text *h, const lt_program_io *io,
                      const lt_hlo *error) {
  bool first = true;
  size_t leaf = 0;
  int64_t n = lt_xla_partitions();
  lt_hlo_put(h, "module ");
  if (n > 1) lt_hlo_put(h, "attributes {mhlo.num_partitions = %d : i32} ", n);
  lt_hlo_put(h, "{\nfunc.func %s(", "@main");
  for (size_t k = 0; k < p->g->values.n; k++)
    if (p->g->values.at[k].leaf != NULL)
      emit_parameter(h, &first, &p->values[k], p->g->values.at[k].sharded, io->aliases[leaf++]);
  if (p->uses.numbers) emit_parameter(h, &first, &p->numbers, false, -1);
  if (p->uses.wide) emit_parameter(h, &first, &p->wide, false, -1);
  if (p->g->words.n + io->n_promoted > 0) emit_parameter(h, &first, &p->words, false, -1);
  if (p->uses.error) emit_parameter(h, &first, error, false, -1);
  lt_hlo_put(h, ") -> (");
  emit_types(p, h, io, true);
  lt_hlo_put(h, ") {\n");
}

static void emit_return(const struct lt_program_text *p, lt_hlo_text *h, const lt_program_io *io) {
  lt_hlo_put(h, "return ");
  for (size_t k = 0; k < io->n_outputs; k++)
    lt_hlo_put(h, k > 0 ? ", $" : "$", &p->values[io->outputs[k]]);
  if (p->uses.error) lt_hlo_put(h, io->n_outputs > 0 ? ", $" : "$", &p->error);
  lt_hlo_put(h, " : ");
  emit_types(p, h, io, false);
  lt_hlo_put(h, "\n}\n}\n");
}

bool lt_program_emit(const lt_graph *g, const lt_program_io *io, char **text, size_t *size,
                     lt_program_uses *uses) {
  lt_hlo_text body = {0}, whole = {0};
  struct lt_program_text p = {.g = g, .io = io,
                              .values = calloc(g->values.n + 1, sizeof *p.values),
                              .links = calloc(g->values.n + 1, 1)};
  if (p.values == NULL || p.links == NULL) {
    free(p.values);
    free(p.links);
    return false;
  }
  for (size_t k = 0; k < g->values.n; k++)
    if (g->values.at[k].leaf != NULL)
      p.values[k] = parameter(&body, g->values.at[k].type, g->values.at[k].n);
  p.numbers = parameter(&body, LT_F32, (int64_t)g->numbers.n);
  p.wide = parameter(&body, LT_F64, (int64_t)g->numbers.n);
  p.words = parameter(&body, LT_HLO_U64, (int64_t)(g->words.n + io->n_promoted));
  lt_hlo error = p.error = parameter(&body, LT_I64, ERROR_WORDS);
  emit_body(&p, &body);
  emit_return(&p, &body, io);
  emit_head(&p, &whole, io, &error);
  lt_hlo_put(&whole, "%s", body.text != NULL ? body.text : "");
  bool ok = !body.failed && !whole.failed;
  free(body.text);
  free(p.values);
  free(p.links);
  *text = whole.text;
  *size = whole.size;
  *uses = p.uses;
  return ok;
}
