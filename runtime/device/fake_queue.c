/* runtime/device/fake_queue.c: streams of the fake device, and the order in which their work runs.


   Nothing runs when it is issued: work runs when it is waited for, as late as the rules of
   streams allow, and other streams' work before or after it, in turns. What was forgotten to be
   ordered then gives a wrong result in a spec, and not once in a thousand runs of a GPU. */
#include "device/fake_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 64, MOST_POLLS = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lt_stream *streams[STREAMS];
static int n_streams;
static lt_fake_order order_of_streams;
static bool turn, in_kernel;
static lt_ctx *own; /* runs what is waited for only by polling */
lt_fake_counts lt_fake_counted;

bool lt_fake_records(void) {
  static const char name[] = "LT_FAKE_RECORDS"; /* for specs alone: no page names it */
  static atomic_int known = -1;
  int records = atomic_load_explicit(&known, memory_order_relaxed);
  if (records >= 0) return records > 0;
  const char *text = getenv(name);
  records = text != NULL && strcmp(text, "1") == 0;
  atomic_store(&known, records);
  return records > 0;
}

/* A lock that its thread may take again: kernels call back into the device. */
static _Thread_local int depth;
void lt_fake_enter(void) {
  if (depth++ == 0) pthread_mutex_lock(&lock);
}
bool lt_fake_leave(bool result) {
  if (--depth == 0) pthread_mutex_unlock(&lock);
  return result;
}

bool lt_fake_in_kernel(void) { return in_kernel; }

void lt_fake_run_kernel(lt_ctx *c, const lt_fake_task *t) {
  in_kernel = true;
  t->kernel(c, &t->call);
  in_kernel = false;
}

/* Running. */

/* Runs the stream up to a position, and of others what that waits for. A wait (no `run`) first runs
   what it waits for, on the other stream: depth is that of the waits, which a program's order of
   issue keeps free of circles. */
static void run_until(lt_ctx *c, lt_stream *s, uint64_t position) {
  if (in_kernel) return;
  while (s->done < position && s->first != NULL) {
    lt_fake_task *t = s->first;
    if (t->run == NULL) run_until(c, t->after.stream, t->after.position);
    s->working -= !t->ends;
    s->first = t->next;
    if (s->first == NULL) s->last = NULL;
    if (t->run != NULL) t->run(c, t);
    s->done++;
    free(t->copies);
    free(t);
  }
}

static void run_others(lt_ctx *c, const lt_stream *s) {
  for (int k = n_streams - 1; k >= 0; k--)
    if (streams[k] != s) run_until(c, streams[k], streams[k]->issued);
}

/* All that is recorded runs, as one program does. */
static void cut(lt_ctx *c, lt_stream *s) {
  if (in_kernel || s == NULL) return;
  lt_fake_counted.cuts += s->working > 0;
  run_until(c, s, s->issued);
}

/* Both orders are legal for a GPU: TURNS alternates, so that a spec meets both. */
static bool others_first(void) {
  turn = !turn;
  return order_of_streams == LT_FAKE_TURNS ? turn : order_of_streams == LT_FAKE_OTHERS_FIRST;
}

void lt_fake_wait_for(lt_ctx *c, lt_event event) {
  if (event.stream->done >= event.position) return;
  lt_fake_counted.waits++;
  if (lt_fake_records()) {
    cut(c, event.stream);
    return;
  }
  if (others_first()) run_others(c, event.stream);
  run_until(c, event.stream, event.position);
}

/* Issuing. */

lt_fake_task *lt_fake_task_new(lt_ctx *c, lt_stream *s, void (*run)(lt_ctx *c, lt_fake_task *t)) {
  lt_fake_task *t = calloc(1, sizeof *t);
  if (t == NULL) {
    lt_fail(c, LT_EMEMORY, "fake: out of memory");
    return NULL;
  }
  t->run = run;
  t->index = s->index;
  t->root = c->root;
  t->op = c->op;
  t->line = lt_ctx_line(c);
  return t;
}

bool lt_fake_append(lt_stream *s, lt_fake_task *t) {
  if (s->last != NULL)
    s->last->next = t;
  else
    s->first = t;
  s->last = t;
  s->issued++;
  s->working += !t->ends;
  return true;
}

/* Streams and events. */

lt_stream *lt_fake_only_stream(int index) {
  for (int k = 0; k < n_streams; k++)
    if (streams[k]->index == index) return streams[k];
  return NULL;
}

lt_stream *lt_fake_stream_new(lt_ctx *c, int index, int priority) {
  (void)priority;
  if (!lt_fake_is_index(index)) {
    lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
    return NULL;
  }
  lt_fake_enter();
  lt_stream *only = lt_fake_records() ? lt_fake_only_stream(index) : NULL;
  lt_fake_leave(true);
  if (only != NULL) return only;
  lt_stream *s = calloc(1, sizeof *s);
  lt_fake_enter();
  if (own == NULL) own = lt_ctx_new(c->registry, NULL);
  bool fits = s != NULL && n_streams < STREAMS;
  if (fits) {
    s->index = index;
    streams[n_streams++] = s;
  }
  lt_fake_leave(true);
  if (fits) return s;
  free(s);
  lt_fail(c, LT_EMEMORY, "fake: too many streams");
  return NULL;
}

/* An event is a position in a stream: that of the work issued last. It needs no object of its
   own. */
bool lt_fake_event_record(lt_ctx *c, lt_stream *s, lt_event *out) {
  (void)c;
  lt_fake_enter();
  *out = (lt_event){s, s->issued};
  return lt_fake_leave(true);
}

/* Who asks again and again gets there in the end, a task at a time; of a recording nobody does. */
lt_progress lt_fake_event_done(lt_event event) {
  lt_stream *s = event.stream;
  lt_fake_enter();
  if (!lt_fake_records() && s->done < event.position && ++s->asked >= MOST_POLLS && own != NULL) {
    run_until(own, s, s->done + 1);
    lt_take_failure(own, NULL);
  }
  if (s->done >= event.position) s->asked = 0;
  return lt_fake_leave(event.stream->done >= event.position) ? LT_DONE : LT_PENDING;
}

bool lt_fake_submit(lt_ctx *c, lt_event event) {
  lt_fake_enter();
  if (event.stream->done < event.position) cut(c, event.stream);
  return lt_fake_leave(lt_ok(c));
}

bool lt_fake_batch_end(lt_ctx *c, int index) {
  lt_fake_enter();
  cut(c, lt_fake_only_stream(index));
  return lt_fake_leave(lt_ok(c));
}

bool lt_fake_event_wait(lt_ctx *c, lt_event event) {
  lt_fake_enter();
  lt_fake_wait_for(c, event);
  return lt_fake_leave(lt_ok(c));
}

bool lt_fake_stream_wait(lt_ctx *c, lt_stream *s, lt_event event) {
  lt_fake_task *t = lt_fake_task_new(c, s, NULL);
  if (t == NULL) return false;
  t->after = event;
  lt_fake_enter();
  return lt_fake_leave(lt_fake_append(s, t));
}

bool lt_fake_synchronize(lt_ctx *c, int index) {
  if (!lt_fake_is_index(index)) return lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
  lt_fake_enter();
  bool last = others_first(), waits = false;
  if (lt_fake_records()) cut(c, lt_fake_only_stream(index));
  for (int k = 0; k < n_streams; k++) {
    lt_stream *s = streams[last ? n_streams - 1 - k : k];
    waits = waits || (s->index == index && s->done < s->issued);
    if (s->index == index) run_until(c, s, s->issued);
  }
  lt_fake_counted.waits += waits;
  return lt_fake_leave(lt_ok(c));
}

lt_fake_counts lt_fake_count(void) {
  lt_fake_enter();
  lt_fake_counts n = lt_fake_counted;
  for (int k = 0; k < n_streams; k++) n.pending += (int64_t)(streams[k]->issued - streams[k]->done);
  lt_fake_leave(true);
  return n;
}

void lt_fake_set_order(lt_fake_order order) {
  lt_fake_enter();
  order_of_streams = order;
  lt_fake_leave(true);
}
