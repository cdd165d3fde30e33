/* lua/bind/ops/hash.c: hashes of lists of tensors and plain values.

   Two hashes for two uses. runtime.hash compares ranks within a run: 64 bits without cryptographic
   strength, computed where the data are, so that a GPU sends some numbers and not its memory.
   SHA-256 (FIPS 180-4) identifies files and checkpoints between programs, on the host. */
#include "base/hash.h"
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"

#include <string.h>

#include "base/sha256.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "ops/checksum.h"

/* What takes the parts of a list, in order. */
typedef struct sink {
  void (*tensor)(struct sink *to, const lt_tensor *t, const void *bytes, size_t n);
  lt_tensor **on_device; /* those whose bytes their device hashes, after the others; NULL: none */
  int n_on_device;
  uint64_t h;
  lt_sha256 sha;
} sink;

/* Hands the bytes of `t`, row-major and on the host, to the sink; false with a failure. One tensor
   at a time is on the host: the frame that holds the copy closes before the next is fetched. */
static bool take_tensor(lt_ctx *c, lt_tensor *t, sink *to) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *host = lt_contiguous(c, lt_to_device(c, t, LT_CPU_DEVICE));
  const void *bytes = host != NULL ? lt_tensor_ptr(c, host, LT_READ) : NULL;
  size_t n = (size_t)t->numel * lt_item_size(t);
  if (bytes != NULL || (host != NULL && n == 0 && lt_ok(c)))
    to->tensor(to, t, n > 0 ? bytes : "", n);
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

static void fast_shape(sink *to, const lt_tensor *t) {
  to->h = lt_hash_mix(to->h, (uint64_t)t->dtype << 8 | (uint64_t)t->ndim);
  for (int k = 0; k < t->ndim; k++) to->h = lt_hash_mix(to->h, (uint64_t)t->size[k]);
}

/* Shape and dtype go in first: [2, 3] and [3, 2] of the same bytes differ. */
static void fast_tensor(sink *to, const lt_tensor *t, const void *bytes, size_t n) {
  fast_shape(to, t);
  to->h = lt_hash_bytes(bytes, n, to->h);
}

/* Those that were left to their devices: one wait for each run of tensors on one device. Grad mode
   and autocast are off: a checksum leaves no history and no cast in between. */
static void add_on_device(lua_State *L, lt_bind *b, sink *to) {
  lt_modes modes = b->c->modes;
  lt_frame frame = lt_begin(L, b, 0);
  b->c->modes.grad = b->c->modes.autocast = false;
  for (int from = 0, end; from < to->n_on_device && lt_ok(b->c); from = end) {
    lt_device d = to->on_device[from]->storage->device;
    for (end = from + 1; end < to->n_on_device; end++)
      if (!lt_device_equal(to->on_device[end]->storage->device, d)) break;
    lt_checksum(b->c, end - from, to->on_device + from, &to->h);
  }
  b->c->modes = modes;
  lt_end_call(L, b, frame);
}

/* A value of Lua that is not a tensor: its type, then its bytes. */
static void fast_value(lua_State *L, lt_bind *b, int index, sink *to) {
  uint64_t word = 0;
  to->h = lt_hash_mix(to->h, (uint64_t)lua_type(L, index) << 1 | (uint64_t)lua_isinteger(L, index));
  if (lua_isinteger(L, index)) {
    word = (uint64_t)lua_tointeger(L, index);
  } else if (lua_type(L, index) == LUA_TNUMBER) {
    lua_Number x = lua_tonumber(L, index);
    memcpy(&word, &x, sizeof word);
  } else if (lua_isboolean(L, index)) {
    word = (uint64_t)lua_toboolean(L, index);
  } else if (lua_type(L, index) == LUA_TSTRING) {
    size_t n;
    const char *text = lua_tolstring(L, index, &n);
    word = lt_hash_bytes(text, n, 0);
  } else {
    lt_raise(L, b, LT_EARG, "hash: takes tensors, numbers, strings and booleans, got %s",
             lt_shown(L, index));
  }
  to->h = lt_hash_mix(to->h, word);
}

/* Calls take_tensor for each tensor of the list at index 1, `other` for what is none. Tensors that
   their device can hash are only put on a list here, in their order; the shapes go in at once. A
   list with both kinds therefore hashes in an order that differs from its own, the same on every
   rank. */
static void take_list(lua_State *L, lt_bind *b, sink *to,
                      void (*other)(lua_State *L, lt_bind *b, int index, sink *to)) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lt_note_line(b);
  lt_modes modes = b->c->modes;
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  for (lua_Integer i = 1; i <= n; i++) {
    lt_raw_geti(L, 1, i);
    lt_tensor *t = lt_to_tensor(L, b, -1);
    if (t == NULL) {
      other(L, b, lua_gettop(L), to);
    } else if (to->on_device != NULL && lt_can_checksum(b->c, t)) {
      fast_shape(to, t);
      to->on_device[to->n_on_device++] = t;
    } else {
      b->c->modes.grad = false;
      bool ok = take_tensor(b->c, t, to);
      b->c->modes = modes;
      if (!ok) lt_raise_failure(L, b);
    }
    lua_pop(L, 1);
  }
}

/* runtime.hash(list) -> integer: 64 bits of tensors and plain values, equal on ranks that hold the
   same bits on the same kind of device; quick, and no proof against forgery */
static int hash(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  sink to = {.tensor = fast_tensor};
  to.on_device = lua_newuserdatauv(L, (lua_rawlen(L, 1) + 1) * sizeof(lt_tensor *), 0);
  take_list(L, b, &to, fast_value);
  add_on_device(L, b, &to);
  lua_pushinteger(L, (lua_Integer)to.h);
  return 1;
}

static void sha_tensor(sink *to, const lt_tensor *t, const void *bytes, size_t n) {
  (void)t;
  lt_sha256_take(&to->sha, bytes, n);
}

static void sha_string(lua_State *L, lt_bind *b, int index, sink *to) {
  size_t n;
  if (lua_type(L, index) != LUA_TSTRING)
    lt_raise(L, b, LT_EARG, "sha256: takes strings and tensors, got %s", lt_shown(L, index));
  const char *text = lua_tolstring(L, index, &n);
  lt_sha256_take(&to->sha, text, n);
}

/* runtime.sha256(list) -> 64 hex digits: SHA-256 of strings and of the bytes of tensors, joined */
static int sha256(lua_State *L) {
  lt_bind *b = lt_enter(L);
  sink to = {.tensor = sha_tensor};
  lt_sha256_begin(&to.sha);
  take_list(L, b, &to, sha_string);
  uint8_t digest[LT_SHA256_BYTES];
  lt_sha256_end(&to.sha, digest);
  char text[2 * LT_SHA256_BYTES];
  for (int i = 0; i < LT_SHA256_BYTES; i++) {
    text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  lua_pushlstring(L, text, sizeof text);
  return 1;
}

void lt_bind_hash(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"hash", hash}, {"sha256", sha256}, {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
