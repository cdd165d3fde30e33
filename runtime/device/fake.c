/* runtime/device/fake.c: an asynchronous, counting device over host memory, for specs.

   Work is queued per stream and runs at the next synchronisation, copy to the host or wait, with
   the cpu's kernels: whatever forgets to order itself after the work that made its input, or hands
   out memory that queued work still uses, reads garbage (fresh memory is filled with 0xff), and
   specs see it without a GPU. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

enum { STREAMS = 4, MAX_TENSORS = 64 };

typedef struct task {
  struct task *next;
  lt_kernel kernel;
  lt_call call;
  lt_tensor *in[MAX_TENSORS], *out[MAX_TENSORS]; /* own views; nothing is retained, as on a GPU */
  void *args;
  int wait_stream; /* -1: a kernel; else wait for `wait_event` of that stream first */
  uint64_t wait_event;
} task;

typedef struct queue {
  task *first, *last;
  uint64_t issued, done;
} queue;

/* One device, used by one ctx at a time; the mutex covers specs with helper threads. */
static struct {
  pthread_mutex_t mutex;
  queue queues[STREAMS];
  lt_fake_counts counts;
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int count(void) { return 1; }

static void *allocate(int index, size_t bytes) {
  (void)index;
  void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (p != NULL) memset(p, 0xff, bytes);
  fake.counts.allocations++;
  return p;
}

static void release(int index, void *ptr, size_t bytes) {
  (void)index, (void)bytes;
  free(ptr);
}

static lt_tensor *borrow(const lt_tensor *t) {
  if (t == NULL) return NULL;
  lt_tensor *copy = malloc(sizeof *copy);
  if (copy == NULL) return NULL;
  *copy = *t;
  copy->node = NULL;
  copy->grad = NULL;
  copy->hooks = NULL;
  return copy;
}

static void append(int stream, task *t) {
  queue *q = &fake.queues[stream];
  if (q->last != NULL)
    q->last->next = t;
  else
    q->first = t;
  q->last = t;
  q->issued++;
}

static void run_until(lt_ctx *c, int stream, uint64_t event) {
  queue *q = &fake.queues[stream];
  while (q->done < event && q->first != NULL) {
    task *t = q->first;
    q->first = t->next;
    if (q->first == NULL) q->last = NULL;
    if (t->wait_stream >= 0) run_until(c, t->wait_stream, t->wait_event);
    if (t->kernel != NULL) t->kernel(c, &t->call);
    q->done++;
    for (int k = 0; k < t->call.n_in; k++) free(t->in[k]);
    for (int k = 0; k < t->call.n_out; k++) free(t->out[k]);
    free(t->args);
    free(t);
  }
}

static bool synchronize(lt_ctx *c, int index) {
  (void)index;
  pthread_mutex_lock(&fake.mutex);
  for (int s = 0; s < STREAMS; s++) run_until(c, s, fake.queues[s].issued);
  fake.counts.syncs++;
  pthread_mutex_unlock(&fake.mutex);
  return lt_ok(c);
}

static bool launch(lt_ctx *c, lt_kernel kernel, const lt_call *call) {
  if (!lt_assert(c, call->n_in <= MAX_TENSORS && call->n_out <= MAX_TENSORS)) return false;
  lt_device d = {1, 0};
  task *t = calloc(1, sizeof *t);
  if (t == NULL) return lt_fail(c, LT_EMEMORY, "fake: out of memory");
  t->kernel = kernel;
  t->call = *call;
  t->wait_stream = -1;
  for (int k = 0; k < call->n_in; k++) t->in[k] = borrow(call->in[k]);
  for (int k = 0; k < call->n_out; k++) t->out[k] = borrow(call->out[k]);
  t->call.in = t->in;
  t->call.out = t->out;
  if (call->args_size > 0) {
    t->args = malloc(call->args_size);
    if (t->args != NULL) memcpy(t->args, call->args, call->args_size);
    t->call.args = t->args;
  }
  pthread_mutex_lock(&fake.mutex);
  append(lt_stream_current(c, d), t);
  fake.counts.launches++;
  pthread_mutex_unlock(&fake.mutex);
  return true;
}

static int stream_new(lt_ctx *c, int index) {
  (void)c, (void)index;
  static int made;
  return ++made % STREAMS;
}

static uint64_t event_record(lt_ctx *c, int index, int stream) {
  (void)c, (void)index;
  return fake.queues[stream].issued;
}

static bool event_done(int index, int stream, uint64_t event) {
  (void)index;
  return fake.queues[stream].done >= event;
}

static bool stream_wait(lt_ctx *c, int index, int stream, int other, uint64_t event) {
  (void)index;
  task *t = calloc(1, sizeof *t);
  if (t == NULL) return lt_fail(c, LT_EMEMORY, "fake: out of memory");
  t->wait_stream = other;
  t->wait_event = event;
  append(stream, t);
  return true;
}

static bool to_host(lt_ctx *c, int index, void *dst, const void *src, size_t bytes) {
  if (!synchronize(c, index)) return false;
  fake.counts.copies++;
  memcpy(dst, src, bytes);
  return true;
}

static bool copy(lt_ctx *c, int index, void *dst, const void *src, size_t bytes) {
  return to_host(c, index, dst, src, bytes);
}

const lt_device_ops *lt_fake_ops(const lt_device_ops *cpu) {
  static lt_device_ops ops;
  ops = (lt_device_ops){
      .size = sizeof ops, .version = LT_BACKEND_VERSION, .name = "fake", .for_specs = true,
      .op_hash = cpu->op_hash,
      .host_memory = false, .kernels = cpu->kernels, .count = count, .alloc = allocate,
      .free = release, .copy = copy, .to_host = to_host, .from_host = to_host, .launch = launch,
      .stream_new = stream_new, .event_record = event_record, .event_done = event_done,
      .stream_wait = stream_wait, .synchronize = synchronize};
  return &ops;
}

lt_fake_counts lt_fake_count(lt_ctx *c) {
  (void)c;
  lt_fake_counts n = fake.counts;
  for (int s = 0; s < STREAMS; s++)
    n.pending += (int64_t)(fake.queues[s].issued - fake.queues[s].done);
  return n;
}
