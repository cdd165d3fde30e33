/* runtime/xla/device.c: the device's table: an asynchronous device that records.

   It has one stream: what was recorded first runs first. A position of it is a count of what was
   recorded; it has passed when its graph was cut and what was to be read until then has arrived. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/graph.h"
#include "xla/lowerings.h"
#include "xla/plugin.h"
#include "xla/report.h"

const lt_host *lt_xla_host;

struct lt_stream {
  int index;
};
static lt_stream the_stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void lt_xla_lock(void) { pthread_mutex_lock(&lock); }
void lt_xla_unlock(void) { pthread_mutex_unlock(&lock); }

/* Warnings wait for this: their hook may run Lua, which may use the device. */
static bool unlocked(lt_ctx *c, bool ok) {
  char notes[LT_NOTES][LT_NOTE];
  bool warns = ok && lt_xla_host->root(c) == (const void *)c;
  int n = warns ? lt_report_take(notes) : 0;
  lt_xla_unlock();
  for (int k = 0; k < n; k++) lt_xla_host->warn(c, notes[k]);
  return ok;
}

static bool available(char *why, size_t size) {
  char path[4096];
  return lt_xla_find_plugin(path, sizeof path, why, size);
}

static int count(void) {
  char why[256];
  return available(why, sizeof why) ? 1 : 0;
}

static bool is_there(lt_ctx *c, int index) {
  return index == 0 || lt_xla_host->fail(c, LT_EDEVICE, "xla: there is one device, number 0");
}

static bool open_device(lt_ctx *c, int index) {
  if (!is_there(c, index) || !lt_xla_plugin_open(c)) return false;
  lt_xla_lock();
  lt_xla_error_forget(lt_xla_host->root(c));
  lt_xla_unlock();
  return true;
}

/* What the plugin calls its devices; before it is opened, its file. */
static bool describe(int index, char *text, size_t size) {
  char path[4096], why[256];
  (void)index;
  if (lt_xla_platform()[0] != 0) return snprintf(text, size, "%s", lt_xla_platform()) > 0;
  if (!lt_xla_find_plugin(path, sizeof path, why, sizeof why)) return false;
  const char *name = strrchr(path, '/');
  return snprintf(text, size, "%s", name != NULL ? name + 1 : path) > 0;
}

/* Of the device with the least free memory, of those that this one stands for. */
static bool memory_info(int index, int64_t *free_bytes, int64_t *total) {
  bool known = false;
  for (int k = 0; index == 0 && k < lt_xla_partitions(); k++) {
    pjrt_memory_stats m;
    if (!lt_xla_memory(k, &m) || !m.limit.is_known) return false;
    if (known && m.limit.value - m.in_use >= *free_bytes) continue;
    known = true;
    *free_bytes = m.limit.value - m.in_use;
    *total = m.limit.value;
  }
  return known;
}

static size_t report(char *text, size_t size) {
  lt_xla_lock();
  size_t n = lt_report_text(text, size);
  lt_xla_unlock();
  return n;
}

static void *device_alloc(int index, size_t bytes) {
  if (index != 0) return NULL;
  lt_xla_lock();
  void *p = lt_slot_alloc(bytes);
  lt_xla_unlock();
  return p;
}

static void device_free(int index, void *p, size_t bytes) {
  (void)index;
  (void)bytes;
  lt_xla_lock();
  lt_slot_free(p);
  lt_xla_unlock();
}

/* Memory for reads that need not wait. */
typedef struct host_block {
  struct host_block *next;
  char *at;
  size_t bytes;
} host_block;
static host_block *host_blocks;

static void *host_alloc(size_t bytes) {
  host_block *b = malloc(sizeof *b);
  void *p = malloc(bytes > 0 ? bytes : 1);
  if (b == NULL || p == NULL) {
    free(b);
    free(p);
    return NULL;
  }
  lt_xla_lock();
  *b = (host_block){host_blocks, p, bytes};
  host_blocks = b;
  lt_xla_unlock();
  return p;
}

static void host_free(void *p, size_t bytes) {
  (void)bytes;
  lt_xla_lock();
  for (host_block **b = &host_blocks; *b != NULL; b = &(*b)->next) {
    if ((*b)->at != p) continue;
    host_block *gone = *b;
    *b = gone->next;
    free(gone);
    break;
  }
  lt_xla_unlock();
  free(p);
}

static bool is_pinned(const char *p) {
  for (const host_block *b = host_blocks; b != NULL; b = b->next)
    if (p >= b->at && p < b->at + b->bytes) return true;
  return false;
}

static lt_stream *stream_new(lt_ctx *c, int index, int priority) {
  (void)priority;
  return is_there(c, index) ? &the_stream : NULL;
}

static void *stream_native(lt_stream *stream) { return stream; }

static bool event_record(lt_ctx *c, lt_stream *stream, lt_event *out) {
  (void)c;
  lt_xla_lock();
  *out = (lt_event){stream, lt_xla_graph.recorded};
  return unlocked(c, true);
}

static bool cut_to(lt_ctx *c, uint64_t position) {
  return position <= lt_xla_graph.submitted || lt_xla_cut(c, LT_CUT_WAIT);
}

static lt_progress event_done(lt_event e) {
  lt_xla_lock();
  bool done = e.position <= lt_xla_graph.submitted;
  if (done) lt_xla_reads_finish(NULL, e.position, false);
  for (size_t k = 0; k < lt_xla_graph.reads.n && done; k++)
    done = lt_xla_graph.reads.at[k].position > e.position;
  lt_xla_unlock();
  return done ? LT_DONE : LT_PENDING;
}

static bool submit(lt_ctx *c, lt_event e) {
  lt_xla_lock();
  return unlocked(c, cut_to(c, e.position));
}

static bool event_wait(lt_ctx *c, lt_event e) {
  lt_xla_lock();
  bool ok = cut_to(c, e.position);
  return unlocked(c, lt_xla_reads_finish(c, e.position, true) && ok);
}

static bool stream_wait(lt_ctx *c, lt_stream *stream, lt_event e) {
  (void)c;
  (void)stream;
  (void)e; /* there is one stream */
  return true;
}

static bool synchronize(lt_ctx *c, int index) {
  if (!is_there(c, index)) return false;
  lt_xla_lock();
  bool ok = cut_to(c, lt_xla_graph.recorded);
  return unlocked(c, lt_xla_reads_finish(c, lt_xla_graph.recorded, true) && ok);
}

static bool batch_end(lt_ctx *c, int index) {
  (void)index;
  lt_xla_lock();
  bool ok = lt_xla_cut(c, LT_CUT_BATCH);
  lt_report_batch();
  return unlocked(c, ok);
}

/* Until its end the values of a storage are divided among the plugin's devices. */
static bool shard(lt_ctx *c, int index, void *base) {
  size_t offset;
  if (!is_there(c, index)) return false;
  lt_xla_lock();
  lt_slot *s = lt_slot_at(base, &offset);
  if (s != NULL) s->sharded = true;
  return unlocked(c, s != NULL);
}

/* Leaves go to the devices of from now on. */
static bool spread(lt_ctx *c, int first, int *n) {
  if (!lt_xla_may_partition(c, &first, n) || !lt_xla_cut(c, LT_CUT_WAIT) ||
      !lt_xla_reads_finish(c, lt_xla_graph.recorded, true))
    return false;
  return !lt_xla_partition(first, *n) || lt_slots_spread(c);
}

static bool partition(lt_ctx *c, int index, int first, int *n) {
  if (!is_there(c, index)) return false;
  lt_xla_lock();
  return unlocked(c, spread(c, first, n));
}

static bool to_device(lt_ctx *c, void *dst, const void *src, size_t bytes, int type) {
  size_t offset;
  lt_slot *s = lt_slot_at(dst, &offset);
  if (type == LT_U8 && s != NULL && s->type >= 0) type = s->type; /* bytes of no known type */
  lt_report_uploaded(bytes);
  int64_t n = (int64_t)(bytes / lt_hlo_bytes(type));
  bool sharded = s != NULL && bytes == s->bytes && lt_slot_shards(s, n);
  lt_leaf *leaf = lt_leaf_upload(c, src, type, n, sharded);
  return leaf != NULL && lt_xla_record_upload(c, dst, leaf, bytes, type);
}

static bool to_host(lt_ctx *c, void *dst, const void *src, size_t bytes);

/* A buffer is downloaded whole. A small part of a large one is cut out on the device first. */
static bool is_small_part(const lt_slot *s, size_t offset, size_t bytes) {
  enum { LARGE = 1 << 20 };
  size_t item = s->type >= 0 ? lt_hlo_bytes(s->type) : 0;
  return s->bytes >= LARGE && bytes <= s->bytes / 4 && item > 0 && offset % item == 0 &&
         bytes % item == 0;
}

static bool part_to_host(lt_ctx *c, void *dst, const void *src, size_t bytes, int type) {
  void *part = lt_slot_alloc(bytes);
  if (part == NULL) return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for a read");
  bool ok = lt_xla_record_copy(c, part, src, bytes, type) && to_host(c, dst, part, bytes);
  lt_slot_free(part); /* the read keeps its value */
  return ok;
}

/* A read of a value that waits for the cut, or for the copy itself. */
static bool to_host(lt_ctx *c, void *dst, const void *src, size_t bytes) {
  lt_graph *g = &lt_xla_graph;
  size_t offset;
  lt_slot *s = lt_xla_readable(c, src, &offset);
  if (s == NULL) return false;
  if (is_small_part(s, offset, bytes)) return part_to_host(c, dst, src, bytes, s->type);
  lt_report_read(bytes);
  if (s->leaf == NULL && s->value < 0) { /* never written */
    memset(dst, 0, bytes);
    return true;
  }
  bool widens = lt_hlo_stored(s->type) != s->type;
  lt_read r = {.value = s->leaf == NULL ? s->value : -1, .to = dst, .offset = offset,
               .bytes = bytes, .all = widens ? s->bytes / 2 : s->bytes, .widens = widens,
               .position = ++g->recorded};
  if (s->leaf != NULL) r.leaf = lt_leaf_retain(s->leaf);
  bool stages = widens || bytes < s->bytes;
  if (stages) r.whole = malloc(r.all);
  if ((stages && r.whole == NULL) || !LT_PUSH(g, g->reads, r))
    return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory for a read");
  if (is_pinned(dst)) return true;
  bool ok = lt_xla_cut(c, LT_CUT_READ);
  return lt_xla_reads_finish(c, g->recorded, true) && ok;
}

static bool copy(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
                 const void *src, size_t bytes, lt_dtype dtype) {
  (void)stream;
  if (!is_there(c, index) || (way == LT_PEER && !is_there(c, from))) return false;
  lt_xla_lock();
  if (way == LT_TO_DEVICE) return unlocked(c, to_device(c, dst, src, bytes, (int)dtype));
  if (way == LT_TO_HOST) return unlocked(c, to_host(c, dst, src, bytes));
  return unlocked(c, lt_xla_record_copy(c, dst, src, bytes, (int)dtype));
}

/* All kernels are this one: it records. */
static bool kernel(lt_ctx *c, const lt_call *call) {
  bool takes = true;
  lt_xla_lock();
  bool ok = lt_xla_record(c, call, &takes);
  if (ok && lt_xla_graph.nodes.n >= LT_NODE_BOUND) ok = lt_xla_cut(c, LT_CUT_BOUND);
  ok = unlocked(c, ok);
  return ok && (takes || lt_xla_host->run_on_cpu(c, call));
}

static bool launch(lt_ctx *c, int index, lt_stream *stream, lt_kernel f, const lt_call *call) {
  (void)index;
  (void)stream;
  return f(c, call);
}

static bool take_error(lt_ctx *c, int index, lt_device_error *out) {
  (void)index;
  lt_xla_lock();
  return unlocked(c, lt_xla_take_error(c, out));
}

static bool lacks(lt_dtype dtype) { return lt_hlo_stored((int)dtype) != (int)dtype; }

static const lt_kernel *kernels(const lt_host *host) {
  lt_kernel *table = calloc((size_t)host->n_ops, sizeof *table);
  for (int op = 0; table != NULL && op < host->n_ops; op++)
    if (lt_lower_of(op) != NULL) table[op] = kernel;
  return table;
}

/* Called once, under ltrain's lock. */
LT_API bool lt_backend_open(const lt_host *host, lt_backend *out) {
  static lt_device_ops table;
  out->version = LT_BACKEND_VERSION;
  if (host->version != LT_BACKEND_VERSION) return true; /* ltrain says what differs */
  lt_xla_host = host;
  if (!lt_lowerings_open()) return false;
  table = (lt_device_ops){.size = sizeof table,
                          .version = LT_BACKEND_VERSION,
                          .name = lt_xla_name(),
                          .alias = strcmp(lt_xla_name(), "xla") == 0 ? "tpu" : "xla",
                          .whole_storages = true,
                          .op_hash = host->op_hash,
                          .supports = lt_lowers,
                          .kernels = kernels(host),
                          .count = count,
                          .available = available,
                          .open = open_device,
                          .alloc = device_alloc,
                          .free = device_free,
                          .memory_info = memory_info,
                          .report = report,
                          .describe = describe,
                          .host_alloc = host_alloc,
                          .host_free = host_free,
                          .stream_new = stream_new,
                          .stream_native = stream_native,
                          .event_record = event_record,
                          .event_done = event_done,
                          .submit = submit,
                          .event_wait = event_wait,
                          .stream_wait = stream_wait,
                          .synchronize = synchronize,
                          .copy = copy,
                          .launch = launch,
                          .batch_end = batch_end,
                          .take_error = take_error,
                          .partition = partition,
                          .shard = shard,
                          .lacks = lacks};
  out->device = &table;
  out->about = "PJRT";
  return table.kernels != NULL;
}
