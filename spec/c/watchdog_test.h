/* spec/c/watchdog_test.h: worlds whose ranks are threads of this process, for watchdog_test and
   connections_test. */
#ifndef LT_SPEC_WATCHDOG_TEST_H
#define LT_SPEC_WATCHDOG_TEST_H

#include "launch_test.h"

#include <pthread.h>

#include "one_sum.h"

enum { MOST = 4 };

/* ---- ranks as threads ---- */

typedef struct rank {
  lt_ctx *c;
  lt_world *w;
  pthread_t thread;
  void (*run)(struct rank *r);
  int number, size;
} rank;

static struct {
  rank ranks[MOST];
  int n;
  void *segment;
  size_t segment_bytes;
  const lt_comm_ops *ops; /* NULL: of shm */
} world;

static inline lt_world *make_world(rank *r, double timeout, const char *files) {
  lt_launch_options o = {.ranks = r->size, .timeout = timeout, .what = "fit", .folder = files};
  r->c->policy.write_files = files != NULL;
  lt_world *w = lt_world_new(r->c, &o);
  assert_non_null(w);
  assert_true(lt_world_size(r->c, w, r->number, r->size));
  assert_true(lt_world_map(r->c, w, 1, 0));
  assert_true(lt_world_wake(r->c, w));
  lt_world_open(w);
  return w;
}

static inline void make_group(rank *r) {
  char text[LT_COMM_TEXT];
  lt_comm_place place = {.rank = r->number,
                         .size = r->size,
                         .memory = world.segment,
                         .memory_bytes = world.segment_bytes};
  const lt_comm_ops *ops = world.ops != NULL ? world.ops : lt_shm_ops();
  lt_comm_link *link = ops->open(lt_comm_host_here(), &place, text, sizeof text);
  assert_non_null(link);
  r->w->group = lt_group_new(r->c, ops, link, r->w->heartbeat, true);
}

static inline void *run_rank(void *ud) {
  rank *r = ud;
  r->run(r);
  return NULL;
}

static inline void open_world(int n, double timeout, const char *files) {
  world.n = n;
  world.segment_bytes = lt_shm_bytes(n);
  world.segment = aligned_alloc(4096, (world.segment_bytes + 4095) / 4096 * 4096);
  lt_shm_init(world.segment, world.segment_bytes, n);
  for (int k = 0; k < n; k++) {
    rank *r = &world.ranks[k];
    *r = (rank){.c = fresh(), .number = k, .size = n};
    r->w = make_world(r, timeout, files);
    make_group(r);
  }
}

static inline void watch_all(void) {
  for (int k = 0; k < world.n; k++)
    assert_true(lt_watchdog_start(world.ranks[k].c, world.ranks[k].w));
}

static inline void run_all(void (*run)(rank *r)) {
  for (int k = 0; k < world.n; k++) {
    world.ranks[k].run = run;
    assert_int_equal(pthread_create(&world.ranks[k].thread, NULL, run_rank, &world.ranks[k]), 0);
  }
  for (int k = 0; k < world.n; k++) pthread_join(world.ranks[k].thread, NULL);
}

static inline void close_world(void) {
  for (int k = 0; k < world.n; k++) lt_watchdog_stop(world.ranks[k].w);
  for (int k = 0; k < world.n; k++) {
    rank *r = &world.ranks[k];
    lt_group_close(r->c, r->w->group);
    lt_group_release(r->c, r->w->group);
    lt_world_free(r->c, r->w);
    lt_ctx_release(r->c);
  }
  free(world.segment);
}

static inline void wait_outcome(rank *r) {
  for (int k = 0; k < 6000 && !lt_heartbeat_is_over(r->w->heartbeat); k++) pause_ms(10);
}

/* Every rank has the same outcome. */
static inline const lt_outcome *common_outcome(void) {
  const lt_outcome *first = lt_world_outcome(world.ranks[0].w);
  assert_non_null(first);
  for (int k = 1; k < world.n; k++) {
    const lt_outcome *v = lt_world_outcome(world.ranks[k].w);
    assert_non_null(v);
    assert_string_equal(v->text, first->text);
    assert_int_equal(v->class, first->class);
    assert_int_equal(v->rank, first->rank);
  }
  return first;
}

static inline void raise_in_order(rank *r) {
  char text[64];
  pause_ms(100 * (3 - r->number)); /* 3, 2, 1, 0 */
  snprintf(text, sizeof text, "boom %d", r->number);
  lt_world_raise(r->w, text, "model.lua", 12);
}

static inline void collect_and_fail(rank *r) {
  int before = r->number == 1 ? 50 : 1000000; /* then rank 1 raises */
  for (int k = 0; k < before; k++) {
    if (sum(r->c, r->w, 1) < 0) return;
    if (k % 10 == 0) lt_world_set_activity(r->w, "training_step", "model.lua", k);
  }
  lt_world_raise(r->w, "boom", "model.lua", 12);
}

static inline void leave_unevenly(rank *r) {
  for (int k = 0; k < 5; k++) assert_true(sum(r->c, r->w, 1) == 3);
  if (r->number == 2) pause_ms(300); /* comes late to a collective that the others left done */
  if (lt_world_leave(r->c, r->w, "model.lua", 40)) r->run = NULL;
}

#endif
