/* lua/bind/open.h: opens the binding of a state. */
#ifndef LT_BIND_OPEN_H
#define LT_BIND_OPEN_H

#include "bind/core/state.h"

typedef struct lt_bind_options {
  bool owned;
  bool owns_process; /* ranks that fail may end it when the script does not */
  int threads; /* 0: one */
  lt_bind_limits limits;
  lt_policy policy;
  const lt_allocator *allocator; /* NULL: malloc */
} lt_bind_options;

/* The state's binding, made at the first call; pushes the table of all C functions. */
lt_bind *lt_bind_open(lua_State *L, const lt_bind_options *options);

#endif
