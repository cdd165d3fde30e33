/* lua/bind/data.h: what the parts of `c.runtime.data` share. */
#ifndef LT_BIND_DATA_H
#define LT_BIND_DATA_H

#include "bind/state.h"
#include "data/prefetch.h"

/* The order at `index`. */
lt_order *lt_check_order(lua_State *L, int index);

/* {batch_size, drop_last, evaluation, wrap, dealt, lasts (an order), rank, world}, to be walked in
   n samples from a position; lasts stays alive with the table. */
lt_batching lt_read_batching(lua_State *L, int index, int64_t n, int64_t position);

/* The list of tensors at `index`; divisors[i] (absent: none) is what u8 values are divided by. */
int lt_read_columns(lua_State *L, lt_bind *b, int index, int divisors, lt_column *columns);

void lt_bind_images(lua_State *L, lt_bind *b); /* adds to the table on top */

#endif
