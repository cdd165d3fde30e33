/* runtime/device/out_of_memory.c: the out-of-memory message: what occupies the device's memory.

   Storages over 1 MiB note the op and the script line that made them, and their shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/script_lines.h"
#include "device/ctx_devices.h"

enum { KINDS = 64, SHOWN = 5, LIST = 1024 };

/* Tensors of one shape that one op made on one line. */
typedef struct made {
  const lt_block *first;
  int64_t bytes, count;
} made;

static bool are_alike(const lt_block *a, const lt_block *b) {
  return a->storage.writer == b->storage.writer && a->storage.line == b->storage.line &&
         (a->shape.ndim < 0 ? b->shape.ndim < 0
                            : a->dtype == b->dtype && lt_shape_equal(a->shape, b->shape));
}

static int compare(const void *a, const void *b) {
  int64_t x = ((const made *)a)->bytes, y = ((const made *)b)->bytes;
  return (x < y) - (x > y);
}

/* Sums by op, line and shape, of the first KINDS of them. A list without a hash: it is made once,
   for an error, where no memory may be asked for. */
static int collect(const lt_pool *p, made *list) {
  int n = 0;
  for (const lt_block *b = p->in_use; b != NULL; b = b->older) {
    int k = 0;
    while (k < n && !are_alike(list[k].first, b)) k++;
    if (k == KINDS) continue;
    if (k == n) list[n++] = (made){.first = b};
    list[k].bytes += (int64_t)b->capacity;
    list[k].count++;
  }
  return n;
}

void lt_device_list_largest(lt_ctx *c, lt_device d, char *out, size_t size) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  lt_pool *p = st != NULL ? st->pools[d.kind][d.index] : NULL;
  made list[KINDS];
  size_t at = 0;
  out[0] = 0;
  if (p == NULL) return;
  lt_pool_drain(c, p);
  int n = collect(p, list);
  qsort(list, (size_t)n, sizeof *list, compare);
  for (int k = 0; k < n && k < SHOWN && at < size; k++) {
    const lt_block *b = list[k].first;
    char line[128] = "", shape[LT_SHAPE_TEXT + 16] = "";
    if (b->storage.line != 0) lt_line_text(c, b->storage.line, line, sizeof line);
    if (b->shape.ndim >= 0)
      snprintf(shape, sizeof shape, " %s %s", LT_SHAPE_STR(b->shape), lt_dtype_name(b->dtype));
    at += (size_t)snprintf(out + at, size - at, "\n  %9.1f MiB  %lld of %s%s%s%s",
                           (double)list[k].bytes / (1 << 20), (long long)list[k].count,
                           b->storage.writer != NULL ? b->storage.writer : "the library", shape,
                           line[0] != 0 ? " at " : "", line);
  }
}

lt_live lt_live_of(const lt_block *b) {
  return (lt_live){.bytes = (int64_t)b->storage.bytes,
                   .id = b->storage.id,
                   .op = b->storage.writer,
                   .line = b->storage.line,
                   .shape = b->shape,
                   .dtype = b->dtype};
}

int64_t lt_device_live(lt_ctx *c, lt_device d, lt_live *out, int64_t n) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  lt_pool *p = st != NULL ? st->pools[d.kind][d.index] : NULL;
  int64_t count = 0;
  if (p == NULL) return 0;
  lt_pool_drain(c, p);
  for (const lt_block *b = p->in_use; b != NULL; b = b->older, count++)
    if (count < n) out[count] = lt_live_of(b);
  return count;
}

static void describe_limits(const lt_pool *p, char *out, size_t size) {
  int64_t most = lt_budget_limit(p), free_bytes, total;
  out[0] = 0;
  if (most > 0)
    snprintf(out, size, ", the limit is %lld", (long long)most);
  else if (p->ops->memory_info != NULL &&
           p->ops->memory_info(p->device.index, &free_bytes, &total))
    snprintf(out, size, ", %lld of the device's %lld bytes are free", (long long)free_bytes,
             (long long)total);
}

bool lt_fail_exhausted(lt_ctx *c, lt_pool *p, size_t bytes) {
  char limits[96], largest[LIST], name[32];
  if (!lt_ok(c)) return false; /* a fault that was found on the way */
  describe_limits(p, limits, sizeof limits);
  lt_device_list_largest(c, p->device, largest, sizeof largest);
  return lt_fail(c, LT_EMEMORY,
                 "%s%sout of memory on %s: %zu bytes requested, %lld bytes in use, %lld bytes "
                 "cached%s%s%s\nwhat helps: smaller batches, with accumulate_grad_batches for the "
                 "same steps%s",
                 lt_op_name(c), lt_op_colon(c), lt_device_text(c, p->device, name, sizeof name),
                 bytes, (long long)p->stats.live_bytes, (long long)p->stats.cached_bytes, limits,
                 largest[0] != 0 ? "\nthe largest tensors in use:" : "", largest,
                 p->ops->host_memory ? ""
                                     : "; precision = 'bf16-mixed'; nn.utils.checkpoint; "
                                       "lt.no_grad where no gradient is wanted");
}

bool lt_fail_device_exhausted(lt_ctx *c, const char *name, int index, const char *text) {
  char largest[LIST] = "";
  int kind = lt_device_find(name, strlen(name));
  if (!lt_ok(c)) return false;
  if (kind >= 0)
    lt_device_list_largest(c, (lt_device){(int16_t)kind, (int16_t)index}, largest, sizeof largest);
  return lt_fail(c, LT_EMEMORY, "%s%s%s%s%s", lt_op_name(c), lt_op_colon(c), text,
                 largest[0] != 0 ? "\nthe largest tensors in use:" : "", largest);
}
