/* runtime/device/host.c: the functions that ltrain offers to backends: errors, tensors, scratch
   memory, streams, script lines.

   A backend is another shared object, possibly of another build, and must not link against this
   one: it gets this table of function pointers, with its size and version, and calls nothing else.
   Fields are only ever added at the end. */
#include "device/host.h"

#include "base/script_lines.h"
#include "device/ctx_devices.h"
#include "ltrain/version.h"

static void combine(void *dst, const void *a, const void *b, int64_t n, lt_dtype dtype,
                    lt_comm_reduce reduce) {
  lt_device_kinds[0]->combine(NULL, 0, NULL, dst, a, b, n, dtype, reduce);
}

static void scale(void *data, int64_t n, lt_dtype dtype, double by) {
  lt_device_kinds[0]->scale(NULL, 0, NULL, data, n, dtype, by);
}

static const lt_comm_host comm_host = {.size = sizeof comm_host,
                                       .version = LT_COMM_VERSION,
                                       .combine = combine,
                                       .item_size = lt_dtype_size,
                                       .scale = scale};

const lt_comm_host *lt_comm_host_here(void) { return &comm_host; }

static bool host_fail(lt_ctx *c, lt_code code, const char *text) {
  return lt_fail(c, code, "%s%s%s", lt_op_name(c), lt_op_colon(c), text);
}

static void host_log(lt_ctx *c, const char *text) { lt_log(c, LT_INFO, "%s", text); }

static void host_warn(lt_ctx *c, const char *text) { lt_log(c, LT_WARN, "%s", text); }

static bool host_view(lt_ctx *c, lt_tensor *t, lt_view *out) {
  *out = (lt_view){.data = lt_data(t), .dtype = (lt_dtype)t->dtype, .ndim = t->ndim};
  memcpy(out->size, t->size, sizeof out->size);
  memcpy(out->stride, t->stride, sizeof out->stride);
  return lt_ok(c);
}

static void host_place(const lt_tensor *t, lt_storage_place *out) {
  const lt_storage *s = t->storage;
  *out = (lt_storage_place){.base = s->data, .bytes = s->bytes, .offset = t->offset};
}

/* Scratch memory lives until the end of the launch (lt_launch_end), which is before the kernel has
   run: the pool orders its next user after this launch. */
static void *host_scratch(lt_ctx *c, size_t bytes) {
  lt_device_state *st = lt_device_state_of(c);
  if (st == NULL) return NULL;
  lt_launch *now = &st->launch;
  if (now->given != NULL)
    return lt_assert(c, now->n_scratch < now->n_given) ? now->given[now->n_scratch++] : NULL;
  if (!lt_assert(c, now->is_open && now->n_scratch < LT_SCRATCHES)) return NULL;
  lt_storage *s = lt_storage_new(c, now->device, bytes);
  if (s == NULL) return NULL;
  now->scratch[now->n_scratch++] = s;
  bool ordered = lt_order_before(c, s, lt_stream_current(c, now->device), true);
  return ordered ? s->data : NULL;
}

static uint32_t host_line(lt_ctx *c) { return lt_ctx_line(c); }
static uint32_t host_known_line(lt_ctx *c) { return c->line != LT_LINE_LATER ? c->line : 0; }
static void host_line_text(lt_ctx *c, uint32_t line, char *text, size_t size) {
  text[0] = 0;
  if (line != 0) lt_line_text(c, line, text, size);
}

static const void *host_root(lt_ctx *c) { return c->root; }

static lt_matmul_precision host_matmul_precision(lt_ctx *c) {
  return (lt_matmul_precision)c->root->matmul_precision;
}

/* Notes the op and its line in a ring of the last LT_ISSUED launches, for an error that the device
   reports only later. */
bool lt_launch_begin(lt_ctx *c, lt_device d, int op) {
  lt_device_state *st = lt_device_state_of(c);
  if (st == NULL) return false;
  lt_issued *last = &st->issued[st->n_issued++ % LT_ISSUED];
  *last = (lt_issued){d, op, c->line};
  if (c->line == LT_LINE_LATER) c->line_wanted = &last->line;
  st->launch = (lt_launch){.device = d, .is_open = true};
  return true;
}

void lt_launch_end(lt_ctx *c, lt_stream *stream) {
  lt_launch *now = &((lt_device_state *)c->slot[LT_SLOT_DEVICE])->launch;
  now->is_open = false;
  if (now->n_scratch == 0) return;
  lt_event at = {0};
  const lt_device_ops *ops = lt_device_table(c, now->device);
  if (ops->launch != NULL) lt_order_record(c, now->device, stream, &at);
  while (now->n_scratch > 0) {
    lt_storage *s = now->scratch[--now->n_scratch];
    if (at.stream != NULL) lt_order_after(s, at, true);
    lt_storage_release(c, s);
  }
}

static void (*fill_ops)(lt_host *host);

void lt_host_extend(void (*fill)(lt_host *host)) { fill_ops = fill; }

const lt_host *lt_host_here(uint64_t op_hash) {
  static lt_host host; /* backends may keep it; filled with the same each time, under a lock */
  host = (lt_host){.size = sizeof host,
                   .version = LT_BACKEND_VERSION,
                   .ltrain = LT_VERSION,
                   .op_hash = op_hash,
                   .comm = &comm_host,
                   .fail = host_fail,
                   .log = host_log,
                   .warn = host_warn,
                   .view = host_view,
                   .place = host_place,
                   .scratch = host_scratch,
                   .stream = lt_stream_current,
                   .line = host_line,
                   .known_line = host_known_line,
                   .line_text = host_line_text,
                   .matmul_precision = host_matmul_precision,
                   .fault = lt_fail_fault,
                   .exhausted = lt_fail_device_exhausted,
                   .root = host_root};
  if (fill_ops != NULL) fill_ops(&host);
  return &host;
}
