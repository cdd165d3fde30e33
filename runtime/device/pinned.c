/* runtime/device/pinned.c: pinned host memory, kept for reuse by the whole process: a GPU's library
   takes milliseconds to allocate it.

   Any thread takes and gives. What was given back is taken again when the device has done with it.
   A piece is a storage of the host, too, whose reads are copies of devices. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/ctx_devices.h"

enum { SMALLEST = 4096 };

struct lt_pinned {
  lt_storage storage; /* first: a pinned storage is its piece */
  lt_pinned *next;    /* idle */
  lt_pinned *older;   /* of all */
  lt_device device; /* whose kind can copy from it */
  size_t bytes;     /* in eighths of a power of two */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lt_pinned *idle, *newest;

static const lt_device_ops *ops_of(const lt_pinned *p) { return lt_device_kinds[p->device.kind]; }

/* Copies read the piece after it was given back: until these are done it must not be written. */
static bool is_done(const lt_pinned *p) {
  for (int k = 0; k < LT_READERS; k++)
    if (p->storage.reads[k].stream != NULL &&
        ops_of(p)->event_done(p->storage.reads[k]) != LT_DONE)
      return false;
  return true;
}

/* Eighths of a power of two waste at most an eighth, and sizes of batches that vary a little meet
   in one class. */
static size_t class_of(size_t bytes) {
  if (bytes <= SMALLEST) return SMALLEST;
  size_t step = ((size_t)1 << (63 - __builtin_clzll(bytes))) / 8;
  return (bytes + step - 1) / step * step;
}

static lt_pinned *take_idle(lt_device d, size_t class) {
  lt_pinned *found = NULL;
  pthread_mutex_lock(&lock);
  for (lt_pinned **link = &idle; *link != NULL && found == NULL; link = &(*link)->next) {
    lt_pinned *p = *link;
    if (p->bytes != class || p->device.kind != d.kind || !is_done(p)) continue;
    *link = p->next;
    found = p;
    break;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* A thread that has not used the device yet must not make it use another one. */
static void *allocate(lt_ctx *c, lt_device d, size_t bytes) {
  const lt_device_ops *ops = lt_device_table(c, d);
  if (ops->host_alloc == NULL) return malloc(bytes);
  return ops->open == NULL || ops->open(c, d.index) ? ops->host_alloc(bytes) : NULL;
}

/* Under the lock. */
static void destroy(lt_pinned *p) {
  lt_pinned **link = &newest;
  while (*link != p) link = &(*link)->older;
  *link = p->older;
  if (ops_of(p)->host_free != NULL)
    ops_of(p)->host_free(p->storage.data, p->bytes);
  else
    free(p->storage.data);
  free(p);
}

static lt_pinned *make(lt_ctx *c, lt_device d, size_t class) {
  lt_pinned *p = calloc(1, sizeof *p);
  void *memory = p != NULL ? allocate(c, d, class) : NULL;
  if (memory == NULL) {
    free(p);
    if (lt_ok(c))
      lt_fail(c, LT_EMEMORY, "%s%sout of memory: %zu bytes of pinned host memory", lt_op_name(c),
              lt_op_colon(c), class);
    return NULL;
  }
  p->bytes = class;
  p->storage.data = memory;
  pthread_mutex_lock(&lock);
  p->older = newest;
  newest = p;
  pthread_mutex_unlock(&lock);
  return p;
}

lt_pinned *lt_pinned_take(lt_ctx *c, lt_device d, size_t bytes) {
  size_t class = class_of(bytes);
  lt_pinned *p = take_idle(d, class);
  if (p == NULL) p = make(c, d, class);
  if (p == NULL) return NULL;
  memset(p->storage.reads, 0, sizeof p->storage.reads);
  p->device = d;
  return p;
}

void *lt_pinned_memory(const lt_pinned *p) { return p->storage.data; }

static void keep(lt_pinned *p) {
  pthread_mutex_lock(&lock);
  p->next = idle;
  idle = p;
  pthread_mutex_unlock(&lock);
}

void lt_pinned_give(lt_pinned *p, lt_event after) {
  p->storage.reads[0] = after;
  keep(p);
}

static void drop(lt_ctx *c, lt_storage *s) {
  (void)c;
  keep((lt_pinned *)s);
}

/* The host writes into it without a wait: take_idle has chosen a piece whose copies are done. */
lt_storage *lt_pinned_storage(lt_ctx *c, lt_device d, size_t bytes) {
  lt_pinned *p = lt_pinned_take(c, d, bytes);
  if (p == NULL) return NULL;
  void *memory = p->storage.data;
  memset(&p->storage, 0, sizeof p->storage);
  p->storage.data = memory;
  p->storage.bytes = bytes;
  p->storage.drop = drop;
  lt_storage_init(c, &p->storage);
  return &p->storage;
}

bool lt_storage_is_pinned(const lt_storage *s) { return s->drop == drop; }

/* Few pieces: batches on their way, and results. */
bool lt_pinned_has(const void *memory) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const lt_pinned *p = newest; p != NULL && !found; p = p->older)
    found = (uintptr_t)memory - (uintptr_t)p->storage.data < p->bytes;
  pthread_mutex_unlock(&lock);
  return found;
}

/* Where more streams read it than are kept apart the host waits for the last one. */
bool lt_pinned_read(lt_ctx *c, lt_storage *s, lt_event at) {
  for (int k = 0; k < LT_READERS; k++)
    if (s->reads[k].stream == NULL || s->reads[k].stream == at.stream) {
      s->reads[k] = at;
      return true;
    }
  return ops_of((const lt_pinned *)s)->event_wait(c, at);
}

lt_device lt_pinned_device(const lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  for (int k = 0; st != NULL && k < st->n_open; k++)
    if (st->open[k]->ops->host_alloc != NULL) return st->open[k]->device;
  return LT_CPU_DEVICE;
}

void lt_pinned_trim(void) {
  pthread_mutex_lock(&lock);
  for (lt_pinned **link = &idle; *link != NULL;) {
    lt_pinned *p = *link;
    if (!is_done(p)) {
      link = &p->next;
      continue;
    }
    *link = p->next;
    destroy(p);
  }
  pthread_mutex_unlock(&lock);
}
