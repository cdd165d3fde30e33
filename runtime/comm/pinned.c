/* runtime/comm/pinned.c: pinned memory for the bytes of collectives, kept by a ctx for reuse: a
   GPU's library takes milliseconds to allocate it. */
#include "comm/group.h"

enum { SMALLEST = 4096 };

struct lt_pinned {
  lt_pinned *next;
  lt_device device;
  size_t bytes; /* a power of two */
  void *memory;
  lt_event after; /* when the device has done with it */
};

static bool is_free(const lt_pinned *p) {
  return p->after.stream == NULL ||
         lt_device_kinds[p->device.kind]->event_done(p->after) != LT_PENDING;
}

static void release(lt_ctx *c, lt_pinned *p) {
  if (p->memory != NULL) lt_pinned_free(c, p->device, p->memory, p->bytes);
  lt_free(c, p, sizeof *p);
}

static void drop_all(lt_ctx *c, void *slot) {
  for (lt_pinned *p = slot, *next; p != NULL; p = next) {
    next = p->next;
    if (!is_free(p)) lt_device_kinds[p->device.kind]->event_wait(c, p->after);
    release(c, p);
  }
  c->slot[LT_SLOT_COMM] = NULL;
}

static size_t class_of(size_t bytes) {
  size_t class = SMALLEST;
  while (class < bytes) class *= 2;
  return class;
}

lt_pinned *lt_pinned_take(lt_ctx *c, lt_device d, size_t bytes) {
  size_t class = class_of(bytes);
  lt_pinned **link = (lt_pinned **)&c->slot[LT_SLOT_COMM];
  for (; *link != NULL; link = &(*link)->next) {
    lt_pinned *p = *link;
    if (p->bytes != class || p->device.kind != d.kind || !is_free(p)) continue;
    *link = p->next;
    p->device = d;
    return p;
  }
  lt_pinned *p = lt_alloc(c, sizeof *p);
  if (p == NULL) return NULL;
  *p = (lt_pinned){.device = d, .bytes = class, .memory = lt_pinned_new(c, d, class)};
  if (p->memory != NULL) return p;
  release(c, p);
  return NULL;
}

void *lt_pinned_memory(const lt_pinned *p) { return p->memory; }

void lt_pinned_give(lt_ctx *c, lt_pinned *p, lt_event after) {
  p->after = after;
  p->next = c->slot[LT_SLOT_COMM];
  c->slot[LT_SLOT_COMM] = p;
  c->slot_drop[LT_SLOT_COMM] = drop_all;
}
