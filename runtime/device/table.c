/* runtime/device/table.c: the process's table of device kinds, and their names.

   Kinds are added at the start (registry.c) and when a script first names a backend that has one.
   Nothing is ever removed or moved: a device that a script knows stays valid. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/plugin.h"
#include "device/ctx_devices.h"

const lt_device_ops *lt_device_kinds[LT_DEVICE_KINDS];
static atomic_int n_kinds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int lt_device_kind_count(void) { return atomic_load_explicit(&n_kinds, memory_order_acquire); }

/* The kind of a name or an alias of `length` bytes; -1: none. */
static int find(const char *name, size_t length) {
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

static bool append(const lt_device_ops *ops, char *why, size_t size) {
  int n = lt_device_kind_count();
  const char *taken = ops->name;
  int k = find(taken, strlen(taken));
  if (k < 0 && ops->alias != NULL) k = find(taken = ops->alias, strlen(ops->alias));
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

int lt_device_count(const lt_device_ops *ops) {
  int n = ops->count();
  return n < LT_MAX_DEVICES ? n : LT_MAX_DEVICES;
}

/* "cpu, pigeon": what a user may name. */
static const char *list_devices(char *buffer, size_t size) {
  size_t at = 0;
  buffer[0] = 0;
  for (int k = 0; k < lt_device_kind_count() && at < size; k++)
    if (lt_device_kinds[k]->count() > 0 && !lt_device_kinds[k]->for_specs)
      at += (size_t)snprintf(buffer + at, size - at, "%s%s", at > 0 ? ", " : "",
                             lt_device_kinds[k]->name);
  return buffer;
}

/* As find, and opens the backend of that name when there is one. */
static int find_or_open(lt_ctx *c, const char *name, size_t length) {
  int k = find(name, length);
  return k < 0 && lt_device_backend(c, name, length) ? find(name, length) : k;
}

bool lt_device_named(lt_ctx *c, const char *text) {
  size_t length = strcspn(text, ":");
  return find(text, length) >= 0 || lt_device_known(text, length) ||
         lt_device_has_file(text, length) || find_or_open(c, text, length) >= 0;
}

static bool fail_count(lt_ctx *c, const char *text, const lt_device_ops *ops) {
  char why[LT_BACKEND_TEXT] = "";
  if (ops->available != NULL && !ops->available(why, sizeof why))
    return lt_fail(c, LT_EDEVICE, "%s: %s", ops->name, why);
  if (ops->count() > LT_MAX_DEVICES)
    return lt_fail(c, LT_EDEVICE, "device: no %s (%s has %d, of which %d can be used)", text,
                   ops->name, ops->count(), LT_MAX_DEVICES);
  return lt_fail(c, LT_EDEVICE, "device: no %s (%s has %d)", text, ops->name, ops->count());
}

static bool fail_unknown(lt_ctx *c, const char *text, size_t length) {
  char known[128];
  list_devices(known, sizeof known);
  if (!lt_ok(c)) return false; /* its backend could not be opened */
  if (lt_device_known(text, length))
    return lt_fail(c, LT_EDEVICE, "%.*s: not in this build; devices here: %s", (int)length, text,
                   known);
  return lt_fail(c, LT_EDEVICE, "device: unknown device '%s'; devices here: %s", text, known);
}

int lt_device_current(const lt_ctx *c, int kind) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL ? st->current[kind] : 0;
}

bool lt_device_parse(lt_ctx *c, const char *text, lt_device *out) {
  size_t length = strcspn(text, ":");
  char *end = NULL;
  long index = text[length] == ':' ? strtol(text + length + 1, &end, 10) : 0;
  bool numbered = end != NULL;
  if (end != NULL && (end == text + length + 1 || *end != 0)) index = -1;
  int k = find_or_open(c, text, length);
  if (k < 0) return fail_unknown(c, text, length);
  const lt_device_ops *ops = lt_device_kinds[k];
  if (!numbered) index = lt_device_current(c, k);
  if (index < 0 || index >= lt_device_count(ops)) return fail_count(c, text, ops);
  *out = (lt_device){(int16_t)k, (int16_t)index};
  return true;
}

const char *lt_device_names(char *buffer, size_t size) {
  list_devices(buffer, size);
  for (int k = 0; lt_devices_known[k] != NULL; k++) {
    size_t at = strlen(buffer);
    if (strstr(buffer, lt_devices_known[k]) == NULL)
      snprintf(buffer + at, size - at, ", %s", lt_devices_known[k]);
  }
  return buffer;
}

const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size) {
  const char *name = lt_device_table(c, d)->name;
  if (d.kind == 0)
    snprintf(buffer, size, "%s", name);
  else
    snprintf(buffer, size, "%s:%d", name, d.index);
  return buffer;
}
