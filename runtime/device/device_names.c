/* runtime/device/device_names.c: devices by name ("cuda:1"): opens the backend of a kind that is
   not loaded yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/plugin.h"
#include "device/ctx_devices.h"

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
  int k = lt_device_find(name, length);
  return k < 0 && lt_device_backend(c, name, length) ? lt_device_find(name, length) : k;
}

bool lt_device_named(lt_ctx *c, const char *text) {
  size_t length = strcspn(text, ":");
  return lt_device_find(text, length) >= 0 || lt_device_known(text, length) ||
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
