/* lua/bind/dist/messages.c: messages between two ranks: a tensor straight from and into its memory,
   another value as bytes, with the tensors in it apart.

   Of a tensor alone there are no bytes, or one, where its gradient is to come back. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"
#include "bind/dist/values.h"
#include "bind/io/json.h"
#include "ops/inplace.h"

/* Without a history, where a link between devices takes it from, else on the host. */
static lt_tensor *sendable(lt_ctx *c, lt_group *g, lt_tensor *t) {
  if (t == NULL || !lt_comm_has_link(c, g, t->storage->device)) return lt_plain_tensor(c, t);
  lt_modes modes = c->modes;
  c->modes.grad = c->modes.autocast = false;
  lt_tensor *plain = lt_contiguous(c, t);
  c->modes = modes;
  return plain;
}

/* Tensors apart from the bytes: they are sent from their own memory without a copy into a text,
   which for a batch or a checkpoint would double the memory. The receiver learns their sizes from
   the bytes, which come first. */
lt_work *lt_message_send(lua_State *L, lt_bind *b, lt_group *g, int to, int value, bool with_grad,
                         const lt_place *at) {
  lua_newtable(L);
  int list = lua_gettop(L);
  lt_json *text = lt_push_text(L, b);
  if (lt_to_tensor(L, b, value) != NULL) {
    lua_pushvalue(L, value);
    lt_raw_seti(L, list, 1);
    if (with_grad) lt_json_char(text, LT_WANTS_GRAD);
  } else {
    lt_value_write_apart(L, b, value, list, text, "send", "value");
  }
  int n = (int)lua_rawlen(L, list);
  lt_tensor **tensors = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *tensors, 0);
  lt_frame frame = lt_begin(L, b, 0);
  for (int k = 0; k < n; k++) {
    lt_raw_geti(L, list, k + 1);
    tensors[k] = sendable(b->c, g, lt_to_tensor(L, b, -1));
    lua_pop(L, 1);
  }
  lt_work *made = lt_ok(b->c)
                      ? lt_comm_send_message(b->c, g, to, text->data, (int64_t)text->size,
                                             tensors, n, lt_origin_of(at))
                      : NULL;
  lt_end_call(L, b, frame);
  lt_json_free(text);
  lua_pop(L, 3);
  return made;
}

/* Whether bytes can come straight into it; else copy_ puts them there, or says why not. */
static bool takes_bytes(lt_ctx *c, const lt_tensor *into) {
  const lt_device_ops *ops = lt_device_table(c, into->storage->device);
  bool by_stream = ops->launch != NULL && !ops->no_data && into->contiguous &&
                   into->storage->away == NULL;
  return (by_stream || lt_is_plain(c, into)) && !lt_requires_grad(into) && into->base == NULL &&
         (into->flags & LT_VIEW_UNSEEN) == 0;
}

lt_work *lt_message_recv(lua_State *L, lt_bind *b, lt_group *g, int from, int index, lt_device on,
                         const lt_place *at) {
  lt_tensor *into = lt_to_tensor(L, b, index);
  if (into != NULL && !takes_bytes(b->c, into)) into = NULL;
  if (into != NULL) on = into->storage->device;
  lt_frame frame = lt_begin(L, b, 0);
  const char *op = b->c->op;
  b->c->op = "recv";
  if (into != NULL && lt_check_view(b->c, into) && lt_is_plain(b->c, into))
    lt_tensor_ptr(b->c, into, LT_WRITE);
  b->c->op = op;
  lt_work *made = lt_ok(b->c)
                      ? lt_comm_recv_message(b->c, g, from, on, into, lt_origin_of(at))
                      : NULL;
  lt_end_call(L, b, frame);
  return made;
}

/* The tensor of a message that begins at this offset of what `lt_value_write_apart` counts. */
static lt_tensor *apart(void *ud, lt_ctx *c, int64_t offset, lt_dtype dtype, int ndim,
                        const int64_t *size) {
  lt_tensor *const *list;
  int n = lt_work_tensors(ud, &list);
  for (int k = 0; k < n && offset >= 0; offset -= lt_value_bytes(list[k++])) {
    bool same = offset == 0 && list[k]->dtype == (int8_t)dtype && list[k]->ndim == ndim &&
                memcmp(list[k]->size, size, (size_t)ndim * sizeof *size) == 0;
    if (same) return lt_frame_add(c, lt_retain(list[k])) ? list[k] : NULL;
  }
  if (lt_ok(c)) lt_fail(c, LT_EIO, "recv: the received bytes are not a message");
  return NULL;
}

bool lt_message_push(lua_State *L, lt_bind *b, lt_work *from, int into) {
  int64_t bytes;
  const char *text = lt_work_text(from, &bytes);
  lt_tensor *const *list;
  bool with_grad = bytes == 1 && text[0] == LT_WANTS_GRAD;
  if (bytes > 0 && !with_grad) {
    lt_value_memory memory = {.bytes = SIZE_MAX / 2, .tensor = apart, .ud = from};
    lt_value_read_apart(L, b, text, (size_t)bytes, &memory, "recv");
    return false;
  }
  if (lt_work_tensors(from, &list) != 1)
    lt_raise(L, b, LT_EIO, "recv: the received bytes are not a message");
  lua_pushvalue(L, into);
  if (lt_to_tensor(L, b, -1) == list[0]) return false;
  lua_pop(L, 1);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_frame_add(b->c, lt_retain(list[0])) ? list[0] : NULL;
  lt_end(L, b, frame, 1, &t);
  return with_grad;
}
