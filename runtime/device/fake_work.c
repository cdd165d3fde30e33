/* runtime/device/fake_work.c: what is issued on the fake device: calls, copies, reductions, and the
   error word that calls leave.

   The fake device stands in for a GPU in specs that run without one: it has streams, events, errors
   that are found later, and memory that the host must not touch, all on the CPU. */
#include <stdlib.h>
#include <string.h>

#include "device/fake_queue.h"

enum { ERRORS = 8 };

/* The error word of a device and root. */
typedef struct word {
  const lt_ctx *root;
  int index;
  lt_device_error error;
} word;
static word words[ERRORS];
static int n_words;

/* The first one counts, as on a GPU, where the word is written only if it is empty. */
static void note_error(const lt_fake_task *t, const lt_failure *f) {
  for (int k = 0; k < n_words; k++)
    if (words[k].root == t->root && words[k].index == t->index) return;
  if (n_words == ERRORS) return;
  words[n_words++] = (word){t->root, t->index, {t->call.op, t->line, f->value, f->limit}};
}

/* Of a recording's tensors only the addresses are known before. */
static void find_values(const lt_fake_task *t) {
  for (int k = 0; k < t->call.n_in + t->call.n_out; k++) {
    const lt_tensor *one = t->call.in[k]; /* results follow */
    if (one != NULL) one->storage->data = lt_fake_values(one->storage->data);
  }
}

/* The kernel runs in the ctx that waits, which may have failed by now, in another op and line. */
static void run_call(lt_ctx *c, lt_fake_task *t) {
  find_values(t);
  static lt_failure before, own;
  const char *op = c->op;
  uint32_t line = c->line;
  bool failed = lt_take_failure(c, &before);
  c->op = t->op;
  c->line = t->line;
  lt_fake_run_kernel(c, t);
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

/* A tensor and its storage as they are at the launch. The script may change or drop a tensor before
   its work runs: a kernel of a GPU has its arguments by value, too. */
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
static bool keep_call(lt_ctx *c, lt_fake_task *t, const lt_call *call) {
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

bool lt_fake_launch(lt_ctx *c, int index, lt_stream *s, lt_kernel kernel, const lt_call *call) {
  if (!lt_assert(c, s->index == index)) return false;
  lt_fake_task *t = lt_fake_task_new(c, s, run_call);
  if (t == NULL || !keep_call(c, t, call)) {
    free(t);
    return false;
  }
  t->kernel = kernel;
  lt_fake_enter();
  lt_fake_counted.launches++;
  return lt_fake_leave(lt_fake_append(s, t));
}

static void run_copy(lt_ctx *c, lt_fake_task *t) {
  (void)c;
  memcpy(lt_fake_values(t->dst), lt_fake_values(t->a), t->bytes);
}

/* Memory that is not pinned behaves as with CUDA's cudaMemcpyAsync: to the device it is read before
   the call returns (staged), from the device the call waits. */
bool lt_fake_copy(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                  const void *src, size_t bytes, lt_dtype dtype) {
  (void)dtype;
  if (!lt_assert(c, s->index == index && (from == index) == (way != LT_PEER))) return false;
  lt_fake_task *t = lt_fake_task_new(c, s, run_copy);
  if (t == NULL) return false;
  lt_fake_enter();
  t->dst = dst;
  t->a = src;
  t->bytes = bytes;
  if (way == LT_TO_DEVICE && (lt_fake_records() || !lt_fake_is_pinned(src))) {
    t->a = t->copies = malloc(bytes);
    if (t->copies == NULL) {
      free(t);
      return lt_fake_leave(lt_fail(c, LT_EMEMORY, "fake: out of memory"));
    }
    memcpy(t->copies, src, bytes);
  }
  lt_fake_counted.copies++;
  lt_fake_append(s, t);
  if (way == LT_TO_HOST && !lt_fake_is_pinned(dst)) lt_fake_wait_for(c, (lt_event){s, s->issued});
  return lt_fake_leave(lt_ok(c));
}

static void run_combine(lt_ctx *c, lt_fake_task *t) {
  lt_device_kinds[0]->combine(c, 0, NULL, lt_fake_values(t->dst), lt_fake_values(t->a),
                              lt_fake_values(t->b), t->n, t->dtype, t->reduce);
}

static void run_divide(lt_ctx *c, lt_fake_task *t) {
  lt_device_kinds[0]->divide(c, 0, NULL, lt_fake_values(t->dst), t->n, t->dtype, (int)t->by);
}

static void run_scale(lt_ctx *c, lt_fake_task *t) {
  lt_device_kinds[0]->scale(c, 0, NULL, lt_fake_values(t->dst), t->n, t->dtype, t->by);
}

/* Queues arithmetic on memory without tensors, which links of collectives use. The numbers are kept
   in the task: the caller's struct is gone when a fake device gets to it. */
static bool reduction(lt_ctx *c, int index, lt_stream *s, lt_fake_task what) {
  if (!lt_assert(c, s->index == index)) return false;
  lt_fake_task *t = lt_fake_task_new(c, s, what.run);
  if (t == NULL) return false;
  t->dst = what.dst;
  t->a = what.a;
  t->b = what.b;
  t->n = what.n;
  t->dtype = what.dtype;
  t->reduce = what.reduce;
  t->by = what.by;
  lt_fake_enter();
  lt_fake_counted.launches++;
  return lt_fake_leave(lt_fake_append(s, t));
}

bool lt_fake_combine(lt_ctx *c, int index, lt_stream *s, void *dst, const void *a, const void *b,
                     int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  return reduction(c, index, s,
                   (lt_fake_task){.run = run_combine,
                                  .dst = dst,
                                  .a = a,
                                  .b = b,
                                  .n = n,
                                  .dtype = dtype,
                                  .reduce = reduce});
}

bool lt_fake_divide(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                    int by) {
  return reduction(
      c, index, s,
      (lt_fake_task){.run = run_divide, .dst = data, .n = n, .dtype = dtype, .by = by});
}

bool lt_fake_scale(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                   double by) {
  return reduction(c, index, s,
                   (lt_fake_task){.run = run_scale, .dst = data, .n = n, .dtype = dtype, .by = by});
}

bool lt_fake_take_error(lt_ctx *c, int index, lt_device_error *out) {
  lt_fake_enter();
  for (int k = 0; k < n_words; k++) {
    if (words[k].root != c->root || words[k].index != index) continue;
    *out = words[k].error;
    words[k] = words[--n_words];
    return lt_fake_leave(true);
  }
  return lt_fake_leave(false);
}
