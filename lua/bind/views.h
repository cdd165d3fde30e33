/* lua/bind/views.h: positions and ranges of scripts, turned to C's. */
#ifndef LT_BIND_VIEWS_H
#define LT_BIND_VIEWS_H

#include "bind/tensor.h"

/* As given: from..to by step, 1-based, inclusive, negative from the end. As checked: n elements
   from `from` (0-based) by step. */
typedef struct lt_range {
  int64_t from, to, step, n;
} lt_range;

/* The position at `index` of a dim of n elements, as 0..n-1; raises when out of range. */
int64_t lt_check_position(lua_State *L, lt_bind *b, int index, int64_t n, const char *who,
                          const lt_tensor *x);

/* A checked range of a dim of n elements: no clipping; {3, 2} is empty. */
lt_range lt_check_range(lua_State *L, lt_bind *b, lt_range r, int64_t n, const char *who,
                        const lt_tensor *x);

#endif
