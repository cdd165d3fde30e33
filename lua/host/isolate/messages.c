/* lua/host/isolate/messages.c: messages between a host and the worker process of an isolated state.

   Neither side trusts the other's bytes: the worker runs unknown scripts and may be taken over.
   Every number is checked against what is left of the message before it is used; one fault sets
   `bad`, after which all reads give 0 or NULL, so that callers check once at the end
   (lt_wire_is_complete).

   Byte order and sizes are the machine's: both processes are of one build, which the first message
   checks by its version. */
#include "host/isolate/messages.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/system/process.h"
#include "ops/op.h"

/* HEAD: a byte for the kind, eight for the length. A buffer of more than KEPT bytes is not kept
   between messages: the memory of one large tensor would be kept for the life of the state. */
enum { HEAD = 9, KEPT = 1 << 20 };

void lt_wire_free(lt_wire *w) {
  free(w->data);
  *w = (lt_wire){0};
}

/* The place of `n` bytes more; NULL: there is no memory. Doubling makes appending O(n) in total. */
static char *grow(lt_wire *w, size_t n) {
  if (w->bad || n > SIZE_MAX / 4 - w->size) {
    w->bad = true;
    return NULL;
  }
  if (w->size + n > w->capacity) {
    size_t capacity = w->size + n > 2 * w->capacity ? w->size + n : 2 * w->capacity;
    char *data = realloc(w->data, capacity);
    w->bad = data == NULL;
    if (data == NULL) return NULL;
    w->data = data;
    w->capacity = capacity;
  }
  w->size += n;
  return w->data + w->size - n;
}

/* Empty, without what a large message took. */
static void clear(lt_wire *w) {
  if (w->capacity > KEPT) lt_wire_free(w);
  w->size = w->at = 0;
  w->bad = false;
}

void lt_wire_begin(lt_wire *w, char kind) {
  clear(w);
  char *head = grow(w, HEAD);
  if (head != NULL) *head = kind;
}

void lt_wire_put(lt_wire *w, const void *bytes, size_t n) {
  char *to = grow(w, n);
  if (to != NULL && n > 0) memcpy(to, bytes, n);
}

void lt_wire_put_integer(lt_wire *w, int64_t value) { lt_wire_put(w, &value, sizeof value); }

/* The length -1 stands for NULL. A zero byte follows that the length does not count: the receiver
   can use the text in place as a C string. */
void lt_wire_put_text(lt_wire *w, const char *text, size_t n) {
  lt_wire_put_integer(w, text == NULL ? -1 : (int64_t)n);
  if (text == NULL) return;
  lt_wire_put(w, text, n);
  lt_wire_put(w, "", 1);
}

/* The tensor is copied to the host, row-major; strides, history and requires_grad stay behind. */
static bool put_tensor(lt_ctx *c, lt_wire *w, lt_tensor *given) {
  lt_modes modes = c->modes;
  c->modes.grad = false;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = lt_contiguous(c, lt_to_device(c, given, LT_CPU_DEVICE));
  const void *data = t == NULL ? NULL : lt_tensor_ptr(c, t, LT_READ);
  if (t != NULL && lt_ok(c)) {
    lt_wire_put_integer(w, t->dtype);
    lt_wire_put_integer(w, t->ndim);
    lt_wire_put(w, t->size, (size_t)t->ndim * sizeof *t->size);
    lt_wire_put(w, data, (size_t)lt_numel(t) * lt_item_size(t));
  }
  lt_frame_close(c, frame, 0, NULL);
  c->modes = modes;
  return lt_ok(c);
}

void lt_wire_put_value(lua_State *L, lt_bind *b, lt_wire *w, int index, char letter) {
  double number = lua_tonumber(L, index);
  size_t n = 0;
  switch (letter) {
  case 'i':
    lt_wire_put_integer(w, lua_tointeger(L, index));
    break;
  case 'b':
    lt_wire_put_integer(w, lua_toboolean(L, index));
    break;
  case 'd':
    lt_wire_put(w, &number, sizeof number);
    break;
  case 's': {
    const char *text = lua_tolstring(L, index, &n);
    lt_wire_put_text(w, text, n);
    break;
  }
  default:
    if (!put_tensor(b->c, w, lt_to_tensor(L, b, index))) lt_raise_failure(L, b);
  }
  if (w->bad) luaL_error(L, "not enough memory");
}

char lt_wire_kind(const lt_wire *w) { return w->data[0]; }

const char *lt_wire_take(lt_wire *w, size_t n) {
  if (w->bad || n > w->size - w->at) {
    w->bad = true;
    return NULL;
  }
  w->at += n;
  return w->data + w->at - n;
}

int64_t lt_wire_take_integer(lt_wire *w) {
  int64_t value = 0;
  const char *bytes = lt_wire_take(w, sizeof value);
  if (bytes != NULL) memcpy(&value, bytes, sizeof value);
  return value;
}

const char *lt_wire_take_text(lt_wire *w, size_t *n) {
  int64_t length = lt_wire_take_integer(w);
  if (n != NULL) *n = 0;
  if (w->bad || length == -1) return NULL;
  size_t left = w->size - w->at;
  const char *text =
      lt_wire_take(w, length < 0 || (size_t)length >= left ? SIZE_MAX : (size_t)length + 1);
  if (text == NULL || text[length] != 0) {
    w->bad = true;
    return NULL;
  }
  if (n != NULL) *n = (size_t)length;
  return text;
}

/* Reads a tensor; each number may be anything. NULL: it is bad, or the ctx has a failure. The
   product of the sizes is checked for overflow (lt_shape_check) before the bytes are compared with
   the message's. */
static lt_tensor *take_tensor(lt_ctx *c, lt_wire *w) {
  int64_t dtype = lt_wire_take_integer(w), ndim = lt_wire_take_integer(w), size[LT_MAX_DIMS] = {0};
  if (dtype < 0 || dtype >= LT_DTYPE_COUNT || ndim < 0 || ndim > LT_MAX_DIMS) w->bad = true;
  const char *sizes = w->bad ? NULL : lt_wire_take(w, (size_t)ndim * sizeof *size);
  if (sizes == NULL) return NULL;
  memcpy(size, sizes, (size_t)ndim * sizeof *size);
  if (!lt_shape_check(c, (int)ndim, size)) {
    lt_take_failure(c, NULL);
    w->bad = true;
    return NULL;
  }
  size_t bytes = (size_t)lt_shape_numel(lt_shape_of((int)ndim, size)) *
                 lt_dtype_size((lt_dtype)dtype);
  const char *data = lt_wire_take(w, bytes);
  if (data == NULL) return NULL;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, (lt_dtype)dtype, (int)ndim, size);
  unsigned char *to = t == NULL ? NULL : lt_tensor_ptr(c, t, LT_READ | LT_WRITE);
  if (to != NULL && bytes > 0) memcpy(to, data, bytes);
  if (to != NULL && dtype == LT_BOOL) /* kernels rely on 0 and 1 */
    for (size_t k = 0; k < bytes; k++) to[k] = to[k] != 0;
  if (t != NULL) lt_retain(t);
  lt_frame_close(c, frame, 0, NULL);
  return t;
}

static void push_number(lua_State *L, lt_wire *w) {
  double number = 0;
  const char *bytes = lt_wire_take(w, sizeof number);
  if (bytes != NULL) memcpy(&number, bytes, sizeof number);
  lua_pushnumber(L, number);
}

void lt_wire_push_value(lua_State *L, lt_bind *b, lt_wire *w, char letter) {
  luaL_checkstack(L, 2, "too many values");
  size_t n = 0;
  switch (letter) {
  case 'i':
    lua_pushinteger(L, lt_wire_take_integer(w));
    break;
  case 'b':
    lua_pushboolean(L, lt_wire_take_integer(w) != 0);
    break;
  case 'd':
    push_number(L, w);
    break;
  case 's': {
    const char *text = lt_wire_take_text(w, &n);
    if (text == NULL) lua_pushnil(L);
    else lua_pushlstring(L, text, n);
    break;
  }
  default: {
    lt_boxed *box = lt_push_empty(L, b);
    box->t = take_tensor(b->c, w);
    if (!lt_ok(b->c)) lt_raise_failure(L, b);
    if (box->t != NULL) lt_make_unique(L, b, -1);
  }
  }
}

bool lt_wire_is_complete(const lt_wire *w) { return !w->bad && w->at == w->size; }

/* Wait until the descriptor is ready. */
static lt_wire_status await(int fd, short events, double deadline) {
  for (;;) {
    int wait_ms = -1;
    if (deadline > 0) {
      double left = deadline - lt_seconds_now();
      if (left <= 0) return LT_WIRE_LATE;
      wait_ms = left > 1000 ? 1000000 : (int)(left * 1000) + 1;
    }
    struct pollfd one = {.fd = fd, .events = events};
    int n = poll(&one, 1, wait_ms);
    if (n > 0) return LT_WIRE_OK;
    if (n < 0 && errno != EINTR) return LT_WIRE_ENDED;
  }
}

/* Read (events POLLIN) or write all of the bytes. The deadline counts for the message, not for each
   part: a peer that sends a byte now and then gains nothing. MSG_NOSIGNAL: a worker that died must
   not end the host with SIGPIPE. */
static lt_wire_status move(int fd, short events, char *bytes, size_t n, double deadline) {
  for (size_t done = 0; done < n;) {
    lt_wire_status status = await(fd, events, deadline);
    if (status != LT_WIRE_OK) return status;
    ssize_t moved = events == POLLIN ? read(fd, bytes + done, n - done)
                                     : send(fd, bytes + done, n - done,
                                            MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved > 0) done += (size_t)moved;
    else if (moved == 0 || (errno != EINTR && errno != EAGAIN)) return LT_WIRE_ENDED;
  }
  return LT_WIRE_OK;
}

lt_wire_status lt_wire_send(int fd, lt_wire *w, double deadline) {
  if (w->bad) return LT_WIRE_NO_MEMORY;
  uint64_t length = w->size - HEAD;
  memcpy(w->data + 1, &length, sizeof length);
  return move(fd, POLLOUT, w->data, w->size, deadline);
}

/* `most` bounds what the host allocates for a worker: without it a length of 2^60 would be
   tried. */
lt_wire_status lt_wire_receive(int fd, lt_wire *w, size_t most, double deadline) {
  uint64_t length;
  clear(w);
  char *head = grow(w, HEAD);
  if (head == NULL) return LT_WIRE_NO_MEMORY;
  lt_wire_status status = move(fd, POLLIN, head, HEAD, deadline);
  if (status != LT_WIRE_OK) return status;
  w->at = HEAD;
  memcpy(&length, head + 1, sizeof length);
  if (length > most) return LT_WIRE_INVALID;
  char *bytes = grow(w, (size_t)length);
  if (bytes == NULL) return LT_WIRE_NO_MEMORY;
  return move(fd, POLLIN, bytes, (size_t)length, deadline);
}
