/* lua/bind/ops/pinned.c: tensors of the CPU in pinned memory, from which a GPU copies by itself. */
#include "bind/ops/pinned.h"

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/values.h"
#include "device/device.h"

/* The device whose kind pins: one that is in use, else a GPU. */
static lt_device pinning_device(lua_State *L, lt_bind *b) {
  lt_device d = lt_pinned_device(b->c);
  if (d.kind != 0) return d;
  lt_failure f;
  if (lt_device_parse(b->c, "gpu", &d) && lt_device_open(b->c, d)) return d;
  lt_take_failure(b->c, &f);
  lt_raise(L, b, LT_EDEVICE, "pin_memory: there is no device to pin memory for: %s", f.text);
}

static lt_tensor *pinned(lt_ctx *c, lt_tensor *x, lt_device d) {
  x = lt_contiguous(c, lt_detach(c, x));
  if (x == NULL || !lt_check_data(c, "pin_memory", x)) return NULL;
  size_t bytes = x != NULL ? (size_t)x->numel * lt_item_size(x) : 0;
  lt_storage *s = x != NULL ? lt_pinned_storage(c, d, bytes) : NULL;
  if (s == NULL) return NULL;
  memcpy(s->data, lt_data(x), bytes);
  lt_tensor *t = lt_tensor_make(c, s, (lt_dtype)x->dtype, x->ndim, x->size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}

/* x:pin_memory() -> a copy in pinned memory; x itself when it is there already */
int lt_pin_memory(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "pin_memory");
  if (!lt_device_equal(x->storage->device, LT_CPU_DEVICE))
    lt_raise(L, b, LT_EDEVICE, "pin_memory: only tensors of the cpu can be pinned, this one is on "
             "%s", lt_device_text(b->c, x->storage->device, (char[64]){0}, 64));
  lua_settop(L, 1);
  if (lt_storage_is_pinned(x->storage)) return 1;
  lt_device d = pinning_device(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = pinned(b->c, x, d);
  return lt_end(L, b, frame, 1, &t);
}

/* x:is_pinned() -> whether its memory is pinned */
int lt_is_pinned(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushboolean(L, lt_storage_is_pinned(lt_check_tensor(L, b, 1, "is_pinned")->storage));
  return 1;
}
