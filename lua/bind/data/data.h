/* lua/bind/data/data.h: declarations that the files of `c.runtime.data` share. */
#ifndef LT_BIND_DATA_DATA_H
#define LT_BIND_DATA_DATA_H

#include "bind/core/state.h"
#include "data/prefetch.h"

/* The order at `index`. */
lt_order *lt_check_order(lua_State *L, int index);

/* A count of samples: an integer at `index` that is not negative. */
int64_t lt_check_samples(lua_State *L, lt_bind *b, int index, const char *who);

/* {batch_size, drop_last, evaluation, wrap, dealt, lasts (an order), rank, world}, to be walked in
   n samples from a position; lasts stays alive with the table. */
lt_batching lt_read_batching(lua_State *L, int index, int64_t n, int64_t position);

/* The list of tensors at `index`; divisors[i] (absent: none) is what u8 values are divided by. */
int lt_read_columns(lua_State *L, lt_bind *b, int index, int divisors, lt_column *columns);

/* What next() of a feed returns after the feed was asked for a batch of n tensors in the open frame
   (ok: it did not fail): the tensors, or false where only other ranks have a part of the batch;
   `position` moves on. 0: the feed is at its end. */
int lt_give_batch(lua_State *L, lt_bind *b, lt_frame frame, bool ok, const lt_span *span,
                  int64_t *position, int n, lt_tensor *const *out);

/* Functions of `c.runtime.data` (order.c, batching.c). */
int lt_data_order(lua_State *L);
int lt_data_order_of(lua_State *L);
int lt_data_span(lua_State *L);
int lt_data_batch_count(lua_State *L);
int lt_data_batch_skip(lua_State *L);

void lt_bind_orders(lua_State *L, lt_bind *b); /* makes the type */
void lt_bind_images(lua_State *L, lt_bind *b); /* adds to the table on top */

#endif
