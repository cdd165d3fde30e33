/* runtime/device/wait.c: the host's waits for devices (wait.h). */
#include "device/wait.h"

#include <sched.h>
#include <time.h>

#include "base/cores.h"
#include "device/ctx_devices.h"
#include "device/graph.h"

/* SPINS: polls before the core is offered to others. LOOK_NS: how often a signal, or the end of
   another rank, is looked for. LONG_NS: of waiting, after which the thread sleeps for REST_NS at a
   time: a thousandth later does not matter, and what comes may never come. Where waits are to be
   passive it does so at once. */
enum { SPINS = 4000, LOOK_NS = 500000, LONG_NS = 100000000, REST_NS = 100000 };

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* A wait that is looked on. It spins as a library's own wait would. */
static bool wait_watched(lt_ctx *c, const lt_device_ops *ops, lt_event e) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  int64_t since = 0, looked = 0, awake_ns = 0;
  bool ok = ops->submit == NULL || ops->submit(c, e);
  lt_progress p;
  for (int turn = 0; ok && (p = ops->event_done(e)) == LT_PENDING; turn++) {
    if (turn == 0) st->watched++;
    /* The clock is read seldom: an event is asked about in less time. */
    if (turn < SPINS && turn % 256 != 255) continue;
    int64_t now = now_ns();
    if (since == 0) {
      since = looked = now;
      awake_ns = lt_waits_passively() ? 0 : LONG_NS;
    }
    if (turn >= SPINS && now - since >= awake_ns)
      nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    else if (turn >= SPINS)
      sched_yield();
    if (now - looked < LOOK_NS || st->watch.look == NULL) continue;
    looked = now;
    ok = st->watch.look(c, st->watch.ud, now - since);
  }
  if (looked > since && st->watch.end != NULL) st->watch.end(c, st->watch.ud);
  return ops->event_wait(c, e) && ok;
}

bool lt_wait_submit(lt_ctx *c, lt_device d, lt_event e) {
  const lt_device_ops *ops = lt_device_table(c, d);
  return e.stream == NULL || ops->submit == NULL || ops->submit(c, e);
}

/* Without a watch the device's library waits; with one, the host polls, so that a signal or the end
   of another rank can interrupt a wait for a collective that will never be complete. */
bool lt_wait_event(lt_ctx *c, lt_device d, lt_event e) {
  const lt_device_ops *ops = lt_device_table(c, d);
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  if (ops->launch == NULL || e.stream == NULL) return true;
  if (st == NULL || st->watch.look == NULL) return ops->event_wait(c, e);
  return wait_watched(c, ops, e);
}

bool lt_wait_stream(lt_ctx *c, lt_device d, lt_stream *stream) {
  lt_event now;
  return lt_device_table(c, d)->event_record(c, stream, &now) && lt_wait_event(c, d, now);
}

bool lt_wait_device(lt_ctx *c, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  bool ok = true;
  if (ops->launch == NULL) return true;
  if (!lt_graph_allows(c, "wait for the GPU")) return false;
  for (int k = 0; k < LT_STREAM_ROLES && st != NULL && st->watch.look != NULL && ok; k++) {
    lt_stream *stream = st->streams[d.kind][d.index].role[k];
    ok = stream == NULL || lt_wait_stream(c, d, stream);
  }
  if (ok && st != NULL && st->watch.finish != NULL) ok = st->watch.finish(c, st->watch.ud);
  return ops->synchronize(c, d.index) && ok;
}

bool lt_device_end_batch(lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  bool ok = true;
  for (int k = 0; st != NULL && k < st->n_open; k++) {
    const lt_device_ops *ops = st->open[k]->ops;
    if (ops->batch_end != NULL) ok = ops->batch_end(c, st->open[k]->device.index) && ok;
  }
  return ok;
}

int64_t lt_wait_count(const lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL ? st->watched : 0;
}

/* A collective that was abandoned leaves undefined values. The range of positions between its start
   and now is remembered, and values written within it are refused when the host reads them. */
void lt_wait_spoil(lt_ctx *c, lt_device d, lt_event from) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  if (st == NULL || from.stream == NULL) return;
  int k = st->n_spoiled < LT_SPOILED ? st->n_spoiled++ : LT_SPOILED - 1;
  st->spoiled[k] = (lt_spoiled){.from = from};
  lt_device_table(c, d)->event_record(c, from.stream, &st->spoiled[k].to);
}

static bool is_spoiled(const lt_device_state *st, lt_event e) {
  for (int k = 0; k < st->n_spoiled; k++) {
    const lt_spoiled *r = &st->spoiled[k];
    /* Positions of a stream are in order: what is after the collective that was given up, and
       before its end was noted, may have read its result. */
    if (e.stream == r->from.stream && e.position > r->from.position &&
        e.position <= r->to.position)
      return true;
  }
  return false;
}

bool lt_wait_to_read(lt_ctx *c, const lt_storage *s, lt_stream *stream) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  if (st == NULL || stream == NULL) return true;
  if (st->watch.look != NULL &&
      !(lt_wait_event(c, s->device, s->write) && lt_wait_stream(c, s->device, stream)))
    return false;
  return !is_spoiled(st, s->write) ||
         lt_fail(c, LT_ERANKS,
                 "%s%sa value of %s was computed from a collective that was given up",
                 lt_op_name(c), lt_op_colon(c), lt_device_table(c, s->device)->name);
}

bool lt_device_check(lt_ctx *c, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  lt_device_error e;
  if (ops->take_error == NULL || !ops->take_error(c, d.index, &e)) return lt_ok(c);
  return c->registry->value_error(c, &e);
}

bool lt_device_synchronize(lt_ctx *c, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  return ops->launch == NULL || (lt_wait_device(c, d) && lt_device_check(c, d));
}

bool lt_device_synchronize_all(lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  bool ok = true;
  for (int k = 0; st != NULL && k < st->n_open; k++)
    ok = lt_device_synchronize(c, st->open[k]->device) && ok;
  return ok;
}
