/* spec/c/forked_test.h: what tests of forked worlds share: how one begins, and fails. */
#ifndef LT_SPEC_C_FORKED_TEST_H
#define LT_SPEC_C_FORKED_TEST_H

#include "launch_test.h"
#include "one_sum.h"

static inline int rank_of(const lt_world *w) { return lt_world_describe(w)->rank; }

static inline lt_launch_options options(int ranks, double timeout) {
  return (lt_launch_options){.ranks = ranks, .timeout = timeout, .what = "fit", .folder = folder};
}

static inline lt_world *begin(lt_ctx *c, int ranks, double timeout) {
  lt_launch_options o = options(ranks, timeout);
  lt_world *w = lt_world_fork(c, &o);
  if (w == NULL) dprintf(2, "%s\n", c->failure.text);
  CHECK(w != NULL);
  return w;
}

/* A rank's script raised: what the binding does. */
static inline void raise_and_end(lt_ctx *c, lt_world *w, const char *text) {
  lt_world_raise(w, text, "model.lua", 12);
  lt_world_end(c, w);
}

/* Rank 0's end of a failed world; the message that it got. */
static inline char *end_failed(lt_ctx *c, lt_world *w) {
  static char text[LT_OUTCOME_TEXT];
  const lt_outcome *v = lt_world_outcome(w);
  CHECK(v != NULL);
  snprintf(text, sizeof text, "%s", v->text);
  lt_world_end(c, w);
  lt_take_failure(c, NULL);
  return text;
}

static inline bool has_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Wait in a collective until the outcome. */
static inline void stay(lt_ctx *c, lt_world *w) { CHECK(sum(c, w, 1) == -1); }

/* Rank 1 raises. */
static inline void boom(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1)
    lt_world_raise(w, "model.lua:12: boom", "model.lua", 12);
  else
    stay(c, w);
}

/* Rank 0 waits in a collective and gets why it ends; the others do what `other` says. */
static inline void expect_outcome(int ranks, double timeout, void (*other)(lt_ctx *, lt_world *),
                                  lt_outcome_class class, int status, const char *part) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, ranks, timeout);
  CHECK(sum(c, w, 1) == ranks);
  if (rank_of(w) > 0) {
    lt_world_set_activity(w, "training_step", "model.lua", 12);
    other(c, w);
    lt_world_end(c, w);
  }
  CHECK(sum(c, w, 1) == -1);
  lt_failure f;
  CHECK(lt_take_failure(c, &f) && f.code == LT_ERANKS);
  CHECK_TEXT(f.text, part);
  const lt_outcome *v = lt_world_outcome(w);
  CHECK(v->class == class && v->status == status);
  CHECK(sum(c, w, 1) == -1); /* and again */
  lt_take_failure(c, NULL);
  CHECK_TEXT(end_failed(c, w), part);
  CHECK(!has_children());
  w = begin(c, 2, timeout); /* the parent may continue */
  CHECK(sum(c, w, 1) == 2);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  lt_ctx_release(c);
}

#endif
