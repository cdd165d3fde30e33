/* runtime/xla/cut.c: the end of a graph: finds its program or compiles it, and runs it.

   A program is found by the structure of its graph. What lives on decides its outputs, and which
   inputs nobody needs any more; where garbage was collected at another time, a program serves that
   gives more outputs, and takes the memory of fewer inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/compile.h"
#include "xla/plugin.h"

typedef struct program {
  struct program *next;
  lt_program_record about;
  uint64_t hash;
  int64_t *stream;
  size_t n_stream;
  int64_t *outputs, *aliases; /* lt_program_io */
  char *sharded;              /* by output; the last is the error word */
  int64_t *offsets;
  char *promoted; /* by offset: it is an input, and `offsets` has any */
  size_t n_offsets;
  size_t n_outputs, n_leaves;
  lt_program_uses uses;
  int partitions;
  pjrt_loaded *loaded;
} program;

enum { BUCKETS = 1024 };
static program *programs[BUCKETS];

/* What a cut works with, by value and by leaf. */
typedef struct cut {
  char *needed;       /* by value */
  int64_t *outputs;   /* values, ascending */
  size_t n_outputs, n_leaves;
  int64_t *aliases;   /* by leaf */
  char *promoted;     /* by offset */
  lt_leaf **leaves, **out; /* leaves: with room for numbers, words and the error word */
  const lt_value **leaf_values;
  char *sharded; /* by output */
} cut;

static void cut_free(cut *t) {
  free(t->needed);
  free(t->outputs);
  free(t->aliases);
  free(t->promoted);
  free(t->leaves);
  free(t->leaf_values);
  free(t->sharded);
  free(t->out);
}

static bool cut_new(cut *t, size_t n) {
  *t = (cut){.needed = calloc(n + 1, 1), .outputs = calloc(n + 1, sizeof(int64_t)),
             .aliases = calloc(n + 1, sizeof(int64_t)), .leaves = calloc(n + 4, sizeof(lt_leaf *)),
             .leaf_values = calloc(n + 1, sizeof(lt_value *)), .sharded = calloc(n + 2, 1),
             .out = calloc(n + 2, sizeof(lt_leaf *))};
  return t->needed != NULL && t->outputs != NULL && t->aliases != NULL && t->leaves != NULL &&
         t->leaf_values != NULL && t->sharded != NULL && t->out != NULL;
}

/* Storages whose value a node has made, and reads of such values. */
static void find_outputs(const lt_graph *g, cut *t) {
  for (size_t k = 0; k < g->slots.n; k++) {
    const lt_slot *s = g->slots.at[k];
    if (s->value >= 0 && g->values.at[s->value].leaf == NULL) t->needed[s->value] = 1;
  }
  for (size_t k = 0; k < g->reads.n; k++) {
    int64_t value = g->reads.at[k].value;
    if (value >= 0 && g->values.at[value].leaf == NULL) t->needed[value] = 1;
  }
  for (size_t k = 0; k < g->values.n; k++) {
    const lt_value *v = &g->values.at[k];
    if (t->needed[k]) t->sharded[t->n_outputs] = v->sharded;
    if (t->needed[k]) t->outputs[t->n_outputs++] = (int64_t)k;
    if (v->leaf == NULL) continue;
    t->leaf_values[t->n_leaves] = v;
    t->leaves[t->n_leaves++] = v->leaf;
  }
}

/* Outputs take the memory of leaves that only the graph has; not of small ones, whose other users
   come and go from step to step: reads that have not arrived yet. */
static void find_aliases(const lt_graph *g, cut *t) {
  char *taken = calloc(t->n_outputs + 1, 1);
  for (size_t k = 0; k < t->n_leaves; k++) {
    t->aliases[k] = -1;
    const lt_value *from = t->leaf_values[k];
    bool small = (size_t)from->n * lt_hlo_bytes(from->type) <= LT_SMALL_LEAF;
    if (taken == NULL || t->leaves[k]->users > 1 || small) continue;
    for (size_t o = 0; o < t->n_outputs && t->aliases[k] < 0; o++) {
      const lt_value *v = &g->values.at[t->outputs[o]];
      if (taken[o] || v->type != from->type || v->n != from->n || v->sharded != from->sharded)
        continue;
      taken[o] = 1;
      t->aliases[k] = (int64_t)o;
    }
  }
  free(taken);
}

static bool is_of(const program *p, const lt_graph *g) {
  return p->hash == g->hash && p->n_stream == g->stream.n && p->n_offsets == g->offsets.n &&
         p->partitions == lt_xla_partitions() &&
         memcmp(p->stream, g->stream.at, g->stream.n * sizeof(int64_t)) == 0;
}

static bool serves(const program *p, const lt_graph *g, const cut *t) {
  if (!is_of(p, g)) return false;
  for (size_t k = 0; k < p->n_offsets; k++)
    if (!p->promoted[k] && p->offsets[k] != g->offsets.at[k]) return false;
  size_t at = 0;
  for (size_t k = 0; k < t->n_outputs; k++) {
    while (at < p->n_outputs && p->outputs[at] < t->outputs[k]) at++;
    if (at == p->n_outputs || p->outputs[at] != t->outputs[k]) return false;
  }
  for (size_t k = 0; k < p->n_leaves; k++)
    if (p->aliases[k] >= 0 && t->leaves[k]->users > 1) return false;
  return true;
}

static void *copy_of(const void *from, size_t bytes) {
  void *to = malloc(bytes + 1);
  return to != NULL ? memcpy(to, from, bytes) : NULL;
}

/* Offsets in which programs of this structure differ are inputs of the next. */
static size_t promote(const lt_graph *g, cut *t) {
  size_t n = 0;
  for (const program *p = programs[g->hash % BUCKETS]; p != NULL; p = p->next)
    for (size_t k = 0; is_of(p, g) && k < g->offsets.n; k++)
      if (p->promoted[k] || p->offsets[k] != g->offsets.at[k]) t->promoted[k] = 1;
  for (size_t k = 0; k < g->offsets.n; k++) n += t->promoted[k] != 0;
  return n;
}

static program *compile(lt_ctx *c, const lt_graph *g, cut *t) {
  size_t n_promoted = promote(g, t);
  lt_program_io io = {t->outputs, t->n_outputs, t->aliases, t->promoted, n_promoted};
  char *text = NULL;
  size_t size = 0;
  lt_program_uses uses;
  program *p = calloc(1, sizeof *p);
  if (p == NULL || !lt_program_emit(g, &io, &text, &size, &uses)) {
    free(text);
    free(p);
    lt_xla_host->fail(c, LT_EINTERNAL, "xla: the program of a graph cannot be written");
    return NULL;
  }
  *p = (program){.hash = g->hash, .stream = copy_of(g->stream.at, g->stream.n * sizeof(int64_t)),
                 .n_stream = g->stream.n, .partitions = lt_xla_partitions(),
                 .outputs = copy_of(t->outputs, t->n_outputs * sizeof(int64_t)),
                 .aliases = copy_of(t->aliases, t->n_leaves * sizeof(int64_t)),
                 .sharded = copy_of(t->sharded, t->n_outputs + 1),
                 .offsets = copy_of(g->offsets.at, g->offsets.n * sizeof(int64_t)),
                 .promoted = copy_of(t->promoted, g->offsets.n), .n_offsets = g->offsets.n,
                 .n_outputs = t->n_outputs, .n_leaves = t->n_leaves, .uses = uses};
  p->loaded = lt_xla_executable(c, g, text, size, &p->about);
  free(text);
  if (p->loaded != NULL && p->stream != NULL && p->outputs != NULL && p->aliases != NULL &&
      p->sharded != NULL && p->offsets != NULL && p->promoted != NULL) {
    p->about.stream = p->stream;
    p->about.n_stream = p->n_stream;
    p->about.operations = g->nodes.n;
    lt_report_find_change(c, g, &p->about);
    lt_report_compiled(c, g, &p->about);
    p->next = programs[g->hash % BUCKETS];
    return programs[g->hash % BUCKETS] = p;
  }
  free(p->stream);
  free(p->outputs);
  free(p->aliases);
  free(p->sharded);
  free(p->offsets);
  free(p->promoted);
  free(p);
  return NULL;
}

static program *find(lt_ctx *c, const lt_graph *g, cut *t) {
  for (program *p = programs[g->hash % BUCKETS]; p != NULL; p = p->next)
    if (serves(p, g, t)) return p;
  return compile(c, g, t);
}

static bool fail_run(lt_ctx *c, const lt_graph *g, pjrt_error *error) {
  char name[160], what[256];
  snprintf(what, sizeof what, "xla: %s does not run",
           lt_report_program(c, g, name, sizeof name));
  return lt_xla_ok(c, error, what);
}

/* A leaf of this run alone, the next parameter; `made` releases it. */
static bool add_leaf(lt_ctx *c, cut *t, size_t *n, lt_leaf **made, const void *data, int type,
                     size_t count) {
  *made = lt_leaf_upload(c, data, type, (int64_t)count, false);
  t->leaves[(*n)++] = *made;
  return *made != NULL;
}

static bool add_numbers(lt_ctx *c, const lt_graph *g, cut *t, size_t *n, lt_leaf **made) {
  float *narrow = lt_narrow_values(g->numbers.at, (int64_t)g->numbers.n);
  if (narrow == NULL) return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for a cut");
  bool ok = add_leaf(c, t, n, made, narrow, LT_F32, g->numbers.n);
  free(narrow);
  return ok;
}

/* The numbers and words of this run, after the leaves. */
static bool run(lt_ctx *c, lt_graph *g, program *p, cut *t) {
  size_t n = t->n_leaves;
  lt_leaf *made[3] = {NULL};
  bool ok = true;
  for (size_t k = 0; k < p->n_offsets; k++)
    if (p->promoted[k]) LT_PUSH(g, g->words, (uint64_t)g->offsets.at[k]);
  if (p->uses.numbers) ok = add_numbers(c, g, t, &n, &made[0]);
  if (ok && p->uses.wide)
    ok = add_leaf(c, t, &n, &made[1], g->numbers.at, LT_F64, g->numbers.n);
  if (ok && g->words.n > 0)
    ok = add_leaf(c, t, &n, &made[2], g->words.at, LT_HLO_U64, g->words.n);
  if (ok && p->uses.error) ok = (t->leaves[n++] = lt_xla_error_word(c, g->root)) != NULL;
  p->about.runs++;
  pjrt_error *error = NULL;
  ok = ok && lt_xla_execute(c, p->loaded, n, t->leaves, p->n_outputs + p->uses.error, p->sharded,
                            t->out, &error);
  if (error != NULL) fail_run(c, g, error);
  for (size_t k = 0; k < sizeof made / sizeof *made; k++) lt_leaf_release(made[k]);
  return ok;
}

static void set_reads(lt_graph *g, int64_t value, lt_leaf *leaf) {
  for (size_t k = 0; k < g->reads.n; k++)
    if (g->reads.at[k].value == value && g->reads.at[k].leaf == NULL)
      g->reads.at[k].leaf = lt_leaf_retain(leaf);
}

/* Results become the values of their storages. */
static void take_outputs(lt_graph *g, const program *p, cut *t) {
  lt_leaf **made = calloc(g->values.n + 1, sizeof *made);
  for (size_t k = 0; k < p->n_outputs; k++) {
    if (made == NULL) lt_leaf_release(t->out[k]);
    else made[p->outputs[k]] = t->out[k];
  }
  if (p->uses.error) lt_xla_error_put(g->root, t->out[p->n_outputs]);
  if (made == NULL) return;
  for (size_t k = 0; k < g->slots.n; k++) {
    lt_slot *s = g->slots.at[k];
    if (s->value < 0 || g->values.at[s->value].leaf != NULL) continue;
    lt_leaf *leaf = made[s->value];
    if (leaf != NULL) s->leaf = lt_leaf_retain(leaf);
    else s->lost = true;
  }
  for (size_t k = 0; k < g->values.n; k++) {
    if (made[k] == NULL) continue;
    set_reads(g, (int64_t)k, made[k]);
    lt_leaf_release(made[k]);
  }
  free(made);
}

static void lose_outputs(lt_graph *g) {
  for (size_t k = 0; k < g->slots.n; k++) {
    lt_slot *s = g->slots.at[k];
    if (s->value >= 0 && g->values.at[s->value].leaf == NULL) s->lost = true;
  }
}

static void clear(lt_graph *g) {
  for (size_t k = 0; k < g->slots.n; k++) {
    g->slots.at[k]->value = -1;
    g->slots.at[k]->listed = false;
  }
  for (size_t k = 0; k < g->values.n; k++) lt_leaf_release(g->values.at[k].leaf);
  g->stream.n = g->values.n = g->nodes.n = g->args.n = g->numbers.n = g->words.n = g->slots.n = 0;
  g->offsets.n = 0;
  g->hash = 0;
  g->failed = false;
  g->submitted = g->recorded;
}

/* A graph of which nothing lives on is dropped: nobody can see whether it ran. */
static bool run_graph(lt_ctx *c, lt_graph *g) {
  cut t = {0};
  bool ok = cut_new(&t, g->values.n);
  t.promoted = calloc(g->offsets.n + 1, 1);
  ok = ok && t.promoted != NULL;
  if (ok) {
    find_outputs(g, &t);
    find_aliases(g, &t);
  } else {
    lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for a cut");
  }
  if (ok && t.n_outputs > 0) {
    program *p = find(c, g, &t);
    ok = p != NULL && run(c, g, p, &t);
    if (ok) take_outputs(g, p, &t);
    else lose_outputs(g);
  }
  cut_free(&t);
  return ok;
}

static bool start_read(lt_ctx *c, lt_read *r) {
  char *to = r->whole != NULL ? r->whole : r->to;
  r->value = -1; /* of a graph that is over */
  if (r->leaf == NULL)
    return lt_xla_host->fail(c, LT_EDEVICE, "xla: what was to be read is lost");
  return lt_leaf_download(c, r->leaf, to, r->all, &r->event);
}

bool lt_xla_cut(lt_ctx *c, lt_cut_reason reason) {
  lt_graph *g = &lt_xla_graph;
  bool ok = true;
  if (g->nodes.n > 0) {
    lt_report_cut(c, reason);
    ok = run_graph(c, g);
  }
  for (size_t k = 0; k < g->reads.n; k++) {
    lt_read *r = &g->reads.at[k];
    if (r->event == NULL && r->position > g->submitted) ok = start_read(c, r) && ok;
  }
  clear(g);
  return ok;
}

/* Leaves the list's order as it is. */
bool lt_xla_reads_finish(lt_ctx *c, uint64_t position, bool wait) {
  lt_graph *g = &lt_xla_graph;
  bool ok = true;
  size_t n = 0;
  for (size_t k = 0; k < g->reads.n; k++) {
    lt_read r = g->reads.at[k];
    bool over = r.position <= g->submitted && r.position <= position &&
                (r.event == NULL || wait || lt_xla_event_ready(r.event));
    if (!over) {
      g->reads.at[n++] = r;
      continue;
    }
    if (r.event != NULL) ok = lt_xla_event_wait(c, r.event, "xla: copy to the host") && ok;
    if (r.widens) lt_narrow_read(r.to, r.whole, r.offset, r.bytes);
    else if (r.whole != NULL) memcpy(r.to, r.whole + r.offset, r.bytes);
    free(r.whole);
    lt_leaf_release(r.leaf);
  }
  g->reads.n = n;
  return ok;
}
