/* spec/c/device_streams.c: part of device_conformance: streams and events order work, and nothing
   else does.

   Each promise is checked while a stream is busy: a device that forgot to wait shows bytes of
   before. A device that runs late shows it each time, one that runs at once most of the time. */
#include <string.h>
#include <time.h>

#include "device_conformance.h"

enum { BLOCK = 1 << 18, BUSY = 10, EVENTS = 1000, PATIENCE = 20 /* seconds */ };
#define LOAD_MOST ((size_t)256 << 20)

typedef struct bench {
  lt_ctx *c;
  int index;
  lt_stream *a, *b, *urgent;
  char *old, *fresh, *place, *other; /* BLOCK bytes of the device; two patterns, two to work with */
  char *load;                        /* twice so many bytes that BUSY copies take a while */
  size_t load_bytes;
  char *seen;                        /* pinned */
  char *host;
} bench;

enum { OLD = 1, FRESH = 2 };

static void move(const bench *t, lt_stream *s, void *dst, const void *src) {
  good(t->c, ops->copy(t->c, s, LT_WITHIN, t->index, dst, t->index, src, BLOCK, LT_U8), "copy");
}

static void show(const bench *t, lt_stream *s, const void *src) {
  good(t->c, ops->copy(t->c, s, LT_TO_HOST, t->index, t->seen, t->index, src, BLOCK, LT_U8), "copy");
}

static lt_event event_of(const bench *t, lt_stream *s) {
  lt_event e = {0};
  good(t->c, ops->event_record(t->c, s, &e), "event_record");
  if (e.stream != s) fault("event_record: an event of another stream");
  return e;
}

static void wait_for(const bench *t, lt_event e) {
  good(t->c, ops->event_wait(t->c, e), "event_wait");
}

/* `place` holds the old pattern, `seen` nothing; both streams rest. */
static void start(const bench *t) {
  move(t, t->a, t->place, t->old);
  move(t, t->a, t->other, t->old);
  wait_for(t, event_of(t, t->a));
  wait_for(t, event_of(t, t->b));
  memset(t->seen, 0, BLOCK);
}

/* Work that takes a while. */
static void delay(const bench *t, lt_stream *s) {
  for (int k = 0; k < BUSY; k++)
    good(t->c, ops->copy(t->c, s, LT_WITHIN, t->index, t->load, t->index, t->load + t->load_bytes,
                         t->load_bytes, LT_U8),
         "copy");
}

/* The same, and then the new pattern in `place`. */
static void busy(const bench *t, lt_stream *s) {
  delay(t, s);
  move(t, s, t->place, t->fresh);
}

static void expect(const bench *t, unsigned seed, const char *text) {
  if (!is_pattern(t->seen, BLOCK, seed)) fault("%s", text);
}

static void one_stream_keeps_its_order(const bench *t) {
  start(t);
  busy(t, t->a);
  move(t, t->a, t->other, t->place);
  show(t, t->a, t->other);
  wait_for(t, event_of(t, t->a));
  expect(t, FRESH, "a stream: work did not run in the order of issue");
}

static void a_stream_waits_for_another(const bench *t) {
  start(t);
  busy(t, t->a);
  good(t->c, ops->stream_wait(t->c, t->b, event_of(t, t->a)), "stream_wait");
  show(t, t->b, t->place);
  wait_for(t, event_of(t, t->b));
  expect(t, FRESH, "stream_wait: work ran before the event of the other stream");
  start(t);
  delay(t, t->a);
  show(t, t->a, t->place);
  good(t->c, ops->stream_wait(t->c, t->b, event_of(t, t->a)), "stream_wait");
  move(t, t->b, t->place, t->fresh);
  wait_for(t, event_of(t, t->b));
  wait_for(t, event_of(t, t->a));
  expect(t, OLD, "stream_wait: memory was overwritten before the other stream had read it");
}

static void the_host_waits_for_an_event(const bench *t) {
  start(t);
  busy(t, t->a);
  show(t, t->a, t->place);
  wait_for(t, event_of(t, t->a));
  expect(t, FRESH, "event_wait: came back before the work had run");
}

static double now(void) {
  struct timespec s;
  clock_gettime(CLOCK_MONOTONIC, &s);
  return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

static void an_event_is_done_once_its_work_is(const bench *t) {
  start(t);
  if (ops->event_done(event_of(t, t->b)) != LT_DONE)
    fault("event_done: that of a stream at rest is pending");
  busy(t, t->a);
  show(t, t->a, t->place);
  lt_event e = event_of(t, t->a);
  if (ops->whole_storages && ops->event_done(e) != LT_PENDING)
    fault("event_done: done, though nothing has been submitted");
  if (ops->submit != NULL) good(t->c, ops->submit(t->c, e), "submit");
  double end = now() + PATIENCE;
  lt_progress at;
  while ((at = ops->event_done(e)) == LT_PENDING && now() < end) continue;
  if (at == LT_PENDING) fault("event_done: still pending after %d seconds", PATIENCE);
  expect(t, FRESH, "event_done: said done before the work had run");
  wait_for(t, e);
}

static void synchronize_waits_for_all_streams(const bench *t) {
  lt_stream *const all[] = {t->a, t->b, t->urgent};
  for (int k = 0; k < 3; k++) {
    start(t);
    busy(t, all[k]);
    show(t, all[k], t->place);
    good(t->c, ops->synchronize(t->c, t->index), "synchronize");
    expect(t, FRESH, "synchronize: came back before all work had run");
  }
}

/* More events than a ring of native ones has. */
static void later_events_stand_for_earlier_ones(const bench *t) {
  start(t);
  busy(t, t->a);
  show(t, t->a, t->place);
  lt_event first = event_of(t, t->a), last = first;
  for (int k = 0; k < EVENTS; k++) {
    good(t->c, ops->copy(t->c, t->a, LT_WITHIN, t->index, t->other, t->index, t->old, 64, LT_U8), "copy");
    lt_event e = event_of(t, t->a);
    if (e.position <= last.position) {
      fault("event_record: position %llu after work at %llu", (unsigned long long)e.position,
            (unsigned long long)last.position);
      break;
    }
    last = e;
  }
  wait_for(t, first);
  expect(t, FRESH, "event_wait: an early event, of a stream with many, did not wait");
  wait_for(t, last);
  if (ops->event_done(first) != LT_DONE)
    fault("event_done: an event is pending though a later one of its stream is done");
}

/* A staged copy to the device that is queued behind work keeps the bytes that it was given. */
static void sources_are_staged(const bench *t) {
  start(t);
  delay(t, t->a);
  pattern(t->host, BLOCK, FRESH);
  good(t->c, ops->copy(t->c, t->a, LT_TO_DEVICE, t->index, t->place, t->index, t->host, BLOCK, LT_U8),
       "copy");
  memset(t->host, 0, BLOCK);
  show(t, t->a, t->place);
  wait_for(t, event_of(t, t->a));
  expect(t, FRESH, "copy: a source that is not pinned was read after the call");
}

static void copies_to_plain_memory_wait(const bench *t) {
  start(t);
  busy(t, t->a);
  memset(t->host, 0, BLOCK);
  good(t->c, ops->copy(t->c, t->a, LT_TO_HOST, t->index, t->host, t->index, t->place, BLOCK, LT_U8),
       "copy");
  if (!is_pattern(t->host, BLOCK, FRESH))
    fault("copy: LT_TO_HOST into memory that is not pinned came back before the bytes were there");
}

/* What is issued on a whole storage before its end still has its values. */
static void storages_end_after_their_work(const bench *t) {
  if (!ops->whole_storages) return;
  start(t);
  char *brief = ops->alloc(t->index, BLOCK);
  move(t, t->a, brief, t->fresh);
  move(t, t->a, t->place, brief);
  ops->free(t->index, brief, BLOCK);
  char *next = ops->alloc(t->index, BLOCK);
  move(t, t->a, next, t->old);
  show(t, t->a, t->place);
  wait_for(t, event_of(t, t->a));
  expect(t, FRESH, "free: ended before work that was issued on it had run");
  ops->free(t->index, next, BLOCK);
}

/* The end of a batch, and an end without any work, is that of what was issued. */
static void a_batch_ends(const bench *t) {
  if (ops->batch_end == NULL) return;
  start(t);
  busy(t, t->a);
  show(t, t->a, t->place);
  good(t->c, ops->batch_end(t->c, t->index), "batch_end");
  wait_for(t, event_of(t, t->a));
  expect(t, FRESH, "batch_end: the work of the batch has not run");
  good(t->c, ops->batch_end(t->c, t->index), "batch_end");
}

/* Streams of two devices wait for each other. */
static void a_stream_waits_for_another_device(const bench *t) {
  int other = (t->index + 1) % devices;
  if (other == t->index) return;
  lt_stream *far = stream_of(t->c, other, STREAM_A);
  char *there = ops->alloc(other, BLOCK);
  if (!good(t->c, far != NULL && there != NULL, "stream_new, alloc")) return;
  start(t);
  busy(t, t->a);
  good(t->c, ops->stream_wait(t->c, far, event_of(t, t->a)), "stream_wait");
  good(t->c, ops->copy(t->c, far, LT_PEER, other, there, t->index, t->place, BLOCK, LT_U8), "copy");
  good(t->c, ops->copy(t->c, far, LT_TO_HOST, other, t->seen, other, there, BLOCK, LT_U8), "copy");
  wait_for(t, event_of(t, far));
  expect(t, FRESH, "stream_wait: work ran before the event of another device");
  ops->free(other, there, BLOCK);
}

static void wrong_index(const bench *t) {
  const int wrong[] = {-1, devices};
  for (int k = 0; k < 2; k++) {
    bad(t->c, ops->stream_new(t->c, wrong[k], 0) != NULL, "stream_new: a device that is not there");
    bad(t->c, ops->synchronize(t->c, wrong[k]), "synchronize: a device that is not there");
  }
}

/* Memory for work that takes a millisecond. */
static bool make_load(bench *t) {
  for (t->load_bytes = 1 << 16;; t->load_bytes *= 2) {
    t->load = ops->alloc(t->index, 2 * t->load_bytes);
    if (t->load == NULL) return false;
    delay(t, t->a);
    wait_for(t, event_of(t, t->a));
    double began = now();
    delay(t, t->a);
    wait_for(t, event_of(t, t->a));
    if (now() - began > 1e-3 || t->load_bytes == LOAD_MOST) return true;
    ops->free(t->index, t->load, 2 * t->load_bytes);
  }
}

static bool make(bench *t) {
  t->a = stream_of(t->c, t->index, STREAM_A);
  t->b = stream_of(t->c, t->index, STREAM_B);
  t->urgent = stream_of(t->c, t->index, STREAM_URGENT);
  char **const blocks[] = {&t->old, &t->fresh, &t->place, &t->other};
  for (int k = 0; k < 4; k++)
    if ((*blocks[k] = ops->alloc(t->index, BLOCK)) == NULL) return false;
  t->seen = host_new(BLOCK);
  bool apart = ops->whole_storages || (t->a != t->b && t->a != t->urgent);
  return t->a != NULL && t->b != NULL && t->urgent != NULL && apart && make_load(t);
}

void test_streams(lt_ctx *c, int index) {
  if (ops->launch == NULL) return;
  static char host[BLOCK];
  bench t = {.c = c, .index = index, .host = host};
  if (!good(c, make(&t), "stream_new, alloc")) return;
  pattern(host, BLOCK, OLD);
  good(c, ops->copy(c, t.a, LT_TO_DEVICE, index, t.old, index, host, BLOCK, LT_U8), "copy");
  pattern(host, BLOCK, FRESH);
  good(c, ops->copy(c, t.a, LT_TO_DEVICE, index, t.fresh, index, host, BLOCK, LT_U8), "copy");
  wait_for(&t, event_of(&t, t.a));
  one_stream_keeps_its_order(&t);
  a_stream_waits_for_another(&t);
  the_host_waits_for_an_event(&t);
  an_event_is_done_once_its_work_is(&t);
  synchronize_waits_for_all_streams(&t);
  later_events_stand_for_earlier_ones(&t);
  sources_are_staged(&t);
  copies_to_plain_memory_wait(&t);
  storages_end_after_their_work(&t);
  a_batch_ends(&t);
  a_stream_waits_for_another_device(&t);
  wrong_index(&t);
  good(c, ops->synchronize(c, index), "synchronize");
  char *const blocks[] = {t.old, t.fresh, t.place, t.other};
  for (int k = 0; k < 4; k++) ops->free(index, blocks[k], BLOCK);
  ops->free(index, t.load, 2 * t.load_bytes);
  host_free(t.seen, BLOCK);
}
