/* runtime/device/kinds.c: the process's table of device kinds.

   Kinds are added at the start (registry.c) and when a script first names a backend that has one.
   Nothing is ever removed or moved: a device that a script knows stays valid. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device/ctx_devices.h"
#include "device/device.h"

const lt_device_ops *lt_device_kinds[LT_DEVICE_KINDS];
static atomic_int n_kinds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int lt_device_kind_count(void) { return atomic_load_explicit(&n_kinds, memory_order_acquire); }

int lt_device_find(const char *name, size_t length) {
  int n = lt_device_kind_count();
  for (int k = 0; k < n; k++) {
    const lt_device_ops *ops = lt_device_kinds[k];
    if (strlen(ops->name) == length && strncmp(ops->name, name, length) == 0) return k;
    if (ops->alias != NULL && strlen(ops->alias) == length &&
        strncmp(ops->alias, name, length) == 0)
      return k;
  }
  return -1;
}

/* The first member that must be there and is not; NULL: all are. */
static const char *lacking(const lt_device_ops *o) {
  if (o->name == NULL) return "name";
  if (o->kernels == NULL) return "kernels";
  if (o->count == NULL) return "count";
  if (o->alloc == NULL) return "alloc";
  if (o->free == NULL) return "free";
  if (o->copy == NULL && !o->host_memory) return "copy";
  if ((o->host_alloc == NULL) != (o->host_free == NULL)) return "host_alloc and host_free";
  if (o->launch == NULL) return NULL;
  if (o->copy == NULL) return "copy";
  if (o->stream_new == NULL) return "stream_new";
  if (o->event_record == NULL) return "event_record";
  if (o->event_done == NULL) return "event_done";
  if (o->event_wait == NULL) return "event_wait";
  if (o->stream_wait == NULL) return "stream_wait";
  if (o->synchronize == NULL) return "synchronize";
  return NULL;
}

static bool check(const lt_device_ops *ops, char *why, size_t size) {
  const char *missing = NULL;
  if (ops->version != LT_BACKEND_VERSION || ops->size != sizeof *ops)
    snprintf(why, size, "its devices are of version %u (%u bytes), this ltrain has version %d (%zu "
                        "bytes)", ops->version, ops->size, LT_BACKEND_VERSION, sizeof *ops);
  else if ((missing = lacking(ops)) != NULL)
    snprintf(why, size, "its table of devices lacks `%s`", missing);
  else
    return true;
  return false;
}

/* The pointer is written before the count that publishes it (release; readers acquire), so readers
   take no lock. */
static bool append(const lt_device_ops *ops, char *why, size_t size) {
  int n = lt_device_kind_count();
  const char *taken = ops->name;
  int k = lt_device_find(taken, strlen(taken));
  if (k < 0 && ops->alias != NULL) k = lt_device_find(taken = ops->alias, strlen(ops->alias));
  if (k >= 0 && lt_device_kinds[k] == ops) return true;
  if (k >= 0)
    snprintf(why, size, "there is a device '%s' already", taken);
  else if (n == LT_DEVICE_KINDS)
    snprintf(why, size, "there are %d kinds of devices already", n);
  else {
    lt_device_kinds[n] = ops;
    atomic_store_explicit(&n_kinds, n + 1, memory_order_release);
    return true;
  }
  return false;
}

bool lt_device_add(const lt_device_ops *ops, char *why, size_t size) {
  if (!check(ops, why, size)) return false;
  pthread_mutex_lock(&lock);
  bool ok = append(ops, why, size);
  pthread_mutex_unlock(&lock);
  return ok;
}

const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size) {
  const char *name = lt_device_table(c, d)->name;
  if (d.kind == 0 || lt_device_table(c, d)->no_data)
    snprintf(buffer, size, "%s", name);
  else
    snprintf(buffer, size, "%s:%d", name, d.index);
  return buffer;
}
