/* runtime/comm/queue.c: the queue of asynchronous collectives: issued in order, driven by the main
   thread.

   Collectives of a group go one after the other; with a backend that `overlaps`, their data may.
   Messages go in order for each peer and direction. All groups of the world are driven together, so
   that a work that another group's rank waits for gets on too: by waits, and while there is a work
   in a queue before each operation of the main thread (lt_ctx.progress). */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "comm/group.h"
#include "comm/ring.h"

static void release_parts(lt_ctx *c, lt_work *w) {
  if (w->parts == NULL) return;
  bool refills = w->mark.op == LT_COMM_ALL_GATHER && w->n_own > 0;
  int n = w->n_parts + w->n_own;
  for (int k = 0; k < n; k++) {
    if (!refills) lt_storage_bump(c, w->parts[k]->storage);
    lt_release(c, w->parts[k]);
  }
  lt_free(c, w->parts, (size_t)n * sizeof *w->parts);
  w->parts = NULL;
}

static void release_message(lt_ctx *c, lt_work *w) {
  for (int k = 0; k < w->message.n; k++) lt_release(c, w->message.tensors[k]);
  lt_free(c, w->message.tensors, (size_t)w->message.capacity * sizeof(lt_tensor *));
  lt_release(c, w->message.into);
}

static void drop(lt_ctx *c, lt_object *object) {
  lt_work *w = (lt_work *)object;
  release_parts(c, w);
  lt_release(c, w->in);
  lt_release(c, w->out);
  lt_release(c, w->result);
  lt_release(c, w->first);
  lt_free(c, w->extents, w->numbers_bytes);
  lt_device_drop(c, w);
  release_message(c, w);
  lt_free(c, w->data.sent, w->data.sent_bytes);
  lt_free(c, w->data.got, w->data.got_bytes);
  lt_group_release(c, w->group);
  lt_free(c, w, sizeof *w);
}

lt_work *lt_work_new(lt_ctx *c, lt_group *g, lt_comm_op op) {
  if (!lt_group_alive(c, g, op)) return NULL;
  lt_work *w = lt_alloc(c, sizeof *w);
  if (w == NULL) return NULL;
  w->object = (lt_object){.refs = 1, .drop = drop};
  w->numbers_bytes = 3 * (size_t)g->size * sizeof(int64_t);
  w->extents = lt_alloc(c, w->numbers_bytes);
  if (w->extents == NULL) {
    w->numbers_bytes = 0;
    lt_release(c, w);
    return NULL;
  }
  w->counts = w->extents + g->size;
  w->in_counts = w->counts + g->size;
  w->group = lt_group_retain(g);
  w->pair = op == LT_COMM_SEND || op == LT_COMM_RECV;
  w->move = (lt_comm_move){.op = (uint8_t)op,
                           .reduce = LT_COMM_NO_REDUCE,
                           .dtype = LT_U8,
                           .root = -1,
                           .counts = w->counts,
                           .in_counts = w->in_counts,
                           .chunk_bytes = g->chunk,
                           .fixed_order = g->fixed_order};
  return w;
}

void lt_work_release(lt_ctx *c, lt_work *w) { lt_release(c, w); }
uint64_t lt_work_number(const lt_work *w) { return w->mark.seq; }
const int64_t *lt_work_extents(const lt_work *w) { return w->extents; }

/* Between operations. It calls none of them, for a callback may. */
static void progress(lt_ctx *c, void *ud) {
  lt_group *root = ud;
  c->progress = NULL;
  if (lt_comm_refusal != NULL) return; /* a child that is not a rank */
  lt_queue_drive(c, root);
  if (root->pending > 0) c->progress = progress;
}

/* A list with a pointer to its last link: appending and taking off in the middle need no case for
   an empty list. */
static void append(lt_ctx *c, lt_queue *q, lt_work *w) {
  *q->last = lt_retain(w);
  q->last = &w->next;
  w->group->root->pending++;
  c->progress = progress;
  c->progress_ud = w->group->root;
}

/* Collectives count by group, messages by peer and direction: two ranks must agree on the number
   without having seen each other's other works. The number orders works: a fingerprint with another
   number belongs to another call. */
static void number_it(lt_group *g, lt_work *w, lt_plan *plan) {
  plan->group = g->id;
  plan->root_world = plan->root >= 0 ? g->world[plan->root] : -1;
  if (!w->pair) {
    plan->seq = ++g->seq;
    return;
  }
  bool sends = plan->op == LT_COMM_SEND;
  uint64_t me = (uint64_t)g->world[g->rank], other = (uint64_t)plan->root_world;
  plan->from = sends ? me : other;
  plan->to = sends ? other : me;
  plan->seq = ++(sends ? g->sent : g->received)[plan->root];
}

lt_work *lt_work_issue(lt_ctx *c, lt_work *w, lt_plan *plan, lt_origin at) {
  lt_group *g = w->group;
  if (!lt_ok(c)) {
    lt_work_release(c, w);
    return NULL;
  }
  number_it(g, w, plan);
  w->mark = lt_mark_of(plan, at);
  w->round.mark = &w->mark;
  if (g->heartbeat != NULL) w->ring = lt_ring_issue(g->heartbeat, &w->mark, w->bytes);
  append(c, w->pair ? &g->pairs : &g->queue, w);
  /* At once: ranks that are there already need no wait at all. */
  lt_queue_drive(c, g->root);
  return w;
}

/* The end of a work, good or not. Tensors are released here, not when the script drops the work:
   their memory is large, and a script may keep works in a list. */
static void finish(lt_ctx *c, lt_work *w, lt_code code, const char *text) {
  lt_group *g = w->group;
  w->stage = LT_STAGE_DONE;
  w->failed = code;
  if (code != LT_OK) {
    strncpy(w->text, text, sizeof w->text - 1);
  } else if (g->heartbeat != NULL) {
    lt_traffic *t = &g->heartbeat->traffic[w->mark.op];
    t->calls++;
    t->bytes += w->bytes;
    lt_ring_done(g->heartbeat, w->ring, w->bytes);
    atomic_fetch_add_explicit(&g->heartbeat->progress, 1, memory_order_relaxed);
  }
  const char *op = c->op;
  c->op = lt_comm_op_name(w->mark.op); /* who writes, for what the tape says */
  if (w->out != NULL) lt_storage_bump(c, w->out->storage);
  c->op = op;
  lt_device_drop(c, w);
  release_parts(c, w);
  lt_release(c, w->in);
  lt_release(c, w->out);
  lt_free(c, w->data.sent, w->data.sent_bytes);
  w->in = w->out = NULL;
  w->data.sent = NULL;
  w->data.sent_bytes = 0;
}

/* What a callback left in the ctx belongs to the work: its wait reports it. */
static bool take_over(lt_ctx *c, lt_work *w) {
  lt_failure f;
  if (!lt_take_failure(c, &f)) return false;
  finish(c, w, f.code, f.text);
  return true;
}

/* Ranks say different things about `w`, as round.marks shows: report it, and all ends. */
static void disagree(lt_ctx *c, lt_work *w) {
  lt_group *g = w->group;
  char text[LT_OUTCOME_TEXT];
  g->broken = true;
  if (w->pair) {
    int low = w->peer < g->rank ? w->peer : g->rank, high = w->peer < g->rank ? g->rank : w->peer;
    const lt_mark marks[] = {w->round.marks[low], w->round.marks[high]};
    const int ranks[] = {g->world[low], g->world[high]};
    lt_disagreement_text(marks, ranks, 2, text, sizeof text);
  } else {
    lt_disagreement_text(w->round.marks, g->world, g->size, text, sizeof text);
  }
  if (g->heartbeat != NULL) {
    if (g->heartbeat->report != NULL) g->heartbeat->report(g->heartbeat->ud, LT_RAISED, text);
    lt_outcome_set(&g->heartbeat->outcome, LT_RAISED, -1, 1, text); /* unless there is one */
    /* Bounded: the other writer holds the result of the run for the time of a copy of a text. */
    while (!lt_heartbeat_is_over(g->heartbeat))
      sched_yield(); /* another thread is just writing it */
  }
  finish(c, w, LT_ERANKS, g->heartbeat != NULL ? g->heartbeat->outcome.text : text);
}

static void broken(lt_ctx *c, lt_work *w, const char *text) {
  char message_text[LT_WORK_TEXT];
  w->group->broken = true;
  snprintf(message_text, sizeof message_text, "%s: %.200s", lt_comm_op_name(w->mark.op), text);
  finish(c, w, LT_ERANKS, message_text);
}

/* The host's link failed, mostly because a rank has died: the watchdog knows that soon, and how. */
static void link_broken(lt_work *w, const char *text) {
  w->stage = LT_STAGE_BROKEN;
  snprintf(w->text, sizeof w->text, "%.200s", text);
}

/* True when something changed. */
static bool look_at_broken(lt_ctx *c, lt_work *w) {
  char text[LT_WORK_TEXT];
  if (lt_link_patience(w->group, &w->group->between) == LT_PENDING) return false;
  memcpy(text, w->text, sizeof text);
  broken(c, w, text);
  return true;
}

static lt_progress compare(lt_ctx *c, lt_work *w) {
  lt_group *g = w->group;
  w->round.marks = g->marks;
  lt_progress p = w->pair ? g->ops->compare_pair(g->link, w->peer, &w->round)
                          : g->ops->compare(g->link, &w->round);
  if (p == LT_DIFFERENT) disagree(c, w);
  if (p == LT_BROKEN) link_broken(w, w->round.text);
  return p;
}

static void all_there(lt_ctx *c, lt_work *w) {
  lt_group *g = w->group;
  if (g->heartbeat != NULL) lt_ring_arrived(g->heartbeat, w->ring);
  w->stage = LT_STAGE_MOVE;
  if (w->agreed != NULL && !w->agreed(c, w) && !take_over(c, w)) finish(c, w, LT_OK, NULL);
  bool data = w->mark.op != LT_COMM_SPLIT && w->mark.op != LT_COMM_BARRIER;
  if (w->stage == LT_STAGE_MOVE && !data) finish(c, w, LT_OK, NULL);
}

/* One step's data. True when something changed. */
static bool move(lt_ctx *c, lt_work *w) {
  lt_group *g = w->group;
  int64_t before = w->move.moved;
  bool here = w->device.way == LT_WAY_HOST;
  lt_progress p = here ? g->ops->move(g->link, &w->move) : lt_device_move(c, w);
  if (!here && take_over(c, w)) return true;
  if (p == LT_PENDING && w->move.moved != before && g->heartbeat != NULL)
    atomic_fetch_add_explicit(&g->heartbeat->progress, 1, memory_order_relaxed);
  if (p == LT_PENDING) return w->move.moved != before;
  if (p != LT_DONE && here) {
    link_broken(w, w->move.text);
    return true;
  }
  if (p != LT_DONE) {
    broken(c, w, w->move.text);
    return true;
  }
  w->step++;
  bool more = w->next_step != NULL && w->next_step(c, w);
  if (!more && lt_ok(c) && (w->complete == NULL || w->complete(c, w))) lt_device_end(c, w);
  if (!take_over(c, w) && !more) finish(c, w, LT_OK, NULL);
  return true;
}

/* As far as a work gets without waiting. True when something changed. Stages: compare fingerprints,
   move data, done. A work is a state machine because no rank has a thread for communication:
   whoever waits, for anything, drives all works a step further. */
static bool advance(lt_ctx *c, lt_work *w) {
  bool changed = false;
  if (w->stage == LT_STAGE_BROKEN) return look_at_broken(c, w);
  if (w->stage == LT_STAGE_COMPARE) {
    lt_progress p = compare(c, w);
    if (p == LT_PENDING) return false;
    if (p == LT_DONE) all_there(c, w);
    changed = true;
  }
  while (w->stage == LT_STAGE_MOVE) {
    int step = w->step;
    if (!move(c, w)) return changed;
    changed = true;
    if (w->stage == LT_STAGE_MOVE && w->step == step) return true; /* look up between pieces */
  }
  return changed;
}

/* Take what is done off a queue; `link` points to it. */
static void take_off(lt_ctx *c, lt_queue *q, lt_work **link) {
  lt_work *w = *link;
  *link = w->next;
  if (q->last == &w->next) q->last = link;
  w->next = NULL;
  if (--w->group->root->pending == 0) c->progress = NULL;
  lt_work_release(c, w);
}

static bool drive_collectives(lt_ctx *c, lt_group *g) {
  bool changed = false;
  lt_work **link = &g->queue.first;
  while (*link != NULL && g->link != NULL && !g->broken) {
    lt_work *w = *link;
    changed |= advance(c, w);
    if (w->stage == LT_STAGE_DONE)
      take_off(c, &g->queue, link);
    /* Agreeing is in order always, as ranks compare their works one by one; only data may move
       beside each other. */
    else if (g->ops->overlaps && w->stage == LT_STAGE_MOVE && w->device.way == LT_WAY_HOST)
      link = &w->next; /* what waits for a device has not begun to move */
    else
      break;
  }
  return changed;
}

/* The first of each peer and direction; `walked` notes those that wait. A later message to the same
   peer must not overtake one that waits. */
static bool drive_pairs(lt_ctx *c, lt_group *g) {
  bool changed = false;
  lt_work **link = &g->pairs.first;
  if (*link == NULL) return false;
  memset(g->walked, 0, 2 * (size_t)g->size * sizeof *g->walked);
  while (*link != NULL && g->link != NULL && !g->broken) {
    lt_work *w = *link;
    uint64_t *waits = &g->walked[w->peer + (w->mark.op == LT_COMM_SEND ? 0 : g->size)];
    if (*waits == 0) changed |= advance(c, w);
    if (w->stage == LT_STAGE_DONE) {
      take_off(c, &g->pairs, link);
    } else {
      *waits = 1;
      link = &w->next;
    }
  }
  return changed;
}

bool lt_queue_drive(lt_ctx *c, lt_group *root) {
  bool changed = false;
  for (lt_group *next, *g = root; g != NULL; g = next) {
    lt_group_retain(g); /* its last work may hold the last reference */
    if (g->queue.first != NULL) changed |= drive_collectives(c, g);
    if (g->pairs.first != NULL) changed |= drive_pairs(c, g);
    next = g->next;
    lt_group_release(c, g);
  }
  return changed;
}

void lt_queue_end(lt_ctx *c, lt_group *g, lt_code code, const char *text) {
  lt_queue *queues[] = {&g->queue, &g->pairs};
  for (int k = 0; k < 2; k++)
    while (queues[k]->first != NULL) {
      lt_work *w = queues[k]->first;
      if (w->stage != LT_STAGE_DONE) finish(c, w, code, text);
      take_off(c, queues[k], &queues[k]->first);
    }
}
