/* spec/c/broken_device.c: ten_device.c with one promise broken, that which the variable BROKEN
   names: device_conformance must see each. */
#define lt_backend_open sound_open
#include "ten_device.c"
#undef lt_backend_open

#include <fcntl.h>

LT_API bool lt_backend_open(const lt_host *h, lt_backend *out);

/* ---- waiting ---- */

static bool orders_nothing(lt_ctx *c, lt_stream *s, lt_event e) {
  return (void)c, (void)s, (void)e, true;
}
static bool waits_for_nothing(lt_ctx *c, lt_event e) { return (void)c, (void)e, true; }
static lt_progress is_always_done(lt_event e) { return (void)e, LT_DONE; }
static bool synchronizes_nothing(lt_ctx *c, int index) { return is_index(index) || bad_index(c); }
static bool synchronizes_any(lt_ctx *c, int index) {
  return !is_index(index) || synchronize(c, index);
}
static lt_stream *says_no_reason(lt_ctx *c, int index, int priority) {
  return is_index(index) ? stream_new(c, index, priority) : NULL;
}
static bool has_one_position(lt_ctx *c, lt_stream *s, lt_event *out) {
  bool ok = event_record(c, s, out) && event_wait(c, *out);
  out->position = 0;
  return ok;
}

/* The work of a kernel before all that its stream waits for. */
static bool launches_at_once(lt_ctx *c, int index, lt_stream *s, lt_kernel kernel,
                             const lt_call *call) {
  uint64_t issued = s->issued;
  if (!launch(c, index, s, kernel, call)) return false;
  enter();
  for (const task *t = s->first; t != NULL && s->issued > issued; t = t->next)
    if (t->next == NULL && t->run != NULL) t->run(t);
  leave();
  return true;
}

static void aborts(void) {
  for (const lt_stream *s = streams; s != NULL; s = s->next)
    if (s->first != NULL) abort();
}

/* ---- counting ---- */

static int counts_one_more(void) { return DEVICES + 1; }
static int counts_as_it_likes(void) {
  static int calls;
  return ++calls % 2 == 1 ? DEVICES : 1;
}
static int opens_a_file(void) {
  static int file;
  if (file == 0) file = open("/dev/null", O_RDONLY);
  return DEVICES;
}
static pid_t first_user;
static int starts(void) {
  if (first_user == 0) first_user = getpid();
  return DEVICES;
}
static bool was_forked(lt_ctx *c, int index) {
  (void)index;
  return first_user == getpid() || host->fail(c, LT_EDEVICE, "started before the fork");
}
static bool opens_any(lt_ctx *c, int index) { return (void)c, (void)index, true; }

/* ---- memory ---- */

static void *allocates_less(int index, size_t bytes) {
  char *data = allocate(index, bytes);
  if (data != NULL && bytes == 65537) used -= 65536; /* the next block begins within this one */
  return data;
}
static void *allocates_odd(int index, size_t bytes) {
  char *data = allocate(index, bytes + 8);
  return data != NULL ? data + 8 : NULL;
}
static void frees_nothing(int index, void *data, size_t bytes) {
  (void)index, (void)data, (void)bytes;
}
static void frees_odd(int index, void *data, size_t bytes) {
  release(index, (char *)data - 8, bytes + 8);
}
static bool knows_nothing(int index, int64_t *free_bytes, int64_t *total) {
  *free_bytes = *total = (int64_t)ROOM;
  return is_index(index);
}
static void *pins_one_block(size_t bytes) {
  static void *only;
  if (only == NULL) only = host_alloc((size_t)16 << 20);
  return bytes <= (size_t)16 << 20 ? only : NULL;
}
static void unpins_nothing(void *data, size_t bytes) { (void)data, (void)bytes; }

/* ---- copies ---- */

static bool stages_nothing(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                           const void *src, size_t bytes, lt_dtype dtype) {
  if (way != LT_TO_DEVICE || !is_index(index)) return copy(c, s, way, index, dst, from, src, bytes, dtype);
  return append(c, s, &(task){.run = run_copy, .dst = dst, .src = src, .bytes = bytes});
}
static bool returns_early(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                          const void *src, size_t bytes, lt_dtype dtype) {
  if (way != LT_TO_HOST || !is_index(index)) return copy(c, s, way, index, dst, from, src, bytes, dtype);
  return append(c, s, &(task){.run = run_copy, .dst = dst, .src = src, .bytes = bytes});
}
static bool copies_less_within(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                               const void *src, size_t bytes, lt_dtype dtype) {
  return copy(c, s, way, index, dst, from, src, bytes - (way == LT_WITHIN && bytes > 0),
              dtype);
}
static bool copies_whole_words(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                               const void *src, size_t bytes, lt_dtype dtype) {
  return copy(c, s, way, index, dst, from, src,
              way == LT_TO_DEVICE ? (bytes + 3) / 4 * 4 : bytes, dtype);
}
static bool forgets_peers(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                          const void *src, size_t bytes, lt_dtype dtype) {
  return way == LT_PEER || copy(c, s, way, index, dst, from, src, bytes, dtype);
}

/* What is not the sum of anything. */
static bool combines_nothing(lt_ctx *c, int index, lt_stream *s, void *dst, const void *a,
                             const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  (void)b, (void)reduce;
  return copy(c, s, LT_WITHIN, index, dst, index, a, (size_t)n * host->comm->item_size(dtype), dtype);
}

/* ---- values ---- */

static bool takes_nothing(lt_ctx *c, int index, lt_device_error *out) {
  return (void)c, (void)index, (void)out, false;
}
static bool keeps_its_error(lt_ctx *c, int index, lt_device_error *out) {
  bool any = take_error(c, index, out);
  if (any)
    note(&(task){.index = index, .error = *out, .root = host->root(c)}, out->value, out->limit);
  return any;
}
static bool forgets_the_line(lt_ctx *c, int index, lt_device_error *out) {
  bool any = take_error(c, index, out);
  out->line = 0;
  return any;
}

static const lt_host *sound;
static bool sees_no_strides(lt_ctx *c, lt_tensor *t, lt_view *out) {
  bool ok = sound->view(c, t, out);
  int64_t stride = 1;
  for (int d = out->ndim - 1; d >= 0; d--) out->stride[d] = stride, stride *= out->size[d];
  return ok;
}
static double almost(double x, double y) {
  static int calls;
  return x + y + (++calls % 2) * 1e-6;
}
static bool adds_almost(lt_ctx *c, const lt_call *call) { return binary(c, call, almost); }
static bool takes_any(int op, lt_dtype dtype) { return (void)op, dtype != LT_BF16; }

static const char *what;
static bool is(const char *name) { return strcmp(what, name) == 0; }

static void break_waiting(void) {
  if (is("stream_wait")) ops.stream_wait = orders_nothing;
  if (is("event_wait")) ops.event_wait = waits_for_nothing;
  if (is("event_done")) ops.event_done = is_always_done;
  if (is("event_record")) ops.event_record = has_one_position;
  if (is("synchronize")) ops.synchronize = synchronizes_nothing;
  if (is("synchronize_index")) ops.synchronize = synchronizes_any;
  if (is("stream_new_reason")) ops.stream_new = says_no_reason;
  if (is("launch")) ops.launch = launches_at_once;
  if (is("exit")) atexit(aborts);
}

static void break_counting(void) {
  if (is("count")) ops.count = counts_one_more;
  if (is("count_again")) ops.count = counts_as_it_likes;
  if (is("count_file")) ops.count = opens_a_file;
  if (is("count_starts")) ops.count = starts, ops.open = was_forked;
  if (is("open_index")) ops.open = opens_any;
}

static void break_memory(void) {
  if (is("alloc_overlap")) ops.alloc = allocates_less;
  if (is("alloc_odd")) ops.alloc = allocates_odd, ops.free = frees_odd;
  if (is("free")) ops.free = frees_nothing;
  if (is("memory_info")) ops.memory_info = knows_nothing;
  if (is("host_alloc")) ops.host_alloc = pins_one_block, ops.host_free = unpins_nothing;
  if (is("copy_unstaged")) ops.copy = stages_nothing;
  if (is("copy_early")) ops.copy = returns_early;
  if (is("copy_less")) ops.copy = copies_less_within;
  if (is("copy_more")) ops.copy = copies_whole_words;
  if (is("combine")) ops.combine = combines_nothing;
  if (is("copy_peer")) ops.copy = forgets_peers;
}

static void break_values(void) {
  static lt_host strideless;
  static lt_kernel kernels[4096];
  if (is("error_lost")) ops.take_error = takes_nothing;
  if (is("error_stays")) ops.take_error = keeps_its_error;
  if (is("error_line")) ops.take_error = forgets_the_line;
  if (is("supports")) ops.supports = takes_any;
  if (is("kernel_strides")) {
    sound = host;
    strideless = *host;
    strideless.view = sees_no_strides;
    host = &strideless;
  }
  if (is("kernel_value") || is("kernel_again")) {
    memcpy(kernels, ops.kernels, (size_t)host->n_ops * sizeof *kernels);
    kernels[host->op("add")] = is("kernel_value") ? mul : adds_almost;
    ops.kernels = kernels;
  }
}

bool lt_backend_open(const lt_host *h, lt_backend *out) {
  what = getenv("BROKEN");
  if (what == NULL) what = "";
  if (!sound_open(h, out)) return false;
  break_waiting();
  break_counting();
  break_memory();
  break_values();
  return true;
}
