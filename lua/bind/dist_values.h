/* lua/bind/dist_values.h: values of Lua as bytes, for ranks to hand each other.

   Data, never code: nil, booleans, integers, floats (bit for bit), strings, tensors, and plain
   tables of these with integer and string keys. What is read is checked against its bounds: bytes
   that are malformed raise an error and do no more. */
#ifndef LT_BIND_DIST_VALUES_H
#define LT_BIND_DIST_VALUES_H

#include "bind/json.h"
#include "bind/state.h"

enum { LT_VALUE_DEPTH = 100 };

/* Add the value at `index` to `out`. Raises "who: what.x[3] is a function: ..." on one that does
   not travel. Tensors go without history, from any device. */
void lt_value_write(lua_State *L, lt_bind *b, int index, lt_json *out, const char *who,
                    const char *what);

/* Push the value that n bytes stand for. Raises when they are not such a value, whole. Tensors
   are made on the cpu. */
void lt_value_read(lua_State *L, lt_bind *b, const void *data, size_t n, const char *who);

/* dist.encode(value, who, what) -> bytes; dist.decode(bytes) -> value */
int lt_value_encode(lua_State *L);
int lt_value_decode(lua_State *L);

#endif
