/* runtime/device/device.c: naming devices, and bytes in and out of them. */
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void list_devices(const lt_ctx *c, char *buffer, size_t size) {
  size_t at = 0;
  buffer[0] = 0;
  for (int k = 0; k < c->registry->n_devices && at < size; k++)
    if (c->registry->devices[k]->count() > 0 && !c->registry->devices[k]->for_specs)
      at += (size_t)snprintf(buffer + at, size - at, "%s%s", at > 0 ? ", " : "",
                             c->registry->devices[k]->name);
}

bool lt_device_named(const lt_ctx *c, const char *text) {
  size_t length = strcspn(text, ":");
  if (length == 4 && strncmp(text, "cuda", 4) == 0) return true;
  for (int k = 0; k < c->registry->n_devices; k++) {
    const char *name = c->registry->devices[k]->name;
    if (strlen(name) == length && strncmp(name, text, length) == 0) return true;
  }
  return false;
}

bool lt_device_parse(lt_ctx *c, const char *text, lt_device *out) {
  size_t length = strcspn(text, ":");
  char *end = NULL;
  long index = text[length] == ':' ? strtol(text + length + 1, &end, 10) : 0;
  if (end != NULL && (end == text + length + 1 || *end != 0)) index = -1;
  for (int k = 0; k < c->registry->n_devices; k++) {
    const lt_device_ops *ops = c->registry->devices[k];
    if (strlen(ops->name) != length || strncmp(ops->name, text, length) != 0) continue;
    if (index < 0 || index >= ops->count())
      return lt_fail(c, LT_EDEVICE, "device: no %s (%s has %d)", text, ops->name, ops->count());
    *out = (lt_device){(int16_t)k, (int16_t)index};
    return true;
  }
  char known[128];
  list_devices(c, known, sizeof known);
  if (strncmp(text, "cuda", 4) == 0)
    return lt_fail(c, LT_EDEVICE, "cuda: not in this build; devices here: %s", known);
  return lt_fail(c, LT_EDEVICE, "device: unknown device '%s'; devices here: %s", text, known);
}

const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size) {
  const char *name = lt_device_table(c, d)->name;
  if (d.kind == 0)
    snprintf(buffer, size, "%s", name);
  else
    snprintf(buffer, size, "%s:%d", name, d.index);
  return buffer;
}

lt_tensor *lt_tensor_empty(lt_ctx *c, lt_device d, lt_dtype dtype, int ndim, const int64_t *size) {
  if (!lt_ok(c) || !lt_shape_check(c, ndim, size)) return NULL;
  int64_t n = 1;
  for (int i = 0; i < ndim; i++) n *= size[i];
  lt_storage *s = lt_storage_new(c, d, (size_t)n * lt_dtype_size(dtype));
  if (s == NULL) return NULL;
  lt_tensor *t = lt_tensor_make(c, s, dtype, ndim, size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}

bool lt_tensor_read(lt_ctx *c, lt_tensor *t, void *out) {
  size_t bytes = (size_t)t->numel * lt_item_size(t);
  lt_device d = t->storage->device;
  const lt_device_ops *ops = lt_device_table(c, d);
  if (bytes == 0) return lt_ok(c);
  if (!lt_stream_use(c, t)) return false;
  if (ops->to_host != NULL) return ops->to_host(c, d.index, out, lt_data(t), bytes);
  memcpy(out, lt_data(t), bytes);
  return true;
}

bool lt_tensor_write(lt_ctx *c, lt_tensor *t, const void *from) {
  size_t bytes = (size_t)t->numel * lt_item_size(t);
  lt_device d = t->storage->device;
  const lt_device_ops *ops = lt_device_table(c, d);
  if (bytes == 0) return lt_ok(c);
  if (!lt_stream_use(c, t)) return false;
  if (ops->from_host != NULL) return ops->from_host(c, d.index, lt_data(t), from, bytes);
  memcpy(lt_data(t), from, bytes);
  return true;
}

bool lt_device_copy(lt_ctx *c, lt_tensor *dst, const lt_tensor *src, size_t bytes) {
  lt_device to = dst->storage->device, from = src->storage->device;
  const lt_device_ops *to_ops = lt_device_table(c, to), *from_ops = lt_device_table(c, from);
  if (bytes == 0) return lt_ok(c);
  if (lt_device_equal(to, from) && to_ops->copy != NULL)
    return to_ops->copy(c, to.index, lt_data(dst), lt_data(src), bytes);
  if (from_ops->to_host == NULL && to_ops->from_host == NULL) {
    memcpy(lt_data(dst), lt_data(src), bytes);
    return true;
  }
  if (from_ops->to_host == NULL)
    return to_ops->from_host(c, to.index, lt_data(dst), lt_data(src), bytes);
  if (to_ops->from_host == NULL)
    return from_ops->to_host(c, from.index, lt_data(dst), lt_data(src), bytes);
  void *bounce = lt_alloc(c, bytes);
  bool ok = bounce != NULL && from_ops->to_host(c, from.index, bounce, lt_data(src), bytes) &&
            to_ops->from_host(c, to.index, lt_data(dst), bounce, bytes);
  lt_free(c, bounce, bytes);
  return ok;
}

bool lt_device_synchronize(lt_ctx *c, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  return ops->synchronize == NULL || ops->synchronize(c, d.index);
}

void *lt_tensor_ptr(lt_ctx *c, lt_tensor *t, int access) {
  if (!lt_ok(c)) return NULL;
  const lt_device_ops *ops = lt_device_table(c, t->storage->device);
  if (!ops->host_memory) {
    lt_fail(c, LT_EDEVICE, "pointer: memory of %s is not the host's; copy it with :to('cpu')",
            ops->name);
    return NULL;
  }
  if (!lt_device_synchronize(c, t->storage->device)) return NULL;
  if ((access & LT_WRITE) != 0) lt_storage_bump(c, t->storage);
  return lt_data(t);
}
