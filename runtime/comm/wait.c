/* runtime/comm/wait.c: waiting for collectives: polling, spinning, sleeping, and what ends a wait
   early. */
#include <sched.h>
#include <time.h>

#include "comm/group.h"
#include "device/wait.h"

enum {
  QUICK = 40, /* looks before the wait is reported */
  /* Of looking again at once. */
  SPIN_NS = 300000,
  /* Of looking in turn with other threads of the core; then it sleeps. To be woken takes a tenth
     of a millisecond, and may be on a core that another rank has: ranks that come a little apart
     must not sleep in each step. */
  YIELD_NS = 20000000,
  RELAX_NS = 1000000,
  LONG_NS = 100000000, /* of nothing at all: deadlocks are looked for */
};

static inline void pause_briefly(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

/* What a wait for `w` is stuck at: the first of its queue that is not done. */
static lt_work *blocking(lt_work *w) {
  return w->pair || w->group->queue.first == NULL ? w : w->group->queue.first;
}

typedef struct waiting {
  lt_heartbeat *heartbeat;
  int64_t since;
  lt_mark before; /* what the rank did when the wait began */
  lt_work *reported;
  bool is_long; /* and others can see it */
} waiting;

/* Report to the watchdog that the rank waits for `w`. */
static void report_wait(waiting *at, lt_work *w) {
  if (at->heartbeat == NULL || at->reported == w) return;
  lt_wait_set(at->heartbeat, w->group, &w->mark);
  at->reported = w;
}

static waiting begin_wait(lt_group *root, lt_work *w) {
  waiting at = {.heartbeat = root->heartbeat, .since = lt_now_ns()};
  if (at.heartbeat == NULL) return at;
  at.before = lt_heartbeat_activity(at.heartbeat);
  report_wait(&at, w);
  atomic_store_explicit(&at.heartbeat->waiting_since_ns, at.since, memory_order_release);
  return at;
}

static void end_wait(waiting *at) {
  if (at->heartbeat == NULL) return;
  atomic_store_explicit(&at->heartbeat->waiting_since_ns, 0, memory_order_release);
  atomic_fetch_add_explicit(&at->heartbeat->waited_ns, lt_now_ns() - at->since,
                            memory_order_relaxed);
  lt_heartbeat_set_activity(at->heartbeat, &at->before);
}

/* Report to the watchdog how far this rank has got: others may wait for what it will not issue. */
static void publish_issued(waiting *at, const lt_group *root) {
  at->is_long = true;
  if (at->heartbeat == NULL) return;
  lt_issued_list list = {.since_ns = at->since};
  lt_group_issued(root, false, &list);
  lt_heartbeat_set_issued(at->heartbeat, &list);
  if (at->heartbeat->on_long_wait != NULL) at->heartbeat->on_long_wait(at->heartbeat->ud);
}

/* Whether the wait has to end without its work. */
static bool interrupted(lt_ctx *c, const lt_work *w, const lt_heartbeat *heartbeat) {
  if (heartbeat != NULL && lt_heartbeat_is_over(heartbeat))
    return !lt_fail(c, LT_ERANKS, "%s", heartbeat->outcome.text);
  if (atomic_load_explicit(c->cancel, memory_order_relaxed))
    return !lt_fail(c, LT_ECANCEL, "%s: cancelled", lt_comm_op_name(w->mark.op));
  return w->group->broken &&
         !lt_fail(c, LT_ERANKS, "%s: an earlier collective of this group failed",
                  lt_comm_op_name(w->mark.op));
}

/* Where the backend cannot sleep until something comes (MPI polls), the core is offered to others;
   after a long wait, as for a rank that writes a file, a millisecond later does not matter. */
static void rest(const lt_group *root, int64_t idle_ns) {
  if (root->ops->relax != NULL)
    root->ops->relax(root->link, RELAX_NS);
  else if (idle_ns >= LONG_NS)
    nanosleep(&(struct timespec){.tv_nsec = RELAX_NS}, NULL);
  else
    sched_yield();
}

/* Between two looks, when nothing has happened for so long. */
static void rest_after(const lt_group *root, int64_t idle_ns) {
  if (root->crowded || idle_ns >= YIELD_NS)
    rest(root, idle_ns);
  else if (idle_ns >= SPIN_NS)
    sched_yield();
  else
    pause_briefly();
}

static bool submit_queue(lt_ctx *c, const lt_queue *q) {
  bool ok = true;
  for (const lt_work *w = q->first; w != NULL; w = w->next)
    if (w->device.way != LT_WAY_HOST && !w->device.begun && w->stage != LT_STAGE_DONE)
      ok = lt_wait_submit(c, w->device.at, w->device.ready) && ok;
  return ok;
}

/* Before the host polls for a work: what copies of works under way wait for is given to the
   device. */
static bool submit(lt_ctx *c, const lt_group *root) {
  bool ok = true;
  for (const lt_group *g = root; g != NULL; g = g->next)
    ok = submit_queue(c, &g->queue) && submit_queue(c, &g->pairs) && ok;
  return ok;
}

static void wait_for(lt_ctx *c, lt_work *w) {
  lt_group *root = w->group->root;
  for (int i = 0; i < (root->crowded ? 1 : QUICK); i++) {
    lt_queue_drive(c, root);
    if (w->stage == LT_STAGE_DONE) return;
  }
  waiting at = begin_wait(root, blocking(w));
  int64_t idle_since = at.since;
  for (int idle = 0; w->stage != LT_STAGE_DONE && !interrupted(c, w, root->heartbeat);) {
    if (lt_queue_drive(c, root)) {
      idle = 0;
      if (w->stage != LT_STAGE_DONE) report_wait(&at, blocking(w));
      continue;
    }
    if (idle++ == 0) {
      idle_since = lt_now_ns();
      if (!submit(c, root)) break;
    }
    /* The clock is read in each 32nd turn only: a turn is to be short. */
    int64_t idle_ns = idle % 32 != 0 ? 0 : lt_now_ns() - idle_since;
    if (idle_ns >= LONG_NS && !at.is_long) publish_issued(&at, root);
    rest_after(root, idle_ns);
  }
  end_wait(&at);
}

/* The failure of a work that is done is reported at its wait; an outcome says more. */
static bool settle(lt_ctx *c, const lt_work *w) {
  const lt_heartbeat *p = w->group->heartbeat;
  bool ranks = w->failed == LT_ERANKS && p != NULL && lt_heartbeat_is_over(p);
  if (w->stage == LT_STAGE_DONE && w->failed != LT_OK)
    lt_fail(c, w->failed, "%s", ranks ? p->outcome.text : w->text);
  return lt_ok(c);
}

bool lt_work_test(lt_ctx *c, lt_work *w) {
  if (!lt_ok(c)) return true;
  /* A script that asks again and again waits. */
  if (w->stage != LT_STAGE_DONE && submit(c, w->group->root))
    lt_queue_drive(c, w->group->root);
  if (w->stage != LT_STAGE_DONE) return interrupted(c, w, w->group->root->heartbeat);
  settle(c, w);
  return true;
}

bool lt_work_wait(lt_ctx *c, lt_work *w) {
  if (lt_ok(c) && w->stage != LT_STAGE_DONE) wait_for(c, w);
  return settle(c, w);
}

static lt_work *find_owed(const lt_group *root) {
  for (const lt_group *g = root; g != NULL; g = g->next)
    for (lt_work *w = g->pairs.first; w != NULL; w = w->next)
      if (w->is_owed) return w;
  return NULL;
}

bool lt_group_deliver(lt_ctx *c, lt_group *g) {
  for (lt_work *w; lt_ok(c) && (w = find_owed(g->root)) != NULL;) {
    lt_retain(w);
    lt_work_wait(c, w);
    lt_work_release(c, w);
  }
  return lt_ok(c);
}

lt_tensor *lt_work_result(const lt_work *w) {
  return w->stage == LT_STAGE_DONE && w->failed == LT_OK ? w->result : NULL;
}
