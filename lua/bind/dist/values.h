/* lua/bind/dist/values.h: serializes Lua values for messages between ranks.

   Data, never code: nil, booleans, integers, floats (bit for bit), strings, tensors, and plain
   tables of these with integer and string keys. What is read is checked against its bounds: bytes
   that are malformed raise an error and do no more. */
#ifndef LT_BIND_DIST_VALUES_H
#define LT_BIND_DIST_VALUES_H

#include "bind/core/state.h"
#include "bind/io/json.h"
#include "tensor/tensor.h"

enum { LT_VALUE_DEPTH = 100 };

/* Add the value at `index` to `out`. Raises "who: what.x[3] is a function: ..." on one that does
   not travel. Tensors go without history, from any device. */
void lt_value_write(lua_State *L, lt_bind *b, int index, lt_json *out, const char *who,
                    const char *what);

/* In the host's memory, contiguous, without history: the tensor itself where it is that already.
   Adds to the open frame; NULL with a failure. */
lt_tensor *lt_plain_tensor(lt_ctx *c, lt_tensor *t);

/* The same with tensors apart: they are appended to the list at `list`, and the text says where in
   a memory of their own each begins: one after another, lt_value_bytes bytes each. Returns the
   bytes of all. */
int64_t lt_value_write_apart(lua_State *L, lt_bind *b, int index, int list, lt_json *out,
                             const char *who, const char *what);

enum { LT_VALUE_ALIGN = 64 };
static inline int64_t lt_value_bytes(const lt_tensor *t) {
  int64_t bytes = t->numel * (int64_t)lt_item_size(t);
  return (bytes + LT_VALUE_ALIGN - 1) / LT_VALUE_ALIGN * LT_VALUE_ALIGN;
}

/* Push the value that n bytes stand for. Raises when they are not such a value, whole. Tensors
   are made on the cpu. */
void lt_value_read(lua_State *L, lt_bind *b, const void *data, size_t n, const char *who);

/* The same where tensors are in a memory of `bytes` bytes; tensor() makes one of them, in the open
   frame. */
typedef struct lt_value_memory {
  size_t bytes;
  lt_tensor *(*tensor)(void *ud, lt_ctx *c, int64_t offset, lt_dtype dtype, int ndim,
                       const int64_t *size);
  void *ud;
} lt_value_memory;
void lt_value_read_apart(lua_State *L, lt_bind *b, const void *data, size_t n,
                         const lt_value_memory *memory, const char *who);

/* dist.encode(value, who, what) -> bytes; dist.decode(bytes) -> value */
int lt_value_encode(lua_State *L);
int lt_value_decode(lua_State *L);

#endif
