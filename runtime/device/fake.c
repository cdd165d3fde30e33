/* runtime/device/fake.c: an asynchronous, counting device kind over host memory, for specs.

   Whatever forgets to order itself after the work that made its input, or hands out memory that
   queued work still uses, reads garbage, and specs see it without a GPU. All of it is under one
   lock: specs have helper threads. */
#include "device/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/stream.h"

enum { DEVICES = 4, STREAMS = 64, ERRORS = 8, PATIENCE = 32 };
static const int64_t ROOM = (int64_t)16 << 30; /* bytes of a device */

/* Work of a stream: one of a wait, a call, a copy, a reduction, a filling of freed memory. */
typedef struct task {
  struct task *next;
  void (*run)(lt_ctx *c, struct task *t); /* NULL: wait for `after` */
  lt_event after;
  int index;
  /* Who issued it. */
  lt_ctx *root;
  const char *op;
  uint32_t line;
  /* A call, with copies of all that it points to: nothing is retained, as on a GPU. */
  lt_kernel kernel;
  lt_call call;
  void *copies;
  /* Bytes; a staged source lies in `copies`. */
  void *dst;
  const void *a, *b;
  size_t bytes;
  /* Of a reduction. */
  int64_t n;
  lt_dtype dtype;
  lt_comm_reduce reduce;
  double by;
} task;

struct lt_stream {
  int index;
  task *first, *last;
  uint64_t issued, done;
  int asked; /* by who polls */
};

/* The error word of a device and root. */
typedef struct word {
  const lt_ctx *root;
  int index;
  lt_device_error error;
} word;

/* Pinned memory, as long as it lives. */
typedef struct pinned {
  struct pinned *next;
  char *memory;
  size_t bytes;
} pinned;

static struct {
  pthread_mutex_t lock;
  lt_stream *streams[STREAMS];
  int n_streams;
  word words[ERRORS];
  int n_words;
  pinned *pins;
  lt_fake_order order;
  bool turn, in_kernel;
  int64_t held[DEVICES];
  lt_ctx *own; /* runs what nobody waits for but by polling */
  lt_fake_counts counts;
  const lt_device_ops *cpu;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_index(int index) { return index >= 0 && index < DEVICES; }

/* A kernel that runs out of memory comes back in here: it finds nothing to wait for. */
static _Thread_local int depth;
static void enter(void) {
  if (depth++ == 0) pthread_mutex_lock(&fake.lock);
}
static bool leave(bool result) {
  if (--depth == 0) pthread_mutex_unlock(&fake.lock);
  return result;
}

/* Running. */

static void note_error(const task *t, const lt_failure *f) {
  for (int k = 0; k < fake.n_words; k++)
    if (fake.words[k].root == t->root && fake.words[k].index == t->index) return;
  if (fake.n_words == ERRORS) return;
  fake.words[fake.n_words++] = (word){t->root, t->index,
                                      {t->call.op, t->line, f->value, f->limit}};
}

/* The kernel runs in the ctx that waits, which may have failed by now, in another op and line. */
static void run_call(lt_ctx *c, task *t) {
  static lt_failure before, own;
  const char *op = c->op;
  uint32_t line = c->line;
  bool failed = lt_take_failure(c, &before);
  c->op = t->op;
  c->line = t->line;
  fake.in_kernel = true;
  t->kernel(c, &t->call);
  fake.in_kernel = false;
  c->op = op;
  c->line = line;
  if (lt_take_failure(c, &own)) {
    if (own.of_value)
      note_error(t, &own);
    else if (!failed)
      c->failure = own;
  }
  if (failed) c->failure = before;
}

static void run_copy(lt_ctx *c, task *t) {
  (void)c;
  memcpy(t->dst, t->a, t->bytes);
}

static void run_fill(lt_ctx *c, task *t) {
  (void)c;
  memset(t->dst, 0xff, t->bytes);
}

static void run_combine(lt_ctx *c, task *t) {
  fake.cpu->combine(c, 0, NULL, t->dst, t->a, t->b, t->n, t->dtype, t->reduce);
}

static void run_divide(lt_ctx *c, task *t) {
  fake.cpu->divide(c, 0, NULL, t->dst, t->n, t->dtype, (int)t->by);
}

static void run_scale(lt_ctx *c, task *t) {
  fake.cpu->scale(c, 0, NULL, t->dst, t->n, t->dtype, t->by);
}

/* Runs the stream up to a position, and of others what that waits for. */
static void run_until(lt_ctx *c, lt_stream *s, uint64_t position) {
  if (fake.in_kernel) return;
  while (s->done < position && s->first != NULL) {
    task *t = s->first;
    if (t->run == NULL) run_until(c, t->after.stream, t->after.position);
    s->first = t->next;
    if (s->first == NULL) s->last = NULL;
    if (t->run != NULL) t->run(c, t);
    s->done++;
    free(t->copies);
    free(t);
  }
}

static void run_others(lt_ctx *c, const lt_stream *s) {
  for (int k = fake.n_streams - 1; k >= 0; k--)
    if (fake.streams[k] != s) run_until(c, fake.streams[k], fake.streams[k]->issued);
}

static bool others_first(void) {
  fake.turn = !fake.turn;
  return fake.order == LT_FAKE_TURNS ? fake.turn : fake.order == LT_FAKE_OTHERS_FIRST;
}

static void wait_for(lt_ctx *c, lt_event event) {
  if (event.stream->done >= event.position) return;
  fake.counts.waits++;
  if (others_first()) run_others(c, event.stream);
  run_until(c, event.stream, event.position);
}

/* Issuing. */

static task *task_new(lt_ctx *c, lt_stream *s, void (*run)(lt_ctx *c, task *t)) {
  task *t = calloc(1, sizeof *t);
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

static bool append(lt_stream *s, task *t) {
  if (s->last != NULL)
    s->last->next = t;
  else
    s->first = t;
  s->last = t;
  s->issued++;
  return true;
}

/* A tensor and its storage as they are at the launch. */
typedef struct borrowed {
  lt_tensor tensor;
  lt_storage storage;
} borrowed;

static lt_tensor *borrow(borrowed *to, const lt_tensor *t) {
  if (t == NULL) return NULL;
  memcpy(&to->tensor, t, sizeof *t);
  to->storage.data = t->storage->data;
  to->storage.bytes = t->storage->bytes;
  to->storage.device = t->storage->device;
  to->tensor.storage = &to->storage;
  to->tensor.node = NULL;
  to->tensor.grad = NULL;
  to->tensor.hooks = NULL;
  return &to->tensor;
}

/* Copies of the tensors, the lists of them and the arguments, in one piece of memory. */
static bool keep_call(lt_ctx *c, task *t, const lt_call *call) {
  size_t n = (size_t)(call->n_in + call->n_out);
  char *memory = calloc(1, n * sizeof(borrowed) + n * sizeof(lt_tensor *) + call->args_size + 16);
  if (memory == NULL) return lt_fail(c, LT_EMEMORY, "fake: out of memory");
  borrowed *tensors = (borrowed *)(void *)memory;
  void *args = memory + n * sizeof(borrowed);
  args = (void *)(((uintptr_t)args + 15) / 16 * 16);
  lt_tensor **list = (lt_tensor **)((char *)args + (call->args_size + 7) / 8 * 8);
  t->copies = memory;
  t->call = *call;
  for (int k = 0; k < call->n_in; k++) list[k] = borrow(&tensors[k], call->in[k]);
  for (int k = 0; k < call->n_out; k++)
    list[call->n_in + k] = borrow(&tensors[call->n_in + k], call->out[k]);
  t->call.in = list;
  t->call.out = list + call->n_in;
  if (call->args_size > 0) memcpy(args, call->args, call->args_size);
  t->call.args = args;
  return true;
}

static bool launch(lt_ctx *c, int index, lt_stream *s, lt_kernel kernel, const lt_call *call) {
  if (!lt_assert(c, s->index == index)) return false;
  task *t = task_new(c, s, run_call);
  if (t == NULL || !keep_call(c, t, call)) {
    free(t);
    return false;
  }
  t->kernel = kernel;
  enter();
  fake.counts.launches++;
  return leave(append(s, t));
}

static bool is_pinned(const void *memory) {
  const char *at = memory;
  for (const pinned *p = fake.pins; p != NULL; p = p->next)
    if (at >= p->memory && at < p->memory + p->bytes) return true;
  return false;
}

static bool copy(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                 const void *src, size_t bytes) {
  if (!lt_assert(c, s->index == index && (from == index) == (way != LT_PEER))) return false;
  task *t = task_new(c, s, run_copy);
  if (t == NULL) return false;
  enter();
  t->dst = dst;
  t->a = src;
  t->bytes = bytes;
  if (way == LT_TO_DEVICE && !is_pinned(src)) {
    t->a = t->copies = malloc(bytes);
    if (t->copies == NULL) {
      free(t);
      return leave(lt_fail(c, LT_EMEMORY, "fake: out of memory"));
    }
    memcpy(t->copies, src, bytes);
  }
  fake.counts.copies++;
  append(s, t);
  if (way == LT_TO_HOST && !is_pinned(dst)) wait_for(c, (lt_event){s, s->issued});
  return leave(lt_ok(c));
}

static bool reduction(lt_ctx *c, int index, lt_stream *s, task what) {
  if (!lt_assert(c, s->index == index)) return false;
  task *t = task_new(c, s, what.run);
  if (t == NULL) return false;
  t->dst = what.dst;
  t->a = what.a;
  t->b = what.b;
  t->n = what.n;
  t->dtype = what.dtype;
  t->reduce = what.reduce;
  t->by = what.by;
  enter();
  fake.counts.launches++;
  return leave(append(s, t));
}

static bool combine(lt_ctx *c, int index, lt_stream *s, void *dst, const void *a, const void *b,
                    int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  return reduction(c, index, s, (task){.run = run_combine, .dst = dst, .a = a, .b = b, .n = n,
                                       .dtype = dtype, .reduce = reduce});
}

static bool divide(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                   int by) {
  return reduction(c, index, s,
                   (task){.run = run_divide, .dst = data, .n = n, .dtype = dtype, .by = by});
}

static bool scale(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                  double by) {
  return reduction(c, index, s,
                   (task){.run = run_scale, .dst = data, .n = n, .dtype = dtype, .by = by});
}

static void *allocate(int index, size_t bytes);

void lt_fake_freed(lt_ctx *c, lt_storage *s, size_t capacity) {
  if (lt_device_table(c, s->device)->alloc != allocate) return;
  if (lt_order_done(s)) {
    memset(s->data, 0xff, capacity);
    return;
  }
  lt_stream *on = s->write.stream != NULL ? s->write.stream : s->reads[0].stream;
  if (!lt_order_before(c, s, on, true)) return;
  task *t = task_new(c, on, run_fill);
  if (t == NULL) return;
  t->dst = s->data;
  t->bytes = capacity;
  enter();
  append(on, t);
  lt_order_after(s, (lt_event){on, on->issued}, true);
  leave(true);
}

/* Streams and events. */

static lt_stream *stream_new(lt_ctx *c, int index, int priority) {
  (void)priority;
  if (!is_index(index)) {
    lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
    return NULL;
  }
  lt_stream *s = calloc(1, sizeof *s);
  enter();
  if (fake.own == NULL) fake.own = lt_ctx_new(c->registry, NULL);
  bool room = s != NULL && fake.n_streams < STREAMS;
  if (room) {
    s->index = index;
    fake.streams[fake.n_streams++] = s;
  }
  leave(true);
  if (room) return s;
  free(s);
  lt_fail(c, LT_EMEMORY, "fake: no room for one more stream");
  return NULL;
}

static void *stream_native(lt_stream *s) { return s; }

static bool event_record(lt_ctx *c, lt_stream *s, lt_event *out) {
  (void)c;
  enter();
  *out = (lt_event){s, s->issued};
  return leave(true);
}

/* Who asks again and again gets there in the end, a task at a time. */
static lt_progress event_done(lt_event event) {
  lt_stream *s = event.stream;
  enter();
  if (s->done < event.position && ++s->asked >= PATIENCE && fake.own != NULL) {
    run_until(fake.own, s, s->done + 1);
    lt_take_failure(fake.own, NULL);
  }
  if (s->done >= event.position) s->asked = 0;
  return leave(event.stream->done >= event.position) ? LT_DONE : LT_PENDING;
}

static bool event_wait(lt_ctx *c, lt_event event) {
  enter();
  wait_for(c, event);
  return leave(lt_ok(c));
}

static bool stream_wait(lt_ctx *c, lt_stream *s, lt_event event) {
  task *t = task_new(c, s, NULL);
  if (t == NULL) return false;
  t->after = event;
  enter();
  return leave(append(s, t));
}

static bool synchronize(lt_ctx *c, int index) {
  if (!is_index(index)) return lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
  enter();
  bool last = others_first(), waits = false;
  for (int k = 0; k < fake.n_streams; k++) {
    lt_stream *s = fake.streams[last ? fake.n_streams - 1 - k : k];
    waits = waits || (s->index == index && s->done < s->issued);
    if (s->index == index) run_until(c, s, s->issued);
  }
  fake.counts.waits += waits;
  return leave(lt_ok(c));
}

static bool take_error(lt_ctx *c, int index, lt_device_error *out) {
  enter();
  for (int k = 0; k < fake.n_words; k++) {
    if (fake.words[k].root != c->root || fake.words[k].index != index) continue;
    *out = fake.words[k].error;
    fake.words[k] = fake.words[--fake.n_words];
    return leave(true);
  }
  return leave(false);
}

/* Memory. */

static void *allocate(int index, size_t bytes) {
  if (!is_index(index) || bytes > (size_t)ROOM) return NULL;
  size_t room = (bytes + 63) / 64 * 64;
  void *p = aligned_alloc(64, room);
  if (p != NULL) memset(p, 0xff, room);
  enter();
  fake.counts.allocations++;
  if (p != NULL) fake.held[index] += (int64_t)bytes;
  leave(true);
  return p;
}

/* While a kernel runs, queued work may still use it: it is lost, which needs a specs' memory limit
   to happen. */
static void release(int index, void *ptr, size_t bytes) {
  enter();
  bool unused = !fake.in_kernel;
  fake.held[index] -= (int64_t)bytes;
  leave(true);
  if (unused) free(ptr);
}

static void *host_alloc(size_t bytes) {
  pinned *p = malloc(sizeof *p);
  char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (p == NULL || memory == NULL) {
    free(p);
    free(memory);
    return NULL;
  }
  enter();
  *p = (pinned){fake.pins, memory, bytes};
  fake.pins = p;
  leave(true);
  return memory;
}

static void host_free(void *memory, size_t bytes) {
  (void)bytes;
  enter();
  for (pinned **link = &fake.pins; *link != NULL; link = &(*link)->next) {
    pinned *p = *link;
    if (p->memory != memory) continue;
    *link = p->next;
    free(p);
    break;
  }
  leave(true);
  free(memory);
}

static bool memory_info(int index, int64_t *free_bytes, int64_t *total) {
  if (!is_index(index)) return false;
  enter();
  *total = ROOM;
  *free_bytes = ROOM - fake.held[index];
  return leave(true);
}

static int count(void) { return DEVICES; }

/* LT_FAKE_FORKS=0: as GPUs, it is lost to a child of a process that has used it. */
static bool survives_forks(void) {
  static const char name[] = "LT_FAKE_FORKS"; /* for specs alone: no page names it */
  const char *text = getenv(name);
  return text == NULL || strcmp(text, "0") != 0;
}

/* What ltrain should not have let through. */
static bool is_lost(lt_ctx *c) {
  static pid_t owner;
  if (owner == 0) owner = getpid();
  if (owner == getpid() || survives_forks()) return false;
  return !lt_fail(c, LT_EDEVICE, "fake: another process's");
}

static bool open_device(lt_ctx *c, int index) {
  if (!is_index(index)) return lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
  enter();
  return leave(!is_lost(c));
}

const lt_device_ops *lt_fake_ops(const lt_device_ops *cpu) {
  static lt_device_ops ops;
  fake.cpu = cpu;
  ops = (lt_device_ops){
      .size = sizeof ops, .version = LT_BACKEND_VERSION, .name = "fake", .for_specs = true,
      .op_hash = cpu->op_hash, .forks = survives_forks(), .kernels = cpu->kernels, .count = count,
      .open = open_device, .layout = cpu->layout, .alloc = allocate, .free = release,
      .memory_info = memory_info,
      .host_alloc = host_alloc, .host_free = host_free, .stream_new = stream_new,
      .stream_native = stream_native, .event_record = event_record, .event_done = event_done,
      .event_wait = event_wait, .stream_wait = stream_wait, .synchronize = synchronize,
      .copy = copy, .launch = launch, .take_error = take_error, .combine = combine,
      .divide = divide, .scale = scale};
  return &ops;
}

lt_fake_counts lt_fake_count(void) {
  enter();
  lt_fake_counts n = fake.counts;
  for (int k = 0; k < fake.n_streams; k++)
    n.pending += (int64_t)(fake.streams[k]->issued - fake.streams[k]->done);
  leave(true);
  return n;
}

void lt_fake_set_order(lt_fake_order order) {
  enter();
  fake.order = order;
  leave(true);
}
