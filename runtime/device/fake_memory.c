/* runtime/device/fake_memory.c: memory of the fake device, and pinned memory beside it. */
#include <stdlib.h>
#include <string.h>

#include "device/fake_queue.h"
#include "device/stream.h"

static const int64_t CAPACITY = (int64_t)16 << 30; /* bytes of a device */
static int64_t allocated[LT_FAKE_DEVICES];

void *lt_fake_alloc(int index, size_t bytes) {
  if (!lt_fake_is_index(index) || bytes > (size_t)CAPACITY) return NULL;
  size_t rounded = (bytes + 63) / 64 * 64;
  bool records = lt_fake_records();
  void *p = records ? NULL : aligned_alloc(64, rounded);
  if (p != NULL) memset(p, 0xff, rounded);
  lt_fake_enter();
  if (records) p = lt_fake_record_alloc(bytes);
  lt_fake_counted.allocations++;
  if (p != NULL) allocated[index] += (int64_t)bytes;
  lt_fake_leave(true);
  return p;
}

/* While a kernel runs, queued work may still use it: it is lost, which needs a specs' memory limit
   to happen. */
void lt_fake_free(int index, void *ptr, size_t bytes) {
  lt_fake_enter();
  bool unused = !lt_fake_in_kernel();
  allocated[index] -= (int64_t)bytes;
  if (lt_fake_records()) {
    lt_fake_record_free(index, ptr);
    unused = false;
  }
  lt_fake_leave(true);
  if (unused) free(ptr);
}

/* Pinned memory, as long as it lives. */
typedef struct pinned {
  struct pinned *next;
  char *memory;
  size_t bytes;
} pinned;
static pinned *pins;

bool lt_fake_is_pinned(const void *memory) {
  const char *at = memory;
  for (const pinned *p = pins; p != NULL; p = p->next)
    if (at >= p->memory && at < p->memory + p->bytes) return true;
  return false;
}

void *lt_fake_host_alloc(size_t bytes) {
  pinned *p = malloc(sizeof *p);
  char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (p == NULL || memory == NULL) {
    free(p);
    free(memory);
    return NULL;
  }
  lt_fake_enter();
  *p = (pinned){pins, memory, bytes};
  pins = p;
  lt_fake_leave(true);
  return memory;
}

void lt_fake_host_free(void *memory, size_t bytes) {
  (void)bytes;
  lt_fake_enter();
  for (pinned **link = &pins; *link != NULL; link = &(*link)->next) {
    pinned *p = *link;
    if (p->memory != memory) continue;
    *link = p->next;
    free(p);
    break;
  }
  lt_fake_leave(true);
  free(memory);
}

bool lt_fake_memory_info(int index, int64_t *free_bytes, int64_t *total) {
  if (!lt_fake_is_index(index)) return false;
  lt_fake_enter();
  *total = CAPACITY;
  *free_bytes = CAPACITY - allocated[index];
  return lt_fake_leave(true);
}

/* Freed memory is filled. */

static void run_fill(lt_ctx *c, lt_fake_task *t) {
  (void)c;
  memset(t->dst, 0xff, t->bytes);
}

void lt_fake_freed(lt_ctx *c, lt_storage *s, size_t capacity) {
  if (lt_device_table(c, s->device)->alloc != lt_fake_alloc) return;
  if (lt_order_done(s)) {
    memset(s->data, 0xff, capacity);
    return;
  }
  lt_stream *on = s->write.stream != NULL ? s->write.stream : s->reads[0].stream;
  if (!lt_order_before(c, s, on, true)) return;
  lt_fake_task *t = lt_fake_task_new(c, on, run_fill);
  if (t == NULL) return;
  t->dst = s->data;
  t->bytes = capacity;
  lt_fake_enter();
  lt_fake_append(on, t);
  lt_order_after(s, (lt_event){on, on->issued}, true);
  lt_fake_leave(true);
}
