/* runtime/image/chain.c: runs the steps of a chain.

   A chain is a flat list of steps; groups (apply, choice) are followed by their members, `span` of
   them, so that a chain is one allocation that worker threads share without locks. A sample's
   random numbers come from one key, drawn by the script: the same whichever thread runs it. */
#include "image/chain.h"

#include <string.h>

#include "image/colour.h"

typedef bool (*step_fn)(lt_ctx *, const lt_step *, lt_sample *, lt_random_stream *);
static const struct {
  const char *name;
  step_fn run;
} rows[] = {
#define LT_STEP(name) {#name, lt_step_##name},
#include "image/steps.def"
#undef LT_STEP
};

static size_t size_of(int n) { return sizeof(lt_chain) + (size_t)n * sizeof(lt_step); }

static void drop(lt_ctx *c, lt_object *object) {
  lt_free(c, object, size_of(((lt_chain *)object)->n));
}

lt_chain *lt_chain_new(lt_ctx *c, int n) {
  if (!lt_ok(c) || !lt_assert(c, n >= 0 && n <= LT_CHAIN_MAX)) return NULL;
  lt_chain *chain = lt_alloc(c, size_of(n));
  if (chain == NULL) return NULL;
  chain->object = (lt_object){.refs = 1, .drop = drop};
  chain->n = n;
  return chain;
}

/* LT_STEP_COUNT: there is no such step. */
lt_step_kind lt_step_named(const char *name) {
  int k = 0;
  while (k < LT_STEP_COUNT && strcmp(rows[k].name, name) != 0) k++;
  return (lt_step_kind)k;
}

/* Bytes to floats and then normalised is one pass. Only of neighbours in one list: a group between
   them may be left out. */
static bool normalized_at_once(lt_ctx *c, const lt_step *t, const lt_step *end, lt_sample *s,
                               bool *ok) {
  const lt_step *next = t + 1;
  if (t->kind != LT_STEP_to_floats || next == end || next->kind != LT_STEP_normalize) return false;
  int n = (int)next->v[0];
  if (s->image.depth != LT_DEPTH_U8 || n != s->image.channels) return false;
  float mean[LT_CHANNELS_MAX], deviation[LT_CHANNELS_MAX];
  for (int k = 0; k < n; k++) {
    mean[k] = (float)next->v[1 + k];
    deviation[k] = (float)next->v[1 + n + k];
  }
  *ok = lt_to_floats(c, &s->image, t->v[0] != 0, mean, deviation);
  return true;
}

/* Runs the steps up to `end`; a group runs its members itself and is skipped with them. */
static bool run(lt_ctx *c, const lt_step *t, const lt_step *end, lt_sample *s,
                lt_random_stream *d) {
  bool ok = lt_ok(c);
  for (; t < end && ok; t += 1 + t->span) {
    if (normalized_at_once(c, t, end, s, &ok))
      t++;
    else
      ok = rows[t->kind].run(c, t, s, d);
  }
  return ok;
}

bool lt_chain_run(lt_ctx *c, const lt_chain *chain, lt_sample *s, lt_rng_key key) {
  lt_random_stream d = {.key = key};
  return run(c, chain->step, chain->step + chain->n, s, &d);
}

bool lt_step_apply(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (!lt_random_stream_chance(d, t->v[0])) return true;
  return run(c, t + 1, t + 1 + t->span, s, d);
}

bool lt_step_group(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  return run(c, t + 1, t + 1 + t->span, s, d);
}

/* One member by weight: a draw in the sum of all, from which the weights are taken in turn.
   Rounding may leave a rest: then the last one with a weight. */
bool lt_step_choice(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  const lt_step *end = t + 1 + t->span, *g = t + 1, *last = g;
  double total = 0;
  for (; g < end; g += 1 + g->span) total += g->v[0];
  double at = lt_random_stream_uniform(d, 0, total);
  for (g = t + 1; g < end; g += 1 + g->span) {
    if (g->v[0] > 0) last = g;
    at -= g->v[0];
    if (at < 0) break;
  }
  return last == end || lt_step_group(c, last, s, d);
}
